/* Texts of score programs that are refused, each with its line, its column and what is said; limits; which texts are one program. */
#include "gen/score/names.h"
#include "gen/score/program.h"
#include "score_programs.h"
#include <criterion/criterion.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

/* In the body of score(s, b, h, i, j), on line 2. */
#define IN_SCORE(body) "x = f32 \"hq sk\"; d = i32 \"b sk\"; c = scalar(2)\nfunction score(s, b, h, i, j) " body " end\n"
#define REST " + c + x[h][j] + d[b][j]"

typedef struct row {
    const char *text, *says;
} row;

static const row refused[] = {
    /* words */
    { "", "1:1: there is no score, mask or sink" },
    { "function score(s, b, h, i, j) return s $ 2 end", "1:40: the byte 0x24 begins no word" },
    { "function score(s, b, h, i, j) return s != 2 and s or 0 end", "1:40: \"!\" is no sign of Lua; accepted: x ~= y, and not c" },
    { "function score(s, b, h, i, j) return s + 12ab end", "1:42: \"12a\" is no number" },
    { "function score(s, b, h, i, j) return s + 1e end", "1:42: \"1e \" is no number" },
    { "function score(s, b, h, i, j) return s + 0x end", "1:42: \"0x \" is no number" },
    { "function score(s, b, h, i, j) return s + 1.2.3 end", "1:42: \"1.2.\" is no number" },
    { "function score(s, b, h, i, j) return s + 2147483648 end", "1:42: the integer 2147483648 is beyond int32" },
    { "function score(s, b, h, i, j) return s + 3.5e38 end", "1:42: the number 3.5e38 is none of fp32" },
    { "function score(s, b, h, i, j) return s * 1e400 end", "1:42: the number 1e400 is none of fp32" },
    { "function score(s, b, h, i, j) return s + 1e-50 end", "1:42: the number 1e-50 is none of fp32" },
    { "function score(s, b, h, i, j) return s * 1e-400 end", "1:42: the number 1e-400 is none of fp32" },
    { "x = 1111111111111111111111111111111111111111111111111111111111111111111", "1:5: a number of 67 digits" },
    { "--[[ all\nof it", "1:1: the comment has no end; accepted: ]]" },
    { "--[==[ ]=] ]]", "1:1: the comment has no end; accepted: ]==]" },
    { "x = f32 \"hq", "1:9: the string has no end" },
    { "x = f32 \"hq\\n\"", "1:9: a string has an escape" },
    { "x = f32 [[hq]]", "1:9: a string in long brackets" },
    /* grammar */
    { "function score(s, b, h, i, j) return s", "1:39: the end of the text stands here; accepted: a statement or \"end\"" },
    { "function score(s, b, h, i, j) return end", "1:38: \"end\" stands here; accepted: the value to return" },
    { "function score(s, b, h, i, j) return s, b end", "1:39: \",\" stands here; accepted: \"end\": a function returns one value" },
    { "function score(s, b, h, i, j) return s return s end", "1:40: \"return\" stands here; accepted: \"end\": return ends its block" },
    { "function score(s, b, h, i, j) return (s end", "1:41: \"end\" stands here; accepted: an operator or \")\"" },
    { "function score(s, b, h, i, j) return tanh(s end", "1:45: \"end\" stands here; accepted: \",\" or \")\"" },
    { "function score(s, b, h, i, j) return s .. s end", "1:40: \"..\" stands here; accepted: an operator on numbers" },
    { "function score(s, b, h, i, j) return #s end", "1:38: \"#\" stands here; accepted: a value; lengths are" },
    { "function score(s, b, h, i, j) return {s} end", "1:38: \"{\" stands here; accepted: a value; arrays are operands" },
    { "function score(s, b, h, i, j) return nil end", "1:38: \"nil\" stands here" },
    { "function score(s, ...) return s end", "1:19: \"...\" stands here; accepted: a parameter's name" },
    { "function score(s, b, h, i, j) local f = function(x) return x end return f(s) end", "1:41: \"function\" stands here" },
    { "function score(s, b, h, i, j) function f(x) return x end return f(s) end", "1:31: a function inside another block" },
    { "function score(s, b, h, i, j) while s < 1 do s = s + 1 end return s end", "1:31: \"while\" stands here; accepted: for" },
    { "function score(s, b, h, i, j) repeat s = s + 1 until s > 1 return s end", "1:31: \"repeat\" stands here" },
    { "function score(s, b, h, i, j) for k = 1, 2 do break end return s end", "1:47: \"break\" stands here; accepted: if and return" },
    { "function score(s, b, h, i, j) goto x end", "1:31: \"goto\" stands here" },
    { "function score(s, b, h, i, j) for k in s do end return s end", "1:37: \"in\" stands here; accepted: \"=\": loops count" },
    { "function score(s, b, h, i, j) s.x = 1 return s end", "1:32: \".\" stands here; accepted: \"=\"" },
    { "function score(s, b, h, i, j) return s.x end", "1:39: \".\" stands here; accepted: an operator, or [" },
    { "function score(s, b, h, i, j) tanh(s) return s end", "1:35: \"(\" stands here; accepted: \"=\", as a statement" },
    { "function score(s, b, h, i, j) local t <const> = 1 return s end", "1:39: \"<\" stands here; accepted: \"=\": attributes" },
    { "function score(s, b, h, i, j) if s > 1 return s end end", "1:40: \"return\" stands here; accepted: an operator or \"then\"" },
    { "function score(s, b, h, i, j) if s > 1 then return s else return b else return h end end",
      "1:68: \"else\" stands here; accepted: a statement or" },
    { "function score(s, b, h, i, j) return (s)(b) end", "1:41: \"(\" stands here; accepted: \"end\"" },
    { IN_SCORE("return x[h](j)" REST), "2:42: what is called here is no name" },
    { "function score(s, b, h, i, j) return s end end", "1:44: \"end\" stands here; accepted: a statement or the end of the text" },
    { "return 1", "1:1: \"return\" stands here; accepted: a function around it" },
    /* the top of the text */
    { "x = 1\nx = 2", "2:1: x is defined a second time, after line 1" },
    { "off = 3", "1:1: off is a name of the language" },
    { "score = 3", "1:1: score is no function" },
    { "function f(s) return s end", "1:1: there is no score, mask or sink" },
    { "a, b = 1, 2", "1:1: several names" },
    { "local a", "1:7: several names, or none with a value" },
    { "if true then end", "1:1: a statement at the top of the text" },
    { "n = sq + 1", "1:8: this is no constant" },
    { "x = f32()", "1:8: f32 without a shape" },
    { "x = f32 \"hq sx\"", "1:13: the shape \"hq sx\" is not read from here on" },
    { "x = f32 \"\"", "1:9: the shape is empty" },
    { "x = f32 \"b hq sq sk b\"", "1:21: the shape" },
    { "x = f32 \"sq/0\"", "1:14: the shape" },
    { "x = f32 \"0\"", "1:11: the shape" },
    { "x = scalar(1, 'half')", "1:15: the type of a scalar is \"half\"" },
    { "x = scalar(1, 'int', 2, 3)", "1:11: the scalar x is 1 with bounds 2 to 3" },
    { "x = scalar(1.5, 'int')", "1:11: the scalar x has 1.5; accepted: integers" },
    { "x = scalar(1e39)", "1:12: the number 1e39 is none of fp32" },
    { "x = scalar(1e38 * 10)", "1:11: the scalar x has 1e+39; accepted: numbers that fp32 holds" },
    { "x = scalar()", "1:11: scalar has 0 arguments" },
    { "x = scalar(1, 'int', 0)",
      "1:11: scalar has 3 arguments; accepted: scalar(value), scalar(value, type), scalar(value, type, least, most)" },
    { "x = scalar(true)", "1:12: a truth in scalar" },
    { "x = scalar(1)\nfunction score(s, b, h, i, j) return s end", "1:1: the operand x is read nowhere" },
    { "function score(s, b, h) return s end", "1:10: score has 3 parameters; accepted: score(s, b, h, i, j)" },
    { "function mask(b, h, i, j) return j - i end", "1:10: mask returns a number; accepted: a truth" },
    { "function score(s, b, h, i, j) return s > 1 end", "1:10: score returns a truth; accepted: a number" },
    /* names, types */
    { "function score(s, b, h, i, j) return s + y end", "1:42: y is not defined" },
    { "function score(s, b, h, i, j) return s + tanh end", "1:42: tanh is a function" },
    { "function score(s, b, h, i, j) return sin(s) end", "1:38: sin is no function that is defined" },
    { "function score(s, b, h, i, j) return math.sin(s) end", "1:43: sin is no function that is defined" },
    { "function score(s, b, h, i, j) return s(1) end", "1:38: s is no function that is defined" },
    { "function score(s, b, h, i, j) return tanh(s, s) end", "1:38: tanh has 2 arguments; accepted: 1" },
    { "function f(x) return x end function score(s, b, h, i, j) return f() end", "1:65: f has 0 arguments; accepted: 1" },
    { "function f(x) return g(x) end function g(x) return f(x) end function score(s, b, h, i, j) return f(s) end", "1:52: f calls itself" },
    { "function score(s, b, h, i, j) y = 1 return s end", "1:31: y is no local name" },
    { "function score(s, b, h, i, j) local y return y end", "1:46: y has no value here on some path" },
    { "function score(s, b, h, i, j) local y if i > j then y = 1 end return y end", "1:70: y has no value here on some path" },
    { "function score(s, b, h, i, j) local y = 1 if i > j then y = true end return y end", "1:77: y has no value here on some path" },
    { "function score(s, b, h, i, j) local x, y = 1 return s end", "1:37: 2 names and 1 values" },
    { "function score(s, b, h, i, j) if i > j then return s end end", "1:10: score may end without a value" },
    { "function score(s, b, h, i, j) if i > j then return s end return j == i end", "1:58: a number on one path and a truth on the other" },
    { "function score(s, b, h, i, j) if s then return 1 end return s end", "1:34: the condition is a number, which Lua takes for true" },
    { "function score(s, b, h, i, j) return s and 1 or 2 end", "1:38: and after a number, which Lua takes for true" },
    { "function score(s, b, h, i, j) return i > j and s end", "1:44: \"c and x\" is false where c does not hold" },
    { "function score(s, b, h, i, j) return i > j or s end", "1:44: a truth on one side of or and a number on the other" },
    { "function score(s, b, h, i, j) return not s and 1 or 2 end", "1:38: not of a number with a fraction" },
    { "function score(s, b, h, i, j) return (i > j) + s end", "1:46: + has a truth on the left; accepted: a number" },
    { "function score(s, b, h, i, j) return -(i > j) end", "1:38: - of a truth" },
    { "function score(s, b, h, i, j) return s == (i > j) and 1 or 0 end", "1:40: == has a truth on one side and a number on the other" },
    { "function score(s, b, h, i, j) return i < j < h and 1 or 0 end", "1:44: < has a truth on the left" },
    { "function score(s, b, h, i, j) return tanh(i < j) end", "1:38: tanh of a truth" },
    { "function mask(b, h, i, j) return i & (j < i) end", "1:36: & has a truth on the right; accepted: integers; of truths: and, or" },
    { "function score(s, b, h, i, j) return s & 1 end", "1:40: & has a number with a fraction on the left" },
    { "function score(s, b, h, i, j) return i << j end", "1:40: << by other than a constant" },
    { "function score(s, b, h, i, j) return (j - i) >> 1 end", "1:46: >> of" },
    { "function score(s, b, h, i, j) return s ^ i end", "1:40: this power is not computed" },
    { "function score(s, b, h, i, j) return s + \"x\" end", "1:42: a string stands here" },
    { "function score(s, b, h, i, j) for k = 1, i do s = s + 1 end return s end", "1:42: a bound of for is no constant integer" },
    { "function score(s, b, h, i, j) for k = 1, 2, 0 do s = s + 1 end return s end", "1:31: for with a step of 0" },
    { "function score(s, b, h, i, j) for k = 1 do s = s + 1 end return s end", "1:31: for with 1 numbers" },
    /* operands */
    { "\n\n\nx = i32 \"b sk\"; function mask(b, h, i, j) return x[b] == 1 end", "4:50: x has 2 indices (\"b sk\"), 1 given" },
    { IN_SCORE("return x[h][j][i]" REST), "2:38: x has 2 indices (\"hq sk\"), 3 given" },
    { IN_SCORE("return x + s" REST), "2:38: x is an array of 2 indices" },
    { IN_SCORE("return c[1] + s" REST), "2:38: c is a scalar; accepted: no index" },
    { IN_SCORE("return s[1]" REST), "2:38: what is indexed here is no array" },
    { IN_SCORE("return x[h][s]" REST), "2:43: index 2 of x is a number with a fraction" },
    { IN_SCORE("return x[h][i < j]" REST), "2:45: index 2 of x is a truth" },
    { IN_SCORE("return x[h][s > 0 and 1 or 0]" REST), "2:55: index 2 of x depends on the score" },
    { IN_SCORE("x[h][j] = 1 return s" REST), "2:32: \"[\" stands here; accepted: \"=\": operands are read only" },
    { IN_SCORE("return x[h][d[b][d[b][d[b][d[b][j]]]]]" REST), "2:52: more than 3 lookups in the index of each other" },
    { "function score(s, b, h, i, j) local y = f32 \"hq\" return s end", "1:41: f32 declares an operand" },
    /* what cannot be proven */
    { "function score(s, b, h, i, j) return s + i * j end", "1:44: * may pass int32: from 0 to 1.152921502e+18" },
    { "function score(s, b, h, i, j) return s + sk + sk end", NULL },
    { "function mask(b, h, i, j) return sk + sk > i end", "1:37: + may pass int32: from 0 to 2147483648" },
    { "r = scalar(2, 'int')\nfunction mask(b, h, i, j) return (i - j) % r == 0 end",
      "2:42: %: r may be 0 (from -1073741824 to 1073741824)" },
    { "function mask(b, h, i, j) return i // (j - i) == 0 end", "1:36: //: the divisor may be 0" },
    { "function mask(b, h, i, j) return i // 0 == 0 end", "1:36: //: 0 may be 0 (from 0 to 0)" },
    { "function score(s, b, h, i, j) return floor(s) end", "1:38: floor of -inf to inf or NaN is no int32" },
};

