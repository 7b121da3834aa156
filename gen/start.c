/* start: what start(p, a) of a family returns, read as configs. */
#include "start.h"
#include "cost.h"
#include "error.h"
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    fa_gen *g;
    const fa_family *family;
    const fa_problem *p; /* as it is asked for */
    fa_problem priced;   /* and as the model prices it */
    const fa_arch *a;
    int32_t budget;
    fa_start *out;
    size_t most, *n;
    fa_lua_args fr, shaped;
    fa_tile_counts *known;
} job;

/* Appends the config, if it runs, with its cost. */
static void add(lua_State *L, const job *j, const fa_config *c)
{
    fa_point pt;
    bool size_only;
    if (*j->n == j->most)
        return;
    for (int i = 0; i < c->n; i++)
        fa_lua_args_set(L, &j->fr, c->tunable[i].name, c->tunable[i].value);
    fa_family_judge(L, &j->fr, j->family, FA_NAMED, &pt, &size_only);
    if (pt.fits) {
        fa_start *s = &j->out[(*j->n)++];
        *s = (fa_start){ .config = *c, .spills = pt.spills };
        s->priced = fa_cost_judged(L, &j->fr, &j->shaped, j->family, j->known, &s->cost);
        j->g->priced++;
    }
    lua_pop(L, 1);
}

/* The config of the table at the top: tunables that it leaves out have their first value, names of values count as the values. */
static void read_start(lua_State *L, const job *j)
{
    const fa_family *f = j->family;
    fa_config c = fa_family_first(f);
    int named = 0, fields = 0;
    for (int i = 0; i < f->n_tunables; i++) {
        const fa_tunable *t = &f->tunable[i];
        int type = lua_getfield(L, -1, t->name), ok = 1;
        if (type == LUA_TSTRING) {
            size_t k = 0;
            while (t->names && k < t->n && (!t->names[k] || strcmp(t->names[k], lua_tostring(L, -1))))
                k++;
            ok = t->names && k < t->n;
            c.tunable[i].value = ok ? t->values[k] : 0;
        } else if (type != LUA_TNIL) {
            c.tunable[i].value = (int32_t)lua_tointegerx(L, -1, &ok);
        }
        if (!ok)
            luaL_error(L, "templates/%s: start gives %s as a %s; accepted: one of its values", f->file, t->name, luaL_typename(L, -1));
        named += type != LUA_TNIL;
        lua_pop(L, 1);
    }
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        fields++;
    if (fields != named)
        luaL_error(L, "templates/%s: start gives %d fields, of which %d are tunables", f->file, fields, named);
    add(L, j, &c);
}

static int run(lua_State *L)
{
    job *j = lua_touserdata(L, 1);
    const fa_family *f = j->family;
    char why[104];
    fa_lua_args asked;
    fa_lua_args_push(L, &asked, f, j->p, j->a, j->budget, true);
    fa_lua_args_push(L, &j->shaped, f, &j->priced, j->a, j->budget, true);
    fa_lua_args_push(L, &j->fr, f, j->p, j->a, j->budget, false);
    if (!fa_family_supports(L, &j->fr, f, why, sizeof why))
        return 0;
    if (f->start == LUA_NOREF) {
        const fa_config first = fa_family_first(f);
        add(L, j, &first);
        return 0;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->start);
    lua_pushvalue(L, asked.p);
    lua_pushvalue(L, asked.a);
    lua_call(L, 2, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s: start returned a %s; accepted: an array of tables", f->file, luaL_typename(L, -1));
    lua_Integer n = luaL_len(L, -1);
    if (n > FA_STARTS_MAX)
        luaL_error(L, "templates/%s: start returned %d configs; accepted: at most %d", f->file, (int)n, FA_STARTS_MAX);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        if (!lua_istable(L, -1))
            luaL_error(L, "templates/%s: start %d is a %s; accepted: a table", f->file, (int)i, luaL_typename(L, -1));
        read_start(L, j);
        lua_pop(L, 1);
    }
    return 0;
}

fa_status fa_gen_starts(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, fa_start *out, size_t most, size_t *n)
{
    const char *error;
    job j = { .g = g, .p = p, .a = a, .budget = budget, .out = out, .most = most, .n = n };
    fa_status st = fa_cost_problem(&j.priced, p);
    if (st != FA_OK || (st = fa_gen_load_operation(g, p->op)) != FA_OK)
        return st;
    if (!(j.known = calloc(FA_TILE_COUNTS, sizeof *j.known)))
        return fa_fail(FA_NOMEM, "no memory for the tiles of the model");
    for (size_t i = 0; i < g->n && st == FA_OK; i++) {
        j.family = &g->family[i];
        if (!j.family->loaded || !fa_family_listed(j.family, p))
            continue;
        st = fa_sandbox_run(g->sb, run, &j, &error);
        if (st != FA_OK)
            fa_template_fail(&g->files, st, "the starts of a family", error);
    }
    free(j.known);
    return st;
}
