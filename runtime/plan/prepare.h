/* prepare: from a problem to the plan in the table. */
#ifndef FA_RUNTIME_PLAN_PREPARE_H
#define FA_RUNTIME_PLAN_PREPARE_H
#include "plan.h"

/* The plan of the table for the point of p (normalized), made when it is not there, or has a fallback's kernel. Of several threads that ask
 * for one class, one makes it and the others wait. */
fa_status fa_prepare_plan(fa_context *ctx, const fa_problem *p, const fa_plan **out);

/* The same; and in *without that of launches that bring no workspace and get none, NULL where they are of the same class, or no bundle has
 * one. */
fa_status fa_prepare_both(fa_context *ctx, const fa_problem *p, const fa_plan **out, const fa_plan **without);
#endif
