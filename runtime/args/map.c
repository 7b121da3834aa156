/* map: a thread's table of encoded tensor maps, looked up by all that goes into one. */
#include "map.h"
#include "array_layout.h"
#include "gen/error.h"
#include "gen/pairs.h"
#include "gen/problem.h"
#include "gen/thread.h"
#include "runtime/context/driver_cuda.h"
#include <stdio.h>
#include <string.h>

#define LINES 32 /* of FA_STEP_MAPS places: maps of one step never displace each other; 108 KiB for a thread that uses maps */
#define TMA_UNIT 16
#define RANK_MAX 5
#define GROUP 8 /* rows that a swizzle pattern has */
#define PIECE 8 /* bytes of an element of maps of several heads */

/* All that a map is made of. No padding: compared as bytes. */
typedef struct recipe {
    const cu_driver *driver;
    uint64_t address;
    uint64_t stride[RANK_MAX - 1]; /* bytes, of all dimensions but the first */
    uint32_t size[RANK_MAX];       /* elements */
    uint32_t box[RANK_MAX];
    uint16_t rank, type;
    uint32_t swizzle;
} recipe;
_Static_assert(sizeof(recipe) == (1 + RANK_MAX) * 8 + 2 * RANK_MAX * 4 + 2 * 2 + 4, "no padding");

typedef struct cached_map {
    CUtensorMap map; /* aligned by its type, to 64 bytes or 128 */
    recipe of;       /* driver NULL: empty */
    uint64_t stamp;  /* how often it was encoded */
} cached_map;

/* Where the map of an address was last, for calls of one number. */
typedef struct recent {
    uint64_t same, address, stamp;
    const cached_map *at;
} recent;

typedef struct maps {
    cached_map table[LINES][FA_STEP_MAPS];
    recent recents[LINES][FA_STEP_MAPS];
} maps;
_Static_assert(sizeof(maps) <= 108 << 10, "as said above");
_Static_assert(_Alignof(maps) <= FA_THREAD_ALIGN, "a thread's block holds them");

/* This thread's; NULL: no memory. */
static maps *own(void)
{
    static _Thread_local maps *mine;
    return mine ? mine : fa_thread_keep(&mine, sizeof *mine);
}

/* The rows of a tensor that are of some pair: the keys that a query sees, or the queries that see a key. */
static fa_range rows_seen(const fa_values *v, bool keys)
{
    fa_pairs p = { v->sq, v->sk, { v->diag_lo, v->diag_hi } };
    return keys ? fa_pairs_all_keys(&p) : fa_pairs_all_queries(&p);
}

/* The first of them; where none is, one that is there. */
static int64_t first_row(const fa_values *v, bool keys)
{
    int64_t first = rows_seen(v, keys).first, rows = keys ? v->sk : v->sq;
    return first < rows ? first : rows - 1;
}

/* One operand of a call: strides of sequence, head, batch in elements. */
typedef struct tensor {
    uint64_t ptr;
    int64_t stride[3];
    int32_t size[3], width;
    int dtype;
    bool keys; /* its rows are keys, or its columns: */
    bool columns;
} tensor;

static bool is_empty(const tensor *t, const fa_call *c)
{
    return (t->keys && c->values.sk == 0) || !t->size[0] || !t->size[2];
}

/* Else what some row sees is known on the device alone. */
static bool keys_are_known(const tensor *t, const fa_call *c)
{
    return t->keys && !t->columns && !(c->problem.features & FA_FEATURE_LENGTHS);
}

/* Gradients go by keys over all their queries: what one that sees no key has must not reach them. */
static bool queries_are_known(const tensor *t, const fa_call *c)
{
    return !t->keys && c->problem.op == FA_BACKWARD && !(c->problem.features & FA_FEATURE_LENGTHS);
}

static tensor tensor_of(const fa_call *c, int i, const fa_problem *p)
{
    const fa_operand *o = &c->op->operand[i];
    const int64_t *stride = c->values.operand[i].stride;
    fa_dims d;
    fa_operand_dims(&d, o, &c->sizes);
    return (tensor){ .ptr = c->values.operand[i].address,
                     .stride = { stride[1], stride[2], stride[0] },
                     .size = { (int32_t)d.of[1], (int32_t)d.of[2], (int32_t)d.of[0] },
                     .width = (int32_t)d.of[3],
                     .dtype = fa_operand_dtype(o, p),
                     .keys = fa_operand_has_keys(o),
                     .columns = o->id == FA_ID_v && c->sizes.v_columns };
}

