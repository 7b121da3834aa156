/* An operation that only this file and the folder gated/ know: O = gate * attention(Q, K, V), where gate is one more tensor. A row of
 * operands, a row of references and a family of two files are enough for it to be verified, tuned, recorded, launched and traced. */
#include "autotune/search/search.h"
#include "gen/space.h"
#include "test_cache_scratch.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include "verify/operands/tensors.h"
#include "verify/truth/oracle.h"
#include "verify/truth/reference.h"
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define GATED 100

enum { Q, K, V, GATE, O, LSE, OPERANDS };

#define E(x) FA_EXTENT_##x
#define TENSOR(s, h, w) .rank = 4, .extent = { E(B), E(s), E(h), E(w) }, .strided = true, .broadcast = true
static const fa_operation gated = {
    .op = GATED, .name = "gated", .products_d = 1, .products_dv = 1, .others = 6, .n = OPERANDS, .flags = FA_BROADCAST,
    .operand = {
        [Q] = { .name = "q", TENSOR(SQ, HQ, D), .type = FA_TYPE_INPUT, .at = offsetof(fa_args, q) },
        [K] = { .name = "k", TENSOR(SK, HKV, D), .type = FA_TYPE_INPUT, .at = offsetof(fa_args, k) },
        [V] = { .name = "v", TENSOR(SK, HKV, DV), .type = FA_TYPE_INPUT, .at = offsetof(fa_args, v) },
        [GATE] = { .name = "gate", TENSOR(SQ, HQ, DV), .type = FA_TYPE_INPUT, .at = offsetof(fa_args, grad_o) },
        [O] = { .name = "o", TENSOR(SQ, HQ, DV), .type = FA_TYPE_OUTPUT, .output = true, .at = offsetof(fa_args, o) },
        [LSE] = { .name = "lse", .rank = 3, .extent = { E(B), E(HQ), E(SQ) }, .type = FA_TYPE_F32, .output = true, .optional = true,
                  .at = offsetof(fa_args, lse) },
    },
};

static fa_attention attention_of(const fa_reference_call *c)
{
    const fa_problem *p = &c->problem;
    return (fa_attention){ .b = p->b,
                           .hq = p->hq,
                           .hkv = p->hkv,
                           .sq = p->sq,
                           .sk = p->sk,
                           .d = p->d,
                           .dv = p->dv,
                           .lo = c->band.lo,
                           .hi = c->band.hi,
                           .scale = c->scale,
                           .q = c->in[Q],
                           .k = c->in[K],
                           .v = c->in[V] };
}

static int64_t outputs_of(const fa_problem *p)
{
    return (int64_t)p->b * p->sq * p->hq * p->dv;
}

static fa_status exact(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_attention a = attention_of(c);
    fa_status st = fa_oracle_exact(&a, out[O], out[LSE]);
    for (int64_t i = 0; i < outputs_of(&c->problem) && st == FA_OK; i++)
        out[O][i] *= (double)c->in[GATE][i];
    return st;
}

static fa_status naive(const fa_reference_call *c, float *const out[FA_OPERANDS_MAX], double *luck)
{
    fa_attention a = attention_of(c);
    fa_status st = fa_oracle_naive(&a, c->problem.dtype, FA_F32, out[O], luck);
    for (int64_t i = 0; i < outputs_of(&c->problem) && st == FA_OK; i++)
        out[O][i] = fa_number_round(out[O][i] * c->in[GATE][i], c->problem.o_dtype);
    return st;
}

static const fa_reference_row reference = { .op = GATED, .exact = exact, .naive = naive, .scores = "lse" };

static const char *const chips[] = { "sm_80", "sm_90a" };

static void add_rows(void)
{
    scratch_make();
    cr_assert(fa_operation_add(&gated));
    cr_assert(fa_reference_add(&reference));
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
}
TestSuite(operation_toy, .init = add_rows, .fini = scratch_remove, .timeout = 300);

static fa_context *context(const char *templates, int chip)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    o.template_dir = templates;
    o.cache_dir = below("cache");
    OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), chip));
    return ctx;
}

static fa_problem problem(const char *text)
{
    fa_problem p;
    OK(fa_problem_parse(&p, text));
    cr_assert_eq(p.op, GATED);
    fa_problem_fill_shape(&p);
    return p;
}

/* ---- verified ---- */

