/* explore: all that is known of a problem's design space on one chip: configs, tiles and why they are pruned, records, counters of the
 * simulator, lengths; and its three forms: JSON, CSV, and a page. */
#ifndef FA_CLI_EXPLORE_EXPLORE_H
#define FA_CLI_EXPLORE_EXPLORE_H
#include "cache/record.h"
#include "cli/options/command.h"
#include "cli/session/mask_tiles.h"
#include "cli/session/ranking.h"
#include "cli/session/systems.h"
#include "gen/gen.h"

#define EXPLORE_REASONS 24 /* constraints of a tile */
#define EXPLORE_LENGTHS 32
#define EXPLORE_FAMILIES 8

/* What the simulator counted of one config, at a small shape of the problem's class. */
typedef struct explore_counters {
    double read, written; /* bytes of Q, K, V, O, LSE that the kernel asked for */
    double modelled;      /* the same by the model, at the same shape */
    double conflicts;     /* passes over the 32 banks beyond those of a layout without conflicts */
    double wavefronts;    /* passes in all */
    double instructions;  /* of warps */
    double shared_peak;   /* bytes */
} explore_counters;

/* One config that fits. */
typedef struct explore_config {
    fa_point point;
    size_t order; /* in the listing of the space; SIZE_MAX: only named by a record */
    fa_cost cost;
    const fa_record *record;          /* of this shape: the newest measured one, else the newest modelled one; NULL = none */
    bool older;                       /* the record is of another text of the kernel than the templates make today */
    bool rejected;                    /* the record has a failure of this text, or of one that it does not name: it leads nothing */
    const explore_counters *counters; /* NULL = not simulated */
} explore_config;

/* Why configs of a tile are pruned: one constraint. */
typedef struct explore_reason {
    char constraint[24], why[104]; /* why: of the config that came nearest */
    fa_config config;              /* that one */
    double excess;                 /* its "A > B" as A / B; 0 = the text has none */
    size_t points;
} explore_reason;

/* One value of the first axis and one of the second, of one family. */
typedef struct explore_tile {
    int family, y, x; /* indexes; y, x: into the values of the axes */
    size_t points, fits;
    explore_reason reason[EXPLORE_REASONS]; /* what is told first comes first */
    int reasons;
} explore_tile;

typedef struct explore_family {
    const char *name;
    int axis[2]; /* tunables of rows and columns, by number; the second may be -1 */
} explore_family;

/* The best config of a system at a length, by the model and on record; seconds 0 = it has no kernel or no model there. */
typedef struct explore_system {
    double seconds, measured, bytes, held;
} explore_system;

/* The best of a length beside naive attention and beside the systems. */
typedef struct explore_length {
    fa_problem problem;
    double seconds, naive;                       /* by the model; seconds 0 = it has none */
    double measured, measured_naive;             /* on the chip of the records; 0 = none */
    double tensors;                              /* bytes of the tensors, each once */
    double held, naive_held, bytes, naive_bytes; /* held: of global memory beside the tensors; ours: the workspace, and LSE */
    fa_config config;
    explore_system system[CLI_SYSTEMS_MAX];
} explore_length;

/* Counters: what explore_simulate leaves. */
typedef struct explore_run {
    fa_problem shape;
    char why[240]; /* why there are none, or no more; "" */
} explore_run;

typedef struct explore {
    fa_gen *gen;        /* borrowed */
    fa_problem problem; /* normalized, with its shape */
    const fa_arch *arch;
    int32_t budget;        /* shared memory per block, bytes */
    double flops;          /* of the operation's products over visible pairs: what TFLOP/s are counted by */
    char tensors[80];      /* the names of the operation's tensors: "Q, K, V and O" */
    double tensor_bytes;   /* of these, each once: what bandwidth is counted by; all keys at the longest, as the model has them */
    double measured_bytes; /* the same with the lengths that the tuner measures */
    size_t total, fitting; /* points of the space */
    explore_family family[EXPLORE_FAMILIES];
    int families;
    explore_config *config; /* the model's best first */
    size_t n, rejections;   /* rejections: how many of them a record rejects */
    explore_tile *tile;
    size_t tiles;
    char chip[48];              /* of the measured records; "" = none */
    fa_records records;         /* of this class, chip and arch, oldest first; reference times in front */
    bool reference;             /* the times of this shape are reference times: reference.h */
    explore_counters *counters; /* as many as were simulated */
    size_t simulated;
    explore_run run;
    double naive; /* seconds of naive attention: explore_naive; 0 = the operation has none */
    fa_traffic naive_traffic;
    cli_systems systems; /* that the lengths are held against */
    explore_length length[EXPLORE_LENGTHS];
    int lengths;
    size_t shipped; /* the config that ships for the arch; SIZE_MAX = none, or it is not among them */
    char shipped_for[64];
    cli_mask_tiles mask; /* of the config measured best, else of the model's best */
} explore;

