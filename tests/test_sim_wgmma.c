/* wgmma: where every element lives in registers and in shared memory under each swizzle, that the arithmetic is that of
 * mma.sync, that both timings agree, and that each way to use it wrongly is reported. */
#include "test_sim_machine.h"
#include "sim/mma.h"
#include <stdarg.h>

#define HEAD90A ".version 8.0\n.target sm_90a\n.address_size 64\n"
enum { IMAGE = 49152 }; /* bytes of shared memory a test fills */

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
        CUresult r = launch(f, 1, 128, IMAGE, a, b);
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
    tile t = {.span = span, .mn = mn, .at = at};
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
