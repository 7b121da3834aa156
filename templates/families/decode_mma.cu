// fagen $(version), attention of few query rows, keys split over all blocks: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

//| include "families/decode_kernel.cu"
