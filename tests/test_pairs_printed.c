/* The two sides of the twin, on the simulator: what templates/pairs/ prints says of every query, key and tile what gen/pairs.h says, dense
 * and by lengths in device memory; and of lengths and first rows, whatever numbers lie there, what verify/operands/sequences.h says. */
#include "gen/config.h"
#include "gen/pairs.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"
#include "verify/operands/random.h"
#include "verify/operands/sequences.h"

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { MOST = 7, D = 32, BR = 3, BC = 2 }; /* rows of a side, at most; numbers that a query writes; a tile */

/* A query writes in its row of O what it sees, what its tile of BR queries sees, and by which queries the key of its number is seen. After
 * all rows a sequence writes where its rows lie and its band. */
static const char family[] =
    "return {\n"
    "  doc = \"ranges\", default = false, features = \"lengths\", tunables = { { \"one\", { 1 }, \"\" } },\n"
    "  supports = function(p, a) return true end, constraints = {},\n"
    "  layout = function(p, c, a) return { bytes = 0, threads = 32, regs = 40 } end,\n"
    "  steps = function(p, c, a, l) return { { entry = \"seen\", threads = 32, smem = 0, grid = \"sq hq b\" } } end,\n"
    "  params = function(p, c, a, l)\n"
    "    local names = \"q k v o lse q_sb q_ss q_sh k_sb k_ss k_sh v_sb v_ss v_sh o_sb o_ss o_sh b hq hkv group sq sk \"\n"
    "    if not p.has_lengths then return names .. \"diag_lo diag_hi\" end\n"
    "    return names .. \"lse_sb lse_ss lse_sh cu_seqlens_q cu_seqlens_k seqlens_q seqlens_k total_q total_k relative \"\n"
    "      .. \"shift_lo shift_hi\"\n"
    "  end,\n"
    "}\n";
static const char text[] =
    "constexpr int BR = 3, BC = 2;\n"
    "//| include \"machine/prelude.cu\"\n"
    "//| include \"pairs/sequence.cu\"\n"
    "//| include \"pairs/mask.cu\"\n"
    "//| include \"pairs/query_range.cu\"\n"
    "//| local pr = include(\"pairs/pairs.lua\").of(p, l)\n"
    "//| pr.own_rows()\n"
    "extern \"C\" __global__ void __launch_bounds__(32) seen(const __grid_constant__ Params p) {\n"
    "  const int i = (int)blockIdx.x % p.sq, batch = (int)blockIdx.x / p.sq / p.hq;\n"
    "  const Sequence sequence = sequence_of(p, batch);\n"
    "//| if p.has_lengths then\n"
    "  const int where[] = {sequence.sq(), sequence.sk(), sequence.first_q, sequence.first_k, $(p.mask == 'window' and "
    "'sequence.diag_lo()' or 0),\n"
    "                       $(p.mask ~= 'none' and 'sequence.diag_hi()' or 0)};\n"
    "  for (int k = 0; k < 6 && i == 0 && threadIdx.x == 0; k++) ((float *)p.o + 64 * 7 * 32)[batch * 6 + k] = (float)where[k];\n"
    "//| end\n"
    "  if (threadIdx.x > 0 || i >= sequence.sq()) return;\n"
    "  const int last = min(i + BR, sequence.sq()) - 1;\n"
    "  const Range r = key_range(p, sequence, i, last);\n"
    "  const OwnRows own = own_rows(sequence, i);\n"
    "  const int out[] = {sequence.sq(), sequence.sk(), first_key(sequence, i), last_key(sequence, i), r.key_lo, r.key_hi, r.block_lo,\n"
    "                     r.block_hi, r.full_lo, r.full_hi, first_query(sequence, i), last_query(sequence, i), own.first, own.end};\n"
    "  float *const o = (float *)p.o + sequence.o() + i * p.o_ss;\n"
    "  for (int k = 0; k < (int)(sizeof out / sizeof *out); k++) o[k] = (float)out[k];\n"
    "}\n";

