/* run: one launch with random data, and what it did. */
#include "cli/options/problem_options.h"
#include "cli/options/usual_shape.h"
#include "cli/session/check.h"
#include "cli/session/config_text.h"
#include "cli/session/session.h"
#include "cli/session/simulated_time.h"
#include "cli/session/simulator.h"
#include "cli/text/progress.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "commands.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "verify/cases/trial.h"
#include "verify/operands/tensors.h"
#include <string.h>

typedef struct run_args {
    cli_common common;
    cli_where where;
    cli_problem_options problem_options;
    cli_sim sim;
    const char *config;
    uint64_t seed;
    int32_t async, schedule, lengths;
    bool counters, check, unchecked;
} run_args;

#define FIELD(f) .at = offsetof(run_args, f)
static const cli_word asyncs[] = { { "eager", SIM_EAGER }, { "lazy", SIM_LAZY }, { NULL, 0 } };
static const cli_word schedules[] = { { "in-order", SIM_IN_ORDER }, { "reversed", SIM_REVERSED }, { "random", SIM_RANDOM }, { NULL, 0 } };
static const cli_option options[] = {
    { .name = "config",
      .letter = 'c',
      .type = &cli_text,
      FIELD(config),
      .value = "CONFIG",
      .help = "run this config (default: what fa_launch chooses)" },
    { .name = "seed", .letter = 's', .type = &cli_seed, FIELD(seed), .value = "N", .help = "of the random data, N(0, 1)", .preset = "1" },
    CLI_LENGTHS_ROW(offsetof(run_args, lengths)),
    { .name = "check", FIELD(check), .help = "hold the result against attention in fp64; exit 4 when it is wrong" },
    { .name = NULL },
};
static const cli_option sim_table[] = {
    { .name = "counters", FIELD(counters), .help = "what the simulator counted: instructions, bytes by tensor, bank conflicts" },
    { .name = "sim-async",
      .type = &cli_choice,
      FIELD(async),
      .value = "WHEN",
      .help = "when asynchronous copies take place",
      .preset = "eager",
      .words = asyncs },
    { .name = "schedule",
      .type = &cli_choice,
      FIELD(schedule),
      .value = "ORDER",
      .help = "in which order warps run",
      .preset = "in-order",
      .words = schedules },
    { .name = "unchecked", FIELD(unchecked), .help = "no race and no uninitialised-read checks: faster" },
    { .name = NULL },
};
static const cli_group groups[] = { CLI_PROBLEM_OPTIONS(run_args),
                                    { "The launch", options, 0 },
                                    CLI_WHERE(run_args),
                                    { "The simulator", sim_table, 0 },
                                    CLI_SIM(run_args),
                                    CLI_COMMON,
                                    { NULL, NULL, 0 } };

static const struct {
    const char *name;
    size_t at;
} fields[] = {
/* clang-format off */
#define ROW(f) { #f, offsetof(sim_counters, f) }
    /* clang-format on */
    ROW(launches),          ROW(blocks),       ROW(warps),        ROW(instructions), ROW(matrix),
    ROW(shuffle),           ROW(special),      ROW(memory),       ROW(control),      ROW(other),
    ROW(barriers),          ROW(global_read),  ROW(global_write), ROW(shared_read),  ROW(shared_write),
    ROW(shared_wavefronts), ROW(shared_ideal), ROW(shared_peak),  ROW(warnings),
#undef ROW
};

static unsigned long long counter(const sim_counters *k, size_t at)
{
    uint64_t v;
    memcpy(&v, (const char *)k + at, sizeof v);
    return v;
}

/* The name of the tensor that an allocation is; "other" for what is none. */
static const char *tensor_name(char title[FA_OPERAND_TITLE], const fa_tensors *t, uint64_t base)
{
    for (int i = 0; i < t->op->n; i++)
        if (t->at[i] && t->at[i] == base)
            return fa_operand_title(title, &t->op->operand[i]);
    return t->scratch.at && t->scratch.at == base ? "workspace" : "other";
}

