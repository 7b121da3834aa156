/* emit: what both halves of `fagen emit` read: one kernel as text, or a bundle of them. */
#ifndef FA_CLI_EMIT_H
#define FA_CLI_EMIT_H
#include "ask.h"
#include "command.h"

typedef struct emit_args {
    cli_common common;
    cli_list d, dtype, mask, n, align;
    int32_t dv, o_dtype, b, hq, hkv, sq, sk;
    bool causal;
    const char *problem; /* several, between semicolons */
    const char *arch;    /* several, between commas */
    int32_t sram;
    const char *config, *output;
    int32_t format;
    bool bundle;
    const char *name, *chip, *grid;
    int32_t threads;
} emit_args;

#define EMIT_PROBLEMS 256

/* Every combination of the lists, or the problems of the grid, normalized; *n of them. FA_INVALID; also when there are more than EMIT_PROBLEMS. */
fa_status emit_problems(const emit_args *a, fa_problem out[EMIT_PROBLEMS], size_t *n);

/* Writes the bundle of all problems and archs. */
int emit_bundle(cli *c, const emit_args *a);
#endif
