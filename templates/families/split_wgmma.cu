// fagen $(version), flash attention forward on wgmma and TMA, keys cut into parts: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

//| include "families/flash_fwd_wgmma.cu"
