/* tune: the search, over one or more problems, on a device or for an arch that is not here. */
#include "ask.h"
#include "autotune/search.h"
#include "cache/store.h"
#include "command.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "progress.h"
#include "runtime/environment.h"
#include "session.h"
#include "table.h"
#include <stdlib.h>
#include <string.h>

typedef struct tune_args {
    cli_common common;
    cli_where where;
    cli_list d, dtype, mask, n;
    int32_t dv, b, hq, hkv, limit, threads;
    double budget;
    const char *arch, *family, *problem;
    bool causal, all, again;
} tune_args;

#define FIELD(f) .at = offsetof(tune_args, f)
static const cli_option problem_options[] = {
    { .name = "head-dim", .letter = 'd', .kind = &cli_ints, FIELD(d), .value = "LIST", .help = "head_dims, as 64,128 (default 128)", .min = 1,
      .max = FA_MAX_HEAD_DIM },
    { .name = "dv", .kind = &cli_int, FIELD(dv), .value = "D", .help = "head_dim of V and O (default: as Q)", .min = 1, .max = FA_MAX_HEAD_DIM },
    { .name = "dtype", .letter = 't', .kind = &cli_choices, FIELD(dtype), .value = "LIST", .help = "types (default bf16)", .words = cli_dtypes },
    { .name = "mask", .kind = &cli_choices, FIELD(mask), .value = "LIST", .help = "masks (default none)", .words = cli_masks },
    { .name = "causal", FIELD(causal), .help = "the same as --mask causal" },
    { .name = "n", .letter = 'n', .kind = &cli_ints, FIELD(n), .value = "LIST", .help = "lengths (default 4096)", .min = 1, .max = FA_MAX_LENGTH },
    { .name = "batch", .letter = 'b', .kind = &cli_int, FIELD(b), .value = "B", .help = "batch (default 1)", .min = 1, .max = 1 << 20 },
    { .name = "heads", .letter = 'H', .kind = &cli_int, FIELD(hq), .value = "H", .help = "query heads (default 16)", .min = 1, .max = 1 << 16 },
    { .name = "kv-heads", .kind = &cli_int, FIELD(hkv), .value = "H", .help = "key/value heads (default: as query heads)", .min = 1, .max = 1 << 16 },
    { .name = "problem", .kind = &cli_text, FIELD(problem), .value = "TEXT", .help = "one problem in one text, instead of the lists" },
    { .name = NULL },
};
static const cli_option search_options[] = {
    { .name = "arch", .letter = 'a', .kind = &cli_text, FIELD(arch), .value = "ARCH",
      .help = "the chip to tune for; one that is not here is compiled for and ranked by the model" },
    { .name = "budget", .kind = &cli_seconds, FIELD(budget), .value = "TIME", .help = "time for each problem, as 60s or 2m (default: none)" },
    { .name = "limit", .letter = 'l', .kind = &cli_int, FIELD(limit), .value = "N", .help = "candidates kept after the model's ranking",
      .preset = "48", .min = 1, .max = 1000000 },
    { .name = "all", FIELD(all), .help = "every config that fits is a candidate" },
    { .name = "again", FIELD(again), .help = "measure anew what is on record" },
    { .name = "family", .kind = &cli_text, FIELD(family), .value = "NAME", .help = "only this kernel family" },
    { .name = "threads", .letter = 'j', .kind = &cli_int, FIELD(threads), .value = "N", .help = "compile threads (default: one per core, at most 8)",
      .min = 1, .max = 64 },
    { .name = NULL },
};
static const cli_group groups[] = { { "The problems: every combination of the lists", problem_options, 0 },
                                    { "The search", search_options, 0 },
                                    CLI_WHERE(tune_args),
                                    CLI_COMMON,
                                    { NULL, NULL, 0 } };

typedef struct tuner {
    cli *c;
    const tune_args *a;
    fa_site site;
    cli_session session;
    cli_progress bar;
    json_t *list;
} tuner;

