/* Tensors in one memory: slices of each other's gaps are apart, one byte in common is not. */
#include "runtime/args/overlap.h"
#include "runtime/launch/repeat.h"
#include "test_fake_context.h"
#include "test_good_args.h"
#include "verify/operands/random.h"
#include <stdio.h>

TestSuite(runtime_overlap, .init = open_bare_context, .fini = close_bare_context, .timeout = 120);

enum { MEMORY = 4096 };

/* Rows of bytes from a place on, with strides of either sign, which are multiples of a unit. */
static fa_span draw(fa_random *r, uint64_t base, int unit)
{
    static const fa_operand any = { .name = "x" };
    int32_t bytes = 1 << fa_random_below(r, 2);
    fa_span s = { .operand = &any, .bytes = bytes, .some = true, .run = (int64_t)bytes * (1 + fa_random_below(r, 3)) };
    s.high = s.run;
    for (int i = 3, most = 6; i >= 0; i--, most *= 2) {
        s.size[i] = 1 + fa_random_below(r, 3);
        s.stride[i] = s.size[i] > 1 ? unit * (fa_random_below(r, 2 * most) - most) : 0;
        *(s.stride[i] < 0 ? &s.low : &s.high) += s.stride[i] * bytes * (s.size[i] - 1);
    }
    s.lo = base + (uint64_t)fa_random_below(r, 1000);
    s.hi = s.lo + (uint64_t)(s.high - s.low);
    return s;
}

/* Each byte of it. */
static void mark(const fa_span *s, uint64_t base, bool at[MEMORY])
{
    int64_t first = (int64_t)(s->lo - base) - s->low, i[4];
    memset(at, 0, MEMORY);
    for (i[0] = 0; i[0] < s->size[0]; i[0]++)
        for (i[1] = 0; i[1] < s->size[1]; i[1]++)
            for (i[2] = 0; i[2] < s->size[2]; i[2]++)
                for (i[3] = 0; i[3] < s->size[3]; i[3]++) {
                    int64_t row = first;
                    for (int k = 0; k < 4; k++)
                        row += i[k] * s->stride[k] * s->bytes;
                    cr_assert(row >= 0 && row + s->run <= MEMORY, "%lld", (long long)row);
                    memset(at + row, 1, (size_t)s->run);
                }
}

Test(runtime_overlap, as_byte_by_byte)
{
    static bool x[MEMORY], y[MEMORY];
    fa_random r = { 11 };
    long shared = 0, apart = 0;
    for (int i = 0; i < 40000; i++) {
        const uint64_t base = i % 2 ? 0x7f0000000000 : UINT64_MAX - MEMORY;
        static const int units[] = { 1, 6, 16, 15 };
        int unit = units[fa_random_below(&r, 4)];
        fa_span a = draw(&r, base, unit), b = draw(&r, base, unit);
        if (a.hi - base > MEMORY || b.hi - base > MEMORY || a.lo >= b.hi || b.lo >= a.hi)
            continue;
        bool any = false;
        mark(&a, base, x), mark(&b, base, y);
        for (int k = 0; k < MEMORY; k++)
            any = any || (x[k] && y[k]);
        *(any ? &shared : &apart) += 1;
        cr_assert_eq(fa_overlap(&a, &b), any, "pair %d", i);
        cr_assert_eq(fa_overlap(&b, &a), any, "pair %d the other way", i);
    }
    cr_expect(shared > 2000 && apart > 2000, "%ld and %ld", shared, apart);
}

