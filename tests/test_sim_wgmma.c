/* wgmma: where every element lives in registers and in shared memory under each swizzle, that the arithmetic is that of
 * mma.sync, and that both timings agree. */
#include "test_sim_wgmma.h"
#include "sim/mma.h"
#include <math.h>

TestSuite(sim_wgmma, .init = open90a);

/* The product by the slow arithmetic, whose layouts are plain. */
static void expect(const shape *s, const numbers *x, int times, uint32_t d[64][256])
{
    static sim_product p;
    for (int row = 0; row < 64; row += 16) {
        p.type = s->bf16 ? T_BF16 : T_F16, p.n = (uint32_t)s->n;
        memcpy(p.b, x->b, sizeof p.b);
        memcpy(p.a, x->a[row], sizeof p.a);
        memcpy(p.c, x->c[row], sizeof p.c);
        if (!s->scale)
            memset(p.c, 0, sizeof p.c);
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < s->n; n++)
                p.b[k][n] ^= s->minus_a != s->minus_b ? 0x8000 : 0;
        for (int k = 0; k < times; k++)
            sim_product_slow(&p, sim_arch_find("sm_90a"));
        memcpy(d[row], p.c, sizeof p.c);
    }
}

/* A number of 8 bits: its value, and the exponent by which it is aligned; 0: none. */
static double number_of(int code, const char *type, int *e)
{
    int fraction = !strcmp(type, "e5m2") ? 2 : 3, exponent = (code & 0x7F) >> fraction, bias = fraction == 2 ? 15 : 7;
    double x = ldexp((code & ((1 << fraction) - 1)) + (exponent ? 1 << fraction : 0), (exponent ? exponent : 1) - bias - fraction);
    *e = code & 0x7F ? (exponent ? exponent : 1) - bias : -5000;
    if (fraction == 2 ? exponent == 31 : (code & 0x7F) == 0x7F)
        x = fraction == 2 && !(code & 3) ? INFINITY : NAN;
    return code & 0x80 ? -x : x;
}

/* 32 products and the accumulator, each cut toward zero 13 bits below the largest exponent, and their sum 13 bits below its own. */
static uint32_t sum_of_eight(const shape *s, const numbers *x, int row, int n, uint32_t c)
{
    double product[32], sum = 0, special = 0;
    float out, acc;
    int most = -5000, odd = 0;
    memcpy(&acc, &c, 4);
    for (int k = 0; k < 32; k++) {
        int ea, eb;
        double a = number_of(x->a[row][k / 2] >> k % 2 * 8 & 0xFF, s->type_a, &ea),
               b = number_of(x->b[k / 2][n] >> k % 2 * 8 & 0xFF, s->type_b, &eb);
        product[k] = a * b * (s->minus_a != s->minus_b ? -1 : 1);
        most = ea + eb > most ? ea + eb : most;
        odd |= !isfinite(product[k]);
        special += isfinite(product[k]) ? 0 : product[k];
    }
    odd |= !isfinite(acc);
    special += isfinite(acc) ? 0 : acc;
    if (odd) {
        out = (float)special;
        memcpy(&c, &out, 4);
        return isnan(out) ? 0x7FFFFFFF : c;
    }
    most = acc != 0 && ilogbf(acc) > most ? ilogbf(acc) : most;
    for (int k = 0; k < 32; k++)
        sum += trunc(ldexp(product[k], 13 - most));
    out = (float)ldexp(sum + trunc(ldexp(acc, 13 - most)), most - 13);
    if (out == 0)
        return 0;
    memcpy(&c, &out, 4);
    return c & ~((1u << 10) - 1);
}

/* 32 products of integers and the accumulator, which wrap. */
static uint32_t sum_of_integers(const numbers *x, int row, int n, uint32_t c)
{
    for (int k = 0; k < 32; k++)
        c += (uint32_t)((int8_t)(x->a[row][k / 2] >> k % 2 * 8 & 0xFF) * (int8_t)(x->b[k / 2][n] >> k % 2 * 8 & 0xFF));
    return c;
}

