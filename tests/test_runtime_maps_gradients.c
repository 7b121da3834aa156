/* Tensor maps of the backward pass: which queries and keys they hold. On the driver that only remembers, with a toy family. */
#include "test_maps_toy.h"

static const char back_lua[] = "local function map(tensor, rows) return { tensor = tensor, cols = 32, rows = rows, swizzle = 64 } end\n"
                               "return {\n"
                               "  doc = \"gradients with maps\", default = false, operation = \"backward\", features = \"lengths\",\n"
                               "  tunables = { { \"kind\", { 0 }, \"one\" } }, constraints = {},\n"
                               "  supports = function(p, a) return true end,\n"
                               "  layout = function(p, c, a) return { bytes = 1024, threads = 128, regs = 40 } end,\n"
                               "  steps = function(p, c, a, l) return { { entry = \"back\", grid = \"sq/64 hq b\",\n"
                               "    maps = { map(\"q\", 16), map(\"grad_o\", 16), map(\"k\", 24), map(\"v\", 24) } } } end,\n"
                               "  params = \"key_base sq\",\n"
                               "}\n";

/* The family beside the toy. */
static void open_gradients(void)
{
    fa_options o = FA_OPTIONS_INIT;
    open_context();
    const cu_driver *d = fa_context_driver(ctx);
    fa_destroy(ctx);
    toy_write(dir, "back.lua", back_lua);
    toy_write(dir, "back.cu", "extern \"C\" __global__ void back(int x) {}\n");
    o.cache_dir = scratch;
    o.template_dir = dir;
    OK(fa_create_on(&ctx, &o, d, 0));
}

static void close_gradients(void)
{
    static const char *const names[] = { "back.lua", "back.cu" };
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    close_context();
}

TestSuite(runtime_maps_gradients, .init = open_gradients, .fini = close_gradients, .timeout = 300);

static fa_args good_gradients(void)
{
    fa_args a = toy_args();
    a.op = FA_BACKWARD;
    a.lse = AT(5);
    a.grad_o.ptr = AT(6);
    a.grad_q.ptr = AT(7);
    a.grad_k.ptr = AT(8);
    a.grad_v.ptr = AT(9);
    return a;
}

static const fa_plan *plan_of_gradients(const fa_args *a)
{
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    raw.op = FA_BACKWARD;
    raw.dtype = a->dtype, raw.d = a->d, raw.dv = a->dv, raw.mask = a->mask,
    raw.features = fa_operation_features(fa_operation_find(a->op), a);
    OK(fa_problem_normalize(&p, &raw));
    OK(fa_config_parse(&c, "back:kind=0"));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    return plan;
}

