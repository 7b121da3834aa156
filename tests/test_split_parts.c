/* Few tiles over many keys, which are cut into parts, of dense batches and of sequences with lengths of their own: each row of a table is
 * one compiled kernel, and many shapes run on it. Both timings of asynchronous copies and all schedules of warps give the same bits, and
 * so does a sequence beside NaN in all others. By default one row of five runs, of both families by turns: compiling costs more than
 * running. */
#include "forward.h"
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/cases/view.h"
#include "verify/operands/random.h"
#include <criterion/parameterized.h>

#define SMS 7                    /* of the simulated H200: tiles are cut into up to 14 parts, or a block takes several */
#define CASES (full() ? 28 : 16) /* of a row */
#define SMALL_FROM 3             /* by default those from here on are small, and run once: 200 problems in a few seconds */
#define SIX_EVERY 7              /* of the cases before all six combinations are run and compared */
#define ALONE_PAIRS 40000        /* scores of a case at most whose sequences are run beside NaN in the others, which are computed exactly */
#define ROWS_MOST 300            /* query rows of a group of heads */
#define KEYS_MOST 700

#define SECOND ",parts=3,combine=1"
#define LAST ",parts=4,combine=0"
#define COST ",parts=0,combine=1"
#define ROUNDS ",parts=1,combine=1"
#define REST ",parts=6,combine=1" /* last_round */
#define LAST_ROUND 6
#define MANY ",parts=16,combine=1"
#define WGMMA(br, bc, schedule, rest) \
    "split_wgmma:ctas=1,ahead=0,sections=1,cluster=1,o_path=0,br=" #br ",bc=" #bc ",schedule=" #schedule ",feeder=" rest
#define TWO "stages_k=2,stages_v=2,q_bufs=1"
#define LAZY ",rescale=3,exp=0,convert=1"
#define STEADY ",rescale=4,exp=0,convert=1" /* rows that keep their maximum */
#define MMA(br, bc, warps, rest) "split_mma:pack=1,br=" #br ",bc=" #bc ",warps=" #warps ",ctas=1," rest