static void expect(const row *r, const char *text, const char *says)
{
    fa_program *p;
    char wanted[256];
    fa_status st = fa_program_read(&p, "score", text, strlen(text));
    if (!says) {
        cr_assert_eq(st, FA_OK, "%s: %s", text, fa_last_error());
        fa_program_free(p);
        return;
    }
    snprintf(wanted, sizeof wanted, "score:%s", says);
    cr_expect_eq(st, FA_INVALID, "row %d: %s", (int)(r - refused), text);
    cr_expect_null(p);
    cr_expect(!strncmp(fa_last_error(), wanted, strlen(wanted)), "%s\n  says \"%s\", not \"%s\"", text, fa_last_error(), wanted);
}

Test(score_text, what_is_refused_is_told_with_line_and_column)
{
    cr_assert_geq(COUNT(refused), 100);
    for (size_t i = 0; i < COUNT(refused); i++)
        expect(&refused[i], refused[i].text, refused[i].says);
}

/* n times a piece between two others. */
static char *repeated(const char *before, const char *piece, int n, const char *after)
{
    size_t bytes = strlen(before) + strlen(piece) * (size_t)n + strlen(after) + 1;
    char *s = malloc(bytes);
    cr_assert_not_null(s);
    size_t at = (size_t)snprintf(s, bytes, "%s", before);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(s + at, bytes - at, "%s", piece);
    snprintf(s + at, bytes - at, "%s", after);
    return s;
}

