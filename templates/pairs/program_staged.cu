//| needs "l.begins? l.reads_twice? l.staged?"
//| -- program_staged: the same where arrays of the program lie in shared memory, or in a thread's words.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| return function(pr, p, l)
//|   local program, has_score = p.score, pr.has_score
//|   -- Whether a kernel that can reads arrays before the product is there: from global memory, or from shared memory.
//|   pr.staged = has_score and l.staged
//|   pr.produces_scores, pr.owns_rows = pr.staged and l.staged.produced, pr.staged and l.staged.owned
//|   -- Maps of what is staged: as a kernel's parameters, as arguments of a function, and as its parameters.
//|   local function box_words(word)
//|     local text = ""
//|     for _, tile in ipairs(pr.staged and l.staged.tiles or {}) do
//|       if tile.boxed then text = text .. (", %smap%d"):format(word, tile.node) end
//|     end
//|     return text
//|   end
//|   function pr.box_maps() return box_words("const __grid_constant__ TensorMap ") end
//|   function pr.box_arguments() return box_words("") end
//|   function pr.box_types() return box_words("const TensorMap &") end
//|   -- Where a lane reads 16 bytes of a tile of 16-bit elements, and of the m-th 32 bytes of its row.
//|   function pr.tile_from(tile, stage, row, n)
//|     if tile.columns then
const u32 from$(n) = $(stage) + $(tile.at) + $(row) / 64 * $(tile.box) + (lane / 16 * 8 + lane % 8) * 128;
const u32 turn$(n) = ($(row) % 64 / 8 + lane / 8 % 2 ^ lane % 8) * 16;
//|     elseif tile.shifted then
// Words of a thread's two rows, each from the one on in which its first key is; which halves of two words are two keys.
const u32 from$(n) = $(stage) + $(tile.at) + ($(row) + lane / 4) * $(tile.pitch) + lane % 4 * 4;
const u32 own$(n)[2] = {from$(n) + shift$(n)[0] / 2 * 4, from$(n) + $(8 * tile.pitch) + shift$(n)[1] / 2 * 4};
const u32 halves$(n)[2] = {shift$(n)[0] % 2 == 0 ? 0x3210u : 0x5432u, shift$(n)[1] % 2 == 0 ? 0x3210u : 0x5432u};
//|     elseif tile.swizzled then
const u32 from$(n) = $(stage) + $(tile.at) + ($(row) + lane % 16) * $(tile.pitch), turn$(n) = lane / 16 * 16 ^ lane % 8 * 16;
//|     else
//|       local line = tile.pitch > 0 and ("(%s + lane %% 16) * %d + "):format(row, tile.pitch) or ""
const u32 from$(n) = $(stage) + $(tile.at) + $(line)lane / 16 * 16;
//|     end
//|   end
//|   function pr.tile_at(tile, n)
//|     if not tile.swizzled then return ("from%s + m * 32"):format(n) end
//|     if tile.columns then return ("from%s + m * 2048 + turn%s"):format(n, n) end
//|     return ("from%s + m / 4 * %d + (m %% 4 * 32 ^ turn%s)"):format(n, tile.box, n)
//|   end
//|   -- v: a thread's words of the m-th 32 bytes of its rows.
//|   function pr.tile_read(tile, n)
//|     if not tile.shifted then
ldmatrix_x4(v$(n), $(pr.tile_at(tile, n)));
//|     else
#pragma unroll
for (int i = 0; i < 4; i++) {
  const u32 word = own$(n)[i % 2] + m * 32 + i / 2 * 16;
  v$(n)[i] = __byte_perm(load_shared(word), load_shared(word + 4), halves$(n)[i % 2]);
}
//|     end
//|   end
//|   -- Reads the elements of eight products, two to a word, and adds them: in one statement, which is compiled sooner than 25.
//|   local function add_tile(tile, x)
//|     local bf16, into = tile.of.bf16, {}
//|     for i = 0, 7 do into[#into + 1] = ('"+f"(%s[8 * m + %d])'):format(x, i) end
asm volatile("{\n.reg .b32 v<4>;\n"
//|     if bf16 then
    ".reg .b32 element;\n"
//|     else
    ".reg .b16 low, high;\n.reg .f32 element;\n"
//|     end
    "ldmatrix.sync.aligned.m8n8.x4$(tile.columns and ".trans" or "").shared.b16 {v0, v1, v2, v3}, [%8];\n"
//|     for i = 0, 7 do
//|       local word, add = "v" .. i // 2, ("fma.rn.f32 %%%d, %%%d, %%9, element;"):format(i, i)
//|       if bf16 then
    "$(i % 2 == 0 and "shl.b32 element, " .. word .. ", 16" or "and.b32 element, " .. word .. ", 0xffff0000");\n$(add)\n"
//|       else
    "$(i % 2 == 0 and "mov.b32 {low, high}, " .. word .. ";\\n" or "")cvt.f32.f16 element, $(i % 2 == 0 and "low" or "high");\n$(add)\n"
//|       end
//|     end
    "}" : $(table.concat(into, ", "))
    : "r"($(pr.tile_at(tile, tile.node))), "f"(p.scale) : "memory");
