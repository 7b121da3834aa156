/* fork: which process a context belongs to. Mutexes of other threads, compile threads and the CUDA driver's state do not survive fork(), so
 * a child is told so instead of waiting for what is not there. */
#ifndef FA_RUNTIME_CONTEXT_FORK_H
#define FA_RUNTIME_CONTEXT_FORK_H
#include <stdatomic.h>

/* How often the process and those it came from have forked since fa_fork_watch() was first called: another number, another process. */
extern atomic_uint fa_forks;
void fa_fork_watch(void);
#endif
