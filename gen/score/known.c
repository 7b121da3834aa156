/* known: lists that grow at their heads, by some bits of the identity. */
#include "known.h"
#include "gen/error.h"
#include <stdatomic.h>
#include <stdlib.h>

#define LISTS 64 /* a power of two */

typedef struct known {
    struct known *next;
    fa_program *program;
} known;

static _Atomic(known *) lists[LISTS];

static _Atomic(known *) *list_of(fa_program_id id)
{
    return &lists[id.lo & (LISTS - 1)];
}

static const fa_program *find(const known *first, fa_program_id id)
{
    for (; first; first = first->next)
        if (first->program->id.lo == id.lo && first->program->id.hi == id.hi)
            return first->program;
    return NULL;
}

/* Two texts of one identity. */
static fa_status settle(const fa_program **out, const fa_program *there, fa_program *p)
{
    *out = fa_program_equal(there, p) ? there : NULL;
    fa_program_free(p);
    return *out ? FA_OK : fa_fail(FA_UNSUPPORTED, "score: another program of this process has the same 128 bits of identity");
}

fa_status fa_score_known_add(const fa_program **out, fa_program *p)
{
    _Atomic(known *) *list = list_of(p->id);
    known *head = atomic_load_explicit(list, memory_order_acquire);
    const fa_program *there = find(head, p->id);
    if (there)
        return settle(out, there, p);
    known *fresh = malloc(sizeof *fresh);
    *out = NULL;
    if (!fresh) {
        fa_program_free(p);
        return fa_fail(FA_NOMEM, "score: %zu bytes of host memory", sizeof *fresh);
    }
    *fresh = (known){ head, p };
    while (!atomic_compare_exchange_weak_explicit(list, &fresh->next, fresh, memory_order_acq_rel, memory_order_acquire)) {
        there = find(fresh->next, p->id);
        if (there) {
            free(fresh);
            return settle(out, there, p);
        }
    }
    *out = p;
    return FA_OK;
}

fa_status fa_score_known_read(const fa_program **out, const char *name, const char *text, size_t n)
{
    fa_program *p;
    fa_status st = fa_program_read(&p, name, text, n);
    *out = NULL;
    return st == FA_OK ? fa_score_known_add(out, p) : st;
}

const fa_program *fa_score_known(const fa_problem *p)
{
    fa_program_id id = { (uint32_t)p->score_id0 | (uint64_t)(uint32_t)p->score_id1 << 32,
                         (uint32_t)p->score_id2 | (uint64_t)(uint32_t)p->score_id3 << 32 };
    return id.lo || id.hi ? find(atomic_load_explicit(list_of(id), memory_order_acquire), id) : NULL;
}

void fa_score_known_name(fa_problem *p, const fa_program *program)
{
    fa_program_id id = program ? program->id : (fa_program_id){ 0, 0 };
    p->features = program ? p->features | FA_FEATURE_SCORE : p->features & ~FA_FEATURE_SCORE;
    p->score_id0 = (int32_t)(uint32_t)id.lo;
    p->score_id1 = (int32_t)(uint32_t)(id.lo >> 32);
    p->score_id2 = (int32_t)(uint32_t)id.hi;
    p->score_id3 = (int32_t)(uint32_t)(id.hi >> 32);
    p->score_grads = program ? p->score_grads : 0;
}
