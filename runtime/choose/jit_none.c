/* jit_none: in place of the JIT, in the library that only launches: nothing is kept, opened or made. */
#include "gen/error.h"
#include "gen/problem.h"
#include "jit.h"
#include "runtime/context/context.h"
#include <string.h>

fa_status fa_jit_open(fa_context *ctx, const fa_options *o, const fa_environment *env)
{
    (void)o, (void)env;
    ctx->bundle_only = true;
    return FA_OK;
}

void fa_jit_close(fa_context *ctx)
{
    (void)ctx;
}

bool fa_jit_compiles(fa_context *ctx)
{
    (void)ctx;
    return false;
}

void fa_jit_describe(fa_context *ctx, const fa_source *s, fa_text *t)
{
    (void)ctx, (void)s;
    fa_text_str(t, "kernel     none: this library launches kernels of bundles\n");
}

void fa_jit_config(fa_context *ctx, const fa_config *c, char *buf, size_t n)
{
    (void)ctx;
    fa_config_print(buf, n, c);
}

void fa_jit_candidates(fa_context *ctx, const fa_problem *p, fa_text *t)
{
    (void)ctx, (void)p, (void)t;
}

fa_status fa_jit_tell(fa_context *ctx, const fa_problem *p, const fa_selection *runs, fa_candidate_fn tell, void *user)
{
    (void)ctx, (void)p, (void)runs, (void)tell, (void)user;
    return FA_OK;
}

bool fa_jit_neighbour(fa_context *ctx, const fa_problem *p, double seconds, double times, char *buf, size_t n)
{
    (void)ctx, (void)p, (void)seconds, (void)times, (void)buf, (void)n;
    return false;
}

static fa_status none(const fa_problem *p)
{
    char line[160];
    fa_problem_print_key(line, sizeof line, p);
    return fa_fail(FA_NO_KERNEL, "%s: this library launches kernels of bundles and makes none", line);
}

fa_status fa_jit_pinnable(fa_context *ctx, const fa_problem *point, const char *text, fa_config *out)
{
    (void)ctx, (void)text, (void)out;
    return none(point);
}

fa_status fa_select_jit(fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *source)
{
    (void)ctx;
    *out = (fa_selection){ .seconds = 0 };
    if (source)
        memset(source, 0, sizeof *source);
    return none(p);
}
