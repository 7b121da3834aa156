/* wgmma: where every element lives in registers and in shared memory under each swizzle, that the arithmetic is that of
 * mma.sync, that both timings agree, and that each way to use it wrongly is reported. */
#include "test_sim_machine.h"
#include "sim/mma.h"
#include <stdarg.h>

#define HEAD90A ".version 8.0\n.target sm_90a\n.address_size 64\n"
enum { IMAGE = 45056, SHARED = 49152 }; /* bytes of shared memory: that a test fills, and that the block has */

static void open90a(void) { open_machine("sm_90a"); }
TestSuite(sim_wgmma, .init = open90a);

/* ---- one product as a kernel ---- */

typedef struct tile { int span, mn, at, lead, stride; } tile; /* span: bytes of a swizzled row, 16 = none; at: offset in shared memory */
typedef struct shape { int n, bf16, a_shared; tile a, b; int minus_a, minus_b, scale, times; } shape;

static uint64_t code_of(int span) { return span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0; }
static uint64_t fields(tile t) { return (uint64_t)(t.lead >> 4) << 16 | (uint64_t)(t.stride >> 4) << 32 | code_of(t.span) << 62; }

/* The canonical layouts, as CUTLASS writes them, element by element: (mn, k) to a byte of the image. T = 8 elements. */
static int place(tile t, int mn, int k)
{
    int at, units = t.span / 16;
    if (!t.mn && t.span == 16) at = mn % 8 * 16 + mn / 8 * t.stride + k / 8 * t.lead + k % 8 * 2; /* ((8,m),(T,2)):((1T,SBO),(1,LBO)) */
    else if (!t.mn) at = mn % 8 * t.span + mn / 8 * t.stride + k * 2;                             /* ((8,m),(T,2)):((WT,SBO),(1,T)) */
    else if (t.span == 16) at = mn % 8 * 2 + mn / 8 * t.stride + k % 8 * 16 + k / 8 * t.lead;     /* ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO)) */
    else at = mn % (8 * units) * 2 + mn / (8 * units) * t.lead + k % 8 * t.span + k / 8 * t.stride; /* ((T,W,m),(8,k)):((1,T,LBO),(WT,SBO)) */
    at += t.at;
    if (t.span == 128) at ^= (at >> 7 & 7) << 4;
    if (t.span == 64) at ^= (at >> 7 & 3) << 4;
    if (t.span == 32) at ^= (at >> 7 & 1) << 4;
    return at;
}

static char text[1 << 20];
static size_t written;
static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *format, ...)
{
    va_list v;
    va_start(v, format);
    written += (size_t)vsnprintf(text + written, sizeof text - written, format, v);
    va_end(v);
    cr_assert(written < sizeof text);
}
static void list(const char *prefix, int from, int n)
{
    add("{");
    for (int k = 0; k < n; k++) add("%s%s%d", k ? "," : "", prefix, from + k);
    add("}");
}

/* Opens a kernel of two pointers that has filled its shared memory, through the generic proxy, from the first; %rd10 and %rd11
 * are the descriptors. Then A's registers %a0-3 and the accumulators %c0.. are loaded from what follows in the buffer. */
static void begin(const shape *s, const char *fence)
{
    written = 0;
    add(HEAD90A ".extern .shared .align 1024 .b8 sm[];\n.visible .entry k(.param .u64 pa, .param .u64 pb)\n{\n.reg .pred %%p<9>;\n.reg .b32 %%r<40>;\n.reg .b64 %%rd<20>;\n"
        ".reg .f32 %%c<260>;\n.reg .b32 %%a<8>;\n.reg .f32 %%f<300>;\n");
    add("ld.param.u64 %%rd1, [pa];\nld.param.u64 %%rd2, [pb];\nmov.u32 %%r0, %%tid.x;\nand.b32 %%r10, %%r0, 127;\nshr.u32 %%r11, %%r0, 7;\n");
    add("mul.wide.u32 %%rd3, %%r10, 16;\nadd.s64 %%rd4, %%rd1, %%rd3;\nmov.u32 %%r2, sm;\nshl.b32 %%r3, %%r10, 4;\nadd.u32 %%r2, %%r2, %%r3;\nsetp.ne.u32 %%p1, %%r11, 0;\n"
        "@%%p1 bra FILLED;\nmov.u32 %%r4, 0;\nFILL:\nld.global.v4.u32 {%%r5,%%r6,%%r7,%%r8}, [%%rd4];\nst.shared.v4.u32 [%%r2], {%%r5,%%r6,%%r7,%%r8};\n"
        "add.s64 %%rd4, %%rd4, 2048;\nadd.u32 %%r2, %%r2, 2048;\nadd.u32 %%r4, %%r4, 2048;\nsetp.lt.u32 %%p1, %%r4, %d;\n@%%p1 bra FILL;\nFILLED:\n%s\nbar.sync 0;\n", IMAGE, fence);
    add("mov.u64 %%rd5, sm;\nshr.u64 %%rd5, %%rd5, 4;\nadd.s64 %%rd10, %%rd5, 0x%llx;\nadd.s64 %%rd11, %%rd5, 0x%llx;\n",
        (unsigned long long)(fields(s->a) + (uint64_t)(s->a.at >> 4)), (unsigned long long)(fields(s->b) + (uint64_t)(s->b.at >> 4)));
    add("mul.wide.u32 %%rd3, %%r0, 16;\nadd.s64 %%rd4, %%rd1, %%rd3;\nadd.s64 %%rd4, %%rd4, %d;\nld.global.v4.b32 {%%a0,%%a1,%%a2,%%a3}, [%%rd4];\n", IMAGE);
    add("mul.wide.u32 %%rd3, %%r0, 4;\nadd.s64 %%rd6, %%rd1, %%rd3;\nadd.s64 %%rd6, %%rd6, %d;\nadd.s64 %%rd7, %%rd2, %%rd3;\n", IMAGE + 4096);
    for (int k = 0; k < s->n / 2; k++) add("ld.global.f32 %%c%d, [%%rd6+%d];\n", k, k * 1024);
}
static void product(const shape *s, const char *scale)
{
    const char *t = s->bf16 ? "bf16" : "f16";
    add("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s ", s->n, t, t);
    list("%c", 0, s->n / 2);
    if (s->a_shared) add(", %%rd10, %%rd11, %s, %d, %d, %d, %d;\n", scale, s->minus_a ? -1 : 1, s->minus_b ? -1 : 1, s->a.mn, s->b.mn);
    else add(", {%%a0,%%a1,%%a2,%%a3}, %%rd11, %s, %d, %d, %d;\n", scale, s->minus_a ? -1 : 1, s->minus_b ? -1 : 1, s->b.mn);
}
static const char *end(const shape *s)
{
    for (int k = 0; k < s->n / 2; k++) add("st.global.f32 [%%rd7+%d], %%c%d;\n", k * 1024, k);
    add("ret;\n}\n");
    return text;
}
#define FENCE "fence.proxy.async.shared::cta;"
#define ISSUE(s, scale) (add("wgmma.fence.sync.aligned;\n"), product(s, scale))
#define WAIT add("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n")

