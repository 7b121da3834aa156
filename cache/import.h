/* import: what is about to be added to a store as a whole, on disk before any of it is: one that fails is taken back, and one that was
 * killed is taken back, or ended, by the next process that opens the store.
 *
 *   <root>/v1/import     there: its kernels and lines are being added, or taken back
 *   <root>/v1/imported   they are all there: copies of its kernels in foreign/ are being removed
 *
 * A journal is a line "fagen import 1", a line "kernels" or "foreign" for where kernels go, then lines in any order:
 *   new KEY                     a kernel that is new
 *   have KEY                    one that was there
 *   file CHIP FILE SIZE BYTES   followed by so many bytes, the lines that records/CHIP/FILE of SIZE bytes (-1: of none) lacks
 * and at last a line "end". */
#ifndef FA_CACHE_IMPORT_H
#define FA_CACHE_IMPORT_H
#include "scan.h"

typedef struct fa_root fa_root;

typedef struct fa_import {
    fa_store *store;
    fa_area area;
    fa_text text; /* the journal */
    int lock;     /* descriptor; -1: locks do not work here */
    bool saved;   /* the journal is on disk */
} fa_import;

/* The only import into the root that takes new files, which there must be; what one that died has left is cleared away first. FA_IO:
 * another process has not ended its own in the time of wait.h, or that was not possible. fa_import_end() either way. */
fa_status fa_import_begin(fa_import *im, fa_store *s, fa_area area);
void fa_import_end(fa_import *im);

/* Adds to the journal. */
void fa_import_kernel(fa_import *im, fa_key k, bool there);
/* Bytes of a file of records, before its lines are read: what is appended later stays. -1: there is none. */
int64_t fa_import_size(const fa_import *im, const char *chip, const char *file);
void fa_import_file(fa_import *im, const char *chip, const char *file, int64_t size, const fa_text *lines);

/* Each false with *trouble. Nothing needs to be saved where the journal adds nothing. After a failure of the last two, or of the caller
 * between them, fa_import_undo(); what cannot be taken back now is by the next to open the store. */
bool fa_import_save(fa_import *im, const char **trouble);   /* before the first kernel is written, which is the caller's to do */
bool fa_import_files(fa_import *im, const char **trouble);  /* appends the lines */
bool fa_import_commit(fa_import *im, const char **trouble); /* from here on it is done */
void fa_import_undo(fa_import *im);

/* Of imports that died: called when the store is opened. */
void fa_import_sweep(fa_store *s, const fa_root *r);
#endif
