/* decode_memory: what moves data through memory: loads, stores, atomics, matrices, copies, mbarriers. */
#include "alu.h"
#include "decode.h"
#include "run.h"
#include <string.h>

static const char *const scopes[] = { "cta", "cluster", "gpu", "sys", NULL };

sim_space sim_dec_space(dec *d)
{
    if (sim_dec_mod(d, "global"))
        return SP_GLOBAL;
    if (sim_dec_mod(d, "shared") || sim_dec_mod(d, "shared::cta"))
        return SP_SHARED;
    if (sim_dec_mod(d, "shared::cluster"))
        return SP_CLUSTER;
    if (sim_dec_mod(d, "local"))
        return SP_LOCAL;
    if (sim_dec_mod(d, "param") || sim_dec_mod(d, "param::entry") || sim_dec_mod(d, "param::func"))
        return SP_PARAM;
    if (sim_dec_mod(d, "const"))
        return SP_CONST;
    return SP_GENERIC;
}

/* ---- memory ---- */

/* A strong access? always: it is one without a word, too. Its scope is the GPU unless it says otherwise. */
static bool ordered(dec *d, sim_space s, bool always)
{
    static const char *const words[] = { "acquire", "release", "acq_rel", "volatile", "relaxed", NULL };
    static const uint8_t orders[] = { ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQUIRE | ORDER_RELEASE };
    sim_dec_mod(d, "mmio"); /* .mmio.relaxed.sys */
    int word = sim_dec_one_of(d, words, -1), scope = sim_dec_one_of(d, scopes, 2);
    if (word < 0 && !always)
        return false;
    if (s != SP_GLOBAL && s != SP_GENERIC)
        return true;
    d->f->program->exchanges = true;
    if (scope >= 2)
        d->o->order = (uint8_t)(ORDER_GRID | (word >= 0 && word < 3 ? orders[word] : 0));
    return true;
}

bool sim_decode_load_store(dec *d)
{
    bool store = !strcmp(d->i->word[0], "st");
    sim_insn *o = d->o;
    sim_space s = sim_dec_space(d);
    if (ordered(d, s, false))
        o->flags |= F_VOLATILE;
    if (!store && s == SP_GLOBAL && o->order == ORDER_GRID)
        o->flags |= F_HINT;
    if (sim_dec_mod(d, "nc"))
        o->order |= ORDER_CACHED;
    bool policy = sim_dec_hints(d);
    int n = sim_dec_mod(d, "v2") ? 2 : sim_dec_mod(d, "v4") ? 4 : sim_dec_mod(d, "v8") ? 8 : 1;
    sim_type t = sim_dec_type(d);
    if (t == T_PRED || t == T_B128 || n * sim_type_bytes(t) > 32)
        sim_dec_fail(d, "this type cannot be moved");
    sim_dec_ops(d, policy ? 3 : 2, policy ? 3 : 2);
    if (policy)
        sim_dec_policy(d, 2);
    const ptx_operand *v = &d->i->op[store ? 1 : 0], *list = v->kind == O_VECTOR ? v->elem : v;
    if ((v->kind == O_VECTOR ? v->n : 1) != n)
        sim_dec_fail(d, "wrong number of elements");
    const ptx_operand *at = &d->i->op[store ? 0 : 1];
    if (s == SP_PARAM && at->kind == O_MEMORY) { /* of a call: in local memory */
        const ptx_operand *base = &at->elem[0];
        if (base->kind == O_SYMBOL && base->local && d->f->local[base->local - 1].passed)
            s = SP_LOCAL;
        else if (d->i->called)
            sim_dec_fail(d, "a parameter of a called function through a register is not simulated");
    }
    if (store && (s == SP_PARAM || s == SP_CONST))
        sim_dec_fail(d, "this space cannot be written");
    char c = 0;
    for (int k = 0; k < n; k++) {
        char x = list[k].kind == O_REG ? sim_dec_class(d, &list[k]) : sim_type_class(t);
        if (x == 'p' || (c && x != c && list[k].kind == O_REG) || (sim_type_class(t) == 'q' && x != 'q'))
            sim_dec_fail(d, "an operand has the wrong size");
        if (list[k].kind == O_REG || !c)
            c = x;
    }
    if (!store)
        for (int k = 0; k < n; k++)
            sim_dec_def(d, &list[k], c);
    sim_dec_address(d, &d->i->op[store ? 0 : 1], s);
    if (store)
        for (int k = 0; k < n; k++)
            sim_dec_in(d, &list[k], c, t);
    o->run = store ? sim_run_store : sim_run_load;
    o->cls = C_MEMORY, o->space = (uint8_t)s, o->type = (uint8_t)t, o->count = (uint8_t)n, o->wide = c == 'q',
    o->sub = (uint8_t)sim_type_bytes(t);
    if (store)
        o->unknown = U_RUN;
    return true;
}

