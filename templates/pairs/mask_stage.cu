//| needs "l.masks?"
//| -- mask_stage: what is left of a score program's mask in a kernel that finds its parts in shared memory, of the layout l.masks.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| return function(pr, p, l)
//|   pr.masks = l.masks
//|   local program = p.score
//|   local function print_lines(lines)
//|     for _, line in ipairs(lines) do
$(line)
//|     end
//|   end
//|   local function parameters()
//|     local list = ""
//|     for _, of in ipairs(l.masks.columns) do list = list .. (", %s a%d"):format(of.type, of.node) end
//|     for _, of in ipairs(l.masks.rows) do list = list .. (", %s a%d"):format(of.type, of.node) end
//|     return l.masks.plane and list .. (", bool a%d"):format(l.masks.plane) or list
//|   end
//|
//|   -- The parts, and of a pair what they tell.
//|   function pr.mask_parts()
//|     for n, of in ipairs(l.masks.columns) do
__device__ __forceinline__ $(of.type) mask_column$(of.node)(const Params &p, const ScoreTile &t, int key) {
//|       print_lines(program.mask_column(false, n))
}
//|     end
//|     for n, of in ipairs(l.masks.rows) do
__device__ __forceinline__ $(of.type) mask_row$(of.node)(const Params &p, const ScoreTile &t, int head, int row) {
//|       print_lines(program.mask_row(false, n))
}
//|     end
//|     if l.masks.lookup then
// Where key 0 of a row lies.
__device__ __forceinline__ const unsigned$(l.masks.lookup.bits and "" or " char") *mask_plane_row(const Params &p, const ScoreTile &t, int head, int row) {
//|       print_lines(program.mask_plane_row(false))
}
//|     elseif l.masks.plane then
__device__ __forceinline__ bool mask_plane(const Params &p, const ScoreTile &t, int head, int row, int key) {
//|       print_lines(program.mask_plane(false))
}
//|     end
// Whether a row's query sees key + column.
__device__ __forceinline__ bool mask_sees(const Params &p, const ScoreTile &t, int head, int row, int key, int column$(parameters())) {
//|     print_lines(program.mask_staged(false))
}
//|   end
//|
//|   -- Pairs of x, a tile in the layout wgmma, that the mask hides become -inf. stage: where its parts lie. A warp's rows begin at `row` of
//|   -- the tile.
//|   function pr.hide_staged(x, stage, tile_row)
//|     local of, arguments = layouts.wgmma.score, ""
//|     for _, column in ipairs(l.masks.columns) do
//|       local n = column.node
const u32 from$(n) = $(stage) + $(column.at) + t * 8;
//|       local word = ("(e == 0 ? v%d.x : v%d.y)"):format(n, n)
//|       arguments = arguments .. ", " .. ({ int = "(int)" .. word, float = ("__int_as_float((int)%s)"):format(word), bool = word .. " != 0" })[column.type]
//|     end
//|     for _, row in ipairs(l.masks.rows) do
//|       local n = row.node
const $(row.type) r$(n)[2] = {mask_row$(n)(p, scored, scored.h, row), mask_row$(n)(p, scored, scored.h, row + 8)};
//|       arguments = arguments .. (", r%d[h]"):format(n)
//|     end
//|     if l.masks.plane then
const u32 bits = $(stage) + $(l.masks.bits) + ($(tile_row) + g) * $(l.masks.pitch);
//|       arguments = arguments .. ", (seen[h] >> (8 * m + e) & 1) != 0"
//|     end
#pragma unroll
for (int word = 0; word < (NS + 15) / 16; word++) {
//|     if l.masks.plane then
  const u32 seen[2] = {load_shared(bits + 4 * word) >> 2 * t, load_shared(bits + $(8 * l.masks.pitch) + 4 * word) >> 2 * t};
//|     end
#pragma unroll
  for (int m = 0; m < 4 && 4 * word + m < NS / 4; m++) {
    const int n = 4 * word + m;
//|     for _, column in ipairs(l.masks.columns) do
    const uint2 v$(column.node) = load_shared_x2(from$(column.node) + n * 32);
//|     end
//|     indented(4, loops, { "int e = 0; e < 2; e++", "int h = 0; h < 2; h++" }, true, function()
//|       pr.own_row(of.row)
//|       pr.set(of, x, "-infinity()", ("!mask_sees(p, scored, head, query, %s, %s%s)"):format(of.key, of.column, arguments))
//|     end)
  }
}
//|   end
//| end
