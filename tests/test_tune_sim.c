/* fa_tune on the simulator: the model ranks, the winner is verified before it is used, and the context uses it. */
#include "autotune/search/runs.h"
#include "autotune/search/search.h"
#include "gen/templates.h"
#include "rowwise.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/tensors.h"
#include <math.h>

/* Kernels lie in the suite's cache, so that a test finds those of the tests before it. Records do not: each test begins without. */
static void begin(void)
{
    const char *cache = getenv("FAGEN_CACHE_DIR");
    char records[512];
    cr_assert(cache && cache[0], "FAGEN_CACHE_DIR is not set: run me through ctest");
    snprintf(records, sizeof records, "%s/v1/records", cache);
    nftw(records, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    scratch_make();
}

static fa_problem problem(void)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=24,mask=causal,b=1,hq=4,hkv=2,sq=256,sk=256"), FA_OK); /* nothing ships for d = 24 */
    return p;
}

static fa_context *context(const char *templates)
{
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    return test_context(templates, NULL);
}

Test(tune_sim, the_winner_is_used_and_resumed, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    fa_context *ctx = context(NULL);
    fa_problem p = problem();
    fa_tune_options opt = FA_TUNE_OPTIONS_INIT;
    char why[2048], name[512];
    opt.limit = 3;
    cr_assert_eq(fa_tune(ctx, &p, &opt), FA_OK, "%s", fa_last_error());

    fa_records rs = fa_records_load(fa_context_store(ctx), "sm_80", &p);
    cr_assert_eq(rs.n, 3);
    const fa_record *best = fa_records_best(&rs, &p);
    cr_assert_not_null(best);
    cr_assert_eq(best->how, FA_MODELLED);
    cr_assert_str_eq(best->driver, "sim");
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    fa_gen_config_print(g, name, sizeof name, &best->config);
    fa_gen_close(g);
    cr_assert_eq(fa_explain(ctx, &p, NULL, why, sizeof why), FA_OK);
    cr_assert_not_null(strstr(why, name), "%s is not in: %s", name, why);
    fa_records_free(&rs);

    fa_site site = fa_site_of(ctx);
    fa_search_options again = { .limit = 3 };
    fa_tuning t;
    cr_assert(!site.timed);
    cr_assert_eq(fa_search(&site, &p, &again, &t), FA_OK);
    cr_assert_eq(t.counts.resumed, 3);
    cr_assert(t.winner->verified);
    cr_assert(t.runs.known && fa_config_equal(&t.runs.config, &t.winner->config) && !t.runs.decided);
    fa_tuning_free(&t);
    fa_destroy(ctx);

    ctx = context(NULL); /* another process finds the record */
    cr_assert_eq(fa_explain(ctx, &p, NULL, why, sizeof why), FA_OK);
    cr_assert_not_null(strstr(why, name), "%s is not in: %s", name, why);
    fa_destroy(ctx);
}

/* What a search says runs is what launches choose: a guess that is dearer than what else is known does not run. */
Test(tune_sim, a_guess_that_does_not_run, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    fa_context *ctx = context(NULL);
    fa_site site = fa_site_of(ctx);
    fa_search_options split = { .limit = 1, .family = "split_mma" };
    fa_tuning t;
    fa_problem p;
    fa_gen *g;
    char why[4096], name[512];
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=24,mask=causal,b=1,hq=2,hkv=2,sq=128,sk=128"), FA_OK);
    cr_assert_eq(fa_search(&site, &p, &split, &t), FA_OK, "%s", fa_last_error());
    cr_assert(t.runs.known && t.winner && !fa_config_equal(&t.runs.config, &t.winner->config));
    cr_assert_str_eq(t.runs.from, "model");
    fa_gen_config_print(g, name, sizeof name, &t.runs.config);
    cr_assert_eq(fa_explain(ctx, &p, NULL, why, sizeof why), FA_OK);
    cr_assert_not_null(strstr(why, name), "%s is not in: %s", name, why);
    cr_assert_not_null(strstr(why, "miss"), "the guess is not prepared: %s", why);
    fa_tuning_free(&t);

    t = (fa_tuning){ .n = 0 }; /* a winner that ships, without a search */
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096"), FA_OK);
    cr_assert_eq(fa_problem_normalize(&t.problem, &p), FA_OK);
    cr_assert_eq(fa_runs_find(&t, g, &site), FA_OK);
    cr_assert_eq(strncmp(t.runs.from, "shipped winner of NVIDIA ", 25), 0, "%s", t.runs.from);
    fa_gen_config_print(g, name, sizeof name, &t.runs.config);
    cr_assert_eq(fa_explain(ctx, &p, NULL, why, sizeof why), FA_OK);
    cr_assert_not_null(strstr(why, name), "%s is not in: %s", name, why);
    fa_gen_close(g);
    fa_destroy(ctx);
}

