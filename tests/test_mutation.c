/* Does verification notice? Each row of the suite's lists is put into a template, and one of its scenes, or each, must fail: in its values,
 * in the bytes around them, in a check of the simulator, or by bits that depend on the timing of copies or the schedule of warps. The same
 * scenes pass with the templates as they are, by default those of the rows that run, in the first mode and in another. */
#include "forward.h"
#include "gen/templates.h"
#include "mutations.h"
#include "test_full.h"
#include "test_verify_device.h"
#include <criterion/parameterized.h>
#include <ftw.h>

#define CHUNKS 16
#define ALL_MODES -1
#define SCENES_MOST 24 /* of a row */
#define ROWS_MOST 512  /* of a list */
#define ALONE_MOST 4   /* sequences of a batch whose results are shown to be their own */

static const struct {
    const char *name;
    sim_async async;
    sim_schedule schedule;
    uint64_t seed;
} modes[] = {
    { "eager", SIM_EAGER, SIM_IN_ORDER, 0 },         { "lazy, reversed", SIM_LAZY, SIM_REVERSED, 0 },
    { "lazy, in order", SIM_LAZY, SIM_IN_ORDER, 0 }, { "eager, random", SIM_EAGER, SIM_RANDOM, 1 },
    { "lazy, random", SIM_LAZY, SIM_RANDOM, 2 },
};

static bool has_maps(const scene *s)
{
    return (strstr(s->config, "_wgmma:") != NULL && !strstr(s->config, "decode_")) || strstr(s->config, "boxes=1") != NULL;
}

static fa_case case_of(const scene *s)
{
    static const int any[FA_TENSORS] = { FA_LAYOUT_HEADS, FA_LAYOUT_PACKED, FA_LAYOUT_REVERSED, FA_LAYOUT_PADDED },
                     of_tma[FA_TENSORS] = { FA_LAYOUT_HEADS, FA_LAYOUT_PACKED, FA_LAYOUT_PACKED, FA_LAYOUT_PADDED };
    const int *layouts = has_maps(s) ? of_tma : any;
    fa_case c = test_case(s->problem, s->sq, s->sk);
    c.window_left = s->left;
    c.window_right = s->right;
    c.diagonal = s->diagonal;
    c.offset = s->offset;
    c.values = s->values;
    c.hidden = s->hidden;
    c.scale = s->scale;
    for (int i = 0; i < FA_TENSORS; i++)
        c.layout[i] = layouts[i];
    const fa_operation *op = fa_operation_find(c.problem.op);
    for (int i = FA_TENSORS; i < op->n; i++)
        c.layout[i] = op->operand[i].strided ? layouts[i % FA_TENSORS] : c.layout[i];
    c.layout[FA_K] = s->layout;
    if (s->ragged)
        c.ragged = *s->ragged;
    return c;
}

/* Whether a sequence's bits depend on the other sequences, or on what no query sees. */
static bool mixes(fa_context *ctx, const scene *s, const fa_case *c, const fa_plan *plan, fa_trial *t, uint64_t bits, char *how, size_t n)
{
    fa_verdict v;
    fa_status st = FA_OK;
    for (int32_t i = 0; i < fa_trial_sequences(t) && st == FA_OK; i++)
        st = fa_trial_alone(t, plan, i, &v);
    bool same = st == FA_OK;
    for (int unwritten = 0; same && unwritten < 2; unwritten++) {
        fa_case other = *c;
        fa_trial *u;
        other.hidden = FA_HIDDEN_VALUES;
        other.unwritten = unwritten;
        cr_assert_eq(fa_trial_open(&u, ctx, &other, FA_REFERENCE_ORACLE), FA_OK, "%s: %s", s->name, fa_last_error());
        same = fa_trial_run(u, plan, &v) == FA_OK && v.bits == bits;
        fa_trial_close(u);
    }
    snprintf(how, n, "%s, %s", s->name, st != FA_OK ? "beside NaN in the others" : "beside other values that no query sees");
    return !same;
}

