/* repeat: arguments compared with those of before as words, addresses by whether they are NULL. */
#include "repeat.h"
#include "gen/error.h"
#include "gen/thread.h"
#include "runtime/args/scores.h"
#include <string.h>

#define WORDS (sizeof(fa_args) / 8)
#define HOST_BYTES 2048 /* of what all host lists of a call lead to; a call with more is no repeat */
_Static_assert(sizeof(fa_args) % 8 == 0, "arguments are compared by words");
_Static_assert(offsetof(fa_args, workspace) % 8 == 0 && FA_OPERANDS_MAX < 64, "a word, and a bit of a word, for each address");

typedef struct last {
    fa_repeat repeat;
    fa_span span[FA_SPANS_MAX];
    fa_apart apart;                    /* of these */
    uint64_t args[WORDS], mask[WORDS]; /* mask 0: an address */
    uint64_t given;                    /* a bit for each address that is not NULL */
    uint64_t score;                    /* the number of the score program's object, 0: there is none */
    unsigned char host[HOST_BYTES];    /* what the host lists led to, one after the other */
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

/* Which operands have an address, those too that the class does not have, and the workspace. */
static uint64_t given(const fa_operation *op, const fa_args *args)
{
    uint64_t bits = args->workspace != NULL;
    for (int i = 0; i < op->n; i++)
        bits = bits << 1 | (fa_operand_address(&op->operand[i], args) != NULL);
    return bits;
}

/* Where a host list of the arguments lies, and its bytes. */
static const void *host_list(const fa_host_list *h, const fa_args *args, size_t *bytes)
{
    const void *at = *(void *const *)((const char *)args + h->at);
    int32_t n = *(const int32_t *)(const void *)((const char *)args + h->count_at);
    *bytes = at && n > 0 ? (size_t)n * h->bytes : 0;
    return at;
}

/* The lists' addresses and counts are equal already. */
static bool lists_differ(const last *l, const fa_operation *op, const fa_args *args)
{
    size_t at = 0, bytes;
    for (int i = 0; i < op->lists; i++, at += bytes) {
        const void *list = host_list(&op->list[i], args, &bytes);
        if (bytes && memcmp(l->host + at, list, bytes) != 0)
            return true;
    }
    return false;
}

/* The address of an object stays readable, and may be another program's by now. */
static uint64_t score_number(const fa_args *args)
{
    return args->score ? args->score->number : 0;
}

static bool differs(const last *l, const fa_args *args)
{
    const fa_operation *op = l->repeat.call.op;
    const uint64_t *word = (const void *)args;
    uint64_t any = 0;
    for (size_t i = 0; i < WORDS; i++)
        any |= (word[i] ^ l->args[i]) & l->mask[i];
    return any != 0 || given(op, args) != l->given || !fa_check_within(args) || score_number(args) != l->score ||
           (op->lists && lists_differ(l, op, args));
}

/* False: they lead to more than there is room for. */
static bool remember_lists(last *l, const fa_operation *op, const fa_args *args)
{
    size_t at = 0, bytes;
    for (int i = 0; i < op->lists; i++, at += bytes) {
        const void *list = host_list(&op->list[i], args, &bytes);
        if (bytes > sizeof l->host - at)
            return false;
        if (bytes)
            memcpy(l->host + at, list, bytes);
    }
    return true;
}

static void remember(last *l, const fa_args *args)
{
    const fa_operation *op = l->repeat.call.op;
    memcpy(l->args, args, sizeof l->args);
    memset(l->mask, 0xff, sizeof l->mask);
    for (int i = 0; i < op->n; i++)
        l->mask[op->operand[i].at / 8] = 0;
    l->mask[offsetof(fa_args, workspace) / 8] = 0;
    l->given = given(op, args);
    memset(&l->apart, 0, sizeof l->apart);
    l->score = score_number(args);
    bool ours = !args->score_value_count || args->score_values->size == sizeof *args->score_values; /* all of each is compared */
    l->valid = remember_lists(l, op, args) && ours;
}

/* The addresses of a call whose all else is as before. */
static fa_status place(last *l, const fa_args *args)
{
    fa_call *c = &l->repeat.call;
    fa_status st = FA_OK;
    uint64_t has = c->has;
    for (int i, k = 0; st == FA_OK && (i = fa_operands_next(&has)) >= 0; k++) {
        uint64_t at = (uint64_t)(uintptr_t)fa_operand_address(&c->op->operand[i], args);
        c->values.operand[i].address = at;
        st = fa_span_place(&l->span[k], at);
    }
    fa_check_place_within(c);
    c->values.workspace = (uint64_t)(uintptr_t)args->workspace;
    if (st == FA_OK)
        st = fa_span_place(&l->span[c->operands], c->values.workspace);
    if (st == FA_OK)
        st = fa_spans_apart(l->span, c->operands + 1 + c->arrays, &l->apart);
    c->problem.features &= ~FA_FEATURE_NO_WORKSPACE; /* that launch decided it for its own address */
    l->repeat.key.features = c->problem.features;
    fa_check_align(c, l->span);
    l->repeat.key.align = c->problem.align;
    l->repeat.key.kv_align = c->problem.kv_align;
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
    if (st != FA_OK)
        return st;
    l->repeat.key = fa_plan_key_of(&l->repeat.call.problem);
    l->repeat.kernel = 0;
    if (!l->repeat.call.empty && args->size == sizeof *args)
        remember(l, args);
    return FA_OK;
}
