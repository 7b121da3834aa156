/* plan: verdicts on the nodes of a graph. */
#include "plan.h"
#include "report.h"
#include "ride.h"
#include "rule.h"
#include <stdlib.h>
#include <string.h>

#define ITEMS 16384 /* claimed nodes of a graph; those past them are ggml's */
#define KEPT 8

struct fa_ggml_plans {
    uint64_t clock;
    fa_ggml_plan plan[KEPT], once; /* once: of a graph without a number */
};

/* Whether ggml computes a node faster: that may depend on what its mask is. */
typedef enum verdict { OURS, BY_MASK, THEIRS } verdict;
static verdict judge(fa_ggml_ridden *b, const fa_ggml_tensor *node, fa_ggml_claim *c)
{
    if (!fa_ggml_reads(b->on, node, c))
        return THEIRS;
    const bool many = c->has_mask && c->sq >= FA_GGML_LOOK && !(c->max_bias > 0);
    const fa_ggml_form form = !c->has_mask      ? FA_GGML_NO_MASK
                              : c->max_bias > 0 ? FA_GGML_DISTANCES
                              : many            ? FA_GGML_NO_BAND
                                                : FA_GGML_FEW_ROWS;
    const fa_ggml_way way = { fa_ggml_unpacks(fa_ggml_ride.settings.memory, c, (c->hkv + 1) / 2), fa_ggml_ride.settings.tier < 3 };
    const fa_ggml_rule *rule = fa_ggml_ride.settings.all || fa_ggml_staged() ? NULL : fa_ggml_slower(c, form, way);
    const bool slower = rule && b->on->supports_op(b->on->device, node),
               by_mask = slower && many && !fa_ggml_slower(c, FA_GGML_A_BAND, way);
    /* the library is asked last: about a class of shapes it has not seen that takes as long as some tokens */
    if (!slower || by_mask)
        return !fa_ggml_takes(b->on, node, c) ? THEIRS : by_mask ? BY_MASK : OURS;
    const uint32_t bit = 1u << (rule - fa_ggml_rules);
    if (!(b->on->logged & bit)) /* a line takes longer than all before it */
        fa_ggml_tell("%s: left to ggml, which is faster: %s", b->on->name, rule->because);
    b->on->logged |= bit;
    return THEIRS;
}

/* ggml's routed products of one token with blocks run without the host; others may wait for the stream. */
static bool routed(const fa_ggml_tensor *node)
{
    const fa_ggml_tensor *w = node->src[0];
    return node->op == fa_ggml_ride.ggml.routed &&
           (node->ne[2] > 1 || !w || w->type < 0 || w->type >= FA_GGML_TYPES || fa_ggml_ride.ggml.type[w->type].block < 2);
}

static bool find(fa_ggml_ridden *b, const fa_ggml_graph *graph, fa_ggml_plan *p)
{
    int32_t candidates = 0;
    bool flags = false;
    p->nodes = graph->n_nodes;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        candidates += graph->nodes[i]->op == fa_ggml_ride.ggml.attention;
        flags = flags || (graph->nodes[i]->flags & FA_GGML_FLAG_COMPUTE);
        p->waits = p->waits || routed(graph->nodes[i]);
    }
    candidates = candidates > ITEMS ? ITEMS : candidates;
    if (!candidates)
        return true;
    p->items = malloc((size_t)candidates * sizeof *p->items);
    for (int32_t i = 0; p->items && i < graph->n_nodes && p->count < candidates; i++) {
        const fa_ggml_tensor *node = graph->nodes[i];
        if (node->op != fa_ggml_ride.ggml.attention || (flags && !(node->flags & FA_GGML_FLAG_COMPUTE)))
            continue;
        fa_ggml_item *next = &p->items[p->count];
        const verdict is = judge(b, node, &next->claim);
        next->node = i;
        next->by_mask = is == BY_MASK;
        p->waits = p->waits || (is != THEIRS && next->claim.sq >= FA_GGML_LOOK);
        p->count += is != THEIRS; /* where all are theirs the graph is handed on whole */
    }
    return p->items != NULL;
}

static void forget(fa_ggml_plan *p)
{
    free(p->items);
    *p = (fa_ggml_plan){ 0 };
}

const fa_ggml_plan *fa_ggml_plan_of(fa_ggml_ridden *b, const fa_ggml_graph *graph)
{
    if (!b->plans && !(b->plans = calloc(1, sizeof *b->plans)))
        return NULL;
    fa_ggml_plans *all = b->plans;
    fa_ggml_plan *p = &all->once;
    for (int i = 0; graph->uid && i < KEPT; i++) {
        fa_ggml_plan *at = &all->plan[i];
        if (at->number == graph->uid && at->nodes == graph->n_nodes) {
            at->used = ++all->clock;
            return at;
        }
        p = i == 0 || at->used < p->used ? at : p;
    }
    forget(p);
    if (!find(b, graph, p)) {
        forget(p);
        return NULL;
    }
    FA_GGML_COUNT(plans);
    p->number = graph->uid;
    p->used = ++all->clock;
    return p;
}

void fa_ggml_plans_close(fa_ggml_plans *p)
{
    for (int i = 0; p && i < KEPT; i++)
        free(p->plan[i].items);
    if (p)
        free(p->once.items);
    free(p);
}
