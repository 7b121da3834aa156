/* bucket: edges where decisions have theirs, and a shape in the middle. */
#include "bucket.h"
#include "format.h"
#include "model.h"
#include "problem.h"
#include <stdlib.h>

/* Rows of the tiles of few rows: those up to each are a step. */
static const int32_t tiles[] = { 1, 2, 8, 16, 32, FA_FEW_ROWS };
enum { TILES = sizeof tiles / sizeof *tiles };
/* Over K of integers of few bits there are tiles of so many, too: a step of its own, whose digit no other one has. */
#define ROWS_OF_INTEGERS 4
#define STEP_OF_INTEGERS 127u

#define KEYS_LEAST 16   /* fewer keys fill no tile: they are one step */
#define HEADS_FINE 1024 /* with more KV heads every chip has several waves of tiles */
#define GROUP_EXACT 32  /* query heads of a KV head, up to which each number is a step */
#define GROUP_MAX (1 << 16)
#define HEADS_MAX (1 << 16) /* of a problem */
#define SPLIT_ROWS 8        /* more of a group of heads, */
#define SPLIT_KEYS 512      /* as many keys or more, */
#define SPLIT_TILES 512     /* and no more tiles of FA_FEW_ROWS rows: near to two rounds of tiles twice as high on 132 SMs */
#define SPLIT_QUERIES 128   /* with lengths: fewer leave a tile of one head half empty */
#define SPLIT_LONG 8192     /* with lengths: packed rows over so many keys, and chunks in few tiles */
/* In few tiles: packed rows beyond d = 64 over so many keys. */
#define SPLIT_PACKED 1024
/* One head to each KV head, of up to SPLIT_QUERIES queries, over so many keys, where there may be single tokens: of no more KV heads than
 * these. More are mostly tokens, which end sooner in streams of split keys; so do all where wgmma has a kernel of these. */
#define SPLIT_ALONE 4096
#define SPLIT_ALONE_HEADS 32
/* Few rows with lengths: more than mma.sync takes of a key that it reads, where wgmma has no kernel of these (decode_wgmma: up to so many
 * columns, by whole lines); over so many keys. Where it has one, of many tiles over few keys, whose ends cut tiles hide. Of many over
 * more keys the longest would end last. */
#define SPLIT_DECODE 16
#define DECODE_COLUMNS 192
#define DECODE_LINE 64
#define SPLIT_DECODE_KEYS 512
#define SPLIT_DECODE_MOST 1024
#define SPLIT_DECODE_TILES 128
#define SPLIT_DECODE_LONG 8192
#define SPLIT_SQUARE 192 /* nor that many, three quarters of one such round, where keys are no more than queries */
#define SPLIT_LAST 1024  /* nor that many of nearly one length, some four rounds of tiles twice as high, of which the last is cut alone, */
#define LAST_KEYS 1024   /* over as many keys or more: without a mask, or under a diagonal */
#define LONG_DIAGONAL 4  /* with so many times as many keys as queries (LONG in parts_family.lua) */
#define PACK_QUERIES 512 /* of so many queries of several heads any number of tiles: packed rows leave less of a tile empty */
#define SPLIT_FEATURES \
    (FA_FEATURE_NO_WORKSPACE | FA_FEATURE_LENGTHS | FA_FEATURE_PAGES | FA_FEATURE_LSE_STRIDES | FA_FEATURE_BATCH_INVARIANT)
#define BATCH_TYPICAL 16 /* sequences with lengths of their own */
/* Of dense prompts without a mask tiles take equal time, and whole rounds of them over the SMs: a tile more than one round or two costs a
 * half or a third more. Between so many tiles, for 132 SMs, of as many rows as the fastest have up to 128 columns and beyond. */
#define ROUNDS_LEAST 117
#define ROUNDS_MOST 297
#define ROUNDS_ROWS 192
#define ROUNDS_ROWS_WIDE 128
#define ROUNDS_QUERIES 256 /* and so many rows or more */
#define GRAD_QUERIES 192   /* and of gradients */

/* Of sequences with their own lengths: 16 of 8192 keys, with chunks of 512 queries among them, so that the config serves tokens and prompts
 * alike. A dense batch's lengths are those of each of its sequences. */
