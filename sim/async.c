/* async: cp.async. A copy is a record per lane until the lane waits for its group. Eager copies move their bytes at once, lazy
 * ones when the wait comes, the destination holding poison (0xFF, a NaN in every format) until then; in both the destination
 * counts as in flight. A copy is written by the waiting warp at the time of its wait: others need a barrier after that. */
#include "async.h"
#include "defined.h"
#include "grid_order.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

static bool transfer(sim_warp *w, sim_copy *c)
{
    sim_block *b = w->block;
    uint8_t *to = b->shared + c->to;
    if (c->from_size) {
        sim_alloc *a;
        const uint8_t *from = sim_global(w, c->insn, c->lane, c->source, c->from_size == c->size ? c->size : 1, &a);
        if (!from)
            return false;
        if (b->checked && sim_memory_unwritten(a, c->source - a->base, c->from_size) >= 0)
            for (uint32_t k = 0; k < c->from_size; k++)
                c->holes |= (uint16_t)((sim_memory_unwritten(a, c->source - a->base + k, 1) >= 0) << k);
        memcpy(to, from, c->from_size);
    }
    memset(to + c->from_size, 0, (size_t)(c->size - c->from_size));
    return true;
}

static sim_copy *add(sim_warp *w, const sim_insn *i)
{
    if (w->ncopies == w->copy_cap) {
        size_t cap = w->copy_cap ? w->copy_cap * 2 : 256;
        sim_copy *grown = realloc(w->copies, cap * sizeof *grown);
        if (!grown)
            return sim_fault(w, i, -1, SIM_CHECK_HOST_MEMORY, "out of host memory"), NULL;
        w->copies = grown, w->copy_cap = cap;
    }
    return &w->copies[w->ncopies++];
}

sim_step sim_run_copy(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_block *b = w->block;
    uint32_t at[SIM_LANES], skip = i->flags & F_IGNORE ? sim_pred(w, i, 2) : 0;
    FOR_LANES(l, m)
    {
        const sim_vec *to_reg = i->arg[0] == SIM_NO_ARG ? NULL : sim_arg(w, i, 0);
        uint64_t to = to_reg && i->wide ? to_reg->q[l] + (uint64_t)(int64_t)(int32_t)i->target : (to_reg ? to_reg->u[l] : 0) + i->target;
        uint64_t from = sim_address(w, i, 1, i->flags & F_WIDE, l);
        uint32_t n = i->count, size = i->flags & F_SIZE ? sim_arg(w, i, 2)->u[l] : skip >> l & 1 ? 0 : n;
        sim_alloc *a;
        uint8_t *p = sim_shared(w, i, (int)l, to, n);
        if (!p)
            return STEP_FAULT;
        if (size > n)
            return sim_fault(w, i, (int)l, SIM_CHECK_OPERAND, "a copy of %u bytes has a source of %u", n, size);
        if (size) {
            if (from & (n - 1)) {
                char where[256];
                sim_report_address(b, from, where, sizeof where);
                return sim_fault(w, i, (int)l, SIM_CHECK_ALIGNMENT, "misaligned source of an asynchronous copy: %u bytes at %s", n, where);
            }
            if (!sim_global(w, i, (int)l, from, size == n ? n : 1, &a))
                return STEP_FAULT;
            if (size != n && !sim_global(w, i, (int)l, from + size - 1, 1, &a))
                return STEP_FAULT;
            sim_count_global(b, a, size, 0);
            if (b->launch->order && !sim_order_read(w, i, (int)l, a, from, size))
                return STEP_FAULT;
        }
        at[l] = (uint32_t)(p - b->shared);
        b->counts.c.shared_write += n;
        if (b->checked && !sim_shared_begin(w, i, (int)l, at[l], n))
            return STEP_FAULT;
        sim_copy *c = add(w, i);
        if (!c)
            return STEP_FAULT;
        *c = (sim_copy){
            .insn = i, .source = from, .to = at[l], .group = w->group[l], .lane = (uint8_t)l, .size = (uint8_t)n, .from_size = (uint8_t)size
        };
        if (b->lazy)
            memset(p, 0xFF, n);
        else if (!transfer(w, c))
            return STEP_FAULT;
    }
    sim_count_banks(b, at, m, i->count);
    return STEP_NEXT;
}

/* Ends the lanes' copies whose group is below before[lane]. false: reported. */
static bool finish(sim_warp *w, uint32_t lanes, const uint32_t *before)
{
    sim_block *b = w->block;
    size_t kept = 0;
    for (size_t k = 0; k < w->ncopies; k++) {
        sim_copy *c = &w->copies[k];
        if (!(lanes >> c->lane & 1) || c->group >= before[c->lane] || !c->size) {
            w->copies[kept++] = *c;
            continue;
        }
        if (b->lazy && !transfer(w, c))
            return false;
        if (b->checked)
            sim_shared_land(w, c->lane, c->to, c->size);
        if (c->holes)
            sim_shared_undefine(b, c->to, c->holes, &(sim_origin){ c->insn, c->source + (uint32_t)__builtin_ctz(c->holes), ORIGIN_GLOBAL });
    }
    w->ncopies = kept;
    return true;
}

sim_step sim_run_commit(sim_warp *w, const sim_insn *i, uint32_t m)
{
    (void)i;
    FOR_LANES(l, m) w->group[l]++;
    return STEP_NEXT;
}

sim_step sim_run_wait(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t before[SIM_LANES];
    FOR_LANES(l, m) before[l] = i->sub == WAIT_ALL ? UINT32_MAX : w->group[l] > (uint64_t)i->imm ? w->group[l] - (uint32_t)i->imm : 0;
    return finish(w, m, before) ? STEP_NEXT : STEP_FAULT;
}

/* An arrival that waits for the lane's copies: a record without bytes whose destination is the mbarrier. */
sim_step sim_run_copy_arrive(sim_warp *w, const sim_insn *i, uint32_t m)
{
    FOR_LANES(l, m)
    {
        sim_mbarrier *b = sim_mbarrier_at(w, i, (int)l, 0);
        if (!b)
            return STEP_FAULT;
        if (!(i->flags & F_NOINC))
            b->pending++;
        sim_copy *c = add(w, i);
        if (!c)
            return STEP_FAULT;
        *c = (sim_copy){ .insn = i, .to = b->address, .lane = (uint8_t)l };
        if (!w->block->lazy && !sim_async_arrive(w->block, b))
            return STEP_FAULT;
    }
    return STEP_NEXT;
}

bool sim_async_arrive(sim_block *b, sim_mbarrier *at)
{
    uint32_t all[SIM_LANES];
    memset(all, 0xFF, sizeof all);
    for (uint32_t x = 0; x < b->warps; x++) {
        sim_warp *w = &b->warp[x];
        for (size_t k = 0; k < w->ncopies; k++) {
            sim_copy c = w->copies[k];
            if (c.size || c.to != at->address)
                continue;
            memmove(w->copies + k, w->copies + k + 1, (w->ncopies - k - 1) * sizeof *w->copies);
            w->ncopies--;
            /* every copy of the lane so far: later ones too, which hides nothing but a later wait */
            if (!finish(w, 1u << c.lane, all) || !sim_mbarrier_arrive(w, c.insn, c.lane, b, at, 1))
                return false;
            k = (size_t)-1; /* the list has changed */
        }
    }
    return true;
}
