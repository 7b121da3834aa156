/* price: a roofline over six units, with tiles, waves and occupancy.
 *
 * Roofline: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
 * CACM 2009, taken per unit: a launch lasts at least as long as its busiest unit. What is assumed on top, to be calibrated
 * against measurement, is in the constants below and in docs/templates.md. */
#include "price.h"
#include "error.h"
#include "problem.h"
#include "row_tiles.h"
#include "tile_rounds.h"
#include <math.h>
#include <string.h>

#define SCHEDULERS 4 /* of an SM */
/* With one warp per scheduler the matrix unit idles while that warp takes exponentials, and the other way round; with two
 * or more they alternate, and this share of the shorter phase still shows. Linear in between. */
#define SHOWS_ALONE 1.0
#define SHOWS_SHARED 0.77
/* What an SM could do if it never waited, and what its thread blocks take one by one, shared by those that reside: neither is
 * reached, and near the corner both are felt. The p-norm of the two. The numbers above were fitted to timings on an H200, this and those
 * below to random shapes on an H100: docs/experiments/choice.md, "The model's missing terms". */
#define CORNER 4.5
/* Of what row tiles of one head read again, the share that comes out of the L2. */
#define MEET 0.77
#define MEET_CUT 0.82 /* of tiles that are cut into parts */
#define MEET_ALL 0.9  /* where all walk at once and rows are whole lines: pieces of others come again with their neighbours */
/* Of cut or packed tiles that all have as many warpgroups with rows, which stay in step: all at once, and in rounds. */
#define MEET_STEP 0.95
#define MEET_STEP_ROUNDS 0.88
#define LINE 128
/* A last tile with warpgroups that have no rows is done sooner than the others, runs ahead of them and then meets none: of its share so
 * much is lost, times the part of its warpgroups that rest. */
#define APART 0.7
/* In rounds after the first all tiles begin apart, and stay so; of the first and a half of the second they do not. */
#define APART_ROUNDS 1.0
#define TOGETHER_ROUNDS 1.5
/* Tiles that are apart find keys of the head beside them while all heads that are walked fit so much of the L2, whose halves keep copies of
 * each other's lines. */
#define HEADS_FIT 0.5
/* What one SM reads from the L2 by itself, over its part of what all read together. */
#define SM_SPARE 3.5
/* K and V are in the L2 when a launch begins, since the kernel before has written or read them: all of them up to so much of the L2, none
 * from twice as much on. */
#define KEPT 0.4
/* Of what a thread block's waits are where no other resides on its SM: the next launch may begin there. Of 77 launches of mma.sync and 37
 * of cut tiles, an odd number of tiles to an SM with room for two, the price was 0.91 of the time, and of others not. */
#define ALONE_SHOWS 0.8
#define ROUNDS_MOST 16 /* of tiles over the SMs: beyond it the mean decides */
/* Unequal tiles that persistent blocks get dealt out beforehand end later than those that free blocks draw. */
#define DEALT 1.07
/* Tiles of a head, and rounds of them, up to which tiles of unequal lengths are followed one by one; and clocks at which thread blocks are
 * free. Of a diagonal's last blocks groups of rows that see none rest: so much of their part is spared. What they see of it is masked:
 * clocks for a key, of several groups to a thread block. By 2,800 timings under a diagonal on an H100 and 600 on an H200. */
#define FOLLOWED 64
#define FOLLOWED_ROUNDS 8
#define FREED 256
#define SLICES 256 /* of a launch, up to which tiles of unequal slices of groups are followed */
#define FEW_ROUNDS 3
#define FEW_TILES 4 /* fewer are as many at all lengths of a bucket, or half more */
#define RESTS 0.8
#define MASKED 5
#define BESIDE 1.1 /* lengths of a bucket: such times the one that stands for them */

static double rows_of(const fa_problem *p, bool pack)
{
    return (double)p->sq * (pack ? p->hq / p->hkv : 1);
}

static int32_t row_bytes(const fa_problem *p, int32_t columns)
{
    return columns * fa_dtype_bytes(p->dtype);
}

static int32_t round_up(int32_t v, int32_t to)
{
    return (v + to - 1) / to * to;
}

