/* commands: the table of subcommands, and what there is to say that is no subcommand's. */
#include "gen/error.h"
#include "help.h"
#include <string.h>

const cli_command *const cli_commands[] = { &cli_doctor, &cli_tune, &cli_show, &cli_attend, &cli_verify, &cli_twin, &cli_bench, &cli_run, &cli_sample,
                                            &cli_space, &cli_model, &cli_explore, &cli_emit, &cli_cache, &cli_completion, NULL };
#define COMMANDS (sizeof cli_commands / sizeof *cli_commands - 1)

static const struct {
    const char *name;
    const cli_command *command;
} others[] = { { "help", &cli_help }, { "--help", &cli_help }, { "-h", &cli_help }, { "--version", &cli_version }, { "-V", &cli_version },
               { "worker", &cli_worker } }; /* the last for other processes of fagen alone */

const cli_topic cli_topics[] = {
    { "exit-codes", "exit_codes", "EXIT STATUS", "Exit codes of fagen", "what the exit codes mean", cli_exit_at },
    { "environment", "environment", "ENVIRONMENT", "What fagen reads from the environment", "the variables that fagen reads", cli_environment_at },
    { .name = NULL },
};
#define TOPICS (sizeof cli_topics / sizeof *cli_topics - 1)

bool cli_environment_at(size_t i, cli_term *out)
{
    static const cli_term rows[] = {
        { "FAGEN_DEVICE", 0, "the device: cuda:0, sim:sm_80, ...; --device comes first" },
        { "FAGEN_CACHE_DIR", 0, "where kernels and records are kept: directories separated by colons, the first that can be written takes new files; "
          "empty = no cache; else $XDG_CACHE_HOME/fagen, else ~/.cache/fagen" },
        { "FAGEN_TEMPLATE_DIR", 0, "templates that take the place of the built-in ones, file by file" },
        { "FAGEN_NVRTC", 0, "path of libnvrtc.so; else the loader's path, CUDA_HOME, CUDA_PATH, /usr/local/cuda, wheels" },
        { "FAGEN_LOG", 0, "error, warn, info or debug: the library's log on standard error" },
        { "NO_COLOR, COLUMNS", 0, "as everywhere" },
    };
    if (i >= sizeof rows / sizeof *rows)
        return false;
    *out = rows[i];
    return true;
}

const cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(cli_commands[i]->name, name))
            return cli_commands[i];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].name, name))
            return others[i].command;
    return NULL;
}

static const char *name_at(const void *user, size_t i)
{
    (void)user;
    return i < COMMANDS ? cli_commands[i]->name : i < COMMANDS + TOPICS ? cli_topics[i - COMMANDS].name : i == COMMANDS + TOPICS ? "help" : NULL;
}

fa_status cli_command_unknown(const char *word)
{
    const char *near = cli_nearest(word, name_at, NULL);
    return fa_fail(FA_INVALID, "unknown command \"%.60s\"%s%s%s", word, near ? "; did you mean " : "; fagen help lists them", near ? near : "",
                   near ? "?" : "");
}
