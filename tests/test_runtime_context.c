/* How contexts are made: device names, options, environment. */
#include "fake_driver.h"
#include "runtime/context/driver_cuda.h"
#include "runtime/context/environment.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <sys/wait.h>

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
    static const char *const names[] = {
        "gpu",    "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999", "cuda0", "sim", "sim:", "sim:sm_1", "sim:sm_80,nonsense",
        "CUDA:0", " cuda"
    };
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

/* Drivers that are there and cannot be used: a library whose every function answers the same. The loader knows it by its name. */
#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)
static const struct {
    const char *missing; /* a function that it does not have */
    int init, version;
    const char *says;
} drivers[] = {
    { NULL, CUDA_ERROR_NO_DEVICE, 13000, "cuInit: CUDA_ERROR_FAKE; the driver is there, but no device can be used" },
    { NULL, CUDA_SUCCESS, 12030, "libcuda.so.1: CUDA 12.3; accepted: 12.4 or newer" },
    { EXPANDED(cuMemAlloc), CUDA_SUCCESS, 13000, "symbol cuMemAlloc_v2 is missing; accepted: a driver of CUDA 12.4 or newer" },
    { EXPANDED(cuEventElapsedTime), CUDA_SUCCESS, 12040, NULL }, /* an older driver has it by its older name */
    { NULL, CUDA_SUCCESS, 12040, NULL },
};

static bool make_driver(size_t i)
{
#define X(f) EXPANDED(f),
    static const char *const names[] = { CU_DRIVER_FUNCTIONS(X) };
#undef X
    char command[1400];
    FILE *f = fopen(below("cuda.c"), "w");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k], "cuInit") && strcmp(names[k], "cuDriverGetVersion") && strcmp(names[k], "cuGetErrorName") &&
            (!drivers[i].missing || strcmp(names[k], drivers[i].missing)))
            fprintf(f, "int %s(void) { return 999; }\n", names[k]);
    fprintf(f, "int cuInit(unsigned n) { return n ? 1 : %d; }\nint cuDriverGetVersion(int *v) { *v = %d; return 0; }\n", drivers[i].init,
            drivers[i].version);
    fprintf(f, "int cuGetErrorName(int r, const char **s) { *s = r ? \"CUDA_ERROR_FAKE\" : \"\"; return 0; }\n");
    if (drivers[i].missing && !strncmp(drivers[i].missing, "cuEventElapsedTime_", 19))
        fprintf(f, "int cuEventElapsedTime(void) { return 999; }\n");
    fclose(f);
    snprintf(command, sizeof command, "cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o %s %s 2>/dev/null", below("cuda%zu.so", i),
             below("cuda.c"));
    return system(command) == 0;
}

Test(runtime_context, drivers_that_cannot_be_used)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
    if (lib)
        cr_skip_test("this machine has a driver");
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        int status;
        if (!make_driver(i))
            cr_skip_test("no C compiler named cc");
        pid_t pid = fork();
        if (pid == 0) {
            const cu_driver *d = NULL;
            if (!dlopen(below("cuda%zu.so", i), RTLD_NOW))
                _exit(98);
            fa_status st = fa_driver_cuda(&d);
            bool right = drivers[i].says ? st == FA_NO_DRIVER && strstr(fa_last_error(), drivers[i].says)
                                         : st == FA_OK && d && !strcmp(d->name, "cuda");
            if (!right)
                fprintf(stderr, "driver %zu: %s: %s\n", i, fa_status_name(st), fa_last_error());
            if (!drivers[i].says && right &&
                (fa_driver_check(d, CUDA_SUCCESS, "f") != FA_OK || fa_driver_check(d, CUDA_ERROR_UNKNOWN, "cuF") != FA_DEVICE ||
                 fa_driver_check(d, CUDA_ERROR_OUT_OF_MEMORY, "cuF") != FA_NOMEM || !strstr(fa_last_error(), "cuF: CUDA_ERROR_FAKE (2): ")))
                right = false;
            _exit(right ? 0 : 1);
        }
        waitpid(pid, &status, 0);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "driver %zu", i);
    }
}

static const char *detail;

static const char *tell_detail(void)
{
    return detail;
}

/* A report of the simulator names a line of a template, which is a file only in fagen's own tree. */
Test(runtime_context, a_report_says_where_templates_are)
{
    cu_driver d = *fake_driver();
    d.detail = tell_detail;
    detail = "out of bounds at templates/tiles/tile.cu:12";
    cr_assert_eq(fa_driver_check(&d, CUDA_ERROR_LAUNCH_FAILED, "cuCtxSynchronize"), FA_DEVICE);
    cr_assert(strstr(fa_last_error(), "templates/tiles/tile.cu:12\n(templates/ is built into fagen"), "%s", fa_last_error());
    detail = "out of bounds at kernel.ptx:12";
    cr_assert_eq(fa_driver_check(&d, CUDA_ERROR_LAUNCH_FAILED, "cuCtxSynchronize"), FA_DEVICE);
    cr_assert(!strstr(fa_last_error(), "built into"), "%s", fa_last_error());
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
    } rows[] = { { 0, 1, 0, "size" },
                 { 8, 1, 0, "size" },
                 { sizeof o, -1, 0, "log_level" },
                 { sizeof o, 4, 0, "log_level" },
                 { sizeof o, 1, -1, "sram_budget" },
                 { sizeof o, 1, 166913, "sram_budget" } };
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

/* It is refused when the context is made, and not at the first kernel. */
Test(runtime_context, a_template_directory_that_is_none)
{
    fa_context *ctx;
    static const struct {
        const char *name, *why;
    } rows[] = { { "absent", "No such file" }, { "file", "Not a directory" }, { "closed", "Permission denied" } };
    char named[256];
    spill(below("file"), "x", 1);
    mkdir(below("closed"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int variable = 0; variable < 2; variable++) {
            fa_options o = FA_OPTIONS_INIT;
            const char *dir = below("%s", rows[i].name);
            if (i == 2 && geteuid() == 0) /* who may list it all the same */
                continue;
            snprintf(named, sizeof named, "%s is \"%s\": %s", variable ? "FAGEN_TEMPLATE_DIR" : "options: template_dir", dir, rows[i].why);
            if (variable)
                setenv("FAGEN_TEMPLATE_DIR", dir, 1);
            else
                o.template_dir = dir;
            cr_expect_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_IO, "%s", named);
            cr_expect(strstr(fa_last_error(), named) && strstr(fa_last_error(), "accepted: a folder"), "%s", fa_last_error());
            cr_expect_null(ctx);
            o.bundle_only = 1;
            cr_expect_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK, "nothing is rendered");
            fa_destroy(ctx);
            unsetenv("FAGEN_TEMPLATE_DIR");
        }
    rmdir(below("closed"));
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
