/* work: counted sequence by sequence. */
#include "work.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "ragged.h"

fa_work fa_work_of(const fa_problem *p, const fa_sequences *s)
{
    fa_work w = { .flops = 0 };
    for (int32_t i = 0; i < s->b; i++) {
        const fa_sequence *q = &s->of[i];
        int64_t first, last;
        fa_problem one = *p;
        one.b = 1;
        one.sq = q->nq;
        one.sk = q->nk;
        fa_sequences_seen(s, i, &first, &last);
        w.flops += q->nk > 0 && q->nq > 0 ? fa_model_matrix_flops(&one, q->band) : 0;
        w.kv_bytes += last < first ? 0 : (double)(last - first + 1) * p->hkv * (double)fa_problem_key_bytes(p);
        w.queries += q->nq;
        w.keys += q->nk;
    }
    return w;
}

fa_status fa_work_drawn(fa_work *out, const fa_problem *p, int32_t lengths)
{
    fa_args shape = fa_operation_args(p);
    fa_ragged drawn;
    fa_sequences s = { .of = NULL };
    fa_status st = fa_ragged_of(&drawn, p, 1, lengths);
    if (st == FA_OK)
        st = fa_sequences_open(&s, p, drawn.args.b ? &drawn.args : &shape);
    for (int32_t i = 0; i < s.b && st == FA_OK; i++) { /* of a window the arguments know no size */
        fa_problem one = *p;
        one.sq = s.of[i].nq;
        one.sk = s.of[i].nk;
        s.of[i].band = fa_band_of_problem(&one);
    }
    if (st == FA_OK)
        *out = fa_work_of(p, &s);
    fa_sequences_close(&s);
    fa_ragged_close(&drawn);
    return st;
}
