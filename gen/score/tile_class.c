/* tile_class: nodes in their order, each read as the plan says. */
#include "tile_class.h"
#include "gen/error.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    fa_score_range of;
    uint64_t set; /* of value % 64 */
} entry;

struct fa_score_tables {
    const fa_score_tiles *tiles;
    fa_score_data data;
    bool none; /* nothing is known of elements */
    int64_t b, heads, steps[2];
    entry *side[2][FA_SCORE_VALUES_MAX]; /* of queries, of keys: of each head, each step */
    int32_t *pair[FA_SCORE_PAIRS_MAX];
};

static const fa_score_side_tables *side_of(const fa_score_tiles *t, int side)
{
    return side ? &t->keys : &t->queries;
}

static int64_t steps_of(int64_t n)
{
    return (n + FA_SCORE_TABLE_STEP - 1) / FA_SCORE_TABLE_STEP;
}

/* ---- tables ---- */

static bool outside(double v)
{
    return isnan(v);
}

static uint64_t bit_of(double v)
{
    return (uint64_t)1 << ((int64_t)v & 63);
}

static entry entry_of(const fa_score_tables *t, int node, int side, int64_t h, int64_t first, int64_t last)
{
    double value[FA_SCORE_ROOM];
    entry e = { { INFINITY, -INFINITY, false }, 0 };
    for (int64_t at = first; at <= last; at++) {
        fa_score_pair pair = { t->b, h, side ? 0 : at, side ? at : 0, 0 };
        double v = fa_score_eval(t->tiles->ir, node, &t->data, &pair, value);
        if (outside(v)) {
            e.of = (fa_score_range){ -INFINITY, INFINITY, true };
            continue;
        }
        e.of.lo = fmin(e.of.lo, v);
        e.of.hi = fmax(e.of.hi, v);
        e.set |= t->tiles->ir->node[node].type == FA_SCORE_I32 ? bit_of(v) : 0;
    }
    return e;
}

static bool make_side(fa_score_tables *t, int side)
{
    const fa_score_side_tables *of = side_of(t->tiles, side);
    int64_t n = side ? t->data.sk : t->data.sq, heads = of->by_h ? t->heads : 1;
    t->steps[side] = steps_of(n);
    for (int k = 0; k < of->n; k++) {
        entry *e = t->side[side][k] = calloc((size_t)(heads * t->steps[side] + 1), sizeof *e);
        for (int64_t h = 0; e && h < heads; h++)
            for (int64_t s = 0; s < t->steps[side]; s++, e++) {
                int64_t last = (s + 1) * FA_SCORE_TABLE_STEP - 1;
                *e = entry_of(t, of->table[k].node, side, h, s * FA_SCORE_TABLE_STEP, last < n ? last : n - 1);
            }
        if (!t->side[side][k])
            return false;
    }
    return true;
}

/* Blocks of the last two indices, or of the only one; leading ones together. */
static void blocks_of(const fa_score_tables *t, int operand, int64_t *leads, int64_t *rows, int64_t *columns)
{
    const int64_t *extent = t->data.extent[operand];
    int rank = t->tiles->ir->operand[operand].rank;
    *leads = 1;
    for (int k = 0; k < rank - 2; k++)
        *leads *= extent[k];
    *rows = rank > 1 ? steps_of(extent[rank - 2]) : 1;
    *columns = steps_of(extent[rank - 1]);
}

/* Entries are made when they are asked for. */
static bool make_pair(fa_score_tables *t, int k)
{
    int64_t leads, rows, columns;
    blocks_of(t, t->tiles->pair[k].operand, &leads, &rows, &columns);
    size_t bytes = (size_t)(leads * rows * columns) * sizeof *t->pair[k];
    t->pair[k] = malloc(bytes ? bytes : 1);
    if (t->pair[k])
        memset(t->pair[k], 0xff, bytes);
    return t->pair[k] != NULL;
}

