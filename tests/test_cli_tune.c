/* `fagen tune` as a person meets it: on terminals of any width, stopped at any moment, over several devices, under a budget. The search is
 * the model's: kernels are compiled for an arch that is not here. FAGEN_TEST_FULL=1 stops it at 60 random moments instead of 3. */
#include "cache/record.h"
#include "gen/text.h"
#include "search_toy.h"
#include "test_cli_run.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void make(void)
{
    cli_scratch_make();
    setenv("FAGEN_CACHE_DIR", "cache", 1); /* of the test's own: what is on record must be known */
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
}

TestSuite(cli_tune, .init = make, .fini = cli_scratch_remove, .timeout = 300);

/* The smallest kernels: a fifth of a second each. */
#define SMALL "-t fp32 -d 8 --causal" /* whose first candidates spill nothing */
/* A hundredth: with the toy for templates, where what is compiled does not matter. */
static void toys_only(void)
{
    if (access("toys", F_OK) != 0)
        cr_assert(search_toy_write("toys"));
    setenv("FAGEN_TEMPLATE_DIR", "toys", 1);
}
#define TOY SMALL " --family toy"
/* More candidates than anybody waits for. */
#define ENDLESS "-d 64 --all --threads 1"

/* ---- a command under way ---- */

typedef struct running {
    pid_t pid;
    int err; /* its standard error: a pipe, or a terminal */
    int out; /* its standard output, a file */
} running;

/* columns > 0: standard error is a terminal of that width. */
static running start(const char *words, int columns)
{
    char copy[512], *word[40], *save;
    int n = 0, pipes[2];
    char name[] = "out-XXXXXX";
    running r = { .out = mkstemp(name) };
    struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
    snprintf(copy, sizeof copy, "%s", words);
    word[n++] = "fagen";
    word[n++] = "tune";
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        word[n++] = w;
    word[n] = NULL;
    if (columns) {
        r.pid = forkpty(&r.err, NULL, NULL, &size);
    } else {
        cr_assert(pipe(pipes) == 0);
        r.pid = fork();
    }
    cr_assert(r.pid >= 0 && r.out >= 0);
    if (r.pid == 0) {
        dup2(r.out, 1);
        close(r.out);
        if (!columns) {
            dup2(pipes[1], 2);
            close(pipes[0]);
            close(pipes[1]);
        }
        execv(getenv("FAGEN_COMMAND"), word);
        _exit(127);
    }
    if (!columns) {
        close(pipes[1]);
        r.err = pipes[0];
    }
    return r;
}

/* Reads standard error until it holds `until`, or, NULL, until nobody has it open any more. */
static char *hear(const running *r, const char *until)
{
    fa_text t = { 0 };
    char byte;
    ssize_t n;
    while ((n = read(r->err, &byte, 1)) == 1 || (n < 0 && errno == EINTR)) /* a terminal that is closed gives EIO */
        if (n == 1) {
            fa_text_add(&t, &byte, 1);
            if (until && strstr(fa_text_cstr(&t), until))
                break;
        }
    char *s = strdup(fa_text_cstr(&t));
    fa_text_free(&t);
    return s;
}

/* Waits; the exit code, or 1000 + the signal. *doc: what it wrote, or NULL where that is no JSON. */
static int end(running *r, json_t **doc)
{
    int status;
    free(hear(r, NULL));
    cr_assert_eq(waitpid(r->pid, &status, 0), r->pid);
    if (doc) {
        lseek(r->out, 0, SEEK_SET);
        FILE *f = fdopen(r->out, "r"); /* json_loadfd() would read byte by byte */
        cr_assert_not_null(f);
        *doc = json_loadf(f, 0, NULL);
        fclose(f);
    } else
        close(r->out);
    close(r->err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static json_t *get(json_t *j, const char *list, size_t i, const char *name)
{
    return json_object_get(json_array_get(json_object_get(j, list), i), name);
}

static json_int_t sum(json_t *doc, const char *name)
{
    json_int_t n = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(doc, "problems")); i++)
        n += json_integer_value(get(doc, "problems", i, name));
    return n;
}

