/* names: what the language of score programs knows by itself: lengths, constants, functions, types of operands, what a program defines. */
#ifndef FA_GEN_SCORE_NAMES_H
#define FA_GEN_SCORE_NAMES_H
#include "ir.h"

typedef enum fa_score_name_kind {
    FA_SCORE_NAME_LENGTH,   /* op: a leaf */
    FA_SCORE_NAME_CONSTANT, /* value */
    FA_SCORE_NAME_FUNCTION, /* op, of numbers with a fraction */
    FA_SCORE_NAME_OTHER,    /* min, max, abs, floor, ceil: of integers as well */
    FA_SCORE_NAME_ARRAY,    /* element */
    FA_SCORE_NAME_SCALAR,
    FA_SCORE_NAME_ROOT /* root */
} fa_score_name_kind;

typedef struct fa_score_name {
    const char *word;
    fa_score_name_kind kind;
    fa_score_op op;
    int least, most; /* arguments; of a root: parameters */
    double value;
    fa_score_element element;
    fa_score_root root;
} fa_score_name;

/* NULL: none of the language. s: n letters. */
const fa_score_name *fa_score_name_find(const char *s, int n);

/* The word of an element's type. */
const char *fa_score_element_word(fa_score_element element);
/* In memory; of bits those of a word. */
int fa_score_element_bytes(fa_score_element element);
fa_score_type fa_score_element_type(fa_score_element element);
#endif
