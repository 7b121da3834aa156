/* Tiles of masks on the host: no tile that is called empty has a pair that is seen, no full one a pair that is hidden, and nothing is seen
 * outside of bounds; of masks that people use the tiles to visit are those that have a pair, and no other. */
#include "gen/score/tile_class.h"
#include "score_masks.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

/* ---- whatever a mask may be ---- */

static bool seen(const fa_score_ir *ir, const fa_score_data *d, int64_t b, int64_t h, int64_t i, int64_t j)
{
    static double value[FA_SCORE_ROOM];
    fa_score_pair pair = { b, h, i, j, 0 };
    return fa_score_eval(ir, ir->root[FA_SCORE_ROOT_MASK], d, &pair, value) != 0;
}

static int64_t cut(int64_t first, int64_t n, int64_t all)
{
    return (first + n < all ? first + n : all) - 1;
}

static fa_score_tile draw_tile(const score_world *w, uint64_t *state)
{
    static const int64_t sizes[] = { 1, 8, 16, 32, 64, 128 };
    fa_score_tile t = { .b = score_below(state, w->b), .h0 = score_below(state, w->hq) };
    t.h1 = score_below(state, 3) ? t.h0 : w->hq - 1;
    t.i0 = score_below(state, w->data.sq);
    t.j0 = score_below(state, w->data.sk);
    t.i1 = cut(t.i0, sizes[score_below(state, 6)], w->data.sq);
    t.j1 = cut(t.j0, sizes[score_below(state, 6)], w->data.sk);
    return t;
}

typedef struct tally {
    int programs, tiles, decided, bounded, exact;
} tally;

/* Not a pair between the ends is looked at in vain: each is looked at. */
static void check_ends(const fa_score_ir *ir, const score_world *w, const fa_score_tables *tables, const fa_score_bounds *b,
                       const fa_score_tile *t, const char *text, tally *all)
{
    bool keys = b->of == FA_SCORE_J, plain = !fa_score_tiles_filled(b->tiles);
    fa_score_tile one = *t;
    if (keys)
        one.i1 = one.i0 + (t->i1 - t->i0) % 3, one.h1 = one.h0;
    else
        one.j1 = one.j0 + (t->j1 - t->j0) % 3, one.h1 = one.h0;
    fa_score_ends e = fa_score_ends_of(tables, b, &one);
    int64_t x0 = keys ? one.i0 : one.j0, x1 = keys ? one.i1 : one.j1, n = keys ? w->data.sk : w->data.sq;
    all->bounded += e.lo > 0 || e.hi < n - 1;
    for (int64_t x = x0; x <= x1; x++)
        for (int64_t y = 0; y < n; y++) {
            bool is = seen(ir, &w->data, one.b, one.h0, keys ? x : y, keys ? y : x);
            cr_assert(!is || (y >= e.lo && y <= e.hi), "%s\nby %d: %d sees %d outside %d to %d", text, b->of, (int)x, (int)y, (int)e.lo,
                      (int)e.hi);
            cr_assert(is || y < e.full_lo || y > e.full_hi, "%s\nby %d: %d does not see %d inside %d to %d", text, b->of, (int)x, (int)y,
                      (int)e.full_lo, (int)e.full_hi);
            if (b->exact && plain && x0 == x1) {
                cr_assert(is || y < e.lo || y > e.hi, "%s\nby %d: %d does not see %d of %d to %d", text, b->of, (int)x, (int)y, (int)e.lo,
                          (int)e.hi);
                all->exact++;
            }
        }
}

