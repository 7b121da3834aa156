/* score_mutation: a fault is put into a template, and a kernel of a table must be wrong, fault or fail a check of the simulator. */
#ifndef FA_TESTS_SCORE_MUTATION_H
#define FA_TESTS_SCORE_MUTATION_H
#include "gen/templates.h"
#include "score_launch.h"
#include "test_cache_scratch.h"

#define SCORE_TRIES 8 /* problems of a kernel that are drawn at most */

typedef struct score_fault {
    const char *name, *kernel, *file, *find, *replace;
} score_fault;

/* Where the text is that a fault changes. */
static inline const char *score_place(const score_fault *f, const fa_template_file **of)
{
    const fa_template_file *t = fa_template_files;
    while (t->name && strcmp(t->name, f->file) != 0)
        t++;
    cr_assert_not_null(t->name, "%s: there is no %s", f->name, f->file);
    const char *at = strstr(t->bytes, f->find);
    cr_assert_not_null(at, "%s: the text is not in %s any more: %s", f->name, f->file, f->find);
    *of = t;
    return at;
}

static inline void score_plant(const score_fault *f)
{
    const fa_template_file *t;
    const char *at = score_place(f, &t);
    char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch, f->file);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fprintf(out, "%.*s%s%s", (int)(at - t->bytes), t->bytes, f->replace, at + strlen(f->find));
    fclose(out);
}

static inline const score_kernel *score_kernel_of(const score_fault *f, const score_kernel *kernels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(kernels[i].name, f->kernel))
            return &kernels[i];
    cr_assert_fail("%s: there is no kernel %s", f->name, f->kernel);
    return NULL;
}

/* Whether some problem of the kernel is wrong. number: its place in its table. */
static inline bool score_notices(const score_fault *f, const score_kernel *k, size_t number)
{
    fa_gen *gen;
    void *workspace;
    bool wrong = false;
    scratch_make();
    score_plant(f);
    fa_context *ctx = k->hopper ? test_hopper_context(scratch, "", 3) : test_context(scratch, "");
    SCORE_OK(fa_gen_open(&gen, NULL));
    SCORE_OK(fa_alloc(ctx, &workspace, SCORE_WORKSPACE));
    SCORE_OK(fa_workspace_init(ctx, workspace, SCORE_WORKSPACE, NULL));
    for (int i = 0; i < SCORE_TRIES && !wrong; i++) {
        score_launch l;
        char where[200];
        uint64_t seed = number * 1000 + (uint64_t)i;
        test_mode(SIM_LAZY, SIM_IN_ORDER, seed);
        score_draw(ctx, &l, k, seed);
        fa_status st = score_run(ctx, gen, workspace, &l);
        cr_expect(st == FA_OK || st == FA_DEVICE, "%s: the mutated kernel is not launched: %s", f->name, fa_last_error());
        wrong = st != FA_OK || score_worst(&l, where, sizeof where) > 1;
        score_close(ctx, &l);
        if (st != FA_OK)
            i = SCORE_TRIES;
    }
    fa_gen_close(gen);
    fa_destroy(ctx);
    scratch_remove();
    return wrong;
}

/* Every nth fault, of kernels of the arch; the texts of all are there. */
static inline void score_ask(const score_fault *faults, size_t n, const score_kernel *kernels, size_t n_kernels, bool hopper, size_t nth)
{
    const char *only = getenv("FAGEN_SCORE_FAULT");
    for (size_t i = 0; i < n; i++) {
        const score_kernel *k = score_kernel_of(&faults[i], kernels, n_kernels);
        const fa_template_file *of;
        score_place(&faults[i], &of);
        if (k->hopper == hopper && (only ? i == (size_t)atoi(only) : i % nth == 0))
            cr_expect(score_notices(&faults[i], k, (size_t)(k - kernels)), "%zu: %s: %s is right all the same", i, faults[i].name,
                      faults[i].kernel);
    }
}
#endif