/* Blocks that an SM holds. Registers are given out 8 per thread and 256 per warp (CUDA occupancy calculator). */
static void occupancy(fa_cost *out, const fa_arch *a, int smem, int regs, int threads)
{
    int warps = (threads + 31) / 32;
    const struct {
        const char *name;
        int32_t blocks;
    } limits[] = {
        { "smem", a->smem_sm / (smem + a->smem_reserved) },
        { "regs", regs > 0 ? a->regs_sm / (warps * round_up(round_up(regs, 8) * 32, 256)) : a->blocks_sm },
        { "threads", a->warps_sm / warps < a->threads_sm / threads ? a->warps_sm / warps : a->threads_sm / threads },
        { "blocks", a->blocks_sm },
    };
    out->blocks_sm = INT32_MAX;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].blocks < out->blocks_sm) {
            out->blocks_sm = limits[i].blocks;
            out->limiter = limits[i].name;
        }
    out->occupancy = (double)out->blocks_sm * warps / a->warps_sm;
}

static fa_row_tiles_sum count_visits(const fa_problem *p, double br, double bc, int pack, fa_band band)
{
    fa_row_tiles tiles = { p->sq, p->sk, pack ? p->hq / p->hkv : 1, (int64_t)br, (int64_t)bc, band };
    return fa_row_tiles_count(&tiles);
}

/* The share of a tile that warpgroups with rows hold, where it has so many. */
static double held(const fa_work *w, double rows)
{
    return w->group > 0 ? fmin(1, ceil(rows / w->group) * w->group / w->rows) : 1;
}

/* K and V of the heads at work come from HBM once as far as they fit the L2. Beyond it they come again for each row tile, but for the share
 * that tiles which walk a head side by side meet in the L2. */
static double hbm_bytes(const fa_pricing *x, const fa_cost *cost, const fa_step *s, const fa_work *w)
{
    const fa_problem *p = x->problem;
    const fa_arch *a = x->arch;
    const fa_traffic *t = &cost->traffic;
    if (!w->algorithm || !w->algorithm->shares)
        return fa_traffic_total(t);
    bool pack = fa_step_packs(s);
    double tiles = ceil(rows_of(p, pack) / w->rows), last = rows_of(p, pack) - (tiles - 1) * w->rows;
    double rest = w->even > 0 || tiles < 2 ? 0 : 1 - held(w, last); /* one tile of each head: all are alike */
    double keep = 1 - APART * rest / fmax(1, tiles - 1);            /* one of the tiles that read again is the last */
    double head = (double)p->sk * (double)fa_problem_key_bytes(p);
    double running = fmin((double)cost->grid, (double)a->sm_count * cost->blocks_sm) / s->cluster;
    double heads = ceil(running / fmax(tiles, 1));
    int32_t group = p->hq / p->hkv;
    if (!pack)
        heads = ceil(heads / group);
    double kv = t->read_k + t->read_v, once = fmin(kv, head * p->b * p->hkv);
    bool lines = row_bytes(p, p->d) % LINE == 0 && row_bytes(p, p->dv) % LINE == 0;
    double rounds = tiles * p->b * p->hkv / ((double)a->sm_count * cost->blocks_sm);
    bool at_once = pack && rounds * fmax(1, w->cuts) <= 1;
    if (pack && w->rows >= 128 && rest > 0 && w->cuts <= 1 && rounds > 1)
        keep -= fmax(0, keep - 1 + APART_ROUNDS * rest) * fmax(0, 1 - TOGETHER_ROUNDS / rounds);
    double hit =
        w->cuts > 1 && w->rest <= 0 ? MEET_CUT * keep : fmax(MEET * keep, fmin(1, HEADS_FIT * (double)a->l2_bytes / fmax(1, heads * head)));
    if (lines && at_once && !(p->features & FA_FEATURE_LENGTHS)) /* how many walk with lengths is not known before */
        hit = fmax(hit, MEET_ALL * keep);
    if (pack && w->rows >= 128 && tiles > 1 && rest <= 0 && !(p->features & FA_FEATURE_LENGTHS))
        hit = fmax(hit, at_once ? MEET_STEP : MEET_STEP_ROUNDS);
    double kept = fmax(0, fmin(1, 2 - once / (KEPT * a->l2_bytes)));
    return t->read_q + t->write_o + t->write_lse + once * (1 - kept) + (kv - once) * (1 - hit) + (t->read_sp + t->write_sp);
}

