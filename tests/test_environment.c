/* Surroundings in which a cache must not matter: each cell changes one thing around a program that launches twice. It gets the right
 * output both times, is told at most one thing by each context, finds its kernel again where it should, and never loads one from a
 * place that others can write. A cell that cannot be made here (no root, no namespaces) is named and skipped. */
#include "environment.h"
#include "test_cache_scratch.h"
#include "tiny.h"
#include <criterion/criterion.h>
#include <sys/wait.h>

typedef enum found { AGAIN, NEVER, EITHER } found; /* does the second launch find the kernel of the first? */

typedef struct cell {
    const char *name;
    surroundings *make;
    const char *cache; /* "-": as the environment says; else below home */
    found second;
    int as;           /* the uid it runs as; -1: whoever runs the suite; ORDINARY */
    const char *mode; /* of the program */
    bool filled;      /* before, home/cache is filled by a launch of its owner; then neither may find its kernel */
} cell;

static const cell cells[] = {
    { "a new folder", nothing, "cache", AGAIN, -1, "", false },
    { "missing parents", nothing, "a/b/c", AGAIN, -1, "", false },
    { "blanks, letters and a newline in the path", nothing, "a b/\xc3\xa9\n\"'$x", AGAIN, -1, "", false },
    { "HOME absent, uid without a passwd entry", home_absent, "-", NEVER, SOMEBODY, "", false },
    { "HOME relative, uid without a passwd entry", home_relative, "-", NEVER, SOMEBODY, "", false },
    { "HOME empty, uid without a passwd entry", home_empty, "-", NEVER, SOMEBODY, "", false },
    { "HOME absent, the passwd entry's home missing", home_absent, "-", NEVER, 65534, "", false },
    { "HOME present", home_here, "-", AGAIN, -1, "", false },
    { "XDG_CACHE_HOME empty", xdg_empty, "-", AGAIN, -1, "", false },
    { "XDG_CACHE_HOME relative", xdg_relative, "-", AGAIN, -1, "", false },
    { "XDG_CACHE_HOME present, HOME absent", xdg_here, "-", AGAIN, -1, "", false },
    { "FAGEN_CACHE_DIR empty", turned_off, "-", NEVER, -1, "", false },
    { "FAGEN_CACHE_DIR relative", relative_here, "-", AGAIN, -1, "", false },
    { "FAGEN_CACHE_DIR relative, in a folder that is gone", relative_in_no_folder, "-", NEVER, -1, "", false },
    { "a read-only folder", read_only_folder, "cache", NEVER, ORDINARY, "", false },
    { "group-writable", group_writable, "cache", NEVER, -1, "", false },
    { "group-writable, filled", group_writable, "cache", NEVER, -1, "", true },
    { "world-writable", world_writable, "cache", NEVER, -1, "", false },
    { "world-writable, filled", world_writable, "cache", NEVER, -1, "", true },
    { "world-writable and sticky, filled", sticky, "cache", NEVER, -1, "", true },
    { "a foreign owner", foreign, "cache", NEVER, SOMEBODY, "", false },
    { "a foreign owner, filled", foreign, "cache", NEVER, SOMEBODY, "", true },
    { "a foreign owner, filled, seen by root", foreign, "cache", NEVER, -1, "", true },
    { "the version's folder world-writable", version_writable, "cache", NEVER, -1, "", true },
    { "the kernels' folder group-writable", kernels_writable, "cache", NEVER, -1, "", true },
    { "a bucket world-writable", bucket_writable, "cache", NEVER, -1, "", true },
    { "an entry world-writable", entry_writable, "cache", AGAIN, -1, "", true },
    { "an entry of another user", entry_foreign, "cache", AGAIN, -1, "", true },
    { "an entry that a link leads to", entry_linked, "cache", AGAIN, -1, "", true },
    { "the version's folder that a link leads to", version_linked, "cache", NEVER, -1, "", true },
    { "an unreadable subfolder", kernels_unreadable, "cache", NEVER, ORDINARY, "", true },
    { "a linked root", linked, "cache", AGAIN, -1, "", false },
    { "a root linked to a world-writable folder", linked_to_open, "cache", NEVER, -1, "", false },
    { "a dangling link", dangling, "cache", NEVER, -1, "", false },
    { "a link to itself", loop, "cache", NEVER, -1, "", false },
    { "a file in its place", a_file, "cache", NEVER, -1, "", false },
    { "a file in its parent's place", a_file, "cache/below", NEVER, -1, "", false },
    { "a FIFO in its place", a_fifo, "cache", NEVER, -1, "", false },
    { "a bad root, then a good one", two_roots, "-", AGAIN, -1, "", false },
    { "a path that is too long", long_path, "-", NEVER, -1, "", false },
    { "umask 000", open_umask, "cache", AGAIN, -1, "", false },
    { "umask 777", tight_umask, "cache", EITHER, ORDINARY, "", false },
    { "a limit of file size", file_size_limit, "cache", NEVER, -1, "", false },
    { "no descriptors left", few_descriptors, "cache", NEVER, -1, "descriptors", false },
    { "removed while open", nothing, "cache", NEVER, -1, "removed", false },
    { "a noexec mount", mounted_noexec, "cache", AGAIN, -1, "", false },
    { "a read-only mount", mounted_read_only, "cache", NEVER, -1, "", false },
    { "a full disk", mounted_full, "cache", NEVER, -1, "", false },
    { "a disk that is full after the folders", mounted_small, "cache", NEVER, -1, "", false },
    { "no inodes left", mounted_without_inodes, "cache", NEVER, -1, "", false },
    { "an immutable folder", immutable, "cache", NEVER, -1, "", false },
    { "flock refused", no_flock, "cache", AGAIN, -1, "", false },
    { "fsync refused", no_fsync, "cache", EITHER, -1, "", false },
    { "rename refused", no_rename, "cache", NEVER, -1, "", false },
    { "getrandom refused", no_getrandom, "cache", EITHER, -1, "", false },
    { "times refused", no_utimens, "cache", AGAIN, -1, "", false },
};

