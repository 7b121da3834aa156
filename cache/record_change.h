/* record_change: records that are added to a store, or taken out of it, as a whole. */
#ifndef FA_CACHE_RECORD_CHANGE_H
#define FA_CACHE_RECORD_CHANGE_H
#include "record.h"

/* Appends all n records in the root that takes new files, or none: a full disk or a process that is killed meanwhile leaves nothing of them
 * (import.h). FA_IO: there is no such root, it could not be written, or another process imports; FA_NOMEM. */
fa_status fa_records_add(fa_store *s, const fa_record *r, size_t n);

/* Takes out of the root that takes new files what drop says of the chip's records (p NULL: of all problems, else of its key). Lines that do
 * not parse stay. *dropped: how many went, also where the rest could not be: FA_IO, FA_NOMEM. */
typedef bool fa_record_test(void *user, const fa_record *r);
fa_status fa_records_drop(fa_store *s, const char *chip, const fa_problem *p, fa_record_test *drop, void *user, size_t *dropped);
#endif
