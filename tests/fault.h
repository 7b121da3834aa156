/* fault: the n-th call of this thread fails. Linking fault.c puts its own I/O calls and allocators before libc's, for all of the
 * program; what other threads do, and what is done while nothing is armed, goes through unchanged. */
#ifndef FA_TEST_FAULT_H
#define FA_TEST_FAULT_H
#include <stdbool.h>

typedef enum fault_kind {
    FAULT_IO,    /* a call that touches files, directories or locks */
    FAULT_ALLOC, /* malloc, calloc, aligned_alloc: NULL */
    FAULT_GROW   /* realloc: NULL. Most are those of Lua */
} fault_kind;

#define FAULT_SHORT (-1) /* in place of an errno: write() takes half, read() gives half; other calls do not count */

/* From now on the nth call (from 1) of the kind by this thread fails with the errno; none before, none after. */
void fault_arm(fault_kind kind, long nth, int error);
/* The same, of the calls of one name alone: "fdopendir". */
void fault_arm_call(const char *name, long nth, int error);
/* How many calls counted since then: with nth beyond reach, all of them. */
long fault_seen(void);
/* The names, NULL past the last. */
const char *fault_call(int i);
/* Ends that. True when a call did fail; *what (may be NULL) is its name. */
bool fault_disarm(const char **what);

/* Blocks allocated by this thread and freed by it, less than allocated. 0 where a sanitizer owns the allocator. */
long fault_live(void);
/* Whether allocations can be made to fail: not under a sanitizer. */
bool fault_allocates(void);
/* Open descriptors of the process. */
int fault_descriptors(void);
#endif
