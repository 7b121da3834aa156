/* Score programs as objects of a context, and the fields of fa_args and fa_problem that have no kernels yet: each is refused by its name.
 */
#include "gen/operation.h"
#include "gen/problem_fields.h"
#include "test_fake_context.h"
#include "test_good_args.h"
#include <pthread.h>
#include <string.h>

TestSuite(runtime_score, .init = open_bare_context, .fini = close_bare_context, .timeout = 120);

#define CAP "c = scalar(50) function score(s, b, h, i, j) return c * tanh(s / c) end"
#define SAME_CAP "-- the same\nc = scalar(50)\nfunction score(x, b, h, i, j)\n  return c * tanh(x / c)\nend\n"
#define OTHER_CAP "c = scalar(30) function score(s, b, h, i, j) return c * tanh(s / c) end"

static bool says(const char *words)
{
    return strstr(fa_last_error(), words) != NULL;
}

Test(runtime_score, an_object_is_made_once_for_each_program)
{
    fa_score *a, *b, *c;
    uint64_t id[2], other[2];
    OK(fa_score_create(ctx, CAP, &a));
    OK(fa_score_create(ctx, SAME_CAP, &b));
    OK(fa_score_create(ctx, OTHER_CAP, &c));
    cr_expect_eq(a, b);
    cr_expect_neq(a, c, "another value where a launch gives none");
    OK(fa_score_id(ctx, a, id));
    OK(fa_score_id(ctx, c, other));
    cr_expect(!memcmp(id, other, sizeof id), "of the same kernels");
    fa_score_destroy(a);
    OK(fa_score_id(ctx, b, id)); /* it was counted twice */
    fa_score_destroy(b);
    cr_expect_eq(fa_score_id(ctx, b, id), FA_INVALID);
    cr_expect(says("score is no program of this context"), "%s", fa_last_error());
    fa_score_destroy(b);
    OK(fa_score_create(ctx, CAP, &a));
    OK(fa_score_id(ctx, a, id));
}

Test(runtime_score, operands_are_told_in_their_order)
{
    fa_score *s;
    fa_score_operand_info o = { .size = sizeof o };
    OK(fa_score_create(ctx,
                       "t = bf16 'hq sq+sk-1'; n = scalar(2, 'int', 1, 9); c = scalar(1.5); u = bits 'sk'\n"
                       "function score(s, b, h, i, j) return c * s + t[h][j - i + sq - 1] * n + (u[j] and 1 or 0) end",
                       &s));
    const struct {
        const char *name, *shape;
        int32_t kind, rank;
        double value;
    } rows[] = { { "t", "hq sq+sk-1", FA_OPERAND_BF16, 2, 0 },
                 { "n", "", FA_OPERAND_INTEGER, 0, 2 },
                 { "c", "", FA_OPERAND_NUMBER, 0, 1.5 },
                 { "u", "sk", FA_OPERAND_BITS, 1, 0 } };
    for (int i = 0; i < 4; i++) {
        OK(fa_score_operand_at(ctx, s, i, &o));
        cr_expect(!strcmp(o.name, rows[i].name) && !strcmp(o.shape, rows[i].shape) && o.kind == rows[i].kind && o.rank == rows[i].rank &&
                      o.value == rows[i].value && o.count == 4,
                  "%s \"%s\"", o.name, o.shape);
    }
    OK(fa_score_operand_at(ctx, s, 1, &o));
    cr_expect(o.least == 1 && o.most == 9);
    cr_expect_eq(fa_score_operand_at(ctx, s, 4, &o), FA_INVALID);
    cr_expect(o.count == 4 && says("i: 4; accepted: from 0, below 4"), "%s", fa_last_error());
    cr_expect_eq(fa_score_operand_at(ctx, s, -1, &o), FA_INVALID);
    cr_expect_eq(fa_score_operand_at(ctx, NULL, 0, &o), FA_INVALID);
    cr_expect_eq(fa_score_operand_at(ctx, s, 0, NULL), FA_INVALID);
    o.size = 8;
    cr_expect_eq(fa_score_operand_at(ctx, s, 0, &o), FA_INVALID);
}

Test(runtime_score, what_is_no_program_is_refused)
{
    fa_score *a = (void *)&a;
    uint64_t id[2];
    cr_expect_eq(fa_score_create(ctx, "function score(s, b, h, i, j) return t end", &a), FA_INVALID);
    cr_expect(!a && says("score:1:38: t is not defined"), "%s", fa_last_error());
    cr_expect_eq(fa_score_create(NULL, CAP, &a), FA_INVALID);
    cr_expect_eq(fa_score_create(ctx, NULL, &a), FA_INVALID);
    cr_expect(says("text: NULL"), "%s", fa_last_error());
    cr_expect_eq(fa_score_create(ctx, CAP, NULL), FA_INVALID);
    cr_expect_eq(fa_score_id(ctx, NULL, id), FA_INVALID);
    OK(fa_score_create(ctx, CAP, &a));
    cr_expect_eq(fa_score_id(ctx, a, NULL), FA_INVALID);
    fa_score_destroy(NULL);
}

