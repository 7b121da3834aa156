/* Problems at the edges, and what must not change a single bit. By default a test takes every twelfth kind of kernel, and a kind has one
 * mask: compiling costs most here. */
#include "forward.h"
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include <math.h>

#define WGMMA(br, bc, rest) "flash_fwd_wgmma:ctas=1,feeder=40,sections=1,cluster=1,exp=0,o_path=0,br=" #br ",bc=" #bc "," rest
#define DOTS(br, bk, rest) "decode_ffma:row_warps=1,stages=3,ctas=1,kv_lanes=1,sm_shares=1,min_turns=1,br=" #br ",bk=" #bk "," rest
typedef struct kind {
    const char *dtype, *small, *deep; /* two configs */
    int chip;                         /* 0: sm_80, 1: an H200 with two SMs, TMA's strides */
} kind;
static const kind kinds[] = {
    { "bf16", "flash_fwd_mma:br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1",
      "flash_fwd_mma:br=64,bc=48,warps=2,stages_k=2,stages_v=2,order=2,q_regs=1,pack=0,lag=8,ctas=1", 0 },
    { "fp16", "flash_fwd_mma:br=16,bc=16,warps=1,stages_k=2,stages_v=1,order=1,q_regs=1,pack=0,lag=0,ctas=1",
      "flash_fwd_mma:br=64,bc=64,warps=4,stages_k=2,stages_v=2,order=2,q_regs=0,pack=0,lag=8,ctas=1", 0 },
    { "tf32", "flash_fwd_mma:br=32,bc=16,warps=1,stages_k=1,stages_v=2,order=0,q_regs=0,pack=0,lag=0,ctas=1",
      "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=2,stages_v=2,order=1,q_regs=1,pack=0,lag=8,ctas=1", 0 },
    { "fp32", "flash_fwd_ffma:br=16,bc=32,warps=2,pack=0", "flash_fwd_ffma:br=64,bc=64,warps=4,pack=0", 0 },
    { "bf16", WGMMA(64, 48, "rescale=2,box=16,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=1,grid=0"),
      WGMMA(128, 64, "rescale=2,box=32,stages_k=3,stages_v=3,q_bufs=2,ahead=1,schedule=2,convert=1,grid=2"), 1 },
    { "fp16", WGMMA(64, 80, "rescale=2,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=0,grid=2"),
      WGMMA(192, 48, "rescale=2,box=16,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=1,convert=0,grid=0"), 1 },
    { "bf16", WGMMA(128, 48, "rescale=3,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=1,grid=2"),
      WGMMA(128, 48, "rescale=3,box=32,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=2,convert=1,grid=0"), 1 },
    /* No tile takes more than one turn where batches or heads are compared: which turns come together is another with another batch. */
    { "fp32", DOTS(1, 8, "key_warps=8,dot_lanes=4,combine=0"), DOTS(4, 32, "key_warps=4,dot_lanes=8,combine=1"), 0 },
    { "bf16", DOTS(2, 16, "key_warps=4,dot_lanes=4,combine=1"), DOTS(4, 16, "key_warps=8,dot_lanes=4,combine=0"), 1 },
    { "fp32", "flash1_fwd:br=16,bc=32", "flash1_fwd:br=64,bc=16", 0 },
    { "bf16", "tiled:tile=16,row=2048", "tiled:tile=64,row=8192", 1 },
};
#define KINDS (sizeof kinds / sizeof *kinds)
#define KIND_STEP (full() ? 1 : 12)

/* The mask of every twelfth kind, by its number, where not all of them take all. */
static const char *const masks[] = { "none", "causal", "window" };
static size_t first_kind(const char *mask)
{
    for (size_t m = 0; !full() && m < sizeof masks / sizeof *masks; m++)
        if (!strcmp(mask, masks[m]))
            return m;
    return 0;
}

static void open_contexts(fa_context *ctx[2])
{
    ctx[0] = test_context(NULL, NULL);
    ctx[1] = test_hopper_context(NULL, NULL, 2);
}