static int32_t block_of(const fa_score_tables *t, int operand, const int64_t lead[], int64_t row, int64_t column)
{
    const int64_t *extent = t->data.extent[operand];
    int rank = t->tiles->ir->operand[operand].rank;
    int64_t index[FA_SCORE_RANK_MAX], rows = rank > 1 ? extent[rank - 2] : 1, columns = extent[rank - 1];
    int32_t word = 1;
    memcpy(index, lead, sizeof index);
    for (int64_t i = row * FA_SCORE_TABLE_STEP; i < rows && i < (row + 1) * FA_SCORE_TABLE_STEP; i++)
        for (int64_t j = column * FA_SCORE_TABLE_STEP; j < columns && j < (column + 1) * FA_SCORE_TABLE_STEP; j++) {
            if (rank > 1)
                index[rank - 2] = i;
            index[rank - 1] = j;
            int v = (int)t->data.read(t->data.user, operand, index);
            word = (word | v << 8) & (v ? ~0 : ~1);
        }
    return word;
}

fa_status fa_score_tables_make(fa_score_tables **out, const fa_score_tiles *tiles, const fa_score_data *data, int64_t b, int64_t heads)
{
    fa_score_tables *t = *out = calloc(1, sizeof *t);
    if (!t)
        return fa_fail(FA_NOMEM, "score: %zu bytes of host memory", sizeof *t);
    *t = (fa_score_tables){ .tiles = tiles, .data = *data, .none = !data->read, .b = b, .heads = heads };
    bool good = t->none || (make_side(t, 0) && make_side(t, 1));
    for (int k = 0; good && !t->none && k < tiles->pairs; k++)
        good = make_pair(t, k);
    if (good)
        return FA_OK;
    fa_score_tables_free(t);
    *out = NULL;
    return fa_fail(FA_NOMEM, "score: no host memory for the tables of a mask");
}

void fa_score_tables_free(fa_score_tables *t)
{
    for (int k = 0; t && k < FA_SCORE_VALUES_MAX; k++) {
        free(t->side[0][k]);
        free(t->side[1][k]);
    }
    for (int k = 0; t && k < FA_SCORE_PAIRS_MAX; k++)
        free(t->pair[k]);
    free(t);
}

/* ---- intervals of a tile ---- */

typedef struct spans {
    const fa_score_tables *t;
    const fa_score_tile *tile;
    fa_score_box box;
    fa_score_range of[FA_SCORE_ROOM];
    uint64_t set[FA_SCORE_ROOM]; /* of what comes from a table that has one */
} spans;

static fa_score_range point(double v)
{
    return (fa_score_range){ v, v, false };
}

static fa_score_range by_head(const spans *s, int node)
{
    double value[FA_SCORE_ROOM];
    const fa_score_ir *ir = s->t->tiles->ir;
    fa_score_range r = { INFINITY, -INFINITY, false };
    for (int64_t h = s->tile->h0; h <= s->tile->h1; h++) {
        fa_score_pair pair = { s->t->b, h, 0, 0, 0 };
        double v = fa_score_eval(ir, node, &s->t->data, &pair, value);
        r = fa_score_range_hull(r, outside(v) ? (fa_score_range){ -INFINITY, INFINITY, true } : point(v));
    }
    return ir->node[node].type == FA_SCORE_F32 ? fa_score_range_rounded(r) : r;
}

static fa_score_range by_side(spans *s, int node, int side)
{
    const fa_score_tiles *t = s->t->tiles;
    const fa_score_side_tables *of = side_of(t, side);
    const fa_score_tile *tile = s->tile;
    const entry *all = s->t->side[side][t->table[node]];
    int64_t first = (side ? tile->j0 : tile->i0) / FA_SCORE_TABLE_STEP, last = (side ? tile->j1 : tile->i1) / FA_SCORE_TABLE_STEP;
    fa_score_range r = { INFINITY, -INFINITY, false };
    s->set[node] = 0;
    for (int64_t h = of->by_h ? tile->h0 : 0; h <= (of->by_h ? tile->h1 : 0); h++)
        for (int64_t n = first; n <= last; n++) {
            const entry *e = &all[h * s->t->steps[side] + n];
            r = fa_score_range_hull(r, e->of);
            s->set[node] |= e->set;
        }
    return t->ir->node[node].type == FA_SCORE_F32 ? fa_score_range_rounded(r) : r;
}