bool fa_maps_possible(const fa_call *c, const fa_problem *p, char *why, size_t n)
{
    const fa_operation *op = c->op;
    static const char *const field[3] = { "ss", "sh", "sb" };
    uint64_t has = c->has;
    for (int i; (i = fa_operands_next(&has)) >= 0;) {
        if (!op->operand[i].strided || op->operand[i].parts_at) /* no map is over parts */
            continue;
        tensor t = tensor_of(c, i, p);
        int bytes = fa_dtype_bytes(t.dtype);
        if (!t.size[0] || !t.size[2] || !fa_problem_maps(p, &op->operand[i]))
            continue;
        if (t.ptr % TMA_UNIT) {
            snprintf(why, n, "%s.ptr is %#llx; TMA takes multiples of %d", op->operand[i].name, (unsigned long long)t.ptr, TMA_UNIT);
            return false;
        }
        for (int k = 0; k < 3; k++)
            if (t.size[k] > 1 && !fa_map_stride_fits(t.stride[k] * bytes)) {
                snprintf(why, n, "%s.%s is %lld elements, %lld bytes; TMA takes multiples of %d above 0 and below 2^40",
                         op->operand[i].name, field[k], (long long)t.stride[k], (long long)t.stride[k] * bytes, TMA_UNIT);
                return false;
            }
    }
    return true;
}

bool fa_steps_map(const fa_step *s, int32_t steps)
{
    bool any = false;
    for (int32_t i = 0; i < steps; i++)
        any = any || s[i].n_maps;
    return any;
}

/* One dimension of a map. */
typedef struct dimension {
    int64_t size, stride, box; /* elements */
} dimension;

/* Of rank 4, innermost first: element, sequence, head, batch. Of rank 5: how rows of several boxes are brought at once. */
static void dimensions_of(dimension out[RANK_MAX], const fa_map *m, const tensor *t, int64_t rows, bool joined)
{
    int64_t ss = t->stride[0], sh = t->stride[1];
    dimension heads = { t->size[1], sh, 1 }, batch = { t->size[2] ? t->size[2] : 1, t->stride[2], 1 };
    if (!m->boxes) {
        const dimension all[RANK_MAX] = { { t->width, 1, m->cols }, { rows, ss, m->rows }, heads, batch };
        memcpy(out, all, sizeof all);
    } else if (joined) {
        const dimension all[RANK_MAX] = { { m->cols, 1, m->cols },
                                          { GROUP, ss, GROUP },
                                          { (t->size[1] - 1) * (sh / m->cols) + m->boxes, m->cols, m->boxes },
                                          { rows / GROUP, ss * GROUP, m->rows / GROUP },
                                          batch };
        memcpy(out, all, sizeof all);
    } else {
        const dimension all[RANK_MAX] = { { m->cols, 1, m->cols }, { rows, ss, GROUP }, { m->boxes, m->cols, m->boxes }, heads, batch };
        memcpy(out, all, sizeof all);
    }
}

/* Strides of dimensions of length 1, and of those of an empty tensor, are made up. */
static void encode_dimensions(recipe *r, const dimension all[RANK_MAX], int bytes, bool empty)
{
    uint64_t below = ((uint64_t)all[0].size * (uint64_t)bytes + TMA_UNIT - 1) / TMA_UNIT * TMA_UNIT;
    for (int i = 0; i < r->rank; i++) {
        r->size[i] = (uint32_t)all[i].size;
        r->box[i] = (uint32_t)all[i].box;
        if (i > 0)
            below = r->stride[i - 1] = all[i].size > 1 && !empty ? (uint64_t)(all[i].stride * bytes) : below;
    }
}

/* The rows that a map spans; at least 1. */
static int64_t rows_of(const tensor *t, const fa_call *c)
{
    if (!keys_are_known(t, c) && !queries_are_known(t, c))
        return t->size[0] ? t->size[0] : 1;
    fa_range seen = rows_seen(&c->values, t->keys);
    return seen.last > seen.first ? seen.last - seen.first + 1 : 1;
}

bool fa_maps_joined(const fa_step *s, const fa_call *c)
{
    bool all = true;
    for (int i = 0; i < s->n_maps; i++) {
        const fa_map *m = &s->map[i];
        if (!m->boxes)
            continue;
        tensor t = tensor_of(c, m->operand, &c->problem);
        if (is_empty(&t, c))
            continue;
        int64_t apart = t.stride[1] / m->cols;
        all = all && t.stride[1] >= 0 && t.stride[1] % m->cols == 0 && apart < INT32_MAX / (t.size[1] + m->boxes) &&
              rows_of(&t, c) % GROUP == 0 && fa_map_stride_fits(t.stride[0] * GROUP * fa_dtype_bytes(t.dtype));
    }
    return all;
}

/* ---- arrays of the score program ---- */

