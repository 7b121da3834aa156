/* A head_dim whose rows are copied element by element costs about what the next multiple of 8 costs: the copies are loops, and the cubin,
 * on whose size the time of compiling depends, is at most half as large again. */
#include "gen/gen.h"
#include "gen/problem.h"
#include "runtime/build/compiler.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* In percent of the next multiple of 8. */
#define MOST 150

typedef struct row {
    const char *arch, *dtype, *mask, *config;
    int d[4]; /* 0 ends them */
} row;

/* 16-bit types: rows at multiples of 2, 4 and 8 bytes, and one row of Q by one where heads are packed. 32-bit types: of 4 and 8 bytes. */
static const row rows[] = {
    { "sm_80",
      "bf16",
      "causal",
      "flash_fwd_mma:br=64,bc=128,warps=4,stages_k=1,stages_v=2,order=0,q_regs=1,pack=0,lag=0,ctas=3",
      { 59, 62 } },
    { "sm_90a", "bf16", "none", "flash_fwd_mma:br=64,bc=128,warps=2,stages_k=2,stages_v=2,order=2,q_regs=0,pack=0,lag=0,ctas=1", { 59 } },
    { "sm_90a", "fp16", "window", "flash_fwd_mma:br=64,bc=64,warps=2,stages_k=2,stages_v=2,order=2,q_regs=0,pack=0,lag=8,ctas=1", { 111 } },
    { "sm_80", "fp16", "none", "flash_fwd_mma:br=32,bc=64,warps=1,stages_k=1,stages_v=1,order=1,q_regs=0,pack=1,lag=0,ctas=1", { 7, 116 } },
    { "sm_80", "bf16", "none", "flash_fwd_mma:br=64,bc=16,warps=4,stages_k=2,stages_v=2,order=2,q_regs=0,pack=0,lag=8,ctas=1", { 255 } },
    { "sm_80", "tf32", "causal", "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=2,order=0,q_regs=1,pack=0,lag=0,ctas=1", { 58 } },
    { "sm_80", "fp32", "none", "flash_fwd_ffma:br=64,bc=64,warps=4,pack=1", { 59, 62 } },
    { "sm_80", "fp32", "none", "naive:tile=64", { 59 } },
};

static size_t cubin_size(fa_gen *g, fa_compiler *c, const row *r, int d)
{
    char text[96];
    fa_problem p;
    fa_config config;
    fa_source s;
    fa_entry e = { 0 };
    snprintf(text, sizeof text, "%s,d=%d,mask=%s", r->dtype, d, r->mask);
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&config, r->config), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_render(g, &p, &config, fa_arch_find(r->arch), 0, &s), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_compile(c, &s, r->arch, FA_IMAGE_CUBIN, &e), FA_OK, "%s", fa_last_error());
    size_t size = e.image_size;
    fa_entry_free(&e);
    fa_source_free(&s);
    return size;
}

Test(cubin_size, of_odd_head_dims, .timeout = 600)
{
    fa_gen *g;
    fa_compiler *c = fa_compiler_open(NULL);
    cr_assert_not_null(c);
    cr_assert_eq(fa_gen_open(&g, getenv("FAGEN_TEMPLATE_DIR")), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += full() ? 1 : 2) { /* all its time is the compiler's */
        size_t next = 0;
        for (int k = 0, of = 0; rows[i].d[k]; k++) {
            int d = rows[i].d[k], up = (d + 7) / 8 * 8;
            if (up != of)
                next = cubin_size(g, c, &rows[i], of = up);
            size_t size = cubin_size(g, c, &rows[i], d);
            cr_expect_leq(size * 100, next * MOST, "%s,d=%d: %zu bytes, %zu of d=%d: %s", rows[i].dtype, d, size, next, up, rows[i].config);
        }
    }
    fa_gen_close(g);
    fa_compiler_close(c);
}
