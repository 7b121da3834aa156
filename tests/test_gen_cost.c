/* The cost: its plain sense, what a family may say, and what a whole space costs. */
#include "gen/family.h"
#include "gen/model.h"
#include "test_gen_toy.h"
#include "verify/operands/random.h"
#include <math.h>

/* A family with a simple work(): 128 x 64 blocks of scores. */
static const char lua[] =
    "return { doc = 'x', default = false, tunables = { { 'threads', { 128, 256 }, 't' }, { 'smem', { 1, 64, 160 }, 'KiB' } },\n"
    "  supports = function() return true end, constraints = {},\n"
    "  layout = function(p, c) return { bytes = c.smem * 1024, threads = c.threads, regs = 128 } end,\n"
    "  steps = function(p, c, a, l) return { { entry = 'x', grid = 'sq/128 hq b' } } end,\n"
    "  work = function(p, c, a, l) if p.sq == 0 then fail('work sees the shape') end\n"
    "    return { rows = 128, cols = 64, matrix_flops = 4 * p.d, unit = 'mma16', exps = 1, issue = 1000, smem_bytes = 65536 } end }\n";

static fa_cost cost(fa_gen *g, const char *problem, const char *config, const char *arch, int regs)
{
    fa_problem p = shaped_problem(problem);
    fa_config c;
    fa_cost k;
    cr_assert_eq(fa_config_parse(&c, config), FA_OK);
    cr_assert_eq(fa_model_cost(g, &p, &c, fa_arch_find(arch), regs, &k), FA_OK, "%s: %s", config, fa_last_error());
    return k;
}

