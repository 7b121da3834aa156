/* archive: the bytes of an archive taken apart, and its import. */
#include "archive.h"
#include "archive_head.h"
#include "gen/error.h"
#include "input.h"
#include "jsonl.h"
#include "metadata.h"
#include "quota.h"
#include "root.h"
#include "trusted_file.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

void fa_archive_free(fa_archive *p)
{
    free(p->entry);
    free(p->line);
    memset(p, 0, sizeof *p);
}

/* Where taking apart has come to. */
typedef struct cursor {
    const char *p, *end; /* end: of what lies before the checksum */
} cursor;

static bool take_size(cursor *c, size_t most, size_t *out)
{
    uint64_t n;
    if ((size_t)(c->end - c->p) < sizeof n)
        return false;
    memcpy(&n, c->p, sizeof n);
    c->p += sizeof n;
    if (n == 0 || n > most || n > (size_t)(c->end - c->p))
        return false;
    *out = (size_t)n;
    return true;
}

const char *fa_archive_doubt(const fa_entry *e)
{
    fa_metadata a;
    if (!fa_metadata_parse(&a, e->metadata, e->metadata_size) || !a.whole)
        return "its description lacks what its key is made of";
    fa_key k = fa_metadata_key(&a);
    if (k.lo != e->key.lo || k.hi != e->key.hi || strcmp(a.arch, e->arch))
        return "its key does not follow from its description";
    if (!fa_arch_find(e->arch) || strcmp(fa_arch_find(e->arch)->name, e->arch))
        return "its arch is not known";
    return NULL;
}

static const char *take_entry(cursor *c, fa_archive_entry *out)
{
    char hex[33];
    fa_entry e;
    if (c->end - c->p < 32)
        return "cut short";
    memcpy(hex, c->p, 32);
    hex[32] = 0;
    c->p += 32;
    if (!fa_key_parse(&out->key, hex))
        return "its name is not 32 hex digits";
    if (!take_size(c, FA_FILE_CAP, &out->size))
        return "its size is out of range";
    out->bytes = c->p;
    c->p += out->size;
    const char *damaged = fa_entry_unpack(&e, out->bytes, out->size, false);
    if (!damaged && (e.key.lo != out->key.lo || e.key.hi != out->key.hi))
        damaged = "its name is not its key";
    if (!damaged)
        damaged = fa_archive_doubt(&e);
    fa_entry_free(&e);
    return damaged;
}

static bool parse_line(fa_record *r, const fa_archive_line *l)
{
    if (memchr(l->bytes, 0, l->size) || memchr(l->bytes, '\n', l->size))
        return false;
    char *text = strndup(l->bytes, l->size);
    bool ok = text && fa_record_from_json(r, text);
    free(text);
    return ok;
}

static void hash_path(fa_archive_line *l, const fa_record *r)
{
    char path[64 + 1 + 160] = "";
    fa_record_path(r, path, path + 64 + 1);
    memset(path + strlen(path), 0, 64 - strlen(path));
    XXH128_hash_t h = XXH3_128bits(path, 64 + 1 + strlen(path + 64 + 1));
    l->path[0] = h.high64;
    l->path[1] = h.low64;
}

static bool after(fa_key a, fa_key b)
{
    return a.hi != b.hi ? a.hi > b.hi : a.lo > b.lo;
}

static bool take_parts(fa_archive *out, const archive_head *h, cursor *c, char *why, size_t n)
{
    for (size_t i = 0; i < h->entries; i++) {
        const char *wrong = take_entry(c, &out->entry[i]);
        if (!wrong && i > 0 && !after(out->entry[i].key, out->entry[i - 1].key))
            wrong = "it is there twice, or out of order";
        if (wrong) {
            snprintf(why, n, "entry %zu: %s", i + 1, wrong);
            return false;
        }
        out->n = i + 1;
    }
    for (size_t i = 0; i < h->lines; i++) {
        fa_archive_line *l = &out->line[i];
        fa_record r;
        if (!take_size(c, FA_LINE_CAP, &l->size)) {
            snprintf(why, n, "record %zu: its size is out of range", i + 1);
            return false;
        }
        l->bytes = c->p;
        c->p += l->size;
        if (!parse_line(&r, l)) {
            snprintf(why, n, "record %zu: not a record", i + 1);
            return false;
        }
        hash_path(l, &r);
        out->n_lines = i + 1;
    }
    if (c->p != c->end)
        snprintf(why, n, "there is more in it than it says");
    return c->p == c->end;
}

