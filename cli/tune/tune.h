/* tune: the nouns that the files of `fagen tune` share: what was asked, where it is searched, what one problem gave. */
#ifndef FA_CLI_TUNE_TUNE_H
#define FA_CLI_TUNE_TUNE_H
#include "autotune/search/search.h"
#include "autotune/strategy/strategy.h"
#include "cli/options/problem_list.h"
#include "cli/session/session.h"
#include "cli/text/status_line.h"

typedef struct tune_args {
    cli_common common;
    cli_where where;
    cli_problem_lists lists;
    int32_t limit, threads, lengths;
    int32_t abreast; /* searches that share a device; 0 = the usual number */
    double budget;   /* seconds of the whole command; 0 = none */
    const char *arch, *family, *devices;
    const char *workload;    /* a file of launches; NULL = none */
    const char *on;          /* of a tune process: its device */
    const char *device_lock; /* and the lock of that, "3:0": file descriptor and member; NULL = the device is its own */
    int32_t strategy;        /* an index of fa_strategy_at */
    uint64_t seed;
    bool all, again, list_grids, in_process;
} tune_args;

/* ---- the problems ---- */

/* With --workload what that file tells, the most time first; a note says how much. */
fa_status tune_list(const cli *c, cli_problem_list *out, const tune_args *a);
/* --list-grids; with --grid its problems. */
int tune_list_grids(cli *c, const tune_args *a);

/* ---- where ---- */

typedef struct tune_site {
    cli_session session;
    fa_site site;
} tune_site;
/* A device, or no device and an arch; a note says which. --device is `device` where that is not NULL. */
fa_status tune_site_open(tune_site *out, const cli *c, const tune_args *a, const char *device);
void tune_site_close(tune_site *s);
/* The note. */
void tune_site_note(const cli *c, const char *arch, const char *chip, bool timed);

/* ---- one problem ---- */

/* The search, and what it found as a document (result.c), also where it failed, as far as it came. seconds: the problem's share
 * of the time, 0 = no limit. */
typedef int tune_progress(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done);
fa_status tune_problem(const tune_args *a, const fa_site *site, const fa_problem *p, double seconds, tune_progress *progress, void *user,
                       json_t **result);
json_t *tune_result(const fa_tuning *t, const fa_problem *p, const fa_site *site, fa_status st, const char *message); /* site NULL = none */
/* Its "winner" where it was measured, else its "guess", which is the model's; no object where there is none. */
const json_t *tune_best(const json_t *result);
/* Whether there is more to tell of a result than why it failed. */
bool tune_tells(const json_t *result);
/* Whether other problems can succeed after one ended so. */
bool tune_goes_on(fa_status st);

/* The share of one problem: what is left of the budget, in equal parts for the `left` problems without a result, on `sites` devices, but
 * at least the few seconds without which nothing is found. 0 = no limit; below 0: the time is up. */
double tune_share(double budget, double spent, size_t left, size_t sites);

/* ---- while it runs ---- */

/* What is known of a search under way; it travels from tune processes to their parent. */
typedef struct tune_view {
    char stage[16], config[64];
    int64_t space, sound, fits_shared, fits, kept, compiled, verified, timed, resumed, failed;
    double done;            /* 0 to 1 */
    double tflops, seconds; /* of the best so far; 0 = none */
    double gain;            /* over the default; NAN = not known */
    bool measured;
} tune_view;
tune_view tune_view_of(const fa_tuning *t, const char *stage, const fa_candidate *latest, double done);
json_t *tune_view_json(const tune_view *v);
tune_view tune_view_read(const json_t *j);
/* The line: problem `at` (from 1) of `of`; left: seconds until the end, below 0 = not known. */
void tune_view_line(cli_status_line *out, const tune_view *v, const fa_problem *p, size_t at, size_t of, double done, double left);
/* Seconds left at a pace, bounded by the budget: below 0 = too early to say. done: 0 to 1. */
double tune_left(double spent, double done, double budget);
/* "bf16 d128 causal 4x16/8 4096" */
void tune_problem_brief(char *buf, size_t n, const fa_problem *in);
/* "41 s", "8 min 20 s" */
void tune_show_span(char *buf, size_t n, double seconds);

/* ---- afterwards ---- */

/* The report on one problem, from its document. */
void tune_report(const cli *c, const json_t *result, bool alone);
/* The table of all; results[i] NULL = not reached. */
void tune_report_all(const cli *c, const cli_problem_list *l, json_t *const *results, double elapsed);

/* ---- the whole ---- */

typedef struct tune_run {
    cli *c;
    const tune_args *a;
    cli_problem_list list;
    json_t **result; /* of each problem, or NULL */
    json_t *devices; /* an array: what worked, or NULL */
    char arch[16];   /* "" = none was found */
    bool timed;
    double start;
} tune_run;
/* On one device, in this process, one problem after the other; or in processes of their own, several on each GPU (fleet.c). Fills
 * result. FA_INTERRUPTED: a signal ended it. */
fa_status tune_alone(tune_run *r, const char *device); /* device NULL = that of --device */
fa_status tune_fleet(tune_run *r, const char *const *device, size_t n);
/* A process of a fleet: jobs from standard input, results to standard output, a line of JSON each. */
int tune_process(cli *c, const tune_args *a);
/* Keeps a result, and reports it. */
void tune_run_keep(tune_run *r, size_t i, json_t *result);

extern const cli_command cli_tune;
#endif
