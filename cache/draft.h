/* draft: a temporary file in kernels/ that one rename turns into an entry. Its maker holds a flock on it as long as it works on it,
 * so a draft whose lock can be had belongs to nobody: its maker was killed. */
#ifndef FA_CACHE_DRAFT_H
#define FA_CACHE_DRAFT_H
#include <stdbool.h>

typedef struct fa_draft {
    int dir; /* where it lies, borrowed */
    int fd;  /* to write to; -1: none */
    char name[64];
} fa_draft;

/* A new, empty file in dir. False with *trouble (strerror's text of this thread). */
bool fa_draft_open(fa_draft *d, int dir, const char **trouble);

/* Makes the bytes last, and moves them to `name` in directory `to`, over what is there. False: nothing was moved, and the draft is
 * gone. Ends the draft either way. */
bool fa_draft_publish(fa_draft *d, int to, const char *name, const char **trouble);
void fa_draft_drop(fa_draft *d); /* of a draft that is not to be published; zeros with fd -1 are fine */

/* Removes the drafts in dir whose makers are dead; where locks do not work, those older than an hour. */
void fa_draft_sweep(int dir);
#endif
