/* Laws of gradients under masks of programs, on the simulator: a mask that the launch has too, written as a program, gives the same bits;
 * so does any mask beside one of which nothing is known, under which every pair of every tile is asked; queries are read of those tiles
 * alone that hold a pair which is seen; what no pair is of gets 0. Faults of marks, and of the walks by them, are noticed.
 * FAGEN_TEST_FULL=1: of all kernels and masks of the tables, and all faults. */
#include "score_launch.h"
#include "score_mutation.h"
#include "test_cache_scratch.h"
#include "test_full.h"

TestSuite(mask_gradients, .timeout = 900);

enum { D = 64, ELEMENTS = 1 << 20 };

typedef struct call {
    fa_context *ctx;
    fa_gen *gen;
    void *workspace;
    fa_args a;
    fa_score_value value[FA_SCORE_OPERANDS_MAX];
    size_t nq, nk; /* elements */
    int size;      /* of one */
    const char *why;
} call;

/* The head dimension is D; of gradients the bytes. */
typedef struct result {
    unsigned char q[ELEMENTS], k[ELEMENTS], v[ELEMENTS];
    double rows; /* that were read of Q, each time counted */
    double instructions;
    fa_status status; /* FA_OK, or that of a simulator's check */
} result;

static void open_call(call *c, const char *templates, bool hopper)
{
    *c = (call){ .a = FA_ARGS_INIT };
    c->ctx = hopper ? test_hopper_context(templates, "", 3) : test_context(templates, "");
    SCORE_OK(fa_gen_open(&c->gen, templates));
    SCORE_OK(fa_alloc(c->ctx, &c->workspace, SCORE_WORKSPACE));
}

static void close_call(call *c)
{
    fa_gen_close(c->gen);
    fa_destroy(c->ctx);
}

static void *drawn(call *c, size_t n, uint64_t seed)
{
    uint64_t state = score_mix(seed);
    unsigned char *x = malloc(n * (size_t)c->size);
    for (size_t i = 0; i < n; i++) {
        float f = (float)score_normal(&state);
        uint16_t half = fa_number_to_bf16(f);
        memcpy(x + i * (size_t)c->size, c->size == 2 ? (void *)&half : (void *)&f, (size_t)c->size);
    }
    void *to = score_to_device(c->ctx, x, n * (size_t)c->size);
    free(x);
    return to;
}

static void *filled(call *c, size_t bytes, int with)
{
    void *x = malloc(bytes + 1);
    memset(x, with, bytes);
    void *to = score_to_device(c->ctx, x, bytes);
    free(x);
    return to;
}

/* Dense rows of random numbers. LSE is one number, which no law asks about. */
static void shape(call *c, fa_dtype type, int b, int hq, int hkv, int sq, int sk)
{
    fa_args *a = &c->a;
    c->size = type == FA_F32 ? 4 : 2;
    c->nq = (size_t)b * (size_t)sq * (size_t)hq * D, c->nk = (size_t)b * (size_t)sk * (size_t)hkv * D;
    cr_assert(c->nq * (size_t)c->size <= ELEMENTS && c->nk * (size_t)c->size <= ELEMENTS);
    *a = (fa_args)FA_ARGS_INIT;
    a->op = FA_BACKWARD;
    a->dtype = type, a->d = a->dv = D, a->b = b, a->hq = hq, a->hkv = hkv, a->sq = sq, a->sk = sk, a->scale = 0.125f;
    a->q.ptr = drawn(c, c->nq, 1), a->k.ptr = drawn(c, c->nk, 2), a->v.ptr = drawn(c, c->nk, 3);
    a->o.ptr = drawn(c, c->nq, 4), a->grad_o.ptr = drawn(c, c->nq, 5);
    float *lse = malloc(c->nq / D * 4);
    for (size_t i = 0; i < c->nq / D; i++)
        lse[i] = 3;
    a->lse = score_to_device(c->ctx, lse, c->nq / D * 4);
    free(lse);
    a->grad_q.ptr = filled(c, c->nq * (size_t)c->size, 0x7f);
    a->grad_k.ptr = filled(c, c->nk * (size_t)c->size, 0x7f), a->grad_v.ptr = filled(c, c->nk * (size_t)c->size, 0x7f);
}

