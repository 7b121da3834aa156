/* K and V of few bits through fa_launch(): what is refused and by which words, strides in blocks, scales that a repeat reads again. */
#include "gen/format.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "verify/operands/number.h"
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define AT(n) ((void *)(uintptr_t)(0x100000000u * (uint64_t)(n)))
enum { KEYS = 40, D = 64, HEADS = 2 };

static fa_context *ctx;
static void *q, *o, *kv, *scales;

static void open_all(void)
{
    fa_options options = FA_OPTIONS_INIT;
    scratch_make();
    options.device = "sim:sm_80", options.cache_dir = scratch;
    OK(fa_create(&ctx, &options));
    OK(fa_alloc(ctx, &q, HEADS * D * 2));
    OK(fa_alloc(ctx, &o, HEADS * D * 4));
    OK(fa_alloc(ctx, &kv, 2 * KEYS * HEADS * D * 2));
    OK(fa_alloc(ctx, &scales, 2 * KEYS * HEADS * 4));
    uint16_t half[HEADS * D];
    for (int i = 0; i < HEADS * D; i++)
        half[i] = fa_number_to_f16((float)(i % 7 - 3) / 4);
    OK(fa_copy(ctx, q, half, sizeof half, FA_TO_DEVICE));
}
static void close_all(void)
{
    fa_destroy(ctx);
    scratch_remove();
}
TestSuite(low_bits, .init = open_all, .fini = close_all, .timeout = 120);

static fa_args good(int dtype)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_F16, a.o_dtype = FA_F32, a.d = a.dv = D, a.b = 1, a.hq = a.hkv = HEADS, a.sq = 1, a.sk = KEYS, a.kv_dtype = dtype;
    a.q.ptr = q, a.k.ptr = a.v.ptr = kv, a.o.ptr = o;
    return a;
}

#define FOLDED(at)                                                 \
    (fa_scale)                                                     \
    {                                                              \
        .ptr = at, .dtype = FA_F32, .by = FA_SCALE_FOLDED, .sh = 1 \
    }

