/* select_jit: what was measured on this chip or ships for its arch, whichever is nearer in shape; what ships for the nearest arch, what the
 * model guessed when it was tuned, the model: in this order, the first that still renders. */
#include "cache/newest.h"
#include "context.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "jit.h"
#include "select.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static fa_status open_gen(fa_context *ctx)
{
    return ctx->gen ? FA_OK : fa_gen_open(&ctx->gen, ctx->template_dir);
}

fa_status fa_render_in(fa_context *ctx, const fa_problem *p, const fa_config *c, fa_source *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&ctx->gen_mutex);
    fa_status st = open_gen(ctx);
    if (st == FA_OK)
        st = fa_render(ctx->gen, p, c, &ctx->device.arch, ctx->budget, out);
    pthread_mutex_unlock(&ctx->gen_mutex);
    return st;
}

fa_status fa_choose_reference(fa_context *ctx, int32_t op, fa_config *out)
{
    pthread_mutex_lock(&ctx->gen_mutex);
    fa_status st = open_gen(ctx);
    if (st == FA_OK)
        st = fa_gen_reference_config(ctx->gen, op, out);
    pthread_mutex_unlock(&ctx->gen_mutex);
    return st;
}

void fa_jit_config(fa_context *ctx, const fa_config *c, char *buf, size_t n)
{
    fa_message before;
    fa_message_keep(&before);
    pthread_mutex_lock(&ctx->gen_mutex);
    if (fa_message_settle(&before, open_gen(ctx)) == FA_OK)
        fa_gen_config_print(ctx->gen, buf, n, c);
    else
        fa_config_print(buf, n, c);
    pthread_mutex_unlock(&ctx->gen_mutex);
}

/* Whether the selection still renders under the budget; its text stays in *source. A record of a config that the templates no
 * longer have, or of a larger budget, is passed over. */
static bool renders(fa_context *ctx, const fa_problem *p, const fa_selection *c, fa_source *source)
{
    fa_status st = fa_render_in(ctx, p, &c->config, source);
    if (st != FA_OK)
        fa_log_say(&ctx->log, FA_LOG_DEBUG, "a config out of the %s is passed over: %s", c->where, fa_last_error());
    return st == FA_OK;
}

/* What is on record, each kind read once: of the chip, measured, and of the arch, by the model. */
typedef struct memory {
    fa_records rs[2]; /* by fa_how */
    bool read[2];
} memory;

static const fa_records *recall(memory *m, const fa_context *ctx, const fa_problem *p, fa_how how)
{
    fa_problem of = *p; /* what was measured with a workspace counts where it needs none: others do not render for p */
    if (how == FA_MEASURED)
        of.features &= ~FA_FEATURE_NO_WORKSPACE;
    if (!m->read[how])
        m->rs[how] = fa_records_load(ctx->store, how == FA_MEASURED ? ctx->device.arch.chip : ctx->device.arch.name, &of);
    m->read[how] = true;
    return &m->rs[how];
}

static void forget_all(memory *m)
{
    for (int how = 0; how < 2; how++)
        fa_records_free(&m->rs[how]);
}

static bool may_run(const fa_context *ctx, const fa_problem *p, const fa_record *r, fa_how how, double most)
{
    /* the model is asked again for each bucket, and by each version of the library; what spills is no guess */
    bool fresh = how == FA_MEASURED ||
                 (r->spills == 0 && fa_problem_bucket(&r->problem) == fa_problem_bucket(p) && strcmp(r->version, FA_VERSION_STRING) == 0);
    return r->how == how && r->smem <= ctx->budget && fresh && fa_problem_alike(&r->problem, p) &&
           fa_records_distance(&r->problem, p) <= most;
}

/* Of the records of one kind that may run here, and that are no farther in shape than `most`, the newest of each config and bucket; oldest
 * first. Nothing, where memory runs out. */
static fa_records sift(const fa_records *rs, const fa_context *ctx, const fa_problem *p, fa_how how, double most)
{
    fa_records out = { NULL, 0 };
    fa_newest met = { .n = 0 };
    size_t cap = 0;
    for (size_t i = rs->n; i-- > 0;) {
        const fa_record *r = &rs->r[i];
        if (!may_run(ctx, p, r, how, most) || !fa_newest_add(&met, r, fa_problem_bucket(&r->problem)))
            continue;
        if (out.n == cap) {
            fa_record *grown = realloc(out.r, (cap = cap ? 2 * cap : 16) * sizeof *grown);
            if (!grown)
                break;
            out.r = grown;
        }
        out.r[out.n++] = *r;
    }
    fa_newest_free(&met);
    for (size_t i = 0; i < out.n / 2; i++) {
        fa_record r = out.r[i];
        out.r[i] = out.r[out.n - 1 - i];
        out.r[out.n - 1 - i] = r;
    }
    return out;
}

