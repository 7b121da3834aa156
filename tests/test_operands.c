/* The rows of gen/operands.def: which of them a call has, and what follows from their columns. */
#include "gen/arch.h"
#include "gen/error.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "gen/values.h"
#include "runtime/args/check.h"
#include "test_good_args.h"
#include "test_template_edit.h"
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rows_named(const fa_operation *op, const char *names)
{
    uint64_t rows = 0;
    char name[24];
    while (fa_values_next(&names, name)) {
        int i = fa_operand_index(op, name);
        cr_assert(i >= 0, "%s", name);
        rows |= (uint64_t)1 << i;
    }
    return rows;
}

Test(operands, a_class_has_the_rows_of_its_features_and_no_other)
{
    static const struct {
        int32_t op, features;
        const char *names;
    } rows[] = {
        { FA_FORWARD, 0, "q k v o lse" },
        { FA_FORWARD, FA_FEATURE_BATCH_INVARIANT, "q k v o lse" },
        { FA_FORWARD, FA_FEATURE_DROPOUT, "q k v o lse rng" },
        { FA_FORWARD, FA_FEATURE_LENGTHS, "q k v o lse cu_seqlens_q cu_seqlens_k seqlens_q seqlens_k" },
        { FA_FORWARD, FA_FEATURE_LENGTHS | FA_FEATURE_PAGES, "q k v o lse cu_seqlens_q cu_seqlens_k seqlens_q seqlens_k page_table" },
        { FA_BACKWARD, FA_FEATURE_DETERMINISTIC, "q k v o lse grad_o grad_lse grad_q grad_k grad_v" },
        { FA_BACKWARD, FA_FEATURE_DROPOUT, "q k v o lse grad_o grad_lse grad_q grad_k grad_v rng" },
        { FA_MERGE, 0, "part part_lse o lse" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fa_operation *op = fa_operation_find(rows[i].op);
        cr_expect_eq(fa_operands_of(op, &(fa_problem){ .features = rows[i].features }), rows_named(op, rows[i].names), "row %zu", i);
    }
}

Test(operands, an_address_asks_for_the_feature_of_its_row)
{
    fa_args a = good();
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    cr_expect_eq(fa_operation_features(op, &a), 0);
    a.rng = AT(9); /* which dropout asks for */
    cr_expect_eq(fa_operation_features(op, &a), 0);
    a.seqlens_q = AT(10);
    cr_expect_eq(fa_operation_features(op, &a), FA_FEATURE_LENGTHS);
    a.page_table = AT(11);
    cr_expect_eq(fa_operation_features(op, &a), FA_FEATURE_LENGTHS | FA_FEATURE_PAGES);
    a.lse_ss = 1;
    cr_expect_eq(fa_operation_features(op, &a), FA_FEATURE_LENGTHS | FA_FEATURE_PAGES | FA_FEATURE_LSE_STRIDES);
    cr_expect_eq(fa_operation_features(fa_operation_find(FA_MERGE), &a), 0, "its kernels take any strides");
}

/* fagen.h: with dropout = 0 rng is not looked at; of a class with another feature neither. */
Test(operands, what_a_class_does_not_have_is_not_looked_at)
{
    fa_args a = good();
    fa_call c = { .values = { .b = 0 } };
    memset(&c, 0xff, sizeof c);
    a.seqlens_k = AT(10);
    a.rng = (const uint64_t *)(uintptr_t)3;
    cr_assert_eq(fa_check_args(&c, &a, true), FA_OK, "%s", fa_last_error());
    cr_expect_eq(c.operands, 9);
    cr_expect_eq(c.values.operand[fa_operand_index(c.op, "rng")].address, 0);
    a.dropout = 0.5f;
    cr_expect_eq(fa_check_args(&c, &a, true), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "rng is 0x3"), "%s", fa_last_error());
}

/* A tensor more of the forward operation. */
static fa_operand tensor(bool broadcast)
{
    return (fa_operand){ .name = "gate",
                         .rank = 4,
                         .extent = { FA_EXTENT_B, FA_EXTENT_SQ, FA_EXTENT_HQ, FA_EXTENT_DV },
                         .type = FA_TYPE_INPUT,
                         .strided = true,
                         .broadcast = broadcast,
                         .at = offsetof(fa_args, grad_o) };
}

