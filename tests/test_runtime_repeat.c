/* A thread's launches one after the other give the driver what each gives in a thread of its own: nothing of one call stays in the next. */
#include "gen/problem.h"
#include "runtime/launch/repeat.h"
#include "test_full.h"
#include "test_maps_toy.h"
#include "verify/operands/random.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct once {
    const fa_plan *plan;
    fa_args args;
    fa_status st;
    fake_launch launch;
} once;

static void launch_once(once *o)
{
    o->st = fa_plan_launch(ctx, o->plan, &o->args, NULL);
    o->launch = fake_last();
}

static void *in_a_thread(void *user)
{
    launch_once(user);
    return NULL;
}

/* Changes one thing, or nothing. */
static void change(fa_args *a, fa_random *r)
{
    fa_tensor *t[] = { &a->q, &a->k, &a->v, &a->o };
    int which = fa_random_below(r, 4);
    switch (fa_random_below(r, 14)) {
    case 0:
        a->sq = 1 + fa_random_below(r, 300);
        break;
    case 1:
        a->sk = fa_random_below(r, 300);
        break;
    case 2:
        a->b = fa_random_below(r, 4);
        break;
    case 3:
        a->lse = a->lse ? NULL : AT(5);
        break;
    case 4:
        a->mask = fa_random_below(r, 3), a->window_left = fa_random_below(r, 50);
        break;
    case 5:
        a->scale = (float)fa_random_unit(r);
        break;
    case 6:
        *t[which] = (fa_tensor){ t[which]->ptr, 0, 0, 0 };
        break;
    case 7:
        *t[which] = (fa_tensor){ t[which]->ptr, 1 << 20, 1024, 128 };
        break;
    case 8:
        a->workspace_size = (size_t)fa_random_below(r, 2);
        break;
    case 9:
        t[which]->ptr = (char *)t[which]->ptr + 2 * fa_random_below(r, 9);
        break; /* misaligned, or for TMA; odd only in the next */
    case 10:
        t[which]->ptr = (char *)t[which]->ptr + 1;
        break;
    case 11:
        a->o.ptr = fa_random_below(r, 4) ? AT(4) : a->q.ptr;
        break; /* overlaps q */
    case 12:
        a->q.ptr = fa_random_below(r, 4) ? AT(1) : NULL;
        break;
    default:
        t[which]->ptr = AT(1 + which + 8 * fa_random_below(r, 40));
        break; /* addresses alone, as a model's layers */
    }
}

Test(runtime_repeat, what_a_launch_gives_does_not_depend_on_the_launch_before, .init = open_context, .fini = close_context)
{
    fa_random r = { 7 };
    fa_args a = toy_args();
    const fa_plan *plan[3][8] = { { NULL } };
    long ok = 0, wrong = 0;
    for (int i = 0; i < 3000; i++) {
        int kind = fa_random_below(&r, 8) ? 0 : 4 + fa_random_below(&r, 2);
        if (fa_random_below(&r, 6) == 0) /* most faults do not stay */
            a = toy_args();
        change(&a, &r);
        if (!plan[a.mask][kind]) {
            fa_args same = a;
            plan[a.mask][kind] = plan_of(&same, kind);
        }
        once here = { .plan = plan[a.mask][kind], .args = a }, fresh = here;
        pthread_t t;
        launch_once(&here);
        cr_assert_eq(pthread_create(&t, NULL, in_a_thread, &fresh), 0);
        pthread_join(t, NULL);
        cr_assert_eq(here.st, fresh.st, "launch %d: %d and %d", i, here.st, fresh.st);
        *(here.st == FA_OK ? &ok : &wrong) += 1;
        if (here.st != FA_OK || !a.b)
            continue;
        const fake_launch *x = &here.launch, *y = &fresh.launch;
        cr_assert(x->f == y->f && x->grid == y->grid && x->block == y->block && x->smem == y->smem && x->maps == y->maps, "launch %d", i);
        /* NOLINTBEGIN(bugprone-suspicious-memory-comparison) both were cleared whole */
        cr_assert(!memcmp(&x->params, &y->params, sizeof x->params), "launch %d: parameters", i);
        for (int m = 0; m < x->maps; m++)
            cr_assert(!memcmp(&x->map[m], &y->map[m], sizeof x->map[m]), "launch %d: map %d", i, m);
        /* NOLINTEND(bugprone-suspicious-memory-comparison) */
    }
    cr_expect(ok > 1000 && wrong > 200, "%ld and %ld", ok, wrong);
}

