/* Which of a bundle's kernels runs, on drivers that only remember; and that a bundle needs neither NVRTC nor templates nor disk. */
#include "bundle_maker.h"
#include "fake_driver.h"
#include "runtime/bundle/columns.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <sys/stat.h>

TestSuite(runtime_bundle_set, .init = scratch_make, .fini = scratch_remove, .timeout = 120);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define AT(n) ((void *)(uintptr_t)(0x100000000u * (uint64_t)(n)))
enum { ROWS = MAKER_ROWS };
typedef maker_item item;

static fa_args call(int align, int n)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16;
    a.d = 64;
    a.b = 1;
    a.hq = a.hkv = 8;
    a.sq = a.sk = n;
    a.q.ptr = (char *)AT(1) + (align < 16 ? align : 0);
    a.k.ptr = AT(2);
    a.v.ptr = AT(3);
    a.o.ptr = AT(4);
    return a;
}

static fa_context *context(const fa_bundle *const *list, int only, int major, int minor, int takes_ptx, int32_t budget)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    const cu_driver *d = fake_driver();
    fake_devices(1, major, minor);
    fake_ptx(takes_ptx);
    o.cache_dir = scratch;
    o.nvrtc = "/nonexistent/libnvrtc.so";
    o.template_dir = below("templates"); /* gone once the context is made: nothing is rendered */
    cr_assert_eq(mkdir(o.template_dir, 0700), 0);
    o.bundles = list;
    o.bundle_only = only;
    o.sram_budget = budget;
    OK(fa_create_on(&ctx, &o, d, 0));
    cr_assert_eq(rmdir(o.template_dir), 0);
    return ctx;
}

static const struct {
    const char *what;
    int major, minor, takes_ptx, align, n;
    int32_t budget;
    item items[ROWS + 1];
    int runs; /* index; -1 = none */
} rules[] = {
    { "the chip's own cubin comes before its PTX", 8, 0, 0, 16, 4096, 0, { { "sm_80", 1, 16, 4096, 0 }, { "sm_80", 0, 16, 4096, 0 } }, 1 },
    { "a simulator takes PTX alone", 8, 0, 1, 16, 4096, 0, { { "sm_80", 0, 16, 4096, 0 }, { "sm_80", 1, 16, 4096, 0 } }, 1 },
    { "a simulator runs no cubin", 8, 0, 1, 16, 4096, 0, { { "sm_80", 0, 16, 4096, 0 } }, -1 },
    { "the nearest length",
      8,
      0,
      0,
      16,
      2048,
      0,
      { { "sm_80", 0, 16, 512, 0 }, { "sm_80", 0, 16, 4096, 0 }, { "sm_80", 0, 16, 16384, 0 } },
      1 },
    { "of the own length",
      8,
      0,
      0,
      16,
      512,
      0,
      { { "sm_80", 0, 16, 16384, 0 }, { "sm_80", 0, 16, 512, 0 }, { "sm_80", 0, 16, 4096, 0 } },
      1 },
    { "the own chip before the own length", 8, 6, 0, 16, 512, 0, { { "sm_80", 0, 16, 512, 0 }, { "sm_86", 0, 16, 16384, 0 } }, 1 },
    { "a cubin of an older chip of the same major version",
      8,
      9,
      0,
      16,
      512,
      0,
      { { "sm_80", 0, 16, 512, 0 }, { "sm_86", 0, 16, 512, 0 } },
      1 },
    { "never of a newer one", 8, 0, 0, 16, 512, 0, { { "sm_86", 0, 16, 512, 0 }, { "sm_86", 1, 16, 512, 0 } }, -1 },
    { "nor of another major version", 9, 0, 0, 16, 512, 0, { { "sm_80", 0, 16, 512, 0 } }, -1 },
    { "but its PTX, the latest",
      9,
      0,
      0,
      16,
      512,
      0,
      { { "sm_80", 1, 16, 512, 0 }, { "sm_89", 1, 16, 512, 0 }, { "sm_86", 1, 16, 512, 0 } },
      1 },
    { "kernels of features of one chip run on no other",
      12,
      1,
      0,
      16,
      512,
      0,
      { { "sm_120a", 0, 16, 512, 0 }, { "sm_120a", 1, 16, 512, 0 }, { "sm_90a", 1, 16, 512, 0 } },
      -1 },
    { "and on their own", 9, 0, 0, 16, 512, 0, { { "sm_80", 1, 16, 512, 0 }, { "sm_90a", 0, 16, 4096, 0 } }, 1 },
    { "the own alignment", 8, 0, 0, 16, 512, 0, { { "sm_80", 0, 8, 512, 0 }, { "sm_80", 0, 16, 16384, 0 } }, 1 },
    { "else the most of those below", 8, 0, 0, 16, 512, 0, { { "sm_80", 0, 4, 512, 0 }, { "sm_80", 0, 8, 16384, 0 } }, 1 },
    { "never above", 8, 0, 0, 8, 512, 0, { { "sm_80", 0, 16, 512, 0 } }, -1 },
    { "a cubin that fits the shared memory",
      8,
      0,
      0,
      16,
      512,
      60000,
      { { "sm_80", 0, 16, 512, 60001 }, { "sm_80", 0, 16, 16384, 60000 } },
      1 },
    { "none does", 8, 6, 0, 16, 512, 0, { { "sm_80", 0, 16, 512, 200 * 1024 } }, -1 },
};

