/* trusted_file: directories and files reached by descriptor, trusted only when no other user could have written them. */
#ifndef FA_CACHE_TRUSTED_FILE_H
#define FA_CACHE_TRUSTED_FILE_H
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef enum fa_file_state {
    FA_FILE_OK = 0,
    FA_FILE_ABSENT,  /* no such file */
    FA_FILE_TROUBLE, /* the system refused (EIO, EACCES, ESTALE, memory): says nothing about the file */
    FA_FILE_BAD      /* there, and not to be trusted: a link, a FIFO, foreign, too large, cut short */
} fa_file_state;

struct stat;

/* NULL when only the effective user or root can write what st describes; else the reason, a literal. */
const char *fa_untrusted_reason(const struct stat *st);

/* Opens directory `name` below `at`. It must be trusted, and not be a link unless at is AT_FDCWD. make: made 0700 when
 * missing. Returns a descriptor, or -1 with *trouble (a literal, or strerror's text of this thread). */
int fa_trusted_dir(int at, const char *name, bool make, const char **trouble);

/* The names in the directory of a descriptor, which it takes; NULL, with the descriptor closed, where that is not possible. fd -1: NULL. */
DIR *fa_place_names(int fd);

/* Opens a regular, trusted file of at most cap bytes below `at` and reads all of it. *bytes is heap, NUL-terminated past
 * *size. out (may be NULL): what is known of the file. */
fa_file_state fa_trusted_read(int at, const char *name, size_t cap, char **bytes, size_t *size, struct stat *out, const char **trouble);

/* Writes all n bytes, through short writes and signals; the process's file-size limit is a full disk (gen/size_limit.h). False with
 * *trouble. */
bool fa_write_all(int fd, const void *bytes, size_t n, const char **trouble);

/* Turns any text into a file name of at most n - 1 bytes: letters, digits and ",=+-_." stay, all else becomes '_'. */
void fa_file_name(char *out, size_t n, const char *text, const char *suffix);
#endif
