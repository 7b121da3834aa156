/* Steps over units on a driver that only remembers: how often they are launched, with which grid, first unit and first member, where
 * a workspace does not hold all at a time. */
#include "fake_driver.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "runtime/plan/plan.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>

static fa_context *ctx;

static void open_context(void)
{
    fa_options o = FA_OPTIONS_INIT;
    scratch_make();
    o.cache_dir = scratch;
    cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK, "%s", fa_last_error());
}

static void close_context(void)
{
    fa_destroy(ctx);
    scratch_remove();
}
TestSuite(runtime_units, .init = open_context, .fini = close_context, .timeout = 300);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define AT(n) ((void *)(uintptr_t)(0x10000000000u * (uint64_t)(n)))

static fa_args gradients(int32_t b, int32_t hkv, int32_t n)
{
    fa_args a = FA_ARGS_INIT;
    a.op = FA_BACKWARD;
    a.dtype = FA_BF16;
    a.d = 64;
    a.b = b;
    a.hq = 2 * hkv;
    a.hkv = hkv;
    a.sq = a.sk = n;
    fa_tensor *tensors[] = { &a.q, &a.k, &a.v, &a.o, &a.grad_o, &a.grad_q, &a.grad_k, &a.grad_v };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        tensors[i]->ptr = AT(i + 1);
    a.lse = AT(20);
    a.workspace = AT(21);
    return a;
}

static const char config[] = "flash_bwd_mma:br=32,br_part=32,bc=64,warps=4,twins=0,stages=2,dq=1,q_br=128,q_bc=32";

typedef struct world {
    fa_args args;
    const fa_plan *plan;
    fa_source source;
} world;

static world open_world(int32_t b, int32_t hkv, int32_t n)
{
    world w = { .args = gradients(b, hkv, n) };
    fa_problem p;
    fa_config c;
    fa_gen *g;
    OK(fa_problem_of(&w.args, &p));
    OK(fa_config_parse(&c, config));
    OK(fa_gen_open(&g, NULL));
    OK(fa_render(g, &p, &c, fa_context_arch(ctx), fa_context_budget(ctx), &w.source));
    fa_gen_close(g);
    OK(fa_plan_make(ctx, &p, &c, NULL, &w.plan));
    OK(fa_plan_workspace(ctx, w.plan, &w.args, &w.args.workspace_size));
    return w;
}

static int64_t value(const world *w, const fake_launch *l, const char *wanted)
{
    char name[24];
    fa_value v;
    size_t at = 0;
    for (const char *names = w->source.params; fa_values_next(&names, name); at += v.bytes) {
        cr_assert(fa_value_find(&v, fa_operation_find(FA_BACKWARD), &w->source.workspace, name), "%s", name);
        at = (at + v.bytes - 1) / v.bytes * v.bytes;
        if (!strcmp(name, wanted))
            return v.bytes == 4 ? *(const int32_t *)(const void *)(l->bytes + at) : *(const int64_t *)(const void *)(l->bytes + at);
    }
    cr_expect_fail("%s is no parameter", wanted);
    return INT64_MIN;
}

/* What a launch does: units from `unit` on, of the groups of each `members` from `member` on. */
typedef struct part {
    int unit, units, member, members;
} part;