/* Lengths and pages: verified with lengths at borders, and simulated on tensors that have a table. By default the first and the last. */
Test(tune_sim, sequences_of_their_own_lengths, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    static const char *const problems[] = { "bf16,d=64,features=lengths+pages,page=16,b=4,hq=8,hkv=2,sq=1,sk=512",
                                            "fp16,d=64,mask=causal,features=lengths+pages+lse-strides,page=1,b=2,hq=8,hkv=1,sq=4,sk=256",
                                            "bf16,d=64,mask=causal,features=lengths,b=3,hq=4,hkv=4,sq=2,sk=300" };
    fa_context *ctx = context(NULL);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i += full() ? 1 : 3) {
        fa_problem p, of_tensors;
        fa_tuning t;
        fa_tensors tensors;
        fa_search_options opt = { .limit = 2 };
        fa_site site = fa_site_of(ctx);
        fa_entered in;
        cr_assert_eq(fa_problem_parse(&p, problems[i]), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_search(&site, &p, &opt, &t), FA_OK, "%s: %s", problems[i], fa_last_error());
        cr_expect(t.winner && t.winner->verified, "%s", problems[i]);
        fa_tuning_free(&t);
        cr_assert_eq(fa_context_enter(ctx, &in), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_tensors_open(&tensors, ctx, &p), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_problem_of(&tensors.args, &of_tensors), FA_OK, "%s", fa_last_error());
        cr_expect_null(fa_problem_hindrance(&p, true, &of_tensors), "%s: %s", problems[i],
                       fa_problem_hindrance(&p, true, &of_tensors)->word);
        cr_assert_eq(fa_tensors_random(&tensors, 1), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_tensors_launch(&tensors, NULL), FA_OK, "%s", fa_last_error());
        float *o;
        cr_assert_eq(fa_tensors_get(&tensors, fa_operand_index(tensors.op, "o"), &o), FA_OK, "%s", fa_last_error());
        for (size_t k = 0; k < tensors.count[3]; k++)
            cr_assert(isfinite(o[k]), "%s: O[%zu] is %g", problems[i], k, (double)o[k]);
        free(o);
        fa_tensors_close(&tensors);
        fa_context_leave(ctx, &in);
    }
    fa_destroy(ctx);
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(below("%s", name), "w");
    cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

/* A family whose tunables no other has: listed, ranked, compiled, verified, used. */
Test(tune_sim, a_family_of_two_files, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    char dir[256];
    fa_problem p;
    fa_search_options opt = { .limit = full() ? 30 : 20, .family = "rowwise" };
    fa_tuning t;
    put("rowwise.lua", rowwise_lua);
    put("rowwise.cu", rowwise_cu);
    snprintf(dir, sizeof dir, "%s", below("."));
    fa_context *ctx = context(dir);
    cr_assert_eq(fa_problem_parse(&p, "fp32,d=16,mask=causal,b=1,hq=2,hkv=1,sq=80,sk=80"), FA_OK);
    fa_site site = fa_site_of(ctx);
    cr_assert_eq(fa_search(&site, &p, &opt, &t), FA_OK, "%s", fa_last_error());
    cr_assert(t.winner && t.winner->verified && !strcmp(t.winner->config.family, "rowwise"));
    cr_assert_eq(t.winner->tile[0], fa_config_get(&t.winner->config, "span", 0));
    cr_assert_eq(t.winner->tile[1], fa_config_get(&t.winner->config, "chunk", 0));
    bool backward = false;
    for (size_t i = 0; i < t.n; i++)
        backward |= fa_config_get(&t.candidate[i].config, "walk", 0) == 1;
    cr_assert(backward, "both values of a named tunable are tried");
    fa_tuning_free(&t);
    fa_destroy(ctx);
}

