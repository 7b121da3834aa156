/* Nodes FLASH_ATTN_EXT as a program's graphs have them, claimed and computed on the simulator, against the operation in fp64. */
#include "gen/format.h"
#include "ggml/rider.h"
#include "ggml/stage.h"
#include "ggml_host.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

typedef enum masks { PLAIN, SCATTERED, CAUSAL, WINDOW, DISTANCES, EACH_HEAD, SOME_HEADS, ALL_SEE_SOME, MASKS } masks;

/* A class of nodes: a kernel or two. */
typedef struct kind {
    int k, v, d, dv;
    masks mask;
    int cap, sinks;
    bool rows; /* as many as a mask is looked at from */
    bool v_in_k;
} kind;

/* One in so many runs by default: of each type, mask and part one. */
static const kind telling[] = {
    { HOST_F16, HOST_F16, 64, 64, SCATTERED, 0, 0, false, false },     { HOST_F16, HOST_F16, 64, 64, CAUSAL, 0, 0, true, false },
    { HOST_F32, HOST_F32, 64, 64, ALL_SEE_SOME, 0, 0, true, false },   { HOST_BF16, HOST_BF16, 36, 24, DISTANCES, 1, 1, true, false },
    { HOST_Q8_0, HOST_Q4_0, 64, 32, SOME_HEADS, 0, 1, false, false },  { HOST_F16, HOST_F16, 288, 272, SCATTERED, 0, 1, false, true },
    { HOST_IQ4_NL, HOST_Q5_1, 32, 64, SCATTERED, 0, 0, false, false },
};
enum { TELLING = sizeof telling / sizeof *telling, EACH = 2, ALL = 400, PER_KIND = 5 };

static fa_context *ctx;
static fa_ggml_engine *engine;
static fa_ggml ggml;

static void open_device(const char *device)
{
    fa_options options = FA_OPTIONS_INIT;
    options.device = device, options.cache_dir = scratch;
    OK(fa_create(&ctx, &options));
    OK(fa_ggml_engine_open_on(&engine, ctx, 0));
}
static void close_device(void)
{
    fa_ggml_engine_close(engine);
    fa_destroy(ctx);
}
static void open_all(void)
{
    char why[200];
    scratch_make();
    open_device("sim:sm_80");
    host_reset(1, NULL, true);
    cr_assert(fa_ggml_open(&ggml, host_find, NULL, why, sizeof why), "%s", why);
}
static void close_all(void)
{
    close_device();
    scratch_remove();
}
TestSuite(ggml_cases, .init = open_all, .fini = close_all, .timeout = 3600);

/* --- a case --- */

static void *memory[16];
static int blocks;
static fa_ggml_tensor *filled(fa_ggml_tensor *t)
{
    t->data = memory[blocks++] = calloc(1, host_bytes(t));
    return t;
}

/* Of a row: numbers in -1 to 1, or what a quantizer makes of them. */
static void fill(fa_ggml_tensor *t, fa_random *r)
{
    float x[576];
    int dtype = FA_F32;
    for (size_t i = 0; fa_ggml_format_row(i); i++)
        if (!strcmp(fa_ggml_format_row(i)->name, ggml.type[t->type].name))
            dtype = fa_ggml_format_row(i)->dtype;
    for (int64_t b = 0; b < t->ne[3]; b++)
        for (int64_t h = 0; h < t->ne[2]; h++)
            for (int64_t i = 0; i < t->ne[1]; i++) {
                char *row = (char *)t->data + (size_t)b * t->nb[3] + (size_t)h * t->nb[2] + (size_t)i * t->nb[1];
                for (int64_t c = 0; c < t->ne[0]; c++)
                    x[c] = (float)fa_random_unit(r) * 2 - 1;
                fa_number_store_row(row, x, t->ne[0], dtype);
            }
}

static int draw(fa_random *r, int least, int most)
{
    return fa_random_within(r, least, most);
}

