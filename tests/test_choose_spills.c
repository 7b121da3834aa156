/* Where nothing was measured, what runs first spills no register: on chips that no winner ships for. FAGEN_TEST_FULL=1: every row on each.
 */
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "runtime/build/compiler.h"
#include "runtime/build/resources.h"
#include "runtime/choose/choose.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <string.h>

static const char *const archs[] = { "sm_80", "sm_86", "sm_89" };

/* arch: an index of the arch that compiles the row in each run; below 0: none does. */
static const struct {
    int arch;
    const char *problem;
} rows[] = {
    { 0, "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" }, /* a row that ships for Hopper spills 44 + 88 bytes */
    { 1, "bf16,d=128,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { 2, "bf16,d=112,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { 2, "bf16,d=64,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096,features=lengths" },
    { -1, "bf16,d=64,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=64,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=96,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=80,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=256,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=192,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=160,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=104,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=72,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=48,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=40,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=32,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { 0, "fp32,d=128,b=1,hq=16,hkv=16,sq=4096,sk=4096" }, /* ptxas, told no number of blocks, spills 8 + 24 bytes */
    { -1, "fp32,d=128,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "fp32,d=64,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "fp32,d=256,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "tf32,d=128,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "tf32,d=64,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "fp16,d=64,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=512,sk=512" },
    { -1, "bf16,d=128,b=1,hq=32,hkv=8,sq=1024,sk=1024" },
    { -1, "bf16,d=128,mask=window,b=1,hq=16,hkv=16,sq=4096,sk=4096,window=512" },
    { -1, "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096,features=lengths" },
    { -1, "bf16,d=96,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096,features=lengths" },
    { -1, "bf16,d=64,b=1,hq=16,hkv=16,sq=4096,sk=4096,features=lengths+pages,page=64" },
    { -1, "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096,features=dropout" },
    { -1, "bf16,d=64,b=1,hq=16,hkv=16,sq=4096,sk=4096,features=dropout" },
    { -1, "bf16,d=64,mask=causal,op=backward,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
    { -1, "bf16,d=128,mask=causal,op=backward,b=1,hq=16,hkv=16,sq=4096,sk=4096" },
};

/* most: bytes stored and loaded that are allowed. */
static void spills_at_most(fa_gen *g, fa_compiler *compiler, const char *text, const char *name, int most)
{
    static fa_choice choice;
    fa_problem p;
    fa_facts facts;
    fa_source s;
    fa_entry e;
    char config[512];
    const fa_arch *arch = fa_arch_find(name);
    cr_assert(arch && fa_problem_parse(&p, text) == FA_OK, "%s: %s", text, fa_last_error());
    fa_problem point = fa_problem_point(&p);
    cr_assert_eq(fa_facts_of(&facts, NULL, &point, arch, 0), FA_OK);
    cr_assert_eq(fa_choose(g, &point, arch, 0, &facts, false, &choice), FA_OK, "%s: %s", text, fa_last_error());
    fa_config_print(config, sizeof config, &choice.row[0].config);
    cr_assert_eq(fa_render(g, &point, &choice.row[0].config, arch, 0, &s), FA_OK, "%s: %s", text, fa_last_error());
    cr_assert_eq(fa_compile(compiler, &s, name, FA_IMAGE_CUBIN | FA_IMAGE_LEAN, &e), FA_OK, "%s: %s", text, fa_last_error());
    for (int i = 0; i < s.steps; i++) {
        fa_resources r = fa_resources_parse(e.log, s.step[i].entry);
        cr_expect(r.known && r.spill_stores + r.spill_loads <= most, "%s on %s, %s: %d registers, %d + %d bytes spilled", text, name,
                  config, r.registers, r.spill_stores, r.spill_loads);
    }
    fa_entry_free(&e);
    fa_source_free(&s);
    fa_facts_free(&facts);
}

Test(choose_spills, the_first_choice_spills_nothing, .timeout = 600)
{
    fa_gen *g;
    fa_compiler *compiler = fa_compiler_open(NULL);
    cr_assert(compiler && fa_gen_open(&g, NULL) == FA_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int a = 0; a < (int)(sizeof archs / sizeof *archs); a++)
            if (full() || rows[i].arch == a)
                spills_at_most(g, compiler, rows[i].problem, archs[a], 0);
    fa_gen_close(g);
    fa_compiler_close(compiler);
}

/* Kernels of Hopper that have all the registers there are. Stores of sixteen bytes at a tile's end once made the loop over keys of wide
 * heads spill up to 700 times, and take twice as long, as did limbs of eight rows over q8_0 at d = 256. */
Test(choose_spills, wide_rows_of_hopper_spill_next_to_nothing, .timeout = 600)
{
    static const struct {
        const char *problem;
        int most; /* of halves under a diagonal, at the ends of tiles, with 1.1 of the speed of what spills nothing (docs/performance.md) */
        bool always; /* else with FAGEN_TEST_FULL=1 */
    } wide[] = {
        { "bf16,d=512,mask=causal,b=1,hq=8,hkv=8,sq=8192,sk=8192", 112, true },
        { "bf16,d=256,mask=causal,kv=q8_0,b=9,hq=24,hkv=3,sq=1,sk=26788", 0, true },
        { "bf16,d=256,mask=causal,kv=q8_0,b=9,hq=64,hkv=8,sq=1,sk=9000", 0, false },
        { "bf16,d=256,mask=causal,kv=q4_0,b=9,hq=64,hkv=8,sq=1,sk=9000", 104, false },
        { "bf16,d=320,mask=causal,b=1,hq=8,hkv=8,sq=8192,sk=8192", 0, false },
        { "bf16,d=320,mask=window,b=1,hq=8,hkv=8,sq=8192,sk=8192,window=1000", 0, false },
        { "bf16,d=320,mask=causal,b=4,hq=8,hkv=8,sq=1024,sk=1024,features=lengths", 0, false },
        { "bf16,d=576,dv=512,mask=causal,features=lengths+pages+v-in-k,page=64,b=16,hq=128,hkv=1,sq=2,sk=4096", 0, false },
        { "bf16,d=576,dv=512,mask=none,features=lengths+pages+v-in-k,page=64,b=16,hq=128,hkv=1,sq=1,sk=4096", 0, false },
    };
    fa_gen *g;
    fa_compiler *compiler = fa_compiler_open(NULL);
    cr_assert(compiler && fa_gen_open(&g, NULL) == FA_OK);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (full() || wide[i].always)
            spills_at_most(g, compiler, wide[i].problem, "sm_90a", wide[i].most);
    fa_gen_close(g);
    fa_compiler_close(compiler);
}
