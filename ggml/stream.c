/* stream: the scratch of a backend, and a claim's launches. */
#include "arguments.h"
#include "gen/error.h"
#include "gen/format.h"
#include <stdlib.h>
#include <string.h>

#define SHAPES 64 /* whose portion is kept */
#define MASKS 8   /* of a graph that are looked at */
#define SLOPES 4  /* lists of slopes */
#define KEPT 8    /* workspaces that were too small, of graphs that were captured */
#define ROUND(n) (((n) + 255) / 256 * 256)

/* What one launch takes of a node: so many rows of Q, of so many KV heads. */
typedef struct fa_ggml_portion {
    int32_t rows, heads;
} fa_ggml_portion;

struct fa_ggml_stream {
    fa_ggml_engine *e;
    CUdeviceptr scratch; /* FA_GGML_MASKS, then FA_GGML_CAST bytes */
    struct {
        CUdeviceptr at;
        size_t size;
        bool zeroed; /* its counters */
    } workspace;
    CUdeviceptr kept[KEPT];
    int32_t keeps;
    bool captures; /* a launch was captured */
    fa_ggml_counts counts;
    struct {
        float max_bias;
        int32_t hq;
        float slope[FA_GGML_HEADS]; /* read by a copy that may be captured */
    } list[SLOPES];
    int32_t lists, oldest;
    fa_ggml_looked mask[MASKS];
    int32_t masks;
    size_t mask_bytes;
    struct {
        fa_ggml_claim claim; /* without addresses */
        fa_ggml_looked mask; /* likewise */
        fa_ggml_portion portion;
        size_t needs;
    } shape[SHAPES];
    int32_t shapes, next_shape;
};

static fa_status check(const fa_ggml_engine *e, CUresult r, const char *call)
{
    return fa_driver_check(e->d, r, call);
}

fa_status fa_ggml_stream_open(fa_ggml_stream **out, fa_ggml_engine *e)
{
    fa_ggml_stream *s = calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return fa_fail(FA_NOMEM, "no memory for a stream");
    s->e = e;
    return FA_OK;
}

void fa_ggml_stream_close(fa_ggml_stream *s)
{
    if (s && s->scratch && fa_ggml_enter(s->e) == FA_OK) {
        s->e->d->cuCtxSynchronize();
        s->e->d->cuMemFree(s->scratch);
        for (int32_t i = 0; i < s->keeps; i++)
            s->e->d->cuMemFree(s->kept[i]);
        if (s->workspace.at)
            s->e->d->cuMemFree(s->workspace.at);
        fa_ggml_leave(s->e);
    }
    free(s);
}

void fa_ggml_stream_begin(fa_ggml_stream *s)
{
    s->masks = 0;
    s->mask_bytes = sizeof s->list[0].slope * SLOPES;
}

fa_ggml_counts fa_ggml_stream_counts(const fa_ggml_stream *s)
{
    return s->counts;
}

static void *within(const fa_ggml_stream *s, size_t at)
{
    return (void *)(uintptr_t)(s->scratch + at);
}

static fa_status launch(fa_ggml_stream *s, fa_ggml_kernel kernel, int64_t blocks, unsigned threads, CUstream at, void **params,
                        const char *what)
{
    const cu_driver *d = s->e->d;
    const bool early = kernel == FA_GGML_ROWS && fa_context_device(s->e->ctx)->arch.cc >= 90; /* waits itself for what precedes it */
    CUfunction fn = (CUfunction)s->e->fn[kernel];
    if (blocks > INT32_MAX)
        return fa_fail(FA_UNSUPPORTED, "%s: %lld blocks; accepted: up to %d", what, (long long)blocks, INT32_MAX);
    if (!early)
        return check(s->e, d->cuLaunchKernel(fn, (unsigned)blocks, 1, 1, threads, 1, 1, 0, at, params, NULL), what);
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                    .value.programmaticStreamSerializationAllowed = 1 };
    CUlaunchConfig config = { .gridDimX = (unsigned)blocks,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = threads,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .hStream = at,
                              .attrs = &attribute,
                              .numAttrs = 1 };
    return check(s->e, d->cuLaunchKernelEx(&config, fn, params, NULL), what);
}

