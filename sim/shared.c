/* shared: a block's shared memory and what is known of every byte of it: defined or not, in flight or not, and what touched it
 * last. Order is kept as vector clocks: actor w's own time is clock[w]; an actor that passes a barrier learns the times of all that
 * came. An access is a race if the other one's time is not yet known and one of the two writes. Nothing else
 * orders. Lanes of one warp run in step here, and their accesses are in order where the warp's time has gone on between them, by a
 * bar.warp.sync or a barrier. Of a word the last writer's lane is known, and the lane that has read it. */
#include "proxy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sim_block *sim_shared_owner(sim_warp *w, const sim_insn *i, int lane, uint64_t *address)
{
    sim_cluster *c = w->block->cluster;
    uint32_t rank = (uint32_t)(*address >> SIM_RANK_SHIFT) & SIM_RANK_BITS;
    if (!rank || rank == w->block->rank + 1)
        return *address &= (1u << SIM_RANK_SHIFT) - 1, w->block;
    if (rank > c->blocks)
        return sim_fault(w, i, lane, SIM_CHECK_BOUNDS, "shared memory accessed out of bounds: address 0x%llx is in no block of the cluster",
                         (unsigned long long)*address),
               NULL;
    sim_block *o = c->block[rank - 1];
    if (!o->running && sim_fault(w, i, lane, SIM_CHECK_CLUSTER_EXIT, "the shared memory of block (%u,%u,%u) is accessed, which has ended",
                                 o->id[0], o->id[1], o->id[2]) == STEP_FAULT)
        return NULL;
    *address &= (1u << SIM_RANK_SHIFT) - 1;
    return o;
}

uint8_t *sim_shared(sim_warp *w, const sim_insn *i, int lane, uint64_t address, uint32_t size)
{
    return sim_shared_of(w->block, w, i, lane, address, size);
}

uint8_t *sim_shared_of(sim_block *o, sim_warp *w, const sim_insn *i, int lane, uint64_t address, uint32_t size)
{
    uint64_t at = address - SIM_SHARED_BASE;
    if (at >= o->shared_size || size > o->shared_size - at) {
        if (address < SIM_SHARED_BASE)
            sim_fault(w, i, lane, SIM_CHECK_BOUNDS,
                      "shared memory accessed out of bounds: %u bytes at 0x%llx, below the first byte of the block's (0x%x); is a base "
                      "address missing?",
                      size, (unsigned long long)address, SIM_SHARED_BASE);
        else if (address >> SIM_RANK_SHIFT && address >> 32 == 0)
            sim_fault(w, i, lane, SIM_CHECK_BOUNDS,
                      "shared memory accessed out of bounds: 0x%llx is an address of mapa, for .shared::cluster only",
                      (unsigned long long)address);
        else
            sim_fault(w, i, lane, SIM_CHECK_BOUNDS,
                      "shared memory accessed out of bounds: %u bytes at offset %llu; the block has %u (%u static, %u dynamic)", size,
                      (unsigned long long)at, o->shared_size, o->program->shared_bytes, o->launch->dynamic_shared);
        return NULL;
    }
    if (size > 1 && at & (size - 1)) {
        sim_fault(w, i, lane, SIM_CHECK_ALIGNMENT, "misaligned access to shared memory: %u bytes at offset %llu", size,
                  (unsigned long long)at);
        return NULL;
    }
    if (at + size > o->counts.c.shared_peak)
        o->counts.c.shared_peak = at + size;
    if (o != w->block && o->visit)
        o->visit[w->actor] = (struct sim_visit){ w->clock[w->actor], i };
    return o->shared + at;
}

/* Both: true where the run goes on. */
static bool conflict(sim_warp *w, const sim_insn *i, int lane, uint32_t word, uint32_t other, bool writes, bool wrote)
{
    const sim_cluster *c = w->block->cluster;
    char who[160];
    sim_report_actor(c, w->block, other, who, sizeof who);
    return sim_fault(w, i, lane,
                     other < c->warps               ? SIM_CHECK_RACE
                     : other < c->warps + c->groups ? SIM_CHECK_IN_USE
                                                    : SIM_CHECK_COMPLETION,
                     "race in shared memory: warp %u %s offset %u, which %s %s %s", w->index, writes ? "writes" : "reads", word * 4, who,
                     wrote ? "has written" : "has read",
                     other < c->warps ? "with no barrier between the two" : "and whose completion it has not waited for") != STEP_FAULT;
}
static bool flying(sim_warp *w, const sim_insn *i, int lane, uint32_t word, bool writes)
{
    return sim_fault(w, i, lane, SIM_CHECK_IN_FLIGHT,
                     "shared memory is %s while an asynchronous copy to it is in flight: offset %u; a wait is missing",
                     writes ? "written" : "read", word * 4) != STEP_FAULT;
}

