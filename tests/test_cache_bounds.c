/* Work that stays in proportion, times that lie, and a file-size limit: what an archive, a clock or a shell may do to a store. */
#include "cache/archive.h"
#include "cache/archive_head.h"
#include "cache/output.h"
#include "cache/prune.h"
#include "cache/quota.h"
#include "cache/rates.h"
#include "fault.h"
#include "gen/problem.h"
#include "test_cache_entries.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <xxhash.h>

TestSuite(cache_bounds, .init = scratch_make_light, .fini = scratch_remove, .timeout = 120);

static fa_record record_of(const char *chip, int d, int number)
{
    fa_problem p = FA_PROBLEM_INIT;
    fa_record r;
    memset(&r, 0, sizeof r);
    p.dtype = FA_BF16;
    p.d = d;
    p.b = 1, p.hq = p.hkv = 8, p.sq = p.sk = 1024;
    cr_assert_eq(fa_problem_normalize(&r.problem, &p), FA_OK);
    snprintf(r.chip, sizeof r.chip, "%s", chip);
    strcpy(r.arch, "sm_90a");
    cr_assert_eq(fa_config_parse(&r.config, "flash_fwd_mma:br=64,bc=64,warps=4"), FA_OK);
    r.how = FA_MEASURED;
    r.seconds = 1e-6 * number;
    strcpy(r.date, "2026-11-21T04:31:00Z");
    return r;
}

/* An archive of lines alone, in the order given. */
typedef struct maker {
    fa_text body;
    uint32_t lines;
} maker;

static void put_line(maker *m, const fa_record *r)
{
    fa_text line = { 0 };
    cr_assert(fa_record_to_json(r, &line));
    uint64_t n = line.n;
    fa_text_add(&m->body, (const char *)&n, sizeof n);
    fa_text_add(&m->body, line.s, line.n);
    fa_text_free(&line);
    m->lines++;
}

static const char *finish(maker *m, const char *name)
{
    XXH128_canonical_t sum;
    fa_text all = { 0 };
    archive_head h = { .version = ARCHIVE_VERSION, .lines = m->lines, .size = sizeof h + m->body.n + sizeof sum };
    memcpy(h.magic, archive_magic, sizeof h.magic);
    fa_text_add(&all, (const char *)&h, sizeof h);
    fa_text_add(&all, m->body.s, m->body.n);
    XXH128_canonicalFromHash(&sum, XXH3_128bits(all.s, all.n));
    fa_text_add(&all, (const char *)&sum, sizeof sum);
    const char *path = below("%s", name);
    spill(path, all.s, all.n);
    fa_text_free(&all);
    fa_text_free(&m->body);
    *m = (maker){ .lines = 0 };
    return path;
}

/* Calls of `name` that an import makes. */
static long calls_of(const char *name, const char *to, const char *archive, fa_archive_count *n)
{
    fa_store *s = fa_store_open(below("%s", to), NULL, NULL);
    fault_arm_call(name, LONG_MAX, EIO);
    fa_status st = fa_archive_import(s, archive, true, true, n);
    long seen = fault_seen();
    fault_disarm(NULL);
    cr_assert_eq(st, FA_OK, "%s", fa_last_error());
    fa_store_close(s);
    return seen;
}

enum { LINES = 4000 };

/* 36 s before: each line of another problem than the one before had the whole file read again. */
Test(cache_bounds, records_in_any_order)
{
    static const struct {
        const char *name;
        int d[2];
        const char *chip[4];
        long files;
    } rows[] = {
        { "two problems", { 64, 128 }, { "NVIDIA H200", "NVIDIA H200", "NVIDIA H200", "NVIDIA H200" }, 2 },
        { "two chips", { 64, 64 }, { "NVIDIA H200", "NVIDIA A100", "NVIDIA H200", "NVIDIA A100" }, 2 },
        { "chips whose names share a folder", { 64, 64 }, { "NVIDIA H200", "NVIDIA?H200", "NVIDIA H200", "NVIDIA*H200" }, 1 },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        maker m = { .lines = 0 };
        fa_archive_count n;
        char to[20];
        for (int i = 0; i < LINES; i++) {
            fa_record r = record_of(rows[k].chip[i % 4], rows[k].d[i % 2], i + 1);
            put_line(&m, &r);
        }
        snprintf(to, sizeof to, "to%zu", k);
        const char *archive = finish(&m, "p");
        calls_of("read", to, archive, &n);
        cr_expect(n.lines == LINES && n.lines_there == 0, "%s: %zu new, %zu there", rows[k].name, n.lines, n.lines_there);
        long reads = calls_of("read", to, archive, &n); /* of the archive and, once each, of the files */
        cr_expect(n.lines == 0 && n.lines_there == LINES, "%s: %zu new, %zu there", rows[k].name, n.lines, n.lines_there);
        cr_expect_leq(reads, rows[k].files + 4, "%s: %ld reads", rows[k].name, reads);
    }
}

