/* repeat: arguments compared with those of before as words, addresses masked out. */
#include "repeat.h"
#include "gen/error.h"
#include "gen/thread.h"
#include <string.h>

#define WORDS (sizeof(fa_args) / 8)
_Static_assert(sizeof(fa_args) % 8 == 0, "arguments are compared by words");

typedef struct last {
    fa_repeat repeat;
    fa_span span[FA_OPERANDS_MAX];
    uint64_t args[WORDS], mask[WORDS]; /* mask 0: an address */
    bool valid;
} last;

/* This thread's, made by its first call; NULL: no memory. */
static last *own(void)
{
    static _Thread_local last *mine;
    return mine ? mine : fa_thread_keep(&mine, sizeof *mine);
}

uint64_t fa_repeat_next(void)
{
    static _Thread_local uint64_t numbers;
    return ++numbers;
}

/* Whether the call names other operands than that one: a feature's come and go, and bring what else is looked at. */
static bool names_others(const last *l, const fa_args *args)
{
    const fa_operation *op = l->repeat.call.op;
    const uint64_t *word = (const void *)args;
    for (int i = 0; i < l->repeat.call.operands; i++) {
        size_t at = op->operand[i].at / 8;
        if (op->operand[i].optional && !word[at] != !l->args[at])
            return true;
    }
    return false;
}

static bool differs(const last *l, const fa_args *args)
{
    const uint64_t *word = (const void *)args;
    uint64_t any = 0;
    for (size_t i = 0; i < WORDS; i++)
        any |= (word[i] ^ l->args[i]) & l->mask[i];
    return any != 0 || (l->repeat.call.problem.features && names_others(l, args));
}

static void remember(last *l, const fa_args *args)
{
    const fa_operation *op = l->repeat.call.op;
    memcpy(l->args, args, sizeof l->args);
    memset(l->mask, 0xff, sizeof l->mask);
    for (int i = 0; i < l->repeat.call.operands; i++)
        l->mask[op->operand[i].at / 8] = 0;
    l->mask[offsetof(fa_args, workspace) / 8] = 0;
    l->repeat.key = fa_plan_key_of(&l->repeat.call.problem);
    l->repeat.kernel = 0;
    l->valid = true;
}

/* The addresses of a call whose all else is as before. */
static fa_status place(last *l, const fa_args *args)
{
    fa_call *c = &l->repeat.call;
    fa_status st = FA_OK;
    for (int i = 0; st == FA_OK && i < c->operands; i++) {
        uint64_t at = (uint64_t)(uintptr_t)fa_operand_address(&c->op->operand[i], args);
        c->values.operand[i].address = at;
        st = fa_span_place(&l->span[i], at);
    }
    if (st == FA_OK)
        st = fa_spans_apart(l->span, c->operands);
    c->values.workspace = (uint64_t)(uintptr_t)args->workspace;
    c->problem.features &= ~FA_FEATURE_NO_WORKSPACE; /* that launch settled it for its own address */
    l->repeat.key.features = c->problem.features;
    c->problem.align = l->repeat.key.align = fa_check_align(c, l->span);
    return st;
}

fa_status fa_repeat_check(fa_repeat **out, const fa_args *args)
{
    last *l = own();
    if (!l)
        return fa_fail(FA_NOMEM, "launch: %zu bytes of host memory for this thread", sizeof *l);
    *out = &l->repeat;
    if (l->valid && args && args->size == sizeof *args && !differs(l, args))
        return place(l, args);
    l->valid = false;
    fa_status st = fa_check_spans(&l->repeat.call, args, true, l->span);
    fa_holds(st != FA_OK || args);
    if (st == FA_OK && !l->repeat.call.empty && args->size == sizeof *args)
        remember(l, args);
    else if (st == FA_OK)
        l->repeat.key = fa_plan_key_of(&l->repeat.call.problem), l->repeat.kernel = 0;
    return st;
}
