/* arithmetic: signs of Lua to operations of the IR. */
#include "arithmetic.h"
#include <math.h>
#include <stdio.h>

#define TYPE(x) (ir->node[x].type)
#define CONSTANT(x) (ir->node[x].op == FA_SCORE_CONST)

fa_status fa_score_made(const fa_score_site *at, int out)
{
    return out >= 0
               ? FA_OK
               : fa_score_fail(at->name, at->token.at,
                               "the program has more than %d nodes; accepted: up to that, loops and calls written out", FA_SCORE_NODES_MAX);
}

int fa_score_fraction(fa_score_ir *ir, int x)
{
    return x < 0 || TYPE(x) == FA_SCORE_F32 ? x : fa_score_ir_make(ir, FA_SCORE_TOFLOAT, x, -1, -1);
}

static const char *type_word(int type)
{
    return type == FA_SCORE_BOOL ? "a truth" : type == FA_SCORE_I32 ? "an integer" : "a number with a fraction";
}

/* Of an integer: that no launch leaves 32 bits. */
static fa_status proven(const fa_score_site *at, int out)
{
    const fa_score_node *x = out >= 0 ? &at->ir->node[out] : NULL;
    if (!x || x->type != FA_SCORE_I32 || (!x->range.nan && x->range.lo >= INT32_MIN && x->range.hi <= INT32_MAX))
        return fa_score_made(at, out);
    return fa_score_fail(at->name, at->token.at,
                         "%.*s may pass int32: from %.10g to %.10g; accepted: less, by min and max, or numbers with a fraction, by 1.0 * x",
                         at->token.n, at->token.s, x->range.lo, x->range.hi);
}

static fa_status make(const fa_score_site *at, int *out, fa_score_op op, int x, int y)
{
    *out = fa_score_ir_make(at->ir, op, x, y, -1);
    return proven(at, *out);
}

static fa_status take_numbers(const fa_score_site *at, int x, int y)
{
    const fa_score_ir *ir = at->ir;
    for (int k = 0; k < 2; k++)
        if (TYPE(k ? y : x) == FA_SCORE_BOOL)
            return fa_score_fail(at->name, at->token.at, "%.*s has a truth on the %s; accepted: a number, by c and 1 or 0", at->token.n,
                                 at->token.s, k ? "right" : "left");
    return FA_OK;
}

static fa_status take_integers(const fa_score_site *at, int x, int y)
{
    const fa_score_ir *ir = at->ir;
    for (int k = 0; k < 2; k++)
        if (TYPE(k ? y : x) != FA_SCORE_I32)
            return fa_score_fail(at->name, at->token.at, "%.*s has %s on the %s; accepted: integers%s", at->token.n, at->token.s,
                                 type_word(TYPE(k ? y : x)), k ? "right" : "left",
                                 TYPE(k ? y : x) == FA_SCORE_BOOL ? "; of truths: and, or" : "");
    return FA_OK;
}

/* Of an integer divisor. */
static fa_status not_zero(const fa_score_site *at, int y)
{
    fa_score_range r = at->ir->node[y].range;
    if (r.lo > 0 || r.hi < 0)
        return FA_OK;
    return fa_score_fail(
        at->name, at->token.at, "%.*s: %.*s may be 0 (from %.10g to %.10g); accepted: what cannot, by max(x, 1), or a scalar with bounds",
        at->token.n, at->token.s, at->divisor_n ? at->divisor_n : 11, at->divisor_n ? at->divisor : "the divisor", r.lo, r.hi);
}

