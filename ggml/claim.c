/* claim: from a node to the fields of a launch. */
#include "claim.h"
#include "gen/format.h"
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Types that have no blocks. Those of blocks are the rows of gen/formats.def that have ggml's name: fp16 Q multiplies their numbers. */
static const fa_ggml_format plain[] = {
    { "f32", FA_F32, FA_TF32 },
    { "f16", FA_F16, FA_F16 },
    { "bf16", FA_BF16, FA_BF16 },
};
enum { PLAIN = sizeof plain / sizeof *plain, BLOCKS = 32 };

const fa_ggml_format *fa_ggml_format_row(size_t i)
{
    static _Thread_local fa_ggml_format row;
    if (i < PLAIN)
        return &plain[i];
    i -= PLAIN;
    for (size_t k = 0; fa_format_row(k); k++) {
        const fa_format *f = fa_format_row(k);
        if (!f->scale_dtype) /* scales beside the codes: none of ggml's */
            continue;
        if (!i--) {
            row = (fa_ggml_format){ f->name, f->dtype, FA_F16 };
            return &row;
        }
    }
    return NULL;
}

static bool no(char *why, size_t n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static bool no(char *why, size_t n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, n, fmt, ap);
    va_end(ap);
    return false;
}

static const char *type_of(const fa_ggml *g, const fa_ggml_tensor *t)
{
    return t->type >= 0 && t->type < FA_GGML_TYPES && g->type[t->type].name[0] ? g->type[t->type].name : "of another type";
}

/* The row of K's or V's type. */
static bool find_format(const fa_ggml *g, const fa_ggml_tensor *t, const char *tensor, fa_ggml_format *out, int32_t *block, char *why,
                        size_t n)
{
    const char *name = type_of(g, t);
    const fa_ggml_format *f;
    for (size_t i = 0; (f = fa_ggml_format_row(i)) != NULL; i++) {
        if (strcmp(f->name, name) != 0)
            continue;
        const fa_format *few = fa_format_of(f->dtype);
        *block = few ? few->block : 1;
        if (few && (g->type[t->type].block != few->block || g->type[t->type].bytes != few->block_bytes))
            return no(why, n, "%s is %s, whose blocks have %d bytes; known: %d", tensor, name, g->type[t->type].bytes, few->block_bytes);
        *out = *f;
        return true;
    }
    char accepted[160] = "";
    for (size_t i = 0, at = 0; (f = fa_ggml_format_row(i)) != NULL && at < sizeof accepted; i++)
        at += (size_t)snprintf(accepted + at, sizeof accepted - at, "%s%s", i ? ", " : "", f->name);
    return no(why, n, "%s is %s; accepted: %s", tensor, name, accepted);
}

/* A view whose rows are whole: strides become elements, or blocks. [b, s, h, d] here is ne {d, s, h, b} there. */
static bool view(const fa_ggml_tensor *t, const char *tensor, size_t bytes, fa_tensor *out, char *why, size_t n)
{
    if (t->nb[0] != bytes)
        return no(why, n, "%s.nb[0] is %zu; accepted: %zu, elements that lie side by side", tensor, t->nb[0], bytes);
    for (int i = 1; i < 4; i++)
        if (t->nb[i] % bytes || t->nb[i] / bytes > INT64_MAX / 64)
            return no(why, n, "%s.nb[%d] is %zu; accepted: multiples of %zu", tensor, i, t->nb[i], bytes);
    out->ptr = t->data;
    out->ss = (int64_t)(t->nb[1] / bytes); /* never 0 with the two below, which would mean packed */
    out->sh = t->ne[2] > 1 ? (int64_t)(t->nb[2] / bytes) : 0;
    out->sb = t->ne[3] > 1 ? (int64_t)(t->nb[3] / bytes) : 0;
    return true;
}

