/* Records: appended whole, read with forgiveness, and the winner that follows. */
#include "cache/record.h"
#include "gen/problem.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <sys/wait.h>

TestSuite(cache_record, .init = scratch_make, .fini = scratch_remove, .timeout = 60);

static fa_problem problem_of(int sq)
{
    fa_problem p = FA_PROBLEM_INIT, out;
    p.dtype = FA_BF16;
    p.d = 128;
    p.b = 1;
    p.hq = p.hkv = 16;
    p.sq = p.sk = sq;
    cr_assert_eq(fa_problem_normalize(&out, &p), FA_OK, "%s", fa_last_error());
    return out;
}

static fa_record record_of(int sq, int br, double seconds, fa_how how)
{
    fa_record r;
    memset(&r, 0, sizeof r);
    r.problem = problem_of(sq);
    strcpy(r.chip, "NVIDIA H200");
    strcpy(r.arch, "sm_90a");
    char config[64];
    snprintf(config, sizeof config, "flash_fwd_mma:br=%d,bc=64,warps=4", br);
    cr_assert_eq(fa_config_parse(&r.config, config), FA_OK);
    r.how = how;
    r.verified = how == FA_MEASURED;
    r.seconds = seconds;
    r.count = 10;
    r.regs = 128;
    r.smem = 65536;
    strcpy(r.date, "2026-11-21T04:31:00Z");
    r.source[0] = 1;
    r.source[1] = UINT64_MAX;
    return r;
}

static const char *file_of(void)
{
    char key[160];
    fa_problem p = problem_of(1024);
    fa_problem_print_key(key, sizeof key, &p);
    return below("v1/records/NVIDIA_H200/%s.jsonl", key);
}

static void append(const char *text)
{
    FILE *f = fopen(file_of(), "a");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

Test(cache_record, json_round_trip)
{
    fa_record r = record_of(1024, 64, 1.25e-4, FA_MEASURED), back;
    strcpy(r.why, "a \"quoted\" reason\n\xff");
    fa_text t = { 0 };
    cr_assert(fa_record_to_json(&r, &t));
    cr_assert_null(strchr(t.s, '\n'));
    cr_assert(fa_record_from_json(&back, t.s));
    strcpy(r.why, "a \"quoted\" reason\n?");
    cr_assert_eq(memcmp(&back.problem, &r.problem, sizeof r.problem), 0);
    cr_assert(fa_config_equal(&back.config, &r.config));
    cr_assert_str_eq(back.why, r.why);
    cr_assert_str_eq(back.chip, r.chip);
    cr_assert_str_eq(back.date, r.date);
    cr_assert(back.seconds == r.seconds && back.count == 10 && back.regs == 128 && back.smem == 65536);
    cr_assert(back.source[0] == 1 && back.source[1] == UINT64_MAX);
    cr_assert(back.outcome == r.outcome && back.how == r.how);
    r.seconds = NAN;
    fa_text u = { 0 };
    cr_assert(fa_record_to_json(&r, &u) && fa_record_from_json(&back, u.s) && back.seconds == 0);
    fa_text_free(&t);
    fa_text_free(&u);
}

Test(cache_record, append_and_load_in_order)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_problem p = problem_of(1024), other = problem_of(1024);
    other.mask = FA_MASK_CAUSAL;
    for (int i = 1; i <= 5; i++) {
        fa_record r = record_of(1024, 16 * i, i, FA_MEASURED);
        cr_assert(fa_record_append(s, &r));
    }
    fa_records rs = fa_records_load(s, "NVIDIA H200", &p);
    cr_assert_eq(rs.n, 5);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(rs.r[i].seconds, i + 1);
    fa_records_free(&rs);
    const char *chips[] = { "NVIDIA H200", NULL, "NVIDIA_H200", "other" };
    const fa_problem *problems[] = { &p, NULL, &other };
    for (int c = 0; c < 4; c++)
        for (int q = 0; q < 3; q++) {
            rs = fa_records_load(s, chips[c], problems[q]);
            cr_assert_eq(rs.n, c < 2 && q < 2 ? 5 : 0, "%d %d", c, q);
            fa_records_free(&rs);
        }
    fa_store_close(s);
}