/* x ^ y of a constant base above 0, or a constant exponent. */
static fa_status power(const fa_score_site *at, int *out, int x, int y)
{
    fa_score_ir *ir = at->ir;
    if (CONSTANT(x) && CONSTANT(y)) {
        *out = fa_score_ir_number(ir, FA_SCORE_F32, pow(ir->node[x].value, ir->node[y].value));
        return fa_score_made(at, *out);
    }
    if (CONSTANT(x) && ir->node[x].value > 0) {
        int log2_of = fa_score_ir_number(ir, FA_SCORE_F32, log2(ir->node[x].value));
        int exponent = fa_score_ir_make(ir, FA_SCORE_MUL, fa_score_fraction(ir, y), log2_of, -1);
        return make(at, out, FA_SCORE_EXP2, exponent, -1);
    }
    double e = CONSTANT(y) ? ir->node[y].value : 0.25;
    int base = fa_score_fraction(ir, x);
    if (e == 0.5)
        return make(at, out, FA_SCORE_SQRT, base, -1);
    if (e == -0.5)
        return make(at, out, FA_SCORE_RSQRT, base, -1);
    if (e != floor(e) || fabs(e) > 8 || e == 0)
        return fa_score_fail(at->name, at->token.at,
                             "this power is not computed; accepted: a constant above 0 to any power, or any number to one of "
                             "-8 to 8, 0.5, -0.5; else exp(y * log(x))");
    *out = base;
    for (int k = 1; k < (int)fabs(e); k++)
        *out = fa_score_ir_make(ir, FA_SCORE_MUL, *out, base, -1);
    if (e < 0)
        *out = fa_score_ir_make(ir, FA_SCORE_DIV, fa_score_ir_number(ir, FA_SCORE_F32, 1), *out, -1);
    return fa_score_made(at, *out);
}

static fa_status arithmetic(const fa_score_site *at, int *out, fa_score_op op, int x, int y)
{
    fa_score_ir *ir = at->ir;
    fa_status st = take_numbers(at, x, y);
    if (st != FA_OK)
        return st;
    bool whole = TYPE(x) == FA_SCORE_I32 && TYPE(y) == FA_SCORE_I32 && op != FA_SCORE_DIV;
    if (whole && (op == FA_SCORE_IDIV || op == FA_SCORE_MOD) && (st = not_zero(at, y)) != FA_OK)
        return st;
    return whole ? make(at, out, op, x, y) : make(at, out, op, fa_score_fraction(ir, x), fa_score_fraction(ir, y));
}

/* A constant without a fraction is the integer, beside an integer. */
static int whole_constant(fa_score_ir *ir, int x)
{
    double v = ir->node[x].value;
    bool whole = CONSTANT(x) && TYPE(x) == FA_SCORE_F32 && v == floor(v) && v >= INT32_MIN && v <= INT32_MAX;
    return whole ? fa_score_ir_number(ir, FA_SCORE_I32, v) : x;
}

static fa_status comparison(const fa_score_site *at, int *out, fa_score_op op, int x, int y)
{
    fa_score_ir *ir = at->ir;
    bool truths = TYPE(x) == FA_SCORE_BOOL && TYPE(y) == FA_SCORE_BOOL;
    if (op == FA_SCORE_EQ && (TYPE(x) == FA_SCORE_BOOL) != (TYPE(y) == FA_SCORE_BOOL))
        return fa_score_fail(at->name, at->token.at, "%.*s has a truth on one side and a number on the other; accepted: two of a kind",
                             at->token.n, at->token.s);
    if (!(op == FA_SCORE_EQ && truths)) {
        fa_status st = take_numbers(at, x, y);
        if (st != FA_OK)
            return st;
        if (TYPE(x) == FA_SCORE_I32)
            y = whole_constant(ir, y);
        else if (TYPE(y) == FA_SCORE_I32)
            x = whole_constant(ir, x);
        if (TYPE(x) != TYPE(y)) {
            x = fa_score_fraction(ir, x);
            y = fa_score_fraction(ir, y);
        }
    }
    return make(at, out, op, x, y);
}

