/* case: one launch in full, decided by one integer. */
#include "case.h"
#include "append_class.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "runtime/args/lengths.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include "view.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORK_MOST 3e6 /* multiply-adds of one product, so that a case is quick on the simulator */

#define PICK(r, table) ((table)[fa_random_below(r, (int)(sizeof(table) / sizeof *(table)))])

/* ---- the compile-time part ---- */

static int32_t pick_d(fa_random *r)
{
    static const int32_t common[] = { 64, 64, 128, 128, 96, 32, 256, 192 },
                         eights[] = { 8, 16, 24, 40, 48, 56, 72, 80, 88, 104, 120, 160, 200 },
                         any[] = { 1, 2, 3, 5, 7, 12, 17, 20, 33, 36, 65, 77, 100, 127, 130, 255 };
    int32_t kind = fa_random_below(r, 10);
    return kind < 4 ? PICK(r, common) : kind < 7 ? PICK(r, eights) : kind < 9 ? PICK(r, any) : fa_random_within(r, 1, 256);
}

static void make_kernel(fa_case *c, const fa_operation *op, uint64_t number)
{
    static const int32_t dtypes[] = { FA_F16, FA_BF16, FA_TF32, FA_F16, FA_BF16, FA_F32, FA_TF32 };
    static const int32_t aligns[] = { 0, 0, 0, 0, 8, 4, 2 };
    fa_random r = { fa_random_mix(number ^ 0x6b65726e656c) };
    fa_problem p = FA_PROBLEM_INIT, *out = &c->problem;
    p.op = op->op;
    p.dtype = dtypes[number % (sizeof dtypes / sizeof *dtypes)];
    if (op->op == FA_BACKWARD && p.dtype == FA_TF32)
        p.dtype = FA_F32;
    p.mask = fa_operation_has_keys(op) ? (int32_t)(number % 3) : FA_MASK_NONE;
    p.d = pick_d(&r);
    p.dv = fa_random_below(&r, 4) ? p.d : pick_d(&r);
    p.o_dtype = fa_random_below(&r, 4) ? 0 : FA_F32;
    int32_t align = PICK(&r, aligns);
    c->choice = (uint32_t)fa_random_next(&r);
    if (op->op == FA_BACKWARD) {
        p.grad_dtype = fa_random_below(&r, 4) ? 0 : FA_F32;
        p.features = fa_random_below(&r, 4) ? 0 : FA_FEATURE_DETERMINISTIC;
    }
    if (op->op == FA_APPEND)
        fa_append_draw(&p, &r);
    fa_problem_normalize(out, &p);
    if (align && align >= fa_dtype_bytes(p.dtype) && align < out->align)
        out->align = align;
}

/* ---- the run-time part ---- */

static int32_t pick_length(fa_random *r)
{
    int32_t kind = fa_random_below(r, 20);
    return kind < 2 ? 1 : kind < 6 ? fa_random_within(r, 2, 20) : kind < 18 ? fa_random_within(r, 21, 160) : fa_random_within(r, 161, 400);
}

static double work(const fa_problem *p)
{
    return (double)p->b * p->hq * fmax(p->sq, 16) * fmax(p->sk, 16) * (p->d + p->dv) / 2 * fa_operation_passes(p->op);
}

static void make_shape(fa_problem *p, fa_random *r)
{
    static const int32_t ratios[] = { 1, 1, 2, 3, 4, 7, 8 };
    int32_t ratio = PICK(r, ratios);
    p->b = fa_random_within(r, 1, 3);
    p->hkv = fa_random_within(r, 1, 3);
    p->sq = pick_length(r);
    p->sk = fa_random_below(r, 3) ? pick_length(r) : p->sq;
    if (fa_random_below(r, 40) == 0)
        p->sk = 0;
    p->hq = p->hkv * ratio;
    while (work(p) > WORK_MOST) {
        if (p->b > 1)
            p->b--;
        else if (p->hkv > 1)
            p->hkv--;
        else if (ratio > 1 && ratio != 7)
            ratio--;
        else if (p->sq > p->sk)
            p->sq -= p->sq / 4 + 1;
        else
            p->sk -= p->sk / 4 + 1;
        p->hq = p->hkv * ratio;
    }
}