/* Kernels that come to lie where another one was, contexts of two devices in turn. */
Test(runtime_repeat, contexts_and_kernels_come_and_go)
{
    fa_args a = toy_args();
    for (int round = 0; round < 4; round++) {
        open_context();
        for (int kind = 0; kind < 2; kind++) {
            OK(fa_plan_launch(ctx, plan_of(&a, kind), &a, NULL));
            cr_expect_eq(fake_last().grid, 32u);
            cr_expect_eq(fake_last().maps, kind ? 0 : 4);
            cr_expect_eq(fake_last().params.q, (uint64_t)(uintptr_t)a.q.ptr);
        }
        close_context();
        a.q.ptr = (char *)a.q.ptr + 4096;
    }
}

/* ---- a second look against a first ---- */

#define LISTED 100
static const fa_operation listed = {
    .op = LISTED, .name = "listed", .n = 2, .flags = FA_BROADCAST,
    .operand = {
        { .name = "q", .rank = 4, .extent = { FA_EXTENT_B, FA_EXTENT_SQ, FA_EXTENT_HQ, FA_EXTENT_D }, .strided = true,
          .at = offsetof(fa_args, q) },
        { .name = "o", .rank = 4, .extent = { FA_EXTENT_B, FA_EXTENT_SQ, FA_EXTENT_HQ, FA_EXTENT_DV }, .type = FA_TYPE_OUTPUT,
          .output = true, .strided = true, .at = offsetof(fa_args, o) },
    },
    .lists = 2,
    .list = { { "values", offsetof(fa_args, grad_lse), offsetof(fa_args, parts), 24 },
              { "more", offsetof(fa_args, part_lse), offsetof(fa_args, layout_flags), 8 } },
};

/* A call of each operation that has all its operands. */
static fa_args whole(int32_t op)
{
    fa_args a = good();
    a.op = op;
    if (op == FA_MERGE)
        a.part.ptr = AT(8), a.part_lse = AT(9), a.parts = 2;
    if (op == FA_BACKWARD)
        a.grad_o.ptr = AT(10), a.grad_q.ptr = AT(11), a.grad_k.ptr = AT(12), a.grad_v.ptr = AT(13), a.grad_lse = AT(14);
    return a;
}

