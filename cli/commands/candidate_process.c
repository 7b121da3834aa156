/* candidate_process: the process in which `fagen tune` tries candidates, so that one that hangs or faults takes only it along:
 * autotune/candidate/process.h has the lines that it reads and answers. Not listed: no person calls it. */
#include "autotune/candidate/process.h"
#include "cli/options/problem_options.h"
#include "cli/session/session.h"
#include "commands.h"

typedef struct candidate_process_args {
    cli_common common;
    cli_where where;
    bool timed;
    int32_t lengths;
} candidate_process_args;

/* No help: `fagen help` does not list it. Lengths are those of the search. A simulator's times say nothing, but a test may want to see them
 * taken. */
static const cli_option options[] = {
    { .name = "timed", .at = offsetof(candidate_process_args, timed) },
    { .name = "lengths", .type = &cli_choice, .at = offsetof(candidate_process_args, lengths), .value = "HOW", .words = cli_spreads },
    { .name = NULL }
};
static const cli_group groups[] = { { "From the search", options, 0 }, CLI_DEVICE(candidate_process_args), CLI_COMMON, { NULL, NULL, 0 } };

static int run(cli *c, const void *args, int n, char **words)
{
    const candidate_process_args *a = args;
    cli_session s;
    (void)n, (void)words;
    fa_status st = cli_session_open(&s, c, &a->where);
    if (st != FA_OK)
        return cli_fail(c, st);
    fa_site site = fa_site_of(s.ctx);
    site.timed |= a->timed;
    site.lengths = a->lengths;
    st = fa_candidate_process_serve(&site, stdin, stdout);
    if (st != FA_OK) /* nothing on a context that is gone can be given back */
        return cli_exit_of(st);
    cli_session_close(&s);
    return CLI_EXIT_OK;
}

const cli_command cli_candidate_process = {
    .name = "candidate-process",
    .summary = "tries candidates for `fagen tune`",
    .usage = "[--device DEVICE]",
    .about = "Reads lines and answers them, as autotune/candidate/process.h tells. `fagen tune` starts it by itself.",
    .examples = "fagen candidate-process --device cuda:0",
    .groups = groups,
    .size = sizeof(candidate_process_args),
    .run = run,
};
