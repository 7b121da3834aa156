/* compile_pool: threads that render and compile candidates, in order, while the caller uses those that are done. */
#ifndef FA_AUTOTUNE_SEARCH_COMPILE_POOL_H
#define FA_AUTOTUNE_SEARCH_COMPILE_POOL_H
#include "journal.h"

/* Bytes of spills, stores or loads whichever are more, that a candidate may have. A few cold values in local memory cost less than
 * the smaller tile that avoids them: 128 x 64 at d = 128 with 92 bytes beat the best tile without by 7 % on an H200. None where a kernel
 * takes tensor maps: there every config with local memory lost, 192 x 144 at d = 64 fell to 361 TFLOP/s. */
#define FA_SPILLS_ACCEPTED 128
/* With maps, where spills lie outside the inner loop. Lengths: the warp that searches tiles has the registers of a producer, and spills
 * a few once for each tile; no other warp waits for it. Gradients: what is kept around the loop over queries, whose products take all
 * registers. */
#define FA_SPILLS_OUTSIDE_LOOP 64

typedef struct fa_compile_pool fa_compile_pool;

/* threads 0 = one per core, at most 16. The candidates and the journal stay where they are until fa_compile_pool_stop(). */
fa_status fa_compile_pool_start(fa_compile_pool **out, const fa_site *site, const fa_journal *j, fa_candidate *candidates, size_t n,
                                int threads, bool again);

/* Waits for candidate i, at most until `seconds` from now (< 0: for ever). Then either it is decided (recalled, or it failed: the
 * caller notes it) or its regs, spills, source and, on a device, plan are set. False when the time is up. A failure that is no
 * candidate's fault (no compiler, no memory, interrupted) is in *fatal, with its message. */
bool fa_compile_pool_wait(fa_compile_pool *w, size_t i, double seconds, fa_status *fatal);

/* What became of a candidate, and why. */
void fa_candidate_decide(fa_candidate *c, fa_outcome o, const char *why);

/* Gives up the compilations under way, waits until they end, and frees. NULL is fine. NVRTC may take a second or two to end one, on a busy
 * machine more: where patience is above 0, seconds, those that last longer are left behind. Their threads touch neither candidates nor
 * journal any more, but the site's context, store and compiler, which must then stay until _exit(). */
void fa_compile_pool_stop(fa_compile_pool *w, double patience);
int fa_compile_pool_left(void); /* how many threads of this process were left behind so */
#endif
