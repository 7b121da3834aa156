/* block: what a block of threads needs while it runs, and how it begins. */
#include "bulk.h"
#include "defined.h"
#include "group.h"
#include "wgmma.h"
#include <stdlib.h>
#include <string.h>

/* Everything a block needs, in one piece, used again by the next block of the same thread. */
bool sim_block_prepare(sim_block *b, sim_cluster *c, uint32_t rank)
{
    sim_launch *l = c->launch;
    const sim_program *p = l->program;
    uint32_t threads = l->block[0] * l->block[1] * l->block[2], warps = (threads + 31) / 32, shared = p->shared_bytes + l->dynamic_shared;
    uint32_t words = (shared + 3) / 4 + 4;
    size_t file = (p->file_bytes + 63u) & ~63u, local = ((size_t)p->local_bytes * 32 + 63) & ~(size_t)63;
    size_t preds = ((p->preds + 1u) * 4 + 63u) & ~63u;
    size_t head = (warps * sizeof(sim_warp) + 63) & ~(size_t)63, arena = (shared + 64 + 63u) & ~63u,
           plane = ((size_t)words * 4 + 63) & ~(size_t)63;
    bool checked = !l->options.unchecked;
    uint32_t groups = p->held ? (warps + 3) / 4 : 0;
    size_t total = head + warps * (file + local + preds + (checked ? sim_defined_bytes(p, file) : 0)) + arena +
                   (checked ? plane * (3 + warps + groups + p->proxy) : 0);
    b->launch = l, b->program = p, b->cluster = c, b->rank = rank, b->first = rank * warps;
    b->groups = groups;
    b->threads = threads, b->warps = warps, b->shared_size = shared, b->words = (uint32_t)(plane / 4);
    b->checked = checked, b->lazy = l->options.async == SIM_LAZY;
    b->arena = aligned_alloc(64, total);
    uint32_t all = l->cluster[0] * l->cluster[1] * l->cluster[2];
    b->place[0] = rank % l->cluster[0], b->place[1] = rank / l->cluster[0] % l->cluster[1],
    b->place[2] = rank / l->cluster[0] / l->cluster[1];
    b->mbarrier = calloc(SIM_MBARRIERS, sizeof *b->mbarrier);
    if (all > 1 && checked && !(b->visit = calloc((size_t)all * warps, sizeof *b->visit)))
        return false;
    if (!b->arena || !b->mbarrier)
        return false;
    memset(b->arena, 0, total);
    uint8_t *at = b->arena;
    b->warp = (sim_warp *)(void *)at, at += head;
    for (uint32_t k = 0; k < warps; k++) {
        sim_warp *w = &b->warp[k];
        w->block = b, w->index = k, w->actor = b->first + k;
        w->file = at, at += file;
        w->pred = (uint32_t *)(void *)at, at += preds;
        w->local = at, at += local;
        if (checked)
            at = sim_defined_prepare(w, at, file);
        if (!sim_pipeline_prepare(w))
            return false;
    }
    b->shared = at, at += arena;
    if (checked) {
        b->state = at, at += plane;
        b->wrote = (uint64_t *)(void *)at, at += 2 * plane;
        b->read = (uint32_t *)(void *)at, at += plane * warps;
        if (groups)
            b->group_read = (uint32_t *)(void *)at, at += plane * groups;
        if (p->proxy)
            b->held = (uint16_t *)(void *)at;
    }
    return true;
}

void sim_block_free(sim_block *b)
{
    for (uint32_t k = 0; b->warp && k < b->warps; k++)
        free(b->warp[k].copies), sim_pipeline_free(&b->warp[k]);
    sim_group_free(b);
    sim_bulk_drop(b);
    free(b->bulk);
    free(b->mbarrier);
    free(b->visit);
    free(b->far);
    free(b->arena);
}

static void fill(sim_warp *w, sim_special s, uint32_t lane, uint32_t v)
{
    uint32_t at = w->block->program->special[s];
    if (at)
        ((sim_vec *)(void *)(w->file + at - 1))->u[lane] = v;
}