/* A guess that was asked for is on record, marked, and is a candidate like others: what it decides it decides in every process. */
Test(tune_sim, a_guess_is_a_candidate, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    fa_context *ctx = context(NULL);
    fa_problem p;
    fa_tune_options opt = FA_TUNE_OPTIONS_INIT;
    char first[512] = "";
    static char after[16384];
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64,mask=causal,b=1,hq=4,hkv=2,sq=256,sk=256"), FA_OK);
    opt.limit = 2;
    cr_assert_eq(fa_tune(ctx, &p, &opt), FA_OK, "%s", fa_last_error());
    fa_records rs = fa_records_load(fa_context_store(ctx), "sm_80", &p);
    cr_assert_eq(rs.n, 2);
    cr_assert_not_null(fa_records_best(&rs, &p));
    fa_records_free(&rs);
    for (int process = 0; process < 2; process++) {
        fa_destroy(ctx);
        ctx = context(NULL);
        cr_assert_eq(fa_explain(ctx, &p, NULL, after, sizeof after), FA_OK);
        const char *config = strstr(after, "config"), *end = strchr(config, '\n');
        cr_assert(strstr(after, "modelled record of sm_80"), "%s", after);
        cr_assert(!first[0] || !strncmp(first, config, (size_t)(end - config)), "%s", after);
        snprintf(first, sizeof first, "%.*s", (int)(end - config), config);
    }
    fa_destroy(ctx);
}

static int stop_at_once(void *user, const char *line, double done)
{
    ++*(int *)user;
    cr_assert(line[0] && done >= 0 && done <= 1);
    return 1;
}

Test(tune_sim, it_stops_when_told, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    fa_context *ctx = context(NULL);
    fa_problem p = problem();
    fa_tune_options opt = FA_TUNE_OPTIONS_INIT;
    int calls = 0;
    opt.progress = stop_at_once;
    opt.user = &calls;
    cr_assert_eq(fa_tune(ctx, &p, &opt), FA_INTERRUPTED);
    cr_assert_eq(calls, 1);
    cr_assert_eq(fa_tune(NULL, &p, &opt), FA_INVALID);
    opt.reserved = 1;
    cr_assert_eq(fa_tune(ctx, &p, &opt), FA_INVALID);
    opt.reserved = 0;
    opt.size = 3;
    cr_assert_eq(fa_tune(ctx, &p, &opt), FA_INVALID);
    fa_destroy(ctx);
}

/* A piece of the library with another text in the place of the first that is found. */
static void changed(const char *name, const char *find, const char *put)
{
    const fa_template_file *f = fa_template_files;
    while (f->name && strcmp(f->name, name))
        f++;
    cr_assert(f->name && strstr(f->bytes, find));
    const char *at = strstr(f->bytes, find);
    FILE *out = fopen(below("%s", name), "w");
    cr_assert_not_null(out);
    fwrite(f->bytes, 1, (size_t)(at - f->bytes), out);
    fprintf(out, "%s%s", put, at + strlen(find));
    fclose(out);
}

static void none_wins(fa_problem p)
{
    fa_context *ctx = context(scratch);
    fa_tune_options opt = FA_TUNE_OPTIONS_INIT;
    opt.limit = 2;
    cr_assert_eq(fa_tune(ctx, &p, &opt), FA_WRONG);
    fa_records rs = fa_records_load(fa_context_store(ctx), "sm_80", &p);
    int wrong = 0;
    for (size_t i = 0; i < rs.n; i++)
        wrong += rs.r[i].outcome == FA_BAD_RESULT;
    cr_assert_eq(wrong, 2);
    cr_assert_null(fa_records_best(&rs, &p));
    fa_records_free(&rs);
    fa_destroy(ctx);
}

