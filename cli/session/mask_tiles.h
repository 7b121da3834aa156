/* mask_tiles: what a score program's mask spares: how kernels find the tiles that it hides, which tables a kernel before makes for that,
 * and how many tiles of a config are empty, partial and full. */
#ifndef FA_CLI_SESSION_MASK_TILES_H
#define FA_CLI_SESSION_MASK_TILES_H
#include "cli/text/cli.h"
#include "gen/gen.h"
#include "gen/score/program.h"
#include "gen/score/tile_class.h"

typedef enum cli_mask_found {
    CLI_MASK_NONE,   /* the program has no mask, or there is no program */
    CLI_MASK_BOUNDS, /* the keys of a tile's queries are those between two ends */
    CLI_MASK_SCAN,   /* tiles are asked one by one */
    CLI_MASK_MARKS,  /* they are, in a kernel before */
    CLI_MASK_PAIRS   /* each pair of all tiles is asked */
} cli_mask_found;

/* Whatever the problem. */
typedef struct cli_mask {
    const fa_program *program;
    cli_mask_found found;
    uint32_t decides;  /* bits of the arrays whose elements decide */
    uint32_t prepared; /* of those that the kernel before reads: what is in its tables; 0: there is none */
    char tables[384];  /* buffers of the workspace (gen/workspace.h) */
} cli_mask;
fa_status cli_mask_of(cli_mask *out, const fa_program *program); /* NULL is fine */

/* Of a problem with its shape and a config. */
typedef struct cli_mask_tiles {
    cli_mask mask;
    const char *why;          /* CLI_MASK_PAIRS: why */
    int32_t rows, columns;    /* of a tile; 0: there are no counts */
    bool packed;              /* rows are of all query heads of a group */
    bool sure;                /* else more tiles may be empty or full than are counted so */
    fa_score_tile_counts all; /* of all sequences and heads */
    int64_t reads;            /* bytes of the arrays that the kernel before reads; -1: a launch says */
    int64_t workspace;        /* of the tables, bytes */
} cli_mask_tiles;

/* scalars NULL: those of the text. packed: as in fa_cost. Without a mask all is 0. */
fa_status cli_mask_tiles_of(cli_mask_tiles *out, const fa_gen *g, const fa_problem *p, const fa_score_scalars *scalars, const fa_config *c,
                            bool packed);

/* The object, null without a mask; lines for people, "tiles      ...", none without. */
json_t *cli_mask_json(const cli_mask *m);
json_t *cli_mask_tiles_json(const cli_mask_tiles *m);
void cli_mask_print(const cli_mask *m);
void cli_mask_tiles_print(const cli_mask_tiles *m);
#endif