Test(score_text, limits_are_looked_at_before_anything_is_built)
{
#define HEAD "function score(s, b, h, i, j) "
    static const struct {
        const char *before, *piece, *after;
        int fits, not ;
        const char *says;
    } rows[] = {
        { "--", "x", "\n" HEAD "return s end", 16384 - 45, 16384 - 44, "score: the text is 16385 bytes; accepted: at most 16384" },
        { HEAD "return ", "-(", "", 0, 17, "score:1:69: nested deeper than 32" },
        { HEAD "return ", "tanh(", "", 0, 32, "score:1:197: nested deeper than 32" },
        { HEAD "return s", " ^ 2", " end", 2, 40, "nested deeper than 32" },
        { HEAD "return s", " + 1", " end", 100, 300, "more than 128 operators in a row" },
        { HEAD, "s = s * 2 + 1 ", " return s end", 100, 130, "the program has 263 nodes; accepted: at most 256" },
        { HEAD, "s = s * 2 + 1 ", " return s end", 100, 600, "the program has more than 256 nodes" },
        { HEAD, "local x ", " return s end", 59, 60, "more than 64 names at a time" },
        { HEAD "local x", ", x", " return s end", 7, 8, "more than 8 names in a list" },
        { HEAD "return max(s", ", 1", ") end", 7, 8, "more than 8 values in a list" },
        { HEAD "if i > 1 then s = 1 ", "elseif i > 2 then s = s + 1 ", "end return s end", 31, 32, "more than 32 branches" },
        { HEAD, "if i > j then ", "", 0, 32, "nested deeper than 32" },
        { HEAD "for k = 1, ", "6", "5 do s = s + 1 end return s end", 0, 1, "for of 65 rounds; accepted: at most 64" },
        { HEAD, "for k = 1, 64 do ", "s = s * 1 end end end return s end", 0, 3, "the program takes more than 32768 steps" },
        { "", "a1 = f32 'hq' ", "", 0, 9, "a1 is defined a second time" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fa_program *p;
        char *text = repeated(rows[i].before, rows[i].piece, rows[i].fits, rows[i].after);
        if (rows[i].fits) {
            OK(fa_program_read(&p, "score", text, strlen(text)));
            fa_program_free(p);
        }
        free(text);
        text = repeated(rows[i].before, rows[i].piece, rows[i].not, rows[i].after);
        cr_assert_eq(fa_program_read(&p, "score", text, strlen(text)), FA_INVALID, "row %zu", i);
        cr_expect_not_null(strstr(fa_last_error(), rows[i].says), "row %zu says \"%s\", not \"%s\"", i, fa_last_error(), rows[i].says);
        free(text);
    }
}

Test(score_text, nine_operands_and_sixty_five_names_are_too_many)
{
    char text[2048];
    for (int wide = 0; wide < 2; wide++) {
        int n = 0, most = wide ? 65 : 9;
        for (int k = 0; k < most; k++)
            n += snprintf(text + n, sizeof text - (size_t)n, wide ? "v%d = %d\n" : "v%d = f32 'hq' -- %d\n", k, k);
        fa_program *p;
        cr_assert_eq(fa_program_read(&p, "score", text, (size_t)n), FA_INVALID);
        cr_assert_not_null(strstr(fa_last_error(), wide ? "score:65:1: more than 64 names" : "score:9:10: more than 8 operands"), "%s",
                           fa_last_error());
    }
}

/* Texts as deep as they may be, and deeper: in a thread whose stack is as small as those of small C libraries. */
static void *read_deep(void *unused)
{
    char text[FA_SCORE_TEXT_MAX];
    fa_program *p;
    size_t n = 0;
    for (int k = 0; k < 12; k++) {
        n += (size_t)snprintf(text + n, sizeof text - n, k ? "function f%d(x) return f%d(x)" : "function f%d(x) return x", k, k - 1);
        for (int i = 0; i < 120; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, " + 1");
        n += (size_t)snprintf(text + n, sizeof text - n, " end\n");
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "function score(s, b, h, i, j) return f11(s) end");
    cr_expect_eq(fa_program_read(&p, "score", text, n), FA_INVALID);
    cr_expect_not_null(strstr(fa_last_error(), "calls and expressions are nested deeper than 192"), "%s", fa_last_error());
    n = (size_t)snprintf(text, sizeof text, "function score(s, b, h, i, j) ");
    for (int k = 0; k < 28; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "if i > j + %d then ", k);
    n += (size_t)snprintf(text + n, sizeof text - n, "s = s + 1 ");
    for (int k = 0; k < 28; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "end ");
    n += (size_t)snprintf(text + n, sizeof text - n, "return s end");
    cr_expect_eq(fa_program_read(&p, "score", text, n), FA_OK, "%s", fa_last_error());
    fa_program_free(p);
    return unused;
}

Test(score_text, the_deepest_texts_take_a_small_stack)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    cr_assert_eq(pthread_attr_setstacksize(&small, 1 << 20), 0);
#else
    cr_assert_eq(pthread_attr_setstacksize(&small, 192 << 10), 0); /* 128 KiB, and the text */
#endif
    cr_assert_eq(pthread_create(&thread, &small, read_deep, NULL), 0);
    pthread_join(thread, NULL);
}