/* Runs the shape in both timings and compares every bit. */
static void agree(const shape *s, const numbers *x, const char *what)
{
    static memory m;
    static uint32_t got[64][256], want[64][256];
    fill(&m, s, x);
    begin(s, FENCE);
    ISSUE(s, s->scale ? "1" : "0");
    for (int k = 1; k < s->times; k++)
        product(s, "1");
    WAIT;
    CUfunction f = load(end(s));
    if (!s->type_a)
        expect(s, x, s->times ? s->times : 1, want);
    for (int row = 0; row < 64 && s->type_a; row++)
        for (int n = 0; n < s->n; n++) {
            want[row][n] = s->scale ? x->c[row][n] : 0;
            for (int k = 0; k < (s->times ? s->times : 1); k++)
                want[row][n] =
                    !strcmp(s->type_a, "s8") ? sum_of_integers(x, row, n, want[row][n]) : sum_of_eight(s, x, row, n, want[row][n]);
        }
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        sim_set_options(&(sim_options){ .async = (sim_async)async });
        CUresult r = launch(f, 1, 128, SHARED, a, b);
        cr_assert_eq(r, CUDA_SUCCESS, "%s, timing %d: %s", what, async, sim_report());
        fetch_d(b, s, got);
        for (int row = 0; row < 64; row++)
            for (int n = 0; n < s->n; n++)
                cr_assert_eq(got[row][n], want[row][n], "%s, timing %d: d[%d][%d] is %08x instead of %08x", what, async, row, n,
                             got[row][n], want[row][n]);
        cu->cuMemFree(a), cu->cuMemFree(b);
    }
}

Test(sim_wgmma, every_swizzle_and_major_of_both_operands)
{
    static const int spans[] = { 16, 32, 64, 128 }, columns[] = { 8, 24, 64, 104 };
    static numbers x;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            for (int mn = 0; mn < 4; mn++) {
                shape s = { .n = columns[(a + b) & 3], .bf16 = mn & 1, .a_shared = 1, .scale = 1 };
                s.a = tile_of(spans[a], mn & 1, 64, 0), s.b = tile_of(spans[b], mn >> 1, s.n, 16384);
                char what[64];
                snprintf(what, sizeof what, "A span %d mn %d, B span %d mn %d", spans[a], mn & 1, spans[b], mn >> 1);
                randomize(&s, &x, 0);
                agree(&s, &x, what);
            }
}

Test(sim_wgmma, every_width_with_A_in_registers)
{
    static numbers x;
    for (int n = 8; n <= 256; n += 8) {
        shape s = { .n = n,
                    .bf16 = n >> 3 & 1,
                    .scale = n != 48,
                    .minus_a = n == 16,
                    .minus_b = n == 24,
                    .times = n == 32 ? 3 : 1,
                    .b = tile_of(128, 1, n, 0) };
        if (n == 40)
            s.minus_a = s.minus_b = 1;
        randomize(&s, &x, 0);
        agree(&s, &x, "A in registers");
    }
}

/* The start moves along k inside of a swizzled row: added before the swizzle. */
Test(sim_wgmma, steps_along_k_inside_of_a_row)
{
    static numbers x;
    for (int step = 0; step < 4; step++) {
        shape s = { .n = 64, .a_shared = 1, .scale = 1 };
        s.a = tile_of(128, 0, 64, 32 * step), s.b = tile_of(128, 0, 64, 16384 + 32 * step);
        randomize(&s, &x, 0);
        agree(&s, &x, "128");
        s.a = tile_of(64, 0, 64, 32 * (step & 1)), s.b = tile_of(64, 0, 64, 16384 + 32 * (step & 1));
        agree(&s, &x, "64");
    }
}

Test(sim_wgmma, infinities_and_everything)
{
    static numbers x;
    for (int round = 0; round < 8; round++) {
        shape s = { .n = 32,
                    .bf16 = round & 1,
                    .a_shared = round >> 1 & 1,
                    .scale = 1,
                    .a = tile_of(32, 0, 64, 0),
                    .b = tile_of(32, round >> 2, 32, 8192) };
        randomize(&s, &x, 1);
        agree(&s, &x, "special values");
    }
}

