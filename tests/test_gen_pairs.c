/* Pairs on the host: what is seen, its ranges, counts and blocks, against the definitions of fagen.h pair by pair, at every small shape,
 * mask, offset and length; far numbers; what is kept, against fixed words of Philox. */
#include "gen/pairs.h"
#include "gen/problem.h"
#include "gen/row_tiles.h"
#include <criterion/criterion.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MOST 7 /* rows of a side */

typedef struct mask {
    int kind, diagonal;
    int64_t offset, left, right;
} mask;

/* fagen.h: the diagonal lies at off; causal is left unbounded, right 0. */
static bool defined(const mask *m, int64_t sq, int64_t sk, int64_t i, int64_t j)
{
    int64_t off = m->diagonal == FA_TOP_LEFT ? 0 : m->diagonal == FA_OFFSET ? m->offset : sk - sq, at = j - (i + off);
    if (m->kind == FA_MASK_CAUSAL)
        return at <= 0;
    return m->kind == FA_MASK_NONE || ((m->left < 0 || -m->left <= at) && (m->right < 0 || at <= m->right));
}

/* One sequence, pair by pair. */
typedef struct table {
    mask of;
    int64_t sq, sk;
    bool seen[MOST][MOST];
} table;

static table table_of(const mask *m, int64_t sq, int64_t sk)
{
    table t = { *m, sq, sk, { { false } } };
    for (int64_t i = 0; i < sq; i++)
        for (int64_t j = 0; j < sk; j++)
            t.seen[i][j] = defined(m, sq, sk, i, j);
    return t;
}

/* Whether a query of a range sees the key; with `turned`, whether a key of a range is seen by the query. */
static bool some(const table *t, fa_range of, int64_t at, bool turned)
{
    for (int64_t x = of.first; x <= of.last; x++)
        if (turned ? t->seen[at][x] : t->seen[x][at])
            return true;
    return false;
}

static bool every(const table *t, fa_range of, int64_t at, bool turned)
{
    for (int64_t x = of.first; x <= of.last; x++)
        if (!(turned ? t->seen[at][x] : t->seen[x][at]))
            return false;
    return true;
}

#define SAY "mask %d diagonal %d offset %lld window %lld %lld, %lld queries, %lld keys"
#define SAID(t)                                                                                                                       \
    (t)->of.kind, (t)->of.diagonal, (long long)(t)->of.offset, (long long)(t)->of.left, (long long)(t)->of.right, (long long)(t)->sq, \
        (long long)(t)->sk

static bool within(fa_range r, int64_t x)
{
    return r.first <= x && x <= r.last;
}

static void expect_range(const table *t, const fa_pairs *p, fa_range of, bool turned)
{
    int64_t n = turned ? t->sq : t->sk;
    fa_range r = turned ? fa_pairs_queries(p, of) : fa_pairs_keys(p, of);
    for (int64_t at = 0; at < n; at++)
        cr_assert_eq(within(r, at), some(t, of, at, turned), SAY ": %lld to %lld, %lld", SAID(t), (long long)of.first, (long long)of.last,
                     (long long)at);
    cr_assert(r.last < r.first || (r.first >= 0 && r.last < n), SAY, SAID(t));
}

static void expect_blocks(const table *t, const fa_pairs *p, fa_range of, int64_t width, bool turned)
{
    int64_t n = turned ? t->sq : t->sk, count[3] = { 0, 0, 0 };
    fa_blocks b = turned ? fa_pairs_query_blocks(p, of, width) : fa_pairs_key_blocks(p, of, width);
    for (int64_t k = 0; k * width < n; k++) {
        bool any = false, all = true;
        for (int64_t at = k * width; at < (k + 1) * width; at++) {
            any = any || (at < n && some(t, of, at, turned));
            all = all && at < n && every(t, of, at, turned);
        }
        count[all ? 2 : any ? 1 : 0]++;
        cr_assert_eq(within(b.some, k), any, SAY ": %lld to %lld, width %lld", SAID(t), (long long)of.first, (long long)of.last,
                     (long long)width);
        cr_assert_eq(within(b.full, k), all, SAY ": %lld to %lld, width %lld", SAID(t), (long long)of.first, (long long)of.last,
                     (long long)width);
    }
    cr_assert(b.empty == count[0] && b.partial == count[1] && b.whole == count[2], SAY ": %lld to %lld, width %lld: %lld %lld %lld",
              SAID(t), (long long)of.first, (long long)of.last, (long long)width, (long long)b.empty, (long long)b.partial,
              (long long)b.whole);
}

