/* sandbox_score: a problem's score program as scripts have it. */
#ifndef FA_GEN_SANDBOX_SCORE_H
#define FA_GEN_SANDBOX_SCORE_H
#include <fagen.h>
#include <lua.h>

/* Inside a run. Pushes false where the problem has no program, else a table:
 *
 *   has_score, has_mask, has_sink   which functions the program has
 *   off                   whether it reads the diagonal's offset
 *   exact                 of a mask: whether what a row sees are the keys between two ends
 *   tables                of a mask: the workspace's buffers with tables of its operands; absent: it needs none
 *   cuts                  whether the function of a pair must know that a key may be past the last
 *   cuts_beside           the same where those of `arrays` were read before
 *   arrays                { { node =, operand =, rank =, bf16 =, wide =, diagonal =, by_row =, row_index = } } of lookups that may be
 *                         read before the product is there
 *   of_distance           the node of a number of key - query alone that is dear to compute; absent: there is none
 *   has_far_below, has_far_above   whether it is one number from some distance on, on either side; absent without of_distance
 *   most                  the largest that a printed score may be, where it has bounds and a unit; else absent
 *   adds                  the node of that or of one of `arrays`, where the score is the scaled product and this number; else absent
 *   slopes                whether exponent() spares an instruction
 *   fades                 whether it is the product's and a multiple of the key
 *   unit                  what kernels multiply a printed score by, as CUDA; absent: nothing
 *   issue, exps           of a pair: instructions beside those of a scaled product, of these on the special-function unit, about
 *   issue_ahead           the same of kernels that read `arrays` before, and compute of_distance once for each distance
 *   issue_staged, exps_staged   of kernels that have those in shared memory, but for reading them there
 *   regs                  registers of a thread, about
 *   regs_ahead, regs_staged   the same of kernels that read ahead, or from shared memory
 *   helpers()             lines of CUDA: the functions that the others call, once in a kernel's text
 *   members(packed), fill(packed), pair(packed), pair_ahead(packed), ahead_row(packed, n), ahead_at(packed, n), distance(), far_below(),
 * far_above(), exponent(packed), sink()   lines, as gen/score/lines.h has them; far_below and far_above where there are such mask(packed),
 * mask_members(packed), mask_fill(packed)   the same as gen/score/mask.h has them mask_helpers(), mask_bounds(), mask_class(),
 * mask_fill_tables(), mask_ends()   the same as gen/score/print_tiles.h has them; ends of an exact mask alone */
void fa_sandbox_score_push(lua_State *L, const fa_problem *p);
#endif
