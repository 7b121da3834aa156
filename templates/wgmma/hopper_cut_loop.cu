//| needs "l.cuts l.fades? l.fades_soon? l.fences_bare? l.grouped? l.pingpong_products l.q_lent l.q_soon? l.waits_bare?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local leaves = l.grouped and "block, keys.loaded_lo" or ""
//| -- What a block's scores need is there while its products are on their way: how it is declared, brought and given on.
//| local ways = {
//|   joins = { "u32 from = join(block);", "from = join(block);", ", from" },
//|   besides = { "float2 far = far_of_next();", "far = far_of_next();", ", far" },
//|   held = { "u32 held[NS / 2];\n      hold_next(held);", "hold_next(held);", ", held" },
//| }
//| local way = ways[l.cuts] or {}
//| local brings = way[3] or ""
//| -- What exponents are multiplied by, of scores as cut_scores() leaves them, and of what the inner loop has.
//| local unit = (l.cuts == "scores" or l.cuts == "held" or l.cuts == "plain") and pr.unit_log2 or "1.f"
//| local by = ({ joins = "p.scale_log2, from", besides = "p.scale_log2, far.y * 1.44269504088896341f", tanh = "by_fma" })[l.cuts] or unit
      // A block that is cut, the first of a tile, and one whose rows may move has one text, and others are a loop of their own in it: what
      // they share is compiled once. S of the next block and P V of this one are issued side by side.
//| if way[1] then
      $(way[1])
//| end
      for (bool more = true; more;) {
        float shift[2]$(l.cuts == "tanh" and ", tops[2] = {-infinity(), -infinity()}" or "");
        cut_scores(block$(l.cuts == "tanh" and ", tops" or brings));
        cut_maxima($(l.cuts == "tanh" and "tops" or "s"), state, keep, shift, $(l.cuts == "tanh" and pr.unit_log2 or unit));
        exponentials<false, true>(s, a, o, state, keep, shift, $(unit));
//| if l.cuts == "joins" then
        release_stage($(leaves));
//| end
//| indented(8, pr.dropping, "drop_block(block);")
//| if l.q_lent then
        if (owed) return_q(), owed = false;
//| end
        for (more = false; block > keys.last;) {
          mbarrier_wait(k_full(smem, k.at), k.parity);
//| if l.pingpong_products then
          pingpong_wait(wg);
//| end
          wgmma_fence($(l.fences_bare and "" or "o, a"));
          issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
          wgmma_commit();
          mbarrier_wait(v_full(smem, v.at), v.parity);
          wgmma_fence();
          issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
          wgmma_commit();
//| if l.pingpong_products then
          pingpong_pass(wg);
//| end
          block--;
//| if pr.owns_rows then
          copy_next();
//| end
//| indented(10, pr.reading, "read(block);")
//| if way[2] then
          $(way[2])
//| end
//| if l.fades_soon then
          float most;
          const bool may = may_be_none(block, most);  // while the products are on their way
//| end
          wgmma_wait<1>(s);
          release_k();
//| if l.q_soon then
          if (lane == 0 && block == keys.last) mbarrier_arrive(q_empty(smem, q.at, wg));
//| end
//| if l.fades then
//|   if not l.fades_soon then
          float most;
          const bool may = may_be_none(block, most);
//|   end
          if (may && all_fade(s, p, most)) {
            wgmma_wait<0>();
            release_v();
            clear_operand(a);
            continue;
          }
//| end
//| local asks = l.cuts == "tanh" and "all_stay(state, p) && all_small(s, by_fma)"
//|   or ("all_stay(state%s)"):format(l.cuts == "besides" and brings or "")
          more = !(is_whole(block) && $(asks));
          if (more) {
            wgmma_wait<0>($(l.waits_bare and "" or "o"));
            release_v();
            break;
          }
//| if l.cuts == "besides" then
          release_stage();
//| elseif l.cuts == "scores" or l.cuts == "held" or l.cuts == "slopes" then
          make_scores(block, true$(brings));
//| end
          early_exponentials(s, state, $(by));
          wgmma_wait<0>();
          release_v();
          other_exponentials(s, a, state, $(by));
//| if l.cuts == "joins" then
          release_stage($(leaves));
//| end
//| indented(10, pr.dropping, "drop_block(block);")
        }
      }