fa_problem fa_problem_chosen_by(const fa_problem *in)
{
    fa_problem p = *in;
    if (!(p.features & FA_FEATURE_BATCH_INVARIANT))
        return p;
    fa_problem_fill_shape(&p);
    p.b = BATCH_TYPICAL;
    if (p.features & FA_FEATURE_LENGTHS) {
        p.sq = 512;
        p.sk = 8192;
        p.window = 0;
    }
    return p;
}

/* Of p, filled. */
static int64_t rows_of(const fa_problem *p)
{
    return (int64_t)p->sq * (p->hq / p->hkv);
}

bool fa_problem_few_rows(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    return rows_of(&p) <= FA_FEW_ROWS;
}

fa_batch_kind fa_problem_batch_kind(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    if (!(p.features & FA_FEATURE_LENGTHS) || fa_problem_few_rows(&p) || p.sq > p.sk)
        return FA_BATCH_ANY;
    return p.sq == p.sk ? FA_BATCH_PROMPTS : p.b < FA_BATCH_LEAST ? FA_BATCH_CHUNKS : FA_BATCH_MIXED;
}

bool fa_problem_alike(const fa_problem *a, const fa_problem *b)
{
    return fa_problem_few_rows(a) == fa_problem_few_rows(b) && fa_problem_batch_kind(a) == fa_problem_batch_kind(b);
}

static uint32_t floor_log2(int64_t v)
{
    uint32_t k = 0;
    while (v >> (k + 1))
        k++;
    return k;
}

/* A scale: from 2^octave on each octave has 2^log_parts steps of equal width, the first of them number `first`. */
typedef struct scale {
    uint8_t octave, log_parts, first;
} scale;

static const scale octaves[] = { { 0, 0, 0 } };
static const scale halves[] = { { 0, 1, 0 } };
/* Of many rows: quarters where chips have from one wave of tiles to some ten. As long rows as keys: octaves, of many waves. */
static const scale rows[] = { { 0, 1, 0 }, { 8, 2, 16 }, { 13, 1, 36 } };
static const scale rows_as_keys[] = { { 0, 1, 0 }, { 8, 2, 16 }, { 13, 1, 36 }, { 15, 0, 40 } };
/* Of gradients: quarters up to 32768. Few heads of long rows have one wave of tiles or two, and each takes long. */
static const scale rows_of_gradients[] = { { 0, 1, 0 }, { 8, 2, 16 }, { 15, 1, 44 } };
/* Of gradients that may have few tiles, whose rounds are steps of their own: beyond 32768 octaves. */
static const scale rows_of_few_tiles[] = { { 0, 1, 0 }, { 8, 2, 16 }, { 15, 0, 44 } };
/* Of many rows before more keys: finer than tiles are high, to 2048 as high as one, and each up to its value, as tiles are. */
static const scale rows_before_keys[] = { { 0, 0, 0 },  { 1, 1, 1 },   { 2, 2, 3 },   { 3, 3, 7 },
                                          { 8, 4, 47 }, { 10, 3, 79 }, { 11, 2, 87 }, { 13, 1, 95 } };
/* Of as many keys, where tiles fill a round or two: eighths from 256 to 8192, each up to its value. */
static const scale rows_of_rounds[] = { { 0, 1, 0 }, { 8, 3, 16 }, { 13, 0, 56 } };
/* Of KV heads: each number to 16, for it multiplies all tiles, and eighths of octaves to 128, up to which chips have a wave or two of
 * tiles; with more than 1024 every chip has several waves. */
static const scale kv_heads[] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, 7 }, { 4, 3, 15 }, { 7, 2, 39 }, { 10, 0, 51 } };
/* Of few rows, whose tiles are as many as KV heads: eighths to 512; a step ends with the last tile of a wave over WAVE_SMS. */
static const scale heads_of_few[] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, 7 }, { 4, 3, 15 }, { 9, 2, 55 }, { 10, 0, 59 } };
#define WAVE_SMS 132
#define HEADS_STEPS 63 /* the last, of few rows that of more than some 12,000 */

/* Of gradients that may have few tiles, without groups, each number to 32: a head more may be a round more. */
static const scale heads_of_few_tiles[] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, 7 }, { 4, 4, 15 }, { 5, 2, 31 }, { 10, 0, 51 } };

/* Gradients have no tiles to cut, and several rounds of them sooner. */
static const scale heads_of_gradients[] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, 7 }, { 4, 2, 15 }, { 10, 0, 39 } };

