/* How contexts are made: device names, options, environment. */
#include "fake_driver.h"
#include "runtime/environment.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <dlfcn.h>

static void clean(void)
{
    scratch_make();
    setenv("FAGEN_CACHE_DIR", scratch, 1);
    unsetenv("FAGEN_DEVICE");
    unsetenv("FAGEN_LOG");
    unsetenv("FAGEN_NVRTC");
    unsetenv("FAGEN_TEMPLATE_DIR");
}
TestSuite(runtime_context, .init = clean, .fini = scratch_remove, .timeout = 120);

Test(runtime_context, device_names_that_are_none)
{
    static const char *const names[] = {"gpu",
                                        "cuda:",
                                        "cuda:x",
                                        "cuda:-1",
                                        "cuda:1x",
                                        "cuda:99999999999",
                                        "cuda0",
                                        "sim",
                                        "sim:",
                                        "sim:sm_1",
                                        "sim:sm_80,nonsense",
                                        "CUDA:0",
                                        " cuda"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fa_options o = FA_OPTIONS_INIT;
        fa_context *ctx = (fa_context *)&o;
        o.device = names[i];
        cr_expect_eq(fa_create(&ctx, &o), FA_INVALID, "\"%s\": %s", names[i], fa_last_error());
        cr_expect_null(ctx);
        cr_expect(strstr(fa_last_error(), "device") && strstr(fa_last_error(), names[i]), "%s", fa_last_error());
        setenv("FAGEN_DEVICE", names[i], 1);
        cr_expect_eq(fa_create(&ctx, NULL), FA_INVALID, "%s", names[i]);
        unsetenv("FAGEN_DEVICE");
    }
}

Test(runtime_context, no_driver_is_a_status)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
    fa_context *ctx;
    if (lib)
        cr_skip_test("this machine has a driver");
    cr_assert_eq(fa_create(&ctx, NULL), FA_NO_DRIVER);
    const char *told = strstr(fa_last_error(), "libcuda.so.1");
    cr_assert(told && !strstr(told + 1, "libcuda.so.1"), "named once: %s", fa_last_error());
    fa_options o = FA_OPTIONS_INIT;
    o.device = "cuda:3";
    cr_assert_eq(fa_create(&ctx, &o), FA_NO_DRIVER);
}

Test(runtime_context, devices_by_ordinal)
{
    fa_context *ctx;
    fa_device d;
    cr_assert_eq(fa_create_on(&ctx, NULL, fake_driver(), 1), FA_OK, "%s", fa_last_error());
    cr_assert_str_eq(fa_context_arch(ctx)->chip, "Fake 1");
    cr_assert_str_eq(fa_context_arch(ctx)->name, "sm_80");
    cr_assert_eq(fa_context_arch(ctx)->sm_count, 100, "refined by the device");
    cr_assert_eq(fa_context_arch(ctx)->smem_block, 166912);
    cr_assert_eq(fa_context_budget(ctx), 166912);
    fa_destroy(ctx);
    cr_assert_eq(fa_device_open_on(&d, fake_driver(), 2), FA_NO_DRIVER);
    cr_assert(strstr(fa_last_error(), "cuda:2") && strstr(fa_last_error(), "0 to 1"), "%s", fa_last_error());
    const cu_driver *f = fake_driver();
    fake_devices(0, 8, 0);
    cr_assert_eq(fa_device_open_on(&d, f, -1), FA_NO_DRIVER);
    fake_devices(1, 3, 5);
    cr_assert_eq(fa_device_open_on(&d, f, -1), FA_UNSUPPORTED);
    cr_assert(strstr(fa_last_error(), "3.5"), "%s", fa_last_error());
}

Test(runtime_context, options_are_checked)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    const cu_driver *d = fake_driver();
    const struct {
        uint32_t size;
        int level, budget;
        const char *field;
    } rows[] = {{0, 1, 0, "size"}, {8, 1, 0, "size"}, {sizeof o, -1, 0, "log_level"}, {sizeof o, 4, 0, "log_level"},
                {sizeof o, 1, -1, "sram_budget"}, {sizeof o, 1, 166913, "sram_budget"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        o.size = rows[i].size;
        o.log_level = rows[i].level;
        o.sram_budget = rows[i].budget;
        cr_expect_eq(fa_create_on(&ctx, &o, d, 0), FA_INVALID);
        cr_expect(strstr(fa_last_error(), rows[i].field), "%zu: %s", i, fa_last_error());
    }
    o = (fa_options)FA_OPTIONS_INIT;
    o.cache_limit = -2;
    cr_expect_eq(fa_create_on(&ctx, &o, d, 0), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "cache_limit"), "%s", fa_last_error());
    cr_assert_eq(fake_retained(0), 0);
    setenv("FAGEN_LOG", "loud", 1);
    cr_assert_eq(fa_create_on(&ctx, NULL, d, 0), FA_INVALID);
    cr_assert(strstr(fa_last_error(), "FAGEN_LOG"));
}

Test(runtime_context, a_budget_no_tile_fits_names_the_smallest)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    fa_problem p = FA_PROBLEM_INIT;
    o.sram_budget = 1024;
    cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK);
    p.dtype = FA_F16;
    p.d = 128;
    cr_assert_eq(fa_supported(ctx, &p), FA_NO_FIT);
    cr_assert(strstr(fa_last_error(), "1024"), "%s", fa_last_error());
    cr_assert_eq(fa_prepare(ctx, &p), FA_NO_FIT);
    fa_destroy(ctx);
}

Test(runtime_context, a_template_directory_that_is_none)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    fa_problem p = FA_PROBLEM_INIT;
    o.template_dir = below("absent");
    p.dtype = FA_F16;
    p.d = 128;
    fa_status st = fa_create_on(&ctx, &o, fake_driver(), 0);
    if (st == FA_OK)
        st = fa_supported(ctx, &p);
    cr_assert_neq(st, FA_OK, "a directory that was named and is not there");
    fa_destroy(ctx);
}

Test(runtime_context, cache_trouble_is_told_and_survived)
{
    fa_context *ctx;
    spill(below("file"), "x", 1);
    setenv("FAGEN_CACHE_DIR", below("file"), 1);
    cr_assert_eq(fa_create_on(&ctx, NULL, fake_driver(), 0), FA_OK);
    cr_assert_null(fa_store_root(fa_context_store(ctx)));
    fa_destroy(ctx);
}

Test(runtime_context, environment_is_a_snapshot)
{
    setenv("FAGEN_DEVICE", "cuda:7", 1);
    setenv("FAGEN_LOG", "debug", 1);
    fa_environment e = fa_environment_read();
    cr_assert_str_eq(e.device, "cuda:7");
    cr_assert_str_eq(e.log, "debug");
    cr_assert_str_eq(e.cache_dir, scratch);
    cr_assert_null(e.nvrtc);
}

Test(runtime_context, version)
{
    cr_assert_eq(fa_version(), FA_VERSION_MAJOR * 10000 + FA_VERSION_MINOR * 100 + FA_VERSION_PATCH);
}
