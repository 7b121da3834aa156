/* Surroundings in which a cache must not matter: each cell changes one thing around a program that launches twice. It gets the right
 * output both times, is told at most one thing by each context, finds its kernel again where it should, and never loads one from a
 * place that others can write. A cell that cannot be made here (no root, no namespaces) is named and skipped. */
#include "test_cache_scratch.h"
#include "tiny.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SOMEBODY 54321 /* a uid without a passwd entry */
#define ANOTHER 54322
#define ORDINARY (-2)  /* whoever runs the suite, or SOMEBODY where that is root */
#define CELL_SKIPPED 77 /* exit status */

typedef enum found { AGAIN, NEVER, EITHER } found; /* does the second launch find the kernel of the first? */

typedef struct cell {
    const char *name;
    void (*make)(const char *home); /* in a child, before the program; home: a folder of its own, empty, that `as` owns */
    const char *cache;              /* "-": as the environment says; else below home */
    found second;
    int as;                         /* the uid it runs as; -1: whoever runs the suite; ORDINARY */
    const char *mode;               /* of the program */
    bool filled;                    /* before, home/cache is filled by a launch of its owner; then neither may find its kernel */
} cell;

static void skip(const char *what)
{
    printf("skipped: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(CELL_SKIPPED);
}

#define NEED(call)          \
    do {                    \
        if ((call) != 0)    \
            skip(#call);    \
    } while (0)

static void be(int uid)
{
    if (uid == ORDINARY)
        uid = geteuid() == 0 ? SOMEBODY : -1;
    if (uid < 0)
        return;
    if (geteuid() != 0) {
        errno = EPERM;
        skip("another user");
    }
    NEED(setgroups(0, NULL));
    NEED(setgid((gid_t)uid));
    NEED(setuid((uid_t)uid));
}

static const char *in(const char *home, const char *name)
{
    static char ring[4][600];
    static int at;
    char *s = ring[at++ % 4];
    snprintf(s, sizeof ring[0], "%s/%s", home, name);
    return s;
}

/* --- the surroundings --- */

static void nothing(const char *home)
{
    (void)home;
}

static void home_absent(const char *home)
{
    (void)home;
    NEED(unsetenv("HOME"));
}

static void home_relative(const char *home)
{
    (void)home;
    NEED(setenv("HOME", "somewhere", 1));
}

static void home_empty(const char *home)
{
    (void)home;
    NEED(setenv("HOME", "", 1));
}

static void home_here(const char *home)
{
    NEED(setenv("HOME", home, 1));
}

static void xdg_empty(const char *home)
{
    home_here(home);
    NEED(setenv("XDG_CACHE_HOME", "", 1));
}

static void xdg_relative(const char *home)
{
    home_here(home);
    NEED(setenv("XDG_CACHE_HOME", "here", 1));
}

static void xdg_here(const char *home)
{
    NEED(unsetenv("HOME"));
    NEED(setenv("XDG_CACHE_HOME", home, 1));
}

static void turned_off(const char *home)
{
    home_here(home);
    NEED(setenv("FAGEN_CACHE_DIR", "", 1));
}

static void relative_in_no_folder(const char *home)
{
    NEED(mkdir(in(home, "gone"), 0700));
    NEED(chdir(in(home, "gone")));
    NEED(rmdir(in(home, "gone")));
    NEED(setenv("FAGEN_CACHE_DIR", "cache", 1));
}

static void relative_here(const char *home)
{
    NEED(chdir(home));
    NEED(setenv("FAGEN_CACHE_DIR", "cache", 1));
}

static void read_only_folder(const char *home)
{
    NEED(mkdir(in(home, "cache"), 0500));
}

static void mode_of_cache(const char *home, mode_t mode)
{
    if (mkdir(in(home, "cache"), 0700) != 0 && errno != EEXIST)
        skip("mkdir");
    NEED(chmod(in(home, "cache"), mode));
}

static void group_writable(const char *home)
{
    mode_of_cache(home, 0770);
}

static void world_writable(const char *home)
{
    mode_of_cache(home, 0777);
}

static void sticky(const char *home)
{
    mode_of_cache(home, 01777);
}

static void foreign(const char *home)
{
    if (geteuid() != 0) {
        errno = EPERM;
        skip("chown");
    }
    mode_of_cache(home, 0755);
    NEED(chown(in(home, "cache"), ANOTHER, ANOTHER));
}

/* Something below a filled cache. */
static void below_cache(const char *home, const char *pattern, const char *command)
{
    char line[1500];
    snprintf(line, sizeof line, "set -e; for f in %s/cache/%s; do %s; done", home, pattern, command);
    NEED(system(line));
}

static void bucket_writable(const char *home)
{
    below_cache(home, "v*/kernels/*", "chmod 0777 \"$f\"");
}

static void kernels_writable(const char *home)
{
    below_cache(home, "v*/kernels", "chmod 0770 \"$f\"");
}

static void version_writable(const char *home)
{
    below_cache(home, "v*", "chmod 0707 \"$f\"");
}

static void entry_writable(const char *home)
{
    below_cache(home, "v*/kernels/*/*.fak", "chmod 0666 \"$f\"");
}

static void entry_foreign(const char *home)
{
    if (geteuid() != 0) {
        errno = EPERM;
        skip("chown");
    }
    below_cache(home, "v*/kernels/*/*.fak", "chown 54322 \"$f\"");
}

static void entry_linked(const char *home)
{
    below_cache(home, "v*/kernels/*/*.fak", "mv \"$f\" \"$f.moved\"; ln -s \"$f.moved\" \"$f\"");
}

static void version_linked(const char *home)
{
    below_cache(home, "v1", "mv \"$f\" \"$f.moved\"; ln -s v1.moved \"$f\"");
}

static void kernels_unreadable(const char *home)
{
    below_cache(home, "v*/kernels", "chmod 0 \"$f\"");
}

static void linked(const char *home)
{
    NEED(mkdir(in(home, "real"), 0700));
    NEED(symlink(in(home, "real"), in(home, "cache")));
}

static void linked_to_open(const char *home)
{
    NEED(mkdir(in(home, "real"), 0700));
    NEED(chmod(in(home, "real"), 0777));
    NEED(symlink(in(home, "real"), in(home, "cache")));
}

static void dangling(const char *home)
{
    NEED(symlink(in(home, "nowhere"), in(home, "cache")));
}

static void loop(const char *home)
{
    NEED(symlink(in(home, "cache"), in(home, "cache")));
}

static void a_file(const char *home)
{
    int fd = open(in(home, "cache"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) != 0)
        skip("open");
}

static void a_fifo(const char *home)
{
    NEED(mkfifo(in(home, "cache"), 0600));
}

static void two_roots(const char *home)
{
    char path[1300];
    NEED(mkdir(in(home, "open"), 0777));
    NEED(chmod(in(home, "open"), 0777));
    snprintf(path, sizeof path, "%s:%s", in(home, "open"), in(home, "mine"));
    NEED(setenv("FAGEN_CACHE_DIR", path, 1));
}

static void long_path(const char *home)
{
    static char path[9000];
    snprintf(path, sizeof path, "%s", home);
    while (strlen(path) < 8000)
        strcat(path, "/a_folder_with_a_rather_long_name");
    NEED(setenv("FAGEN_CACHE_DIR", path, 1));
}

static void open_umask(const char *home)
{
    (void)home;
    umask(0);
}

static void tight_umask(const char *home)
{
    (void)home;
    umask(0777);
}

static void file_size_limit(const char *home)
{
    (void)home;
    signal(SIGXFSZ, SIG_IGN);
    NEED(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, 100}));
}