Test(cache_bounds, a_line_that_comes_twice_is_kept_once)
{
    maker m = { .lines = 0 };
    fa_archive_count n;
    fa_record r = record_of("NVIDIA H200", 64, 1), other = record_of("NVIDIA H200", 128, 1);
    for (int i = 0; i < 3; i++) {
        put_line(&m, &r);
        put_line(&m, &other);
    }
    calls_of("write", "to", finish(&m, "p"), &n);
    cr_expect(n.lines == 2 && n.lines_there == 4, "%zu new, %zu there", n.lines, n.lines_there);
}

/* The limit is held, but the folders are not counted again for each kernel. */
Test(cache_bounds, kernels_under_a_limit)
{
    enum { KERNELS = 600, BODY = 1000 };
    fa_archive_count n;
    fa_pruned left;
    fa_store *s = fa_store_open(below("from"), NULL, NULL);
    for (uint64_t k = 0; k < KERNELS; k++)
        cr_assert(entry_put(s, k, BODY));
    cr_assert_eq(fa_archive_export(s, below("p"), NULL, false, &n), FA_OK);
    fa_store_close(s);
    int64_t each = n.bytes / KERNELS;
    for (int shares = 0; shares < 2; shares++) { /* all of it fits; a quarter does */
        s = fa_store_open(below("to%d", shares), NULL, NULL);
        fa_store_set_limit(s, shares ? each * KERNELS / 4 : 2 * each * KERNELS);
        fault_arm_call("fstatat", LONG_MAX, EIO);
        fa_status st = fa_archive_import(s, below("p"), true, true, &n);
        long seen = fault_seen();
        fault_disarm(NULL);
        cr_assert(st == FA_OK && n.entries == KERNELS, "%s", fa_last_error());
        cr_expect_leq(seen, 8 * KERNELS, "%ld calls for %d kernels", seen, KERNELS);
        cr_assert(fa_prune_run(s, &(fa_prune){ .to = 0, .dry_run = true }, NULL, NULL, &left));
        cr_expect_leq(left.bytes, fa_store_limit(s));
        cr_expect_geq(left.bytes, shares ? fa_store_limit(s) / 2 : each * KERNELS * 9 / 10);
        fa_store_close(s);
    }
}