static fa_status shift(const fa_score_site *at, int *out, int x, int y)
{
    fa_score_ir *ir = at->ir;
    fa_score_range by = ir->node[y].range, of = ir->node[x].range;
    fa_status st = take_integers(at, x, y);
    if (st != FA_OK)
        return st;
    if (at->token.word == FA_SCORE_WORD_SHL) {
        if (!CONSTANT(y) || by.lo < 0 || by.hi > 30)
            return fa_score_fail(at->name, at->token.at, "<< by other than a constant; accepted: 0 to 30");
        return make(at, out, FA_SCORE_MUL, x, fa_score_ir_number(ir, FA_SCORE_I32, exp2(by.lo)));
    }
    if (of.lo < 0 || by.lo < 0 || by.hi > 31)
        return fa_score_fail(at->name, at->token.at, ">> of %.10g to %.10g by %.10g to %.10g; accepted: of 0 or more, by 0 to 31", of.lo,
                             of.hi, by.lo, by.hi);
    return make(at, out, FA_SCORE_SHR, x, y);
}

static fa_status negate(const fa_score_site *at, int *out)
{
    *out = fa_score_ir_make(at->ir, FA_SCORE_NOT, *out, -1, -1);
    return fa_score_made(at, *out);
}

fa_status fa_score_binary(const fa_score_site *at, int *out, int x, int y)
{
    fa_status st;
    switch (at->token.word) {
    case FA_SCORE_WORD_PLUS:
        return arithmetic(at, out, FA_SCORE_ADD, x, y);
    case FA_SCORE_WORD_MINUS:
        return arithmetic(at, out, FA_SCORE_SUB, x, y);
    case FA_SCORE_WORD_STAR:
        return arithmetic(at, out, FA_SCORE_MUL, x, y);
    case FA_SCORE_WORD_SLASH:
        return arithmetic(at, out, FA_SCORE_DIV, x, y);
    case FA_SCORE_WORD_IDIV:
        return arithmetic(at, out, FA_SCORE_IDIV, x, y);
    case FA_SCORE_WORD_PERCENT:
        return arithmetic(at, out, FA_SCORE_MOD, x, y);
    case FA_SCORE_WORD_CARET:
        st = take_numbers(at, x, y);
        return st == FA_OK ? power(at, out, x, y) : st;
    case FA_SCORE_WORD_LT:
        return comparison(at, out, FA_SCORE_LT, x, y);
    case FA_SCORE_WORD_LE:
        return comparison(at, out, FA_SCORE_LE, x, y);
    case FA_SCORE_WORD_GT:
        return comparison(at, out, FA_SCORE_LT, y, x);
    case FA_SCORE_WORD_GE:
        return comparison(at, out, FA_SCORE_LE, y, x);
    case FA_SCORE_WORD_EQ:
        return comparison(at, out, FA_SCORE_EQ, x, y);
    case FA_SCORE_WORD_NE:
        st = comparison(at, out, FA_SCORE_EQ, x, y);
        return st == FA_OK ? negate(at, out) : st;
    case FA_SCORE_WORD_SHL:
    case FA_SCORE_WORD_SHR:
        return shift(at, out, x, y);
    default:
        break;
    }
    st = take_integers(at, x, y);
    fa_score_op op = at->token.word == FA_SCORE_WORD_AMPERSAND ? FA_SCORE_BAND
                     : at->token.word == FA_SCORE_WORD_BAR     ? FA_SCORE_BOR
                                                               : FA_SCORE_BXOR;
    return st == FA_OK ? make(at, out, op, x, y) : st;
}

fa_status fa_score_unary(const fa_score_site *at, int *out, int x)
{
    fa_score_ir *ir = at->ir;
    fa_status st;
    switch (at->token.word) {
    case FA_SCORE_WORD_NOT:
        *out = x;
        if (TYPE(x) == FA_SCORE_BOOL)
            return negate(at, out);
        return fa_score_fail(at->name, at->token.at, "not of %s, which Lua takes for true; accepted: a truth, by a comparison",
                             type_word(TYPE(x)));
    case FA_SCORE_WORD_TILDE:
        st = take_integers(at, x, x);
        return st == FA_OK ? make(at, out, FA_SCORE_BXOR, x, fa_score_ir_number(ir, FA_SCORE_I32, -1)) : st;
    default:
        if (TYPE(x) == FA_SCORE_BOOL)
            return fa_score_fail(at->name, at->token.at, "- of a truth; accepted: a number, by c and 1 or 0");
        return make(at, out, FA_SCORE_NEG, x, -1);
    }
}

