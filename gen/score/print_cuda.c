/* print_cuda: a row for each operation; integers divide as in Lua, by shifts and masks where that is the same. */
#include "print_cuda.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* %1 and on: arguments. */
static const char *const forms[FA_SCORE_OPS] = {
    [FA_SCORE_ADD] = "(%1 + %2)",
    [FA_SCORE_SUB] = "(%1 - %2)",
    [FA_SCORE_MUL] = "(%1 * %2)",
    [FA_SCORE_NEG] = "(-%1)",
    [FA_SCORE_DIV] = "(%1 / %2)",
    [FA_SCORE_TOFLOAT] = "(float)%1",
    [FA_SCORE_EXP] = "expf(%1)",
    [FA_SCORE_EXP2] = "exp2f(%1)",
    [FA_SCORE_LOG] = "logf(%1)",
    [FA_SCORE_LOG2] = "log2f(%1)",
    [FA_SCORE_TANH] = "score_tanh(%1)",
    [FA_SCORE_TANH_EXACT] = "score_tanh_exact(%1)",
    [FA_SCORE_SQRT] = "sqrtf(%1)",
    [FA_SCORE_RSQRT] = "rsqrtf(%1)",
    [FA_SCORE_SIGMOID] = "(1.f / (1.f + expf(-%1)))",
    [FA_SCORE_BAND] = "(%1 & %2)",
    [FA_SCORE_BOR] = "(%1 | %2)",
    [FA_SCORE_BXOR] = "(%1 ^ %2)",
    [FA_SCORE_SHR] = "(%1 >> %2)",
    [FA_SCORE_LT] = "(%1 < %2)",
    [FA_SCORE_LE] = "(%1 <= %2)",
    [FA_SCORE_EQ] = "(%1 == %2)",
    [FA_SCORE_AND] = "(%1 & %2)", /* && would make what follows, a lookup, conditional */
    [FA_SCORE_OR] = "(%1 | %2)",
    [FA_SCORE_NOT] = "(!%1)",
    [FA_SCORE_SELECT] = "(%1 ? %2 : %3)",
    [FA_SCORE_FLOOR] = "(int)floorf(%1)",
};

static void print_number(fa_text *out, int type, double v)
{
    char text[48];
    if (type == FA_SCORE_BOOL)
        fa_text_str(out, v != 0 ? "true" : "false");
    else if (type == FA_SCORE_I32 && v == INT32_MIN)
        fa_text_str(out, "(-2147483647 - 1)");
    else if (type == FA_SCORE_I32)
        fa_text_fmt(out, v < 0 ? "(%.0f)" : "%.0f", v);
    else if (isnan((float)v))
        fa_text_str(out, "__int_as_float(0x7fffffff)");
    else if (isinf((float)v))
        fa_text_str(out, v > 0 ? "__int_as_float(0x7f800000)" : "__int_as_float(0xff800000)");
    else {
        snprintf(text, sizeof text, "%.9g", (double)(float)v);
        bool whole = true;
        for (char *c = text; *c; c++) {
            if (!strchr("0123456789+-e", *c))
                *c = '.'; /* of any locale */
            whole = whole && *c != '.' && *c != 'e';
        }
        fa_text_fmt(out, v < 0 ? "(%s%s)" : "%s%s", text, whole ? ".f" : "f");
    }
}

static const char *leaf_word(const fa_score_words *w, int op)
{
    switch (op) {
    case FA_SCORE_B:
        return w->b;
    case FA_SCORE_H:
        return w->h;
    case FA_SCORE_I:
        return w->i;
    case FA_SCORE_J:
        return w->j;
    case FA_SCORE_S:
        return w->s;
    case FA_SCORE_OFF:
        return w->off;
    case FA_SCORE_SQ:
        return w->sq;
    case FA_SCORE_SK:
        return w->sk;
    default:
        return w->group;
    }
}

/* Whether an index is inside its extent by what it is: a query of sq, a key/value head of hkv. */
/* A sum of multiples of i, j, sq, sk, and a number. */
typedef struct sum {
    int64_t i, j, sq, sk, more;
} sum;

