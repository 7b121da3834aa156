/* mma: products of matrices as the tensor cores round them. */
#ifndef SIM_MMA_H
#define SIM_MMA_H
#include "exec.h"

enum { SIM_COLUMNS = 256 };

/* 16 rows by n columns, by k = 16 of f16 or bf16, by k = 8 of tf32 or by k = 32 of e4m3, e5m2 or s8. All numbers are bits. */
typedef struct sim_product {
    sim_type type, type_b;                    /* T_F16, T_BF16, T_TF32, T_E4M3, T_E5M2 or T_S8; type_b: of b, of the first two of 8 bits */
    bool half;                                /* accumulated in f16: c holds such values, as f32 */
    uint32_t n;                               /* columns: a multiple of 8, at most SIM_COLUMNS */
    uint16_t a[16][16];                       /* row, k; of 8 bits k and k + 1 of each even k, the first in the lower byte */
    uint16_t b[16][SIM_COLUMNS];              /* k, column; likewise */
    uint32_t a32[16][8], b32[8][SIM_COLUMNS]; /* the same of tf32, whose lowest 13 bits do not count */
    uint32_t c[16][SIM_COLUMNS];              /* the accumulator; becomes the result */
    struct sim_decoded {
        float v[32][SIM_COLUMNS];
        int32_t e[32][SIM_COLUMNS];
    } da, db; /* scratch of the fast way: values and exponents of a and b */
} sim_product;

/* The cluster's place for one, made by the first call and freed with the cluster; NULL: no memory. */
sim_product *sim_product_of(sim_cluster *c);

/* c += a * b. The fast way serves finite operands whose products cannot overflow, the slow one everything; where both may, they
 * agree in every bit. sim_product_fast() returns false, having done nothing, where it does not apply. */
void sim_product_run(sim_product *p, const sim_arch *arch);
bool sim_product_fast(sim_product *p, const sim_arch *arch);
void sim_product_slow(sim_product *p, const sim_arch *arch);
void sim_product_eight(sim_product *p, const sim_arch *arch); /* the one way of numbers of 8 bits */
void sim_product_integer(sim_product *p);                     /* and of integers, sums of 32 bits likewise */
sim_step sim_mma_integer(sim_warp *w, const sim_insn *i);     /* mma.sync of integers of 8 bits */
#endif
