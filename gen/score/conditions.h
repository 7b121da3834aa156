/* conditions: a mask as truths that all have to hold: those that leave one interval of keys to each query, which are solved, and the rest.
 */
#ifndef FA_GEN_SCORE_CONDITIONS_H
#define FA_GEN_SCORE_CONDITIONS_H
#include "bounds.h"

#define FA_SCORE_CONDITIONS_MAX 16

typedef struct fa_score_conditions {
    int solved, rest; /* how many; none is solved where all would be, or where there are too many */
    int16_t of_solved[FA_SCORE_CONDITIONS_MAX], of_rest[FA_SCORE_CONDITIONS_MAX]; /* their nodes */
    fa_score_bounds ends;                                                         /* of the solved ones, exact, where there are some */
} fa_score_conditions;

/* Of the mask of a plan. */
void fa_score_conditions_of(fa_score_conditions *out, const fa_score_tiles *tiles);
#endif
