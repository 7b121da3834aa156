/* Random gradients on the simulator over the families of the backward pass: dense and with lengths, both timings of copies, three schedules
 * of warps, canaries, and NaN in keys that no query sees. `fagen verify --family NAME --seed N` replays. Of flash_bwd_wgmma, which few
 * random classes suit: kernels that cover the pairs of its tunables' values as far as they go, problems of every mask, on a simulated H200.
 */
#include "test_full.h"
#include "test_pairs_kernels.h"
#include "test_verify_device.h"
#include <criterion/parameterized.h>

#define CHUNKS 4
#define SIX_EVERY 12         /* of these cases all six combinations are run and compared */
#define RAGGED 0x1000000000u /* seeds from here on are of classes with lengths */

/* Numbers of problems that are drawn by default, dense ones and with lengths; a family passes over those that it does not compute, and of a
 * chunk's must compute `least`. With the kernels below 45 are verified at least: nearly each dense one compiles a kernel of its own. In
 * full form all families get the same. */
static const struct family {
    const char *name;
    int dense, lengths, least;
} families[] = { { "naive_bwd", 4, 4, 2 }, { "flash_bwd_ffma", 12, 8, 1 }, { "flash_bwd_mma", 8, 8, 1 } };
#define DENSE_FULL 400
#define LENGTHS_FULL 120
#define FAMILIES (int)(sizeof families / sizeof *families)

/* Classes with lengths, few, so that little is compiled. */
static const char *const classes[] = {
    "fp32,d=64,mask=causal,op=backward,features=lengths",
    "fp32,d=40,dv=24,mask=window,op=backward,features=lengths+lse-strides+deterministic",
    "bf16,d=64,mask=causal,op=backward,features=lengths",
    "fp16,d=72,dv=33,mask=none,op=backward,features=lengths+lse-strides,grad=fp32",
    "fp32,d=33,mask=none,op=backward,features=lse-strides",
};

typedef struct chunk {
    int family, part;
} chunk;

ParameterizedTestParameters(verify_backward, random_gradients_are_right)
{
    static chunk all[FAMILIES * CHUNKS];
    for (int i = 0; i < FAMILIES * CHUNKS; i++)
        all[i] = (chunk){ i % FAMILIES, i / FAMILIES };
    return cr_make_param_array(chunk, all, FAMILIES * CHUNKS);
}

static void make_case(fa_case *c, uint64_t seed)
{
    fa_problem p;
    if (seed < RAGGED) {
        fa_case_make_of(c, fa_operation_find(FA_BACKWARD), seed);
        return;
    }
    cr_assert_eq(fa_problem_parse(&p, classes[seed % (sizeof classes / sizeof *classes)]), FA_OK, "%s", fa_last_error());
    fa_case_make_class(c, &p, seed / 5 % 2 ? FA_CASE_MANY : FA_CASE_FEW, seed);
}

/* Under one combination of timing and schedule, or all six, which then must give equal bits where sums have an order. */
static void run_case(fa_context *ctx, const fa_plan *plan, const fa_case *c, const char *family, bool ordered, uint64_t seed)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_trial *t;
    char line[1200];
    fa_case_print(line, sizeof line, c);
    cr_assert_eq(fa_trial_open(&t, ctx, c, FA_REFERENCE_ORACLE), FA_OK, "%s: %s", line, fa_last_error());
    int runs = seed % SIX_EVERY == 0 ? 6 : 1, at = (int)(seed % 6);
    uint64_t bits = 0;
    for (int i = 0; i < runs; i++, at = (at + 1) % 6) {
        fa_verdict v;
        test_mode(at % 2 ? SIM_LAZY : SIM_EAGER, schedules[at / 2], seed);
        cr_assert_eq(fa_trial_run(t, plan, &v), FA_OK, "%s, %s: %s", family, line, fa_last_error());
        cr_assert(i == 0 || !ordered || v.bits == bits, "%s, %s: other bits under combination %d", family, line, at);
        bits = v.bits;
    }
    for (int32_t i = 0; i < fa_trial_sequences(t) && i < 3; i++) {
        fa_verdict v;
        cr_assert_eq(fa_trial_alone(t, plan, i, &v), FA_OK, "%s, sequence %d alone: %s", family, i, fa_last_error());
    }
    fa_trial_close(t);
}