bool fa_archive_unpack(fa_archive *out, const char *bytes, size_t size, char *why, size_t n)
{
    archive_head h;
    XXH128_canonical_t sum;
    memset(out, 0, sizeof *out);
    if (size < sizeof h + sizeof sum || memcmp(bytes, archive_magic, sizeof archive_magic) != 0) {
        snprintf(why, n, "not an archive");
        return false;
    }
    memcpy(&h, bytes, sizeof h);
    cursor c = { bytes + sizeof h, bytes + size - sizeof sum };
    if (h.version != ARCHIVE_VERSION) {
        snprintf(why, n, "format version %u; accepted: %d", h.version, ARCHIVE_VERSION);
        return false;
    }
    XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, size - sizeof sum));
    if (h.size != size)
        snprintf(why, n, "%zu bytes, where %llu are meant to be: cut short, or longer", size, (unsigned long long)h.size);
    else if (memcmp(&sum, c.end, sizeof sum) != 0)
        snprintf(why, n, "the checksum does not match");
    else if (h.entries > FA_ARCHIVE_ENTRIES || h.lines > FA_ARCHIVE_LINES || h.zero != 0)
        snprintf(why, n, "its counts are out of range");
    else if (!(out->entry = calloc(h.entries + 1, sizeof *out->entry)) || !(out->line = calloc(h.lines + 1, sizeof *out->line)))
        snprintf(why, n, "memory ran out");
    else
        return take_parts(out, &h, &c, why, n);
    return false;
}

/* Whether a sound file of the key is in the own root's folder. */
static bool there(const fa_root *r, fa_area area, fa_key k)
{
    char folder[3], name[FA_NAME_SIZE];
    const char *trouble;
    fa_entry e = { .image = NULL };
    fa_entry_name(name, k);
    snprintf(folder, sizeof folder, "%.2s", name);
    fa_item i = { .name = name, .named = true, .key = k, .dir = fa_trusted_dir(r->v1, fa_area_name(area), false, &trouble) };
    if (area == FA_AREA_KERNELS && i.dir >= 0) {
        int dir = fa_trusted_dir(i.dir, folder, false, &trouble);
        close(i.dir);
        i.dir = dir;
    }
    if (i.dir < 0)
        return false;
    bool sound = !fa_item_read(&i, &e, false);
    fa_entry_free(&e);
    close(i.dir);
    return sound;
}

static void take_away(const fa_root *r, fa_area area, fa_key k)
{
    char path[80], name[FA_NAME_SIZE];
    fa_entry_name(name, k);
    if (area == FA_AREA_KERNELS)
        snprintf(path, sizeof path, "%s/%.2s/%s", fa_area_name(area), name, name);
    else
        snprintf(path, sizeof path, "%s/%s", fa_area_name(area), name);
    unlinkat(r->v1, path, 0);
}

static fa_status import_entries(fa_store *s, const fa_archive *p, bool trusted, bool *made, fa_archive_count *out)
{
    const fa_root *r = &s->root[s->writer];
    fa_area area = trusted ? FA_AREA_KERNELS : FA_AREA_FOREIGN;
    fa_quota_debt debt = { .n = 0 };
    fa_status st = FA_OK;
    const char *trouble = "";
    for (size_t i = 0; i < p->n && st == FA_OK; i++) {
        fa_key k = p->entry[i].key;
        if (there(r, FA_AREA_KERNELS, k) || there(r, area, k))
            out->entries_there++;
        else if (fa_entry_write(s, area, k, p->entry[i].bytes, p->entry[i].size, &trouble)) {
            made[i] = true;
            out->entries++;
            if (trusted)
                fa_quota_owe(s, &debt, k, p->entry[i].size);
        } else
            st = fa_fail(FA_IO, "%s: a kernel could not be kept: %s; nothing was imported", r->path, trouble);
        if (trusted && st == FA_OK)
            take_away(r, FA_AREA_FOREIGN, k);
    }
    fa_quota_settle(s, &debt);
    return st;
}

/* The hashes of the lines of one file, a table with open addressing; 0 is a free slot. */
typedef struct known {
    uint64_t *slot;
    size_t n, cap; /* cap is a power of two */
    bool oom;
} known;

