/* values: look-ups in the lists, and the packing of parameters. */
#include "values.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

enum who { FIRST, ALL, NAMED };
static const struct {
    const char *name, *type, *comment;
    uint16_t at, bytes;
    enum who who;
} scalars[] = {
#define X(c, cuda, name, who, comment) { #name, #cuda, comment, offsetof(fa_values, name), sizeof(c), who },
    FA_SCALARS(X)
#undef X
};
#define SCALARS (sizeof scalars / sizeof *scalars)

static const struct {
    const char *suffix, *comment;
} strides[4] = { { "_sb", "strides in elements: batch" }, { "_ss", "sequence" }, { "_sh", "head" }, { "_sp", "part" } };

#define OF_PARTS 3 /* the stride from one part to the next */

/* Which of its dimensions a stride steps over: [b, s, h, d], of a pointer with strides [b, h, s]. */
static int dimension_of(const fa_operand *o, int stride)
{
    return o->strided || o->class_at || stride == 0 || stride == OF_PARTS ? stride : 3 - stride;
}

static void scalar(fa_value *out, size_t i)
{
    *out = (fa_value){ .at = scalars[i].at, .bytes = scalars[i].bytes };
    snprintf(out->name, sizeof out->name, "%s", scalars[i].name);
    snprintf(out->type, sizeof out->type, "%s", scalars[i].type);
    snprintf(out->comment, sizeof out->comment, "%s", scalars[i].comment);
}

/* Tensors have the type that the template gives them; lists of one type have it here. */
static const char *type_of(const fa_operand *o)
{
    if (o->type == FA_TYPE_F32 && !o->strided)
        return o->output ? "float *" : "const float *";
    if (o->type == FA_TYPE_I32)
        return o->output ? "int *" : "const int *";
    if (o->type == FA_TYPE_U64)
        return o->output ? "u64 *" : "const u64 *";
    if (o->type == FA_TYPE_I64)
        return o->output ? "long long *" : "const long long *";
    return o->output ? "void *" : "const void *";
}

static void address(fa_value *out, const fa_operation *op, int i)
{
    const fa_operand *o = &op->operand[i];
    *out = (fa_value){ .at = (uint16_t)offsetof(fa_values, operand[i].address), .bytes = 8 };
    snprintf(out->name, sizeof out->name, "%s", o->name);
    snprintf(out->type, sizeof out->type, "%s", type_of(o));
    int n = fa_operand_print(out->comment, sizeof out->comment, o);
    if (o->optional)
        snprintf(out->comment + n, sizeof out->comment - (size_t)n, ", or null");
}

static bool has_stride(const fa_operand *o, int i)
{
    return i == OF_PARTS ? o->parts_at != 0 : o->strided || o->strides_at;
}

static void stride(fa_value *out, const fa_operation *op, int i, int dimension)
{
    *out = (fa_value){ .type = "long long", .bytes = 8 };
    out->at = (uint16_t)offsetof(fa_values, operand[i].stride[dimension_of(&op->operand[i], dimension)]);
    snprintf(out->name, sizeof out->name, "%s%s", op->operand[i].name, strides[dimension].suffix);
    snprintf(out->comment, sizeof out->comment, "%s", i ? "" : strides[dimension].comment); /* said once, at the first operand */
}

/* The values of a program's operands: by the name in lists, which tells a scalar's type. %d: the operand. */
static const struct {
    const char *name, *member, *type, *comment;
    uint16_t at, bytes, align;
} given[] = {
    { "score%d", "score%d", "const void *", "of the score program: an array", offsetof(fa_score_given, address), 8, 8 },
    { "score%d_stride", "score%d_stride[4]", "long long", "elements from an index to the next", offsetof(fa_score_given, stride), 32, 8 },
    { "score%d_extent", "score%d_extent[4]", "int", "its indices", offsetof(fa_score_given, extent), 16, 4 },
    { "score%d_float", "score%d", "float", "of the score program: a scalar", offsetof(fa_score_given, scalar), 4, 4 },
    { "score%d_grad", "score%d_grad", "float *", "its gradient, or null", offsetof(fa_score_given, grad), 8, 8 },
    { "score%d_grad_stride", "score%d_grad_stride[4]", "long long", "elements from an index to the next",
      offsetof(fa_score_given, grad_stride), 32, 8 },
    { "score%d_int", "score%d", "int", "of the score program: a scalar", offsetof(fa_score_given, scalar), 4, 4 },
};
enum { ADDRESS, STRIDE, EXTENT, FLOAT, GRAD, GRAD_STRIDE, INT, GIVEN };

