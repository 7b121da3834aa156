/* sandbox_score: what kernels print of a program is found once for each state, and kept by the program's identity. */
#include "sandbox_score.h"
#include "sandbox.h"
#include "score/known.h"
#include "score/lines.h"
#include "score/mask.h"
#include "score/print_arrays.h"
#include "score/print_tiles.h"
#include "score/staged.h"
#include <lauxlib.h>
#include <string.h>

/* The address is the key of the table of kernels in Lua's registry. */
static const char kernels;

/* What is kept of a program. */
typedef struct printed {
    fa_score_kernel kernel;
    fa_score_tiles tiles; /* where it has a mask */
    fa_score_bounds bounds;
    fa_score_conditions conditions;
    fa_score_staged staged;
} printed;

#define KERNELS_MOST 16 /* that a state keeps */

/* Pushes the table: a new one where it is full. */
static void push_kernels(lua_State *L)
{
    lua_Integer n = KERNELS_MOST;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &kernels) == LUA_TTABLE) {
        lua_rawgeti(L, -1, 1);
        n = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    if (n < KERNELS_MOST)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kernels);
}

/* Pushes the kernel of the program, a userdata. */
static const printed *push_kernel(lua_State *L, const fa_program *program)
{
    push_kernels(L);
    lua_pushlstring(L, (const char *)&program->id, sizeof program->id);
    if (lua_rawget(L, -2) != LUA_TUSERDATA) {
        lua_pop(L, 1);
        printed *k = lua_newuserdatauv(L, sizeof *k, 0);
        if (!fa_score_kernel_of(&k->kernel, &program->ir))
            fa_sandbox_no_memory(L, "a score program");
        if (k->kernel.ir.root[FA_SCORE_ROOT_MASK] >= 0) {
            fa_score_tiles_of(&k->tiles, &k->kernel.ir);
            fa_score_bounds_of(&k->bounds, &k->tiles, FA_SCORE_J);
            fa_score_conditions_of(&k->conditions, &k->tiles);
            fa_score_staged_of(&k->staged, &k->tiles, &k->conditions);
        }
        lua_pushlstring(L, (const char *)&program->id, sizeof program->id);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
        lua_rawgeti(L, -2, 1);
        lua_pushinteger(L, lua_tointeger(L, -1) + 1);
        lua_rawseti(L, -4, 1);
        lua_pop(L, 1);
    }
    lua_remove(L, -2);
    return lua_touserdata(L, -1);
}

typedef enum what {
    HELPERS,
    MEMBERS,
    FILL,
    PAIR,
    PAIR_AHEAD,
    AHEAD_ROW,
    AHEAD_AT,
    BEND,
    DISTANCE,
    FAR_BELOW,
    FAR_ABOVE,
    EXPONENT,
    MASK,
    MASK_MEMBERS,
    MASK_FILL,
    MASK_HELPERS,
    MASK_BOUNDS,
    MASK_ENDS,
    MASK_RUNS,
    MASK_CLASS,
    MASK_CLASSES,
    MASK_SOLVED,
    MASK_COLUMN,
    MASK_ROW,
    MASK_PLANE_ROW,
    MASK_PLANE_FIRST,
    MASK_STAGED,
    MASK_FILL_TABLES,
    SINK,
    WHATS
} what;
static const char *const words[WHATS] = {
    "helpers",     "members",      "fill",        "pair",           "pair_ahead",       "ahead_row",   "ahead_at",
    "bend",        "distance",     "far_below",   "far_above",      "exponent",         "mask",        "mask_members",
    "mask_fill",   "mask_helpers", "mask_bounds", "mask_ends",      "mask_runs",        "mask_class",  "mask_classes",
    "mask_solved", "mask_column",  "mask_row",    "mask_plane_row", "mask_plane_first", "mask_staged", "mask_fill_tables",
    "sink"
};

