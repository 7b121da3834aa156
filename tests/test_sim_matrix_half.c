/* f16 accumulators and wgmma of tf32: against a model of its own, and wgmma against mma.sync, bit for bit. */
#include "test_sim_machine.h"
#include <math.h>

static void open90_a(void)
{
    open_machine("sm_90a");
}
TestSuite(sim_matrix_half, .init = open90_a);
TestSuite(sim_matrix_half_80, .init = open80);

static uint32_t state = 12345;
static uint32_t noise(void)
{
    return state = state * 1664525u + 1013904223u, state >> 8;
}

/* ---- numbers ---- */

static double half_value(uint32_t h)
{
    int e = (int)(h >> 10 & 31), m = (int)(h & 0x3FF);
    double v = e == 31 ? m ? NAN : INFINITY : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 & 1 ? -v : v;
}
/* To nearest even, as bits; the rounding is that of nearbyint(). */
static uint32_t to_half(double v)
{
    uint32_t sign = signbit(v) ? 0x8000 : 0;
    if (isnan(v))
        return 0x7FFF;
    int e = v == 0 ? -14 : isinf(v) ? 16 : ilogb(v);
    if (e > 15)
        return sign | 0x7C00;
    if (e < -14)
        e = -14;
    double m = nearbyint(ldexp(fabs(v), 10 - e)); /* 1024 to 2048 of a normal number */
    return m >= 2048 && e == 15 ? sign | 0x7C00 : sign | (((uint32_t)(e + 14) << 10) + (uint32_t)m);
}
/* Mostly ordinary numbers, of very different sizes; now and then a zero, a subnormal or a large one. */
static uint32_t some_half(int kind)
{
    uint32_t r = noise();
    if (kind == 0)
        return (r & 0x83FF) | (uint32_t)(11 + r / 65536 % 8) << 10;
    if (kind == 1)
        return r % 9 == 0 ? r & 0x8000 : (r & 0x83FF) | (uint32_t)(r / 65536 % 29) << 10;
    if (kind == 2)
        return (r & 0x83FF) | (uint32_t)(24 + r / 65536 % 7) << 10; /* sums that overflow */
    if (kind == 3)
        return (r & 0x83FF) | (uint32_t)(r / 65536 % 9) << 10; /* results that are subnormal, or nothing */
    return r % 13 == 0 ? 0x7C00 | (r & 0x8000) : r % 29 == 0 ? 0x7E00 : (r & 0x83FF) | (uint32_t)(13 + r / 65536 % 4) << 10;
}

/* One output of D = A B + C in f16: blocks of products, all aligned to the largest exponent and cut below the kept bits. */
static uint32_t model(const uint32_t *a, const uint32_t *b, uint32_t c, int k, int block, int fraction)
{
    double acc = half_value(c);
    bool nan = isnan(acc), up = acc == INFINITY, down = acc == -INFINITY;
    for (int j = 0; j < k; j++) {
        double p = half_value(a[j]) * half_value(b[j]);
        nan |= isnan(p), up |= p == INFINITY, down |= p == -INFINITY;
    }
    if (nan || (up && down))
        return 0x7FFF;
    if (up || down)
        return up ? 0x7C00 : 0xFC00;
    for (int j0 = 0; j0 < k; j0 += block) {
        int top = -21;
        int64_t sum = 0;
        if (isinf(acc))
            break;
        for (int j = j0; j < j0 + block; j++) {
            int ea = (int)(a[j] >> 10 & 31), eb = (int)(b[j] >> 10 & 31), e = (ea ? ea : 1) + (eb ? eb : 1) - 30;
            if (half_value(a[j]) * half_value(b[j]) != 0 && e > top)
                top = e;
        }
        if (acc != 0 && ilogb(acc) > top)
            top = ilogb(acc);
        for (int j = j0; j < j0 + block; j++)
            sum += (int64_t)ldexp(half_value(a[j]) * half_value(b[j]), fraction - top);
        sum += (int64_t)ldexp(acc, fraction - top);
        acc = half_value(to_half(ldexp((double)sum, top - fraction)));
    }
    return to_half(acc);
}

/* ---- mma.sync ---- */

