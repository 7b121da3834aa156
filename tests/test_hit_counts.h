/* What a launch that hits must not do, counted in this thread: memory, locks, the environment. For one file of a suite. */
#ifndef FA_TEST_HIT_COUNTS_H
#define FA_TEST_HIT_COUNTS_H
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static _Thread_local long allocations, locks, lookups;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(SANITIZED)
#define COUNTED 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
    allocations++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    allocations++;
    return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    allocations++;
    return __libc_realloc(p, n);
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
    static int (*next)(pthread_mutex_t *);
    locks++;
    if (!next)
        next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    return next(m);
}

char *secure_getenv(const char *name)
{
    lookups++;
    return getenv(name);
}
#endif
#endif
