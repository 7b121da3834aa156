/* judge: a config that a caller names, for a problem. */
#include "family.h"

bool fa_family_judge_named(lua_State *L, const fa_lua_args *fr, const fa_family *f, const fa_config *c, fa_point *out)
{
    bool size_only;
    if (!fa_family_supports(L, fr, f, out->why, sizeof out->why))
        return false;
    for (int i = 0; i < c->n; i++)
        fa_lua_args_set(L, fr, c->tunable[i].name, c->tunable[i].value);
    fa_family_judge(L, fr, f, FA_NAMED, out, &size_only);
    return true;
}
