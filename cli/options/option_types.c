/* option_types: the forms that values of options take. */
#include "args.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* All of text[0..n) as a decimal integer from lo to hi; with a k at its end, as 4k, 1024 times that. */
static bool integer(int64_t *out, const char *text, size_t n, int64_t lo, int64_t hi)
{
    char copy[24], *end;
    int64_t unit = n > 1 && (text[n - 1] == 'k' || text[n - 1] == 'K') ? 1024 : 1;
    n -= unit > 1;
    if (!n || n >= sizeof copy || !strchr("-0123456789", text[0]))
        return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    errno = 0;
    long long v = strtoll(copy, &end, 10);
    if (end == copy || *end || errno || v > hi / unit || v * unit < lo)
        return false;
    *out = v * unit;
    return true;
}

static bool read_int(void *to, const char *text, const cli_option *o)
{
    int64_t v;
    if (!integer(&v, text, strlen(text), o->min, o->max))
        return false;
    *(int32_t *)to = (int32_t)v;
    return true;
}

static void accepts_int(char *buf, size_t n, const cli_option *o)
{
    snprintf(buf, n, "%lld to %lld", (long long)o->min, (long long)o->max);
}

static bool find_word(int32_t *out, const char *text, size_t n, const cli_word *words)
{
    for (; words->name; words++)
        if (strlen(words->name) == n && !strncasecmp(words->name, text, n)) {
            *out = words->value;
            return true;
        }
    return false;
}

/* A list of what `one` reads. */
static bool read_list(cli_list *to, const char *text, const cli_option *o, bool words)
{
    cli_list l = { 0 };
    for (;;) {
        size_t n = strcspn(text, ",");
        int64_t v;
        int32_t w;
        if (l.n == CLI_LIST_MAX)
            return false;
        if (words ? !find_word(&w, text, n, o->words) : !integer(&v, text, n, o->min, o->max))
            return false;
        l.v[l.n++] = words ? w : (int32_t)v;
        text += n;
        if (!*text)
            break;
        text++;
    }
    *to = l;
    return true;
}

static bool read_ints(void *to, const char *text, const cli_option *o)
{
    return read_list(to, text, o, false);
}

static void accepts_ints(char *buf, size_t n, const cli_option *o)
{
    snprintf(buf, n, "%lld to %lld, or a list such as %lld,%lld", (long long)o->min, (long long)o->max, (long long)o->min,
             (long long)o->max);
}

static bool read_seed(void *to, const char *text, const cli_option *o)
{
    char *end;
    (void)o;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end || errno)
        return false;
    *(uint64_t *)to = v;
    return true;
}

static void accepts_seed(char *buf, size_t n, const cli_option *o)
{
    (void)o;
    snprintf(buf, n, "a whole number, 0 to 2^64 - 1");
}

/* A number >= 0 and the unit after it. */
static bool number(double *out, const char **unit, const char *text)
{
    char *end;
    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    errno = 0;
    *out = strtod(text, &end);
    *unit = end;
    return end != text && !errno && isfinite(*out);
}

typedef struct unit {
    const char *name;
    double factor;
} unit;

static bool scaled(double *out, const char *text, const unit *units, double most)
{
    const char *name;
    double v;
    if (!number(&v, &name, text))
        return false;
    for (; units->name; units++)
        if (!strcasecmp(units->name, name)) {
            *out = v * units->factor;
            return *out <= most;
        }
    return false;
}

static bool read_bytes(void *to, const char *text, const cli_option *o)
{
    static const unit units[] = {
        { "", 1 }, { "B", 1 }, { "K", 1024 }, { "KiB", 1024 }, { "M", 1 << 20 }, { "MiB", 1 << 20 }, { NULL, 0 }
    };
    double v;
    if (!scaled(&v, text, units, (double)o->max) || v < (double)o->min || v != floor(v))
        return false;
    *(int32_t *)to = (int32_t)v;
    return true;
}

static void accepts_bytes(char *buf, size_t n, const cli_option *o)
{
    snprintf(buf, n, "%lld to %lld bytes, as 65536 or 64KiB", (long long)o->min, (long long)o->max);
}

