/* record: append-only files of facts, and the winner that follows from them. */
#include "record.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "jsonl.h"
#include "root.h"
#include "trusted_file.h"
#include "wait.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void names(char chip_dir[64], char file[160], const char *chip, const fa_problem *p)
{
    char key[160];
    fa_file_name(chip_dir, 64, chip, "");
    if (p) {
        fa_problem_print_key(key, sizeof key, p);
        fa_file_name(file, 160, key, ".jsonl");
    }
}

static int records_dir(const fa_root *r)
{
    const char *trouble;
    return r->v1 < 0 ? -1 : fa_trusted_dir(r->v1, "records", false, &trouble);
}

void fa_record_path(const fa_record *r, char chip_dir[64], char file[160])
{
    names(chip_dir, file, r->chip, &r->problem);
}

/* The files of the record's name below one root. */
static bool read_beside(const fa_root *root, const char *chip, const char *file, fa_jsonl_fn *f, void *user, const char **trouble)
{
    errno = 0; /* it stays where a folder is there and not trusted */
    int records = root->v1 < 0 ? -1 : fa_trusted_dir(root->v1, "records", false, trouble);
    int dir = records < 0 ? -1 : fa_trusted_dir(records, chip, false, trouble);
    bool ok = dir >= 0 ? fa_jsonl_read(dir, file, f, user, trouble) : errno == ENOENT;
    if (dir >= 0)
        close(dir);
    if (records >= 0)
        close(records);
    return ok;
}

bool fa_record_beside(fa_store *s, const fa_record *r, fa_jsonl_fn *f, void *user, const char **trouble)
{
    char chip[64], file[160];
    const char *other;
    bool ok = true;
    names(chip, file, r->chip, &r->problem);
    for (size_t i = 0; i < s->n; i++) {
        bool own = (ptrdiff_t)i == s->writer;
        ok = (read_beside(&s->root[i], chip, file, f, user, own ? trouble : &other) || !own) && ok;
    }
    return ok;
}

static bool append_line(fa_store *s, const fa_record *r, const char *line, size_t n)
{
    const fa_root *root = &s->root[s->writer];
    char chip[64], file[160];
    const char *trouble = "the folder is gone";
    names(chip, file, r->chip, &r->problem);
    int records = records_dir(root);
    int dir = records < 0 ? -1 : fa_trusted_dir(records, chip, true, &trouble);
    fa_wait w = { .store = s, .most = atomic_load(&s->hurried) ? 0 : -1 };
    bool ok = dir >= 0 && fa_jsonl_append(dir, file, line, n, &w, &trouble);
    atomic_store(&s->hurried, w.over);
    if (w.over)
        fa_store_advise(s, FA_CAUSE_WAIT,
                        "a process that appends records holds the lock of %s/%s/records/%s/%s for more than %g s (is it "
                        "stopped?): records are appended without it",
                        root->path, FA_FORMAT_DIR, chip, file, w.most);
    if (!ok)
        fa_store_advise(s, FA_CAUSE_RECORD, "a tuning record could not be kept in %s: %s", root->path, trouble);
    if (dir >= 0)
        close(dir);
    if (records >= 0)
        close(records);
    return ok;
}

bool fa_record_append(fa_store *s, const fa_record *r)
{
    fa_text line = { 0 };
    bool ok = s->writer >= 0 && fa_record_to_json(r, &line);
    if (!ok && s->writer >= 0)
        fa_store_advise(s, FA_CAUSE_RECORD, "a tuning record could not be kept in %s: it has no form in JSON, or memory ran out",
                        s->root[s->writer].path);
    ok = ok && append_line(s, r, line.s, line.n);
    fa_text_free(&line);
    return ok;
}

typedef struct reader {
    const char *chip; /* NULL = all */
    const fa_problem *problem;
    fa_record_line line;
    fa_record_fn *f;
    void *user;
} reader;

