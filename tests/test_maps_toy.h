/* A toy family with tensor maps on a fake Hopper chip of 100 SMs, and a call of it. For one file of a suite. */
#ifndef FA_TEST_MAPS_TOY_H
#define FA_TEST_MAPS_TOY_H
#include "fake_driver.h"
#include "runtime/args/lengths.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"
#include "test_good_args.h"

static const char lua[] =
    "local function step(more) return { { entry = \"toy\", grid = \"sq/64 hq b\", maps = more.maps, per_sm = more.per_sm, cluster = "
    "more.cluster,\n"
    "  counter = more.counter, pdl = more.pdl, keys_most = more.keys_most } } end\n"
    "return {\n"
    "  doc = \"a toy with maps\", default = false, features = \"lengths+pages+score\", formats = \"q8_0\",\n"
    "  tunables = { { \"kind\", { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, \"which steps\" } },\n"
    "  supports = function(p, a) if p.align < 16 then return false, \"rows\" end return true end,\n"
    "  constraints = {},\n"
    "  layout = function(p, c, a) return { bytes = 1024, threads = 128, regs = 40 } end,\n"
    "  steps = function(p, c, a, l)\n"
    "    if c.kind == 0 then return step { maps = { { tensor = \"q\", cols = 64, rows = 32, swizzle = 128 },\n"
    "      { tensor = \"k\", cols = 32, rows = 48, swizzle = 64 }, { tensor = \"v\", cols = 16, rows = 16, swizzle = 32 },\n"
    "      { tensor = \"o\", cols = 8, rows = 8 } } } end\n"
    "    if c.kind == 1 then return step { per_sm = 2 } end\n"
    "    if c.kind == 2 then return step { cluster = 3 } end\n"
    "    if c.kind == 3 then return step { per_sm = 1, cluster = 2, counter = 1 } end\n"
    "    if c.kind == 6 then return step { pdl = 1 } end\n"
    "    if c.kind == 10 then return step { keys_most = 256 } end\n"
    "    if c.kind == 11 then return step { maps = { { tensor = \"k\", cols = 36, rows = 16, together = 4 },\n"
    "      { tensor = \"v\", cols = 36, rows = 16, together = 4 } } } end\n"
    "    if c.kind == 7 then return step { pdl = 1, cluster = 2 } end\n"
    "    if c.kind == 8 then return step { maps = { { tensor = \"k\", cols = 16, rows = 24, swizzle = 32, boxes = 4 } } } end\n"
    "    if c.kind == 9 then return step { maps = { { tensor = \"q\", cols = 64, rows = 32 },\n"
    "      { array = 1, row_index = 1, cols = 72, rows = 64 } } } end\n"
    "    return step { maps = { { tensor = \"k\", cols = c.kind == 4 and 64 or 32, rows = 64, swizzle = 128 } } }\n"
    "  end,\n"
    "}\n";

static fa_context *ctx;
static char dir[64];

static inline void open_context(void)
{
    fa_options o = FA_OPTIONS_INIT;
    const cu_driver *d = fake_driver();
    scratch_make();
    toy_dir(dir, "extern \"C\" __global__ void toy(int x) {}\n");
    toy_write(dir, "toy.lua", lua);
    fake_devices(2, 9, 0); /* each of 100 SMs */
    o.cache_dir = scratch;
    o.template_dir = dir;
    cr_assert_eq(fa_create_on(&ctx, &o, d, 0), FA_OK, "%s", fa_last_error());
}

static inline void close_context(void)
{
    fa_destroy(ctx);
    cr_assert_eq(fake_live_memory(), 0);
    cr_assert_eq(fake_live_libraries(), 0);
    scratch_remove();
    toy_remove(dir, NULL);
}
#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

static inline fa_args toy_args(void)
{
    fa_args a = good();
    a.dv = 32;
    a.lse = NULL;
    return a;
}

static inline const fa_plan *plan_of(const fa_args *a, int kind)
{
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    char text[32];
    raw.dtype = a->dtype, raw.d = a->d, raw.dv = a->dv, raw.mask = a->mask, raw.o_dtype = a->o_dtype;
    raw.kv_dtype = a->kv_dtype;
    raw.features = fa_operation_features(fa_operation_find(a->op), a), raw.page = a->page_table ? fa_lengths_page(a) : 0;
    if (a->score)
        OK(fa_problem_of(a, &p));
    else
        OK(fa_problem_normalize(&p, &raw));
    snprintf(text, sizeof text, "toy:kind=%d", kind);
    OK(fa_config_parse(&c, text));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    return plan;
}

static inline fake_launch launch(const fa_args *a, int kind)
{
    OK(fa_plan_launch(ctx, plan_of(a, kind), a, NULL));
    return fake_last();
}

/* Rank 4: what a map spans, and its strides in bytes. */
static inline void same_map(const fake_map *m, const char *name, uint64_t address, const uint64_t size[4], const uint64_t stride[3])
{
    cr_expect_eq(m->address, address, "%s: address %#lx", name, (long)m->address);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(m->size[i], size[i], "%s: size[%d] is %ld", name, i, (long)m->size[i]);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(m->stride[i], stride[i], "%s: stride[%d] is %ld", name, i, (long)m->stride[i]);
}
#define SAME(m, name, address, ...) same_map(m, name, address, __VA_ARGS__)
#define ROW(...)       \
    (const uint64_t[]) \
    {                  \
        __VA_ARGS__    \
    }
#endif
