/* form: the text of a kernel, PTX or machine code, as an answer. */
#include "cli/text/say.h"
#include "gen/error.h"
#include "show.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

int show_form(cli *c, const show_args *a, fa_status st, fa_text *t, bool missing)
{
    int code = CLI_EXIT_OK;
    if (st != FA_OK)
        code = cli_fail_with(c, st, missing ? CLI_EXIT_MISSING : cli_exit_of(st));
    else if (c->json)
        code = cli_answer(c,
                          json_pack("{s:s,s:o}", "form",
                                    a->source ? "source"
                                    : a->ptx  ? "ptx"
                                              : "sass",
                                    "text", json_stringn(fa_text_cstr(t), t->n)),
                          CLI_EXIT_OK);
    else if (isatty(STDOUT_FILENO))
        cli_say(stdout, "%s", fa_text_cstr(t));
    else if (fwrite(fa_text_cstr(t), 1, t->n, stdout) != t->n || fflush(stdout) != 0)
        code = cli_fail(c, fa_fail(FA_IO, "standard output: cannot be written: %s", strerror(errno)));
    fa_text_free(t);
    return code;
}
