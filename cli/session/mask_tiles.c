/* mask_tiles: the plan that kernels are printed from, followed on the host; no element of an operand is known. */
#include "mask_tiles.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include "gen/score/kernel.h"
#include "gen/score/known.h"
#include "gen/score/names.h"
#include "gen/score/shape.h"
#include "gen/workspace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASKED_MOST ((int64_t)1 << 21) /* tiles, of all sequences and heads: about a second */

/* What kernels are printed from. */
typedef struct plan {
    fa_score_kernel kernel;
    fa_score_tiles tiles;
    fa_score_bounds bounds;
} plan;

static fa_status plan_of(plan **out, const fa_program *program)
{
    plan *k = *out = malloc(sizeof *k);
    if (!k || !fa_score_kernel_of(&k->kernel, &program->ir)) {
        free(k);
        *out = NULL;
        return fa_fail(FA_NOMEM, "no memory for the plan of a score program's mask");
    }
    fa_score_tiles_of(&k->tiles, &k->kernel.ir);
    fa_score_bounds_of(&k->bounds, &k->tiles, FA_SCORE_J);
    return FA_OK;
}

/* Arrays that a node reads, as bits. */
static uint32_t arrays_of(const fa_score_ir *ir, int node)
{
    bool reached[FA_SCORE_ROOM] = { false };
    uint32_t arrays = 0;
    fa_score_ir_reach(ir, node, reached);
    for (int i = 0; i <= node; i++)
        arrays |= reached[i] && ir->node[i].op == FA_SCORE_LOOKUP ? 1u << ir->node[i].operand : 0;
    return arrays;
}

static uint32_t prepared_of(const plan *k)
{
    uint32_t arrays = 0;
    for (int i = 0; i < k->tiles.queries.n; i++)
        arrays |= arrays_of(&k->kernel.ir, k->tiles.queries.table[i].node);
    for (int i = 0; i < k->tiles.keys.n; i++)
        arrays |= arrays_of(&k->kernel.ir, k->tiles.keys.table[i].node);
    for (int i = 0; i < k->tiles.pairs; i++)
        arrays |= 1u << k->tiles.pair[i].operand;
    return arrays;
}

static void tell_plan(cli_mask *out, const plan *k)
{
    fa_text tables = { 0 };
    out->found = k->bounds.exact ? CLI_MASK_BOUNDS : CLI_MASK_SCAN;
    out->decides = arrays_of(&k->kernel.ir, k->tiles.mask);
    out->prepared = prepared_of(k);
    fa_score_tiles_buffers(&tables, &k->tiles);
    snprintf(out->tables, sizeof out->tables, "%s", fa_text_cstr(&tables));
    fa_text_free(&tables);
}

static bool has_mask(const fa_program *program)
{
    return program && program->ir.root[FA_SCORE_ROOT_MASK] >= 0;
}

fa_status cli_mask_of(cli_mask *out, const fa_program *program)
{
    plan *k;
    *out = (cli_mask){ .program = program };
    fa_status st = has_mask(program) ? plan_of(&k, program) : FA_OK;
    if (st == FA_OK && has_mask(program)) {
        tell_plan(out, k);
        free(k);
    }
    return st;
}

/* ---- of a problem ---- */

/* As templates/pairs/edges.lua has it; NULL: tiles are looked for. */
static const char *hindrance(const fa_problem *p, const cli_mask *m)
{
    return m->tables[0] && p->features & FA_FEATURE_NO_WORKSPACE ? "a call without a workspace has no tables" : NULL;
}

/* Of gradients all tiles are marked before, be there bounds or none. */
static void tell_marks(cli_mask *out, plan *k, const fa_problem *p)
{
    fa_text tables = { 0 };
    fa_score_tiles_marks(&tables, fa_score_tiles_marked_by(&k->tiles, p->features & FA_FEATURE_LENGTHS));
    size_t n = strlen(out->tables);
    snprintf(out->tables + n, sizeof out->tables - n, "%s%s", n ? ", " : "", fa_text_cstr(&tables));
    fa_text_free(&tables);
    out->found = CLI_MASK_MARKS;
    k->bounds.exact = false;
}

static int64_t bytes_of(const fa_program *program, uint32_t arrays, const fa_problem *p)
{
    const int64_t lengths[FA_SCORE_LENGTHS] = { p->b, p->hq, p->hkv, p->sq, p->sk, (int64_t)p->b * p->sq, (int64_t)p->b * p->sk };
    int64_t sum = 0;
    for (int i = 0; i < program->ir.operands; i++) {
        const fa_score_operand *o = &program->ir.operand[i];
        int64_t bytes = fa_score_element_bytes(o->element);
        for (int r = 0; arrays >> i & 1 && r < o->rank; r++) {
            int64_t n = fa_score_shape_extent(&o->extent[r], lengths);
            if (n < 0)
                return -1;
            bytes *= o->element == FA_SCORE_ELEMENT_BITS && r == o->rank - 1 ? (n + 31) / 32 : n;
        }
        sum += arrays >> i & 1 ? bytes : 0;
    }
    return sum;
}

