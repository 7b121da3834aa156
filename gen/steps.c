/* steps: the kernels that a family's steps() returns, read and checked. */
#include "error.h"
#include "family.h"
#include "format.h"
#include "problem.h"
#include "score/known.h"
#include "score/names.h"
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define BOX_MAX 256   /* elements of each dimension of a TMA box */
#define TMA_UNIT 16   /* bytes: rows of a box are a multiple of it */
#define GROUP 8       /* rows of a swizzle pattern */
#define PIECE 8       /* bytes that maps of several heads count columns by */
#define PER_SM_MAX 32 /* blocks that an SM of any chip holds */

/* The operands that TMA can load, for messages. */
static const char *mappable(char *buf, size_t n, const fa_operation *op)
{
    size_t at = 0;
    buf[0] = 0;
    for (int i = 0; i < op->n; i++)
        if (op->operand[i].strided)
            at += (size_t)snprintf(buf + at, n - at, "%s%s", at ? ", " : "", op->operand[i].name);
    return buf;
}

/* Boxes that stand side by side hold whole rows of the tensor, in groups of the eight rows of a swizzle pattern. */
static void read_boxes(lua_State *L, const fa_lua_args *fr, const fa_family *f, const char *of, fa_map *m)
{
    m->boxes = fa_family_integer(L, f, of, "boxes", 0);
    int64_t width = fa_sizes_of(fr->problem, 0).of[f->operation->operand[m->operand].extent[3]];
    if (m->boxes && (m->boxes < 2 || m->boxes * (int64_t)m->cols != width))
        luaL_error(L, "templates/%s: boxes of %s is %d, with cols of %d; accepted: 0, or from 2 on as many as make a row of %d", f->file,
                   of, m->boxes, m->cols, (int)width);
    if (m->boxes && m->rows % GROUP)
        luaL_error(L, "templates/%s: rows of %s is %d; accepted with boxes: a multiple of %d", f->file, of, m->rows, GROUP);
}

/* Rows of several heads of a token as one: of formats with blocks, whose rows begin anywhere. */
static void read_together(lua_State *L, const fa_lua_args *fr, const fa_family *f, const char *of, fa_map *m)
{
    const fa_operand *o = &f->operation->operand[m->operand];
    int64_t row = fa_sizes_of(fr->problem, 0).of[o->extent[3]] * fa_operand_bytes(o, fr->problem); /* blocks, and bytes of one */
    if (m->together < 2 || m->together * row % TMA_UNIT || m->together * row > m->cols * PIECE)
        luaL_error(L,
                   "templates/%s: together of %s is %d, with cols of %d pieces of %d bytes; accepted: 0, or from 2 on as many rows of %d "
                   "bytes as have room there, a multiple of %d bytes",
                   f->file, of, m->together, m->cols, PIECE, (int)row, TMA_UNIT);
    if (m->swizzle || m->boxes)
        luaL_error(L, "templates/%s: swizzle of %s is %d and boxes is %d; accepted with together: 0", f->file, of, m->swizzle, m->boxes);
}

/* Which array of the score program the map at the top of the stack is of. */
static void read_array(lua_State *L, const fa_lua_args *fr, const fa_family *f, const char *of, fa_map *m)
{
    const fa_program *program = fa_score_known(fr->problem);
    m->array = fa_family_integer(L, f, of, "array", -1) + 1;
    m->row_index = fa_family_integer(L, f, of, "row_index", -1);
    const fa_score_operand *o = program && m->array <= program->ir.operands ? &program->ir.operand[m->array - 1] : NULL;
    if (!o || o->scalar || fa_score_element_bytes(o->element) != 2)
        luaL_error(L, "templates/%s: array of %s is %d; accepted: the number of an array of 16-bit elements of the score program", f->file,
                   of, m->array - 1);
    m->rank = o->rank;
    m->col_index = fa_family_integer(L, f, of, "col_index", m->rank - 1);
    if (m->row_index >= m->rank || m->col_index >= m->rank || m->row_index == m->col_index)
        luaL_error(L, "templates/%s: row_index of %s is %d and col_index is %d; accepted: two indices, up to %d", f->file, of, m->row_index,
                   m->col_index, m->rank - 1);
}

