/* Inputs far apart in size, scores near and beyond what fp32 holds, and NaN and infinities that some queries see: each element within a
 * bound of its own. `fagen verify --family NAME --values KIND --seed N` replays. */
#include "test_full.h"
#include "test_verify_device.h"
#include <criterion/parameterized.h>

#define CASES (full() ? 200 : 1) /* of a row below: a family has three */
#define TRIES 100                /* numbers of cases for each */

static const struct row {
    const char *family;
    int values;
    bool hopper;
    const char *class; /* NULL: what the seed draws */
} rows[] = {
    { "naive_bwd", FA_VALUES_WIDE, false, NULL },
    { "naive_bwd", FA_VALUES_BEYOND, false, NULL },
    { "naive_bwd", FA_VALUES_SEEN, false, NULL },
    { "flash_bwd_ffma", FA_VALUES_WIDE, false, NULL },
    { "flash_bwd_ffma", FA_VALUES_BEYOND, false, NULL },
    { "flash_bwd_ffma", FA_VALUES_SEEN, false, NULL },
    { "flash_bwd_mma", FA_VALUES_WIDE, false, NULL },
    { "flash_bwd_mma", FA_VALUES_BEYOND, false, NULL },
    { "flash_bwd_mma", FA_VALUES_SEEN, false, NULL },
    { "flash_bwd_wgmma", FA_VALUES_WIDE, true, NULL },
    { "flash_bwd_wgmma", FA_VALUES_BEYOND, true, NULL },
    { "flash_bwd_wgmma", FA_VALUES_SEEN, true, NULL },
    { "naive", FA_VALUES_WIDE, false, NULL },
    { "naive", FA_VALUES_BEYOND, false, NULL },
    { "naive", FA_VALUES_SEEN, false, NULL },
    { "tiled", FA_VALUES_WIDE, false, NULL },
    { "tiled", FA_VALUES_BEYOND, false, NULL },
    { "tiled", FA_VALUES_SEEN, false, NULL },
    { "flash1_fwd", FA_VALUES_WIDE, false, NULL },
    { "flash1_fwd", FA_VALUES_BEYOND, false, NULL },
    { "flash1_fwd", FA_VALUES_SEEN, false, NULL },
    { "flash_fwd_ffma", FA_VALUES_WIDE, false, NULL },
    { "flash_fwd_ffma", FA_VALUES_BEYOND, false, NULL },
    { "flash_fwd_ffma", FA_VALUES_SEEN, false, NULL },
    { "flash_fwd_mma", FA_VALUES_WIDE, false, NULL },
    { "flash_fwd_mma", FA_VALUES_BEYOND, false, NULL },
    { "flash_fwd_mma", FA_VALUES_SEEN, false, NULL },
    { "flash_fwd_wgmma", FA_VALUES_WIDE, true, NULL },
    { "flash_fwd_wgmma", FA_VALUES_BEYOND, true, NULL },
    { "flash_fwd_wgmma", FA_VALUES_SEEN, true, NULL },
    { "decode_ffma", FA_VALUES_WIDE, false, NULL },
    { "decode_ffma", FA_VALUES_BEYOND, false, NULL },
    { "decode_ffma", FA_VALUES_SEEN, false, NULL },
    { "decode_mma", FA_VALUES_WIDE, false, NULL },
    { "decode_mma", FA_VALUES_BEYOND, false, NULL },
    { "decode_mma", FA_VALUES_SEEN, false, NULL },
    { "decode_wgmma", FA_VALUES_WIDE, true, NULL },
    { "decode_wgmma", FA_VALUES_BEYOND, true, NULL },
    { "decode_wgmma", FA_VALUES_SEEN, true, NULL },
    { "fp8_wgmma", FA_VALUES_WIDE, true, "e4m3,d=64,mask=causal" },
    { "fp8_wgmma", FA_VALUES_BEYOND, true, "e5m2,d=64,dv=96,mask=window,o=fp32" },
    { "fp8_wgmma", FA_VALUES_SEEN, true, "e4m3,d=96,dv=64,mask=causal,o=e4m3" },
    { "fp8_wgmma", FA_VALUES_SEEN, true, "e5m2,d=64,mask=causal,v=bf16" },
    { "fp8_wgmma", FA_VALUES_SEEN, true, "e5m2,d=64,mask=causal" },
};
#define ROWS (int)(sizeof rows / sizeof *rows)

ParameterizedTestParameters(extreme, families)
{
    static int numbers[ROWS];
    for (int i = 0; i < ROWS; i++)
        numbers[i] = i;
    return cr_make_param_array(int, numbers, ROWS);
}

static const fa_operation *operation_of(const fa_gen *g, const char *family)
{
    for (size_t i = 0; i < fa_gen_families(g); i++)
        if (!strcmp(fa_gen_family(g, i), family))
            return fa_operation_find(fa_gen_operation(g, i));
    cr_assert_fail("there is no family %s", family);
    return NULL;
}

/* False: the family does not compute it. */
static bool run_case(fa_context *ctx, fa_gen *g, const struct row *r, const fa_operation *op, uint64_t seed)
{
    fa_case c;
    fa_config config;
    fa_verdict v;
    char line[1200], with[400];
    fa_problem class;
    if (!r->class)
        fa_case_make_of(&c, op, seed);
    else {
        cr_assert_eq(fa_problem_parse(&class, r->class), FA_OK, "%s", fa_last_error());
        fa_case_make_class(&c, &class, FA_CASE_MANY, seed);
    }
    fa_status st = fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), r->family, &config);
    if (st == FA_UNSUPPORTED || st == FA_NO_FIT)
        return false;
    cr_assert_eq(st, FA_OK, "%s", fa_last_error());
    fa_case_set_values(&c, (fa_case_values)r->values);
    fa_case_print(line, sizeof line, &c);
    test_mode(seed % 2 ? SIM_LAZY : SIM_EAGER, SIM_IN_ORDER, seed);
    fa_config_print(with, sizeof with, &config);
    cr_expect_eq(fa_verify_case(ctx, &c, &config, &v), FA_OK, "%s, %s: %s", with, line, fa_last_error());
    return true;
}

ParameterizedTest(int *number, extreme, families, .timeout = 1800)
{
    const struct row *r = &rows[*number];
    fa_gen *g;
    int ran = 0;
    fa_context *ctx = r->hopper ? test_hopper_context(NULL, NULL, 2) : test_context(NULL, NULL);
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    const fa_operation *op = operation_of(g, r->family);
    for (uint64_t seed = 0; ran < CASES && seed < (uint64_t)CASES * TRIES; seed++)
        ran += run_case(ctx, g, r, op, seed);
    cr_assert_eq(ran, CASES, "%s ran %d", r->family, ran);
    fa_gen_close(g);
    fa_destroy(ctx);
}