/* Several lanes at one time. Of readers: those of bytes of their own, whom nothing is said of, and those of the same byte. Of writers,
 * whether of bytes of their own or, by one store, of the same value: nothing. */
enum { READ_APART = 33, READ_TOGETHER = 34 };
#define WRITTEN_APART ((uint64_t)1 << 26)

/* Is what this lane touches after a write known to come after it? */
static inline bool ordered(const sim_warp *w, uint64_t wrote, int lane)
{
    uint32_t other = (uint16_t)wrote, author = (uint32_t)(wrote >> 20) & 63, now = w->clock[w->actor];
    if (other != w->actor)
        return wrote >> 32 <= w->clock[other];
    return wrote >> 32 != now || author == sim_proxy_author(lane) || !author || author == SIM_ANY_LANE || wrote & WRITTEN_APART ||
           now >= SIM_LAST_CLOCK;
}

/* Two lanes of the warp: true where the run goes on. other: 1 + lane, or READ_TOGETHER. */
static bool conflict_inside(sim_warp *w, const sim_insn *i, int lane, uint32_t word, uint32_t other, bool writes)
{
    char who[64] = "several lanes of its warp have", me[32] = "the warp";
    if (other <= 32)
        snprintf(who, sizeof who, "lane %u of its warp has", other - 1);
    if (lane >= 0)
        snprintf(me, sizeof me, "lane %d", lane);
    return sim_fault(w, i, lane, SIM_CHECK_RACE,
                     "race in shared memory: %s %s offset %u, which %s %s, with no __syncwarp() between the two", me,
                     writes ? "writes" : "reads", word * 4, who, writes ? "read" : "written") != STEP_FAULT;
}

static inline void note_reader(sim_block *b, sim_warp *w, int lane, uint32_t k, uint32_t bytes, uint32_t before, uint32_t now)
{
    uint8_t *at = b->reader + (size_t)w->index * b->words + k, me = lane < 0 ? READ_TOGETHER : (uint8_t)(lane + 1);
    if (before >> 4 != now)
        *at = me;
    else if (*at != me && *at != READ_TOGETHER)
        *at = before & bytes ? READ_TOGETHER : READ_APART;
}

static inline uint32_t bytes_of(uint32_t word, uint32_t at, uint32_t end)
{
    uint32_t from = at > word * 4 ? at - word * 4 : 0, to = end < word * 4 + 4 ? end - word * 4 : 4;
    return (0xFu >> (4 - (to - from))) << from;
}

bool sim_shared_read(sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size)
{
    return sim_shared_read_of(w->block, w, i, lane, at, size);
}

bool sim_shared_read_of(sim_block *b, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size)
{
    if (b != w->block && !b->far && !(b->far = calloc((size_t)b->cluster->warps * b->words, sizeof *b->far)))
        return sim_fault(w, i, lane, SIM_CHECK_HOST_MEMORY, "out of host memory"), false;
    uint32_t me = w->actor, now = w->clock[me],
             *mine = b == w->block ? b->read + (size_t)w->index * b->words : b->far + (size_t)me * b->words;
    uint64_t seen = UINT64_MAX;
    if (size == 4 && b->state[at >> 2] == 15) { /* a written word, nothing in flight */
        if (ordered(w, b->wrote[at >> 2], lane)) {
            if (b == w->block)
                note_reader(b, w, lane, at >> 2, 15, mine[at >> 2], now);
            mine[at >> 2] = now << 4 | 15;
            return true;
        }
    }
    uint32_t k = at >> 2, end = (at + size) >> 2;
    for (; !((at | size) & 3) && k < end && b->state[k] == 15; k++) { /* whole words that were written long ago */
        uint64_t wrote = b->wrote[k];
        if (wrote != seen && !ordered(w, wrote, lane))
            break;
        seen = wrote;
        if (b == w->block)
            note_reader(b, w, lane, k, 15, mine[k], now);
        mine[k] = now << 4 | 15;
    }
    for (; k <= (at + size - 1) >> 2; k++) {
        uint32_t bytes = bytes_of(k, at, at + size), state = b->state[k];
        if (state >> 4 & bytes && !flying(w, i, lane, k, false))
            return false;
        if ((state & bytes) != bytes)
            w->shadow.met = true;
        uint64_t wrote = b->wrote[k];
        if (wrote != seen) {
            uint32_t other = (uint16_t)wrote;
            if (ordered(w, wrote, lane))
                seen = wrote;
            else if (wrote >> 16 & bytes &&
                     !(other == me ? conflict_inside(w, i, lane, k, wrote >> 20 & 63, false) : conflict(w, i, lane, k, other, false, true)))
                return false;
        }
        if (b == w->block)
            note_reader(b, w, lane, k, bytes, mine[k], now);
        mine[k] = mine[k] >> 4 == now ? mine[k] | bytes : now << 4 | bytes;
    }
    return true;
}

