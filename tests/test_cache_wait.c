/* Locks whose holders are stopped: whoever waits for one goes on without it, and nothing is lost. */
#include "cache/archive.h"
#include "cache/load_marker.h"
#include "cache/lock.h"
#include "cache/record.h"
#include "cache/root.h"
#include "cache/wait.h"
#include "gen/problem.h"
#include "test_cache_entries.h"
#include "test_cache_fake.h"
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

TestSuite(cache_wait, .init = scratch_make_light, .fini = scratch_remove, .timeout = 60);

#define SHORT 0.02 /* seconds, in place of the rule */

static int tellings;
static char told[600];

static void tell(void *user, const char *message)
{
    (void)user;
    tellings++;
    snprintf(told, sizeof told, "%s", message);
}

static fa_store *store_open(void)
{
    fa_store *s = fa_store_open(below("root"), tell, NULL);
    s->wait_most = SHORT;
    return s;
}

/* A process that has the lock of a file and is stopped. After SIGCONT it writes what there is to write, and ends. */
static pid_t stopped(const char *path, int how, const char *writes)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
        if (fd < 0 || flock(fd, how) != 0)
            _exit(1);
        raise(SIGSTOP);
        _exit(write(fd, writes, strlen(writes)) != (ssize_t)strlen(writes));
    }
    cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
    cr_assert(WIFSTOPPED(status));
    return child;
}

/* It goes on, and ends. */
static void go_on(pid_t child)
{
    int status;
    kill(child, SIGCONT);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static const char *lock_of(fa_key k)
{
    char hex[33];
    fa_key_print(hex, k);
    return below("root/v1/locks/%s", hex);
}

Test(cache_wait, the_lock_of_a_kernel)
{
    fa_store *s = store_open();
    pid_t first = stopped(lock_of(key_made(1)), LOCK_EX, ""), second = stopped(lock_of(key_made(2)), LOCK_EX, "");
    fa_lock l = fa_lock_take(s, key_made(1));
    cr_assert(l.fd < 0, "it is held by another");
    cr_assert_eq(tellings, 1);
    cr_assert(strstr(told, "holds") && strstr(told, lock_of(key_made(1))) && strstr(told, "more than 0.02 s"), "%s", told);
    cr_assert(entry_put(s, 1, 100) && entry_hit(s, 1, 100) == 1);
    fa_lock_drop(&l);
    l = fa_lock_take(s, key_made(2));
    cr_assert(l.fd < 0 && tellings == 1, "one line for all");
    fa_lock_drop(&l);
    l = fa_lock_take(s, key_made(3));
    cr_assert(l.fd >= 0, "other keys have their locks");
    fa_lock_drop(&l);
    go_on(first);
    go_on(second);
    l = fa_lock_take(s, key_made(1));
    cr_assert(l.fd >= 0 && tellings == 1);
    fa_lock_drop(&l);
    fa_store_close(s);
}

/* The way of a launch: lock, second look, compile, put. */
Test(cache_wait, a_kernel_that_a_stopped_process_compiles)
{
    fake_make();
    fa_store *s = store_open();
    fa_compiler *c = fake_compiler();
    fa_source source = fake_source(7);
    fa_key k;
    cr_assert_eq(fa_compiler_key(c, &source, "sm_80", 0, &k), FA_OK, "%s", fa_last_error());
    pid_t child = stopped(lock_of(k), LOCK_EX, "");
    cr_assert_eq(fake_build(s, c, 7), 1, "it is compiled here");
    cr_assert_eq(fake_build(s, c, 7), 0, "and kept");
    cr_assert(tellings == 1 && fake->compiles[7] == 1);
    go_on(child);
    fa_compiler_close(c);
    fa_store_close(s);
}

static double ruled(void)
{
    fa_store *s = fa_store_open(below("root"), NULL, NULL);
    double most = fa_wait_rule(s);
    fa_store_close(s);
    return most;
}

/* A lock that was held for so long, as its holder sees it. */
static void compile_for(fa_store *s, double seconds)
{
    fa_lock l = fa_lock_take(s, key_made(1));
    l.since -= seconds;
    fa_lock_drop(&l);
}

Test(cache_wait, twice_the_longest_compile)
{
    static const struct {
        double seconds, least, most;
    } rows[] = { { 0.01, 60, 60 }, { 2, 10, 10 }, { 20, 40, 41 }, { 3, 40, 41 }, { 27, 54, 55 }, { 100, 60, 60 } };
    fa_store *s = fa_store_open(below("root"), NULL, NULL), *none = fa_store_open("", NULL, NULL);
    cr_assert_eq(ruled(), 60, "none was seen");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        compile_for(s, rows[i].seconds);
        double here = fa_wait_rule(s), there = ruled();
        cr_assert(here >= rows[i].least && here <= rows[i].most, "after %g s: %g", rows[i].seconds, here);
        cr_assert(there >= rows[i].least && there <= rows[i].most, "after %g s, another process: %g", rows[i].seconds, there);
    }
    compile_for(none, 20);
    cr_assert_eq(fa_wait_rule(none), 60, "without a root there is no lock that could be held");
    fa_store_close(s);
    fa_store_close(none);
}