/* False: the family does not compute it. */
static bool run_seed(fa_context *ctx, fa_gen *g, const char *family, uint64_t seed)
{
    fa_case c;
    fa_config config;
    const fa_plan *plan;
    char line[1200];
    make_case(&c, seed);
    fa_status st = fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), family, &config);
    if (st == FA_UNSUPPORTED || st == FA_NO_FIT)
        return false;
    fa_case_print(line, sizeof line, &c);
    cr_assert_eq(st, FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_plan_make(ctx, &c.problem, &config, NULL, &plan), FA_OK, "%s: %s", line, fa_last_error());
    run_case(ctx, plan, &c, family, true, seed);
    return true;
}

ParameterizedTest(chunk *c, verify_backward, random_gradients_are_right, .timeout = 1800)
{
    fa_gen *g;
    fa_context *ctx = test_context(NULL, NULL);
    const struct family *f = &families[c->family];
    int ran = 0, dense = full() ? DENSE_FULL : f->dense, lengths = full() ? LENGTHS_FULL : f->lengths;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    for (int i = c->part; i < dense; i += CHUNKS)
        ran += run_seed(ctx, g, f->name, (uint64_t)i);
    for (int i = c->part; i < lengths; i += CHUNKS)
        ran += run_seed(ctx, g, f->name, RAGGED + (uint64_t)i);
    printf("%s: %d problems\n", f->name, ran);
    cr_assert_geq(ran, f->least, "%s ran %d", f->name, ran);
    fa_gen_close(g);
    fa_destroy(ctx);
}

/* ---- heads above 256 ---- */

static const char *const wide[] = {
    "bf16,d=320,dv=264,mask=window,op=backward",
    "fp16,d=300,dv=333,mask=causal,op=backward,features=lengths",
    "bf16,d=64,dv=328,mask=causal,op=backward,features=lengths+dropout",
    "fp16,d=512,mask=none,op=backward,grad=fp32",
    "bf16,d=264,dv=72,mask=window,op=backward,features=lengths+lse-strides",
    "bf16,d=448,dv=512,mask=causal,op=backward,features=deterministic",
};
#define WIDE_CASES (full() ? 72 : 2)

Test(verify_backward, gradients_of_wide_heads_are_right, .timeout = 1800)
{
    fa_gen *g;
    fa_context *ctx = test_context(NULL, NULL);
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    for (int i = 0; i < WIDE_CASES; i++) {
        fa_problem p;
        fa_case c;
        fa_config config;
        const fa_plan *plan;
        char line[1200];
        uint64_t seed = (uint64_t)i + 11;
        cr_assert_eq(fa_problem_parse(&p, wide[seed % (sizeof wide / sizeof *wide)]), FA_OK, "%s", fa_last_error());
        fa_case_make_class(&c, &p, seed / 6 % 2 ? FA_CASE_FEW : FA_CASE_MANY, seed);
        fa_case_print(line, sizeof line, &c);
        cr_assert_eq(fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), "wide_bwd_mma", &config), FA_OK, "%s: %s", line,
                     fa_last_error());
        cr_assert_eq(fa_plan_make(ctx, &c.problem, &config, NULL, &plan), FA_OK, "%s: %s", line, fa_last_error());
        run_case(ctx, plan, &c, "wide_bwd_mma", true, seed);
    }
    fa_gen_close(g);
    fa_destroy(ctx);
}

/* ---- flash_bwd_wgmma ---- */

#define KERNELS (full() ? 250 : 2)
#define CASES 4 /* of a kernel */
#define SMS 2

/* Every two of mask, type, type of gradients and determinism, and every head_dim in two of the masks. */
static const char *const hopper_problems[] = {
    "bf16,d=64,mask=none,op=backward",
    "fp16,d=64,mask=causal,op=backward,grad=fp32",
    "bf16,d=64,mask=window,op=backward,features=deterministic",
    "fp16,d=72,mask=causal,op=backward",
    "bf16,d=72,dv=40,mask=window,op=backward,grad=fp32",
    "bf16,d=96,mask=causal,op=backward,grad=fp32",
    "fp16,d=96,dv=48,mask=none,op=backward,features=lse-strides",
    "bf16,d=128,mask=causal,op=backward",
    "fp16,d=128,mask=none,op=backward",
    "fp16,d=128,mask=window,op=backward,features=deterministic",
    "bf16,d=40,dv=24,mask=none,op=backward,grad=fp32",
    "fp16,d=8,dv=136,mask=causal,op=backward,features=lse-strides",
    "bf16,d=16,dv=64,mask=window,op=backward",
    "bf16,d=192,dv=128,mask=causal,op=backward",
    "fp16,d=256,mask=none,op=backward",
};
#define HOPPER_PROBLEMS (sizeof hopper_problems / sizeof *hopper_problems)

