/* args: options as rows of a table, from which parsing, defaults, messages and --help are all derived. */
#ifndef FA_CLI_OPTIONS_ARGS_H
#define FA_CLI_OPTIONS_ARGS_H
#include <fagen.h>
#include <stdbool.h>
#include <stdio.h>

#define CLI_LIST_MAX 32

typedef struct cli_word {
    const char *name; /* NULL ends a table */
    int value;
} cli_word;

typedef struct cli_list {
    int32_t n, v[CLI_LIST_MAX];
} cli_list;

typedef struct cli_option cli_option;

/* How a value is read. read: false when text is not accepted. accepts: what is, for messages and help. */
typedef struct cli_option_type {
    bool (*read)(void *to, const char *text, const cli_option *o);
    void (*accepts)(char *buf, size_t n, const cli_option *o);
} cli_option_type;

/* Combination i of n lists, of which the last changes fastest: a value of each, 0 of an empty one. False past the last. */
bool cli_list_combine(const cli_list *const *lists, int n, size_t i, int32_t *out);

extern const cli_option_type cli_int;     /* int32_t, min to max, "4k" is 4096 */
extern const cli_option_type cli_ints;    /* cli_list of them, comma separated */
extern const cli_option_type cli_seed;    /* uint64_t */
extern const cli_option_type cli_bytes;   /* int32_t, "65536" or "64KiB" */
extern const cli_option_type cli_seconds; /* double, "60s" "2m" "1h" */
extern const cli_option_type cli_size;    /* int64_t, bytes as "100MiB"; -1 = "any" */
extern const cli_option_type cli_age;     /* double, seconds as "30d" "12h" */
extern const cli_option_type cli_real;    /* float > 0 */
extern const cli_option_type cli_scale;   /* float, what fa_args.scale takes, but for 0 */
extern const cli_option_type cli_text;    /* const char *, not empty */
extern const cli_option_type cli_choice;  /* int, one of words */
extern const cli_option_type cli_choices; /* cli_list of them */
extern const cli_option_type cli_set;     /* int32_t, several of words or-ed, joined by commas or + */
extern const cli_option_type cli_window;  /* int32_t[2], "LEFT,RIGHT" or "LEFT", with 0 to the right; -1 = unbounded */

/* The same where none need be given. */
typedef struct cli_reach {
    bool given;
    int32_t left, right;
} cli_reach;
extern const cli_option_type cli_reach_type;

/* Whether it is the first of the words with its value: the others mean the same, and are accepted without being told. */
bool cli_word_is_first(const cli_word *words, const cli_word *w);

struct cli_option {
    const char *name;            /* long name; NULL ends a table */
    char letter;                 /* short name, 0 = none */
    const cli_option_type *type; /* NULL: a flag, sets a bool */
    size_t at;                   /* offset of the field in the group's struct */
    const char *value;           /* what the help calls the value */
    const char *help;            /* NULL: an option between processes, that is no person's to give: not told of */
    const char *preset;          /* the default, read as if it had been given; NULL = zero */
    int64_t min, max;
    const cli_word *words;
};

/* Options that several commands share: a table and where its struct lies in the command's. */
typedef struct cli_group {
    const char *title; /* NULL ends the groups of a command */
    const cli_option *options;
    size_t at;
} cli_group;

#define CLI_OPTIONS_MAX 64

/* Fills args (zeroed here, `size` bytes) with the presets, then with argv[1..]. Words that are no options are left in order at
 * argv[*rest...]. FA_INVALID names the option, the value and what is accepted, or the nearest name. */
fa_status cli_args_parse(const cli_group *groups, void *args, size_t size, int argc, char **argv, int *rest);

/* One line or more per option, wrapped at `columns`. */
void cli_args_help(FILE *f, const cli_group *groups, int columns);

/* What an option does: its help, what --choice accepts, the default. */
void cli_option_about(char *buf, size_t n, const cli_option *o);

/* The name nearest to `word`, or NULL where none is near. next(user, i) gives the i-th name, NULL at the end. */
const char *cli_nearest(const char *word, const char *(*next)(const void *user, size_t i), const void *user);
/* text wrapped at `columns`, every line after the first indented. */
void cli_wrap(FILE *f, const char *text, int indent, int columns);
#endif
