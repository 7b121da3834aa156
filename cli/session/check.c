/* check: the verdict as JSON and as lines. */
#include "check.h"
#include "cli/text/cli.h"
#include <math.h>

static json_t *value(const fa_verdict *v, double x)
{
    if (v->at < 0 || !v->rule)
        return json_null();
    return isfinite(x) ? json_real(x) : json_string(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

json_t *cli_check_json(const fa_verdict *v)
{
    return json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "ok", v->ok, "rule", v->rule ? json_string(v->rule) : json_null(), "message",
                     v->ok ? json_null() : json_string(v->text), "index", v->rule && v->at >= 0 ? json_integer(v->at) : json_null(), "is",
                     value(v, v->x), "wanted", value(v, v->wanted), "max_error", cli_json_number(v->o.most), "allowed",
                     cli_json_number(v->most), "outside", *v->outside ? json_string(v->outside) : json_null());
}

void cli_check_print(FILE *to, const fa_verdict *v, bool lse)
{
    if (*v->outside)
        fprintf(to, "outside    %s: the nearest element was read\n", v->outside);
    if (!v->ok) {
        fprintf(to, "check      WRONG: %s\n", v->text);
        return;
    }
    fprintf(to, "check      ok: max error %.3g of %.3g allowed, naive %.3g", v->o.most, v->most, v->naive.most);
    if (lse)
        fprintf(to, ", LSE %.3g", v->lse.most);
    fputc('\n', to);
}
