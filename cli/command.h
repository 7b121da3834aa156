/* command: what a subcommand is, and what every one of them gets. */
#ifndef FA_CLI_COMMAND_H
#define FA_CLI_COMMAND_H
#include "args.h"
#include <jansson.h>

/* The first member of every command's struct of options. */
typedef struct cli_common {
    bool json, quiet, help;
    int32_t color; /* 0 never, 1 auto, 2 always */
} cli_common;
extern const cli_option cli_common_options[];
#define CLI_COMMON                          \
    {                                       \
        "Everywhere", cli_common_options, 0 \
    }

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

typedef struct cli_command {
    const char *name, *summary;
    const char *usage; /* what follows the name */
    const char *about;
    const char *examples; /* one command a line */
    const cli_group *groups;
    size_t size; /* of the struct of options */
    int words;   /* most words that are no options */
    int (*run)(cli *c, const void *args, int n, char **words);
    /* For completion: the i-th that the first word may be, NULL past the last; and whether words may be names of files. */
    const char *(*word)(const struct cli_program *p, size_t i);
    bool files;
} cli_command;

/* A command with subcommands: `fagen`, and that of the developers (bench/). */
typedef struct cli_program {
    const char *name, *title;
    const cli_command *const *commands; /* those that are listed, in the order in which a person meets them; NULL past the last */
    const cli_command *help;            /* completed behind them, where words are completed */
    const struct cli_alias {
        const char *name; /* NULL past the last */
        const cli_command *command;
    } * others; /* that are not listed */
} cli_program;
/* Runs the subcommand that argv names; returns the exit code. */
int cli_program_run(const cli_program *p, int argc, char **argv);

extern const cli_command cli_attend, cli_bench, cli_cache, cli_completion, cli_doctor, cli_emit, cli_explore, cli_help, cli_model, cli_run,
    cli_sample, cli_show, cli_space, cli_tune, cli_verify, cli_version, cli_candidate_process;

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
    CLI_EXIT_INTERRUPTED = 130
};
int cli_exit_of(fa_status st);

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