static size_t winners(json_t *doc)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(doc, "problems")); i++)
        n += json_is_object(get(doc, "problems", i, "guess"));
    return n;
}

/* ---- the line ---- */

/* Every state of the line: what stands between \r and \n, without colours. Returns how many; `all` gets them, one a line. */
static size_t frames(const char *s, size_t *widest, bool *colours, fa_text *all)
{
    size_t n = 0, width = 0;
    *widest = 0;
    *colours = false;
    for (;; s++) {
        if (*s == '\r' || *s == '\n' || !*s) {
            n += width > 0;
            *widest = width > *widest ? width : *widest;
            width = 0;
            fa_text_str(all, "\n");
            if (!*s)
                return n;
        } else if (*s == '\033') {
            *colours = true;
            s += strcspn(s, "m");
        } else {
            width++;
            fa_text_add(all, s, 1);
        }
    }
}

static const struct {
    int columns;
    const char *environment, *options, *shows, *lacks; /* shows, lacks: NULL = nothing */
    size_t most;
    bool colours;
} terminals[] = {
    { 200, "X=", "", "24 configs > 16 fit SRAM > 12 registers", NULL, 199, true },
    { 70, "X=", "", "24>16>12", "fit SRAM", 69, true },
    { 80, "NO_COLOR=1", "", "[###", "\033", 79, false },
    { 24, "COLUMNS=130", "--color never", "best", NULL, 129, false },
    { 80, "NO_COLOR=1", "--color always", "[###", NULL, 79, true },
    { 24, "X=", "", "/2", "fit SRAM", 23, false },
    { 3, "X=", "", NULL, "best ", 2, false },
    { 0, "X=", "", "compile", "\r", 400, false },
    { 0, "X=", "--quiet", NULL, "compile", 0, false },
};

Test(cli_tune, the_line_fits_the_terminal)
{
    toys_only();
    for (size_t i = 0; i < sizeof terminals / sizeof *terminals; i++) {
        char words[256];
        fa_text all = { 0 };
        size_t widest;
        bool colours;
        putenv((char *)terminals[i].environment);
        setenv("FAGEN_CACHE_DIR", "", 1); /* nothing is kept: it compiles each time */
        snprintf(words, sizeof words, TOY " -n 256 --arch sm_80 --limit 2 %s", terminals[i].options);
        running r = start(words, terminals[i].columns);
        char *err = hear(&r, NULL), *line = err;
        cr_assert_eq(end(&r, NULL), 0, "%s: %s", words, err);
        if (terminals[i].columns) /* the notes before it are sentences */
            for (char *at = err; (at = strchr(at, '\n')) != NULL; line = ++at)
                ;
        size_t n = frames(line, &widest, &colours, &all);
        cr_expect(n >= 1 || !terminals[i].most, "%zu: %s", i, err);
        cr_expect_leq(widest, terminals[i].most, "%d columns: %s", terminals[i].columns, fa_text_cstr(&all));
        cr_expect_eq(colours, terminals[i].colours, "%zu: %s", i, err);
        cr_expect(!terminals[i].shows || strstr(fa_text_cstr(&all), terminals[i].shows), "%zu lacks %s: %s", i, terminals[i].shows, err);
        cr_expect(!terminals[i].lacks || !strstr(err, terminals[i].lacks), "%zu has %s: %s", i, terminals[i].lacks, err);
        fa_text_free(&all);
        free(err);
        unsetenv("COLUMNS");
        unsetenv("NO_COLOR");
    }
}

/* ---- stopping ---- */

static size_t lines, bad;

static int check_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char *line = NULL;
    size_t cap = 0;
    (void)st, (void)ftw;
    FILE *f = type == FTW_F && strstr(path, ".jsonl") ? fopen(path, "r") : NULL;
    while (f && getline(&line, &cap, f) > 0) {
        fa_record record;
        lines++;
        bad += !fa_record_from_json(&record, line);
    }
    free(line);
    if (f)
        fclose(f);
    return 0;
}

