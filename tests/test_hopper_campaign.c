/* Random problems for flash_fwd_wgmma on a simulated H200 with two SMs: kernels that cover the pairs of its tunables' values as far as
 * they go, problems of all masks with ragged lengths, grouped heads and strides, under both timings of asynchronous copies and all
 * schedules of warps.
 *
 *   FAGEN_CAMPAIGN=KERNELSxCASES     another number of kernels, and of cases for each */
#include "forward.h"
#include "gen/space.h"
#include "test_pairs.h"
#include "test_verify_device.h"
#include <math.h>

#define FAMILY "flash_fwd_wgmma"
#define KERNELS 64
#define CASES 5 /* of a kernel */
#define SEED 11
#define SIX_EVERY 6   /* of these cases all six combinations are run and compared */
#define WORK_MOST 4e6 /* multiply-adds of one product, tiles counted whole */

/* Every two of mask, type and type of O, and every head_dim in two of the masks. */
static const char *const problems[] = {
    "bf16,d=64,mask=none",         "fp16,d=64,mask=causal",         "bf16,d=64,mask=window,o=fp32",
    "fp16,d=72,mask=causal",       "bf16,d=72,dv=40,mask=window",   "bf16,d=80,mask=none",
    "fp16,d=80,mask=window",       "bf16,d=96,mask=causal,o=fp32",  "fp16,d=96,dv=48,mask=none",
    "bf16,d=112,mask=window",      "fp16,d=112,mask=causal",        "bf16,d=128,mask=causal",
    "fp16,d=128,mask=none",        "bf16,d=192,dv=128,mask=causal", "fp16,d=192,dv=128,mask=window,o=fp32",
    "bf16,d=256,mask=none",        "fp16,d=256,mask=causal",        "bf16,d=40,dv=24,mask=none,o=fp32",
    "fp16,d=8,dv=136,mask=causal", "bf16,d=16,dv=64,mask=window",
};
#define PROBLEMS (sizeof problems / sizeof *problems)

typedef struct kernel {
    fa_problem problem;
    fa_config config;
} kernel;

/* ---- which kernels ---- */

/* What makes no other text of the kernel's body than numbers of registers is not varied on purpose. */
static bool is_factor(const char *tunable)
{
    return strcmp(tunable, "feeder") != 0 && strcmp(tunable, "ctas") != 0;
}

static void choose(kernel *out, size_t most)
{
    pairs_factor factor[PAIRS_FACTORS] = { { 0 } };
    pairs_row *row = NULL;
    kernel *all = NULL;
    size_t n = 0, room = 0;
    int factors = 0;
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    for (size_t k = 0; k < PROBLEMS; k++) {
        fa_problem p;
        fa_space s;
        cr_assert_eq(fa_problem_parse(&p, problems[k]), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_space_list(g, &p, fa_arch_find("sm_90a"), 0, FAMILY, &s), FA_OK, "%s", fa_last_error());
        cr_assert_gt(s.fitting, 0, "%s", problems[k]);
        room += s.fitting;
        row = realloc(row, room * sizeof *row);
        all = realloc(all, room * sizeof *all);
        for (size_t i = 0; i < s.n; i++) {
            const fa_config *c = &s.points[i].config;
            if (!s.points[i].fits)
                continue;
            int at = 0;
            for (int t = 0; t < c->n; t++)
                if (is_factor(c->tunable[t].name))
                    row[n].value[at] = pairs_number(&factor[at], c->tunable[t].value), at++;
            row[n].value[at] = pairs_number(&factor[at], p.d * 1000 + p.dv), at++;
            row[n].value[at] = pairs_number(&factor[at], p.mask), at++;
            row[n].value[at] = pairs_number(&factor[at], p.o_dtype == FA_F32), at++;
            all[n++] = (kernel){ p, *c };
            factors = at;
        }
        fa_space_free(&s);
    }
    fa_gen_close(g);
    size_t *chosen = malloc((n + 1) * sizeof *chosen), count = pairs_cover(row, n, factors, 1, SEED, chosen);
    fa_random r = { SEED };
    for (size_t i = 0; i < most; i++) /* past the cover any, maybe again */
        out[i] = all[i < count ? chosen[i] : (size_t)fa_random_below(&r, (int32_t)n)];
    free(chosen);
    free(row);
    free(all);
}

/* ---- which cases ---- */

static int32_t whole(int32_t n, int32_t of)
{
    return (n + of - 1) / of * of;
}