static json_t *counters_json(const sim_counters *k, const fa_tensors *t)
{
    json_t *j = json_object(), *tensors = json_array();
    char title[FA_OPERAND_TITLE];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set_new(j, fields[i].name, json_integer((json_int_t)counter(k, fields[i].at)));
    for (int i = 0; i < k->tensors; i++)
        json_array_append_new(tensors, json_pack("{s:s,s:I,s:I,s:I}", "tensor", tensor_name(title, t, k->tensor[i].base), "size",
                                                 (json_int_t)k->tensor[i].size, "read", (json_int_t)k->tensor[i].read, "write",
                                                 (json_int_t)k->tensor[i].write));
    json_object_set_new(j, "tensors", tensors);
    return j;
}

static void print_counters(const cli *c, const sim_counters *k, const fa_tensors *t)
{
    cli_table table;
    char title[FA_OPERAND_TITLE];
    putchar('\n');
    cli_heading(c, "Counters of the simulator");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        cli_say(stdout, "  %-18s %16llu\n", fields[i].name, counter(k, fields[i].at));
    cli_say(stdout, "  %-18s %16llu\n\n", "bank_conflicts", (unsigned long long)(k->shared_wavefronts - k->shared_ideal));
    cli_table_open(&table, "tensor >bytes >read >written");
    for (int i = 0; i < k->tensors; i++) {
        cli_table_cells(&table, "%s\t%llu\t%llu\t%llu", tensor_name(title, t, k->tensor[i].base), (unsigned long long)k->tensor[i].size,
                        (unsigned long long)k->tensor[i].read, (unsigned long long)k->tensor[i].write);
    }
    cli_table_print(&table, c);
}

static int answer(cli *c, const run_args *a, const cli_session *s, const fa_tensors *t, const fa_problem *p, const fa_config *config,
                  const char *why, double seconds, const sim_counters *k, const fa_verdict *v)
{
    char text[FA_PROBLEM_TEXT], named[CLI_CONFIG_TEXT];
    int code = a->check && !v->ok ? CLI_EXIT_WRONG : CLI_EXIT_OK;
    fa_problem_print(text, sizeof text, p);
    if (code != CLI_EXIT_OK)
        fprintf(stderr, "fagen run: %s\n", fa_last_error());
    if (c->json)
        return cli_answer(c,
                          json_pack("{s:o,s:s,s:s,s:s,s:o,s:o,s:o}", "device", cli_session_json(s), "problem", text, "config",
                                    cli_config_text(named, config), "explain", why, "seconds", cli_json_number(seconds), "counters",
                                    a->counters ? counters_json(k, t) : json_null(), "check", a->check ? cli_check_json(v) : json_null()),
                          code);
    cli_say(stdout, "%s", why);
    cli_say(stdout, "ran        one launch%s: %s from call to result\n", s->simulated ? " on the simulator" : "",
            cli_show_seconds(seconds));
    if (a->check)
        cli_check_print(stdout, v, false);
    if (a->counters)
        print_counters(c, k, t);
    return code;
}

/* What a launch with the mask window lets see: what is asked for, else as many keys to the left as the problem's bucket has. */
static cli_reach window_of(const run_args *a, const fa_problem *p)
{
    const cli_reach *w = &a->problem_options.window;
    return w->given ? *w : (cli_reach){ .left = p->window ? p->window : 128, .right = 0 };
}

static fa_status check(const run_args *a, const cli_session *s, const fa_problem *p, const fa_config *config, fa_verdict *v)
{
    cli_reach window = window_of(a, p);
    fa_case k;
    const fa_program *program;
    fa_status st = fa_case_of(&k, p, a->seed);
    if (st == FA_OK)
        st = cli_score_read(&a->problem_options.score, &program, &k.scalars);
    if (st == FA_OK && p->mask == FA_MASK_WINDOW) {
        k.window_left = window.left;
        k.window_right = window.right;
    }
    if (st == FA_OK && a->lengths)
        k.ragged.k = a->lengths - 1;
    return st == FA_OK ? fa_verify_case(s->ctx, &k, config, v) : st;
}

/* What fa_launch() ran, which it was asked before. Leaves the message of a check alone. */
static void launched(fa_context *ctx, const fa_problem *p, fa_config *out)
{
    fa_selection selection = { .seconds = 0 };
    fa_source source = { .text = NULL };
    fa_message before;
    fa_message_keep(&before);
    fa_message_settle(&before, fa_select(ctx, p, &selection, &source));
    *out = selection.config;
    fa_source_free(&source);
}

