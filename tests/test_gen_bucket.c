/* bucket: its edges, and the shape that stands for it. */
#include "gen/batch_kind.h"
#include "gen/bucket.h"
#include "gen/problem.h"
#include "gen/splits.h"
#include "gen/tile_rounds.h"
#include <criterion/criterion.h>

static fa_problem problem(const char *text)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s: %s", text, fa_last_error());
    return p;
}

static uint64_t state = 33;

static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* As many small ones as large ones. */
static int32_t length(int bits)
{
    return (int32_t)(1 + draw((uint64_t)1 << draw((uint64_t)bits + 1)));
}

static const char *const classes[] = {
    "bf16,d=64",
    "fp32,d=96,mask=causal",
    "bf16,d=128,mask=window",
    "bf16,d=128,features=lengths",
    "bf16,d=128,mask=causal,features=lengths+pages,page=16",
    "bf16,d=64,mask=causal,op=backward",
    "bf16,d=96,op=backward",
    "fp16,d=64,features=no-workspace",
    "bf16,d=64,op=merge",
    "bf16,d=64,features=batch-invariant",
    "bf16,d=128,mask=causal,features=lengths+batch-invariant",
    "bf16,d=128,kv=q8_0",
    "bf16,d=64,mask=causal,features=lengths+pages,page=16,kv=q4_0",
    "bf16,d=128,mask=window,kv=s8,k_scale=2,v_scale=2",
    "bf16,d=64,features=batch-invariant,kv=e4m3",
};
enum { CLASSES = sizeof classes / sizeof *classes };

static fa_problem random_problem(int bits)
{
    fa_problem p = problem(classes[draw(CLASSES)]);
    p.b = length(8);
    p.hkv = length(5);
    p.hq = p.hkv * length(7);
    p.sq = length(bits);
    p.sk = draw(3) ? length(bits) : p.sq;
    p.window = p.mask == FA_MASK_WINDOW ? length(14) : 0;
    return p;
}

/* It lies in the bucket that it stands for, and is what the next look at it gives. What configs are for is the same. */
Test(bucket, one_shape_stands_for_it)
{
    for (int i = 0; i < 50000; i++) {
        char line[256], stands[256];
        fa_problem p = random_problem(i % 2 ? 8 : 20), r = fa_problem_point(&p), again = fa_problem_point(&r);
        fa_problem_print(line, sizeof line, &p);
        fa_problem_print(stands, sizeof stands, &r);
        fa_problem by = fa_problem_chosen_by(&p), of = fa_problem_chosen_by(&r);
        cr_assert_eq(fa_problem_bucket(&r), fa_problem_bucket(&by), "%s: %s", line, stands);
        cr_assert_eq(fa_problem_bucket(&of), fa_problem_bucket(&by), "%s: %s", line, stands);
        cr_assert(fa_problem_same_shape(&r, &again), "%s: %s", line, stands);
        cr_assert(fa_problem_same_class(&r, &p), "%s: %s", line, stands);
        cr_assert(fa_problem_alike(&r, &by), "%s: %s", line, stands);
        cr_assert_eq(fa_problem_steps(&r, &p), 0);
        cr_assert_eq(fa_problem_splits(&r), fa_problem_splits(&p), "%s: %s", line, stands);
    }
}

/* Gradients in few tiles: what stands for a shape has as many rounds of blocks of 64 and of 128 keys, on 132 SMs. */
Test(bucket, few_tiles_have_the_rounds_of_what_stands_for_them)
{
    int n = 0;
    for (int i = 0; i < 40000; i++) {
        char line[256];
        fa_problem p = problem("bf16,d=96,op=backward");
        p.b = 1 + (int32_t)draw(4), p.hkv = 1 + (int32_t)draw(32), p.hq = p.hkv * (draw(2) ? 1 : 1 + (int32_t)draw(8)),
        p.sq = p.sk = 1 + (int32_t)draw(20000 >> draw(7));
        fa_problem r = fa_problem_point(&p);
        fa_problem_print(line, sizeof line, &p);
        cr_assert_eq(fa_problem_bucket(&r), fa_problem_bucket(&p), "%s", line);
        cr_assert_eq(fa_problem_same_rounds(&r, 132), fa_problem_same_rounds(&p, 132), "%s", line);
        if (!fa_problem_same_rounds(&p, 132) || p.b * p.hkv > (p.hq > p.hkv ? 16 : 32)) /* KV heads that stand for others */
            continue;
        n++;
        for (int32_t keys = 64; keys <= 128; keys += 64) {
            int32_t of = (p.sk + keys - 1) / keys * p.b * p.hq, stands = (r.sk + keys - 1) / keys * r.b * r.hq;
            int32_t rounds = (of + 131) / 132, those = (stands + 131) / 132, most = keys == 64 ? 3 : 2;
            cr_assert_eq(rounds < most ? rounds : most, those < most ? those : most, "%s: %d keys", line, keys);
        }
    }
    cr_expect_gt(n, 5000);
}