static const struct row {
    const char *problem, *config;
} rows[] = {
    { "bf16,d=64", MMA(16, 16, 1, "stages_k=2,stages_v=2,order=2,q_regs=0,lag=8" SECOND) },
    { "bf16,d=64,mask=causal", WGMMA(64, 48, 0, "40,box=64,grid=1," TWO LAZY SECOND) },
    { "fp16,d=128,mask=causal", MMA(64, 32, 4, "stages_k=1,stages_v=1,order=0,q_regs=0,lag=8" LAST) },
    { "fp16,d=64,mask=window", WGMMA(128, 64, 1, "40,box=64,grid=2," TWO LAZY MANY) },
    { "bf16,d=80,mask=window", MMA(32, 32, 2, "stages_k=2,stages_v=1,order=1,q_regs=0,lag=0" SECOND) },
    { "bf16,d=128", WGMMA(128, 64, 1, "40,box=64,grid=1," TWO LAZY LAST) },
    { "tf32,d=40,mask=causal", MMA(32, 16, 2, "stages_k=2,stages_v=2,order=2,q_regs=1,lag=8" SECOND) },
    { "fp16,d=80,mask=causal", WGMMA(64, 48, 0, "40,box=16,grid=2,stages_k=3,stages_v=3,q_bufs=2" LAZY SECOND) },
    { "fp16,d=96,dv=64,mask=causal,o=fp32", MMA(64, 32, 4, "stages_k=2,stages_v=2,order=2,q_regs=0,lag=8" MANY) },
    { "bf16,d=96,mask=window", WGMMA(64, 64, 0, "40,box=32,grid=1," TWO ",rescale=2,exp=0,convert=1" LAST) },
    { "bf16,d=33,mask=window", MMA(16, 32, 1, "stages_k=1,stages_v=1,order=0,q_regs=0,lag=8" SECOND) },
    { "fp16,d=192,dv=128", WGMMA(128, 48, 1, "40,box=64,grid=1," TWO LAZY SECOND) },
    { "bf16,d=64,mask=window", MMA(128, 16, 4, "stages_k=2,stages_v=2,order=1,q_regs=1,lag=8" LAST) },
    { "bf16,d=256,mask=causal", WGMMA(64, 48, 0, "40,box=64,grid=1,stages_k=2,stages_v=2,q_bufs=1" LAZY SECOND) },
    { "fp16,d=128", MMA(16, 16, 1, "stages_k=2,stages_v=2,order=0,q_regs=1,lag=8" COST) },
    { "bf16,d=128,mask=causal,o=fp32", WGMMA(128, 64, 2, "40,box=64,grid=2,stages_k=3,stages_v=2,q_bufs=1" LAZY MANY) },
    { "tf32,d=64", MMA(64, 32, 4, "stages_k=1,stages_v=1,order=1,q_regs=0,lag=0" LAST) },
    { "fp16,d=64", WGMMA(192, 48, 1, "40,box=64,grid=1," TWO LAZY SECOND) },
    { "fp16,d=36,dv=20,mask=causal,align=4", MMA(32, 16, 1, "stages_k=2,stages_v=1,order=0,q_regs=0,lag=8" SECOND) },
    { "fp16,d=72,dv=40,mask=window", WGMMA(64, 48, 0, "40,box=32,grid=1," TWO ",rescale=0,exp=0,convert=0" SECOND) },
    { "bf16,d=256,mask=window", MMA(64, 16, 4, "stages_k=1,stages_v=1,order=0,q_regs=0,lag=8" MANY) },
    { "bf16,d=64", WGMMA(256, 48, 1, "40,box=64,grid=1," TWO LAZY SECOND) },
    { "bf16,d=72", MMA(32, 48, 2, "stages_k=2,stages_v=2,order=2,q_regs=0,lag=8" LAST) },
    { "bf16,d=64,mask=causal", WGMMA(64, 48, 0, "40,box=64,grid=2,stages_k=2,stages_v=2,q_bufs=2" LAZY LAST) },
    { "fp16,d=64,mask=window,o=fp32", MMA(64, 16, 2, "stages_k=1,stages_v=2,order=1,q_regs=0,lag=8" SECOND) },
    { "fp16,d=256", WGMMA(64, 64, 0, "40,box=64,grid=1," TWO LAZY LAST) },
    { "fp16,d=40,mask=causal", MMA(128, 32, 8, "stages_k=1,stages_v=1,order=0,q_regs=0,lag=8" SECOND) },
    { "bf16,d=128,mask=window", WGMMA(128, 48, 2, "40,box=64,grid=1," TWO ",rescale=2,exp=16,convert=1" MANY) },
    { "tf32,d=30,dv=50,mask=window,align=4", MMA(16, 16, 1, "stages_k=1,stages_v=1,order=0,q_regs=0,lag=8" SECOND) },
    { "fp16,d=64,mask=causal,o=fp32", WGMMA(128, 80, 1, "40,box=64,grid=1," TWO ",rescale=1,exp=0,convert=1" LAST) },
    { "bf16,d=192,mask=causal", MMA(32, 16, 2, "stages_k=2,stages_v=2,order=2,q_regs=0,lag=8" LAST) },
    { "bf16,d=40", WGMMA(128, 48, 0, "40,box=16,grid=2," TWO LAZY COST) },
    { "bf16,d=128,mask=causal", MMA(256, 16, 8, "stages_k=1,stages_v=1,order=0,q_regs=0,lag=8" SECOND) },
    { "fp16,d=128,dv=96,mask=causal", WGMMA(192, 48, 1, "40,box=64,grid=2," TWO LAZY SECOND) },
    { "fp16,d=64,mask=causal", MMA(16, 32, 1, "stages_k=2,stages_v=2,order=2,q_regs=0,lag=0" LAST) },
    { "bf16,d=112,mask=causal", WGMMA(64, 64, 0, "40,box=16,grid=1," TWO LAZY MANY) },
    { "fp16,d=128,mask=causal", WGMMA(64, 64, 0, "40,box=64,grid=1,stages_k=3,stages_v=3,q_bufs=1" LAZY COST) },
    { "bf16,d=64,mask=causal,features=lengths", WGMMA(64, 48, 0, "40,box=64,grid=2," TWO LAZY SECOND) },
    { "fp16,d=128,features=lengths+pages,page=16", WGMMA(128, 64, 1, "40,box=64,grid=1," TWO LAZY LAST) },
    { "bf16,d=96,mask=window,features=lengths", WGMMA(64, 48, 0, "40,box=32,grid=1," TWO LAZY MANY) },
    { "bf16,d=192,dv=128,mask=causal,features=lengths+pages,page=64", WGMMA(128, 48, 1, "40,box=64,grid=2," TWO LAZY SECOND) },
    { "fp16,d=64,mask=window,o=fp32,features=lengths+pages,page=16", WGMMA(192, 48, 1, "40,box=64,grid=1," TWO LAZY LAST) },
    { "bf16,d=256,mask=causal,features=lengths", WGMMA(64, 48, 0, "40,box=64,grid=1," TWO LAZY SECOND) },
    { "bf16,d=128,features=lengths", WGMMA(64, 64, 0, "40,box=64,grid=1,stages_k=3,stages_v=3,q_bufs=1" LAZY COST) },
    { "bf16,d=64,mask=causal,features=lse-strides", WGMMA(64, 48, 0, "40,box=64,grid=1," TWO LAZY SECOND) },
    { "fp16,d=64,mask=window,features=lse-strides", MMA(32, 16, 2, "stages_k=1,stages_v=1,order=0,q_regs=0,lag=8" LAST) },
    { "tf32,d=40,features=lse-strides", MMA(16, 16, 1, "stages_k=2,stages_v=2,order=2,q_regs=0,lag=8" SECOND) },
    { "fp16,d=80,features=lengths+pages+lse-strides,page=32",
      WGMMA(64, 48, 0, "40,box=16,grid=2,stages_k=2,stages_v=2,q_bufs=2" LAZY LAST) },
    { "bf16,d=64,mask=causal,features=batch-invariant", WGMMA(64, 48, 0, "40,box=64,grid=2," TWO LAZY SECOND) },
    { "fp16,d=80,mask=window,o=fp32,features=batch-invariant+lse-strides", WGMMA(128, 48, 1, "40,box=16,grid=2," TWO LAZY MANY) },
    { "fp16,d=128,mask=causal,features=lengths+batch-invariant", WGMMA(64, 64, 0, "40,box=64,grid=2," TWO LAZY MANY) },
    { "bf16,d=64,features=lengths+pages+batch-invariant,page=16", WGMMA(192, 48, 1, "40,box=64,grid=2," TWO LAZY SECOND) },
    { "fp16,d=128", MMA(16, 16, 1, "stages_k=2,stages_v=2,order=0,q_regs=1,lag=8" ROUNDS) },
    { "fp16,d=80,mask=window,o=fp32", WGMMA(64, 48, 0, "40,box=16,grid=2," TWO LAZY ",parts=1,combine=0") },
    { "bf16,d=64,mask=causal", WGMMA(128, 48, 1, "40,box=64,grid=1," TWO LAZY ROUNDS) },
    { "bf16,d=128", WGMMA(192, 48, 1, "40,box=64,grid=2," TWO LAZY ROUNDS) },
    { "bf16,d=64", WGMMA(64, 48, 0, "40,box=64,grid=1," TWO LAZY REST) },
    { "fp16,d=96,mask=window,o=fp32", WGMMA(128, 48, 1, "40,box=32,grid=2," TWO LAZY ",parts=6,combine=0") },
    { "fp16,d=128,mask=causal", WGMMA(64, 48, 0, "40,box=64,grid=2," TWO LAZY REST) },
    { "bf16,d=64,mask=causal", WGMMA(192, 48, 1, "40,box=64,grid=2," TWO STEADY ROUNDS) },
    { "bf16,d=64", WGMMA(64, 48, 0, "40,box=64,grid=1," TWO STEADY REST) },
    { "bf16,d=96,mask=window", WGMMA(128, 64, 1, "40,box=32,grid=2," TWO STEADY SECOND) },
};
#define ROWS (sizeof rows / sizeof *rows)

