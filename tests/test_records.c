/* Records that travel: what an import refuses, what it verifies, and what stays as it was. */
#include "autotune/search/search.h"
#include "cache/entry.h"
#include "cache/record_text.h"
#include "gen/score/known.h"
#include "gen/space.h"
#include "runtime/choose/pins.h"
#include "runtime/choose/select.h"
#include "test_template_edit.h"
#include "test_verify_device.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <xxhash.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

static fa_context *ctx;
static fa_problem p; /* what records are of */
static fa_config best, second;

static fa_problem parse(const char *text)
{
    fa_problem q;
    OK(fa_problem_parse(&q, text));
    return q;
}

static int take(void *user, const fa_candidate_info *c)
{
    fa_gen *g = user;
    fa_config x;
    OK(fa_gen_config_parse(g, &x, c->config));
    if (c->runs)
        best = x;
    else if (!second.n && !strncmp(c->config, best.family, strlen(best.family)))
        second = x;
    return 0;
}

static void open_records(void)
{
    fa_gen *g;
    scratch_make();
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    ctx = test_context(NULL, below("cache"));
    p = parse("bf16,d=64,mask=causal,b=1,hq=2,hkv=2,sq=128,sk=128");
    OK(fa_gen_open(&g, NULL));
    OK(fa_candidates(ctx, &p, take, g));
    fa_gen_close(g);
    cr_assert(best.n && second.n);
}

static void close_records(void)
{
    fa_destroy(ctx);
    scratch_remove();
}

TestSuite(records, .init = open_records, .fini = close_records, .timeout = 150);

/* A record of this chip as another machine would have measured it. */
static fa_record made(const fa_config *c, double seconds)
{
    fa_record r = { .problem = p, .config = *c, .how = FA_MEASURED, .seconds = seconds, .spread = 0.01, .count = 30, .verified = true };
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    snprintf(r.version, sizeof r.version, "%s", FA_VERSION_STRING);
    snprintf(r.date, sizeof r.date, "2026-11-25T00:00:00Z");
    return r;
}

static const fa_text *text_of(const fa_record *r, size_t n)
{
    static fa_text t;
    t.n = 0;
    OK(fa_record_text_write(&t, r, n));
    return &t;
}

static fa_status import(const fa_text *t, fa_records_count *n)
{
    *n = (fa_records_count)FA_RECORDS_COUNT_INIT;
    return fa_records_import_text(ctx, t->s, t->n, NULL, n);
}

static fa_selection selected(void)
{
    fa_selection s;
    OK(fa_select(ctx, &p, &s, NULL));
    return s;
}

/* From one machine to another, twice, back, and forgotten. */
Test(records, a_round_trip)
{
    static char text[1 << 16];
    size_t n, again;
    fa_records_count count;
    fa_record r[] = { made(&second, 1e-5), made(&best, 2e-5) };
    cr_assert(fa_record_append(fa_context_store(ctx), &r[1]));
    r[1].seconds = 3e-5;
    snprintf(r[1].date, sizeof r[1].date, "2026-11-26T00:00:00Z");
    for (int i = 0; i < 2; i++)
        cr_assert(fa_record_append(fa_context_store(ctx), &r[i]));
    OK(fa_records_export_text(ctx, NULL, NULL, 0, &n));
    cr_expect_eq(fa_records_export_text(ctx, NULL, text, n - 1, &again), FA_INVALID);
    OK(fa_records_export_text(ctx, &p, text, sizeof text, &again));
    cr_expect(again == n && !strncmp(text, "fagen records 1 2 ", 18), "of each config its newest: %.40s", text);
    OK(fa_records_export(ctx, NULL, below("records")));
    fa_problem other = p;
    other.mask = FA_MASK_NONE;
    OK(fa_records_export_text(ctx, &other, text, sizeof text, &again));
    cr_expect(!strncmp(text, "fagen records 1 0 ", 18));
    count = (fa_records_count)FA_RECORDS_COUNT_INIT;
    OK(fa_records_import(ctx, below("records"), NULL, &count));
    cr_expect(count.records == 2 && count.measured == 2 && count.added == 0, "measured here");
    fa_destroy(ctx);

    ctx = test_context(NULL, below("other"));
    count = (fa_records_count)FA_RECORDS_COUNT_INIT;
    OK(fa_records_import(ctx, below("records"), NULL, &count));
    cr_expect(count.records == 2 && count.added == 1 && count.slower == 1 && count.size == sizeof count, "%d, %d", count.added,
              count.slower);
    fa_selection s = selected();
    cr_expect(fa_config_equal(&s.config, &second) && !strcmp(s.where, "imported record") && strstr(s.why, "imported"), "%s", s.why);
    uint64_t before = scratch_sum_of(below("other"));
    OK(fa_records_import(ctx, below("records"), NULL, &count));
    cr_expect(count.added == 0 && count.there == 1 && count.slower == 1 && scratch_sum_of(below("other")) == before, "twice is once");
    OK(fa_records_export_text(ctx, NULL, text, sizeof text, &n));
    cr_expect(strstr(text, "\"imported\":true"), "%s", text);
    int64_t lines;
    OK(fa_records_forget(ctx, &other, FA_FORGET_ALL, &lines));
    cr_expect_eq(lines, 0);
    OK(fa_records_forget(ctx, NULL, FA_FORGET_IMPORTED, &lines));
    cr_expect(lines == 1 && strcmp(selected().where, "imported record") != 0);
    OK(fa_records_export_text(ctx, NULL, text, sizeof text, &n));
    cr_expect(!strncmp(text, "fagen records 1 0 ", 18));
}

