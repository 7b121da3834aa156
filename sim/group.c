/* group: what the warps of a warp group do together, and the registers they give and take. */
#include "group.h"
#include "holds.h"
#include "run.h"
#include <stdlib.h>

typedef struct entry {
    const sim_insn *insn;
    uint64_t a, b;
} entry;
typedef struct sim_group_log {
    entry *entry;
    uint32_t n, cap;
} group_log;

void sim_group_start(sim_block *b)
{
    for (uint32_t k = 0; k < SIM_WARPS / 4; k++)
        if (b->group_log[k])
            b->group_log[k]->n = 0;
    for (uint32_t k = 0; k < b->warps; k++)
        b->warp[k].issued = b->warp[k].wants = b->warp[k].resizes = 0, b->warp[k].registers = b->program->registers;
    b->registers = 0;
}
void sim_group_free(sim_block *b)
{
    for (uint32_t k = 0; k < SIM_WARPS / 4; k++) {
        if (b->group_log[k])
            free(b->group_log[k]->entry);
        free(b->group_log[k]);
    }
}

bool sim_group_converged(sim_warp *w, const sim_insn *i, uint32_t m)
{
    if (m == SIM_ALL)
        return true;
    return sim_fault(w, i, -1, SIM_CHECK_DIVERGENCE, "a warp group's instruction needs all 32 lanes of each warp, but the mask is 0x%08x",
                     m),
           false;
}

static bool append(sim_warp *w, group_log *g, entry e)
{
    if (g->n == g->cap) {
        uint32_t cap = g->cap ? g->cap * 2 : 64;
        entry *grown = realloc(g->entry, cap * sizeof *grown);
        if (!grown)
            return sim_fault(w, e.insn, -1, SIM_CHECK_HOST_MEMORY, "out of host memory"), false;
        g->entry = grown, g->cap = cap;
    }
    g->entry[g->n++] = e;
    return true;
}

bool sim_group_agrees(sim_warp *w, const sim_insn *i, uint32_t m, uint64_t a, uint64_t b)
{
    sim_block *k = w->block;
    group_log **at = &k->group_log[w->index / 4], *g = *at;
    uint32_t first = w->index & ~3u;
    if (!sim_group_converged(w, i, m))
        return false;
    if (k->threads < (first + 4) * 32) {
        sim_fault(w, i, -1, SIM_CHECK_WARP_GROUP,
                  "this instruction needs a warp group of four whole warps, but the block has %u threads: warps %u and on are no group",
                  k->threads, first);
        return false;
    }
    if (!k->checked)
        return true;
    if (!g && !(g = *at = calloc(1, sizeof *g)))
        return sim_fault(w, i, -1, SIM_CHECK_HOST_MEMORY, "out of host memory"), false;
    uint32_t number = w->issued++;
    if (number == g->n) {
        for (uint32_t x = first; x < first + 4; x++)
            if (k->warp[x].state == W_DONE) {
                sim_fault(w, i, -1, SIM_CHECK_WARP_GROUP,
                          "warp %u has exited without this instruction, which its warp group executes: all four warps must", x);
                return false;
            }
        return append(w, g, (entry){ i, a, b });
    }
    sim_holds(g->entry); /* number is below g->n */
    const entry *e = &g->entry[number];
    if (e->insn == i && e->a == a && e->b == b)
        return true;
    if (e->insn != i)
        sim_fault(w, i, -1, SIM_CHECK_WARP_GROUP,
                  "the warps of a warp group execute different instructions: this warp is here, another at PTX line %u: %.100s",
                  e->insn->line, e->insn->text);
    else
        sim_fault(w, i, -1, SIM_CHECK_WARP_GROUP,
                  "the warps of a warp group give different descriptors to a wgmma: 0x%016llx and 0x%016llx here, 0x%016llx and 0x%016llx "
                  "in another",
                  (unsigned long long)a, (unsigned long long)b, (unsigned long long)e->a, (unsigned long long)e->b);
    return false;
}

bool sim_group_leave(sim_warp *w)
{
    const group_log *g = w->block->group_log[w->index / 4];
    if (!g || w->issued >= g->n)
        return true;
    sim_fault(w, g->entry[w->issued].insn, -1, SIM_CHECK_WARP_GROUP,
              "the warp exits without this instruction, which another warp of its warp group executes: all four must");
    return false;
}

/* Between two setmaxnreg the warps of the group must have met: this one knows of each other's last. */
static bool met(sim_warp *w, const sim_insn *i)
{
    for (uint32_t k = w->index & ~3u; k < (w->index & ~3u) + 4 && w->block->checked; k++) {
        const sim_warp *x = &w->block->warp[k];
        if (x == w || x->resizes > w->resizes || (x->resizes == w->resizes && (!w->resizes || x->resized <= w->clock[x->actor])))
            continue;
        return sim_fault(w, i, -1, SIM_CHECK_SETMAXNREG_ORDER,
                         "a second setmaxnreg, but the warps of the warp group have not met since the one before: no barrier orders that "
                         "of warp %u",
                         k) != STEP_FAULT;
    }
    return true;
}

/* setmaxnreg: registers per thread, given back to the block's pool or taken from it; a taker waits until there are enough. */
sim_step sim_run_registers(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_block *b = w->block;
    uint32_t n = (uint32_t)i->imm, have = w->registers;
    if (!have)
        return sim_fault(w, i, -1, SIM_CHECK_SETMAXNREG,
                         "setmaxnreg needs a kernel with .maxnreg, or .maxntid and .minnctapersm (__launch_bounds__ with both numbers): "
                         "without, ptxas does not know what a thread starts with, and ignores it");
    if (!w->wants && (!sim_group_agrees(w, i, m, n, 0) || !met(w, i)))
        return STEP_FAULT;
    if (i->sub == REGISTERS_DEC) {
        if (n > have)
            return sim_fault(w, i, -1, SIM_CHECK_SETMAXNREG, "setmaxnreg.dec to %u registers, but a thread of this warp has %u", n, have);
        b->registers += have - n;
    } else {
        if (n < have)
            return sim_fault(w, i, -1, SIM_CHECK_SETMAXNREG, "setmaxnreg.inc to %u registers, but a thread of this warp has %u", n, have);
        w->wants = n - have;
        if (w->wants > b->registers)
            return w->waiting_at = w->pc--, STEP_YIELD; /* to be tried again */
        b->registers -= w->wants, w->wants = 0;
    }
    w->registers = n, w->resizes++, w->resized = w->clock[w->actor];
    b->cluster->progress++;
    return STEP_NEXT;
}
