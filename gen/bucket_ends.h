/* bucket_ends: shapes near the ends of a bucket. */
#ifndef FA_GEN_BUCKET_ENDS_H
#define FA_GEN_BUCKET_ENDS_H
#include "problem_fields.h"

/* Shapes near the ends of p's bucket, p being what stands for it, in *lower and *upper: a tile more or less may decide which config is
 * faster, and it may be there for a part of the bucket alone. False: dense forward shapes of many rows alone have them. */
bool fa_problem_ends(const fa_problem *p, fa_problem *lower, fa_problem *upper);
#endif
