/* The look-up of records in large files: its work, counted, and that it finds what the rule says. The calls that are counted are those
 * of the library: the linker leads them here first. */
#include "cache/jsonl.h"
#include "cache/newest.h"
#include "gen/bucket.h"
#include "gen/problem.h"
#include "test_cache_scratch.h"
#include "test_fake_context.h"
#include <jansson.h>
#include <math.h>

static void begin(void)
{
    open_context();
}
TestSuite(cache_lookup, .init = begin, .fini = close_context, .timeout = 120);

static long equals, hashes, parsers, problems, files;

bool __real_fa_config_equal(const fa_config *a, const fa_config *b);
bool __wrap_fa_config_equal(const fa_config *a, const fa_config *b);
bool __wrap_fa_config_equal(const fa_config *a, const fa_config *b)
{
    equals++;
    return __real_fa_config_equal(a, b);
}

uint64_t __real_fa_config_hash(const fa_config *c);
uint64_t __wrap_fa_config_hash(const fa_config *c);
uint64_t __wrap_fa_config_hash(const fa_config *c)
{
    hashes++;
    return __real_fa_config_hash(c);
}

json_t *__real_json_loads(const char *s, size_t flags, json_error_t *e);
json_t *__wrap_json_loads(const char *s, size_t flags, json_error_t *e);
json_t *__wrap_json_loads(const char *s, size_t flags, json_error_t *e)
{
    parsers++;
    return __real_json_loads(s, flags, e);
}

fa_status __real_fa_problem_parse_scored(fa_problem *out, const char *s, const char *program, size_t n);
fa_status __wrap_fa_problem_parse_scored(fa_problem *out, const char *s, const char *program, size_t n);
fa_status __wrap_fa_problem_parse_scored(fa_problem *out, const char *s, const char *program, size_t n)
{
    problems++;
    return __real_fa_problem_parse_scored(out, s, program, n);
}

bool __real_fa_jsonl_read(int dir, const char *file, fa_jsonl_fn *f, void *user, const char **trouble);
bool __wrap_fa_jsonl_read(int dir, const char *file, fa_jsonl_fn *f, void *user, const char **trouble);
bool __wrap_fa_jsonl_read(int dir, const char *file, fa_jsonl_fn *f, void *user, const char **trouble)
{
    files++;
    return __real_fa_jsonl_read(dir, file, f, user, trouble);
}

static uint64_t random_below(uint64_t n)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x % n;
}

static fa_record record_of(int config, double seconds, int second)
{
    char text[100];
    unsigned at = (unsigned)second;
    fa_record r = { .how = FA_MEASURED, .verified = true, .seconds = seconds, .spread = 0.1 / 3, .count = 10, .regs = 128, .smem = 65536 };
    cr_assert_eq(fa_problem_parse(&r.problem, "bf16,d=72,mask=causal,b=4,hq=32,hkv=32,sq=4096,sk=4096"), FA_OK);
    snprintf(text, sizeof text, "flash_fwd_mma:br=%d,bc=%d,warps=4", 16 * (1 + config % 64), 8 * (1 + config / 64));
    cr_assert_eq(fa_config_parse(&r.config, text), FA_OK);
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    snprintf(r.version, sizeof r.version, "%s", FA_VERSION_STRING);
    snprintf(r.date, sizeof r.date, "2026-11-%02uT%02u:%02u:%02uZ", 1 + at / 86400 % 28, at / 3600 % 24, at / 60 % 60, at % 60);
    return r;
}

enum { MANY = 20000 };

/* Files whose records make a search for the newest of each config go from end to end. */
static double each_overtaken(int i)
{
    return i < MANY / 2 ? MANY - i : 1e6 + i; /* each is faster than those before it, and was measured again, slower */
}
static double each_slower(int i)
{
    return 1 + i;
}
static double any(int i)
{
    return 1 + (double)(i * 7919L % MANY);
}

