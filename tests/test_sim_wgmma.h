/* One product of wgmma as a kernel: its operands in memory under each layout, the parts of its text, its result. */
#ifndef TEST_SIM_WGMMA_H
#define TEST_SIM_WGMMA_H
#include "test_sim_text.h"

enum { IMAGE = 45056, SHARED = 49152 }; /* bytes of shared memory: that a test fills, and that the block has */

typedef struct tile {
    int span, mn, at, lead, stride;
} tile; /* span: bytes of a swizzled row, 16 = none; at: offset in shared memory */
typedef struct shape {
    int n, bf16, a_shared;
    tile a, b;
    int minus_a, minus_b, scale, times;
    const char *type_a, *type_b; /* of numbers of 8 bits, two of which lie as one of 16; NULL: as bf16 says */
} shape;

static inline uint64_t code_of(int span)
{
    return span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
}
static inline uint64_t fields(tile t)
{
    return (uint64_t)(t.lead >> 4) << 16 | (uint64_t)(t.stride >> 4) << 32 | code_of(t.span) << 62;
}

/* The canonical layouts, as CUTLASS writes them, element by element: (mn, k) to a byte of the image. T = 8 elements. */
static inline int place(tile t, int mn, int k)
{
    int at, units = t.span / 16;
    if (!t.mn && t.span == 16)
        at = mn % 8 * 16 + mn / 8 * t.stride + k / 8 * t.lead + k % 8 * 2; /* ((8,m),(T,2)):((1T,SBO),(1,LBO)) */
    else if (!t.mn)
        at = mn % 8 * t.span + mn / 8 * t.stride + k * 2; /* ((8,m),(T,2)):((WT,SBO),(1,T)) */
    else if (t.span == 16)
        at = mn % 8 * 2 + mn / 8 * t.stride + k % 8 * 16 + k / 8 * t.lead; /* ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO)) */
    else
        at =
            mn % (8 * units) * 2 + mn / (8 * units) * t.lead + k % 8 * t.span + k / 8 * t.stride; /* ((T,W,m),(8,k)):((1,T,LBO),(WT,SBO)) */
    at += t.at;
    if (t.span == 128)
        at ^= (at >> 7 & 7) << 4;
    if (t.span == 64)
        at ^= (at >> 7 & 3) << 4;
    if (t.span == 32)
        at ^= (at >> 7 & 1) << 4;
    return at;
}

/* Opens a kernel of two pointers that has filled its shared memory, through the generic proxy, from the first; %rd10 and %rd11
 * are the descriptors. Then A's registers %a0-3 and the accumulators %c0.. are loaded from what follows in the buffer. */