Test(low_bits, what_is_refused_and_why)
{
    fa_args e = good(FA_E4M3), h = good(FA_Q8_0);
#define ROW(from, change, status, words)                                                     \
    {                                                                                        \
        fa_args a = from;                                                                    \
        change;                                                                              \
        cr_expect_eq(fa_launch(ctx, &a, NULL), status, "%s: %s", words, fa_last_error());    \
        cr_expect(strstr(fa_last_error(), words) != NULL, "%s: %s", words, fa_last_error()); \
    }
    ROW(e, a.kv_dtype = 99, FA_UNSUPPORTED, "kv_dtype is 99 (?); accepted with op=forward, fp16: 0, the type of Q, or e4m3 (5)");
    ROW(e, a.kv_dtype = -1, FA_INVALID, "kv_dtype is -1");
    ROW(e, a.kv_dtype = FA_F32, FA_UNSUPPORTED, "kv_dtype is 4 (fp32)");
    ROW(e, a.v_dtype = FA_F16, FA_UNSUPPORTED, "v_dtype is 1 (fp16)");
    ROW(e, (a.kv_dtype = 0, a.v_dtype = FA_E4M3), FA_UNSUPPORTED, "v_dtype is 5 (e4m3)");
    ROW(e, a.dtype = FA_F32, FA_UNSUPPORTED, "kv_dtype is 5 (e4m3); accepted with op=forward, fp32: 0");
    ROW(e, a.d = a.dv = 60, FA_UNSUPPORTED, "d is 60; accepted with K in e4m3: a multiple of 8");
    ROW(h, a.dv = 48, FA_UNSUPPORTED, "dv is 48; accepted with V in q8_0: a multiple of 32");
    ROW(h, a.k_scale = FOLDED(scales), FA_UNSUPPORTED, "k_scale_by is 1; accepted with K in q8_0, whose blocks have scales");
    ROW(e, (a.kv_dtype = 0, a.v_scale = FOLDED(scales)), FA_UNSUPPORTED, "v_scale_by is 1; accepted with V in fp16: 0");
    ROW(e, a.k_scale.ptr = scales, FA_INVALID, "k_scale.by is 0; accepted: FA_SCALE_FOLDED (1), FA_SCALE_TOKEN (2)");
    ROW(e, (a.k_scale = FOLDED(scales), a.k_scale.by = FA_SCALE_BLOCK), FA_UNSUPPORTED, "k_scale.by is FA_SCALE_BLOCK (3)");
    ROW(e, (a.k_scale = FOLDED(scales), a.k_scale.dtype = FA_F16), FA_UNSUPPORTED,
        "k_scale.dtype is 1 (fp16); accepted by this version: fp32");
    ROW(e, (a.v_scale = FOLDED(scales), a.v_scale.ss = 2), FA_INVALID, "v_scale.ss is 2; accepted with FA_SCALE_FOLDED: 0");
    ROW(e, (a.v_scale = FOLDED(scales), a.v_scale.by = FA_SCALE_CHANNEL), FA_INVALID, "v_scale.ss is 0; accepted with FA_SCALE_CHANNEL");
    ROW(h, (a.k_scale = FOLDED(scales), a.k_scale.by = FA_SCALE_CHANNEL, a.k_scale.ss = 1), FA_UNSUPPORTED,
        "k_scale_by is 4; accepted with K in q8_0, whose blocks have scales");
    ROW(e, (a.v_scale = FOLDED(scales), a.v_scale.sc = 1), FA_UNSUPPORTED, "v_scale.sc is 1; accepted by this version: 0");
    ROW(e, (a.v_scale = FOLDED(scales), a.v_scale.outer = scales), FA_UNSUPPORTED, "v_scale.outer is 0x");
    ROW(e, a.k_scale = FOLDED(NULL), FA_INVALID, "k_scale.ptr is NULL; accepted: a device address");
    ROW(e, a.k_scale = FOLDED((char *)scales + 2), FA_INVALID, "k_scale.ptr is");
    ROW(e, a.k_scale = FOLDED(o), FA_INVALID, "o overlaps k_scale");
    ROW(e, a.q_scale = FOLDED(scales), FA_UNSUPPORTED, "q_scale_by is 1; accepted with Q in fp16: 0");
    ROW(e, a.op = FA_BACKWARD, FA_INVALID, "kv_dtype is set: K and V in another type than Q; accepted with op=backward: 0");
    ROW(e, a.q_dtype = FA_BF16, FA_UNSUPPORTED, "q_dtype is 2: Q in another type than the products; accepted: 0, fp32 (4)");
    ROW(e, (a.kv_dtype = 0, a.q_dtype = FA_F32), FA_UNSUPPORTED, "accepted: 0, or over K and V of few bits fp32 (4)");
    /* Of 8 bits are Q, K and V, or K and V alone. */
    ROW(e, (a.dtype = FA_E4M3, a.kv_dtype = FA_E5M2), FA_UNSUPPORTED, "kv_dtype is 6 (e5m2); accepted with op=forward, e4m3: 0, the type");
    ROW(e, (a.dtype = FA_E4M3, a.o_dtype = FA_TF32), FA_UNSUPPORTED,
        "o_dtype is 3 (tf32); accepted with e4m3: fp16 (1), bf16 (2), fp32 (4)");
    ROW(e, (a.dtype = FA_E4M3, a.o_dtype = FA_E5M2), FA_UNSUPPORTED, "o_dtype is 6 (e5m2); accepted with e4m3: fp16 (1)");
    ROW(e, (a.o_dtype = FA_E4M3), FA_UNSUPPORTED, "o_dtype is 5 (e4m3); accepted with fp16: 0, fp16 (1), fp32 (4)");
    ROW(e, (a.dtype = FA_E4M3, a.o_scale = FOLDED(scales)), FA_UNSUPPORTED,
        "o_scale_by is 1; accepted with O in fp32: 0, or with O in e4m3");
    ROW(e, (a.dtype = FA_E4M3, a.o_dtype = FA_E4M3, a.o_scale = FOLDED(scales), a.o_scale.by = FA_SCALE_TOKEN), FA_UNSUPPORTED,
        "o_scale_by is 2; accepted with e4m3 in Q: 0 (none), FA_SCALE_FOLDED (1)");
    ROW(e, (a.dtype = FA_E4M3, a.o_dtype = FA_E4M3, a.o_scale = FOLDED(NULL)), FA_INVALID,
        "o_scale.ptr is NULL; accepted: a device address");
    ROW(e, (a.dtype = FA_E4M3, a.v_scale = FOLDED(scales), a.v_scale.by = FA_SCALE_TOKEN), FA_UNSUPPORTED,
        "v_scale_by is 2; accepted with e4m3 in Q: 0 (none), FA_SCALE_FOLDED (1)");
    ROW(e, (a.dtype = FA_E4M3, a.q_scale = FOLDED(scales), a.q_scale.ss = 1), FA_INVALID,
        "q_scale.ss is 1; accepted with FA_SCALE_FOLDED: 0");
    ROW(e, (a.dtype = FA_E4M3, a.q_scale = FOLDED(NULL)), FA_INVALID, "q_scale.ptr is NULL; accepted: a device address");
    ROW(e, (a.dtype = FA_E4M3, a.op = FA_BACKWARD, a.kv_dtype = 0), FA_UNSUPPORTED,
        "dtype is 5 (e4m3); accepted with op=backward: fp16 (1), bf16 (2), fp32 (4)");
    ROW(e, (a.dtype = FA_E4M3, a.layout_flags = FA_V_COLUMNS, a.seqlens_k = scales, a.k_scale = FOLDED(scales)), FA_UNSUPPORTED,
        "features has v-columns and lengths; accepted: one of them");
    ROW(e, a.dtype = FA_Q8_0, FA_INVALID, "dtype is 8; accepted: fp16 (1), bf16 (2), tf32 (3), fp32 (4), e4m3 (5), e5m2 (6), s8 (7)");
    ROW(e, (a.dtype = FA_S8, a.kv_dtype = 0), FA_UNSUPPORTED,
        "v_dtype is 0, the type of K; accepted with s8 in Q and K: fp16 (1), bf16 (2)");
    ROW(e, (a.dtype = FA_S8, a.kv_dtype = 0, a.v_dtype = FA_E4M3), FA_UNSUPPORTED,
        "v_dtype is 5 (e4m3); accepted with op=forward, s8: fp16 (1), bf16 (2)");
    ROW(e, (a.dtype = FA_S8, a.kv_dtype = 0, a.v_dtype = FA_F16, a.o_dtype = FA_E4M3), FA_UNSUPPORTED,
        "o_dtype is 5 (e4m3); accepted with s8: fp16 (1), bf16 (2), fp32 (4)");
    ROW(e,
        (a.dtype = FA_S8, a.kv_dtype = 0, a.v_dtype = FA_F16, a.k_scale.ptr = scales, a.k_scale.dtype = FA_F32,
         a.k_scale.by = FA_SCALE_CHANNEL, a.k_scale.ss = 1),
        FA_UNSUPPORTED, "k_scale_by is 4; accepted with s8 in Q: 0 (none), FA_SCALE_FOLDED (1), FA_SCALE_TOKEN (2)");
    ROW(e,
        (a.dtype = FA_S8, a.kv_dtype = 0, a.v_dtype = FA_F16, a.v_scale.ptr = scales, a.v_scale.dtype = FA_F32,
         a.v_scale.by = FA_SCALE_TOKEN),
        FA_UNSUPPORTED, "v_scale_by is 2; accepted with s8 in Q: 0 (none), FA_SCALE_FOLDED (1)");
    ROW(e, a.dtype = FA_E4M3, FA_UNSUPPORTED, "fp8_wgmma: no wgmma on sm_80");
    ROW(e, a.k.ptr = (char *)kv + 1, FA_UNSUPPORTED, "start at odd addresses; accepted: multiples of 2 bytes");
    ROW(h, a.k.ptr = (char *)kv + 1, FA_INVALID, "a multiple of the element's 2 bytes");
}

