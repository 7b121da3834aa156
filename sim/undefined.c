/* undefined: which bits of a warp's registers were never made, where they come from, and the report of one that decides something. */
#include "defined.h"
#include <stdio.h>
#include <string.h>

/* ---- the state ---- */

static size_t padded(size_t n)
{
    return (n + 63) & ~(size_t)63;
}
static size_t local_bytes(const sim_program *p)
{
    return p->local_bytes ? padded((size_t)SIM_LANES * ((p->local_bytes + 31u) & ~31u) / 8) : 0;
}

size_t sim_defined_bytes(const sim_program *p, size_t file)
{
    return file + padded(p->slots * sizeof(uint32_t)) + padded(p->slots * sizeof(sim_origin)) + local_bytes(p);
}

uint8_t *sim_defined_prepare(sim_warp *w, uint8_t *at, size_t file)
{
    const sim_program *p = w->block->program;
    sim_shadow *s = &w->shadow;
    s->bits = at, at += file;
    s->lanes = (uint32_t *)(void *)at, at += padded(p->slots * sizeof *s->lanes);
    s->origin = (sim_origin *)(void *)at, at += padded(p->slots * sizeof *s->origin);
    s->local = at;
    return at + local_bytes(p);
}

void sim_defined_start(sim_warp *w)
{
    const sim_program *p = w->block->program;
    sim_shadow *s = &w->shadow;
    if (!s->lanes)
        return; /* checks are off */
    if (s->slots)
        memset(s->lanes, 0, p->slots * sizeof *s->lanes);
    memset(s->local, 0, local_bytes(p));
    for (uint32_t k = 0; k < p->unsets; k++) {
        uint32_t n = p->unset[k].at & SLOT_NUMBER;
        s->lanes[n] = w->lanes;
        s->origin[n] = (sim_origin){ .at = p->unset[k].name, .kind = ORIGIN_REGISTER };
        if (!(p->unset[k].at & SLOT_PRED))
            memset(s->bits + (size_t)(n - 1) * 128, 0xFF, p->unset[k].at & SLOT_WIDE ? 256 : 128);
    }
    s->slots = p->unsets;
}

void sim_undefined_slot(sim_shadow *s, uint32_t n, uint32_t lanes, uint32_t m, const sim_origin *from)
{
    uint32_t was = s->lanes[n], is = (was & ~m) | (lanes & m);
    if (!n)
        return;
    s->lanes[n] = is;
    s->slots += (is != 0) - (was != 0);
    if (lanes & m)
        s->origin[n] = *from;
}

void sim_undefined_set(sim_warp *w, const sim_insn *i, int a, uint32_t lanes, uint32_t m, const sim_origin *from)
{
    sim_undefined_slot(&w->shadow, i->slot[a].at & SLOT_NUMBER, lanes, m, from);
}

void sim_undefined_fill(sim_warp *w, const sim_insn *i, int a, uint32_t lanes, uint32_t m, const sim_origin *from)
{
    uint32_t at = i->slot[a].at;
    lanes &= m;
    if (lanes && at && !(at & SLOT_PRED)) {
        sim_vec *v = sim_undefined_bits(w, i, a);
        if (at & SLOT_WIDE) {
            FOR_LANES(l, lanes) v->q[l] = UINT64_MAX;
        } else {
            FOR_LANES(l, lanes) v->u[l] = SIM_ALL;
        }
    }
    sim_undefined_set(w, i, a, lanes, m, from);
}

void sim_undefined_put(sim_warp *w, const sim_insn *i, int a, const uint64_t *bits, uint32_t open, uint32_t m, const sim_origin *from)
{
    uint32_t at = i->slot[a].at, lanes = 0;
    if (!at)
        return;
    sim_vec *v = sim_undefined_bits(w, i, a);
    FOR_LANES(l, open & m)
    {
        if (at & SLOT_WIDE)
            v->q[l] = bits[l];
        else
            v->u[l] = (uint32_t)bits[l];
        lanes |= (uint32_t)((at & SLOT_WIDE ? bits[l] : (uint32_t)bits[l]) != 0) << l;
    }
    sim_undefined_set(w, i, a, lanes, m, from);
}

const sim_origin *sim_undefined_origin(const sim_warp *w, const sim_insn *i, int a)
{
    return &w->shadow.origin[i->slot[a].at & SLOT_NUMBER];
}

/* ---- reports ---- */

static void name_of(const sim_program *p, uint32_t name, char *to, size_t room)
{
    uint32_t k = p->nnames;
    while (k && p->names[k - 1].first > name - 1)
        k--;
    if (!name || !k)
        snprintf(to, room, "?");
    else if (p->names[k - 1].whole)
        snprintf(to, room, "%s", p->names[k - 1].prefix);
    else
        snprintf(to, room, "%s%u", p->names[k - 1].prefix, name - 1 - p->names[k - 1].first);
}

void sim_origin_text(const sim_warp *w, const sim_origin *o, char *to, size_t room)
{
    char what[400], name[100];
    if (o->kind == ORIGIN_REGISTER) {
        name_of(w->block->program, (uint32_t)o->at, name, sizeof name);
        snprintf(to, room, "it comes from register %s, which was never written", name);
        return;
    }
    if (o->kind == ORIGIN_GLOBAL) {
        sim_report_address(w->block, o->at, name, sizeof name);
        snprintf(what, sizeof what, "global memory is read that was never written: %s", name);
    } else if (o->kind == ORIGIN_LANE)
        snprintf(what, sizeof what, "a shuffle reads lane %u, which does not take part", (unsigned)o->at);
    else if (o->kind == ORIGIN_STORED)
        snprintf(what, sizeof what, "shared memory is read to which an undefined value was stored: offset %u", (unsigned)o->at);
    else
        snprintf(what, sizeof what, "%s memory is read that was never written: offset %llu", o->kind == ORIGIN_LOCAL ? "local" : "shared",
                 (unsigned long long)o->at);
    snprintf(to, room, "at PTX line %u %s", o->insn->line, what);
}

bool sim_undefined_report(sim_warp *w, const sim_insn *i, int a, int lane, const char *what)
{
    const sim_origin *o = sim_undefined_origin(w, i, a);
    bool pred = i->slot[a].at & SLOT_PRED;
    char name[100], from[600];
    name_of(w->block->program, i->slot[a].name, name, sizeof name);
    sim_step step;
    sim_origin_text(w, o, from, sizeof from);
    if (o->kind == ORIGIN_REGISTER && o->at == i->slot[a].name)
        step =
            sim_fault(w, i, lane, SIM_CHECK_UNDEFINED, "%s %s %s, but it was never written", pred ? "predicate" : "register", name, what);
    else
        step = sim_fault(w, i, lane, sim_origin_check(o), "%s %s %s, but its value is undefined: %s", pred ? "predicate" : "register", name,
                         what, from);
    if (step == STEP_FAULT)
        return false;
    sim_undefined_set(w, i, a, 0, SIM_ALL, NULL);
    return true;
}