Test(tune_sim, a_wrong_kernel_never_wins, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    changed("softmax.cu", "  row.l *= keep;\n", "");
    none_wins(problem());
}

#define GRADIENTS "bf16,d=32,mask=causal,op=backward,b=1,hq=2,hkv=1,sq=48,sk=48"

Test(tune_sim, wrong_gradients_never_win, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, GRADIENTS), FA_OK, "%s", fa_last_error());
    changed("score.lua", "%s * (%s - %s)", "%s * (%s + %s)"); /* dS = P (dP + D) */
    none_wins(p);
}

static void explained(fa_context *ctx, const fa_problem *p, const fa_config *c)
{
    char why[2048], name[512];
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    fa_gen_config_print(g, name, sizeof name, c);
    fa_gen_close(g);
    cr_assert_eq(fa_explain(ctx, p, NULL, why, sizeof why), FA_OK);
    cr_assert_not_null(strstr(why, name), "%s is not in: %s", name, why);
}

/* The simulator's clock says nothing of a chip, but everything between a candidate and its record is the same as on one. What the context
 * runs afterwards is what won. */
static void tune_with_times(const char *problem, char *const *argv)
{
    fa_context *ctx = context(NULL);
    fa_problem p;
    fa_tuning t;
    fa_site site = fa_site_of(ctx);
    fa_search_options o = { .limit = 2, .strategy = "exhaustive", .candidate_process = argv, .unseeded = true };
    site.timed = true;
    cr_assert_eq(fa_problem_parse(&p, problem), FA_OK);
    cr_assert_eq(fa_search(&site, &p, &o, &t), FA_OK, "%s", fa_last_error());
    cr_assert_eq(t.how, FA_MEASURED);
    cr_assert(t.n >= 2 && t.n <= 3, "%zu", t.n);
    cr_assert_eq(t.counts.verified, t.n);
    cr_assert_eq(t.counts.timed, t.n);
    cr_assert_eq(t.counts.lost, 0);
    cr_assert(t.winner && t.winner->verified && t.winner->seconds > 0 && t.winner->count >= 3 && t.winner->quality != FA_QUALITY_UNTOLD);
    fa_records rs = fa_records_load(fa_context_store(ctx), site.arch->chip, &p);
    cr_assert_geq(rs.n, t.n);
    for (size_t i = 0; i < rs.n; i++)
        cr_assert(rs.r[i].verified && rs.r[i].seconds > 0 && rs.r[i].count > 0);
    const fa_record *best = fa_records_best(&rs, &p);
    cr_assert(best && best->how == FA_MEASURED && best->problem.op == p.op);
    explained(ctx, &p, &t.winner->config); /* the records may rank two that are as fast the other way */
    fa_records_free(&rs);
    fa_tuning_free(&t);
    fa_destroy(ctx);
}

#define FEW "bf16,d=32,b=1,hq=1,hkv=1,sq=32,sk=32"

Test(tune_sim, verified_timed_and_recorded, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    tune_with_times(FEW, NULL);
}

Test(tune_sim, the_same_in_a_child, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    char *candidate_process[] = { getenv("FAGEN_COMMAND"), "candidate-process", "--device", "sim:sm_80", "--timed", NULL };
    tune_with_times(FEW, candidate_process);
}

Test(tune_sim, where_no_child_gets_ready_this_process_does_it, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    char *candidate_process[] = { getenv("FAGEN_COMMAND"), "candidate-process", "--device", "cuda:1000000", NULL };
    tune_with_times(FEW, candidate_process);
}

/* The backward pass, whose candidates get O and LSE of a forward; the record is its own operation's. */
Test(tune_sim, gradients, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    tune_with_times(GRADIENTS, NULL);
}

Test(tune_sim, gradients_in_a_child, .init = begin, .fini = scratch_remove, .timeout = 300)
{
    char *candidate_process[] = { getenv("FAGEN_COMMAND"), "candidate-process", "--device", "sim:sm_80", "--timed", NULL };
    tune_with_times(GRADIENTS ",features=deterministic", candidate_process);
}
