/* span: strides and addresses in 64 bits, with every overflow looked for. */
#include "span.h"
#include "gen/error.h"
#include "overlap.h"
#include <stdlib.h>
#include <string.h>

/* Of the dimensions of a fa_tensor, and of a pointer with strides. */
static const char *const tensor_fields[4] = { ".sb", ".ss", ".sh", "_stride" }, *const pointer_fields[4] = { "_sb", "_sh", "_ss",
                                                                                                             "_stride" };
#define PARTS 3 /* the dimension */

static const char *field_name(const fa_operand *o, int dimension)
{
    return o->strided || o->class_at ? tensor_fields[dimension] : pointer_fields[dimension];
}

/* Packed strides where all are 0. False on overflow. */
static bool packed(int64_t stride[3], const int64_t size[3], int64_t d)
{
    stride[2] = d;
    return !__builtin_mul_overflow(size[2], d, &stride[1]) && !__builtin_mul_overflow(size[1], stride[1], &stride[0]);
}

/* Strides of tensors and of pointers, by dimension; those of pointers with all 0 are packed, too. */
static fa_status shape_of_strides(fa_span *s, const int64_t stride[3], int64_t width, bool zero)
{
    const fa_operand *o = s->operand;
    const char *name = o->name;
    const int64_t *size = s->size;
    s->row = s->run = width * s->bytes;
    s->high = s->row;
    memcpy(s->stride, stride, 3 * sizeof *stride);
    bool all = !o->class_at && !stride[0] && !stride[1] && !stride[2];
    zero = zero || o->class_at || all || !s->some; /* packed strides of an empty tensor may be 0 */
    if (all && !packed(s->stride, size, width))
        return fa_fail(FA_INVALID, "args: %s: b * s * h * d exceeds 2^63 elements", name);
    s->bits = (unsigned)s->row;
    for (int i = 0; i < 3; i++) {
        int64_t reach;
        if (size[i] <= 1)
            s->stride[i] = 0;
        else if (!s->stride[i] && !zero)
            return fa_fail(FA_INVALID,
                           "args: %s%s is 0 and the dimension is %lld long; accepted: its stride in elements, 0 in all three for packed%s",
                           name, field_name(o, i), (long long)size[i],
                           !o->strided    ? ""
                           : o->broadcast ? " [b, s, h, d], or FA_BROADCAST in flags where each index is the same element"
                                          : " [b, s, h, d]");
        if (__builtin_mul_overflow(s->stride[i], s->bytes, &reach) || __builtin_mul_overflow(reach, size[i] ? size[i] - 1 : 0, &reach) ||
            __builtin_add_overflow(reach < 0 ? s->low : s->high, reach, reach < 0 ? &s->low : &s->high))
            return fa_fail(FA_INVALID, "args: %s%s is %lld; accepted: offsets below 2^63 bytes", name, field_name(o, i),
                           (long long)s->stride[i]);
        s->bits |= (unsigned)(s->stride[i] * s->bytes);
    }
    return FA_OK;
}

/* Elements packed from a pointer on; high is -1 where they are too many. */
static void shape_of_pointer(fa_span *s, const fa_dims *dims)
{
    s->high = s->bytes;
    for (int i = 0; i < 4 && s->high >= 0; i++)
        if (__builtin_mul_overflow(s->high, dims->of[i], &s->high))
            s->high = -1;
    s->run = s->high;
}

/* Rows from a pointer on, `elements` each, some elements apart; high likewise. The last has no gap after it. */
static void shape_of_rows(fa_span *s, int64_t rows, int64_t elements, int64_t apart)
{
    int64_t reach;
    s->size[0] = rows;
    s->size[1] = 1;
    s->some = rows && elements;
    s->stride[0] = rows > 1 ? apart : 0;
    s->run = elements * s->bytes;
    if (__builtin_mul_overflow(s->stride[0], (rows - 1) * s->bytes, &reach) || __builtin_add_overflow(s->run, reach, &s->high))
        s->high = -1;
}

/* Cosines of a row, and its sines, begin at a multiple of it: kernels load as many bytes at a time. */
static int32_t multiple_of(const fa_operand *o, const fa_dims *dims, int bytes)
{
    int64_t half = dims->of[1] / 2 * bytes | 16;
    return o->type == FA_TYPE_ANGLE ? (int32_t)(half & -half) : 0;
}

static void nothing(fa_span *out, const fa_operand *o, int bytes)
{
    *out = (fa_span){ .operand = o, .bytes = bytes, .size = { 1, 1, 1, 1 } };
}

