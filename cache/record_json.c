/* record_json: one record as one line of JSON. */
#include "flat_json.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "record.h"
#include "root.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const outcomes[] = { "ok", "constraint", "compile", "launch", "wrong", "timeout" };
static const char *const hows[] = { "model", "measured" };
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* The members in the order of the line. TOLD: what an older line does not have, and a line of the model does not need, is left out where
 * it is 0; so is a MARK that is false. SCORE is the text of the problem's score program, so that another process can know it. */
typedef enum kind { TEXT, INT, REAL, TOLD_INT, TOLD_REAL, SCORE, PROBLEM, CONFIG, OUTCOME, HOW, VERIFIED, QUALITY, SOURCE, MARK } kind;
/* clang-format off */
#define AT(name) #name, offsetof(fa_record, name), sizeof(((fa_record *)0)->name)
static const struct {
    kind kind;
    const char *name;
    size_t at, size;
} members[] = {
    { SCORE, "score", 0, 0 }, { PROBLEM, AT(problem) }, { CONFIG, AT(config) }, { OUTCOME, AT(outcome) }, { HOW, AT(how) }, { REAL, AT(seconds) }, { REAL, AT(spread) },
    { INT, AT(count) }, { INT, AT(regs) }, { INT, AT(spills) }, { INT, AT(smem) },
    { TOLD_REAL, AT(low) }, { TOLD_REAL, AT(high) }, { TOLD_REAL, AT(warm) }, { TOLD_INT, AT(clock_mhz) }, { TOLD_INT, AT(temperature) },
    { VERIFIED, AT(verified) }, { QUALITY, AT(quality) }, { MARK, AT(imported) },
    { TEXT, AT(chip) }, { TEXT, AT(arch) }, { TEXT, AT(why) }, { TEXT, AT(version) }, { TEXT, AT(compiler) }, { TEXT, AT(driver) }, { TEXT, AT(date) },
    { SOURCE, AT(source) },
};
/* clang-format on */
#define MEMBERS COUNT(members)

const char *fa_outcome_name(fa_outcome o)
{
    return (int)o >= 0 && (int)o < COUNT(outcomes) ? outcomes[o] : "?";
}

/* ---- writing ---- */

/* Text of another program (a device name, a compiler's message) may not be UTF-8, which JSON must be. */
static json_t *text_json(const char *s, size_t size)
{
    size_t n = strnlen(s, size);
    json_t *j = json_stringn(s, n);
    if (j)
        return j;
    char clean[256]; /* no member is as long: see members */
    _Static_assert(sizeof(((fa_record *)0)->why) < sizeof clean && sizeof(((fa_record *)0)->chip) < sizeof clean, "room");
    for (size_t i = 0; i < n; i++)
        clean[i] = (unsigned char)s[i] < 0x80 ? s[i] : '?';
    return json_stringn(clean, n);
}

/* The member as JSON; NULL with *left_out where it is not told, else where it has no form, or memory ran out. */
static json_t *member_json(const fa_record *r, int m, bool *left_out)
{
    char text[512];
    int32_t v;
    double x;
    const char *at = (const char *)r + members[m].at;
    *left_out = false;
    switch (members[m].kind) {
    case SCORE:
        *left_out = !fa_score_known(&r->problem);
        return *left_out ? NULL : json_string(fa_score_known(&r->problem)->source);
    case PROBLEM:
        return fa_problem_print(text, sizeof text, &r->problem) < FA_PROBLEM_TEXT ? json_string(text) : NULL;
    case CONFIG:
        return fa_config_print(text, sizeof text, &r->config) < (int)sizeof text ? json_string(text) : NULL;
    case OUTCOME:
        return (unsigned)r->outcome < (unsigned)COUNT(outcomes) ? json_string(outcomes[r->outcome]) : NULL;
    case HOW:
        return (unsigned)r->how < (unsigned)COUNT(hows) ? json_string(hows[r->how]) : NULL;
    case VERIFIED:
        return json_boolean(r->verified);
    case MARK:
        *left_out = !*(const bool *)at;
        return *left_out ? NULL : json_true();
    case QUALITY:
        *left_out = r->quality == FA_QUALITY_UNTOLD;
        return *left_out ? NULL : json_string(fa_quality_name(r->quality));
    case SOURCE:
        fa_key_print(text, (fa_key){ r->source[0], r->source[1] });
        return json_string(text);
    case TEXT:
        return text_json(at, members[m].size);
    case INT:
    case TOLD_INT:
        memcpy(&v, at, sizeof v);
        *left_out = members[m].kind == TOLD_INT && v == 0;
        return *left_out ? NULL : json_integer(v);
    case REAL:
    case TOLD_REAL:
        memcpy(&x, at, sizeof x);
        *left_out = members[m].kind == TOLD_REAL && x == 0;
        return *left_out ? NULL : json_real(isfinite(x) ? x : 0); /* JSON has no NaN: a time that is none is 0, which never wins */
    }
    return NULL;
}

bool fa_record_to_json(const fa_record *r, fa_text *out)
{
    json_t *o = json_object();
    bool ok = o != NULL, left_out;
    for (int m = 0; ok && m < MEMBERS; m++) {
        json_t *j = member_json(r, m, &left_out);
        ok = left_out || json_object_set_new(o, members[m].name, j) == 0;
    }
    char *s = ok ? json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(o);
    if (!s)
        return false;
    fa_text_str(out, s);
    free(s);
    return !out->oom;
}

/* ---- reading ---- */