/* n: which of what is read ahead, or of what a mask is staged in. backward: for members that the lines of BEND read. */
static void write(fa_text *out, const printed *of, what w, bool packed, bool backward, int n)
{
    const fa_score_kernel *k = &of->kernel;
    switch (w) {
    case HELPERS:
        fa_score_print_helpers(out, &k->ir, "Params");
        break;
    case MEMBERS:
        fa_score_kernel_members(out, k, packed, backward ? FA_SCORE_LINES_BEND : FA_SCORE_LINES_PAIR);
        break;
    case FILL:
        fa_score_kernel_fill(out, k, packed, backward ? FA_SCORE_LINES_BEND : FA_SCORE_LINES_PAIR);
        break;
    case PAIR:
        fa_score_kernel_pair(out, k, packed);
        break;
    case PAIR_AHEAD:
        fa_score_kernel_pair_ahead(out, k, packed);
        break;
    case AHEAD_ROW:
        fa_score_kernel_ahead_row(out, k, packed, n);
        break;
    case AHEAD_AT:
        fa_score_kernel_ahead_at(out, k, n);
        break;
    case BEND:
        fa_score_kernel_bend(out, k, packed);
        break;
    case DISTANCE:
        fa_score_kernel_distance(out, k);
        break;
    case FAR_BELOW:
    case FAR_ABOVE:
        fa_score_kernel_far(out, k, w == FAR_BELOW ? FA_SCORE_BELOW : FA_SCORE_ABOVE);
        break;
    case EXPONENT:
        fa_score_kernel_exponent(out, k, packed);
        break;
    case MASK:
        fa_score_mask_pair(out, &k->ir, packed);
        break;
    case MASK_MEMBERS:
        fa_score_mask_members(out, &k->ir, packed);
        break;
    case MASK_FILL:
        fa_score_mask_fill(out, &k->ir, packed);
        break;
    case MASK_HELPERS:
        fa_score_tiles_print_helpers(out, &of->tiles, "Params");
        break;
    case MASK_BOUNDS:
        fa_score_tiles_print_bounds(out, &of->bounds);
        break;
    case MASK_ENDS:
        fa_score_tiles_print_ends(out, of->bounds.exact ? &of->bounds : &of->conditions.ends);
        break;
    case MASK_RUNS:
        fa_score_tiles_print_runs(out, &of->bounds);
        break;
    case MASK_FILL_TABLES:
        fa_score_tiles_print_fill(out, &of->tiles, "Params");
        break;
    case MASK_CLASS:
        fa_score_tiles_print_class(out, &of->tiles);
        break;
    case MASK_CLASSES:
        fa_score_tiles_print_classes(out, &of->tiles, &of->conditions);
        break;
    case MASK_SOLVED:
        fa_score_tiles_print_solved(out, &of->tiles, &of->conditions);
        break;
    case MASK_COLUMN:
        fa_score_staged_column(out, &of->staged, &of->tiles, packed, n);
        break;
    case MASK_ROW:
        fa_score_staged_row(out, &of->staged, &of->tiles, packed, n);
        break;
    case MASK_PLANE_ROW:
        fa_score_staged_plane_row(out, &of->staged, &of->tiles, packed);
        break;
    case MASK_PLANE_FIRST:
        fa_score_staged_plane_first(out, &of->staged, &of->tiles, packed);
        break;
    case MASK_STAGED:
        fa_score_staged_pair(out, &of->staged, &of->tiles, &of->conditions, packed);
        break;
    default:
        fa_score_kernel_sink(out, k);
    }
}

/* Whether the program has the function that lines are of. */
static bool has(const printed *of, what w)
{
    const fa_score_kernel *k = &of->kernel;
    bool mask = w >= MASK && w <= MASK_FILL_TABLES && (w != MASK_ENDS || of->bounds.exact || of->conditions.solved) &&
                ((w != MASK_CLASSES && w != MASK_SOLVED) || of->conditions.solved) && (w != MASK_RUNS || of->bounds.run_by >= 0);
    bool plane = w == MASK_PLANE_ROW || w == MASK_PLANE_FIRST;
    if ((plane && of->staged.lookup < 0) || (w == MASK_STAGED && !of->staged.can))
        return false;
    return w == HELPERS || (w == SINK ? k->sink : mask ? k->ir.root[FA_SCORE_ROOT_MASK] : k->pair) >= 0;
}

