/* scores: a list that grows at its head alone. */
#include "scores.h"
#include "gen/error.h"
#include "gen/score/known.h"
#include "gen/score/shape.h"
#include "runtime/context/context.h"
#include "runtime/context/fork.h"
#include <stdlib.h>
#include <string.h>

#define SIZE_MOST 4096 /* bytes of a struct of any header */

static _Atomic(fa_score *) all;
static atomic_uint_least64_t numbers;

void fa_scores_open(fa_scores *s)
{
    pthread_mutex_init(&s->mutex, NULL);
}

void fa_scores_close(fa_context *ctx)
{
    for (fa_score *one = atomic_load(&all); one; one = one->next)
        if (atomic_load(&one->ctx) == ctx) {
            atomic_store(&one->references, 0);
            atomic_store(&one->ctx, NULL);
        }
    pthread_mutex_destroy(&ctx->scores->mutex);
}

/* Whether it is an object that was made and not destroyed; ctx NULL: of any context. */
static bool lives(const fa_context *ctx, const fa_score *score)
{
    const fa_score *one = atomic_load_explicit(&all, memory_order_acquire);
    while (one && one != score)
        one = one->next;
    const fa_context *of = one ? atomic_load(&one->ctx) : NULL;
    return of && (!ctx || of == ctx) && atomic_load(&one->references) > 0;
}

static fa_status none(const char *what, const char *of)
{
    return fa_fail(FA_INVALID,
                   "%s: score is no program of %s; accepted: what fa_score_create() made with it and fa_score_destroy() has not undone",
                   what, of);
}

static const fa_score *named(const fa_args *args)
{
    bool has = args && args->size >= offsetof(fa_args, score) + sizeof args->score && args->size <= SIZE_MOST;
    return has ? args->score : NULL;
}

fa_status fa_scores_find(const fa_score **out, const fa_args *args)
{
    *out = named(args);
    return !*out || lives(NULL, *out) ? FA_OK : none("args", "a context of this process");
}

fa_status fa_scores_check(const fa_context *ctx, const fa_args *args)
{
    const fa_score *score = named(args);
    return !score || lives(ctx, score) ? FA_OK : none("args", "this context");
}

/* Equal to callers: the same nodes, names of operands and values of scalars where a launch gives none. */
static bool same(const fa_score *a, const fa_program *program, const fa_score_operand operand[FA_SCORE_OPERANDS_MAX])
{
    bool equal = a->program == program;
    for (int k = 0; equal && k < program->ir.operands; k++)
        equal = !strcmp(a->operand[k].name, operand[k].name) && a->operand[k].value == operand[k].value;
    return equal;
}

/* One that no context has, or a fresh one; NULL: no memory. Until it has a reference it is none to readers. */
static fa_score *claim(fa_context *ctx)
{
    for (fa_score *one = atomic_load(&all); one; one = one->next) {
        fa_context *nobody = NULL;
        if (atomic_compare_exchange_strong(&one->ctx, &nobody, ctx))
            return one;
    }
    fa_score *fresh = calloc(1, sizeof *fresh);
    if (fresh) {
        atomic_init(&fresh->ctx, ctx);
        fresh->next = atomic_load(&all);
        while (!atomic_compare_exchange_weak(&all, &fresh->next, fresh))
            ;
    }
    return fresh;
}

/* Under the context's mutex. */
static fa_score *object_of(fa_context *ctx, const fa_program *program, const fa_score_operand operand[FA_SCORE_OPERANDS_MAX])
{
    for (fa_score *one = atomic_load(&all); one; one = one->next)
        if (atomic_load(&one->ctx) == ctx && same(one, program, operand))
            return one;
    fa_score *one = claim(ctx);
    if (one) {
        one->program = program;
        one->number = atomic_fetch_add(&numbers, 1) + 1;
        memcpy(one->operand, operand, sizeof one->operand);
        for (int k = 0; k < program->ir.operands; k++)
            fa_score_shape_print(one->shape[k], sizeof one->shape[k], &operand[k]);
    }
    return one;
}

static fa_status keep(fa_context *ctx, const fa_program *program, const fa_score_operand operand[FA_SCORE_OPERANDS_MAX], fa_score **out)
{
    pthread_mutex_lock(&ctx->scores->mutex);
    fa_score *one = object_of(ctx, program, operand);
    if (one)
        atomic_fetch_add(&one->references, 1);
    pthread_mutex_unlock(&ctx->scores->mutex);
    *out = one;
    return one ? FA_OK : fa_fail(FA_NOMEM, "score: %zu bytes of host memory", sizeof *one);
}

fa_status fa_score_create(fa_context *ctx, const char *text, fa_score **out)
{
    fa_program *read;
    const fa_program *program;
    fa_score_operand operand[FA_SCORE_OPERANDS_MAX];
    fa_message before;
    if (!out)
        return fa_fail(FA_INVALID, "out: NULL; accepted: the address of a fa_score pointer");
    *out = NULL;
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK)
        return st;
    if (!text)
        return fa_fail(FA_INVALID, "text: NULL; accepted: a score program");
    fa_message_keep(&before);
    st = fa_program_read(&read, "score", text, strnlen(text, FA_SCORE_TEXT_MAX + 1));
    if (st == FA_OK) {
        memcpy(operand, read->ir.operand, sizeof operand);
        st = fa_score_known_add(&program, read);
    }
    if (st == FA_OK)
        st = keep(ctx, program, operand, out);
    return fa_message_settle(&before, st);
}

void fa_score_destroy(fa_score *score)
{
    fa_context *ctx = score ? atomic_load(&score->ctx) : NULL;
    if (!ctx || ctx->forks != atomic_load(&fa_forks))
        return;
    pthread_mutex_lock(&ctx->scores->mutex);
    if (atomic_load(&score->references) > 0)
        atomic_fetch_sub(&score->references, 1);
    pthread_mutex_unlock(&ctx->scores->mutex);
}

fa_status fa_score_id(fa_context *ctx, const fa_score *score, uint64_t *id)
{
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK)
        return st;
    if (!score || !lives(ctx, score))
        return none("id", "this context");
    if (!id)
        return fa_fail(FA_INVALID, "id: NULL; accepted: where to write two words");
    id[0] = score->program->id.lo;
    id[1] = score->program->id.hi;
    return FA_OK;
}

fa_status fa_score_operand_at(fa_context *ctx, const fa_score *score, int32_t i, fa_score_operand_info *out)
{
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK)
        return st;
    if (!out || out->size < sizeof *out || out->size > SIZE_MOST)
        return fa_fail(FA_INVALID, "out: %s; accepted: a fa_score_operand_info with its size set", out ? "of another size" : "NULL");
    if (!score || !lives(ctx, score))
        return none("operand", "this context");
    int32_t n = score->program->ir.operands;
    *out = (fa_score_operand_info){ .size = out->size, .count = n };
    if (i < 0 || i >= n)
        return fa_fail(FA_INVALID, "i: %d; accepted: from 0, below %d, the program's operands", i, n);
    const fa_score_operand *o = &score->operand[i];
    int32_t scalar = o->type == FA_SCORE_I32 ? FA_OPERAND_INTEGER : FA_OPERAND_NUMBER;
    out->kind = o->scalar ? scalar : FA_OPERAND_F32 + (int32_t)o->element;
    out->rank = o->rank;
    out->name = o->name;
    out->shape = score->shape[i];
    out->value = o->value;
    out->least = o->least;
    out->most = o->most;
    return FA_OK;
}
