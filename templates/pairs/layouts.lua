-- layouts: how the threads of a kernel hold a tile of pairs. A row is a thread's walk over its elements, as text, in the names that the
-- kernels have which hold tiles so.
--
--   told          how hide() tells which pairs are hidden: a way of pairs/hide.cu
--   outer, row    loops over the rows of the tile, and what is declared of each. Of a transposed tile a row is a key
--   inner, pair   loops over the elements of a row, and what is declared of each; words: loops between the two
--   query, key    of an element
--   at            where an element is in its array
--
-- octet is the walk for dropout, pairs/drop.cu: over elements of eight pairs, which one call of Dropout::words() decides.
--
--   loops               as above. rows, row: loops over the rows of an octet, and where each lies, where they are of several heads
--   number, query, key  of the first pair, as Dropout::words() takes them; e: 0, or of an element 1 where its key is the next
--   after, words        what is declared after the call, and the words in the order of `at`: else those of (i, j) (i, j + 8) (i + 8, j)
--                       (i + 8, j + 8)
--   at                  the elements; of an operand both of a word
--
-- A transposed tile has all of a thread's keys even, or all odd: two threads share the calls, those of even keys for queries 2 t, and those
-- of odd keys for queries 2 t + 1.
--
--   calls               of a thread, for a word of bits
--   query               of the n-th; odd: whether the thread's keys are
--   mate                by which number of lanes the two are apart
--
-- score is the walk of score programs, pairs/program_tiles.cu: columns outside, so that what depends on the key alone is computed once for
-- all rows.
--
--   loops, at      as above
--   row            of an element: a row of the head, or of the group
--   key, column    an element's key is their sum: key is the same for a thread, column a number once loops are unrolled
--   distance       key - query of an element, from that of the warp's first row and the block's first key on, but for lanes; and t
--   word           of arrays that are read ahead, two keys to a word, of which `e` is the key
--   lse            of a row, in a kernel of the backward pass: its LSE in base 2
--   shift          of a row, what its exponents are relative to, where scores become those at once
--   along          another row and column with the same distance, the row the same for a thread, for scores that tell no more
--
-- kept is the walk over elements whose bits are known: loops, at, and `bit`, a word with an element's bit as its lowest. operand, two: the
-- same of 16-bit elements by twos, their bits the highest of a word's halves.

local layouts = {}

-- mma.sync, x[MB][NB][4]: half h of 16 rows is row g + 8 h, elements 2 h and 2 h + 1 of each eight columns.
layouts.mma = {
  told = "keys",
  outer = { "int m = 0; m < MB; m++", "int h = 0; h < 2; h++" },
  row = "i = query_of(p, row + m * 16 + h * 8 + at.g)",
  inner = { "int n = 0; n < NB; n++", "int e = 0; e < 2; e++" },
  pair = "key = n * 8 + key_of_column(2 * at.t + e)",
  query = "i", key = "key",
  at = "[m][n][2 * h + e]",
  octet = {
    loops = { "int m = 0; m < MB; m++", "int n = 0; n < NB; n += 2" },
    number = "(int)(where.batch * p.hq + where.head)", query = "row + m * 16 + at.g",
    key = "block * BC + n * 8 + key_of_column(2 * at.t + e)",
    at = { "[m][n][e]", "[m][n + 1][e]", "[m][n][2 + e]", "[m][n + 1][2 + e]" },
  },
  score = {
    loops = { "int n = 0; n < NB; n++", "int e = 0; e < 2; e++", "int m = 0; m < MB; m++", "int h = 0; h < 2; h++" },
    row = "row + m * 16 + h * 8 + at.g", key = "block * BC + key_of_column(2 * at.t)", column = "n * 8 + e * key_of_column(1)",
    at = "[m][n][2 * h + e]",
  },
}

-- The same with rows of several heads, so that rows g and g + 8 have no words in common.
layouts.mma_packed = {
  octet = {
    loops = layouts.mma.octet.loops,
    rows = { "int h = 0; h < 2; h++" },
    row = "row_of(p, where, row + m * 16 + h * 8 + at.g)",
    number = "(int)(where.batch * p.hq + own.head)", query = "query", key = layouts.mma.octet.key,
    after = "bool below = query % 16 >= 8", words = { "below ? w.z : w.x", "below ? w.w : w.y" },
    at = { "[m][n][2 * h + e]", "[m][n + 1][2 * h + e]" },
  },
}

-- mma.sync in the kernel of dQ, x[QB][NB_KEYS][4].
layouts.mma_queries = {
  told = "keys",
  outer = { "int m = 0; m < QB; m++", "int h = 0; h < 2; h++" },
  row = "i = row0 + warp_row + m * 16 + h * 8 + g",
  inner = { "int n = 0; n < NB_KEYS; n++", "int e = 0; e < 2; e++" },
  query = "i", key = "n * 8 + 2 * t + e",
  at = "[m][n][2 * h + e]",
  octet = {
    loops = { "int m = 0; m < QB; m++", "int n = 0; n < NB_KEYS; n += 2" },
    number = "number", query = "row + m * 16 + g", key = "key + n * 8 + 2 * t + e",
    at = layouts.mma.octet.at,
  },
  score = {
    loops = { "int n = 0; n < NB_KEYS; n++", "int e = 0; e < 2; e++", "int m = 0; m < QB; m++", "int h = 0; h < 2; h++" },
    row = "row0 + warp_row + m * 16 + h * 8 + g", key = "block * BC + 2 * t", column = "n * 8 + e", lse = "lse[m][h]",
    at = "[m][n][2 * h + e]",
  },
}

