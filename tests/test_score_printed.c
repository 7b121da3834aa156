/* Score programs as CUDA, on the simulator: what is printed computes, in fp32, what the IR does in fp64, to the last roundings. */
#include "gen/config.h"
#include "gen/score/derive.h"
#include "gen/score/print_cuda.h"
#include "runtime/runtime.h"
#include "score_arena.h"
#include "score_programs.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { D = 64, POINTS = 192 }; /* results of a point, at most; points */

static const char family[] =
    "return {\n"
    "  doc = \"scores\", default = false, tunables = { { \"one\", { 1 }, \"\" } },\n"
    "  supports = function(p, a) return true end, constraints = {},\n"
    "  layout = function(p, c, a) return { bytes = 0, threads = 32, regs = 40 } end,\n"
    "  steps = function(p, c, a, l) return { { entry = \"printed\", threads = 32, smem = 0, grid = \"sq hq b\" } } end,\n"
    "  params = function(p, c, a, l) return \"q k o q_ss o_ss\" end,\n"
    "}\n";

enum { RESULTS = FA_SCORE_ROOTS + 1 }; /* of a program: its roots, and the derivative */

/* A program, and where its results stand. */
typedef struct printed {
    score_stored at;
    int derivative; /* of the score by s; -1: it does not depend on it */
    int column[RESULTS];
} printed;

/* The node of a result; -1: there is none. */
static int node_of(const printed *p, int result)
{
    return result < FA_SCORE_ROOTS ? p->at.program->ir.root[result] : p->derivative;
}

static void derive(printed *p)
{
    fa_score_ir *ir = &p->at.program->ir;
    p->derivative = -1;
    for (int i = 0, n = ir->n; i < n && ir->root[FA_SCORE_ROOT_SCORE] >= 0; i++)
        if (ir->node[i].op == FA_SCORE_S)
            p->derivative = fa_score_derive(ir, ir->root[FA_SCORE_ROOT_SCORE], i);
}

/* Rows apart from pairs, as kernels have them: what does not depend on j and s has variables of its own. */
static void print_program(fa_text *t, const printed *p, int result)
{
    static fa_score_printer printer;
    const fa_score_ir *ir = &p->at.program->ir;
    int node = node_of(p, result);
    printer = (fa_score_printer){ .ir = ir, .words = { "b", "h", "i", "j", "s", "off", "sq", "sk", "group", "p" } };
    fa_text_fmt(t,
                "__device__ float root%d(const Operands &p, int b, int h, int i, int j, float s, int off, int sq, int sk, int group) {\n",
                result);
    fa_score_print_variables(t, &printer, node, FA_SCORE_OF_B | FA_SCORE_OF_H | FA_SCORE_OF_I, "  ");
    fa_score_print_variables(t, &printer, node, FA_SCORE_OF_B | FA_SCORE_OF_H | FA_SCORE_OF_I | FA_SCORE_OF_J | FA_SCORE_OF_S, "  ");
    fa_text_str(t, "  return (float)");
    fa_score_print_value(t, &printer, node);
    fa_text_str(t, ";\n}\n");
}

static char *text_of(printed *all, size_t n)
{
    fa_text t = { 0 };
    int column = 0;
    fa_text_str(&t, "constexpr int BR = 1, BC = 1;\n//| include \"machine/prelude.cu\"\n");
    for (size_t i = 0; i < n; i++) {
        fa_text_fmt(&t, "namespace program%zu {\n", i);
        print_operands(&t, &all[i].at, "");
        fa_score_print_helpers(&t, &all[i].at.program->ir, "Operands");
        for (int r = 0; r < RESULTS; r++)
            if (node_of(&all[i], r) >= 0)
                print_program(&t, &all[i], r);
        fa_text_str(&t, "}\n");
    }
    fa_text_str(&t, "extern \"C\" __global__ void __launch_bounds__(32) printed(const __grid_constant__ Params p) {\n"
                    "  const float *const q = (const float *)p.q + blockIdx.x * p.q_ss;\n"
                    "  float *const o = (float *)p.o + blockIdx.x * p.o_ss;\n"
                    "  const char *const arena = (const char *)p.k;\n"
                    "  if (threadIdx.x > 0) return;\n");
    for (size_t i = 0; i < n; i++) {
        const fa_score_data *d = &all[i].at.world.data;
        fa_text_fmt(&t, "  {\n    const program%zu::Operands given = ", i);
        print_launch(&t, &all[i].at, "");
        fa_text_str(&t, ";\n");
        for (int r = 0; r < RESULTS; r++)
            if (node_of(&all[i], r) >= 0) {
                fa_text_fmt(
                    &t,
                    "    o[%d] = program%zu::root%d(given, (int)q[0], (int)q[1], (int)q[2] %% %d, (int)q[3] %% %d, q[4], %d, %d, %d, 2);\n",
                    column, i, r, (int)d->sq, (int)d->sk, (int)d->off, (int)d->sq, (int)d->sk);
                all[i].column[r] = column++;
            }
        fa_text_str(&t, "  }\n");
    }
    cr_assert_lt(column, D);
    fa_text_str(&t, "}\n");
    cr_assert(!t.oom);
    return t.s;
}

