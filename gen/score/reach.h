/* reach: what a node is made of. */
#ifndef FA_GEN_SCORE_REACH_H
#define FA_GEN_SCORE_REACH_H
#include "ir.h"

/* what: bits of FA_SCORE_OF_*; of several, any. */
bool fa_score_depends_on(const fa_score_ir *ir, int node, unsigned what);

/* Whether the node is made of one that `is`; of node -1: false. */
bool fa_score_reads(const fa_score_ir *ir, int node, bool (*is)(const fa_score_node *));
bool fa_score_is_off(const fa_score_node *a);
bool fa_score_is_lookup(const fa_score_node *a);
bool fa_score_is_lookup_by_key(const fa_score_node *a);
bool fa_score_is_of_sequence(const fa_score_node *a); /* its lengths, their difference, or a lookup */

/* Whether a lookup of the node is inside of its array only where queries, or keys, are inside of their sequence. */
bool fa_score_reads_inside(const fa_score_ir *ir, int node, unsigned of);

bool fa_score_is_value(const fa_score_ir *ir, int node, double value);
#endif
