/* archive: compiled kernels and records in one file, to carry from one store to another.
 *
 *   header      magic "fagen.P\n", format version, number of entries, number of lines, 0, size of the whole file; little-endian
 *   entries     32 hex digits of the key, 8 bytes size, the bytes of the entry's file; keys ascend
 *   lines       8 bytes size, one record as JSON without newline
 *   checksum    XXH3-128 of all before it
 *
 * An archive has no paths in it. One with any fault is refused as a whole. A checksum is no signature: the maker of the archive decides
 * what runs on the GPU, so entries are kept aside, and are not loaded, until the owner of the store says that they are trusted. */
#ifndef FA_CACHE_ARCHIVE_H
#define FA_CACHE_ARCHIVE_H
#include "entry.h"
#include "record.h"

#define FA_ARCHIVE_ENTRIES 65536 /* at most */
#define FA_ARCHIVE_LINES (1 << 20)
#define FA_ARCHIVE_CAP ((size_t)2 << 30) /* bytes */

typedef struct fa_archive_entry {
    fa_key key;
    const char *bytes; /* of its file, inside the archive's */
    size_t size;
} fa_archive_entry;

typedef struct fa_archive_line {
    const char *bytes; /* not NUL-terminated */
    size_t size;
    uint64_t path[2]; /* hash of the names of the file that it belongs to */
} fa_archive_line;

typedef struct fa_archive {
    fa_archive_entry *entry;
    fa_archive_line *line;
    size_t n, n_lines;
} fa_archive;

/* Takes bytes apart and checks all of it: sizes, checksum, every entry (whole, its key the one that follows from its description, its arch
 * known), every record. False with the reason in why; any bytes are safe. *out points into bytes, and is to be freed either way. */
bool fa_archive_unpack(fa_archive *out, const char *bytes, size_t size, char *why, size_t n_why);
void fa_archive_free(fa_archive *p);

typedef struct fa_archive_count {
    size_t entries, lines;             /* written; or new in the store */
    size_t entries_there, lines_there; /* import: were there already */
    size_t skipped;                    /* export: damaged, or without all that the key is made of */
    int64_t bytes;                     /* of the file */
} fa_archive_count;

/* Writes every sound entry of every root, of arch only (NULL = of any), and with_records every record, to path, as output.h tells: a
 * regular file is replaced when the archive is whole. FA_IO, FA_NOMEM. */
fa_status fa_archive_export(fa_store *s, const char *path, const char *arch, bool with_records, fa_archive_count *out);

/* The records of an archive, of which all is checked as for an import. FA_IO, FA_INVALID, FA_NOMEM. */
fa_status fa_archive_records(fa_records *out, const char *path);

/* Reads an archive into the root that takes new files: entries to kernels/ when trusted, else to foreign/, where nothing is loaded from;
 * with_records: its records to records/, as if they had been measured here. For those of others there is fa_records_import(). What is there
 * already stays as it is. All of it or nothing: an archive with a fault, a full disk, or a process that is killed meanwhile changes
 * nothing, and the next to open the store takes back what a killed one had added (import.h). Then the store's limit is held. The work grows
 * with the archive and what the store holds, not with the order of what is in it. FA_IO, also while another process imports (wait.h);
 * FA_INVALID (the archive, with the reason), FA_NOMEM. */
fa_status fa_archive_import(fa_store *s, const char *path, bool trusted, bool with_records, fa_archive_count *out);
#endif