static inline void begin(const shape *s, const char *fence)
{
    written = 0;
    add(HEAD90A ".extern .shared .align 1024 .b8 sm[];\n.visible .entry k(.param .u64 pa, .param .u64 pb)\n{\n.reg .pred %%p<9>;\n.reg "
                ".b32 %%r<40>;\n.reg .b64 %%rd<20>;\n"
                ".reg .f32 %%c<260>;\n.reg .b32 %%a<8>;\n.reg .f32 %%f<300>;\n");
    add("ld.param.u64 %%rd1, [pa];\nld.param.u64 %%rd2, [pb];\nmov.u32 %%r0, %%tid.x;\nand.b32 %%r10, %%r0, 127;\nshr.u32 %%r11, %%r0, "
        "7;\n");
    add("mul.wide.u32 %%rd3, %%r10, 16;\nadd.s64 %%rd4, %%rd1, %%rd3;\nmov.u32 %%r2, sm;\nshl.b32 %%r3, %%r10, 4;\nadd.u32 %%r2, %%r2, "
        "%%r3;\nsetp.ne.u32 %%p1, %%r11, 0;\n"
        "@%%p1 bra FILLED;\nmov.u32 %%r4, 0;\nFILL:\nld.global.v4.u32 {%%r5,%%r6,%%r7,%%r8}, [%%rd4];\nst.shared.v4.u32 [%%r2], "
        "{%%r5,%%r6,%%r7,%%r8};\n"
        "add.s64 %%rd4, %%rd4, 2048;\nadd.u32 %%r2, %%r2, 2048;\nadd.u32 %%r4, %%r4, 2048;\nsetp.lt.u32 %%p1, %%r4, %d;\n@%%p1 bra "
        "FILL;\nFILLED:\n%s\nbar.sync 0;\n",
        IMAGE, fence);
    add("mov.u64 %%rd5, sm;\nshr.u64 %%rd5, %%rd5, 4;\nadd.s64 %%rd10, %%rd5, 0x%llx;\nadd.s64 %%rd11, %%rd5, 0x%llx;\n",
        (unsigned long long)(fields(s->a) + (uint64_t)(s->a.at >> 4)), (unsigned long long)(fields(s->b) + (uint64_t)(s->b.at >> 4)));
    add("mul.wide.u32 %%rd3, %%r0, 16;\nadd.s64 %%rd4, %%rd1, %%rd3;\nadd.s64 %%rd4, %%rd4, %d;\nld.global.v4.b32 {%%a0,%%a1,%%a2,%%a3}, "
        "[%%rd4];\n",
        IMAGE);
    add("mul.wide.u32 %%rd3, %%r0, 4;\nadd.s64 %%rd6, %%rd1, %%rd3;\nadd.s64 %%rd6, %%rd6, %d;\nadd.s64 %%rd7, %%rd2, %%rd3;\n",
        IMAGE + 4096);
    for (int k = 0; k < s->n / 2; k++)
        add("ld.global.f32 %%c%d, [%%rd6+%d];\n", k, k * 1024);
}
/* The product into %c0..; scale: "0" does not add to them, "1" does. */
static inline void product(const shape *s, const char *scale)
{
    const char *t = s->bf16 ? "bf16" : "f16";
    bool integers = s->type_a && !strcmp(s->type_a, "s8"); /* which have no signs of A and B */
    add("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s ", s->n, s->type_a ? 32 : 16, integers ? "s32" : "f32", s->type_a ? s->type_a : t,
        s->type_a ? s->type_b : t);
    list("%c", 0, s->n / 2);
    if (integers) {
        add(s->a_shared ? ", %%rd10, %%rd11, %s;\n" : ", {%%a0,%%a1,%%a2,%%a3}, %%rd11, %s;\n", scale);
        return;
    }
    if (s->type_a) {
        add(s->a_shared ? ", %%rd10, %%rd11, %s, %d, %d;\n" : ", {%%a0,%%a1,%%a2,%%a3}, %%rd11, %s, %d, %d;\n", scale, s->minus_a ? -1 : 1,
            s->minus_b ? -1 : 1);
        return;
    }
    if (s->a_shared)
        add(", %%rd10, %%rd11, %s, %d, %d, %d, %d;\n", scale, s->minus_a ? -1 : 1, s->minus_b ? -1 : 1, s->a.mn, s->b.mn);
    else
        add(", {%%a0,%%a1,%%a2,%%a3}, %%rd11, %s, %d, %d, %d;\n", scale, s->minus_a ? -1 : 1, s->minus_b ? -1 : 1, s->b.mn);
}
/* Stores the accumulators and closes the kernel: its whole text. */
static inline const char *end(const shape *s)
{
    for (int k = 0; k < s->n / 2; k++)
        add("st.global.f32 [%%rd7+%d], %%c%d;\n", k * 1024, k);
    add("ret;\n}\n");
    return text;
}
#define FENCE "fence.proxy.async.shared::cta;"
#define ISSUE(s, scale) (add("wgmma.fence.sync.aligned;\n"), product(s, scale))
#define WAIT add("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n")