/* Guesses travel between simulators and chips of one arch; they come after what ships. */
Test(records, a_guess)
{
    fa_records_count count;
    fa_record r = made(&second, 1e-5);
    p = r.problem = parse("bf16,d=72,mask=causal,b=1,hq=2,hkv=2,sq=128,sk=128"); /* nothing ships for it */
    r.config = selected().config;
    r.how = FA_MODELLED;
    r.count = 0, r.verified = false;
    strcpy(r.chip, r.arch);
    OK(import(text_of(&r, 1), &count));
    cr_expect(count.added == 1 && !strcmp(selected().where, "modelled record"), "%d added: %s", count.added, fa_last_error());
    strcpy(r.version, "0.0.9");
    OK(import(text_of(&r, 1), &count));
    cr_expect_eq(count.elsewhere, 1, "a guess is of its version");
    p = r.problem = parse("bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096"); /* a winner of another chip is chosen */
    fa_selection before = selected();
    cr_expect_str_eq(before.where, "default table");
    r.config = before.config;
    r.seconds = before.seconds;
    strcpy(r.version, FA_VERSION_STRING);
    OK(import(text_of(&r, 1), &count));
    cr_expect_eq(count.added, 1);
    cr_expect(!strcmp(selected().why, before.why), "a guess that it is fast takes nothing from a winner: %s", selected().why);
}