typedef struct said {
    fa_range keys, tile, some, full, queries, own;
    int sq, sk;
} said;

static said said_of(const float *o)
{
    return (said){ .sq = (int)o[0],
                   .sk = (int)o[1],
                   .keys = { (int64_t)o[2], (int64_t)o[3] },
                   .tile = { (int64_t)o[4], (int64_t)o[5] },
                   .some = { (int64_t)o[6], (int64_t)o[7] },
                   .full = { (int64_t)o[8] + 1, (int64_t)o[9] - 1 },
                   .queries = { (int64_t)o[10], (int64_t)o[11] },
                   .own = { (int64_t)o[12], (int64_t)o[13] - 1 } };
}

/* Ranges that hold nothing say so as they like. */
static bool same(fa_range a, fa_range b)
{
    return (a.first == b.first && a.last == b.last) || (a.last < a.first && b.last < b.first);
}

static void expect_row(const fa_args *a, int sq, int sk, int i, const float *o)
{
    fa_pairs p = fa_pairs_of(fa_shift_of(a->mask, a->diagonal, a->offset, a->window_left, a->window_right), sq, sk);
    fa_range tile = { i, i + BR < sq ? i + BR - 1 : sq - 1 }, all = fa_pairs_all_keys(&p);
    fa_blocks b = fa_pairs_key_blocks(&p, tile, BC);
    said s = said_of(o);
    fa_range full = { s.full.first > s.some.first ? s.full.first : s.some.first, s.full.last < s.some.last ? s.full.last : s.some.last };
    bool right = s.sq == sq && s.sk == sk && same(s.keys, fa_pairs_keys(&p, (fa_range){ i, i })) && same(s.tile, fa_pairs_keys(&p, tile)) &&
                 same(s.some, b.some) && same(full, b.full) && same((fa_range){ s.own.first + i * BC, s.own.last + i * BC }, all);
    if (i < sk)
        right = right && same(s.queries, fa_pairs_queries(&p, (fa_range){ i, i }));
    cr_assert(right, "mask %d diagonal %d offset %d window %d %d, %d queries, %d keys, query %d", a->mask, a->diagonal, a->offset,
              a->window_left, a->window_right, sq, sk, i);
}

typedef struct bench {
    char dir[64];
    fa_context *ctx;
    const fa_plan *plan[3][2]; /* of a mask; with lengths */
    void *q, *o, *lengths[2], *first[2];
} bench;

enum { BATCH = (MOST + 1) * (MOST + 1) };
_Static_assert(BATCH == 64 && MOST == 7 && D == 32, "as in the text of the kernel");
static float o[BATCH * MOST * D + BATCH * 6];

static const fa_plan *plan_of(fa_context *ctx, int mask, bool lengths)
{
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    raw.dtype = FA_F32, raw.d = raw.dv = D, raw.mask = mask, raw.features = lengths ? FA_FEATURE_LENGTHS : 0;
    OK(fa_problem_normalize(&p, &raw));
    OK(fa_config_parse(&c, "seen:one=1"));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    return plan;
}

static void bench_open(bench *b)
{
    fa_options options = FA_OPTIONS_INIT;
    int32_t n[2][BATCH];
    strcpy(b->dir, "/tmp/fagen-pairs-XXXXXX");
    cr_assert_not_null(mkdtemp(b->dir));
    toy_write(b->dir, "seen.lua", family);
    toy_write(b->dir, "seen.cu", text);
    scratch_make();
    options.device = "sim:sm_80";
    options.cache_dir = scratch;
    options.template_dir = b->dir;
    options.check_device_data = -1; /* kernels read whatever lies there */
    OK(fa_create(&b->ctx, &options));
    for (int mask = 0; mask < 3; mask++)
        for (int k = 0; k < 2; k++)
            b->plan[mask][k] = plan_of(b->ctx, mask, k);
    for (int i = 0; i < BATCH; i++)
        n[0][i] = i % (MOST + 1), n[1][i] = i / (MOST + 1);
    OK(fa_alloc(b->ctx, &b->q, sizeof o));
    OK(fa_alloc(b->ctx, &b->o, sizeof o));
    for (int k = 0; k < 2; k++) {
        OK(fa_alloc(b->ctx, &b->lengths[k], sizeof n[k]));
        OK(fa_alloc(b->ctx, &b->first[k], sizeof n[k] + sizeof n[k][0]));
        OK(fa_copy(b->ctx, b->lengths[k], n[k], sizeof n[k], FA_TO_DEVICE));
    }
}

