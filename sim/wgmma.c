/* wgmma: products of a warp group, asynchronous. Each warp computes the 16 rows that are its own (wgmma_operands.c). Eager products are
 * computed at issue, lazy ones when the wait for their group comes; until then their accumulators hold 0xFFFFFFFF, a NaN. In both timings
 * the registers and the bytes of shared memory count as in use until the wait.
 *
 * PTX has virtual registers, and the compiler copies accumulators in flight between them with plain movs, which ptxas removes.
 * So a register in flight is bound to a product and an element of it; a mov binds its destination as well, a product that
 * accumulates onto such registers takes over from the earlier one, and the wait delivers to whatever is still bound. */
#include "wgmma.h"
#include "defined.h"
#include "descriptor.h"
#include "group.h"
#include "mma.h"
#include "run.h"
#include "wgmma_operands.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = SIM_COLUMNS / 2 }; /* accumulator registers of a thread */

typedef struct hold {              /* the state of a register that some wgmma of the program uses */
    uint32_t op;                   /* the product in flight that will write it, 0 = none */
    uint16_t at;                   /* which of its registers */
    uint16_t half;                 /* 1, 2: a register of 16 bits, which takes the lower, the upper half; 0: all of it */
    uint16_t reading;              /* products in flight that read it as A */
    uint32_t wrote, read, retired; /* number of the fence before the last write, read, end of a product, + 1; 0 = never */
} hold;

typedef struct source {
    uint32_t op, at;
} source; /* op 0: the value is there */

typedef struct product {
    sim_wgmma in;
    uint64_t group;
    /* For shared memory: the group's time when one of its warps had waited; 0 = none has. Registers wait for their own warp. */
    uint32_t ended;
    sim_vec *value; /* the accumulator, n / 2 registers of 128 bytes; lazy only */
    source from[MOST];
} product;

typedef struct sim_pipeline {
    hold *hold;
    product *op; /* a queue: number `first` and on */
    uint32_t ops, cap, first;
    uint64_t group; /* groups committed */
    uint32_t fences;
} pipeline;

static const char *name_of(const sim_warp *w, uint16_t held)
{
    return w->block->program->held_names[held - 1];
}
static sim_vec *value_at(product *p, uint32_t k)
{
    return (sim_vec *)(void *)((uint8_t *)p->value + (size_t)k * 128);
}

/* ---- life ---- */

bool sim_pipeline_prepare(sim_warp *w)
{
    if (!w->block->program->held)
        return true;
    w->pipeline = calloc(1, sizeof *w->pipeline);
    return w->pipeline && (w->pipeline->hold = calloc(w->block->program->held, sizeof(hold)));
}

void sim_pipeline_start(sim_warp *w)
{
    pipeline *p = w->pipeline;
    if (!p)
        return;
    memset(p->hold, 0, w->block->program->held * sizeof(hold));
    p->ops = 0, p->first = 1, p->group = 0, p->fences = 0;
}

void sim_pipeline_free(sim_warp *w)
{
    pipeline *p = w->pipeline;
    if (!p)
        return;
    for (uint32_t k = 0; k < p->cap; k++)
        free(p->op[k].value);
    free(p->op);
    free(p->hold);
    free(p);
}

bool sim_pipeline_leave(sim_warp *w)
{
    pipeline *p = w->pipeline;
    return !p || !p->ops || !w->block->checked ||
           sim_fault(w, p->op[0].in.insn, -1, SIM_CHECK_UNAWAITED,
                     "the warp exits while this wgmma is in flight; wgmma.wait_group is missing") != STEP_FAULT;
}

/* ---- registers ---- */

static const product *op_of(const pipeline *p, uint32_t number)
{
    return &p->op[number - p->first];
}

/* does this wgmma read its accumulator? */
static bool scales(const sim_warp *w, const sim_insn *i)
{
    int32_t a = i->arg[i->args - 1];
    const sim_vec *c = a < 0 ? (const sim_vec *)(const void *)((const uint8_t *)w->block->program->pool + ~a) : NULL;
    bool v = c ? c->u[0] != 0 : (w->pred[a] & 1) != 0;
    return v != (i->round != 0);
}

