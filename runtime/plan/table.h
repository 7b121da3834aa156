/* table: plans by key. Readers take no lock; writers exclude each other. */
#ifndef FA_RUNTIME_PLAN_TABLE_H
#define FA_RUNTIME_PLAN_TABLE_H
#include "plan.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct fa_slots {
    size_t size;            /* a power of two, at most half of it filled */
    struct fa_slots *older; /* a reader may still hold it */
    _Atomic(const fa_plan *) slot[];
} fa_slots;

typedef struct fa_table {
    _Atomic(fa_slots *) slots;
    size_t used; /* guarded by mutex */
    pthread_mutex_t mutex;
} fa_table;

bool fa_table_open(fa_table *t);
/* Frees the slots, not the plans. */
void fa_table_close(fa_table *t);
const fa_plan *fa_table_find(fa_table *t, const fa_plan_key *key);
/* Adds the plan under its key, or takes the place of the one that is there. False when memory ran out. */
bool fa_table_put(fa_table *t, const fa_plan *plan);
/* Adds the plan where there is none under its key, or, unless it has a fallback itself, only one that has. Returns what is there then, NULL
 * when memory ran out. */
const fa_plan *fa_table_add(fa_table *t, const fa_plan *plan);
/* Calls f with each plan, in no order. What is added meanwhile may be left out. */
void fa_table_each(fa_table *t, void (*f)(void *user, const fa_plan *plan), void *user);
#endif
