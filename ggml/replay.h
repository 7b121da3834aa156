/* replay: graphs of a backend that come again under their number become graphs of CUDA's. */
#ifndef FA_GGML_REPLAY_H
#define FA_GGML_REPLAY_H
#include "sim/driver.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct fa_ggml_replays fa_ggml_replays;
fa_ggml_replays *fa_ggml_replays_open(const cu_driver *d); /* NULL: no memory */
void fa_ggml_replays_close(fa_ggml_replays *s);            /* NULL is fine */

/* The first time that a number comes nothing is done: *done is false, and the caller puts the work on the stream. The second time `work`
 * is captured on `stream`, and the graph launched; from then on it is launched again. Where a capture fails, *done is false, that time and
 * for ever. Returns what ggml is to be told where *done is true. */
int32_t fa_ggml_replay(fa_ggml_replays *s, uint64_t number, CUstream stream, int32_t (*work)(void *user), void *user, bool *done,
                       int64_t *captures, int64_t *replays);
#endif
