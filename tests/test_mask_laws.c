/* Laws of masks, on the simulator: a mask that the launch has too, written as a program, gives the same bits; documents give those of
 * sequences apart where their tiles are the same; keys are read of those tiles alone that hold a pair which is seen. FAGEN_TEST_FULL=1: of
 * all kernels and masks of the tables. */
#include "score_launch.h"
#include "test_full.h"
#include "test_template_edit.h"

TestSuite(mask_laws, .timeout = 600);

enum { D = 64, S_MOST = 1024, H_MOST = 4 };

typedef struct call {
    fa_context *ctx;
    fa_gen *gen;
    void *workspace;
    fa_args a;
    fa_score_value value[FA_SCORE_OPERANDS_MAX];
    int b, hq, hkv, sq, sk;
} call;

/* with: an edit of a template, or NULL. */
static void open_edited(call *c, bool hopper, const edit *with)
{
    *c = (call){ .a = FA_ARGS_INIT };
    scratch_make();
    if (with)
        write_edited(with);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    c->ctx = hopper ? test_hopper_context(with ? scratch : NULL, with ? "" : scratch, 3) : test_context(NULL, scratch);
    SCORE_OK(fa_gen_open(&c->gen, NULL));
    SCORE_OK(fa_alloc(c->ctx, &c->workspace, SCORE_WORKSPACE));
    SCORE_OK(fa_workspace_init(c->ctx, c->workspace, SCORE_WORKSPACE, NULL));
}

static void open_call(call *c, bool hopper)
{
    open_edited(c, hopper, NULL);
}

static void close_call(call *c)
{
    fa_gen_close(c->gen);
    fa_destroy(c->ctx);
    scratch_remove();
}

static void *drawn(call *c, size_t n, uint64_t seed)
{
    uint64_t state = score_mix(seed);
    uint16_t *x = malloc(n * 2);
    for (size_t i = 0; i < n; i++)
        x[i] = fa_number_to_bf16((float)score_normal(&state));
    void *to = score_to_device(c->ctx, x, n * 2);
    free(x);
    return to;
}

/* Dense rows of bf16, d = 64. */
static void shape(call *c, int b, int hq, int hkv, int sq, int sk)
{
    size_t q = (size_t)b * (size_t)sq * (size_t)hq, kv = (size_t)b * (size_t)sk * (size_t)hkv;
    void *o, *lse;
    c->b = b, c->hq = hq, c->hkv = hkv, c->sq = sq, c->sk = sk;
    SCORE_OK(fa_alloc(c->ctx, &o, q * D * 2 + 16));
    SCORE_OK(fa_alloc(c->ctx, &lse, q * 4 + 16));
    fa_args *a = &c->a;
    *a = (fa_args)FA_ARGS_INIT;
    a->dtype = FA_BF16, a->d = a->dv = D, a->b = b, a->hq = hq, a->hkv = hkv, a->sq = sq, a->sk = sk, a->scale = 0.125f;
    a->q.ptr = drawn(c, q * D, 1), a->k.ptr = drawn(c, kv * D, 2), a->v.ptr = drawn(c, kv * D, 3);
    a->o.ptr = o, a->lse = lse;
    a->workspace = c->workspace, a->workspace_size = SCORE_WORKSPACE;
}

/* The mask as a program; operands in the order of the text. NULL: none. */
static fa_score *program(call *c, const char *text)
{
    fa_score *score = NULL;
    fa_score_operand_info info = { .size = sizeof info };
    c->a.score = NULL, c->a.score_values = NULL, c->a.score_value_count = 0;
    if (!text)
        return NULL;
    SCORE_OK(fa_score_create(c->ctx, text, &score));
    SCORE_OK(fa_score_operand_at(c->ctx, score, 0, &info) == FA_OK || info.count == 0 ? FA_OK : FA_INVALID);
    for (int i = 0; i < FA_SCORE_OPERANDS_MAX; i++)
        c->value[i] = (fa_score_value)FA_SCORE_VALUE_INIT;
    c->a.score = score, c->a.score_values = c->value, c->a.score_value_count = info.count;
    return score;
}

static void array(call *c, int k, const void *from, size_t bytes, const int *extent, int rank)
{
    c->value[k].ptr = score_to_device(c->ctx, from, bytes);
    for (int i = 0; i < rank; i++)
        c->value[k].extent[i] = extent[i];
}

