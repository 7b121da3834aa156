/* record_text: records as a text that travels: what fa_records_export() writes and fa_records_import() reads.
 *
 *   fagen records 1 COUNT CHECK       the format's version, the number of lines, and 32 hex digits, XXH3-128 of all that follows
 *   {"problem":...}                   one record a line, as in the files of a store (record.h)
 *
 * The check tells a damaged file, not who made it. */
#ifndef FA_CACHE_RECORD_TEXT_H
#define FA_CACHE_RECORD_TEXT_H
#include "record.h"

#define FA_RECORD_TEXT_VERSION FA_RECORDS_FORMAT
#define FA_RECORD_TEXT_LINES 65536
#define FA_RECORD_TEXT_CAP ((size_t)64 << 20) /* bytes */

/* Appends the whole text of n records. FA_INVALID: they are too many; FA_NOMEM. */
fa_status fa_record_text_write(fa_text *out, const fa_record *r, size_t n);

/* Whether bytes begin as such a text does, of whatever version. */
bool fa_record_text_begins(const char *bytes, size_t size);

/* Takes a text apart: version, count, check, and that each line is a record. FA_INVALID with the reason and nothing in *out, FA_NOMEM. Any
 * bytes are safe. */
fa_status fa_record_text_read(fa_records *out, const char *bytes, size_t size);
#endif