/* Whether its rows are keys: then it may be broadcast, and rows that no query sees may hold anything. */
static bool has_keys(const fa_operand *o)
{
    return fa_operand_has_keys(o);
}

static void make_layouts(fa_case *c, const fa_operation *op, fa_random *r)
{
    static const int32_t kinds[] = { FA_LAYOUT_PACKED, FA_LAYOUT_PACKED, FA_LAYOUT_PADDED, FA_LAYOUT_HEADS, FA_LAYOUT_REVERSED },
                         same[] = { FA_LAYOUT_SAME_BATCH, FA_LAYOUT_SAME_HEAD, FA_LAYOUT_SAME };
    int strided[FA_OPERANDS_MAX] = { 0 }, n = 0;
    for (int i = 0; i < op->n; i++)
        if (op->operand[i].strided) {
            strided[n++] = i;
            c->layout[i] = PICK(r, kinds);
            if (has_keys(&op->operand[i]) && !op->operand[i].output && op->operand[i].broadcast && fa_random_below(r, 6) == 0)
                c->layout[i] = PICK(r, same);
        }
    if (fa_random_below(r, 25) == 0)
        c->layout[strided[fa_random_below(r, n)]] = FA_LAYOUT_FAR;
    /* every other case without strides that TMA cannot take, or hardly any would reach kernels that load by it */
    for (int k = 0; k < n && fa_random_mix(c->seed ^ 0x746d61) & 1; k++) {
        int32_t *kind = &c->layout[strided[k]];
        if (*kind != FA_LAYOUT_HEADS && *kind != FA_LAYOUT_FAR)
            *kind = *kind == FA_LAYOUT_REVERSED || *kind == FA_LAYOUT_PADDED ? FA_LAYOUT_PADDED : FA_LAYOUT_PACKED;
    }
}

void fa_case_make_of(fa_case *c, const fa_operation *op, uint64_t seed)
{
    fa_random r = { fa_random_mix(seed) };
    *c = (fa_case){ .seed = seed, .same_b = 1, .same_kv = 1, .same_q = 1, .gap = 255 };
    uint64_t number = seed < FA_CASE_FREE ? fa_random_next(&r) % FA_CASE_KERNELS : fa_random_next(&r);
    make_kernel(c, op, number);
    if (op->op == FA_APPEND) {
        const fa_problem class = c->problem;
        fa_case_make_class(c, &class, fa_random_below(&r, 2) ? FA_CASE_MANY : FA_CASE_FEW, seed);
        c->kernel = (uint32_t)number;
        return;
    }
    c->kernel = (uint32_t)number;
    make_shape(&c->problem, &r);
    fa_case_make_view(c, &r, 7);
    make_layouts(c, op, &r);
    c->odd = fa_random_below(&r, 2);
    c->lse = fa_random_below(&r, 4) != 0;
    c->values = fa_random_below(&r, 3) ? FA_VALUES_NORMAL : FA_VALUES_HEAVY;
    c->hidden = fa_random_below(&r, FA_HIDDEN_KINDS);
}

void fa_case_make(fa_case *c, uint64_t seed)
{
    fa_case_make_of(c, fa_operation_find(FA_FORWARD), seed);
}

fa_status fa_case_of(fa_case *out, const fa_problem *p, uint64_t seed)
{
    *out = (fa_case){ .seed = seed, .window_left = -1, .window_right = -1, .lse = 1, .gap = 255, .same_b = 1, .same_kv = 1, .same_q = 1 };
    fa_status st = fa_problem_normalize(&out->problem, p);
    fa_problem *q = &out->problem;
    q->b = q->b ? q->b : 1;
    q->hkv = q->hkv ? q->hkv : 1;
    q->hq = q->hq ? q->hq : q->hkv;
    int lse = st == FA_OK ? fa_operand_index(fa_operation_find(q->op), "lse") : -1;
    out->scalars = fa_score_scalars_of(st == FA_OK ? fa_score_known(q) : NULL);
    out->ragged = fa_ragged_typical(q, seed);
    out->dropout = q->features & FA_FEATURE_DROPOUT ? FA_DROPOUT_TYPICAL : 0;
    if (lse >= 0 && q->features & FA_FEATURE_LSE_STRIDES)
        out->layout[lse] = FA_LAYOUT_TURNED;
    return st;
}

