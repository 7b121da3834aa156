/* environment: see the header. Here: what a process is given, by variables, limits and the system calls that it may make. */
#include "environment.h"
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void skip(const char *what)
{
    printf("skipped: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(CELL_SKIPPED);
}

void be(int uid)
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

const char *in(const char *home, const char *name)
{
    static char ring[4][600];
    static int at;
    char *s = ring[at++ % 4];
    snprintf(s, sizeof ring[0], "%s/%s", home, name);
    return s;
}

/* --- the surroundings --- */

void nothing(const char *home)
{
    (void)home;
}

void home_absent(const char *home)
{
    (void)home;
    NEED(unsetenv("HOME"));
}

void home_relative(const char *home)
{
    (void)home;
    NEED(setenv("HOME", "somewhere", 1));
}

void home_empty(const char *home)
{
    (void)home;
    NEED(setenv("HOME", "", 1));
}

void home_here(const char *home)
{
    NEED(setenv("HOME", home, 1));
}

void xdg_empty(const char *home)
{
    home_here(home);
    NEED(setenv("XDG_CACHE_HOME", "", 1));
}

void xdg_relative(const char *home)
{
    home_here(home);
    NEED(setenv("XDG_CACHE_HOME", "here", 1));
}

void xdg_here(const char *home)
{
    NEED(unsetenv("HOME"));
    NEED(setenv("XDG_CACHE_HOME", home, 1));
}

void turned_off(const char *home)
{
    home_here(home);
    NEED(setenv("FAGEN_CACHE_DIR", "", 1));
}

void relative_in_no_folder(const char *home)
{
    NEED(mkdir(in(home, "gone"), 0700));
    NEED(chdir(in(home, "gone")));
    NEED(rmdir(in(home, "gone")));
    NEED(setenv("FAGEN_CACHE_DIR", "cache", 1));
}

void relative_here(const char *home)
{
    NEED(chdir(home));
    NEED(setenv("FAGEN_CACHE_DIR", "cache", 1));
}

void cache_dir_here(const char *home)
{
    NEED(setenv("FAGEN_CACHE_DIR", in(home, "cache"), 1));
    NEED(setenv("HOME", home, 1));
}

void two_roots(const char *home)
{
    char path[1300];
    NEED(mkdir(in(home, "open"), 0777));
    NEED(chmod(in(home, "open"), 0777));
    snprintf(path, sizeof path, "%s:%s", in(home, "open"), in(home, "mine"));
    NEED(setenv("FAGEN_CACHE_DIR", path, 1));
}

void long_path(const char *home)
{
    static char path[9000];
    snprintf(path, sizeof path, "%s", home);
    while (strlen(path) < 8000)
        strcat(path, "/a_folder_with_a_rather_long_name");
    NEED(setenv("FAGEN_CACHE_DIR", path, 1));
}

void open_umask(const char *home)
{
    (void)home;
    umask(0);
}

void tight_umask(const char *home)
{
    (void)home;
    umask(0777);
}

void file_size_limit(const char *home)
{
    (void)home;
    NEED(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 100, 100 }));
}

void few_descriptors(const char *home)
{
    (void)home;
    NEED(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 }));
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
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

void no_flock(const char *home)
{
    (void)home;
    refuse(SYS_flock, ENOLCK);
}

void no_fsync(const char *home)
{
    (void)home;
    refuse(SYS_fsync, EINVAL);
}

void no_rename(const char *home)
{
    (void)home;
    refuse(SYS_renameat, EXDEV);
    refuse(SYS_renameat2, EXDEV);
}

void no_getrandom(const char *home)
{
    (void)home;
    refuse(SYS_getrandom, ENOSYS);
}

void no_utimens(const char *home)
{
    (void)home;
    refuse(SYS_utimensat, EPERM);
}
