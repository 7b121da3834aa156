/* show: what both halves of `fagen show` read: a problem, or a kernel of the cache by its key. */
#ifndef FA_CLI_SHOW_SHOW_H
#define FA_CLI_SHOW_SHOW_H
#include "cache/entry.h"
#include "cli/options/command.h"
#include "cli/options/problem_options.h"
#include "cli/session/session.h"

typedef struct show_args {
    cli_common common;
    cli_where where;
    cli_problem_options problem_options;
    int32_t limit;
    bool source, ptx, sass;
} show_args;

/* Whether the word is a key or the first 6 digits of one or more, and no problem. */
bool show_is_key(const char *word);
/* The one kernel of the cache whose key begins so. */
int show_key(cli *c, const show_args *a, const char *hex);

/* The form of the kernel that a asks for, to standard output or as `text` of a document, where st is FA_OK; else the failure, which is that
 * of an environment where a tool is `missing`. Frees t; returns an exit code. */
int show_form(cli *c, const show_args *a, fa_status st, fa_text *t, bool missing);

extern const cli_command cli_show;
#endif