/* Cases by number, as of any other operation: shapes, masks, types, strides, canaries. */
Test(operation_toy, random_cases_are_right)
{
    for (int chip = 0; chip < 2; chip++) {
        fa_context *ctx = context(GATED_TEMPLATES, chip);
        fa_gen *g;
        int layouts[FA_LAYOUT_KINDS] = { 0 };
        OK(fa_gen_open(&g, GATED_TEMPLATES));
        for (uint64_t seed = 0; seed < 8; seed++) {
            fa_case c;
            fa_config k;
            fa_verdict v;
            char line[800];
            fa_case_make_of(&c, &gated, seed + 100 * (uint64_t)chip);
            fa_case_print(line, sizeof line, &c);
            cr_expect(strstr(line, "op=gated") && strstr(line, " gate="), "%s", line);
            OK(fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), NULL, &k));
            cr_assert_str_eq(k.family, "gated");
            cr_expect_eq(fa_verify_case(ctx, &c, &k, &v), FA_OK, "%s: %s\n%s", chips[chip], line, fa_last_error());
            for (int i = 0; i < LSE; i++)
                layouts[c.layout[i]]++;
        }
        cr_expect(layouts[FA_LAYOUT_PADDED] && layouts[FA_LAYOUT_HEADS] && layouts[FA_LAYOUT_REVERSED], "strides of all kinds");
        fa_gen_close(g);
        fa_destroy(ctx);
    }
}

/* The family with one piece of its text replaced, in a folder of its own. */
static const char *changed(const char *find, const char *replace)
{
    static char dir[256];
    static char text[1 << 14];
    const char *const files[] = { "gated.lua", "gated.cu" };
    snprintf(dir, sizeof dir, "%s", below("changed"));
    cr_assert_eq(mkdir(dir, 0700) == 0 || errno == EEXIST, 1);
    for (int i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, GATED_TEMPLATES "/%s", files[i]);
        FILE *f = fopen(path, "r");
        cr_assert_not_null(f, "%s", path);
        size_t n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        text[n] = 0;
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        cr_assert_not_null(f = fopen(path, "w"));
        char *at = i ? strstr(text, find) : NULL;
        cr_assert(!i || at, "%s", find);
        fprintf(f, "%.*s%s%s", at ? (int)(at - text) : (int)n, text, at ? replace : "", at ? at + strlen(find) : "");
        fclose(f);
    }
    return dir;
}

Test(operation_toy, wrong_kernels_are_caught)
{
    static const struct {
        const char *find, *replace, *told;
    } rows[] = {
        { "partial[i] * to_float(gate[i])", "partial[i]", "O[" },
        { "gate[i]);\n", "gate[0]);\n", "O[" },
        { "+ row * p.gate_ss", "+ row * (long long)p.hq * DV", "O[" },
        { "((u16 *)p.o)[at] =", "if (row) ((u16 *)p.o)[at] =", "O[0] was not written (batch 0, query 0, head 0, column 0)" },
        { "((u16 *)p.o)[at] =", "((u16 *)p.o)[DV] = ((u16 *)p.o)[at] =",
          "of o was changed, counted from its first element: a gap or a canary" },
        { "((u16 *)p.o)[at] =", "((element *)gate)[i] = ((u16 *)p.o)[at] =",
          "of gate was changed, counted from its first element: an input" },
        { "m + logf(l)", "m", "LSE[" },
    };
    fa_problem p = problem("op=gated,bf16,d=16,b=1,hq=2,hkv=1,sq=20,sk=24");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_context *ctx = context(changed(rows[i].find, rows[i].replace), 0);
        fa_case c;
        fa_config k;
        fa_verdict v;
        OK(fa_case_of(&c, &p, 5));
        for (int operand = 0; operand < LSE; operand++)
            c.layout[operand] = FA_LAYOUT_PADDED;
        OK(fa_config_parse(&k, "gated:rows=4,threads=128"));
        cr_expect_eq(fa_verify_case(ctx, &c, &k, &v), FA_WRONG, "%s", rows[i].replace);
        cr_expect(strstr(v.text, rows[i].told), "%s: %s", rows[i].replace, v.text);
        cr_expect(strstr(fa_last_error(), "op=gated"), "%s", fa_last_error());
        fa_destroy(ctx);
    }
}

/* ---- tuned ---- */

Test(operation_toy, tuning_leaves_a_record_that_the_next_launch_follows)
{
    fa_problem p = problem("op=gated,fp16,d=64,mask=causal,b=1,hq=4,hkv=2,sq=96,sk=96");
    fa_tune_options opt = FA_TUNE_OPTIONS_INIT;
    fa_context *ctx = context(GATED_TEMPLATES, 0);
    char why[2048], name[512];
    opt.limit = 4;
    OK(fa_tune(ctx, &p, &opt));
    fa_destroy(ctx);

    ctx = context(GATED_TEMPLATES, 0); /* another process */
    fa_records rs = fa_records_load(fa_context_store(ctx), "sm_80", &p);
    const fa_record *best = fa_records_best(&rs, &p);
    cr_assert(rs.n >= 4 && best, "%zu records", rs.n);
    cr_assert(best->problem.op == GATED && best->how == FA_MODELLED && best->outcome == FA_RAN);
    cr_assert_str_eq(best->config.family, "gated");
    fa_config_print(name, sizeof name, &best->config);
    fa_records_free(&rs);
    OK(fa_explain(ctx, &p, NULL, why, sizeof why));
    cr_expect(strstr(why, name) && strstr(why, "modelled record"), "%s is not in: %s", name, why);

    fa_problem plain = p; /* the class of the forward operation has none of it */
    plain.op = FA_FORWARD;
    rs = fa_records_load(fa_context_store(ctx), "sm_80", &plain);
    cr_expect_null(fa_records_best(&rs, &plain));
    fa_records_free(&rs);
    OK(fa_explain(ctx, &plain, NULL, why, sizeof why));
    cr_expect_null(strstr(why, "gated"), "%s", why);

    fa_case c; /* what fa_launch chooses is right */
    fa_verdict v;
    OK(fa_case_of(&c, &p, 3));
    OK(fa_verify_case(ctx, &c, NULL, &v));
    fa_destroy(ctx);
}

