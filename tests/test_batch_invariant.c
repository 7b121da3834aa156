/* FA_BATCH_INVARIANT: the bits of a sequence are the same alone and within other sequences, on any number of SMs. On the simulator. */
#include "test_cache_scratch.h"
#include "test_full.h"
#include "test_template_edit.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include <criterion/parameterized.h>

#define OK(x) cr_assert_eq((x), FA_OK, "%s", fa_last_error())
#define BATCHES (full() ? 12 : 2)      /* the sequence alone, then beside others, on each number of SMs */
#define RULE_CASES (full() ? 6 : 1)    /* of each class, on each chip; by default on one in turn */
#define FAULTS_EVERY (full() ? 1 : 36) /* one in so many is run */
#define LONGEST 16                     /* sequences of a batch */
#define RANDOM_MOST 6                  /* of one whose size is drawn */

typedef enum form { PACKED, PADDED, PAGED, DENSE } form;

/* A sequence, and what runs it. */
typedef struct sequence {
    const char *problem, *config;
    form form;
    int32_t hq, hkv, rows, keys, window;
} sequence;

#define LINE ",ctas=1,min_turns=1,sm_shares=1,combine=0"
#define SHARED ",ctas=1,min_turns=1,sm_shares=4,combine=0"
#define INVARIANT "features=lengths+batch-invariant"
static const char mma[] = "decode_mma:br=16,bk=16,row_warps=1,key_warps=2,stages=3,kv_lanes=1" LINE,
                  wide[] = "decode_mma:br=32,bk=16,row_warps=2,key_warps=1,stages=2,kv_lanes=8" SHARED,
                  dots[] = "decode_ffma:br=4,bk=8,row_warps=1,key_warps=4,dot_lanes=8,stages=3,kv_lanes=8" SHARED,
                  groups[] = "decode_wgmma:br=64,bk=32,row_warps=4,key_warps=2,stages=2,kv_lanes=1" LINE,
                  narrow[] = "decode_ffma:br=1,bk=8,row_warps=1,key_warps=2,dot_lanes=4,stages=2,kv_lanes=1" LINE,
                  second[] = "decode_mma:br=32,bk=16,row_warps=2,key_warps=1,stages=2,kv_lanes=8,ctas=1,min_turns=1,sm_shares=4,combine=1",
                  second_groups[] = "decode_wgmma:br=64,bk=32,row_warps=4,key_warps=2,stages=2,kv_lanes=1,ctas=1,min_turns=1,sm_shares=1,"
                                    "combine=1",
                  hopper[] = "flash_fwd_wgmma:br=128,ctas=1,feeder=40,schedule=1,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,"
                             "sections=1,cluster=1,rescale=3,exp=0,convert=1,o_path=0,grid=1",
                  dense[] = "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=1,pack=1,lag=8,ctas=1",
                  mixed[] = "mixed_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=1,pack=1,lag=8,ctas=1",
                  mixed_hopper[] = "mixed_wgmma:br=128,ctas=1,feeder=40,schedule=1,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,"
                                   "sections=1,cluster=1,rescale=3,exp=0,convert=1,o_path=0,grid=1";