typedef struct numbers { uint16_t a[64][16], b[16][256]; uint32_t c[64][256]; } numbers;
typedef struct memory { uint8_t image[IMAGE]; uint32_t a[256][4], c[128][256]; } memory;

static void fill(memory *m, const shape *s, const numbers *x)
{
    memset(m, 0, sizeof *m);
    for (int row = 0; row < 64 && s->a_shared; row++) for (int k = 0; k < 16; k++) memcpy(m->image + place(s->a, row, k), &x->a[row][k], 2);
    for (int n = 0; n < s->n; n++) for (int k = 0; k < 16; k++) memcpy(m->image + place(s->b, n, k), &x->b[k][n], 2);
    for (int t = 0; t < 128; t++) {
        int w = t / 32, g = t % 32 / 4, q = t % 4;
        for (int i = 0; i < 8; i++) m->a[t][i / 2] |= (uint32_t)x->a[16 * w + g + 8 * (i >> 1 & 1)][2 * q + (i & 1) + 8 * (i >> 2)] << 16 * (i & 1);
        for (int i = 0; i < s->n / 2; i++) m->c[i][t] = x->c[16 * w + g + 8 * (i >> 1 & 1)][8 * (i >> 2) + 2 * q + (i & 1)];
    }
}
static void fetch_d(CUdeviceptr from, const shape *s, uint32_t d[64][256])
{
    static uint32_t raw[128][256];
    fetch(raw, from, sizeof raw);
    for (int t = 0; t < 128; t++)
        for (int i = 0; i < s->n / 2; i++) d[16 * (t / 32) + t % 32 / 4 + 8 * (i >> 1 & 1)][8 * (i >> 2) + 2 * (t % 4) + (i & 1)] = raw[i][t];
}
/* The product by the slow arithmetic, whose layouts are plain. */
static void expect(const shape *s, const numbers *x, int times, uint32_t d[64][256])
{
    static sim_product p;
    for (int row = 0; row < 64; row += 16) {
        p.type = s->bf16 ? T_BF16 : T_F16, p.n = (uint32_t)s->n;
        memcpy(p.b, x->b, sizeof p.b);
        memcpy(p.a, x->a[row], sizeof p.a);
        memcpy(p.c, x->c[row], sizeof p.c);
        if (!s->scale) memset(p.c, 0, sizeof p.c);
        for (int k = 0; k < 16; k++) for (int n = 0; n < s->n; n++) p.b[k][n] ^= s->minus_a != s->minus_b ? 0x8000 : 0;
        for (int k = 0; k < times; k++) sim_product_slow(&p, sim_arch_find("sm_90a"));
        memcpy(d[row], p.c, sizeof p.c);
    }
}

static uint32_t seed = 1;
static uint32_t any(void) { return seed = seed * 1664525u + 1013904223u, seed >> 8 ^ seed << 16; }
static void randomize(const shape *s, numbers *x, int special)
{
    for (int k = 0; k < 64 * 16; k++) x->a[k / 16][k % 16] = (uint16_t)any();
    for (int k = 0; k < 256 * 16; k++) x->b[k / 256][k % 256] = (uint16_t)any();
    for (int k = 0; k < 64 * 256; k++) x->c[k / 256][k % 256] = any() & 0x80FFFFFF;
    for (int k = 0; k < 64 * 256; k++) x->c[k / 256][k % 256] += 0x3F000000;
    if (special) return;
    uint16_t high = s->bf16 ? 0x4000 : 0x4000, low = s->bf16 ? 0x3C00 : 0x2000; /* finite, near one */
    for (int k = 0; k < 64 * 16; k++) x->a[k / 16][k % 16] = (uint16_t)((x->a[k / 16][k % 16] & ~high & 0xBFFF) | low);
    for (int k = 0; k < 256 * 16; k++) x->b[k / 256][k % 256] = (uint16_t)((x->b[k / 256][k % 256] & ~high & 0xBFFF) | low);
}

