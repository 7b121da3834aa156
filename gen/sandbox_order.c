/* sandbox_order: a merge sort from short runs to long ones. */
#include "sandbox_order.h"
#include "sandbox.h"
#include <lauxlib.h>
#include <stdbool.h>

#define STEPS 16          /* of one comparison, with what is moved for it */
#define BYTES_PER_STEP 8  /* of text that is compared */
#define CHARGE_EVERY 1000 /* steps between two charges */

typedef struct order {
    lua_State *L;
    int less;     /* where the function lies; 0 = Lua's < */
    bool by_type; /* numbers are less than strings */
    double steps; /* not charged yet */
} order;

/* Whether the value at the top is less than the one below it. */
static bool top_is_less(order *o)
{
    lua_State *L = o->L;
    int a = lua_type(L, -1), b = lua_type(L, -2);
    o->steps += STEPS;
    if (a == LUA_TSTRING && b == LUA_TSTRING)
        o->steps += (double)(lua_rawlen(L, -1) < lua_rawlen(L, -2) ? lua_rawlen(L, -1) : lua_rawlen(L, -2)) / BYTES_PER_STEP;
    if (o->steps >= CHARGE_EVERY) {
        fa_sandbox_charge(L, o->steps);
        o->steps = 0;
    }
    if (o->by_type && a != b)
        return a == LUA_TNUMBER;
    if (!o->less)
        return lua_compare(L, -1, -2, LUA_OPLT);
    lua_pushvalue(L, o->less);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -4);
    lua_call(L, 2, 1);
    bool is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

/* Merges [from, middle) and [middle, end) of the array at index a into that at index b. */
static void merge(order *o, int a, int b, lua_Integer from, lua_Integer middle, lua_Integer end)
{
    lua_State *L = o->L;
    lua_Integer i = from, j = middle;
    for (lua_Integer k = from; k < end; k++) {
        bool second = i == middle;
        if (!second && j < end) {
            lua_rawgeti(L, a, i);
            lua_rawgeti(L, a, j);
            second = top_is_less(o);
            lua_pop(L, 2);
        }
        lua_rawgeti(L, a, second ? j++ : i++);
        lua_rawseti(L, b, k);
    }
}

/* Sorts the values 1 to n of the table at index t. */
static void sort(order *o, int t, lua_Integer n)
{
    lua_State *L = o->L;
    luaL_checkstack(L, 10, NULL);
    fa_sandbox_charge(L, 1 + (double)n * STEPS);
    lua_createtable(L, (int)n, 0);
    lua_createtable(L, (int)n, 0);
    int a = lua_gettop(L) - 1, b = a + 1;
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, t, i);
        lua_rawseti(L, a, i);
    }
    for (lua_Integer run = 1; run < n; run *= 2) {
        for (lua_Integer from = 1; from <= n; from += 2 * run) {
            lua_Integer middle = from + run < n + 1 ? from + run : n + 1, end = middle + run < n + 1 ? middle + run : n + 1;
            merge(o, a, b, from, middle, end);
            fa_sandbox_charge(L, (double)(end - from));
        }
        int kept = a;
        a = b;
        b = kept;
    }
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, a, i);
        lua_seti(L, t, i);
    }
    fa_sandbox_charge(L, o->steps);
    lua_pop(L, 2);
}

int fa_order_sort(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    order o = { .L = L, .less = lua_isnil(L, 2) ? 0 : 2 };
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    if (n > 1)
        sort(&o, 1, n);
    return 0;
}

int fa_order_sorted(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_newtable(L);
    order o = { .L = L, .by_type = true };
    lua_Integer n = 0;
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TNUMBER && lua_type(L, -2) != LUA_TSTRING)
            return luaL_error(L, "sorted: a key is a %s; accepted: numbers and strings", luaL_typename(L, -2));
        lua_pushvalue(L, -2);
        lua_rawseti(L, 2, ++n);
    }
    sort(&o, 2, n);
    return 1;
}