/* The scalars of --score. */
static fa_status give_scalars(fa_tensors *t, const cli_score *score)
{
    const fa_program *program;
    fa_score_scalars scalars;
    fa_status st = cli_score_read(score, &program, &scalars);
    if (st == FA_OK && program)
        fa_score_operands_give(&t->score, &scalars);
    return st;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const run_args *a = args;
    cli_session s = { .ctx = NULL };
    fa_tensors t = { .ctx = NULL };
    fa_ragged drawn = { .args = { .size = 0 } };
    sim_options o = { .async = (sim_async)a->async, .schedule = (sim_schedule)a->schedule, .seed = a->seed, .unchecked = a->unchecked };
    sim_counters k = { 0 };
    fa_verdict v = { .ok = false };
    fa_problem p;
    fa_config config;
    const fa_plan *plan = NULL;
    char why[4096] = "";
    (void)n, (void)words;
    fa_status st = cli_problem_options_read(&a->problem_options, &p);
    if (st == FA_OK)
        st = cli_session_open(&s, c, &a->where);
    if (st == FA_OK && a->counters && !s.simulated)
        st = fa_fail(FA_INVALID, "--counters are the simulator's; accepted with it: --device sim:ARCH");
    if (st == FA_OK)
        st = cli_sim_set(&a->sim, s.simulated, &o);
    if (st != FA_OK) {
        cli_session_close(&s);
        return cli_fail(c, st);
    }
    if (s.simulated)
        cli_shape_of_simulator(&p);
    fa_problem_fill_shape(&p);
    sim_set_options(&o);
    if (s.simulated)
        st = cli_simulated_time(c, &s, &p, 0);
    if (st == FA_OK && a->config)
        st = cli_session_config(&s, &p, a->config, &config);
    if (st == FA_OK && a->config)
        st = fa_plan_make(s.ctx, &p, &config, "named on the command line", &plan);
    else if (st == FA_OK)
        st = fa_prepare(s.ctx, &p);
    if (st == FA_OK && plan && !fa_plan_use(s.ctx, plan))
        st = fa_fail(FA_NOMEM, "no memory for a plan");
    if (st == FA_OK)
        st = fa_ragged_of(&drawn, &p, a->seed, a->lengths);
    if (st == FA_OK)
        st = fa_tensors_open_ragged(&t, s.ctx, &p, &drawn);
    if (st == FA_OK)
        st = give_scalars(&t, &a->problem_options.score);
    if (p.mask == FA_MASK_WINDOW) {
        t.args.window_left = window_of(a, &p).left;
        t.args.window_right = window_of(a, &p).right;
    }
    if (st == FA_OK)
        st = fa_tensors_random(&t, a->seed);
    sim_counters_reset();
    double start = cli_clock();
    if (st == FA_OK)
        st = fa_tensors_launch(&t, plan);
    double seconds = cli_clock() - start;
    sim_counters_get(&k);
    if (st == FA_OK)
        st = fa_explain(s.ctx, NULL, &t.args, why, sizeof why);
    if (st == FA_OK && a->check)
        st = check(a, &s, &p, a->config ? &config : NULL, &v);
    if (c->json && !a->config && (st == FA_OK || st == FA_WRONG))
        launched(s.ctx, &p, &config);
    int code = st == FA_OK || (st == FA_WRONG && a->check) ? answer(c, a, &s, &t, &p, &config, why, seconds, &k, &v) : cli_fail(c, st);
    cli_sim_tell(c, &a->sim);
    fa_tensors_close(&t);
    fa_ragged_close(&drawn);
    cli_session_close(&s);
    return code;
}

const cli_command cli_run = {
    .name = "run",
    .summary = "one launch with random data; on the simulator with its counters",
    .usage = "[problem] [--config CONFIG] [--counters] [--check]",
    .about =
        "Compiles, loads and launches the kernel of a problem once. On the simulator every access is checked, and --counters tells the "
        "instructions by class, the bytes of each tensor that went through memory, and the bank conflicts.",
    .examples = "fagen run -d 64 --causal -n 256 --device sim:sm_80 --counters\nfagen run -d 128 --dtype fp16 --config "
                "'flash_fwd_mma:br=64,bc=64,warps=4' --check\nfagen run -d 64 --counters --json",
    .groups = groups,
    .size = sizeof(run_args),
    .run = run,
};
