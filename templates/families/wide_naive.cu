//| include "families/naive.cu"