static void check_program(const fa_program *p, const char *text, uint64_t seed, int tiles, tally *all)
{
    static fa_score_tiles plan;
    static fa_score_bounds bounds[2];
    const fa_score_ir *ir = &p->ir;
    score_world w;
    uint64_t state = seed;
    score_world_draw(&w, ir, &state);
    w.data.read = score_mask_element;
    w.data.user = &w;
    fa_score_tiles_of(&plan, ir);
    fa_score_bounds_of(&bounds[0], &plan, FA_SCORE_J);
    fa_score_bounds_of(&bounds[1], &plan, FA_SCORE_I);
    fa_score_tables *tables[3] = { NULL };
    for (int n = 0; n < tiles; n++) {
        fa_score_tile t = draw_tile(&w, &state);
        if (!tables[t.b])
            OK(fa_score_tables_make(&tables[t.b], &plan, &w.data, t.b, w.hq));
        fa_score_class is = fa_score_class_of(tables[t.b], &t);
        bool some = false, every = true;
        int64_t heads = t.h1 - t.h0 + 1, rows = t.i1 - t.i0 + 1, columns = t.j1 - t.j0 + 1, pairs = heads * rows * columns;
        for (int64_t k = 0; k < (pairs < 600 ? pairs : 600) && is != FA_SCORE_PARTIAL; k++) {
            int64_t at = pairs <= 600 ? k : score_below(&state, pairs);
            bool one = seen(ir, &w.data, t.b, t.h0 + at / rows / columns, t.i0 + at / columns % rows, t.j0 + at % columns);
            some = some || one;
            every = every && one;
        }
        cr_assert(is == FA_SCORE_PARTIAL || (is == FA_SCORE_EMPTY && !some) || (is == FA_SCORE_FULL && every),
                  "%s\nclass %d of heads %d to %d, queries %d to %d, keys %d to %d of sequence %d, %d and %d long, off %d", text, is,
                  (int)t.h0, (int)t.h1, (int)t.i0, (int)t.i1, (int)t.j0, (int)t.j1, (int)t.b, (int)w.data.sq, (int)w.data.sk,
                  (int)w.data.off);
        all->tiles++;
        all->decided += is != FA_SCORE_PARTIAL;
        if (n < 2) {
            check_ends(ir, &w, tables[t.b], &bounds[0], &t, text, all);
            check_ends(ir, &w, tables[t.b], &bounds[1], &t, text, all);
        }
    }
    for (int b = 0; b < 3; b++)
        fa_score_tables_free(tables[b]);
    all->programs++;
}

Test(score_tiles, no_class_and_no_bound_is_wrong, .timeout = 300)
{
    static mask_text text;
    tally all = { 0 };
    for (uint64_t seed = 1; all.programs < (full() ? 30000 : 3000); seed++) {
        fa_program *p = score_mask_draw(&text, seed);
        if (!p)
            continue;
        if (p->ir.root[FA_SCORE_ROOT_MASK] >= 0)
            check_program(p, text.s, seed, 8, &all);
        fa_program_free(p);
    }
    cr_assert_gt(all.decided * 10, all.tiles * 2, "%d of %d tiles decided", all.decided, all.tiles);
    cr_assert_gt(all.bounded, all.programs, "%d of %d bounded", all.bounded, all.programs * 4);
    cr_assert_gt(all.exact, 1000);
}

/* ---- masks that people use ---- */

enum { SK = 4096 };

static int64_t document_of(int64_t x, int64_t n)
{
    static const int64_t firsts[] = { 0, 37, 512, 513, 1700, 1990, 2304, 3000, 3071, 3500, 4000 }; /* of 4096 */
    int64_t k = 0;
    while (k < 10 && x * SK / n >= firsts[k + 1])
        k++;
    return k;
}

typedef struct listed {
    const char *name, *text;
    int64_t sq, sk, tile, off;
    double visits; /* of it 1: those that have a pair; a number: so many */
    double full;   /* -1: whatever */
    double (*read)(const fa_score_operand *o, int64_t n, const int64_t *index);
} listed;

static double documents(const fa_score_operand *o, int64_t n, const int64_t *index)
{
    int64_t x = index[o->rank - 1];
    if (!strcmp(o->name, "start")) {
        int64_t k = 0;
        while (k < n && document_of(k, n) < x)
            k++;
        return (double)k;
    }
    return (double)document_of(x, n);
}

/* As documents, but numbers in no order. */
static double shuffled(const fa_score_operand *o, int64_t n, const int64_t *index)
{
    static const double ids[] = { 907, 13, 450, 1024 + 5, 78, 3, 350, 22, 8, 641, 100 };
    return ids[(int64_t)documents(o, n, index)];
}

static double lengths(const fa_score_operand *o, int64_t n, const int64_t *index)
{
    (void)n;
    (void)index;
    return !strcmp(o->name, "lo") ? 300 : !strcmp(o->name, "hi") ? 2900 : 1333;
}

