// fagen $(version), gradients of attention of wide heads on mma.sync, in passes over their columns.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

//| include "families/flash_bwd_mma.cu"