Test(cost, plain_sense)
{
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", lua);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    const char *big = "bf16,d=128,b=8,hq=16,sq=4096", *c = "toy:threads=128,smem=64";
    fa_cost k = cost(g, big, c, "sm_80", 0), again = cost(g, big, c, "sm_80", 0);
    cr_expect_eq(k.seconds, again.seconds, "deterministic");
    cr_expect_eq(k.grid, 8 * 16 * 32);
    cr_expect(k.blocks_sm == 2 && !strcmp(k.limiter, "smem"), "%d by %s", k.blocks_sm, k.limiter);
    cr_expect_float_eq(k.occupancy, 8.0 / 64, 1e-12);
    cr_expect_float_eq(k.waves, 4096.0 / 216, 1e-9);
    cr_expect_eq(k.flops, 4096.0 * 4096 * (4 * 128 + 5) * 128);
    cr_expect_str_eq(k.bound, "matrix");
    /* The matrix units alone: 2 * 2 * N^2 d per head at 312 TFLOP/s. */
    cr_expect_float_eq(k.t_matrix, 4.0 * 4096 * 4096 * 128 * 128 / 311.9e12, 0.01 * k.t_matrix);
    cr_expect(k.seconds >= k.t_matrix && k.seconds < 3 * k.t_matrix);
    cr_expect_eq(k.bytes, fa_traffic_total(&k.traffic));

    cr_expect_gt(k.seconds, cost(g, "bf16,d=128,b=4,hq=16,sq=4096", c, "sm_80", 0).seconds, "more work takes longer");
    fa_cost causal = cost(g, "bf16,d=128,mask=causal,b=8,hq=16,sq=4096", c, "sm_80", 0);
    cr_expect(causal.seconds < 0.6 * k.seconds && causal.seconds > 0.45 * k.seconds, "half the tiles, and the diagonal");
    cr_expect_lt(cost(g, big, c, "h200", 0).seconds, k.seconds);
    cr_expect_gt(cost(g, big, "toy:threads=128,smem=160", "sm_80", 0).seconds, k.seconds, "one warp per scheduler hides less");
    cr_expect_eq(cost(g, big, "toy:threads=256,smem=1", "sm_80", 0).blocks_sm, 2, "128 registers, 256 threads");
    cr_expect_str_eq(cost(g, big, "toy:threads=256,smem=1", "sm_80", 0).limiter, "regs");
    cr_expect_eq(cost(g, big, "toy:threads=256,smem=1", "sm_80", 168).blocks_sm, 1, "the compiler's count counts");
    cr_expect_eq(cost(g, big, "toy:threads=256,smem=1", "sm_80", 32).blocks_sm, 8);
    cr_expect_str_eq(cost(g, big, "toy:threads=256,smem=1", "sm_80", 32).limiter, "regs");

    fa_cost decode = cost(g, "bf16,d=128,b=64,hq=8,sq=1,sk=8192", c, "h200", 0);
    cr_expect_geq(decode.seconds, decode.t_hbm);
    cr_expect_float_eq(decode.t_hbm, 64 * 8 * 8192 * 256 * 2.0 / 4560e9, 0.01 * decode.t_hbm, "K and V cross HBM once");
    fa_cost window = cost(g, "bf16,d=128,mask=window,b=8,hq=16,sq=16384", c, "sm_80", 0);
    fa_cost full = cost(g, "bf16,d=128,mask=causal,b=8,hq=16,sq=16384", c, "sm_80", 0);
    cr_expect_lt(window.seconds, 0.2 * full.seconds);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

Test(cost, clusters_and_persistent_grids)
{
    static const char many[] =
        "return { doc = 'x', default = false, tunables = { { 'cluster', { 1, 2 }, 'n' }, { 'per_sm', { 0, 1 }, 'n' } },\n"
        "  supports = function() return true end, constraints = {},\n"
        "  layout = function(p, c) return { bytes = 65536, threads = 128, regs = 128 } end,\n"
        "  steps = function(p, c, a, l) return { { entry = 'x', grid = ('sq/%d hq b'):format(128 * c.cluster), cluster = c.cluster, per_sm "
        "= c.per_sm } } end,\n"
        "  work = function(p, c, a, l) return { rows = 128 * c.cluster, cols = 64, unit = 'wgmma16', issue = 16000, smem_bytes = 65536,\n"
        "    latency = 100, tile_latency = 500 } end }\n";
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", many);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    const char *big = "bf16,d=128,b=8,hq=16,sq=8192";
    int sms = fa_arch_find("h200")->sm_count;
    fa_cost one = cost(g, big, "toy:cluster=1,per_sm=0", "h200", 0), two = cost(g, big, "toy:cluster=2,per_sm=0", "h200", 0),
            stay = cost(g, big, "toy:cluster=1,per_sm=1", "h200", 0), both = cost(g, big, "toy:cluster=2,per_sm=1", "h200", 0);
    cr_expect(one.grid == 8192 && two.grid == 8192, "%d and %d blocks", (int)one.grid, (int)two.grid);
    cr_expect_float_eq(two.t_matrix, one.t_matrix, 1e-12 * one.t_matrix, "a cluster shares the products");
    cr_expect_float_eq(two.t_exp, one.t_exp, 1e-12 * one.t_exp);
    cr_expect_float_eq(two.t_issue, one.t_issue, 1e-12 * one.t_issue, "each block issues its own");
    cr_expect_float_eq(two.t_smem, one.t_smem, 1e-12 * one.t_smem);
    cr_expect_float_eq(two.traffic.read_k, one.traffic.read_k / 2, 1, "K is read once for both");
    cr_expect(two.seconds <= one.seconds && two.seconds > 0.99 * one.seconds, "%g and %g", two.seconds, one.seconds);
    cr_expect(one.blocks_sm == 3 && !strcmp(one.limiter, "smem"), "%d by %s", one.blocks_sm, one.limiter);
    cr_expect(stay.grid == sms && stay.blocks_sm == 1 && !strcmp(stay.limiter, "grid"), "%d by %s", stay.blocks_sm, stay.limiter);
    cr_expect_eq(stay.waves, 1);
    cr_expect_float_eq(stay.occupancy, 4.0 / 64, 1e-12);
    cr_expect_gt(stay.seconds, one.seconds, "one block waits where three take turns");
    cr_expect_eq(both.grid, sms / 2 * 2);
    /* Fewer tiles than SMs: as many SMs are at work either way. */
    const char *small = "bf16,d=128,b=1,hq=16,sq=256,sk=65536";
    one = cost(g, small, "toy:cluster=1,per_sm=1", "h200", 0), two = cost(g, small, "toy:cluster=2,per_sm=1", "h200", 0);
    cr_expect(one.grid == 32 && two.grid == 32);
    cr_expect_float_eq(two.seconds, one.seconds, 0.01 * one.seconds, "%g and %g", two.seconds, one.seconds);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

Test(cost, failures)
{
    static const char no_unit[] =
        "return { doc = 'x', tunables = {}, supports = function() return true end, constraints = {},\n"
        "  layout = function(p, c) return { bytes = 0, threads = 128 } end, steps = function() return { { entry = 'x', grid = 'sq/64 hq b' "
        "} } end,\n"
        "  work = function(p, c, a, l) return { rows = 64, cols = 64, unit = p.dtype == 'bf16' and 'wgmma16' or 'abacus' } end }\n";
    char dir[64];
    fa_gen *g;
    fa_cost k;
    fa_problem p = shaped_problem("bf16,d=64"), h = shaped_problem("fp16,d=64");
    fa_config c, d;
    fa_config_parse(&c, "toy:br=16,bc=8");
    fa_config_parse(&d, "toy");
    toy_dir(dir, "x\n");
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK);
    cr_expect_eq(fa_model_cost(g, &p, &c, fa_arch_find("sm_80"), 0, &k), FA_UNSUPPORTED, "no work()");
    cr_expect(strstr(fa_last_error(), "toy declares no work()"));
    cr_expect_eq(fa_model_cost(g, &p, &d, fa_arch_find("sm_80"), 0, &k), FA_INVALID, "no tunables");
    fa_gen_close(g);
    toy_write(dir, "toy.lua", no_unit);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_expect_eq(fa_model_cost(g, &p, &d, fa_arch_find("sm_80"), 0, &k), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "wgmma16"), "%s", fa_last_error());
    cr_expect_eq(fa_model_cost(g, &p, &d, fa_arch_find("h200"), 0, &k), FA_OK, "%s", fa_last_error());
    cr_expect_eq(fa_model_cost(g, &h, &d, fa_arch_find("h200"), 0, &k), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "unit of work is \"abacus\""), "%s", fa_last_error());
    cr_expect_eq(fa_model_cost(g, &p, &d, fa_arch_find("h200"), 1000, &k), FA_NO_FIT);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* Rows that walk in groups, what shows of the shorter phase, the rate out of L2, and tiles that are assigned beforehand. */
