/* Each call that the cache makes fails, by its name: the first ones, and some of those after them, with several errors in turn. Whoever
 * asked may give up; nobody crashes, leaves memory or a descriptor, or leaves something that reads as another kernel; and the
 * next try works. The suite cache_faults goes through calls in their order; this one sees to those that come after hundreds of others.
 * Allocations all fail, one by one. FAGEN_TEST_FULL=1: calls too, each with every error. */
#include "cache/archive.h"
#include "cache/load_marker.h"
#include "cache/lock.h"
#include "cache/prune.h"
#include "cache/rates.h"
#include "cache/record.h"
#include "cache/scan.h"
#include "fault.h"
#include "gen/problem.h"
#include "test_cache_entries.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>

enum { ENTRIES = 4, BYTES = 300, NEW = 4 };

static char archive[300], made[300];
static fa_entry fresh[NEW];

static fa_record record_of(int br)
{
    fa_record r;
    char config[64];
    memset(&r, 0, sizeof r);
    cr_assert_eq(fa_problem_parse(&r.problem, "bf16,d=64,b=1,hq=8,sq=1024"), FA_OK);
    snprintf(config, sizeof config, "flash_fwd_mma:br=%d,bc=64,warps=4", br);
    cr_assert_eq(fa_config_parse(&r.config, config), FA_OK);
    strcpy(r.chip, "NVIDIA H200");
    strcpy(r.arch, "sm_90a");
    strcpy(r.date, "2026-11-21T04:31:00Z");
    r.how = FA_MEASURED;
    r.verified = true;
    r.seconds = br;
    return r;
}

static const fa_rates rates = { .mma16 = 1, .hbm_bytes = 2, .clock = 1.5 };

static void hear(void *user, const char *message)
{
    (void)message;
    ++*(int *)user;
}

/* A store with kernels, a damaged one, one that nobody may load, a temporary file and a mark of the dead, records and rates. */
static void fill(const char *root)
{
    fa_store *s = fa_store_open(root, NULL, NULL);
    fa_record r = record_of(32), q = record_of(64);
    char name[33];
    cr_assert_not_null(s);
    for (uint64_t n = 0; n < ENTRIES; n++)
        cr_assert(entry_put(s, n, BYTES));
    cr_assert(fa_record_append(s, &r) && fa_record_append(s, &q) && fa_rates_save(s, "NVIDIA H200", "2026-11-21", &rates));
    fa_store_close(s);
    mkdir(below("%s/v1/foreign", strrchr(root, '/') + 1), 0700);
    mkdir(below("%s/v1/loading", strrchr(root, '/') + 1), 0700);
    mkdir(below("%s/v1/kernels/zz", strrchr(root, '/') + 1), 0700);
    fa_key_print(name, key_made(1));
    spill(below("%s/v1/kernels/%.2s/%s.fak", strrchr(root, '/') + 1, name, name), "damaged", 7);
    spill(below("%s/v1/kernels/%.2s/note", strrchr(root, '/') + 1, name), "x", 1);
    spill(below("%s/v1/kernels/%.2s/other note", strrchr(root, '/') + 1, name), "x", 1);
    mkdir(below("%s/v1/kernels/%.2s/folder", strrchr(root, '/') + 1, name), 0700);
    spill(below("%s/v1/foreign/%s.fak", strrchr(root, '/') + 1, name), "damaged", 7);
    fa_key_print(name, key_made(2));
    spill(below("%s/v1/loading/%s", strrchr(root, '/') + 1, name), "loading\n", 8);
    spill(below("%s/v1/loading/empty", strrchr(root, '/') + 1), "", 0);
}

