/* Sequences of their own lengths on the host: cases that draw them, where their rows lie, and references over them. */
#include "forward.h"
#include "gen/batch_kind.h"
#include "gen/problem.h"
#include "verify/cases/case.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include "verify/operands/sequences.h"
#include "verify/operands/work.h"
#include "verify/truth/expected.h"
#include "verify/truth/oracle.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LSE = FA_TENSORS };

static fa_problem problem(const char *text)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s: %s", text, fa_last_error());
    return p;
}

/* ---- cases ---- */

Test(verify_ragged, a_seed_is_a_case_and_the_draw_is_wide)
{
    int forms[32] = { 0 }, spreads[FA_SPREAD_KINDS] = { 0 }, orders[FA_LAYOUT_KINDS] = { 0 };
    int idle = 0, wild = 0, foreign = 0, shared = 0, wide = 0, many = 0, one = 0, all_sixteen = 0, unwritten = 0, multiple = 0;
    fa_problem p = problem("bf16,d=64,mask=causal,features=lengths+pages+lse-strides,page=16");
    for (uint64_t seed = 0; seed < 3000; seed++) {
        fa_case a, b;
        fa_ragged x, y;
        char line_a[1200], line_b[1200];
        p.features = seed % 2 ? FA_FEATURE_LENGTHS : FA_FEATURE_LENGTHS | FA_FEATURE_PAGES | FA_FEATURE_LSE_STRIDES;
        p.page = seed % 2 ? 0 : 16;
        fa_case_make_class(&a, &p, FA_CASE_FEW, seed);
        fa_case_make_class(&b, &p, FA_CASE_FEW, seed);
        fa_case_print(line_a, sizeof line_a, &a);
        fa_case_print(line_b, sizeof line_b, &b);
        cr_assert_str_eq(line_a, line_b);
        cr_assert_lt(strlen(line_a), 640, "%s", line_a);
        cr_assert_eq(fa_case_ragged(&a, &x), FA_OK);
        cr_assert_eq(fa_case_ragged(&b, &y), FA_OK);
        const fa_ragged_how *h = &a.ragged;
        int32_t n = a.problem.b;
        cr_assert_eq(!x.args.seqlens_k, !(h->forms & FA_FORM_SEQLENS_K), "%s", line_a);
        cr_assert(!x.args.seqlens_k || !memcmp(x.args.seqlens_k, y.args.seqlens_k, (size_t)n * 4), "%s", line_a);
        cr_assert(!x.args.cu_seqlens_q || !memcmp(x.args.cu_seqlens_q, y.args.cu_seqlens_q, (size_t)n * 4 + 4), "%s", line_a);
        cr_assert_eq(!x.args.page_table, seed % 2 == 1, "%s", line_a);
        for (int32_t i = 0; i < n && x.args.seqlens_k && !h->wild; i++)
            cr_assert(x.args.seqlens_k[i] >= 0 && x.args.seqlens_k[i] <= a.problem.sk, "%s", line_a);
        if (x.args.page_table) {
            fa_sizes sizes = fa_case_sizes(&a, &x);
            cr_assert(x.args.page_size % 16 == 0 && sizes.of[FA_EXTENT_TABLE] >= (a.problem.sk + x.args.page_size - 1) / x.args.page_size);
            cr_assert(!memcmp(x.args.page_table, y.args.page_table, (size_t)(n * sizes.of[FA_EXTENT_TABLE]) * 4), "%s", line_a);
            orders[a.layout[LSE]]++;
        }
        forms[h->forms]++;
        spreads[h->k]++;
        idle += h->idle > 0, wild += h->wild, foreign += h->foreign, shared += h->shared > 0, wide += h->wide > 0;
        many += n > 32, one += a.problem.sq == 1, all_sixteen += a.problem.hq / a.problem.hkv == 16, unwritten += a.unwritten;
        multiple += x.args.page_size > 16;
        fa_ragged_close(&x);
        fa_ragged_close(&y);
    }
    /* clang-format off */
    const struct { const char *name; int n; } rows[] = {
        { "padding rows", idle }, { "lengths out of range", wild }, { "pages out of range", foreign }, { "shared pages", shared },
        { "wide tables", wide }, { "many sequences", many }, { "one query", one }, { "group of 16", all_sixteen },
        { "unwritten", unwritten }, { "pages of several times the class", multiple },
        { "cu_seqlens_k", forms[FA_FORM_CU_K] }, { "both of keys", forms[FA_FORM_CU_K | FA_FORM_SEQLENS_K] },
        { "cu_seqlens_q beside seqlens_k", forms[FA_FORM_CU_Q | FA_FORM_SEQLENS_K] },
        { "queries packed with gaps, pages", forms[FA_FORM_CU_Q | FA_FORM_SEQLENS_Q | FA_FORM_SEQLENS_K | FA_FORM_PAGES] },
        { "order of lse: heads", orders[FA_LAYOUT_HEADS] }, { "order of lse: turned", orders[FA_LAYOUT_TURNED] },
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_geq(rows[i].n, 20, "%s: %d of 3000", rows[i].name, rows[i].n);
    for (int i = 0; i < FA_SPREAD_KINDS; i++)
        cr_expect_geq(spreads[i], 20, "spread %s: %d of 3000", fa_spread_name(i), spreads[i]);
}

/* What tuning measures on. */
Test(verify_ragged, quantiles_have_the_longest_and_are_shuffled)
{
    fa_ragged r;
    fa_problem p = problem("bf16,d=64,features=lengths+pages,page=16,b=8,hq=1,hkv=1,sq=1,sk=512");
    fa_args shape = fa_operation_args(&p);
    fa_ragged_how how = fa_ragged_typical(&p, 1);
    cr_assert_eq(fa_ragged_draw(&r, &shape, &how), FA_OK);
    int64_t sum = 0, in_order = 0;
    for (int i = 0; i < 8; i++) {
        sum += r.args.seqlens_k[i];
        in_order += r.args.seqlens_k[i] == 64 * (i + 1);
        cr_expect_eq(r.args.seqlens_k[i] % 64, 0);
    }
    cr_expect_eq(sum, 64 * 36);
    cr_expect_lt(in_order, 8);
    cr_expect_eq(r.args.pages, 64 * 36 / 16);
    bool named[64 * 36 / 16] = { false }, ascends = true;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < r.args.seqlens_k[i] / 16; k++) {
            int32_t id = r.args.page_table[i * 32 + k];
            cr_assert(id >= 0 && id < r.args.pages && !named[id], "page %d", id);
            named[id] = true;
            ascends = ascends && (k == 0 || id > r.args.page_table[i * 32 + k - 1]);
        }
    cr_expect(!ascends);
    fa_ragged_close(&r);
    p.b = 1;
    shape = fa_operation_args(&p);
    cr_assert_eq(fa_ragged_draw(&r, &shape, &how), FA_OK);
    cr_expect_eq(r.args.seqlens_k[0], 512);
    fa_ragged_close(&r);
}

