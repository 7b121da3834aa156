// fagen $(version), flash attention forward on mma.sync, O in passes: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

//| include "families/flash_fwd_mma.cu"