static int on_progress(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    tuner *u = user;
    char line[700], config[400] = "", best[64] = "";
    if (latest)
        fa_config_print(config, sizeof config, &latest->config);
    if (t->winner && t->winner->tflops > 0)
        snprintf(best, sizeof best, ", best %.1f TFLOP/s", t->winner->tflops);
    else if (t->winner)
        snprintf(best, sizeof best, ", best %s", cli_show_seconds(t->winner->seconds));
    snprintf(line, sizeof line, "%s: %zu compiled, %zu timed of %zu%s  %s", stage, t->counts.compiled, t->counts.timed, t->counts.kept, best, config);
    cli_progress_tell(&u->bar, line, done);
    return cli_interrupted();
}

static int by_outcome(const void *x, const void *y)
{
    const fa_candidate *a = *(const fa_candidate *const *)x, *b = *(const fa_candidate *const *)y;
    bool ra = a->decided && a->outcome == FA_RAN, rb = b->decided && b->outcome == FA_RAN;
    if (ra != rb)
        return ra ? -1 : 1;
    return !ra || a->seconds == b->seconds ? (a > b) - (a < b) : a->seconds < b->seconds ? -1 : 1;
}

static json_t *candidate_json(const fa_candidate *k)
{
    char text[512];
    fa_config_print(text, sizeof text, &k->config);
    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:i,s:o,s:i,s:i,s:i,s:b,s:s}", "config", text, "outcome", k->decided ? fa_outcome_name(k->outcome) : "open",
                     "source", k->how == FA_MEASURED ? "measured" : "model", "seconds", cli_json_number(k->seconds), "spread",
                     cli_json_number(k->spread), "samples", k->count, "tflops", cli_json_number(k->tflops), "regs", k->regs, "spills", k->spills,
                     "smem", k->smem, "resumed", k->resumed, "why", k->why);
}

static void tell_json(tuner *u, const fa_tuning *t, const fa_candidate *const *order, fa_status st)
{
    char text[256];
    json_t *list = json_array();
    fa_problem_print(text, sizeof text, &t->problem);
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(list, candidate_json(order[i]));
    json_array_append_new(u->list, json_pack("{s:s,s:s,s:s,s:o,s:o,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "problem", text, "status", fa_status_name(st),
                                             "source", t->how == FA_MEASURED ? "measured" : "model", "winner",
                                             t->winner ? candidate_json(t->winner) : json_null(), "elapsed", cli_json_number(t->elapsed), "out_of_time",
                                             t->out_of_time, "space", (json_int_t)t->counts.space, "fits", (json_int_t)t->counts.fits, "kept",
                                             (json_int_t)t->counts.kept, "compiled", (json_int_t)t->counts.compiled, "verified",
                                             (json_int_t)t->counts.verified, "timed", (json_int_t)t->counts.timed, "resumed",
                                             (json_int_t)t->counts.resumed, "failed", (json_int_t)t->counts.failed, "candidates", list));
}

static void tell(tuner *u, const fa_tuning *t, const fa_candidate *const *order)
{
    char text[512];
    cli_table table;
    size_t shown = t->n < 6 ? t->n : 6;
    fa_problem_print(text, sizeof text, &t->problem);
    cli_heading(u->c, text);
    printf("space %zu -> %zu fit -> %zu kept: %zu compiled, %zu verified, %zu timed, %zu from records, %zu failed; %s%s\n", t->counts.space,
           t->counts.fits, t->counts.kept, t->counts.compiled, t->counts.verified, t->counts.timed, t->counts.resumed, t->counts.failed,
           cli_show_seconds(t->elapsed), t->out_of_time ? ", out of time" : "");
    cli_table_open(&table, "outcome >time >TFLOP/s >regs >spills >smem config");
    for (size_t i = 0; i < shown; i++) {
        const fa_candidate *k = order[i];
        fa_config_print(text, sizeof text, &k->config);
        cli_table_cell(&table, "%s", k->decided ? fa_outcome_name(k->outcome) : "open");
        cli_table_cell(&table, "%s", k->decided && k->outcome == FA_RAN ? cli_show_seconds(k->seconds) : "-");
        cli_table_cell(&table, "%.1f", k->tflops);
        cli_table_cell(&table, "%d", k->regs);
        cli_table_cell(&table, "%d", k->spills);
        cli_table_cell(&table, "%d", k->smem);
        cli_table_cell(&table, "%s", text);
    }
    cli_table_print(&table, u->c);
    if (t->winner) {
        fa_config_print(text, sizeof text, &t->winner->config);
        printf("winner %s: %s%s, %s; saved\n\n", text, cli_show_seconds(t->winner->seconds), t->how == FA_MEASURED ? "" : " by the model",
               t->how == FA_MEASURED ? "measured" : "never measured");
    } else {
        printf("no winner\n\n");
    }
}

