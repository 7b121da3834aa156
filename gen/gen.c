/* gen: the families, loaded from their .lua files. */
#include "gen.h"
#include "error.h"
#include "family.h"
#include "fields.h"
#include "problem.h"
#include "sandbox_names.h"
#include "splits.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is not a default comes last, whatever its rank. */
static int by_rank(const void *a, const void *b)
{
    const fa_family *f = a, *h = b;
    if (f->is_default != h->is_default)
        return f->is_default ? -1 : 1;
    return f->rank != h->rank ? (f->rank > h->rank) - (f->rank < h->rank) : strcmp(f->name, h->name);
}

static const fa_family *reference(const fa_gen *g, int32_t op)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->family[i].is_reference && g->family[i].operation->op == op) /* of those that are loaded */
            return &g->family[i];
    return NULL;
}

/* An operation has one reference at most. */
static fa_status check_references(const fa_gen *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const fa_family *f = &g->family[i], *first = reference(g, f->operation->op);
        if (f->is_reference && first != f)
            return fa_fail(FA_TEMPLATE, "templates/%s: reference is true, as in templates/%s; accepted: of one family of %s", f->file,
                           first->file, f->operation->name);
    }
    return FA_OK;
}

typedef struct loading {
    fa_gen *g;
    fa_family *family;
} loading;

static int load_family(lua_State *L)
{
    loading *l = lua_touserdata(L, 1);
    fa_family_load(L, l->g, l->family);
    return 0;
}

/* Under limits of its own, so that none is blamed for another. */
static fa_status load(fa_gen *g, fa_family *f)
{
    const char *error;
    loading l = { g, f };
    if (f->loaded)
        return FA_OK;
    fa_status st = fa_sandbox_run(g->sb, load_family, &l, &error);
    f->loaded = st == FA_OK;
    if (st == FA_OK)
        return FA_OK;
    fa_template_fail(&g->files, st, "loading the families", error);
    char name[sizeof f->name];
    memcpy(name, f->name, sizeof name);
    fa_family_free(f);
    memcpy(f->name, name, sizeof name);
    return st;
}

/* The operation that the text of a family names; NULL where that takes running it. Without a word of it, it is the forward one. */
static const fa_operation *operation_told(fa_gen *g, const fa_family *f)
{
    char file[sizeof f->name + 8], name[24];
    int index;
    snprintf(file, sizeof file, "%s.lua", f->name);
    if (fa_files_get(&g->files, &index, file) != FA_OK)
        return NULL;
    const char *at = strstr(g->files.file[index].bytes, "operation");
    if (!at)
        return fa_operation_find(FA_FORWARD);
    return sscanf(at, "operation = \"%23[a-z_]\"", name) == 1 && !strstr(at + 1, "operation") ? fa_operation_named(name) : NULL;
}

fa_status fa_gen_load_operation(fa_gen *g, int32_t op)
{
    fa_status st = FA_OK;
    for (size_t i = 0; i < g->n && st == FA_OK; i++) {
        const fa_operation *told = g->family[i].loaded ? NULL : operation_told(g, &g->family[i]);
        if (!told || told->op == op)
            st = load(g, &g->family[i]);
    }
    return st;
}

fa_status fa_gen_load_family(fa_gen *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->family[i].name, name))
            return load(g, &g->family[i]);
    return FA_OK;
}

static fa_status load_families(fa_gen *g)
{
    fa_status st = FA_OK;
    for (size_t i = 0; i < g->n && st == FA_OK; i++)
        st = load(g, &g->family[i]);
    return st == FA_OK ? check_references(g) : st;
}

