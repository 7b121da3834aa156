/* bundle_file: compiled kernels as the bytes of a bundle, and as a C file that defines them. */
#ifndef FA_CLI_EMIT_BUNDLE_FILE_H
#define FA_CLI_EMIT_BUNDLE_FILE_H
#include "cache/entry.h"
#include "gen/config.h"
#include "gen/source.h"
#include "gen/text.h"
#include "runtime/bundle/blob.h"

typedef struct cli_bundle_image {
    fa_blob_image data; /* its pointers go into what follows */
    char config[512], source[33], check[33], params[FA_PARAMS_TEXT], layout[17];
    fa_entry entry;
    fa_blob_step step[FA_SOURCE_STEPS];
} cli_bundle_image;

typedef struct cli_bundle_row {
    fa_problem problem;
    char why[300];
    uint32_t image;
} cli_bundle_row;

typedef struct cli_bundle {
    cli_bundle_image **image;
    cli_bundle_row *row;
    uint32_t images, rows;
} cli_bundle;

/* A row, and its image unless that is there. Takes the entry and leaves zeros in *e; s is copied but for its text. A row of a problem,
 * shape bucket, arch and kind of image that is there is dropped. FA_NOMEM. */
fa_status cli_bundle_add(cli_bundle *b, const fa_problem *p, const fa_config *c, const char *why, const fa_source *s, fa_entry *e);
void cli_bundle_free(cli_bundle *b);

/* The bytes, as runtime/bundle/blob.h tells. out->oom when memory ran out. */
void cli_bundle_write(const cli_bundle *b, const char *name, fa_text *out);

/* The C file. name: of the fa_bundle, a C identifier; file: what the first line calls it; command: what makes it again; blob: of
 * cli_bundle_write(). out->oom when memory ran out. */
void cli_bundle_print(const cli_bundle *b, const char *name, const char *file, const char *command, const fa_text *blob, fa_text *out);
#endif