/* A mov that takes an f16 accumulator apart or puts one together renames too. false: it is none of those, but reads or writes. */
static bool rename_halves(pipeline *p, const sim_insn *i)
{
    const uint16_t *t = i->held;
    bool apart = i->run == sim_run_unpack;
    hold none = { 0 }, from = t[apart ? 2 : 1] ? p->hold[t[apart ? 2 : 1] - 1] : none, other = !apart && t[2] ? p->hold[t[2] - 1] : none;
    if (apart && from.op && op_of(p, from.op)->in.insn->type2 != T_F16)
        return false;
    if (!apart && (from.op || other.op) && (from.op != other.op || from.at != other.at || from.half != 1 || other.half != 2))
        return false;
    for (int k = 0; k < i->defs; k++) {
        if (!t[k])
            continue;
        hold *d = &p->hold[t[k] - 1];
        from.reading = d->reading, from.half = apart && from.op ? (uint16_t)(k + 1) : 0;
        *d = from;
        if (other.wrote > d->wrote)
            d->wrote = other.wrote;
    }
    return true;
}

bool sim_wgmma_touch(sim_warp *w, const sim_insn *i, uint32_t m)
{
    pipeline *p = w->pipeline;
    const uint16_t *t = i->held;
    if (i->flags & F_MOVE && m == SIM_ALL) {
        hold s = t[1] ? p->hold[t[1] - 1] : (hold){ 0 };
        if (!t[0])
            return true;
        hold *d = &p->hold[t[0] - 1];
        s.reading = d->reading;
        *d = s;
        return true;
    }
    if (!m || (m == SIM_ALL && sim_is_halves(i) && rename_halves(p, i)))
        return true;
    for (int a = 0; a < i->args; a++) {
        if (!t[a])
            continue;
        hold *h = &p->hold[t[a] - 1];
        bool writes = a < i->defs;
        if (h->op && w->block->checked) {
            const product *o = op_of(p, h->op);
            if (sim_fault(w, i, -1, SIM_CHECK_WGMMA_REGISTER,
                          "register %s is %s, but it is an accumulator of the wgmma at PTX line %u, which is in flight: wgmma.wait_group "
                          "is missing before it",
                          name_of(w, t[a]), writes ? "written" : "read", o->in.insn->line) == STEP_FAULT)
                return false;
        }
        if (writes && h->reading && w->block->checked &&
            sim_fault(w, i, -1, SIM_CHECK_WGMMA_REGISTER,
                      "register %s is written, but a wgmma in flight reads it as its A: wgmma.wait_group is missing before it",
                      name_of(w, t[a])) == STEP_FAULT)
            return false;
        if (writes)
            h->op = 0, h->wrote = p->fences + 1;
        else
            h->read = p->fences + 1;
    }
    return true;
}

/* Registers of this product, before it is issued: in flight only for a product of the same shape in the same place, and fenced. */
static bool registers_fit(sim_warp *w, const sim_insn *i, bool scale)
{
    pipeline *p = w->pipeline;
    const uint16_t *t = i->held;
    uint32_t fence = p->fences + 1;
    if (!w->block->checked)
        return true;
    if (!p->fences && sim_fault(w, i, -1, SIM_CHECK_WGMMA_FENCE, "the first wgmma has no wgmma.fence before it") == STEP_FAULT)
        return false;
    uint32_t other = p->hold[t[0] - 1].op;
    for (int a = 0; a < i->args; a++) {
        if (!t[a])
            continue;
        const hold *h = &p->hold[t[a] - 1];
        if (a >= i->defs && h->op &&
            sim_fault(w, i, -1, SIM_CHECK_WGMMA_REGISTER,
                      "register %s is read as A, but it is an accumulator of the wgmma at PTX line %u, which is in flight: "
                      "wgmma.wait_group is missing before it",
                      name_of(w, t[a]), op_of(p, h->op)->in.insn->line) == STEP_FAULT)
            return false;
        if (a < i->defs && h->reading &&
            sim_fault(w, i, -1, SIM_CHECK_WGMMA_REGISTER,
                      "register %s becomes an accumulator, but a wgmma in flight reads it as its A: wgmma.wait_group is missing before it",
                      name_of(w, t[a])) == STEP_FAULT)
            return false;
        if (a < i->defs && (h->op != other || (h->op && (h->at != a || op_of(p, h->op)->in.insn->count != i->count ||
                                                         op_of(p, h->op)->in.insn->type2 != i->type2)))) {
            const product *o = op_of(p, h->op ? h->op : other);
            if (sim_fault(w, i, -1, SIM_CHECK_WGMMA_REGISTER,
                          "register %s: the accumulator overlaps that of the wgmma in flight at PTX line %u, but is not the same: "
                          "wgmma.wait_group is missing before it",
                          name_of(w, t[a]), o->in.insn->line) == STEP_FAULT)
                return false;
        }
        bool touched = h->wrote == fence && (a >= i->defs || scale);
        if ((touched || (h->read == fence && h->retired == fence && a < i->defs)) &&
            sim_fault(w, i, -1, SIM_CHECK_WGMMA_FENCE, "register %s was %s after the last wgmma.fence: one is missing before this wgmma",
                      name_of(w, t[a]), touched ? "written" : "read") == STEP_FAULT)
            return false;
    }
    return true;
}

