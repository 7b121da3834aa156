/* space: every config of a problem's families, each rejection with its reason. */
#include "space.h"
#include "error.h"
#include "family.h"
#include "problem.h"
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 2000000 /* of one family */
#define RENEW_EVERY 4096   /* points: some kilobytes are for each */

typedef struct job {
    fa_gen *g;
    const fa_problem *p;
    const fa_arch *a;
    int32_t budget;
    const fa_family *family;
    fa_space *out;
    size_t cap;
    int serving;   /* families that compute the problem */
    size_t told;   /* bytes of why */
    char why[512]; /* reasons of those that do not */
} job;

static fa_point *append(lua_State *L, job *j, const fa_family *f, size_t listed)
{
    fa_space *s = j->out;
    if (s->n - listed == POINTS_MAX)
        luaL_error(L, "templates/%s: more than %d configs", f->file, POINTS_MAX);
    if (s->n == j->cap) {
        size_t cap = j->cap ? j->cap * 2 : 1024;
        fa_point *p = realloc(s->points, cap * sizeof *p);
        if (!p)
            fa_sandbox_no_memory(L, "the configs");
        s->points = p;
        j->cap = cap;
    }
    return &s->points[s->n++];
}

/* All combinations, the last tunable fastest. Only what changes is written to Lua's table. Where the first tunables already fail,
 * one point stands for all that share them. */
static void list_family(lua_State *L, job *j, const fa_lua_args *fr, const fa_family *f)
{
    size_t digit[FA_CONFIG_MAX] = { 0 }, listed = j->out->n;
    fa_config c = fa_family_first(f);
    for (int at = 0; at >= 0;) {
        fa_point pt = { .fits = false };
        bool size_only = false, holds = true;
        for (; at < f->n_tunables && holds; at++) {
            fa_lua_args_set(L, fr, f->tunable[at].name, c.tunable[at].value);
            holds = fa_family_prefix(L, fr, f, at, &pt);
        }
        if (holds) {
            fa_family_judge(L, fr, f, FA_LISTED_REST, &pt, &size_only);
            lua_pop(L, 1);
        }
        pt.config = c;
        *append(L, j, f, listed) = pt;
        if ((j->out->n - listed) % RENEW_EVERY == 0)
            fa_sandbox_renew(L);
        j->out->fitting += pt.fits;
        j->out->rejected[pt.limit] += !pt.fits;
        if (size_only && (!j->out->smallest || pt.smem < j->out->smallest))
            j->out->smallest = pt.smem;
        for (bool carry = true; carry && --at >= 0;) {
            carry = ++digit[at] == f->tunable[at].n;
            digit[at] = carry ? 0 : digit[at];
            c.tunable[at].value = f->tunable[at].values[digit[at]];
        }
    }
}

static int run(lua_State *L)
{
    job *j = lua_touserdata(L, 1);
    const fa_family *f = j->family;
    char why[104] = "";
    fa_lua_args fr;
    fa_lua_args_push(L, &fr, f, j->p, j->a, j->budget, false);
    if (fa_family_supports(L, &fr, f, why, sizeof why)) {
        j->serving++;
        list_family(L, j, &fr, f);
    } else if (j->told < sizeof j->why) {
        j->told += (size_t)snprintf(j->why + j->told, sizeof j->why - j->told, "%s%s: %s", j->told ? "; " : "", f->name, why);
    }
    return 0;
}

fa_status fa_space_list(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family, fa_space *out)
{
    fa_problem norm;
    char text[160];
    const char *error;
    *out = (fa_space){ .gen = g };
    if (budget < 0)
        return fa_fail(FA_INVALID, "budget is %d; accepted: bytes of shared memory, or 0 for what the chip offers", budget);
    fa_status st = fa_problem_normalize(&norm, p);
    if (st != FA_OK)
        return st;
    job j = { .g = g, .p = &norm, .a = a, .budget = budget, .out = out };
    st = family ? fa_gen_load_family(g, family) : fa_gen_load_operation(g, norm.op);
    if (st != FA_OK)
        return st;
    const fa_family *only = family ? fa_family_find(g, family) : NULL;
    if (family && !only)
        return FA_INVALID;
    for (size_t i = 0; st == FA_OK && i < g->n; i++) { /* each under limits of its own, so that none is blamed for another */
        j.family = &g->family[i];
        if ((only ? only == j.family : j.family->loaded && fa_family_listed(j.family, &norm)) &&
            (st = fa_sandbox_run(g->sb, run, &j, &error)) != FA_OK)
            fa_template_fail(&g->files, st, "listing the configs", error);
    }
    fa_problem_print_key(text, sizeof text, &norm);
    if (st == FA_OK && !j.serving)
        st = fa_fail(FA_UNSUPPORTED, "no kernel family computes %s on %s: %s", text, a->name, j.why[0] ? j.why : "there is none");
    if (st != FA_OK)
        fa_space_free(out);
    return st;
}

