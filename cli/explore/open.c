/* open: the space and its tiles, priced by the model, with what is on record. */
#include "explore.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/literature.h"
#include "gen/problem.h"
#include "reference.h"
#include "runtime/choose/facts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int family_index(explore *e, const char *name)
{
    int i = 0, n = 0;
    fa_tunable t;
    while (i < e->families && strcmp(e->family[i].name, name))
        i++;
    if (i < e->families || i == EXPLORE_FAMILIES)
        return i < e->families ? i : -1;
    explore_family *f = &e->family[e->families++];
    *f = (explore_family){ .axis = { -1, -1 } };
    for (size_t k = 0; !f->name && k < fa_gen_families(e->gen); k++)
        if (!strcmp(fa_gen_family(e->gen, k), name))
            f->name = fa_gen_family(e->gen, k);
    while (fa_gen_tunable(e->gen, name, (size_t)n, &t))
        n++;
    if (!fa_gen_axes(e->gen, name, f->axis)) { /* a family without such a tile: its first tunables span the map */
        f->axis[0] = 0;
        f->axis[1] = n > 1 ? 1 : -1;
    }
    return i;
}

/* The index of the config's value on an axis; 0 where there is no such axis. */
static int at_axis(const explore *e, int family, int axis, const fa_config *c)
{
    fa_tunable t;
    int number = e->family[family].axis[axis];
    if (number < 0 || !fa_gen_tunable(e->gen, c->family, (size_t)number, &t))
        return 0;
    for (size_t i = 0; i < t.n; i++)
        if (t.values[i] == fa_config_get(c, t.name, t.values[i] + 1))
            return (int)i;
    return -1;
}

static int axis_length(const explore *e, int family, int axis)
{
    fa_tunable t;
    int number = e->family[family].axis[axis];
    return number >= 0 && fa_gen_tunable(e->gen, e->family[family].name, (size_t)number, &t) ? (int)t.n : 1;
}

/* "... 264 > 255 ..." as 264 / 255; 0 where the text compares nothing. */
static double excess_of(const char *why)
{
    const char *mark = strstr(why, " > "), *from = mark;
    while (from && from > why && ((from[-1] >= '0' && from[-1] <= '9') || from[-1] == '.'))
        from--;
    double a = mark ? strtod(from, NULL) : 0, b = mark ? strtod(mark + 3, NULL) : 0;
    return from != mark && b > 0 ? a / b : 0;
}

static void add_reason(explore_tile *t, const fa_point *p)
{
    explore_reason *r = t->reason;
    double excess = excess_of(p->why);
    while (r < t->reason + t->reasons && strcmp(r->constraint, p->constraint))
        r++;
    if (r == t->reason + EXPLORE_REASONS)
        return;
    bool is_new = r == t->reason + t->reasons;
    if (is_new)
        t->reasons++, r->points = 0;
    r->points++;
    if (!is_new && !(excess > 0 && excess < r->excess))
        return;
    memcpy(r->constraint, p->constraint, sizeof r->constraint);
    memcpy(r->why, p->why, sizeof r->why);
    r->config = p->config;
    r->excess = excess;
}

/* What the hardware lacks is told before what a family does not do; then what holds for most. */
static int by_weight(const void *a, const void *b)
{
    const explore_reason *x = a, *y = b;
    if ((x->excess > 0) != (y->excess > 0))
        return x->excess > 0 ? -1 : 1;
    return x->points == y->points ? strcmp(x->constraint, y->constraint) : x->points > y->points ? -1 : 1;
}

/* All points fail at once for the families' first tunables: the listing has one for many, and some tiles none. */
static fa_status judge_tile(explore *e, explore_tile *t)
{
    fa_config c = { .n = 0 };
    fa_tunable u;
    fa_point p;
    const explore_family *f = &e->family[t->family];
    snprintf(c.family, sizeof c.family, "%s", f->name);
    for (size_t i = 0; fa_gen_tunable(e->gen, f->name, i, &u); i++)
        fa_tunable_set(&c, &u, u.values[(int)i == f->axis[0] ? t->y : (int)i == f->axis[1] ? t->x : 0]);
    fa_status st = fa_space_judge(e->gen, &e->problem, e->arch, e->budget, &c, &p);
    if (st == FA_OK && !p.fits)
        add_reason(t, &p);
    return st;
}