/* Whatever is wrong with one line, nothing is imported. */
Test(records, bad_records_are_refused)
{
    static const struct {
        const char *set, *says; /* set: which of the changes below */
    } bad[] = {
        { "outcome", "outcome is wrong" },
        { "arch", "arch is \"sm_42\"" },
        { "chip", "chip is \"\"" },
        { "version", "version is \"9.0.0\"" },
        { "words", "version is \"old\"" },
        { "date", "date is \"yesterday\"" },
        { "future", "date is \"2999-" },
        { "unverified", "verified: false" },
        { "samples", "of 0 samples" },
        { "zero", "seconds 0" },
        { "long", "seconds 20000" },
        { "low", "low 2e-05" },
        { "spread", "spread -1" },
        { "fast", "below the roofline" },
        { "family", "config: " },
        { "tunable", "config: " },
        { "value", "config: " },
        { "fit", "config: " },
        { "op", "config: " },
        { "guess", "chip is \"Simulated sm_80\"; accepted: sm_80" },
    };
    fa_records_count count;
    uint64_t before = scratch_sum_of(below("cache"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fa_record r[] = { made(&second, 1e-5), made(&best, 1e-5) };
        fa_record *x = &r[1];
        const char *set = bad[i].set;
        if (!strcmp(set, "outcome"))
            x->outcome = FA_BAD_RESULT;
        else if (!strcmp(set, "arch"))
            strcpy(x->arch, "sm_42");
        else if (!strcmp(set, "chip"))
            x->chip[0] = 0;
        else if (!strcmp(set, "version"))
            strcpy(x->version, "9.0.0");
        else if (!strcmp(set, "words"))
            strcpy(x->version, "old");
        else if (!strcmp(set, "date"))
            strcpy(x->date, "yesterday");
        else if (!strcmp(set, "future"))
            strcpy(x->date, "2999-11-25T00:00:00Z");
        else if (!strcmp(set, "unverified"))
            x->verified = false;
        else if (!strcmp(set, "samples"))
            x->count = 0;
        else if (!strcmp(set, "zero"))
            x->seconds = 0;
        else if (!strcmp(set, "long"))
            x->seconds = 2e4;
        else if (!strcmp(set, "low"))
            x->low = 2e-5, x->high = 3e-5;
        else if (!strcmp(set, "spread"))
            x->spread = -1;
        else if (!strcmp(set, "fast"))
            x->seconds = 1e-9;
        else if (!strcmp(set, "family"))
            strcpy(x->config.family, "flash_fwd_gold");
        else if (!strcmp(set, "tunable"))
            strcpy(x->config.tunable[0].name, "rows_");
        else if (!strcmp(set, "value"))
            x->config.tunable[0].value = 12345;
        else if (!strcmp(set, "fit"))
            OK(fa_config_parse(&x->config,
                               "flash_fwd_mma:br=128,bc=256,warps=4,stages_k=4,stages_v=4,order=0,q_regs=1,pack=0,lag=0,ctas=1"));
        else if (!strcmp(set, "op"))
            OK(fa_config_parse(&x->config, "merge:warps=4,team=1,ahead=4"));
        else
            x->how = FA_MODELLED;
        fa_status st = import(text_of(r, 2), &count);
        cr_expect_eq(st, FA_INVALID, "%s: %s: %s", set, fa_status_name(st), fa_last_error());
        cr_expect(strstr(fa_last_error(), bad[i].says) && strstr(fa_last_error(), "line 3"), "%s: %s", set, fa_last_error());
        cr_expect(count.records == 0 && count.added == 0 && count.size == sizeof count);
    }
    fa_record twice[] = { made(&best, 1e-5), made(&second, 1e-5), made(&best, 2e-5) };
    twice[2].problem.sq = 129; /* of the bucket */
    cr_expect_eq(import(text_of(twice, 3), &count), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "line 4: its config, class and bucket"), "%s", fa_last_error());
    cr_expect_eq(scratch_sum_of(below("cache")), before, "something was written");
}

static fa_text edited(const fa_text *from, const char *find, const char *replace)
{
    fa_text t = { 0 };
    const char *at = strstr(from->s, find);
    cr_assert_not_null(at, "%s", find);
    fa_text_add(&t, from->s, (size_t)(at - from->s));
    fa_text_str(&t, replace);
    fa_text_str(&t, at + strlen(find));
    return t;
}

/* One line with a check of its own. */
static void sign(fa_text *out, const char *line)
{
    char hex[33];
    fa_text lines = { 0 };
    fa_text_fmt(&lines, "%s\n", line);
    XXH128_hash_t h = XXH3_128bits(lines.s, lines.n);
    fa_key_print(hex, (fa_key){ h.low64, h.high64 });
    fa_text_fmt(out, "fagen records 1 1 %s\n%s", hex, lines.s);
    fa_text_free(&lines);
}

