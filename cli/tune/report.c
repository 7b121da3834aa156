/* report: what a tuning found, for people, from its documents. */
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include "gen/operation.h"
#include "gen/problem.h"
#include "runtime/context/environment.h"
#include "tune.h"
#include <math.h>
#include <string.h>

#define LABEL 11  /* columns of a line's first word */
#define REASONS 4 /* for which configs were pruned, the commonest */
#define SHOWN 6   /* candidates of a single problem */

static const char *text_at(const json_t *j, const char *name)
{
    const char *s = json_string_value(json_object_get(j, name));
    return s ? s : "";
}

static long long int_at(const json_t *j, const char *name)
{
    return json_integer_value(json_object_get(j, name));
}

static double real_at(const json_t *j, const char *name)
{
    const json_t *v = json_object_get(j, name);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static bool measured(const json_t *r)
{
    return !strcmp(text_at(r, "source"), "measured");
}

/* "winner     ...", the text wrapped after the label, which is emptied. */
static void line(const cli *c, const char *label, fa_text *text)
{
    cli_say(stdout, "%-*s", LABEL, label);
    cli_wrap(stdout, fa_text_cstr(text), LABEL, c->wide ? 1 << 20 : c->columns);
    fa_text_free(text);
}

static void tell_space(const cli *c, const json_t *r)
{
    fa_text t = { 0 };
    fa_text_fmt(&t, "%lld configs: %lld keep the rules, %lld fit the shared memory, %lld the registers; %lld are tried", int_at(r, "space"),
                int_at(r, "sound"), int_at(r, "fits_shared"), int_at(r, "fits"), int_at(r, "kept"));
    if (int_at(r, "seeds"))
        fa_text_fmt(&t, ", %lld of them known from like problems", int_at(r, "seeds"));
    if (int_at(r, "neighbours"))
        fa_text_fmt(&t, ", %lld neighbours of the best", int_at(r, "neighbours"));
    line(c, "space", &t);
    const json_t *list = json_object_get(r, "rejected");
    size_t n = json_array_size(list);
    long long rest = int_at(r, "space") - int_at(r, "fits");
    for (size_t i = 0; i < n && i < REASONS; i++) {
        const json_t *k = json_array_get(list, i);
        fa_text_fmt(&t, "%s%lld %s (%s)", i ? ", " : "", int_at(k, "count"), text_at(k, "constraint"), text_at(k, "why"));
        rest -= int_at(k, "count");
    }
    if (rest > 0)
        fa_text_fmt(&t, ", %lld by others (fagen space tells)", rest);
    if (n)
        line(c, "pruned", &t);
}

static void tell_candidates(const cli *c, const json_t *r)
{
    fa_text t = { 0 };
    const json_t *list = json_object_get(r, "candidates");
    long long failed = int_at(r, "failed"), resumed = int_at(r, "resumed");
    fa_text_fmt(&t, "%lld compiled, ", int_at(r, "compiled"));
    if (measured(r))
        fa_text_fmt(&t, "%lld verified, %lld timed, ", int_at(r, "verified"), int_at(r, "timed"));
    if (resumed)
        fa_text_fmt(&t, "%lld of %lld from records, ", resumed, int_at(r, "kept"));
    fa_text_fmt(&t, "%lld failed", failed);
    if (int_at(r, "lost"))
        fa_text_fmt(&t, ", %lld of them took the process that tried them along", int_at(r, "lost"));
    for (size_t i = 0; failed && i < json_array_size(list); i++) {
        const json_t *k = json_array_get(list, i);
        if (!strcmp(text_at(k, "outcome"), "ok") || !strcmp(text_at(k, "outcome"), "open"))
            continue;
        fa_text_fmt(&t, ", the first by %s: %s", text_at(k, "outcome"), text_at(k, "why"));
        break;
    }
    line(c, "tried", &t);
}

/* "+3.4 %", "-0.03 %", "same" */
static const char *percent(double x, char buf[16])
{
    if (x == 0)
        snprintf(buf, 16, "same");
    else
        snprintf(buf, 16, fabs(x) < 0.0005 ? "%+.2f %%" : "%+.1f %%", 100 * x);
    return buf;
}

static void tell_gain(fa_text *t, const json_t *r)
{
    char buf[16];
    const json_t *base = json_object_get(r, "baseline");
    double gain = real_at(r, "gain");
    if (!isnan(gain) && gain == 0)
        fa_text_fmt(t, "; this is the default (%s)", text_at(r, "baseline_from"));
    else if (!isnan(gain))
        fa_text_fmt(t, "; %s over the default (%s)%s", percent(gain, buf), text_at(r, "baseline_from"),
                    json_is_true(json_object_get(base, "beside")) ? ", measured beside it" : "");
    else if (json_is_object(base) && strcmp(text_at(base, "outcome"), "open"))
        fa_text_fmt(t, measured(r) ? "; the default (%s) did not run here: %s" : "; the default (%s) is no guess: %s",
                    text_at(r, "baseline_from"), text_at(base, "why"));
}

/* What disturbed the winner's time, if anything did, and under what it was taken. */
static void tell_quality(const cli *c, const json_t *w)
{
    fa_text t = { 0 };
    fa_quality q = fa_quality_of(text_at(w, "quality"));
    if (q == FA_QUALITY_UNTOLD)
        return;
    fa_text_str(&t, fa_quality_name(q));
    if (q != FA_QUALITY_STEADY)
        fa_text_fmt(&t, ": %s", fa_quality_about(q));
    if (int_at(w, "clock_mhz"))
        fa_text_fmt(&t, "; %lld MHz, %lld degrees", int_at(w, "clock_mhz"), int_at(w, "temperature"));
    if (real_at(w, "warm") > 0)
        fa_text_fmt(&t, "; %s with a warm L2", cli_show_seconds(real_at(w, "warm")));
    line(c, "quality", &t);
}

/* The form for people of the document's config: that of records, where the templates do not know it or there are none. */
static const char *config_at(const json_t *o, const fa_gen *g, char buf[512])
{
    fa_config config;
    fa_message before;
    const char *text = text_at(o, "config");
    fa_message_keep(&before);
    if (!g || fa_message_settle(&before, fa_gen_config_parse(g, &config, text)) != FA_OK)
        return text;
    fa_gen_config_print(g, buf, 512, &config);
    return buf;
}

/* What a launch runs, beside a guess. */
static void tell_runs(const cli *c, const fa_gen *g, const json_t *runs, const char *guess)
{
    char config[512];
    fa_text t = { 0 };
    if (!json_is_object(runs))
        return;
    if (!strcmp(text_at(runs, "config"), guess))
        fa_text_str(&t, "the guess, until something is measured here");
    else
        fa_text_fmt(&t, "%s, %s: %s", config_at(runs, g, config), text_at(runs, "from"),
                    json_is_true(json_object_get(runs, "decided")) ? "it won in this very bucket, and goes before a guess"
                                                                   : "over the bucket its price is below the guess's");
    line(c, "runs", &t);
}

static void tell_winner(const cli *c, const fa_gen *g, const json_t *r)
{
    const json_t *w = tune_best(r), *second = json_object_get(r, "runner_up");
    fa_text t = { 0 };
    char span[32], buf[16], config[512];
    fa_text_str(&t, config_at(w, g, config));
    line(c, measured(r) ? "winner" : "guess", &t);
    fa_text_str(&t, cli_show_seconds(real_at(w, "seconds")));
    if (measured(r) && real_at(w, "high") > 0)
        fa_text_fmt(&t, " (95 %%: %s to %s, %lld samples)", cli_show_seconds(real_at(w, "low")), cli_show_seconds(real_at(w, "high")),
                    int_at(w, "samples"));
    else if (measured(r))
        fa_text_fmt(&t, " +-%.1f %% (%lld samples)", 100 * real_at(w, "spread"), int_at(w, "samples"));
    if (measured(r))
        fa_text_fmt(&t, ", %.1f TFLOP/s", real_at(w, "tflops"));
    else
        fa_text_fmt(&t, " by the model (%.1f TFLOP/s), never measured", real_at(w, "tflops"));
    tell_gain(&t, r);
    line(c, "", &t);
    tell_runs(c, g, json_object_get(r, "runs"), text_at(w, "config"));
    if (json_is_object(second)) {
        double p = real_at(second, "chance"), behind = real_at(second, "behind");
        fa_text_fmt(&t, "%s: ", config_at(second, g, config));
        if (behind <= 0)
            fa_text_fmt(&t, "%s",
                        measured(r) ? "as fast as can be told; the winner takes less shared memory or fewer registers"
                                    : "as fast, says the model");
        else
            fa_text_fmt(&t, "%s", percent(-behind / (1 + behind), buf));
        if (behind > 0 && p < 0.01)
            fa_text_str(&t, " (p < 0.01)");
        else if (behind > 0 && !isnan(p))
            fa_text_fmt(&t, " (p = %.2f)", p);
        if (int_at(r, "alike") > 1)
            fa_text_fmt(&t, ", and %lld more", int_at(r, "alike") - 1);
        line(c, "runner-up", &t);
    }
    tell_quality(c, w);
    tune_show_span(span, sizeof span, real_at(r, "elapsed"));
    if (json_is_string(json_object_get(r, "saved")))
        fa_text_fmt(&t, "in %s, after %s%s", text_at(r, "saved"), span,
                    json_is_true(json_object_get(r, "out_of_time")) ? ", when the time was up" : "");
    else
        fa_text_fmt(&t, "nowhere: no cache directory can be written (fagen doctor tells why); found after %s", span);
    line(c, "saved", &t);
}

static void tell_table(const cli *c, const fa_gen *g, const json_t *r)
{
    cli_table table;
    char config[512];
    const json_t *list = json_object_get(r, "candidates");
    cli_table_open(&table, "outcome >time >TFLOP/s >regs >spills >smem config");
    for (size_t i = 0; i < json_array_size(list) && i < SHOWN; i++) {
        const json_t *k = json_array_get(list, i);
        bool ran = !strcmp(text_at(k, "outcome"), "ok");
        cli_table_cells(&table, "%s\t%s\t%.1f\t%lld\t%lld\t%lld\t%s", text_at(k, "outcome"),
                        ran ? cli_show_seconds(real_at(k, "seconds")) : "-", real_at(k, "tflops"), int_at(k, "regs"), int_at(k, "spills"),
                        int_at(k, "smem"), config_at(k, g, config));
    }
    putchar('\n');
    cli_table_print(&table, c);
}

void tune_report(const cli *c, const json_t *r, bool alone)
{
    fa_text t = { 0 };
    fa_gen *g = NULL;
    fa_gen_open(&g, fa_environment_read().template_dir);
    cli_heading(c, text_at(r, "problem"));
    if (int_at(r, "space"))
        tell_space(c, r);
    if (int_at(r, "kept"))
        tell_candidates(c, r);
    if (json_is_object(tune_best(r))) {
        tell_winner(c, g, r);
    } else {
        fa_text_fmt(&t, "none: %s", text_at(r, "message"));
        line(c, measured(r) ? "winner" : "guess", &t);
    }
    if (alone && json_array_size(json_object_get(r, "candidates")))
        tell_table(c, g, r);
    fa_gen_close(g);
    putchar('\n');
    fflush(stdout);
}

/* "measured", "a guess", a word of quality that is not good, "in part", or how it failed */
static const char *state_of(const json_t *r)
{
    const char *status = text_at(r, "status"), *quality = text_at(tune_best(r), "quality");
    bool won = json_is_object(tune_best(r));
    if (!strcmp(status, "FA_INTERRUPTED"))
        return won ? "in part" : "no time";
    if (!won)
        return text_at(r, "message");
    if (json_is_true(json_object_get(r, "out_of_time")))
        return "in part";
    return fa_quality_of(quality) > FA_QUALITY_STEADY ? quality : measured(r) ? "measured" : "a guess";
}

static void tell_row(cli_table *t, const fa_problem *p, const json_t *r)
{
    char over[16], next[16];
    const json_t *w = tune_best(r), *second = json_object_get(r, "runner_up");
    bool won = json_is_object(w);
    double gain = real_at(r, "gain"), behind = real_at(second, "behind");
    cli_table_cells(t, "%s", fa_dtype_name(p->dtype));
    cli_table_cells(t, p->d == p->dv ? "%d" : "%d/%d", p->d, p->dv);
    cli_table_cells(t, "%s%s%s", fa_mask_name(p->mask), p->op != FA_FORWARD ? ", " : "",
                    p->op != FA_FORWARD ? fa_operation_find(p->op)->name : "");
    cli_table_cells(t, p->hq == p->hkv ? "%dx%d" : "%dx%d/%d", p->b, p->hq, p->hkv);
    cli_table_cells(t, p->sq == p->sk ? "%d" : "%d:%d", p->sq, p->sk);
    cli_table_cells(t, "%s\t%s\t%s\t%s\t%lld\t%lld\t%s", won ? cli_show_seconds(real_at(w, "seconds")) : "-",
                    cli_show_if(won, "%.1f", real_at(w, "tflops")), isnan(gain) ? "-" : percent(gain, over),
                    isnan(behind) ? "-" : percent(-behind / (1 + behind), next), int_at(r, "kept"), int_at(r, "resumed"),
                    r ? state_of(r) : "not reached");
}

void tune_report_all(const cli *c, const cli_problem_list *l, json_t *const *results, double elapsed)
{
    cli_table t;
    char span[32], brief[80] = "";
    double logs = 0, most = 0;
    size_t won = 0, held = 0, resumed = 0;
    bool guesses = true;
    for (size_t i = 0; i < l->n; i++)
        guesses = guesses && (!results[i] || !measured(results[i]));
    cli_heading(c, guesses ? "Guesses of the model" : "Winners");
    cli_table_open(&t, "type >d mask >heads >length >time >TFLOP/s >over_default >runner-up >tried >on_record source");
    for (size_t i = 0; i < l->n; i++) {
        const json_t *r = results[i];
        double gain = real_at(r, "gain");
        tell_row(&t, &l->row[i].problem, r);
        won += json_is_object(tune_best(r));
        resumed += int_at(r, "resumed") > 0;
        if (isnan(gain))
            continue;
        held++;
        logs += log1p(gain);
        if (gain > most) {
            most = gain;
            tune_problem_brief(brief, sizeof brief, &l->row[i].problem);
        }
    }
    cli_table_print(&t, c);
    tune_show_span(span, sizeof span, elapsed);
    cli_say(stdout, "\n%zu of %zu problems have a %s, after %s", won, l->n, guesses ? "guess" : "winner", span);
    if (resumed)
        cli_say(stdout, ", %zu of them with the help of records", resumed);
    if (held)
        cli_say(stdout, "; %+.1f %% over the default in the geometric mean%s", 100 * expm1(logs / (double)held),
                guesses ? ", says the model" : "");
    if (brief[0])
        cli_say(stdout, ", most %+.1f %%: %s", 100 * most, brief);
    putchar('\n');
}

void tune_run_keep(tune_run *r, size_t i, json_t *result)
{
    r->result[i] = result;
    if (!r->c->json && (r->list.n > 1 || tune_tells(result)))
        tune_report(r->c, result, r->list.n == 1);
}