Test(operation_toy, a_wrong_kernel_never_wins)
{
    fa_problem p = problem("op=gated,bf16,d=32,b=1,hq=2,hkv=2,sq=64,sk=64");
    fa_tune_options opt = FA_TUNE_OPTIONS_INIT;
    fa_context *ctx = context(changed("* to_float(gate[i])", "+ to_float(gate[i])"), 0);
    opt.limit = 2;
    cr_expect_eq(fa_tune(ctx, &p, &opt), FA_WRONG, "%s", fa_last_error());
    fa_records rs = fa_records_load(fa_context_store(ctx), "sm_80", &p);
    cr_expect(rs.n && !fa_records_best(&rs, &p));
    fa_records_free(&rs);
    fa_destroy(ctx);
}

/* ---- traced ---- */

Test(operation_toy, every_byte_is_counted_by_tensor)
{
    for (int chip = 0; chip < 2; chip++) {
        fa_context *ctx = context(GATED_TEMPLATES, chip);
        fa_problem p = problem("op=gated,bf16,d=64,dv=96,mask=causal,b=2,hq=4,hkv=2,sq=40,sk=56");
        fa_band band = fa_band_of(&p, FA_BOTTOM_RIGHT, 0, -1, -1);
        const fa_plan *plan;
        fa_config k;
        fa_tensors t;
        fa_entered in;
        OK(fa_config_parse(&k, "gated:rows=4,threads=256"));
        OK(fa_plan_make(ctx, &p, &k, NULL, &plan));
        sim_counters counted = test_traced(ctx, &p, plan, &in, &t);
        uint64_t rows = (uint64_t)p.b * p.hq * p.sq, pairs = (uint64_t)(fa_pairs_count(&(fa_pairs){ p.sq, p.sk, band }) * p.b * p.hq);
        const struct {
            const char *name;
            CUdeviceptr at;
            uint64_t read, write;
        } want[] = {
            { "q", t.at[Q], rows * 64 * 2, 0 },
            { "k", t.at[K], pairs * 64 * 2, 0 },
            { "v", t.at[V], pairs * 96 * 2, 0 },
            { "gate", t.at[GATE], rows * 96 * 2, 0 },
            { "o", t.at[O], 0, rows * 96 * 2 },
            { "lse", t.at[LSE], 0, rows * 4 },
            { "partial", t.scratch.at, rows * 96 * 4, rows * 96 * 4 },
        };
        cr_expect_eq(counted.launches, 2, "two steps");
        cr_expect_eq(counted.tensors, (int)(sizeof want / sizeof *want));
        for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
            int at = 0;
            while (at < counted.tensors && counted.tensor[at].base != want[i].at)
                at++;
            cr_assert_lt(at, counted.tensors, "%s was not touched", want[i].name);
            cr_expect(counted.tensor[at].read == want[i].read && counted.tensor[at].write == want[i].write,
                      "%s: %llu read, %llu written, not %llu, %llu", want[i].name, (unsigned long long)counted.tensor[at].read,
                      (unsigned long long)counted.tensor[at].write, (unsigned long long)want[i].read, (unsigned long long)want[i].write);
        }
        fa_tensors_close(&t);
        fa_context_leave(ctx, &in);
        fa_destroy(ctx);
    }
}

/* ---- refused ---- */

Test(operation_toy, its_tensor_is_checked_as_any_other)
{
    fa_context *ctx = context(GATED_TEMPLATES, 0);
    fa_problem p = problem("op=gated,bf16,d=32,b=1,hq=2,hkv=2,sq=64,sk=64"), derived;
    fa_tensors t;
    fa_entered in;
    OK(fa_context_enter(ctx, &in));
    OK(fa_tensors_open(&t, ctx, &p));
    OK(fa_problem_of(&t.args, &derived));
    cr_expect_eq(derived.op, GATED);
    fa_args a = t.args;
    a.grad_o.ptr = NULL;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "gate.ptr is NULL"), "%s", fa_last_error());
    a = t.args;
    a.o.ptr = a.grad_o.ptr;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "overlaps gate"), "%s", fa_last_error());
    a = t.args;
    a.grad_q.ptr = a.grad_o.ptr; /* no operand of it is there */
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "grad_q"), "%s", fa_last_error());
    a = t.args;
    a.op = FA_FORWARD; /* which has no gate */
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "grad_o"), "%s", fa_last_error());
    fa_tensors_close(&t);
    fa_context_leave(ctx, &in);
    fa_destroy(ctx);
}
