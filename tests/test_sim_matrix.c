/* Matrix instructions: where every element lives, and the arithmetic against a slow model of its own (exact integers of 640
 * bits' worth of range held as __int128 after alignment). */
#include "test_sim_machine.h"
#include <math.h>

typedef enum kind { F16, BF16, TF32 } kind;
/* clang-format off */
static const struct { const char *name, *opcode; kind t; int k, a, b; } shapes[] = {
    {"f16 k16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", F16, 16, 4, 2},
    {"bf16 k16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", BF16, 16, 4, 2},
    {"f16 k8", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", F16, 8, 2, 1},
    {"bf16 k8", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", BF16, 8, 2, 1},
    {"tf32 k8", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", TF32, 8, 4, 2},
    {"tf32 k4", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", TF32, 4, 2, 1},
};
/* clang-format on */
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* in: per lane 10 words: A, B, C registers in a row; out: per lane 4. */
static CUfunction mma_kernel(int s, const char *head)
{
    static const char *const a[] = { "{%r1}", "{%r1,%r2}", NULL, "{%r1,%r2,%r3,%r4}" }, *const b[] = { "{%r5}", "{%r5,%r6}" };
    char text[4096];
    snprintf(text, sizeof text, "%s%s", head,
             KERNEL("mul.wide.u32 %rd3, %r0, 40; add.s64 %rd3, %rd1, %rd3; mul.wide.u32 %rd4, %r0, 16; add.s64 %rd4, %rd2, %rd4;\n"
                    "ld.global.v2.u32 {%r1,%r2}, [%rd3]; ld.global.v2.u32 {%r3,%r4}, [%rd3+8]; ld.global.v2.u32 {%r5,%r6}, [%rd3+16];\n"
                    "ld.global.v2.f32 {%f1,%f2}, [%rd3+24]; ld.global.v2.f32 {%f3,%f4}, [%rd3+32];\n"
                    "$1 {%f5,%f6,%f7,%f8}, $2, $3, {%f1,%f2,%f3,%f4};\nst.global.v4.f32 [%rd4], {%f5,%f6,%f7,%f8};"));
    return load(with(text, shapes[s].opcode, a[shapes[s].a - 1], b[shapes[s].b - 1]));
}

typedef struct problem {
    uint32_t a[16][16], b[16][8], c[16][8], d[16][8];
} problem;

/* The layouts, as the PTX ISA words them: row and column of element i of a lane's fragment. */
static void scatter(int s, const problem *p, uint32_t words[32][10])
{
    memset(words, 0, 32 * 10 * 4);
    for (int l = 0; l < 32; l++) {
        int g = l >> 2, t = l & 3;
        if (shapes[s].t == TF32) {
            words[l][0] = p->a[g][t], words[l][1] = p->a[g + 8][t];
            if (shapes[s].k == 8)
                words[l][2] = p->a[g][t + 4], words[l][3] = p->a[g + 8][t + 4];
            words[l][4] = p->b[t][g];
            if (shapes[s].k == 8)
                words[l][5] = p->b[t + 4][g];
        } else {
            for (int i = 0; i < 2 * shapes[s].a; i++) {
                int row = (i & 2) ? g + 8 : g, col = 2 * t + (i & 1) + (i >= 4 ? 8 : 0);
                words[l][i / 2] |= p->a[row][col] << 16 * (i & 1);
            }
            for (int i = 0; i < 2 * shapes[s].b; i++)
                words[l][4 + i / 2] |= p->b[2 * t + (i & 1) + (i >= 2 ? 8 : 0)][g] << 16 * (i & 1);
        }
        for (int i = 0; i < 4; i++)
            words[l][6 + i] = p->c[i >= 2 ? g + 8 : g][2 * t + (i & 1)];
    }
}
static void execute(CUfunction f, int s, problem *p)
{
    static CUdeviceptr in, out;
    uint32_t words[32][10], got[32][4];
    if (!in)
        in = buffer(NULL, sizeof words), out = buffer(NULL, sizeof got);
    scatter(s, p, words);
    cu->cuMemcpyHtoD(in, words, sizeof words);
    CUresult r = launch(f, 1, 32, 0, in, out);
    cr_assert_eq(r, CUDA_SUCCESS, "%s", sim_report());
    fetch(got, out, sizeof got);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++)
            p->d[(i >= 2 ? 8 : 0) + (l >> 2)][2 * (l & 3) + (i & 1)] = got[l][i];
}

TestSuite(sim_matrix, .init = open80);

static uint32_t one_of(kind t)
{
    return t == F16 ? 0x3C00 : t == BF16 ? 0x3F80 : 0x3F800000;
}
static uint32_t small(kind t, int n) /* n in 0..255 exactly */
{
    union {
        float f;
        uint32_t u;
    } x = { .f = (float)n };
    uint32_t half = n == 0 ? 0 : ((x.u >> 23) - 127 + 15) << 10 | (x.u >> 13 & 0x3FF);
    return t == F16 ? half : t == BF16 ? x.u >> 16 : x.u;
}

Test(sim_matrix, every_element_has_its_place)
{
    for (int s = 0; s < SHAPES; s++) {
        CUfunction f = mma_kernel(s, HEAD80);
        kind t = shapes[s].t;
        for (int row = 0; row < 16; row++) /* one element of A, B numbered: the row of d must be b's row k */
            for (int k = 0; k < shapes[s].k; k++) {
                problem p = { 0 };
                p.a[row][k] = one_of(t);
                for (int j = 0; j < shapes[s].k; j++)
                    for (int n = 0; n < 8; n++)
                        p.b[j][n] = small(t, j * 8 + n + 1);
                execute(f, s, &p);
                for (int i = 0; i < 16; i++)
                    for (int n = 0; n < 8; n++) {
                        union {
                            uint32_t u;
                            float v;
                        } x = { .u = p.d[i][n] };
                        cr_assert_eq(x.v, i == row ? (float)(k * 8 + n + 1) : 0, "%s: a[%d][%d]: d[%d][%d] = %g", shapes[s].name, row, k, i,
                                     n, (double)x.v);
                    }
            }
        for (int n = 0; n < 8; n++)
            for (int row = 0; row < 16; row++) { /* c */
                problem p = { 0 };
                p.c[row][n] = 0x40490FDB;
                execute(f, s, &p);
                for (int i = 0; i < 16; i++)
                    for (int j = 0; j < 8; j++)
                        cr_assert_eq(p.d[i][j], i == row && j == n ? 0x40490FDBu : 0);
            }
    }
}

/* Integers of 8 bits: a register has four of a row or a column, one after the other; sums of 32 bits wrap. */
Test(sim_matrix, integers)
{
    static const char *const a[] = { "{%r1,%r2}", "{%r1,%r2,%r3,%r4}" }, *const b[] = { "{%r5}", "{%r5,%r6}" };
    int8_t x[16][32], y[32][8];
    uint32_t c[16][8], words[32][10], got[32][4], next = 1;
    for (int half = 0; half < 2; half++) {
        int k = half ? 16 : 32;
        char text[4096];
        snprintf(text, sizeof text, "%s%s", HEAD80,
                 KERNEL("mul.wide.u32 %rd3, %r0, 40; add.s64 %rd3, %rd1, %rd3; mul.wide.u32 %rd4, %r0, 16; add.s64 %rd4, %rd2, %rd4;\n"
                        "ld.global.v2.u32 {%r1,%r2}, [%rd3]; ld.global.v2.u32 {%r3,%r4}, [%rd3+8]; ld.global.v2.u32 {%r5,%r6}, [%rd3+16];\n"
                        "ld.global.v2.u32 {%r7,%r8}, [%rd3+24]; ld.global.v2.u32 {%r9,%r10}, [%rd3+32];\n"
                        "mma.sync.aligned.$1.row.col.s32.s8.s8.s32 {%r11,%r12,%r13,%r14}, $2, $3, {%r7,%r8,%r9,%r10};\n"
                        "st.global.v4.u32 [%rd4], {%r11,%r12,%r13,%r14};"));
        CUfunction f = load(with(text, half ? "m16n8k16" : "m16n8k32", a[!half], b[!half]));
        CUdeviceptr in = buffer(NULL, sizeof words), out = buffer(NULL, sizeof got);
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < 16 * 32; i++)
                x[i / 32][i % 32] = (int8_t)((next = next * 1664525u + 1013904223u) >> 24), y[i % 32][i / 32 % 8] = (int8_t)(next >> 16);
            for (int i = 0; i < 16 * 8; i++)
                c[i / 8][i % 8] = round & 1 ? 0x7FFFFFFFu - (uint32_t)i : (uint32_t)(i - 64);
            memset(words, 0, sizeof words);
            for (int l = 0; l < 32; l++) { /* as the PTX ISA words it */
                int g = l >> 2, t = l & 3;
                for (int i = 0; i < k / 2; i++)
                    words[l][i / 4] |= (uint32_t)(uint8_t)x[(i / 4) % 2 ? g + 8 : g][4 * t + i % 4 + (i >= 8 ? 16 : 0)] << 8 * (i % 4);
                for (int i = 0; i < k / 4; i++)
                    words[l][4 + i / 4] |= (uint32_t)(uint8_t)y[4 * t + i % 4 + (i >= 4 ? 16 : 0)][g] << 8 * (i % 4);
                for (int i = 0; i < 4; i++)
                    words[l][6 + i] = c[i >= 2 ? g + 8 : g][2 * t + (i & 1)];
            }
            cu->cuMemcpyHtoD(in, words, sizeof words);
            cr_assert_eq(launch(f, 1, 32, 0, in, out), CUDA_SUCCESS, "%s", sim_report());
            fetch(got, out, sizeof got);
            for (int l = 0; l < 32; l++)
                for (int i = 0; i < 4; i++) {
                    int row = (i >= 2 ? 8 : 0) + (l >> 2), n = 2 * (l & 3) + (i & 1);
                    uint32_t want = c[row][n];
                    for (int j = 0; j < k; j++)
                        want += (uint32_t)(x[row][j] * y[j][n]);
                    cr_assert_eq(got[l][i], want, "k%d: d[%d][%d] is %d instead of %d", k, row, n, (int)got[l][i], (int)want);
                }
        }
    }
}

/* ---- the slow model: one output at a time, every term an exact dyadic number ---- */

static long double value(kind t, uint32_t x, int *e)
{
    int mant = t == BF16 ? 7 : 10, bits = t == F16 ? 5 : 8;
    if (t == TF32)
        x >>= 13;
    int f = (int)(x & ((1u << mant) - 1)), ex = (int)(x >> mant & ((1u << bits) - 1)), bias = (1 << (bits - 1)) - 1;
    long double v = ldexpl(ex ? f + (1 << mant) : f, (ex ? ex : 1) - bias - mant);
    *e = (ex ? ex : 1) - bias;
    return x >> (mant + bits) ? -v : v;
}
static uint32_t slow(int s, const problem *p, int row, int n, int block, int fraction, int floor)
{
    kind t = shapes[s].t;
    union {
        float f;
        uint32_t u;
    } acc = { .u = p->c[row][n] };
    if (block > shapes[s].k)
        block = shapes[s].k;
    for (int k0 = 0; k0 < shapes[s].k; k0 += block) {
        long double term[17];
        int exp[17], terms = 0, top = floor, ea, eb, ec;
        for (int k = k0; k < k0 + block; k++) {
            long double x = value(t, p->a[row][k], &ea) * value(t, p->b[k][n], &eb);
            if (x == 0)
                continue;
            term[terms] = x, exp[terms++] = ea + eb;
        }
        if (acc.f != 0) {
            frexpf(acc.f, &ec);
            term[terms] = (long double)acc.f, exp[terms++] = ec - 1 < -126 ? -126 : ec - 1;
        }
        for (int i = 0; i < terms; i++)
            if (exp[i] > top)
                top = exp[i];
        __int128 sum = 0;
        for (int i = 0; i < terms; i++)
            sum += (__int128)truncl(ldexpl(term[i], fraction - top));
        long double v = (long double)sum; /* below 2^40: exact */
        int e;
        if (sum == 0) {
            acc.f = 0;
            continue;
        }
        frexpl(v, &e);
        int lsb = e - 24 + top - fraction < -149 ? -149 : e - 24 + top - fraction;
        v = ldexpl(truncl(ldexpl(v, top - fraction - lsb)), lsb);
        acc.f = v == 0 ? 0 : fabsl(v) >= 0x1p128L ? v > 0 ? INFINITY : -INFINITY : (float)v;
        if (v == 0 && sum < 0)
            acc.u = 0x80000000u;
        if (isinf(acc.f))
            return acc.u;
    }
    return acc.u;
}

static uint64_t state = 12345;
static uint32_t rnd(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}
static uint32_t finite_bits(kind t, int style)
{
    for (;;) {
        uint32_t x = rnd(), bits = t == TF32 ? 32 : 16, mant = t == F16 ? 10 : t == BF16 ? 7 : 23, e = t == F16 ? 31 : 255, bias = e >> 1;
        if (style == 1)
            x = (x & ~(e << mant)) | ((bias + rnd() % 8 - 4) & e) << mant; /* near one: cancellation */
        if (style == 2)
            x &= ~((e & ~3u) << mant); /* subnormals and next to them */
        if (style == 3)
            x |= (e - 1 - (rnd() & 1)) << mant; /* largest */
        x &= bits == 32 ? 0xFFFFFFFFu : 0xFFFFu;
        if ((x >> mant & e) != e)
            return x;
    }
}

static void arithmetic(const char *head, int block16, int block_tf, int fraction, int floor)
{
    for (int s = 0; s < SHAPES; s++) {
        CUfunction f = mma_kernel(s, head);
        kind t = shapes[s].t;
        for (int round = 0; round < 60; round++) {
            problem p = { 0 };
            int style = round % 5;
            for (int i = 0; i < 16; i++)
                for (int k = 0; k < shapes[s].k; k++)
                    p.a[i][k] = rnd() % 9 ? finite_bits(t, style == 4 ? (int)(rnd() % 4) : style) : 0;
            for (int k = 0; k < shapes[s].k; k++)
                for (int n = 0; n < 8; n++)
                    p.b[k][n] = rnd() % 9 ? finite_bits(t, style == 4 ? (int)(rnd() % 4) : style) : 0;
            for (int i = 0; i < 16; i++)
                for (int n = 0; n < 8; n++)
                    p.c[i][n] = rnd() % 5 ? finite_bits(TF32, (int)(rnd() % 3)) : 0;
            execute(f, s, &p);
            for (int i = 0; i < 16; i++)
                for (int n = 0; n < 8; n++) {
                    uint32_t want = slow(s, &p, i, n, t == TF32 ? block_tf : block16, fraction, floor);
                    cr_assert_eq(p.d[i][n], want, "%s, round %d: d[%d][%d] = %08x instead of %08x", shapes[s].name, round, i, n, p.d[i][n],
                                 want);
                }
        }
    }
}
Test(sim_matrix, arithmetic_of_sm_80)
{
    arithmetic(HEAD80, 8, 4, 24, -132);
}
static void open90(void)
{
    open_machine("sm_90");
}
TestSuite(sim_matrix90, .init = open90);
Test(sim_matrix90, arithmetic)
{
    arithmetic(HEAD90, 16, 8, 25, -133);
}

Test(sim_matrix, special_values)
{
    enum { INF = 0x7C00, NEG = 0xFC00, NAN16 = 0x7E00, ONE = 0x3C00 };
    /* clang-format off */
    static const struct { uint32_t a, b, c, want; } rows[] = {
        {INF, ONE, 0, 0x7F800000}, {NEG, ONE, 0, 0xFF800000}, {INF, 0, 0, 0x7FFFFFFF}, {INF, ONE, 0xFF800000, 0x7FFFFFFF}, {INF, ONE, 0x7F800000, 0x7F800000},
        {NAN16, ONE, 0, 0x7FFFFFFF}, {ONE, NAN16, 0, 0x7FFFFFFF}, {ONE, ONE, 0x7FC00000, 0x7FFFFFFF}, {0, 0, 0xFF800000, 0xFF800000}, {0x8000, ONE, 0x80000000, 0},
        {ONE, ONE, 0x33FFFFFF, 0x3F800000}, /* 1 + (2^-23 - a little): truncated, not rounded up */
        {ONE, 0xBC00, 0x3F800000, 0}, {0x7BFF, 0x7BFF, 0x7F7FFFFF, 0x7F7FFFFF},
    };
    /* clang-format on */
    CUfunction f = mma_kernel(0, HEAD80);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        problem p = { 0 };
        p.a[3][5] = rows[r].a, p.b[5][2] = rows[r].b, p.c[3][2] = rows[r].c;
        execute(f, 0, &p);
        cr_expect_eq(p.d[3][2], rows[r].want, "row %zu: %08x instead of %08x", r, p.d[3][2], rows[r].want);
        cr_expect_eq(p.d[4][2], rows[r].b == NAN16 ? 0x7FFFFFFF : 0, "row %zu spills: %08x", r, p.d[4][2]); /* 0 * NaN is NaN */
    }
}

