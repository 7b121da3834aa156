/* The table of winners that ships: every row parses, fits and renders on its chip, and the right row is found. */
#include "gen/gen.h"
#include "gen/problem.h"
#include "runtime/select.h"
#include "test_shipped.h"
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static fa_problem problem(const char *text)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s: %s", text, fa_last_error());
    return p;
}

static fa_arch h200(void)
{
    fa_arch a = *fa_arch_find("h200");
    strcpy(a.chip, "NVIDIA H200");
    return a;
}

static bool is_family(void *user, const fa_config *c)
{
    return !strcmp(c->family, user);
}

Test(runtime_defaults, every_row_renders_and_is_found)
{
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    cr_assert_geq(SHIPPED, 60);
    for (size_t i = 0; i < SHIPPED; i++) {
        fa_problem p = problem(shipped[i].problem);
        fa_config c, found;
        fa_source s;
        fa_arch a = h200();
        char where[64];
        cr_assert_eq(fa_config_parse(&c, shipped[i].config), FA_OK, "row %zu: %s", i, fa_last_error());
        cr_assert_eq(fa_render(g, &p, &c, &a, 0, &s), FA_OK, "row %zu: %s", i, fa_last_error());
        fa_source_free(&s);
        cr_assert(fa_default_config(&a, &p, FA_SAME_ARCH, is_family, c.family, &found, where, sizeof where));
        cr_expect(fa_config_equal(&c, &found), "row %zu: %s gives another row's config", i, shipped[i].problem);
        cr_expect_str_eq(where, "NVIDIA H200");
    }
    fa_gen_close(g);
}

Test(runtime_defaults, nearest_bucket_other_type_other_chip)
{
    fa_arch a = h200(), other = *fa_arch_find("sm_80");
    fa_config c, d;
    char where[64];
    fa_problem p = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=16384,sk=16384");
    fa_problem longer = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=100000,sk=100000");
    fa_problem half = problem("fp16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=16384,sk=16384");
    fa_problem none = problem("bf16,d=72,mask=causal");
    cr_assert(fa_default_config(&a, &p, FA_SAME_ARCH, NULL, NULL, &c, where, sizeof where));
    cr_assert(fa_default_config(&a, &longer, FA_SAME_ARCH, NULL, NULL, &d, where, sizeof where));
    cr_expect(fa_config_equal(&c, &d), "the nearest bucket of a longer sequence is the longest");
    cr_assert(fa_default_config(&a, &half, FA_SAME_ARCH, NULL, NULL, &d, where, sizeof where));
    cr_expect(fa_config_equal(&c, &d), "a row of bf16 serves fp16");
    cr_expect_not(fa_default_config(&a, &none, FA_ANY_ARCH, NULL, NULL, &d, where, sizeof where), "no row has d=72");
    cr_expect_not(fa_default_config(&other, &p, FA_SAME_ARCH, NULL, NULL, &d, where, sizeof where), "an A100 is not an H200");
    cr_expect(fa_default_config(&other, &p, FA_ANY_ARCH, NULL, NULL, &d, where, sizeof where), "but its nearest neighbour in the table");
}

/* What the chip cannot run is passed over, for a row of the same shape or of another. */
Test(runtime_defaults, the_first_that_is_taken)
{
    fa_arch a = h200(), other = *fa_arch_find("sm_80");
    fa_config c;
    char where[64], mma[] = "flash_fwd_mma", none[] = "flash_fwd_abacus";
    fa_problem p = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=16384,sk=16384");
    cr_assert(fa_default_config(&a, &p, FA_SAME_ARCH, NULL, NULL, &c, where, sizeof where));
    cr_expect_str_eq(c.family, "flash_fwd_wgmma");
    cr_assert(fa_default_config(&other, &p, FA_ANY_ARCH, is_family, mma, &c, where, sizeof where));
    cr_expect_str_eq(c.family, "flash_fwd_mma");
    cr_expect_not(fa_default_config(&other, &p, FA_ANY_ARCH, is_family, none, &c, where, sizeof where));
}

Test(runtime_defaults, distances)
{
    fa_arch a = h200(), other = *fa_arch_find("sm_80");
    fa_problem p = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=16384,sk=16384");
    fa_problem near = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=15000,sk=15000");
    fa_problem longer = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=65536,sk=65536");
    fa_problem none = problem("bf16,d=72,mask=causal");
    cr_expect_eq(fa_default_distance(&a, &p), 0);
    cr_expect_eq(fa_default_distance(&a, &near), 0, "one bucket");
    cr_expect_float_eq(fa_default_distance(&a, &longer), 4, 1e-9, "two doublings of both lengths");
    cr_expect_eq(fa_default_distance(&a, &none), (double)INFINITY);
    cr_expect_eq(fa_default_distance(&other, &p), (double)INFINITY);
}
