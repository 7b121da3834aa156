/* far: all that depends on key - query must do so by one integer, and its negative. Beyond some value of that integer, which
 * intervals give, each lookup is of one element and each number is a single one. */
#include "far.h"
#include "range.h"
#include "reach.h"
#include "sum.h"

enum { FARTHEST = 1 << 24 }; /* nothing is looked for beyond */

/* What is known while a node is looked through. */
typedef struct search {
    const fa_score_ir *ir;
    fa_score_sum base; /* of its leaves; n: 0 as long as there is none */
    int node;
    uint8_t sign[FA_SCORE_ROOM]; /* of nodes that are the base plus a number: 1, its negative plus one: 2 */
    bool looked[FA_SCORE_ROOM], fits;
} search;

static int64_t times_of(const fa_score_sum *s, int node)
{
    for (int k = 0; k < s->n; k++)
        if (s->leaf[k] == node)
            return s->times[k];
    return 0;
}

/* Whether x is sign * y but for a number. */
static bool is_multiple(const fa_score_sum *x, const fa_score_sum *y, int64_t sign)
{
    for (int k = 0; k < x->n; k++)
        if (x->times[k] != sign * times_of(y, x->leaf[k]))
            return false;
    for (int k = 0; k < y->n; k++)
        if (sign * y->times[k] != times_of(x, y->leaf[k]))
            return false;
    return true;
}

/* What key and query are counted by in a sum: 1, -1; 0: otherwise, or not by their difference. */
static int64_t distance_of(const search *s, const fa_score_sum *sum)
{
    int64_t key = 0, query = 0;
    for (int k = 0; k < sum->n; k++) {
        const fa_score_node *leaf = &s->ir->node[sum->leaf[k]];
        if (leaf->op == FA_SCORE_J)
            key = sum->times[k];
        else if (leaf->op == FA_SCORE_I)
            query = sum->times[k];
        else if (sum->times[k] && fa_score_depends_on(s->ir, sum->leaf[k], FA_SCORE_OF_I | FA_SCORE_OF_J))
            return 0;
    }
    return key == -query && (key == 1 || key == -1) ? key : 0;
}

static void look(search *s, int node)
{
    const fa_score_node *a = &s->ir->node[node];
    if (s->looked[node] || !fa_score_depends_on(s->ir, node, FA_SCORE_OF_I | FA_SCORE_OF_J))
        return;
    s->looked[node] = true;
    if (a->type == FA_SCORE_I32) {
        fa_score_sum sum = { .n = 0 };
        fa_score_sum_add(&sum, s->ir, node, 1, NULL);
        int64_t sign = sum.full ? 0 : distance_of(s, &sum);
        if (sign && !s->base.n)
            s->base = sum, s->node = node;
        if (sign && is_multiple(&sum, &s->base, 1))
            s->sign[node] = 1;
        else if (sign && is_multiple(&sum, &s->base, -1))
            s->sign[node] = 2;
        if (s->sign[node])
            return;
    }
    s->fits = s->fits && a->n > 0;
    for (int k = 0; k < a->n; k++)
        look(s, a->arg[k]);
}

/* Ranges of what the node is made of, where the base is from lo to hi. */
static void ranges_of(const search *s, double lo, double hi, int node, fa_score_range *of)
{
    fa_score_box box = fa_score_box_widest(s->ir);
    box.given = s->sign;
    for (int i = 0; i <= node; i++) {
        of[i] = fa_score_range_of(s->ir, i, of, &box);
        if (s->sign[i]) {
            fa_score_sum sum = { .n = 0 };
            fa_score_sum_add(&sum, s->ir, i, 1, NULL);
            double more = s->sign[i] == 1 ? (double)(sum.more - s->base.more) : (double)(sum.more + s->base.more);
            of[i] = s->sign[i] == 1 ? (fa_score_range){ lo + more, hi + more, false } : (fa_score_range){ more - hi, more - lo, false };
        }
    }
}

/* Whether the node has one value, whatever the elements of arrays are. */
static bool is_one(const fa_score_ir *ir, const fa_score_range *of, int node, int *steps)
{
    const fa_score_node *a = &ir->node[node];
    if (!fa_score_depends_on(ir, node, FA_SCORE_OF_I | FA_SCORE_OF_J) || (of[node].lo == of[node].hi && !of[node].nan))
        return true;
    if (!a->n || --*steps < 0)
        return false;
    for (int k = 0; k < a->n; k++)
        if (!is_one(ir, of, a->arg[k], steps))
            return false;
    return true;
}

static bool is_far(const search *s, fa_score_side side, double at, int node)
{
    fa_score_range of[FA_SCORE_ROOM];
    int steps = FA_SCORE_ROOM;
    ranges_of(s, side == FA_SCORE_BELOW ? INT32_MIN : at, side == FA_SCORE_BELOW ? at : INT32_MAX, node, of);
    return is_one(s->ir, of, node, &steps);
}

fa_score_far fa_score_far_of(const fa_score_ir *ir, int node)
{
    search s = { .ir = ir, .fits = true };
    fa_score_far far = { .base = -1 };
    look(&s, node);
    if (!s.fits || !s.base.n)
        return far;
    far.base = s.node;
    /* The base as the sum has it may be query - key: then sides are those of its negative. */
    far.negative = distance_of(&s, &s.base) < 0;
    for (int side = 0; side < FA_SCORE_SIDES; side++) {
        fa_score_side of_base = far.negative ? (fa_score_side)(1 - side) : (fa_score_side)side;
        int64_t out = of_base == FA_SCORE_BELOW ? -FARTHEST : FARTHEST, in = -out; /* from where it is far to where it is not */
        far.has[side] = is_far(&s, of_base, (double)out, node);
        while (far.has[side] && (in - out > 1 || out - in > 1)) {
            int64_t middle = out + (in - out) / 2;
            if (is_far(&s, of_base, (double)middle, node))
                out = middle;
            else
                in = middle;
        }
        far.at[side] = (int32_t)(far.negative ? -out : out);
    }
    return far;
}
