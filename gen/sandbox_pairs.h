/* sandbox_pairs: what scripts ask of pairs (pairs.h), as the model has them: bottom-right, a problem's window all to the left. */
#ifndef FA_GEN_SANDBOX_PAIRS_H
#define FA_GEN_SANDBOX_PAIRS_H
#include <lua.h>

/* seen_share(p): the share of all pairs of a head that the mask lets through, exact; 1 where there is no pair. */
int fa_sandbox_pairs_share(lua_State *L);
/* seen_keys(p, rows): the keys that `rows` consecutive queries see, at most. */
int fa_sandbox_pairs_keys(lua_State *L);
#endif
