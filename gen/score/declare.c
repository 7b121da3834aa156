/* declare: names are defined once, scalars lie within their bounds. */
#include "declare.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const fa_score_global *fa_score_global_find(const fa_score_globals *g, const fa_score_token *title)
{
    for (int i = 0; i < g->n; i++)
        if (g->global[i].token.n == title->n && !memcmp(g->global[i].token.s, title->s, (size_t)title->n))
            return &g->global[i];
    return NULL;
}

fa_status fa_score_global_add(fa_score_globals *g, const char *name, const fa_score_token *title, fa_score_global_kind kind, int32_t of)
{
    const fa_score_name *own = fa_score_name_find(title->s, title->n);
    const fa_score_global *before = fa_score_global_find(g, title);
    if (own && own->kind == FA_SCORE_NAME_ROOT && kind != FA_SCORE_GLOBAL_FUNCTION)
        return fa_score_fail(name, title->at, "%s is no function; accepted: score(s, b, h, i, j), mask(b, h, i, j), sink(b, h, i)",
                             own->word);
    if (own && own->kind != FA_SCORE_NAME_ROOT)
        return fa_score_fail(name, title->at, "%s is a name of the language; accepted: another name", own->word);
    if (before)
        return fa_score_fail(name, title->at, "%.*s is defined a second time, after line %d; accepted: once", title->n, title->s,
                             before->token.at.line);
    if (g->n == FA_SCORE_GLOBALS_MAX)
        return fa_score_fail(name, title->at, "more than %d names at the top of the text; accepted: up to that", FA_SCORE_GLOBALS_MAX);
    g->global[g->n++] = (fa_score_global){ *title, kind, of };
    return FA_OK;
}

void fa_score_declare_begin(fa_score_operand *o, const fa_score_token *title)
{
    memset(o, 0, sizeof *o);
    snprintf(o->name, sizeof o->name, "%.*s", title->n, title->s);
}

fa_status fa_score_declare_array(fa_score_operand *o, const char *name, fa_score_element element, const fa_score_token *shape)
{
    o->element = element;
    o->type = fa_score_element_type(element);
    return fa_score_shape_read(o, name, shape);
}

static bool is(const fa_score_token *t, const char *word)
{
    return t->word == FA_SCORE_WORD_STRING && (size_t)t->n == strlen(word) && !memcmp(t->s, word, (size_t)t->n);
}

fa_status fa_score_declare_scalar(fa_score_operand *o, const char *name, const fa_score_token *at, const fa_score_token *type,
                                  const double *v, int n)
{
    bool whole = type && is(type, "int");
    if (type && !whole && !is(type, "float"))
        return fa_score_fail(name, type->at, "the type of a scalar is \"%.*s\"; accepted: \"int\", \"float\"", type->n < 40 ? type->n : 40,
                             type->s);
    double most = whole ? FA_SCORE_INT_MAX : FLT_MAX;
    o->scalar = true;
    o->type = whole ? FA_SCORE_I32 : FA_SCORE_F32;
    o->value = v[0];
    o->least = n == 3 ? v[1] : -most;
    o->most = n == 3 ? v[2] : most;
    for (int k = 0; k < n; k++)
        if (!(v[k] >= -most && v[k] <= most) || (whole && v[k] != floor(v[k])))
            return fa_score_fail(name, at->at, "the scalar %s has %.10g; accepted: %s", o->name, v[k],
                                 whole ? "integers from -2^30 to 2^30" : "numbers that fp32 holds");
    if (!(o->least <= o->value && o->value <= o->most))
        return fa_score_fail(name, at->at, "the scalar %s is %.10g with bounds %.10g to %.10g; accepted: a value between them", o->name,
                             o->value, o->least, o->most);
    return FA_OK;
}
