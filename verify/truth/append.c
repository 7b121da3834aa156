/* append: places, rotation, transform and rounding of new rows, one by one. */
#include "append.h"
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
    place at = { .page = a->cu_seqlens_k ? 0 : i, .row = first_k + key, .position = a->positions ? given_position(a, token) : key };
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

/* One row of a head: from the type of what is appended to that of the destination. */
static void move(const fa_append_call *c, const uint8_t *from, uint8_t *to, int32_t width, int32_t dtype, bool turns, bool transforms,
                 int64_t position)
{
    float x[FA_MAX_HEAD_DIM];
    for (int32_t i = 0; i < width; i++)
        x[i] = fa_number_load(from + i * fa_dtype_bytes(c->problem.dtype), c->problem.dtype);
    if (turns)
        rotate(x, c->args, position);
    if (transforms)
        transform(x, width);
    for (int32_t i = 0; i < width; i++)
        fa_number_store(to + i * fa_dtype_bytes(dtype), x[i], dtype);
}

static void nan_row(uint8_t *to, int32_t width, int32_t dtype)
{
    for (int32_t i = 0; i < width; i++)
        fa_number_store(to + i * fa_dtype_bytes(dtype), NAN, dtype);
}

static void append_row(const fa_append_call *c, int64_t batch, int64_t row, const place *at)
{
    const fa_args *a = c->args;
    const fa_problem *p = &c->problem;
    int32_t k_dtype = p->kv_dtype ? p->kv_dtype : p->dtype, v_dtype = p->v_dtype ? p->v_dtype : k_dtype;
    bool turns = p->rotary_dim > 0;
    for (int32_t h = 0; h < p->hkv && at->kept; h++) {
        move(c, c->row(c->user, FA_ID_new_k, batch, row, h), c->row(c->user, FA_ID_k, at->page, at->row, h), p->d, k_dtype, turns,
             a->append_flags & FA_HADAMARD_K, at->position);
        move(c, c->row(c->user, FA_ID_new_v, batch, row, h), c->row(c->user, FA_ID_v, at->page, at->row, h), p->dv, v_dtype, false,
             a->append_flags & FA_HADAMARD_V, 0);
    }
    for (int32_t h = 0; h < p->hq && a->q.ptr; h++) {
        uint8_t *to = c->row(c->user, FA_ID_q_out, batch, row, h);
        if (at->turns)
            move(c, c->row(c->user, FA_ID_q, batch, row, h), to, p->d, p->dtype, turns, a->append_flags & FA_HADAMARD_K, at->position);
        else
            nan_row(to, p->d, p->dtype);
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
