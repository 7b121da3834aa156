/* record_change: through the journal of an import, and by blanking lines where they stand. */
#include "record_change.h"
#include "gen/error.h"
#include "import.h"
#include "root.h"
#include "trusted_file.h"
#include "wait.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The lines of the first record's file among those that are not yet planned, which they are then. */
static bool plan_file(fa_import *im, const fa_record *r, size_t n, bool *planned)
{
    fa_text lines = { 0 };
    char chip[64], file[160], other_chip[64], other[160];
    bool ok = true;
    fa_record_path(r, chip, file);
    for (size_t i = 0; i < n && ok; i++) {
        fa_record_path(&r[i], other_chip, other);
        if (planned[i] || strcmp(chip, other_chip) != 0 || strcmp(file, other) != 0)
            continue;
        planned[i] = true;
        ok = fa_record_to_json(&r[i], &lines);
        fa_text_str(&lines, "\n");
    }
    ok = ok && !lines.oom;
    if (ok)
        fa_import_file(im, chip, file, fa_import_size(im, chip, file), &lines);
    fa_text_free(&lines);
    return ok && !im->text.oom;
}

static fa_status write_all(fa_import *im)
{
    const char *trouble = "", *root = im->store->root[im->store->writer].path;
    bool saved = fa_import_save(im, &trouble);
    if (saved && fa_import_files(im, &trouble) && fa_import_commit(im, &trouble))
        return FA_OK;
    char why[160];
    snprintf(why, sizeof why, "%s", trouble);
    if (saved)
        fa_import_undo(im);
    return fa_fail(FA_IO, "%s: records could not be kept: %s; nothing was imported", root, why);
}

fa_status fa_records_add(fa_store *s, const fa_record *r, size_t n)
{
    fa_import im;
    if (s->writer < 0)
        return fa_fail(FA_IO, "there is no cache root that can be written; FAGEN_CACHE_DIR names one");
    if (n == 0)
        return FA_OK;
    fa_status st = fa_import_begin(&im, s, FA_AREA_KERNELS);
    bool *planned = calloc(n, sizeof *planned), ok = planned != NULL;
    for (size_t i = 0; st == FA_OK && ok && i < n; i++)
        if (!planned[i])
            ok = plan_file(&im, r + i, n - i, planned + i);
    if (st == FA_OK)
        st = ok ? write_all(&im) : fa_fail(FA_NOMEM, "no memory for %zu records", n);
    free(planned);
    fa_import_end(&im);
    return st;
}

/* The lines of one file that go. */
typedef struct doomed {
    char chip[64], file[160];
    fa_text lines;
    size_t n;
} doomed;

typedef struct gathering {
    const fa_store *store;
    fa_record_test *drop;
    void *user;
    doomed *file;
    size_t n;
    bool oom;
} gathering;

static void gather(void *user, const fa_record_line *line)
{
    gathering *g = user;
    if (!line->record || (ptrdiff_t)line->root != g->store->writer || !g->drop(g->user, line->record))
        return;
    doomed *last = g->n ? &g->file[g->n - 1] : NULL;
    if (!last || strcmp(last->chip, line->chip) != 0 || strcmp(last->file, line->file) != 0) {
        doomed *grown = realloc(g->file, (g->n + 1) * sizeof *grown);
        g->oom = g->oom || !grown;
        if (!grown)
            return;
        g->file = grown;
        last = &grown[g->n++];
        *last = (doomed){ .n = 0 };
        snprintf(last->chip, sizeof last->chip, "%s", line->chip);
        snprintf(last->file, sizeof last->file, "%s", line->file);
    }
    fa_text_add(&last->lines, line->text, line->size);
    fa_text_str(&last->lines, "\n");
    g->oom = g->oom || last->lines.oom;
    last->n++;
}

static bool take_out(const fa_store *s, const doomed *d, fa_wait *w)
{
    const char *trouble;
    int records = fa_trusted_dir(s->root[s->writer].v1, "records", false, &trouble);
    int dir = records < 0 ? -1 : fa_trusted_dir(records, d->chip, false, &trouble);
    bool ok = dir >= 0 && fa_jsonl_take_back(dir, d->file, 0, d->lines.s, d->lines.n, w);
    if (dir >= 0)
        close(dir);
    if (records >= 0)
        close(records);
    return ok;
}

fa_status fa_records_drop(fa_store *s, const char *chip, const fa_problem *p, fa_record_test *drop, void *user, size_t *dropped)
{
    gathering g = { .store = s, .drop = drop, .user = user };
    fa_wait w = { .store = s, .most = -1 };
    fa_status st = FA_OK;
    *dropped = 0;
    if (s->writer >= 0)
        fa_records_each(s, chip, p, gather, &g);
    if (g.oom)
        st = fa_fail(FA_NOMEM, "no memory for the records that go");
    for (size_t i = 0; i < g.n; i++) {
        if (st == FA_OK && !take_out(s, &g.file[i], &w))
            st = fa_fail(FA_IO, "%s: records of %s/%s could not be taken out", s->root[s->writer].path, g.file[i].chip, g.file[i].file);
        *dropped += st == FA_OK ? g.file[i].n : 0;
        fa_text_free(&g.file[i].lines);
    }
    free(g.file);
    return st;
}