static double triangle(const fa_score_operand *o, int64_t n, const int64_t *index)
{
    (void)n;
    int64_t i = index[o->rank - 2], j = index[o->rank - 1];
    return !strcmp(o->name, "blk") ? j <= i && (i * 7 + j * 3) % 5 == 0 : i >= j && (i - j < 700 || j < 200);
}

/* The one element in many that a random block has. */
static double sparse(const fa_score_operand *o, int64_t n, const int64_t *index)
{
    (void)n;
    int64_t i = index[o->rank - 2], j = index[o->rank - 1];
    return (i / 64 * 13 + j / 64 * 29) % 7 == 0 && i % 64 == 31 && j % 64 == 5;
}

static double ancestors(const fa_score_operand *o, int64_t n, const int64_t *index)
{
    (void)n;
    int64_t i = index[o->rank - 2], j = index[o->rank - 1];
    return j <= i && (j == 0 || (i - j) % 3 == 0);
}

static const listed masks[] = {
    { "causal", "function mask(b, h, i, j) return j <= i + off end", 1000, SK, 128, SK - 1000, 1, -1, NULL },
    { "window", "w = scalar(300, 'int') function mask(b, h, i, j) return j <= i and i - j < w end", SK, SK, 128, 0, 1, -1, NULL },
    { "first tokens", "function mask(b, h, i, j) return j <= i and (i - j < 500 or j < 4) end", SK, SK, 64, 0, 1, -1, NULL },
    { "chunked", "c = scalar(700, 'int', 1, 100000) function mask(b, h, i, j) return j <= i and i // c == j // c end", SK, SK, 128, 0, 1,
      -1, NULL },
    { "left padding", "lo = i32 'b' function mask(b, h, i, j) return j <= i and (j - lo[b]) // 512 == (i - lo[b]) // 512 end", SK, SK, 128,
      0, 1, -1, lengths },
    { "prefix", "n = i32 'b' function mask(b, h, i, j) return j <= i or j < n[b] end", SK, SK, 128, 0, 1, -1, lengths },
    { "padding", "lo = i32 'b' hi = i32 'b' function mask(b, h, i, j) return lo[b] <= j and j < hi[b] end", SK, SK, 128, 0, 32 * 21,
      32 * 19, lengths },
    { "documents", "doc = i32 'b sk' function mask(b, h, i, j) return j <= i and doc[b][i] == doc[b][j] end", SK, SK, 128, 0, 1, -1,
      documents },
    { "documents of 64", "doc = i32 'b sk' function mask(b, h, i, j) return doc[b][i] == doc[b][j] end", SK, SK, 64, 0, 1, -1, documents },
    { "ids in no order", "doc = i32 'b sk' function mask(b, h, i, j) return j <= i and doc[b][i] == doc[b][j] end", SK, SK, 128, 0, 1, -1,
      shuffled },
    { "starts", "doc = i32 'sk' start = i32 '?' function mask(b, h, i, j) return start[doc[i]] <= j and j <= i end", SK, SK, 128, 0, 1, -1,
      documents },
    { "eleven documents", "doc = i32 'sk' function mask(b, h, i, j) return j <= i and doc[i] == doc[j] end", 16384, 16384, 128, 0, 1, -1,
      documents },
    { "tree", "anc = bits 'b sq sq' function mask(b, h, i, j) return j < off or anc[b][i][j - off] end", 64, SK, 64, SK - 64, 64, 63,
      ancestors },
    { "longer tree", "anc = bits 'b sq sq' function mask(b, h, i, j) return j < off or anc[b][i][j - off] end", 300, 1200, 64, 900, 1, -1,
      ancestors },
    { "natten",
      "width = 64\n"
      "function near(i, j) return abs(min(max(i, 3), width - 4) - j) <= 3 end\n"
      "function mask(b, h, i, j) return near(i % width, j % width) and near(i // width, j // width) end",
      SK, SK, 128, 0, 156, -1, NULL },
    { "blocks", "blk = u8 'b hq sq/128 sk/128' function mask(b, h, i, j) return blk[b][h][i // 128][j // 128] ~= 0 end", SK, SK, 128, 0, 1,
      -1, triangle },
    { "matrix", "m = u8 'b hq sq sk' function mask(b, h, i, j) return m[b][h][i][j] ~= 0 end", 2000, 2000, 128, 0, 1, -1, triangle },
    { "matrix in bits", "m = bits 'b sq sk' function mask(b, h, i, j) return m[b][i][j] end", 2000, 1990, 64, 0, 1, -1, triangle },
    { "single elements", "m = bits 'sq sk' function mask(b, h, i, j) return m[i][j] end", 1000, 1000, 64, 0, 1, -1, sparse },
    { "dilated", "function mask(b, h, i, j) return abs(i - j) <= 300 and (i - j) % 3 == 0 end", SK, SK, 128, 0, 1, -1, NULL },
    { "block diffusion",
      "n = scalar(2048, 'int', 1, 100000)\n"
      "function mask(b, h, i, j)\n"
      "  local x, y = i % n // 32, j % n // 32\n"
      "  if i < n then return j < n and x == y or j >= n and y < x end\n"
      "  return j >= n and y <= x\n"
      "end",
      SK, SK, 128, 0, 1, -1, NULL },
};

