/* What came before has no say in the bits: a launch under FA_BATCH_INVARIANT gives those of its own shape's kernel, whatever of its class
 * was prepared before it. On the simulator, with the kernels that ship. */
#include "fagen.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { QUERIES = 60, KEYS = 512, DIM = 128, NOTHING = 0 };

static uint16_t bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static fa_problem problem(int32_t sq)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = FA_BF16, p.d = DIM, p.mask = FA_MASK_CAUSAL, p.features = FA_FEATURE_BATCH_INVARIANT;
    p.b = p.hq = p.hkv = 1, p.sq = sq, p.sk = KEYS;
    return p;
}

/* The first candidate of another family than that of the one that runs. */
static int take_other(void *to, const fa_candidate_info *c)
{
    static size_t family;
    if (c->runs)
        family = strcspn(c->config, ":") + 1;
    else if (c->price <= 0 || !strncmp(c->config, to, family))
        return 0;
    snprintf(to, 512, "%s", c->config);
    return !c->runs;
}

/* O of the launch in a context where `before` queries were prepared first, or where `pinned` runs. */
static void launch(int32_t before, const char *pinned, uint16_t o[QUERIES * DIM])
{
    static uint16_t host[3][KEYS * DIM];
    const size_t bytes[] = { QUERIES * DIM * 2, sizeof host[1], sizeof host[2], QUERIES * DIM * 2 };
    fa_context *ctx;
    fa_options opt = FA_OPTIONS_INIT;
    fa_args a = FA_ARGS_INIT;
    fa_tensor *t[] = { &a.q, &a.k, &a.v, &a.o };
    uint32_t s = 1;
    opt.device = "sim:sm_90a";
    OK(fa_create(&ctx, &opt));
    fa_problem own = problem(QUERIES), other = problem(before);
    if (pinned)
        OK(fa_pin(ctx, &own, pinned));
    if (before)
        OK(fa_prepare(ctx, &other));
    a.dtype = FA_BF16, a.d = DIM, a.mask = FA_MASK_CAUSAL, a.flags = FA_BATCH_INVARIANT;
    a.b = a.hq = a.hkv = 1, a.sq = QUERIES, a.sk = KEYS;
    for (int i = 0; i < 4; i++) {
        OK(fa_alloc(ctx, &t[i]->ptr, bytes[i]));
        for (size_t e = 0; i < 3 && e < bytes[i] / 2; e++) {
            s = s * 1664525u + 1013904223u;
            host[i][e] = bf16(((float)(s >> 8) / (1 << 24) - 0.5f) * 3);
        }
        if (i < 3)
            OK(fa_copy(ctx, t[i]->ptr, host[i], bytes[i], FA_TO_DEVICE));
    }
    OK(fa_launch(ctx, &a, NULL));
    OK(fa_copy(ctx, o, a.o.ptr, bytes[3], FA_FROM_DEVICE));
    for (int i = 0; i < 4; i++)
        OK(fa_free(ctx, t[i]->ptr));
    fa_destroy(ctx);
}

static int differ(const uint16_t *x, const uint16_t *y)
{
    int n = 0;
    for (int i = 0; i < QUERIES * DIM; i++)
        n += x[i] != y[i];
    return n;
}

/* 60 and 80 queries have kernels of their own: 80 prepared first once gave 3,737 of 7,680 elements other bits. */
Test(order_bits, what_was_prepared_before_has_no_say, .timeout = 300)
{
    static uint16_t first[QUERIES * DIM], then[QUERIES * DIM];
    char config[512] = "";
    fa_context *ctx;
    fa_options opt = FA_OPTIONS_INIT;
    launch(NOTHING, NULL, first);
    for (int32_t before = QUERIES; before <= 2048; before = before == QUERIES ? 80 : before == 80 ? 2048 : 4096) {
        launch(before, NULL, then);
        cr_expect_eq(differ(first, then), 0, "%d elements differ after %d queries were prepared", differ(first, then), before);
    }
    opt.device = "sim:sm_90a";
    OK(fa_create(&ctx, &opt));
    fa_problem own = problem(QUERIES);
    OK(fa_candidates(ctx, &own, take_other, config));
    fa_destroy(ctx);
    launch(NOTHING, config, then);
    cr_expect_gt(differ(first, then), 0, "another family's kernel has the same bits, so that nothing above could fail: %s", config);
}