/* No `rows` consecutive queries see more keys; and some see so many, where such lie between both ends of the keys. */
static void expect_keys_most(const table *t, const fa_pairs *p, int64_t rows)
{
    int64_t said = fa_pairs_keys_most(p, rows);
    cr_assert_leq(said, t->sk);
    for (int64_t from = 0; from < t->sq; from++) {
        fa_range of = { from, from + rows < t->sq ? from + rows - 1 : t->sq - 1 };
        int64_t n = 0;
        for (int64_t j = 0; j < t->sk; j++)
            n += some(t, of, j, false);
        bool whole = from + rows <= t->sq && from + p->band.lo >= 0 && from + rows - 1 + p->band.hi < t->sk;
        cr_assert(whole ? said == n : said >= n, SAY ": %lld rows", SAID(t), (long long)rows);
    }
}

static void expect_pairs(const mask *m, int64_t sq, int64_t sk)
{
    table t = table_of(m, sq, sk);
    fa_pairs p = fa_pairs_of(fa_shift_of(m->kind, m->diagonal, m->offset, m->left, m->right), sq, sk);
    int64_t count = 0;
    cr_assert(p.sq == sq && p.sk == sk && -sq <= p.band.lo && p.band.lo <= p.band.hi && p.band.hi <= sk, SAY, SAID(&t));
    for (int64_t i = 0; i < sq; i++)
        for (int64_t j = 0; j < sk; j++) {
            cr_assert_eq(i + p.band.lo <= j && j <= i + p.band.hi, t.seen[i][j], SAY, SAID(&t));
            count += t.seen[i][j];
        }
    cr_assert_eq(fa_pairs_count(&p), count, SAY, SAID(&t));
    cr_assert_eq(fa_pairs_share(&p), sq && sk ? (double)count / (double)(sq * sk) : 1, SAY, SAID(&t));
    for (int64_t a = 0; a < sq; a++)
        for (int64_t b = a; b < sq; b++) {
            expect_range(&t, &p, (fa_range){ a, b }, false);
            for (int64_t width = 1; width <= 4; width++)
                expect_blocks(&t, &p, (fa_range){ a, b }, width, false);
        }
    for (int64_t a = 0; a < sk; a++)
        for (int64_t b = a; b < sk; b++) {
            expect_range(&t, &p, (fa_range){ a, b }, true);
            for (int64_t width = 1; width <= 4; width++)
                expect_blocks(&t, &p, (fa_range){ a, b }, width, true);
        }
    fa_range keys = fa_pairs_all_keys(&p), queries = fa_pairs_all_queries(&p), all_q = { 0, sq - 1 }, all_k = { 0, sk - 1 };
    for (int64_t j = 0; j < sk; j++)
        cr_assert_eq(within(keys, j), some(&t, all_q, j, false), SAY ": key %lld", SAID(&t), (long long)j);
    for (int64_t i = 0; i < sq; i++)
        cr_assert_eq(within(queries, i), some(&t, all_k, i, true), SAY ": query %lld", SAID(&t), (long long)i);
    cr_assert(keys.first <= sk && queries.first <= sq && keys.last < sk && queries.last < sq, SAY, SAID(&t));
    for (int64_t rows = 1; rows <= 4; rows++)
        expect_keys_most(&t, &p, rows);
}

static void at_every_length(const mask *m)
{
    static const int64_t length[] = { 0, 1, 2, 4, MOST };
    for (size_t a = 0; a < COUNT(length); a++)
        for (size_t b = 0; b < COUNT(length); b++)
            expect_pairs(m, length[a], length[b]);
}

static void at_every_diagonal(mask m)
{
    for (m.diagonal = FA_BOTTOM_RIGHT; m.diagonal <= FA_OFFSET; m.diagonal++)
        for (m.offset = m.diagonal == FA_OFFSET ? -9 : 9; m.offset <= 9; m.offset++) /* the others do not read it */
            at_every_length(&m);
}