/* ---- comparison ---- */

static fa_score_range look(void *user, int operand, const fa_score_range *index)
{
    const printed *p = user;
    const fa_score_operand *o = &p->at.program->ir.operand[operand];
    int64_t at[FA_SCORE_RANK_MAX];
    for (int k = 0; k < o->rank; k++) /* indices are integers and so points, but where a floor lies between two */
        if (index[k].lo != index[k].hi)
            return o->type == FA_SCORE_F32 ? (fa_score_range){ -2, 2, false } : (fa_score_range){ -2, FA_SCORE_INT_MAX, false };
        else
            at[k] = (int64_t)fmin(fmax(index[k].lo, 0), (double)p->at.world.data.extent[operand][k] - 1);
    double v = fmin(read_arena((void *)(uintptr_t)&p->at, operand, at), FA_SCORE_INT_MAX);
    return (fa_score_range){ v, v, false };
}

static fa_score_range at(double v)
{
    return (fa_score_range){ v, v, false };
}

/* What fp32 may make of the pair. */
static void expected(const printed *p, const fa_score_pair *pair, fa_score_range *of)
{
    const fa_score_ir *ir = &p->at.program->ir;
    const fa_score_data *d = &p->at.world.data;
    fa_score_box box = { .b = at((double)pair->b),
                         .h = at((double)pair->h),
                         .i = at((double)pair->i),
                         .j = at((double)pair->j),
                         .s = at(pair->s),
                         .off = at((double)d->off),
                         .sq = at((double)d->sq),
                         .sk = at((double)d->sk),
                         .group = at(2),
                         .look = look,
                         .user = (void *)(uintptr_t)p };
    for (int k = 0; k < ir->operands; k++)
        box.scalar[k] = at(d->scalar[k]);
    fa_score_ranges(ir, &box, of);
}

static void compare(const printed *p, const char *name, const fa_score_pair *pairs, const float *o, int *narrow, int *all)
{
    static fa_score_range of[FA_SCORE_ROOM];
    static double value[FA_SCORE_ROOM];
    const fa_score_ir *ir = &p->at.program->ir;
    for (int n = 0; n < POINTS; n++) {
        fa_score_pair pair = pairs[n];
        pair.i %= p->at.world.data.sq;
        pair.j %= p->at.world.data.sk;
        expected(p, &pair, of);
        for (int r = 0; r < RESULTS; r++) {
            int node = node_of(p, r);
            if (node < 0)
                continue;
            double is = o[n * D + p->column[r]], wanted = fa_score_eval(ir, node, &p->at.world.data, &pair, value);
            fa_score_range may = of[node];
            cr_assert(isnan(is) ? may.nan : is >= may.lo && is <= may.hi, "%s, root %d, point %d: %.9g, not %.9g to %.9g; in fp64 %.9g",
                      name, r, n, is, may.lo, may.hi, wanted);
            *narrow += may.hi - may.lo <= 1e-4 * (1 + fabs(wanted));
            ++*all;
        }
    }
}

static const fa_plan *plan_of(fa_context *ctx)
{
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    raw.dtype = FA_F32, raw.d = raw.dv = D;
    OK(fa_problem_normalize(&p, &raw));
    OK(fa_config_parse(&c, "printed:one=1"));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    return plan;
}

