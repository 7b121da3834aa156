//| local edges = include "pairs/edges.lua"
// fagen $(version), attention of batches of prompts and single tokens on wgmma: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// The sequences of more than $(l.few_layout.rows_upto) query rows of a group of heads, in whole tiles.
namespace prompts {
//| include "families/flash_fwd_wgmma.cu"
}  // namespace prompts

//| c, l = l.few_config, l.few_layout
// The others, their keys split over all blocks.
namespace few_rows {
//| include "families/decode_kernel.cu"
}  // namespace few_rows
//| if edges.tables(p) then
//|   c, l = {}, {}

// Of all of them: the kernel before.
namespace tables {
//|   include "machine/prelude.cu"

//|   include "pairs/sequence.cu"

//|   include("pairs/pairs.lua").of(p, l).program()

//|   include "pairs/mask_kernel.cu"
}  // namespace tables
//| end
