/* score_values: shapes against those of the program, strides in 64 bits, scalars within their bounds. */
#include "score_values.h"
#include "gen/error.h"
#include "gen/score/names.h"
#include "gen/score/shape.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SIZE_MOST 4096 /* bytes of a struct of any header */

/* As rows of spans: for messages about overlaps. */
static const fa_operand rows[FA_SCORE_OPERANDS_MAX] = {
    { .name = "score_values[0]" }, { .name = "score_values[1]" }, { .name = "score_values[2]" }, { .name = "score_values[3]" },
    { .name = "score_values[4]" }, { .name = "score_values[5]" }, { .name = "score_values[6]" }, { .name = "score_values[7]" },
};
#define GRADIENT(i)                                             \
    {                                                           \
        .name = "score_values[" #i "].grad_ptr", .output = true \
    }
static const fa_operand gradients[FA_SCORE_OPERANDS_MAX] = { GRADIENT(0), GRADIENT(1), GRADIENT(2), GRADIENT(3),
                                                             GRADIENT(4), GRADIENT(5), GRADIENT(6), GRADIENT(7) };

/* One operand that is looked at. */
typedef struct look {
    const fa_score_value *given;
    const fa_score_operand *operand;
    int i;
} look;

static fa_status wrong(const look *l, const char *member, const char *is, const char *accepted)
{
    return fa_fail(FA_INVALID, "args: score_values[%d].%s is %s (%s); accepted: %s", l->i, member, is, l->operand->name, accepted);
}

static fa_status wrong_number(const look *l, const char *member, int64_t is, const char *accepted)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)is);
    return wrong(l, member, text, accepted);
}

/* The i-th; NULL: the launch gives no more. */
static const fa_score_value *value_at(const fa_args *args, int i)
{
    if (i >= args->score_value_count)
        return NULL;
    return (const void *)((const char *)args->score_values + (size_t)i * args->score_values[0].size);
}

/* Structs of another header are as long as the first says. */
static fa_status check_sizes(const fa_args *a)
{
    uint32_t size = a->score_value_count ? a->score_values[0].size : 0;
    for (int i = 0; i < a->score_value_count; i++) {
        uint32_t own = value_at(a, i)->size;
        if (own < sizeof(fa_score_value) || own > SIZE_MOST || own % 8 || own != size)
            return fa_fail(FA_INVALID, "args: score_values[%d].size is %u; accepted: sizeof(fa_score_value), set by FA_SCORE_VALUE_INIT%s",
                           i, own, i ? ", the same in all" : "");
    }
    return FA_OK;
}

/* Operands from the n-th on that have no value of their own; -1: none. */
static int first_array(const fa_program *p, int n)
{
    for (; n < p->ir.operands; n++)
        if (!p->ir.operand[n].scalar)
            return n;
    return -1;
}

fa_status fa_score_values_count(const fa_args *a, const fa_score *score)
{
    int32_t n = a->score_value_count;
    if (!score && (n || a->score_values))
        return fa_fail(FA_INVALID, "args: score is NULL and %s; accepted: both or neither",
                       n ? "score_value_count is not 0" : "score_values is set");
    if (!score)
        return FA_OK;
    int all = score->program->ir.operands, array = n >= 0 ? first_array(score->program, n) : -1;
    if (n < 0 || n > all)
        return fa_fail(FA_INVALID, "args: score_value_count is %d; accepted: up to %d, the operands of the program", n, all);
    if (array >= 0)
        return fa_fail(FA_INVALID, "args: score_value_count is %d; accepted: at least %d, as operand %d of the program, %s, is an array", n,
                       array + 1, array, score->operand[array].name);
    if (n && !a->score_values)
        return fa_fail(FA_INVALID, "args: score_values is NULL and score_value_count is %d; accepted: as many values", n);
    return check_sizes(a);
}

/* ---- scalars ---- */

static fa_status check_scalar(fa_score_given *out, const look *l)
{
    char accepted[96], is[32];
    const fa_score_operand *o = l->operand;
    bool whole = o->type == FA_SCORE_I32;
    double v = l->given ? l->given->scalar : o->value;
    if (l->given && l->given->ptr)
        return wrong(l, "ptr", "set", "NULL, as the operand is a scalar");
    for (int k = 0; l->given && k < FA_SCORE_RANK_MAX; k++)
        if (l->given->extent[k] || l->given->stride[k])
            return wrong(l, l->given->extent[k] ? "extent" : "stride", "set", "0, as the operand is a scalar");
    if (!(v >= o->least && v <= o->most) || (whole && v != floor(v)) || !isfinite((float)v)) {
        snprintf(accepted, sizeof accepted, whole ? "integers from %.10g to %.10g" : "%.9g to %.9g", o->least, o->most);
        snprintf(is, sizeof is, "%.10g", v);
        return wrong(l, "scalar", is, accepted);
    }
    float f = (float)v;
    int32_t n = whole ? (int32_t)v : 0;
    memcpy(&out->scalar, whole ? (const void *)&n : (const void *)&f, sizeof out->scalar);
    return FA_OK;
}

