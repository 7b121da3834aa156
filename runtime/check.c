/* check: fa_args row by row, in 64 bits and with every overflow looked for. */
#include "check.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "map.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOG2E 1.4426950408889634

fa_status fa_check_size(const void *s, uint32_t size, size_t least, size_t known, const char *name)
{
    if (size < least)
        return fa_fail(FA_INVALID, "%s: size is %u; accepted: sizeof(fa_%s) = %zu, set by its INIT macro", name, size, name,
                       known);
    for (size_t i = known; i < size; i++)
        if (((const char *)s)[i])
            return fa_fail(FA_INVALID,
                           "%s: size is %u and byte %zu is set; this library knows %zu bytes: it is older than the header",
                           name, size, i, known);
    return FA_OK;
}

fa_status fa_check_problem(fa_problem *out, const fa_problem *p)
{
    if (!p)
        return fa_fail(FA_INVALID, "problem: NULL");
    fa_status st = fa_check_size(p, p->size, offsetof(fa_problem, dv), sizeof *p, "problem");
    return st == FA_OK ? fa_problem_normalize(out, p) : st;
}

fa_status fa_check_options(fa_options *out, const fa_options *opt)
{
    fa_options o = FA_OPTIONS_INIT;
    if (opt) {
        fa_status st = fa_check_size(opt, opt->size, offsetof(fa_options, cache_dir), sizeof o, "options");
        if (st != FA_OK)
            return st;
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
        o.size = sizeof o;
    }
    if (o.log_level < FA_LOG_ERROR || o.log_level > FA_LOG_DEBUG)
        return fa_fail(FA_INVALID, "options: log_level is %d; accepted: 0 (error) to 3 (debug)", o.log_level);
    if (o.sram_budget < 0)
        return fa_fail(FA_INVALID, "options: sram_budget is %d; accepted: bytes, or 0 for all that the chip offers",
                       o.sram_budget);
    if (o.bundle_only != 0 && o.bundle_only != 1)
        return fa_fail(FA_INVALID, "options: bundle_only is %d; accepted: 0, 1", o.bundle_only);
    if (o.in_order != 0 && o.in_order != 1)
        return fa_fail(FA_INVALID, "options: in_order is %d; accepted: 0, 1", o.in_order);
    if (o.cache_limit < -1)
        return fa_fail(FA_INVALID, "options: cache_limit is %lld; accepted: bytes, 0 for 4 GiB, or -1 for any amount",
                       (long long)o.cache_limit);
    *out = o;
    return FA_OK;
}

_Static_assert(offsetof(fa_args, cu_seqlens_q) % 8 == 0 && sizeof(fa_args) % 8 == 0, "what is unread is looked at by 8 bytes");

/* Fields that no operation of this version reads, in the order of fagen.h. */
static const struct {
    const char *name, *what;
    size_t at, bytes;
} unread[] = {
#define X(field, what) { #field, what, offsetof(fa_args, field), sizeof((fa_args *)0)->field },
    FA_UNREAD_ARGS(X)
#undef X
};

/* Whether the operation has an operand there. */
static bool is_read(const fa_operation *op, size_t at)
{
    for (int i = 0; i < op->n; i++)
        if (op->operand[i].at == at)
            return true;
    return false;
}

static fa_status check_unread(const fa_args *a, const fa_operation *op)
{
    static const char zero[sizeof(fa_tensor)];
    const uint64_t *word = (const void *)&a->cu_seqlens_q, *end = (const void *)(a + 1);
    uint64_t any = 0;
    for (; word < end; word++)
        any |= *word;
    if (!any)
        return FA_OK;
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++)
        if (memcmp((const char *)a + unread[i].at, zero, unread[i].bytes) && !is_read(op, unread[i].at))
            return fa_fail(FA_UNSUPPORTED, "args: %s is set: %s, which this version does not compute; accepted: 0", unread[i].name, unread[i].what);
    return FA_OK;
}