typedef struct result {
    uint16_t o[S_MOST * H_MOST * D];
    float lse[S_MOST * H_MOST];
    size_t n;
    double keys;         /* that were read of K, each time counted */
    double instructions; /* of warps */
} result;

static void run(call *c, const char *config, result *out)
{
    const fa_plan *plan;
    fa_problem p;
    fa_config k;
    sim_counters counted;
    out->n = (size_t)c->b * (size_t)c->sq * (size_t)c->hq;
    cr_assert(out->n <= S_MOST * H_MOST);
    SCORE_OK(fa_gen_config_parse(c->gen, &k, config));
    SCORE_OK(fa_problem_of(&c->a, &p));
    SCORE_OK(fa_plan_make(c->ctx, &p, &k, NULL, &plan));
    sim_counters_reset();
    SCORE_OK(fa_plan_launch(c->ctx, plan, &c->a, NULL));
    sim_counters_get(&counted);
    out->keys = 0;
    out->instructions = (double)counted.instructions;
    for (int i = 0; i < counted.tensors; i++)
        if ((uintptr_t)c->a.k.ptr >= counted.tensor[i].base && (uintptr_t)c->a.k.ptr < counted.tensor[i].base + counted.tensor[i].size)
            out->keys = (double)counted.tensor[i].read / (D * 2);
    SCORE_OK(fa_copy(c->ctx, out->o, c->a.o.ptr, out->n * D * 2, FA_FROM_DEVICE));
    SCORE_OK(fa_copy(c->ctx, out->lse, c->a.lse, out->n * 4, FA_FROM_DEVICE));
}

static void same(const result *a, const result *b, const char *what, const char *config)
{
    cr_expect(a->n == b->n && !memcmp(a->o, b->o, a->n * D * 2), "%s: O of %s", what, config);
    cr_expect(!memcmp(a->lse, b->lse, a->n * 4), "%s: LSE of %s", what, config);
}

#define CAUSAL_TEXT "function mask(b, h, i, j) return j <= i + off end"
#define WINDOW_TEXT                                                                      \
    "left = scalar(70, 'int', 0, 1073741824); right = scalar(3, 'int', 0, 1073741824)\n" \
    "function mask(b, h, i, j) return i + off - j <= left and j - i - off <= right end"

/* clang-format off */
static const struct {
    const char *config;
    bool hopper;
    int sq, sk;
} kernels[] = {
    { "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=2,order=v_last,q_regs=0,pack=0,lag=8,ctas=1", false, 200, 260 },
    { "flash_fwd_mma:br=32,bc=32,warps=2,stages_k=2,stages_v=2,order=together,q_regs=0,pack=1,lag=0,ctas=1", false, 70, 150 },
    { "flash_fwd_wgmma:br=128,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=pingpong,grid=persistent,ahead=0,"
      "sections=1,cluster=1,exp=0,rescale=lazy_scaled,convert=early,o_path=tma", true, 260, 300 },
    { "flash_fwd_wgmma:br=64,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=2,schedule=plain,grid=persistent,ahead=1,"
      "sections=1,cluster=1,exp=0,rescale=lazy,convert=early,o_path=direct", true, 150, 220 },
    { "decode_mma:br=16,bk=16,row_warps=1,combine=last_block,key_warps=2,stages=2,ctas=1,kv_lanes=1,sm_shares=1,min_turns=1", true, 3, 500 },
};
/* clang-format on */
#define KERNELS (sizeof kernels / sizeof *kernels)

static void masks_as_programs(bool hopper)
{
    static result built_in, written;
    call c;
    open_call(&c, hopper);
    for (size_t i = 0; i < KERNELS; i++)
        for (int window = 0; window < 2 && kernels[i].hopper == hopper; window++) {
            if (!full() && (window != (int)i % 2 || i == 1 || i == 3))
                continue;
            shape(&c, 1, 4, 2, kernels[i].sq, kernels[i].sk);
            c.a.mask = window ? FA_MASK_WINDOW : FA_MASK_CAUSAL;
            c.a.window_left = window ? 70 : -1;
            c.a.window_right = window ? 3 : -1;
            run(&c, kernels[i].config, &built_in);
            c.a.mask = FA_MASK_NONE;
            c.a.window_left = c.a.window_right = -1;
            fa_score *score = program(&c, window ? WINDOW_TEXT : CAUSAL_TEXT);
            for (int k = 0; k < c.a.score_value_count; k++)
                c.value[k].scalar = k ? 3 : 70;
            run(&c, kernels[i].config, &written);
            same(&built_in, &written, window ? "window" : "causal", kernels[i].config);
            cr_expect_eq(built_in.keys, written.keys, "%s reads %g keys, as a program %g", kernels[i].config, built_in.keys, written.keys);
            fa_score_destroy(score);
        }
    close_call(&c);
}

