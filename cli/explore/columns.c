/* columns: the one table that CSV, JSON and the page are made from. */
#include "cli/session/config_text.h"
#include "explore.h"
#include "gen/problem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct view {
    const explore *e;
    const explore_config *k;
} view;

static explore_cell text(const char *s)
{
    return (explore_cell){ .is_text = true, .text = s, .none = !s[0] };
}

static explore_cell number(double x)
{
    return (explore_cell){ .number = x, .none = !isfinite(x) };
}

static const fa_record *record(const view *v)
{
    return v->k->record;
}

/* The measured time, or nothing. */
static double measured(const view *v)
{
    const fa_record *r = record(v);
    return r && explore_is_time(v->e, r) ? r->seconds : NAN;
}

#define CELL(name, made)                    \
    static explore_cell name(const view *v) \
    {                                       \
        return made;                        \
    }
#define COST(name, made)                    \
    static explore_cell name(const view *v) \
    {                                       \
        const fa_cost *c = &v->k->cost;     \
        return number(made);                \
    }
#define RECORD(name, made)                  \
    static explore_cell name(const view *v) \
    {                                       \
        const fa_record *r = record(v);     \
        return made;                        \
    }
#define COUNT(name, made)                           \
    static explore_cell name(const view *v)         \
    {                                               \
        const explore_counters *n = v->k->counters; \
        return number(n ? (made) : NAN);            \
    }
COST(model_us, c->seconds * 1e6)
COST(model_tflops, v->e->flops / c->seconds / 1e12)
COST(matrix_us, c->t_matrix * 1e6)
COST(exp_us, c->t_exp * 1e6)
COST(issue_us, c->t_issue * 1e6)
COST(smem_us, c->t_smem * 1e6)
COST(l2_us, c->t_l2 * 1e6)
COST(hbm_us, c->t_hbm * 1e6)
CELL(bound, text(v->k->cost.bound))
CELL(smem, number(v->k->point.smem))
CELL(regs, number(v->k->point.regs))
CELL(threads, number(v->k->point.threads))
CELL(blocks_sm, number(v->k->cost.blocks_sm))
CELL(limiter, text(v->k->cost.limiter))
COST(occupancy, c->occupancy)
COST(grid, (double)c->grid)
COST(waves, c->waves)
COST(bytes, c->bytes)
COST(hbm_bytes, round(c->t_hbm * v->e->arch->hbm_gbs * 1e9))
CELL(order, number(v->k->order == SIZE_MAX ? NAN : (double)v->k->order))
RECORD(source, text(!r ? "" : r->how == FA_MEASURED ? "measured" : "model"))
RECORD(verified, text(!r || r->how != FA_MEASURED ? "" : r->verified ? "yes" : "no"))
RECORD(outcome, text(r ? fa_outcome_name(r->outcome) : ""))
CELL(measured_us, number(measured(v) * 1e6))
CELL(measured_tflops, number(v->e->flops / measured(v) / 1e12))
static double if_told(const view *v, double x)
{
    return !isnan(measured(v)) && x > 0 ? x : NAN;
}

RECORD(low_us, number(r ? if_told(v, r->low) * 1e6 : NAN))
RECORD(high_us, number(r ? if_told(v, r->high) * 1e6 : NAN))
RECORD(warm_us, number(r ? if_told(v, r->warm) * 1e6 : NAN))
RECORD(quality, text(r && !isnan(measured(v)) ? fa_quality_name(r->quality) : ""))
RECORD(clock_mhz, number(r ? if_told(v, r->clock_mhz) : NAN))
RECORD(temperature, number(r ? if_told(v, r->temperature) : NAN))
RECORD(spread, number(r && r->how == FA_MEASURED && r->outcome == FA_RAN ? r->spread : NAN))
RECORD(samples, number(r && r->how == FA_MEASURED ? r->count : NAN))
RECORD(compiled_regs, number(r && r->regs > 0 ? r->regs : NAN))
RECORD(spills, number(r && r->regs > 0 ? r->spills : NAN))
RECORD(kernel, text(!r ? "" : v->k->older ? "older" : "same"))
RECORD(rejected, text(r && v->k->rejected ? "yes" : ""))
RECORD(date, text(r ? r->date : ""))
RECORD(why, text(r ? r->why : ""))
COUNT(sim_read, n->read)
COUNT(sim_written, n->written)
COUNT(sim_modelled, n->modelled)
COUNT(conflicts, n->conflicts)
COUNT(wavefronts, n->wavefronts)
COUNT(instructions, n->instructions)
COUNT(shared_peak, n->shared_peak)

