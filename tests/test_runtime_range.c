/* fa_prepare_range(): every bucket of a box of shapes, and no other. */
#include "gen/bucket.h"
#include "runtime/args/check.h"
#include "test_misses.h"

TestSuite(runtime_range, .init = open_nearest, .fini = close_nearest, .timeout = 200);

static fa_problem box(int b, int sq, int sk)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = FA_BF16, p.d = 64, p.hq = 8, p.hkv = 2, p.b = b, p.sq = sq, p.sk = sk;
    return p;
}

/* Boxes small enough to walk: every shape in them has its plan, and there are no plans but theirs. */
Test(runtime_range, a_range_is_every_bucket_it_touches)
{
    static const struct {
        fa_problem lo, hi;
    } boxes[] = {
        { { .b = 1, .sq = 1, .sk = 1 }, { .b = 1, .sq = 200, .sk = 1 } },
        { { .b = 3, .sq = 90, .sk = 91 }, { .b = 11, .sq = 93, .sk = 182 } },
        { { .b = 2, .sq = 5, .sk = 725 }, { .b = 2, .sq = 5, .sk = 1448 } },
        { { .b = 2, .sq = 70, .sk = 400 }, { .b = 2, .sq = 71, .sk = 600 } }, /* tiles are cut into parts from some keys on */
        { { .b = 1, .sq = 1, .sk = 7 }, { .b = 40, .sq = 1, .sk = 7 } },
        { { .b = 0, .sq = 0, .sk = 30 }, { .b = 0, .sq = 0, .sk = 300 } },
        { { .b = 0, .sq = 0, .sk = 0 }, { .b = 0, .sq = 0, .sk = 0 } },
    };
    static unsigned char seen[1 << 21];
    fa_destroy(ctx);
    for (size_t n = 0; n < 2 * (sizeof boxes / sizeof *boxes); n++) {
        const size_t i = n / 2;
        const fa_problem *l = &boxes[i].lo, *h = &boxes[i].hi;
        fa_problem lo = box(l->b, l->sq, l->sk), hi = box(h->b, h->sq, h->sk);
        int32_t kernels = -1;
        int buckets = 0, bare = 0, missing = 0; /* bare: which launches without a workspace have of their own */
        memset(seen, 0, sizeof seen);
        whose = n % 2 ? FA_WORKSPACE_CALLER : FA_WORKSPACE_CONTEXT;
        open_with(FA_MISS_FAIL);
        OK(fa_prepare_range(ctx, &lo, &hi, &kernels));
        for (int b = l->b; b <= h->b; b++)
            for (int sq = l->sq; sq <= h->sq; sq++)
                for (int sk = l->sk; sk <= h->sk; sk++) {
                    fa_problem raw = box(b, sq, sk), p;
                    OK(fa_problem_normalize(&p, &raw));
                    uint32_t bucket = fa_problem_bucket(&p); /* the group and the window are the same in all */
                    bucket = (bucket & ((1 << 19) - 1)) | bucket >> 30 << 19;
                    if (seen[bucket]++ == 0) {
                        buckets++;
                        bare += whose == FA_WORKSPACE_CALLER && fa_check_may_lack(&p);
                        missing += !plan_of(&p);
                    }
                    seen[bucket] = 1;
                }
        cr_expect_eq(missing, 0, "box %zu: %d of %d buckets", i, missing, buckets);
        cr_expect_eq(plans(), buckets + bare, "box %zu: %d plans, %d buckets, %d without a workspace", i, plans(), buckets, bare);
        cr_expect(kernels >= 1 && kernels <= buckets + bare && kernels == fake_live_libraries(), "box %zu: %d kernels", i, kernels);
        fa_destroy(ctx);
    }
    whose = FA_WORKSPACE_CONTEXT;
    open_with(FA_MISS_FAIL);
}

