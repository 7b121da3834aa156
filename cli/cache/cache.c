/* cache: what lies on disk, why a kernel is or is not there, and its upkeep. */
#include "cache.h"
#include "gen/error.h"
#include <string.h>

/* clang-format off */
static const cli_option options[] = {
    { .name = "config", .letter = 'c', .type = &cli_text, .at = offsetof(cache_args, config), .value = "CONFIG",
      .help = "why: of this config, or family: (default: what fa_launch would run)" },
    { .name = "device", .type = &cli_text, .at = offsetof(cache_args, device), .value = "DEVICE",
      .help = "why, import: cuda, cuda:N, or sim:ARCH (default: FAGEN_DEVICE, else the first GPU, else sim:sm_80)" },
    { .name = "arch", .type = &cli_text, .at = offsetof(cache_args, arch), .value = "ARCH,...",
      .help = "ls, prune, export: only what is compiled for these; why: of the cubin that fa_launch would run on this chip, without a device" },
    { .name = "older", .type = &cli_age, .at = offsetof(cache_args, older), .value = "AGE",
      .help = "prune: not used for so long, as 30d or 12h" },
    { .name = "to", .type = &cli_size, .at = offsetof(cache_args, to), .value = "SIZE",
      .help = "prune: what was used longest ago, until so much is left, as 100MiB", .preset = "any" },
    { .name = "dry-run", .at = offsetof(cache_args, dry_run), .help = "prune: tell what would go, and leave it" },
    { .name = "repair", .at = offsetof(cache_args, repair), .help = "verify: remove what is damaged" },
    { .name = "records", .at = offsetof(cache_args, records), .help = "export: the records of tunings as well" },
    { .name = "only-records", .at = offsetof(cache_args, only_records),
      .help = "export: the records alone, as text: of each config, problem and chip the newest that ran" },
    { .name = "trust", .at = offsetof(cache_args, trust),
      .help = "import: load these kernels, and take records as measured here; without it kernels are kept aside in foreign/" },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "The cache", options, 0 }, CLI_PROBLEM_OPTIONS(cache_args), CLI_COMMON, { NULL, NULL, 0 } };

enum {
    CONFIG = 1,
    DEVICE = 2,
    ARCH = 4,
    OLDER = 8,
    TO = 16,
    DRY = 32,
    REPAIR = 64,
    RECORDS = 128,
    ONLY = 256,
    TRUST = 512,
    PROBLEM = 1024
};
static const char *const option_names[] = { "--config", "--device",  "--arch",         "--older", "--to",     "--dry-run",
                                            "--repair", "--records", "--only-records", "--trust", "a problem" };

static const struct {
    const char *name;
    int (*run)(cli *c, fa_store *s, const cache_args *a, const char *word);
    unsigned takes;
    bool file;
} words_of[] = {
    { "ls", cli_cache_ls, ARCH, false },
    { "stat", cli_cache_stat, 0, false },
    { "why", cli_cache_why, CONFIG | DEVICE | ARCH | PROBLEM, false },
    { "verify", cli_cache_verify, REPAIR, false },
    { "prune", cli_cache_prune, ARCH | OLDER | TO | DRY, false },
    { "export", cli_cache_export, ARCH | RECORDS | ONLY, true },
    { "import", cli_cache_import, TRUST | DEVICE, true },
};
#define WORDS (sizeof words_of / sizeof *words_of)

static unsigned given(const cache_args *a)
{
    return (a->config ? CONFIG : 0u) | (a->device ? DEVICE : 0u) | (a->arch ? ARCH : 0u) | (a->older > 0 ? OLDER : 0u) |
           (a->to >= 0 ? TO : 0u) | (a->dry_run ? DRY : 0u) | (a->repair ? REPAIR : 0u) | (a->records ? RECORDS : 0u) |
           (a->only_records ? ONLY : 0u) | (a->trust ? TRUST : 0u) | (cli_problem_options_given(&a->problem_options) ? PROBLEM : 0u);
}

static void warn(void *user, const char *message)
{
    cli_note(user, "%s", message);
}

static fa_status check(const cache_args *a, int n, char **words, size_t *which)
{
    static const char accepted[] = "ls, stat, why, verify, prune, export, import";
    if (n == 0)
        return fa_fail(FA_INVALID, "what about it? accepted: %s", accepted);
    for (*which = 0; *which < WORDS && strcmp(words_of[*which].name, words[0]); ++*which)
        ;
    if (*which == WORDS)
        return fa_fail(FA_INVALID, "unknown word \"%.40s\"; accepted: %s", words[0], accepted);
    if (words_of[*which].file && n < 2)
        return fa_fail(FA_INVALID, "%s: which file? usage: fagen cache %s FILE", words[0], words[0]);
    if (!words_of[*which].file && n > 1)
        return fa_fail(FA_INVALID, "unexpected word \"%.60s\"; usage: fagen cache %s [options]", words[1], words[0]);
    unsigned wrong = given(a) & ~words_of[*which].takes;
    for (size_t i = 0; i < sizeof option_names / sizeof *option_names; i++)
        if (wrong >> i & 1)
            return fa_fail(FA_INVALID, "%s does not take %s; fagen cache --help tells which word takes what", words[0], option_names[i]);
    return FA_OK;
}

static const char *word_at(const cli_program *p, size_t i)
{
    (void)p;
    return i < WORDS ? words_of[i].name : NULL;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const cache_args *a = args;
    size_t which = 0;
    fa_status st = check(a, n, words, &which);
    if (st != FA_OK)
        return cli_fail(c, st);
    fa_store *s = fa_store_open(NULL, warn, c);
    if (!s)
        return cli_fail(c, fa_fail(FA_NOMEM, "no memory for the cache"));
    int code = words_of[which].run(c, s, a, n > 1 ? words[1] : NULL);
    fa_store_close(s);
    return code;
}

const cli_command cli_cache = {
    .name = "cache",
    .summary = "kernels and records on disk: list, explain, check, shrink, carry",
    .usage = "ls | stat | why [problem] | verify | prune | export FILE | import FILE",
    .about = "Looks after the compiled kernels and the records of every root of the search path (FAGEN_CACHE_DIR).\n"
             "ls lists the kernels; stat counts all of it; why tells whether a problem's kernel is there, and of a miss what the nearest "
             "kernel differs in; "
             "verify reads and checks every file; prune removes kernels; export and import carry kernels and records between machines in "
             "one file. Records of others are checked whole, and the best of each problem is verified on the device before it counts. "
             "Deleting files of the cache is always safe: what is missing is made again.",
    .examples = "fagen cache ls\nfagen cache why -d 128 --causal\nfagen cache prune --older 30d --to 100MiB --dry-run\n"
                "fagen cache export kernels.archive --arch sm_90a --records\nfagen cache import kernels.archive --trust",
    .groups = groups,
    .size = sizeof(cache_args),
    .words = 2,
    .run = run,
    .word = word_at,
    .files = true,
};
