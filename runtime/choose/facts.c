/* facts: rows that ship and records of the class and its relatives, by their distance. */
#include "facts.h"
#include "cache/newest.h"
#include "gen/batch_kind.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "shipped.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FACTS_MAX 24    /* the nearest */
#define RECORDED_MOST 6 /* records of one class */
#define DIM_MOST 0.6    /* doublings of d, as far as which a neighbour's winners are looked at */
#define DIM_APART 0.5   /* of a neighbouring head_dim, and so much for each doubling */
#define DIM_SLOPE 4
#define CHIP_APART 0.5 /* of another chip of the arch */
#define ARCH_APART 2   /* of another arch, and a doubling for each whole number of compute capability */

/* How far a winner of that chip is, and whether it is this chip; negative: the chip is not known. */
static double chip_apart(const char *chip, const fa_arch *a, bool *own)
{
    const fa_arch *other = fa_arch_find(strncmp(chip, "NVIDIA ", 7) == 0 ? chip + 7 : chip);
    *own = strcmp(chip, a->chip) == 0 || (other && other->source == a->source);
    if (*own)
        return 0;
    return !other ? -1 : other->cc == a->cc ? CHIP_APART : ARCH_APART + abs(other->cc - a->cc) / 10.0;
}

/* fp16 and bf16 run at the same rates through the same code: a row of one is a row of the other. */
static fa_problem as_type(const fa_problem *row, const fa_problem *p)
{
    fa_problem q = *row;
    int32_t *const written[] = { &q.o_dtype, &q.grad_dtype };
    if (fa_dtype_bytes(p->dtype) != 2 || fa_dtype_bytes(row->dtype) != 2)
        return q;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        *written[i] = *written[i] == row->dtype ? p->dtype : *written[i];
    q.dtype = p->dtype;
    return q;
}

/* Whether the row's class is that of r, or of a neighbouring head_dim; how far that is. */
static bool class_apart(const fa_problem *row, const fa_problem *r, double *apart)
{
    fa_problem q = *row;
    double dims = 0;
    if (q.d != r->d && q.d == q.dv && r->d == r->dv) {
        dims = fabs(log2((double)q.d / r->d));
        q.d = q.dv = r->d;
    }
    *apart = dims > 0 ? DIM_APART + DIM_SLOPE * dims : 0;
    return dims <= DIM_MOST && fa_problem_same_class(&q, r);
}

/* A list that grows. */
typedef struct gathering {
    const fa_problem *point;
    const fa_arch *arch;
    fa_facts *out;
    size_t cap;
    bool oom;
} gathering;

static void add(gathering *g, const fa_fact *f)
{
    fa_facts *o = g->out;
    if (o->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 64;
        fa_fact *grown = realloc(o->fact, cap * sizeof *grown);
        g->oom = g->oom || !grown;
        if (!grown)
            return;
        o->fact = grown;
        g->cap = cap;
    }
    o->fact[o->n++] = *f;
}

/* One of the relative's class, or of a head_dim beside it. */
static void add_near(gathering *g, const fa_relative *r, fa_fact *f, double apart, bool own)
{
    fa_problem near = r->problem;
    near.d = f->problem.d, near.dv = f->problem.dv;
    if (!fa_problem_alike(&f->problem, &near))
        return;
    f->far = apart + fa_records_distance(&f->problem, &near);
    f->own = own && f->far == 0;
    add(g, f);
}

/* Whether this very chip has a winner of the problem of a row of another chip: of gradients, where the chips differ by what dS in memory
 * costs. */
static bool outdone(const gathering *g, const fa_shipped *row)
{
    bool own = false;
    for (size_t i = 0; row->problem.op == FA_BACKWARD && i < fa_shipped_count && !own; i++)
        if (!memcmp(&fa_shipped_rows[i].problem, &row->problem, sizeof row->problem))
            chip_apart(fa_shipped_rows[i].chip, g->arch, &own);
    return own;
}

/* Whether a row of the other 16-bit type has one of the problem's own beside it: of the same chip, family and shape. */
static bool has_own(const fa_shipped *row, const fa_problem *as, const fa_problem *r)
{
    bool own = false;
    for (size_t i = 0; row->problem.dtype != r->dtype && i < fa_shipped_count && !own; i++) {
        const fa_shipped *other = &fa_shipped_rows[i];
        own = other->problem.dtype == r->dtype && !strcmp(other->chip, row->chip) && !strcmp(other->config.family, row->config.family) &&
              !memcmp(&other->problem, as, sizeof *as);
    }
    return own;
}

