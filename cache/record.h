/* record: one measured or modelled fact about one config, one JSON line in an append-only file per chip and problem. */
#ifndef FA_CACHE_RECORD_H
#define FA_CACHE_RECORD_H
#include "gen/arch.h"
#include "gen/config.h"
#include "gen/problem.h"
#include "gen/text.h"
#include "jsonl.h"
#include "quality.h"
#include "store.h"

typedef enum fa_outcome {
    FA_RAN = 0,        /* has a time; a measured one is verified */
    FA_BAD_CONSTRAINT, /* pruned by a hard constraint after rendering: registers, spills */
    FA_BAD_COMPILE,
    FA_BAD_LAUNCH,
    FA_BAD_RESULT, /* ran, and failed verification */
    FA_BAD_TIMEOUT
} fa_outcome;
const char *fa_outcome_name(fa_outcome o); /* "ok" "constraint" "compile" "launch" "wrong" "timeout" */

typedef enum fa_how { FA_MODELLED = 0, FA_MEASURED = 1 } fa_how; /* "model" "measured" */

typedef struct fa_record {
    fa_problem problem; /* with its shape */
    char chip[48];      /* a measured record: the device's name; a modelled one: the arch */
    char arch[12];
    fa_config config;
    fa_outcome outcome;
    fa_how how;
    double seconds;             /* median of one launch with a cold L2, or the model's time: what decides */
    double spread;              /* median absolute deviation of the samples, relative */
    double low, high;           /* of seconds: the 95 % interval of the median; 0 = not told */
    double warm;                /* median of one launch whose tensors the launch before left in the L2; 0 = not taken */
    int32_t count;              /* samples */
    bool imported;              /* not measured here: it came with fa_records_import(), which verified its config here */
    bool verified;              /* a measured time without it never wins. Older lines do not say it: they told of verified ones alone */
    fa_quality quality;         /* of a measured time */
    int32_t clock_mhz;          /* of the SMs when it was measured; 0 = not told */
    int32_t temperature;        /* of the chip, degrees Celsius; 0 = not told */
    int32_t regs, spills, smem; /* of the compiled kernel; spills in bytes */
    char why[120];              /* of a failure: its message */
    char version[16];           /* fagen's */
    char compiler[24];          /* "nvrtc 13.0" */
    char driver[24];            /* "cuda 13.0", "sim" */
    char date[24];              /* UTC, 2026-11-21T04:31:00Z */
    uint64_t source[2];         /* hash of the rendered text: a record of another text is stale */
} fa_record;

/* Appends one line with a single write() under O_APPEND and the file's lock. False when it could not be kept. */
bool fa_record_append(fa_store *s, const fa_record *r);

/* The names of the record's folder and file below records/. */
void fa_record_path(const fa_record *r, char chip_dir[64], char file[160]);
/* Calls f for every line of the files that the record belongs to, in every root, whether it parses or not. False with *trouble where that
 * of the root that takes new files cannot be read. */
bool fa_record_beside(fa_store *s, const fa_record *r, fa_jsonl_fn *f, void *user, const char **trouble);

/* A line of a file of records, as it lies there. */
typedef struct fa_record_line {
    const fa_record *record; /* NULL: it does not parse */
    const char *text;        /* NUL-terminated; NULL: the file as a whole could not be read, for the reason trouble */
    size_t size, number;     /* bytes; lines count from 1 */
    const char *trouble;
    size_t root;             /* of the search path */
    const char *chip, *file; /* <root>/v1/records/<chip>/<file> */
} fa_record_line;

/* Calls f for every line of the chip and the problem's key (NULL: of all), file by file; of other lines only those that do not parse
 * and lie in the same files. */
typedef void fa_record_fn(void *user, const fa_record_line *line);
void fa_records_each(fa_store *s, const char *chip, const fa_problem *p, fa_record_fn *f, void *user);

typedef struct fa_records {
    fa_record *r;
    size_t n;
} fa_records;

/* Every record of the chip whose problem has the key (fa_problem_print_key) of p, oldest first, all roots; p NULL = of all
 * problems; chip NULL = of all chips. Lines that do not parse are skipped. Never fails: no file is no record. */
fa_records fa_records_load(fa_store *s, const char *chip, const fa_problem *p);
void fa_records_free(fa_records *rs);

/* The winner for p among rs, or NULL: records that ran and, measured or imported, are verified; measured before modelled, same bucket
 * first, else the nearest bucket of the same key; within it, for each config its newest record, and of those the fastest; times of few
 * samples (quality.h) count only where there are no others: they were taken before candidates met in turns, mostly under a higher clock.
 * The work grows with the number of records alone. NULL also when memory runs out. */
const fa_record *fa_records_best(const fa_records *rs, const fa_problem *p);

/* How far two problems of one class lie apart: doublings of the lengths and of b * hq, and half of those of the group. 0 within one shape
 * bucket. */
double fa_records_distance(const fa_problem *a, const fa_problem *b);

/* JSON of one record, one line without newline, and back. */
bool fa_record_to_json(const fa_record *r, fa_text *out);
bool fa_record_from_json(fa_record *out, const char *line);

/* The same for many lines, of which neighbours are mostly of one problem. Zeros are an empty memo. */
typedef struct fa_record_memo {
    char text[FA_PROBLEM_TEXT];
    fa_problem problem;
} fa_record_memo;
bool fa_record_read(fa_record *out, const char *line, fa_record_memo *memo);
#endif
