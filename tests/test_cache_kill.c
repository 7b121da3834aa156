/* Writers that are killed, at every system-call boundary and at random moments: what is read afterwards is what was written, or nothing;
 * nobody waits for the dead; what they left is gone when the store is next opened.
 *
 * FAGEN_TEST_FULL=1: 15,000 trials instead of some hundred. */
#include "cache/archive.h"
#include "cache/load_marker.h"
#include "cache/lock.h"
#include "cache/scan.h"
#include "gen/problem.h"
#include "test_cache_entries.h"
#include "test_cache_killer.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <sys/mman.h>

TestSuite(cache_kill, .init = scratch_make_light, .fini = scratch_remove, .timeout = 3600);

enum { KEYS = 16, ARCHIVE = 5, LINES = 2000 };

/* Between the children and us. */
static struct shared {
    volatile uint64_t done;     /* calls of op that returned */
    volatile uint64_t survivor; /* rounds of a process that nobody kills */
    volatile uint64_t base;     /* op(i) is about i + base */
    volatile int64_t limit;
} * shared;

static char root[300];
static bool must[KEYS]; /* put and not removed: a miss is a loss */
static uint64_t kills;

static size_t size_of(uint64_t n)
{
    return 64 + n % 7 * 300;
}

static int tellings;
static char told[512];

static void tell(void *user, const char *message)
{
    (void)user;
    tellings++;
    snprintf(told, sizeof told, "%s", message);
}

static uint64_t random_below(uint64_t n)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x % n;
}

static size_t files_of(const char *folder, const char *prefix)
{
    size_t n = 0;
    char path[400];
    snprintf(path, sizeof path, "%s/v1/%s", root, folder);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !strncmp(e->d_name, prefix, strlen(prefix));
    if (d)
        closedir(d);
    return n;
}

/* Opens the store as the next process would. Temporary files and marks of the dead are gone, every lock can be had. */
static fa_store *reopened(int most_tellings)
{
    tellings = 0;
    fa_store *s = fa_store_open(root, tell, NULL);
    cr_assert_leq(tellings, most_tellings, "%s", told);
    cr_assert_eq(files_of("kernels", ".put-"), 0, "a temporary file is left");
    cr_assert_eq(files_of("loading", ""), 0, "a mark is left");
    alarm(20); /* nobody holds a lock: waiting for one is being stuck */
    for (uint64_t n = 0; n < KEYS; n++) {
        fa_lock l = fa_lock_take(s, key_made(n));
        cr_assert_geq(l.fd, 0);
        fa_lock_drop(&l);
    }
    alarm(0);
    return s;
}

/* The protocol of fa_build_image(): lock, second look, put. */
static void put(uint64_t i)
{
    uint64_t n = (i + shared->base) % KEYS;
    fa_store *s = fa_store_open(root, NULL, NULL);
    fa_store_set_limit(s, shared->limit);
    fa_lock l = fa_lock_take(s, key_made(n));
    int hit = entry_hit(s, n, size_of(n));
    if (hit < 0 || (hit == 0 && !entry_put(s, n, size_of(n))))
        _exit(50);
    fa_lock_drop(&l);
    fa_store_close(s);
    shared->done = i + 1;
}

/* What an earlier writer left: the child that opens the store is killed while it removes that as well. */
static void leave_temp_file(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/v1/kernels/.put-dead", root);
    if (access(root, F_OK) == 0)
        spill(path, "x", 1);
}

static void put_prepare(uint64_t trial)
{
    shared->limit = -1;
    shared->base = trial;
    for (int r = 0; r < 4; r++) {
        uint64_t n = r == 0 ? trial % KEYS : random_below(KEYS);
        char hex[33], path[400];
        fa_key_print(hex, key_made(n));
        snprintf(path, sizeof path, "%s/v1/kernels/%.2s/%s.fak", root, hex, hex);
        unlink(path);
        must[n] = false;
    }
    leave_temp_file();
}

static void put_check(void)
{
    for (uint64_t i = 0; i < shared->done; i++)
        must[(i + shared->base) % KEYS] = true;
    fa_store *s = reopened(0);
    for (uint64_t n = 0; n < KEYS; n++) {
        int hit = entry_hit(s, n, size_of(n));
        cr_assert(hit >= 0 && (hit || !must[n]), "key %d: %d, put before: %d", (int)n, hit, must[n]);
    }
    fa_store_close(s);
}

static int sum(void *user, const fa_item *i)
{
    *(int64_t *)user += i->size;
    return 0;
}

static void evict_prepare(uint64_t trial)
{
    shared->limit = 6000;
    shared->base = trial;
}