#define COUNT(a) (sizeof(a) / sizeof *(a))
typedef struct ruler {
    const scale *part;
    size_t n;
} ruler;

#define RULER(a) ((ruler){ a, COUNT(a) })

__extension__ typedef __int128 wide; /* values reach 2^50, and their squares 2^100 */

/* The step whose value is nearest; whole octaves by the logarithm. The usual powers of two lie in the middle of theirs. */
static uint32_t step_of(int64_t v, ruler r)
{
    uint32_t k = floor_log2(v);
    const scale *s = r.part + r.n - 1;
    while (s->octave > k)
        s--;
    int64_t beyond = v - ((int64_t)1 << k), half = (int64_t)1 << k >> 1;
    uint32_t part = s->log_parts ? (uint32_t)(((beyond << s->log_parts) + half) >> k) : (wide)v * v >= (wide)2 << 2 * k;
    return s->first + ((k - s->octave) << s->log_parts) + part;
}

/* The first step whose value is no less. */
static uint32_t step_upto(int64_t v, ruler r)
{
    uint32_t k = floor_log2(v);
    const scale *s = r.part + r.n - 1;
    while (s->octave > k)
        s--;
    int64_t beyond = v - ((int64_t)1 << k), width = (int64_t)1 << k >> s->log_parts;
    return s->first + ((k - s->octave) << s->log_parts) + (uint32_t)(width ? (beyond + width - 1) / width : 0);
}

static int64_t value_of(uint32_t step, ruler r)
{
    const scale *s = r.part + r.n - 1;
    while (s->first > step)
        s--;
    uint32_t k = s->octave + ((step - s->first) >> s->log_parts), part = (step - s->first) & ((1u << s->log_parts) - 1);
    return ((int64_t)1 << k) + ((int64_t)part << k >> s->log_parts);
}

/* The digits of a bucket, from the lowest bit on. */
typedef struct digits {
    uint32_t rows;   /* 7 bits: of tiles, then TILES + the step of sq */
    uint32_t keys;   /* 6: the step above that of KEYS_LEAST, KEYS_STEPS at most; of gradients in few tiles their rounds */
    uint32_t heads;  /* 6: the step of b * hkv */
    uint32_t group;  /* 6: itself, then GROUP_EXACT + octaves */
    uint32_t window; /* 5: octave */
    uint32_t kind;   /* 2: of the batch; of a dense one FA_BATCH_CHUNKS where it has more keys than its many rows, FA_BATCH_PROMPTS where
                        it has as many, in few rounds of tiles, and of gradients in few tiles */
    uint32_t pieces; /* 2, those of kind, which few rows have not: which pieces of KV heads are whole */
} digits;

#define KEYS_STEPS 63

/* Gradients without a mask: their blocks of keys take equal time. */
static bool may_have_few_tiles(const fa_problem *p)
{
    return p->op == FA_BACKWARD && p->mask == FA_MASK_NONE && !(p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_BATCH_INVARIANT));
}

/* With lengths in device memory they cover their octave anyway. Few rows leave no waves of tiles: halves are fine enough for their keys. */
static ruler lengths_ruler(const fa_problem *p, bool few, bool before)
{
    if (p->features & FA_FEATURE_LENGTHS)
        return RULER(octaves);
    if (!few && p->op == FA_BACKWARD)
        return may_have_few_tiles(p) ? RULER(rows_of_few_tiles) : RULER(rows_of_gradients);
    return few ? RULER(halves) : before ? RULER(rows) : RULER(rows_as_keys);
}

static uint32_t keys_step(int64_t sk, ruler r)
{
    uint32_t least = step_of(KEYS_LEAST, r), step = step_of(sk, r);
    step = step > least ? step - least : 0;
    return step < KEYS_STEPS ? step : KEYS_STEPS;
}

/* Whether its rows are many, in a dense batch, before more keys. */
static bool before_keys(const fa_problem *p)
{
    bool dense = p->op == FA_FORWARD && !(p->features & FA_FEATURE_LENGTHS);
    return dense && p->sq < p->sk && rows_of(p) > FA_FEW_ROWS && keys_step(p->sk, RULER(rows)) > 0;
}

