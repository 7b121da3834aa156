/* export: fa_records_export(), the newest record of each config that ran. */
#include "cache/line_set.h"
#include "cache/output.h"
#include "cache/record_text.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "records.h"
#include "runtime/args/check.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t fa_records_key(char *buf, size_t n, const fa_record *r)
{
    char problem[FA_PROBLEM_TEXT], config[512];
    fa_problem_print_key(problem, sizeof problem, &r->problem);
    fa_config_print(config, sizeof config, &r->config);
    int k = snprintf(buf, n, "%d|%s|%s|%u|%s", r->how, r->chip, problem, fa_problem_bucket(&r->problem), config);
    return k < (int)n ? (size_t)k : n - 1;
}

/* A guess is of its version, and one that spills is none. */
static bool worth(const fa_record *r)
{
    if (r->outcome != FA_RAN || !(r->seconds > 0))
        return false;
    return r->how == FA_MEASURED ? r->verified && r->count > 0 : r->spills == 0 && !strcmp(r->version, FA_VERSION_STRING);
}

bool fa_records_sift(fa_records *rs)
{
    fa_line_set met = { .n = 0 };
    char key[FA_RECORDS_KEY];
    bool *told = calloc(rs->n + 1, sizeof *told);
    size_t n = 0;
    for (int imported = 0; told && imported < 2; imported++)
        for (size_t i = rs->n; i-- > 0;)
            if (rs->r[i].imported == (imported == 1) && fa_line_set_add(&met, key, fa_records_key(key, sizeof key, &rs->r[i])))
                told[i] = worth(&rs->r[i]);
    for (size_t i = 0; told && i < rs->n; i++)
        if (told[i])
            rs->r[n++] = rs->r[i];
    bool ok = told && !met.oom;
    rs->n = ok ? n : 0;
    free(told);
    fa_line_set_free(&met);
    return ok;
}

static fa_status compose(fa_context *ctx, const fa_problem *p, fa_text *out)
{
    fa_problem q;
    fa_status st = fa_records_asked(ctx, p, &q);
    if (st != FA_OK)
        return st;
    fa_records rs = fa_records_load(fa_context_store(ctx), NULL, p ? &q : NULL);
    st = fa_records_sift(&rs) ? fa_record_text_write(out, rs.r, rs.n) : fa_fail(FA_NOMEM, "records: no memory for %zu of them", rs.n);
    fa_records_free(&rs);
    return st;
}

static fa_status write_file(const char *path, const fa_text *t)
{
    fa_output o;
    fa_status st = fa_output_open(&o, path);
    if (st != FA_OK)
        return st;
    st = fa_output_write(&o, t->s, t->n);
    fa_status closed = fa_output_close(&o, st == FA_OK);
    return st == FA_OK ? closed : st;
}

fa_status fa_records_export(fa_context *ctx, const fa_problem *p, const char *path)
{
    fa_text t = { 0 };
    fa_message before;
    fa_message_keep(&before);
    fa_status st = path && path[0] ? compose(ctx, p, &t) : fa_fail(FA_INVALID, "path: none; accepted: a file to write, or \"-\"");
    if (st == FA_OK)
        st = write_file(path, &t);
    fa_text_free(&t);
    return fa_message_settle(&before, st);
}

fa_status fa_records_export_text(fa_context *ctx, const fa_problem *p, char *buf, size_t n, size_t *bytes)
{
    fa_text t = { 0 };
    fa_message before;
    fa_message_keep(&before);
    fa_status st = bytes ? FA_OK : fa_fail(FA_INVALID, "bytes: NULL; accepted: where to write the size");
    if (st == FA_OK) {
        *bytes = 0;
        st = compose(ctx, p, &t);
    }
    if (st == FA_OK) {
        *bytes = t.n;
        if (buf && n < t.n)
            st = fa_fail(FA_INVALID, "buf: %zu bytes; accepted: %zu, or NULL, which tells them", n, t.n);
        else if (buf)
            memcpy(buf, t.s, t.n);
    }
    fa_text_free(&t);
    return fa_message_settle(&before, st);
}
