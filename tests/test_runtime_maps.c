/* What a kernel of the Hopper kind gets at its launch: tensor maps, a grid, a cluster, a word to count with. On the driver that only
 * remembers, with a toy family. */
#include "test_hit_counts.h"
#include "test_maps_toy.h"
#include <time.h>

TestSuite(runtime_maps, .init = open_context, .fini = close_context, .timeout = 300);

Test(runtime_maps, what_is_encoded)
{
    static const struct {
        const char *name;
        uint32_t cols, rows, swizzle;
    } box[] = { { "q", 64, 32, CU_TENSOR_MAP_SWIZZLE_128B },
                { "k", 32, 48, CU_TENSOR_MAP_SWIZZLE_64B },
                { "v", 16, 16, CU_TENSOR_MAP_SWIZZLE_32B },
                { "o", 8, 8, CU_TENSOR_MAP_SWIZZLE_NONE } };
    fa_args a = toy_args();
    fake_launch l = launch(&a, 0);
    cr_assert_eq(l.maps, 4);
    cr_assert_eq(l.cluster, 0, "no attributes without a cluster");
    cr_assert(l.params.total == 2 * 2 * 8 && l.grid == 2 * 2 * 8 && l.params.counter == 0 && l.params.key_base == 0);
    for (int i = 0; i < 4; i++) {
        const fake_map *m = &l.map[i];
        cr_expect(m->box[0] == box[i].cols && m->box[1] == box[i].rows && m->box[2] == 1 && m->box[3] == 1, "box of %s", box[i].name);
        cr_expect(m->step[0] == 1 && m->step[1] == 1 && m->step[2] == 1 && m->step[3] == 1, "steps of %s", box[i].name);
        cr_expect_eq(m->swizzle, box[i].swizzle, "swizzle of %s", box[i].name);
        cr_expect(m->type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 && m->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
                  m->promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_128B && m->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    }
    SAME(&l.map[0], "q", 0x100000000, ROW(64, 128, 8, 2), ROW(1024, 128, 1024 * 128));
    SAME(&l.map[1], "k", 0x200000000, ROW(64, 256, 4, 2), ROW(512, 128, 512 * 256));
    SAME(&l.map[2], "v", 0x300000000, ROW(32, 256, 4, 2), ROW(256, 64, 256 * 256));
    SAME(&l.map[3], "o", 0x400000000, ROW(32, 128, 8, 2), ROW(512, 64, 512 * 128));
    a.dtype = FA_F16;
    cr_expect_eq(launch(&a, 0).map[3].type, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
    a.dtype = FA_TF32;
    l = launch(&a, 5);
    cr_expect_eq(l.map[0].type, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
    SAME(&l.map[0], "k of 4 bytes", 0x200000000, ROW(64, 256, 4, 2), ROW(1024, 256, 1024 * 256));
}

Test(runtime_maps, strides_are_the_callers_but_for_lengths_of_one)
{
    fa_args a = toy_args();
    a.q = (fa_tensor){ AT(1), 8 * 100000, 8 * 7, 8 * 1001 };
    a.k = (fa_tensor){ AT(2), 8 * 300000, 8 * 1111, 8 * 9 };
    fake_launch l = launch(&a, 0);
    SAME(&l.map[0], "q", 0x100000000, ROW(64, 128, 8, 2), ROW(16 * 7, 16 * 1001, 16 * 100000));
    SAME(&l.map[1], "k", 0x200000000, ROW(64, 256, 4, 2), ROW(16 * 1111, 16 * 9, 16 * 300000));
    a.b = a.hkv = a.hq = 1;
    a.q = (fa_tensor){ AT(1), 3, 8 * 40, -77 }; /* batch and head have length 1: whatever is told of them does not matter */
    a.k = (fa_tensor){ AT(2), 0, 8 * 8, 5 };
    l = launch(&a, 0);
    SAME(&l.map[0], "q", 0x100000000, ROW(64, 128, 1, 1), ROW(640, 640, 640));
    SAME(&l.map[1], "k", 0x200000000, ROW(64, 256, 1, 1), ROW(128, 128, 128));
    a.sq = 1;
    a.q = (fa_tensor){ AT(1), -5, 0, 1 };
    l = launch(&a, 0);
    SAME(&l.map[0], "one row", 0x100000000, ROW(64, 1, 1, 1), ROW(128, 128, 128));
    a.hq = 2, a.q.sh = 8 * 20;
    SAME(&launch(&a, 0).map[0], "two heads of one row", 0x100000000, ROW(64, 1, 2, 1), ROW(128, 320, 320));
}

Test(runtime_maps, the_keys_that_some_row_sees)
{
    static const int offsets[] = { -9, -3, 0, 2, 7, 11 };
    long none = 0, part = 0;
    const fa_plan *plan[3];
    fa_args a = toy_args();
    for (a.mask = FA_MASK_NONE; a.mask <= FA_MASK_WINDOW; a.mask++)
        plan[a.mask] = plan_of(&a, 4);
    for (int sq = 1; sq <= 5; sq++)
        for (int sk = 0; sk <= 7; sk++)
            for (int mask = FA_MASK_NONE; mask <= FA_MASK_WINDOW; mask++)
                for (int left = -1; left <= 2; left++)
                    for (int right = -1; right <= 2; right++)
                        for (size_t o = 0; o < 8; o++) {
                            a.sq = sq, a.sk = sk, a.mask = mask, a.window_left = left, a.window_right = right;
                            a.diagonal = o < 2 ? (int)o : FA_OFFSET;
                            a.offset = o < 2 ? 0 : offsets[o - 2];
                            a.k.ptr = a.v.ptr = sk ? AT(2) : NULL;
                            int off = a.diagonal == FA_BOTTOM_RIGHT ? sk - sq : a.offset, first = sk, last = -1;
                            for (int i = 0; i < sq; i++)
                                for (int j = 0; j < sk; j++) {
                                    int at = j - (i + off);
                                    bool seen = mask == FA_MASK_NONE || (mask == FA_MASK_CAUSAL && at <= 0) ||
                                                (mask == FA_MASK_WINDOW && (left < 0 || at >= -left) && (right < 0 || at <= right));
                                    if (seen && j < first)
                                        first = j;
                                    if (seen && j > last)
                                        last = j;
                                }
                            OK(fa_plan_launch(ctx, plan[mask], &a, NULL));
                            fake_launch l = fake_last();
                            const fake_map *k = &l.map[0];
                            int base = l.params.key_base;
                            if (last >= 0) {
                                cr_assert(base == first && k->size[1] == (uint64_t)(last - first + 1) &&
                                              k->address == 0x200000000 + (uint64_t)first * 512,
                                          "sq %d, sk %d, mask %d, %d/%d, off %d: keys %d ... %d, but the map has %ld from %d at %#lx", sq,
                                          sk, mask, left, right, off, first, last, (long)k->size[1], base, (long)k->address);
                                part += last - first + 1 < sk;
                            } else {
                                uint64_t row = k->address - 0x200000000;
                                cr_assert(k->size[1] == 1 && (sk ? row % 512 == 0 && row / 512 < (uint64_t)sk : k->address == 0x100000000),
                                          "nothing is seen: a map of one row that is there");
                                none++;
                            }
                        }
    cr_assert(none > 500 && part > 500, "%ld without a key, %ld with some of them", none, part);
}

/* What some row sees is known on the device alone: the maps hold all that is allocated. */
Test(runtime_maps, lengths_and_pages)
{
    fa_args a = toy_args();
    a.mask = FA_MASK_WINDOW, a.window_left = 3, a.window_right = 4, a.sk = 1000;
    a.seqlens_k = AT(6);
    fake_launch l = launch(&a, 0);
    SAME(&l.map[1], "padded k", 0x200000000, ROW(64, 1000, 4, 2), ROW(512, 128, 512 * 1000));
    a.cu_seqlens_q = AT(5), a.total_q = 200;
    a.cu_seqlens_k = AT(7), a.total_k = 1500;
    l = launch(&a, 0);
    SAME(&l.map[0], "packed q", 0x100000000, ROW(64, 200, 8, 1), ROW(1024, 128, 128));
    SAME(&l.map[2], "packed v", 0x300000000, ROW(32, 1500, 4, 1), ROW(256, 64, 64));
    SAME(&l.map[3], "packed o", 0x400000000, ROW(32, 200, 8, 1), ROW(512, 64, 64));
    a.sk = a.total_k = 0, a.k.ptr = a.v.ptr = NULL;
    l = launch(&a, 0);
    SAME(&l.map[1], "no key", 0x100000000, ROW(64, 1, 4, 1), ROW(128, 128, 128));
    a.sk = 1000, a.cu_seqlens_k = NULL, a.k.ptr = AT(2), a.v.ptr = AT(3);
    a.page_table = AT(8), a.page_size = 48, a.pages = 70;
    a.k.sb = 2 * 48 * 4 * 64, a.k.sh = 64, a.k.ss = 4 * 64;
    l = launch(&a, 0);
    SAME(&l.map[1], "pages of k", 0x200000000, ROW(64, 48, 4, 70), ROW(512, 128, 2 * 512 * 48));
    SAME(&l.map[2], "pages of v", 0x300000000, ROW(32, 48, 4, 70), ROW(256, 64, 256 * 48));
    a.sk = a.pages = 0;
    l = launch(&a, 0);
    SAME(&l.map[1], "no page", 0x100000000, ROW(64, 48, 4, 1), ROW(128, 128, 128));
}

static void same_boxes(const fa_args *a, const char *name, const uint64_t size[5], const uint64_t stride[4], const uint32_t box[5])
{
    const fake_launch l = launch(a, 8);
    const fake_map *m = &l.map[0];
    cr_expect_eq(m->rank, 5, "%s", name);
    for (int i = 0; i < 5; i++)
        cr_expect(m->size[i] == size[i] && m->box[i] == box[i], "%s: size[%d] is %ld, box[%d] is %u", name, i, (long)m->size[i], i,
                  m->box[i]);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(m->stride[i], stride[i], "%s: stride[%d] is %ld", name, i, (long)m->stride[i]);
}

#define BOX(...)       \
    (const uint32_t[]) \
    {                  \
        __VA_ARGS__    \
    }

/* Four boxes of 16 columns make a row of K. */
Test(runtime_maps, boxes_side_by_side)
{
    fa_args a = toy_args();
    a.seqlens_k = AT(6), a.page_table = AT(8), a.sk = 960, a.page_size = 48, a.pages = 70;
    same_boxes(&a, "tokens before heads", ROW(16, 8, 3 * 4 + 4, 6, 70), ROW(512, 32, 8 * 512, 48 * 512), BOX(16, 8, 4, 3, 1));
    a.k = (fa_tensor){ AT(2), 2 * 4 * 48 * 64, 64, 48 * 64 };
    same_boxes(&a, "heads before tokens", ROW(16, 8, 3 * 192 + 4, 6, 70), ROW(128, 32, 8 * 128, 16 * 48 * 64), BOX(16, 8, 4, 3, 1));
    a.k = (fa_tensor){ AT(2), 4 * 48 * 72, 4 * 72, 72 };
    same_boxes(&a, "heads at half boxes", ROW(16, 48, 4, 4, 70), ROW(576, 32, 144, 48 * 576), BOX(16, 8, 4, 1, 1));
    a.k = (fa_tensor){ AT(256), 64, 70 * 64, 0x20000000ll * 16 };
    same_boxes(&a, "more boxes than a coordinate tells", ROW(16, 48, 4, 4, 70), ROW(140 * 64, 32, 0x20000000ll * 32, 128),
               BOX(16, 8, 4, 1, 1));
    a.k.ss = 0x10000000ll * 256, a.k.sh = 64;
    same_boxes(&a, "eight rows too far", ROW(16, 48, 4, 4, 70), ROW(0x10000000ll * 512, 32, 128, 128), BOX(16, 8, 4, 1, 1));
    a.k = (fa_tensor){ NULL, 0, 0, 8 }, a.v.ptr = NULL, a.sk = a.pages = 0;
    same_boxes(&a, "no page", ROW(16, 48, 4, 4, 1), ROW(32, 32, 32, 32), BOX(16, 8, 4, 1, 1));
    a = toy_args();
    a.hkv = a.hq = 1, a.k = (fa_tensor){ AT(2), 256 * 64, 64, 7 };
    same_boxes(&a, "one head", ROW(16, 8, 4, 32, 2), ROW(128, 32, 1024, 256 * 128), BOX(16, 8, 4, 3, 1));
    a.sk = 255, a.k.sb = 255 * 64;
    same_boxes(&a, "rows that are no groups", ROW(16, 255, 4, 1, 2), ROW(128, 32, 32, 255 * 128), BOX(16, 8, 4, 1, 1));
}

/* Rows of q8_0 of four heads as one: 68 bytes a head. */
Test(runtime_maps, heads_together)
{
    fa_args a = toy_args();
    a.kv_dtype = FA_Q8_0, a.dv = 64;
    fake_launch l = launch(&a, 11);
    cr_assert_eq(l.maps, 2);
    cr_expect_eq(l.params.key_base, 0);
    for (int i = 0; i < 2; i++) {
        SAME(&l.map[i], i ? "v" : "k", i ? 0x300000000 : 0x200000000, ROW(34, 256, 1, 2), ROW(272, 272, 256 * 272));
        cr_expect(l.map[i].type == CU_TENSOR_MAP_DATA_TYPE_INT64 && l.map[i].swizzle == CU_TENSOR_MAP_SWIZZLE_NONE);
        cr_expect(l.map[i].rank == 4 && l.map[i].box[0] == 36 && l.map[i].box[1] == 16 && l.map[i].box[2] == 1 && l.map[i].box[3] == 1);
    }
    a.mask = FA_MASK_WINDOW, a.window_left = 3, a.window_right = 0; /* of 128 queries at the end of 256 keys */
    l = launch(&a, 11);
    cr_expect_eq(l.params.key_base, 125);
    SAME(&l.map[0], "keys that are seen", 0x200000000 + 125 * 272, ROW(34, 131, 1, 2), ROW(272, 272, 256 * 272));
    a.mask = FA_MASK_NONE;
    a.k = (fa_tensor){ AT(2), 2 * 4 * 300 * 4, 2 * 4 * 4, 2 }; /* strides count blocks: a token's row in the place of four */
    l = launch(&a, 11);
    SAME(&l.map[0], "tokens apart", 0x200000000, ROW(34, 256, 1, 2), ROW(34 * 32, 34 * 32, 34 * 9600));
    /* What no map holds: the kernel's boxed is 0, and nothing is encoded. */
    static const fake_map nothing;
    const fa_tensor none[] = { { (char *)AT(2) + 4, 2048, 8, 2 },
                               { AT(2), 256 * 16, 16, 4 },
                               { AT(2), 256 * 10, 10, 2 },
                               { AT(2), 2050, 8, 2 },
                               { AT(2), 2 * 256, 2, 512 } };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        a.k = none[i];
        long before = fake_calls("cuTensorMapEncodeTiled");
        l = launch(&a, 11);
        cr_expect(!memcmp(&l.map[0], &nothing, sizeof nothing) && !memcmp(&l.map[1], &nothing, sizeof nothing), "%zu", i);
        cr_expect_eq(fake_calls("cuTensorMapEncodeTiled"), before, "%zu", i);
    }
    a.k = (fa_tensor){ AT(2), 0, 0, 0 }, a.hq = a.hkv = 6; /* heads are not a whole number of times four */
    l = launch(&a, 11);
    cr_expect(!memcmp(&l.map[0], &nothing, sizeof nothing));
}

/* Of an array for each head, query and key, the same for all sequences. */
Test(runtime_maps, arrays_of_a_score_program)
{
    fa_args a = toy_args();
    fa_score_value v[2] = { FA_SCORE_VALUE_INIT, FA_SCORE_VALUE_INIT };
    fa_score *score;
    OK(fa_score_create(ctx, "c = scalar(2); x = bf16 'hq sq b sk'\nfunction score(s, b, h, i, j) return s + c * x[h][i][b][j] end",
                       &score));
    v[1] = (fa_score_value){ .size = sizeof *v, .ptr = AT(9), .extent = { 8, 128, 2, 256 }, .stride = { 128 * 264, 264, 0, 1 } };
    v[0].scalar = 2;
    a.score = score, a.score_values = v, a.score_value_count = 2;
    fake_launch l = launch(&a, 9);
    cr_assert_eq(l.maps, 2);
    SAME(&l.map[1], "an array", 0x900000000, ROW(256, 128, 8, 1), ROW(528, 128 * 528, 128 * 528));
    cr_expect(l.map[1].rank == 4 && l.map[1].box[0] == 72 && l.map[1].box[1] == 64 && l.map[1].box[2] == 1 && l.map[1].box[3] == 1);
    cr_expect_eq(l.map[1].swizzle, CU_TENSOR_MAP_SWIZZLE_NONE);
    v[1].stride[2] = 8 * 77;
    l = launch(&a, 9);
    SAME(&l.map[1], "of each sequence", 0x900000000, ROW(256, 128, 8, 2), ROW(528, 128 * 528, 16 * 77));
    /* What TMA does not take: the kernel's boxed is 0, and the map is Q's. */
    const fa_score_value good = v[1];
    const struct {
        const void *ptr;
        int64_t stride[4];
    } none[] = { { (char *)AT(9) + 2, { 128 * 264, 264, 0, 1 } },
                 { AT(9), { 128 * 260, 260, 0, 1 } },
                 { AT(9), { 264, 0, 0, 1 } },
                 { AT(9), { 128 * 264, 264, 4, 1 } },
                 { AT(9), { 128 * 528, 528, 0, 2 } } };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        v[1].ptr = none[i].ptr;
        memcpy(v[1].stride, none[i].stride, sizeof v[1].stride);
        l = launch(&a, 9);
        cr_expect(!memcmp(&l.map[0], &l.map[1], sizeof l.map[0]), "%zu", i);
    }
    v[1] = good;
    l = launch(&a, 9);
    SAME(&l.map[1], "as before", 0x900000000, ROW(256, 128, 8, 2), ROW(528, 128 * 528, 16 * 77));
    fa_score_destroy(score);
}

/* Encodings that a launch makes. */
static long encodes(const fa_plan *plan, const fa_args *a)
{
    long before = fake_calls("cuTensorMapEncodeTiled");
    OK(fa_plan_launch(ctx, plan, a, NULL));
    return fake_calls("cuTensorMapEncodeTiled") - before;
}

Test(runtime_maps, a_map_is_encoded_when_it_changes)
{
    fa_args a = toy_args(), b;
    const fa_plan *plan = plan_of(&a, 0), *other = plan_of(&a, 4);
    cr_assert_eq(encodes(plan, &a), 4);
    cr_assert_eq(encodes(plan, &a), 0, "as before");
    a.scale = 2, a.lse = AT(5);
    cr_assert_eq(encodes(plan, &a), 0, "nothing that a map holds");
    b = a, b.q.ptr = (char *)AT(1) + 16;
    cr_expect_eq(encodes(plan, &b), 1, "address");
    b = a, b.o = (fa_tensor){ AT(4), 128 * 8 * 64, 8 * 64, 64 };
    cr_expect_eq(encodes(plan, &b), 1, "strides");
    b = a, b.q = (fa_tensor){ AT(1), 128 * 8 * 64, 64, 128 * 64 };
    cr_expect_eq(encodes(plan, &b), 1, "the same strides the other way round");
    b = a, b.k.sb = 256 * 4 * 64 * 2, b.k.ss = 4 * 64, b.k.sh = 64;
    cr_expect_eq(encodes(plan, &b), 1, "the batch stride alone");
    b = a, b.sk = 255, b.k = (fa_tensor){ AT(2), 256 * 4 * 64, 4 * 64, 64 }, b.v = (fa_tensor){ AT(3), 256 * 4 * 32, 4 * 32, 32 };
    cr_expect_eq(encodes(plan, &b), 2, "the length of K and V");
    b.sq = 127, b.q = (fa_tensor){ AT(1), 128 * 8 * 64, 8 * 64, 64 }, b.o = (fa_tensor){ AT(4), 128 * 8 * 32, 8 * 32, 32 };
    cr_expect_eq(encodes(plan, &b), 2, "the length of Q and O");
    b = a, b.b = 1;
    cr_expect_eq(encodes(plan, &b), 4, "the batch");
    cr_expect_geq(encodes(other, &a), 1, "another box");
    cr_expect_eq(encodes(other, &a), 0);
    b = a, b.mask = FA_MASK_WINDOW, b.window_left = 3, b.window_right = 4;
    cr_expect_eq(encodes(plan_of(&b, 4), &b), 1, "keys that no row sees are left out");
    a.dtype = FA_F16;
    cr_expect_eq(encodes(plan_of(&a, 0), &a), 4, "the type");
}

Test(runtime_maps, what_a_hit_costs)
{
    fa_args a = toy_args();
    const fa_plan *with = plan_of(&a, 0), *without = plan_of(&a, 1), *counts = plan_of(&a, 3);
    struct timespec t0, t1;
    const struct {
        const char *name;
        const fa_plan *plan;
        int64_t step;
        long encoded;
    } rows[] = { { "no map", without, 0, 0 },
                 { "4 maps as before", with, 0, 0 },
                 { "4 maps, 2 of them new", with, 16, 20000 },
                 { "a counter", counts, 0, 0 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        fa_args b = a;
        OK(fa_plan_launch(ctx, rows[r].plan, &b, NULL));
        long before = fake_calls("cuTensorMapEncodeTiled"), memory = fake_calls("cuMemAlloc");
        allocations = locks = lookups = 0;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        for (int i = 0; i < 10000; i++) {
            b.k.ptr = (char *)b.k.ptr + rows[r].step;
            b.v.ptr = (char *)b.v.ptr + rows[r].step;
            if (fa_plan_launch(ctx, rows[r].plan, &b, NULL) != FA_OK)
                abort();
        }
        clock_gettime(CLOCK_MONOTONIC, &t1);
        long a0 = allocations, l0 = locks, e0 = lookups;
        cr_log_info("%s: %.0f ns on the host", rows[r].name,
                    ((double)(t1.tv_sec - t0.tv_sec) * 1e9 + (double)(t1.tv_nsec - t0.tv_nsec)) / 10000);
        cr_expect_eq(fake_calls("cuTensorMapEncodeTiled") - before, rows[r].encoded, "%s", rows[r].name);
        cr_expect_eq(fake_calls("cuMemAlloc"), memory, "%s", rows[r].name);
        cr_expect(a0 == 0 && l0 == 0 && e0 == 0, "%s: %ld allocations, %ld locks, %ld look-ups", rows[r].name, a0, l0, e0);
    }
}

Test(runtime_maps, refusals_of_the_driver)
{
    fa_args a = toy_args();
    const fa_plan *plan = plan_of(&a, 0);
    fake_fail("cuTensorMapEncodeTiled", 2, CUDA_ERROR_INVALID_VALUE);
    long launches = fake_calls("cuLaunchKernel");
    cr_expect_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_DEVICE);
    cr_expect(strstr(fa_last_error(), "toy: cuTensorMapEncodeTiled(k at 0x200000000, 64 x 256 x 4 x 2"), "%s", fa_last_error());
    cr_expect_eq(fake_calls("cuLaunchKernel"), launches);
    cr_expect_eq(encodes(plan, &a), 3, "the one that failed was not kept, and is made with those that were not tried");
    fake_fail("cuLaunchKernelEx", 1, CUDA_ERROR_UNKNOWN);
    cr_expect_eq(fa_plan_launch(ctx, plan_of(&a, 2), &a, NULL), FA_DEVICE);
    cr_expect(strstr(fa_last_error(), "cuLaunchKernelEx"), "%s", fa_last_error());
}

Test(runtime_maps, grids_and_clusters)
{
    fa_args a = toy_args();
    fake_launch l = launch(&a, 1);
    cr_expect(l.grid == 32 && l.params.total == 32 && l.params.tiles == 2, "fewer tiles than 2 x 100 SMs hold: %u", l.grid);
    a.b = 100;
    l = launch(&a, 1);
    cr_expect(l.grid == 200 && l.params.total == 1600, "%u blocks for %d tiles", l.grid, l.params.total);
    a = toy_args(), a.sq = 1, a.hq = 4, a.b = 1;
    l = launch(&a, 2);
    cr_expect(l.grid == 12 && l.cluster == 3 && l.params.total == 4, "a cluster per tile: %u", l.grid);
    cr_expect_eq(fake_calls("cuLaunchKernel") + fake_calls("cuLaunchKernelEx"), 3);
    cr_expect_eq(fake_calls("cuLaunchKernelEx"), 1);
}

Test(runtime_maps, who_waits_itself_may_begin_early)
{
    static const struct {
        int kind;
        bool pdl;
        unsigned cluster;
    } rows[] = { { 1, false, 0 }, { 2, false, 3 }, { 6, true, 0 }, { 7, true, 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = toy_args();
        fake_launch l = launch(&a, rows[i].kind);
        cr_expect(l.pdl == rows[i].pdl && l.cluster == rows[i].cluster, "kind %d: pdl %d, cluster %u", rows[i].kind, l.pdl, l.cluster);
    }
    cr_expect_eq(fake_calls("cuLaunchKernel"), 1, "the short call for who needs no attribute");
}

Test(runtime_maps, more_keys_than_a_kernel_can_number)
{
    fa_args a = toy_args();
    a.sk = 256;
    launch(&a, 10);
    a.sk = 257;
    cr_expect_eq(fa_plan_launch(ctx, plan_of(&a, 10), &a, NULL), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "sk is 257; accepted by the config of this launch: up to 256 keys"), "%s", fa_last_error());
}

Test(runtime_maps, in_order_nothing_begins_early)
{
    fa_args a = toy_args();
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = scratch;
    o.template_dir = dir;
    o.in_order = 1;
    fa_destroy(ctx);
    const cu_driver *d = fake_driver();
    fake_devices(2, 9, 0);
    OK(fa_create_on(&ctx, &o, d, 0));
    cr_expect(!launch(&a, 6).pdl);
    cr_expect_eq(fake_calls("cuLaunchKernelEx"), 0);
    fake_launch l = launch(&a, 7);
    cr_expect(!l.pdl && l.cluster == 2);
    fa_context *none;
    o.in_order = 2;
    cr_expect_eq(fa_create_on(&none, &o, d, 0), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "in_order is 2; accepted: 0, 1"), "%s", fa_last_error());
}