static const struct {
    explore_column column;
    explore_cell (*of)(const view *v);
} columns[] = {
#define C EXPLORE_OF_CONFIG
#define R EXPLORE_OF_RECORD
#define S EXPLORE_OF_COUNTERS
    { { "model_us", "time by the model, us", C, 4 }, model_us },
    { { "model_tflops", "TFLOP/s by the model", C, 3 }, model_tflops },
    { { "bound", "busiest unit", C, -1 }, bound },
    { { "matrix_us", "matrix units, us", C, 3 }, matrix_us },
    { { "exp_us", "exponentials, us", C, 3 }, exp_us },
    { { "issue_us", "issue slots, us", C, 3 }, issue_us },
    { { "smem_us", "shared memory, us", C, 3 }, smem_us },
    { { "l2_us", "L2, us", C, 3 }, l2_us },
    { { "hbm_us", "HBM, us", C, 3 }, hbm_us },
    { { "smem", "shared memory, bytes", C, 0 }, smem },
    { { "regs", "registers per thread, estimated", C, 0 }, regs },
    { { "threads", "threads per block", C, 0 }, threads },
    { { "blocks_sm", "blocks per SM", C, 0 }, blocks_sm },
    { { "limiter", "what limits them", C, -1 }, limiter },
    { { "occupancy", "occupancy", C, 4 }, occupancy },
    { { "grid", "blocks of the launch", C, 0 }, grid },
    { { "waves", "waves", C, 3 }, waves },
    { { "bytes", "bytes asked of global memory", C, 0 }, bytes },
    { { "hbm_bytes", "bytes from HBM", C, 0 }, hbm_bytes },
    { { "order", "place in the space", C, 0 }, order },
    { { "source", "kind of the record", R, -1 }, source },
    { { "outcome", "outcome", R, -1 }, outcome },
    { { "verified", "whether it was verified", R, -1 }, verified },
    { { "measured_us", "measured time, us", R, 4 }, measured_us },
    { { "measured_tflops", "measured TFLOP/s", R, 3 }, measured_tflops },
    { { "low_us", "95 % interval of the median from, us", R, 4 }, low_us },
    { { "high_us", "to, us", R, 4 }, high_us },
    { { "warm_us", "measured time with a warm L2, us", R, 4 }, warm_us },
    { { "spread", "relative spread", R, 5 }, spread },
    { { "samples", "samples", R, 0 }, samples },
    { { "quality", "how far the time is to be trusted", R, -1 }, quality },
    { { "clock_mhz", "clock of the SMs, MHz", R, 0 }, clock_mhz },
    { { "temperature", "of the chip, degrees Celsius", R, 0 }, temperature },
    { { "compiled_regs", "registers per thread, compiled", R, 0 }, compiled_regs },
    { { "spills", "spilled bytes", R, 0 }, spills },
    { { "kernel", "its text and today's", R, -1 }, kernel },
    { { "rejected", "whether the record rejects it", R, -1 }, rejected },
    { { "date", "date of the record", R, -1 }, date },
    { { "why", "what the record says", R, -1 }, why },
    { { "sim_read", "bytes read, counted", S, 0 }, sim_read },
    { { "sim_written", "bytes written, counted", S, 0 }, sim_written },
    { { "sim_modelled", "bytes by the model there", S, 0 }, sim_modelled },
    { { "conflicts", "bank conflicts, counted", S, 0 }, conflicts },
    { { "wavefronts", "passes of shared memory, counted", S, 0 }, wavefronts },
    { { "instructions", "warp instructions, counted", S, 0 }, instructions },
    { { "shared_peak", "highest byte of shared memory, counted", S, 0 }, shared_peak },
};
#define COLUMNS (sizeof columns / sizeof *columns)

const explore_column *explore_column_at(size_t i)
{
    return i < COLUMNS ? &columns[i].column : NULL;
}

static bool has_part(const explore_config *k, explore_part part)
{
    return part == EXPLORE_OF_CONFIG || (part == EXPLORE_OF_RECORD ? k->record != NULL : k->counters != NULL);
}

explore_cell explore_cell_of(const explore *e, const explore_config *k, size_t column)
{
    view v = { e, k };
    if (!has_part(k, columns[column].column.part))
        return (explore_cell){ .none = true };
    explore_cell c = columns[column].of(&v);
    if (!c.is_text && !c.none) { /* the same digits in every form */
        char digits[64];
        snprintf(digits, sizeof digits, "%.*f", columns[column].column.decimals, c.number);
        c.number = strtod(digits, NULL);
    }
    return c;
}

static void add_text(fa_text *out, const char *s)
{
    if (!s[strcspn(s, ",\"\r\n")]) {
        fa_text_str(out, s);
        return;
    }
    fa_text_str(out, "\"");
    for (; *s; s++) {
        if (*s == '"')
            fa_text_str(out, "\"");
        fa_text_add(out, s, 1);
    }
    fa_text_str(out, "\"");
}

void explore_csv(const explore *e, fa_text *out)
{
    fa_text_str(out, "config");
    for (size_t i = 0; i < COLUMNS; i++)
        fa_text_fmt(out, ",%s", columns[i].column.name);
    fa_text_str(out, "\n");
    for (size_t r = 0; r < e->n; r++) {
        char config[512];
        cli_config_text(config, &e->config[r].point.config);
        add_text(out, config);
        for (size_t i = 0; i < COLUMNS; i++) {
            explore_cell c = explore_cell_of(e, &e->config[r], i);
            fa_text_str(out, ",");
            if (c.none)
                continue;
            if (c.is_text)
                add_text(out, c.text);
            else
                fa_text_fmt(out, "%.*f", columns[i].column.decimals, c.number);
        }
        fa_text_str(out, "\n");
    }
}