static void bench_close(bench *b)
{
    static const char *const names[] = { "seen.lua", "seen.cu", NULL };
    fa_destroy(b->ctx);
    toy_remove(b->dir, names);
    scratch_remove();
}

static fa_args args_of(const bench *b)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_F32;
    a.d = a.dv = D;
    a.hq = a.hkv = 1;
    a.q = a.k = a.v = (fa_tensor){ b->q, MOST * D, D, D };
    a.o = (fa_tensor){ b->o, MOST * D, D, D };
    return a;
}

/* Every length in one batch. */
static void by_lengths(bench *b, fa_args a)
{
    a.b = BATCH;
    a.sq = a.sk = MOST;
    a.seqlens_q = b->lengths[0];
    a.seqlens_k = b->lengths[1];
    OK(fa_plan_launch(b->ctx, b->plan[a.mask][1], &a, NULL));
    OK(fa_copy(b->ctx, o, b->o, sizeof o, FA_FROM_DEVICE));
    for (int n = 0; n < BATCH; n++)
        for (int i = 0; i < n % (MOST + 1); i++)
            expect_row(&a, n % (MOST + 1), n / (MOST + 1), i, o + (n * MOST + i) * D);
}

static void dense(bench *b, fa_args a, int sq, int sk)
{
    a.b = 1;
    a.sq = sq;
    a.sk = sk;
    OK(fa_plan_launch(b->ctx, b->plan[a.mask][0], &a, NULL));
    OK(fa_copy(b->ctx, o, b->o, sizeof *o * (size_t)(MOST * D), FA_FROM_DEVICE));
    for (int i = 0; i < sq; i++)
        expect_row(&a, sq, sk, i, o + i * D);
}

Test(pairs_printed, kernels_and_host_say_the_same, .timeout = 300)
{
    static const struct {
        int mask, left, right;
    } masks[] = { { FA_MASK_NONE, -1, -1 },   { FA_MASK_CAUSAL, -1, -1 },
                  { FA_MASK_WINDOW, 2, 0 },   { FA_MASK_WINDOW, 0, 1 },
                  { FA_MASK_WINDOW, -1, 1 },  { FA_MASK_WINDOW, 3, -1 },
                  { FA_MASK_WINDOW, 4, 3 },   { FA_MASK_WINDOW, 0, 0 },
                  { FA_MASK_WINDOW, 20, 20 }, { FA_MASK_WINDOW, INT32_MAX, INT32_MAX } };
    static const struct {
        int diagonal, offset;
    } where[] = { { FA_BOTTOM_RIGHT, 0 }, { FA_TOP_LEFT, 0 }, { FA_OFFSET, -8 },        { FA_OFFSET, -2 },
                  { FA_OFFSET, 3 },       { FA_OFFSET, 9 },   { FA_OFFSET, INT32_MIN }, { FA_OFFSET, INT32_MAX } };
    static const int lengths[][2] = { { 7, 7 }, { 3, 7 }, { 7, 2 }, { 1, 6 } };
    bench b;
    bench_open(&b);
    fa_args a = args_of(&b);
    for (size_t m = 0; m < COUNT(masks); m++)
        for (size_t w = 0; w < COUNT(where) && (w == 0 || masks[m].mask != FA_MASK_NONE); w++) {
            a.mask = masks[m].mask;
            a.window_left = masks[m].left;
            a.window_right = masks[m].right;
            a.diagonal = where[w].diagonal;
            a.offset = where[w].offset;
            by_lengths(&b, a);
            for (size_t k = 0; k < COUNT(lengths); k++)
                dense(&b, a, lengths[k][0], lengths[k][1]);
        }
    bench_close(&b);
}

