/* leaderboard: records sorted for people. */
#include "leaderboard.h"
#include "cache/newest.h"
#include "cli/session/config_text.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "runtime/choose/jit.h"
#include <stdlib.h>
#include <string.h>

static int by_time(const void *x, const void *y)
{
    const fa_record *a = x, *b = y;
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

fa_status cli_leaderboard_of(const fa_records *rs, const fa_problem *p, fa_how how, cli_leaderboard *out)
{
    fa_records kind = { calloc(rs->n ? rs->n : 1, sizeof *kind.r), 0 };
    *out = (cli_leaderboard){ .n = 0 };
    if (!kind.r)
        return fa_fail(FA_NOMEM, "no memory for %zu records", rs->n);
    for (size_t i = 0; i < rs->n; i++)
        if (rs->r[i].how == how)
            kind.r[kind.n++] = rs->r[i];
    const fa_record *best = fa_records_best(&kind, p);
    fa_newest met = { .n = 0 };
    uint32_t bucket = best ? fa_problem_bucket(&best->problem) : 0;
    for (size_t i = kind.n; best && i-- > 0;) { /* the newest first: what comes later of the same config is older */
        const fa_record *r = &kind.r[i];
        if (fa_problem_bucket(&r->problem) != bucket || !fa_newest_add(&met, r, 0) || r->outcome != FA_RAN || !(r->seconds > 0) ||
            (how == FA_MEASURED && !r->verified))
            continue;
        fa_record *more = realloc(out->r, (out->n + 1) * sizeof *more);
        if (!more)
            break;
        out->r = more;
        out->r[out->n++] = *r;
    }
    bool complete = !met.oom;
    fa_newest_free(&met);
    free(kind.r);
    if (!complete) {
        cli_leaderboard_free(out);
        return fa_fail(FA_NOMEM, "no memory for %zu records", rs->n);
    }
    if (out->n)
        qsort(out->r, out->n, sizeof *out->r, by_time);
    return FA_OK;
}

void cli_leaderboard_free(cli_leaderboard *s)
{
    free(s->r);
    *s = (cli_leaderboard){ .n = 0 };
}

json_t *cli_leaderboard_json(const cli_leaderboard *s, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n && i < n; i++) {
        char text[512];
        const fa_record *r = &s->r[i];
        cli_config_text(text, &r->config);
        json_array_append_new(list, json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:s,s:i,s:s}", "config", text, "source",
                                              r->how == FA_MEASURED ? "measured" : "model", "seconds", cli_json_number(r->seconds),
                                              "behind", cli_json_number(r->seconds / s->r[0].seconds - 1), "low",
                                              r->low > 0 ? cli_json_number(r->low) : json_null(), "high",
                                              r->high > 0 ? cli_json_number(r->high) : json_null(), "quality", fa_quality_name(r->quality),
                                              "regs", r->regs, "date", r->date));
    }
    return list;
}

void cli_leaderboard_print(const cli_leaderboard *s, size_t n, const char *title, const cli *c, fa_context *ctx)
{
    cli_table t;
    char text[512];
    if (!s->n || !n)
        return;
    putchar('\n');
    cli_heading(c, title);
    cli_table_open(&t, ">time >95_% >behind quality >regs date config");
    for (size_t i = 0; i < s->n && i < n; i++) {
        const fa_record *r = &s->r[i];
        fa_jit_config(ctx, &r->config, text, sizeof text);
        cli_table_cells(&t, "%s\t%s\t%.1f %%\t%s\t%d\t%.10s\t%s", cli_show_seconds(r->seconds),
                        cli_show_if(r->low > 0 && r->high > 0, "+-%.1f %%", 50 * (r->high - r->low) / r->seconds),
                        100 * (r->seconds / s->r[0].seconds - 1),
                        r->how == FA_MODELLED ? "the model"
                        : r->quality          ? fa_quality_name(r->quality)
                                              : "-",
                        r->regs, r->date, text);
    }
    cli_table_print(&t, c);
    fa_problem_print(text, sizeof text, &s->r[0].problem);
    cli_say(stdout, "%s at %s; %zu configs in all\n", s->r[0].how == FA_MEASURED ? "measured" : "modelled", text, s->n);
}