/* What a class of many query rows is measured on: prompts, chunks after cached prefixes, and one in sixteen of a batch a chunk. */
Test(verify_ragged, queries_and_keys_that_belong_together)
{
    /* clang-format off */
    static const struct { const char *text; int32_t batch, forms, chunks, spread; } rows[] = {
        { "features=lengths,b=8,sq=800,sk=800", FA_BATCH_PROMPTS, FA_FORM_CU_Q | FA_FORM_CU_K, 0, -1 },
        { "features=lengths+pages,page=16,b=8,sq=800,sk=800", FA_BATCH_PROMPTS, FA_FORM_CU_Q | FA_FORM_SEQLENS_K | FA_FORM_PAGES, 0, -1 },
        { "features=lengths,b=3,sq=200,sk=800", FA_BATCH_CHUNKS, FA_FORM_CU_Q | FA_FORM_SEQLENS_K, 3, -1 },
        { "features=lengths,b=1,sq=200,sk=800", FA_BATCH_CHUNKS, FA_FORM_CU_Q | FA_FORM_SEQLENS_K, 1, -1 },
        { "features=lengths,b=4,sq=200,sk=800", FA_BATCH_MIXED, FA_FORM_CU_Q | FA_FORM_SEQLENS_K, 1, -1 },
        { "features=lengths+pages,page=64,b=70,sq=200,sk=800", FA_BATCH_MIXED, FA_FORM_CU_Q | FA_FORM_SEQLENS_K | FA_FORM_PAGES, 4, -1 },
        { "features=lengths,b=40,sq=200,sk=800", FA_BATCH_MIXED, FA_FORM_CU_Q | FA_FORM_SEQLENS_K, 2, FA_SPREAD_ZIPF },
        { "features=lengths,b=40,sq=200,sk=800", FA_BATCH_MIXED, FA_FORM_CU_Q | FA_FORM_SEQLENS_K, 2, FA_SPREAD_FULL },
        { "features=lengths,b=8,sq=16,sk=800", FA_BATCH_ANY, FA_FORM_SEQLENS_K, 8, -1 },
        { "features=lengths,b=8,sq=800,sk=200", FA_BATCH_ANY, FA_FORM_SEQLENS_K, 8, -1 },
    };
    /* clang-format on */
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        char text[160];
        fa_ragged r, again;
        fa_sequences s;
        snprintf(text, sizeof text, "bf16,d=64,mask=causal,hq=4,hkv=2,%s", rows[n].text);
        fa_problem p = problem(text);
        fa_ragged_how how = fa_ragged_typical(&p, 1);
        cr_expect(how.batch == rows[n].batch && how.forms == rows[n].forms, "%s: %d, forms %d", text, how.batch, how.forms);
        int32_t lengths = rows[n].spread + 1, chunks = 0, tokens = 0, longest = 0, ordered = 0;
        cr_assert_eq(fa_ragged_of(&r, &p, 1, lengths), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_ragged_of(&again, &p, 1, lengths), FA_OK);
        cr_assert_eq(fa_sequences_open(&s, &p, &r.args), FA_OK);
        for (int32_t i = 0; i < p.b; i++) {
            const fa_sequence *q = &s.of[i];
            chunks += q->nq == p.sq, tokens += q->nq == 1;
            longest = q->nk > longest ? q->nk : longest;
            ordered += i && q->nk > s.of[i - 1].nk;
            cr_expect(q->nk > 0 && (how.batch == FA_BATCH_ANY || q->nk >= q->nq), "%s: %d queries, %d keys", text, q->nq, q->nk);
            if (how.batch == FA_BATCH_PROMPTS)
                cr_expect_eq(q->nq, q->nk, "%s", text);
            if (how.forms & FA_FORM_SEQLENS_K)
                cr_expect_eq(r.args.seqlens_k[i], again.args.seqlens_k[i], "%s: not the same again", text);
        }
        cr_expect_eq(longest, p.sk, "%s", text);
        if (how.batch == FA_BATCH_PROMPTS)
            cr_expect_eq(r.args.total_q, 800 * 9 / 2, "%s: 1/8 to 8/8 of the longest, end to end", text);
        else
            cr_expect(chunks == rows[n].chunks && chunks + (p.sq > 1 ? tokens : 0) == p.b, "%s: %d and %d", text, chunks, tokens);
        cr_expect(p.b < 8 || rows[n].spread == FA_SPREAD_FULL || ordered < p.b - 1, "%s: not shuffled", text);
        fa_sequences_close(&s);
        fa_ragged_close(&r);
        fa_ragged_close(&again);
    }
}