static fa_score *program(call *c, const char *text)
{
    fa_score *score;
    fa_score_operand_info info = { .size = sizeof info };
    SCORE_OK(fa_score_create(c->ctx, text, &score));
    SCORE_OK(fa_score_operand_at(c->ctx, score, 0, &info) == FA_OK || info.count == 0 ? FA_OK : FA_INVALID);
    for (int i = 0; i < FA_SCORE_OPERANDS_MAX; i++)
        c->value[i] = (fa_score_value)FA_SCORE_VALUE_INIT;
    c->a.score = score, c->a.score_values = c->value, c->a.score_value_count = info.count;
    return score;
}

/* The workspace holds NaN before. */
static void run(call *c, const char *config, result *out)
{
    const fa_plan *plan;
    fa_problem p;
    fa_config k;
    sim_counters counted;
    void *nan = filled(c, SCORE_WORKSPACE, 0xff);
    c->a.workspace = nan, c->a.workspace_size = SCORE_WORKSPACE;
    SCORE_OK(fa_workspace_init(c->ctx, nan, SCORE_WORKSPACE, NULL));
    c->a.flags = strstr(config, "dq=add") ? 0 : FA_DETERMINISTIC;
    SCORE_OK(fa_gen_config_parse(c->gen, &k, config));
    SCORE_OK(fa_problem_of(&c->a, &p));
    SCORE_OK(fa_plan_make(c->ctx, &p, &k, NULL, &plan));
    sim_counters_reset();
    out->status = fa_plan_launch(c->ctx, plan, &c->a, NULL);
    if (out->status != FA_OK)
        return;
    sim_counters_get(&counted);
    out->rows = 0;
    out->instructions = (double)counted.instructions;
    for (int i = 0; i < counted.tensors; i++)
        if ((uintptr_t)c->a.q.ptr >= counted.tensor[i].base && (uintptr_t)c->a.q.ptr < counted.tensor[i].base + counted.tensor[i].size)
            out->rows = (double)counted.tensor[i].read / (D * c->size);
    SCORE_OK(fa_copy(c->ctx, out->q, c->a.grad_q.ptr, c->nq * (size_t)c->size, FA_FROM_DEVICE));
    SCORE_OK(fa_copy(c->ctx, out->k, c->a.grad_k.ptr, c->nk * (size_t)c->size, FA_FROM_DEVICE));
    SCORE_OK(fa_copy(c->ctx, out->v, c->a.grad_v.ptr, c->nk * (size_t)c->size, FA_FROM_DEVICE));
    SCORE_OK(fa_free(c->ctx, nan));
}

/* dQ: what is added up in memory has the order of the blocks. */
static bool same_queries(const call *c, const result *a, const result *b)
{
    for (size_t i = 0; i < c->nq && !c->a.flags; i++) {
        uint16_t x, y;
        memcpy(&x, a->q + i * 2, 2);
        memcpy(&y, b->q + i * 2, 2);
        float one = fa_number_from_bf16(x), other = fa_number_from_bf16(y);
        if (!(fabsf(one - other) <= 0.01f * fabsf(one) + 1e-3f))
            return false;
    }
    return !c->a.flags || !memcmp(a->q, b->q, c->nq * (size_t)c->size);
}

static bool same(const call *c, const result *a, const result *b)
{
    return a->status == FA_OK && b->status == FA_OK && same_queries(c, a, b) && !memcmp(a->k, b->k, c->nk * (size_t)c->size) &&
           !memcmp(a->v, b->v, c->nk * (size_t)c->size);
}

/* clang-format off */
static const struct kernel {
    const char *config;
    fa_dtype type;
    bool hopper, often;
    int queries, keys; /* of a tile of dK and dV, in multiples of 64: what is marked */
    bool reads_twice;  /* dQ reads Q again */
} kernels[] = {
    { "flash_bwd_ffma:br=32,bc=32", FA_F32, false, false, 64, 64, true },
    { "flash_bwd_mma:br=32,br_part=16,bc=64,warps=4,twins=0,stages=2,dq=recompute,q_br=64,q_bc=32", FA_BF16, false, false, 64, 64, true },
    { "flash_bwd_mma:br=64,br_part=64,bc=64,warps=4,twins=1,stages=1,dq=recompute,q_br=64,q_bc=64", FA_BF16, false, false, 64, 64, true },
    { "flash_bwd_mma:br=64,br_part=32,bc=64,warps=4,twins=0,stages=2,dq=spill,q_br=64,q_bc=128", FA_BF16, false, true, 64, 64, false },
    { "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=turns,box=64,stages=2,dq=spill,ds_bufs=0,grid=persistent,q_br=192,q_stages=3",
      FA_BF16, true, true, 64, 128, false },
    { "flash_bwd_wgmma:br=128,bc=64,twins=1,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4",
      FA_BF16, true, false, 128, 64, false },
    { "flash_bwd_wgmma:br=64,bc=64,twins=1,held=0,schedule=plain,box=64,stages=4,dq=spill,ds_bufs=0,grid=per_tile,q_br=256,q_stages=3,"
      "spread=2", FA_BF16, true, false, 64, 64, false },
    { "flash_bwd_wgmma:br=64,bc=128,twins=0,held=2,schedule=turns,box=64,stages=2,dq=add,ds_bufs=2,grid=per_tile,q_br=128,q_stages=4",
      FA_BF16, true, false, 64, 128, false },
};
/* clang-format on */
#define KERNELS (sizeof kernels / sizeof *kernels)

