/* family: what a NAME.lua declares, read once, and its functions called. */
#include "family.h"
#include "batch_kind.h"
#include "error.h"
#include "format.h"
#include "problem.h"
#include "splits.h"
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#define RANK_USUAL 1

const char *fa_limit_name(fa_limit l)
{
    static const char *const names[] = { "rules", "shared memory", "registers" };
    return names[l];
}

/* --- reading the declaration; the table is at the top of the stack --- */

static int function_ref(lua_State *L, const fa_family *f, const char *field, bool required)
{
    int type = lua_getfield(L, -1, field);
    if (type == LUA_TNIL && !required) {
        lua_pop(L, 1);
        return LUA_NOREF;
    }
    if (type != LUA_TFUNCTION)
        luaL_error(L, "templates/%s: %s is a %s; accepted: a function", f->file, field, luaL_typename(L, -1));
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Of a table, or a function that returns one. */
static int field_ref(lua_State *L, const char *field)
{
    if (lua_getfield(L, -1, field) != LUA_TNIL)
        return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return LUA_NOREF;
}

/* "lengths+pages": what it computes beside dense tensors. Absent = nothing. */
static void read_features(lua_State *L, fa_family *f)
{
    int type = lua_getfield(L, -1, "features");
    const char *text = type == LUA_TSTRING ? lua_tostring(L, -1) : type == LUA_TNIL ? "" : NULL;
    if (!text || !fa_features_parse(&f->features, text))
        luaL_error(L, "templates/%s: features is %s; accepted: %s, joined by +", f->file, text ? text : luaL_typename(L, -1),
                   fa_feature_names());
    lua_pop(L, 1);
}

/* "e4m3 e5m2": formats of K and V that it reads beside those of Q's type. Absent = none. */
static void read_formats(lua_State *L, fa_family *f)
{
    const fa_format *row;
    int type = lua_getfield(L, -1, "formats");
    const char *text = type == LUA_TSTRING ? lua_tostring(L, -1) : type == LUA_TNIL ? "" : NULL;
    char names[256] = " ";
    if (text && strlen(text) < sizeof names - 2)
        snprintf(names, sizeof names, " %s ", text);
    for (size_t i = 0; (row = fa_format_row(i)); i++) {
        char name[32];
        snprintf(name, sizeof name, " %s ", row->name);
        f->formats |= strstr(names, name) ? 1u << i : 0;
    }
    if (!text || (*text && !f->formats))
        luaL_error(L, "templates/%s: formats is %s; accepted: names of gen/formats.def, blanks between", f->file,
                   text ? text : luaL_typename(L, -1));
    lua_pop(L, 1);
}

static void read_operation(lua_State *L, fa_family *f)
{
    const char *name = "forward";
    int type = lua_getfield(L, -1, "operation");
    if (type != LUA_TNIL)
        name = type == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1);
    f->operation = fa_operation_named(name);
    if (!f->operation)
        luaL_error(L, "templates/%s: operation is \"%s\"; accepted: a name of gen/operation.c, such as forward", f->file, name);
    lua_pop(L, 1);
}

/* What the constraint at the top of the stack is about. */
static fa_limit read_limit(lua_State *L, const fa_family *f, const char *constraint)
{
    fa_limit l = FA_LIMIT_RULE;
    if (lua_getfield(L, -1, "about") != LUA_TNIL) {
        const char *about = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1);
        while (l < FA_LIMITS && strcmp(fa_limit_name(l), about))
            l++;
        if (l == FA_LIMITS)
            luaL_error(L, "templates/%s: about of constraint %s is \"%s\"; accepted: %s, %s, %s", f->file, constraint, about,
                       fa_limit_name(FA_LIMIT_RULE), fa_limit_name(FA_LIMIT_SHARED), fa_limit_name(FA_LIMIT_REGISTERS));
    }
    lua_pop(L, 1);
    return l;
}

