/* Lengths and page numbers that lie in device memory: looked at on the simulator, and where the option asks for it; each rule by name. */
#include "fake_driver.h"
#include "runtime/context/context.h"
#include "runtime/runtime.h"
#include "sim/sim.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <stddef.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { B = 3, HQ = 4, HKV = 2, D = 64, SQ = 4, SK = 100, TOTAL_Q = 12, TOTAL_K = 300, PAGE = 16, PAGES = 24, STRIDE = 9 };

/* As they lie in device memory. */
typedef struct lists {
    int32_t cu_q[B + 1], cu_k[B + 1], rows_q[B], rows_k[B], table[B][STRIDE];
} lists;

enum { CU_Q = 1, CU_K = 2, ROWS_Q = 4, ROWS_K = 8, TABLE = 16 };

/* What is right in whichever combination: the third sequence is padding of a graph, and what no row sees of the table is anything. */
static lists good(unsigned which)
{
    lists l = { .cu_q = { 0, 4, 6, 6 }, .cu_k = { 0, 100, 120, 120 }, .rows_q = { 4, 2, 0 }, .rows_k = { 100, 17, 0 } };
    for (int i = 0; i < B; i++)
        for (int n = 0; n < STRIDE; n++)
            l.table[i][n] = i == 0 && n < 7 ? 23 - n : i == 1 && n < 2 ? n : n % 2 ? -1 : PAGES;
    if ((which & (CU_K | ROWS_K)) == CU_K)
        l.cu_k[3] = 220; /* as long as a sequence may be */
    return l;
}

/* A launch with those of the lists; at: where they lie. Tensors lie after `memory`. */
static fa_args args_of(unsigned which, const lists *at, char *memory)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16, a.d = D, a.b = B, a.hq = HQ, a.hkv = HKV, a.sq = SQ, a.sk = SK;
    a.q.ptr = memory, a.k.ptr = memory + (1 << 20), a.v.ptr = memory + (2 << 20), a.o.ptr = memory + (3 << 20);
    a.cu_seqlens_q = which & CU_Q ? at->cu_q : NULL;
    a.cu_seqlens_k = which & CU_K ? at->cu_k : NULL;
    a.seqlens_q = which & ROWS_Q ? at->rows_q : NULL;
    a.seqlens_k = which & ROWS_K ? at->rows_k : NULL;
    a.total_q = which & CU_Q ? TOTAL_Q : 0;
    a.total_k = which & CU_K ? TOTAL_K : 0;
    if (which & TABLE)
        a.page_table = at->table[0], a.page_table_stride = STRIDE, a.page_size = PAGE, a.pages = PAGES;
    return a;
}

