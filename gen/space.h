/* space: every config of a problem's families under an arch and a shared-memory budget, each rejection with its reason. */
#ifndef FA_GEN_SPACE_H
#define FA_GEN_SPACE_H
#include "gen.h"

/* What a constraint is about; a family says it with `about`. */
typedef enum fa_limit { FA_LIMIT_RULE, FA_LIMIT_SHARED, FA_LIMIT_REGISTERS, FA_LIMITS } fa_limit;
const char *fa_limit_name(fa_limit l); /* "rules" "shared memory" "registers" */

/* Which constraint failed: one of the family's, or one of those that C checks by the layout of every family. */
typedef enum fa_check { FA_CHECK_FAMILY, FA_CHECK_SMEM, FA_CHECK_THREADS, FA_CHECK_REGISTERS } fa_check;
fa_status fa_check_status(fa_check c); /* of a config that a caller names */

typedef struct fa_point {
    fa_config config;
    bool fits;
    int32_t smem; /* dynamic shared memory the layout needs; 0 where a constraint failed before the layout */
    int32_t regs; /* the family's estimate per thread, the least that it can be */
    bool spills;  /* the family expects of the compiler that it spills some of them */
    int32_t threads;
    fa_check check; /* of what failed, as is limit */
    fa_limit limit;
    char constraint[24]; /* the first constraint that failed, "" if none; one of the search's rejects only what is listed */
    char why[104];       /* its numbers: "181248 > 166912 bytes" */
} fa_point;

/* Points of one family that one constraint rejects. */
typedef struct fa_rejection {
    char family[24], constraint[24];
    fa_limit limit;
    size_t n;
    char why[104]; /* of the first */
} fa_rejection;

typedef struct fa_space {
    const fa_gen *gen; /* that listed it */
    fa_point *points;  /* in the order of the declaration of the tunables, first tunable slowest; where the first few already
                          fail a constraint, one point (the first) stands for all that share them */
    size_t n;          /* points */
    size_t fitting;
    int32_t smallest;           /* shared memory of the smallest point that fails only for its size; 0 = none */
    size_t rejected[FA_LIMITS]; /* points, by what their first failed constraint is about; with fitting they add up to n */
} fa_space;

/* family NULL = the families that serve the problem by default (none with `default = false`). budget 0 = a->smem_block.
 * FA_UNSUPPORTED when no family computes the problem. An empty fit is not an error here: fa_space_check turns it into FA_NO_FIT and names
 * the smallest tile. */
fa_status fa_space_list(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family, fa_space *out);
fa_status fa_space_check(const fa_space *s, const fa_problem *p, const fa_arch *a, int32_t budget);
/* One config, whose tunables are all named, as the listing judges it; out->why tells why it is not listed. */
fa_status fa_space_judge(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const fa_config *c, fa_point *out);
/* The rejections of the space, most first, at most `most` of them; returns how many. */
size_t fa_space_rejections(const fa_space *s, fa_rejection *out, size_t most);
void fa_space_free(fa_space *s);
#endif