/* The slopes of max_bias, put into the scratch when they are first asked for. With more lists than there is room for, one takes the place
 * of the oldest, on the same stream; not where graphs may read that. */
static fa_status slopes(fa_ggml_stream *s, const fa_ggml_claim *c, CUstream at, const void **out)
{
    int32_t i = 0;
    *out = NULL;
    if (!(c->max_bias > 0))
        return FA_OK;
    while (i < s->lists && (s->list[i].max_bias != c->max_bias || s->list[i].hq != c->hq))
        i++;
    if (i == SLOPES && s->captures)
        return fa_fail(FA_UNSUPPORTED, "max_bias: graphs hold %d lists of slopes; accepted: no more", SLOPES);
    const bool there = i < s->lists;
    i = i < SLOPES ? i : s->oldest++ % SLOPES;
    *out = within(s, (size_t)i * sizeof s->list[0].slope);
    if (there)
        return FA_OK;
    s->list[i].max_bias = c->max_bias;
    s->list[i].hq = c->hq;
    for (int32_t h = 0; h < c->hq; h++)
        s->list[i].slope[h] = fa_ggml_slope(c->max_bias, c->hq, h);
    s->lists += i == s->lists;
    return check(s->e, s->e->d->cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)*out, s->list[i].slope, (size_t)c->hq * 4, at),
                 "cuMemcpyHtoDAsync");
}

/* Looks at a mask, or finds what was seen of it in this graph. *out NULL: nothing is known. */
static fa_status look(fa_ggml_stream *s, const fa_ggml_claim *c, const void *id, CUstream at, bool captured, const fa_ggml_looked **out)
{
    const fa_ggml_engine *e = s->e;
    *out = NULL;
    if (!c->has_mask || c->sq < FA_GGML_LOOK)
        return FA_OK;
    for (int32_t i = 0; i < s->masks; i++) {
        const fa_ggml_looked *l = &s->mask[i];
        if (l->id == id && l->at == c->mask && l->sq == c->sq && l->sk == c->sk && l->m2 == c->m2 && l->m3 == c->m3)
            return *out = l, FA_OK;
    }
    const int64_t which = (int64_t)c->m2 * c->m3, n = (c->sq + 63) / 64, rows = which * c->sq;
    const size_t row_bytes = ROUND((size_t)rows * sizeof(fa_ggml_row)), tile_bytes = ROUND((size_t)(which * n * ((c->sk + 63) / 64)));
    if (s->masks == MASKS || s->mask_bytes + row_bytes + tile_bytes > FA_GGML_MASKS)
        return FA_OK;
    fa_ggml_looked *l = &s->mask[s->masks++];
    *l = (fa_ggml_looked){ .id = id, .at = c->mask, .sq = c->sq, .sk = c->sk, .m2 = c->m2, .m3 = c->m3 };
    void *row_at = within(s, s->mask_bytes);
    l->tiles = within(s, s->mask_bytes + row_bytes);
    s->mask_bytes += row_bytes + tile_bytes;
    s->counts.looks++;
    void *params[] = { (void *)&c->mask,    &row_at,        &l->tiles,      (void *)&c->mask_sb, (void *)&c->mask_ss,
                       (void *)&c->mask_sh, (void *)&c->sq, (void *)&c->sk, (void *)&c->m2 };
    fa_status st = check(e, e->d->cuMemsetD8Async((CUdeviceptr)(uintptr_t)l->tiles, 0, tile_bytes, at), "cuMemsetD8Async");
    if (st == FA_OK)
        st = launch(s, FA_GGML_LOOKS, which * ((c->sq + 7) / 8), 256, at, params, "fa_ggml_mask");
    *out = l;
    if (st != FA_OK || captured)
        return st;
    fa_ggml_row *host = malloc((size_t)rows * sizeof *host);
    if (!host)
        return FA_OK; /* tiles alone */
    st = check(e, e->d->cuMemcpyDtoHAsync(host, (CUdeviceptr)(uintptr_t)row_at, (size_t)rows * sizeof *host, at), "cuMemcpyDtoHAsync");
    if (st == FA_OK)
        st = check(e, e->d->cuStreamSynchronize(at), "cuStreamSynchronize");
    l->is_band = st == FA_OK && fa_ggml_band_of(host, which, c->sq, c->sk, &l->band);
    s->counts.bands += l->is_band;
    free(host);
    return st;
}