typedef struct row {
    unsigned which;
    size_t at; /* of the word that is changed */
    int32_t value;
    const char *told; /* NULL: it is right */
} row;
#define AT(field) offsetof(lists, field)
static const row rows[] = {
    { CU_Q, AT(cu_q[1]), -1, "cu_seqlens_q[1] is -1; accepted with total_q=12: 0 to 12" },
    { CU_Q, AT(cu_q[3]), 13, "cu_seqlens_q[3] is 13; accepted with total_q=12: 0 to 12" },
    { CU_Q, AT(cu_q[2]), 3, "cu_seqlens_q[2] is 3; accepted after cu_seqlens_q[1]=4: as much or more" },
    { CU_Q, AT(cu_q[3]), 11, "cu_seqlens_q[3] is 11; accepted after cu_seqlens_q[2]=6 with sq=4: at most 10" },
    { CU_Q, AT(cu_q[3]), 10, NULL },
    { CU_Q, AT(cu_q[0]), 1, NULL },
    { CU_Q | CU_K, AT(cu_k[0]), INT32_MIN, "cu_seqlens_k[0] is -2147483648; accepted with total_k=300: 0 to 300" },
    { CU_Q | CU_K, AT(cu_k[3]), 221, "cu_seqlens_k[3] is 221; accepted after cu_seqlens_k[2]=120 with sk=100: at most 220" },
    { CU_Q | CU_K, AT(cu_k[1]), 120, "cu_seqlens_k[1] is 120; accepted after cu_seqlens_k[0]=0 with sk=100: at most 100" },
    { CU_K | ROWS_K, AT(cu_k[3]), 290, NULL }, /* room for more than a sequence may have */
    { CU_K | ROWS_K, AT(rows_k[1]), 21, "seqlens_k[1] is 21; accepted between cu_seqlens_k[1]=100 and the next, 120: 0 to 20" },
    { CU_K | ROWS_K, AT(rows_k[1]), 20, NULL },
    { ROWS_Q, AT(rows_q[0]), 5, "seqlens_q[0] is 5; accepted with sq=4: 0 to 4" },
    { ROWS_Q, AT(rows_q[2]), -1, "seqlens_q[2] is -1; accepted with sq=4: 0 to 4" },
    { ROWS_K, AT(rows_k[2]), 101, "seqlens_k[2] is 101; accepted with sk=100: 0 to 100" },
    { ROWS_K, AT(rows_k[0]), INT32_MAX, "seqlens_k[0] is 2147483647; accepted with sk=100: 0 to 100" },
    { ROWS_K, AT(rows_k[0]), 0, NULL },
    { ROWS_K | TABLE, AT(table[0][6]), -1, "page_table[0][6] is -1, and rows see keys of that page; accepted with pages=24: 0 to 23" },
    { ROWS_K | TABLE, AT(table[1][1]), 24, "page_table[1][1] is 24, and rows see keys of that page; accepted with pages=24: 0 to 23" },
    { ROWS_K | TABLE, AT(table[0][0]), INT32_MIN, "page_table[0][0] is -2147483648" },
    { ROWS_K | TABLE, AT(table[0][7]), INT32_MIN, NULL },
    { ROWS_K | TABLE, AT(rows_k[1]), 33, "page_table[1][2] is 24" },
    { ROWS_K | TABLE, AT(rows_k[2]), 1, "page_table[2][0] is 24" },
    { ROWS_Q | ROWS_K | TABLE, AT(rows_k[2]), 1, NULL }, /* whose keys no row sees */
    { CU_Q | ROWS_K | TABLE, AT(rows_k[2]), 1, NULL },
    { CU_Q | ROWS_K | TABLE, AT(table[1][0]), 77, "page_table[1][0] is 77" },
};
#define ROWS (sizeof rows / sizeof *rows)

static lists changed(const row *r)
{
    lists l = good(r->which);
    memcpy((char *)&l + r->at, &r->value, sizeof r->value);
    return l;
}

static void expect(fa_status got, const row *r, fa_status right)
{
    cr_expect_eq(got, r->told ? FA_INVALID : right, "row %td: %s: %s", r - rows, fa_status_name(got), fa_last_error());
    if (r->told)
        cr_expect(strstr(fa_last_error(), r->told), "row %td: \"%s\" is not in: %s", r - rows, r->told, fa_last_error());
}

/* ---- a driver that only notes: its device memory is the host's ---- */

#define ANYWHERE ((char *)(uintptr_t)0x100000000)

static fa_context *on_fake(int32_t option)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    o.cache_dir = "";
    o.on_miss = FA_MISS_FAIL; /* what is right is FA_NO_KERNEL */
    o.check_device_data = option;
    OK(fa_create_on(&ctx, &o, fake_driver(), 0));
    return ctx;
}

Test(runtime_device_data, each_rule_names_field_index_and_value)
{
    fa_context *ctx = on_fake(1);
    for (size_t i = 0; i < ROWS; i++) {
        lists l = changed(&rows[i]);
        fa_args a = args_of(rows[i].which, &l, ANYWHERE);
        expect(fa_launch(ctx, &a, NULL), &rows[i], FA_NO_KERNEL);
        l = good(rows[i].which);
        cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NO_KERNEL, "row %zu as it was: %s", i, fa_last_error()); /* the same addresses */
    }
    fa_destroy(ctx);
}

