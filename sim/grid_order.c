/* grid_order: words of global memory have a record of their last writer and of their last reader. A record
 * has the number of its launch, so that none needs to be cleared between launches. */
#include "grid_order.h"
#include "holds.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUBLISHED, SEEN, TAKEN, PASSED, PLANES };
_Static_assert((int)PLANES == (int)SIM_PLANES, "a plane each");
enum { MOST = 1 << 16 };      /* warps of a launch that are told apart */
enum { ERA = (1 << 15) - 1 }; /* launches that are told apart before all records are cleared */
/* A record: launch << 49 | time << 21 | warp << 5 | whether the access was strong << 4 | bytes of the word. */
enum { STRONG = 16 };

typedef struct known { /* what a block knows of all warps of the launch; does not change */
    uint32_t holders, time[];
} known;

typedef struct flag { /* an address that strong writes have gone to */
    uint64_t address;
    known *released; /* what a strong read of its value takes over; NULL: nothing */
} flag;

typedef struct sim_order {
    volatile int lock; /* of the flags, and around strong accesses; not taken where one host thread runs all */
    bool alone;
    uint32_t warps; /* of the launch */
    uint64_t tag;   /* the number of the launch, in its place in a record */
    uint32_t era;
    bool any;   /* something was released */
    flag *flag; /* by hash of the address */
    size_t flags, room;
} sim_order;

typedef struct sim_taken { /* the acquisitions of a warp: each has what those before it have, too */
    known **list;
    uint32_t n, room;
} sim_taken;

/* ---- knowledge ---- */

static known *hold(known *k)
{
    if (k)
        __atomic_fetch_add(&k->holders, 1, __ATOMIC_RELAXED);
    return k;
}
static void let(known *k)
{
    if (k && __atomic_sub_fetch(&k->holders, 1, __ATOMIC_ACQ_REL) == 0)
        free(k);
}
static known *copy_of(const sim_order *o, const known *k) /* of nothing: knows nothing */
{
    known *c = malloc(sizeof *c + o->warps * sizeof *c->time);
    if (!c)
        return NULL;
    c->holders = 1;
    if (k)
        memcpy(c->time, k->time, o->warps * sizeof *c->time);
    else
        memset(c->time, 0, o->warps * sizeof *c->time);
    return c;
}
static void join(const sim_order *o, known *to, const known *from)
{
    for (uint32_t x = 0; x < o->warps; x++)
        to->time[x] = from->time[x] > to->time[x] ? from->time[x] : to->time[x];
}
static bool covers(const sim_order *o, const known *k, const known *part)
{
    bool all = true;
    for (uint32_t x = 0; x < o->warps; x++)
        all &= k->time[x] >= part->time[x];
    return all;
}

static inline uint32_t *plane(const sim_cluster *c, uint32_t *clock, int p)
{
    return clock + c->warps + c->groups + (uint32_t)p * c->warps;
}

/* ---- launches and clusters ---- */

bool sim_order_open(sim_launch *l)
{
    static uint64_t launches; /* of the process; the driver's lock is held */
    uint64_t warps = ((uint64_t)l->block[0] * l->block[1] * l->block[2] + 31) / 32 * l->grid[0] * l->grid[1] * l->grid[2];
    if (!l->program->exchanges || l->options.unchecked || l->severity[SIM_CHECK_RACE_GLOBAL] == SIM_OFF || warps > MOST)
        return true;
    sim_order *o = calloc(1, sizeof *o);
    if (!o)
        return false;
    launches++;
    o->warps = (uint32_t)warps, o->alone = l->options.threads <= 1;
    o->tag = (launches % ERA + 1) << 49, o->era = (uint32_t)(launches / ERA) + 1;
    l->order = o;
    return true;
}

void sim_order_close(sim_launch *l)
{
    sim_order *o = l->order;
    for (size_t k = 0; o && k < o->room; k++)
        let(o->flag[k].released);
    if (o)
        free(o->flag);
    free(o);
    l->order = NULL;
}

