/* A thread's launches one after the other give the driver what each gives in a thread of its own: nothing of one call stays in the next. */
#include "autotune/random.h"
#include "gen/problem.h"
#include "test_maps_toy.h"
#include <pthread.h>

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
