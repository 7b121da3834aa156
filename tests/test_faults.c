/* The n-th call fails, n = 1, 2, ... until none does: every I/O call and every allocation of a context that is opened, launches and
 * is closed. A launch gives the right output all the same, or, for want of memory, says so; nothing stays open or allocated.
 *
 * The device is the simulator, the compiler a fake that answers with PTX that the real one made once. By default every third I/O
 * call fails with one error, and allocations are sampled beyond the first ones; FAGEN_TEST_FULL=1 takes all, and an hour. The allocations
 * of launches alone, of kernels that use all of the simulator, all fail either way. */
#include "fault.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include "test_verify_device.h"
#include "tiny.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <glob.h>

static char ptx_file[600];
static fa_record tuned; /* the config that the problem runs, so that no model is asked */

static tiny_result once(const char *cache)
{
    return tiny_launch(&(tiny_way){ .cache = cache, .nvrtc = FAKE_NVRTC, .record = &tuned });
}

static void prepare(void)
{
    tiny_result r;
    scratch_make_light();
    snprintf(ptx_file, sizeof ptx_file, "%s/kernel.ptx", scratch);
    setenv("FAKE_NVRTC_PTX", ptx_file, 1);
    /* what the model chooses, too: a fault may hide the record, and the false compiler knows one kernel */
    cr_assert(tiny_record(&tuned, "flash_fwd_ffma:br=16,bc=32,warps=2,pack=0"), "%s", fa_last_error());
    cr_assert(tiny_ptx(ptx_file, below("real"), &tuned, &r), "%s", r.said);
    for (int i = 0; i < 2; i++) { /* what is allocated once per process is allocated now */
        r = once(below("warm"));
        cr_assert(r.status == FA_OK && r.right && r.cached == i, "%s", r.said);
    }
}
TestSuite(faults, .init = prepare, .fini = scratch_remove, .timeout = 3600);

/* Where the run begins: with no folder, with all that the run before left, with an entry that is damaged. */
typedef enum start { COLD, WARM, DAMAGED, STARTS } start;
static const char *const starts[] = { "cold", "warm", "damaged" };

static void damage_entries(const char *dir)
{
    char command[1200];
    snprintf(command, sizeof command,
             "for f in %s/v*/kernels/*/*.fak; do chmod u+w $f; printf x | dd of=$f bs=1 seek=100 conv=notrunc status=none; done", dir);
    cr_assert_eq(system(command), 0);
}

#define RECORD_FILES 1 /* of the problem's class */

/* Every launch adds a line to the records, and reads them all: without this the trials of a warm run would ask for more memory each
 * time, and never come to the last allocation. */