Test(runtime_bundle_set, which_kernel_runs)
{
    static maker b;
    const fa_bundle *list[] = { NULL, NULL };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int only = 0; only < 2; only++) {
            char text[4096] = "";
            list[0] = maker_make(&b, rules[i].items);
            fa_context *ctx = context(list, only, rules[i].major, rules[i].minor, rules[i].takes_ptx, rules[i].budget);
            fa_args a = call(rules[i].align, rules[i].n);
            fa_status st = fa_explain(ctx, NULL, &a, text, sizeof text), ran = fa_launch(ctx, &a, NULL);
            if (rules[i].runs >= 0) {
                cr_expect(st == FA_OK && strstr(text, "bundle: of the bundle bundled by fagen ") && strstr(text, "a test says so"),
                          "%s: %s", rules[i].what, text);
                cr_expect(ran == FA_OK && (int)fake_last().block == 32 * (rules[i].runs + 1), "%s: %s: block %u", rules[i].what,
                          fa_last_error(), fake_last().block);
                const item *it = &rules[i].items[rules[i].runs]; /* what is not made for this very chip and class says what it is */
                bool other = strcmp(it->arch, fa_context_arch(ctx)->name) || it->ptx || it->align != rules[i].align;
                char what[96];
                snprintf(what, sizeof what, " (%s for %s, rows at multiples of %d bytes)", it->ptx ? "PTX" : "a cubin", it->arch,
                         it->align);
                cr_expect(other ? strstr(text, what) != NULL : !strstr(text, " (a cubin for "), "%s: %s", rules[i].what, text);
                OK(fa_explain(ctx, NULL, &a, text, sizeof text));
                cr_expect(strstr(text, "loaded, from the bundle") && strstr(text, "77 registers"), "%s", text);
            } else {
                /* what is left is to compile, which is ruled out, or has nothing to do it with */
                cr_expect_eq(ran, only ? FA_NO_KERNEL : FA_IO, "%s: %s: %s", rules[i].what, fa_status_name(ran), fa_last_error());
                int rows = 0, here = 0;
                for (; rules[i].items[rows].arch; rows++)
                    here += !strcmp(rules[i].items[rows].arch, fa_context_arch(ctx)->name);
                snprintf(text, sizeof text, "hold %d rows, %d of them for %s", rows, here, fa_context_arch(ctx)->name);
                cr_expect(!only || strstr(fa_last_error(), text), "%s: %s", text, fa_last_error());
            }
            fa_destroy(ctx);
            cr_assert_eq(fake_live_libraries(), 0);
        }
}

Test(runtime_bundle_set, a_hit_is_a_hit)
{
    static maker b;
    const fa_bundle *list[] = { NULL, NULL };
    const item items[ROWS + 1] = { { "sm_80", 0, 16, 512, 0 }, { "sm_80", 0, 16, 4096, 0 } };
    list[0] = maker_make(&b, items);
    fa_context *ctx = context(list, 1, 8, 0, 0, 0);
    fa_args a = call(16, 512);
    fake_capturing(true);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_CAPTURE, "a miss");
    fake_capturing(false);
    OK(fa_launch(ctx, &a, NULL));
    long loads = fake_calls("cuLibraryLoadData"), all = fake_calls(NULL);
    fake_capturing(true);
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq(fake_calls("cuLibraryLoadData"), loads);
    long hit = fake_calls(NULL) - all;
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq(fake_calls(NULL) - all, 2 * hit, "each hit costs the same");
    fake_capturing(false);
    a.sq = a.sk = 1100; /* another bucket, the same image: nothing is loaded again */
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq((int)fake_last().block, 32);
    cr_expect_eq(fake_calls("cuLibraryLoadData"), loads);
    fa_destroy(ctx);
    struct stat st;
    char path[300];
    snprintf(path, sizeof path, "%s/v1", scratch);
    cr_expect(stat(path, &st) != 0, "no disk cache was made");
}