static fa_status tune_one(tuner *u, const fa_problem *p)
{
    fa_tuning t;
    fa_search_options o = { .limit = u->a->all ? -1 : u->a->limit, .seconds = u->a->budget, .threads = u->a->threads, .again = u->a->again,
                            .family = u->a->family, .progress = on_progress, .user = u };
    fa_status st = fa_search(&u->site, p, &o, &t);
    char message[2048];
    snprintf(message, sizeof message, "%s", fa_last_error());
    cli_progress_end(&u->bar);
    const fa_candidate **order = calloc(t.n ? t.n : 1, sizeof *order);
    for (size_t i = 0; order && i < t.n; i++)
        order[i] = &t.candidate[i];
    bool has_results = st == FA_OK || st == FA_INTERRUPTED || st == FA_WRONG;
    if (order && t.n && has_results) {
        qsort(order, t.n, sizeof *order, by_outcome);
        if (u->c->json)
            tell_json(u, &t, order, st);
        else if (!u->c->quiet)
            tell(u, &t, order);
    }
    free(order);
    fa_tuning_free(&t);
    return st == FA_OK ? st : fa_fail(st, "%s", message);
}

/* Problem i of the combinations; false past the last. */
static bool problem_at(const tune_args *a, int32_t i, fa_problem *out, fa_status *st)
{
    const cli_list *lists[] = { &a->n, &a->mask, &a->dtype, &a->d };
    int32_t v[4];
    fa_problem p = FA_PROBLEM_INIT;
    if (a->problem) {
        if (i == 0 && (*st = fa_wrap(fa_problem_parse(out, a->problem), "--problem")) == FA_OK)
            fa_problem_fill_shape(out);
        return i == 0;
    }
    for (int k = 0; k < 4; k++) {
        int32_t n = lists[k]->n ? lists[k]->n : 1;
        v[k] = lists[k]->n ? lists[k]->v[i % n] : 0;
        i /= n;
    }
    p.sq = p.sk = v[0];
    p.mask = a->causal ? FA_MASK_CAUSAL : v[1] ? v[1] - 1 : FA_MASK_NONE;
    p.dtype = v[2] ? v[2] : FA_BF16;
    p.d = v[3] ? v[3] : 128;
    p.dv = a->dv;
    p.b = a->b;
    p.hq = a->hq;
    p.hkv = a->hkv;
    *st = FA_OK;
    if (i == 0 && (*st = fa_problem_normalize(out, &p)) == FA_OK)
        fa_problem_fill_shape(out);
    return i == 0;
}

static void warn(void *user, const char *message)
{
    cli_note(user, "%s", message);
}