/* One key sees all weight where all others are alike: O is the mean of V. */
static void mean_of_v(const fa_args *a, float out[HEADS])
{
    static float got[HEADS * D];
    OK(fa_launch(ctx, a, NULL));
    OK(fa_copy(ctx, got, o, sizeof got, FA_FROM_DEVICE));
    for (int h = 0; h < HEADS; h++)
        out[h] = got[h * D + 5];
}

/* Scales are read again by each launch, whether the arguments are repeated, their contents changed, or another address given. */
Test(low_bits, scales_are_read_by_every_launch)
{
    const fa_format *f = fa_format_of(FA_S8);
    static unsigned char codes[2 * KEYS * HEADS * D];
    float scale[2 * KEYS * HEADS], got[HEADS];
    fa_args a = good(FA_S8);
    for (size_t i = 0; i < sizeof codes / 2; i++) /* K: zeros, so that all keys weigh alike; V: 3 in head 0, 5 in head 1 */
        codes[sizeof codes / 2 + i] = (unsigned char)fa_format_nearest(f, i / D % HEADS ? 5 : 3);
    OK(fa_copy(ctx, kv, codes, sizeof codes, FA_TO_DEVICE));
    a.v.ptr = (char *)kv + sizeof codes / 2;
    a.v_scale = FOLDED(scales);
    for (int n = 0; n < 4; n++) {
        float *const at = (float *)scales + (n == 3 ? 2 : 0);
        scale[0] = (float)(n + 1), scale[1] = 0.5f * (float)(n + 1);
        OK(fa_copy(ctx, at, scale, 8, FA_TO_DEVICE));
        a.v_scale.ptr = at;
        mean_of_v(&a, got);
        cr_expect_float_eq((double)got[0], 3.0 * (n + 1), 1e-3, "launch %d: %g", n, (double)got[0]);
        cr_expect_float_eq((double)got[1], 2.5 * (n + 1), 1e-3, "launch %d: %g", n, (double)got[1]);
    }
    a.v_scale.sh = 0; /* one of both heads */
    mean_of_v(&a, got);
    cr_expect_float_eq((double)got[1], 5 * 4.0, 1e-2, "%g", (double)got[1]);
    for (int i = 0; i < KEYS * HEADS; i++) /* of tokens: far apart, so that fp16 alone would not hold them */
        scale[i] = i / HEADS == 7 ? 40960.f : 1e-3f;
    OK(fa_copy(ctx, scales, scale, sizeof scale / 2, FA_TO_DEVICE));
    a.v_scale = (fa_scale){ .ptr = scales, .dtype = FA_F32, .by = FA_SCALE_TOKEN, .ss = HEADS, .sh = 1 };
    mean_of_v(&a, got);
    cr_expect_float_eq((double)got[0], 3 * 1024.0, 1, "%g", (double)got[0]);
}

