/* prepare: from a problem to the plan in the table. */
#ifndef FA_RUNTIME_PREPARE_H
#define FA_RUNTIME_PREPARE_H
#include "check.h"
#include "plan.h"

/* The plan of the table for p (normalized), made when it is not there, or one stands in for it. Of several threads that ask for one class,
 * one makes it and the others wait. */
fa_status fa_prepare_plan(fa_context *ctx, const fa_problem *p, const fa_plan **out);

/* The class of a call is the one below it (fa_check_plain) where only that one is prepared and TMA cannot address the tensors: what
 * fa_problem_of() told, fa_launch() then finds. Looks at nothing but the table; thread-safe. */
void fa_prepared_class(fa_context *ctx, fa_call *c);

/* Few query rows run fastest split over their keys, which takes a workspace. A dense call that brings none, as before there was such a
 * kernel, is of the class that needs none, unless its own class's plan does not either. Sets and clears the feature; thread-safe. */
void fa_prepared_workspace(fa_context *ctx, fa_call *c);
#endif
