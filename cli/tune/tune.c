/* tune: the search, over one or more problems, on devices or for an arch that is not here. */
#include "tune.h"
#include "cli/text/progress.h"
#include "devices.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "runtime/context/environment.h"
#include <stdlib.h>
#include <string.h>

#define FIELD(f) .at = offsetof(tune_args, f)
static const cli_option grid_options[] = {
    { .name = "workload",
      .type = &cli_text,
      FIELD(workload),
      .value = "FILE",
      .help = "what programs launched, as FAGEN_WORKLOAD has them write it: the most time first" },
    { .name = "list-grids", FIELD(list_grids), .help = "tells the named sets of problems; with --grid NAME the problems of one" },
    { .name = NULL },
};
static const cli_word strategies[] = {
    { "halving", 0 }, { "exhaustive", 1 }, { "model", 2 }, { "random", 3 }, { NULL, 0 }
}; /* as in autotune/strategy/strategy.c */
/* clang-format off */
static const cli_option search_options[] = {
    { .name = "arch", .letter = 'a', .type = &cli_text, FIELD(arch), .value = "ARCH",
      .help = "the chip to tune for; one that is not here is compiled for and ranked by the model" },
    { .name = "budget", .type = &cli_seconds, FIELD(budget), .value = "TIME",
      .help = "time for the whole command, as 60s or 10m, in fair shares for its problems; what one leaves goes to the next; up before "
              "anything had a winner it exits 130 (default: none)" },
    { .name = "limit", .letter = 'l', .type = &cli_int, FIELD(limit), .value = "N",
      .help = "listed candidates that are tried; seeds and neighbours of the best come on top (default: 48; exhaustive: all)",
      .min = 1, .max = 1000000 },
    { .name = "all", FIELD(all), .help = "every config that fits is a candidate" },
    { .name = "strategy", .type = &cli_choice, FIELD(strategy), .value = "NAME", .help = "which configs are tried", .preset = "halving",
      .words = strategies },
    { .name = "seed", .type = &cli_seed, FIELD(seed), .value = "N", .help = "of --strategy random", .preset = "0" },
    { .name = "in-process", FIELD(in_process), .help = "no process of its own for candidates: one that hangs or faults ends the tuning" },
    { .name = "again", FIELD(again), .help = "measure again what is on record" },
    { .name = "lengths", .type = &cli_choice, FIELD(lengths), .value = "HOW",
      .help = "of caches with the feature lengths, up to sk (default uniform); what is on record is measured again, as records do not tell", .words = cli_spreads },
    { .name = "family", .type = &cli_text, FIELD(family), .value = "NAME", .help = "only this kernel family" },
    { .name = "threads", .letter = 'j', .type = &cli_int, FIELD(threads), .value = "N",
      .help = "compile threads (default: one per core, at most 16)",
      .min = 1, .max = 64 },
    { .name = "devices", .type = &cli_text, FIELD(devices), .value = "LIST",
      .help = "devices that share the problems, a process each: all (the GPUs like the first), or a list such as 0,1,3 (default: one)" },
    { .name = "abreast", .type = &cli_int, FIELD(abreast), .value = "N",
      .help = "problems that share a device: one is measured while others are compiled (default: 2 on a GPU, 1 elsewhere)", .min = 1,
      .max = FA_DEVICE_LOCK_MEMBERS },
    { .name = "process-on", .type = &cli_text, FIELD(on), .value = "DEVICE" },
    { .name = "device-lock", .type = &cli_text, FIELD(device_lock), .value = "FD:MEMBER" },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { CLI_PROBLEM_LISTS(tune_args, "The problems: every combination of the lists (default: " CLI_SHAPE_OF_GPU(
                                                                     CLI_SHAPE_TEXT) ")"),
                                    { "Sets of problems", grid_options, 0 },
                                    { "The search", search_options, 0 },
                                    CLI_DEVICE(tune_args),
                                    CLI_COMMON,
                                    { NULL, NULL, 0 } };

/* The devices that are named; none: the one of --device. With a grid, a note where more could share the work. */
static fa_status devices_of(const cli *c, const tune_args *a, cli_devices *out)
{
    *out = (cli_devices){ .n = 0 };
    if (a->devices && a->where.device)
        return fa_fail(FA_INVALID, "--devices and --device are two ways to say one thing; accepted: one of them");
    if (a->devices) {
        fa_status st = cli_devices_read(out, a->devices);
        if (st == FA_OK && out->left_out[0])
            cli_note(c, "of another chip, left out: %s", out->left_out);
        return st;
    }
    if (a->lists.grid && !a->where.device && !a->arch) {
        size_t n = cli_devices_alike();
        if (n > 1)
            cli_note(c, "one of %zu GPUs works; --devices all shares the problems among them", n);
    }
    return FA_OK;
}

/* The GPU that one process would work on, as --device, FAGEN_DEVICE and --arch say: where there are several problems they go abreast. */
static bool gpu_of(const tune_args *a, cli_devices *out)
{
    const char *set = fa_environment_read().device, *name = a->where.device ? a->where.device : set && set[0] ? set : "cuda";
    const fa_arch *arch = a->arch ? fa_arch_find(a->arch) : NULL;
    return (!a->arch || arch) && cli_devices_gpu(out, name, arch ? arch->name : NULL);
}

static fa_status status_named(const char *name)
{
    for (int k = FA_OK; k > FA_OK - 64; k--)
        if (!strcmp(fa_status_name((fa_status)k), name))
            return (fa_status)k;
    return FA_INTERNAL;
}

/* The whole command's status from those of its problems; tells in the message how many failed. */
static fa_status status_of(const tune_run *r, fa_status st)
{
    size_t done = 0, failed = 0, won = 0;
    const char *what = r->timed ? "winner" : "guess";
    const json_t *first = NULL;
    char message[1024];
    for (size_t i = 0; i < r->list.n; i++) {
        const char *status = json_string_value(json_object_get(r->result[i], "status"));
        bool winner = json_is_object(tune_best(r->result[i]));
        done += r->result[i] != NULL;
        won += winner;
        failed += status && !winner;
        first = status && !winner && !first ? r->result[i] : first;
    }
    if (r->list.n == 1 || (st != FA_OK && st != FA_INTERRUPTED && tune_goes_on(st) == false))
        return st;
    if (cli_interrupted())
        return fa_fail(FA_INTERRUPTED,
                       "stopped at %zu of %zu problems, %zu have a %s; what was found is kept, and the same command goes on from there",
                       done, r->list.n, won, what);
    if (!won && done < r->list.n)
        return fa_fail(FA_INTERRUPTED, "the time was up before any problem had a %s", what);
    if (done < r->list.n)
        cli_note(r->c, "the time was up at %zu of %zu problems; the same command goes on from there", done, r->list.n);
    if (!first)
        return FA_OK;
    const char *why = json_string_value(json_object_get(first, "message"));
    snprintf(message, sizeof message, "%s: %s", json_string_value(json_object_get(first, "problem")), why ? why : "");
    st = status_named(json_string_value(json_object_get(first, "status")));
    if (st == FA_INTERRUPTED) /* its share of the time was too short: the others count */
        return FA_OK;
    return fa_fail(st, "%zu of %zu problems have no %s; the first, %s", failed, r->list.n, what, message);
}

/* No candidate ran, or is a guess: nothing that this machine lacks. */
static int exit_of(fa_status st)
{
    return st == FA_NO_KERNEL ? CLI_EXIT_NO_CANDIDATE : cli_exit_of(st);
}

static int answer(tune_run *r, fa_status st)
{
    cli *c = r->c;
    char text[FA_PROBLEM_TEXT];
    json_t *list = json_array(), *open = json_array();
    for (size_t i = 0; i < r->list.n; i++) {
        fa_problem_print(text, sizeof text, &r->list.row[i].problem);
        if (r->result[i])
            json_array_append(list, r->result[i]);
        else
            json_array_append_new(open, json_string(text));
    }
    if (st != FA_OK) {
        c->answered = true;
        cli_fail_with(c, st, exit_of(st));
    }
    return cli_answer(c,
                      json_pack("{s:s,s:b,s:s,s:s,s:o,s:o,s:o?,s:o,s:o}", "arch", r->arch, "timed", r->timed, "status", fa_status_name(st),
                                "message", st == FA_OK ? "" : fa_last_error(), "elapsed", cli_json_number(cli_clock() - r->start), "budget",
                                r->a->budget > 0 ? cli_json_number(r->a->budget) : json_null(), "devices", json_incref(r->devices),
                                "problems", list, "not_reached", open),
                      exit_of(st));
}

static int conclude(tune_run *r, fa_status st)
{
    size_t done = 0, telling = 0;
    for (size_t i = 0; i < r->list.n; i++) {
        done += r->result[i] != NULL;
        telling += tune_tells(r->result[i]);
    }
    if (done && !r->c->json && r->list.n > 1)
        tune_report_all(r->c, &r->list, r->result, cli_clock() - r->start);
    fflush(stdout);
    st = status_of(r, st);
    if (r->c->json && (st == FA_OK || st == FA_INTERRUPTED || telling))
        return answer(r, st);
    return st == FA_OK ? CLI_EXIT_OK : cli_fail_with(r->c, st, exit_of(st));
}

static int run(cli *c, const void *args, int n, char **words)
{
    const tune_args *a = args;
    tune_run r = { .c = c, .a = a, .start = cli_clock() };
    cli_devices devices;
    const char *names[CLI_DEVICES_MOST];
    (void)n, (void)words;
    if (a->list_grids)
        return tune_list_grids(c, a);
    if (a->on)
        return tune_process(c, a);
    cli_interrupt_watch();
    fa_status st = tune_list(c, &r.list, a);
    if (st == FA_OK)
        st = devices_of(c, a, &devices);
    if (st == FA_OK && !(r.result = calloc(r.list.n, sizeof *r.result)))
        st = fa_fail(FA_NOMEM, "no memory for %zu results", r.list.n);
    if (st != FA_OK) {
        cli_problem_list_free(&r.list);
        return cli_fail(c, st);
    }
    if (!devices.n && r.list.n > 1 && a->abreast != 1 && (a->abreast || !a->in_process) && !gpu_of(a, &devices) && a->abreast)
        cli_note(c, "--abreast is for devices: there is no such GPU here, and --devices names none; one problem after the other");
    for (size_t i = 0; i < devices.n; i++)
        names[i] = devices.name[i];
    cli_interrupt_say(c->quiet ? NULL : "\nfagen tune: stopping; everything found so far is kept. Once more ends it at once.\n");
    /* one that is named gets a process of its own too, so that its death does not end the others' problems */
    st = devices.n > 1 || (devices.n == 1 && r.list.n > 1) ? tune_fleet(&r, names, devices.n) : tune_alone(&r, devices.n ? names[0] : NULL);
    cli_interrupt_say(NULL);
    int code = conclude(&r, st);
    for (size_t i = 0; i < r.list.n; i++)
        json_decref(r.result[i]);
    json_decref(r.devices);
    free(r.result);
    cli_problem_list_free(&r.list);
    return code;
}

const cli_command cli_tune = {
    .name = "tune",
    .summary = "finds the fastest config by measuring, and remembers it",
    .usage = "[-d LIST] [--dtype LIST] [--mask LIST | --causal] [-n LIST] | --grid NAME | --workload FILE  [--budget TIME] [--arch ARCH | "
             "--devices LIST]",
    .about = "Prunes the space by the hard constraints and the model, compiles, verifies and times what is left, and records every outcome "
             "as it comes: "
             "Ctrl-C keeps all results, and the same command goes on from there. What runs untuned is measured beside the others, first. "
             "For a chip that "
             "is not here, candidates are compiled, gated on registers and spills, and ranked by the model: a guess, which runs "
             "where nothing is measured and its price is below those of winners that ship.",
    .examples = "fagen tune --grid default --budget 10m\nfagen tune --grid llm-prefill -d 128 --devices all\n"
                "fagen tune --grid training --op backward -d 128 --budget 5m\n"
                "FAGEN_WORKLOAD=day.jsonl ./server; fagen tune --workload day.jsonl --budget 30m\n"
                "fagen tune -d 64,128 --dtype bf16 --causal --budget 60s\nfagen tune --arch sm_80 -d 64 --limit 8\n"
                "fagen tune -d 128 -n 1024,16384 --heads 32 --kv-heads 8 --json",
    .groups = groups,
    .size = sizeof(tune_args),
    .run = run,
};