static fa_program *parsed(const char *text)
{
    fa_program *p;
    OK(fa_program_read(&p, "score", text, strlen(text)));
    return p;
}

Test(score_text, one_program_is_one_canonical_text)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        { "c = scalar(50) function score(s, b, h, i, j) return c * tanh(s / c) end",
          "-- other names, layout, order and default\ncap = scalar(30)\nlocal function f(x) return tanh(x / cap) end\n"
          "function score(q, x, y, z, w)\n  local t = f(q)\n  return t * cap\nend",
          true },
        { "c = scalar(50) function score(s, b, h, i, j) return c * tanh(s / c) end",
          "c = scalar(50) function score(s, b, h, i, j) return c * tanh_exact(s / c) end", false },
        { "c = scalar(5, 'int', 1, 9) function score(s, b, h, i, j) return s * c end",
          "c = scalar(5, 'int', 1, 10) function score(s, b, h, i, j) return s * c end", false },
        { "x = f32 'hq' function score(s, b, h, i, j) return s * x[h] end",
          "x = bf16 'hq' function score(s, b, h, i, j) return s * x[h] end", false },
        { "x = f32 'hq sk' function score(s, b, h, i, j) return s * x[h][j] end",
          "x = f32 'hq ?' function score(s, b, h, i, j) return s * x[h][j] end", false },
        { "function mask(b, h, i, j) return not (j > i) end", "function mask(b, h, i, j) if i >= j then return true end return false end",
          true },
        { "function mask(b, h, i, j) return j <= i and i - j < 8 end", "function mask(b, h, i, j) return 8 > i - j and i >= j end", true },
        { "function mask(b, h, i, j) return j <= i + 0 * h end", "function mask(b, h, i, j) return j <= i and j >= 0 end", true },
        { "function mask(b, h, i, j) return j <= i end", "function mask(b, h, i, j) return j < i end", false },
        { "function score(s, b, h, i, j) return s - s end", "function score(s, b, h, i, j) return 0.0 end", false }, /* of infinity NaN */
        { "function score(s, b, h, i, j) return s + 1 + 2 * 3 end", "function score(s, b, h, i, j) return s + 1 + 6.0 end", true },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fa_program *a = parsed(rows[i].a), *b = parsed(rows[i].b);
        cr_expect_eq(fa_program_equal(a, b), rows[i].equal, "%s\n%s\n%s\n%s", rows[i].a, a->canonical, rows[i].b, b->canonical);
        cr_assert_eq(a->id.lo == b->id.lo && a->id.hi == b->id.hi, rows[i].equal);
        fa_program_free(a);
        fa_program_free(b);
    }
}

