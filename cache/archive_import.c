/* archive_import: what an archive has and the store lacks is written down, then added as a whole. */
#include "archive.h"
#include "archive_head.h"
#include "gen/error.h"
#include "import.h"
#include "input.h"
#include "line_set.h"
#include "quota.h"
#include "root.h"
#include "trusted_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An archive on its way into a store. */
typedef struct coming {
    fa_store *store;
    const fa_archive *archive;
    fa_area area;
    bool with_records;
    fa_import import;
    bool *fresh; /* of each entry: the store lacks it */
    fa_archive_count *count;
} coming;

/* The folder of a root that holds k, or -1 with errno: ENOENT where there is none. */
static int open_area(const fa_root *r, fa_area area, fa_key k, const char **trouble)
{
    char name[FA_NAME_SIZE];
    int kernels = -1;
    errno = 0; /* it stays where a folder is there and not trusted */
    int dir =
        area == FA_AREA_KERNELS ? fa_root_folder(r, k, name, &kernels, trouble) : fa_trusted_dir(r->v1, fa_area_name(area), false, trouble);
    int why = errno;
    if (kernels >= 0)
        close(kernels);
    errno = why;
    return dir;
}

/* 1: a sound file of the key is in the own root's folder; 0: there is none; -1 with *trouble: that cannot be told. */
static int there(const fa_root *r, fa_area area, fa_key k, const char **trouble)
{
    char name[FA_NAME_SIZE], *bytes = NULL;
    size_t size = 0;
    fa_entry e = { .image = NULL };
    int dir = open_area(r, area, k, trouble);
    if (dir < 0)
        return errno == ENOENT ? 0 : -1;
    fa_entry_name(name, k);
    fa_file_state got = fa_trusted_read(dir, name, FA_FILE_CAP, &bytes, &size, NULL, trouble);
    const char *damaged = got == FA_FILE_OK ? fa_entry_unpack(&e, bytes, size, false) : NULL;
    int found = got == FA_FILE_TROUBLE ? -1 : got == FA_FILE_OK && !damaged && e.key.lo == k.lo && e.key.hi == k.hi;
    if (damaged == fa_entry_no_memory) {
        *trouble = damaged;
        found = -1;
    }
    fa_entry_free(&e);
    free(bytes);
    close(dir);
    return found;
}

static fa_status unreadable(const coming *c, const char *trouble)
{
    return fa_fail(FA_IO, "%s: what is there cannot be read: %s; nothing was imported", c->store->root[c->store->writer].path, trouble);
}

static fa_status plan_kernels(coming *c)
{
    const fa_root *r = &c->store->root[c->store->writer];
    const char *trouble = "";
    for (size_t i = 0; i < c->archive->n; i++) {
        fa_key k = c->archive->entry[i].key;
        int has = there(r, FA_AREA_KERNELS, k, &trouble);
        if (has == 0 && c->area != FA_AREA_KERNELS)
            has = there(r, c->area, k, &trouble);
        if (has < 0)
            return unreadable(c, trouble);
        c->fresh[i] = !has;
        *(has ? &c->count->entries_there : &c->count->entries) += 1;
        fa_import_kernel(&c->import, k, has);
    }
    return FA_OK;
}

static void know(void *user, const char *line, size_t n, size_t number)
{
    (void)number;
    fa_line_set_add(user, line, n);
}

/* The lines of one file: it is read once, and each that it lacks is to be appended once. */
static fa_status plan_file(coming *c, const fa_archive_line *const *line, size_t n)
{
    fa_line_set known = { .n = 0 };
    fa_text lines = { 0 };
    fa_record r;
    const char *trouble = "";
    char chip[64], file[160];
    fa_status st = fa_archive_record(&r, line[0]) ? FA_OK : fa_fail(FA_NOMEM, "no memory for a record");
    if (st == FA_OK) {
        fa_record_path(&r, chip, file);
        int64_t size = fa_import_size(&c->import, chip, file);
        if (!fa_record_beside(c->store, &r, know, &known, &trouble))
            st = unreadable(c, trouble);
        for (size_t i = 0; i < n && st == FA_OK; i++) {
            bool fresh = fa_line_set_add(&known, line[i]->bytes, line[i]->size);
            *(fresh ? &c->count->lines : &c->count->lines_there) += 1;
            if (fresh) {
                fa_text_add(&lines, line[i]->bytes, line[i]->size);
                fa_text_str(&lines, "\n");
            }
        }
        if (lines.n)
            fa_import_file(&c->import, chip, file, size, &lines);
        if (st == FA_OK && (known.oom || lines.oom))
            st = fa_fail(FA_NOMEM, "no memory for the records of a file");
    }
    fa_line_set_free(&known);
    fa_text_free(&lines);
    return st;
}

static int by_path(const void *a, const void *b)
{
    const fa_archive_line *x = *(const fa_archive_line *const *)a, *y = *(const fa_archive_line *const *)b;
    int c = memcmp(x->path, y->path, sizeof x->path);
    return c ? c : (x > y) - (x < y);
}