static void refill(const char *root)
{
    nftw(root, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    fill(root);
}

/* --- what is tried; each with the store of `root`, opened while calls fail --- */

static void find(fa_store *s)
{
    for (uint64_t n = 0; n < ENTRIES + 1; n++)
        cr_assert_geq(entry_hit(s, n, BYTES), 0, "another kernel");
}

static void keep(fa_store *s)
{
    fa_store_set_limit(s, 2000); /* so that some go */
    for (int i = 0; i < NEW; i++)
        fa_entry_put(s, &fresh[i]);
}

static void load(fa_store *s)
{
    for (uint64_t n = 0; n < 2; n++) {
        fa_entry e;
        if (!fa_entry_get(s, key_made(3 * n), "sm_80", &e))
            continue;
        fa_load_marker c = fa_load_marker_set(s, &e);
        fa_load_marker_clear(&c, n == 0);
        fa_entry_free(&e);
    }
}

static int look(void *user, const fa_entry *e, const char *path, const char *damaged)
{
    (void)e, (void)damaged;
    cr_assert_not_null(path);
    ++*(int *)user;
    return 0;
}

static int inspect(void *user, const fa_item *i)
{
    fa_entry e;
    const char *wrong = fa_item_read(i, &e, true);
    cr_assert(wrong || e.image);
    fa_entry_free(&e);
    if (wrong && i->writable)
        fa_item_remove(i);
    ++*(int *)user;
    return 0;
}

static void count(fa_store *s)
{
    int n = 0;
    fa_entry_each(s, look, &n);
    fa_scan(s, inspect, &n);
}

static void told(void *user, const char *path, int64_t size)
{
    (void)path, (void)size;
    ++*(int *)user;
}

static void prune(fa_store *s)
{
    static const char *const archs[] = { "sm_80", NULL };
    fa_pruned out;
    int n = 0;
    fa_prune_run(s, &(fa_prune){ .to = 700, .before = 1, .archs = archs, .dry_run = true }, told, &n, &out);
    fa_prune_run(s, &(fa_prune){ .to = 700, .archs = archs }, told, &n, &out);
    fa_prune_run(s, &(fa_prune){ .to = -1, .archs = archs }, NULL, NULL, &out);
}

static void carry_away(fa_store *s)
{
    fa_archive_count n;
    fa_status st = fa_archive_export(s, made, NULL, true, &n);
    cr_assert(st == FA_OK || st == FA_IO || st == FA_NOMEM, "%s: %s", fa_status_name(st), fa_last_error());
    st = fa_archive_export(s, made, "sm_90a", false, &n);
    cr_assert(st == FA_OK || st == FA_IO || st == FA_NOMEM, "%s: %s", fa_status_name(st), fa_last_error());
}

static void bring(fa_store *s)
{
    fa_archive_count n;
    for (int trusted = 0; trusted < 2; trusted++) {
        fa_status st = fa_archive_import(s, archive, trusted, true, &n);
        cr_assert(st == FA_OK || st == FA_IO || st == FA_NOMEM || st == FA_INVALID, "%s: %s", fa_status_name(st), fa_last_error());
    }
}

static void record(fa_store *s)
{
    fa_record r = record_of(128);
    fa_problem p;
    fa_rates rate;
    fa_record_append(s, &r);
    fa_problem_parse(&p, "bf16,d=64");
    fa_records rs = fa_records_load(s, "NVIDIA H200", &p);
    fa_records_free(&rs);
    rs = fa_records_load(s, NULL, NULL);
    fa_records_free(&rs);
    fa_rates_save(s, "NVIDIA H200", "2026-11-21", &rates);
    fa_rates_load(s, "NVIDIA H200", &rate);
    fa_rates_load(s, "another", &rate);
    fa_rates_save(s, "odd", "2026-11-21", &(fa_rates){ .mma16 = NAN, .exps = INFINITY, .clock = -1 });
    fa_rates_load(s, "odd", &rate);
}

static void wait_for(fa_store *s)
{
    fa_lock l = fa_lock_take(s, key_made(0));
    fa_lock_drop(&l);
    fa_lock_drop(&l);
}

static void describe(fa_store *s)
{
    fa_metadata a = metadata_of(1), b = metadata_of(2);
    fa_text t = { 0 };
    const char *field;
    char words[100];
    (void)s;
    if (fa_metadata_print(&a, &t) && fa_metadata_parse(&b, fa_text_cstr(&t), t.n))
        fa_metadata_differ(&a, &b, &field, words, sizeof words);
    fa_text_free(&t);
}

static const struct scene {
    const char *name;
    void (*run)(fa_store *s);
} scenes[] = { { "find", find },         { "keep", keep },    { "load", load },     { "count", count },   { "prune", prune },
               { "export", carry_away }, { "import", bring }, { "record", record }, { "lock", wait_for }, { "metadata", describe } };

static void prepare(void)
{
    fa_archive_count n;
    strcpy(scratch, "/dev/shm/fagen-test-XXXXXX"); /* fsync costs nothing there */
    if (!mkdtemp(scratch))
        scratch_make();
    snprintf(archive, sizeof archive, "%s/archive", scratch);
    snprintf(made, sizeof made, "%s/made", scratch);
    fa_store *s = fa_store_open(below("origin"), NULL, NULL);
    for (uint64_t i = 20; i < 23; i++)
        cr_assert(entry_put(s, i, BYTES));
    cr_assert(entry_put(s, 0, BYTES)); /* in the other root too */
    fa_record r = record_of(16);
    cr_assert(fa_record_append(s, &r));
    cr_assert_eq(fa_archive_export(s, archive, NULL, true, &n), FA_OK, "%s", fa_last_error());
    fa_store_close(s);
    for (int i = 0; i < NEW; i++)
        fresh[i] = entry_made(10 + (uint64_t)i, BYTES);
}

static void finish(void)
{
    for (int i = 0; i < NEW; i++)
        fa_entry_free(&fresh[i]);
    scratch_remove();
}
TestSuite(cache_calls, .init = prepare, .fini = finish, .timeout = 1800);

static void attempt(const struct scene *sc, const char *path)
{
    int heard = 0;
    fa_store *s = fa_store_open(path, hear, &heard);
    if (s)
        sc->run(s);
    fa_store_close(s);
}

/* One attempt with the nth call of the name failing. False when none did. */
static bool trial(const struct scene *sc, const char *name, long nth, int error)
{
    char root[300], path[700];
    const char *what;
    snprintf(root, sizeof root, "%s/root", scratch);
    snprintf(path, sizeof path, "%s:%s/origin", root, scratch); /* and a second root */
    refill(root);
    long live = fault_live();
    int descriptors = fault_descriptors();
    if (error == ENOMEM)
        fault_arm(strcmp(name, "realloc") ? FAULT_ALLOC : FAULT_GROW, nth, error);
    else
        fault_arm_call(name, nth, error);
    attempt(sc, path);
    bool fired = fault_disarm(&what);
    cr_assert_eq(fault_descriptors(), descriptors, "%s: a descriptor is left after %s %ld failed", sc->name, what, nth);
    cr_assert_eq(fault_live(), live, "%s: %ld blocks are left after %s %ld failed", sc->name, fault_live() - live, what, nth);
    if (nth % 4 == 1) { /* what is there afterwards harms nobody */
        attempt(sc, path);
        fa_store *s = fa_store_open(root, NULL, NULL);
        for (uint64_t n = 0; n < 25; n++)
            cr_assert_geq(entry_hit(s, n, BYTES), 0, "%s: another kernel after %s %ld failed", sc->name, what, nth);
        cr_assert(entry_put(s, 30, BYTES) && entry_hit(s, 30, BYTES) == 1, "%s: no kernel can be kept after %s %ld failed", sc->name, what,
                  nth);
        fa_store_close(s);
    }
    return fired;
}

Test(cache_calls, each_by_its_name)
{
    enum { ERRORS = 7 };
    static const int errors[ERRORS] = { EIO, ENOENT, EINTR, ENOSPC, EAGAIN, EMFILE, EACCES };
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        long trials = 0;
        for (int c = 0; fault_call(c); c++)
            for (int e = 0; e < (full() ? ERRORS : 1); e++)
                for (long n = 1, k = c + e; trial(&scenes[i], fault_call(c), n, errors[k % ERRORS]); k += full() ? 0 : 1, trials++)
                    n += full() || n < 6 ? 1 : 1 + n / 2;
        cr_log_info("%s: %ld calls failed", scenes[i].name, trials);
        cr_expect_gt(trials, 20);
    }
}

Test(cache_calls, memory)
{
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        long trials = 0;
        for (int grow = 0; grow < 2; grow++)
            for (long n = 1; trial(&scenes[i], grow ? "realloc" : "malloc", n, ENOMEM); trials++)
                n++;
        cr_log_info("%s: %ld allocations failed", scenes[i].name, trials);
    }
}

/* A file that cannot be read is a miss and stays where it is; a signal during the read is nothing. */
Test(cache_calls, a_read_that_fails_is_a_miss_and_no_damage)
{
    static const struct {
        int error, hit;
    } rows[] = { { EIO, 0 }, { EINTR, 1 }, { ENOMEM, 0 } };
    fa_store *s = fa_store_open(below("reads"), NULL, NULL);
    cr_assert(entry_put(s, 1, BYTES));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fault_arm_call("read", 1, rows[i].error);
        int got = entry_hit(s, 1, BYTES);
        cr_expect(fault_disarm(NULL), "no read was made");
        cr_expect_eq(got, rows[i].hit, "%s: %d", strerror(rows[i].error), got);
        cr_expect_eq(entry_hit(s, 1, BYTES), 1, "after %s it is still there", strerror(rows[i].error));
    }
    fa_store_close(s);
}
