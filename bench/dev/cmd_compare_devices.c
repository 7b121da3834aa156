/* compare_devices: the same cases on two devices, compared bit by bit. */
#include "bench/dev/compare_devices.h"
#include "bench/dev/dev.h"
#include "cli/options/command.h"
#include "cli/options/problem_options.h"
#include "cli/session/session.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include <math.h>

typedef struct compare_devices_args {
    cli_common common;
    cli_where where;
    uint64_t seed;
    int32_t count;
    const char *with;
} compare_devices_args;

#define FIELD(f) .at = offsetof(compare_devices_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "with", .letter = 'w', .type = &cli_text, FIELD(with), .value = "DEVICE",
      .help = "the other device (default: the simulator of the first one's arch)" },
    { .name = "seed", .letter = 's', .type = &cli_seed, FIELD(seed), .value = "N",
      .help = "the first case; a case is its number", .preset = "0" },
    { .name = "count", .letter = 'N', .type = &cli_int, FIELD(count), .value = "M",
      .help = "cases; each is run in three ways", .preset = "12", .min = 1,
      .max = 1000000 },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "The cases", options, 0 }, CLI_WHERE(compare_devices_args), CLI_COMMON, { NULL, NULL, 0 } };

typedef struct tally {
    fa_compare_devices sum[FA_COMPARE_KINDS];
    int32_t cases, failed;
    char message[2048]; /* of the first failure */
} tally;

static void add(fa_compare_devices *sum, const fa_compare_devices *t)
{
    sum->o += t->o;
    sum->lse += t->lse;
    sum->differ_o += t->differ_o;
    sum->differ_lse += t->differ_lse;
    sum->ulps_o = fmax(sum->ulps_o, t->ulps_o);
    sum->ulps_lse = fmax(sum->ulps_lse, t->ulps_lse);
}

/* One case in its three ways. FA_NO_FIT and FA_UNSUPPORTED pass it over. */
static fa_status one(tally *t, const cli *c, const cli_session *s, fa_context *other, fa_gen *g, uint64_t seed)
{
    for (int kind = 0; kind < FA_COMPARE_KINDS; kind++) {
        fa_case k;
        fa_config config;
        fa_compare_devices compared;
        char line[512];
        fa_case_make(&k, seed);
        fa_compare_devices_bend(&k, kind);
        fa_status st = fa_case_config(g, &k, fa_context_arch(s->ctx), fa_context_budget(s->ctx), NULL, &config);
        if (st == FA_NO_FIT || st == FA_UNSUPPORTED)
            return FA_OK;
        if (st == FA_OK)
            st = fa_compare_devices_run(s->ctx, other, &k, &config, kind, &compared);
        if (st == FA_WRONG || st == FA_DEVICE) {
            fa_case_print(line, sizeof line, &k);
            if (!t->failed++)
                snprintf(t->message, sizeof t->message, "%s: %.1000s", fa_compare_devices_name(kind), fa_last_error());
            cli_note(c, "%s: %s: %s", fa_compare_devices_name(kind), line, fa_last_error());
            continue;
        }
        if (st != FA_OK)
            return st;
        add(&t->sum[kind], &compared);
    }
    t->cases++;
    return FA_OK;
}