typedef struct judged {
    const fa_family *family;
    const fa_problem *p;
    const fa_arch *a;
    int32_t budget;
    bool supported;
    fa_point *out;
} judged;

static int run_judge(lua_State *L)
{
    judged *j = lua_touserdata(L, 1);
    const fa_config *c = &j->out->config;
    fa_lua_args fr;
    bool size_only;
    fa_lua_args_push(L, &fr, j->family, j->p, j->a, j->budget, false);
    j->supported = fa_family_supports(L, &fr, j->family, j->out->why, sizeof j->out->why);
    for (int i = 0; i < c->n; i++)
        fa_lua_args_set(L, &fr, c->tunable[i].name, c->tunable[i].value);
    if (j->supported)
        fa_family_judge(L, &fr, j->family, FA_LISTED, j->out, &size_only);
    return 0;
}

fa_status fa_space_judge(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const fa_config *c, fa_point *out)
{
    fa_problem norm;
    const char *error;
    *out = (fa_point){ .fits = false };
    fa_status st = fa_problem_normalize(&norm, p);
    if (st == FA_OK)
        st = fa_gen_load_family(g, c->family);
    const fa_family *f = st == FA_OK ? fa_family_find(g, c->family) : NULL;
    if (st == FA_OK)
        st = f ? fa_family_config(&out->config, f, c) : FA_INVALID;
    if (st != FA_OK)
        return st;
    judged j = { .family = f, .p = &norm, .a = a, .budget = budget, .out = out };
    if ((st = fa_sandbox_run(g->sb, run_judge, &j, &error)) != FA_OK)
        return fa_template_fail(&g->files, st, "judging a config", error);
    return j.supported ? FA_OK : fa_family_reject(f, &norm, a, &out->config, out, false);
}

fa_status fa_space_check(const fa_space *s, const fa_problem *p, const fa_arch *a, int32_t budget)
{
    char text[160], config[512];
    if (s->fitting)
        return FA_OK;
    fa_problem_print_key(text, sizeof text, p);
    for (size_t i = 0; s->smallest && i < s->n; i++) {
        const fa_point *pt = &s->points[i];
        if (pt->smem != s->smallest || pt->check != FA_CHECK_SMEM)
            continue;
        fa_gen_config_print(s->gen, config, sizeof config, &pt->config);
        return fa_fail(FA_NO_FIT, "no tile of %s fits %d bytes of shared memory on %s; the smallest needs %d (%s)", text,
                       fa_budget(a, budget), a->name, s->smallest, config);
    }
    if (!s->n)
        return fa_fail(FA_NO_FIT, "%s has no config on %s", text, a->name);
    fa_gen_config_print(s->gen, config, sizeof config, &s->points[0].config);
    return fa_fail(FA_NO_FIT, "none of the %zu configs of %s fits %s; the first, %s, fails %s: %s", s->n, text, a->name, config,
                   s->points[0].constraint, s->points[0].why);
}

static int more_first(const void *a, const void *b)
{
    const fa_rejection *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->constraint, y->constraint);
}

#define KINDS 64 /* constraints of all families together: the rest are not told of */

size_t fa_space_rejections(const fa_space *s, fa_rejection *out, size_t most)
{
    fa_rejection kind[KINDS];
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const fa_point *p = &s->points[i];
        size_t k = 0;
        if (p->fits)
            continue;
        while (k < n && (strcmp(kind[k].constraint, p->constraint) || strcmp(kind[k].family, p->config.family)))
            k++;
        if (k == KINDS)
            continue;
        if (k == n) {
            kind[n] = (fa_rejection){ .limit = p->limit };
            memcpy(kind[n].family, p->config.family, sizeof kind[n].family);
            memcpy(kind[n].constraint, p->constraint, sizeof kind[n].constraint);
            memcpy(kind[n++].why, p->why, sizeof p->why);
        }
        kind[k].n++;
    }
    qsort(kind, n, sizeof *kind, more_first);
    n = n < most ? n : most;
    memcpy(out, kind, n * sizeof *kind);
    return n;
}

void fa_space_free(fa_space *s)
{
    if (!s)
        return;
    free(s->points);
    *s = (fa_space){ 0 };
}