static bool sizes(const fa_ggml_tensor *q, const fa_ggml_tensor *k, const fa_ggml_tensor *v, const fa_ggml_tensor *o, char *why, size_t n)
{
    const fa_ggml_tensor *const all[] = { q, k, v, o };
    static const char *const names[] = { "Q", "K", "V", "the result" };
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 4; i++)
            if (all[t]->ne[i] < 1 || all[t]->ne[i] > INT32_MAX)
                return no(why, n, "%s.ne[%d] is %lld; accepted: 1 to %d", names[t], i, (long long)all[t]->ne[i], INT32_MAX);
    if (k->ne[0] != q->ne[0])
        return no(why, n, "K.ne[0] is %lld; accepted: %lld, as Q has it", (long long)k->ne[0], (long long)q->ne[0]);
    if (v->ne[1] != k->ne[1])
        return no(why, n, "V.ne[1] is %lld; accepted: %lld, as K has it", (long long)v->ne[1], (long long)k->ne[1]);
    if (v->ne[2] != k->ne[2])
        return no(why, n, "V.ne[2] is %lld; accepted: %lld, as many heads as K", (long long)v->ne[2], (long long)k->ne[2]);
    if (q->ne[2] % k->ne[2])
        return no(why, n, "Q.ne[2] is %lld; accepted: multiples of K's %lld heads", (long long)q->ne[2], (long long)k->ne[2]);
    if ((k->ne[3] != q->ne[3] && k->ne[3] != 1) || v->ne[3] != k->ne[3])
        return no(why, n, "K.ne[3] and V.ne[3] are %lld and %lld; accepted: both %lld, or 1", (long long)k->ne[3], (long long)v->ne[3],
                  (long long)q->ne[3]);
    if (o->ne[0] != v->ne[0] || o->ne[1] != q->ne[2] || o->ne[2] != q->ne[1] || o->ne[3] != q->ne[3])
        return no(why, n, "the result is [%lld, %lld, %lld, %lld]; accepted: [V.ne[0], Q.ne[2], Q.ne[1], Q.ne[3]]", (long long)o->ne[0],
                  (long long)o->ne[1], (long long)o->ne[2], (long long)o->ne[3]);
    return true;
}

static bool take_mask(const fa_ggml *g, const fa_ggml_tensor *m, fa_ggml_claim *c, char *why, size_t n)
{
    if (strcmp(type_of(g, m), "f16") != 0)
        return no(why, n, "the mask is %s; accepted: f16", type_of(g, m));
    if (m->ne[0] != c->sk || m->ne[1] < c->sq)
        return no(why, n, "the mask is %lld keys by %lld queries; accepted: %d by %d or more", (long long)m->ne[0], (long long)m->ne[1],
                  c->sk, c->sq);
    if (m->ne[2] < 1 || m->ne[3] < 1 || c->hq % m->ne[2] || c->b % m->ne[3])
        return no(why, n, "the mask has %lld heads and %lld sequences; accepted: divisors of %d and %d", (long long)m->ne[2],
                  (long long)m->ne[3], c->hq, c->b);
    if (m->ne[3] != 1 && m->ne[3] != c->b)
        return no(why, n, "the mask has %lld sequences; accepted: 1 or %d", (long long)m->ne[3], c->b);
    if (m->nb[0] != 2 || m->nb[1] % 2 || m->nb[2] % 2 || m->nb[3] % 2)
        return no(why, n, "the mask's nb[0] is %zu; accepted: 2, and others even", m->nb[0]);
    c->has_mask = true;
    c->mask = m->data;
    c->m2 = (int32_t)m->ne[2], c->m3 = (int32_t)m->ne[3];
    c->mask_ss = (int64_t)(m->nb[1] / 2);
    c->mask_sh = c->m2 > 1 ? (int64_t)(m->nb[2] / 2) : 0;
    c->mask_sb = c->m3 > 1 ? (int64_t)(m->nb[3] / 2) : 0;
    return true;
}

/* Which types are multiplied in which. */
static bool take_types(const fa_ggml *g, const fa_ggml_tensor *const src[], fa_ggml_claim *c, size_t bytes[2], char *why, size_t n)
{
    fa_ggml_format k, v;
    int32_t block[2];
    if (strcmp(type_of(g, src[0]), "f32") != 0)
        return no(why, n, "Q is %s; accepted: f32", type_of(g, src[0]));
    if (!find_format(g, src[1], "K", &k, &block[0], why, n) || !find_format(g, src[2], "V", &v, &block[1], why, n))
        return false;
    if (k.product != v.product || (k.dtype != v.dtype && (block[0] == 1 || block[1] == 1)))
        return no(why, n, "K is %s and V %s; accepted: one type, or two with blocks", k.name, v.name);
    for (int i = 0; i < 2; i++) {
        if (src[1 + i]->ne[0] % block[i])
            return no(why, n, "%s.ne[0] is %lld; accepted in %s: multiples of %d", i ? "V" : "K", (long long)src[1 + i]->ne[0],
                      i ? v.name : k.name, block[i]);
        bytes[i] = (size_t)g->type[src[1 + i]->type].bytes;
    }
    c->dtype = k.product;
    if (block[0] > 1) {
        c->kv_dtype = k.dtype;
        c->v_dtype = v.dtype == k.dtype ? 0 : v.dtype;
    }
    return true;
}

/* Q is read where it lies beside K and V in f32, and where few rows are multiplied with blocks: kernels of decoding take it in fp32. */
static bool rounds(const fa_ggml_claim *c)
{
    const bool few = (int64_t)c->sq * (c->hq / c->hkv) <= FA_GGML_IN_PLACE && c->d <= 256 && c->dv <= 256;
    return c->dtype != FA_TF32 && !(c->kv_dtype && few && c->scale > 0);
}