/* The lengths from 16 to `last` at which a bucket begins or ends, with that many of the other one. */
static int edges_of(fa_problem p, int last, bool of_sq, int beside, int *edge)
{
    int n = 0;
    uint32_t before = 0;
    for (int v = 16; v <= last; v++) {
        p.sq = of_sq ? v : beside;
        p.sk = of_sq ? beside : v;
        uint32_t bucket = fa_problem_bucket(&p);
        if (v > 16 && bucket != before) {
            edge[n++] = v - 1;
            edge[n++] = v;
        }
        before = bucket;
    }
    edge[n++] = 16;
    edge[n++] = last;
    return n;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Buckets from 16 to the lengths of p: of both sides' edges, and of pairs beside the diagonal. */
static int buckets_of(fa_problem p)
{
    static int q[1200], k[1200];
    static uint32_t found[1200 * 1200];
    int last_sq = p.sq, last_sk = p.sk, n = 0, distinct = 0;
    int nq = edges_of(p, last_sq, true, 1 << 30, q);
    nq += edges_of(p, last_sq, true, 1, q + nq);
    int nk = edges_of(p, last_sk, false, last_sq, k);
    nk += edges_of(p, last_sk, false, 16, k + nk);
    for (int i = 0; i < nq; i++)
        for (int j = 0; j < nk + 3; j++) {
            p.sq = q[i];
            p.sk = j < nk ? k[j] : q[i] + j - nk - 1;
            if (p.sk >= 16 && p.sk <= last_sk)
                found[n++] = fa_problem_bucket(&p);
        }
    for (int j = 0; j < nk; j++)
        for (int off = -1; off <= 1; off++) {
            p.sk = k[j];
            p.sq = k[j] + off;
            if (p.sq >= 16 && p.sq <= last_sq)
                found[n++] = fa_problem_bucket(&p);
        }
    for (p.sq = 16; p.sq <= last_sq && p.sq <= last_sk; p.sq++) {
        p.sk = p.sq;
        uint32_t bucket = fa_problem_bucket(&p);
        if (!n || found[n - 1] != bucket)
            found[n++] = bucket;
    }
    qsort(found, (size_t)n, sizeof *found, ascending);
    for (int i = 0; i < n; i++)
        distinct += i == 0 || found[i] != found[i - 1];
    return distinct;
}

/* Shapes of a box run though a miss fails; those outside do not. */
Test(runtime_range, a_range_of_lengths)
{
    fa_problem lo = problem(16, 16), hi = problem(8192, 8192);
    int32_t kernels = 0, again = 0;
    uint64_t seed = 1;
    fa_destroy(ctx);
    open_with(FA_MISS_FAIL);
    OK(fa_prepare_range(ctx, &lo, &hi, &kernels));
    cr_expect(kernels >= 2 && kernels == compiles(), "%d kernels, %d compiles", kernels, compiles());
    int wanted = buckets_of(hi);
    cr_expect_eq(plans(), wanted, "%d plans, not %d", plans(), wanted);
    for (int i = 0; i < 2000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        fa_args a = call(16 + (int)(seed >> 33) % 8177 / (1 + i % 40), 16 + (int)(seed >> 43) % 8177 / (1 + i % 37));
        if (i % 2) /* kernels of few rows are among them */
            a.workspace = AT(6), a.workspace_size = 64 << 20;
        OK(fa_launch(ctx, &a, NULL));
    }
    OK(fa_prepare_range(ctx, &lo, &hi, &again));
    cr_expect(again == kernels && compiles() == kernels && plans() == wanted);
    OK(fa_prepare_range(ctx, &lo, &hi, NULL));
    fa_args a = call(8192, 65536);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NO_KERNEL);
    lo = hi = problem(512, 512); /* a range of one */
    OK(fa_prepare_range(ctx, &lo, &hi, &again));
    cr_expect_eq(again, 1);
}

/* What was asked for in the background is compiled by the range as well. */
Test(runtime_range, a_range_leaves_no_kernel_that_stands_in)
{
    CUfunction first = launched(512);
    shut_gate();
    launched(1024);
    let(meet(), 'f');
    await(1024, FA_JOB_FAILED);
    open_gate();
    fa_problem lo = problem(512, 512), hi = problem(1024, 1024);
    int32_t kernels = 0;
    OK(fa_prepare_range(ctx, &lo, &hi, &kernels));
    cr_expect_eq(compiles(), kernels + 1);
    cr_expect_neq(launched(1024), first);
    cr_expect(tells(1024, "table      hit: prepared\n"), "%s", explained(1024));
}

static void *fail_second(void *user)
{
    (void)user;
    let(meet(), '.');
    while (compiles() < 2) /* the first has left the gate then */
        sched_yield();
    let(meet(), 'f');
    open_gate();
    return NULL;
}

Test(runtime_range, a_range_that_fails_keeps_what_is_done)
{
    fa_problem lo = problem(512, 64), hi = problem(512, 512), p = problem(512, 64);
    fa_config c = variant(32);
    int32_t kernels = -1;
    pthread_t t;
    fa_problem third = problem(512, 256);
    record(&third, &c);
    for (int n = 64; n <= 128; n *= 2) {
        fa_problem q = problem(512, n);
        record(&q, &own);
    }
    shut_gate();
    pthread_create(&t, NULL, fail_second, NULL);
    cr_expect_eq(fa_prepare_range(ctx, &lo, &hi, &kernels), FA_COMPILE);
    pthread_join(t, NULL);
    cr_expect(strstr(fa_last_error(), "range: bf16,d=64") && strstr(fa_last_error(), "sq=512,sk=256, after 4 of 9 shapes: "), "%s",
              fa_last_error());
    cr_expect_eq(kernels, 1);
    cr_expect(plan_of(&p) && plans() == 4);
    OK(fa_prepare_range(ctx, &lo, &hi, &kernels));
    cr_expect_eq(plans(), 9);
}