static void mma_against_the_model(const char *head, int k, int block, int fraction)
{
    /* per lane: A in words 0 to 3, B in 4 and 5, C in 6 and 7 */
    static const char body[] = KERNEL("mul.wide.u32 %rd3, %r0, 32; add.s64 %rd3, %rd1, %rd3; ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd3]; "
                                      "ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%rd3+16];\n"
                                      "mma.sync.aligned.m16n8k$1.row.col.f16.f16.f16.f16 {%r9,%r10}, $2, $3, {%r7,%r8};\n"
                                      "mul.wide.u32 %rd4, %r0, 8; add.s64 %rd4, %rd2, %rd4; st.global.v2.u32 [%rd4], {%r9,%r10};");
    static char ptx[32768];
    snprintf(ptx, sizeof ptx, "%s%s", head,
             with(body, k == 16 ? "16" : "8", k == 16 ? "{%r1,%r2,%r3,%r4}" : "{%r1,%r2}", k == 16 ? "{%r5,%r6}" : "{%r5}"));
    CUfunction f = load(ptx);
    for (int round = 0; round < 400; round++) {
        uint32_t a[16][16], b[8][16], c[16][8], in[32][8] = { { 0 } }, out[32][2];
        int kind = round % 5;
        for (int r = 0; r < 16; r++)
            for (int j = 0; j < k; j++)
                a[r][j] = some_half(kind);
        for (int n = 0; n < 8; n++)
            for (int j = 0; j < k; j++)
                b[n][j] = some_half(kind);
        for (int r = 0; r < 16; r++)
            for (int n = 0; n < 8; n++)
                c[r][n] = some_half(kind);
        for (int l = 0; l < 32; l++) {
            int g = l >> 2, t = l & 3;
            for (int i = 0; i < k / 2; i++)
                in[l][i / 2] |= a[g + 8 * (i >> 1 & 1)][2 * t + (i & 1) + 8 * (i >> 2)] << 16 * (i & 1);
            for (int i = 0; i < k / 4; i++)
                in[l][4 + i / 2] |= b[g][2 * t + (i & 1) + 8 * (i >> 1)] << 16 * (i & 1);
            for (int i = 0; i < 4; i++)
                in[l][6 + i / 2] |= c[g + 8 * (i >> 1)][2 * t + (i & 1)] << 16 * (i & 1);
        }
        CUdeviceptr from = buffer(in, sizeof in), to = buffer(NULL, sizeof out);
        cr_assert_eq(launch(f, 1, 32, 0, from, to), CUDA_SUCCESS, "%s", sim_report());
        fetch(out, to, sizeof out);
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 4; i++) {
                int r = (l >> 2) + 8 * (i >> 1), n = 2 * (l & 3) + (i & 1);
                uint32_t got = out[l][i / 2] >> 16 * (i & 1) & 0xFFFF,
                         want = model(a[r], b[n], c[r][n], k, block < k ? block : k, fraction);
                cr_assert(got == want || !((got | want) & 0x7FFF), "k %d, numbers of kind %d, row %d, column %d: %04x instead of %04x", k,
                          kind, r, n, got, want);
            }
        cu->cuMemFree(from), cu->cuMemFree(to);
    }
}
Test(sim_matrix_half, mma_of_hopper)
{
    mma_against_the_model(HEAD90, 16, 16, 25), mma_against_the_model(HEAD90, 8, 16, 25);
}
Test(sim_matrix_half_80, mma_of_ampere)
{
    mma_against_the_model(HEAD80, 16, 8, 24), mma_against_the_model(HEAD80, 8, 8, 24);
}

/* ---- wgmma ---- */

enum { WORDS = 16 }; /* per thread: A in 0 to 3, C in 4 to 7, B of mma.sync in 8 and 9 */

/* m64n8 by one step of k with A in registers, `times` products one onto another with some text between them, then the same with
 * mma.sync: of thread t at b + 32 t. */