/* --- counters --- */

Test(runtime_maps, a_word_for_each_launch)
{
    fa_args a = toy_args();
    cr_expect_eq(launch(&a, 1).params.counter, 0, "only for who asks");
    cr_expect_eq(fake_calls("cuMemAlloc") + fake_calls("cuStreamIsCapturing"), 0);
    const fa_plan *plan = plan_of(&a, 3);
    cr_assert_eq(fake_calls("cuMemAlloc"), 1, "made when the kernel is prepared");
    uint64_t base = fake_filled().at;
    cr_assert(fake_filled().value == 0 && fake_filled().words == 2 * FA_COUNTER_WORDS, "all zeros");
    static uint8_t seen[FA_COUNTER_WORDS];
    for (uint32_t i = 0; i < FA_COUNTER_WORDS; i++) {
        OK(fa_plan_launch(ctx, plan, &a, NULL));
        uint64_t at = fake_last().params.counter - base;
        cr_assert(at % 4 == 0 && at / 4 < FA_COUNTER_WORDS && !seen[at / 4]++, "launch %u", i);
    }
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    cr_expect_eq(fake_last().params.counter, base, "in turn");
    cr_expect_eq(fake_calls("cuMemAlloc"), 1);
    cr_expect_eq(fake_calls("cuMemsetD32Async"), 1, "the kernels leave zeros");
}