/* steps: terms that are looked at, at most. */
static bool sum_of(const fa_score_ir *ir, int node, int64_t times, sum *s, int *steps)
{
    const fa_score_node *a = &ir->node[node];
    if (--*steps < 0)
        return false;
    switch (a->op) {
    case FA_SCORE_I:
        s->i += times;
        return true;
    case FA_SCORE_J:
        s->j += times;
        return true;
    case FA_SCORE_SQ:
        s->sq += times;
        return true;
    case FA_SCORE_SK:
        s->sk += times;
        return true;
    case FA_SCORE_CONST:
        s->more += times * (int64_t)a->value;
        return a->type == FA_SCORE_I32;
    case FA_SCORE_ADD:
        return sum_of(ir, a->arg[0], times, s, steps) && sum_of(ir, a->arg[1], times, s, steps);
    case FA_SCORE_SUB:
        return sum_of(ir, a->arg[0], times, s, steps) && sum_of(ir, a->arg[1], -times, s, steps);
    case FA_SCORE_NEG:
        return sum_of(ir, a->arg[0], -times, s, steps);
    default:
        return false;
    }
}

/* Whether the sum is at least 0 for all queries and keys of all lengths from 1 on. */
static bool never_below_0(const sum *s)
{
    int64_t sq = s->sq + (s->i < 0 ? s->i : 0), sk = s->sk + (s->j < 0 ? s->j : 0), more = s->more;
    more -= (s->i < 0 ? s->i : 0) + (s->j < 0 ? s->j : 0); /* i is sq - 1 at most */
    return sq >= 0 && sk >= 0 && sq + sk + more >= 0;
}

/* Of an index that is such a sum, and an extent that is one: j - i + sq - 1 of sq+sk-1. Extents are of the longest sequences. */
static bool sum_inside(const fa_score_ir *ir, int index, const fa_score_extent *e)
{
    int steps = 64;
    sum low = { 0 }, high = { .sq = e->times[FA_SCORE_LENGTH_SQ], .sk = e->times[FA_SCORE_LENGTH_SK], .more = (int64_t)e->more - 1 };
    for (int i = 0; i < FA_SCORE_LENGTHS; i++)
        if (e->times[i] < 0 || e->divisor[i] > 1 || (e->times[i] != 0 && i != FA_SCORE_LENGTH_SQ && i != FA_SCORE_LENGTH_SK))
            return false;
    return ir->node[index].type == FA_SCORE_I32 && sum_of(ir, index, 1, &low, &steps) && sum_of(ir, index, -1, &high, &steps) &&
           never_below_0(&low) && never_below_0(&high);
}

bool fa_score_index_bounded(const fa_score_ir *ir, const fa_score_node *lookup, int k)
{
    const fa_score_extent *e = &ir->operand[lookup->operand].extent[k];
    fa_score_range r = ir->node[lookup->arg[k]].range;
    bool number = !e->any;
    for (int i = 0; i < FA_SCORE_LENGTHS; i++)
        number = number && e->times[i] == 0;
    return number && r.lo >= 0 && r.hi < e->more;
}

bool fa_score_index_inside(const fa_score_ir *ir, const fa_score_node *lookup, int k)
{
    static const int length[] = { [FA_SCORE_B] = FA_SCORE_LENGTH_B,
                                  [FA_SCORE_H] = FA_SCORE_LENGTH_HQ,
                                  [FA_SCORE_I] = FA_SCORE_LENGTH_SQ,
                                  [FA_SCORE_J] = FA_SCORE_LENGTH_SK };
    const fa_score_node *x = &ir->node[lookup->arg[k]];
    const fa_score_extent *e = &ir->operand[lookup->operand].extent[k];
    if (e->any)
        return false;
    if (sum_inside(ir, lookup->arg[k], e))
        return true;
    int divisor = 1;
    if (x->op == FA_SCORE_IDIV && ir->node[x->arg[1]].op == FA_SCORE_CONST) { /* i // 128 of sq/128 */
        divisor = (int)ir->node[x->arg[1]].value;
        x = &ir->node[x->arg[0]];
    }
    int one = x->op >= FA_SCORE_B && x->op <= FA_SCORE_J ? length[x->op] : -1;
    bool alone = true;
    for (int i = 0; i < FA_SCORE_LENGTHS; i++)
        alone = alone && e->times[i] == 0;
    if (alone)
        return fa_score_index_bounded(ir, lookup, k);
    for (int i = 0; i < FA_SCORE_LENGTHS; i++)
        if (i != one && e->times[i] < 0)
            return false;
    return one >= 0 && e->times[one] >= 1 && e->more >= 0 && e->divisor[one] == divisor;
}

