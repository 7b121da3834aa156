/* What the spaces of flash_fwd_wgmma and flash_bwd_wgmma offer compiles as it must: no local memory (with lengths a little, of the warp
 * that searches tiles; of gradients as much), no note of ptxas that the products are serialized or the registers not handed over, and the
 * register count that the layout states. By default a few configs of each family, and one in 84 of the kernels that ship.
 *
 *   FAGEN_TEST_FULL=1              every value of a tunable, every head_dim and every type with every mask, and with lengths and pages; and
 *                                  every kernel that ships; three minutes
 *   FAGEN_SWEEP=pairs              every pair of tunables' values that occurs, every value with every problem below, and every value with
 *                                  every mask and number of the producer's registers; five minutes
 *   FAGEN_SWEEP=all                compiles every config that fits, hours of it
 *   FAGEN_SWEEP=500                so many of them, drawn at random; prints what became of each
 *   FAGEN_SWEEP_PROBLEMS='A B'     for these problems alone, separated by blanks
 *   FAGEN_TEMPLATE_DIR=templates   with templates as they are edited */
#include "autotune/search/compile_pool.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "runtime/build/compiler.h"
#include "runtime/build/resources.h"
#include "test_full.h"
#include "test_pairs.h"
#include "test_shipped.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROBLEMS_MOST 64
#define SEED 20
#define SHIPPED_EVERY 150

/* Every two of head_dim, mask, type and type of O; and every mask with lengths and pages. */
static const char *const forward[] = {
    "bf16,d=64,mask=none",
    "fp16,d=64,mask=causal,o=fp32",
    "bf16,d=64,mask=window",
    "fp16,d=72,mask=none",
    "bf16,d=72,mask=causal",
    "fp16,d=72,mask=window,o=fp32",
    "bf16,d=80,mask=none,o=fp32",
    "fp16,d=80,mask=causal",
    "bf16,d=80,mask=window",
    "fp16,d=96,mask=none",
    "bf16,d=96,mask=causal,o=fp32",
    "bf16,d=96,mask=window",
    "bf16,d=128,mask=none",
    "fp16,d=128,mask=causal",
    "bf16,d=128,mask=window,o=fp32",
    "fp16,d=192,dv=128,mask=none",
    "bf16,d=192,dv=128,mask=causal",
    "bf16,d=192,dv=128,mask=window,o=fp32",
    "bf16,d=256,mask=none,o=fp32",
    "bf16,d=256,mask=causal",
    "fp16,d=256,mask=window",
    "bf16,d=64,mask=window,features=lengths",
    "fp16,d=128,mask=causal,features=lengths",
    "bf16,d=256,mask=none,features=lengths",
    "fp16,d=64,mask=none,features=lengths+pages,page=16",
    "bf16,d=128,mask=window,features=lengths+pages,page=64",
    "bf16,d=256,mask=causal,features=lengths+pages,page=16",
};

/* The same of gradients, with their type; and with lengths. */
static const char *const backward[] = {
    "bf16,d=64,mask=causal,op=backward",
    "fp16,d=64,mask=none,op=backward,grad=fp32",
    "bf16,d=64,mask=window,op=backward,grad=fp32",
    "fp16,d=72,mask=causal,op=backward",
    "bf16,d=80,mask=none,op=backward",
    "bf16,d=96,mask=causal,op=backward,grad=fp32",
    "fp16,d=96,mask=window,op=backward",
    "bf16,d=128,mask=none,op=backward",
    "bf16,d=128,mask=causal,op=backward",
    "fp16,d=128,mask=window,op=backward,grad=fp32",
    "bf16,d=192,dv=128,mask=causal,op=backward",
    "fp16,d=192,mask=none,op=backward",
    "bf16,d=256,mask=causal,op=backward",
    "bf16,d=64,mask=window,op=backward,features=lengths",
    "fp16,d=96,mask=none,op=backward,features=lengths",
    "bf16,d=128,mask=causal,op=backward,features=lengths",
    "bf16,d=256,mask=causal,op=backward,features=lengths",
};