/* True when something is wrong; how says what. second: the one mode beside the first, or ALL_MODES. */
static bool fails(fa_context *ctx, const scene *s, int second, char *how, size_t n)
{
    fa_case c = case_of(s);
    fa_config k = test_config(s->config);
    const fa_plan *plan;
    fa_trial *t;
    uint64_t bits = 0;
    char error[512];
    bool bad = false;
    fa_status st = fa_plan_make(ctx, &c.problem, &k, NULL, &plan);
    if (st == FA_COMPILE || st == FA_TEMPLATE) { /* that would be no fault of the kernel's: the row is to be written better */
        cr_expect_fail("%s: the mutated template does not compile: %s", s->name, fa_last_error());
        snprintf(how, n, "compiler");
        return true;
    }
    cr_assert_eq(st, FA_OK, "%s: %s", s->name, fa_last_error());
    if (s->chunk)
        ((fa_kernel *)(uintptr_t)plan->kernel)->workspace.chunk = s->chunk;
    cr_assert_eq(fa_trial_open(&t, ctx, &c, FA_REFERENCE_ORACLE), FA_OK, "%s: %s", s->name, fa_last_error());
    for (size_t m = 0; m < sizeof modes / sizeof *modes && !bad; m++) {
        fa_verdict v;
        if (m > 0 && second != ALL_MODES && (int)m != second)
            continue;
        sim_options o = { .async = modes[m].async, .schedule = modes[m].schedule, .seed = modes[m].seed, .max_steps = 20000000 };
        cr_assert(sim_checks_parse("all=error", o.checks, error), "%s", error); /* fagen's own kernels give no warning either */
        sim_set_options(&o);
        st = fa_trial_run(t, plan, &v);
        uint32_t left = st == FA_OK ? test_counter(ctx) : 0;
        bad = st != FA_OK || left || (m > 0 && v.bits != bits);
        const char *what = st == FA_DEVICE ? sim_report() : v.text;
        what = *what ? what : fa_last_error();
        if (st != FA_OK)
            snprintf(how, n, "%s, %s: %.*s", s->name, modes[m].name, (int)strcspn(what, "\n"), what);
        else if (left)
            snprintf(how, n, "%s, %s: the counter is left at %u", s->name, modes[m].name, left);
        else if (bad)
            snprintf(how, n, "%s, %s: other bits", s->name, modes[m].name);
        bits = v.bits;
    }
    if (!bad && s->ragged && c.problem.b <= ALONE_MOST)
        bad = mixes(ctx, s, &c, plan, t, bits, how, n);
    fa_trial_close(t);
    return bad;
}

static int count(const mutation_list *l)
{
    int n = 0;
    while (l->mutations[n].name)
        n++;
    return n;
}

static int total(void)
{
    int n = 0;
    for (const mutation_list *l = mutation_lists; l->scenes; l++)
        n += count(l);
    return n;
}

static const scene *scene_of(const mutation_list *l, const char *name, size_t length)
{
    for (const scene *s = l->scenes; s->name; s++)
        if (strlen(s->name) == length && !strncmp(s->name, name, length))
            return s;
    return NULL;
}

static fa_context *context_for(const mutation_list *l, const char *template_dir, const char *cache_dir)
{
    return l->sm_count ? test_hopper_context(template_dir, cache_dir, l->sm_count) : test_context(template_dir, cache_dir);
}

/* How many rows of the list name the row's scene first. */
static int rows_of_scene(const mutation *m, const mutation_list *l)
{
    size_t n = strcspn(m->scenes, " ");
    int rows = 0;
    for (const mutation *other = l->mutations; other->name; other++)
        rows += strcspn(other->scenes, " ") == n && !strncmp(other->scenes, m->scenes, n);
    return rows;
}

/* Whether it stands for its template: of those of the scene that most rows name the first, so that few scenes are compiled. A template of
 * an earlier list on the same chip has its row there. */
static bool stands_for_template(const mutation *m, const mutation_list *l)
{
    int rows = rows_of_scene(m, l);
    for (const mutation_list *before = mutation_lists; before < l; before++)
        for (const mutation *other = before->mutations; before->sm_count == l->sm_count && other->name; other++)
            if (!strcmp(other->file, m->file))
                return false;
    for (const mutation *other = l->mutations; other->name; other++) {
        int others = other == m || strcmp(other->file, m->file) != 0 ? 0 : rows_of_scene(other, l);
        if (others > rows || (others == rows && other < m))
            return false;
    }
    return true;
}

