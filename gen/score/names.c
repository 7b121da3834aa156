/* names: the table. */
#include "names.h"
#include <math.h>
#include <string.h>

#define FUNCTION(text, name)                                                                       \
    {                                                                                              \
        .word = text, .kind = FA_SCORE_NAME_FUNCTION, .op = FA_SCORE_##name, .least = 1, .most = 1 \
    }
#define OTHER(text, name, from, to)                                                                 \
    {                                                                                               \
        .word = text, .kind = FA_SCORE_NAME_OTHER, .op = FA_SCORE_##name, .least = from, .most = to \
    }
#define LENGTH(text, name)                                                \
    {                                                                     \
        .word = text, .kind = FA_SCORE_NAME_LENGTH, .op = FA_SCORE_##name \
    }
#define ARRAY(text, name)                                                             \
    {                                                                                 \
        .word = text, .kind = FA_SCORE_NAME_ARRAY, .element = FA_SCORE_ELEMENT_##name \
    }
#define ROOT(text, name, n)                                                                           \
    {                                                                                                 \
        .word = text, .kind = FA_SCORE_NAME_ROOT, .root = FA_SCORE_ROOT_##name, .least = n, .most = n \
    }

static const fa_score_name names[] = {
    LENGTH("off", OFF),
    LENGTH("sq", SQ),
    LENGTH("sk", SK),
    LENGTH("group", GROUP),
    { .word = "pi", .kind = FA_SCORE_NAME_CONSTANT, .value = 3.14159265358979323846 },
    { .word = "huge", .kind = FA_SCORE_NAME_CONSTANT, .value = INFINITY },
    FUNCTION("exp", EXP),
    FUNCTION("exp2", EXP2),
    FUNCTION("log", LOG),
    FUNCTION("log2", LOG2),
    FUNCTION("tanh", TANH),
    FUNCTION("tanh_exact", TANH_EXACT),
    FUNCTION("sqrt", SQRT),
    FUNCTION("rsqrt", RSQRT),
    FUNCTION("sigmoid", SIGMOID),
    OTHER("abs", ABS, 1, 1),
    OTHER("floor", FLOOR, 1, 1),
    OTHER("ceil", NEG, 1, 1), /* -floor(-x) */
    OTHER("min", MIN, 1, FA_SCORE_LIST_MAX),
    OTHER("max", MAX, 1, FA_SCORE_LIST_MAX),
    { .word = "scalar", .kind = FA_SCORE_NAME_SCALAR, .least = 1, .most = 4 },
    ARRAY("f32", F32),
    ARRAY("bf16", BF16),
    ARRAY("f16", F16),
    ARRAY("i32", I32),
    ARRAY("i64", I64),
    ARRAY("u8", U8),
    ARRAY("bits", BITS),
    ROOT("score", SCORE, 5),
    ROOT("mask", MASK, 4),
    ROOT("sink", SINK, 3),
};

const fa_score_name *fa_score_name_find(const char *s, int n)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].word) == (size_t)n && !memcmp(names[i].word, s, (size_t)n))
            return &names[i];
    return NULL;
}

const char *fa_score_element_word(fa_score_element element)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].kind == FA_SCORE_NAME_ARRAY && names[i].element == element)
            return names[i].word;
    return "?";
}

int fa_score_element_bytes(fa_score_element element)
{
    static const int bytes[FA_SCORE_ELEMENTS] = {
        [FA_SCORE_ELEMENT_F32] = 4, [FA_SCORE_ELEMENT_BF16] = 2, [FA_SCORE_ELEMENT_F16] = 2,  [FA_SCORE_ELEMENT_I32] = 4,
        [FA_SCORE_ELEMENT_I64] = 8, [FA_SCORE_ELEMENT_U8] = 1,   [FA_SCORE_ELEMENT_BITS] = 4,
    };
    return bytes[element];
}

fa_score_type fa_score_element_type(fa_score_element element)
{
    switch (element) {
    case FA_SCORE_ELEMENT_I32:
    case FA_SCORE_ELEMENT_I64:
    case FA_SCORE_ELEMENT_U8:
        return FA_SCORE_I32;
    case FA_SCORE_ELEMENT_BITS:
        return FA_SCORE_BOOL;
    default:
        return FA_SCORE_F32;
    }
}
