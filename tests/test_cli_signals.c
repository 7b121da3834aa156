/* One SIGINT or SIGTERM ends any command soon, with the documented code, and leaves no half-written file. */
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

TestSuite(cli_signals, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 600);

enum { GENEROUS = 20 /* seconds: a launch that is not ended takes minutes */ };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct ending {
    int code; /* 1000 + the signal that ended it */
    double seconds;
    char out[65536];
} ending;

/* Starts the command, waits for its first byte on standard error (or for `delay` ms, where it says nothing), gives the signal. */
static void stop(ending *e, const char *words, int delay, int sig)
{
    char copy[512], *argv[32] = { "fagen" }, byte;
    int n = 1, out[2], err[2], status;
    size_t at = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *save, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    cr_assert(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        dup2(err[1], 2);
        alarm(120); /* also where it is not ended, which is then told */
        execv(getenv("FAGEN_COMMAND"), argv);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    if (delay) {
        struct pollfd f = { .fd = err[0], .events = POLLIN };
        poll(&f, 1, delay);
    } else {
        cr_assert_eq(read(err[0], &byte, 1), 1);
        nanosleep(&(struct timespec){ 0, 300000000 }, NULL); /* into the launch; the test holds wherever it is */
    }
    double from = now();
    kill(pid, sig);
    for (ssize_t k; at < sizeof e->out - 1 && (k = read(out[0], e->out + at, sizeof e->out - 1 - at)) > 0;)
        at += (size_t)k;
    e->out[at] = 0;
    while (read(err[0], &byte, 1) == 1)
        ;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    e->seconds = now() - from;
    e->code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    close(out[0]);
    close(err[0]);
}

/* Each would take minutes. */
static const struct {
    const char *words;
    int delay;    /* ms; 0: its first line tells that it is at work */
    bool results; /* a document with "interrupted" */
} long_ones[] = {
    { "bench -d 128 -n 8192 --device sim:sm_80 --json", 0, true },
    { "bench -d 128 -n 8192 --device sim:sm_90a --json", 0, true },
    { "verify -d 128 -n 8192 --heads 8 --device sim:sm_80 --json", 0, true }, /* the oracle, for long */
    { "verify -d 64 -n 1024 --batch 64 --device sim:sm_90a --json", 0, true },
    { "run -d 128 -n 8192 --device sim:sm_80", 1500, false },
    { "run -d 128 -n 8192 --device sim:sm_80 --check --counters --json", 1500, false },
};

Test(cli_signals, long_launches_end)
{
    static ending e;
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++) {
        int sig = i % 2 ? SIGTERM : SIGINT;
        stop(&e, long_ones[i].words, long_ones[i].delay, sig);
        cr_expect_eq(e.code, 130, "%s: %d", long_ones[i].words, e.code);
        cr_expect_lt(e.seconds, GENEROUS, "%s: %g s", long_ones[i].words, e.seconds);
        if (!long_ones[i].results)
            continue;
        json_t *j = json_loads(e.out, 0, NULL);
        cr_expect(json_is_true(json_object_get(j, "interrupted")), "%s: %.200s", long_ones[i].words, e.out);
        cr_expect_neq(json_integer_value(json_object_get(j, "failed")), 1, "what was stopped is no failure: %.200s", e.out);
        json_decref(j);
    }
}

/* Blocked for good in the opening of a FIFO that has no reader: each command that writes a file can be brought there. */
Test(cli_signals, commands_that_wait_end)
{
    static const char *const words[] = {
        "emit -d 64 -o fifo",
        "emit --bundle -d 64 --name b -o fifo",
        "explore -d 8 --family naive --arch sm_80 --simulate 0 -o fifo",
        "cache export fifo",
        "sample -d 8 -n 4 -q -C .",
    };
    static ending e;
    cr_assert(mkfifo("fifo", 0600) == 0 && symlink("fifo", "q.npy") == 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int k = (int)i % 2, once = 1; once; once--) {
            stop(&e, words[i], 1500, k ? SIGTERM : SIGINT);
            cr_expect_eq(e.code, 130, "%s: %d", words[i], e.code);
        }
}
