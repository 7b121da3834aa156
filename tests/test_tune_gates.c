/* What compiles and still is no candidate: spills, and notes of ptxas. A toy for sm_90a, through the compile pool alone. */
#include "autotune/search/compile_pool.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"

static const char lua[] =
    "return { doc = 'x', default = false, tunables = { { 'kind', { 0, 1, 2, 3 }, 'k' } }, constraints = {},\n"
    "  supports = function() return true end, layout = function() return { bytes = 0, threads = 512, regs = 128 } end,\n"
    "  steps = function(p, c) return { { entry = 'toy', grid = 'sq/64 hq b',\n"
    "    maps = c.kind == 1 and { { tensor = 'q', cols = 64, rows = 64, swizzle = 128 } } or nil } } end }\n";

/* kind 0 and 1: two values more than 128 registers hold beside their addresses. 2: registers are handed over that nobody counted. */
static const char cu[] =
    "//| if c.kind <= 1 then\n"
    "extern \"C\" __global__ void __launch_bounds__(512) toy(float *p, int n) {\n"
    "  float x[126];  // $(c.kind)\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 126; i++) x[i] = p[i];\n"
    "  for (int k = 0; k < n; k++) {\n"
    "    float y = p[k + threadIdx.x];\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < 126; i++) x[i] = x[i] * y + x[(i + 1) % 126];\n"
    "  }\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 126; i++) p[i * 512 + threadIdx.x] = x[i];\n"
    "}\n"
    "//| elseif c.kind == 2 then\n"
    "extern \"C\" __global__ void toy(int *o) { asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\"); o[threadIdx.x] = 1; }\n"
    "//| else\n"
    "extern \"C\" __global__ void __launch_bounds__(512) toy(int *o) { o[threadIdx.x] = 1; }\n"
    "//| end\n";

Test(tune_gates, spills_and_notes)
{
    char dir[64];
    fa_candidate c[4], guess;
    fa_journal j;
    fa_compile_pool *w;
    fa_problem p;
    fa_status fatal;
    memset(c, 0, sizeof c);
    scratch_make();
    toy_dir(dir, cu);
    toy_write(dir, "toy.lua", lua);
    fa_site site = {
        .arch = fa_arch_find("sm_90"), .template_dir = dir, .store = fa_store_open(scratch, NULL, NULL), .compiler = fa_compiler_open(NULL)
    };
    cr_assert_str_eq(site.arch->name, "sm_90a", "the architecture with wgmma, TMA and setmaxnreg");
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64"), FA_OK);
    cr_assert_eq(fa_journal_open(&j, &site, &p, FA_MEASURED), FA_OK, "%s", fa_last_error());
    for (int i = 0; i < 4; i++) {
        char text[32];
        snprintf(text, sizeof text, "toy:kind=%d", i);
        cr_assert_eq(fa_config_parse(&c[i].config, text), FA_OK);
    }
    cr_assert_eq(fa_compile_pool_start(&w, &site, &j, c, 4, 1, true), FA_OK);
    for (size_t i = 0; i < 4; i++)
        cr_assert(fa_compile_pool_wait(w, i, -1, &fatal) && fatal == FA_OK, "%s", fa_last_error());
    fa_compile_pool_stop(w, 0);
    cr_expect(!c[0].decided && c[0].spills > 0 && c[0].spills <= FA_SPILLS_ACCEPTED, "%d bytes: %s", c[0].spills, c[0].why);
    cr_expect(c[1].decided && c[1].outcome == FA_BAD_CONSTRAINT && c[1].spills == c[0].spills, "with maps, %d bytes", c[1].spills);
    cr_expect(strstr(c[1].why, "> 0 bytes"), "%s", c[1].why);
    cr_expect(c[2].decided && c[2].outcome == FA_BAD_CONSTRAINT && strstr(c[2].why, "'setmaxnreg' ignored"), "%s", c[2].why);
    cr_expect(!c[3].decided && c[3].regs > 0 && !c[3].spills, "%s", c[3].why);
    fa_journal_close(&j);

    /* where nothing is timed, no byte of spills is accepted, nor an older record that had some */
    memset(&guess, 0, sizeof guess);
    guess.config = c[0].config;
    cr_assert_eq(fa_journal_open(&j, &site, &p, FA_MODELLED), FA_OK, "%s", fa_last_error());
    for (int again = 0; again < 2; again++) {
        cr_assert_eq(fa_compile_pool_start(&w, &site, &j, &guess, 1, 1, false), FA_OK);
        cr_assert(fa_compile_pool_wait(w, 0, -1, &fatal) && fatal == FA_OK, "%s", fa_last_error());
        fa_compile_pool_stop(w, 0);
        cr_expect(guess.decided && guess.outcome == FA_BAD_CONSTRAINT && !guess.resumed && strstr(guess.why, "> 0 bytes"), "%d bytes: %s",
                  guess.spills, guess.why);
        guess.outcome = FA_RAN, guess.how = FA_MODELLED, guess.seconds = 1e-6; /* as older versions wrote it */
        fa_journal_note(&j, &guess);
        guess.decided = false;
        fa_journal_close(&j);
        cr_assert_eq(fa_journal_open(&j, &site, &p, FA_MODELLED), FA_OK, "%s", fa_last_error());
    }
    fa_journal_close(&j);
    fa_compiler_close(site.compiler);
    fa_store_close(site.store);
    toy_remove(dir, NULL);
    scratch_remove();
}

/* No compiler is the fault of no candidate: none is rejected for it, and fa_compile_pool_wait() tells it. */
Test(tune_gates, no_compiler_is_fatal)
{
    char dir[64];
    fa_candidate c[2];
    fa_journal j;
    fa_compile_pool *w;
    fa_problem p;
    fa_status fatal = FA_OK;
    memset(c, 0, sizeof c);
    scratch_make();
    toy_dir(dir, cu);
    toy_write(dir, "toy.lua", lua);
    fa_site site = { .arch = fa_arch_find("sm_90"),
                     .template_dir = dir,
                     .store = fa_store_open(scratch, NULL, NULL),
                     .compiler = fa_compiler_open(NULL) },
            without = site;
    without.compiler = fa_compiler_open("/nowhere/libnvrtc.so");
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64"), FA_OK);
    cr_assert_eq(fa_journal_open(&j, &site, &p, FA_MODELLED), FA_OK, "%s", fa_last_error());
    for (int i = 0; i < 2; i++)
        cr_assert_eq(fa_config_parse(&c[i].config, i ? "toy:kind=2" : "toy:kind=3"), FA_OK);
    cr_assert_eq(fa_compile_pool_start(&w, &without, &j, c, 2, 1, true), FA_OK);
    fa_compile_pool_wait(w, 1, -1, &fatal);
    cr_expect_eq(fatal, FA_NO_NVRTC, "%s", fa_last_error());
    cr_expect(strstr(fa_last_error(), "/nowhere/libnvrtc.so"), "%s", fa_last_error());
    fa_compile_pool_stop(w, 0);
    for (int i = 0; i < 2; i++)
        cr_expect(!c[i].decided, "%d: %s", i, c[i].why);
    fa_journal_close(&j);
    fa_compiler_close(site.compiler);
    fa_compiler_close(without.compiler);
    fa_store_close(site.store);
    toy_remove(dir, NULL);
    scratch_remove();
}