/* A .lua with a .cu of the same name is a family; one without is a piece that others include. */
static fa_status find_families(fa_gen *g, char **lua, size_t n, char **cu, size_t m)
{
    g->family = calloc(n ? n : 1, sizeof *g->family);
    if (!g->family)
        return fa_fail(FA_NOMEM, "no memory for %zu families", n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(lua[i]) - 4, j = 0;
        while (j < m && (strlen(cu[j]) != len + 3 || strncmp(cu[j], lua[i], len)))
            j++;
        if (j == m)
            continue;
        if (len >= sizeof g->family->name)
            return fa_fail(FA_TEMPLATE, "the family %s has a name of %zu letters; accepted: at most %zu", lua[i], len,
                           sizeof g->family->name - 1);
        memcpy(g->family[g->n++].name, lua[i], len);
    }
    return FA_OK;
}

/* The library's own templates. */
static fa_status trust(fa_gen *g)
{
    const char *error;
    fa_sandbox_trust(g->sb);
    fa_status st = fa_sandbox_run(g->sb, fa_lua_args_keep, NULL, &error);
    return st == FA_OK ? st : fa_fail(st, "the Lua state did not open: %s", error);
}

static fa_status open_gen(fa_gen **out, const char *template_dir, bool lazy)
{
    fa_gen *g = calloc(1, sizeof *g);
    char **lua = NULL, **cu = NULL;
    size_t n = 0, m = 0;
    *out = NULL;
    if (!g)
        return fa_fail(FA_NOMEM, "no memory for a generator");
    fa_status st = fa_files_open(&g->files, template_dir);
    if (st == FA_OK)
        st = fa_sandbox_open(&g->sb, fa_sandbox_names_open);
    if (st == FA_OK && !g->files.dir)
        st = trust(g);
    if (st == FA_OK)
        st = fa_files_names(&g->files, ".lua", &lua, &n);
    if (st == FA_OK)
        st = fa_files_names(&g->files, ".cu", &cu, &m);
    if (st == FA_OK)
        st = find_families(g, lua, n, cu, m);
    fa_files_free_names(lua, n);
    fa_files_free_names(cu, m);
    if (st == FA_OK && !lazy)
        st = load_families(g);
    if (st != FA_OK) {
        fa_gen_close(g);
        return st;
    }
    if (!lazy)
        qsort(g->family, g->n, sizeof *g->family, by_rank);
    *out = g;
    return FA_OK;
}

fa_status fa_gen_open(fa_gen **out, const char *template_dir)
{
    return open_gen(out, template_dir, false);
}

fa_status fa_gen_open_lazy(fa_gen **out)
{
    return open_gen(out, NULL, true);
}

void fa_gen_count(fa_gen *g)
{
    fa_sandbox_count(g->sb);
}

fa_gen_work fa_gen_worked(const fa_gen *g)
{
    return (fa_gen_work){ fa_sandbox_spent(g->sb), g->priced };
}

void fa_gen_close(fa_gen *g)
{
    if (!g)
        return;
    for (size_t i = 0; g->family && i < g->n; i++)
        fa_family_free(&g->family[i]);
    free(g->family);
    fa_sandbox_close(g->sb);
    fa_files_close(&g->files);
    free(g);
}

size_t fa_gen_families(const fa_gen *g)
{
    return g->n;
}

const char *fa_gen_family(const fa_gen *g, size_t i)
{
    return i < g->n ? g->family[i].name : NULL;
}

size_t fa_gen_defaults(const fa_gen *g)
{
    size_t n = 0;
    while (n < g->n && g->family[n].is_default)
        n++;
    return n;
}

int32_t fa_gen_operation(const fa_gen *g, size_t i)
{
    return i < g->n ? g->family[i].operation->op : -1;
}

static const fa_family *find(const fa_gen *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->family[i].name, name))
            return &g->family[i];
    return NULL;
}

const char *fa_gen_reference(const fa_gen *g, int32_t op)
{
    const fa_family *f = reference(g, op);
    return f ? f->name : NULL;
}

fa_status fa_gen_reference_config(fa_gen *g, int32_t op, fa_config *out)
{
    *out = (fa_config){ .n = 0 };
    fa_status st = fa_gen_load_operation(g, op);
    const fa_family *f = st == FA_OK ? reference(g, op) : NULL;
    if (st != FA_OK)
        return st;
    if (!f)
        return fa_fail(FA_UNSUPPORTED, "no kernel family is the reference of %s; accepted: one whose .lua says reference = true",
                       fa_op_name(op));
    *out = fa_family_first(f);
    return FA_OK;
}

