/* warp: the loop that executes a warp. */
#include "defined.h"
#include "run.h"
#include "wgmma.h"
#include <fenv.h>
#include <string.h>

static inline void compute(sim_warp *w, const sim_insn *i, uint32_t m)
{
    static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
    sim_vec r;
    const sim_vec *a = sim_arg(w, i, 1), *b = i->args > 2 ? sim_arg(w, i, 2) : a, *c = i->args > 3 ? sim_arg(w, i, 3) : a,
                  *e = i->args > 4 ? sim_arg(w, i, 4) : a;
    if (i->arg[0] == SIM_NO_ARG)
        return;
    if (__builtin_expect(i->flags & F_ROUND, 0)) {
        int old = fegetround();
        fesetround(modes[i->round]);
        i->fn.alu(&r, a, b, c, e);
        fesetround(old);
    } else {
        i->fn.alu(&r, a, b, c, e);
    }
    if (__builtin_expect(i->flags & F_SAT, 0))
        for (int l = 0; l < SIM_LANES; l++)
            r.f[l] = r.f[l] > 0 ? r.f[l] > 1 ? 1 : r.f[l] : 0;
    sim_vec *d = sim_arg(w, i, 0);
    if (m == SIM_ALL)
        memcpy(d, &r, i->wide ? 256 : 128);
    else if (i->wide) {
        FOR_LANES(l, m) d->q[l] = r.q[l];
    } else {
        FOR_LANES(l, m) d->u[l] = r.u[l];
    }
}

sim_step sim_warp_run(sim_warp *w, int64_t slice)
{
    sim_block *b = w->block;
    const sim_insn *code = b->program->code;
    for (; slice > 0; slice--) {
        while (w->pc == w->join)
            if (!sim_warp_pop(w))
                return sim_warp_leave(w);
        const sim_insn *i = &code[w->pc];
        uint32_t m = w->active;
        if (i->guard >= 0)
            m &= i->guard_negated ? ~w->pred[i->guard] : w->pred[i->guard];
        b->steps++;
        b->by_class[i->cls]++;
        if (__builtin_expect(w->shadow.slots, 0) && !sim_defined_check(w, i, m))
            return STEP_FAULT;
        if (!m) {
            w->pc++;
            continue;
        }
        if (i->flags & F_HELD && !sim_wgmma_touch(w, i, m))
            return STEP_FAULT;
        if (i->kind == K_ALU) {
            compute(w, i, m);
            w->pc++;
            continue;
        }
        sim_step s = i->run(w, i, m);
        if (s == STEP_NEXT)
            w->pc++;
        else if (s == STEP_JUMP)
            continue;
        else {
            if (s == STEP_WAIT || s == STEP_YIELD)
                w->pc++;
            return s;
        }
    }
    return STEP_NEXT;
}
