/* cost: what a judged config costs, inside a run. */
#ifndef FA_GEN_COST_H
#define FA_GEN_COST_H
#include "family.h"
#include "model.h"
#include "price.h"
#include <lua.h>

/* The problem as the model prices it: normalized, with the shape that stands for what it does not say. */
fa_status fa_cost_problem(fa_problem *out, const fa_problem *in);

/* Inside a run. What the config of fr->c costs, which was judged to run and whose layout is at the top of the stack, where it stays.
 * shaped: the tables of what fa_cost_problem() gave. known: as in fa_pricing. FA_UNSUPPORTED without a message: its family has no model. */
fa_status fa_cost_judged(lua_State *L, const fa_lua_args *fr, const fa_lua_args *shaped, const fa_family *f, fa_tile_counts *known,
                         fa_cost *out);
#endif