Test(sim_matrix, movmatrix)
{
    uint16_t in[8][8];
    uint32_t got[32][2];
    for (int i = 0; i < 64; i++)
        in[i / 8][i % 8] = (uint16_t)(i * 257 + 3);
    CUdeviceptr a = buffer(in, sizeof in), b = buffer(NULL, sizeof got);
    run(HEAD80 KERNEL("mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd1, %rd3; mul.wide.u32 %rd4, %r0, 8; add.s64 %rd4, %rd2, %rd4;\n"
                      "ld.global.u32 %r1, [%rd3]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; movmatrix.sync.aligned.m8n8.trans.b16 "
                      "%r1, %r1; xor.b32 %r1, %r1, %r2;\nst.global.v2.u32 [%rd4], {%r2,%r1};"),
        1, 32, 0, a, b);
    fetch(got, b, sizeof got);
    for (int l = 0; l < 32; l++) {
        for (int h = 0; h < 2; h++)
            cr_assert_eq(got[l][0] >> 16 * h & 0xFFFF, in[2 * (l & 3) + h][l >> 2], "lane %d half %d", l, h);
        cr_assert_eq(got[l][1], 0, "lane %d: into the register that it comes from", l);
    }
    CUfunction f = load(HEAD80 KERNEL("setp.lt.u32 %p1, %r0, 16; @%p1 movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;"));
    cr_assert_eq(launch(f, 1, 32, 0, a, b), CUDA_ERROR_LAUNCH_FAILED, "half of a warp");
    cr_assert(strstr(sim_report(), "all 32 lanes"), "%s", sim_report());
}