static fa_status launched_with(const fa_tensor *t)
{
    fa_args a = good();
    fa_call c;
    a.flags = FA_BROADCAST;
    a.grad_o = *t;
    return fa_check_args(&c, &a, true);
}

Test(operands, a_stride_of_0_is_meant_where_the_row_may_be_broadcast)
{
    const fa_operand row = tensor(true);
    cr_assert(fa_operand_add(FA_FORWARD, &row));
    cr_expect_eq(launched_with(&(fa_tensor){ AT(9), 0, 0, 64 }), FA_OK, "%s", fa_last_error());
    cr_expect_eq(launched_with(&(fa_tensor){ NULL, 0, 0, 64 }), FA_INVALID);
    cr_expect_str_eq(fa_last_error(), "args: gate.ptr is NULL; accepted: a device address");
}

Test(operands, and_refused_where_it_may_not)
{
    const fa_operand row = tensor(false);
    cr_assert(fa_operand_add(FA_FORWARD, &row));
    cr_expect_eq(launched_with(&(fa_tensor){ AT(9), 0, 64 * 8, 64 }), FA_INVALID);
    cr_expect_str_eq(fa_last_error(), "args: gate.sb is 0 and the dimension is 2 long; accepted: its stride in elements, 0 in all three "
                                      "for packed [b, s, h, d]");
}

Test(operands, one_is_added_once_and_to_its_own_operation)
{
    const fa_operand row = tensor(true);
    fa_operand other = row;
    int n = fa_operation_find(FA_FORWARD)->n;
    other.name = "gate2";
    cr_expect(!fa_operand_add(FA_BACKWARD, &row), "which reads its field");
    cr_expect(!fa_operand_add(100, &row), "no such operation");
    cr_assert(fa_operand_add(FA_FORWARD, &row));
    cr_expect(!fa_operand_add(FA_FORWARD, &row) && !fa_operand_add(FA_FORWARD, &other), "twice");
    cr_expect_eq(fa_operation_find(FA_FORWARD)->n, n + 1);
    cr_expect_eq(fa_operand_index(fa_operation_find(FA_FORWARD), "gate"), n);
    static char names[sizeof(fa_args) / 8][16];
    size_t at = 0; /* any place of its own */
    for (int word = 0; fa_operation_find(FA_FORWARD)->n < FA_OPERANDS_MAX && at < sizeof(fa_args); word++, at += 8) {
        snprintf(names[word], sizeof names[word], "x%d", word);
        fa_operand_add(FA_FORWARD, &(fa_operand){ .name = names[word], .at = at });
    }
    cr_expect_eq(fa_operation_find(FA_FORWARD)->n, FA_OPERANDS_MAX);
    other.name = "last";
    other.at = at;
    cr_expect(!fa_operand_add(FA_FORWARD, &other), "there is no room for one more");
}

Test(operands, the_feature_of_a_row_is_one_of_its_operation)
{
    const fa_operation *op;
    for (size_t i = 0; (op = fa_operation_row(i)); i++)
        for (int k = 0; k < op->n; k++)
            cr_expect(!(op->operand[k].feature & ~op->features), "%s of %s", op->operand[k].name, op->name);
}

Test(operands, a_value_belongs_to_the_row_that_brings_it)
{
    static const struct {
        const char *value, *operand;
    } rows[] = { { "q", "q" },
                 { "q_ss", "q" },
                 { "lse_sh", "lse" },
                 { "keep_scale", "rng" },
                 { "pages", "page_table" },
                 { "total_q", "cu_seqlens_q" },
                 { "scale", NULL },
                 { "q_sp", NULL } };
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(fa_value_operand(op, rows[i].value), rows[i].operand ? fa_operand_index(op, rows[i].operand) : -1, "%s",
                     rows[i].value);
}

