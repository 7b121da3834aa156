/* Candidates in a child process: what crashes, hangs, babbles or makes the device unusable costs itself and nothing else. */
#include "autotune/candidate/process.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WELL, WRONG, DIES, HANGS, BABBLES, IS_LOST, ENDS, LATER_DIES, LATER_HANGS, LATER_BABBLES, LATER_LIES, NO_MEMORY };
#define HANG 2.0 /* seconds: far more than an answer of what is alive takes; only what hangs waits so long */

static size_t lost;

static fa_measure_backend *backend_of(char *mode, double hang, fa_status want)
{
    static fa_site site;
    static char *argv[3];
    fa_problem p;
    fa_measure_backend *backend;
    lost = 0;
    argv[0] = getenv("FAGEN_FAKE_CANDIDATE_PROCESS");
    argv[1] = mode;
    cr_assert_not_null(argv[0]);
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64,b=1,hq=1,hkv=1,sq=64,sk=64"), FA_OK);
    cr_assert_eq(fa_measure_backend_open_process(&backend, &site, &p, argv, hang, &lost), want, "%s", fa_last_error());
    return backend;
}

static fa_candidate that(int does)
{
    fa_candidate c = { .decided = false };
    char text[64];
    snprintf(text, sizeof text, "made_up:does=%d,us=%d", does, 100 + does);
    cr_assert_eq(fa_config_parse(&c.config, text), FA_OK);
    return c;
}

/* The backend still works: a good candidate is judged and timed. */
static void works(fa_measure_backend *backend)
{
    fa_candidate c = that(WELL);
    cr_assert_eq(fa_measure_backend_judge(backend, &c), FA_OK, "%s", fa_last_error());
    cr_assert(c.verified);
    cr_assert_eq(fa_measure_backend_first(backend, &c, 7, 0), FA_OK, "%s", fa_last_error());
    cr_assert_eq(c.count, 7);
    cr_assert_float_eq(c.seconds, 100e-6 * 1.001, 1e-12);
    cr_assert(c.low > 0 && c.low <= c.seconds && c.high >= c.seconds);
    cr_assert_eq(c.clock_mhz, 1755);
    cr_assert_eq(c.temperature, 61);
    cr_assert_eq(c.quality, FA_QUALITY_STEADY);
    cr_assert(fa_measure_backend_alive(backend));
}