/* Long tensors are decided by their strides, not row by row; what cannot be is refused after a bounded time. */
Test(runtime_overlap, however_long)
{
    static const fa_operand any = { .name = "x" };
    const fa_span slice = { .operand = &any,
                            .stride = { 3 << 20, 192, 64 },
                            .size = { 1 << 20, 1 << 14, 1, 1 },
                            .bytes = 2,
                            .run = 128,
                            .lo = 1 << 20,
                            .hi = (1 << 20) + ((((1ull << 20) - 1) * 3 << 20) + ((1 << 14) - 1) * 192 + 64) * 2 };
    for (int64_t by = -130; by <= 130; by++) {
        fa_span other = slice;
        other.lo += (uint64_t)(384 * 1000 + by), other.hi += (uint64_t)(384 * 1000 + by);
        cr_expect_eq(fa_overlap(&slice, &other), by > -128 && by < 128, "%lld bytes", (long long)by);
    }
    /* columns of a matrix, every second and every third of its rows */
    fa_span second = { .operand = &any, .stride = { 2048 }, .size = { 1 << 20, 1, 1, 1 }, .bytes = 2, .run = 128, .lo = 4096 },
            third = second;
    third.stride[0] = 3072, third.lo += 6 * 2048 + 128;
    second.hi = second.lo + 4096ull * ((1 << 20) - 1) + 128, third.hi = third.lo + 6144ull * ((1 << 20) - 1) + 128;
    cr_expect(!fa_overlap(&second, &third) && !fa_overlap(&third, &second));
    third.lo -= 2, third.hi -= 2;
    cr_expect(fa_overlap(&second, &third) && fa_overlap(&third, &second));
    /* strides without a common divisor: some row meets */
    fa_span odd = slice;
    odd.stride[0] = 0, odd.size[0] = 1, odd.stride[1] = 193;
    odd.hi = odd.lo + (((1 << 14) - 1) * 193 + 64) * 2;
    odd.lo += 128, odd.hi += 128;
    cr_expect(fa_overlap(&slice, &odd));
    /* two dimensions that are no multiple of each other */
    fa_span wide = { .operand = &any, .stride = { 100003, 100019 }, .size = { 1 << 20, 1 << 20, 1, 1 }, .bytes = 4, .run = 4, .lo = 4 };
    wide.hi = wide.lo + (100003ull + 100019) * ((1 << 20) - 1) * 4 + 4;
    fa_span far = wide;
    far.lo += 4000, far.hi += 4000;
    cr_expect(fa_overlap(&wide, &far));
}

/* ---- of launches ---- */

/* Tensors of one type as slots of [b, s, slots, h, d]; [b, s, h, slots, d]; [b, h, s, slots, d]. */
static fa_tensor slot(const fa_args *a, int kind, int slots, int i)
{
    int64_t d = a->d, h = a->hq, s = a->sq, n = slots;
    const fa_tensor t[] = { { NULL, s * n * h * d, n * h * d, d },
                            { NULL, s * h * n * d, h * n * d, n * d },
                            { NULL, h * s * n * d, n * d, s * n * d } };
    fa_tensor x = t[kind];
    x.ptr = (char *)AT(64) + i * (kind ? d : h * d) * 2;
    return x;
}

static fa_args equal_args(int32_t op)
{
    fa_args a = good();
    a.op = op;
    a.hkv = a.hq = 4, a.sk = a.sq = 48, a.d = 64;
    if (op == FA_BACKWARD)
        a.grad_o.ptr = AT(6), a.grad_q.ptr = AT(7), a.grad_k.ptr = AT(8), a.grad_v.ptr = AT(9);
    return a;
}

static fa_status look(const fa_args *a)
{
    fa_repeat *r;
    return fa_repeat_check(&r, a);
}

/* Packed so, whatever is in which slot: a forward whose O lies beside Q, K and V; gradients in one dQKV; a training step's all in one. */
static const struct {
    int32_t op;
    int slots;
    size_t at[8];
    const char *outputs; /* a letter each */
} packs[] = {
#define AT_(x) offsetof(fa_args, x)
    { FA_FORWARD, 4, { AT_(q), AT_(k), AT_(v), AT_(o) }, "---o" },
    { FA_BACKWARD, 3, { AT_(grad_q), AT_(grad_k), AT_(grad_v) }, "ooo" },
    { FA_BACKWARD, 8, { AT_(q), AT_(grad_q), AT_(k), AT_(grad_k), AT_(v), AT_(o), AT_(grad_o), AT_(grad_v) }, "-o-o---o" },
};

