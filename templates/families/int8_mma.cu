// fagen $(version), flash attention forward of 8-bit integers on mma.sync: O = softmax(scale Q K^T, masked) V and LSE, V of 16 bits.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

//| include "families/flash_fwd_mma.cu"