static fa_tile_counts count(const fa_pricing *x, const fa_step *s, const fa_work *w)
{
    const fa_problem *p = x->problem;
    int pack = fa_step_packs(s);
    size_t at = ((size_t)w->rows / 16 * 37 + (size_t)w->cols / 16 * 2 + (size_t)pack) & (FA_TILE_COUNTS - 1);
    fa_tile_counts *k = x->known ? &x->known[at] : NULL;
    if (k && k->rows == w->rows && k->cols == w->cols && k->group == w->group && k->pack == pack && k->algorithm == w->algorithm)
        return *k;
    fa_tile_counts c = { .rows = w->rows, .cols = w->cols, .group = w->group, .pack = pack, .algorithm = w->algorithm };
    fa_tile tile = { (int32_t)w->rows, (int32_t)w->cols, pack };
    if (w->cols > 0) {
        fa_row_tiles_sum t = count_visits(p, w->rows, w->cols, pack, x->band);
        c.visits = (fa_visits){ .all = t.blocks, .longest = t.longest, .shortest = t.shortest };
        if (w->group > 0)
            c.visits.groups = count_visits(p, w->group, w->cols, pack, x->band).blocks;
    }
    if (w->algorithm)
        c.traffic = w->algorithm->traffic(p, &tile, x->band);
    if (k)
        *k = c;
    return c;
}

static double norm(double a, double b, double p)
{
    return pow(pow(a, p) + pow(b, p), 1 / p);
}

static double corner(double a, double b)
{
    return norm(a, b, CORNER);
}

/* The SM that has the longest tiles, where thread blocks come longest first, n of them, as many at once as fit: it has the first of each
 * round, and no free SM can take one from it. From tile to tile the time falls evenly. */
static double first_sm(double n, double sms, double at_once, double longest, double shortest)
{
    double sum = 0;
    for (double r = 0; r < at_once && r * sms < n; r++)
        sum += longest - (longest - shortest) * r * sms / n;
    return sum;
}

/* Where each of n tiles, longest first, goes to the SM that is free first. A round falls evenly from its longest tile to its shortest, and
 * the next begins where it ends, so that of two rounds the longest of the one meets the shortest of the other and all SMs end together.
 * A third begins on top of that with its longest; what comes after it goes to those that had its shortest. */
static double drawn(double n, double sms, double longest, double shortest)
{
    double rounds = floor(n / sms), pairs = floor(rounds / 2), fall = (longest - shortest) * sms / n; /* of a round */
    double even = pairs * (2 * longest - fall * 2 * pairs), first = longest - fall * 2 * pairs, next = longest - fall * rounds;
    bool more = n > rounds * sms;
    if (rounds == 2 * pairs)
        return even + (more ? first : 0);
    return even + fmax(first, more ? 2 * next : 0);
}

/* No order of n tiles ends before this: of the k * sms + 1 longest one SM has k + 1, each at least as long as the shortest of them. */
static double last_round(double n, double sms, double longest, double shortest)
{
    double most = 0;
    for (double k = 0; k < ROUNDS_MOST && k * sms < n; k++)
        most = fmax(most, (k + 1) * (longest - (longest - shortest) * k * sms / n));
    return most;
}

/* Thread blocks that are free from the same clock on. */
typedef struct freed {
    double clock, blocks;
} freed;

/* When the last of the tiles ends, where each goes to the thread block that is free first: of each of n clocks so many, in this order. 0:
 * the blocks are at more clocks than there is room for. */
static double follow(const double *clocks, int n, double each, double blocks)
{
    freed at[2 * FREED] = { { 0, blocks } }; /* by clock, from `first` to `end` */
    int first = 0, end = 1;
    double last = 0;
    for (int i = 0; i < n; i++)
        for (double left = each; left > 0;) {
            freed next = { at[first].clock + clocks[i], fmin(left, at[first].blocks) };
            left -= next.blocks;
            last = fmax(last, next.clock);
            if (next.blocks < at[first].blocks)
                at[first].blocks -= next.blocks;
            else
                first++;
            if (end > first && at[end - 1].clock == next.clock) {
                at[end - 1].blocks += next.blocks;
                continue;
            }
            if (end == 2 * FREED) {
                end -= first;
                if (end > FREED)
                    return 0;
                memmove(at, at + first, (size_t)end * sizeof *at);
                first = 0;
            }
            int to = end++;
            for (; to > first && at[to - 1].clock > next.clock; to--)
                at[to] = at[to - 1];
            at[to] = next;
        }
    return last;
}