static const struct {
    const char *name;
    double (*seconds)(int i);
    int configs;
} scenes[] = { { "each was measured twice", each_overtaken, MANY / 2 },
               { "each once", each_slower, MANY },
               { "one config", any, 1 },
               { "three hundred configs", any, 300 } };

Test(cache_lookup, work_grows_with_the_records_alone)
{
    fa_problem p = record_of(0, 1, 0).problem;
    char chip[64], file[160], path[600];
    fa_record r = record_of(0, 1, 0);
    fa_store *s = fa_context_store(ctx);
    cr_assert(fa_record_append(s, &r));
    fa_record_path(&r, chip, file);
    snprintf(path, sizeof path, "%s/v1/records/%s/%s", scratch, chip, file);
    for (size_t k = 0; k < sizeof scenes / sizeof *scenes; k++) {
        double fastest = INFINITY;
        FILE *f = fopen(path, "w");
        cr_assert_not_null(f);
        for (int i = 0; i < MANY; i++) {
            fa_text line = { 0 };
            r = record_of(i % scenes[k].configs, scenes[k].seconds(i), i);
            cr_assert(fa_record_to_json(&r, &line));
            fprintf(f, "%s\n", line.s);
            fa_text_free(&line);
            if (i >= MANY - scenes[k].configs)
                fastest = fmin(fastest, r.seconds);
        }
        fclose(f);
        parsers = problems = files = 0;
        fa_records rs = fa_records_load(s, r.chip, &p);
        cr_assert_eq(rs.n, MANY);
        cr_expect_eq(parsers, 0, "%s: %ld lines went to the whole parser", scenes[k].name, parsers);
        cr_expect_eq(problems, 1, "%s: the problem was parsed %ld times", scenes[k].name, problems);
        cr_expect_eq(files, 1, "%s: %ld files were read", scenes[k].name, files);
        equals = hashes = 0;
        const fa_record *best = fa_records_best(&rs, &p);
        cr_expect(best && best->seconds == fastest, "%s: %g, not %g", scenes[k].name, best ? best->seconds : 0, fastest);
        cr_expect_leq(equals, 2 * MANY, "%s: %ld comparisons", scenes[k].name, equals);
        cr_expect_geq(hashes, MANY, "%s: what is counted is not what is called", scenes[k].name);
        cr_expect_leq(hashes, 2 * MANY, "%s: %ld hashes", scenes[k].name, hashes);
        fa_records_free(&rs);
    }
}

/* A launch's choice, where no config of the records renders any more: each kind is read once, and each config compared with few others. */
Test(cache_lookup, a_choice_reads_each_file_once)
{
    enum { CONFIGS = 40, TIMES = 50 };
    fa_selection c;
    fa_record r = record_of(0, 1, 0);
    for (int i = 0; i < CONFIGS * TIMES; i++) {
        char text[100];
        r = record_of(0, 1 + i, i);
        snprintf(text, sizeof text, "no_such_family:br=%d", 16 * (1 + i % CONFIGS));
        cr_assert_eq(fa_config_parse(&r.config, text), FA_OK);
        cr_assert(fa_record_append(fa_context_store(ctx), &r));
    }
    parsers = files = equals = 0;
    OK(fa_select(ctx, &r.problem, &c, NULL));
    cr_expect_str_neq(c.where, "measured record");
    cr_expect_leq(files, 3, "%ld files were read", files);
    cr_expect_eq(parsers, 0);
    cr_expect_leq(equals, 4 * (CONFIGS * TIMES + CONFIGS * CONFIGS), "%ld comparisons", equals);
}

/* ---- the rule, without tables ---- */

static bool counts(const fa_records *rs, size_t i, fa_how how, const fa_problem *p)
{
    const fa_record *r = &rs->r[i];
    if (r->how != how || !fa_problem_same_class(&r->problem, p) || r->outcome != FA_RAN || !(r->seconds > 0) ||
        (how == FA_MEASURED && !r->verified))
        return false;
    for (size_t j = i + 1; j < rs->n; j++)
        if (rs->r[j].how == how && fa_problem_same_class(&rs->r[j].problem, p) &&
            fa_problem_bucket(&rs->r[j].problem) == fa_problem_bucket(&r->problem) && __real_fa_config_equal(&rs->r[j].config, &r->config))
            return false;
    return true;
}