static void add_shipped(gathering *g, const fa_relative *r)
{
    for (size_t i = 0; i < fa_shipped_count; i++) {
        const fa_shipped *row = &fa_shipped_rows[i];
        fa_fact f = { .kind = FA_FACT_SHIPPED, .problem = as_type(&row->problem, &r->problem) };
        double dims, chip;
        bool own;
        if (f.problem.op != r->problem.op || !class_apart(&f.problem, &r->problem, &dims) ||
            (chip = chip_apart(row->chip, g->arch, &own)) < 0 || (!own && (row->alone || outdone(g, row))) ||
            has_own(row, &f.problem, &r->problem))
            continue;
        f.config = row->config;
        f.arch = chip < ARCH_APART;
        snprintf(f.chip, sizeof f.chip, "%s", row->chip);
        add_near(g, r, &f, r->apart + chip + dims, own && r->own);
    }
}

static void forget(fa_records *rs, fa_config drop)
{
    size_t n = 0;
    for (size_t i = 0; i < rs->n; i++)
        if (!fa_config_equal(&rs->r[i].config, &drop))
            rs->r[n++] = rs->r[i];
    rs->n = n;
}

const char *fa_fact_name(fa_fact_kind k)
{
    static const char *const names[] = { [FA_FACT_PINNED] = "pin",
                                         [FA_FACT_MEASURED] = "measured record",
                                         [FA_FACT_IMPORTED] = "imported record",
                                         [FA_FACT_SHIPPED] = "default table",
                                         [FA_FACT_MODELLED] = "modelled record",
                                         [FA_FACT_NONE] = "model" };
    return names[k];
}

static bool may_run(const gathering *g, const fa_record *r, int32_t budget, fa_fact_kind kind, const fa_problem *p)
{
    fa_how how = kind == FA_FACT_MODELLED ? FA_MODELLED : FA_MEASURED;
    bool origin = how == FA_MODELLED || r->imported == (kind == FA_FACT_IMPORTED);
    /* a guess is of the bucket and the version; what spills is none */
    bool fresh = how == FA_MEASURED || (r->spills == 0 && fa_problem_bucket(&r->problem) == fa_problem_bucket(g->point) &&
                                        strcmp(r->version, FA_VERSION_STRING) == 0);
    return r->how == how && origin && r->smem <= budget && fresh && fa_problem_alike(&r->problem, p);
}

/* Only records of one kind that may run here, of each config and bucket the newest; in their order. */
static void sift(fa_records *rs, gathering *g, int32_t budget, fa_fact_kind kind, const fa_problem *p)
{
    fa_newest met = { .n = 0 };
    size_t first = rs->n;
    for (size_t i = rs->n; i-- > 0;) {
        if (!may_run(g, &rs->r[i], budget, kind, p))
            continue;
        fa_record *r = &rs->r[first - 1]; /* where it stays, before the table points to it */
        *r = rs->r[i];
        first -= fa_newest_add(&met, r, fa_problem_bucket(&r->problem));
    }
    g->oom = g->oom || met.oom;
    fa_newest_free(&met);
    rs->n -= first;
    if (first)
        memmove(rs->r, rs->r + first, rs->n * sizeof *rs->r);
}

static void add_records(gathering *g, fa_store *store, const fa_relative *r, int32_t budget, fa_fact_kind kind)
{
    fa_records rs = fa_records_load(store, kind == FA_FACT_MODELLED ? g->arch->name : g->arch->chip, &r->problem);
    const fa_record *best;
    sift(&rs, g, budget, kind, &r->problem);
    for (int i = 0; i < RECORDED_MOST && (best = fa_records_best(&rs, &r->problem)) != NULL; i++) {
        fa_fact f = { .kind = kind,
                      .config = best->config,
                      .problem = best->problem,
                      .arch = true,
                      .seconds = best->seconds,
                      .source = { best->source[0], best->source[1] } };
        snprintf(f.chip, sizeof f.chip, "%s", best->chip);
        snprintf(f.date, sizeof f.date, "%s", best->date);
        add_near(g, r, &f, r->apart, kind != FA_FACT_MODELLED && r->own);
        forget(&rs, best->config);
    }
    fa_records_free(&rs);
}

/* Configs whose newest record tells of a failure, by this version of the library; the newest failure first. */
static void add_failed(gathering *g, fa_store *store, const char *chip)
{
    fa_records rs = fa_records_load(store, chip, g->point);
    fa_newest met = { .n = 0 };
    for (size_t i = rs.n; i-- > 0 && !g->oom;) {
        const fa_record *r = &rs.r[i];
        if (r->imported || !fa_newest_add(&met, r, 0) || r->outcome == FA_RAN || strcmp(r->version, FA_VERSION_STRING) != 0)
            continue;
        fa_failure *grown = realloc(g->out->failed, (g->out->n_failed + 1) * sizeof *grown);
        g->oom = !grown;
        if (!grown)
            continue;
        g->out->failed = grown;
        fa_failure *f = &grown[g->out->n_failed++];
        f->config = r->config;
        snprintf(f->why, sizeof f->why, "%s: %s", fa_outcome_name(r->outcome), r->why);
    }
    g->oom = g->oom || met.oom;
    fa_newest_free(&met);
    fa_records_free(&rs);
}

