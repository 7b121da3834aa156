/* Score programs that a process knows: found by the numbers of a problem, and what kernels take of them as parameters. */
#include "gen/family.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

TestSuite(score_known, .timeout = 60);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

static const fa_program *known(const char *text)
{
    const fa_program *p;
    OK(fa_score_known_read(&p, "score", text, strlen(text)));
    return p;
}

static fa_problem problem_of(const fa_program *program)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = FA_BF16;
    p.d = 64;
    fa_score_known_name(&p, program);
    return p;
}

#define CAP "c = scalar(50) function score(s, b, h, i, j) return c * tanh(s / c) end"
#define MASK "function mask(b, h, i, j) return i <= j end"

Test(score_known, a_problem_names_its_program_by_numbers)
{
    const fa_program *p = known(CAP), *same = known("k = scalar(3) function score(x, b, h, i, j) return k * tanh(x / k) end");
    fa_problem problem = problem_of(p), other = FA_PROBLEM_INIT;
    cr_expect_eq(p, same, "values of scalars and names are no part of the identity");
    cr_expect_eq(fa_score_known(&problem), p);
    cr_expect_null(fa_score_known(&other));
    cr_expect_str_eq(p->source, CAP);
    problem.score_id3 ^= 1;
    cr_expect_null(fa_score_known(&problem));
    fa_score_known_name(&problem, NULL);
    cr_expect(!problem.features && !problem.score_id0 && !problem.score_id1 && !problem.score_id2 && !problem.score_id3);
}

/* Printed and read again, with signs of all words. */
Test(score_known, a_problem_with_a_program_is_printed_and_read)
{
    char text[FA_PROBLEM_TEXT], program[128];
    for (int i = 0; i < 16; i++) {
        fa_problem p, again;
        snprintf(program, sizeof program, "function score(s, b, h, i, j) return s * %d end", i + 2);
        fa_problem in = problem_of(known(program));
        OK(fa_problem_normalize(&p, &in));
        cr_expect_lt(fa_problem_print(text, sizeof text, &p), (int)sizeof text);
        OK(fa_problem_parse(&again, text));
        cr_expect(fa_problem_same_class(&p, &again), "%s", text);
    }
}

Test(score_known, what_is_no_program_of_the_process_is_refused)
{
    fa_problem out, good = problem_of(known(CAP)), mask = problem_of(known(MASK)), p;
    const struct {
        fa_problem p;
        int32_t op, features, more;
        fa_status status;
        const char *says;
    } rows[] = {
        { good, FA_FORWARD, 0, 1, FA_INVALID, "which is no score program of this process; accepted: the words of fa_score_id()" },
        { good, FA_FORWARD, FA_FEATURE_SCORE, 0, FA_INVALID, "features has no score and score_id0 to score_id3 are set" },
        { problem_of(NULL), FA_FORWARD, FA_FEATURE_SCORE, 0, FA_INVALID, "features has score and score_id0 to score_id3 are 0" },
        { good, FA_BACKWARD, 0, 0, FA_OK, "" },
        { good, FA_MERGE, FA_FEATURE_SCORE, 0, FA_UNSUPPORTED, "which this version does not compute with op=merge" },
        { mask, FA_FORWARD, 0, 0, FA_OK, "" },
        { mask, FA_BACKWARD, 0, 0, FA_OK, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        p = rows[i].p;
        p.op = rows[i].op;
        p.features ^= rows[i].features;
        p.score_id1 += rows[i].more;
        cr_expect_eq(fa_problem_normalize(&out, &p), rows[i].status, "row %zu", i);
        cr_expect(strstr(fa_last_error(), rows[i].says), "row %zu: %s", i, fa_last_error());
    }
}

static void *add(void *out)
{
    char text[128];
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "function score(s, b, h, i, j) return s + %d.5 end", i);
        ((const fa_program **)out)[i] = known(text);
    }
    return NULL;
}

Test(score_known, threads_that_add_the_same_find_one)
{
    static const fa_program *found[4][200];
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, add, found[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 200; k++) {
            cr_assert(found[i][k] && found[i][k] == found[0][k]);
            cr_assert(k == 0 || found[i][k] != found[i][k - 1]);
        }
}

