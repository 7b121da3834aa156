/* arch: one row per architecture that NVRTC compiles for and fagen knows.
 *
 * Limits per SM and block are those of the compute-capability table in the CUDA C++ Programming Guide. Rates marked as
 * derived are the data sheet's TFLOP/s over SMs and clock. "estimate" marks what no sheet states. */
#include "arch.h"
#include <math.h>
#include <string.h>
#include <strings.h>

#define KIB 1024
#define MIB (1024 * 1024)

/* clang-format off */
static const fa_arch rows[] = {
    { .name = "sm_80", .chip = "A100 SXM 80GB", .cc = 80,
      .smem_block = 163 * KIB, .smem_sm = 164 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 2048, .warps_sm = 64, .blocks_sm = 32, .sm_count = 108, .l2_bytes = 40 * MIB, .clock_ghz = 1.41,
      .mma16_flop = 2048, .mma_tf32_flop = 1024, .wgmma16_flop = 0, .ffma_flop = 128, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 4800, .hbm_gbs = 2039,
      .source = "programming guide; A100 data sheet (312 TFLOP/s, 2039 GB/s; 80 GB part, 40 MB L2); l2_gbs: estimate" },
    { .name = "sm_86", .chip = "GeForce RTX 3090", .cc = 86,
      .smem_block = 99 * KIB, .smem_sm = 100 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 1536, .warps_sm = 48, .blocks_sm = 16, .sm_count = 82, .l2_bytes = 6 * MIB, .clock_ghz = 1.695,
      .mma16_flop = 512, .mma_tf32_flop = 256, .wgmma16_flop = 0, .ffma_flop = 256, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 2000, .hbm_gbs = 936,
      .source = "programming guide; GA102 white paper (71 TFLOP/s fp16 with fp32 accumulation, 936 GB/s); l2_gbs: estimate" },
    { .name = "sm_87", .chip = "Jetson AGX Orin 64GB", .cc = 87,
      .smem_block = 163 * KIB, .smem_sm = 164 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 1536, .warps_sm = 48, .blocks_sm = 16, .sm_count = 16, .l2_bytes = 4 * MIB, .clock_ghz = 1.3,
      .mma16_flop = 2048, .mma_tf32_flop = 1024, .wgmma16_flop = 0, .ffma_flop = 256, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 600, .hbm_gbs = 204.8,
      .source = "programming guide; Jetson Orin data sheet (5.3 TFLOP/s fp32, 204.8 GB/s); matrix rates, l2_gbs: estimate" },
    { .name = "sm_89", .chip = "GeForce RTX 4090", .cc = 89,
      .smem_block = 99 * KIB, .smem_sm = 100 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 1536, .warps_sm = 48, .blocks_sm = 24, .sm_count = 128, .l2_bytes = 72 * MIB, .clock_ghz = 2.52,
      .mma16_flop = 512, .mma_tf32_flop = 256, .wgmma16_flop = 0, .ffma_flop = 256, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 4500, .hbm_gbs = 1008,
      .source = "programming guide; Ada white paper (165 TFLOP/s fp16 with fp32 accumulation, 1008 GB/s); l2_gbs: estimate" },
    { .name = "sm_89", .chip = "L40S", .cc = 89,
      .smem_block = 99 * KIB, .smem_sm = 100 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 1536, .warps_sm = 48, .blocks_sm = 24, .sm_count = 142, .l2_bytes = 96 * MIB, .clock_ghz = 2.52,
      .mma16_flop = 1024, .mma_tf32_flop = 512, .wgmma16_flop = 0, .ffma_flop = 256, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 4500, .hbm_gbs = 864,
      .source = "programming guide; L40S data sheet (362 TFLOP/s fp16 with fp32 accumulation, 183 TF32, 864 GB/s; 96 MB L2); "
                "l2_gbs: estimate" },
    { .name = "sm_90a", .chip = "H200 SXM", .cc = 90,
      .smem_block = 227 * KIB, .smem_sm = 228 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 2048, .warps_sm = 64, .blocks_sm = 32, .sm_count = 132, .l2_bytes = 60 * MIB, .clock_ghz = 1.755,
      .mma16_flop = 2590, .mma_tf32_flop = 1295, .wgmma16_flop = 4096, .ffma_flop = 250, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 5600, .hbm_gbs = 4560,
      .fitted = { .mma16 = 652.6e12, .wgmma16 = 898.6e12, .exps = 4.173e12, .l2_bytes = 7654e9, .hbm_bytes = 4394e9 },
      /* `fagen doctor --probe`, 2026-11-21, at 1.66 GHz */
      .source = "programming guide; measured on an H200: mma.sync 600 TFLOP/s, FFMA 125 and ex2 16 per clock and SM, read "
                "4560 GB/s; wgmma: Hopper white paper; mma_tf32 (half of mma16), l2_gbs: estimate" },
    { .name = "sm_90a", .chip = "H100 SXM", .cc = 90,
      .smem_block = 227 * KIB, .smem_sm = 228 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 2048, .warps_sm = 64, .blocks_sm = 32, .sm_count = 132, .l2_bytes = 50 * MIB, .clock_ghz = 1.755,
      .mma16_flop = 2590, .mma_tf32_flop = 1295, .wgmma16_flop = 4096, .ffma_flop = 250, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 5600, .hbm_gbs = 3000,
      .fitted = { .mma16 = 652.6e12, .wgmma16 = 898.6e12, .exps = 4.173e12, .l2_bytes = 7654e9, .hbm_bytes = 2890e9 },
      /* as the H200's, of which the SMs are; memory in the same proportion */
      .source = "programming guide; H100 data sheet (50 MB L2, 3.35 TB/s); measured on an H100 SXM: copies of 3.0 TB/s, bf16 "
                "products of 798 TFLOP/s; rates of an SM and the clock under load: the H200's" },
    { .name = "sm_100a", .chip = "B200", .cc = 100,
      .smem_block = 227 * KIB, .smem_sm = 228 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 2048, .warps_sm = 64, .blocks_sm = 32, .sm_count = 148, .l2_bytes = 126 * MIB, .clock_ghz = 1.85,
      .mma16_flop = 2048, .mma_tf32_flop = 1024, .wgmma16_flop = 0, .ffma_flop = 256, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 9000, .hbm_gbs = 7400,
      .source = "programming guide; B200 data sheet (8 TB/s, taken at 0.93); mma.sync rates, clock, l2_gbs: estimate" },
    { .name = "sm_103a", .chip = "B300", .cc = 103,
      .smem_block = 227 * KIB, .smem_sm = 228 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 2048, .warps_sm = 64, .blocks_sm = 32, .sm_count = 148, .l2_bytes = 126 * MIB, .clock_ghz = 1.92,
      .mma16_flop = 2048, .mma_tf32_flop = 1024, .wgmma16_flop = 0, .ffma_flop = 256, .exp_rate = 32, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 9000, .hbm_gbs = 7400,
      .source = "programming guide; B300 announcement (8 TB/s, taken at 0.93; twice the exp rate); mma.sync rates, clock, "
                "l2_gbs: estimate" },
    { .name = "sm_120a", .chip = "GeForce RTX 5090", .cc = 120,
      .smem_block = 99 * KIB, .smem_sm = 100 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 1536, .warps_sm = 48, .blocks_sm = 24, .sm_count = 170, .l2_bytes = 96 * MIB, .clock_ghz = 2.407,
      .mma16_flop = 512, .mma_tf32_flop = 256, .wgmma16_flop = 0, .ffma_flop = 256, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 6000, .hbm_gbs = 1792,
      .source = "programming guide; RTX Blackwell white paper (209.5 TFLOP/s fp16 with fp32 accumulation, 1792 GB/s); "
                "l2_gbs: estimate" },
    { .name = "sm_121a", .chip = "GB10", .cc = 121,
      .smem_block = 99 * KIB, .smem_sm = 100 * KIB, .smem_reserved = KIB, .regs_sm = 65536, .regs_thread = 255,
      .threads_sm = 1536, .warps_sm = 48, .blocks_sm = 24, .sm_count = 48, .l2_bytes = 24 * MIB, .clock_ghz = 2.4,
      .mma16_flop = 512, .mma_tf32_flop = 256, .wgmma16_flop = 0, .ffma_flop = 256, .exp_rate = 16, .issue_rate = 4,
      .smem_bytes_clk = 128, .l2_gbs = 1200, .hbm_gbs = 273,
      .source = "programming guide; DGX Spark data sheet (273 GB/s); matrix rates as sm_120a, clock, L2: estimate" },
};
/* clang-format on */

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Products a person may name, and the row's chip. */
static const struct {
    const char *alias, *chip;
} aliases[] = {
    { "a100", "A100 SXM 80GB" },
    { "rtx3090", "GeForce RTX 3090" },
    { "3090", "GeForce RTX 3090" },
    { "orin", "Jetson AGX Orin 64GB" },
    { "rtx4090", "GeForce RTX 4090" },
    { "4090", "GeForce RTX 4090" },
    { "l40s", "L40S" },
    { "h100", "H100 SXM" },
    { "h200", "H200 SXM" },
    { "b200", "B200" },
    { "b300", "B300" },
    { "rtx5090", "GeForce RTX 5090" },
    { "5090", "GeForce RTX 5090" },
    { "gb10", "GB10" },
};

