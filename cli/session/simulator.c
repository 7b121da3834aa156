/* simulator: --checks and the options beside it. */
#include "simulator.h"
#include "cli/options/args.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(f) .at = offsetof(cli_sim, f)
/* clang-format off */
const cli_option cli_sim_options[] = {
    { .name = "checks", .type = &cli_text, FIELD(checks), .value = "LIST",
      .help = "severity of the simulator's checks, as race=warning,unwritten=off or all=error; docs/simulator.md names them (default: "
                "FAGEN_SIM_CHECKS, "
              "else each check's own)" },
    { .name = "reports", .type = &cli_int, FIELD(reports), .value = "N",
      .help = "different errors of a launch before it ends", .preset = "1", .min = 1,
      .max = 64 },
    { .name = "max-steps", .type = &cli_seed, FIELD(steps), .value = "N",
      .help = "warp instructions of a launch before it is called a hang (default 4e9)" },
    { .name = "max-seconds", .type = &cli_seconds, FIELD(seconds), .value = "T", .help = "the same for its time (default 300s)" },
    { .name = NULL },
};
/* clang-format on */

fa_status cli_sim_set(const cli_sim *a, bool simulated, sim_options *to)
{
    char error[512];
    if (!simulated && (a->checks || a->reports > 1 || a->steps || a->seconds > 0))
        return fa_fail(FA_INVALID,
                       "--checks, --reports, --max-steps and --max-seconds are the simulator's; accepted with them: --device sim:ARCH");
    if (a->checks && !sim_checks_parse(a->checks, to->checks, error))
        return fa_fail(FA_INVALID, "--checks %s: %s", a->checks, error);
    to->reports = a->reports;
    to->max_steps = a->steps > INT64_MAX ? INT64_MAX : (int64_t)a->steps;
    to->max_seconds = a->seconds;
    return FA_OK;
}

void cli_sim_tell(const cli *c, const cli_sim *a)
{
    enum { ROOM = 32768 };
    char *text = malloc(ROOM);
    int n = text ? sim_warnings(text, ROOM) : 0;
    if (n)
        cli_say(stderr, "fagen %s: the simulator warns of %d %s\n%s\n", c->command, n, n == 1 ? "thing:" : "things:", text);
    free(text);
    if (a->reports > 1 && strlen(sim_report()) > 1500) /* more than a message holds */
        cli_say(stderr, "fagen %s: all that was reported\n%s\n", c->command, sim_report());
}
