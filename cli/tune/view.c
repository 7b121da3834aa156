/* view: the live line of a search. */
#include "gen/operation.h"
#include "gen/problem.h"
#include "tune.h"
#include <math.h>

void tune_show_span(char *buf, size_t n, double s)
{
    if (s < 9.95)
        snprintf(buf, n, "%.1f s", s);
    else if (s < 99.5)
        snprintf(buf, n, "%.0f s", s);
    else if (s < 5970)
        snprintf(buf, n, "%d min %02d s", (int)(s + 0.5) / 60, (int)(s + 0.5) % 60);
    else
        snprintf(buf, n, "%.1f h", s / 3600);
}

void tune_problem_brief(char *buf, size_t n, const fa_problem *in)
{
    fa_problem p = *in;
    char wide[16] = "", op[32] = "", heads[24], length[32];
    fa_problem_fill_shape(&p);
    if (p.dv != p.d)
        snprintf(wide, sizeof wide, "/%d", p.dv);
    if (p.op != FA_FORWARD)
        snprintf(op, sizeof op, " %s", fa_operation_find(p.op)->name);
    snprintf(heads, sizeof heads, p.hq == p.hkv ? "%dx%d" : "%dx%d/%d", p.b, p.hq, p.hkv);
    snprintf(length, sizeof length, p.sq == p.sk ? "%d" : "%d:%d", p.sq, p.sk);
    snprintf(buf, n, "%s d%d%s %s%s %s %s", fa_dtype_name(p.dtype), p.d, wide, fa_mask_name(p.mask), op, heads, length);
}

/* "128x64": the tile, as far as a family has one, else the family. */
static void config_brief(char *buf, size_t n, const fa_candidate *k)
{
    if (k->tile[0] && k->tile[1])
        snprintf(buf, n, "%dx%d", k->tile[0], k->tile[1]);
    else
        snprintf(buf, n, "%s", k->config.family);
}

tune_view tune_view_of(const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    const fa_candidate *b = t->baseline, *w = t->winner;
    /* clang-format off */
    tune_view v = {
        .space = (int64_t)t->counts.space, .sound = (int64_t)t->counts.sound, .fits_shared = (int64_t)t->counts.fits_shared,
        .fits = (int64_t)t->counts.fits, .kept = (int64_t)t->counts.kept, .compiled = (int64_t)t->counts.compiled,
        .verified = (int64_t)t->counts.verified, .timed = (int64_t)t->counts.timed, .resumed = (int64_t)t->counts.resumed,
        .failed = (int64_t)t->counts.failed, .done = done, .tflops = w ? w->tflops : 0, .seconds = w ? w->seconds : 0, .gain = NAN,
        .measured = t->how == FA_MEASURED,
    };
    /* clang-format on */
    snprintf(v.stage, sizeof v.stage, "%s", stage);
    if (w || latest)
        config_brief(v.config, sizeof v.config, w ? w : latest);
    if (w && b && b->decided && b->outcome == FA_RAN && w->seconds > 0)
        v.gain = b->seconds / w->seconds - 1;
    return v;
}

/* The numbers of a view, by name: one table for both directions. */
/* clang-format off */
#define NUMBERS(X) \
    X(space) X(sound) X(fits_shared) X(fits) X(kept) X(compiled) X(verified) X(timed) X(resumed) X(failed)
/* clang-format on */
#define REALS(X) X(done) X(tflops) X(seconds) X(gain)

json_t *tune_view_json(const tune_view *v)
{
    json_t *j = json_pack("{s:s,s:s,s:b}", "stage", v->stage, "config", v->config, "measured", v->measured);
#define PUT(f) json_object_set_new(j, #f, json_integer((json_int_t)v->f));
    NUMBERS(PUT)
#undef PUT
#define PUT(f) json_object_set_new(j, #f, cli_json_number(v->f));
    REALS(PUT)
#undef PUT
    return j;
}

tune_view tune_view_read(const json_t *j)
{
    tune_view v = { .measured = json_is_true(json_object_get(j, "measured")) };
    const char *stage = json_string_value(json_object_get(j, "stage")), *config = json_string_value(json_object_get(j, "config"));
    snprintf(v.stage, sizeof v.stage, "%s", stage ? stage : "");
    snprintf(v.config, sizeof v.config, "%s", config ? config : "");
#define GET(f) v.f = json_integer_value(json_object_get(j, #f));
    NUMBERS(GET)
#undef GET
#define GET(f) v.f = json_is_number(json_object_get(j, #f)) ? json_number_value(json_object_get(j, #f)) : NAN;
    REALS(GET)
#undef GET
    return v;
}

double tune_left(double spent, double done, double budget)
{
    double left = done > 0.02 && spent > 1 ? spent * (1 - done) / done : -1;
    if (budget > 0 && (left < 0 || left > budget - spent))
        left = fmax(0, budget - spent);
    return left;
}

/* From all configs to those that are timed. */
static void funnel(cli_status_line *out, const tune_view *v)
{
    char text[64] = "", brief[32] = "";
    if (v->measured) {
        snprintf(text, sizeof text, " > %lld verified > %lld timed", (long long)v->verified, (long long)v->timed);
        snprintf(brief, sizeof brief, ">%lld>%lld", (long long)v->verified, (long long)v->timed);
    }
    cli_status_line_add(out, 5, "%lld configs > %lld fit SRAM > %lld registers > %lld compiled%s", (long long)v->space,
                        (long long)v->fits_shared, (long long)v->fits, (long long)v->compiled, text);
    cli_status_line_brief(out, "%lld>%lld>%lld>%lld%s", (long long)v->space, (long long)v->fits_shared, (long long)v->fits,
                          (long long)v->compiled, brief);
}

void tune_view_line(cli_status_line *out, const tune_view *v, const fa_problem *p, size_t at, size_t of, double done, double left)
{
    char text[100];
    int64_t tried = v->compiled + v->resumed;
    *out = (cli_status_line){ .done = done };
    if (of > 1) {
        tune_problem_brief(text, sizeof text, p);
        cli_status_line_add(out, 0, "%*zu/%zu", snprintf(NULL, 0, "%zu", of), at, of);
        cli_status_line_add(out, 6, "%s", text);
        cli_status_line_add(out, 7, "%s %lld/%lld", v->stage, (long long)tried, (long long)v->kept);
    } else {
        cli_status_line_add(out, 0, "%*lld/%lld", snprintf(NULL, 0, "%lld", (long long)v->kept), (long long)tried, (long long)v->kept);
        cli_status_line_add(out, 7, "%s", v->stage);
    }
    if (v->tflops > 0)
        cli_status_line_add(out, 1, "best %.1f TFLOP/s", v->tflops);
    else if (v->seconds > 0)
        cli_status_line_add(out, 1, "best %s", cli_show_seconds(v->seconds));
    if (v->seconds > 0 && v->gain >= 0) {
        if (v->gain >= 0.0005)
            cli_status_line_add(out, 3, "+%.1f %% over the default", 100 * v->gain);
        else
            cli_status_line_add(out, 3, "as the default");
        cli_status_line_brief(out, "+%.1f %%", 100 * v->gain);
    }
    if (left >= 0) {
        tune_show_span(text, sizeof text, left);
        cli_status_line_add(out, 2, "%s left", text);
    }
    funnel(out, v);
    if (v->resumed)
        cli_status_line_add(out, 8, "%lld from records", (long long)v->resumed);
    cli_status_line_add(out, 10, "%s", v->config);
}
