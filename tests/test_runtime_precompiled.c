/* Kernels that ship compiled: where a file has the text of what was chosen, nothing is compiled and no NVRTC is looked for; any other text,
 * version or damage is compiled as ever. On the simulator, whose image is PTX. */
#include "bundle_maker.h"
#include "gen/error.h"
#include "runtime/bundle/precompiled.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

TestSuite(runtime_precompiled, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

static char told[4096]; /* lines of the log */

static void keep(void *user, int level, const char *message)
{
    (void)user, (void)level;
    size_t at = strlen(told);
    snprintf(told + at, sizeof told - at, "%s\n", message);
}

static fa_context *open_with(const char *shipped, const char *nvrtc)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    told[0] = 0;
    o.device = "sim:sm_80";
    o.cache_dir = "";
    o.shipped = shipped;
    o.nvrtc = nvrtc;
    o.log = keep;
    o.log_level = FA_LOG_INFO;
    cr_assert_eq(fa_create(&ctx, &o), FA_OK, "%s", fa_last_error());
    return ctx;
}

static const fa_problem problem = { .size = sizeof problem,
                                    .dtype = FA_F16,
                                    .d = 16,
                                    .dv = 16,
                                    .o_dtype = FA_F16,
                                    .align = 16,
                                    .b = 1,
                                    .hq = 1,
                                    .hkv = 1,
                                    .sq = 32,
                                    .sk = 32 };

/* A file with the kernel that is chosen for the problem. */
static const char *make_file(const char *version, const char *hash)
{
    static maker m;
    static char source[33];
    fa_context *ctx = open_with("", NULL);
    fa_selection chosen;
    fa_source s;
    fa_entry e;
    cr_assert_eq(fa_select(ctx, &problem, &chosen, &s), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_compile(fa_context_compiler(ctx), &s, "sm_80", FA_IMAGE_PTX, &e), FA_OK, "%s", fa_last_error());
    maker_fill(&m, (maker_item[]){ { "sm_80", 1, 16, 32, 0 }, { .arch = NULL } });
    fa_key_print(source, (fa_key){ s.hash[0], s.hash[1] });
    m.image[0].source = hash ? hash : source;
    m.image[0].bytes = (const unsigned char *)e.image;
    m.image[0].size = (int32_t)e.image_size;
    m.image[0].steps = s.steps;
    for (int i = 0; i < s.steps; i++)
        m.step[0][i] = (fa_blob_step){ .launch = s.step[i] };
    m.blob.version = version;
    maker_write(&m);
    const char *path = below("kernels.bundle");
    FILE *f = fopen(path, "w");
    cr_assert(f && fwrite(m.text.s, 1, m.text.n, f) == m.text.n && fclose(f) == 0);
    fa_entry_free(&e);
    fa_source_free(&s);
    fa_text_free(&m.text);
    fa_destroy(ctx);
    return path;
}

static fa_status prepare(fa_context *ctx)
{
    return fa_prepare(ctx, &problem);
}

Test(runtime_precompiled, nothing_is_compiled)
{
    char text[8192];
    fa_context *ctx = open_with(make_file(FA_VERSION_STRING, NULL), "/no/such/libnvrtc.so");
    cr_assert_eq(fa_explain(ctx, &problem, NULL, text, sizeof text), FA_OK, "%s", fa_last_error());
    cr_expect(strstr(text, "kernel     compiled with the library, in ") && strstr(text, "kernels.bundle"), "%s", text);
    cr_assert_eq(prepare(ctx), FA_OK, "%s", fa_last_error());
    cr_expect(strstr(told, "from the bundle bundled"), "%s", told);
    cr_assert_eq(fa_explain(ctx, &problem, NULL, text, sizeof text), FA_OK);
    cr_expect(strstr(text, "loaded, from the shipped kernels"), "%s", text);
    cr_expect_not(strstr(text, "why        bundle"), "it has no say in the choice: %s", text);
    fa_destroy(ctx);
}

Test(runtime_precompiled, turned_off)
{
    make_file(FA_VERSION_STRING, NULL);
    fa_context *ctx = open_with("", "/no/such/libnvrtc.so");
    cr_expect_eq(prepare(ctx), FA_NO_NVRTC);
    fa_destroy(ctx);
}

Test(runtime_precompiled, what_cannot_be_used_is_a_line_of_the_log)
{
    static const struct {
        const char *version, *hash, *line;
        int cut, flip; /* bytes from the end; of the images */
    } rows[] = {
        { "0.0.9", NULL, "kernels.bundle is not used, and kernels are compiled: it is of fagen 0.0.9", 0, 0 },
        { FA_VERSION_STRING, "00000000000000000000000000000001", NULL, 0, 0 },
        { FA_VERSION_STRING, NULL, "kernels.bundle is not used, and kernels are compiled: ", 8, 0 },
        { FA_VERSION_STRING, NULL, "is not used, and compiled: bundle bundled: image 0: its checksum", 0, 64 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = make_file(rows[i].version, rows[i].hash);
        FILE *f = fopen(path, "r+");
        fseek(f, -rows[i].cut - rows[i].flip, SEEK_END);
        if (rows[i].flip) {
            int c = fgetc(f);
            fseek(f, -1, SEEK_CUR);
            fputc(c ^ 1, f);
        }
        cr_assert(!rows[i].cut || ftruncate(fileno(f), ftell(f)) == 0);
        fclose(f);
        fa_context *ctx = open_with(path, NULL);
        cr_expect_eq(prepare(ctx), FA_OK, "row %zu: %s", i, fa_last_error());
        cr_expect(strstr(told, "from the compiler"), "row %zu: %s", i, told);
        cr_expect(rows[i].line ? strstr(told, rows[i].line) != NULL : !strstr(told, "not used"), "row %zu: %s", i, told);
        fa_destroy(ctx);
    }
    fa_context *ctx = open_with(below("none.bundle"), NULL);
    cr_expect_eq(prepare(ctx), FA_OK);
    cr_expect(strstr(told, "none.bundle is not used, and kernels are compiled: No such file"), "%s", told);
    fa_destroy(ctx);
}