/* Runs the shape in both timings and compares every bit. */
static void agree(const shape *s, const numbers *x, const char *what)
{
    static memory m;
    static uint32_t got[64][256], want[64][256];
    fill(&m, s, x);
    begin(s, FENCE);
    ISSUE(s, s->scale ? "1" : "0");
    for (int k = 1; k < s->times; k++) product(s, "1");
    WAIT;
    CUfunction f = load(end(s));
    expect(s, x, s->times ? s->times : 1, want);
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        sim_set_options(&(sim_options){.async = (sim_async)async});
        CUresult r = launch(f, 1, 128, SHARED, a, b);
        cr_assert_eq(r, CUDA_SUCCESS, "%s, timing %d: %s", what, async, sim_report());
        fetch_d(b, s, got);
        for (int row = 0; row < 64; row++)
            for (int n = 0; n < s->n; n++)
                cr_assert_eq(got[row][n], want[row][n], "%s, timing %d: d[%d][%d] is %08x instead of %08x", what, async, row, n, got[row][n], want[row][n]);
        cu->cuMemFree(a), cu->cuMemFree(b);
    }
}

/* A tile that fits: rows of the pattern side by side, groups of eight behind one another, some room between. */
static tile tile_of(int span, int mn, int extent, int at)
{
    tile t = {.span = span, .mn = mn, .at = at, .lead = 16};
    int units = span / 16;
    if (!mn && span == 16) t.lead = 128, t.stride = 256 + 16;
    else if (!mn) t.stride = 8 * span + (span == 128 ? 1024 : 0);
    else if (span == 16) t.stride = 128, t.lead = extent / 8 * 128 + 32;
    else t.stride = 8 * span, t.lead = 2 * 8 * span * (units > 2 ? 1 : 2);
    return t;
}

Test(sim_wgmma, every_swizzle_and_major_of_both_operands)
{
    static const int spans[] = {16, 32, 64, 128}, columns[] = {8, 24, 64, 104};
    static numbers x;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            for (int mn = 0; mn < 4; mn++) {
                shape s = {.n = columns[(a + b) & 3], .bf16 = mn & 1, .a_shared = 1, .scale = 1};
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
        shape s = {.n = n, .bf16 = n >> 3 & 1, .scale = n != 48, .minus_a = n == 16, .minus_b = n == 24, .times = n == 32 ? 3 : 1, .b = tile_of(128, 1, n, 0)};
        if (n == 40) s.minus_a = s.minus_b = 1;
        randomize(&s, &x, 0);
        agree(&s, &x, "A in registers");
    }
}

/* The start moves along k inside of a swizzled row: added before the swizzle. */
Test(sim_wgmma, steps_along_k_inside_of_a_row)
{
    static numbers x;
    for (int step = 0; step < 4; step++) {
        shape s = {.n = 64, .a_shared = 1, .scale = 1};
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
        shape s = {.n = 32, .bf16 = round & 1, .a_shared = round >> 1 & 1, .scale = 1, .a = tile_of(32, 0, 64, 0), .b = tile_of(32, round >> 2, 32, 8192)};
        randomize(&s, &x, 1);
        agree(&s, &x, "special values");
    }
}

/* The compiler copies accumulators in flight with movs; a product may go on from the copies, and both are delivered. */
Test(sim_wgmma, movs_of_accumulators_in_flight)
{
    static numbers x;
    static memory m;
    static uint32_t got[64][256], want[64][256];
    shape s = {.n = 16, .a_shared = 1, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384)}, first = s;
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    for (int copy = 0; copy < 2; copy++) {
        begin(&s, FENCE);
        ISSUE(&s, "1");
        for (int k = 0; k < 8; k++) add("mov.f32 %%f%d, %%c%d;\n", k, k); /* the first product's result stays in %f */
        for (int k = 0; k < 8 && copy; k++) add("mov.f32 %%f%d, %%c%d;\nmov.f32 %%c%d, %%f%d;\n", 8 + k, k, k, 8 + k);
        product(&s, "1");
        WAIT;
        for (int k = 0; k < 8 && !copy; k++) add("mov.f32 %%c%d, %%f%d;\n", k, k);
        CUfunction f = load(end(&s));
        expect(&first, &x, copy ? 2 : 1, want);
        for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
            CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
            sim_set_options(&(sim_options){.async = (sim_async)async});
            cr_assert_eq(launch(f, 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
            fetch_d(b, &s, got);
            for (int row = 0; row < 64; row++) for (int n = 0; n < 16; n++) cr_assert_eq(got[row][n], want[row][n], "copy %d timing %d [%d][%d]", copy, async, row, n);
        }
    }
}