fa_status fa_span_shape(fa_span *out, const fa_operand *o, const fa_args *args, const fa_sizes *sizes, int bytes, bool zero)
{
    fa_dims dims;
    fa_operand_dims(&dims, o, sizes);
    nothing(out, o, bytes);
    out->multiple = multiple_of(o, &dims, bytes);
    out->some = dims.of[0] && dims.of[1] && dims.of[2];
    memcpy(out->size, dims.of, 3 * sizeof *out->size);
    if (o->strided) {
        const fa_tensor *t = (const void *)((const char *)args + o->at);
        fa_status st = shape_of_strides(out, (const int64_t[3]){ t->sb, t->ss, t->sh }, dims.of[3], zero);
        if (sizes->v_columns && o->id == FA_ID_v) /* rows of any number of keys begin where the strides say */
            out->bits = (unsigned)((out->stride[0] | out->stride[1] | out->stride[2]) * out->bytes);
        return st;
    }
    if (o->strides_at)
        return shape_of_strides(out, (const void *)((const char *)args + o->strides_at), 1, false);
    if (o->row)
        shape_of_rows(out, dims.of[0], sizes->of[o->row], dims.of[1]);
    else
        shape_of_pointer(out, &dims);
    return FA_OK;
}

void fa_span_workspace(fa_span *out, const fa_args *args)
{
    static const fa_operand workspace = { .name = "workspace", .output = true, .optional = true, .at = offsetof(fa_args, workspace) };
    nothing(out, &workspace, 1);
    out->some = args->workspace_size > 0;
    out->high = out->run = args->workspace_size > INT64_MAX ? -1 : (int64_t)args->workspace_size;
}

fa_status fa_span_place(fa_span *s, uint64_t address)
{
    const fa_operand *o = s->operand;
    const char *dot = o->strided || o->class_at ? ".ptr" : "";
    s->lo = s->hi = 0;
    if (!address && s->some && !o->optional)
        return fa_fail(FA_INVALID, "args: %s%s is NULL; accepted: a device address", o->name, dot);
    if (s->multiple && address & (unsigned)(s->multiple - 1))
        return fa_fail(FA_INVALID, "args: %s is %#llx; accepted with rows of so many elements: a multiple of %d bytes", o->name,
                       (unsigned long long)address, s->multiple);
    int32_t least = s->bytes & -s->bytes; /* of blocks of a format that has blocks, 2 */
    if (address & (unsigned)(least - 1))
        return fa_fail(FA_INVALID, "args: %s%s is %#llx; accepted: a multiple of the element's %d bytes%s", o->name, dot,
                       (unsigned long long)address, least, o->optional || !s->some ? ", or NULL" : "");
    if (!address || !s->some)
        return FA_OK;
    if (s->high < 0 || __builtin_add_overflow(address, s->low, &s->lo) || __builtin_add_overflow(address, s->high, &s->hi))
        return fa_fail(FA_INVALID, "args: %s: its %s lead outside the address space", o->name, o->strided ? "strides" : "values");
    return FA_OK;
}

