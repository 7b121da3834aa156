/* cluster: runs the warps of a cluster's blocks in the order of the schedule until all have left, and a launch's clusters on one or
 * more threads. A block of a launch without clusters is a cluster of one. */
#include "bulk.h"
#include "grid_order.h"
#include "holds.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Instructions a warp runs at a stretch, and between two looks at the limits; rounds of vain waiting before a deadlock; rounds without
 * progress before what is late comes. */
enum { SLICE = 100000, PIECE = 2048, PATIENCE = 1000, STALE = 2 };
static const double DEFAULT_SECONDS = 300;
static const int64_t DEFAULT_STEPS = 4000000000;

static uint32_t random32(sim_cluster *c) /* splitmix64 */
{
    uint64_t z = c->random += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* Times go on from cluster to cluster, so that what is known of the bytes need not be cleared; before they run out it is. */
static void begin(sim_cluster *c, uint64_t linear)
{
    const sim_launch *l = c->launch;
    uint32_t last = c->epoch;
    for (uint32_t r = 0; r < c->blocks; r++) {
        const sim_block *b = c->block[r];
        for (uint32_t k = 0; k < b->warps; k++)
            if (b->warp[k].clock[b->first + k] > last)
                last = b->warp[k].clock[b->first + k];
        for (uint32_t k = 0; k < b->mbarriers; k++)
            if (b->mbarrier[k].time > last)
                last = b->mbarrier[k].time;
        for (uint32_t k = 0; k < b->groups; k++)
            if (b->group_time[k] > last)
                last = b->group_time[k];
    }
    c->epoch = last + 1;
    bool again = c->epoch > 1u << 26;
    if (again)
        c->epoch = 1;
    memset(c->sync, 0, c->most_actors * sizeof *c->sync);
    c->random = l->options.seed * 0x9E3779B97F4A7C15ull + linear;
    c->progress = 1, c->stuck = false, c->actors = c->warps + c->groups + c->planes, c->phase = 0, c->linear = linear;
    sim_order_start(c);
    memset(c->open, 0, c->most_actors * sizeof *c->open);
    uint32_t nx = l->grid[0] / l->cluster[0], ny = l->grid[1] / l->cluster[1];
    c->id[0] = (uint32_t)(linear % nx), c->id[1] = (uint32_t)(linear / nx % ny), c->id[2] = (uint32_t)(linear / nx / ny);
    for (uint32_t r = 0; r < c->blocks; r++) {
        sim_block *b = c->block[r];
        if (again) {
            if (b->checked)
                memset(b->wrote, 0, (size_t)b->words * 8), memset(b->read, 0, (size_t)b->words * 4 * b->warps);
            if (b->group_read && b->checked)
                memset(b->group_read, 0, (size_t)b->words * 4 * b->groups);
            if (b->far)
                memset(b->far, 0, (size_t)c->warps * b->words * 4);
            memset(b->barrier, 0, sizeof b->barrier);
            if (b->mbarrier)
                memset(b->mbarrier, 0, SIM_MBARRIERS * sizeof *b->mbarrier);
        }
        sim_block_start(b);
    }
}

/* What a warp that cannot go on waits for. */
static size_t waits_for(const sim_warp *w, char *to, size_t room)
{
    const sim_block *b = w->block;
    const sim_mbarrier *m = w->waits;
    if (w->state == W_BARRIER && w->barrier < 0) {
        uint32_t here = 0;
        for (uint32_t k = 0; k < b->cluster->warps; k++)
            here += b->cluster->block[k / b->warps]->warp[k % b->warps].met != 0;
        return (size_t)snprintf(to, room, "waits at the cluster's barrier, where %u of %u warps are", here, b->cluster->warps);
    }
    if (w->state == W_BARRIER)
        return (size_t)snprintf(to, room, "waits at barrier %d, where %u of %u threads are", w->barrier, b->barrier[w->barrier].arrived,
                                b->barrier[w->barrier].count);
    if (w->wants)
        return (size_t)snprintf(to, room, "waits for %u more registers per thread, but its block has given back %u", w->wants,
                                b->registers);
    if (w->awaits_group)
        return (size_t)snprintf(to, room, "waits for a wgmma that another warp of its warp group has yet to issue");
    if (!m)
        return (size_t)snprintf(to, room, "waits in vain");
    size_t n = (size_t)snprintf(to, room, "waits for phase %llu of the mbarrier at offset %u", (unsigned long long)m->phase, m->address);
    if (m->pending)
        n += (size_t)snprintf(to + n, room - n, ", which waits for %u more of %u arrivals", m->pending, m->expected);
    if (m->tx > 0)
        n += (size_t)snprintf(to + n, room - n, ", which waits for %lld more bytes than copies have brought", (long long)m->tx);
    if (m->tx < 0)
        n += (size_t)snprintf(to + n, room - n, ", to which copies have brought %lld more bytes than were announced", -(long long)m->tx);
    return n;
}

static void deadlock(sim_cluster *c)
{
    char text[SIM_REPORT], where[256];
    const sim_block *first = c->block[0];
    size_t n =
        (size_t)snprintf(text, sizeof text, "deadlock: no warp of %s (%u,%u,%u) in kernel %.200s can go on",
                         c->blocks > 1 ? "the cluster of block" : "block", first->id[0], first->id[1], first->id[2], first->program->name);
    for (uint32_t k = 0; k < c->warps && n < sizeof text - 800; k++) {
        const sim_block *b = c->block[k / first->warps];
        const sim_warp *w = &b->warp[k % first->warps];
        if (c->blocks > 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "\n  block (%u,%u,%u), warp %u ", b->id[0], b->id[1], b->id[2], w->index);
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "\n  warp %u ", w->index);
        if (w->state == W_DONE) {
            n += (size_t)snprintf(text + n, sizeof text - n, "has exited");
            continue;
        }
        const sim_insn *i = &b->program->code[w->state == W_BARRIER || w->wants || w->awaits_group ? w->waiting_at : w->pc ? w->pc - 1 : 0];
        n += waits_for(w, text + n, sizeof text - n);
        n += (size_t)snprintf(text + n, sizeof text - n, ", PTX line %u: %.120s", i->line, i->text);
        if (sim_report_where(b->program, i, where, sizeof where))
            n += (size_t)snprintf(text + n, sizeof text - n, ", from %.200s", where);
    }
    sim_report_block(c->block[0], SIM_CHECK_DEADLOCK, text);
}