#define ARRAY_BYTES 2 /* of an element */

/* ---- rows of several heads as one ---- */

static bool together_fits(const fa_map *m, const fa_call *c)
{
    const fa_operand *o = &c->op->operand[m->operand];
    tensor t = tensor_of(c, m->operand, &c->problem);
    int64_t bytes = fa_operand_bytes(o, &c->problem);
    return !is_empty(&t, c) && t.ptr % TMA_UNIT == 0 && t.stride[1] == t.width && t.size[1] % m->together == 0 &&
           (t.size[0] <= 1 || fa_map_stride_fits(t.stride[0] * bytes)) && (t.size[2] <= 1 || fa_map_stride_fits(t.stride[2] * bytes));
}

/* Of rank 4 as others are: pieces of a token's row of all heads, sequence, one head, batch. */
static void describe_together(recipe *r, const cu_driver *d, const fa_map *m, const fa_call *c)
{
    const fa_values *a = &c->values;
    tensor t = tensor_of(c, m->operand, &c->problem);
    int64_t bytes = fa_operand_bytes(&c->op->operand[m->operand], &c->problem);
    *r = (recipe){ .driver = d, .address = t.ptr, .rank = 4, .type = CU_TENSOR_MAP_DATA_TYPE_INT64 };
    if (keys_are_known(&t, c))
        r->address += (uint64_t)(t.stride[0] * bytes) * (uint64_t)first_row(a, true);
    const dimension all[RANK_MAX] = { { t.size[1] * t.width * bytes / PIECE, 1, m->cols },
                                      { rows_of(&t, c), t.stride[0] * bytes / PIECE, m->rows },
                                      { 1, 0, 1 },
                                      { t.size[2], t.stride[2] * bytes / PIECE, 1 } };
    encode_dimensions(r, all, PIECE, false);
}

/* A map that a launch may do without. */
static bool is_optional(const fa_map *m)
{
    return m->array || m->together;
}

bool fa_maps_boxed(const fa_step *s, const fa_call *c)
{
    bool all = true;
    for (int i = 0; i < s->n_maps; i++) {
        const fa_map *m = &s->map[i];
        if (m->array)
            all = all && fa_array_aligned(m, &c->values.score[m->array - 1]);
        else if (m->together)
            all = all && together_fits(m, c);
    }
    return all;
}

/* Innermost the columns, then the rows, then the other indices in their order. One that all elements share has the length 1. */
static void describe_array(recipe *r, const cu_driver *d, const fa_map *m, const fa_score_given *given)
{
    int at = 2;
    dimension all[RANK_MAX] = { { given->extent[m->col_index], 1, m->cols },
                                { given->extent[m->row_index], given->stride[m->row_index], m->rows } };
    for (int i = 0; i < m->rank; i++)
        if (i != m->row_index && i != m->col_index)
            all[at++] = (dimension){ given->stride[i] ? given->extent[i] : 1, given->stride[i], 1 };
    *r = (recipe){ .driver = d,
                   .address = given->address,
                   .rank = (uint16_t)at,
                   .type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                   .swizzle = (uint32_t)m->swizzle };
    encode_dimensions(r, all, ARRAY_BYTES, false);
}

static void describe(recipe *r, const cu_driver *d, const fa_map *m, const fa_call *c)
{
    const fa_values *a = &c->values;
    tensor t = tensor_of(c, m->operand, &c->problem);
    static const uint16_t types[] = { [FA_F16] = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,  [FA_BF16] = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                      [FA_TF32] = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, [FA_F32] = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                      [FA_E4M3] = CU_TENSOR_MAP_DATA_TYPE_UINT8,   [FA_E5M2] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                      [FA_S8] = CU_TENSOR_MAP_DATA_TYPE_UINT8 };
    bool empty = is_empty(&t, c);
    if (t.columns && !empty) { /* to the last key that some row sees: what is past it are zeros */
        fa_range seen = rows_seen(a, true);
        t.width = seen.last >= seen.first ? (int32_t)seen.last + 1 : 1;
    }
    int bytes = fa_dtype_bytes(t.dtype);
    dimension all[RANK_MAX];
    *r = (recipe){ .driver = d, .address = t.ptr, .rank = m->boxes ? 5 : 4, .type = types[t.dtype], .swizzle = (uint32_t)m->swizzle };
    if (empty) /* it may be NULL then, its strides 0; nothing is loaded. Of Q and K one has rows, or there would be no launch */
        r->address = a->operand[t.keys ? 0 : 1].address;
    else if (keys_are_known(&t, c) || queries_are_known(&t, c))
        r->address += (uint64_t)(t.stride[0] * bytes) * (uint64_t)first_row(a, t.keys);
    dimensions_of(all, m, &t, rows_of(&t, c), a->joined && !empty);
    encode_dimensions(r, all, bytes, empty);
}

