/* Tiles of masks as CUDA, on the simulator: tables that a kernel fills, and classes and bounds that another reads from them, are those of
 * the host; the interval of a row has the keys that it sees, and no other. */
#include "gen/config.h"
#include "gen/score/print_arrays.h"
#include "gen/score/print_cuda.h"
#include "gen/score/print_tiles.h"
#include "gen/score/tile_class.h"
#include "gen/templates.h"
#include "runtime/runtime.h"
#include "score_arena.h"
#include "score_masks.h"
#include "score_programs.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include "test_gen_toy.h"
#include "test_verify_device.h"
#include <stdarg.h>
#include <stdlib.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { D = 64, MOST = 23, TILES = 40, BATCH = 3, HEADS = 4, WORKSPACE = 2 << 20 }; /* programs of a text, tiles of a program */

/* The first fills tables, the second asks of each tile, a row of Q, what O is to have. */
static const char family[] = "return {\n"
                             "  doc = \"tiles\", default = false, tunables = { { \"one\", { 1 }, \"\" } },\n"
                             "  supports = function(p, a) return true end, constraints = {},\n"
                             "  layout = function(p, c, a) return { bytes = 0, threads = 32, regs = 40 } end,\n"
                             "  workspace = \"tables int32 262144\",\n"
                             "  steps = function(p, c, a, l)\n"
                             "    return { { entry = \"fill\", threads = 64, smem = 0, grid = \"b 6\" }, { entry = \"classes\", threads = "
                             "32, smem = 0, grid = \"sq\" } }\n"
                             "  end,\n"
                             "  params = function(p, c, a, l) return \"q k o q_ss o_ss tables\" end,\n"
                             "}\n";

typedef struct masked {
    score_stored at;
    char text[2048];
    fa_score_tiles plan;
    fa_score_bounds keys, queries;
    fa_score_tables *tables[BATCH];
    bool fractions; /* it has numbers with a fraction, which round */
} masked;

static masked all[MOST];
static int programs;

/* What a kernel says of a tile. */
enum { CLASS, KEYS, QUERIES = KEYS + 4, ROW = QUERIES + 4, COLUMN = ROW + 2, SAID = COLUMN + 2 };

/* ---- programs ---- */

/* Lengths that 16 bytes divide for every other program; extents by them. */
static void size(score_world *w, int64_t sq, int64_t sk)
{
    const int64_t of[FA_SCORE_LENGTHS] = { w->b, w->hq, w->hkv, sq, sk, w->b * sq, w->b * sk };
    w->data.sq = sq;
    w->data.sk = sk;
    w->data.off = sk - sq;
    for (int k = 0; k < w->ir->operands; k++)
        for (int r = 0; r < w->ir->operand[k].rank; r++) {
            int64_t n = fa_score_shape_extent(&w->ir->operand[k].extent[r], of);
            w->data.extent[k][r] = n < 0 ? 17 : n > 0 ? n : 1;
        }
}

static void add_program(fa_program *p, const char *text, uint64_t *state)
{
    cr_assert_lt(programs, MOST);
    masked *m = &all[programs++];
    m->at.program = p;
    snprintf(m->text, sizeof m->text, "%s", text);
    score_world_draw(&m->at.world, &p->ir, state);
    if (programs % 2)
        size(&m->at.world, 256, programs % 4 == 1 ? 512 : 256);
    for (int k = 0; k < p->ir.operands; k++) {
        m->at.world.data.scalar[k] = (float)m->at.world.data.scalar[k];
        if (!p->ir.operand[k].scalar)
            fill(&m->at, k, score_mask_element);
    }
    m->at.world.data.read = read_arena;
    m->at.world.data.user = &m->at;
    fa_score_tiles_of(&m->plan, &p->ir);
    fa_score_bounds_of(&m->keys, &m->plan, FA_SCORE_J);
    fa_score_bounds_of(&m->queries, &m->plan, FA_SCORE_I);
    for (int b = 0; b < BATCH; b++)
        OK(fa_score_tables_make(&m->tables[b], &m->plan, &m->at.world.data, b, HEADS));
    m->fractions = false;
    for (int i = 0; i < p->ir.n; i++)
        m->fractions = m->fractions || p->ir.node[i].type == FA_SCORE_F32;
}

