/* pairs_kernels: kernels of a family for sm_90a that cover the pairs of its tunables' values as far as they go, and random cases for
 * them that are quick on the simulator. */
#ifndef TEST_PAIRS_KERNELS_H
#define TEST_PAIRS_KERNELS_H
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "test_pairs.h"
#include "verify/cases/case.h"

typedef struct kernel {
    fa_problem problem;
    fa_config config;
} kernel;

typedef struct kernel_choice {
    const char *family;
    const char *const *problems;
    size_t n_problems;
    uint64_t seed;
    bool (*is_factor)(const char *tunable);                                /* NULL: every tunable is */
    int (*of_problem)(int32_t out[4], const fa_problem *p, size_t number); /* further factors; how many */
    double work_most; /* of a case: multiply-adds of one product, tiles counted whole */
    int32_t more_q;   /* queries that make several tiles of a case in four */
} kernel_choice;

static inline void choose_kernels(const kernel_choice *w, kernel *out, size_t most)
{
    pairs_factor factor[PAIRS_FACTORS] = { { 0 } };
    pairs_row *row = NULL;
    kernel *all = NULL;
    size_t n = 0, room = 0;
    int factors = 0;
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    for (size_t k = 0; k < w->n_problems; k++) {
        fa_problem p;
        fa_space s;
        int32_t more[4];
        cr_assert_eq(fa_problem_parse(&p, w->problems[k]), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_space_list(g, &p, fa_arch_find("sm_90a"), 0, w->family, &s), FA_OK, "%s", fa_last_error());
        cr_assert_gt(s.fitting, 0, "%s", w->problems[k]);
        room += s.fitting;
        row = realloc(row, room * sizeof *row);
        all = realloc(all, room * sizeof *all);
        int n_more = w->of_problem(more, &p, k);
        for (size_t i = 0; i < s.n; i++) {
            const fa_config *c = &s.points[i].config;
            int at = 0;
            if (!s.points[i].fits)
                continue;
            for (int t = 0; t < c->n; t++)
                if (!w->is_factor || w->is_factor(c->tunable[t].name))
                    row[n].value[at] = pairs_number(&factor[at], c->tunable[t].value), at++;
            for (int m = 0; m < n_more; m++)
                row[n].value[at] = pairs_number(&factor[at], more[m]), at++;
            cr_assert_leq(at, PAIRS_FACTORS);
            all[n++] = (kernel){ p, *c };
            factors = at;
        }
        fa_space_free(&s);
    }
    fa_gen_close(g);
    size_t *chosen = malloc((n + 1) * sizeof *chosen), count = pairs_cover(row, n, factors, 1, w->seed, chosen);
    fa_random r = { w->seed };
    for (size_t i = 0; i < most; i++) /* past the cover any, maybe again */
        out[i] = all[i < count ? chosen[i] : (size_t)fa_random_below(&r, (int32_t)n)];
    free(chosen);
    free(row);
    free(all);
}

static inline int32_t whole_tiles(int32_t n, int32_t of)
{
    return (n + of - 1) / of * of;
}

/* The random case gets the kernel's problem with its own shape, cut to what is quick, in strides that TMA takes. */
static inline void suit_kernel(fa_case *c, const kernel_choice *w, const kernel *k, uint64_t seed)
{
    fa_problem p = k->problem;
    p.b = c->problem.b < 2 ? c->problem.b : 2;
    p.hkv = c->problem.hkv < 2 ? c->problem.hkv : 2;
    p.hq = p.hkv * (1 + (int32_t)(seed % 3));
    p.sq = c->problem.sq < 300 ? c->problem.sq : 300;
    p.sk = c->problem.sk < 300 ? c->problem.sk : 300;
    if (seed % 4 == 0) /* long enough for several tiles of keys and of queries */
        p.sq += w->more_q, p.sk += 150;
    int32_t br = fa_config_get(&k->config, "br", 64) * fa_config_get(&k->config, "cluster", 1), bc = fa_config_get(&k->config, "bc", 64);
    while ((double)p.b * p.hq * whole_tiles(p.sq, br) * whole_tiles(p.sk, bc) * (p.d + p.dv) / 2 > w->work_most) {
        if (p.b > 1)
            p.b--;
        else if (p.hkv > 1)
            p.hq /= p.hkv--;
        else if (p.hq > 2)
            p.hq--;
        else if (p.sq > p.sk && p.sq > br)
            p.sq -= p.sq / 4;
        else if (p.sk > bc)
            p.sk -= p.sk / 4;
        else
            break;
    }
    c->problem = p;
    for (int i = 0; i < FA_OPERANDS_MAX; i++)
        if (c->layout[i] == FA_LAYOUT_REVERSED || c->layout[i] >= FA_LAYOUT_SAME_BATCH)
            c->layout[i] = seed % 2 ? FA_LAYOUT_HEADS : FA_LAYOUT_PADDED;
}
#endif
