/* literature: rows of algorithms, and the backward passes, which no family's work() names.
 *
 * Naive backward: Dao, Fu, Ermon, Rudra, Re 2022, algorithm 3; FlashAttention-1: its algorithm 4. FlashAttention-2: Dao 2023, algorithm 2.
 * The forward is in traffic.c. */
#include "literature.h"
#include "problem.h"
#include "row_tiles.h"

/* Bytes of each tensor once, of all query heads. */
typedef struct once {
    double q, k, v, o, s, rows;
} once;

static once once_of(const fa_problem *p)
{
    double e = fa_dtype_bytes(p->dtype), heads = (double)p->b * p->hq, rows = heads * p->sq;
    return (once){ .q = rows * p->d * e,
                   .k = heads * p->sk * p->d * e,
                   .v = heads * p->sk * p->dv * e,
                   .o = rows * p->dv * fa_dtype_bytes(p->o_dtype),
                   .s = rows * p->sk * e,
                   .rows = rows };
}

int fa_literature_naive_passes(const fa_problem *p, fa_literature_pass out[FA_LITERATURE_PASSES])
{
    once b = once_of(p);
    double pairs = (double)p->b * p->hq * p->sq * p->sk, qk = 2 * pairs * p->d, pv = 2 * pairs * p->dv;
    const fa_literature_pass forward[] = { { qk, b.q + b.k + b.s }, { 0, 2 * b.s }, { pv, b.s + b.v + b.o } };
    const fa_literature_pass backward[] = { { pv, b.s + b.o + b.v }, /* dV of P and dO */
                                            { pv, b.o + b.v + b.s }, /* dP of dO and V */
                                            { 0, 3 * b.s },          /* dS of P and dP */
                                            { qk, b.s + b.k + b.q }, /* dQ */
                                            { qk, b.s + b.q + b.k } /* dK */ };
    int n = p->op == FA_FORWARD ? 3 : p->op == FA_BACKWARD ? 5 : 0;
    for (int i = 0; i < n; i++)
        out[i] = p->op == FA_FORWARD ? forward[i] : backward[i];
    return n;
}

static fa_traffic naive(const fa_problem *p, int br, int bc, fa_band band)
{
    (void)br, (void)bc, (void)band;
    return fa_model_naive(p);
}

static fa_traffic tiled2d(const fa_problem *p, int br, int bc, fa_band band)
{
    (void)bc;
    return fa_model_tiled2d(p, br, band, fa_dtype_bytes(p->dtype));
}

static fa_traffic flash2(const fa_problem *p, int br, int bc, fa_band band)
{
    (void)bc;
    return fa_model_flash2(p, br, 0, band, 0);
}

static fa_traffic naive_backward(const fa_problem *p, int br, int bc, fa_band band)
{
    once b = once_of(p);
    (void)br, (void)bc, (void)band;
    return (fa_traffic){ .read_q = b.q,
                         .read_k = b.k,
                         .read_v = b.v,
                         .read_sp = 5 * b.s,
                         .read_out = 2 * b.o,
                         .write_sp = 2 * b.s,
                         .write_grads = b.q + b.k + b.v,
                         .held = 3 * b.s };
}

/* What both algorithms do for each block of bc keys and the rows of each tile of br that sees one of them: Q and dO are read, and dQ is
 * read and written in fp32. K and V are read once, dK and dV written. outputs: tensors of O's size that are read; rest: bytes of a row of
 * it, the softmax's. */
static fa_traffic of_visits(const fa_problem *p, int br, int bc, fa_band band, int outputs, int rest)
{
    fa_row_tiles tiles = { p->sq, p->sk, 1, br, bc, band };
    fa_row_tiles_sum t = fa_row_tiles_count(&tiles);
    once b = once_of(p);
    double heads = (double)p->b * p->hq, e = fa_dtype_bytes(p->dtype), visits = heads * t.row_blocks, sums = 4.0 * p->d,
           keys = heads * (double)(t.end - t.first);
    fa_traffic out = { .read_q = visits * p->d * e,
                       .read_k = keys * p->d * e,
                       .read_v = keys * p->dv * e,
                       .read_out = visits * (outputs * p->dv * fa_dtype_bytes(p->o_dtype) + rest),
                       .read_sp = visits * sums,
                       .write_sp = (visits + b.rows) * sums, /* zeros before the first */
                       .write_grads = b.k + b.v };
    if (fa_dtype_bytes(p->dtype) < 4) { /* the sums lie beside dQ, which is written at the end */
        out.read_sp += b.rows * sums;
        out.write_grads += b.q;
        out.held = b.rows * sums;
    }
    return out;
}

static fa_traffic flash1_backward(const fa_problem *p, int br, int bc, fa_band band)
{
    return of_visits(p, br, bc, band, 2, 8); /* O, dO; m and l */
}

/* D = rowsum(dO O) is computed first, so that no turn reads O. */
static fa_traffic flash2_backward(const fa_problem *p, int br, int bc, fa_band band)
{
    once b = once_of(p);
    fa_traffic t = of_visits(p, br, bc, band, 1, 8); /* dO; LSE and D */
    t.read_out += 2 * b.o;
    t.write_lse += 4 * b.rows;
    t.held += 4 * b.rows;
    return t;
}

static const fa_literature rows[] = {
    { FA_FORWARD, "naive", "naive: S and P through memory", naive },
    { FA_FORWARD, "tiled2d", "2-D tiles without online softmax", tiled2d },
    { FA_FORWARD, "flash1", "FlashAttention-1 (K/V outer loop)", fa_model_flash1 },
    { FA_FORWARD, "flash2", "FlashAttention-2 (Q outer loop)", flash2 },
    { FA_BACKWARD, "naive", "naive: P, dP and dS through memory", naive_backward },
    { FA_BACKWARD, "flash1", "FlashAttention-1 (K/V outer loop)", flash1_backward },
    { FA_BACKWARD, "flash2", "FlashAttention-2 (K/V outer loop)", flash2_backward },
};

const fa_literature *fa_literature_row(int32_t op, size_t i)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].op == op && !i--)
            return &rows[k];
    return NULL;
}

fa_traffic fa_literature_naive(const fa_problem *p)
{
    const fa_literature *row = fa_literature_row(p->op, 0);
    return row ? row->traffic(p, 1, 1, fa_band_of_problem(p)) : (fa_traffic){ 0 };
}
