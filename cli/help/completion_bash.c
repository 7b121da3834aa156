/* completion: the script for bash. It runs nothing: all words are in it. */
#include "completion.h"

static const char program[] =
    "# bash splits words at = and : as well; they are joined again, and what it has split off is no part of the reply.\n"
    "_fagen() {\n"
    "    local i joined=() current tail cut command option= base= value= words= kind= at=0\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        if ((i > 1)) && [[ ${COMP_WORDS[i]} == [=:]* || ${joined[-1]} == *[=:] ]]; then\n"
    "            joined[-1]+=${COMP_WORDS[i]}\n"
    "        else\n"
    "            joined+=(\"${COMP_WORDS[i]}\")\n"
    "        fi\n"
    "    done\n"
    "    current=${joined[-1]} tail=${COMP_WORDS[COMP_CWORD]} command=${joined[1]}\n"
    "    [[ $tail == [=:] ]] && tail=\n"
    "    cut=$((${#current} - ${#tail}))\n"
    "    COMPREPLY=()\n"
    "    if ((${#joined[@]} <= 2)); then\n"
    "        value=$current words=$(_fagen_words)\n"
    "    else\n"
    "        for ((i = 2; i < ${#joined[@]} - 1; i++)); do # how many words there were that are no options\n"
    "            if [[ ${joined[i]} != -* ]]; then\n"
    "                ((at++))\n"
    "            elif _fagen_values \"$command\" \"${joined[i]}\" >/dev/null; then\n"
    "                ((i++))\n"
    "            fi\n"
    "        done\n"
    "        value=$current\n"
    "        if [[ $current == --*=* ]]; then\n"
    "            option=${current%%=*} base=${current%%=*}= value=${current#*=}\n"
    "        elif ((i >= ${#joined[@]})); then # the word before takes this one\n"
    "            option=${joined[-2]}\n"
    "        fi\n"
    "        if [[ $option ]]; then\n"
    "            words=$(_fagen_values \"$command\" \"$option\") || return 0\n"
    "        elif [[ $current == -* ]]; then\n"
    "            words=$(_fagen_options \"$command\")\n"
    "        else\n"
    "            words=$(_fagen_words \"$command\" \"$at\")\n"
    "        fi\n"
    "    fi\n"
    "    if [[ $words == ,* ]]; then # a list\n"
    "        words=${words#,}\n"
    "        [[ $value == *,* ]] && base+=${value%,*}, value=${value##*,}\n"
    "    fi\n"
    "    case $words in\n"
    "    @files) kind=-f ;;\n"
    "    @folders) kind=-d ;;\n"
    "    *) kind= ;;\n"
    "    esac\n"
    "    if [[ $kind ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen $kind -- \"$value\")\n"
    "    else\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$value\")\n"
    "    fi\n"
    "    for i in \"${!COMPREPLY[@]}\"; do\n"
    "        COMPREPLY[i]=$base${COMPREPLY[i]}\n"
    "        COMPREPLY[i]=${COMPREPLY[i]:cut}\n"
    "    done\n"
    "}\n"
    "complete -F _fagen fagen\n";

static void option_names(FILE *f, const cli_command *cmd)
{
    const char *between = "";
    fprintf(f, "    %s) echo \"", cmd->name);
    for (const cli_group *g = cmd->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            if (!o->help)
                continue;
            if (o->letter)
                fprintf(f, "%s-%c", between, o->letter), between = " ";
            fprintf(f, "%s--%s", between, o->name);
            between = " ";
        }
    fprintf(f, "\" ;;\n");
}

static void values(FILE *f, const cli_command *cmd, const completion_names *names)
{
    for (const cli_group *g = cmd->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            completion v;
            if (!o->help || !o->type)
                continue;
            completion_of(&v, o, names);
            fprintf(f, "    %s:--%s", cmd->name, o->name);
            if (o->letter)
                fprintf(f, " | %s:-%c", cmd->name, o->letter);
            fprintf(f, ") echo \"%s%s\" ;;\n", v.source == COMPLETE_WORDS && v.list ? "," : "",
                    v.source == COMPLETE_FILES     ? "@files"
                    : v.source == COMPLETE_FOLDERS ? "@folders"
                                                   : v.words);
        }
}

static void words(FILE *f, const cli_program *p, const cli_command *cmd)
{
    if (cmd->word) {
        fprintf(f, "    %s:0) echo \"", cmd->name);
        for (size_t i = 0; cmd->word(p, i); i++)
            fprintf(f, "%s%s", i ? " " : "", cmd->word(p, i));
        fprintf(f, "\" ;;\n");
    }
    if (cmd->files)
        fprintf(f, "    %s:*) echo \"@files\" ;;\n", cmd->name);
}

void completion_bash(FILE *f, const cli_program *p, const completion_names *names)
{
    fprintf(f,
            "# bash completion of fagen %s; made by `fagen completion bash`\n\n"
            "# The options of a subcommand.\n_fagen_options() {\n    case $1 in\n",
            FA_VERSION_STRING);
    for (size_t i = 0; p->commands[i]; i++)
        option_names(f, p->commands[i]);
    option_names(f, p->help);
    fprintf(f, "    esac\n}\n\n# What follows an option: words, after a comma where it is a list of them; @files; @folders; status 1: "
               "nothing does.\n"
               "_fagen_values() {\n    case $1:$2 in\n");
    for (size_t i = 0; p->commands[i]; i++)
        values(f, p->commands[i], names);
    values(f, p->help, names);
    fprintf(f, "    *) return 1 ;;\n    esac\n}\n\n# The words of a subcommand that are no options, after $2 others; without arguments: "
               "the subcommands.\n"
               "_fagen_words() {\n    case $1:$2 in\n    :) echo \"");
    for (size_t i = 0; p->commands[i]; i++)
        fprintf(f, "%s ", p->commands[i]->name);
    fprintf(f, "help --help --version\" ;;\n");
    for (size_t i = 0; p->commands[i]; i++)
        words(f, p, p->commands[i]);
    words(f, p, p->help);
    fprintf(f, "    esac\n}\n\n%s", program);
}
