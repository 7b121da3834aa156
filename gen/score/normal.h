/* normal: a score as factor * core + offset, where neither factor nor offset depends on s, and the factor on no key: so the exponent of P
 * is one fused multiply-add of the core, and what is the same for a row is computed once. Softcap: cap * tanh(s / cap) + 0. */
#ifndef FA_GEN_SCORE_NORMAL_H
#define FA_GEN_SCORE_NORMAL_H
#include "ir.h"

typedef struct fa_score_normal {
    int factor, core, offset;
} fa_score_normal;

/* Of a node that is a number with a fraction. Where it does not depend on s, all of it is offset, and the core 0. False: there is no more
 * room. The product may round otherwise than the node did: a factor that came last is applied first. */
bool fa_score_normal_of(fa_score_ir *ir, int node, fa_score_normal *out);

/* Whether the factor is above 0 whatever the launch, so that the row's largest score is that of its largest core where offset is the same
 * for all keys. */
bool fa_score_normal_rises(const fa_score_ir *ir, const fa_score_normal *n);
#endif