static fa_status check_op(const fa_args *a, const fa_operation **op)
{
    static const uint32_t known = FA_BROADCAST | FA_BATCH_INVARIANT | FA_DETERMINISTIC | FA_ACCUMULATE;
    *op = fa_operation_find(a->op);
    if (!*op)
        return fa_fail(FA_INVALID, "args: op is %d; accepted: FA_FORWARD (%d)", a->op, FA_FORWARD);
    if (!(*op)->n)
        return fa_fail(FA_UNSUPPORTED, "args: op is %d (%s), which this version does not compute; accepted: FA_FORWARD (%d)", a->op, (*op)->name, FA_FORWARD);
    if (a->flags & ~(uint32_t)FA_BROADCAST)
        return fa_fail(a->flags & ~known ? FA_INVALID : FA_UNSUPPORTED, "args: flags is %#x; accepted%s: FA_BROADCAST (%#x), or 0", a->flags,
                       a->flags & ~known ? "" : " by this version", FA_BROADCAST);
    return check_unread(a, *op);
}

/* The scalars: those of the problem go to *p, in the form fa_problem_normalize leaves. */
static fa_status check_scalars(fa_problem *p, const fa_args *a)
{
    const struct {
        const char *name;
        int64_t v, least, most;
    } rows[] = {
        {"b", a->b, 0, INT32_MAX},
        {"hq", a->hq, 1, 1 << 16},
        {"hkv", a->hkv, 1, 1 << 16},
        {"sq", a->sq, 0, FA_MAX_LENGTH},
        {"sk", a->sk, 0, FA_MAX_LENGTH},
        {"diagonal", a->diagonal, FA_BOTTOM_RIGHT, FA_OFFSET},
        {"window_left", a->mask == FA_MASK_WINDOW ? a->window_left : -1, -1, INT32_MAX},
        {"window_right", a->mask == FA_MASK_WINDOW ? a->window_right : -1, -1, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].v < rows[i].least || rows[i].v > rows[i].most)
            return fa_fail(FA_INVALID, "args: %s is %lld; accepted: %lld to %lld", rows[i].name, (long long)rows[i].v,
                           (long long)rows[i].least, (long long)rows[i].most);
    if (a->hq % a->hkv)
        return fa_fail(FA_INVALID, "args: hq is %d; accepted with hkv=%d: a multiple of it", a->hq, a->hkv);
    if (!(a->scale >= 0) || isinf(a->scale))
        return fa_fail(FA_INVALID, "args: scale is %g; accepted: > 0 and finite, or 0 for 1/sqrt(d)", (double)a->scale);
    fa_problem q = {.size = sizeof q, .dtype = a->dtype, .d = a->d, .dv = a->dv, .mask = a->mask, .o_dtype = a->o_dtype, .op = a->op};
    fa_status st = fa_problem_normalize(p, &q);
    if (st != FA_OK)
        return fa_wrap(st, "args");
    p->b = a->b;
    p->hq = a->hq;
    p->hkv = a->hkv;
    p->sq = a->sq;
    p->sk = a->sk;
    return FA_OK;
}

/* An operand's geometry: strides in elements with those of dimensions of length 1 at 0, and the bytes it spans. */
typedef struct span {
    const char *name;
    int64_t stride[3], size[3]; /* batch, sequence, head */
    int64_t row;                /* bytes of a row */
    uint64_t lo, hi;            /* addresses [lo, hi); equal where it has no element, or is not given */
    unsigned bits;              /* all that must be aligned, or-ed together */
} span;

/* Packed strides where all are 0. False on overflow. */
static bool packed(int64_t stride[3], const int64_t size[3], int64_t d)
{
    stride[2] = d;
    return !__builtin_mul_overflow(size[2], d, &stride[1]) && !__builtin_mul_overflow(size[1], stride[1], &stride[0]);
}

