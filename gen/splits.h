/* splits: whether a forward problem's tiles are cut into parts along the keys. */
#ifndef FA_GEN_SPLITS_H
#define FA_GEN_SPLITS_H
#include "problem_fields.h"

/* Whether a forward problem may have fewer row tiles than fill a chip, over so many keys that cutting tiles into parts pays, or several
 * heads to a KV head with so few queries that their rows are best packed: families that do both have parts in a workspace. Equal for all
 * problems of a bucket. */
bool fa_problem_splits(const fa_problem *p);
#endif