Test(runtime_device_data, a_window_hides_pages)
{
    fa_context *ctx = on_fake(1);
    lists l = good(ROWS_K | TABLE);
    fa_args a = args_of(ROWS_K | TABLE, &l, ANYWHERE);
    a.mask = FA_MASK_WINDOW;
    a.window_left = 20, a.window_right = 0; /* the first of the queries sees keys from 76 on */
    for (int n = 0; n < 4; n++)
        l.table[0][n] = -5;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NO_KERNEL, "%s", fa_last_error());
    l.table[0][4] = -5; /* keys 64 to 79 */
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "page_table[0][4] is -5"), "%s", fa_last_error());
    a.diagonal = FA_TOP_LEFT; /* queries 0 to 3 see keys 0 to 3 */
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "page_table[0][0] is -5"), "%s", fa_last_error());
    l.table[0][0] = 0;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NO_KERNEL, "%s", fa_last_error());
    fa_destroy(ctx);
}

Test(runtime_device_data, on_a_gpu_nothing_is_read_unless_asked)
{
    for (int32_t option = -1; option <= 1; option++) {
        fa_context *ctx = on_fake(option);
        lists l = good(ROWS_K);
        l.rows_k[0] = -1;
        fa_args a = args_of(ROWS_K, &l, ANYWHERE), dense = args_of(0, &l, ANYWHERE);
        long before = fake_calls("cuStreamIsCapturing");
        cr_expect_eq(fa_launch(ctx, &dense, NULL), FA_NO_KERNEL);
        cr_expect_eq(fake_calls("cuMemcpyDtoHAsync") + fake_calls("cuStreamSynchronize"), 0, "a dense call has nothing there");
        cr_expect_eq(fa_launch(ctx, &a, NULL), option == 1 ? FA_INVALID : FA_NO_KERNEL);
        cr_expect_eq(fake_calls("cuMemcpyDtoHAsync"), option == 1);
        cr_expect_eq(fake_calls("cuStreamSynchronize"), option == 1);
        cr_expect_eq(fake_calls("cuStreamIsCapturing") - before, option == 1);
        fa_destroy(ctx);
    }
}

Test(runtime_device_data, what_the_driver_refuses_is_told)
{
    fa_context *ctx = on_fake(1);
    lists l = good(ROWS_Q | ROWS_K);
    fa_args a = args_of(ROWS_Q | ROWS_K, &l, ANYWHERE);
    fake_fail("cuMemcpyDtoHAsync", 2, CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_DEVICE);
    cr_expect(strstr(fa_last_error(), "args: seqlens_k: cuMemcpyDtoHAsync"), "%s", fa_last_error());
    cr_expect_eq(fake_calls("cuStreamSynchronize"), 1, "no copy is under way any more");
    fake_fail("cuStreamSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_DEVICE);
    fake_capturing(true);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_CAPTURE);
    cr_expect(strstr(fa_last_error(), "check_device_data is 1"), "%s", fa_last_error());
    fa_destroy(ctx);
}

Test(runtime_device_data, the_option_has_three_values)
{
    fa_context *ctx;
    for (int32_t v = -2; v <= 2; v += 4) {
        fa_options o = FA_OPTIONS_INIT;
        char text[64];
        o.check_device_data = v;
        cr_expect_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_INVALID);
        snprintf(text, sizeof text, "check_device_data is %d; accepted: 0", v);
        cr_expect(strstr(fa_last_error(), text), "%s", fa_last_error());
    }
}

/* ---- the simulator ---- */

typedef struct device {
    fa_context *ctx;
    char *memory;
    lists *at;
} device;

/* What is right is launched, or with FA_MISS_FAIL is FA_NO_KERNEL. */
static device on_simulator(int32_t option, int32_t on_miss)
{
    fa_options o = FA_OPTIONS_INIT;
    device d = { NULL, NULL, NULL };
    void *at;
    o.device = "sim:sm_80";
    o.cache_dir = below("cache");
    o.check_device_data = option;
    o.on_miss = on_miss;
    OK(fa_create(&d.ctx, &o));
    OK(fa_alloc(d.ctx, &at, 4 << 20));
    d.memory = at;
    OK(fa_alloc(d.ctx, &at, sizeof(lists)));
    d.at = at;
    return d;
}

static void close_device(device *d)
{
    OK(fa_free(d->ctx, d->memory));
    OK(fa_free(d->ctx, d->at));
    fa_destroy(d->ctx);
}

static fa_status launch_lists(const device *d, unsigned which, const lists *l)
{
    fa_args a = args_of(which, d->at, d->memory);
    OK(fa_copy(d->ctx, d->at, l, sizeof *l, FA_TO_DEVICE));
    return fa_launch(d->ctx, &a, NULL);
}

