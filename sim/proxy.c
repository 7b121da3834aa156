/* proxy: what the async proxy may touch, and which generic stores were fenced for it. A fence has a time of its own on the
 * warp's clock, so a store is before or after it, and an actor that learns of the fence knows a later time: store <= fence < known. */
#include "proxy.h"
#include <string.h>

/* Is there a fence of warp x, by the lane that stored, that came after the store and that w knows of? */
static bool fenced(const sim_warp *w, const sim_warp *x, uint32_t stored, uint32_t author)
{
    uint32_t known = w->clock[x->actor], n = x->fences < SIM_FENCES ? x->fences : SIM_FENCES;
    if (stored <= w->block->cluster->epoch || stored <= x->fence_lost || x->clock[x->actor] >= SIM_LAST_CLOCK)
        return true; /* of an earlier cluster, or forgotten, so possible */
    for (uint32_t k = 1; k <= n; k++) {
        const sim_fence *f = &x->fence[(x->fences - k) % SIM_FENCES];
        if (f->at < stored)
            return false;
        if (f->at < known && (author == SIM_ANY_LANE || f->lanes >> (author - 1) & 1))
            return true;
    }
    return false;
}

/* Has another warp of the block made a fence when it knew of the store, and does w know of that fence? */
static bool fenced_between(const sim_block *b, const sim_warp *w, uint32_t actor, uint32_t stored)
{
    const uint32_t warps = b->cluster->warps;
    for (const sim_warp *y = b->warp; y < b->warp + b->warps; y++) {
        uint32_t known = w->clock[y->actor], n = y->fences < SIM_FENCES ? y->fences : SIM_FENCES, k = 1;
        while (k <= n && y->fence[(y->fences - k) % SIM_FENCES].at >= known)
            k++;
        if (y != w && y->actor != actor && k <= n && stored <= y->fence_knew[(y->fences - k) % SIM_FENCES * warps + actor])
            return true;
    }
    return false;
}

/* Has w, or the lane of it that starts the access, made a fence when it already knew of the store? */
static bool fenced_late(const sim_warp *w, int lane, uint32_t actor, uint32_t stored)
{
    uint32_t lanes = lane < 0 ? w->lanes & ~w->left : 1u << lane;
    for (int k = 0; k < 2; k++)
        if (!(lanes & ~w->view[k].lanes) && stored <= w->view[k].clock[actor])
            return true;
    return false;
}

static bool check(const sim_block *b, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t n, bool writes)
{
    const sim_cluster *c = b->cluster;
    uint64_t seen = 0; /* the last record that passed: neighbours are often the same store */
    for (uint32_t k = at >> 2; k <= (at + n - 1) >> 2; k++) {
        uint64_t wrote = b->wrote[k];
        uint32_t actor = (uint16_t)wrote, author = wrote >> 20 & 63;
        if (wrote == seen || !author || actor >= c->warps)
            continue;
        const sim_warp *x = &c->block[actor / b->warps]->warp[actor % b->warps];
        if (fenced(w, x, (uint32_t)(wrote >> 32), author) || fenced_between(b, w, actor, (uint32_t)(wrote >> 32))) {
            seen = wrote;
            continue;
        }
        char who[160];
        sim_report_actor(c, b, actor, who, sizeof who);
        bool late = x != w && fenced_late(w, lane, actor, (uint32_t)(wrote >> 32));
        if (sim_fault(w, i, lane, late ? SIM_CHECK_PROXY_FENCE_LATE : SIM_CHECK_PROXY_FENCE,
                      "the async proxy %s shared memory that %s has stored to without a fence: offset %u; fence.proxy.async is missing "
                      "between the store and the barrier%s",
                      writes ? "writes" : "reads", who, k * 4, late ? ", and made by the reader only, after it" : "") == STEP_FAULT)
            return false;
        if (late)
            seen = wrote;
    }
    return true;
}

bool sim_proxy_read(sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t n)
{
    return !w->block->checked || (sim_shared_read(w, i, lane, at, n) && check(w->block, w, i, lane, at, n, false));
}

bool sim_proxy_write(sim_block *b, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t n)
{
    return !b->checked || check(b, w, i, lane, at, n, true);
}

void sim_proxy_hold(sim_block *b, uint32_t at, uint32_t n)
{
    if (!b->held)
        return;
    for (uint32_t k = at >> 2; k <= (at + n - 1) >> 2; k++)
        b->held[k]++;
}

void sim_proxy_drop(sim_warp *w, uint32_t at, uint32_t n)
{
    sim_block *b = w->block;
    if (!b->held)
        return;
    uint32_t now = w->clock[w->actor], *mine = b->read + (size_t)w->index * b->words;
    for (uint32_t k = at >> 2; k <= (at + n - 1) >> 2; k++)
        b->held[k]--, mine[k] = now << 4 | 15;
}

void sim_proxy_let(sim_block *b, uint32_t at, uint32_t n)
{
    if (!b->held)
        return;
    for (uint32_t k = at >> 2; k <= (at + n - 1) >> 2; k++)
        b->held[k]--;
}

void sim_proxy_drop_group(sim_block *b, uint32_t group, uint32_t at, uint32_t n)
{
    if (!b->held)
        return;
    uint32_t now = b->group_time[group], *mine = b->group_read + (size_t)group * b->words;
    for (uint32_t k = at >> 2; k <= (at + n - 1) >> 2; k++)
        b->held[k]--, mine[k] = now << 4 | 15;
}

void sim_proxy_fence(sim_warp *w, uint32_t lanes)
{
    sim_fence *f = &w->fence[w->fences % SIM_FENCES];
    uint32_t *now = &w->clock[w->actor];
    if (w->fences >= SIM_FENCES)
        w->fence_lost = f->at;
    *f = (sim_fence){ .at = *now, .lanes = lanes };
    if (w->fence_knew)
        memcpy(w->fence_knew + w->fences % SIM_FENCES * w->block->cluster->warps, w->clock, w->block->cluster->warps * sizeof *w->clock);
    w->fences++;
    struct sim_view *v = &w->view[(w->lanes & ~w->left & ~lanes) != 0];
    v->lanes = lanes;
    memcpy(v->clock, w->clock, w->block->cluster->warps * sizeof *v->clock);
    if (*now < SIM_LAST_CLOCK)
        ++*now;
}