static const fa_record *by_the_rule(const fa_records *rs, const fa_problem *p)
{
    for (int how = FA_MEASURED; how >= FA_MODELLED; how--) {
        const fa_record *near = NULL, *best = NULL;
        for (size_t i = 0; i < rs->n; i++)
            if (counts(rs, i, (fa_how)how, p) &&
                (!near || fa_records_distance(&rs->r[i].problem, p) < fa_records_distance(&near->problem, p)))
                near = &rs->r[i];
        for (size_t i = 0; near && i < rs->n; i++) {
            const fa_record *r = &rs->r[i];
            if (!counts(rs, i, (fa_how)how, p) || fa_problem_bucket(&r->problem) != fa_problem_bucket(&near->problem))
                continue;
            bool few = r->quality == FA_QUALITY_FEW, fewer = best && best->quality == FA_QUALITY_FEW;
            if (!best || (few != fewer ? fewer : r->seconds < best->seconds))
                best = r;
        }
        if (best)
            return best;
    }
    return NULL;
}

Test(cache_lookup, the_winner_is_that_of_the_rule)
{
    enum { LISTS = 1500, MOST = 24 };
    static const char *const problem[] = { "bf16,d=64,sq=1024", "bf16,d=64,sq=1100",      "bf16,d=64,sq=4096",       "bf16,d=64,sq=512",
                                           "bf16,d=64,sq=2048", "bf16,d=64,b=64,sq=1024", "bf16,d=64,sq=1024,sk=64", "bf16,d=128,sq=1024" };
    int found = 0;
    for (int k = 0; k < LISTS; k++) {
        fa_record r[MOST];
        fa_records rs = { r, random_below(MOST + 1) };
        fa_problem p;
        for (size_t i = 0; i < rs.n; i++) {
            r[i] = record_of((int)random_below(5), 1 + (double)random_below(6), (int)i);
            cr_assert_eq(fa_problem_parse(&r[i].problem, problem[random_below(k % 3 ? 8 : 3)]), FA_OK);
            r[i].how = random_below(4) ? FA_MEASURED : FA_MODELLED;
            r[i].verified = random_below(8) != 0;
            r[i].outcome = random_below(4) ? FA_RAN : FA_BAD_RESULT;
            r[i].quality = random_below(3) ? FA_QUALITY_STEADY : FA_QUALITY_FEW;
        }
        cr_assert_eq(fa_problem_parse(&p, problem[random_below(8)]), FA_OK);
        const fa_record *best = fa_records_best(&rs, &p), *rule = by_the_rule(&rs, &p);
        cr_assert_eq(best, rule, "list %d of %zu: %td, not %td", k, rs.n, best ? best - r : -1, rule ? rule - r : -1);
        found += best != NULL;
    }
    cr_assert(found > LISTS / 2 && found < LISTS, "%d", found);
}

/* ---- lines that are read without the whole parser ---- */

/* A blank after the line is JSON all the same, and none of ours: the whole parser reads it. */
static void same(const char *line)
{
    fa_record a, b;
    char blank[1200];
    snprintf(blank, sizeof blank, "%s ", line);
    memset(&a, 0x5a, sizeof a);
    memset(&b, 0x5a, sizeof b);
    bool flat = fa_record_from_json(&a, line), whole = fa_record_from_json(&b, blank);
    cr_assert_eq(flat, whole, "%s", line);
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0, "%s", line);
}

