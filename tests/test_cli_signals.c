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

enum {
    GENEROUS = 20, /* seconds: a launch that is not ended takes minutes */
    AGAIN = 12     /* and after so many the signal is given once more: NVRTC ignores, for a moment, what has come and was not fetched yet */
};

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
    if (poll(&(struct pollfd){ .fd = out[0], .events = POLLIN }, 1, AGAIN * 1000) == 0) /* neither a result nor an end */
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
    { "run -d 128 -n 8192 --device sim:sm_80", 700, false },
    { "run -d 128 -n 8192 --device sim:sm_80 --check --counters --json", 700, false },
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

/* Bytes of the file in which the false NVRTC counts the compilations that it begins. */
static long begun(void)
{
    struct stat st;
    return stat("begun", &st) == 0 ? (long)st.st_size : 0;
}

/* A command under a compiler whose compilations last until they are told to stop, or, deaf, as long as the process. The signal comes when
 * `threads` of them are under way. */
static void stop_compiling(ending *e, const char *words, const char *how, int threads, int sig)
{
    char copy[512], *argv[32] = { "fagen" };
    int n = 1, status;
    size_t at = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *save, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    unlink("begun");
    int out[2];
    cr_assert(pipe2(out, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        setenv("FAGEN_NVRTC", FAKE_NVRTC, 1);
        setenv("FAGEN_CACHE_DIR", "none", 1);
        setenv("FAKE_NVRTC_LOG", "begun", 1);
        setenv("FAKE_NVRTC_EXIT", how, 1);
        alarm(60);
        execv(getenv("FAGEN_COMMAND"), argv);
        _exit(127);
    }
    close(out[1]);
    while (begun() < threads && waitpid(pid, &status, WNOHANG) == 0)
        nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
    cr_assert_eq(begun(), threads, "%s: %ld compilations", words, begun());
    double from = now();
    kill(pid, sig);
    if (poll(&(struct pollfd){ .fd = out[0], .events = POLLIN }, 1, AGAIN * 1000) == 0) /* neither a result nor an end */
        kill(pid, sig);
    for (ssize_t k; at < sizeof e->out - 1 && (k = read(out[0], e->out + at, sizeof e->out - 1 - at)) > 0;)
        at += (size_t)k;
    e->out[at] = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    e->seconds = now() - from;
    e->code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    close(out[0]);
}

/* None begins after the signal; those under way are asked for it, and one that does not hear is left behind. */
static const struct {
    const char *words, *how;
    int threads;
} compiling[] = {
    { "tune -d 64 -n 512 --arch sm_80 --limit 4 --threads 2 --json -q", "hears", 2 },
    { "tune -d 64 -n 512 --arch sm_80 --limit 4 --threads 2 --json -q", "deaf", 2 },
    { "tune -d 64,128 -n 512 --devices sim:sm_80,sim:sm_80 --limit 4 --threads 1 --json -q", "hears", 2 },
    { "tune -d 64,128 -n 512 --devices sim:sm_80,sim:sm_80 --limit 4 --threads 1 --json -q", "deaf", 2 },
    { "verify -d 64 -n 64 --device sim:sm_80 --json -q", "hears", 1 },
    { "bench -d 64 -n 64 --device sim:sm_80 --json -q", "hears", 1 },
    { "explore -d 64 -n 512 --device sim:sm_80 --simulate 1 -o page.html -q", "hears", 1 },
    { "run -d 64 -n 64 --device sim:sm_80 -q", "deaf", 1 },
};

Test(cli_signals, compilations_end)
{
    static ending e;
    for (size_t i = 0; i < sizeof compiling / sizeof *compiling; i++) {
        const char *words = compiling[i].words;
        stop_compiling(&e, words, compiling[i].how, compiling[i].threads, i % 2 ? SIGTERM : SIGINT);
        cr_expect_eq(e.code, 130, "%s, %s: %d", words, compiling[i].how, e.code);
        cr_expect_eq(begun(), compiling[i].threads, "%s, %s: %ld compilations", words, compiling[i].how, begun());
        cr_expect_lt(e.seconds, GENEROUS, "%s, %s: %g s", words, compiling[i].how, e.seconds);
        json_t *j = strstr(words, "--json") ? json_loads(e.out, 0, NULL) : NULL;
        cr_expect(!strstr(words, "--json") || j, "%s: %.200s", words, e.out);
        if (!strncmp(words, "tune", 4)) /* each candidate is as it was, and nobody's fault */
            for (size_t p = 0; p < json_array_size(json_object_get(j, "problems")); p++) {
                json_t *one = json_array_get(json_object_get(j, "problems"), p);
                cr_expect_eq(json_integer_value(json_object_get(one, "failed")), 0, "%.400s", e.out);
                cr_expect(strstr(json_string_value(json_object_get(one, "message")), "the search was stopped"), "%.400s", e.out);
            }
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