/* Which tensor. */
static void read_tensor(lua_State *L, const fa_lua_args *fr, const fa_family *f, const char *of, fa_map *m)
{
    char names[128];
    const char *name = lua_getfield(L, -1, "tensor") == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1);
    m->operand = fa_operand_index(f->operation, name);
    if (m->operand < 0 || !f->operation->operand[m->operand].strided || f->operation->operand[m->operand].parts_at)
        luaL_error(L, "templates/%s: tensor of %s is \"%s\"; accepted: %s", f->file, of, name, mappable(names, sizeof names, f->operation));
    lua_pop(L, 1);
    const fa_operand *o = &f->operation->operand[m->operand];
    const fa_format *format = fa_format_of(fa_operand_dtype(o, fr->problem));
    bool blocks = m->together && fr->problem->op == FA_FORWARD && format && format->block > 1;
    if (!blocks && (m->together || !fa_problem_maps(fr->problem, o)))
        luaL_error(L, "templates/%s: %s is of %s, which is %s here; accepted: a map of %s where it has the type of %s", f->file, of,
                   o->name, fa_dtype_name(fa_operand_dtype(o, fr->problem)), o->name, f->operation->operand[0].name);
}

/* The map at the top of the stack, map number i of the step. */
static void read_map(lua_State *L, const fa_lua_args *fr, const fa_family *f, const fa_step *s, int i, fa_map *m)
{
    char of[64];
    snprintf(of, sizeof of, "map %d of step %s", i, s->entry);
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s: %s is a %s; accepted: { tensor =, cols =, rows =, swizzle =, boxes =, together = }", f->file, of,
                   luaL_typename(L, -1));
    bool array = lua_getfield(L, -1, "array") != LUA_TNIL;
    lua_pop(L, 1);
    *m = (fa_map){ .array = 0 };
    if (array && i == 1)
        luaL_error(L, "templates/%s: %s is of an array; accepted: a tensor's first, which takes its place where no map can hold it",
                   f->file, of);
    if (array)
        read_array(L, fr, f, of, m);
    else {
        m->together = fa_family_integer(L, f, of, "together", 0);
        read_tensor(L, fr, f, of, m);
    }
    m->cols = fa_family_integer(L, f, of, "cols", -1);
    m->rows = fa_family_integer(L, f, of, "rows", -1);
    m->swizzle = fa_family_integer(L, f, of, "swizzle", 0);
    int bytes = array ? 2 : m->together ? PIECE : fa_operand_bytes(&f->operation->operand[m->operand], fr->problem);
    if (m->rows < 1 || m->rows > BOX_MAX)
        luaL_error(L, "templates/%s: rows of %s is %d; accepted: 1 to %d", f->file, of, m->rows, BOX_MAX);
    if (m->cols < 1 || m->cols > BOX_MAX || m->cols * bytes % TMA_UNIT)
        luaL_error(L, "templates/%s: cols of %s is %d; accepted: a multiple of %d up to %d", f->file, of, m->cols, TMA_UNIT / bytes,
                   BOX_MAX);
    if (m->swizzle != 0 && m->swizzle != 32 && m->swizzle != 64 && m->swizzle != 128)
        luaL_error(L, "templates/%s: swizzle of %s is %d; accepted: 0, 32, 64, 128", f->file, of, m->swizzle);
    if (m->swizzle && m->cols * bytes > m->swizzle)
        luaL_error(L, "templates/%s: cols of %s is %d, %d bytes; accepted with a swizzle of %d: at most as many bytes", f->file, of,
                   m->cols, m->cols * bytes, m->swizzle);
    if (!array)
        read_boxes(L, fr, f, of, m);
    if (m->together)
        read_together(L, fr, f, of, m);
}