/* Slices of the groups of a launch, which come one after the other, tile by tile: of each group the last is shorter than the others. */
typedef struct sliced {
    double groups, slices, tiles; /* of the launch; of a group; of a slice */
    double usual, last, ends;     /* clocks of a tile, and of its ends beside them */
} sliced;

static double follow_slices(const sliced *s, double groups, double sms)
{
    double clocks[SLICES];
    int n = 0;
    if (groups * s->slices > SLICES || groups * s->slices * s->tiles > FOLLOWED_ROUNDS * sms)
        return 0;
    for (double group = 0; group < groups; group++)
        for (double slice = 1; slice <= s->slices; slice++)
            clocks[n++] = (slice < s->slices ? s->usual : s->last) + s->ends;
    return follow(clocks, n, s->tiles, sms);
}

/* Clocks of all launches; 0: they are too many to follow. */
static double follow_launches(const sliced *s, fa_repeats in, double sms)
{
    double last = in.last > 0 ? fmax(1, round(s->groups * in.last)) : s->groups;
    double usual = follow_slices(s, s->groups, sms), end = follow_slices(s, last, sms);
    return usual > 0 && end > 0 ? (in.units - 1) * usual + end : 0;
}

/* In the mean over two lengths of the bucket, where a tile more is not half of them. tiles: of a slice, not rounded. */
static double follow_lengths(const sliced *s, double tiles, fa_repeats in, double sms)
{
    sliced longer = { s->groups, s->slices, ceil(BESIDE * tiles), BESIDE * s->usual, BESIDE * s->last, s->ends };
    double clocks = follow_launches(s, in, sms), beside = s->tiles >= FEW_TILES ? follow_launches(&longer, in, sms) : 0;
    return beside > 0 ? (clocks + beside / (BESIDE * BESIDE)) / 2 : clocks;
}

/* Of rows from `first` to `end` of a head, what a diagonal leaves them to walk: the blocks of keys that the last of them sees, and the
 * share of these that the groups of a tile see in the mean. packed: rows of a query. */
static double under_diagonal(const fa_pricing *x, const fa_work *w, double first, double end, double packed, double *share)
{
    double most = 0, sum = 0, groups = 0;
    for (double at = first; at < first + w->rows; at += w->group, groups++) {
        double keys = floor((fmin(at + w->group, end) - 1) / packed) + (double)x->band.hi + 1;
        double seen = at < end ? ceil(fmax(0, fmin(keys, (double)x->problem->sk)) / w->cols) : 0;
        sum += seen;
        most = fmax(most, seen);
    }
    *share = most > 0 ? sum / (most * groups) : 1;
    return most;
}

/* Of a walk: seconds in which nothing streams, since the first tiles begin all at once and the last end so; and those after the last round
 * that fills all thread blocks of an SM, in which the rest of the tiles streams, so much of them. */
typedef struct ends_of {
    double still, last, rest;
} ends_of;