/* ---- masks of the launch as programs ---- */

#define CAUSAL_TEXT "function mask(b, h, i, j) return j <= i + off end"
#define WINDOW_TEXT                                                                      \
    "left = scalar(70, 'int', 0, 1073741824); right = scalar(3, 'int', 0, 1073741824)\n" \
    "function mask(b, h, i, j) return i + off - j <= left and j - i - off <= right end"

static bool as_programs(call *c, const struct kernel *k, bool window, int hq, int sq, int sk)
{
    static result built_in, written;
    shape(c, k->type, 1, hq, 1, sq, sk);
    c->a.mask = window ? FA_MASK_WINDOW : FA_MASK_CAUSAL;
    c->a.window_left = window ? 70 : -1;
    c->a.window_right = window ? 3 : -1;
    run(c, k->config, &built_in);
    c->a.mask = FA_MASK_NONE;
    c->a.window_left = c->a.window_right = -1;
    fa_score *score = program(c, window ? WINDOW_TEXT : CAUSAL_TEXT);
    for (int n = 0; n < c->a.score_value_count; n++)
        c->value[n].scalar = n ? 3 : 70;
    run(c, k->config, &written);
    fa_score_destroy(score);
    return same(c, &built_in, &written);
}

static void masks_as_programs(bool hopper)
{
    call c;
    test_mode(SIM_LAZY, SIM_RANDOM, 5);
    open_call(&c, NULL, hopper);
    for (size_t i = 0; i < KERNELS; i++)
        for (int window = 0; window < 2; window++)
            if (kernels[i].hopper == hopper && (full() || (kernels[i].often && window == hopper)))
                cr_expect(as_programs(&c, &kernels[i], window, 2, 200, 330), "%s of %s: %s", window ? "window" : "causal",
                          kernels[i].config, fa_last_error());
    if (!hopper) /* several words of marks */
        cr_expect(as_programs(&c, &kernels[3], true, 1, 2120, 40));
    if (full() && hopper)
        cr_expect(as_programs(&c, &kernels[4], true, 1, 70, 2300));
    close_call(&c);
}

Test(mask_gradients, masks_of_the_launch_as_programs_give_their_bits)
{
    masks_as_programs(false);
}

Test(mask_gradients, they_do_on_hopper)
{
    masks_as_programs(true);
}

/* ---- masks that have empty tiles, and whole ones ---- */

enum { SQ = 240, SK = 370, TILES_Q = (SQ + 63) / 64, TILES_K = (SK + 63) / 64, WORDS = (SK + 31) / 32, B = 2, HQ = 4, HKV = 2 };

typedef bool sees(int b, int h, int i, int j);

static int document(int b, int j)
{
    return (j >= 60 + 68 * b) + (j >= 192) * 2 + (j >= 300);
}
static bool block_of(int h, int i, int j)
{
    return (h * 5 + i * 3 + j) % 4 == 0;
}
static bool sees_document(int b, int h, int i, int j)
{
    (void)h;
    return j <= i + SK - SQ && document(b, i) == document(b, j);
}
static bool sees_block(int b, int h, int i, int j)
{
    (void)b;
    return block_of(h, i / 64, j / 64);
}
static bool sees_block_before(int b, int h, int i, int j)
{
    (void)b;
    return block_of(h, i / 64, j / 64) && j <= i + SK - SQ;
}
static bool sees_matrix(int b, int h, int i, int j)
{
    (void)h;
    return i / 50 == j / 70 && b == (j > 200) && i != 100;
}
static bool sees_chunk(int b, int h, int i, int j)
{
    (void)b, (void)h;
    return j <= i && i / 128 == j / 128;
}
static bool sees_prefix(int b, int h, int i, int j)
{
    (void)h;
    return j <= i || j < 150 * b;
}
static bool sees_padding(int b, int h, int i, int j)
{
    (void)h, (void)i;
    return j >= 64 && j < 200 + 120 * b;
}
static bool sees_none(int b, int h, int i, int j)
{
    (void)b, (void)h, (void)i, (void)j;
    return false;
}
static bool sees_all(int b, int h, int i, int j)
{
    (void)b, (void)h, (void)i, (void)j;
    return true;
}
static bool sees_of_one_head(int b, int h, int i,
                             int j) /* the first head of a group sees nothing, and some queries and keys have no pair */
{
    (void)b;
    return h % 2 == 1 && j / 64 != 2 && i / 64 != 1 && i >= 10;
}