typedef struct family {
    const char *name;
    const char *const *problem;
    size_t problems;
    size_t most;    /* configs of a run by default: the first of those that cover the values */
    bool gradients; /* every kernel with maps is judged, by its own threads; a few bytes of spills are accepted. Else the first kernel */
} family;
static const family families[] = {
    { "flash_fwd_wgmma", forward, sizeof forward / sizeof *forward, 5, false },
    { "flash_bwd_wgmma", backward, sizeof backward / sizeof *backward, 3, true },
};

typedef struct job {
    fa_problem problem;
    fa_config config;
} job;

typedef struct sweep {
    const family *family;
    fa_compiler *compiler;
    job *job;
    size_t n, next, clean, spill, noted;
    bool verbose;
    pthread_mutex_t mutex;
} sweep;

static const fa_arch *arch(void)
{
    return fa_arch_find("sm_90a");
}

/* ---- what is compiled ---- */

static size_t read_problems(const family *f, fa_problem *out)
{
    fa_problem first;
    cr_assert_eq(fa_problem_parse(&first, f->problem[0]), FA_OK, "%s", fa_last_error());
    const char *names = getenv("FAGEN_SWEEP_PROBLEMS");
    size_t n = 0;
    if (names && *names) {
        char *copy = strdup(names), *rest = copy;
        for (char *one; (one = strsep(&rest, " ")) != NULL;)
            if (*one) {
                cr_assert_lt(n, PROBLEMS_MOST);
                cr_assert_eq(fa_problem_parse(&out[n], one), FA_OK, "FAGEN_SWEEP_PROBLEMS: %s", fa_last_error());
                n += out[n].op == first.op;
            }
        free(copy);
        return n;
    }
    for (; n < f->problems; n++)
        cr_assert_eq(fa_problem_parse(&out[n], f->problem[n]), FA_OK, "%s", fa_last_error());
    return n;
}

/* All that fits, of every problem; and as rows of numbers for the choice: tunables, head_dim, types, mask and features last. */
static size_t list_jobs(const family *f, job **jobs, pairs_row **rows, bool pairs, int *factors, int *mask)
{
    fa_problem problem[PROBLEMS_MOST];
    pairs_factor factor[PAIRS_FACTORS] = { { 0 } };
    size_t problems = read_problems(f, problem), n = 0, room = 0;
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, getenv("FAGEN_TEMPLATE_DIR")), FA_OK, "%s", fa_last_error());
    *jobs = NULL;
    *rows = NULL;
    for (size_t k = 0; k < problems; k++) {
        const fa_problem *p = &problem[k];
        fa_space s;
        cr_assert_eq(fa_space_list(g, p, arch(), 0, f->name, &s), FA_OK, "%s", fa_last_error());
        cr_expect_gt(s.fitting, 0, "problem %zu", k);
        room += s.fitting;
        *jobs = realloc(*jobs, room * sizeof **jobs);
        *rows = realloc(*rows, room * sizeof **rows);
        for (size_t i = 0; i < s.n; i++) {
            const fa_config *c = &s.points[i].config;
            if (!s.points[i].fits)
                continue;
            pairs_row *r = &(*rows)[n];
            int at = 0;
            for (; at < c->n; at++)
                r->value[at] = pairs_number(&factor[at], c->tunable[at].value);
            cr_assert_leq(at + 7, PAIRS_FACTORS);
            r->value[at] = pairs_number(&factor[at], p->d * 1000 + p->dv), at++;
            r->value[at] = pairs_number(&factor[at], p->dtype), at++;
            r->value[at] = pairs_number(&factor[at], (p->o_dtype == FA_F32) + 2 * (p->grad_dtype == FA_F32)), at++;
            *mask = at;
            r->value[at] = pairs_number(&factor[at], p->mask), at++;
            r->value[at] = pairs_number(&factor[at], p->features), at++;
            if (pairs) {
                r->value[at] = pairs_number(&factor[at], (int32_t)k), at++;
                r->value[at] = pairs_number(&factor[at], fa_config_get(c, "feeder", 0) * 8 + p->mask), at++;
            }
            *factors = at;
            (*jobs)[n++] = (job){ .problem = *p, .config = *c };
        }
        fa_space_free(&s);
    }
    fa_gen_close(g);
    return n;
}