static fa_tensor *tensor_at(fa_args *a, size_t at)
{
    return (fa_tensor *)(void *)((char *)a + at);
}

Test(runtime_overlap, slots_of_one_buffer_are_apart_and_one_element_more_is_not)
{
    int refused = 0;
    for (int kind = 0; kind < 3; kind++)
        for (size_t p = 0; p < sizeof packs / sizeof *packs; p++) {
            int n = packs[p].slots;
            fa_args a = equal_args(packs[p].op);
            for (int i = 0; i < n; i++)
                *tensor_at(&a, packs[p].at[i]) = slot(&a, kind, n, i);
            for (int again = 0; again < 2; again++)
                cr_expect_eq(look(&a), FA_OK, "kind %d, pack %zu, %d: %s", kind, p, again, fa_last_error());
            for (int i = 0; i < n; i++)
                for (int by = -1; by <= 1; by += 2) {
                    fa_args near = a;
                    bool wrong = packs[p].outputs[i] == 'o' || packs[p].outputs[(i + by + n) % n] == 'o';
                    tensor_at(&near, packs[p].at[i])->ptr = (uint16_t *)tensor_at(&a, packs[p].at[i])->ptr + by;
                    fa_status repeat = look(&near), none = look(NULL), fresh = look(&near);
                    cr_expect_eq(none, FA_INVALID);
                    cr_expect_eq(repeat, wrong ? FA_INVALID : FA_OK, "kind %d, pack %zu, slot %d by %d: %s", kind, p, i, by,
                                 fa_last_error());
                    cr_expect_eq(fresh, repeat, "kind %d, pack %zu, slot %d by %d", kind, p, i, by);
                    cr_expect(!wrong || strstr(fa_last_error(), " overlaps "), "%s", fa_last_error());
                    refused += wrong;
                    cr_assert_eq(look(&a), FA_OK);
                }
        }
    cr_expect_gt(refused, 3 * 10);
}

/* What is known of distances is of their strides alone. */
Test(runtime_overlap, a_distance_that_was_apart_is_not_with_other_strides)
{
    for (int repeats = 0; repeats < 3; repeats++) {
        fa_args a = equal_args(FA_FORWARD), b;
        for (int i = 0; i < 4; i++)
            *tensor_at(&a, packs[0].at[i]) = slot(&a, 0, 4, i);
        b = equal_args(FA_FORWARD); /* packed, and apart */
        for (int i = 0; i <= repeats; i++)
            cr_assert_eq(look(&a), FA_OK, "%s", fa_last_error());
        cr_assert_eq(look(&b), FA_OK, "%s", fa_last_error());
        b.q.ptr = a.q.ptr, b.o.ptr = a.o.ptr;
        cr_expect_eq(look(&b), FA_INVALID, "%d repeats", repeats);
        cr_expect(strstr(fa_last_error(), "o overlaps q"), "%s", fa_last_error());
    }
}

/* O may still take the place of one part, between the others. */
Test(runtime_overlap, a_merge_into_an_interleaved_part)
{
    for (int part = -1; part < 4; part++) {
        fa_args a = FA_ARGS_INIT;
        a.dtype = FA_F32, a.d = 64, a.b = 2, a.hq = 4, a.sq = 16, a.op = FA_MERGE, a.parts = 3;
        a.part = (fa_tensor){ AT(1), 16 * 4 * 4 * 64, 4 * 4 * 64, 64 }, a.part_stride = 4 * 64; /* three of the slots of [b, s, 4, h, d] */
        a.part_lse = AT(2), a.lse = AT(3);
        a.o = a.part, a.o.ptr = (char *)AT(1) + part * 4 * 64 * 4;
        cr_expect_eq(look(&a), FA_OK, "part %d: %s", part, fa_last_error());
        a.o.ptr = (char *)a.o.ptr + 16;
        cr_expect_eq(look(&a), FA_INVALID, "part %d", part);
    }
}