static double monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int interrupt; /* of the process */

void sim_interrupt(int on)
{
    __atomic_store_n(&interrupt, on, __ATOMIC_RELAXED);
}
int sim_interrupted(void)
{
    return __atomic_load_n(&interrupt, __ATOMIC_RELAXED);
}

/* Must the launch end: a defect, a limit. steps: of slices not yet finished. */
static bool should_stop(sim_launch *l, int64_t steps)
{
    return sim_interrupted() || __atomic_load_n(&l->stop, __ATOMIC_RELAXED) ||
           __atomic_load_n(&l->steps, __ATOMIC_RELAXED) + steps > l->max_steps || monotonic() > l->deadline;
}

/* Which limit the launch is over, if any. */
static bool over(const sim_launch *l, int64_t steps, char *text, size_t room)
{
    int64_t all = __atomic_load_n(&l->steps, __ATOMIC_RELAXED) + steps;
    double seconds = l->options.max_seconds > 0 ? l->options.max_seconds : DEFAULT_SECONDS;
    if (sim_interrupted())
        return snprintf(text, room, "interrupted: the launch was ended from outside"), true;
    if (all > l->max_steps)
        return snprintf(text, room, "hang: the launch has run %lld warp instructions; the limit is %lld (max_steps)", (long long)all,
                        (long long)l->max_steps),
               true;
    if (monotonic() > l->deadline)
        return snprintf(text, room, "hang: the launch has run for %g seconds, its limit (max_seconds)", seconds), true;
    return false;
}

static bool too_long(sim_block *b, sim_warp *w)
{
    char text[160];
    if (!over(b->launch, b->steps, text, sizeof text))
        return false;
    sim_fault(w, &b->program->code[w->pc < b->program->insns ? w->pc : 0], -1, SIM_CHECK_HANG, "%s", text);
    return true;
}

/* Up to `slice` instructions, piece by piece; after each the limits of the launch. */
static sim_step stretch(sim_block *b, sim_warp *w, int64_t slice)
{
    sim_step s = STEP_NEXT;
    while (slice > 0 && s == STEP_NEXT) {
        int64_t piece = slice < PIECE ? slice : PIECE;
        s = sim_warp_run(w, piece);
        slice -= piece;
        if (s == STEP_NEXT && should_stop(b->launch, b->steps))
            break;
    }
    return s;
}

