/* A program that opens the library and closes it again, for test_guest.c: guest_opener LIBRARY CACHE ROUNDS. A thread that has used the
 * library is there all the time, and ends after the library is gone. Status 7 where most rounds of the second half leave no more memory in
 * use than there was: what a round leaks grows with each, what glibc keeps for an arena comes once. Says what went wrong else. It starts
 * itself again without the allocator's caches for threads, since what lies in those counts as in use. */
#include <dlfcn.h>
#include <fagen.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OWN = 7, WRONG = 9, ROWS = 16, D = 16, N = ROWS * D };

#define FUNCTIONS(X) X(fa_create) X(fa_destroy) X(fa_launch) X(fa_alloc) X(fa_free) X(fa_copy) X(fa_last_error) X(fa_supported)
static struct {
#define X(f) __typeof__(f) *f;
    FUNCTIONS(X)
#undef X
} lib;

static pthread_barrier_t used, closed;

static _Noreturn void wrong(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    _Exit(WRONG);
}

static void open_library(void **handle, const char *path)
{
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*handle)
        wrong("dlopen", dlerror());
#define X(f) lib.f = (__typeof__(f) *)dlsym(*handle, #f);
    FUNCTIONS(X)
#undef X
}

/* A call that fails and a launch: the thread has a message, and what launches keep. */
static void use(const char *cache)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    fa_args a = FA_ARGS_INIT;
    float host[N] = { 0 };
    void *at[4];
    o.device = "sim:sm_80", o.cache_dir = cache;
    if (lib.fa_launch(NULL, NULL, NULL) != FA_INVALID || lib.fa_create(&ctx, &o) != FA_OK)
        wrong("fa_create", lib.fa_last_error());
    for (int i = 0; i < 4; i++)
        if (lib.fa_alloc(ctx, &at[i], sizeof host) != FA_OK || lib.fa_copy(ctx, at[i], host, sizeof host, FA_TO_DEVICE) != FA_OK)
            wrong("fa_alloc", lib.fa_last_error());
    a.dtype = FA_F32, a.d = D, a.b = a.hq = a.hkv = 1, a.sq = a.sk = ROWS;
    a.q.ptr = at[0], a.k.ptr = at[1], a.v.ptr = at[2], a.o.ptr = at[3];
    if (lib.fa_launch(ctx, &a, NULL) != FA_OK)
        wrong("fa_launch", lib.fa_last_error());
    a.q.ptr = host; /* not of the device: the simulator has something to tell, too */
    if (lib.fa_launch(ctx, &a, NULL) != FA_DEVICE)
        wrong("fa_launch", "host memory was taken for the device's");
    for (int i = 0; i < 4; i++)
        if (lib.fa_free(ctx, at[i]) != FA_OK)
            wrong("fa_free", lib.fa_last_error());
    lib.fa_destroy(ctx);
}

static void *stay(void *cache)
{
    use(cache);
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed); /* nothing of the library is there when this thread ends */
    return NULL;
}

static void go_round(const char *path, const char *cache)
{
    void *handle, *still;
    pthread_t t;
    open_library(&handle, path);
    if (pthread_create(&t, NULL, stay, (void *)(size_t)cache) != 0)
        wrong("pthread_create", "no thread");
    pthread_barrier_wait(&used);
    use(cache);
    dlclose(handle);
    still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (still)
        wrong("dlclose", "the library is still there");
    pthread_barrier_wait(&closed);
    pthread_join(t, NULL);
}

static void without_caches(char **argv)
{
    if (getenv("GLIBC_TUNABLES"))
        return;
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 1);
    execv("/proc/self/exe", argv);
    wrong("execv", "this program cannot start itself");
}

int main(int argc, char **argv)
{
    without_caches(argv);
    int rounds = argc > 3 ? atoi(argv[3]) : 0, grew = 0;
    size_t before = 0, after = 0;
    pthread_barrier_init(&used, NULL, 2);
    pthread_barrier_init(&closed, NULL, 2);
    for (int i = 0; i < rounds; i++, before = after) {
        go_round(argv[1], argv[2]);
        after = mallinfo2().uordblks;
        grew += i >= rounds / 2 && after > before;
    }
    if (grew > rounds / 4) {
        fprintf(stderr, "%d of the last %d rounds left more in use than there was: %zu bytes at the end\n", grew, rounds / 2, after);
        return WRONG;
    }
    return OWN;
}
