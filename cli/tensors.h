/* tensors: Q, K, V, O, LSE and the workspace of one problem in device memory, packed [b, s, h, d]. */
#ifndef FA_CLI_TENSORS_H
#define FA_CLI_TENSORS_H
#include "runtime/runtime.h"

enum { CLI_Q, CLI_K, CLI_V, CLI_O, CLI_LSE, CLI_WORKSPACE, CLI_TENSORS };

typedef struct cli_tensors {
    fa_context *ctx;
    CUdeviceptr at[CLI_TENSORS];
    size_t count[CLI_TENSORS]; /* elements; of the workspace, bytes */
    fa_args args;              /* ready for fa_launch; window, diagonal and scale are the caller's to set */
} cli_tensors;

/* p: normalized, with its whole shape. The context is current. */
fa_status cli_tensors_open(cli_tensors *out, fa_context *ctx, const fa_problem *p);
void cli_tensors_close(cli_tensors *t); /* zeros are fine */

/* Element i of the tensor becomes value(user, tensor, i), rounded to the type. */
typedef float (*cli_value)(void *user, int tensor, size_t i);
fa_status cli_tensors_fill(cli_tensors *t, cli_value value, void *user);
/* N(0, 1), from a seed. */
fa_status cli_tensors_random(cli_tensors *t, uint64_t seed);

/* Allocates the workspace that the launch needs, launches (plan NULL: what fa_launch chooses) and waits. */
fa_status cli_tensors_launch(cli_tensors *t, const fa_plan *plan);

/* A tensor as fp32, heap. */
fa_status cli_tensors_get(const cli_tensors *t, int tensor, float **out);
int cli_tensors_dtype(const cli_tensors *t, int tensor);
#endif
