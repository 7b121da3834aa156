/* product_integer: products of integers of 8 bits with sums of 32, which wrap: exact, in any order. */
#include "mma.h"
#include "run.h"
#include <string.h>

enum { ROWS = 16, COLUMNS = 8, MOST = 32 }; /* of mma: A has ROWS rows of at most MOST numbers, B as many columns of them */

static uint32_t sum_of(const int8_t *a, const int8_t *b, int n)
{
    int32_t sum = 0; /* of 32 products: far from its end */
    for (int k = 0; k < n; k++)
        sum += a[k] * b[k];
    return (uint32_t)sum;
}

/* A register of A or of B has four numbers of a row or a column, 4 (l % 4) on of its sixteen. */
sim_step sim_mma_integer(sim_warp *w, const sim_insn *i)
{
    int k = i->count, regs_a = k / 8, regs_b = k / 16, first = i->defs;
    int8_t a[ROWS][MOST], b[COLUMNS][MOST];
    uint32_t c[ROWS][COLUMNS];
    for (int r = 0; r < regs_a; r++)
        for (int l = 0; l < SIM_LANES; l++)
            memcpy(&a[(l >> 2) + 8 * (r & 1)][4 * (l & 3) + 16 * (r >> 1)], &sim_arg(w, i, first + r)->u[l], 4);
    for (int r = 0; r < regs_b; r++)
        for (int l = 0; l < SIM_LANES; l++)
            memcpy(&b[l >> 2][4 * (l & 3) + 16 * r], &sim_arg(w, i, first + regs_a + r)->u[l], 4);
    for (int r = 0; r < 4; r++)
        for (int l = 0; l < SIM_LANES; l++) {
            int row = (l >> 2) + 8 * (r >> 1), column = 2 * (l & 3) + (r & 1);
            c[row][column] = sim_arg(w, i, first + regs_a + regs_b + r)->u[l] + sum_of(a[row], b[column], k);
        }
    for (int r = 0; r < first; r++) {
        if (i->arg[r] == SIM_NO_ARG)
            continue;
        sim_vec *v = sim_arg(w, i, r);
        for (int l = 0; l < SIM_LANES; l++)
            v->u[l] = c[(l >> 2) + 8 * (r >> 1)][2 * (l & 3) + (r & 1)];
    }
    return STEP_NEXT;
}

void sim_product_integer(sim_product *p)
{
    int8_t column[MOST];
    for (uint32_t n = 0; n < p->n; n++) {
        for (int k = 0; k < MOST; k += 2) {
            column[k] = (int8_t)(p->b[k / 2][n] & 0xFF);
            column[k + 1] = (int8_t)(p->b[k / 2][n] >> 8);
        }
        for (uint32_t row = 0; row < ROWS; row++)
            p->c[row][n] += sum_of((const int8_t *)p->a[row], column, MOST);
    }
}