/* Where it would read no address. */
Test(operands, a_kernel_takes_no_value_of_a_row_that_its_class_lacks)
{
    fa_gen *g;
    fa_problem p;
    fa_config c;
    fa_source s = { .steps = 0 };
    const edit taken = { "naive.lua", "\"scale hq group sq sk", "\"keep_scale scale hq group sq sk" };
    scratch_make();
    write_edited(&taken);
    cr_assert_eq(fa_gen_open(&g, scratch), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64"), FA_OK);
    cr_assert_eq(fa_config_parse(&c, "naive:tile=64"), FA_OK);
    cr_expect_eq(fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "\"keep_scale\" comes with rng, which problems without the feature dropout do not have"), "%s",
              fa_last_error());
    fa_source_free(&s);
    fa_gen_close(g);
    scratch_remove();
}

Test(operands, values_that_a_row_brings_are_values)
{
    const fa_operation *op;
    fa_workspace none = { .n = 0 };
    for (size_t i = 0; (op = fa_operation_row(i)); i++)
        for (int k = 0; k < op->n; k++) {
            const char *at = op->operand[k].values ? op->operand[k].values : "";
            char name[24];
            fa_value v;
            while (fa_values_next(&at, name))
                cr_expect(fa_value_find(&v, op, &none, name), "%s of %s", name, op->operand[k].name);
        }
}

/* Data of a case go by the place of an operand. */
Test(operands, those_that_shipped_stay_in_their_places)
{
    static const char *const names[] = {
        "q k v o lse cu_seqlens_q cu_seqlens_k seqlens_q seqlens_k page_table rng",
        "q k v o lse grad_o grad_lse grad_q grad_k grad_v cu_seqlens_q cu_seqlens_k seqlens_q seqlens_k rng", "part part_lse o lse"
    };
    for (int op = FA_FORWARD; op <= FA_MERGE; op++) {
        const char *at = names[op];
        char name[24];
        for (int i = 0; fa_values_next(&at, name); i++)
            cr_expect_eq(fa_operand_index(fa_operation_find(op), name), i, "%s", name);
    }
}

Test(operands, the_type_of_keys_is_that_of_queries_where_none_is_named)
{
    fa_problem p = FA_PROBLEM_INIT;
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    p.dtype = FA_BF16;
    cr_expect_eq(fa_operand_dtype(&op->operand[fa_operand_index(op, "k")], &p), FA_BF16);
    p.kv_dtype = FA_F32;
    cr_expect_eq(fa_operand_dtype(&op->operand[fa_operand_index(op, "v")], &p), FA_F32);
    cr_expect_eq(fa_operand_dtype(&op->operand[fa_operand_index(op, "q")], &p), FA_BF16);
}

/* ---- docs/operands.md ---- */

typedef struct page {
    char text[1 << 15];
    size_t n;
} page;

__attribute__((format(printf, 2, 3))) static void put(page *p, const char *format, ...)
{
    va_list more;
    va_start(more, format);
    int n = vsnprintf(p->text + p->n, sizeof p->text - p->n, format, more);
    va_end(more);
    p->n += (size_t)n;
    cr_assert(n >= 0 && p->n < sizeof p->text);
}

/* The row of an operation; NULL: it does not have the operand. */
static const fa_operand *row_of(int op, fa_operand_id id)
{
    int i = fa_operand_slot(fa_operation_find(op), id);
    return i < 0 ? NULL : &fa_operation_find(op)->operand[i];
}

