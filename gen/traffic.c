/* traffic: bytes through global memory of the algorithms of the literature.
 *
 * Three passes and two-dimensional tiles: the usual count of matrix products through a cache of one tile. FlashAttention-1:
 * Dao, Fu, Ermon, Rudra, Re, "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022, algorithm 1.
 * FlashAttention-2: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023,
 * algorithm 1. Every sum is exact below 2^53. */
#include "model.h"
#include "problem.h"

double fa_traffic_read(const fa_traffic *t)
{
    return t->read_q + t->read_k + t->read_v + t->read_sp;
}

double fa_traffic_write(const fa_traffic *t)
{
    return t->write_o + t->write_lse + t->write_sp;
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

static double tiles_of(int64_t n, int64_t tile)
{
    return (double)((n + tile - 1) / tile);
}

fa_traffic fa_model_naive(const fa_problem *p)
{
    pass b = pass_of(p);
    return (fa_traffic){ .read_q = b.q, .read_k = b.k, .read_v = b.v, .read_sp = 2 * b.s, .write_sp = 2 * b.s, .write_o = b.o,
                         .held = 2 * b.s };
}

/* Each product keeps a tile of its result's rows, so K and V are read once per row of tiles; S and P go through memory. */
fa_traffic fa_model_tiled2d(const fa_problem *p, int tile)
{
    fa_traffic t = fa_model_naive(p);
    double n = tiles_of(p->sq, tile);
    t.read_k *= n;
    t.read_v *= n;
    return t;
}

/* Q, O, m and l are read, and O, m and l written, once per block of K; br only cuts that pass into pieces. */
fa_traffic fa_model_flash1(const fa_problem *p, int br, int bc)
{
    pass b = pass_of(p);
    double n = tiles_of(p->sk, bc), ml = 2 * 4 * b.rows;
    (void)br;
    return (fa_traffic){ .read_q = n * b.q, .read_k = b.k, .read_v = b.v, .read_sp = n * (b.o + ml), .write_o = n * b.o,
                         .write_lse = n * ml, .held = ml };
}

fa_traffic fa_model_flash2(const fa_problem *p, int br, int pack, fa_band band, int lse)
{
    int64_t group = pack && p->hkv ? p->hq / p->hkv : 1, rows = p->sq * group, keys = 0;
    int64_t queries = 0; /* rows of tiles that see a key: the others read nothing */
    double heads = (double)p->b * (pack ? p->hkv : p->hq), e = fa_dtype_bytes(p->dtype);
    for (int64_t r = 0; r < rows; r += br) {
        int64_t last = r + br < rows ? r + br - 1 : rows - 1;
        int64_t hi = last / group + band.hi, lo = r / group + band.lo;
        hi = hi < p->sk ? hi : p->sk - 1;
        lo = lo > 0 ? lo : 0;
        keys += hi >= lo ? hi - lo + 1 : 0;
        queries += hi >= lo ? last - r + 1 : 0;
    }
    double all = heads * (double)rows, read = heads * (double)keys;
    return (fa_traffic){
        .read_q = heads * (double)queries * p->d * e,
        .read_k = read * p->d * e,
        .read_v = read * p->dv * e,
        .write_o = all * p->dv * fa_dtype_bytes(p->o_dtype),
        .write_lse = lse ? all * 4 : 0,
        .held = lse ? all * 4 : 0,
    };
}

double fa_model_tile_sram(const fa_problem *p, int br, int bc)
{
    return ((double)br * p->d + (double)bc * p->d + (double)bc * p->dv + (double)br * bc) * fa_dtype_bytes(p->dtype);
}
