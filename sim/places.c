/* places: lifetimes of registers, and a linear scan that gives each the first place that is free. */
#include "places.h"
#include "defined.h"
#include <string.h>

typedef struct life {
    uint32_t start, end;
} life;

static void touch(life *l, uint32_t r, uint32_t at)
{
    if (at < l[r].start)
        l[r].start = at;
    if (at > l[r].end)
        l[r].end = at;
}

/* Places by linear scan over lifetimes. A place is 128 bytes, of a 64-bit register 256; a predicate is a mask in another array. */
static void places(sim_flow_graph *w, const uint64_t *tracked, const uint64_t *hold, uint32_t *place)
{
    sim_program *g = w->prog;
    size_t regs = w->f->regs, words = w->words;
    life *l = sim_ptx_alloc(w->p, (regs + 1) * sizeof *l);
    for (size_t r = 0; r < regs; r++)
        l[r].start = UINT32_MAX;
    for (uint32_t k = 0; k < w->n; k++)
        for (size_t x = 0; x < words; x++)
            for (int side = 0; side < 2; side++)
                for (uint64_t bits = (side ? w->live_out : w->live_in)[k * words + x]; bits; bits &= bits - 1)
                    touch(l, (uint32_t)(x * 64) + (uint32_t)__builtin_ctzll(bits), side ? w->b[k].last : w->b[k].first);
    for (uint32_t k = 0; k < g->insns; k++) {
        for (int a = 0; a < g->code[k].args; a++)
            if (g->code[k].arg[a] >= 0)
                touch(l, (uint32_t)g->code[k].arg[a], k);
        if (g->code[k].guard >= 0)
            touch(l, (uint32_t)g->code[k].guard, k);
    }
    for (int s = 0; s < SR_COUNT; s++)
        if (w->f->special[s])
            l[w->f->special[s]] = (life){ 0, UINT32_MAX };
    for (size_t r = 0; r < regs; r++)
        if (SIM_HAS(tracked, r) || SIM_HAS(hold, r))
            l[r] = (life){ 0, UINT32_MAX };

    uint32_t *starts = sim_ptx_alloc(w->p, (g->insns + 2) * sizeof *starts), *ends = sim_ptx_alloc(w->p, (g->insns + 2) * sizeof *ends);
    uint32_t *by_start = sim_ptx_alloc(w->p, (regs + 1) * sizeof *by_start), *by_end = sim_ptx_alloc(w->p, (regs + 1) * sizeof *by_end);
    /* buckets by position: chains through the register numbers, 0 = none */
    for (size_t r = 0; r < regs; r++) {
        if (l[r].start == UINT32_MAX)
            continue;
        by_start[r] = starts[l[r].start], starts[l[r].start] = (uint32_t)r + 1;
        if (l[r].end < g->insns)
            by_end[r] = ends[l[r].end], ends[l[r].end] = (uint32_t)r + 1;
    }
    uint32_t *free_of[3], nfree[3] = { 0, 0, 0 }, made[3] = { 0, 0, 0 };
    for (int c = 0; c < 3; c++)
        free_of[c] = sim_ptx_alloc(w->p, (regs + 1) * sizeof **free_of);
    for (uint32_t at = 0; at < g->insns; at++) {
        for (uint32_t r = starts[at]; r; r = by_start[r - 1]) {
            sim_type t = w->f->reg[r - 1].type;
            int c = t == T_PRED ? 2 : sim_type_bytes(t) == 8 ? 1 : 0;
            place[r - 1] = nfree[c] ? free_of[c][--nfree[c]] : made[c]++;
        }
        for (uint32_t r = ends[at]; r; r = by_end[r - 1]) {
            sim_type t = w->f->reg[r - 1].type;
            int c = t == T_PRED ? 2 : sim_type_bytes(t) == 8 ? 1 : 0;
            free_of[c][nfree[c]++] = place[r - 1];
        }
    }
    uint32_t wide_from = (made[0] * 128 + 255) & ~255u;
    for (size_t r = 0; r < regs; r++) {
        sim_type t = w->f->reg[r].type;
        if (t != T_PRED)
            place[r] = sim_type_bytes(t) == 8 ? wide_from + place[r] * 256 : place[r] * 128;
    }
    g->file_bytes = wide_from + made[1] * 256 + 256;
    g->preds = made[2];
    for (int s = 0; s < SR_COUNT; s++)
        if (w->f->special[s])
            g->special[s] = place[w->f->special[s]] + 1;
}

static const char *full_name(sim_flow_graph *w, uint32_t r) /* of a register, from its prefix */
{
    uint32_t k = r;
    while (k && !w->f->reg[k].name)
        k--;
    const ptx_register *g = &w->f->reg[k];
    if (!g->name || g->number < 0)
        return g->name ? g->name : "?";
    char text[32];
    size_t n = strlen(g->name);
    uint32_t v = r - k, digits = 0;
    do
        text[31 - digits++] = (char)('0' + v % 10);
    while ((v /= 10) && digits < 20);
    char *s = sim_ptx_keep(w->p, n + digits + 1);
    memcpy(s, g->name, n);
    memcpy(s + n, text + 32 - digits, digits);
    return s;
}

