/* wgmma_operands: the 16 rows of a warp out of A, B and the accumulator, as they lie in shared memory and in registers. */
#include "wgmma_operands.h"
#include "alu.h"
#include "mma.h"
#include "proxy.h"
#include "run.h"
#include <string.h>

uint32_t sim_wgmma_registers(const sim_insn *i)
{
    return i->count * (i->type2 == T_F16 ? 2u : 4u);
}

/* Calls each() with the arena offset of every chunk of A's 16 rows and of B. false: each() said so. */
static bool chunks(sim_warp *w, const sim_wgmma *p, bool (*each)(sim_warp *, const sim_insn *, uint32_t))
{
    const sim_insn *i = p->insn;
    uint32_t row = w->index % 4 * 16, n = i->count * 8u;
    for (int side = p->a_shared ? 0 : 1; side < 2; side++) {
        const sim_matrix *m = side ? &p->b : &p->a;
        uint32_t first = side ? 0 : row, rows = side ? n : 16;
        uint32_t x0 = m->mn ? 0 : first, x1 = m->mn ? 16 : first + rows, y0 = m->mn ? first / 8 : 0, y1 = m->mn ? (first + rows) / 8 : 2;
        for (uint32_t x = x0; x < x1; x++)
            for (uint32_t y = y0; y < y1; y++)
                if (!each(w, i, sim_matrix_chunk(m, x, y)))
                    return false;
    }
    return true;
}
/* The read is no read by this warp at this time: until the wait the bytes are held, and then the warp group has read them. */
static bool chunk_begin(sim_warp *w, const sim_insn *i, uint32_t address)
{
    sim_block *b = w->block;
    const uint8_t *at = sim_shared(w, i, -1, address, 16);
    if (!at)
        return false;
    uint32_t offset = (uint32_t)(at - b->shared), before[4],
             *mine = b->checked ? b->read + (size_t)w->index * b->words + (offset >> 2) : before;
    memcpy(before, mine, b->checked ? sizeof before : 0);
    if (!sim_proxy_read(w, i, -1, offset, 16))
        return false;
    if (b->checked)
        memcpy(mine, before, sizeof before);
    sim_proxy_hold(b, offset, 16);
    return true;
}
static bool chunk_end(sim_warp *w, const sim_insn *i, uint32_t address)
{
    (void)i;
    sim_proxy_drop_group(w->block, w->index / 4, address - SIM_SHARED_BASE, 16);
    return true;
}

bool sim_wgmma_hold(sim_warp *w, const sim_wgmma *o)
{
    return chunks(w, o, chunk_begin);
}
void sim_wgmma_release(sim_warp *w, const sim_wgmma *o)
{
    chunks(w, o, chunk_end);
}

static const uint8_t *chunk(const sim_block *b, const sim_matrix *m, uint32_t x, uint32_t y)
{
    return b->shared + (sim_matrix_chunk(m, x, y) - SIM_SHARED_BASE);
}

static void load_tf32(const sim_warp *w, const sim_wgmma *o, sim_product *p) /* K-major only: a row of 8 is two chunks */
{
    const sim_block *b = w->block;
    uint32_t minus_a = o->insn->sub & WGMMA_MINUS_A ? 0x80000000u : 0, minus_b = o->insn->sub & WGMMA_MINUS_B ? 0x80000000u : 0, e[4];
    for (int r = 0; r < 4 && !o->a_shared; r++)
        for (int l = 0; l < 32; l++)
            p->a32[(l >> 2) + 8 * (r & 1)][(l & 3) + 4 * (r >> 1)] = o->reg[r].u[l] ^ minus_a;
    for (uint32_t side = o->a_shared ? 0 : 1; side < 2; side++)
        for (uint32_t x = 0; x < (side ? p->n : 16); x++)
            for (uint32_t y = 0; y < 2; y++) {
                memcpy(e, side ? chunk(b, &o->b, x, y) : chunk(b, &o->a, w->index % 4 * 16 + x, y), 16);
                for (uint32_t k = 0; k < 4; k++) {
                    if (side)
                        p->b32[4 * y + k][x] = e[k] ^ minus_b;
                    else
                        p->a32[x][4 * y + k] = e[k] ^ minus_a;
                }
            }
}