static void evict_check(void)
{
    fa_store *s = reopened(0);
    int64_t bytes = 0;
    for (uint64_t n = 0; n < KEYS; n++)
        cr_assert_geq(entry_hit(s, n, size_of(n)), 0);
    /* each that was killed before it evicted has left one entry too many: the next whole put makes up for it */
    fa_store_set_limit(s, shared->limit);
    cr_assert(entry_put(s, shared->base % KEYS, size_of(shared->base % KEYS)));
    fa_scan(s, sum, &bytes);
    cr_assert_leq(bytes, shared->limit);
    fa_store_close(s);
}

static fa_record record_of(uint64_t id)
{
    fa_problem p = FA_PROBLEM_INIT;
    fa_record r;
    memset(&r, 0, sizeof r);
    p.dtype = FA_BF16;
    p.d = 64;
    p.b = 1, p.hq = p.hkv = 8, p.sq = p.sk = 1024;
    if (fa_problem_normalize(&r.problem, &p) != FA_OK || fa_config_parse(&r.config, "flash_fwd_mma:br=64,bc=64,warps=4") != FA_OK)
        abort();
    strcpy(r.chip, "NVIDIA H200");
    strcpy(r.arch, "sm_90a");
    r.how = FA_MEASURED;
    r.count = (int32_t)id;
    r.seconds = 1 + (double)id * 0.25;
    snprintf(r.why, sizeof r.why, "record %d", (int)id);
    return r;
}

typedef struct lines {
    uint8_t seen[LINES];
    size_t good, bad;
} lines;

static void see(void *user, const fa_record_line *line)
{
    lines *l = user;
    char why[40];
    const fa_record *r = line->record;
    if (!r) {
        l->bad++;
        return;
    }
    cr_assert(r->count >= 0 && r->count < LINES && r->seconds == 1 + r->count * 0.25, "record %d", r->count);
    snprintf(why, sizeof why, "record %d", r->count);
    cr_assert_str_eq(r->why, why);
    cr_assert_eq(l->seen[r->count]++, 0, "record %d is there twice", r->count);
    l->good++;
}

static void append(uint64_t i)
{
    fa_store *s = fa_store_open(root, NULL, NULL);
    fa_record r = record_of(i + shared->base);
    if (!fa_record_append(s, &r))
        _exit(51);
    fa_store_close(s);
    shared->done = i + 1;
}

static uint64_t next_id, torn_most;
static uint8_t kept[LINES];

static void append_prepare(uint64_t trial)
{
    if (trial == 0 || next_id > LINES - 600) {
        nftw(root, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
        memset(kept, 0, sizeof kept);
        next_id = torn_most = 0;
    }
    shared->base = next_id;
}

static void append_check(void)
{
    lines l = { .good = 0 };
    for (uint64_t i = 0; i < shared->done; i++)
        kept[shared->base + i] = 1;
    next_id += shared->done + 1;
    torn_most++;
    fa_store *s = reopened(0);
    fa_records_each(s, NULL, NULL, see, &l);
    for (int i = 0; i < LINES; i++)
        cr_assert(!kept[i] || l.seen[i], "record %d is lost", i);
    cr_assert_leq(l.bad, torn_most);
    fa_store_close(s);
}

static const char *archive(void)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/carried.archive", scratch);
    return path;
}

static const char *kernels_archive(void)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/kernels.archive", scratch);
    return path;
}

static void import(uint64_t i)
{
    fa_archive_count n;
    fa_store *s = fa_store_open(root, NULL, NULL);
    if (fa_archive_import(s, archive(), true, true, &n) != FA_OK)
        _exit(52);
    fa_store_close(s);
    shared->done = i + 1;
}

static uint64_t before; /* of what was in the store */

/* ARCHIVE kernels and lines; lines of two files. */
static void make_archive(void)
{
    fa_archive_count n;
    fa_store *s = fa_store_open(root, NULL, NULL);
    for (uint64_t k = 0; k < ARCHIVE; k++) {
        fa_record r = record_of(k);
        if (k % 2)
            strcpy(r.chip, "NVIDIA A100");
        cr_assert(entry_put(s, k, size_of(k)) && fa_record_append(s, &r));
    }
    cr_assert_eq(fa_archive_export(s, archive(), NULL, true, &n), FA_OK);
    cr_assert_eq(fa_archive_export(s, kernels_archive(), NULL, false, &n), FA_OK);
    fa_store_close(s);
}

