/* row_tiles: sums over tiles of floors of linear functions, by Euclid's algorithm.
 *
 * Tile i has the rows from i * br. Row r is of query r / group. Its first key is floor(r / group) + lo, not below 0, and its last one
 * floor(r / group) + hi, not beyond sk - 1. From tile to tile both ends only rise, so that tiles fall into four stretches at most: in each
 * of them an end either follows its diagonal or stays. */
#include "row_tiles.h"
#include <math.h>

__extension__ typedef __int128 wide; /* rows reach 2^46, and rows times keys 2^76 */

/* The sum of floor((a * i + b) / m) for i = 0 ... n - 1, with n, a, b >= 0 and m > 0. As many rounds as Euclid's algorithm takes for a and
 * m: what a round leaves is the same sum with the axes exchanged. */
static wide floor_sum(wide n, wide m, wide a, wide b)
{
    for (wide sum = 0;;) {
        sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
        a %= m;
        b %= m;
        wide top = a * n + b, was = m;
        if (top < m)
            return sum;
        n = top / m;
        b = top % m;
        m = a;
        a = was;
    }
}

/* The least i in 0 ... most with i * step + at >= 0. */
static int64_t from_zero(int64_t at, int64_t step, int64_t most)
{
    int64_t i = at >= 0 ? 0 : (-at + step - 1) / step;
    return i < most ? i : most;
}

/* One end of the keys of tile i: floor((i * br + at) / group) where it follows its diagonal, else key. */
typedef struct edge {
    bool follows;
    int64_t at, key;
} edge;

/* The blocks of w keys before that of the edge, summed over tiles `from` to `to`. */
static wide edge_sum(const fa_row_tiles *t, edge e, int64_t from, int64_t to, int64_t w)
{
    if (!e.follows)
        return (wide)(to - from) * (e.key / w);
    return floor_sum(to - from, (wide)t->group * w, t->br, from * t->br + e.at);
}

typedef struct total {
    wide rows, keys, pairs, blocks, row_blocks;
    int64_t longest, shortest, first, end;
} total;

/* Adds tiles `from` to `to` of n rows each, all of which see a key. */
static void add(total *sum, const fa_row_tiles *t, int64_t n, edge lo, edge hi, int64_t from, int64_t to)
{
    wide tiles = to - from;
    if (tiles <= 0)
        return;
    wide keys = edge_sum(t, hi, from, to, 1) - edge_sum(t, lo, from, to, 1) + tiles;
    wide blocks = edge_sum(t, hi, from, to, t->bc) - edge_sum(t, lo, from, to, t->bc) + tiles;
    sum->rows += tiles * n;
    sum->keys += keys;
    sum->pairs += n * keys;
    sum->blocks += blocks;
    sum->row_blocks += n * blocks;
    int64_t ends[2]; /* the least and the most blocks of a tile */
    if (lo.follows && hi.follows) {
        /* As the ends stay equally far apart, a tile has as many blocks as any other, or one more. */
        ends[0] = (int64_t)(blocks / tiles);
        ends[1] = ends[0] + (blocks % tiles != 0);
    } else { /* one end stays, so that the number rises or falls all the way */
        int64_t one = (int64_t)(edge_sum(t, hi, from, from + 1, t->bc) - edge_sum(t, lo, from, from + 1, t->bc)) + 1;
        int64_t other = (int64_t)(edge_sum(t, hi, to - 1, to, t->bc) - edge_sum(t, lo, to - 1, to, t->bc)) + 1;
        ends[0] = one < other ? one : other;
        ends[1] = one < other ? other : one;
    }
    sum->shortest = ends[0] < sum->shortest ? ends[0] : sum->shortest;
    sum->longest = ends[1] > sum->longest ? ends[1] : sum->longest;
    int64_t first = (int64_t)edge_sum(t, lo, from, from + 1, 1), last = (int64_t)edge_sum(t, hi, to - 1, to, 1);
    sum->first = first < sum->first ? first : sum->first;
    sum->end = last + 1 > sum->end ? last + 1 : sum->end;
}

/* Adds tiles `from` to `to` of n rows each. */
static void add_tiles(total *sum, const fa_row_tiles *t, int64_t n, int64_t from, int64_t to)
{
    edge lo = { true, t->band.lo * t->group, 0 }, hi = { true, n - 1 + t->band.hi * t->group, t->sk - 1 }, at_zero = lo, at_end = hi;
    at_zero.follows = at_end.follows = false;
    int64_t seen = from_zero(hi.at, t->br, to), past = from_zero(lo.at - t->sk * t->group, t->br, to);
    int64_t rises = from_zero(lo.at, t->br, past), stays = from_zero(hi.at - t->sk * t->group, t->br, past);
    seen = seen > from ? seen : from;
    past = past > seen ? past : seen;
    rises = rises > seen ? rises : seen;
    stays = stays > seen ? stays : seen;
    if (past - seen < to - from)
        sum->shortest = 0;
    add(sum, t, n, at_zero, hi, seen, rises < stays ? rises : stays);
    add(sum, t, n, lo, hi, rises, stays);
    add(sum, t, n, at_zero, at_end, stays, rises);
    add(sum, t, n, lo, at_end, rises > stays ? rises : stays, past);
}

fa_row_tiles_sum fa_row_tiles_count(const fa_row_tiles *t)
{
    int64_t rows = t->sq * t->group, full = rows / t->br, rest = rows % t->br;
    total sum = { .shortest = INT64_MAX, .first = t->sk };
    if (t->sk <= 0 || t->band.hi < t->band.lo) {
        sum.shortest = 0;
    } else {
        add_tiles(&sum, t, t->br, 0, full);
        if (rest)
            add_tiles(&sum, t, rest, full, full + 1);
    }
    return (fa_row_tiles_sum){
        .rows = (double)sum.rows,
        .keys = (double)sum.keys,
        .pairs = (double)sum.pairs,
        .blocks = (double)sum.blocks,
        .longest = (double)sum.longest,
        .shortest = rows > 0 ? (double)sum.shortest : INFINITY,
        .row_blocks = (double)sum.row_blocks,
        .first = sum.end > sum.first ? sum.first : 0,
        .end = sum.end > sum.first ? sum.end : 0,
    };
}
