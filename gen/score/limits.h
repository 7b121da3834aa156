/* limits: what a score program may be, looked at before anything is built of it. */
#ifndef FA_GEN_SCORE_LIMITS_H
#define FA_GEN_SCORE_LIMITS_H

enum {
    FA_SCORE_TEXT_MAX = 16384,  /* bytes */
    FA_SCORE_NODES_MAX = 256,   /* of the program that is made of it */
    FA_SCORE_OPERANDS_MAX = 8,  /* scalars and arrays */
    FA_SCORE_NEST_MAX = 32,     /* parentheses, calls, indices, blocks inside each other */
    FA_SCORE_LOOP_MAX = 64,     /* rounds of a loop */
    FA_SCORE_CHAIN_MAX = 128,   /* operators of one level of an expression */
    FA_SCORE_STEPS_MAX = 32768, /* expressions and statements that are looked at, loops and calls written out */
    FA_SCORE_LOCALS_MAX = 64,   /* names of a function at a time */
    FA_SCORE_LIST_MAX = 8,      /* parameters, names of one statement */
    FA_SCORE_GLOBALS_MAX = 64,  /* constants and functions */
    FA_SCORE_RANK_MAX = 4,      /* indices of an array */
    FA_SCORE_LOOKUPS_MAX = 3,   /* lookups in the index of each other */
    FA_SCORE_INT_MAX = 1 << 30  /* values of integer operands, of either sign; what passes that is clamped */
};
#endif