bool sim_order_prepare(sim_cluster *c)
{
    c->planes = c->launch->order ? SIM_PLANES * c->warps : 0;
    return !c->planes || (c->taken = calloc(c->warps, sizeof *c->taken));
}

void sim_order_start(sim_cluster *c)
{
    for (uint32_t x = 0; c->taken && x < c->warps; x++) {
        for (uint32_t k = 0; k < c->taken[x].n; k++)
            let(c->taken[x].list[k]);
        c->taken[x].n = 0;
    }
}

void sim_order_free(sim_cluster *c)
{
    sim_order_start(c);
    for (uint32_t x = 0; c->taken && x < c->warps; x++)
        free(c->taken[x].list);
    free(c->taken);
}

/* ---- what is known of an access ---- */

static inline uint32_t warp_of(uint64_t record)
{
    return (uint32_t)(record >> 5) & (MOST - 1);
}
static inline uint32_t time_of(uint64_t record)
{
    return (uint32_t)(record >> 21) & ((1u << 28) - 1);
}
static inline uint64_t record_of(const sim_warp *w)
{
    const sim_cluster *c = w->block->cluster;
    return c->launch->order->tag | (uint64_t)w->clock[w->actor] << 21 | (c->linear * c->warps + w->actor) << 5;
}

/* Has some warp of the cluster taken it over, up to the acquisition that this plane has? */
static bool in_plane(sim_warp *w, int p, uint32_t warp, uint32_t time)
{
    const sim_cluster *c = w->block->cluster;
    const uint32_t *upto = plane(c, w->clock, p);
    for (uint32_t x = 0; x < c->warps; x++)
        if (upto[x] && c->taken[x].list[upto[x] - 1]->time[warp] >= time)
            return true;
    return false;
}

static inline bool ordered(sim_warp *w, uint64_t record)
{
    const sim_cluster *c = w->block->cluster;
    uint32_t warp = warp_of(record), time = time_of(record), first = (uint32_t)c->linear * c->warps;
    if (record >> 5 == w->trusted >> 5)
        return true;
    if (warp - first < c->warps ? warp - first != w->actor && time > w->clock[warp - first] : !in_plane(w, TAKEN, warp, time))
        return false;
    w->trusted = record;
    return true;
}

static int block_of(const sim_launch *l, uint32_t warp, char *to, size_t room)
{
    uint32_t size = l->cluster[0] * l->cluster[1] * l->cluster[2], per = (l->block[0] * l->block[1] * l->block[2] + 31) / 32,
             linear = warp / per / size, rank = warp / per % size, nx = l->grid[0] / l->cluster[0], ny = l->grid[1] / l->cluster[1];
    return snprintf(to, room, "warp %u of block (%u,%u,%u)", warp % per, linear % nx * l->cluster[0] + rank % l->cluster[0],
                    linear / nx % ny * l->cluster[1] + rank / l->cluster[0] % l->cluster[1],
                    linear / nx / ny * l->cluster[2] + rank / l->cluster[0] / l->cluster[1]);
}

static bool conflict(sim_warp *w, const sim_insn *i, int lane, uint64_t address, uint64_t record, bool writes, bool wrote)
{
    const sim_cluster *c = w->block->cluster;
    char who[96], where[256];
    uint32_t warp = warp_of(record);
    bool near = warp - (uint32_t)c->linear * c->warps < c->warps, seen = !near && in_plane(w, SEEN, warp, time_of(record));
    block_of(c->launch, warp, who, sizeof who);
    sim_report_address(w->block, address, where, sizeof where);
    return sim_fault(w, i, lane, SIM_CHECK_RACE_GLOBAL, "race in global memory: warp %u %s %s, which %s has %s with %s", w->index,
                     writes ? "writes" : "reads", where, who, wrote ? "written" : "read",
                     near   ? "no barrier between the two"
                     : seen ? "no order between the two: a release was met, but a fence of gpu scope after it is missing"
                            : "no order between the two: a fence and a flag, or an atomic operation, after the one, or their reading in "
                              "front of the other, is missing") != STEP_FAULT;
}

