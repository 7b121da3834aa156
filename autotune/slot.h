/* slot: the right to use a device alone, which the processes of one tuning pass among each other: while one measures, the others compile.
 * It lives in memory that all of them map, and comes free when its holder dies. */
#ifndef FA_AUTOTUNE_SLOT_H
#define FA_AUTOTUNE_SLOT_H
#include <fagen.h>
#include <stdbool.h>

#define FA_SLOT_MEMBERS 8 /* most that share one device */

typedef struct fa_slot fa_slot;

/* A new slot of nobody, as a file without a name for others to inherit (close-on-exec is set); -1 with errno. */
int fa_slot_make(void);
/* fd: of fa_slot_make, the caller's to close, also at once. member: 0 to FA_SLOT_MEMBERS - 1, another for each process. */
fa_status fa_slot_join(fa_slot **out, int fd, int member);
void fa_slot_leave(fa_slot *s); /* NULL is fine; given back first where it is held */

/* Waits for it, at most so many seconds; true at once where this process has it already. The thread that took it gives it. NULL: the
 * device is ours alone, true. */
bool fa_slot_take(fa_slot *s, double seconds);
void fa_slot_give(fa_slot *s); /* once is enough, twice is harmless; NULL is fine */

/* The most processes that this member has on the device at a time, and what all others have together. NULL: nothing, 0. */
void fa_slot_tell(fa_slot *s, int processes);
int fa_slot_beside(const fa_slot *s);
#endif