/* Where V lies in K, tiles of one KV head are as many as SMs, or half as many: a cluster has a tile then, and a second round costs half. */
static ruler heads_ruler(const fa_problem *p)
{
    bool any = p->features & FA_FEATURE_LENGTHS && !(p->features & FA_FEATURE_V_IN_K);
    if (any || p->op != FA_FORWARD)
        return any ? RULER(octaves) : may_have_few_tiles(p) && p->hq == p->hkv ? RULER(heads_of_few_tiles) : RULER(heads_of_gradients);
    return rows_of(p) <= FA_FEW_ROWS ? RULER(heads_of_few) : RULER(kv_heads);
}

static bool is_of_few(ruler r)
{
    return r.part == heads_of_few;
}

static uint32_t heads_step(int64_t n, ruler r)
{
    const int64_t most = (int64_t)1 << 31, before = (n - 1) / WAVE_SMS * WAVE_SMS; /* tiles of the waves before the last */
    uint32_t step = step_of(n < most ? n : most, r);
    if (is_of_few(r) && n <= 512 && value_of(step, r) <= before)
        step++;
    return step < HEADS_STEPS ? step : HEADS_STEPS;
}

/* The query heads of a KV head that stand for so many. */
static uint32_t group_step(int32_t group)
{
    return group <= GROUP_EXACT ? (uint32_t)group : GROUP_EXACT + floor_log2((group - 1) / GROUP_EXACT) + 1;
}

static int32_t group_of(uint32_t step)
{
    return step <= GROUP_EXACT ? (int32_t)step : GROUP_EXACT << (step - GROUP_EXACT);
}

/* The step of as many rows as keys in few rounds of tiles, 0 where rounds do not decide. Where rounds begin and end to decide a length goes
 * with the quarter of an octave that it is nearest to, if that is within. */
static uint32_t rounds_step(const fa_problem *p)
{
    bool dense = p->op == FA_FORWARD && !(p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_BATCH_INVARIANT));
    if (!dense || p->mask != FA_MASK_NONE || p->sq != p->sk || rows_of(p) <= FA_FEW_ROWS)
        return 0;
    int64_t heads = value_of(heads_step((int64_t)p->b * p->hkv, heads_ruler(p)), heads_ruler(p)) * group_of(group_step(p->hq / p->hkv));
    int64_t high = p->dv <= 128 ? ROUNDS_ROWS : ROUNDS_ROWS_WIDE;
    const int64_t of[] = { value_of(step_upto(p->sq, RULER(rows_of_rounds)), RULER(rows_of_rounds)),
                           value_of(step_of(p->sq, RULER(rows)), RULER(rows)) };
    for (size_t i = 0; i < COUNT(of); i++) {
        int64_t all = (of[i] + high - 1) / high * heads;
        if (of[i] >= ROUNDS_QUERIES && of[i] <= 8192 && all >= ROUNDS_LEAST && all <= ROUNDS_MOST)
            return step_upto(of[i], RULER(rows_of_rounds));
    }
    return 0;
}

/* Of as many keys as queries: the step of the rows, and which rounds of the SMs blocks of 64 and of 128 keys of a query head make. Few: one
 * of 128 at some lengths of the step, and so all lengths of a step are few, or none. */
typedef struct few_tiles {
    bool are;
    uint32_t rows, rounds;
} few_tiles;

static int64_t blocks_of(int64_t heads, int64_t sk, int64_t keys)
{
    return heads * ((sk + keys - 1) / keys);
}

/* 0: one round of either; 1: two of 64 keys; 2: and two of 128; 3: three of 64 and more. */
#define ROUNDS_TWO 2
static uint32_t rounds_of_keys(int64_t heads, int64_t sk)
{
    int64_t small = blocks_of(heads, sk, 64);
    return (small > WAVE_SMS) + (blocks_of(heads, sk, 128) > WAVE_SMS) + (small > 2 * WAVE_SMS);
}