/* Every line of every file of records; none may be torn. */
static size_t records(void)
{
    lines = bad = 0;
    nftw("cache", check_file, 16, FTW_PHYS);
    cr_assert_eq(bad, 0, "%zu of %zu lines cannot be read", bad, lines);
    return lines;
}

#define STOPPED TOY " -n 256,8192 --arch sm_80 --limit 5 --json"
#define WHOLE 10 /* records of it */

/* Whatever ends it at whatever moment: what is on record is whole, and the next run goes on from there. */
Test(cli_tune, stopped_at_random_moments)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGKILL };
    int rounds = full() ? 60 : 3;
    unsigned seed = (unsigned)time(NULL);
    size_t known = 0;
    toys_only();
    for (int i = 0; i < rounds; i++) {
        json_t *doc;
        int sig = signals[i % 3], code;
        if (known == WHOLE) { /* from the start */
            cli_scratch_remove();
            make();
            toys_only();
            known = 0;
        }
        running r = start(STOPPED, 0);
        struct timespec moment = { .tv_nsec = rand_r(&seed) % 700 * 1000000l }; /* it is the moment that is random; nothing is awaited */
        nanosleep(&moment, NULL);
        kill(r.pid, sig);
        code = end(&r, &doc);
        size_t now = records();
        cr_assert_geq(now, known);
        if (sig == SIGKILL)
            cr_assert(code == 1000 + sig || code == 0, "%d", code);
        else /* before it watches for signals they end it; after the last candidate they come too late */
            cr_assert(code == 130 || code == 0 || (code == 1000 + sig && now == known), "%d after %zu of %zu", code, now, known);
        if (code == 130 && doc && json_object_get(doc, "problems")) {
            cr_assert_str_eq(json_string_value(json_object_get(doc, "status")), "FA_INTERRUPTED");
            cr_assert_eq((size_t)(sum(doc, "resumed") + sum(doc, "compiled")) <= now, true);
            cr_assert_eq(json_array_size(json_object_get(doc, "problems")) + json_array_size(json_object_get(doc, "not_reached")), 2);
        }
        json_decref(doc);
        known = now;
    }
    json_t *doc = cli_json("tune " STOPPED " -q", 0);
    cr_assert_eq(winners(doc), 2);
    cr_assert_eq((size_t)sum(doc, "resumed"), known);
    cr_assert_eq(sum(doc, "resumed") + sum(doc, "compiled"), WHOLE);
    cr_assert_eq(records(), WHOLE);
    json_decref(doc);
    cli_result again = cli_run("tune " TOY " -n 256 --arch sm_80 --limit 5");
    cr_assert(again.code == 0 && strstr(again.out, "5 of 5 from records"), "%s", again.out);
    cli_result_free(&again);
}

Test(cli_tune, the_second_signal_ends_it_at_once)
{
    running r = start(ENDLESS " --arch sm_80", 0);
    fa_text said = { 0 };
    free(hear(&r, "0 %"));
    kill(r.pid, SIGINT);
    while (!said.s || !strstr(said.s, "Once more")) { /* NVRTC may have lost it: see cli/text/progress.c */
        char bytes[4096];
        struct pollfd p = { .fd = r.err, .events = POLLIN };
        if (poll(&p, 1, 3000) == 0)
            kill(r.pid, SIGINT);
        ssize_t n = p.revents ? read(r.err, bytes, sizeof bytes) : 0;
        cr_assert(n > 0 || !p.revents, "it ended: %s", fa_text_cstr(&said));
        fa_text_add(&said, bytes, (size_t)n);
    }
    cr_assert(strstr(said.s, "is kept"), "%s", said.s);
    kill(r.pid, SIGINT);
    for (struct pollfd p = { .fd = r.err, .events = 0 }; poll(&p, 1, 3000) == 0;) /* until its end is closed */
        kill(r.pid, SIGINT);
    cr_assert_eq(end(&r, NULL), 130);
    fa_text_free(&said);
    records();
}