/* The member of a name, looked for from `from` on, since lines have them in order; MEMBERS: another's. */
static int member_of(const char *name, size_t n, int from)
{
    for (int i = 0; i < MEMBERS; i++) {
        int m = (from + i) % MEMBERS;
        if (!strncmp(members[m].name, name, n) && !members[m].name[n])
            return m;
    }
    return MEMBERS;
}

/* A line as this version writes it. False: of another version, or by another program; or it is no record at all. */
static bool read_flat(fa_flat_value v[MEMBERS], const char *line)
{
    const char *p = line, *name;
    size_t n;
    fa_flat_value one;
    int m = -1;
    for (bool more = *p == '{'; more; more = *p != 0) {
        if (!fa_flat_next(&p, &name, &n, &one) || (m = member_of(name, n, m + 1)) == MEMBERS || v[m].kind != FA_FLAT_ABSENT)
            return false;
        v[m] = one;
    }
    return p != line;
}

/* Any line; the texts are those of *o, which the caller frees. */
static void read_whole(fa_flat_value v[MEMBERS], json_t *o)
{
    for (int m = 0; m < MEMBERS; m++) {
        const json_t *j = json_object_get(o, members[m].name);
        v[m] = (fa_flat_value){ .kind = FA_FLAT_OTHER, .number = json_number_value(j), .integer = json_integer_value(j) };
        if (!j)
            v[m].kind = FA_FLAT_ABSENT;
        else if (json_is_string(j)) {
            v[m].kind = FA_FLAT_TEXT;
            v[m].text = json_string_value(j);
            v[m].n = strlen(v[m].text);
        } else if (json_is_true(j))
            v[m].kind = FA_FLAT_TRUE;
        else if (json_is_integer(j))
            v[m].kind = FA_FLAT_INTEGER;
        else if (json_is_real(j))
            v[m].kind = FA_FLAT_REAL;
    }
}

static int index_of(const char *const *names, int n, const char *s)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], s) == 0)
            return i;
    return -1;
}

/* Lines of one file are of few problems, mostly one after the other. */
static bool read_problem(fa_problem *out, const char *text, const fa_flat_value *score, fa_record_memo *memo)
{
    if (memo && memo->text[0] && !strcmp(memo->text, text)) {
        *out = memo->problem;
        return true;
    }
    bool told = score->kind == FA_FLAT_TEXT;
    bool ok = fa_problem_parse_scored(out, text, told ? score->text : NULL, told ? score->n : 0) == FA_OK;
    if (ok && memo && strlen(text) < sizeof memo->text) {
        strcpy(memo->text, text);
        memo->problem = *out;
    }
    return ok;
}

/* What has no number, or another type, is 0. False where the record is none then. */
static bool take(fa_record *r, int m, const fa_flat_value *v, const fa_flat_value *score, fa_record_memo *memo)
{
    char text[1024], *at = (char *)r + members[m].at;
    kind k = members[m].kind;
    int32_t i = v->kind == FA_FLAT_INTEGER ? (int32_t)v->integer : 0;
    double x = v->kind == FA_FLAT_INTEGER || v->kind == FA_FLAT_REAL ? v->number : 0;
    bool is_text = v->kind == FA_FLAT_TEXT;
    text[0] = 0;
    if (is_text && k >= PROBLEM && v->n < sizeof text) {
        memcpy(text, v->text, v->n);
        text[v->n] = 0;
    }
    fa_key key = { 0, 0 };
    int index;
    switch (k) {
    case SCORE:
        return true;
    case TEXT:
        if (is_text)
            memcpy(at, v->text, v->n < members[m].size - 1 ? v->n : members[m].size - 1);
        return true;
    case INT:
    case TOLD_INT:
        memcpy(at, &i, sizeof i);
        return true;
    case REAL:
    case TOLD_REAL:
        memcpy(at, &x, sizeof x);
        return true;
    case PROBLEM:
        return is_text && read_problem(&r->problem, text, score, memo);
    case CONFIG:
        return is_text && fa_config_parse(&r->config, text) == FA_OK;
    case OUTCOME:
        index = index_of(outcomes, COUNT(outcomes), text);
        r->outcome = (fa_outcome)(index < 0 ? 0 : index);
        return index >= 0;
    case HOW:
        index = index_of(hows, COUNT(hows), text);
        r->how = (fa_how)(index < 0 ? 0 : index);
        return index >= 0;
    case VERIFIED: /* outcome and how stand before it */
        r->verified = v->kind == FA_FLAT_ABSENT ? r->how == FA_MEASURED && r->outcome == FA_RAN : v->kind == FA_FLAT_TRUE;
        return true;
    case MARK:
        *(bool *)at = v->kind == FA_FLAT_TRUE;
        return true;
    case QUALITY:
        r->quality = fa_quality_of(text);
        return true;
    case SOURCE:
        if (is_text && !fa_key_parse(&key, text))
            return false;
        r->source[0] = key.lo;
        r->source[1] = key.hi;
        return true;
    }
    return false;
}

bool fa_record_read(fa_record *out, const char *line, fa_record_memo *memo)
{
    fa_flat_value v[MEMBERS] = { { .kind = FA_FLAT_ABSENT } };
    json_t *o = NULL;
    fa_record r;
    bool ok = true;
    if (!read_flat(v, line)) {
        o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        read_whole(v, o);
        ok = json_is_object(o);
    }
    memset(&r, 0, sizeof r);
    for (int m = 0; ok && m < MEMBERS; m++)
        ok = take(&r, m, &v[m], &v[0], memo);
    json_decref(o);
    if (ok)
        *out = r;
    return ok;
}

bool fa_record_from_json(fa_record *out, const char *line)
{
    return fa_record_read(out, line, NULL);
}
