/* tiles: the largest parts of a mask that look something up by one side alone have tables; pairs of the two sides read arrays. */
#include "tiles.h"
#include "reach.h"
#include <stdio.h>
#include <string.h>

static bool is_lookup_by_query(const fa_score_node *a)
{
    return fa_score_is_lookup(a) && a->depends & FA_SCORE_OF_I;
}

static bool is_length(const fa_score_node *a)
{
    return a->op == FA_SCORE_OFF || a->op == FA_SCORE_SQ || a->op == FA_SCORE_SK;
}

/* A node's place among those of its side; -1: there is no more room. */
static int table_of(fa_score_side_tables *side, const fa_score_ir *ir, int node)
{
    int depends = ir->node[node].depends;
    if (side->n == FA_SCORE_VALUES_MAX)
        return -1;
    side->table[side->n].node = (int16_t)node;
    side->by_b = side->by_b || depends & FA_SCORE_OF_B || fa_score_reads(ir, node, is_length); /* lengths are of the sequence */
    side->by_h = side->by_h || depends & FA_SCORE_OF_H;
    return side->n++;
}

/* ---- arrays that are read by pairs ---- */

static const char *const extent_words[FA_SCORE_LENGTHS] = { "b", "hq", "hkv", "sq", "sk", "total_q", "total_k" };

/* The extent as a factor of a product, divided by `by` and rounded up; false: it is none. */
static bool add_extent(fa_text *out, const fa_score_extent *e, int by)
{
    int of = -1;
    if (e->any)
        return false;
    for (int k = 0; k < FA_SCORE_LENGTHS; k++)
        if (e->times[k]) {
            if (of >= 0 || e->times[k] != 1)
                return false;
            of = k;
        }
    if (of >= 0 && e->more)
        return false;
    if (of < 0) {
        fa_text_fmt(out, "%s%d", out->n ? " " : "", (e->more + by - 1) / by);
        return true;
    }
    int64_t divisor = (int64_t)by * (e->divisor[of] > 1 ? e->divisor[of] : 1);
    fa_text_fmt(out, "%s%s", out->n ? " " : "", extent_words[of]);
    if (divisor > 1)
        fa_text_fmt(out, "/%d", (int)divisor);
    return divisor <= INT32_MAX;
}

/* The number of an array's table; -1: it has none. */
static int pair_table_of(fa_score_tiles *t, int operand)
{
    const fa_score_operand *o = &t->ir->operand[operand];
    fa_text words = { 0 };
    bool good = o->element == FA_SCORE_ELEMENT_U8 || o->element == FA_SCORE_ELEMENT_BITS;
    for (int k = 0; k < t->pairs; k++)
        if (t->pair[k].operand == operand)
            return k;
    for (int k = 0; k < o->rank; k++)
        good = good && add_extent(&words, &o->extent[k], k >= o->rank - 2 ? FA_SCORE_TABLE_STEP : 1);
    good = good && !words.oom && words.n < sizeof t->pair[0].extents && t->pairs < FA_SCORE_PAIRS_MAX;
    if (good) {
        t->pair[t->pairs].operand = (int16_t)operand;
        memcpy(t->pair[t->pairs].extents, fa_text_cstr(&words), words.n + 1);
    }
    fa_text_free(&words);
    return good ? t->pairs++ : -1;
}

/* ---- the plan ---- */