/* False when it was there already. */
static bool enter(known *k, uint64_t hash)
{
    if (2 * k->n >= k->cap) {
        known grown = { .cap = k->cap ? 2 * k->cap : 1024 };
        grown.slot = calloc(grown.cap, sizeof *grown.slot);
        if (!grown.slot) {
            k->oom = true;
            return true;
        }
        for (size_t i = 0; i < k->cap; i++)
            if (k->slot[i])
                enter(&grown, k->slot[i]);
        free(k->slot);
        *k = grown;
    }
    hash += !hash;
    size_t i = hash & (k->cap - 1);
    while (k->slot[i] && k->slot[i] != hash)
        i = (i + 1) & (k->cap - 1);
    bool fresh = !k->slot[i];
    k->slot[i] = hash;
    k->n += fresh;
    return fresh;
}

static void know(void *user, const char *line, size_t n, size_t number)
{
    (void)number;
    enter(user, XXH3_64bits(line, n));
}

static int by_path(const void *a, const void *b)
{
    const fa_archive_line *x = *(const fa_archive_line *const *)a, *y = *(const fa_archive_line *const *)b;
    int c = memcmp(x->path, y->path, sizeof x->path);
    return c ? c : (x > y) - (x < y);
}

/* The lines of one file: it is read once, and each that it lacks is appended once. */
static fa_status import_file(fa_store *s, const fa_archive *p, const fa_archive_line *const *line, size_t n, fa_archive_count *out)
{
    known k = { .n = 0 };
    fa_record r;
    fa_status st = parse_line(&r, line[0]) ? FA_OK : fa_fail(FA_NOMEM, "no memory for a record");
    if (st == FA_OK)
        fa_record_beside(s, &r, know, &k);
    for (size_t i = 0; i < n && st == FA_OK; i++) {
        bool fresh = enter(&k, XXH3_64bits(line[i]->bytes, line[i]->size));
        if (k.oom)
            st = fa_fail(FA_NOMEM, "no memory for the records of a file");
        else if (!fresh)
            out->lines_there++;
        else if (fa_record_append_line(s, &r, line[i]->bytes, line[i]->size))
            out->lines++;
        else
            st = fa_fail(FA_IO, "%s: record %zu of %zu could not be kept; the same import again adds only what is missing",
                         s->root[s->writer].path, (size_t)(line[i] - p->line) + 1, p->n_lines);
    }
    free(k.slot);
    return st;
}

/* File by file, whatever the order in the archive; within a file in that order. */
static fa_status import_lines(fa_store *s, const fa_archive *p, fa_archive_count *out)
{
    const fa_archive_line **line = malloc((p->n_lines + 1) * sizeof *line);
    fa_status st = line ? FA_OK : fa_fail(FA_NOMEM, "no memory for the order of %zu records", p->n_lines);
    for (size_t i = 0; line && i < p->n_lines; i++)
        line[i] = &p->line[i];
    if (line && p->n_lines)
        qsort(line, p->n_lines, sizeof *line, by_path);
    for (size_t from = 0, to; st == FA_OK && from < p->n_lines; from = to) {
        for (to = from + 1; to < p->n_lines && !memcmp(line[to]->path, line[from]->path, sizeof line[to]->path); to++)
            ;
        st = import_file(s, p, line + from, to - from, out);
    }
    free(line);
    return st;
}

fa_status fa_archive_import(fa_store *s, const char *path, bool trusted, fa_archive_count *out)
{
    char *bytes, why[160] = "";
    size_t size;
    fa_archive p = { NULL, NULL, 0, 0 };
    bool *made = NULL;
    memset(out, 0, sizeof *out);
    fa_status st = fa_input_read(path, FA_ARCHIVE_CAP, FA_INVALID, &bytes, &size);
    out->bytes = (int64_t)size;
    if (st == FA_OK && !fa_archive_unpack(&p, bytes, size, why, sizeof why))
        st = fa_fail(FA_INVALID, "%s: %s; nothing was imported", path, why);
    if (st == FA_OK && s->writer < 0)
        st = fa_fail(FA_IO, "there is no cache root that can be written; FAGEN_CACHE_DIR names one");
    if (st == FA_OK && !(made = calloc(p.n + 1, sizeof *made)))
        st = fa_fail(FA_NOMEM, "%s: no memory", path);
    if (st == FA_OK) {
        st = import_entries(s, &p, trusted, made, out);
        for (size_t i = 0; st != FA_OK && i < p.n; i++)
            if (made[i])
                take_away(&s->root[s->writer], trusted ? FA_AREA_KERNELS : FA_AREA_FOREIGN, p.entry[i].key);
    }
    if (st == FA_OK)
        st = import_lines(s, &p, out);
    free(made);
    fa_archive_free(&p);
    free(bytes);
    return st;
}
