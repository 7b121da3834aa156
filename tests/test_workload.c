/* What a context launched, as lines of a file, and the reader of these. */
#include "cli/tune/workload.h"
#include "test_hit_counts.h"
#include "test_misses.h"
#include <pthread.h>

static atomic_int complaints;

static void hear(void *user, int level, const char *message)
{
    (void)user;
    atomic_fetch_add(&complaints, level <= FA_LOG_WARN && strstr(message, "workload "));
}

static fa_context *open_counted(const char *file)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *c;
    o.cache_dir = "";
    o.nvrtc = FAKE_NVRTC;
    o.log = hear;
    o.workload = file;
    OK(fa_create_on(&c, &o, fake_driver(), 0));
    return c;
}

static void begin(void)
{
    scratch_make();
    spill(below("image"), "// PTX", 6);
    setenv("FAKE_NVRTC_PTX", below("image"), 1);
    unsetenv("FAGEN_WORKLOAD");
    atomic_store(&complaints, 0);
}

static void end(void)
{
    cr_assert_eq(fake_live_libraries(), 0);
    scratch_remove();
}

TestSuite(workload, .init = begin, .fini = end, .timeout = 60);

static void launch(fa_context *c, int sq, int sk, int times)
{
    fa_args a = call(sq, sk);
    for (int i = 0; i < times; i++) {
        a.o.ptr = AT(4 + i % 2); /* repeats differ in addresses */
        OK(fa_launch(c, &a, NULL));
    }
}

static uint64_t launches_of(const cli_workload *w, int sq, int sk)
{
    fa_problem p = problem(sq, sk);
    const fa_plan_key key = fa_plan_key_of(&p);
    uint64_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        n += fa_plan_key_equal(&w->row[i].key, &key) ? w->row[i].launches : 0;
    return n;
}

static cli_workload told(void)
{
    cli_workload w;
    OK(cli_workload_read(&w, below("w")));
    return w;
}

Test(workload, launches_are_counted_by_bucket)
{
    fa_context *c = open_counted(below("w"));
    launch(c, 512, 512, 5);
    launch(c, 4096, 4096, 3);
    launch(c, 520, 500, 2); /* of the bucket of 512 */
    fa_args empty = call(0, 512), bad = call(512, 512);
    bad.q.ptr = NULL;
    OK(fa_launch(c, &empty, NULL));
    cr_assert_eq(fa_launch(c, &bad, NULL), FA_INVALID);
    fa_problem p = problem(256, 256); /* prepared, and never launched */
    OK(fa_prepare(c, &p));
    cr_assert_eq(access(below("w"), F_OK), -1, "nothing is written before the end");
    fa_destroy(c);
    cli_workload w = told();
    cr_expect_eq(w.n, 2);
    cr_expect_eq(w.launches, 10);
    cr_expect_eq(launches_of(&w, 512, 512), 7);
    cr_expect_eq(launches_of(&w, 4096, 4096), 3);
    cr_expect_eq(w.row[0].problem.sq, 4096, "the most time first");
    cr_expect(w.row[0].seconds > w.row[1].seconds && w.row[1].seconds > 0);
    cr_expect_eq(w.row[0].known, 3);
    cr_expect_eq(atomic_load(&complaints), 0);
    cli_workload_free(&w);
}

#define THREADS 20 /* more than there are parts */
#define EACH 400

static void *launch_many(void *user)
{
    launch(user, 512, 512, EACH);
    launch(user, 1024, 1024, EACH / 2);
    return NULL;
}

Test(workload, threads_and_contexts_lose_no_launch)
{
    fa_context *c[2] = { open_counted(below("w")), open_counted(below("w")) };
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&t[i], NULL, launch_many, c[i % 2]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    fa_destroy(c[0]);
    fa_destroy(c[1]);
    cli_workload w = told();
    cr_expect_eq(launches_of(&w, 512, 512), THREADS * EACH);
    cr_expect_eq(launches_of(&w, 1024, 1024), THREADS * EACH / 2);
    cr_expect_eq(w.n, 2);
    cli_workload_free(&w);
}

Test(workload, a_counted_hit_takes_no_lock_and_no_memory)
{
    fa_context *c = open_counted(below("w"));
    launch(c, 512, 512, 2);
    allocations = locks = lookups = 0;
    launch(c, 512, 512, 100);
#ifdef COUNTED
    cr_expect_eq(allocations + lookups, 0);
    cr_expect_eq(locks, 0);
#endif
    fa_destroy(c);
    cli_workload w = told();
    cr_expect_eq(w.launches, 102);
    cli_workload_free(&w);
}

