/* records: what `fagen cache export` and `import` do with records: as fa_records_export() and fa_records_import(). */
#include "autotune/records/records.h"
#include "cache.h"
#include "cache/archive.h"
#include "cache/record_text.h"
#include "cli/session/session.h"
#include "gen/error.h"

/* A context that needs no device: of a chip that is simulated, since records of all chips are told. */
static fa_status open_any(fa_context **out)
{
    fa_options o = FA_OPTIONS_INIT;
    o.device = "sim:sm_80";
    return fa_create(out, &o);
}

fa_status cli_cache_tell_records(cli *c, const cache_args *a, const char *path)
{
    fa_context *ctx = NULL;
    (void)c;
    if (a->records || a->arch)
        return fa_fail(FA_INVALID, "--only-records beside %s; accepted: --only-records alone", a->records ? "--records" : "--arch");
    fa_status st = open_any(&ctx);
    if (st == FA_OK)
        st = fa_records_export(ctx, NULL, path);
    fa_destroy(ctx);
    return st;
}

/* Nothing where it has none. */
static fa_status text_of(fa_text *out, const char *archive)
{
    fa_records rs;
    fa_status st = fa_archive_records(&rs, archive);
    if (st == FA_OK && !fa_records_sift(&rs))
        st = fa_fail(FA_NOMEM, "%s: no memory for its records", archive);
    if (st == FA_OK && rs.n)
        st = fa_record_text_write(out, rs.r, rs.n);
    fa_records_free(&rs);
    return st;
}

fa_status cli_cache_take_records(cli *c, const cache_args *a, const char *path, bool archive, fa_records_count *n)
{
    const cli_where where = { .device = a->device };
    cli_session s = { .ctx = NULL };
    fa_text text = { 0 };
    *n = (fa_records_count)FA_RECORDS_COUNT_INIT;
    fa_status st = archive ? text_of(&text, path) : FA_OK;
    if (st != FA_OK || (archive && !text.n))
        return st;
    st = cli_session_open(&s, c, &where);
    if (st == FA_OK && archive)
        st = fa_wrap(fa_records_import_text(s.ctx, text.s, text.n, NULL, n), "%s", path);
    else if (st == FA_OK)
        st = fa_records_import(s.ctx, path, NULL, n);
    cli_session_close(&s);
    fa_text_free(&text);
    return st;
}
