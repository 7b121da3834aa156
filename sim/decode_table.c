/* decode_table: the functions that understand one first word of an opcode each, and their table. */
#include "decode.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

/* ---- control ---- */

static uint32_t label(dec *d, const char *name)
{
    int k = sim_ptx_label(d->f, name, (uint32_t)(d->i - d->f->insn));
    if (k < 0)
        sim_dec_refuse(d, "the label is not defined");
    return d->f->label[k].at;
}

static bool bra(dec *d)
{
    sim_dec_mod(d, "uni");
    sim_dec_ops(d, 1, 1);
    if (d->i->op[0].kind != O_SYMBOL)
        sim_dec_fail(d, "expected a label");
    d->o->run = sim_run_branch, d->o->cls = C_CONTROL;
    d->o->target = label(d, d->i->op[0].name);
    return true;
}

static bool brx(dec *d)
{
    sim_dec_mod(d, "uni");
    if (!sim_dec_mod(d, "idx"))
        sim_dec_fail(d, "only brx.idx is known");
    sim_dec_ops(d, 2, 2);
    int k = d->i->op[1].kind == O_SYMBOL ? sim_ptx_label(d->f, d->i->op[1].name, (uint32_t)(d->i - d->f->insn)) : -1;
    if (k < 0 || !d->f->label[k].targets)
        sim_dec_refuse(d, "the list of targets is not defined");
    uint32_t n = 1;
    for (const char *s = d->f->label[k].targets; *s; s++)
        n += *s == ',';
    sim_targets *t = sim_ptx_keep(d->p, sizeof *t + n * sizeof *t->at);
    char *copy = sim_ptx_copy(d->p, d->f->label[k].targets, strlen(d->f->label[k].targets)), *rest = NULL;
    for (char *s = strtok_r(copy, ", \t\r\n", &rest); s && t->n < n; s = strtok_r(NULL, ", \t\r\n", &rest))
        t->at[t->n++] = label(d, s);
    d->o->run = sim_run_branch_index, d->o->cls = C_CONTROL, d->o->fn.data = t;
    sim_dec_in(d, &d->i->op[0], 'w', T_U32);
    return true;
}

static bool leave(dec *d)
{
    sim_dec_mod(d, "uni");
    sim_dec_ops(d, 0, 0);
    d->o->run = sim_run_exit, d->o->cls = C_CONTROL;
    return true;
}
static bool trap(dec *d)
{
    d->o->run = sim_run_trap, d->o->cls = C_CONTROL;
    return true;
}

/* Hints without effect here: every modifier is accepted, operands are not evaluated. */
static bool nothing(dec *d)
{
    d->i->used = SIM_ALL;
    d->o->run = sim_run_nothing, d->o->cls = C_CONTROL;
    return true;
}

/* Dependents begin when they are launched, which is after this launch: the permission to begin sooner is only noted. */
static bool griddepcontrol(dec *d)
{
    bool wait = sim_dec_mod(d, "wait");
    if (!wait && !sim_dec_mod(d, "launch_dependents"))
        sim_dec_fail(d, "this griddepcontrol is unknown");
    sim_dec_ops(d, 0, 0);
    d->o->run = wait ? sim_run_grid_wait : sim_run_grid_over, d->o->cls = C_CONTROL;
    return true;
}

static bool createpolicy(dec *d)
{
    d->i->used = SIM_ALL;
    d->o->run = sim_run_clock, d->o->wide = true, d->o->sub = 3, d->o->unknown = U_PROPAGATE;
    if (!d->i->ops)
        sim_dec_fail(d, "wrong number of operands");
    sim_dec_def(d, &d->i->op[0], 'q');
    return true;
}

/* ---- between lanes ---- */

