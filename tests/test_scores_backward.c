/* Gradients of score programs through fa_launch() on the simulator: random cases of programs that ship, over the families of the backward
 * pass, each held against fp64. */
#include "gen/score/known.h"
#include "gen/score/shipped.h"
#include "gen/templates.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include "test_verify_device.h"
#include <stdlib.h>

TestSuite(scores_backward, .timeout = 900);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

/* No numbers past the last query and the last key, and derivatives without bounds. */
static const char edges[] = "function score(s, b, h, i, j) "
                            "  return s + 0.1 * log(abs(s) + (i < sq and 0.5 or 0.0)) + log(sq - i) + log(sk - j) end";

static const char softcap_window[] = "cap = scalar(20, 'float', 0.1, 100) w = scalar(40, 'int', 1, 1000) slope = f32 'hq' "
                                     "function score(s, b, h, i, j) return cap * tanh((s + slope[h] * (j - i - off)) / cap) end "
                                     "function mask(b, h, i, j) return j <= i + off and i + off - j < w end";

static const fa_program *program_of(const char *name)
{
    const fa_program *p;
    const fa_score_file *file = fa_score_shipped_find(name, strlen(name));
    if (!strcmp(name, "edges")) {
        OK(fa_score_known_read(&p, name, edges, sizeof edges - 1));
        return p;
    }
    if (!strcmp(name, "softcap_window")) {
        OK(fa_score_known_read(&p, name, softcap_window, sizeof softcap_window - 1));
        return p;
    }
    cr_assert(file, "%s", name);
    OK(fa_score_known_read(&p, file->name, file->bytes, file->size));
    return p;
}