/* The first length of a step. */
static int64_t first_of(uint32_t step, ruler r)
{
    int64_t low = step ? value_of(step - 1, r) : 0, high = value_of(step, r); /* low is of the step before */
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (step_of(middle, r) < step)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Of p, filled. */
static few_tiles few_tiles_of(const fa_problem *p)
{
    few_tiles x = { .are = false };
    if (!may_have_few_tiles(p) || p->sq != p->sk || rows_of(p) <= FA_FEW_ROWS)
        return x;
    ruler r = RULER(rows_of_few_tiles);
    int64_t heads = value_of(heads_step((int64_t)p->b * p->hkv, heads_ruler(p)), heads_ruler(p));
    heads *= group_of(group_step(p->hq / p->hkv));
    if (heads > WAVE_SMS)
        return x;
    x.rows = step_of(p->sq, r);
    x.rounds = rounds_of_keys(heads, p->sq);
    x.are = value_of(x.rows, r) >= GRAD_QUERIES && rounds_of_keys(heads, first_of(x.rows, r)) < ROUNDS_TWO;
    return x;
}

bool fa_problem_same_rounds(const fa_problem *in, int32_t sms)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    return sms == WAVE_SMS && few_tiles_of(&p).are;
}

/* Of few tiles the length of their step that is nearest to its value and has their rounds. */
static int32_t rows_of_few(const digits *d, int64_t heads)
{
    int64_t sq = value_of(d->rows - TILES, RULER(rows_of_few_tiles));
    while (rounds_of_keys(heads, sq) < d->keys)
        sq = (sq + 63) / 64 * 64 + 1;
    while (rounds_of_keys(heads, sq) > d->keys)
        sq = (sq - 1) / 64 * 64;
    return (int32_t)sq;
}

/* Whether K of a cache is of integers that its format has no more about than a scale. */
static bool has_integers(const fa_problem *p)
{
    const fa_format *f = p->op == FA_FORWARD ? fa_format_of(p->kv_dtype) : NULL;
    return f && (f->kind == FA_CODE_SIGNED || (f->kind == FA_CODE_UNSIGNED && f->zero)) && !f->high_at;
}

/* Over K and V of few bits a block has a piece of a token's row, of two, four or eight neighbouring KV heads. Where these do not divide all
 * heads, the last piece leaves warps idle, and none is copied as one: other configs are faster. One head alone has none. */
typedef enum pieces {
    PIECES_OF_EIGHT, /* or no pieces at all */
    PIECES_OF_FOUR,
    PIECES_OF_TWO, /* and one more head, where they are odd */
    PIECES_NONE
} pieces;

/* Of p, filled. */
static bool has_pieces(const fa_problem *p)
{
    return p->op == FA_FORWARD && rows_of(p) <= FA_FEW_ROWS && fa_format_of(p->kv_dtype) && !(p->features & FA_FEATURE_BATCH_INVARIANT);
}

static pieces pieces_of(int32_t hkv)
{
    return hkv % 8 == 0 ? PIECES_OF_EIGHT : hkv % 4 == 0 ? PIECES_OF_FOUR : hkv > 1 ? PIECES_OF_TWO : PIECES_NONE;
}

/* Of p, filled. */
static digits digits_of(const fa_problem *p)
{
    int64_t all = rows_of(p);
    ruler r = lengths_ruler(p, all <= FA_FEW_ROWS, before_keys(p));
    bool keys = p->op != FA_MERGE; /* which has none */
    digits d = { .keys = keys ? keys_step(p->sk, r) : 0,
                 .heads = heads_step((int64_t)p->b * p->hkv, heads_ruler(p)),
                 .group = group_step(p->hq / p->hkv) };
    while (d.rows < TILES && all > tiles[d.rows])
        d.rows++;
    if (all > tiles[1] && all <= ROWS_OF_INTEGERS && has_integers(p))
        d.rows = STEP_OF_INTEGERS;
    if (d.rows == TILES)
        d.rows += before_keys(p) ? step_upto(p->sq, RULER(rows_before_keys)) : step_of(p->sq, r);
    if (p->mask == FA_MASK_WINDOW)
        d.window = step_of(p->window ? p->window : FA_MODEL_WINDOW, RULER(octaves));
    d.kind = before_keys(p) ? FA_BATCH_CHUNKS : fa_problem_batch_kind(p);
    d.pieces = has_pieces(p) ? pieces_of(p->hkv) : 0;
    uint32_t rounds = rounds_step(p);
    if (rounds) {
        d.rows = TILES + rounds;
        d.keys = 0;
        d.kind = FA_BATCH_PROMPTS;
    }
    few_tiles few = few_tiles_of(p);
    if (few.are) {
        d.rows = TILES + few.rows;
        d.keys = few.rounds;
        d.kind = FA_BATCH_PROMPTS;
    }
    return d;
}