/* Any field of another value, one that is right as often as not. */
static void change_any(fa_args *a, fa_random *r)
{
    fa_tensor *t[] = { &a->q, &a->k, &a->v, &a->o, &a->part, &a->grad_o, &a->grad_q, &a->grad_k, &a->grad_v };
    static const size_t address[] = { offsetof(fa_args, lse),          offsetof(fa_args, workspace), offsetof(fa_args, cu_seqlens_q),
                                      offsetof(fa_args, cu_seqlens_k), offsetof(fa_args, seqlens_q), offsetof(fa_args, seqlens_k),
                                      offsetof(fa_args, page_table),   offsetof(fa_args, part_lse),  offsetof(fa_args, grad_lse),
                                      offsetof(fa_args, rng) };
    static const size_t number[] = { offsetof(fa_args, b),          offsetof(fa_args, sq),      offsetof(fa_args, sk),
                                     offsetof(fa_args, total_q),    offsetof(fa_args, total_k), offsetof(fa_args, page_size),
                                     offsetof(fa_args, pages),      offsetof(fa_args, parts),   offsetof(fa_args, mask),
                                     offsetof(fa_args, diagonal),   offsetof(fa_args, offset),  offsetof(fa_args, flags),
                                     offsetof(fa_args, grad_dtype), offsetof(fa_args, o_dtype), offsetof(fa_args, window_left) };
    fa_tensor *x = t[fa_random_below(r, 9)];
    switch (fa_random_below(r, 9)) {
    case 0:
    case 1:
    case 2: { /* given or not, aligned or not, over another or not */
        void *at = fa_random_below(r, 3) ? AT(16 + fa_random_below(r, 20)) : NULL;
        at = fa_random_below(r, 8) ? at : (char *)at + fa_random_below(r, 9);
        memcpy((char *)a + address[fa_random_below(r, sizeof address / sizeof *address)], &at, sizeof at);
        break;
    }
    case 3:
        x->ptr = fa_random_below(r, 6) ? (char *)AT(1 + fa_random_below(r, 14)) + 2 * fa_random_below(r, 9) : NULL;
        break;
    case 4:
        *x = fa_random_below(r, 2) ? (fa_tensor){ x->ptr, 0, 0, 0 } : (fa_tensor){ x->ptr, 1 << 20, 1024, 128 };
        break;
    case 5: {
        int64_t h = fa_random_below(r, 3) ? 1 : 0;
        a->lse_sh = h, a->lse_ss = 8 * h, a->lse_sb = 8 * 256 * h;
        break;
    }
    case 6:
        a->dropout = fa_random_below(r, 2) ? 0 : 0.25f;
        a->workspace_size = (size_t)fa_random_below(r, 2) << 20;
        break;
    case 7:
        a->page_table_stride = fa_random_below(r, 3) ? 0 : 64;
        a->part_lse_stride = a->part_stride = 0;
        break;
    default: {
        int32_t n = fa_random_below(r, 4);
        n = n == 3 ? 200 : n;
        memcpy((char *)a + number[fa_random_below(r, sizeof number / sizeof *number)], &n, sizeof n);
    }
    }
}

/* What launches go by: class, sizes, values. */
static void same_calls(const fa_repeat *got, const fa_call *want, int i)
{
    const fa_call *c = &got->call;
    const fa_plan_key key = fa_plan_key_of(&want->problem);
    cr_assert(fa_plan_key_equal(&got->key, &key), "launch %d: another class", i);
    cr_assert(!memcmp(&c->problem, &want->problem, sizeof c->problem), "launch %d: problem", i);
    cr_assert(!memcmp(&c->sizes, &want->sizes, sizeof c->sizes), "launch %d: sizes", i);
    cr_assert(c->op == want->op && c->has == want->has && c->operands == want->operands && c->empty == want->empty &&
                  c->workspace_size == want->workspace_size,
              "launch %d", i);
    uint64_t has = c->empty ? 0 : c->has;
    for (int k; (k = fa_operands_next(&has)) >= 0;)
        cr_assert(!memcmp(&c->values.operand[k], &want->values.operand[k], sizeof c->values.operand[k]), "launch %d: %s", i,
                  c->op->operand[k].name);
#define X(c_type, cuda, name, who, comment) cr_assert(c->values.name == want->values.name || c->empty, "launch %d: %s", i, #name);
    FA_SCALARS(X)
#undef X
}

/* V inside K: kernels get K's address and strides, of repeats too, and another address of V is seen. */
Test(runtime_repeat, v_inside_k_goes_where_k_goes)
{
    for (int given = 0; given < 2; given++) {
        fa_args a = good();
        fa_repeat *r;
        a.layout_flags = FA_V_IN_K;
        a.dv = 48;
        a.k = (fa_tensor){ AT(2), 65536, 256, 64 };
        a.v = given ? a.k : (fa_tensor)FA_TENSOR_INIT;
        for (int i = 0; i < 3; i++) {
            a.k.ptr = AT(20 + i);
            a.v.ptr = given ? a.k.ptr : NULL;
            cr_assert_eq(fa_repeat_check(&r, &a), FA_OK, "%s", fa_last_error());
            cr_expect(i == 0 || r->kernel == 1, "call %d is a repeat", i);
            r->kernel = 1;
            const fa_call *c = &r->call;
            int k = fa_operand_slot(c->op, FA_ID_k), v = fa_operand_slot(c->op, FA_ID_v);
            cr_expect_eq(c->values.operand[v].address, (uint64_t)(uintptr_t)a.k.ptr);
            cr_expect(!memcmp(&c->values.operand[v], &c->values.operand[k], sizeof c->values.operand[v]));
            cr_expect(c->problem.features & FA_FEATURE_V_IN_K);
        }
        a.v.ptr = AT(3);
        cr_expect_eq(fa_repeat_check(&r, &a), FA_INVALID);
        cr_expect(strstr(fa_last_error(), "v.ptr"), "%s", fa_last_error());
    }
}

