/* engine: a device with its kernels, programs and classes; the arguments of a launch. */
#include "arguments.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/format.h"
#include "gen/problem.h"
#include "kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static fa_status check(const fa_ggml_engine *e, CUresult r, const char *call)
{
    return fa_driver_check(e->d, r, call);
}

/* The primary context of the device is current inside: ggml computes on threads where another device's may be. */
fa_status fa_ggml_enter(const fa_ggml_engine *e)
{
    return check(e, e->d->cuCtxPushCurrent(e->primary), "cuCtxPushCurrent");
}
void fa_ggml_leave(const fa_ggml_engine *e)
{
    CUcontext was;
    e->d->cuCtxPopCurrent(&was);
}

/* --- engines --- */

static size_t bytes_of(int32_t memory)
{
    return (size_t)(memory > 0 ? memory : FA_GGML_MEMORY) << 20;
}

static fa_status open_on(fa_ggml_engine **out, fa_context *ctx, int32_t memory, bool owns)
{
    fa_ggml_engine *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e)
        return fa_fail(FA_NOMEM, "no memory for an engine");
    e->ctx = ctx;
    e->d = fa_context_driver(ctx);
    fa_status st = check(e, e->d->cuDevicePrimaryCtxRetain(&e->primary, fa_context_device(ctx)->handle), "cuDevicePrimaryCtxRetain");
    if (st != FA_OK)
        return free(e), st;
    pthread_mutex_init(&e->mutex, NULL);
    e->owns = owns;
    e->memory = bytes_of(memory);
    *out = e;
    return FA_OK;
}

fa_status fa_ggml_engine_open_on(fa_ggml_engine **out, fa_context *ctx, int32_t memory)
{
    return open_on(out, ctx, memory, false);
}

fa_status fa_ggml_engine_open(fa_ggml_engine **out, const char *device, int32_t memory, fa_on_miss on_miss, fa_log_fn log)
{
    fa_options options = FA_OPTIONS_INIT;
    fa_context *ctx;
    *out = NULL;
    options.device = device;
    options.log = log;
    options.on_miss = on_miss;
    fa_status st = fa_create(&ctx, &options);
    if (st != FA_OK)
        return st;
    st = open_on(out, ctx, memory, true);
    if (st != FA_OK)
        fa_destroy(ctx);
    return st;
}