static void forget(fa_records *rs, const fa_config *c)
{
    fa_config drop = *c;
    size_t n = 0;
    for (size_t i = 0; i < rs->n; i++)
        if (!fa_config_equal(&rs->r[i].config, &drop))
            rs->r[n++] = rs->r[i];
    rs->n = n;
}

static bool same_text(const fa_record *r, const fa_source *s)
{
    return r->source[0] == s->hash[0] && r->source[1] == s->hash[1];
}

static bool from_records(fa_context *ctx, memory *m, const fa_problem *p, fa_how how, double most, fa_selection *out, fa_source *source)
{
    fa_records rs = sift(recall(m, ctx, p, how), ctx, p, how, most);
    bool found = false;
    for (const fa_record *r; !found && (r = fa_records_best(&rs, p)) != NULL;) {
        char line[256];
        *out = (fa_selection){ .config = r->config, .seconds = r->seconds };
        snprintf(out->where, sizeof out->where, "%s record", how == FA_MEASURED ? "measured" : "modelled");
        found = renders(ctx, p, out, source);
        /* a measured time of an older text still tells which config is good; the model's guess is made anew */
        bool older = found && !same_text(r, source);
        if (older && how == FA_MODELLED) {
            fa_source_free(source);
            found = false;
        }
        if (!found) {
            forget(&rs, &out->config);
            continue;
        }
        fa_problem_print(line, sizeof line, &r->problem);
        snprintf(out->why, sizeof out->why, "%s %.3g us on %s at %.120s, %.20s%s", how == FA_MEASURED ? "measured" : "modelled",
                 r->seconds * 1e6, r->chip, line, r->date, older ? ", with an older text of the kernel" : "");
    }
    fa_records_free(&rs);
    return found;
}

typedef struct attempt {
    fa_context *ctx;
    const fa_problem *p;
    fa_selection selection;
    fa_source *source;
} attempt;

static bool takes(void *user, const fa_config *c)
{
    attempt *t = user;
    t->selection.config = *c;
    return renders(t->ctx, t->p, &t->selection, t->source);
}

static bool from_defaults(fa_context *ctx, const fa_problem *p, int farthest, fa_selection *out, fa_source *source)
{
    char where[64] = "";
    attempt t = { .ctx = ctx, .p = p, .selection = { .where = "default table" }, .source = source };
    if (!fa_default_config(&ctx->device.arch, p, farthest, takes, &t, &t.selection.config, where, sizeof where))
        return false;
    snprintf(t.selection.why, sizeof t.selection.why, "shipped winner of %s; not measured here", where);
    *out = t.selection;
    return true;
}

/* The point of the space that the model thinks fastest, of those not known to fail. */
typedef struct best {
    const fa_space *space;
    fa_newest known[2]; /* of each config, whichever its shape */
    size_t priced, point;
    fa_cost cost;
} best;

static bool know(fa_newest *t, const fa_records *rs)
{
    for (size_t i = rs->n; i-- > 0;)
        fa_newest_add(t, &rs->r[i], 0);
    return !t->oom;
}

/* Whether the newest record of the config tells of a failure, by this version of the library. */
static bool failed(const fa_newest *t, const fa_config *c)
{
    const fa_record *r = fa_newest_find(t, c, 0);
    return r && r->outcome != FA_RAN && strcmp(r->version, FA_VERSION_STRING) == 0;
}

static void consider(void *user, size_t point, const fa_cost *cost)
{
    best *b = user;
    const fa_config *c = &b->space->points[point].config;
    if (failed(&b->known[0], c) || failed(&b->known[1], c))
        return;
    if (!b->priced || cost->seconds < b->cost.seconds) {
        b->cost = *cost;
        b->point = point;
    }
    b->priced++;
}