static void close_contexts(fa_context *ctx[2])
{
    fa_destroy(ctx[0]);
    fa_destroy(ctx[1]);
}

static fa_case make(const kind *k, const char *mask, int sq, int sk)
{
    char text[96];
    snprintf(text, sizeof text, "%s,d=40,dv=24,mask=%s,b=2,hq=4,hkv=2", k->dtype, mask);
    return test_case(text, sq, sk);
}

/* ---- edges ---- */

typedef struct edge {
    const char *name, *mask;
    int sq, sk, left, right, diagonal, offset, values, hidden;
} edge;
static const edge edges[] = {
    { "one query", "none", 1, 77, -1, -1, 0, 0, 0, 0 },
    { "one key", "none", 33, 1, -1, -1, 0, 0, 0, 0 },
    { "one of each", "causal", 1, 1, -1, -1, 0, 0, 0, 0 },
    { "no key", "none", 5, 0, -1, -1, 0, 0, 0, 0 },
    { "no key, causal", "causal", 5, 0, -1, -1, 0, 0, 0, 0 },
    { "no query", "none", 0, 9, -1, -1, 0, 0, 0, 0 },
    { "top-left, fewer keys", "causal", 90, 20, -1, -1, FA_TOP_LEFT, 0, 0, 1 },
    { "top-left, more keys", "causal", 20, 90, -1, -1, FA_TOP_LEFT, 0, 0, 1 },
    { "bottom-right, blind rows first", "causal", 90, 20, -1, -1, 0, 0, 0, 1 },
    { "everything masked", "window", 40, 40, 3, 3, FA_OFFSET, 200, 0, 1 },
    { "everything masked, to the left", "window", 40, 40, 3, 3, FA_OFFSET, -200, 0, 2 },
    { "window of one key", "window", 50, 50, 0, 0, 0, 0, 0, 0 },
    { "left only", "window", 60, 75, 5, -1, 0, 0, 0, 1 },
    { "right only", "window", 60, 75, -1, 5, 0, 0, 0, 1 },
    { "far to the right", "window", 10, 150, 8, 0, FA_OFFSET, 100, 0, 1 },
    { "tiles of no key between", "window", 150, 150, 2, 2, FA_OFFSET, 60, 0, 1 },
    { "window beyond the last key", "window", 120, 40, 3, 3, FA_TOP_LEFT, 0, 0, 1 },
    { "window before the first key", "window", 120, 150, 3, 3, FA_OFFSET, -80, 0, 2 },
    { "steep scores", "none", 33, 70, -1, -1, 0, 0, FA_VALUES_STEEP, 0 },
    { "steep scores, causal", "causal", 70, 70, -1, -1, 0, 0, FA_VALUES_STEEP, 0 },
    { "one steep key", "none", 20, 1, -1, -1, 0, 0, FA_VALUES_STEEP, 0 },
    { "subnormal keys", "none", 33, 70, -1, -1, 0, 0, FA_VALUES_TINY, 0 },
    { "heavy tails", "causal", 70, 130, -1, -1, 0, 0, FA_VALUES_HEAVY, 0 },
};

Test(verify_special, edges, .timeout = 300)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_LAZY, SIM_REVERSED, 1);
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (size_t k = first_kind(edges[i].mask); k < KINDS; k += KIND_STEP) {
            const edge *e = &edges[i];
            fa_case c = make(&kinds[k], e->mask, e->sq, e->sk);
            c.window_left = e->left;
            c.window_right = e->right;
            c.diagonal = e->diagonal;
            c.offset = e->offset;
            c.values = e->values;
            c.hidden = e->hidden;
            test_output a = test_run(ctx[kinds[k].chip], &c, kinds[k].small), b = test_run(ctx[kinds[k].chip], &c, kinds[k].deep);
            if (!strncmp(e->name, "everything masked", 17) || !strncmp(e->name, "no key", 6)) {
                for (size_t x = 0; x < a.bytes; x++)
                    cr_assert(a.o[x] == 0 && b.o[x] == 0, "%s, %s: O is not 0", e->name, kinds[k].dtype);
                for (size_t x = 0; x < a.rows; x++)
                    cr_assert(a.lse[x] == -INFINITY && b.lse[x] == -INFINITY, "%s, %s: LSE %g", e->name, kinds[k].dtype, (double)a.lse[x]);
            }
            test_drop(&a);
            test_drop(&b);
        }
    close_contexts(ctx);
}

