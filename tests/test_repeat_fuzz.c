/* One struct of arguments, changed in place between launches on the simulator: each launch gives what it gives as the first of a thread, in
 * a context that is young. */
#include "test_cache_scratch.h"
#include "test_full.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include <criterion/criterion.h>
#include <fagen.h>
#include <math.h>
#include <pthread.h>

TestSuite(repeat_fuzz, .init = scratch_make, .fini = scratch_remove, .timeout = 3600);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { B = 2, H = 2, S = 48, D = 64, PAGE = 16, PAGES = 8, ROOM = 2 * B * S * H * (D + 8), LSE = B * S * H, WORKSPACE = 4 << 20 };
#define CANARY 0x7fa5 /* a NaN that no kernel writes */

/* Where each tensor has two places. Gradients, too. */
enum { Q, K, V, O, DO, DQ, DK, DV, TENSORS };

typedef struct device {
    fa_context *ctx;
    uint16_t *tensor[TENSORS];
    float *lse, *grad_lse;
    int32_t *rows_q, *rows_k, *first_q, *first_k, *table;
    uint64_t *rng;
    void *workspace;
} device;

static fa_context *open_one(void)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.device = "sim:sm_80";
    o.cache_dir = scratch;
    OK(fa_create(&ctx, &o));
    return ctx;
}

static void *room(fa_context *ctx, size_t bytes, const void *from)
{
    void *at;
    OK(fa_alloc(ctx, &at, bytes));
    if (from)
        OK(fa_copy(ctx, at, from, bytes, FA_TO_DEVICE));
    return at;
}

static uint16_t drawn[ROOM];
static float drawn_lse[LSE];

static device open_device(fa_random *r)
{
    device d = { .ctx = open_one() };
    for (int i = 0; i < TENSORS; i++) {
        for (int k = 0; k < ROOM; k++)
            drawn[k] = fa_number_to_bf16((float)fa_random_unit(r) * 2 - 1);
        d.tensor[i] = room(d.ctx, sizeof drawn, drawn);
    }
    for (int k = 0; k < LSE; k++)
        drawn_lse[k] = 4 + (float)fa_random_unit(r);
    d.lse = room(d.ctx, sizeof drawn_lse, drawn_lse);
    d.grad_lse = room(d.ctx, sizeof drawn_lse, drawn_lse);
    const int32_t table[B * (S / PAGE)] = { 3, 0, 6, 1, 7, 2 };
    const uint64_t rng[2] = { 5, 77 };
    d.table = room(d.ctx, sizeof table, table);
    d.rng = room(d.ctx, sizeof rng, rng);
    d.rows_q = room(d.ctx, 64, NULL), d.rows_k = room(d.ctx, 64, NULL);
    d.first_q = room(d.ctx, 64, NULL), d.first_k = room(d.ctx, 64, NULL);
    d.workspace = room(d.ctx, WORKSPACE, NULL);
    OK(fa_workspace_init(d.ctx, d.workspace, WORKSPACE, NULL));
    return d;
}

static fa_args start(const device *d, int32_t op)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16, a.d = D, a.b = B, a.hq = H, a.hkv = 1, a.sq = 40, a.sk = S, a.op = op;
    a.q.ptr = d->tensor[Q], a.k.ptr = d->tensor[K], a.v.ptr = d->tensor[V], a.o.ptr = d->tensor[O];
    a.lse = d->lse;
    a.workspace = d->workspace, a.workspace_size = WORKSPACE;
    if (op == FA_BACKWARD) {
        a.grad_o.ptr = d->tensor[DO], a.grad_q.ptr = d->tensor[DQ], a.grad_k.ptr = d->tensor[DK], a.grad_v.ptr = d->tensor[DV];
    } else if (op == FA_MERGE) {
        a.q = a.k = a.v = (fa_tensor){ NULL, 0, 0, 0 };
        a.part.ptr = d->tensor[Q], a.part_lse = d->grad_lse, a.parts = 1;
    }
    return a;
}