Test(cache_wait, a_figure_that_is_none)
{
    static const char *const bytes[] = {
        "", "nan", "inf", "-7", "soon", "1e999", "0", "20 seconds and much more text than a figure has, so that the file is too large"
    };
    fa_store_close(fa_store_open(below("root"), NULL, NULL));
    char path[300];
    snprintf(path, sizeof path, "%s", below("root/v1/locks/longest"));
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        spill(path, bytes[i], strlen(bytes[i]));
        cr_assert_eq(chmod(path, 0600), 0);
        cr_assert_eq(ruled(), 60, "%s", bytes[i]);
    }
    spill(path, "20\n", 3);
    cr_assert_eq(ruled(), 40);
    cr_assert_eq(chmod(path, 0666), 0);
    cr_assert_eq(ruled(), 60, "others may have written it");
}

/* ---- records ---- */

static fa_record record_of(int id)
{
    fa_record r;
    memset(&r, 0, sizeof r);
    cr_assert_eq(fa_problem_parse(&r.problem, "bf16,d=64,b=1,hq=8,sq=1024"), FA_OK);
    cr_assert_eq(fa_config_parse(&r.config, "flash_fwd_mma:br=64,bc=64,warps=4"), FA_OK);
    strcpy(r.chip, "NVIDIA H200");
    strcpy(r.arch, "sm_90a");
    r.how = FA_MEASURED;
    r.seconds = 1;
    r.count = id;
    return r;
}

static bool append(fa_store *s, int id)
{
    fa_record r = record_of(id);
    return fa_record_append(s, &r);
}

static const char *records_path(void)
{
    char chip[64], file[160];
    fa_record r = record_of(0);
    fa_record_path(&r, chip, file);
    return below("root/v1/records/%s/%s", chip, file);
}

enum { WRITERS = 4, LINES = 100, ALL = WRITERS * LINES + 10 };

typedef struct lines {
    int seen[ALL];
    int n, bad;
} lines;

static void see(void *user, const fa_record_line *line)
{
    lines *l = user;
    if (!line->record || line->record->count < 0 || line->record->count >= ALL) {
        l->bad++;
        return;
    }
    l->seen[line->record->count]++;
    l->n++;
}

/* Each of the first n once, and nothing else. */
static void check_lines(fa_store *s, int n)
{
    lines l = { .n = 0 };
    fa_records_each(s, NULL, NULL, see, &l);
    cr_assert(l.n == n && l.bad == 0, "%d lines, %d bad", l.n, l.bad);
    for (int i = 0; i < n; i++)
        cr_assert_eq(l.seen[i], 1, "line %d: %d times", i, l.seen[i]);
}