/* What stands in the text times a power of two from 2^-6 to 2, inside the bounds. */
static double draw_scalar(const fa_score_operand *o, fa_random *r)
{
    double v = o->value * exp2(7 * fa_random_unit(r) - 6);
    v = o->type == FA_SCORE_I32 ? floor(v) : v;
    return fmin(fmax(v, o->least), o->most);
}

void fa_case_set_score(fa_case *c, const fa_program *program, bool drawn)
{
    fa_random r = { fa_random_mix(c->seed ^ 0x7363616c6172) };
    fa_score_known_name(&c->problem, program);
    c->scalars = fa_score_scalars_of(program);
    c->strided_score = drawn;
    if (drawn && fa_random_below(&r, 2) && program && program->planes.n && c->problem.op == FA_FORWARD &&
        fa_dtype_bytes(c->problem.dtype) == 2 && !(c->problem.features & FA_FEATURE_LENGTHS))
        c->problem.features |= FA_FEATURE_SCORE_ANYWHERE;
    for (int k = 0; drawn && program && k < program->ir.operands; k++)
        if (program->ir.operand[k].scalar)
            c->scalars.of[k] = draw_scalar(&program->ir.operand[k], &r);
}

/* ---- what it says ---- */

/* " score=softcap.lua cap=30": the program, and its scalars by their names. */
static int print_score(char *buf, size_t n, const fa_case *c)
{
    const fa_program *program = fa_score_known(&c->problem);
    int at = program ? snprintf(buf, n, " score=%s", program->name) : 0;
    for (int k = 0; program && k < program->ir.operands; k++)
        if (program->ir.operand[k].scalar)
            at += snprintf((size_t)at < n ? buf + at : NULL, (size_t)at < n ? n - (size_t)at : 0, " %s=%.9g", program->ir.operand[k].name,
                           c->scalars.of[k]);
    return at;
}

/* What lies in the order of lse is said here, where it may differ. */
static int print_ragged(char *buf, size_t n, const fa_case *c)
{
    const fa_operation *op = fa_operation_find(c->problem.op);
    int lse = fa_operand_index(op, "lse"), at = fa_ragged_print(buf, n, &c->ragged);
    const char *order = c->problem.features & FA_FEATURE_LSE_STRIDES && lse >= 0 ? fa_layout_name(c->layout[lse]) : "packed";
    return at + snprintf((size_t)at < n ? buf + at : NULL, (size_t)at < n ? n - (size_t)at : 0, " lse-order=%s%s", order,
                         c->unwritten ? " unwritten" : "");
}

int fa_case_print(char *buf, size_t n, const fa_case *c)
{
    static const char *const diagonals[] = { "bottom-right", "top-left", "offset" }, *const values[] = { "normal", "heavy", "steep",
                                                                                                         "tiny",   "wide",  "beyond",
                                                                                                         "seen" },
                             *const hidden[] = { "values", "nan", "inf" };
    char problem[FA_PROBLEM_TEXT], window[48] = "", offset[24] = "", same[80] = "", dropout[40] = "", layouts[FA_OPERANDS_MAX * 40] = "";
    const fa_problem *p = &c->problem;
    const fa_operation *op = fa_operation_find(p->op);
    for (int i = 0, at = 0; i < op->n; i++)
        if (op->operand[i].strided)
            at += snprintf(layouts + at, sizeof layouts - (size_t)at, " %.24s=%s", op->operand[i].name, fa_layout_name(c->layout[i]));
    fa_problem_print_key(problem, sizeof problem, p);
    if (p->mask == FA_MASK_WINDOW)
        snprintf(window, sizeof window, " window=%d:%d", c->window_left, c->window_right);
    if (p->features & FA_FEATURE_DROPOUT)
        snprintf(dropout, sizeof dropout, " dropout=%.9g", (double)c->dropout);
    if (c->diagonal == FA_OFFSET)
        snprintf(offset, sizeof offset, ":%d", c->offset);
    if (c->same_b != 1 || c->same_kv != 1 || c->same_q != 1)
        snprintf(same, sizeof same, " same=%d:%d:%d", c->same_b, c->same_kv, c->same_q);
    int at = snprintf(buf, n,
                      "seed=%llu %s,b=%d,hq=%d,hkv=%d,sq=%d,sk=%d%s diagonal=%s%s scale=%.9g%s%s%s lse=%d values=%s hidden=%s "
                      "gap=%d%s",
                      (unsigned long long)c->seed, problem, p->b, p->hq, p->hkv, p->sq, p->sk, window, diagonals[c->diagonal], offset,
                      (double)fa_case_scale(c), dropout, layouts, c->odd ? " odd" : "", c->lse, values[c->values], hidden[c->hidden],
                      c->gap, same);
    at += print_score(at < (int)n ? buf + at : NULL, at < (int)n ? n - (size_t)at : 0, c);
    return p->features & ~(FA_FEATURE_DROPOUT | FA_FEATURE_SCORE)
               ? at + print_ragged(at < (int)n ? buf + at : NULL, at < (int)n ? n - (size_t)at : 0, c)
               : at;
}

