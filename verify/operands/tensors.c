/* tensors: operands laid out, filled and read back. */
#include "tensors.h"
#include "gen/error.h"
#include "gen/format.h"
#include "gen/problem.h"
#include "number.h"
#include "random.h"
#include "runtime/args/lengths.h"
#include "sim/sim.h"
#include "slots.h"
#include <stdlib.h>
#include <string.h>

#define PATTERN_CODES 1048573 /* blocks of codes of few bits, likewise */
#define PATTERN 4194301       /* elements of random data, a prime, laid end to end through the tensors */

static fa_status check(const fa_tensors *t, CUresult r, const char *call)
{
    return fa_driver_check(fa_context_driver(t->ctx), r, call);
}

static size_t round_up(size_t v)
{
    return (v + 255) / 256 * 256;
}

static size_t size_of(const fa_tensors *t, int i)
{
    return t->count[i] * (size_t)fa_operand_bytes(&t->op->operand[i], &t->problem);
}

/* Normal inputs of the type of Q are filled as one. */
static int group_of(const fa_tensors *t, const fa_operand *o)
{
    return o->output ? 2 : o->drawn != FA_DRAWN_NORMAL || fa_operand_dtype(o, &t->problem) != t->problem.dtype;
}

/* Operands that lengths bring, where these have them; LSE where its strides are of the class. */
static bool is_asked_for(const fa_tensors *t, const fa_operand *o, bool optional)
{
    if (!fa_operand_present(o, &t->problem))
        return false;
    if (o->drawn == FA_DRAWN_SEQUENCES)
        return fa_operand_address(o, &t->ragged.args) != NULL;
    if (o->output && o->type == FA_TYPE_U64) /* which is added to */
        return false;
    return !o->optional || optional || (o->strides_at && t->problem.features & FA_FEATURE_LSE_STRIDES);
}

static void set_strides(fa_tensors *t, const fa_operand *o, const fa_dims *d)
{
    const int64_t strides[3] = { d->of[1] * d->of[2], o->class_at && d->of[1] == 1 ? 0 : d->of[2], 1 };
    if (o->class_at || (o->strides_at && t->problem.features & FA_FEATURE_LSE_STRIDES))
        memcpy((char *)&t->args + o->strides_at, strides, sizeof strides);
}

/* With the lengths and tables that *t has. */
static fa_status lay(fa_tensors *t, bool optional)
{
    const fa_problem *p = &t->problem;
    fa_sizes sizes = fa_sizes_of(p, 0);
    char title[FA_OPERAND_TITLE];
    fa_lengths_sizes(&sizes, &t->ragged.args);
    if (t->ragged.args.size)
        fa_ragged_apply(&t->ragged, &t->args);
    for (int group = 0; group < 3; group++) {
        for (int i = 0; i < t->op->n; i++) {
            const fa_operand *o = &t->op->operand[i];
            fa_dims d;
            size_t bytes = (size_t)fa_operand_bytes(o, p), n = 1;
            fa_operand_dims(&d, o, &sizes);
            if (group_of(t, o) != group || !is_asked_for(t, o, optional))
                continue;
            for (int k = 0; k < 4; k++)
                if (__builtin_mul_overflow(n, (size_t)d.of[k], &n))
                    n = SIZE_MAX / 2;
            if (__builtin_mul_overflow(n, bytes, &bytes) || bytes > SIZE_MAX / 4 || t->bytes > SIZE_MAX / 4)
                return fa_fail(FA_NOMEM, "%s: more bytes than the address space has", fa_operand_title(title, o));
            set_strides(t, o, &d);
            t->count[i] = n;
            t->offset[i] = t->bytes;
            t->bytes += round_up(bytes);
        }
        if (group == 0)
            t->inputs = t->bytes;
    }
    return FA_OK;
}

static fa_status begin(fa_tensors *out, fa_context *ctx, const fa_problem *p, const fa_ragged *given)
{
    *out = (fa_tensors){ .ctx = ctx, .op = fa_operation_find(p->op), .problem = *p, .args = fa_operation_args(p) };
    return given ? fa_ragged_copy(&out->ragged, given) : fa_ragged_of(&out->ragged, p, 1, 0);
}

fa_status fa_tensors_lay(fa_tensors *out, fa_context *ctx, const fa_problem *p, bool optional, const fa_ragged *given)
{
    fa_status st = begin(out, ctx, p, given);
    return st == FA_OK ? lay(out, optional) : st;
}

static void name_operand(fa_tensors *t, int i, CUdeviceptr at)
{
    t->at[i] = at;
    fa_operand_set(&t->op->operand[i], &t->args, (void *)(uintptr_t)at, 0, 0, 0);
}