/* Rows of q8_0 in a cache whose rows are wider than they are used: strides count blocks. A repeat's rows may lie at less than those of the
 * launch before. */
Test(low_bits, strides_count_blocks)
{
    const fa_format *f = fa_format_of(FA_Q8_0);
    enum { BLOCKS = D / 32, WIDE = BLOCKS + 1 };
    static unsigned char rows[2][KEYS * HEADS * WIDE * 34];
    float x[D], got[HEADS];
    memset(rows, 0xff, sizeof rows);
    for (int i = 0; i < KEYS * HEADS; i++)
        for (int t = 0; t < 2; t++) {
            for (int k = 0; k < D; k++)
                x[k] = t ? (float)(1 + i % HEADS) : 0;
            fa_format_quantize_row(f, rows[t] + i * WIDE * 34, x, D);
        }
    void *wide;
    OK(fa_alloc(ctx, &wide, sizeof rows + 2));
    fa_args a = good(FA_Q8_0);
    a.k = (fa_tensor){ wide, (int64_t)KEYS * HEADS * WIDE, HEADS * WIDE, WIDE };
    a.v = (fa_tensor){ (char *)wide + sizeof rows[0], (int64_t)KEYS * HEADS * WIDE, HEADS * WIDE, WIDE };
    for (int by = 0; by < 4; by += 2) {
        OK(fa_copy(ctx, (char *)wide + by, rows, sizeof rows, FA_TO_DEVICE));
        a.k.ptr = (char *)wide + by, a.v.ptr = (char *)wide + by + sizeof rows[0];
        mean_of_v(&a, got);
        for (int h = 0; h < HEADS; h++)
            cr_expect_float_eq((double)got[h], 1 + h, 2e-3, "by %d: %g", by, (double)got[h]);
    }
    OK(fa_free(ctx, wide));
}

