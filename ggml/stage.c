/* stage: copies of a node's tensors. */
#include "stage.h"
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 6 }; /* Q, K, V, mask, sinks, the result */

/* From the first byte of a view to past its last. */
static size_t span(const fa_ggml *g, const fa_ggml_tensor *t)
{
    size_t n = (size_t)(t->ne[0] / g->type[t->type].block) * (size_t)g->type[t->type].bytes;
    for (int i = 1; i < 4; i++)
        n += (size_t)(t->ne[i] - 1) * t->nb[i];
    return n;
}

fa_status fa_ggml_stage_run(fa_ggml_stream *s, fa_ggml_engine *e, const fa_ggml *g, const fa_ggml_tensor *node, const fa_ggml_claim *c)
{
    const fa_ggml_tensor *const tensor[TENSORS] = { node->src[0], node->src[1], node->src[2], node->src[3], node->src[4], node };
    fa_context *ctx = fa_ggml_engine_context(e);
    fa_ggml_claim at = *c;
    void *copy[TENSORS] = { NULL };
    fa_status st = FA_OK;
    for (int i = 0; i < TENSORS && st == FA_OK; i++) {
        if (!tensor[i])
            continue;
        st = fa_alloc(ctx, &copy[i], span(g, tensor[i]));
        if (st == FA_OK && i < TENSORS - 1)
            st = fa_copy(ctx, copy[i], tensor[i]->data, span(g, tensor[i]), FA_TO_DEVICE);
    }
    at.q.ptr = copy[0], at.k.ptr = copy[1], at.v.ptr = c->v_in_k ? copy[1] : copy[2], at.mask = copy[3], at.sinks = copy[4],
    at.o.ptr = copy[5];
    if (st == FA_OK)
        st = fa_ggml_stream_run(s, &at, node->src[3], NULL, false);
    if (st == FA_OK)
        st = fa_copy(ctx, node->data, copy[5], span(g, node), FA_FROM_DEVICE);
    for (int i = 0; i < TENSORS; i++)
        if (copy[i])
            fa_free(ctx, copy[i]);
    return st;
}
