/* environment: surroundings to run a program in, some of which want root or namespaces. They are made by a process of one's own, which
 * they change for good, and which ends as skipped where they cannot be made. */
#ifndef FA_TEST_ENVIRONMENT_H
#define FA_TEST_ENVIRONMENT_H

#define SOMEBODY 54321 /* a uid without a passwd entry */
#define ANOTHER 54322
#define ORDINARY (-2)   /* whoever runs the suite, or SOMEBODY where that is root */
#define CELL_SKIPPED 77 /* exit status */

/* Ends the process with CELL_SKIPPED, after a line on stdout with the text and that of errno. */
_Noreturn void skip(const char *what);
/* The same, with the text of the call, unless the call gives 0. */
#define NEED(call)       \
    do {                 \
        if ((call) != 0) \
            skip(#call); \
    } while (0)

/* From here on this process is of that user, in no other group; nothing is done for -1. */
void be(int uid);
/* A path below home; valid until the fourth call after it. */
const char *in(const char *home, const char *name);

/* Makes what its name says, in a child, before the program. home: a folder of its own, empty but for home/cache where that has been
 * filled, that the program's user owns. */
typedef void surroundings(const char *home);
/* What the process is given. */
surroundings nothing, home_absent, home_relative, home_empty, home_here, xdg_empty, xdg_relative, xdg_here, turned_off,
    relative_in_no_folder, relative_here, cache_dir_here, two_roots, long_path, open_umask, tight_umask, file_size_limit, few_descriptors,
    no_flock, no_fsync, no_rename, no_getrandom, no_utimens;
/* What lies at home/cache. `foreign` and, below, `entry_foreign` must be made before the child is the program's user: only root can. */
surroundings read_only_folder, group_writable, world_writable, sticky, foreign, linked, linked_to_open, dangling, loop, a_file, a_fifo,
    mounted_noexec, mounted_read_only, mounted_full, mounted_small, mounted_without_inodes, immutable;
/* What lies below home/cache, which has been filled. */
surroundings bucket_writable, kernels_writable, version_writable, entry_writable, entry_foreign, entry_linked, version_linked,
    kernels_unreadable;

/* Runs a command of the shell for each file $f of the pattern below home/cache. */
void below_cache(const char *home, const char *pattern, const char *command);
/* Takes back what `immutable` did, so that home can be removed. */
void mutable_again(const char *home);
#endif