size_t fa_arch_count(void)
{
    return COUNT(rows);
}

const fa_arch *fa_arch_at(size_t i)
{
    return i < COUNT(rows) ? &rows[i] : NULL;
}

const fa_arch *fa_arch_find(const char *name)
{
    if (!name)
        return NULL;
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (!strcasecmp(name, aliases[i].alias))
            name = aliases[i].chip;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcasecmp(name, rows[i].chip))
            return &rows[i];
    if (!strncasecmp(name, "sm_", 3))
        name += 3;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *own = rows[i].name + 3;
        size_t digits = strspn(own, "0123456789");
        if (!strcasecmp(name, own) || (strlen(name) == digits && !strncmp(name, own, digits)))
            return &rows[i];
    }
    return NULL;
}

const fa_arch *fa_arch_product(size_t i, const char **name)
{
    if (i >= COUNT(aliases))
        return NULL;
    *name = aliases[i].alias;
    return fa_arch_find(aliases[i].chip);
}

const char *fa_arch_names(void)
{
    return "sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_120a, sm_121a";
}

/* The number by which the table's must be multiplied; 1: it stays. */
static double correction(double table, double measured, double fitted, bool is_fitted)
{
    double by = is_fitted ? (fitted > 0 ? measured / fitted : 1) : table > 0 ? measured / table : 1;
    return measured > 0 && isfinite(by) && by > 0.25 && by < 4 ? by : 1;
}