Test(sim_matrix90, ldmatrix_and_stmatrix)
{
    for (int trans = 0; trans < 2; trans++)
        for (int n = 1; n <= 4; n *= 2) {
            static const char *const lists[] = { "", "{%r1}", "{%r1,%r2}", "", "{%r1,%r2,%r3,%r4}" };
            char count[4] = { 'x', (char)('0' + n) };
            uint16_t in[4][8][8];
            uint32_t got[32][4], back[128];
            for (int i = 0; i < 256; i++)
                ((uint16_t *)in)[i] = (uint16_t)(i * 257 + 3);
            CUdeviceptr a = buffer(in, sizeof in), b = buffer(NULL, 1024);
            /* 512 bytes to shared, ldmatrix, store the registers; stmatrix to the next 512, store those */
            run(with(HEAD90 ".shared .align 16 .b8 buf[1024];\n" KERNEL(
                         "mul.wide.u32 %rd3, %r0, 16; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\nld.global.v4.u32 "
                         "{%r5,%r6,%r7,%r8}, [%rd4];\n"
                         "mov.u32 %r9, buf; shl.b32 %r10, %r0, 4; add.u32 %r9, %r9, %r10; st.shared.v4.u32 [%r9], {%r5,%r6,%r7,%r8}; "
                         "st.shared.v4.u32 [%r9+512], {%r5,%r6,%r7,%r8};\nbar.sync 0;\n"
                         "mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
                         "ldmatrix.sync.aligned.m8n8.$1$2.shared.b16 $3, [%r9];\nst.global.v4.u32 [%rd5], {%r1,%r2,%r3,%r4};\n"
                         "stmatrix.sync.aligned.m8n8.$1$2.shared.b16 [%r9+512], $3;\nbar.sync 0;\n"
                         "ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [%r9+512]; st.global.v4.u32 [%rd5+512], {%r5,%r6,%r7,%r8};"),
                     count, trans ? ".trans" : "", lists[n]),
                1, 32, 0, a, b);
            fetch(got, b, 512);
            for (int l = 0; l < 32; l++)
                for (int m = 0; m < 4; m++)
                    for (int h = 0; h < 2; h++) {
                        int r = trans ? 2 * (l & 3) + h : l >> 2, c = trans ? l >> 2 : 2 * (l & 3) + h;
                        cr_assert_eq(got[l][m] >> 16 * h & 0xFFFF, m < n ? in[m][r][c] : 0, "x%d trans %d lane %d matrix %d half %d", n,
                                     trans, l, m, h);
                    }
            fetch(back, b + 512, 512);
            cr_assert(!memcmp(back, in, 512), "x%d trans %d: stmatrix is not the inverse", n, trans);
        }
}