static CUfunction both(const char *type, const char *acc, int times, const char *between)
{
    static char text[32768];
    bool tf = !strcmp(type, "tf32"), half = !strcmp(acc, "f16");
    const char *d = half ? "{%d1,%d2}" : "{%d1,%d2,%d3,%d4}", *e = half ? "{%e1,%e2}" : "{%e1,%e2,%e3,%e4}";
    size_t n = (size_t)snprintf(
        text, sizeof text,
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n.shared .align 1024 .b8 "
        "tile[256];\n.reg .pred %%p<4>;\n.reg .b32 %%r<20>;\n"
        ".reg .b32 %%d<5>;\n.reg .b16 %%h<7>;\n.reg .b32 %%e<5>;\n.reg .b64 %%rd<12>;\nld.param.u64 %%rd1, [a];\nld.param.u64 %%rd2, "
        "[b];\nmov.u32 %%r0, %%tid.x;\n"
        "mov.u32 %%r15, tile;\nsetp.ge.u32 %%p1, %%r0, 64;\n@%%p1 bra FILLED;\nshl.b32 %%r16, %%r0, 2;\ncvt.u64.u32 %%rd5, %%r16;\nadd.s64 "
        "%%rd5, %%rd5, %%rd1;\nadd.u32 %%r16, %%r16, %%r15;\n"
        "ld.global.u32 %%r17, [%%rd5];\nst.shared.u32 [%%r16], %%r17;\nfence.proxy.async;\nFILLED:\nbar.sync 0;\n"
        "mul.wide.u32 %%rd3, %%r0, %d;\nadd.s64 %%rd3, %%rd1, %%rd3;\nld.global.v4.u32 {%%r1,%%r2,%%r3,%%r4}, "
        "[%%rd3+256];\nld.global.v4.u32 {%%d1,%%d2,%%d3,%%d4}, [%%rd3+272];\n"
        "ld.global.v2.u32 {%%r5,%%r6}, [%%rd3+288];\nmov.u32 %%e1, %%d1; mov.u32 %%e2, %%d2; mov.u32 %%e3, %%d3; mov.u32 %%e4, %%d4;\n"
        "shr.u32 %%r15, %%r15, 4;\ncvt.u64.u32 %%rd6, %%r15;\nor.b64 %%rd6, %%rd6, 0x%llx;\nwgmma.fence.sync.aligned;\n",
        4 * WORDS, (128ull >> 4) << 16 | (256ull >> 4) << 32);
    for (int k = 0; k < times; k++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "wgmma.mma_async.sync.aligned.m64n8k%d.%s.%s.%s %s, {%%r1,%%r2,%%r3,%%r4}, %%rd6, 1, 1, "
                              "1%s;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n%s",
                              tf ? 8 : 16, acc, type, type, d, tf ? "" : ", 0", between);
    n += (size_t)snprintf(text + n, sizeof text - n, "wgmma.wait_group.sync.aligned 0;\n");
    for (int k = 0; k < times; k++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s %s, {%%r1,%%r2,%%r3,%%r4}, {%%r5,%%r6}, %s;\n", tf ? 8 : 16,
                              acc, type, type, acc, e, e);
    snprintf(text + n, sizeof text - n,
             "mul.wide.u32 %%rd4, %%r0, 32;\nadd.s64 %%rd4, %%rd2, %%rd4;\nst.global.v4.u32 [%%rd4], "
             "{%%d1,%%d2,%%d3,%%d4};\nst.global.v4.u32 [%%rd4+16], {%%e1,%%e2,%%e3,%%e4};\nret;\n}\n");
    return load(text);
}

static uint32_t some_word(const char *type, int kind)
{
    if (strcmp(type, "tf32"))
        return some_half(kind) | some_half(kind) << 16;
    uint32_t r = noise() ^ noise() << 12; /* the lowest 13 bits are noise that must not count */
    return kind == 4 && r % 17 == 0 ? 0x7F800000 | (r & 0x80000000)
                                    : (r & 0x807FFFFF) | (uint32_t)((kind == 0 ? 120 : 60) + noise() % (kind == 0 ? 14 : 120)) << 23;
}

#define PAUSE "add.u32 %r18, %r0, 1;\nadd.u32 %r18, %r18, 1;\nadd.u32 %r18, %r18, 1;\nadd.u32 %r18, %r18, 1;\n"
/* As compilers do that know f16 accumulators as pairs: apart and together again while the product is in flight, by way of other registers.
 */
