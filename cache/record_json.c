/* record_json: one record as one line of JSON. */
#include "gen/problem.h"
#include "record.h"
#include "root.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const outcomes[] = { "ok", "constraint", "compile", "launch", "wrong", "timeout" };
static const char *const hows[] = { "model", "measured" };
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* The members that are plain text or small integers, in the order of the line. */
/* clang-format off */
#define TEXT(name) { #name, offsetof(fa_record, name), sizeof(((fa_record *)0)->name) }
/* clang-format on */
static const struct {
    const char *name;
    size_t at, size;
} texts[] = { TEXT(chip), TEXT(arch), TEXT(why), TEXT(version), TEXT(compiler), TEXT(driver), TEXT(date) };
static const struct {
    const char *name;
    size_t at;
} ints[] = { { "count", offsetof(fa_record, count) },
             { "regs", offsetof(fa_record, regs) },
             { "spills", offsetof(fa_record, spills) },
             { "smem", offsetof(fa_record, smem) } };
/* What an older line does not have, and a line of the model does not need: left out where it is 0. */
static const struct {
    const char *name;
    size_t at;
} told_ints[] = { { "clock_mhz", offsetof(fa_record, clock_mhz) }, { "temperature", offsetof(fa_record, temperature) } },
  told_reals[] = { { "low", offsetof(fa_record, low) }, { "high", offsetof(fa_record, high) }, { "warm", offsetof(fa_record, warm) } };

const char *fa_outcome_name(fa_outcome o)
{
    return (int)o >= 0 && (int)o < COUNT(outcomes) ? outcomes[o] : "?";
}

static int index_of(const char *const *names, int n, const char *s)
{
    for (int i = 0; s && i < n; i++)
        if (strcmp(names[i], s) == 0)
            return i;
    return -1;
}

/* Text of another program (a device name, a compiler's message) may not be UTF-8, which JSON must be. */
static json_t *text_json(const char *s, size_t size)
{
    size_t n = strnlen(s, size);
    json_t *j = json_stringn(s, n);
    if (j)
        return j;
    char clean[256]; /* no member is as long: see texts */
    _Static_assert(sizeof(((fa_record *)0)->why) < sizeof clean && sizeof(((fa_record *)0)->chip) < sizeof clean, "room");
    for (size_t i = 0; i < n; i++)
        clean[i] = (unsigned char)s[i] < 0x80 ? s[i] : '?';
    return json_stringn(clean, n);
}

/* JSON has no NaN: a time that is none is 0, which never wins. */
static json_t *number(double x)
{
    return json_real(isfinite(x) ? x : 0);
}

bool fa_record_to_json(const fa_record *r, fa_text *out)
{
    char problem[256], config[512], source[33];
    if (fa_problem_print(problem, sizeof problem, &r->problem) >= (int)sizeof problem ||
        fa_config_print(config, sizeof config, &r->config) >= (int)sizeof config || (unsigned)r->outcome >= (unsigned)COUNT(outcomes) ||
        (unsigned)r->how >= (unsigned)COUNT(hows))
        return false;
    fa_key_print(source, (fa_key){ r->source[0], r->source[1] });
    json_t *o = json_object();
    bool ok = o && json_object_set_new(o, "problem", json_string(problem)) == 0 &&
              json_object_set_new(o, "config", json_string(config)) == 0 &&
              json_object_set_new(o, "outcome", json_string(outcomes[r->outcome])) == 0 &&
              json_object_set_new(o, "how", json_string(hows[r->how])) == 0 && json_object_set_new(o, "seconds", number(r->seconds)) == 0 &&
              json_object_set_new(o, "spread", number(r->spread)) == 0;
    for (int i = 0; ok && i < COUNT(ints); i++) {
        int32_t v;
        memcpy(&v, (const char *)r + ints[i].at, sizeof v);
        ok = json_object_set_new(o, ints[i].name, json_integer(v)) == 0;
    }
    for (int i = 0; ok && i < COUNT(told_reals); i++) {
        double v;
        memcpy(&v, (const char *)r + told_reals[i].at, sizeof v);
        ok = v == 0 || json_object_set_new(o, told_reals[i].name, number(v)) == 0;
    }
    for (int i = 0; ok && i < COUNT(told_ints); i++) {
        int32_t v;
        memcpy(&v, (const char *)r + told_ints[i].at, sizeof v);
        ok = v == 0 || json_object_set_new(o, told_ints[i].name, json_integer(v)) == 0;
    }
    ok = ok && json_object_set_new(o, "verified", json_boolean(r->verified)) == 0 &&
         (r->quality == FA_QUALITY_UNTOLD || json_object_set_new(o, "quality", json_string(fa_quality_name(r->quality))) == 0);
    for (int i = 0; ok && i < COUNT(texts); i++)
        ok = json_object_set_new(o, texts[i].name, text_json((const char *)r + texts[i].at, texts[i].size)) == 0;
    ok = ok && json_object_set_new(o, "source", json_string(source)) == 0;
    char *s = ok ? json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(o);
    if (!s)
        return false;
    fa_text_str(out, s);
    free(s);
    return !out->oom;
}

bool fa_record_from_json(fa_record *out, const char *line)
{
    fa_record r;
    memset(&r, 0, sizeof r);
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *problem = json_string_value(json_object_get(o, "problem"));
    const char *config = json_string_value(json_object_get(o, "config"));
    const char *source = json_string_value(json_object_get(o, "source"));
    int outcome = index_of(outcomes, COUNT(outcomes), json_string_value(json_object_get(o, "outcome")));
    int how = index_of(hows, COUNT(hows), json_string_value(json_object_get(o, "how")));
    fa_key k = { 0, 0 };
    bool ok = problem && config && outcome >= 0 && how >= 0 && (!source || fa_key_parse(&k, source)) &&
              fa_problem_parse(&r.problem, problem) == FA_OK && fa_config_parse(&r.config, config) == FA_OK;
    r.outcome = (fa_outcome)(outcome < 0 ? 0 : outcome);
    r.how = (fa_how)(how < 0 ? 0 : how);
    r.source[0] = k.lo;
    r.source[1] = k.hi;
    r.seconds = json_number_value(json_object_get(o, "seconds"));
    r.spread = json_number_value(json_object_get(o, "spread"));
    for (int i = 0; i < COUNT(ints); i++) {
        int32_t v = (int32_t)json_integer_value(json_object_get(o, ints[i].name));
        memcpy((char *)&r + ints[i].at, &v, sizeof v);
    }
    for (int i = 0; i < COUNT(told_ints); i++) {
        int32_t v = (int32_t)json_integer_value(json_object_get(o, told_ints[i].name));
        memcpy((char *)&r + told_ints[i].at, &v, sizeof v);
    }
    for (int i = 0; i < COUNT(told_reals); i++) {
        double v = json_number_value(json_object_get(o, told_reals[i].name));
        memcpy((char *)&r + told_reals[i].at, &v, sizeof v);
    }
    const json_t *verified = json_object_get(o, "verified");
    r.verified = verified ? json_is_true(verified) : r.how == FA_MEASURED && r.outcome == FA_RAN;
    r.quality = fa_quality_of(json_string_value(json_object_get(o, "quality")));
    for (int i = 0; i < COUNT(texts); i++) {
        const char *s = json_string_value(json_object_get(o, texts[i].name));
        size_t n = s ? strnlen(s, texts[i].size - 1) : 0;
        memcpy((char *)&r + texts[i].at, s ? s : "", n);
    }
    json_decref(o);
    if (ok)
        *out = r;
    return ok;
}