static void load(const sim_warp *w, const sim_wgmma *o, sim_product *p)
{
    const sim_block *b = w->block;
    const sim_insn *i = o->insn;
    uint32_t row = w->index % 4 * 16;
    p->type = (sim_type)i->type, p->type_b = i->sub & WGMMA_B_E5M2 ? T_E5M2 : T_E4M3, p->n = i->count * 8u, p->half = i->type2 == T_F16;
    if (p->type == T_TF32) {
        load_tf32(w, o, p);
        return;
    }
    uint16_t e[8];
    for (int r = 0; r < 4 && !o->a_shared; r++)
        for (int l = 0; l < 32; l++)
            for (int h = 0; h < 2; h++)
                p->a[(l >> 2) + 8 * (r & 1)][2 * (l & 3) + h + 8 * (r >> 1)] = (uint16_t)(o->reg[r].u[l] >> 16 * h);
    for (uint32_t x = 0; x < 16 && o->a_shared; x++)
        for (uint32_t y = 0; y < 2; y++) {
            if (!o->a.mn) {
                memcpy(&p->a[x][8 * y], chunk(b, &o->a, row + x, y), 16);
                continue;
            }
            memcpy(e, chunk(b, &o->a, x, row / 8 + y), 16);
            for (int k = 0; k < 8; k++)
                p->a[8 * y + (uint32_t)k][x] = e[k];
        }
    if (o->b.mn) {
        for (uint32_t x = 0; x < 16; x++)
            for (uint32_t y = 0; y < p->n / 8; y++)
                memcpy(&p->b[x][8 * y], chunk(b, &o->b, x, y), 16);
    } else {
        for (uint32_t x = 0; x < p->n; x++)
            for (uint32_t y = 0; y < 2; y++) {
                memcpy(e, chunk(b, &o->b, x, y), 16);
                for (int k = 0; k < 8; k++)
                    p->b[8 * y + (uint32_t)k][x] = e[k];
            }
    }
    uint16_t minus = p->type == T_E4M3 || p->type == T_E5M2 ? 0x8080 : 0x8000; /* two numbers of 8 bits lie as one of 16 */
    if (i->sub & WGMMA_MINUS_A)
        for (int r = 0; r < 16; r++)
            for (int k = 0; k < 16; k++)
                p->a[r][k] ^= minus;
    if (i->sub & WGMMA_MINUS_B)
        for (int k = 0; k < 16; k++)
            for (uint32_t n = 0; n < p->n; n++)
                p->b[k][n] ^= minus;
}

/* Register k of lane l holds row l / 4 (+ 8 for the third and fourth of four), column 8 (k / 4) + 2 (l % 4) + k % 2. */
static uint32_t *element(sim_product *p, uint32_t k, uint32_t l)
{
    return &p->c[(l >> 2) + 8 * (k >> 1 & 1)][8 * (k >> 2) + 2 * (l & 3) + (k & 1)];
}

void sim_wgmma_compute(sim_warp *w, const sim_wgmma *o, sim_vec *const *from, sim_vec *const *to)
{
    sim_product *p = w->block->cluster->product; /* made when the product was issued */
    uint32_t regs = sim_wgmma_registers(o->insn);
    load(w, o, p);
    for (uint32_t k = 0; k < regs; k++)
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t v = o->scale ? from[k]->u[l] : 0;
            if (!p->half)
                *element(p, k, l) = v;
            else
                for (uint32_t h = 0; h < 2; h++)
                    *element(p, 2 * k + h, l) = sim_bits(sim_half_float((uint16_t)(v >> 16 * h)));
        }
    sim_product_run(p, w->block->launch->arch);
    for (uint32_t k = 0; k < regs; k++)
        for (uint32_t l = 0; l < 32; l++)
            to[k]->u[l] = p->half ? sim_float_half(sim_f32(*element(p, 2 * k, l))) |
                                        (uint32_t)sim_float_half(sim_f32(*element(p, 2 * k + 1, l))) << 16
                                  : *element(p, k, l);
}
