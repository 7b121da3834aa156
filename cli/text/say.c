/* say: formatted, made plain, printed in one go. */
#include "say.h"
#include "gen/text.h"

void cli_vsay(FILE *f, const char *before, const char *fmt, va_list ap)
{
    fa_text t = { 0 };
    fa_text_vfmt(&t, fmt, ap);
    fa_text_make_plain(&t);
    fprintf(f, "%s%s", before, t.oom ? "(no memory to tell)" : fa_text_cstr(&t));
    fa_text_free(&t);
}

void cli_say(FILE *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cli_vsay(f, "", fmt, ap);
    va_end(ap);
}
