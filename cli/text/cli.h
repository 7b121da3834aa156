/* cli: who a subcommand speaks for, and how it answers: the exit code, the message, the document, and numbers as people read them. */
#ifndef FA_CLI_TEXT_CLI_H
#define FA_CLI_TEXT_CLI_H
#include <fagen.h>
#include <jansson.h>
#include <stdbool.h>

struct cli_program;

typedef struct cli {
    const struct cli_program *program;
    const char *command;
    bool json, quiet;
    char **argv;    /* as the process got it */
    bool color;     /* of standard output */
    bool color_err; /* of standard error */
    bool tty;       /* standard error is a terminal */
    int columns;    /* COLUMNS, else the terminal's, else 100 */
    bool wide;      /* neither is known: nothing is cut */
    bool answered;  /* the one JSON document was printed */
} cli;

/* Exit codes, as documented by `fagen help exit-codes`. */
enum {
    CLI_EXIT_OK = 0,
    CLI_EXIT_USAGE = 1,
    CLI_EXIT_MISSING = 2,
    CLI_EXIT_NO_FIT = 3,
    CLI_EXIT_WRONG = 4,
    CLI_EXIT_COMPILE = 5,
    CLI_EXIT_DEVICE = 6,
    CLI_EXIT_FILE = 7,
    CLI_EXIT_NO_CANDIDATE = 8,
    CLI_EXIT_INTERRUPTED = 130
};
int cli_exit_of(fa_status st);

/* A row of a topic of `fagen help`: a name or, where it is NULL, a code; and what it means. */
typedef struct cli_term {
    const char *name;
    int code;
    const char *text;
} cli_term;
bool cli_exit_at(size_t i, cli_term *out); /* the exit codes; false past the last */

/* Tells the thread's last message on standard error, and with --json as the document; returns the exit code of st. */
int cli_fail(cli *c, fa_status st);
/* The same with another exit code than the status's. */
int cli_fail_with(cli *c, fa_status st, int code);
/* One line on standard error, "fagen: ...", unless --quiet. */
void cli_note(const cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints the document, which it takes, and returns `code`; a document that could not be made is FA_NOMEM. */
int cli_answer(cli *c, json_t *doc, int code);
/* A whole number where x is one, null where it is not finite. */
json_t *cli_json_number(double x);

/* "1.50 KiB"; "12.3 us"; both in the thread's own storage, eight at a time. */
const char *cli_show_bytes(double bytes);
const char *cli_show_seconds(double t);
/* x by fmt, which takes a double, likewise; "-" where there is none. */
const char *cli_show_if(bool told, const char *fmt, double x) __attribute__((format(printf, 2, 0)));
/* "2026-11-21T04:31:00Z" of nanoseconds since 1970, likewise. */
const char *cli_show_time(int64_t ns);
#endif
