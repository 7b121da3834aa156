/* The rider on a registry CUDA of our own, whose devices' memory and streams are the simulator's: which nodes it takes out of a graph, in
 * which order what runs, on which stream; what happens where something fails. */
#include "ggml/arguments.h"
#include "ggml/report.h"
#include "ggml/ride.h"
#include "ggml/seam.h"
#include "ggml_host.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "verify/operands/number.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
enum { D = 32, HEADS = 2, KEYS = 64, LINES = 16 };

static fa_context *ctx;
static fa_entered in;
static cu_driver table; /* the simulator's, with launches that may fail */
static bool launches_fail;
static char lines[LINES][512];
static int told;

static void line(const char *text)
{
    snprintf(lines[told++ % LINES], sizeof lines[0], "%s", text);
}
static bool was_told(const char *words)
{
    for (int i = 0; i < told && i < LINES; i++)
        if (strstr(lines[i], words))
            return true;
    return false;
}

static __typeof__(cuLaunchKernel) *real_launch;
static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z, unsigned shared, CUstream s,
                       void **params, void **extra)
{
    return launches_fail ? CUDA_ERROR_LAUNCH_FAILED : real_launch(f, gx, gy, gz, x, y, z, shared, s, params, extra);
}

static void open_all(void)
{
    fa_options options = FA_OPTIONS_INIT;
    fa_device device;
    scratch_make();
    options.cache_dir = getenv("FAGEN_CACHE_DIR"); /* tests of the suite share what is compiled */
    OK(fa_device_open(&device, "sim:sm_80"));
    table = *device.driver;
    real_launch = table.cuLaunchKernel;
    table.cuLaunchKernel = launch;
    OK(fa_create_on(&ctx, &options, &table, 0));
    OK(fa_context_enter(ctx, &in));
    memset(&host, 0, sizeof host);
    host_attends = true;
    fa_ggml_tell_to(line);
    told = 0;
}
static void drop_copies(void);
static void close_all(void)
{
    drop_copies();
    fa_ggml_rider_unload();
    fa_context_leave(ctx, &in);
    fa_destroy(ctx);
    scratch_remove();
}
TestSuite(ggml_rider, .init = open_all, .fini = close_all, .timeout = 300);

/* --- a graph --- */

/* Tensors in device memory, with what they hold on the host, for the truth. */
static void *device_memory(fa_ggml_tensor *t, bool random)
{
    static uint64_t state = 1;
    size_t bytes = host_bytes(t);
    unsigned char *x = calloc(1, bytes);
    for (size_t i = 0; random && i < bytes / (t->type == HOST_F16 ? 2 : 4); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float y = (float)(int32_t)(state >> 33) / (float)(1u << 30) - 1;
        uint16_t half = fa_number_to_f16(y);
        memcpy(x + i * (t->type == HOST_F16 ? 2 : 4), t->type == HOST_F16 ? (void *)&half : (void *)&y, t->type == HOST_F16 ? 2 : 4);
    }
    OK(fa_alloc(ctx, &t->data, bytes));
    OK(fa_copy(ctx, t->data, x, bytes, FA_TO_DEVICE));
    free(x);
    return t->data;
}

/* staged -> Q -> attention -> copy: what comes out is right only if all ran, in that order. */
typedef struct chain {
    fa_ggml_tensor *staged, *q, *k, *v, *mask, *o, *out;
} chain;

static chain make_chain(int sq, bool causal)
{
    chain c = { .staged = host_tensor(HOST_F32, D, sq, HEADS, 1) };
    device_memory(c.staged, true);
    c.q = host_copy(c.staged);
    device_memory(c.q, false);
    c.k = host_tensor(HOST_F16, D, KEYS + sq, 1, 1);
    c.v = host_tensor(HOST_F16, D, KEYS + sq, 1, 1);
    device_memory(c.k, true);
    device_memory(c.v, true);
    if (causal) {
        uint16_t *m = malloc((size_t)(KEYS + sq) * (size_t)sq * 2);
        c.mask = host_tensor(HOST_F16, KEYS + sq, sq, 1, 1);
        device_memory(c.mask, false);
        for (int i = 0; i < sq; i++)
            for (int j = 0; j < KEYS + sq; j++)
                m[i * (KEYS + sq) + j] = j > i + KEYS ? 0xfc00 : 0;
        OK(fa_copy(ctx, c.mask->data, m, host_bytes(c.mask), FA_TO_DEVICE));
        free(m);
    }
    c.o = host_attention(c.q, c.k, c.v, c.mask, NULL, 0.25f, 0, 0);
    device_memory(c.o, false);
    c.out = host_copy(c.o);
    device_memory(c.out, false);
    return c;
}

