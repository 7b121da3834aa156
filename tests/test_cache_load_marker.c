/* A kernel whose loading killed a process is set aside once, and what was loaded without harm costs nothing. */
#include "cache/load_marker.h"
#include "cache/scan.h"
#include "test_cache_entries.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

TestSuite(cache_load_marker, .init = scratch_make, .fini = scratch_remove, .timeout = 60);

static int tellings;
static char told[512];

static void tell(void *user, const char *message)
{
    (void)user;
    tellings++;
    snprintf(told, sizeof told, "%s", message);
}

static const char *hex_of(uint64_t n)
{
    static char hex[33];
    fa_key_print(hex, key_made(n));
    return hex;
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static const char *mark_of(uint64_t n)
{
    return below("v1/loading/%s", hex_of(n));
}

static fa_entry got(fa_store *s, uint64_t n)
{
    fa_entry e;
    cr_assert(fa_entry_get(s, key_made(n), "sm_80", &e));
    return e;
}

/* A child that loads entry n of the store at root, and is killed while it does. */
static void die_loading(const char *root, uint64_t n)
{
    pid_t child = fork();
    if (child == 0) {
        fa_store *s = fa_store_open(root, NULL, NULL);
        fa_entry e;
        if (!fa_entry_get(s, key_made(n), "sm_80", &e))
            _exit(1);
        fa_load_marker c = fa_load_marker_set(s, &e);
        if (c.fd < 0)
            _exit(2);
        raise(SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

Test(cache_load_marker, dead_loader_means_quarantine)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    cr_assert(entry_put(s, 1, 100) && entry_put(s, 2, 100));
    fa_store_close(s);
    die_loading(scratch, 1);
    cr_assert(exists(mark_of(1)));
    s = fa_store_open(scratch, tell, NULL);
    cr_assert_eq(tellings, 1);
    cr_assert(strstr(told, hex_of(1)) && strstr(told, "quarantine"), "%s", told);
    cr_assert_eq(entry_hit(s, 1, 100), 0);
    cr_assert_eq(entry_hit(s, 2, 100), 1);
    cr_assert(!exists(mark_of(1)));
    cr_assert(exists(below("v1/quarantine/%s.fak", hex_of(1))));
    cr_assert(entry_put(s, 1, 100) && entry_hit(s, 1, 100) == 1, "compiled again");
    fa_store_close(s);
    s = fa_store_open(scratch, tell, NULL);
    cr_assert_eq(tellings, 1, "told once");
    cr_assert_eq(entry_hit(s, 1, 100), 1);
    fa_store_close(s);
}

Test(cache_load_marker, a_good_load_is_remembered)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    cr_assert(entry_put(s, 1, 100));
    fa_entry e = got(s, 1);
    cr_assert(!e.proved);
    fa_load_marker c = fa_load_marker_set(s, &e);
    cr_assert(c.fd >= 0 && exists(mark_of(1)));
    fa_load_marker_clear(&c, true);
    fa_load_marker_clear(&c, true);
    cr_assert(!exists(mark_of(1)));
    fa_entry_free(&e);
    e = got(s, 1);
    cr_assert(e.proved);
    c = fa_load_marker_set(s, &e);
    cr_assert(c.fd < 0 && !exists(mark_of(1)), "nothing is written for what was loaded before");
    fa_load_marker_clear(&c, true);
    fa_entry_free(&e);
    cr_assert(entry_put(s, 1, 100));
    e = got(s, 1);
    cr_assert(!e.proved, "another file has its first load before it");
    fa_entry_free(&e);
    fa_store_close(s);
}

Test(cache_load_marker, a_refused_load_leaves_no_mark_and_no_proof)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    cr_assert(entry_put(s, 1, 100));
    fa_entry e = got(s, 1);
    fa_load_marker c = fa_load_marker_set(s, &e);
    fa_load_marker_clear(&c, false);
    fa_entry_free(&e);
    cr_assert(!exists(mark_of(1)));
    e = got(s, 1);
    cr_assert(!e.proved);
    fa_entry_free(&e);
    fa_store_close(s);
}

/* Two load the same at once: the first to succeed leaves the mark to the second, and clears the kernel of suspicion. */
Test(cache_load_marker, two_loaders)
{
    fa_store *s = fa_store_open(scratch, tell, NULL), *t = fa_store_open(scratch, NULL, NULL);
    cr_assert(entry_put(s, 1, 100));
    fa_entry e = got(s, 1);
    fa_load_marker a = fa_load_marker_set(s, &e), b = fa_load_marker_set(t, &e);
    cr_assert(a.fd >= 0 && b.fd >= 0);
    fa_store_close(fa_store_open(scratch, tell, NULL));
    cr_assert(exists(mark_of(1)) && tellings == 0, "the loaders live");
    fa_load_marker_clear(&a, true);
    cr_assert(exists(mark_of(1)));
    close(b.fd); /* as if it had been killed */
    fa_store *u = fa_store_open(scratch, tell, NULL);
    cr_assert_eq(tellings, 0);
    cr_assert_eq(entry_hit(u, 1, 100), 1);
    cr_assert(!exists(mark_of(1)));
    fa_entry_free(&e);
    fa_store_close(s);
    fa_store_close(t);
    fa_store_close(u);
}

Test(cache_load_marker, what_died_before_it_loaded_is_no_reason)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    cr_assert(entry_put(s, 1, 100));
    fa_store_close(s);
    spill(mark_of(1), "", 0);
    spill(below("v1/loading/nonsense"), "loading\n", 8);
    s = fa_store_open(scratch, tell, NULL);
    cr_assert_eq(tellings, 0);
    cr_assert(!exists(mark_of(1)) && !exists(below("v1/loading/nonsense")));
    cr_assert_eq(entry_hit(s, 1, 100), 1);
    fa_store_close(s);
}

/* The file of a root that is only read cannot be moved: its key is shunned there. */
Test(cache_load_marker, a_shared_root_is_shunned)
{
    const char *shared = below("shared"), *mine = below("mine");
    char *path;
    fa_store *s = fa_store_open(shared, NULL, NULL);
    cr_assert(entry_put(s, 1, 100) && entry_put(s, 2, 100));
    fa_store_close(s);
    cr_assert_gt(asprintf(&path, "%s:%s", mine, shared), 0);
    die_loading(path, 1);
    s = fa_store_open(path, tell, NULL);
    cr_assert_eq(tellings, 1);
    cr_assert_eq(entry_hit(s, 1, 100), 0);
    cr_assert_eq(entry_hit(s, 2, 100), 1);
    cr_assert(exists(below("mine/v1/quarantine/%s.fak", hex_of(1))));
    cr_assert(entry_put(s, 1, 100) && entry_hit(s, 1, 100) == 1, "our own is another matter");
    fa_store_close(s);
    s = fa_store_open(path, tell, NULL);
    cr_assert_eq(entry_hit(s, 1, 100), 1);
    fa_store_close(s);
    s = fa_store_open(shared, NULL, NULL);
    cr_assert_eq(entry_hit(s, 1, 100), 1, "the shared root is untouched");
    fa_store_close(s);
    free(path);
}

Test(cache_load_marker, no_store_no_marker)
{
    fa_store *s = fa_store_open("", NULL, NULL);
    fa_entry e = entry_made(1, 10);
    fa_load_marker c = fa_load_marker_set(s, &e);
    cr_assert_lt(c.fd, 0);
    fa_load_marker_clear(&c, true);
    fa_entry_free(&e);
    fa_store_close(s);
}
