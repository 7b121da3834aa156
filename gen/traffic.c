/* traffic: bytes through global memory of the algorithms of the literature.
 *
 * Three passes and two-dimensional tiles: the usual count of matrix products through a cache of one tile. FlashAttention-1:
 * Dao, Fu, Ermon, Rudra, Re, "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022, algorithm 1.
 * FlashAttention-2: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023,
 * algorithm 1. Every sum of one head is exact below 2^53, and rounded once beyond. */
#include "model.h"
#include "problem.h"
#include "row_tiles.h"
#include <stdbool.h>

double fa_traffic_read(const fa_traffic *t)
{
    return t->read_q + t->read_k + t->read_v + t->read_sp + t->read_out;
}

double fa_traffic_write(const fa_traffic *t)
{
    return t->write_o + t->write_lse + t->write_sp + t->write_grads;
}

double fa_traffic_total(const fa_traffic *t)
{
    return fa_traffic_read(t) + fa_traffic_write(t);
}

double fa_traffic_without_output(const fa_traffic *t)
{
    return fa_traffic_total(t) - t->write_o;
}

/* Bytes of one pass over each tensor, all query heads; K and V as many times as there are query heads, as those algorithms
 * know no groups. */
typedef struct pass {
    double q, k, v, s, o, rows;
} pass;

static pass pass_of(const fa_problem *p)
{
    double e = fa_dtype_bytes(p->dtype), heads = (double)p->b * p->hq, rows = heads * p->sq;
    return (pass){
        .q = rows * p->d * e,
        .k = heads * p->sk * p->d * e,
        .v = heads * p->sk * p->dv * e,
        .s = rows * p->sk * e,
        .o = rows * p->dv * fa_dtype_bytes(p->o_dtype),
        .rows = rows,
    };
}

fa_traffic fa_model_naive(const fa_problem *p)
{
    pass b = pass_of(p);
    return (fa_traffic){
        .read_q = b.q, .read_k = b.k, .read_v = b.v, .read_sp = 2 * b.s, .write_sp = 2 * b.s, .write_o = b.o, .held = 2 * b.s
    };
}

/* What the row tiles of all heads see (row_tiles.h). */
typedef struct seen {
    double rows;       /* of tiles that see a key: the others read nothing */
    double keys;       /* once per tile */
    double pairs;      /* rows times keys of each tile */
    double row_blocks; /* rows times blocks of bc keys of each tile */
    double columns;    /* keys that any row sees, per head */
    double all;        /* rows of all tiles */
} seen;

static seen see(const fa_problem *p, int64_t br, int64_t bc, bool pack, fa_band band)
{
    fa_row_tiles tiles = { p->sq, p->sk, pack && p->hkv ? p->hq / p->hkv : 1, br, bc, band };
    fa_row_tiles_sum t = fa_row_tiles_count(&tiles);
    double heads = (double)p->b * (pack ? p->hkv : p->hq);
    return (seen){ .rows = heads * t.rows,
                   .keys = heads * t.keys,
                   .pairs = heads * t.pairs,
                   .row_blocks = heads * t.row_blocks,
                   .columns = heads * (double)(t.end - t.first),
                   .all = heads * (double)(tiles.sq * tiles.group) };
}

/* S = Q K^T: a tile of rows keeps Q and reads every key once. score: bytes of an element of S and P. */
static fa_traffic scores_pass(const fa_problem *p, const seen *s, double score)
{
    double e = fa_dtype_bytes(p->dtype);
    return (
        fa_traffic){ .read_q = s->rows * p->d * e, .read_k = s->keys * p->d * e, .write_sp = s->pairs * score, .held = s->pairs * score };
}

/* P = softmax(S): every score once. */
static fa_traffic softmax_pass(const seen *s, double score)
{
    return (fa_traffic){ .read_sp = s->pairs * score, .write_sp = s->pairs * score, .held = s->pairs * score };
}

/* O = P V: a tile of rows reads every key's value once. */
static fa_traffic output_pass(const fa_problem *p, const seen *s, double score)
{
    return (fa_traffic){ .read_sp = s->pairs * score,
                         .read_v = s->keys * p->dv * fa_dtype_bytes(p->dtype),
                         .write_o = s->all * p->dv * fa_dtype_bytes(p->o_dtype) };
}

fa_traffic fa_traffic_sum(const fa_traffic *a, const fa_traffic *b)
{
    return (fa_traffic){ .read_q = a->read_q + b->read_q,
                         .read_k = a->read_k + b->read_k,
                         .read_v = a->read_v + b->read_v,
                         .read_sp = a->read_sp + b->read_sp,
                         .write_o = a->write_o + b->write_o,
                         .write_lse = a->write_lse + b->write_lse,
                         .write_sp = a->write_sp + b->write_sp,
                         .read_out = a->read_out + b->read_out,
                         .write_grads = a->write_grads + b->write_grads,
                         .held = a->held + b->held };
}