static void *kept[256];
static int copied;
static void drop_copies(void)
{
    while (copied)
        free(kept[--copied]);
}

/* A tensor as it is now, in host memory, until the test ends. */
static fa_ggml_tensor *fetched(const fa_ggml_tensor *t)
{
    fa_ggml_tensor *h = host_tensor(t->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
    cr_assert_lt(copied, 256);
    h->data = kept[copied++] = malloc(host_bytes(t));
    OK(fa_copy(ctx, h->data, t->data, host_bytes(t), FA_FROM_DEVICE));
    return h;
}

static double error_of(const chain *c)
{
    fa_ggml_tensor *o =
        host_attention(fetched(c->staged), fetched(c->k), fetched(c->v), c->mask ? fetched(c->mask) : NULL, NULL, 0.25f, 0, 0);
    const fa_ggml_tensor *got = fetched(c->out);
    size_t n = host_bytes(got) / 4;
    double *truth = malloc(n * sizeof *truth), most = 0;
    host_attend(o, truth);
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(truth[i] - (double)((float *)got->data)[i]));
    free(truth);
    return most;
}

static fa_ggml_reg *load(int tier)
{
    fa_ggml_rider_options o = { .find = host_find, .ctx = ctx };
    char why[200], text[16];
    snprintf(text, sizeof text, "tier=%d,all", tier); /* rules know of no such small nodes */
    fa_ggml_settings_read(&o.settings, text, why, sizeof why);
    return fa_ggml_rider_load(&o);
}

static int32_t compute(fa_ggml_backend *b, int n, fa_ggml_tensor **nodes, uint64_t uid)
{
    return b->i.graph_compute(b, host_graph(n, nodes, uid));
}

/* --- tests --- */

