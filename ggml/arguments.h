/* arguments: an engine's inside, and what fa_launch() is given for a claim: of engine.c and stream.c alone. */
#ifndef FA_GGML_ARGUMENTS_H
#define FA_GGML_ARGUMENTS_H
#include "band.h"
#include "engine.h"
#include "program.h"
#include "runtime/runtime.h"

#define FA_GGML_CLASSES 512 /* whose answer is kept */

typedef enum fa_ggml_kernel { FA_GGML_ROWS, FA_GGML_LOOKS, FA_GGML_KERNELS } fa_ggml_kernel;

/* What decides whether a kernel computes a claim: of shapes only how much K and V of few bits there is, in doublings. */
typedef struct fa_ggml_class {
    int32_t dtype, kv_dtype, v_dtype, d, dv, casts, v_in_k, align, parts, extent;
} fa_ggml_class;

struct fa_ggml_engine {
    fa_context *ctx;
    bool owns;
    const cu_driver *d;
    CUcontext primary;
    size_t memory;         /* bytes of a stream at most */
    pthread_mutex_t mutex; /* of what follows */
    _Atomic(bool) built;
    CUkernel fn[FA_GGML_KERNELS];
    fa_score *program[FA_GGML_PARTS];
    struct class
    {
        fa_ggml_class is;
        bool takes;
        char why[400];
    } class[FA_GGML_CLASSES];
    int32_t classes;
};

/* What a look at a mask told. */
typedef struct fa_ggml_looked {
    const void *id, *at;
    int32_t sq, sk, m2, m3;
    bool is_band; /* told by the host, which has seen the rows */
    fa_ggml_band band;
    unsigned char *tiles;
} fa_ggml_looked;

/* The primary context of the device is current inside: ggml computes on threads where another device's may be. */
fa_status fa_ggml_enter(const fa_ggml_engine *e);
void fa_ggml_leave(const fa_ggml_engine *e);

/* A launch of rows `first` to `first` + n - 1. l: what is known of the mask, or NULL. values: room for all of a program's. q16: where the
 * rows of Q lie in 16 bits. */
fa_status fa_ggml_arguments(fa_ggml_engine *e, const fa_ggml_claim *c, const fa_ggml_looked *l, int32_t first, int32_t n, void *q16,
                            const void *slopes, fa_score_value values[FA_GGML_PARTS], fa_args *a);

/* Which config runs a launch with these arguments, where that is not the library's own choice: it is pinned for the class and bucket. Few
 * rows under a mask that was never measured are chosen as without it; of configs that need more workspace than there is room for, the
 * cheapest that needs less. */
void fa_ggml_choose(fa_ggml_engine *e, const fa_ggml_claim *c, const fa_args *a);
#endif