void fa_arch_calibrate(fa_arch *a, const fa_rates *m)
{
    const fa_rates *f = &a->fitted;
    bool fitted = f->mma16 > 0 || f->wgmma16 > 0;
    double clocks = a->sm_count * a->clock_ghz * 1e9; /* of all SMs in a second, as the table sees it */
    double mma = correction(a->mma16_flop * clocks, m->mma16, f->mma16, fitted);
    a->mma16_flop *= mma;
    a->mma_tf32_flop *= mma;
    a->wgmma16_flop *= correction(a->wgmma16_flop * clocks, m->wgmma16, f->wgmma16, fitted);
    a->exp_rate *= correction(a->exp_rate * clocks, m->exps, f->exps, fitted);
    a->l2_gbs *= correction(a->l2_gbs * 1e9, m->l2_bytes, f->l2_bytes, fitted);
    a->hbm_gbs *= correction(a->hbm_gbs * 1e9, m->hbm_bytes, f->hbm_bytes, fitted);
    if (fitted && f->launch > 0 && m->launch > 0) /* what is not the launch's, the drain, stays */
        a->launch_seconds = fmax(1e-6, FA_LAUNCH_SECONDS + m->launch - f->launch);
}

const fa_arch *fa_arch_of_device(int major, int minor, const char *device)
{
    const fa_arch *first = NULL;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char product[sizeof rows[i].chip];
        if (rows[i].cc != major * 10 + minor)
            continue;
        size_t n = strcspn(rows[i].chip, " ");
        memcpy(product, rows[i].chip, n);
        product[n] = 0;
        if (strstr(device, product))
            return &rows[i];
        first = first ? first : &rows[i];
    }
    return first;
}
