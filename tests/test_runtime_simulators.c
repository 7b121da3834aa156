/* Several simulated chips in one process: each device string is a simulator of its own. The public calls only. */
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fagen.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

TestSuite(runtime_simulators, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

enum { ROWS = 16, D = 16, N = ROWS * D };

static fa_status open_on(fa_context **out, const char *device)
{
    fa_options o = FA_OPTIONS_INIT;
    o.device = device;
    o.cache_dir = scratch;
    return fa_create(out, &o);
}

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

/* Q, K and V hold one value: O is that of V, whatever Q and K are. */
typedef struct call {
    fa_context *ctx;
    fa_args args;
    float value;
    char error[512];
} call;

static fa_status make(call *c, const char *device, float value)
{
    float host[N];
    void *at[4];
    for (int i = 0; i < N; i++)
        host[i] = value;
    fa_status st = open_on(&c->ctx, device);
    for (int i = 0; i < 4; i++) {
        st = st == FA_OK ? fa_alloc(c->ctx, &at[i], sizeof host) : st;
        st = st == FA_OK ? fa_copy(c->ctx, at[i], host, sizeof host, FA_TO_DEVICE) : st;
    }
    c->args = (fa_args)FA_ARGS_INIT;
    c->args.dtype = FA_F32, c->args.d = D, c->args.b = c->args.hq = c->args.hkv = 1, c->args.sq = c->args.sk = ROWS;
    if (st == FA_OK)
        c->args.q.ptr = at[0], c->args.k.ptr = at[1], c->args.v.ptr = at[2], c->args.o.ptr = at[3];
    c->value = value;
    return st;
}

/* The message is that of the calling thread: it is copied. */
static bool launches(call *c)
{
    float host[N];
    memset(host, 0, sizeof host);
    c->error[0] = 0;
    if (fa_copy(c->ctx, c->args.o.ptr, host, sizeof host, FA_TO_DEVICE) != FA_OK || fa_launch(c->ctx, &c->args, NULL) != FA_OK ||
        fa_copy(c->ctx, host, c->args.o.ptr, sizeof host, FA_FROM_DEVICE) != FA_OK)
        return snprintf(c->error, sizeof c->error, "%s", fa_last_error()), false;
    for (int i = 0; i < N; i++)
        if (fabsf(host[i] - c->value) > 1e-5f * c->value)
            return snprintf(c->error, sizeof c->error, "o[%d] is %g, not %g", i, (double)host[i], (double)c->value), false;
    return true;
}

static void *launch_often(void *user)
{
    for (int i = 0; i < 4; i++)
        if (!launches(user))
            return user;
    return NULL;
}

static bool arch_is(fa_context *ctx, const char *arch)
{
    char text[8192];
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = FA_F32, p.d = D, p.b = p.hq = p.hkv = 1, p.sq = p.sk = ROWS;
    return fa_explain(ctx, &p, NULL, text, sizeof text) == FA_OK && strstr(text, arch);
}

Test(runtime_simulators, threads_launch_on_several_at_once)
{
    static const char *const device[] = { "sim:sm_80", "sim:sm_90a", "sim:sm_80,sm_90a", "sim:sm_80,sm_90a:1" };
    enum { CHIPS = sizeof device / sizeof *device };
    static call calls[2 * CHIPS];
    pthread_t thread[2 * CHIPS];
    void *failed;
    for (int i = 0; i < 2 * CHIPS; i++)
        OK(make(&calls[i], device[i % CHIPS], (float)(i + 1)));
    for (int i = 0; i < 2 * CHIPS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, launch_often, &calls[i]), 0);
    for (int i = 0; i < 2 * CHIPS; i++) {
        pthread_join(thread[i], &failed);
        cr_expect_null(failed, "%s: %s", device[i % CHIPS], calls[i].error);
    }
    for (int i = 0; i < 2 * CHIPS; i++)
        cr_expect(arch_is(calls[i].ctx, i % 2 ? "sm_90a" : "sm_80"), "%s", device[i % CHIPS]);
    fa_destroy(calls[0].ctx);
    cr_expect(launches(&calls[1]), "after another chip's context is gone: %s", calls[1].error);
    for (int i = 1; i < 2 * CHIPS; i++)
        fa_destroy(calls[i].ctx);
}