/* What those that people write have not. */
static const char *const others[] = {
    "function mask(b, h, i, j) return (i % 8 - 3) * (j % 16 - 9) <= h * 9 - 12 or (i // 64 % 8) * (j // 64 % 8) == 2 end",
    "function mask(b, h, i, j) return (i < 70 and j or 300 - j) <= 90 or i < 3 * min(j, 9999) - 400 end",
    "function mask(b, h, i, j) return (i | 21) <= 90 and (j ~ 37) >= 32 and 3 * min(j, 9999) - 2 * min(i, 999) <= 100 end",
    "function mask(b, h, i, j) return i <= 3 * (j // 2) + 50 and 2 * (j // 3) <= (i + 131) // 2 and -i % 7 <= 5 end",
    "c = scalar(7, 'int', 1, 60) function mask(b, h, i, j) return (i - j) // c <= -2 or (j - 200) // 3 >= (i - 31) // 5 end",
    "function mask(b, h, i, j) return i // 64 < j // 64 end",
    "ids = i32 'hq sk' function mask(b, h, i, j) return ids[h][i] == ids[h][j] end",
    "function mask(b, h, i, j) return (i // 16 % 16 | 1) ~= 2 * h + 3 end",
    "flags = u8 'sq sk' function mask(b, h, i, j) return flags[i][j] ~= 0 end",
    "row = u8 '1 sk' function mask(b, h, i, j) return row[i // 999][j] ~= 0 end",
};

static void draw_programs(int n, uint64_t seed)
{
    uint64_t state = seed;
    static mask_text text;
    programs = 0;
    used = 0;
    memset(arena, 0, sizeof arena);
    for (size_t k = 0; k < SCORE_PROGRAMS && seed == 1; k++) {
        fa_program *p;
        if (!strstr(score_programs[k].text, "mask("))
            continue;
        OK(fa_program_read(&p, score_programs[k].name, score_programs[k].text, strlen(score_programs[k].text)));
        add_program(p, score_programs[k].text, &state);
    }
    for (size_t k = 0; k < sizeof others / sizeof *others && seed == 1; k++) {
        fa_program *p;
        OK(fa_program_read(&p, "other", others[k], strlen(others[k])));
        add_program(p, others[k], &state);
    }
    while (programs < n) {
        fa_program *p = score_mask_draw(&text, score_next(&state));
        if (p)
            add_program(p, text.s, &state);
    }
}

static void free_programs(void)
{
    for (int k = 0; k < programs; k++) {
        for (int b = 0; b < BATCH; b++)
            fa_score_tables_free(all[k].tables[b]);
        fa_program_free(all[k].at.program);
    }
}

/* ---- text ---- */

static const char operands[] = "  int b, hq, sq, sk, group;\n  void *mask_queries, *mask_keys, *mask_pairs0, *mask_pairs1;\n";

/* Ints of a side's table, and of a pair's. */
static int64_t side_ints(const fa_score_side_tables *s, int64_t n)
{
    return s->n ? (s->by_b ? BATCH : 1) * (s->by_h ? HEADS : 1) * ((n + 63) / 64) * s->words : 0;
}

static int64_t pair_ints(const masked *m, int k)
{
    if (k >= m->plan.pairs)
        return 0;
    const int64_t *extent = m->at.world.data.extent[m->plan.pair[k].operand];
    int rank = m->at.program->ir.operand[m->plan.pair[k].operand].rank;
    int64_t n = 1;
    for (int r = 0; r < rank; r++)
        n *= r >= rank - 2 ? (extent[r] + 63) / 64 : extent[r];
    return n;
}