static bool shfl(dec *d)
{
    static const char *const modes[] = { "up", "down", "bfly", "idx", NULL };
    bool sync = sim_dec_mod(d, "sync");
    int mode = sim_dec_one_of(d, modes, -1);
    if (!sync || mode < 0 || sim_dec_type(d) != T_B32)
        sim_dec_fail(d, "this shuffle is unknown");
    sim_dec_ops(d, 5, 5);
    d->o->run = sim_run_shuffle, d->o->cls = C_SHUFFLE, d->o->sub = (uint8_t)mode, d->o->unknown = U_RUN;
    sim_dec_def(d, &d->i->op[0], 'w');
    sim_dec_pair(d, &d->i->op[0]);
    for (int k = 1; k < 5; k++)
        sim_dec_in(d, &d->i->op[k], 'w', T_B32);
    return true;
}

static bool vote(dec *d)
{
    static const char *const modes[] = { "all", "any", "uni", "ballot", NULL };
    bool sync = sim_dec_mod(d, "sync");
    int mode = sim_dec_one_of(d, modes, -1);
    sim_type t = sim_dec_type(d);
    if (!sync || mode < 0 || t != (mode == VOTE_BALLOT ? T_B32 : T_PRED))
        sim_dec_fail(d, "this vote is unknown");
    sim_dec_ops(d, 3, 3);
    d->o->run = sim_run_vote, d->o->cls = C_SHUFFLE, d->o->unknown = U_RUN, d->o->sub = (uint8_t)mode;
    sim_dec_def(d, &d->i->op[0], sim_type_class(t));
    sim_dec_in(d, &d->i->op[1], 'p', T_PRED);
    sim_dec_in(d, &d->i->op[2], 'w', T_B32);
    return true;
}

static bool match(dec *d)
{
    bool any = sim_dec_mod(d, "any"), all = !any && sim_dec_mod(d, "all"), sync = sim_dec_mod(d, "sync");
    sim_type t = sim_dec_type(d);
    if (!sync || (!any && !all))
        sim_dec_fail(d, "this match is unknown");
    sim_dec_ops(d, 3, 3);
    d->o->run = sim_run_match, d->o->cls = C_SHUFFLE, d->o->unknown = U_RUN, d->o->sub = all, d->o->wide = sim_type_class(t) == 'q';
    sim_dec_def(d, &d->i->op[0], 'w');
    sim_dec_pair(d, &d->i->op[0]);
    sim_dec_in(d, &d->i->op[1], sim_type_class(t), t);
    sim_dec_in(d, &d->i->op[2], 'w', T_B32);
    return true;
}

static bool activemask(dec *d)
{
    sim_dec_type(d);
    sim_dec_ops(d, 1, 1);
    d->o->run = sim_run_active, d->o->cls = C_SHUFFLE;
    sim_dec_def(d, &d->i->op[0], 'w');
    return true;
}

static bool redux(dec *d)
{
    static const char *const ops[] = { "add", "min", "max", "and", "or", "xor", NULL };
    bool sync = sim_dec_mod(d, "sync");
    int op = sim_dec_one_of(d, ops, -1);
    sim_type t = sim_dec_type(d);
    if (!sync || op < 0 || sim_type_float(t) || sim_type_bytes(t) != 4)
        sim_dec_fail(d, "this reduction is not simulated");
    sim_dec_ops(d, 3, 3);
    d->o->run = sim_run_redux, d->o->cls = C_SHUFFLE, d->o->unknown = U_RUN, d->o->sub = (uint8_t)op, d->o->type = (uint8_t)t;
    sim_dec_def(d, &d->i->op[0], 'w');
    for (int k = 1; k < 3; k++)
        sim_dec_in(d, &d->i->op[k], 'w', t);
    return true;
}

static bool elect(dec *d)
{
    if (!sim_dec_mod(d, "sync"))
        sim_dec_fail(d, "only elect.sync is known");
    sim_dec_ops(d, 2, 2);
    d->o->run = sim_run_elect, d->o->cls = C_SHUFFLE;
    sim_dec_def(d, &d->i->op[0], 'w');
    sim_dec_pair(d, &d->i->op[0]);
    sim_dec_in(d, &d->i->op[1], 'w', T_B32);
    return true;
}