/* Groups end in order, and only as many as the wait says. */
Test(sim_wgmma, a_wait_leaves_the_newest_groups)
{
    static numbers x;
    static memory m;
    static uint32_t got[64][256], want[64][256];
    shape s = {.n = 16, .a_shared = 1, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384)};
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    begin(&s, FENCE);
    for (int k = 0; k < 8; k++) add("mov.f32 %%f%d, 0f00000000;\n", 20 + k);
    ISSUE(&s, "1");
    add("wgmma.commit_group.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 ");
    list("%f", 20, 8);
    add(", %%rd10, %%rd11, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n");
    for (int k = 0; k < 8; k++) add("st.global.f32 [%%rd7+%d], %%c%d;\n", k * 1024, k);
    add("wgmma.wait_group.sync.aligned 0;\n");
    CUfunction f = load(end(&s));
    expect(&s, &x, 1, want);
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        sim_set_options(&(sim_options){.async = (sim_async)async});
        cr_assert_eq(launch(f, 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
        fetch_d(b, &s, got);
        for (int row = 0; row < 64; row++) for (int n = 0; n < 16; n++) cr_assert_eq(got[row][n], want[row][n]);
    }
}

Test(sim_wgmma, the_same_bits_as_mma_sync)
{
    static numbers x;
    static memory m;
    static uint32_t raw[128][256];
    for (int round = 0; round < 24; round++) {
        shape s = {.n = 8, .bf16 = round & 1, .scale = 1, .b = {.span = 16, .at = 2048, .lead = 128, .stride = 256}};
        const char *t = s.bf16 ? "bf16" : "f16";
        randomize(&s, &x, round >= 12);
        fill(&m, &s, &x);
        begin(&s, FENCE);
        for (int k = 0; k < 4; k++) add("mov.f32 %%f%d, %%c%d;\n", k, k);
        add("and.b32 %%r20, %%r0, 31;\nshl.b32 %%r20, %%r20, 2;\nmov.u32 %%r21, sm;\nadd.u32 %%r21, %%r21, %%r20;\n" /* row g, columns 2t: 16 g + 4 t */
            "ld.shared.b32 %%r22, [%%r21+2048];\nld.shared.b32 %%r23, [%%r21+2176];\n"
            "mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 {%%f0,%%f1,%%f2,%%f3}, {%%a0,%%a1,%%a2,%%a3}, {%%r22,%%r23}, {%%f0,%%f1,%%f2,%%f3};\n", t, t);
        for (int k = 0; k < 4; k++) add("st.global.f32 [%%rd7+%d], %%f%d;\n", (8 + k) * 1024, k);
        ISSUE(&s, "1");
        WAIT;
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, sizeof raw);
        cr_assert_eq(launch(load(end(&s)), 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
        fetch(raw, b, 16 * 1024);
        for (int k = 0; k < 4; k++) for (int l = 0; l < 128; l++) cr_assert_eq(raw[k][l], raw[8 + k][l], "round %d register %d thread %d: %08x, mma.sync %08x", round, k, l, raw[k][l], raw[8 + k][l]);
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
            if ((v & top) == top) v &= 0x3FFF;
            if (kind < 3) v = (uint16_t)((v & 0x83FF) | (p.type == T_F16 ? 0x2C00 + (any() & 0x1C00) : 0x3C00)); /* near one */
            if (kind == 3) v &= 0x9FFF; /* tiny */
            if (kind == 4 && any() % 3) v &= 0x8000;
            if (kind == 5 && k % 16 < 14) v &= 0x8000; /* whole rows and columns of zeros, with signs */
            *to = v;
        }
        for (int k = 0; k < 16 * (int)p.n; k++) {
            uint32_t v = any() ^ any() << 16;
            if ((v & 0x7F800000) == 0x7F800000) v &= 0x3FFFFFFF;
            if (kind < 2) v = (v & 0x80FFFFFF) | 0x3F000000;
            if (kind == 6) v &= any() & 1 ? 0x80000000 : 0x81FFFFFF;
            p.c[k / (int)p.n][k % (int)p.n] = v;
        }
        q = p;
        sim_product_slow(&q, arch);
        if (!sim_product_fast(&p, arch)) continue;
        fast++;
        for (int k = 0; k < 16; k++) for (uint32_t n = 0; n < p.n; n++) cr_assert_eq(p.c[k][n], q.c[k][n], "round %d kind %d [%d][%u]: %08x, slow %08x", round, kind, k, n, p.c[k][n], q.c[k][n]);
    }
    cr_assert(fast > 300, "the fast way was taken %d times", fast);
}

/* ---- what is reported ---- */

typedef enum part { FULL, NO_FENCE, READ_EARLY, READ_EARLY_UNCOMMITTED, READ_EARLY_LATER_GROUP, WRITE_EARLY, WRITE_A, TOUCHED, READ_SINCE, OUTSTANDING, MISSING_WARP, MISSING_FIRST_WARP,
    MISSING_LANE, OTHER_DESCRIPTOR, LANES_DIFFER, OTHER_PC, OVERLAP, A_IN_FLIGHT, OWN_STORE, NO_BARRIER_AFTER, WITH_BARRIER_AFTER, COPY_IN_FLIGHT } part;

