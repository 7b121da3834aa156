/* ir: a score program as a list of nodes, each made once (hash-consed), arguments before what reads them. From it come the value in fp64
 * (eval.h), derivatives (derive.h), intervals (range.h) and CUDA (print_cuda.h). Names of the text are in none of it but messages. */
#ifndef FA_GEN_SCORE_IR_H
#define FA_GEN_SCORE_IR_H
#include "limits.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fa_score_op {
#define OP(name, ...) FA_SCORE_##name,
#include "ops.def"
    FA_SCORE_OPS
} fa_score_op;

typedef enum fa_score_type {
    FA_SCORE_BOOL,
    FA_SCORE_I32, /* proven to stay inside 32 bits */
    FA_SCORE_F32
} fa_score_type;

/* What a node's value depends on, besides lengths and scalars. */
enum { FA_SCORE_OF_B = 1, FA_SCORE_OF_H = 2, FA_SCORE_OF_I = 4, FA_SCORE_OF_J = 8, FA_SCORE_OF_S = 16 };

/* All that a value may be: lo to hi, both included, and NaN where `nan`. Of a truth 0 and 1. */
typedef struct fa_score_range {
    double lo, hi;
    bool nan;
} fa_score_range;

/* What an array's elements are in memory. */
typedef enum fa_score_element {
    FA_SCORE_ELEMENT_F32,
    FA_SCORE_ELEMENT_BF16,
    FA_SCORE_ELEMENT_F16,
    FA_SCORE_ELEMENT_I32,
    FA_SCORE_ELEMENT_I64,
    FA_SCORE_ELEMENT_U8,
    FA_SCORE_ELEMENT_BITS, /* 32 truths of the last index in a word, the lowest bit first */
    FA_SCORE_ELEMENTS
} fa_score_element;

/* The extent of an index: a sum of multiples of lengths, and a number: "2*sk-1". */
typedef enum fa_score_length {
    FA_SCORE_LENGTH_B,
    FA_SCORE_LENGTH_HQ,
    FA_SCORE_LENGTH_HKV,
    FA_SCORE_LENGTH_SQ,
    FA_SCORE_LENGTH_SK,
    FA_SCORE_LENGTH_TQ,
    FA_SCORE_LENGTH_TK,
    FA_SCORE_LENGTHS
} fa_score_length;
typedef struct fa_score_extent {
    bool any;                          /* "?": what the launch says */
    int32_t times[FA_SCORE_LENGTHS];   /* of each length */
    int32_t divisor[FA_SCORE_LENGTHS]; /* which is divided by it first, rounded up; 0 and 1: it is not */
    int32_t more;                      /* added */
} fa_score_extent;

#define FA_SCORE_NAME_MAX 32 /* of a name that a message quotes; a longer one is cut */
typedef struct fa_score_operand {
    char name[FA_SCORE_NAME_MAX]; /* for messages and callers; no part of the program's identity */
    bool scalar;
    fa_score_type type;
    fa_score_element element; /* of an array */
    int32_t rank;             /* 1 to 4; 0 of a scalar */
    fa_score_extent extent[FA_SCORE_RANK_MAX];
    double value, least, most; /* of a scalar: where the launch gives none, which is no part of the identity; what it may be */
} fa_score_operand;

typedef struct fa_score_node {
    uint8_t op, type, depends, n; /* n: arguments */
    int16_t arg[FA_SCORE_RANK_MAX];
    int16_t operand;      /* SCALAR, LOOKUP; else -1 */
    int16_t lookups;      /* in the index of each other, at most */
    double value;         /* CONST */
    uint64_t hash;        /* of what it is, not of where it stands */
    fa_score_range range; /* whatever the launch */
} fa_score_node;

typedef enum fa_score_root { FA_SCORE_ROOT_SCORE, FA_SCORE_ROOT_MASK, FA_SCORE_ROOT_SINK, FA_SCORE_ROOTS } fa_score_root;

#define FA_SCORE_ROOM 1024 /* nodes while a program is made, or with its derivatives */
typedef struct fa_score_ir {
    int32_t n, operands;
    int16_t root[FA_SCORE_ROOTS]; /* -1: it has none */
    fa_score_operand operand[FA_SCORE_OPERANDS_MAX];
    fa_score_node node[FA_SCORE_ROOM];
} fa_score_ir;

/* Every function that makes a node returns its number, that of an equal node where there is one, or of a constant where its arguments are
 * constants; -1: there is no more room, or an argument is -1. */
int fa_score_ir_number(fa_score_ir *ir, fa_score_type type, double value);
int fa_score_ir_leaf(fa_score_ir *ir, fa_score_op op);
int fa_score_ir_scalar(fa_score_ir *ir, int operand);
int fa_score_ir_lookup(fa_score_ir *ir, int operand, const int *index);
/* Types of the arguments are what the operation takes: those of arithmetic and comparisons are alike, i32 or f32. unused: -1. */
int fa_score_ir_make(fa_score_ir *ir, fa_score_op op, int x, int y, int z);

/* The word of an operation in canonical texts. */
const char *fa_score_op_word(int op);

/* Only what the roots need, in an order that follows from the roots alone; how many nodes that are. */
int fa_score_ir_tidy(fa_score_ir *ir);

/* Marks the nodes that `node` is made of, itself too; what is marked stays so. */
void fa_score_ir_reach(const fa_score_ir *ir, int node, bool reached[FA_SCORE_ROOM]);
#endif
