/* matrix: ldmatrix, stmatrix and movmatrix. Lane 8m+r gives the address of row r (16 bytes) of matrix m; lane l holds in register m the
 * elements (l/4, 2(l%4)) and the next, with .trans (2(l%4), l/4) and the one below. Each matrix is one pass over the banks. */
#include "defined.h"
#include "run.h"
#include <string.h>

static bool rows(sim_warp *w, const sim_insn *i, int arg, uint32_t m, uint8_t *row[32], uint32_t at[32])
{
    sim_block *b = w->block;
    int n = i->count * 8;
    if (m != SIM_ALL)
        return sim_fault(w, i, -1, SIM_CHECK_DIVERGENCE, "a matrix instruction needs all 32 lanes, but the mask is 0x%08x", m), false;
    for (int l = 0; l < n; l++) {
        uint64_t a = sim_address(w, i, arg, i->flags & F_WIDE, (uint32_t)l);
        if (sim_space_of((sim_space)i->space, &a) != SP_SHARED)
            return sim_fault(w, i, l, SIM_CHECK_BOUNDS, "a matrix row outside of shared memory"), false;
        if (!(row[l] = sim_shared(w, i, l, a, 16)))
            return false;
        at[l] = (uint32_t)(row[l] - b->shared);
    }
    for (int k = 0; k < n; k += 8)
        sim_count_banks(b, at, 0xFFu << k, 16);
    return true;
}

sim_step sim_run_ldmatrix(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint8_t *row[32];
    uint32_t at[32];
    int n = i->count;
    if (!rows(w, i, n, m, row, at))
        return STEP_FAULT;
    w->shadow.met = false;
    if (w->block->checked)
        for (int l = 0; l < 8 * n; l++)
            if (!sim_shared_read(w, i, l, at[l], 16))
                return STEP_FAULT;
    for (int k = 0; k < n; k++) {
        if (i->arg[k] == SIM_NO_ARG)
            continue;
        sim_vec *d = sim_arg(w, i, k);
        uint8_t *const *r = row + 8 * k;
        if (!(i->flags & F_TRANS)) {
            for (int g = 0; g < 8; g++)
                memcpy(&d->u[4 * g], r[g], 16);
            continue;
        }
        uint16_t e[8][8];
        for (int g = 0; g < 8; g++)
            memcpy(e[g], r[g], 16);
        for (int l = 0; l < 32; l++)
            d->u[l] = e[2 * (l & 3)][l >> 2] | (uint32_t)e[2 * (l & 3) + 1][l >> 2] << 16;
    }
    if (w->shadow.met)
        sim_defined_ldmatrix(w, i, at);
    w->block->counts.c.shared_read += 128u * (uint32_t)n;
    return STEP_NEXT;
}

sim_step sim_run_stmatrix(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint8_t *row[32], e[32][16];
    uint32_t at[32];
    int n = i->count;
    if (!rows(w, i, 0, m, row, at))
        return STEP_FAULT;
    for (int k = 0; k < n; k++) {
        const sim_vec *v = sim_arg(w, i, 1 + k);
        for (int l = 0; l < 32; l++)
            for (int h = 0; h < 2; h++) {
                uint16_t x = (uint16_t)(v->u[l] >> 16 * h);
                int r = i->flags & F_TRANS ? 2 * (l & 3) + h : l >> 2, c = i->flags & F_TRANS ? l >> 2 : 2 * (l & 3) + h;
                memcpy(e[8 * k + r] + 2 * c, &x, 2);
            }
    }
    for (int l = 0; l < 8 * n; l++) {
        if (w->block->checked && !sim_shared_write(w, i, l, at[l], 16, e[l]))
            return STEP_FAULT;
        memcpy(row[l], e[l], 16);
    }
    for (int l = 0; l < 8 * n && w->block->checked; l++)
        if (memcmp(row[l], e[l], 16) &&
            sim_fault(w, i, l, SIM_CHECK_COLLISION, "race in shared memory: lanes of one store write different values to offset %u",
                      at[l]) == STEP_FAULT)
            return STEP_FAULT;
    if (w->shadow.slots)
        sim_defined_stmatrix(w, i, at);
    w->block->counts.c.shared_write += 128u * (uint32_t)n;
    return STEP_NEXT;
}

/* Lane l gets elements (2(l%4), l/4) and the one below, which lane 8(l%4) + l/8 has and the one four on. */
sim_step sim_run_movmatrix(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec a = *sim_arg(w, i, 1);
    if (m != SIM_ALL)
        return sim_fault(w, i, -1, SIM_CHECK_DIVERGENCE, "a matrix instruction needs all 32 lanes, but the mask is 0x%08x", m);
    if (w->shadow.slots)
        sim_defined_movmatrix(w, i);
    if (i->arg[0] == SIM_NO_ARG)
        return STEP_NEXT;
    sim_vec *d = sim_arg(w, i, 0);
    for (uint32_t l = 0; l < 32; l++) {
        uint32_t from = 8 * (l & 3) + (l >> 3), shift = 16 * (l >> 2 & 1);
        d->u[l] = (a.u[from] >> shift & 0xFFFF) | (a.u[from + 4] >> shift & 0xFFFF) << 16;
    }
    return STEP_NEXT;
}
