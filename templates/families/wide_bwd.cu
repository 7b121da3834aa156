//| include "families/naive_bwd.cu"