/* ---- arrays ---- */

/* The extents of the launch are those that the shape comes to. */
static fa_status check_extents(const look *l, const int64_t lengths[FA_SCORE_LENGTHS])
{
    char member[24], shape[320], accepted[512];
    const fa_score_operand *o = l->operand;
    for (int k = 0; k < FA_SCORE_RANK_MAX; k++) {
        int32_t n = l->given->extent[k];
        int64_t want = k < o->rank ? fa_score_shape_extent(&o->extent[k], lengths) : 0;
        bool any = want < 0 && o->extent[k].any;
        want = want < 0 && !any ? 0 : want; /* sq-1 of no query */
        if (any ? n >= 1 && n <= FA_SCORE_INT_MAX : n == want && want <= FA_SCORE_INT_MAX)
            continue;
        snprintf(member, sizeof member, "extent[%d]", k);
        fa_score_shape_print(shape, sizeof shape, o);
        if (any)
            snprintf(accepted, sizeof accepted, "1 to 2^30, as the shape is \"%s\"", shape);
        else if (want > FA_SCORE_INT_MAX)
            snprintf(accepted, sizeof accepted, "up to 2^30, and the shape \"%s\" comes to %lld here", shape, (long long)want);
        else if (k >= o->rank)
            snprintf(accepted, sizeof accepted, "0, as the shape is \"%s\"", shape);
        else
            snprintf(accepted, sizeof accepted, "%lld, which the shape \"%s\" comes to here%s", (long long)want, shape,
                     n == 1 ? "; a stride of 0 reads the same for each index" : "");
        return wrong_number(l, member, n, accepted);
    }
    return FA_OK;
}

/* Strides of the launch, or packed ones, into s->stride; sizes into s->size. */
static fa_status check_strides(fa_span *s, const look *l)
{
    char member[24];
    const fa_score_operand *o = l->operand;
    bool packed = true;
    int64_t step = 1;
    for (int k = 0; k < FA_SCORE_RANK_MAX; k++) {
        packed = packed && !l->given->stride[k];
        snprintf(member, sizeof member, "stride[%d]", k);
        if (k >= o->rank && l->given->stride[k])
            return wrong_number(l, member, l->given->stride[k], "0, as the operand has no such index");
    }
    for (int k = o->rank - 1; k >= 0; k--) {
        int64_t n = l->given->extent[k], reach;
        s->size[k] = o->element == FA_SCORE_ELEMENT_BITS && k == o->rank - 1 ? (n + 31) / 32 : n;
        s->stride[k] = s->size[k] > 1 ? packed ? step : l->given->stride[k] : 0;
        s->some = s->some && n > 0;
        snprintf(member, sizeof member, "stride[%d]", k);
        if (__builtin_mul_overflow(step, s->size[k] > 0 ? s->size[k] : 1, &step) ||
            __builtin_mul_overflow(s->stride[k], s->bytes, &reach) ||
            __builtin_mul_overflow(reach, s->size[k] ? s->size[k] - 1 : 0, &reach) ||
            __builtin_add_overflow(reach < 0 ? s->low : s->high, reach, reach < 0 ? &s->low : &s->high))
            return wrong_number(l, member, s->stride[k], "offsets below 2^63 bytes");
    }
    return FA_OK;
}

static fa_status place(fa_span *s, const look *l)
{
    char is[24], accepted[64];
    uint64_t address = (uint64_t)(uintptr_t)l->given->ptr;
    s->lo = s->hi = 0;
    if (!address && s->some)
        return wrong(l, "ptr", "NULL", "the device address of its elements");
    if (address & (unsigned)(s->bytes - 1)) {
        snprintf(is, sizeof is, "%#llx", (unsigned long long)address);
        snprintf(accepted, sizeof accepted, "a multiple of the element's %d bytes", s->bytes);
        return wrong(l, "ptr", is, accepted);
    }
    if (s->some && (__builtin_add_overflow(address, s->low, &s->lo) || __builtin_add_overflow(address, s->high, &s->hi)))
        return wrong(l, "stride", "set", "offsets inside the address space");
    return FA_OK;
}

static fa_status check_array(fa_score_given *out, fa_span *s, const look *l, const int64_t lengths[FA_SCORE_LENGTHS], bool tensors)
{
    *s = (fa_span){ .operand = &rows[l->i], .bytes = fa_score_element_bytes(l->operand->element), .size = { 1, 1, 1, 1 }, .some = true };
    s->row = s->run = s->high = s->bytes;
    fa_status st = check_extents(l, lengths);
    if (st == FA_OK)
        st = check_strides(s, l);
    if (st == FA_OK && tensors)
        st = place(s, l);
    if (st != FA_OK)
        return st;
    out->address = (uint64_t)(uintptr_t)l->given->ptr;
    memcpy(out->stride, s->stride, sizeof out->stride);
    for (int k = 0; k < FA_SCORE_RANK_MAX; k++)
        out->extent[k] = l->given->extent[k] > 0 ? l->given->extent[k] : 1;
    return FA_OK;
}

