/* A context on a driver that only remembers, whose compiler waits at a gate. The gate is a FIFO: to open it for writing takes a compile
 * that has come there, so no clock is needed. */
#ifndef FA_TEST_MISSES_H
#define FA_TEST_MISSES_H
#include "cache/record.h"
#include "fake_driver.h"
#include "gen/problem.h"
#include "runtime/plan/miss.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>

static fa_context *ctx;
static fa_config own, other; /* what records say is best at each length: they alternate over powers of two from 128 on */
__attribute__((unused)) static atomic_int errors, refusals, lacks, streams_told; /* lines of the log */
static fa_workspace_source whose;                                                /* workspaces, of contexts that open_with() makes */

static inline void listen(void *user, int level, const char *message)
{
    (void)user;
    atomic_fetch_add(&errors, level == FA_LOG_ERROR);
    atomic_fetch_add(&refusals, strstr(message, "no better kernel for ") != NULL);
    atomic_fetch_add(&streams_told, strstr(message, " streams have workspaces of this context") != NULL);
    atomic_fetch_add(&lacks, strstr(message, "args.workspace is NULL, and the option workspace is FA_WORKSPACE_CALLER") != NULL);
}

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define AT(n) ((void *)(uintptr_t)(0x100000000u * (uint64_t)(n)))

static inline fa_args call(int sq, int sk)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16;
    a.d = 64;
    a.b = 1;
    a.hq = a.hkv = 8;
    a.sq = sq;
    a.sk = sk;
    a.q.ptr = AT(1);
    a.k.ptr = AT(2);
    a.v.ptr = AT(3);
    a.o.ptr = AT(4);
    return a;
}

static inline fa_problem problem(int sq, int sk)
{
    fa_args a = call(sq, sk);
    fa_problem p;
    OK(fa_problem_of(&a, &p));
    return p;
}

static inline void open_with(int32_t on_miss)
{
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = scratch;
    o.nvrtc = FAKE_NVRTC;
    o.log = listen;
    o.log_level = FA_LOG_INFO;
    o.on_miss = on_miss;
    o.workspace = (int32_t)whose;
    OK(fa_create_on(&ctx, &o, fake_driver(), 0));
}

static inline void record(const fa_problem *p, const fa_config *c)
{
    fa_record r = { .problem = *p, .config = *c, .how = FA_MEASURED, .seconds = 1e-6, .verified = true, .version = FA_VERSION_STRING };
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
}

static inline void open_nearest(void)
{
    fa_selection c;
    scratch_make();
    spill(below("image"), "// PTX", 6);
    setenv("FAKE_NVRTC_PTX", below("image"), 1);
    setenv("FAKE_NVRTC_LOG", below("compiles"), 1);
    setenv("FAKE_NVRTC_GATE", below("gate"), 1);
    open_with(FA_MISS_NEAREST);
    fa_problem p = problem(512, 512);
    OK(fa_select(ctx, &p, &c, NULL));
    own = other = c.config;
    cr_assert(fa_config_set(&other, "lag", fa_config_get(&other, "lag", 0) ? 0 : 8));
    for (int n = 128, i = 0; n <= 8192; n *= 2, i++) {
        p = problem(n, n);
        record(&p, i % 2 ? &other : &own);
    }
}

static inline void close_nearest(void)
{
    fa_destroy(ctx);
    cr_assert_eq(fake_live_libraries(), 0);
    cr_assert_eq(fake_retained(0), 0);
    scratch_remove();
}
static inline int compiles(void)
{
    struct stat st;
    return stat(below("compiles"), &st) == 0 ? (int)st.st_size : 0;
}

static inline void shut_gate(void)
{
    cr_assert_eq(mkfifo(below("gate"), 0600), 0);
}

/* Returns when a compile has come to the gate: it waits for let() then. */
static inline int meet(void)
{
    int fd = open(below("gate"), O_WRONLY | O_CLOEXEC);
    cr_assert(fd >= 0);
    return fd;
}

/* 'f': the compile fails. */
static inline void let(int fd, char byte)
{
    cr_assert_eq(write(fd, &byte, 1), 1);
    close(fd);
}

/* Those that come later pass; nothing may be at the gate. */
static inline void open_gate(void)
{
    cr_assert_eq(unlink(below("gate")), 0);
}

static inline bool job_of(const fa_problem *p, fa_job *out)
{
    fa_plan_key key = fa_plan_key_of(p);
    return fa_background_look(ctx->background, &key, out);
}

/* In the table; NULL = none. */
static inline const fa_plan *plan_of(const fa_problem *p)
{
    fa_plan_key key = fa_plan_key_of(p);
    return fa_table_find(ctx->table, &key);
}

static inline void await(int n, fa_job_state state)
{
    fa_job job = { .state = FA_JOB_WAITING };
    fa_problem p = problem(n, n);
    while (!job_of(&p, &job) || job.state != state)
        sched_yield();
}

static inline CUfunction launched(int n)
{
    fa_args a = call(n, n);
    OK(fa_launch(ctx, &a, NULL));
    return fake_last().f;
}

static inline fa_status prepared(int n)
{
    fa_problem p = problem(n, n);
    return fa_prepare(ctx, &p);
}

static inline const char *explained(int n)
{
    static char text[8192];
    fa_problem p = problem(n, n);
    OK(fa_explain(ctx, &p, NULL, text, sizeof text));
    return text;
}

/* The text of fa_explain() has the line. */
static inline bool tells(int n, const char *line)
{
    return strstr(explained(n), line) != NULL;
}

/* A config that is neither of the two. */
static inline fa_config variant(int bc)
{
    fa_config c;
    char text[128];
    snprintf(text, sizeof text, "flash_fwd_mma:br=32,bc=%d,warps=2,stages_k=1,stages_v=1,order=0,q_regs=1,pack=0,lag=8,ctas=1", bc);
    OK(fa_config_parse(&c, text));
    return c;
}

static inline void count_plan(void *user, const fa_plan *plan)
{
    (void)plan;
    ++*(int *)user;
}

static inline int plans(void)
{
    int n = 0;
    fa_table_each(ctx->table, count_plan, &n);
    return n;
}
#endif
