// fagen $(version), attention of wide heads on wgmma and TMA, two warpgroups to the rows of a tile: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

//| include "families/flash_fwd_wgmma.cu"
