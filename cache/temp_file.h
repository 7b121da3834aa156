/* temp_file: a temporary file in kernels/ that one rename turns into an entry. Its maker holds a flock on it as long as it works on it,
 * so a temporary file whose lock can be had has no maker any more: it was killed. */
#ifndef FA_CACHE_TEMP_FILE_H
#define FA_CACHE_TEMP_FILE_H
#include <stdbool.h>

typedef struct fa_temp_file {
    int dir; /* where it lies, borrowed */
    int fd;  /* to write to; -1: none */
    char name[64];
} fa_temp_file;

/* A new, empty file in dir. False with *trouble (strerror's text of this thread). */
bool fa_temp_file_open(fa_temp_file *d, int dir, const char **trouble);

/* Makes the bytes last, and moves them to `name` in directory `to`, over what is there. False: nothing was moved, and the temporary file is
 * gone. Ends the temporary file either way. */
bool fa_temp_file_publish(fa_temp_file *d, int to, const char *name, const char **trouble);
void fa_temp_file_drop(fa_temp_file *d); /* of a temporary file that is not to be published; zeros with fd -1 are fine */

/* Removes the temporary files in dir whose makers are dead; where locks do not work, those older than an hour. */
void fa_temp_file_sweep(int dir);
#endif
