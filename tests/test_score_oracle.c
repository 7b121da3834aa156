/* What the oracle makes of score programs, against formulas written by hand: each program that ships, with operands drawn by a seed. */
#include "gen/problem.h"
#include "gen/score/known.h"
#include "gen/score/shape.h"
#include "gen/score/shipped.h"
#include "verify/operands/random.h"
#include "verify/truth/oracle.h"
#include "verify/truth/reference.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(score_oracle, .timeout = 120);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { B = 2, HQ = 4, HKV = 2, SQ = 9, SK = 13, D = 8, DV = 5 };

/* An element of operand k: strides of 0 and gaps are looked up through the struct of a launch. */
static double at(const fa_score_operands *o, int k, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return o->data.read(o->data.user, k, (int64_t[4]){ a, b, c, d });
}

static int encoder_bucket(int64_t d)
{
    int64_t n = llabs(d), far = 8 + (int64_t)floor(log((double)n / 8) / log(16) * 8);
    return (int)((d > 0 ? 16 : 0) + (n < 8 ? n : far < 15 ? far : 15));
}

static int decoder_bucket(int64_t d)
{
    int64_t n = d < 0 ? -d : 0, far = 16 + (int64_t)floor(log((double)n / 16) / log(8) * 16);
    return (int)(n < 16 ? n : far < 31 ? far : 31);
}

#define OFF (SK - SQ)
#define FORMULA(name, ...)                                                                               \
    static double name(const fa_score_operands *o, double s, int64_t b, int64_t h, int64_t i, int64_t j) \
    {                                                                                                    \
        (void)o, (void)s, (void)b, (void)h, (void)i, (void)j;                                            \
        return __VA_ARGS__;                                                                              \
    }
FORMULA(plain, s)
FORMULA(all, 1)
FORMULA(softcap, o->value[0].scalar *tanh(s / o->value[0].scalar))
FORMULA(alibi, s + at(o, 0, h, 0, 0, 0) * (double)(j - (i + OFF)))
FORMULA(temperature, s *at(o, 0, h, 0, 0, 0))
FORMULA(rows, s *(1 + (double)(float)0.1 * log(floor((double)(i + OFF + 1) / o->value[1].scalar) + 1)))
FORMULA(relative, s + at(o, 0, h, j - i + SQ - 1, 0, 0))
FORMULA(t5, s + at(o, 0, h, encoder_bucket(j - i - OFF), 0, 0))
FORMULA(t5_decoder, s + at(o, 0, h, decoder_bucket(j - i - OFF), 0, 0))
FORMULA(bias, s + at(o, 0, b, h, i, j))
FORMULA(no_sink, -INFINITY)
FORMULA(sink, at(o, 0, h, 0, 0, 0))
FORMULA(second_sink, at(o, 1, h, 0, 0, 0))
FORMULA(softcap_alibi, softcap(o, s, b, h, i, j) + at(o, 1, h, 0, 0, 0) * (double)(j - i - OFF))

FORMULA(chunk, j <= i + OFF && (i + OFF) / 5 == j / 5)
FORMULA(causal, j <= i + OFF)
FORMULA(window, i + OFF - j <= 3 && j - i - OFF <= 1)
FORMULA(prefix, j <= i + OFF || j < (int64_t)at(o, 0, b, 0, 0, 0))
FORMULA(padding, at(o, 0, b, 0, 0, 0) <= (double)j && (double)j < at(o, 1, b, 0, 0, 0))
FORMULA(documents, j <= i + OFF && at(o, 0, b, i + OFF, 0, 0) == at(o, 0, b, j, 0, 0))
FORMULA(tree, j < OFF || at(o, 0, b, i, j - OFF, 0) != 0)
FORMULA(blocks, at(o, 0, b, h, 0, 0) != 0)
FORMULA(matrix, at(o, 0, b, h, i, j) != 0)