static bool late(sim_warp *w, const sim_insn *i, int lane, uint64_t address)
{
    char where[256];
    sim_report_address(w->block, address, where, sizeof where);
    return sim_fault(w, i, lane, SIM_CHECK_READ_ONLY, "the read-only path reads what this launch has written: %s", where) != STEP_FAULT;
}

/* ---- records ---- */

static void lock(sim_order *o)
{
    while (!o->alone && __atomic_exchange_n(&o->lock, 1, __ATOMIC_ACQUIRE)) {
    }
}
static void unlock(sim_order *o)
{
    if (!o->alone)
        __atomic_store_n(&o->lock, 0, __ATOMIC_RELEASE);
}

static sim_touch *touches(sim_warp *w, const sim_insn *i, sim_alloc *a)
{
    sim_order *o = w->block->launch->order;
    if (__builtin_expect(__atomic_load_n(&a->era, __ATOMIC_ACQUIRE) == o->era, 1))
        return a->touch;
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER; /* held for a launch's first touch of an allocation */
    pthread_mutex_lock(&once);
    bool ok = sim_memory_touch(a, o->era);
    pthread_mutex_unlock(&once);
    return ok ? a->touch : (sim_fault(w, i, -1, SIM_CHECK_HOST_MEMORY, "out of host memory"), NULL);
}

/* Two host threads whose accesses meet: each leaves its record before it looks at the other's, so that one of them finds the other. */
static inline uint64_t leave(const sim_order *o, uint64_t *at, uint64_t record)
{
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (old >> 5 == record >> 5)
        record |= old & 15; /* more bytes of the word, by the same warp at the same time */
    if (old == record)      /* as of lanes that read the same word */
        return old;
    if (!o->alone)
        return __atomic_exchange_n(at, record, __ATOMIC_SEQ_CST);
    *at = record;
    return old;
}

static inline uint32_t bytes_of(uint64_t word, uint64_t from, uint64_t to) /* of the word, those in [from, to) */
{
    uint32_t first = from > word * 4 ? (uint32_t)(from - word * 4) : 0, end = to < word * 4 + 4 ? (uint32_t)(to - word * 4) : 4;
    return (0xFu >> (4 - (end - first))) << first;
}

static bool read(sim_warp *w, const sim_insn *i, int lane, sim_alloc *a, uint64_t address, uint32_t size, bool trace)
{
    const sim_order *o = w->block->launch->order;
    sim_touch *t = touches(w, i, a);
    uint64_t mine = record_of(w), from = address - a->base, to = from + size;
    if (!t)
        return false;
    for (uint64_t k = from >> 2; k <= (to - 1) >> 2; k++) {
        uint32_t bytes = (from | to) & 3 ? bytes_of(k, from, to) : 15;
        if (trace)
            leave(o, &t[k].read, mine | bytes);
        uint64_t wrote = __atomic_load_n(&t[k].wrote, __ATOMIC_RELAXED);
        if (wrote >> 49 != o->tag >> 49 || !(wrote & bytes))
            continue;
        if (i->order & ORDER_CACHED && !late(w, i, lane, a->base + k * 4))
            return false;
        if (!ordered(w, wrote) && !conflict(w, i, lane, a->base + k * 4, wrote, false, true))
            return false;
    }
    return true;
}