static void print_given(char name[24], const char *form, int operand)
{
    const char *at = strchr(form, '%');
    snprintf(name, 24, "%.*s%d%s", (int)(at - form), form, operand, at + 2);
}

static bool find_given(fa_value *out, const char *name)
{
    char one[24];
    if (strncmp(name, "score", 5) != 0)
        return false;
    for (int k = 0; k < FA_SCORE_OPERANDS_MAX; k++)
        for (int i = 0; i < GIVEN; i++) {
            print_given(one, given[i].name, k);
            if (strcmp(one, name) != 0)
                continue;
            *out = (fa_value){ .at = (uint16_t)(offsetof(fa_values, score[k]) + given[i].at),
                               .bytes = given[i].bytes,
                               .align = given[i].align };
            print_given(out->name, given[i].member, k);
            snprintf(out->type, sizeof out->type, "%s", given[i].type);
            snprintf(out->comment, sizeof out->comment, "%s", given[i].comment);
            return true;
        }
    return false;
}

bool fa_value_find(fa_value *out, const fa_operation *op, const fa_workspace *w, const char *name)
{
    for (int i = 0; i < op->n; i++) {
        size_t n = strlen(op->operand[i].name);
        if (!strcmp(name, op->operand[i].name)) {
            address(out, op, i);
            return true;
        }
        for (int k = 0; k < 4 && !strncmp(name, op->operand[i].name, n); k++)
            if (has_stride(&op->operand[i], k) && !strcmp(name + n, strides[k].suffix)) {
                stride(out, op, i, k);
                return true;
            }
    }
    for (int i = 0; i < w->n; i++)
        if (!strcmp(name, w->buffer[i].name)) {
            *out = (fa_value){
                .type = "void *", .comment = "a buffer of the workspace", .at = (uint16_t)offsetof(fa_values, buffer[i]), .bytes = 8
            };
            snprintf(out->name, sizeof out->name, "%s", name);
            return true;
        }
    for (size_t i = 0; i < SCALARS; i++)
        if (!strcmp(name, scalars[i].name)) {
            scalar(out, i);
            return true;
        }
    return find_given(out, name);
}

static bool is_listed(const char *names, const char *name)
{
    char one[24];
    while (fa_values_next(&names, one))
        if (!strcmp(one, name))
            return true;
    return false;
}

int fa_value_operand(const fa_operation *op, const char *name)
{
    for (int i = 0; i < op->n; i++) {
        const fa_operand *o = &op->operand[i];
        size_t n = strlen(o->name);
        if (!strcmp(name, o->name) || (o->values && is_listed(o->values, name)))
            return i;
        for (int k = 0; k < 4 && !strncmp(name, o->name, n); k++)
            if (has_stride(o, k) && !strcmp(name + n, strides[k].suffix))
                return i;
    }
    return -1;
}

bool fa_value_present(const fa_operation *op, const fa_problem *p, const char *name)
{
    bool listed = false, present = false;
    for (int i = 0; i < op->n; i++) {
        const fa_operand *o = &op->operand[i];
        bool brings = o->values && is_listed(o->values, name);
        listed = listed || brings;
        present = present || (brings && fa_operand_present(o, p));
    }
    int i = fa_value_operand(op, name);
    return listed ? present : i < 0 || fa_operand_present(&op->operand[i], p) || (p->features & op->operand[i].within);
}

static void add_name(char *out, const char *name, const char *suffix)
{
    size_t at = strlen(out);
    snprintf(out + at, FA_PARAMS_TEXT - at, "%s%s%s", at ? " " : "", name, suffix);
}

static void add_scalars(char *out, enum who who)
{
    for (size_t i = 0; i < SCALARS; i++)
        if (scalars[i].who == who)
            add_name(out, scalars[i].name, "");
}