/* Lengths that fit whatever is said of them: rows_k and first_k of at most S keys in all pages, rows_q and first_q of at most sq. */
static void draw_lengths(const device *d, const fa_args *a, fa_random *r)
{
    int32_t rows[2][B], first[2][B + 1] = { { 0 } };
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < B; i++) {
            rows[side][i] = fa_random_below(r, (side ? a->sk : a->sq) + 1);
            first[side][i + 1] = first[side][i] + rows[side][i];
        }
    OK(fa_copy(d->ctx, d->rows_q, rows[0], sizeof rows[0], FA_TO_DEVICE));
    OK(fa_copy(d->ctx, d->rows_k, rows[1], sizeof rows[1], FA_TO_DEVICE));
    OK(fa_copy(d->ctx, d->first_q, first[0], sizeof first[0], FA_TO_DEVICE));
    OK(fa_copy(d->ctx, d->first_k, first[1], sizeof first[1], FA_TO_DEVICE));
}

static fa_tensor *tensor_of(fa_args *a, int i)
{
    fa_tensor *const all[TENSORS] = { &a->q, &a->k, &a->v, &a->o, &a->grad_o, &a->grad_q, &a->grad_k, &a->grad_v };
    return all[i];
}

/* The first so many kinds of change need few kernels. */
enum { FEW = 9, KINDS = 17 };

static void change(fa_args *a, const device *d, fa_random *r)
{
    int i = fa_random_below(r, a->op == FA_BACKWARD ? TENSORS : O + 1), kind = fa_random_below(r, full() ? KINDS : FEW);
    fa_tensor *t = a->op == FA_MERGE && i < O ? &a->part : tensor_of(a, i);
    bool merge = a->op == FA_MERGE;
    switch (kind) {
    case 0:
        a->sq = 33 + fa_random_below(r, 8), a->sk = merge ? 0 : 36 + fa_random_below(r, 13);
        break;
    case 1:
        t->ptr = (t == &a->part ? d->tensor[Q] : d->tensor[i]) + fa_random_below(r, 2) * (ROOM / 2);
        break;
    case 2:
        *t = fa_random_below(r, 2) ? (fa_tensor){ t->ptr, 0, 0, 0 } : (fa_tensor){ t->ptr, S * H * (D + 8), H * (D + 8), D + 8 };
        break;
    case 3:
    case 4:
        a->lse = a->lse ? NULL : d->lse;
        break;
    case 5:
        a->lse_sh = !a->lse_sh, a->lse_ss = H * a->lse_sh, a->lse_sb = S * H * a->lse_sh;
        break;
    case 6:
        a->seqlens_k = a->seqlens_k || merge ? NULL : d->rows_k;
        break;
    case 7:
        a->scale = fa_random_below(r, 2) ? 0 : 0.05f + 0.1f * (float)fa_random_unit(r);
        break;
    case 8:
        a->workspace = a->workspace ? NULL : d->workspace, a->workspace_size = a->workspace ? WORKSPACE : 0;
        break;
    case 9:
        a->mask = merge ? 0 : fa_random_below(r, 3), a->window_left = fa_random_below(r, 20) - 1,
        a->window_right = fa_random_below(r, 20) - 1;
        break;
    case 10:
        a->diagonal = fa_random_below(r, 3), a->offset = fa_random_below(r, 60) - 30;
        break;
    case 11:
        a->seqlens_q = a->seqlens_q || merge ? NULL : d->rows_q;
        break;
    case 12:
        a->cu_seqlens_q = a->cu_seqlens_q || merge ? NULL : d->first_q, a->total_q = a->cu_seqlens_q ? B * 40 : 0;
        break;
    case 13:
        a->cu_seqlens_k = a->cu_seqlens_k || merge ? NULL : d->first_k, a->total_k = a->cu_seqlens_k ? B * S : 0;
        break;
    case 14:
        if (a->page_table || a->op != FA_FORWARD)
            a->page_table = NULL, a->page_size = a->pages = 0;
        else
            a->page_table = d->table, a->page_size = PAGE, a->pages = PAGES;
        break;
    case 15:
        a->dropout = a->rng || merge ? 0 : 0.5f, a->rng = a->dropout > 0 ? d->rng : NULL;
        a->grad_lse = a->op == FA_BACKWARD && !a->grad_lse ? d->grad_lse : NULL;
        break;
    default:
        *a = start(d, fa_random_below(r, 3));
    }
}

/* ---- what a launch leaves ---- */

typedef struct left {
    fa_status st;
    char told[256];
    uint16_t tensor[TENSORS][ROOM];
    float lse[LSE];
} left;

static bool written(const fa_args *a, int i)
{
    return a->op == FA_BACKWARD ? i >= DQ : i == O;
}

