/* sandbox_pattern: string.find, match, gmatch and gsub with Lua's patterns, matched in steps that are charged as they are taken.
 *
 * Lua's own matcher takes time that is exponential in the pattern and cannot be interrupted; this one gives the same results and errors. */
#ifndef FA_GEN_SANDBOX_PATTERN_H
#define FA_GEN_SANDBOX_PATTERN_H
#include <lua.h>

int fa_pattern_find(lua_State *L);
int fa_pattern_match(lua_State *L);
int fa_pattern_gmatch(lua_State *L);
int fa_pattern_gsub(lua_State *L);
#endif
