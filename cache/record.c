/* record: append-only files of facts, and the winner that follows from them. */
#include "record.h"
#include "gen/bucket.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "jsonl.h"
#include "newest.h"
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
    char key[FA_PROBLEM_TEXT];
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
    fa_record_memo memo;
    fa_record_fn *f;
    void *user;
} reader;

static void read_line(void *user, const char *text, size_t n, size_t number)
{
    reader *rd = user;
    fa_record r;
    bool parses = fa_record_read(&r, text, &rd->memo);
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
    size_t sorted_to = 1;
    while (sorted_to < rs->n && strcmp(rs->r[sorted_to - 1].date, rs->r[sorted_to].date) <= 0)
        sorted_to++;
    if (sorted_to >= rs->n) /* of one file, as it was written */
        return;
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
    return r->outcome == FA_RAN && isfinite(r->seconds) && r->seconds > 0 && (r->verified || (r->how == FA_MODELLED && !r->imported));
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

/* What there is of one shape bucket. */
typedef struct shelf {
    bool used;
    uint32_t bucket;
    double near; /* the least distance of those that count */
    size_t at;   /* the first of those */
    const fa_record *best;
} shelf;

/* A table with open addressing; cap is a power of two. */
typedef struct shelves {
    shelf *s;
    size_t n, cap;
} shelves;

static shelf *shelf_at(shelves *all, uint32_t bucket)
{
    size_t i = bucket * 0x9e3779b97f4a7c15u >> 32 & (all->cap - 1);
    while (all->s[i].used && all->s[i].bucket != bucket)
        i = (i + 1) & (all->cap - 1);
    return &all->s[i];
}

/* NULL: no memory. */
static shelf *shelf_of(shelves *all, uint32_t bucket)
{
    if (2 * all->n >= all->cap) {
        shelves grown = { .n = all->n, .cap = all->cap ? 2 * all->cap : 32 };
        grown.s = calloc(grown.cap, sizeof *grown.s);
        if (!grown.s)
            return NULL;
        for (size_t i = 0; i < all->cap; i++)
            if (all->s[i].used)
                *shelf_at(&grown, all->s[i].bucket) = all->s[i];
        free(all->s);
        *all = grown;
    }
    shelf *g = shelf_at(all, bucket);
    if (!g->used) {
        *g = (shelf){ .used = true, .bucket = bucket, .near = INFINITY };
        all->n++;
    }
    return g;
}

/* From the newest to the oldest: in each bucket the fastest of the configs whose newest record there ran. False: no memory. */
static bool sort_in(shelves *all, const fa_records *rs, const fa_problem *p, fa_how how)
{
    fa_newest met = { .n = 0 };
    uint32_t own = fa_problem_bucket(p);
    bool ok = true;
    for (size_t i = rs->n; i-- > 0 && ok;) {
        const fa_record *r = &rs->r[i];
        if (r->how != how || !fa_problem_same_class(&r->problem, p))
            continue;
        uint32_t bucket = fa_problem_bucket(&r->problem);
        shelf *g = shelf_of(all, bucket);
        bool newest = fa_newest_add(&met, r, bucket);
        ok = g && !met.oom;
        if (!ok || !newest || !ran(r))
            continue;
        double far = bucket == own ? 0 : distance(&r->problem, p);
        if (far <= g->near) {
            g->near = far;
            g->at = i;
        }
        if (!g->best || !better(g->best, r))
            g->best = r;
    }
    fa_newest_free(&met);
    return ok;
}

/* Of the own bucket, else of the nearest that has any: the nearest may hold nothing but overtaken records. */
static const fa_record *best_of(const fa_records *rs, const fa_problem *p, fa_how how)
{
    shelves all = { .n = 0 };
    const shelf *best = NULL;
    uint32_t own = fa_problem_bucket(p);
    if (sort_in(&all, rs, p, how))
        for (size_t i = 0; i < all.cap; i++) {
            const shelf *g = &all.s[i];
            if (!g->best || (best && best->bucket == own))
                continue;
            if (!best || g->bucket == own || g->near < best->near || (g->near == best->near && g->at < best->at))
                best = g;
        }
    const fa_record *r = best ? best->best : NULL;
    free(all.s);
    return r;
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
