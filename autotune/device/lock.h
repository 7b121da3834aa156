/* lock: the right to use a device alone, which the processes of one tuning pass among each other: while one measures, the others
 * compile. It lives in memory that all of them map, and comes free when its holder dies. */
#ifndef FA_AUTOTUNE_DEVICE_LOCK_H
#define FA_AUTOTUNE_DEVICE_LOCK_H
#include <fagen.h>
#include <stdbool.h>

#define FA_DEVICE_LOCK_MEMBERS 8 /* most that share one device */

typedef struct fa_device_lock fa_device_lock;

/* A new lock that no process holds, as a file without a name for others to inherit (close-on-exec is set); -1 with errno. */
int fa_device_lock_make(void);
/* fd: of fa_device_lock_make, the caller's to close, also at once. member: 0 to FA_DEVICE_LOCK_MEMBERS - 1, another for each process. */
fa_status fa_device_lock_join(fa_device_lock **out, int fd, int member);
void fa_device_lock_leave(fa_device_lock *s); /* NULL is fine; given back first where it is held */

/* Waits for it, at most so many seconds; true at once where this process has it already. The thread that took it gives it. NULL: the
 * device is of this process alone, true. */
bool fa_device_lock_acquire(fa_device_lock *s, double seconds);
void fa_device_lock_release(fa_device_lock *s); /* once is enough, twice is harmless; NULL is fine */

/* The most processes that this member has on the device at a time, and what all others have together. NULL: nothing, 0. */
void fa_device_lock_report(fa_device_lock *s, int processes);
int fa_device_lock_beside(const fa_device_lock *s);
#endif