static int of_problem(int32_t out[4], const fa_problem *p, size_t number)
{
    out[0] = (int32_t)number;
    out[1] = p->mask;
    return 2;
}

static const kernel_choice hopper = { .family = "flash_bwd_wgmma",
                                      .problems = hopper_problems,
                                      .n_problems = HOPPER_PROBLEMS,
                                      .seed = 23,
                                      .of_problem = of_problem,
                                      .work_most = 3e6,
                                      .more_q = 190 };

static fa_case case_of(const kernel *k, uint64_t seed)
{
    fa_case c;
    fa_case_make_of(&c, fa_operation_find(FA_BACKWARD), FA_CASE_FREE + seed);
    suit_kernel(&c, &hopper, k, seed);
    if (c.problem.features & FA_FEATURE_LSE_STRIDES)
        c.lse = 1;
    return c;
}

static struct criterion_test_params parts(void)
{
    static int part[CHUNKS];
    for (int i = 0; i < CHUNKS; i++)
        part[i] = i;
    return cr_make_param_array(int, part, CHUNKS);
}

/* One part of CHUNKS of the kernels of a choice, cases of each. */
static void run_part(int part, const kernel_choice *choice, int n, int cases, fa_case make(const kernel *k, uint64_t seed))
{
    kernel *kernels = calloc((size_t)n, sizeof *kernels);
    fa_context *ctx = test_hopper_context(NULL, NULL, SMS);
    choose_kernels(choice, kernels, (size_t)n);
    for (int k = part; k < n; k += CHUNKS) {
        const fa_plan *plan;
        char text[300];
        fa_config_print(text, sizeof text, &kernels[k].config);
        cr_assert_eq(fa_plan_make(ctx, &kernels[k].problem, &kernels[k].config, NULL, &plan), FA_OK, "%s: %s", text, fa_last_error());
        for (int i = 0; i < cases; i++) {
            uint64_t seed = (uint64_t)(k * cases + i);
            fa_case c = make(&kernels[k], seed);
            run_case(ctx, plan, &c, text, !fa_config_get(&kernels[k].config, "dq", 0), seed);
        }
    }
    fa_destroy(ctx);
    free(kernels);
}

ParameterizedTestParameters(verify_backward, random_gradients_of_hopper_are_right)
{
    return parts();
}

ParameterizedTest(int *part, verify_backward, random_gradients_of_hopper_are_right, .timeout = 1800)
{
    run_part(*part, &hopper, KERNELS, CASES, case_of);
}

/* ---- flash_bwd_wgmma with lengths ---- */

#define LENGTHS_KERNELS (full() ? 100 : 2)
#define LENGTHS_CASES (full() ? 4 : 3) /* of a kernel */

/* Every two of mask, type and type of gradients, every head_dim in one of the masks; determinism, dropout and strides of LSE beside them.
 */
static const char *const lengths_problems[] = {
    "bf16,d=64,mask=causal,op=backward,features=lengths",
    "fp16,d=64,mask=none,op=backward,features=lengths+dropout,grad=fp32",
    "bf16,d=64,mask=window,op=backward,features=lengths+lse-strides",
    "fp16,d=128,mask=causal,op=backward,features=lengths",
    "bf16,d=128,mask=none,op=backward,features=lengths+deterministic",
    "bf16,d=128,mask=window,op=backward,features=lengths",
    "bf16,d=96,mask=causal,op=backward,features=lengths+dropout+lse-strides",
    "fp16,d=72,dv=40,mask=window,op=backward,features=lengths,grad=fp32",
    "bf16,d=192,dv=128,mask=causal,op=backward,features=lengths,grad=fp32",
    "fp16,d=256,mask=none,op=backward,features=lengths",
};

