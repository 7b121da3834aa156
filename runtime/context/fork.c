/* fork: a count that the C library raises in each child. */
#include "fork.h"
#include <pthread.h>

atomic_uint fa_forks;

static void in_child(void)
{
    atomic_fetch_add(&fa_forks, 1);
}

static void watch(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void fa_fork_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}
