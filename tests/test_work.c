/* Which tiles a thread block does is written once, in templates/work/: the places are counted in all templates, whatever their files are
 * called, and in the texts of a fixed list of kernels. A scheduler or a rule that is written into a kernel by hand raises a count. */
#include "gen/config.h"
#include "gen/templates.h"
#include "test_gen_toy.h"
#include <regex.h>

static const struct {
    const char *what, *pattern; /* of a line */
    int inside, outside;        /* lines of templates/work/, and of all others but probes */
    const char *by_hand;        /* such a line */
} rules[] = {
    { "the number of a thread block", "blockIdx|gridDim|ctaid", 2, 0, "  const int row0 = blockIdx.x % p.tiles * BR;" },
    { "the tile of a number", "[/%] p[.]tiles", 7, 1, "  const int head = number / p.tiles;" },
    { "what is drawn from the counter", "atomicInc[(]|p[.]counter", 1, 0,
      "    if (lane == 0) drawn = atomicInc(p.counter, (u32)p.total - 1);" },
    { "rounds back and forth", "round %+ 2 == 0", 1, 0, "    const int tile = round * n + (round % 2 == 0 ? block : n - 1 - block);" },
    { "a queue of tiles", "u32 tile_(full|empty|slot)[(]", 3, 0,
      "__device__ __forceinline__ u32 tile_full(u32 smem, int slot) { return barrier(smem, slot); }" },
    { "who takes tiles", "^struct [A-Za-z]*(Scheduler|Queue)\\b", 2, 0, "struct TileScheduler {" },
    { "a tile that a later step goes on with", "p[.]tiles_open", 18, 0, "  ((int4 *)p.tiles_open)[n] = make_int4(0, 0, 0, 0);" },
    { "the last of those that count", "count[(][(]u32 [*][)].* == ", 1, 0,
      "  last = count((u32 *)p.workspace + tile, (u32)n - 1) == (u32)n - 1;" },
    { "where parts lie", "p[.]part_(o|state)", 23, 0, "  float4 *const part_o = (float4 *)p.part_o;" },
    { "parts of a row under way", "load_part[(]part_(o|state) [+]", 4, 0, "      x[k] = load_part(part_o + from * (COLS / 4) + four);" },
    { "where a row of a part lies", "= part_row[(]", 2, 0, "      const long long at = part_row(where, first + row);" },
    { "O out of the sum of parts", "[.]o[.]x [*] inverse", 1, 0, "  to[0] = sum.o.x * inverse;" },
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static int lines_with(const regex_t *pattern, const char *text)
{
    int n = 0;
    for (const char *s = text; *s;) {
        char line[512];
        size_t length = strcspn(s, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, s);
        n += !regexec(pattern, line, 0, NULL, 0);
        s += length + (s[length] == '\n');
    }
    return n;
}

static void compile(regex_t *out, const char *pattern)
{
    cr_assert_eq(regcomp(out, pattern, REG_EXTENDED | REG_NOSUB), 0, "%s", pattern);
}

Test(work, a_rule_stands_in_one_place)
{
    for (size_t i = 0; i < COUNT(rules); i++) {
        regex_t pattern;
        int inside = 0, outside = 0;
        compile(&pattern, rules[i].pattern);
        for (const fa_template_file *f = fa_template_files; f->name; f++) {
            bool room = !strcmp(f->folder, "work"), probe = !strcmp(f->folder, "probes");
            int n = probe ? 0 : lines_with(&pattern, f->bytes);
            *(room ? &inside : &outside) += n;
            if (!room && n)
                cr_log_info("%s/%s: %s, %d times", f->folder, f->name, rules[i].what, n);
        }
        cr_expect_leq(outside, rules[i].outside, "%s: %d lines outside of templates/work/; accepted: %d, and hooks of that room",
                      rules[i].what, outside, rules[i].outside);
        cr_expect_eq(inside, rules[i].inside, "%s: %d lines of templates/work/, not %d", rules[i].what, inside, rules[i].inside);
        cr_expect_eq(lines_with(&pattern, rules[i].by_hand), 1, "%s is not counted: %s", rules[i].what, rules[i].by_hand);
        regfree(&pattern);
    }
}

/* ---- the same in the texts of kernels, where printed lines count as well ---- */

enum { BLOCKS, EXPONENTIALS, RANGES, WORDS, PLACES };
static const struct {
    const char *what, *pattern, *by_hand;
} places[PLACES] = {
    [BLOCKS] = { "asks for the thread block's number", "blockIdx|gridDim|ctaid", "const int mine = blockIdx.x;" },
    [EXPONENTIALS] = { "takes an exponential or a logarithm", "expf[(]|exp2_approx[(]|logf[(]|log2_approx[(]",
                       "const float e = expf(s - m);" },
    [RANGES] = { "asks for the edges of what is seen", "diag_(lo|hi)[(]|(first|last)_(key|query)[(]",
                 "const int last = last_key(sequence, row);" },
    [WORDS] = { "asks which pairs are dropped", "dropout[.](words|keeps)[(]", "if (!dropout.keeps(w.x)) e = 0.f;" },
};

static const struct {
    const char *problem, *config, *arch;
    int lines[PLACES];
} kernels[] = {
    { "fp32,d=24,mask=causal,features=dropout,b=2,hq=4,hkv=2", "naive:tile=64", "sm_80", { 2, 5, 9, 1 } },
    { "bf16,d=64,mask=window,b=1,hq=4,hkv=2",
      "flash_fwd_mma:br=64,bc=64,warps=4,stages_k=2,stages_v=2,order=0,q_regs=0,pack=0,lag=8,ctas=1",
      "sm_80",
      { 1, 7, 16, 0 } },
    { "bf16,d=64,mask=causal,features=lengths,b=7,hq=4,hkv=2",
      "flash_fwd_mma:br=16,bc=32,warps=1,stages_k=2,stages_v=2,order=0,q_regs=0,pack=0,lag=8,ctas=1",
      "sm_80",
      { 2, 9, 19, 0 } },
    { "bf16,d=64,mask=causal,b=1,hq=4,hkv=2",
      "flash_fwd_wgmma:ctas=1,feeder=40,br=64,box=64,bc=48,schedule=0,stages_k=2,stages_v=2,q_bufs=1,ahead=0,sections=1,cluster=1,exp=0,"
      "rescale=2,convert=0,o_path=0,grid=2",
      "sm_90a",
      { 2, 9, 14, 0 } },
    { "bf16,d=64,mask=none,b=1,hq=3,hkv=1",
      "split_mma:br=64,bc=16,warps=2,stages_k=1,stages_v=2,order=1,q_regs=0,pack=1,lag=8,ctas=1,parts=4,combine=0",
      "sm_80",
      { 2, 9, 11, 0 } },
    { "bf16,d=128,mask=causal,b=5,hq=2,hkv=1",
      "decode_mma:br=16,bk=16,key_warps=2,row_warps=1,stages=3,sm_shares=1,ctas=1,min_turns=1,kv_lanes=1,combine=0",
      "sm_80",
      { 5, 7, 15, 0 } },
    { "bf16,d=32,mask=causal,op=backward,features=dropout,b=2,hq=4,hkv=2",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,q_br=64,q_bc=16,dq=0",
      "sm_80",
      { 5, 3, 16, 5 } },
    { "bf16,d=64,mask=causal,op=backward,b=2,hq=4,hkv=2",
      "flash_bwd_wgmma:br=64,twins=0,box=64,stages=2,held=0,q_br=128,grid=2,bc=64,schedule=0,dq=0,ds_bufs=0,q_stages=3",
      "sm_90a",
      { 4, 3, 12, 0 } },
    { "fp32,d=24,mask=none,op=backward,b=2,hq=4,hkv=2", "flash_bwd_ffma:br=32,bc=32", "sm_80", { 6, 3, 10, 0 } },
    { "fp16,d=64,op=merge", "merge:warps=4,team=1,ahead=4", "sm_80", { 1, 4, 0, 0 } },
};

/* The text of a kernel, with templates of `dir` in the place of the library's. Free it. */
static char *text_of(const char *dir, size_t i)
{
    fa_gen *g;
    fa_problem p;
    fa_config c;
    fa_source s;
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_problem_parse(&p, kernels[i].problem), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&c, kernels[i].config), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_render(g, &p, &c, fa_arch_find(kernels[i].arch), 0, &s), FA_OK, "%s: %s", kernels[i].config, fa_last_error());
    char *text = strdup(s.text);
    fa_source_free(&s);
    fa_gen_close(g);
    return text;
}