/* A program's identity is kept in bundles and records: the canonical text of one, word by word, and its bits. */
Test(score_text, the_identity_of_a_program_stays)
{
    fa_program *p = parsed(score_programs[0].text);
    cr_assert_str_eq(p->canonical,
                     "fagen score 1\nscalar f32 c7efffffe0000000 47efffffe0000000\nf s\nf scalar 0\nf div 0 1\nf tanh 2\nf mul 3 1\n"
                     "score 4 mask -1 sink -1\n");
    fa_program_free(p);
}

Test(score_text, programs_are_read_alike_in_every_locale)
{
    static const char text[] = "function score(s, b, h, i, j) return 1.5 * s + 2.25e-3 end";
    fa_program *a = parsed(text);
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        cr_skip_test("there is no locale de_DE.UTF-8");
    fa_program *b = parsed(text);
    cr_assert_str_eq(a->canonical, b->canonical);
    fa_program_free(a);
    fa_program_free(b);
}

/* Names of the text, and strings, come into nothing that is printed. */
Test(score_text, names_are_in_no_canonical_text)
{
    for (size_t i = 0; i < SCORE_PROGRAMS; i++) {
        fa_program *p = parsed(score_programs[i].text);
        for (int k = 0; k < p->ir.operands; k++)
            if (strlen(p->ir.operand[k].name) > 2 && !fa_score_name_find(p->ir.operand[k].name, (int)strlen(p->ir.operand[k].name)))
                cr_assert_null(strstr(p->canonical, p->ir.operand[k].name), "%s: %s", score_programs[i].name, p->canonical);
        fa_program_free(p);
    }
}