/* ---- the queue ---- */

static product *append(sim_warp *w, const sim_insn *i)
{
    pipeline *p = w->pipeline;
    if (p->ops == p->cap) {
        uint32_t cap = p->cap ? p->cap * 2 : 8;
        product *grown = realloc(p->op, cap * sizeof *grown);
        if (!grown)
            return sim_fault(w, i, -1, SIM_CHECK_HOST_MEMORY, "out of host memory"), NULL;
        for (uint32_t k = p->cap; k < cap; k++)
            grown[k].value = NULL;
        p->op = grown, p->cap = cap;
    }
    product *o = &p->op[p->ops];
    sim_vec *kept = o->value;
    if (!sim_product_of(w->block->cluster) || (w->block->lazy && !kept && !(kept = malloc(MOST * 128))))
        return sim_fault(w, i, -1, SIM_CHECK_HOST_MEMORY, "out of host memory"), NULL;
    *o = (product){ .in.insn = i, .group = p->group, .value = kept };
    p->ops++;
    return o;
}

/* Ends a product of warp x, as far as shared memory goes: its value is computed and handed to those that go on from it, and its bytes
 * have been read. Products end in the order of their numbers. */
static void finish(sim_warp *x, uint32_t number, uint32_t time)
{
    pipeline *p = x->pipeline;
    if (number < p->first || number - p->first >= p->ops)
        return;
    uint32_t first = number - p->first;
    product *o = &p->op[first];
    if (o->ended)
        return;
    o->ended = time;
    if (x->block->lazy) {
        sim_vec *at[MOST];
        for (uint32_t k = 0; k < sim_wgmma_registers(o->in.insn); k++)
            at[k] = value_at(o, k);
        sim_wgmma_compute(x, &o->in, at, at);
        for (uint32_t later = first + 1; later < p->ops; later++)
            for (uint32_t k = 0; k < sim_wgmma_registers(p->op[later].in.insn); k++) {
                source *s = &p->op[later].from[k];
                if (s->op == number)
                    memcpy(value_at(&p->op[later], k), value_at(o, s->at), 128), s->op = 0;
            }
    }
    if (x->block->checked)
        sim_wgmma_release(x, &o->in);
}

/* Ends the oldest product of the warp: for the whole warp group, then for the warp's registers that are bound to it. */
static void retire(sim_warp *w)
{
    pipeline *p = w->pipeline;
    product *o = &p->op[0];
    uint32_t number = p->first, first = w->index & ~3u;
    bool lazy = w->block->lazy;
    if (!o->ended) {
        uint32_t *time = &w->block->group_time[first / 4];
        if (*time < SIM_LAST_CLOCK)
            ++*time;
        for (uint32_t k = first; k < first + 4 && k < w->block->warps; k++)
            finish(&w->block->warp[k], number, *time);
    }
    uint32_t *known = &w->clock[sim_group_actor(w->block, first / 4)];
    if (o->ended > *known)
        *known = o->ended;
    for (uint32_t k = 0; k < w->block->program->held; k++) {
        hold *h = &p->hold[k];
        if (h->op != number)
            continue;
        sim_vec *to = (sim_vec *)(void *)(w->file + w->block->program->held_place[k]);
        if (lazy && !h->half)
            memcpy(to, value_at(o, h->at), 128);
        for (int l = 0; lazy && h->half && l < SIM_LANES; l++)
            to->u[l] = value_at(o, h->at)->u[l] >> (h->half == 2 ? 16 : 0) & 0xFFFF;
        h->op = 0, h->retired = p->fences + 1;
    }
    for (int a = o->in.insn->defs; a < o->in.insn->args; a++)
        if (o->in.insn->held[a])
            p->hold[o->in.insn->held[a] - 1].reading--;
    product gone = *o;
    memmove(p->op, p->op + 1, (p->ops - 1) * sizeof *p->op);
    p->ops--, p->first++;
    p->op[p->ops] = (product){ .value = gone.value }; /* the buffer is used again */
}

/* ---- the instructions ---- */

static bool descriptor(sim_warp *w, const sim_insn *i, int arg, const char *what, uint64_t *to)
{
    const sim_vec *v = sim_arg(w, i, arg);
    *to = v->q[0];
    for (int l = 1; l < 32; l++)
        if (v->q[l] != *to)
            return sim_fault(w, i, l, SIM_CHECK_DESCRIPTOR, "the descriptor of %s differs between the lanes of a warp", what), false;
    return true;
}