/* The constraint at the top of the stack: { name, function, upto = tunable, search = boolean, about = limit }. */
static void read_constraint(lua_State *L, fa_family *f)
{
    const char *name = NULL;
    if (lua_istable(L, -1)) {
        lua_rawgeti(L, -1, 1);
        name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        lua_rawgeti(L, -2, 2);
    }
    if (!name || !*name || strlen(name) >= sizeof f->constraint[0].name || !lua_isfunction(L, -1))
        luaL_error(L, "templates/%s: constraint %d is not { name of at most %d letters, function }", f->file, f->n_constraints + 1,
                   (int)sizeof f->constraint[0].name - 1);
    fa_holds(name); /* luaL_error does not return */
    strcpy(f->constraint[f->n_constraints].name, name);
    f->constraint[f->n_constraints].ref = luaL_ref(L, LUA_REGISTRYINDEX);
    f->constraint[f->n_constraints].upto = f->n_tunables;
    f->n_constraints++; /* from here on fa_family_free frees what is there */
    if (lua_getfield(L, -2, "upto") != LUA_TNIL) {
        const char *last = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        int i = 0;
        while (i < f->n_tunables && strcmp(f->tunable[i].name, last))
            i++;
        if (i == f->n_tunables)
            luaL_error(L, "templates/%s: upto of constraint %s is \"%s\"; accepted: the name of a tunable", f->file, name, last);
        f->constraint[f->n_constraints - 1].upto = i;
    }
    lua_getfield(L, -3, "search");
    f->constraint[f->n_constraints - 1].search = lua_toboolean(L, -1);
    lua_pop(L, 3);
    f->constraint[f->n_constraints - 1].limit = read_limit(L, f, name);
}

static void read_list(lua_State *L, fa_family *f, const char *field, int most, void (*read)(lua_State *, fa_family *))
{
    if (lua_getfield(L, -1, field) != LUA_TTABLE || (int)lua_rawlen(L, -1) > most)
        luaL_error(L, "templates/%s: %s is not an array of at most %d entries", f->file, field, most);
    int n = (int)lua_rawlen(L, -1);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        read(L, f);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void fa_family_load(lua_State *L, fa_gen *g, fa_family *f)
{
    char file[sizeof f->name + 8];
    strcpy(file, f->name);
    strcat(file, ".lua");
    luaL_checkstack(L, 16, NULL);
    int index;
    if (fa_sandbox_reason(L, fa_files_get(&g->files, &index, file)) != FA_OK)
        luaL_error(L, "%s", fa_last_error());
    strcpy(f->file, g->files.file[index].name);
    fa_sandbox_env(L);
    g->none = (fa_output){ .files = &g->files, .closed = true };
    fa_template_provide(L, -1, &g->none);
    fa_template_include(L, -1, &g->none, file);
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s returns a %s; accepted: the table of a family", f->file, luaL_typename(L, -1));
    if (lua_getfield(L, -1, "doc") != LUA_TSTRING)
        luaL_error(L, "templates/%s: doc is a %s; accepted: a string of one line", f->file, luaL_typename(L, -1));
    if (!(f->doc = strdup(lua_tostring(L, -1))))
        fa_sandbox_no_memory(L, file);
    lua_getfield(L, -2, "default");
    f->is_default = lua_isnil(L, -1) || lua_toboolean(L, -1);
    lua_getfield(L, -3, "reference");
    f->is_reference = lua_toboolean(L, -1);
    lua_getfield(L, -4, "few_rows");
    f->few_rows = lua_toboolean(L, -1);
    lua_getfield(L, -5, "splits");
    f->splits = lua_toboolean(L, -1);
    lua_getfield(L, -6, "widens");
    f->widens = lua_toboolean(L, -1);
    lua_getfield(L, -7, "eight");
    f->eight = lua_toboolean(L, -1);
    lua_getfield(L, -8, "wide_q");
    f->wide_q = lua_toboolean(L, -1);
    lua_pop(L, 8);
    f->rank = fa_family_integer(L, f, "the family", "rank", RANK_USUAL);
    f->head_dim = fa_family_integer(L, f, "the family", "head_dim", FA_HEAD_DIM_USUAL);
    read_list(L, f, "tunables", FA_CONFIG_MAX, fa_tunable_read);
    fa_tile_read(L, f);
    fa_moves_read(L, f);
    read_list(L, f, "constraints", FA_CONSTRAINTS_MAX, read_constraint);
    f->supports = function_ref(L, f, "supports", true);
    f->layout = function_ref(L, f, "layout", true);
    f->steps = function_ref(L, f, "steps", true);
    f->work = function_ref(L, f, "work", false);
    f->start = function_ref(L, f, "start", false);
    f->workspace = field_ref(L, "workspace");
    f->params = field_ref(L, "params");
    read_operation(L, f);
    read_features(L, f);
    read_formats(L, f);
    lua_pop(L, 2); /* the family's table, the environment */
}

void fa_family_free(fa_family *f)
{
    for (int i = 0; i < f->n_tunables; i++)
        fa_tunable_free(&f->tunable[i]);
    free(f->doc);
    *f = (fa_family){ .n_tunables = 0 };
}

const fa_family *fa_family_find(const fa_gen *g, const char *name)
{
    char names[512] = "none";
    size_t at = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (!strcmp(g->family[i].name, name) && g->family[i].loaded)
            return &g->family[i];
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", g->family[i].name);
        at = at < sizeof names ? at : sizeof names - 1;
    }
    fa_fail(FA_INVALID, "family is \"%.60s\"; accepted: %s", name, names);
    return NULL;
}