static void read_line(void *user, const char *text, size_t n, size_t number)
{
    reader *rd = user;
    fa_record r;
    bool parses = fa_record_from_json(&r, text);
    if (parses && ((rd->chip && strcmp(rd->chip, r.chip) != 0) || (rd->problem && !fa_problem_same_class(rd->problem, &r.problem))))
        return;
    rd->line.record = parses ? &r : NULL;
    rd->line.text = text;
    rd->line.size = n;
    rd->line.number = number;
    rd->f(rd->user, &rd->line);
}

static void read_file(reader *rd, int dir, const char *name)
{
    const char *trouble = NULL;
    rd->line = (fa_record_line){ .root = rd->line.root, .chip = rd->line.chip, .file = name };
    if (!fa_jsonl_read(dir, name, read_line, rd, &trouble)) {
        rd->line.trouble = trouble;
        rd->f(rd->user, &rd->line);
    }
}

static bool is_records(const char *name)
{
    size_t n = strlen(name);
    return name[0] != '.' && n > 6 && strcmp(name + n - 6, ".jsonl") == 0;
}

/* f for each name in the directory that pick accepts. Closes dir. */
static void each_name(int dir, bool (*pick)(const char *), void (*f)(reader *, int dir, const char *name), reader *rd)
{
    DIR *d = fa_place_names(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (pick(e->d_name))
            f(rd, dirfd(d), e->d_name);
    closedir(d);
}

static void read_chip(reader *rd, int records, const char *chip)
{
    const char *trouble;
    int dir = fa_trusted_dir(records, chip, false, &trouble);
    if (dir < 0)
        return;
    rd->line.chip = chip;
    if (rd->problem) {
        char chip_dir[64], file[160];
        names(chip_dir, file, "", rd->problem);
        read_file(rd, dir, file);
        close(dir);
    } else
        each_name(dir, is_records, read_file, rd);
}

static bool is_chip(const char *name)
{
    return name[0] != '.';
}

void fa_records_each(fa_store *s, const char *chip, const fa_problem *p, fa_record_fn *f, void *user)
{
    reader rd = { .chip = chip, .problem = p, .f = f, .user = user };
    for (size_t i = s->n; i-- > 0;) {
        int records = records_dir(&s->root[i]);
        if (records < 0)
            continue;
        rd.line.root = i;
        if (chip) {
            char chip_dir[64];
            names(chip_dir, NULL, chip, NULL);
            read_chip(&rd, records, chip_dir);
            close(records);
        } else
            each_name(records, is_chip, read_chip, &rd);
    }
}

typedef struct dated {
    const char *date;
    size_t at;
} dated;

static int by_date(const void *a, const void *b)
{
    const dated *x = a, *y = b;
    int c = strcmp(x->date, y->date);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* Files of several roots come one after the other: put them in order of time, equal times as they were read. */
static void sort_by_date(fa_records *rs)
{
    dated *order = malloc(rs->n * sizeof *order);
    fa_record *sorted = malloc(rs->n * sizeof *sorted);
    if (order && sorted) {
        for (size_t i = 0; i < rs->n; i++)
            order[i] = (dated){ rs->r[i].date, i };
        qsort(order, rs->n, sizeof *order, by_date);
        for (size_t i = 0; i < rs->n; i++)
            sorted[i] = rs->r[order[i].at];
        free(rs->r);
        rs->r = sorted;
        sorted = NULL;
    }
    free(sorted);
    free(order);
}

typedef struct list {
    fa_records out;
    size_t cap;
} list;

static void keep(void *user, const fa_record_line *line)
{
    list *l = user;
    if (!line->record)
        return;
    if (l->out.n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        fa_record *grown = realloc(l->out.r, cap * sizeof *grown);
        if (!grown)
            return;
        l->out.r = grown;
        l->cap = cap;
    }
    l->out.r[l->out.n++] = *line->record;
}

fa_records fa_records_load(fa_store *s, const char *chip, const fa_problem *p)
{
    list l = { { NULL, 0 }, 0 };
    fa_records_each(s, chip, p, keep, &l);
    if (l.out.n > 1)
        sort_by_date(&l.out);
    return l.out;
}

void fa_records_free(fa_records *rs)
{
    free(rs->r);
    *rs = (fa_records){ NULL, 0 };
}

static bool ran(const fa_record *r)
{
    return r->outcome == FA_RAN && isfinite(r->seconds) && r->seconds > 0 && (r->verified || r->how == FA_MODELLED);
}

/* Doublings between two lengths. */
static double doublings(double a, double b)
{
    return fabs(log2(fmax(a, 1) / fmax(b, 1)));
}

static double distance(const fa_problem *a, const fa_problem *b)
{
    fa_problem x = *a, y = *b;
    fa_problem_fill_shape(&x);
    fa_problem_fill_shape(&y);
    double window = x.mask == FA_MASK_WINDOW ? doublings(x.window ? x.window : FA_MODEL_WINDOW, y.window ? y.window : FA_MODEL_WINDOW) : 0;
    return doublings(x.sq, y.sq) + doublings(x.sk, y.sk) + doublings((double)x.b * x.hq, (double)y.b * y.hq) +
           0.5 * doublings((double)x.hq / x.hkv, (double)y.hq / y.hkv) + window;
}

/* Few samples were taken early, before others met in turns, and often under a higher clock: they count where there is nothing else. */
static bool better(const fa_record *a, const fa_record *b)
{
    bool few = a->quality == FA_QUALITY_FEW, fewer = b->quality == FA_QUALITY_FEW;
    return few != fewer ? fewer : a->seconds < b->seconds;
}

/* The fastest of the configs whose newest record in the bucket ran. */
static const fa_record *fastest(const fa_records *rs, const fa_problem *p, fa_how how, uint32_t bucket)
{
    const fa_record *best = NULL;
    for (size_t i = 0; i < rs->n; i++) {
        const fa_record *r = &rs->r[i];
        if (!ran(r) || r->how != how || !fa_problem_same_class(&r->problem, p) || fa_problem_bucket(&r->problem) != bucket ||
            (best && !better(r, best)))
            continue;
        bool newest = true;
        for (size_t j = i + 1; j < rs->n && newest; j++)
            newest = !(rs->r[j].how == how && fa_config_equal(&rs->r[j].config, &r->config) &&
                       fa_problem_same_class(&rs->r[j].problem, p) && fa_problem_bucket(&rs->r[j].problem) == bucket);
        if (newest)
            best = r;
    }
    return best;
}

/* Tries the buckets from the nearest outwards: the nearest may hold nothing but overtaken records. */
static const fa_record *best_of(const fa_records *rs, const fa_problem *p, fa_how how)
{
    double done = -1;
    uint32_t own = fa_problem_bucket(p);
    const fa_record *best = fastest(rs, p, how, own);
    while (!best) {
        const fa_record *next = NULL;
        double near = INFINITY;
        for (size_t i = 0; i < rs->n; i++) {
            const fa_record *r = &rs->r[i];
            if (!ran(r) || r->how != how || !fa_problem_same_class(&r->problem, p))
                continue;
            double far = distance(&r->problem, p);
            if (far > done && far < near) {
                near = far;
                next = r;
            }
        }
        if (!next)
            return NULL;
        done = near;
        best = fastest(rs, p, how, fa_problem_bucket(&next->problem));
    }
    return best;
}

double fa_records_distance(const fa_problem *a, const fa_problem *b)
{
    return fa_problem_bucket(a) == fa_problem_bucket(b) ? 0 : distance(a, b);
}

const fa_record *fa_records_best(const fa_records *rs, const fa_problem *p)
{
    const fa_record *r = best_of(rs, p, FA_MEASURED);
    return r ? r : best_of(rs, p, FA_MODELLED);
}