bool sim_order_read_lanes(sim_warp *w, const sim_insn *i, uint32_t m, const sim_alloc *a, const uint64_t *address, uint32_t size)
{
    const sim_order *o = w->block->launch->order;
    uint64_t mine = record_of(w);
    if (__atomic_load_n(&a->era, __ATOMIC_ACQUIRE) != o->era)
        return false;
    FOR_LANES(l, m)
    {
        uint64_t at = address[l] - a->base;
        sim_touch *t = a->touch + (at >> 2);
        uint32_t bytes = size < 4 ? ((1u << size) - 1) << (at & 3) : 15;
        for (uint32_t k = 0; k * 4 < size; k++) {
            leave(o, &t[k].read, mine | bytes);
            uint64_t wrote = __atomic_load_n(&t[k].wrote, __ATOMIC_RELAXED);
            if (wrote >> 49 == o->tag >> 49 && wrote & bytes && (i->order & ORDER_CACHED || !ordered(w, wrote)))
                return false;
        }
    }
    return true;
}

bool sim_order_read(sim_warp *w, const sim_insn *i, int lane, sim_alloc *a, uint64_t address, uint32_t size)
{
    return read(w, i, lane, a, address, size, true);
}
bool sim_order_fetch(sim_warp *w, const sim_insn *i, int lane, sim_alloc *a, uint64_t address, uint32_t size)
{
    return read(w, i, lane, a, address, size, false);
}

bool sim_order_write(sim_warp *w, const sim_insn *i, int lane, sim_alloc *a, uint64_t address, uint32_t size, const void *value)
{
    const sim_order *o = w->block->launch->order;
    sim_touch *t = touches(w, i, a);
    uint64_t mine = record_of(w), from = address - a->base, to = from + size;
    if (!t)
        return false;
    bool same = value && !memcmp(a->data + from, value, size);
    for (uint64_t k = from >> 2; k <= (to - 1) >> 2; k++) {
        uint32_t bytes = bytes_of(k, from, to);
        uint64_t old = leave(o, &t[k].wrote, mine | bytes);
        if (!same && old >> 49 == o->tag >> 49 && old & bytes && !ordered(w, old) &&
            !conflict(w, i, lane, a->base + k * 4, old, true, true))
            return false;
        uint64_t seen = __atomic_load_n(&t[k].read, __ATOMIC_RELAXED);
        if (!same && seen >> 49 == o->tag >> 49 && seen & bytes && !ordered(w, seen) &&
            !conflict(w, i, lane, a->base + k * 4, seen, true, false))
            return false;
    }
    return true;
}

/* ---- strong accesses ---- */

void sim_order_lock(sim_warp *w)
{
    lock(w->block->launch->order);
}
void sim_order_unlock(sim_warp *w)
{
    unlock(w->block->launch->order);
}

static flag *find(sim_order *o, uint64_t address) /* its place, or a free one; NULL: no room */
{
    if (!o->room)
        return NULL;
    size_t k = (size_t)(address * 0x9E3779B97F4A7C15ull >> 32) & (o->room - 1);
    while (o->flag[k].address && o->flag[k].address != address)
        k = (k + 1) & (o->room - 1);
    return &o->flag[k];
}

static flag *flag_at(sim_order *o, uint64_t address) /* NULL: out of memory */
{
    if (2 * o->flags >= o->room) {
        sim_order more = { .room = o->room ? o->room * 2 : 64 };
        if (!(more.flag = calloc(more.room, sizeof *more.flag)))
            return NULL;
        for (size_t k = 0; k < o->room; k++)
            if (o->flag[k].address)
                *find(&more, o->flag[k].address) = o->flag[k];
        free(o->flag);
        o->flag = more.flag, o->room = more.room;
    }
    flag *f = find(o, address);
    sim_holds(f);
    if (!f->address)
        f->address = address, o->flags++;
    return f;
}

static bool nothing_left(sim_warp *w, const sim_insn *i)
{
    return sim_fault(w, i, -1, SIM_CHECK_HOST_MEMORY, "out of host memory"), false;
}