Test(runtime_bundle_set, the_driver_refuses)
{
    static maker b;
    const fa_bundle *list[] = { NULL, NULL };
    const item items[ROWS + 1] = { { "sm_80", 0, 16, 512, 0 } };
    list[0] = maker_make(&b, items);
    fa_context *ctx = context(list, 1, 8, 0, 0, 0);
    fa_args a = call(16, 512);
    fake_fail("cuLibraryLoadData", 1, CUDA_ERROR_INVALID_IMAGE);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_DEVICE);
    cr_expect(strstr(fa_last_error(), "bundle bundled: image 0: flash_fwd_mma: cuLibraryLoadData"), "%s", fa_last_error());
    OK(fa_launch(ctx, &a, NULL));
    fa_destroy(ctx);
}

Test(runtime_bundle_set, several_bundles_and_none)
{
    static maker b, c;
    const fa_bundle *list[] = { NULL, NULL, NULL }, *empty[] = { NULL };
    const item first[ROWS + 1] = { { "sm_80", 0, 16, 16384, 0 } },
                            second[ROWS + 1] = { { "sm_90a", 0, 16, 512, 0 }, { "sm_80", 0, 16, 512, 0 } };
    list[0] = maker_make(&b, first);
    list[1] = maker_make(&c, second);
    fa_context *ctx = context(list, 1, 8, 0, 0, 0);
    fa_args a = call(16, 512);
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq((int)fake_last().block, 64);
    fa_destroy(ctx);
    fa_options o = FA_OPTIONS_INIT;
    o.bundle_only = 2;
    cr_expect_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "bundle_only is 2; accepted: 0, 1"), "%s", fa_last_error());
    ctx = context(empty, 1, 8, 0, 0, 0);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NO_KERNEL);
    cr_expect(strstr(fa_last_error(), "hold 0 rows"), "%s", fa_last_error());
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = FA_BF16, p.d = 64;
    cr_expect_eq(fa_tune(ctx, &p, NULL), FA_NO_KERNEL);
    cr_expect(strstr(fa_last_error(), "bundle_only"), "%s", fa_last_error());
    fa_destroy(ctx);
}

/* What bundles hold is test_bundle_blob's; here, that fa_create() reads each, and a launch the bytes that it loads. */
Test(runtime_bundle_set, what_no_fagen_wrote_is_refused)
{
    static maker b, c;
    const fa_bundle *list[] = { NULL, NULL, NULL };
    const item items[ROWS + 1] = { { "sm_80", 0, 16, 512, 0 }, { "sm_80", 0, 16, 4096, 0 } };
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx = NULL;
    o.cache_dir = "";
    o.bundles = list;
    list[0] = maker_make(&b, items);
    maker_fill(&c, items);
    c.row[1].problem.d = 0;
    list[1] = maker_write(&c);
    cr_expect_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_INVALID);
    cr_expect(!ctx && strstr(fa_last_error(), "options: bundle 1: bundled: row 1: problem: d is 0; accepted: "), "%s", fa_last_error());
    maker_fill(&c, items); /* no rows and no images */
    c.blob.rows = c.blob.images = 0;
    list[1] = maker_write(&c);
    OK(fa_create_on(&ctx, &o, fake_driver(), 0));
    fa_destroy(ctx);
    list[1] = NULL;
    ctx = context(list, 1, 8, 0, 0, 0);
    fa_args a = call(16, 4096);
    char *last = b.text.s + fa_get32((unsigned char *)b.text.s + IMAGES_AT) + 2 * MAKER_IMAGE - 1; /* byte of the last image */
    *last ^= 1;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "bundle bundled: image 1: its checksum is "), "%s", fa_last_error());
    *last ^= 1;
    OK(fa_launch(ctx, &a, NULL));
    fa_destroy(ctx);
}