static const char *defective(part d, shape s, const char *fence)
{
    begin(&s, fence);
    if (d == MISSING_WARP || d == MISSING_FIRST_WARP) add("shr.u32 %%r20, %%r0, 5;\nsetp.eq.u32 %%p2, %%r20, %d;\n@%%p2 bra OVER;\n", d == MISSING_WARP ? 3 : 0);
    if (d == MISSING_LANE) add("setp.eq.u32 %%p2, %%r0, 37;\n@%%p2 bra OVER;\n");
    if (d == OTHER_DESCRIPTOR) add("cvt.u64.u32 %%rd12, %%r0;\nshr.u64 %%rd12, %%rd12, 6;\nshl.b64 %%rd12, %%rd12, 6;\nadd.s64 %%rd11, %%rd11, %%rd12;\n");
    if (d == LANES_DIFFER) add("cvt.u64.u32 %%rd12, %%r0;\nadd.s64 %%rd11, %%rd11, %%rd12;\n");
    if (d == COPY_IN_FLIGHT) add("mov.u32 %%r21, sm;\ncp.async.ca.shared.global [%%r21+16384], [%%rd1], 4;\n");
    if (d == OTHER_PC) {
        add("wgmma.fence.sync.aligned;\nsetp.lt.u32 %%p2, %%r0, 64;\n@%%p2 bra LEFT;\n");
        product(&s, "1");
        add("bra.uni BOTH;\nLEFT:\n");
        product(&s, "1");
        add("BOTH:\n");
    } else if (d != NO_FENCE) add("wgmma.fence.sync.aligned;\n");
    if (d == TOUCHED) add("add.f32 %%c3, %%c3, %%c3;\n");
    if (d != OTHER_PC) product(&s, "1");
    if (d == WRITE_A) add("add.u32 %%a1, %%r0, 1;\n");
    if (d == WRITE_EARLY) add("mov.f32 %%f1, 0f3F800000;\nadd.f32 %%c2, %%f1, %%f1;\n");
    if (d == OVERLAP) add("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%c0,%%c1,%%c2,%%c3}, %%rd10, %%rd11, 1, 1, 1, 0, 0;\n");
    if (d == A_IN_FLIGHT) add("mov.b32 %%a5, %%c1;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%c10,%%c11,%%c12,%%c13}, {%%a0,%%a5,%%a2,%%a3}, %%rd11, 0, 1, 1, 0;\n");
    if (d != READ_EARLY_UNCOMMITTED) add("wgmma.commit_group.sync.aligned;\n");
    if (d == READ_EARLY) add("mov.f32 %%f1, %%c1;\nadd.f32 %%f2, %%f1, %%f1;\n"); /* of a copy */
    if (d == READ_EARLY_UNCOMMITTED) add("wgmma.wait_group.sync.aligned 0;\nadd.f32 %%f2, %%c1, %%c1;\n");
    if (d == READ_EARLY_LATER_GROUP) add("wgmma.wait_group.sync.aligned 1;\nadd.f32 %%f2, %%c1, %%c1;\n");
    if (d == OWN_STORE) add("shl.b32 %%r21, %%r0, 2;\nmov.u32 %%r22, sm;\nadd.u32 %%r21, %%r21, %%r22;\nst.shared.u32 [%%r21+16384], %%r0;\n");
    if (d != OUTSTANDING) add("wgmma.wait_group.sync.aligned 0;\n");
    if (d == NO_BARRIER_AFTER || d == WITH_BARRIER_AFTER)
        add("%sshl.b32 %%r21, %%r0, 2;\nmov.u32 %%r22, sm;\nadd.u32 %%r21, %%r21, %%r22;\nst.shared.u32 [%%r21+16384], %%r0;\n", d == WITH_BARRIER_AFTER ? "bar.sync 0;\n" : "");
    if (d == READ_SINCE) {
        add("add.f32 %%f2, %%c1, %%c1;\n");
        product(&s, "1");
        add("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    }
    if (d == MISSING_WARP || d == MISSING_FIRST_WARP || d == MISSING_LANE) add("OVER:\n");
    if (d == OUTSTANDING) return add("ret;\n}\n"), text;
    return end(&s);
}

static shape plain(int a_shared)
{
    return (shape){.n = 16, .a_shared = a_shared, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384)};
}

/* In both timings and all orders of the warps: reported with these words, or with NULL fine. */
static void reported(part d, shape s, const char *fence, unsigned threads, CUresult code, const char *words)
{
    static memory m;
    static numbers x;
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    CUfunction f = load(defective(d, s, fence));
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++)
        for (int order = SIM_IN_ORDER; order <= SIM_RANDOM; order++) {
            CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
            sim_set_options(&(sim_options){.async = (sim_async)async, .schedule = (sim_schedule)order, .seed = 3});
            CUresult r = launch(f, 1, threads, SHARED, a, b);
            if (!words) cr_assert_eq(r, CUDA_SUCCESS, "defect %d, timing %d: %s", d, async, sim_report());
            else cr_assert(r == code && strstr(sim_report(), words), "defect %d, timing %d, order %d: %d, not \"%s\":\n%s", d, async, order, r, words, sim_report());
            cu->cuMemFree(a), cu->cuMemFree(b);
        }
}
#define REPORTED(d, words) reported(d, plain(1), FENCE, 128, CUDA_ERROR_LAUNCH_FAILED, words)

