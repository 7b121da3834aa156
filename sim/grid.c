/* grid: launches that may begin before what precedes them has ended, and must wait before they touch global memory. */
#include "exec.h"
#include "run.h"
#include <stdio.h>

sim_step sim_run_grid_wait(sim_warp *w, const sim_insn *i, uint32_t m)
{
    (void)i;
    w->after |= m;
    return STEP_NEXT;
}

static bool ordered(const sim_warp *w, uint32_t lane)
{
    return !w->block->launch->pdl || w->after >> lane & 1;
}

sim_step sim_run_grid_over(sim_warp *w, const sim_insn *i, uint32_t m)
{
    (void)i;
    if (w->block->launch->pdl && m & ~w->after)
        __atomic_store_n(&w->block->launch->reported, true, __ATOMIC_RELAXED);
    return STEP_NEXT;
}

bool sim_grid_settled(const sim_warp *w, uint32_t lane, uint64_t address, uint64_t bytes)
{
    const sim_launch *launch = w->block->launch;
    if (ordered(w, lane) || !bytes)
        return true;
    const sim_alloc *a = sim_memory_find(launch->memory, address);
    if (!a || !launch->alone || bytes > a->base + a->size - address)
        return false;
    for (uint64_t k = (address - a->base) / SIM_LINE; k <= (address - a->base + bytes - 1) / SIM_LINE; k++)
        if (__atomic_load_n(&a->line[k], __ATOMIC_RELAXED) + 1 >= (uint32_t)sim_memory_launch)
            return false;
    return true;
}

bool sim_grid_hint(const sim_warp *w, const sim_insn *i, uint32_t lane)
{
    return i->flags & F_HINT && !ordered(w, lane);
}

void sim_grid_disturb(const sim_block *b, uint64_t address, uint8_t *data)
{
    if (b->lazy)
        data[0] ^= (uint8_t)((address / 4 % 32 + 1) * 3);
}

bool sim_grid_waited(sim_warp *w, const sim_insn *i, int lane)
{
    if (ordered(w, (uint32_t)lane) || sim_grid_hint(w, i, (uint32_t)lane))
        return true;
    return STEP_FAULT != sim_fault(w, i, lane, SIM_CHECK_GRID_WAIT,
                                   "global memory is touched by a thread without griddepcontrol.wait before it, in a launch that may begin "
                                   "before what precedes it has ended");
}

bool sim_grid_end(sim_block *b)
{
    if (!b->launch->pdl)
        return true;
    for (uint32_t k = 0; k < b->warps; k++)
        if (b->warp[k].after)
            return true;
    char text[512];
    snprintf(text, sizeof text,
             "block (%u,%u,%u) of kernel %.200s ends without griddepcontrol.wait, in a launch that may begin before what precedes it "
             "has ended: "
             "what comes after it waits for this launch alone",
             b->id[0], b->id[1], b->id[2], b->program->name);
    return sim_report_block(b, SIM_CHECK_GRID_WAIT, text) != STEP_FAULT;
}
