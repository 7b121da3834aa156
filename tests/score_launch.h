/* score_launch: launches of score programs on the simulator, held against a reference in fp64 that walks over all pairs. */
#ifndef FA_TESTS_SCORE_LAUNCH_H
#define FA_TESTS_SCORE_LAUNCH_H
#include "gen/pairs.h"
#include "runtime/runtime.h"
#include "score_world.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include <math.h>

/* A program, a problem's class and a kernel of it: one text that is compiled. */
typedef struct score_kernel {
    const char *name, *program, *problem, *config;
    bool hopper;
    int hq, hkv;      /* 0, 0: drawn */
    int sq, sk;       /* at most; sk of 0: as many keys as queries; sequences of lengths of their own are as long */
    float q_scale;    /* of Q's numbers; 0: 1; beyond 1e9 or below 1e-9 the scale is as much less or more; else above 16 of arrays, too */
    double tolerance; /* beside what the type has, of O and LSE */
} score_kernel;

/* Arrays that flash_fwd_wgmma has in tiles lie as the kernel's name ends: "_anywhere", "_columns", else aligned. */
enum { SCORE_ALIGNED, SCORE_ANYWHERE, SCORE_COLUMNS };
static inline int score_lies(const score_kernel *k)
{
    return strstr(k->name, "_anywhere") ? SCORE_ANYWHERE : strstr(k->name, "_columns") ? SCORE_COLUMNS : SCORE_ALIGNED;
}

typedef struct score_launch {
    const score_kernel *kernel;
    fa_program *program;
    fa_score *score;
    score_world world;
    fa_problem problem;
    int b, hq, hkv, sq, sk, d; /* sq and sk: maxima */
    int total_q, total_k, page, pages, table;
    int32_t *first_q, *first_k, *length_k, *page_table; /* of sequences with lengths */
    int left, diagonal, offset;
    float scale;
    float *q, *k, *v, *o, *lse; /* [rows, heads, d] */
    fa_args args;
    fa_score_value value[FA_SCORE_OPERANDS_MAX];
} score_launch;

static inline bool score_is_scaled(const score_kernel *k)
{
    return k->q_scale > 1e9f || (k->q_scale != 0 && k->q_scale < 1e-9f);
}

#define SCORE_OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

/* Of O, which is bf16 beside 8 bits. */
static inline int score_bytes(const score_launch *l)
{
    if (fa_problem_eight(&l->problem))
        return 2;
    return l->problem.dtype == FA_F16 || l->problem.dtype == FA_BF16 ? 2 : 4;
}

/* ---- device memory ---- */

static inline void *score_to_device(fa_context *ctx, const void *from, size_t bytes)
{
    void *to;
    SCORE_OK(fa_alloc(ctx, &to, bytes + 16));
    SCORE_OK(fa_copy(ctx, to, from, bytes, FA_TO_DEVICE));
    return to;
}

/* Rows of a tensor in its type. */
static inline void *score_tensor(fa_context *ctx, const score_launch *l, const float *x, size_t n)
{
    if (score_bytes(l) == 4)
        return score_to_device(ctx, x, n * 4);
    if (fa_problem_eight(&l->problem)) {
        unsigned char *code = malloc(n + 1);
        for (size_t i = 0; i < n; i++)
            fa_number_store(code + i, x[i], l->problem.dtype);
        void *codes = score_to_device(ctx, code, n);
        free(code);
        return codes;
    }
    uint16_t *half = malloc(n * 2 + 1);
    for (size_t i = 0; i < n; i++)
        half[i] = l->problem.dtype == FA_BF16 ? fa_number_to_bf16(x[i]) : fa_number_to_f16(x[i]);
    void *at = score_to_device(ctx, half, n * 2);
    free(half);
    return at;
}

/* Whether operand k is one whose layout the kernel's text depends on. */
static inline const fa_score_plane *score_plane(const score_launch *l, int k)
{
    const fa_score_planes *planes = &l->program->planes;
    bool hopper = !strncmp(l->kernel->config, "flash_fwd_wgmma", 15) && !(l->problem.features & FA_FEATURE_LENGTHS);
    for (int i = 0; hopper && i < planes->n; i++)
        if (planes->of[i].operand == k)
            return &planes->of[i];
    return NULL;
}