//|   end
//|   -- Where a thread reads a line.
//|   local function begin_line(line, stage, row)
//|     local n = line.node
// From the distance of the first key and the thread's second row on.
const int place$(n) = BR - 1 - ($(row) + g + 8) + 2 * t;
const u32 from$(n) = $(stage) + $(line.at) + (place$(n) & 1) * LINE + (place$(n) + (place$(n) & 1)) * 4;
//|   end
//|   -- Where a thread reads what scores of a block begin with, and what four of x are then.
//|   function pr.begin_at(stage, row)
//|     begin_line(l.staged.lines[1], stage, row)
//|     local from = "from" .. l.staged.lines[1].node
return {$(from)$(l.reads_twice and (", %s + 32 + (u32)(p.sk >> 31)"):format(from) or "")};
//|   end
//|   function pr.join_at(stage, row)
//|     begin_line(l.staged.lines[1], stage, row)
return from$(l.staged.lines[1].node);
//|   end
//|   function pr.begin_four(x, n, from)
//|     local here = l.reads_twice and "here" or "above + 32"
const float2 above = load_shared_float2($(from).above + $(n) * 32), here = load_shared_float2($(from).$(here) + $(n) * 32);
$(x)[4 * $(n)] = here.x, $(x)[4 * $(n) + 1] = here.y, $(x)[4 * $(n) + 2] = above.x, $(x)[4 * $(n) + 3] = above.y;
//|   end
//|   -- The same of x, a tile in the layout wgmma, where arrays are in shared memory, the stage at `stage`. A warp's rows begin at `row`
//|   -- of the tile.
//|   -- beside: gets the one number of all pairs of the tile, where the producer has set `far`.
//|   function pr.apply_staged(x, stage, row, beside)
//|     local of, arguments = layouts.wgmma.score, {}
//|     if l.staged.far and beside then
if (__float_as_int(far.x) != 0) {  // one number for all pairs
  $(beside) = far.y * 1.44269504088896341f;
  return true;
}
//|     elseif l.staged.far then
const u32 far = $(stage) + $(l.staged.far.at);
if (load_shared(far) != 0) {  // one number for all pairs
  const float value = load_shared_float(far + 4);
//|       indented(2, loops, of.loops, true, function()
//|         pr.own_row(of.row)
$(x)$(of.at) = score_pair_ahead<CUT>(p, scored, head, query, $(of.key), $(of.column), $(x)$(of.at), value);
//|       end)
  return;
}
//|     end
//|     for _, tile in ipairs(l.staged.tiles) do
//|       local n = tile.node
//|       if tile.shifted then
const u32 shift$(n)[2] = {row_shift$(n)(p, scored, row), row_shift$(n)(p, scored, row + 8)};
//|       end
//|       if tile.of.wide then
const u32 from$(n) = $(stage) + $(tile.at) + $(tile.pitch > 0 and ("(%s + g) * %d + "):format(row, tile.pitch) or "")t * 8;
//|         arguments[n] = ("h == 0 ? e == 0 ? v%d[i].x : v%d[i].y : e == 0 ? v%d[2 + i].x : v%d[2 + i].y"):format(n, n, n, n)
//|       else
//|         pr.tile_from(tile, stage, row, n)
//|         local word = ("v%d[2 * i + h]"):format(n)
//|         arguments[n] = tile.of.bf16 and ("__uint_as_float(e == 0 ? %s << 16 : %s & 0xffff0000u)"):format(word, word)
//|           or ("score_half((unsigned short)(e == 0 ? %s : %s >> 16))"):format(word, word)
//|       end
//|     end
//|     for _, line in ipairs(l.staged.lines) do
//|       local n = line.node
//|       begin_line(line, stage, row)
float2 before$(n) = load_shared_float2(from$(n));
//|       local element = ("e == 0 ? v%d[1 + i - h].x : v%d[1 + i - h].y"):format(n, n)
//|       local unit = l.begins and "p.scale"
//|       arguments[n] = unit and ("%s * (%s)"):format(unit, element) or element
//|     end
//|     local ahead = ""
//|     for _, of in ipairs(program.arrays) do ahead = ahead .. ", " .. arguments[of.node] end
//|     if program.of_distance then ahead = ahead .. ", " .. arguments[program.of_distance] end
//|     local only = #l.staged.tiles == 1 and #l.staged.lines == 0 and l.staged.tiles[1]
#pragma unroll
for (int m = 0; m < NS / 8; m++) {
//|     if only and only.node == program.adds and not only.of.wide and not only.shifted then
//|       indented(2, add_tile, only, x)
}
//|       return
//|     end
//|     for _, tile in ipairs(l.staged.tiles) do
//|       local n = tile.node
//|       if tile.of.wide then
//|         if tile.shifted then
  float2 v$(n)[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 at = from$(n) + m * 64 + i % 2 * 32 + i / 2 * $(8 * tile.pitch) + shift$(n)[i / 2] * 4;
    v$(n)[i] = {__uint_as_float(load_shared(at)), __uint_as_float(load_shared(at + 4))};
  }