/* Instructions that touch a register of some wgmma learn which; before the arguments become places. */
static void mark_held(sim_flow_graph *w, const uint64_t *hold, const uint32_t *place)
{
    sim_program *g = w->prog;
    uint16_t *index = sim_ptx_alloc(w->p, (w->f->regs + 1) * sizeof *index);
    uint32_t count = 0;
    for (size_t r = 0; r < w->f->regs; r++)
        if (SIM_HAS(hold, r))
            index[r] = (uint16_t)++count;
    if (count > 65000)
        sim_ptx_fail(w->p, g->code[0].line, "too many registers of wgmmas");
    g->held = count;
    g->held_place = sim_ptx_keep(w->p, (count + 1) * sizeof *g->held_place);
    g->held_names = sim_ptx_keep(w->p, (count + 1) * sizeof *g->held_names);
    for (size_t r = 0; r < w->f->regs; r++)
        if (index[r])
            g->held_place[index[r] - 1] = place[r], g->held_names[index[r] - 1] = (char *)(uintptr_t)full_name(w, (uint32_t)r);
    for (uint32_t k = 0; k < g->insns && count; k++) {
        sim_insn *o = &g->code[k];
        bool any = false;
        for (int a = 0; a < o->args; a++)
            any |= o->arg[a] >= 0 && index[o->arg[a]];
        if (!any)
            continue;
        uint16_t *t = sim_ptx_keep(w->p, (size_t)o->args * sizeof *t);
        for (int a = 0; a < o->args; a++)
            t[a] = o->arg[a] >= 0 ? index[o->arg[a]] : 0;
        o->held = t;
        if (o->kind != K_RUN || o->run != sim_run_wgmma)
            o->flags |= F_HELD;
    }
}

static sim_slot slot_of(const sim_flow_graph *w, int32_t r, const uint32_t *place)
{
    if (r < 0)
        return (sim_slot){ 0, 0 };
    sim_type t = w->f->reg[r].type;
    if (t == T_PRED)
        return (sim_slot){ SLOT_PRED | (1 + w->prog->file_bytes / 128 + place[r]), (uint32_t)r + 1 };
    return (sim_slot){ (sim_type_bytes(t) == 8 ? SLOT_WIDE : 0u) | (1 + place[r] / 128), (uint32_t)r + 1 };
}

/* The slots of arguments and guards, and the names for reports; before the arguments become places. */
static void slots(sim_flow_graph *w, const uint64_t *tracked, const uint32_t *place)
{
    sim_program *g = w->prog;
    size_t n = 0;
    for (uint32_t k = 0; k < g->insns; k++)
        n += g->code[k].args + 1u;
    sim_slot *at = sim_ptx_keep(w->p, n * sizeof *at);
    for (uint32_t k = 0; k < g->insns; k++) {
        sim_insn *o = &g->code[k];
        o->slot = at;
        for (int a = 0; a < o->args; a++)
            *at++ = slot_of(w, o->arg[a], place);
        *at++ = slot_of(w, o->guard, place);
    }
    g->slots = 1 + g->file_bytes / 128 + g->preds + 1;
    for (size_t r = 0; r < w->f->regs; r++)
        g->unsets += SIM_HAS(tracked, r) != 0, g->nnames += w->f->reg[r].name != NULL;
    g->unset = sim_ptx_keep(w->p, (g->unsets + 1) * sizeof *g->unset);
    g->names = sim_ptx_keep(w->p, (g->nnames + 1) * sizeof *g->names);
    uint32_t u = 0, names = 0;
    for (size_t r = 0; r < w->f->regs; r++) {
        const ptx_register *x = &w->f->reg[r];
        if (SIM_HAS(tracked, r))
            g->unset[u++] = slot_of(w, (int32_t)r, place);
        if (!x->name)
            continue;
        char *prefix = sim_ptx_keep(w->p, strlen(x->name) + 1);
        strcpy(prefix, x->name);
        g->names[names++] = (struct sim_name){ prefix, (uint32_t)r, x->number < 0 };
    }
}

/* Arguments become places. */
static void rename_arguments(sim_flow_graph *w, const uint32_t *place)
{
    sim_program *g = w->prog;
    for (uint32_t k = 0; k < g->insns; k++) {
        sim_insn *o = &g->code[k];
        int32_t *arg = (int32_t *)(uintptr_t)o->arg;
        for (int a = 0; a < o->args; a++) {
            if (arg[a] == SIM_NO_ARG)
                continue;
            arg[a] = arg[a] >= 0 ? (int32_t)place[arg[a]] : ~(~arg[a] * 256);
        }
        if (o->guard >= 0)
            o->guard = (int32_t)place[o->guard];
    }
}

static void pool(sim_flow_graph *w)
{
    ptx_function *f = w->f;
    sim_vec *v = sim_ptx_keep(w->p, (f->constants + 1) * sizeof *v);
    for (size_t k = 0; k < f->constants; k++)
        for (int l = 0; l < SIM_LANES; l++) {
            if (f->constant[k].wide)
                v[k].q[l] = f->constant[k].value;
            else
                v[k].u[l] = (uint32_t)f->constant[k].value;
        }
    w->prog->pool = v, w->prog->pool_rows = (uint32_t)f->constants;
}

void sim_places_give(sim_flow_graph *w, const uint64_t *tracked, const uint64_t *held)
{
    uint32_t *place = sim_ptx_alloc(w->p, (w->f->regs + 1) * sizeof *place);
    places(w, tracked, held, place);
    mark_held(w, held, place);
    slots(w, tracked, place);
    rename_arguments(w, place);
    pool(w);
}
