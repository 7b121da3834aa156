/* progress: how far a long command is, on standard error: one line that renews itself on a terminal, else a line per stage. */
#ifndef FA_CLI_TEXT_PROGRESS_H
#define FA_CLI_TEXT_PROGRESS_H
#include "cli.h"
#include "status_line.h"

typedef struct cli_progress {
    const cli *c;
    char stages[256];                 /* the first words told so far, each between blanks */
    double told;                      /* when the last line was, seconds of the monotonic clock */
    int shown;                        /* width of the line on the terminal */
    char drawn[CLI_STATUS_LINE_MOST]; /* what it says: the same again is not drawn */
    int cells, columns;               /* of the bar as it was drawn last, in so wide a terminal: it keeps its width */
} cli_progress;

/* done: 0 to 1. Off a terminal a line is told when its first word is new, and every 10 seconds otherwise. */
void cli_progress_tell(cli_progress *p, const char *line, double done);
/* The same of a line of pieces, as wide as the terminal is now. Off a terminal one is told when the stage is new, but for the first of
 * all not within 5 seconds of the last, and every 10 seconds otherwise. */
void cli_progress_draw(cli_progress *p, const char *stage, const cli_status_line *line);
/* Clears the line, so that other output may follow. */
void cli_progress_end(cli_progress *p);
/* Another work begins: its stages are new. */
void cli_progress_anew(cli_progress *p);

double cli_clock(void); /* seconds, monotonic */

/* From now on SIGINT and SIGTERM end the process with CLI_EXIT_INTERRUPTED, and leave no half-written file. Once, before anything starts
 * a thread: threads that are there before would die of the signal itself. Children inherit the mask. */
void cli_interrupt_open(void);
/* From now on the first of them is asked for by cli_interrupted() instead, and ends what the simulator runs: a command that keeps what it
 * has found. A second one ends the process. */
void cli_interrupt_watch(void);
/* As before that call: what follows has nothing to keep, or waits for others. */
void cli_interrupt_unwatch(void);
/* In a child between fork() and exec: the signals are as other programs expect them. */
void cli_interrupt_child(void);
/* What the first signal says on standard error; NULL = nothing. */
void cli_interrupt_say(const char *note);
bool cli_interrupted(void);
/* From now on the end of what comes in on a socket is such a signal: its writer wants no more. */
void cli_interrupt_at_end_of(int fd);
#endif