/* zero: strides of 0 are meant, or refused elsewhere. */
static fa_status span_of_tensor(span *s, const char *name, const fa_tensor *t, const fa_dims *dims, int bytes, bool tensors, bool zero)
{
    static const char *const field[3] = {"sb", "ss", "sh"};
    const int64_t *size = dims->of;
    int64_t low = 0, high = 0;
    s->row = dims->of[3] * bytes;
    memcpy(s->size, size, sizeof s->size);
    s->stride[0] = t->sb;
    s->stride[1] = t->ss;
    s->stride[2] = t->sh;
    bool all = !t->sb && !t->ss && !t->sh;
    zero = zero || all || !size[0] || !size[1] || !size[2]; /* packed strides of an empty tensor may be 0 */
    if (all && !packed(s->stride, size, dims->of[3]))
        return fa_fail(FA_INVALID, "args: %s: b * s * h * d exceeds 2^63 elements", name);
    s->bits = (unsigned)s->row;
    for (int i = 0; i < 3; i++) {
        int64_t reach;
        if (size[i] <= 1)
            s->stride[i] = 0;
        else if (!s->stride[i] && !zero)
            return fa_fail(FA_INVALID,
                           "args: %s.%s is 0 and the dimension is %lld long; accepted: its stride in elements, 0 in all of sb, ss and sh for "
                           "packed [b, s, h, d], or FA_BROADCAST in flags where each index is the same element",
                           name, field[i], (long long)size[i]);
        if (__builtin_mul_overflow(s->stride[i], bytes, &reach) ||
            __builtin_mul_overflow(reach, size[i] ? size[i] - 1 : 0, &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return fa_fail(FA_INVALID, "args: %s.%s is %lld; accepted: offsets below 2^63 bytes", name, field[i],
                           (long long)s->stride[i]);
        s->bits |= (unsigned)(s->stride[i] * bytes);
    }
    if (!size[0] || !size[1] || !size[2] || !tensors)
        return FA_OK;
    uint64_t at = (uint64_t)(uintptr_t)t->ptr;
    if (!at)
        return fa_fail(FA_INVALID, "args: %s.ptr is NULL; accepted: a device address", name);
    if (at % (unsigned)bytes)
        return fa_fail(FA_INVALID, "args: %s.ptr is %p; accepted: a multiple of the element's %d bytes", name, t->ptr, bytes);
    if (__builtin_add_overflow(at, low, &s->lo) || __builtin_add_overflow(at, high, &s->hi) ||
        __builtin_add_overflow(s->hi, s->row, &s->hi))
        return fa_fail(FA_INVALID, "args: %s: its strides lead outside the address space", name);
    s->bits |= (unsigned)at;
    return FA_OK;
}

/* Elements packed behind a pointer. */
static fa_status span_of_pointer(span *s, const fa_operand *o, const void *ptr, const fa_dims *dims, int bytes, bool tensors)
{
    uint64_t at = (uint64_t)(uintptr_t)ptr, size = (uint64_t)bytes;
    bool overflow = false;
    if (!tensors)
        return FA_OK;
    if (!at && !o->optional)
        return fa_fail(FA_INVALID, "args: %s is NULL; accepted: a device address", o->name);
    if (at % (unsigned)bytes)
        return fa_fail(FA_INVALID, "args: %s is %p; accepted: a multiple of %d bytes%s", o->name, ptr, bytes, o->optional ? ", or NULL" : "");
    if (!at)
        return FA_OK;
    for (int i = 0; i < o->rank; i++)
        overflow = overflow || __builtin_mul_overflow(size, (uint64_t)dims->of[i], &size);
    s->lo = at;
    if (overflow || __builtin_add_overflow(at, size, &s->hi)) {
        char extents[64];
        fa_operand_print(extents, sizeof extents, o);
        return fa_fail(FA_INVALID, "args: %s: its %s values lead outside the address space", o->name, extents);
    }
    return FA_OK;
}

static fa_status span_of(span *s, const fa_operand *o, const fa_args *a, const fa_call *c, bool tensors)
{
    const void *field = (const char *)a + o->at;
    fa_dims dims;
    int bytes = fa_operand_bytes(o, &c->problem);
    fa_operand_dims(&dims, o, &c->sizes);
    s->name = o->name;
    s->stride[0] = s->stride[1] = s->stride[2] = 0;
    s->lo = s->hi = 0;
    s->bits = 0;
    if (o->strided) /* strides of 0 of outputs: check_output refuses them */
        return span_of_tensor(s, o->name, field, &dims, bytes, tensors, o->output || a->flags & FA_BROADCAST);
    return span_of_pointer(s, o, *(void *const *)field, &dims, bytes, tensors);
}

/* Rows of an output must not share bytes: each dimension, from the smallest stride up, has to step over all below it. */
static fa_status check_output(const span *o, int bytes)
{
    static const char *const field[3] = {"sb", "ss", "sh"};
    int order[3] = {0, 1, 2};
    uint64_t extent = (uint64_t)o->row; /* unsigned: strides of both signs may add up to 2^64 */
    for (int i = 1; i < 3; i++)
        for (int j = i; j > 0 && llabs(o->stride[order[j]]) < llabs(o->stride[order[j - 1]]); j--) {
            int swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
    for (int i = 0; i < 3; i++) {
        int dim = order[i];
        uint64_t step = (uint64_t)llabs(o->stride[dim]) * (unsigned)bytes;
        if (o->size[dim] <= 1)
            continue;
        if (step < extent)
            return fa_fail(
                FA_INVALID,
                "args: %s.%s is %lld; accepted: a stride of at least %lld elements, so that rows of %s do not overlap",
                o->name, field[dim], (long long)o->stride[dim], (long long)(extent / (unsigned)bytes), o->name);
        extent += step * (uint64_t)(o->size[dim] - 1);
    }
    return FA_OK;
}

static bool meet(const span *a, const span *b)
{
    return a->lo < b->hi && b->lo < a->hi && a->lo < a->hi && b->lo < b->hi;
}

/* An output shares no byte with any other operand. */
static fa_status check_overlap(const fa_operation *op, const span *s)
{
    for (int i = 0; i < op->n; i++)
        for (int k = 0; op->operand[i].output && k < op->n; k++)
            if (k != i && (k > i || !op->operand[k].output) && meet(&s[i], &s[k]))
                return fa_fail(FA_INVALID, "args: %s overlaps %s; accepted: bytes of its own", s[i].name, s[k].name);
    return FA_OK;
}

/* The mask as two diagonals, clamped so that the kernel's 32-bit arithmetic cannot wrap. */
static int32_t diagonal(int64_t x, const fa_args *a)
{
    return (int32_t)(x < -(int64_t)a->sq ? -(int64_t)a->sq : x > a->sk ? a->sk : x);
}

static void fill_mask(fa_values *p, const fa_args *a)
{
    int64_t off = a->diagonal == FA_TOP_LEFT ? 0 : a->diagonal == FA_OFFSET ? a->offset : (int64_t)a->sk - a->sq;
    bool window = a->mask == FA_MASK_WINDOW;
    bool left = window && a->window_left >= 0;
    bool right = a->mask == FA_MASK_CAUSAL || (window && a->window_right >= 0);
    p->diag_lo = left ? diagonal(off - a->window_left, a) : -a->sq;
    p->diag_hi = right ? diagonal(off + (window ? a->window_right : 0), a) : a->sk;
    p->key_base = fa_map_key_base(p);
}

static void fill(fa_call *c, const fa_args *a, const span *s)
{
    fa_values *v = &c->values;
    for (int i = 0; i < c->op->n; i++) {
        v->operand[i].address = (uint64_t)(uintptr_t)fa_operand_address(&c->op->operand[i], a);
        memcpy(v->operand[i].stride, s[i].stride, sizeof s[i].stride);
    }
    v->workspace = (uint64_t)(uintptr_t)a->workspace;
    v->scale = a->scale > 0 ? a->scale : (float)(1 / sqrt((double)a->d));
    v->scale_log2 = (float)(v->scale * LOG2E);
    v->b = a->b;
    v->hq = a->hq;
    v->hkv = a->hkv;
    v->group = a->hq / a->hkv;
    v->sq = a->sq;
    v->sk = a->sk;
    fill_mask(v, a);
    c->workspace_size = a->workspace_size;
}

static fa_status check_tensors(fa_call *out, const fa_args *a, bool tensors)
{
    const fa_operation *op = out->op;
    span s[FA_OPERANDS_MAX];
    unsigned bits = 16;
    for (int i = 0; i < op->n; i++) {
        fa_status st = span_of(&s[i], &op->operand[i], a, out, tensors);
        if (st != FA_OK)
            return st;
        bits |= s[i].bits;
    }
    for (int i = 0; i < op->n; i++)
        if (op->operand[i].output && op->operand[i].strided) {
            fa_status st = check_output(&s[i], fa_operand_bytes(&op->operand[i], &out->problem));
            if (st != FA_OK)
                return st;
        }
    fa_status st = tensors ? check_overlap(op, s) : FA_OK;
    if (st != FA_OK)
        return st;
    out->problem.align = (int32_t)(bits & -bits);
    fill(out, a, s);
    return FA_OK;
}

/* Arguments of any size as those of this header: *args becomes *copy where the sizes differ. Nothing past the size is read. */
static fa_status take(const fa_args **args, fa_args *copy)
{
    const fa_args *a = *args;
    if (!a)
        return fa_fail(FA_INVALID, "args: NULL");
    if (a->size == sizeof *a)
        return FA_OK;
    fa_status st = fa_check_size(a, a->size, offsetof(fa_args, workspace), sizeof *a, "args");
    if (st != FA_OK)
        return st;
    memset(copy, 0, sizeof *copy);
    memcpy(copy, a, a->size < sizeof *copy ? a->size : sizeof *copy);
    *args = copy;
    return FA_OK;
}

static fa_status check(fa_call *out, const fa_args *args, bool tensors)
{
    fa_status st = check_op(args, &out->op);
    if (st == FA_OK)
        st = check_scalars(&out->problem, args);
    if (st != FA_OK)
        return st;
    out->sizes = fa_sizes_of(&out->problem, 0);
    out->empty = args->b == 0 || args->sq == 0;
    if (out->empty) {
        memset(&out->values, 0, sizeof out->values);
        out->workspace_size = 0;
        return FA_OK;
    }
    out->problem.sk = args->sk ? args->sk : 1;
    return check_tensors(out, args, tensors);
}

fa_status fa_check_args(fa_call *out, const fa_args *args, bool tensors)
{
    fa_args copy;
    fa_status st = take(&args, &copy);
    return st == FA_OK ? check(out, args, tensors) : st;
}

fa_status fa_check_given(fa_call *out, const fa_args *args)
{
    fa_args copy;
    fa_status st = take(&args, &copy);
    return st == FA_OK ? check(out, args, args->q.ptr != NULL) : st;
}

fa_status fa_problem_of(const fa_args *args, fa_problem *out)
{
    fa_call call;
    if (!out)
        return fa_fail(FA_INVALID, "out: NULL; accepted: where to write the problem");
    fa_status st = args ? fa_check_given(&call, args) : fa_fail(FA_INVALID, "args: NULL");
    if (st == FA_OK)
        *out = call.problem;
    return st;
}

void fa_check_plain(fa_problem *p)
{
    p->align = p->align < 8 ? p->align : 8;
}

fa_status fa_check_workspace(const fa_call *call, size_t need)
{
    uint64_t at = call->values.workspace, end;
    if (need == 0)
        return FA_OK;
    if (call->workspace_size < need)
        return fa_fail(FA_INVALID, "args: workspace_size is %zu; accepted: at least %zu, as fa_workspace_size() tells",
                       call->workspace_size, need);
    if (!at || at % 256)
        return fa_fail(FA_INVALID, "args: workspace is %#llx; accepted: a device address that is a multiple of 256",
                       (unsigned long long)at);
    if (__builtin_add_overflow(at, (uint64_t)need, &end))
        return fa_fail(FA_INVALID, "args: workspace: its %zu bytes lead outside the address space", need);
    return FA_OK;
}