static fa_ggml_tensor *mask_of(masks form, int64_t sq, int64_t sk, int64_t hq, int64_t b, fa_random *r)
{
    if (form == PLAIN)
        return NULL;
    int64_t heads = form == EACH_HEAD ? hq : form == SOME_HEADS ? hq / 2 : 1;
    fa_ggml_tensor *m = filled(host_tensor(HOST_F16, sk, sq + draw(r, 0, 1) * 3, heads, draw(r, 0, 1) ? b : 1));
    int past = draw(r, 0, (int)(sk / 2)), window = draw(r, 1, (int)sk), seen = draw(r, 1, (int)sk);
    for (int64_t n = 0; n < m->ne[2] * m->ne[3]; n++)
        for (int64_t i = 0; i < m->ne[1]; i++)
            for (int64_t j = 0; j < sk; j++) {
                float x = 0;
                bool hidden = j > i + past;
                if (form == SCATTERED || form == EACH_HEAD || form == SOME_HEADS) {
                    x = (float)fa_random_unit(r) * 2 - 1;
                    hidden = (i / 32 + j / 32 + n) % 3 == 0 || i == 3; /* a row that sees nothing */
                }
                if (form == WINDOW)
                    hidden = hidden || j <= i + past - window;
                if (form == DISTANCES)
                    x = -fabsf((float)(j - i - past));
                if (form == ALL_SEE_SOME)
                    hidden = j >= seen;
                ((uint16_t *)m->data)[(n * m->ne[1] + i) * sk + j] = hidden ? 0xfc00 : fa_number_to_f16(x);
            }
    return m;
}

/* Rows of a cache, whose heads lie side by side in a token, behind tokens that are not this node's. NaN where no key of the mask is seen.
 */
static fa_ggml_tensor *cache_of(int type, int64_t d, int64_t sk, int64_t hkv, int64_t b, fa_random *r)
{
    fa_ggml_tensor *t = filled(host_tensor(type, d, hkv, sk + 3, b));
    fill(t, r);
    fa_ggml_tensor *p = host_permuted(t, 1, 2);
    p->ne[1] = sk;
    return p;
}

static void poison(fa_ggml_tensor *v, const fa_ggml_tensor *m)
{
    if (!m || m->ne[2] > 1 || v->type != HOST_F16)
        return;
    for (int64_t j = 0; j < v->ne[1]; j++) {
        bool seen = false;
        for (int64_t n = 0; n < m->ne[3] && !seen; n++)
            for (int64_t i = 0; i < m->ne[1] && !seen; i++)
                seen = host_value(m, j, i, 0, n) > -INFINITY;
        for (int64_t b = 0; b < v->ne[3] && !seen; b++)
            for (int64_t h = 0; h < v->ne[2]; h++)
                memset((char *)v->data + (size_t)j * v->nb[1] + (size_t)h * v->nb[2] + (size_t)b * v->nb[3], 0xff, (size_t)v->ne[0] * 2);
    }
}

/* Programs ask what is supported before tensors have addresses: the answer is that for the node as it is computed. */
static void ask_before(const fa_ggml_tensor *o, const char *name)
{
    enum { SOURCES = sizeof o->src / sizeof *o->src };
    fa_ggml_tensor node = *o, copy[SOURCES];
    fa_ggml_claim before, after;
    char why[512];
    for (int i = 0; i < SOURCES; i++)
        if (o->src[i]) {
            copy[i] = *o->src[i];
            copy[i].data = NULL;
            copy[i].view_src = o->src[i]->view_src ? o->src[i]->view_src : (fa_ggml_tensor *)(uintptr_t)o->src[i];
            node.src[i] = &copy[i];
        }
    node.data = NULL;
    cr_assert(fa_ggml_claim_node(&ggml, &node, &before, why, sizeof why), "%s: %s", name, why);
    cr_assert(fa_ggml_engine_takes(engine, &before, why, sizeof why), "%s: %s", name, why);
    cr_assert(fa_ggml_claim_node(&ggml, o, &after, why, sizeof why), "%s: %s", name, why);
    after.q.ptr = after.k.ptr = after.v.ptr = after.o.ptr = NULL;
    after.mask = after.sinks = NULL;
    cr_expect_eq(memcmp(&before, &after, sizeof before), 0, "%s: another claim before there are addresses", name);
}

