/* case: one launch in full, data included, decided by one integer: what verification runs and what a failure is replayed by. */
#ifndef FA_VERIFY_CASES_CASE_H
#define FA_VERIFY_CASES_CASE_H
#include "gen/config.h"
#include "gen/gen.h"
#include "gen/model.h"
#include "gen/operation.h"
#include "gen/pairs.h"
#include "verify/operands/layout.h"
#include "verify/operands/ragged.h"
#include "verify/operands/random.h"
#include "verify/operands/score_operands.h"

typedef enum fa_case_values {
    FA_VALUES_NORMAL = 0, /* N(0, 1) */
    FA_VALUES_HEAVY,      /* N(0, 1), one in 50 sixteen times as large */
    FA_VALUES_STEEP,      /* scores near -5e5 or +5e5, by key */
    FA_VALUES_TINY,       /* subnormal numbers of the type in K, tiny ones in V */
    FA_VALUES_KINDS,
    /* Not drawn unless asked for, and held against bounds of every element in place of the naive algorithm. */
    FA_VALUES_WIDE = FA_VALUES_KINDS, /* Q and K: N(0, 1) times a power of two, which all are finite with, and their products: row by row,
                                         or element by element */
    FA_VALUES_BEYOND,                 /* the same, near and beyond what fp32 holds of scores */
    FA_VALUES_SEEN,                   /* N(0, 1), but NaN and infinities in V of keys that some queries see, and others do not */
    FA_VALUES_ALL
} fa_case_values;

typedef enum fa_hidden { /* what lies in keys that no query sees */
                         FA_HIDDEN_VALUES = 0,
                         FA_HIDDEN_NAN,
                         FA_HIDDEN_INF,
                         FA_HIDDEN_KINDS
} fa_hidden;

typedef struct fa_case {
    uint64_t seed;      /* of the data, and of all below where fa_case_make made it */
    uint32_t kernel;    /* number of the compile-time part: cases that share it share a problem key and a config */
    uint32_t choice;    /* which config: see fa_case_config */
    fa_problem problem; /* normalized; sq and sk may be 0 */
    int32_t window_left, window_right, diagonal, offset;
    float scale;                     /* 0 = 1/sqrt(d) */
    int32_t layout[FA_OPERANDS_MAX]; /* fa_layout_kind of each operand that is strided, by its row in the operation */
    int32_t odd;                     /* 1: strides that must be ignored are absurd */
    int32_t lse;                     /* 1: LSE, and every other operand that is optional, is asked for */
    int32_t values;                  /* fa_case_values */
    int32_t hidden;                  /* fa_hidden */
    int32_t gap;                     /* the byte that fills gaps of inputs, 0 to 255; 255 makes NaN of every type */
    int32_t same_b;                  /* this many batches in a row hold the same data; at least 1 */
    int32_t same_kv;                 /* this many KV heads in a row hold the same data; at least 1 */
    int32_t same_q;                  /* this many query heads in a row hold the same data; at least 1 */
    fa_ragged_how ragged;            /* of problems with features: lengths, pages */
    float dropout;                   /* of problems with it: the probability of a pair to be dropped; seed and offset follow from seed */
    fa_score_scalars scalars;        /* of problems with a score program: what the launch gives; the elements of arrays follow from seed */
    bool strided_score;              /* and strides of these arrays, which are packed else */
    int32_t unwritten;               /* 1: rows of inputs that no sequence sees, and gaps, are left as the device gives them */
} fa_case;

/* Seeds below FA_CASE_FREE draw one of FA_CASE_KERNELS compile-time parts, so that a campaign compiles little; from there on each
 * draws its own. */
#define FA_CASE_KERNELS 84
#define FA_CASE_CODES 32.f /* what Q and K of integers of 8 bits are times as large as others */
#define FA_CASE_FREE ((uint64_t)1 << 32)
void fa_case_make(fa_case *c, uint64_t seed); /* of the forward operation */
void fa_case_make_of(fa_case *c, const fa_operation *op, uint64_t seed);
/* Few queries beside many keys, as when tokens are generated; or many, as of prompts and chunks of them. */
typedef enum fa_case_queries { FA_CASE_FEW, FA_CASE_MANY } fa_case_queries;

/* A case of the problem's class, which is normalized: shape, lengths, pages and all else by the seed. Work is bounded, so that it is quick
 * on the simulator. */
void fa_case_make_class(fa_case *c, const fa_problem *class, fa_case_queries queries, uint64_t seed);

/* Gives a case that is drawn other values: of FA_VALUES_BEYOND the scale goes with them. */
/* Gives a case of the forward operation a score program, with scalars by its seed where `drawn`, else those of the text; NULL: none. */
void fa_case_set_score(fa_case *c, const fa_program *program, bool drawn);

void fa_case_set_values(fa_case *c, fa_case_values values);
bool fa_case_bounded(const fa_case *c); /* its values are held against bounds */

/* A plain case of the problem: packed, N(0, 1), LSE, bottom-right; window -1, -1. Unset shape fields become 1. With features:
 * lengths and pages as fa_ragged_typical has them. */
fa_status fa_case_of(fa_case *out, const fa_problem *p, uint64_t seed);

/* The config that c->choice stands for among those that fit, of the family `only`, or with NULL of the default families; where the
 * strides are none that TMA takes, among those that do without: so cases of one kernel may have two. FA_UNSUPPORTED or FA_NO_FIT: there
 * is none; FA_INVALID: no family has this name. */
fa_status fa_case_config(fa_gen *g, const fa_case *c, const fa_arch *a, int32_t budget, const char *only, fa_config *out);

/* One line: "seed=17 bf16,d=64,... window=3:5 diagonal=top-left q=padded ...". Returns the length as snprintf does. */
int fa_case_print(char *buf, size_t n, const fa_case *c);

fa_band fa_case_band(const fa_case *c);           /* visible: i + lo <= j <= i + hi; of a case without features */
float fa_case_scale(const fa_case *c);            /* as the kernel gets it */
fa_dropout fa_case_dropout(const fa_case *c);     /* of a case without, none is dropped */
bool fa_case_seen(const fa_case *c, int32_t key); /* by some query */
/* Its launch but for the addresses, and for lengths and pages. */
fa_args fa_case_args(const fa_case *c);
/* Lengths and tables of a case with features; of another, none. */
fa_status fa_case_ragged(const fa_case *c, fa_ragged *out);
/* The sizes of its launch with those. */
fa_sizes fa_case_sizes(const fa_case *c, const fa_ragged *r);
/* Of the operand with this row in the case's operation. A pointer to packed elements [b, hq, sq] has rows of one element. */
int32_t fa_case_align(const fa_case *c, int operand); /* bytes that its rows start at multiples of */
fa_layout fa_case_layout(const fa_case *c, const fa_sizes *sizes, int operand);
int fa_case_dtype(const fa_case *c, int operand);
bool fa_case_has(const fa_case *c, int operand); /* it is required, or asked for */

/* The width values of row (b, s, h) of an input, rounded to the type. The same for every layout of the tensor. */
void fa_case_row(const fa_case *c, int operand, int32_t b, int32_t s, int32_t h, float *row);
/* The same of a row that no sequence sees. */
void fa_case_hide_row(const fa_case *c, float *row, int64_t width);
#endif