static const listed *reads;

static double read_listed(void *user, int operand, const int64_t *index)
{
    const fa_score_ir *ir = user;
    return reads->read(&ir->operand[operand], reads->sk, index);
}

/* Whether the tile has a pair that is seen, or `other`, one that is hidden. The lower left corner first. */
static bool has_pair(const fa_score_ir *ir, const fa_score_data *d, const fa_score_tile *t, bool other)
{
    for (int64_t i = t->i1; i >= t->i0; i--)
        for (int64_t j = t->j0; j <= t->j1; j++)
            if (seen(ir, d, t->b, t->h0, i, j) != other)
                return true;
    return false;
}

static void check_listed(const listed *m)
{
    static fa_score_tiles plan;
    static fa_score_bounds bounds;
    fa_program *p;
    fa_score_tables *tables;
    double visits = 0, fulls = 0, within = 0;
    OK(fa_program_read(&p, m->name, m->text, strlen(m->text)));
    fa_score_data d = { .off = m->off, .sq = m->sq, .sk = m->sk, .group = 1, .user = &p->ir, .read = read_listed };
    const int64_t of[FA_SCORE_LENGTHS] = { 1, 1, 1, m->sq, m->sk, m->sq, m->sk };
    for (int k = 0; k < p->ir.operands; k++) {
        d.scalar[k] = p->ir.operand[k].value;
        for (int r = 0; r < p->ir.operand[k].rank; r++) {
            int64_t n = fa_score_shape_extent(&p->ir.operand[k].extent[r], of);
            d.extent[k][r] = n < 0 ? 11 : n;
        }
    }
    reads = m;
    fa_score_tiles_of(&plan, &p->ir);
    fa_score_bounds_of(&bounds, &plan, FA_SCORE_J);
    OK(fa_score_tables_make(&tables, &plan, &d, 0, 1));
    uint64_t state = 1;
    for (int64_t i = 0; i < m->sq; i += m->tile) {
        fa_score_tile t = { .i0 = i, .i1 = cut(i, m->tile, m->sq) };
        fa_score_ends e = fa_score_ends_of(tables, &bounds, &t);
        within += e.lo <= e.hi ? (double)(e.hi / m->tile - e.lo / m->tile + 1) : 0;
        for (t.j0 = 0; t.j0 < m->sk; t.j0 += m->tile) {
            t.j1 = cut(t.j0, m->tile, m->sk);
            fa_score_class is = fa_score_class_of(tables, &t);
            if (is == FA_SCORE_EMPTY) {
                for (int k = 0; k < 16; k++)
                    cr_assert(
                        !seen(&p->ir, &d, 0, 0, t.i0 + score_below(&state, t.i1 - t.i0 + 1), t.j0 + score_below(&state, t.j1 - t.j0 + 1)));
                continue;
            }
            visits++;
            fulls += is == FA_SCORE_FULL;
            cr_assert(has_pair(&p->ir, &d, &t, false), "%s: no pair of queries %d to %d and keys %d to %d is seen", m->name, (int)t.i0,
                      (int)t.i1, (int)t.j0, (int)t.j1);
            cr_assert(is == FA_SCORE_PARTIAL || fulls > 20 || !has_pair(&p->ir, &d, &t, true), "%s: full at %d, %d", m->name, (int)t.i0,
                      (int)t.j0);
            cr_assert(t.j0 / m->tile >= e.lo / m->tile && t.j0 <= e.hi, "%s: outside %d to %d", m->name, (int)e.lo, (int)e.hi);
        }
    }
    const fa_score_tiling how = { m->tile, 1, m->tile, { -m->sq, m->sk } };
    fa_score_tile_counts n = fa_score_count_tiles(tables, &bounds, &how, 0, INT64_MAX);
    int64_t all = (m->sq + m->tile - 1) / m->tile * ((m->sk + m->tile - 1) / m->tile);
    cr_assert(n.partial + n.full == visits && n.full <= fulls && n.empty + n.partial + n.full == all, "%s: counted %d, %d, %d", m->name,
              (int)n.empty, (int)n.partial, (int)n.full);
    cr_assert(m->visits == 1 || visits == m->visits, "%s: %g tiles visited, not %g", m->name, visits, m->visits);
    cr_assert(m->full < 0 || fulls == m->full, "%s: %g tiles full, not %g", m->name, fulls, m->full);
    cr_assert(!bounds.exact || within == visits, "%s: %g blocks between bounds, %g visited", m->name, within, visits);
    fa_score_tables_free(tables);
    fa_program_free(p);
}