/* The newest record of a config counts, wherever it lies and in whatever order it was written. */
Test(cache_record, dates_order_the_records_of_several_roots)
{
    char path[700];
    fa_problem p = problem_of(1024);
    fa_store *shared = fa_store_open(below("shared"), NULL, NULL);
    snprintf(path, sizeof path, "%s:%s", below("own"), below("shared"));
    fa_store *s = fa_store_open(path, NULL, NULL);
    static const struct {
        bool shared;
        int seconds;
        const char *date;
    } lines[] = { { true, 4, "2026-12-04T00:00:00Z" },
                  { true, 1, "2026-12-01T00:00:00Z" },
                  { false, 3, "2026-12-03T00:00:00Z" },
                  { false, 2, "2026-12-02T00:00:00Z" },
                  { false, 5, "2026-12-04T00:00:00Z" } };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fa_record r = record_of(1024, i < 4 ? 64 : 128, lines[i].seconds, FA_MEASURED);
        strcpy(r.date, lines[i].date);
        cr_assert(fa_record_append(lines[i].shared ? shared : s, &r));
    }
    fa_records rs = fa_records_load(s, "NVIDIA H200", &p);
    cr_assert_eq(rs.n, 5);
    for (size_t i = 0; i < rs.n; i++) /* of two of one date, that of the own root comes last */
        cr_expect_eq(rs.r[i].seconds, i + 1.0, "%zu: %g of %s", i, rs.r[i].seconds, rs.r[i].date);
    const fa_record *best = fa_records_best(&rs, &p);
    cr_assert(best && best->seconds == 4, "neither 1, 2 nor 3, which are older");
    fa_records_free(&rs);
    fa_store_close(s);
    fa_store_close(shared);
}

Test(cache_record, torn_and_garbage_lines_are_skipped_and_mended)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_record r = record_of(1024, 64, 1, FA_MEASURED);
    fa_problem p = problem_of(1024);
    cr_assert(fa_record_append(s, &r));
    size_t n;
    char *line = slurp(file_of(), &n);
    append("\n\n{}\nnonsense\n{\"problem\": 3}\n[1,2]\n");
    for (size_t cut = 1; cut + 1 < n; cut += 7) {
        char *part = strndup(line, cut);
        append(part);
        free(part);
        cr_assert(fa_record_append(s, &r));
    }
    size_t expect = 1;
    for (size_t cut = 1; cut + 1 < n; cut += 7)
        expect++;
    fa_records rs = fa_records_load(s, "NVIDIA H200", &p);
    cr_assert_eq(rs.n, expect, "%zu %zu", rs.n, expect);
    fa_records_free(&rs);
    free(line);
    fa_store_close(s);
}

Test(cache_record, links_and_foreign_modes_are_not_used)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_record r = record_of(1024, 64, 1, FA_MEASURED);
    fa_problem p = problem_of(1024);
    cr_assert(fa_record_append(s, &r));
    chmod(file_of(), 0666);
    cr_assert_not(fa_record_append(s, &r));
    fa_records rs = fa_records_load(s, NULL, &p);
    cr_assert_eq(rs.n, 0);
    chmod(file_of(), 0600);
    cr_assert_eq(rename(file_of(), below("moved")), 0);
    cr_assert_eq(symlink(below("moved"), file_of()), 0);
    cr_assert_not(fa_record_append(s, &r));
    rs = fa_records_load(s, NULL, &p);
    cr_assert_eq(rs.n, 0);
    fa_store_close(s);
}

static fa_records list(fa_record *r, size_t n)
{
    return (fa_records){ r, n };
}

Test(cache_record, measured_beats_modelled)
{
    fa_record r[] = { record_of(1024, 64, 1e-3, FA_MEASURED), record_of(1024, 128, 1e-6, FA_MODELLED) };
    fa_records rs = list(r, 2);
    fa_problem p = problem_of(1024), far = problem_of(16384);
    cr_assert_eq(fa_records_best(&rs, &p), &r[0]);
    cr_assert_eq(fa_records_best(&rs, &far), &r[0]);
    rs.r++, rs.n--;
    cr_assert_eq(fa_records_best(&rs, &p), &r[1]);
    rs.n = 0;
    cr_assert_null(fa_records_best(&rs, &p));
}