bool fa_family_listed(const fa_family *f, const fa_problem *p)
{
    bool any_rows = p->features || p->kv_dtype; /* of few bits there is no other family */
    return f->is_default && (!f->few_rows || any_rows || fa_problem_few_rows(p)) && (!f->splits || fa_problem_splits(p));
}

bool fa_family_widens(const fa_family *f, const fa_problem *p)
{
    const fa_format *of[] = { fa_format_k(p), fa_format_v(p) };
    bool reads = true;
    for (int i = 0; i < 2; i++)
        reads = reads && of[i] && f->formats >> (of[i]->dtype - FA_E4M3) & 1;
    return f->widens && of[0] && !reads;
}

/* --- calling the family's functions --- */

/* Calls a function that answers true, or false and a reason. */
static bool ask(lua_State *L, const fa_lua_args *fr, const fa_family *f, int ref, const char *name, bool with_config, char *why, size_t n)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    lua_pushvalue(L, fr->p);
    if (with_config)
        lua_pushvalue(L, fr->c);
    lua_pushvalue(L, fr->a);
    lua_call(L, with_config ? 3 : 2, 2);
    if (!lua_isboolean(L, -2))
        luaL_error(L, "templates/%s: %s returned a %s; accepted: true, or false and a reason", f->file, name, luaL_typename(L, -2));
    bool yes = lua_toboolean(L, -2);
    if (!yes) {
        const char *s = lua_tostring(L, -1);
        snprintf(why, n, "%s", s ? s : "");
    }
    lua_pop(L, 2);
    return yes;
}

bool fa_family_supports(lua_State *L, const fa_lua_args *fr, const fa_family *f, char *why, size_t n)
{
    if (fr->problem->op != f->operation->op) {
        snprintf(why, n, "it computes %s, not %s", f->operation->name, fa_op_name(fr->problem->op));
        return false;
    }
    if (f->eight != fa_problem_eight(fr->problem)) {
        snprintf(why, n, f->eight ? "it multiplies Q, K and V of 8 bits, not %s" : "it does not multiply %s",
                 fa_dtype_name(fr->problem->dtype));
        return false;
    }
    int32_t computes = f->features | (f->workspace == LUA_NOREF ? FA_FEATURE_NO_WORKSPACE : 0);
    if (f->features & FA_FEATURE_SCORE) /* what reads arrays by itself reads them wherever they lie */
        computes |= FA_FEATURE_SCORE_ANYWHERE | FA_FEATURE_SCORE_COLUMNS;
    int32_t beyond = fr->problem->features & ~computes;
    if (beyond) {
        snprintf(why, n, "it computes without %s", fa_feature_name(beyond & -beyond));
        return false;
    }
    int32_t d = fr->problem->d, dv = fr->problem->dv;
    if (d > f->head_dim || dv > f->head_dim) {
        snprintf(why, n, "%s = %d is above its %d", d > f->head_dim ? "d" : "dv", d > f->head_dim ? d : dv, f->head_dim);
        return false;
    }
    if (fr->problem->q_dtype && !f->wide_q) {
        snprintf(why, n, "it does not read Q in %s", fa_dtype_name(fr->problem->q_dtype));
        return false;
    }
    const fa_format *of[] = { fa_format_k(fr->problem), fa_format_v(fr->problem) };
    for (int i = 0; i < 2; i++)
        if (of[i] && !(f->formats >> (of[i]->dtype - FA_E4M3) & 1)) {
            snprintf(why, n, "it does not read %s in %s", i ? "V" : "K", of[i]->name);
            return false;
        }
    return ask(L, fr, f, f->supports, "supports", false, why, n);
}

int32_t fa_family_integer(lua_State *L, const fa_family *f, const char *of, const char *field, int32_t fallback)
{
    int ok = 1;
    lua_Integer v = fallback;
    if (lua_getfield(L, -1, field) == LUA_TBOOLEAN)
        v = lua_toboolean(L, -1);
    else if (!lua_isnil(L, -1))
        v = lua_tointegerx(L, -1, &ok);
    if (!ok || v < 0 || v > INT32_MAX)
        luaL_error(L, "templates/%s: %s of %s is not an integer from 0 to 2^31 - 1", f->file, field, of);
    lua_pop(L, 1);
    return (int32_t)v;
}

/* The constraints that every family shares. */
static const struct {
    const char *name;
    fa_limit limit;
    fa_status status; /* of a config that a caller names */
} built_in[] = {
    [FA_CHECK_FAMILY] = { "", FA_LIMIT_RULE, FA_UNSUPPORTED },
    [FA_CHECK_SMEM] = { "smem", FA_LIMIT_SHARED, FA_NO_FIT },
    [FA_CHECK_THREADS] = { "threads", FA_LIMIT_RULE, FA_UNSUPPORTED },
    [FA_CHECK_REGISTERS] = { "registers", FA_LIMIT_REGISTERS, FA_NO_FIT },
};

