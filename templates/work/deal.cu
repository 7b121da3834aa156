//| -- deal: the numbers of the tiles that a thread block does, where it stays for more than one.
//|
//| return function(wk)
//|   -- In rounds, back and forth over the blocks: one with a long tile gets a short one next. block: its number of `blocks`. cast: what
//|   -- makes a number signed.
//|   function wk.of_round(block, blocks, cast)
//|     local all = cast and cast .. blocks or "(" .. blocks .. ")"
//|     return ("round * %s + %s(round %% 2 == 0 ? %s : %s - 1 - %s)"):format(all, cast or "", block, blocks, block)
//|   end
//|
//|   -- The next of all, counted in global memory behind the first that each block has by its own number. With one draw for each tile the
//|   -- last of all puts the counter back to 0 for the next launch.
//|   function wk.drawn(total) return ("atomicInc(p.counter, (u32)%s - 1)"):format(total) end
//| end