static fa_status make_tiles(explore *e, const fa_space *s)
{
    size_t first[EXPLORE_FAMILIES];
    for (size_t i = 0; i < s->n; i++)
        family_index(e, s->points[i].config.family);
    for (int f = 0; f < e->families; f++) {
        first[f] = e->tiles;
        e->tiles += (size_t)axis_length(e, f, 0) * (size_t)axis_length(e, f, 1);
    }
    if (!(e->tile = calloc(e->tiles ? e->tiles : 1, sizeof *e->tile)))
        return fa_fail(FA_NOMEM, "no memory for %zu tiles", e->tiles);
    for (int f = 0; f < e->families; f++)
        for (int y = 0, wide = axis_length(e, f, 1); y < axis_length(e, f, 0); y++)
            for (int x = 0; x < wide; x++)
                e->tile[first[f] + (size_t)(y * wide + x)] = (explore_tile){ .family = f, .y = y, .x = x };
    for (size_t i = 0; i < s->n; i++) {
        const fa_point *p = &s->points[i];
        int f = family_index(e, p->config.family), y = f < 0 ? -1 : at_axis(e, f, 0, &p->config),
            x = f < 0 ? -1 : at_axis(e, f, 1, &p->config);
        if (y < 0 || x < 0)
            continue;
        explore_tile *t = &e->tile[first[f] + (size_t)(y * axis_length(e, f, 1) + x)];
        t->points++;
        t->fits += p->fits;
        if (!p->fits)
            add_reason(t, p);
    }
    fa_status st = FA_OK;
    for (size_t i = 0; st == FA_OK && i < e->tiles; i++) {
        if (!e->tile[i].points)
            st = judge_tile(e, &e->tile[i]);
        qsort(e->tile[i].reason, (size_t)e->tile[i].reasons, sizeof e->tile[i].reason[0], by_weight);
    }
    return st;
}

/* Of the arch's chips the one with most times of this shape; of equals the latest. */
static void choose_chip(explore *e, const fa_records *all)
{
    size_t most = 0;
    for (size_t i = all->n; i-- > 0;) {
        const fa_record *r = &all->r[i];
        size_t n = 0;
        if (r->how != FA_MEASURED || strcmp(r->arch, e->arch->name) || !strcmp(r->chip, e->chip))
            continue;
        for (size_t k = 0; k < all->n; k++)
            n += all->r[k].how == FA_MEASURED && !strcmp(all->r[k].chip, r->chip) && explore_same_shape(e, &all->r[k]);
        if (n > most) {
            most = n;
            snprintf(e->chip, sizeof e->chip, "%s", r->chip);
        }
    }
}

static bool has_times(const explore *e, const fa_problem *shape)
{
    for (size_t i = 0; i < e->records.n; i++)
        if (explore_is_time(e, &e->records.r[i]) && fa_problem_same_shape(&e->records.r[i].problem, shape))
            return true;
    return false;
}

/* The chip with times for the arch whose name this is, or else is a part of, in letters of either case: "h200"; else the name itself. */
static const char *chip_named(const explore *e, const fa_records *reference, const char *name)
{
    const fa_records *all[] = { &e->records, reference };
    const char *part = NULL;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < all[k]->n; i++) {
            const fa_record *r = &all[k]->r[i];
            if (r->how != FA_MEASURED || strcmp(r->arch, e->arch->name) || !strcasestr(r->chip, name))
                continue;
            if (!strcmp(r->chip, name))
                return name;
            if (!part)
                part = r->chip;
        }
    return part ? part : name;
}

/* The reference times, which it takes, stand in for each shape that was not tuned here, before what was. */
static void add_reference(explore *e, fa_records all)
{
    fa_records own = e->records;
    size_t n = 0;
    if (!all.n || (e->chip[0] && strcmp(e->chip, all.r[0].chip))) {
        fa_records_free(&all);
        return;
    }
    for (size_t i = 0; i < all.n; i++)
        if (!has_times(e, &all.r[i].problem))
            all.r[n++] = all.r[i];
    for (size_t i = 0; i < n && !e->reference; i++)
        e->reference = explore_same_shape(e, &all.r[i]);
    bool ours = e->chip[0] || e->reference; /* times of other shapes alone are those of no chip that was asked for */
    fa_record *grown = !ours ? NULL : own.n ? realloc(all.r, (n + own.n) * sizeof *grown) : all.r;
    if (!grown) {
        e->reference = false;
        fa_records_free(&all);
        return;
    }
    if (own.n)
        memcpy(grown + n, own.r, own.n * sizeof *grown);
    snprintf(e->chip, sizeof e->chip, "%s", grown[0].chip);
    e->records = (fa_records){ grown, n + own.n };
    fa_records_free(&own);
}

/* Measured on the chip, or modelled for the arch. */
static void load_records(explore *e, fa_store *store, const char *chip)
{
    size_t n = 0;
    fa_records reference = cli_reference_load(&e->problem, e->arch);
    if (store)
        e->records = fa_records_load(store, NULL, &e->problem);
    if (chip)
        snprintf(e->chip, sizeof e->chip, "%s", chip_named(e, &reference, chip));
    else
        choose_chip(e, &e->records);
    for (size_t i = 0; i < e->records.n; i++) {
        const fa_record *r = &e->records.r[i];
        bool ours = r->how == FA_MEASURED ? e->chip[0] && !strcmp(r->chip, e->chip) : !strcmp(r->arch, e->arch->name);
        if (ours)
            e->records.r[n++] = *r;
    }
    e->records.n = n;
    add_reference(e, reference);
}

static explore_config *find(explore *e, const fa_config *c)
{
    for (size_t i = 0; i < e->n; i++)
        if (fa_config_equal(&e->config[i].point.config, c))
            return &e->config[i];
    return NULL;
}