-- mma.sync transposed, in the kernel of dK and dV, x[KB][NB_ROWS][4].
layouts.mma_keys = {
  told = "diagonals",
  inner = { "int m = 0; m < KB; m++", "int n = 0; n < NB_ROWS; n++", "int e = 0; e < 4; e++" },
  pair = "j = g + m * 16 + e / 2 * 8, i = 2 * t + n * 8 + e % 2",
  query = "i", key = "j",
  at = "[m][n][e]",
  octet = { calls = "(NB_ROWS < 8 ? NB_ROWS / 2 : 4)", number = "number", query = "row + word * 64 + n * 16 + 2 * t + odd",
            key = "key + m * 16 + g", odd = "g % 2", mate = 4 },
  kept = {
    loops = { "int m = 0; m < KB; m++", "int n = 0; n < NB_ROWS; n++", "int e = 0; e < 4; e++" },
    at = "[m][n][e]", bit = "kept.bits[m][n / 8] >> (n % 8 * 2 + e / 2 + e % 2 * 16)",
  },
  score = {
    loops = { "int n = 0; n < NB_ROWS; n++", "int e = 0; e < 2; e++", "int m = 0; m < KB; m++", "int h = 0; h < 2; h++" },
    row = "row + n * 8 + 2 * t + e", key = "key + g", column = "m * 16 + h * 8", lse = "pairs[n].lse[e]",
    along = { row = "row + 2 * t", column = "m * 16 + h * 8 - n * 8 - e" },
    at = "[m][n][2 * h + e]",
  },
}

-- wgmma, x[NS]: elements 2 h and 2 h + 1 of each four are of row g + 8 h. So has a row two bits for each four.
layouts.wgmma = {
  told = "bits",
  outer = { "int h = 0; h < 2; h++" },
  words = { "int word = 0; word < (NS + 63) / 64; word++" },
  inner = { "int bit = 0; bit < 32; bit++" },
  pair = "i = 2 * (32 * word + bit - bit % 2) + 2 * h + bit % 2",
  query = "query_of(p, row + 8 * h)",
  at = "[i]",
  octet = {
    loops = { "int n = 0; n < NS / 4; n += 2" },
    number = "number", query = "row", key = "block * BC + n * 8 + 2 * t",
    words = { "x", "z", "y", "w" },
    at = { "[2 * n]", "[2 * n + 1]", "[2 * n + 2]", "[2 * n + 3]" },
  },
  score = {
    loops = { "int n = 0; n < NS / 4; n++", "int e = 0; e < 2; e++", "int h = 0; h < 2; h++" },
    row = "row + 8 * h", key = "block * BC + 2 * t", column = "n * 8 + e", shift = "shift[h]",
    word = "[2 * n + h]", distance = "8 * n + e - 8 * h, t",
    at = "[4 * n + 2 * h + e]",
  },
}

-- wgmma transposed, in the kernel of dK and dV, x[NS].
layouts.wgmma_keys = {
  told = "queries",
  outer = { "int h = 0; h < 2; h++" },
  row = "j = warp_key + g + h * 8",
  inner = { "int i = 0; i < BR / 4; i++" },
  pair = "x = i / 2 * 4 + 2 * h + i % 2, query = i / 2 * 8 + i % 2",
  query = "query", key = "j",
  at = "[x]",
  octet = { calls = "4", number = "number", query = "i + word * 64 + n * 16 + odd", key = "j", odd = "lane / 4 % 2", mate = 4 },
  kept = {
    loops = { "int x = 0; x < NS; x++" },
    at = "[x]", bit = "kept.bits[x / 32] >> (x % 32 / 2 + x % 2 * 16)",
    operand = { "int x = 0; x < NS / 2; x++" }, two = "kept.bits[x / 16] << (15 - x % 16)",
  },
  score = {
    loops = { "int n = 0; n < BR / 8; n++", "int e = 0; e < 2; e++", "int h = 0; h < 2; h++" },
    row = "row + n * 8 + 2 * t + e", key = "key + warp_key + g", column = "h * 8", lse = "lse[2 * n + e]",
    along = { row = "row + 2 * t", column = "h * 8 - n * 8 - e" },
    at = "[4 * n + 2 * h + e]",
  },
}

-- Plain multiplications, x[RI][CJ]: a kernel walks over the rows itself.
layouts.ffma = {
  told = "keys",
  row = "query = query_of(p, where.row + row_at(i))",
  inner = { "int j = 0; j < CJ; j++" },
  query = "query", key = "x + 16 * j",
  at = "[i][j]",
  score = { loops = { "int j = 0; j < CJ; j++" }, row = "where.row + row_at(i)", key = "block * BC + x", column = "16 * j", at = "[i][j]" },
}

-- Dot products, x[BR][SCORES].
layouts.dots = {
  told = "keys",
  outer = { "int r = 0; r < BR; r++" },
  row = "query = query_of(p, tile.row + r)",
  inner = { "int i = 0; i < SCORES; i++" },
  query = "query", key = "key_of_score(i)",
  at = "[r][i]",
  score = {
    loops = { "int i = 0; i < SCORES; i++", "int r = 0; r < BR; r++" },
    row = "tile.row + r", key = "block * BC + key_of_score(0)", column = "i * (PASSES * ABREAST)",
    at = "[r][i]",
  },
}

return layouts
