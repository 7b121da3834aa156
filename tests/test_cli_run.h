/* test_cli_run: the command as a child process, what it wrote and how it ended. */
#ifndef FA_TEST_CLI_RUN_H
#define FA_TEST_CLI_RUN_H
#include "gen/config.h"
#include <jansson.h>
#include <stddef.h>

typedef struct cli_result {
    int code;        /* exit code, or 1000 + the signal that ended it */
    char *out, *err; /* heap, NUL-terminated */
    size_t out_size;
} cli_result;

/* A scratch directory, made current, with fixtures; FAGEN_DEVICE is the simulator. Once per test. */
void cli_scratch_make(void);
void cli_scratch_remove(void);

/* words: split at blanks; '...' keeps blanks; leading NAME=value words are environment. */
cli_result cli_run(const char *words);
void cli_result_free(cli_result *r);

/* The one document on standard output; fails the test when it is not exactly that. */
json_t *cli_json(const char *words, int code);
/* The value at a path such as "traffic.naive.total". */
json_t *cli_at(json_t *j, const char *path);

/* A config as commands say it. */
void cli_config(fa_config *out, const char *text);

/* Files of the scratch directory, folders left out. */
size_t cli_scratch_files(void);
void cli_scratch_write(const char *name, const void *bytes, size_t n);
#endif
