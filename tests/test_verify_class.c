/* What serving launches, on the simulator: sequences of their own lengths, packed rows, pages. Cases of the suite's table of classes, under
 * both timings of asynchronous copies and all schedules of warps; what no sequence sees is NaN, infinite, or was never written. */
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/random.h"
#include "verify_classes.h"
#include <criterion/parameterized.h>

#define FAMILIES_MOST 8
#define ROUNDS (full() ? 36 : verify_classes.rounds) /* cases of a class on a chip */
#define CONFIGS (full() ? 4 : 1)                     /* of a class, a family and a chip */
#define SIX_EVERY 20                                 /* of these cases all six combinations are run and compared */
#define ALONE_EVERY 3                                /* of these each sequence is run beside NaN in all others */
#define ALONE_MOST 6                                 /* sequences of such a case */

#define CLASSES_MOST 64

ParameterizedTestParameters(verify_class, cases)
{
    static int numbers[CLASSES_MOST];
    size_t n = 0;
    for (size_t i = 0; verify_classes.of[i]; i++)
        if (full() || !verify_classes.halves || i % 2 == 0)
            numbers[n++] = (int)i;
    return cr_make_param_array(int, numbers, n);
}

/* Whether its name begins with one of the suite's words. */
static bool is_of_suite(const char *family)
{
    for (const char *s = verify_classes.families; *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        if (!strncmp(family, s, n))
            return true;
        s += n;
    }
    return false;
}

/* A config of the suite's families, which take turns: over all rounds, or over the classes. One that does not compute the class with the
 * case's strides leaves its turn to the one before it. */
static void choose(fa_gen *g, fa_context *ctx, fa_case *c, int number, int round, fa_config *out)
{
    size_t turn = (size_t)(number + (full() ? round : 0)); /* compiling costs more than running */
    const char *family[FAMILIES_MOST];
    fa_status st = FA_UNSUPPORTED;
    size_t n = 0;
    for (size_t i = 0; i < fa_gen_families(g); i++)
        if (is_of_suite(fa_gen_family(g, i))) {
            cr_assert_lt(n, FAMILIES_MOST);
            family[n++] = fa_gen_family(g, i);
        }
    cr_assert_gt(n, 0);
    c->choice = (uint32_t)(number * CONFIGS + round / (int)n % CONFIGS);
    for (size_t i = 0; i < n && (st == FA_UNSUPPORTED || st == FA_NO_FIT); i++)
        st = fa_case_config(g, c, fa_context_arch(ctx), fa_context_budget(ctx), family[(turn + n - i) % n], out);
    cr_assert_eq(st, FA_OK, "%s", fa_last_error());
}

static void run_case(fa_context *ctx, fa_gen *g, const fa_problem *class, int number, uint64_t seed, int round)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_case c;
    fa_config config;
    fa_trial *t;
    const fa_plan *plan;
    char text[512], line[1000];
    fa_case_make_class(&c, class, verify_classes.queries, seed);
    for (int i = 0; i < FA_OPERANDS_MAX && verify_classes.hopper; i++) /* no other kernel takes what TMA does not */
        c.layout[i] = c.layout[i] == FA_LAYOUT_REVERSED || c.layout[i] == FA_LAYOUT_FAR ? FA_LAYOUT_PADDED : c.layout[i];
    choose(g, ctx, &c, number, round, &config);
    fa_case_print(line, sizeof line, &c);
    fa_config_print(text, sizeof text, &config);
    cr_assert_eq(fa_plan_make(ctx, &c.problem, &config, NULL, &plan), FA_OK, "%s, %s: %s", line, text, fa_last_error());
    cr_assert_eq(fa_trial_open(&t, ctx, &c, FA_REFERENCE_ORACLE), FA_OK, "%s: %s", line, fa_last_error());
    uint64_t lot = fa_random_mix(seed);
    int runs = lot % SIX_EVERY == 0 ? 6 : 1, at = (int)(lot / SIX_EVERY % 6);
    uint64_t bits = 0;
    for (int i = 0; i < runs; i++, at = (at + 1) % 6) {
        fa_verdict v;
        test_mode(at % 2 ? SIM_LAZY : SIM_EAGER, schedules[at / 2], seed);
        cr_expect_eq(fa_trial_run(t, plan, &v), FA_OK, "%s: %s\n%s", text, fa_last_error(), line);
        cr_expect(i == 0 || v.bits == bits, "%s, %s: other bits under combination %d", line, text, at);
        bits = v.bits;
    }
    for (int32_t i = 0; i < fa_trial_sequences(t) && c.problem.b <= ALONE_MOST && lot % ALONE_EVERY == 0; i++) {
        fa_verdict v;
        cr_expect_eq(fa_trial_alone(t, plan, i, &v), FA_OK, "%s: %s\n%s", text, fa_last_error(), line);
    }
    fa_trial_close(t);
}

ParameterizedTest(int *number, verify_class, cases, .timeout = 600)
{
    fa_context *ctx[2] = { test_context(NULL, NULL), test_hopper_context(NULL, NULL, 7) };
    fa_problem class;
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    cr_assert_eq(fa_problem_parse(&class, verify_classes.of[*number]), FA_OK, "%s", fa_last_error());
    const int turn = verify_classes.halves ? *number / 2 : *number; /* of the classes that run by default */
    for (int round = 0; round < ROUNDS; round++)
        for (int chip = 0; chip < 2; chip++) /* by default one of the two, as compiling costs more than running: one in four an A100 */
            if (verify_classes.hopper ? chip == 1 : full() || chip == (turn % 4 != 1))
                run_case(ctx[chip], g, &class, *number, (uint64_t)(*number * 1000 + round * 2 + chip), round);
    fa_gen_close(g);
    fa_destroy(ctx[0]);
    fa_destroy(ctx[1]);
}
