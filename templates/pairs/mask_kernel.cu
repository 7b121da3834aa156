//| -- The kernel before those of the family: tables of what a score program's mask reads. After pairs/program.cu.
//| local wk = include("work/work.lua").of(p, l)
//| include "pairs/mask_tables.cu"

//| for _, line in ipairs(p.score.mask_fill_tables()) do
$(line)
//| end
extern "C" __global__ void __launch_bounds__(256) fa_mask_tables(const __grid_constant__ Params p) {
  score_fill_tables(p, (int)$(wk.block) * 8 + (int)threadIdx.x / 32, (int)$(wk.blocks) * 8, (int)threadIdx.x % 32);
}
