/* scales: fields of fa_scale, one by one. */
#include "scales.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <string.h>

static fa_status check(const fa_scale *s, const char *name)
{
    static const fa_scale none = FA_SCALE_INIT;
    if (!memcmp(s, &none, sizeof none))
        return FA_OK;
    if (s->by < 0 || s->by > FA_SCALE_CHANNEL || (s->ptr && !s->by))
        return fa_fail(FA_INVALID,
                       "args: %s.by is %d; accepted: FA_SCALE_FOLDED (%d), FA_SCALE_TOKEN (%d), FA_SCALE_CHANNEL (%d), or all fields 0 "
                       "without scales",
                       name, s->by, FA_SCALE_FOLDED, FA_SCALE_TOKEN, FA_SCALE_CHANNEL);
    if (s->by == FA_SCALE_BLOCK)
        return fa_fail(FA_UNSUPPORTED,
                       "args: %s.by is FA_SCALE_BLOCK (%d); accepted by this version: FA_SCALE_FOLDED (%d), FA_SCALE_TOKEN (%d), "
                       "FA_SCALE_CHANNEL (%d)",
                       name, s->by, FA_SCALE_FOLDED, FA_SCALE_TOKEN, FA_SCALE_CHANNEL);
    if (s->dtype != FA_F32)
        return fa_fail(s->by ? FA_UNSUPPORTED : FA_INVALID, "args: %s.dtype is %d (%s); accepted%s: fp32 (%d)%s", name, s->dtype,
                       fa_dtype_name(s->dtype), s->by ? " by this version" : "", FA_F32, s->by ? "" : ", with by set");
    if (s->outer)
        return fa_fail(FA_UNSUPPORTED, "args: %s.outer is %p; accepted by this version: NULL", name, s->outer);
    const struct {
        const char *field;
        int64_t value;
    } zeros[] = { { "block", s->block }, { "reserved", s->reserved }, { "sc", s->sc } };
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        if (zeros[i].value)
            return fa_fail(FA_UNSUPPORTED, "args: %s.%s is %lld; accepted by this version: 0", name, zeros[i].field,
                           (long long)zeros[i].value);
    if (s->by == FA_SCALE_CHANNEL && !s->ss)
        return fa_fail(FA_INVALID, "args: %s.ss is 0; accepted with FA_SCALE_CHANNEL: the stride from one column to the next", name);
    if (s->by == FA_SCALE_FOLDED && s->ss)
        return fa_fail(FA_INVALID, "args: %s.ss is %lld; accepted with FA_SCALE_FOLDED: 0, as tokens and channels share a scale", name,
                       (long long)s->ss);
    return FA_OK;
}

fa_status fa_scales_check(const fa_args *a)
{
    fa_status st = check(&a->q_scale, "q_scale");
    if (st == FA_OK)
        st = check(&a->k_scale, "k_scale");
    if (st == FA_OK)
        st = check(&a->v_scale, "v_scale");
    if (st == FA_OK)
        st = check(&a->o_scale, "o_scale");
    if (st == FA_OK && a->op == FA_APPEND)
        st = check(&a->k_scale_out, "k_scale_out");
    return st == FA_OK && a->op == FA_APPEND ? check(&a->v_scale_out, "v_scale_out") : st;
}
