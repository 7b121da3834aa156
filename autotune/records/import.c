/* import: fa_records_import(): a text is checked whole, what may decide here is verified on the device, and then added as a whole. */
#include "autotune/candidate/verifier.h"
#include "cache/line_set.h"
#include "cache/record_change.h"
#include "cache/record_text.h"
#include "cache/trusted_file.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "plausible.h"
#include "records.h"
#include "runtime/args/struct_size.h"
#include "runtime/choose/generators.h"
#include "runtime/choose/jit.h"
#include "runtime/runtime.h"
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIED_MOST 3 /* configs of one class and bucket, the fastest first */

/* A text on its way into the context's store. */
typedef struct coming {
    fa_context *ctx;
    fa_records_options opt;
    fa_records rs;      /* all of the text */
    fa_record *add;     /* what is to be added */
    size_t n_add, done; /* done: records that were looked at */
    fa_records_count *count;
} coming;

/* ---- all of the text is looked at before any of it counts ---- */

static fa_status check_each(coming *c, fa_gen *g, int64_t now)
{
    fa_line_set met = { .n = 0 };
    char key[FA_RECORDS_KEY];
    fa_status st = FA_OK;
    for (size_t i = 0; i < c->rs.n && st == FA_OK; i++) {
        st = fa_record_plausible(g, &c->rs.r[i], now);
        if (st == FA_OK && !fa_line_set_add(&met, key, fa_records_key(key, sizeof key, &c->rs.r[i])))
            st = met.oom ? fa_fail(FA_NOMEM, "no memory")
                         : fa_fail(FA_INVALID, "its config, class and bucket are those of a line before; accepted: each once");
        st = fa_wrap(st, "records: line %zu", i + 2);
    }
    fa_line_set_free(&met);
    return st;
}

static fa_status check_all(coming *c)
{
    fa_gen *g;
    fa_status st = fa_generator_take(c->ctx, &g);
    if (st == FA_OK)
        st = check_each(c, g, (int64_t)time(NULL));
    fa_generator_give(c->ctx, g);
    return st;
}

/* ---- what may decide here ---- */

/* Of the context's chip, or a guess of its arch, with the shared memory that kernels may use here. */
static bool is_of_device(const coming *c, const fa_record *r)
{
    const fa_arch *a = fa_context_arch(c->ctx);
    bool named = !strcmp(r->chip, r->how == FA_MEASURED ? a->chip : a->name) && !strcmp(r->arch, a->name);
    bool fresh = r->how == FA_MEASURED || (r->spills == 0 && !strcmp(r->version, FA_VERSION_STRING));
    return named && fresh && r->smem <= fa_context_budget(c->ctx);
}

static bool same_group(const fa_record *a, const fa_record *b)
{
    return a->how == b->how && !strcmp(a->chip, b->chip) && fa_problem_same_class(&a->problem, &b->problem) &&
           fa_problem_bucket(&a->problem) == fa_problem_bucket(&b->problem);
}

/* Times of few samples count where there are no others. */
static bool before(const fa_record *a, const fa_record *b)
{
    bool few = a->quality == FA_QUALITY_FEW, fewer = b->quality == FA_QUALITY_FEW;
    return few != fewer ? fewer : a->seconds < b->seconds;
}

/* What this store has of the class and bucket. */
typedef struct here {
    bool measured;             /* something ran here */
    const fa_record *imported; /* the best that came before; NULL: none */
} here;

static here look(const fa_records *own, const fa_record *of)
{
    here h = { .measured = false };
    for (size_t i = 0; i < own->n; i++) {
        const fa_record *r = &own->r[i];
        if (!same_group(r, of) || r->outcome != FA_RAN)
            continue;
        h.measured = h.measured || !r->imported;
        if (r->imported && (!h.imported || before(r, h.imported)))
            h.imported = r;
    }
    return h;
}

/* Whether a record of this machine and version tells that the config fails, as runtime/choose/facts.c has it. */
static bool failed_here(const fa_records *own, const fa_record *of)
{
    const fa_record *newest = NULL;
    for (size_t i = 0; i < own->n; i++)
        if (!own->r[i].imported && fa_config_equal(&own->r[i].config, &of->config))
            newest = &own->r[i];
    return newest && newest->outcome != FA_RAN && !strcmp(newest->version, FA_VERSION_STRING);
}

/* ---- verified, the fastest first ---- */

static fa_status told(coming *c, const char *stage, const fa_record *r)
{
    char line[600], config[512];
    if (!c->opt.progress)
        return FA_OK;
    fa_jit_config(c->ctx, &r->config, config, sizeof config);
    snprintf(line, sizeof line, "%s %s", stage, config);
    double done = (double)c->done / (double)(c->rs.n ? c->rs.n : 1);
    return c->opt.progress(c->opt.user, line, done) ? fa_fail(FA_INTERRUPTED, "records: the import was stopped; nothing was imported")
                                                    : FA_OK;
}

