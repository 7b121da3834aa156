/* workload: the launches in a file that FAGEN_WORKLOAD wrote, summed by class and bucket; the rows that take the most time come first. */
#ifndef FA_CLI_TUNE_WORKLOAD_H
#define FA_CLI_TUNE_WORKLOAD_H
#include "runtime/plan/plan.h"

typedef struct cli_workload_row {
    fa_problem problem; /* the point of a class and bucket, normalized, with its whole shape */
    fa_plan_key key;
    uint64_t launches, known; /* known: those whose seconds are */
    double seconds;           /* of the known ones together */
} cli_workload_row;

typedef struct cli_workload {
    cli_workload_row *row;
    size_t n;
    uint64_t launches;
    size_t cut; /* lines that a killed writer or a full disk has cut, left out */
} cli_workload;

/* Seconds of all its launches, where those not known take as long as the others; 0 = none is known. */
double cli_workload_seconds(const cli_workload_row *row);

/* Rows by these seconds, the most first; those that nobody measured or modelled come last, by the products that they compute.
 * cli_workload_free it. FA_IO: the file cannot be read. FA_INVALID names file, line, what is there and what is accepted. */
fa_status cli_workload_read(cli_workload *out, const char *path);
void cli_workload_free(cli_workload *w); /* zeros are fine */
#endif