/* Pushes the lines of a text as an array, and frees it. */
static int push_lines(lua_State *L, fa_text *text)
{
    if (text->oom) {
        fa_text_free(text);
        fa_sandbox_no_memory(L, "a score program");
    }
    const char *s = fa_text_cstr(text);
    lua_pushlstring(L, s, text->n); /* what follows may raise an error */
    fa_text_free(text);
    s = lua_tostring(L, -1);
    fa_sandbox_charge(L, (double)lua_rawlen(L, -1));
    lua_newtable(L);
    for (lua_Integer at = 1; *s; at++) {
        size_t length = strcspn(s, "\n");
        lua_pushlstring(L, s, length);
        lua_rawseti(L, -2, at);
        s += length + (s[length] == '\n');
    }
    return 1;
}

/* The lines as an array. */
static int lines(lua_State *L)
{
    const printed *of = lua_touserdata(L, lua_upvalueindex(1));
    const fa_score_kernel *k = &of->kernel;
    what w = (what)lua_tointeger(L, lua_upvalueindex(2));
    int numbers = w == AHEAD_ROW || w == AHEAD_AT ? k->aheads : w == MASK_COLUMN ? of->staged.columns : w == MASK_ROW ? of->staged.rows : 0;
    bool numbered = w == AHEAD_ROW || w == AHEAD_AT || w == MASK_COLUMN || w == MASK_ROW;
    int n = numbered ? (int)luaL_checkinteger(L, 2) - 1 : 0;
    if (numbered && (n < 0 || n >= numbers))
        return luaL_error(L, "%s: %d of %d", words[w], n + 1, numbers);
    if (w == DISTANCE && k->of_distance < 0)
        return luaL_error(L, "the score program has no number of key - query");
    if ((w == FAR_BELOW || w == FAR_ABOVE) && !k->far.has[w == FAR_BELOW ? FA_SCORE_BELOW : FA_SCORE_ABOVE])
        return luaL_error(L, "the score program has no %s", words[w]);
    if (!has(of, w))
        return luaL_error(L, "the score program has no function for %s", words[w]);
    fa_text text = { 0 };
    write(&text, of, w, lua_toboolean(L, 1), lua_toboolean(L, 2), n);
    return push_lines(L, &text);
}

/* { { node =, operand =, rank =, bf16 =, wide =, diagonal =, by_row =, row_index = } } */
static void push_ahead(lua_State *L, const fa_score_kernel *k)
{
    lua_newtable(L);
    for (int i = 0; i < k->aheads; i++) {
        int operand = k->ir.node[k->ahead[i]].operand;
        lua_createtable(L, 0, 8);
        lua_pushinteger(L, k->ahead[i]);
        lua_setfield(L, -2, "node");
        lua_pushinteger(L, operand);
        lua_setfield(L, -2, "operand");
        lua_pushboolean(L, k->ir.operand[operand].element == FA_SCORE_ELEMENT_BF16);
        lua_setfield(L, -2, "bf16");
        lua_pushboolean(L, k->ir.operand[operand].element == FA_SCORE_ELEMENT_F32);
        lua_setfield(L, -2, "wide");
        lua_pushboolean(L, k->diagonal[i]);
        lua_setfield(L, -2, "diagonal");
        lua_pushboolean(L, k->by_row[i]);
        lua_setfield(L, -2, "by_row");
        if (k->row_index[i] >= 0) {
            lua_pushinteger(L, k->row_index[i]);
            lua_setfield(L, -2, "row_index");
        }
        lua_pushinteger(L, k->ir.operand[operand].rank);
        lua_setfield(L, -2, "rank");
        lua_rawseti(L, -2, i + 1);
    }
}