/* Both masks, rows of several heads, an end within a tile, a limit of what is asked. */
Test(score_tiles, counts_are_of_what_kernels_walk)
{
    static const struct {
        const char *text;
        fa_score_tiling how;
        int64_t sq, sk, most, empty, partial, full;
    } rows[] = {
        { "function mask(b, h, i, j) return true end", { 64, 1, 64, { -256, 0 } }, 256, 256, 99, 6, 4, 6 },        /* causal beside it */
        { "function mask(b, h, i, j) return j <= i end", { 64, 1, 64, { -256, 256 } }, 256, 256, 99, 6, 4, 6 },    /* the other way round */
        { "function mask(b, h, i, j) return j <= i end", { 64, 4, 64, { -256, 256 } }, 256, 256, 99, 24, 16, 24 }, /* 16 queries a tile */
        { "function mask(b, h, i, j) return j <= i end", { 128, 1, 96, { -200, 100 } }, 200, 100, 99, 0, 3, 1 }, /* the last key ends a tile
                                                                                                                  */
        { "function mask(b, h, i, j) return (i - j) % 2 == 0 and j // 64 == i // 64 end",
          { 64, 1, 64, { -256, 256 } },
          256,
          256,
          99,
          12,
          4,
          0 },
        { "d = i32 'sk' function mask(b, h, i, j) return d[i] == d[j] and j <= i end",
          { 64, 1, 64, { -256, 256 } },
          256,
          256,
          99,
          6,
          10,
          0 },
        { "function mask(b, h, i, j) return (i - j) % 128 < 64 end", { 64, 1, 64, { -256, 256 } }, 256, 256, 3, 0, 16, 0 },
    };
    static fa_score_tiles plan;
    static fa_score_bounds bounds;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        fa_program *p;
        fa_score_tables *tables;
        const fa_score_data d = { .sq = rows[k].sq, .sk = rows[k].sk, .group = 4 };
        OK(fa_program_read(&p, "counts", rows[k].text, strlen(rows[k].text)));
        fa_score_tiles_of(&plan, &p->ir);
        fa_score_bounds_of(&bounds, &plan, FA_SCORE_J);
        OK(fa_score_tables_make(&tables, &plan, &d, 0, 4));
        fa_score_tile_counts n = fa_score_count_tiles(tables, &bounds, &rows[k].how, 0, rows[k].most);
        cr_expect(n.empty == rows[k].empty && n.partial == rows[k].partial && n.full == rows[k].full && n.asked <= rows[k].most,
                  "%s: %d empty, %d partial, %d full, %d asked", rows[k].text, (int)n.empty, (int)n.partial, (int)n.full, (int)n.asked);
        cr_expect(!fa_score_tables_by(tables, FA_SCORE_OF_B | FA_SCORE_OF_H));
        fa_score_tables_free(tables);
        fa_program_free(p);
    }
}

Test(score_tiles, masks_that_people_use_visit_what_has_a_pair, .timeout = 300)
{
    for (size_t k = 0; k < sizeof masks / sizeof *masks; k++)
        check_listed(&masks[k]);
}