static fa_score_range one_by_one(const spans *s, const fa_score_node *a, int64_t lo[], int64_t hi[])
{
    const fa_score_operand *o = &s->t->tiles->ir->operand[a->operand];
    fa_score_range r = { INFINITY, -INFINITY, false };
    int64_t at[FA_SCORE_RANK_MAX];
    memcpy(at, lo, sizeof at);
    for (;;) {
        double v = s->t->data.read(s->t->data.user, a->operand, at);
        if (o->type == FA_SCORE_I32)
            v = fmin(fmax(v, -FA_SCORE_INT_MAX), FA_SCORE_INT_MAX);
        r = fa_score_range_hull(r, outside(v) ? (fa_score_range){ -INFINITY, INFINITY, true } : point(v));
        int k = a->n - 1;
        while (k >= 0 && ++at[k] > hi[k]) {
            at[k] = lo[k];
            k--;
        }
        if (k < 0)
            return r;
    }
}

static fa_score_range by_blocks(const spans *s, const fa_score_node *a, int table, const int64_t lo[], const int64_t hi[])
{
    int64_t leads, rows, columns, lead = 0;
    const int64_t *extent = s->t->data.extent[a->operand];
    int64_t row0 = a->n > 1 ? lo[a->n - 2] / FA_SCORE_TABLE_STEP : 0, row1 = a->n > 1 ? hi[a->n - 2] / FA_SCORE_TABLE_STEP : 0;
    int64_t column0 = lo[a->n - 1] / FA_SCORE_TABLE_STEP, column1 = hi[a->n - 1] / FA_SCORE_TABLE_STEP;
    fa_score_range any = fa_score_range_of_element(&s->t->tiles->ir->operand[a->operand]);
    int all = 1, bits = 0;
    blocks_of(s->t, a->operand, &leads, &rows, &columns);
    for (int k = 0; k < a->n - 2; k++) {
        if (lo[k] != hi[k])
            return any;
        lead = lead * extent[k] + lo[k];
    }
    if ((row1 - row0 + 1) * (column1 - column0 + 1) > FA_SCORE_BLOCKS_MAX)
        return any;
    for (int64_t row = row0; row <= row1; row++)
        for (int64_t column = column0; column <= column1; column++) {
            int32_t *word = &s->t->pair[table][(lead * rows + row) * columns + column];
            *word = *word == -1 ? block_of(s->t, a->operand, lo, row, column) : *word;
            all &= *word;
            bits |= *word >> 8;
        }
    return (fa_score_range){ all & 1, bits, false };
}

static fa_score_range by_pairs(const spans *s, int node)
{
    const fa_score_tiles *t = s->t->tiles;
    const fa_score_node *a = &t->ir->node[node];
    int64_t lo[FA_SCORE_RANK_MAX] = { 0 }, hi[FA_SCORE_RANK_MAX] = { 0 };
    double n = 1;
    for (int k = 0; k < a->n; k++) {
        double last = (double)(s->t->data.extent[a->operand][k] - 1);
        lo[k] = (int64_t)fmin(fmax(s->of[a->arg[k]].lo, 0), last);
        hi[k] = (int64_t)fmin(fmax(s->of[a->arg[k]].hi, 0), last);
        n *= (double)(hi[k] - lo[k] + 1);
    }
    fa_score_range any = fa_score_range_of_element(&t->ir->operand[a->operand]);
    fa_score_range r = n <= FA_SCORE_ONE_BY_ONE ? one_by_one(s, a, lo, hi)
                       : t->table[node] >= 0    ? by_blocks(s, a, t->table[node], lo, hi)
                                                : any;
    return r;
}

/* The two have no value % 64 in common. */
static bool apart(const spans *s, const fa_score_node *a)
{
    const fa_score_tiles *t = s->t->tiles;
    if (a->op != FA_SCORE_EQ)
        return false;
    int x = a->arg[0], y = a->arg[1];
    bool sides = (t->reading[x] == FA_SCORE_BY_QUERIES && t->reading[y] == FA_SCORE_BY_KEYS) ||
                 (t->reading[y] == FA_SCORE_BY_QUERIES && t->reading[x] == FA_SCORE_BY_KEYS);
    return sides && t->ir->node[x].type == FA_SCORE_I32 && !(s->set[x] & s->set[y]);
}

