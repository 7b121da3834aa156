/* relatives: classes whose winners are worth a look where those of a problem's own class are few: they walk the same keys. */
#ifndef FA_RUNTIME_CHOOSE_RELATIVES_H
#define FA_RUNTIME_CHOOSE_RELATIVES_H
#include <fagen.h>
#include <stdbool.h>

typedef struct fa_relative {
    fa_problem problem; /* of that class, with the shape by which its winners are near or far */
    double apart;       /* how far the class is, in doublings of a length */
    bool own;           /* the class itself, or one of the same tiles: with a workspace, or without a program that leaves pairs alone */
} fa_relative;
#define FA_RELATIVES_MAX 24

/* The relatives of p (normalized, with its shape), itself first; how many. */
int fa_relatives_of(const fa_problem *p, fa_relative out[FA_RELATIVES_MAX]);
#endif