/* What a C compiler makes of the struct that kernels see. */
typedef struct two_arrays {
    float scale;
    const void *score0;
    long long score0_stride[4];
    int score0_extent[4];
    int score1;
    const void *score2;
    long long score2_stride[4];
    int score2_extent[4];
    float score3;
    int b;
} two_arrays;

Test(score_known, kernels_take_the_operands_of_a_program)
{
    const fa_program *p = known("t = f32 'hq sk'; n = scalar(2, 'int'); u = bf16 'b'; c = scalar(1.5)\n"
                                "function score(s, b, h, i, j) return s * c + t[h][j] + u[b] + n end");
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    fa_workspace none = { .n = 0 };
    char names[FA_PARAMS_TEXT], text[1024] = "", name[24];
    fa_packing packing;
    fa_values v;
    two_arrays out, want = { .scale = 0.5f, .score1 = -7, .score3 = 2.5f, .b = 3 };
    cr_assert(fa_values_expand(names, "scale score b", p));
    cr_expect_str_eq(names, "scale score0 score0_stride score0_extent score1_int score2 score2_stride score2_extent score3_float b");
    OK(fa_packing_of(&packing, op, &none, names));
    cr_expect_eq((size_t)packing.bytes, sizeof out);
    memset(&v, 0xee, sizeof v);
    memset(&out, 0, sizeof out);
    v.scale = want.scale;
    v.b = want.b;
    for (int k = 0; k < 4; k++) {
        v.score[0].stride[k] = want.score0_stride[k] = 1000 + k;
        v.score[0].extent[k] = want.score0_extent[k] = 10 + k;
        v.score[2].stride[k] = want.score2_stride[k] = -k;
        v.score[2].extent[k] = want.score2_extent[k] = k;
    }
    v.score[0].address = (uint64_t)(uintptr_t)(want.score0 = &v);
    v.score[2].address = (uint64_t)(uintptr_t)(want.score2 = &out);
    memcpy(&v.score[1].scalar, &want.score1, 4);
    memcpy(&v.score[3].scalar, &want.score3, 4);
    fa_pack(&out, &packing, &v);
    cr_expect(out.scale == want.scale && out.score0 == want.score0 && out.score1 == want.score1 && out.score2 == want.score2 &&
              out.score3 == want.score3 && out.b == want.b);
    cr_expect(!memcmp(out.score0_stride, want.score0_stride, 32) && !memcmp(out.score0_extent, want.score0_extent, 16));
    cr_expect(!memcmp(out.score2_stride, want.score2_stride, 32) && !memcmp(out.score2_extent, want.score2_extent, 16));
    for (const char *at = names; fa_values_next(&at, name);) {
        fa_value value;
        cr_assert(fa_value_find(&value, op, &none, name), "%s", name);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %s;", value.type, value.name);
    }
    cr_expect_str_eq(text, "float scale;const void * score0;long long score0_stride[4];int score0_extent[4];int score1;"
                           "const void * score2;long long score2_stride[4];int score2_extent[4];float score3;int b;");
    cr_assert(fa_values_expand(names, "scale score b", NULL));
    cr_expect_str_eq(names, "scale b");
}

/* The longest lists that there are. */
Test(score_known, all_values_of_eight_arrays_fit)
{
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    fa_workspace none = { .n = 0 };
    char text[2048] = "", all[FA_PARAMS_TEXT], names[FA_PARAMS_TEXT];
    fa_packing packing;
    for (int k = 0; k < FA_SCORE_OPERANDS_MAX; k++)
        sprintf(text + strlen(text), "t%d = f32 'b hq sq sk'\n", k);
    strcat(text, "function score(s, b, h, i, j) return s");
    for (int k = 0; k < FA_SCORE_OPERANDS_MAX; k++)
        sprintf(text + strlen(text), " + t%d[b][h][i][j]", k);
    strcat(text, " end");
    fa_values_all(all, op);
    strcat(all, " score");
    cr_assert(fa_values_expand(names, all, known(text)), "%zu letters", strlen(names));
    OK(fa_packing_of(&packing, op, &none, names));
    cr_expect_leq(packing.bytes, FA_PACKED_MAX);
    cr_expect_leq(FA_PACKED_MAX, 4096 - FA_STEP_MAPS * 128, "parameters of a kernel, beside its tensor maps");
}