/* Operands of the score program, the same for all sets. */
static fa_status open_score(fa_tensors *t)
{
    fa_sizes sizes = fa_sizes_of(&t->problem, 0);
    fa_lengths_sizes(&sizes, &t->ragged.args);
    fa_status st = fa_score_operands_draw(&t->score, &t->problem, &sizes, NULL, 1, false);
    if (st == FA_OK)
        st = fa_score_operands_upload(&t->score, t->ctx, fa_context_driver(t->ctx));
    fa_score_operands_set(&t->score, &t->args);
    return st;
}

/* A piece for each. */
static fa_status reserve(fa_tensors *t)
{
    for (int i = 0; i < t->op->n; i++) {
        CUdeviceptr at;
        char title[FA_OPERAND_TITLE];
        if (!t->count[i])
            continue;
        CUresult r = fa_context_driver(t->ctx)->cuMemAlloc(&at, size_of(t, i));
        if (r != CUDA_SUCCESS)
            return fa_wrap(check(t, r, "cuMemAlloc"), "%s: %zu bytes of device memory", fa_operand_title(title, &t->op->operand[i]),
                           size_of(t, i));
        name_operand(t, i, at);
    }
    return open_score(t);
}

fa_status fa_tensors_reserve_sets(fa_tensors *t, int sets)
{
    for (t->sets = 0; t->sets < sets; t->sets++) {
        CUresult r = fa_context_driver(t->ctx)->cuMemAlloc(&t->set[t->sets], t->bytes);
        if (r != CUDA_SUCCESS)
            return fa_wrap(check(t, r, "cuMemAlloc"), "tensors of %zu bytes to measure on", t->bytes);
    }
    fa_tensors_use(t, 0);
    return open_score(t);
}

void fa_tensors_use(fa_tensors *t, int set)
{
    for (int i = 0; i < t->op->n; i++)
        if (t->count[i])
            name_operand(t, i, t->set[set] + t->offset[i]);
}

void fa_tensors_close(fa_tensors *t)
{
    if (!t->ctx)
        return;
    const cu_driver *d = fa_context_driver(t->ctx);
    for (int i = 0; i < t->sets; i++)
        d->cuMemFree(t->set[i]);
    for (int i = 0; i < FA_OPERANDS_MAX && !t->sets; i++)
        if (t->at[i])
            d->cuMemFree(t->at[i]);
    fa_score_operands_close(&t->score);
    fa_scratch_free(&t->scratch, t->ctx);
    fa_ragged_close(&t->ragged);
    *t = (fa_tensors){ .ctx = NULL };
}

static fa_status open_all(fa_tensors *out, fa_context *ctx, const fa_problem *p, const fa_ragged *given)
{
    fa_status st = begin(out, ctx, p, given);
    if (st == FA_OK)
        st = lay(out, true);
    if (st == FA_OK)
        st = reserve(out);
    if (st != FA_OK)
        fa_tensors_close(out);
    return st;
}

fa_status fa_tensors_open(fa_tensors *out, fa_context *ctx, const fa_problem *p)
{
    return open_all(out, ctx, p, NULL);
}

fa_status fa_tensors_open_ragged(fa_tensors *out, fa_context *ctx, const fa_problem *p, const fa_ragged *given)
{
    return open_all(out, ctx, p, given);
}

fa_status fa_tensors_sequences(const fa_tensors *t, fa_sequences *out)
{
    fa_args host = t->args;
    for (int i = 0; i < t->op->n; i++)
        if (t->op->operand[i].drawn == FA_DRAWN_SEQUENCES)
            fa_operand_set(&t->op->operand[i], &host, fa_operand_address(&t->op->operand[i], &t->ragged.args), 0, 0, 0);
    return fa_sequences_open(out, &t->problem, &host);
}

/* The kth block of a format: an element where it has no blocks. */
static void store_block(const fa_format *f, void *to, fa_tensor_value *value, void *user, int i, size_t k)
{
    float x[64];
    for (size_t j = 0; j < (size_t)f->block; j++)
        x[j] = value(user, i, k * (size_t)f->block + j);
    if (f->scale_dtype)
        fa_format_quantize_row(f, to, x, f->block);
    else
        fa_format_set_code(f, to, 0, fa_format_nearest(f, x[0]));
}