Test(mask_laws, masks_of_the_launch_as_programs_give_their_bits)
{
    masks_as_programs(false);
}

Test(mask_laws, they_do_on_hopper)
{
    masks_as_programs(true);
}

/* ---- documents ---- */

#define DOCUMENTS_TEXT "doc = i32 'b sk'\nfunction mask(b, h, i, j) return j <= i + off and doc[b][i + off] == doc[b][j] end"

static const int first_of[] = { 0, 128, 192, 448, 512 }; /* multiples of rows and keys of the tiles */
static const int anywhere[] = { 0, 131, 187, 441, 512 };
#define DOCUMENTS 4

/* Packed in one sequence, as sequences apart, in the same order of the same tiles. rising: numbers that rise, of documents which begin
 * anywhere: so do the tiles, then. */
static void documents(bool hopper, bool rising, const edit *with, const char *config)
{
    const int *begin = rising ? anywhere : first_of;
    static result apart, together;
    int32_t doc[512], first[DOCUMENTS + 1];
    call c;
    open_edited(&c, hopper, with);
    shape(&c, 1, 2, 1, 512, 512);
    for (int i = 0; i <= DOCUMENTS; i++)
        first[i] = begin[i];
    for (int i = 0, n = 0; i < 512; i++) {
        n += i == begin[n + 1];
        doc[i] = rising ? 5 * n : (n * 37 + 11) % 23;
    }
    program(&c, DOCUMENTS_TEXT);
    array(&c, 0, doc, sizeof doc, (int[]){ 1, 512 }, 2);
    run(&c, config, &together);
    fa_score_destroy((fa_score *)(uintptr_t)c.a.score);
    program(&c, NULL);
    c.a.mask = FA_MASK_CAUSAL;
    c.a.flags |= FA_BATCH_INVARIANT; /* tiles stay whole, however few they are */
    c.a.b = DOCUMENTS;
    c.a.sq = c.a.sk = 256;
    c.a.cu_seqlens_q = c.a.cu_seqlens_k = score_to_device(c.ctx, first, sizeof first);
    c.a.total_q = c.a.total_k = 512;
    run(&c, config, &apart);
    same(&apart, &together, "documents", config);
    cr_expect_eq(apart.keys, together.keys, "%s reads %g keys, of documents in one sequence %g", config, apart.keys, together.keys);
    close_call(&c);
}

Test(mask_laws, documents_give_the_bits_of_sequences_apart)
{
    documents(false, false, NULL, "flash_fwd_mma:br=64,bc=64,warps=4,stages_k=1,stages_v=2,order=v_last,q_regs=0,pack=0,lag=8,ctas=1");
}

Test(mask_laws, they_do_on_hopper_too)
{
    documents(true, false, NULL,
              "flash_fwd_wgmma:br=64,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=plain,"
              "grid=persistent,ahead=0,sections=1,cluster=1,exp=0,rescale=lazy,convert=early,o_path=direct");
}

Test(mask_laws, and_where_they_begin_anywhere)
{
    documents(true, true, NULL,
              "flash_fwd_wgmma:br=64,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=plain,"
              "grid=persistent,ahead=0,sections=1,cluster=1,exp=0,rescale=lazy,convert=early,o_path=tma");
}

/* As of long sequences. */
Test(mask_laws, and_where_a_kernel_before_has_looked_for_them)
{
    documents(true, true, &(edit){ "mask_places.lua", "local ENTRIES = 8", "local ENTRIES = 0" },
              "flash_fwd_wgmma:br=64,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=plain,"
              "grid=persistent,ahead=0,sections=1,cluster=1,exp=0,rescale=lazy,convert=early,o_path=tma");
}

/* ---- NaN of V ---- */

#define THIRDS_TEXT "function mask(b, h, i, j) return (i + j // 16) % 3 ~= 0 and j // 64 ~= i // 40 end"