/* Numbers of 8 bits: both formats of either operand, each swizzle along k, A in both places, numbers of all sizes and special ones. */
Test(sim_wgmma, numbers_of_eight_bits)
{
    static const char *const types[] = { "e4m3", "e5m2" };
    static const int spans[] = { 16, 32, 64, 128 };
    static numbers x;
    for (int round = 0; round < 32; round++) {
        int kind = round % 4;
        shape s = { .n = 8 << round % 4,
                    .a_shared = round >> 2 & 1,
                    .scale = round != 3,
                    .minus_a = round == 5,
                    .minus_b = round % 8 == 5,
                    .times = round % 3 + 1,
                    .type_a = types[round & 1],
                    .type_b = types[round >> 1 & 1] };
        s.a = tile_of(spans[round >> 3], 0, 64, 0), s.b = tile_of(spans[3 - (round >> 3)], 0, s.n, 16384);
        randomize(&s, &x, 1);
        for (int k = 0; k < 64 * 16 + 256 * 16; k++) {
            uint16_t *to = k < 64 * 16 ? &x.a[k / 16][k % 16] : &x.b[(k - 64 * 16) / 256][k % 256];
            if (kind == 0) /* near one, so that the accumulator counts */
                *to = (uint16_t)((*to & 0x8F8F) | 0x3030);
            else if (kind < 3) /* finite */
                *to &= kind == 1 ? 0xBFBF : any() % 3 ? 0x8080 : 0xBFBF;
        }
        for (int k = 0; k < 64 * 256 && kind == 2; k++)
            x.c[k / 256][k % 256] = any() % 4 ? 0 : x.c[k / 256][k % 256] - (any() % 40 << 23);
        agree(&s, &x, "8 bits");
    }
}

/* Integers of 8 bits: each swizzle, A in both places, sums that go on, and that wrap. */
Test(sim_wgmma, integers_of_eight_bits)
{
    static const int spans[] = { 16, 32, 64, 128 };
    static numbers x;
    for (int round = 0; round < 16; round++) {
        shape s = {
            .n = 8 << round % 4, .a_shared = round >> 2 & 1, .scale = round != 3, .times = round % 3 + 1, .type_a = "s8", .type_b = "s8"
        };
        s.a = tile_of(spans[round & 3], 0, 64, 0), s.b = tile_of(spans[3 - (round & 3)], 0, s.n, 16384);
        randomize(&s, &x, 1);
        for (int k = 0; k < 64 * 256 && round & 1; k++)
            x.c[k / 256][k % 256] = 0x7FFFFF00 + any() % 512;
        agree(&s, &x, "integers");
    }
}

/* The compiler copies accumulators in flight with movs; a product may go on from the copies, and both are delivered. */
Test(sim_wgmma, movs_of_accumulators_in_flight)
{
    static numbers x;
    static memory m;
    static uint32_t got[64][256], want[64][256];
    shape s = { .n = 16, .a_shared = 1, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384) }, first = s;
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    for (int copy = 0; copy < 2; copy++) {
        begin(&s, FENCE);
        ISSUE(&s, "1");
        for (int k = 0; k < 8; k++)
            add("mov.f32 %%f%d, %%c%d;\n", k, k); /* the first product's result stays in %f */
        for (int k = 0; k < 8 && copy; k++)
            add("mov.f32 %%f%d, %%c%d;\nmov.f32 %%c%d, %%f%d;\n", 8 + k, k, k, 8 + k);
        product(&s, "1");
        WAIT;
        for (int k = 0; k < 8 && !copy; k++)
            add("mov.f32 %%c%d, %%f%d;\n", k, k);
        CUfunction f = load(end(&s));
        expect(&first, &x, copy ? 2 : 1, want);
        for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
            CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
            sim_set_options(&(sim_options){ .async = (sim_async)async });
            cr_assert_eq(launch(f, 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
            fetch_d(b, &s, got);
            for (int row = 0; row < 64; row++)
                for (int n = 0; n < 16; n++)
                    cr_assert_eq(got[row][n], want[row][n], "copy %d timing %d [%d][%d]", copy, async, row, n);
        }
    }
}

/* Groups end in order, and only as many as the wait says. */
Test(sim_wgmma, a_wait_leaves_the_newest_groups)
{
    static numbers x;
    static memory m;
    static uint32_t got[64][256], want[64][256];
    shape s = { .n = 16, .a_shared = 1, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384) };
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    begin(&s, FENCE);
    for (int k = 0; k < 8; k++)
        add("mov.f32 %%f%d, 0f00000000;\n", 20 + k);
    ISSUE(&s, "1");
    add("wgmma.commit_group.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 ");
    list("%f", 20, 8);
    add(", %%rd10, %%rd11, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n");
    for (int k = 0; k < 8; k++)
        add("st.global.f32 [%%rd7+%d], %%c%d;\n", k * 1024, k);
    add("wgmma.wait_group.sync.aligned 0;\n");
    CUfunction f = load(end(&s));
    expect(&s, &x, 1, want);
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        sim_set_options(&(sim_options){ .async = (sim_async)async });
        cr_assert_eq(launch(f, 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
        fetch_d(b, &s, got);
        for (int row = 0; row < 64; row++)
            for (int n = 0; n < 16; n++)
                cr_assert_eq(got[row][n], want[row][n]);
    }
}