static const struct mask {
    const char *name, *operands, *says;
    sees *sees;
    int extent[4];
    bool causal; /* so is the launch */
} masks[] = {
    { "documents", "x = i32 'b sk'", "j <= i + off and x[b][i] == x[b][j]", sees_document, { B, SK }, false },
    { "blocks", "x = u8 'b hq sq/64 sk/64'", "x[b][h][i // 64][j // 64] ~= 0", sees_block, { B, HQ, TILES_Q, TILES_K }, false },
    { "a matrix", "x = bits 'b sq sk'", "x[b][i][j]", sees_matrix, { B, SQ, SK }, false },
    { "of one head", "", "h % 2 == 1 and j // 64 ~= 2 and i // 64 ~= 1 and i >= 10", sees_of_one_head, { 0 }, false },
    { "chunks", "", "j <= i and i // 128 == j // 128", sees_chunk, { 0 }, false },
    { "prefix", "", "j <= i or j < (b > 0 and 150 or 0)", sees_prefix, { 0 }, false },
    { "padding", "x = i32 'b'", "j >= 64 and j < x[b]", sees_padding, { B }, false },
    { "none", "", "i < j - sk", sees_none, { 0 }, false },
    { "all", "x = i32 'b sk'", "x[b][i] + 9 > x[b][j]", sees_all, { B, SK }, false },
    { "blocks, and causal",
      "x = u8 'b hq sq/64 sk/64'",
      "x[b][h][i // 64][j // 64] ~= 0",
      sees_block_before,
      { B, HQ, TILES_Q, TILES_K },
      true },
};
#define MASKS (sizeof masks / sizeof *masks)

/* The operand of a mask; y: one more, of zeros, where what is said reads it. */
static void give(call *c, const struct mask *m, bool with_unknown)
{
    static int32_t words[B * SK];
    static unsigned char bytes[B * HQ * TILES_Q * TILES_K];
    static uint32_t bits[B * SQ * WORDS];
    static const int32_t nothing[SK];
    fa_score_value *v = c->value;
    if (m->extent[0]) {
        const void *from = words;
        size_t size = sizeof words;
        memset(bits, 0, sizeof bits);
        for (int b = 0; b < B; b++)
            for (int i = 0; i < SQ && m->sees == sees_matrix; i++)
                for (int j = 0; j < SK; j++)
                    bits[(b * SQ + i) * WORDS + j / 32] |= (uint32_t)sees_matrix(b, 0, i, j) << j % 32;
        for (int n = 0; n < (int)sizeof bytes; n++)
            bytes[n] = block_of(n / (TILES_Q * TILES_K) % HQ, n / TILES_K % TILES_Q, n % TILES_K) ? 3 : 0;
        for (int n = 0; n < B * SK; n++)
            words[n] = m->sees == sees_padding ? 200 + 120 * n : document(n / SK, n % SK);
        if (m->extent[3])
            from = bytes, size = sizeof bytes;
        if (m->sees == sees_matrix)
            from = bits, size = sizeof bits;
        v->ptr = score_to_device(c->ctx, from, size);
        memcpy(v->extent, m->extent, sizeof m->extent);
        v++;
    }
    if (with_unknown) {
        v->ptr = score_to_device(c->ctx, nothing, sizeof nothing);
        v->extent[0] = SK;
    }
}

/* Every pair of every tile is asked: of y's elements nothing is known but where they are read. */
static void masked(call *c, const struct kernel *k, const struct mask *m, bool unknown, result *out)
{
    char text[400];
    snprintf(text, sizeof text, "%s %s\nfunction mask(b, h, i, j) return %s(%s)%s end", m->operands, unknown ? "y = i32 'sk'" : "",
             unknown ? "(y[(i + j) % max(sk, 1)] == 0) and " : "", m->says, unknown ? " or y[(i + j // 2) % max(sk, 1)] == 1" : "");
    fa_score *score = program(c, text);
    give(c, m, unknown);
    run(c, k->config, out);
    fa_score_destroy(score);
}

