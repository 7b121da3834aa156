/* step: the launch geometry that the runtime and the model share. */
#include "model.h"
#include "problem.h"

int64_t fa_step_total(const fa_step *s, const fa_sizes *sizes)
{
    int64_t total = fa_product_value(&s->grid, sizes);
    return total <= INT32_MAX ? total : -1;
}

int64_t fa_step_grid(const fa_step *s, int64_t total, int32_t sm_count)
{
    int64_t cluster = s->cluster > 1 ? s->cluster : 1, most = (int64_t)s->per_sm * sm_count / cluster;
    if (s->per_sm > 0 && total > most)
        total = most > 1 ? most : 1;
    return total * cluster <= INT32_MAX ? total * cluster : -1;
}

int32_t fa_step_row_tile(const fa_step *s)
{
    for (int32_t i = 0; i < s->grid.n; i++)
        if (s->grid.factor[i].extent == FA_EXTENT_SQ || s->grid.factor[i].extent == FA_EXTENT_ROWS)
            return s->grid.factor[i].by;
    return 0;
}

int32_t fa_step_key_tile(const fa_step *s)
{
    for (int32_t i = 0; i < s->grid.n; i++)
        if (s->grid.factor[i].extent == FA_EXTENT_SK || s->grid.factor[i].extent == FA_EXTENT_SPACED_K)
            return s->grid.factor[i].by;
    return 0;
}

int32_t fa_step_heads_tile(const fa_step *s)
{
    for (int32_t i = 0; i < s->grid.n; i++)
        if (s->grid.factor[i].extent == FA_EXTENT_MEMBERS)
            return s->grid.factor[i].by;
    return 0;
}

bool fa_step_packs(const fa_step *s)
{
    return fa_product_has(&s->grid, FA_EXTENT_ROWS);
}

bool fa_step_chunked(const fa_step *s)
{
    return fa_product_has(&s->grid, FA_EXTENT_UNITS);
}

int64_t fa_step_section_keys(const fa_problem *p, int64_t seen, int64_t at_work, int64_t l2_bytes)
{
    int64_t key = fa_problem_key_bytes(p);
    return (key > 0 ? l2_bytes / 3 * 2 / key : 0) - (seen < p->sk ? at_work : 0);
}

int32_t fa_step_section(const fa_step *s, const fa_problem *p, int64_t seen, int64_t at_work, int64_t l2_bytes)
{
    int64_t all = (int64_t)p->b * p->hkv, keys = seen < p->sk ? seen : p->sk, room = fa_step_section_keys(p, seen, at_work, l2_bytes), n;
    int64_t most = keys > 0 ? room / keys : all;
    most = most < all ? most : all;
    most = most > 1 ? most : 1;
    n = all > 0 ? (all + most - 1) / most : 1; /* sections; made as wide as each other: a narrow last one would leave SMs idle */
    n = (all + n - 1) / n;
    if (!fa_step_packs(s) && p->hkv > 0)
        n *= p->hq / p->hkv > 1 ? p->hq / p->hkv : 1;
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}