static void check_case(const kind *k, uint64_t seed)
{
    fa_random r;
    char why[512], name[160];
    fa_ggml_claim c;
    fa_ggml_stream *s;
    r.state = seed;
    blocks = 0;
    const int group = draw(&r, 1, 4), hkv = draw(&r, 1, 2), hq = k->mask == SOME_HEADS ? 4 * hkv : group * hkv, b = draw(&r, 1, 2);
    const int sq = k->rows ? draw(&r, 64, 90) : draw(&r, 1, 20), sk = draw(&r, 1, 5) * 32 + (k->mask == PLAIN ? draw(&r, 0, 9) : 0);
    fa_ggml_tensor *packed = filled(host_tensor(HOST_F32, k->d, hq, sq, b)), *q = host_permuted(packed, 1, 2);
    fill(packed, &r);
    const int own = draw(&r, 0, 2) ? b : 1; /* or one cache that all sequences read */
    fa_ggml_tensor *kk = cache_of(k->k, k->d, sk, hkv, own, &r);
    fa_ggml_tensor *v = k->v_in_k ? host_columns(kk, k->dv) : cache_of(k->v, k->dv, sk, hkv, own, &r);
    fa_ggml_tensor *m = mask_of(k->mask, sq, sk, hq, b, &r), *z = NULL;
    poison(v, m);
    if (k->sinks) {
        z = filled(host_tensor(HOST_F32, hq, 1, 1, 1));
        for (int h = 0; h < hq; h++)
            ((float *)z->data)[h] = (float)fa_random_unit(&r) * 20 - 10;
    }
    fa_ggml_tensor *o = filled(host_attention(q, kk, v, m, z, draw(&r, 0, 1) ? 1 / sqrtf((float)k->d) : 0.3f,
                                              k->mask == DISTANCES ? 8.0f : 0.0f, k->cap ? 3.0f : 0.0f));
    snprintf(name, sizeof name, "seed %llu: K %s V %s d %d dv %d mask %d cap %d sinks %d, b %d hq %d hkv %d sq %d sk %d",
             (unsigned long long)seed, ggml.type[k->k].name, ggml.type[k->v].name, k->d, k->dv, (int)k->mask, k->cap, k->sinks, b, hq, hkv,
             sq, sk);
    ask_before(o, name);
    cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why), "%s: %s", name, why);
    cr_assert(fa_ggml_engine_takes(engine, &c, why, sizeof why), "%s: %s", name, why);
    cr_expect_eq(c.v_in_k, k->v_in_k, "%s", name);
    OK(fa_ggml_stream_open(&s, engine));
    fa_ggml_stream_begin(s);
    cr_assert_eq(fa_ggml_stage_run(s, engine, &ggml, o, &c), FA_OK, "%s: %s", name, fa_last_error());
    cr_expect_eq(fa_ggml_stream_counts(s).looks, k->rows && m, "%s", name);
    cr_expect_eq(fa_ggml_stream_counts(s).bands, k->rows && (k->mask == CAUSAL || k->mask == WINDOW || k->mask == ALL_SEE_SOME),
                 "%s: no band", name);
    cr_expect_leq(fa_ggml_stream_counts(s).bytes, FA_GGML_MEMORY << 20, "%s: %lld bytes", name, (long long)fa_ggml_stream_counts(s).bytes);
    fa_ggml_stream_close(s);
    const size_t n = (size_t)b * (size_t)hq * (size_t)sq * (size_t)k->dv;
    double *truth = malloc(n * sizeof *truth), error = 0, size = 0;
    host_attend(o, truth);
    for (size_t i = 0; i < n; i++) {
        const double got = (double)((float *)o->data)[i];
        error += (got - truth[i]) * (got - truth[i]);
        size += truth[i] * truth[i];
    }
    free(truth);
    cr_expect(error <= (c.dtype == FA_BF16 ? 1e-4 : 2e-6) * size, "%s: %g of the squares", name, error / size);
    for (int i = 0; i < blocks; i++)
        free(memory[i]);
}