/* exact, solved_in_part, two_ended, in_runs, of_runs, grain, row_grain, grained, tables; marks, marks_by_b, marks_by_h: of the problem's
 * backward pass */
static void push_tiles(lua_State *L, const printed *of, const fa_problem *p)
{
    fa_text tables = { 0 }, marks = { 0 };
    unsigned by = fa_score_tiles_marked_by(&of->tiles, p->features & FA_FEATURE_LENGTHS);
    if (fa_score_tiles_filled(&of->tiles)) {
        fa_score_tiles_buffers(&tables, &of->tiles);
        lua_pushlstring(L, tables.s, tables.n);
        lua_setfield(L, -2, "tables");
    }
    fa_text_free(&tables);
    lua_pushboolean(L, of->bounds.exact);
    lua_setfield(L, -2, "exact");
    lua_pushboolean(L, of->conditions.solved > 0);
    lua_setfield(L, -2, "solved_in_part");
    fa_score_tiles_marks(&marks, by);
    lua_pushlstring(L, marks.s, marks.n);
    lua_setfield(L, -2, "marks");
    fa_text_free(&marks);
    lua_pushboolean(L, by & FA_SCORE_OF_B);
    lua_setfield(L, -2, "marks_by_b");
    lua_pushboolean(L, by & FA_SCORE_OF_H);
    lua_setfield(L, -2, "marks_by_h");
    lua_pushboolean(L, of->bounds.two_ended);
    lua_setfield(L, -2, "two_ended");
    lua_pushboolean(L, of->bounds.in_runs);
    lua_setfield(L, -2, "in_runs");
    lua_pushboolean(L, of->bounds.run_by >= 0);
    lua_setfield(L, -2, "of_runs");
    lua_pushinteger(L, of->staged.grain);
    lua_setfield(L, -2, "grain");
    lua_pushinteger(L, of->staged.row_grain);
    lua_setfield(L, -2, "row_grain");
    lua_pushboolean(L, of->staged.grained);
    lua_setfield(L, -2, "grained");
}

/* A list of { node =, type = } */
static void push_nodes(lua_State *L, const fa_score_ir *ir, const int16_t *node, int n)
{
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        lua_createtable(L, 0, 2);
        lua_pushinteger(L, node[k]);
        lua_setfield(L, -2, "node");
        lua_pushstring(L, fa_score_cuda_type(ir->node[node[k]].type));
        lua_setfield(L, -2, "type");
        lua_rawseti(L, -2, k + 1);
    }
}

/* { columns =, rows =, plane = a node, lookup = { operand =, rank =, bits =, shifted = }, contrary =, equal =, issue = }; nothing where
 * there is nothing to stage. */
static void push_staged(lua_State *L, const printed *of)
{
    const fa_score_staged *s = &of->staged;
    const fa_score_ir *ir = of->tiles.ir;
    if (!s->can)
        return;
    lua_createtable(L, 0, 6);
    push_nodes(L, ir, s->column, s->columns);
    lua_setfield(L, -2, "columns");
    push_nodes(L, ir, s->row, s->rows);
    lua_setfield(L, -2, "rows");
    if (s->plane >= 0) {
        lua_pushinteger(L, s->plane);
        lua_setfield(L, -2, "plane");
    }
    if (s->lookup >= 0) {
        int operand = ir->node[s->lookup].operand;
        lua_createtable(L, 0, 4);
        lua_pushinteger(L, operand);
        lua_setfield(L, -2, "operand");
        lua_pushboolean(L, s->shifted);
        lua_setfield(L, -2, "shifted");
        lua_pushinteger(L, ir->operand[operand].rank);
        lua_setfield(L, -2, "rank");
        lua_pushboolean(L, ir->operand[operand].element == FA_SCORE_ELEMENT_BITS);
        lua_setfield(L, -2, "bits");
        lua_setfield(L, -2, "lookup");
    }
    lua_pushboolean(L, s->contrary);
    lua_setfield(L, -2, "contrary");
    lua_pushboolean(L, s->equal);
    lua_setfield(L, -2, "equal");
    lua_pushnumber(L, s->issue);
    lua_setfield(L, -2, "issue");
    lua_setfield(L, -2, "staged_mask");
}