static const sequence sequences[] = {
    { "bf16,d=64,mask=causal," INVARIANT, second, PACKED, 8, 2, 5, 400, 0 },
    { "bf16,d=64,o=fp32,mask=causal," INVARIANT, mma, PACKED, 4, 2, 3, 700, 0 },
    { "bf16,d=48,dv=40,o=fp32,mask=none," INVARIANT, mma, PADDED, 8, 2, 3, 400, 0 }, /* a row's threads lie in two warps */
    { "bf16,d=64,mask=none,features=lengths+pages+batch-invariant,page=8", mma, PAGED, 4, 2, 1, 500, 0 },
    { "fp16,d=64,mask=window,features=lengths+pages+batch-invariant,page=16", wide, PAGED, 8, 2, 9, 400, 250 },
    { "bf16,d=40,dv=24,mask=none," INVARIANT, dots, PADDED, 4, 2, 2, 600, 0 },
    { "fp32,d=64,mask=causal," INVARIANT, dots, PACKED, 2, 2, 5, 300, 0 },
    { "bf16,d=64,mask=causal," INVARIANT, groups, PADDED, 16, 1, 6, 500, 0 },
    { "bf16,d=64,mask=causal,features=batch-invariant", mma, DENSE, 4, 2, 3, 700, 0 },
    { "bf16,d=64,mask=causal,features=batch-invariant", dense, DENSE, 4, 2, 70, 100, 0 },
    { "bf16,d=64,mask=causal,features=batch-invariant", hopper, DENSE, 4, 2, 150, 200, 0 },
    { "bf16,d=64,mask=causal," INVARIANT, dense, PACKED, 4, 2, 40, 900, 0 },
    { "bf16,d=64,mask=causal," INVARIANT, hopper, PACKED, 4, 2, 40, 200, 0 },
    { "bf16,d=64,mask=causal,features=lengths+pages+batch-invariant,page=32", hopper, PAGED, 4, 2, 40, 200, 0 },
    { "bf16,d=64,mask=causal," INVARIANT, mixed, PACKED, 4, 2, 3, 700, 0 },
    { "bf16,d=64,mask=causal," INVARIANT, mixed, PACKED, 4, 2, 40, 300, 0 },
    { "bf16,d=64,mask=causal," INVARIANT, mixed_hopper, PACKED, 4, 2, 40, 300, 0 },
    { "bf16,d=64,mask=causal," INVARIANT, mixed, PACKED, 4, 2, 30, 300, 0 }, /* few rows, beside prompts and without */
    { "bf16,d=64,mask=causal," INVARIANT, mixed_hopper, PACKED, 4, 2, 30, 300, 0 },
    { "bf16,d=64,mask=causal,features=batch-invariant", second_groups, DENSE, 16, 2, 3, 700, 0 },
    { "bf16,d=16,mask=none," INVARIANT, narrow, PADDED, 1, 1, 1, 4200, 0 }, /* more segments than a warp has lanes */
    { "bf16,d=64,mask=causal," INVARIANT, mma, PACKED, 2, 1, 2, 2070, 0 },  /* segments of four turns, and a last one of one */
};
enum { SEQUENCES = sizeof sequences / sizeof *sequences };

/* Rows whose config, form, mask and type other rows have, too, but not all at once: they are compiled with FAGEN_TEST_FULL only. */
static bool is_rare(int row)
{
    return !full() && (row == 1 || row == 3 || row == 6 || row == 8 || row == 9 || row == 10 || row == 12 || row == 15);
}

/* ---- templates with small segments ---- */

/* Few keys fill many sections then: a section has 4 segments, a tile 16, a segment one turn or more. */
static const edit small = { "decode_family.lua", "64, 8, 128", "64, 4, 1" };

/* ---- a batch that has the sequence in it ---- */

typedef struct batch {
    int32_t b, at; /* the sequence is number `at` */
    int32_t rows[LONGEST], keys[LONGEST], sq, sk;
} batch;

static batch draw(const sequence *s, fa_random *r, int32_t b)
{
    bool alone = b == 1;
    batch t = { .b = b };
    t.at = fa_random_below(r, t.b);
    for (int i = 0; i < t.b; i++) {
        bool own = i == t.at || s->form == DENSE;
        t.rows[i] = own ? s->rows : fa_random_below(r, 2 * s->rows + 4);
        t.keys[i] = own ? s->keys : fa_random_below(r, 3) ? fa_random_below(r, 2 * s->keys) : fa_random_below(r, 40);
        t.sq = t.rows[i] > t.sq ? t.rows[i] : t.sq;
        t.sk = t.keys[i] > t.sk ? t.keys[i] : t.sk;
    }
    if (s->form != DENSE && !alone)
        t.sq += fa_random_below(r, 9), t.sk += fa_random_below(r, 900);
    return t;
}

/* Bytes of one launch, in the order of the device's memory. */
typedef struct memory {
    fa_context *ctx;
    void *device[16];
    int n;
} memory;

static void *put(memory *m, const void *bytes, size_t n)
{
    OK(fa_alloc(m->ctx, &m->device[m->n], n + 16));
    OK(fa_copy(m->ctx, m->device[m->n], bytes, n, FA_TO_DEVICE));
    return m->device[m->n++];
}

static void release(memory *m)
{
    while (m->n > 0)
        OK(fa_free(m->ctx, m->device[--m->n]));
}