/* The chunks of a mixed batch have caches from all over the spread, none of them its longest. */
Test(verify_ragged, chunks_among_tokens_have_caches_of_all_lengths)
{
    fa_ragged r;
    fa_sequences s;
    fa_problem p = problem("bf16,d=64,mask=causal,features=lengths,b=64,hq=4,hkv=2,sq=100,sk=6500");
    int32_t seen[4], n = 0, sum = 0;
    cr_assert_eq(fa_ragged_of(&r, &p, 1, 0), FA_OK);
    cr_assert_eq(fa_sequences_open(&s, &p, &r.args), FA_OK);
    for (int32_t i = 0; i < 64; i++)
        if (s.of[i].nq > 1 && n < 4)
            seen[n++] = s.of[i].nk;
    cr_assert_eq(n, 4);
    for (int32_t i = 0; i < 4; i++) {
        sum += seen[i];
        cr_expect_eq((seen[i] - 100 - 800) % 1600, 0, "%d: 8, 24, 40, 56 of 64 shares of 6400 keys", seen[i]);
    }
    cr_expect_eq(sum, 4 * 100 + 128 * 100);
    fa_sequences_close(&s);
    fa_ragged_close(&r);
}

/* Work is counted of the rows that are there. */
Test(verify_ragged, work_of_what_is_there)
{
    /* clang-format off */
    static const struct { const char *text; double pairs, keys, queries; } rows[] = {
        { "mask=none,b=3,sq=40,sk=60", 3 * 40 * 60, 180, 120 },
        { "mask=none,features=lengths,b=4,sq=1,sk=80", 200, 200, 4 },
        { "mask=none,features=lengths,b=2,sq=400,sk=400", 200 * 200 + 400 * 400, 600, 600 },
        { "mask=causal,features=lengths,b=2,sq=400,sk=400", 200 * 201 / 2 + 400 * 401 / 2, 600, 600 },
        { "mask=causal,features=lengths,b=1,sq=100,sk=400", 100 * 300 + 100 * 101 / 2, 400, 100 },
    };
    /* clang-format on */
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        char text[160];
        fa_work w;
        snprintf(text, sizeof text, "bf16,d=64,hq=4,hkv=2,%s", rows[n].text);
        fa_problem p = problem(text);
        cr_assert_eq(fa_work_drawn(&w, &p, 0), FA_OK, "%s", fa_last_error());
        cr_expect_eq(w.flops, 4 * 4 * 64 * rows[n].pairs, "%s: %g", text, w.flops / (4 * 4 * 64));
        cr_expect(w.keys == rows[n].keys && w.queries == rows[n].queries, "%s: %g %g", text, w.keys, w.queries);
        cr_expect_eq(w.kv_bytes, rows[n].keys * 2 * (64 + 64) * 2, "%s", text);
    }
}

