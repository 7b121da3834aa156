/* result: what one problem gave, as the document that --json prints, tune processes send and the report reads. */
#include "cli/session/config_text.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "tune.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 1.0 /* seconds after Ctrl-C: the command ends in two */

static bool ran(const fa_candidate *k)
{
    return k->decided && k->outcome == FA_RAN;
}

static int by_outcome(const void *x, const void *y)
{
    const fa_candidate *a = *(const fa_candidate *const *)x, *b = *(const fa_candidate *const *)y;
    if (ran(a) != ran(b))
        return ran(a) ? -1 : 1;
    if (ran(a) && a->met != b->met) /* of the others there is a first pass alone */
        return a->met ? -1 : 1;
    return !ran(a) || a->level == b->level ? (a > b) - (a < b) : a->level < b->level ? -1 : 1;
}

static json_t *candidate_json(const fa_candidate *k)
{
    char text[CLI_CONFIG_TEXT], recorded[CLI_CONFIG_TEXT];
    cli_config_text(text, &k->config);
    fa_config_print(recorded, sizeof recorded, &k->config);
    json_t *j =
        json_pack("{s:s,s:s,s:s,s:o,s:o,s:i,s:o,s:i,s:i,s:i,s:b,s:s}", "config", text, "outcome",
                  k->decided ? fa_outcome_name(k->outcome) : "open", "source", k->how == FA_MEASURED ? "measured" : "model", "seconds",
                  cli_json_number(k->seconds), "spread", cli_json_number(k->spread), "samples", k->count, "tflops",
                  cli_json_number(k->tflops), "regs", k->regs, "spills", k->spills, "smem", k->smem, "resumed", k->resumed, "why", k->why);
    json_t *more = json_pack("{s:s,s:s,s:o,s:o,s:b,s:o,s:o,s:o,s:s,s:i,s:i}", "recorded", recorded, "origin", fa_origin_name(k->origin),
                             "modelled", cli_json_number(k->cost.seconds), "level", cli_json_number(k->level), "verified", k->verified,
                             "low", cli_json_number(k->low), "high", cli_json_number(k->high), "warm", cli_json_number(k->warm), "quality",
                             fa_quality_name(k->quality), "clock_mhz", k->clock_mhz, "temperature", k->temperature);
    json_object_update(j, more);
    json_decref(more);
    return j;
}

/* Standard error of the median, relative: of its 95 % interval, else of the spread of n samples as of a normal distribution. */
static double error_of(const fa_candidate *k)
{
    if (k->high > k->low && k->low > 0 && k->seconds > 0)
        return (k->high - k->low) / (2 * 1.96) / k->seconds;
    return k->count > 1 ? 1.2533 * 1.4826 * k->spread / sqrt(k->count) : NAN;
}

/* How likely chance alone would make b so much slower than a; NAN where it cannot be told. */
static double chance(const fa_candidate *a, const fa_candidate *b)
{
    double error = hypot(error_of(a), error_of(b)), behind = b->level / a->level - 1;
    return a->how != FA_MEASURED || isnan(error) ? NAN : error > 0 ? 0.5 * erfc(behind / error / sqrt(2)) : behind > 0 ? 0 : 0.5;
}

static json_t *runner_up_json(const fa_candidate *winner, const fa_candidate *k)
{
    json_t *j = candidate_json(k);
    json_object_set_new(j, "behind", cli_json_number(k->level / winner->level - 1));
    json_object_set_new(j, "chance", cli_json_number(chance(winner, k)));
    return j;
}

static json_t *baseline_json(const fa_tuning *t)
{
    json_t *j = candidate_json(t->baseline);
    json_object_set_new(j, "from", json_string(t->baseline_from));
    json_object_set_new(j, "beside", json_boolean(t->winner && t->winner->met && t->baseline->met)); /* in the same rounds as the winner */
    return j;
}

/* How much faster the winner is than what runs untuned; NAN where that is not known. */
static double gain_of(const fa_tuning *t)
{
    return t->winner && t->baseline && ran(t->baseline) && t->winner->seconds > 0 ? t->baseline->seconds / t->winner->seconds - 1 : NAN;
}

static json_t *runs_json(const fa_runs *r)
{
    char text[CLI_CONFIG_TEXT];
    cli_config_text(text, &r->config);
    return json_pack("{s:s,s:s,s:b}", "config", text, "from", r->from, "decided", r->decided);
}

static json_t *rejected_json(const fa_tuning *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_rejected; i++)
        json_array_append_new(list, json_pack("{s:s,s:s,s:I,s:s,s:s}", "family", t->rejected[i].family, "constraint",
                                              t->rejected[i].constraint, "count", (json_int_t)t->rejected[i].n, "limit",
                                              fa_limit_name(t->rejected[i].limit), "why", t->rejected[i].why));
    return list;
}

