/* The model: numbers of the literature exactly, and counts against brute force. */
#include "gen/literature.h"
#include "gen/model.h"
#include "gen/row_tiles.h"
#include "test_gen_toy.h"
#include <math.h>

static fa_band band(const fa_problem *p)
{
    return fa_band_of(p, FA_BOTTOM_RIGHT, 0, -1, -1);
}

/* One fp32 head, N = 2048, d = 64: naive 12 N d + 16 N^2 bytes, 4 N^2 d + 5 N^2 FLOPs. */
Test(literature, naive_fp32_2048_64)
{
    fa_problem p = shaped_problem("fp32,d=64,b=1,hq=1,sq=2048");
    fa_traffic t = fa_model_naive(&p);
    double n = 2048, d = 64, flops = fa_model_matrix_flops(&p, band(&p)) + fa_model_other_flops(&p, band(&p));
    cr_expect_eq(fa_traffic_without_output(&t), 68681728);
    cr_expect_eq(fa_traffic_without_output(&t), 12 * n * d + 16 * n * n);
    cr_expect_eq(fa_traffic_total(&t), fa_traffic_without_output(&t) + 4 * n * d);
    cr_expect_eq(t.held, 8 * n * n);
    cr_expect_eq(flops, 4 * n * n * d + 5 * n * n);
    cr_expect_eq(round(10 * flops / fa_traffic_without_output(&t)), 159);
}

/* FlashAttention-2 with B_r = 64 moves 8 N d (1 + N / B_r) bytes. */
Test(literature, flash2_fp32_2048_64)
{
    fa_problem p = shaped_problem("fp32,d=64,b=1,hq=1,sq=2048");
    fa_traffic t = fa_model_flash2(&p, 64, 0, band(&p), 0);
    cr_expect_eq(fa_traffic_total(&t), 34603008);
    cr_expect_eq(fa_traffic_total(&t), 8.0 * 2048 * 64 * (1 + 2048.0 / 64));
    cr_expect_eq(t.held, 0);
    t = fa_model_flash2(&p, 64, 0, band(&p), 1);
    cr_expect_eq(t.write_lse, 4 * 2048);
    cr_expect_eq(fa_traffic_total(&t), 34603008 + 4 * 2048);
}

/* The tile 64 x 64 with Q, K, V and S in fp32 fills 64 KiB. */
Test(literature, tile_64_64_fp32)
{
    fa_problem p = shaped_problem("fp32,d=64");
    cr_expect_eq(fa_model_tile_sram(&p, 64, 64), 65536);
}

/* 2-byte values, N = 32768, d = 128: FlashAttention-2 with tile 158 against two-dimensional tiles of 217. */
Test(literature, tiles_158_and_217)
{
    fa_problem p = shaped_problem("bf16,d=128,b=1,hq=1,sq=32768");
    fa_traffic f = fa_model_flash2(&p, 158, 0, band(&p), 0), t = fa_model_tiled2d(&p, 217, band(&p), 2);
    cr_expect_eq(f.read_k / 2, 208.0 * 32768 * 128, "K is read ceil(32768 / 158) = 208 times");
    cr_expect_eq(fa_traffic_read(&f) / 2, 1749024768);
    cr_expect_eq(fa_traffic_write(&f) / 2, 4194304);
    cr_expect_eq(fa_traffic_read(&t) / 2, 3426746368);
    cr_expect_eq(fa_traffic_write(&t) / 2, 2151677952);
}

/* The ratio of their totals. The six published values, 2.8 3.1 3.2 3.2 3.2 3.2, are those of these six lengths; 2048 and
 * 65536, left out there, give 3.1 and 3.2. */