void fa_values_all(char out[FA_PARAMS_TEXT], const fa_operation *op)
{
    out[0] = 0;
    uint64_t names = fa_operands_of(op, &(fa_problem){ .op = op->op }), strides_of = names;
    for (int i; (i = fa_operands_next(&names)) >= 0;)
        add_name(out, op->operand[i].name, "");
    add_scalars(out, FIRST);
    for (int i; (i = fa_operands_next(&strides_of)) >= 0;)
        for (int k = 0; k < 3 && op->operand[i].strided; k++)
            add_name(out, op->operand[i].name, strides[k].suffix);
    add_scalars(out, ALL);
}

/* False: there is no room. */
static bool append(char *out, const char *name)
{
    size_t at = strlen(out), n = strlen(name);
    if (at + n + 2 > FA_PARAMS_TEXT)
        return false;
    snprintf(out + at, FA_PARAMS_TEXT - at, "%s%s", at ? " " : "", name);
    return true;
}

static bool append_given(char *out, const fa_score_operand *o, int k, bool gradients)
{
    char name[24];
    bool fits = true;
    for (int i = 0; i < GIVEN; i++) {
        bool takes = gradients   ? o->type == FA_SCORE_F32 && (i == GRAD || i == GRAD_STRIDE)
                     : o->scalar ? i == (o->type == FA_SCORE_I32 ? INT : FLOAT)
                                 : i <= EXTENT;
        print_given(name, given[i].name, k);
        fits = fits && (!takes || append(out, name));
    }
    return fits;
}

bool fa_values_expand(char out[FA_PARAMS_TEXT], const char *names, const fa_program *program)
{
    char name[24];
    bool fits = true;
    out[0] = 0;
    while (fits && fa_values_next(&names, name)) {
        bool gradients = !strcmp(name, "score_grads"), all = gradients || !strcmp(name, "score");
        for (int k = 0; fits && all && program && k < program->ir.operands; k++)
            fits = append_given(out, &program->ir.operand[k], k, gradients);
        fits = fits && (all || append(out, name));
    }
    return fits;
}

bool fa_values_next(const char **at, char name[24])
{
    *at += strspn(*at, " \n");
    size_t n = strcspn(*at, " \n");
    snprintf(name, 24, "%.*s", (int)(n < 23 ? n : 23), *at);
    *at += n;
    return n > 0;
}

fa_status fa_packing_of(fa_packing *out, const fa_operation *op, const fa_workspace *w, const char *names)
{
    fa_value v;
    char name[sizeof v.name];
    *out = (fa_packing){ .runs = 0 };
    while (fa_values_next(&names, name)) {
        if (!fa_value_find(&v, op, w, name))
            return fa_fail(
                FA_INVALID,
                "params: \"%s\" is no value; accepted: an operand of %s, its strides, a buffer of the workspace, a scalar of gen/values.h",
                name, op->name);
        if (!fa_packing_add(out, &v))
            return fa_fail(FA_INVALID, "params: \"%s\" is one value too many; accepted: %d", name, FA_PARAMS_MAX);
    }
    fa_packing_end(out);
    return FA_OK;
}

bool fa_packing_add(fa_packing *p, const fa_value *v)
{
    int32_t align = v->align ? v->align : v->bytes, to = (p->bytes + align - 1) / align * align;
    uint16_t from = v->at / 4, words = v->bytes / 4, at = (uint16_t)(to / 4);
    if (p->runs && p->run[p->runs - 1].from + p->run[p->runs - 1].words == from && p->run[p->runs - 1].to + p->run[p->runs - 1].words == at)
        p->run[p->runs - 1].words += words;
    else if (p->runs == sizeof p->run / sizeof *p->run)
        return false;
    else {
        p->run[p->runs].from = from;
        p->run[p->runs].to = at;
        p->run[p->runs++].words = words;
    }
    p->bytes = to + v->bytes;
    return p->bytes <= FA_PACKED_MAX;
}

void fa_packing_end(fa_packing *p)
{
    p->bytes = (p->bytes + 7) / 8 * 8;
}