/* gen_mutex is held. */
static fa_status best_point(fa_context *ctx, const fa_problem *shape, best *b, fa_selection *out)
{
    fa_status st = fa_model_space(ctx->gen, shape, b->space, &ctx->device.arch, consider, b);
    if (st != FA_OK)
        return st;
    if (!b->priced)
        return fa_fail(FA_NO_FIT, "each of the %zu configs that fit is known to fail", b->space->fitting);
    out->config = b->space->points[b->point].config;
    out->seconds = b->cost.seconds;
    snprintf(out->why, sizeof out->why, "the model's best of %zu configs: %.3g us, bound by %s; never measured here", b->priced,
             b->cost.seconds * 1e6, b->cost.bound);
    return FA_OK;
}

static fa_status from_model(fa_context *ctx, memory *m, const fa_problem *p, fa_selection *out, fa_source *source)
{
    fa_space space = { 0 };
    fa_problem shape = *p;
    best b = { .space = &space };
    fa_problem_fill_shape(&shape);
    *out = (fa_selection){ .where = "model" };
    /* failures are those of p's own class: what was measured with a workspace tells nothing of configs that need none */
    fa_records own = { NULL, 0 };
    if (p->features & FA_FEATURE_NO_WORKSPACE)
        own = fa_records_load(ctx->store, ctx->device.arch.chip, p);
    fa_status st = know(&b.known[0], p->features & FA_FEATURE_NO_WORKSPACE ? &own : recall(m, ctx, p, FA_MEASURED)) &&
                           know(&b.known[1], recall(m, ctx, p, FA_MODELLED))
                       ? FA_OK
                       : fa_fail(FA_NOMEM, "no memory for what is on record");
    pthread_mutex_lock(&ctx->gen_mutex);
    if (st == FA_OK)
        st = open_gen(ctx);
    if (st == FA_OK)
        st = fa_space_list(ctx->gen, &shape, &ctx->device.arch, ctx->budget, NULL, &space);
    if (st == FA_OK)
        st = fa_space_check(&space, &shape, &ctx->device.arch, ctx->budget);
    if (st == FA_OK)
        st = best_point(ctx, &shape, &b, out);
    pthread_mutex_unlock(&ctx->gen_mutex);
    fa_space_free(&space);
    for (int i = 0; i < 2; i++)
        fa_newest_free(&b.known[i]);
    fa_records_free(&own);
    return st == FA_OK ? fa_render_in(ctx, p, &out->config, source) : st;
}

/* The model prices thousands of configs: what it said is worth a line on disk for the next process. */
static void remember(fa_context *ctx, const fa_problem *p, const fa_selection *c, const fa_source *s)
{
    fa_record r;
    memset(&r, 0, sizeof r);
    r.problem = *p;
    fa_problem_fill_shape(&r.problem);
    snprintf(r.chip, sizeof r.chip, "%s", ctx->device.arch.name);
    snprintf(r.arch, sizeof r.arch, "%s", ctx->device.arch.name);
    r.config = c->config;
    r.how = FA_MODELLED;
    r.seconds = c->seconds;
    for (int i = 0; i < s->steps; i++)
        r.smem = s->step[i].smem > r.smem ? s->step[i].smem : r.smem;
    snprintf(r.version, sizeof r.version, "%s", FA_VERSION_STRING);
    fa_text_date(r.date, sizeof r.date, time(NULL));
    r.source[0] = s->hash[0];
    r.source[1] = s->hash[1];
    fa_record_append(ctx->store, &r);
}

fa_status fa_select_jit(fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *source)
{
    fa_source s = { 0 };
    memory m = { .read = { false } };
    fa_status st = FA_OK;
    /* a winner of another length that was measured here does not push aside the one that ships for this length */
    if (!from_records(ctx, &m, p, FA_MEASURED, fa_default_distance(&ctx->device.arch, p), out, &s) &&
        !from_defaults(ctx, p, FA_SAME_ARCH, out, &s) && !from_records(ctx, &m, p, FA_MEASURED, INFINITY, out, &s) &&
        /* what was measured on another chip goes before a guess, which nothing was measured for */
        !from_defaults(ctx, p, FA_ANY_ARCH, out, &s) && !from_records(ctx, &m, p, FA_MODELLED, INFINITY, out, &s)) {
        st = from_model(ctx, &m, p, out, &s);
        if (st == FA_OK)
            remember(ctx, p, out, &s);
    }
    forget_all(&m);
    if (source)
        *source = s;
    else
        fa_source_free(&s);
    return st;
}
