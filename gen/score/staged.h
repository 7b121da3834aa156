/* staged: a mask in parts, of kernels that bring what it reads into shared memory for each block of keys: values by key, and one truth for
 * each pair as a bit. What is left of a pair are comparisons. */
#ifndef FA_GEN_SCORE_STAGED_H
#define FA_GEN_SCORE_STAGED_H
#include "conditions.h"

typedef struct fa_score_staged {
    bool can;                                                      /* there is something to bring, and nothing else is looked up by key */
    int columns, rows;                                             /* parts that look something up, by key alone and by query alone */
    int16_t column[FA_SCORE_VALUES_MAX], row[FA_SCORE_VALUES_MAX]; /* their nodes */
    int plane;                                                     /* the node of the truth; -1: there is none */
    int lookup;    /* the truth is whether this lookup, whose last index is the key, is not 0: bytes or bits; -1 */
    bool shifted;  /* the last index is j - x, with x the same for all pairs of a head, and what lies before element 0 is seen: bits */
    bool contrary; /* whether it is 0 */
    bool equal;    /* all that is not solved is whether the one value by key is the one by query */
    int grain;     /* so many keys, from a multiple of it on, are alike to what is looked up by query and key */
    int row_grain; /* likewise queries */
    bool grained;  /* to all of the mask they are, and the class of pairs that are alike is never in doubt */
    double issue;  /* instructions of a pair, about */
} fa_score_staged;

/* Of what conditions leave unsolved. */
void fa_score_staged_of(fa_score_staged *out, const fa_score_tiles *t, const fa_score_conditions *c);

/* Lines that end in "return ...;", with p and t, and
 *   column n: key, which may be after the last, and
 *   row n: head and row, which may be after the last query: its value;
 *   plane_row: head and row: where element 0 of the plane lies, a const unsigned char * or a const unsigned *;
 *   plane_first: head: the element of key 0, 0 where the last index is the key;
 *   pair: head, row, key, column, and the values a7 of nodes 7 among the columns, rows and the plane: whether all that is not
 *   solved holds of key + column.
 * packed: rows are of several heads. */
void fa_score_staged_column(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, bool packed, int n);
void fa_score_staged_row(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, bool packed, int n);
void fa_score_staged_plane_row(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, bool packed);
void fa_score_staged_plane_first(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, bool packed);
void fa_score_staged_pair(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, const fa_score_conditions *c, bool packed);
#endif