/* It touches nothing, and of an address that leads nowhere the hardware makes nothing either. */
bool sim_decode_prefetch(dec *d)
{
    sim_space s = sim_dec_space(d);
    if (sim_dec_mod(d, "tensormap"))
        return sim_decode_tensormap(d, s);
    static const char *const words[] = { "L1", "L2", "L2::evict_last", "L2::evict_normal", NULL };
    sim_dec_one_of(d, words, 0);
    sim_dec_ops(d, 1, 1);
    sim_dec_address(d, &d->i->op[0], s);
    d->o->run = sim_run_nothing, d->o->cls = C_MEMORY, d->o->space = (uint8_t)s, d->o->unknown = U_PROPAGATE;
    return true;
}

bool sim_decode_atom(dec *d)
{
    static const char *const ops[] = { "add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", NULL };
    bool red = !strcmp(d->i->word[0], "red");
    sim_insn *o = d->o;
    sim_space s = sim_dec_space(d);
    ordered(d, s, true);
    bool policy = sim_dec_hints(d);
    sim_dec_mod(d, "noftz");
    int count = sim_dec_mod(d, "v4") ? 4 : sim_dec_mod(d, "v2") ? 2 : 1;
    int op = sim_dec_one_of(d, ops, -1);
    sim_type t = sim_dec_type(d);
    if (op < 0)
        sim_dec_fail(d, "this atomic operation is not simulated");
    bool floating = sim_type_float(t);
    if (sim_type_bytes(t) < 4 || (floating && (op != ATOM_ADD || t == T_TF32)) || t == T_B128)
        sim_dec_fail(d, "this atomic operation of this type is not simulated");
    if (count > 1 && (!red || t != T_F32 || op != ATOM_ADD || s != SP_GLOBAL))
        sim_dec_fail(d, "of atomic operations on vectors only red.global.add of f32 is simulated");
    int n = (red ? 0 : 1) + 2 + (op == ATOM_CAS) + policy;
    sim_dec_ops(d, n, n);
    const ptx_operand *at = &d->i->op[red ? 0 : 1];
    if (red)
        sim_dec_push(d, SIM_NO_ARG, false), o->defs = 1;
    else
        sim_dec_def(d, &d->i->op[0], sim_type_class(t));
    sim_dec_address(d, at, s);
    if (at[1].kind == O_VECTOR ? at[1].n != count : count > 1)
        sim_dec_fail(d, "wrong number of registers");
    for (int k = 0; k < count; k++)
        sim_dec_in(d, at[1].kind == O_VECTOR ? &at[1].elem[k] : at + 1, sim_type_class(t), t);
    if (op == ATOM_CAS)
        sim_dec_in(d, at + 2, sim_type_class(t), t);
    o->run = sim_run_atom, o->cls = C_MEMORY, o->unknown = U_RUN, o->space = (uint8_t)s, o->type = (uint8_t)t, o->sub = (uint8_t)op,
    o->count = (uint8_t)count, o->wide = sim_type_class(t) == 'q';
    return true;
}

/* ---- matrices ---- */

static void registers(dec *d, const ptx_operand *v, int n, bool def)
{
    const ptx_operand *list = v->kind == O_VECTOR ? v->elem : v;
    if ((v->kind == O_VECTOR ? v->n : 1) != n)
        sim_dec_fail(d, "wrong number of registers");
    for (int k = 0; k < n; k++) {
        if (def)
            sim_dec_def(d, &list[k], 'w');
        else
            sim_dec_in(d, &list[k], 'w', T_B32);
    }
}

bool sim_decode_ldmatrix(dec *d)
{
    bool store = *d->i->word[0] == 's', sync = sim_dec_mod(d, "sync") && sim_dec_mod(d, "aligned") && sim_dec_mod(d, "m8n8");
    int n = sim_dec_mod(d, "x1") ? 1 : sim_dec_mod(d, "x2") ? 2 : sim_dec_mod(d, "x4") ? 4 : 0;
    if (sim_dec_mod(d, "trans"))
        d->o->flags |= F_TRANS;
    sim_space s = sim_dec_space(d);
    if (!sync || !n || sim_dec_type(d) != T_B16 || (s != SP_SHARED && s != SP_GENERIC))
        sim_dec_fail(d, "this matrix move is not simulated");
    sim_dec_ops(d, 2, 2);
    d->o->run = store ? sim_run_stmatrix : sim_run_ldmatrix, d->o->cls = C_MEMORY, d->o->space = (uint8_t)s, d->o->count = (uint8_t)n;
    if (store)
        d->o->unknown = U_RUN;
    if (!store)
        registers(d, &d->i->op[0], n, true);
    sim_dec_address(d, &d->i->op[store ? 0 : 1], s);
    if (store)
        registers(d, &d->i->op[1], n, false);
    return true;
}