/* n elements from value(user, i, first ...), as the operand holds them. NULL: no memory, or interrupted. */
static uint8_t *make_values(const fa_tensors *t, int i, size_t n, fa_tensor_value *value, void *user)
{
    int dtype = fa_operand_dtype(&t->op->operand[i], &t->problem);
    size_t bytes = (size_t)fa_operand_bytes(&t->op->operand[i], &t->problem);
    uint8_t *host = calloc(n ? n : 1, bytes);
    char title[FA_OPERAND_TITLE];
    fa_drawn drawn = t->op->operand[i].drawn;
    const void *given = drawn == FA_DRAWN_SEQUENCES ? fa_operand_address(&t->op->operand[i], &t->ragged.args)
                        : drawn == FA_DRAWN_STATE   ? (const void *)t->rng
                                                    : NULL;
    const fa_format *f = fa_format_of(dtype);
    for (size_t k = 0; host && dtype && k < n && !sim_interrupted(); k++)
        if (f)
            store_block(f, host + k * bytes, value, user, i, k);
        else
            fa_number_store(host + k * bytes, value(user, i, k), dtype);
    if (host && drawn == FA_DRAWN_SLOTS)
        fa_slots_deal((int64_t *)(void *)host, (int64_t)n, t->args.pages, t->args.page_size);
    if (host && drawn == FA_DRAWN_POSITIONS)
        fa_positions_draw(host, (int64_t)n, (int32_t)bytes, t->args.rotary_positions, false, 1);
    if (host && given) /* other integers stay 0 */
        memcpy(host, given, n * bytes);
    if (!host)
        fa_fail(FA_NOMEM, "%s: %zu bytes of host memory", fa_operand_title(title, &t->op->operand[i]), n * bytes);
    return host;
}

/* Inputs that are outputs of another operation: what the library computes of the others. */
static fa_status follow(fa_tensors *t)
{
    const fa_operation *after = fa_operation_find(t->op->after);
    fa_args a = FA_ARGS_INIT;
    if (!t->op->follows)
        return FA_OK;
    a = t->args;
    a.op = after->op;
    a.flags &= after->flags;
    if (t->args.flags & FA_DETERMINISTIC) /* what is computed of them has the same bits on any chip only where they have */
        a.flags |= FA_BATCH_INVARIANT;
    for (int i = 0; i < t->op->n; i++)
        if (fa_operand_index(after, t->op->operand[i].name) < 0)
            fa_operand_set(&t->op->operand[i], &a, NULL, 0, 0, 0);
    a.grad_dtype = 0;
    return fa_wrap(fa_scratch_launch(&t->scratch, t->ctx, NULL, &a), "the inputs that op=%s computes", after->name);
}

fa_status fa_tensors_fill(fa_tensors *t, fa_tensor_value *value, void *user)
{
    fa_status st = FA_OK;
    for (int i = 0; i < t->op->n && st == FA_OK; i++) {
        if (t->op->operand[i].output || !t->count[i])
            continue;
        uint8_t *host = make_values(t, i, t->count[i], value, user);
        if (!host)
            return FA_NOMEM;
        st = sim_interrupted() ? fa_fail(FA_INTERRUPTED, "interrupted")
                               : check(t, fa_context_driver(t->ctx)->cuMemcpyHtoD(t->at[i], host, size_of(t, i)), "cuMemcpyHtoD");
        free(host);
    }
    return st == FA_OK ? follow(t) : st;
}

/* What Q and K of 8-bit integers are times as large as others, and their scales as small, where both have some: codes fill their range. */
static float codes_of(const fa_problem *p)
{
    return p->dtype == FA_S8 && p->q_scale_by && p->k_scale_by ? 32 : 1;
}

/* As the rows say. */
typedef struct drawing {
    const fa_operation *op;
    float codes;
    fa_random r;
} drawing;

static float draw(void *user, int operand, size_t i)
{
    drawing *d = user;
    float x = fa_random_normal(&d->r);
    int id = d->op->operand[operand].id;
    (void)i;
    if (d->op->operand[operand].drawn == FA_DRAWN_FACTOR)
        return fa_random_factor(x) / (id == FA_ID_q_scale || id == FA_ID_k_scale ? d->codes : 1);
    return id == FA_ID_q || id == FA_ID_k ? x * d->codes : x;
}

fa_status fa_tensors_random(fa_tensors *t, uint64_t seed)
{
    drawing d = { t->op, codes_of(&t->problem), { fa_random_mix(seed) } };
    return fa_tensors_fill(t, draw, &d);
}