static int64_t place_tables(const masked *m, int64_t at, char *out, size_t n)
{
    const fa_score_data *d = &m->at.world.data;
    const int64_t ints[] = { side_ints(&m->plan.queries, d->sq), side_ints(&m->plan.keys, d->sk), pair_ints(m, 0), pair_ints(m, 1) };
    int end = snprintf(out, n, "%d, %d, %d, %d, 2, ", BATCH, HEADS, (int)d->sq, (int)d->sk);
    for (int k = 0; k < 4; k++) {
        end += snprintf(out + end, n - (size_t)end, "tables + %d, ", (int)at);
        at += (ints[k] + 3) / 4 * 4;
    }
    cr_assert_lt(at, 262144);
    return at;
}

static void print_function(fa_text *t, const char *head, void (*body)(fa_text *, const masked *), const masked *m)
{
    fa_text_fmt(t, "__device__ __forceinline__ %s {\n", head);
    body(t, m);
    fa_text_str(t, "}\n");
}

static void body_class(fa_text *t, const masked *m)
{
    fa_score_tiles_print_class(t, &m->plan);
}

static void body_keys(fa_text *t, const masked *m)
{
    fa_score_tiles_print_bounds(t, &m->keys);
}

static void body_queries(fa_text *t, const masked *m)
{
    fa_score_tiles_print_bounds(t, &m->queries);
}

static void body_row(fa_text *t, const masked *m)
{
    if (m->keys.exact)
        fa_score_tiles_print_ends(t, &m->keys);
    else
        fa_text_str(t, "  return {0, 0};\n");
}

static void body_column(fa_text *t, const masked *m)
{
    if (m->queries.exact)
        fa_score_tiles_print_ends(t, &m->queries);
    else
        fa_text_str(t, "  return {0, 0};\n");
}

static void print_program(fa_text *t, const masked *m, int k)
{
    const fa_score_data *d = &m->at.world.data;
    fa_text_fmt(t, "namespace program%d {\n", k);
    print_operands(t, &m->at, operands);
    fa_text_fmt(t,
                "struct ScoreTile {\n  int b, h, off, sq, sk;\n};\n"
                "__device__ __forceinline__ int sequence_of(const Operands &, int b) { return b; }\n"
                "__device__ __forceinline__ ScoreTile score_tile(const Operands &, int b, int h) { return {b, h, %d, %d, %d}; }\n",
                (int)d->off, (int)d->sq, (int)d->sk);
    fa_score_print_helpers(t, &m->at.program->ir, "Operands");
    fa_score_tiles_print_helpers(t, &m->plan, "Operands");
    fa_score_tiles_print_fill(t, &m->plan, "Operands");
    print_function(t, "int tile_class(const Operands &p, const ScoreTile &t, int h0, int h1, int i0, int i1, int j0, int j1)", body_class,
                   m);
    print_function(t, "ScoreBounds keys(const Operands &p, const ScoreTile &t, int h0, int h1, int i0, int i1)", body_keys, m);
    print_function(t, "ScoreBounds queries(const Operands &p, const ScoreTile &t, int h0, int h1, int j0, int j1)", body_queries, m);
    print_function(t, "ScoreEnds row(const Operands &p, const ScoreTile &t, int head, int row)", body_row, m);
    print_function(t, "ScoreEnds column(const Operands &p, const ScoreTile &t, int head, int key)", body_column, m);
    fa_text_str(t, "}\n");
}

