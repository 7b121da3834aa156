/* A program that has the library as a guest, for test_guest.c. It is to end with status 7, and says on standard error what went wrong.
 *     guest_program prepare MS      main() returns while another thread compiles, which has then computed for MS milliseconds
 *     guest_program own MS          the same the other way round: main() compiles, another thread calls exit()
 *     guest_program nearest MS      main() returns while the thread of FA_MISS_NEAREST compiles; MS of the whole process
 *     guest_program inside FILE     main() returns once FILE, to which the fake NVRTC writes when it compiles, is no longer empty
 *     guest_program late FILE       the same; a handler of the program, which runs last, uses the library once more
 *     guest_program quick FILE      the same with quick_exit()
 *     guest_program child FILE      the same; a child of fork() exits first
 *     guest_program stacks          threads of 64 KiB of stack start, and one makes calls that fail */
#include <fagen.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OWN = 7, WRONG = 9 };

static fa_context *ctx;
static pthread_t compiling;

static _Noreturn void wrong(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, fa_last_error());
    _exit(WRONG);
}

static fa_problem problem(int d, int rows)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = FA_F32, p.d = d, p.b = p.hq = p.hkv = 1, p.sq = p.sk = rows;
    return p;
}

static void open_context(int on_miss)
{
    fa_options o = FA_OPTIONS_INIT;
    o.device = "sim:sm_80", o.cache_dir = "", o.on_miss = on_miss;
    if (fa_create(&ctx, &o) != FA_OK)
        wrong("fa_create");
}

/* Kernels without end, each small; only the process's exit may end it. */
static void *compile(void *unused)
{
    for (int d = 8; d <= 256; d += 8) {
        fa_problem p = problem(d, 16);
        fa_status st = fa_prepare(ctx, &p);
        if (st == FA_INTERRUPTED)
            return unused;
        if (st != FA_OK)
            wrong("fa_prepare");
    }
    return unused;
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec : 0;
}

static void until(clockid_t clock, const char *ms)
{
    for (double end = seconds(clock) + 1e-3 * atof(ms); seconds(clock) < end;)
        sched_yield();
}

static void until_compiling(const char *ms)
{
    clockid_t clock;
    if (pthread_getcpuclockid(compiling, &clock) == 0)
        until(clock, ms);
}

static void *exit_elsewhere(void *ms)
{
    until_compiling(ms);
    exit(OWN);
}

static void until_written(const char *path)
{
    struct stat s;
    while (stat(path, &s) != 0 || s.st_size == 0)
        sched_yield();
}

/* Registered before the library was used: it runs after all that the library registered. */
static void use_once_more(void)
{
    fa_problem p = problem(24, 16);
    fa_status st = ctx ? fa_prepare(ctx, &p) : FA_INTERRUPTED;
    if (st != FA_INTERRUPTED || (ctx && !strstr(fa_last_error(), "the process exits")))
        wrong("a compilation in a handler of exit()");
    if (ctx && fa_supported(ctx, &p) != FA_OK)
        wrong("fa_supported in a handler of exit()");
}

static int nearest(const char *ms)
{
    fa_args a = FA_ARGS_INIT;
    float host[512 * 8] = { 0 };
    void *at[4];
    fa_problem p = problem(8, 16);
    open_context(FA_MISS_NEAREST);
    if (fa_prepare(ctx, &p) != FA_OK)
        wrong("fa_prepare");
    for (int i = 0; i < 4; i++)
        if (fa_alloc(ctx, &at[i], sizeof host) != FA_OK || fa_copy(ctx, at[i], host, sizeof host, FA_TO_DEVICE) != FA_OK)
            wrong("fa_alloc");
    a.dtype = FA_F32, a.d = 8, a.b = a.hq = a.hkv = 1;
    a.q.ptr = at[0], a.k.ptr = at[1], a.v.ptr = at[2], a.o.ptr = at[3];
    for (int sq = 1; sq <= 512; sq *= 2) { /* each a bucket whose better kernel is asked for */
        a.sq = sq, a.sk = 512;
        if (fa_launch(ctx, &a, NULL) != FA_OK)
            wrong("fa_launch");
    }
    until(CLOCK_PROCESS_CPUTIME_ID, ms);
    return OWN;
}

static void *nothing(void *unused)
{
    return unused;
}

static void *calls_that_fail(void *unused)
{
    fa_problem p = problem(100000, 16);
    fa_context *none;
    fa_options o = FA_OPTIONS_INIT;
    o.device = "sim:nothing";
    if (fa_launch(NULL, NULL, NULL) != FA_INVALID || !strstr(fa_last_error(), "ctx: NULL"))
        wrong("fa_launch");
    if (fa_create(&none, &o) != FA_INVALID || !strstr(fa_last_error(), "sim:nothing"))
        wrong("fa_create");
    if (fa_supported(ctx, &p) == FA_OK || !strstr(fa_last_error(), "100000"))
        wrong("fa_supported");
    return unused;
}

static int stacks(void)
{
    void *(*const work[])(void *) = { nothing, calls_that_fail };
    open_context(FA_MISS_COMPILE);
    for (int i = 0; i < 2; i++) {
        pthread_attr_t a;
        pthread_t t;
        pthread_attr_init(&a);
        if (pthread_attr_setstacksize(&a, 64 << 10) != 0 || pthread_create(&t, &a, work[i], NULL) != 0)
            wrong("pthread_create of a thread with 64 KiB of stack");
        pthread_join(t, NULL);
        pthread_attr_destroy(&a);
    }
    fa_destroy(ctx);
    return OWN;
}

/* What the threads of the parent had under way is in the child's memory, and the threads are not: the leak sanitizer, which asks here,
 * would find it lost. */
static bool a_child;
int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
    return a_child;
}

static void exit_of_a_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        a_child = true;
        exit(OWN); /* the work of its parent's threads is none of its own */
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != OWN)
        wrong("a child of fork()");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "", *what = argc > 2 ? argv[2] : "0";
    pthread_t other;
    alarm(120); /* SIGALRM is a wrong end, too */
    if (!strcmp(mode, "late"))
        atexit(use_once_more);
    if (!strcmp(mode, "stacks"))
        return stacks();
    if (!strcmp(mode, "nearest"))
        return nearest(what);
    open_context(FA_MISS_COMPILE);
    compiling = pthread_self();
    if (!strcmp(mode, "own")) {
        pthread_create(&other, NULL, exit_elsewhere, (void *)what);
        compile(NULL);
        for (;;)
            pause();
    }
    pthread_create(&compiling, NULL, compile, NULL);
    if (!strcmp(mode, "prepare"))
        return until_compiling(what), OWN;
    until_written(what);
    if (!strcmp(mode, "quick"))
        quick_exit(OWN);
    if (!strcmp(mode, "child"))
        exit_of_a_child();
    return OWN;
}