static void add_candidates(json_t *doc, const fa_tuning *t)
{
    json_t *list = json_array();
    const fa_candidate **order = calloc(t->n + 1, sizeof *order), *second = NULL;
    for (size_t i = 0; order && i < t->n; i++)
        order[i] = &t->candidate[i];
    if (order && t->n)
        qsort(order, t->n, sizeof *order, by_outcome);
    json_int_t like = 0;
    for (size_t i = 0; order && i < t->n; i++) {
        json_array_append_new(list, candidate_json(order[i]));
        if (!t->winner || order[i] == t->winner || !ran(order[i]))
            continue;
        second = second ? second : order[i];
        like += order[i]->level <= t->winner->level;
    }
    json_object_set_new(doc, "runner_up", second ? runner_up_json(t->winner, second) : json_null());
    json_object_set_new(doc, "alike", json_integer(like)); /* others with the winner's time */
    json_object_set_new(doc, "candidates", list);
    free(order);
}

json_t *tune_result(const fa_tuning *t, const fa_problem *p, const fa_site *site, fa_status st, const char *message)
{
    char text[FA_PROBLEM_TEXT];
    const struct {
        const char *name;
        size_t n;
    } counts[] = { { "space", t->counts.space },       { "sound", t->counts.sound }, { "fits_shared", t->counts.fits_shared },
                   { "fits", t->counts.fits },         { "kept", t->counts.kept },   { "compiled", t->counts.compiled },
                   { "verified", t->counts.verified }, { "timed", t->counts.timed }, { "resumed", t->counts.resumed },
                   { "failed", t->counts.failed },     { "seeds", t->counts.seeds }, { "neighbours", t->counts.neighbours },
                   { "lost", t->counts.lost } };
    const char *root = site ? fa_store_root(site->store) : NULL;
    fa_problem_print(text, sizeof text, p);
    json_t *j = json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:s,s:o,s:o,s:b,s:o,s:o}", "problem", text, "status", fa_status_name(st), "message",
                          st == FA_OK ? "" : message, "source", t->how == FA_MEASURED ? "measured" : "model",
                          t->how == FA_MEASURED ? "winner" : "guess", t->winner ? candidate_json(t->winner) : json_null(), "baseline",
                          t->baseline ? baseline_json(t) : json_null(), "baseline_from", t->baseline_from, "gain",
                          cli_json_number(gain_of(t)), "elapsed", cli_json_number(t->elapsed), "out_of_time", t->out_of_time, "saved",
                          root ? json_string(root) : json_null(), "rejected", rejected_json(t));
    if (j) {
        json_object_set_new(j, t->how == FA_MEASURED ? "guess" : "winner", json_null());
        json_object_set_new(j, "runs", t->runs.known ? runs_json(&t->runs) : json_null());
    }
    for (size_t i = 0; j && i < sizeof counts / sizeof *counts; i++)
        json_object_set_new(j, counts[i].name, json_integer((json_int_t)counts[i].n));
    if (j)
        add_candidates(j, t);
    return j;
}

fa_status tune_problem(const tune_args *a, const fa_site *site, const fa_problem *p, double seconds, tune_progress *progress, void *user,
                       json_t **result)
{
    fa_tuning t;
    char message[2048] = "";
    char device[32] = "", sram[16];
    char *candidate_process[] = { "/proc/self/exe",
                                  "candidate-process",
                                  "--device",
                                  device,
                                  "--lengths",
                                  (char *)cli_spread_name(a->lengths),
                                  a->where.sram ? "--sram" : NULL,
                                  sram,
                                  NULL };
    fa_site there = *site;
    fa_search_options o = { .limit = a->all ? -1 : a->limit,
                            .seconds = seconds,
                            .threads = a->threads,
                            .again = a->again || a->lengths, /* records do not tell how lengths were drawn */
                            .family = a->family,
                            .strategy = fa_strategy_at((size_t)a->strategy)->name,
                            .seed = a->seed,
                            .patience = PATIENCE,
                            .progress = progress,
                            .user = user };
    snprintf(sram, sizeof sram, "%d", a->where.sram);
    if (site->timed && !a->in_process) {
        snprintf(device, sizeof device, "cuda:%d", fa_context_device(site->ctx)->ordinal);
        o.candidate_process = candidate_process;
    }
    there.lengths = a->lengths;
    fa_status st = fa_search(&there, p, &o, &t);
    if (st != FA_OK)
        snprintf(message, sizeof message, "%s", fa_last_error());
    *result = tune_result(&t, p, site, st, message);
    fa_tuning_free(&t);
    return st == FA_OK ? st : fa_fail(st, "%s", message);
}

const json_t *tune_best(const json_t *r)
{
    const json_t *winner = json_object_get(r, "winner");
    return json_is_object(winner) ? winner : json_object_get(r, "guess");
}

bool tune_tells(const json_t *r)
{
    return json_is_object(tune_best(r)) || json_integer_value(json_object_get(r, "compiled")) > 0;
}

bool tune_goes_on(fa_status st)
{
    return st == FA_OK || st == FA_NO_FIT || st == FA_NO_KERNEL || st == FA_WRONG || st == FA_UNSUPPORTED || st == FA_COMPILE;
}

#define SHARE_LEAST 3 /* seconds: listing, ranking and a first kernel */

double tune_share(double budget, double spent, size_t left, size_t sites)
{
    if (budget <= 0)
        return 0;
    double rest = budget - spent;
    if (rest <= 0)
        return -1;
    sites = sites < left ? sites : left;
    double fair = rest * (double)(sites ? sites : 1) / (double)(left ? left : 1);
    return fmin(rest, fmax(fair, SHARE_LEAST));
}
