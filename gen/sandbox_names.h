/* sandbox_names: what scripts see of Lua's libraries, and seven names of fagen: sorted, f32, fail,
 * seen_share, seen_keys, codes, code_name. */
#ifndef FA_GEN_SANDBOX_NAMES_H
#define FA_GEN_SANDBOX_NAMES_H
#include <lua.h>

/* A lua_CFunction, called once per state: opens Lua's libraries where fa_sandbox_env alone finds them, and strings' methods. */
int fa_sandbox_names_open(lua_State *L);
#endif
