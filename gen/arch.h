/* arch: what a chip offers, one table row per sm_XX; the device refines it at run time. */
#ifndef FA_GEN_ARCH_H
#define FA_GEN_ARCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a chip sustains, all units at once, as probes measure it: per second. 0 = not known. */
typedef struct fa_rates {
    double mma16, wgmma16; /* FLOP: products of bf16, random data */
    double exps;           /* ex2 */
    double l2_bytes, hbm_bytes;
    double launch; /* seconds from one empty kernel to the next */
    double clock;  /* Hz, under the products */
} fa_rates;

typedef struct fa_arch {
    char name[12];         /* "sm_80": the real architecture NVRTC compiles for, features included (sm_90a) */
    char chip[48];         /* the product the row describes, or the device's own name */
    int32_t cc;            /* compute capability * 10: 80, 90, ... */
    int32_t smem_block;    /* shared memory a block may opt in to, bytes */
    int32_t smem_sm;       /* shared memory of an SM, bytes */
    int32_t smem_reserved; /* taken by the system for each block, bytes */
    int32_t regs_sm;       /* 32-bit registers of an SM */
    int32_t regs_thread;   /* most registers of one thread */
    int32_t threads_sm, warps_sm, blocks_sm;
    int32_t sm_count;
    int64_t l2_bytes;
    double clock_ghz;       /* sustained under matrix load, the clock that the rates below are scaled by */
    double mma16_flop;      /* per clock and SM: fp16/bf16 with fp32 accumulation through mma.sync */
    double mma_tf32_flop;   /* the same for TF32 */
    double wgmma16_flop;    /* through wgmma or its successors; 0 where there is none that fagen uses */
    double ffma_flop;       /* per clock and SM: fp32 FMA, 2 each */
    double exp_rate;        /* ex2 per clock and SM */
    double issue_rate;      /* instructions (of 32 lanes) per clock and SM */
    double smem_bytes_clk;  /* shared memory bytes per clock and SM */
    double l2_gbs, hbm_gbs; /* bytes / 1e9 per second */
    double launch_seconds;  /* of a step: driver, block scheduling, the last block's drain; 0 = FA_LAUNCH_SECONDS */
    fa_rates fitted;        /* what probes gave on the chip that the model was fitted on; zeros: it was fitted on no chip of this arch */
    const char *source;     /* where the numbers come from; a literal, by whose address the row of a refined copy is found again */
} fa_arch;

#define FA_LAUNCH_SECONDS 1e-6

/* Puts what probes gave on this very chip in place of the table's numbers. Where the model was fitted, a number changes by as much as the
 * probe differs from that of the fitted chip; elsewhere the probe's takes its place. Rates that are not known, or differ more than
 * fourfold, change nothing. */
void fa_arch_calibrate(fa_arch *a, const fa_rates *measured);

size_t fa_arch_count(void);
const fa_arch *fa_arch_at(size_t i);
/* "sm_80", "80", "sm_90" (finds sm_90a), "h200", "h100", "a100" ...; NULL when unknown. A name of an architecture with several rows is that
 * of the first: what the model was fitted on. */
const fa_arch *fa_arch_find(const char *name);
/* The i-th product that a person may name, "a100", and the row that it is; NULL past the last. */
const fa_arch *fa_arch_product(size_t i, const char **name);
/* The names, comma separated, for messages. */
const char *fa_arch_names(void);
/* The row of the compute capability major.minor, NULL when unknown; of several the one whose product the device's name has ("NVIDIA H100
 * 80GB HBM3"), else the first. */
const fa_arch *fa_arch_of_device(int major, int minor, const char *device);
#endif
