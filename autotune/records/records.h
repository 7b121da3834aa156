/* records: what export.c, import.c and forget.c share, and the command uses beside fagen.h. */
#ifndef FA_AUTOTUNE_RECORDS_RECORDS_H
#define FA_AUTOTUNE_RECORDS_RECORDS_H
#include "cache/record.h"

#define FA_RECORDS_KEY 1024

/* What a record is of, as text: kind, chip, class, bucket and config. Its length. */
size_t fa_records_key(char *buf, size_t n, const fa_record *r);

/* Only what an export tells, in its order: of each key the newest, one of this machine before one that was imported, where it ran and may
 * count. False: no memory, and none is left. */
bool fa_records_sift(fa_records *rs);

/* FA_NO_KERNEL of a context that makes no kernels and has no cache. */
fa_status fa_records_none(void);

/* Whether a call that names records of the problem, or of all where it is NULL, may go on; which problem that is. */
fa_status fa_records_asked(fa_context *ctx, const fa_problem *p, fa_problem *out);
#endif