fa_args fa_case_args(const fa_case *c)
{
    fa_args a = fa_operation_args(&c->problem);
    a.window_left = c->window_left;
    a.window_right = c->window_right;
    a.diagonal = c->diagonal;
    a.offset = c->offset;
    a.scale = c->problem.dtype == FA_S8 ? fa_case_scale(c) : c->scale;
    a.dropout = c->dropout;
    return a;
}

fa_status fa_case_ragged(const fa_case *c, fa_ragged *out)
{
    fa_args shape = fa_case_args(c);
    return fa_ragged_draw(out, &shape, &c->ragged);
}

fa_sizes fa_case_sizes(const fa_case *c, const fa_ragged *r)
{
    fa_sizes sizes = fa_sizes_of(&c->problem, 0);
    fa_lengths_sizes(&sizes, &r->args);
    return sizes;
}

fa_band fa_case_band(const fa_case *c)
{
    return fa_band_of(&c->problem, c->diagonal, c->offset, c->window_left, c->window_right);
}

float fa_case_scale(const fa_case *c)
{
    double codes = c->problem.dtype == FA_S8 ? FA_CASE_CODES : 1; /* that fill their range: scores are as those of others */
    return c->scale > 0 ? c->scale : (float)(1 / (sqrt((double)c->problem.d) * codes * codes));
}

/* Offsets of frameworks are small; one in two has a high half. */
fa_dropout fa_case_dropout(const fa_case *c)
{
    uint64_t seed = fa_random_mix(c->seed ^ 0x64726f70), offset = fa_random_mix(seed);
    return fa_dropout_of(c->dropout, seed, offset & 1 ? offset : offset >> 40);
}

bool fa_case_seen(const fa_case *c, int32_t key)
{
    fa_pairs pairs = { c->problem.sq, c->problem.sk, fa_case_band(c) };
    fa_range queries = fa_pairs_queries(&pairs, (fa_range){ key, key });
    return queries.first <= queries.last;
}

static const fa_operand *operand_of(const fa_case *c, int operand)
{
    return &fa_operation_find(c->problem.op)->operand[operand];
}

int fa_case_dtype(const fa_case *c, int operand)
{
    return fa_operand_dtype(operand_of(c, operand), &c->problem);
}

bool fa_case_has(const fa_case *c, int operand)
{
    const fa_operand *o = operand_of(c, operand);
    if (o->drawn == FA_DRAWN_SEQUENCES)
        return fa_operand_present(o, &c->problem) && fa_ragged_has(&c->ragged, o);
    return fa_operand_present(o, &c->problem) && (c->lse || !o->optional);
}

int32_t fa_case_align(const fa_case *c, int operand)
{
    int id = operand_of(c, operand)->id;
    bool of_kv = fa_problem_kv_apart(&c->problem) && (id == FA_ID_k || id == FA_ID_v);
    return of_kv ? fa_problem_kv_align(&c->problem) : c->problem.align;
}

