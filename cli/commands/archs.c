/* archs: the chips that are known, and the names by which --arch and --device take them. */
#include "cli/options/arch_names.h"
#include "cli/text/table.h"
#include "commands.h"
#include <string.h>

static const cli_group groups[] = { CLI_COMMON, { NULL, NULL, 0 } };

/* "h100", "rtx4090, 4090": the products of the row. */
static void products_of(char *buf, size_t n, const fa_arch *a)
{
    const char *name;
    const fa_arch *of;
    size_t at = 0;
    buf[0] = 0;
    for (size_t i = 0; (of = fa_arch_product(i, &name)) != NULL && at < n; i++)
        if (of == a)
            at += (size_t)snprintf(buf + at, n - at, "%s%s", at ? ", " : "", name);
}

/* TFLOP/s of 16-bit products, by the fastest unit that fagen uses. */
static double peak(const fa_arch *a)
{
    double flop = a->wgmma16_flop > a->mma16_flop ? a->wgmma16_flop : a->mma16_flop;
    return flop * a->sm_count * a->clock_ghz * 1e-3;
}

static int run(cli *c, const void *args, int n, char **words)
{
    json_t *list = json_array();
    cli_table t;
    (void)args, (void)n, (void)words;
    cli_table_open(&t, "arch products chip >SMs >KiB/block >TFLOP/s >GB/s >L2_MiB");
    for (size_t i = 0; i < fa_arch_count(); i++) {
        const fa_arch *a = fa_arch_at(i);
        char products[80];
        products_of(products, sizeof products, a);
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:s,s:i,s:i,s:o,s:o,s:I,s:s}", "arch", a->name, "products", products, "chip", a->chip,
                                        "sms", a->sm_count, "smem_block", a->smem_block, "tflops16", cli_json_number(peak(a)), "hbm_gbs",
                                        cli_json_number(a->hbm_gbs), "l2_bytes", (json_int_t)a->l2_bytes, "source", a->source));
        cli_table_cells(&t, "%s\t%s\t%s\t%d\t%d\t%.0f\t%.0f\t%.0f", a->name, products, a->chip, a->sm_count, a->smem_block >> 10, peak(a),
                        a->hbm_gbs, (double)a->l2_bytes / (1 << 20));
    }
    if (c->json) {
        fa_text_free(&t.cells);
        return cli_answer(c, json_pack("{s:o}", "archs", list), CLI_EXIT_OK);
    }
    json_decref(list);
    cli_table_print(&t, c);
    return CLI_EXIT_OK;
}

const cli_command cli_archs = {
    .name = "archs",
    .summary = "the chips that are known, by architecture and product",
    .usage = "",
    .about =
        "Lists what --arch takes: the name of an architecture, which is the first of its chips here, or a product. The simulator of either "
        "is --device sim:NAME. TFLOP/s are those of 16-bit products at the sustained clock, by the fastest unit that fagen uses. On a GPU "
        "the device's own numbers take the place of these.",
    .examples = "fagen archs\nfagen space -d 128 --arch h100\nfagen show -d 128 --device sim:l40s",
    .groups = groups,
    .size = sizeof(cli_common),
    .run = run,
};
