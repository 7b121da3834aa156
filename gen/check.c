/* check: a config, as a person may have written it, against what its family declares; and the words for a rejection. */
#include "error.h"
#include "family.h"
#include "problem.h"
#include <string.h>

/* `near` is where it mostly is: configs have the order of their family. */
static int index_of(const fa_config *c, const char *name, int near)
{
    if (near < c->n && !strcmp(c->tunable[near].name, name))
        return near;
    int i = 0;
    while (i < c->n && strcmp(c->tunable[i].name, name))
        i++;
    return i;
}

static fa_status unknown(const fa_family *f, const char *name)
{
    fa_text names = { 0 };
    for (int k = 0; k < f->n_tunables; k++)
        fa_text_fmt(&names, "%s%s", k ? ", " : "", f->tunable[k].name);
    fa_fail(FA_INVALID, "config: %s has no tunable \"%s\"; accepted: %s", f->name, name, names.n ? names.s : "none");
    fa_text_free(&names);
    return FA_INVALID;
}

fa_status fa_family_config(fa_config *out, const fa_family *f, const fa_config *c)
{
    *out = (fa_config){ .n = 0 };
    strcpy(out->family, f->name);
    for (int i = 0; i < c->n; i++) {
        int k = i < f->n_tunables && !strcmp(f->tunable[i].name, c->tunable[i].name) ? i : 0;
        while (k < f->n_tunables && strcmp(f->tunable[k].name, c->tunable[i].name))
            k++;
        if (k == f->n_tunables)
            return unknown(f, c->tunable[i].name);
    }
    for (int k = 0; k < f->n_tunables; k++) {
        const fa_tunable *t = &f->tunable[k];
        int at = index_of(c, t->name, k);
        size_t v = 0;
        while (at < c->n && v < t->n && t->values[v] != c->tunable[at].value)
            v++;
        if (at < c->n ? v < t->n : t->later) {
            fa_tunable_set(out, t, at < c->n ? t->values[v] : 0);
            continue;
        }
        fa_text values = { 0 };
        fa_tunable_list(&values, t);
        if (at < c->n)
            fa_fail(FA_INVALID, "config: %s of %s is %d; accepted: %s", t->name, f->name, c->tunable[at].value, fa_text_cstr(&values));
        else
            fa_fail(FA_INVALID, "config: %s of %s is missing; accepted: %s", t->name, f->name, fa_text_cstr(&values));
        fa_text_free(&values);
        return FA_INVALID;
    }
    return FA_OK;
}

fa_status fa_family_reject(const fa_family *f, const fa_problem *p, const fa_arch *a, const fa_config *c, const fa_point *pt,
                           bool supported)
{
    char problem[FA_PROBLEM_TEXT], config[512];
    fa_problem_print_key(problem, sizeof problem, p);
    fa_family_config_print(config, sizeof config, f, c);
    if (!supported)
        return fa_fail(FA_UNSUPPORTED, "%s does not compute %s on %s: %s", f->name, problem, a->name, pt->why);
    return fa_fail(fa_check_status(pt->check), "%s on %s for %s: constraint %s: %s", config, a->name, problem, pt->constraint, pt->why);
}