/* The bytes: cut anywhere, of another version, another count, repeated members, what is no record. */
Test(records, bad_texts_are_refused)
{
    fa_records_count count = FA_RECORDS_COUNT_INIT;
    fa_record r[] = { made(&second, 1e-5), made(&best, 1e-5) };
    fa_text good = { 0 };
    fa_text_str(&good, text_of(r, 2)->s);
    uint64_t before = scratch_sum_of(below("cache"));
    for (size_t n = 0; n < good.n; n += n < 80 ? 1 : 37) {
        cr_expect_eq(fa_records_import_text(ctx, good.s, n, NULL, &count), FA_INVALID, "of %zu bytes %zu: %s", good.n, n, fa_last_error());
        char *flipped = strndup(good.s, good.n);
        flipped[n] ^= 1;
        cr_expect_eq(fa_records_import_text(ctx, flipped, good.n, NULL, &count), FA_INVALID, "byte %zu", n);
        cr_expect(strstr(fa_last_error(), "records: ") == fa_last_error(), "%s", fa_last_error());
        free(flipped);
    }
    static const struct {
        const char *find, *replace, *says;
    } edits[] = {
        { "records 1 ", "records 2 ", "accepted: format version 1" },
        { "records 1 2 ", "records 1 70000 ", "accepted: a count of at most 65536" },
        { "records 1 2 ", "records 1 -2 ", "accepted: a count of at most" },
        { "records 1 2 ", "records 1 3 ", "2 lines, where the first tells of 3" },
        { "records 1 2 ", "records 1 1 ", "more lines than the 1" },
        { "fagen records", "fagen recipes", "not a text of records" },
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        fa_text t = edited(&good, edits[i].find, edits[i].replace);
        cr_expect_eq(import(&t, &count), FA_INVALID, "%s", edits[i].replace);
        cr_expect(strstr(fa_last_error(), edits[i].says), "%s: %s", edits[i].replace, fa_last_error());
        fa_text_free(&t);
    }
    /* with a check of its own, a line may hold anything: a member twice, a member of another type, no JSON */
    static const char *const lines[][2] = {
        { "\"seconds\":", "\"seconds\":1.0,\"seconds\":" },
        { "\"outcome\":\"ok\"", "\"outcome\":\"fine\"" },
        { "\"how\":\"measured\"", "\"how\":3" },
        { "\"config\":\"", "\"config\":\"::" },
        { "\"problem\":\"bf16", "\"problem\":\"bf17" },
        { "{\"problem\"", "[\"problem\"" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fa_text json = { 0 }, whole = { 0 };
        cr_assert(fa_record_to_json(&r[0], &json));
        fa_text line = edited(&json, lines[i][0], lines[i][1]);
        sign(&whole, line.s);
        cr_expect_eq(import(&whole, &count), FA_INVALID, "%s", line.s);
        cr_expect(strstr(fa_last_error(), "line 2 is no record"), "%s", fa_last_error());
        fa_text_free(&json), fa_text_free(&line), fa_text_free(&whole);
    }
    cr_expect_eq(fa_records_import_text(ctx, NULL, 0, NULL, &count), FA_INVALID);
    cr_expect_eq(scratch_sum_of(below("cache")), before, "something was written");
    OK(import(&good, &count));
    cr_expect_eq(count.added, 1);
    fa_text_free(&good);
}

/* Files: whose they are, how large, of what kind. */
Test(records, bad_files_are_refused)
{
    fa_records_count count = FA_RECORDS_COUNT_INIT;
    fa_record r = made(&best, 1e-5);
    const fa_text *t = text_of(&r, 1);
    spill(below("good"), t->s, t->n);
    cr_assert_eq(chmod(below("good"), 0620), 0);
    cr_expect_eq(fa_records_import(ctx, below("good"), NULL, &count), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "group-writable"), "%s", fa_last_error());
    cr_assert_eq(chmod(below("good"), 0644), 0);
    cr_assert_eq(symlink(below("good"), below("link")), 0);
    cr_expect_eq(fa_records_import(ctx, below("link"), NULL, &count), FA_INVALID);
    if (geteuid() == 0) {
        cr_assert_eq(chown(below("good"), 12345, 12345), 0);
        cr_expect_eq(fa_records_import(ctx, below("good"), NULL, &count), FA_INVALID);
        cr_expect(strstr(fa_last_error(), "owned by another user"), "%s", fa_last_error());
        cr_assert_eq(chown(below("good"), 0, 0), 0);
    }
    spill(below("large"), "fagen records 1", 15);
    cr_assert_eq(truncate(below("large"), ((off_t)64 << 20) + 1), 0);
    cr_expect_eq(fa_records_import(ctx, below("large"), NULL, &count), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "too large"), "%s", fa_last_error());
    cr_expect_eq(fa_records_import(ctx, below("absent"), NULL, &count), FA_IO);
    cr_expect_eq(fa_records_import(ctx, scratch, NULL, &count), FA_INVALID);
    cr_expect_eq(fa_records_import(ctx, NULL, NULL, &count), FA_INVALID);
    cr_expect_eq(fa_records_import(ctx, "", NULL, &count), FA_INVALID);
    cr_expect_eq(fa_records_export(ctx, NULL, NULL), FA_INVALID);
    cr_expect_eq(fa_records_export(ctx, NULL, below("none/at/all")), FA_IO);
    fa_records_options bad = { sizeof bad, 7, NULL, NULL };
    cr_expect_eq(fa_records_import(ctx, below("good"), &bad, &count), FA_INVALID);
    count.size = 3;
    cr_expect_eq(fa_records_import(ctx, below("good"), NULL, &count), FA_INVALID);
    cr_expect_eq(fa_records_forget(ctx, NULL, 2, NULL), FA_INVALID);
    count = (fa_records_count)FA_RECORDS_COUNT_INIT;
    OK(fa_records_import(ctx, below("good"), NULL, &count));
    cr_expect_eq(count.added, 1);
}