static bool read_seconds(void *to, const char *text, const cli_option *o)
{
    static const unit units[] = { { "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "m", 60 }, { "min", 60 }, { "h", 3600 }, { NULL, 0 } };
    double v;
    (void)o;
    if (!scaled(&v, text, units, 1e7) || v <= 0)
        return false;
    *(double *)to = v;
    return true;
}

static void accepts_seconds(char *buf, size_t n, const cli_option *o)
{
    (void)o;
    snprintf(buf, n, "a time above 0 such as 60s, 2m or 1h");
}

static bool read_size(void *to, const char *text, const cli_option *o)
{
    static const unit units[] = {
        { "B", 1 },       { "K", 1024 },      { "KiB", 1024 },          { "M", 1 << 20 },           { "MiB", 1 << 20 },
        { "G", 1 << 30 }, { "GiB", 1 << 30 }, { "T", 1099511627776.0 }, { "TiB", 1099511627776.0 }, { NULL, 0 }
    };
    double v = -1;
    (void)o;
    if (!strcmp(text, "0"))
        v = 0;
    else if (strcmp(text, "any") && (!scaled(&v, text, units, 9e15) || v != floor(v)))
        return false;
    *(int64_t *)to = (int64_t)v;
    return true;
}

static void accepts_size(char *buf, size_t n, const cli_option *o)
{
    (void)o;
    snprintf(buf, n, "any, 0, or a size with its unit, as 65536B, 100MiB or 2GiB");
}

static bool read_age(void *to, const char *text, const cli_option *o)
{
    static const unit units[] = { { "s", 1 }, { "m", 60 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 }, { "w", 604800 }, { NULL, 0 } };
    double v;
    (void)o;
    if (!scaled(&v, text, units, 1e10) || v <= 0)
        return false;
    *(double *)to = v;
    return true;
}

static void accepts_age(char *buf, size_t n, const cli_option *o)
{
    (void)o;
    snprintf(buf, n, "an age above 0 with its unit, such as 30d, 12h or 2w");
}

static bool read_real(void *to, const char *text, const cli_option *o)
{
    const char *rest;
    double v;
    (void)o;
    if (!number(&v, &rest, text) || *rest || !(v > 0) || !(v < 1e30))
        return false;
    *(float *)to = (float)v;
    return *(float *)to > 0;
}

static void accepts_real(char *buf, size_t n, const cli_option *o)
{
    (void)o;
    snprintf(buf, n, "a number above 0");
}

/* What fa_args.scale takes, but for 0. */
static bool read_scale(void *to, const char *text, const cli_option *o)
{
    const char *rest;
    double v;
    (void)o;
    if (!number(&v, &rest, text) || *rest || !isfinite((float)(v * M_LOG2E)))
        return false;
    *(float *)to = (float)v;
    return *(float *)to > 0; /* where it is too small for fp32, it is not */
}

static void accepts_scale(char *buf, size_t n, const cli_option *o)
{
    (void)o;
    snprintf(buf, n, "a number above 0 from 1.41e-45 to 2.358e38; for a negative scale negate Q or K");
}

static bool read_text(void *to, const char *text, const cli_option *o)
{
    (void)o;
    *(const char **)to = text;
    return text[0];
}

static void accepts_text(char *buf, size_t n, const cli_option *o)
{
    snprintf(buf, n, "%s, not empty", o->value);
}

static bool read_choice(void *to, const char *text, const cli_option *o)
{
    int32_t v;
    if (!find_word(&v, text, strlen(text), o->words))
        return false;
    *(int32_t *)to = v;
    return true;
}

bool cli_word_is_first(const cli_word *words, const cli_word *w)
{
    while (words < w && words->value != w->value)
        words++;
    return words == w;
}

static void accepts_choice(char *buf, size_t n, const cli_option *o)
{
    size_t at = 0;
    *buf = 0;
    for (const cli_word *w = o->words; w->name && at < n; w++)
        if (cli_word_is_first(o->words, w))
            at += (size_t)snprintf(buf + at, n - at, "%s%s", at ? ", " : "", w->name);
}

static bool read_choices(void *to, const char *text, const cli_option *o)
{
    return read_list(to, text, o, true);
}

static void accepts_choices(char *buf, size_t n, const cli_option *o)
{
    accepts_choice(buf, n, o);
    size_t at = strlen(buf);
    snprintf(buf + at, n - at, ", or a list of them");
}

/* Several words: their bits. */
static bool read_set(void *to, const char *text, const cli_option *o)
{
    int32_t all = 0;
    for (;;) {
        size_t n = strcspn(text, ",+");
        int32_t v;
        if (!find_word(&v, text, n, o->words))
            return false;
        all |= v;
        text += n;
        if (!*text)
            break;
        text++;
    }
    *(int32_t *)to = all;
    return true;
}

static void accepts_set(char *buf, size_t n, const cli_option *o)
{
    accepts_choice(buf, n, o);
    size_t at = strlen(buf);
    snprintf(buf + at, n - at, ", joined by commas or +");
}

static bool read_window(void *to, const char *text, const cli_option *o)
{
    const char *comma = strchr(text, ',');
    int64_t l, r;
    (void)o;
    if (!integer(&l, text, comma ? (size_t)(comma - text) : strlen(text), -1, INT32_MAX))
        return false;
    r = 0;
    if (comma && !integer(&r, comma + 1, strlen(comma + 1), -1, INT32_MAX))
        return false;
    ((int32_t *)to)[0] = (int32_t)l;
    ((int32_t *)to)[1] = (int32_t)r;
    return true;
}

static void accepts_window(char *buf, size_t n, const cli_option *o)
{
    (void)o;
    snprintf(buf, n, "LEFT or LEFT,RIGHT in keys, each 0 or more, or -1 for unbounded");
}

static bool read_reach(void *to, const char *text, const cli_option *o)
{
    cli_reach *r = to;
    int32_t v[2];
    if (!read_window(v, text, o))
        return false;
    *r = (cli_reach){ .given = true, .left = v[0], .right = v[1] };
    return true;
}

const cli_option_type cli_int = { read_int, accepts_int };
const cli_option_type cli_ints = { read_ints, accepts_ints };
const cli_option_type cli_seed = { read_seed, accepts_seed };
const cli_option_type cli_bytes = { read_bytes, accepts_bytes };
const cli_option_type cli_seconds = { read_seconds, accepts_seconds };
const cli_option_type cli_size = { read_size, accepts_size };
const cli_option_type cli_age = { read_age, accepts_age };
const cli_option_type cli_real = { read_real, accepts_real };
const cli_option_type cli_scale = { read_scale, accepts_scale };
const cli_option_type cli_text = { read_text, accepts_text };
const cli_option_type cli_choice = { read_choice, accepts_choice };
const cli_option_type cli_choices = { read_choices, accepts_choices };
const cli_option_type cli_set = { read_set, accepts_set };
const cli_option_type cli_window = { read_window, accepts_window };
const cli_option_type cli_reach_type = { read_reach, accepts_window };

bool cli_list_combine(const cli_list *const *lists, int n, size_t i, int32_t *out)
{
    while (n-- > 0) {
        size_t length = lists[n]->n ? (size_t)lists[n]->n : 1;
        out[n] = lists[n]->n ? lists[n]->v[i % length] : 0;
        i /= length;
    }
    return i == 0;
}