/* ---- gradients of operands ---- */

static const char *const read_bys[FA_SCORE_READ_BYS + 1] = {
    [FA_SCORE_BY_ROW] = "row",   [FA_SCORE_BY_KEY] = "key",     [FA_SCORE_BY_BAND] = "band",
    [FA_SCORE_BY_PAIR] = "pair", [FA_SCORE_BY_OTHER] = "other", [FA_SCORE_READ_BYS] = NULL
};

/* A copy of the kernel, to which nodes may be added, and the reads of the operands of the bits. */
typedef struct read_copy {
    fa_score_kernel k;
    fa_score_read_list list;
} read_copy;

static read_copy *copy_reads(lua_State *L, const fa_score_kernel *k, uint32_t operands)
{
    read_copy *c = lua_newuserdatauv(L, sizeof *c, 0);
    c->k = *k;
    fa_score_reads_of(&c->list, &c->k.ir, operands);
    return c;
}

/* lines("by", "row"); lines("match", 2), lines("sink", 2) of a read, from 1. */
static int read_lines(lua_State *L)
{
    read_copy *c = lua_touserdata(L, lua_upvalueindex(1));
    const char *word = luaL_checkstring(L, 1);
    fa_text text = { 0 };
    if (!strcmp(word, "by"))
        fa_score_kernel_reads(&text, &c->k, &c->list, (fa_score_read_by)luaL_checkoption(L, 2, NULL, read_bys));
    else {
        lua_Integer n = luaL_checkinteger(L, 2);
        if (n < 1 || n > c->list.n)
            return luaL_error(L, "reads: number %d of %d", (int)n, c->list.n);
        if (!strcmp(word, "match"))
            fa_score_read_match(&text, &c->k.ir, &c->list.read[n - 1]);
        else
            fa_score_read_sink(&text, &c->k.ir, &c->list.read[n - 1]);
    }
    return push_lines(L, &text);
}

static void push_fixed(lua_State *L, read_copy *c, const fa_score_read *r)
{
    static const char *const names[] = { "b", "h", "x" };
    lua_createtable(L, 0, 3);
    for (int over = 0; over < 3; over++) {
        fa_text text = { 0 };
        fa_score_read_fixed(&text, &c->k.ir, r, (fa_score_loop)over);
        if (text.n > 0) {
            lua_pushlstring(L, text.s, text.n);
            lua_setfield(L, -2, names[over]);
        }
        fa_text_free(&text);
    }
    lua_setfield(L, -2, "fixed");
}

static void push_read(lua_State *L, read_copy *c, const fa_score_read *r)
{
    static const struct {
        const char *name;
        fa_score_op leaf;
    } over[] = { { "b", FA_SCORE_B }, { "h", FA_SCORE_H }, { "i", FA_SCORE_I }, { "j", FA_SCORE_J } };
    lua_createtable(L, 0, 7);
    lua_pushinteger(L, r->operand);
    lua_setfield(L, -2, "operand");
    lua_pushinteger(L, r->plane);
    lua_setfield(L, -2, "plane");
    lua_pushinteger(L, c->k.ir.operand[r->operand].rank);
    lua_setfield(L, -2, "rank");
    lua_pushstring(L, read_bys[r->by]);
    lua_setfield(L, -2, "by");
    lua_pushstring(L, r->root == FA_SCORE_ROOT_SINK ? "sink" : "score");
    lua_setfield(L, -2, "root");
    lua_createtable(L, 0, 4); /* the index that each is, -1: none */
    for (size_t i = 0; i < sizeof over / sizeof *over; i++) {
        lua_pushinteger(L, fa_score_read_dimension(&c->k.ir, r, over[i].leaf));
        lua_setfield(L, -2, over[i].name);
    }
    lua_setfield(L, -2, "over");
    push_fixed(L, c, r);
}