/* O is the key's V exactly, whatever the score: all of a row's weight is on it. */
Test(verify_special, one_key_gives_its_value, .timeout = 120)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    for (size_t k = 0; k < 2; k++) {
        fa_case c = make(&kinds[k], "window", 40, 40);
        c.window_left = c.window_right = 0;
        test_output r = test_run(ctx[kinds[k].chip], &c, kinds[k].small);
        for (int b = 0; b < 2; b++)
            for (int i = 0; i < 40; i++)
                for (int h = 0; h < 4; h++) {
                    float v[24];
                    fa_case_row(&c, FA_V, b, i, h / 2, v);
                    for (int x = 0; x < 24; x++)
                        cr_assert_eq(fa_number_load(r.o + 2 * (((b * 40 + i) * 4 + h) * 24 + x), c.problem.dtype), v[x]);
                }
        test_drop(&r);
    }
    close_contexts(ctx);
}

/* ---- offsets beyond 2^32 elements, and long sequences ---- */

Test(verify_special, offsets_beyond_32_bits, .timeout = 300)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    for (size_t k = first_kind("none"); k < KINDS; k += KIND_STEP)
        for (int which = 0; which < FA_TENSORS; which++) {
            fa_case c = make(&kinds[k], full() ? "causal" : "none", 40, 70);
            c.layout[which] = FA_LAYOUT_FAR;
            test_output r = test_run(ctx[kinds[k].chip], &c, kinds[k].small);
            test_drop(&r);
            c.problem.b = 3;
            c.problem.sq = 1; /* the heads are far apart */
            r = test_run(ctx[kinds[k].chip], &c, kinds[k].deep);
            test_drop(&r);
        }
    fa_case c = make(&kinds[0], "none", 20, 40);
    for (int i = 0; i < FA_TENSORS; i++)
        c.layout[i] = FA_LAYOUT_FAR;
    test_output r = test_run(ctx[kinds[0].chip], &c, kinds[0].small);
    test_drop(&r);
    close_contexts(ctx);
}

Test(verify_special, long_sequences, .timeout = 300)
{
    static const int lengths[][2] = { { 32767, 32767 }, { 65537, 65537 }, { 3, 65537 }, { 65537, 100 } };
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        fa_case c = test_case("bf16,d=16,dv=8,mask=window,b=1,hq=1,hkv=1", lengths[i][0], lengths[i][1]);
        c.window_left = 9;
        c.window_right = 2;
        c.hidden = FA_HIDDEN_NAN;
        test_output r =
            test_run(ctx[0], &c, "flash_fwd_mma:br=128,bc=16,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1");
        test_drop(&r);
        r = test_run(ctx[1], &c, WGMMA(128, 48, "rescale=2,box=16,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=2,convert=1,grid=2"));
        test_drop(&r);
    }
    close_contexts(ctx);
}

/* ---- bit for bit ---- */

static void same_bits(const test_output *a, const test_output *b, const kind *k, const char *what)
{
    cr_assert_eq(a->bytes, b->bytes);
    cr_assert(!memcmp(a->o, b->o, a->bytes), "%s, %s: O differs", k->dtype, what);
    cr_assert(!memcmp(a->lse, b->lse, a->rows * sizeof *a->lse), "%s, %s: LSE differs", k->dtype, what);
}