bool sim_order_acquire(sim_warp *w, const sim_insn *i, uint64_t address)
{
    sim_order *o = w->block->launch->order;
    sim_cluster *c = w->block->cluster;
    const flag *f = o->any ? find(o, address) : NULL;
    if (!f || !f->released)
        return true;
    sim_taken *t = &c->taken[w->actor];
    known *last = t->n ? t->list[t->n - 1] : NULL, *more = NULL;
    if (!last)
        more = hold(f->released);
    else if (last != f->released && !covers(o, last, f->released)) {
        if (!(more = copy_of(o, last)))
            return nothing_left(w, i);
        join(o, more, f->released);
    }
    if (more && t->n == t->room) {
        uint32_t room = t->room ? t->room * 2 : 8;
        known **grown = realloc(t->list, room * sizeof(known *));
        if (!grown)
            return let(more), nothing_left(w, i);
        t->list = grown, t->room = room;
    }
    if (more)
        t->list[t->n++] = more;
    plane(c, w->clock, SEEN)[w->actor] = t->n;
    if (i->order & ORDER_ACQUIRE)
        plane(c, w->clock, TAKEN)[w->actor] = t->n;
    return true;
}

bool sim_order_mark(sim_warp *w, const sim_insn *i, sim_alloc *a, uint64_t address, uint32_t size)
{
    uint64_t from = address - a->base;
    sim_touch *t = touches(w, i, a);
    if (!t)
        return false;
    const sim_order *o = w->block->launch->order;
    for (uint64_t k = from >> 2; k <= (from + size - 1) >> 2; k++) {
        uint32_t bytes = bytes_of(k, from, from + size);
        uint64_t old = leave(o, &t[k].wrote, record_of(w) | STRONG | bytes);
        if (old >> 49 == o->tag >> 49 && old & bytes && !(old & STRONG) && !ordered(w, old) &&
            !conflict(w, i, -1, a->base + k * 4, old, true, true))
            return false;
    }
    return true;
}

/* atomic: what others released before stays with the value. */
bool sim_order_release(sim_warp *w, const sim_insn *i, uint64_t address, bool atomic)
{
    sim_order *o = w->block->launch->order;
    const sim_cluster *c = w->block->cluster;
    bool all = i->order & ORDER_RELEASE, any = false;
    const uint32_t *times = all ? w->clock : plane(c, w->clock, PUBLISHED), *upto = plane(c, w->clock, all ? TAKEN : PASSED);
    for (uint32_t x = 0; x < c->warps; x++)
        any |= times[x] > c->epoch || upto[x];
    flag *f = any ? flag_at(o, address) : o->any ? find(o, address) : NULL;
    if (!f)
        return any ? nothing_left(w, i) : true;
    known *fresh = any ? copy_of(o, atomic ? f->released : NULL) : atomic ? hold(f->released) : NULL;
    if (any && !fresh)
        return nothing_left(w, i);
    for (uint32_t x = 0; any && x < c->warps; x++) {
        uint32_t *own = &fresh->time[(uint32_t)c->linear * c->warps + x];
        if (times[x] > c->epoch && times[x] > *own)
            *own = times[x];
        if (upto[x])
            join(o, fresh, c->taken[x].list[upto[x] - 1]);
    }
    let(f->released);
    f->released = fresh;
    o->any |= any;
    return true;
}

void sim_order_fence(sim_warp *w, const sim_insn *i)
{
    const sim_cluster *c = w->block->cluster;
    uint32_t *seen = plane(c, w->clock, SEEN), *taken = plane(c, w->clock, TAKEN), *passed = plane(c, w->clock, PASSED),
             *published = plane(c, w->clock, PUBLISHED), *now = &w->clock[w->actor];
    for (uint32_t x = 0; x < c->warps && i->order & ORDER_ACQUIRE; x++)
        taken[x] = seen[x] > taken[x] ? seen[x] : taken[x];
    if (!(i->order & ORDER_RELEASE))
        return;
    memcpy(passed, taken, c->warps * sizeof *passed);
    memcpy(published, w->clock, c->warps * sizeof *published);
    if (*now < SIM_LAST_CLOCK)
        ++*now;
}
