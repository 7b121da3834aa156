        // P V is over before S, which takes P's registers: two thread blocks of an SM cover for each other.
        mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence(o, a);
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
        wgmma_wait<0>(o);
        release_v();
        wgmma_fence();
        issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
