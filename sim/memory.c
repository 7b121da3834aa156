/* memory: sparse reservations. Untouched pages cost nothing: neither data nor marks. */
#include "memory.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ALIGN = 512 };
static const uint64_t guard = 1u << 20; /* bytes between allocations */

uint64_t sim_memory_launch;

void sim_memory_init(sim_memory *m, uint64_t first, uint64_t last, uint64_t limit)
{
    *m = (sim_memory){ .first = first, .last = last, .next = first, .limit = limit };
}

static uint64_t pages(uint64_t n)
{
    return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void *reserve(uint64_t n)
{
    void *p = mmap(NULL, pages(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, pages(n), MADV_NOHUGEPAGE);
    return p;
}

static size_t upper(const sim_memory *m, uint64_t address) /* index of the first allocation that starts above it */
{
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (m->alloc[mid]->base <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static uint64_t place(const sim_memory *m, uint64_t size)
{
    uint64_t need = ((size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1)) + guard;
    if (m->last - m->next >= need)
        return m->next;
    uint64_t at = m->first; /* the space is used up: the first gap that an allocation left */
    for (size_t i = 0; i < m->n; i++) {
        if (m->alloc[i]->base - at >= need)
            return at;
        at = ((m->alloc[i]->base + m->alloc[i]->size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1)) + guard;
    }
    return at < m->last && m->last - at >= need ? at : 0;
}

static uint64_t line_bytes(uint64_t size)
{
    return pages((size / SIM_LINE + 1) * sizeof(uint32_t));
}

static void release(sim_alloc *a)
{
    if (a->data)
        munmap(a->data, pages(a->size));
    if (a->written)
        munmap(a->written, pages(a->size / 8 + 8));
    if (a->line)
        munmap(a->line, line_bytes(a->size));
    free(a);
}

sim_alloc *sim_memory_new(sim_memory *m, uint64_t size, const char *name)
{
    if (!size || size > m->limit - m->used)
        return NULL;
    uint64_t base = place(m, size);
    if (!base)
        return NULL;
    if (m->n == m->cap) {
        size_t cap = m->cap ? m->cap * 2 : 32;
        sim_alloc **grown = realloc(m->alloc, cap * sizeof *grown);
        if (!grown)
            return NULL;
        m->alloc = grown, m->cap = cap;
    }
    sim_alloc *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->base = base, a->size = size, a->name = name;
    a->data = reserve(size);
    a->written = reserve(size / 8 + 8);
    a->line = reserve(line_bytes(size));
    if (!a->data || !a->written || !a->line) {
        release(a);
        return NULL;
    }
    size_t at = upper(m, base);
    memmove(m->alloc + at + 1, m->alloc + at, (m->n - at) * sizeof *m->alloc);
    m->alloc[at] = a;
    m->n++;
    m->used += size;
    uint64_t end = ((base + size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1)) + guard;
    if (end > m->next)
        m->next = end;
    return a;
}

static uint64_t touch_bytes(const sim_alloc *a)
{
    return pages((a->size / 4 + 1) * sizeof *a->touch);
}

bool sim_memory_touch(sim_alloc *a, uint32_t era)
{
    if (a->era == era)
        return true;
    if (a->touch)
        munmap(a->touch, touch_bytes(a));
    if (!(a->touch = reserve(touch_bytes(a))))
        return __atomic_store_n(&a->era, 0, __ATOMIC_RELEASE), false;
    __atomic_store_n(&a->era, era, __ATOMIC_RELEASE);
    return true;
}

int sim_memory_free(sim_memory *m, uint64_t base)
{
    size_t at = upper(m, base);
    if (!at || m->alloc[at - 1]->base != base)
        return -1;
    sim_alloc *a = m->alloc[at - 1];
    if (a->touch)
        munmap(a->touch, touch_bytes(a));
    m->used -= a->size;
    memmove(m->alloc + at - 1, m->alloc + at, (m->n - at) * sizeof *m->alloc);
    m->n--;
    release(a);
    return 0;
}

void sim_memory_close(sim_memory *m)
{
    while (m->n)
        sim_memory_free(m, m->alloc[0]->base);
    free(m->alloc);
    m->alloc = NULL, m->cap = 0;
}

sim_alloc *sim_memory_find(const sim_memory *m, uint64_t address)
{
    size_t at = upper(m, address);
    return at && address - m->alloc[at - 1]->base < m->alloc[at - 1]->size ? m->alloc[at - 1] : NULL;
}

sim_alloc *sim_memory_near(const sim_memory *m, uint64_t address)
{
    size_t at = upper(m, address);
    sim_alloc *below = at ? m->alloc[at - 1] : NULL, *above = at < m->n ? m->alloc[at] : NULL;
    if (!below || !above)
        return below ? below : above;
    return address - (below->base + below->size) <= above->base - address ? below : above;
}

/* Blocks on several host threads may mark neighbouring bits: whole bytes are plain stores, the edges atomic. */
void sim_memory_mark(sim_alloc *a, uint64_t offset, uint64_t n)
{
    if (__atomic_load_n(&a->launch, __ATOMIC_RELAXED) != sim_memory_launch)
        __atomic_store_n(&a->launch, sim_memory_launch, __ATOMIC_RELAXED);
    for (uint64_t k = offset / SIM_LINE; n && k <= (offset + n - 1) / SIM_LINE; k++)
        __atomic_store_n(&a->line[k], (uint32_t)sim_memory_launch, __ATOMIC_RELAXED);
    if (n <= 16 && sim_memory_unwritten(a, offset, n) < 0)
        return;
    while (n && (offset & 7 || n < 8)) {
        uint64_t k = 8 - (offset & 7) < n ? 8 - (offset & 7) : n;
        uint8_t bits = (uint8_t)(((1u << k) - 1) << (offset & 7)), *at = &a->written[offset >> 3];
        if ((__atomic_load_n(at, __ATOMIC_RELAXED) & bits) != bits)
            __atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
        offset += k, n -= k;
    }
    if (n >> 3)
        memset(a->written + (offset >> 3), 0xFF, n >> 3);
    if (n & 7)
        sim_memory_mark(a, offset + (n & ~7ull), n & 7);
}

int64_t sim_memory_unwritten(const sim_alloc *a, uint64_t offset, uint64_t n)
{
    if (n <= 16 && !(offset & (n - 1))) { /* the usual access: within one aligned pair of marks */
        uint16_t bits;
        memcpy(&bits, a->written + (offset >> 4) * 2, 2);
        if ((bits >> (offset & 15) & ((1u << n) - 1)) == (1u << n) - 1)
            return -1;
    }
    for (uint64_t i = offset; i < offset + n;) {
        if (!(i & 7) && offset + n - i >= 8 && a->written[i >> 3] == 0xFF) {
            i += 8;
            continue;
        }
        if (!(a->written[i >> 3] >> (i & 7) & 1))
            return (int64_t)i;
        i++;
    }
    return -1;
}

void sim_memory_forget(sim_alloc *a, uint64_t offset, uint64_t n)
{
    for (uint64_t end = offset + n; offset < end;) {
        uint64_t k = 8 - (offset & 7) < end - offset ? 8 - (offset & 7) : end - offset;
        if (k == 8) {
            uint64_t whole = (end - offset) >> 3;
            memset(a->written + (offset >> 3), 0, whole);
            offset += whole * 8;
            continue;
        }
        __atomic_fetch_and(&a->written[offset >> 3], (uint8_t) ~(((1u << k) - 1) << (offset & 7)), __ATOMIC_RELAXED);
        offset += k;
    }
}

void sim_memory_copy_marks(sim_alloc *to, uint64_t to_at, const sim_alloc *from, uint64_t from_at, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (from->written[(from_at + i) >> 3] >> ((from_at + i) & 7) & 1)
            to->written[(to_at + i) >> 3] |= (uint8_t)(1u << ((to_at + i) & 7));
        else
            to->written[(to_at + i) >> 3] &= (uint8_t) ~(1u << ((to_at + i) & 7));
    }
}