fa_layout fa_case_layout(const fa_case *c, const fa_sizes *sizes, int operand)
{
    const fa_operand *o = operand_of(c, operand);
    fa_dims d;
    fa_operand_dims(&d, o, sizes);
    int32_t bytes = fa_operand_bytes(o, &c->problem), own = bytes & -bytes; /* blocks of a format are no power of two */
    int32_t align = fa_case_align(c, operand), unit = align / (own < align ? own : align);
    for (int i = 0; i < operand && o->strides_at; i++) /* the first of those that share their strides says how they lie */
        if (operand_of(c, i)->strides_at == o->strides_at)
            operand = i;
    if (bytes > 16 && c->layout[operand] == FA_LAYOUT_FAR) /* 2^32 blocks pass what a device has */
        return fa_layout_make(FA_LAYOUT_PADDED, (int32_t)d.of[0], (int32_t)d.of[1], (int32_t)d.of[2], (int32_t)d.of[3], unit, c->odd);
    if (o->class_at)
        return fa_layout_make(c->layout[operand], (int32_t)d.of[0], (int32_t)d.of[1], (int32_t)d.of[2], (int32_t)d.of[3], 1, c->odd);
    if (!o->strided && o->strides_at && c->problem.features & FA_FEATURE_LSE_STRIDES)
        return fa_layout_make(c->layout[operand], (int32_t)d.of[0], (int32_t)d.of[1], (int32_t)d.of[2], (int32_t)d.of[3], 1, c->odd);
    if (!o->strided)
        return fa_layout_make(FA_LAYOUT_PACKED, (int32_t)d.of[0], (int32_t)d.of[1], (int32_t)d.of[2], (int32_t)d.of[3], 1, false);
    return fa_layout_make(c->layout[operand], (int32_t)d.of[0], (int32_t)d.of[1], (int32_t)d.of[2], (int32_t)d.of[3], unit > 0 ? unit : 1,
                          c->odd);
}

/* ---- its data ---- */

static uint64_t row_seed(const fa_case *c, int operand, int32_t b, int32_t s, int32_t h)
{
    const fa_operand *o = operand_of(c, operand);
    int kind = c->layout[operand];
    bool same_b = kind == FA_LAYOUT_SAME_BATCH || kind == FA_LAYOUT_SAME, same_h = kind == FA_LAYOUT_SAME_HEAD || kind == FA_LAYOUT_SAME;
    b = same_b ? 0 : b / c->same_b;
    h = same_h ? 0 : h / ((o->strided || o->class_at) && o->extent[2] == FA_EXTENT_HKV ? c->same_kv : c->same_q);
    uint64_t x = fa_random_mix(c->seed + 0x9e3779b97f4a7c15u * (uint64_t)(operand + 1));
    x = fa_random_mix(x ^ (uint64_t)b << 32 ^ (uint32_t)s);
    return fa_random_mix(x + (uint64_t)h);
}

/* Q is constant, K the same constant or its opposite: scores are the scale times d times their product, 5e5. */
static float steep(const fa_case *c, bool keys, fa_random *r)
{
    float m = (float)sqrt(5e5 / (fa_case_scale(c) * c->problem.d));
    return keys && fa_random_next(r) & 1 ? -m : m;
}

/* ---- values far apart ---- */

bool fa_case_bounded(const fa_case *c)
{
    return c->values >= FA_VALUES_KINDS;
}

/* Products of fp16 and of 8 bits are far from the end of fp32: their scale is near it, and that of half of the others. */
void fa_case_set_values(fa_case *c, fa_case_values values)
{
    c->values = (int32_t)values;
    int dtype = c->problem.dtype;
    if (values == FA_VALUES_BEYOND && dtype == FA_E4M3)
        c->scale = 0x1p110f;
    else if (values == FA_VALUES_BEYOND && (dtype == FA_F16 || dtype == FA_E5M2 || fa_random_mix(c->seed ^ 0x626579) & 1))
        c->scale = 0x1p96f;
}

/* Exponents of Q and K. */
typedef struct exponents {
    int least, most;
} exponents;

static exponents exponents_of(const fa_case *c)
{
    int dtype = c->problem.dtype;
    if (c->values == FA_VALUES_WIDE)
        return dtype == FA_E4M3                      ? (exponents){ -5, 6 }
               : dtype == FA_F16 || dtype == FA_E5M2 ? (exponents){ -12, 8 }
                                                     : (exponents){ -20, 20 };
    if (dtype == FA_E4M3)
        return (exponents){ 1, 7 };
    return c->scale > 1e20f ? (exponents){ 3, 14 } : (exponents){ 54, 66 };
}