Test(sim_wgmma, registers_in_flight)
{
    REPORTED(FULL, NULL);
    REPORTED(READ_EARLY, "register %f1 is read, but it is an accumulator of the wgmma");
    REPORTED(READ_EARLY_UNCOMMITTED, "register %c1 is read");
    REPORTED(READ_EARLY_LATER_GROUP, "register %c1 is read");
    REPORTED(WRITE_EARLY, "register %c2 is written");
    REPORTED(OVERLAP, "the accumulator overlaps");
    REPORTED(OUTSTANDING, "the warp exits while this wgmma is in flight");
    reported(WRITE_A, plain(0), FENCE, 128, CUDA_ERROR_LAUNCH_FAILED, "register %a1 is written, but a wgmma in flight reads it as its A");
    reported(A_IN_FLIGHT, plain(0), FENCE, 128, CUDA_ERROR_LAUNCH_FAILED, "register %a5 is read as A");
}

Test(sim_wgmma, fences_between_registers_and_products)
{
    REPORTED(NO_FENCE, "the first wgmma has no wgmma.fence before it");
    REPORTED(TOUCHED, "register %c3 was written after the last wgmma.fence");
    REPORTED(READ_SINCE, "register %c1 was read after the last wgmma.fence");
}

Test(sim_wgmma, four_warps_execute_the_same)
{
    REPORTED(MISSING_WARP, "without this instruction");
    REPORTED(MISSING_FIRST_WARP, "without this instruction");
    REPORTED(OTHER_DESCRIPTOR, "different descriptors");
    REPORTED(LANES_DIFFER, "differs between the lanes");
    REPORTED(OTHER_PC, "execute different instructions");
    reported(FULL, plain(1), FENCE, 64, CUDA_ERROR_LAUNCH_FAILED, "needs a warp group of four whole warps");
    reported(FULL, plain(1), FENCE, 96, CUDA_ERROR_LAUNCH_FAILED, "needs a warp group of four whole warps");
    REPORTED(MISSING_LANE, "needs all 32 lanes of each warp");
}