/* { list = { read, ... }, planes = { row = ... }, operands = { { number =, rank = }, ... } that are added up at the end, folds =, lines =
 * }: of the operands whose gradients are asked for; nothing where none is. */
static void push_reads(lua_State *L, const fa_score_kernel *k, uint32_t operands)
{
    read_copy *c = copy_reads(L, k, operands);
    uint32_t pairs = 0;
    lua_createtable(L, 0, 5);
    lua_createtable(L, c->list.n, 0);
    for (int i = 0; i < c->list.n; i++) {
        push_read(L, c, &c->list.read[i]);
        lua_rawseti(L, -2, i + 1);
        pairs |= c->list.read[i].by == FA_SCORE_BY_PAIR ? 1u << c->list.read[i].operand : 0;
    }
    lua_setfield(L, -2, "list");
    lua_createtable(L, 0, FA_SCORE_READ_BYS);
    for (int by = 0; by < FA_SCORE_READ_BYS; by++) {
        lua_pushinteger(L, c->list.planes[by]);
        lua_setfield(L, -2, read_bys[by]);
    }
    lua_setfield(L, -2, "planes");
    lua_newtable(L);
    lua_Integer n = 0;
    for (int o = 0; o < c->k.ir.operands; o++)
        if (operands >> o & 1 && !(pairs >> o & 1)) { /* of one that nothing reads, too: its gradient is 0 */
            lua_createtable(L, 0, 2);
            lua_pushinteger(L, o);
            lua_setfield(L, -2, "number");
            lua_pushinteger(L, c->k.ir.operand[o].rank);
            lua_setfield(L, -2, "rank");
            lua_rawseti(L, -2, ++n);
        }
    lua_setfield(L, -2, "operands");
    lua_pushboolean(L, n > 0);
    lua_setfield(L, -2, "folds");
    lua_pushvalue(L, -2);
    lua_pushcclosure(L, read_lines, 1);
    lua_setfield(L, -2, "lines");
    lua_remove(L, -2);
}

