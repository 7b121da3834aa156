/* Nobody waits for ever: kernels of flash_fwd_wgmma in which warpgroups let blocks of keys pass, while they begin a tile under the end of
 * the one before, or one after the other; in turns and not, with few and many buffers. One SM does all tiles. What goes wrong here ends as
 * a deadlock or as a wrong sum, and on a GPU as a launch that never ends.
 *
 * Of each mask, B_r and schedule a kernel, of each mask and way to fetch Q another; stages, B_c and what is not named there take turns.
 *
 *   FAGEN_TEST_FULL=1   more of B_r and B_c, every pair of stages and turns, instead of what is tight: of their combinations a third, in
 *                       which any value of one meets any of another */
#include "test_full.h"
#include "test_verify_device.h"

typedef struct shape {
    const char *mask;
    int sq, sk, left, right, diagonal;
} shape;
static const shape shapes[] = {
    { "causal", 520, 520, -1, -1, 0 }, { "causal", 520, 330, -1, -1, FA_TOP_LEFT }, { "causal", 300, 620, -1, -1, 0 },
    { "window", 520, 520, 130, 0, 0 }, { "window", 600, 600, 40, 90, 0 },           { "window", 600, 250, 20, 5, FA_TOP_LEFT },
    { "none", 520, 300, -1, -1, 0 }, /* of B_r = 256 the last tile has rows for one warpgroup, of 192 */
    { "none", 300, 150, -1, -1, 0 }, /* for all but the last */
};
static const char *const masks[] = { "causal", "window", "none" };
static const int stages[][2] = { { 2, 2 }, { 3, 3 }, { 2, 1 }, { 3, 2 }, { 4, 4 }, { 6, 6 } };

/* Of combinations by the sum of their values' numbers. */
static bool third(size_t sum)
{
    return sum % 3 == 0;
}

/* Whether the space has the config. */
static bool fits(fa_context *ctx, const char *mask, const char *config)
{
    char text[64];
    fa_problem p;
    const fa_plan *plan;
    fa_config c = test_config(config);
    snprintf(text, sizeof text, "bf16,d=16,mask=%s", mask);
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s", fa_last_error());
    fa_status st = fa_plan_make(ctx, &p, &c, NULL, &plan);
    cr_assert(st == FA_OK || st == FA_UNSUPPORTED || strstr(fa_last_error(), "constraint"), "%s: %s", config, fa_last_error());
    return st == FA_OK;
}

static size_t run(fa_context *ctx, const char *mask, const char *config)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    size_t n = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        char text[96];
        if (strcmp(s->mask, mask) != 0)
            continue;
        snprintf(text, sizeof text, "bf16,d=16,mask=%s,b=1,hq=3,hkv=3", mask);
        fa_case c = test_case(text, s->sq, s->sk);
        c.window_left = s->left;
        c.window_right = s->right;
        c.diagonal = s->diagonal;
        test_mode(i % 2 ? SIM_LAZY : SIM_EAGER, schedules[i % 3], i);
        test_output r = test_run(ctx, &c, config);
        cr_expect_eq(test_counter(ctx), 0, "%s: the counter is not put back", config);
        test_drop(&r);
        n++;
    }
    return n;
}

Test(hopper_waits, tiles_begun_early, .timeout = 3600)
{
    size_t kernels = 0, cases = 0;
    fa_context *ctx = test_hopper_context(NULL, NULL, 1);
    for (size_t mask = 0; mask < sizeof masks / sizeof *masks; mask++)
        for (int br = full() ? 64 : 192; br <= 256; br += 64)
            for (int schedule = 0; schedule < (br > 64 ? 3 : 1); schedule++) {
                if (!full() && (mask + (size_t)(br / 64 + schedule)) % 2) /* by default every second pair of these */
                    continue;
                for (size_t n = 0, bcs = full() ? 6 : 2, pairs = full() ? sizeof stages / sizeof *stages : 2, had = kernels;
                     n < pairs * bcs * (full() ? 3 : 1) && (full() || kernels < had + 1); n++) {
                    size_t turn = full() ? n : n + had, s = turn / bcs % pairs;
                    int bc = 48 + 16 * (int)(turn % bcs), o_path = (int)(full() ? n / bcs / pairs : (kernels + kernels / 3) % 3);
                    char config[256];
                    if (full() && !third(turn % bcs + s + (size_t)(o_path + br / 64 + schedule)))
                        continue;
                    snprintf(config, sizeof config,
                             "flash_fwd_wgmma:ctas=1,feeder=40,sections=%d,cluster=1,rescale=3,exp=0,convert=1,grid=2,q_bufs=2,ahead=1,"
                             "box=16,o_path=%d,br=%d,bc=%d,schedule=%d,stages_k=%d,stages_v=%d",
                             kernels / 2 % 2 ? 4 : 1, o_path, br, bc, schedule, stages[s][0], stages[s][1]);
                    if (!fits(ctx, masks[mask], config))
                        continue;
                    cases += run(ctx, masks[mask], config);
                    kernels++;
                }
            }
    printf("%zu kernels, %zu cases\n", kernels, cases);
    cr_expect_geq(kernels, full() ? 200 : 7);
    fa_destroy(ctx);
}

static size_t one(fa_context *ctx, const char *mask, const char *way, int br, int schedule, int bc, size_t s, size_t *kernels)
{
    char config[256];
    snprintf(config, sizeof config,
             "flash_fwd_wgmma:ctas=1,feeder=40,sections=%d,cluster=1,rescale=3,exp=0,convert=1,grid=2,ahead=0,"
             "box=16,%s,schedule=%d,br=%d,bc=%d,stages_k=%d,stages_v=%d",
             *kernels % 2 ? 4 : 1, way, schedule, br, bc, stages[s][0], stages[s][1]);
    if (!fits(ctx, mask, config))
        return 0;
    ++*kernels;
    return run(ctx, mask, config);
}

/* Tiles one after the other, with one Q and with two, that the producer fetches in either order. In a window, without turns, O leaves
 * before a warpgroup lets the blocks pass that only others see. */
Test(hopper_waits, tiles_one_after_the_other, .timeout = 3600)
{
    static const char *const ways[] = { "q_bufs=1,o_path=0", "q_bufs=1,o_path=1", "q_bufs=1,o_path=2",
                                        "q_bufs=2,o_path=0", "q_bufs=2,o_path=1", "q_bufs=2,o_path=2" };
    size_t kernels = 0, cases = 0, tried = 0;
    fa_context *ctx = test_hopper_context(NULL, NULL, 1);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (size_t mask = 0; mask < sizeof masks / sizeof *masks; mask++)
            if (full()) {
                for (int br = 128; br <= 256; br += 64)
                    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++)
                        for (int schedule = 0; schedule < 3; schedule++)
                            for (int bc = 48; bc <= 112; bc += 32)
                                if (third(way + s + (size_t)(br / 64 + schedule + bc / 32)))
                                    cases += one(ctx, masks[mask], ways[way], br, schedule, bc, s, &kernels);
            } else if ((way + mask) % 2 == 0) {
                for (size_t had = kernels, n = 0; kernels < had + 1 && n < 12; n++, tried++)
                    cases += one(ctx, masks[mask], ways[way], (tried / 2 + way) % 2 ? 192 : 256, (int)(tried / 3 + way) % 3, 64,
                                 tried % (sizeof stages / sizeof *stages), &kernels);
            }
    printf("%zu kernels, %zu cases\n", kernels, cases);
    cr_expect_geq(kernels, full() ? 500 : 8);
    fa_destroy(ctx);
}