/* ---- where rows lie ---- */

Test(verify_ragged, lengths_and_first_rows_mean_what_the_manual_says)
{
    static const int32_t cu[] = { 2, 5, 5, 9, 4, 30 }, used[] = { 2, 7, -3, 100, 3 };
    static const struct {
        bool cu, used;
        int64_t first[5];
        int32_t n[5];
    } rows[] = { { false, false, { 0, 6, 12, 18, 24 }, { 6, 6, 6, 6, 6 } },
                 { false, true, { 0, 6, 12, 18, 24 }, { 2, 6, 0, 6, 3 } },
                 { true, false, { 2, 5, 5, 9, 4 }, { 3, 0, 4, 0, 6 } },
                 { true, true, { 2, 5, 5, 9, 4 }, { 2, 0, 0, 0, 3 } } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p = problem("bf16,d=8,mask=causal,features=lengths,b=5,hq=1,hkv=1,sq=6,sk=6");
        fa_args a = fa_operation_args(&p);
        fa_sequences s;
        a.cu_seqlens_q = a.cu_seqlens_k = rows[i].cu ? cu : NULL;
        a.seqlens_q = a.seqlens_k = rows[i].used ? used : NULL;
        a.total_q = rows[i].cu ? 12 : 0;
        a.total_k = rows[i].cu ? 11 : 0;
        cr_assert_eq(fa_sequences_open(&s, &p, &a), FA_OK);
        for (int k = 0; k < 5; k++) {
            cr_expect_eq(s.of[k].q, rows[i].first[k], "row %zu, sequence %d: %lld", i, k, (long long)s.of[k].q);
            cr_expect_eq(s.of[k].nq, rows[i].n[k], "row %zu, sequence %d: %d", i, k, s.of[k].nq);
            cr_expect_eq(s.of[k].nk, rows[i].n[k], "row %zu, sequence %d: %d keys", i, k, s.of[k].nk);
            cr_expect_eq(s.of[k].band.hi, 0);
        }
        cr_expect_eq(fa_sequences_rows_q(&s), rows[i].cu ? 12 : 30);
        fa_sequences_close(&s);
    }
}