void fa_sandbox_score_push(lua_State *L, const fa_problem *p)
{
    const fa_program *program = fa_score_known(p);
    luaL_checkstack(L, 16, NULL);
    if (!program) {
        lua_pushboolean(L, false);
        return;
    }
    const printed *of = push_kernel(L, program);
    const fa_score_kernel *k = &of->kernel;
    fa_score_mask mask = fa_score_mask_of(&k->ir);
    fa_text unit = { 0 }, tanh_of = { 0 };
    lua_createtable(L, 0, WHATS + 40);
    for (int w = 0; w < WHATS; w++) {
        lua_pushvalue(L, -2);
        lua_pushinteger(L, w);
        lua_pushcclosure(L, lines, 2);
        lua_setfield(L, -2, words[w]);
    }
    lua_remove(L, -2);
    fa_score_kernel_unit(&unit, k);
    if (unit.n > 0) {
        lua_pushlstring(L, unit.s, unit.n);
        lua_setfield(L, -2, "unit");
    }
    fa_text_free(&unit);
    fa_score_kernel_tanh_of(&tanh_of, k);
    if (tanh_of.n > 0) {
        lua_pushlstring(L, tanh_of.s, tanh_of.n);
        lua_setfield(L, -2, "tanh_of");
        lua_pushboolean(L, k->ir.node[k->pair].op == FA_SCORE_TANH_EXACT);
        lua_setfield(L, -2, "tanh_exact");
    }
    fa_text_free(&tanh_of);
    lua_pushboolean(L, k->pair >= 0);
    lua_setfield(L, -2, "has_score");
    lua_pushboolean(L, k->sink >= 0);
    lua_setfield(L, -2, "has_sink");
    lua_pushboolean(L, mask.root >= 0);
    lua_setfield(L, -2, "has_mask");
    if (mask.root >= 0) {
        push_tiles(L, of, p);
        push_staged(L, of);
    }
    push_ahead(L, k);
    lua_setfield(L, -2, "arrays");
    if (k->of_distance >= 0) {
        lua_pushinteger(L, k->of_distance);
        lua_setfield(L, -2, "of_distance");
        lua_pushboolean(L, k->far.has[FA_SCORE_BELOW]);
        lua_setfield(L, -2, "has_far_below");
        lua_pushboolean(L, k->far.has[FA_SCORE_ABOVE]);
        lua_setfield(L, -2, "has_far_above");
    }
    const fa_score_range *core = k->pair >= 0 && k->unit >= 0 ? &k->ir.node[k->pair].range : NULL;
    if (core && core->lo > -1e6 && core->hi < 1e6) {
        lua_pushnumber(L, core->hi);
        lua_setfield(L, -2, "most");
    }
    if (k->adds >= 0) {
        lua_pushinteger(L, k->adds);
        lua_setfield(L, -2, "adds");
    }
    lua_pushboolean(L, k->by_key_beside);
    lua_setfield(L, -2, "cuts_beside");
    lua_pushboolean(L, k->slopes);
    lua_setfield(L, -2, "slopes");
    lua_pushboolean(L, k->fades);
    lua_setfield(L, -2, "fades");
    lua_pushboolean(L, k->along);
    lua_setfield(L, -2, "along");
    lua_pushboolean(L, k->by_key);
    lua_setfield(L, -2, "cuts");
    lua_pushboolean(L, k->of_off || mask.of_off);
    lua_setfield(L, -2, "off");
    lua_pushnumber(L, mask.issue);
    lua_setfield(L, -2, "mask_issue");
    lua_pushinteger(L, mask.regs);
    lua_setfield(L, -2, "mask_regs");
    lua_pushnumber(L, k->issue + mask.issue);
    lua_setfield(L, -2, "issue");
    lua_pushnumber(L, k->issue_ahead + mask.issue);
    lua_setfield(L, -2, "issue_ahead");
    lua_pushnumber(L, k->issue_staged);
    lua_setfield(L, -2, "issue_staged");
    lua_pushnumber(L, k->exps_staged);
    lua_setfield(L, -2, "exps_staged");
    lua_pushnumber(L, k->exps);
    lua_setfield(L, -2, "exps");
    lua_pushinteger(L, k->regs + mask.regs);
    lua_setfield(L, -2, "regs");
    lua_pushinteger(L, k->regs_ahead + mask.regs);
    lua_setfield(L, -2, "regs_ahead");
    lua_pushboolean(L, k->differentiable);
    lua_setfield(L, -2, "differentiable");
    lua_pushboolean(L, k->bends);
    lua_setfield(L, -2, "bends");
    lua_pushboolean(L, k->bends_below_one);
    lua_setfield(L, -2, "bends_below_one");
    lua_pushboolean(L, k->bend_is_finite);
    lua_setfield(L, -2, "bend_is_finite");
    lua_pushnumber(L, k->issue_back + mask.issue);
    lua_setfield(L, -2, "issue_back");
    lua_pushnumber(L, k->exps_back);
    lua_setfield(L, -2, "exps_back");
    lua_pushinteger(L, k->regs_back); /* what a mask takes it takes of tiles in doubt alone */
    lua_setfield(L, -2, "regs_back");
    if (p->score_grads) {
        push_reads(L, k, (uint32_t)p->score_grads);
        lua_setfield(L, -2, "reads");
    }
    lua_pushinteger(L, k->regs_staged);
    lua_setfield(L, -2, "regs_staged");
}