/* Every public function that reads arguments, of a program of this context, of another one, of none. */
Test(runtime_score, an_object_of_another_context_is_invalid)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *other;
    fa_score *own, *foreign;
    fa_args a = good();
    size_t bytes;
    char text[256];
    o.cache_dir = "";
    OK(fa_create_on(&other, &o, fake_driver(), 0));
    OK(fa_score_create(ctx, CAP, &own));
    OK(fa_score_create(other, CAP, &foreign));
    const struct {
        const fa_score *score;
        fa_status status;
        const char *says;
    } rows[] = {
        { own, FA_OK, "" },
        { foreign, FA_INVALID, "args: score is no program of this context" },
        { (const void *)text, FA_INVALID, "args: score is no program of this context" },
        { (const void *)(uintptr_t)8, FA_INVALID, "args: score is no program of this context" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        a.score = rows[i].score;
        cr_expect_eq(fa_launch(ctx, &a, NULL), rows[i].status, "row %zu", i);
        cr_expect(says(rows[i].says), "%s", fa_last_error());
        cr_expect_eq(fa_workspace_size(ctx, &a, &bytes), rows[i].status, "row %zu", i);
        cr_expect(says(rows[i].says), "%s", fa_last_error());
        cr_expect_eq(fa_explain(ctx, NULL, &a, text, sizeof text), rows[i].status, "row %zu", i);
        cr_expect(says(rows[i].says), "%s", fa_last_error());
    }
    fa_score_destroy(own);
    a.score = own;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(says("fa_score_destroy() has not undone"), "%s", fa_last_error());
    fa_destroy(other);
}

/* A caller of an older header has no such field, whatever lies after its struct. */
Test(runtime_score, fields_after_an_older_struct_are_not_read)
{
    fa_args a = good();
    a.size = offsetof(fa_args, score);
    memset((char *)&a + a.size, 0xff, sizeof a - a.size);
    fa_problem p = FA_PROBLEM_INIT;
    memset((char *)&p + offsetof(fa_problem, q_dtype), 0xee, sizeof p - offsetof(fa_problem, q_dtype));
    OK(fa_problem_of(&a, &p));
    cr_expect_eq(p.size, offsetof(fa_problem, q_dtype));
    for (size_t i = offsetof(fa_problem, q_dtype); i < sizeof p; i++)
        cr_expect_eq(((unsigned char *)&p)[i], 0xee, "byte %zu", i);
}

static const struct {
    const char *name;
    size_t at, bytes;
    const char *readers;
} fields[] = {
#define FIELD(field, what, readers, ...) { #field, offsetof(fa_args, field), sizeof(((fa_args *)0)->field), #readers },
#define VALUE FIELD
#include "gen/operands.def"
};

/* Any byte of a field that no operation reads, or an append alone: refused with the field's name, by each other operation. */
Test(runtime_score, every_later_field_is_refused_by_name)
{
    int later = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].at < offsetof(fa_args, q_dtype))
            continue;
        later++;
        for (size_t byte = 0; byte < fields[i].bytes; byte++)
            for (int op = strstr(fields[i].readers, "FORWARD") ? FA_BACKWARD : FA_FORWARD; op <= FA_MERGE; op++) {
                fa_problem p = FA_PROBLEM_INIT;
                fa_args a = good();
                char words[64];
                a.op = op;
                ((unsigned char *)&a)[fields[i].at + byte] = 1;
                snprintf(words, sizeof words, "args: %s is set: ", fields[i].name);
                cr_expect_eq(fa_problem_of(&a, &p), strcmp(fields[i].readers, "NONE") ? FA_INVALID : FA_UNSUPPORTED, "%s, byte %zu",
                             fields[i].name, byte);
                cr_expect(says(words), "%s: %s", words, fa_last_error());
            }
    }
    cr_expect_eq(later, 20);
}

Test(runtime_score, every_later_class_is_refused_by_name)
{
    for (int i = FA_FIELD_q_dtype; i < FA_FIELD_score_id0; i++) {
        fa_problem p = FA_PROBLEM_INIT;
        p.dtype = FA_BF16;
        p.d = 64;
        fa_problem_set(&p, &fa_problem_fields[i], 1);
        cr_expect_eq(fa_supported(ctx, &p), FA_UNSUPPORTED);
        cr_expect(says(fa_problem_fields[i].member), "%s", fa_last_error());
    }
    static const struct {
        int32_t feature;
        const char *word;
    } rows[] = { { FA_FEATURE_ORIGINS, "origins" }, { FA_FEATURE_ACCUMULATE, "accumulate" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int op = FA_FORWARD; op <= FA_BACKWARD; op++) {
            fa_problem p = FA_PROBLEM_INIT;
            char words[96];
            p.dtype = FA_BF16;
            p.d = 64;
            p.op = op;
            p.features = rows[i].feature;
            snprintf(words, sizeof words, "features is %s, which this version does not compute", rows[i].word);
            cr_expect_eq(fa_supported(ctx, &p), FA_UNSUPPORTED);
            cr_expect(says(words), "%s", fa_last_error());
        }
    fa_args a = good();
    a.flags = FA_ACCUMULATE;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_UNSUPPORTED);
    cr_expect(says("flags is 0x8"), "%s", fa_last_error());
}

static void *make(void *out)
{
    fa_score *s = NULL;
    for (int i = 0; i < 200; i++) {
        fa_score_create(ctx, i % 2 ? CAP : OTHER_CAP, &s);
        fa_score_destroy(s);
    }
    fa_score_create(ctx, SAME_CAP, &s);
    return *(fa_score **)out = s;
}

Test(runtime_score, threads_that_read_one_text_have_one_object)
{
    pthread_t thread[4];
    fa_score *score[4];
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, make, &score[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++)
        cr_expect(score[i] && score[i] == score[0]);
    uint64_t id[2];
    for (int i = 0; i < 4; i++) {
        OK(fa_score_id(ctx, score[0], id));
        fa_score_destroy(score[i]);
    }
    cr_expect_eq(fa_score_id(ctx, score[0], id), FA_INVALID);
}
