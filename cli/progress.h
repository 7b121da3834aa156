/* progress: how far a long command is, on standard error: one line that renews itself on a terminal, else a line per stage. */
#ifndef FA_CLI_PROGRESS_H
#define FA_CLI_PROGRESS_H
#include "command.h"

typedef struct cli_progress {
    const cli *c;
    char stages[256]; /* the first words told so far, each between blanks */
    double told;      /* when the last line was, seconds of the monotonic clock */
    int shown;        /* width of the line on the terminal */
} cli_progress;

/* done: 0 to 1. Off a terminal a line is told when its first word is new, and every 10 seconds otherwise. */
void cli_progress_tell(cli_progress *p, const char *line, double done);
/* Clears the line, so that other output may follow. */
void cli_progress_end(cli_progress *p);

double cli_clock(void); /* seconds, monotonic */

/* From now on SIGINT and SIGTERM are asked for instead of ending the process; a second one ends it. */
void cli_interrupt_watch(void);
bool cli_interrupted(void);
#endif