/* An array of the program, packed but for a gap after each row, or between elements. Of 16-bit elements rows of one array in four begin at
 * multiples of 16 bytes, as TMA takes them, and one in four or more begins in the middle of a word, some with each of their rows. */
static inline void score_operand(fa_context *ctx, score_launch *l, int k, uint64_t *state)
{
    const fa_score_operand *o = &l->program->ir.operand[k];
    fa_score_value *v = &l->value[k];
    if (o->scalar) {
        v->scalar = l->world.data.scalar[k];
        return;
    }
    int64_t *extent = l->world.data.extent[k], n = 1, index[FA_SCORE_RANK_MAX] = { 0 }, elements = 1;
    bool bits = o->element == FA_SCORE_ELEMENT_BITS;
    int gap = (int)score_below(state, 4); /* 3: so that rows begin at even elements */
    bool half_words = o->element == FA_SCORE_ELEMENT_BF16 || o->element == FA_SCORE_ELEMENT_F16;
    int lead = half_words && (gap == 1 || (gap == 3 && *state >> 20 & 1)) ? 2 : 0; /* bytes before the first element */
    if (o->type == FA_SCORE_F32 && (half_words ? gap == 0 && (*state >> 21 & 1 || score_lies(l->kernel) == SCORE_ANYWHERE) : gap == 2))
        n = 3; /* keys that lie apart */
    if (o->element == FA_SCORE_ELEMENT_U8) {
        lead = gap == 2 ? 3 : 0;
        if (gap == 1)
            n = 4, gap = 0;
    }
    const fa_score_plane *plane = score_plane(l, k);
    int lies = plane ? score_lies(l->kernel) : SCORE_ANYWHERE, turned = lies == SCORE_COLUMNS ? plane->row_index : -1;
    bool aligned = plane && lies == SCORE_ALIGNED;
    if (aligned)
        n = 1, lead = 0;
    if (plane && lies == SCORE_ANYWHERE && half_words && gap == 2)
        gap = 1, lead = 2;
    if (turned >= 0) { /* queries side by side */
        v->extent[turned] = (int32_t)extent[turned], v->stride[turned] = 1;
        n = (extent[turned] + 7) / 8 * 8, elements = extent[turned], lead = gap = 0;
    }
    for (int r = o->rank - 1; r >= 0; r--) {
        if (r == turned)
            continue;
        v->extent[r] = (int32_t)extent[r];
        v->stride[r] = n;
        n *= bits && r == o->rank - 1 ? (extent[r] + 31) / 32 : extent[r];
        n += r < o->rank - 1          ? 0
             : aligned                ? -n & (half_words                          ? 7
                                              : o->element == FA_SCORE_ELEMENT_U8 ? 15
                                                                                  : 3)
             : gap == 3               ? n % 2
             : gap == 2 && half_words ? -n & 7
                                      : gap;
        elements *= extent[r];
    }
    int draw = (int)(*state >> 22 & 3);
    int one = !plane || lies != SCORE_ANYWHERE ? -1 : draw == 0 ? plane->row_index : draw == 1 ? o->rank - 1 : -1;
    if (one >= 0) /* rows, or keys, that are one */
        v->stride[one] = 0, l->world.same[k] = 1u << one;
    int size = o->element == FA_SCORE_ELEMENT_U8                                           ? 1
               : o->element == FA_SCORE_ELEMENT_BF16 || o->element == FA_SCORE_ELEMENT_F16 ? 2
               : o->element == FA_SCORE_ELEMENT_I64                                        ? 8
                                                                                           : 4;
    unsigned char *image = malloc((size_t)(n * size + 8));
    memset(image, 0xff, (size_t)(n * size)); /* NaN in gaps */
    for (; elements > 0; elements--) {
        int64_t at = 0;
        for (int r = 0; r < o->rank; r++)
            at += (bits && r == o->rank - 1 ? index[r] / 32 : index[r]) * v->stride[r];
        unsigned char *to = image + at * size;
        double x = score_element(&l->world, k, index);
        float f = (float)x;
        uint16_t half = o->element == FA_SCORE_ELEMENT_BF16 ? fa_number_to_bf16(f) : fa_number_to_f16(f);
        int32_t word = o->type == FA_SCORE_I32 ? (int32_t)fmin(x, INT32_MAX) : 0;
        int64_t wide = (int64_t)x;
        uint32_t mask = 1u << index[o->rank - 1] % 32, was;
        switch (o->element) {
        case FA_SCORE_ELEMENT_BITS:
            memcpy(&was, to, 4);
            was = x != 0 ? was | mask : was & ~mask;
            memcpy(to, &was, 4);
            break;
        case FA_SCORE_ELEMENT_U8:
            *to = (unsigned char)x;
            break;
        case FA_SCORE_ELEMENT_I32:
            memcpy(to, &word, 4);
            break;
        case FA_SCORE_ELEMENT_I64:
            memcpy(to, &wide, 8);
            break;
        default:
            memcpy(to, size == 2 ? (void *)&half : (void *)&f, (size_t)size);
        }
        for (int r = o->rank - 1; r >= 0 && ++index[r] == extent[r]; r--)
            index[r] = 0;
    }
    unsigned char *to;
    SCORE_OK(fa_alloc(ctx, (void **)&to, (size_t)(lead + n * size)));
    SCORE_OK(fa_copy(ctx, to + lead, image, (size_t)(n * size), FA_TO_DEVICE));
    v->ptr = to + lead;
    free(image);
}

