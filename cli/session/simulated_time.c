/* simulated_time: by the products' operations. */
#include "simulated_time.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/pairs.h"
#include "gen/problem.h"
#include <math.h>
#include <unistd.h>

/* Operations of a core in a second, as a core of a server of 2023 simulates them: by tensor cores, and by kernels that are kept for
 * comparison, which have one thread for each element. */
#define RATE 4e8
#define RATE_OF_SYSTEMS 1.2e8

static double seconds_of(const fa_problem *p, int systems, int cores)
{
    return fa_model_matrix_flops(p, fa_band_of_problem(p)) * (1 / RATE + systems / RATE_OF_SYSTEMS) / cores;
}

static const char *time_text(char *out, size_t n, double seconds)
{
    double hours = seconds / 3600;
    if (hours < 1.5)
        snprintf(out, n, "%.0f minutes", seconds / 60);
    else if (hours < 48)
        snprintf(out, n, "%.0f hours", hours);
    else
        snprintf(out, n, "%.0f days", hours / 24);
    return out;
}

/* The longest length, a power of two, that takes no longer than is accepted where the other shrinks with it. */
static int64_t accepted_length(const fa_problem *p, double seconds)
{
    int32_t longest = p->sq > p->sk ? p->sq : p->sk;
    double n = longest * sqrt(CLI_SIMULATED_MOST / seconds);
    int64_t pow2 = 1;
    while (2 * pow2 <= n)
        pow2 *= 2;
    return pow2;
}

fa_status cli_simulated_time(const cli *c, const cli_session *s, const fa_problem *p, int systems)
{
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    double seconds = seconds_of(p, systems, cores > 0 ? cores : 1);
    char text[FA_PROBLEM_TEXT], takes[40];
    if (seconds <= CLI_SIMULATED_MOST)
        return FA_OK;
    fa_problem_print(text, sizeof text, p);
    time_text(takes, sizeof takes, seconds);
    if (!s->stands_in) {
        cli_note(c, "the simulator takes some %s for %s", takes, text);
        return FA_OK;
    }
    return fa_fail(
        FA_INVALID,
        "-n, --sq, --sk: lengths of %d and %d take the simulator, which stands in for a GPU here, some %s (%s); accepted without a GPU: "
        "what takes at most %d minutes, lengths up to some %lld with these heads and this batch; any with --device %s",
        p->sq, p->sk, takes, text, CLI_SIMULATED_MOST / 60, (long long)accepted_length(p, seconds), s->device);
}
