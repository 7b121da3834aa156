/* recordings: measurements that were taken once, out of files. */
#ifndef FA_BENCH_RECORDINGS_H
#define FA_BENCH_RECORDINGS_H
#include "bench/dev/replay.h"

/* Recordings of several problems. */
typedef struct cli_recordings {
    fa_recording *r;
    size_t n, cap;
    size_t taken, unknown; /* measurements; of them those of configs that the templates have no price for, left out */
} cli_recordings;

/* Adds a file's: records (a line of JSON each), what `fagen tune --json` prints, or what bench/variants.py --json writes. The model's
 * time is the file's, else that of the templates for the record's arch, or `arch`. */
fa_status cli_recordings_read(cli_recordings *out, const char *path, const char *arch);
void cli_recordings_free(cli_recordings *out);
#endif
