/* score: texts of score programs. What is accepted is within its limits; every node's value lies in its range; derivatives and CUDA are
 * made of it, in which no name of the text stands. */
#include "fuzz.h"
#include "gen/error.h"
#include "gen/score/derive.h"
#include "gen/score/eval.h"
#include "gen/score/print_cuda.h"
#include "gen/score/program.h"
#include "gen/score/range.h"

static double element(void *user, int operand, const int64_t *index)
{
    const fa_score_ir *ir = user;
    return ir->operand[operand].element == FA_SCORE_ELEMENT_BITS ? (double)(index[0] & 1) : (double)(index[0] % 7);
}

static void check_values(const fa_score_ir *ir)
{
    static double value[FA_SCORE_ROOM];
    static fa_score_range of[FA_SCORE_ROOM];
    fa_score_data data = { .off = 5, .sq = 10, .sk = 15, .group = 2, .read = element, .user = (void *)(uintptr_t)ir };
    fa_score_box box = fa_score_box_widest(ir);
    int which;
    for (int k = 0; k < ir->operands; k++) {
        data.scalar[k] = ir->operand[k].value;
        for (int r = 0; r < FA_SCORE_RANK_MAX; r++)
            data.extent[k][r] = 12;
    }
    fa_score_ranges(ir, &box, of);
    for (int n = 0; n < 4; n++) {
        fa_score_pair at = { n % 2, n / 2, n * 3, n * 4, n * 1.5 - 2 };
        fa_score_eval(ir, ir->n - 1, &data, &at, value);
        for (int i = 0; i < ir->n; i++)
            FUZZ_CHECK(value[i] != value[i] ? of[i].nan : value[i] >= of[i].lo && value[i] <= of[i].hi);
        FUZZ_CHECK(fa_score_eval_outside(ir, ir->n - 1, &data, value, &which) < ir->n);
    }
}

static void check_print(fa_score_ir *ir)
{
    static fa_score_printer printer;
    fa_text out = { 0 };
    printer = (fa_score_printer){ .ir = ir, .words = { "b", "h", "i", "j", "s", "off", "sq", "sk", "group", "p" } };
    fa_score_print_helpers(&out, ir, "Params");
    for (int r = 0; r < FA_SCORE_ROOTS; r++)
        if (ir->root[r] >= 0) {
            fa_score_print_variables(&out, &printer, ir->root[r], FA_SCORE_OF_B | FA_SCORE_OF_H | FA_SCORE_OF_I, "  ");
            fa_score_print_value(&out, &printer, ir->root[r]);
        }
    FUZZ_CHECK(!out.oom && !strstr(fa_text_cstr(&out), "#error"));
    fa_text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_copy(data, size, 0);
    fa_program *p;
    fa_status st = fa_program_read(&p, "score", s, size);
    free(s); /* nothing of the program points into it */
    if (st != FA_OK) {
        FUZZ_CHECK(st == FA_INVALID && !p && !strncmp(fa_last_error(), "score:", 6));
        return 0;
    }
    FUZZ_CHECK(p->ir.n > 0 && p->ir.n <= FA_SCORE_NODES_MAX && p->ir.operands <= FA_SCORE_OPERANDS_MAX && p->canonical);
    check_values(&p->ir);
    check_print(&p->ir);
    int root = p->ir.root[FA_SCORE_ROOT_SCORE];
    for (int i = 0, n = p->ir.n; root >= 0 && i < n; i++)
        if (p->ir.node[i].op == FA_SCORE_S) {
            int d = fa_score_derive(&p->ir, root, i);
            FUZZ_CHECK(d < p->ir.n);
            check_print(&p->ir);
        }
    fa_program_free(p);
    return 0;
}
