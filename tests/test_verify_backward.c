/* Random gradients on the simulator over the families of the backward pass: dense and with lengths, both timings of copies, three schedules
 * of warps, canaries, and NaN in keys that no query sees. `fagen verify --family NAME --seed N` replays. */
#include "gen/space.h"
#include "test_full.h"
#include "test_verify_device.h"
#include <criterion/parameterized.h>

#define DENSE (full() ? 400 : 44) /* of each family */
#define LENGTHS (full() ? 120 : 16)
#define CHUNKS 4
#define SIX_EVERY 12         /* of these cases all six combinations are run and compared */
#define RAGGED 0x1000000000u /* seeds from here on are of classes with lengths */

static const char *const families[] = { "naive_bwd", "flash_bwd_ffma", "flash_bwd_mma" };
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

/* False: the family does not compute it. */
static bool run_seed(fa_context *ctx, fa_gen *g, const char *family, uint64_t seed)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_case c;
    fa_config config;
    fa_trial *t;
    const fa_plan *plan;
    char line[1200];
    make_case(&c, seed);
    fa_status st = fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), family, &config);
    if (st == FA_UNSUPPORTED || st == FA_NO_FIT)
        return false;
    fa_case_print(line, sizeof line, &c);
    cr_assert_eq(st, FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_plan_make(ctx, &c.problem, &config, NULL, &plan), FA_OK, "%s: %s", line, fa_last_error());
    cr_assert_eq(fa_trial_open(&t, ctx, &c, FA_REFERENCE_ORACLE), FA_OK, "%s: %s", line, fa_last_error());
    int runs = seed % SIX_EVERY == 0 ? 6 : 1, at = (int)(seed % 6);
    uint64_t bits = 0;
    for (int i = 0; i < runs; i++, at = (at + 1) % 6) {
        fa_verdict v;
        test_mode(at % 2 ? SIM_LAZY : SIM_EAGER, schedules[at / 2], seed);
        cr_assert_eq(fa_trial_run(t, plan, &v), FA_OK, "%s: %s", family, fa_last_error());
        cr_assert(i == 0 || v.bits == bits, "%s, %s: other bits under combination %d", family, line, at);
        bits = v.bits;
    }
    for (int32_t i = 0; i < fa_trial_sequences(t) && i < 3; i++) {
        fa_verdict v;
        cr_assert_eq(fa_trial_alone(t, plan, i, &v), FA_OK, "%s, sequence %d alone: %s", family, i, fa_last_error());
    }
    fa_trial_close(t);
    return true;
}

ParameterizedTest(chunk *c, verify_backward, random_gradients_are_right, .timeout = 1800)
{
    fa_gen *g;
    fa_context *ctx = test_context(NULL, NULL);
    int ran = 0;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    for (int i = c->part; i < DENSE; i += CHUNKS)
        ran += run_seed(ctx, g, families[c->family], (uint64_t)i);
    for (int i = c->part; i < LENGTHS; i += CHUNKS)
        ran += run_seed(ctx, g, families[c->family], RAGGED + (uint64_t)i);
    cr_assert_geq(ran, (DENSE + LENGTHS) / CHUNKS / 5, "%s ran %d", families[c->family], ran);
    fa_gen_close(g);
    fa_destroy(ctx);
}
