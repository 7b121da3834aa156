/* gen: the families, loaded from their .lua files. */
#include "gen.h"
#include "error.h"
#include "family.h"
#include "sandbox_names.h"
#include <stdlib.h>
#include <string.h>

/* "flash_fwd_mma" comes first, what is not a default last, else by name. */
static int rank(const fa_family *f)
{
    return !strcmp(f->name, "flash_fwd_mma") ? 0 : f->is_default ? 1 : 2;
}

static int by_rank(const void *a, const void *b)
{
    const fa_family *f = a, *h = b;
    int d = rank(f) - rank(h);
    return d ? d : strcmp(f->name, h->name);
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

/* Each under limits of its own, so that none is blamed for another. */
static fa_status load_families(fa_gen *g)
{
    const char *error;
    for (size_t i = 0; i < g->n; i++) {
        loading l = { g, &g->family[i] };
        fa_status st = fa_sandbox_run(g->sb, load_family, &l, &error);
        if (st != FA_OK)
            return fa_template_fail(&g->files, st, "loading the families", error);
    }
    return FA_OK;
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

fa_status fa_gen_open(fa_gen **out, const char *template_dir)
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
    if (st == FA_OK)
        st = fa_files_names(&g->files, ".lua", &lua, &n);
    if (st == FA_OK)
        st = fa_files_names(&g->files, ".cu", &cu, &m);
    if (st == FA_OK)
        st = find_families(g, lua, n, cu, m);
    fa_files_free_names(lua, n);
    fa_files_free_names(cu, m);
    if (st == FA_OK)
        st = load_families(g);
    if (st != FA_OK) {
        fa_gen_close(g);
        return st;
    }
    qsort(g->family, g->n, sizeof *g->family, by_rank);
    *out = g;
    return FA_OK;
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

bool fa_gen_tunable(const fa_gen *g, const char *family, size_t i, fa_tunable *out)
{
    for (size_t k = 0; k < g->n; k++)
        if (!strcmp(g->family[k].name, family) && i < (size_t)g->family[k].n_tunables) {
            *out = g->family[k].tunable[i];
            return true;
        }
    return false;
}