/* One turn of a warp. false: a defect. */
static bool turn(sim_block *b, sim_warp *w)
{
    int64_t most = b->launch->max_steps - __atomic_load_n(&b->launch->steps, __ATOMIC_RELAXED) - b->steps + 1;
    int64_t slice = b->launch->options.schedule == SIM_RANDOM ? 1 + random32(b->cluster) % 200 : SLICE;
    if (slice > most)
        slice = most > 0 ? most : 1;
    w->state = W_READY;
    switch (stretch(b, w, slice)) {
    case STEP_FAULT:
        return false;
    case STEP_WAIT:
        w->state = W_BARRIER;
        break;
    case STEP_YIELD:
        w->state = W_SPIN, w->spun = b->cluster->progress;
        break;
    case STEP_DONE:
        w->state = W_DONE, b->cluster->progress++;
        if (!sim_bulk_leave(w) || (!--b->running && (!sim_bulk_end(b) || !sim_cluster_barrier_end(b) || !sim_grid_end(b))))
            return false;
        sim_cluster_barrier_settle(b->cluster);
        break;
    default:
        break;
    }
    return !should_stop(b->launch, b->steps) || (too_long(b, w), false);
}

static void add_up(sim_cluster *c, bool finished) /* what its blocks have run */
{
    for (uint32_t r = 0; r < c->blocks; r++) {
        sim_block *b = c->block[r];
        __atomic_fetch_add(&c->launch->steps, b->steps, __ATOMIC_RELAXED);
        b->counts.c.instructions += (uint64_t)b->steps;
        b->steps = 0;
        if (finished)
            b->counts.c.blocks++, b->counts.c.warps += b->warps;
        else
            sim_bulk_drop(b);
    }
}

static int run(sim_cluster *c, uint64_t linear)
{
    const sim_launch *l = c->launch;
    uint32_t running = c->warps, vain = 0, stale = 0, per = c->block[0]->warps;
    begin(c, linear);
    while (running) {
        uint64_t progress = c->progress;
        bool ran = false;
        uint32_t shift = l->options.schedule == SIM_RANDOM ? random32(c) % c->warps : 0;
        c->stuck = stale >= STALE;
        for (uint32_t k = 0; k < c->warps && running; k++) {
            uint32_t n = (k + shift) % c->warps;
            if (l->options.schedule == SIM_REVERSED)
                n = c->warps - 1 - n;
            sim_block *b = c->block[n / per];
            sim_warp *w = &b->warp[n % per];
            if (w->state == W_DONE || w->state == W_BARRIER || (w->state == W_SPIN && w->spun == c->progress && !vain && !c->stuck))
                continue;
            if (w->spun != c->progress)
                ran = true; /* else it has waited in vain since anything happened */
            if (!turn(b, w))
                return -1;
            running -= w->state == W_DONE;
        }
        stale = c->progress != progress ? 0 : stale + 1;
        if (ran || c->progress != progress) {
            vain = 0;
        } else if (running && ++vain > PATIENCE) {
            deadlock(c);
            return -1;
        }
    }
    return 0;
}

/* 0 = fine */
static int run_cluster(sim_cluster *c, uint64_t linear)
{
    int r = run(c, linear);
    add_up(c, !r);
    return r;
}

/* ---- launches ---- */

static void merge(sim_launch *l, const sim_block *b)
{
    const sim_counters *c = &b->counts.c;
    sim_counters *t = &l->counts.c;
    t->blocks += c->blocks, t->warps += c->warps, t->instructions += c->instructions, t->barriers += c->barriers;
    t->matrix += b->by_class[C_MATRIX], t->shuffle += b->by_class[C_SHUFFLE], t->special += b->by_class[C_SPECIAL];
    t->memory += b->by_class[C_MEMORY], t->control += b->by_class[C_CONTROL], t->other += b->by_class[C_OTHER];
    t->global_read += c->global_read, t->global_write += c->global_write;
    t->shared_read += c->shared_read, t->shared_write += c->shared_write;
    t->shared_wavefronts += c->shared_wavefronts, t->shared_ideal += c->shared_ideal;
    if (c->shared_peak > t->shared_peak)
        t->shared_peak = c->shared_peak;
    for (int k = 0; k < c->tensors; k++) {
        int to = 0;
        while (to < t->tensors && t->tensor[to].base != c->tensor[k].base)
            to++;
        if (to == t->tensors) {
            if (t->tensors < SIM_TENSORS)
                t->tensors++, t->tensor[to] = c->tensor[k];
            else
                to = SIM_TENSORS - 1, t->tensor[to].read += c->tensor[k].read, t->tensor[to].write += c->tensor[k].write;
            continue;
        }
        t->tensor[to].read += c->tensor[k].read, t->tensor[to].write += c->tensor[k].write;
    }
}