/* Lengths and first rows that descend, are negative, or pass what there is. */
Test(pairs_printed, lengths_are_read_alike, .timeout = 300)
{
    enum { SOME = 16, TOTAL = 40 };
    fa_random r = { 11 };
    bench b;
    bench_open(&b);
    for (int n = 0; n < 48; n++) {
        int32_t first[2][SOME + 1], lengths[2][SOME];
        fa_args a = args_of(&b), host;
        fa_sequences s;
        fa_problem p, raw = FA_PROBLEM_INIT;
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i <= SOME; i++)
                first[k][i] = n % 3 ? fa_random_within(&r, -5, TOTAL + 5) : TOTAL * i / SOME;
            for (int i = 0; i < SOME; i++)
                lengths[k][i] = fa_random_within(&r, -2, MOST + 2);
            OK(fa_copy(b.ctx, b.first[k], first[k], sizeof first[k], FA_TO_DEVICE));
            OK(fa_copy(b.ctx, b.lengths[k], lengths[k], sizeof lengths[k], FA_TO_DEVICE));
        }
        a.b = SOME;
        a.sq = a.sk = MOST;
        a.mask = n % 2 ? FA_MASK_CAUSAL : FA_MASK_WINDOW;
        a.window_left = fa_random_within(&r, -1, 4);
        a.window_right = fa_random_within(&r, -1, 4);
        a.diagonal = fa_random_below(&r, 3);
        a.offset = fa_random_within(&r, -9, 9);
        int given = 1 + n % 15; /* which arrays there are */
        host = a;
        a.cu_seqlens_q = given & 1 ? b.first[0] : NULL, host.cu_seqlens_q = given & 1 ? first[0] : NULL;
        a.cu_seqlens_k = given & 2 ? b.first[1] : NULL, host.cu_seqlens_k = given & 2 ? first[1] : NULL;
        a.seqlens_q = given & 4 ? b.lengths[0] : NULL, host.seqlens_q = given & 4 ? lengths[0] : NULL;
        a.seqlens_k = given & 8 ? b.lengths[1] : NULL, host.seqlens_k = given & 8 ? lengths[1] : NULL;
        a.total_q = host.total_q = given & 1 ? TOTAL : 0;
        a.total_k = host.total_k = given & 2 ? TOTAL : 0;
        OK(fa_plan_launch(b.ctx, b.plan[a.mask][1], &a, NULL));
        OK(fa_copy(b.ctx, o, b.o, sizeof o, FA_FROM_DEVICE));
        raw.dtype = FA_F32, raw.d = raw.dv = D, raw.mask = a.mask, raw.features = FA_FEATURE_LENGTHS;
        raw.b = SOME, raw.hq = raw.hkv = 1, raw.sq = raw.sk = MOST;
        OK(fa_problem_normalize(&p, &raw));
        OK(fa_sequences_open(&s, &p, &host));
        for (int i = 0; i < SOME; i++) {
            const fa_sequence *q = &s.of[i];
            const float *is = o + BATCH * MOST * D + i * 6;
            int64_t first_q = q->q - (given & 1 ? 0 : i * MOST), first_k = q->k - (given & 2 ? 0 : i * MOST);
            bool bands = is[5] == (float)q->band.hi && (a.mask == FA_MASK_CAUSAL || is[4] == (float)q->band.lo);
            cr_assert(is[0] == (float)q->nq && is[1] == (float)q->nk && is[2] == (float)first_q && is[3] == (float)first_k && bands,
                      "launch %d, sequence %d: %g rows from %g, %g keys from %g, band %g %g", n, i, (double)is[0], (double)is[2],
                      (double)is[1], (double)is[3], (double)is[4], (double)is[5]);
        }
        fa_sequences_close(&s);
    }
    bench_close(&b);
}