void fa_ggml_engine_close(fa_ggml_engine *e)
{
    if (!e)
        return;
    for (int i = 0; i < FA_GGML_PARTS; i++)
        fa_score_destroy(e->program[i]);
    e->d->cuDevicePrimaryCtxRelease(fa_context_device(e->ctx)->handle);
    if (e->owns)
        fa_destroy(e->ctx);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

fa_context *fa_ggml_engine_context(const fa_ggml_engine *e)
{
    return e->ctx;
}

/* The kernels of kernels.cu, as a source of two steps. */
static fa_status build(fa_ggml_engine *e)
{
    static const struct {
        const char *entry;
        int threads;
    } steps[FA_GGML_KERNELS] = { { "fa_ggml_rows", 128 }, { "fa_ggml_mask", 256 } };
    const fa_ggml_text *t = &fa_ggml_kernels[0];
    fa_source s = { .steps = FA_GGML_KERNELS };
    const fa_kernel *k;
    fa_status st = FA_OK;
    pthread_mutex_lock(&e->mutex);
    if (!e->built) {
        s.text = s.lined = (char *)(uintptr_t)t->bytes;
        s.text_size = t->size;
        memcpy(s.name, "ggml_kernels.cu", sizeof "ggml_kernels.cu");
        XXH128_hash_t hash = XXH3_128bits(s.text, s.text_size);
        s.hash[0] = hash.low64, s.hash[1] = hash.high64;
        for (int i = 0; i < FA_GGML_KERNELS; i++) {
            s.step[i] = (fa_step){ .threads = steps[i].threads, .cluster = 1 };
            memcpy(s.step[i].entry, steps[i].entry, strlen(steps[i].entry) + 1);
        }
        st = fa_build(e->ctx, &s, (fa_subject){ NULL, NULL }, &k);
        for (int i = 0; i < FA_GGML_KERNELS && st == FA_OK; i++)
            e->fn[i] = k->fn[i];
        e->built = st == FA_OK;
    }
    pthread_mutex_unlock(&e->mutex);
    return st;
}

fa_status fa_ggml_engine_ready(fa_ggml_engine *e)
{
    fa_status st = e->built ? FA_OK : fa_ggml_enter(e);
    if (st == FA_OK && e->built)
        return FA_OK;
    if (st != FA_OK)
        return st;
    st = build(e);
    fa_ggml_leave(e);
    return st;
}

static fa_status program(fa_ggml_engine *e, int parts, fa_score **out)
{
    char text[1024];
    fa_status st = FA_OK;
    pthread_mutex_lock(&e->mutex);
    if (!e->program[parts]) {
        fa_ggml_program_text(parts, text, sizeof text);
        st = fa_score_create(e->ctx, text, &e->program[parts]);
    }
    *out = e->program[parts];
    pthread_mutex_unlock(&e->mutex);
    return st;
}

/* --- arguments --- */

static int parts_of(const fa_ggml_claim *c, const fa_ggml_looked *l)
{
    const bool band = l && l->is_band && !(c->max_bias > 0);
    int parts = (c->cap > 0 ? FA_GGML_CAP : 0) | (c->has_sinks ? FA_GGML_SINKS : 0);
    if (c->has_mask && !band)
        parts |= FA_GGML_MASK | (c->m2 > 1 && c->m2 != c->hq ? FA_GGML_MODULO : 0) | (c->max_bias > 0 ? FA_GGML_SLOPES : 0) |
                 (l && l->tiles ? FA_GGML_TILES : 0);
    return parts;
}

/* A launch of rows `first` to `first` + n - 1. values: room for all of a program's. q16: where the rows of Q lie in 16 bits. */
fa_status fa_ggml_arguments(fa_ggml_engine *e, const fa_ggml_claim *c, const fa_ggml_looked *l, int32_t first, int32_t n, void *q16,
                            const void *slopes, fa_score_value values[FA_GGML_PARTS], fa_args *a)
{
    const int parts = parts_of(c, l);
    const int32_t heads = parts & FA_GGML_MODULO ? c->m2 : c->hq;
    fa_score *score = NULL;
    int count = 0;
    *a = (fa_args)FA_ARGS_INIT;
    a->dtype = c->dtype, a->o_dtype = FA_F32, a->kv_dtype = c->kv_dtype, a->v_dtype = c->v_dtype;
    a->q_dtype = c->kv_dtype && !c->casts ? FA_F32 : 0;
    a->d = c->d, a->dv = c->dv, a->b = c->b, a->hq = c->hq, a->hkv = c->hkv, a->sq = n, a->sk = c->sk;
    a->scale = c->casts ? 1 : c->scale;
    a->k = c->k, a->v = c->v, a->o = c->o, a->q = c->q;
    a->flags = c->b > 1 && (!c->k.sb || !c->v.sb) ? FA_BROADCAST : 0;
    a->layout_flags = c->v_in_k ? FA_V_IN_K : 0;
    a->o.ptr = (float *)c->o.ptr + first * c->o.ss;
    if (c->casts)
        a->q = (fa_tensor){ q16, (int64_t)n * c->hq * c->d, (int64_t)c->hq * c->d, c->d };
    else
        a->q.ptr = (float *)c->q.ptr + first * c->q.ss;
    if (c->has_mask && !(parts & FA_GGML_MASK)) {
        const fa_ggml_band *band = &l->band;
        const int64_t k_bytes = c->kv_dtype ? fa_format_of(c->kv_dtype)->block_bytes : c->dtype == FA_TF32 ? 4 : 2;
        const int32_t v_type = c->v_dtype ? c->v_dtype : c->kv_dtype;
        const int64_t v_bytes = v_type ? fa_format_of(v_type)->block_bytes : c->dtype == FA_TF32 ? 4 : 2;
        a->mask = band->mask;
        a->sk = band->sk;
        a->k.ptr = (char *)c->k.ptr + band->begin * c->k.ss * k_bytes;
        a->v.ptr = (char *)c->v.ptr + band->begin * c->v.ss * v_bytes;
        a->diagonal = band->mask ? FA_OFFSET : 0;
        a->offset = band->mask ? band->offset + first : 0;
        if (band->mask == FA_MASK_WINDOW)
            a->window_left = band->left, a->window_right = 0;
    }
    if (!parts)
        return FA_OK;
#define VALUE(...)                                  \
    values[count++] = (fa_score_value)              \
    {                                               \
        .size = sizeof(fa_score_value), __VA_ARGS__ \
    }
    if (parts & FA_GGML_CAP)
        VALUE(.scalar = (double)c->cap);
    if (parts & FA_GGML_MASK)
        VALUE(.ptr = (const char *)c->mask + 2 * first * c->mask_ss, .extent = { c->b, heads, n, c->sk },
              .stride = { c->mask_sb, c->mask_sh, c->mask_ss, 1 });
    if (parts & FA_GGML_MODULO)
        VALUE(.scalar = (double)c->m2);
    if (parts & FA_GGML_SLOPES)
        VALUE(.ptr = slopes, .extent = { c->hq });
    if (parts & FA_GGML_TILES) {
        const int64_t row = (c->sk + 63) / 64, head = row * ((c->sq + 63) / 64);
        VALUE(.ptr = l->tiles + first / 64 * row, .extent = { c->b, heads, (n + 63) / 64, (int32_t)row },
              .stride = { c->m3 > 1 ? head * c->m2 : 0, c->m2 > 1 ? head : 0, row, 1 });
    }
    if (parts & FA_GGML_SINKS)
        VALUE(.ptr = c->sinks, .extent = { c->hq });
#undef VALUE
    fa_status st = program(e, parts, &score);
    a->score = score;
    a->score_values = values;
    a->score_value_count = count;
    return st;
}

/* What a claim is launched with, of `rows` rows: nodes are asked about before they have addresses. */
static fa_status ask(fa_ggml_engine *e, const fa_ggml_claim *c, int32_t rows, fa_score_value values[FA_GGML_PARTS], fa_args *a)
{
    fa_ggml_claim at = *c;
    at.q.ptr = at.k.ptr = at.v.ptr = at.o.ptr = NULL;
    fa_status st = fa_ggml_arguments(e, &at, NULL, 0, rows, NULL, (const void *)256, values, a);
    for (int32_t i = 0; i < a->score_value_count; i++)
        if (values[i].extent[0])
            values[i].ptr = (const void *)256;
    return st;
}

static fa_status problem_of(fa_ggml_engine *e, const fa_ggml_claim *c, fa_problem *p)
{
    fa_score_value values[FA_GGML_PARTS];
    fa_args a;
    *p = (fa_problem)FA_PROBLEM_INIT;
    fa_status st = ask(e, c, c->sq, values, &a);
    return st == FA_OK ? fa_problem_of(&a, p) : st;
}

/* Bytes of a stream that are left for the workspace of a launch. */
static size_t room_in(size_t memory)
{
    const size_t taken = FA_GGML_MASKS + FA_GGML_CAST;
    return memory > taken ? memory - taken : 0;
}
static size_t room_of(const fa_ggml_engine *e)
{
    return room_in(e->memory);
}

static bool unpacks(size_t room, const fa_ggml_claim *c, int32_t heads)
{
    const size_t beside = 2 << 20; /* counters, and lists of parts */
    const uint64_t bytes = (uint64_t)c->b * (uint64_t)c->sk * (uint64_t)(c->d + c->dv) * 2 * (uint64_t)heads;
    return c->kv_dtype && room > beside && bytes <= room - beside;
}
bool fa_ggml_unpacks(int32_t memory, const fa_ggml_claim *c, int32_t heads)
{
    return unpacks(room_in(bytes_of(memory)), c, heads);
}
bool fa_ggml_engine_unpacks(const fa_ggml_engine *e, const fa_ggml_claim *c, int32_t heads)
{
    return unpacks(room_of(e), c, heads);
}

/* Candidates of a problem that run, the cheapest first. */
enum { CONFIG = 512, CONFIGS = 24 };
typedef struct candidates {
    char config[CONFIGS][CONFIG];
    int32_t count;
    bool measured; /* the first: it is known to be good */
} candidates;
static int take_candidate(void *user, const fa_candidate_info *row)
{
    candidates *to = user;
    if (row->why[0] || strlen(row->config) >= CONFIG)
        return row->runs; /* without the one that runs nothing is chosen */
    if (!to->count)
        to->measured = row->measured > 0 || row->source >= FA_FROM_SHIPPED;
    memcpy(to->config[to->count++], row->config, strlen(row->config) + 1);
    return to->count == CONFIGS;
}

/* Whether a choice was made for the problem's class and bucket; if not, it is now: tokens of a sequence come with more keys each time, and
 * to look at all candidates takes as long as some tokens. */
static bool chosen(fa_ggml_engine *e, const fa_problem *p)
{
    fa_problem point;
    bool known = false;
    if (fa_problem_normalize(&point, p) != FA_OK)
        return true;
    point = fa_problem_point(&point);
    const uint64_t hash = XXH3_64bits(&point, sizeof point); /* numbers of 32 bits, nothing between them */
    pthread_mutex_lock(&e->mutex);
    for (int32_t i = 0; i < FA_GGML_POINTS && i < e->choices && !known; i++)
        known = e->chosen[i] == hash;
    if (!known)
        e->chosen[e->choices++ % FA_GGML_POINTS] = hash;
    pthread_mutex_unlock(&e->mutex);
    return known;
}

/* Few rows under a mask: what was never measured is chosen as it would be without the mask, of which they see nearly all; a price under a
 * mask takes part of the keys for hidden. */
static void choose_bare(fa_ggml_engine *e, const fa_ggml_claim *c, const fa_args *a, candidates *found)
{
    fa_score_value values[FA_GGML_PARTS];
    fa_problem masked = FA_PROBLEM_INIT, bare = FA_PROBLEM_INIT;
    fa_ggml_claim without = *c;
    fa_args b;
    if (!c->has_mask || (int64_t)a->sq * (a->hq / a->hkv) > FA_GGML_LOOK || !a->score)
        return;
    without.has_mask = false;
    without.max_bias = 0;
    found->count = 0;
    if (fa_problem_of(a, &masked) != FA_OK || chosen(e, &masked) || fa_candidates(e->ctx, &masked, take_candidate, found) != FA_OK ||
        !found->count || found->measured)
        return;
    char now[CONFIG];
    memcpy(now, found->config[0], CONFIG);
    found->count = 0;
    if (ask(e, &without, a->sq, values, &b) == FA_OK && fa_problem_of(&b, &bare) == FA_OK &&
        fa_candidates(e->ctx, &bare, take_candidate, found) == FA_OK && found->count && strcmp(now, found->config[0]) != 0)
        fa_pin(e->ctx, &masked, found->config[0]); /* refused: it stays as it was */
}

/* The cheapest whose workspace finds room. */
static void choose_smaller(fa_ggml_engine *e, const fa_args *a, candidates *found)
{
    fa_problem p = FA_PROBLEM_INIT;
    size_t needs = 0;
    found->count = 0;
    if (fa_workspace_size(e->ctx, a, &needs) != FA_OK || needs <= room_of(e) || fa_problem_of(a, &p) != FA_OK ||
        fa_candidates(e->ctx, &p, take_candidate, found) != FA_OK)
        return;
    for (int32_t i = 0; i < found->count; i++)
        if (fa_pin(e->ctx, &p, found->config[i]) == FA_OK && fa_workspace_size(e->ctx, a, &needs) == FA_OK && needs <= room_of(e))
            return;
    fa_unpin(e->ctx, &p);
}

void fa_ggml_choose(fa_ggml_engine *e, const fa_ggml_claim *c, const fa_args *a)
{
    fa_message before;
    candidates *found = malloc(sizeof *found);
    if (!found)
        return;
    fa_message_keep(&before);
    choose_bare(e, c, a, found);
    choose_smaller(e, a, found);
    fa_message_settle(&before, FA_OK);
    free(found);
}

/* K and V of few bits may need 16 of each element in the workspace: of rows of heads there are 2^n at most. */
static int32_t extent_of(const fa_ggml_claim *c)
{
    int32_t n = 0;
    while (c->kv_dtype && n < 40 && (int64_t)1 << n < (int64_t)c->b * c->sk * c->hkv)
        n++;
    return n;
}

/* One row needs no more than there is, nor does it with more keys of the same class. */
static fa_status fits(fa_ggml_engine *e, const fa_ggml_claim *c)
{
    fa_score_value values[FA_GGML_PARTS];
    fa_ggml_claim most = *c;
    size_t needs = 0;
    fa_args a;
    const int64_t keys = ((int64_t)1 << extent_of(c)) / ((int64_t)c->b * c->hkv);
    most.sk = keys > c->sk ? keys < INT32_MAX ? (int32_t)keys : INT32_MAX : c->sk;
    fa_status st = ask(e, &most, 1, values, &a);
    if (st == FA_OK)
        st = fa_workspace_size(e->ctx, &a, &needs);
    if (st == FA_OK && needs > room_of(e)) {
        fa_ggml_choose(e, &most, &a);
        st = fa_workspace_size(e->ctx, &a, &needs);
    }
    return st != FA_OK || needs <= room_of(e) ? st
                                              : fa_fail(FA_UNSUPPORTED, "it needs %.1f MiB of device memory; accepted: %zu",
                                                        (double)(needs + FA_GGML_MASKS + FA_GGML_CAST) / (1 << 20), e->memory >> 20);
}

fa_status fa_ggml_engine_prepare(fa_ggml_engine *e, const fa_ggml_claim *c)
{
    fa_score_value values[FA_GGML_PARTS];
    fa_problem p = FA_PROBLEM_INIT;
    fa_args a;
    fa_status st = fa_ggml_enter(e);
    if (st != FA_OK)
        return st;
    st = ask(e, c, c->sq, values, &a);
    if (st == FA_OK)
        fa_ggml_choose(e, c, &a);
    if (st == FA_OK)
        st = fa_problem_of(&a, &p);
    if (st == FA_OK)
        st = fa_prepare(e->ctx, &p);
    fa_ggml_leave(e);
    return st;
}

/* Rows begin at multiples of a power of two: of 4 bytes in Q and O always. */
static fa_ggml_class class_of(const fa_ggml_claim *c)
{
    const fa_tensor *t[] = { &c->k, &c->v, &c->q };
    int64_t strides = 16;
    for (int i = 0; i < (c->casts ? 2 : 3); i++)
        strides |= t[i]->sb | t[i]->ss | t[i]->sh;
    return (fa_ggml_class){ c->dtype,          c->kv_dtype, c->v_dtype, c->d, c->dv, c->casts, c->v_in_k, (int32_t)(strides & -strides),
                            parts_of(c, NULL), extent_of(c) };
}

bool fa_ggml_engine_takes(fa_ggml_engine *e, const fa_ggml_claim *c, char *why, size_t n)
{
    const fa_ggml_class is = class_of(c);
    struct class *row = NULL;
    fa_problem p;
    if (c->casts && (int64_t)c->b * c->hq * c->d > FA_GGML_CAST / 2) {
        snprintf(why, n, "a query has %lld elements of all heads and sequences; accepted: %d", (long long)c->b * c->hq * c->d,
                 FA_GGML_CAST / 2);
        return false;
    }
    if (c->max_bias > 0 && c->hq > FA_GGML_HEADS) {
        snprintf(why, n, "max_bias with %d heads; accepted: up to %d", c->hq, FA_GGML_HEADS);
        return false;
    }
    pthread_mutex_lock(&e->mutex);
    for (int32_t i = 0; i < e->classes && !row; i++)
        row = !memcmp(&e->class[i].is, &is, sizeof is) ? &e->class[i] : NULL;
    bool known = row != NULL, takes = known && row->takes;
    if (known && !takes)
        snprintf(why, n, "%s", row->why);
    pthread_mutex_unlock(&e->mutex);
    if (known)
        return takes;
    fa_status st = problem_of(e, c, &p);
    takes = st == FA_OK && fa_supported(e->ctx, &p) == FA_OK && fits(e, c) == FA_OK;
    struct class new = { .is = is, .takes = takes };
    if (!takes)
        snprintf(new.why, sizeof new.why, "%s", fa_last_error());
    snprintf(why, n, "%s", new.why);
    pthread_mutex_lock(&e->mutex);
    if (e->classes < FA_GGML_CLASSES)
        e->class[e->classes++] = new;
    pthread_mutex_unlock(&e->mutex);
    return takes;
}