/* Few rows of few bits: what stands for a shape has pieces of heads as large as it has. */
Test(bucket, pieces_of_heads_are_those_of_what_stands_for_them)
{
    for (int i = 0; i < 20000; i++) {
        char line[256];
        fa_problem p = problem(i % 2 ? "bf16,d=128,kv=q4_0" : "bf16,d=128,features=lengths+pages,page=16,kv=q8_0");
        p.b = length(8);
        p.hkv = length(6);
        p.hq = p.hkv * (int32_t)(1 + draw(4));
        p.sq = (int32_t)(1 + draw(16));
        p.sk = length(20);
        fa_problem r = fa_problem_point(&p);
        fa_problem_print(line, sizeof line, &p);
        cr_assert(!(r.hkv % 8) == !(p.hkv % 8) && !(r.hkv % 4) == !(p.hkv % 4) && (r.hkv == 1) == (p.hkv == 1), "%s: %d heads stand for %d",
                  line, r.hkv, p.hkv);
    }
}

/* A field that grows leaves a bucket for good: ranges are cut at the edges. */
Test(bucket, none_comes_back)
{
    static const int fields[] = { FA_FIELD_b, FA_FIELD_sq, FA_FIELD_sk };
    for (int i = 0; i < 300; i++) {
        const fa_problem_field *f = &fa_problem_fields[fields[i % 3]];
        fa_problem p = random_problem(10);
        uint32_t seen[400], n = 0;
        for (int32_t v = 1; v <= 3000; v++) {
            fa_problem_set(&p, f, v);
            uint32_t bucket = fa_problem_bucket(&p);
            if (n && seen[n - 1] == bucket)
                continue;
            for (uint32_t k = 0; k < n; k++)
                cr_assert_neq(seen[k], bucket, "%s = %d", f->word, v);
            cr_assert_lt(n, 400);
            seen[n++] = bucket;
        }
    }
}

