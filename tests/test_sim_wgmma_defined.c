/* Undefined elements of a wgmma's operands: a row of A, a column of B, an element that is added to; every other element of the result is
 * defined. */
#include "test_sim_wgmma.h"

TestSuite(sim_wgmma_defined, .init = open90a);

enum { ALL_BUT = 0, ONLY = 1 };
typedef struct hole {
    int row, column;
} hole; /* -1: all of them are undefined */

/* Stores the elements of the result that the hole does not make undefined, or only those. */
static const char *ending(const shape *s, hole h, int which)
{
    add("and.b32 %%r20, %%r0, 3; shr.u32 %%r21, %%r0, 2; mov.pred %%p6, 1;\n");
    for (int k = 0; k < s->n / 2; k++) {
        bool row = h.row < 0 || (k >> 1 & 1) == h.row % 16 / 8,
             column = h.column < 0 || (k >> 2 == h.column / 8 && (k & 1) == h.column % 2);
        if (!row || !column) {
            if (which == ALL_BUT)
                add("st.global.f32 [%%rd7+%d], %%c%d;\n", k * 1024, k);
            continue;
        }
        add("mov.pred %%p5, %%p6;\n");
        if (h.row >= 0)
            add("setp.eq.and.u32 %%p5, %%r21, %d, %%p5;\n", h.row / 16 * 8 + h.row % 8);
        if (h.column >= 0)
            add("setp.eq.and.u32 %%p5, %%r20, %d, %%p5;\n", h.column % 8 / 2);
        add("@%s%%p5 st.global.f32 [%%rd7+%d], %%c%d;\n", which == ALL_BUT ? "!" : "", k * 1024, k);
        if (which == ONLY)
            break; /* one is enough */
    }
    add("ret;\n}\n");
    return text;
}

/* `bytes` bytes at `at` of the buffer are never written. */
static void check(const shape *s, size_t at, size_t bytes, hole h, const char *what)
{
    static memory m;
    static numbers x;
    randomize(s, &x, 0);
    fill(&m, s, &x);
    CUdeviceptr a = buffer(NULL, sizeof m), b = buffer(NULL, 128 * 1024);
    cr_assert_eq(cu->cuMemcpyHtoD(a, &m, at), CUDA_SUCCESS);
    cr_assert_eq(cu->cuMemcpyHtoD(a + at + bytes, (char *)&m + at + bytes, sizeof m - at - bytes), CUDA_SUCCESS);
    for (int way = 0; way < 4; way++) {
        begin(s, FENCE);
        ISSUE(s, s->scale ? "1" : "0");
        product(s, "1");
        WAIT;
        CUfunction f = load(ending(s, h, way & 1));
        sim_set_options(&(sim_options){ .async = (sim_async)(way >> 1) });
        CUresult r = launch(f, 1, 128, SHARED, a, b);
        cr_expect_eq(r, way & 1 ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS, "%s, way %d: code %d\n%s", what, way, r, sim_report());
        if (way & 1)
            cr_expect(strstr(sim_report(), "global memory is read that was never written: address") != NULL, "%s: %s", what, sim_report());
    }
    cu->cuMemFree(a), cu->cuMemFree(b);
}

Test(sim_wgmma_defined, rows_columns_and_sums)
{
    static const int spans[] = { 16, 32, 64, 128 };
    for (int k = 0; k < 8; k++) {
        shape s = { .n = 72, .bf16 = k & 1, .a_shared = 1, .scale = 1 };
        s.a = tile_of(spans[k & 3], k >> 2, 64, 0), s.b = tile_of(spans[3 - (k & 3)], k >> 2, s.n, 16384);
        char what[64];
        snprintf(what, sizeof what, "A span %d, B span %d, mn %d", s.a.span, s.b.span, k >> 2);
        check(&s, (size_t)place(s.a, 27, 5), 2, (hole){ 27, -1 }, what);
        check(&s, (size_t)place(s.b, 69, 14), 2, (hole){ -1, 69 }, what);
    }
    shape s = { .n = 24, .scale = 1, .b = tile_of(64, 0, 24, 16384) };
    check(&s, offsetof(memory, a) + 16 * 75 + 4, 4, (hole){ 16 * 2 + 2 + 8, -1 },
          "A in registers"); /* thread 75: warp 2, lane 11; register 1 */
    check(&s, offsetof(memory, c) + 1024 * 7 + 4 * 75, 4, (hole){ 16 * 2 + 2 + 8, 8 + 2 * 3 + 1 }, "the accumulator"); /* its register 7 */
    s.scale = 0; /* what is not added to may be undefined */
    static memory m;
    static numbers x;
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    CUdeviceptr a = buffer(NULL, sizeof m), b = buffer(NULL, 128 * 1024);
    cr_assert_eq(cu->cuMemcpyHtoD(a, &m, offsetof(memory, c)), CUDA_SUCCESS);
    begin(&s, FENCE);
    ISSUE(&s, "0");
    WAIT;
    CUfunction f = load(end(&s));
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
        sim_set_options(&(sim_options){ .async = (sim_async)async });
        CUresult r = launch(f, 1, 128, SHARED, a, b);
        cr_expect_eq(r, CUDA_SUCCESS, "%s", sim_report());
    }
}
