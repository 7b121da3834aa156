/* control: how the lanes of a warp part, meet and leave. The lanes that run are `active` at `pc`; others wait on the stack. Lanes of a
 * branch that went different ways meet again at its immediate post-dominator, `join`. */
#include "group.h"
#include "run.h"
#include "wgmma.h"
#include <string.h>

sim_step sim_warp_leave(sim_warp *w)
{
    return sim_pipeline_leave(w) && sim_group_leave(w) ? STEP_DONE : STEP_FAULT;
}

/* The next group of lanes on the stack that has not left. false: none. */
bool sim_warp_pop(sim_warp *w)
{
    while (w->depth) {
        sim_entry e = w->stack[--w->depth];
        w->pc = e.pc, w->active = e.mask & ~w->left, w->join = e.join;
        if (w->active)
            return true;
    }
    return false;
}

static void push(sim_warp *w, uint32_t pc, uint32_t mask, uint32_t join)
{
    w->stack[w->depth++] = (sim_entry){ pc, mask, join };
}

static bool leaves(const sim_warp *w, uint32_t pc)
{
    const sim_insn *i = &w->block->program->code[pc];
    return i->kind == K_RUN && i->run == sim_run_exit && i->guard < 0;
}

/* Lanes `go` continue at pc instead of the others' path: straight to an exit they leave, else they join as the branch says. */
static sim_step part(sim_warp *w, const sim_insn *i, uint32_t go, uint32_t pc, uint32_t stay, uint32_t next)
{
    uint32_t join = i->join == UINT32_MAX ? w->join : i->join;
    if (leaves(w, pc))
        return w->left |= go, w->active = stay, w->pc = next, STEP_JUMP;
    if (leaves(w, next))
        return w->left |= stay, w->active = go, w->pc = pc, STEP_JUMP;
    if (w->depth > SIM_STACK - 3)
        return sim_fault(w, i, -1, SIM_CHECK_UNSUPPORTED, "the lanes of a warp diverge too often: %d levels", w->depth);
    if (join != w->join)
        push(w, join, go | stay, w->join);
    if (next != join)
        push(w, next, stay, join);
    w->pc = pc, w->active = go, w->join = join;
    return STEP_JUMP;
}

sim_step sim_run_branch(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t stay = w->active & ~m;
    if (!stay)
        return w->pc = i->target, STEP_JUMP;
    return part(w, i, m, i->target, stay, w->pc + 1);
}

sim_step sim_run_branch_index(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_targets *t = i->fn.data;
    const sim_vec *v = sim_arg(w, i, 0);
    uint32_t join = i->join == UINT32_MAX ? w->join : i->join, stay = w->active & ~m, rest = m, outer = w->join;
    FOR_LANES(l, m)
    if (v->u[l] >= t->n)
        return sim_fault(w, i, (int)l, SIM_CHECK_OPERAND, "brx.idx: index %u of %u targets", v->u[l], t->n);
    uint32_t one = t->at[v->u[__builtin_ctz(m)]];
    bool uniform = !stay;
    FOR_LANES(l, m) uniform &= t->at[v->u[l]] == one;
    if (uniform)
        return w->pc = one, STEP_JUMP;
    if (w->depth > SIM_STACK - 36)
        return sim_fault(w, i, -1, SIM_CHECK_UNSUPPORTED, "the lanes of a warp diverge too often: %d levels", w->depth);
    if (join != outer)
        push(w, join, w->active, outer);
    if (stay)
        push(w, w->pc + 1, stay, join);
    while (rest) {
        uint32_t to = t->at[v->u[__builtin_ctz(rest)]], who = 0;
        FOR_LANES(l, rest) if (t->at[v->u[l]] == to) who |= 1u << l;
        rest &= ~who;
        push(w, to, who, join);
    }
    sim_warp_pop(w);
    return STEP_JUMP;
}

sim_step sim_run_exit(sim_warp *w, const sim_insn *i, uint32_t m)
{
    (void)i;
    w->left |= m;
    w->active &= ~m;
    if (w->active)
        return STEP_NEXT;
    return sim_warp_pop(w) ? STEP_JUMP : sim_warp_leave(w);
}

sim_step sim_run_trap(sim_warp *w, const sim_insn *i, uint32_t m)
{
    return sim_fault(w, i, __builtin_ctz(m), SIM_CHECK_TRAP, "the kernel has trapped");
}

sim_step sim_run_unknown(sim_warp *w, const sim_insn *i, uint32_t m)
{
    return sim_fault(w, i, __builtin_ctz(m), SIM_CHECK_UNSUPPORTED, "%s", (const char *)i->fn.data);
}