uint32_t fa_problem_bucket(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    digits d = digits_of(&p);
    return d.rows | d.keys << 7 | d.heads << 13 | d.group << 19 | d.window << 25 | (d.kind | d.pieces) << 30;
}

/* Heads that are pieces of two and no more, in sequences that make a number of the step of `all`: those of a bucket are such. */
static void settle_pairs(fa_problem *p, int64_t all, ruler r)
{
    static const int32_t usual[] = { 6, 5, 3, 2 }; /* models' */
    const uint32_t step = heads_step(all, r);
    for (int32_t i = 0;; i++) {
        int32_t hkv = i < (int32_t)COUNT(usual) ? usual[i] : 7 + i - (int32_t)COUNT(usual);
        for (int64_t b = all / hkv; b <= all / hkv + 1; b++)
            if (pieces_of(hkv) == PIECES_OF_TWO && b > 0 && heads_step(b * hkv, r) == step) {
                p->hkv = hkv;
                p->b = (int32_t)b;
                return;
            }
    }
}

/* b * hkv = heads. Few KV heads to a sequence, as models have them: what else is equal, sequences and heads are to a kernel. Where pieces
 * of heads count, with the same. */
static void settle_heads(fa_problem *p, int64_t all, int32_t group)
{
    if (p->features & FA_FEATURE_BATCH_INVARIANT) {
        p->b = BATCH_TYPICAL;
        p->hkv = (int32_t)(all / BATCH_TYPICAL);
        return;
    }
    bool lengths = p->features & FA_FEATURE_LENGTHS;
    int64_t hkv = 1, most = lengths ? all / BATCH_TYPICAL : 8;
    if (has_pieces(p)) {
        static const int32_t least[] = { [PIECES_OF_EIGHT] = 8, [PIECES_OF_FOUR] = 4, [PIECES_NONE] = 1 };
        pieces of = pieces_of(p->hkv);
        if (of == PIECES_OF_TWO) {
            settle_pairs(p, all, heads_ruler(p));
            return;
        }
        hkv = least[of];
        most = of == PIECES_OF_EIGHT ? most : hkv;
    }
    while (all % (2 * hkv) == 0 && 2 * hkv <= most && 2 * hkv * group <= HEADS_MAX)
        hkv *= 2;
    p->hkv = (int32_t)hkv;
    p->b = (int32_t)(all / hkv);
}

/* Chunks are of few sequences. */
static void settle_chunks(fa_problem *p, int64_t all, int32_t group)
{
    p->b = 1;
    while (all / p->b * group > HEADS_MAX && all % (2 * p->b) == 0)
        p->b *= 2;
    p->hkv = (int32_t)(all / p->b);
}

/* The nearest that a field holds. */
static int32_t value_in(uint32_t step, ruler r)
{
    int64_t v = value_of(step, r);
    return v < FA_MAX_LENGTH ? (int32_t)v : FA_MAX_LENGTH;
}

static bool is_few(const digits *d)
{
    return d->rows < TILES || d->rows == STEP_OF_INTEGERS;
}

/* sq of the step that is nearest its middle; before more keys its last. */
static void settle_rows(fa_problem *p, const digits *d, int32_t group)
{
    if (is_few(d)) {
        p->sq = (d->rows == STEP_OF_INTEGERS ? ROWS_OF_INTEGERS : tiles[d->rows]) / group;
        return;
    }
    bool dense = !(p->features & FA_FEATURE_LENGTHS), before = d->kind == FA_BATCH_CHUNKS, rounds = d->kind == FA_BATCH_PROMPTS;
    if (dense && rounds && p->op == FA_BACKWARD) {
        p->sq = rows_of_few(d, value_of(d->heads, heads_ruler(p)) * group_of(d->group));
        return;
    }
    p->sq = value_in(d->rows - TILES, dense && before   ? RULER(rows_before_keys)
                                      : dense && rounds ? RULER(rows_of_rounds)
                                                        : lengths_ruler(p, false, before));
    if ((int64_t)p->sq * group <= FA_FEW_ROWS)
        p->sq = FA_FEW_ROWS / group + 1;
}