static void start_warp(sim_block *b, sim_warp *w)
{
    const sim_launch *l = b->launch;
    uint32_t n = b->threads - w->index * 32;
    w->lanes = n >= 32 ? SIM_ALL : (1u << n) - 1;
    w->pc = 0, w->active = w->lanes, w->join = UINT32_MAX, w->left = w->after = 0, w->depth = 0, w->carry = 0;
    w->state = W_READY;
    w->ncopies = 0;
    sim_pipeline_start(w);
    w->fences = w->fence_lost = 0;
    w->view[0].lanes = w->view[1].lanes = 0;
    w->spun = 0, w->waits = NULL, w->vain = 0;
    memset(w->group, 0, sizeof w->group);
    memset(w->bulk_group, 0, sizeof w->bulk_group);
    sim_defined_start(w);
    for (uint32_t x = 0; x < SIM_ACTORS; x++)
        w->clock[x] = b->cluster->epoch;
    memset(w->clock + b->cluster->warps + b->cluster->groups, 0, b->cluster->planes * sizeof *w->clock);
    w->trusted = 0;
    memset(w->fenced, 0, sizeof w->fenced);
    w->met = 0, w->joined = 0, w->awaits_group = false;
    w->clock[w->actor] = b->cluster->epoch + 1;
    for (uint32_t k = 0; k < 32; k++) {
        uint32_t t = w->index * 32 + k, id[3] = { t % l->block[0], t / l->block[0] % l->block[1], t / l->block[0] / l->block[1] },
                 bit = 1u << k;
        for (uint32_t d = 0; d < 3; d++) {
            fill(w, (sim_special)(SR_TID_X + d), k, id[d]);
            fill(w, (sim_special)(SR_NTID_X + d), k, l->block[d]);
            fill(w, (sim_special)(SR_CTAID_X + d), k, b->id[d]);
            fill(w, (sim_special)(SR_NCTAID_X + d), k, l->grid[d]);
            fill(w, (sim_special)(SR_CLUSTERID_X + d), k, b->cluster->id[d]);
            fill(w, (sim_special)(SR_NCLUSTERID_X + d), k, l->grid[d] / l->cluster[d]);
            fill(w, (sim_special)(SR_CLUSTER_CTAID_X + d), k, b->place[d]);
            fill(w, (sim_special)(SR_CLUSTER_NCTAID_X + d), k, l->cluster[d]);
        }
        fill(w, SR_CLUSTER_CTARANK, k, b->rank);
        fill(w, SR_CLUSTER_NCTARANK, k, b->cluster->blocks);
        fill(w, SR_CLUSTER_EXPLICIT, k, l->explicit_cluster);
        fill(w, SR_LANEID, k, k);
        fill(w, SR_WARPID, k, w->index);
        fill(w, SR_NWARPID, k, (uint32_t)l->arch->threads_per_sm / 32);
        fill(w, SR_SMID, k, (uint32_t)(b->linear % (uint64_t)l->arch->sms));
        fill(w, SR_NSMID, k, (uint32_t)l->arch->sms);
        fill(w, SR_ZERO, k, 0);
        fill(w, SR_ONE, k, 1);
        fill(w, SR_LANEMASK_EQ, k, bit);
        fill(w, SR_LANEMASK_LE, k, bit | (bit - 1));
        fill(w, SR_LANEMASK_LT, k, bit - 1);
        fill(w, SR_LANEMASK_GE, k, ~(bit - 1));
        fill(w, SR_LANEMASK_GT, k, ~(bit | (bit - 1)));
        fill(w, SR_DYNAMIC_SMEM, k, l->dynamic_shared);
        fill(w, SR_TOTAL_SMEM, k, b->shared_size);
    }
}

void sim_block_start(sim_block *b)
{
    const sim_launch *l = b->launch;
    const uint32_t *id = b->id;
    for (int k = 0; k < 3; k++)
        b->id[k] = b->cluster->id[k] * l->cluster[k] + b->place[k];
    b->running = b->warps;
    for (uint32_t k = 0; k < b->groups; k++)
        b->group_time[k] = b->cluster->epoch;
    if (b->visit)
        memset(b->visit, 0, b->cluster->warps * sizeof *b->visit);
    b->linear = id[0] + (uint64_t)l->grid[0] * (id[1] + (uint64_t)l->grid[1] * id[2]);
    if (b->checked)
        memset(b->state, 0, b->words);
    sim_group_start(b);
    if (b->held)
        memset(b->held, 0, (size_t)b->words * sizeof *b->held);
    memset(b->shared, 0xFF, b->shared_size);
    for (uint32_t k = 0; k < SIM_BARRIERS; k++)
        b->barrier[k].seen = b->barrier[k].sleepers = 0;
    b->mbarriers = b->tales = 0;
    for (uint32_t k = 0; k < b->warps; k++)
        start_warp(b, &b->warp[k]);
}