//|         else
  const float2 v$(n)[4] = {load_shared_float2(from$(n) + m * 64), load_shared_float2(from$(n) + m * 64 + 32),
                       load_shared_float2(from$(n) + m * 64 + $(8 * tile.pitch)), load_shared_float2(from$(n) + m * 64 + $(8 * tile.pitch + 32))};
//|         end
//|       else
  u32 v$(n)[4];
//|         indented(2, pr.tile_read, tile, n)
//|       end
//|     end
//|     for _, line in ipairs(l.staged.lines) do
//|       local n = line.node
  const float2 v$(n)[3] = {before$(n), load_shared_float2(from$(n) + m * 64 + 32), load_shared_float2(from$(n) + m * 64 + 64)};
  before$(n) = v$(n)[2];
//|     end
//|     indented(2, loops, { "int i = 0; i < 2; i++", "int e = 0; e < 2; e++", "int h = 0; h < 2; h++" }, true, function()
const int n = 2 * m + i;
//|       pr.own_row(of.row)
$(x)$(of.at) = score_pair_ahead<CUT>(p, scored, head, query, $(of.key), $(of.column), $(x)$(of.at)$(ahead));
//|     end)
}
//|   end
//|   -- The same of words that the thread has of the program's only array.
//|   function pr.apply_held(x, held)
//|     local of, array = layouts.wgmma.score, program.arrays[1]
//|     local value = array.bf16 and "__uint_as_float(e == 0 ? %s << 16 : %s & 0xffff0000u)"
//|       or "score_half((unsigned short)(e == 0 ? %s : %s >> 16))"
//|     local word = held .. "[2 * n + h]"
//|     loops(of.loops, true, function()
//|       pr.own_row(of.row)
$(x)$(of.at) = score_pair_ahead<CUT>(p, scored, head, query, $(of.key), $(of.column), $(x)$(of.at), $(value:format(word, word)));
//|     end)
//|   end
//| end