static void choose(sweep *s)
{
    job *all;
    pairs_row *rows;
    const char *how = getenv("FAGEN_SWEEP");
    bool pairs = how && !strcmp(how, "pairs");
    int factors = 0, mask = 0;
    size_t n = list_jobs(s->family, &all, &rows, pairs, &factors, &mask), drawn = how ? strtoul(how, NULL, 10) : 0;
    cr_assert(!how || !*how || pairs || !strcmp(how, "all") || drawn, "FAGEN_SWEEP is \"%s\"; accepted: pairs, all, a number of configs",
              how);
    s->job = all;
    s->n = n;
    s->verbose = how && *how;
    if (drawn && drawn < n) {
        fa_random r = { SEED };
        for (s->n = 0; s->n < drawn; s->n++) { /* the first `drawn` of a shuffle */
            size_t other = s->n + (size_t)fa_random_below(&r, (int32_t)(n - s->n));
            job kept = all[s->n];
            all[s->n] = all[other];
            all[other] = kept;
        }
    } else if (!how || !*how || pairs) {
        size_t *chosen = malloc((n + 1) * sizeof *chosen);
        s->n = pairs_cover(rows, n, factors, pairs ? 1 : mask, SEED, chosen);
        if (!pairs && !full() && s->n > s->family->most)
            s->n = s->family->most;
        s->job = malloc((s->n + 1) * sizeof *s->job);
        for (size_t i = 0; all && i < s->n; i++)
            s->job[i] = all[chosen[i]];
        free(chosen);
        free(all);
    }
    free(rows);
    printf("%s: %zu of %zu configs\n", s->family->name, s->n, n);
    fflush(stdout);
}

/* What ships, each kernel once; by default one in SHIPPED_EVERY. */
static void choose_shipped(sweep *s)
{
    fa_gen *g;
    size_t seen = 0, every = full() ? 1 : SHIPPED_EVERY;
    s->job = calloc(SHIPPED, sizeof *s->job);
    cr_assert_eq(fa_gen_open(&g, getenv("FAGEN_TEMPLATE_DIR")), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < SHIPPED; i++) {
        job *j = &s->job[s->n];
        if (strncmp(shipped[i].config, s->family->name, strlen(s->family->name)) != 0 || shipped_before(i) || seen++ % every)
            continue;
        cr_assert_eq(fa_problem_parse(&j->problem, shipped[i].problem), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_config_parse(&j->config, shipped[i].config), FA_OK, "%s", fa_last_error());
        s->n++;
    }
    fa_gen_close(g);
}

/* ---- compiled ---- */

/* Registers per thread at the launch of a kernel whose blocks are alone on their SM. */
static int32_t at_launch(const fa_step *s)
{
    int32_t all = arch()->regs_sm / s->threads / 8 * 8;
    return all < arch()->regs_thread ? all : arch()->regs_thread;
}

/* The first thing that is wrong with a step's kernel, in why. Warpgroups that hand registers over begin with a number that is part of a
 * sum. */