/* Rows of heads: those of the sequence from its own seed, all others from the batch's. Row i lies at place[i]. */
static void fill(char *to, int dtype, int64_t row, int64_t n, const int64_t *place, uint64_t seed)
{
    fa_random r = { seed };
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < row; k++)
            fa_number_store(to + (place[i] * row + k) * fa_dtype_bytes(dtype), fa_number_round(fa_random_normal(&r), dtype), dtype);
}

static int64_t sum(const int32_t *v, int n)
{
    int64_t all = 0;
    for (int i = 0; i < n; i++)
        all += v[i];
    return all;
}

/* A tensor of all rows, `heads` times `width` wide. place: where each sequence's rows lie; total: rows allocated. */
static void *tensor(memory *m, const batch *t, const fa_problem *p, const int32_t *count, int64_t *const *place, int64_t total, int64_t row,
                    uint64_t own, uint64_t others)
{
    size_t bytes = (size_t)(total * row * fa_dtype_bytes(p->dtype));
    char *host = malloc(bytes + 1);
    memset(host, 0xff, bytes);
    for (int i = 0; i < t->b; i++)
        fill(host, p->dtype, row, count[i], place[i], i == t->at ? own : fa_random_mix(others + (uint64_t)i));
    void *device = put(m, host, bytes);
    free(host);
    return device;
}

static void first_rows(int32_t *first, const int32_t *count, int n)
{
    first[0] = 0;
    for (int i = 0; i < n; i++)
        first[i + 1] = first[i] + count[i];
}

/* Fills in where rows lie: packed, or padded to `most`. */
static int64_t **places(const int32_t *count, int n, bool packed, int32_t most)
{
    int64_t **place = malloc(sizeof *place * (size_t)n), next = 0;
    for (int i = 0; i < n; i++) {
        place[i] = malloc(sizeof **place * (size_t)(count[i] + 1));
        next = packed ? next : (int64_t)i * most;
        for (int k = 0; k < count[i]; k++)
            place[i][k] = next++;
    }
    return place;
}

static void drop(int64_t **place, int n)
{
    for (int i = 0; i < n; i++)
        free(place[i]);
    free(place);
}