ParameterizedTestParameters(split_parts, cases)
{
    static int numbers[ROWS];
    size_t n = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (full() || i % 5 == 0)
            numbers[n++] = (int)i;
    return cr_make_param_array(int, numbers, n);
}

static int32_t one_of(fa_random *r, const int32_t *list, int32_t n)
{
    return list[fa_random_below(r, (uint32_t)n)];
}

/* Fewer queries than fill a tile, or more; keys that are no multiple of a block, as many as queries, or fewer; groups of any size. What
 * says by the cost how many parts there are has some where keys are many; even: and several tiles, whose rows are cut evenly. rest: more
 * tiles than SMs. small: one tile, over four or five times so many keys, which are as few as are cut, or 0. */
static fa_case make(const fa_problem *class, bool by_cost, bool even, bool rest, int32_t small, uint64_t seed)
{
    static const int32_t groups[] = { 1, 1, 2, 3, 4, 5, 7, 8, 12, 16 }, batches[] = { 1, 1, 1, 2, 3 };
    fa_case c;
    fa_random r = { fa_random_mix(seed ^ 0x706172) };
    fa_case_make_class(&c, class, FA_CASE_MANY, seed);
    int32_t group = one_of(&r, groups, sizeof groups / sizeof *groups);
    fa_problem *p = &c.problem;
    p->b = one_of(&r, batches, sizeof batches / sizeof *batches);
    p->hkv = fa_random_within(&r, 1, p->b > 1 ? 1 : 2);
    p->hq = p->hkv * group;
    p->sq = fa_random_within(&r, 1, fa_random_below(&r, 3) ? ROWS_MOST / 2 / group / p->b / p->hkv : ROWS_MOST / group);
    p->sq = p->sq ? p->sq : 1;
    p->sq = even ? ROWS_MOST / 2 / group + 1 : p->sq;
    p->sq = by_cost && !even && p->sq * group > 32 ? fa_random_within(&r, 1, 32 / group) : p->sq;
    if (rest) {
        p->b = fa_random_within(&r, SMS - 2, SMS + 3);
        p->hkv = 1;
        p->hq = group;
        p->sq = fa_random_within(&r, 1, (full() ? 100 : 60) / group + 1);
    }
    p->sk = rest && !full()          ? fa_random_within(&r, 2 * KEYS_MOST, 3 * KEYS_MOST)
            : by_cost                ? fa_random_within(&r, 2 * KEYS_MOST, 5 * KEYS_MOST)
            : fa_random_below(&r, 8) ? fa_random_within(&r, KEYS_MOST / 3, KEYS_MOST)
            : fa_random_below(&r, 2) ? p->sq
                                     : fa_random_within(&r, 1, p->sq);
    if (small) {
        p->b = p->hkv = 1;
        p->hq = 1 + group % 4;
        p->sq = fa_random_within(&r, 1, 16 / p->hq);
        p->sk = fa_random_within(&r, 4 * small - 20, 5 * small);
    }
    c.ragged.idle = c.ragged.idle < p->b ? c.ragged.idle : p->b - 1;
    fa_case_make_view(&c, &r, 6);
    for (int i = 0; i < FA_TENSORS; i++)
        if (c.layout[i] == FA_LAYOUT_REVERSED || c.layout[i] == FA_LAYOUT_FAR)
            c.layout[i] = seed % 2 ? FA_LAYOUT_HEADS : FA_LAYOUT_PADDED;
    return c;
}