Test(verify_ragged, keys_lie_in_pages)
{
    static const int32_t lengths[] = { 7, 0, 4 }, table[] = { 3, 0, 9, -1, -1, -1, 0, 4, 7 };
    static const int64_t first[] = { 9, 10, 11, 0, 1, 2, -1 }, third[] = { 0, 1, 2, -1 }; /* page 4 is not allocated */
    fa_problem p = problem("bf16,d=8,mask=window,features=lengths+pages,page=1,b=3,hq=1,hkv=1,sq=2,sk=8");
    fa_args a = fa_operation_args(&p);
    fa_sequences s;
    uint8_t q[6] = { 0 }, k[12] = { 0 };
    a.seqlens_k = lengths, a.page_table = table, a.page_size = 3, a.pages = 4;
    a.window_left = 1, a.window_right = 0;
    cr_assert_eq(fa_sequences_open(&s, &p, &a), FA_OK);
    for (int i = 0; i < 7; i++)
        cr_expect_eq(fa_sequences_key(&s, 0, i), first[i], "key %d: %lld", i, (long long)fa_sequences_key(&s, 0, i));
    for (int i = 0; i < 4; i++)
        cr_expect_eq(fa_sequences_key(&s, 2, i), third[i], "key %d: %lld", i, (long long)fa_sequences_key(&s, 2, i));
    fa_sequences_mark(&s, 0, q, k); /* queries 0 and 1 see keys 4 to 6, the last of which is nowhere */
    for (int i = 0; i < 12; i++)
        cr_expect_eq(k[i], i == 1 || i == 2, "row %d", i);
    cr_expect(q[0] && q[1] && !q[2]);
    int64_t lo, hi;
    fa_sequences_seen(&s, 0, &lo, &hi);
    cr_expect(lo == 4 && hi == 6);
    fa_sequences_seen(&s, 1, &lo, &hi);
    cr_expect_lt(hi, lo);
    fa_sequences_close(&s);
}

/* ---- references ---- */

typedef struct sample {
    fa_case c;
    fa_ragged ragged;
    fa_sequences sequences;
    float *in[FA_OPERANDS_MAX];
    fa_reference_call call;
} sample;

/* Random values everywhere. tame: every sequence has queries and keys, all in range, at the bottom-right diagonal. */
static void make(sample *s, const char *class, uint64_t seed, bool tame)
{
    fa_problem p = problem(class);
    fa_random r = { seed };
    *s = (sample){ .in = { NULL } };
    fa_case_make_class(&s->c, &p, FA_CASE_FEW, seed);
    if (tame) {
        fa_ragged_how *h = &s->c.ragged;
        s->c.diagonal = FA_BOTTOM_RIGHT;
        h->forms |= FA_FORM_SEQLENS_Q;
        h->q = h->k = FA_SPREAD_UNIFORM;
        h->wild = h->foreign = h->idle = 0;
    }
    cr_assert_eq(fa_case_ragged(&s->c, &s->ragged), FA_OK);
    cr_assert_eq(fa_sequences_open(&s->sequences, &s->c.problem, &s->ragged.args), FA_OK);
    s->call = (fa_reference_call){ .op = fa_operation_find(p.op), .problem = s->c.problem, .scale = fa_case_scale(&s->c) };
    s->call.sequences = &s->sequences;
    for (int i = FA_Q; i <= FA_V; i++) {
        fa_layout l = fa_case_layout(&s->c, &s->sequences.sizes, i);
        size_t n = (size_t)l.b * (size_t)l.s * (size_t)l.h * (size_t)l.width;
        s->in[i] = malloc((n + 1) * sizeof(float));
        for (size_t k = 0; k < n; k++)
            s->in[i][k] = fa_number_round(fa_random_normal(&r), p.dtype);
        s->call.in[i] = s->in[i];
    }
}

static void drop(sample *s)
{
    for (int i = FA_Q; i <= FA_V; i++)
        free(s->in[i]);
    fa_sequences_close(&s->sequences);
    fa_ragged_close(&s->ragged);
}