/* A time from elsewhere, shorter or longer, leaves what was measured here; what is measured later takes the place of an import. */
Test(records, never_over_what_was_measured_here)
{
    fa_records_count count;
    fa_record own = made(&best, 2e-5);
    cr_assert(fa_record_append(fa_context_store(ctx), &own));
    uint64_t before = scratch_sum_of(below("cache"));
    const double seconds[] = { 1e-5, 4e-5 };
    for (int i = 0; i < 2; i++) {
        fa_record r[] = { made(&best, seconds[i]), made(&second, seconds[i] / 2) };
        strcpy(r[0].date, "2026-11-26T00:00:00Z"); /* later */
        OK(import(text_of(r, 2), &count));
        cr_expect(count.measured == 2 && count.added == 0);
        cr_expect_eq(scratch_sum_of(below("cache")), before, "%g", seconds[i]);
        cr_expect(selected().seconds == 2e-5 && !strcmp(selected().where, "measured record"));
    }
    /* the other way round */
    fa_destroy(ctx);
    ctx = test_context(NULL, below("other"));
    fa_record fast = made(&second, 1e-5);
    strcpy(fast.date, "2026-11-26T00:00:00Z");
    OK(import(text_of(&fast, 1), &count));
    cr_expect(count.added == 1 && !strcmp(selected().where, "imported record"));
    own = made(&second, 9e-5); /* the same config, by a clock that is behind */
    cr_assert(fa_record_append(fa_context_store(ctx), &own));
    cr_expect(!strcmp(selected().where, "measured record") && selected().seconds == 9e-5, "%s", selected().why);
    own = made(&best, 5e-5);
    cr_assert(fa_record_append(fa_context_store(ctx), &own));
    fa_selection s = selected();
    cr_expect(fa_config_equal(&s.config, &best) && s.seconds == 5e-5, "%s", s.why);
    /* a failure of this machine counts, whatever elsewhere ran */
    own.outcome = FA_BAD_RESULT;
    own.problem.sq = own.problem.sk = 4096; /* another bucket, the same class: of the config */
    own.config = second;
    cr_assert(fa_record_append(fa_context_store(ctx), &own));
    char name[512]; /* though the import is the later one */
    fa_config_print(name, sizeof name, &second);
    cr_expect_eq(fa_pin(ctx, &p, name), FA_WRONG, "%s", fa_last_error());
    fast.problem.sq = fast.problem.sk = 1024;
    fast.seconds = 1e-3;
    OK(import(text_of(&fast, 1), &count));
    cr_expect_eq(count.measured, 1);
}

