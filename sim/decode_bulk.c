/* decode_bulk: cp.async.bulk and cp.reduce.async.bulk, in all their forms; prefetch.tensormap. */
#include "bulk.h"
#include "decode.h"
#include "run.h"
#include <stdio.h>
#include <string.h>

static _Noreturn void unknown(dec *d)
{
    sim_dec_fail(d, "this bulk copy is not simulated");
}

static int word_at(const dec *d, const char *word) /* where it stands in the opcode, or -1 */
{
    for (int k = 1; k < d->i->words; k++)
        if (!strcmp(d->i->word[k], word))
            return k;
    return -1;
}

/* [base] or the base of [base, {...}]: an argument of its own. */
static sim_bulk_operand place(dec *d, const ptx_operand *o, sim_space s)
{
    ptx_operand base = *o;
    if (o->kind != O_MEMORY || o->n < 1)
        sim_dec_fail(d, "expected an address in brackets");
    base.n = 1;
    d->o->flags = (uint16_t)(d->o->flags & ~F_WIDE);
    sim_dec_address(d, &base, s);
    return (sim_bulk_operand){ .arg = d->n - 1, .wide = d->o->flags & F_WIDE, .offset = d->o->imm };
}

static sim_bulk_operand map_and_coordinates(dec *d, const ptx_operand *o, sim_bulk_form *f)
{
    if (o->kind != O_MEMORY || o->n != 2 || o->elem[1].kind != O_VECTOR || o->elem[1].n != f->rank)
        sim_dec_fail(d, "expected a tensor map and a coordinate per dimension in brackets");
    sim_bulk_operand p = place(d, o, SP_GENERIC);
    f->coordinate = d->n;
    for (int k = 0; k < f->rank; k++)
        sim_dec_in(d, &o->elem[1].elem[k], 'w', T_S32);
    return p;
}

static int operand(dec *d, const ptx_operand *o, char cls)
{
    sim_dec_in(d, o, cls, cls == 'w' ? T_U32 : T_B16);
    return d->n - 1;
}

static int rank(dec *d)
{
    static const char *const ranks[] = { "1d", "2d", "3d", "4d", "5d", NULL };
    int r = sim_dec_one_of(d, ranks, -1);
    if (r < 0)
        sim_dec_fail(d, "the number of dimensions is missing");
    sim_dec_mod(d, "tile");
    return r + 1;
}

bool sim_decode_bulk(dec *d)
{
    static const char *const ops[] = { "add", "min", "max", "and", "or", "xor", "inc", "dec", NULL };
    sim_insn *o = d->o;
    if (word_at(d, "bulk") < 0)
        return false;
    if (d->p->module->target < 90)
        sim_dec_fail(d, "bulk copies need a target of sm_90 or newer");
    bool reduce = sim_dec_mod(d, "reduce");
    if (!sim_dec_mod(d, "async") || !sim_dec_mod(d, "bulk"))
        unknown(d);
    o->cls = C_CONTROL;
    if (sim_dec_mod(d, "commit_group"))
        return sim_dec_ops(d, 0, 0), o->run = sim_run_bulk_commit, true;
    if (sim_dec_mod(d, "wait_group")) {
        o->sub = sim_dec_mod(d, "read") ? WAIT_READ : WAIT_GROUP;
        sim_dec_ops(d, 1, 1);
        if (d->i->op[0].kind != O_IMM)
            sim_dec_fail(d, "the number of groups must be a constant");
        o->run = sim_run_bulk_wait, o->imm = (int64_t)d->i->op[0].imm;
        return true;
    }
    sim_bulk_form *f = sim_ptx_keep(d->p, sizeof *f);
    const ptx_operand *op = d->i->op;
    bool prefetch = sim_dec_mod(d, "prefetch");
    int shared = word_at(d, "shared::cluster"), global = word_at(d, "global"), next = 0;
    if (shared < 0)
        shared = word_at(d, "shared::cta");
    bool within = global < 0 && !prefetch && shared >= 0; /* from one shared memory to another */
    if ((global < 0 && !within) || (shared < 0) != prefetch)
        unknown(d);
    bool load = within || (!prefetch && shared < global);
    if (within && (!sim_dec_mod(d, "shared::cluster") || word_at(d, "shared::cta") < shared || reduce))
        unknown(d);
    f->coordinate = f->size = f->mask = f->shared.arg = f->mbarrier.arg = -1;
    if (sim_dec_mod(d, "tensor"))
        f->rank = (uint8_t)rank(d);
    sim_dec_mod(d, "global");
    if (prefetch && !sim_dec_mod(d, "L2"))
        unknown(d);
    if (within || (!prefetch && !sim_dec_mod(d, "shared::cluster")))
        sim_dec_mod(d, "shared::cta");
    if (load ? !sim_dec_mod(d, "mbarrier::complete_tx::bytes") : !prefetch && !sim_dec_mod(d, "bulk_group"))
        unknown(d);
    bool multicast = load && sim_dec_mod(d, "multicast::cluster"), policy = sim_dec_hints(d);
    if (reduce) {
        int k = sim_dec_one_of(d, ops, -1);
        if (k < 0 || load)
            unknown(d);
        f->op = (uint8_t)k;
        if (!f->rank) {
            sim_dec_mod(d, "noftz");
            f->type = sim_dec_type(d);
            if (sim_type_bytes(f->type) < 2 || (sim_type_float(f->type) && k > BULK_MAX) || (f->type == T_F64 && k != BULK_ADD) ||
                f->type == T_TF32 || f->type == T_F16X2 || f->type == T_BF16X2)
                unknown(d);
        }
    }
    int most = (load ? 3 : prefetch ? 1 : 2) + !f->rank + multicast + policy;
    sim_dec_ops(d, most, most);
    if (within && (f->rank || multicast))
        unknown(d);
    if (load)
        f->shared = place(d, &op[next++], SP_SHARED);
    f->global = f->rank ? map_and_coordinates(d, &op[next], f) : place(d, &op[next], within ? SP_SHARED : SP_GLOBAL);
    next++;
    if (!load && !prefetch)
        f->shared = place(d, &op[next++], SP_SHARED);
    if (!f->rank)
        f->size = operand(d, &op[next++], 'w');
    if (load)
        f->mbarrier = place(d, &op[next++], SP_SHARED);
    if (multicast)
        f->mask = operand(d, &op[next++], 'w');
    if (policy)
        sim_dec_policy(d, next);
    o->run = sim_run_bulk, o->cls = C_MEMORY, o->flags |= F_BULK, o->fn.data = f;
    o->sub = within ? BULK_SHARED : load ? BULK_LOAD : prefetch ? BULK_PREFETCH : reduce ? BULK_REDUCE : BULK_STORE;
    d->f->program->proxy = true;
    return true;
}

bool sim_decode_tensormap(dec *d, sim_space s)
{
    sim_dec_ops(d, 1, 1);
    if (s != SP_GENERIC && s != SP_PARAM && s != SP_CONST)
        sim_dec_fail(d, "a tensor map does not live there");
    sim_dec_address(d, &d->i->op[0], s);
    d->o->run = sim_run_tensormap, d->o->cls = C_MEMORY, d->o->space = (uint8_t)s;
    return true;
}