/* O and LSE of the sequence, `bytes` of them, after so many launches; the caller frees them. NULL where a launch fails. */
static char *run(fa_context *ctx, const fa_plan *plan, const sequence *s, const fa_problem *p, const batch *t, uint64_t seed, int launches,
                 size_t *bytes)
{
    bool packed_q = s->form == PACKED || s->form == PAGED, packed_k = s->form == PACKED;
    int32_t size = s->form == PAGED ? 2 * p->page : 0, per = size ? (t->sk + size - 1) / size : 0, first_q[LONGEST + 1],
            first_k[LONGEST + 1];
    memory m = { .ctx = ctx };
    fa_args a = fa_operation_args(p);
    int64_t **rows = places(t->rows, t->b, packed_q, t->sq), **keys = places(t->keys, t->b, packed_k, size ? per * size : t->sk);
    int64_t total_q = packed_q ? sum(t->rows, t->b) : (int64_t)t->b * t->sq,
            total_k = packed_k ? sum(t->keys, t->b) : (int64_t)t->b * t->sk;
    first_rows(first_q, t->rows, t->b);
    first_rows(first_k, t->keys, t->b);
    a.b = t->b, a.sq = t->sq, a.sk = t->sk, a.hq = s->hq, a.hkv = s->hkv;
    a.window_left = s->window, a.window_right = 0;
    if (packed_q)
        a.cu_seqlens_q = put(&m, first_q, sizeof *first_q * (size_t)(t->b + 1)), a.total_q = (int32_t)total_q;
    else if (s->form == PADDED)
        a.seqlens_q = put(&m, t->rows, sizeof *t->rows * (size_t)t->b);
    if (packed_k)
        a.cu_seqlens_k = put(&m, first_k, sizeof *first_k * (size_t)(t->b + 1)), a.total_k = (int32_t)total_k;
    else if (s->form != DENSE)
        a.seqlens_k = put(&m, t->keys, sizeof *t->keys * (size_t)t->b);
    if (size) { /* pages in an order of the batch's own: entry e of the tables is page e * step + seed, modulo their number */
        int32_t n = t->b * per, step = n % 7 ? 7 : n % 11 ? 11 : 13, *table = malloc(sizeof *table * (size_t)n);
        for (int32_t e = 0; e < n; e++)
            table[e] = (int32_t)(((int64_t)e * step + (int64_t)(seed % 1000)) % n);
        for (int i = 0; i < t->b; i++)
            for (int32_t k = 0; k < t->keys[i]; k++)
                keys[i][k] = (int64_t)table[i * per + k / size] * size + k % size;
        a.page_table = put(&m, table, sizeof *table * (size_t)n);
        a.page_size = size, a.pages = n, total_k = (int64_t)n * size;
        free(table);
    }
    a.q.ptr = tensor(&m, t, p, t->rows, rows, total_q, (int64_t)s->hq * p->d, 1, seed);
    a.k.ptr = tensor(&m, t, p, t->keys, keys, total_k, (int64_t)s->hkv * p->d, 2, seed + 100);
    a.v.ptr = tensor(&m, t, p, t->keys, keys, total_k, (int64_t)s->hkv * p->dv, 3, seed + 200);
    size_t width = (size_t)fa_dtype_bytes(p->o_dtype) * (size_t)s->hq * (size_t)p->dv;
    char *o = calloc((size_t)total_q, width);
    float *lse = calloc((size_t)total_q * (size_t)s->hq, sizeof *lse);
    a.o.ptr = put(&m, o, (size_t)total_q * width);
    a.lse = put(&m, lse, (size_t)total_q * (size_t)s->hq * sizeof *lse);
    OK(fa_plan_workspace(ctx, plan, &a, &a.workspace_size));
    OK(fa_alloc(ctx, &a.workspace, a.workspace_size + 1));
    m.device[m.n++] = a.workspace;
    OK(fa_workspace_init(ctx, a.workspace, a.workspace_size, NULL));
    sim_options how = { .async = seed % 2 ? SIM_LAZY : SIM_EAGER, .schedule = SIM_RANDOM, .seed = seed, .max_steps = 20000000 };
    char error[512];
    cr_assert(sim_checks_parse("all=error", how.checks, error), "%s", error);
    sim_set_options(&how);
    fa_status st = FA_OK;
    for (int i = 0; i < launches && st == FA_OK; i++) {
        OK(fa_copy(ctx, a.o.ptr, o, (size_t)total_q * width, FA_TO_DEVICE));
        st = fa_plan_launch(ctx, plan, &a, NULL);
    }
    if (st == FA_OK)
        st = fa_copy(ctx, o, a.o.ptr, (size_t)total_q * width, FA_FROM_DEVICE);
    if (st == FA_OK)
        st = fa_copy(ctx, lse, a.lse, (size_t)total_q * (size_t)s->hq * sizeof *lse, FA_FROM_DEVICE);
    *bytes = (size_t)s->rows * (width + (size_t)s->hq * sizeof *lse);
    char *out = st == FA_OK ? malloc(*bytes) : NULL, *next = out;
    for (int32_t i = 0; out && i < s->rows; i++) {
        memcpy(next, o + (size_t)rows[t->at][i] * width, width);
        next += width;
        for (int32_t h = 0; h < s->hq; h++, next += sizeof *lse)
            memcpy(next, &lse[packed_q ? h * total_q + rows[t->at][i] : ((int64_t)t->at * s->hq + h) * t->sq + i], sizeof *lse);
    }
    drop(rows, t->b);
    drop(keys, t->b);
    free(o);
    free(lse);
    release(&m);
    return out;
}

static const int sms[] = { 1, 3, 132, 2, 7 };
enum { CHIPS = sizeof sms / sizeof *sms };

/* On so many SMs, but for streams of heads, which a single one has no thread blocks for. */
static int chip_of(const sequence *s, size_t i)
{
    return sms[i] == 1 && strstr(s->config, "kv_lanes=8") ? 5 : sms[i];
}

/* How many launches, alone and in batches on all numbers of SMs, failed or gave other bits than the sequence alone on one SM; at most
 * `most` are looked for. By default one SM, and by turns 3 or 132. */
