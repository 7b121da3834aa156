/* defined_matrix: undefined elements in products of matrices. A register of A holds elements of one row, a register of B of one
 * column, so a lane's bit is all there is to know of them. */
#include "defined.h"
#include "descriptor.h"
#include "mma.h"
#include "run.h"

typedef struct sides {
    uint16_t rows;
    uint64_t columns[SIM_COLUMNS / 64];
} sides; /* with an undefined element: rows of A, columns of B */

static bool column(const sides *s, uint32_t n)
{
    return s->columns[n >> 6] >> (n & 63) & 1;
}

/* Registers of A and of B, as mma and wgmma hold them. */
static void rows_of(const sim_warp *w, const sim_insn *i, int first, int n, sides *s)
{
    for (int r = 0; r < n; r++)
        FOR_LANES(l, sim_undefined(w, i, first + r)) s->rows |= (uint16_t)(1u << ((l >> 2) + 8 * (r & 1)));
}
static void columns_of(const sim_warp *w, const sim_insn *i, int first, int n, sides *s)
{
    for (int r = 0; r < n; r++)
        FOR_LANES(l, sim_undefined(w, i, first + r)) s->columns[0] |= 1ull << (l >> 2);
}

/* The lanes of register k whose element is in such a row, in such a column. */
static uint32_t lanes_of_rows(const sides *s, uint32_t half)
{
    uint32_t lanes = 0;
    for (uint32_t r = 0; r < 8; r++)
        if (s->rows >> (r + 8 * half) & 1)
            lanes |= 0xFu << 4 * r;
    return lanes;
}
static uint32_t lanes_of_columns(const sides *s, uint32_t eight, uint32_t odd)
{
    uint32_t lanes = 0;
    for (uint32_t q = 0; q < 4; q++)
        if (column(s, 8 * eight + 2 * q + odd))
            lanes |= 0x11111111u << q;
    return lanes;
}

/* The accumulators: register c + k is added to, register k is the result. f32: two registers per row and eight columns; f16: one, of
 * which each half is an element. */
static void results(sim_warp *w, const sim_insn *i, const sides *s, int c, bool added, bool whole, const sim_origin *from)
{
    uint64_t all[4][SIM_LANES]; /* an mma's accumulators may be its destinations in another order; a wgmma's are its destinations */
    uint32_t lanes[4];
    sim_origin origins[4];
    for (int k = 0; k < i->defs; k++) {
        uint64_t *bits = all[k & 3];
        uint32_t half = whole ? (uint32_t)k >> 1 & 1 : (uint32_t)k & 1, eight = whole ? (uint32_t)k >> 2 : (uint32_t)k >> 1;
        uint32_t before = added ? sim_undefined(w, i, c + k) : 0, rows = lanes_of_rows(s, half);
        uint32_t low = rows | lanes_of_columns(s, eight, whole ? (uint32_t)k & 1 : 0),
                 high = whole ? low : rows | lanes_of_columns(s, eight, 1);
        origins[k & 3] = before ? *sim_undefined_origin(w, i, c + k) : *from;
        lanes[k & 3] = low | high | before;
        FOR_LANES(l, lanes[k & 3])
        {
            uint64_t was = sim_undefined_in(w, i, c + k, l);
            bits[l] = (low >> l & 1 ? 0xFFFFu : 0) | (high >> l & 1 ? 0xFFFF0000u : 0);
            if (before >> l & 1)
                bits[l] |= whole ? SIM_ALL : (was & 0xFFFF ? 0xFFFFu : 0) | (was >> 16 ? 0xFFFF0000u : 0);
        }
        for (int x = k & ~3; (k & 3) == 3 || k + 1 == i->defs ? x <= k : 0; x++)
            if (i->arg[x] != SIM_NO_ARG)
                sim_undefined_put(w, i, x, all[x & 3], lanes[x & 3], SIM_ALL, &origins[x & 3]);
    }
}

static sim_origin first_origin(const sim_warp *w, const sim_insn *i, int from, int to)
{
    for (int a = from; a < to; a++)
        if (sim_undefined(w, i, a))
            return *sim_undefined_origin(w, i, a);
    return (sim_origin){ .insn = i };
}

/* Destinations, A, B, as many accumulators as destinations: 16 rows and 8 columns, A twice as large as B. */
void sim_defined_mma(sim_warp *w, const sim_insn *i)
{
    int d = i->defs, n = i->args - 2 * d, b = n / 3;
    sides s = { 0 };
    sim_origin from = first_origin(w, i, d, i->args);
    rows_of(w, i, d, n - b, &s);
    columns_of(w, i, d + n - b, b, &s);
    results(w, i, &s, d + n, true, d == 4, &from);
}

static uint32_t holes_of(const sim_warp *w, const sim_matrix *m, uint32_t x, uint32_t y)
{
    return sim_shared_holes(w->block, sim_matrix_chunk(m, x, y) - SIM_SHARED_BASE, 16);
}

void sim_defined_wgmma(sim_warp *w, const sim_insn *i, const sim_matrix *a, const sim_matrix *b, bool scale)
{
    uint32_t n = i->count * 8u, first = w->index % 4 * 16, from_a = UINT32_MAX, from_b = UINT32_MAX, any = 0;
    sides s = { 0 };
    for (int k = 0; k < i->defs + (a ? 0 : 4); k++)
        any |= sim_undefined(w, i, k);
    if (!any && !w->shadow.met)
        return;
    sim_origin from = first_origin(w, i, i->defs, a ? i->defs : i->defs + 4);
    if (!a)
        rows_of(w, i, i->defs, 4, &s);
    for (uint32_t x = 0; x < 16 && a && w->shadow.met; x++)
        for (uint32_t y = 0; y < 2; y++) {
            uint32_t cx = a->mn ? x : first + x, cy = a->mn ? first / 8 + y : y, h = holes_of(w, a, cx, cy);
            if (!h)
                continue;
            if (from_a == UINT32_MAX)
                from_a = sim_matrix_chunk(a, cx, cy) - SIM_SHARED_BASE + (uint32_t)__builtin_ctz(h);
            if (!a->mn)
                s.rows |= (uint16_t)(1u << x);
            else
                for (uint32_t k = 0; k < 8; k++)
                    if (h >> 2 * k & 3)
                        s.rows |= (uint16_t)(1u << (8 * y + k));
        }
    for (uint32_t x = 0; x < (b->mn ? 16 : n) && w->shadow.met; x++)
        for (uint32_t y = 0; y < (b->mn ? n / 8 : 2); y++) {
            uint32_t h = holes_of(w, b, x, y);
            if (!h)
                continue;
            if (from_b == UINT32_MAX)
                from_b = sim_matrix_chunk(b, x, y) - SIM_SHARED_BASE + (uint32_t)__builtin_ctz(h);
            if (!b->mn)
                s.columns[x >> 6] |= 1ull << (x & 63);
            else
                for (uint32_t k = 0; k < 8; k++)
                    if (h >> 2 * k & 3)
                        s.columns[y >> 3] |= 1ull << ((8 * y + k) & 63);
        }
    if (from_a != UINT32_MAX)
        from = sim_shared_origin(w->block, i, from_a);
    else if (from_b != UINT32_MAX)
        from = sim_shared_origin(w->block, i, from_b);
    results(w, i, &s, 0, scale, i->defs == i->count * 4, &from);
}