Test(ggml_cases, claimed_nodes_are_right)
{
    for (int i = 0; i < TELLING && !full(); i++)
        for (uint64_t n = 0; n < EACH; n++)
            check_case(&telling[i], (uint64_t)i * 100 + n);
    int types[32][2], pairs = 0; /* each type that is claimed, and two in one node */
    for (size_t i = 0; fa_ggml_format_row(i); i++)
        for (int t = 0; t < FA_GGML_TYPES && pairs < 31; t++)
            if (!strcmp(fa_ggml_format_row(i)->name, ggml.type[t].name))
                types[pairs][0] = types[pairs][1] = t, pairs++;
    types[pairs][0] = HOST_Q8_0, types[pairs][1] = HOST_Q4_0, pairs++;
    static const int dims[][2] = { { 64, 64 }, { 128, 128 }, { 96, 64 }, { 40, 40 }, { 256, 256 }, { 72, 80 }, { 576, 512 }, { 320, 256 } };
    enum { DIMS = sizeof dims / sizeof *dims };
    for (int i = 0; i < ALL / PER_KIND && full(); i++) {
        const int pair = i % pairs, *size = dims[i / pairs % DIMS];
        kind k = { types[pair][0], types[pair][1], size[0], size[1], (masks)(i * 3 % MASKS), i % 5 == 0, i % 4 == 1, i % 2 == 0, false };
        k.v_in_k = k.d == 576 && (k.k == HOST_F16 || k.k == HOST_BF16);
        if (ggml.type[k.k].block > 1) /* of d above 256 no kernel of few bits has a mask */
            k.d = k.d > 256 ? 256 : (k.d + 31) / 32 * 32, k.dv = k.dv > 256 ? 256 : (k.dv + 31) / 32 * 32;
        for (uint64_t n = 0; n < PER_KIND; n++)
            check_case(&k, 10000 + (uint64_t)i * 100 + n);
    }
}

/* From sm_90 on the rows of Q are rounded by a kernel that may begin early, as what comes after them; beside blocks they are read in fp32.
 */
Test(ggml_cases, launches_that_begin_early_are_right)
{
    close_device();
    open_device("sim:sm_90a");
    check_case(&telling[0], 1);
    check_case(&telling[4], 1);
}

/* What the library does not compute, or not in so much memory, is left with the reason, class by class and not by what was asked first. */
Test(ggml_cases, what_finds_no_kernel_or_no_room_is_left)
{
    fa_ggml_claim c;
    char why[512];
    static const struct {
        int type, d, dv, sk;
        bool masked;
        const char *says; /* NULL: it is claimed */
        int heads;        /* of Q, where not 4 */
        float max_bias;
    } rows[] = {
        { HOST_Q8_0, 256, 256, 64, true, NULL, 0, 0 },
        { HOST_Q8_0, 320, 256, 64, true, NULL, 0, 0 },
        { HOST_Q8_0, 320, 256, 64, false, NULL, 0, 0 }, /* 16 bits of K and V are made before */
        { HOST_Q8_0, 320, 256, 65536, false, "it needs 149.1 MiB of device memory; accepted: 16", 0, 0 },
        { HOST_Q8_0, 320, 256, 128, false, NULL, 0, 0 },
        { HOST_F16, 576, 512, 65536, true, NULL, 0, 0 },
        { HOST_F16, 640, 512, 64, false, "d is 640; accepted: 1 to 576", 0, 0 },
        { HOST_F16, 64, 64, 64, false, "a query has 2228224 elements of all heads and sequences; accepted: 2097152", 34816, 0 },
        { HOST_F32, 64, 64, 64, true, "max_bias with 1026 heads; accepted: up to 1024", 1026, 8 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_ggml_tensor *q = host_permuted(host_tensor(HOST_F32, rows[i].d, rows[i].heads ? rows[i].heads : 4, 1, 1), 1, 2);
        fa_ggml_tensor *k = host_permuted(host_tensor(rows[i].type, rows[i].d, 2, rows[i].sk, 1), 1, 2);
        fa_ggml_tensor *v = host_permuted(host_tensor(rows[i].type, rows[i].dv, 2, rows[i].sk, 1), 1, 2);
        fa_ggml_tensor *m = rows[i].masked ? host_tensor(HOST_F16, rows[i].sk, 1, 1, 1) : NULL;
        cr_assert(fa_ggml_claim_node(&ggml, host_attention(q, k, v, m, NULL, 0.1f, rows[i].max_bias, 0), &c, why, sizeof why), "%zu: %s", i,
                  why);
        why[0] = 0;
        cr_expect_eq(fa_ggml_engine_takes(engine, &c, why, sizeof why), !rows[i].says, "%zu: %s", i, why);
        cr_expect(!rows[i].says || strstr(why, rows[i].says), "%zu: %s", i, why);
    }
}

/* Of a prompt over blocks 16 bits are made for some KV heads at a time, where those of all find no room: of sinks and results, too, each
 * launch has its part. */
Test(ggml_cases, heads_in_portions_are_those_of_one_launch)
{
    fa_random r;
    fa_ggml_claim c;
    fa_ggml_stream *s;
    fa_ggml_engine *small;
    char why[512];
    const int sq = 64, sk = 1056, heads = 4, hkv = 4, d = 64, n = sq * heads * d;
    r.state = 9;
    blocks = 0;
    fa_ggml_tensor *packed = filled(host_tensor(HOST_F32, d, heads, sq, 1)), *q = host_permuted(packed, 1, 2);
    fill(packed, &r);
    fa_ggml_tensor *kk = cache_of(HOST_Q8_0, d, sk, hkv, 1, &r), *v = cache_of(HOST_Q4_0, d, sk, hkv, 1, &r);
    fa_ggml_tensor *m = filled(host_tensor(HOST_F16, sk, sq, 1, 1)), *z = filled(host_tensor(HOST_F32, heads, 1, 1, 1));
    for (int i = 0; i < sq; i++)
        for (int j = 0; j < sk; j++)
            ((uint16_t *)m->data)[i * sk + j] = j > i + 900 ? 0xfc00 : 0;
    for (int h = 0; h < heads; h++)
        ((float *)z->data)[h] = (float)(h - 2);
    fa_ggml_tensor *o = filled(host_attention(q, kk, v, m, z, 0.125f, 0, 0));
    OK(fa_ggml_engine_open_on(&small, ctx, 6));
    cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why), "%s", why);
    cr_assert(fa_ggml_engine_takes(small, &c, why, sizeof why), "%s", why);
    OK(fa_ggml_stream_open(&s, small));
    fa_ggml_stream_begin(s);
    OK(fa_ggml_stage_run(s, small, &ggml, o, &c));
    cr_expect_geq(fa_ggml_stream_counts(s).launches, 2, "%lld", (long long)fa_ggml_stream_counts(s).launches);
    cr_expect_leq(fa_ggml_stream_counts(s).bytes, 6 << 20);
    fa_ggml_stream_close(s);
    fa_ggml_engine_close(small);
    double *truth = malloc((size_t)n * sizeof *truth), error = 0, size = 0;
    host_attend(o, truth);
    for (int i = 0; i < n; i++)
        error += pow((double)((float *)o->data)[i] - truth[i], 2), size += truth[i] * truth[i];
    cr_expect(error < 2e-6 * size, "%g of the squares", error / size);
    free(truth);
    for (int i = 0; i < blocks; i++)
        free(memory[i]);
}