/* ---- barriers ---- */

static bool bar(dec *d)
{
    sim_insn *o = d->o;
    if (!strcmp(d->i->word[0], "barrier")) {
        if (sim_dec_mod(d, "cluster")) {
            sim_dec_mod(d, "aligned"); /* as for bar: a warp comes as a whole either way */
            bool arrive = sim_dec_mod(d, "arrive"), wait = sim_dec_mod(d, "wait");
            if (arrive && sim_dec_mod(d, "relaxed"))
                o->sub = ARRIVE_RELAXED;
            sim_dec_mod(d, arrive ? "release" : "acquire");
            sim_dec_ops(d, 0, 0);
            if (arrive == wait)
                sim_dec_fail(d, "this barrier is unknown");
            o->cls = C_CONTROL, o->run = arrive ? sim_run_cluster_arrive : sim_run_cluster_wait;
            return true;
        }
    }
    sim_dec_mod(d, "cta");
    if (sim_dec_mod(d, "warp")) {
        if (!sim_dec_mod(d, "sync"))
            sim_dec_fail(d, "this barrier is unknown");
        sim_dec_ops(d, 1, 1);
        o->run = sim_run_warp_barrier, o->cls = C_CONTROL;
        sim_dec_in(d, &d->i->op[0], 'w', T_B32);
        return true;
    }
    sim_dec_mod(d, "aligned");
    bool sync = sim_dec_mod(d, "sync"), arrive = sim_dec_mod(d, "arrive"), red = sim_dec_mod(d, "red");
    int sub = sync ? BAR_SYNC : BAR_ARRIVE, ops = d->i->ops, last = ops;
    sim_type t = T_NONE;
    if (red) {
        sub = sim_dec_mod(d, "and") ? BAR_AND : sim_dec_mod(d, "or") ? BAR_OR : sim_dec_mod(d, "popc") ? BAR_POPC : -1;
        t = sim_dec_type(d);
        if (sub < 0 || t != (sub == BAR_POPC ? T_U32 : T_PRED))
            sim_dec_fail(d, "this reduction is unknown");
        sim_dec_ops(d, 3, 4);
        last = ops - 1;
    } else if (sync == arrive)
        sim_dec_fail(d, "this barrier is unknown");
    else
        sim_dec_ops(d, arrive ? 2 : 1, 2);
    o->run = sim_run_barrier, o->cls = C_CONTROL, o->sub = (uint8_t)sub, o->unknown = U_RUN;
    if (red)
        sim_dec_def(d, &d->i->op[0], sim_type_class(t));
    int first = red ? 1 : 0;
    sim_dec_in(d, &d->i->op[first], 'w', T_U32);
    if (last - first > 1)
        sim_dec_in(d, &d->i->op[first + 1], 'w', T_U32);
    else
        sim_dec_push(d, SIM_NO_ARG, false);
    if (red)
        sim_dec_in(d, &d->i->op[ops - 1], 'p', T_PRED);
    return true;
}

static bool fence(dec *d)
{
    static const char *const words[] = { "sc",
                                         "acq_rel",
                                         "proxy",
                                         "alias",
                                         "async",
                                         "async.global",
                                         "global",
                                         "shared::cta",
                                         "shared::cluster",
                                         "tensormap::generic",
                                         "mbarrier_init",
                                         "sync_restrict::shared::cta",
                                         "sync_restrict::shared::cluster",
                                         "gl",
                                         "cta",
                                         "gpu",
                                         "sys",
                                         "async::generic",
                                         NULL };
    bool proxy = sim_dec_mod(d, "proxy"), async = sim_dec_mod(d, "async"), global = sim_dec_mod(d, "global"), cta = sim_dec_mod(d, "cta"),
         init = sim_dec_mod(d, "mbarrier_init"), acquire = sim_dec_mod(d, "acquire"), release = sim_dec_mod(d, "release"),
         cluster = sim_dec_mod(d, "cluster");
    if (!proxy && !init && !cta && !cluster)
        d->o->order = (uint8_t)(ORDER_GRID | (acquire ? 0 : ORDER_RELEASE) | (release ? 0 : ORDER_ACQUIRE));
    while (sim_dec_one_of(d, words, -1) >= 0) {
    }
    d->o->run = sim_run_fence, d->o->cls = C_CONTROL,
    d->o->sub = proxy && async && !global ? FENCE_ASYNC
                : init                    ? FENCE_INIT
                : proxy || cta            ? FENCE_BLOCK
                                          : FENCE_MEMORY;
    return true;
}

