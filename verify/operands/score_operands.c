/* score_operands: shapes from those of the program, elements by a seed. */
#include "score_operands.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "gen/score/names.h"
#include "gen/score/shape.h"
#include "number.h"
#include "random.h"
#include "runtime/context/driver_cuda.h"
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MOST ((int64_t)1 << 26)
#define ANY_EXTENT 17 /* where the program leaves it to the launch */
#define INTEGERS 16   /* that arrays hold: 0 and on */
#define DOCUMENTS 3   /* numbers that rise, of an array that holds such */

/* What lies at an index in memory, as the kernels read it. */
static double load(fa_score_element e, const unsigned char *at, int64_t last)
{
    int64_t wide = 0;
    int32_t word = 0;
    switch (e) {
    case FA_SCORE_ELEMENT_BF16:
        return fa_number_load(at, FA_BF16);
    case FA_SCORE_ELEMENT_F16:
        return fa_number_load(at, FA_F16);
    case FA_SCORE_ELEMENT_I64:
        memcpy(&wide, at, sizeof wide);
        return (double)wide;
    case FA_SCORE_ELEMENT_U8:
        return *at;
    case FA_SCORE_ELEMENT_I32:
    case FA_SCORE_ELEMENT_BITS:
        memcpy(&word, at, sizeof word);
        return e == FA_SCORE_ELEMENT_I32 ? (double)word : (uint32_t)word >> (last & 31) & 1;
    default:
        return fa_number_load(at, FA_F32);
    }
}

static unsigned char *place(const fa_score_operands *o, int k, const int64_t *index)
{
    const fa_score_operand *operand = &o->program->ir.operand[k];
    int64_t at = 0;
    for (int r = 0; r < operand->rank; r++)
        at += (operand->element == FA_SCORE_ELEMENT_BITS && r == operand->rank - 1 ? index[r] / 32 : index[r]) * o->array[k].stride[r];
    return o->array[k].image + at * fa_score_element_bytes(operand->element);
}

static double read_element(void *user, int k, const int64_t *index)
{
    const fa_score_operands *o = user;
    const fa_score_operand *operand = &o->program->ir.operand[k];
    return o->array[k].image ? load(operand->element, place(o, k, index), index[operand->rank - 1]) : 0;
}

static void store(const fa_score_operands *o, int k, const int64_t *index, double v)
{
    const fa_score_operand *operand = &o->program->ir.operand[k];
    unsigned char *at = place(o, k, index);
    int64_t wide = operand->type == FA_SCORE_F32 ? 0 : (int64_t)v;
    int32_t n = (int32_t)wide;
    uint32_t word, bit = 1u << (index[operand->rank - 1] & 31);
    switch (operand->element) {
    case FA_SCORE_ELEMENT_I32:
        memcpy(at, &n, sizeof n);
        break;
    case FA_SCORE_ELEMENT_I64:
        memcpy(at, &wide, sizeof wide);
        break;
    case FA_SCORE_ELEMENT_U8:
        *at = (unsigned char)n;
        break;
    case FA_SCORE_ELEMENT_BITS:
        memcpy(&word, at, sizeof word);
        word = n & 1 ? word | bit : word & ~bit;
        memcpy(at, &word, sizeof word);
        break;
    default:
        fa_number_store(at, (float)v,
                        operand->element == FA_SCORE_ELEMENT_F32   ? FA_F32
                        : operand->element == FA_SCORE_ELEMENT_F16 ? FA_F16
                                                                   : FA_BF16);
    }
}

/* rises: as numbers of documents do, by the last index. */
static double draw(const fa_score_operands *o, int k, const int64_t *index, bool rises, fa_random *r)
{
    int last = o->program->ir.operand[k].rank - 1;
    if (rises)
        return (double)(index[last] * DOCUMENTS / o->data.extent[k][last]);
    return o->program->ir.operand[k].type == FA_SCORE_F32 ? (double)fa_random_normal(r) / 2 : fa_random_below(r, INTEGERS);
}

