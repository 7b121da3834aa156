/* walk: the way of a graph. */
#include "walk.h"
#include "gen/error.h"
#include "report.h"
#include "runtime/runtime.h"
#include "stage.h"
#include <stdio.h>
#include <string.h>

/* Nodes of a graph, as a graph: for theirs. A ggml whose graphs have more fields finds zeros there. Its number is that of the whole: the
 * parts are the same ones each time, until a failure; then they may be others than those that were kept under it. */
static int32_t compute_part(fa_ggml_ridden *b, const fa_ggml_graph *graph, int32_t first, int32_t past)
{
    struct {
        fa_ggml_graph graph;
        char more[128];
    } p = { .graph = *graph };
    p.graph.n_nodes = past - first;
    p.graph.nodes = graph->nodes + first;
    if (p.graph.n_nodes < graph->n_nodes) {
        p.graph.size = p.graph.n_leafs = 0;
        p.graph.grads = p.graph.grad_accs = p.graph.leafs = NULL;
    }
    if (b->on->failed)
        p.graph.uid = 0;
    FA_GGML_COUNT(parts);
    return b->compute(b->backend, &p.graph);
}

static int32_t theirs(fa_ggml_ridden *b, const fa_ggml_graph *graph, int32_t first, int32_t past)
{
    bool works = false;
    for (int32_t i = first; i < past && !works; i++) {
        int32_t op = graph->nodes[i]->op;
        works = op < 0 || op >= FA_GGML_OPS || !fa_ggml_ride.ggml.idle[op];
    }
    if (!works)
        return FA_GGML_SUCCESS;
    return compute_part(b, graph, first, past);
}

/* ggml-cuda's stream of the backend, or NULL. */
static CUstream cuda_stream(const fa_ggml_ridden *b)
{
    return fa_ggml_ride.settings.tier > 1 ? fa_ggml_cuda_stream(b->backend, b->on->name, b->on->number) : NULL;
}