#define APART                                                                     \
    "mov.b32 {%h1,%h2}, %d1;\nmov.b32 {%h3,%h4}, %d2;\nmov.b16 %h5, %h1;\n" PAUSE \
    "mov.b32 %d1, {%h5,%h2};\nmov.b32 %r19, {%h3,%h4};\nmov.b32 %d2, %r19;\n"

static void wgmma_is_mma(const char *type, const char *acc, const char *between)
{
    CUfunction once = both(type, acc, 1, between), often = both(type, acc, 6, between);
    bool tf = !strcmp(type, "tf32"), half = !strcmp(acc, "f16");
    for (int round = 0; round < 120; round++) {
        uint32_t in[64 + 128 * WORDS] = { 0 }, out[128][8], b[8][8]; /* b: column, pair of k, or k of tf32 */
        int kind = round % 5;
        for (int n = 0; n < 8; n++)
            for (int k = 0; k < 8; k++)
                in[k / 4 * 32 + n * 4 + k % 4] = b[n][k] = some_word(type, kind);
        for (int t = 0; t < 128; t++) {
            uint32_t *w = in + 64 + t * WORDS;
            int l = t & 31, g = l >> 2, q = l & 3;
            for (int i = 0; i < 4; i++)
                w[i] = some_word(type, kind);
            for (int i = 0; i < 4; i++)
                w[4 + i] = half ? some_word("f16", kind) : some_word("tf32", kind);
            w[8] = b[g][q], w[9] = b[g][q + 4];
        }
        sim_set_options(&(sim_options){ .async = round & 1 ? SIM_LAZY : SIM_EAGER, .schedule = SIM_RANDOM, .seed = (uint64_t)round });
        CUdeviceptr from = buffer(in, sizeof in), to = buffer(NULL, sizeof out);
        cr_assert_eq(launch(round % 4 < 2 ? once : often, 1, 128, 0, from, to), CUDA_SUCCESS, "%s", sim_report());
        fetch(out, to, sizeof out);
        for (int t = 0; t < 128; t++)
            for (int i = 0; i < (half ? 2 : 4); i++)
                cr_assert_eq(out[t][i], out[t][4 + i], "%s in %s, round %d, thread %d, register %d: wgmma %08x, mma %08x", type, acc, round,
                             t, i, out[t][i], out[t][4 + i]);
        if (tf && !half && kind == 0)
            cr_assert((out[5][0] & 0x7F800000) != 0x7F800000);
        cu->cuMemFree(from), cu->cuMemFree(to);
    }
}
Test(sim_matrix_half, wgmma_into_f16)
{
    wgmma_is_mma("f16", "f16", PAUSE);
}
Test(sim_matrix_half, accumulators_apart_and_together)
{
    wgmma_is_mma("f16", "f16", APART);
}
Test(sim_matrix_half, wgmma_of_tf32)
{
    wgmma_is_mma("tf32", "f32", PAUSE);
}
Test(sim_matrix_half, wgmma_into_f32)
{
    wgmma_is_mma("f16", "f32", PAUSE);
}

/* A half is used, or stands in the wrong place: that is no renaming. */
Test(sim_matrix_half, halves_in_flight)
{
    static const char *const rows[][2] = {
        { "mov.b32 {%h1,%h2}, %d1;\nadd.f16 %h3, %h1, %h2;\n", "register %h1 is read, but it is an accumulator of the wgmma" },
        { "mov.b32 {%h1,%h2}, %d1;\nmov.b32 %d1, {%h2,%h1};\n", "register %d1 is written, but it is an accumulator of the wgmma" },
        { "mov.b32 {%h1,%h2}, %d1;\nmov.b32 {%h3,%h4}, %d2;\nmov.b32 %r19, {%h1,%h4};\n",
          "register %h1 is read, but it is an accumulator of the wgmma" },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int late = 0; late < 2; late++) {
            uint32_t in[64 + 128 * WORDS] = { 0 };
            sim_set_options(&(sim_options){ .async = late ? SIM_LAZY : SIM_EAGER });
            CUresult got = launch(both("f16", "f16", 2, rows[r][0]), 1, 128, 0, buffer(in, sizeof in), buffer(NULL, 128 * 32));
            cr_expect(got == CUDA_ERROR_LAUNCH_FAILED && strstr(sim_report(), rows[r][1]), "row %zu: %d\n%s", r, got, sim_report());
        }
}