Test(cache_lookup, lines_are_read_as_the_whole_parser_reads_them)
{
    static const char odd[] = "\"\\{}[]:,.-+eE0 9\n\t\r\x01\x7f\xc3/atfnu";
    fa_text line = { 0 };
    fa_record r = record_of(3, 1e-4 / 3, 5);
    char changed[1100];
    r.low = 0.5;
    r.temperature = 40;
    r.quality = FA_QUALITY_NOISY;
    cr_assert(fa_record_to_json(&r, &line));
    cr_assert_lt(line.n, 1000);
    parsers = 0;
    same(line.s);
    cr_assert_eq(parsers, 1, "one of two needs the whole parser");
    for (size_t i = 0; i < line.n; i++) {
        snprintf(changed, sizeof changed, "%.*s%s", (int)i, line.s, line.s + i + 1);
        same(changed);
        for (size_t c = i % 3; c < sizeof odd - 1; c += 3) {
            snprintf(changed, sizeof changed, "%.*s%c%s", (int)i, line.s, odd[c], line.s + i + 1);
            same(changed);
            snprintf(changed, sizeof changed, "%.*s%c%s", (int)i, line.s, odd[c], line.s + i);
            same(changed);
        }
        snprintf(changed, sizeof changed, "%.*s", (int)i, line.s);
        same(changed);
    }
    fa_text_free(&line);
}

Test(cache_lookup, numbers_are_read_as_the_whole_parser_reads_them)
{
    static const char *const numbers[] = { "0",
                                           "-0",
                                           "1",
                                           "-1",
                                           "00",
                                           "01",
                                           "-",
                                           "+1",
                                           ".5",
                                           "5.",
                                           "0.5",
                                           "-0.5",
                                           "1e3",
                                           "1E+3",
                                           "1e-3",
                                           "1e",
                                           "1e+",
                                           "2147483647",
                                           "2147483648",
                                           "-2147483649",
                                           "999999999999999999",
                                           "9999999999999999999",
                                           "1e400",
                                           "-1e400",
                                           "1e-400",
                                           "4.9e-324",
                                           "0.1",
                                           "1.7976931348623157e308",
                                           "123456789012345678901234567890",
                                           "NaN",
                                           "inf",
                                           "0x10",
                                           "1_0",
                                           "true",
                                           "false",
                                           "null",
                                           "\"1\"",
                                           "[1]",
                                           "{}",
                                           "1 ",
                                           " 1",
                                           "3.0000000000000004" };
    static const char *const members[] = { "seconds", "count", "low", "clock_mhz", "verified", "quality", "chip", "unknown" };
    fa_record r = record_of(3, 1, 5);
    for (size_t m = 0; m < sizeof members / sizeof *members; m++)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            char line[600], config[200];
            fa_config_print(config, sizeof config, &r.config);
            snprintf(line, sizeof line, "{\"problem\":\"bf16,d=64\",\"config\":\"%s\",\"outcome\":\"ok\",\"how\":\"measured\",\"%s\":%s}",
                     config, members[m], numbers[i]);
            same(line);
        }
}

Test(cache_lookup, the_newest_of_each_config_and_tag)
{
    enum { N = 3000, CONFIGS = 37, TAGS = 5 };
    fa_record *r = calloc(N, sizeof *r);
    fa_newest t = { .n = 0 };
    bool met[CONFIGS][TAGS] = { { false } };
    fa_config none = record_of(CONFIGS, 1, 0).config;
    cr_assert_null(fa_newest_find(&t, &none, 0));
    for (size_t i = N; i-- > 0;) {
        int c = (int)random_below(CONFIGS), tag = (int)random_below(TAGS);
        r[i] = record_of(c, (double)i, c * TAGS + tag);
        cr_assert_eq(fa_newest_add(&t, &r[i], (uint64_t)tag), !met[c][tag]);
        const fa_record *found = fa_newest_find(&t, &r[i].config, (uint64_t)tag);
        cr_assert(found && found >= &r[i] && !strcmp(found->date, r[i].date));
        met[c][tag] = true;
    }
    cr_assert_eq(t.n, CONFIGS * TAGS);
    cr_assert_null(fa_newest_find(&t, &none, 0));
    cr_assert_null(fa_newest_find(&t, &r[0].config, TAGS));
    fa_newest_free(&t);
    free(r);
}