static void cluster_free(sim_cluster *c)
{
    for (uint32_t r = 0; c && r < c->blocks; r++)
        sim_block_free(c->block[r]);
    if (c)
        sim_order_free(c), free(c->product);
    free(c);
}

static sim_cluster *cluster_new(sim_launch *l)
{
    sim_cluster *c = calloc(1, sizeof *c);
    bool ok = c != NULL;
    if (ok)
        c->launch = l;
    for (uint32_t r = 0; ok && r < l->cluster[0] * l->cluster[1] * l->cluster[2]; r++) {
        ok = (c->block[r] = sim_block_new()) != NULL;
        if (ok)
            c->blocks++, ok = sim_block_prepare(c->block[r], c, r);
        if (ok)
            c->warps += c->block[r]->warps, c->groups += c->block[r]->groups;
    }
    ok = ok && sim_order_prepare(c);
    if (ok)
        c->most_actors = c->warps + c->groups + c->planes + c->blocks * SIM_MBARRIERS;
    sim_holds(!ok || c->blocks); /* a cluster has a block */
    return ok ? c : (cluster_free(c), NULL);
}

/* A limit that is reached between two clusters: a grid of blocks of which each does little. */
static void between(sim_block *b, const char *limit)
{
    char text[640];
    snprintf(text, sizeof text, "%s\n  in kernel %.200s, after block (%u,%u,%u) of a grid of (%u,%u,%u)", limit, b->program->name, b->id[0],
             b->id[1], b->id[2], b->launch->grid[0], b->launch->grid[1], b->launch->grid[2]);
    sim_report_block(b, SIM_CHECK_HANG, text);
}

static void *work(void *arg)
{
    sim_launch *l = arg;
    sim_cluster *c = cluster_new(l);
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (!c) {
        pthread_mutex_lock(&lock);
        l->stop = 1, l->result = CUDA_ERROR_OUT_OF_MEMORY;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    for (;;) {
        uint64_t k = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
        if (k >= l->total || __atomic_load_n(&l->stop, __ATOMIC_RELAXED))
            break;
        if (run_cluster(c, k) && __atomic_load_n(&l->stop, __ATOMIC_RELAXED))
            break; /* else the launch goes on without this one */
        char text[160];
        if (!should_stop(l, 0))
            continue;
        if (k + 1 < l->total && !__atomic_load_n(&l->stop, __ATOMIC_RELAXED) && over(l, 0, text, sizeof text))
            between(c->block[0], text);
        break;
    }
    pthread_mutex_lock(&lock);
    for (uint32_t r = 0; r < c->blocks; r++)
        merge(l, c->block[r]);
    pthread_mutex_unlock(&lock);
    cluster_free(c);
    return NULL;
}

CUresult sim_launch_run(sim_launch *l)
{
    pthread_t thread[64];
    int n = 0, most = l->options.threads - 1;
    l->total = (uint64_t)(l->grid[0] / l->cluster[0]) * (l->grid[1] / l->cluster[1]) * (l->grid[2] / l->cluster[2]);
    l->max_steps = l->options.max_steps > 0 ? l->options.max_steps : DEFAULT_STEPS;
    l->deadline = monotonic() + (l->options.max_seconds > 0 ? l->options.max_seconds : DEFAULT_SECONDS);
    l->result = CUDA_SUCCESS;
    sim_report_open(l);
    if (!sim_order_open(l))
        return CUDA_ERROR_OUT_OF_MEMORY;
    while (n < most && n < 64 && (uint64_t)n + 1 < l->total && !pthread_create(&thread[n], NULL, work, l))
        n++;
    work(l);
    while (n)
        pthread_join(thread[--n], NULL);
    l->counts.c.launches = 1;
    sim_order_close(l);
    sim_report_close(l);
    return l->result;
}