static char *text_of(void)
{
    fa_text t = { 0 };
    int64_t at = 0;
    fa_text_str(&t, "constexpr int BR = 1, BC = 1;\n//| include \"machine/prelude.cu\"\n//| include \"pairs/intervals.cu\"\n"
                    "//| include \"pairs/mask_tables.cu\"\n");
    for (int k = 0; k < programs; k++)
        print_program(&t, &all[k], k);
    fa_text_str(&t, "extern \"C\" __global__ void __launch_bounds__(64) fill(const __grid_constant__ Params p) {\n"
                    "  const char *const arena = (const char *)p.k;\n  int *const tables = (int *)p.tables;\n"
                    "  const int warp = blockIdx.x * 2 + threadIdx.x / 32, warps = gridDim.x * 2, lane = threadIdx.x % 32;\n");
    at = 0;
    for (int k = 0; k < programs; k++) {
        char more[256];
        at = place_tables(&all[k], at, more, sizeof more);
        fa_text_fmt(&t, "  {\n    const program%d::Operands given = ", k);
        print_launch(&t, &all[k].at, more);
        fa_text_fmt(&t, ";\n    program%d::score_fill_tables(given, warp, warps, lane);\n  }\n", k);
    }
    fa_text_str(&t, "}\nextern \"C\" __global__ void __launch_bounds__(32) classes(const __grid_constant__ Params p) {\n"
                    "  const float *const q = (const float *)p.q + blockIdx.x * p.q_ss;\n"
                    "  float *const o = (float *)p.o + blockIdx.x * p.o_ss;\n"
                    "  const char *const arena = (const char *)p.k;\n  int *const tables = (int *)p.tables;\n"
                    "  int a[8];\n  for (int k = 0; k < 8; k++) a[k] = (int)q[k];\n"
                    "  if (threadIdx.x > 0) return;\n");
    at = 0;
    for (int k = 0; k < programs; k++) {
        char more[256];
        at = place_tables(&all[k], at, more, sizeof more);
        fa_text_fmt(&t, "  if (a[7] == %d) {\n    const program%d::Operands given = ", k, k);
        print_launch(&t, &all[k].at, more);
        fa_text_fmt(&t,
                    ";\n    const program%d::ScoreTile tile = program%d::score_tile(given, a[0], a[1]);\n"
                    "    o[0] = program%d::tile_class(given, tile, a[1], a[2], a[3], a[4], a[5], a[6]);\n"
                    "    const ScoreBounds x = program%d::keys(given, tile, a[1], a[2], a[3], a[4]);\n"
                    "    const ScoreBounds y = program%d::queries(given, tile, a[1], a[2], a[5], a[6]);\n"
                    "    const ScoreEnds r = program%d::row(given, tile, a[1], a[3]), c = program%d::column(given, tile, a[1], a[5]);\n"
                    "    o[1] = x.lo, o[2] = x.hi, o[3] = x.full_lo, o[4] = x.full_hi;\n"
                    "    o[5] = y.lo, o[6] = y.hi, o[7] = y.full_lo, o[8] = y.full_hi;\n"
                    "    o[9] = r.lo, o[10] = r.hi, o[11] = c.lo, o[12] = c.hi;\n  }\n",
                    k, k, k, k, k, k, k);
    }
    fa_text_str(&t, "}\n");
    cr_assert(!t.oom);
    return t.s;
}

/* ---- comparison ---- */

static bool seen(const masked *m, int64_t b, int64_t h, int64_t i, int64_t j)
{
    static double value[FA_SCORE_ROOM];
    fa_score_pair pair = { b, h, i, j, 0 };
    const fa_score_ir *ir = &m->at.program->ir;
    return fa_score_eval(ir, ir->root[FA_SCORE_ROOT_MASK], &m->at.world.data, &pair, value) != 0;
}

static int64_t last_of(int64_t first, int64_t n, int64_t all_of)
{
    return (first + n < all_of ? first + n : all_of) - 1;
}

static fa_score_tile draw_tile(const score_world *w, uint64_t *state)
{
    static const int64_t sizes[] = { 1, 16, 64, 128 };
    fa_score_tile t = { .b = score_below(state, w->b), .h0 = score_below(state, w->hq) };
    t.h1 = score_below(state, 3) ? t.h0 : w->hq - 1;
    int64_t by = score_below(state, 2) ? 64 : 1; /* blocks of tables, or across them */
    t.i0 = score_below(state, w->data.sq) / by * by;
    t.j0 = score_below(state, w->data.sk) / by * by;
    bool one = by == 64 && score_below(state, 2); /* of one entry alone: no other entry says the same of it */
    t.i1 = last_of(t.i0, one ? 64 : sizes[score_below(state, 4)], w->data.sq);
    t.j1 = last_of(t.j0, one ? 64 : sizes[score_below(state, 4)], w->data.sk);
    return t;
}

