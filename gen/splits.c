/* splits: by how many tiles stand for the bucket, and how long each takes. */
#include "splits.h"
#include "batch_kind.h"
#include "bucket.h"
#include "problem.h"

#define SPLIT_ROWS 8      /* more of a group of heads, */
#define SPLIT_KEYS 512    /* as many keys or more, */
#define SPLIT_TILES 512   /* and no more tiles of FA_FEW_ROWS rows: near to two rounds of tiles twice as high on 132 SMs */
#define SPLIT_QUERIES 128 /* with lengths: fewer leave a tile of one head half empty */
#define SPLIT_LONG 8192   /* with lengths: packed rows over so many keys, and chunks in few tiles */
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

static int64_t tiles_of(const fa_problem *p)
{
    return (int64_t)p->b * p->hkv * ((fa_problem_group_rows(p) + FA_FEW_ROWS - 1) / FA_FEW_ROWS);
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
    const fa_problem p = fa_problem_point(in);
    bool packs = p.hq > p.hkv && p.sq < SPLIT_QUERIES, invariant = p.features & FA_FEATURE_BATCH_INVARIANT;
    bool few = tiles_of(&p) <= SPLIT_TILES;
    fa_batch_kind kind = fa_problem_batch_kind(&p);
    if (p.sk <= p.sq)
        return false;
    if (fa_problem_group_rows(&p) <= FA_FEW_ROWS) {
        bool many = tiles_of(&p) >= SPLIT_DECODE_TILES;
        if (fa_problem_group_rows(&p) <= SPLIT_DECODE || p.sk < SPLIT_DECODE_KEYS || invariant || (many && p.sk > SPLIT_DECODE_LONG))
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
    if (p.sk < SPLIT_KEYS / 2 ||
        (!packs && (heads > 2 * SPLIT_TILES || heads * (fa_problem_group_rows(&p) / FA_FEW_ROWS) > 4 * SPLIT_TILES)))
        return false; /* whatever stands for its bucket */
    p = fa_problem_point(&p);
    int64_t all = fa_problem_group_rows(&p), most = p.sk > p.sq ? SPLIT_TILES : SPLIT_SQUARE;
    bool one_length = p.mask == FA_MASK_NONE || (p.mask == FA_MASK_CAUSAL && p.sk >= LONG_DIAGONAL * (int64_t)p.sq);
    if (few == SPLIT_ROWS && one_length && p.sk >= LAST_KEYS)
        most = SPLIT_LAST;
    if (all <= few || p.sk < SPLIT_KEYS)
        return false;
    packs = p.hq > p.hkv && p.sq <= PACK_QUERIES && p.sk >= p.sq;
    return packs || tiles_of(&p) <= most;
}
