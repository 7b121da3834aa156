/* main: the command `fagen`: a table of subcommands, and help for people. */
#include "command.h"
#include "gen/error.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* In the order in which a person meets them. */
static const cli_command *const commands[] = { &cli_doctor, &cli_tune, &cli_show, &cli_attend, &cli_verify, &cli_twin, &cli_bench,
                                               &cli_run, &cli_sample, &cli_space, &cli_model, &cli_explore, &cli_emit, &cli_cache };
#define COMMANDS (sizeof commands / sizeof *commands)

static const cli_word when[] = { { "never", 0 }, { "auto", 1 }, { "always", 2 }, { NULL, 0 } };
const cli_option cli_common_options[] = {
    { .name = "json", .at = offsetof(cli_common, json), .help = "one JSON document on standard output, and nothing else there" },
    { .name = "quiet", .letter = 'q', .at = offsetof(cli_common, quiet), .help = "no notes and no progress on standard error" },
    { .name = "color", .kind = &cli_choice, .at = offsetof(cli_common, color), .value = "WHEN", .help = "colours", .preset = "auto",
      .words = when },
    { .name = "help", .letter = 'h', .at = offsetof(cli_common, help), .help = "this text" },
    { .name = NULL },
};

static void environment_help(FILE *f)
{
    fputs("What fagen reads from the environment\n\n"
          "  FAGEN_DEVICE        the device: cuda:0, sim:sm_80, ...; --device comes first\n"
          "  FAGEN_CACHE_DIR     where kernels and records are kept: directories separated by colons, the first that can be\n"
          "                      written takes new files; empty = no cache; else $XDG_CACHE_HOME/fagen, else ~/.cache/fagen\n"
          "  FAGEN_TEMPLATE_DIR  templates that take the place of the built-in ones, file by file\n"
          "  FAGEN_NVRTC         path of libnvrtc.so; else the loader's path, CUDA_HOME, CUDA_PATH, /usr/local/cuda, wheels\n"
          "  FAGEN_LOG           error, warn, info or debug: the library's log on standard error\n"
          "  NO_COLOR, COLUMNS   as everywhere\n", f);
}

static const struct {
    const char *name, *summary;
    void (*print)(FILE *f);
} topics[] = {
    { "exit-codes", "what the exit codes mean", cli_exit_help },
    { "environment", "the variables that fagen reads", environment_help },
};
#define TOPICS (sizeof topics / sizeof *topics)

static const cli_command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return strcmp(name, cli_worker.name) ? NULL : &cli_worker; /* for other processes of fagen alone */
}

static const char *name_at(const void *user, size_t i)
{
    (void)user;
    return i < COMMANDS ? commands[i]->name : i < COMMANDS + TOPICS ? topics[i - COMMANDS].name : i == COMMANDS + TOPICS ? "help" : NULL;
}