bool fa_gen_chosen_for(fa_gen *g, const char *family, const fa_problem *p)
{
    const fa_family *f = fa_gen_load_family(g, family) == FA_OK ? find(g, family) : NULL;
    return !f || !f->splits || fa_problem_splits(p);
}

bool fa_gen_splits(fa_gen *g, const char *family)
{
    const fa_family *f = fa_gen_load_family(g, family) == FA_OK ? find(g, family) : NULL;
    return f && f->splits;
}

bool fa_gen_tunable(const fa_gen *g, const char *family, size_t i, fa_tunable *out)
{
    const fa_family *f = find(g, family);
    if (!f || i >= (size_t)f->n_tunables)
        return false;
    *out = f->tunable[i];
    return true;
}

bool fa_gen_move(const fa_gen *g, const char *family, size_t i, fa_move *out)
{
    const fa_family *f = find(g, family);
    if (!f || i >= (size_t)f->n_moves)
        return false;
    *out = f->move[i];
    return true;
}

bool fa_gen_axes(const fa_gen *g, const char *family, int axis[2])
{
    const fa_family *f = find(g, family);
    for (int i = 0; i < 2; i++)
        axis[i] = f ? f->axis[i] : -1;
    return axis[0] >= 0;
}

bool fa_gen_tile(const fa_gen *g, const fa_config *c, int32_t tile[2])
{
    int axis[2];
    const fa_family *f = fa_gen_axes(g, c->family, axis) ? find(g, c->family) : NULL;
    for (int i = 0; i < 2; i++)
        tile[i] = f ? fa_config_get(c, f->tunable[axis[i]].name, 0) : 0;
    return f != NULL;
}

bool fa_gen_config_whole(const fa_gen *g, const fa_config *c)
{
    const fa_family *f = find(g, c->family);
    for (int i = 0; f && i < f->n_tunables; i++)
        if (!f->tunable[i].later && fa_config_get(c, f->tunable[i].name, 0) != fa_config_get(c, f->tunable[i].name, 1))
            return false;
    return f && f->n_tunables > 0;
}

int fa_gen_config_print(const fa_gen *g, char *buf, size_t n, const fa_config *c)
{
    return fa_family_config_print(buf, n, find(g, c->family), c);
}

/* The value of a tunable in the text of a config: a number, or its name where the family has names. */
static fa_status value_of(const void *user, const char *family, const fa_field *field, int32_t *v)
{
    const fa_family *f = find(user, family);
    for (int i = 0; f && i < f->n_tunables; i++) {
        const fa_tunable *t = &f->tunable[i];
        if (!t->names || strcmp(t->name, field->name))
            continue;
        for (size_t k = 0; k < t->n; k++)
            if (t->names[k] && !strcmp(t->names[k], field->value)) {
                *v = t->values[k];
                return FA_OK;
            }
        if (strspn(field->value, "+-0123456789") == strlen(field->value))
            break;
        fa_text values = { 0 };
        fa_tunable_list(&values, t);
        fa_fail(FA_INVALID, "config: %s of %s is \"%s\"; accepted: %s", t->name, family, field->value, fa_text_cstr(&values));
        fa_text_free(&values);
        return FA_INVALID;
    }
    return fa_field_int(v, field, "config");
}

fa_status fa_gen_config_parse(const fa_gen *g, fa_config *out, const char *s)
{
    fa_status st = fa_config_read(out, s, value_of, g);
    const fa_family *f = st == FA_OK ? find(g, out->family) : NULL;
    for (int i = 0; f && i < f->n_tunables; i++)
        for (int k = 0; f->tunable[i].later && k < out->n; k++)
            out->tunable[k].later = out->tunable[k].later || !strcmp(out->tunable[k].name, f->tunable[i].name);
    return st;
}
