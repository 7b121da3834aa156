/* help: how a subcommand is found, and what there is to say that is none's. */
#include "help.h"
#include "gen/error.h"
#include <string.h>

static bool environment_at(size_t i, cli_term *out)
{
    static const cli_term rows[] = {
        { "FAGEN_DEVICE", 0, "the device: cuda:0, sim:sm_80, ...; --device comes first" },
        { "FAGEN_CACHE_DIR", 0,
          "where kernels and records are kept: directories separated by colons, the first that can be written takes new files; "
          "empty = no cache; else $XDG_CACHE_HOME/fagen, else ~/.cache/fagen" },
        { "FAGEN_TEMPLATE_DIR", 0, "templates that take the place of the built-in ones, file by file" },
        { "FAGEN_NVRTC", 0, "path of libnvrtc.so; else the loader's path, CUDA_HOME, CUDA_PATH, /usr/local/cuda, wheels" },
        { "FAGEN_LOG", 0, "error, warn, info or debug: the library's log on standard error" },
        { "FAGEN_GGML", 0, "words for libfagen_ggml.so in programs with ggml: docs/ggml.md" },
        { "FAGEN_WORKLOAD", 0, "file to which a context that ends adds what it launched; fagen tune --workload FILE tunes that" },
        { "NO_COLOR, COLUMNS", 0, "as everywhere" },
    };
    if (i >= sizeof rows / sizeof *rows)
        return false;
    *out = rows[i];
    return true;
}

const cli_topic cli_topics[] = {
    { "exit-codes", "exit_codes", "EXIT STATUS", "Exit codes of fagen", "what the exit codes mean", cli_exit_at },
    { "environment", "environment", "ENVIRONMENT", "What fagen reads from the environment", "the variables that fagen reads",
      environment_at },
    { .name = NULL },
};
#define TOPICS (sizeof cli_topics / sizeof *cli_topics - 1)

const cli_command *cli_command_find(const cli_program *p, const char *name)
{
    for (size_t i = 0; p->commands[i]; i++)
        if (!strcmp(p->commands[i]->name, name))
            return p->commands[i];
    for (const struct cli_alias *o = p->others; o->name; o++)
        if (!strcmp(o->name, name))
            return o->command;
    return NULL;
}

static const char *name_at(const void *user, size_t i)
{
    const cli_program *p = user;
    size_t n = 0;
    while (p->commands[n])
        n++;
    return i < n ? p->commands[i]->name : i < n + TOPICS ? cli_topics[i - n].name : i == n + TOPICS ? "help" : NULL;
}

fa_status cli_command_unknown(const cli_program *p, const char *word)
{
    const char *near = cli_nearest(word, name_at, p);
    return fa_fail(FA_INVALID, "unknown command \"%.60s\"; %s%s%s", word, near ? "did you mean " : p->name,
                   near ? near : " help lists them", near ? "?" : "");
}
