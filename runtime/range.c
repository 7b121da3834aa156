/* range: fa_prepare_range(): every shape bucket that a box of shapes touches, found by halving each side, whatever its length. */
#include "check.h"
#include "context.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "prepare.h"
#include <stdlib.h>

#define RANGE_MOST 4096 /* buckets in a call */
#define SIDE_MOST 32    /* of one side: steps of log2 of an int32_t */

/* The fields that may differ between the two problems. */
static const int sides[] = { FA_FIELD_b, FA_FIELD_sq, FA_FIELD_sk, FA_FIELD_window };
enum { SIDES = sizeof sides / sizeof *sides };

typedef struct side {
    const fa_problem_field *field;
    int32_t value[SIDE_MOST]; /* one of each bucket, ascending */
    int32_t n;
} side;

static fa_status check_fields(const fa_problem *lo, const fa_problem *hi)
{
    for (int i = 0; i < FA_PROBLEM_FIELD_COUNT; i++) {
        const fa_problem_field *f = &fa_problem_fields[i];
        int32_t a = fa_problem_get(lo, f), b = fa_problem_get(hi, f);
        char has[96], wants[96];
        bool ranges = false;
        for (int k = 0; k < SIDES; k++)
            ranges = ranges || sides[k] == i;
        if (!ranges && a != b)
            return fa_fail(FA_INVALID, "hi: %s is %s; accepted: %s, as in lo", f->member, fa_problem_field_text(has, sizeof has, f, b),
                           fa_problem_field_text(wants, sizeof wants, f, a));
        if (ranges && !a != !b)
            return fa_fail(FA_INVALID, "hi: %s is %d, and %d in lo; accepted: 0 (unset) in both, or in none", f->member, b, a);
        if (ranges && b < a)
            return fa_fail(FA_INVALID, "hi: %s is %d; accepted: at least %d, as in lo", f->member, b, a);
    }
    return FA_OK;
}

/* The last value up to `most` whose bucket is that of `first`. Buckets never come back as a field grows. */
static int32_t last_alike(const fa_problem *lo, const fa_problem_field *f, int32_t first, int32_t most)
{
    fa_problem p = *lo;
    fa_problem_set(&p, f, first);
    uint32_t bucket = fa_problem_bucket(&p);
    while (first < most) {
        int32_t middle = most - (most - first) / 2;
        fa_problem_set(&p, f, middle);
        if (fa_problem_bucket(&p) == bucket)
            first = middle;
        else
            most = middle - 1;
    }
    return first;
}

/* The usual length of those from first to last: a power of two, else the middle. It decides which winner is nearest. */
static int32_t usual(int32_t first, int32_t last)
{
    int32_t power = 1;
    while (power <= last / 2)
        power *= 2;
    return power >= first ? power : first + (last - first) / 2;
}

static void cut(side *s, const fa_problem *lo, const fa_problem *hi, const fa_problem_field *f)
{
    int32_t from = fa_problem_get(lo, f), to = fa_problem_get(hi, f);
    *s = (side){ .field = f };
    if (!to) { /* unset */
        s->n = 1;
        return;
    }
    for (int32_t last; s->n < SIDE_MOST; from = last + 1) {
        last = last_alike(lo, f, from, to);
        s->value[s->n++] = usual(from, last);
        if (last == to)
            return;
    }
}

/* The kernels that were counted, by their key: one text may launch in several ways. */
typedef struct tally {
    fa_key *key;
    int32_t n;
} tally;

static void count(tally *t, fa_key k)
{
    for (int32_t i = 0; i < t->n; i++)
        if (t->key[i].lo == k.lo && t->key[i].hi == k.hi)
            return;
    t->key[t->n++] = k;
}

/* The i-th problem of the box. */
static fa_problem problem_at(const fa_problem *lo, const side s[SIDES], int32_t i)
{
    fa_problem p = *lo;
    for (int k = 0; k < SIDES; k++) {
        fa_problem_set(&p, s[k].field, s[k].value[i % s[k].n]);
        i /= s[k].n;
    }
    return p;
}

static fa_status prepare_all(fa_context *ctx, const fa_problem *lo, const side s[SIDES], int32_t total, tally *t)
{
    for (int32_t i = 0; i < total; i++) {
        fa_problem p = problem_at(lo, s, i);
        const fa_plan *plan;
        char line[256];
        fa_status st = fa_prepare_plan(ctx, &p, &plan);
        if (st != FA_OK) {
            fa_problem_print(line, sizeof line, &p);
            return fa_wrap(st, "range: %s, after %d of %d shapes", line, i, total);
        }
        count(t, plan->kernel->key);
    }
    return FA_OK;
}

static fa_status prepare_range(fa_context *ctx, const fa_problem *lo, const fa_problem *hi, int32_t *kernels)
{
    side s[SIDES];
    int64_t total = 1;
    fa_status st = check_fields(lo, hi);
    if (st != FA_OK)
        return fa_wrap(st, "range");
    for (int k = 0; k < SIDES; k++) {
        cut(&s[k], lo, hi, &fa_problem_fields[sides[k]]);
        total *= s[k].n;
    }
    if (total > RANGE_MOST)
        return fa_fail(FA_INVALID, "range: %lld shape buckets: %d of b, %d of sq, %d of sk, %d of window; accepted: at most %d in a call",
                       (long long)total, s[0].n, s[1].n, s[2].n, s[3].n, RANGE_MOST);
    tally t = { .key = calloc((size_t)total, sizeof *t.key) };
    if (!t.key)
        return fa_fail(FA_NOMEM, "range: %zu bytes of host memory", (size_t)total * sizeof *t.key);
    st = prepare_all(ctx, lo, s, (int32_t)total, &t);
    if (kernels)
        *kernels = t.n;
    free(t.key);
    return st;
}

fa_status fa_prepare_range(fa_context *ctx, const fa_problem *lo, const fa_problem *hi, int32_t *kernels)
{
    fa_problem a, b;
    fa_message before;
    if (kernels)
        *kernels = 0;
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK)
        st = fa_wrap(fa_check_problem(&a, lo), "lo");
    if (st == FA_OK)
        st = fa_wrap(fa_check_problem(&b, hi), "hi");
    if (st != FA_OK)
        return st;
    fa_message_keep(&before);
    return fa_message_settle(&before, prepare_range(ctx, &a, &b, kernels));
}