/* What decides comes first, a measurement before what ships; then the nearest; equals as they came. */
static bool before(const fa_fact *a, const fa_fact *b)
{
    if (a->own != b->own)
        return a->own;
    if (a->own && a->kind != b->kind)
        return a->kind < b->kind;
    return a->far < b->far;
}

/* By insertion, which keeps the order of equals. Of a config the nearest stays; a guess, which comes after all others here, only where
 * nothing else is known of it. */
static void sort_facts(fa_facts *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++) {
        fa_fact f = o->fact[i];
        size_t at = n;
        while (at > 0 && before(&f, &o->fact[at - 1]))
            at--;
        size_t same = 0;
        while (same < n && !fa_config_equal(&o->fact[same].config, &f.config))
            same++;
        if (same < at || (same < n && f.kind == FA_FACT_MODELLED))
            continue;
        size_t last = same < n ? same : n < FACTS_MAX ? n : FACTS_MAX - 1;
        if (at > last)
            continue;
        memmove(&o->fact[at + 1], &o->fact[at], (last - at) * sizeof f);
        o->fact[at] = f;
        n = last == n ? n + 1 : n;
    }
    o->n = n;
}

static uint64_t hash_of(const fa_facts *f)
{
    uint64_t h = 0;
    char line[512];
    for (size_t i = 0; i < f->n; i++) {
        const fa_fact *x = &f->fact[i];
        int n = snprintf(line, sizeof line, "%d %.17g %.17g %d %s ", x->kind, x->seconds, x->far, x->own, x->chip);
        h = XXH3_64bits_withSeed(line, (size_t)n, h);
        n = fa_problem_print(line, sizeof line, &x->problem);
        h = XXH3_64bits_withSeed(line, (size_t)n, h);
        h = XXH3_64bits_withSeed(&x->config, sizeof x->config, h);
    }
    for (size_t i = 0; i < f->n_failed; i++)
        h = XXH3_64bits_withSeed(&f->failed[i].config, sizeof f->failed[i].config, h);
    return h;
}

fa_status fa_facts_of(fa_facts *out, fa_store *store, const fa_problem *point, const fa_arch *a, int32_t budget)
{
    fa_relative relative[FA_RELATIVES_MAX];
    gathering g = { .point = point, .arch = a, .out = out };
    int n = fa_relatives_of(point, relative);
    budget = budget > 0 && budget < a->smem_block ? budget : a->smem_block;
    *out = (fa_facts){ .n = 0 };
    for (int i = 0; i < n; i++) {
        if (store) {
            add_records(&g, store, &relative[i], budget, FA_FACT_MEASURED);
            add_records(&g, store, &relative[i], budget, FA_FACT_IMPORTED);
        }
        add_shipped(&g, &relative[i]);
    }
    if (store) {
        add_records(&g, store, &relative[0], budget, FA_FACT_MODELLED);
        add_failed(&g, store, a->chip);
        add_failed(&g, store, a->name);
    }
    if (g.oom) {
        fa_facts_free(out);
        return fa_fail(FA_NOMEM, "no memory for what is known of a class");
    }
    sort_facts(out);
    out->hash = hash_of(out);
    return FA_OK;
}

const fa_failure *fa_facts_failure(const fa_facts *f, const fa_config *c)
{
    for (size_t i = 0; i < f->n_failed; i++)
        if (fa_config_equal(&f->failed[i].config, c))
            return &f->failed[i];
    return NULL;
}

fa_status fa_facts_pin(fa_facts *f, const fa_problem *point, const fa_config *pin)
{
    fa_fact x = { .kind = FA_FACT_PINNED, .config = *pin, .problem = *point };
    fa_fact *grown = realloc(f->fact, (f->n + 1) * sizeof *grown);
    if (!grown)
        return fa_fail(FA_NOMEM, "no memory for what is known of a class");
    f->fact = grown;
    size_t same = 0;
    while (same < f->n && !fa_config_equal(&grown[same].config, pin))
        same++;
    if (same < f->n && grown[same].own && grown[same].kind <= FA_FACT_IMPORTED) { /* what was measured of it stays known */
        x = grown[same];
        x.kind = FA_FACT_PINNED;
    }
    memmove(grown + 1, grown, same * sizeof *grown);
    f->n += same == f->n;
    x.own = true;
    x.far = 0;
    grown[0] = x;
    f->hash = hash_of(f);
    return FA_OK;
}

void fa_facts_free(fa_facts *f)
{
    free(f->fact);
    free(f->failed);
    *f = (fa_facts){ .n = 0 };
}
