/* shapes: head_dims in multiples of 8, heads, batches and lengths as they come. */
#include "bench/dev/shapes.h"
#include "gen/problem.h"
#include <math.h>
#include <string.h>

#define WORK_MOST 4e12                         /* FLOP of a launch: some milliseconds */
#define BYTES_MOST (56.0 * 1024 * 1024 * 1024) /* of Q, K, V and O: what peers make beside them finds room, too */

/* As many short ones as long ones. */
static int32_t length(fa_random *r, double least, double most)
{
    return (int32_t)(least * pow(most / least, fa_random_unit(r)));
}

static fa_problem base(fa_random *r)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = FA_BF16;
    p.d = 8 * fa_random_within(r, 4, 32);
    p.mask = fa_random_below(r, 2) ? FA_MASK_CAUSAL : FA_MASK_NONE;
    p.b = fa_random_within(r, 1, 4);
    p.hq = p.hkv = fa_random_within(r, 1, 32);
    p.sq = p.sk = length(r, 200, 16384);
    return p;
}

static fa_problem gqa(fa_random *r)
{
    fa_problem p = base(r);
    p.d = 64 * fa_random_within(r, 1, 3);
    p.hkv = fa_random_within(r, 1, 8);
    p.hq = p.hkv * fa_random_within(r, 2, 8);
    return p;
}

static fa_problem few(fa_random *r)
{
    fa_problem p = gqa(r);
    p.d = 16 * fa_random_within(r, 4, 16);
    p.b = length(r, 1, 64);
    p.sq = fa_random_within(r, 1, 64);
    p.sk = length(r, 500, 65536);
    return p;
}

static fa_problem unequal(fa_random *r)
{
    fa_problem p = gqa(r);
    p.sq = length(r, 64, 4096);
    p.sk = length(r, 64, 65536);
    if (p.mask == FA_MASK_CAUSAL && p.sk < p.sq)
        p.mask = FA_MASK_NONE;
    return p;
}

/* What the choice of few queries is held to: any group, a token or 64. */
static fa_problem few_queries(fa_random *r)
{
    fa_problem p = few(r);
    p.hkv = fa_random_within(r, 1, 8);
    p.hq = p.hkv * fa_random_within(r, 1, 16);
    p.sk = length(r, 500, 60000);
    return p;
}

/* And that of unequal lengths: chunks of prompts behind what was before. */
static fa_problem unequal_lengths(fa_random *r)
{
    fa_problem p = gqa(r);
    p.hkv = fa_random_within(r, 1, 16);
    p.hq = p.hkv * fa_random_within(r, 1, 4);
    p.sk = length(r, 1000, 30000);
    p.sq = length(r, 100, p.sk < 4000 ? p.sk : 4000);
    return p;
}

/* Gradients of batches, half of them with heads that share keys. */
static fa_problem gradients(fa_random *r)
{
    static const int32_t wide[] = { 64, 96, 128 };
    fa_problem p = fa_random_below(r, 2) ? gqa(r) : base(r);
    p.op = FA_BACKWARD;
    p.d = wide[fa_random_below(r, 3)];
    return p;
}

/* Of these without a mask and without groups those of few tiles: some two rounds of tiles of 64 keys over 132 SMs at most. */
static fa_problem gradients_few(fa_random *r)
{
    fa_problem p;
    int64_t tiles;
    do {
        p = gradients(r);
        p.mask = FA_MASK_NONE;
        p.hkv = p.hq = fa_random_within(r, 1, 32);
        p.sq = p.sk = length(r, 200, 8192);
        tiles = (int64_t)p.b * p.hq * ((p.sk + 63) / 64);
    } while (tiles < 20 || tiles > 330);
    return p;
}

static double bytes_of(const fa_problem *p)
{
    return 2.0 * p->b * 2 * p->d * ((double)p->hq * p->sq + (double)p->hkv * p->sk);
}

static const struct kind {
    const char *name;
    fa_problem (*draw)(fa_random *);
} kinds[] = { { "forward", base },
              { "gqa", gqa },
              { "few", few },
              { "unequal", unequal },
              { "few-queries", few_queries },
              { "unequal-lengths", unequal_lengths },
              { "gradients", gradients },
              { "gradients-few", gradients_few } };

const char *fa_shapes_kinds(void)
{
    return "forward, gqa, few, unequal, few-queries, unequal-lengths, gradients, gradients-few";
}

bool fa_shapes_draw(fa_problem *out, const char *kind, fa_random *r)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, kind))
            continue;
        do
            *out = kinds[i].draw(r);
        while (4.0 * out->b * out->hq * out->sq * out->sk * out->d > WORK_MOST || bytes_of(out) > BYTES_MOST);
        fa_problem given = *out;
        return fa_problem_normalize(out, &given) == FA_OK;
    }
    return false;
}
