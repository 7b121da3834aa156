/* completion: the script for zsh. It runs nothing: all words are in it. */
#include "completion.h"
#include <string.h>

/* Text inside single quotes, in a specification of _arguments or _describe, where colons and brackets mean something. */
static void quoted(FILE *f, const char *s, const char *special)
{
    for (; *s; s++) {
        if (*s == '\'')
            fputs("'\\''", f);
        else if (strchr(special, *s))
            fprintf(f, "\\%c", *s);
        else
            fputc(*s == '\n' ? ' ' : *s, f);
    }
}

static void value(FILE *f, const cli_option *o, const completion_names *names)
{
    completion v;
    completion_of(&v, o, names);
    fputc(':', f);
    quoted(f, o->value, ":\\");
    fputc(':', f);
    switch (v.source) {
    case COMPLETE_FREE:
        fputc(' ', f);
        break;
    case COMPLETE_FILES:
        fputs("_files", f);
        break;
    case COMPLETE_FOLDERS:
        fputs("_files -/", f);
        break;
    case COMPLETE_WORDS:
        fputs(v.list ? "_sequence compadd - " : "(", f);
        quoted(f, v.words, ":\\");
        fputs(v.list ? "" : ")", f);
    }
}

static void option(FILE *f, const cli_option *o, const completion_names *names)
{
    fputs(" \\\n            ", f);
    if (o->letter)
        fprintf(f, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, o->type ? "+" : "", o->name, o->type ? "=" : "");
    else
        fprintf(f, "'--%s%s[", o->name, o->type ? "=" : "");
    quoted(f, o->help, "[]:\\");
    fputc(']', f);
    if (o->type)
        value(f, o, names);
    fputc('\'', f);
}

static void command(FILE *f, const cli_program *p, const cli_command *cmd, const completion_names *names)
{
    fprintf(f, "        %s)\n            _arguments -s -S", cmd->name);
    for (const cli_group *g = cmd->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++)
            if (o->help)
                option(f, o, names);
    if (cmd->word) {
        fprintf(f, " \\\n            '1:word:(");
        for (size_t i = 0; cmd->word(p, i); i++)
            fprintf(f, "%s%s", i ? " " : "", cmd->word(p, i));
        fprintf(f, ")'");
    }
    if (cmd->files)
        fprintf(f, " \\\n            '*:file:_files'");
    fprintf(f, "\n            ;;\n");
}

static void described(FILE *f, const cli_command *cmd)
{
    fprintf(f, "            '%s:", cmd->name);
    quoted(f, cmd->summary, "\\");
    fprintf(f, "'\n");
}

void completion_zsh(FILE *f, const cli_program *p, const completion_names *names)
{
    fprintf(f,
            "#compdef fagen\n# zsh completion of fagen %s; made by `fagen completion zsh`\n\n"
            "_fagen() {\n    local curcontext=\"$curcontext\" state state_descr line\n    local -a commands\n    typeset -A opt_args\n"
            "    _arguments -C '(- *)'{-h,--help}'[the subcommands]' '(- *)'{-V,--version}'[the version]' \\\n"
            "        '1:subcommand:->command' '*::argument:->argument'\n"
            "    case $state in\n    command)\n        commands=(\n",
            FA_VERSION_STRING);
    for (size_t i = 0; p->commands[i]; i++)
        described(f, p->commands[i]);
    described(f, p->help);
    fprintf(
        f,
        "        )\n        _describe -t commands 'subcommand of fagen' commands\n        ;;\n    argument)\n        case $words[1] in\n");
    for (size_t i = 0; p->commands[i]; i++)
        command(f, p, p->commands[i], names);
    command(f, p, p->help, names);
    fprintf(
        f,
        "        esac\n        ;;\n    esac\n}\n\n"
        "if [[ $funcstack[1] == _fagen ]]; then # loaded by name; else sourced\n    _fagen \"$@\"\nelse\n    compdef _fagen fagen\nfi\n");
}
