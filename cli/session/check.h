/* check: a verdict of the verifier as --check tells it: by the error, or by what else was broken. */
#ifndef FA_CLI_SESSION_CHECK_H
#define FA_CLI_SESSION_CHECK_H
#include "verify/truth/rule.h"
#include <jansson.h>
#include <stdio.h>

/* {"ok", "rule", "message", "index", "is", "wanted", "max_error", "allowed", "outside"}: rule, message, index and what follows it are null
 * where nothing was broken; index, is and wanted are null too where it is no matter of one element, and numbers where they are finite, else
 * texts: "nan", "inf", "-inf". outside: a lookup of the score program outside of its operand, null where there is none. */
json_t *cli_check_json(const fa_verdict *v);

/* "check      ok: max error ..." or "check      WRONG: places of NaN differ: ...", and "outside    index 2 of rel is 34 of 32 at ...". lse:
 * the error of LSE is told, too. */
void cli_check_print(FILE *to, const fa_verdict *v, bool lse);
#endif