/* What kernels may look at of an array without elements: it has one element, where the queries lie, and lies as aligned ones do. */
static void be_one_element(fa_score_given *of, const fa_args *a)
{
    of->address = (uint64_t)(uintptr_t)a->q.ptr & ~(uint64_t)15;
    for (int k = 0; k < FA_SCORE_RANK_MAX; k++)
        of->extent[k] = 1, of->stride[k] = 0;
}

static fa_status check_rest(const look *l, bool backward)
{
    if (l->given->reserved)
        return wrong_number(l, "reserved", l->given->reserved, "0");
    if (l->given->grad_ptr && !backward)
        return wrong(l, "grad_ptr", "set", "NULL, but for gradients");
    if (l->given->grad_ptr && l->operand->type != FA_SCORE_F32)
        return wrong(l, "grad_ptr", "set", "NULL, as the operand has no gradient: gradients are of numbers with a fraction");
    for (int k = 0; k < FA_SCORE_RANK_MAX; k++)
        if (l->given->grad_stride[k] && (!l->given->grad_ptr || k >= l->operand->rank))
            return wrong(l, "grad_stride", "set", l->given->grad_ptr ? "0, as the operand has no such index" : "0 without grad_ptr");
    return FA_OK;
}

/* Elements of the gradient, each of its own. */
static fa_status check_gradient(fa_score_given *out, fa_span *s, const look *l, bool tensors)
{
    fa_score_value of = *l->given;
    look grad = { &of, l->operand, l->i };
    bool packed = true;
    char member[32];
    *s = (fa_span){ .operand = &gradients[l->i], .bytes = 4, .size = { 1, 1, 1, 1 }, .some = true };
    s->row = s->run = s->high = s->bytes;
    of.ptr = of.grad_ptr;
    memcpy(of.stride, of.grad_stride, sizeof of.stride);
    for (int k = 0; k < FA_SCORE_RANK_MAX; k++)
        packed = packed && !of.stride[k];
    for (int k = 0; !packed && k < l->operand->rank; k++) {
        snprintf(member, sizeof member, "grad_stride[%d]", k);
        if (!of.stride[k] && of.extent[k] > 1)
            return wrong(l, member, "0", "a stride for each index, or 0 in all for packed: each element has a gradient of its own");
    }
    fa_status st = check_strides(s, &grad);
    if (st == FA_OK && of.grad_ptr && (uintptr_t)of.grad_ptr & 3)
        st = wrong(l, "grad_ptr", "set", "a multiple of 4 bytes");
    if (st == FA_OK && tensors)
        st = place(s, &grad);
    out->grad = s->some ? (uint64_t)(uintptr_t)of.grad_ptr : 0;
    memcpy(out->grad_stride, s->stride, sizeof out->grad_stride);
    return st;
}

int32_t fa_score_values_grads(const fa_args *args, const fa_score *score)
{
    int32_t bits = 0;
    for (int i = 0; args->op == FA_BACKWARD && i < score->program->ir.operands; i++) {
        const fa_score_value *v = value_at(args, i);
        bits |= v && v->grad_ptr && score->operand[i].type == FA_SCORE_F32 ? 1 << i : 0;
    }
    return bits;
}

fa_status fa_score_values_check(fa_score_given out[FA_SCORE_OPERANDS_MAX], fa_span span[2 * FA_SCORE_OPERANDS_MAX], int *arrays,
                                const fa_args *args, const fa_score *score, const int64_t lengths[FA_SCORE_LENGTHS], bool tensors)
{
    fa_status st = FA_OK;
    *arrays = 0;
    for (int i = 0; st == FA_OK && i < score->program->ir.operands; i++) {
        look l = { value_at(args, i), &score->operand[i], i };
        out[i] = (fa_score_given){ .address = 0 };
        if (l.given)
            st = check_rest(&l, args->op == FA_BACKWARD);
        if (st == FA_OK && l.operand->scalar)
            st = check_scalar(&out[i], &l);
        else if (st == FA_OK) {
            st = check_array(&out[i], &span[*arrays], &l, lengths, tensors);
            if (st == FA_OK && !span[*arrays].some)
                be_one_element(&out[i], args);
            ++*arrays;
        }
        if (st == FA_OK && l.given && l.given->grad_ptr)
            st = check_gradient(&out[i], &span[(*arrays)++], &l, tensors);
    }
    return st;
}
