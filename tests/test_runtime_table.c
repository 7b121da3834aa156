/* The table of plans that a hit is found in. */
#include "gen/bucket.h"
#include "gen/problem.h"
#include "test_fake_context.h"
#include <malloc.h>

TestSuite(runtime_table, .init = open_context, .fini = close_context, .timeout = 300);

/* Problems that differ in a field that is compiled in never share a plan; those that differ in the shape do within a bucket. */
Test(runtime_table, a_plan_per_class_and_bucket)
{
    fa_problem a, b;
    cr_assert_eq(fa_problem_parse(&a, "bf16,d=64,mask=causal,b=1,hq=4,hkv=4,sq=512,sk=512"), FA_OK);
    for (size_t i = 0; i < FA_PROBLEM_FIELD_COUNT; i++) {
        const fa_problem_field *f = &fa_problem_fields[i];
        fa_plan_key x = fa_plan_key_of(&a), y;
        b = a;
        fa_problem_set(&b, f, f->part == FA_FIELD_CLASS ? fa_problem_get(&a, f) + 1 : 4 * fa_problem_get(&a, f));
        y = fa_plan_key_of(&b);
        bool in_bucket = fa_problem_bucket(&a) == fa_problem_bucket(&b);
        cr_expect_eq(fa_plan_key_equal(&x, &y), f->part == FA_FIELD_SHAPE && in_bucket, "%s", f->word);
    }
    b = a;
    b.sq = 520;
    fa_plan_key x = fa_plan_key_of(&a), y = fa_plan_key_of(&b);
    cr_expect(fa_plan_key_equal(&x, &y), "520 queries are in the bucket of 512");
}

/* A plan that is not there is looked for in the fullest of tables: half of it stays empty. */
Test(runtime_table, the_table_is_never_more_than_half_full)
{
    static fa_plan plan[300];
    fa_table t;
    cr_assert(fa_table_open(&t));
    for (size_t i = 0; i < 300; i++) {
        plan[i].key = (fa_plan_key){ .d = 77, .bucket = (uint32_t)i };
        cr_assert(fa_table_put(&t, &plan[i]));
        cr_assert(fa_table_put(&t, &plan[i]), "once more takes no more room");
        cr_assert_leq(2 * (i + 1), atomic_load(&t.slots)->size);
        cr_assert_null(fa_table_find(&t, &(fa_plan_key){ .d = 78, .bucket = (uint32_t)i }));
    }
    cr_assert_eq(atomic_load(&t.slots)->size, 1024);
    for (size_t i = 0; i < 300; i++)
        cr_assert_eq(fa_table_find(&t, &plan[i].key), &plan[i], "plan %zu is where it was", i);
    fa_table_close(&t);
}

/* Of a table that has grown the smaller ones are kept for readers, and go with it. What 20 tables would leave is some 170 kB; the C library
 * keeps a few small blocks of what was freed. */
Test(runtime_table, a_closed_table_leaves_nothing)
{
    static fa_plan plan[300];
    size_t before = mallinfo2().uordblks;
    for (int round = 0; round < 20; round++) {
        fa_table t;
        cr_assert(fa_table_open(&t));
        for (size_t i = 0; i < 300; i++) {
            plan[i].key = (fa_plan_key){ .d = 77, .bucket = (uint32_t)i };
            cr_assert(fa_table_put(&t, &plan[i]));
        }
        cr_assert_not_null(atomic_load(&t.slots)->older);
        fa_table_close(&t);
    }
    size_t after = mallinfo2().uordblks;
    cr_assert_lt(after, before + 16384, "%zu bytes, %zu before", after, before);
}

Test(runtime_table, the_table_holds_many_plans)
{
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_selection c;
    raw.dtype = FA_BF16, raw.d = 64;
    OK(fa_problem_normalize(&p, &raw));
    OK(fa_select(ctx, &p, &c, NULL));
    const fa_plan *plan[300];
    for (int i = 0; i < 300; i++) {
        p.sq = 64 << i % 20;
        p.sk = 16 << i / 20;
        p.b = p.hq = p.hkv = 1;
        OK(fa_plan_make(ctx, &p, &c.config, "test", &plan[i]));
        cr_assert(fa_plan_use(ctx, plan[i]));
    }
    for (int i = 0; i < 300; i++)
        cr_assert_eq(fa_table_find(ctx->table, &plan[i]->key), plan[i]);
    cr_assert_eq(fake_live_libraries(), 1);
}