static void print_lookup(fa_text *out, const fa_score_printer *p, const fa_score_node *a)
{
    fa_text_fmt(out, "score_read%d(%s", a->operand, p->words.params);
    for (int k = 0; k < a->n; k++) {
        bool in = fa_score_index_inside(p->ir, a, k);
        fa_text_str(out, in ? ", " : ", score_clamp(");
        fa_score_print_value(out, p, a->arg[k]);
        if (!in)
            fa_text_fmt(out, ", %s.score%d_extent[%d])", p->words.params, a->operand, k);
    }
    fa_text_str(out, ")");
}

static bool power_of_two(double v)
{
    return v >= 1 && v <= INT32_MAX && ((int32_t)v & ((int32_t)v - 1)) == 0;
}

/* Of what has no form that is the same for all types. */
static const char *form_of(const fa_score_ir *ir, const fa_score_node *a, char buf[64])
{
    const fa_score_node *x = a->n > 0 ? &ir->node[a->arg[0]] : NULL, *y = a->n > 1 ? &ir->node[a->arg[1]] : NULL;
    bool whole = a->type == FA_SCORE_I32, plain = whole && y && x->range.lo >= 0 && y->range.lo > 0;
    bool power = whole && y && y->op == FA_SCORE_CONST && power_of_two(y->value);
    switch (a->op) {
    case FA_SCORE_IDIV:
        if (power)
            snprintf(buf, 64, "(%%1 >> %d)", (int)log2(y->value));
        return power ? buf : plain ? "(%1 / %2)" : whole ? "score_floor_div(%1, %2)" : "floorf(%1 / %2)";
    case FA_SCORE_MOD:
        if (power)
            snprintf(buf, 64, "(%%1 & %d)", (int)y->value - 1);
        return power ? buf : plain ? "(%1 %% %2)" : whole ? "score_floor_mod(%1, %2)" : "score_mod(%1, %2)";
    case FA_SCORE_MIN:
        return whole ? "min(%1, %2)" : "fminf(%1, %2)";
    case FA_SCORE_MAX:
        return whole ? "max(%1, %2)" : "fmaxf(%1, %2)";
    case FA_SCORE_ABS:
        return whole ? "abs(%1)" : "fabsf(%1)";
    default:
        return forms[a->op];
    }
}

void fa_score_print_expression(fa_text *out, const fa_score_printer *p, int node)
{
    const fa_score_node *a = &p->ir->node[node];
    char buf[64];
    if (a->op == FA_SCORE_CONST)
        print_number(out, a->type, a->value);
    else if (a->op == FA_SCORE_SCALAR)
        fa_text_fmt(out, "%s.score%d", p->words.params, a->operand);
    else if (a->op == FA_SCORE_LOOKUP)
        print_lookup(out, p, a);
    else if (!a->n) {
        const char *word = leaf_word(&p->words, a->op);
        fa_text_str(out, word ? word : "#error");
    } else
        for (const char *f = form_of(p->ir, a, buf); *f; f++) {
            if (*f != '%')
                fa_text_add(out, f, 1);
            else if (*++f == '%')
                fa_text_add(out, f, 1);
            else
                fa_score_print_value(out, p, a->arg[*f - '1']);
        }
}