static bool is_small(int at)
{
    return at >= SMALL_FROM && !full();
}

static void run_case(fa_context *ctx, const fa_config *config, const fa_case *c, int at)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_trial *t;
    const fa_plan *plan;
    fa_verdict v;
    uint64_t bits = 0;
    char text[512], line[1000];
    fa_case_print(line, sizeof line, c);
    fa_config_print(text, sizeof text, config);
    cr_assert_eq(fa_plan_make(ctx, &c->problem, config, NULL, &plan), FA_OK, "%s, %s: %s", line, text, fa_last_error());
    cr_assert_eq(fa_trial_open(&t, ctx, c, FA_REFERENCE_ORACLE), FA_OK, "%s: %s", line, fa_last_error());
    int runs = at % SIX_EVERY == 0 && !is_small(at) ? 6 : 1, mode = (int)(fa_random_mix(c->seed) % 6);
    for (int i = 0; i < runs; i++, mode = (mode + 1) % 6) {
        test_mode(mode % 2 ? SIM_LAZY : SIM_EAGER, schedules[mode / 2], c->seed);
        cr_expect_eq(fa_trial_run(t, plan, &v), FA_OK, "%s: %s\n%s", text, fa_last_error(), line);
        cr_expect_eq(test_counter(ctx), 0, "%s: the counter is not put back\n%s", text, line);
        cr_expect(i == 0 || v.bits == bits, "%s: other bits under combination %d\n%s", text, mode, line);
        bits = v.bits;
    }
    const fa_problem *p = &c->problem;
    bool few = !is_small(at) && (int64_t)p->b * p->hq * p->sq * p->sk <= ALONE_PAIRS;
    for (int32_t i = 0; few && i < fa_trial_sequences(t); i++)
        cr_expect_eq(fa_trial_alone(t, plan, i, &v), FA_OK, "%s: %s\n%s", text, fa_last_error(), line);
    fa_trial_close(t);
}

ParameterizedTest(int *number, split_parts, cases, .timeout = 900)
{
    const struct row *row = &rows[*number];
    bool hopper = strncmp(row->config, "split_wgmma", strlen("split_wgmma")) == 0;
    fa_context *ctx = hopper ? test_hopper_context(NULL, NULL, SMS) : test_context(NULL, NULL);
    fa_config config;
    fa_problem class;
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    cr_assert_eq(fa_problem_parse(&class, row->problem), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_gen_config_parse(g, &config, row->config), FA_OK, "%s", fa_last_error());
    for (int at = 0; at < CASES; at++) {
        int32_t parts = (int32_t)fa_config_get(&config, "parts", 0), keys = (int32_t)fa_config_get(&config, "bc", 0);
        bool by_cost = parts <= 1 || parts == LAST_ROUND;
        fa_case c =
            make(&class, by_cost, parts == 1 && at % 4 == 1, parts == LAST_ROUND, is_small(at) ? keys : 0, (uint64_t)(*number * 1000 + at));
        run_case(ctx, &config, &c, at);
    }
    fa_gen_close(g);
    fa_destroy(ctx);
}
