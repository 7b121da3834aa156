/* class: cases of one class, of the shapes that serving has: few queries beside many keys, prompts and chunks of them, lengths, pages.
 */
#include "case.h"
#include "verify/operands/random.h"
#include "view.h"
#include <math.h>

#define WORK_MOST 4e6 /* multiply-adds of one product with rows of a group padded to 16, so that a case is quick on the simulator */

#define PICK(r, table) ((table)[fa_random_below(r, (int)(sizeof(table) / sizeof *(table)))])

static double work(const fa_problem *p)
{
    double rows = fmax((double)p->sq * (p->hq / p->hkv), 16);
    return (double)p->b * p->hkv * rows * fmax(p->sk, 16) * (p->d + p->dv) / 2 * fa_operation_passes(p->op);
}

/* One in twelve has more sequences than a thread block has threads, of a few keys; one in six a long one alone, which many blocks share. */
static void make_few(fa_problem *p, fa_random *r)
{
    static const int32_t groups[] = { 1, 1, 2, 3, 4, 4, 5, 7, 8, 8, 12, 16 };
    int32_t group = PICK(r, groups), kind = fa_random_below(r, 12), queries = fa_random_below(r, 10), keys = fa_random_below(r, 10);
    bool many = kind == 0, alone = kind == 1 || kind == 2;
    p->b = many ? fa_random_within(r, 33, 300) : alone ? 1 : fa_random_within(r, 1, 6);
    p->hkv = alone ? 1 : fa_random_within(r, 1, 3);
    p->sq = queries < 4 ? 1 : queries < 9 ? fa_random_within(r, 2, 16) : fa_random_within(r, 17, 40);
    p->sk = keys < 1 ? fa_random_within(r, 1, 20) : keys < 6 ? fa_random_within(r, 21, 140) : fa_random_within(r, 141, 300);
    if (many)
        p->sq = p->sq < 3 ? p->sq : 1, p->sk = fa_random_within(r, 1, 12), group = group < 5 ? group : 1;
    if (alone)
        p->sk = fa_random_within(r, 200, 1000);
    while (p->hq = p->hkv * group, work(p) > WORK_MOST) {
        if (p->hkv == 1 && p->sq * group <= 64 && p->b <= 2 && p->sk <= 16) /* of an operation of many products */
            break;
        if (p->hkv > 1)
            p->hkv--;
        else if (p->sq * group > 64 && p->sq > 1)
            p->sq -= p->sq / 4 + 1;
        else if (p->b > 2)
            p->b--;
        else
            p->sk -= p->sk / 4 + 1;
    }
}

/* One in ten has more sequences than a warp has lanes; one in four is a chunk of a prompt after a long cached prefix. */
static void make_many(fa_problem *p, fa_random *r)
{
    static const int32_t groups[] = { 1, 1, 1, 2, 2, 3, 4, 7, 8 };
    int32_t group = PICK(r, groups), kind = fa_random_below(r, 20);
    bool many = kind<2, chunk = kind> 14;
    p->b = many ? fa_random_within(r, 33, 80) : chunk ? fa_random_within(r, 1, 2) : fa_random_within(r, 1, 6);
    p->hkv = many || chunk ? 1 : fa_random_within(r, 1, 3);
    p->sq = many ? fa_random_within(r, 1, 40) : chunk ? fa_random_within(r, 17, 100) : fa_random_within(r, 30, 400);
    p->sk = chunk ? p->sq + fa_random_within(r, 100, 900) : fa_random_below(r, 3) ? p->sq : fa_random_within(r, 1, 400);
    if (many)
        group = 1, p->sk = p->sk < 40 ? p->sk : 40;
    while (p->hq = p->hkv * group, work(p) > WORK_MOST) {
        bool least = p->hkv == 1 && (group == 1 || group == 7) && p->b <= (many ? 33 : 3) && p->sq <= 16 && p->sk <= 16;
        if (least) /* of an operation of many products */
            break;
        if (p->hkv > 1)
            p->hkv--;
        else if (group > 1 && group != 7)
            group--;
        else if (p->b > (many ? 33 : 3))
            p->b--;
        else if (p->sq > p->sk / 2)
            p->sq -= p->sq / 8 + 1;
        else
            p->sk -= p->sk / 8 + 1;
    }
}

/* Tokens of a page that the class serves: its own power of two times anything. */
static int32_t pick_page_size(fa_random *r, int32_t page)
{
    static const int32_t times[] = { 1, 1, 1, 1, 1, 2, 3, 3, 4, 5, 17 };
    int32_t size = page * PICK(r, times);
    return size <= 384 ? size : page;
}