/* By which an element of a row is multiplied. */
static float wide(const fa_case *c, fa_random *r, int of_row)
{
    exponents e = exponents_of(c);
    bool rows = c->values == FA_VALUES_BEYOND || fa_random_mix(c->seed ^ 0x726f7773) & 1;
    return ldexpf(1, rows ? of_row : fa_random_within(r, e.least, e.most));
}

/* One row in 40 has NaN or an infinity in one column, or in all. e4m3 has no infinity: NaN. */
static void plant(fa_random *r, float *row, int64_t width, int dtype)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY };
    if (fa_random_below(r, 40))
        return;
    float x = odd[dtype == FA_E4M3 ? 0 : fa_random_below(r, 3)];
    int64_t only = fa_random_below(r, 2) ? fa_random_below(r, (int32_t)width) : -1;
    for (int64_t i = 0; i < width; i++)
        row[i] = only < 0 || i == only ? x : row[i];
}

void fa_case_hide_row(const fa_case *c, float *row, int64_t width)
{
    for (int64_t i = 0; i < width && c->hidden; i++) {
        float x = c->hidden == FA_HIDDEN_NAN ? NAN : i & 1 ? -INFINITY : INFINITY;
        row[i] = c->problem.dtype == FA_TF32 || c->problem.dtype == FA_S8 ? x : fa_number_round(x, c->problem.dtype);
    }
}

void fa_case_row(const fa_case *c, int operand, int32_t b, int32_t s, int32_t h, float *row)
{
    const fa_operand *o = operand_of(c, operand);
    fa_random r = { row_seed(c, operand, b, s, h) };
    int32_t dtype = fa_operand_dtype(o, &c->problem);
    fa_sizes sizes = fa_sizes_of(&c->problem, 0);
    bool blocks = fa_number_block(dtype) > 1; /* whose elements are rounded together */
    int64_t width = o->strided ? sizes.of[o->extent[3]] * fa_number_block(dtype) : 1;
    bool keys = has_keys(o), scored = o->strided && (o->extent[3] == FA_EXTENT_D || o->extent[3] == FA_EXTENT_K_ROW),
         tokens = (o->extent[1] == FA_EXTENT_K_SCALE_ROWS && c->problem.k_scale_by == FA_SCALE_TOKEN) ||
                  (o->extent[1] == FA_EXTENT_V_SCALE_ROWS && c->problem.v_scale_by == FA_SCALE_TOKEN),
         hide = (keys || tokens) && c->hidden && !c->ragged.forms && !fa_case_seen(c, s); /* scored: Q and K */
    float constant = c->values == FA_VALUES_STEEP && scored ? steep(c, keys, &r) : 0;
    float least = dtype == FA_F16 ? 0x1p-20f : 0x1p-130f;
    bool far = scored && (c->values == FA_VALUES_WIDE || c->values == FA_VALUES_BEYOND);
    exponents e = exponents_of(c);
    int of_row = far ? fa_random_within(&r, e.least, e.most) : 0;
    for (int64_t i = 0; i < width; i++) {
        float x = constant != 0 ? constant : fa_random_normal(&r);
        if (o->drawn == FA_DRAWN_FACTOR) {
            row[i] = fa_number_round(fa_random_factor(x), dtype);
            continue;
        }
        if (dtype == FA_S8 && scored)
            x *= FA_CASE_CODES;
        if (c->values == FA_VALUES_HEAVY && fa_random_below(&r, 50) == 0)
            x *= 16;
        if (c->values == FA_VALUES_TINY && keys)
            x *= scored ? least : least * 16;
        if (far)
            x *= wide(c, &r, of_row);
        row[i] = blocks || (dtype == FA_TF32 && !fa_case_bounded(c)) ? x : fa_number_round(x, dtype);
    }
    if (blocks)
        fa_number_round_row(row, width, dtype);
    if (c->values == FA_VALUES_SEEN && keys && o->strided && !scored && !o->output)
        plant(&r, row, width, dtype);
    if (hide)
        fa_case_hide_row(c, row, width);
}