/* What the kernel reads of an element, in the type that is in memory. */
static inline double score_read_element(void *user, int operand, const int64_t *index)
{
    const score_world *w = user;
    double x = score_element(user, operand, index);
    switch (w->ir->operand[operand].element) {
    case FA_SCORE_ELEMENT_BF16:
        return fa_number_from_bf16(fa_number_to_bf16((float)x));
    case FA_SCORE_ELEMENT_F16:
        return fa_number_from_f16(fa_number_to_f16((float)x));
    default:
        return fmin(x, FA_SCORE_INT_MAX);
    }
}

/* ---- a launch ---- */

static inline void score_lengths(fa_context *ctx, score_launch *l, uint64_t *state)
{
    int n = l->b;
    l->first_q = calloc((size_t)n + 1, 4), l->first_k = calloc((size_t)n + 1, 4), l->length_k = calloc((size_t)n, 4);
    for (int i = 0; i < n; i++) {
        int q = i == 0 ? l->sq : (int)score_below(state, l->sq + 1), k = i == n - 1 ? l->sk : (int)score_below(state, l->sk + 1);
        k = i < n - 1 && score_below(state, 4) == 0 ? 0 : k;
        l->first_q[i + 1] = l->first_q[i] + q;
        l->first_k[i + 1] = l->first_k[i] + k;
        l->length_k[i] = k;
    }
    l->total_q = l->first_q[n];
    l->total_k = l->first_k[n];
    l->args.cu_seqlens_q = score_to_device(ctx, l->first_q, ((size_t)n + 1) * 4);
    l->args.total_q = l->total_q;
    if (!l->page) {
        l->args.cu_seqlens_k = score_to_device(ctx, l->first_k, ((size_t)n + 1) * 4);
        l->args.total_k = l->total_k;
        return;
    }
    l->table = (l->sk + l->page - 1) / l->page;
    l->pages = n * l->table;
    l->page_table = calloc((size_t)l->pages + 1, 4);
    for (int i = 0; i < l->pages; i++)
        l->page_table[i] = (i * 7 + 3) % l->pages; /* each page once where 7 and their number have no common divisor */
    for (int i = 0; i < l->pages && l->pages % 7 == 0; i++)
        l->page_table[i] = l->pages - 1 - i;
    l->total_k = l->pages * l->page;
    l->args.seqlens_k = score_to_device(ctx, l->length_k, (size_t)n * 4);
    l->args.page_table = score_to_device(ctx, l->page_table, (size_t)l->pages * 4);
    l->args.page_table_stride = l->table;
    l->args.page_size = l->page;
    l->args.pages = l->pages;
}

/* Where key j of sequence b lies among the rows of K. */
static inline int64_t score_key_row(const score_launch *l, int b, int64_t j)
{
    if (l->page)
        return (int64_t)l->page_table[b * l->table + j / l->page] * l->page + j % l->page;
    return l->first_k ? l->first_k[b] + j : (int64_t)b * l->sk + j;
}

