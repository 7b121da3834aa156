/* sandbox_formats: what scripts ask of formats of few bits (format.h). */
#ifndef FA_GEN_SANDBOX_FORMATS_H
#define FA_GEN_SANDBOX_FORMATS_H
#include <lua.h>

/* codes(name, cc): a format's row as a table, with the unpacking of a chip of compute capability cc; nil where there is no such format. */
int fa_sandbox_formats_codes(lua_State *L);
/* code_name(i): the name of row i, from 1; nil after the last. */
int fa_sandbox_formats_name(lua_State *L);
#endif
