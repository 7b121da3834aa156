/* load_marker: a mark that stands while a kernel is loaded for the first time here, so that one whose loading killed the process is set
 * aside by the next to open the store, and not loaded again and again. That a kernel was once loaded without harm is kept in the mode
 * of its file (no longer writable), so a later hit costs nothing. */
#ifndef FA_CACHE_LOAD_MARKER_H
#define FA_CACHE_LOAD_MARKER_H
#include "entry.h"

typedef struct fa_load_marker {
    fa_store *store;
    int fd; /* of the mark, which is locked while its owner lives; -1: there is none */
    fa_key key;
} fa_load_marker;

/* Before the driver gets e's image. Sets nothing where e->proved, where no root takes new files, and where locks do not work. */
fa_load_marker fa_load_marker_set(fa_store *s, const fa_entry *e);

/* After it; loaded: the driver took it. Once per set. */
void fa_load_marker_clear(fa_load_marker *c, bool loaded);

/* Looks for marks of the dead in a root that takes new files, and moves their entries to quarantine/. */
typedef struct fa_root fa_root;
void fa_load_marker_sweep(fa_store *s, const fa_root *r);
#endif
