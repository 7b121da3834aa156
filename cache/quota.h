/* quota: how much the kernels of a store may take, and which go first. What was used longest ago goes; to the hour, because a hit
 * renews the time of a file at most once an hour. Nothing but this looks at times: what an entry is worth, its bytes tell. */
#ifndef FA_CACHE_QUOTA_H
#define FA_CACHE_QUOTA_H
#include "entry.h"
#include <sys/stat.h>

/* After a hit: renews the time of last use when it is an hour old. */
void fa_quota_touch(int dir, const char *name, const struct stat *st);

/* After a put: removes what was used longest ago, some files at most and never the one just put, until the entries are within the
 * limit again. The limit is shared out evenly to groups of folders of at least 64 MiB, so that a put looks at one group only.
 * Never fails. Readers are not harmed: they hold a descriptor. */
void fa_quota_keep(fa_store *s, fa_key put);

/* Many puts in the order of their keys, where a look at the group after each would take time with the square of their number: the limit
 * is held when the group ends, and whenever as many bytes were put as the group may take, or 64 MiB. */
typedef struct fa_quota_debt {
    fa_key last; /* of the group that is owed for */
    size_t n;    /* puts since it was looked at; 0 = none */
    int64_t bytes;
} fa_quota_debt;
void fa_quota_owe(fa_store *s, fa_quota_debt *d, fa_key put, size_t size);
void fa_quota_settle(fa_store *s, fa_quota_debt *d);

/* The time of last use of a file, ns since 1970. One of the future, by more than a day, is of a clock that was wrong or of a file that
 * came from elsewhere: it tells nothing of use, and counts as the beginning of time. */
int64_t fa_quota_used(const struct stat *st);
#endif