/* The list `maps` of the step at the top of the stack. */
static void read_maps(lua_State *L, const fa_lua_args *fr, const fa_family *f, fa_step *s)
{
    int type = lua_getfield(L, -1, "maps");
    lua_Unsigned n = type == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    if ((type != LUA_TTABLE && type != LUA_TNIL) || n > FA_STEP_MAPS)
        luaL_error(L, "templates/%s: maps of step %s is not an array of at most %d maps", f->file, s->entry, FA_STEP_MAPS);
    if (n && fr->arch->cc < 90)
        luaL_error(L, "templates/%s: step %s has maps; accepted on %s, which has no TMA: none", f->file, s->entry, fr->arch->name);
    for (s->n_maps = 0; s->n_maps < (int32_t)n; s->n_maps++) {
        lua_rawgeti(L, -1, s->n_maps + 1);
        read_map(L, fr, f, s, s->n_maps + 1, &s->map[s->n_maps]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* The product that the field of the table at the top spells, "sq/64 hq b". */
static fa_product read_product(lua_State *L, const fa_family *f, const char *of, const char *field)
{
    fa_product p;
    const char *text = lua_getfield(L, -1, field) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (!text)
        luaL_error(L, "templates/%s: %s of %s is a %s; accepted: a product of extents, such as \"sq/64 hq b\"", f->file, field, of,
                   luaL_typename(L, -1));
    if (fa_product_parse(&p, text) != FA_OK)
        luaL_error(L, "templates/%s: %s of %s: %s", f->file, field, of, fa_last_error());
    lua_pop(L, 1);
    return p;
}

static void read_step(lua_State *L, const fa_lua_args *fr, const fa_family *f, const fa_point *defaults, fa_step *s)
{
    if (!lua_istable(L, -1) || lua_getfield(L, -1, "entry") != LUA_TSTRING)
        luaL_error(L, "templates/%s: a step is not a table with an entry", f->file);
    size_t n;
    const char *entry = lua_tolstring(L, -1, &n);
    if (!n || n >= sizeof s->entry)
        luaL_error(L, "templates/%s: entry \"%s\" is not a name of 1 to %d letters", f->file, entry, (int)sizeof s->entry - 1);
    memcpy(s->entry, entry, n + 1);
    lua_pop(L, 1);
    s->threads = fa_family_integer(L, f, "a step", "threads", defaults->threads);
    s->smem = fa_family_integer(L, f, "a step", "smem", defaults->smem);
    s->grid = read_product(L, f, s->entry, "grid");
    s->per_sm = fa_family_integer(L, f, "a step", "per_sm", 0);
    s->cluster = fa_family_integer(L, f, "a step", "cluster", 1);
    s->counter = fa_family_integer(L, f, "a step", "counter", 0);
    s->pdl = fa_family_integer(L, f, "a step", "pdl", 0);
    s->keys_most = fa_family_integer(L, f, "a step", "keys_most", 0);
    if (s->threads < 1 || s->threads > FA_THREADS_MAX)
        luaL_error(L, "templates/%s: step %s has %d threads; accepted: 1 to %d", f->file, s->entry, s->threads, FA_THREADS_MAX);
    if (s->per_sm > PER_SM_MAX)
        luaL_error(L, "templates/%s: per_sm of step %s is %d; accepted: 0 (a block per tile) to %d", f->file, s->entry, s->per_sm,
                   PER_SM_MAX);
    if (s->cluster < 1 || s->cluster > FA_CLUSTER_MAX)
        luaL_error(L, "templates/%s: cluster of step %s is %d; accepted: 1 (none) to %d", f->file, s->entry, s->cluster, FA_CLUSTER_MAX);
    if (s->cluster > 1 && fr->arch->cc < 90)
        luaL_error(L, "templates/%s: cluster of step %s is %d; accepted on %s, which has none: 1", f->file, s->entry, s->cluster,
                   fr->arch->name);
    if (s->counter > 1)
        luaL_error(L, "templates/%s: counter of step %s is %d; accepted: 0, 1", f->file, s->entry, s->counter);
    if (s->pdl > (fr->arch->cc >= 90))
        luaL_error(L, "templates/%s: pdl of step %s is %d; accepted on %s: %s", f->file, s->entry, s->pdl, fr->arch->name,
                   fr->arch->cc >= 90 ? "0, 1" : "0, a kernel cannot wait there");
    read_maps(L, fr, f, s);
}

void fa_family_steps(lua_State *L, const fa_lua_args *fr, const fa_family *f, int layout, fa_source *out)
{
    fa_point defaults = { .fits = true };
    layout = lua_absindex(L, layout);
    lua_pushvalue(L, layout);
    defaults.threads = fa_family_integer(L, f, "layout", "threads", 0);
    defaults.smem = fa_family_integer(L, f, "layout", "bytes", 0);
    out->min_regs = fa_family_integer(L, f, "layout", "regs", 0);
    lua_pop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->steps);
    lua_pushvalue(L, fr->p);
    lua_pushvalue(L, fr->c);
    lua_pushvalue(L, fr->a);
    lua_pushvalue(L, layout);
    lua_call(L, 4, 1);
    lua_Unsigned n = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
    if (n < 1 || n > FA_SOURCE_STEPS)
        luaL_error(L, "templates/%s: steps returned no array of 1 to %d steps", f->file, FA_SOURCE_STEPS);
    out->steps = (int32_t)n;
    for (int i = 0; i < out->steps; i++) {
        lua_rawgeti(L, -1, i + 1);
        read_step(L, fr, f, &defaults, &out->step[i]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* ---- workspace and parameters ---- */

/* The text that the family's field holds, or that its function of (p, c, a, layout) returns; on the stack. */
static const char *push_text(lua_State *L, const fa_lua_args *fr, const fa_family *f, int ref, const char *field, int layout)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    if (lua_isfunction(L, -1)) {
        lua_pushvalue(L, fr->p);
        lua_pushvalue(L, fr->c);
        lua_pushvalue(L, fr->a);
        lua_pushvalue(L, layout);
        lua_call(L, 4, 1);
    }
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "templates/%s: %s is a %s; accepted: a string, or a function that returns one", f->file, field, luaL_typename(L, -1));
    return lua_tostring(L, -1);
}

void fa_family_workspace(lua_State *L, const fa_lua_args *fr, const fa_family *f, int layout, fa_source *out)
{
    out->workspace = (fa_workspace){ .n = 0 };
    if (f->workspace == LUA_NOREF)
        return;
    const char *text = push_text(L, fr, f, f->workspace, "workspace", lua_absindex(L, layout));
    if (fa_workspace_parse(&out->workspace, text) != FA_OK)
        luaL_error(L, "templates/%s: %s", f->file, fa_last_error());
    lua_pop(L, 1);
}

/* Families that list no values take those of the problem's score program, too. */
static void read_params(lua_State *L, const fa_lua_args *fr, const fa_family *f, int layout, fa_source *out)
{
    char all[FA_PARAMS_TEXT];
    const fa_program *program = fa_score_known(fr->problem);
    const char *text = all;
    if (f->params == LUA_NOREF) {
        fa_values_all(all, f->operation);
        strcat(all, program ? " score" : "");
    } else
        text = push_text(L, fr, f, f->params, "params", layout);
    if (strlen(text) >= sizeof out->params)
        luaL_error(L, "templates/%s: params has %d letters; accepted: at most %d", f->file, (int)strlen(text), (int)sizeof out->params - 1);
    if (!strstr(text, "score"))
        strcpy(out->params, text);
    else if (!fa_values_expand(out->params, text, program))
        luaL_error(L, "templates/%s: params has more than %d letters with the values of the score program", f->file, FA_PARAMS_TEXT - 1);
    if (text != all)
        lua_pop(L, 1);
}

void fa_family_params(lua_State *L, const fa_lua_args *fr, const fa_family *f, int layout, fa_source *out)
{
    fa_value v;
    char name[sizeof v.name];
    read_params(L, fr, f, lua_absindex(L, layout), out);
    if (fa_packing_of(&out->packing, f->operation, &out->workspace, out->params) != FA_OK)
        luaL_error(L, "templates/%s: %s", f->file, fa_last_error());
    for (const char *at = out->params; fa_values_next(&at, name);) {
        int i = fa_value_operand(f->operation, name);
        if (!fa_value_present(f->operation, fr->asked, name))
            luaL_error(L, "templates/%s: params: \"%s\" comes with %s, which problems without the feature %s do not have", f->file, name,
                       f->operation->operand[i].name, fa_feature_name(f->operation->operand[i].feature));
    }
    lua_newtable(L);
    for (const char *at = out->params; fa_values_next(&at, name);) {
        fa_value_find(&v, f->operation, &out->workspace, name);
        lua_createtable(L, 0, 3);
        lua_pushstring(L, v.type);
        lua_setfield(L, -2, "type");
        lua_pushstring(L, v.name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, v.comment);
        lua_setfield(L, -2, "comment");
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
}