/* sk of the step, on the side of sq that the kind of the batch says. */
static void settle_keys(fa_problem *p, const digits *d)
{
    bool dense = !(p->features & FA_FEATURE_LENGTHS);
    ruler r = lengths_ruler(p, is_few(d), d->kind == FA_BATCH_CHUNKS);
    p->sk = value_in(d->keys + step_of(KEYS_LEAST, r), r);
    if (d->kind == FA_BATCH_PROMPTS) {
        p->sk = p->sq;
    } else if (d->kind == FA_BATCH_ANY && (rounds_step(p) || few_tiles_of(p).are)) { /* more queries than keys, or fewer */
        p->sk = p->sq - 1;
    } else if (d->kind != FA_BATCH_ANY && p->sk <= p->sq) {
        while (dense && keys_step(p->sq + 1, r) > d->keys) /* steps of rows are the finer ones */
            p->sq--;
        p->sk = p->sq + p->sq / 4;
        if (p->sk == p->sq || keys_step(p->sk, r) != d->keys)
            p->sk = p->sq + 1;
    } else if (d->kind == FA_BATCH_ANY && !dense && !is_few(d) && p->sq <= p->sk) { /* more queries than keys */
        p->sk = p->sq - p->sq / 4;
        if (p->sk == p->sq || keys_step(p->sk, r) != d->keys)
            p->sk = p->sq - 1;
    }
}

static fa_problem representative(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    digits d = digits_of(&p);
    int32_t group = group_of(d.group);
    int64_t all = value_of(d.heads, heads_ruler(&p));
    settle_heads(&p, all, group);
    if (d.kind == FA_BATCH_CHUNKS && p.features & FA_FEATURE_LENGTHS)
        settle_chunks(&p, all, group);
    p.hq = p.hkv * group;
    settle_rows(&p, &d, group);
    settle_keys(&p, &d);
    if (p.mask == FA_MASK_WINDOW)
        p.window = 1 << d.window;
    fa_problem_fill_shape(&p); /* of a merge: it has no keys */
    return p;
}

fa_problem fa_problem_point(const fa_problem *in)
{
    const fa_problem p = fa_problem_chosen_by(in);
    return representative(&p);
}

/* A step is a quarter to a sixteenth of its value wide. */
static int32_t beside(int32_t v, int32_t sixteenths)
{
    int64_t to = v + (int64_t)v * sixteenths / 16;
    return to < 1 ? 1 : to < FA_MAX_LENGTH ? (int32_t)to : FA_MAX_LENGTH;
}

/* KV heads to which each number is a step; beyond, one is some tenth wide to either side of its value. Sequences and heads are to a kernel
 * what else is equal. */
#define HEADS_EXACT 16
#define HEADS_EIGHTHS 128 /* up to here half as wide */

static void set_heads_beside(fa_problem *p, int32_t tenths)
{
    int64_t all = (int64_t)p->b * p->hkv, to = all + all * tenths / (all <= HEADS_EIGHTHS ? 20 : 10);
    int32_t group = p->hq / p->hkv;
    if (all <= HEADS_EXACT || to > INT32_MAX)
        return;
    p->b = (int32_t)to;
    p->hkv = 1;
    p->hq = group;
}

bool fa_problem_ends(const fa_problem *p, fa_problem *lower, fa_problem *upper)
{
    *lower = *upper = *p;
    if (p->op != FA_FORWARD || p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_BATCH_INVARIANT) || rows_of(p) <= FA_FEW_ROWS)
        return false;
    /* sq may be the last of its step: the first comes after that of the step before. */
    bool rounds = rounds_step(p) > 0, upto = rounds || before_keys(p);
    ruler r = rounds ? RULER(rows_of_rounds) : RULER(rows_before_keys);
    uint32_t step = upto ? step_upto(p->sq, r) : 0;
    lower->sq = !upto ? beside(p->sq, -1) : step > 0 ? value_in(step - 1, r) + 1 : p->sq;
    lower->sk = rounds ? lower->sq : beside(p->sk, -1);
    upper->sq = beside(p->sq, upto ? 0 : 1);
    upper->sk = rounds ? upper->sq : beside(p->sk, 1);
    set_heads_beside(lower, -1);
    set_heads_beside(upper, 1);
    return true;
}

static int64_t tiles_of(const fa_problem *p)
{
    return (int64_t)p->b * p->hkv * ((rows_of(p) + FA_FEW_ROWS - 1) / FA_FEW_ROWS);
}