static int others(const char *templates, const sequence *s, uint64_t seed, int most)
{
    fa_random r = { seed };
    fa_problem p;
    fa_config k = test_config(s->config);
    char *alone = NULL;
    int n = 0;
    OK(fa_problem_parse(&p, s->problem));
    for (size_t i = 0; i < CHIPS && n < most; i++) {
        if (!full() && i > 0 && i != 1 + seed % 2)
            continue;
        fa_context *ctx = test_hopper_context(templates, NULL, chip_of(s, i));
        const fa_plan *plan;
        OK(fa_plan_make(ctx, &p, &k, NULL, &plan));
        for (int j = 0; j < BATCHES && n < most; j++) {
            batch t = draw(s, &r, j == 0 ? 1 : fa_random_within(&r, 2, RANDOM_MOST));
            size_t bytes;
            char *bits = run(ctx, plan, s, &p, &t, seed * 1000 + i * 10 + (uint64_t)j, 1 + (j == 1), &bytes);
            bool first = !alone;
            alone = alone ? alone : bits;
            n += !bits || memcmp(alone, bits, bytes) != 0;
            if (!first)
                free(bits);
        }
        fa_destroy(ctx);
    }
    free(alone);
    return n;
}

TestSuite(batch_invariant, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

Test(batch_invariant, a_sequence_has_the_same_bits_in_every_batch)
{
    write_edited(&small);
    for (int i = 0; i < SEQUENCES; i++)
        cr_expect_eq(is_rare(i) ? 0 : others(scratch, &sequences[i], (uint64_t)i + 1, INT32_MAX), 0, "%s, %s: %s", sequences[i].problem,
                     sequences[i].config, fa_last_error());
}

Test(batch_invariant, and_with_the_segments_that_ship)
{
    static const sequence longer = { "bf16,d=64,mask=causal," INVARIANT, mma, PACKED, 2, 1, 2, 2100, 0 };
    cr_expect_eq(others(NULL, &longer, 77, INT32_MAX), 0, "%s", fa_last_error());
}

Test(batch_invariant, without_the_flag_the_bits_differ) /* so the tests above can fail */
{
    static const sequence free_schedule = { "bf16,d=64,mask=causal,features=lengths", mma, PACKED, 4, 2, 3, 700, 0 };
    cr_expect_gt(others(NULL, &free_schedule, 1, INT32_MAX), full() ? 2 : 1);
}

/* ---- tiles that are cut ---- */

/* Keys by the hundred are cut by the cost then. */
static const edit cheap[] = { { "split_wgmma.lua", "return 2500 + c.br * p.dv // 6 + c.bc * (p.d + p.dv) // 12", "return 300" },
                              { "parts_family.lua", "MERGE_CLOCKS, SUM_BYTES_CLK = 6000, 2000",
                                "MERGE_CLOCKS, SUM_BYTES_CLK = 60, 2000" } };

#define CUT(br, bc, schedule, box, rest)                                                                                                \
    "split_wgmma:ctas=1,feeder=40,ahead=0,sections=1,cluster=1,o_path=0,grid=2,combine=1,stages_k=2,stages_v=2,exp=0,convert=1,br=" #br \
    ",bc=" #bc ",schedule=" #schedule ",box=" #box "," rest
#define DENSELY "features=batch-invariant"
static const sequence cut[] = {
    { "bf16,d=64,mask=causal," DENSELY, CUT(64, 48, 0, 64, "q_bufs=1,rescale=3,parts=3"), DENSE, 4, 2, 40, 420, 0 },
    { "fp16,d=64,mask=window," INVARIANT, CUT(128, 48, 1, 64, "q_bufs=1,rescale=2,parts=4"), PACKED, 6, 2, 50, 400, 300 },
    { "bf16,d=64,mask=causal,features=lengths+pages+batch-invariant,page=16", CUT(64, 64, 0, 64, "q_bufs=2,rescale=3,parts=16"), PAGED, 5,
      1, 30, 700, 0 },
    { "fp16,d=96,dv=64,o=fp32,mask=none," INVARIANT, CUT(64, 48, 0, 32, "q_bufs=1,rescale=3,parts=0"), PADDED, 3, 1, 50, 500, 0 },
    { "bf16,d=64,mask=none," DENSELY, CUT(128, 48, 1, 64, "q_bufs=1,rescale=0,parts=0"), DENSE, 2, 2, 70, 500, 0 },
};
enum { CUTS = sizeof cut / sizeof *cut };

/* How many launches of the sequence alone, in a batch of three and in one of 16 gave other bits than alone on the first chip. On one SM
 * blocks walk all parts of most tiles; with many they share them; on seven either is so of some tiles. */
static int cut_others(const char *templates, const sequence *s, uint64_t seed, int most)
{
    static const struct {
        int32_t sms, b;
    } rows[] = { { 1, 1 }, { 132, 1 }, { 7, 3 }, { 132, 3 }, { 7, 16 }, { 1, 3 }, { 132, 16 } };
    fa_random r = { seed };
    fa_problem p;
    fa_config k = test_config(s->config);
    char *alone = NULL, cache[sizeof scratch + 8];
    int n = 0;
    OK(fa_problem_parse(&p, s->problem));
    snprintf(cache, sizeof cache, "%s/cache", scratch);
    for (size_t i = 0; i < sizeof rows / sizeof *rows - (full() ? 0 : 2) && n < most; i++) {
        fa_context *ctx = test_hopper_context(templates, cache, rows[i].sms);
        const fa_plan *plan;
        size_t bytes;
        OK(fa_plan_make(ctx, &p, &k, NULL, &plan));
        batch t = draw(s, &r, rows[i].b);
        char *bits = run(ctx, plan, s, &p, &t, seed * 1000 + i, 1 + (i == 2), &bytes);
        bool first = !alone;
        alone = first ? bits : alone;
        n += !bits || memcmp(alone, bits, bytes) != 0;
        if (!first)
            free(bits);
        fa_destroy(ctx);
    }
    free(alone);
    return n;
}

ParameterizedTestParameters(batch_invariant, tiles_that_are_cut)
{
    static int number[CUTS];
    int n = 0;
    for (int i = 0; i < CUTS; i += full() ? 1 : 3)
        number[n++] = i;
    return cr_make_param_array(int, number, (size_t)n);
}

ParameterizedTest(int *i, batch_invariant, tiles_that_are_cut)
{
    for (size_t e = 0; e < sizeof cheap / sizeof *cheap; e++)
        write_edited(&cheap[e]);
    cr_expect_eq(cut_others(scratch, &cut[*i], (uint64_t)*i + 1, INT32_MAX), 0, "%s, %s: %s", cut[*i].problem, cut[*i].config,
                 fa_last_error());
}

/* What would make the parts depend on the batch or on the chip, or the sum on who adds it up. */
static const struct {
    edit of;
    int row; /* of cut, which notices */
} cut_faults[] = {
    { { "split_parts.cu", "constexpr int thread_blocks = NOMINAL;", "const int thread_blocks = (int)gridDim.x;" }, 4 },
    { { "split_parts.cu", "const int each = parts_of(p.tiles * p.hkv,", "const int each = parts_of(p.tiles * p.hkv * p.b," }, 4 },
    { { "parts.cu", "sum.add(states[k], x[k], $(scale_log2));",
        "{ Sum y{states[k].x, states[k].y, x[k]}; y.add({sum.m, sum.l}, sum.o, "
        "$(scale_log2)); sum = y; }" },
      0 },
    { { "parts.cu", "(int k = 0; k < BATCH; k++) {  // one by one", "(int k = BATCH - 1; k >= 0; k--) {  // one by one" }, 0 },
    { { "varlen_order.cu", "const int tiles = x.levels.tiles * heads();", "const int tiles = x.levels.tiles * heads() + p.b;" }, 3 },
    { { "varlen_order.cu", "(int)(((x.levels.highest() + 1ll) * BR", "(int)(((__reduce_max_sync(~0u, x.levels.highest()) + 1ll) * BR" },
      3 },
};
enum { CUT_FAULTS = sizeof cut_faults / sizeof *cut_faults };

ParameterizedTestParameters(batch_invariant, faults_of_cuts_are_noticed)
{
    static int number[CUT_FAULTS];
    for (int i = 0; i < CUT_FAULTS; i++)
        number[i] = i;
    return cr_make_param_array(int, number, full() ? CUT_FAULTS : 2);
}

ParameterizedTest(int *i, batch_invariant, faults_of_cuts_are_noticed)
{
    for (size_t e = 0; e < sizeof cheap / sizeof *cheap; e++)
        write_edited(&cheap[e]);
    write_edited(&cut_faults[*i].of);
    cr_expect(cut_others(scratch, &cut[cut_faults[*i].row], 1, 1) > 0, "%s: nothing noticed \"%s\"", cut_faults[*i].of.file,
              cut_faults[*i].of.replace);
}

/* ---- the rule ---- */

/* Cases of the classes above, with segments that are small: whether one of them fails. */
static bool wrong(const char *templates, int cases)
{
    static const struct {
        const char *problem, *config;
    } rows[] = {
        { "bf16,d=64,mask=causal,features=lengths+batch-invariant", mma },
        { "bf16,d=64,mask=none,features=lengths+pages+batch-invariant,page=8", wide },
        { "fp16,d=40,dv=24,mask=window,features=lengths+batch-invariant", dots },
        { "bf16,d=64,mask=causal,features=batch-invariant", mma },
        { "bf16,d=64,mask=causal,features=lengths+pages+batch-invariant,page=16", groups },
        { "bf16,d=64,mask=causal,features=lengths+batch-invariant", second },
    };
    bool bad = false;
    for (int chip = 0; chip < 2 && !bad; chip++) {
        fa_context *ctx = test_hopper_context(templates, NULL, chip ? 5 : 2);
        for (size_t i = full() ? 0 : (size_t)chip; i < sizeof rows / sizeof *rows && !bad; i += full() ? 1 : 2)
            for (int n = 0; n < cases && !bad; n++) {
                fa_problem class;
                fa_config k = test_config(rows[i].config);
                fa_case c;
                fa_verdict v;
                OK(fa_problem_parse(&class, rows[i].problem));
                fa_case_make_class(&c, &class, FA_CASE_FEW, i * 100 + (uint64_t)(2 * n + chip));
                test_mode(n % 2 ? SIM_LAZY : SIM_EAGER, SIM_RANDOM, (uint64_t)n);
                bad = fa_verify_case(ctx, &c, &k, &v) != FA_OK;
            }
        fa_destroy(ctx);
    }
    return bad;
}

Test(batch_invariant, holds_to_the_rule)
{
    write_edited(&small);
    cr_expect(!wrong(scratch, RULE_CASES), "%s", fa_last_error());
}

/* ---- faults ---- */

#define W "decode_segments.cu"
#define F "decode_fold.cu"
#define K "decode_kernel.cu"
#define S "decode_split.cu"
static const edit faults[] = {
    { W, "cuts = {iterations, segment_digits(iterations)}", "cuts = {iterations, segment_digits(min((int)left, iterations))}" },
    { W, "cuts = {iterations, segment_digits(iterations)}", "cuts = {iterations, segment_digits(p.sk / (BC * GROUPS) + 1)}" },
    { W, "cuts = {iterations, segment_digits(iterations)}", "cuts = {iterations, segment_digits(iterations + (int)gridDim.x)}" },
    { W, "min((segment << digits) + ((1 << digits) - 1) / 2, iterations - 1)", "(segment << digits) + ((1 << digits) - 1) / 2" },
    { W, "(item + (1 << digits) / 2) >> digits", "item >> digits" },
    { W, "item >= iterations ? segments() : ", "" },
    { W, "return at - Walk::iteration;", "return at;" },
    { W, "iteration = cuts.begin_of(first);", "iteration = Walk::iteration;" },
    { W, "end = cuts.begin_of(upto);", "end = Walk::end;" },
    { K, "segment < walk.upto; segment++", "segment < walk.cuts.segments(); segment++" },
    { K, "    rows.fresh();", "    if (segment == walk.first) rows.fresh();" },
    { K, "end = walk.cuts.begin_of(segment + 1)\"", "end = walk.end\"" },
    { K, "if (!walk.whole_tile()) finish_tile", "finish_tile" },
    { K, "(walk.first == 0 && !walk.whole_tile())\"", "!walk.whole_tile()\"" },
    { S, "block(divide(w.begin_of_tile(), size))", "block(index())" },
    { F, "return SLOT_FIRST + segment - first;", "return SLOT_FIRST;" },
    { F, "SLOT_FIRST + alone + (begin - first - alone) / SECTION", "SLOT_FIRST + alone" },
    { F, "SLOT_FIRST + alone + (begin", "SLOT_FIRST + (begin" },
    { F, "(segment + 1) % SECTION == 0 || ", "" },
    { F, "return first == 0 ? SLOT_TILE", "return first < SECTION ? SLOT_TILE" },
    { F, "(from - walk.first) / HELD & 1", "0" },
    { F, "segment > begin && begin >= walk.first ?", "segment > begin ?" },
    { F, "segment > begin && begin >= walk.first ?", "begin >= walk.first ?" },
    { F, "whole = begin > 0 ?", "whole = begin > SECTION ?" },
    { F, "fold(section, parts[h], $(pr.unit_log2))", "fold(parts[h], section, $(pr.unit_log2))" },
    { F, "whole = begin > 0 ? fold(whole, section, $(pr.unit_log2))", "whole = begin > 0 ? fold(section, whole, $(pr.unit_log2))" },
    { F, "if (from > walk.first) {", "if (false) {" },
    { F, "if (walk.first == 0 && walk.upto >= SECTION) left", "if (false) left" },
    { F, "if (slot_of(walk.upto - 1, walk.first, segments) == SLOT_SECTION) left", "if (false) left" },
    { F, "min(h, n - 1) * GROUPS", "(n - 1) * GROUPS" },
    { F, "  __syncthreads();  // the buffers are free", "  // the buffers are free" },
    { K, "held == HELD || segment + 1 == walk.upto", "held == HELD" },
    { K, "part_of_group(smem, last, held * GROUPS + group)", "part_of_group(smem, last, group)" },
    { F, "slot * (BR * (COLS * 4 + 16))", "slot * (BR * COLS * 4)" },
    { F, "next > segment && deal.owner(next) == block", "next > segment" },
    { F, "if (begin < first) found.flags |= GOES_ON;", "" },
    { F, "if (segment == end) found.flags |= CLOSES;", "found.flags |= CLOSES;" },
    { F, "block * deal.streams + deal.stream", "block" },
    { F, "n + __popc(there & ((1u << lane) - 1))", "n + lane" },
    { F, "n += __popc(there);", "n = __popc(there);" },
    { F, "= count_on(counter, own) + own ==", "= count_on(counter, own) ==" },
    { F, "    if (words[0] != 0) *counter = 0;\n", "" },
    { F, "atom.acq_rel", "atom.relaxed" },
    { F, "(flags[k] & FIRST) != 0 ? section : fold(whole, section, $(pr.unit_log2))", "section" },
    { F, "list[min(j + k, n - 1)]", "list[j]" },
    { F, "flags[k] = j + k < n ? found.flags : 0;", "flags[k] = found.flags;" },
    { F, "(int)(u32)begin, (int)(begin >> 32)", "0, 0" },
    { F, "streams, block % streams}", "streams, 0}" },
};
enum { FAULTS = sizeof faults / sizeof *faults };

enum { SHARES = 8 }; /* of the list, for tests that run side by side */

ParameterizedTestParameters(batch_invariant, faults_are_noticed)
{
    static int first[SHARES];
    for (int i = 0; i < SHARES; i++)
        first[i] = i;
    return cr_make_param_array(int, first, SHARES);
}

ParameterizedTest(int *first, batch_invariant, faults_are_noticed)
{
    for (int i = *first; i < FAULTS; i += SHARES) {
        write_edited(&small);
        write_edited(&faults[i]);
        bool caught = (i + i / SHARES) % FAULTS_EVERY || others(scratch, &sequences[0], 1, 1) || others(scratch, &sequences[1], 2, 1) ||
                      others(scratch, &sequences[2], 3, 1) || others(scratch, &sequences[5], 5, 1) || wrong(scratch, 3) ||
                      others(scratch, &sequences[SEQUENCES - 2], 6, 1);
        for (uint64_t seed = 7; !caught && seed < 27; seed++)
            caught = others(scratch, &sequences[SEQUENCES - 1], seed, 1);
        cr_expect(caught, "%s: nothing noticed \"%s\" in the place of \"%s\"", faults[i].file, faults[i].replace, faults[i].find);
        scratch_remove();
        scratch_make();
    }
}