/* What is wrong; "": nothing. */
typedef struct verdict {
    char wrong[4096];
    int decided, exact;
} verdict;

static bool fails(verdict *v, const masked *m, const char *form, ...)
{
    va_list ap;
    va_start(ap, form);
    int n = snprintf(v->wrong, sizeof v->wrong, "%s\n", m->text);
    vsnprintf(v->wrong + n, sizeof v->wrong - (size_t)n, form, ap);
    va_end(ap);
    return false;
}

static bool same_ends(verdict *v, const masked *m, const char *what, const float *said, fa_score_ends is)
{
    bool some = (said[0] == is.lo && said[1] == is.hi) || (said[0] > said[1] && is.lo > is.hi);
    bool whole = (said[2] == is.full_lo && said[3] == is.full_hi) || (said[2] > said[3] && is.full_lo > is.full_hi);
    return (some && whole) || fails(v, m, "%s %g %g %g %g, not %d %d %d %d", what, said[0], said[1], said[2], said[3], (int)is.lo,
                                    (int)is.hi, (int)is.full_lo, (int)is.full_hi);
}

static bool same_line(verdict *v, const masked *m, const fa_score_tile *t, const float *said, bool row)
{
    for (int64_t y = 0; y < (row ? m->at.world.data.sk : m->at.world.data.sq); y++)
        if (seen(m, t->b, t->h0, row ? t->i0 : y, row ? y : t->j0) != (y >= said[0] && y <= said[1]))
            return fails(v, m, "%s %d, %d of %d to %d", row ? "query" : "key", (int)(row ? t->i0 : t->j0), (int)y, (int)said[0],
                         (int)said[1]);
    return true;
}

/* Numbers with a fraction round, so that classes may differ: they are right all the same. */
static bool right(verdict *v, const masked *m, const fa_score_tile *t, const float *said, uint64_t *state)
{
    const fa_score_tables *tables = m->tables[t->b];
    fa_score_class is = fa_score_class_of(tables, t);
    int64_t rows = t->i1 - t->i0 + 1, columns = t->j1 - t->j0 + 1;
    v->decided += said[CLASS] != FA_SCORE_PARTIAL;
    if (!m->fractions && said[CLASS] != is)
        return fails(v, m, "class %g, not %d, of heads %d to %d, queries %d to %d, keys %d to %d of sequence %d", said[CLASS], is,
                     (int)t->h0, (int)t->h1, (int)t->i0, (int)t->i1, (int)t->j0, (int)t->j1, (int)t->b);
    for (int n = 0; n < 60 && said[CLASS] != FA_SCORE_PARTIAL; n++) {
        int64_t h = t->h0 + score_below(state, t->h1 - t->h0 + 1), i = t->i0 + score_below(state, rows),
                j = t->j0 + score_below(state, columns);
        if (seen(m, t->b, h, i, j) != (said[CLASS] == FA_SCORE_FULL))
            return fails(v, m, "class %g has the pair %d, %d", said[CLASS], (int)i, (int)j);
    }
    if (m->fractions)
        return true;
    v->exact += m->keys.exact;
    return same_ends(v, m, "keys", said + KEYS, fa_score_ends_of(tables, &m->keys, t)) &&
           same_ends(v, m, "queries", said + QUERIES, fa_score_ends_of(tables, &m->queries, t)) &&
           (!m->keys.exact || same_line(v, m, t, said + ROW, true)) && (!m->queries.exact || same_line(v, m, t, said + COLUMN, false));
}

/* ---- a launch ---- */

/* Of a template, in the place of its own text, or where `file` is NULL of what is printed. */
typedef struct fault {
    const char *name, *file, *find, *replace;
} fault;