/* An array of which the class says how it lies; NULL: it lies anywhere. */
static const fa_score_plane *plane_of(const fa_score_operands *o, int k, const fa_problem *p)
{
    const fa_score_planes *planes = &o->program->planes;
    bool any = p->op != FA_FORWARD || fa_dtype_bytes(p->dtype) != 2 || p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_SCORE_ANYWHERE);
    for (int i = 0; !any && i < planes->n; i++)
        if (planes->of[i].operand == k)
            return &planes->of[i];
    return NULL;
}

/* Lines at multiples of 16 bytes, of keys side by side or of queries; with 16 bytes more where `gaps`. */
static void lay_aligned(fa_score_operands *o, int k, const fa_score_plane *plane, bool columns, bool gaps)
{
    const int64_t *n = o->data.extent[k], unit = 16 / plane->bytes;
    int last = plane->rank - 1, inner = columns ? plane->row_index : last, outer = columns ? last : plane->row_index;
    int64_t step = (n[inner] + unit - 1) / unit * unit + (gaps ? unit : 0), elements = n[inner];
    o->array[k].stride[inner] = 1;
    for (int at = last + 1; at >= 0; at--) { /* lines first */
        int i = at > last ? outer : at;
        if (i < 0 || i == inner || (at <= last && i == outer))
            continue;
        bool many = elements * n[i] > ELEMENTS_MOST, shares = many && i == outer;
        o->array[k].stride[i] = shares ? unit : many || o->array[k].shared ? 0 : step;
        o->array[k].shared = shares ? i + 1 : o->array[k].shared;
        elements *= many || o->array[k].shared ? 1 : n[i];
        step = shares ? step + unit * n[i] : o->array[k].stride[i] ? step * n[i] : step;
    }
    o->array[k].bytes = (size_t)step * (size_t)plane->bytes;
}

/* Strides of an array: packed, with rows of 3 more, or the same for one index. */
static void lay(fa_score_operands *o, int k, const fa_problem *p, fa_random *r, bool strided)
{
    const fa_score_operand *operand = &o->program->ir.operand[k];
    const fa_score_plane *plane = plane_of(o, k, p);
    if (plane) {
        lay_aligned(o, k, plane, plane->bytes == 2 && p->features & FA_FEATURE_SCORE_COLUMNS, strided && fa_random_below(r, 2));
        return;
    }
    int kind = strided ? fa_random_below(r, 3) : 0, same = kind == 2 && operand->rank > 1 ? fa_random_below(r, operand->rank) : -1;
    int64_t step = 1, elements = 1;
    for (int i = operand->rank - 1; i >= 0; i--) {
        int64_t n = o->data.extent[k][i];
        n = operand->element == FA_SCORE_ELEMENT_BITS && i == operand->rank - 1 ? (n + 31) / 32 : n;
        bool one = i == same || (i < operand->rank - 1 && elements * n > ELEMENTS_MOST);
        o->array[k].stride[i] = one ? 0 : step;
        elements *= one ? 1 : n;
        step *= one ? 1 : n + (kind == 1 && i == operand->rank - 1 ? 3 : 0);
    }
    o->array[k].bytes = (size_t)step * (size_t)fa_score_element_bytes(operand->element);
}

/* The next index in packed order, past those that read the same elements. */
static void advance(const fa_score_operands *o, int k, int64_t *index)
{
    for (int i = o->program->ir.operand[k].rank - 1; i >= 0; i--) {
        if (o->array[k].stride[i] && o->array[k].shared != i + 1 && ++index[i] < o->data.extent[k][i])
            return;
        index[i] = 0;
    }
}