static void judge(const sweep *s, const job *j, const fa_source *source, const fa_step *step, const char *log, char why[200])
{
    fa_resources r = fa_resources_parse(log, step->entry);
    int32_t bytes = r.spill_stores > r.spill_loads ? r.spill_stores : r.spill_loads;
    int32_t accepted = s->family->gradients || j->problem.features & FA_FEATURE_LENGTHS ? FA_SPILLS_OUTSIDE_LOOP : 0;
    int32_t regs = s->family->gradients ? at_launch(step) : source->min_regs;
    bool hands_over = s->family->gradients ? step->threads > 256 : strstr(source->text, "CONSUMER_REGISTERS") != NULL;
    if (!r.known)
        snprintf(why, 200, "the compiler says nothing of registers");
    else if (r.note[0])
        snprintf(why, 200, "%s", r.note);
    else if (bytes > accepted || (!accepted && r.stack))
        snprintf(why, 200, "spills: %d bytes, stack of %d, in %s", bytes, r.stack, step->entry);
    else if (r.registers > regs || (hands_over && r.registers != regs))
        snprintf(why, 200, "%d registers at the launch of %s, not %d", r.registers, step->entry, regs);
}

/* The first thing that is wrong with it, in why; "" when nothing is. */
static void compile(sweep *s, fa_gen *g, const job *j, char why[200])
{
    fa_source source;
    fa_entry e = { 0 };
    why[0] = 0;
    if (fa_render(g, &j->problem, &j->config, arch(), 0, &source) != FA_OK) {
        snprintf(why, 200, "%.190s", fa_last_error());
        return;
    }
    if (fa_compile(s->compiler, &source, arch()->name, FA_IMAGE_LEAN, &e) != FA_OK)
        snprintf(why, 200, "%.190s", fa_last_error());
    for (int32_t i = 0; i < (s->family->gradients ? source.steps : 1) && !why[0]; i++)
        if (!s->family->gradients || source.step[i].n_maps)
            judge(s, j, &source, &source.step[i], e.log, why);
    fa_entry_free(&e);
    fa_source_free(&source);
}

static void *work(void *user)
{
    sweep *s = user;
    fa_gen *g = NULL;
    fa_status st = fa_gen_open(&g, getenv("FAGEN_TEMPLATE_DIR"));
    pthread_mutex_lock(&s->mutex);
    while (st == FA_OK && s->next < s->n) {
        const job *j = &s->job[s->next++];
        char why[200], config[512], problem[160];
        pthread_mutex_unlock(&s->mutex);
        compile(s, g, j, why);
        pthread_mutex_lock(&s->mutex);
        if (why[0] || s->verbose) {
            fa_config_print(config, sizeof config, &j->config);
            fa_problem_print_key(problem, sizeof problem, &j->problem);
            printf("%s %s: %s\n", problem, config, why[0] ? why : "clean");
            fflush(stdout);
        }
        s->clean += !why[0];
        s->spill += !strncmp(why, "spills", 6);
        s->noted += why[0] == 'C' || why[0] == '\'';
    }
    pthread_mutex_unlock(&s->mutex);
    fa_gen_close(g);
    return NULL;
}

static void run(const family *f, void (*chosen)(sweep *))
{
    pthread_t thread[8];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = cores < 1 ? 1 : cores > 8 ? 8 : (int)cores;
    sweep s = { .family = f, .compiler = fa_compiler_open(NULL), .mutex = PTHREAD_MUTEX_INITIALIZER };
    cr_assert_not_null(s.compiler);
    chosen(&s);
    for (int i = 0; i < threads; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, work, &s), 0);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    cr_assert_eq(s.next, s.n);
    printf("%zu configs: %zu clean, %zu with spills, %zu with a note\n", s.n, s.clean, s.spill, s.noted);
    cr_expect_eq(s.clean, s.n, "%zu of %zu configs do not compile as they must", s.n - s.clean, s.n);
    fa_compiler_close(s.compiler);
    free(s.job);
}

Test(hopper_sweep, what_ships_compiles_clean)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        run(&families[i], choose_shipped);
}

Test(hopper_sweep, what_fits_compiles_clean)
{
    run(&families[0], choose);
}

Test(hopper_sweep, gradients_that_fit_compile_clean)
{
    run(&families[1], choose);
}