/* Marks one of every twentieth template in the order of the list. */
static void mark_templates(bool *run, const mutation_list *l)
{
    int before = 0;
    for (const mutation *m = l->mutations; m->name; m++)
        if (stands_for_template(m, l))
            run[m - l->mutations] = before++ % 20 == 0;
}

/* One in `l->every` is run, or one of every twentieth template, all with FAGEN_TEST_FULL: a mutant is compiled for no other test. That the
 * text of each row is still there is seen by every run. */
static bool is_run(const mutation *m, const mutation_list *l)
{
    static const mutation_list *marked; /* each row of a list is asked about before those of the next */
    static bool run[ROWS_MOST];
    if (full() || l->every)
        return full() || (m - l->mutations) % l->every == 0;
    if (marked != l) {
        cr_assert_leq(count(l), ROWS_MOST);
        memset(run, 0, sizeof run);
        mark_templates(run, l);
        marked = l;
    }
    return run[m - l->mutations];
}

/* The scenes of a row that are run; returns how many. */
static int scenes_of(const mutation *m, const mutation_list *l, const scene *out[SCENES_MOST])
{
    int n = 0;
    for (const char *name = m->scenes; *name;) {
        size_t length = strcspn(name, " ");
        cr_assert_lt(n, SCENES_MOST);
        out[n] = scene_of(l, name, length);
        cr_assert_not_null(out[n++], "%s: there is no scene %s", m->name, name);
        name += length + strspn(name + length, " ");
    }
    if (!l->each || full())
        return n;
    out[0] = out[(m - l->mutations) / (l->every ? l->every : 1) % n];
    return 1;
}

/* Whether a row that is run names the scene. */
static bool is_asked(const scene *s, const mutation_list *l)
{
    const scene *asked[SCENES_MOST];
    bool is = full();
    for (const mutation *m = l->mutations; m->name && !is; m++)
        for (int n = is_run(m, l) ? scenes_of(m, l, asked) : 0; n > 0; n--)
            is = is || asked[n - 1] == s;
    return is;
}

/* ---- the templates as they are ---- */

Test(mutation, without_any_the_scenes_pass, .timeout = 300)
{
    for (const mutation_list *l = mutation_lists; l->scenes; l++) {
        fa_context *ctx = context_for(l, NULL, NULL);
        for (const scene *s = l->scenes; s->name; s++) {
            if (!is_asked(s, l))
                continue;
            char how[512];
            int second = 1 + (int)(s - l->scenes) % ((int)(sizeof modes / sizeof *modes) - 1);
            cr_expect(!fails(ctx, s, full() ? ALL_MODES : second, how, sizeof how), "%s", how);
        }
        fa_destroy(ctx);
    }
}

/* ---- mutated ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static const fa_template_file *template_of(const char *name)
{
    for (const fa_template_file *f = fa_template_files; f->name; f++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

/* Where the text is that a row changes; NULL: nowhere any more. */
static const char *place_of(const mutation *m)
{
    const fa_template_file *f = template_of(m->file);
    const char *at = f ? strstr(f->bytes, m->find) : NULL;
    for (int i = 0; i < m->nth && at; i++)
        at = strstr(at + 1, m->find);
    return at;
}

/* The file with the nth occurrence replaced, in a folder of its own. False when the text is not there. */
static bool write_mutant(char dir[64], const mutation *m)
{
    const fa_template_file *f = template_of(m->file);
    char path[160];
    const char *at = place_of(m);
    if (!at)
        return false;
    strcpy(dir, "/tmp/fagen-mutant-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/%s", dir, m->file);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fwrite(f->bytes, 1, (size_t)(at - f->bytes), out);
    fputs(m->replace, out);
    fputs(at + strlen(m->find), out);
    fclose(out);
    return true;
}