/* Seconds of the chip for blocks of scores, and how long each unit is busy. */
static double walk(fa_cost *out, const fa_pricing *x, const fa_step *s, const fa_work *w, fa_visits v, fa_repeats in, ends_of *ends)
{
    const fa_problem *p = x->problem;
    const fa_arch *a = x->arch;
    bool pack = fa_step_packs(s);
    double clock = a->clock_ghz * 1e9, pairs = w->rows * w->cols / s->cluster, heads = (double)p->b * (pack ? p->hkv : p->hq);
    double tiles = ceil(rows_of(p, pack) / w->rows), repeats = in.units * in.members;

    /* Clocks of one SM for its part of a block of scores, by unit. */
    double matrix = pairs * w->matrix_flops / (w->rate * w->efficiency), exps = pairs * w->exps / a->exp_rate;
    double issue = w->issue / a->issue_rate, smem = w->smem_bytes / a->smem_bytes_clk;
    double sharing = w->gathers > 0 ? out->blocks_sm : fmax(1, fmin(out->blocks_sm, ceil((double)out->grid / repeats / a->sm_count)));
    double warps = sharing * s->threads / 32 / SCHEDULERS;
    double shows = w->shows >= 0 ? w->shows : SHOWS_ALONE + (SHOWS_SHARED - SHOWS_ALONE) * fmin(1, fmax(0, warps - 1));
    double other = w->felt > 0 ? norm(exps, issue, w->felt) : fmax(exps, issue);
    /* Groups walk side by side: alone each takes its own part of a block, and one whose mask ends early, or that has no rows, leaves the SM
     * to the others. In the tile that takes longest all have rows that are there. */
    double rows = rows_of(p, pack);
    double groups = w->group > 0 ? fmax(1, w->rows / s->cluster / w->group) : 1;
    double walked = w->group > 0 && v.all > 0 ? v.groups / (v.all * groups * s->cluster) : 1;
    if (w->even > 0 && w->group > 0) /* counted as if the last tile had what is left */
        walked = fmin(1, walked * tiles * ceil(ceil(rows / tiles) / w->group) / ceil(rows / w->group));
    double high = w->even > 0 ? ceil(rows / tiles) : fmin(rows, w->rows);
    double most = w->group > 0 && fa_step_row_tile(s) ? held(w, high) : walked;
    /* A warp has the matrix unit and the issue slots of its own scheduler: fewer warps than schedulers leave the others idle. */
    double lone = fmax(1, SCHEDULERS / (s->threads / 32.0)), together = fmax(1, lone / sharing);
    double units = fmax(matrix, other) + shows * fmin(matrix, other);
    double busy = fmax(units * together, smem), alone = units * lone / groups;
    double block = corner(busy * walked, (fmax(alone, smem * walked) + w->latency) / sharing);
    double full = corner(busy * most, (fmax(alone, smem * most) + w->latency) / sharing);
    double tile = w->tile_issue / a->issue_rate + w->tile_latency / sharing, followed = 0;
    if (!fa_step_row_tile(s) && fa_step_key_tile(s)) {
        /* A thread block takes keys of a KV head: all row tiles that see them, of the group, of a slice of it, or of one head. */
        double group = (double)p->hq / p->hkv, blocks = ceil((double)p->sk / fa_step_key_tile(s)), each = v.all * group / blocks;
        double heads_tile = fmin(fa_step_heads_tile(s), ceil(group / in.members)); /* no more than a launch has */
        double slices = heads_tile > 0 ? ceil(group / heads_tile) : in.members;    /* each is a tile */
        bool equal = v.longest == v.shortest;
        double full_slice = heads_tile > 0 ? fmin(heads_tile, group) : group / slices, last = group - (slices - 1) * full_slice;
        heads *= slices / group;
        v.all *= group / slices;
        each *= full_slice / group;
        v.longest = equal ? each : fmin(full_slice * tiles, 2 * each); /* under a diagonal */
        v.shortest = equal ? each * last / full_slice : 0;             /* what is left of a group is a shorter tile */
        tiles = blocks;
        if (equal && last < full_slice && in.members <= 1 && !(p->features & FA_FEATURE_LENGTHS)) {
            sliced k = { ceil((double)p->b * p->hkv / in.units), slices, blocks, each * full, v.shortest * full, tile };
            followed = follow_lengths(&k, (double)p->sk / fa_step_key_tile(s), in, a->sm_count);
        }
    } else if (!fa_step_row_tile(s)) { /* a thread block takes all row tiles of its head, one after the other */
        tile *= tiles;
        tiles = 1;
        v.longest = v.shortest = v.all;
    }

    /* Thread blocks take parts of a tile, and a prologue and an epilogue with each. */
    double pieces = w->cuts > 1 ? w->cuts : 1, part = ceil(v.longest / pieces) * full + tile; /* of a tile that is cut */
    if (w->cuts > 1 && w->rest <= 0) {
        bool equal = v.longest == v.shortest;
        tiles *= w->cuts;
        v.longest = ceil(v.longest / w->cuts);
        v.shortest = equal ? v.longest : v.shortest / w->cuts;
    }

    /* Equal tiles finish in whole rounds over the SMs; unequal ones are launched longest first and fill the gaps. Launch after launch. */
    double owners = heads * s->cluster, mean = owners * (v.all * block + tiles * tile) / a->sm_count, longest = v.longest * full + tile;
    double tiles_each = owners * tiles / repeats, usual = v.longest * block + tile, shortest = v.shortest * block + tile;
    /* The last tile of a head may have warpgroups without rows: the others wait for their own chains all the same. */
    double there = tiles > 1 && fa_step_row_tile(s) && w->cuts <= 1 && w->even <= 0 ? held(w, rows - (tiles - 1) * w->rows) : 1;
    if (there < 1 && v.longest == v.shortest) {
        double last = corner(busy * there, (fmax(alone, smem * there) + w->latency) / sharing);
        usual = fmax(usual, v.longest * ((tiles - 1) * full + last) / tiles + tile);
    }
    double waves = w->gathers > 0 ? sharing : ceil(tiles_each / a->sm_count);
    /* Few heads to a tile, and tiles of few keys that just fill a round, are chosen for the rounds that they fill: at all lengths of a
     * bucket, unless all of them have as many. A round of groups is long: two and three of them count as well, and no less than the rounds
     * of this length. */
    if (!fa_step_row_tile(s) && fa_step_key_tile(s)) {
        double beside = (waves + ceil(BESIDE * tiles_each / a->sm_count) / BESIDE) / 2;
        bool known = fa_problem_same_rounds(p, a->sm_count), by_head = p->hq == p->hkv || fa_step_heads_tile(s) == 1;
        if (known)
            waves = by_head ? waves : fmax(waves, beside);
        else if (fa_step_heads_tile(s) || (waves <= 1 && p->op == FA_BACKWARD))
            waves = beside;
        else if (waves <= FEW_ROUNDS && p->op == FA_BACKWARD && p->hq > p->hkv)
            waves = fmax(waves, beside);
    }
    bool dense = p->op == FA_FORWARD && p->mask == FA_MASK_CAUSAL && !(p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_SCORE));
    if (dense && v.longest != v.shortest && sharing < 2 && fa_step_row_tile(s) && w->group > 0 && w->cuts <= 1 && w->even <= 0 &&
        tiles <= FOLLOWED && tiles_each <= FOLLOWED_ROUNDS * a->sm_count) {
        double clocks_of[FOLLOWED], packed = pack ? p->hq / p->hkv : 1;
        double masked = groups > 1 ? MASKED * w->cols * (1 + floor(w->group / packed / w->cols)) : 0;
        int n = 0;
        for (double i = tiles - 1; i >= 0; i--, n++) {
            double share, seen = under_diagonal(x, w, i * w->rows, fmin(rows, (i + 1) * w->rows), packed, &share);
            share = 1 - RESTS * (1 - share);
            clocks_of[n] =
                seen * corner(busy * share, fmax(alone, smem * share) + w->latency) + tile + fmin(masked, MASKED * w->cols * seen);
        }
        followed = repeats * follow(clocks_of, n, tiles_each / tiles, a->sm_count);
    }
    double unequal = sharing < 2 ? drawn(tiles_each, a->sm_count, longest, shortest)
                                 : fmax(first_sm(tiles_each, a->sm_count, sharing, longest, shortest),
                                        last_round(tiles_each, a->sm_count, longest, shortest));
    double clocks = v.longest == v.shortest ? repeats * ((waves - 1) * usual + longest) : fmax(mean, repeats * unequal);
    if (followed > 0)
        clocks = followed;
    if (v.longest == v.shortest && in.last > 0 && !fa_step_heads_tile(s)) {
        double others = owners * tiles / (in.units - 1 + in.last) / in.members; /* tiles of a launch before the last */
        double rounds = (in.units - 1) * ceil(others / a->sm_count) + ceil(others * in.last / a->sm_count);
        clocks = in.members * (rounds - in.units) * usual + repeats * longest;
    }
    /* Two thread blocks that share an SM hide each other's waits. Where the last of a launch comes alone, nothing hides its own, the less
     * so the fewer rounds before it left the two apart. */
    double twos = floor(waves / 2);
    if (sharing == 2 && w->gathers <= 0 && repeats <= 1 && waves > 2 * twos && twos >= 1 && v.longest == v.shortest && w->rest <= 0) {
        double unhidden = v.longest * corner(busy * most, fmax(alone, smem * most) + w->latency) + tile;
        double last = usual + ALONE_SHOWS * fmax(0, unhidden - usual) / twos;
        clocks = 2 * twos * usual + last;
        ends->last = last / clock;
        ends->rest = 1 - 2 * twos * a->sm_count / tiles_each;
    }
    if (w->rest > 0) { /* rounds that are full, and one of parts */
        double whole = floor((tiles_each * repeats - w->rest) / a->sm_count) * usual;
        clocks = fmax(mean, whole + longest - usual + ceil(w->rest * pieces / a->sm_count) * part);
    }
    if (v.longest != v.shortest && s->per_sm && !s->counter)
        clocks *= DEALT;

    double all = owners * v.all / (a->sm_count * clock);
    out->t_matrix = all * walked * matrix;
    out->t_exp = all * walked * exps;
    out->t_issue = all * walked * issue + owners * tiles * tile / (a->sm_count * clock);
    out->t_smem = all * smem;
    ends->still = fmin(clocks, tile) / clock;
    return clocks / clock;
}

