/* bundle_maker: rows of one class, images that no chip runs. */
#include "bundle_maker.h"
#include <stdlib.h>
#include <string.h>

#define PARAMS "q k v o lse q_ss scale sq sk"

void maker_fill(maker *m, const maker_item *items)
{
    uint32_t n = 0;
    const fa_workspace none = { .n = 0 };
    static const unsigned char elf[4] = { 0x7f, 'E', 'L', 'F' }, ptx[4] = { '/', '/', ' ', 'P' };
    fa_text kept = m->text;
    memset(m, 0, sizeof *m);
    m->text = kept;
    for (; n < MAKER_ROWS && items[n].arch; n++) {
        memset(m->bytes[n], (int)n + 1, MAKER_IMAGE - 1);
        memcpy(m->bytes[n], items[n].ptx ? ptx : elf, 4);
        m->step[n][0] = (fa_blob_step){ .launch = { .entry = "fa_fwd", .threads = 32 * ((int)n + 1), .smem = items[n].smem, .cluster = 1 },
                                        .registers = 77 };
        fa_product_parse(&m->step[n][0].launch.grid, "sq/64 hq b");
        m->image[n] = (fa_blob_image){ .arch = items[n].arch,
                                       .config = "flash_fwd_mma:br=64",
                                       .source = "00000000000000000000000000000001",
                                       .check = m->check[n],
                                       .op = "forward",
                                       .params = PARAMS,
                                       .layout = m->layout,
                                       .bytes = m->bytes[n],
                                       .size = MAKER_IMAGE,
                                       .ptx = items[n].ptx,
                                       .steps = 1,
                                       .step = m->step[n] };
        m->row[n] = (fa_blob_row){ .why = "a test says so", .score = "", .image = (int32_t)n };
        m->row[n].problem = (fa_problem){ .size = sizeof m->row[n].problem,
                                          .dtype = FA_BF16,
                                          .d = 64,
                                          .dv = 64,
                                          .o_dtype = FA_BF16,
                                          .align = items[n].align,
                                          .b = 1,
                                          .hq = 8,
                                          .hkv = 8,
                                          .sq = items[n].n,
                                          .sk = items[n].n };
    }
    fa_blob_layout(m->layout, fa_operation_find(FA_FORWARD), &none, PARAMS);
    m->blob = (fa_blob){ .name = "bundled", .version = FA_VERSION_STRING, .row = m->row, .image = m->image, .rows = n, .images = n };
}

const fa_bundle *maker_write(maker *m)
{
    for (uint32_t i = 0; i < m->blob.images; i++)
        if (m->image[i].check == m->check[i] && m->image[i].size > 0)
            fa_key_print(m->check[i], fa_blob_image_check(&m->image[i]));
    fa_text_free(&m->text);
    fa_blob_write(&m->blob, &m->text);
    return (const fa_bundle *)(const void *)m->text.s;
}

const fa_bundle *maker_make(maker *m, const maker_item *items)
{
    maker_fill(m, items);
    return maker_write(m);
}
