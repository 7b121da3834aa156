/* quota: how much the kernels of a store may take, and who goes first. What was used longest ago goes; to the hour, because a hit
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
#endif
