/* block: what a block of threads needs while it runs, and how it begins. */
#include "bulk.h"
#include "defined.h"
#include "group.h"
#include "wgmma.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Small arenas are kept from launch to launch: to give one back to the system and to ask for it again costs more than the rest of a launch
 * of few blocks. Large ones come fresh, as zero pages of which a block touches what it needs. */
enum { SMALL = 1 << 20, SPARE = 16 };
_Static_assert(sizeof(sim_block) <= SMALL, "a block is kept like an arena");
static struct {
    pthread_mutex_t lock;
    void *arena[SPARE]; /* SMALL bytes each */
    int n;
} spare = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *arena_new(size_t bytes)
{
    if (bytes > SMALL)
        return calloc(1, bytes);
    void *p = NULL;
    if (!pthread_mutex_trylock(&spare.lock)) { /* held for ever in a child of fork(), perhaps */
        p = spare.n ? spare.arena[--spare.n] : NULL;
        pthread_mutex_unlock(&spare.lock);
    }
    if (!p)
        return calloc(1, SMALL);
    return memset(p, 0, bytes);
}

static void arena_free(void *p, bool small)
{
    if (p && small && !pthread_mutex_trylock(&spare.lock)) {
        if (spare.n < SPARE)
            spare.arena[spare.n++] = p, p = NULL;
        pthread_mutex_unlock(&spare.lock);
    }
    free(p);
}

void sim_block_close(void)
{
    pthread_mutex_lock(&spare.lock);
    while (spare.n)
        free(spare.arena[--spare.n]);
    pthread_mutex_unlock(&spare.lock);
}

sim_block *sim_block_new(void)
{
    return arena_new(sizeof(sim_block));
}

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
    uint32_t groups = p->held ? (warps + 3) / 4 : 0, all = l->cluster[0] * l->cluster[1] * l->cluster[2];
    size_t knew = checked && p->proxy ? (sizeof(uint32_t) * SIM_FENCES * all * warps + 63) & ~(size_t)63 : 0;
    size_t total = head + warps * (file + local + preds + knew + (checked ? sim_defined_bytes(p, file) : 0)) + arena +
                   (checked ? plane * (3 + warps + groups + p->proxy) + plane / 4 * warps : 0);
    b->launch = l, b->program = p, b->cluster = c, b->rank = rank, b->first = rank * warps;
    b->groups = groups;
    b->threads = threads, b->warps = warps, b->shared_size = shared, b->words = (uint32_t)(plane / 4);
    b->checked = checked, b->lazy = l->options.async == SIM_LAZY;
    b->arena = arena_new(total + 64), b->small = total + 64 <= SMALL;
    b->place[0] = rank % l->cluster[0], b->place[1] = rank / l->cluster[0] % l->cluster[1],
    b->place[2] = rank / l->cluster[0] / l->cluster[1];
    if (all > 1 && checked && !(b->visit = calloc((size_t)all * warps, sizeof *b->visit)))
        return false;
    if (!b->arena)
        return false;
    uint8_t *at = (uint8_t *)(((uintptr_t)b->arena + 63) & ~(uintptr_t)63);
    b->warp = (sim_warp *)(void *)at, at += head;
    for (uint32_t k = 0; k < warps; k++) {
        sim_warp *w = &b->warp[k];
        w->block = b, w->index = k, w->actor = b->first + k;
        w->file = at, at += file;
        w->pred = (uint32_t *)(void *)at, at += preds;
        w->local = at, at += local;
        if (knew)
            w->fence_knew = (uint32_t *)(void *)at, at += knew;
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
            b->held = (uint16_t *)(void *)at, at += plane;
        b->reader = at;
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
    arena_free(b->arena, b->small);
    arena_free(b, true);
}

static uint32_t value(const sim_block *b, const sim_warp *w, sim_special s, uint32_t lane)
{
    const sim_launch *l = b->launch;
    uint32_t t = w->index * 32 + lane, bit = 1u << lane;
    switch (s) {
    case SR_TID_X:
        return t % l->block[0];
    case SR_TID_Y:
        return t / l->block[0] % l->block[1];
    case SR_TID_Z:
        return t / l->block[0] / l->block[1];
    case SR_NTID_X:
    case SR_NTID_Y:
    case SR_NTID_Z:
        return l->block[s - SR_NTID_X];
    case SR_CTAID_X:
    case SR_CTAID_Y:
    case SR_CTAID_Z:
        return b->id[s - SR_CTAID_X];
    case SR_NCTAID_X:
    case SR_NCTAID_Y:
    case SR_NCTAID_Z:
        return l->grid[s - SR_NCTAID_X];
    case SR_LANEID:
        return lane;
    case SR_WARPID:
        return w->index;
    case SR_NWARPID:
        return (uint32_t)l->arch->threads_per_sm / 32;
    case SR_SMID:
        return (uint32_t)(b->linear % (uint64_t)l->arch->sms);
    case SR_NSMID:
        return (uint32_t)l->arch->sms;
    case SR_ONE:
        return 1;
    case SR_LANEMASK_EQ:
        return bit;
    case SR_LANEMASK_LE:
        return bit | (bit - 1);
    case SR_LANEMASK_LT:
        return bit - 1;
    case SR_LANEMASK_GE:
        return ~(bit - 1);
    case SR_LANEMASK_GT:
        return ~(bit | (bit - 1));
    case SR_DYNAMIC_SMEM:
        return l->dynamic_shared;
    case SR_TOTAL_SMEM:
        return b->shared_size;
    case SR_CLUSTERID_X:
    case SR_CLUSTERID_Y:
    case SR_CLUSTERID_Z:
        return b->cluster->id[s - SR_CLUSTERID_X];
    case SR_NCLUSTERID_X:
    case SR_NCLUSTERID_Y:
    case SR_NCLUSTERID_Z:
        return l->grid[s - SR_NCLUSTERID_X] / l->cluster[s - SR_NCLUSTERID_X];
    case SR_CLUSTER_CTAID_X:
    case SR_CLUSTER_CTAID_Y:
    case SR_CLUSTER_CTAID_Z:
        return b->place[s - SR_CLUSTER_CTAID_X];
    case SR_CLUSTER_NCTAID_X:
    case SR_CLUSTER_NCTAID_Y:
    case SR_CLUSTER_NCTAID_Z:
        return l->cluster[s - SR_CLUSTER_NCTAID_X];
    case SR_CLUSTER_CTARANK:
        return b->rank;
    case SR_CLUSTER_NCTARANK:
        return b->cluster->blocks;
    case SR_CLUSTER_EXPLICIT:
        return l->explicit_cluster;
    default:
        return 0;
    }
}

static void start_warp(sim_block *b, sim_warp *w)
{
    uint32_t n = b->threads - w->index * 32;
    const sim_cluster *c = b->cluster;
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
    for (uint32_t x = 0; x < c->most_actors; x++)
        w->clock[x] = c->epoch;
    memset(w->clock + c->warps + c->groups, 0, c->planes * sizeof *w->clock);
    w->trusted = 0;
    memset(w->fenced, 0, c->most_actors * sizeof *w->fenced);
    w->met = 0, w->joined = 0, w->awaits_group = false;
    w->clock[w->actor] = c->epoch + 1;
    for (int k = 0; k < SR_STATIC_COUNT; k++) {
        uint32_t at = b->program->special[k]; /* a program names few of them */
        for (uint32_t lane = 0; at && lane < SIM_LANES; lane++)
            ((sim_vec *)(void *)(w->file + at - 1))->u[lane] = value(b, w, (sim_special)k, lane);
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
