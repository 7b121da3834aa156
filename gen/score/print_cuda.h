/* print_cuda: nodes as CUDA C++. No byte of it is of the program's text: names are made of numbers. What is printed needs the helpers of
 * fa_score_print_helpers() and of templates/machine/prelude.cu before it. */
#ifndef FA_GEN_SCORE_PRINT_CUDA_H
#define FA_GEN_SCORE_PRINT_CUDA_H
#include "gen/text.h"
#include "ir.h"

/* How kernels call what a program reads; NULL: the program may not read it here. s is a float, the others are ints. */
typedef struct fa_score_words {
    const char *b, *h, *i, *j, *s, *off, *sq, *sk, *group;
    const char *params; /* the kernel's Params: of operand 0 it has score0, of an array score0_stride[4] and score0_extent[4] */
} fa_score_words;

/* What a node is read from: an expression of its own, a variable, a member of what a tile's pairs share, or a parameter, "a" and its
 * number. */
typedef enum fa_score_named { FA_SCORE_UNNAMED, FA_SCORE_VARIABLE, FA_SCORE_MEMBER, FA_SCORE_PARAMETER } fa_score_named;

typedef struct fa_score_printer {
    const fa_score_ir *ir;
    fa_score_words words;
    const char *variable, *member; /* before the node's number; NULL: "score_v"; "" */
    uint8_t named[FA_SCORE_ROOM];  /* fa_score_named */
} fa_score_printer;

/* The expression of a node: its name, where it has one. */
void fa_score_print_value(fa_text *out, const fa_score_printer *p, int node);
/* That of what the node is, whatever its name. */
void fa_score_print_expression(fa_text *out, const fa_score_printer *p, int node);
const char *fa_score_cuda_type(int type);
/* "const ", or "" where the compiler would take long over what a constant is made of. */
const char *fa_score_cuda_const(const fa_score_ir *ir, int node);

/* Whether index k of a lookup is inside its extent by what it is, so that it is printed without a clamp. */
bool fa_score_index_inside(const fa_score_ir *ir, const fa_score_node *lookup, int k);
/* Whether it is so whatever query and key are, by its range and an extent that is a number. */
bool fa_score_index_bounded(const fa_score_ir *ir, const fa_score_node *lookup, int k);

/* A line "const T score_v12 = ...;" for each node that `node` is made of, has no name yet, is read more than once, and is no leaf; for
 * `node` itself too where it depends on no more than `depends`, as for the others. indent: blanks before each line. */
void fa_score_print_variables(fa_text *out, fa_score_printer *p, int node, int depends, const char *indent);

/* The functions that the nodes before n call: quotients, tanh, lookups. */
void fa_score_print_helpers(fa_text *out, const fa_score_ir *ir, const char *params_type);
#endif
