/* append: places, rotation, transform and rounding of new rows, one by one. */
#include "append.h"
#include "gen/format.h"
#include "gen/problem.h"
#include "verify/operands/number.h"
#include <math.h>
#include <string.h>

/* Rounded by themselves, whatever the compiler would join. */
static float product(float a, float b)
{
    volatile float x = a * b;
    return x;
}

static float sum(float a, float b)
{
    volatile float x = a + b;
    return x;
}

/* Where a new row goes. */
typedef struct place {
    int64_t page, row, position;
    int32_t sequence;
    bool kept, turns; /* it has a place; a position with cosines and sines */
} place;

static int64_t within(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* First row and length of sequence i. */
typedef struct rows {
    int64_t first, n;
} rows;

static rows rows_of(const int32_t *cu, const int32_t *lengths, int32_t i, int32_t most, int32_t total)
{
    rows r = { 0, most };
    if (cu) {
        r.first = within(cu[i], 0, total);
        r.n = within(cu[i + 1], r.first, total) - r.first;
    }
    if (lengths)
        r.n = within(lengths[i], 0, r.n);
    r.n = within(r.n, 0, most);
    return r;
}

static int64_t given_position(const fa_args *a, int64_t token)
{
    int32_t x;
    int64_t y;
    if (a->position_bytes == 4) {
        memcpy(&x, (const uint8_t *)a->positions + token * 4, 4);
        return x;
    }
    memcpy(&y, (const uint8_t *)a->positions + token * 8, 8);
    return y;
}

/* Of new row `token` of all, key `key` of its sequence i. */
static place place_of(const fa_args *a, int64_t token, int32_t i, int64_t key, int64_t first_k)
{
    place at = { .page = a->cu_seqlens_k ? 0 : i, .row = first_k + key, .sequence = i };
    at.position = a->positions ? given_position(a, token) : key;
    at.kept = key >= 0;
    if (a->slots) {
        int64_t slot = a->slots[token];
        at.kept = slot >= 0 && slot < (int64_t)a->pages * a->page_size;
        at.page = at.kept ? slot / a->page_size : 0;
        at.row = at.kept ? slot % a->page_size : 0;
    } else if (a->page_table && at.kept) {
        int64_t stride =
            a->page_table_stride || a->flags & FA_BROADCAST ? a->page_table_stride : ((int64_t)a->sk + a->page_size - 1) / a->page_size;
        at.page = a->page_table[i * stride + key / a->page_size];
        at.row = key % a->page_size;
        at.kept = at.page >= 0 && at.page < a->pages;
    }
    at.turns = !a->cos_sin || (at.position >= 0 && at.position < a->rotary_positions);
    at.kept = at.kept && at.turns;
    return at;
}

static void rotate(float *x, const fa_args *a, int64_t position)
{
    int32_t half = a->rotary_dim / 2;
    int64_t bytes = fa_dtype_bytes(a->cos_sin_dtype);
    const uint8_t *row = (const uint8_t *)a->cos_sin + position * a->rotary_dim * bytes;
    for (int32_t i = 0; i < half; i++) {
        float c = fa_number_load(row + i * bytes, a->cos_sin_dtype), s = fa_number_load(row + (half + i) * bytes, a->cos_sin_dtype);
        float *first = a->rotary_style == FA_ROTARY_PAIRS ? x + 2 * i : x + i;
        float *second = a->rotary_style == FA_ROTARY_PAIRS ? first + 1 : first + half;
        float from = *first, to = *second;
        *first = sum(product(from, c), -product(to, s));
        *second = sum(product(to, c), product(from, s));
    }
}

static void transform(float *x, int32_t width)
{
    float factor = (float)(1 / sqrt((double)width));
    for (int32_t step = 1; step < width; step *= 2)
        for (int32_t i = 0; i < width; i++)
            if (!(i & step)) {
                float a = x[i], b = x[i + step];
                x[i] = sum(a, b);
                x[i + step] = sum(a, -b);
            }
    for (int32_t i = 0; i < width; i++)
        x[i] = product(x[i], factor);
}

/* What K and V of an append differ in. */
typedef struct side {
    fa_operand_id from, to, given, found; /* given, found: scales */
    int32_t width, dtype, by, found_by, flag;
    bool turns;
} side;

/* The codes of a row, by the scale that is given or found. */
static void quantize(const fa_append_call *c, const side *s, const fa_format *f, uint8_t *to, const float *x, const place *at, int32_t head)
{
    float scale = 1;
    if (f->scale_dtype) {
        fa_format_quantize_row(f, to, x, s->width);
        return;
    }
    if (s->by == FA_SCALE_TOKEN)
        memcpy(&scale, c->row(c->user, s->given, at->page, at->row, head), sizeof scale);
    else if (s->by)
        memcpy(&scale, c->row(c->user, s->given, at->sequence, 0, head), sizeof scale);
    if (s->found_by) {
        scale = fa_format_amax_scale(f, x, s->width);
        memcpy(c->row(c->user, s->found, at->page, at->row, head), &scale, sizeof scale);
    }
    for (int32_t i = 0; i < s->width; i++)
        fa_format_set_code(f, to, i, fa_format_quantize(f, x[i], scale));
}

/* One row of a head: from the type of what is appended to that of the destination. */
static void move(const fa_append_call *c, const side *s, int64_t batch, int64_t row, const place *at, int32_t head)
{
    float x[FA_MAX_HEAD_DIM];
    const fa_format *f = fa_format_of(s->dtype);
    const uint8_t *from = c->row(c->user, s->from, batch, row, head);
    bool same = s->to == FA_ID_q_out;
    uint8_t *to = c->row(c->user, s->to, same ? batch : at->page, same ? row : at->row, head);
    for (int32_t i = 0; i < s->width; i++)
        x[i] = fa_number_load(from + i * fa_dtype_bytes(c->problem.dtype), c->problem.dtype);
    if (s->turns)
        rotate(x, c->args, at->position);
    if (c->args->append_flags & s->flag)
        transform(x, s->width);
    if (f)
        quantize(c, s, f, to, x, at, head);
    for (int32_t i = 0; i < s->width && !f; i++)
        fa_number_store(to + i * fa_dtype_bytes(s->dtype), x[i], s->dtype);
}

static void nan_row(uint8_t *to, int32_t width, int32_t dtype)
{
    for (int32_t i = 0; i < width; i++)
        fa_number_store(to + i * fa_dtype_bytes(dtype), NAN, dtype);
}

static void append_row(const fa_append_call *c, int64_t batch, int64_t row, const place *at)
{
    const fa_problem *p = &c->problem;
    int32_t k_dtype = p->kv_dtype ? p->kv_dtype : p->dtype, v_dtype = p->v_dtype ? p->v_dtype : k_dtype;
    bool turns = p->rotary_dim > 0;
    const side k = { FA_ID_new_k, FA_ID_k,       FA_ID_k_scale,     FA_ID_k_scale_out, p->d,
                     k_dtype,     p->k_scale_by, p->k_scale_out_by, FA_HADAMARD_K,     turns },
               v = { FA_ID_new_v, FA_ID_v,       FA_ID_v_scale,     FA_ID_v_scale_out, p->dv,
                     v_dtype,     p->v_scale_by, p->v_scale_out_by, FA_HADAMARD_V,     false },
               q = { .from = FA_ID_q, .to = FA_ID_q_out, .width = p->d, .dtype = p->dtype, .flag = FA_HADAMARD_K, .turns = turns };
    for (int32_t h = 0; h < p->hkv && at->kept; h++) {
        move(c, &k, batch, row, at, h);
        move(c, &v, batch, row, at, h);
    }
    for (int32_t h = 0; h < p->hq && c->args->q.ptr; h++) {
        if (at->turns)
            move(c, &q, batch, row, at, h);
        else
            nan_row(c->row(c->user, FA_ID_q_out, batch, row, h), p->d, p->dtype);
    }
}

void fa_append_truth(const fa_append_call *c, uint64_t *skipped)
{
    const fa_args *a = c->args;
    for (int32_t i = 0; i < a->b; i++) {
        rows q = rows_of(a->cu_seqlens_q, a->seqlens_q, i, a->sq, a->total_q),
             k = rows_of(a->cu_seqlens_k, a->seqlens_k, i, a->sk, a->total_k);
        for (int64_t n = 0; n < q.n; n++) {
            int64_t row = q.first + n, token = a->cu_seqlens_q ? row : i * (int64_t)a->sq + n;
            place at = place_of(a, token, i, k.n - q.n + n, k.first);
            *skipped += !at.kept;
            append_row(c, a->cu_seqlens_q ? 0 : i, row, &at);
        }
    }
}