void fa_score_print_value(fa_text *out, const fa_score_printer *p, int node)
{
    const char *variable = p->variable ? p->variable : "score_v", *member = p->member ? p->member : "";
    if (p->named[node])
        fa_text_fmt(out, "%s%d", p->named[node] == FA_SCORE_MEMBER ? member : p->named[node] == FA_SCORE_PARAMETER ? "a" : variable, node);
    else
        fa_score_print_expression(out, p, node);
}

/* Steps of a walk to all that a node is made of, by every way to it: a chain whose steps read the one before twice doubles them. The
 * front end of NVRTC takes such a walk at each const variable that a constant expression could read, a bool or an int, in 0.2 us a step. */
enum { WALK_MOST = 2048 };

const char *fa_score_cuda_const(const fa_score_ir *ir, int node)
{
    int steps[FA_SCORE_ROOM];
    for (int i = 0; i <= node; i++) {
        steps[i] = 1;
        for (int k = 0; k < ir->node[i].n; k++)
            steps[i] += steps[ir->node[i].arg[k]];
        if (steps[i] > WALK_MOST)
            steps[i] = WALK_MOST;
    }
    return steps[node] < WALK_MOST ? "const " : "";
}

const char *fa_score_cuda_type(int type)
{
    static const char *const types[] = { "bool", "int", "float" };
    return types[type];
}

/* As fa_score_ir_reach(), but of what has a name nothing below it. */
static void reach(const fa_score_printer *p, int node, bool reached[FA_SCORE_ROOM])
{
    reached[node] = true;
    for (int i = node; i >= 0; i--)
        for (int k = 0; reached[i] && !p->named[i] && k < p->ir->node[i].n; k++)
            reached[p->ir->node[i].arg[k]] = true;
}

void fa_score_print_variables(fa_text *out, fa_score_printer *p, int node, int depends, const char *indent)
{
    int reads[FA_SCORE_ROOM] = { 0 };
    bool reached[FA_SCORE_ROOM] = { false };
    reach(p, node, reached);
    for (int i = 0; i <= node; i++)
        for (int k = 0; reached[i] && !p->named[i] && k < p->ir->node[i].n; k++)
            reads[p->ir->node[i].arg[k]] +=
                1 + ((p->ir->node[i].depends & ~depends) != 0 && (p->ir->node[p->ir->node[i].arg[k]].depends & ~depends) == 0);
    for (int i = 0; i <= node; i++) {
        const fa_score_node *a = &p->ir->node[i];
        bool wanted = reached[i] && a->n > 0 && !p->named[i] && (a->depends & ~depends) == 0 && (reads[i] > 1 || i == node);
        if (!wanted)
            continue;
        fa_text_fmt(out, "%s%s%s %s%d = ", indent, fa_score_cuda_const(p->ir, i), fa_score_cuda_type(a->type),
                    p->variable ? p->variable : "score_v", i);
        fa_score_print_expression(out, p, i);
        fa_text_str(out, ";\n");
        p->named[i] = FA_SCORE_VARIABLE;
    }
}

/* ---- helpers ---- */

static bool has(const fa_score_ir *ir, fa_score_op op, int type)
{
    for (int i = 0; i < ir->n; i++)
        if (ir->node[i].op == op && ir->node[i].type == type)
            return true;
    return false;
}

