/* widen: what a call of K and V in few bits becomes once they have 16. */
#include "widen.h"
#include "gen/problem.h"
#include <string.h>

#define STEP "fa_widen"

static const struct {
    const char *buffer;
    fa_operand_id id;
    fa_extent width;
} sides[] = { { "wide_k", FA_ID_k, FA_EXTENT_D }, { "wide_v", FA_ID_v, FA_EXTENT_DV } };

static int buffer_of(const fa_workspace *w, const char *name)
{
    for (int i = 0; i < w->n; i++)
        if (!strcmp(w->buffer[i].name, name))
            return i;
    return -1;
}

bool fa_widens(const fa_workspace *w)
{
    return buffer_of(w, sides[0].buffer) >= 0;
}

bool fa_widen_reads(const fa_workspace *w, const fa_step *s)
{
    return fa_widens(w) && strcmp(s->entry, STEP) != 0;
}

void fa_widen_call(fa_call *c, const fa_workspace *w)
{
    const fa_operation *op = c->op;
    bool packed = false;
    for (int i = 0; i < op->n; i++)
        packed = packed || (op->operand[i].id == FA_ID_cu_seqlens_k && c->values.operand[i].address);
    int64_t *of = c->sizes.of, rows = packed ? of[FA_EXTENT_TOTAL_K] : of[FA_EXTENT_SK];
    c->problem = fa_problem_widened(&c->problem);
    of[FA_EXTENT_BATCH_K] = packed ? 1 : of[FA_EXTENT_B];
    of[FA_EXTENT_ROWS_K] = rows;
    of[FA_EXTENT_K_ROW] = of[FA_EXTENT_D];
    of[FA_EXTENT_V_ROW] = of[FA_EXTENT_DV];
    for (int i = 0; i < op->n; i++)
        for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
            if (op->operand[i].id == sides[k].id) {
                int64_t width = of[sides[k].width], heads = of[FA_EXTENT_HKV];
                const int64_t stride[4] = { packed || of[FA_EXTENT_B] == 1 ? 0 : rows * heads * width, heads * width,
                                            heads == 1 ? 0 : width, 0 };
                c->values.operand[i].address = c->values.buffer[buffer_of(w, sides[k].buffer)];
                memcpy(c->values.operand[i].stride, stride, sizeof stride);
            }
}