/* A device, or no device and an arch; says in one line which. */
static fa_status find_site(tuner *u)
{
    const tune_args *a = u->a;
    const fa_arch *arch = a->arch ? fa_arch_find(a->arch) : NULL;
    fa_environment env = fa_environment_read();
    char chip[80];
    if (a->arch && !arch)
        return fa_fail(FA_INVALID, "--arch is \"%.40s\"; accepted: %s", a->arch, fa_arch_names());
    if (arch && a->where.sram > arch->smem_block)
        return fa_fail(FA_INVALID, "--sram is %d; accepted on %s: 1 to %d bytes", a->where.sram, arch->name, arch->smem_block);
    cli quiet = *u->c;
    quiet.quiet = true;
    bool wanted = a->where.device || !arch || env.device;
    fa_status st = cli_session_open(&u->session, &quiet, &a->where);
    if (st != FA_OK && wanted)
        return st;
    const fa_arch *here = st == FA_OK ? fa_context_arch(u->session.ctx) : NULL;
    bool same = here && (!arch || !strcmp(arch->name, here->name));
    if (a->where.device && !same)
        return fa_fail(FA_INVALID, "--arch %s and --device %s (%s) contradict each other", arch->name, a->where.device, here->name);
    if (same && !u->session.simulated) {
        u->site = fa_site_of(u->session.ctx);
        cli_note(u->c, "tuning on %s: candidates are compiled, verified and timed", cli_session_chip(&u->session, chip, sizeof chip));
        return FA_OK;
    }
    arch = arch ? arch : here;
    u->site = (fa_site){ .arch = arch, .budget = a->where.sram, .template_dir = env.template_dir, .store = fa_store_open(NULL, warn, u->c),
                         .compiler = fa_compiler_open(NULL) };
    if (!u->site.store || !u->site.compiler)
        return fa_fail(FA_NOMEM, "no memory to tune");
    cli_note(u->c, "no %s GPU here: candidates for %s are compiled, gated on registers and spills, and ranked by the model; nothing is timed",
             arch->name, arch->name);
    return FA_OK;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const tune_args *a = args;
    tuner u = { .c = c, .a = a, .bar = { .c = c } };
    fa_problem p;
    (void)n, (void)words;
    fa_status st = a->causal && a->mask.n ? fa_fail(FA_INVALID, "--causal and --mask are two ways to say one thing; accepted: one of them") : FA_OK;
    for (int32_t i = 0; st == FA_OK && problem_at(a, i, &p, &st); i++) /* all of them are sound before the first is tuned */
        ;
    if (st == FA_OK)
        st = find_site(&u);
    u.list = json_array();
    cli_interrupt_watch();
    for (int32_t i = 0; st == FA_OK && problem_at(a, i, &p, &st) && st == FA_OK; i++)
        st = tune_one(&u, &p);
    int code = CLI_EXIT_OK;
    if (c->json && (st == FA_OK || json_array_size(u.list))) {
        if (st != FA_OK) {
            c->answered = true;
            cli_fail(c, st);
        }
        code = cli_answer(c, json_pack("{s:s,s:b,s:s,s:o}", "arch", u.site.arch->name, "timed", u.site.ctx != NULL, "status", fa_status_name(st), "problems",
                                       u.list),
                          cli_exit_of(st));
    } else {
        code = st == FA_OK ? CLI_EXIT_OK : cli_fail(c, st);
        json_decref(u.list);
    }
    if (!u.site.ctx) {
        fa_store_close(u.site.store);
        fa_compiler_close(u.site.compiler);
    }
    cli_session_close(&u.session);
    return code;
}

const cli_command cli_tune = {
    .name = "tune", .summary = "finds the fastest config by measuring, and remembers it",
    .usage = "[-d LIST] [--dtype LIST] [--mask LIST | --causal] [-n LIST] [--arch ARCH] [--budget TIME]",
    .about = "Prunes the space by the hard constraints and the model, compiles, verifies and times what is left, and records every outcome, so that "
             "Ctrl-C keeps all results and a second run resumes. For a chip that is not here, candidates are compiled, gated on registers and "
             "spills, and ranked by the model; a measured record always beats such a one.",
    .examples = "fagen tune -d 64,128 --dtype bf16 --causal --budget 60s\nfagen tune --arch sm_80 -d 64 --limit 8\nfagen tune -d 128 -n 1024,16384 --heads 32 "
                "--kv-heads 8 --json",
    .groups = groups, .size = sizeof(tune_args), .run = run,
};
