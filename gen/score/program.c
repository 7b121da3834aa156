/* program: from text to IR, and its canonical text. */
#include "program.h"
#include "gen/error.h"
#include "gen/text.h"
#include "lower.h"
#include "names.h"
#include "shape.h"
#include "tree.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FORMAT 1 /* of canonical texts: another meaning of one is another number */

/* Bits, so that no locale and no rounding is in it. */
static void add_number(fa_text *t, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    fa_text_fmt(t, " %016llx", (unsigned long long)bits);
}

static void add_operand(fa_text *t, const fa_score_operand *o)
{
    static const char *const types[] = { "bool", "i32", "f32" };
    char shape[640];
    if (o->scalar) {
        fa_text_fmt(t, "scalar %s", types[o->type]);
        add_number(t, o->least);
        add_number(t, o->most);
    } else {
        fa_score_shape_print(shape, sizeof shape, o);
        fa_text_fmt(t, "%s \"%s\"", fa_score_element_word(o->element), shape);
    }
    fa_text_str(t, "\n");
}

static void add_node(fa_text *t, const fa_score_node *node)
{
    static const char types[] = { 'b', 'i', 'f' };
    fa_text_fmt(t, "%c %s", types[node->type], fa_score_op_word(node->op));
    if (node->op == FA_SCORE_CONST)
        add_number(t, node->value);
    if (node->operand >= 0)
        fa_text_fmt(t, " %d", node->operand);
    for (int k = 0; k < node->n; k++)
        fa_text_fmt(t, " %d", node->arg[k]);
    fa_text_str(t, "\n");
}

static fa_status canonical(fa_program *p)
{
    fa_text t = { 0 };
    fa_text_fmt(&t, "fagen score %d\n", FORMAT);
    for (int k = 0; k < p->ir.operands; k++)
        add_operand(&t, &p->ir.operand[k]);
    for (int i = 0; i < p->ir.n; i++)
        add_node(&t, &p->ir.node[i]);
    fa_text_fmt(&t, "score %d mask %d sink %d\n", p->ir.root[0], p->ir.root[1], p->ir.root[2]);
    if (t.oom) {
        fa_text_free(&t);
        return fa_fail(FA_NOMEM, "score: host memory");
    }
    XXH128_hash_t h = XXH3_128bits(t.s, t.n);
    p->id = (fa_program_id){ h.low64, h.high64 };
    p->canonical = t.s;
    return FA_OK;
}

/* What is not ASCII stands in comments alone: as question marks the text goes into any file. */
static fa_status keep_source(fa_program *p, const char *name, const char *text, size_t n)
{
    p->source = strndup(text, n);
    for (char *s = p->source; s && *s; s++)
        *s = (unsigned char)*s < 0x80 ? *s : '?';
    return p->source ? FA_OK : fa_fail(FA_NOMEM, "%s: %zu bytes of host memory", name, n);
}

fa_status fa_program_read(fa_program **out, const char *name, const char *text, size_t n)
{
    fa_score_tree tree;
    fa_program *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return fa_fail(FA_NOMEM, "%s: %zu bytes of host memory", name, sizeof *p);
    fa_status st = fa_score_tree_read(&tree, name, text, n);
    if (st == FA_OK)
        st = fa_score_lower(&p->ir, &tree);
    fa_score_tree_free(&tree);
    if (st == FA_OK)
        st = canonical(p);
    if (st == FA_OK && !fa_score_planes_of(&p->planes, &p->ir))
        st = fa_fail(FA_NOMEM, "%s: host memory", name);
    snprintf(p->name, sizeof p->name, "%s", name);
    if (st == FA_OK)
        st = keep_source(p, name, text, n);
    if (st != FA_OK) {
        fa_program_free(p);
        return st;
    }
    *out = p;
    return FA_OK;
}

fa_score_scalars fa_score_scalars_of(const fa_program *program)
{
    fa_score_scalars s;
    for (int k = 0; k < FA_SCORE_OPERANDS_MAX; k++)
        s.of[k] = program && k < program->ir.operands ? program->ir.operand[k].value : 0;
    return s;
}

void fa_program_free(fa_program *p)
{
    if (p) {
        free(p->source);
        free(p->canonical);
    }
    free(p);
}

bool fa_program_equal(const fa_program *a, const fa_program *b)
{
    return a->id.lo == b->id.lo && a->id.hi == b->id.hi && !strcmp(a->canonical, b->canonical);
}