Test(cost, what_a_family_may_say)
{
    static const char many[] =
        "return { doc = 'x', default = false, tunables = { { 'group', { 0, 64, 128, 256 }, 'n' }, { 'shows', { -1, 0, 50, 100 }, '%' },\n"
        "    { 'l2', { 1, 2 }, 'n' }, { 'deal', { 0, 1, 2 }, 'n' } },\n"
        "  supports = function() return true end, constraints = {},\n"
        "  layout = function(p, c) return { bytes = 131072, threads = 640, regs = 96 } end,\n"
        "  steps = function(p, c, a, l) return { { entry = 'x', grid = 'sq/256 hq b', per_sm = c.deal > 0 and 1 or 0, counter = c.deal // "
        "2 } } end,\n"
        "  work = function(p, c, a, l) return { rows = 256, cols = 64, unit = 'wgmma16', issue = 256 * 64 // 8, latency = 100,\n"
        "    group = p.d == 8 and 100 or c.group, shows = c.shows >= 0 and c.shows / 100 or nil, l2_speed = c.l2 } end }\n";
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", many);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    const char *none = "bf16,d=64,b=8,hq=16,sq=4096", *causal = "bf16,d=64,mask=causal,b=32,hq=32,sq=512";
#define AT(problem, config) cost(g, problem, "toy:" config, "h200", 0)
    fa_cost whole = AT(none, "group=0,shows=50,l2=1,deal=0"), walk = AT(none, "group=64,shows=50,l2=1,deal=0");
    cr_expect_eq(walk.t_matrix, whole.t_matrix, "without a mask every group walks as far");
    cr_expect_lt(walk.seconds, whole.seconds, "and only its own part of a block is in its way");
    /* Of 512 rows under the diagonal, blocks of 64 keys: tiles of 256 see 4 and 8 of them, groups of 64 one to eight, 36 in all. */
    whole = AT(causal, "group=0,shows=50,l2=1,deal=0"), walk = AT(causal, "group=64,shows=50,l2=1,deal=0");
    fa_cost half = AT(causal, "group=128,shows=50,l2=1,deal=0");
    cr_expect_float_eq(walk.t_matrix, whole.t_matrix * 36 / (4 * (4 + 8)), 1e-9 * whole.t_matrix);
    cr_expect_float_eq(half.t_exp, whole.t_exp * (2 + 4 + 6 + 8) / (2 * (4 + 8)), 1e-9 * whole.t_exp);
    cr_expect(walk.seconds < half.seconds && half.seconds < whole.seconds, "%g, %g, %g", walk.seconds, half.seconds, whole.seconds);
    cr_expect_eq(AT(causal, "group=256,shows=50,l2=1,deal=0").seconds, whole.seconds, "one group is none");

    double shows[3] = { AT(none, "group=64,shows=0,l2=1,deal=0").seconds, AT(none, "group=64,shows=50,l2=1,deal=0").seconds,
                        AT(none, "group=64,shows=100,l2=1,deal=0").seconds },
           unsaid = AT(none, "group=64,shows=-1,l2=1,deal=0").seconds;
    cr_expect(shows[0] < shows[1] && shows[1] < unsaid && unsaid < shows[2], "%g, %g, %g; %g", shows[0], shows[1], shows[2], unsaid);

    fa_cost slow = AT(none, "group=64,shows=0,l2=1,deal=0"), fast = AT(none, "group=64,shows=0,l2=2,deal=0");
    cr_expect_float_eq(fast.t_l2, slow.t_l2 / 2, 1e-12 * slow.t_l2);
    cr_expect_lt(fast.seconds, slow.seconds);

    causal = "bf16,d=64,mask=causal,b=8,hq=16,sq=4096";
    fa_cost dealt = AT(causal, "group=64,shows=0,l2=1,deal=1"), drawn = AT(causal, "group=64,shows=0,l2=1,deal=2");
    cr_expect_gt(dealt.seconds, 1.05 * drawn.seconds, "%g and %g", dealt.seconds, drawn.seconds);
    dealt = AT(none, "group=64,shows=0,l2=1,deal=1"), drawn = AT(none, "group=64,shows=0,l2=1,deal=2");
    cr_expect_eq(dealt.seconds, drawn.seconds, "equal tiles may be dealt");
#undef AT
    fa_problem odd = shaped_problem("bf16,d=8");
    fa_config c;
    fa_cost k;
    fa_config_parse(&c, "toy:group=64,shows=0,l2=1,deal=0");
    cr_expect_eq(fa_model_cost(g, &odd, &c, fa_arch_find("h200"), 0, &k), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "group of work"), "%s", fa_last_error());
    fa_gen_close(g);

    static const char no_scores[] =
        "return { doc = 'x', tunables = {}, supports = function() return true end, constraints = {},\n"
        "  layout = function() return { bytes = 0, threads = 128 } end, steps = function() return { { entry = 'x', grid = 'sq/64 hq b' } } "
        "end,\n"
        "  work = function(p) return { rows = 64, group = 64, bytes = p.d == 64 and 1 or nil, algorithm = p.d ~= 64 and 'flash2' or nil } "
        "end }\n";
    toy_write(dir, "toy.lua", no_scores);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    fa_config_parse(&c, "toy");
    for (int d = 64; d <= 128; d += 64) {
        odd.d = odd.dv = d;
        cr_expect_eq(fa_model_cost(g, &odd, &c, fa_arch_find("h200"), 0, &k), FA_TEMPLATE, "no blocks that groups could walk");
        cr_expect(strstr(fa_last_error(), "group of work"), "%s", fa_last_error());
    }
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* A source of several steps costs the sum of them, each with its own launch, block and grid; a step without scores costs its bytes. */
Test(cost, steps_add_up)
{
    static const char many[] =
        "local function pick(c, t) if c.of < 3 then return { t[c.of] } end return t end\n"
        "return { doc = 'x', default = false, tunables = { { 'of', { 1, 2, 3 }, 'n' } }, supports = function() return true end, "
        "constraints = {},\n"
        "  layout = function(p, c) return { bytes = 65536, threads = 128, regs = 128 } end,\n"
        "  steps = function(p, c) return pick(c, { { entry = 'x', grid = 'sq/128 hq b' }, { entry = 'y', grid = 'sq hq b', threads = 64, "
        "smem = 0 } }) end,\n"
        "  work = function(p, c) return pick(c, { { rows = 128, cols = 64, unit = 'mma16', issue = 1000, algorithm = 'tiled2d_scores' },\n"
        "    { bytes = 8 * p.b * p.hq * p.sq * p.sk, regs = 32 } }) end }\n";
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", many);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    const char *big = "bf16,d=128,b=2,hq=16,sq=4096";
    fa_problem p = shaped_problem(big);
    fa_cost a = cost(g, big, "toy:of=1", "sm_80", 0), b = cost(g, big, "toy:of=2", "sm_80", 0), both = cost(g, big, "toy:of=3", "sm_80", 0);
    cr_expect_eq(both.seconds, a.seconds + b.seconds, "%g and %g", both.seconds, a.seconds + b.seconds);
    cr_expect_eq(b.bytes, 8.0 * 2 * 16 * 4096 * 4096);
    cr_expect_eq(both.bytes, a.bytes + b.bytes);
    cr_expect_eq(a.traffic.read_k, 32.0 * 32 * 4096 * 128 * 2, "keys once per row tile");
    cr_expect_eq(a.traffic.write_sp, 32.0 * 4096 * 4096 * 4);
    cr_expect(a.traffic.read_v == 0 && a.traffic.write_o == 0, "of one pass");
    cr_expect_eq(both.t_matrix, a.t_matrix);
    cr_expect_float_eq(both.t_hbm, a.t_hbm + b.t_hbm, 1e-12 * both.t_hbm);
    cr_expect_float_eq(b.seconds, b.bytes / (fa_arch_find("sm_80")->hbm_gbs * 1e9) + 3e-6, 1e-3 * b.seconds, "%g", b.seconds);
    cr_expect(a.blocks_sm == 2 && b.blocks_sm == 32, "each with its own shared memory: %d and %d", a.blocks_sm, b.blocks_sm);
    const fa_cost *longest = a.seconds > b.seconds ? &a : &b;
    cr_expect(both.grid == longest->grid && both.blocks_sm == longest->blocks_sm && !strcmp(both.limiter, longest->limiter));
    cr_expect_eq(both.flops, fa_model_matrix_flops(&p, fa_band_of(&p, 0, 0, 0, 0)) + fa_model_other_flops(&p, fa_band_of(&p, 0, 0, 0, 0)));
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* Under a mask tiles come longest first, and a free SM takes the next. Where all of a launch are there at once, none is left to take: the
 * first SM ends last, with the longest tile and one of the middle. */
Test(cost, unequal_tiles_at_once)
{
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", lua);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    /* 192 tiles on 108 SMs: two rounds without a mask. */
    const char *none = "bf16,d=128,b=1,hq=6,sq=4096", *causal = "bf16,d=128,mask=causal,b=1,hq=6,sq=4096";
    const char *two = "toy:threads=128,smem=64", *one = "toy:threads=128,smem=160";
    double at_once = cost(g, causal, two, "sm_80", 0).seconds / cost(g, none, two, "sm_80", 0).seconds;
    double drawn = cost(g, causal, one, "sm_80", 0).seconds / cost(g, none, one, "sm_80", 0).seconds;
    cr_expect_float_eq(at_once, (2 - 108.0 / 192) / 2, 0.03, "%g", at_once);
    cr_expect_float_eq(drawn, 0.5, 0.03, "%g", drawn);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* Steps over units are launched for as many at a time as the workspace holds, each time in whole rounds over the SMs. */
Test(cost, units_in_turn)
{
    static const char many[] =
        "return { doc = 'x', default = false, tunables = { { 'kept', { 0, 1 }, 'n' } }, supports = function() return true end, "
        "constraints = {},\n"
        "  layout = function(p, c) return { bytes = 160 * 1024, threads = 256, regs = 128 } end,\n"
        "  steps = function(p, c) return { { entry = 'x', grid = 'sk/128 units' } } end,\n"
        "  workspace = function(p, c) return c.kept == 1 and 'kept fp16 units members sq sk' or '' end,\n"
        "  work = function(p, c) return { rows = 128, cols = 128, unit = 'mma16', issue = 8000, bytes = 1 } end }\n";
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", many);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    /* 16 units of 128 tiles; of 512 MiB each two at a time. Four heads in each: one of them at a time, of two units. */
    const char *heads = "bf16,d=128,b=1,hq=16,sq=16384", *groups = "bf16,d=128,b=1,hq=64,hkv=16,sq=16384";
    double all = cost(g, heads, "toy:kept=0", "sm_80", 0).seconds, repeats = cost(g, heads, "toy:kept=1", "sm_80", 0).seconds;
    cr_expect_float_eq(repeats / all, 8 * 3 / 19.0, 0.02, "%g: 8 times 3 rounds, not 19", repeats / all);
    double slices = cost(g, groups, "toy:kept=1", "sm_80", 0).seconds;
    cr_expect_float_eq(slices / repeats, 4, 0.02, "%g: 32 times 3 rounds", slices / repeats);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* Where the grid is not over rows, a thread block takes all rows of its head: 32 heads on 108 SMs leave 76 idle. */
Test(cost, a_block_for_a_head)
{
    static const char many[] =
        "return { doc = 'x', default = false, tunables = { { 'whole', { 0, 1 }, 'n' } }, supports = function() return true end, "
        "constraints = {},\n"
        "  layout = function(p, c) return { bytes = 160 * 1024, threads = 256, regs = 128 } end,\n"
        "  steps = function(p, c) return { { entry = 'x', grid = c.whole == 1 and 'hq b' or 'sq/64 hq b' } } end,\n"
        "  work = function(p, c) return { rows = 64, cols = 64, unit = 'ffma', issue = 8000, algorithm = 'flash1' } end }\n";
    char dir[64];
    fa_gen *g;
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", many);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    const char *big = "fp32,d=128,b=2,hq=16,sq=8192";
    fa_cost tiles = cost(g, big, "toy:whole=0", "sm_80", 0), whole = cost(g, big, "toy:whole=1", "sm_80", 0);
    cr_expect_eq(whole.grid, 32);
    cr_expect_float_eq(whole.seconds / tiles.seconds, 108.0 / 32, 0.1, "%g and %g", whole.seconds, tiles.seconds);
    cr_expect_float_eq(whole.t_matrix, tiles.t_matrix, 1e-12 * tiles.t_matrix, "the same work");
    cr_expect_eq(whole.bytes, tiles.bytes);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* 14 query heads on 2 KV heads, 27 tiles of keys: of slices of two heads 162 tiles take two units of time and 54 one, which fill four of
 * 132 SMs; of single heads 378 tiles take three. An H200 took 514 us for the first and 380 for the second. */
Test(cost, the_last_slice_of_a_group)
{
    static const char *const config =
        "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=1,box=64,stages=4,dq=1,ds_bufs=2,grid=0,q_br=128,q_stages=4,spread=%d";
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    double seconds[2][3];
    for (int of = 0; of < 2; of++)
        for (int spread = 1; spread <= 2; spread++) {
            char problem[128], c[256];
            snprintf(problem, sizeof problem, "bf16,d=128,op=backward,b=1,hq=%d,hkv=2,sq=3441,sk=3441", of ? 16 : 14);
            snprintf(c, sizeof c, config, spread);
            seconds[of][spread] = cost(g, problem, c, "h200", 0).seconds;
        }
    cr_expect_gt(seconds[0][2], 1.05 * seconds[0][1], "%g us, %g", seconds[0][2] * 1e6, seconds[0][1] * 1e6);
    cr_expect_float_eq(seconds[0][2], 514e-6, 30e-6, "%g us", seconds[0][2] * 1e6);
    /* Eight heads are four even slices, of four units: as long as seven. */
    cr_expect_float_eq(seconds[1][2], seconds[0][2], 0.05 * seconds[0][2], "%g us", seconds[1][2] * 1e6);
    fa_gen_close(g);
}

Test(cost, work_that_is_no_work)
{
    static const struct {
        const char *work, *says;
    } rows[] = {
        { "{ { bytes = 1 }, { bytes = 1 } }", "work returned 2 entries for 1 steps" },
        { "{ 7 }", "entry 1 of work is a number; accepted: a table" },
        { "{ rows = 64, cols = 64, bytes = 5, algorithm = 'naive' }", "work has bytes beside algorithm = \"naive\"" },
        { "{ rows = 64 }", "rows, cols, efficiency, felt, l2_speed, hbm_speed, share or cuts of work is out of range" },
        { "{ { cols = 64 } }", "rows, cols, efficiency, felt, l2_speed, hbm_speed, share or cuts of work is out of range" },
        { "{ rows = 64, cols = 64, cuts = 0.5 }",
          "rows, cols, efficiency, felt, l2_speed, hbm_speed, share or cuts of work is out of range" },
        { "{ bytes = -1 }", "bytes of work is not a number >= 0" },
        { "{ rows = 64, cols = 64, share = 1.5 }",
          "rows, cols, efficiency, felt, l2_speed, hbm_speed, share or cuts of work is out of range" },
        { "{ algorithm = 'flash1' }", "rows, cols, efficiency, felt, l2_speed, hbm_speed, share or cuts of work is out of range" },
        { "{ rows = 64, cols = 64, algorithm = 'flash7' }",
          "algorithm of work is \"flash7\"; accepted: flash2, flash1, naive, tiled2d, tiled2d_scores, tiled2d_softmax, tiled2d_output" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char dir[64], family[600];
        fa_gen *g;
        fa_config c;
        fa_cost k;
        fa_problem p = shaped_problem("bf16,d=64");
        snprintf(family, sizeof family,
                 "return { doc = 'x', default = false, tunables = { { 'n', { 1 }, 'n' } }, supports = function() return true end, "
                 "constraints = {},\n"
                 "  layout = function(p, c) return { bytes = 1024, threads = 128, regs = 96 } end,\n"
                 "  steps = function() return { { entry = 'x', grid = 'sq/64 hq b' } } end, work = function() return %s end }\n",
                 rows[i].work);
        toy_dir(dir, "x\n");
        toy_write(dir, "toy.lua", family);
        cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_config_parse(&c, "toy:n=1"), FA_OK);
        cr_expect_eq(fa_model_cost(g, &p, &c, fa_arch_find("h200"), 0, &k), FA_TEMPLATE, "%s", rows[i].work);
        cr_expect(strstr(fa_last_error(), rows[i].says), "%s: %s", rows[i].work, fa_last_error());
        fa_gen_close(g);
        toy_remove(dir, NULL);
    }
}

Test(cost, work_that_is_no_table)
{
    static const char *const answers[] = { "7", "nil", "'rows'", "true" }, *const types[] = { "number", "nil", "string", "boolean" };
    for (size_t i = 0; i < 4; i++) {
        char dir[64], family[600], says[80];
        fa_gen *g;
        fa_config c;
        fa_cost k;
        fa_problem p = shaped_problem("bf16,d=64");
        snprintf(family, sizeof family,
                 "return { doc = 'x', default = false, tunables = { { 'n', { 1 }, 'n' } }, supports = function() return true end, "
                 "constraints = {},\n"
                 "  layout = function(p, c) return { bytes = 1024, threads = 128, regs = 96 } end,\n"
                 "  steps = function() return { { entry = 'x', grid = 'sq/64 hq b' } } end, work = function() return %s end }\n",
                 answers[i]);
        snprintf(says, sizeof says, "templates/toy.lua: work returned a %s; accepted: a table", types[i]);
        toy_dir(dir, "x\n");
        toy_write(dir, "toy.lua", family);
        cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_config_parse(&c, "toy:n=1"), FA_OK);
        cr_expect_eq(fa_model_cost(g, &p, &c, fa_arch_find("h200"), 0, &k), FA_TEMPLATE, "%s", answers[i]);
        cr_expect(strstr(fa_last_error(), says), "%s", fa_last_error());
        fa_gen_close(g);
        toy_remove(dir, NULL);
    }
}

typedef struct told {
    const fa_space *space;
    double *seconds; /* of each point, 0 where nothing was told */
    size_t n, last;
} told;

static void note(void *user, size_t point, const fa_cost *c)
{
    told *t = user;
    cr_assert(point < t->space->n && t->space->points[point].fits && (!t->n || point > t->last));
    t->seconds[point] = c->seconds;
    t->last = point;
    t->n++;
}

/* A space priced at once costs what its points cost one by one, over the borders of families and of the runs it is priced in. */
Test(cost, of_a_space)
{
    static const char *const problems[] = { "bf16,d=72,mask=causal,sq=3000,hq=8,hkv=2", "fp32,d=64,sq=100" };
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        fa_problem p = shaped_problem(problems[i]);
        const fa_arch *a = fa_arch_find("sm_90a");
        fa_space s;
        cr_assert_eq(fa_space_list(g, &p, a, 0, NULL, &s), FA_OK, "%s", fa_last_error());
        told t = { .space = &s, .seconds = calloc(s.n, sizeof *t.seconds) };
        cr_assert_eq(fa_model_space(g, &p, &s, a, note, &t), FA_OK, "%s", fa_last_error());
        cr_expect(t.n > 0 && t.n <= s.fitting);
        for (size_t k = 0; k < s.n; k += s.n / 3000 + 1) {
            fa_cost x = { .seconds = 0 };
            if (s.points[k].fits && fa_model_cost(g, &p, &s.points[k].config, a, 0, &x) != FA_OK)
                x.seconds = 0;
            cr_expect_eq(t.seconds[k], x.seconds, "%s: point %zu: %.17g, alone %.17g", problems[i], k, t.seconds[k], x.seconds);
        }
        free(t.seconds);
        fa_space_free(&s);
    }
    fa_gen_close(g);
}

typedef struct told_shapes {
    double *seconds; /* by shape and point */
    size_t points, n;
} told_shapes;

static void note_shape(void *user, size_t shape, size_t point, const fa_cost *c)
{
    told_shapes *t = user;
    t->seconds[shape * t->points + point] = c->seconds;
    t->n++;
}

/* Shapes that are priced at once cost what each costs by itself. */
Test(cost, of_a_space_under_many_shapes)
{
    static const int32_t lengths[] = { 256, 1000, 65536 };
    enum { SHAPES = sizeof lengths / sizeof *lengths };
    fa_problem p[SHAPES];
    const fa_arch *a = fa_arch_find("sm_90a");
    fa_gen *g;
    fa_space s;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    for (int k = 0; k < SHAPES; k++) {
        p[k] = shaped_problem("bf16,d=128,mask=causal,hq=8,hkv=2");
        p[k].sq = p[k].sk = lengths[k];
    }
    cr_assert_eq(fa_space_list(g, &p[0], a, 0, NULL, &s), FA_OK, "%s", fa_last_error());
    told_shapes all = { .seconds = calloc(SHAPES * s.n, sizeof(double)), .points = s.n };
    cr_assert_eq(fa_model_shapes(g, p, SHAPES, &s, a, note_shape, &all), FA_OK, "%s", fa_last_error());
    for (size_t k = 0; k < SHAPES; k++) {
        told one = { .space = &s, .seconds = calloc(s.n, sizeof(double)) };
        cr_assert_eq(fa_model_space(g, &p[k], &s, a, note, &one), FA_OK, "%s", fa_last_error());
        cr_expect(one.n > 1000 && all.n == SHAPES * one.n, "%zu of %zu", one.n, all.n);
        cr_expect_eq(memcmp(one.seconds, all.seconds + k * s.n, s.n * sizeof(double)), 0, "%d keys", lengths[k]);
        free(one.seconds);
    }
    free(all.seconds);
    fa_space_free(&s);
    fa_gen_close(g);
}

Test(cost, of_a_space_without_a_price)
{
    static const char one[] =
        "return { doc = 'x', tunables = {}, supports = function() return true end, constraints = {},\n"
        "  layout = function(p, c) return { bytes = 0, threads = 128 } end, steps = function() return { { entry = 'x', grid = 'sq/64 hq b' "
        "} } end,\n"
        "  work = function(p, c, a, l) return { rows = 64, cols = 64, unit = p.dtype == 'bf16' and 'wgmma16' or 'abacus' } end }\n";
    char dir[64];
    fa_gen *g;
    fa_space s;
    told t = { .space = &s, .seconds = (double[1]){ 0 } };
    const fa_arch *a = fa_arch_find("sm_80");
    fa_problem p = shaped_problem("bf16,d=64"), h = shaped_problem("fp16,d=64");
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", one);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_space_list(g, &p, a, 0, "toy", &s), FA_OK, "%s", fa_last_error());
    cr_expect_eq(fa_model_space(g, &p, &s, a, note, &t), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "wgmma16"), "%s", fa_last_error());
    cr_expect_eq(fa_model_space(g, &h, &s, a, note, &t), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "unit of work is \"abacus\""), "%s", fa_last_error());
    cr_expect_eq(t.n, 0);
    fa_space_free(&s);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* Every fitting point of the library's families has a finite cost. */
Test(cost, of_the_library, .timeout = 300)
{
    static const char *const problems[] = { "bf16,d=128,mask=causal", "tf32,d=64", "fp32,d=64", "fp16,d=64,mask=window" };
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        for (size_t f = 0; f < fa_gen_families(g); f++) {
            fa_problem p = shaped_problem(problems[i]);
            fa_space s;
            const fa_arch *a = fa_arch_find("h200");
            if (fa_space_list(g, &p, a, 0, fa_gen_family(g, f), &s) != FA_OK)
                continue;
            for (size_t k = 0; k < s.n; k += s.n / 200 + 1) {
                fa_cost x;
                if (!s.points[k].fits)
                    continue;
                fa_status st = fa_model_cost(g, &p, &s.points[k].config, a, 0, &x);
                cr_expect(st == FA_OK || st == FA_UNSUPPORTED, "%s", fa_last_error());
                if (st == FA_OK)
                    cr_expect(isfinite(x.seconds) && x.seconds > 1e-6 && x.seconds < 10 && x.blocks_sm >= 1 && x.bound[0]);
            }
            fa_space_free(&s);
        }
    fa_gen_close(g);
}

/* The first config of a family, of some drawn at random, that the chip takes for the problem. */
static bool fitting_config(fa_gen *g, const char *family, const fa_problem *p, const fa_arch *a, fa_config *c)
{
    fa_random r = { 1 };
    fa_tunable t;
    for (int n = 0; n < 3000; n++) {
        fa_point pt;
        *c = (fa_config){ .n = 0 };
        snprintf(c->family, sizeof c->family, "%s", family);
        for (size_t i = 0; fa_gen_tunable(g, family, i, &t); i++)
            fa_config_set(c, t.name, t.values[fa_random_below(&r, (uint32_t)t.n)]);
        if (fa_space_judge(g, p, a, 0, c, &pt) != FA_OK)
            return false;
        if (pt.fits)
            return true;
    }
    return false;
}

/* Prices do not take longer for longer sequences, whatever the family, the type and the mask, and of each operation and type some family
 * prices 2^30 rows. What a loop in C would take for them no step tells: this suite would not end (see gen_model). */
Test(cost, steps_do_not_grow_with_lengths, .timeout = 120)
{
    static const char *const ops[] = { [FA_FORWARD] = "", [FA_BACKWARD] = "op=backward,", [FA_MERGE] = "op=merge," };
    static const char *const types[] = { "bf16", "fp16", "fp32", "tf32" }, *const masks[] = { "none", "causal", "window" };
    static const int lengths[] = { 1 << 12, 1 << 22, 1 << 30 };
    bool priced[3][4] = { 0 };
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    fa_gen_count(g);
    for (size_t n = 0; n < fa_gen_families(g) * 2 * 4 * 3; n++) {
        const char *family = fa_gen_family(g, n / 24);
        const fa_arch *a = fa_arch_find(n & 1 ? "h200" : "sm_80");
        int op = fa_gen_operation(g, n / 24), type = n / 2 % 4;
        int64_t steps[3];
        fa_config c;         /* one for all lengths */
        if (op == FA_APPEND) /* its shapes are other ones */
            continue;
        for (int i = 0; i < 3; i++) {
            char text[128];
            fa_problem p;
            fa_cost k;
            snprintf(text, sizeof text, "%s,%sd=64,mask=%s,b=1,%s,sq=%d", types[type], ops[op], masks[n / 8 % 3],
                     op == FA_MERGE ? "hq=1" : "hq=4,hkv=1", lengths[i]);
            if (fa_problem_parse(&p, text) != FA_OK)
                break;
            fa_problem_fill_shape(&p);
            if (!i && !fitting_config(g, family, &p, a, &c))
                break;
            int64_t before = fa_sandbox_spent(g->sb);
            fa_status st = fa_model_cost(g, &p, &c, a, 0, &k);
            steps[i] = fa_sandbox_spent(g->sb) - before;
            cr_expect(st == FA_OK || (i && strstr(fa_last_error(), "would need more than 2^31 - 1 blocks")), "%s: %s", text,
                      fa_last_error());
            cr_expect(steps[i] > 0 && llabs(steps[i] - steps[0]) <= 500, "%s of %s: %lld steps, of the shortest %lld", family, text,
                      (long long)steps[i], (long long)steps[0]);
            priced[op][type] |= i == 2 && st == FA_OK && isfinite(k.seconds) && k.seconds > 0;
        }
    }
    for (int op = 0; op < 3; op++)
        for (int type = 0; type < 4; type++)
            cr_expect(priced[op][type] || (op == FA_BACKWARD && type == 3), "%s%s: no family prices 2^30 rows", ops[op], types[type]);
    fa_gen_close(g);
}

static void ignore(void *user, size_t point, const fa_cost *cost)
{
    (void)user, (void)point, (void)cost;
}

/* What two kernels in one cost to list and to price, against the one whose tunables they have: the other kernel is found once for all of
 * their configs. */
Test(cost, two_kernels_in_one_are_asked_once)
{
    static const char *const families[] = { "flash_fwd_mma", "mixed_mma" };
    int64_t list[2], price[2];
    fa_problem p = shaped_problem("bf16,d=72,dv=40,features=lengths+pages,page=16");
    const fa_arch *a = fa_arch_find("h200");
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    fa_gen_count(g);
    for (int i = 0; i < 2; i++) {
        fa_space s;
        int64_t before = fa_sandbox_spent(g->sb);
        cr_assert_eq(fa_space_list(g, &p, a, 0, families[i], &s), FA_OK, "%s", fa_last_error());
        list[i] = fa_sandbox_spent(g->sb) - before;
        cr_assert_eq(fa_model_space(g, &p, &s, a, ignore, NULL), FA_OK, "%s", fa_last_error());
        price[i] = fa_sandbox_spent(g->sb) - before - list[i];
        fa_space_free(&s);
    }
    cr_expect_lt(list[1], 3 * list[0] / 2, "%lld and %lld steps", (long long)list[0], (long long)list[1]);
    cr_expect_lt(price[1], 5 * price[0] / 2, "%lld and %lld steps", (long long)price[0], (long long)price[1]);
    fa_gen_close(g);
}

/* Where no sequence can have many rows, all go to the kernel of split keys: 64 rows are four of its tiles, each of which reads the keys. */
Test(cost, few_rows_of_two_kernels_in_one_are_all_priced)
{
    double seconds[2];
    const fa_arch *a = fa_arch_find("h200");
    fa_config c;
    fa_cost k;
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&c, "mixed_mma:br=16,bc=32,warps=1,stages_k=1,stages_v=1,order=0,q_regs=0,pack=1,lag=8,ctas=1"), FA_OK);
    for (int i = 0; i < 2; i++) {
        fa_problem p = shaped_problem(i ? "bf16,d=128,mask=causal,features=lengths,b=64,hq=8,hkv=2,sq=16,sk=8192"
                                        : "bf16,d=128,mask=causal,features=lengths,b=64,hq=8,hkv=2,sq=1,sk=8192");
        cr_assert_eq(fa_model_cost(g, &p, &c, a, 0, &k), FA_OK, "%s", fa_last_error());
        seconds[i] = k.seconds;
    }
    cr_expect_gt(seconds[1], 1.3 * seconds[0], "%.3g s for 64 rows, %.3g for four", seconds[1], seconds[0]);
    fa_gen_close(g);
}
