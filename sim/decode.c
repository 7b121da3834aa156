/* decode: raw PTX instructions to sim_insn. A table maps the first word of an opcode to the function that understands its
 * modifiers and operands; what is not there is looked up in the tables of alu.h. A word that is not understood is an error. */
#include "decode.h"
#include "alu.h"
#include "run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tables of alu.h ---- */

/* Every arithmetic instruction of a program is compared with some hundred rows: nothing is copied or printed for it. */
static bool row_matches(const dec *d, const sim_alu_row *r, sim_type t, uint32_t *used)
{
    const char *name = r->op, *first = d->i->word[0];
    if (name[0] != first[0] || !(r->types >> t & 1))
        return false;
    while (*first && *first == *name)
        first++, name++;
    if (*first || (*name && *name != '.'))
        return false;
    *used = 0;
    while (*name) {
        bool found = false;
        size_t n = strcspn(++name, ".");
        for (int k = 1; k < d->i->words && !found; k++)
            if (!strncmp(d->i->word[k], name, n) && !d->i->word[k][n])
                *used |= 1u << k, found = true;
        if (!found)
            return false;
        name += n;
    }
    return (int)strlen(r->operands) == d->i->ops;
}

static bool alu(dec *d)
{
    static const sim_alu_row *const tables[] = { sim_alu_integer, sim_alu_float, sim_alu_half };
    uint32_t before = d->i->used, used = 0;
    if (d->i->words < 2)
        return false;
    sim_type t = sim_dec_type(d);
    const sim_alu_row *r = NULL;
    for (int k = 0; k < 3 && !r; k++)
        for (const sim_alu_row *x = tables[k]; x->op && !r; x++)
            if (row_matches(d, x, t, &used))
                r = x;
    if (!r)
        return d->i->used = before, false;
    d->i->used |= used;
    d->o->kind = K_ALU;
    d->o->fn.alu = r->fn;
    if (sim_dec_mod(d, "ftz")) {
        if (!r->ftz)
            sim_dec_fail(d, ".ftz is not allowed here");
        d->o->fn.alu = r->ftz;
    }
    if (r->flags & A_SAT && sim_dec_mod(d, "sat"))
        d->o->flags |= F_SAT;
    int round = sim_dec_round(d);
    if (round > 0 && !(r->flags & A_ROUND))
        sim_dec_fail(d, "the rounding is not simulated here");
    if (round > 0)
        d->o->flags |= F_ROUND, d->o->round = (uint8_t)round;
    if (r->flags & A_SPECIAL)
        d->o->cls = C_SPECIAL;
    d->o->wide = r->operands[0] == 'q';
    if (!strcmp(r->op, "mov") && !strcmp(r->operands, "ww"))
        d->o->flags |= F_MOVE;
    uint32_t bits = r->flags >> A_BITS_SHIFT;
    bool halves = t == T_F16X2 || t == T_BF16X2 || t == T_U16X2 || t == T_S16X2;
    d->o->unknown = bits ? U_BITS : halves ? U_HALVES : U_PROPAGATE, d->o->sub = (uint8_t)bits;
    sim_dec_def(d, &d->i->op[0], r->operands[0]);
    for (int k = 1; k < d->i->ops; k++)
        sim_dec_in(d, &d->i->op[k], r->operands[k], t);
    return true;
}

static void finish(dec *d)
{
    char why[160];
    for (int k = 1; k < d->i->words; k++) {
        if (d->i->used >> k & 1)
            continue;
        snprintf(why, sizeof why, "unknown modifier .%.100s", d->i->word[k]);
        sim_dec_fail(d, why);
    }
    sim_insn *o = d->o;
    if (!d->f->chunk || d->f->chunk_left < (size_t)d->n) {
        d->f->chunk_left = d->f->insns < 256 ? 16 * d->f->insns + DEC_ARGS : 4096; /* a small kernel keeps little */
        d->f->chunk = sim_ptx_keep(d->p, d->f->chunk_left * sizeof *d->f->chunk);
    }
    if (d->n)
        memcpy(d->f->chunk, d->arg, (size_t)d->n * sizeof *d->arg);
    o->arg = d->f->chunk;
    d->f->chunk += d->n, d->f->chunk_left -= (size_t)d->n;
    o->args = (uint16_t)d->n;
}

static void start(dec *d)
{
    *d->o = (sim_insn){ .guard = d->i->guard,
                        .guard_negated = d->i->guard_negated,
                        .line = d->i->line,
                        .loc = d->i->loc,
                        .text = d->i->text,
                        .target = UINT32_MAX,
                        .join = UINT32_MAX,
                        .unknown = U_DECIDE };
}

static void understand(dec *d)
{
    bool done = false;
    for (const dec_row *r = sim_decoders; r->op && !done; r++) {
        if (r->op[0] == d->i->word[0][0] && !strcmp(r->op, d->i->word[0]))
            done = r->decode(d);
    }
    if (!done && !alu(d))
        sim_dec_fail(d, "unknown instruction");
    finish(d);
}

/* false: it cannot be executed, for the reason in d->why. */
static bool known(dec *d)
{
    if (setjmp(d->unknown))
        return false;
    understand(d);
    return true;
}

void sim_decode(ptx_parser *p, ptx_function *f)
{
    /* one more: running off the end is an exit */
    f->program->code = sim_ptx_keep(p, (f->insns + 1) * sizeof *f->program->code);
    f->program->insns = (uint32_t)f->insns + 1;
    f->program->code[f->insns] = (sim_insn){ .run = sim_run_exit,
                                             .guard = -1,
                                             .cls = C_CONTROL,
                                             .unknown = U_DECIDE,
                                             .text = "(end of the kernel)",
                                             .line = f->insns ? f->insn[f->insns - 1].line : p->line };
    for (size_t k = 0; k < f->insns; k++) {
        dec d;
        d.p = p, d.f = f, d.i = &f->insn[k], d.o = &f->program->code[k], d.n = 0, d.why[0] = 0;
        start(&d);
        if (d.i->guard >= 0 && sim_type_class(f->reg[d.i->guard].type) != 'p')
            sim_dec_refuse(&d, "the guard is no predicate");
        if (d.i->unknown)
            snprintf(d.why, sizeof d.why, "%s", d.i->unknown);
        else if (known(&d))
            continue;
        start(&d); /* it has no operands: nothing of it takes part in the flow of values */
        d.o->run = sim_run_unknown, d.o->cls = C_CONTROL;
        d.o->fn.data = sim_ptx_copy(p, d.why, strlen(d.why));
    }
}
