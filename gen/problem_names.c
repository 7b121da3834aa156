/* problem_names: the names of types, masks and features. */
#include "format.h"
#include "problem.h"
#include <string.h>

static const struct {
    int dtype;
    const char *name, *alias[2];
} dtypes[] = {
    { FA_F16, "fp16", { "half", "float16" } },
    { FA_BF16, "bf16", { "bfloat16", NULL } },
    { FA_TF32, "tf32", { NULL, NULL } },
    { FA_F32, "fp32", { "float32", NULL } },
};

/* FIRST and X(fa_feature, name) */
#define FEATURES(FIRST, X)                \
    FIRST(LENGTHS, "lengths")             \
    X(PAGES, "pages")                     \
    X(BATCH_INVARIANT, "batch-invariant") \
    X(DETERMINISTIC, "deterministic")     \
    X(DROPOUT, "dropout")                 \
    X(LSE_STRIDES, "lse-strides")         \
    X(NO_WORKSPACE, "no-workspace")       \
    X(SCORE, "score")                     \
    X(ORIGINS, "origins")                 \
    X(ACCUMULATE, "accumulate")           \
    X(V_IN_K, "v-in-k")                   \
    X(V_COLUMNS, "v-columns")             \
    X(SLOTS, "slots")                     \
    X(POSITIONS, "positions")             \
    X(POSITIONS64, "positions64")         \
    X(ROTARY_PAIRS, "rotary-pairs")       \
    X(HADAMARD_K, "hadamard-k")           \
    X(HADAMARD_V, "hadamard-v")           \
    X(ROTARY, "rotary")                   \
    X(SCORE_ANYWHERE, "score-anywhere")   \
    X(SCORE_COLUMNS, "score-columns")

static const struct {
    int32_t bit;
    const char *name;
} features[] = {
#define X(feature, name) { FA_FEATURE_##feature, name },
    FEATURES(X, X)
#undef X
};
static const char *const masks[] = { "none", "causal", "window" }; /* indexed by fa_mask */

#define COUNT(a) (sizeof(a) / sizeof *(a))

const char *fa_dtype_name(int dtype)
{
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return fa_format_of(dtype) ? fa_format_of(dtype)->name : "?";
}

bool fa_dtype_parse(int *out, const char *s)
{
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        const char *const *alias = dtypes[i].alias;
        if (!strcmp(s, dtypes[i].name) || (alias[0] && !strcmp(s, alias[0])) || (alias[1] && !strcmp(s, alias[1]))) {
            *out = dtypes[i].dtype;
            return true;
        }
    }
    const fa_format *f;
    for (size_t i = 0; (f = fa_format_row(i)); i++)
        if (!strcmp(s, f->name)) {
            *out = f->dtype;
            return true;
        }
    return false;
}

int fa_dtype_bytes(int dtype) /* of every operand of every launch: by index, not by search */
{
    static const int bytes[] = { [FA_F16] = 2, [FA_BF16] = 2, [FA_TF32] = 4, [FA_F32] = 4, [FA_E4M3] = 1, [FA_E5M2] = 1, [FA_S8] = 1 };
    return dtype >= 0 && (size_t)dtype < COUNT(bytes) ? bytes[dtype] : 0;
}

const char *fa_mask_name(int mask)
{
    return mask >= 0 && (size_t)mask < COUNT(masks) ? masks[mask] : "?";
}

bool fa_mask_parse(int *out, const char *s)
{
    for (size_t i = 0; i < COUNT(masks); i++)
        if (!strcmp(s, masks[i])) {
            *out = (int)i;
            return true;
        }
    return false;
}

const char *fa_feature_name(int32_t bit)
{
    for (size_t i = 0; i < COUNT(features); i++)
        if (features[i].bit == bit)
            return features[i].name;
    return "?";
}

/* The fa_feature of a name of n letters; 0 = none. */
static int32_t feature_of(const char *s, size_t n)
{
    for (size_t i = 0; i < COUNT(features); i++)
        if (strlen(features[i].name) == n && !memcmp(s, features[i].name, n))
            return features[i].bit;
    return 0;
}

bool fa_features_parse(int32_t *out, const char *text)
{
    *out = 0;
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "+");
        int32_t bit = feature_of(s, n);
        if (!bit)
            return false;
        *out |= bit;
        s += n + (s[n] == '+');
    }
    return true;
}

const char *fa_feature_names(void)
{
#define FIRST(feature, name) name
#define X(feature, name) ", " name
    return FEATURES(FIRST, X);
#undef FIRST
#undef X
}
