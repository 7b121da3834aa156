/* What `fagen tune` says at the end, of measured results too, which no machine without a GPU makes: the report of given documents. */
#include "cli/tune/tune.h"
#include "gen/problem.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli wide = { .command = "tune", .columns = 100, .wide = true };

/* Standard output of what runs between the two. */
static int kept;

static void listen(void)
{
    char name[] = "/tmp/fagen-report-XXXXXX";
    int fd = mkstemp(name);
    fflush(stdout);
    kept = dup(1);
    cr_assert(fd >= 0 && kept >= 0 && unlink(name) == 0 && dup2(fd, 1) == 1);
    close(fd);
}

static char *heard(void)
{
    static char text[16384];
    fflush(stdout);
    lseek(1, 0, SEEK_SET);
    ssize_t n = read(1, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    dup2(kept, 1);
    close(kept);
    return text;
}

static fa_candidate candidate(const char *config, double seconds, double half)
{
    fa_candidate c = { .decided = true,
                       .how = FA_MEASURED,
                       .seconds = seconds,
                       .level = seconds,
                       .low = seconds * (1 - half),
                       .high = seconds * (1 + half),
                       .count = 24,
                       .quality = FA_QUALITY_STEADY,
                       .clock_mhz = 1620,
                       .temperature = 61,
                       .tflops = 1e-4 / seconds,
                       .verified = true,
                       .met = true };
    cr_assert_eq(fa_config_parse(&c.config, config), FA_OK);
    return c;
}

static fa_problem problem(int32_t n)
{
    fa_problem p = { .size = sizeof p, .dtype = FA_BF16, .d = 128, .mask = FA_MASK_CAUSAL, .b = 4, .hq = 16, .hkv = 8, .sq = n, .sk = n };
    cr_assert_eq(fa_problem_normalize(&p, &p), FA_OK);
    return p;
}

/* A measured tuning of four: the winner, one 1 % slower, the default 10 % slower, a failure. */
static json_t *result_of(int32_t n, double half, fa_quality quality, const fa_site *site)
{
    fa_problem p = problem(n);
    fa_candidate c[4] = { candidate("f:br=64,bc=64", 110e-6, half), candidate("f:br=128,bc=64", 100e-6, half),
                          candidate("f:br=128,bc=128", 101e-6, half), candidate("f:br=256,bc=64", 0, 0) };
    fa_tuning t = { .problem = p,
                    .how = FA_MEASURED,
                    .candidate = c,
                    .n = 4,
                    .winner = &c[1],
                    .baseline = &c[0],
                    .baseline_from = "shipped winner of X",
                    .elapsed = 75,
                    .counts = { .space = 1000,
                                .sound = 900,
                                .fits_shared = 700,
                                .fits = 400,
                                .kept = 4,
                                .compiled = 2,
                                .verified = 2,
                                .timed = 2,
                                .resumed = 1,
                                .failed = 1 },
                    .n_rejected = 1,
                    .rejected = { { .family = "f", .constraint = "smem", .n = 200, .why = "9 > 8 bytes" } } };
    c[1].quality = quality;
    c[3].outcome = FA_BAD_TIMEOUT;
    strcpy(c[3].why, "no answer in 20 s");
    return tune_result(&t, &p, site, FA_OK, "");
}

Test(cli_report, a_measured_problem)
{
    json_t *r = result_of(4096, 0.001, FA_QUALITY_STEADY, NULL);
    listen();
    tune_report(&wide, r, true);
    const char *said = heard();
    static const char *const lines[] = {
        "bf16,d=128,dv=128,mask=causal,o=bf16,align=16,b=4,hq=16,hkv=8,sq=4096,sk=4096\n",
        "space      1000 configs: 900 keep the rules, 700 fit the shared memory, 400 the registers; 4 are tried\n",
        "pruned     200 smem (9 > 8 bytes), 400 by others (fagen space tells)\n",
        "tried      2 compiled, 2 verified, 2 timed, 1 of 4 from records, 1 failed, the first by timeout: no answer in 20 s\n",
        "winner     f:br=128,bc=64\n           100.00 us (95 %: 99.90 us to 100.10 us, 24 samples), 1.0 TFLOP/s; +10.0 % over the default",
        "the default (shipped winner of X), measured beside it\n",
        "runner-up  f:br=128,bc=128: -1.0 % (p < 0.01)\n",
        "quality    steady; 1620 MHz, 61 degrees\n",
        "saved      nowhere: no cache directory can be written (fagen doctor tells why); found after 75 s\n",
        "timeout          -",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect(strstr(said, lines[i]), "no \"%s\" in\n%s", lines[i], said);
    json_decref(r);
}

/* What no device measured is a guess in every word. */
Test(cli_report, a_guess_of_the_model)
{
    static const char *const runs[] = {
        "runs       the guess, until something is measured here\n",
        "runs       f:br=64,bc=64, shipped winner of X: over the bucket its price is below the guess's\n",
        "runs       f:br=64,bc=64, shipped winner of X: it won in this very bucket, and goes before a guess\n"
    };
    for (int ships = 0; ships < 3; ships++) {
        fa_problem p = problem(4096);
        fa_candidate c[3] = { candidate("f:br=64,bc=64", 110e-6, 0), candidate("f:br=128,bc=64", 100e-6, 0),
                              candidate("f:br=128,bc=128", 101e-6, 0) };
        for (int i = 0; i < 3; i++)
            c[i].how = FA_MODELLED, c[i].verified = c[i].met = false, c[i].quality = FA_QUALITY_UNTOLD, c[i].count = 0;
        fa_tuning t = { .problem = p,
                        .how = FA_MODELLED,
                        .candidate = c,
                        .n = 3,
                        .winner = &c[1],
                        .baseline = &c[0],
                        .runs = { .known = true, .config = c[ships ? 0 : 1].config, .from = "shipped winner of X", .decided = ships == 2 },
                        .baseline_from = "shipped winner of X",
                        .counts = { .space = 9, .fits = 9, .kept = 3, .compiled = 3 } };
        c[0].outcome = FA_BAD_CONSTRAINT;
        strcpy(c[0].why, "spills: 88 > 0 bytes");
        json_t *r = tune_result(&t, &p, NULL, FA_OK, "");
        cr_expect(json_is_null(json_object_get(r, "winner")) && json_is_object(json_object_get(r, "guess")));
        cr_expect_eq(tune_best(r), json_object_get(r, "guess"));
        listen();
        tune_report(&wide, r, true);
        const char *said = heard();
        cr_expect(strstr(said, "guess      f:br=128,bc=64\n") && strstr(said, " by the model (1.0 TFLOP/s), never measured"), "%s", said);
        cr_expect(strstr(said, "; the default (shipped winner of X) is no guess: spills: 88 > 0 bytes\n"), "%s", said);
        cr_expect(strstr(said, runs[ships]), "%s", said);
        cr_expect_null(strstr(said, "winner     "), "%s", said);
        cli_grid_row row = { p, "" };
        cli_problem_list l = { &row, 1 };
        listen();
        tune_report_all(&wide, &l, &r, 5);
        said = heard();
        cr_expect(strstr(said, "a guess\n") && strstr(said, "1 of 1 problems have a guess") && !strstr(said, "inners"), "%s", said);
        json_decref(r);
    }
}

/* Gains over the default: two digits where one would be none. */
Test(cli_report, gains)
{
    static const struct {
        double gain;
        const char *says;
    } rows[] = { { 0.1, "; +10.0 % over" },
                 { 0.0007, "; +0.1 % over" },
                 { 0.0003, "; +0.03 % over" },
                 { -0.0003, "; -0.03 % over" },
                 { -0.0007, "; -0.1 % over" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p = problem(1024);
        fa_candidate c[2] = { candidate("f:br=64,bc=64", 100e-6 * (1 + rows[i].gain), 1e-5), candidate("f:br=128,bc=64", 100e-6, 1e-5) };
        fa_tuning t = { .problem = p,
                        .how = FA_MEASURED,
                        .candidate = c,
                        .n = 2,
                        .winner = &c[1],
                        .baseline = &c[0],
                        .baseline_from = "x",
                        .elapsed = 1,
                        .counts = {
                            .space = 2, .sound = 2, .fits_shared = 2, .fits = 2, .kept = 2, .compiled = 2, .verified = 2, .timed = 2 } };
        json_t *r = tune_result(&t, &p, NULL, FA_OK, "");
        listen();
        tune_report(&wide, r, true);
        const char *said = heard();
        cr_expect(strstr(said, rows[i].says), "%g: no \"%s\" in\n%s", rows[i].gain, rows[i].says, said);
        json_decref(r);
    }
}

/* A default that did not run here has no time to be held against. */
Test(cli_report, a_default_that_does_not_run)
{
    fa_problem p = problem(1024);
    fa_candidate c[2] = { candidate("f:br=64,bc=64", 0, 0), candidate("f:br=128,bc=64", 100e-6, 1e-5) };
    fa_tuning t = {
        .problem = p,
        .how = FA_MEASURED,
        .candidate = c,
        .n = 2,
        .winner = &c[1],
        .baseline = &c[0],
        .baseline_from = "shipped winner of X",
        .elapsed = 1,
        .counts = { .space = 2, .sound = 2, .fits_shared = 2, .fits = 2, .kept = 2, .compiled = 2, .verified = 1, .timed = 1, .failed = 1 }
    };
    c[0].outcome = FA_BAD_LAUNCH;
    strcpy(c[0].why, "CUDA_ERROR_ILLEGAL_ADDRESS");
    json_t *r = tune_result(&t, &p, NULL, FA_OK, "");
    listen();
    tune_report(&wide, r, true);
    const char *said = heard();
    cr_expect(strstr(said, "; the default (shipped winner of X) did not run here: CUDA_ERROR_ILLEGAL_ADDRESS"), "%s", said);
    json_decref(r);
}

/* What is within the noise is not called better, and trouble has its word. */
Test(cli_report, a_noisy_problem)
{
    fa_store *store = fa_store_open("/tmp", NULL, NULL);
    fa_site site = { .store = store };
    json_t *r = result_of(4096, 0.05, FA_QUALITY_CONTENDED, &site);
    double chance = json_number_value(json_object_get(json_object_get(r, "runner_up"), "chance"));
    cr_assert(chance > 0.3 && chance < 0.5, "%g", chance);
    listen();
    tune_report(&wide, r, false);
    const char *said = heard();
    cr_expect(strstr(said, "-1.0 % (p = 0.3") || strstr(said, "-1.0 % (p = 0.4"), "%s", said);
    cr_expect(strstr(said, "quality    contended: another process computed on the chip; 1620 MHz"), "%s", said);
    json_decref(r);
    fa_store_close(store);
}

Test(cli_report, narrow_terminals_wrap)
{
    json_t *r = result_of(4096, 0.001, FA_QUALITY_STEADY, NULL);
    cli narrow = { .command = "tune", .columns = 44 };
    listen();
    tune_report(&narrow, r, false);
    const char *said = heard();
    for (const char *s = strchr(said, '\n') + 1; *s; s = strchr(s, '\n') + 1) /* the problem itself is one word */
        cr_expect_leq(strcspn(s, "\n"), 44, "%.*s", (int)strcspn(s, "\n"), s);
    json_decref(r);
}

Test(cli_report, the_table_of_all)
{
    cli_grid_row row[3] = { { problem(1024), "" }, { problem(4096), "" }, { problem(16384), "" } };
    json_t *results[3] = { result_of(1024, 0.001, FA_QUALITY_STEADY, NULL), result_of(4096, 0.001, FA_QUALITY_NOISY, NULL), NULL };
    cli_problem_list l = { row, 3 };
    listen();
    tune_report_all(&wide, &l, results, 125);
    const char *said = heard();
    static const char *const lines[] = {
        "bf16  128  causal  4x16/8    1024  100.00 us      1.0       +10.0 %     -1.0 %      4          1  measured\n",
        "bf16  128  causal  4x16/8    4096  100.00 us      1.0       +10.0 %     -1.0 %      4          1  noisy\n",
        "bf16  128  causal  4x16/8   16384          -        -             -          -      0          0  not reached\n",
        "2 of 3 problems have a winner, after 2 min 05 s, 2 of them with the help of records; +10.0 % over the default in the geometric ",
        "in the geometric mean, most +10.0 %: bf16 d128 causal 4x16/8 1024\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect(strstr(said, lines[i]), "no \"%s\" in\n%s", lines[i], said);
    json_decref(results[0]);
    json_decref(results[1]);
}

Test(cli_report, fair_shares)
{
    cr_expect_eq(tune_share(0, 10, 5, 1), 0);
    cr_expect_eq(tune_share(100, 0, 5, 1), 20);
    cr_expect_eq(tune_share(100, 60, 2, 1), 20); /* what others left is shared */
    cr_expect_eq(tune_share(100, 0, 5, 2), 40);  /* two at a time */
    cr_expect_eq(tune_share(100, 0, 2, 8), 100); /* never more at a time than there are */
    cr_expect_eq(tune_share(100, 0, 100, 1), 3); /* less finds nothing */
    cr_expect_eq(tune_share(100, 98, 100, 1), 2);
    cr_expect_lt(tune_share(100, 100, 1, 1), 0);
    cr_expect_lt(tune_left(0.5, 0.5, 0), 0); /* too early */
    cr_expect_eq(tune_left(10, 0.5, 0), 10);
    cr_expect_eq(tune_left(10, 0.5, 15), 5);
    cr_expect_eq(tune_left(10, 0.5, 5), 0);
}
