/* simulate: the best configs on the simulator, at a small shape of the problem's class, for what it counts. */
#include "cli/session/config_text.h"
#include "cli/session/session.h"
#include "cli/text/progress.h"
#include "explore.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "sim/sim.h"
#include "verify/operands/tensors.h"
#include <stdlib.h>
#include <string.h>

#define KEYS 512 /* a fraction of a second for the largest head_dim; two tiles of the largest B_r */
#define GROUP 8  /* query heads */

/* The same class, little work: one batch, one KV head with its group. */
static fa_problem small_shape(const fa_problem *p)
{
    fa_problem q = *p;
    int32_t group = p->hq / p->hkv;
    q.b = 1;
    q.hkv = 1;
    q.hq = group < GROUP ? group : GROUP;
    q.sq = p->sq < KEYS ? p->sq : KEYS;
    q.sk = p->sk < KEYS ? p->sk : KEYS;
    return q;
}

/* The time that ranks the configs: what was measured, where anything was, else the model's. */
static bool is_ahead(const explore *e, const explore_config *a, const explore_config *b)
{
    bool ta = a->record && explore_is_time(e, a->record), tb = b->record && explore_is_time(e, b->record);
    if (a->rejected != b->rejected)
        return b->rejected;
    if (ta != tb)
        return ta;
    return ta ? explore_is_shorter(a->record, b->record) : a->cost.seconds < b->cost.seconds;
}

static bool same_tile(const explore *e, const fa_config *a, const fa_config *b)
{
    int f = 0;
    if (strcmp(a->family, b->family))
        return false;
    while (f < e->families - 1 && strcmp(e->family[f].name, a->family))
        f++;
    for (int i = 0; i < 2; i++)
        if (e->family[f].axis[i] >= 0 && a->tunable[e->family[f].axis[i]].value != b->tunable[e->family[f].axis[i]].value)
            return false;
    return true;
}

/* The best of each of the n best tiles. Returns how many. */
static int pick(const explore *e, int n, size_t *picked)
{
    int at = 0;
    for (; at < n; at++) {
        const explore_config *best = NULL;
        for (size_t i = 0; i < e->n; i++) {
            const explore_config *k = &e->config[i];
            bool taken = false;
            for (int t = 0; t < at && !taken; t++)
                taken = same_tile(e, &e->config[picked[t]].point.config, &k->point.config);
            if (!taken && (!best || is_ahead(e, k, best)))
                best = k;
        }
        if (!best)
            break;
        picked[at] = (size_t)(best - e->config);
    }
    return at;
}

/* Bytes of the tensors: what a scheduler keeps in words of its own is not the algorithm's. */
static void take_counters(explore_counters *out, const sim_counters *k, const fa_tensors *t)
{
    *out = (explore_counters){ .conflicts = (double)(k->shared_wavefronts - k->shared_ideal),
                               .wavefronts = (double)k->shared_wavefronts,
                               .instructions = (double)k->instructions,
                               .shared_peak = (double)k->shared_peak };
    for (int i = 0; i < k->tensors; i++)
        for (int j = 0; j < t->op->n; j++)
            if (t->at[j] && k->tensor[i].base == t->at[j]) {
                out->read += (double)k->tensor[i].read;
                out->written += (double)k->tensor[i].write;
            }
}

static fa_status run_one(const explore *e, cli_session *s, const fa_config *config, explore_counters *out)
{
    fa_tensors t = { .ctx = NULL };
    sim_counters k;
    fa_cost cost;
    const fa_plan *plan;
    const fa_problem *p = &e->run.shape;
    fa_status st = fa_plan_make(s->ctx, p, config, "explored", &plan);
    if (st == FA_OK)
        st = fa_tensors_open(&t, s->ctx, p);
    if (st == FA_OK)
        st = fa_tensors_random(&t, 1);
    sim_counters_reset();
    if (st == FA_OK)
        st = fa_tensors_launch(&t, plan);
    sim_counters_get(&k);
    if (st == FA_OK)
        take_counters(out, &k, &t);
    if (st == FA_OK)
        st = fa_model_cost(e->gen, p, config, e->arch, 0, &cost);
    if (st == FA_OK) /* the model leaves LSE out, the launch writes it */
        out->modelled = fa_traffic_total(&cost.traffic) + 4.0 * p->b * p->hq * p->sq;
    fa_tensors_close(&t);
    return st;
}

/* The first line of this thread's message. */
static void tell_why(explore *e, const char *what)
{
    const char *message = fa_last_error();
    snprintf(e->run.why, sizeof e->run.why, "%s%.*s", what, (int)strcspn(message, "\n"), message);
}

void explore_simulate(explore *e, const cli *c, int n)
{
    char device[32];
    cli quiet = *c;
    cli_session s = { .ctx = NULL };
    cli_progress bar = { .c = c };
    sim_options before, options = { .async = SIM_EAGER };
    size_t *picked = calloc((size_t)(n > 0 ? n : 1), sizeof *picked);
    e->run.shape = small_shape(&e->problem);
    e->counters = calloc((size_t)(n > 0 ? n : 1), sizeof *e->counters);
    if (n < 1 || !picked || !e->counters) {
        snprintf(e->run.why, sizeof e->run.why, "%s", n < 1 ? "not asked for: --simulate N" : "no memory");
        free(picked);
        return;
    }
    quiet.quiet = true;
    snprintf(device, sizeof device, "sim:%s", e->arch->name);
    fa_status st = cli_session_open(&s, &quiet, &(cli_where){ .device = device, .sram = e->budget < e->arch->smem_block ? e->budget : 0 });
    if (st != FA_OK)
        tell_why(e, "");
    sim_get_options(&before);
    sim_set_options(&options);
    n = st == FA_OK ? pick(e, n, picked) : 0;
    for (int i = 0; i < n && !cli_interrupted(); i++) {
        char config[512], line[600];
        explore_config *k = &e->config[picked[i]];
        cli_config_text(config, &k->point.config);
        snprintf(line, sizeof line, "simulate: %d of %d  %s", i + 1, n, config);
        cli_progress_tell(&bar, line, (double)i / n);
        if (run_one(e, &s, &k->point.config, &e->counters[e->simulated]) == FA_OK)
            k->counters = &e->counters[e->simulated++];
        else
            tell_why(e, "");
    }
    cli_progress_end(&bar);
    if (n && cli_interrupted())
        snprintf(e->run.why, sizeof e->run.why, "interrupted");
    sim_set_options(&before);
    cli_session_close(&s);
    free(picked);
}
