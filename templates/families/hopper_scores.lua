-- How flash_fwd_wgmma computes the scores of a program: l.joins, l.besides, l.begins, l.held and their like, of which the texts of
-- templates/wgmma are made.

local edges = include "pairs/edges.lua"

return function(p, c, l)
  -- What a score program adds to all scores, one number of key - query. The product of a later block is added to it, where it takes the
  -- place of each exponential that is done; but where many blocks have one number for all, it goes into the exponents' shift.
  local adds = l.relative and l.staged and not edges.scans(p) and #l.staged.tiles == 0 and #l.staged.lines == 1
    and p.score.adds == l.staged.lines[1].node
  l.besides = adds and l.staged.far
  -- Where rows keep their maximum it is 0, and the number takes the place of the exponents' shift.
  l.joins = adds and not l.staged.far and c.rescale > 3 and c.schedule ~= c.named.schedule.pingpong_exp
  l.begins = adds and not l.staged.far and l.interleaved and not l.joins
  -- Their numbers are read twice where shared memory has the time: at d = 128 products leave it none.
  l.reads_twice = l.begins and p.d + p.dv < 256
  -- Of scores that fall with the distance, blocks whose probabilities are all 0 are found by their largest product.
  l.fades = l.relative and l.interleaved and p.score.fades
  -- At d = 64 products are too short to ask beside them.
  l.fades_soon = l.fades and p.d + p.dv >= 256
  -- Elements of 16 bits for each pair, of the program's only array, are read while products are on their way.
  local tile = l.staged and #l.staged.lines == 0 and #l.staged.tiles == 1 and l.staged.tiles[1]
  -- Scores are at most so many units: a row whose m is not far below keeps it. P in fp16 could not follow, nor can parts.
  local plain = p.dtype == "bf16" and not p.has_lengths and not c.parts and not p.score.has_sink
  l.most = l.relative and p.dtype == "bf16" and not p.has_lengths and not c.parts and p.score.most
  -- The tanh that scores are is a polynomial where all products of a warp's block are small, and half of its exponentials are early. Beside
  -- scores of a tile that is begun under the end of another, products would be waited for one by one. Above d = 128 it loses.
  l.tanh_by_fma = l.relative and p.score.tanh_of and not p.score.has_mask and not p.has_lengths and not c.parts and l.interleaved
    and not l.pingpong_softmax and not l.ahead and c.exp == 0 and p.d + p.dv <= 256
  -- Or it keeps it until its sum is large, which the polynomial of exp could not follow. Where it was raced it gained by lines alone, and
  -- not where these are read once (docs/experiments.md).
  l.sums = plain and l.interleaved and c.exp == 0 and (l.reads_twice or l.besides and p.d + p.dv <= 256)
  -- Of 16 configs compiled none spilled in its loop that leaves 16 registers for all else. At d = 64 products are too short: the copies
  -- of a stage would have to be there sooner.
  l.held = tile and p.d + p.dv >= 256 and tile.of.by_row and not tile.of.wide and not edges.left(p) and l.consumer - c.bc - l.o_regs >= 16
end