static const kernel_choice lengths = { .family = "flash_bwd_wgmma",
                                       .problems = lengths_problems,
                                       .n_problems = sizeof lengths_problems / sizeof *lengths_problems,
                                       .seed = 29,
                                       .of_problem = of_problem,
                                       .work_most = 3e6,
                                       .more_q = 100 };

/* Up to five sequences; beside the forms of lengths, shapes and layouts as of dense cases, so that a sequence has several tiles. */
static fa_case lengths_case(const kernel *k, uint64_t seed)
{
    fa_case c;
    fa_case_make_class(&c, &k->problem, FA_CASE_MANY, seed);
    suit_kernel(&c, &lengths, k, seed);
    c.problem.b = 2 + (int32_t)(seed % 4);
    c.problem.hq = c.problem.hkv = 1;
    c.problem.hq += (int32_t)(seed % 2);
    c.ragged.idle = seed % 3 == 0;
    if (c.problem.features & FA_FEATURE_DROPOUT) /* of few pairs that are kept, outliers make the mean error, too, a matter of chance */
        c.values = FA_VALUES_NORMAL;
    return c;
}

ParameterizedTestParameters(verify_backward, random_lengths_of_hopper_are_right)
{
    return parts();
}

ParameterizedTest(int *part, verify_backward, random_lengths_of_hopper_are_right, .timeout = 1800)
{
    run_part(*part, &lengths, LENGTHS_KERNELS, LENGTHS_CASES, lengths_case);
}

/* Of every kind of kernel one whose blocks stay, and draw more tiles of keys than there are SMs: under both timings of copies and all
 * schedules, with blocks of queries that some of the keys are not seen by, and a group of heads. */
static const struct {
    const char *problem, *config;
    bool ordered; /* whether its sums have an order */
} persistent[] = {
    { "bf16,d=64,mask=causal,op=backward", "bc=64,twins=0,schedule=0,held=0,dq=0,ds_bufs=0,q_br=128,q_stages=3", true },
    { "fp16,d=64,mask=window,op=backward", "bc=128,twins=0,schedule=1,held=0,dq=0,ds_bufs=0,q_br=128,q_stages=3", true },
    { "bf16,d=64,mask=window,op=backward", "bc=64,twins=1,schedule=0,held=0,dq=0,ds_bufs=0,q_br=128,q_stages=3", true },
    { "fp16,d=64,mask=causal,op=backward", "bc=128,twins=0,schedule=1,held=0,dq=1,ds_bufs=2,q_br=128,q_stages=4", false },
    { "bf16,d=64,mask=none,op=backward", "bc=128,twins=0,schedule=0,held=0,dq=1,ds_bufs=3,q_br=128,q_stages=4", false },
};
#define PERSISTENT (int)(sizeof persistent / sizeof *persistent)

ParameterizedTestParameters(verify_backward, blocks_of_hopper_draw_more_tiles_than_SMs)
{
    static int number[PERSISTENT] = { 1, 2, 4, 0, 3 }; /* by default three, which have each value of each tunable */
    return cr_make_param_array(int, number, full() ? PERSISTENT : 3);
}

ParameterizedTest(int *number, verify_backward, blocks_of_hopper_draw_more_tiles_than_SMs, .timeout = 600)
{
    char text[300];
    fa_context *ctx = test_hopper_context(NULL, NULL, SMS);
    fa_case c = test_case(persistent[*number].problem, 140, 290);
    const fa_plan *plan;
    snprintf(text, sizeof text, "flash_bwd_wgmma:br=64,box=64,stages=2,grid=2,%s", persistent[*number].config);
    fa_config config = test_config(text);
    c.problem.b = 1;
    c.problem.hkv = 2;
    c.problem.hq = 4;
    c.window_left = 60;
    c.window_right = 9;
    cr_assert_gt(c.problem.b * c.problem.hkv * (c.problem.sk / fa_config_get(&config, "bc", 0)), SMS);
    cr_assert_eq(fa_plan_make(ctx, &c.problem, &config, NULL, &plan), FA_OK, "%s: %s", text, fa_last_error());
    run_case(ctx, plan, &c, text, persistent[*number].ordered, 0); /* seed 0 is of those that run all six */
    fa_destroy(ctx);
}
