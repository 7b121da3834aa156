/* Long sums over caches of few bits: 128k keys whose V has a mean of 1 and one column far out. Sums that lose bits make O smaller, which a
 * V without a mean does not show. gain = <O, right> / <right, right>. */
#include "gen/format.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "verify/operands/number.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
enum { KEYS = 1 << 17, D = 64, HEADS = 2 };

TestSuite(low_gain, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

/* About normal, of a mean of 0. */
static float drawn(uint64_t *state)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(*state >> 40) / (float)(1 << 24) - 0.5f;
    }
    return sum * 1.7320508f;
}

/* What few bits hold of rows: their codes, and the numbers that these are. */
static void encode(const fa_format *f, unsigned char *rows, float *numbers, bool has_mean, uint64_t *state)
{
    const int64_t bytes = fa_format_bytes(f, D);
    for (int64_t key = 0; key < KEYS; key++) {
        unsigned char *row = rows + key * bytes;
        float x[D];
        for (int i = 0; i < D; i++)
            x[i] = drawn(state) + (has_mean ? 1.f + 7.f * (i == 9) : 0.f);
        if (f->block > 1)
            fa_format_quantize_row(f, row, x, D);
        for (int i = 0; i < D; i++) {
            if (f->block == 1)
                fa_format_set_code(f, row, i, fa_format_quantize(f, x[i], 1));
            numbers[key * D + i] = (float)fa_format_value(f, row, i);
        }
    }
}

static void gain_of(fa_context *ctx, int32_t dtype)
{
    const fa_format *f = fa_format_of(dtype);
    const size_t bytes = (size_t)fa_format_bytes(f, D) * KEYS;
    unsigned char *rows = malloc(2 * bytes);
    float *k = malloc(sizeof *k * KEYS * D), *v = malloc(sizeof *v * KEYS * D), o[HEADS * D];
    double *weight = malloc(sizeof *weight * KEYS);
    uint16_t q[HEADS * D];
    uint64_t state = (uint64_t)dtype;
    cr_assert(rows && k && v && weight);
    for (int i = 0; i < HEADS * D; i++)
        q[i] = fa_number_to_f16(drawn(&state));
    encode(f, rows, k, false, &state);
    encode(f, rows + bytes, v, true, &state);

    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_F16, a.o_dtype = FA_F32, a.d = a.dv = D, a.b = 1, a.hq = HEADS, a.hkv = 1, a.sq = 1, a.sk = KEYS, a.kv_dtype = dtype;
    OK(fa_alloc(ctx, &a.q.ptr, sizeof q));
    OK(fa_alloc(ctx, &a.k.ptr, bytes));
    OK(fa_alloc(ctx, &a.v.ptr, bytes));
    OK(fa_alloc(ctx, &a.o.ptr, sizeof o));
    OK(fa_copy(ctx, a.q.ptr, q, sizeof q, FA_TO_DEVICE));
    OK(fa_copy(ctx, a.k.ptr, rows, bytes, FA_TO_DEVICE));
    OK(fa_copy(ctx, a.v.ptr, rows + bytes, bytes, FA_TO_DEVICE));
    OK(fa_launch(ctx, &a, NULL));
    OK(fa_copy(ctx, o, a.o.ptr, sizeof o, FA_FROM_DEVICE));

    for (int h = 0; h < HEADS; h++) {
        double right[D] = { 0 }, all = 0, both = 0, own = 0;
        for (int64_t key = 0; key < KEYS; key++) {
            double s = 0;
            for (int i = 0; i < D; i++)
                s += (double)fa_number_from_f16(q[h * D + i]) * (double)k[key * D + i];
            all += weight[key] = exp(s / 8);
            for (int i = 0; i < D; i++)
                right[i] += weight[key] * (double)v[key * D + i];
        }
        for (int i = 0; i < D; i++) {
            right[i] /= all;
            both += right[i] * (double)o[h * D + i];
            own += right[i] * right[i];
            cr_expect(fabs((double)o[h * D + i] / right[i] - 1) < 0.004, "%s, head %d, column %d: %g, not %g", f->name, h, i,
                      (double)o[h * D + i], right[i]);
        }
        cr_expect(fabs(both / own - 1) < 0.004, "%s, head %d: gain %g", f->name, h, both / own);
    }
    void *const mine[] = { a.q.ptr, a.k.ptr, a.v.ptr, a.o.ptr };
    for (int i = 0; i < 4; i++)
        OK(fa_free(ctx, mine[i]));
    free(rows), free(k), free(v), free(weight);
}

Test(low_gain, long_sums_lose_nothing)
{
    static const int32_t formats[] = { FA_E4M3, FA_Q8_0, FA_Q4_0, FA_S8, FA_E5M2, FA_Q5_1, FA_NVFP4 };
    const size_t n = getenv("FAGEN_TEST_FULL") ? sizeof formats / sizeof *formats : 1;
    fa_options options = FA_OPTIONS_INIT;
    fa_context *ctx;
    options.device = getenv("FAGEN_TEST_DEVICE") ? getenv("FAGEN_TEST_DEVICE") : "sim:sm_90a", options.cache_dir = scratch;
    OK(fa_create(&ctx, &options));
    for (size_t i = 0; i < n; i++)
        gain_of(ctx, formats[i]);
    fa_destroy(ctx);
}