fa_status fa_check_status(fa_check c)
{
    return built_in[c].status;
}

static void reject(fa_point *out, fa_check check, const char *constraint, fa_limit limit)
{
    snprintf(out->constraint, sizeof out->constraint, "%s", constraint);
    out->check = check;
    out->limit = limit;
}

static void reject_layout(fa_point *out, fa_check check)
{
    reject(out, check, built_in[check].name, built_in[check].limit);
}

static void judge_layout(const fa_lua_args *fr, int32_t ctas, fa_point *out, bool *size_only)
{
    const fa_arch *a = fr->arch;
    bool size = out->smem <= fr->budget, threads = out->threads <= FA_THREADS_MAX;
    int64_t regs = (int64_t)out->regs * out->threads * (ctas > 1 ? ctas : 1);
    bool registers = out->regs <= a->regs_thread && regs <= a->regs_sm;
    *size_only = !size && threads && registers;
    out->fits = size && threads && registers;
    if (!size) {
        reject_layout(out, FA_CHECK_SMEM);
        snprintf(out->why, sizeof out->why, "%d > %d bytes", out->smem, fr->budget);
    } else if (!threads) {
        reject_layout(out, FA_CHECK_THREADS);
        snprintf(out->why, sizeof out->why, "%d > %d threads", out->threads, FA_THREADS_MAX);
    } else if (out->regs > a->regs_thread) {
        reject_layout(out, FA_CHECK_REGISTERS);
        snprintf(out->why, sizeof out->why, "%d > %d per thread", out->regs, a->regs_thread);
    } else if (!registers) {
        reject_layout(out, FA_CHECK_REGISTERS);
        snprintf(out->why, sizeof out->why, "%lld > %d per SM", (long long)regs, a->regs_sm);
    }
}

static void unjudged(fa_point *out)
{
    out->fits = false;
    out->smem = out->regs = out->threads = 0;
    out->spills = false;
    out->constraint[0] = out->why[0] = 0;
    out->check = FA_CHECK_FAMILY;
    out->limit = FA_LIMIT_RULE;
}

/* The constraints whose last tunable is one of from..to, with or without those of the search. Those of the first tunables are asked first,
 * as a listing asks them: a config that is named is refused for the same one. */
static bool ask_constraints(lua_State *L, const fa_lua_args *fr, const fa_family *f, int from, int to, bool search, fa_point *out)
{
    for (int upto = from; upto <= to; upto++)
        for (int i = 0; i < f->n_constraints; i++)
            if (f->constraint[i].upto == upto && (search || !f->constraint[i].search) &&
                !ask(L, fr, f, f->constraint[i].ref, f->constraint[i].name, true, out->why, sizeof out->why)) {
                reject(out, FA_CHECK_FAMILY, f->constraint[i].name, f->constraint[i].limit);
                return false;
            }
    return true;
}

bool fa_family_prefix(lua_State *L, const fa_lua_args *fr, const fa_family *f, int last, fa_point *out)
{
    unjudged(out);
    return ask_constraints(L, fr, f, last, last, true, out);
}

void fa_family_layout(lua_State *L, const fa_lua_args *fr, const fa_family *f, fa_point *out)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->layout);
    lua_pushvalue(L, fr->p);
    lua_pushvalue(L, fr->c);
    lua_pushvalue(L, fr->a);
    lua_call(L, 3, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s: layout returned a %s; accepted: a table", f->file, luaL_typename(L, -1));
    out->smem = fa_family_integer(L, f, "layout", "bytes", -1);
    out->threads = fa_family_integer(L, f, "layout", "threads", -1);
    out->regs = fa_family_integer(L, f, "layout", "regs", 0);
    lua_getfield(L, -1, "spills");
    out->spills = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (!out->threads)
        luaL_error(L, "templates/%s: threads of layout is 0", f->file);
}

void fa_family_judge(lua_State *L, const fa_lua_args *fr, const fa_family *f, fa_judging how, fa_point *out, bool *size_only)
{
    *size_only = false;
    unjudged(out);
    if (!ask_constraints(L, fr, f, how == FA_LISTED_REST ? f->n_tunables : 0, f->n_tunables, how != FA_NAMED, out)) {
        lua_pushnil(L);
        return;
    }
    fa_family_layout(L, fr, f, out);
    judge_layout(fr, fa_family_integer(L, f, "layout", "ctas", 1), out, size_only);
}