static char *replaced(const char *text, const fault *f)
{
    const char *at = strstr(text, f->find);
    fa_text t = { 0 };
    cr_assert(at, "%s: the text is not there any more: %s", f->name, f->find);
    for (; at; text = at + strlen(f->find), at = f->file ? NULL : strstr(text, f->find)) { /* of what is printed all places */
        fa_text_add(&t, text, (size_t)(at - text));
        fa_text_str(&t, f->replace);
    }
    fa_text_str(&t, text);
    return t.s;
}

static void plant(const char *dir, const fault *f)
{
    const fa_template_file *t = fa_template_files;
    while (t->name && strcmp(t->name, f->file) != 0)
        t++;
    cr_assert_not_null(t->name, "%s: there is no %s", f->name, f->file);
    char *text = replaced(t->bytes, f);
    toy_write(dir, f->file, text);
    free(text);
}

static const fa_plan *plan_of(fa_context *ctx, const char *name)
{
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    raw.dtype = FA_F32, raw.d = raw.dv = D;
    OK(fa_problem_normalize(&p, &raw));
    OK(fa_config_parse(&c, "tiles:one=1"));
    cr_assert_eq(fa_plan_make(ctx, &p, &c, NULL, &plan), FA_OK, "%s: %s", name, fa_last_error());
    return plan;
}

static float said[MOST * TILES * D];
static fa_score_tile tiles[MOST * TILES];

/* What the kernels say of tiles of the programs that are drawn; false: they fault. */
static bool launch(const fault *f, uint64_t seed)
{
    static float q[MOST * TILES * D];
    const char *const files[] = { "tiles.lua", "tiles.cu", f && f->file ? f->file : NULL, NULL };
    fa_options options = FA_OPTIONS_INIT;
    char dir[] = "/tmp/fagen-tiles-XXXXXX";
    fa_context *ctx;
    uint64_t state = seed + 77;
    void *dq, *dk, *d_o, *workspace;
    cr_assert_not_null(mkdtemp(dir));
    char *text = text_of();
    if (f && !f->file) {
        char *plain = text;
        text = replaced(plain, f);
        free(plain);
    } else if (f)
        plant(dir, f);
    toy_write(dir, "tiles.lua", family);
    toy_write(dir, "tiles.cu", text);
    free(text);
    scratch_make();
    options.device = "sim:sm_80";
    options.cache_dir = scratch;
    options.template_dir = dir;
    OK(fa_create(&ctx, &options));
    OK(fa_alloc(ctx, &dq, sizeof q));
    OK(fa_alloc(ctx, &d_o, sizeof said));
    OK(fa_alloc(ctx, &dk, used + 64));
    OK(fa_alloc(ctx, &workspace, WORKSPACE));
    OK(fa_workspace_init(ctx, workspace, WORKSPACE, NULL));
    OK(fa_copy(ctx, dk, arena, used + 64, FA_TO_DEVICE));
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_F32;
    a.d = a.dv = D;
    a.b = a.hq = a.hkv = a.sk = 1;
    a.sq = programs * TILES;
    a.workspace = workspace;
    a.workspace_size = WORKSPACE;
    a.q.ptr = dq, a.k.ptr = a.v.ptr = dk, a.o.ptr = d_o;
    for (int k = 0; k < programs * TILES; k++) {
        fa_score_tile t = tiles[k] = draw_tile(&all[k % programs].at.world, &state);
        const int64_t row[] = { t.b, t.h0, t.h1, t.i0, t.i1, t.j0, t.j1, k % programs };
        for (int x = 0; x < 8; x++)
            q[k * D + x] = (float)row[x];
    }
    OK(fa_copy(ctx, dq, q, sizeof q, FA_TO_DEVICE));
    fa_status st = fa_plan_launch(ctx, plan_of(ctx, f ? f->name : ""), &a, NULL);
    cr_assert(st == FA_OK || f, "%s", fa_last_error());
    if (st == FA_OK)
        OK(fa_copy(ctx, said, d_o, sizeof said, FA_FROM_DEVICE));
    fa_destroy(ctx);
    toy_remove(dir, files);
    scratch_remove();
    return st == FA_OK;
}

