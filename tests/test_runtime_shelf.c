/* Which of a bundle's kernels runs, on drivers that only remember; and that a bundle needs neither NVRTC nor templates nor disk. */
#include "fake_driver.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <sys/stat.h>

TestSuite(runtime_shelf, .init = scratch_make, .fini = scratch_remove, .timeout = 120);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define AT(n) ((void *)(uintptr_t)(0x100000000u * (uint64_t)(n)))
enum { ROWS = 5 };

/* One row of a bundle; its image has 32 threads more than the one before, which is how a launch tells it. */
typedef struct item {
    const char *arch;
    int ptx, align, n, smem;
} item;

typedef struct built {
    fa_bundle bundle;
    fa_bundle_row row[ROWS];
    fa_bundle_image image[ROWS];
    char problem[ROWS][160], check[ROWS][33];
    unsigned char bytes[ROWS][64];
} built;

static void build(built *b, const item *items)
{
    memset(b, 0, sizeof *b);
    uint32_t n = 0;
    for (; n < ROWS && items[n].arch; n++) {
        fa_bundle_image *i = &b->image[n];
        snprintf(b->problem[n], sizeof b->problem[n], "bf16,d=64,align=%d,b=1,hq=8,sq=%d,sk=%d", items[n].align, items[n].n, items[n].n);
        memcpy(b->bytes[n], items[n].ptx ? "// PTX" : "\x7f" "ELF", 4);
        *i = (fa_bundle_image){.arch = items[n].arch, .config = "flash_fwd_mma:br=64", .source = "00000000000000000000000000000001", .check = b->check[n],
                               .bytes = b->bytes[n], .size = 64, .ptx = items[n].ptx, .steps = 1};
        i->step[0] = (fa_bundle_step){.entry = "fa_fwd", .threads = 32 * ((int)n + 1), .smem = items[n].smem, .br = 64, .cluster = 1, .registers = 77};
        fa_key_print(b->check[n], fa_shelf_check(i));
        b->row[n] = (fa_bundle_row){b->problem[n], "a test says so", n};
    }
    b->bundle = (fa_bundle){sizeof b->bundle, FA_BUNDLE_FORMAT, "bundled", FA_VERSION_STRING, fa_shelf_params(), b->row, b->image, n, n};
}

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
    o.template_dir = "/nonexistent";
    o.bundles = list;
    o.bundle_only = only;
    o.sram_budget = budget;
    OK(fa_create_on(&ctx, &o, d, 0));
    return ctx;
}

