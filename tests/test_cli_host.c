/* What `fagen bench --host` times: a launch whose driver's part is taken out, whichever call of the driver that is. */
#include "cli/session/no_launch.h"
#include "fake_driver.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(cli_host, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define AT(n) ((void *)(uintptr_t)(0x100000000u * (uint64_t)(n)))
#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

static fa_args attention(void)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16, a.d = 64, a.b = 1, a.hq = a.hkv = 2, a.sq = a.sk = 256;
    a.q.ptr = AT(1), a.k.ptr = AT(2), a.v.ptr = AT(3), a.o.ptr = AT(4);
    return a;
}

/* Two launches of one problem through the table: the first prepares, the second hits. */
static void launch_twice(const cu_driver *d)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    fa_args a = attention();
    o.cache_dir = scratch;
    OK(fa_create_on(&ctx, &o, d, 0));
    OK(fa_launch(ctx, &a, NULL));
    OK(fa_launch(ctx, &a, NULL));
    fa_destroy(ctx);
}

Test(cli_host, no_call_that_starts_a_kernel_reaches_the_driver)
{
    const struct {
        int major;
        const char *call; /* that the kernel of the chip is started by */
    } chips[] = { { 8, "cuLaunchKernel" }, { 9, "cuLaunchKernelEx" } };
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        const cu_driver *fake = fake_driver();
        fake_devices(1, chips[i].major, 0);
        launch_twice(fake);
        cr_assert_eq(fake_calls(chips[i].call), 2, "%s: %ld", chips[i].call, fake_calls(chips[i].call));
        cr_assert_eq(fake_calls("cuLaunchKernel") + fake_calls("cuLaunchKernelEx"), 2);
        long current = fake_calls("cuCtxGetCurrent");
        cu_driver bare = cli_no_launch(fake);
        launch_twice(&bare);
        cr_assert_eq(fake_calls("cuLaunchKernel") + fake_calls("cuLaunchKernelEx"), 2, "%s was called again", chips[i].call);
        cr_assert_gt(fake_calls("cuCtxGetCurrent"), current, "all else is still the driver's");
    }
}

/* A launch that is added to the table one day is taken out too, or this fails. */
Test(cli_host, all_launches_of_the_table_are_taken_out_and_nothing_else)
{
    static const struct {
        const char *name;
        size_t at;
    } rows[] = {
#define X(f) { #f, offsetof(cu_driver, f) },
        CU_DRIVER_FUNCTIONS(X)
#undef X
    };
    static char code[4096]; /* an address of its own for each function */
    cu_driver full, bare;
    int out = 0;
    memset(&full, 0, sizeof full);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *p = code + i;
        memcpy((char *)&full + rows[i].at, &p, sizeof p);
    }
    full.name = "full";
    bare = cli_no_launch(&full);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool launches = strstr(rows[i].name, "Launch") != NULL,
             same = !memcmp((char *)&full + rows[i].at, (char *)&bare + rows[i].at, sizeof(void *));
        cr_expect_eq(launches, !same, "%s", rows[i].name);
        out += launches;
    }
    cr_assert_geq(out, 3);
    cr_assert_str_eq(bare.name, "full");
}