/* No fault of the config, or one that leaves a GPU's context unusable: the others would meet it too. */
static bool is_fatal(const coming *c, fa_status st)
{
    return st == FA_NOMEM || st == FA_INTERNAL || st == FA_NO_NVRTC || st == FA_NO_DRIVER || st == FA_INTERRUPTED || st == FA_CAPTURE ||
           (st == FA_DEVICE && !fa_context_driver(c->ctx)->takes_ptx);
}

/* *verdict: FA_OK where its kernel computes what it should, else why not, with the thread's message. Other than FA_OK: nothing is known. */
static fa_status verify(coming *c, fa_verifier *v, const fa_record *r, fa_status *verdict)
{
    const fa_plan *plan;
    const fa_problem point = fa_problem_point(&r->problem);
    fa_status st = told(c, "compile", r);
    if (st == FA_OK)
        st = fa_plan_make(c->ctx, &point, &r->config, "imported", &plan);
    if (st == FA_OK)
        st = told(c, "verify", r);
    if (st == FA_OK && !v->small)
        st = fa_verifier_open(v, c->ctx, &point, !fa_context_driver(c->ctx)->takes_ptx);
    if (st == FA_OK)
        st = fa_verifier_judge(v, plan);
    *verdict = st;
    return is_fatal(c, st) ? st : FA_OK;
}

/* What the tuner would have written of a config whose result was wrong here. */
static fa_record failure_of(const coming *c, const fa_record *r)
{
    const fa_nvrtc *nvrtc;
    fa_record f = { .problem = r->problem, .config = r->config, .outcome = FA_BAD_RESULT, .how = r->how, .version = FA_VERSION_STRING };
    snprintf(f.chip, sizeof f.chip, "%s", r->chip);
    snprintf(f.arch, sizeof f.arch, "%s", r->arch);
    snprintf(f.why, sizeof f.why, "%.*s", (int)sizeof f.why - 1, fa_last_error());
    if (fa_compiler_nvrtc(fa_context_compiler(c->ctx), &nvrtc) == FA_OK)
        snprintf(f.compiler, sizeof f.compiler, "%s", nvrtc->name);
    fa_text_date(f.date, sizeof f.date, time(NULL));
    return f;
}

/* The next of the group's records [from, to) that has not been taken: the fastest; NULL: none is left. */
static fa_record *next_of(coming *c, size_t from, size_t to, const bool *taken)
{
    fa_record *best = NULL;
    for (size_t i = from; i < to; i++)
        if (!taken[i] && (!best || before(&c->rs.r[i], best)))
            best = &c->rs.r[i];
    return best;
}

/* The best of the group that is right here is to be added. */
static fa_status take_best(coming *c, size_t from, size_t to, bool *taken, const fa_record *imported)
{
    fa_verifier v = { NULL, NULL };
    fa_status st = FA_OK;
    fa_status verdict = FA_WRONG;
    fa_record *r;
    for (int tried = 0; st == FA_OK && verdict != FA_OK && tried < TRIED_MOST && (r = next_of(c, from, to, taken)) != NULL; tried++) {
        taken[r - c->rs.r] = true;
        if (imported && !before(r, imported)) { /* as good as this came before, and was verified then */
            c->count->there++;
            break;
        }
        st = verify(c, &v, r, &verdict);
        if (st != FA_OK)
            break;
        *(verdict == FA_OK ? &c->count->added : &c->count->wrong) += 1;
        if (verdict == FA_WRONG)
            c->add[c->n_add++] = failure_of(c, r);
        if (verdict == FA_OK) {
            fa_record *kept = &c->add[c->n_add++];
            *kept = *r;
            kept->imported = kept->verified = true;
        }
    }
    fa_verifier_close(&v);
    return st;
}

/* ---- group by group ---- */

static int by_group(const void *a, const void *b)
{
    const fa_record *x = a, *y = b;
    char one[256], other[256];
    fa_problem_print_key(one, sizeof one, &x->problem);
    fa_problem_print_key(other, sizeof other, &y->problem);
    uint32_t p = fa_problem_bucket(&x->problem), q = fa_problem_bucket(&y->problem);
    int way = strcmp(one, other);
    way = way ? way : strcmp(x->chip, y->chip);
    way = way ? way : (x->how > y->how) - (x->how < y->how);
    return way ? way : (p > q) - (p < q);
}

static fa_status take_group(coming *c, size_t from, size_t to, bool *taken)
{
    const fa_record *first = &c->rs.r[from];
    fa_records own = fa_records_load(fa_context_store(c->ctx), first->chip, &first->problem);
    here h = look(&own, first);
    fa_status st = FA_OK;
    size_t open = 0;
    for (size_t i = from; i < to; i++) {
        bool elsewhere = !is_of_device(c, &c->rs.r[i]), known = h.measured || failed_here(&own, &c->rs.r[i]);
        taken[i] = elsewhere || known;
        c->count->elsewhere += elsewhere;
        c->count->measured += !elsewhere && known;
        open += !taken[i];
    }
    if (open)
        st = take_best(c, from, to, taken, h.imported);
    for (size_t i = from; i < to; i++)
        c->count->slower += !taken[i];
    c->done = to;
    fa_records_free(&own);
    return st;
}