/* Matrix products alone must give equal bits; where 2^x is involved the difference is told, not judged. */
static int answer(cli *c, const tally *t, const char *chip, const char *with)
{
    bool same = true;
    json_t *doc = json_object();
    cli_table table;
    cli_table_open(&table, "what >O >differ >ulp >LSE >differ >ulp");
    for (int kind = 0; kind < FA_COMPARE_KINDS; kind++) {
        const fa_compare_devices *s = &t->sum[kind];
        same = same && (kind == FA_COMPARE_WHOLE || (s->differ_o == 0 && s->differ_lse == 0));
        json_object_set_new(doc, fa_compare_devices_name(kind),
                            json_pack("{s:I,s:I,s:o,s:I,s:I,s:o}", "o", (json_int_t)s->o, "differ_o", (json_int_t)s->differ_o, "ulps_o",
                                      cli_json_number(s->ulps_o), "lse", (json_int_t)s->lse, "differ_lse", (json_int_t)s->differ_lse,
                                      "ulps_lse", cli_json_number(s->ulps_lse)));
        cli_table_cells(&table, "%s\t%lld\t%lld\t%.3g\t%lld\t%lld\t%.3g", fa_compare_devices_name(kind), (long long)s->o,
                        (long long)s->differ_o, s->ulps_o, (long long)s->lse, (long long)s->differ_lse, s->ulps_lse);
    }
    int code = t->failed || !same ? CLI_EXIT_WRONG : CLI_EXIT_OK;
    if (c->json) {
        json_object_set_new(doc, "cases", json_integer(t->cases));
        json_object_set_new(doc, "failed", json_integer(t->failed));
        json_object_set_new(doc, "same_matrix_bits", json_boolean(same));
        json_object_set_new(doc, "device", json_string(chip));
        json_object_set_new(doc, "with", json_string(with));
        fa_text_free(&table.cells);
        return cli_answer(c, doc, code);
    }
    json_decref(doc);
    cli_table_print(&table, c);
    printf("%d cases on %s and on %s: matrix products %s\n", t->cases, chip, with, same ? "give the same bits" : "DIFFER");
    if (t->failed)
        fprintf(stderr, "fagen-dev twin: %d runs failed; the first: %s\n", t->failed, t->message);
    return code;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const compare_devices_args *a = args;
    cli_session s;
    fa_context *other = NULL;
    fa_gen *g = NULL;
    tally t = { .cases = 0 };
    cli_progress bar = { .c = c };
    char chip[80], with[64] = "";
    (void)n, (void)words;
    cli_interrupt_watch();
    fa_status st = cli_session_open(&s, c, &a->where);
    if (st != FA_OK)
        return cli_fail(c, st);
    snprintf(with, sizeof with, "%s", a->with ? a->with : "sim:");
    if (!a->with)
        snprintf(with, sizeof with, "sim:%s", fa_context_arch(s.ctx)->name);
    fa_options o = FA_OPTIONS_INIT;
    o.device = with;
    st = fa_wrap(fa_create(&other, &o), "--with %s", with);
    if (st == FA_OK)
        st = cli_gen_open(&g);
    for (int32_t i = 0; i < a->count && st == FA_OK && !cli_interrupted(); i++) {
        char line[64];
        snprintf(line, sizeof line, "twin case %llu", (unsigned long long)a->seed + (unsigned)i);
        cli_progress_tell(&bar, line, (double)i / a->count);
        st = one(&t, c, &s, other, g, a->seed + (uint64_t)i);
    }
    cli_progress_end(&bar);
    if (st == FA_INTERRUPTED && cli_interrupted()) /* the cases before it are the answer */
        st = FA_OK;
    int code = st == FA_OK ? answer(c, &t, cli_session_chip(&s, chip, sizeof chip), with) : cli_fail(c, st);
    if (st == FA_OK && cli_interrupted())
        code = CLI_EXIT_INTERRUPTED;
    fa_gen_close(g);
    fa_destroy(other);
    cli_session_close(&s);
    return code;
}

const cli_command dev_compare_devices = {
    .name = "twin",
    .summary = "runs cases on two devices and compares the bits",
    .usage = "[--with DEVICE] [--seed N --count M]",
    .about =
        "How the simulator is held against a GPU. Each case is run in three ways: 'scores' shows every row one key, so that LSE is the "
        "bare "
        "bits of Q K^T and O a row of V; 'sums' makes every probability 1, so that O is the bare sum of V; 'whole' is the case as it is. "
        "Matrix products must agree bit for bit, or it exits 4; 2^x and log2, which hardware approximates, may differ, and by how "
        "many ulp is told.",
    .examples = "fagen-dev twin --device cuda:0 --count 60",
    .groups = groups,
    .size = sizeof(compare_devices_args),
    .run = run,
};