/* A record may know a config that the listing leaves out, as it is seldom worth trying. */
static explore_config *add_named(explore *e, const fa_config *c)
{
    explore_config k = { .order = SIZE_MAX };
    if (fa_space_judge(e->gen, &e->problem, e->arch, e->budget, c, &k.point) != FA_OK ||
        fa_model_cost(e->gen, &e->problem, c, e->arch, 0, &k.cost) != FA_OK || family_index(e, c->family) < 0)
        return NULL;
    explore_config *grown = realloc(e->config, (e->n + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    e->config = grown;
    k.point.fits = true;
    grown[e->n] = k;
    return &grown[e->n++];
}

static void match_records(explore *e)
{
    for (size_t i = 0; i < e->records.n; i++) { /* the oldest first: the last one stays */
        const fa_record *r = &e->records.r[i];
        if (!explore_same_shape(e, r) || explore_system_of(e, &r->config) >= 0)
            continue;
        explore_config *k = find(e, &r->config);
        if (!k)
            k = add_named(e, &r->config);
        if (k && !(k->record && k->record->how == FA_MEASURED && r->how == FA_MODELLED))
            k->record = r;
    }
}

/* A time of an older text still tells which config is good, but it is not the time of this one. A config that only a record names has its
 * shared memory from its text. */
static void compare_texts(explore *e)
{
    for (size_t i = 0; i < e->n; i++) {
        explore_config *k = &e->config[i];
        fa_source s = { .text = NULL };
        if (!k->record)
            continue;
        bool renders = fa_render(e->gen, &e->problem, &k->point.config, e->arch, e->budget, &s) == FA_OK,
             told = k->record->source[0] || k->record->source[1],
             same = renders && s.hash[0] == k->record->source[0] && s.hash[1] == k->record->source[1];
        k->older = !renders || (told ? !same : !e->reference && k->record->outcome != FA_BAD_COMPILE);
        k->rejected = k->record->outcome != FA_RAN && (!told || same);
        e->rejections += k->rejected;
        if (renders && !k->point.smem)
            k->point.smem = s.step[0].smem;
        fa_source_free(&s);
    }
}

static int by_model(const void *a, const void *b)
{
    const explore_config *x = a, *y = b;
    if (x->cost.seconds != y->cost.seconds)
        return x->cost.seconds < y->cost.seconds ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The winner that ships nearest, of this arch. */
static fa_status find_shipped(explore *out, const fa_arch *a, int32_t budget)
{
    const fa_problem point = fa_problem_point(&out->problem);
    fa_facts facts;
    fa_status st = fa_facts_of(&facts, NULL, &point, a, budget);
    for (size_t i = 0; st == FA_OK && i < facts.n && !out->shipped_for[0]; i++)
        if (facts.fact[i].kind == FA_FACT_SHIPPED && facts.fact[i].arch) {
            const explore_config *k = find(out, &facts.fact[i].config);
            snprintf(out->shipped_for, sizeof out->shipped_for, "%s", facts.fact[i].chip);
            out->shipped = k ? (size_t)(k - out->config) : SIZE_MAX;
        }
    if (st == FA_OK)
        fa_facts_free(&facts);
    return st;
}

fa_status explore_open(explore *out, fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family, fa_store *store,
                       const char *chip)
{
    cli_ranking r = { .n = 0 };
    *out = (explore){ .gen = g, .arch = a, .budget = budget, .problem = *p, .shipped = SIZE_MAX };
    fa_problem_fill_shape(&out->problem);
    out->flops = fa_model_matrix_flops(&out->problem, fa_band_of_problem(&out->problem));
    fa_status st = explore_tensors_count(out);
    if (st == FA_OK)
        st = cli_rank(g, &out->problem, a, budget, family, &r);
    if (st == FA_OK)
        st = cli_systems_of(&out->systems, g, out->problem.op, NULL);
    if (st != FA_OK) {
        cli_ranking_free(&r);
        return st;
    }
    out->total = r.space.n;
    out->fitting = r.space.fitting;
    out->config = calloc(r.n ? r.n : 1, sizeof *out->config);
    if (!out->config)
        st = fa_fail(FA_NOMEM, "no memory for %zu configs", r.n);
    for (; st == FA_OK && out->n < r.n; out->n++)
        out->config[out->n] =
            (explore_config){ .point = r.space.points[r.r[out->n].point], .order = r.r[out->n].point, .cost = r.r[out->n].cost };
    if (st == FA_OK)
        st = make_tiles(out, &r.space);
    if (st == FA_OK) {
        load_records(out, store, chip);
        match_records(out);
        compare_texts(out);
        explore_lengths_fill(out, &r.space);
    }
    cli_ranking_free(&r);
    if (st != FA_OK) {
        explore_close(out);
        return st;
    }
    qsort(out->config, out->n, sizeof *out->config, by_model);
    out->naive = explore_naive(a, &out->problem);
    out->naive_traffic = fa_literature_naive(&out->problem);
    return find_shipped(out, a, budget);
}

void explore_close(explore *e)
{
    free(e->config);
    free(e->tile);
    free(e->counters);
    fa_records_free(&e->records);
    e->config = NULL;
    e->tile = NULL;
    e->counters = NULL;
    e->n = e->tiles = e->simulated = 0;
}
