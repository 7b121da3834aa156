/* scores: a list that grows at its head alone. */
#include "scores.h"
#include "gen/error.h"
#include "runtime/context/context.h"
#include "runtime/context/fork.h"
#include <stdlib.h>
#include <string.h>

#define SIZE_MOST 4096 /* bytes of a struct of any header */

struct fa_score {
    fa_score *next;
    fa_context *ctx;
    fa_program *program;
    atomic_int references; /* 0: destroyed */
};

void fa_scores_open(fa_scores *s)
{
    pthread_mutex_init(&s->mutex, NULL);
    atomic_init(&s->first, NULL);
}

void fa_scores_close(fa_scores *s)
{
    for (fa_score *one = atomic_load(&s->first), *next; one; one = next) {
        next = one->next;
        fa_program_free(one->program);
        free(one);
    }
    pthread_mutex_destroy(&s->mutex);
}

/* NULL: it is none of the context's, or was destroyed. */
static const fa_program *program_of(const fa_scores *s, const fa_score *score)
{
    for (const fa_score *one = atomic_load_explicit(&s->first, memory_order_acquire); one; one = one->next)
        if (one == score)
            return atomic_load(&one->references) > 0 ? one->program : NULL;
    return NULL;
}

static fa_status none(const char *what)
{
    return fa_fail(FA_INVALID,
                   "%s: score is no program of this context; accepted: what fa_score_create() made with it and fa_score_destroy() "
                   "has not undone",
                   what);
}

fa_status fa_scores_check(const fa_context *ctx, const fa_args *args)
{
    bool has = args && args->size >= offsetof(fa_args, score) + sizeof args->score && args->size <= SIZE_MOST && args->score;
    return !has || program_of(ctx->scores, args->score) ? FA_OK : none("args");
}

/* Equal to callers: the same nodes, names of operands and values of scalars where a launch gives none. */
static bool same(const fa_program *a, const fa_program *b)
{
    bool equal = fa_program_equal(a, b);
    for (int k = 0; equal && k < a->ir.operands; k++)
        equal = !strcmp(a->ir.operand[k].name, b->ir.operand[k].name) && a->ir.operand[k].value == b->ir.operand[k].value;
    return equal;
}

/* Takes the program, or frees it. */
static fa_status keep(fa_context *ctx, fa_program *program, fa_score **out)
{
    fa_scores *s = ctx->scores;
    fa_score *one;
    pthread_mutex_lock(&s->mutex);
    for (one = atomic_load(&s->first); one && !same(one->program, program); one = one->next)
        ;
    fa_score *fresh = one ? NULL : calloc(1, sizeof *fresh);
    if (fresh) {
        fresh->ctx = ctx;
        fresh->program = program;
        fresh->next = atomic_load(&s->first);
        atomic_store_explicit(&s->first, fresh, memory_order_release);
        one = fresh;
    } else
        fa_program_free(program);
    if (one)
        atomic_fetch_add(&one->references, 1);
    pthread_mutex_unlock(&s->mutex);
    *out = one;
    return one ? FA_OK : fa_fail(FA_NOMEM, "score: %zu bytes of host memory", sizeof *one);
}

fa_status fa_score_create(fa_context *ctx, const char *text, fa_score **out)
{
    fa_program *program;
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
    st = fa_program_read(&program, "score", text, strnlen(text, FA_SCORE_TEXT_MAX + 1));
    if (st == FA_OK)
        st = keep(ctx, program, out);
    return fa_message_settle(&before, st);
}

void fa_score_destroy(fa_score *score)
{
    if (!score || score->ctx->forks != atomic_load(&fa_forks))
        return;
    pthread_mutex_lock(&score->ctx->scores->mutex);
    if (atomic_load(&score->references) > 0)
        atomic_fetch_sub(&score->references, 1);
    pthread_mutex_unlock(&score->ctx->scores->mutex);
}

fa_status fa_score_id(fa_context *ctx, const fa_score *score, uint64_t *id)
{
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK)
        return st;
    const fa_program *program = program_of(ctx->scores, score);
    if (!program)
        return none("id");
    if (!id)
        return fa_fail(FA_INVALID, "id: NULL; accepted: where to write two words");
    id[0] = program->id.lo;
    id[1] = program->id.hi;
    return FA_OK;
}