static inline void score_draw(fa_context *ctx, score_launch *l, const score_kernel *k, uint64_t seed)
{
    uint64_t state = score_mix(seed + 1);
    *l = (score_launch){ .kernel = k, .args = FA_ARGS_INIT };
    SCORE_OK(fa_program_read(&l->program, "score", k->program, strlen(k->program)));
    SCORE_OK(fa_score_create(ctx, k->program, &l->score));
    SCORE_OK(fa_problem_parse(&l->problem, k->problem));
    bool lengths = l->problem.features & FA_FEATURE_LENGTHS;
    l->d = l->problem.d;
    l->b = 1 + (int)score_below(&state, lengths ? 4 : 2);
    l->hkv = k->hkv ? k->hkv : 1 + (int)score_below(&state, 2);
    l->hq = k->hq ? k->hq : l->hkv * (1 + (int)score_below(&state, 3));
    l->sq = 1 + (int)score_below(&state, k->sq);
    /* Keys that are cut into parts: mostly many of them, which the last queries see. */
    bool cut = k->sq * 4 < k->sk && score_below(&state, 4) > 0;
    l->sk = !k->sk ? l->sq : cut ? k->sk / 2 + (int)score_below(&state, k->sk / 2) : 1 + (int)score_below(&state, k->sk);
    l->page = l->problem.features & FA_FEATURE_PAGES ? l->problem.page : 0;
    l->left = l->problem.mask == FA_MASK_WINDOW ? (int)score_below(&state, l->sk) : -1;
    l->diagonal = cut ? FA_BOTTOM_RIGHT : (int)score_below(&state, 3);
    l->offset = l->diagonal == FA_OFFSET ? (int)score_below(&state, 60) - 20 : 0;
    l->scale = (float)(1 / sqrt(l->d) / (score_is_scaled(k) ? k->q_scale : 1));
    if (lengths)
        score_lengths(ctx, l, &state);
    else
        l->total_q = l->b * l->sq, l->total_k = l->b * l->sk;
    score_world_draw(&l->world, &l->program->ir, &state);
    l->world.b = l->b, l->world.hq = l->hq, l->world.hkv = l->hkv;
    l->world.spread = k->q_scale > 16 && k->q_scale < 1e9f ? k->q_scale : 1;
    const int64_t of[FA_SCORE_LENGTHS] = { l->b, l->hq, l->hkv, l->sq, l->sk, l->total_q, l->total_k };
    for (int i = 0; i < l->program->ir.operands; i++) {
        const fa_score_operand *o = &l->program->ir.operand[i];
        l->value[i] = (fa_score_value)FA_SCORE_VALUE_INIT;
        if (o->scalar)
            l->world.data.scalar[i] = o->value; /* as the text has it */
        for (int r = 0; r < o->rank; r++) {
            int64_t n = fa_score_shape_extent(&o->extent[r], of);
            l->world.data.extent[i][r] = n < 0 ? 17 : n > 0 ? n : 1;
        }
        score_operand(ctx, l, i, &state);
    }
    l->world.data.read = score_read_element;
    l->world.data.user = &l->world;
    l->world.data.group = l->hq / l->hkv;
    size_t q = (size_t)l->total_q * (size_t)l->hq * (size_t)l->d, kv = (size_t)l->total_k * (size_t)l->hkv * (size_t)l->d;
    size_t rows = (size_t)l->total_q * (size_t)l->hq;
    l->q = malloc(q * 4 + 4), l->k = malloc(kv * 4 + 4), l->v = malloc(kv * 4 + 4), l->o = malloc(q * 4 + 4), l->lse = malloc(rows * 4 + 4);
    for (size_t i = 0; i < q; i++)
        l->q[i] = fa_number_round((float)score_normal(&state) * (k->q_scale != 0 ? k->q_scale : 1), l->problem.dtype);
    for (size_t i = 0; i < kv; i++) {
        l->k[i] = fa_number_round((float)score_normal(&state), l->problem.dtype);
        l->v[i] = fa_number_round((float)score_normal(&state), l->problem.dtype);
    }
    fa_args *a = &l->args;
    a->dtype = l->problem.dtype, a->d = a->dv = l->d;
    a->b = l->b, a->hq = l->hq, a->hkv = l->hkv, a->sq = l->sq, a->sk = l->sk;
    a->mask = l->problem.mask, a->window_left = l->left, a->window_right = l->problem.mask == FA_MASK_WINDOW ? 3 : -1;
    a->diagonal = l->diagonal, a->offset = l->offset, a->scale = l->scale;
    a->flags |= l->problem.features & FA_FEATURE_BATCH_INVARIANT ? FA_BATCH_INVARIANT : 0;
    a->q.ptr = score_tensor(ctx, l, l->q, q), a->k.ptr = score_tensor(ctx, l, l->k, kv), a->v.ptr = score_tensor(ctx, l, l->v, kv);
    void *out, *lse;
    SCORE_OK(fa_alloc(ctx, &out, q * 4 + 16));
    SCORE_OK(fa_alloc(ctx, &lse, rows * 4 + 16));
    a->o.ptr = out, a->lse = lse;
    a->score = l->score, a->score_values = l->value, a->score_value_count = l->program->ir.operands;
}