/* One struct changed in place, all operations, in this thread, against a first look. */
Test(runtime_repeat, a_second_look_finds_what_a_first_finds)
{
    fa_random r = { 3 };
    fa_args a = whole(FA_FORWARD);
    long ok = 0, wrong = 0, hits = 0;
    for (int i = 0; i < (full() ? 2000000 : 60000); i++) {
        fa_repeat *got;
        fa_call want;
        char told[512];
        if (fa_random_below(&r, 8) == 0) /* most faults do not stay */
            a = whole(fa_random_below(&r, 3));
        for (int32_t n = fa_random_below(&r, 3); n > 0; n--)
            change_any(&a, &r);
        memset(&want, 0, sizeof want);
        fa_status fresh = fa_check_args(&want, &a, true);
        snprintf(told, sizeof told, "%s", fa_last_error());
        cr_assert_eq(fa_repeat_check(&got, NULL), FA_INVALID);
        memset(&got->call.values, 0, sizeof got->call.values); /* what only launches fill */
        fa_status first = fa_repeat_check(&got, &a);
        cr_assert_eq(first, fresh, "launch %d", i);
        /* the same struct, other words in it */
        fa_args before = a;
        change_any(&a, &r);
        got->kernel = 1;
        fa_status st = fa_repeat_check(&got, &a);
        hits += st == FA_OK && got->kernel;
        memset(&want, 0, sizeof want);
        fresh = fa_check_args(&want, &a, true);
        cr_assert_eq(st, fresh, "launch %d: %s, and of a first look %s: %s", i, fa_status_name(st), fa_status_name(fresh), fa_last_error());
        *(st == FA_OK ? &ok : &wrong) += 1;
        if (st == FA_OK)
            same_calls(got, &want, i);
        else
            a = fa_random_below(&r, 2) ? before : a;
    }
    cr_expect(ok > 5000 && wrong > 10000 && hits > 1000, "%ld, %ld, %ld", ok, wrong, hits);
}

/* What is compared follows from the rows: no byte of the arguments is left out but addresses, of which it is whether they are NULL. */
Test(runtime_repeat, every_byte_of_the_arguments_counts)
{
    const int32_t ops[] = { FA_FORWARD, FA_BACKWARD, FA_MERGE };
    for (int o = 0; o < 3; o++)
        for (size_t at = offsetof(fa_args, dtype); at < sizeof(fa_args); at++) {
            fa_args a = whole(ops[o]);
            fa_repeat *r;
            const fa_operation *op = fa_operation_find(a.op);
            a.workspace = AT(15), a.workspace_size = 4096;
            cr_assert_eq(fa_repeat_check(&r, &a), FA_OK, "%s", fa_last_error());
            bool address = at / 8 == offsetof(fa_args, workspace) / 8;
            for (int i = 0; i < op->n; i++)
                address = address || at / 8 == op->operand[i].at / 8;
            uint64_t *word = (uint64_t *)(void *)&a + at / 8;
            r->kernel = 1;
            if (address && *word) {
                *word += 0x100; /* another, of the same alignment */
                cr_expect(fa_repeat_check(&r, &a) == FA_OK && r->kernel == 1, "byte %zu of %s: an address alone", at, op->name);
                *word = 0;
            } else if (address)
                *word = (uint64_t)(uintptr_t)AT(30);
            else
                ((unsigned char *)&a)[at] ^= 1;
            fa_status st = fa_repeat_check(&r, &a);
            cr_expect(st != FA_OK || r->kernel == 0, "byte %zu of %s is not compared", at, op->name);
        }
}

typedef struct value {
    double scalar;
    const void *at;
    int64_t stride;
} value;