typedef double formula(const fa_score_operands *o, double s, int64_t b, int64_t h, int64_t i, int64_t j);
static const struct {
    const char *name;
    formula *score, *sink, *seen;
} shipped[] = {
    { "softcap", softcap, no_sink, all },
    { "softcap_exact", softcap, no_sink, all },
    { "alibi", alibi, no_sink, all },
    { "temperature", temperature, no_sink, all },
    { "temperature_rows", rows, no_sink, all },
    { "relative", relative, no_sink, all },
    { "relative_bf16", relative, no_sink, all },
    { "t5", t5, no_sink, all },
    { "t5_decoder", t5_decoder, no_sink, all },
    { "bias", bias, no_sink, all },
    { "bias_bf16", bias, no_sink, all },
    { "bias_f16", bias, no_sink, all },
    { "sink", plain, sink, all },
    { "softcap_sink", softcap, second_sink, all },
    { "softcap_alibi", softcap_alibi, no_sink, all },
    { "causal", plain, no_sink, causal },
    { "window", plain, no_sink, window },
    { "chunked", plain, no_sink, chunk },
    { "prefix", plain, no_sink, prefix },
    { "padding", plain, no_sink, padding },
    { "documents", plain, no_sink, documents },
    { "tree", plain, no_sink, tree },
    { "blocks", plain, no_sink, blocks },
    { "matrix", plain, no_sink, matrix },
    { "matrix_u8", plain, no_sink, matrix },
};

typedef struct world {
    float q[B * SQ * HQ * D], k[B * SK * HKV * D], v[B * SK * HKV * DV];
    double o[B * SQ * HQ * DV], lse[B * HQ * SQ];
    fa_score_operands operands;
    fa_attention a;
} world;

static void open(world *w, const char *name, uint64_t seed, int64_t hi)
{
    const fa_score_file *file = fa_score_shipped_find(name, strlen(name));
    const fa_program *program;
    fa_problem p = { .size = sizeof p, .dtype = FA_F32, .d = D, .dv = DV, .b = B, .hq = HQ, .hkv = HKV, .sq = SQ, .sk = SK };
    fa_random r = { seed };
    cr_assert(file, "%s", name);
    OK(fa_score_known_read(&program, name, file->bytes, file->size));
    fa_score_known_name(&p, program);
    for (size_t i = 0; i < sizeof w->q / sizeof *w->q; i++)
        w->q[i] = fa_random_normal(&r);
    for (size_t i = 0; i < sizeof w->k / sizeof *w->k; i++)
        w->k[i] = fa_random_normal(&r);
    for (size_t i = 0; i < sizeof w->v / sizeof *w->v; i++)
        w->v[i] = fa_random_normal(&r);
    fa_sizes sizes = fa_sizes_of(&p, 0);
    fa_score_scalars scalars = fa_score_scalars_of(program);
    if (!strcmp(name, "temperature_rows"))
        scalars.of[1] = 4;
    else if (!strncmp(name, "softcap", 7))
        scalars.of[0] = 1.5;
    else if (!strcmp(name, "chunked"))
        scalars.of[0] = 5;
    else if (!strcmp(name, "window"))
        scalars.of[0] = 3, scalars.of[1] = 1;
    OK(fa_score_operands_draw(&w->operands, &p, &sizes, &scalars, seed, true));
    w->a = (fa_attention){ .b = B,
                           .hq = HQ,
                           .hkv = HKV,
                           .sq = SQ,
                           .sk = SK,
                           .d = D,
                           .dv = DV,
                           .lo = -SQ,
                           .hi = hi,
                           .scale = 0.5f,
                           .q = w->q,
                           .k = w->k,
                           .v = w->v,
                           .program = &w->operands.data,
                           .ir = &program->ir,
                           .relative = true };
    OK(fa_oracle_exact(&w->a, w->o, w->lse));
}

static double scaled(const world *w, int64_t b, int64_t h, int64_t i, int64_t j)
{
    double s = 0;
    for (int64_t x = 0; x < D; x++)
        s += (double)w->q[((b * SQ + i) * HQ + h) * D + x] * (double)w->k[((b * SK + j) * HKV + h / (HQ / HKV)) * D + x];
    return s * 0.5;
}