static fa_status table_bytes(int64_t *out, const char *tables, const fa_problem *p)
{
    fa_workspace w;
    fa_sizes sizes = fa_sizes_of(p, 0);
    *out = 0;
    fa_status st = fa_workspace_parse(&w, tables);
    if (st == FA_OK && w.n)
        *out = fa_workspace_bytes(&w, &sizes, NULL) - FA_WORKSPACE_COUNTERS;
    return st;
}

static void add(fa_score_tile_counts *to, const fa_score_tile_counts *n, int64_t times)
{
    to->empty += n->empty * times;
    to->partial += n->partial * times;
    to->full += n->full * times;
    to->asked += n->asked;
}

/* Tables of one sequence serve all where the mask does not depend on b, those of one head all heads where it does not on h. */
static fa_status count(cli_mask_tiles *out, const plan *k, const fa_problem *p, const fa_score_scalars *scalars)
{
    fa_score_data data = { .off = p->sk - p->sq, .sq = p->sq, .sk = p->sk, .group = p->hq / p->hkv };
    fa_score_tiling how = { out->rows, out->packed ? data.group : 1, out->columns, fa_band_of_problem(p) };
    fa_score_tables *tables;
    int64_t b = 1;
    fa_status st = FA_OK;
    for (int i = 0; i < k->kernel.ir.operands; i++)
        data.scalar[i] = scalars->of[i];
    for (int64_t at = 0; st == FA_OK && at < b; at++) {
        st = fa_score_tables_make(&tables, &k->tiles, &data, at, p->hq);
        if (st != FA_OK)
            break;
        b = fa_score_tables_by(tables, FA_SCORE_OF_B) ? p->b : 1;
        int64_t heads = fa_score_tables_by(tables, FA_SCORE_OF_H) ? p->hq : how.heads;
        for (int64_t h = 0; h < heads; h += how.heads) {
            fa_score_tile_counts n = fa_score_count_tiles(tables, &k->bounds, &how, h, ASKED_MOST - out->all.asked);
            add(&out->all, &n, p->b / b * (heads == p->hq ? 1 : p->hq / how.heads));
        }
        fa_score_tables_free(tables);
    }
    out->sure = !out->mask.decides && out->all.asked < ASKED_MOST;
    return st;
}

fa_status cli_mask_tiles_of(cli_mask_tiles *out, const fa_gen *g, const fa_problem *p, const fa_score_scalars *scalars, const fa_config *c,
                            bool packed)
{
    const fa_program *program = fa_score_known(p);
    fa_score_scalars given = scalars ? *scalars : fa_score_scalars_of(program);
    int32_t tile[2];
    plan *k;
    *out = (cli_mask_tiles){ .packed = packed };
    out->mask.program = program;
    if (!has_mask(program))
        return FA_OK;
    fa_status st = plan_of(&k, program);
    if (st != FA_OK)
        return st;
    tell_plan(&out->mask, k);
    out->why = hindrance(p, &out->mask);
    if (p->op == FA_BACKWARD)
        tell_marks(&out->mask, k, p);
    if (out->why) {
        out->mask.found = CLI_MASK_PAIRS;
        out->mask.prepared = 0;
        out->mask.tables[0] = 0;
    } else {
        out->reads = bytes_of(program, out->mask.prepared, p);
        st = table_bytes(&out->workspace, out->mask.tables, p);
    }
    if (st == FA_OK && !out->why && fa_gen_tile(g, c, tile) && tile[0] > 0 && tile[1] > 0) {
        out->rows = tile[0];
        out->columns = tile[1];
        st = count(out, k, p, &given);
    }
    free(k);
    return st;
}

/* ---- as text and JSON ---- */

static const char *const found_words[] = {
    [CLI_MASK_BOUNDS] = "bounds", [CLI_MASK_SCAN] = "scan", [CLI_MASK_MARKS] = "marks", [CLI_MASK_PAIRS] = "pairs"
};

static json_t *names_json(const fa_program *program, uint32_t arrays)
{
    json_t *list = json_array();
    for (int i = 0; i < program->ir.operands; i++)
        if (arrays >> i & 1)
            json_array_append_new(list, json_string(program->ir.operand[i].name));
    return list;
}