Test(score_printed, kernels_compute_what_the_ir_says, .timeout = 300)
{
    static printed all[SCORE_PROGRAMS];
    static fa_score_pair pairs[POINTS];
    static float q[POINTS * D], o[POINTS * D];
    static const char *const files[] = { "printed.lua", "printed.cu", NULL };
    fa_options options = FA_OPTIONS_INIT;
    char dir[] = "/tmp/fagen-score-XXXXXX";
    fa_context *ctx;
    uint64_t state = 5;
    void *dq, *dk, *d_o;
    int narrow = 0, n_all = 0;
    for (size_t i = 0; i < SCORE_PROGRAMS; i++) {
        OK(fa_program_read(&all[i].at.program, score_programs[i].name, score_programs[i].text, strlen(score_programs[i].text)));
        score_world_draw(&all[i].at.world, &all[i].at.program->ir, &state);
        for (int k = 0; k < all[i].at.program->ir.operands; k++) {
            all[i].at.world.data.scalar[k] = (float)all[i].at.world.data.scalar[k];
            if (!all[i].at.program->ir.operand[k].scalar)
                fill(&all[i].at, k, score_element);
        }
        derive(&all[i]);
        all[i].at.world.data.read = read_arena;
        all[i].at.world.data.user = &all[i].at;
    }
    for (int n = 0; n < POINTS; n++) {
        pairs[n] = score_pair_draw(&all[0].at.world, &state);
        pairs[n].i = score_below(&state, 1 << 20);
        pairs[n].j = score_below(&state, 1 << 20);
        pairs[n].s = (float)pairs[n].s;
    }
    cr_assert_not_null(mkdtemp(dir));
    char *text = text_of(all, SCORE_PROGRAMS);
    toy_write(dir, "printed.lua", family);
    toy_write(dir, "printed.cu", text);
    scratch_make();
    options.device = "sim:sm_80";
    options.cache_dir = scratch;
    options.template_dir = dir;
    OK(fa_create(&ctx, &options));
    OK(fa_alloc(ctx, &dq, sizeof q));
    OK(fa_alloc(ctx, &d_o, sizeof o));
    OK(fa_alloc(ctx, &dk, sizeof arena));
    OK(fa_copy(ctx, dk, arena, sizeof arena, FA_TO_DEVICE));
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_F32;
    a.d = a.dv = D;
    a.b = a.hq = a.hkv = a.sk = 1;
    a.sq = POINTS;
    a.q.ptr = dq, a.k.ptr = a.v.ptr = dk, a.o.ptr = d_o;
    for (int n = 0; n < POINTS; n++) {
        const double row[] = { (double)pairs[n].b, (double)pairs[n].h, (double)pairs[n].i, (double)pairs[n].j, pairs[n].s };
        for (int k = 0; k < 5; k++)
            q[n * D + k] = (float)row[k];
    }
    OK(fa_copy(ctx, dq, q, sizeof q, FA_TO_DEVICE));
    OK(fa_plan_launch(ctx, plan_of(ctx), &a, NULL));
    OK(fa_copy(ctx, o, d_o, sizeof o, FA_FROM_DEVICE));
    for (size_t i = 0; i < SCORE_PROGRAMS; i++) {
        compare(&all[i], score_programs[i].name, pairs, o, &narrow, &n_all);
        fa_program_free(all[i].at.program);
    }
    cr_assert_geq(narrow, n_all * 85 / 100, "of %d results %d are held to more than an interval", n_all, narrow);
    fa_destroy(ctx);
    free(text);
    toy_remove(dir, files);
    scratch_remove();
}

/* Steps of a walk to all that a node is made of, by every way. */
static double walk(const fa_score_ir *ir, int node)
{
    double steps[FA_SCORE_ROOM];
    for (int i = 0; i <= node; i++) {
        steps[i] = 1;
        for (int k = 0; k < ir->node[i].n; k++)
            steps[i] += steps[ir->node[i].arg[k]];
    }
    return steps[node];
}

/* The front end of NVRTC takes such walks from const variables: hours at the longest chains. */
Test(score_printed, constants_are_a_short_walk)
{
    static const char chain[] = "function score(s, b, h, i, j)\n  local x = s\n"
                                "  for k = 1, 40 do x = x > k and 0.5 * x + k / 2 or x end\n  return x\nend\n";
    fa_program *program;
    OK(fa_program_read(&program, "chain", chain, strlen(chain)));
    const fa_score_ir *ir = &program->ir;
    int plain = 0, last = ir->root[FA_SCORE_ROOT_SCORE];
    cr_expect_gt(walk(ir, last), 1e12);
    cr_expect_str_eq(fa_score_cuda_const(ir, last), "");
    for (int i = 0; i < ir->n; i++) {
        bool constant = fa_score_cuda_const(ir, i)[0] != '\0';
        plain += !constant;
        cr_expect(!constant || walk(ir, i) <= 4096, "node %d: %g steps", i, walk(ir, i));
        cr_expect(constant || walk(ir, i) >= 1024, "node %d: %g steps", i, walk(ir, i));
    }
    cr_expect_lt(plain, ir->n);
    fa_program_free(program);
}