typedef struct numbers {
    uint16_t a[64][16], b[16][256];
    uint32_t c[64][256];
} numbers;
typedef struct memory {
    uint8_t image[IMAGE];
    uint32_t a[256][4], c[128][256];
} memory;

/* The buffer that begin() reads, from numbers by row and column; fetch_d() takes the result apart likewise. */
static inline void fill(memory *m, const shape *s, const numbers *x)
{
    memset(m, 0, sizeof *m);
    for (int row = 0; row < 64 && s->a_shared; row++)
        for (int k = 0; k < 16; k++)
            memcpy(m->image + place(s->a, row, k), &x->a[row][k], 2);
    for (int n = 0; n < s->n; n++)
        for (int k = 0; k < 16; k++)
            memcpy(m->image + place(s->b, n, k), &x->b[k][n], 2);
    for (int t = 0; t < 128; t++) {
        int w = t / 32, g = t % 32 / 4, q = t % 4;
        for (int i = 0; i < 8; i++)
            m->a[t][i / 2] |= (uint32_t)x->a[16 * w + g + 8 * (i >> 1 & 1)][2 * q + (i & 1) + 8 * (i >> 2)] << 16 * (i & 1);
        for (int i = 0; i < s->n / 2; i++)
            m->c[i][t] = x->c[16 * w + g + 8 * (i >> 1 & 1)][8 * (i >> 2) + 2 * q + (i & 1)];
    }
}
static inline void fetch_d(CUdeviceptr from, const shape *s, uint32_t d[64][256])
{
    static uint32_t raw[128][256];
    fetch(raw, from, sizeof raw);
    for (int t = 0; t < 128; t++)
        for (int i = 0; i < s->n / 2; i++)
            d[16 * (t / 32) + t % 32 / 4 + 8 * (i >> 1 & 1)][8 * (i >> 2) + 2 * (t % 4) + (i & 1)] = raw[i][t];
}

static uint32_t seed = 1;
static inline uint32_t any(void)
{
    return seed = seed * 1664525u + 1013904223u, seed >> 8 ^ seed << 16;
}
/* special: any bits at all, else finite operands near one */
static inline void randomize(const shape *s, numbers *x, int special)
{
    for (int k = 0; k < 64 * 16; k++)
        x->a[k / 16][k % 16] = (uint16_t)any();
    for (int k = 0; k < 256 * 16; k++)
        x->b[k / 256][k % 256] = (uint16_t)any();
    for (int k = 0; k < 64 * 256; k++)
        x->c[k / 256][k % 256] = any() & 0x80FFFFFF;
    for (int k = 0; k < 64 * 256; k++)
        x->c[k / 256][k % 256] += 0x3F000000;
    if (special)
        return;
    uint16_t high = 0x4000, low = s->bf16 ? 0x3C00 : 0x2000; /* finite, near one */
    for (int k = 0; k < 64 * 16; k++)
        x->a[k / 16][k % 16] = (uint16_t)((x->a[k / 16][k % 16] & ~high & 0xBFFF) | low);
    for (int k = 0; k < 256 * 16; k++)
        x->b[k / 256][k % 256] = (uint16_t)((x->b[k / 256][k % 256] & ~high & 0xBFFF) | low);
}

/* A tile that fits: rows of the pattern side by side, groups of eight one after the other, some room between. */
static inline tile tile_of(int span, int mn, int extent, int at)
{
    tile t = { .span = span, .mn = mn, .at = at, .lead = 16 };
    int units = span / 16;
    if (!mn && span == 16)
        t.lead = 128, t.stride = 256 + 16;
    else if (!mn)
        t.stride = 8 * span + (span == 128 ? 1024 : 0);
    else if (span == 16)
        t.stride = 128, t.lead = extent / 8 * 128 + 32;
    else
        t.stride = 8 * span, t.lead = 2 * 8 * span * (units > 2 ? 1 : 2);
    return t;
}
#endif
