/* flow: what execution needs to know about a kernel as a whole. Where the lanes of a branch meet again, which registers may be read before
 * they are written, and which registers can share a place. */
#include "defined.h"
#include "places.h"
#include <string.h>

enum { MOST_SETS = 1 << 29 }; /* bytes of one set of registers per block */

static bool defines(const sim_insn *i, int n)
{
    return n < i->defs && i->arg[n] >= 0;
}
static bool uses(const sim_insn *i, int n)
{
    return (n >= i->defs || i->flags & F_TIED) && i->arg[n] >= 0 && i->arg[n] != SIM_NO_ARG;
}

static void liveness(sim_flow_graph *w)
{
    size_t words = w->words;
    uint64_t *set = sim_ptx_alloc(w->p, words * 8);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t at = w->n; at-- > 0;) {
            uint32_t k = w->order[at];
            sim_basic_block *b = &w->b[k];
            memset(set, 0, words * 8);
            for (uint32_t j = 0; j < b->nnext; j++)
                for (size_t x = 0; x < words; x++)
                    set[x] |= w->live_in[b->next[j] * words + x];
            memcpy(w->live_out + k * words, set, words * 8);
            for (uint32_t i = b->last + 1; i-- > b->first;) {
                const sim_insn *o = &w->prog->code[i];
                if (o->guard < 0)
                    for (int a = 0; a < o->args; a++)
                        if (defines(o, a))
                            SIM_CUT(set, o->arg[a]);
                for (int a = 0; a < o->args; a++)
                    if (uses(o, a))
                        SIM_PUT(set, o->arg[a]);
                if (o->guard >= 0)
                    SIM_PUT(set, o->guard);
            }
            if (memcmp(set, w->live_in + k * words, words * 8))
                memcpy(w->live_in + k * words, set, words * 8), changed = true;
        }
    }
}

/* The registers that may be read before they are written. */
static void unset(sim_flow_graph *w, uint64_t *tracked)
{
    size_t words = w->words;
    sim_program *g = w->prog;
    uint64_t *set = sim_ptx_alloc(w->p, words * 8);
    memset(w->sure_in, 0xFF, w->n * words * 8);
    memset(w->sure_in, 0, words * 8);
    for (int s = 0; s < SR_COUNT; s++)
        if (w->f->special[s])
            SIM_PUT(w->sure_in, w->f->special[s]);
    for (bool changed = true, last = false; changed || !last;) {
        if (!changed)
            last = true;
        changed = false;
        for (uint32_t at = 0; at < w->n; at++) {
            uint32_t k = w->order[at];
            sim_basic_block *b = &w->b[k];
            memcpy(set, w->sure_in + k * words, words * 8);
            for (uint32_t i = b->first; i <= b->last; i++) {
                const sim_insn *o = &g->code[i];
                if (last) {
                    for (int a = 0; a < o->args; a++)
                        if (uses(o, a) && !SIM_HAS(set, o->arg[a]))
                            SIM_PUT(tracked, o->arg[a]);
                    if (o->guard >= 0 && !SIM_HAS(set, o->guard))
                        SIM_PUT(tracked, o->guard);
                }
                if (o->guard < 0)
                    for (int a = 0; a < o->args; a++)
                        if (defines(o, a))
                            SIM_PUT(set, o->arg[a]);
            }
            for (uint32_t j = 0; j < b->nnext && !last; j++)
                for (size_t x = 0; x < words; x++) {
                    uint64_t *to = &w->sure_in[b->next[j] * words + x];
                    if (*to & ~set[x])
                        *to &= set[x], changed = true;
                }
        }
        if (last)
            break;
    }
}

/* The registers that wgmmas use, and those that plain movs copy from or to them: their state is followed at run time. Of f16
 * accumulators also the halves that movs take them apart into. */
static uint64_t *held(sim_flow_graph *w)
{
    sim_program *g = w->prog;
    uint64_t *set = sim_ptx_alloc(w->p, w->words * 8), *pair = sim_ptx_alloc(w->p, w->words * 8);
    for (uint32_t k = 0; k < g->insns; k++) {
        const sim_insn *o = &g->code[k];
        for (int a = 0; o->kind == K_RUN && o->run == sim_run_wgmma && o->type2 == T_F16 && a < o->defs; a++)
            if (o->arg[a] >= 0)
                SIM_PUT(pair, o->arg[a]);
        for (int a = 0; o->run == sim_run_wgmma && o->kind == K_RUN && a < o->args - 1; a++)
            if (o->arg[a] >= 0 && sim_type_bytes(w->f->reg[o->arg[a]].type) == 4)
                SIM_PUT(set, o->arg[a]);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 0; k < g->insns; k++) {
            const sim_insn *o = &g->code[k];
            bool halves = sim_is_halves(o), any = false, all = true;
            if (!halves && !(o->flags & F_MOVE))
                continue;
            for (int a = 0; a < o->args; a++)
                if (o->arg[a] >= 0)
                    any |= SIM_HAS(pair, o->arg[a]), all &= SIM_HAS(pair, o->arg[a]);
            for (int a = 0; any && !all && a < o->args; a++)
                if (o->arg[a] >= 0)
                    SIM_PUT(pair, o->arg[a]), SIM_PUT(set, o->arg[a]), changed = true;
            if (halves || o->arg[0] < 0 || o->arg[1] < 0 || SIM_HAS(set, o->arg[0]) == SIM_HAS(set, o->arg[1]))
                continue;
            SIM_PUT(set, o->arg[0]), SIM_PUT(set, o->arg[1]), changed = true;
        }
    }
    for (int s = 0; s < SR_COUNT; s++)
        if (w->f->special[s])
            SIM_CUT(set, w->f->special[s]);
    return set;
}

void sim_flow(ptx_parser *p, ptx_function *f)
{
    sim_flow_graph w = { .p = p, .f = f, .prog = f->program, .words = (f->regs + 63) / 64 + 1 };
    sim_flow_graph_make(&w);
    if ((uint64_t)w.n * w.words > MOST_SETS / 8)
        sim_ptx_fail(p, f->program->code[0].line, "kernel %.200s is too large: %u basic blocks and %llu registers", f->program->name, w.n,
                     (unsigned long long)f->regs);
    w.live_in = sim_ptx_alloc(p, w.n * w.words * 8);
    w.live_out = sim_ptx_alloc(p, w.n * w.words * 8);
    w.sure_in = sim_ptx_alloc(p, w.n * w.words * 8);
    uint64_t *tracked = sim_ptx_alloc(p, w.words * 8);
    liveness(&w);
    unset(&w, tracked);
    sim_places_give(&w, tracked, held(&w));
}
