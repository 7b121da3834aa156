//| needs "l.besides? l.grouped? l.joins? l.pingpong_products l.q_lent l.tanh_by_fma?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local leaves = l.grouped and "block, keys.loaded_lo" or ""
      // A block that is cut, the first of a tile, and one whose rows may move has one text, and others are a loop of their own in it: what
      // they share is compiled once. S of the next block and P V of this one are issued side by side.
//| local next = l.joins and "from = join(block);" or l.besides and "far = far_of_next();"
//| local brings = l.joins and ", from" or l.besides and ", far" or ""
//| if next then
      $(l.joins and "u32" or "float2") $(next)
//| end
      for (bool more = true; more;) {
//| local unit = (l.joins or l.besides or l.tanh_by_fma) and "1.f" or pr.unit_log2
        float shift[2];
        cut_scores(block$(brings));
        cut_maxima(s, state, keep, shift, $(l.tanh_by_fma and pr.unit_log2 or unit));
        exponentials<false, true>(s, a, o, state, keep, shift, $(unit));
//| if l.joins then
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
          wgmma_fence(o, a);
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
//| if next then
          $(next)
//| end
          wgmma_wait<1>(s);
          release_k();
          more = !(is_whole(block) && all_stay(state$(l.tanh_by_fma and ", p" or l.besides and brings or ""))$(l.tanh_by_fma and " && all_small(s, by_fma)" or ""));
          if (more) {
            wgmma_wait<0>(o);
            release_v();
            break;
          }
//| local by = l.joins and "p.scale_log2, from" or l.besides and "p.scale_log2, far.y * 1.44269504088896341f" or l.tanh_by_fma and "by_fma" or pr.unit_log2
//| if l.besides then
          release_stage();
//| end
          early_exponentials(s, state, $(by));
          wgmma_wait<0>(o);
          release_v();
          other_exponentials(s, a, state, $(by));
//| if l.joins then
          release_stage($(leaves));
//| end
//| indented(10, pr.dropping, "drop_block(block);")
        }
      }