static const struct {
    const char *what;
    int major, minor, takes_ptx, align, n;
    int32_t budget;
    item items[ROWS + 1];
    int runs; /* index; -1 = none */
} rules[] = {
    {"the chip's own cubin comes before its PTX", 8, 0, 0, 16, 4096, 0, {{"sm_80", 1, 16, 4096, 0}, {"sm_80", 0, 16, 4096, 0}}, 1},
    {"a simulator takes PTX alone", 8, 0, 1, 16, 4096, 0, {{"sm_80", 0, 16, 4096, 0}, {"sm_80", 1, 16, 4096, 0}}, 1},
    {"a simulator runs no cubin", 8, 0, 1, 16, 4096, 0, {{"sm_80", 0, 16, 4096, 0}}, -1},
    {"the nearest length", 8, 0, 0, 16, 2048, 0, {{"sm_80", 0, 16, 512, 0}, {"sm_80", 0, 16, 4096, 0}, {"sm_80", 0, 16, 16384, 0}}, 1},
    {"of the own length", 8, 0, 0, 16, 512, 0, {{"sm_80", 0, 16, 16384, 0}, {"sm_80", 0, 16, 512, 0}, {"sm_80", 0, 16, 4096, 0}}, 1},
    {"the own chip before the own length", 8, 6, 0, 16, 512, 0, {{"sm_80", 0, 16, 512, 0}, {"sm_86", 0, 16, 16384, 0}}, 1},
    {"a cubin of an older chip of the same major version", 8, 9, 0, 16, 512, 0, {{"sm_80", 0, 16, 512, 0}, {"sm_86", 0, 16, 512, 0}}, 1},
    {"never of a newer one", 8, 0, 0, 16, 512, 0, {{"sm_86", 0, 16, 512, 0}, {"sm_86", 1, 16, 512, 0}}, -1},
    {"nor of another major version", 9, 0, 0, 16, 512, 0, {{"sm_80", 0, 16, 512, 0}}, -1},
    {"but its PTX, the latest", 9, 0, 0, 16, 512, 0, {{"sm_80", 1, 16, 512, 0}, {"sm_89", 1, 16, 512, 0}, {"sm_86", 1, 16, 512, 0}}, 1},
    {"kernels of features of one chip run on no other", 12, 1, 0, 16, 512, 0, {{"sm_120a", 0, 16, 512, 0}, {"sm_120a", 1, 16, 512, 0}, {"sm_90a", 1, 16, 512, 0}}, -1},
    {"and on their own", 9, 0, 0, 16, 512, 0, {{"sm_80", 1, 16, 512, 0}, {"sm_90a", 0, 16, 4096, 0}}, 1},
    {"the own alignment", 8, 0, 0, 16, 512, 0, {{"sm_80", 0, 8, 512, 0}, {"sm_80", 0, 16, 16384, 0}}, 1},
    {"else the most of those below", 8, 0, 0, 16, 512, 0, {{"sm_80", 0, 4, 512, 0}, {"sm_80", 0, 8, 16384, 0}}, 1},
    {"never above", 8, 0, 0, 8, 512, 0, {{"sm_80", 0, 16, 512, 0}}, -1},
    {"a cubin that fits the shared memory", 8, 0, 0, 16, 512, 60000, {{"sm_80", 0, 16, 512, 60001}, {"sm_80", 0, 16, 16384, 60000}}, 1},
    {"none does", 8, 6, 0, 16, 512, 0, {{"sm_80", 0, 16, 512, 200 * 1024}}, -1},
};