Test(literature, ratios_1024_to_131072)
{
    static const int rows[][2] = { { 1024, 28 },  { 4096, 31 },   { 8192, 32 }, { 16384, 32 },
                                   { 32768, 32 }, { 131072, 32 }, { 2048, 31 }, { 65536, 32 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        snprintf(text, sizeof text, "bf16,d=128,b=1,hq=1,sq=%d", rows[i][0]);
        fa_problem p = shaped_problem(text);
        fa_traffic f = fa_model_flash2(&p, 158, 0, band(&p), 0), t = fa_model_tiled2d(&p, 217, band(&p), 2);
        cr_expect_eq((int)floor(10 * fa_traffic_total(&t) / fa_traffic_total(&f) + 0.5), rows[i][1], "N = %d", rows[i][0]);
    }
}

/* FlashAttention-1, algorithm 1: K and V once; Q, O, m and l once per block of K, and the three first written as 0, -inf and 0. */
Test(literature, flash1)
{
    fa_problem p = shaped_problem("fp32,d=64,b=1,hq=1,sq=2048");
    fa_traffic t = fa_model_flash1(&p, 64, 64, band(&p));
    double nd = 4.0 * 2048 * 64, blocks = 2048.0 / 64;
    cr_expect_eq(t.read_k + t.read_v, 2 * nd);
    cr_expect_eq(t.read_q, blocks * nd);
    cr_expect_eq(t.write_o, (blocks + 1) * nd);
    cr_expect_eq(t.write_sp, (blocks + 1) * 8 * 2048);
    cr_expect_eq(t.write_lse, 0);
    cr_expect_eq(t.read_sp - blocks * nd, blocks * 8 * 2048);
    cr_expect_gt(fa_traffic_total(&t), 34603008, "FlashAttention-2 moves less");
}

/* Scores [1, 4, 2, 5, 3] in blocks of 2 and 3. */
Test(literature, online_softmax)
{
    static const double score[5] = { 1, 4, 2, 5, 3 }, want[3] = { 1.53255989, 1.57817303, 0.26207384 };
    static const double value[5][3] = { { 0.1, 0.2, 0.3 }, { 1, 1, 1 }, { 0.5, 0, 0.5 }, { 2, 2, 0 }, { 0.1, 0.8, 0.1 } };
    static const int block[3] = { 0, 2, 5 };
    double m = -INFINITY, l = 0, o[3] = { 0 };
    for (int b = 0; b < 2; b++) {
        double top = m;
        for (int j = block[b]; j < block[b + 1]; j++)
            top = fmax(top, score[j]);
        double scale = exp(m - top);
        l *= scale;
        for (int k = 0; k < 3; k++)
            o[k] *= scale;
        m = top;
        for (int j = block[b]; j < block[b + 1]; j++) {
            double p = exp(score[j] - m);
            l += p;
            for (int k = 0; k < 3; k++)
                o[k] += p * value[j][k];
        }
    }
    for (int k = 0; k < 3; k++)
        cr_expect_float_eq(o[k] / l, want[k], 5e-9);
}

static uint32_t seed = 1;
static int roll(int lo, int hi)
{
    seed = seed * 1664525u + 1013904223u;
    return lo + (int)((seed >> 8) % (uint32_t)(hi - lo + 1));
}

static fa_problem random_problem(void)
{
    fa_problem p = shaped_problem("bf16,d=64,dv=40");
    p.mask = roll(0, 2);
    p.hkv = roll(1, 3);
    p.hq = p.hkv * roll(1, 4);
    p.b = roll(1, 3);
    p.sq = roll(1, 60);
    p.sk = roll(1, 60);
    return p;
}

static bool sees(const fa_problem *p, int64_t off, int64_t left, int64_t right, int64_t i, int64_t j)
{
    if (p->mask == FA_MASK_NONE)
        return true;
    if (p->mask == FA_MASK_CAUSAL)
        left = -1, right = 0;
    return (left < 0 || j - (i + off) >= -left) && (right < 0 || j - (i + off) <= right);
}

/* Pairs, and keys per row tile, counted one by one. */
Test(model, bands_against_brute_force)
{
    for (int n = 0; n < 3000; n++) {
        fa_problem p = random_problem();
        int diagonal = roll(0, 2), br = roll(1, 40), pack = roll(0, 1);
        int64_t offset = roll(-80, 80), left = roll(-1, 70), right = roll(-1, 70);
        int64_t off = diagonal == FA_TOP_LEFT ? 0 : diagonal == FA_OFFSET ? offset : p.sk - p.sq;
        fa_band b = fa_band_of(&p, diagonal, offset, left, right);
        double pairs = 0, keys = 0, queries = 0;
        int group = pack ? p.hq / p.hkv : 1, rows = p.sq * group;
        for (int i = 0; i < p.sq; i++)
            for (int j = 0; j < p.sk; j++) {
                bool in = i + b.lo <= j && j <= i + b.hi;
                cr_assert_eq(in, sees(&p, off, left, right, i, j));
                pairs += in;
            }
        cr_assert_eq(fa_pairs_count(&(fa_pairs){ p.sq, p.sk, b }), pairs);
        cr_assert_eq(fa_model_matrix_flops(&p, b), 2 * pairs * (64 + 40) * p.b * p.hq);
        /* A tile reads from the first key that its first row sees on the left to the last that its last row sees. */
        for (int r = 0; r < rows; r += br) {
            int last = (r + br < rows ? r + br : rows) - 1;
            double before = keys;
            for (int j = 0; j < p.sk; j++)
                keys += j >= r / group + b.lo && j <= last / group + b.hi;
            queries += keys > before ? last - r + 1 : 0; /* a tile that sees no key reads nothing */
        }
        fa_traffic t = fa_model_flash2(&p, br, pack, b, 1);
        double heads = (double)p.b * (pack ? p.hkv : p.hq);
        cr_assert_eq(t.read_k, heads * keys * 64 * 2);
        cr_assert_eq(t.read_v, heads * keys * 40 * 2);
        cr_assert_eq(t.read_q, heads * queries * 64 * 2);
        cr_assert_eq(t.write_o, (double)p.b * p.hq * p.sq * 40 * 2);
        cr_assert_eq(t.write_lse, (double)p.b * p.hq * p.sq * 4);
    }
}

/* FlashAttention-1 and two-dimensional tiles under a mask, counted tile by tile and block by block. */
Test(model, older_algorithms_against_brute_force)
{
    for (int n = 0; n < 1000; n++) {
        fa_problem p = random_problem();
        int br = roll(1, 40), bc = roll(1, 40);
        p.o_dtype = roll(0, 1) ? FA_F32 : FA_BF16;
        fa_band b = fa_band_of(&p, FA_OFFSET, roll(-80, 80), roll(-1, 70), roll(-1, 70));
        double row_blocks = 0, keys = 0, pairs = 0, rows = 0, columns = 0, heads = (double)p.b * p.hq, all = heads * p.sq;
        for (int j = 0; j < p.sk; j++)
            columns += b.lo <= j && j <= p.sq - 1 + b.hi;
        for (int r = 0; r < p.sq; r += br) {
            int last = (r + br < p.sq ? r + br : p.sq) - 1, seen = 0;
            for (int k = 0; k < p.sk; k += bc) {
                int here = 0;
                for (int j = k; j < k + bc && j < p.sk; j++)
                    here += j >= r + b.lo && j <= last + b.hi;
                row_blocks += here ? last - r + 1 : 0;
                seen += here;
            }
            keys += seen;
            pairs += (double)seen * (last - r + 1);
            rows += seen ? last - r + 1 : 0;
        }
        row_blocks *= heads, keys *= heads, pairs *= heads, rows *= heads, columns *= heads;
        fa_traffic f = fa_model_flash1(&p, br, bc, b), t = fa_model_tiled2d(&p, br, b, 4);
        bool half = p.o_dtype == FA_BF16;
        cr_assert_eq(f.read_q, row_blocks * 64 * 2);
        cr_assert_eq(f.read_k, columns * 64 * 2);
        cr_assert_eq(f.read_v, columns * 40 * 2);
        cr_assert_eq(f.read_sp, row_blocks * (40 * 4 + 8) + (half ? all * 40 * 4 : 0));
        cr_assert_eq(f.write_o + f.write_sp, (row_blocks + all) * (40 * 4 + 8) + (half ? all * 40 * 2 : 0));
        cr_assert_eq(t.read_q, rows * 64 * 2);
        cr_assert_eq(t.read_k, keys * 64 * 2);
        cr_assert_eq(t.read_v, keys * 40 * 2);
        cr_assert(t.read_sp == 2 * 4 * pairs && t.write_sp == t.read_sp);
        cr_assert_eq(t.write_o, all * 40 * (half ? 2 : 4));
    }
}

/* Gradients: the passes of the naive algorithm are its traffic; those of FlashAttention counted tile by tile and block by block. */
Test(model, gradients_against_brute_force)
{
    for (int n = 0; n < 600; n++) {
        fa_problem p = random_problem();
        fa_literature_pass pass[FA_LITERATURE_PASSES];
        int br = roll(1, 40), bc = roll(1, 40);
        p.op = FA_BACKWARD;
        p.o_dtype = FA_BF16;
        fa_band b = fa_band_of(&p, FA_OFFSET, roll(-80, 80), roll(-1, 70), roll(-1, 70));
        double turns = 0, columns = 0, heads = (double)p.b * p.hq, rows = heads * p.sq, pairs = rows * p.sk, bytes = 0, flops = 0;
        for (int j = 0; j < p.sk; j++)
            columns += heads * (b.lo <= j && j <= p.sq - 1 + b.hi);
        for (int k = 0; k < p.sk; k += bc)
            for (int r = 0; r < p.sq; r += br) {
                int last = (r + br < p.sq ? r + br : p.sq) - 1;
                bool seen = false;
                for (int j = k; j < k + bc && j < p.sk; j++)
                    seen = seen || (j >= r + b.lo && j <= last + b.hi);
                turns += seen ? heads * (last - r + 1) : 0;
            }
        fa_traffic t = fa_literature_naive(&p);
        for (int i = 0, passes = fa_literature_naive_passes(&p, pass); i < passes; i++)
            bytes += pass[i].bytes, flops += pass[i].flops;
        cr_assert_eq(fa_traffic_total(&t), bytes);
        cr_assert_eq(flops, 2 * pairs * (2 * 64 + 2 * 40));
        cr_assert_eq(t.held, 3 * 2 * pairs);
        const struct {
            double read_out;
        } of[] = { { turns * (2 * 40 * 2 + 8) }, { turns * (40 * 2 + 8) + 2 * rows * 40 * 2 } };
        for (size_t i = 0; i < 2; i++) {
            fa_traffic f = fa_literature_row(FA_BACKWARD, 1 + i)->traffic(&p, br, bc, b);
            cr_assert_eq(f.read_q, turns * 64 * 2);
            cr_assert(f.read_k == columns * 64 * 2 && f.read_v == columns * 40 * 2);
            cr_assert_eq(f.read_out, of[i].read_out);
            cr_assert_eq(f.read_sp, (turns + rows) * 64 * 4);
            cr_assert_eq(f.write_sp, (turns + rows) * 64 * 4);
            cr_assert_eq(f.write_grads, rows * 64 * 2 + heads * p.sk * (64 + 40) * 2);
        }
        p.op = FA_FORWARD;
        t = fa_literature_naive(&p), bytes = 0;
        for (int i = 0, passes = fa_literature_naive_passes(&p, pass); i < passes; i++)
            bytes += pass[i].bytes;
        cr_assert_eq(fa_traffic_total(&t), bytes);
    }
}

/* The plain loop over row tiles that the closed form stands for. */
static fa_row_tiles_sum by_loop(const fa_row_tiles *t)
{
    fa_row_tiles_sum s = { .shortest = INFINITY, .first = t->sk };
    int64_t rows = t->sq * t->group;
    for (int64_t r = 0; r < rows; r += t->br) {
        int64_t last = r + t->br < rows ? r + t->br - 1 : rows - 1;
        int64_t hi = last / t->group + t->band.hi, lo = r / t->group + t->band.lo;
        double n = (double)(last - r + 1);
        hi = hi < t->sk ? hi : t->sk - 1;
        lo = lo > 0 ? lo : 0;
        double keys = hi >= lo ? (double)(hi - lo + 1) : 0, blocks = hi >= lo ? (double)(hi / t->bc - lo / t->bc + 1) : 0;
        s.blocks += blocks;
        s.longest = fmax(s.longest, blocks);
        s.shortest = fmin(s.shortest, blocks);
        if (hi < lo)
            continue;
        s.rows += n;
        s.keys += keys;
        s.pairs += n * keys;
        s.row_blocks += n * blocks;
        s.first = lo < s.first ? lo : s.first;
        s.end = hi + 1 > s.end ? hi + 1 : s.end;
    }
    if (s.end <= s.first)
        s.first = s.end = 0;
    return s;
}

static void expect_as_by_loop(const fa_row_tiles *t)
{
    fa_row_tiles_sum a = by_loop(t), b = fa_row_tiles_count(t);
    cr_assert(a.rows == b.rows && a.keys == b.keys && a.pairs == b.pairs && a.blocks == b.blocks && a.longest == b.longest &&
                  a.shortest == b.shortest && a.row_blocks == b.row_blocks && a.first == b.first && a.end == b.end,
              "sq=%lld sk=%lld group=%lld br=%lld bc=%lld band %lld .. %lld", (long long)t->sq, (long long)t->sk, (long long)t->group,
              (long long)t->br, (long long)t->bc, (long long)t->band.lo, (long long)t->band.hi);
}

/* Small lengths meet every kind of stretch and their borders; long ones the rounds of Euclid's algorithm. Bands lie off the grid of tiles,
 * beyond the corners, and beside all keys. */
Test(model, row_tiles_by_closed_form_and_by_loop)
{
    for (int n = 0; n < 60000; n++) {
        int far = n % 3 ? 40 : 4000, lo = roll(-far, far), hi = roll(0, 3) ? roll(lo, far) : lo;
        fa_row_tiles t = { roll(0, far), roll(0, far), roll(0, 1) ? roll(1, 9) : 1, roll(1, n % 5 ? 24 : 300), roll(1, 24), { lo, hi } };
        expect_as_by_loop(&t);
    }
    for (int n = 0; n < 3000; n++) { /* as problems and kernels have them */
        static const int tile[] = { 1, 16, 48, 64, 80, 128, 192, 256 };
        fa_problem p = random_problem();
        p.sq = roll(1, 1 << 15), p.sk = roll(0, 1) ? p.sq : roll(1, 1 << 15);
        fa_band b = fa_band_of(&p, roll(0, 2), roll(-40000, 40000), roll(-1, 5000), roll(-1, 5000));
        fa_row_tiles t = { p.sq, p.sk, roll(0, 1) ? p.hq / p.hkv : 1, tile[roll(1, 7)], tile[roll(0, 7)], b };
        expect_as_by_loop(&t);
    }
}

/* Lengths that no loop reaches: 2^30 rows of 2^16 heads in a group, one row per tile, against sums by hand. */
Test(model, row_tiles_of_the_longest_problems)
{
    const int64_t n = 1 << 30, g = 1 << 16;
    fa_row_tiles t = { n, n, 1, 1, 1, { -n, 0 } };
    fa_row_tiles_sum s = fa_row_tiles_count(&t);
    cr_expect_eq(s.blocks, 0x1p59 + 0x1p29, "n (n + 1) / 2");
    cr_expect(s.longest == (double)n && s.shortest == 1 && s.first == 0 && s.end == n);
    t = (fa_row_tiles){ n, n, g, 1, 1, { -n, n } };
    s = fa_row_tiles_count(&t);
    cr_expect(s.keys == 0x1p76 && s.pairs == 0x1p76 && s.rows == 0x1p46);
    t = (fa_row_tiles){ n, n, 1, 128, 128, { -1023, 0 } };
    s = fa_row_tiles_count(&t);
    cr_expect_eq(s.blocks, 9 * 0x1p23 - (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8), "a window of 1024 lies in nine blocks, at first in fewer");
    cr_expect(s.longest == 9 && s.shortest == 1);
}

Test(model, bands_do_not_overflow)
{
    fa_problem p = shaped_problem("bf16,d=64,mask=window,sq=1073741824");
    fa_band b = fa_band_of(&p, FA_OFFSET, INT64_MAX, INT64_MAX, INT64_MAX);
    cr_expect(b.lo >= -(1 << 30));
    cr_expect_eq(b.hi, 1 << 30);
    b = fa_band_of(&p, FA_OFFSET, INT64_MIN, INT64_MAX, INT64_MAX);
    cr_expect(b.lo == -(1 << 30) && b.hi >= -(1 << 30));
    p.mask = FA_MASK_CAUSAL;
    cr_expect_eq(fa_pairs_count(&(fa_pairs){ p.sq, p.sk, fa_band_of(&p, 0, 0, 0, 0) }), (1ll << 59) + (1ll << 29));
    p.mask = FA_MASK_NONE;
    cr_expect_eq(fa_pairs_count(&(fa_pairs){ p.sq, p.sk, fa_band_of(&p, 0, 0, 0, 0) }), 1ll << 60);
}

static fa_step step_of(const char *grid)
{
    fa_step s = { .cluster = 1 };
    cr_assert_eq(fa_product_parse(&s.grid, grid), FA_OK, "%s", fa_last_error());
    return s;
}

Test(model, tiles_of_a_launch)
{
    static const struct {
        const char *grid;
        int64_t b, hq, hkv, sq, sk, total;
        int32_t rows;
        bool packs;
    } rows[] = {
        { "sq/64 hq b", 2, 8, 2, 100, 1000, 2 * 8 * 2, 64, false },
        { "rows/64 hkv b", 2, 8, 2, 100, 1000, 2 * 2 * 7, 64, true },
        { "sq/64 sk/128 hq b", 2, 8, 2, 100, 1000, 2 * 8 * 2 * 8, 64, false },
        { "sk/128 hq b", 1, 1, 1, 100, 1000, 8, 0, false },
        { "sq/64 sk/64 hq b", 2, 8, 2, 100, 0, 0, 64, false },
        { "sms 3", 2, 8, 2, 100, 1000, 132 * 3, 0, false },
        { "", 2, 8, 2, 100, 1000, 1, 0, false },
        { "sq hq", 1, 1, 1, INT32_MAX, 1, INT32_MAX, 1, false },
        { "sq hq", 1, 2, 1, INT32_MAX, 1, -1, 1, false },
        { "sq/2 rows rows rows total_k", 1, 1 << 16, 1, 1 << 30, 1 << 30, -1, 2, true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_step s = step_of(rows[i].grid);
        fa_problem p = { .b = (int32_t)rows[i].b,
                         .hq = (int32_t)rows[i].hq,
                         .hkv = (int32_t)rows[i].hkv,
                         .sq = (int32_t)rows[i].sq,
                         .sk = (int32_t)rows[i].sk };
        fa_sizes sizes = fa_sizes_of(&p, 132);
        cr_expect_eq(fa_step_total(&s, &sizes), rows[i].total, "%s: %lld", rows[i].grid, (long long)fa_step_total(&s, &sizes));
        cr_expect(fa_step_row_tile(&s) == rows[i].rows && fa_step_packs(&s) == rows[i].packs, "%s", rows[i].grid);
    }
}

Test(model, products_are_read_as_they_are_printed)
{
    static const char *const texts[] = { "",           "sq/64 hq b",   "rows/16 hkv b 3",    "sms 2",
                                         "total_q dv", "sk/128 units", "sq/192 group units", "units group sq/64 sk/64 4096" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fa_product p, again;
        char text[128];
        cr_assert_eq(fa_product_parse(&p, texts[i]), FA_OK);
        fa_product_print(text, sizeof text, &p);
        cr_expect_str_eq(text, texts[i]);
        cr_assert_eq(fa_product_parse(&again, text), FA_OK);
        cr_expect(!memcmp(&p, &again, sizeof p));
    }
}

/* Pairs of a sequence and a KV head, and the query heads of one. */
Test(model, units_and_groups)
{
    static const struct {
        const char *product, *problem;
        int64_t value;
    } rows[] = {
        { "units", "bf16,d=64,b=3,hq=8,hkv=4,sq=1,sk=1", 12 },        { "group", "bf16,d=64,b=3,hq=8,hkv=4,sq=1,sk=1", 2 },
        { "units group", "bf16,d=64,b=3,hq=8,hkv=4,sq=1,sk=1", 24 },  { "units/5", "bf16,d=64,b=3,hq=8,hkv=4,sq=1,sk=1", 3 },
        { "group", "bf16,d=64,b=3,hq=7,hkv=7,sq=1,sk=1", 1 },         { "group", "bf16,d=64,b=3,hq=32,hkv=1,sq=1,sk=1", 32 },
        { "sq/64 units", "bf16,d=64,b=2,hq=6,hkv=3,sq=65,sk=1", 12 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_product product;
        fa_problem p = shaped_problem(rows[i].problem);
        fa_sizes sizes = fa_sizes_of(&p, 132);
        cr_assert_eq(fa_product_parse(&product, rows[i].product), FA_OK, "%s", fa_last_error());
        cr_expect_eq(fa_product_value(&product, &sizes), rows[i].value, "%s of %s: %lld", rows[i].product, rows[i].problem,
                     (long long)fa_product_value(&product, &sizes));
        cr_expect_eq(fa_product_has(&product, FA_EXTENT_UNITS), strstr(rows[i].product, "units") != NULL);
        cr_expect_eq(fa_product_has(&product, FA_EXTENT_GROUP), strstr(rows[i].product, "group") != NULL);
    }
    fa_problem none = { .b = 3, .hq = 8 };
    fa_sizes sizes = fa_sizes_of(&none, 132);
    cr_expect(sizes.of[FA_EXTENT_UNITS] == 0 && sizes.of[FA_EXTENT_GROUP] == 0, "no KV head");
}

Test(model, a_word_that_is_no_extent_is_told_all_that_are)
{
    static const char *const wrong[] = { "unit", "groups", "units/0", "units/x", "group/" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fa_product p;
        cr_expect_eq(fa_product_parse(&p, wrong[i]), FA_INVALID, "%s", wrong[i]);
        cr_expect(
            strstr(fa_last_error(), wrong[i]) && strstr(fa_last_error(), "is no extent; accepted: b, sq, sk, hq, hkv, d, dv, rows,") &&
                strstr(fa_last_error(), ", group, units, ") && strstr(fa_last_error(), ", each alone or as NAME/TILE, and numbers from 1"),
            "%s", fa_last_error());
    }
}

Test(model, grids)
{
    fa_step s = step_of("sq/64 hq b");
    cr_expect_eq(fa_step_grid(&s, 1000, 132), 1000, "a block per tile");
    s.cluster = 4;
    cr_expect_eq(fa_step_grid(&s, 1001, 132), 4004, "a cluster per tile");
    cr_expect_eq(fa_step_grid(&s, INT32_MAX, 132), -1, "2^31 blocks");
    s.cluster = 1, s.per_sm = 2;
    cr_expect_eq(fa_step_grid(&s, 1000, 132), 264, "persistent: what the SMs hold");
    cr_expect_eq(fa_step_grid(&s, 263, 132), 263, "no block without a tile");
    s.cluster = 5;
    cr_expect_eq(fa_step_grid(&s, 1000, 132), 260);
    cr_expect_eq(fa_step_grid(&s, 3, 132), 15);
    cr_expect_eq(fa_step_grid(&s, 1000, 2), 5, "at least one cluster");
    cr_expect_eq(fa_step_grid(&s, 0, 132), 0);
}

Test(model, sections)
{
    fa_step s = step_of("sq/64 hq b");
    fa_problem p = shaped_problem("bf16,d=128,b=4,hq=32,hkv=8,sq=8192");
    int64_t head = 8192 * 256 * 2; /* 4 MiB */
    cr_expect_eq(fa_step_section(&s, &p, 8192, 1000, 3 * 4 * head), 8 * 4);
    cr_expect_eq(fa_step_section(&s, &p, 8192, 1000, 3 * 6 * head), 11 * 4, "three of 12, 12 and 8 become three of 11, 11 and 10");
    s = step_of("rows/64 hkv b");
    cr_expect_eq(fa_step_section(&s, &p, 8192, 1000, 3 * 4 * head), 8);
    cr_expect_eq(fa_step_section(&s, &p, 8192, 1000, 0), 1);
    cr_expect_eq(fa_step_section(&s, &p, 8192, 1000, INT64_MAX), 32, "no more than there are");
    int64_t key = 256 * 2;
    cr_expect_eq(fa_step_section(&s, &p, 1000, 5000, 3 * 4 * head), 32, "a window: 64 Ki - 5000 keys at 1000 a head are 60 heads, of 32");
    cr_expect_eq(fa_step_section(&s, &p, 1000, 5000, 3 * 5000 * key), 5, "5000 keys at 1000 a head");
    cr_expect_eq(fa_step_section(&s, &p, 1000, 5000, 3 * 1000 * key), 1, "at least one");
    cr_expect_eq(fa_step_section(&s, &p, 9000, 5000, 3 * 4 * head), 8, "a window beyond all keys is none");
}