static char nvrtc[520], ptx[520], program[520];

static void prepare(void)
{
    char line[4000];
    tiny_result r;
    scratch_make();
    cr_assert_eq(chmod(scratch, 0755), 0);
    /* copies: the build folder may be closed to others */
    snprintf(nvrtc, sizeof nvrtc, "%s", below("libfake_nvrtc.so"));
    snprintf(program, sizeof program, "%s", below("environment_probe"));
    snprintf(ptx, sizeof ptx, "%s", below("kernel.ptx"));
    snprintf(line, sizeof line, "cp '%s' '%s' && cp '%s' '%s' && chmod 0755 '%s' '%s'", FAKE_NVRTC, nvrtc, PROBE, program, nvrtc, program);
    cr_assert_eq(system(line), 0);
    cr_assert(tiny_ptx(ptx, below("real"), NULL, &r), "%s", r.said);
    cr_assert_eq(chmod(ptx, 0644), 0);
    setenv("FAKE_NVRTC_PTX", ptx, 1);
    unsetenv("FAGEN_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
}
TestSuite(environment, .init = prepare, .fini = scratch_remove, .timeout = 600);

/* What the program says, after make() in a process of its own. The exit status. */
static int run(const cell *c, const char *home, const char *cache, surroundings *make, char *said, size_t n)
{
    int to[2], status;
    cr_assert_eq(pipe(to), 0);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        close(to[0]);
        dup2(to[1], STDOUT_FILENO);
        close(to[1]);
        bool first = make == foreign || make == entry_foreign; /* what only root can do */
        if (first)
            make(home);
        be(c->as);
        if (!first)
            make(home);
        execl(program, program, nvrtc, cache, c->mode, NULL);
        skip("execl");
    }
    close(to[1]);
    size_t at = 0;
    for (ssize_t k; at < n - 1 && (k = read(to[0], said + at, n - 1 - at)) > 0;)
        at += (size_t)k;
    said[at] = 0;
    close(to[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* One line of the program: right, and told at most one thing. */
static void judge(const char *name, int i, const char *line, bool *cached)
{
    int warnings = -1;
    char status[32] = "", right[16] = "", from[16] = "";
    int fields = sscanf(line, "%31s %15s %15s %d warnings", status, right, from, &warnings);
    cr_assert(fields == 4 && !strcmp(status, "FA_OK") && !strcmp(right, "right"), "%s: launch %d: %s", name, i + 1, line);
    cr_expect(warnings <= 1, "%s: launch %d was told more than one thing: %s", name, i + 1, line);
    *cached = !strcmp(from, "cached");
}

/* Nothing that was made can be written by others. */
static int closed_to_others(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)type, (void)ftw;
    cr_expect(S_ISLNK(st->st_mode) || !(st->st_mode & 022), "%s has mode %o", path, st->st_mode & 07777);
    return 0;
}

Test(environment, cells)
{
    static char said[1 << 16];
    size_t ran = 0, skipped = 0;
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        const cell *c = &cells[i];
        char home[512], cache[700];
        cell filling = { .as = c->make == kernels_unreadable ? c->as : -1, .mode = "" };
        bool cached[2];
        snprintf(home, sizeof home, "%s", below("cell%zu", i));
        snprintf(cache, sizeof cache, "%s/%s", home, c->cache);
        cr_assert_eq(mkdir(home, 0755), 0);
        if ((c->as >= 0 || c->as == ORDINARY) && geteuid() == 0) {
            uid_t owner = c->as == ORDINARY ? SOMEBODY : (uid_t)c->as;
            cr_assert_eq(chown(home, owner, (gid_t)owner), 0);
        }
        if (c->filled) {
            int status = run(&filling, home, cache, nothing, said, sizeof said);
            cr_assert(status == CELL_SKIPPED || strstr(said, "FA_OK right cached"), "%s: filling: %s", c->name, said);
        }
        int status = run(c, home, strcmp(c->cache, "-") ? cache : "-", c->make, said, sizeof said);
        if (c->make == immutable)
            mutable_again(home);
        if (status == CELL_SKIPPED) {
            skipped++;
            fprintf(stderr, "%s: %.200s\n", c->name, said); /* after cr_log_warn the process would end with 1 */
            continue;
        }
        const char *second = strchr(said, '\n');
        cr_assert(status == 0 && second, "%s: exit %d: %s", c->name, status, said);
        judge(c->name, 0, said, &cached[0]);
        judge(c->name, 1, second + 1, &cached[1]);
        cr_expect(!cached[0], "%s: loaded from a place that others can write: %s", c->name, said);
        cr_expect(c->second == EITHER || cached[1] == (c->second == AGAIN), "%s: the second launch %s its kernel: %s", c->name,
                  cached[1] ? "found" : "did not find", said);
        if (c->make == open_umask)
            nftw(cache, closed_to_others, 16, FTW_PHYS);
        ran++;
    }
    cr_log_info("%zu cells ran, %zu were skipped", ran, skipped);
    cr_assert_geq(ran, 20, "%zu cells are too few to say anything", ran);
}

/* A read-only store on the search path: others' kernels, by root or by oneself, are used from it. */
Test(environment, a_read_only_store_is_used)
{
    static char said[1 << 16];
    char home[512], cache[700];
    cell c = { .name = "", .as = -1, .mode = "" };
    snprintf(home, sizeof home, "%s", below("shared"));
    snprintf(cache, sizeof cache, "%s/cache", home);
    cr_assert_eq(mkdir(home, 0755), 0);
    run(&c, home, cache, nothing, said, sizeof said);
    c.as = geteuid() == 0 ? SOMEBODY : -1;
    if (geteuid() == 0)
        below_cache(home, "", "chmod -R a+rX \"$f\"");
    char path[1500];
    snprintf(path, sizeof path, "%s/mine:%s", home, cache);
    if (geteuid() == 0) {
        char mine[600];
        snprintf(mine, sizeof mine, "%s/mine", home);
        cr_assert_eq(mkdir(mine, 0700), 0);
        cr_assert_eq(chown(mine, SOMEBODY, SOMEBODY), 0);
    }
    run(&c, home, path, nothing, said, sizeof said);
    bool cached;
    judge("a read-only store", 0, said, &cached);
    cr_assert(cached, "%s", said);
}

/* A program with more rights than its caller has no cache, whatever the environment says. */
Test(environment, at_secure)
{
    static char said[1 << 16];
    char home[512];
    cell c = { .name = "", .as = ANOTHER, .mode = "" };
    if (geteuid() != 0)
        cr_skip_test("needs root to make a program set-user-id");
    snprintf(home, sizeof home, "%s", below("secure"));
    cr_assert(mkdir(home, 0755) == 0 && chown(home, SOMEBODY, SOMEBODY) == 0);
    cr_assert(chown(program, SOMEBODY, SOMEBODY) == 0 && chmod(program, 04755) == 0);
    int status = run(&c, home, "-", cache_dir_here, said, sizeof said);
    const char *second = strchr(said, '\n');
    cr_assert(status == 0 && second, "exit %d: %s", status, said);
    bool cached[2];
    judge("AT_SECURE", 0, said, &cached[0]);
    judge("AT_SECURE", 1, second + 1, &cached[1]);
    cr_assert_not(cached[0] || cached[1]);
    cr_assert_neq(access(in(home, "cache"), F_OK), 0, "nothing is made");
    cr_assert_neq(access(in(home, ".cache"), F_OK), 0, "nothing is made");
}