/* Rows of Q that a kernel of dK and dV reads: of tiles with a pair that is seen, each time. */
static double rows_seen(const struct kernel *k, const struct mask *m)
{
    double rows = 0;
    for (int b = 0; b < B; b++)
        for (int h = 0; h < HQ; h++)
            for (int i = 0; i < SQ; i += k->queries)
                for (int j = 0; j < SK; j += k->keys) {
                    bool any = false;
                    for (int r = i; r < i + k->queries && r < SQ && !any; r++)
                        for (int x = j; x < j + k->keys && x < SK && !any; x++)
                            any = m->sees(b, h, r, x);
                    rows += !any ? 0 : i + k->queries > SQ ? SQ - i : k->queries;
                }
    return rows;
}

static bool is_zero(const unsigned char *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] && x[i] != 0x80) /* -0 */
            return false;
    return true;
}

/* What is of no pair is 0, and what is of one is not. */
static bool zeros(const call *c, const struct mask *m, const result *r)
{
    bool good = true;
    size_t row = (size_t)(D * c->size);
    for (int b = 0; b < B; b++) {
        for (int i = 0; i < SQ; i++)
            for (int h = 0; h < HQ; h++) {
                bool any = false;
                for (int j = 0; j < SK && !any; j++)
                    any = m->sees(b, h, i, j);
                good = good && any != is_zero(r->q + (size_t)((b * SQ + i) * HQ + h) * row, row);
            }
        for (int j = 0; j < SK; j++)
            for (int g = 0; g < HKV; g++) {
                bool any = false;
                for (int i = 0; i < SQ * (HQ / HKV) && !any; i++)
                    any = m->sees(b, g * (HQ / HKV) + i / SQ, i % SQ, j);
                good = good && any != is_zero(r->k + (size_t)((b * SK + j) * HKV + g) * row, row);
                good = good && any != is_zero(r->v + (size_t)((b * SK + j) * HKV + g) * row, row);
            }
    }
    return good;
}

/* Of a kernel and a mask, all laws; c->why: which does not hold. */
static bool laws(call *c, const struct kernel *k, const struct mask *m)
{
    static result marked, asked, plain;
    shape(c, k->type, B, HQ, HKV, SQ, SK);
    c->a.mask = m->causal ? FA_MASK_CAUSAL : FA_MASK_NONE;
    plain.instructions = 0;
    if (m->sees == sees_all)
        run(c, k->config, &plain);
    masked(c, k, m, false, &marked);
    masked(c, k, m, true, &asked);
    c->why = marked.status != FA_OK || asked.status != FA_OK     ? fa_last_error()
             : !same(c, &marked, &asked)                         ? "other bits than where every pair is asked"
             : !zeros(c, m, &marked)                             ? "what is of no pair is not 0, or what is of one is"
             : !k->reads_twice && marked.rows != rows_seen(k, m) ? "rows of Q are not those of tiles that hold a pair"
             : m->sees == sees_all &&
                     marked.instructions > plain.instructions + (k->hopper ? 0.4 : 0.6) * (asked.instructions - plain.instructions)
                 ? "pairs of whole tiles are asked"
                 : NULL;
    return !c->why;
}

static void masks_have_laws(bool hopper)
{
    call c;
    test_mode(SIM_LAZY, SIM_RANDOM, 7);
    open_call(&c, NULL, hopper);
    for (size_t i = 0; i < KERNELS; i++)
        for (size_t m = 0; m < MASKS; m++) {
            bool now = kernels[i].often && m == (hopper ? 1 : 3);
            if (kernels[i].hopper == hopper && (full() || now))
                cr_expect(laws(&c, &kernels[i], &masks[m]), "%s of %s: %s", kernels[i].config, masks[m].name, c.why);
        }
    close_call(&c);
}

Test(mask_gradients, only_tiles_that_hold_a_pair_are_visited)
{
    masks_have_laws(false);
}

Test(mask_gradients, they_are_on_hopper)
{
    masks_have_laws(true);
}

/* ---- faults ---- */

