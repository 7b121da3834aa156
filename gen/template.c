/* template: two constructs, `//|` lines and $(values); all else is verbatim. */
#include "template.h"
#include "error.h"
#include "translate.h"
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16               /* of includes */
#define BYTES_PER_STEP 4       /* of text that is written */
#define OUTPUT_BYTES (2 << 20) /* of one rendered text, and four times as many with its #line */
#define INDENT_MOST 64         /* columns */

/* --- what the translated chunk calls --- */

/* __value(v, expression): the text of a value, or an error that names the expression. */
static int value(lua_State *L)
{
    const char *expr = luaL_checkstring(L, 2);
    lua_Number x;
    switch (lua_type(L, 1)) {
    case LUA_TSTRING:
        lua_settop(L, 1);
        return 1;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, 1) ? "true" : "false");
        return 1;
    case LUA_TNUMBER:
        if (lua_isinteger(L, 1)) {
            lua_pushfstring(L, "%I", (LUAI_UACINT)lua_tointeger(L, 1));
            return 1;
        }
        x = lua_tonumber(L, 1);
        if (floor(x) != x || fabs(x) >= 0x1p63)
            return luaL_error(L, "$(%s) is %f, a float with a fraction; write f32(%s) for a literal", expr, x, expr);
        lua_pushfstring(L, "%I", (LUAI_UACINT)x);
        return 1;
    case LUA_TNIL:
        return luaL_error(L, "$(%s) is nil", expr);
    default:
        return luaL_error(L, "$(%s) is a %s; accepted: number, string, boolean", expr, luaL_typename(L, 1));
    }
}

static bool is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\n')
            return false;
    return true;
}

/* Follows comments, strings and continued lines through one written line, for the places where #line must not stand. */
static void follow(fa_output *o, const char *s, size_t n)
{
    bool quoted = false;
    char q = 0;
    for (size_t i = 0; i < n; i++) {
        char next = i + 1 < n ? s[i + 1] : 0;
        if (o->comment) {
            o->comment = !(s[i] == '*' && next == '/');
            i += !o->comment;
        } else if (quoted) {
            i += s[i] == '\\';
            quoted = s[i < n ? i : n - 1] != q && s[i < n ? i : n - 1] != '\n';
        } else if (s[i] == '/' && next == '/') {
            const char *nl = memchr(s + i, '\n', n - i);
            i = nl ? (size_t)(nl - s) : n;
        } else if (s[i] == '/' && next == '*') {
            o->comment = true;
            i++;
        } else if (s[i] == '"' || s[i] == '\'') {
            quoted = true;
            q = s[i];
        }
    }
    o->continued = n >= 2 && s[n - 2] == '\\';
}

/* The line of a template, without its end; nothing where there is no such line. False: there is no such file. */
static bool row_of(const fa_output *o, int file, int line, const char **s, size_t *n)
{
    if (file < 0 || file >= o->files->n || line < 1)
        return false;
    const fa_file *f = &o->files->file[file];
    bool there = line <= f->rows;
    *s = there ? f->bytes + f->row[line - 1] : "";
    *n = there ? f->row[line] - f->row[line - 1] : 0;
    *n -= *n && (*s)[*n - 1] == '\n';
    *n -= *n && (*s)[*n - 1] == '\r';
    return true;
}

/* The piece at argument *at, which moves past it: columns of the line, or text. */
static const char *piece(lua_State *L, const char *row, size_t columns, int *at, size_t *n)
{
    if (!lua_isinteger(L, *at))
        return luaL_checklstring(L, (*at)++, n);
    lua_Integer from = lua_tointeger(L, *at), to = lua_tointeger(L, *at + 1);
    if (from < 0 || to < from || to > (lua_Integer)columns)
        luaL_error(L, "__line is not for scripts");
    *at += 2;
    *n = (size_t)(to - from);
    return row + from;
}

static void add_piece(fa_output *o, const char *s, size_t n, bool first)
{
    if (first && *s != '#')
        fa_text_fill(&o->text, ' ', (size_t)o->indent);
    fa_text_add(&o->text, s, n);
}