/* The holder has looked at the end of the file, was stopped before its write, and writes when the others are done. */
Test(cache_wait, an_append_whose_lock_does_not_come)
{
    fa_store *s = store_open();
    fa_text late = { 0 };
    fa_record r = record_of(WRITERS * LINES + 3);
    cr_assert(append(s, 0) && tellings == 0);
    cr_assert(fa_record_to_json(&r, &late));
    fa_text_str(&late, "\n");
    pid_t child = stopped(records_path(), LOCK_EX, late.s);
    cr_assert(append(s, 1));
    cr_assert(tellings == 1 && strstr(told, records_path()) && strstr(told, "0.02 s"), "%s", told);
    cr_assert(atomic_load(&s->hurried));
    s->wait_most = 1000; /* a search appends thousands: only the first waits */
    cr_assert(append(s, 2) && tellings == 1);
    for (int w = 0; w < WRITERS; w++)
        if (fork() == 0) {
            fa_store *own = store_open();
            bool ok = true;
            for (int i = 0; i < LINES; i++)
                ok = append(own, 3 + w * LINES + i) && ok;
            fa_store_close(own);
            _exit(!ok);
        }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        cr_assert(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    check_lines(s, 3 + WRITERS * LINES);
    go_on(child);
    check_lines(s, 4 + WRITERS * LINES);
    cr_assert(append(s, 4 + WRITERS * LINES) && !atomic_load(&s->hurried), "it had the lock again");
    check_lines(s, 5 + WRITERS * LINES);
    fa_text_free(&late);
    fa_store_close(s);
}

/* A torn line of the stopped one is closed by whoever comes after it without the lock. */
Test(cache_wait, a_torn_line_before_an_append_without_the_lock)
{
    lines l = { .n = 0 };
    fa_store *s = store_open();
    cr_assert(append(s, 0));
    FILE *f = fopen(records_path(), "a");
    fputs("{\"torn\":", f);
    fclose(f);
    pid_t child = stopped(records_path(), LOCK_EX, "");
    cr_assert(append(s, 1));
    fa_records_each(s, NULL, NULL, see, &l);
    cr_assert(l.n == 2 && l.bad == 1);
    go_on(child);
    fa_store_close(s);
}

/* ---- what asks for a lock once, and never waits ---- */

Test(cache_wait, marks_and_temporary_files_of_the_stopped)
{
    char hex[33];
    fa_store *s = store_open();
    cr_assert(entry_put(s, 1, 100));
    fa_key_print(hex, key_made(1));
    const char *mark = below("root/v1/loading/%s", hex), *temp = below("root/v1/kernels/.put-stopped");
    pid_t sweeper = stopped(mark, LOCK_EX, ""), writer = stopped(temp, LOCK_EX, "");
    fa_entry e;
    cr_assert(fa_entry_get(s, key_made(1), "sm_80", &e));
    fa_load_marker m = fa_load_marker_set(s, &e);
    cr_assert(m.fd < 0, "it is loaded without a mark");
    fa_load_marker_clear(&m, true);
    fa_entry_free(&e);
    fa_store_close(s);
    s = store_open();
    cr_assert(access(mark, F_OK) == 0 && access(temp, F_OK) == 0, "their owners live");
    cr_assert(tellings == 0 && entry_put(s, 2, 100) && entry_hit(s, 1, 100) == 1);
    fa_store_close(s);
    go_on(sweeper);
    go_on(writer);
    fa_store_close(store_open());
    cr_assert(access(mark, F_OK) != 0 && access(temp, F_OK) != 0);
}

/* ---- imports ---- */

static fa_store *archive_made(const char *path)
{
    fa_archive_count n;
    fa_store *from = fa_store_open(below("from"), NULL, NULL);
    fa_record r = record_of(0);
    cr_assert(entry_put(from, 1, 100) && fa_record_append(from, &r));
    cr_assert_eq(fa_archive_export(from, path, NULL, true, &n), FA_OK);
    fa_store_close(from);
    return store_open();
}

Test(cache_wait, an_import_beside_a_stopped_one)
{
    fa_archive_count n;
    char archive[300], journal[300];
    snprintf(archive, sizeof archive, "%s", below("archive"));
    snprintf(journal, sizeof journal, "%s", below("root/v1/import"));
    fa_store *s = archive_made(archive);
    cr_assert(entry_put(s, 2, 100));
    /* it has added kernel 2, and its journal is there */
    char hex[33], text[100];
    fa_key_print(hex, key_made(2));
    snprintf(text, sizeof text, "fagen import 1\nkernels\nnew %s\nend\n", hex);
    pid_t child = stopped(below("root/v1/locks/import"), LOCK_EX, "");
    spill(journal, text, strlen(text));
    uint64_t before = scratch_sum_of(below("root"));
    cr_assert_eq(fa_archive_import(s, archive, true, true, &n), FA_IO);
    cr_assert(strstr(fa_last_error(), "another process imports into it for more than 0.02 s"), "%s", fa_last_error());
    cr_assert_eq(scratch_sum_of(below("root")), before);
    fa_store_close(store_open());
    cr_assert(tellings == 0 && access(journal, F_OK) == 0 && entry_hit(s, 2, 100) == 1, "its owner lives");
    go_on(child);
    cr_assert_eq(fa_archive_import(s, archive, true, true, &n), FA_OK, "%s", fa_last_error());
    cr_assert(tellings == 1 && strstr(told, "did not end"), "%s", told);
    cr_assert(n.entries == 1 && n.lines == 1 && access(journal, F_OK) != 0);
    cr_assert(entry_hit(s, 1, 100) == 1 && entry_hit(s, 2, 100) == 0, "the dead one's is taken back");
    fa_store_close(s);
}

/* A stopped append holds the lock of a file that an import adds to. */
Test(cache_wait, an_import_beside_a_stopped_append)
{
    fa_archive_count n;
    char archive[300];
    snprintf(archive, sizeof archive, "%s", below("archive"));
    fa_store *s = archive_made(archive);
    cr_assert(append(s, 1));
    pid_t child = stopped(records_path(), LOCK_EX, "");
    cr_assert_eq(fa_archive_import(s, archive, true, true, &n), FA_OK, "%s", fa_last_error());
    go_on(child);
    check_lines(s, 2);
    fa_store_close(s);
}
