/* Gradients of score programs through fa_launch() on the simulator: random cases of programs that ship, over the families of the backward
 * pass, each held against fp64. */
#include "gen/score/known.h"
#include "gen/score/shipped.h"
#include "test_full.h"
#include "test_verify_device.h"

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
} rows[] = {
    { "softcap", "fp32,d=24,mask=causal", "naive_bwd:tile=64", 0, true },
    { "softcap_alibi", "fp32,d=40,dv=24,mask=window,features=lengths+lse-strides", "naive_bwd:tile=64", 0, false },
    { "relative", "fp32,d=20,mask=causal", "flash_bwd_ffma:br=16,bc=32", 0, true },
    { "temperature", "fp32,d=33,mask=none,features=dropout", "flash_bwd_ffma:br=32,bc=32", 0, false },
    { "softcap_sink", "bf16,d=64,mask=causal,features=lengths",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=recompute,q_br=32,q_bc=32", 0, true },
    { "edges", "bf16,d=40,mask=none", "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,dq=recompute,q_br=32,q_bc=16", 0,
      true },
    { "documents", "fp16,d=24,mask=none", "naive_bwd:tile=64", 0, false },
    { "prefix", "fp32,d=40,mask=none,features=lengths", "flash_bwd_ffma:br=16,bc=16", 0, false },
    { "matrix", "bf16,d=64,mask=none,features=lengths",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=recompute,q_br=32,q_bc=32", 0, false },
    { "blocks", "fp16,d=64,mask=causal", "flash_bwd_mma:br=32,br_part=32,bc=32,warps=4,twins=1,stages=1,dq=spill,q_br=64,q_bc=32", 0,
      true },
    { "softcap_window", "bf16,d=64,mask=none",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=turns,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      true },
    { "chunked", "fp16,d=64,mask=none,features=dropout",
      "flash_bwd_wgmma:br=64,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      false },
    { "edges", "fp32,d=40,mask=none", "flash_bwd_ffma:br=16,bc=16", 0, false },
    { "edges", "fp16,d=64,mask=none",
      "flash_bwd_wgmma:br=128,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      true },
    { "edges", "bf16,d=64,mask=window,features=lengths",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=add,ds_bufs=2,grid=per_tile,q_br=128,q_stages=4", 1,
      false },
    { "alibi", "fp16,d=40,mask=window,features=dropout",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=4,twins=1,stages=1,dq=recompute,q_br=64,q_bc=32", 0, false },
    { "softcap", "fp16,d=64,mask=none", "flash_bwd_mma:br=32,br_part=16,bc=64,warps=4,twins=0,stages=2,dq=spill,q_br=64,q_bc=32", 0,
      false },
    { "softcap_alibi", "bf16,d=48,mask=causal,features=lengths+deterministic",
      "flash_bwd_mma:br=32,br_part=32,bc=32,warps=4,twins=1,stages=1,dq=spill,q_br=64,q_bc=32", 0, true },
    { "softcap", "bf16,d=64,mask=causal",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=turns,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      true },
    { "softcap_alibi", "fp16,d=64,mask=window",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=2,schedule=turns,box=64,stages=2,dq=add,ds_bufs=2,grid=persistent,q_br=128,q_stages=4", 1,
      true },
    { "alibi", "bf16,d=64,mask=causal,features=lengths",
      "flash_bwd_wgmma:br=128,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      false },
    { "softcap", "fp16,d=80,mask=none,features=lengths",
      "flash_bwd_wgmma:br=64,bc=64,twins=1,held=0,schedule=plain,box=16,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4,"
      "spread=1",
      1, true },
    { "bias", "bf16,d=64,mask=causal",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4,"
      "spread=2",
      1, false },
    { "temperature_rows", "fp16,d=64,mask=causal,features=dropout",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=add,ds_bufs=2,grid=per_tile,q_br=128,q_stages=4", 1,
      false },
};

Test(scores_backward, random_gradients_are_right)
{
    int ran = 0;
    for (int device = 0; device < 2; device++) {
        fa_gen *g;
        fa_context *ctx;
        fa_options o = FA_OPTIONS_INIT;
        o.cache_dir = "";
        OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), device));
        OK(fa_gen_open(&g, NULL));
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            fa_problem class;
            fa_config config;
            char text[256];
            if (rows[i].device != device || (!rows[i].often && !full()))
                continue;
            snprintf(text, sizeof text, "%s,op=backward", rows[i].class);
            OK(fa_problem_parse(&class, text));
            OK(fa_gen_config_parse(g, &config, rows[i].config));
            for (uint64_t seed = 1; seed <= (full() ? 24 : 2); seed++) {
                fa_case c;
                fa_verdict v;
                test_mode(seed % 2 ? SIM_LAZY : SIM_EAGER, seed % 3 ? SIM_RANDOM : SIM_REVERSED, seed);
                fa_case_make_class(&c, &class, seed % 2 ? FA_CASE_MANY : FA_CASE_FEW, seed * 1009 + i);
                for (int k = 0; device && k < FA_OPERANDS_MAX; k++) /* what TMA cannot address */
                    if (c.layout[k] == FA_LAYOUT_REVERSED || c.layout[k] >= FA_LAYOUT_SAME_BATCH)
                        c.layout[k] = FA_LAYOUT_PADDED;
                fa_case_set_score(&c, program_of(rows[i].program), true);
                cr_expect_eq(fa_verify_case(ctx, &c, &config, &v), FA_OK, "%s of %s: %s", rows[i].config, rows[i].program, fa_last_error());
                ran++;
            }
        }
        fa_gen_close(g);
        fa_destroy(ctx);
    }
    cr_expect_geq(ran, 18);
}
