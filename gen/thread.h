/* thread: what a thread of the program keeps from call to call. It lies on the heap: thread-local memory of a library is a part of the
 * stack of every thread that the program starts, also of those that never call the library, so a place of use has one pointer there.
 *
 *     static _Thread_local table *mine;
 *     table *t = mine ? mine : fa_thread_keep(&mine, sizeof *mine);
 *
 * A block is freed when its thread ends. In a child of fork() those of the other threads are freed, and at dlclose() all are. At the
 * process's exit they stay, since other threads may be at work. */
#ifndef FA_GEN_THREAD_H
#define FA_GEN_THREAD_H
#include <stdbool.h>
#include <stddef.h>

#define FA_THREAD_ALIGN 128 /* bytes, of a block: a CUtensorMap asks for 64 or 128, by the version of cuda.h */

/* A block of zeros. slot is the address of a thread-local pointer, NULL so far: it points to the block from here on,
 * and is NULL again once the block is freed; a later call in the same thread gets a new one. NULL: memory or the process's keys ran out. */
void *fa_thread_keep(void *slot, size_t bytes);

/* undo is called when the code of this library is about to be unmapped by dlclose(), and at no exit. false: memory ran out. */
#define FA_UNLOAD_CALLS 4
typedef void fa_unload_fn(void);
bool fa_unload_call(fa_unload_fn *undo);
#endif
