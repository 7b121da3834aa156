/* stage: a node whose tensors lie in host memory, computed on the simulator: they are copied there, and the result back. */
#ifndef FA_GGML_STAGE_H
#define FA_GGML_STAGE_H
#include "engine.h"

fa_status fa_ggml_stage_run(fa_ggml_stream *s, fa_ggml_engine *e, const fa_ggml *g, const fa_ggml_tensor *node, const fa_ggml_claim *c);
#endif
