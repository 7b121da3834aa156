/* score_world: operands of a score program whose elements are a function of their indices, of lengths that a seed draws. */
#ifndef FA_TESTS_SCORE_WORLD_H
#define FA_TESTS_SCORE_WORLD_H
#include "gen/score/eval.h"
#include "gen/score/program.h"
#include "gen/score/range.h"
#include "gen/score/shape.h"

typedef struct score_world {
    const fa_score_ir *ir;
    fa_score_data data;
    int64_t b, hq, hkv;
    uint64_t salt;
    int bumped; /* operand of which one element has `bump` added; -1: none */
    int64_t at[FA_SCORE_RANK_MAX];
    double bump;
    double spread;                        /* of numbers with fractions: -2 to 2, times it; 0: 1 */
    uint32_t same[FA_SCORE_OPERANDS_MAX]; /* bits of indices that make no difference */
} score_world;

static inline uint64_t score_mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static inline uint64_t score_next(uint64_t *state)
{
    return score_mix(*state += 0x9e3779b97f4a7c15u);
}

static inline int64_t score_below(uint64_t *state, int64_t n)
{
    return (int64_t)(score_next(state) % (uint64_t)n);
}

/* About N(0, 1). */
static inline double score_normal(uint64_t *state)
{
    double sum = 0;
    for (int k = 0; k < 4; k++)
        sum += (double)(score_next(state) >> 11) * 0x1p-53 - 0.5;
    return sum * 1.7320508;
}

static inline double score_element(void *user, int operand, const int64_t *index)
{
    const score_world *w = user;
    const fa_score_operand *o = &w->ir->operand[operand];
    uint64_t h = score_mix(w->salt + (uint64_t)operand);
    bool here = operand == w->bumped;
    for (int k = 0; k < o->rank; k++) {
        h = score_mix(h ^ (uint64_t)(w->same[operand] >> k & 1 ? 0 : index[k]) * 0x100000001b3u);
        here = here && index[k] == w->at[k];
    }
    switch (o->element) {
    case FA_SCORE_ELEMENT_I32:
        return (double)(h % 24) - 2;
    case FA_SCORE_ELEMENT_I64:
        return h % 64 == 0 ? 3e10 : (double)(h % 24); /* what kernels clamp */
    case FA_SCORE_ELEMENT_U8:
        return (double)(h % 5);
    case FA_SCORE_ELEMENT_BITS:
        return (double)(h & 1);
    default:
        return ((double)(h % 4097) / 1024 - 2) * (w->spread ? w->spread : 1) + (here ? w->bump : 0);
    }
}

/* Small lengths, and what scalars may be. */
static inline void score_world_draw(score_world *w, const fa_score_ir *ir, uint64_t *state)
{
    *w = (score_world){ .ir = ir, .b = 3, .hq = 4, .hkv = 2, .salt = score_next(state), .bumped = -1 };
    fa_score_data *d = &w->data;
    d->sq = 1 + score_below(state, 300);
    d->sk = 1 + score_below(state, 300);
    d->off = score_below(state, 2) ? d->sk - d->sq : score_below(state, 2) ? 0 : score_below(state, 40) - 20;
    d->group = 2;
    d->read = score_element;
    d->user = w;
    const int64_t lengths[FA_SCORE_LENGTHS] = { w->b, w->hq, w->hkv, d->sq, d->sk, w->b * d->sq, w->b * d->sk };
    for (int k = 0; k < ir->operands; k++) {
        const fa_score_operand *o = &ir->operand[k];
        double lo = o->least > -60 ? o->least : -60, hi = o->most < 60 ? o->most : 60;
        if (o->scalar && o->type == FA_SCORE_I32)
            d->scalar[k] = lo + (double)score_below(state, (int64_t)(hi - lo) + 1);
        else if (o->scalar)
            d->scalar[k] = lo + (hi - lo) * (double)(1 + score_below(state, 998)) / 1000;
        for (int r = 0; r < o->rank; r++) {
            int64_t n = fa_score_shape_extent(&o->extent[r], lengths);
            d->extent[k][r] = n < 0 ? 17 : n > 0 ? n : 1;
        }
    }
}

static inline fa_score_pair score_pair_draw(const score_world *w, uint64_t *state)
{
    return (fa_score_pair){ score_below(state, w->b), score_below(state, w->hq), score_below(state, w->data.sq),
                            score_below(state, w->data.sk), score_normal(state) * 8 };
}
#endif
