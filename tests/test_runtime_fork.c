/* fork(): what a child may do with what its parent made, on the simulator. */
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fagen.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>

TestSuite(runtime_fork, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

enum { CHILD_SECONDS = 120 };

static fa_context *open_sim(void)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx = NULL;
    o.device = "sim:sm_80";
    o.cache_dir = scratch;
    return fa_create(&ctx, &o) == FA_OK ? ctx : NULL;
}

static fa_problem small(void)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = FA_F32;
    p.d = 64;
    p.b = p.hq = p.hkv = 1;
    p.sq = p.sk = 16;
    return p;
}

static int told(fa_status st)
{
    return st == FA_INVALID && strstr(fa_last_error(), "fork()");
}

/* Every call of the contract, with a context of the parent. 0: each was refused. */
static int refused(fa_context *ctx)
{
    fa_problem p = small();
    fa_args a = FA_ARGS_INIT;
    char text[512], bytes[16];
    size_t n;
    void *memory = NULL;
    a.dtype = FA_F32, a.d = 64, a.b = a.hq = a.hkv = 1, a.sq = a.sk = 16;
    a.q.ptr = a.k.ptr = a.v.ptr = a.o.ptr = (void *)4096;
    const int each[] = { told(fa_supported(ctx, &p)),
                         told(fa_prepare(ctx, &p)),
                         told(fa_launch(ctx, &a, NULL)),
                         told(fa_workspace_size(ctx, &a, &n)),
                         told(fa_workspace_held(ctx, &n)),
                         told(fa_workspace_release(ctx, NULL)),
                         told(fa_explain(ctx, &p, NULL, text, sizeof text)),
                         told(fa_alloc(ctx, &memory, 16)),
                         told(fa_free(ctx, bytes)),
                         told(fa_copy(ctx, bytes, bytes, 16, FA_TO_DEVICE)),
                         told(fa_tune(ctx, &p, NULL)) };
    for (int i = 0; i < (int)(sizeof each / sizeof *each); i++)
        if (!each[i])
            return i + 1;
    fa_destroy(ctx);
    return 0;
}

/* A launch of ones: O is V's mean, all ones. */
static int launches(fa_context *ctx)
{
    static float host[16 * 64];
    void *device[4];
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_F32, a.d = 64, a.b = a.hq = a.hkv = 1, a.sq = a.sk = 16;
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        host[i] = 1;
    for (int i = 0; i < 4; i++)
        if (fa_alloc(ctx, &device[i], sizeof host) != FA_OK || fa_copy(ctx, device[i], host, sizeof host, FA_TO_DEVICE) != FA_OK)
            return 0;
    memset(host, 0, sizeof host);
    a.q.ptr = device[0], a.k.ptr = device[1], a.v.ptr = device[2], a.o.ptr = device[3];
    if (fa_launch(ctx, &a, NULL) != FA_OK || fa_copy(ctx, host, device[3], sizeof host, FA_FROM_DEVICE) != FA_OK)
        return 0;
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        if (host[i] < 0.999f || host[i] > 1.001f)
            return 0;
    return 1;
}

static int code_of(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

Test(runtime_fork, a_child_is_told_and_makes_its_own)
{
    fa_context *ctx = open_sim();
    cr_assert(ctx && launches(ctx), "%s", fa_last_error());
    pid_t pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        int code = refused(ctx);
        fa_context *own = code ? NULL : open_sim();
        code = code ? code : !own ? 100 : !launches(own) ? 101 : 0;
        fa_destroy(own);
        _exit(code);
    }
    cr_expect_eq(code_of(pid), 0);
    cr_expect(launches(ctx), "the parent's is as it was: %s", fa_last_error());
    fa_destroy(ctx);
}

static atomic_bool enough;

static void *keep_launching(void *user)
{
    while (!atomic_load(&enough) && launches(user))
        ;
    return NULL;
}

/* The other thread holds locks at the moment of the fork, mostly the simulator's, and is not in the child. */
Test(runtime_fork, beside_a_thread_that_launches)
{
    fa_context *ctx = open_sim();
    pthread_t thread;
    cr_assert(ctx && launches(ctx), "%s", fa_last_error());
    cr_assert_eq(pthread_create(&thread, NULL, keep_launching, ctx), 0);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(CHILD_SECONDS);
            _exit(refused(ctx));
        }
        cr_expect_eq(code_of(pid), 0);
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    fa_destroy(ctx);
}