/* ---- the budget ---- */

Test(cli_tune, the_budget_is_of_the_whole_command)
{
    running r = start(ENDLESS " -n 512,1024 --arch sm_80 --budget 2s --json", 0);
    json_t *doc;
    int code = end(&r, &doc);
    cr_assert(doc, "%d", code);
    cr_assert_eq(json_array_size(json_object_get(doc, "problems")), 1);
    cr_assert_eq(json_array_size(json_object_get(doc, "not_reached")), 1);
    cr_assert(json_is_true(get(doc, "problems", 0, "out_of_time")));
    cr_assert_eq(code, winners(doc) ? 0 : 130);
    cr_assert_eq(json_real_value(json_object_get(doc, "budget")) + (double)json_integer_value(json_object_get(doc, "budget")), 2);
    json_decref(doc);
}

/* --quiet is of notes and progress: the report stays. Where no candidate is sound, nothing is missing on the machine. */
Test(cli_tune, a_report_without_notes)
{
    cli_result r = cli_run("tune -d 64 -n 512 --arch sm_80 --limit 2 -q");
    cr_expect(r.code == 0 && strstr(r.out, "guess      ") && strstr(r.out, "saved      ") && !r.err[0], "%d %s%s", r.code, r.out, r.err);
    cli_result_free(&r);
    static const char spills[] = "FAGEN_TEMPLATE_DIR=toys tune -d 64 -n 512 --arch sm_80 --family toy -q";
    static const char lua[] = "return { doc = 'x', tunables = { { 'n', { 1 }, 'n' } }, supports = function() return true end,\n"
                              "  constraints = {}, layout = function() return { bytes = 64, threads = 1024, regs = 40 } end,\n"
                              "  steps = function(p, c) return { { entry = 'toy', grid = 'sq/64 hq b' } } end, params = 'q o',\n"
                              "  work = function(p, c) return { rows = 64, cols = 64 } end }\n";
    static const char cu[] = "extern \"C\" __global__ void __launch_bounds__(1024, 1) toy(const float *q, float *o, int n)\n"
                             "{\n  float x[200];\n#pragma unroll\n  for (int i = 0; i < 200; i++) x[i] = q[i * n];\n"
                             "  __syncthreads();\n#pragma unroll\n  for (int i = 0; i < 200; i++) o[i * n] = x[199 - i] + x[i] * n;\n}\n";
    mkdir("toys", 0700);
    cli_scratch_write("toys/toy.lua", lua, sizeof lua - 1);
    cli_scratch_write("toys/toy.cu", cu, sizeof cu - 1);
    r = cli_run(spills);
    cr_expect(r.code == 8 && strstr(r.err, "none of 1 candidates is a guess") && strstr(r.err, "spills"), "%d %s%s", r.code, r.out, r.err);
    cli_result_free(&r);
}

Test(cli_tune, a_grid_without_a_device)
{
    json_t *doc = cli_json("tune --grid vit -t fp16 --arch sm_80 --limit 1 --json -q", 0);
    cr_assert_eq(json_array_size(json_object_get(doc, "problems")), 1);
    cr_assert_eq(winners(doc), 1);
    cr_assert(!strncmp(json_string_value(get(doc, "problems", 0, "problem")), "fp16,d=64,", 10));
    json_t *one = json_array_get(json_object_get(doc, "problems"), 0), *base = json_object_get(one, "baseline");
    cr_assert(json_is_object(base) && json_string_value(json_object_get(base, "from"))[0]);
    cr_assert(json_integer_value(json_object_get(one, "space")) >= json_integer_value(json_object_get(one, "sound")));
    cr_assert(json_integer_value(json_object_get(one, "sound")) >= json_integer_value(json_object_get(one, "fits_shared")));
    cr_assert(json_integer_value(json_object_get(one, "fits_shared")) >= json_integer_value(json_object_get(one, "fits")));
    cr_assert(json_array_size(json_object_get(one, "rejected")) > 0);
    json_decref(doc);
}