static void forget_lines(const char *dir)
{
    static off_t size[RECORD_FILES];
    static char path[RECORD_FILES][900];
    char pattern[700];
    struct stat st;
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/v*/records/*/*", dir);
    cr_assert_eq(glob(pattern, 0, NULL, &g), 0);
    cr_assert_geq(g.gl_pathc, RECORD_FILES);
    for (size_t i = 0, first = !*path[0]; i < g.gl_pathc; i++) {
        size_t known = 0;
        cr_assert_eq(stat(g.gl_pathv[i], &st), 0);
        if (first && i < RECORD_FILES)
            size[i] = st.st_size, snprintf(path[i], sizeof path[i], "%s", g.gl_pathv[i]);
        while (known < RECORD_FILES && strcmp(path[known], g.gl_pathv[i]) != 0)
            known++;
        cr_assert_eq(known < RECORD_FILES ? truncate(g.gl_pathv[i], size[known]) : unlink(g.gl_pathv[i]), 0);
    }
    globfree(&g);
}

static const char *begin(start how)
{
    static char dir[600], command[1300];
    if (how == WARM) {
        forget_lines(below("warm"));
        return below("warm");
    }
    snprintf(dir, sizeof dir, "%s", below("%s", starts[how]));
    snprintf(command, sizeof command, "%s", dir);
    nftw(command, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    if (how == DAMAGED) {
        cr_assert_eq(once(dir).status, FA_OK, "%s", fa_last_error());
        damage_entries(dir);
    }
    return dir;
}

/* One run with the nth call failing. False when no call did. */
static bool trial(start how, fault_kind kind, long nth, int error)
{
    const char *what, *dir = begin(how), *name = error == FAULT_SHORT ? "a short count" : strerror(error);
    long live = fault_live();
    int descriptors = fault_descriptors();
    fault_arm(kind, nth, error);
    tiny_result r = once(dir);
    bool fired = fault_disarm(&what);
    cr_assert(r.status != FA_OK || r.right, "%s: the output is wrong after %s %ld failed: %s", starts[how], what, nth, name);
    if (kind == FAULT_IO)
        cr_assert_eq(r.status, FA_OK, "%s: I/O call %ld, %s, failed with %s, and so did the launch: %s", starts[how], nth, what, name,
                     r.said);
    else
        cr_assert(r.status == FA_OK || r.status == FA_NOMEM, "%s: %s %ld failed, and the launch said %s: %s", starts[how], what, nth,
                  fa_status_name(r.status), r.said);
    cr_assert_eq(fault_descriptors(), descriptors, "%s: a descriptor is left after %s %ld: %s", starts[how], what, nth, name);
    cr_assert_eq(fault_live(), live, "%s: %ld blocks are left after %s %ld: %s", starts[how], fault_live() - live, what, nth, name);
    if (full() || nth % 4 == 1) { /* what the fault left on disk harms nobody */
        r = once(dir);
        cr_assert(r.status == FA_OK && r.right, "%s: the run after %s %ld: %s", starts[how], what, nth, r.said);
    }
    return fired;
}

/* By default every third call of a cold run fails, with the errors in turn, and every fifth or seventh of the others. */
Test(faults, io)
{
    static const int errors[] = { EIO, ENOSPC, EINTR, EDQUOT, EMFILE, EACCES, EROFS, ESTALE, ENOLCK, ENOENT };
    const size_t n_errors = sizeof errors / sizeof *errors;
    for (start how = COLD; how < STARTS; how++) {
        long calls = 0, shorts = 0;
        size_t turn = 0;
        if (full())
            for (size_t e = 0; e < n_errors; e++)
                for (calls = 0; trial(how, FAULT_IO, calls + 1, errors[e]);)
                    calls++;
        else
            while (trial(how, FAULT_IO, calls + 1, errors[turn++ % n_errors]))
                calls += 3 + 2 * how;
        while (trial(how, FAULT_IO, shorts + 1, FAULT_SHORT))
            shorts += full() ? 1 : 2;
        cr_assert(calls > 20 && shorts > 1, "%s: only %ld calls, %ld of them counted", starts[how], calls, shorts);
        cr_log_info("%s: of %ld I/O calls each that was asked failed, %ld came short", starts[how], calls, shorts);
    }
}

static void memory(fault_kind kind, start how, long dense)
{
    long trials = 0, n = 1;
    for (; trial(how, kind, n, ENOMEM); trials++)
        n += full() || n < dense ? 1 : 1 + n / 3;
    cr_log_info("%s: %ld of about %ld %s failed", starts[how], trials, n, kind == FAULT_ALLOC ? "allocations" : "reallocations");
    cr_assert_gt(trials, 10);
}

Test(faults, allocations)
{
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    memory(FAULT_ALLOC, COLD, 20);
}

Test(faults, allocations_warm)
{
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    memory(FAULT_ALLOC, WARM, 60);
}

Test(faults, growing)
{
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    memory(FAULT_GROW, COLD, 20);
    memory(FAULT_GROW, WARM, 20);
}

/* A kernel whose log had no room is not launched, and not kept either: nobody who found it would ever know its registers. */
Test(faults, log_without_room)
{
    const char *dir = below("roomless");
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    setenv("FAKE_NVRTC_LOG_SIZE", "4611686018427387904", 1);
    tiny_result r = once(dir);
    cr_assert_eq(r.status, FA_NOMEM, "%s: %s", fa_status_name(r.status), r.said);
    cr_assert(strstr(r.said, "ran out of memory"), "%s", r.said);
    unsetenv("FAKE_NVRTC_LOG_SIZE");
    r = once(dir);
    cr_assert(r.status == FA_OK && r.right && !r.cached, "%s", r.said);
}

/* One launch of a kernel that is loaded: clusters, products in flight, copies by TMA, tiles drawn from a counter. */
static long launches(fa_context *ctx, const char *problem, const char *config, int sq, int sk, fault_kind kind)
{
    fa_case c = test_case(problem, sq, sk);
    fa_config k = test_config(config);
    const fa_plan *plan;
    fa_trial *t;
    fa_verdict v;
    long n = 0;
    cr_assert_eq(fa_plan_make(ctx, &c.problem, &k, "asked for", &plan), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_trial_open(&t, ctx, &c, FA_REFERENCE_ORACLE), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_trial_run(t, plan, &v), FA_OK, "%s", fa_last_error());
    for (bool fired = true, again = false; fired; n++) {
        const char *what;
        long live = fault_live();
        fault_arm(kind, n + 1, ENOMEM);
        fa_status st = fa_trial_run(t, plan, &v);
        fired = fault_disarm(&what);
        cr_assert(st == FA_NOMEM || (st == FA_OK && v.ok), "%s: %s %ld failed, and the launch said %s: %s", config, what, n + 1,
                  fa_status_name(st), fa_last_error());
        /* What a thread's first failure of a kind was told in stays with the thread: the same once more adds nothing. */
        again = !again && fault_live() != live;
        cr_assert(again || fault_live() == live, "%s: %ld blocks are left after %s %ld", config, fault_live() - live, what, n + 1);
        cr_assert_eq(fa_trial_run(t, plan, &v), FA_OK, "%s: the launch after %s %ld: %s", config, what, n + 1, fa_last_error());
        n -= again;
    }
    fa_trial_close(t);
    return n - 1;
}

#define HOPPER(rest) "flash_fwd_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,sections=1,rescale=2,exp=0," rest
TestSuite(launch_faults, .init = scratch_make, .fini = scratch_remove, .timeout = 1800);
Test(launch_faults, memory)
{
    static const struct {
        const char *problem, *config;
        int sq, sk;
    } kernels[] = {
        { "bf16,d=64,mask=none,b=1,hq=1,hkv=1", HOPPER("br=128,schedule=1,bc=64,cluster=2,convert=0,o_path=0,grid=0"), 256, 64 },
        { "bf16,d=64,mask=causal,b=1,hq=2,hkv=1", HOPPER("br=64,schedule=0,bc=48,cluster=1,convert=1,o_path=1,grid=2"), 128, 100 }
    };
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    for (int lazy = 0; lazy < 2; lazy++) {
        fa_context *ctx = test_hopper_context(NULL, below("hopper"), 2);
        sim_set_options(&(sim_options){ .async = lazy ? SIM_LAZY : SIM_EAGER, .threads = 1 });
        for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
            long a = launches(ctx, kernels[i].problem, kernels[i].config, kernels[i].sq, kernels[i].sk, FAULT_ALLOC);
            long g = launches(ctx, kernels[i].problem, kernels[i].config, kernels[i].sq, kernels[i].sk, FAULT_GROW);
            cr_assert(a > 10 && g > 2, "only %ld allocations and %ld reallocations", a, g);
            cr_log_info("%s: %ld allocations and %ld reallocations failed", kernels[i].config, a, g);
        }
        fa_destroy(ctx);
    }
}