fa_traffic fa_model_tiled2d(const fa_problem *p, int tile, fa_band band, int score)
{
    seen s = see(p, tile, 1, false, band);
    fa_traffic scores = scores_pass(p, &s, score), softmax = softmax_pass(&s, score), output = output_pass(p, &s, score);
    fa_traffic both = fa_traffic_sum(&scores, &softmax);
    return fa_traffic_sum(&both, &output);
}

/* Line 2 of the algorithm writes O = 0, l = 0 and m = -inf; then every block of K reads and writes O, l and m of the tiles that see it. */
fa_traffic fa_model_flash1(const fa_problem *p, int br, int bc, fa_band band)
{
    seen s = see(p, br, bc, false, band);
    double e = fa_dtype_bytes(p->dtype), partial = 4 * p->dv, ml = 2 * 4;
    fa_traffic t = { .read_q = s.row_blocks * p->d * e,
                     .read_k = s.columns * p->d * e,
                     .read_v = s.columns * p->dv * e,
                     .read_sp = s.row_blocks * (partial + ml),
                     .write_sp = (s.row_blocks + s.all) * ml,
                     .held = s.all * ml };
    if (fa_dtype_bytes(p->o_dtype) == 4) {
        t.write_o = (s.row_blocks + s.all) * partial;
    } else { /* the partial O lies beside O, which is written at the end */
        t.read_sp += s.all * partial;
        t.write_sp += (s.row_blocks + s.all) * partial;
        t.write_o = s.all * p->dv * fa_dtype_bytes(p->o_dtype);
        t.held += s.all * partial;
    }
    return t;
}

fa_traffic fa_model_flash2(const fa_problem *p, int br, int pack, fa_band band, int lse)
{
    seen s = see(p, br, 1, pack, band);
    double e = fa_dtype_bytes(p->dtype);
    return (fa_traffic){
        .read_q = s.rows * p->d * e,
        .read_k = s.keys * p->d * e,
        .read_v = s.keys * p->dv * e,
        .write_o = s.all * p->dv * fa_dtype_bytes(p->o_dtype),
        .write_lse = lse ? s.all * 4 : 0,
        .held = lse ? s.all * 4 : 0,
    };
}

/* ---- by name ---- */

#define SCORE 4 /* bytes of an element of S and P in a kernel's workspace */

static fa_traffic flash2(const fa_problem *p, const fa_tile *t, fa_band band)
{
    return fa_model_flash2(p, t->rows, t->pack, band, 0);
}

static fa_traffic flash1(const fa_problem *p, const fa_tile *t, fa_band band)
{
    return fa_model_flash1(p, t->rows, t->cols, band);
}

static fa_traffic naive(const fa_problem *p, const fa_tile *t, fa_band band)
{
    (void)t, (void)band;
    return fa_model_naive(p);
}

static fa_traffic tiled2d(const fa_problem *p, const fa_tile *t, fa_band band)
{
    return fa_model_tiled2d(p, t->rows, band, SCORE);
}

static fa_traffic tiled2d_scores(const fa_problem *p, const fa_tile *t, fa_band band)
{
    seen s = see(p, t->rows, 1, false, band);
    return scores_pass(p, &s, SCORE);
}

static fa_traffic tiled2d_softmax(const fa_problem *p, const fa_tile *t, fa_band band)
{
    seen s = see(p, t->rows, 1, false, band);
    return softmax_pass(&s, SCORE);
}

static fa_traffic tiled2d_output(const fa_problem *p, const fa_tile *t, fa_band band)
{
    seen s = see(p, t->rows, 1, false, band);
    return output_pass(p, &s, SCORE);
}

/* The first is what work() means that names none. */
static const fa_algorithm algorithms[] = {
    { "flash2", flash2, true },
    { "flash1", flash1, false },
    { "naive", naive, false },
    { "tiled2d", tiled2d, true },
    { "tiled2d_scores", tiled2d_scores, true },
    { "tiled2d_softmax", tiled2d_softmax, false },
    { "tiled2d_output", tiled2d_output, true },
};

const fa_algorithm *fa_algorithm_row(size_t i)
{
    return i < sizeof algorithms / sizeof *algorithms ? &algorithms[i] : NULL;
}

double fa_model_tile_sram(const fa_problem *p, int br, int bc)
{
    bool backward = p->op == FA_BACKWARD;
    double rows = (double)br * (p->d + (backward ? p->dv : 0)), keys = (double)bc * (p->d + p->dv), scores = (double)br * bc;
    return (rows + keys + (backward ? 2 : 1) * scores) * fa_dtype_bytes(p->dtype);
}
