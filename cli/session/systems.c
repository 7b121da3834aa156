/* systems: found by what the families say of themselves. */
#include "systems.h"
#include "gen/error.h"
#include "ranking.h"
#include <stdio.h>
#include <string.h>

/* The family whose name is the n letters at s and that computes the operation. */
static const char *named(const fa_gen *g, int32_t op, const char *s, size_t n)
{
    for (size_t i = 0; i < fa_gen_families(g); i++) {
        const char *name = fa_gen_family(g, i);
        if (strlen(name) == n && !memcmp(name, s, n) && fa_gen_operation(g, i) == op)
            return name;
    }
    return NULL;
}

static bool add(cli_systems *out, const char *name)
{
    for (int i = 0; i < out->n; i++)
        if (out->name[i] == name)
            return true;
    if (out->n == CLI_SYSTEMS_MAX)
        return false;
    out->name[out->n++] = name;
    return true;
}

fa_status cli_systems_of(cli_systems *out, const fa_gen *g, int32_t op, const char *words)
{
    const char *reference = fa_gen_reference(g, op);
    *out = (cli_systems){ .n = 0 };
    if (words && !strcmp(words, "none"))
        return FA_OK;
    if (!words || !strcmp(words, "all")) {
        if (reference)
            add(out, reference);
        for (size_t i = fa_gen_defaults(g); i < fa_gen_families(g); i++)
            if (fa_gen_operation(g, i) == op)
                add(out, fa_gen_family(g, i)); /* beyond CLI_SYSTEMS_MAX they are left out */
        return FA_OK;
    }
    for (const char *s = words; *s; s += *s == ',') {
        size_t n = strcspn(s, ",");
        const char *name = named(g, op, s, n);
        if (!name || !add(out, name)) {
            char names[400];
            size_t at = 0;
            for (size_t i = 0; i < fa_gen_families(g) && at < sizeof names; i++)
                at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", fa_gen_family(g, i));
            return fa_fail(FA_INVALID, "--systems: \"%.*s\" is no family that is compared; accepted: all, none, or at most %d of %s",
                           (int)(n < 40 ? n : 40), s, CLI_SYSTEMS_MAX, names);
        }
        s += n;
    }
    return FA_OK;
}

bool cli_systems_plan(fa_context *ctx, fa_gen *g, const fa_problem *p, const char *family, const fa_plan **plan)
{
    cli_ranking r;
    if (cli_rank(g, p, fa_context_arch(ctx), fa_context_budget(ctx), family, &r) != FA_OK)
        return false;
    bool ok = fa_plan_make(ctx, p, &r.space.points[r.r[0].point].config, "for comparison", plan) == FA_OK;
    cli_ranking_free(&r);
    return ok;
}