bool sim_decode_movmatrix(dec *d)
{
    if (!sim_dec_mod(d, "sync") || !sim_dec_mod(d, "aligned") || !sim_dec_mod(d, "m8n8") || !sim_dec_mod(d, "trans") ||
        sim_dec_type(d) != T_B16)
        sim_dec_fail(d, "this matrix move is not simulated");
    sim_dec_ops(d, 2, 2);
    d->o->run = sim_run_movmatrix, d->o->cls = C_SHUFFLE, d->o->unknown = U_RUN;
    sim_dec_def(d, &d->i->op[0], 'w');
    sim_dec_in(d, &d->i->op[1], 'w', T_B32);
    return true;
}

bool sim_decode_mma(dec *d)
{
    static const struct {
        const char *shape;
        sim_type t;
        int k, a, b;
    } shapes[] = {
        { "m16n8k16", T_F16, 16, 4, 2 }, { "m16n8k16", T_BF16, 16, 4, 2 }, { "m16n8k8", T_F16, 8, 2, 1 },  { "m16n8k8", T_BF16, 8, 2, 1 },
        { "m16n8k8", T_TF32, 8, 4, 2 },  { "m16n8k4", T_TF32, 4, 2, 1 },   { "m16n8k32", T_S8, 32, 4, 2 }, { "m16n8k16", T_S8, 16, 2, 1 },
    };
    bool ok = sim_dec_mod(d, "sync") && sim_dec_mod(d, "aligned") && sim_dec_mod(d, "row") && sim_dec_mod(d, "col");
    if (!ok)
        sim_dec_fail(d, "this mma is not simulated");
    sim_type c = sim_dec_type(d), b = sim_dec_type(d), a = sim_dec_type(d), r = sim_dec_type(d);
    bool half = a == T_F16 && c == T_F16 && r == T_F16;
    sim_type sum = a == T_S8 ? T_S32 : T_F32;
    if (a != b || (!half && (c != sum || r != sum)))
        sim_dec_fail(d, "this mma is not simulated");
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        if (shapes[k].t != a || !sim_dec_mod(d, shapes[k].shape))
            continue;
        sim_dec_ops(d, 4, 4);
        d->o->run = sim_run_mma, d->o->cls = C_MATRIX, d->o->unknown = U_MATRIX, d->o->type = (uint8_t)a,
        d->o->count = (uint8_t)shapes[k].k, d->o->type2 = (uint8_t)c;
        registers(d, &d->i->op[0], half ? 2 : 4, true);
        registers(d, &d->i->op[1], shapes[k].a, false);
        registers(d, &d->i->op[2], shapes[k].b, false);
        registers(d, &d->i->op[3], half ? 2 : 4, false);
        return true;
    }
    sim_dec_fail(d, "this mma is not simulated");
}

/* ---- asynchronous copies, mbarriers ---- */

bool sim_decode_cp(dec *d)
{
    sim_insn *o = d->o;
    if (sim_decode_bulk(d))
        return true;
    if (!sim_dec_mod(d, "async"))
        sim_dec_fail(d, "this copy is not simulated");
    o->cls = C_MEMORY;
    if (sim_dec_mod(d, "commit_group"))
        return sim_dec_ops(d, 0, 0), o->run = sim_run_commit, o->cls = C_CONTROL, true;
    if (sim_dec_mod(d, "wait_all"))
        return sim_dec_ops(d, 0, 0), o->run = sim_run_wait, o->sub = WAIT_ALL, o->cls = C_CONTROL, true;
    if (sim_dec_mod(d, "wait_group")) {
        sim_dec_ops(d, 1, 1);
        if (d->i->op[0].kind != O_IMM)
            sim_dec_fail(d, "the number of groups must be a constant");
        o->run = sim_run_wait, o->sub = WAIT_GROUP, o->imm = (int64_t)d->i->op[0].imm, o->cls = C_CONTROL;
        return true;
    }
    if (sim_dec_mod(d, "mbarrier")) {
        if (!sim_dec_mod(d, "arrive"))
            sim_dec_fail(d, "this copy is not simulated");
        if (sim_dec_mod(d, "noinc"))
            o->flags |= F_NOINC;
        sim_space s = sim_dec_space(d);
        sim_dec_type(d);
        sim_dec_ops(d, 1, 1);
        sim_dec_address(d, &d->i->op[0], s);
        o->run = sim_run_copy_arrive, o->space = (uint8_t)s;
        return true;
    }
    bool cg = sim_dec_mod(d, "cg"), ca = !cg && sim_dec_mod(d, "ca"), to = sim_dec_mod(d, "shared") || sim_dec_mod(d, "shared::cta"),
         from = sim_dec_mod(d, "global"), policy = sim_dec_hints(d);
    if (!(cg || ca) || !to || !from) {
        d->i->used = 1;
        sim_dec_fail(d, "this copy is not simulated");
    }
    sim_dec_ops(d, policy ? 4 : 3, policy ? 5 : 4);
    int extra = d->i->ops - 3 - policy;
    if (policy)
        sim_dec_policy(d, d->i->ops - 1);
    if (d->i->op[2].kind != O_IMM)
        sim_dec_fail(d, "the size of a copy must be a constant");
    uint64_t n = d->i->op[2].imm;
    if (n != 16 && (cg || (n != 4 && n != 8)))
        sim_dec_fail(d, "the size of a copy must be 4, 8 or 16, with .cg 16");
    sim_dec_address(d, &d->i->op[0], SP_SHARED);
    o->target = (uint32_t)o->imm; /* offset of the destination */
    uint16_t wide_to = o->flags & F_WIDE;
    o->flags = (uint16_t)(o->flags & ~F_WIDE);
    sim_dec_address(d, &d->i->op[1], SP_GLOBAL);
    o->wide = wide_to != 0;
    if (extra) {
        bool ignore = d->i->op[3].kind == O_REG && sim_dec_class(d, &d->i->op[3]) == 'p';
        o->flags |= ignore ? F_IGNORE : F_SIZE;
        sim_dec_in(d, &d->i->op[3], ignore ? 'p' : 'w', T_U32);
    }
    o->run = sim_run_copy, o->count = (uint8_t)n;
    return true;
}