/* It stays with the queries that see the key, be the key in a tile that is walked or not. */
static void nan_of_v(bool hopper, const char *config)
{
    static result out;
    static uint16_t v[300 * D];
    call c;
    open_call(&c, hopper);
    shape(&c, 1, 2, 1, 150, 300);
    SCORE_OK(fa_copy(c.ctx, v, c.a.v.ptr, sizeof v, FA_FROM_DEVICE));
    for (int j = 7; j < 300; j += 97)
        v[j * D + 5] = 0x7fc0;
    SCORE_OK(fa_copy(c.ctx, (void *)(uintptr_t)c.a.v.ptr, v, sizeof v, FA_TO_DEVICE));
    program(&c, THIRDS_TEXT);
    run(&c, config, &out);
    for (int i = 0; i < 150; i++) {
        bool sees = false;
        for (int j = 7; j < 300; j += 97)
            sees = sees || ((i + j / 16) % 3 != 0 && j / 64 != i / 40);
        for (int h = 0; h < 2; h++)
            for (int x = 0; x < D; x++)
                cr_expect_eq(isnan(fa_number_from_bf16(out.o[(i * 2 + h) * D + x])) != 0, sees && x == 5, "%s: query %d, column %d", config,
                             i, x);
    }
    close_call(&c);
}

Test(mask_laws, nan_stays_with_the_queries_that_see_its_key)
{
    if (full())
        nan_of_v(false, "naive:tile=64");
    nan_of_v(false, "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=2,order=v_last,q_regs=0,pack=0,lag=8,ctas=1");
}

Test(mask_laws, it_does_on_hopper)
{
    nan_of_v(true, "flash_fwd_wgmma:br=64,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=plain,grid=persistent,"
                   "ahead=0,sections=1,cluster=1,exp=0,rescale=lazy,convert=early,o_path=direct");
    if (full())
        nan_of_v(true,
                 "decode_mma:br=16,bk=16,row_warps=1,combine=last_block,key_warps=2,stages=2,ctas=1,kv_lanes=1,sm_shares=1,min_turns=1");
}

/* ---- tiles that are visited ---- */

typedef bool sees(const call *c, int i, int j, const int32_t *x, const unsigned char *y);

static bool sees_prefix(const call *c, int i, int j, const int32_t *x, const unsigned char *y)
{
    (void)c, (void)y;
    return j <= i || j < x[0];
}
static bool sees_chunk(const call *c, int i, int j, const int32_t *x, const unsigned char *y)
{
    (void)c, (void)x, (void)y;
    return j <= i && i / 128 == j / 128;
}
static bool sees_padding(const call *c, int i, int j, const int32_t *x, const unsigned char *y)
{
    (void)c, (void)i, (void)y;
    return x[0] <= j && j < x[1];
}
static bool sees_document(const call *c, int i, int j, const int32_t *x, const unsigned char *y)
{
    (void)c, (void)y;
    return j <= i && x[i] == x[j];
}
static bool sees_block(const call *c, int i, int j, const int32_t *x, const unsigned char *y)
{
    (void)c, (void)x;
    return y[i / 128 * 4 + j / 128] != 0;
}
static bool sees_matrix(const call *c, int i, int j, const int32_t *x, const unsigned char *y)
{
    (void)c, (void)x;
    return y[i * 512 + j] != 0;
}
static bool sees_none(const call *c, int i, int j, const int32_t *x, const unsigned char *y)
{
    (void)c, (void)i, (void)j, (void)x, (void)y;
    return false;
}

/* How a program's operands are given: of x so many words, or of y so many bytes. */
static const struct {
    const char *name, *text;
    sees *sees;
    int words, bytes, extent[4], rank;
} masks[] = {
    { "prefix", "n = i32 'b'\nfunction mask(b, h, i, j) return j <= i + off or j < n[b] end", sees_prefix, 1, 0, { 1 }, 1 },
    { "documents", DOCUMENTS_TEXT, sees_document, 512, 0, { 1, 512 }, 2 },
    { "blocks",
      "m = u8 'b hq sq/128 sk/128'\nfunction mask(b, h, i, j) return m[b][h][i // 128][j // 128] ~= 0 end",
      sees_block,
      0,
      16,
      { 1, 1, 4, 4 },
      4 },
    { "a matrix",
      "m = u8 'b hq sq sk'\nfunction mask(b, h, i, j) return m[b][h][i][j] ~= 0 end",
      sees_matrix,
      0,
      512 * 512,
      { 1, 1, 512, 512 },
      4 },
    { "chunks", "function mask(b, h, i, j) return j <= i + off and (i + off) // 128 == j // 128 end", sees_chunk, 0, 0, { 0 }, 0 },
    { "padding", "x = i32 '2'\nfunction mask(b, h, i, j) return x[0] <= j and j < x[1] end", sees_padding, 2, 0, { 2 }, 1 },
    { "none", "function mask(b, h, i, j) return i < j - sk end", sees_none, 0, 0, { 0 }, 0 },
};