Test(runtime_simulators, one_list_is_one_simulator)
{
    fa_context *a, *b;
    unsigned char there[64] = "the memory of one is that of the other", back[64];
    void *at;
    OK(open_on(&a, "sim:sm_80,sm_90a:1"));
    OK(open_on(&b, "sim:sm_80, sm_90a"));
    OK(fa_alloc(a, &at, sizeof there));
    OK(fa_copy(a, at, there, sizeof there, FA_TO_DEVICE));
    OK(fa_copy(b, back, at, sizeof back, FA_FROM_DEVICE)); /* from the other device of one driver, as on GPUs */
    cr_assert_arr_eq(back, there, sizeof there);
    OK(fa_free(b, at));
    fa_destroy(a), fa_destroy(b);
}

#define SAYS(first, second) cr_expect(strstr(fa_last_error(), first) && strstr(fa_last_error(), second), "%s", fa_last_error())

Test(runtime_simulators, memory_of_another_is_refused)
{
    call a, b;
    float host[N];
    OK(make(&a, "sim:sm_80", 2));
    OK(make(&b, "sim:sm_90a", 3));
    cr_expect_eq(fa_copy(a.ctx, b.args.q.ptr, host, sizeof host, FA_TO_DEVICE), FA_DEVICE);
    SAYS("memory of the simulator sim:sm_90a", "accepted: memory of sim:sm_80");
    cr_expect_eq(fa_copy(b.ctx, host, a.args.q.ptr, sizeof host, FA_FROM_DEVICE), FA_DEVICE);
    SAYS("memory of the simulator sim:sm_80", "accepted: memory of sim:sm_90a");
    cr_expect_eq(fa_free(a.ctx, b.args.o.ptr), FA_DEVICE);
    SAYS("memory of the simulator sim:sm_90a", "accepted: memory of sim:sm_80");
    void *own = a.args.v.ptr;
    a.args.v.ptr = b.args.v.ptr;
    cr_expect_eq(fa_launch(a.ctx, &a.args, NULL), FA_DEVICE);
    SAYS("memory of device 0 of the simulator sim:sm_90a", "check: bounds");
    a.args.v.ptr = own;
    cr_expect(launches(&a), "%s", a.error);
    cr_expect(launches(&b), "%s", b.error);
    fa_destroy(a.ctx), fa_destroy(b.ctx);
}

Test(runtime_simulators, a_device_that_is_not_there_is_named)
{
    static const struct {
        const char *device;
        fa_status status;
        const char *says, *accepted;
    } rows[] = {
        { "sim:sm_80,sm_90a:2", FA_NO_DRIVER, "sim:sm_80,sm_90a:2", "0 to 1" },
        { "sim:sm_80:1", FA_NO_DRIVER, "sim:sm_80:1", "0 to 0" },
        { "sim:sm_80:", FA_INVALID, "\"sim:sm_80:\"", "the number of one of its devices" },
        { "sim:sm_80:x", FA_INVALID, "\"sim:sm_80:x\"", "the number of one of its devices" },
        { "sim:sm_80:-1", FA_INVALID, "\"sim:sm_80:-1\"", "the number of one of its devices" },
        { "sim:sm_80:0:0", FA_INVALID, "\"sim:sm_80:0:0\"", "the number of one of its devices" },
        { "sim::0", FA_INVALID, "names no arch", "sm_90a" },
        { "sim:sm_80,sm_81", FA_INVALID, "sm_81 is not simulated", "sm_90a" },
        { "sim:sm_80,sm_80,sm_80,sm_80,sm_80,sm_80,sm_80,sm_80,sm_80", FA_INVALID, "at most 8 devices", "a list" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_context *ctx;
        cr_expect_eq(open_on(&ctx, rows[i].device), rows[i].status, "%s", rows[i].device);
        SAYS(rows[i].says, rows[i].accepted);
    }
}

Test(runtime_simulators, a_process_has_sixteen)
{
    char list[256] = "sim:sm_80";
    fa_context *ctx[17];
    for (int i = 0; i < 17; i++) {
        fa_status st = open_on(&ctx[i], list);
        cr_assert_eq(st, i < 16 ? FA_OK : FA_INVALID, "%d: %s", i, fa_last_error());
        if (i % 6 == 5)
            snprintf(list, sizeof list, "%s", i < 6 ? "sim:sm_90a" : i < 12 ? "sim:sm_86" : "sim:sm_89");
        else
            strcat(list, ",sm_80");
    }
    SAYS("at most 16 simulators", "which it has");
    OK(open_on(&ctx[16], "sim:sm_90a")); /* one that is open serves any number of contexts */
    for (int i = 0; i < 17; i++)
        fa_destroy(ctx[i]);
}