static uint32_t line_of(const recipe *r)
{
    uint64_t h = r->address;
    for (int i = 0; i < r->rank - 1; i++)
        h = (h ^ r->stride[i]) * 0x9E3779B97F4A7C15u;
    h ^= (uint64_t)r->size[1] << 32 ^ r->size[r->rank - 1] ^ (uint64_t)r->box[1] << 16 ^ (uint64_t)r->box[0] << 24;
    h *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 40) % LINES;
}

/* "64 x 8 x 2" */
static void print_product(char *out, size_t n, const uint32_t *of, int rank)
{
    int at = 0;
    for (int i = 0; i < rank && (size_t)at < n; i++)
        at += snprintf(out + at, n - (size_t)at, "%s%u", i ? " x " : "", of[i]);
}

static fa_status refused(const recipe *r, const char *name, CUresult got)
{
    char call[352], size[72], box[72], strides[96];
    int at = 0;
    print_product(size, sizeof size, r->size, r->rank);
    print_product(box, sizeof box, r->box, r->rank);
    for (int i = 0; i < r->rank - 1 && (size_t)at < sizeof strides; i++)
        at += snprintf(strides + at, sizeof strides - (size_t)at, "%s%llu", i ? ", " : "", (unsigned long long)r->stride[i]);
    snprintf(call, sizeof call, "cuTensorMapEncodeTiled(%s at %#llx, %s, strides %s bytes, box %s)", name, (unsigned long long)r->address,
             size, strides, box);
    return fa_driver_check(r->driver, got, call);
}

static fa_status encode(cached_map *at, const recipe *r, const char *name)
{
    cuuint64_t size[RANK_MAX];
    const cuuint32_t step[RANK_MAX] = { 1, 1, 1, 1, 1 };
    for (int i = 0; i < RANK_MAX; i++)
        size[i] = r->size[i];
    CUtensorMapSwizzle swizzle = r->swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                 : r->swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                 : r->swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                    : CU_TENSOR_MAP_SWIZZLE_NONE;
    at->of.driver = NULL;
    at->stamp++;
    CUresult got = r->driver->cuTensorMapEncodeTiled(&at->map, (CUtensorMapDataType)r->type, r->rank, (void *)(uintptr_t)r->address, size,
                                                     r->stride, r->box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                                     CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (got != CUDA_SUCCESS)
        return refused(r, name, got);
    at->of = *r;
    return FA_OK;
}

/* The map of a call that another one of its number has had at this address. */
static const cached_map *recall(const recent *r, uint64_t same, uint64_t address)
{
    return same && r->same == same && r->address == address && r->at->stamp == r->stamp ? r->at : NULL;
}

fa_status fa_maps_encode(const CUtensorMap *at[FA_STEP_MAPS], const cu_driver *d, const fa_step *s, uint64_t same, const fa_call *c)
{
    static const CUtensorMap none;
    maps *all = s->n_maps ? own() : NULL;
    if (s->n_maps && !all)
        return fa_fail(FA_NOMEM, "launch: %zu bytes of host memory for this thread's tensor maps", sizeof *all);
    for (int i = 0; i < s->n_maps; i++) {
        const fa_map *m = &s->map[i];
        const fa_score_given *array = m->array ? &c->values.score[m->array - 1] : NULL;
        if (array && !c->values.boxed && !(c->problem.features & FA_FEATURE_SCORE_ANYWHERE))
            return fa_fail(FA_INTERNAL, "launch: an array of the score program lies otherwise than the kernel's class has it");
        if (is_optional(m) && !c->values.boxed) { /* nothing is loaded by it */
            at[i] = i ? at[0] : &none;
            continue;
        }
        uint64_t address = array ? array->address : c->values.operand[m->operand].address;
        recent *known = &all->recents[(address * 0x9E3779B97F4A7C15u >> 40) % LINES][i];
        const cached_map *there = recall(known, same, address);
        if (!there) {
            recipe r;
            if (array)
                describe_array(&r, d, m, array);
            else if (m->together)
                describe_together(&r, d, m, c);
            else
                describe(&r, d, m, c);
            cached_map *here = &all->table[line_of(&r)][i];
            if (memcmp(&here->of, &r, sizeof r) != 0) {
                fa_status st = encode(here, &r, array ? "an array of the score program" : c->op->operand[m->operand].name);
                if (st != FA_OK)
                    return st;
            }
            *known = (recent){ same, address, here->stamp, here };
            there = here;
        }
        at[i] = &there->map;
    }
    return FA_OK;
}