Test(workload, nothing_is_written_where_nothing_ran_or_nobody_asks)
{
    fa_destroy(open_counted(below("w")));
    setenv("FAGEN_WORKLOAD", below("w"), 1);
    fa_context *c = open_counted("");
    launch(c, 512, 512, 1);
    fa_destroy(c);
    cr_expect_eq(access(below("w"), F_OK), -1);
    c = open_counted(NULL); /* the variable holds */
    unsetenv("FAGEN_WORKLOAD");
    launch(c, 512, 512, 1);
    fa_destroy(c);
    cr_expect_eq(access(below("w"), F_OK), 0);
    cr_expect_eq(atomic_load(&complaints), 0);
}

Test(workload, a_file_that_cannot_be_written_is_a_line_of_the_log)
{
    static const char *const names[] = { "/nonexistent/w", "/dev/full", "/" };
    for (int i = 0; i < 3; i++) {
        fa_context *c = open_counted(names[i]);
        launch(c, 512, 512, 2);
        fa_destroy(c);
        cr_expect_eq(atomic_load(&complaints), i + 1, "%s", names[i]);
    }
}

/* ---- the reader ---- */

static fa_status read_text(cli_workload *w, const char *text)
{
    spill(below("w"), text, strlen(text));
    return cli_workload_read(w, below("w"));
}

#define P64 "bf16,d=64,dv=64,mask=causal,o=bf16,align=16,b=1,hq=8,hkv=8,sq="
#define ROW(sq, launches, seconds) "{\"problem\":\"" P64 #sq ",sk=" #sq "\",\"launches\":" #launches ",\"seconds\":" #seconds "}\n"

Test(workload, equal_problems_are_summed_and_the_most_time_is_first)
{
    cli_workload w;
    /* 512: 3 s + 1 s; 1024: 2 s for 10 launches, and 30 more of unknown time; 2048 and 4096: not known */
    OK(read_text(&w, ROW(2048, 900, 0) ROW(512, 5, 3) "\n" ROW(1024, 30, 0) ROW(4096, 900, 0.0) ROW(512, 7, 1) ROW(1024, 10, 2.0)));
    static const struct {
        int sq;
        uint64_t launches;
        double seconds;
    } rows[] = { { 1024, 40, 8 }, { 512, 12, 4 }, { 4096, 900, 0 }, { 2048, 900, 0 } };
    cr_assert_eq(w.n, 4);
    cr_expect_eq(w.cut, 0);
    cr_expect_eq(w.launches, 1852);
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(w.row[i].problem.sq, rows[i].sq);
        cr_expect_eq(w.row[i].launches, rows[i].launches);
        cr_expect_float_eq(cli_workload_seconds(&w.row[i]), rows[i].seconds, 1e-9);
    }
    cli_workload_free(&w);
}

Test(workload, what_was_cut_is_left_out_and_the_next_writer_begins_a_line)
{
    cli_workload w;
    OK(read_text(&w, ROW(512, 5, 3) "{\"problem\":\"bf16,d=6"));
    cr_expect_eq(w.cut, 1);
    cr_expect_eq(w.launches, 5);
    cli_workload_free(&w);
    fa_context *c = open_counted(below("w"));
    launch(c, 512, 512, 4);
    fa_destroy(c);
    w = told();
    cr_expect_eq(w.cut, 1);
    cr_expect_eq(w.launches, 9);
    cr_expect_eq(launches_of(&w, 512, 512), 4);
    cli_workload_free(&w);
}

Test(workload, a_bad_line_is_named)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { ROW(512, 5, 3) "hello\n", "line 2: " },
        { ROW(512, 5, 3) "\n[1]\n", "line 3: there is no text \"problem\"; accepted: lines that" },
        { "{\"problem\":7,\"launches\":1,\"seconds\":0}\n", "line 1: there is no text \"problem\"" },
        { "{\"problem\":\"bf17,d=64\",\"launches\":1,\"seconds\":0}\n", "line 1: problem: " },
        { ROW(512, 0, 3), "line 1: launches is 0; accepted: a whole number from 1 on" },
        { ROW(512, 1.5, 3), "launches is 1.5; accepted: a whole number from 1 on" },
        { ROW(512, "3", 3), "launches is \"3\"; accepted: a whole number from 1 on" },
        { ROW(512, 5, -1), "line 1: seconds is -1; accepted: a number from 0 on" },
        { ROW(512, 5, null), "seconds is null; accepted: a number from 0 on" },
        { "", "it tells of no launch; accepted: lines that" },
        { "{\"prob", "it tells of no launch" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cli_workload w;
        cr_expect_eq(read_text(&w, rows[i].text), FA_INVALID, "%s", rows[i].text);
        cr_expect(strstr(fa_last_error(), rows[i].says) && strstr(fa_last_error(), below("w")), "%s", fa_last_error());
        cr_expect_null(w.row);
    }
    cli_workload w;
    cr_expect_eq(cli_workload_read(&w, below("none")), FA_IO);
    cr_expect_eq(cli_workload_read(&w, "/"), FA_IO);
}