/* Checks a write; the caller records it. same: it leaves the bytes as they are, which two warps may do at once. */
static bool may_write(sim_block *b, sim_warp *w, const sim_insn *i, int lane, uint32_t k, uint32_t bytes, bool same)
{
    uint64_t wrote = b->wrote[k];
    uint32_t me = w->actor, other = (uint16_t)wrote;
    if (b->state[k] >> 4 & bytes && !flying(w, i, lane, k, true))
        return false;
    if (b->held && b->held[k] &&
        sim_fault(w, i, lane, SIM_CHECK_IN_USE,
                  "race in shared memory: warp %u writes offset %u, which an asynchronous operation still reads; its wait, or a barrier "
                  "after the wait, is missing",
                  w->index, k * 4) == STEP_FAULT)
        return false;
    if (!same && other != me && wrote >> 32 > w->clock[other] && wrote >> 16 & bytes && !conflict(w, i, lane, k, other, true, true))
        return false;
    if (!same && b == w->block && lane >= 0) {
        size_t at = (size_t)w->index * b->words + k;
        uint32_t r = b->read[at], reader = b->reader[at], now = w->clock[me];
        if (r >> 4 == now && r & bytes && reader != (uint32_t)lane + 1 && reader != READ_APART && now < SIM_LAST_CLOCK &&
            !conflict_inside(w, i, lane, k, reader, true))
            return false;
    }
    for (uint32_t x = 0; x < b->warps; x++) {
        uint32_t r = b->read[(size_t)x * b->words + k];
        if (b->first + x != me && r >> 4 > w->clock[b->first + x] && r & bytes && !conflict(w, i, lane, k, b->first + x, true, false))
            return false;
    }
    for (uint32_t g = 0; g < b->groups; g++)
        if (b->group_read[(size_t)g * b->words + k] >> 4 > w->clock[sim_group_actor(b, g)] &&
            !conflict(w, i, lane, k, sim_group_actor(b, g), true, false))
            return false;
    for (uint32_t x = 0; b->far && x < b->cluster->warps; x++) {
        uint32_t r = b->far[(size_t)x * b->words + k];
        if (x != me && r >> 4 > w->clock[x] && r & bytes && !conflict(w, i, lane, k, x, true, false))
            return false;
    }
    return true;
}

static void record(sim_block *b, uint32_t k, uint32_t bytes, uint32_t actor, uint32_t now, uint32_t author)
{
    uint64_t old = b->wrote[k], apart = 0;
    if ((uint16_t)old == actor && old >> 32 == now) {
        if ((old >> 20 & 63) != author)
            apart = WRITTEN_APART;
        apart |= old & WRITTEN_APART;
        bytes |= (uint32_t)(old >> 16);
    }
    b->wrote[k] = (uint64_t)now << 32 | apart | author << 20 | (bytes & 15) << 16 | actor;
}

bool sim_shared_write(sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size, const void *value)
{
    return sim_shared_write_of(w->block, w, i, lane, at, size, value);
}

bool sim_shared_write_of(sim_block *b, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size, const void *value)
{
    bool same = value && !memcmp(b->shared + at, value, size);
    for (uint32_t k = at >> 2; k <= (at + size - 1) >> 2; k++) {
        uint32_t bytes = bytes_of(k, at, at + size);
        if (!may_write(b, w, i, lane, k, bytes, same))
            return false;
        b->state[k] |= (uint8_t)bytes;
        record(b, k, bytes, w->actor, w->clock[w->actor], sim_proxy_author(lane));
    }
    return true;
}

bool sim_shared_begin(sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size)
{
    for (uint32_t k = at >> 2; k <= (at + size - 1) >> 2; k++) {
        uint32_t bytes = bytes_of(k, at, at + size);
        if (!may_write(w->block, w, i, lane, k, bytes, false))
            return false;
        w->block->state[k] |= (uint8_t)(bytes << 4);
        record(w->block, k, bytes, w->actor, w->clock[w->actor], sim_proxy_author(lane));
    }
    return true;
}

void sim_shared_land(sim_warp *w, int lane, uint32_t at, uint32_t size)
{
    for (uint32_t k = at >> 2; k <= (at + size - 1) >> 2; k++) {
        uint32_t bytes = bytes_of(k, at, at + size);
        w->block->state[k] = (uint8_t)((w->block->state[k] & ~(bytes << 4)) | bytes);
        record(w->block, k, bytes, w->actor, w->clock[w->actor], sim_proxy_author(lane));
    }
}

/* Were these words not read at a time that is not yet known? */
SIM_FAST static bool read_before(const uint32_t *plane, uint32_t from, uint32_t to, uint32_t known)
{
    uint32_t latest = 0;
    for (uint32_t k = from; k < to; k++)
        latest = plane[k] > latest ? plane[k] : latest;
    return latest >> 4 <= known;
}

