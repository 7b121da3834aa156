/* scores: the operands of a score program out of .npy files. */
#include "attend.h"
#include "gen/error.h"
#include "gen/score/shape.h"
#include "verify/operands/tensors.h"
#include <string.h>

static double element(void *user, size_t i)
{
    const cli_npy *a = user;
    return cli_npy_has_integers(a) ? (double)cli_npy_integer(a, i) : (double)cli_npy_at(a, i);
}

static fa_status check_shape(const fa_score_operands *o, int k, const cli_npy *a, const char *file)
{
    char shape[640];
    const fa_score_operand *operand = &o->program->ir.operand[k];
    bool same = a->n == operand->rank, any = false;
    fa_score_shape_print(shape, sizeof shape, operand);
    for (int i = 0; i < operand->rank; i++) {
        same = same && a->dim[i] == o->value[k].extent[i];
        any = any || operand->extent[i].any;
    }
    if (any)
        return fa_fail(FA_UNSUPPORTED, "--operand %s: an extent of \"%s\" is said by launches alone; accepted: shapes without ?",
                       operand->name, shape);
    if (!same)
        return fa_fail(FA_INVALID, "--operand %s: %s has %d dimensions, the first of them %lld; accepted: \"%s\", the first %d",
                       operand->name, file, a->n, a->n ? (long long)a->dim[0] : 0, shape, o->value[k].extent[0]);
    if (operand->type != FA_SCORE_F32 && !cli_npy_has_integers(a))
        return fa_fail(FA_INVALID, "--operand %s: %s holds %s; accepted: int32, int64", operand->name, file, cli_npy_type(a));
    return FA_OK;
}

/* One "NAME=FILE" of n letters. */
static fa_status put(fa_score_operands *o, const char *text, size_t n, bool given[FA_SCORE_OPERANDS_MAX])
{
    char file[4096];
    const char *equals = memchr(text, '=', n);
    size_t name = equals ? (size_t)(equals - text) : n;
    int k = 0;
    while (k < o->program->ir.operands && (o->program->ir.operand[k].scalar || strlen(o->program->ir.operand[k].name) != name ||
                                           memcmp(o->program->ir.operand[k].name, text, name)))
        k++;
    if (!equals || k == o->program->ir.operands || n - name - 1 >= sizeof file)
        return fa_fail(FA_INVALID, "--operand has \"%.*s\"; accepted: NAME=FILE, of an array of the score program", (int)(n < 80 ? n : 80),
                       text);
    cli_npy a = { .file = NULL };
    memcpy(file, equals + 1, n - name - 1);
    file[n - name - 1] = 0;
    fa_status st = cli_npy_read(&a, file);
    if (st == FA_OK)
        st = check_shape(o, k, &a, file);
    if (st == FA_OK)
        st = fa_score_operands_fill(o, k, element, &a);
    given[k] = true;
    cli_npy_free(&a);
    return st;
}

fa_status attend_scores(fa_tensors *t, const attend_args *a)
{
    const fa_program *program;
    fa_score_scalars scalars;
    bool given[FA_SCORE_OPERANDS_MAX] = { false };
    fa_status st = cli_score_read(&a->score, &program, &scalars);
    if (st == FA_OK && !program && a->operand)
        return fa_fail(FA_INVALID, "--operand without a score program; accepted: with --score or --score-file");
    if (st != FA_OK || !program)
        return st;
    fa_score_operands_give(&t->score, &scalars);
    for (const char *s = a->operand; st == FA_OK && s && *s;) {
        size_t n = strcspn(s, ",");
        st = put(&t->score, s, n, given);
        s += n + (s[n] == ',');
    }
    for (int k = 0; st == FA_OK && k < program->ir.operands; k++)
        if (!program->ir.operand[k].scalar && !given[k])
            st = fa_fail(FA_INVALID, "--operand: the array %s of the score program is not given; accepted: %s=FILE",
                         program->ir.operand[k].name, program->ir.operand[k].name);
    return st;
}