Test(cache_record, newest_of_a_config_and_fastest_of_those)
{
    fa_record r[] = { record_of(1024, 64, 1, FA_MEASURED), record_of(1024, 128, 2, FA_MEASURED), record_of(1024, 64, 3, FA_MEASURED) };
    fa_records rs = list(r, 3);
    fa_problem p = problem_of(1024);
    cr_assert_eq(fa_records_best(&rs, &p), &r[1]);
    r[2].outcome = FA_BAD_RESULT;
    cr_assert_eq(fa_records_best(&rs, &p), &r[1]);
    r[1].outcome = FA_BAD_COMPILE;
    cr_assert_null(fa_records_best(&rs, &p), "a config that was found wrong is not brought back");
    r[2].outcome = FA_RAN;
    cr_assert_eq(fa_records_best(&rs, &p), &r[2]);
    r[2].seconds = INFINITY;
    cr_assert_null(fa_records_best(&rs, &p));
}

Test(cache_record, nearest_bucket)
{
    fa_record r[] = { record_of(512, 64, 1, FA_MEASURED), record_of(4096, 128, 2, FA_MEASURED), record_of(32768, 256, 3, FA_MEASURED) };
    fa_records rs = list(r, 3);
    const struct {
        int sq, at;
    } rows[] = { { 256, 0 }, { 512, 0 }, { 600, 0 }, { 4096, 1 }, { 8192, 1 }, { 65536, 2 }, { 32768, 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p = problem_of(rows[i].sq);
        cr_assert_eq(fa_records_best(&rs, &p), &r[rows[i].at], "sq=%d", rows[i].sq);
    }
    r[1].problem.mask = FA_MASK_CAUSAL;
    fa_problem p = problem_of(4096);
    cr_assert_neq(fa_records_best(&rs, &p), &r[1]);
}

Test(cache_record, processes_append_whole_lines)
{
    enum { PROCESSES = 8, LINES = 50 };
    const char *root = below("root");
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            fa_store *s = fa_store_open(root, NULL, NULL);
            for (int j = 0; j < LINES; j++) {
                fa_record r = record_of(1024, 16 * (i + 1), j + 1, FA_MEASURED);
                if (!fa_record_append(s, &r))
                    _exit(1);
            }
            fa_store_close(s);
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        wait(&status);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    fa_store *s = fa_store_open(root, NULL, NULL);
    fa_problem p = problem_of(1024);
    fa_records rs = fa_records_load(s, "NVIDIA H200", &p);
    cr_assert_eq(rs.n, PROCESSES * LINES);
    fa_records_free(&rs);
    fa_store_close(s);
}

/* Nowhere to write is no trouble that a tuning would have to know of. */
Test(cache_record, without_a_writer_nothing_is_kept)
{
    fa_record r = record_of(1024, 64, 1, FA_MEASURED);
    fa_store *none = fa_store_open("", NULL, NULL);
    cr_expect_not(fa_record_append(none, &r));
    fa_records rs = fa_records_load(none, NULL, NULL);
    cr_expect_eq(rs.n, 0);
    fa_records_free(&rs);
    fa_store_close(none);
}

static void advised(void *user, const char *message)
{
    snprintf(user, 512, "%s", message);
}

Test(cache_record, one_without_a_form_in_json_is_told_and_not_kept)
{
    char told[512] = "";
    fa_record r = record_of(1024, 64, 1, FA_MEASURED);
    fa_store *s = fa_store_open(scratch, advised, told);
    r.outcome = (fa_outcome)99;
    cr_expect_not(fa_record_append(s, &r));
    cr_expect(strstr(told, "could not be kept in ") && strstr(told, "no form in JSON"), "%s", told);
    fa_records rs = fa_records_load(s, NULL, NULL);
    cr_expect_eq(rs.n, 0);
    fa_records_free(&rs);
    fa_store_close(s);
}

Test(cache_record, what_is_said_of_a_measurement_survives_and_older_lines_say_nothing)
{
    fa_record r = record_of(1024, 64, 1.25e-4, FA_MEASURED), back;
    r.low = 1.2e-4;
    r.high = 1.3e-4;
    r.warm = 1.1e-4;
    r.clock_mhz = 1755;
    r.temperature = 61;
    for (int q = 0; q < FA_QUALITIES; q++) {
        fa_text t = { 0 };
        r.quality = (fa_quality)q;
        r.verified = q % 2;
        cr_assert(fa_record_to_json(&r, &t));
        cr_assert_eq(!strstr(t.s, "\"quality\""), q == FA_QUALITY_UNTOLD, "%s", t.s);
        cr_assert(fa_record_from_json(&back, t.s));
        cr_assert(back.low == r.low && back.high == r.high && back.warm == r.warm);
        cr_assert(back.clock_mhz == 1755 && back.temperature == 61);
        cr_assert_eq(back.quality, r.quality);
        cr_assert_eq(back.verified, r.verified);
        fa_text_free(&t);
    }
    const char *old = "{\"problem\":\"bf16,d=64,b=1,hq=1,hkv=1,sq=1,sk=1\",\"config\":\"flash_fwd_mma:br=64\",\"outcome\":\"%s\",\"how\":"
                      "\"%s\",\"seconds\":1e-4}";
    char line[256];
    snprintf(line, sizeof line, old, "ok", "measured");
    cr_assert(fa_record_from_json(&back, line));
    cr_assert(back.verified && back.quality == FA_QUALITY_UNTOLD && back.low == 0 && back.high == 0 && back.warm == 0);
    cr_assert(back.clock_mhz == 0 && back.temperature == 0);
    cr_assert(back.source[0] == 0 && back.source[1] == 0, "it is of no text that is known");
    snprintf(line, sizeof line, old, "wrong", "measured");
    cr_assert(fa_record_from_json(&back, line) && !back.verified);
    snprintf(line, sizeof line, old, "ok", "model");
    cr_assert(fa_record_from_json(&back, line) && !back.verified);
}

Test(cache_record, a_measured_time_that_nobody_verified_never_wins)
{
    fa_record r[] = { record_of(1024, 64, 2, FA_MEASURED), record_of(1024, 128, 1, FA_MEASURED), record_of(1024, 32, 5, FA_MODELLED) };
    fa_problem p = problem_of(1024);
    fa_records rs = list(r, 3);
    cr_assert_eq(fa_records_best(&rs, &p), &rs.r[1]);
    rs.r[1].verified = false;
    cr_assert_eq(fa_records_best(&rs, &p), &rs.r[0]);
    rs.r[0].verified = false;
    cr_assert_eq(fa_records_best(&rs, &p), &rs.r[2], "the model's, which needs none");
}

Test(cache_record, quality_words)
{
    for (int q = 0; q < FA_QUALITIES; q++) {
        cr_assert_eq(fa_quality_of(fa_quality_name((fa_quality)q)), (fa_quality)q);
        cr_assert(fa_quality_about((fa_quality)q)[0]);
    }
    cr_assert_eq(fa_quality_of(NULL), FA_QUALITY_UNTOLD);
    cr_assert_eq(fa_quality_of("fine"), FA_QUALITY_UNTOLD);
    cr_assert_str_eq(fa_quality_name(FA_QUALITIES), "?");
}

Test(cache_record, few_samples_count_where_there_are_no_others)
{
    fa_record r[] = { record_of(1024, 64, 1.00, FA_MEASURED), record_of(1024, 128, 0.97, FA_MEASURED),
                      record_of(1024, 32, 0.99, FA_MEASURED) };
    fa_problem p = problem_of(1024);
    fa_records rs = list(r, 3);
    r[0].quality = FA_QUALITY_STEADY;
    r[1].quality = r[2].quality = FA_QUALITY_FEW;
    cr_assert_eq(fa_records_best(&rs, &p), &rs.r[0]);
    r[0].quality = FA_QUALITY_FEW;
    cr_assert_eq(fa_records_best(&rs, &p), &rs.r[1], "among its like the fastest");
    r[0].quality = FA_QUALITY_STEADY;
    r[1].seconds = 0.5;
    cr_assert_eq(fa_records_best(&rs, &p), &rs.r[0], "taken under another clock, perhaps");
}