/* One sequence's rows, gathered through the operands themselves, one after the other. */
static void gather(const sample *s, int32_t i, float *q, float *k, float *v)
{
    const fa_args *a = &s->ragged.args;
    const fa_sequence *of = &s->sequences.of[i];
    const fa_problem *p = &s->c.problem;
    size_t wq = (size_t)p->hq * (size_t)p->d, wk = (size_t)p->hkv * (size_t)p->d, wv = (size_t)p->hkv * (size_t)p->dv;
    for (size_t row = 0; row < (size_t)of->nq; row++) {
        size_t from = (a->cu_seqlens_q ? (size_t)a->cu_seqlens_q[i] : (size_t)i * (size_t)a->sq) + row;
        memcpy(q + row * wq, s->in[FA_Q] + from * wq, wq * sizeof *q);
    }
    int32_t entries = a->page_size ? (a->sk + a->page_size - 1) / a->page_size : 0;
    int64_t stride = a->page_table_stride ? a->page_table_stride : entries;
    for (size_t row = 0; row < (size_t)of->nk; row++) {
        size_t from = (size_t)i * (size_t)a->sk + row;
        bool real = true;
        if (a->cu_seqlens_k)
            from = (size_t)a->cu_seqlens_k[i] + row;
        if (a->page_table) {
            int32_t id = a->page_table[i * stride + (int64_t)row / a->page_size];
            real = id >= 0 && id < a->pages;
            from = (size_t)(real ? id : 0) * (size_t)a->page_size + row % (size_t)a->page_size;
        }
        for (size_t x = 0; x < wk; x++)
            k[row * wk + x] = real ? s->in[FA_K][from * wk + x] : 0;
        for (size_t x = 0; x < wv; x++)
            v[row * wv + x] = real ? s->in[FA_V][from * wv + x] : 0;
    }
}

static const char *const classes[] = { "bf16,d=16,mask=causal,features=lengths", "fp16,d=24,dv=8,mask=window,features=lengths+pages,page=1",
                                       "tf32,d=16,features=lengths+pages,page=16", "fp32,d=8,mask=causal,features=lengths+pages,page=8" };

Test(verify_ragged, references_are_those_of_each_sequence_alone)
{
    for (uint64_t seed = 0; seed < 80; seed++) {
        sample s;
        fa_expected e;
        make(&s, classes[seed % 4], seed, false);
        const fa_problem *p = &s.c.problem;
        if (s.c.ragged.wild || p->b > 6) { /* gather() knows no lengths out of range */
            drop(&s);
            continue;
        }
        cr_assert_eq(fa_expected_open(&e, &s.call), FA_OK);
        cr_assert_eq(fa_expected_exact(&e), FA_OK);
        size_t nq = (size_t)p->sq * (size_t)p->hq, nk = (size_t)p->sk * (size_t)p->hkv;
        float *q = calloc(nq * (size_t)p->d + 1, 4), *k = calloc(nk * (size_t)p->d + 1, 4), *v = calloc(nk * (size_t)p->dv + 1, 4);
        double *o = calloc(nq * (size_t)p->dv + 1, 8), *lse = calloc(nq + 1, 8);
        int64_t rows = s.sequences.sizes.of[FA_EXTENT_ROWS_Q], written = 0;
        for (int32_t i = 0; i < p->b; i++) {
            const fa_sequence *of = &s.sequences.of[i];
            fa_problem own = *p;
            own.sq = of->nq, own.sk = of->nk;
            fa_band band = fa_band_of(&own, s.c.diagonal, s.c.offset, s.c.window_left, s.c.window_right);
            gather(&s, i, q, k, v);
            fa_attention a = { 1, p->hq, p->hkv, of->nq, of->nk, p->d, p->dv, band.lo, band.hi, s.call.scale, q, k, v, .sequences = NULL };
            cr_assert_eq(fa_oracle_exact(&a, o, lse), FA_OK);
            for (int64_t row = 0; row < of->nq; row++) {
                int64_t at = of->q + row;
                cr_assert(!memcmp(e.out[FA_O] + at * p->hq * p->dv, o + row * p->hq * p->dv, (size_t)(p->hq * p->dv) * 8), "seed %d: O",
                          (int)seed);
                for (int64_t h = 0; h < p->hq; h++)
                    cr_assert_eq(e.out[LSE][(at / rows * p->hq + h) * rows + at % rows], lse[h * of->nq + row], "seed %d: LSE", (int)seed);
                if (of->nk == 0)
                    cr_assert(lse[row] == -INFINITY && o[row * p->hq * p->dv] == 0);
            }
            written += of->nq;
        }
        int64_t empty = 0;
        for (int64_t n = 0; n < e.n[FA_O]; n++) {
            cr_assert_eq(isnan(e.out[FA_O][n]) != 0, !fa_expected_writes(&e, FA_O, n), "seed %d: element %lld", (int)seed, (long long)n);
            empty += !fa_expected_writes(&e, FA_O, n);
        }
        cr_expect_eq(e.rows[0], written);
        cr_expect_eq(empty, e.n[FA_O] - written * p->hq * p->dv);
        fa_expected_close(&e);
        free(q), free(k), free(v), free(o), free(lse);
        drop(&s);
    }
}