static void few_descriptors(const char *home)
{
    (void)home;
    NEED(setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64}));
}

static void mounted(const char *home, unsigned long flags, const char *options)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (uid != 0) {
        char map[64];
        NEED(unshare(CLONE_NEWUSER | CLONE_NEWNS));
        const char *const files[] = {"/proc/self/setgroups", "/proc/self/uid_map", "/proc/self/gid_map"};
        for (int i = 0; i < 3; i++) {
            int fd = open(files[i], O_WRONLY | O_CLOEXEC);
            int n = i == 0 ? snprintf(map, sizeof map, "deny") : snprintf(map, sizeof map, "%u %u 1", i == 1 ? uid : gid, i == 1 ? uid : gid);
            if (fd < 0 || write(fd, map, (size_t)n) != n || close(fd) != 0)
                skip(files[i]);
        }
    } else
        NEED(unshare(CLONE_NEWNS));
    NEED(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
    NEED(mkdir(in(home, "cache"), 0700));
    NEED(mount("tmpfs", in(home, "cache"), "tmpfs", flags & ~(unsigned long)MS_RDONLY, options));
    if (flags & MS_RDONLY)
        NEED(mount(NULL, in(home, "cache"), NULL, MS_REMOUNT | flags, NULL));
}

static void mounted_noexec(const char *home)
{
    mounted(home, MS_NOEXEC | MS_NOSUID | MS_NODEV, "mode=0700,size=8m");
}