Test(runtime_device_data, the_simulator_looks_by_itself, .init = scratch_make, .fini = scratch_remove, .timeout = 300)
{
    for (int32_t option = -1; option <= 0; option++) {
        device d = on_simulator(option, FA_MISS_FAIL);
        for (size_t i = 0; i < ROWS; i++) {
            lists l = changed(&rows[i]);
            if (option)
                cr_expect_eq(launch_lists(&d, rows[i].which, &l), FA_NO_KERNEL, "row %zu: %s", i, fa_last_error());
            else
                expect(launch_lists(&d, rows[i].which, &l), &rows[i], FA_NO_KERNEL);
        }
        close_device(&d);
    }
}

static uint64_t launches(void)
{
    sim_counters counted;
    sim_counters_get(&counted);
    return counted.launches;
}

/* A kernel that is there runs of good lists, and of bad ones only where nothing looks; pages that do not exist are zeros to it. */
Test(runtime_device_data, what_is_bad_is_not_launched, .init = scratch_make, .fini = scratch_remove, .timeout = 300)
{
    static char zeros[4 << 20];
    for (int32_t option = -1; option <= 0; option++) {
        device d = on_simulator(option, FA_MISS_COMPILE);
        lists l = good(ROWS_K | TABLE);
        fa_args a = args_of(ROWS_K | TABLE, d.at, d.memory);
        OK(fa_copy(d.ctx, d.memory, zeros, sizeof zeros, FA_TO_DEVICE));
        OK(fa_copy(d.ctx, d.at, &l, sizeof l, FA_TO_DEVICE));
        OK(fa_workspace_size(d.ctx, &a, &a.workspace_size));
        if (a.workspace_size) {
            OK(fa_alloc(d.ctx, &a.workspace, a.workspace_size));
            OK(fa_workspace_init(d.ctx, a.workspace, a.workspace_size, NULL));
        }
        uint64_t before = launches();
        OK(fa_launch(d.ctx, &a, NULL));
        uint64_t one = launches() - before;
        cr_expect_gt(one, 0);
        l.table[0][3] = -9;
        OK(fa_copy(d.ctx, d.at, &l, sizeof l, FA_TO_DEVICE));
        cr_expect_eq(fa_launch(d.ctx, &a, NULL), option ? FA_OK : FA_INVALID, "%s", fa_last_error());
        cr_expect_eq(launches() - before, option ? 2 * one : one);
        OK(fa_free(d.ctx, a.workspace));
        close_device(&d);
    }
}

