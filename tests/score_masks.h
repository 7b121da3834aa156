/* score_masks: texts of masks that a seed makes: comparisons of whatever the language computes of queries, keys and arrays. */
#ifndef FA_TESTS_SCORE_MASKS_H
#define FA_TESTS_SCORE_MASKS_H
#include "score_world.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Numbers of documents rise; the others are what score_element() draws. What is declared is read: its name with "[", or without. */
static const struct {
    const char *reads, *text;
} score_mask_operands[] = { { "doc[", "doc = i32 'b sk'\n" },
                            { "n[", "n = i32 'b'\n" },
                            { "c", "c = scalar(7, 'int', 1, 60)\n" },
                            { "m[", "m = u8 'b sq sk'\n" },
                            { "anc[", "anc = bits 'b sq sq'\n" },
                            { "g[", "g = i32 'hq sk'\n" },
                            { "x[", "x = f32 'sk'\n" },
                            { "blk[", "blk = u8 'hq sq/16 sk/16'\n" } };

typedef struct mask_text {
    char s[2048];
    size_t n;
    uint64_t state;
} mask_text;

static inline void mask_say(mask_text *t, const char *s)
{
    t->n += (size_t)snprintf(t->s + t->n, sizeof t->s - t->n, "%s", s);
    if (t->n >= sizeof t->s)
        t->n = sizeof t->s - 1;
}

static inline int mask_pick(mask_text *t, int n)
{
    return (int)score_below(&t->state, n);
}

/* %a a number, %t a truth, %f one with a fraction, %k a constant from 1 on. */
static inline void mask_form(mask_text *t, const char *form, int depth);

static inline void mask_number(mask_text *t, int depth)
{
    static const char *const leaves[] = { "i", "j",    "i",         "j",         "i + off", "%k",      "c",
                                          "h", "n[b]", "doc[b][i]", "doc[b][j]", "g[h][i]", "g[h][j]", "m[b][i][j]" };
    static const char *const forms[] = {
        "(%a + %a)",          "(%a - %a)",       "%a // %k",     "%a % %k",        "min(%a, %a)", "max(%a, %a)", "abs(%a)",
        "(%a - j)",           "(i - %a)",        "j // c",       "(i + off) // c", "j % c",       "2 * %a",      "(%t and %a or %a)",
        "%a // max(n[b], 3)", "doc[b][i] // %k", "g[h][j] % %k", "(%a & 15)",      "-%a",         "floor(x[j])", "doc[b][j // 2]"
    };
    mask_form(t, depth <= 0 ? leaves[mask_pick(t, 14)] : forms[mask_pick(t, 21)], depth - 1);
}

static inline void mask_fraction(mask_text *t, int depth)
{
    static const char *const forms[] = { "x[i]",          "x[j]",      "x[i] * %a",       "(x[i] + x[j])", "0.5 * %a",
                                         "sqrt(abs(%a))", "log(x[j])", "(x[j] - %a / 3)", "exp(x[i])",     "tanh_exact(x[j])" };
    mask_form(t, forms[mask_pick(t, 10)], depth - 1);
}

static inline void mask_truth(mask_text *t, int depth)
{
    static const char *const leaves[] = { "%a <= %a",
                                          "%a < %a",
                                          "%a == %a",
                                          "%a ~= %a",
                                          "j <= %a",
                                          "%a <= j",
                                          "doc[b][i] == doc[b][j]",
                                          "g[h][i] == g[h][j]",
                                          "m[b][i][j] ~= 0",
                                          "anc[b][i][j]",
                                          "blk[h][i // 16][j // 16] ~= 0",
                                          "(i + off) // c == j // c",
                                          "%f < %f",
                                          "%a <= i",
                                          "j < n[b]",
                                          "abs(i - j) <= %k",
                                          "max(i, j) <= %a",
                                          "anc[b][i][j - off]" };
    static const char *const forms[] = { "(%t and %t)", "(%t or %t)", "not (%t)", "(%t and %t)", "((%t and %t) or %t)" };
    mask_form(t, depth <= 0 || mask_pick(t, 3) == 0 ? leaves[mask_pick(t, 18)] : forms[mask_pick(t, 5)], depth - 1);
}

static inline void mask_form(mask_text *t, const char *form, int depth)
{
    for (const char *f = form; *f; f++) {
        char one[16] = { *f, 0 };
        if (*f == '%' && (f[1] == 'a' || f[1] == 't' || f[1] == 'f' || f[1] == 'k')) {
            f++;
            if (*f == 'a')
                mask_number(t, depth);
            else if (*f == 't')
                mask_truth(t, depth);
            else if (*f == 'f')
                mask_fraction(t, depth);
            else {
                snprintf(one, sizeof one, "%d", 1 + mask_pick(t, 40));
                mask_say(t, one);
            }
        } else
            mask_say(t, one);
    }
}

/* Whether the name stands there, and no letter before it; of "c" none after it. */
static inline bool mask_reads(const char *body, const char *name)
{
    for (const char *at = body; (at = strstr(at, name)); at++)
        if (!(at > body && isalpha((unsigned char)at[-1])) && (name[1] || !(isalpha((unsigned char)at[1]) || at[1] == '[')))
            return true;
    return false;
}

/* Whether it could be read: integers may pass 32 bits. */
static inline fa_program *score_mask_draw(mask_text *t, uint64_t seed)
{
    fa_program *p;
    char body[1024];
    t->n = 0;
    t->state = seed;
    mask_truth(t, 2);
    snprintf(body, sizeof body, "function mask(b, h, i, j) return %.900s end\n", t->s);
    t->n = 0;
    for (size_t k = 0; k < sizeof score_mask_operands / sizeof *score_mask_operands; k++)
        if (mask_reads(body + strlen("function mask(b, h, i, j) return "), score_mask_operands[k].reads))
            mask_say(t, score_mask_operands[k].text);
    mask_say(t, body);
    return fa_program_read(&p, "mask", t->s, t->n) == FA_OK ? p : NULL;
}

static inline double score_mask_element(void *user, int operand, const int64_t *index)
{
    const score_world *w = user;
    const fa_score_operand *o = &w->ir->operand[operand];
    if (!strcmp(o->name, "ids")) /* in no order, many alike beside each other */
        return (double)((index[1] / 64 * 7 + index[0]) % 13);
    if (!strcmp(o->name, "flags")) { /* alike in a block, but for one element of some */
        int64_t block = index[0] / 64 * 5 + index[1] / 64 * 3;
        bool other = block % 3 && index[0] % 64 == 11 && index[1] % 64 == block * 13 % 64;
        return (double)((block % 4 > 1) != other);
    }
    if (!strcmp(o->name, "doc")) /* of each sequence its own */
        return (double)((index[o->rank - 1] + (int64_t)(w->salt % 50) + (o->rank > 1 ? 17 * index[0] : 0)) / 40);
    if (o->element == FA_SCORE_ELEMENT_U8 || o->element == FA_SCORE_ELEMENT_BITS) { /* in blocks, few of them mixed */
        int64_t at[FA_SCORE_RANK_MAX] = { 0 };
        for (int k = 0; k < o->rank; k++)
            at[k] = index[k] / (o->rank - k <= 2 && o->rank == 3 && o->element == FA_SCORE_ELEMENT_BITS ? 48 : 1);
        return (double)(score_element(user, operand, at) > 0);
    }
    return score_element(user, operand, index);
}
#endif