bool sim_decode_mbarrier(dec *d)
{
    sim_insn *o = d->o;
    static const char *const order[] = { "acquire", "release", "relaxed", NULL };
    bool complete = sim_dec_mod(d, "complete_tx"), init = sim_dec_mod(d, "init"), inval = sim_dec_mod(d, "inval"),
         arrive = sim_dec_mod(d, "arrive"), drop = sim_dec_mod(d, "arrive_drop"), test = sim_dec_mod(d, "test_wait"),
         wait = sim_dec_mod(d, "try_wait");
    bool expect = sim_dec_mod(d, "expect_tx"), parity = sim_dec_mod(d, "parity");
    if (sim_dec_mod(d, "noComplete"))
        sim_dec_fail(d, ".noComplete is not simulated");
    sim_dec_one_of(d, order, 0);
    sim_dec_one_of(d, scopes, 0);
    sim_space s = sim_dec_space(d);
    sim_dec_type(d);
    o->cls = C_MEMORY, o->space = (uint8_t)s;
    bool bytes = complete || (expect && !arrive);
    if (init + inval + arrive + drop + test + wait + bytes != 1 || (expect && drop))
        sim_dec_fail(d, "this mbarrier operation is not simulated");
    if (init || inval) {
        sim_dec_ops(d, init ? 2 : 1, init ? 2 : 1);
        sim_dec_address(d, &d->i->op[0], s);
        if (init)
            sim_dec_in(d, &d->i->op[1], 'w', T_U32);
        o->run = init ? sim_run_mbarrier_init : sim_run_mbarrier_inval;
    } else if (bytes) { /* [a], tx */
        sim_dec_ops(d, 2, 2);
        sim_dec_address(d, &d->i->op[0], s);
        sim_dec_in(d, &d->i->op[1], 'w', T_U32);
        o->run = sim_run_mbarrier_tx, o->sub = complete;
    } else if (arrive || drop) { /* state, [a] {, count or tx} */
        sim_dec_ops(d, 1, 3);
        bool state = d->i->op[0].kind != O_MEMORY;
        if (state)
            sim_dec_def(d, &d->i->op[0], 'q');
        else
            sim_dec_push(d, SIM_NO_ARG, false), o->defs = 1;
        sim_dec_address(d, &d->i->op[state], s);
        if (d->i->ops > state + 1)
            sim_dec_in(d, &d->i->op[state + 1], 'w', T_U32);
        else
            sim_dec_push(d, SIM_NO_ARG, false);
        if (expect)
            o->flags |= F_EXPECT;
        o->run = sim_run_mbarrier_arrive, o->sub = drop;
    } else {
        sim_dec_ops(d, 3, 4); /* p, [a], state or parity {, time} */
        sim_dec_def(d, &d->i->op[0], 'p');
        sim_dec_address(d, &d->i->op[1], s);
        sim_dec_in(d, &d->i->op[2], parity ? 'w' : 'q', parity ? T_U32 : T_U64);
        if (parity)
            o->flags |= F_PARITY;
        o->run = sim_run_mbarrier_test, o->sub = wait;
    }
    return true;
}