/* ---- planted errors ---- */

typedef enum planted { NONE, LONGER, SHORTER, NEXT_PAGE, SAME_DIAGONAL, NEIGHBOURS_KEYS, LSE_OF_THE_NEXT, ERRORS } planted;

/* Where a kernel with the error finds its rows. */
static void plant(planted e, sample *s)
{
    fa_sequences *q = &s->sequences;
    for (int32_t i = 0; i < q->b; i++) {
        fa_sequence *of = &q->of[i];
        int64_t *key = &q->key[(int64_t)i * q->sk];
        if (e == LONGER && of->nk < s->c.problem.sk) {
            key[of->nk++] = 0;
            of->band.lo++, of->band.hi++;
        }
        of->nk -= e == SHORTER;
        if (e == SAME_DIAGONAL)
            of->band = fa_case_band(&s->c);
        for (int32_t j = 0; j < of->nk && (e == NEXT_PAGE || e == NEIGHBOURS_KEYS); j++)
            key[j] = e == NEXT_PAGE ? (key[j] + s->ragged.args.page_size) % fa_sequences_rows_k(q) : q->key[(int64_t)(q->b - 1) * q->sk];
    }
}

/* Whether an output is off by so much that it is no rounding. */
static bool differ(const double *x, const double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fabs(x[i] - y[i]) > 0.2)
            return true;
    return false;
}

/* Whether the rule refuses the outputs of a kernel with the error. *tried counts those that are wrong at all. */
static int judge_planted(planted error, uint64_t seed, int *tried)
{
    sample s;
    fa_expected right, wrong;
    fa_verdict v = { .ok = true };
    float *got[FA_OPERANDS_MAX] = { NULL };
    make(&s, "bf16,d=32,mask=causal,features=lengths+pages,page=4", seed, true);
    cr_assert_eq(fa_expected_open(&right, &s.call), FA_OK);
    cr_assert_eq(fa_expected_exact(&right), FA_OK);
    cr_assert_eq(fa_expected_finish(&right), FA_OK);
    plant(error, &s);
    cr_assert_eq(fa_expected_open(&wrong, &s.call), FA_OK);
    cr_assert_eq(fa_expected_exact(&wrong), FA_OK);
    if (error == LSE_OF_THE_NEXT)
        memmove(wrong.out[LSE], wrong.out[LSE] + 1, (size_t)(wrong.n[LSE] - 1) * sizeof(double));
    for (int i = FA_O; i <= LSE; i++) {
        got[i] = malloc(((size_t)right.n[i] + 1) * sizeof(float));
        for (int64_t k = 0; k < right.n[i]; k++)
            got[i][k] = fa_number_round((float)wrong.out[i][k], i == FA_O ? FA_BF16 : FA_F32);
    }
    bool wrong_at_all =
        error == NONE || differ(right.out[FA_O], wrong.out[FA_O], right.n[FA_O]) || differ(right.out[LSE], wrong.out[LSE], right.n[LSE]);
    *tried += wrong_at_all;
    bool refused = wrong_at_all && !fa_expected_judge(&right, (const float *const *)got, &v);
    free(got[FA_O]), free(got[LSE]);
    fa_expected_close(&right);
    fa_expected_close(&wrong);
    drop(&s);
    return refused;
}

Test(verify_ragged, the_rule_tells_a_sequence_from_its_neighbour)
{
    for (int error = NONE; error < ERRORS; error++) {
        int tried = 0, refused = 0;
        for (uint64_t seed = 0; seed < 60; seed++)
            refused += judge_planted((planted)error, seed, &tried);
        cr_expect_geq(tried, 15, "error %d: %d", error, tried);
        cr_expect_eq(refused, error == NONE ? 0 : tried, "error %d: %d of %d", error, refused, tried);
    }
}