/* Tier 1 needs entries that tier 2 does not. */
static fa_status make_events(fa_ggml_ridden *b)
{
    const cu_driver *d = fa_context_driver(fa_ggml_engine_context(b->on->engine));
    fa_ggml_device *device = b->on->device;
    if (b->own)
        return FA_OK;
    if (!device->i.event_new || !device->i.event_free || !b->backend->i.event_record || !b->backend->i.event_wait)
        return fa_fail(FA_UNSUPPORTED, "the backend has no events, and its stream is not known");
    b->before = device->i.event_new(device);
    b->after = device->i.event_new(device);
    if (!b->before || !b->after || !b->before->context || !b->after->context || b->before->device != device)
        return fa_fail(FA_UNSUPPORTED, "the backend's events are not as known");
    return fa_driver_check(d, d->cuStreamCreate(&b->own, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

/* Our work comes after what ggml has put on its stream, and before what it puts there later: *at is its stream, or one of ours. */
static fa_status fork_stream(fa_ggml_ridden *b, CUstream stream, CUstream *at)
{
    const cu_driver *d = fa_context_driver(fa_ggml_engine_context(b->on->engine));
    fa_status st = FA_OK;
    *at = stream;
    if (stream || fa_ggml_staged())
        return FA_OK;
    if ((st = make_events(b)) != FA_OK)
        return st;
    *at = b->own;
    b->backend->i.event_record(b->backend, b->before);
    return fa_driver_check(d, d->cuStreamWaitEvent(*at, b->before->context, 0), "cuStreamWaitEvent");
}
static fa_status join_stream(fa_ggml_ridden *b, CUstream stream, CUstream at)
{
    const cu_driver *d = fa_context_driver(fa_ggml_engine_context(b->on->engine));
    if (stream || fa_ggml_staged() || !at)
        return FA_OK;
    fa_status st = fa_driver_check(d, d->cuEventRecord(b->after->context, at), "cuEventRecord");
    b->backend->i.event_wait(b->backend, b->after);
    return st;
}

/* Looks at the mask that decides. */
static bool slower(fa_ggml_ridden *b, const fa_ggml_graph *graph, const fa_ggml_item *i, CUstream stream)
{
    bool known = false, band = false;
    CUstream at;
    if (!i->by_mask)
        return false;
    fa_status st = fork_stream(b, stream, &at);
    if (st == FA_OK)
        st = fa_ggml_stream_look(b->stream, &i->claim, graph->nodes[i->node]->src[3], at, &known, &band);
    if (join_stream(b, stream, at) != FA_OK || st != FA_OK)
        return false; /* the launch tells what is wrong */
    return !known || !band;
}

/* Items first to past - 1, whose nodes follow each other. *refused: one asks for what there is not, such as more device memory; nothing
 * is broken. */
static fa_status ours(fa_ggml_ridden *b, const fa_ggml_graph *graph, const fa_ggml_item *items, int32_t first, int32_t past,
                      CUstream stream, bool captured, bool *refused)
{
    CUstream at;
    fa_status st = fork_stream(b, stream, &at);
    const bool forked = st == FA_OK;
    for (int32_t i = first; i < past && st == FA_OK; i++)
        st = fa_ggml_staged()
                 ? fa_ggml_stage_run(b->stream, b->on->engine, &fa_ggml_ride.ggml, graph->nodes[items[i].node], &items[i].claim)
                 : fa_ggml_stream_run(b->stream, &items[i].claim, graph->nodes[items[i].node]->src[3], at, captured);
    fa_status joined = join_stream(b, stream, at); /* after a failure, too: what did run is to be over when ggml goes on */
    *refused = forked && fa_ggml_refused(st) && joined == FA_OK;
    return st == FA_OK ? joined : st;
}

/* All of a graph, in its order. */
static int32_t walk(fa_ggml_ridden *b, const fa_ggml_graph *graph, const fa_ggml_plan *plan, bool captured)
{
    const fa_ggml_item *items = plan->items;
    const int32_t count = plan->count;
    int32_t at = 0;
    if (count)
        fa_ggml_stream_begin(b->stream);
    for (int32_t i = 0, n; i < count; i += n) {
        if (items[i].node > at) {
            int32_t st = theirs(b, graph, at, items[i].node);
            if (st != FA_GGML_SUCCESS)
                return st;
        }
        CUstream stream = fa_ggml_staged() ? NULL : cuda_stream(b);
        n = 1;
        if (!captured && !b->on->failed &&
            slower(b, graph, &items[i], stream)) { /* a part of its own, so that all parts stay as they are */
            int32_t st = theirs(b, graph, items[i].node, items[i].node + 1);
            if (st != FA_GGML_SUCCESS)
                return st;
            at = items[i].node + 1;
            continue;
        }
        while (i + n < count && items[i + n].node == items[i].node + n && items[i + n].claim.sq < FA_GGML_LOOK)
            n++;
        __atomic_store_n(&fa_ggml_ride.counts.tier, fa_ggml_staged() ? 0 : stream ? captured ? 3 : 2 : 1, __ATOMIC_RELAXED);
        bool refused = false;
        fa_status st = b->on->failed ? FA_DEVICE : ours(b, graph, items, i, i + n, stream, captured, &refused);
        if (refused) {
            fa_ggml_tell("%s: left to ggml: %s", b->on->name, fa_last_error());
        } else if (st != FA_OK && !b->on->failed) {
            b->on->failed = true;
            FA_GGML_COUNT(failures);
            fa_ggml_tell("%s is ggml's alone from here on: %s: %s", b->on->name, fa_status_name(st), fa_last_error());
        }
        if (st != FA_OK)
            for (int32_t k = i; k < i + n; k++) {
                fa_ggml_tensor *node = graph->nodes[items[k].node];
                if (captured || !b->on->supports_op(b->on->device, node))
                    return FA_GGML_FAILED;
                if (theirs(b, graph, items[k].node, items[k].node + 1) != FA_GGML_SUCCESS)
                    return FA_GGML_FAILED;
            }
        at = items[i + n - 1].node + 1;
    }
    return at < graph->n_nodes ? theirs(b, graph, at, graph->n_nodes) : FA_GGML_SUCCESS;
}

typedef struct walking {
    fa_ggml_ridden *b;
    const fa_ggml_graph *graph;
    const fa_ggml_plan *plan;
} walking;
static int32_t walk_captured(void *user)
{
    const walking *w = user;
    return walk(w->b, w->graph, w->plan, true);
}

int32_t fa_ggml_walk(fa_ggml_ridden *b, fa_ggml_graph *graph)
{
    int32_t st;
    char why[160];
    if (!b->checked && !b->on->failed) {
        b->checked = fa_ggml_graph_check(&fa_ggml_ride.ggml, graph, why, sizeof why);
        if (!b->checked) {
            b->on->failed = true;
            FA_GGML_COUNT(failures);
            fa_ggml_tell("%s stays ggml's alone: %s", b->on->name, why);
        }
    }
    const fa_ggml_plan *plan = b->on->failed ? NULL : fa_ggml_plan_of(b, graph);
    if (b->on->failed)
        return graph->uid ? compute_part(b, graph, 0, graph->n_nodes) : b->compute(b->backend, graph);
    if (!plan || (plan->count && !b->stream && fa_ggml_stream_open(&b->stream, b->on->engine) != FA_OK))
        return b->compute(b->backend, graph);
    /* with tier 3 graphs without a node of ours are captured, too, since ggml-cuda's own are off */
    const bool keeps = fa_ggml_ride.settings.tier == 3 && !fa_ggml_staged() && graph->uid && !plan->waits && fa_ggml_engine_of(b->on);
    CUstream stream = keeps ? cuda_stream(b) : NULL;
    if (!plan->count && !stream)
        return b->compute(b->backend, graph);
    if (plan->count)
        FA_GGML_COUNT(graphs);
    if (stream) {
        walking w = { b, graph, plan };
        bool done = false;
        const cu_driver *d = fa_context_driver(fa_ggml_engine_context(b->on->engine));
        if (!b->replays)
            b->replays = fa_ggml_replays_open(d);
        st = fa_ggml_replay(b->replays, graph->uid, stream, walk_captured, &w, &done, &fa_ggml_ride.counts.captures,
                            &fa_ggml_ride.counts.replays);
        if (done)
            return st;
    }
    return walk(b, graph, plan, false);
}