static void mounted_read_only(const char *home)
{
    mounted(home, MS_RDONLY, "mode=0700,size=8m");
}

static void mounted_full(const char *home)
{
    mounted(home, 0, "mode=0700,size=64k");
    int fd = open(in(home, "cache/ballast"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char block[4096] = "";
    if (fd < 0)
        skip("open");
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

static void mounted_small(const char *home)
{
    mounted(home, 0, "mode=0700,size=16k"); /* the folders fit, no kernel does */
}

static void mounted_without_inodes(const char *home)
{
    mounted(home, 0, "mode=0700,size=8m,nr_inodes=8");
}

static void immutable(const char *home)
{
    int flags = FS_IMMUTABLE_FL;
    NEED(mkdir(in(home, "cache"), 0700));
    int fd = open(in(home, "cache"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, FS_IOC_SETFLAGS, &flags) != 0)
        skip("the flag of an immutable folder");
    close(fd);
}

static void mutable_again(const char *home)
{
    int flags = 0, fd = open(in(home, "cache"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
        close(fd);
    }
}

/* From here on a system call of this process fails. */
static void refuse(int nr, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void no_flock(const char *home)
{
    (void)home;
    refuse(SYS_flock, ENOLCK);
}

static void no_fsync(const char *home)
{
    (void)home;
    refuse(SYS_fsync, EINVAL);
}

static void no_rename(const char *home)
{
    (void)home;
    refuse(SYS_renameat, EXDEV);
    refuse(SYS_renameat2, EXDEV);
}

static void no_getrandom(const char *home)
{
    (void)home;
    refuse(SYS_getrandom, ENOSYS);
}

static void no_utimens(const char *home)
{
    (void)home;
    refuse(SYS_utimensat, EPERM);
}

static void cache_dir_here(const char *home)
{
    NEED(setenv("FAGEN_CACHE_DIR", in(home, "cache"), 1));
    NEED(setenv("HOME", home, 1));
}

static const cell cells[] = {
    {"a new folder", nothing, "cache", AGAIN, -1, "", false},
    {"missing parents", nothing, "a/b/c", AGAIN, -1, "", false},
    {"blanks, letters and a newline in the path", nothing, "a b/\xc3\xa9\n\"'$x", AGAIN, -1, "", false},
    {"HOME absent, uid without a passwd entry", home_absent, "-", NEVER, SOMEBODY, "", false},
    {"HOME relative, uid without a passwd entry", home_relative, "-", NEVER, SOMEBODY, "", false},
    {"HOME empty, uid without a passwd entry", home_empty, "-", NEVER, SOMEBODY, "", false},
    {"HOME absent, the passwd entry's home missing", home_absent, "-", NEVER, 65534, "", false},
    {"HOME present", home_here, "-", AGAIN, -1, "", false},
    {"XDG_CACHE_HOME empty", xdg_empty, "-", AGAIN, -1, "", false},
    {"XDG_CACHE_HOME relative", xdg_relative, "-", AGAIN, -1, "", false},
    {"XDG_CACHE_HOME present, HOME absent", xdg_here, "-", AGAIN, -1, "", false},
    {"FAGEN_CACHE_DIR empty", turned_off, "-", NEVER, -1, "", false},
    {"FAGEN_CACHE_DIR relative", relative_here, "-", AGAIN, -1, "", false},
    {"FAGEN_CACHE_DIR relative, in a folder that is gone", relative_in_no_folder, "-", NEVER, -1, "", false},
    {"a read-only folder", read_only_folder, "cache", NEVER, ORDINARY, "", false},
    {"group-writable", group_writable, "cache", NEVER, -1, "", false},
    {"group-writable, filled", group_writable, "cache", NEVER, -1, "", true},
    {"world-writable", world_writable, "cache", NEVER, -1, "", false},
    {"world-writable, filled", world_writable, "cache", NEVER, -1, "", true},
    {"world-writable and sticky, filled", sticky, "cache", NEVER, -1, "", true},
    {"a foreign owner", foreign, "cache", NEVER, SOMEBODY, "", false},
    {"a foreign owner, filled", foreign, "cache", NEVER, SOMEBODY, "", true},
    {"a foreign owner, filled, seen by root", foreign, "cache", NEVER, -1, "", true},
    {"the version's folder world-writable", version_writable, "cache", NEVER, -1, "", true},
    {"the kernels' folder group-writable", kernels_writable, "cache", NEVER, -1, "", true},
    {"a bucket world-writable", bucket_writable, "cache", NEVER, -1, "", true},
    {"an entry world-writable", entry_writable, "cache", AGAIN, -1, "", true},
    {"an entry of another user", entry_foreign, "cache", AGAIN, -1, "", true},
    {"an entry behind a link", entry_linked, "cache", AGAIN, -1, "", true},
    {"the version's folder behind a link", version_linked, "cache", NEVER, -1, "", true},
    {"an unreadable subfolder", kernels_unreadable, "cache", NEVER, ORDINARY, "", true},
    {"a linked root", linked, "cache", AGAIN, -1, "", false},
    {"a root linked to a world-writable folder", linked_to_open, "cache", NEVER, -1, "", false},
    {"a dangling link", dangling, "cache", NEVER, -1, "", false},
    {"a link to itself", loop, "cache", NEVER, -1, "", false},
    {"a file in its place", a_file, "cache", NEVER, -1, "", false},
    {"a file in its parent's place", a_file, "cache/below", NEVER, -1, "", false},
    {"a FIFO in its place", a_fifo, "cache", NEVER, -1, "", false},
    {"a bad root, then a good one", two_roots, "-", AGAIN, -1, "", false},
    {"a path that is too long", long_path, "-", NEVER, -1, "", false},
    {"umask 000", open_umask, "cache", AGAIN, -1, "", false},
    {"umask 777", tight_umask, "cache", EITHER, ORDINARY, "", false},
    {"a limit of file size", file_size_limit, "cache", NEVER, -1, "", false},
    {"no descriptors left", few_descriptors, "cache", NEVER, -1, "descriptors", false},
    {"removed while open", nothing, "cache", NEVER, -1, "removed", false},
    {"a noexec mount", mounted_noexec, "cache", AGAIN, -1, "", false},
    {"a read-only mount", mounted_read_only, "cache", NEVER, -1, "", false},
    {"a full disk", mounted_full, "cache", NEVER, -1, "", false},
    {"a disk that is full after the folders", mounted_small, "cache", NEVER, -1, "", false},
    {"no inodes left", mounted_without_inodes, "cache", NEVER, -1, "", false},
    {"an immutable folder", immutable, "cache", NEVER, -1, "", false},
    {"flock refused", no_flock, "cache", AGAIN, -1, "", false},
    {"fsync refused", no_fsync, "cache", EITHER, -1, "", false},
    {"rename refused", no_rename, "cache", NEVER, -1, "", false},
    {"getrandom refused", no_getrandom, "cache", EITHER, -1, "", false},
    {"times refused", no_utimens, "cache", AGAIN, -1, "", false},
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
static int run(const cell *c, const char *home, const char *cache, void (*make)(const char *), char *said, size_t n)
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
        cell filling = {.as = c->make == kernels_unreadable ? c->as : -1, .mode = ""};
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
            cr_log_warn("%s: %.200s", c->name, said);
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
    cell c = {.name = "", .as = -1, .mode = ""};
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
    cell c = {.name = "", .as = ANOTHER, .mode = ""};
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
