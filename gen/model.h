/* model: bytes, operations and time of attention, as pure functions of (problem, config, arch). */
#ifndef FA_GEN_MODEL_H
#define FA_GEN_MODEL_H
#include "gen.h"
#include "pairs.h"

struct fa_space; /* space.h */
struct fa_point;

/* Global-memory traffic of one algorithm, in bytes; reads and writes apart, by tensor. */
typedef struct fa_traffic {
    double read_q, read_k, read_v, read_sp; /* sp: intermediates that travel through memory: S, P; FlashAttention-1: O, m, l */
    double write_o, write_lse, write_sp;
    double read_out, write_grads; /* of a backward pass: O, dO and what is a number for each row of them; dQ, dK, dV */
    double held;                  /* memory held beside Q, K, V, O: S, P, LSE */
} fa_traffic;
double fa_traffic_read(const fa_traffic *t);
double fa_traffic_write(const fa_traffic *t);
double fa_traffic_total(const fa_traffic *t);
/* The total less the write of O: how the literature counts the three-pass algorithm, 12 N d + 16 N^2 bytes in fp32. */
double fa_traffic_without_output(const fa_traffic *t);
fa_traffic fa_traffic_sum(const fa_traffic *a, const fa_traffic *b);

/* FLOPs of the operation's products over visible pairs, forward 2 * pairs * (d + dv), and of the rest, forward 5 per pair (scale, max,
 * subtract and exponentiate, sum, divide), over all heads and batches. */
double fa_model_matrix_flops(const fa_problem *p, fa_band band);
double fa_model_other_flops(const fa_problem *p, fa_band band);

/* Traffic of the algorithms of the literature. Shapes from p (b, hq, hkv, sq, sk, d, dv, dtype). lse: count its write. K and V are read for
 * each query head; under a mask rows and keys are read that a tile of rows sees, as the kernels do. */
fa_traffic fa_model_naive(const fa_problem *p); /* three passes over all pairs, S and P through memory */
/* Two-dimensional tiles without online softmax: each product keeps a tile of its result's rows, so that K and V are read once per row of
 * tiles; S and P are written once and read once. score: bytes of an element of S and P, in the literature that of the inputs. */
fa_traffic fa_model_tiled2d(const fa_problem *p, int tile, fa_band band, int score);
/* K/V outer loop: K and V are read once; Q, and O, m and l in fp32, are read and the latter three written again for each block of bc keys,
 * and written once before the first. A 16-bit O is written at the end, from the partial one. */
fa_traffic fa_model_flash1(const fa_problem *p, int br, int bc, fa_band band);
/* Q outer loop. rows = br of the tile; pack as in fa_step; K and V rows are read once per tile, exactly those that some
 * row of the tile sees: what the kernels do and what the simulator counts. */
fa_traffic fa_model_flash2(const fa_problem *p, int br, int pack, fa_band band, int lse);
/* SRAM of one tile with Q, K, V and S resident, of a backward pass with Q, dO, K, V, P and dS, in bytes, fp32 or 2-byte elements as the
 * dtype says. */
double fa_model_tile_sram(const fa_problem *p, int br, int bc);

/* The same by the names that work() of a family knows: of all steps together, or of one pass: docs/templates.md. */
typedef struct fa_tile {
    int32_t rows, cols;
    bool pack;
} fa_tile;
typedef struct fa_algorithm {
    const char *name;
    fa_traffic (*traffic)(const fa_problem *p, const fa_tile *t, fa_band band); /* without LSE */
    bool shares; /* blocks at work read the same K and V: out of the L2 as far as they fit it */
} fa_algorithm;
const fa_algorithm *fa_algorithm_row(size_t i); /* NULL past the last */

/* What one config costs on one chip: sums over its steps. What has no sum is of the step that takes longest. */
typedef struct fa_cost {
    double seconds;                                       /* the model's time of one launch */
    double t_matrix, t_exp, t_issue, t_smem, t_l2, t_hbm; /* seconds each unit is busy; the largest is the bound */
    const char *bound;                                    /* "matrix" "exp" "issue" "smem" "l2" "hbm" */
    double flops, bytes;                                  /* matrix + other FLOPs; global bytes */
    int32_t blocks_sm;                                    /* resident blocks per SM */
    const char *limiter; /* what limits them: "smem" "regs" "threads" "blocks"; "grid": a persistent one has no more */
    double occupancy;    /* resident warps over the SM's warps */
    int64_t grid;        /* blocks of the launch: of a persistent grid those that stay */
    double waves;        /* grid / (SMs * blocks_sm) */
    fa_traffic traffic;
    bool packed; /* the query heads of a group share the rows of a tile */
} fa_cost;