fa_status fa_price_step(const fa_pricing *x, const char *family, const fa_step *s, const fa_work *w, int regs, fa_repeats in, fa_cost *out)
{
    const fa_problem *p = x->problem;
    const fa_arch *a = x->arch;
    bool pack = fa_step_packs(s);
    *out = (fa_cost){ .bound = "", .limiter = "", .packed = pack };
    if (w->cols > 0 && w->rate == 0)
        return fa_fail(FA_UNSUPPORTED, "%s needs the unit %s, which %s lacks", family, w->unit, a->name);
    occupancy(out, a, s->smem, regs, s->threads);
    if (out->blocks_sm < 1)
        return fa_fail(FA_NO_FIT, "%s: no block fits an SM of %s: %s", family, a->name, out->limiter);
    fa_sizes sizes = fa_sizes_of(p, a->sm_count);
    int64_t total = fa_step_total(s, &sizes);
    if (total == 0) /* it is not launched */
        return FA_OK;
    out->grid = total > 0 ? fa_step_grid(s, total, a->sm_count) : total;
    if (s->per_sm && s->per_sm < out->blocks_sm) {
        out->occupancy *= (double)s->per_sm / out->blocks_sm;
        out->blocks_sm = s->per_sm;
        out->limiter = "grid";
    }
    if (out->grid < 1)
        return fa_fail(FA_UNSUPPORTED, "%s: some %.2g rows of query heads would need more than 2^31 - 1 blocks; accepted: smaller batches",
                       family, (double)p->b * p->hq * p->sq);
    out->waves = (double)out->grid / ((double)a->sm_count * out->blocks_sm);
    fa_tile_counts c = count(x, s, w);
    if (w->share < 1) {
        c.visits.all *= w->share;
        c.visits.groups *= w->share;
        c.visits.longest = fmax(1, c.visits.longest * (w->uneven > 0 ? fmin(1, w->share * w->uneven) : w->share));
        c.visits.shortest *= w->uneven > 0 ? 0 : w->share;
        c.traffic.read_k *= w->share;
        c.traffic.read_v *= w->share;
    }
    out->traffic = c.traffic;
    if (!w->algorithm)
        out->traffic.read_sp = w->bytes;
    ends_of ends = { .still = 0 };
    double seconds = w->cols > 0 ? walk(out, x, s, w, c.visits, in, &ends) : 0;
    double fed = fmin(1, SM_SPARE * (double)out->grid / (in.units * in.members) / a->sm_count); /* an idle SM asks for no bytes */
    out->t_l2 = fa_traffic_total(&out->traffic) / (a->l2_gbs * 1e9 * w->l2_speed * fed);
    out->t_hbm = hbm_bytes(x, out, s, w) / (a->hbm_gbs * 1e9 * w->hbm_speed);
    double stream = fmax(out->t_l2, out->t_hbm);
    if (w->cols <= 0)
        seconds = stream / w->efficiency + w->latency / (a->clock_ghz * 1e9);
    else if (ends.last > 0)
        seconds = corner(seconds - ends.last, stream * (1 - ends.rest)) + corner(ends.last, stream * ends.rest);
    else
        seconds = ends.still + corner(seconds - ends.still, stream);
    out->seconds = (a->launch_seconds > 0 ? a->launch_seconds : FA_LAUNCH_SECONDS) * in.launches * in.units * in.members + seconds;
    return FA_OK;
}
