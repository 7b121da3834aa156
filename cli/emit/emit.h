/* emit: what both halves of `fagen emit` read: one kernel as text, or a bundle of them. */
#ifndef FA_CLI_EMIT_EMIT_H
#define FA_CLI_EMIT_EMIT_H
#include "cli/options/command.h"
#include "cli/options/problem_options.h"
#include "runtime/runtime.h"

typedef struct emit_args {
    cli_common common;
    cli_list op, d, dtype, mask, n, align; /* op, mask: + 1 */
    int32_t dv, o_dtype, b, hq, hkv, sq, sk, features, page;
    cli_reach window;
    bool causal;
    cli_score score;
    cli_low low;
    const char *problem; /* several, between semicolons */
    const char *arch;    /* several, between commas */
    const char *device;  /* whose arch it is instead; NULL = none */
    int32_t sram;
    const char *config, *output;
    int32_t format;
    bool bundle, raw, model_best, host;
    const char *name, *chip, *grid;
    int32_t threads;
} emit_args;

#define EMIT_PROBLEMS 1024

/* Every combination of the lists, or the problems of the grid, normalized; *n of them. FA_INVALID; also when there are more than
 * EMIT_PROBLEMS. */
fa_status emit_problems(const emit_args *a, fa_problem out[EMIT_PROBLEMS], size_t *n);

/* "sm_90a": a cubin; "compute_80": PTX. */
typedef struct emit_target {
    const fa_arch *arch;
    bool ptx;
} emit_target;

#define EMIT_ARCHS 8 /* of one list: as many as the simulator has devices */

/* The first of a list, which moves on to the next. FA_INVALID names what is accepted. */
fa_status emit_next_target(const char **list, emit_target *out);

/* The arch, or simulated product, of the device; NULL: that which fa_create() finds without options, of FAGEN_DEVICE or of the GPU of this
 * machine, and "sm_80" where there is no driver or device. Any other trouble, as a FAGEN_DEVICE that names nothing, is the caller's to
 * tell. */
fa_status emit_default_arch(const char **out, const char *device);

/* A context that knows the records of the arch's chip: of --chip, else of the device of this machine that has the arch. Launches nothing.
 */
fa_status emit_open(const emit_args *a, const fa_arch *arch, fa_context **out);
/* The config of --config, or --model-best, else what fa_launch() would run there, rendered. */
fa_status emit_pick(const emit_args *a, fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *s);

/* Writes the bundle of all problems and archs. */
int emit_bundle(cli *c, const emit_args *a);

extern const cli_command cli_emit;
#endif