#define SCORE_WORKSPACE (32 << 20)

/* workspace: of that size, initialised. What the launch says. */
static inline fa_status score_run(fa_context *ctx, fa_gen *gen, void *workspace, score_launch *l)
{
    const fa_plan *plan;
    fa_problem p;
    fa_config c;
    size_t q = (size_t)l->total_q * (size_t)l->hq * (size_t)l->d, rows = (size_t)l->total_q * (size_t)l->hq;
    l->args.workspace = workspace;
    l->args.workspace_size = SCORE_WORKSPACE;
    SCORE_OK(fa_gen_config_parse(gen, &c, l->kernel->config));
    SCORE_OK(fa_problem_of(&l->args, &p));
    fa_status st = fa_plan_make(ctx, &p, &c, NULL, &plan);
    if (st == FA_OK)
        st = fa_plan_launch(ctx, plan, &l->args, NULL);
    if (st != FA_OK)
        return st;
    SCORE_OK(fa_copy(ctx, l->lse, l->args.lse, rows * 4, FA_FROM_DEVICE));
    int bytes = score_bytes(l);
    uint16_t *half = malloc(q * 2 + 1);
    SCORE_OK(fa_copy(ctx, bytes == 2 ? (void *)half : l->o, l->args.o.ptr, q * (size_t)bytes, FA_FROM_DEVICE));
    for (size_t i = 0; bytes == 2 && i < q; i++)
        l->o[i] = l->problem.dtype != FA_F16 ? fa_number_from_bf16(half[i]) : fa_number_from_f16(half[i]);
    free(half);
    return FA_OK;
}

/* ---- the reference ---- */

/* How far a number is from what it should be, in units of `accepted`; NaN is right where that is wanted. */
static inline double score_off(double is, double wanted, double accepted)
{
    if (is == wanted || (isnan(is) && isnan(wanted)))
        return 0;
    double off = fabs(is - wanted) / accepted;
    return off <= 1e30 ? off : 1e30;
}