Test(sim_wgmma, descriptors)
{
    shape s = plain(1);
    static memory m;
    static numbers x;
    randomize(&s, &x, 0);
    static const struct { uint64_t plus; CUresult code; const char *words; } rows[] = {
        {IMAGE >> 4, CUDA_ERROR_LAUNCH_FAILED, "is read that nobody wrote"},
        {SHARED >> 4, CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds"},
        {8, CUDA_ERROR_MISALIGNED_ADDRESS, "starts at shared offset 128, inside of the swizzle pattern of 512 bytes"},
        {1u << 14, CUDA_ERROR_LAUNCH_FAILED, "has bits outside of its fields: 0x4000"},
        {1ull << 49, CUDA_ERROR_LAUNCH_FAILED, "base offset 1, which is not simulated"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        s = plain(1), s.b.at = 0;
        memset(&m, 0, sizeof m);
        begin(&s, FENCE);
        add("add.s64 %%rd11, %%rd11, %llu;\n", (unsigned long long)rows[r].plus);
        ISSUE(&s, "1");
        WAIT;
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        fails(end(&s), 128, SHARED, a, b, rows[r].code, rows[r].words);
    }
}

Test(sim_wgmma, shared_memory_that_is_in_use)
{
    REPORTED(OWN_STORE, "which an asynchronous operation still reads");
    REPORTED(NO_BARRIER_AFTER, "race in shared memory");
    REPORTED(WITH_BARRIER_AFTER, NULL);
    REPORTED(COPY_IN_FLIGHT, "in flight");
}

Test(sim_wgmma, stores_need_a_proxy_fence)
{
    static const struct { const char *fence, *words; } rows[] = {
        {"fence.proxy.async;", NULL}, {"fence.proxy.async.shared::cta;", NULL}, {"fence.proxy.async.shared::cluster;", NULL},
        {"", "stored to without a fence"}, {"fence.proxy.async.global;", "stored to without a fence"}, {"fence.acq_rel.cta;", "stored to without a fence"},
        {"bar.sync 0;\nfence.proxy.async;", NULL}, /* the second barrier orders it */
        {"and.b32 %r30, %r0, 31;\nsetp.eq.u32 %p3, %r30, 0;\n@%p3 fence.proxy.async;", "stored to without a fence"}, /* one lane's is not the others' */
        {"setp.lt.u32 %p3, %r0, 32;\n@%p3 fence.proxy.async;", "stored to without a fence"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) reported(FULL, plain(1), rows[r].fence, 128, CUDA_ERROR_LAUNCH_FAILED, rows[r].words);
    /* the same for copies that have arrived and for matrices: %rd1's first bytes again, where B lies */
    static const struct { const char *store, *fence, *words; } others[] = {
        {"cp.async.ca.shared.global [%r21], [%rd1], 4;\ncp.async.wait_all;", "", "stored to without a fence"},
        {"cp.async.ca.shared.global [%r21], [%rd1], 4;\ncp.async.wait_all;", "fence.proxy.async;", NULL},
        {"cp.async.ca.shared.global [%r21], [%rd1], 4;\nfence.proxy.async;\ncp.async.wait_all;", "", "stored to without a fence"}, /* it arrives with the wait */
        {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r22], {%r0};", "", "stored to without a fence"},
        {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r22], {%r0};", "fence.proxy.async.shared::cta;", NULL},
    };
    for (size_t r = 0; r < sizeof others / sizeof *others; r++) {
        char store[512];
        snprintf(store, sizeof store, "fence.proxy.async;\nbar.sync 0;\nshl.b32 %%r21, %%r10, 2;\nmov.u32 %%r22, sm;\nadd.u32 %%r22, %%r22, 16384;\nadd.u32 %%r21, %%r21, %%r22;\nadd.u32 %%r22, %%r22, %%r3;\n%s\n%s",
                 others[r].store, others[r].fence);
        reported(FULL, plain(1), store, 128, CUDA_ERROR_LAUNCH_FAILED, others[r].words);
    }
    for (int late = 0; late < 2; late++) { /* after the barrier, it is too late for what other warps read */
        static memory m;
        shape s = plain(1);
        begin(&s, "");
        add(late ? "fence.proxy.async;\n" : "fence.proxy.async;\nbar.sync 0;\n");
        ISSUE(&s, "1");
        WAIT;
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        CUresult r = launch(load(end(&s)), 1, 128, SHARED, a, b);
        cr_assert_eq(r, late ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS, "%s", sim_report());
    }
}

/* Without checks, a missing wait shows as a difference, and late reads of shared memory as another. */
Test(sim_wgmma, lazy_products_come_as_late_as_they_may)
{
    static memory m;
    static numbers x;
    static uint32_t got[2][64][256];
    shape s = plain(1);
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    for (int defect = 0; defect < 2; defect++) {
        CUfunction f;
        if (defect) f = load(defective(OWN_STORE, s, FENCE));
        else {
            begin(&s, FENCE);
            ISSUE(&s, "1");
            f = load(end(&s));
        }
        for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
            CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
            sim_set_options(&(sim_options){.async = (sim_async)async, .unchecked = 1});
            cr_assert_eq(launch(f, 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
            fetch_d(b, &s, got[async]);
        }
        int differ = 0;
        for (int row = 0; row < 64; row++)
            for (int n = 0; n < 16; n++) {
                differ += got[SIM_EAGER][row][n] != got[SIM_LAZY][row][n];
                if (!defect) cr_assert_eq(got[SIM_LAZY][row][n], 0xFFFFFFFF);
            }
        cr_expect(differ >= (defect ? 100 : 1024), "%d of 1024 differ", differ);
    }
}

Test(sim_wgmma, only_where_it_exists)
{
    static const struct { const char *head, *line, *words; } rows[] = {
        {HEAD90, "wgmma.fence.sync.aligned;", "wgmma exists on sm_90a only"},
        {HEAD80, "wgmma.fence.sync.aligned;", "wgmma exists on sm_90a only"},
        {".version 8.8\n.target sm_100a\n.address_size 64\n", "wgmma.fence.sync.aligned;", "wgmma exists on sm_90a only"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 0;", "this shape of wgmma"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1;", "this shape of wgmma"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f1,%f2}, %rd1, %rd2, 1, 1, 1, 0, 0;", "of these types"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2}, %rd1, %rd2, 1, 1, 1, 0, 0;", "wrong number of accumulator registers"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 2, 1, 0, 0;", "must be 1 or -1"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 2;", "must be 0 or 1"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char ptx[17000];
        CUlibrary l;
        snprintf(ptx, sizeof ptx, "%s%s", rows[r].head, with(KERNEL("$1"), rows[r].line, "", ""));
        cr_assert_eq(cu->cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_PTX, "row %zu", r);
        cr_assert(strstr(cu->detail(), rows[r].words), "row %zu: %s", r, cu->detail());
    }
}

/* ---- warp groups without products ---- */

static const char *registers(const char *bounds, const char *text_of_groups)
{
    written = 0;
    add(HEAD90A ".visible .entry k(.param .u64 pa, .param .u64 pb)\n%s\n{\n.reg .pred %%p<9>;\n.reg .b32 %%r<9>;\nmov.u32 %%r0, %%tid.x;\nshr.u32 %%r1, %%r0, 7;\nsetp.eq.u32 %%p1, %%r1, 1;\nsetp.eq.u32 %%p2, %%r1, 2;\n", bounds);
    add("%s\nret;\n}\n", text_of_groups);
    return text;
}

Test(sim_wgmma, registers_move_between_warp_groups)
{
#define INC "setmaxnreg.inc.sync.aligned.u32 "
#define DEC "setmaxnreg.dec.sync.aligned.u32 "
#define MEET "add.u32 %r2, %r1, 1;\nbar.sync %r2, 128;\n" /* of the warp group */
    static const char wide[] = ".maxntid 384, 1, 1\n.minnctapersm 1"; /* 168 each: 504 for three groups */
    static const struct { const char *bounds, *body; CUresult code; const char *words; } rows[] = {
        {wide, "@%p1 bra TAKE;\n@%p2 bra TAKE;\n" DEC "24;\nret;\nTAKE:\n" INC "240;", CUDA_SUCCESS, ""},
        {wide, "@%p1 bra TAKE;\n@%p2 bra TAKE;\n" DEC "24;\nret;\nTAKE:\n" INC "240;\n" MEET DEC "64;\n" MEET INC "240;", CUDA_SUCCESS, ""},
        {wide, "@%p1 bra TAKE;\n@%p2 bra TAKE;\n" DEC "32;\nret;\nTAKE:\n" INC "240;", CUDA_ERROR_LAUNCH_TIMEOUT, "waits for 72 more registers per thread, but its block has given back"},
        {wide, INC "176;", CUDA_ERROR_LAUNCH_TIMEOUT, "deadlock"},
        {wide, INC "160;\n" MEET DEC "160;", CUDA_SUCCESS, ""}, /* ptxas gives no more at the launch than the largest .inc */
        {wide, DEC "176;", CUDA_ERROR_LAUNCH_FAILED, "setmaxnreg.dec to 176 registers, but a thread of this warp has 168"},
        {wide, DEC "96;\n" MEET DEC "88;\n" MEET INC "96;\n" MEET INC "64;", CUDA_ERROR_LAUNCH_FAILED, "setmaxnreg.inc to 64 registers, but a thread of this warp has 96"},
        {wide, DEC "96;\n" DEC "88;", CUDA_ERROR_LAUNCH_FAILED, "have not met since the one before"},
        {".maxnreg 128", DEC "136;", CUDA_ERROR_LAUNCH_FAILED, "a thread of this warp has 128"},
        {".maxntid 384, 1, 1\n.minnctapersm 2", DEC "88;", CUDA_ERROR_LAUNCH_FAILED, "a thread of this warp has 80"},
        {".maxntid 384, 1, 1", DEC "24;", CUDA_ERROR_LAUNCH_FAILED, "setmaxnreg needs a kernel with"},
        {"", DEC "24;", CUDA_ERROR_LAUNCH_FAILED, "setmaxnreg needs a kernel with"},
        {wide, "setp.lt.u32 %p3, %r0, 32;\n@%p3 bra OVER;\n" DEC "24;\nOVER:\n", CUDA_ERROR_LAUNCH_FAILED, "without this instruction"},
        {wide, "setp.lt.u32 %p3, %r0, 5;\n@%p3 bra OVER;\n" DEC "24;\nOVER:\n", CUDA_ERROR_LAUNCH_FAILED, "needs all 32 lanes"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        CUfunction f = load(registers(rows[r].bounds, rows[r].body));
        for (int order = SIM_IN_ORDER; order <= SIM_RANDOM; order++) {
            sim_set_options(&(sim_options){.schedule = (sim_schedule)order, .seed = 5});
            CUresult got = launch(f, 1, 384, 0, 0, 0);
            cr_assert(got == rows[r].code && strstr(sim_report(), rows[r].words), "row %zu, order %d: %d\n%s", r, order, got, sim_report());
        }
    }
    static const char *const refused[][2] = {{DEC "20;", "multiple of 8 from 24 to 256"}, {DEC "264;", "multiple of 8 from 24 to 256"}, {"setmaxnreg.sync.aligned.u32 32;", ".inc or .dec"}};
    for (size_t r = 0; r < sizeof refused / sizeof *refused; r++) {
        CUlibrary l;
        cr_assert_eq(cu->cuLibraryLoadData(&l, registers(wide, refused[r][0]), NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(cu->detail(), refused[r][1]), "%s", cu->detail());
    }
}

/* Barriers of a part of the block: one group fills, arrives and goes on; another waits and reads. Two pairs at once. */
Test(sim_wgmma, named_barriers_of_some_warps)
{
    uint32_t got[128];
    for (int order = SIM_IN_ORDER; order <= SIM_RANDOM; order++) {
        CUdeviceptr a = buffer(NULL, 4), b = buffer(NULL, sizeof got);
        sim_set_options(&(sim_options){.schedule = (sim_schedule)order, .seed = 11});
        /* warps 0 and 1 produce, 2 and 3 consume; barrier 1 + pair tells full, 3 + pair empty; 64 threads each; 5 rounds */
        run(HEAD90 ".shared .align 16 .b8 buf[256];\n"
            KERNEL("shr.u32 %r1, %r0, 5; and.b32 %r2, %r1, 1; and.b32 %r3, %r0, 63; add.u32 %r4, %r2, 1; add.u32 %r5, %r2, 3; shl.b32 %r6, %r3, 2; mov.u32 %r7, buf; add.u32 %r6, %r6, %r7;\n"
                   "mov.u32 %r8, 0; mov.u32 %r9, 0; setp.ge.u32 %p1, %r0, 64; mov.u32 %r12, 64; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd2, %rd3;\n@%p1 bra CONSUME;\n"
                   "PRODUCE:\nbar.sync %r5, %r12;\nmad.lo.u32 %r10, %r8, 1000, %r3; st.shared.u32 [%r6], %r10;\nbar.arrive %r4, %r12;\nadd.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 5;\n@%p2 bra PRODUCE;\nst.global.u32 [%rd3], %r8;\nret;\n"
                   "CONSUME:\nbar.arrive %r5, %r12;\nbar.sync %r4, %r12;\nld.shared.u32 %r10, [%r6]; add.u32 %r9, %r9, %r10;\nadd.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 5;\n@%p2 bra CONSUME;\nst.global.u32 [%rd3], %r9;"),
            1, 128, 0, a, b);
        fetch(got, b, sizeof got);
        for (uint32_t t = 64; t < 128; t++) cr_assert_eq(got[t], 10000 + 5 * (t - 64), "order %d thread %u: %u", order, t, got[t]);
    }
}
