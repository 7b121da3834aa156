/* reference: the reading of the embedded tables. A line that does not parse is left out, as a damaged record is. */
#include "reference.h"
#include "files.h"
#include "gen/problem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS 24

typedef struct table {
    fa_record common; /* of every row below */
    char product[48];
    char family[24], tunables[256];
    fa_quality quality[16];
    int qualities;
    bool wanted; /* the rows are of the class that is asked for */
} table;

/* Parts a line at its tabs, in place. Returns how many fields there are; those past FIELDS are left out. */
static int part(char *line, char *field[FIELDS])
{
    int n = 0;
    for (char *s = line; s && n < FIELDS;) {
        field[n++] = s;
        if ((s = strchr(s, '\t')) != NULL)
            *s++ = 0;
    }
    return n;
}

static void set_qualities(table *t, char *words)
{
    char *rest = NULL;
    t->quality[0] = FA_QUALITY_UNTOLD;
    t->qualities = 1;
    for (char *w = strtok_r(words, " ", &rest); w && t->qualities < (int)(sizeof t->quality / sizeof *t->quality);
         w = strtok_r(NULL, " ", &rest))
        t->quality[t->qualities++] = fa_quality_of(w);
}

/* True when the line told something of the rows below. */
static bool is_head(table *t, char *field[FIELDS], int n, const fa_problem *p)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } texts[] = {
        { "product", t->product, sizeof t->product },
        { "chip", t->common.chip, sizeof t->common.chip },
        { "arch", t->common.arch, sizeof t->common.arch },
        { "version", t->common.version, sizeof t->common.version },
        { "compiler", t->common.compiler, sizeof t->common.compiler },
        { "driver", t->common.driver, sizeof t->common.driver },
        { "family", t->family, sizeof t->family },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(field[0], texts[i].name)) {
            snprintf(texts[i].to, texts[i].size, "%s", n > 1 ? field[1] : "");
            if (texts[i].to == t->family)
                snprintf(t->tunables, sizeof t->tunables, "%s", n > 2 ? field[2] : "");
            return true;
        }
    if (!strcmp(field[0], "quality")) {
        set_qualities(t, n > 1 ? field[1] : field[0] + strlen(field[0]));
        return true;
    }
    if (!strcmp(field[0], "problem")) {
        t->wanted = n > 2 && fa_problem_parse(&t->common.problem, field[1]) == FA_OK && fa_problem_same_class(&t->common.problem, p);
        snprintf(t->common.date, sizeof t->common.date, "%s", n > 2 ? field[2] : "");
        return true;
    }
    return field[0][0] == '#' || !field[0][0];
}

static bool read_config(fa_config *out, const table *t, char *values)
{
    char names[sizeof t->tunables], *at = NULL, *rest = NULL;
    *out = (fa_config){ .n = 0 };
    snprintf(out->family, sizeof out->family, "%s", t->family);
    snprintf(names, sizeof names, "%s", t->tunables);
    char *name = strtok_r(names, " ", &at), *value = strtok_r(values, " ", &rest);
    for (; name && value; name = strtok_r(NULL, " ", &at), value = strtok_r(NULL, " ", &rest)) {
        char *end;
        long v = strtol(value, &end, 10);
        if (*end || end == value || !fa_config_set(out, name, (int)v))
            return false;
    }
    return !name && !value && out->n > 0;
}

static bool read_row(fa_record *out, const table *t, char *field[FIELDS], int n)
{
    enum { VALUES, US, LOW, HIGH, WARM, SPREAD, COUNT, MHZ, DEGREES, REGS, QUALITY, ROW };
    if (n != ROW || !read_config(&out->config, t, field[VALUES]))
        return false;
    long quality = strtol(field[QUALITY], NULL, 10);
    out->how = FA_MEASURED;
    out->outcome = FA_RAN;
    out->verified = true;
    out->seconds = strtod(field[US], NULL) * 1e-6;
    out->low = strtod(field[LOW], NULL) * 1e-6;
    out->high = strtod(field[HIGH], NULL) * 1e-6;
    out->warm = strtod(field[WARM], NULL) * 1e-6;
    out->spread = strtod(field[SPREAD], NULL);
    out->count = (int32_t)strtol(field[COUNT], NULL, 10);
    out->clock_mhz = (int32_t)strtol(field[MHZ], NULL, 10);
    out->temperature = (int32_t)strtol(field[DEGREES], NULL, 10);
    out->regs = (int32_t)strtol(field[REGS], NULL, 10);
    out->quality = quality >= 0 && quality < t->qualities ? t->quality[quality] : FA_QUALITY_UNTOLD;
    return out->seconds > 0;
}

static bool append(fa_records *to, const fa_record *r)
{
    if ((to->n & (to->n - 1)) == 0) { /* full at the powers of two */
        fa_record *grown = realloc(to->r, (to->n ? 2 * to->n : 1) * sizeof *grown);
        if (!grown)
            return false;
        to->r = grown;
    }
    to->r[to->n++] = *r;
    return true;
}

/* The table is of the arch when it is of its row in the table of archs, or of the very device. */
static bool is_of(const table *t, const fa_arch *a)
{
    return !strcmp(t->common.arch, a->name) && (!strcmp(t->product, a->chip) || !strcmp(t->common.chip, a->chip));
}

fa_records cli_reference_parse(const char *text, const fa_problem *p, const fa_arch *a)
{
    fa_records out = { NULL, 0 };
    table t = { .wanted = false };
    char line[1024], *field[FIELDS];
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "\n");
        snprintf(line, sizeof line, "%.*s", n < sizeof line ? (int)n : 0, s);
        s += n + (s[n] == '\n');
        int fields = part(line, field);
        fa_record r = t.common;
        if (is_head(&t, field, fields, p) || !t.wanted || !is_of(&t, a))
            continue;
        if (read_row(&r, &t, field, fields) && !append(&out, &r))
            break;
    }
    return out;
}

fa_records cli_reference_load(const fa_problem *p, const fa_arch *a)
{
    for (const cli_explore_file *f = cli_reference_files; f->name; f++) {
        fa_records rs = cli_reference_parse(f->bytes, p, a);
        if (rs.n)
            return rs;
        fa_records_free(&rs);
    }
    return (fa_records){ NULL, 0 };
}
