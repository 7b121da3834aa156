/* usual_shape: the two shapes, as problems and as lists. */
#include "usual_shape.h"

#define LISTS(of_d, of_b, heads, length)                                         \
    {                                                                            \
        .d = { 1, { of_d } }, .n = { 1, { length } }, .b = (of_b), .hq = (heads) \
    }
const cli_problem_lists cli_lists_of_gpu = CLI_SHAPE_OF_GPU(LISTS), cli_lists_of_simulator = CLI_SHAPE_OF_SIMULATOR(LISTS);

void cli_shape_of_simulator(fa_problem *p)
{
    const cli_problem_lists *usual = &cli_lists_of_simulator;
    p->d = p->d ? p->d : usual->d.v[0];
    p->b = p->b ? p->b : usual->b;
    p->hq = p->hq ? p->hq : p->hkv ? p->hkv : usual->hq;
    p->sq = p->sq ? p->sq : p->sk ? p->sk : usual->n.v[0];
    fa_problem_fill_shape(p);
}