/* A kernel of the Hopper family is loaded from the disk: parsed, decoded, laid out in registers. By default allocations are sampled. */
static void load_with_faults(fault_kind kind)
{
    fa_problem p;
    fa_config k = test_config(HOPPER("br=128,schedule=1,bc=64,cluster=1,convert=1,o_path=2,grid=2"));
    long trials = 0, n = 1;
    const fa_plan *plan;
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64,mask=causal,b=1,hq=2,hkv=1"), FA_OK, "%s", fa_last_error());
    fa_context *ctx = test_hopper_context(NULL, below("loads"), 2); /* compiled, and what is allocated once per process is allocated now */
    cr_assert_eq(fa_plan_make(ctx, &p, &k, "asked for", &plan), FA_OK, "%s", fa_last_error());
    fault_arm(kind, 1, ENOMEM); /* what a thread keeps from its first failure on is there from here on */
    (void)fa_plan_make(ctx, &p, &k, "asked for", &plan);
    const char *what;
    fault_disarm(&what);
    fa_destroy(ctx);
    for (bool fired = true; fired; trials++, n += full() || n < 40 ? 1 : 1 + n / 4) {
        what = "";
        long live = fault_live();
        ctx = test_hopper_context(NULL, below("loads"), 2);
        fault_arm(kind, n, ENOMEM);
        fa_status st = fa_plan_make(ctx, &p, &k, "asked for", &plan);
        fired = fault_disarm(&what);
        cr_assert(st == FA_OK || (fired && st == FA_NOMEM), "%s %ld failed, and loading said %s: %s", what, n, fa_status_name(st),
                  fa_last_error());
        cr_assert_eq(fa_plan_make(ctx, &p, &k, "asked for", &plan), FA_OK, "after %s %ld: %s", what, n, fa_last_error());
        fa_destroy(ctx);
        cr_assert_eq(fault_live(), live, "%ld blocks are left after %s %ld", fault_live() - live, what, n);
    }
    cr_log_info("%ld of about %ld %s failed", trials - 1, n, kind == FAULT_ALLOC ? "allocations" : "reallocations");
    cr_assert_gt(trials, 20);
}
Test(launch_faults, loading)
{
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    load_with_faults(FAULT_ALLOC);
    load_with_faults(FAULT_GROW);
}
