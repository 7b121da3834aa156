/* program: which subcommand of a command runs, and its options. */
#include "autotune/search/compile_pool.h"
#include "cli/help/help.h"
#include "cli/text/progress.h"
#include "commands.h"
#include "gen/error.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int columns_of(bool *known)
{
    const char *text = getenv("COLUMNS");
    struct winsize w;
    int n = text ? (int)strtol(text, NULL, 10) : 0;
    if (n < 20 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
        n = w.ws_col;
    *known = n >= 20;
    return *known ? n : 100;
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
        code = cli_help_command(c, cmd);
    else if (st == FA_OK && argc - rest > cmd->words)
        st = fa_fail(FA_INVALID, "unexpected word \"%.60s\"; usage: %s %s %s", argv[rest + cmd->words], c->program->name, cmd->name,
                     cmd->usage);
    else if (st == FA_OK)
        code = cmd->run(c, args, argc - rest, argv + rest);
    if (st != FA_OK)
        code = cli_fail(c, st);
    free(args);
    return code;
}

int cli_program_run(const cli_program *p, int argc, char **argv)
{
    bool known;
    cli c = { .program = p, .argv = argv, .columns = columns_of(&known), .tty = isatty(STDERR_FILENO) };
    int code;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool plain = (no_color && no_color[0]) || (term && !strcmp(term, "dumb"));
    c.wide = !known;
    c.color = isatty(STDOUT_FILENO) && !plain;
    c.color_err = c.tty && !plain;
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit is a full disk: the write fails, and what is half-written goes away */
    cli_interrupt_open();
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        c.json = c.json || !strcmp(argv[i], "--json"); /* errors of parsing answer in kind */
    const char *word = argc > 1 ? argv[1] : "";
    const cli_command *cmd = cli_command_find(p, word);
    if (cmd) {
        c.command = cmd->name;
        code = run(&c, cmd, argc - 1, argv + 1);
    } else if (!word[0]) {
        cli_help_list(p, stderr);
        code = CLI_EXIT_USAGE;
    } else if (word[0] == '-') {
        code = cli_fail(&c, fa_fail(FA_INVALID, "unknown option \"%.60s\"; usage: %s COMMAND [options]; %s help lists the commands", word,
                                    p->name, p->name));
    } else {
        code = cli_fail(&c, cli_command_unknown(p, word));
    }
    bool unwritten = fflush(stdout) != 0;
    if (unwritten || ferror(stdout)) {
        fprintf(stderr, "fagen: standard output: cannot be written: %s\n", unwritten ? strerror(errno) : "a part of it is missing");
        code = code ? code : CLI_EXIT_FILE;
    }
    if (fa_compile_pool_left()) /* exit() would wait for what NVRTC is at */
        _exit(code);
    return code;
}