Test(runtime_shelf, which_kernel_runs)
{
    static built b;
    const fa_bundle *list[] = {&b.bundle, NULL};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int only = 0; only < 2; only++) {
            char text[4096] = "";
            build(&b, rules[i].items);
            fa_context *ctx = context(list, only, rules[i].major, rules[i].minor, rules[i].takes_ptx, rules[i].budget);
            fa_args a = call(rules[i].align, rules[i].n);
            fa_status st = fa_explain(ctx, NULL, &a, text, sizeof text), ran = fa_launch(ctx, &a, NULL);
            if (rules[i].runs >= 0) {
                cr_expect(st == FA_OK && strstr(text, "bundle: of the bundle bundled by fagen ") && strstr(text, "a test says so"), "%s: %s", rules[i].what,
                          text);
                cr_expect(ran == FA_OK && (int)fake_last().block == 32 * (rules[i].runs + 1), "%s: %s: block %u", rules[i].what,
                          fa_last_error(), fake_last().block);
                const item *it = &rules[i].items[rules[i].runs]; /* what is not made for this very chip and class says what it is */
                bool other = strcmp(it->arch, fa_context_arch(ctx)->name) || it->ptx || it->align != rules[i].align;
                char what[96];
                snprintf(what, sizeof what, " (%s for %s, rows at multiples of %d bytes)", it->ptx ? "PTX" : "a cubin", it->arch, it->align);
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

Test(runtime_shelf, a_hit_is_a_hit)
{
    static built b;
    const fa_bundle *list[] = {&b.bundle, NULL};
    const item items[ROWS + 1] = {{"sm_80", 0, 16, 512, 0}, {"sm_80", 0, 16, 4096, 0}};
    build(&b, items);
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

Test(runtime_shelf, the_driver_refuses)
{
    static built b;
    const fa_bundle *list[] = {&b.bundle, NULL};
    const item items[ROWS + 1] = {{"sm_80", 0, 16, 512, 0}};
    build(&b, items);
    fa_context *ctx = context(list, 1, 8, 0, 0, 0);
    fa_args a = call(16, 512);
    fake_fail("cuLibraryLoadData", 1, CUDA_ERROR_INVALID_IMAGE);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_DEVICE);
    cr_expect(strstr(fa_last_error(), "bundle bundled: image 0: flash_fwd_mma: cuLibraryLoadData"), "%s", fa_last_error());
    OK(fa_launch(ctx, &a, NULL));
    fa_destroy(ctx);
}

Test(runtime_shelf, several_bundles_and_none)
{
    static built b, c;
    const fa_bundle *list[] = {&b.bundle, &c.bundle, NULL}, *empty[] = {NULL};
    const item first[ROWS + 1] = {{"sm_80", 0, 16, 16384, 0}}, second[ROWS + 1] = {{"sm_90a", 0, 16, 512, 0}, {"sm_80", 0, 16, 512, 0}};
    build(&b, first);
    build(&c, second);
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

/* One field at a time of a bundle of two rows and two images; `says` is a part of the message. */
typedef void harm(built *b);
#define HARM(name, code) \
    static void name(built *b) { code; }
HARM(no_name, b->bundle.name = NULL)
HARM(no_version, b->bundle.version = NULL)
HARM(no_rows, b->bundle.row = NULL)
HARM(no_images, b->bundle.image = NULL)
HARM(short_struct, b->bundle.size = sizeof b->bundle - 1)
HARM(next_format, b->bundle.format++)
HARM(other_params, b->bundle.params++)
HARM(no_arch, b->image[1].arch = NULL)
HARM(no_config, b->image[1].config = NULL)
HARM(no_source, b->image[1].source = NULL)
HARM(no_check, b->image[1].check = NULL)
HARM(no_bytes, b->image[1].bytes = NULL)
HARM(alias_of_an_arch, b->image[1].arch = "a100")
HARM(source_not_hex, b->image[1].source = "0000000000000000000000000000000g")
HARM(check_not_hex, b->image[1].check = "0000000000000000000000000000000g")
HARM(source_short, b->image[1].source = "0000000000000000000000000000001")
HARM(check_short, b->image[1].check = "0000000000000000000000000000001")
HARM(no_problem, b->row[1].problem = NULL)
HARM(no_why, b->row[1].why = NULL)
HARM(image_count, b->row[1].image = b->bundle.images)
HARM(image_most, b->row[1].image = UINT32_MAX)
HARM(not_a_cubin, b->bytes[1][0] = 0)
HARM(not_a_problem, b->row[1].problem = "bf16,d=0")

static const struct {
    const char *what, *says;
    harm *make;
} harms[] = {
    {"no name", "name, version, row or image is NULL", no_name},
    {"no version", "name, version, row or image is NULL", no_version},
    {"no rows, two told", "name, version, row or image is NULL", no_rows},
    {"no images, two told", "name, version, row or image is NULL", no_images},
    {"a shorter struct", "size is ", short_struct},
    {"the next format", "format 3; accepted: ", next_format},
    {"other parameters", "other parameters", other_params},
    {"no arch", "image 1: arch, config, source, check or bytes is NULL", no_arch},
    {"no config", "image 1: arch, config, source, check or bytes is NULL", no_config},
    {"no source", "image 1: arch, config, source, check or bytes is NULL", no_source},
    {"no check", "image 1: arch, config, source, check or bytes is NULL", no_check},
    {"no bytes", "image 1: arch, config, source, check or bytes is NULL", no_bytes},
    {"another name of an arch", "image 1: arch is \"a100\"", alias_of_an_arch},
    {"a source that is no hash", "accepted: 32 hex digits each", source_not_hex},
    {"a checksum that is none", "accepted: 32 hex digits each", check_not_hex},
    {"a source of 31 digits", "accepted: 32 hex digits each", source_short},
    {"a checksum of 31 digits", "accepted: 32 hex digits each", check_short},
    {"no problem", "row 1: problem or why is NULL", no_problem},
    {"no why", "row 1: problem or why is NULL", no_why},
    {"the image behind the last", "image 2 is none of 2", image_count},
    {"an image far behind", "image 4294967295 is none of 2", image_most},
    {"bytes of no cubin", "image 1: bytes: not a cubin", not_a_cubin},
    {"a problem that is none", "row 1", not_a_problem},
};

Test(runtime_shelf, what_no_fagen_wrote_is_refused)
{
    static built b;
    const fa_bundle *list[] = {&b.bundle, NULL};
    const item items[ROWS + 1] = {{"sm_80", 0, 16, 512, 0}, {"sm_80", 0, 16, 4096, 0}};
    const cu_driver *d = fake_driver();
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = "";
    o.bundles = list;
    for (size_t i = 0; i < sizeof harms / sizeof *harms; i++) {
        fa_context *ctx = NULL;
        build(&b, items);
        OK(fa_create_on(&ctx, &o, d, 0));
        fa_destroy(ctx);
        ctx = NULL;
        harms[i].make(&b);
        cr_expect_eq(fa_create_on(&ctx, &o, d, 0), FA_INVALID, "%s", harms[i].what);
        cr_expect(!ctx && strstr(fa_last_error(), harms[i].says), "%s: %s", harms[i].what, fa_last_error());
        fa_destroy(ctx);
    }
    build(&b, items); /* no rows and no images need no pointers */
    b.bundle.row = NULL, b.bundle.image = NULL, b.bundle.rows = b.bundle.images = 0;
    fa_context *ctx;
    OK(fa_create_on(&ctx, &o, d, 0));
    fa_destroy(ctx);
}

/* The numbers of a bundle: the least and the most that is taken. */
#define IMAGE(f) offsetof(fa_bundle_image, f)
#define STEP(f) offsetof(fa_bundle_image, step[0].f)
static const struct {
    const char *name;
    size_t at;
    int32_t least, most;
} numbers[] = {
    {"ptx", IMAGE(ptx), 0, 1},
    {"score_bytes", IMAGE(score_bytes), 0, 64},
    {"steps", IMAGE(steps), 1, 4},
    {"threads", STEP(threads), 1, 1024},
    {"smem", STEP(smem), 0, 1 << 20},
    {"br", STEP(br), 0, 1 << 20},
    {"bc", STEP(bc), 0, 1 << 20},
    {"pack", STEP(pack), 0, 1},
    {"per_sm", STEP(per_sm), 0, 32},
    {"cluster", STEP(cluster), 1, 8},
    {"counter", STEP(counter), 0, 1},
    {"early", STEP(early), 0, 1},
    {"maps", STEP(maps), 0, 4},
    {"tensor", STEP(map[3].tensor), 0, 3},
    {"cols", STEP(map[3].cols), 1, 256},
    {"rows", STEP(map[3].rows), 1, 256},
    {"swizzle", STEP(map[3].swizzle), 0, 0},
    {"swizzle", STEP(map[3].swizzle), 32, 32},
    {"swizzle", STEP(map[3].swizzle), 64, 64},
    {"swizzle", STEP(map[3].swizzle), 128, 128},
};

static fa_status with(built *b, size_t at, int32_t v)
{
    const fa_bundle *list[] = {&b->bundle, NULL};
    const item items[ROWS + 1] = {{"sm_80", 0, 16, 512, 0}};
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx = NULL;
    build(b, items);
    for (int s = 1; s < 4; s++)
        b->image[0].step[s] = b->image[0].step[0];
    b->image[0].step[0].maps = 4;
    for (int m = 0; m < 4; m++)
        b->image[0].step[0].map[m] = (fa_bundle_map){.tensor = m, .cols = 64, .rows = 64, .swizzle = 128};
    memcpy((char *)&b->image[0] + at, &v, sizeof v);
    o.cache_dir = "";
    o.bundles = list;
    fa_status st = fa_create_on(&ctx, &o, fake_driver(), 0);
    fa_destroy(ctx);
    return st;
}

Test(runtime_shelf, numbers_out_of_range_are_refused)
{
    static built b;
    char says[64];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        cr_expect_eq(with(&b, numbers[i].at, numbers[i].least), FA_OK, "%s: %s", numbers[i].name, fa_last_error());
        cr_expect_eq(with(&b, numbers[i].at, numbers[i].most), FA_OK, "%s: %s", numbers[i].name, fa_last_error());
        for (int k = 0; k < 2; k++) {
            int32_t v = k ? numbers[i].most + 1 : numbers[i].least - 1;
            cr_expect_eq(with(&b, numbers[i].at, v), FA_INVALID, "%s %d", numbers[i].name, v);
            snprintf(says, sizeof says, "%s is %d", numbers[i].name, v);
            cr_expect(strstr(fa_last_error(), says), "%s", fa_last_error());
        }
    }
}
