/* The n-th call fails, n = 1, 2, ... until none does: every I/O call and every allocation of a context that is opened, launches and
 * is closed. A launch gives the right output all the same, or, for want of memory, says so; nothing is left behind.
 *
 * The device is the simulator, the compiler a fake that answers with PTX that the real one made once. By default each I/O call fails
 * with one error, and allocations are sampled beyond the first ones; FAGEN_TEST_FULL=1 takes all, and an hour. */
#include "cache/record.h"
#include "fault.h"
#include "gen/problem.h"
#include "runtime/context.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <errno.h>

enum { S = 16, D = 8, COUNT = S * D };

static char ptx_file[600];
static fa_record tuned;          /* the config that the problem runs, so that no model is asked */
static float in[3][COUNT], right[COUNT];
static float right_lse[S];
static bool known; /* what is right */

static bool full(void)
{
    const char *s = getenv("FAGEN_TEST_FULL");
    return s && *s && strcmp(s, "0") != 0;
}

static fa_args args(void *const at[5])
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_F32;
    a.d = D;
    a.b = a.hq = a.hkv = 1;
    a.sq = a.sk = S;
    a.mask = FA_MASK_CAUSAL;
    a.q.ptr = at[0];
    a.k.ptr = at[1];
    a.v.ptr = at[2];
    a.o.ptr = at[3];
    a.lse = at[4];
    return a;
}

/* A record of its own, as a tuner would leave one; then a context, a launch, what comes out, and the end of it. The first failure, or
 * FA_OK; what is wrong with the output goes to `wrong`. */
static fa_status once(const char *cache, const char *nvrtc, bool *wrong)
{
    fa_context *ctx = NULL;
    fa_options o = FA_OPTIONS_INIT;
    void *at[5] = {NULL};
    float out[COUNT];
    float lse[S];
    *wrong = false;
    o.device = "sim:sm_80";
    o.cache_dir = cache;
    o.nvrtc = nvrtc;
    fa_store *s = fa_store_open(cache, NULL, NULL);
    if (s && tuned.config.n)
        fa_record_append(s, &tuned);
    fa_store_close(s);
    fa_status st = fa_create(&ctx, &o);
    for (int i = 0; i < 5 && st == FA_OK; i++)
        st = fa_alloc(ctx, &at[i], i < 4 ? sizeof in[0] : sizeof lse);
    for (int i = 0; i < 3 && st == FA_OK; i++)
        st = fa_copy(ctx, at[i], in[i], sizeof in[i], FA_TO_DEVICE);
    memset(out, 0xff, sizeof out); /* NaN wherever nothing is written */
    if (st == FA_OK)
        st = fa_copy(ctx, at[3], out, sizeof out, FA_TO_DEVICE);
    fa_args a = args(at);
    if (st == FA_OK)
        st = fa_launch(ctx, &a, NULL);
    if (st == FA_OK)
        st = fa_copy(ctx, out, at[3], sizeof out, FA_FROM_DEVICE);
    if (st == FA_OK)
        st = fa_copy(ctx, lse, at[4], sizeof lse, FA_FROM_DEVICE);
    if (st == FA_OK && known)
        *wrong = memcmp(out, right, sizeof out) != 0 || memcmp(lse, right_lse, sizeof lse) != 0;
    if (st == FA_OK && !known) {
        memcpy(right, out, sizeof right);
        memcpy(right_lse, lse, sizeof lse);
        known = true;
    }
    for (int i = 0; i < 5; i++)
        if (at[i])
            fa_free(ctx, at[i]);
    fa_destroy(ctx);
    return st;
}

/* With the real compiler: the right output, and the PTX for the fake one. */
static int keep_ptx(void *user, const fa_entry *e, const char *path, const char *damaged)
{
    (void)user;
    cr_assert_null(damaged, "%s: %s", path, damaged);
    fa_store *s = fa_store_open(below("real"), NULL, NULL);
    fa_entry whole;
    cr_assert(fa_entry_get(s, e->key, e->arch, &whole));
    spill(ptx_file, whole.image, strlen(whole.image));
    fa_entry_free(&whole);
    fa_store_close(s);
    return 0;
}

static void prepare(void)
{
    bool wrong;
    scratch_make();
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < COUNT; i++)
            in[t][i] = (float)((i * 37 + t * 1009) % 1024 - 512) / 256;
    snprintf(ptx_file, sizeof ptx_file, "%s/kernel.ptx", scratch);
    setenv("FAKE_NVRTC_PTX", ptx_file, 1);
    cr_assert_eq(fa_problem_parse(&tuned.problem, "fp32,d=8,mask=causal,b=1,hq=1,hkv=1,sq=16,sk=16"), FA_OK);
    cr_assert_eq(fa_config_parse(&tuned.config, "flash_fwd_ffma:br=16,bc=32,warps=1,pack=0"), FA_OK);
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.device = "sim:sm_80";
    o.cache_dir = "";
    cr_assert_eq(fa_create(&ctx, &o), FA_OK, "%s", fa_last_error());
    snprintf(tuned.chip, sizeof tuned.chip, "%s", ctx->device.arch.chip);
    fa_destroy(ctx);
    strcpy(tuned.arch, "sm_80");
    strcpy(tuned.version, FA_VERSION_STRING);
    strcpy(tuned.date, "2026-11-21T00:00:00Z");
    tuned.how = FA_MEASURED;
    tuned.verified = true;
    tuned.count = 9;
    tuned.seconds = 1e-6;
    cr_assert_eq(once(below("real"), NULL, &wrong), FA_OK, "%s", fa_last_error());
    cr_assert(known);
    fa_store *s = fa_store_open(below("real"), NULL, NULL);
    fa_entry_each(s, keep_ptx, NULL);
    fa_store_close(s);
    cr_assert_eq(access(ptx_file, R_OK), 0);
    for (int i = 0; i < 2; i++) { /* what is allocated once per process is allocated now */
        cr_assert_eq(once(below("warm"), FAKE_NVRTC, &wrong), FA_OK, "%s", fa_last_error());
        cr_assert_not(wrong);
    }
}
TestSuite(faults, .init = prepare, .fini = scratch_remove, .timeout = 1800);