Test(ggml_rider, a_claimed_node_runs_between_its_neighbours)
{
    static const struct {
        bool known;
        int tier, ran;
        const char *trace;
    } rows[] = { { true, 2, 2, "c|c|" }, { false, 2, 1, "c|rwc|" }, { true, 1, 1, "c|rwc|" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        host_reset(1, &table, rows[i].known);
        cr_assert_not_null(load(rows[i].tier));
        fa_ggml_backend *b = host_backend(0);
        chain c = make_chain(3, false);
        fa_ggml_tensor *nodes[] = { c.q, c.o, c.out };
        cr_expect_eq(compute(b, 3, nodes, 0), 0);
        cr_expect_str_eq(host_trace, rows[i].trace, "row %zu: %s", i, host_trace);
        cr_expect_lt(error_of(&c), 2e-3);
        fa_ggml_rider_counts n = fa_ggml_rider_count();
        cr_expect(n.tier == rows[i].ran && n.nodes.nodes == 1 && n.parts == 2 && n.failures == 0 && n.nodes.casts == 1);
        host_free(b);
        fa_ggml_rider_unload();
    }
}

/* Two layers share one look at their mask; a graph that comes again looks again. */
Test(ggml_rider, a_mask_is_looked_at_once_in_a_graph)
{
    fa_ggml_rider_options o = { .find = host_find, .ctx = ctx, .settings = { .tier = 2, .registry = "CUDA" } };
    host_reset(1, &table, false);
    fa_ggml_rider_load(&o);
    fa_ggml_backend *b = host_backend(0);
    chain c = make_chain(200, true), d = c;
    d.o = host_attention(c.q, c.k, c.v, c.mask, NULL, 0.25f, 0, 0);
    device_memory(d.o, false);
    d.out = host_copy(d.o);
    device_memory(d.out, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, d.o, c.out, d.out };
    for (int n = 1; n <= 2; n++) {
        cr_expect_eq(compute(b, 5, nodes, 0), 0);
        fa_ggml_counts all = fa_ggml_rider_count().nodes;
        cr_expect(all.nodes == 2 * n && all.looks == n && all.bands == n, "%lld nodes, %lld looks, %lld bands", (long long)all.nodes,
                  (long long)all.looks, (long long)all.bands);
    }
    cr_expect_str_eq(host_trace, "c|rwrwrwrwcc|c|rwrwrwrwcc|", "%s", host_trace);
    cr_expect_lt(error_of(&c), 2e-3);
    cr_expect_lt(error_of(&d), 2e-3);
    host_free(b);
}

/* Tier 3: the second time a number comes its graph is captured, then replayed: with what tensors hold by then, and none of ggml's calls. */
Test(ggml_rider, a_graph_that_comes_again_is_replayed)
{
    host_reset(1, &table, true);
    load(3);
    fa_ggml_backend *b = host_backend(0);
    chain c = make_chain(3, false), other = make_chain(3, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, c.out }, *routed[] = { c.q, c.o, c.out, host_copy(c.o) };
    for (int n = 0; n < 4; n++) {
        float x[D * 3 * HEADS];
        for (int i = 0; i < D * 3 * HEADS; i++)
            x[i] = (float)((i * 7 + n * 13) % 11) / 4 - 1;
        OK(fa_copy(ctx, c.staged->data, x, sizeof x, FA_TO_DEVICE));
        cr_expect_eq(compute(b, 3, nodes, 77), 0);
        cr_expect_lt(error_of(&c), 2e-3, "call %d", n);
    }
    fa_ggml_rider_counts all = fa_ggml_rider_count();
    cr_expect(all.captures == 1 && all.replays == 3 && all.tier == 3, "%lld captures, %lld replays, tier %d", (long long)all.captures,
              (long long)all.replays, all.tier);
    cr_expect_str_eq(host_trace, "c|c|c|c|", "%s", host_trace);
    /* another number is another graph; without a number, and with routed products, nothing is captured */
    fa_ggml_tensor *others[] = { other.q, other.o, other.out };
    cr_expect_eq(compute(b, 3, others, 78), 0);
    cr_expect_lt(error_of(&other), 2e-3);
    routed[3]->data = c.out->data;
    routed[3]->op = HOST_ROUTED;
    for (int n = 0; n < 3; n++)
        cr_expect(compute(b, 4, routed, 79) == 0 && compute(b, 3, nodes, 0) == 0);
    cr_expect_eq(fa_ggml_rider_count().captures, 1);
    /* one token's product with blocks does not wait */
    fa_ggml_tensor *one = host_tensor(HOST_F32, D, HEADS, 1, 1), *blocks = host_tensor(HOST_Q8_0, D, HEADS, 1, 1);
    one->op = HOST_ROUTED;
    one->src[0] = blocks;
    one->data = c.out->data;
    fa_ggml_tensor *single[] = { c.q, c.o, c.out, one };
    for (int n = 0; n < 2; n++)
        cr_expect_eq(compute(b, 4, single, 80), 0);
    cr_expect_eq(fa_ggml_rider_count().captures, 2);
    host_free(b);
}

/* Graphs without a node of ours: handed on as they are; with tier 3, where ggml-cuda's own graphs are off, captured here. */
Test(ggml_rider, graphs_that_are_theirs)
{
    for (int tier = 2; tier <= 3; tier++) {
        host_reset(1, &table, true);
        load(tier);
        fa_ggml_backend *b = host_backend(0);
        chain c = make_chain(3, false);
        fa_ggml_tensor *nodes[] = { c.q };
        for (int n = 0; n < 4; n++)
            cr_expect_eq(compute(b, 1, nodes, 5), 0);
        fa_ggml_rider_counts all = fa_ggml_rider_count();
        cr_expect_str_eq(host_trace, tier == 2 ? "c|c|c|c|" : "c|c|", "tier %d: %s", tier, host_trace);
        cr_expect(all.captures == (tier == 3) && all.replays == (tier == 3 ? 3 : 0) && all.nodes.nodes == 0, "tier %d", tier);
        host_free(b);
        fa_ggml_rider_unload();
    }
}

/* A graph that comes again under its number is not asked about again. */
Test(ggml_rider, a_number_keeps_its_plan)
{
    host_reset(1, &table, true);
    load(2);
    fa_ggml_backend *b = host_backend(0);
    chain c = make_chain(3, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, c.out };
    const int64_t numbers[] = { 5, 5, 6, 5, 0, 0, 7, 8, 9, 10, 11, 12, 13, 14, 5 },
                  made[] = { 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        cr_expect_eq(compute(b, 3, nodes, (uint64_t)numbers[i]), 0);
        cr_expect_eq(fa_ggml_rider_count().plans, made[i], "call %zu: %lld", i, (long long)fa_ggml_rider_count().plans);
    }
    cr_expect_eq(compute(b, 2, nodes, 5), 0); /* of another size: another graph */
    cr_expect_eq(fa_ggml_rider_count().plans, 14);
    cr_expect_lt(error_of(&c), 2e-3);
    host_free(b);
}

Test(ggml_rider, what_is_not_claimed_stays_with_them)
{
    host_reset(1, &table, true);
    load(2);
    fa_ggml_backend *b = host_backend(0);
    chain c = make_chain(3, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, c.out }, *copies[] = { c.q };
    c.k->type = HOST_I32;
    cr_expect_eq(compute(b, 3, nodes, 0), 0);
    cr_expect_str_eq(host_trace, "cAc|", "one part: %s", host_trace);
    cr_expect(was_told("CUDA0: left to ggml: K is of another type") || was_told("CUDA0: left to ggml: K is i32; accepted: f32"), "%s",
              lines[0]);
    compute(b, 3, nodes, 0);
    cr_expect_eq(told, 1);
    c.k->type = HOST_F16;
    c.o->flags = 0; /* others of the graph have the flag */
    host_trace[0] = 0;
    cr_expect_eq(compute(b, 3, nodes, 0), 0);
    cr_expect_str_eq(host_trace, "cAc|", "%s", host_trace);
    c.q->flags = c.out->flags = 0; /* none has: a version without it */
    host_trace[0] = 0;
    cr_expect_eq(compute(b, 3, nodes, 0), 0);
    cr_expect_str_eq(host_trace, "c|c|", "%s", host_trace);
    host_trace[0] = 0;
    cr_expect_eq(compute(b, 1, copies, 0), 0);
    cr_expect_str_eq(host_trace, "c|", "%s", host_trace);
    host_free(b);
}

/* Nodes that follow each other share one fork. */
Test(ggml_rider, neighbours_share_a_fork)
{
    host_reset(1, &table, false);
    load(2);
    fa_ggml_backend *b = host_backend(0);
    chain c = make_chain(3, false), d = c;
    d.o = host_attention(c.q, c.k, c.v, c.mask, NULL, 0.25f, 0, 0);
    device_memory(d.o, false);
    d.out = host_copy(d.o);
    device_memory(d.out, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, d.o, c.out, d.out };
    cr_expect_eq(compute(b, 5, nodes, 0), 0);
    cr_expect_str_eq(host_trace, "c|rwcc|", "%s", host_trace);
    cr_expect_lt(error_of(&c), 2e-3);
    cr_expect_lt(error_of(&d), 2e-3);
    host_free(b);
}

/* What a rule says is theirs where they can, unless all is asked for: by the mask, or whatever it is. */
Test(ggml_rider, what_is_slower_is_theirs)
{
    for (int all = 0; all < 2; all++) {
        fa_ggml_rider_options o = { .find = host_find, .ctx = ctx, .settings = { .tier = 2, .all = all, .registry = "CUDA" } };
        host_reset(1, &table, true);
        fa_ggml_rider_load(&o);
        fa_ggml_backend *b = host_backend(0);
        chain c = make_chain(200, true);
        const uint16_t hidden = 0xfc00;
        fa_ggml_tensor *nodes[] = { c.q, c.o, c.out };
        cr_expect_eq(compute(b, 3, nodes, 9), 0);
        cr_expect_str_eq(host_trace, "c|c|", "a band: %s", host_trace);
        OK(fa_copy(ctx, (char *)c.mask->data + 10, &hidden, 2, FA_TO_DEVICE));
        host_trace[0] = 0;
        cr_expect_eq(compute(b, 3, nodes, 9), 0);
        cr_expect_str_eq(host_trace, all ? "c|c|" : "c|A|c|", "no band: %s", host_trace);
        if (all)
            cr_expect_lt(error_of(&c), 2e-3);
        host_attends = false; /* they cannot */
        host_trace[0] = 0;
        cr_expect_eq(compute(b, 3, nodes, 12), 0);
        cr_expect_str_eq(host_trace, "c|c|", "%s", host_trace);
        cr_expect_lt(error_of(&c), 2e-3);
        host_attends = true;
        fa_ggml_tensor *kv[] = { c.k, c.v };
        for (int i = 0; i < 2 && !all; i++) {
            kv[i]->type = HOST_Q8_0;
            kv[i]->nb[0] = kv[i]->nb[1] = 34;
            kv[i]->nb[2] = kv[i]->nb[3] = 34 * 264;
        }
        host_trace[0] = 0;
        cr_expect_eq(compute(b, 3, nodes, 11), 0);
        cr_expect_str_eq(host_trace, all ? "c|c|" : "c|A|c|", "few bits: %s", host_trace);
        chain few = make_chain(3, false);
        fa_ggml_tensor *whole[] = { few.q, few.o, few.out };
        host_trace[0] = 0;
        cr_expect_eq(compute(b, 3, whole, 10), 0);
        cr_expect_str_eq(host_trace, all ? "c|c|" : "cAc|", "the graph is handed on: %s", host_trace);
        cr_expect(all || was_told("CUDA0: left to ggml, which is faster: few rows of at most 96 columns"));
        cr_expect_eq(fa_ggml_rider_count().failures, 0);
        host_free(b);
        fa_ggml_rider_unload();
    }
}

/* What they refuse is claimed only where a backend came through the hook. */
Test(ggml_rider, claims_beyond_theirs)
{
    host_reset(1, &table, true);
    load(2);
    fa_ggml_device *d = host_device(0);
    chain c = make_chain(3, false);
    host_attends = false;
    cr_expect_not(d->i.supports_op(d, c.o));
    fa_ggml_backend *b = host_backend(0);
    cr_expect(d->i.supports_op(d, c.o));
    cr_expect(d->i.supports_op(d, c.q), "theirs");
    c.k->type = HOST_I32;
    cr_expect_not(d->i.supports_op(d, c.o));
    host_free(b);
}

/* A launch that fails: they compute that node and all that come later, and one line tells. */
Test(ggml_rider, after_a_failure_all_is_theirs)
{
    host_reset(1, &table, true);
    load(2);
    fa_ggml_backend *b = host_backend(0);
    chain c = make_chain(3, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, c.out };
    cr_expect_eq(compute(b, 3, nodes, 5), 0);
    launches_fail = true;
    host_trace[0] = 0;
    cr_expect_eq(compute(b, 3, nodes, 5), 0);
    cr_expect_str_eq(host_trace, "c|A|c|", "%s", host_trace);
    cr_expect(told == 1 && was_told("CUDA0 is ggml's alone from here on: FA_DEVICE"), "%d: %s", told, lines[0]);
    launches_fail = false;
    host_trace[0] = 0;
    cr_expect_eq(compute(b, 3, nodes, 5), 0);
    cr_expect_str_eq(host_trace, "cAc|", "%s", host_trace);
    cr_expect(told == 1 && fa_ggml_rider_count().failures == 1);
    float *got = fetched(c.out)->data;
    cr_expect_eq(memcmp(got, "\7\7\7\7", 4), 0);
    host_free(b);
}

/* What is refused, here a fifth list of slopes where graphs hold four: they compute that node, and the device stays. */
Test(ggml_rider, a_node_that_is_refused_is_theirs_alone)
{
    host_reset(1, &table, true);
    load(3);
    fa_ggml_backend *b = host_backend(0);
    for (int i = 0; i < 6; i++) {
        chain c = make_chain(3, true);
        c.out->src[0] = c.o = host_attention(c.q, c.k, c.v, c.mask, NULL, 0.25f, (float)(i < 5 ? i + 1 : 1), 0);
        device_memory(c.o, false);
        fa_ggml_tensor *nodes[] = { c.q, c.o, c.out };
        for (int times = i < 4 ? 2 : 1; times > 0; times--) {
            host_trace[0] = 0;
            cr_expect_eq(compute(b, 3, nodes, 20 + (uint64_t)i), 0);
        }
        cr_expect_eq(strchr(host_trace, 'A') != NULL, i == 4, "%d: %s", i, host_trace);
    }
    cr_expect(told == 1 && was_told("CUDA0: left to ggml: max_bias: graphs hold 4 lists of slopes"), "%d: %s", told, lines[0]);
    cr_expect_eq(fa_ggml_rider_count().failures, 0);
    host_free(b);
}

/* No device: the program runs on. */
Test(ggml_rider, without_a_device_all_is_theirs)
{
    fa_ggml_rider_options o = { .find = host_find };
    char why[200];
    host_reset(1, &table, true);
    fa_ggml_settings_read(&o.settings, "sim:sm_1", why, sizeof why);
    cr_assert_not_null(fa_ggml_rider_load(&o));
    fa_ggml_backend *b = host_backend(0);
    chain c = make_chain(3, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, c.out };
    cr_expect_eq(compute(b, 3, nodes, 0), 0);
    cr_expect_eq(compute(b, 3, nodes, 0), 0);
    cr_expect_str_eq(host_trace, "cAc|cAc|", "%s", host_trace);
    cr_expect(told == 1 && was_told("CUDA0 stays ggml's alone: FA_INVALID"), "%d: %s", told, lines[0]);
    host_free(b);
}

/* Loaded twice, hooked once; off, and a ggml that is not known: no entry is another one than before. */
Test(ggml_rider, hooks)
{
    host_reset(2, &table, true);
    fa_ggml_device *d = host_device(0), before = *d;
    fa_ggml_reg *r = load(2);
    cr_assert_not_null(r);
    cr_expect_str_eq(r->i.get_name(r), "fagen");
    cr_expect_eq(r->i.device_count(r), 0);
    cr_expect_eq(r->api_version, 2);
    fa_ggml_device hooked = *d;
    cr_expect(hooked.i.supports_op != before.i.supports_op && hooked.i.init_backend != before.i.init_backend);
    cr_expect_eq(load(2), r);
    cr_expect_eq(memcmp(d, &hooked, sizeof hooked), 0);
    cr_expect_eq(fa_ggml_rider_count().devices, 2);
    fa_ggml_rider_unload();
    cr_expect_eq(memcmp(d, &before, sizeof before), 0);

    fa_ggml_rider_options off = { .find = host_find, .ctx = ctx, .settings = { .off = true, .registry = "CUDA" } };
    cr_assert_not_null(fa_ggml_rider_load(&off));
    cr_expect_eq(memcmp(d, &before, sizeof before), 0);
    fa_ggml_rider_unload();

    setenv("GGML_CUDA_GRAPH_OPT", "1", 1);
    load(2);
    cr_expect_eq(memcmp(d, &before, sizeof before), 0);
    unsetenv("GGML_CUDA_GRAPH_OPT");
    fa_ggml_rider_unload();

    fa_ggml_tell_to(line);
    told = 0;
    host.overhead = 8;
    cr_expect_null(load(2));
    cr_expect_eq(memcmp(d, &before, sizeof before), 0);
    cr_expect(was_told("this ggml is left alone: ggml_tensor_overhead() is 376"), "%s", lines[0]);
}

/* A backend that is not as known is left as it is, and so is every later one of its device. */
Test(ggml_rider, a_backend_that_is_not_known)
{
    host_reset(1, &table, true);
    load(2);
    host.backend_shift = 1;
    fa_ggml_backend *b = host_backend(0);
    cr_expect(was_told("CUDA0 stays ggml's alone: the backend's device does not lie where"), "%s", lines[0]);
    host.backend_shift = 0;
    fa_ggml_backend *good = host_backend(0);
    chain c = make_chain(3, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, c.out };
    cr_expect_eq(compute(good, 3, nodes, 0), 0);
    cr_expect_str_eq(host_trace, "cAc|", "%s", host_trace);
    host_free(good);
    b->i.free(b);
}

/* The functions of seam.h, as a ggml that is built with a call of them uses them. */
Test(ggml_rider, the_seam)
{
    fagen_ggml_functions f = { .size = sizeof f };
    char report[1024];
    host_reset(1, NULL, true);
#define TAKE(name)                         \
    {                                      \
        void *at = host_find(NULL, #name); \
        memcpy(&f.name, &at, sizeof at);   \
    }
    TAKE(ggml_tensor_overhead);
    TAKE(ggml_op_name);
    TAKE(ggml_type_name);
    TAKE(ggml_type_size);
    TAKE(ggml_blck_size);
    fagen_ggml_seam *s = fagen_ggml_seam_open(&f, 0, "sim:sm_80");
    cr_assert_not_null(s, "%s", lines[0]);
    chain c = make_chain(3, false);
    cr_expect_eq(fagen_ggml_supports(s, (struct ggml_tensor *)c.o), 1);
    cr_expect_eq(fagen_ggml_supports(s, (struct ggml_tensor *)c.q), 0);
    cr_expect_eq(fagen_ggml_supports(NULL, (struct ggml_tensor *)c.o), 0);
    c.q->data = c.staged->data;
    fagen_ggml_begin(s);
    cr_expect_eq(fagen_ggml_compute(s, (struct ggml_tensor *)c.o, NULL, 0), 1);
    c.out->data = c.o->data;
    cr_expect_lt(error_of(&c), 2e-3);
    /* a kernel that is not there is not compiled while the stream is captured: that node is theirs, the next ones are not */
    CUstream stream;
    CUgraph graph;
    chain other = make_chain(200, false);
    other.q->data = other.staged->data;
    cr_assert_eq(table.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    cr_assert_eq(table.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    cr_expect_eq(fagen_ggml_compute(s, (struct ggml_tensor *)other.o, stream, 1), 0);
    table.cuStreamEndCapture(stream, &graph);
    cr_expect(was_told("left to ggml: stream: it is being captured"), "%s", lines[0]);
    cr_expect_eq(fagen_ggml_compute(s, (struct ggml_tensor *)other.o, stream, 0), 1);
    table.cuStreamSynchronize(stream);
    other.out->data = other.o->data;
    cr_expect_lt(error_of(&other), 2e-3);
    table.cuGraphDestroy(graph);
    table.cuStreamDestroy(stream);
    fagen_ggml_seam_close(s);
    f.size = 8;
    cr_expect_null(fagen_ggml_seam_open(&f, 0, "sim:sm_80"));
    cr_expect_gt(fagen_ggml_report(report, sizeof report), 100);
    cr_expect(strstr(report, "q8_0, q4_0") && strstr(report, "FAGEN_GGML is not set"), "%s", report);
}

/* Of decoding under a mask, which was never measured, what runs is what would run without one: the keys are split over the chip. */
static int take_config(void *user, const fa_candidate_info *row)
{
    snprintf(user, 512, "%s", row->config);
    return 1;
}
Test(ggml_rider, few_rows_run_what_they_would_without_a_mask)
{
    fa_options options = FA_OPTIONS_INIT;
    fa_score_value values[FA_GGML_PARTS];
    fa_problem problem[2] = { FA_PROBLEM_INIT, FA_PROBLEM_INIT };
    char config[2][512] = { "", "" }, why[256];
    fa_ggml_claim c[2];
    fa_ggml_engine *e;
    fa_context *h100;
    fa_ggml ggml;
    fa_args a;
    options.device = "sim:h100", options.cache_dir = "";
    OK(fa_create(&h100, &options));
    OK(fa_ggml_engine_open_on(&e, h100, 0));
    host_reset(1, NULL, true);
    cr_assert(fa_ggml_open(&ggml, host_find, NULL, why, sizeof why), "%s", why);
    fa_ggml_tensor *q = host_tensor(HOST_F32, 128, 1, 32, 1), *k = host_permuted(host_tensor(HOST_F16, 128, 8, 16384, 1), 1, 2);
    fa_ggml_tensor *masks[] = { host_tensor(HOST_F16, 16384, 1, 1, 1), NULL };
    for (int i = 0; i < 2; i++) {
        cr_assert(fa_ggml_claim_node(&ggml, host_attention(q, k, k, masks[i], NULL, 0.1f, 0, 0), &c[i], why, sizeof why), "%s", why);
        c[i].mask = masks[i] ? (void *)256 : NULL;
        OK(fa_ggml_arguments(e, &c[i], NULL, 0, 1, NULL, NULL, values, &a));
        fa_ggml_choose(e, &c[i], &a);
        OK(fa_problem_of(&a, &problem[i]));
        OK(fa_candidates(h100, &problem[i], take_config, config[i]));
    }
    cr_expect_str_eq(config[0], config[1]);
    fa_ggml_engine_close(e);
    fa_destroy(h100);
}

/* A node waits for its own kernel, so that no bit depends on how fast that was compiled; with `nearest` another bucket's runs meanwhile. */
static fa_ggml_tensor *host_memory(fa_ggml_tensor *t)
{
    cr_assert_lt(copied, 256);
    t->data = kept[copied++] = calloc(1, host_bytes(t));
    return t;
}
Test(ggml_rider, a_node_waits_for_its_kernel)
{
    for (int nearest = 0; nearest < 2; nearest++) {
        fa_ggml_rider_options o = { .find = host_find };
        fa_score_value values[FA_GGML_PARTS];
        static char text[1 << 14];
        fa_ggml_claim c;
        char why[256];
        fa_args a;
        cr_assert(fa_ggml_settings_read(&o.settings, nearest ? "sim:sm_80,all,nearest" : "sim:sm_80,all", why, sizeof why), "%s", why);
        host_reset(1, NULL, true);
        cr_assert_not_null(fa_ggml_rider_load(&o));
        fa_ggml_backend *b = host_backend(0);
        for (int keys = 64; keys <= 1024; keys += 960) {
            fa_ggml_tensor *q = host_memory(host_tensor(HOST_F32, D, 3, HEADS, 1)), *k = host_memory(host_tensor(HOST_F16, D, keys, 1, 1));
            fa_ggml_tensor *node = host_memory(host_attention(q, k, k, NULL, NULL, 0.25f, 0, 0));
            cr_expect_eq(compute(b, 1, &node, 0), 0);
            cr_assert(fa_ggml_claim_node(&fa_ggml_ride.ggml, node, &c, why, sizeof why), "%s", why);
        }
        fa_ggml_engine *e = fa_ggml_ride.device[0].engine;
        OK(fa_ggml_arguments(e, &c, NULL, 0, 3, kept[0], NULL, values, &a));
        OK(fa_explain(fa_ggml_engine_context(e), NULL, &a, text, sizeof text));
        cr_expect_eq(strstr(text, "nearest") != NULL, nearest != 0, "%s", text);
        cr_expect(nearest || strstr(text, "table      hit: prepared\n"), "%s", text);
        host_free(b);
        fa_ggml_rider_unload();
    }
}

/* What a rule leaves is not asked about: no device is opened for it, no kernel looked for. */
Test(ggml_rider, what_is_left_opens_no_device)
{
    fa_ggml_rider_options o = { .find = host_find, .ctx = ctx, .settings = { .tier = 2, .registry = "CUDA" } };
    host_reset(1, &table, true);
    fa_ggml_rider_load(&o);
    fa_ggml_backend *b = host_backend(0);
    chain c = make_chain(3, false);
    fa_ggml_tensor *nodes[] = { c.q, c.o, c.out };
    for (int n = 0; n < 2; n++)
        cr_expect_eq(compute(b, 3, nodes, 9), 0);
    cr_expect_str_eq(host_trace, "cAc|cAc|", "%s", host_trace);
    cr_expect_null(fa_ggml_ride.device[0].engine);
    cr_expect(was_told("CUDA0: left to ggml, which is faster: few rows of at most 96 columns"), "%s", lines[0]);
    host_attends = false; /* they cannot */
    host_trace[0] = 0;
    cr_expect_eq(compute(b, 3, nodes, 10), 0);
    cr_expect_str_eq(host_trace, "c|c|", "%s", host_trace);
    cr_expect_lt(error_of(&c), 2e-3);
    host_free(b);
}