/* Tiles of rows x 64 keys with a pair that is seen. */
static int tiles_seen(const call *c, sees *is, int rows, const int32_t *x, const unsigned char *y)
{
    int n = 0;
    for (int i = 0; i < c->sq; i += rows)
        for (int j = 0; j < c->sk; j += 64) {
            bool any = false;
            for (int r = i; r < i + rows && !any; r++)
                for (int k = j; k < j + 64 && !any; k++)
                    any = is(c, r, k, x, y);
            n += any;
        }
    return n;
}

static void tiles(bool hopper, const char *config, int rows)
{
    static result out;
    static int32_t x[512];
    static unsigned char y[512 * 512];
    call c;
    open_call(&c, hopper);
    shape(&c, 1, 1, 1, 512, 512);
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
        if (!full() && m % 4 != (hopper ? 1 : 2))
            continue;
        for (int i = 0; i < 512; i++)
            x[i] = masks[m].words == 512 ? 3 - (i >= 90) - (i >= 200) - (i >= 420) : masks[m].words == 2 ? 128 + 192 * i : 192;
        for (int i = 0; i < 512 * 512; i++)
            y[i] = masks[m].bytes == 16 ? i * 7 % 3 == 0 : i / 512 / 50 == i % 512 / 90;
        fa_score *score = program(&c, masks[m].text);
        if (masks[m].rank)
            array(&c, 0, masks[m].words ? (void *)x : (void *)y, masks[m].words ? (size_t)masks[m].words * 4 : (size_t)masks[m].bytes,
                  masks[m].extent, masks[m].rank);
        run(&c, config, &out);
        int seen = tiles_seen(&c, masks[m].sees, rows, x, y);
        cr_expect_eq(out.keys, 64.0 * seen, "%s of %s: %g keys are read, of %d tiles", config, masks[m].name, out.keys, seen);
        fa_score_destroy(score);
    }
    close_call(&c);
}

Test(mask_laws, keys_are_read_of_tiles_with_a_pair_that_is_seen)
{
    tiles(false, "flash_fwd_mma:br=64,bc=64,warps=4,stages_k=1,stages_v=2,order=v_last,q_regs=0,pack=0,lag=8,ctas=1", 64);
}

Test(mask_laws, they_are_on_hopper)
{
    tiles(true,
          "flash_fwd_wgmma:br=128,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=pingpong,grid=persistent,"
          "ahead=0,sections=1,cluster=1,exp=0,rescale=lazy_scaled,convert=early,o_path=tma",
          128);
}

/* Of tiles that a mask leaves whole no pair is asked: one hidden pair in each costs nearly a quarter of the kernel's instructions. */
static void whole_tiles(bool hopper, const char *config)
{
    static result some, all;
    static unsigned char y[512 * 512];
    call c;
    open_call(&c, hopper);
    shape(&c, 1, 1, 1, 512, 512);
    program(&c, masks[3].text);
    memset(y, 1, sizeof y);
    array(&c, 0, y, sizeof y, masks[3].extent, 4);
    run(&c, config, &all);
    for (int i = 0; i < 512; i += 64)
        for (int j = 0; j < 512; j += 64)
            y[i * 512 + j] = 0;
    array(&c, 0, y, sizeof y, masks[3].extent, 4);
    run(&c, config, &some);
    cr_expect_eq(all.keys, some.keys);
    cr_expect_gt(some.instructions, 1.24 * all.instructions, "%s: %.0f, and %.0f where no pair is hidden", config, some.instructions,
                 all.instructions);
    close_call(&c);
}

Test(mask_laws, pairs_of_whole_tiles_are_not_asked)
{
    whole_tiles(false, "flash_fwd_mma:br=64,bc=64,warps=4,stages_k=1,stages_v=2,order=v_last,q_regs=0,pack=0,lag=8,ctas=1");
}

Test(mask_laws, they_are_not_on_hopper)
{
    whole_tiles(true, "flash_fwd_wgmma:br=64,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=plain,grid=persistent,"
                      "ahead=0,sections=1,cluster=1,exp=0,rescale=lazy,convert=early,o_path=direct");
}

/* ---- the order in which tiles are drawn ---- */