static void compare_some(fa_context *ctx[2], const kind *k, int n, const fa_case *a, const fa_case *b, const char *what)
{
    const char *configs[] = { k->small, k->deep };
    for (int i = 0; i < n; i++) {
        test_output x = test_run(ctx[k->chip], a, configs[i]), y = test_run(ctx[k->chip], b, configs[i]);
        same_bits(&x, &y, k, what);
        test_drop(&x);
        test_drop(&y);
    }
}

static void compare(fa_context *ctx[2], const kind *k, const fa_case *a, const fa_case *b, const char *what)
{
    compare_some(ctx, k, 2, a, b, what);
}

Test(verify_special, strides_and_padding_change_no_bit, .timeout = 300)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_LAZY, SIM_IN_ORDER, 1);
    for (size_t k = first_kind("causal"); k < KINDS; k += KIND_STEP) {
        fa_case plain = make(&kinds[k], "causal", 50, 70), c;
        for (int layout = FA_LAYOUT_PADDED; layout <= (kinds[k].chip ? FA_LAYOUT_HEADS : FA_LAYOUT_REVERSED); layout++) {
            c = plain;
            c.odd = 1;
            for (int i = 0; i < FA_TENSORS; i++)
                c.layout[i] = layout;
            compare(ctx, &kinds[k], &plain, &c, fa_layout_name(layout));
            fa_case zeros = c;
            zeros.gap = 0;
            compare(ctx, &kinds[k], &c, &zeros, "the content of gaps");
        }
        if (kinds[k].chip) /* a stride of 0 is none that TMA takes */
            continue;
        c = plain;
        c.layout[FA_K] = c.layout[FA_V] = FA_LAYOUT_SAME;
        c.same_b = 2;          /* of Q */
        fa_case dense = plain; /* the same values, really there */
        dense.same_b = dense.same_kv = 2;
        test_output x = test_run(ctx[kinds[k].chip], &c, kinds[k].small), y = test_run(ctx[kinds[k].chip], &dense, kinds[k].small);
        same_bits(&x, &y, &kinds[k], "stride 0");
        test_drop(&x);
        test_drop(&y);
    }
    close_contexts(ctx);
}

Test(verify_special, batch_position_changes_no_bit, .timeout = 300)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_EAGER, SIM_RANDOM, 5);
    for (size_t k = first_kind("window"); k < KINDS; k += KIND_STEP) {
        fa_case c = make(&kinds[k], "window", 50, 70);
        c.problem.b = 5;
        c.same_b = 5;
        c.window_left = 40;
        c.window_right = 3;
        test_output r = test_run(ctx[kinds[k].chip], &c, kinds[k].deep);
        for (size_t b = 1; b < 5; b++) {
            cr_assert(!memcmp(r.o, r.o + b * r.bytes / 5, r.bytes / 5), "%s: batch %zu", kinds[k].dtype, b);
            cr_assert(!memcmp(r.lse, r.lse + b * r.rows / 5, r.rows / 5 * sizeof *r.lse), "%s: LSE of batch %zu", kinds[k].dtype, b);
        }
        test_drop(&r);
    }
    close_contexts(ctx);
}

Test(verify_special, groups_are_expanded_heads, .timeout = 300)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_EAGER, SIM_REVERSED, 1);
    for (size_t k = first_kind("none"); k < KINDS; k += KIND_STEP)
        for (int group = 2; group <= 7; group += 5) {
            fa_case grouped = make(&kinds[k], "none", 30, 50), expanded;
            grouped.problem.hkv = 2;
            grouped.problem.hq = 2 * group;
            expanded = grouped;
            expanded.problem.hkv = 2 * group;
            expanded.same_kv = group;
            compare(ctx, &kinds[k], &grouped, &expanded, "GQA");
        }
    close_contexts(ctx);
}

