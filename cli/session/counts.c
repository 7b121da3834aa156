/* counts: one launch each, the simulator's counters between. */
#include "counts.h"
#include "config_text.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "sim/sim.h"
#include "verify/operands/tensors.h"

static fa_status count(fa_context *ctx, const fa_problem *p, int32_t lengths, const fa_plan *plan, sim_counters *out)
{
    fa_tensors t = { .ctx = NULL };
    fa_ragged drawn;
    fa_status st = fa_ragged_of(&drawn, p, 1, lengths);
    if (st == FA_OK)
        st = fa_tensors_open_ragged(&t, ctx, p, &drawn);
    fa_ragged_close(&drawn);
    if (st == FA_OK)
        st = fa_tensors_random(&t, 1);
    sim_counters_reset();
    if (st == FA_OK)
        st = fa_tensors_launch(&t, plan);
    sim_counters_get(out);
    fa_tensors_close(&t);
    return st;
}

static void row(cli_table *t, const char *name, const sim_counters *k, const char *text)
{
    cli_table_cells(t, "%s\t%llu\t%llu\t%llu\t%s\t%s\t%llu\t%llu\t%s", name, (unsigned long long)k->instructions,
                    (unsigned long long)k->matrix, (unsigned long long)k->special, cli_show_bytes((double)k->global_read),
                    cli_show_bytes((double)k->global_write), (unsigned long long)(k->shared_wavefronts - k->shared_ideal),
                    (unsigned long long)k->blocks, text);
}

static json_t *numbers(const sim_counters *k)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "instructions", (json_int_t)k->instructions, "matrix", (json_int_t)k->matrix,
                     "special", (json_int_t)k->special, "global_read", (json_int_t)k->global_read, "global_write",
                     (json_int_t)k->global_write, "bank_conflicts", (json_int_t)(k->shared_wavefronts - k->shared_ideal), "shared_peak",
                     (json_int_t)k->shared_peak, "blocks", (json_int_t)k->blocks);
}

fa_status cli_counts_add(fa_context *ctx, fa_gen *g, const fa_problem *p, int32_t lengths, const cli_systems *systems, cli_table *t,
                         json_t *list)
{
    char text[FA_PROBLEM_TEXT], config[512], why[400];
    sim_counters ours, theirs;
    const fa_plan *plan = NULL;
    fa_selection selection;
    fa_problem_print(text, sizeof text, p);
    fa_status st = fa_select(ctx, p, &selection, NULL);
    if (st == FA_OK)
        st = count(ctx, p, lengths, NULL, &ours);
    if (st != FA_OK)
        return st;
    cli_config_text(config, &selection.config);
    snprintf(why, sizeof why, "%s: %s", selection.where, selection.why);
    row(t, "fagen", &ours, text);
    json_t *others = json_object();
    for (int i = 0; i < systems->n && st != FA_INTERRUPTED; i++)
        if (cli_systems_plan(ctx, g, p, systems->name[i], &plan) && (st = count(ctx, p, lengths, plan, &theirs)) == FA_OK) {
            row(t, systems->name[i], &theirs, text);
            json_object_set_new(others, systems->name[i], numbers(&theirs));
        }
    json_array_append_new(
        list, json_pack("{s:s,s:s,s:s,s:o,s:o}", "problem", text, "config", config, "why", why, "ours", numbers(&ours), "systems", others));
    return st == FA_INTERRUPTED ? st : FA_OK;
}
