/* serve: the child's side of process.h. */
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "process.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef struct server {
    const fa_site *site;
    FILE *out;
    fa_measure_backend *backend;
    fa_problem problem;
    fa_candidate c; /* what was judged last */
    bool gone;      /* the context is unusable */
} server;

static void answer(server *v, fa_status st)
{
    char message[400];
    if (st == FA_OK) {
        fprintf(v->out, "ok\n");
        return;
    }
    snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1, fa_last_error());
    for (char *s = message; *s; s++)
        *s = *s == '\n' || *s == '\r' ? ' ' : *s;
    v->gone = st == FA_DEVICE && v->backend && !fa_measure_backend_alive(v->backend);
    fprintf(v->out, "%s %d %s\n", v->gone ? "lost" : "fail", (int)st, message);
}

static fa_status set_problem(server *v, const char *text)
{
    fa_problem p;
    fa_measure_backend_close(v->backend);
    v->backend = NULL;
    fa_status st = fa_problem_parse(&p, text);
    if (st == FA_OK)
        st = fa_problem_normalize(&v->problem, &p);
    if (st != FA_OK)
        return st;
    fa_problem_fill_shape(&v->problem);
    st = fa_measure_backend_open(&v->backend, v->site, &v->problem, true);
    if (st == FA_OK)
        fa_measure_backend_partner(v->backend, (int)getppid());
    return st;
}

/* A program that a problem will name; of a text that is none the problem tells. */
static void learn_score(char *hex)
{
    const fa_program *program;
    fa_message before;
    size_t n = 0;
    for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
        hex[n] = (char)byte; /* ahead of which the digits are read */
    fa_message_keep(&before);
    fa_score_known_read(&program, "score", hex, n);
    fa_message_settle(&before, FA_OK);
}

static fa_status judge(server *v, const char *text)
{
    v->c = (fa_candidate){ .decided = false };
    if (!v->backend)
        return fa_fail(FA_INVALID, "judge before problem");
    fa_status st = fa_config_parse(&v->c.config, text);
    if (st == FA_OK)
        st = fa_plan_make(v->site->ctx, &v->problem, &v->c.config, "tuned", &v->c.plan);
    return st == FA_OK ? fa_measure_backend_judge(v->backend, &v->c) : st;
}

static void take_times(server *v, const char *text)
{
    int n = (int)strtol(text, NULL, 10);
    fa_status st = v->backend && n > 0 && n <= FA_SAMPLES_MAX
                       ? FA_OK
                       : fa_fail(FA_INVALID, "time %.20s; accepted: 1 to %d, after judge", text, FA_SAMPLES_MAX);
    v->c.samples.n = 0;
    if (st == FA_OK)
        st = fa_measure_backend_first(v->backend, &v->c, n, 0);
    if (st != FA_OK) {
        answer(v, st);
        return;
    }
    fa_telemetry g = fa_measure_backend_telemetry(v->backend);
    fprintf(v->out, "times %d %d %d %d %d %d", v->c.samples.n, v->c.launches > 0 ? v->c.launches : 1, g.clock_mhz, g.temperature, g.foreign,
            g.throttled);
    for (int i = 0; i < v->c.samples.n; i++)
        fprintf(v->out, " %a", v->c.samples.s[i]);
    fputc('\n', v->out);
}

fa_status fa_candidate_process_serve(const fa_site *site, FILE *in, FILE *out)
{
    server v = { .site = site, .out = out };
    char *line = NULL;
    size_t cap = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fprintf(out, "ready " FA_VERSION_STRING "\n");
    fflush(out);
    while (!v.gone && getline(&line, &cap, in) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *text = strchr(line, ' ');
        if (text)
            *text++ = 0;
        if (text && !strcmp(line, "score")) {
            learn_score(text);
            continue;
        }
        if (text && !strcmp(line, "problem"))
            answer(&v, set_problem(&v, text));
        else if (text && !strcmp(line, "judge"))
            answer(&v, judge(&v, text));
        else if (text && !strcmp(line, "time"))
            take_times(&v, text);
        else
            answer(&v, fa_fail(FA_INVALID, "\"%.40s\" is none of problem, judge, time", line));
        fflush(out);
    }
    free(line);
    if (!v.gone)
        fa_measure_backend_close(v.backend);
    return v.gone ? fa_fail(FA_DEVICE, "a candidate made the context unusable") : FA_OK;
}