/* A random case's shape, data and strides for the kernel's problem, cut to what is quick, in strides that TMA takes. */
static fa_case make(const kernel *k, uint64_t seed)
{
    fa_case c;
    fa_case_make(&c, FA_CASE_FREE + seed);
    fa_problem p = k->problem;
    p.b = c.problem.b < 2 ? c.problem.b : 2;
    p.hkv = c.problem.hkv < 2 ? c.problem.hkv : 2;
    p.hq = p.hkv * (1 + (int32_t)(seed % 3));
    p.sq = c.problem.sq < 300 ? c.problem.sq : 300;
    p.sk = c.problem.sk < 300 ? c.problem.sk : 300;
    if (seed % 4 == 0) /* long enough for several blocks of keys and several tiles */
        p.sq += 130, p.sk += 150;
    int32_t br = fa_config_get(&k->config, "br", 64) * fa_config_get(&k->config, "cluster", 1), bc = fa_config_get(&k->config, "bc", 64);
    while ((double)p.b * p.hq * whole(p.sq, br) * whole(p.sk, bc) * (p.d + p.dv) / 2 > WORK_MOST) {
        if (p.b > 1)
            p.b--;
        else if (p.hkv > 1)
            p.hq /= p.hkv--;
        else if (p.hq > 2)
            p.hq--;
        else if (p.sq > p.sk && p.sq > br)
            p.sq -= p.sq / 4;
        else if (p.sk > bc)
            p.sk -= p.sk / 4;
        else
            break;
    }
    if (c.scale > 0)
        c.scale *= (float)sqrt((double)c.problem.d / p.d);
    c.problem = p;
    for (int i = 0; i < FA_TENSORS; i++)
        if (c.layout[i] == FA_LAYOUT_REVERSED || c.layout[i] >= FA_LAYOUT_SAME_BATCH)
            c.layout[i] = seed % 2 ? FA_LAYOUT_HEADS : FA_LAYOUT_PADDED;
    return c;
}

/* ---- run ---- */

static void run_case(fa_context *ctx, const fa_plan *plan, const fa_case *c, const char *config, uint64_t seed)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_trial *t;
    cr_assert_eq(fa_trial_open(&t, ctx, c, FA_REFERENCE_ORACLE), FA_OK, "%s", fa_last_error());
    int runs = seed % SIX_EVERY == 0 ? 6 : 1, at = (int)(seed % 6);
    uint64_t bits = 0;
    if (runs == 1)
        at = (int)(seed / SIX_EVERY + seed) % 6;
    for (int i = 0; i < runs; i++, at = (at + 1) % 6) {
        fa_verdict v;
        test_mode(at % 2 ? SIM_LAZY : SIM_EAGER, schedules[at / 2], seed);
        cr_expect_eq(fa_trial_run(t, plan, &v), FA_OK, "%s, combination %d: %s", config, at, fa_last_error());
        cr_expect_eq(test_counter(ctx), 0, "%s: the counter is not put back", config);
        if (i > 0 && v.bits != bits) {
            char line[700];
            fa_case_print(line, sizeof line, c);
            cr_expect_fail("%s: other bits under combination %d: %s", config, at, line);
        }
        bits = v.bits;
    }
    fa_trial_close(t);
}

Test(hopper_campaign, random_problems, .timeout = 3600)
{
    static kernel kernels[4096];
    const char *how = getenv("FAGEN_CAMPAIGN");
    size_t most = KERNELS;
    int cases = CASES;
    cr_assert(!how || !*how || (sscanf(how, "%zux%d", &most, &cases) == 2 && most <= 4096),
              "FAGEN_CAMPAIGN is \"%s\"; accepted: KERNELSxCASES", how);
    choose(kernels, most);
    fa_context *ctx = test_hopper_context(NULL, NULL, 2);
    for (size_t k = 0; k < most; k++) {
        const fa_plan *plan;
        char text[512];
        fa_config_print(text, sizeof text, &kernels[k].config);
        cr_assert_eq(fa_plan_make(ctx, &kernels[k].problem, &kernels[k].config, NULL, &plan), FA_OK, "%s: %s", text, fa_last_error());
        for (int i = 0; i < cases; i++) {
            uint64_t seed = k * (uint64_t)cases + (uint64_t)i;
            fa_case c = make(&kernels[k], seed);
            run_case(ctx, plan, &c, text, seed);
        }
    }
    printf("%zu kernels, %zu cases\n", most, most * (size_t)cases);
    cr_expect_geq(most * (size_t)cases, how && *how ? 1 : 300);
    fa_destroy(ctx);
}