static void make_ragged(fa_case *c, fa_random *r)
{
    static const int32_t q[] = { 0, 0, FA_FORM_SEQLENS_Q, FA_FORM_CU_Q, FA_FORM_CU_Q, FA_FORM_CU_Q | FA_FORM_SEQLENS_Q },
                         k[] = { FA_FORM_SEQLENS_K, FA_FORM_SEQLENS_K, FA_FORM_CU_K, FA_FORM_CU_K | FA_FORM_SEQLENS_K, 0 },
                         spread_q[] = { FA_SPREAD_UNIFORM, FA_SPREAD_UNIFORM, FA_SPREAD_EDGES, FA_SPREAD_FULL, FA_SPREAD_EQUAL },
                         spread_k[] = { FA_SPREAD_UNIFORM, FA_SPREAD_LOG,   FA_SPREAD_ZIPF, FA_SPREAD_EDGES,
                                        FA_SPREAD_EDGES,   FA_SPREAD_EQUAL, FA_SPREAD_FULL };
    fa_ragged_how *h = &c->ragged;
    bool pages = c->problem.features & FA_FEATURE_PAGES;
    h->seed = fa_random_next(r);
    h->forms = PICK(r, q);
    h->forms |= pages ? FA_FORM_SEQLENS_K | FA_FORM_PAGES : PICK(r, k);
    if (c->problem.features & FA_FEATURE_SLOTS)
        h->forms &= ~FA_FORM_CU_K;
    h->forms = h->forms ? h->forms : FA_FORM_SEQLENS_K;
    h->q = PICK(r, spread_q);
    h->k = PICK(r, spread_k);
    h->idle = fa_random_below(r, 4) ? 0 : fa_random_within(r, 1, c->problem.b);
    h->gap = fa_random_below(r, 3) ? fa_random_within(r, 1, 9) : 0;
    h->wild = fa_random_below(r, 8) == 0;
    if (!pages)
        return;
    h->page_size = pick_page_size(r, c->problem.page);
    h->spare = fa_random_below(r, 6);
    h->wide = fa_random_below(r, 2) ? fa_random_within(r, 1, 9) : 0;
    h->shared = fa_random_below(r, 4) ? 0 : fa_random_within(r, 1, 4);
    h->foreign = fa_random_below(r, 5) == 0;
}

/* Rows of tokens, rows of heads, which are the two usual orders of pages, and others. */
static void make_layouts(fa_case *c, const fa_operation *op, fa_random *r)
{
    static const int32_t kinds[] = { FA_LAYOUT_PACKED, FA_LAYOUT_PACKED, FA_LAYOUT_HEADS, FA_LAYOUT_HEADS, FA_LAYOUT_PADDED },
                         orders[] = { FA_LAYOUT_PADDED, FA_LAYOUT_HEADS, FA_LAYOUT_TURNED, FA_LAYOUT_REVERSED };
    int strided = 0;
    for (int i = 0; i < op->n; i++) {
        c->layout[i] = op->operand[i].strided ? PICK(r, kinds) : FA_LAYOUT_PACKED;
        if (op->operand[i].class_at)
            c->layout[i] = fa_case_scale_layout(c, i);
        else if (op->operand[i].strides_at && c->problem.features & FA_FEATURE_LSE_STRIDES)
            c->layout[i] = PICK(r, orders);
        strided += op->operand[i].strided;
    }
    int odd = fa_random_below(r, 3 * strided), at = odd % strided; /* one in three cases, on chips with TMA for kernels without it */
    for (int i = 0; i < op->n && odd < strided; i++)
        if (op->operand[i].strided && at-- == 0)
            c->layout[i] = fa_random_below(r, 3) ? FA_LAYOUT_REVERSED : FA_LAYOUT_FAR;
}

void fa_case_make_class(fa_case *c, const fa_problem *class, fa_case_queries queries, uint64_t seed)
{
    static const float dropouts[] = { 0.1f, 0.1f, 0.5f, 0.25f, 0.9f, 1e-12f, 0.999f };
    fa_random r = { fa_random_mix(seed ^ 0x636c617373) };
    *c = (fa_case){ .seed = seed, .problem = *class, .same_b = 1, .same_kv = 1, .same_q = 1, .gap = 255 };
    c->choice = (uint32_t)fa_random_next(&r);
    if (queries == FA_CASE_MANY)
        make_many(&c->problem, &r);
    else
        make_few(&c->problem, &r);
    fa_case_make_view(c, &r, 8);
    make_layouts(c, fa_operation_find(class->op), &r);
    c->odd = fa_random_below(&r, 2);
    c->lse = class->features & FA_FEATURE_LSE_STRIDES || fa_random_below(&r, 4) != 0;
    c->values = fa_random_below(&r, 3) ? FA_VALUES_NORMAL : FA_VALUES_HEAVY;
    c->hidden = fa_random_below(&r, 4) ? fa_random_within(&r, FA_HIDDEN_NAN, FA_HIDDEN_INF) : FA_HIDDEN_VALUES;
    if (class->features & FA_FEATURE_LENGTHS)
        make_ragged(c, &r);
    c->unwritten = fa_random_below(&r, 3) == 0;
    if (class->features & FA_FEATURE_DROPOUT)
        c->dropout = PICK(&r, dropouts);
    if (c->dropout > 0.9f && class->dtype != FA_F32)
        c->dropout = 0.9f; /* an output of one weight has the one rounding of it, and how near naive's comes is chance */
}
