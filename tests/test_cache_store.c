/* Where the cache lies: the search path, and what is refused. */
#include "cache/entry.h"
#include "cache/store.h"
#include "cache/temp_file.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void clean(void)
{
    scratch_make();
    unsetenv("FAGEN_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
}
TestSuite(cache_store, .init = clean, .fini = scratch_remove, .timeout = 60);

static char told[1024];
static int tellings;

static void tell(void *user, const char *message)
{
    (void)user;
    tellings++;
    snprintf(told, sizeof told, "%s", message);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void misses(fa_store *s)
{
    fa_entry e = { .key = { 1, 2 }, .arch = "sm_80", .image = "x", .image_size = 1 }, out;
    cr_assert_null(fa_store_root(s));
    cr_assert_not(fa_entry_put(s, &e));
    cr_assert_not(fa_entry_get(s, e.key, "sm_80", &out));
}

Test(cache_store, empty_path_is_no_cache)
{
    fa_store *s = fa_store_open("", tell, NULL);
    misses(s);
    cr_assert_null(fa_store_root_at(s, 0, NULL, NULL));
    cr_assert_eq(tellings, 0);
    fa_store_close(s);
    fa_store_close(NULL);
}

Test(cache_store, missing_root_is_made_private)
{
    umask(0);
    const char *deep = below("a/b/c");
    fa_store *s = fa_store_open(deep, tell, NULL);
    cr_assert_str_eq(fa_store_root(s), deep);
    fa_store_close(s);
    const char *made[] = { "a", "a/b", "a/b/c", "a/b/c/v1", "a/b/c/v1/kernels", "a/b/c/v1/records", "a/b/c/v1/locks", "a/b/c/v1/loading" };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        cr_assert_eq(mode_of(below("%s", made[i])), 0700, "%s", made[i]);
    cr_assert_eq(tellings, 0);
}

Test(cache_store, a_root_others_can_write_is_refused_with_one_word)
{
    const int modes[] = { 0770, 0707, 0777, 01777 };
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(chmod(scratch, (mode_t)modes[i]), 0);
        tellings = 0;
        fa_store *s = fa_store_open(scratch, tell, NULL);
        misses(s);
        misses(s);
        cr_assert_eq(tellings, 1);
        cr_assert(strstr(told, "writable"), "%s", told);
        bool writable;
        const char *trouble;
        cr_assert_str_eq(fa_store_root_at(s, 0, &writable, &trouble), scratch);
        cr_assert(!writable && strstr(trouble, "writable"));
        fa_store_close(s);
        cr_assert_eq(mode_of(scratch), (mode_t)modes[i], "never chmod what exists");
        chmod(scratch, 0700);
    }
}

Test(cache_store, a_foreign_owner_is_refused)
{
    if (geteuid() != 0)
        cr_skip_test("needs root to give a directory away");
    cr_assert_eq(chown(scratch, 12345, 12345), 0);
    fa_store *s = fa_store_open(scratch, tell, NULL);
    misses(s);
    cr_assert(strstr(told, "owned by another user"), "%s", told);
    fa_store_close(s);
}

Test(cache_store, a_file_in_the_way_is_no_cache)
{
    spill(below("file"), "x", 1);
    fa_store *s = fa_store_open(below("file"), tell, NULL);
    misses(s);
    fa_store_close(s);
    s = fa_store_open(below("file/under"), tell, NULL);
    misses(s);
    fa_store_close(s);
    cr_assert_eq(tellings, 2);
}

/* A root that is not there may be a shared one, to be read: a word only where a kernel would have been kept. */
Test(cache_store, a_root_that_cannot_be_made_is_told_of_once_there_is_a_kernel)
{
    fa_store *s = fa_store_open("/proc/none/cache", tell, NULL);
    cr_assert_eq(tellings, 0);
    misses(s);
    misses(s);
    cr_assert_eq(tellings, 1);
    cr_assert(strstr(told, "a kernel could not be kept: the cache /proc/none/cache cannot be written"), "%s", told);
    fa_store_close(s);
}

Test(cache_store, a_linked_version_directory_is_not_followed)
{
    mkdir(below("elsewhere"), 0700);
    cr_assert_eq(symlink(below("elsewhere"), below("v1")), 0);
    fa_store *s = fa_store_open(scratch, tell, NULL);
    misses(s);
    fa_store_close(s);
}

Test(cache_store, the_first_usable_root_takes_new_files)
{
    char *path;
    mkdir(below("open"), 0777);
    chmod(below("open"), 0777);
    cr_assert_gt(asprintf(&path, "%s:%s::%s", below("open"), below("mine"), below("absent")), 0);
    fa_store *s = fa_store_open(path, tell, NULL);
    free(path);
    cr_assert_str_eq(fa_store_root(s), below("mine"));
    bool writable;
    const char *trouble;
    cr_assert(fa_store_root_at(s, 1, &writable, &trouble) && writable && !trouble[0]);
    cr_assert(fa_store_root_at(s, 2, &writable, &trouble) && !writable && trouble[0]);
    cr_assert_null(fa_store_root_at(s, 3, &writable, &trouble));
    cr_assert_eq(access(below("absent"), F_OK), -1, "a root that is only read is not made");
    cr_assert_eq(tellings, 1);
    fa_store_close(s);
}

Test(cache_store, environment_decides_without_a_path)
{
    const struct {
        const char *cache, *xdg, *home, *root;
    } rows[] = { { "c", "x", "h", "c" }, { NULL, "x", "h", "x/fagen" }, { NULL, NULL, "h", "h/.cache/fagen" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rows[i].cache ? setenv("FAGEN_CACHE_DIR", below("%s", rows[i].cache), 1) : unsetenv("FAGEN_CACHE_DIR");
        rows[i].xdg ? setenv("XDG_CACHE_HOME", below("%s", rows[i].xdg), 1) : unsetenv("XDG_CACHE_HOME");
        setenv("HOME", below("%s", rows[i].home), 1);
        fa_store *s = fa_store_open(NULL, NULL, NULL);
        cr_assert_not_null(fa_store_root(s));
        cr_assert_str_eq(fa_store_root(s), below("%s", rows[i].root));
        fa_store_close(s);
    }
    setenv("FAGEN_CACHE_DIR", "", 1);
    fa_store *s = fa_store_open(NULL, tell, NULL);
    misses(s);
    fa_store_close(s);
    cr_assert_eq(tellings, 0);
}

Test(cache_store, no_home_and_no_passwd_entry_is_no_cache)
{
    unsetenv("HOME");
    if (geteuid() != 0 || seteuid(54321) != 0)
        cr_skip_test("needs root to become a user without a passwd entry");
    fa_store *s = fa_store_open(NULL, tell, NULL);
    misses(s);
    fa_store_close(s);
    cr_assert_eq(tellings, 1);
    cr_assert_eq(seteuid(0), 0);
}

/* A temporary file that its maker, which sleeps in a child, still holds, beside those of the dead. */
Test(cache_store, leftovers_of_killed_writers_go_at_once_and_no_others)
{
    fa_store_close(fa_store_open(scratch, NULL, NULL));
    int up[2];
    char name[64] = "";
    cr_assert_eq(pipe(up), 0);
    pid_t child = fork();
    if (child == 0) {
        fa_temp_file d;
        const char *trouble;
        int dir = open(below("v1/kernels"), O_RDONLY | O_DIRECTORY);
        if (!fa_temp_file_open(&d, dir, &trouble) || write(up[1], d.name, sizeof d.name) != sizeof d.name)
            _exit(1);
        pause();
        _exit(0);
    }
    cr_assert_eq(read(up[0], name, sizeof name), sizeof name);
    const char *dead = below("v1/kernels/.put-dead"), *live = below("v1/kernels/%s", name), *link = below("v1/kernels/.put-link");
    spill(dead, "x", 1);
    cr_assert_eq(symlink(dead, link), 0);
    fa_store_close(fa_store_open(scratch, NULL, NULL));
    cr_expect_eq(access(dead, F_OK), -1);
    cr_expect_eq(access(live, F_OK), 0, "its maker lives");
    struct stat st;
    cr_expect_eq(lstat(link, &st), 0, "what cannot be locked goes by its age");
    struct timespec then[2] = { { time(NULL) - 7200, 0 }, { time(NULL) - 7200, 0 } };
    cr_assert_eq(utimensat(AT_FDCWD, link, then, AT_SYMLINK_NOFOLLOW), 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    fa_store_close(fa_store_open(scratch, NULL, NULL));
    cr_expect_eq(access(live, F_OK), -1);
    cr_expect_eq(lstat(link, &st), -1);
}
