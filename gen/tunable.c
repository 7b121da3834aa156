/* tunable: what a family may vary, as its .lua declares it: values, their names, and what a step to a neighbour is. */
#include "error.h"
#include "family.h"
#include "fields.h"
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#define FEW 4 /* a tunable of so many values takes any other of them in a step, one of more its NEXT neighbours on either side */
#define NEXT 2

int32_t fa_tunable_step(size_t values)
{
    return values <= FEW ? FA_STEP_ANY : NEXT;
}

/* --- reading the declaration; what is read is at the top of the stack --- */

static char *copy(lua_State *L, const char *s)
{
    fa_holds(s); /* its type was looked at */
    char *p = strdup(s);
    if (!p)
        fa_sandbox_no_memory(L, s);
    return p;
}

static int number_of(const fa_family *f, const char *tunable)
{
    int i = 0;
    while (i < f->n_tunables && strcmp(f->tunable[i].name, tunable))
        i++;
    return i < f->n_tunables ? i : -1;
}

/* A small letter, then small letters, digits, '_': neither a number nor in need of quotes. */
static bool is_name(const char *s)
{
    size_t n = strlen(s);
    return n && n <= FA_VALUE_NAME_MAX && *s >= 'a' && *s <= 'z' && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

/* The name of value i of the tunable, at the top of the stack. */
static void read_name(lua_State *L, const fa_family *f, fa_tunable *t, size_t i)
{
    const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (!is_name(name))
        luaL_error(L, "templates/%s: value %d of tunable %s has no name of 1 to %d small letters, digits and _, a letter first", f->file,
                   (int)i + 1, t->name, FA_VALUE_NAME_MAX);
    if (!t->names && !(t->names = calloc(t->n, sizeof *t->names)))
        fa_sandbox_no_memory(L, t->name);
    for (size_t j = 0; j < i; j++)
        if (t->names[j] && !strcmp(t->names[j], name))
            luaL_error(L, "templates/%s: tunable %s has two values of the name %s", f->file, t->name, name);
    ((const char **)(uintptr_t)t->names)[i] = copy(L, name);
}

/* Value i: a number, or { number, name }. */
static int32_t read_value(lua_State *L, const fa_family *f, fa_tunable *t, size_t i)
{
    int ok = 0;
    bool named = lua_istable(L, -1);
    if (named)
        lua_rawgeti(L, -1, 1);
    lua_Integer v = lua_tointegerx(L, -1, &ok);
    if (!ok || v < INT32_MIN || v > INT32_MAX)
        luaL_error(L, "templates/%s: value %d of tunable %s is not an integer of 32 bits", f->file, (int)i + 1, t->name);
    for (size_t j = 0; j < i; j++)
        if (t->values[j] == v)
            luaL_error(L, "templates/%s: tunable %s lists %d twice", f->file, t->name, (int)v);
    if (named) {
        lua_rawgeti(L, -2, 2);
        read_name(L, f, t, i);
        lua_pop(L, 2);
    }
    return (int32_t)v;
}

/* `step` of the tunable: a number of places, or "any". */
static int32_t read_step(lua_State *L, const fa_family *f, const fa_tunable *t)
{
    int ok = 1;
    lua_Integer v = fa_tunable_step(t->n);
    int type = lua_getfield(L, -1, "step");
    if (type == LUA_TSTRING && !strcmp(lua_tostring(L, -1), "any"))
        v = FA_STEP_ANY;
    else if (type != LUA_TNIL && (!(v = lua_tointegerx(L, -1, &ok)) || !ok || v < 1 || v > FA_VALUES_MAX))
        luaL_error(L, "templates/%s: step of tunable %s is neither \"any\" nor a number of places from 1 to %d", f->file, t->name,
                   FA_VALUES_MAX);
    lua_pop(L, 1);
    return (int32_t)v;
}

/* `later` of the tunable: with the value 0, and behind all that old records name. */
static void read_later(lua_State *L, const fa_family *f, fa_tunable *t)
{
    bool zero = false;
    lua_getfield(L, -1, "later");
    t->later = lua_toboolean(L, -1);
    lua_pop(L, 1);
    for (size_t i = 0; i < t->n; i++)
        zero = zero || t->values[i] == 0;
    if (t->later && !zero)
        luaL_error(L, "templates/%s: tunable %s came later, and has no value 0, which configs that lack it have", f->file, t->name);
    if (!t->later && f->n_tunables > 1 && f->tunable[f->n_tunables - 2].later)
        luaL_error(L, "templates/%s: tunable %s stands after one that came later", f->file, t->name);
}

/* The tunable: { name, { values }, doc, step = places, later = true }. */
void fa_tunable_read(lua_State *L, fa_family *f)
{
    fa_tunable *t = &f->tunable[f->n_tunables];
    const char *name = NULL, *doc = NULL;
    int32_t *values;
    if (lua_istable(L, -1)) {
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        lua_rawgeti(L, -3, 3);
        name = lua_type(L, -3) == LUA_TSTRING ? lua_tostring(L, -3) : NULL;
        doc = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        lua_pop(L, 1);
    }
    size_t len = name ? strlen(name) : 0, most = sizeof((fa_config *)0)->tunable[0].name - 1;
    if (!len || len > most || !doc || !lua_istable(L, -1) || lua_rawlen(L, -1) == 0)
        luaL_error(L, "templates/%s: tunable %d is not { name of at most %d letters, { values }, doc }", f->file, f->n_tunables + 1,
                   (int)most);
    fa_holds(name);                                        /* luaL_error does not return */
    if (!strcmp(name, "family") || !strcmp(name, "named")) /* fields of the config's table */
        luaL_error(L, "templates/%s: tunable %d has the name %s; accepted: any but family, named", f->file, f->n_tunables + 1, name);
    if (number_of(f, name) >= 0)
        luaL_error(L, "templates/%s: tunable %s is declared twice", f->file, name);
    if (lua_rawlen(L, -1) > FA_VALUES_MAX)
        luaL_error(L, "templates/%s: tunable %s has %I values; accepted: at most %d", f->file, name, (LUAI_UACINT)lua_rawlen(L, -1),
                   FA_VALUES_MAX);
    f->n_tunables++; /* from here on fa_family_free frees what is there */
    t->n = lua_rawlen(L, -1);
    t->name = copy(L, name);
    t->doc = copy(L, doc);
    t->values = values = calloc(t->n, sizeof *values);
    if (!values)
        fa_sandbox_no_memory(L, name);
    for (size_t i = 0; i < t->n; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        values[i] = read_value(L, f, t, i);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    t->step = read_step(L, f, t);
    read_later(L, f, t);
}

void fa_tunable_free(fa_tunable *t)
{
    for (size_t i = 0; t->names && i < t->n; i++)
        free((void *)(uintptr_t)t->names[i]);
    free((void *)(uintptr_t)t->names);
    free((void *)(uintptr_t)t->name);
    free((void *)(uintptr_t)t->doc);
    free((void *)(uintptr_t)t->values);
    *t = (fa_tunable){ .n = 0 };
}

/* `tile` of the family: { "rows' tunable", "columns' tunable" }. */
void fa_tile_read(lua_State *L, fa_family *f)
{
    f->axis[0] = f->axis[1] = -1;
    int type = lua_getfield(L, -1, "tile");
    for (int i = 0; i < 2 && type == LUA_TTABLE; i++) {
        lua_rawgeti(L, -1, i + 1);
        f->axis[i] = lua_type(L, -1) == LUA_TSTRING ? number_of(f, lua_tostring(L, -1)) : -1;
        lua_pop(L, 1);
    }
    if (type != LUA_TNIL && (f->axis[0] < 0 || f->axis[1] < 0 || f->axis[0] == f->axis[1]))
        luaL_error(L, "templates/%s: tile is not the names of two tunables, { rows, columns }", f->file);
    lua_pop(L, 1);
}

/* The move: { tunable = places, ... }. Its parts stand in the order of the tunables. */
static void read_move(lua_State *L, fa_family *f, int number)
{
    fa_move *m = &f->move[f->n_moves];
    lua_Integer by, named = 0;
    *m = (fa_move){ .n = 0 };
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s: move %d is a %s; accepted: { tunable = places, ... }", f->file, number, luaL_typename(L, -1));
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        named++;
    for (int i = 0; i < f->n_tunables; i++) {
        int ok;
        if (lua_getfield(L, -1, f->tunable[i].name) != LUA_TNIL && m->n < FA_MOVE_PARTS) {
            by = lua_tointegerx(L, -1, &ok);
            if (!ok || by == 0 || by < -FA_VALUES_MAX || by > FA_VALUES_MAX)
                luaL_error(L, "templates/%s: %s of move %d is not a number of places, up or down", f->file, f->tunable[i].name, number);
            m->part[m->n].tunable = i;
            m->part[m->n++].by = (int32_t)by;
        }
        lua_pop(L, 1);
    }
    if (m->n != named || m->n < 2)
        luaL_error(L, "templates/%s: move %d does not name 2 to %d tunables of the family", f->file, number, FA_MOVE_PARTS);
    f->n_moves++;
}

void fa_moves_read(lua_State *L, fa_family *f)
{
    int type = lua_getfield(L, -1, "moves");
    lua_Unsigned n = type == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    if ((type != LUA_TTABLE && type != LUA_TNIL) || n > FA_MOVES_MAX)
        luaL_error(L, "templates/%s: moves is not an array of at most %d entries", f->file, FA_MOVES_MAX);
    for (lua_Unsigned i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i);
        read_move(L, f, (int)i);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void fa_names_push(lua_State *L, const fa_family *f)
{
    lua_newtable(L);
    for (int i = 0; i < f->n_tunables; i++) {
        const fa_tunable *t = &f->tunable[i];
        if (!t->names)
            continue;
        lua_newtable(L);
        for (size_t v = 0; v < t->n; v++)
            if (t->names[v]) {
                lua_pushinteger(L, t->values[v]);
                lua_setfield(L, -2, t->names[v]);
            }
        fa_sandbox_strict(L, -1, t->name);
        lua_setfield(L, -2, t->name);
    }
    fa_sandbox_strict(L, -1, "the table of named values");
}

/* --- values by name --- */

const char *fa_tunable_name(const fa_tunable *t, int32_t value)
{
    for (size_t i = 0; t->names && i < t->n; i++)
        if (t->values[i] == value)
            return t->names[i];
    return NULL;
}

void fa_tunable_list(fa_text *out, const fa_tunable *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const char *name = t->names ? t->names[i] : NULL;
        fa_text_fmt(out, name ? "%s%s (%d)" : "%s%s%d", i ? ", " : "", name ? name : "", t->values[i]);
    }
}

bool fa_tunable_set(fa_config *c, const fa_tunable *t, int32_t value)
{
    if (!fa_config_set(c, t->name, value))
        return false;
    for (int i = 0; t->later && i < c->n; i++)
        c->tunable[i].later = c->tunable[i].later || !strcmp(c->tunable[i].name, t->name);
    return true;
}

fa_config fa_family_first(const fa_family *f)
{
    fa_config c = { .n = 0 };
    strcpy(c.family, f->name);
    for (int i = 0; i < f->n_tunables; i++)
        fa_tunable_set(&c, &f->tunable[i], f->tunable[i].values[0]);
    return c;
}

int fa_family_config_print(char *buf, size_t n, const fa_family *f, const fa_config *c)
{
    int len = snprintf(buf, n, "%s", c->family);
    char mark = ':';
    for (int i = 0; i < c->n; i++) {
        if (!fa_config_tells(c, i))
            continue;
        int number = f ? number_of(f, c->tunable[i].name) : -1;
        const char *name = number >= 0 ? fa_tunable_name(&f->tunable[number], c->tunable[i].value) : NULL;
        char *at = (size_t)len < n ? buf + len : NULL;
        size_t room = at ? n - (size_t)len : 0;
        len += name ? snprintf(at, room, "%c%s=%s", mark, c->tunable[i].name, name)
                    : snprintf(at, room, "%c%s=%d", mark, c->tunable[i].name, c->tunable[i].value);
        mark = ',';
    }
    return len;
}