static void list_commands(FILE *f)
{
    fprintf(f, "fagen %s: attention kernels, compiled and tuned for your chip\n\nusage: fagen COMMAND [options]\n\n", FA_VERSION_STRING);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(f, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(f, "\n  fagen COMMAND --help or fagen help COMMAND tells more; also:\n\n");
    for (size_t i = 0; i < TOPICS; i++)
        fprintf(f, "  help %-12s %s\n", topics[i].name, topics[i].summary);
    fprintf(f, "  --version         the version\n");
}

static void help_command(const cli_command *cmd, int columns)
{
    printf("fagen %s: %s\n\nusage: fagen %s %s\n\n", cmd->name, cmd->summary, cmd->name, cmd->usage);
    cli_wrap(stdout, cmd->about, 0, columns);
    printf("\nExamples\n");
    for (const char *s = cmd->examples; *s;) {
        size_t n = strcspn(s, "\n");
        printf("  %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
    cli_args_help(stdout, cmd->groups, columns);
}

static int columns_of(bool *known)
{
    const char *text = getenv("COLUMNS");
    struct winsize w;
    int n = text ? atoi(text) : 0;
    if (n < 20 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
        n = w.ws_col;
    *known = n >= 20;
    return *known ? n : 100;
}

static fa_status unknown_command(const char *word)
{
    const char *near = cli_nearest(word, name_at, NULL);
    return fa_fail(FA_INVALID, "unknown command \"%.60s\"%s%s%s", word, near ? "; did you mean " : "; fagen help lists them", near ? near : "",
                   near ? "?" : "");
}

static int help(cli *c, int argc, char **argv)
{
    if (argc < 1) {
        list_commands(stdout);
        return CLI_EXIT_OK;
    }
    const cli_command *cmd = find(argv[0]);
    if (cmd) {
        help_command(cmd, c->columns);
        return CLI_EXIT_OK;
    }
    for (size_t i = 0; i < TOPICS; i++)
        if (!strcmp(topics[i].name, argv[0])) {
            topics[i].print(stdout);
            return CLI_EXIT_OK;
        }
    return cli_fail(c, unknown_command(argv[0]));
}

static int run(cli *c, const cli_command *cmd, int argc, char **argv)
{
    int rest;
    void *args = calloc(1, cmd->size);
    if (!args)
        return cli_fail(c, fa_fail(FA_NOMEM, "no memory for the options"));
    fa_status st = cli_args_parse(cmd->groups, args, cmd->size, argc, argv, &rest);
    const cli_common *common = args;
    int code = CLI_EXIT_OK;
    c->json = c->json || common->json;
    c->quiet = common->quiet;
    if (st == FA_OK && common->color == 2)
        c->color = c->color_err = true;
    if (st == FA_OK && common->color == 0)
        c->color = c->color_err = false;
    if (c->json)
        c->color = false;
    if (st == FA_OK && common->help)
        help_command(cmd, c->columns);
    else if (st == FA_OK && argc - rest > cmd->words)
        st = fa_fail(FA_INVALID, "unexpected word \"%.60s\"; usage: fagen %s %s", argv[rest + cmd->words], cmd->name, cmd->usage);
    else if (st == FA_OK)
        code = cmd->run(c, args, argc - rest, argv + rest);
    if (st != FA_OK)
        code = cli_fail(c, st);
    free(args);
    return code;
}

int main(int argc, char **argv)
{
    bool known;
    cli c = { .argv = argv, .columns = columns_of(&known), .tty = isatty(STDERR_FILENO) };
    int code;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool plain = (no_color && no_color[0]) || (term && !strcmp(term, "dumb"));
    c.wide = !known;
    c.color = isatty(STDOUT_FILENO) && !plain;
    c.color_err = c.tty && !plain;
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit is a full disk: the write fails, and what is half-written goes away */
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        c.json = c.json || !strcmp(argv[i], "--json"); /* errors of parsing answer in kind */
    const char *word = argc > 1 ? argv[1] : "";
    const cli_command *cmd = find(word);
    if (cmd) {
        c.command = cmd->name;
        code = run(&c, cmd, argc - 1, argv + 1);
    } else if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        code = CLI_EXIT_OK;
        printf("fagen %s\n", FA_VERSION_STRING);
    } else if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h")) {
        code = help(&c, argc - 2, argv + 2);
    } else if (!word[0]) {
        list_commands(stderr);
        code = CLI_EXIT_USAGE;
    } else if (word[0] == '-') {
        code = cli_fail(&c, fa_fail(FA_INVALID, "unknown option \"%.60s\"; usage: fagen COMMAND [options]; fagen help lists the commands", word));
    } else {
        code = cli_fail(&c, unknown_command(word));
    }
    bool unwritten = fflush(stdout) != 0;
    if (unwritten || ferror(stdout)) {
        fprintf(stderr, "fagen: standard output: cannot be written: %s\n", unwritten ? strerror(errno) : "a part of it is missing");
        code = code ? code : CLI_EXIT_FILE;
    }
    return code;
}
