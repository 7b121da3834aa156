/* progress: the line on standard error, and the signals that stop what it tells of. */
#include "progress.h"
#include "cache/output.h"
#include "say.h"
#include "sim/sim.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define QUIET_SECONDS 10 /* without a line, off a terminal */
#define STAGE_SECONDS 5  /* between lines, though the stage is new */
#define DRAW_SECONDS 0.05

double cli_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of standard error: COLUMNS, else the terminal's, else 100. */
static int columns_now(void)
{
    const char *text = getenv("COLUMNS");
    struct winsize w;
    int n = text ? (int)strtol(text, NULL, 10) : 0;
    if (n <= 0 && ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0)
        n = w.ws_col;
    return n > 0 ? n : 100;
}

static bool seen(cli_progress *p, const char *word, int n)
{
    char stage[40];
    snprintf(stage, sizeof stage, " %.*s ", n, word);
    if (strstr(p->stages, stage))
        return true;
    strncat(p->stages, stage, sizeof p->stages - strlen(p->stages) - 1);
    return false;
}

/* The cells that are done in green, where there are colours. */
static void show(cli_progress *p, const char *text)
{
    int n = (int)strlen(text), from = (int)strcspn(text, "#"), full = (int)strspn(text + from, "#");
    if (p->c->color_err && full)
        fprintf(stderr, "\r%.*s\033[32m%.*s\033[0m%s", from, text, full, text + from, text + from + full);
    else
        fprintf(stderr, "\r%s", text);
    if (p->shown > n)
        fprintf(stderr, "%*s", p->shown - n, ""); /* over what was longer */
    fflush(stderr);
    p->shown = n;
}

void cli_progress_draw(cli_progress *p, const char *stage, const cli_status_line *line)
{
    char text[CLI_STATUS_LINE_MOST];
    double now = cli_clock();
    if (p->c->quiet)
        return;
    if (p->c->tty) {
        if (p->shown && now - p->told < DRAW_SECONDS)
            return;
        cli_status_line steady = *line;
        int columns = columns_now();
        steady.cells = columns == p->columns ? p->cells : 0;
        cli_status_line_fit(&steady, columns - 1, text); /* the last column would wrap */
        const char *bar = strchr(text, '[');
        if (bar) { /* it does not grow again beside shorter texts */
            p->cells = (int)strcspn(bar + 1, "]");
            p->columns = columns;
        }
        if (p->shown && !strcmp(text, p->drawn))
            return;
        p->told = now;
        snprintf(p->drawn, sizeof p->drawn, "%s", text);
        show(p, text);
        return;
    }
    bool first = !p->told, old = seen(p, stage, (int)strcspn(stage, " "));
    if (!first && now - p->told < (old ? QUIET_SECONDS : STAGE_SECONDS))
        return;
    p->told = now;
    cli_status_line_plain(line, text);
    fprintf(stderr, "%s\n", text);
}

void cli_progress_tell(cli_progress *p, const char *line, double done)
{
    cli_status_line l = { .done = done };
    if (p->c->tty) {
        int room = columns_now() - 30; /* beside the whole bar */
        cli_status_line_add(&l, 0, "%s", "");
        cli_status_line_add(&l, 0, "%.*s", room > 10 ? room : 10, line);
        cli_progress_draw(p, line, &l);
        return;
    }
    double now = cli_clock();
    bool old = seen(p, line, (int)strcspn(line, " :"));
    if (p->c->quiet || (old && now - p->told < QUIET_SECONDS))
        return;
    p->told = now;
    cli_say(stderr, "%3.0f %%  %s\n", 100 * (done < 0 ? 0 : done > 1 ? 1 : done), line);
}

void cli_progress_end(cli_progress *p)
{
    if (p->shown)
        fprintf(stderr, "\r%*s\r", p->shown, "");
    p->shown = 0;
}

void cli_progress_anew(cli_progress *p)
{
    p->stages[0] = 0;
}

/* A thread of its own waits for the signals, which all others block: NVRTC's front end puts handlers of its own in the place of whatever
 * is there while it compiles, and these end the process with code 4. When it begins to compile it also ignores them for a moment: a signal
 * that has come and was not yet fetched is gone then, and must be given again. */
static atomic_bool stopped, asked_for;
static const char *_Atomic last_words;

static void watched(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

/* The first of what ends a command. */
static void stop(void)
{
    const char *words = atomic_load(&last_words);
    if (!atomic_load(&asked_for) || atomic_exchange(&stopped, true)) {
        fa_output_forsake();
        _exit(CLI_EXIT_INTERRUPTED); /* the default handler may not be there, and exit() waits for locks */
    }
    sim_interrupt(1);
    if (words && write(STDERR_FILENO, words, strlen(words)) < 0)
        return; /* there is no other place to tell */
}

static void *wait_for_signals(void *user)
{
    sigset_t set;
    int sig;
    (void)user;
    watched(&set);
    while (sigwait(&set, &sig) == 0)
        stop();
    return NULL;
}

static void *wait_for_end(void *user)
{
    struct pollfd p = { .fd = (int)(intptr_t)user, .events = POLLRDHUP };
    while (poll(&p, 1, -1) <= 0)
        ;
    stop();
    return NULL;
}

void cli_interrupt_at_end_of(int fd)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_end, (void *)(intptr_t)fd) == 0)
        pthread_detach(thread);
}

void cli_interrupt_open(void)
{
    sigset_t set;
    pthread_t thread;
    watched(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, NULL) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* without a watch they end it, as ever */
}

void cli_interrupt_watch(void)
{
    atomic_store(&asked_for, true);
}

void cli_interrupt_unwatch(void)
{
    atomic_store(&asked_for, false);
}

void cli_interrupt_child(void)
{
    sigset_t set;
    signal(SIGXFSZ, SIG_DFL);
    watched(&set);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void cli_interrupt_say(const char *note)
{
    atomic_store(&last_words, note);
}

bool cli_interrupted(void)
{
    return atomic_load(&stopped);
}