Test(bucket, lengths_have_48_at_most)
{
    static const int32_t groups[] = { 1, 2, 3, 4, 7, 8, 16, 32, 128 };
    for (size_t c = 0; c < CLASSES; c++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (int decoding = 0; decoding < 2; decoding++) {
                fa_problem p = problem(classes[c]);
                uint32_t last = 0;
                int n = 0;
                p.b = 2, p.hkv = 4, p.hq = 4 * groups[g], p.sq = 1;
                for (int32_t s = 1; s <= 131072; s++) {
                    p.sk = s;
                    p.sq = decoding ? 1 : s;
                    uint32_t bucket = fa_problem_bucket(&p);
                    n += s == 1 || bucket != last;
                    last = bucket;
                }
                cr_expect_leq(n, 48, "%s, groups of %d%s: %d", classes[c], groups[g], decoding ? ", one query" : "", n);
            }
}

/* Which are one bucket, which are not, and what stands for the first. */
Test(bucket, edges)
{
    static const struct {
        const char *one, *other;
        bool same;
        int32_t sq, sk;
    } rows[] = {
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=64,sk=4096", "bf16,d=64,b=1,hq=8,hkv=8,sq=65,sk=4096", false, 64, 4096 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=60,sk=4096", "bf16,d=64,b=1,hq=8,hkv=8,sq=33,sk=4096", true, 64, 4096 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=32,sk=4096", "bf16,d=64,b=1,hq=8,hkv=8,sq=33,sk=4096", false, 32, 4096 },
        { "bf16,d=64,b=1,hq=64,hkv=8,sq=8,sk=4096", "bf16,d=64,b=1,hq=64,hkv=8,sq=9,sk=4096", false, 8, 4096 },
        { "bf16,d=64,b=1,hq=56,hkv=8,sq=1,sk=4096", "bf16,d=64,b=1,hq=64,hkv=8,sq=1,sk=4096", false, 1, 4096 },
        { "bf16,d=64,mask=causal,b=1,hq=8,hkv=8,sq=4600,sk=4600", "bf16,d=64,mask=causal,b=1,hq=8,hkv=8,sq=4096,sk=4096", true, 4096,
          4096 },
        { "bf16,d=64,b=2,hq=64,hkv=8,sq=4600,sk=4600", "bf16,d=64,b=2,hq=64,hkv=8,sq=4096,sk=4096", true, 4096, 4096 },
        /* One round of 128 tiles of 192 rows, and a second with 3246 rows. */
        { "bf16,d=64,b=1,hq=8,hkv=2,sq=3246,sk=3246", "bf16,d=64,b=1,hq=8,hkv=2,sq=3072,sk=3072", false, 3328, 3328 },
        { "bf16,d=64,b=1,hq=8,hkv=2,sq=3246,sk=3246", "bf16,d=64,b=1,hq=8,hkv=2,sq=3073,sk=3073", true, 3328, 3328 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=4600,sk=4600", "bf16,d=64,b=1,hq=8,hkv=8,sq=4096,sk=4096", false, 4608, 4608 },
        { "bf16,d=192,b=2,hq=8,hkv=4,sq=1592,sk=1592", "bf16,d=192,b=2,hq=8,hkv=4,sq=1537,sk=1537", true, 1664, 1664 },
        { "bf16,d=64,b=1,hq=8,hkv=2,sq=3246,sk=3100", "bf16,d=64,b=1,hq=8,hkv=2,sq=3246,sk=3246", false, 3072, 3071 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=4700,sk=4700", "bf16,d=64,b=1,hq=8,hkv=8,sq=4096,sk=4096", false, 5120, 5120 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=10000,sk=10000", "bf16,d=64,b=1,hq=8,hkv=8,sq=8192,sk=8192", true, 8192, 8192 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=10300,sk=10300", "bf16,d=64,b=1,hq=8,hkv=8,sq=8192,sk=8192", false, 12288, 12288 },
        { "bf16,d=64,op=backward,b=1,hq=8,hkv=8,sq=9300,sk=9300", "bf16,d=64,op=backward,b=1,hq=8,hkv=8,sq=8192,sk=8192", false, 10240,
          10240 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=1,sk=5000", "bf16,d=64,b=1,hq=8,hkv=8,sq=1,sk=4096", true, 1, 4096 },
        { "bf16,d=64,b=1,hq=13,hkv=13,sq=512,sk=512", "bf16,d=64,b=1,hq=14,hkv=14,sq=512,sk=512", false, 512, 512 },
        { "bf16,d=64,b=1,hq=40,hkv=40,sq=512,sk=512", "bf16,d=64,b=1,hq=41,hkv=41,sq=512,sk=512", true, 512, 512 },
        { "bf16,d=64,b=1,hq=40,hkv=40,sq=512,sk=512", "bf16,d=64,b=1,hq=43,hkv=43,sq=512,sk=512", false, 512, 512 },
        { "bf16,d=64,op=backward,b=1,hq=40,hkv=40,sq=512,sk=512", "bf16,d=64,op=backward,b=1,hq=43,hkv=43,sq=512,sk=512", true, 512, 512 },
        { "bf16,d=64,b=1,hq=40,hkv=40,sq=512,sk=512", "bf16,d=64,b=1,hq=45,hkv=45,sq=512,sk=512", false, 512, 512 },
        { "bf16,d=64,b=2,hq=8,hkv=8,sq=512,sk=512", "bf16,d=64,b=1,hq=16,hkv=16,sq=512,sk=512", true, 512, 512 },
        { "bf16,d=64,features=lengths,b=8,hq=8,hkv=8,sq=4096,sk=4096", "bf16,d=64,features=lengths,b=8,hq=8,hkv=8,sq=4096,sk=4100", false,
          4096, 4096 },
        { "bf16,d=64,features=lengths,b=3,hq=8,hkv=8,sq=512,sk=4100", "bf16,d=64,features=lengths,b=4,hq=6,hkv=6,sq=512,sk=4100", false,
          512, 4096 },
        { "bf16,d=64,mask=window,window=100,sq=512,sk=512", "bf16,d=64,mask=window,window=200,sq=512,sk=512", false, 512, 512 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=385,sk=8192", "bf16,d=64,b=1,hq=8,hkv=8,sq=400,sk=8192", true, 400, 8192 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=416,sk=8192", "bf16,d=64,b=1,hq=8,hkv=8,sq=417,sk=8192", false, 416, 8192 },
        { "bf16,d=64,b=1,hq=64,hkv=8,sq=12,sk=8192", "bf16,d=64,b=1,hq=64,hkv=8,sq=13,sk=8192", false, 12, 8192 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=500,sk=510", "bf16,d=64,b=1,hq=8,hkv=8,sq=510,sk=510", false, 512, 513 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=440,sk=445", "bf16,d=64,b=1,hq=8,hkv=8,sq=445,sk=440", false, 448, 449 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=460,sk=470", "bf16,d=64,b=1,hq=8,hkv=8,sq=470,sk=460", false, 464, 465 },
        { "bf16,d=64,op=backward,b=1,hq=8,hkv=8,sq=385,sk=8192", "bf16,d=64,op=backward,b=1,hq=8,hkv=8,sq=415,sk=8192", true, 384, 8192 },
        { "bf16,d=64", "bf16,d=64,b=1,hq=16,hkv=16,sq=4096,sk=4096", true, 4096, 4096 },
        /* Pieces of eight heads, of four, of two, none; of many rows nothing comes so. */
        { "bf16,d=64,kv=q8_0,b=3,hq=8,hkv=8,sq=1,sk=4096", "bf16,d=64,kv=q8_0,b=1,hq=24,hkv=24,sq=1,sk=4096", true, 1, 4096 },
        { "bf16,d=64,kv=q8_0,b=3,hq=8,hkv=8,sq=1,sk=4096", "bf16,d=64,kv=q8_0,b=2,hq=12,hkv=12,sq=1,sk=4096", false, 1, 4096 },
        { "bf16,d=64,kv=q8_0,b=5,hq=6,hkv=6,sq=1,sk=4096", "bf16,d=64,kv=q8_0,b=3,hq=10,hkv=10,sq=1,sk=4096", true, 1, 4096 },
        { "bf16,d=64,kv=q8_0,b=5,hq=6,hkv=6,sq=1,sk=4096", "bf16,d=64,kv=q8_0,b=6,hq=5,hkv=5,sq=1,sk=4096", true, 1, 4096 },
        { "bf16,d=64,kv=q8_0,b=6,hq=5,hkv=5,sq=1,sk=4096", "bf16,d=64,kv=q8_0,b=30,hq=1,hkv=1,sq=1,sk=4096", false, 1, 4096 },
        { "bf16,d=64,b=5,hq=6,hkv=6,sq=1,sk=4096", "bf16,d=64,b=6,hq=5,hkv=5,sq=1,sk=4096", true, 1, 4096 },
        { "bf16,d=64,kv=q8_0,b=5,hq=6,hkv=6,sq=65,sk=4096", "bf16,d=64,kv=q8_0,b=6,hq=5,hkv=5,sq=65,sk=4096", true, 72, 4096 },
        { "bf16,d=64,b=1,hq=8,hkv=8,sq=1,sk=3", "bf16,d=64,b=1,hq=8,hkv=8,sq=1,sk=17", true, 1, 16 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem one = problem(rows[i].one), other = problem(rows[i].other), r = fa_problem_point(&one);
        cr_expect_eq(fa_problem_bucket(&one) == fa_problem_bucket(&other), rows[i].same, "%s, %s", rows[i].one, rows[i].other);
        cr_expect(r.sq == rows[i].sq && r.sk == rows[i].sk, "%s: %d, %d", rows[i].one, r.sq, r.sk);
    }
}

/* Tiles are cut where they are few, over keys enough; a call that brings no workspace is of the same bucket. */
Test(bucket, tiles_that_are_cut)
{
    static const struct {
        const char *problem;
        bool splits;
    } rows[] = {
        { "bf16,d=128,b=1,hq=32,hkv=8,sq=32,sk=16384", true },
        { "bf16,d=128,b=1,hq=32,hkv=8,sq=4,sk=16384", true },
        { "bf16,d=128,b=1,hq=32,hkv=8,sq=2,sk=16384", false },
        { "bf16,d=128,b=1,hq=32,hkv=8,sq=5,sk=16384", true },
        { "bf16,d=128,b=1,hq=8,hkv=8,sq=300,sk=500", true },
        { "bf16,d=128,b=1,hq=8,hkv=8,sq=300,sk=300", false },
        { "bf16,d=128,b=1,hq=8,hkv=8,sq=1000,sk=1000", true },
        { "bf16,d=128,mask=causal,b=1,hq=8,hkv=2,sq=1024,sk=1024", true },
        { "bf16,d=128,b=1,hq=2,hkv=2,sq=4096,sk=4096", true },
        { "bf16,d=128,b=1,hq=8,hkv=8,sq=2048,sk=2048", true },
        { "bf16,d=128,mask=causal,b=1,hq=8,hkv=8,sq=2048,sk=2048", false },
        { "bf16,d=128,b=4,hq=16,hkv=16,sq=2048,sk=2048", false },
        { "bf16,d=128,b=1,hq=32,hkv=8,sq=512,sk=512", true },
        { "bf16,d=128,b=1,hq=32,hkv=8,sq=700,sk=700", false },
        { "bf16,d=128,b=1,hq=4,hkv=4,sq=3000,sk=2000", true },
        { "bf16,d=128,b=1,hq=8,hkv=8,sq=100,sk=400", false },
        { "bf16,d=128,b=64,hq=8,hkv=8,sq=300,sk=9000", false },
        { "bf16,d=128,b=64,hq=128,hkv=8,sq=300,sk=9000", true },
        { "bf16,d=128,b=64,hq=128,hkv=8,sq=600,sk=9000", false },
        { "bf16,d=128,b=1,hq=8,hkv=8,sq=100000,sk=200000", false },
        { "bf16,d=128,features=no-workspace,b=1,hq=32,hkv=8,sq=32,sk=16384", true },
        { "bf16,d=128,features=lengths,b=1,hq=32,hkv=8,sq=32,sk=16384", true },
        { "bf16,d=128,features=lengths,b=1,hq=32,hkv=8,sq=8,sk=16384", false },
        { "bf16,d=128,features=lengths,b=1,hq=32,hkv=8,sq=32,sk=100", false },
        { "bf16,d=128,features=lengths,b=2,hq=8,hkv=8,sq=256,sk=8192", true },
        { "bf16,d=128,features=lengths,b=2,hq=8,hkv=8,sq=256,sk=4096", false },
        { "bf16,d=128,features=lengths,b=16,hq=8,hkv=8,sq=256,sk=4096", false },
        { "bf16,d=96,features=lengths,b=4,hq=8,hkv=8,sq=128,sk=4096", true },
        { "bf16,d=128,features=lengths,b=4,hq=8,hkv=8,sq=128,sk=4096", false },
        { "bf16,d=96,features=lengths,b=4,hq=8,hkv=8,sq=256,sk=4096", false },
        { "bf16,d=96,features=lengths,b=4,hq=8,hkv=8,sq=256,sk=8192", true },
        { "bf16,d=64,features=lengths,b=4,hq=8,hkv=8,sq=256,sk=8192", false },
        { "bf16,d=96,features=lengths,b=4,hq=8,hkv=8,sq=128,sk=2048", false },
        { "bf16,d=96,features=lengths,b=4,hq=16,hkv=8,sq=128,sk=4096", false },
        { "bf16,d=128,features=lengths,b=16,hq=16,hkv=8,sq=2048,sk=16384", false },
        { "bf16,d=64,features=lengths,b=16,hq=16,hkv=4,sq=32,sk=2048", false },
        { "bf16,d=64,features=lengths,b=16,hq=64,hkv=4,sq=16,sk=8192", true },
        { "bf16,d=128,features=lengths,b=16,hq=16,hkv=4,sq=32,sk=2048", true },
        { "bf16,d=128,features=lengths,b=99,hq=32,hkv=8,sq=64,sk=2048", false },
        { "bf16,d=128,features=lengths,b=16,hq=16,hkv=4,sq=32,sk=700", false },
        { "bf16,d=256,features=lengths,b=10,hq=20,hkv=4,sq=8,sk=10931", true },
        { "bf16,d=96,features=lengths+pages,page=16,b=10,hq=20,hkv=4,sq=4,sk=2048", true },
        { "bf16,d=128,dv=96,features=lengths,b=10,hq=20,hkv=4,sq=8,sk=10931", true },
        { "bf16,d=192,features=lengths,b=10,hq=20,hkv=4,sq=8,sk=10931", false },
        { "bf16,d=256,features=lengths,b=10,hq=20,hkv=4,sq=3,sk=10931", false },
        { "bf16,d=256,features=lengths,b=10,hq=20,hkv=4,sq=8,sk=256", false },
        { "bf16,d=256,features=lengths,b=99,hq=40,hkv=8,sq=8,sk=8192", true },
        { "bf16,d=256,features=lengths,b=99,hq=40,hkv=8,sq=8,sk=16384", false },
        { "bf16,d=96,features=lengths,b=99,hq=40,hkv=8,sq=8,sk=8192", true },
        { "bf16,d=96,features=lengths,b=99,hq=40,hkv=8,sq=8,sk=24576", false },
        { "bf16,d=128,features=lengths,b=40,hq=16,hkv=4,sq=8,sk=1024", true },
        { "bf16,d=128,features=lengths,b=10,hq=16,hkv=4,sq=8,sk=1024", false },
        { "bf16,d=256,features=lengths+batch-invariant,b=10,hq=20,hkv=4,sq=8,sk=10931", false },
        { "bf16,d=128,features=lengths,b=1,hq=8,hkv=8,sq=4096,sk=4096", false },
        { "bf16,d=128,features=lengths,b=1,hq=32,hkv=32,sq=4096,sk=8192", false },
        { "bf16,d=128,features=lengths+pages,page=16,b=64,hq=64,hkv=8,sq=16,sk=8192", true },
        { "bf16,d=128,features=lengths+pages,page=16,b=64,hq=64,hkv=8,sq=512,sk=8192", false },
        { "bf16,d=128,features=lengths+batch-invariant,b=1,hq=32,hkv=8,sq=32,sk=16384", false },
        { "bf16,d=128,features=dropout,b=1,hq=32,hkv=8,sq=32,sk=16384", false },
        { "bf16,d=128,features=lengths+batch-invariant,b=1,hq=4,hkv=1,sq=1,sk=64", true },
        { "bf16,d=128,features=batch-invariant,b=1,hq=32,hkv=8,sq=32,sk=16384", true },
        { "bf16,d=128,features=batch-invariant,b=1,hq=32,hkv=8,sq=16,sk=16384", false },
        { "bf16,d=128,features=batch-invariant,b=1,hq=8,hkv=8,sq=256,sk=16384", true },
        { "bf16,d=128,features=batch-invariant,b=1,hq=8,hkv=8,sq=512,sk=16384", false },
        { "bf16,d=128,features=batch-invariant,b=99,hq=8,hkv=8,sq=256,sk=16384", true },
        { "bf16,d=128,features=lse-strides,b=1,hq=32,hkv=8,sq=32,sk=16384", true },
        { "bf16,d=128,features=lse-strides+dropout,b=1,hq=32,hkv=8,sq=32,sk=16384", false },
        { "bf16,d=128,op=backward,b=1,hq=32,hkv=8,sq=32,sk=16384", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p = problem(rows[i].problem);
        cr_expect_eq(fa_problem_splits(&p), rows[i].splits, "%s", rows[i].problem);
    }
}

/* Of a batch-invariant class neither the batch nor, with lengths in device memory, any length counts. */
Test(bucket, a_batch_says_nothing_of_what_does_not_depend_on_it)
{
    fa_problem one = problem("bf16,d=64,mask=causal,features=lengths+batch-invariant,b=1,hq=32,hkv=8,sq=1,sk=100");
    fa_problem many = problem("bf16,d=64,mask=causal,features=lengths+batch-invariant,b=99,hq=32,hkv=8,sq=3000,sk=7000");
    fa_problem x = fa_problem_chosen_by(&one), y = fa_problem_chosen_by(&many);
    cr_expect_eq(fa_problem_bucket(&x), fa_problem_bucket(&y));
    one = problem("bf16,d=64,features=batch-invariant,b=1,hq=32,hkv=8,sq=100,sk=100");
    many = problem("bf16,d=64,features=batch-invariant,b=77,hq=32,hkv=8,sq=100,sk=100");
    x = fa_problem_chosen_by(&one), y = fa_problem_chosen_by(&many);
    cr_expect_eq(fa_problem_bucket(&x), fa_problem_bucket(&y));
}