/* What a launch of n rows at a time may use: tiles of a mask begin at every 64th row. */
static const fa_ggml_looked *usable(const fa_ggml_looked *l, const fa_ggml_claim *c, int64_t n, fa_ggml_looked *copy)
{
    if (!l || n == c->sq || n % 64 == 0)
        return l;
    *copy = *l;
    copy->tiles = NULL;
    return copy;
}

/* Half as many rows, whole tiles as long as there are any. */
static int64_t fewer(int64_t n)
{
    return n > 64 ? (n / 2 + 63) / 64 * 64 : n / 2;
}

/* The KV heads `first` to `first` + n - 1 of K and V in blocks, with their heads of Q; of a mask that is not read. */
static fa_ggml_claim heads_of(const fa_ggml_claim *c, int32_t first, int32_t n)
{
    fa_ggml_claim part = *c;
    const int32_t group = c->hq / c->hkv;
    if (n == c->hkv)
        return part;
    part.hkv = n, part.hq = n * group;
    part.q.ptr = (float *)c->q.ptr + first * group * c->q.sh;
    part.k.ptr = (char *)c->k.ptr + first * c->k.sh * fa_format_of(c->kv_dtype)->block_bytes;
    part.v.ptr = (char *)c->v.ptr + first * c->v.sh * fa_format_of(c->v_dtype ? c->v_dtype : c->kv_dtype)->block_bytes;
    part.o.ptr = (float *)c->o.ptr + first * group * c->o.sh;
    part.sinks = c->has_sinks ? c->sinks + first * group : NULL;
    return part;
}

/* KV heads of a launch: of prompts over blocks so many that 16 bits of their K and V find room, where those of one do. */
static int32_t heads_at_a_time(fa_ggml_stream *s, const fa_ggml_claim *c, const fa_ggml_looked *l, const void *slope)
{
    fa_score_value values[FA_GGML_PARTS];
    size_t needs = 0;
    fa_args a;
    if (!c->kv_dtype || c->sq < FA_GGML_LOOK || (c->has_mask && (!l || !l->is_band || c->max_bias > 0)))
        return c->hkv;
    for (int32_t n = c->hkv; n > 0; n--) {
        const fa_ggml_claim part = heads_of(c, 0, n);
        if (c->hkv % n == 0 && fa_ggml_engine_unpacks(s->e, c, n) &&
            fa_ggml_arguments(s->e, &part, l, 0, c->sq, within(s, FA_GGML_MASKS), slope, values, &a) == FA_OK &&
            fa_workspace_size(s->e->ctx, &a, &needs) == FA_OK && FA_GGML_MASKS + FA_GGML_CAST + needs <= s->e->memory)
            return n;
    }
    return fa_ggml_engine_unpacks(s->e, c, 1) ? 1 : c->hkv; /* of fewer rows at a time, see portion() */
}