Test(pairs, are_as_defined)
{
    at_every_diagonal((mask){ .kind = FA_MASK_NONE, .left = 1, .right = 1 }); /* which are not read */
    at_every_diagonal((mask){ .kind = FA_MASK_CAUSAL, .left = 1, .right = 1 });
}

Test(pairs, of_windows_are_as_defined)
{
    static const int64_t side[] = { -1, 0, 1, 3, 12 };
    for (size_t l = 0; l < COUNT(side); l++)
        for (size_t r = 0; r < COUNT(side); r++)
            at_every_diagonal((mask){ .kind = FA_MASK_WINDOW, .left = side[l], .right = side[r] });
}

/* Numbers of any size saturate: nothing wraps, and what is beyond every length hides or shows all. */
Test(pairs, far_diagonals_saturate)
{
    static const int64_t far[] = { INT64_MAX, INT64_MAX - 1, (int64_t)1 << 41, (int64_t)1 << 31, INT32_MAX, (int64_t)1 << 30 };
    const int64_t n = FA_MAX_LENGTH;
    for (size_t k = 0; k < COUNT(far); k++) {
        fa_shift up = fa_shift_of(FA_MASK_CAUSAL, FA_OFFSET, far[k], -1, -1),
                 down = fa_shift_of(FA_MASK_CAUSAL, FA_OFFSET, -far[k], -1, -1);
        fa_shift wide = fa_shift_of(FA_MASK_WINDOW, FA_BOTTOM_RIGHT, far[k], far[k], far[k]);
        fa_shift both = fa_shift_of(FA_MASK_WINDOW, FA_OFFSET, -far[k], far[k], far[k]);
        cr_expect(up.hi == n && up.lo == -n && down.hi == -n && down.lo == -n && !up.relative, "%zu", k);
        cr_expect(wide.relative && wide.lo == -n && wide.hi == n, "%zu", k);
        cr_expect(both.lo == -n && both.hi == 0, "%zu: %d", k, both.hi);
        static const int64_t length[] = { 0, 1, 1000, FA_MAX_LENGTH };
        for (size_t a = 0; a < COUNT(length); a++)
            for (size_t b = 0; b < COUNT(length); b++) {
                fa_pairs all = fa_pairs_of(wide, length[a], length[b]), none = fa_pairs_of(down, length[a], length[b]);
                fa_range keys = fa_pairs_all_keys(&none), queries = fa_pairs_all_queries(&none);
                cr_expect_eq(fa_pairs_count(&all), length[a] * length[b]);
                cr_expect_eq(fa_pairs_count(&none), 0);
                cr_expect(keys.last < keys.first && queries.last < queries.first && queries.first == length[a]);
            }
    }
}

/* At 2^30 rows, by hand. */
Test(pairs, of_the_longest_sequences)
{
    const int64_t n = FA_MAX_LENGTH;
    fa_pairs causal = fa_pairs_of(fa_shift_of(FA_MASK_CAUSAL, FA_BOTTOM_RIGHT, 0, 0, 0), n, n);
    cr_expect_eq(fa_pairs_count(&causal), n / 2 * (n + 1));
    cr_expect_eq(fa_pairs_keys(&causal, (fa_range){ n - 1, n - 1 }).last, n - 1);
    cr_expect_eq(fa_pairs_queries(&causal, (fa_range){ n - 1, n - 1 }).first, n - 1);
    fa_pairs window = fa_pairs_of(fa_shift_of(FA_MASK_WINDOW, FA_BOTTOM_RIGHT, 0, 1023, 0), n, n);
    cr_expect_eq(fa_pairs_count(&window), n * 1024 - 1023 * 1024 / 2);
    cr_expect_eq(fa_pairs_keys_most(&window, 128), 1023 + 128);
    fa_blocks b = fa_pairs_key_blocks(&window, (fa_range){ n - 128, n - 1 }, 128);
    cr_expect(b.some.first == n / 128 - 9 && b.some.last == n / 128 - 1 && b.whole == 7 && b.partial == 2 && b.empty == n / 128 - 9);
    fa_pairs short_of = fa_pairs_of(fa_shift_of(FA_MASK_CAUSAL, FA_BOTTOM_RIGHT, 0, 0, 0), 1, n);
    cr_expect(fa_pairs_count(&short_of) == n && short_of.band.hi == n - 1);
}