static void put_operand(page *p, fa_operand_id id)
{
    static const char *const types[] = { [FA_TYPE_INPUT] = "`dtype`",     [FA_TYPE_QUERY] = "`q_dtype`",
                                         [FA_TYPE_KV] = "`kv_dtype`",     [FA_TYPE_OUTPUT] = "`o_dtype`",
                                         [FA_TYPE_GRAD] = "`grad_dtype`", [FA_TYPE_F32] = "fp32",
                                         [FA_TYPE_I32] = "int32",         [FA_TYPE_U64] = "uint64",
                                         [FA_TYPE_V] = "`v_dtype`",       [FA_TYPE_ANGLE] = "`cos_sin_dtype`",
                                         [FA_TYPE_I64] = "int64",         [FA_TYPE_POSITION] = "int32 or int64" };
    const fa_operand *o = NULL, *in;
    char shape[80], feature[40] = "";
    for (int op = FA_APPEND; op >= FA_FORWARD; op--)
        o = row_of(op, id) ? row_of(op, id) : o;
    cr_assert(o && o->doc, "%d is of no operation, or has no word that says what it is", (int)id);
    fa_operand_print(shape, sizeof shape, o);
    if (o->feature)
        snprintf(feature, sizeof feature, "%s%s", fa_feature_name(o->feature), o->asks ? "" : ", which another field asks for");
    put(p, "| `%s` | %s ", o->name, o->doc);
    for (int op = FA_FORWARD; op <= FA_APPEND; op++) {
        in = row_of(op, id);
        put(p, "| %s%s ", !in ? "" : in->output ? "written" : "read", in && in->optional ? ", or NULL" : "");
    }
    put(p, "| %s | %s | %s | %s | ", shape, types[o->type],
        o->strided      ? o->broadcast ? "any, or 0" : "any"
        : o->class_at   ? "any, or 0"
        : o->strides_at ? "any"
        : o->row        ? "of rows, or 0"
                        : "",
        feature);
    const char *at = o->values ? o->values : "";
    char name[24];
    for (int n = 0; fa_values_next(&at, name); n++)
        put(p, "%s`%s`", n ? ", " : "", name);
    put(p, " | %s%s%s | `%s` |\n", o->word ? "`--" : "", o->word ? o->word : "", o->word ? "`" : "", o->keyword ? o->keyword : o->name);
}

static void put_field(page *p, const char *name, const char *what, const char *readers)
{
    put(p, "| `%s` | %s | ", name, what);
    for (const char *c = readers; *c; c++)
        if (*c != ' ')
            put(p, "%.*s", *c == '|' ? 2 : 1, *c == '|' ? ", " : (char[]){ *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c, 0 });
    put(p, " |\n");
}

static void make_page(page *p)
{
    put(p,
        "# Operands\n\n"
        "<!-- Made of gen/operands.def by the suite operands: FAGEN_TEST_WRITE=1 ctest --preset release -R '^operands$' -->\n\n"
        "Each tensor and list of `fa_launch()` is one row of `gen/operands.def`, which this page is made of. How one is added stands in\n"
        "[architecture.md](architecture.md#how-to-add). What the fields mean in full stands in `runtime/fagen.h`.\n\n"
        "| field | is | forward | backward | merge | append | shape | type | strides | class | values of kernels | `fagen attend` | Python "
        "|\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (fa_operand_id id = FA_ID_NONE + 1; id < FA_ID_COUNT; id++)
        put_operand(p, id);
    put(p,
        "\nStrides of 0 are of inputs, with `FA_BROADCAST`. A field without strides is packed. `q_dtype` 0 is `dtype`, `kv_dtype` 0 the "
        "type of Q,\n"
        "`v_dtype` 0 that of K. Strides of scales are `.sb`, `.ss` and `.sh` of their `fa_scale`. Class: the word of `fa_problem.features` "
        "that\na call with the address is of.\n\n"
        "Fields beside them, all after `flags`. An operation that does not read one refuses any value but 0:\n\n"
        "| field | is of | read by |\n"
        "|---|---|---|\n");
#define FIELD(field, what, readers, ...) put_field(p, #field, what, #readers);
#define VALUE FIELD
#include "gen/operands.def"
}

Test(operands, the_page_of_them_is_current)
{
    static page is, now;
    const char *write = getenv("FAGEN_TEST_WRITE");
    FILE *f;
    make_page(&now);
    if (write && *write) {
        cr_assert_not_null(f = fopen(PAGE, "w"));
        fputs(now.text, f);
        fclose(f);
    }
    cr_assert_not_null(f = fopen(PAGE, "r"), "%s", PAGE);
    is.n = fread(is.text, 1, sizeof is.text - 1, f);
    fclose(f);
    cr_expect(!strcmp(is.text, now.text), PAGE " is not made of these rows: FAGEN_TEST_WRITE=1 writes it");
}