/* Many query rows: a kernel makes 16 bits of K and V in the workspace, which fa_workspace_size() counts and fa_explain() names. */
Test(low_bits, prompts_widen_the_cache)
{
    enum { ROWS = 200 };
    static unsigned char codes[2 * KEYS * HEADS * D];
    static float got[ROWS * HEADS * D];
    const fa_format *f = fa_format_of(FA_S8);
    fa_args a = good(FA_S8);
    size_t bytes;
    static char text[8192];
    for (size_t i = 0; i < sizeof codes / 2; i++)
        codes[sizeof codes / 2 + i] = (unsigned char)fa_format_nearest(f, i / D % HEADS ? 5 : 3);
    OK(fa_copy(ctx, kv, codes, sizeof codes, FA_TO_DEVICE));
    OK(fa_alloc(ctx, &a.q.ptr, ROWS * HEADS * D * 2));
    OK(fa_alloc(ctx, &a.o.ptr, sizeof got));
    static const uint16_t rows[ROWS * HEADS * D];
    OK(fa_copy(ctx, a.q.ptr, rows, sizeof rows, FA_TO_DEVICE));
    a.sq = ROWS, a.v.ptr = (char *)kv + sizeof codes / 2;
    a.v_scale = FOLDED(scales);
    for (int n = 1; n < 3; n++) { /* scales are read again */
        const float scale[HEADS] = { (float)n, 0.5f };
        OK(fa_copy(ctx, scales, scale, sizeof scale, FA_TO_DEVICE));
        OK(fa_launch(ctx, &a, NULL));
        OK(fa_copy(ctx, got, a.o.ptr, sizeof got, FA_FROM_DEVICE));
        cr_expect_float_eq((double)got[(ROWS - 1) * HEADS * D + 5], 3.0 * n, 1e-3, "%g", (double)got[(ROWS - 1) * HEADS * D + 5]);
        cr_expect_float_eq((double)got[(ROWS - 1) * HEADS * D + D], 2.5, 1e-3);
    }
    OK(fa_workspace_size(ctx, &a, &bytes));
    cr_expect_geq(bytes, 65536 + 2 * KEYS * HEADS * D * sizeof(uint16_t));
    OK(fa_explain(ctx, NULL, &a, text, sizeof text));
    cr_expect(strstr(text, "fa_widen") && strstr(text, "workspace"), "%s", text);
    void *const all[] = { a.q.ptr, a.o.ptr };
    for (int i = 0; i < 2; i++)
        OK(fa_free(ctx, all[i]));
}

/* K and V in blocks lie where TMA does not reach them, and it reads 16 bits of them in the workspace: Q and O alone decide. */
Test(low_bits, prompts_over_blocks_take_tma)
{
    static const struct {
        int32_t format, d, q, k, align, kv;
        const char *family;
    } rows[] = { { FA_Q8_0, 128, 0, 0, 16, 8, "flash_fwd_wgmma" }, { FA_Q8_0, 128, 0, 2, 16, 2, "flash_fwd_wgmma" },
                 { FA_Q5_1, 128, 0, 0, 16, 0, "flash_fwd_wgmma" }, { FA_NVFP4, 64, 0, 0, 16, 4, "flash_fwd_wgmma" },
                 { FA_Q8_0, 128, 8, 0, 8, 0, "flash_fwd_mma" },    { FA_Q4_0, 64, 8, 0, 8, 4, "flash_fwd_mma" },
                 { FA_Q4_0, 64, 2, 0, 2, 0, "flash_fwd_mma" } };
    fa_options options = FA_OPTIONS_INIT;
    fa_context *hopper;
    static char text[8192];
    options.device = "sim:sm_90a", options.cache_dir = scratch;
    OK(fa_create(&hopper, &options));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = good(rows[i].format);
        fa_problem p;
        a.o_dtype = 0, a.d = a.dv = rows[i].d, a.sq = a.sk = 4096, a.mask = FA_MASK_CAUSAL;
        a.q.ptr = (char *)AT(1) + rows[i].q, a.k.ptr = (char *)AT(2) + rows[i].k, a.v.ptr = AT(3), a.o.ptr = AT(4);
        OK(fa_problem_of(&a, &p));
        cr_expect(p.align == rows[i].align && p.kv_align == rows[i].kv, "row %zu: %d and %d", i, p.align, p.kv_align);
        OK(fa_explain(hopper, NULL, &a, text, sizeof text));
        cr_expect(strstr(text, rows[i].family) && strstr(text, "fa_widen"), "row %zu: %s", i, text);
    }
    fa_destroy(hopper);
}
