/* workload: lines of JSON, as runtime/plan/workload.c writes them. */
#include "workload.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ACCEPTED                                                                                                               \
    "accepted: lines that fa_destroy() adds to the file of FAGEN_WORKLOAD, as {\"problem\":\"bf16,d=128,...\",\"launches\":2," \
    "\"seconds\":0.001}"

double cli_workload_seconds(const cli_workload_row *row)
{
    return row->known ? row->seconds / (double)row->known * (double)row->launches : 0;
}

static double products(const cli_workload_row *row)
{
    const fa_problem *p = &row->problem;
    return (double)row->launches * p->b * p->hq * p->sq * p->sk * (p->d + p->dv);
}

static int by_key(const void *a, const void *b)
{
    const cli_workload_row *x = a, *y = b;
    return memcmp(&x->key, &y->key, sizeof x->key);
}

static int by_time(const void *a, const void *b)
{
    double s = cli_workload_seconds(a), t = cli_workload_seconds(b), m = products(a), n = products(b);
    return s != t ? (s < t) - (s > t) : m != n ? (m < n) - (m > n) : by_key(a, b);
}

static fa_status bad_number(const json_t *doc, const char *name, const char *accepted, const char *path, size_t line)
{
    const json_t *is = json_object_get(doc, name);
    char *text = is ? json_dumps(is, JSON_ENCODE_ANY) : NULL;
    fa_status st = fa_fail(FA_INVALID, "%s, line %zu: %s is %.40s; accepted: %s", path, line, name, text ? text : "absent", accepted);
    free(text);
    return st;
}

/* The row of one line's document. */
static fa_status read_row(cli_workload_row *out, const json_t *doc, const char *path, size_t line)
{
    const char *text = json_string_value(json_object_get(doc, "problem")), *score = json_string_value(json_object_get(doc, "score"));
    const json_t *launches = json_object_get(doc, "launches"), *seconds = json_object_get(doc, "seconds");
    double s = json_number_value(seconds);
    fa_problem p;
    if (!text)
        return fa_fail(FA_INVALID, "%s, line %zu: there is no text \"problem\"; " ACCEPTED, path, line);
    fa_status st = fa_wrap(fa_problem_parse_scored(&p, text, score, score ? strlen(score) : 0), "%s, line %zu: problem", path, line);
    if (st != FA_OK)
        return st;
    if (!json_is_integer(launches) || json_integer_value(launches) < 1)
        return bad_number(doc, "launches", "a whole number from 1 on", path, line);
    if (!json_is_number(seconds) || !(s >= 0) || !isfinite(s))
        return bad_number(doc, "seconds", "a number from 0 on", path, line);
    fa_problem_fill_shape(&p);
    *out = (cli_workload_row){ .problem = fa_problem_point(&p), .launches = (uint64_t)json_integer_value(launches), .seconds = s };
    out->key = fa_plan_key_of(&out->problem);
    out->known = s > 0 ? out->launches : 0;
    return FA_OK;
}

static bool blank(const char *s)
{
    return s[strspn(s, " \t\r\n")] == 0;
}

static fa_status add(cli_workload *w, const char *text, size_t n, const char *path, size_t line)
{
    json_error_t e;
    if (blank(text) && strlen(text) == n)
        return FA_OK;
    n -= text[n - 1] == '\n'; /* which a cut text would swallow */
    json_t *doc = json_loadb(text, n, 0, &e);
    if (!doc && json_error_code(&e) == json_error_premature_end_of_input) {
        w->cut++;
        return FA_OK;
    }
    cli_workload_row *room = realloc(w->row, (w->n + 1) * sizeof *room);
    w->row = room ? room : w->row;
    fa_status st = !room ? fa_fail(FA_NOMEM, "no memory for %zu rows", w->n + 1)
                   : doc ? read_row(&w->row[w->n], doc, path, line)
                         : fa_fail(FA_INVALID, "%s, line %zu: %s; " ACCEPTED, path, line, e.text);
    json_decref(doc);
    w->n += st == FA_OK;
    return st;
}

/* Rows of one key become one. */
static void sum(cli_workload *w)
{
    size_t n = 0;
    if (w->n)
        qsort(w->row, w->n, sizeof *w->row, by_key);
    for (size_t i = 0; i < w->n; i++) {
        const cli_workload_row *r = &w->row[i];
        w->launches += r->launches;
        if (n && !by_key(&w->row[n - 1], r)) {
            cli_workload_row *same = &w->row[n - 1];
            same->launches += r->launches;
            same->known += r->known;
            same->seconds += r->seconds;
        } else {
            w->row[n++] = *r;
        }
    }
    w->n = n;
    if (n)
        qsort(w->row, n, sizeof *w->row, by_time);
}

fa_status cli_workload_read(cli_workload *out, const char *path)
{
    char *text = NULL;
    size_t cap = 0, line = 0;
    ssize_t n = 0;
    fa_status st = FA_OK;
    *out = (cli_workload){ .n = 0 };
    FILE *f = fopen(path, "re");
    if (!f)
        return fa_fail(FA_IO, "%s: %s; accepted: the file that a program wrote with FAGEN_WORKLOAD", path, strerror(errno));
    errno = 0;
    while (st == FA_OK && (n = getline(&text, &cap, f)) >= 0)
        st = add(out, text, (size_t)n, path, ++line);
    if (st == FA_OK && !feof(f))
        st = fa_fail(FA_IO, "%s: %s", path, strerror(errno));
    if (st == FA_OK && !out->n)
        st = fa_fail(FA_INVALID, "%s: it tells of no launch; " ACCEPTED, path);
    free(text);
    fclose(f);
    if (st == FA_OK)
        sum(out);
    else
        cli_workload_free(out);
    return st;
}

void cli_workload_free(cli_workload *w)
{
    free(w->row);
    *w = (cli_workload){ .n = 0 };
}
