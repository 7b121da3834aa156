/* table: open addressing over atomic pointers; slots only ever go from empty to a plan, and from a plan to a newer one. */
#include "table.h"
#include <stdlib.h>

#define FIRST_SIZE 64

static fa_slots *slots_make(size_t size, fa_slots *older)
{
    fa_slots *s = calloc(1, sizeof *s + size * sizeof s->slot[0]);
    if (s) {
        s->size = size;
        s->older = older;
    }
    return s;
}

static size_t start(const fa_plan_key *k)
{
    uint64_t h = 0, word[sizeof *k / 8];
    memcpy(word, k, sizeof *k);
    for (size_t i = 0; i < sizeof *k / 8; i++)
        h = (h ^ word[i]) * 0x9E3779B97F4A7C15u;
    return (size_t)(h ^ h >> 32);
}

static _Atomic(const fa_plan *) *place(fa_slots *s, const fa_plan_key *k)
{
    for (size_t i = start(k);; i++) {
        const fa_plan *p = atomic_load_explicit(&s->slot[i & (s->size - 1)], memory_order_acquire);
        if (!p || fa_plan_key_equal(&p->key, k))
            return &s->slot[i & (s->size - 1)];
    }
}

bool fa_table_open(fa_table *t)
{
    fa_slots *s = slots_make(FIRST_SIZE, NULL);
    atomic_init(&t->slots, s);
    t->used = 0;
    pthread_mutex_init(&t->mutex, NULL);
    return s != NULL;
}

void fa_table_close(fa_table *t)
{
    for (fa_slots *s = atomic_load(&t->slots), *older; s; s = older) {
        older = s->older;
        free(s);
    }
    pthread_mutex_destroy(&t->mutex);
}

const fa_plan *fa_table_find(fa_table *t, const fa_plan_key *key)
{
    fa_slots *s = atomic_load_explicit(&t->slots, memory_order_acquire);
    return atomic_load_explicit(place(s, key), memory_order_acquire);
}

/* Twice the size; the old slots stay for readers that hold them, and are freed with the table. */
static bool grow(fa_table *t, fa_slots *s)
{
    fa_slots *bigger = slots_make(2 * s->size, s);
    if (!bigger)
        return false;
    for (size_t i = 0; i < s->size; i++) {
        const fa_plan *p = atomic_load(&s->slot[i]);
        if (p)
            atomic_store(place(bigger, &p->key), p);
    }
    atomic_store_explicit(&t->slots, bigger, memory_order_release);
    return true;
}

/* over: also in the place of a plan without a fallback. What is there then; NULL when memory ran out. */
static const fa_plan *put(fa_table *t, const fa_plan *plan, bool over)
{
    bool ok = true;
    pthread_mutex_lock(&t->mutex);
    fa_slots *s = atomic_load(&t->slots);
    _Atomic(const fa_plan *) *slot = place(s, &plan->key);
    const fa_plan *there = atomic_load(slot);
    if (!there) {
        if (2 * (t->used + 1) > s->size)
            ok = grow(t, s);
        if (ok) {
            t->used++;
            slot = place(atomic_load(&t->slots), &plan->key);
        }
    }
    if (there && !over && (!there->fallback || plan->fallback))
        plan = there;
    else if (ok)
        atomic_store_explicit(slot, plan, memory_order_release);
    pthread_mutex_unlock(&t->mutex);
    return ok ? plan : NULL;
}

bool fa_table_put(fa_table *t, const fa_plan *plan)
{
    return put(t, plan, true) != NULL;
}

const fa_plan *fa_table_add(fa_table *t, const fa_plan *plan)
{
    return put(t, plan, false);
}

void fa_table_each(fa_table *t, void (*f)(void *user, const fa_plan *plan), void *user)
{
    fa_slots *s = atomic_load_explicit(&t->slots, memory_order_acquire);
    for (size_t i = 0; i < s->size; i++) {
        const fa_plan *p = atomic_load_explicit(&s->slot[i], memory_order_acquire);
        if (p)
            f(user, p);
    }
}