static fa_status take_all(coming *c)
{
    bool *taken = calloc(c->rs.n + 1, sizeof *taken);
    fa_status st = FA_OK;
    c->add = calloc(c->rs.n + 1, sizeof *c->add);
    if (!taken || !c->add)
        st = fa_fail(FA_NOMEM, "records: no memory for %zu of them", c->rs.n);
    if (c->rs.n)
        qsort(c->rs.r, c->rs.n, sizeof *c->rs.r, by_group);
    for (size_t from = 0, to; st == FA_OK && from < c->rs.n; from = to) {
        for (to = from + 1; to < c->rs.n && same_group(&c->rs.r[from], &c->rs.r[to]); to++)
            ;
        st = take_group(c, from, to, taken);
    }
    free(taken);
    return st;
}

static fa_status check_options(coming *c, fa_context *ctx, const fa_records_options *opt)
{
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK && opt)
        st = fa_struct_size_check(opt, opt->size, offsetof(fa_records_options, progress), sizeof *opt, "records_options");
    if (st == FA_OK && opt)
        memcpy(&c->opt, opt, opt->size < sizeof c->opt ? opt->size : sizeof c->opt);
    if (st == FA_OK && c->opt.reserved)
        st = fa_fail(FA_INVALID, "records options: reserved is %d; accepted: 0", c->opt.reserved);
    if (st == FA_OK && fa_context_bundle_only(ctx))
        st = fa_records_none();
    if (st == FA_OK && !fa_store_root(fa_context_store(ctx)))
        st = fa_fail(FA_IO, "there is no cache root that can be written; FAGEN_CACHE_DIR, or the option cache_dir, names one");
    return st;
}

static fa_status import(fa_context *ctx, const char *text, size_t n, const fa_records_options *opt, fa_records_count *out)
{
    coming c = { .ctx = ctx, .opt = FA_RECORDS_OPTIONS_INIT, .count = out };
    fa_status st = check_options(&c, ctx, opt);
    if (st == FA_OK && !text)
        st = fa_fail(FA_INVALID, "text: NULL; accepted: the bytes of a text of records");
    if (st == FA_OK)
        st = fa_record_text_read(&c.rs, text, n);
    out->records = (int32_t)c.rs.n;
    if (st == FA_OK)
        st = check_all(&c);
    if (st == FA_OK)
        st = take_all(&c);
    if (st == FA_OK)
        st = fa_records_add(fa_context_store(ctx), c.add, c.n_add);
    free(c.add);
    fa_records_free(&c.rs);
    return st;
}

/* What is counted is told where it came to be, or all is 0. */
static fa_status import_counted(fa_context *ctx, const char *text, size_t n, const fa_records_options *opt, fa_records_count *count)
{
    fa_records_count own = FA_RECORDS_COUNT_INIT;
    fa_message before;
    fa_message_keep(&before);
    uint32_t size = count ? count->size : 0;
    fa_status st = count ? fa_struct_size_check(count, size, offsetof(fa_records_count, records), sizeof *count, "records_count") : FA_OK;
    bool told = count && st == FA_OK;
    if (st == FA_OK)
        st = import(ctx, text, n, opt, &own);
    if (st != FA_OK)
        own = (fa_records_count)FA_RECORDS_COUNT_INIT;
    own.size = size;
    if (told)
        memcpy(count, &own, size < sizeof own ? size : sizeof own);
    return fa_message_settle(&before, st);
}

fa_status fa_records_import_text(fa_context *ctx, const char *text, size_t n, const fa_records_options *opt, fa_records_count *count)
{
    return import_counted(ctx, text, n, opt, count);
}

fa_status fa_records_import(fa_context *ctx, const char *path, const fa_records_options *opt, fa_records_count *count)
{
    char *text = NULL;
    size_t n = 0;
    const char *trouble = "";
    if (!path || !path[0])
        return fa_fail(FA_INVALID, "path: none; accepted: a file of fa_records_export()");
    fa_file_state got = fa_trusted_read(AT_FDCWD, path, FA_RECORD_TEXT_CAP, &text, &n, NULL, &trouble);
    if (got == FA_FILE_BAD)
        return fa_fail(FA_INVALID,
                       "%s: %s; accepted: a regular file of at most %zu bytes, owned by this user or root, which nobody else can write",
                       path, trouble, FA_RECORD_TEXT_CAP);
    if (got != FA_FILE_OK)
        return fa_fail(FA_IO, "%s: cannot be read: %s", path, trouble);
    fa_status st = import_counted(ctx, text, n, opt, count);
    free(text);
    return fa_wrap(st, "%s", path);
}