Test(sim_wgmma, the_same_bits_as_mma_sync)
{
    static numbers x;
    static memory m;
    static uint32_t raw[128][256];
    for (int round = 0; round < 24; round++) {
        shape s = { .n = 8, .bf16 = round & 1, .scale = 1, .b = { .span = 16, .at = 2048, .lead = 128, .stride = 256 } };
        const char *t = s.bf16 ? "bf16" : "f16";
        randomize(&s, &x, round >= 12);
        fill(&m, &s, &x);
        begin(&s, FENCE);
        for (int k = 0; k < 4; k++)
            add("mov.f32 %%f%d, %%c%d;\n", k, k);
        add("and.b32 %%r20, %%r0, 31;\nshl.b32 %%r20, %%r20, 2;\nmov.u32 %%r21, sm;\nadd.u32 %%r21, %%r21, %%r20;\n" /* row g, columns 2t:
                                                                                                                        16 g + 4 t */
            "ld.shared.b32 %%r22, [%%r21+2048];\nld.shared.b32 %%r23, [%%r21+2176];\n"
            "mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 {%%f0,%%f1,%%f2,%%f3}, {%%a0,%%a1,%%a2,%%a3}, {%%r22,%%r23}, "
            "{%%f0,%%f1,%%f2,%%f3};\n",
            t, t);
        for (int k = 0; k < 4; k++)
            add("st.global.f32 [%%rd7+%d], %%f%d;\n", (8 + k) * 1024, k);
        ISSUE(&s, "1");
        WAIT;
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, sizeof raw);
        cr_assert_eq(launch(load(end(&s)), 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
        fetch(raw, b, 16 * 1024);
        for (int k = 0; k < 4; k++)
            for (int l = 0; l < 128; l++)
                cr_assert_eq(raw[k][l], raw[8 + k][l], "round %d register %d thread %d: %08x, mma.sync %08x", round, k, l, raw[k][l],
                             raw[8 + k][l]);
        cu->cuMemFree(a), cu->cuMemFree(b);
    }
}

/* The fast arithmetic against the slow, where it applies: near values, wide ranges, zeros, tiny accumulators, old chips. */
Test(sim_wgmma, fast_and_slow_arithmetic_agree)
{
    static sim_product p, q;
    int fast = 0;
    for (int round = 0; round < 600; round++) {
        const sim_arch *arch = sim_arch_find(round & 1 ? "sm_80" : "sm_90a");
        int kind = (int)(any() % 7);
        p.type = round & 2 ? T_BF16 : T_F16, p.n = 8 * (1 + any() % 32);
        for (int k = 0; k < 16 * (16 + (int)p.n); k++) {
            uint16_t *to = k < 256 ? &p.a[k / 16][k % 16] : &p.b[(k - 256) / (int)p.n][(k - 256) % (int)p.n], v = (uint16_t)any();
            uint16_t top = p.type == T_F16 ? 0x7C00 : 0x7F80;
            if ((v & top) == top)
                v &= 0x3FFF;
            if (kind < 3)
                v = (uint16_t)((v & 0x83FF) | (p.type == T_F16 ? 0x2C00 + (any() & 0x1C00) : 0x3C00)); /* near one */
            if (kind == 3)
                v &= 0x9FFF; /* tiny */
            if (kind == 4 && any() % 3)
                v &= 0x8000;
            if (kind == 5 && k % 16 < 14)
                v &= 0x8000; /* whole rows and columns of zeros, with signs */
            *to = v;
        }
        for (int k = 0; k < 16 * (int)p.n; k++) {
            uint32_t v = any() ^ any() << 16;
            if ((v & 0x7F800000) == 0x7F800000)
                v &= 0x3FFFFFFF;
            if (kind < 2)
                v = (v & 0x80FFFFFF) | 0x3F000000;
            if (kind == 6)
                v &= any() & 1 ? 0x80000000 : 0x81FFFFFF;
            p.c[k / (int)p.n][k % (int)p.n] = v;
        }
        q = p;
        sim_product_slow(&q, arch);
        if (!sim_product_fast(&p, arch))
            continue;
        fast++;
        for (int k = 0; k < 16; k++)
            for (uint32_t n = 0; n < p.n; n++)
                cr_assert_eq(p.c[k][n], q.c[k][n], "round %d kind %d [%d][%u]: %08x, slow %08x", round, kind, k, n, p.c[k][n], q.c[k][n]);
    }
    cr_assert(fast > 300, "the fast way was taken %d times", fast);
}
