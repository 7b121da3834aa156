/* recordings: measurements out of files of three kinds. */
#include "bench/dev/recordings.h"
#include "cache/input.h"
#include "cache/record.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define FILE_CAP (256u << 20)

typedef struct reader {
    cli_recordings *out;
    const char *arch;
    fa_gen *g;
    fa_status st;
    size_t before;
} reader;

/* Measurements of a problem stand together in a file: the last recording is looked at first. */
static fa_recording *recording_of(reader *r, const fa_problem *p)
{
    char own[256], other[256];
    fa_problem_print(own, sizeof own, p);
    for (size_t i = r->out->n; i-- > 0;) {
        fa_problem_print(other, sizeof other, &r->out->r[i].problem);
        if (!strcmp(own, other))
            return &r->out->r[i];
    }
    if (r->out->n == r->out->cap) {
        size_t cap = r->out->cap ? 2 * r->out->cap : 16;
        fa_recording *grown = realloc(r->out->r, cap * sizeof *grown);
        if (!grown)
            return NULL;
        r->out->r = grown;
        r->out->cap = cap;
    }
    r->out->r[r->out->n] = (fa_recording){ .problem = *p };
    return &r->out->r[r->out->n++];
}

/* seconds 0: it did not run. modelled 0: the templates are asked. */
static void add(reader *r, const char *problem, const char *config, double seconds, double modelled, const char *arch)
{
    fa_problem p, shaped;
    fa_take t = { .seconds = seconds > 0 ? seconds : 0, .modelled = modelled };
    fa_cost cost;
    fa_point pt = { .threads = 0 };
    const fa_arch *a = fa_arch_find(arch && arch[0] ? arch : r->arch);
    if (r->st != FA_OK || !problem || !config || fa_problem_parse(&p, problem) != FA_OK || fa_problem_normalize(&shaped, &p) != FA_OK ||
        fa_gen_config_parse(r->g, &t.config, config) != FA_OK)
        return;
    fa_problem_fill_shape(&shaped);
    r->out->taken++;
    bool known = a && fa_model_named(r->g, &shaped, &t.config, a, 0, 0, &pt, &cost) == FA_OK;
    if (known)
        t.config = pt.config; /* its tunables in the order of today */
    if (!(t.modelled > 0) && known)
        t.modelled = cost.seconds;
    t.threads = pt.threads;
    fa_gen_tile(r->g, &t.config, t.tile);
    if (!(t.modelled > 0)) {
        r->out->unknown++;
        return;
    }
    fa_recording *to = recording_of(r, &shaped);
    if (!to || !fa_recording_add(to, &t))
        r->st = fa_fail(FA_NOMEM, "no memory for the measurements");
}

static const char *text(const json_t *o, const char *name)
{
    return json_string_value(json_object_get(o, name));
}

static double number(const json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A number, or the median of a list. */
static double seconds_of(const json_t *v)
{
    size_t n = json_array_size(v);
    double *s = n ? malloc(n * sizeof *s) : NULL, m = json_number_value(v);
    for (size_t i = 0; i < n && s; i++)
        s[i] = json_number_value(json_array_get(v, i));
    if (s) {
        qsort(s, n, sizeof *s, ascending);
        m = n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
    }
    free(s);
    return m;
}

/* `fagen tune --json`: {"arch", "problems": [{"problem", "source", "candidates": [...]}]} */
static void read_tuning(reader *r, const json_t *doc)
{
    size_t i, k;
    json_t *p, *c;
    json_array_foreach(json_object_get(doc, "problems"), i, p) json_array_foreach(json_object_get(p, "candidates"), k, c)
    {
        const char *outcome = text(c, "outcome"), *source = text(c, "source");
        if (outcome && strcmp(outcome, "open") && source && !strcmp(source, "measured"))
            add(r, text(p, "problem"), text(c, "config"), strcmp(outcome, "ok") ? 0 : number(c, "seconds"), number(c, "modelled"),
                text(doc, "arch"));
    }
}

/* bench/variants.py --json: [{"problem", "variants": [{"config", "seconds": [...]} or {"config", "why"}]}] */
static void read_variants(reader *r, const json_t *doc)
{
    size_t i, k;
    json_t *p, *v;
    json_array_foreach(doc, i, p) json_array_foreach(json_object_get(p, "variants"), k, v) if (!json_object_get(v, "peer") ||
                                                                                               json_is_null(json_object_get(v, "peer")) ||
                                                                                               json_is_false(json_object_get(v, "peer")))
        add(r, text(p, "problem"), text(v, "config"), seconds_of(json_object_get(v, "seconds")), 0, NULL);
}

/* Records: a line of JSON each; older lines of a config are replaced by newer ones. */
static void read_records(reader *r, char *bytes)
{
    char *next;
    for (char *line = bytes; line; line = next) {
        char problem[FA_PROBLEM_TEXT], config[512];
        fa_record rec;
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (!fa_record_from_json(&rec, line) || rec.how != FA_MEASURED || (rec.outcome == FA_RAN && !rec.verified))
            continue;
        fa_problem_print(problem, sizeof problem, &rec.problem);
        fa_config_print(config, sizeof config, &rec.config);
        add(r, problem, config, rec.outcome == FA_RAN ? rec.seconds : 0, 0, rec.arch);
    }
}

fa_status cli_recordings_read(cli_recordings *out, const char *path, const char *arch)
{
    char *bytes = NULL;
    size_t n = 0;
    reader r = { .out = out, .arch = arch, .st = FA_OK, .before = out->taken };
    fa_status st = fa_input_read(path, FILE_CAP, FA_IO, &bytes, &n);
    if (st == FA_OK)
        st = fa_gen_open(&r.g, getenv("FAGEN_TEMPLATE_DIR"));
    if (st == FA_OK) {
        char *copy = calloc(1, n + 1);
        json_t *doc = json_loadb(bytes, n, 0, NULL);
        if (!copy)
            r.st = fa_fail(FA_NOMEM, "no memory for %s", path);
        else if (json_is_object(doc) && json_object_get(doc, "problems"))
            read_tuning(&r, doc);
        else if (json_is_array(doc))
            read_variants(&r, doc);
        else
            read_records(&r, memcpy(copy, bytes, n));
        json_decref(doc);
        free(copy);
        st = r.st;
        if (st == FA_OK && out->taken == r.before)
            st = fa_fail(FA_INVALID,
                         "%s holds no measurements; accepted: records (JSON lines), what fagen tune --json prints on a GPU, what "
                         "bench/variants.py --json writes",
                         path);
    }
    fa_gen_close(r.g);
    free(bytes);
    return st;
}

void cli_recordings_free(cli_recordings *out)
{
    for (size_t i = 0; i < out->n; i++)
        fa_recording_free(&out->r[i]);
    free(out->r);
    *out = (cli_recordings){ .n = 0 };
}