/* Whether V is a view of K that begins where K begins. Nodes are asked about before they have addresses. */
static bool lies_in(const fa_ggml_tensor *v, const fa_ggml_tensor *k)
{
    const void *of_v = v->view_src ? v->view_src : v, *of_k = k->view_src ? k->view_src : k;
    return of_v == of_k && (v->view_src ? v->view_offs : 0) == (k->view_src ? k->view_offs : 0) && v->type == k->type &&
           v->ne[0] <= k->ne[0] && !memcmp(v->nb, k->nb, sizeof v->nb);
}

bool fa_ggml_claim_node(const fa_ggml *g, const fa_ggml_tensor *node, fa_ggml_claim *c, char *why, size_t n)
{
    memset(c, 0, sizeof *c);
    if (node->op != g->attention)
        return no(why, n, "another operation");
    const fa_ggml_tensor *const *src = (const fa_ggml_tensor *const *)node->src, *mask = src[3], *sinks = src[4];
    size_t bytes[2] = { 0, 0 };
    if (!src[0] || !src[1] || !src[2])
        return no(why, n, "Q, K or V is missing");
    if (!sizes(src[0], src[1], src[2], node, why, n) || !take_types(g, src, c, bytes, why, n))
        return false;
    memcpy(&c->scale, &node->op_params[0], 4);
    memcpy(&c->max_bias, &node->op_params[1], 4);
    memcpy(&c->cap, &node->op_params[2], 4);
    c->keys_left = node->op_params[4] > 0 ? node->op_params[4] : 0;
    c->d = (int32_t)src[0]->ne[0], c->dv = (int32_t)src[2]->ne[0];
    c->sq = (int32_t)src[0]->ne[1], c->sk = (int32_t)src[1]->ne[1];
    c->hq = (int32_t)src[0]->ne[2], c->hkv = (int32_t)src[1]->ne[2];
    c->b = (int32_t)src[0]->ne[3];
    c->casts = rounds(c);
    if (!isfinite(c->scale) || (!c->casts && !(c->scale > 0)))
        return no(why, n, "the scale is %g; accepted: %s", (double)c->scale, c->casts ? "numbers" : "above 0 where K is f32");
    if (!isfinite(c->cap) || !isfinite(c->max_bias) || c->max_bias < 0)
        return no(why, n, "logit_softcap and max_bias are %g and %g; accepted: numbers, the second from 0", (double)c->cap,
                  (double)c->max_bias);
    c->cap = fabsf(c->cap);
    if (c->cap != 0 && (c->cap < 1e-6f || c->cap > 1e30f))
        return no(why, n, "logit_softcap is %g; accepted: 0, or 1e-6 to 1e30", (double)c->cap);
    if (c->max_bias > 0 && !mask)
        return no(why, n, "max_bias is %g without a mask; accepted: 0", (double)c->max_bias);
    if (!view(src[0], "Q", 4, &c->q, why, n) || !view(src[1], "K", bytes[0], &c->k, why, n) ||
        !view(src[2], "V", bytes[1], &c->v, why, n) || !view(node, "the result", 4, &c->o, why, n))
        return false;
    c->v_in_k = c->d > 256 && c->casts && !c->kv_dtype && lies_in(src[2], src[1]);
    const fa_ggml_tensor *o = node;
    if (strcmp(type_of(g, o), "f32") != 0 || o->nb[1] != 4 * (size_t)c->dv || o->nb[2] != o->nb[1] * (size_t)c->hq ||
        o->nb[3] != o->nb[2] * (size_t)c->sq)
        return no(why, n, "the result is no contiguous f32");
    c->o.sh = c->dv, c->o.ss = (int64_t)c->dv * c->hq, c->o.sb = c->o.ss * c->sq; /* its heads lie inside its rows */
    if (mask && !take_mask(g, mask, c, why, n))
        return false;
    if (sinks) {
        if (strcmp(type_of(g, sinks), "f32") != 0 || sinks->ne[0] != c->hq || sinks->nb[0] != 4)
            return no(why, n, "the sinks are %s, %lld of them; accepted: f32, %d side by side", type_of(g, sinks), (long long)sinks->ne[0],
                      c->hq);
        c->has_sinks = true;
        c->sinks = sinks->data;
    }
    return true;
}

float fa_ggml_slope(float max_bias, int32_t hq, int32_t h)
{
    int32_t n = 1;
    if (!(max_bias > 0))
        return 1;
    while (n * 2 <= hq)
        n *= 2;
    return h < n ? powf(2, -max_bias * (float)(h + 1) / (float)n) : powf(2, -max_bias * (float)(2 * (h - n) + 1) / (float)(2 * n));
}