Test(runtime_range, ranges_that_are_refused)
{
    fa_problem good = problem(512, 512);
    const struct {
        size_t at; /* of the field that is set in hi, or in both */
        int32_t lo, hi;
        const char *says;
    } rows[] = {
        { offsetof(fa_problem, dtype), FA_BF16, FA_F16, "range: hi: dtype is fp16; accepted: bf16, as in lo" },
        { offsetof(fa_problem, d), 64, 72, "hi: d is 72; accepted: 64, as in lo" },
        { offsetof(fa_problem, mask), FA_MASK_NONE, FA_MASK_CAUSAL, "hi: mask is causal; accepted: none" },
        { offsetof(fa_problem, align), 16, 8, "hi: align is 8; accepted: 16" },
        { offsetof(fa_problem, hq), 8, 16, "hi: hq is 16; accepted: 8, as in lo" },
        { offsetof(fa_problem, sq), 512, 511, "hi: sq is 511; accepted: at least 512, as in lo" },
        { offsetof(fa_problem, sk), 512, 0, "hi: sk is 0, and 512 in lo; accepted: 0 (unset) in both, or in none" },
        { offsetof(fa_problem, b), -1, 4, "lo: problem: b is -1" },
        { offsetof(fa_problem, sk), 1, (1 << 30) + 1, "hi: problem: sk is 1073741825" },
        { offsetof(fa_problem, size), 4, sizeof(fa_problem), "lo: problem: size is 4" },
    };
    int32_t kernels;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem lo = good, hi = good;
        lo.dv = hi.dv = lo.o_dtype = hi.o_dtype = 0;
        memcpy((char *)&lo + rows[i].at, &rows[i].lo, 4);
        memcpy((char *)&hi + rows[i].at, &rows[i].hi, 4);
        kernels = 7;
        cr_expect_eq(fa_prepare_range(ctx, &lo, &hi, &kernels), FA_INVALID, "%s", rows[i].says);
        cr_expect(strstr(fa_last_error(), rows[i].says), "%s\n%s", rows[i].says, fa_last_error());
        cr_expect_eq(kernels, 0);
    }
    fa_problem lo = problem(1, 1), hi = lo;
    hi.b = 1024;
    hi.sq = hi.sk = 1 << 30;
    cr_expect_eq(fa_prepare_range(ctx, &lo, &hi, &kernels), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "range: 403744 shape buckets: 31 of b, 148 of sq, 88 of sk, 1 of window; accepted: at most 16384"),
              "%s", fa_last_error());
    cr_expect_eq(fa_prepare_range(NULL, &lo, &hi, NULL), FA_INVALID);
    cr_expect_eq(fa_prepare_range(ctx, NULL, &hi, NULL), FA_INVALID);
    cr_expect_eq(fa_prepare_range(ctx, &lo, NULL, NULL), FA_INVALID);
    cr_expect_eq(compiles(), 0);
}

/* The box of docs/embedding.md has as many buckets as the page says. */
Test(runtime_range, the_box_of_the_page)
{
    fa_problem lo = FA_PROBLEM_INIT, hi;
    int b = 0, sq = 0, sk = 0;
    char line[512];
    FILE *f = fopen(FAGEN_TESTS "/../docs/embedding.md", "r");
    cr_assert_not_null(f);
    while (fgets(line, sizeof line, f) &&
           sscanf(line, "fa_prepare_range(ctx, &from, &to, &kernels); /* %d x %d x %d buckets", &b, &sq, &sk) < 3)
        ;
    fclose(f);
    lo.dtype = FA_BF16, lo.d = 128, lo.mask = FA_MASK_CAUSAL, lo.hq = 32, lo.hkv = 8;
    lo.b = 1, lo.sq = 1, lo.sk = 1;
    hi = lo;
    hi.b = 64, hi.sk = 8192;
    OK(fa_prepare_range(ctx, &lo, &hi, NULL));
    cr_expect(plans() > 0 && plans() == b * sq * sk, "%d plans; the page says %d x %d x %d", plans(), b, sq, sk);
}

Test(runtime_range, a_range_of_windows)
{
    fa_problem lo = problem(512, 512), hi;
    lo.mask = FA_MASK_WINDOW;
    lo.window = 100;
    hi = lo;
    hi.window = 4000;
    OK(fa_prepare_range(ctx, &lo, &hi, NULL));
    cr_expect_eq(plans(), 6, "about 128 to about 4096");
}
