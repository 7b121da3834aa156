/* shape: a sum of lengths, multiples and quotients of them, and numbers. */
#include "shape.h"
#include <stdio.h>
#include <string.h>

static const char *const lengths[] = { "b", "hq", "hkv", "sq", "sk", "tq", "tk" };
_Static_assert(sizeof lengths / sizeof *lengths == FA_SCORE_LENGTHS, "a word for each");
#define ACCEPTED \
    "accepted: 1 to 4 extents, blanks between: b, hq, hkv, sq, sk, tq, tk, numbers, sums such as 2*sk-1, quotients such as sq/128, or ?"
#define NUMBER_MAX (1 << 20)

typedef struct reader {
    const char *s, *end;
} reader;

static bool digits(reader *r, int32_t *out)
{
    const char *from = r->s;
    for (*out = 0; r->s < r->end && *r->s >= '0' && *r->s <= '9' && *out <= NUMBER_MAX; r->s++)
        *out = *out * 10 + (*r->s - '0');
    return r->s > from && *out <= NUMBER_MAX;
}

static int word(reader *r)
{
    size_t n = 0;
    while (r->s + n < r->end && r->s[n] >= 'a' && r->s[n] <= 'z')
        n++;
    for (int i = 0; i < FA_SCORE_LENGTHS; i++)
        if (strlen(lengths[i]) == n && !memcmp(lengths[i], r->s, n)) {
            r->s += n;
            return i;
        }
    return -1;
}

/* "12", "sk", "2*sk", "sk/128"; each length once in an extent. */
static bool term(fa_score_extent *e, reader *r, int sign)
{
    int32_t times = 1, divisor = 1;
    bool number = r->s < r->end && *r->s >= '0' && *r->s <= '9';
    if (number && (!digits(r, &times) || r->s == r->end || *r->s != '*')) {
        e->more += sign * times;
        return times <= NUMBER_MAX && e->more <= NUMBER_MAX && e->more >= -NUMBER_MAX;
    }
    r->s += number;
    int length = word(r);
    if (length < 0 || e->times[length])
        return false;
    if (r->s < r->end && *r->s == '/') {
        r->s++;
        if (!digits(r, &divisor) || divisor == 0)
            return false;
    }
    e->times[length] = sign * times;
    e->divisor[length] = divisor;
    return times > 0 && times <= 1024;
}

static bool extent(fa_score_extent *e, reader *r)
{
    memset(e, 0, sizeof *e);
    if (r->s < r->end && *r->s == '?') {
        r->s++;
        e->any = true;
        return true;
    }
    for (int sign = 1; term(e, r, sign);) {
        if (r->s == r->end || *r->s == ' ') {
            bool any = e->more > 0;
            for (int i = 0; i < FA_SCORE_LENGTHS; i++)
                any = any || e->times[i] > 0;
            return any;
        }
        if (*r->s != '+' && *r->s != '-')
            return false;
        sign = *r->s++ == '-' ? -1 : 1;
    }
    return false;
}

fa_status fa_score_shape_read(fa_score_operand *out, const char *name, const fa_score_token *text)
{
    reader r = { text->s, text->s + text->n };
    for (out->rank = 0;; out->rank++) {
        while (r.s < r.end && *r.s == ' ')
            r.s++;
        if (r.s == r.end)
            break;
        if (out->rank == FA_SCORE_RANK_MAX || !extent(&out->extent[out->rank], &r) || (r.s < r.end && *r.s != ' ')) {
            fa_score_place at = { text->at.line, text->at.column + 1 + (int32_t)(r.s - text->s) };
            return fa_score_fail(name, at, "the shape \"%.*s\" is not read from here on; " ACCEPTED, text->n < 80 ? text->n : 80, text->s);
        }
    }
    return out->rank ? FA_OK : fa_score_fail(name, text->at, "the shape is empty; " ACCEPTED);
}

static int print(char *buf, size_t n, const fa_score_extent *e)
{
    char text[160];
    int at = 0;
    if (e->any)
        return snprintf(buf, n, "?");
    text[0] = 0;
    for (int i = 0; i < FA_SCORE_LENGTHS; i++)
        if (e->times[i]) {
            at += snprintf(text + at, sizeof text - (size_t)at, e->times[i] < 0 ? "-" : at ? "+" : "");
            if (e->times[i] != 1 && e->times[i] != -1)
                at += snprintf(text + at, sizeof text - (size_t)at, "%d*", e->times[i] < 0 ? -e->times[i] : e->times[i]);
            at += snprintf(text + at, sizeof text - (size_t)at, "%s", lengths[i]);
            if (e->divisor[i] > 1)
                at += snprintf(text + at, sizeof text - (size_t)at, "/%d", e->divisor[i]);
        }
    if (e->more || !at)
        snprintf(text + at, sizeof text - (size_t)at, at && e->more > 0 ? "+%d" : "%d", e->more);
    return snprintf(buf, n, "%s", text);
}

int fa_score_shape_print(char *buf, size_t n, const fa_score_operand *o)
{
    int at = 0;
    if (n)
        buf[0] = 0;
    for (int k = 0; k < o->rank; k++) {
        char one[160];
        print(one, sizeof one, &o->extent[k]);
        at += snprintf((size_t)at < n ? buf + at : NULL, (size_t)at < n ? n - (size_t)at : 0, "%s%s", k ? " " : "", one);
    }
    return at;
}

int64_t fa_score_shape_extent(const fa_score_extent *e, const int64_t lengths_of[FA_SCORE_LENGTHS])
{
    int64_t n = e->more;
    for (int i = 0; i < FA_SCORE_LENGTHS && !e->any; i++)
        if (e->times[i])
            n += e->times[i] * ((lengths_of[i] + e->divisor[i] - 1) / e->divisor[i]);
    return e->any ? -1 : n;
}
