/* problem_score: the score program of a problem, and the gradients that are asked of it. */
#include "error.h"
#include "problem_checks.h"
#include "score/known.h"
#include "score/reads.h"
#include <stdlib.h>

/* Gradients of operands that the program reads as numbers with a fraction, each by sums that have an order. */
static fa_status check_score_grads(const fa_problem *p, const fa_program *program)
{
    if (!p->score_grads)
        return FA_OK;
    if (p->op != FA_BACKWARD || !program)
        return fa_fail(FA_INVALID, "problem: score_grads is %#x; accepted %s: 0", (unsigned)p->score_grads,
                       program ? "without op=backward" : "without a score program");
    const fa_score_operand *operand = program->ir.operand;
    for (int k = 0; k < 32; k++) {
        bool asked = (uint32_t)p->score_grads >> k & 1;
        if (asked && k >= program->ir.operands)
            return fa_fail(FA_INVALID, "problem: score_grads is %#x; accepted: bits of the program's %d operands", (unsigned)p->score_grads,
                           program->ir.operands);
        if (asked && operand[k].type != FA_SCORE_F32)
            return fa_fail(FA_INVALID, "problem: score_grads has operand %d, %s, which has no gradient; accepted: numbers with a fraction",
                           k, operand[k].name);
    }
    struct {
        fa_score_ir ir;
        fa_score_read_list list;
    } *own = malloc(sizeof *own);
    if (!own)
        return fa_fail(FA_NOMEM, "no memory for the reads of a score program");
    own->ir = program->ir;
    fa_score_reads_of(&own->list, &own->ir, (uint32_t)p->score_grads);
    fa_status st = FA_OK;
    if (!own->list.room)
        st = fa_fail(FA_UNSUPPORTED, "problem: the score program reads operands whose gradients are asked for at more than %d places",
                     FA_SCORE_READS_MAX);
    for (int i = 0; st == FA_OK && i < own->list.n; i++) {
        const fa_score_read *r = &own->list.read[i];
        char index[120];
        if (r->by != FA_SCORE_BY_OTHER)
            continue;
        fa_score_read_print_index(index, sizeof index, &own->ir, r);
        st = fa_fail(FA_UNSUPPORTED,
                     "problem: gradient of %s is not deterministic: index depends on %s; accepted: an index of b, h and one of i, j, "
                     "j - i, or i and j themselves",
                     operand[r->operand].name, index);
    }
    free(own);
    return st;
}

/* A score program is one that this process has read, and that kernels compute. */
fa_status fa_problem_check_score(const fa_problem *p)
{
    bool feature = p->features & FA_FEATURE_SCORE, named = p->score_id0 || p->score_id1 || p->score_id2 || p->score_id3;
    if (named && (p->op == FA_MERGE || p->op == FA_APPEND))
        return fa_fail(FA_UNSUPPORTED,
                       "problem: score_id0 is %d: a score program, which this version does not compute with op=%s; accepted: 0",
                       p->score_id0, fa_op_name(p->op));
    if (feature != named)
        return fa_fail(FA_INVALID, "problem: features %s score and score_id0 to score_id3 are %s; accepted: both or neither",
                       feature ? "has" : "has no", named ? "set" : "0");
    int32_t lies = p->features & (FA_FEATURE_SCORE_ANYWHERE | FA_FEATURE_SCORE_COLUMNS);
    if (lies && (!feature || p->features & FA_FEATURE_LENGTHS || lies & (lies - 1)))
        return fa_fail(FA_INVALID,
                       "problem: features has %s%s; accepted: one of score-anywhere and score-columns, beside score, without lengths",
                       fa_feature_name(lies & -lies),
                       lies & (lies - 1)                  ? " and score-columns"
                       : p->features & FA_FEATURE_LENGTHS ? " and lengths"
                                                          : " and no score");
    if (!named)
        return check_score_grads(p, NULL);
    if (!fa_score_known(p))
        return fa_fail(FA_INVALID,
                       "problem: score_id0 to score_id3 are %d, %d, %d, %d, which is no score program of this process; accepted: the words "
                       "of fa_score_id() of one that fa_score_create() has read in it",
                       p->score_id0, p->score_id1, p->score_id2, p->score_id3);
    return check_score_grads(p, fa_score_known(p));
}