/* Rows of all keys and, with hi = -6, rows that see few keys or none. */
Test(score_oracle, programs_that_ship_are_their_formulas)
{
    static world w;
    for (size_t k = 0; k < sizeof shipped / sizeof *shipped; k++)
        for (uint64_t seed = 1; seed <= 6; seed++) {
            int64_t hi = seed % 2 ? SK : -6;
            open(&w, shipped[k].name, seed, hi);
            for (int64_t row = 0; row < B * HQ * SQ; row++) {
                int64_t b = row / SQ / HQ, h = row / SQ % HQ, i = row % SQ;
                double sum = exp(shipped[k].sink(&w.operands, 0, b, h, i, 0)), o = 0;
                for (int64_t j = 0; j < SK && j <= i + hi; j++) {
                    if (shipped[k].seen(&w.operands, 0, b, h, i, j) == 0)
                        continue;
                    double p = exp(shipped[k].score(&w.operands, scaled(&w, b, h, i, j), b, h, i, j));
                    sum += p;
                    o += p * (double)w.v[((b * SK + j) * HKV + h / (HQ / HKV)) * DV + 2];
                }
                o = sum > 0 ? o / sum : 0;
                double got = w.o[((b * SQ + i) * HQ + h) * DV + 2], lse = w.lse[row];
                cr_expect(fabs(got - o) < 1e-9, "%s: O is %g, by the formula %g", shipped[k].name, got, o);
                cr_expect(sum == 0 ? lse == -INFINITY : fabs(lse - log(sum)) < 1e-9, "%s: LSE is %g, by the formula %g", shipped[k].name,
                          lse, log(sum));
            }
            fa_score_operands_close(&w.operands);
        }
}

Test(score_oracle, every_program_that_ships_stands_in_the_table)
{
    size_t n = 0;
    char name[32], doc[160];
    for (const fa_score_file *p = fa_score_shipped; p->name; p++, n++) {
        fa_score_shipped_name(name, p);
        fa_score_shipped_doc(doc, p);
        cr_expect(doc[0] && doc[0] != '-' && strlen(doc) < 110, "%s: \"%s\"", name, doc);
        bool there = false;
        for (size_t k = 0; k < sizeof shipped / sizeof *shipped; k++)
            there = there || !strcmp(shipped[k].name, name);
        cr_expect(there, "%s has no formula", name);
    }
    cr_expect_eq(n, sizeof shipped / sizeof *shipped);
    cr_expect_null(fa_score_shipped_find("soft", 4));
    cr_expect_null(fa_score_shipped_find("softcap.lua", 11));
}

/* The naive algorithm in fp32 is near, and an approximate tanh is worse by about its error. */
Test(score_oracle, the_naive_algorithm_has_programs_too)
{
    static world w;
    static float naive[B * SQ * HQ * DV];
    for (size_t k = 0; k < sizeof shipped / sizeof *shipped; k++) {
        double most[2] = { 0, 0 }, factor, off;
        open(&w, shipped[k].name, 3, SK);
        for (int approximate = 0; approximate < 2; approximate++) {
            w.a.approximate = approximate;
            OK(fa_oracle_naive(&w.a, FA_F32, FA_F32, naive, &factor));
            for (size_t i = 0; i < sizeof naive / sizeof *naive; i++)
                most[approximate] = fmax(most[approximate], fabs((double)naive[i] - w.o[i]));
        }
        OK(fa_oracle_tanh(&w.a, &off));
        bool exact = strstr(shipped[k].name, "exact"), tanh_is_approximate = strstr(shipped[k].name, "softcap") && !exact;
        cr_expect(most[0] < 1e-5, "%s: %g", shipped[k].name, most[0]);
        if (tanh_is_approximate)
            cr_expect(most[1] > 1e-5 && most[1] < 1e-2 && off > 1e-4 && off <= 1.5 * 0x1p-11, "%s: %g, %g", shipped[k].name, most[1], off);
        else /* 1.2e-7 of a cap of 1.5 */
            cr_expect(most[1] == most[0] && (exact ? off > 1.7e-7 && off < 1.9e-7 : off == 0), "%s: %g, %g", shipped[k].name, most[1], off);
        fa_score_operands_close(&w.operands);
    }
}