/* floor(x), or -floor(-x), as an integer. */
static fa_status floor_of(const fa_score_site *at, int *out, bool up, int x)
{
    fa_score_ir *ir = at->ir;
    *out = x;
    if (TYPE(x) == FA_SCORE_I32)
        return FA_OK;
    int from = up ? fa_score_ir_make(ir, FA_SCORE_NEG, x, -1, -1) : x;
    fa_score_range r = from >= 0 ? ir->node[from].range : (fa_score_range){ 0, 0, false };
    if (r.nan || r.lo <= INT32_MIN || r.hi >= INT32_MAX)
        return fa_score_fail(at->name, at->token.at, "%.*s of %.10g to %.10g%s is no int32; accepted: less, by min and max before it",
                             at->token.n, at->token.s, r.lo, r.hi, r.nan ? " or NaN" : "");
    fa_status st = make(at, out, FA_SCORE_FLOOR, from, -1);
    return st == FA_OK && up ? make(at, out, FA_SCORE_NEG, *out, -1) : st;
}

fa_status fa_score_function(const fa_score_site *at, int *out, const fa_score_name *f, const int *x, int n)
{
    fa_score_ir *ir = at->ir;
    bool whole = true;
    for (int k = 0; k < n; k++) {
        if (TYPE(x[k]) == FA_SCORE_BOOL)
            return fa_score_fail(at->name, at->token.at, "%s of a truth; accepted: numbers", f->word);
        whole = whole && TYPE(x[k]) == FA_SCORE_I32;
    }
    if (f->kind == FA_SCORE_NAME_FUNCTION)
        return make(at, out, f->op, fa_score_fraction(ir, x[0]), -1);
    if (f->op == FA_SCORE_FLOOR || f->op == FA_SCORE_NEG)
        return floor_of(at, out, f->op == FA_SCORE_NEG, x[0]);
    if (f->op == FA_SCORE_ABS)
        return make(at, out, FA_SCORE_ABS, x[0], -1);
    *out = whole ? x[0] : fa_score_fraction(ir, x[0]);
    for (int k = 1; k < n; k++) {
        fa_status st = make(at, out, f->op, *out, whole ? x[k] : fa_score_fraction(ir, x[k]));
        if (st != FA_OK)
            return st;
    }
    return FA_OK;
}

/* c and x or not c and y, of truths. */
static int pick_truth(fa_score_ir *ir, int c, int x, int y)
{
    int other = fa_score_ir_make(ir, FA_SCORE_NOT, c, -1, -1);
    int left = fa_score_ir_make(ir, FA_SCORE_AND, c, x, -1), right = fa_score_ir_make(ir, FA_SCORE_AND, other, y, -1);
    if (CONSTANT(x) && ir->node[x].value == 1)
        return fa_score_ir_make(ir, FA_SCORE_OR, c, y, -1);
    if (CONSTANT(y) && ir->node[y].value == 1)
        return fa_score_ir_make(ir, FA_SCORE_OR, other, x, -1);
    return fa_score_ir_make(ir, FA_SCORE_OR, left, right, -1);
}

fa_status fa_score_pick(const fa_score_site *at, int *out, int condition, int x, int y)
{
    fa_score_ir *ir = at->ir;
    if (x == y) {
        *out = x;
        return FA_OK;
    }
    if ((TYPE(x) == FA_SCORE_BOOL) != (TYPE(y) == FA_SCORE_BOOL))
        return fa_score_fail(at->name, at->token.at, "a number on one path and a truth on the other; accepted: two of a kind");
    if (TYPE(x) != TYPE(y)) {
        x = fa_score_fraction(ir, x);
        y = fa_score_fraction(ir, y);
        if (x < 0 || y < 0)
            return fa_score_made(at, -1);
    }
    *out = TYPE(x) == FA_SCORE_BOOL ? pick_truth(ir, condition, x, y) : fa_score_ir_make(ir, FA_SCORE_SELECT, condition, x, y);
    return fa_score_made(at, *out);
}
