/* forget: fa_records_forget(). */
#include "cache/record_change.h"
#include "gen/error.h"
#include "records.h"
#include "runtime/args/check.h"
#include "runtime/runtime.h"

fa_status fa_records_none(void)
{
    return fa_fail(FA_NO_KERNEL, "records: the context was made with bundle_only = 1 and has no cache; accepted: another context");
}

fa_status fa_records_asked(fa_context *ctx, const fa_problem *p, fa_problem *out)
{
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK && p)
        st = fa_check_problem(out, p);
    return st == FA_OK && fa_context_bundle_only(ctx) ? fa_records_none() : st;
}

static bool goes(void *user, const fa_record *r)
{
    const int32_t *which = user;
    return *which == FA_FORGET_ALL || r->imported;
}

static fa_status forget(fa_context *ctx, const fa_problem *p, int32_t which, int64_t *lines)
{
    fa_problem q;
    size_t n = 0;
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK && which != FA_FORGET_IMPORTED && which != FA_FORGET_ALL)
        st = fa_fail(FA_INVALID, "which is %d; accepted: FA_FORGET_IMPORTED, FA_FORGET_ALL", which);
    if (st == FA_OK)
        st = fa_records_asked(ctx, p, &q);
    if (st != FA_OK)
        return st;
    const char *const chips[] = { fa_context_arch(ctx)->chip, fa_context_arch(ctx)->name };
    for (int i = 0; i < 2 && st == FA_OK; i++) {
        st = fa_records_drop(fa_context_store(ctx), chips[i], p ? &q : NULL, goes, &which, &n);
        if (lines)
            *lines += (int64_t)n;
    }
    return st;
}

fa_status fa_records_forget(fa_context *ctx, const fa_problem *p, int32_t which, int64_t *lines)
{
    fa_message before;
    if (lines)
        *lines = 0;
    fa_message_keep(&before);
    return fa_message_settle(&before, forget(ctx, p, which, lines));
}