/* Every row must be of a text that is there. */
static void run_mutation(const mutation *m, const mutation_list *l)
{
    char dir[64], how[512] = "";
    bool caught = l->each;
    if (!write_mutant(dir, m)) {
        cr_expect_fail("%s: the text is not in %s any more: %s", m->name, m->file, m->find);
        return;
    }
    if (!is_run(m, l)) {
        nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        return;
    }
    fa_context *ctx = context_for(l, dir, "");
    const scene *asked[SCENES_MOST];
    int n = scenes_of(m, l, asked);
    for (int i = 0; i < n && caught == l->each; i++) {
        caught = fails(ctx, asked[i], ALL_MODES, how, sizeof how);
        printf("%-44s %s\n", m->name, caught ? how : "NOT NOTICED");
        cr_expect(caught || !l->each, "%s (%s): not noticed in %s", m->name, m->file, asked[i]->name);
    }
    fflush(stdout);
    cr_expect(caught || l->each, "%s (%s): nothing noticed it in: %s", m->name, m->file, m->scenes);
    fa_destroy(ctx);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- that each row reaches a scene ---- */

/* What the templates make of a scene; false where they refuse it, as some rows make them do. */
static bool render_scene(fa_source *out, const char *template_dir, const mutation_list *l, const scene *s)
{
    fa_arch chip = *fa_arch_find(l->sm_count ? "sm_90a" : "sm_80");
    fa_case c = case_of(s);
    fa_config k = test_config(s->config);
    fa_gen *g = NULL;
    memset(out, 0, sizeof *out);
    chip.sm_count = l->sm_count ? l->sm_count : chip.sm_count;
    bool rendered = fa_gen_open(&g, template_dir) == FA_OK && fa_render(g, &c.problem, &k, &chip, 0, out) == FA_OK;
    fa_gen_close(g);
    return rendered;
}

/* Whether a scene's kernels, or how they are launched, are others than without the row. */
static bool changes_a_scene(const mutation *m, const mutation_list *l, const char *dir)
{
    const scene *asked[SCENES_MOST];
    bool changes = false;
    for (int i = 0, n = scenes_of(m, l, asked); i < n && !changes; i++) {
        fa_source before, after;
        cr_assert(render_scene(&before, NULL, l, asked[i]), "%s: %s", asked[i]->name, fa_last_error());
        changes = !render_scene(&after, dir, l, asked[i]) || strcmp(before.text, after.text) ||
                  memcmp(&before.steps, &after.steps, sizeof before - offsetof(fa_source, steps));
        fa_source_free(&before);
        fa_source_free(&after);
    }
    return changes;
}

/* Whether the text stands in its file more than once, so that text which comes to stand before it moves the row's place. */
static bool stands_twice(const mutation *m)
{
    const char *first = strstr(template_of(m->file)->bytes, m->find);
    return first && strstr(first + 1, m->find);
}

/* The texts of all rows are there. A row whose text has come to stand where none of its scenes have it would test nothing; by default those
 * are looked at whose text stands more than once, and every twelfth of the others. */
Test(mutation, each_row_changes_a_scene, .timeout = 300)
{
    int at = 0;
    for (const mutation_list *l = mutation_lists; l->scenes; l++)
        for (const mutation *m = l->mutations; m->name; m++) {
            char dir[64];
            cr_expect_not_null(place_of(m), "%s: the text is not in %s any more: %s", m->name, m->file, m->find);
            if ((at++ % (full() ? 1 : 12) && !stands_twice(m)) || !write_mutant(dir, m))
                continue;
            cr_expect(changes_a_scene(m, l, dir), "%s (%s): no text of a scene changes: %s", m->name, m->file, m->scenes);
            nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        }
}

Test(mutation, there_are_many)
{
    cr_assert_geq(total(), 20);
}

ParameterizedTestParameters(mutation, is_noticed)
{
    static int first[CHUNKS + 1];
    for (int i = 0; i < CHUNKS; i++)
        first[i] = i * total() / CHUNKS;
    return cr_make_param_array(int, first, CHUNKS);
}

ParameterizedTest(int *first, mutation, is_noticed, .timeout = 300)
{
    int chunk = 0;
    while (chunk * total() / CHUNKS != *first)
        chunk++;
    for (int i = *first; i < (chunk + 1) * total() / CHUNKS; i++) {
        int n = i;
        const mutation_list *l = mutation_lists;
        for (; n >= count(l); l++)
            n -= count(l);
        run_mutation(&l->mutations[n], l);
    }
}