static void no_child_is_left(void)
{
    cr_assert(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

Test(tune_candidate_process, a_good_one)
{
    fa_measure_backend *backend = backend_of(NULL, 0, FA_OK);
    works(backend);
    works(backend);
    cr_assert_eq(lost, 0);
    fa_measure_backend_close(backend);
    no_child_is_left();
}

Test(tune_candidate_process, nothing_is_timed_that_was_not_verified)
{
    fa_measure_backend *backend = backend_of(NULL, 0, FA_OK);
    fa_candidate c = that(WELL);
    cr_assert_eq(fa_measure_backend_first(backend, &c, 3, 0), FA_INTERNAL);
    cr_assert_eq(fa_measure_backend_sample(backend, &c, false), FA_INTERNAL);
    c = that(WRONG);
    cr_assert_eq(fa_measure_backend_judge(backend, &c), FA_WRONG);
    cr_assert(strstr(fa_last_error(), "should be 0.25"), "%s", fa_last_error());
    cr_assert(!c.verified);
    cr_assert_eq(fa_measure_backend_first(backend, &c, 3, 0), FA_INTERNAL);
    cr_assert_eq(c.samples.n, 0);
    works(backend);
    cr_assert_eq(lost, 0, "a wrong result is no fault");
    fa_measure_backend_close(backend);
}

static const struct {
    int does;
    fa_status judged, timed;
    const char *says;
} faults[] = {
    { DIES, FA_DEVICE, FA_OK, "signal 6" },
    { HANGS, FA_INTERRUPTED, FA_OK, "no answer in 2 s; the process that tried it was killed" },
    { BABBLES, FA_DEVICE, FA_OK, "none" },
    { IS_LOST, FA_DEVICE, FA_OK, "CUDA_ERROR_ILLEGAL_ADDRESS" },
    { ENDS, FA_DEVICE, FA_OK, "ended with 7" },
    { LATER_DIES, FA_OK, FA_DEVICE, "signal 9" },
    { LATER_HANGS, FA_OK, FA_INTERRUPTED, "no answer" },
    { LATER_BABBLES, FA_OK, FA_DEVICE, "times that are none" },
    { LATER_LIES, FA_OK, FA_DEVICE, "times that are none" },
};

Test(tune_candidate_process, a_fault_costs_one_candidate)
{
    fa_measure_backend *backend = backend_of(NULL, HANG, FA_OK);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fa_candidate c = that(faults[i].does);
        fa_status st = fa_measure_backend_judge(backend, &c);
        cr_assert_eq(st, faults[i].judged, "%d: %s", faults[i].does, fa_last_error());
        if (st == FA_OK)
            cr_assert_eq(fa_measure_backend_first(backend, &c, 5, 0), faults[i].timed, "%d: %s", faults[i].does, fa_last_error());
        cr_assert(strstr(fa_last_error(), faults[i].says), "%d: %s", faults[i].does, fa_last_error());
        cr_assert_eq(lost, i + 1);
        no_child_is_left();
        works(backend);
    }
    fa_candidate c = that(NO_MEMORY);
    cr_assert_eq(fa_measure_backend_judge(backend, &c), FA_NOMEM, "what is nobody's fault ends a search");
    fa_measure_backend_close(backend);
    no_child_is_left();
}

Test(tune_candidate_process, a_device_that_kills_every_child_is_given_up)
{
    fa_measure_backend *backend = backend_of(NULL, 0, FA_OK);
    for (int i = 0; i < FA_CANDIDATE_PROCESS_LOSSES; i++) {
        fa_candidate c = that(IS_LOST);
        cr_assert(fa_measure_backend_alive(backend));
        cr_assert_eq(fa_measure_backend_judge(backend, &c), FA_DEVICE);
    }
    cr_assert(!fa_measure_backend_alive(backend));
    fa_measure_backend_close(backend);
}

Test(tune_candidate_process, one_that_does_not_start_is_told)
{
    char *modes[] = { "mute", "old" };
    for (int i = 0; i < 2; i++) {
        fa_measure_backend *backend = backend_of(modes[i], 0, FA_OK); /* it is started, and not yet waited for */
        fa_candidate c = that(WELL);
        cr_assert_eq(fa_measure_backend_judge(backend, &c), FA_DEVICE);
        cr_assert(strstr(fa_last_error(), i ? "another version" : "ended with 3"), "%s", fa_last_error());
        cr_assert(!c.verified);
        fa_measure_backend_close(backend);
    }
    no_child_is_left();
    cr_assert_eq(setenv("FAGEN_FAKE_CANDIDATE_PROCESS", "/nonexistent/process", 1), 0);
    cr_assert_null(backend_of(NULL, 0, FA_IO));
    cr_assert(strstr(fa_last_error(), "/nonexistent/process"));
}

/* The command itself, on the simulator: it judges, and has no times. */
Test(tune_candidate_process, the_real_worker)
{
    char *argv[] = { getenv("FAGEN_COMMAND"), "candidate-process", "--device", "sim:sm_80", NULL };
    fa_site site = { .ctx = NULL };
    fa_problem p;
    fa_measure_backend *backend;
    fa_candidate c = { .decided = false };
    size_t gone = 0;
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64,b=1,hq=1,hkv=1,sq=64,sk=64"), FA_OK);
    cr_assert_eq(fa_measure_backend_open_process(&backend, &site, &p, argv, 0, &gone), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&c.config, "flash_fwd_mma:br=1,bc=1"), FA_OK);
    cr_assert_neq(fa_measure_backend_judge(backend, &c), FA_OK);
    cr_assert(strstr(fa_last_error(), "br"), "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&c.config, "naive:tile=64"), FA_OK);
    cr_assert_eq(fa_measure_backend_judge(backend, &c), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_measure_backend_first(backend, &c, 3, 0), FA_UNSUPPORTED, "%s", fa_last_error());
    fa_measure_backend_close(backend);
    cr_assert_eq(gone, 0);
    no_child_is_left();
}