static fa_status fill(fa_score_operands *o, int k, const fa_problem *p, fa_random *r, bool strided)
{
    const fa_score_operand *operand = &o->program->ir.operand[k];
    int64_t index[FA_SCORE_RANK_MAX] = { 0 }, elements = 1;
    lay(o, k, p, r, strided);
    int shared = o->array[k].shared - 1;
    for (int i = 0; i < operand->rank; i++)
        elements *= o->array[k].stride[i] && i != shared ? o->data.extent[k][i] : 1;
    o->array[k].image = malloc(o->array[k].bytes + 1);
    if (!o->array[k].image)
        return fa_fail(FA_NOMEM, "no memory for %zu bytes of %s", o->array[k].bytes, operand->name);
    memset(o->array[k].image, 0xff, o->array[k].bytes);
    bool words = operand->element == FA_SCORE_ELEMENT_I32 || operand->element == FA_SCORE_ELEMENT_I64;
    bool rises = words && fa_random_below(r, 2) > 0;
    for (; elements > 0; elements--) {
        store(o, k, index, draw(o, k, index, rises, r));
        advance(o, k, index);
    }
    for (int64_t n = 1; shared >= 0 && n < o->data.extent[k][shared]; n++) { /* what a line has that the one before has not */
        int inner = operand->rank - 1;
        for (int i = 0; i < operand->rank; i++)
            inner = o->array[k].stride[i] == 1 ? i : inner;
        index[shared] = n;
        for (int64_t m = o->array[k].stride[shared]; m > 0; m--) {
            index[inner] = o->data.extent[k][inner] - m > 0 ? o->data.extent[k][inner] - m : 0;
            store(o, k, index, draw(o, k, index, rises, r));
        }
    }
    return FA_OK;
}

void fa_score_operands_give(fa_score_operands *o, const fa_score_scalars *scalars)
{
    for (int k = 0; o->program && k < o->program->ir.operands; k++)
        if (o->program->ir.operand[k].scalar) {
            o->value[k].scalar = scalars->of[k];
            o->data.scalar[k] = o->program->ir.operand[k].type == FA_SCORE_F32 ? (double)(float)scalars->of[k] : scalars->of[k];
        }
}

fa_status fa_score_operands_fill(fa_score_operands *o, int k, fa_score_element_value *value, void *user)
{
    const fa_score_operand *operand = &o->program->ir.operand[k];
    int64_t index[FA_SCORE_RANK_MAX] = { 0 };
    size_t n = 1;
    for (int i = 0; i < operand->rank; i++) {
        n *= (size_t)o->value[k].extent[i];
        if ((!o->array[k].stride[i] || o->array[k].shared == i + 1) && o->value[k].extent[i] > 1)
            return fa_fail(FA_UNSUPPORTED, "%s has more elements than are filled one by one", operand->name);
    }
    for (size_t i = 0; o->array[k].image && i < n; i++) {
        store(o, k, index, value(user, i));
        advance(o, k, index);
    }
    return o->array[k].at
               ? fa_driver_check(o->driver, o->driver->cuMemcpyHtoD(o->array[k].at, o->array[k].image, o->array[k].bytes), "cuMemcpyHtoD")
               : FA_OK;
}

