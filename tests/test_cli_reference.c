/* The tables of reference times: which rows are taken for which problem and chip, and what a damaged line costs. */
#include "../cli/explore/files.h"
#include "cli/explore/reference.h"
#include "gen/problem.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define HEAD                                                                                                                              \
    "# for people\nproduct\tBox A\nchip\tNVIDIA A\narch\tsm_80\nversion\t0.1.0\ncompiler\tnvrtc 13.0\ndriver\tcuda 13.0\nquality\tnoisy " \
    "steady\n"
#define CLASS "bf16,d=64,dv=64,mask=causal,o=bf16,align=16"
#define PROBLEM "problem\t" CLASS ",b=1,hq=4,hkv=4,sq=512,sk=512\t2026-01-02T03:04:05Z\nfamily\tf\tbr bc\n"
#define ROW "64 32\t12.5\t12\t13\t11\t0.01\t21\t1410\t40\t128\t2\n"

/* What the command embeds is another test's; here the table is this one. */
const cli_explore_file cli_reference_files[] = { { "a.tsv", HEAD PROBLEM ROW, sizeof(HEAD PROBLEM ROW) - 1 }, { 0, 0, 0 } };

static const fa_arch chip = { .name = "sm_80", .chip = "Box A" };

static fa_problem class_of(const char *text)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK);
    return p;
}

Test(cli_reference, a_row)
{
    fa_problem p = class_of(CLASS);
    fa_records rs = cli_reference_load(&p, &chip);
    cr_assert_eq(rs.n, 1);
    const fa_record *r = rs.r;
    cr_expect_eq(r->problem.sq, 512);
    cr_expect_eq(r->problem.hq, 4);
    cr_expect_str_eq(r->config.family, "f");
    cr_expect_eq(fa_config_get(&r->config, "br", 0), 64);
    cr_expect_eq(fa_config_get(&r->config, "bc", 0), 32);
    cr_expect_float_eq(r->seconds, 12.5e-6, 1e-12);
    cr_expect_float_eq(r->low, 12e-6, 1e-12);
    cr_expect_float_eq(r->high, 13e-6, 1e-12);
    cr_expect_float_eq(r->warm, 11e-6, 1e-12);
    cr_expect_float_eq(r->spread, 0.01, 1e-9);
    cr_expect_eq(r->count, 21);
    cr_expect_eq(r->clock_mhz, 1410);
    cr_expect_eq(r->temperature, 40);
    cr_expect_eq(r->regs, 128);
    cr_expect_eq(r->quality, FA_QUALITY_STEADY);
    cr_expect(r->verified && r->how == FA_MEASURED && r->outcome == FA_RAN);
    cr_expect_str_eq(r->chip, "NVIDIA A");
    cr_expect_str_eq(r->arch, "sm_80");
    cr_expect_str_eq(r->date, "2026-01-02T03:04:05Z");
    fa_records_free(&rs);
}

/* Another class, another chip of the arch, another arch: nothing. The very device by its own name: the rows. */
Test(cli_reference, only_where_it_was_measured)
{
    fa_problem same = class_of(CLASS), other = class_of("bf16,d=64,mask=none");
    fa_arch cousin = { .name = "sm_80", .chip = "Box B" }, newer = { .name = "sm_90a", .chip = "Box A" },
            device = { .name = "sm_80", .chip = "NVIDIA A" };
    const struct {
        const fa_problem *p;
        const fa_arch *a;
        size_t n;
    } rows[] = { { &same, &chip, 1 }, { &other, &chip, 0 }, { &same, &cousin, 0 }, { &same, &newer, 0 }, { &same, &device, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_records rs = cli_reference_load(rows[i].p, rows[i].a);
        cr_expect_eq(rs.n, rows[i].n, "row %zu: %zu", i, rs.n);
        fa_records_free(&rs);
    }
}

/* A damaged line costs itself alone. */
Test(cli_reference, damaged_lines)
{
    static char line[3000];
    memset(line, '7', sizeof line - 2);
    fa_problem p = class_of(CLASS);
    const char *const bad[] = { "64\t12.5\t\t\t\t\t3\t\t\t\t\n",
                                "64 32 16\t12.5\t\t\t\t\t3\t\t\t\t\n",
                                "64 x\t12.5\t\t\t\t\t3\t\t\t\t\n",
                                "64 32\t0\t\t\t\t\t3\t\t\t\t\n",
                                "64 32\t12.5\n",
                                "\n",
                                "nonsense\n",
                                "64 32\t-1\t\t\t\t\t3\t\t\t\t\n",
                                "\t\t\t\t\t\t\t\t\t\t\n",
                                line };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[8000];
        snprintf(text, sizeof text, "%s%s%s%s%s", HEAD PROBLEM, bad[i], bad[i][strlen(bad[i]) - 1] == '\n' ? "" : "\n", ROW,
                 "64 16\t9\t\t\t\t\t3\t\t\t\t9\n");
        fa_records rs = cli_reference_parse(text, &p, &chip);
        cr_assert_eq(rs.n, 2, "%s: %zu", bad[i], rs.n);
        cr_expect_eq(fa_config_get(&rs.r[0].config, "bc", 0), 32);
        cr_expect_eq(rs.r[1].low, 0);
        cr_expect_eq(rs.r[1].quality, FA_QUALITY_UNTOLD); /* a word that the table does not have */
        fa_records_free(&rs);
    }
    fa_records none = cli_reference_parse("problem\tnot a problem\tx\n" ROW, &p, &chip);
    cr_expect_eq(none.n, 0);
}
