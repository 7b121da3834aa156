/* tuning: a search and what it found: the candidates in the order in which they were tried, each with its outcome. */
#ifndef FA_AUTOTUNE_CANDIDATE_TUNING_H
#define FA_AUTOTUNE_CANDIDATE_TUNING_H
#include "autotune/device/lock.h"
#include "autotune/device/samples.h"
#include "autotune/strategy/pool.h"
#include "cache/record.h"
#include "gen/space.h"
#include "runtime/runtime.h"

typedef struct fa_candidate {
    fa_config config;
    fa_cost cost; /* the model's, with the compiler's registers once they are known */
    int32_t smem, threads;
    int32_t tile[2];      /* rows, columns; zeros where the family declares none */
    int32_t regs, spills; /* of the compiled kernel; the family's estimate and 0 before */
    bool decided;         /* outcome and why hold */
    fa_outcome outcome;
    fa_how how;
    bool resumed;           /* the outcome is an earlier record's */
    double seconds, spread; /* of one launch with a cold L2, where outcome is FA_RAN */
    double low, high;       /* the 95 % interval of the median; 0 = not told */
    double warm;            /* of one launch with a warm L2; 0 = not taken */
    int32_t count;          /* samples */
    fa_quality quality;
    int32_t clock_mhz, temperature; /* of the chip; 0 = not told */
    double tflops;                  /* of the matrix products over visible pairs, 1e12 per second */
    char why[120];                  /* of a failure */
    uint64_t source[2];             /* hash of the text, once rendered */
    const fa_plan *plan;            /* where it was loaded */
    bool verified;
    fa_origin origin; /* listed, a seed, or a neighbour of one that is fast */
    fa_samples samples, warm_samples;
    int launches; /* of one sample */
    bool met;     /* it was timed among others; its times before that are of no account */
    /* What candidates are compared by: seconds as they would be beside those that met last. Each round has a clock of its own, a chip that
     * idled while kernels were compiled being faster for a moment; placed: the level knows of that, else it is of the first pass. */
    double level;
    bool placed;
    size_t at; /* in the pool of its search */
} fa_candidate;

#define FA_REJECTIONS 64

/* What a launch of a bucket runs. */
typedef struct fa_runs {
    bool known;
    bool decided; /* a winner of the very bucket on the chip: no price was asked */
    fa_config config;
    char from[64]; /* "shipped winner of NVIDIA H200", "modelled record", "model" */
} fa_runs;

typedef struct fa_tuning {
    fa_problem problem;      /* normalized, with its shape */
    fa_how how;              /* FA_MEASURED: on a device; FA_MODELLED: the model ranked */
    fa_candidate *candidate; /* as they were tried: the baseline, seeds, then by the strategy, then neighbours. Its place stays the same */
    size_t n;                /* so far: a strategy that learns adds to them */
    const char *strategy;    /* its name */
    fa_candidate *winner;    /* NULL = none; of FA_MODELLED a guess */
    fa_candidate *baseline;  /* what fa_launch() runs where nothing was tuned: baseline.h; NULL = none is known */
    char baseline_from[64];  /* "shipped winner of NVIDIA H200" */
    fa_runs runs;            /* of FA_MODELLED with a winner: what fa_launch() runs now that the guess is on record */
    fa_rejection rejected[FA_REJECTIONS]; /* why configs of the space are no candidates, most first */
    size_t n_rejected;
    struct {
        size_t space;             /* configs of the families */
        size_t sound;             /* that pass the families' rules */
        size_t fits_shared;       /* and whose buffers fit the shared memory */
        size_t fits;              /* and the registers: all hard constraints */
        size_t kept;              /* candidates: n */
        size_t seeds, neighbours; /* of them; neighbours: what was tried when the strategy itself was done */
        size_t compiled, verified, timed, resumed, failed;
        size_t lost; /* child processes that a candidate took with it */
    } counts;
    bool out_of_time; /* the time budget ended it */
    double elapsed;   /* seconds, without those in which it waited for the device: fa_site.device_lock */
} fa_tuning;
void fa_tuning_free(fa_tuning *t);

/* Where a search takes place. */
typedef struct fa_site {
    fa_context *ctx; /* NULL = no device */
    const fa_arch *arch;
    int32_t budget;           /* shared memory per block, bytes; 0 = what the chip offers */
    const char *template_dir; /* NULL = the embedded templates */
    fa_store *store;
    fa_compiler *compiler;
    bool timed;                  /* ctx drives a real device */
    int32_t lengths;             /* how those of measured sequences are drawn: fa_spread + 1, 0 = as is typical */
    fa_device_lock *device_lock; /* held while the device is used; NULL = no other process of fagen uses it */
} fa_site;
fa_site fa_site_of(fa_context *ctx);
#endif
