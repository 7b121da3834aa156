//| -- deal: which numbers of tiles, or of parts of tiles, a thread block does. The ways:
//| --
//| --   one     the number of the block itself
//| --   rounds  blocks stay, and go back and forth over the numbers: one with a long tile gets a short one next
//| --   drawn   blocks stay: first the number of the block itself, and each next one from a counter in global memory
//| --   steps   blocks stay, and go on by as many as all of them do: of work that costs the same everywhere
//| --   share   the key blocks of all tiles are counted by one work index, as in stream-K, and each block has an equal share, whatever it
//| --           cuts: work/decode_split.cu
//| --
//| -- Tiles that threads of different warps do together are published to them by a queue, work/queue.cu.
//|
//| return function(wk)
//|   -- The number of a round. block: a number of `blocks`. cast: what makes a number signed.
//|   local function of_round(o)
//|     local block, blocks, cast = o.block or wk.block, o.blocks or wk.blocks, o.cast
//|     local all = cast and cast .. blocks or "(" .. blocks .. ")"
//|     return ("round * %s + %s(round %% 2 == 0 ? %s : %s - 1 - %s)"):format(all, cast or "", block, blocks, block)
//|   end
//|   -- The next of all, counted after the first that each block has by its own number. With one draw for each tile the last of all puts
//|   -- the counter back to 0 for the next launch.
//|   local function drawn(total) return ("atomicInc(p.counter, (u32)%s - 1)"):format(total) end
//|
//|   local ways = {}
//|   -- body(number): what is done of a number, which ends the loop itself where no `total` is known before.
//|   function ways.rounds(o, body)
  for (int round = 0;; round++) {
//|     if o.total then
    const int $(o.number) = $(of_round(o));
    if ($(o.number) >= $(o.total)) break;
//|     end
//|     body(of_round(o))
  }
//|   end
//|   -- A warp draws; wait: what its lanes have to wait for before the first draw, if anything. cluster: the first block of a
//|   -- cluster draws for all of them (work/cluster_draw.cu).
//|   function ways.drawn(o, body)
//|     if o.thread then
  for (int $(o.number) = $(wk.block); $(o.number) < $(o.total); $(o.number) = $(wk.blocks) + $(drawn(o.total))$(o.step or "")) {
//|       body()
  }
//|     else
//|       local block, blocks = o.block or wk.block, o.blocks or wk.blocks
//|       if o.cluster then
  Ring<1> turn;
//|       end
  for (int $(o.number) = $(block); $(o.number) < $(o.total);) {
//|       body()
    u32 drawn = 0;
//|       if o.wait then
    $(o.wait);
//|       end
//|       if o.cluster then
    if (lane == 0 && cluster_rank() == 0) drawn = $(drawn(o.total));
    $(o.number) = $(blocks) + cluster_draw(smem, turn, drawn, lane);
//|       else
    if (lane == 0) drawn = $(drawn(o.total));
    $(o.number) = $(blocks) + __shfl_sync(~0u, drawn, 0);
//|       end
  }
//|     end
//|   end
//|   -- The loop of a way around what body() prints, which stands in a function's first column.
//|   function wk.each(way, o, body) return ways[way](o, body) end
//|   -- By the numbers of the tunable `grid`.
//|   wk.ways = { [0] = "one", "rounds", "drawn" }
//|
//|   -- The head of a loop in steps, of `size` numbers for a block; `on`: a thread's among them.
//|   function wk.steps(type, number, total, size, on)
//|     local times, cast = size and " * " .. size or "", size and ("(%s)"):format(type) or ""
//|     local first, next = cast .. wk.block .. times .. (on and " + " .. on or ""), cast .. wk.blocks .. times
//|     return ("%s %s = %s; %s < %s; %s += %s"):format(type, number, first, number, total, number, next)
//|   end
//|   -- The head of a loop over a block's share, tile after tile. next: the function that goes on to one.
//|   function wk.of_share(walk, next) return ("%s walk = split.walk; walk.left > 0; walk.%s(p)"):format(walk, next) end
//|   -- The first of a block's share of `n` items, where all blocks have equal shares.
//|   function wk.share(n) return ("divide((long long)%s * %s, %s)"):format(wk.block, n, wk.blocks) end
//| end