/* ---- what programs launched ---- */

Test(cli_tune, a_workload_is_tuned_the_most_time_first)
{
    static const char run[] = "FAGEN_WORKLOAD=day run -d 32 --causal --heads 2 -q -n ",
                      tune[] = "tune --workload day --arch sm_80 --limit 1";
    static const int lengths[] = { 64, 128, 64, 64, 64 }; /* launched four times, 64 takes more time than 128 once */
    char words[256];
    for (int i = 0; i < 5; i++) {
        snprintf(words, sizeof words, "%s%d", run, lengths[i]);
        cli_result r = cli_run(words);
        cr_assert_eq(r.code, 0, "%s", r.err);
        cli_result_free(&r);
    }
    snprintf(words, sizeof words, "%s --json", tune);
    json_t *doc = cli_json(words, 0);
    cr_assert_eq(json_array_size(json_object_get(doc, "problems")), 2);
    cr_assert_eq(winners(doc), 2);
    cr_expect(strstr(json_string_value(get(doc, "problems", 0, "problem")), "hq=2,hkv=2,sq=64,sk=64"));
    cr_expect(strstr(json_string_value(get(doc, "problems", 1, "problem")), "sq=128,sk=128"));
    json_decref(doc);
    cli_result r = cli_run(tune);
    cr_expect(r.code == 0 && strstr(r.err, "day: 2 problems, 5 launches, some "), "%s", r.err);
    cli_result_free(&r);
}

Test(cli_tune, a_workload_that_is_none)
{
    static const struct {
        const char *words;
        int code;
        const char *says;
    } rows[] = {
        { "tune --workload none", 7, "--workload: none: No such file or directory; accepted: the file" },
        { "tune --workload bad", 1, "bad, line 2: launches is -1; accepted: a whole number from 1 on" },
        { "tune --workload bad -d 64", 1, "--workload bad names the problems; accepted beside it: no other option that" },
        { "tune --workload bad --op backward", 1, "accepted beside it: no other option that" },
        { "tune --workload bad --grid vit", 1, "accepted beside it: no other option that" },
    };
    static const char text[] = "{\"problem\":\"bf16,d=64\",\"launches\":1,\"seconds\":1}\n{\"problem\":\"bf16,d=64\",\"launches\":-1}\n";
    cli_scratch_write("bad", text, sizeof text - 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cli_result r = cli_run(rows[i].words);
        cr_expect_eq(r.code, rows[i].code, "%s: %d", rows[i].words, r.code);
        cr_expect(strstr(r.err, rows[i].says), "%s: %s", rows[i].words, r.err);
        cli_result_free(&r);
    }
}

/* ---- several devices ---- */

#define TWO "--devices sim:sm_80,sim:sm_80"
#define SHARED SMALL " -n 256,512,4096 --limit 2 " TWO " --json"

static int children(pid_t pid, pid_t *out, int most)
{
    char path[64], text[512];
    int n = 0, fd;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    fd = open(path, O_RDONLY);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    text[got > 0 ? got : 0] = 0;
    if (fd >= 0)
        close(fd);
    for (char *save, *s = strtok_r(text, " ", &save); s && n < most; s = strtok_r(NULL, " ", &save))
        out[n++] = (pid_t)atoi(s);
    return n;
}

static json_int_t restarts(json_t *doc)
{
    json_int_t n = 0, problems = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(doc, "devices")); i++) {
        n += json_integer_value(get(doc, "devices", i, "restarts"));
        problems += json_integer_value(get(doc, "devices", i, "problems"));
        cr_assert_str_eq(json_string_value(get(doc, "devices", i, "device")), "sim:sm_80");
    }
    cr_assert_eq(problems, 3);
    return n;
}