#define MARKS "marks.cu"
#define HOPPER "grad_hopper_marks.cu"
/* clang-format off */
static const struct {
    const char *name, *file, *find, *replace;
    int kernel, mask; /* which notice */
} faults[] = {
    { "all tiles are whole", MARKS, "make_int2((int)some, (int)full)", "make_int2((int)some, (int)some)", 3, 0 },
    { "no tile is whole", MARKS, "__ballot_sync(~0u, is == 2)", "__ballot_sync(~0u, is == 3)", 3, 8 },
    { "no tile is whole, on wgmma", "grad_hopper_single.cu", "(pr.marked and \", code.sees_all(wg)\" or \"\")", "(pr.marked and \", false\" or \"\")", 4, 8 },
    { "marks of the first head", MARKS, "p.score.marks_by_h and \"head\" or \"0\"", "\"0\"", 5, 1 },
    { "marks of the first sequence", MARKS, "p.score.marks_by_b and number or \"0\"", "\"0\"", 4, 6 },
    { "blocks of queries find the keys of others", MARKS, "by_keys ? line : tile)", "line)", 4, 0 },
    { "tiles that the launch's mask cuts are whole", MARKS, "$(pr.last_key(\"row\")) >= key + 63 && row", "row", 4, 9 },
    { "tiles that the launch's mask hides", MARKS, " || $(pr.last_key(\"last_row\")) < key)", ")", 3, 9 },
    { "the first tile of a word alone", MARKS, "(u32)word(n).x >> tile % 32;", "(u32)word(n).x >> tile % 32 & 1u;", 3, 1 },
    { "a block ends before its last tile", MARKS, "tile <= last / 64; tile++)", "tile < max(last / 64, first / 64 + 1); tile++)", 5, 0 },
    { "the second warpgroup's pairs", HOPPER, "? 0u : 1u << i;", "? 0u : 1u;", 4, 0 },
    { "the number of another block", HOPPER, "(u32)block << 5", "(u32)(block / 2) << 5", 4, 0 },
    { "the head of the tile's first block", HOPPER, "(u32)head);", "(u32)(head - head % 2));", 6, 1 },
    { "dQ of the block after", "grad_hopper_add.cu", "at_before = at_hand, at_hand", "at_before = at_hand", 7, 0 },
    { "dS of another warpgroup's queries", "grad_hopper_q.cu", "blocks.line(wg)", "blocks.line(0)", 4, 0 },
    { "dS that was never left", "grad_q_spill.cu", "has = \" && own[m].some((block * (BC / 16) + i) * 16, 16)\"", "has = \"\"", 3, 0 },
    { "dS that was never left, of the next block", "grad_q_spill.cu", " && own[m].some(after * BC + BC - 1, 1)\"", "\"", 3, 0 },
    { "what the first head's tile shares", "flash_bwd_mma.cu", "pr.marked and \"min(head, heads - 1)\" or begin_head", "begin_head", 3, 3 },
    { "dQ of tiles in doubt as of whole ones", "grad_q_recompute.cu", "pr.marked and \" || !marks.all(block * BC, BC)\" or \"\"", "\"\"",
      1, 0 },
    { "dK and dV of tiles in doubt as of whole ones", "flash_bwd_mma.cu", "const bool all = marks.y != 0 && whole", "const bool all = whole",
      2, 0 },
    { "tiles in doubt as whole ones, on FMA units", "flash_bwd_ffma.cu", "pr.marked and \", marks.y == 0\"", "pr.marked and \", false\"",
      0, 0 },
    { "tiles of no pair, on FMA units", "flash_bwd_ffma.cu", "if (marks.x == 0) continue;", "if (marks.x != 0) continue;", 0, 1 },
};
/* clang-format on */
#define FAULTS (sizeof faults / sizeof *faults)
#define EVERY FAULTS /* of faults, but in full form */

Test(mask_gradients, faults_are_noticed)
{
    for (size_t n = 0; n < FAULTS; n += full() ? 1 : EVERY) {
        const score_fault fault = { faults[n].name, "", faults[n].file, faults[n].find, faults[n].replace };
        call c;
        scratch_make();
        score_plant(&fault);
        test_mode(SIM_LAZY, SIM_RANDOM, 11);
        open_call(&c, scratch, kernels[faults[n].kernel].hopper);
        cr_expect(!laws(&c, &kernels[faults[n].kernel], &masks[faults[n].mask]), "%zu: %s: %s of %s is right all the same", n,
                  faults[n].name, kernels[faults[n].kernel].config, masks[faults[n].mask].name);
        close_call(&c);
        scratch_remove();
    }
}
