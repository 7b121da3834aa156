/* planes: what is known of kernels and of masks in parts, asked once for each program. */
#include "planes.h"
#include "kernel.h"
#include "staged.h"
#include <stdlib.h>

/* What a search needs; too large for a stack. */
typedef struct search {
    fa_score_kernel kernel;
    fa_score_tiles tiles;
    fa_score_conditions conditions;
    fa_score_staged staged;
} search;

static void add(fa_score_planes *out, const fa_score_ir *ir, int operand, int row_index)
{
    out->of[out->n++] = (fa_score_plane){ (int8_t)operand, (int8_t)ir->operand[operand].rank, (int8_t)row_index };
}

static bool find(fa_score_planes *out, search *s, const fa_score_ir *ir)
{
    const fa_score_kernel *k = &s->kernel;
    if (!fa_score_kernel_of(&s->kernel, ir))
        return false;
    for (int i = 0; i < k->aheads; i++) {
        int operand = k->ir.node[k->ahead[i]].operand;
        if (k->by_row[i] && k->row_index[i] >= 0 && ir->operand[operand].element != FA_SCORE_ELEMENT_F32)
            add(out, ir, operand, k->row_index[i]);
    }
    if (k->pair >= 0 || k->ir.root[FA_SCORE_ROOT_MASK] < 0)
        return true;
    fa_score_tiles_of(&s->tiles, &k->ir);
    fa_score_conditions_of(&s->conditions, &s->tiles);
    fa_score_staged_of(&s->staged, &s->tiles, &s->conditions);
    if (s->staged.can && s->staged.lookup >= 0) {
        int operand = s->tiles.ir->node[s->staged.lookup].operand;
        if (ir->operand[operand].element == FA_SCORE_ELEMENT_U8)
            add(out, ir, operand, -1);
    }
    return true;
}

bool fa_score_planes_of(fa_score_planes *out, const fa_score_ir *ir)
{
    search *s = malloc(sizeof *s);
    *out = (fa_score_planes){ 0 };
    bool found = s && find(out, s, ir);
    free(s);
    return found;
}