/* The worst of the differences of O and LSE, each over what is accepted: at most 1 is right. */
static inline double score_worst(score_launch *l, char *where, size_t n)
{
    static double value[FA_SCORE_ROOM];
    static const double of_type
        [] = { [FA_F16] = 2e-3, [FA_BF16] = 1.6e-2, [FA_TF32] = 3e-3, [FA_F32] = 3e-5, [FA_E4M3] = 0.15 /* P's three bits of fraction */ };
    const fa_score_ir *ir = &l->program->ir;
    int score = ir->root[FA_SCORE_ROOT_SCORE], sink = ir->root[FA_SCORE_ROOT_SINK], mask = ir->root[FA_SCORE_ROOT_MASK];
    bool *hidden = calloc((size_t)l->sk + 1, 1);
    double worst = 0, *s = malloc((size_t)l->sk * sizeof *s + 8), *o = malloc((size_t)l->d * sizeof *o);
    double tolerance = of_type[l->problem.dtype] + l->kernel->tolerance, lse_tolerance = 2e-4 + l->kernel->tolerance;
    lse_tolerance += fa_problem_eight(&l->problem) ? 2e-3 : 0;                            /* sums of products with 13 bits of fraction */
    lse_tolerance += 4e-7 * fmax(score_is_scaled(l->kernel) ? 1 : l->kernel->q_scale, 1); /* sums of products so large */
    where[0] = 0;
    for (int b = 0; b < l->b; b++) {
        int sq = l->first_q ? l->first_q[b + 1] - l->first_q[b] : l->sq, sk = l->first_q ? l->length_k[b] : l->sk;
        int first = l->first_q ? l->first_q[b] : b * l->sq;
        fa_score_data data = l->world.data;
        data.sq = sq, data.sk = sk;
        data.off = l->diagonal == FA_BOTTOM_RIGHT ? sk - sq : l->offset;
        for (int h = 0; h < l->hq; h++)
            for (int i = 0; i < sq; i++) {
                const float *q = l->q + ((int64_t)(first + i) * l->hq + h) * l->d;
                int64_t last = l->problem.mask == FA_MASK_NONE ? sk - 1 : i + data.off + (l->problem.mask == FA_MASK_WINDOW ? 3 : 0);
                int64_t lo = l->problem.mask == FA_MASK_WINDOW ? i + data.off - l->left : 0;
                double m = -INFINITY, z = -INFINITY, sum = 0;
                lo = lo < 0 ? 0 : lo, last = last >= sk ? sk - 1 : last;
                int keys = 0;
                if (sink >= 0)
                    m = z = fa_score_eval(ir, sink, &data, &(fa_score_pair){ b, h, i, 0, 0 }, value);
                for (int64_t j = lo; j <= last; j++) {
                    hidden[j] = mask >= 0 && fa_score_eval(ir, mask, &data, &(fa_score_pair){ b, h, i, j, 0 }, value) == 0;
                    keys += !hidden[j];
                    if (hidden[j])
                        continue;
                    const float *k = l->k + (score_key_row(l, b, j) * l->hkv + h / (l->hq / l->hkv)) * l->d;
                    double x = 0;
                    for (int c = 0; c < l->d; c++)
                        x += (double)q[c] * k[c];
                    s[j] = score < 0 ? x * l->scale
                                     : fa_score_eval(ir, score, &data, &(fa_score_pair){ b, h, i, j, x * (double)l->scale }, value);
                    m = s[j] > m ? s[j] : m;
                }
                memset(o, 0, (size_t)l->d * sizeof *o);
                for (int64_t j = lo; j <= last; j++) {
                    if (hidden[j])
                        continue;
                    const float *v = l->v + (score_key_row(l, b, j) * l->hkv + h / (l->hq / l->hkv)) * l->d;
                    double e = exp(s[j] - m);
                    sum += e;
                    for (int c = 0; c < l->d; c++)
                        o[c] += e * v[c];
                }
                sum += sink >= 0 && z > -INFINITY ? exp(z - m) : 0;
                int64_t row = (int64_t)(first + i) * l->hq + h;
                int64_t at = l->first_q ? (int64_t)h * l->total_q + first + i : ((int64_t)b * l->hq + h) * l->sq + i;
                double lse = !keys ? z : m + log(sum), is = l->lse[at];
                double off = score_off(is, lse, lse_tolerance * (1 + 1e-3 * fabs(lse)));
                if (off > worst) {
                    worst = off;
                    snprintf(where, n, "LSE of sequence %d, head %d, query %d of %d, %d keys: %.7g, not %.7g", b, h, i, sq, sk, is, lse);
                }
                for (int c = 0; c < l->d; c++) {
                    double wanted = !keys ? 0 : o[c] / sum, got = l->o[row * l->d + c];
                    double far = score_off(got, wanted, tolerance * (1 + fabs(wanted)));
                    if (far > worst) {
                        worst = far;
                        snprintf(where, n, "O of sequence %d, head %d, query %d of %d, column %d, %d keys: %.7g, not %.7g", b, h, i, sq, c,
                                 sk, got, wanted);
                    }
                }
            }
    }
    free(hidden);
    free(s);
    free(o);
    return worst;
}

static inline void score_close(fa_context *ctx, score_launch *l)
{
    const void *device[] = { l->args.q.ptr,        l->args.k.ptr,        l->args.v.ptr,     l->args.o.ptr,     l->args.lse,
                             l->args.cu_seqlens_q, l->args.cu_seqlens_k, l->args.seqlens_k, l->args.page_table };
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            fa_free(ctx, (void *)(uintptr_t)device[i]);
    for (int k = 0; k < l->program->ir.operands; k++)
        if (l->value[k].ptr)
            fa_free(ctx, (void *)((uintptr_t)l->value[k].ptr / 16 * 16));
    free(l->q), free(l->k), free(l->v), free(l->o), free(l->lse);
    free(l->first_q), free(l->first_k), free(l->length_k), free(l->page_table);
    fa_score_destroy(l->score);
    fa_program_free(l->program);
}
#endif