fa_status fa_score_operands_draw(fa_score_operands *out, const fa_problem *p, const fa_sizes *sizes, const fa_score_scalars *scalars,
                                 uint64_t seed, bool strided)
{
    const int64_t *of = sizes->of;
    const int64_t lengths[FA_SCORE_LENGTHS] = {
        [FA_SCORE_LENGTH_B] = of[FA_EXTENT_B],        [FA_SCORE_LENGTH_HQ] = of[FA_EXTENT_HQ], [FA_SCORE_LENGTH_HKV] = of[FA_EXTENT_HKV],
        [FA_SCORE_LENGTH_SQ] = of[FA_EXTENT_SQ],      [FA_SCORE_LENGTH_SK] = of[FA_EXTENT_SK], [FA_SCORE_LENGTH_TQ] = of[FA_EXTENT_TOTAL_Q],
        [FA_SCORE_LENGTH_TK] = of[FA_EXTENT_TOTAL_K],
    };
    fa_random r = { fa_random_mix(seed ^ 0x73636f7265) };
    fa_status st = FA_OK;
    *out = (fa_score_operands){ .program = fa_score_known(p) };
    if (!out->program)
        return FA_OK;
    out->data.read = read_element;
    out->data.user = out;
    out->data.group = p->hkv ? p->hq / p->hkv : 1;
    for (int k = 0; st == FA_OK && k < out->program->ir.operands; k++) {
        const fa_score_operand *operand = &out->program->ir.operand[k];
        out->value[k] = (fa_score_value)FA_SCORE_VALUE_INIT;
        if (operand->scalar) {
            double v = scalars ? scalars->of[k] : operand->value;
            out->value[k].scalar = v;
            out->data.scalar[k] = operand->type == FA_SCORE_F32 ? (double)(float)v : v;
            continue;
        }
        bool some = true;
        for (int i = 0; i < operand->rank; i++) {
            int64_t n = fa_score_shape_extent(&operand->extent[i], lengths);
            n = operand->extent[i].any ? ANY_EXTENT : n > 0 ? n : 0;
            out->value[k].extent[i] = (int32_t)n;
            out->data.extent[k][i] = n > 0 ? n : 1;
            some = some && n > 0;
        }
        if (some)
            st = fill(out, k, p, &r, strided);
        memcpy(out->value[k].stride, out->array[k].stride, sizeof out->value[k].stride);
    }
    return st;
}

fa_status fa_score_operands_upload(fa_score_operands *o, fa_context *ctx, const cu_driver *d)
{
    fa_status st = o->program ? fa_score_create(ctx, o->program->source, &o->object) : FA_OK;
    o->driver = d;
    for (int k = 0; st == FA_OK && o->program && k < o->program->ir.operands; k++) {
        size_t n = o->array[k].bytes;
        if (!o->array[k].image)
            continue;
        st = fa_driver_check(d, d->cuMemAlloc(&o->array[k].at, n), "cuMemAlloc");
        if (st == FA_OK)
            st = fa_driver_check(d, d->cuMemcpyHtoD(o->array[k].at, o->array[k].image, n), "cuMemcpyHtoD");
        o->value[k].ptr = (const void *)(uintptr_t)o->array[k].at;
        st = fa_wrap(st, "%s, %zu bytes", o->program->ir.operand[k].name, n);
    }
    return st;
}

void fa_score_operands_set(const fa_score_operands *o, fa_args *args)
{
    if (!o->program)
        return;
    args->score = o->object;
    args->score_values = o->value;
    args->score_value_count = o->program->ir.operands;
}

fa_status fa_score_operands_changed(const fa_score_operands *o, int *which)
{
    fa_status st = FA_OK;
    *which = -1;
    for (int k = 0; st == FA_OK && k < FA_SCORE_OPERANDS_MAX; k++) {
        if (!o->array[k].at)
            continue;
        unsigned char *back = malloc(o->array[k].bytes);
        st = back ? fa_driver_check(o->driver, o->driver->cuMemcpyDtoH(back, o->array[k].at, o->array[k].bytes), "cuMemcpyDtoH")
                  : fa_fail(FA_NOMEM, "no memory for %zu bytes of an operand", o->array[k].bytes);
        if (st == FA_OK && *which < 0 && memcmp(back, o->array[k].image, o->array[k].bytes) != 0)
            *which = k;
        free(back);
    }
    return st;
}

void fa_score_operands_close(fa_score_operands *o)
{
    for (int k = 0; k < FA_SCORE_OPERANDS_MAX; k++) {
        free(o->array[k].image);
        if (o->array[k].at)
            o->driver->cuMemFree(o->array[k].at);
        o->array[k].image = NULL;
        o->array[k].at = 0;
    }
    fa_score_destroy(o->object);
    o->object = NULL;
}