/* The closed form over all row tiles is the sum over each. */
Test(pairs, row_tiles_are_sums_of_tiles)
{
    static const mask masks[] = { { .kind = FA_MASK_CAUSAL },
                                  { FA_MASK_CAUSAL, FA_OFFSET, -40, 0, 0 },
                                  { FA_MASK_WINDOW, FA_TOP_LEFT, 0, 20, 5 } };
    for (size_t k = 0; k < COUNT(masks); k++)
        for (int64_t sq = 60; sq < 70; sq++)
            for (int64_t sk = 50; sk < 100; sk += 7) {
                const mask *m = &masks[k];
                fa_pairs p = fa_pairs_of(fa_shift_of(m->kind, m->diagonal, m->offset, m->left, m->right), sq, sk);
                fa_row_tiles tiles = { sq, sk, 1, 16, 8, p.band };
                fa_row_tiles_sum s = fa_row_tiles_count(&tiles);
                double blocks = 0, keys = 0;
                for (int64_t r = 0; r < sq; r += 16) {
                    fa_range rows = { r, r + 15 < sq ? r + 15 : sq - 1 }, seen = fa_pairs_keys(&p, rows);
                    fa_blocks b = fa_pairs_key_blocks(&p, rows, 8);
                    blocks += (double)(b.partial + b.whole);
                    keys += seen.last < seen.first ? 0 : (double)(seen.last - seen.first + 1);
                }
                fa_range all = fa_pairs_all_keys(&p);
                cr_assert(s.blocks == blocks && s.keys == keys && s.first == (keys > 0 ? all.first : 0) &&
                          s.end == (keys > 0 ? all.last + 1 : 0));
            }
}

Test(pairs, bands_of_problems_are_bottom_right)
{
    fa_problem p = { .mask = FA_MASK_WINDOW, .sq = 5000, .sk = 9000, .window = 100 };
    fa_band b = fa_band_of_problem(&p);
    cr_expect(b.lo == 4000 - 100 && b.hi == 4000);
    p.window = 0;
    b = fa_band_of_problem(&p);
    cr_expect(b.lo == 4000 - 1024 && b.hi == 4000);
    p.mask = FA_MASK_CAUSAL;
    b = fa_band_of_problem(&p);
    cr_expect(b.lo == -5000 && b.hi == 4000);
}

/* A pair is kept at a threshold of its bits, and dropped at the next. */
Test(pairs, are_kept_by_fixed_bits)
{
    static const struct {
        uint64_t seed, offset;
        int64_t head, query, key;
        uint32_t bits;
    } rows[] = {
        { 0, 0, 0, 0, 0, 0x3709 }, /* six of the eight of Random123's first known answer: 5f6fb709 0d893f64 4f121f81 4f730a48 */
        { 0, 0, 0, 0, 1, 0x5f6f },
        { 0, 0, 0, 0, 8, 0x3f64 },
        { 0, 0, 0, 8, 0, 0x1f81 },
        { 0, 0, 0, 8, 8, 0x0a48 },
        { 0, 0, 0, 8, 9, 0x4f73 },
        { 0x123456789abcdef, 0x700000003, 5, 17, 26, 0x1644 },
        { 0x123456789abcdef, 0x700000003, 5, 31, 101, 0x5104 },
        { 1, 1ull << 32, 1, 7, 15, 0x0745 },
        { 1ull << 32, 1, (1 << 20) + 3, 1000000, 999999, 0x369f },
        { ~0ull, ~0ull, 7, FA_MAX_LENGTH - 1, FA_MAX_LENGTH - 2, 0x5856 },
        { 42, 7, 2, 16, 16, 0x7225 },
        { 42, 7, 2, 15, 17, 0x1b2e },
        { 42, 7, 2, 16, 9, 0x4091 },
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        fa_dropout d = { rows[k].seed, rows[k].offset, rows[k].bits, 1.25f };
        cr_expect_eq(fa_pairs_kept(&d, rows[k].head, rows[k].query, rows[k].key), 1.25, "row %zu", k);
        d.below++;
        cr_expect_eq(fa_pairs_kept(&d, rows[k].head, rows[k].query, rows[k].key), 0, "row %zu", k);
    }
    cr_expect_eq(fa_pairs_kept(NULL, 0, 0, 0), 1);
}