Test(verify_special, hidden_keys_change_no_bit, .timeout = 300)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_LAZY, SIM_IN_ORDER, 1);
    for (size_t k = first_kind("window"); k < KINDS; k += KIND_STEP)
        for (int hidden = FA_HIDDEN_NAN; hidden < FA_HIDDEN_KINDS; hidden++) {
            fa_case a = make(&kinds[k], "window", 30, 130), b;
            a.window_left = 11;
            a.window_right = 4;
            a.diagonal = FA_OFFSET;
            a.offset = 60;
            b = a;
            b.hidden = hidden;
            cr_assert(!fa_case_seen(&a, 0) && !fa_case_seen(&a, 129) && fa_case_seen(&a, 70));
            compare(ctx, &kinds[k], &a, &b, "what hidden keys hold");
        }
    close_contexts(ctx);
}

Test(verify_special, a_wide_window_is_no_window, .timeout = 300)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    int n = full() ? 2 : 1; /* configs: each has all three masks here */
    for (size_t k = first_kind("window"); k < KINDS; k += KIND_STEP) {
        fa_case none = make(&kinds[k], "none", 50, 90), causal = make(&kinds[k], "causal", 50, 90),
                wide = make(&kinds[k], "window", 50, 90);
        wide.window_left = wide.window_right = 90;
        compare_some(ctx, &kinds[k], n, &none, &wide, "window beyond both ends");
        wide.window_left = wide.window_right = -1;
        compare_some(ctx, &kinds[k], n, &none, &wide, "window without bounds");
        wide.window_left = 2000000000;
        wide.window_right = 0;
        compare_some(ctx, &kinds[k], n, &causal, &wide, "window beyond the left end");
    }
    close_contexts(ctx);
}

Test(verify_special, a_second_run_changes_no_bit, .timeout = 120)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_EAGER, SIM_RANDOM, 1);
    for (size_t k = first_kind("causal"); k < KINDS; k += KIND_STEP) {
        fa_case c = make(&kinds[k], "causal", 50, 90);
        compare(ctx, &kinds[k], &c, &c, "a second run");
    }
    close_contexts(ctx);
}

/* ---- families that nothing chooses ---- */

#define COMPARED (full() ? 12 : 2)

/* Those that are kept for comparison, whatever they are: cases drawn by number, under all timings and schedules. */
Test(verify_special, families_kept_for_comparison, .timeout = 600)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_context *ctx[2];
    fa_gen *g;
    open_contexts(ctx);
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    cr_assert_geq(fa_gen_families(g), fa_gen_defaults(g) + 3);
    for (size_t f = fa_gen_defaults(g); f < fa_gen_families(g); f++) {
        int ran = 0;
        for (uint64_t seed = 40; seed < 120 && ran < COMPARED; seed++) {
            fa_context *on = ctx[seed % 2];
            fa_case c;
            fa_config config;
            char text[512];
            fa_case_make_of(&c, fa_operation_find(fa_gen_operation(g, f)), seed);
            fa_status st = fa_case_config(g, &c, fa_context_arch(on), fa_context_budget(on), fa_gen_family(g, f), &config);
            if (st == FA_UNSUPPORTED || st == FA_NO_FIT)
                continue;
            cr_assert_eq(st, FA_OK, "%s", fa_last_error());
            fa_config_print(text, sizeof text, &config);
            test_mode(seed % 2 ? SIM_LAZY : SIM_EAGER, schedules[seed % 3], seed);
            test_output r = test_run(on, &c, text);
            test_drop(&r);
            ran++;
        }
        cr_expect_eq(ran, COMPARED, "%s: %d cases", fa_gen_family(g, f), ran);
    }
    fa_gen_close(g);
    close_contexts(ctx);
}

/* ---- what fa_launch chooses by itself ---- */

Test(verify_special, the_chosen_kernel_is_right, .timeout = 300)
{
    fa_context *ctx[2];
    open_contexts(ctx);
    test_mode(SIM_LAZY, SIM_IN_ORDER, 1);
    for (size_t k = first_kind("causal"); k < KINDS; k += KIND_STEP) {
        fa_case c = make(&kinds[k], "causal", 100, 150);
        test_output r = test_run(ctx[kinds[k].chip], &c, NULL);
        test_drop(&r);
    }
    close_contexts(ctx);
}
