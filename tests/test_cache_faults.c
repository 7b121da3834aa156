/* The n-th call fails, n = 1, 2, ... until none does, in everything that is done to a store: no call crashes, leaks or leaves another's
 * bytes; what says that it went well did; the next to open the store finds it whole.
 *
 * By default each of the first 12 calls fails with the errors that are told apart, each beyond them with one error of all in turn.
 * FAGEN_TEST_FULL=1: each of them, with every error. */
#include "cache/archive.h"
#include "cache/load_marker.h"
#include "cache/lock.h"
#include "cache/prune.h"
#include "cache/scan.h"
#include "fault.h"
#include "gen/problem.h"
#include "test_cache_entries.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

enum { KEYS = 4, BODY = 300 };

static char root[300], roots[700], archive[300], out[300];
static fa_record record, other; /* other: of another file, in the archive alone */
static fa_entry made[KEYS + 1];

static void entry_path(char path[500], uint64_t n)
{
    char hex[33];
    fa_key_print(hex, key_made(n));
    snprintf(path, 500, "%s/v1/kernels/%.2s/%s.fak", root, hex, hex);
}

static void wipe(const char *path)
{
    nftw(path, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* A store of KEYS entries and a record, and an archive of them. */
static void make(void)
{
    fa_problem p = FA_PROBLEM_INIT;
    fa_archive_count n;
    scratch_make_light();
    snprintf(root, sizeof root, "%s/root", scratch);
    snprintf(roots, sizeof roots, "%s:%s/shared", root, scratch);
    snprintf(archive, sizeof archive, "%s/in.archive", scratch);
    snprintf(out, sizeof out, "%s/out.archive", scratch);
    p.dtype = FA_BF16;
    p.d = 64;
    p.b = 1, p.hq = p.hkv = 8, p.sq = p.sk = 1024;
    if (fa_problem_normalize(&record.problem, &p) != FA_OK || fa_config_parse(&record.config, "flash_fwd_mma:br=64,bc=64,warps=4") != FA_OK)
        abort();
    strcpy(record.chip, "NVIDIA H200");
    strcpy(record.arch, "sm_80");
    record.how = FA_MEASURED;
    record.seconds = 1;
    other = record;
    strcpy(other.chip, "NVIDIA A100");
    strcpy(other.date, "2026-11-25T00:00:00Z");
    fa_store *s = fa_store_open(below("shared"), NULL, NULL);
    for (uint64_t k = 0; k <= KEYS; k++) {
        made[k] = entry_made(k, BODY);
        if (k < KEYS && !fa_entry_put(s, &made[k]))
            abort();
    }
    if (!fa_record_append(s, &record) || !fa_record_append(s, &other) || fa_archive_export(s, archive, NULL, true, &n) != FA_OK)
        abort();
    fa_store_close(s);
}
TestSuite(cache_faults, .init = make, .fini = scratch_remove, .timeout = 1800);

static void begin(void)
{
    wipe(root);
    fa_store *s = fa_store_open(root, NULL, NULL);
    for (uint64_t k = 0; k < KEYS; k++)
        if (!fa_entry_put(s, &made[k]))
            abort();
    if (!fa_record_append(s, &record))
        abort();
    fa_store_close(s);
}

static void begin_empty(void)
{
    wipe(root);
}

static void begin_damaged(void)
{
    char path[500], inner[600];
    begin();
    entry_path(path, 0);
    if (truncate(path, 100) != 0)
        abort();
    entry_path(path, 1);
    unlink(path);
    snprintf(inner, sizeof inner, "%s/inner", path);
    if (mkdir(path, 0700) != 0)
        abort();
    spill(inner, "x", 1);
}

/* An import that died: one of two kernels is there, and a line with another's after it; one that died later has foreign copies to remove.
 */
static void begin_dead_import(void)
{
    char chip[64], file[160], path[600], hex[33], text[1200];
    fa_record_path(&other, chip, file);
    snprintf(path, sizeof path, "%s/v1/records/%s", root, chip);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/v1/records/%s/%s", root, chip, file);
    spill(path, "{\"of\":\"it\"}\n{\"others\":1}\n", 26);
    fa_key_print(hex, key_made(3));
    snprintf(text, sizeof text, "fagen import 1\nkernels\nnew %s\nnew %032d\nfile %s %s -1 12\n{\"of\":\"it\"}\nend\n", hex, 7, chip, file);
    snprintf(path, sizeof path, "%s/v1/import", root);
    spill(path, text, strlen(text));
    snprintf(text, sizeof text, "fagen import 1\nkernels\nhave %032d\nend\n", 7);
    snprintf(path, sizeof path, "%s/v1/imported", root);
    spill(path, text, strlen(text));
    snprintf(path, sizeof path, "%s/v1/foreign", root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/v1/foreign/%032d.fak", root, 7);
    spill(path, "x", 1);
}

/* After writers, loaders and imports that died. */
static void begin_dead(void)
{
    char path[500], hex[33];
    begin();
    snprintf(path, sizeof path, "%s/v1/kernels/.put-dead", root);
    spill(path, "x", 1);
    fa_key_print(hex, key_made(2));
    snprintf(path, sizeof path, "%s/v1/loading/%s", root, hex);
    spill(path, "loading\n", 8);
    fa_key_print(hex, key_made(3));
    snprintf(path, sizeof path, "%s/v1/loading/%s", root, hex);
    spill(path, "", 0);
    begin_dead_import();
}

static void begin_old(void)
{
    char path[500];
    struct timespec then[2] = { { 1000, 0 }, { 1000, 0 } };
    begin();
    for (uint64_t k = 0; k < KEYS; k++) {
        entry_path(path, k);
        utimensat(AT_FDCWD, path, then, 0);
    }
}

/* One kernel and one of two records. */
static void begin_one(void)
{
    wipe(root);
    fa_store *s = fa_store_open(root, NULL, NULL);
    if (!fa_entry_put(s, &made[0]) || !fa_record_append(s, &record))
        abort();
    fa_store_close(s);
}

/* The same, and copies of the others that are not trusted. */
static void begin_half(void)
{
    fa_archive_count n;
    begin_one();
    fa_store *s = fa_store_open(root, NULL, NULL);
    if (fa_archive_import(s, archive, false, true, &n) != FA_OK || n.entries != KEYS - 1)
        abort();
    fa_store_close(s);
    char path[500];
    snprintf(path, sizeof path, "%s/v1/records/NVIDIA_A100", root);
    wipe(path);
}

/* Names that are no keys, in the way of what looks after the store. */
static void begin_junk(void)
{
    char path[500];
    begin_damaged();
    snprintf(path, sizeof path, "%s/v1/foreign", root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/v1/foreign/junk", root);
    spill(path, "x", 1);
}

/* What is done with one call failing. False: it says that it went well, and did not. */
static bool op_get(fa_store *s)
{
    bool ok = true;
    for (uint64_t k = 0; k < KEYS; k++) {
        fa_entry e;
        if (fa_entry_get(s, made[k].key, "sm_80", &e)) {
            ok = ok && e.image_size == BODY && !memcmp(e.image, made[k].image, BODY);
            fa_entry_free(&e);
        }
    }
    return ok;
}

static bool op_put(fa_store *s)
{
    bool said = fa_entry_put(s, &made[KEYS]) && fault_disarm(NULL);
    return !said || entry_hit(s, KEYS, BODY) == 1;
}

static bool op_evict(fa_store *s)
{
    fa_store_set_limit(s, 3000);
    bool said = fa_entry_put(s, &made[KEYS]) && fault_disarm(NULL);
    return !said || entry_hit(s, KEYS, BODY) == 1;
}

static bool op_lock(fa_store *s)
{
    fa_lock l = fa_lock_take(s, made[0].key);
    l.since -= 20; /* a compile, whose length is noted */
    fa_lock_drop(&l);
    return true;
}

static bool op_load(fa_store *s)
{
    fa_load_marker c = fa_load_marker_set(s, &made[0]);
    fa_load_marker_clear(&c, true);
    c = fa_load_marker_set(s, &made[KEYS]); /* in no root */
    fa_load_marker_clear(&c, false);
    return true;
}

static bool op_append(fa_store *s)
{
    bool said = fa_record_append(s, &record) && fault_disarm(NULL);
    fa_records rs = fa_records_load(s, "NVIDIA H200", &record.problem);
    bool ok = !said || rs.n >= 1;
    fa_records_free(&rs);
    return ok;
}

static bool op_records(fa_store *s)
{
    fa_records rs = fa_records_load(s, NULL, NULL);
    bool ok = rs.n <= 3;
    fa_records_free(&rs);
    return ok;
}

static int count_foreign(void *user, const fa_item *i)
{
    *(size_t *)user += i->area == FA_AREA_FOREIGN;
    return 0;
}

static uint64_t before; /* of what was in the store */
static bool denies;     /* a call says that there is nothing where there is something: a line may come twice then */

/* All of it, or the store is as it was. */
static bool import(fa_store *s, bool trusted)
{
    fa_archive_count n;
    fa_status st = fa_archive_import(s, archive, trusted, true, &n);
    fault_disarm(NULL);
    if (st != FA_OK)
        return (st == FA_IO || st == FA_NOMEM || st == FA_INVALID) && scratch_sum_of(root) == before && !n.entries && !n.lines;
    size_t foreign = 0, kept = 0;
    for (uint64_t k = 0; k < KEYS; k++)
        kept += entry_hit(s, k, BODY) == 1;
    fa_store_close(fa_store_open(root, NULL, NULL)); /* which ends what could not be ended then */
    fa_scan(s, count_foreign, &foreign);
    fa_records rs = fa_records_load(s, NULL, NULL);
    bool lines = rs.n == 2 || (denies && rs.n == 3);
    fa_records_free(&rs);
    return lines && n.entries + n.entries_there == KEYS && n.lines + n.lines_there == 2 &&
           (trusted ? kept == KEYS && !foreign : kept + foreign == KEYS || (denies && kept + foreign > KEYS));
}

static bool op_import(fa_store *s)
{
    return import(s, true);
}

static bool op_foreign(fa_store *s)
{
    return import(s, false);
}

static bool op_export(fa_store *s)
{
    fa_archive_count n;
    fa_archive p;
    char why[200];
    size_t size;
    unlink(out);
    fa_status st = fa_archive_export(s, out, NULL, true, &n);
    fault_disarm(NULL);
    if (st != FA_OK)
        return (st == FA_IO || st == FA_NOMEM) && access(out, F_OK) != 0;
    char *bytes = slurp(out, &size);
    bool ok = fa_archive_unpack(&p, bytes, size, why, sizeof why) && p.n == n.entries && p.n_lines == n.lines;
    fa_archive_free(&p);
    free(bytes);
    return ok;
}

static bool op_prune(fa_store *s)
{
    static const char *const archs[] = { "sm_80", NULL };
    fa_prune p = { .to = 600, .archs = archs };
    fa_pruned n;
    return !fa_prune_run(s, &p, NULL, NULL, &n) || n.n + n.left <= 2 * KEYS;
}

static bool op_prune_all(fa_store *s)
{
    fa_prune p = { .to = 0 };
    fa_pruned n;
    return !fa_prune_run(s, &p, NULL, NULL, &n) || n.n + n.left <= 2 * KEYS;
}

static bool op_describe(fa_store *s)
{
    fa_metadata a = metadata_of(7), b;
    fa_text t = { 0 };
    bool ok = true;
    (void)s;
    if (fa_metadata_print(&a, &t) && fa_metadata_parse(&b, t.s, t.n))
        ok = !b.whole || fa_metadata_key(&b).lo == fa_metadata_key(&a).lo;
    fa_text_free(&t);
    return ok;
}

static bool op_none(fa_store *s)
{
    (void)s;
    return true;
}

/* opening: the call that fails may be one of those that open the store; else it comes after them. */
static const struct {
    const char *name;
    void (*begin)(void);
    bool (*op)(fa_store *s);
    const char *path;
    bool opening;
} scenes[] = {
    { "open", begin_empty, op_none, roots, true },
    { "open after the dead", begin_dead, op_get, roots, true },
    { "get", begin_old, op_get, root, false },
    { "get what is damaged", begin_damaged, op_get, roots, false },
    { "get from elsewhere", begin_empty, op_get, roots, false },
    { "put", begin, op_put, root, false },
    { "put into nothing", begin_empty, op_put, root, false },
    { "evict", begin, op_evict, root, false },
    { "lock", begin, op_lock, root, false },
    { "load", begin, op_load, root, false },
    { "append", begin, op_append, root, false },
    { "records", begin, op_records, roots, false },
    { "import", begin_empty, op_import, root, false },
    { "import beside", begin_half, op_import, root, false },
    { "import aside", begin_one, op_foreign, root, false },
    { "import what is there", begin, op_import, root, false },
    { "export", begin, op_export, roots, false },
    { "prune", begin_damaged, op_prune, root, false },
    { "prune all", begin_junk, op_prune_all, root, false },
    { "describe", begin_empty, op_describe, root, false },
};

static size_t left(const char *folder, const char *prefix)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += !strncmp(e->d_name, prefix, strlen(prefix));
    if (d)
        closedir(d);
    return n;
}

static bool trial(size_t scene, fault_kind kind, long n, int error)
{
    const char *what, *name = scenes[scene].name, *why = error == FAULT_SHORT ? "a short count" : strerror(error);
    char kernels[400], journal[400];
    scenes[scene].begin();
    before = scratch_sum_of(root);
    denies = error == ENOENT;
    long live = fault_live();
    int descriptors = fault_descriptors();
    if (scenes[scene].opening)
        fault_arm(kind, n, error);
    fa_store *s = fa_store_open(scenes[scene].path, NULL, NULL);
    if (!scenes[scene].opening)
        fault_arm(kind, n, error);
    bool ok = !s || scenes[scene].op(s);
    bool fired = fault_disarm(&what);
    fa_store_close(s);
    cr_assert(ok, "%s: wrong after %s %ld: %s", name, what, n, why);
    cr_assert_eq(fault_descriptors(), descriptors, "%s: a descriptor is left after %s %ld: %s", name, what, n, why);
    cr_assert_eq(fault_live(), live, "%s: %ld blocks are left after %s %ld: %s", name, fault_live() - live, what, n, why);
    s = fa_store_open(scenes[scene].path, NULL, NULL);
    for (uint64_t k = 0; k <= KEYS; k++)
        cr_assert_geq(entry_hit(s, k, BODY), 0);
    cr_assert(fa_entry_put(s, &made[0]) && entry_hit(s, 0, BODY) == 1, "%s: the store is of no use after %s %ld: %s", name, what, n, why);
    fa_store_close(s);
    snprintf(kernels, sizeof kernels, "%s/v1/kernels", root);
    snprintf(journal, sizeof journal, "%s/v1", root);
    cr_assert_eq(left(journal, "import"), 0, "%s: a journal is left after %s %ld: %s", name, what, n, why);
    cr_assert_eq(left(kernels, ".put-"), 0, "%s: a temporary file is left after %s %ld: %s", name, what, n, why);
    return fired;
}

/* The first of the errors are those that the calls tell apart: by default each early call gets them all, and each call one more in turn. */
static void each(fault_kind kind, const int *errors, size_t n_errors, size_t apart)
{
    for (size_t scene = 0; scene < sizeof scenes / sizeof *scenes; scene++) {
        long trials = 0, n = 1;
        bool fired = true;
        while (fired) {
            for (size_t e = 0; e < (full() ? n_errors : n <= 12 ? apart : 0); e++, trials++)
                trial(scene, kind, n, errors[e]);
            fired = trial(scene, kind, n, errors[(size_t)n % n_errors]);
            n++;
            trials++;
        }
        cr_log_info("%s: %ld trials, of some %ld calls", scenes[scene].name, trials, n);
    }
}

Test(cache_faults, io)
{
    static const int errors[] = { EINTR, EWOULDBLOCK, ENOENT, EIO, ENOSPC, EDQUOT, EMFILE, EACCES, EROFS, ESTALE, ENOLCK };
    each(FAULT_IO, errors, sizeof errors / sizeof *errors, 3);
}

Test(cache_faults, short_counts)
{
    for (size_t scene = 0; scene < sizeof scenes / sizeof *scenes; scene++)
        for (long n = 1; trial(scene, FAULT_IO, n, FAULT_SHORT); n++)
            ;
}

Test(cache_faults, memory)
{
    static const int errors[] = { ENOMEM };
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    each(FAULT_ALLOC, errors, 1, 0);
    each(FAULT_GROW, errors, 1, 0);
}

/* The default folder lies below the home; where there is no memory for the rest of its name, the home is none. */
Test(cache_faults, half_a_default_path)
{
    char home[400];
    long n = 0;
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    memset(home, 0, sizeof home);
    snprintf(home, sizeof home, "%s/", scratch);
    memset(home + strlen(home), 'h', 250 - strlen(home)); /* a text grows between this and what is added */
    cr_assert_eq(mkdir(home, 0700), 0);
    setenv("HOME", home, 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("FAGEN_CACHE_DIR");
    for (bool fired = true; fired; n++) {
        fault_arm(FAULT_GROW, n + 1, ENOMEM);
        fa_store *s = fa_store_open(NULL, NULL, NULL);
        fired = fault_disarm(NULL);
        const char *of = s ? fa_store_root(s) : NULL;
        cr_assert(!of || !strcmp(of + strlen(home), "/.cache/fagen"), "after reallocation %ld the cache is %s", n + 1, of);
        cr_assert_neq(access(below("%s/v1", strrchr(home, '/') + 1), F_OK), 0, "reallocation %ld: the home is a cache", n + 1);
        fa_store_close(s);
    }
    cr_assert_geq(n, 3);
}
