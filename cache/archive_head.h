/* archive_head: the first bytes of an archive, and what its reader, its writer and its import share. */
#ifndef FA_CACHE_ARCHIVE_HEAD_H
#define FA_CACHE_ARCHIVE_HEAD_H
#include "archive.h"

#define ARCHIVE_VERSION 1

typedef struct archive_head {
    char magic[8];
    uint32_t version, entries, lines, zero;
    uint64_t size; /* of the whole file */
} archive_head;
_Static_assert(sizeof(archive_head) == 32, "no padding");

static const char archive_magic[8] = { 'f', 'a', 'g', 'e', 'n', '.', 'P', '\n' };

/* Why a sound entry does not go into an archive, a literal; NULL: it does. */
const char *fa_archive_doubt(const fa_entry *e);

/* False: it is no record, or memory ran out. */
bool fa_archive_record(fa_record *r, const fa_archive_line *l);
#endif
