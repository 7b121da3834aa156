/* progress: the line on standard error, and the signals that stop what it tells of. */
#include "progress.h"
#include <signal.h>
#include <string.h>
#include <time.h>

#define BAR 24
#define QUIET_SECONDS 10

double cli_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress_tell(cli_progress *p, const char *line, double done)
{
    char stage[40], text[256];
    const cli *c = p->c;
    double now = cli_clock();
    if (c->quiet)
        return;
    done = done < 0 ? 0 : done > 1 ? 1 : done;
    if (!c->tty) {
        snprintf(stage, sizeof stage, " %.*s ", (int)strcspn(line, " :"), line);
        if (strstr(p->stages, stage) && now - p->told < QUIET_SECONDS)
            return;
        if (!strstr(p->stages, stage))
            strncat(p->stages, stage, sizeof p->stages - strlen(p->stages) - 1);
        p->told = now;
        fprintf(stderr, "%3.0f %%  %s\n", 100 * done, line);
        return;
    }
    int full = (int)(done * BAR);
    snprintf(text, sizeof text, "[%.*s%.*s] %s", full, "########################", BAR - full, "........................", line);
    int n = (int)strlen(text), most = c->columns - 1;
    n = n < most ? n : most;
    fprintf(stderr, "\r%.*s%*s", n, text, p->shown > n ? p->shown - n : 0, "");
    fflush(stderr);
    p->shown = n;
}

void cli_progress_end(cli_progress *p)
{
    if (p->shown)
        fprintf(stderr, "\r%*s\r", p->shown, "");
    p->shown = 0;
}

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
    (void)sig;
    stopped = 1;
}

void cli_interrupt_watch(void)
{
    struct sigaction a = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

bool cli_interrupted(void)
{
    return stopped;
}
