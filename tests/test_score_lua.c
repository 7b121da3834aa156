/* What a score program's IR computes against Lua itself: liblua runs the same text on numbers, and shares no code with the parser. 10,000
 * random points a program. */
#include "gen/score/eval.h"
#include "gen/score/shipped.h"
#include "score_programs.h"
#include "score_world.h"
#include <criterion/criterion.h>
#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define POINTS 10000
#define PER_WORLD 100

/* Operands count in the order of their declarations; an array is read by as many indices as its shape has words. */
static const char preamble[] = "local count = 0\n"
                               "local function array(shape)\n"
                               "  local k, rank = count, 0\n"
                               "  count = count + 1\n"
                               "  for _ in shape:gmatch('%S+') do rank = rank + 1 end\n"
                               "  local function level(before)\n"
                               "    return setmetatable({}, { __index = function(_, x)\n"
                               "      local at = { table.unpack(before) }\n"
                               "      at[#at + 1] = x\n"
                               "      return #at == rank and element(k, table.unpack(at)) or #at < rank and level(at)\n"
                               "    end })\n"
                               "  end\n"
                               "  return level({})\n"
                               "end\n"
                               "f32, bf16, f16, i32, i64, u8, bits = array, array, array, array, array, array, array\n"
                               "function scalar(value, kind) count = count + 1; return scalar_value(count - 1, kind == 'int') end\n"
                               "exp, log, abs, min, max, floor, ceil, sqrt = math.exp, math.log, math.abs, math.min, math.max, math.floor, "
                               "math.ceil, math.sqrt\n"
                               "pi, huge = math.pi, math.huge\n";

static score_world *world_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

static int element(lua_State *L)
{
    score_world *w = world_of(L);
    int k = (int)luaL_checkinteger(L, 1);
    const fa_score_operand *o = &w->ir->operand[k];
    int64_t index[FA_SCORE_RANK_MAX] = { 0 };
    for (int r = 0; r < o->rank; r++) {
        int64_t x = luaL_checkinteger(L, 2 + r), most = w->data.extent[k][r] - 1;
        index[r] = x < 0 ? 0 : x > most ? most : x;
    }
    double v = score_element(w, k, index);
    if (o->type == FA_SCORE_F32)
        lua_pushnumber(L, v);
    else if (o->type == FA_SCORE_BOOL)
        lua_pushboolean(L, v != 0);
    else
        lua_pushinteger(L, v > 0x1p30 ? 1 << 30 : (lua_Integer)v);
    return 1;
}

static int scalar_value(lua_State *L)
{
    double v = world_of(L)->data.scalar[luaL_checkinteger(L, 1)];
    if (lua_toboolean(L, 2))
        lua_pushinteger(L, (lua_Integer)v);
    else
        lua_pushnumber(L, v);
    return 1;
}

#define FUNCTION(name, formula)            \
    static int name(lua_State *L)          \
    {                                      \
        double x = luaL_checknumber(L, 1); \
        lua_pushnumber(L, formula);        \
        return 1;                          \
    }
FUNCTION(tangent, tanh(x))
FUNCTION(power_of_2, exp2(x))
FUNCTION(logarithm_2, log2(x))
FUNCTION(reciprocal_root, 1 / sqrt(x))
FUNCTION(logistic, 1 / (1 + exp(-x)))

static lua_State *lua_of(const char *text, score_world *w)
{
    static const luaL_Reg functions[] = { { "tanh", tangent },     { "tanh_exact", tangent },       { "exp2", power_of_2 },
                                          { "log2", logarithm_2 }, { "rsqrt", reciprocal_root },    { "sigmoid", logistic },
                                          { "element", element },  { "scalar_value", scalar_value } };
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        lua_pushlightuserdata(L, w);
        lua_pushcclosure(L, functions[i].func, 1);
        lua_setglobal(L, functions[i].name);
    }
    const struct {
        const char *name;
        int64_t v;
    } lengths[] = { { "off", w->data.off }, { "sq", w->data.sq }, { "sk", w->data.sk }, { "group", w->data.group } };
    for (int i = 0; i < 4; i++) {
        lua_pushinteger(L, lengths[i].v);
        lua_setglobal(L, lengths[i].name);
    }
    cr_assert(!luaL_dostring(L, preamble), "%s", lua_tostring(L, -1));
    cr_assert(!luaL_dostring(L, text), "%s", lua_tostring(L, -1));
    return L;
}

/* Pushes what the root is called with, before the arguments. */
static double lua_value(lua_State *L, fa_score_root root, const fa_score_pair *at)
{
    static const char *const names[] = { "score", "mask", "sink" };
    int n = 3;
    lua_getglobal(L, names[root]);
    if (root == FA_SCORE_ROOT_SCORE)
        lua_pushnumber(L, at->s);
    lua_pushinteger(L, at->b);
    lua_pushinteger(L, at->h);
    lua_pushinteger(L, at->i);
    if (root != FA_SCORE_ROOT_SINK)
        lua_pushinteger(L, at->j);
    n += root == FA_SCORE_ROOT_SCORE ? 2 : root == FA_SCORE_ROOT_MASK;
    cr_assert(!lua_pcall(L, n, 1, 0), "%s", lua_tostring(L, -1));
    double v = lua_isboolean(L, -1) ? lua_toboolean(L, -1) : luaL_checknumber(L, -1);
    lua_pop(L, 1);
    return v;
}

static bool agree(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-11 * (1 + fabs(b));
}

static int compare(const score_program *p, uint64_t seed, int points)
{
    static double value[FA_SCORE_ROOM];
    fa_program *program;
    uint64_t state = seed;
    int n = 0;
    OK(fa_program_read(&program, p->name, p->text, strlen(p->text)));
    while (n < points) {
        score_world w;
        score_world_draw(&w, &program->ir, &state);
        lua_State *L = lua_of(p->text, &w);
        for (int k = 0; k < PER_WORLD; k++, n++) {
            fa_score_pair at = score_pair_draw(&w, &state);
            for (int r = 0; r < FA_SCORE_ROOTS; r++)
                if (program->ir.root[r] >= 0) {
                    double ours = fa_score_eval(&program->ir, program->ir.root[r], &w.data, &at, value),
                           lua = lua_value(L, (fa_score_root)r, &at);
                    cr_assert(agree(ours, lua),
                              "%s, root %d, seed %llu: %.17g, Lua's %.17g at b %d h %d i %d j %d s %.17g sq %d sk %d off %d", p->name, r,
                              (unsigned long long)seed, ours, lua, (int)at.b, (int)at.h, (int)at.i, (int)at.j, at.s, (int)w.data.sq,
                              (int)w.data.sk, (int)w.data.off);
                }
        }
        lua_close(L);
    }
    fa_program_free(program);
    return n;
}

Test(score_lua, the_ir_computes_what_lua_does)
{
    for (size_t i = 0; i < SCORE_PROGRAMS; i++)
        cr_assert(compare(&score_programs[i], 1 + i, POINTS) >= POINTS);
}

/* What `fagen run --score` takes. */
Test(score_lua, programs_that_ship_compute_what_lua_does)
{
    for (const fa_score_file *f = fa_score_shipped; f->name; f++)
        cr_assert(compare(&(score_program){ f->name, f->bytes }, 7, POINTS) >= POINTS);
}