static void plan(fa_score_tiles *t, int node, bool seen[FA_SCORE_ROOM])
{
    const fa_score_ir *ir = t->ir;
    const fa_score_node *a = &ir->node[node];
    int table = -1;
    if (seen[node])
        return;
    seen[node] = true;
    if (!fa_score_reads(ir, node, fa_score_is_lookup))
        return;
    if (!(a->depends & (FA_SCORE_OF_I | FA_SCORE_OF_J))) {
        t->reading[node] = FA_SCORE_BY_HEAD;
        return;
    }
    if (!(a->depends & FA_SCORE_OF_J) && fa_score_reads(ir, node, is_lookup_by_query) && (table = table_of(&t->queries, ir, node)) >= 0)
        t->reading[node] = FA_SCORE_BY_QUERIES;
    else if (!(a->depends & FA_SCORE_OF_I) && fa_score_reads(ir, node, fa_score_is_lookup_by_key) &&
             (table = table_of(&t->keys, ir, node)) >= 0)
        t->reading[node] = FA_SCORE_BY_KEYS;
    else if (a->op == FA_SCORE_LOOKUP) {
        t->reading[node] = FA_SCORE_BY_PAIRS;
        table = pair_table_of(t, a->operand);
    }
    t->table[node] = (int8_t)table;
    if (t->reading[node] == FA_SCORE_BY_PARTS || t->reading[node] == FA_SCORE_BY_PAIRS)
        for (int k = 0; k < a->n; k++)
            plan(t, a->arg[k], seen);
}

/* Values that are compared with those of the other side have sets. */
static void find_sets(fa_score_tiles *t, const bool seen[FA_SCORE_ROOM])
{
    for (int i = 0; i < t->ir->n; i++) {
        const fa_score_node *a = &t->ir->node[i];
        if (!seen[i] || a->op != FA_SCORE_EQ || t->reading[i] != FA_SCORE_BY_PARTS || t->ir->node[a->arg[0]].type != FA_SCORE_I32)
            continue;
        for (int k = 0; k < 2; k++)
            if (t->reading[a->arg[k]] == FA_SCORE_BY_QUERIES && t->reading[a->arg[1 - k]] == FA_SCORE_BY_KEYS) {
                t->queries.table[t->table[a->arg[k]]].set = true;
                t->keys.table[t->table[a->arg[1 - k]]].set = true;
            }
    }
}

static void place(fa_score_side_tables *side)
{
    for (int k = 0; k < side->n; k++) {
        side->table[k].at = (int8_t)side->words;
        side->words += side->table[k].set ? 4 : 2;
    }
}

void fa_score_tiles_of(fa_score_tiles *out, const fa_score_ir *ir)
{
    bool seen[FA_SCORE_ROOM] = { false };
    memset(out, 0, sizeof *out);
    memset(out->table, 0xff, sizeof out->table);
    out->ir = ir;
    out->mask = ir->root[FA_SCORE_ROOT_MASK];
    if (out->mask < 0)
        return;
    plan(out, out->mask, seen);
    find_sets(out, seen);
    place(&out->queries);
    place(&out->keys);
}

bool fa_score_tiles_filled(const fa_score_tiles *t)
{
    return t->queries.n || t->keys.n || t->pairs;
}

static void side_buffer(fa_text *out, const fa_score_side_tables *side, const char *name, const char *length)
{
    if (side->n)
        fa_text_fmt(out, "%s%s int32 %s%s%s/%d %d", out->n ? ", " : "", name, side->by_b ? "b " : "", side->by_h ? "hq " : "", length,
                    FA_SCORE_TABLE_STEP, side->words);
}

void fa_score_tiles_buffers(fa_text *out, const fa_score_tiles *t)
{
    side_buffer(out, &t->queries, "mask_queries", "sq");
    side_buffer(out, &t->keys, "mask_keys", "sk");
    for (int k = 0; k < t->pairs; k++)
        fa_text_fmt(out, "%smask_pairs%d int32 %s", out->n ? ", " : "", k, t->pair[k].extents);
}

unsigned fa_score_tiles_marked_by(const fa_score_tiles *t, bool lengths)
{
    return (t->ir->node[t->mask].depends | (lengths ? FA_SCORE_OF_B : 0)) & (FA_SCORE_OF_B | FA_SCORE_OF_H);
}

void fa_score_tiles_marks(fa_text *out, unsigned by)
{
    const char *b = by & FA_SCORE_OF_B ? "b " : "", *h = by & FA_SCORE_OF_H ? "hq " : "";
    int step = FA_SCORE_TABLE_STEP;
    fa_text_fmt(out, "marks_keys int32 %s%ssk/%d sq/%d 2, marks_queries int32 %s%ssq/%d sk/%d 2", b, h, step, 32 * step, b, h, step,
                32 * step);
}
