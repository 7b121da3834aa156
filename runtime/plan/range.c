/* range: fa_prepare_range(): every shape bucket that a box of shapes touches, found by halving each side, whatever its length. What tells
 * buckets apart looks at one field alone, but for few rows, and for the kind of a batch, or of a dense forward problem, by which sq has
 * other steps: they compare sq with sk. As many rows as keys may have finer steps than either side. */
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "prepare.h"
#include "runtime/args/check.h"
#include "runtime/context/context.h"
#include <stdlib.h>

#define RANGE_MOST 16384  /* buckets in a call */
#define SIDE_MOST 200     /* of one side: steps of a length or of heads, and tiles of few rows; sk has those of both */
#define DIAGONAL_MOST 128 /* of lengths that are equal */
#define RELATIONS 3       /* of sq and sk: less, equal, more */

/* The fields that may differ between the two problems. */
static const int sides[] = { FA_FIELD_b, FA_FIELD_sq, FA_FIELD_sk, FA_FIELD_window };
enum { SIDES = sizeof sides / sizeof *sides };

typedef struct side {
    const fa_problem_field *field;
    int32_t first[SIDE_MOST], last[SIDE_MOST]; /* values of each bucket, ascending */
    int32_t n;
} side;

static fa_status check_fields(const fa_problem *lo, const fa_problem *hi)
{
    for (int i = 0; i < FA_PROBLEM_FIELD_COUNT; i++) {
        const fa_problem_field *f = &fa_problem_fields[i];
        int32_t a = fa_problem_get(lo, f), b = fa_problem_get(hi, f);
        char has[FA_FEATURES_TEXT], wants[FA_FEATURES_TEXT];
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

/* A corner of the box with the fields beside f out of the way: the kind of a batch then depends on b alone. Dense sk stays beside the
 * corner's sq, for few rows have steps of their own. */
static fa_problem alone(const fa_problem *corner, const fa_problem_field *f)
{
    fa_problem p = *corner;
    bool lengths = p.sq && p.sk;
    if (lengths && f != &fa_problem_fields[FA_FIELD_sk])
        p.sk = FA_MAX_LENGTH;
    if (lengths && f == &fa_problem_fields[FA_FIELD_sk] && p.features & FA_FEATURE_LENGTHS)
        p.sq = 1;
    if (lengths && f == &fa_problem_fields[FA_FIELD_b])
        p.sq = FA_MAX_LENGTH - 1;
    return p;
}

static void cut(side *s, const fa_problem *lo, const fa_problem *hi, const fa_problem_field *f)
{
    fa_problem corner[4] = { alone(lo, f), alone(hi, f) };
    int corners = 2;
    if (f == &fa_problem_fields[FA_FIELD_sq] && lo->sk && !(lo->features & FA_FEATURE_LENGTHS)) /* beside fewer keys, too */
        for (; corners < 4; corners++) {
            corner[corners] = corner[corners - 2];
            corner[corners].sk = 1;
        }
    int32_t from = fa_problem_get(lo, f), to = fa_problem_get(hi, f);
    *s = (side){ .field = f };
    if (!to) { /* unset */
        s->n = 1;
        return;
    }
    for (int32_t last; s->n < SIDE_MOST; from = last + 1) {
        last = to;
        for (int i = 0; i < corners; i++)
            last = last_alike(&corner[i], f, from, last);
        s->first[s->n] = from;
        s->last[s->n++] = last;
        if (last == to)
            return;
    }
}

/* The kernels that were counted, by their key: one text may launch in several ways. */
typedef struct counted {
    fa_key *key;
    int32_t n;
} counted;

static void count(counted *t, fa_key k)
{
    for (int32_t i = 0; i < t->n; i++)
        if (t->key[i].lo == k.lo && t->key[i].hi == k.hi)
            return;
    t->key[t->n++] = k;
}

/* The last length up to `most` whose bucket is p's, of as many rows as keys. */
static int32_t last_equal(const fa_problem *p, int32_t most)
{
    uint32_t bucket = fa_problem_bucket(p);
    int32_t first = p->sq;
    while (first < most) {
        fa_problem at = *p;
        int32_t middle = most - (most - first) / 2;
        at.sq = at.sk = middle;
        if (fa_problem_bucket(&at) == bucket)
            first = middle;
        else
            most = middle - 1;
    }
    return first;
}

/* sq and sk of the i-th cell, in that relation; false: none of its shapes has them so. *most: of equal ones the last. */
static bool relate(fa_problem *p, const side *q, int32_t i, const side *k, int32_t j, int relation, int32_t *most)
{
    int32_t low = q->first[i] > k->first[j] ? q->first[i] : k->first[j], high = q->last[i] < k->last[j] ? q->last[i] : k->last[j];
    const int32_t of[RELATIONS][2] = { { q->first[i], k->last[j] }, { low, low }, { q->last[i], k->first[j] } };
    p->sq = of[relation][0];
    p->sk = of[relation][1];
    *most = relation == 1 ? high : 0;
    return relation == 0 ? p->sq < p->sk : relation == 1 ? low <= high : p->sq > p->sk;
}

/* The i-th cell of the box. Sets p to one of its shapes in that relation; false: it has none. Dense gradients have no relations. */
static bool problem_at(fa_problem *p, const fa_problem *lo, const side s[SIDES], int32_t i, int relation, int32_t *most)
{
    int32_t at[SIDES];
    *p = *lo;
    *most = 0;
    for (int k = 0; k < SIDES; k++) {
        at[k] = i % s[k].n;
        fa_problem_set(p, s[k].field, s[k].first[at[k]]);
        i /= s[k].n;
    }
    if (!p->sq || !p->sk || (p->op != FA_FORWARD && !(p->features & FA_FEATURE_LENGTHS)))
        return relation == 0;
    return relate(p, &s[1], at[1], &s[2], at[2], relation, most);
}

static fa_status prepare_one(fa_context *ctx, const fa_problem *p, counted *t)
{
    const fa_plan *plan, *without;
    fa_status st = fa_prepare_both(ctx, p, &plan, &without);
    if (st != FA_OK)
        return st;
    count(t, plan->kernel->key);
    if (without)
        count(t, without->kernel->key);
    return FA_OK;
}

static fa_status prepare_all(fa_context *ctx, const fa_problem *lo, const side s[SIDES], int32_t total, counted *t)
{
    for (int32_t i = 0; i < RELATIONS * total; i++) {
        fa_problem p;
        int32_t most;
        bool more = problem_at(&p, lo, s, i / RELATIONS, i % RELATIONS, &most);
        while (more) {
            fa_status st = prepare_one(ctx, &p, t);
            if (st != FA_OK) {
                char line[FA_PROBLEM_TEXT];
                p = fa_problem_point(&p);
                fa_problem_print(line, sizeof line, &p);
                return fa_wrap(st, "range: %s, after %d of %d shapes", line, i / RELATIONS, total);
            }
            int32_t last = most ? last_equal(&p, most) : 0;
            more = last < most;
            p.sq = more ? last + 1 : p.sq;
            p.sk = more ? last + 1 : p.sk;
        }
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
    size_t equal = DIAGONAL_MOST * (size_t)s[0].n * (size_t)s[3].n;
    counted t = { .key = calloc(2 * (RELATIONS * (size_t)total + equal), sizeof *t.key) };
    if (!t.key)
        return fa_fail(FA_NOMEM, "range: %zu bytes of host memory", 2 * RELATIONS * (size_t)total * sizeof *t.key);
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
