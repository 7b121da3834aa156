/* output: a file that the user named, written as its kind asks. A regular file, or a name that is new, is whole or as it was: the bytes
 * go to a temporary file beside it, which one rename puts in its place. A symbolic link stays, and what it names is written. What exists
 * and is no regular file (a device, a pipe, a FIFO) gets the bytes as they come; so does a descriptor of the process itself,
 * /dev/stdout or /dev/fd/N. "-" is standard output.
 *
 * A file that is replaced keeps its mode and, where the process may set them, its owner and group. */
#ifndef FA_CACHE_OUTPUT_H
#define FA_CACHE_OUTPUT_H
#include <fagen.h>
#include <stdbool.h>

typedef struct fa_output {
    const char *path;    /* as the user named it; borrowed */
    int fd;              /* -1: not open */
    char *target, *temp; /* of what is renamed; NULL of what is written as it comes */
    bool listed;         /* among those that fa_output_forsake() removes */
    struct fa_output *next;
} fa_output;

/* FA_IO names the path and the reason, and nothing was changed. Opening a FIFO waits for its reader. */
fa_status fa_output_open(fa_output *o, const char *path);
/* Whether fa_output_open() would succeed now, before the work whose result goes there; nothing is changed. What is written as it comes is
 * not opened: FA_OK. */
fa_status fa_output_check(const char *path);
/* Writes all n bytes; n may be 0. After a failure close without keep. */
fa_status fa_output_write(fa_output *o, const void *bytes, size_t n);
/* Ends it. keep: the bytes are made to last and get their name, or the call fails; else, and after a failure, the file is as it was. */
fa_status fa_output_close(fa_output *o, bool keep);

/* Removes the temporary files of every output that is open, in any thread: the process is about to end, and no output can be kept
 * any more. */
void fa_output_forsake(void);
#endif
