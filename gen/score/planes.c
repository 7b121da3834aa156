/* planes: lookups of the program, by what their indices are. Of those that kernel.h reads ahead, and staged.h in parts, none is left out.
 */
#include "planes.h"
#include "names.h"
#include "print_cuda.h"
#include "reach.h"
#include "slope.h"
#include <stdlib.h>

static bool goes_up(fa_score_ir *ir, int index, unsigned of, fa_score_op leaf)
{
    int slope = fa_score_slope_by(ir, index, of, leaf);
    return slope >= 0 && fa_score_is_value(ir, slope, 1);
}

/* The index that counts queries, which is alone in that; -1: there is none. */
static int row_index_of(fa_score_ir *ir, const fa_score_node *a)
{
    int found = -1;
    for (int n = 0; n < a->n; n++) {
        if (!fa_score_depends_on(ir, a->arg[n], FA_SCORE_OF_I))
            continue;
        if (found >= 0 || n == a->n - 1 || !goes_up(ir, a->arg[n], FA_SCORE_OF_I, FA_SCORE_I) || !fa_score_index_inside(ir, a, n))
            return -1;
        found = n;
    }
    return found;
}

static void add(fa_score_planes *out, const fa_score_ir *ir, int operand, int row_index)
{
    for (int i = 0; i < out->n; i++)
        if (out->of[i].operand == operand && out->of[i].row_index == row_index)
            return;
    if (out->n < FA_SCORE_OPERANDS_MAX)
        out->of[out->n++] = (fa_score_plane){ (int8_t)operand, (int8_t)ir->operand[operand].rank, (int8_t)row_index,
                                              (int8_t)fa_score_element_bytes(ir->operand[operand].element) };
}

static void look(fa_score_planes *out, fa_score_ir *ir, int node, bool score)
{
    const fa_score_node a = ir->node[node];
    if (!fa_score_is_lookup_by_key(&a))
        return;
    fa_score_element element = ir->operand[a.operand].element;
    bool number = element == FA_SCORE_ELEMENT_F32 || element == FA_SCORE_ELEMENT_BF16 || element == FA_SCORE_ELEMENT_F16;
    if (score && number && goes_up(ir, a.arg[a.n - 1], FA_SCORE_OF_J, FA_SCORE_J)) {
        int row_index = row_index_of(ir, &a);
        if (row_index >= 0)
            add(out, ir, a.operand, row_index);
    }
    if (!score && element == FA_SCORE_ELEMENT_U8 && ir->node[a.arg[a.n - 1]].op == FA_SCORE_J)
        add(out, ir, a.operand, -1);
}

bool fa_score_planes_of(fa_score_planes *out, const fa_score_ir *ir)
{
    int score = ir->root[FA_SCORE_ROOT_SCORE], root = score >= 0 ? score : ir->root[FA_SCORE_ROOT_MASK];
    bool reached[FA_SCORE_ROOM] = { false };
    *out = (fa_score_planes){ 0 };
    fa_score_ir *own = root >= 0 ? malloc(sizeof *own) : NULL; /* slopes join it */
    if (root < 0 || !own)
        return root < 0;
    *own = *ir;
    fa_score_ir_reach(own, root, reached);
    for (int i = 0; i <= root; i++)
        if (reached[i])
            look(out, own, i, score >= 0);
    free(own);
    return true;
}