sim_step sim_run_wgmma(sim_warp *w, const sim_insn *i, uint32_t m)
{
    pipeline *p = w->pipeline;
    sim_block *b = w->block;
    uint32_t regs = sim_wgmma_registers(i);
    int d = i->defs, shared = i->sub & WGMMA_SHARED_A ? 1 : 0;
    uint64_t da = 0, db;
    if (!sim_group_converged(w, i, m))
        return STEP_FAULT;
    if ((shared && !descriptor(w, i, d, "A", &da)) || !descriptor(w, i, d + (shared ? 1 : 4), "B", &db) ||
        !sim_group_agrees(w, i, m, da, db))
        return STEP_FAULT;
    bool scale = scales(w, i);
    if (!registers_fit(w, i, scale))
        return STEP_FAULT;
    product *o = append(w, i);
    if (!o)
        return STEP_FAULT;
    o->in.a_shared = shared, o->in.scale = scale;
    if (shared && !sim_matrix_open(w, i, "A", da, i->sub & WGMMA_TRANS_A, &o->in.a))
        return STEP_FAULT;
    if (!sim_matrix_open(w, i, "B", db, i->sub & WGMMA_TRANS_B, &o->in.b))
        return STEP_FAULT;
    for (int k = 0; k < 4 && !shared; k++)
        memcpy(&o->in.reg[k], sim_arg(w, i, d + k), 128);
    for (int a = d; a < i->args; a++)
        if (i->held[a])
            p->hold[i->held[a] - 1].reading++;
    w->shadow.met = false;
    if (!sim_wgmma_hold(w, &o->in))
        return STEP_FAULT;
    if (w->shadow.met || w->shadow.slots)
        sim_defined_wgmma(w, i, shared ? &o->in.a : NULL, &o->in.b, scale);
    b->counts.c.shared_read += (shared ? 512u : 0) + (w->index % 4 ? 0 : i->count * 256u);
    uint32_t number = p->first + p->ops - 1;
    sim_vec *at[MOST];
    for (uint32_t k = 0; k < regs; k++)
        at[k] = sim_arg(w, i, (int)k);
    if (!b->lazy)
        sim_wgmma_compute(w, &o->in, at, at);
    for (uint32_t k = 0; k < regs; k++) {
        hold *h = &p->hold[i->held[k] - 1];
        product *before = h->op ? &p->op[h->op - p->first] : NULL;
        if (b->lazy && scale && before && before->ended)
            memcpy(value_at(o, k), value_at(before, h->at), 128); /* another warp has waited for it */
        else if (b->lazy && scale && h->op)
            o->from[k] = (source){ h->op, h->at };
        else if (b->lazy && scale)
            memcpy(value_at(o, k), at[k], 128);
        h->op = number, h->at = (uint16_t)k;
    }
    for (uint32_t k = 0; k < regs && b->lazy; k++)
        memset(at[k], 0xFF, 128);
    b->cluster->progress++; /* another warp of the group may wait for this one to have come so far */
    return STEP_NEXT;
}

sim_step sim_run_wgmma_fence(sim_warp *w, const sim_insn *i, uint32_t m)
{
    if (!sim_group_converged(w, i, m))
        return STEP_FAULT;
    if (w->pipeline)
        w->pipeline->fences++;
    return STEP_NEXT;
}

sim_step sim_run_wgmma_commit(sim_warp *w, const sim_insn *i, uint32_t m)
{
    if (!sim_group_converged(w, i, m))
        return STEP_FAULT;
    if (w->pipeline)
        w->pipeline->group++;
    return STEP_NEXT;
}

/* Products of a warp group have the same numbers in its four warps. One that ended early will issue none: that is reported elsewhere. */
static bool issued_by_all(const sim_warp *w, uint32_t number)
{
    const sim_block *b = w->block;
    for (uint32_t k = w->index & ~3u; k < (w->index | 3u) + 1 && k < b->warps; k++) {
        const pipeline *p = b->warp[k].pipeline;
        if (b->warp[k].state != W_DONE && p->first + p->ops <= number)
            return false;
    }
    return true;
}

sim_step sim_run_wgmma_wait(sim_warp *w, const sim_insn *i, uint32_t m)
{
    pipeline *p = w->pipeline;
    if (!sim_group_converged(w, i, m))
        return STEP_FAULT;
    while (p && p->ops && p->op[0].group + (uint64_t)i->imm < p->group) {
        if (!issued_by_all(w, p->first)) { /* to be tried again; a try is no instruction */
            w->block->steps--, w->block->by_class[i->cls]--;
            return w->waiting_at = w->pc--, w->awaits_group = true, STEP_YIELD;
        }
        retire(w);
    }
    w->awaits_group = false;
    return STEP_NEXT;
}
