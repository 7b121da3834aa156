/* block: runs a block's warps in the order of the schedule until all have left, and a launch's blocks on one or more threads. */
#include "exec.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 100000, PATIENCE = 1000 }; /* instructions a warp runs at a stretch; rounds of vain waiting before a deadlock */

static uint32_t random32(sim_block *b) /* splitmix64 */
{
    uint64_t z = b->random += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* Everything a block needs, in one piece, used again by the next block of the same thread. */
static bool prepare(sim_launch *l, sim_block *b)
{
    const sim_program *p = l->program;
    uint32_t threads = l->block[0] * l->block[1] * l->block[2], warps = (threads + 31) / 32, shared = p->shared_bytes + l->dynamic_shared;
    uint32_t words = (shared + 3) / 4 + 4;
    size_t file = (p->file_bytes + 63u) & ~63u, local = ((size_t)p->local_bytes * 32 + 63) & ~(size_t)63;
    size_t preds = ((p->preds + 1u) * 4 + 63u) & ~63u, defined = ((p->tracked + 1u) * 4 + 63u) & ~63u;
    size_t head = (warps * sizeof(sim_warp) + 63) & ~(size_t)63, arena = (shared + 64 + 63u) & ~63u, plane = ((size_t)words * 4 + 63) & ~(size_t)63;
    bool checked = !l->options.unchecked;
    size_t total = head + warps * (file + local + preds + defined) + arena + (checked ? plane * (2 + warps) : 0);
    b->launch = l, b->program = p;
    b->threads = threads, b->warps = warps, b->shared_size = shared, b->words = (uint32_t)(plane / 4);
    b->checked = checked, b->lazy = l->options.async == SIM_LAZY;
    b->arena = aligned_alloc(64, total);
    if (!b->arena) return false;
    memset(b->arena, 0, total);
    uint8_t *at = b->arena;
    b->warp = (sim_warp *)(void *)at, at += head;
    for (uint32_t k = 0; k < warps; k++) {
        sim_warp *w = &b->warp[k];
        w->block = b, w->index = k;
        w->file = at, at += file;
        w->pred = (uint32_t *)(void *)at, at += preds;
        w->defined = (uint32_t *)(void *)at, at += defined;
        w->local = at, at += local;
    }
    b->shared = at, at += arena;
    if (checked) {
        b->state = at, at += plane;
        b->wrote = (uint32_t *)(void *)at, at += plane;
        b->read = (uint32_t *)(void *)at;
    }
    return true;
}

void sim_block_free(sim_block *b)
{
    for (uint32_t k = 0; b->arena && k < b->warps; k++) free(b->warp[k].copies);
    free(b->mbarrier);
    free(b->arena);
}

static void fill(sim_warp *w, sim_special s, uint32_t lane, uint32_t v)
{
    uint32_t at = w->block->program->special[s];
    if (at) ((sim_vec *)(void *)(w->file + at - 1))->u[lane] = v;
}

static void start_warp(sim_block *b, sim_warp *w)
{
    const sim_launch *l = b->launch;
    uint32_t n = b->threads - w->index * 32;
    w->lanes = n >= 32 ? SIM_ALL : (1u << n) - 1;
    w->pc = 0, w->active = w->lanes, w->join = UINT32_MAX, w->left = 0, w->depth = 0, w->carry = 0;
    w->state = W_READY;
    w->ncopies = 0;
    w->spun = 0;
    memset(w->group, 0, sizeof w->group);
    memset(w->defined, 0, b->program->tracked * sizeof *w->defined);
    for (uint32_t x = 0; x < SIM_WARPS; x++) w->clock[x] = b->epoch;
    w->clock[w->index] = b->epoch + 1;
    for (uint32_t k = 0; k < 32; k++) {
        uint32_t t = w->index * 32 + k, id[3] = {t % l->block[0], t / l->block[0] % l->block[1], t / l->block[0] / l->block[1]}, bit = 1u << k;
        for (uint32_t d = 0; d < 3; d++) {
            fill(w, (sim_special)(SR_TID_X + d), k, id[d]);
            fill(w, (sim_special)(SR_NTID_X + d), k, l->block[d]);
            fill(w, (sim_special)(SR_CTAID_X + d), k, b->id[d]);
            fill(w, (sim_special)(SR_NCTAID_X + d), k, l->grid[d]);
        }
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

static void start(sim_block *b, uint64_t linear)
{
    const sim_launch *l = b->launch;
    b->linear = linear;
    b->id[0] = (uint32_t)(linear % l->grid[0]), b->id[1] = (uint32_t)(linear / l->grid[0] % l->grid[1]), b->id[2] = (uint32_t)(linear / l->grid[0] / l->grid[1]);
    b->random = l->options.seed * 0x9E3779B97F4A7C15ull + linear;
    /* times go on from block to block, so that what is known of the bytes need not be cleared; before they run out it is */
    uint32_t last = b->epoch;
    for (uint32_t k = 0; k < b->warps; k++) if (b->warp[k].clock[k] > last) last = b->warp[k].clock[k];
    b->epoch = last + 1;
    if (b->epoch > 1u << 21) {
        b->epoch = 1;
        if (b->checked) memset(b->wrote, 0, (size_t)b->words * 4), memset(b->read, 0, (size_t)b->words * 4 * b->warps);
    }
    if (b->checked) memset(b->state, 0, b->words);
    memset(b->shared, 0xFF, b->shared_size);
    memset(b->sync, 0, sizeof b->sync);
    memset(b->barrier, 0, sizeof b->barrier);
    b->mbarriers = 0;
    b->progress = 1;
    for (uint32_t k = 0; k < b->warps; k++) start_warp(b, &b->warp[k]);
}

static void deadlock(sim_block *b)
{
    char text[SIM_REPORT], where[256];
    size_t n = (size_t)snprintf(text, sizeof text, "deadlock: no warp of block (%u,%u,%u) in kernel %.200s can go on", b->id[0], b->id[1], b->id[2], b->program->name);
    for (uint32_t k = 0; k < b->warps && n < sizeof text - 600; k++) {
        const sim_warp *w = &b->warp[k];
        n += (size_t)snprintf(text + n, sizeof text - n, "\n  warp %u ", k);
        if (w->state == W_DONE) {
            n += (size_t)snprintf(text + n, sizeof text - n, "has exited");
            continue;
        }
        const sim_insn *i = &b->program->code[w->state == W_BARRIER ? w->waiting_at : w->pc ? w->pc - 1 : 0];
        if (w->state == W_BARRIER) n += (size_t)snprintf(text + n, sizeof text - n, "waits at barrier %d, where %u of %u threads are", w->barrier, b->barrier[w->barrier].arrived, b->barrier[w->barrier].count);
        else n += (size_t)snprintf(text + n, sizeof text - n, "waits in vain");
        n += (size_t)snprintf(text + n, sizeof text - n, ", PTX line %u: %.120s", i->line, i->text);
        if (sim_report_where(b->program, i, where, sizeof where)) n += (size_t)snprintf(text + n, sizeof text - n, ", from %.200s", where);
    }
    sim_report_block(b, CUDA_ERROR_LAUNCH_TIMEOUT, text);
}

static bool too_long(sim_block *b, sim_warp *w)
{
    sim_launch *l = b->launch;
    int64_t all = __atomic_load_n(&l->steps, __ATOMIC_RELAXED) + b->steps;
    if (all <= l->max_steps) return false;
    sim_fault(w, &b->program->code[w->pc < b->program->insns ? w->pc : 0], -1, CUDA_ERROR_LAUNCH_TIMEOUT, "hang: the launch has run %lld warp instructions", (long long)all);
    return true;
}

/* One turn of a warp. false: a defect. */
static bool turn(sim_block *b, sim_warp *w, uint32_t *left)
{
    int64_t most = b->launch->max_steps - __atomic_load_n(&b->launch->steps, __ATOMIC_RELAXED) - b->steps + 1;
    int64_t slice = b->launch->options.schedule == SIM_RANDOM ? 1 + random32(b) % 200 : SLICE;
    if (slice > most) slice = most > 0 ? most : 1;
    w->state = W_READY;
    switch (sim_warp_run(w, slice)) {
    case STEP_FAULT: return false;
    case STEP_WAIT: w->state = W_BARRIER; break;
    case STEP_YIELD: w->state = W_SPIN, w->spun = b->progress; break;
    case STEP_DONE: w->state = W_DONE, b->progress++, --*left; break;
    default: break;
    }
    return !too_long(b, w) && !__atomic_load_n(&b->launch->stop, __ATOMIC_RELAXED);
}

int sim_block_run(sim_launch *l, sim_block *b, uint64_t linear)
{
    uint32_t left = b->warps, vain = 0;
    int64_t before = b->steps;
    start(b, linear);
    while (left) {
        uint64_t progress = b->progress;
        bool ran = false;
        uint32_t shift = l->options.schedule == SIM_RANDOM ? random32(b) % b->warps : 0;
        for (uint32_t k = 0; k < b->warps && left; k++) {
            uint32_t n = (k + shift) % b->warps;
            sim_warp *w = &b->warp[l->options.schedule == SIM_REVERSED ? b->warps - 1 - n : n];
            if (w->state == W_DONE || w->state == W_BARRIER || (w->state == W_SPIN && w->spun == b->progress && !vain)) continue;
            if (w->spun != b->progress) ran = true; /* else it has waited in vain since anything happened */
            if (!turn(b, w, &left)) return -1;
        }
        if (ran || b->progress != progress) {
            vain = 0;
        } else if (left && ++vain > PATIENCE) {
            deadlock(b);
            return -1;
        }
    }
    __atomic_fetch_add(&l->steps, b->steps - before, __ATOMIC_RELAXED);
    b->tally.c.instructions += (uint64_t)(b->steps - before);
    b->steps = before;
    b->tally.c.blocks++, b->tally.c.warps += b->warps;
    return 0;
}

/* ---- launches ---- */

static void merge(sim_launch *l, const sim_block *b)
{
    const sim_counters *c = &b->tally.c;
    sim_counters *t = &l->tally.c;
    t->blocks += c->blocks, t->warps += c->warps, t->instructions += c->instructions, t->barriers += c->barriers;
    t->matrix += b->by_class[C_MATRIX], t->shuffle += b->by_class[C_SHUFFLE], t->special += b->by_class[C_SPECIAL];
    t->memory += b->by_class[C_MEMORY], t->control += b->by_class[C_CONTROL], t->other += b->by_class[C_OTHER];
    t->global_read += c->global_read, t->global_write += c->global_write;
    t->shared_read += c->shared_read, t->shared_write += c->shared_write;
    t->shared_wavefronts += c->shared_wavefronts, t->shared_ideal += c->shared_ideal;
    if (c->shared_peak > t->shared_peak) t->shared_peak = c->shared_peak;
    for (int k = 0; k < c->tensors; k++) {
        int to = 0;
        while (to < t->tensors && t->tensor[to].base != c->tensor[k].base) to++;
        if (to == t->tensors) {
            if (t->tensors < SIM_TENSORS) t->tensors++, t->tensor[to] = c->tensor[k];
            else to = SIM_TENSORS - 1, t->tensor[to].read += c->tensor[k].read, t->tensor[to].write += c->tensor[k].write;
            continue;
        }
        t->tensor[to].read += c->tensor[k].read, t->tensor[to].write += c->tensor[k].write;
    }
}

static void *work(void *arg)
{
    sim_launch *l = arg;
    sim_block *b = calloc(1, sizeof *b);
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (!b || !prepare(l, b)) {
        pthread_mutex_lock(&lock);
        l->stop = 1, l->result = CUDA_ERROR_OUT_OF_MEMORY;
        pthread_mutex_unlock(&lock);
        free(b);
        return NULL;
    }
    for (;;) {
        uint64_t k = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
        if (k >= l->total || __atomic_load_n(&l->stop, __ATOMIC_RELAXED) || sim_block_run(l, b, k)) break;
    }
    pthread_mutex_lock(&lock);
    merge(l, b);
    pthread_mutex_unlock(&lock);
    sim_block_free(b);
    free(b);
    return NULL;
}

CUresult sim_launch_run(sim_launch *l)
{
    pthread_t thread[64];
    int n = 0, most = l->options.threads - 1;
    l->total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    l->max_steps = l->options.max_steps > 0 ? l->options.max_steps : 4000000000;
    l->result = CUDA_SUCCESS;
    while (n < most && n < 64 && (uint64_t)n + 1 < l->total && !pthread_create(&thread[n], NULL, work, l)) n++;
    work(l);
    while (n) pthread_join(thread[--n], NULL);
    l->tally.c.launches = 1;
    return l->result;
}