/* File by file, whatever the order in the archive; within a file in that order. */
static fa_status plan_lines(coming *c)
{
    const fa_archive *p = c->archive;
    const fa_archive_line **line = malloc((p->n_lines + 1) * sizeof *line);
    fa_status st = line ? FA_OK : fa_fail(FA_NOMEM, "no memory for the order of %zu records", p->n_lines);
    for (size_t i = 0; line && i < p->n_lines; i++)
        line[i] = &p->line[i];
    if (line && p->n_lines)
        qsort(line, p->n_lines, sizeof *line, by_path);
    for (size_t from = 0, to; st == FA_OK && from < p->n_lines; from = to) {
        for (to = from + 1; to < p->n_lines && !memcmp(line[to]->path, line[from]->path, sizeof line[to]->path); to++)
            ;
        st = plan_file(c, line + from, to - from);
    }
    free(line);
    return st;
}

static bool write_kernels(coming *c, const char **trouble)
{
    bool ok = true;
    for (size_t i = 0; i < c->archive->n && ok; i++) {
        const fa_archive_entry *e = &c->archive->entry[i];
        ok = !c->fresh[i] || fa_entry_write(c->store, c->area, e->key, e->bytes, e->size, trouble);
    }
    return ok;
}

/* The limit is held when all is in place: what goes for it cannot be brought back. */
static void evict(coming *c)
{
    fa_quota_debt debt = { .n = 0 };
    for (size_t i = 0; i < c->archive->n; i++)
        if (c->fresh[i] && c->area == FA_AREA_KERNELS)
            fa_quota_owe(c->store, &debt, c->archive->entry[i].key, c->archive->entry[i].size);
    fa_quota_settle(c->store, &debt);
}

static fa_status add_all(coming *c)
{
    const char *trouble = "", *what = NULL, *root = c->store->root[c->store->writer].path;
    if ((c->count->entries || c->count->lines) && !fa_import_save(&c->import, &trouble))
        return fa_fail(FA_IO, "%s: the list of what is new could not be kept: %s; nothing was imported", root, trouble);
    if (!write_kernels(c, &trouble))
        what = "a kernel";
    else if (!fa_import_files(&c->import, &trouble))
        what = "records";
    else if (!fa_import_commit(&c->import, &trouble))
        what = "the whole";
    if (what) {
        char why[160];
        snprintf(why, sizeof why, "%s", trouble);
        fa_import_undo(&c->import);
        return fa_fail(FA_IO, "%s: %s could not be kept: %s; nothing was imported", root, what, why);
    }
    evict(c);
    return FA_OK;
}

static fa_status import(coming *c)
{
    fa_status st = fa_import_begin(&c->import, c->store, c->area);
    c->fresh = calloc(c->archive->n + 1, sizeof *c->fresh);
    if (st == FA_OK && !c->fresh)
        st = fa_fail(FA_NOMEM, "no memory for %zu kernels", c->archive->n);
    if (st == FA_OK) {
        st = plan_kernels(c);
        if (st == FA_OK && c->with_records)
            st = plan_lines(c);
    }
    if (st == FA_OK && c->import.text.oom)
        st = fa_fail(FA_NOMEM, "no memory for what is imported");
    if (st == FA_OK)
        st = add_all(c);
    fa_import_end(&c->import);
    free(c->fresh);
    if (st != FA_OK)
        *c->count = (fa_archive_count){ .bytes = c->count->bytes };
    return st;
}

/* The bytes of the archive, which the caller frees, and what they hold, which is to be freed either way. */
static fa_status read_archive(const char *path, char **bytes, size_t *size, fa_archive *p)
{
    char why[160] = "";
    *p = (fa_archive){ NULL, NULL, 0, 0 };
    fa_status st = fa_input_read(path, FA_ARCHIVE_CAP, FA_INVALID, bytes, size);
    if (st == FA_OK && !fa_archive_unpack(p, *bytes, *size, why, sizeof why))
        st = fa_fail(FA_INVALID, "%s: %s; nothing was imported", path, why);
    return st;
}

fa_status fa_archive_records(fa_records *out, const char *path)
{
    char *bytes;
    size_t size;
    fa_archive p;
    *out = (fa_records){ NULL, 0 };
    fa_status st = read_archive(path, &bytes, &size, &p);
    if (st == FA_OK && !(out->r = calloc(p.n_lines + 1, sizeof *out->r)))
        st = fa_fail(FA_NOMEM, "no memory for %zu records", p.n_lines);
    for (; st == FA_OK && out->n < p.n_lines; out->n++)
        if (!fa_archive_record(&out->r[out->n], &p.line[out->n]))
            st = fa_fail(FA_NOMEM, "no memory for a record");
    if (st != FA_OK)
        fa_records_free(out);
    fa_archive_free(&p);
    free(bytes);
    return st;
}

fa_status fa_archive_import(fa_store *s, const char *path, bool trusted, bool with_records, fa_archive_count *out)
{
    char *bytes;
    size_t size;
    fa_archive p;
    memset(out, 0, sizeof *out);
    fa_status st = read_archive(path, &bytes, &size, &p);
    out->bytes = (int64_t)size;
    if (st == FA_OK && s->writer < 0)
        st = fa_fail(FA_IO, "there is no cache root that can be written; FAGEN_CACHE_DIR names one");
    if (st == FA_OK) {
        coming c = {
            .store = s, .archive = &p, .area = trusted ? FA_AREA_KERNELS : FA_AREA_FOREIGN, .with_records = with_records, .count = out
        };
        st = import(&c);
    }
    fa_archive_free(&p);
    free(bytes);
    return st;
}
