/* distance: functions of key - query alone, whose values the pairs along a diagonal share. */
#ifndef FA_GEN_SCORE_DISTANCE_H
#define FA_GEN_SCORE_DISTANCE_H
#include "ir.h"

/* The largest part of a node that is a number of key - query alone, is dear and needs no key or query inside of a sequence; -1: none. */
int fa_score_distance_in(fa_score_ir *ir, int node);

/* Whether the node depends on query and key by key - query alone, or by neither. */
bool fa_score_of_distance(fa_score_ir *ir, int node);
#endif