/* Of other chips nothing is taken, but all of it is looked at. */
Test(records, of_other_chips)
{
    fa_records_count count;
    static const struct {
        const char *problem, *config, *chip;
        double seconds;
        bool plausible;
    } rows[] = {
        /* 4 b hq sq sk d / 2 FLOP, at 989 TFLOP/s: 139 us */
        { "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=8192,sk=8192", "flash_fwd_wgmma", "NVIDIA H200", 300e-6, true },
        { "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=8192,sk=8192", "flash_fwd_wgmma", "NVIDIA H200", 100e-6, false },
        { "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=8192,sk=8192", "flash_fwd_wgmma", "NVIDIA H100 80GB HBM3", 100e-6, false },
        { "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=8192,sk=8192", "flash_fwd_wgmma", "Another", 100e-6, true },
        /* 2 b hkv sk d bytes twice: 1.07 GB at 4.56 TB/s: 235 us */
        { "bf16,d=128,b=16,hq=32,hkv=8,sq=1,sk=16384", "decode_mma", "NVIDIA H200", 250e-6, true },
        { "bf16,d=128,b=16,hq=32,hkv=8,sq=1,sk=16384", "decode_mma", "NVIDIA H200", 150e-6, false },
        /* with lengths half of the keys, and no less */
        { "bf16,d=128,features=lengths,b=16,hq=32,hkv=8,sq=1,sk=16384", "decode_mma", "NVIDIA H200", 140e-6, true },
        { "bf16,d=128,features=lengths,b=16,hq=32,hkv=8,sq=1,sk=16384", "decode_mma", "NVIDIA H200", 80e-6, false },
    };
    fa_gen *g;
    OK(fa_gen_open(&g, NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_space space;
        fa_record r = made(&best, rows[i].seconds);
        r.problem = parse(rows[i].problem);
        strcpy(r.arch, "sm_90a");
        strcpy(r.chip, rows[i].chip);
        OK(fa_space_list(g, &r.problem, fa_arch_find("sm_90a"), 0, rows[i].config, &space));
        for (size_t k = 0; k < space.n; k++)
            if (space.points[k].fits)
                r.config = space.points[k].config;
        fa_space_free(&space);
        fa_status st = import(text_of(&r, 1), &count);
        cr_expect_eq(st == FA_OK, rows[i].plausible, "%s %s %g: %s", rows[i].problem, rows[i].chip, rows[i].seconds, fa_last_error());
        cr_expect_eq(count.elsewhere, rows[i].plausible);
        if (!rows[i].plausible)
            cr_expect(strstr(fa_last_error(), "below the roofline"), "%s", fa_last_error());
    }
    fa_gen_close(g);
}

static int stop_at(void *user, const char *line, double done)
{
    cr_expect((strstr(line, "compile ") == line || strstr(line, "verify ") == line) && strchr(line, ':') && done >= 0 && done <= 1, "%s",
              line);
    return --*(int *)user == 0;
}

/* A stop, or a disk that is full, leaves the records as they were. */
Test(records, nothing_half_done)
{
    fa_records_count count = FA_RECORDS_COUNT_INIT;
    fa_record r[] = { made(&best, 1e-5), made(&best, 1e-4) };
    r[1].problem.sq = r[1].problem.sk = 512;
    const fa_text *t = text_of(r, 2);
    for (int at = 1; at <= 4; at++) { /* a compile and a verify of each */
        int left = at;
        fa_records_options o = { sizeof o, 0, stop_at, &left };
        cr_expect_eq(fa_records_import_text(ctx, t->s, t->n, &o, &count), FA_INTERRUPTED);
        cr_expect(count.added == 0 && count.records == 0);
        fa_records rs = fa_records_load(fa_context_store(ctx), NULL, NULL);
        cr_expect_eq(rs.n, 0);
        fa_records_free(&rs);
    }
    struct rlimit small = { 300, RLIM_INFINITY }, any = { RLIM_INFINITY, RLIM_INFINITY };
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    fa_status st = fa_records_import_text(ctx, t->s, t->n, NULL, &count);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &any), 0);
    cr_expect_eq(st, FA_IO, "%s", fa_last_error());
    fa_records rs = fa_records_load(fa_context_store(ctx), NULL, NULL);
    cr_expect_eq(rs.n, 0);
    fa_records_free(&rs);
    OK(fa_records_import_text(ctx, t->s, t->n, NULL, &count));
    cr_expect_eq(count.added, 2);
    fa_destroy(ctx);
    ctx = test_context(NULL, "");
    cr_expect_eq(fa_records_import_text(ctx, t->s, t->n, NULL, &count), FA_IO, "without a cache");
}

/* Here a family computes wrongly: its record is not taken, the failure is on record, and the next of the bucket takes its place. */
Test(records, what_is_wrong_here_is_not_taken)
{
    static const edit fault = { "flash1_fwd.cu", "fmaf(scale_new, l, scale_old)", "fmaf(scale_new, l, l_old)" };
    fa_records_count count;
    fa_config wrong;
    fa_destroy(ctx);
    write_edited(&fault);
    ctx = test_context(scratch, below("cache"));
    p = parse("fp32,d=16,mask=causal,b=1,hq=2,hkv=2,sq=128,sk=128");
    best = selected().config;
    OK(fa_config_parse(&wrong, "flash1_fwd:br=32,bc=32"));
    fa_record r[] = { made(&best, 2e-5), made(&wrong, 1e-5) };
    OK(import(text_of(r, 2), &count));
    cr_expect(count.wrong == 1 && count.added == 1, "%d wrong, %d added", count.wrong, count.added);
    fa_selection s = selected();
    cr_expect(fa_config_equal(&s.config, &best) && !strcmp(s.where, "imported record"), "%s", s.why);
    char name[512];
    fa_config_print(name, sizeof name, &wrong);
    cr_expect_eq(fa_pin(ctx, &p, name), FA_WRONG, "%s", fa_last_error());
    OK(import(text_of(&r[1], 1), &count));
    cr_expect_eq(count.measured, 1, "it is known to fail here");
}