/* Maps of Q and dO hold the queries that see some key, those of K and V the keys that some query sees. */
Test(runtime_maps_gradients, the_queries_that_see_a_key)
{
    static const int offsets[] = { -9, -3, 0, 2, 7, 11 };
    static const uint64_t row[] = { 1024, 512, 512, 256 }; /* bytes from a row to the next, of Q, dO, K, V */
    long none = 0, front = 0, after = 0;
    const fa_plan *plan[3];
    fa_args a = good_gradients();
    for (a.mask = FA_MASK_NONE; a.mask <= FA_MASK_WINDOW; a.mask++)
        plan[a.mask] = plan_of_gradients(&a);
    for (int sq = 1; sq <= 7; sq++)
        for (int sk = 0; sk <= 5; sk++)
            for (int mask = FA_MASK_NONE; mask <= FA_MASK_WINDOW; mask++)
                for (int left = -1; left <= 2; left++)
                    for (int right = -1; right <= 2; right++)
                        for (size_t o = 0; o < 8; o++) {
                            a.sq = sq, a.sk = sk, a.mask = mask, a.window_left = left, a.window_right = right;
                            a.diagonal = o < 2 ? (int)o : FA_OFFSET;
                            a.offset = o < 2 ? 0 : offsets[o - 2];
                            int off = a.diagonal == FA_BOTTOM_RIGHT ? sk - sq : a.offset;
                            int first[2] = { sq, sk }, last[2] = { -1, -1 }; /* queries, keys */
                            for (int i = 0; i < sq; i++)
                                for (int j = 0; j < sk; j++) {
                                    int at = j - (i + off);
                                    bool seen = mask == FA_MASK_NONE || (mask == FA_MASK_CAUSAL && at <= 0) ||
                                                (mask == FA_MASK_WINDOW && (left < 0 || at >= -left) && (right < 0 || at <= right));
                                    for (int n = 0; n < 2 && seen; n++) {
                                        int x = n ? j : i;
                                        first[n] = x < first[n] ? x : first[n];
                                        last[n] = x > last[n] ? x : last[n];
                                    }
                                }
                            OK(fa_plan_launch(ctx, plan[mask], &a, NULL));
                            fake_launch l = fake_last();
                            cr_assert_eq(l.maps, 4);
                            for (int m = 0; m < 4; m++) {
                                const uint64_t base = 0x100000000 * (uint64_t)(const int[]){ 1, 6, 2, 3 }[m];
                                const int n = m / 2, rows = n ? sk : sq;
                                const fake_map *map = &l.map[m];
                                if (last[0] >= 0)
                                    cr_assert(map->address == base + (uint64_t)first[n] * row[m] &&
                                                  map->size[1] == (uint64_t)(last[n] - first[n] + 1),
                                              "sq %d, sk %d, mask %d, %d/%d, off %d: rows %d ... %d, but map %d has %ld at %#lx", sq, sk,
                                              mask, left, right, off, first[n], last[n], m, (long)map->size[1], (long)map->address);
                                else if (rows)
                                    cr_assert(map->address >= base && (map->address - base) % row[m] == 0 && map->size[1] >= 1 &&
                                                  (map->address - base) / row[m] + map->size[1] <= (uint64_t)rows,
                                              "nothing is seen: map %d is of %ld rows at %#lx", m, (long)map->size[1], (long)map->address);
                                else
                                    cr_assert(map->size[1] == 1 && map->address == 0x100000000, "no key: map %d is of a row of Q", m);
                            }
                            none += last[0] < 0;
                            front += last[0] >= 0 && first[0] > 0;
                            after += last[0] >= 0 && last[0] < sq - 1;
                        }
    cr_assert(none > 500 && front > 300 && after > 300, "%ld see nothing, %ld begin late, %ld end early", none, front, after);
}

/* What sees a key is known on the device alone: all queries. The forward pass knows them, and has all in its map. */
Test(runtime_maps_gradients, all_queries_with_lengths_and_in_the_forward_pass)
{
    fa_args a = good_gradients();
    a.mask = FA_MASK_CAUSAL, a.sq = 200, a.sk = 50;
    OK(fa_plan_launch(ctx, plan_of_gradients(&a), &a, NULL));
    SAME(&fake_last().map[0], "q", 0x100000000 + 150 * 1024, ROW(64, 50, 8, 2), ROW(1024, 128, 1024 * 200));
    SAME(&fake_last().map[1], "grad_o", 0x600000000 + 150 * 512, ROW(32, 50, 8, 2), ROW(512, 64, 512 * 200));
    a.seqlens_k = AT(10);
    OK(fa_plan_launch(ctx, plan_of_gradients(&a), &a, NULL));
    SAME(&fake_last().map[0], "q", 0x100000000, ROW(64, 200, 8, 2), ROW(1024, 128, 1024 * 200));
    SAME(&fake_last().map[1], "grad_o", 0x600000000, ROW(32, 200, 8, 2), ROW(512, 64, 512 * 200));
    a = toy_args();
    a.mask = FA_MASK_CAUSAL, a.sq = 200, a.sk = 50;
    SAME(&launch(&a, 0).map[0], "q", 0x100000000, ROW(64, 200, 8, 2), ROW(1024, 128, 1024 * 200));
}
