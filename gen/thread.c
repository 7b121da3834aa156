/* thread: the blocks of all threads in one list, and a key whose destructor frees those of a thread that ends. */
#include "thread.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    struct block *next, **link;
    void *slot;        /* the address of a pointer, of whichever type */
    const void *owner; /* the address of `self` in its thread */
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static block *all;
static pthread_key_t key;
static bool watched, leaving, unloading;
static fa_unload_fn *undo[FA_UNLOAD_CALLS];
static int undos;

static _Thread_local char self;

static void point(void *slot, void *to)
{
    memcpy(slot, &to, sizeof to);
}

/* The slots of other threads are theirs: they are not touched. */
static void drop(bool own, bool others)
{
    for (block *b = all, *next; b; b = next) {
        next = b->next;
        if (b->owner == &self ? !own : !others)
            continue;
        if (b->owner == &self)
            point(b->slot, NULL);
        if (next)
            next->link = b->link;
        *b->link = next;
        free(b);
    }
}

static void end_of_thread(void *value)
{
    (void)value;
    pthread_mutex_lock(&mutex);
    drop(true, false);
    pthread_mutex_unlock(&mutex);
}

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    drop(false, true);
    pthread_mutex_unlock(&mutex);
}

/* exit() calls this before any destructor of a library; dlclose() calls it after the plain destructors of the library that goes. */
static void leave(void)
{
    leaving = true;
}

__attribute__((destructor)) static void begin_unload(void)
{
    unloading = !leaving;
}

/* The last of all destructors of what is unloaded: those of a program's own module may still call the library. */
__attribute__((destructor(101))) static void end_unload(void)
{
    if (!unloading || !watched)
        return;
    pthread_mutex_lock(&mutex);
    while (undos)
        undo[--undos]();
    pthread_key_delete(key); /* no thread calls code that is gone */
    watched = false;
    drop(true, true);
    pthread_mutex_unlock(&mutex);
}

/* The mutex is held. What was registered by an attempt that failed does no harm. */
static bool watch(void)
{
    if (watched)
        return true;
    if (pthread_key_create(&key, end_of_thread) != 0)
        return false;
    if (atexit(leave) != 0 || pthread_atfork(before_fork, after_fork, in_child) != 0) {
        pthread_key_delete(key);
        return false;
    }
    return watched = true;
}

static void *payload(block *b)
{
    return (void *)(((uintptr_t)(b + 1) + FA_THREAD_ALIGN - 1) & ~(uintptr_t)(FA_THREAD_ALIGN - 1));
}

void *fa_thread_keep(void *slot, size_t bytes)
{
    block *b = calloc(1, sizeof *b + FA_THREAD_ALIGN + bytes);
    if (!b)
        return NULL;
    pthread_mutex_lock(&mutex);
    bool kept = watch() && pthread_setspecific(key, &self) == 0;
    if (kept) {
        *b = (block){ .next = all, .link = &all, .slot = slot, .owner = &self };
        if (all)
            all->link = &b->next;
        all = b;
    }
    pthread_mutex_unlock(&mutex);
    if (!kept) {
        free(b);
        return NULL;
    }
    point(slot, payload(b));
    return payload(b);
}

bool fa_unload_call(fa_unload_fn *call)
{
    pthread_mutex_lock(&mutex);
    bool kept = undos < FA_UNLOAD_CALLS && watch();
    if (kept)
        undo[undos++] = call;
    pthread_mutex_unlock(&mutex);
    return kept;
}