/* __line(line, file, piece...): writes one line, or without pieces the template's own. */
static int put_line(lua_State *L)
{
    fa_output *o = lua_touserdata(L, lua_upvalueindex(1));
    int line = (int)lua_tointeger(L, 1), file = (int)lua_tointeger(L, 2), top = lua_gettop(L);
    size_t start = o->text.n, n, columns;
    const char *row, *s;
    if (!row_of(o, file, line, &row, &columns)) /* a script can name what the translation names */
        return luaL_error(L, "__line is not for scripts");
    if (o->closed)
        return luaL_error(L, "text where none can be written");
    if (top < 3 && columns)
        add_piece(o, row, columns, true);
    for (int i = 3; i <= top;) {
        bool first = i == 3;
        s = piece(L, row, columns, &i, &n);
        add_piece(o, s, n, first);
    }
    fa_text_add(&o->text, "\n", 1);
    fa_sandbox_charge(L, (double)(o->text.n - start) / BYTES_PER_STEP); /* of a blank line, which is dropped, too */
    if (o->text.oom || o->lined.oom)
        fa_sandbox_no_memory(L, "the text");
    if (o->text.n > OUTPUT_BYTES || o->lined.n > 4 * OUTPUT_BYTES)
        return luaL_error(L, "the text is longer than %d bytes", OUTPUT_BYTES);
    s = o->text.s + start;
    n = o->text.n - start;
    bool blank = is_blank(s, n), adjacent = o->at_file == file && o->at_line + 1 == line;
    o->at_file = file;
    o->at_line = line;
    if (blank && (!start || (o->blank && !adjacent))) {
        o->text.n = start; /* a blank line that only a skipped stretch of the template leaves beside another */
        o->text.s[start] = 0;
        return 0;
    }
    if ((o->view_file != file || o->view_line != line) && !o->continued && !o->comment) {
        fa_text_fmt(&o->lined, "#line %d \"templates/%s\"\n", line, o->files->file[file].name);
        o->view_file = file;
        o->view_line = line;
    }
    fa_text_add(&o->lined, s, n);
    for (size_t i = 0; i < n; i++)
        o->view_line += s[i] == '\n';
    follow(o, s, n);
    o->blank = blank;
    return 0;
}

static bool is_lua(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && !strcmp(name + n - 4, ".lua");
}

void fa_template_include(lua_State *L, int env, fa_output *o, const char *name)
{
    bool lua = is_lua(name);
    int index;
    char chunk[64];
    luaL_checkstack(L, 8, NULL);
    env = lua_absindex(L, env);
    if (fa_sandbox_reason(L, fa_files_get(o->files, &index, name)) != FA_OK)
        luaL_error(L, "%s", fa_last_error());
    fa_file *f = &o->files->file[index];
    if (fa_sandbox_nest(L, 0) >= DEPTH)
        luaL_error(L, "include \"%s\": more than %d deep", name, DEPTH);
    snprintf(chunk, sizeof chunk, "@templates/%s", f->name);
    if (!lua && !f->row && fa_sandbox_reason(L, fa_translate(f, index)) != FA_OK) {
        lua_pushstring(L, fa_last_error());
        lua_error(L);
    }
    if (f->chunk)
        fa_sandbox_load_compiled(L, env, f->chunk->bytes, f->chunk->size, chunk);
    else if (lua)
        fa_sandbox_load(L, env, f->bytes, f->size, chunk);
    else
        fa_sandbox_load(L, env, fa_text_cstr(&f->code), f->code.n, chunk);
    fa_sandbox_nest(L, 1);
    lua_call(L, 0, 1);
    fa_sandbox_nest(L, -1);
}

/* A .lua runs once in an environment: its value is kept by its name. */
static int include(lua_State *L)
{
    fa_output *o = lua_touserdata(L, lua_upvalueindex(1));
    const char *name = luaL_checkstring(L, 1);
    if (lua_getfield(L, lua_upvalueindex(3), name) != LUA_TNIL)
        return 1;
    fa_template_include(L, lua_upvalueindex(2), o, name);
    if (is_lua(name)) {
        lua_pushvalue(L, -1);
        lua_setfield(L, lua_upvalueindex(3), name);
    }
    return 1;
}