/* may_write() of many words, plane by plane; true is certain. */
static bool may_write_all(const sim_block *b, const sim_warp *w, uint32_t from, uint32_t to)
{
    uint32_t busy = 0;
    uint64_t seen = 0;
    for (uint32_t k = from; k < to; k++)
        busy |= b->state[k] >> 4 | (b->held ? b->held[k] : 0);
    if (busy)
        return false;
    for (uint32_t k = from; k < to; k++) {
        if (b->wrote[k] == seen)
            continue;
        seen = b->wrote[k];
        if ((uint16_t)seen != w->actor && seen >> 32 > w->clock[(uint16_t)seen])
            return false;
    }
    if (b == w->block && !read_before(b->read + (size_t)w->index * b->words, from, to, w->clock[w->actor] - 1))
        return false;
    for (uint32_t x = 0; x < b->warps; x++)
        if (b->first + x != w->actor && !read_before(b->read + (size_t)x * b->words, from, to, w->clock[b->first + x]))
            return false;
    for (uint32_t g = 0; g < b->groups; g++)
        if (!read_before(b->group_read + (size_t)g * b->words, from, to, w->clock[sim_group_actor(b, g)]))
            return false;
    for (uint32_t x = 0; b->far && x < b->cluster->warps; x++)
        if (x != w->actor && !read_before(b->far + (size_t)x * b->words, from, to, w->clock[x]))
            return false;
    return true;
}

bool sim_shared_fly(sim_block *b, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size)
{
    uint32_t from = at >> 2, to = (at + size) >> 2;
    if (!may_write_all(b, w, from, to))
        for (uint32_t k = from; k < to; k++)
            if (!may_write(b, w, i, lane, k, 15, false))
                return false;
    for (uint32_t k = from; k < to; k++)
        b->state[k] |= 15 << 4;
    return true;
}

void sim_shared_arrive(sim_block *b, const sim_mbarrier *m, uint32_t at, uint32_t size)
{
    for (uint32_t k = at >> 2; k < (at + size) >> 2; k++) {
        b->state[k] = 15;
        record(b, k, 15, m->actor, m->time, sim_proxy_author(SIM_BY_PROXY));
    }
}

void sim_clock_release(sim_warp *w, uint32_t *into)
{
    for (uint32_t x = 0, n = w->block->cluster->actors; x < n; x++)
        if (w->clock[x] > into[x])
            into[x] = w->clock[x];
    sim_clock_tick(w);
}
void sim_clock_tick(sim_warp *w)
{
    if (w->clock[w->actor] < SIM_LAST_CLOCK)
        w->clock[w->actor]++;
}
void sim_clock_acquire(sim_warp *w, const uint32_t *from)
{
    for (uint32_t x = 0, n = w->block->cluster->actors; x < n; x++)
        if (from[x] > w->clock[x])
            w->clock[x] = from[x];
}
/* Atomics and volatile accesses: they order everything before with everything after, which may hide a race, never invent one. */
void sim_shared_sync(sim_warp *w, bool release, bool acquire)
{
    if (acquire)
        sim_clock_acquire(w, w->block->cluster->sync);
    if (release)
        sim_clock_release(w, w->block->cluster->sync);
}

/* Passes over the 32 banks: accesses of 4 bytes or less in one group of 32 lanes, of 8 in halves, of 16 in quarters; per group
 * as many passes as some bank has different words. */
void sim_count_banks(sim_block *b, const uint32_t *address, uint32_t m, uint32_t size)
{
    uint32_t unit = size <= 4 ? 2 : size == 8 ? 3 : 4, lanes = 128u >> unit, groups = lanes;
    if (size > 16)
        lanes = 8;
    for (uint32_t first = 0; first < 32; first += lanes) {
        uint32_t part = lanes == 32 ? m : m & ((1u << lanes) - 1) << first;
        if (!part)
            continue;
        uint32_t seen = 0, word[32], worst = 1;
        bool clash = false;
        FOR_LANES(l, part)
        {
            uint32_t u = address[l] >> unit, g = u & (groups - 1);
            if (seen >> g & 1)
                clash |= word[g] != u;
            else
                seen |= 1u << g, word[g] = u;
        }
        if (clash) {
            uint32_t count[32] = { 0 }, list[32], n = 0;
            FOR_LANES(l, part)
            {
                uint32_t u = address[l] >> unit, known = 0;
                for (uint32_t k = 0; k < n && !known; k++)
                    known = list[k] == u;
                if (known)
                    continue;
                list[n++] = u;
                if (++count[u & (groups - 1)] > worst)
                    worst = count[u & (groups - 1)];
            }
        }
        b->counts.c.shared_wavefronts += worst;
        b->counts.c.shared_ideal++;
    }
}