/* Structs in host memory that the arguments lead to: contents are compared, of lists as long as they may be. */
Test(runtime_repeat, what_host_lists_lead_to_is_compared)
{
    static value values[8], more[64];
    static uint64_t words[300];
    fa_args a = good();
    fa_repeat *r;
    fa_operation_add(&listed);
    a.op = LISTED, a.k.ptr = a.v.ptr = a.lse = NULL;
    a.grad_lse = (const float *)(const void *)values, a.parts = 8;
    a.part_lse = (const float *)(const void *)words, a.layout_flags = 100;
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(fa_repeat_check(&r, &a), FA_OK, "%s", fa_last_error());
        r->kernel = 1;
        cr_expect(fa_repeat_check(&r, &a) == FA_OK && r->kernel == 1, "the same");
        a.q.ptr = AT(20 + i);
        cr_expect(fa_repeat_check(&r, &a) == FA_OK && r->kernel == 1, "another address");
        *(i == 0 ? &values[7].stride : i == 1 ? &values[0].stride : (int64_t *)(void *)&words[i == 2 ? 0 : 99]) ^= INT64_MIN;
        cr_expect(fa_repeat_check(&r, &a) == FA_OK && r->kernel == 0, "change %d of what lies there is seen", i);
    }
    words[100] = 1; /* after it */
    r->kernel = 1;
    cr_expect(fa_repeat_check(&r, &a) == FA_OK && r->kernel == 1);
    a.layout_flags = 300; /* more than is kept: no launch is a repeat */
    for (int i = 0; i < 2; i++) {
        r->kernel = 1;
        cr_expect(fa_repeat_check(&r, &a) == FA_OK && r->kernel == 0);
    }
    words[100] = 0, words[232] = 1;
    for (a.layout_flags = 232; a.layout_flags < 234;
         a.layout_flags++) /* 2048 bytes with the values before them, which is as many as are kept; more */
        for (int i = 0; i < 2; i++) {
            r->kernel = 1;
            cr_expect(fa_repeat_check(&r, &a) == FA_OK && r->kernel == (i && a.layout_flags == 232), "%d words, call %d", a.layout_flags,
                      i);
        }
    a.layout_flags = 0, a.grad_lse = (const float *)(const void *)more, a.parts = 64;
    for (int i = 0; i < 2; i++, more[63].scalar = 2) {
        cr_expect_eq(fa_repeat_check(&r, &a), FA_OK);
        cr_expect_eq(r->kernel, 0);
        r->kernel = 1;
    }
    a.layout_flags = 1; /* counted, and nowhere */
    a.part_lse = NULL;
    cr_expect_eq(fa_repeat_check(&r, &a), FA_OK);
}

/* A launch without a workspace may settle for a kernel that needs none: for itself, not for the next one. */
Test(runtime_repeat, what_a_launch_settled_for_does_not_stay)
{
    fa_args a = whole(FA_FORWARD);
    fa_repeat *r;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(fa_repeat_check(&r, &a), FA_OK, "%s", fa_last_error());
        cr_expect(!(r->call.problem.features & FA_FEATURE_NO_WORKSPACE) && !(r->key.features & FA_FEATURE_NO_WORKSPACE), "call %d", i);
        r->call.problem.features |= FA_FEATURE_NO_WORKSPACE, r->key.features |= FA_FEATURE_NO_WORKSPACE;
    }
}

/* Of a struct of an older header no byte after its end is looked at, though the call before had them. */
Test(runtime_repeat, a_shorter_struct_behind_a_whole_one_is_read_to_its_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = offsetof(fa_args, workspace);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(p != MAP_FAILED && mprotect(p + page, page, PROT_NONE) == 0);
    fa_args a = whole(FA_FORWARD), *old = (void *)(p + page - bytes);
    memcpy(old, &a, bytes);
    old->size = (uint32_t)bytes;
    fa_repeat *r;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(fa_repeat_check(&r, &a), FA_OK, "%s", fa_last_error());
        r->kernel = 1;
        cr_expect(fa_repeat_check(&r, old) == FA_OK && r->kernel == 0, "%s", fa_last_error());
    }
    munmap(p, 2 * page);
}