/* A search takes no outcome of an import; its winner waits for a pin. */
Test(records, a_tuning_takes_no_outcome_of_an_import)
{
    static char text[1 << 16];
    fa_records_count count = FA_RECORDS_COUNT_INIT;
    fa_search_options limit = { .limit = 1 };
    fa_site site = fa_site_of(ctx);
    fa_tuning t;
    size_t n;
    p = parse("fp32,d=40,b=1,hq=2,hkv=2,sq=128,sk=128"); /* no winner that ships runs it */
    OK(fa_search(&site, &p, &limit, &t));
    cr_expect_eq(t.counts.resumed, 0);
    fa_tuning_free(&t);
    OK(fa_records_export_text(ctx, &p, text, sizeof text, &n));
    fa_destroy(ctx);

    ctx = test_context(NULL, below("other"));
    site = fa_site_of(ctx);
    OK(fa_records_import_text(ctx, text, n, NULL, &count));
    cr_assert_eq(count.added, 1);
    char name[512];
    fa_config pinned = selected().config;
    fa_config_print(name, sizeof name, &pinned);
    OK(fa_pin(ctx, &p, name));
    OK(fa_search(&site, &p, &limit, &t));
    cr_expect_eq(t.counts.resumed, 0, "an import is no outcome of this machine");
    fa_tuning_free(&t);
    const fa_plan_key key = fa_plan_key_of(&p);
    cr_expect_null(fa_table_find(ctx->table, &key), "the winner waits");
    OK(fa_search(&site, &p, &limit, &t));
    cr_expect_eq(t.counts.resumed, 1);
    fa_tuning_free(&t);
}

/* What another process writes of a program that this one has never read. */
static void written_by_another(char *line, size_t n, const char *text)
{
    int pipe_of[2], status;
    cr_assert_eq(pipe(pipe_of), 0);
    pid_t child = fork();
    if (!child) {
        fa_record r = { .problem = p, .config = best, .how = FA_MEASURED, .verified = true, .seconds = 1e-5 };
        const fa_program *program;
        fa_text out = { 0 };
        bool ok = fa_score_known_read(&program, "score", text, strlen(text)) == FA_OK;
        if (ok)
            fa_score_known_name(&r.problem, program);
        ok = ok && fa_record_to_json(&r, &out) && write(pipe_of[1], out.s, out.n) == (ssize_t)out.n;
        _exit(!ok);
    }
    close(pipe_of[1]);
    ssize_t got = read(pipe_of[0], line, n - 1);
    close(pipe_of[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(got > 0 && status == 0);
    line[got] = 0;
}

/* A record brings its score program along; one that does not, or brings another, is none. */
Test(records, a_record_carries_its_score_program)
{
    char line[4096], other[4096];
    fa_record r;
    written_by_another(line, sizeof line, "-- \"quoted\\\"\n\tc = scalar(7) function score(s, b, h, i, j) return s * c * 0.125 end\n");
    char *at = strstr(line, "\"problem\"");
    cr_assert(at && line[0] == '{');
    snprintf(other, sizeof other, "{%s", at);
    cr_expect(!fa_record_from_json(&r, other), "its program is not told, and not known");
    snprintf(other, sizeof other, "{\"score\":\"function score(s, b, h, i, j) return s end\",%s", at);
    cr_expect(!fa_record_from_json(&r, other), "another program is told");
    snprintf(other, sizeof other, "{\"score\":\"function score(s,\",%s", at);
    cr_expect(!fa_record_from_json(&r, other), "no program is told");
    cr_assert(fa_record_from_json(&r, line), "%s", line);
    const fa_program *program = fa_score_known(&r.problem);
    cr_assert(program && program->ir.operands == 1);
    cr_expect_eq(program->ir.operand[0].value, 7);
    snprintf(other, sizeof other, "{%s", at);
    cr_expect(fa_record_from_json(&r, other), "it is known by now");
}
