/* environment: what lies where the cache should be: its folder, what is in it, and the disk that it is on. */
#include "environment.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

void read_only_folder(const char *home)
{
    NEED(mkdir(in(home, "cache"), 0500));
}

static void mode_of_cache(const char *home, mode_t mode)
{
    if (mkdir(in(home, "cache"), 0700) != 0 && errno != EEXIST)
        skip("mkdir");
    NEED(chmod(in(home, "cache"), mode));
}

void group_writable(const char *home)
{
    mode_of_cache(home, 0770);
}

void world_writable(const char *home)
{
    mode_of_cache(home, 0777);
}

void sticky(const char *home)
{
    mode_of_cache(home, 01777);
}

void foreign(const char *home)
{
    if (geteuid() != 0) {
        errno = EPERM;
        skip("chown");
    }
    mode_of_cache(home, 0755);
    NEED(chown(in(home, "cache"), ANOTHER, ANOTHER));
}

void below_cache(const char *home, const char *pattern, const char *command)
{
    char line[1500];
    snprintf(line, sizeof line, "set -e; for f in %s/cache/%s; do %s; done", home, pattern, command);
    NEED(system(line));
}

void bucket_writable(const char *home)
{
    below_cache(home, "v*/kernels/*", "chmod 0777 \"$f\"");
}

void kernels_writable(const char *home)
{
    below_cache(home, "v*/kernels", "chmod 0770 \"$f\"");
}

void version_writable(const char *home)
{
    below_cache(home, "v*", "chmod 0707 \"$f\"");
}

void entry_writable(const char *home)
{
    below_cache(home, "v*/kernels/*/*.fak", "chmod 0666 \"$f\"");
}

void entry_foreign(const char *home)
{
    if (geteuid() != 0) {
        errno = EPERM;
        skip("chown");
    }
    below_cache(home, "v*/kernels/*/*.fak", "chown 54322 \"$f\"");
}

void entry_linked(const char *home)
{
    below_cache(home, "v*/kernels/*/*.fak", "mv \"$f\" \"$f.moved\"; ln -s \"$f.moved\" \"$f\"");
}

void version_linked(const char *home)
{
    below_cache(home, "v1", "mv \"$f\" \"$f.moved\"; ln -s v1.moved \"$f\"");
}

void kernels_unreadable(const char *home)
{
    below_cache(home, "v*/kernels", "chmod 0 \"$f\"");
}

void linked(const char *home)
{
    NEED(mkdir(in(home, "real"), 0700));
    NEED(symlink(in(home, "real"), in(home, "cache")));
}

void linked_to_open(const char *home)
{
    NEED(mkdir(in(home, "real"), 0700));
    NEED(chmod(in(home, "real"), 0777));
    NEED(symlink(in(home, "real"), in(home, "cache")));
}

void dangling(const char *home)
{
    NEED(symlink(in(home, "nowhere"), in(home, "cache")));
}

void loop(const char *home)
{
    NEED(symlink(in(home, "cache"), in(home, "cache")));
}

void a_file(const char *home)
{
    int fd = open(in(home, "cache"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) != 0)
        skip("open");
}

void a_fifo(const char *home)
{
    NEED(mkfifo(in(home, "cache"), 0600));
}

static void mounted(const char *home, unsigned long flags, const char *options)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (uid != 0) {
        char map[64];
        NEED(unshare(CLONE_NEWUSER | CLONE_NEWNS));
        const char *const files[] = { "/proc/self/setgroups", "/proc/self/uid_map", "/proc/self/gid_map" };
        for (int i = 0; i < 3; i++) {
            int fd = open(files[i], O_WRONLY | O_CLOEXEC);
            int n =
                i == 0 ? snprintf(map, sizeof map, "deny") : snprintf(map, sizeof map, "%u %u 1", i == 1 ? uid : gid, i == 1 ? uid : gid);
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

void mounted_noexec(const char *home)
{
    mounted(home, MS_NOEXEC | MS_NOSUID | MS_NODEV, "mode=0700,size=8m");
}

void mounted_read_only(const char *home)
{
    mounted(home, MS_RDONLY, "mode=0700,size=8m");
}

void mounted_full(const char *home)
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

void mounted_small(const char *home)
{
    mounted(home, 0, "mode=0700,size=16k"); /* the folders fit, no kernel does */
}

void mounted_without_inodes(const char *home)
{
    mounted(home, 0, "mode=0700,size=8m,nr_inodes=8");
}

void immutable(const char *home)
{
    int flags = FS_IMMUTABLE_FL;
    NEED(mkdir(in(home, "cache"), 0700));
    int fd = open(in(home, "cache"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, FS_IOC_SETFLAGS, &flags) != 0)
        skip("the flag of an immutable folder");
    close(fd);
}

void mutable_again(const char *home)
{
    int flags = 0, fd = open(in(home, "cache"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
        close(fd);
    }
}