static void fill(const device *d, const fa_args *a)
{
    static uint16_t canary[ROOM];
    for (int k = 0; k < ROOM; k++)
        canary[k] = CANARY;
    for (int i = 0; i < TENSORS; i++)
        if (written(a, i))
            OK(fa_copy(d->ctx, d->tensor[i], canary, sizeof canary, FA_TO_DEVICE));
    if (a->op != FA_BACKWARD)
        OK(fa_copy(d->ctx, d->lse, canary, sizeof drawn_lse, FA_TO_DEVICE));
}

static void read_back(left *l, const device *d, const fa_args *a)
{
    for (int i = 0; i < TENSORS; i++)
        if (written(a, i))
            OK(fa_copy(d->ctx, l->tensor[i], d->tensor[i], sizeof l->tensor[i], FA_FROM_DEVICE));
    OK(fa_copy(d->ctx, l->lse, d->lse, sizeof l->lse, FA_FROM_DEVICE));
}

static void launch(left *l, fa_context *ctx, const fa_args *a)
{
    l->st = fa_launch(ctx, a, NULL);
    snprintf(l->told, sizeof l->told, "%s", l->st == FA_OK ? "" : fa_last_error());
}

typedef struct first {
    left *left;
    fa_context *ctx;
    const fa_args *args;
} first;

static void *launch_first(void *user)
{
    const first *f = user;
    launch(f->left, f->ctx, f->args);
    return NULL;
}

static bool near(float x, float y, double most)
{
    return x == y || (isnan(x) && isnan(y)) || fabs((double)x - y) <= most * fmax(1, fabs((double)y));
}

/* Bits where one is untouched; else but for what another kernel of the class rounds. */
static void compare(const left *x, const left *y, const fa_args *a, int n)
{
    cr_assert_eq(x->st, y->st, "launch %d: %s %s; as a first one %s %s", n, fa_status_name(x->st), x->told, fa_status_name(y->st), y->told);
    cr_assert(!strcmp(x->told, y->told), "launch %d: %s; as a first one: %s", n, x->told, y->told);
    for (int i = 0; i < TENSORS && x->st == FA_OK; i++)
        for (int k = 0; k < ROOM && written(a, i); k++)
            cr_assert((x->tensor[i][k] == CANARY) == (y->tensor[i][k] == CANARY) &&
                          near(fa_number_from_bf16(x->tensor[i][k]), fa_number_from_bf16(y->tensor[i][k]), 0.03),
                      "launch %d: tensor %d, element %d is %g, as a first launch %g", n, i, k, (double)fa_number_from_bf16(x->tensor[i][k]),
                      (double)fa_number_from_bf16(y->tensor[i][k]));
    for (int k = 0; k < LSE && x->st == FA_OK; k++)
        cr_assert(near(x->lse[k], y->lse[k], 1e-3), "launch %d: LSE[%d] is %g, as a first launch %g", n, k, (double)x->lse[k],
                  (double)y->lse[k]);
}

Test(repeat_fuzz, a_launch_gives_what_it_gives_alone)
{
    enum { YOUNG = 25 }; /* launches of a context that is compared with */
    static left here, alone;
    fa_random r = { 20 };
    device d = open_device(&r);
    fa_context *young = NULL;
    fa_args a = start(&d, FA_FORWARD);
    int launches = full() ? 2400 : 200, ok = 0;
    for (int n = 0; n < launches; n++) {
        for (int i = fa_random_below(&r, 2); i >= 0; i--)
            change(&a, &d, &r);
        draw_lengths(&d, &a, &r);
        if (n % YOUNG == 0) {
            fa_destroy(young);
            young = open_one();
        }
        fill(&d, &a);
        launch(&here, d.ctx, &a);
        read_back(&here, &d, &a);
        fill(&d, &a);
        pthread_t t;
        first f = { &alone, young, &a };
        cr_assert_eq(pthread_create(&t, NULL, launch_first, &f), 0);
        pthread_join(t, NULL);
        read_back(&alone, &d, &a);
        compare(&here, &alone, &a, n);
        ok += here.st == FA_OK;
        if (here.st != FA_OK)
            a = start(&d, full() ? fa_random_below(&r, 3) : FA_FORWARD);
    }
    cr_expect_gt(ok, launches / 2, "%d of %d", ok, launches);
    fa_destroy(young);
    fa_destroy(d.ctx);
}