static void span_of(spans *s, int node)
{
    const fa_score_tiles *t = s->t->tiles;
    const fa_score_node *a = &t->ir->node[node];
    fa_score_range r;
    if (s->t->none && t->reading[node] != FA_SCORE_BY_PARTS)
        r = a->op == FA_SCORE_LOOKUP ? fa_score_range_of_element(&t->ir->operand[a->operand]) : a->range;
    else if (t->reading[node] == FA_SCORE_BY_HEAD)
        r = by_head(s, node);
    else if (t->reading[node] == FA_SCORE_BY_QUERIES || t->reading[node] == FA_SCORE_BY_KEYS)
        r = by_side(s, node, t->reading[node] == FA_SCORE_BY_KEYS);
    else if (t->reading[node] == FA_SCORE_BY_PAIRS)
        r = by_pairs(s, node);
    else
        r = fa_score_range_of(t->ir, node, s->of, &s->box);
    if (!s->t->none && t->reading[node] == FA_SCORE_BY_PARTS && apart(s, a))
        r = (fa_score_range){ 0, 0, false };
    s->of[node] = r;
}

/* Marks what intervals of a node come of. */
static void mark(const fa_score_tiles *t, int node, bool needed[FA_SCORE_ROOM])
{
    const fa_score_node *a = &t->ir->node[node];
    if (needed[node])
        return;
    needed[node] = true;
    for (int k = 0; k < a->n && (t->reading[node] == FA_SCORE_BY_PARTS || t->reading[node] == FA_SCORE_BY_PAIRS); k++)
        mark(t, a->arg[k], needed);
}

static fa_score_range ends(int64_t lo, int64_t hi)
{
    return (fa_score_range){ (double)lo, (double)hi, false };
}

static void spans_begin(spans *s, const fa_score_tables *t, const fa_score_tile *tile)
{
    const fa_score_data *d = &t->data;
    s->t = t;
    s->tile = tile;
    s->box = (fa_score_box){ .b = point((double)t->b),
                             .h = ends(tile->h0, tile->h1),
                             .i = ends(tile->i0, tile->i1),
                             .j = ends(tile->j0, tile->j1),
                             .off = point((double)d->off),
                             .sq = point((double)d->sq),
                             .sk = point((double)d->sk),
                             .group = point((double)d->group),
                             .given = t->tiles->reading };
    for (int k = 0; k < t->tiles->ir->operands; k++)
        s->box.scalar[k] = point(d->scalar[k]);
}

static void spans_fill(spans *s, const bool needed[FA_SCORE_ROOM])
{
    for (int i = 0; i < s->t->tiles->ir->n; i++)
        if (needed[i])
            span_of(s, i);
}

fa_score_class fa_score_class_of(const fa_score_tables *tables, const fa_score_tile *tile)
{
    static const fa_score_class classes[] = {
        [FA_SCORE_NEVER] = FA_SCORE_EMPTY, [FA_SCORE_ALWAYS] = FA_SCORE_FULL, [FA_SCORE_DEPENDS] = FA_SCORE_PARTIAL
    };
    bool needed[FA_SCORE_ROOM] = { false };
    spans s;
    spans_begin(&s, tables, tile);
    mark(tables->tiles, tables->tiles->mask, needed);
    spans_fill(&s, needed);
    return classes[fa_score_range_verdict(&s.of[tables->tiles->mask])];
}

/* ---- bounds ---- */

#define FAR 4294967296.0 /* beyond whatever an integer of a program is */

static double near(double v)
{
    return fmin(fmax(v, -FAR), FAR);
}

static fa_score_range minus_sum(const spans *s, fa_score_range t, const fa_score_sum *rest)
{
    double lo = (double)rest->more, hi = lo;
    for (int k = 0; k < rest->n; k++) {
        fa_score_range x = rest->times[k] ? s->of[rest->leaf[k]] : point(0);
        double times = (double)rest->times[k];
        lo += times * (times > 0 ? x.lo : x.hi);
        hi += times * (times > 0 ? x.hi : x.lo);
    }
    return (fa_score_range){ near(t.lo - hi), near(t.hi - lo), false };
}

