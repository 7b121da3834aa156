/* widen: steps after one that makes K and V of 16 bits in the workspace (templates/tiles/widen.cu). */
#ifndef FA_RUNTIME_LAUNCH_WIDEN_H
#define FA_RUNTIME_LAUNCH_WIDEN_H
#include "runtime/args/check.h"
#include "runtime/build/kernel.h"

/* Whether the source has such a step. */
bool fa_widens(const fa_workspace *w);

/* Whether step s of it finds K and V in the workspace. */
bool fa_widen_reads(const fa_workspace *w, const fa_step *s);

/* The call as these steps have it: K and V of Q's type, in the buffers that c->values has, rows one after the other. */
void fa_widen_call(fa_call *c, const fa_workspace *w);
#endif
