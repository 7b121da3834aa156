/* replay: strategies of the search on recordings of measurements. */
#ifndef FA_CLI_REPLAY_H
#define FA_CLI_REPLAY_H
#include "autotune/replay.h"
#include "command.h"

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

/* fagen bench --replay: reads the files, runs every strategy, tells. */
int cli_replay(cli *c, char **path, int n, const char *arch, int32_t limit, int32_t seeds);
#endif