static void date(const char *root, uint64_t key, int64_t seconds)
{
    char hex[33];
    fa_key_print(hex, key_made(key));
    const struct timespec both[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
    cr_assert_eq(utimensat(AT_FDCWD, below("%s/v1/kernels/%.2s/%s.fak", root, hex, hex), both, 0), 0);
}

#define YEAR_2106 4294967295 /* the last second of 32 bits */

Test(cache_bounds, a_time_of_the_future_is_no_use)
{
    fa_pruned out;
    fa_store *s = fa_store_open(below("s"), NULL, NULL);
    for (uint64_t k = 0; k < 3; k++)
        cr_assert(entry_put(s, k, 100));
    date("s", 0, YEAR_2106);
    date("s", 1, time(NULL) + 3600); /* clocks of two machines differ: that one was used just now */
    fa_prune p = { .before = (int64_t)(time(NULL) - 30 * 86400) * 1000000000, .to = -1 };
    cr_assert(fa_prune_run(s, &p, NULL, NULL, &out));
    cr_expect(out.n == 1 && out.left == 2, "%zu went, %zu left", out.n, out.left);
    fa_entry e;
    cr_expect(!fa_entry_get(s, key_made(0), "sm_80", &e));
    cr_expect(entry_put(s, 0, 100));
    date("s", 0, YEAR_2106);
    fa_store_set_limit(s, 3 * out.left_bytes / 2); /* three of them: the next put evicts */
    cr_expect(entry_put(s, 3, 100));
    cr_assert(fa_prune_run(s, &(fa_prune){ .to = 0, .dry_run = true }, NULL, NULL, &out));
    struct stat st;
    char hex[33];
    fa_key_print(hex, key_made(0));
    cr_expect_neq(stat(below("s/v1/kernels/%.2s/%s.fak", hex, hex), &st), 0, "it goes first");
    fa_store_close(s);
}

static volatile sig_atomic_t raised;
static void on_limit(int sig)
{
    (void)sig;
    raised++;
}

/* The signal's default ends the process: none may come, whatever writes. */
Test(cache_bounds, a_file_size_limit_is_a_full_disk)
{
    fa_archive_count n;
    struct rlimit before, small = { .rlim_cur = 100 };
    sigset_t mask, pending;
    fa_output o;
    char big[4096] = "";
    fa_store *from = fa_store_open(below("from"), NULL, NULL), *s = fa_store_open(below("s"), NULL, NULL);
    fa_record r = record_of("NVIDIA H200", 64, 1);
    cr_assert(entry_put(from, 1, 5000) && fa_record_append(from, &r));
    cr_assert_eq(fa_archive_export(from, below("p"), NULL, true, &n), FA_OK);
    for (int handled = 0; handled < 2; handled++) {
        signal(SIGXFSZ, handled ? on_limit : SIG_DFL);
        cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
        small.rlim_max = before.rlim_max;
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
        bool put = entry_put(s, 2, 5000), kept = fa_record_append(s, &r);
        bool rates = fa_rates_save(s, "NVIDIA H200", "2026-11-21T04:31:00Z", &(fa_rates){ 0 });
        fa_status in = fa_archive_import(s, below("p"), true, true, &n), out = fa_archive_export(from, below("out"), NULL, true, &n);
        fa_status opened = fa_output_open(&o, below("file"));
        fa_status written = opened == FA_OK ? fa_output_write(&o, big, sizeof big) : opened;
        char message[300];
        snprintf(message, sizeof message, "%s", fa_last_error());
        fa_status closed = fa_output_close(&o, false);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
        cr_expect(!put && !kept && !rates);
        cr_expect(in == FA_IO && out == FA_IO && opened == FA_OK && written == FA_IO && closed == FA_OK);
        cr_expect(strstr(message, "/file: cannot be written: File too large"), "%s", message);
        cr_expect_eq(raised, 0);
        cr_assert(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigpending(&pending) == 0);
        cr_expect(!sigismember(&mask, SIGXFSZ) && !sigismember(&pending, SIGXFSZ));
        cr_expect(access(below("out"), F_OK) != 0 && access(below("file"), F_OK) != 0);
    }
    signal(SIGXFSZ, SIG_DFL);
    fa_store_close(s);
    fa_store_close(from);
    DIR *d = opendir(scratch);
    for (struct dirent *e; (e = readdir(d));)
        cr_expect(!strstr(e->d_name, ".fagen-"), "%s was left", e->d_name);
    closedir(d);
    d = opendir(below("s/v1/kernels"));
    for (struct dirent *e; (e = readdir(d));)
        cr_expect(strncmp(e->d_name, ".put-", 5), "%s was left", e->d_name);
    closedir(d);
}

/* Without locks only the age of a journal tells that its import died. */
Test(cache_bounds, a_journal_where_locks_do_not_work)
{
    char hex[33], text[100];
    fa_store *s = fa_store_open(below("s"), NULL, NULL);
    cr_assert(entry_put(s, 1, 100));
    fa_store_close(s);
    fa_key_print(hex, key_made(1));
    snprintf(text, sizeof text, "fagen import 1\nkernels\nnew %s\nend\n", hex);
    spill(below("s/v1/import"), text, strlen(text));
    cr_assert_eq(chmod(below("s/v1/import"), 0600), 0);
    for (int hours = 0; hours < 3; hours += 2) {
        const struct timespec then = { .tv_sec = time(NULL) - 3600 * hours }, both[2] = { then, then };
        cr_assert_eq(utimensat(AT_FDCWD, below("s/v1/import"), both, 0), 0);
        fault_arm_call("flock", 1, ENOLCK);
        s = fa_store_open(below("s"), NULL, NULL);
        cr_expect(fault_disarm(NULL));
        cr_expect_eq(entry_hit(s, 1, 100), hours == 0, "%d hours old", hours);
        cr_expect_eq(access(below("s/v1/import"), F_OK) == 0, hours == 0, "%d hours old", hours);
        fa_store_close(s);
    }
}

/* What goes for the limit cannot be brought back: an import that fails has evicted nothing. */
Test(cache_bounds, an_import_that_fails_evicts_nothing)
{
    enum { KERNELS = 20, BODY = 1000 };
    fa_archive_count n;
    long writes;
    fa_store *from = fa_store_open(below("from"), NULL, NULL), *s = fa_store_open(below("s"), NULL, NULL);
    for (uint64_t k = 0; k < KERNELS; k++)
        cr_assert(entry_put(from, k, BODY) && entry_put(s, k + KERNELS, BODY));
    cr_assert_eq(fa_archive_export(from, below("p"), NULL, false, &n), FA_OK);
    fa_store_set_limit(s, n.bytes * 3 / 2);
    uint64_t before = scratch_sum_of(below("s"));
    fault_arm_call("write", LONG_MAX, EIO);
    cr_assert_eq(fa_archive_import(s, below("p"), false, true, &n), FA_OK);
    writes = fault_seen();
    fault_disarm(NULL);
    fault_arm_call("write", writes, EIO); /* the last kernel */
    cr_expect_eq(fa_archive_import(s, below("p"), true, true, &n), FA_IO);
    fault_disarm(NULL);
    for (uint64_t k = 0; k < KERNELS; k++)
        cr_expect(entry_hit(s, k + KERNELS, BODY) == 1 && entry_hit(s, k, BODY) == 0);
    cr_expect_eq(fa_archive_import(s, below("p"), true, true, &n), FA_OK);
    fa_pruned left;
    cr_assert(fa_prune_run(s, &(fa_prune){ .to = 0, .dry_run = true }, NULL, NULL, &left));
    cr_expect_leq(left.bytes, fa_store_limit(s));
    cr_expect_neq(scratch_sum_of(below("s")), before);
    fa_store_close(s);
    fa_store_close(from);
}