/* The first set gets the pattern from the host, in doubling copies; the others copy it from there, shifted. */
static fa_status fill_inputs(fa_tensors *t)
{
    const cu_driver *d = fa_context_driver(t->ctx);
    size_t n = t->inputs, bytes = (size_t)fa_dtype_bytes(t->problem.dtype), pattern = PATTERN * bytes < n ? PATTERN * bytes : n;
    uint8_t *host = malloc(pattern);
    fa_random r = { 1 };
    if (!host)
        return fa_fail(FA_NOMEM, "no memory for %zu bytes of random data", pattern);
    for (size_t i = 0; i + bytes <= pattern; i += bytes)
        fa_number_store(host + i, fa_random_normal(&r) * codes_of(&t->problem), t->problem.dtype);
    fa_status st = check(t, d->cuMemcpyHtoD(t->set[0], host, pattern), "cuMemcpyHtoD");
    free(host);
    for (size_t at = pattern; at < n && st == FA_OK; at *= 2)
        st = check(t, d->cuMemcpyDtoDAsync(t->set[0] + at, t->set[0], at < n - at ? at : n - at, NULL), "cuMemcpyDtoDAsync");
    for (int i = 1; i < t->sets && st == FA_OK; i++) {
        size_t shift = round_up(n / (size_t)t->sets * (size_t)i);
        shift = shift < n ? shift : 0;
        st = check(t, d->cuMemcpyDtoDAsync(t->set[i], t->set[0] + shift, n - shift, NULL), "cuMemcpyDtoDAsync");
        if (st == FA_OK && shift)
            st = check(t, d->cuMemcpyDtoDAsync(t->set[i] + n - shift, t->set[0], shift, NULL), "cuMemcpyDtoDAsync");
    }
    return st;
}

/* Another input: the same in every set. Codes of few bits repeat after PATTERN_CODES blocks, by copies of the device. */
static fa_status fill_other(fa_tensors *t, int i)
{
    const cu_driver *driver = fa_context_driver(t->ctx);
    drawing d = { t->op, codes_of(&t->problem), { fa_random_mix((uint64_t)i) } };
    bool codes = fa_format_of(fa_operand_dtype(&t->op->operand[i], &t->problem)) != NULL;
    size_t n = codes && t->count[i] > PATTERN_CODES ? PATTERN_CODES : t->count[i], all = size_of(t, i),
           bytes = all / (t->count[i] ? t->count[i] : 1);
    uint8_t *host = make_values(t, i, n, draw, &d);
    fa_status st = host ? FA_OK : FA_NOMEM;
    for (int set = 0; set < t->sets && st == FA_OK; set++) {
        CUdeviceptr to = t->set[set] + t->offset[i];
        st = check(t, driver->cuMemcpyHtoD(to, host, n * bytes), "cuMemcpyHtoD");
        for (size_t at = n * bytes; at < all && st == FA_OK; at *= 2)
            st = check(t, driver->cuMemcpyDtoDAsync(to + at, to, at < all - at ? at : all - at, NULL), "cuMemcpyDtoDAsync");
    }
    free(host);
    return st;
}

fa_status fa_tensors_pattern(fa_tensors *t)
{
    fa_status st = fill_inputs(t);
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (t->count[i] && group_of(t, &t->op->operand[i]) == 1)
            st = fill_other(t, i);
    for (int set = t->op->follows ? t->sets - 1 : -1; set >= 0 && st == FA_OK; set--) {
        fa_tensors_use(t, set);
        st = follow(t);
    }
    return st;
}

fa_status fa_tensors_launch(fa_tensors *t, const fa_plan *plan)
{
    return fa_scratch_launch(&t->scratch, t->ctx, plan, &t->args);
}

fa_status fa_tensors_get(const fa_tensors *t, int operand, float **out)
{
    const fa_operand *o = &t->op->operand[operand];
    int dtype = fa_operand_dtype(o, &t->problem);
    size_t bytes = (size_t)fa_operand_bytes(o, &t->problem), n = t->count[operand];
    uint8_t *raw = malloc(n ? n * bytes : 1);
    char title[FA_OPERAND_TITLE];
    fa_status st = FA_OK;
    *out = malloc(n ? n * sizeof **out : 1);
    if (!raw || !*out)
        st = fa_fail(FA_NOMEM, "%s: %zu elements of host memory", fa_operand_title(title, o), n);
    else if (n)
        st = check(t, fa_context_driver(t->ctx)->cuMemcpyDtoH(raw, t->at[operand], n * bytes), "cuMemcpyDtoH");
    for (size_t i = 0; st == FA_OK && i < n; i++)
        (*out)[i] = fa_number_load(raw + i * bytes, dtype);
    free(raw);
    if (st != FA_OK) {
        free(*out);
        *out = NULL;
    }
    return st;
}
