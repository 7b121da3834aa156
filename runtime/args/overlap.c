/* overlap: is a number a sum of so many steps of each stride, and of less than a run?
 *
 * A byte of a lies at a.lo + sum(|stride| * index) + x, one of b likewise. Counted from the other end, b's indices are added, too: the two
 * share a byte where b.hi - 1 - a.lo is a sum of all their steps and of 0 to run - 1 bytes. */
#include "overlap.h"
#include <stdlib.h>

#define STEPS_MAX 8 /* dimensions of two spans */
#define WORK 4096   /* sums looked at */

typedef struct step {
    uint64_t by, most; /* bytes; 0 to most times */
} step;

/* All that is added up, smallest steps first. */
typedef struct sum {
    step step[STEPS_MAX];
    uint64_t reach[STEPS_MAX + 1]; /* the most that the first so many add up to, with the run */
    uint64_t common[STEPS_MAX];    /* what the first steps, this one included, are multiples of */
    uint64_t run;                  /* the most that bytes of a row add */
    int n, work;
} sum;

static void add(sum *s, uint64_t by, uint64_t most)
{
    int at = s->n++;
    for (; at > 0 && s->step[at - 1].by > by; at--)
        s->step[at] = s->step[at - 1];
    s->step[at] = (step){ by, most };
}

static void add_span(sum *s, const fa_span *of)
{
    for (int i = 0; i < 4; i++)
        if (of->size[i] > 1 && of->stride[i])
            add(s, (uint64_t)llabs(of->stride[i]) * (unsigned)of->bytes, (uint64_t)of->size[i] - 1);
    s->run += (uint64_t)of->run - 1;
}

/* A step that what is below reaches without a gap is part of it: packed dimensions are one, and strides that both have. */
static void join(sum *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        step now = s->step[i], *last = n ? &s->step[n - 1] : NULL;
        if (!n && now.by <= s->run + 1)
            s->run += now.by * now.most;
        else if (last && now.by % last->by == 0 && now.by / last->by <= last->most + 1)
            last->most += now.by / last->by * now.most;
        else
            s->step[n++] = now;
    }
    s->n = n;
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void count(sum *s)
{
    s->reach[0] = s->run;
    for (int i = 0; i < s->n; i++) {
        s->reach[i + 1] = s->reach[i] + s->step[i].by * s->step[i].most;
        s->common[i] = divisor(s->step[i].by, i ? s->common[i - 1] : 0);
    }
}

/* Whether the first n steps and the run add up to it. */
static bool adds_up(sum *s, int n, uint64_t to)
{
    if (n == 0 || to <= s->run)
        return to <= s->run;
    const step *top = &s->step[n - 1];
    uint64_t below = s->reach[n - 1], most = to / top->by, least = to > below ? (to - below + top->by - 1) / top->by : 0;
    if (to > s->reach[n] || to % s->common[n - 1] > s->run)
        return false;
    for (uint64_t times = most < top->most ? most : top->most; times + 1 > least; times--) /* the last may be 0 */
        if (--s->work < 0 || adds_up(s, n - 1, to - times * top->by))
            return true;
    return false;
}

bool fa_overlap(const fa_span *a, const fa_span *b)
{
    sum s = { .work = WORK };
    uint64_t all;
    if (__builtin_add_overflow(a->hi - a->lo, b->hi - b->lo, &all))
        return true;
    add_span(&s, a);
    add_span(&s, b);
    join(&s);
    count(&s);
    return adds_up(&s, s.n, b->hi - 1 - a->lo);
}