/* "doc, start" */
static const char *names_of(fa_text *out, const fa_program *program, uint32_t arrays)
{
    for (int i = 0; i < program->ir.operands; i++)
        if (arrays >> i & 1)
            fa_text_fmt(out, "%s%s", out->n ? ", " : "", program->ir.operand[i].name);
    return fa_text_cstr(out);
}

json_t *cli_mask_json(const cli_mask *m)
{
    if (m->found == CLI_MASK_NONE)
        return json_null();
    return json_pack("{s:s,s:o,s:o,s:o}", "found", found_words[m->found], "decided_by", names_json(m->program, m->decides), "reads",
                     names_json(m->program, m->prepared), "tables", m->tables[0] ? json_string(m->tables) : json_null());
}

json_t *cli_mask_tiles_json(const cli_mask_tiles *m)
{
    json_t *doc = cli_mask_json(&m->mask);
    if (m->mask.found == CLI_MASK_NONE)
        return doc;
    json_t *more =
        json_pack("{s:o,s:o,s:o,s:o,s:b}", "why", m->why ? json_string(m->why) : json_null(), "read_bytes",
                  m->reads < 0 ? json_null() : json_integer(m->reads), "table_bytes", json_integer(m->workspace), "counts",
                  m->rows ? json_pack("{s:i,s:i,s:I,s:I,s:I}", "rows_of_tile", m->rows, "keys_of_tile", m->columns, "empty",
                                      (json_int_t)m->all.empty, "partial", (json_int_t)m->all.partial, "full", (json_int_t)m->all.full)
                          : json_null(),
                  "sure", m->sure);
    if (doc && more)
        json_object_update(doc, more);
    json_decref(more);
    return doc;
}

/* How tiles are found, and out of what. */
static void print_found(const cli_mask *m)
{
    fa_text of = { 0 };
    cli_say(stdout, m->found == CLI_MASK_BOUNDS  ? "found by   bounds, the first and the last key of a tile's queries"
                    : m->found == CLI_MASK_MARKS ? "found by   marks of all tiles of 64 x 64"
                                                 : "found by   a scan");
    if (m->prepared)
        cli_say(stdout, m->found == CLI_MASK_SCAN ? " of tables of %s" : ", out of tables of %s", names_of(&of, m->program, m->prepared));
    else if (m->found == CLI_MASK_SCAN)
        cli_say(stdout, ", which reads no table");
    fa_text_free(&of);
}

void cli_mask_print(const cli_mask *m)
{
    fa_text by = { 0 };
    if (m->found == CLI_MASK_NONE)
        return;
    print_found(m);
    cli_say(stdout, m->decides ? "; what it hides depends on %s\n" : "\n", names_of(&by, m->program, m->decides));
    if (m->tables[0])
        cli_say(stdout, "tables     %s\n", m->tables);
    fa_text_free(&by);
}

static void print_counts(const cli_mask_tiles *m)
{
    const fa_score_tile_counts *n = &m->all;
    fa_text by = { 0 };
    cli_say(stdout, "tiles      %lld of %d %s x %d keys: ", (long long)(n->empty + n->partial + n->full), m->rows,
            m->packed ? "rows of a group's heads" : "queries", m->columns);
    if (m->sure)
        cli_say(stdout, "%lld empty, %lld partial, %lld full\n", (long long)n->empty, (long long)n->partial, (long long)n->full);
    else
        cli_say(stdout, "%lld empty and %lld full at least, %lld partial at most", (long long)n->empty, (long long)n->full,
                (long long)n->partial);
    if (!m->sure && m->mask.decides)
        cli_say(stdout, ": what %s holds decides\n", names_of(&by, m->mask.program, m->mask.decides));
    else if (!m->sure)
        cli_say(stdout, ": not all were asked\n");
    fa_text_free(&by);
}

void cli_mask_tiles_print(const cli_mask_tiles *m)
{
    if (m->mask.found == CLI_MASK_PAIRS)
        cli_say(stdout, "tiles      all that the launch's mask leaves, and each pair asks the program: %s\n", m->why);
    if (m->mask.found == CLI_MASK_NONE || m->mask.found == CLI_MASK_PAIRS)
        return;
    if (m->rows)
        print_counts(m);
    print_found(&m->mask);
    if (m->mask.found == CLI_MASK_MARKS)
        cli_say(stdout, "; kernels before write %lld bytes of workspace\n", (long long)m->workspace);
    else if (!m->mask.prepared)
        cli_say(stdout, "; no kernel runs before\n");
    else if (m->reads < 0)
        cli_say(stdout, "; a kernel before writes %lld bytes of workspace\n", (long long)m->workspace);
    else
        cli_say(stdout, "; a kernel before reads %lld bytes and writes %lld of workspace\n", (long long)m->reads, (long long)m->workspace);
}
