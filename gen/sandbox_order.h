/* sandbox_order: table.sort and sorted. n log2 n comparisons whatever the order, each charged; equal values keep their places,
 * which Lua's own sort leaves to a random pivot. */
#ifndef FA_GEN_SANDBOX_ORDER_H
#define FA_GEN_SANDBOX_ORDER_H
#include <lua.h>

int fa_order_sort(lua_State *L);   /* table.sort(t, less) */
int fa_order_sorted(lua_State *L); /* sorted(t): the keys of t as an array, numbers before strings, each ascending */
#endif
