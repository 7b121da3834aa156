/* lock: one flock file per key, held while a kernel is compiled so that others wait instead of compiling the same. It only
 * saves work: where locks do not work everyone compiles. The kernel drops a dead holder's lock; a live one is waited for as wait.h tells.
 */
#ifndef FA_CACHE_LOCK_H
#define FA_CACHE_LOCK_H
#include "entry.h"

typedef struct fa_lock {
    int fd;          /* -1: no file lock is held */
    fa_store *store; /* NULL: other threads are not kept out */
    fa_key key;
    double since; /* fa_wait_clock() of its taking */
} fa_lock;

/* Waits for the lock, or until another process has had it for too long, which one line of advice tells; always returns something to drop.
 * After it returns look in the cache once more: the holder before may have put what you want. Excludes other threads of this process too.
 */
fa_lock fa_lock_take(fa_store *s, fa_key k);
void fa_lock_drop(fa_lock *l); /* once is enough, twice is harmless */
#endif