static void print_read(fa_text *out, const fa_score_ir *ir, int k, const char *params)
{
    static const struct {
        const char *element, *result, *form;
    } rows[FA_SCORE_ELEMENTS] = {
        [FA_SCORE_ELEMENT_F32] = { "float", "float", "%s" },
        [FA_SCORE_ELEMENT_BF16] = { "unsigned short", "float", "__uint_as_float((unsigned)%s << 16)" },
        [FA_SCORE_ELEMENT_F16] = { "unsigned short", "float", "score_half(%s)" },
        [FA_SCORE_ELEMENT_I32] = { "int", "int", "min(max(%s, -1073741824), 1073741824)" },
        [FA_SCORE_ELEMENT_I64] = { "long long", "int", "(int)min(max(%s, -1073741824ll), 1073741824ll)" },
        [FA_SCORE_ELEMENT_U8] = { "unsigned char", "int", "(int)%s" },
        [FA_SCORE_ELEMENT_BITS] = { "unsigned", "bool", "(%s >> (x%d & 31) & 1) != 0" },
    };
    const fa_score_operand *o = &ir->operand[k];
    fa_text at = { 0 };
    bool bits = o->element == FA_SCORE_ELEMENT_BITS;
    fa_text_fmt(out, "__device__ __forceinline__ %s score_read%d(const %s &p", rows[o->element].result, k, params);
    for (int i = 0; i < o->rank; i++)
        fa_text_fmt(out, ", int x%d", i);
    fa_text_fmt(&at, "((const %s *)p.score%d)[", rows[o->element].element, k);
    for (int i = 0; i < o->rank; i++)
        fa_text_fmt(&at, bits && i == o->rank - 1 ? "%s(x%d >> 5) * p.score%d_stride[%d]" : "%sx%d * p.score%d_stride[%d]", i ? " + " : "",
                    i, k, i);
    fa_text_str(&at, "]");
    fa_text_str(out, ") {\n  return ");
    for (const char *f = rows[o->element].form; *f; f++)
        if (*f != '%')
            fa_text_add(out, f, 1);
        else if (*++f == 's')
            fa_text_str(out, fa_text_cstr(&at));
        else
            fa_text_fmt(out, "%d", o->rank - 1);
    fa_text_str(out, ";\n}\n");
    out->oom = out->oom || at.oom;
    fa_text_free(&at);
}

void fa_score_print_helpers(fa_text *out, const fa_score_ir *ir, const char *params_type)
{
    bool half = false, clamps = false;
    for (int k = 0; k < ir->operands; k++)
        half = half || (!ir->operand[k].scalar && ir->operand[k].element == FA_SCORE_ELEMENT_F16);
    for (int i = 0; i < ir->n; i++)
        for (int k = 0; ir->node[i].op == FA_SCORE_LOOKUP && k < ir->node[i].n; k++)
            clamps = clamps || !fa_score_index_inside(ir, &ir->node[i], k);
    if (has(ir, FA_SCORE_TANH, FA_SCORE_F32))
        fa_text_str(out, "__device__ __forceinline__ float score_tanh(float x) {\n  float y;\n"
                         "  asm(\"tanh.approx.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));\n  return y;\n}\n");
    if (has(ir, FA_SCORE_TANH_EXACT, FA_SCORE_F32))
        fa_text_str(out, "// Absolute error 1.2e-7; 1 and -1 where the power is infinite and 0.\n"
                         "__device__ __forceinline__ float score_tanh_exact(float x) {\n"
                         "  return 1.f - __fdividef(2.f, 1.f + exp2_approx(x * 2.88539008f));\n}\n");
    if (has(ir, FA_SCORE_IDIV, FA_SCORE_I32) || has(ir, FA_SCORE_MOD, FA_SCORE_I32))
        fa_text_str(out, "// The quotient rounded down, and the rest with the divisor's sign.\n"
                         "__device__ __forceinline__ int score_floor_div(int x, int y) {\n"
                         "  const int q = x / y;\n  return q - (q * y != x && (x < 0) != (y < 0));\n}\n"
                         "__device__ __forceinline__ int score_floor_mod(int x, int y) { return x - score_floor_div(x, y) * y; }\n");
    if (has(ir, FA_SCORE_MOD, FA_SCORE_F32))
        fa_text_str(out, "__device__ __forceinline__ float score_mod(float x, float y) {\n"
                         "  const float r = fmodf(x, y);\n  return r != 0.f && (r < 0.f) != (y < 0.f) ? r + y : r;\n}\n");
    if (half)
        fa_text_str(out, "__device__ __forceinline__ float score_half(unsigned short x) {\n  float y;\n"
                         "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));\n  return y;\n}\n");
    if (clamps)
        fa_text_str(out, "__device__ __forceinline__ int score_clamp(int x, int n) { return min(max(x, 0), n - 1); }\n");
    for (int k = 0; k < ir->operands; k++)
        if (!ir->operand[k].scalar)
            print_read(out, ir, k, params_type);
}