static fa_score_range times_divisor(fa_score_range t, fa_score_range by, bool at_least)
{
    double more = at_least ? 0 : 1, x[2] = { t.lo + more, t.hi + more };
    double lo = fmin(x[0] * by.lo, x[0] * by.hi), hi = fmax(x[1] * by.lo, x[1] * by.hi);
    return (fa_score_range){ near(lo - more), near(hi - more), false };
}

static int64_t clamp(double v, int64_t least, int64_t most)
{
    return v < (double)least ? least : v > (double)most ? most : (int64_t)v;
}

/* times * x <= T: seen by some where T is its largest, by all where it is its least. */
static fa_score_ends half_of(const spans *s, const fa_score_bound *a, int64_t last)
{
    fa_score_range t = point(0);
    for (int k = 0; k < a->steps; k++) {
        t = minus_sum(s, t, &a->step[k].rest);
        if (a->step[k].by >= 0)
            t = times_divisor(t, s->of[a->step[k].by], a->step[k].at_least);
    }
    if (a->times > 0)
        return (fa_score_ends){ 0, clamp(floor(t.hi / a->times), -1, last), 0, clamp(floor(t.lo / a->times), -1, last) };
    if (a->times < 0)
        return (fa_score_ends){ clamp(ceil(t.hi / a->times), 0, last + 1), last, clamp(ceil(t.lo / a->times), 0, last + 1), last };
    return (fa_score_ends){ 0, t.hi >= 0 ? last : -1, 0, t.lo >= 0 ? last : -1 };
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static fa_score_ends either(fa_score_ends x, fa_score_ends y)
{
    fa_score_ends r;
    bool touch = x.full_lo <= y.full_hi + 1 && y.full_lo <= x.full_hi + 1;
    bool x_none = x.full_lo > x.full_hi, y_none = y.full_lo > y.full_hi;
    r.lo = x.lo > x.hi ? y.lo : y.lo > y.hi ? x.lo : least(x.lo, y.lo);
    r.hi = x.lo > x.hi ? y.hi : y.lo > y.hi ? x.hi : most(x.hi, y.hi);
    if (touch && !x_none && !y_none) {
        r.full_lo = least(x.full_lo, y.full_lo);
        r.full_hi = most(x.full_hi, y.full_hi);
    } else {
        bool first = y_none || (!x_none && x.full_hi - x.full_lo >= y.full_hi - y.full_lo);
        r.full_lo = first ? x.full_lo : y.full_lo;
        r.full_hi = first ? x.full_hi : y.full_hi;
    }
    return r;
}

static fa_score_ends bound_of(const spans *s, const fa_score_bounds *b, int node, int64_t last)
{
    const fa_score_bound *a = &b->node[node];
    fa_score_ends x, y;
    bool some, all;
    switch (a->kind) {
    case FA_SCORE_BOUND_UNKNOWN:
        return (fa_score_ends){ 0, last, 1, 0 };
    case FA_SCORE_BOUND_FREE:
        some = a->contrary ? s->of[a->node].lo < 1 : s->of[a->node].hi > 0;
        all = a->contrary ? s->of[a->node].hi < 1 : s->of[a->node].lo > 0;
        return (fa_score_ends){ 0, some ? last : -1, 0, all ? last : -1 };
    case FA_SCORE_BOUND_HALF:
        return half_of(s, a, last);
    default:
        x = bound_of(s, b, a->x, last);
        y = bound_of(s, b, a->y, last);
        if (a->kind == FA_SCORE_BOUND_OR)
            return either(x, y);
        return (fa_score_ends){ most(x.lo, y.lo), least(x.hi, y.hi), most(x.full_lo, y.full_lo), least(x.full_hi, y.full_hi) };
    }
}

fa_score_ends fa_score_ends_of(const fa_score_tables *tables, const fa_score_bounds *b, const fa_score_tile *tile)
{
    bool needed[FA_SCORE_ROOM] = { false };
    spans s;
    spans_begin(&s, tables, tile);
    for (int n = 0; n < b->n; n++) {
        const fa_score_bound *a = &b->node[n];
        if (a->kind == FA_SCORE_BOUND_FREE)
            mark(b->tiles, a->node, needed);
        for (int k = 0; a->kind == FA_SCORE_BOUND_HALF && k < a->steps; k++) {
            for (int x = 0; x < a->step[k].rest.n; x++)
                if (a->step[k].rest.times[x])
                    mark(b->tiles, a->step[k].rest.leaf[x], needed);
            if (a->step[k].by >= 0)
                mark(b->tiles, a->step[k].by, needed);
        }
    }
    spans_fill(&s, needed);
    return bound_of(&s, b, b->root, (b->of == FA_SCORE_J ? tables->data.sk : tables->data.sq) - 1);
}

/* ---- counts ---- */

static bool is_known_by(const fa_score_tables *t, int node, unsigned what)
{
    const fa_score_node *a = &t->tiles->ir->node[node];
    if (!(a->depends & what) || (t->none && t->tiles->reading[node] != FA_SCORE_BY_PARTS))
        return false;
    bool known = !a->n;
    for (int k = 0; k < a->n; k++)
        known = known || is_known_by(t, a->arg[k], what);
    return known;
}

bool fa_score_tables_by(const fa_score_tables *t, unsigned what)
{
    return is_known_by(t, t->tiles->mask, what);
}

/* The tiles of a row: *some and *full as fa_pairs_key_blocks() has them, of both masks as far as bounds tell. */
static void blocks_between(const fa_score_ends *e, const fa_pairs *pairs, fa_range queries, int64_t width, fa_range *some, fa_range *full)
{
    fa_range all = fa_pairs_keys(pairs, queries), first = fa_pairs_keys(pairs, (fa_range){ queries.first, queries.first });
    fa_range last = fa_pairs_keys(pairs, (fa_range){ queries.last, queries.last });
    int64_t lo = most(all.first, e->lo), hi = least(all.last, e->hi);
    int64_t full_lo = most(last.first, e->full_lo), full_hi = least(first.last, e->full_hi);
    *some = lo <= hi ? (fa_range){ lo / width, hi / width } : (fa_range){ 0, -1 };
    *full = full_lo <= full_hi ? (fa_range){ (full_lo + width - 1) / width, (full_hi + 1) / width - 1 } : (fa_range){ 0, -1 };
}

static int64_t length_of(fa_range r)
{
    return r.last < r.first ? 0 : r.last - r.first + 1;
}

fa_score_tile_counts fa_score_count_tiles(const fa_score_tables *t, const fa_score_bounds *bounds, const fa_score_tiling *how, int64_t h,
                                          int64_t at_most)
{
    const fa_score_data *d = &t->data;
    const fa_pairs pairs = { d->sq, d->sk, how->band };
    int64_t rows = d->sq * how->heads, columns = (d->sk + how->columns - 1) / how->columns;
    fa_score_tile_counts n = { 0, 0, 0, 0 };
    for (int64_t r = 0; r < rows; r += how->rows) {
        fa_range queries = { r / how->heads, (least(r + how->rows, rows) - 1) / how->heads }, some, full, both;
        fa_score_tile tile = { t->b, h, h + how->heads - 1, queries.first, queries.last, 0, 0 };
        fa_score_ends e = fa_score_ends_of(t, bounds, &tile), launch = { 0, d->sk - 1, 0, d->sk - 1 };
        int64_t empty = 0, whole = 0;
        blocks_between(&e, &pairs, queries, how->columns, &some, &both);
        blocks_between(&launch, &pairs, queries, how->columns, &(fa_range){ 0 }, &full);
        if (bounds->exact)
            whole = length_of(both);
        for (int64_t j = some.first; j <= some.last && !bounds->exact && n.asked < at_most; j++) {
            tile.j0 = j * how->columns;
            tile.j1 = least(tile.j0 + how->columns, d->sk) - 1;
            fa_score_class is = fa_score_class_of(t, &tile);
            empty += is == FA_SCORE_EMPTY;
            whole += is == FA_SCORE_FULL && j >= full.first && j <= full.last;
            n.asked++;
        }
        n.empty += columns - length_of(some) + empty;
        n.full += whole;
        n.partial += length_of(some) - empty - whole;
    }
    return n;
}