/* The first dimension, from the smallest stride up, that does not step over all below it; *extent: the bytes of those. -1 = none. */
static int short_step(const fa_span *s, uint64_t *extent)
{
    int order[4] = { 0, 1, 2, PARTS };
    *extent = (uint64_t)s->row; /* unsigned: strides of both signs may add up to 2^64 */
    for (int i = 1; i < 4; i++)
        for (int j = i; j > 0 && llabs(s->stride[order[j]]) < llabs(s->stride[order[j - 1]]); j--) {
            int swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
    for (int i = 0; i < 4; i++) {
        int dim = order[i];
        uint64_t step = (uint64_t)llabs(s->stride[dim]) * (unsigned)s->bytes;
        if (s->size[dim] <= 1)
            continue;
        if (step < *extent)
            return dim;
        *extent += step * (uint64_t)(s->size[dim] - 1);
    }
    return -1;
}

fa_status fa_span_rows_apart(const fa_span *s)
{
    uint64_t extent;
    int dim = short_step(s, &extent);
    if (dim < 0)
        return FA_OK;
    return fa_fail(FA_INVALID, "args: %s%s is %lld; accepted: a stride of at least %lld elements, so that rows of %s do not overlap",
                   s->operand->name, field_name(s->operand, dim), (long long)s->stride[dim], (long long)(extent / (unsigned)s->bytes),
                   s->operand->name);
}

/* Bytes of all rows of one part, without gaps; -1 = more than 2^63. */
static int64_t packed_bytes(const fa_span *s)
{
    int64_t n = s->operand->strided ? s->row : s->high;
    for (int i = 0; i < 3 && s->operand->strided && n >= 0; i++)
        if (__builtin_mul_overflow(n, s->size[i], &n))
            return -1;
    return n;
}

fa_status fa_span_parts(fa_span *s, const fa_args *args)
{
    const fa_operand *o = s->operand;
    const char *field = field_name(o, PARTS);
    int64_t given = *(const int64_t *)(const void *)((const char *)args + o->parts_at), bytes = packed_bytes(s), reach;
    uint64_t extent;
    fa_status st = o->strided && s->some ? fa_span_rows_apart(s) : FA_OK;
    s->some = s->some && args->parts > 0;
    s->size[PARTS] = args->parts;
    if (st != FA_OK || !s->some || args->parts == 1)
        return st;
    s->stride[PARTS] = given ? given : bytes / s->bytes;
    if (bytes < 0 || __builtin_mul_overflow(s->stride[PARTS], s->bytes, &reach) || __builtin_mul_overflow(reach, args->parts - 1, &reach) ||
        __builtin_add_overflow(reach < 0 ? s->low : s->high, reach, reach < 0 ? &s->low : &s->high))
        return fa_fail(FA_INVALID, "args: %s%s is %lld and parts %d; accepted: offsets below 2^63 bytes", o->name, field, (long long)given,
                       args->parts);
    s->bits |= (unsigned)(s->stride[PARTS] * s->bytes);
    if (o->strided ? short_step(s, &extent) >= 0 : llabs(s->stride[PARTS]) < bytes / s->bytes)
        return fa_fail(
            FA_INVALID,
            "args: %s%s is %lld and parts %d; accepted: a stride with which no two parts share a row, as %lld or more, or 0 for a "
            "packed part of %lld elements",
            o->name, field, (long long)given, args->parts, (long long)((s->high - s->low - llabs(reach)) / s->bytes),
            (long long)(bytes / s->bytes));
    return FA_OK;
}

/* Whether they may share a byte, as all between their first and last tells. */
static bool meet(const fa_span *a, const fa_span *b)
{
    return a->lo < b->hi && b->lo < a->hi && a->lo < a->hi && b->lo < b->hi;
}

static bool is_packed(const fa_span *s)
{
    int64_t step = s->row / s->bytes;
    for (int i = 2; i >= 0; step *= s->size[i--])
        if (s->size[i] > 1 && s->stride[i] != step)
            return false;
    return true;
}

/* Whether an output has the addresses of one of the parts, element for element: what is read there is read before it is written. */
static bool takes_place(const fa_span *out, const fa_span *in)
{
    if (!in->operand->parts_at || in->bytes != out->bytes || in->operand->strided != out->operand->strided)
        return false;
    int64_t far = (int64_t)((out->lo - (uint64_t)out->low) - (in->lo - (uint64_t)in->low)), step = in->stride[PARTS] * in->bytes;
    if (in->operand->strided ? memcmp(in->stride, out->stride, 3 * sizeof *in->stride) != 0 : !is_packed(out))
        return false;
    return far == 0 || (step != 0 && far % step == 0 && far / step > 0 && far / step < in->size[PARTS]);
}

/* Whether the n-th pair that meets was found apart before, as far from each other; notes them for the next time where not. */
static bool seen_before(fa_apart *known, int n, int i, int k, uint64_t distance)
{
    if (!known || n >= FA_APART_MAX)
        return false;
    uint32_t pair = (uint32_t)(i * FA_SPANS_MAX + k + 1);
    bool same = known->pair[n] == pair && known->distance[n] == distance;
    known->pair[n] = pair;
    known->distance[n] = distance;
    return same;
}

fa_status fa_spans_apart(const fa_span *s, int n, fa_apart *known)
{
    int met = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; s[i].operand->output && k < n; k++) {
            if (k == i || (k < i && s[k].operand->output) || !meet(&s[i], &s[k]) || seen_before(known, met++, i, k, s[i].lo - s[k].lo) ||
                takes_place(&s[i], &s[k]) || !fa_overlap(&s[i], &s[k]))
                continue;
            if (known)
                *known = (fa_apart){ .pair = { 0 } };
            return fa_fail(FA_INVALID, "args: %s overlaps %s; accepted: bytes of its own%s", s[i].operand->name, s[k].operand->name,
                           s[k].operand->parts_at ? ", or all of one part's, with its type and strides" : "");
        }
    return FA_OK;
}