/* Of the last tiles of a launch those with most blocks of keys come first. They are numbered head by head, from the last rows on; the
 * kernel of lines leaves their numbers after the lines, which are of 32 bytes and begin after the counters. */
Test(mask_laws, tiles_with_most_blocks_come_first)
{
    enum { HEADS = 4, TILES = 4 * HEADS, LINES = HEADS * 8 * 2 * 16 };
    static unsigned char seen[HEADS][8][64];
    static result out;
    int found[TILES];
    call c;
    open_call(&c, true);
    shape(&c, 1, HEADS, HEADS, 512, 4096);
    for (int number = 0; number < TILES; number++)
        for (int k = 0; k < (5 * number + 3) % TILES; k++) /* blocks of keys of one of the two lines, and of the other */
            seen[number % HEADS][(3 - number / HEADS) * 2 + k % 2][k * 7 % 32] = 1;
    program(&c, "m = u8 'b hq sq/64 sk/64'\nfunction mask(b, h, i, j) return m[b][h][i // 64][j // 64] ~= 0 end");
    array(&c, 0, seen, sizeof seen, (int[]){ 1, HEADS, 8, 64 }, 4);
    run(&c,
        "flash_fwd_wgmma:br=128,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=plain,grid=persistent,"
        "ahead=0,sections=1,cluster=1,exp=0,rescale=lazy_scaled,convert=early,o_path=tma",
        &out);
    SCORE_OK(fa_copy(c.ctx, found, (char *)c.workspace + FA_WORKSPACE_COUNTERS + LINES, sizeof found, FA_FROM_DEVICE));
    for (int i = 0; i < TILES; i++)
        cr_expect_eq((5 * found[i] + 3) % TILES, TILES - 1 - i, "number %d is tile %d", i, found[i]);
    close_call(&c);
}

/* Of more tiles than are ordered the first keep their numbers, and each is drawn once: else LSE of some head stays what it was. */
Test(mask_laws, tiles_before_the_last_keep_their_order)
{
    enum { HEADS = 540, FIRST = HEADS - 512, LINES = (HEADS * 2 * 16 + 255) / 256 * 256 };
    static unsigned char seen[HEADS][64];
    static float before[HEADS];
    static result out;
    int found[HEADS - FIRST], blocks[HEADS] = { 0 };
    bool drawn[HEADS] = { false };
    call c;
    open_call(&c, true);
    shape(&c, 1, HEADS, 1, 1, 4096);
    for (int head = 0; head < HEADS; head++) {
        before[head] = -7;
        blocks[head] = head % 37 == 5 ? 1 + head % 6 : 0; /* of most nothing is seen */
        for (int k = 0; k < blocks[head]; k++)
            seen[head][(head + 11 * k) % 64] = 1;
    }
    SCORE_OK(fa_copy(c.ctx, c.a.lse, before, sizeof before, FA_TO_DEVICE));
    program(&c, "m = u8 'b hq sq/64 sk/64'\nfunction mask(b, h, i, j) return m[b][h][i // 64][j // 64] ~= 0 end");
    array(&c, 0, seen, sizeof seen, (int[]){ 1, HEADS, 1, 64 }, 4);
    run(&c,
        "flash_fwd_wgmma:br=64,bc=64,ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,q_bufs=1,schedule=plain,grid=persistent,"
        "ahead=0,sections=1,cluster=1,exp=0,rescale=lazy_scaled,convert=early,o_path=tma",
        &out);
    SCORE_OK(fa_copy(c.ctx, found, (char *)c.workspace + FA_WORKSPACE_COUNTERS + LINES, sizeof found, FA_FROM_DEVICE));
    for (int i = 0; i < HEADS - FIRST; i++) {
        cr_assert(found[i] >= FIRST && found[i] < HEADS && !drawn[found[i]], "number %d is tile %d", FIRST + i, found[i]);
        drawn[found[i]] = true;
        cr_expect(i == 0 || blocks[found[i - 1]] >= blocks[found[i]], "number %d has %d blocks, the one before %d", FIRST + i,
                  blocks[found[i]], i ? blocks[found[i - 1]] : 0);
    }
    for (int head = 0; head < HEADS; head++)
        cr_expect(blocks[head] ? out.lse[head] > 3 && out.lse[head] < 9 : out.lse[head] == -INFINITY, "head %d of %d blocks: LSE %g", head,
                  blocks[head], (double)out.lse[head]);
    close_call(&c);
}