/* indented(n, f, ...): what f(...) prints stands n columns further to the right, but for directives, which begin their line. */
static int indented(lua_State *L)
{
    fa_output *o = lua_touserdata(L, lua_upvalueindex(1));
    lua_Integer n = luaL_checkinteger(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    if (n < 0 || n > INDENT_MOST - o->indent)
        return luaL_error(L, "indented by %I columns within %d; accepted: 0 to %d in all", (LUAI_UACINT)n, o->indent, INDENT_MOST);
    o->indent += (int)n;
    lua_call(L, lua_gettop(L) - 2, 0);
    o->indent -= (int)n;
    return 0;
}

/* Pushes the table c or l, and the value of word, "c.lag" or "l.run", in it. False where the environment has no such table. */
static bool push_need(lua_State *L, const char *word, size_t n)
{
    const char table[2] = { word[0], 0 };
    if (lua_getfield(L, lua_upvalueindex(1), table) != LUA_TTABLE)
        return false;
    lua_pushlstring(L, word + 2, n - 2);
    lua_gettable(L, -2);
    return true;
}

/* needs "c.lag l.run l.pack?": a piece that reads c and l says what it reads; what has no ? must be there. */
static int needs(lua_State *L)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *at = luaL_checkstring(L, 1);
    fa_sandbox_charge(L, (double)strlen(at));
    for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " "), letter = n > 2 ? strspn(at + 2, letters) + 2 : 0;
        bool may_lack = n && at[n - 1] == '?';
        lua_pushlstring(L, at, n < 80 ? n : 80);
        if ((*at != 'c' && *at != 'l') || letter < 3 || at[1] != '.' || letter + may_lack != n)
            return luaL_error(L, "needs \"%s\"; accepted: names such as c.bc and l.run, with a ? after what may be absent: l.pack?",
                              lua_tostring(L, -1));
        if (!push_need(L, at, letter))
            return luaL_error(L, "needs %s, where there is no %s", lua_tostring(L, -2), *at == 'c' ? "config" : "layout");
        if (!may_lack && lua_isnil(L, -1))
            return luaL_error(L, "needs %s, which is absent; accepted: %s", lua_tostring(L, -3),
                              *at == 'c' ? "a family with this tunable" : "a family whose layout() returns it");
        lua_settop(L, 1);
        at += n;
    }
    return 0;
}

void fa_template_provide(lua_State *L, int env, fa_output *o)
{
    env = lua_absindex(L, env);
    lua_pushvalue(L, env);
    lua_pushcclosure(L, needs, 1);
    lua_setfield(L, env, "needs");
    lua_pushlightuserdata(L, o);
    lua_pushvalue(L, env);
    lua_newtable(L); /* the values of .lua files */
    lua_pushcclosure(L, include, 3);
    lua_setfield(L, env, "include");
    lua_pushlightuserdata(L, o);
    lua_pushcclosure(L, indented, 1);
    lua_setfield(L, env, "indented");
    lua_pushlightuserdata(L, o);
    lua_pushcclosure(L, put_line, 1);
    lua_setfield(L, env, "__line");
    lua_pushcfunction(L, value);
    lua_setfield(L, env, "__value");
}

void fa_output_free(fa_output *o)
{
    fa_text_free(&o->text);
    fa_text_free(&o->lined);
}

fa_status fa_template_fail(const fa_files *fs, fa_status st, const char *what, const char *error)
{
    static const char prefix[] = "templates/";
    const char *name = error + sizeof prefix - 1, *colon = NULL, *s;
    size_t n;
    if (!strncmp(error, prefix, sizeof prefix - 1))
        colon = strchr(name, ':');
    for (int i = 0; colon && i < fs->n; i++) {
        const fa_file *f = &fs->file[i];
        if (strlen(f->name) != (size_t)(colon - name) || strncmp(f->name, name, (size_t)(colon - name)))
            continue;
        char *rest;
        long line = strtol(colon + 1, &rest, 10);
        if (rest == colon + 1 || *rest != ':' || line < 1)
            break;
        if (!fa_file_line(f, (int)line, &s, &n))
            return fa_fail(st, "%s:%ld%s", f->path, line, rest);
        return fa_fail(st, "%s:%ld%s\n  %ld | %.*s", f->path, line, rest, line, (int)(n < 200 ? n : 200), s);
    }
    return fa_fail(st, "%s: %s", what, error);
}