static void import_prepare(uint64_t trial)
{
    if (trial == 0)
        make_archive();
    nftw(root, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    shared->base = 0;
    before = 0;
}

/* Into a store that has one of the kernels and one of the lines, a line of its own, and copies of the other kernels that are not trusted.
 */
static void import_beside_prepare(uint64_t trial)
{
    fa_archive_count n;
    fa_record r = record_of(0), own = record_of(LINES - 1);
    import_prepare(trial);
    fa_store *s = fa_store_open(root, NULL, NULL);
    cr_assert(entry_put(s, 0, size_of(0)) && fa_record_append(s, &r) && fa_record_append(s, &own));
    cr_assert_eq(fa_archive_import(s, kernels_archive(), false, true, &n), FA_OK, "%s", fa_last_error());
    cr_assert_eq(n.entries, ARCHIVE - 1);
    fa_store_close(s);
    before = scratch_sum_of(root);
}

static size_t hits_of(fa_store *s)
{
    size_t hits = 0;
    for (uint64_t k = 0; k < ARCHIVE; k++) {
        int hit = entry_hit(s, k, size_of(k));
        cr_assert_geq(hit, 0);
        hits += hit == 1;
    }
    return hits;
}

/* All of it, and nothing that is not trusted any more. */
static void check_whole(fa_store *s)
{
    lines l = { .good = 0 };
    cr_assert_eq(hits_of(s), ARCHIVE);
    fa_records_each(s, NULL, NULL, see, &l);
    cr_assert(l.good == ARCHIVE + (before != 0) && l.bad == 0, "%d lines, %d bad", (int)l.good, (int)l.bad);
    cr_assert_eq(files_of("foreign", ""), 0, "copies that are not trusted are left");
}

/* Nothing of it or all of it. */
static void import_check(void)
{
    fa_archive_count n;
    fa_store *s = reopened(1);
    cr_assert(files_of("", "import") == 0, "a journal is left");
    uint64_t after = scratch_sum_of(root);
    if (after == before)
        cr_assert(!shared->done, "an import that had ended is lost");
    else
        check_whole(s);
    cr_assert_eq(fa_archive_import(s, archive(), true, true, &n), FA_OK);
    cr_assert(n.entries + n.entries_there == ARCHIVE && n.lines + n.lines_there == ARCHIVE);
    cr_assert((n.entries == 0) == (after != before), "%d of the kernels were there", (int)n.entries_there);
    check_whole(s);
    fa_store_close(s);
}

/* A first load, as fa_build() does it. */
static void load(uint64_t i)
{
    fa_entry e;
    fa_store *s = fa_store_open(root, NULL, NULL);
    if (fa_entry_get(s, key_made(1), "sm_80", &e)) {
        fa_load_marker c = fa_load_marker_set(s, &e);
        getppid(); /* the driver is at work */
        fa_load_marker_clear(&c, true);
        fa_entry_free(&e);
    }
    fa_store_close(s);
    shared->done = i + 1;
}

static bool marked;

/* Every other time the loader before died: the child sets the kernel aside. */
static void load_prepare(uint64_t trial)
{
    char hex[33], path[400];
    nftw(root, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    fa_store *s = fa_store_open(root, NULL, NULL);
    cr_assert(entry_put(s, 1, size_of(1)));
    fa_store_close(s);
    shared->base = 0;
    marked = trial % 2;
    fa_key_print(hex, key_made(1));
    snprintf(path, sizeof path, "%s/v1/loading/%s", root, hex);
    if (marked)
        spill(path, "loading\n", 8);
}

static void load_check(void)
{
    fa_store *s = reopened(1);
    int hit = entry_hit(s, 1, size_of(1));
    cr_assert(hit >= 0 && (hit || marked || !shared->done));
    cr_assert(!hit || !marked, "a kernel whose loader died is loaded");
    cr_assert_eq(files_of("quarantine", ""), hit ? 0 : 1, "not there, and not set aside");
    cr_assert(!hit || tellings == 0);
    fa_store_close(s);
}

static const struct {
    const char *name;
    killer_op *op;
    void (*prepare)(uint64_t trial), (*check)(void);
    uint64_t most; /* calls of op in one child that dies at random */
} scenes[] = {
    { "put", put, put_prepare, put_check, UINT64_MAX },      { "evict", put, evict_prepare, evict_check, UINT64_MAX },
    { "append", append, append_prepare, append_check, 500 }, { "import", import, import_prepare, import_check, 1 },
    { "load", load, load_prepare, load_check, 1 },           { "import beside", import, import_beside_prepare, import_check, 1 },
};
enum { PUT, EVICT, APPEND, IMPORT, LOAD, BESIDE, SCENES };

static uint64_t trials(void)
{
    return full() ? 1500 : 30;
}

static void begin(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    snprintf(root, sizeof root, "%s/root", scratch);
    memset(must, 0, sizeof must);
    kills = 0;
}

static void boundaries(int scene)
{
    int most, stops;
    begin();
    scenes[scene].prepare(0);
    int rc = killer_at(scenes[scene].op, 0, 0, &most);
    if (rc < 0 && most == 0)
        cr_skip_test("tracing is not allowed here");
    cr_assert_eq(rc, 0);
    cr_assert_gt(most, 0);
    scenes[scene].check();
    uint64_t n = trials() < (uint64_t)most ? (uint64_t)most : trials();
    if (trials() < 100 && scene != PUT)
        n = trials(); /* the short form: all boundaries of a put, some of the others */
    for (uint64_t t = 1; t <= n; t++) {
        scenes[scene].prepare(t);
        shared->done = 0;
        rc = killer_at(scenes[scene].op, 0, n < (uint64_t)most ? 1 + (int)(t * (uint64_t)most / n) % most : 1 + (int)(t % (uint64_t)most),
                       &stops);
        cr_assert_geq(rc, 0, "%s, trial %d", scenes[scene].name, (int)t);
        kills += rc == 1;
        scenes[scene].check();
    }
    fprintf(stderr, "%s: killed %d times at the %d boundaries of a call\n", scenes[scene].name, (int)kills, most);
    cr_assert_gt(kills, n / 2);
}

/* Works beside those who die, on the same keys, and must not be held up by their deaths. */
static pid_t survive(int scene)
{
    pid_t child = fork();
    if (child == 0)
        for (uint64_t i = 0;; i++) {
            uint64_t n = i % KEYS;
            fa_store *s = fa_store_open(root, NULL, NULL);
            fa_store_set_limit(s, shared->limit);
            fa_lock l = fa_lock_take(s, key_made(n));
            int hit = entry_hit(s, n, size_of(n));
            if (hit < 0 || (hit == 0 && !entry_put(s, n, size_of(n))))
                _exit(53);
            fa_lock_drop(&l);
            fa_store_close(s);
            shared->survivor++;
            (void)scene;
        }
    return child;
}

static void at_random(int scene)
{
    int status;
    pid_t survivor = 0;
    int64_t span = 1000000; /* ns */
    begin();
    scenes[scene].prepare(0);
    shared->done = 0;
    if (scene == PUT)
        survivor = survive(scene);
    /* the first trials find out how long the call takes here: where they missed it, there are more */
    for (uint64_t t = 1; t <= trials() || ((uint64_t)kills <= trials() / 4 && t <= 20 * trials()); t++) {
        scenes[scene].prepare(t);
        shared->done = 0;
        int rc = killer_after(scenes[scene].op, scenes[scene].most, (int64_t)random_below((uint64_t)span));
        span = rc == 0 ? span / 2 + 1000 : span * 17 / 16; /* most are to die inside the call, on any machine */
        span = span > 3000000 ? 3000000 : span;
        cr_assert_geq(rc, 0, "%s, trial %d", scenes[scene].name, (int)t);
        kills += rc == 1;
        uint64_t rounds = shared->survivor;
        alarm(60);
        while (survivor && shared->survivor < rounds + 2)
            usleep(50);
        alarm(0);
        if (!survivor)
            scenes[scene].check();
        else
            for (uint64_t i = 0; i < shared->done; i++)
                must[(i + shared->base) % KEYS] = true;
    }
    if (survivor) {
        cr_assert_eq(waitpid(survivor, &status, WNOHANG), 0, "the survivor died");
        kill(survivor, SIGKILL);
        waitpid(survivor, &status, 0);
        shared->done = 0;
        scenes[scene].check();
    }
    fprintf(stderr, "%s: killed %d times at random moments\n", scenes[scene].name, (int)kills);
    cr_assert_gt(kills, trials() / 4);
}

Test(cache_kill, put_at_boundaries)
{
    boundaries(PUT);
}
Test(cache_kill, evict_at_boundaries)
{
    boundaries(EVICT);
}
Test(cache_kill, append_at_boundaries)
{
    boundaries(APPEND);
}
Test(cache_kill, import_at_boundaries)
{
    boundaries(IMPORT);
}
Test(cache_kill, import_beside_at_boundaries)
{
    boundaries(BESIDE);
}
Test(cache_kill, load_at_boundaries)
{
    boundaries(LOAD);
}
Test(cache_kill, put_at_random)
{
    at_random(PUT);
}
Test(cache_kill, evict_at_random)
{
    at_random(EVICT);
}
Test(cache_kill, append_at_random)
{
    at_random(APPEND);
}
Test(cache_kill, import_at_random)
{
    at_random(IMPORT);
}
Test(cache_kill, load_at_random)
{
    at_random(LOAD);
}