/* Q of more bytes than its room: the rows of a node go in portions, of which each has its part of the mask, of tiles, and its diagonal. */
Test(ggml_cases, rows_in_portions_are_those_of_one_launch)
{
    if (!full()) /* some thousand rows on the simulator */
        return;
    fa_random r;
    fa_ggml_claim c;
    fa_ggml_stream *s;
    char why[512];
    r.state = 5;
    for (int band = 0; band < 2; band++) {
        blocks = 0;
        const int sq = 1100, sk = 64, heads = 64;
        fa_ggml_tensor *packed = filled(host_tensor(HOST_F32, 64, heads, sq, 1)), *q = host_permuted(packed, 1, 2);
        fill(packed, &r);
        fa_ggml_tensor *kk = cache_of(HOST_F16, 64, sk, 1, 1, &r), *v = cache_of(HOST_F16, 64, sk, 1, 1, &r);
        fa_ggml_tensor *m = filled(host_tensor(HOST_F16, sk, sq, 1, 1));
        for (int i = 0; i < sq; i++)
            for (int j = 0; j < sk; j++)
                ((uint16_t *)m->data)[i * sk + j] = (band ? j > i : (i / 16 + j / 16) % 2) ? 0xfc00 : 0;
        fa_ggml_tensor *o = filled(host_attention(q, kk, v, m, NULL, 0.125f, 0, 0));
        cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why), "%s", why);
        OK(fa_ggml_stream_open(&s, engine));
        fa_ggml_stream_begin(s);
        OK(fa_ggml_stage_run(s, engine, &ggml, o, &c));
        cr_expect_geq(fa_ggml_stream_counts(s).launches, 2);
        cr_expect_eq(fa_ggml_stream_counts(s).bands, band);
        fa_ggml_stream_close(s);
        double *truth = malloc((size_t)sq * heads * 64 * sizeof *truth), most = 0;
        host_attend(o, truth);
        for (int i = 0; i < sq * heads * 64; i++)
            most = fmax(most, fabs(truth[i] - (double)((float *)o->data)[i]));
        cr_expect(most < 5e-3, "%g", most);
        free(truth);
        for (int i = 0; i < blocks; i++)
            free(memory[i]);
    }
}