static bool all_right(verdict *v, uint64_t seed)
{
    uint64_t state = seed;
    for (int k = 0; k < programs * TILES; k++)
        if (!right(v, &all[k % programs], &tiles[k], said + k * D, &state))
            return false;
    return true;
}

Test(score_tiles_printed, kernels_class_tiles_as_the_host_does, .timeout = 1200)
{
    static verdict v;
    int all_tiles = 0;
    for (uint64_t seed = 1; seed <= (full() ? 40 : 1); seed++) {
        draw_programs(seed == 1 ? MOST : 12, seed); /* those that people write are shorter */
        test_mode(seed % 2 ? SIM_LAZY : SIM_EAGER, SIM_IN_ORDER, seed);
        launch(NULL, seed);
        cr_assert(all_right(&v, seed), "%s", v.wrong);
        all_tiles += programs * TILES;
        free_programs();
    }
    cr_assert_gt(v.decided * 10, all_tiles * 2, "%d of %d tiles", v.decided, all_tiles);
    cr_assert_gt(v.exact * 10, all_tiles, "%d of %d tiles", v.exact, all_tiles);
}

/* ---- faults ---- */

#define I "intervals.cu"
#define T "mask_tables.cu"
/* clang-format off */
static const fault faults[] = {
    { "a sum's ends the other way", NULL, ".hi, 0ll", ".lo, 0ll" },
    { "floor division towards 0", I, "return q - (q * y != x && (x < 0) != (y < 0));", "return q;" },
    { "the largest of a product is the first", I, "max(max(a, b), max(c, d))", "max(a, b)" },
    { "a rest over two quotients", I, "if (y.lo == y.hi && first == score_quotient(x.hi, y.lo))", "if (y.lo == y.hi)" },
    { "a rest that is too small", I, "return {0, x.lo >= 0 ? min(y.hi - 1, x.hi) : y.hi - 1};", "return {0, min(y.hi - 1, x.hi)};" },
    { "the smallest of two is the second", I, "score_min(ScoreSpan x, ScoreSpan y) { return {min(x.lo, y.lo)",
      "score_min(ScoreSpan x, ScoreSpan y) { return {(y.lo)" },
    { "an absolute value without 0", I, "return {x.lo <= 0 && x.hi >= 0 ? 0 : min(a, b), max(a, b)};", "return {min(a, b), max(a, b)};" },
    { "less is at most", I, "score_lt(ScoreSpan x, ScoreSpan y) { return {x.hi < y.lo,",
      "score_lt(ScoreSpan x, ScoreSpan y) { return {x.hi <= y.lo," },
    { "what may be at most is not", I, "return {x.hi <= y.lo, x.lo <= y.hi}", "return {x.hi <= y.lo, x.lo < y.hi}" },
    { "equal where they only meet", I, "return {x.lo == x.hi && y.lo == y.hi && x.lo == y.lo, x.hi >= y.lo && y.hi >= x.lo};",
      "return {x.lo == y.lo, x.hi >= y.lo && y.hi >= x.lo};" },
    { "sets that are never apart", I, "r.hi & ((of_x & of_y) != 0)", "r.hi" },
    { "a contrary with its ends the other way", I, "return {1 - x.hi, 1 - x.lo};", "return {1 - x.lo, 1 - x.hi};" },
    { "one side of a choice", I, "c.hi < 1 ? y : score_hull(x, y)", "c.hi < 1 ? y : x" },
    { "bits without those below the highest", I, "(int)(0xffffffffu >> __clz(most))", "most" },
    { "a quotient's last whole", I, "max(hi * by.lo, hi * by.hi) - more)", "max(hi * by.lo, hi * by.hi))" },
    { "the largest for all, the least for some",
      I, "long long some = score_share<TIMES == 0 ? 1 : TIMES>(t.hi), all = score_share<TIMES == 0 ? 1 : TIMES>(t.lo);",
      "long long some = score_share<TIMES == 0 ? 1 : TIMES>(t.lo), all = score_share<TIMES == 0 ? 1 : TIMES>(t.hi);" },
    { "a share rounded up", I, "t / by - (t % by < 0)", "t / by" },
    { "both, joined", I, "score_both(ScoreBounds x, ScoreBounds y) {\n  return {max(x.lo, y.lo)",
      "score_both(ScoreBounds x, ScoreBounds y) {\n  return {min(x.lo, y.lo)" },
    { "either, where one is empty", I, "return {no_x ? y.lo : no_y ? x.lo : min(x.lo, y.lo)", "return {min(x.lo, y.lo)" },
    { "either, with a gap", I, "x.full_lo <= y.full_hi + 1 && y.full_lo <= x.full_hi + 1 && !none_x && !none_y", "!none_x && !none_y" },
    { "indices that pass the extent", I, "min(max(x.hi, 0), n - 1)};", "max(x.hi, 0)};" },
    { "entries of 32", I, "return (n + 63) / 64;", "return (n + 31) / 64;" },
    { "the first entry of a side alone", NULL, "end = j1 / 64", "end = j0 / 64" },
    { "the first head alone", NULL, "for (int h = h0; h <= h1; h++)", "for (int h = h0; h <= h0; h++)" },
    { "a sequence's table for all", NULL, "(t.b) * score_steps(p.sk)", "(0) * score_steps(p.sk)" },
    { "few elements, but the last", NULL, "a2 <= x2.hi", "a2 < x2.hi" },
    { "every other block of a row", NULL, "column + k % 2", "column" },
    { "the first lane of the largest", T, "__reduce_max_sync(~0u, r.hi)", "r.hi" },
    { "the first lane of half a set", T, "__reduce_or_sync(~0u, (unsigned)(set >> 32))", "(unsigned)(set >> 32)" },
    { "none is 0 where one is not", T, "all[k] &= BITS ? word :", "all[k] |= BITS ? word :" },
    { "bytes whose highest bit counts alone", T, "all[k] &= BITS ? word : ((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word;",
      "all[k] &= word;" },
    { "past the last column nothing is seen", T, "((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) | past;",
      "((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word);" },
    { "what lies past the last bit", T, "piece.any[k] |= word & ~past;", "piece.any[k] |= word | past;" },
    { "two lanes of four", T, "for (int m = 1; m < 4; m *= 2)", "for (int m = 1; m < 2; m *= 2)" },
    { "half of the bytes", T, "any |= any >> 8, all &= all >> 8;", "" },
    { "the first half twice", T, "unsigned any = piece.any[half * 2] | piece.any[half * 2 + 1]",
      "unsigned any = piece.any[0] | piece.any[1]" },
    { "every row but the last", T, "n = min(64, rows - first);", "n = min(64, rows - first) - 1;" },
    { "leading indices forgotten", T, "row += x * (long long)stride[k];", "" },
};
/* clang-format on */
#define FAULTS (sizeof faults / sizeof *faults)
enum { EVERY = 13 };

/* Of a fault some program has a tile that is wrong. */
Test(score_tiles_printed, faults_are_noticed, .timeout = 1200)
{
    static verdict v;
    const char *only = getenv("FAGEN_TILE_FAULT");
    for (size_t n = 0; n < FAULTS; n++) {
        bool noticed = false;
        if (only ? n != (size_t)atoi(only) : !full() && n % EVERY)
            continue;
        for (uint64_t seed = 1; seed <= (faults[n].file ? 4 : 1) && !noticed; seed++) {
            draw_programs(seed == 1 ? MOST : 12, seed);
            noticed = !launch(&faults[n], seed) || !all_right(&v, seed);
            free_programs();
        }
        cr_expect(noticed, "%zu: %s: every tile is right all the same", n, faults[n].name);
    }
}