/* One of its processes is killed at the first problem. */
static void survive(const char *words)
{
    json_t *doc;
    json_int_t died = 0;
    for (int i = 0; i < 5 && !died; i++) { /* on a busy machine it may be done before the blow falls */
        pid_t child[4];
        cli_scratch_remove();
        make();
        running r = start(words, 0);
        free(hear(&r, "0 %"));
        if (children(r.pid, child, 4) > 0)
            kill(child[0], SIGKILL);
        cr_assert_eq(end(&r, &doc), 0);
        cr_assert_eq(winners(doc), 3);
        died = restarts(doc);
        cr_assert_leq(died, 1);
        cr_assert_eq(records(), 6);
        json_decref(doc);
    }
    cr_assert_eq(died, 1, "%s", words);
}

Test(cli_tune, devices_share_the_problems_and_a_death_costs_one)
{
    if (full())
        survive(SMALL " -n 256,512,4096 --limit 2 --devices sim:sm_80 --json");         /* one that is named gets a process too */
    survive(SMALL " -n 256,512,4096 --limit 2 --devices sim:sm_80 --abreast 2 --json"); /* or two */
    survive(SHARED);
    json_t *doc = cli_json("tune " SHARED " -q", 0); /* and with all on record, in one process, the same winners */
    cr_assert_eq(sum(doc, "resumed"), 6);
    cr_assert_eq(restarts(doc), 0);
    json_t *alone = cli_json("tune " SMALL " -n 256,512,4096 --limit 2 --json -q", 0);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_str_eq(json_string_value(get(doc, "problems", i, "problem")), json_string_value(get(alone, "problems", i, "problem")));
        cr_assert_str_eq(json_string_value(json_object_get(get(doc, "problems", i, "guess"), "config")),
                         json_string_value(json_object_get(get(alone, "problems", i, "guess"), "config")));
    }
    json_decref(alone);
    json_decref(doc);
}

/* Processes that always die: it ends, and says so. */
#define LEFT "no device is left"
Test(cli_tune, no_device_is_left)
{
    running r = start(ENDLESS " -n 512,1024 " TWO, 0);
    int fd = r.err, code;
    fa_text said = { 0 };
    for (bool open = true; open;) {
        pid_t child[4];
        char bytes[4096];
        struct pollfd p = { .fd = fd, .events = POLLIN };
        /* Until it gives up: a sanitizer has a process of its own at exit. */
        for (int i = strstr(fa_text_cstr(&said), LEFT) ? 0 : children(r.pid, child, 4); i-- > 0;)
            kill(child[i], SIGKILL);
        if (poll(&p, 1, 10) > 0) {
            ssize_t n = read(fd, bytes, sizeof bytes);
            open = n > 0;
            fa_text_add(&said, bytes, n > 0 ? (size_t)n : 0);
        }
    }
    code = end(&r, NULL);
    cr_assert_eq(code, 6, "%s", fa_text_cstr(&said));
    cr_assert(strstr(fa_text_cstr(&said), LEFT) && strstr(fa_text_cstr(&said), "signal 9"), "%s", fa_text_cstr(&said));
    fa_text_free(&said);
}

/* A signal to the parent ends all of them, in good order or, SIGKILL, at once: their standard error is closed by the last. */
Test(cli_tune, a_fleet_ends_together)
{
    static const int signals[] = { SIGTERM, SIGKILL };
    for (int i = 0; i < 2; i++) {
        json_t *doc;
        running r = start(ENDLESS " -n 512,1024 " TWO " --json", 0);
        free(hear(&r, "0/2"));
        kill(r.pid, signals[i]);
        int code = end(&r, &doc);
        cr_assert_eq(code, i ? 1000 + SIGKILL : 130);
        if (i == 0)
            cr_assert_str_eq(json_string_value(json_object_get(doc, "status")), "FA_INTERRUPTED");
        json_decref(doc);
        records();
    }
}