/* Fills out from the space, the model and the store's records (store may be NULL); reference times stand in where a shape has none. chip:
 * whose measured times are taken; NULL = of the arch's chips the one with most records of this shape. family as in fa_space_list. */
fa_status explore_open(explore *out, fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family, fa_store *store,
                       const char *chip);
void explore_close(explore *e); /* zeros are fine */

/* Runs the best config of each of the n best tiles on the simulator. No trouble is an error: e->run.why tells it. */
void explore_simulate(explore *e, const cli *c, int n);

/* Whether HBM bounds the problem on the chip, whatever the kernel: FLOP per byte of its tensors are below where the roofline bends. */
bool explore_is_streamed(const explore *e);

/* Whether the record is of exactly this shape, and a time of the chip. */
bool explore_same_shape(const explore *e, const fa_record *r);
bool explore_is_time(const explore *e, const fa_record *r);
/* The shorter time of the two, r NULL being none at all; a time of few samples only where the other is one as well: cache/record.h. */
bool explore_is_shorter(const fa_record *r, const fa_record *than);
/* The fastest config by the model that no record rejects; NULL = there is none. */
const explore_config *explore_model_best(const explore *e);
/* The fastest time on record; NULL = there is none. */
const explore_config *explore_measured_best(const explore *e);
/* The system whose config it is; -1 = of none. */
int explore_system_of(const explore *e, const fa_config *c);
/* Bytes of the operation's tensors, each once, with every sequence as long as the longest. */
double explore_tensor_bytes(const explore *e, const fa_problem *p);
/* Names and bytes of the explored problem. */
fa_status explore_tensors_count(explore *e);
/* Seconds of naive attention of the problem's operation: its passes (gen/literature.h) over all pairs, each a kernel at the roofline of the
 * fastest matrix unit for the type and of HBM, and 3 us for each launch. No kernel of fagen: a bound that is kind to whatever is used
 * today. 0 where the operation has no naive algorithm. */
double explore_naive(const fa_arch *a, const fa_problem *p);
/* The best of every length from 256 to 65536, of the problem's own, and of those on record. space: as listed for the problem. */
void explore_lengths_fill(explore *e, const fa_space *space);

/* Units that multiply the type's matrices, TFLOP/s at most; 0 = no such unit, or not for this type. */
typedef struct explore_peak {
    const char *name;
    double tflops;
} explore_peak;
#define EXPLORE_PEAKS 3
void explore_peaks(const fa_arch *a, int dtype, explore_peak out[EXPLORE_PEAKS]);

/* A column of CSV and JSON. Times are in microseconds. */
typedef enum explore_part { EXPLORE_OF_CONFIG, EXPLORE_OF_RECORD, EXPLORE_OF_COUNTERS } explore_part;
typedef struct explore_cell {
    bool is_text, none;
    const char *text;
    double number; /* rounded to the column's decimals */
} explore_cell;
typedef struct explore_column {
    const char *name, *title;
    explore_part part;
    int decimals; /* of a number; -1: text */
} explore_column;
const explore_column *explore_column_at(size_t i); /* NULL past the last */
explore_cell explore_cell_of(const explore *e, const explore_config *k, size_t column);

/* A header and one line per config; RFC 4180, lines end with \n. */
void explore_csv(const explore *e, fa_text *out);
/* The document; NULL when memory runs out. docs/explore.md describes it. */
json_t *explore_document(const explore *e);
/* A whole HTML page that needs nothing else. FA_NOMEM. */
fa_status explore_page(const explore *e, const json_t *document, fa_text *out);

extern const cli_command cli_explore;
#endif