Test(work, kernels_have_so_many_places)
{
    for (size_t i = 0; i < COUNT(kernels); i++) {
        char *text = text_of(NULL, i), name[64], dir[64];
        const char *const more[] = { name, NULL };
        const fa_template_file *f = fa_template_files;
        snprintf(name, sizeof name, "%.*s.cu", (int)strcspn(kernels[i].config, ":"), kernels[i].config);
        while (f->name && strcmp(f->name, name))
            f++;
        cr_assert(f->name, "%s", name);
        toy_dir(dir, "x\n");
        for (int k = 0; k < PLACES; k++) {
            regex_t pattern;
            static char by_hand[200000];
            compile(&pattern, places[k].pattern);
            int n = lines_with(&pattern, text), most = kernels[i].lines[k];
            cr_expect_eq(n, most, "%s, %s: %d lines of its text, not %d: a rule has one more place, or one less", kernels[i].config,
                         places[k].what, n, most);
            cr_assert_lt(snprintf(by_hand, sizeof by_hand, "%s%s\n", f->bytes, places[k].by_hand), (int)sizeof by_hand);
            toy_write(dir, name, by_hand);
            char *other = text_of(dir, i);
            cr_expect_eq(lines_with(&pattern, other), n + 1, "%s: \"%s\" in %s is not counted", kernels[i].config, places[k].by_hand, name);
            free(other);
            regfree(&pattern);
        }
        toy_remove(dir, more);
        free(text);
    }
}
