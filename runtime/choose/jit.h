/* jit: where kernels are made: templates, compiler, disk cache. The library has one (jit.c, select_jit.c, build.c and what these
 * call); libfagen_launch has none (jit_none.c) and launches what bundles hold. Nothing else of this folder calls into it. */
#ifndef FA_RUNTIME_CHOOSE_JIT_H
#define FA_RUNTIME_CHOOSE_JIT_H
#include "gen/text.h"
#include "runtime/context/environment.h"
#include "select.h"

/* Fills what the context keeps for it; its device and budget are set. Without NVRTC it is
 * FA_OK. FA_NOMEM. */
fa_status fa_jit_open(fa_context *ctx, const fa_options *o, const fa_environment *env);
void fa_jit_close(fa_context *ctx);

/* Whether kernels can be compiled: FA_NO_NVRTC is the answer for good. */
bool fa_jit_compiles(fa_context *ctx);

/* A line of fa_explain() for a kernel that is not loaded: whether the disk cache has it, and its key. */
void fa_jit_describe(fa_context *ctx, const fa_source *s, fa_text *t);

/* The config's form for people: values by name where the templates name them. */
void fa_jit_config(fa_context *ctx, const fa_config *c, char *buf, size_t n);

/* Lines of fa_explain(): the point of p, the hash of what is known of it, the candidates with their prices and where each comes from. */
void fa_jit_candidates(fa_context *ctx, const fa_problem *p, fa_text *t);

/* What fa_candidates() tells, and text for it. row.runs is set of the config of runs. Ends where tell returns non-zero. */
fa_status fa_jit_tell(fa_context *ctx, const fa_problem *p, const fa_selection *runs, fa_candidate_fn tell, void *user);

/* The config that text names, its tunables in order, where it runs at the point, without a workspace of a class that has none, and is not
 * known to fail: what may be pinned. Else FA_INVALID, FA_NO_FIT, FA_UNSUPPORTED, FA_WRONG with the reason. */
fa_status fa_jit_pinnable(fa_context *ctx, const fa_problem *point, const char *text, fa_config *out);

/* Whether p, whose kernel takes so many seconds, would take less than a part of `times` of them if its rows, its pages or its LSE lay as
 * the fastest kernels want them: buf says which of these wins the most, and both times. */
bool fa_jit_neighbour(fa_context *ctx, const fa_problem *p, double seconds, double times, char *buf, size_t n);

/* Beside them: fa_select_jit(), and of make.c fa_plan_of_source(). */
#endif