Test(runtime_maps, captured_launches_keep_their_words)
{
    fa_args a = toy_args();
    const fa_plan *plan = plan_of(&a, 3);
    uint64_t base = fake_filled().at;
    static uint8_t seen[2 * FA_COUNTER_WORDS];
    fake_capturing(true);
    for (uint32_t i = 0; i < FA_COUNTER_WORDS; i++) {
        OK(fa_plan_launch(ctx, plan, &a, NULL));
        uint64_t at = (fake_last().params.counter - base) / 4;
        cr_assert(at >= FA_COUNTER_WORDS && at < 2 * FA_COUNTER_WORDS && !seen[at]++, "launch %u", i);
    }
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_CAPTURE);
        cr_expect(strstr(fa_last_error(), "toy: stream: it is being captured and the 65536 words"), "%s", fa_last_error());
    }
    fake_capturing(false);
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    cr_expect_lt(fake_last().params.counter - base, 4 * FA_COUNTER_WORDS, "streams have words of their own");
    fake_fail("cuStreamIsCapturing", 1, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    cr_expect_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_CAPTURE, "the legacy stream while another is captured");
}

Test(runtime_maps, words_belong_to_one_cuda_context)
{
    fa_args a = toy_args();
    const fa_plan *plan = plan_of(&a, 3);
    const cu_driver *d = fa_context_driver(ctx);
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    uint64_t first = fake_last().params.counter;
    d->cuCtxSetCurrent(fake_second_context(0));
    fake_capturing(true);
    cr_expect_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_CAPTURE, "no memory is made under capture");
    cr_expect(strstr(fa_last_error(), "not prepared in this one"), "%s", fa_last_error());
    fake_capturing(false);
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    cr_expect_eq(fake_last().context, fake_second_context(0));
    cr_expect_eq(fake_calls("cuMemAlloc"), 2);
    cr_expect(fake_last().params.counter >= fake_filled().at && fake_filled().at > first + 4 * FA_COUNTER_WORDS);
    fake_capturing(true);
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    fake_capturing(false);
    d->cuCtxSetCurrent(NULL);
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    cr_expect_eq(fake_last().params.counter, first + 4, "each goes on where it was");
}

Test(runtime_maps, no_words_no_plan)
{
    static const char *const points[] = { "cuMemAlloc", "cuStreamCreate", "cuMemsetD32Async", "cuStreamSynchronize" };
    fa_args a = toy_args();
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        fa_problem p, raw = FA_PROBLEM_INIT;
        fa_config c;
        const fa_plan *plan;
        raw.dtype = a.dtype, raw.d = a.d, raw.dv = a.dv;
        OK(fa_problem_normalize(&p, &raw));
        OK(fa_config_parse(&c, "toy:kind=3"));
        fake_fail(points[i], 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(fa_plan_make(ctx, &p, &c, NULL, &plan), FA_NOMEM, "%s", points[i]);
        cr_expect(strstr(fa_last_error(), points[i]), "%s: %s", points[i], fa_last_error());
        cr_expect_eq(fake_live_memory(), 0, "%s", points[i]);
    }
    OK(fa_plan_launch(ctx, plan_of(&a, 3), &a, NULL));
}