static bool decodes_by_wgmma(const fa_problem *p)
{
    int32_t most = p->d > p->dv ? p->d : p->dv;
    return p->d % DECODE_LINE == 0 && p->dv % DECODE_LINE == 0 && most <= DECODE_COLUMNS;
}

/* Of lengths that the shape bounds: chunks of prompts in few tiles, and any batch whose tiles would be mostly empty, but for the rows of
 * the other heads of a group. Fewer rows are of the families of few rows, where one of these reads a key once. Batch invariance: few heads,
 * since one shape stands for all. */
static bool splits_lengths(const fa_problem *in)
{
    const fa_problem p = representative(in);
    bool packs = p.hq > p.hkv && p.sq < SPLIT_QUERIES, invariant = p.features & FA_FEATURE_BATCH_INVARIANT;
    bool few = tiles_of(&p) <= SPLIT_TILES;
    fa_batch_kind kind = fa_problem_batch_kind(&p);
    if (p.sk <= p.sq)
        return false;
    if (rows_of(&p) <= FA_FEW_ROWS) {
        bool many = tiles_of(&p) >= SPLIT_DECODE_TILES;
        if (rows_of(&p) <= SPLIT_DECODE || p.sk < SPLIT_DECODE_KEYS || invariant || (many && p.sk > SPLIT_DECODE_LONG))
            return false;
        return !decodes_by_wgmma(&p) || (many && p.sk <= SPLIT_DECODE_MOST);
    }
    if (p.sk >= SPLIT_LONG && (packs || ((invariant || kind == FA_BATCH_CHUNKS) && few)))
        return true;
    if (!few || invariant)
        return false;
    if (packs)
        return p.d > 64 && p.sk >= SPLIT_PACKED;
    bool alone = p.hq == p.hkv && (int64_t)p.b * p.hkv <= SPLIT_ALONE_HEADS && !decodes_by_wgmma(&p);
    return kind == FA_BATCH_MIXED && alone && p.sk >= (p.sq <= SPLIT_QUERIES ? SPLIT_ALONE : SPLIT_LONG);
}

bool fa_problem_splits(const fa_problem *in)
{
    if (in->op != FA_FORWARD || in->features & ~SPLIT_FEATURES)
        return false;
    fa_problem p = fa_problem_chosen_by(in);
    fa_problem_fill_shape(&p);
    if (p.features & FA_FEATURE_LENGTHS)
        return splits_lengths(&p);
    int64_t few = p.features & FA_FEATURE_BATCH_INVARIANT ? FA_FEW_ROWS : SPLIT_ROWS; /* whose segments are cut as finely as a batch asks */
    int64_t heads = (int64_t)p.b * p.hkv;
    bool packs = p.hq > p.hkv && p.sq < 2 * PACK_QUERIES && p.sk > p.sq / 2;
    if (p.sk < SPLIT_KEYS / 2 || (!packs && (heads > 2 * SPLIT_TILES || heads * (rows_of(&p) / FA_FEW_ROWS) > 4 * SPLIT_TILES)))
        return false; /* whatever stands for its bucket */
    p = representative(&p);
    int64_t all = rows_of(&p), most = p.sk > p.sq ? SPLIT_TILES : SPLIT_SQUARE;
    bool one_length = p.mask == FA_MASK_NONE || (p.mask == FA_MASK_CAUSAL && p.sk >= LONG_DIAGONAL * (int64_t)p.sq);
    if (few == SPLIT_ROWS && one_length && p.sk >= LAST_KEYS)
        most = SPLIT_LAST;
    if (all <= few || p.sk < SPLIT_KEYS)
        return false;
    packs = p.hq > p.hkv && p.sq <= PACK_QUERIES && p.sk >= p.sq;
    return packs || tiles_of(&p) <= most;
}

int fa_problem_steps(const fa_problem *a, const fa_problem *b)
{
    const fa_problem x = fa_problem_point(a), y = fa_problem_point(b);
    const int64_t of[][2] = {
        { x.sq, y.sq },
        { x.sk, y.sk },
        { (int64_t)x.b * x.hkv, (int64_t)y.b * y.hkv },
        { x.hq / x.hkv, y.hq / y.hkv },
        { x.window ? x.window : 1, y.window ? y.window : 1 },
    };
    int far = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        far += abs((int)step_of(of[i][0], RULER(halves)) - (int)step_of(of[i][1], RULER(halves)));
    return far;
}