/* The last columns of a wider table, which end with it; and one row that all sequences share, which is said by the flag. */
Test(runtime_device_data, tables_are_read_as_far_as_they_go, .init = scratch_make, .fini = scratch_remove, .timeout = 300)
{
    enum { ENTRIES = (SK + PAGE - 1) / PAGE, BYTES = 1 << 20, OUT = B * SQ * HQ * D };
    static uint16_t pool[BYTES / 2], out[4][OUT];
    device d = on_simulator(0, FA_MISS_COMPILE);
    lists l = good(ROWS_K);
    int32_t wide[B][STRIDE], whole[B][ENTRIES], shared[ENTRIES];
    void *at[4];
    for (size_t i = 0; i < sizeof pool / sizeof *pool; i++)
        pool[i] = (uint16_t)(0x3c00 + i * 2654435761u % 0x380); /* from 1/128 up */
    for (int i = 0; i < B; i++)
        for (int n = 0; n < STRIDE; n++)
            wide[i][n] = n < STRIDE - ENTRIES ? -7 : (n * 5) % PAGES;
    for (int i = 0; i < B; i++)
        memcpy(whole[i], wide[i] + STRIDE - ENTRIES, sizeof shared);
    memcpy(shared, whole[0], sizeof shared);
    l.rows_k[0] = SK, l.rows_k[1] = 61, l.rows_k[2] = 0;
    for (int i = 0; i < 3; i++)
        OK(fa_copy(d.ctx, d.memory + (i << 20), pool, sizeof pool, FA_TO_DEVICE));
    OK(fa_copy(d.ctx, d.at, &l, sizeof l, FA_TO_DEVICE));
    const struct {
        const void *from;
        size_t bytes, first;
        int64_t stride;
        uint32_t flags;
    } tables[4] = { { whole, sizeof whole, 0, 0, 0 },
                    { wide, sizeof wide, STRIDE - ENTRIES, STRIDE, 0 },
                    { shared, sizeof shared, 0, 0, FA_BROADCAST },
                    { wide, sizeof wide, STRIDE - ENTRIES, STRIDE, FA_BROADCAST } };
    for (int i = 0; i < 4; i++) {
        fa_args a = args_of(ROWS_K | TABLE, d.at, d.memory);
        OK(fa_alloc(d.ctx, &at[i], tables[i].bytes));
        OK(fa_copy(d.ctx, at[i], tables[i].from, tables[i].bytes, FA_TO_DEVICE));
        a.page_table = (const int32_t *)at[i] + tables[i].first, a.page_table_stride = tables[i].stride, a.flags = tables[i].flags;
        OK(fa_workspace_size(d.ctx, &a, &a.workspace_size));
        if (a.workspace_size) {
            OK(fa_alloc(d.ctx, &a.workspace, a.workspace_size));
            OK(fa_workspace_init(d.ctx, a.workspace, a.workspace_size, NULL));
        }
        OK(fa_launch(d.ctx, &a, NULL));
        OK(fa_copy(d.ctx, out[i], a.o.ptr, sizeof out[i], FA_FROM_DEVICE));
        OK(fa_free(d.ctx, a.workspace));
    }
    for (int i = 1; i < 4; i++)
        cr_expect(!memcmp(out[0], out[i], sizeof out[0]), "table %d", i);
    cr_expect_neq(out[0][0], 0);
    fa_args a = args_of(ROWS_K | TABLE, d.at, d.memory); /* packed rows of which there is one */
    a.page_table = at[2], a.page_table_stride = 0;
    cr_expect_neq(fa_launch(d.ctx, &a, NULL), FA_OK);
    cr_expect(strstr(fa_last_error(), "args: page_table") && strstr(fa_last_error(), "are not inside one allocation"), "%s",
              fa_last_error());
    close_device(&d);
}

Test(runtime_device_data, memory_that_is_not_there_is_told, .init = scratch_make, .fini = scratch_remove, .timeout = 300)
{
    device d = on_simulator(0, FA_MISS_FAIL);
    fa_args a = args_of(ROWS_K, (const lists *)(const void *)(d.memory + (64 << 20)), d.memory);
    cr_expect_eq(fa_launch(d.ctx, &a, NULL), FA_DEVICE);
    cr_expect(strstr(fa_last_error(), "seqlens_k") && strstr(fa_last_error(), "are not inside one allocation"), "%s", fa_last_error());
    close_device(&d);
}

/* Captured launches see other values with each replay. */
Test(runtime_device_data, what_is_captured_is_not_looked_at, .init = scratch_make, .fini = scratch_remove, .timeout = 300)
{
    for (int32_t option = 0; option < 2; option++) {
        device d = on_simulator(option, FA_MISS_FAIL);
        const cu_driver *sim = fa_context_driver(d.ctx);
        lists l = good(ROWS_K | TABLE);
        fa_args a = args_of(ROWS_K | TABLE, d.at, d.memory);
        fa_entered in;
        CUstream stream;
        CUgraph graph;
        l.table[0][0] = -1;
        OK(fa_copy(d.ctx, d.at, &l, sizeof l, FA_TO_DEVICE));
        OK(fa_context_enter(d.ctx, &in));
        cr_assert_eq(sim->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sim->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
        cr_expect_eq(fa_launch(d.ctx, &a, (fa_stream)stream), option ? FA_CAPTURE : FA_NO_KERNEL, "%s", fa_last_error());
        cr_expect_eq(sim->cuStreamEndCapture(stream, &graph), CUDA_SUCCESS, "the capture goes on");
        cr_assert_eq(sim->cuGraphDestroy(graph), CUDA_SUCCESS);
        cr_expect_eq(fa_launch(d.ctx, &a, (fa_stream)stream), FA_INVALID);
        cr_assert_eq(sim->cuStreamDestroy(stream), CUDA_SUCCESS);
        fa_context_leave(d.ctx, &in);
        close_device(&d);
    }
}