/* What one launch takes: all, or as much as finds room in the scratch, with the workspace that it needs. */
static fa_status portion(fa_ggml_stream *s, const fa_ggml_claim *c, const fa_ggml_looked *l, const void *slope, bool again,
                         fa_ggml_portion *out, size_t *workspace)
{
    fa_score_value values[FA_GGML_PARTS];
    fa_ggml_claim bare = *c;
    fa_ggml_looked mask = l ? *l : (fa_ggml_looked){ 0 }, copy;
    fa_status st = FA_OK;
    size_t needs = 0;
    fa_args a;
    bare.q.ptr = bare.k.ptr = bare.v.ptr = bare.o.ptr = NULL;
    bare.mask = bare.sinks = NULL;
    mask.id = mask.at = NULL;
    mask.tiles = mask.tiles ? (unsigned char *)1 : NULL;
    int32_t i = 0;
    while (i < s->shapes && (memcmp(&s->shape[i].claim, &bare, sizeof bare) != 0 || memcmp(&s->shape[i].mask, &mask, sizeof mask) != 0))
        i++;
    if (i < s->shapes && !again)
        return *out = s->shape[i].portion, *workspace = s->shape[i].needs, FA_OK;
    const int32_t heads = heads_at_a_time(s, c, l, slope);
    const fa_ggml_claim part = heads_of(c, 0, heads);
    const int64_t row_bytes = c->casts ? (int64_t)part.b * part.hq * part.d * 2 : 1;
    int64_t n = FA_GGML_CAST / row_bytes;
    n = n >= c->sq ? c->sq : n >= 64 ? n / 64 * 64 : n;
    for (; n > 0; n = fewer(n)) {
        st = fa_ggml_arguments(s->e, &part, usable(l, c, n, &copy), 0, (int32_t)n, within(s, FA_GGML_MASKS), slope, values, &a);
        if (st == FA_OK)
            fa_ggml_choose(s->e, &part, &a);
        if (st == FA_OK)
            st = fa_workspace_size(s->e->ctx, &a, &needs);
        if (st != FA_OK || FA_GGML_MASKS + FA_GGML_CAST + needs <= s->e->memory)
            break;
    }
    if (st != FA_OK || n <= 0)
        return st != FA_OK
                   ? st
                   : fa_fail(FA_UNSUPPORTED, "a row needs more than the %zu MiB of device memory that there are", s->e->memory >> 20);
    if (i == s->shapes)
        i = s->shapes < SHAPES ? s->shapes++ : s->next_shape++ % SHAPES;
    s->shape[i].claim = bare;
    s->shape[i].mask = mask;
    s->shape[i].portion = *out = (fa_ggml_portion){ (int32_t)n, heads };
    s->shape[i].needs = *workspace = needs;
    return FA_OK;
}

static fa_status cast(fa_ggml_stream *s, const fa_ggml_claim *c, int32_t first, int32_t n, void *to, CUstream at)
{
    const float *from = (const float *)c->q.ptr + first * c->q.ss;
    uint32_t elements = (uint32_t)(c->b * c->hq * n * c->d); /* FA_GGML_CAST bytes at most, see portion() */
    int32_t bf16 = c->dtype == FA_BF16, whole = c->d % 8 == 0 && (c->q.sb | c->q.ss | c->q.sh) % 4 == 0 && (uintptr_t)from % 16 == 0;
    void *params[] = { &from,     &to,   (void *)&c->q.sb, (void *)&c->q.ss, (void *)&c->q.sh,
                       &elements, &n,    (void *)&c->hq,   (void *)&c->d,    (void *)&c->scale,
                       &bf16,     &whole };
    s->counts.casts++;
    return launch(s, FA_GGML_ROWS, (elements + 1023LL) / 1024, 128, at, params, "fa_ggml_rows");
}

/* All rows of a node, n at a time. */
static fa_status launch_rows(fa_ggml_stream *s, const fa_ggml_claim *c, const fa_ggml_looked *l, const void *slope, int32_t n, CUstream at)
{
    fa_score_value values[FA_GGML_PARTS];
    fa_ggml_looked copy;
    fa_status st = FA_OK;
    l = usable(l, c, n, &copy);
    for (int32_t first = 0; first < c->sq && st == FA_OK; first += n) {
        const int32_t rows = n < c->sq - first ? n : c->sq - first;
        void *q16 = within(s, FA_GGML_MASKS);
        fa_args a;
        if (c->casts)
            st = cast(s, c, first, rows, q16, at);
        if (st == FA_OK)
            st = fa_ggml_arguments(s->e, c, l, first, rows, q16, slope, values, &a);
        if (st != FA_OK)
            break;
        a.workspace = (void *)(uintptr_t)s->workspace.at;
        a.workspace_size = s->workspace.size;
        st = fa_launch(s->e->ctx, &a, at);
        s->counts.launches += st == FA_OK;
    }
    return st;
}

static fa_status launch_all(fa_ggml_stream *s, const fa_ggml_claim *c, const fa_ggml_looked *l, const void *slope, fa_ggml_portion n,
                            CUstream at)
{
    fa_status st = FA_OK;
    for (int32_t first = 0; first < c->hkv && st == FA_OK; first += n.heads) {
        const fa_ggml_claim part = heads_of(c, first, n.heads);
        st = launch_rows(s, &part, l, slope, n.rows, at);
    }
    return st;
}