/* A kernel: a class and a config, of all but `often` in full form alone. */
static const struct row {
    const char *program, *class, *config;
    int device; /* of TEST_CHIPS */
    bool often;
    int n; /* queries and keys of a case with one head; 0: as they are drawn */
} rows[] = {
    { "softcap", "fp32,d=24,mask=causal", "naive_bwd:tile=64", 0, true, 0 },
    { "softcap_alibi", "fp32,d=40,dv=24,mask=window,features=lengths+lse-strides", "naive_bwd:tile=64", 0, false, 0 },
    { "relative", "fp32,d=20,mask=causal", "flash_bwd_ffma:br=16,bc=32", 0, true, 0 },
    { "temperature", "fp32,d=33,mask=none,features=dropout", "flash_bwd_ffma:br=32,bc=32", 0, false, 0 },
    { "softcap_sink", "bf16,d=64,mask=causal,features=lengths",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=recompute,q_br=32,q_bc=32", 0, true, 0 },
    { "edges", "bf16,d=40,mask=none", "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,dq=recompute,q_br=32,q_bc=16", 0, true,
      0 },
    { "documents", "fp16,d=24,mask=none", "naive_bwd:tile=64", 0, false, 0 },
    { "prefix", "fp32,d=40,mask=none,features=lengths", "flash_bwd_ffma:br=16,bc=16", 0, false, 0 },
    { "matrix", "bf16,d=64,mask=none,features=lengths",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=recompute,q_br=32,q_bc=32", 0, false, 0 },
    { "blocks", "fp16,d=64,mask=causal", "flash_bwd_mma:br=32,br_part=32,bc=32,warps=4,twins=1,stages=1,dq=spill,q_br=64,q_bc=32", 0, true,
      0 },
    { "softcap_window", "bf16,d=64,mask=none",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=turns,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      true, 0 },
    { "chunked", "fp16,d=64,mask=none,features=dropout",
      "flash_bwd_wgmma:br=64,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      false, 0 },
    { "edges", "fp32,d=40,mask=none", "flash_bwd_ffma:br=16,bc=16", 0, false, 0 },
    { "edges", "fp16,d=64,mask=none",
      "flash_bwd_wgmma:br=128,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      true, 0 },
    { "edges", "bf16,d=64,mask=window,features=lengths",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=add,ds_bufs=2,grid=per_tile,q_br=128,q_stages=4", 1,
      false, 0 },
    { "alibi", "fp16,d=40,mask=window,features=dropout",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=4,twins=1,stages=1,dq=recompute,q_br=64,q_bc=32", 0, false, 0 },
    { "softcap", "fp16,d=64,mask=none", "flash_bwd_mma:br=32,br_part=16,bc=64,warps=4,twins=0,stages=2,dq=spill,q_br=64,q_bc=32", 0, false,
      0 },
    { "softcap_alibi", "bf16,d=48,mask=causal,features=lengths+deterministic",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=4,twins=1,stages=1,dq=spill,q_br=64,q_bc=32", 0, true, 0 },
    { "softcap", "bf16,d=64,mask=causal",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=turns,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      true, 0 },
    { "softcap_alibi", "fp16,d=64,mask=window",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=2,schedule=turns,box=64,stages=2,dq=add,ds_bufs=2,grid=persistent,q_br=128,q_stages=4", 1,
      true, 0 },
    { "alibi", "bf16,d=64,mask=causal,features=lengths",
      "flash_bwd_wgmma:br=128,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      false, 0 },
    { "softcap", "fp16,d=80,mask=none,features=lengths",
      "flash_bwd_wgmma:br=64,bc=64,twins=1,held=0,schedule=plain,box=16,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4,"
      "spread=1",
      1, true, 0 },
    { "bias", "bf16,d=64,mask=causal",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4,"
      "spread=2",
      1, false, 0 },
    { "temperature_rows", "fp16,d=64,mask=causal,features=dropout",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=add,ds_bufs=2,grid=per_tile,q_br=128,q_stages=4", 1,
      false, 0 },
    { "documents", "bf16,d=64,mask=causal,features=lengths",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=turns,box=64,stages=2,dq=spill,ds_bufs=0,grid=persistent,q_br=192,q_stages=3",
      1, true, 0 },
    { "blocks", "fp16,d=64,mask=window,features=lengths+dropout",
      "flash_bwd_wgmma:br=128,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4,"
      "spread=1",
      1, false, 0 },
    { "softcap_window", "bf16,d=64,mask=none,features=lengths+dropout",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=add,ds_bufs=2,grid=per_tile,q_br=128,q_stages=4", 1,
      false, 0 },
    { "matrix", "fp16,d=64,mask=none,features=dropout",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4,"
      "spread=2",
      1, false, 0 },
    { "tree", "bf16,d=64,mask=none", "flash_bwd_mma:br=32,br_part=32,bc=128,warps=8,twins=0,stages=2,dq=spill,q_br=128,q_bc=64", 0, false,
      0 },
    { "documents", "fp32,d=40,mask=causal,features=lengths+dropout", "flash_bwd_ffma:br=32,bc=32", 0, false, 0 },
    { "relative", "bf16,d=64,mask=causal",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=turns,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      true, 330 },
    { "t5", "fp16,d=64,mask=none",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=2,schedule=plain,box=64,stages=2,dq=add,ds_bufs=2,grid=per_tile,q_br=128,q_stages=4", 1,
      true, 330 },
    { "relative_bf16", "bf16,d=64,mask=window",
      "flash_bwd_wgmma:br=128,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      false, 330 },
    { "t5_decoder", "bf16,d=64,mask=causal",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=turns,box=64,stages=2,dq=spill,ds_bufs=0,grid=persistent,q_br=128,q_stages=4",
      1, false, 0 },
};

/* The seed's case of a row. */
static fa_case case_of(const struct row *r, uint64_t seed)
{
    fa_problem class;
    fa_case c;
    char text[256];
    snprintf(text, sizeof text, "%s,op=backward", r->class);
    OK(fa_problem_parse(&class, text));
    test_mode(seed % 2 ? SIM_LAZY : SIM_EAGER, seed % 3 ? SIM_RANDOM : SIM_REVERSED, seed);
    fa_case_make_class(&c, &class, seed % 2 ? FA_CASE_MANY : FA_CASE_FEW, seed * 1009 + (uint64_t)(r - rows));
    for (int k = 0; r->device && k < FA_OPERANDS_MAX; k++) /* what TMA cannot address */
        if (c.layout[k] == FA_LAYOUT_REVERSED || c.layout[k] >= FA_LAYOUT_SAME_BATCH)
            c.layout[k] = FA_LAYOUT_PADDED;
    if (r->n) {
        c.problem.sq = c.problem.sk = r->n;
        c.problem.b = c.problem.hq = c.problem.hkv = 1;
    }
    fa_case_set_score(&c, program_of(r->program), true);
    return c;
}

static fa_context *opened(const char *template_dir, int device, fa_gen **g)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = "";
    o.template_dir = template_dir;
    OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), device));
    OK(fa_gen_open(g, template_dir));
    return ctx;
}

Test(scores_backward, random_gradients_are_right)
{
    int ran = 0;
    for (int device = 0; device < 2; device++) {
        fa_gen *g;
        fa_context *ctx = opened(NULL, device, &g);
        for (const struct row *r = rows; r < rows + sizeof rows / sizeof *rows; r++) {
            fa_config config;
            OK(fa_gen_config_parse(g, &config, r->config));
            for (uint64_t seed = 1; seed <= (full() ? 24 : 2) && r->device == device && (r->often || full()); seed++) {
                fa_verdict v;
                fa_case c = case_of(r, seed);
                cr_expect_eq(fa_verify_case(ctx, &c, &config, &v), FA_OK, "%s of %s: %s", r->config, r->program, fa_last_error());
                ran++;
            }
        }
        fa_gen_close(g);
        fa_destroy(ctx);
    }
    cr_expect_geq(ran, 18);
}

/* ---- faults of what templates make of a program's gradients ---- */

#define P "program.cu"
#define LAYOUTS "layouts.lua"
/* clang-format off */
static const struct {
    const char *name, *file, *find, *replace;
    int row; /* of rows: which notices */
} faults[] = {
    { "the derivative left out", "naive_bwd.cu", "pr.bent(\"e\")", "\"e\"", 0 },
    { "the derivative left out, of dQ alone", "grad_q_recompute.cu", "\"bent(s[m][n][e], bends[m][n][e])\"", "\"s[m][n][e]\"", 4 },
    { "the derivative left out, from warp to warp", "flash_bwd_mma.cu", "local w = pr.bends and \"bends\" or \"s\"", "local w = \"s\"",
      17 },
    { "the derivative in dV", "grad_hopper_scores.cu",
      "//|     indented(2, pr.bent_operand, \"wgmma_keys\", \"s\", \"a\", \"CUT\", \"CUT\")\n",
      "//|     indented(2, pr.bent_operand, \"wgmma_keys\", \"s\", \"a\", \"CUT\", \"CUT\")\n  pack_rows(a, s);\n", 18 },
    { "a derivative of infinity times a P of 0", P, "return probability != 0.f ? $(bent(\"probability\", \"bend\")) : 0.f;",
      "return $(bent(\"probability\", \"bend\"));",
      5 },
    { "the score of the query beside", LAYOUTS, "row = \"row + n * 8 + 2 * t + e\", key = \"key + warp_key + g\"",
      "row = \"row + n * 8 + 2 * t + 1 - e\", key = \"key + warp_key + g\"", 22 },
    { "the score of the key eight above", LAYOUTS, "column = \"h * 8\", lse", "column = \"0\", lse", 22 },
    { "the score of the key eight above, on mma", LAYOUTS, "column = \"m * 16 + h * 8\", lse", "column = \"m * 16\", lse", 17 },
    { "the distance to the query beside", LAYOUTS, "column = \"h * 8 - n * 8 - e\"", "column = \"h * 8 - n * 8 + e\"", 20 },
    { "the distance to the key eight above, on mma", LAYOUTS, "column = \"m * 16 + h * 8 - n * 8 - e\"",
      "column = \"m * 16 - n * 8 - e\"", 15 },
    { "the LSE of the row eight above", LAYOUTS, "lse = \"lse[m][h]\"", "lse = \"lse[m][0]\"", 4 },
    { "an operand in another order", "program_gradients.cu", "pack2(probability[2], probability[3]);",
      "pack2(probability[3], probability[2]);", 18 },
    { "P as an operand of hidden pairs", "grad_hopper_scores.cu", "hide(s, sequence, key, row), hide(a, sequence, key, row);",
      "hide(s, sequence, key, row);", 18 },
    { "pairs past the last query, on mma", "hide.cu", "table.insert(hidden, of.query .. \" >= rows\")",
      "table.insert(hidden, of.query .. \" >= rows + 4096\")", 5 },
    { "pairs past the last query", "hide.cu", "hidden = hidden .. (\" || %s >= rows\"):format(of.query)", "", 13 },
    { "blocks past the last query as whole ones", "ranges.cu", "pr.has_score and \" && row + BR <= sequence.sq()\" or \"\"", "\"\"", 13 },
    { "the head before", "program_tiles.cu", "$(head or \"scored.h + 1\")", "$(head or \"scored.h\")", 19 },
    { "the head before, of two warpgroups", "grad_hopper_warpgroup_pair.cu", "//|   indented(6, pr.next_scores, \"block == blocks.lo\")\n",
      "", 20 },
    { "LSE in other units", "delta.cu", "fminf(fmaxf(lse * LOG2E,", "fminf(fmaxf(lse,", 19 },
    { "the unit of the product for that of the score", "flash_bwd_ffma.cu", "pr.probability(score, pr.unit,",
      "pr.probability(score, \"p.scale\",", 2 },
    { "no mask of the program", "program_gradients.cu",
      "return has_mask and (\"%s && !score_sees<true>(%s) ? 0.f : %s\"):format(masked, place, probability) or probability",
      "return probability", 11 },
    { "no mask of the program, by element", "flash_bwd_ffma.cu", "$(pr.and_sees(\"head\", \"row\", \"key\", \"cut\"))", "", 7 },
    { "the number of the key eight above", "program_gradients.cu", "h == 0 ? here[e] : before[e]", "here[e]", 30 },
    { "the number of the query beside", "program_gradients.cu", "apart - (%s))\"", "apart - (%s) / 2 * 2)\"", 31 },
    { "numbers from another key on", "program_gradients.cu", "p, scored, scored.h, 0) + apart;",
      "p, scored, scored.h, 0) + apart + 1;", 32 },
    { "far blocks of the other side", "program_gradients.cu", "const float far = below ? scored.below : scored.above;",
      "const float far = below ? scored.above : scored.below;", 31 },
    { "blocks as far as their last pair is", "program_gradients.cu", "key + 63 - row <= score_far_below",
      "key - row <= score_far_below", 31 },
    { "blocks as far as their first pair is", "program_gradients.cu", "key - (row + BR - 1) >= score_far_above",
      "key - row >= score_far_above", 31 },
};
/* clang-format on */
#define FAULTS (sizeof faults / sizeof *faults)
#define EVERY 14 /* of faults, but in full form */
#define TRIES 6  /* cases that are drawn at most */

static void plant(size_t n)
{
    const fa_template_file *t = fa_template_files;
    char path[512];
    while (t->name && strcmp(t->name, faults[n].file) != 0)
        t++;
    cr_assert_not_null(t->name, "%s: there is no %s", faults[n].name, faults[n].file);
    const char *at = strstr(t->bytes, faults[n].find);
    cr_assert_not_null(at, "%s: the text is not there any more: %s", faults[n].name, faults[n].find);
    snprintf(path, sizeof path, "%s/%s", scratch, faults[n].file);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fprintf(out, "%.*s%s%s", (int)(at - t->bytes), t->bytes, faults[n].replace, at + strlen(faults[n].find));
    fclose(out);
}

Test(scores_backward, faults_are_noticed)
{
    const char *only = getenv("FAGEN_SCORE_FAULT");
    for (size_t n = 0; n < FAULTS; n += only || full() ? 1 : EVERY) {
        if (only && n != (size_t)atoi(only))
            continue;
        const struct row *r = &rows[faults[n].row];
        fa_gen *g;
        fa_config config;
        bool wrong = false;
        scratch_make();
        plant(n);
        fa_context *ctx = opened(scratch, r->device, &g);
        OK(fa_gen_config_parse(g, &config, r->config));
        for (uint64_t seed = 1; seed <= TRIES && !wrong; seed++) {
            fa_verdict v;
            fa_case c = case_of(r, seed);
            fa_status st = fa_verify_case(ctx, &c, &config, &v);
            cr_expect(st != FA_COMPILE && st != FA_TEMPLATE, "%zu: %s: %s", n, faults[n].name, fa_last_error());
            wrong = st != FA_OK;
        }
        cr_expect(wrong, "%zu: %s: %s of %s is right all the same", n, faults[n].name, r->config, r->program);
        fa_gen_close(g);
        fa_destroy(ctx);
        scratch_remove();
    }
}