/* dS of a head of 8192 x 8192 in 16 bits is 128 MiB: of eight heads at a time at most. A group has two. */
Test(runtime_units, steps_are_launched_in_turn)
{
    static const struct {
        int b, hkv, n;
        int launches;
        part part[4];
    } rows[] = {
        { 2, 1, 8192, 1, { { 0, 2, 0, 2 } } },
        { 2, 2, 8192, 1, { { 0, 4, 0, 2 } } },
        { 3, 2, 8192, 2, { { 0, 6, 0, 1 }, { 0, 6, 1, 1 } } },
        { 7, 1, 8192, 2, { { 0, 7, 0, 1 }, { 0, 7, 1, 1 } } },
        { 3, 3, 8192, 4, { { 0, 5, 0, 1 }, { 0, 5, 1, 1 }, { 5, 4, 0, 1 }, { 5, 4, 1, 1 } } },
        { 3, 1, 16384, 4, { { 0, 2, 0, 1 }, { 0, 2, 1, 1 }, { 2, 1, 0, 1 }, { 2, 1, 1, 1 } } }, /* 512 MiB each */
        { 2, 1, 24000, 4, { { 0, 1, 0, 1 }, { 0, 1, 1, 1 }, { 1, 1, 0, 1 }, { 1, 1, 1, 1 } } }, /* more than 1 GiB each */
        { 300, 1, 1024, 2, { { 0, 150, 0, 2 }, { 150, 150, 0, 2 } } },                          /* keys enough */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w = open_world(rows[i].b, rows[i].hkv, rows[i].n);
        const part *first = rows[i].part;
        int64_t tile = (rows[i].n + 15) / 16, n = rows[i].n;
        size_t most = (size_t)(first->units * first->members * tile * tile * 512);
        size_t sums = first->members < 2 ? (size_t)(first->units * ((n + 63) / 64) * 64 * 128 * 4) : 0;
        size_t delta = (size_t)(rows[i].b * rows[i].hkv * 2 * n * 8);
        cr_expect_eq(w.args.workspace_size, FA_WORKSPACE_COUNTERS + delta + most + sums, "%zu: %zu bytes", i, w.args.workspace_size);
        for (int again = 0; again < 2; again++) {
            long before = fake_calls("cuLaunchKernel");
            OK(fa_plan_launch(ctx, w.plan, &w.args, NULL));
            int steps = 1 + 2 * rows[i].launches;
            cr_assert_eq(fake_calls("cuLaunchKernel") - before, steps, "%zu: %ld launches", i, fake_calls("cuLaunchKernel") - before);
            fake_launch delta_step = fake_before(steps - 1);
            cr_expect_eq(delta_step.grid % (rows[i].b * rows[i].hkv * 2), 0, "the first step is for all");
            for (int k = 0; k < rows[i].launches; k++) {
                fake_launch kv = fake_before(steps - 2 - 2 * k), q = fake_before(steps - 3 - 2 * k);
                const part *p = &rows[i].part[k];
                cr_expect(kv.f != q.f && kv.f != delta_step.f && q.f != delta_step.f, "%zu: kernels take turns", i);
                cr_expect_eq(kv.grid, (n + 63) / 64 * p->units, "%zu, %d: %u blocks for dK and dV", i, k, kv.grid);
                cr_expect_eq(q.grid, (n + 127) / 128 * p->members * p->units, "%zu, %d: %u blocks for dQ", i, k, q.grid);
                for (int of = 0; of < 2; of++) {
                    const fake_launch *l = of ? &q : &kv;
                    cr_expect(value(&w, l, "unit") == p->unit && value(&w, l, "member") == p->member &&
                                  value(&w, l, "members") == p->members && value(&w, l, "group") == 2,
                              "%zu, %d: unit %lld, member %lld", i, k, (long long)value(&w, l, "unit"), (long long)value(&w, l, "member"));
                }
                cr_expect_eq(value(&w, &kv, "grad_s"), value(&w, &q, "grad_s"), "%zu, %d: one buffer", i, k);
                cr_expect(!sums || value(&w, &kv, "sums_kv") >= value(&w, &kv, "grad_s") + (int64_t)most, "%zu, %d", i, k);
            }
        }
        w.args.workspace_size--;
        cr_expect_eq(fa_plan_launch(ctx, w.plan, &w.args, NULL), FA_INVALID, "a byte less");
        fa_source_free(&w.source);
    }
}

Test(runtime_units, explain_tells_of_the_launches)
{
    static char text[8192];
    fa_args a = gradients(3, 1, 16384);
    fa_problem p;
    OK(fa_problem_of(&a, &p));
    OK(fa_explain(ctx, &p, &a, text, sizeof text));
    cr_assert(strstr(text, "dq=spill"), "another kernel is chosen here: %s", text);
    cr_expect(strstr(text, ", in 4 launches\n"), "%s", text);
    a = gradients(1, 1, 1000);
    OK(fa_explain(ctx, &p, &a, text, sizeof text));
    cr_expect(!strstr(text, ", in "), "%s", text);
}

/* A failure in the middle ends the call, and the next is whole. */
Test(runtime_units, a_failure_between_units)
{
    world w = open_world(3, 1, 16384);
    fake_fail("cuLaunchKernel", 4, CUDA_ERROR_UNKNOWN);
    long before = fake_calls("cuLaunchKernel");
    cr_expect_eq(fa_plan_launch(ctx, w.plan, &w.args, NULL), FA_DEVICE);
    cr_expect_eq(fake_calls("cuLaunchKernel") - before, 4);
    before = fake_calls("cuLaunchKernel");
    OK(fa_plan_launch(ctx, w.plan, &w.args, NULL));
    cr_expect_eq(fake_calls("cuLaunchKernel") - before, 9);
    fake_launch l = fake_last();
    cr_expect(value(&w, &l, "unit") == 2 && value(&w, &l, "member") == 1);
    fa_source_free(&w.source);
}

/* No query or no key: nothing of the steps over units is left to do, or one of them. */
Test(runtime_units, nothing_to_do)
{
    world w = open_world(3, 1, 16384);
    fa_args a = w.args;
    a.sq = 0; /* dK = dV = 0 */
    long before = fake_calls("cuLaunchKernel");
    OK(fa_plan_launch(ctx, w.plan, &a, NULL));
    cr_expect_eq(fake_calls("cuLaunchKernel") - before, 1);
    a = w.args;
    a.sk = 0; /* dQ = 0 */
    before = fake_calls("cuLaunchKernel");
    OK(fa_plan_launch(ctx, w.plan, &a, NULL));
    cr_expect_eq(fake_calls("cuLaunchKernel") - before, 2);
    fa_source_free(&w.source);
}