/* A workspace of so many bytes, its counters zero. One that is too small goes when the stream is through with it; where graphs were
 * captured, with the stream. */
static fa_status provide(fa_ggml_stream *s, size_t needs, CUstream at, bool captured)
{
    const fa_ggml_engine *e = s->e;
    fa_status st = FA_OK;
    s->captures = s->captures || captured;
    if (needs > s->workspace.size) {
        const size_t size = (needs + (1 << 20) - 1) >> 20 << 20;
        CUdeviceptr old = s->workspace.at, grown = 0;
        if (old && s->captures && s->keeps == KEPT)
            return fa_fail(FA_NOMEM, "%d workspaces are held by graphs; accepted: no more", KEPT);
        if (old && !s->captures)
            st = check(e, e->d->cuStreamSynchronize(at), "cuStreamSynchronize");
        if (st == FA_OK)
            st = check(e, e->d->cuMemAlloc(&grown, size), "cuMemAlloc");
        if (st != FA_OK)
            return st;
        if (old && s->captures)
            s->kept[s->keeps++] = old;
        else if (old)
            e->d->cuMemFree(old);
        s->counts.bytes += (int64_t)(size - (s->captures ? 0 : s->workspace.size));
        s->workspace.at = grown;
        s->workspace.size = size;
        s->workspace.zeroed = false;
    }
    if (s->workspace.size && !s->workspace.zeroed)
        st = fa_workspace_init(e->ctx, (void *)(uintptr_t)s->workspace.at, s->workspace.size, at);
    s->workspace.zeroed = st == FA_OK;
    return st;
}

static fa_status make_scratch(fa_ggml_stream *s)
{
    if (s->scratch)
        return FA_OK;
    s->counts.bytes = FA_GGML_MASKS + FA_GGML_CAST;
    return check(s->e, s->e->d->cuMemAlloc(&s->scratch, FA_GGML_MASKS + FA_GGML_CAST), "cuMemAlloc");
}

fa_status fa_ggml_stream_look(fa_ggml_stream *s, const fa_ggml_claim *c, const void *id, void *at, bool *known, bool *band)
{
    const fa_ggml_looked *l = NULL;
    *known = *band = false;
    fa_status st = fa_ggml_enter(s->e);
    if (st != FA_OK)
        return st;
    st = fa_ggml_engine_ready(s->e);
    if (st == FA_OK)
        st = make_scratch(s);
    if (st == FA_OK)
        st = look(s, c, id, at, false, &l);
    *known = l != NULL;
    *band = l && l->is_band;
    fa_ggml_leave(s->e);
    return st;
}

static fa_status run(fa_ggml_stream *s, const fa_ggml_claim *c, const void *id, CUstream at, bool captured)
{
    const fa_ggml_looked *l = NULL;
    const void *slope = NULL;
    fa_ggml_portion n = { 0, 0 };
    size_t needs = 0;
    fa_status st = make_scratch(s);
    if (st == FA_OK)
        st = look(s, c, id, at, captured, &l);
    if (st == FA_OK)
        st = slopes(s, c, at, &slope);
    for (int again = 0; again < 2; again++) { /* a kernel that was made since may want a larger workspace than was asked for: once more */
        if (st == FA_OK)
            st = portion(s, c, l, slope, again, &n, &needs);
        if (st == FA_OK)
            st = provide(s, needs, at, captured);
        if (st != FA_OK)
            return st;
        st = launch_all(s, c, l, slope, n, at);
        s->workspace.zeroed = st == FA_OK; /* a launch that failed may leave counters */
        if (st != FA_INVALID || again)
            return st;
        st = FA_OK;
    }
    return st;
}

fa_status fa_ggml_stream_run(fa_ggml_stream *s, const fa_ggml_claim *c, const void *id, void *at, bool captured)
{
    fa_status st = fa_ggml_enter(s->e);
    if (st != FA_OK)
        return st;
    st = fa_ggml_engine_ready(s->e);
    if (st == FA_OK)
        st = run(s, c, id, at, captured);
    s->counts.nodes++;
    fa_ggml_leave(s->e);
    return st;
}