/* regs > 0: the compiler's count replaces the family's estimate. */
fa_status fa_model_cost(fa_gen *g, const fa_problem *p, const fa_config *c, const fa_arch *a, int regs, fa_cost *out);

/* The same for a config that a caller names under a budget of shared memory (0 = the chip's), which need not be listed: constraints that
 * only say what is not worth trying do not reject it. *pt is what it takes (may be NULL), set where it runs, though it have no price. */
fa_status fa_model_named(fa_gen *g, const fa_problem *in, const fa_config *c, const fa_arch *a, int32_t budget, int regs,
                         struct fa_point *pt, fa_cost *out);

/* What a config that runs costs at the ends of a bucket, shapes of one class: what its family says without the shape it is asked once. */
#define FA_MODEL_ENDS 2
fa_status fa_model_ends(fa_gen *g, const fa_problem in[FA_MODEL_ENDS], const fa_config *c, const fa_arch *a, fa_cost out[FA_MODEL_ENDS]);

/* The cost of every point of the space that fits and that the model can price, told in the order of the space; once for thousands it
 * is quicker than one by one. in is the problem that the space was listed for, with its shape. FA_OK when one was told; else why the last
 * one has no price. A fault in a template ends it. */
typedef void fa_model_tell(void *user, size_t point, const fa_cost *cost);
fa_status fa_model_space(fa_gen *g, const fa_problem *in, const struct fa_space *s, const fa_arch *a, fa_model_tell *tell, void *user);

/* The same under each of n shapes of one class, 1 to FA_MODEL_SHAPES: a point is told under every shape before the next point is. What a
 * family says without the shape, its layout and its steps, it is asked once for each point. */
#define FA_MODEL_SHAPES 32
typedef void fa_model_tell_shape(void *user, size_t shape, size_t point, const fa_cost *cost);
fa_status fa_model_shapes(fa_gen *g, const fa_problem *in, size_t n, const struct fa_space *s, const fa_arch *a, fa_model_tell_shape *tell,
                          void *user);

/* The tiles of a step, of all heads and batches; the runtime and the model share it. 0: there is nothing to do. -1: more than 2^31 - 1. */
int64_t fa_step_total(const fa_step *s, const fa_sizes *sizes);
/* The blocks that are launched for total tiles: a cluster per tile, of a persistent grid no more of them than the SMs
 * take. -1: more than 2^31 - 1. */
int64_t fa_step_grid(const fa_step *s, int64_t total, int32_t sm_count);
/* Query rows of a tile, packed or not; 0 where the grid is not over them. */
int32_t fa_step_row_tile(const fa_step *s);
/* Keys of a tile; 0 where the grid is not over them. */
int32_t fa_step_key_tile(const fa_step *s);
/* Query heads of a group that a tile has; 0 where the grid is not over them, and it has all of a launch. */
int32_t fa_step_heads_tile(const fa_step *s);
/* Whether the query heads of a group share rows. */
bool fa_step_packs(const fa_step *s);
/* Whether its grid is over units: it is launched for a portion at a time, fa_workspace_portion(). */
bool fa_step_chunked(const fa_step *s);
/* Keys of heads that fit two thirds of the L2. seen: the keys of a head that one tile sees; where they are fewer than sk, as in a window,
 * all heads together take as many again as rows are at work on the chip. It may be negative. */
int64_t fa_step_section_keys(const fa_problem *p, int64_t seen, int64_t at_work, int64_t l2_bytes);
/* Heads of one L2 section: as many KV heads (times the group where rows are not packed) as have their keys in the L2, of which a tile sees
 * no more than `seen`, less what makes the sections equally wide. At least 1. */
int32_t fa_step_section(const fa_step *s, const fa_problem *p, int64_t seen, int64_t at_work, int64_t l2_bytes);
#endif