/* ---- clusters ---- */

/* mapa[.shared::cluster].u32|u64 d, a, rank;  getctarank[.shared::cluster].u32|u64 d, a */
static bool mapa(dec *d)
{
    bool map = *d->i->word[0] == 'm';
    sim_space s = sim_dec_space(d);
    sim_type t = sim_dec_type(d);
    if ((s != SP_GENERIC && s != SP_CLUSTER) || (t != T_U32 && t != T_U64) || (s == SP_GENERIC && t == T_U32))
        sim_dec_fail(d, "this form is unknown");
    sim_dec_ops(d, map ? 3 : 2, map ? 3 : 2);
    char c = sim_type_class(t);
    sim_dec_def(d, &d->i->op[0], map ? c : 'w');
    sim_dec_in(d, &d->i->op[1], c, t);
    if (map)
        sim_dec_in(d, &d->i->op[2], 'w', T_U32);
    d->o->run = map ? sim_run_map_address : sim_run_rank_of, d->o->space = (uint8_t)s, d->o->wide = c == 'q';
    return true;
}

/* clang-format off */
const dec_row sim_decoders[] = {
    {"mov", sim_decode_mov}, {"and", sim_decode_logic}, {"or", sim_decode_logic}, {"xor", sim_decode_logic}, {"not", sim_decode_not},
    {"setp", sim_decode_setp}, {"set", sim_decode_setp}, {"selp", sim_decode_selp}, {"testp", sim_decode_testp},
    {"add", sim_decode_carry}, {"addc", sim_decode_carry}, {"sub", sim_decode_carry}, {"subc", sim_decode_carry},
    {"lop3", sim_decode_lop3}, {"slct", sim_decode_slct}, {"cvt", sim_decode_cvt}, {"cvta", sim_decode_cvta},
    {"isspacep", sim_decode_isspacep},
    {"bra", bra}, {"brx", brx}, {"ret", leave}, {"exit", leave}, {"trap", trap}, {"brkpt", trap},
    {"nanosleep", nothing}, {"griddepcontrol", griddepcontrol}, {"setmaxnreg", sim_decode_registers}, {"pmevent", nothing},
    {"discard", nothing}, {"applypriority", nothing},
    {"createpolicy", createpolicy}, {"ld", sim_decode_load_store}, {"ldu", sim_decode_load_store}, {"st", sim_decode_load_store},
    {"prefetch", sim_decode_prefetch}, {"prefetchu", sim_decode_prefetch},
    {"atom", sim_decode_atom}, {"red", sim_decode_atom}, {"shfl", shfl}, {"vote", vote}, {"match", match}, {"activemask", activemask},
    {"redux", redux}, {"elect", elect},
    {"bar", bar}, {"barrier", bar}, {"membar", fence}, {"fence", fence}, {"ldmatrix", sim_decode_ldmatrix},
    {"stmatrix", sim_decode_ldmatrix}, {"movmatrix", sim_decode_movmatrix}, {"mma", sim_decode_mma}, {"cp", sim_decode_cp},
    {"mbarrier", sim_decode_mbarrier}, {"mapa", mapa}, {"getctarank", mapa}, {"wgmma", sim_decode_wgmma}, {NULL, NULL},
};
/* clang-format on */