/* Where the run begins: with no folder, with all that the run before left, with an entry that is damaged. */
typedef enum start { COLD, WARM, DAMAGED, STARTS } start;
static const char *const starts[] = {"cold", "warm", "damaged"};

static void damage_entries(const char *dir)
{
    char command[1200];
    snprintf(command, sizeof command, "for f in %s/v*/kernels/*/*.fak; do printf x | dd of=$f bs=1 seek=100 conv=notrunc status=none; done", dir);
    cr_assert_eq(system(command), 0);
}

static const char *begin(start how)
{
    static char dir[600], command[1300];
    bool wrong;
    if (how == WARM)
        return below("warm");
    snprintf(dir, sizeof dir, "%s", below("%s", starts[how]));
    snprintf(command, sizeof command, "%s", dir);
    nftw(command, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    if (how == DAMAGED) {
        cr_assert_eq(once(dir, FAKE_NVRTC, &wrong), FA_OK, "%s", fa_last_error());
        damage_entries(dir);
    }
    return dir;
}

/* One run with the nth call failing. False when no call did. */
static bool trial(start how, fault_kind kind, long nth, int error)
{
    bool wrong;
    const char *what, *dir = begin(how), *name = error == FAULT_SHORT ? "a short count" : strerror(error);
    long live = fault_live();
    int descriptors = fault_descriptors();
    fault_arm(kind, nth, error);
    fa_status st = once(dir, FAKE_NVRTC, &wrong);
    bool fired = fault_disarm(&what);
    cr_assert(!wrong, "%s: the output is wrong after %s %ld failed: %s", starts[how], what, nth, name);
    if (kind == FAULT_IO)
        cr_assert_eq(st, FA_OK, "%s: I/O call %ld, %s, failed with %s, and so did the launch: %s", starts[how], nth, what, name, fa_last_error());
    else
        cr_assert(st == FA_OK || st == FA_NOMEM, "%s: %s %ld failed, and the launch said %s: %s", starts[how], what, nth, fa_status_name(st),
                  fa_last_error());
    cr_assert_eq(fault_descriptors(), descriptors, "%s: a descriptor is left after %s %ld: %s", starts[how], what, nth, name);
    cr_assert_eq(fault_live(), live, "%s: %ld blocks are left after %s %ld: %s", starts[how], fault_live() - live, what, nth, name);
    if (full() || nth % 4 == 1) { /* what the fault left on disk harms nobody */
        st = once(dir, FAKE_NVRTC, &wrong);
        cr_assert(st == FA_OK && !wrong, "%s: the run after %s %ld: %s", starts[how], what, nth, st == FA_OK ? "wrong output" : fa_last_error());
    }
    return fired;
}

/* By default each call of a cold run fails once, with the errors in turn, and every second or third of the others. */
Test(faults, io)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, EDQUOT, EMFILE, EACCES, EROFS, ESTALE, ENOLCK, ENOENT};
    const size_t n_errors = sizeof errors / sizeof *errors;
    for (start how = COLD; how < STARTS; how++) {
        long calls = 0, shorts = 0;
        if (full())
            for (size_t e = 0; e < n_errors; e++)
                for (calls = 0; trial(how, FAULT_IO, calls + 1, errors[e]);)
                    calls++;
        else
            while (trial(how, FAULT_IO, calls + 1, errors[(size_t)calls % n_errors]))
                calls += 1 + how;
        while (trial(how, FAULT_IO, shorts + 1, FAULT_SHORT))
            shorts++;
        cr_assert(calls > 20 && shorts > 1, "%s: only %ld calls, %ld of them counted", starts[how], calls, shorts);
        cr_log_info("%s: of %ld I/O calls each that was asked failed, %ld came short", starts[how], calls, shorts);
    }
}

static void memory(fault_kind kind, start how, long dense)
{
    long trials = 0, n = 1;
    for (; trial(how, kind, n, ENOMEM); trials++)
        n += full() || n < dense ? 1 : 1 + n / 4;
    cr_log_info("%s: %ld of about %ld %s failed", starts[how], trials, n, kind == FAULT_ALLOC ? "allocations" : "reallocations");
    cr_assert_gt(trials, 10);
}

Test(faults, allocations)
{
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    memory(FAULT_ALLOC, COLD, 20);
    memory(FAULT_ALLOC, WARM, 100);
}

Test(faults, growing)
{
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    memory(FAULT_GROW, COLD, 20);
    memory(FAULT_GROW, WARM, 20);
}
