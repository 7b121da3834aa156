//| needs "l.runs?"
//| -- The kernel before those of the family: tables of what a score program's mask reads. After pairs/program.cu.
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| include "pairs/mask_tables.cu"

//| for _, line in ipairs(p.score.mask_fill_tables()) do
$(line)
//| end
//| -- Matrices are read at the rate of memory: four blocks of an SM are there at once.
//| if l.runs then
//|   include "pairs/mask_values.cu"

//| end
//| local blocks = include("pairs/edges.lua").tables(p):find("mask_pairs") and ", 4" or ""
extern "C" __global__ void __launch_bounds__(256$(blocks)) fa_mask_tables(const __grid_constant__ Params p) {
//| if pr.masks then
  grid_over(), grid_wait();  // the next kernel may begin to; that of a launch before may read these tables
//| end
  if (p.sq <= 0 || p.sk <= 0) return;  // no pair is asked, and tables have no room, though arrays have an element
  score_fill_tables(p, (int)($(wk.block) * 8 + threadIdx.x / 32), (int)$(wk.blocks) * 8, (int)(threadIdx.x % 32));
//| if l.runs then
  find_runs(p, (int)($(wk.block) * 8 + threadIdx.x / 32), (int)$(wk.blocks) * 8, (int)(threadIdx.x % 32));
//| end
}
