/* archive: the bytes of an archive taken apart. */
#include "archive.h"
#include "archive_head.h"
#include "metadata.h"
#include "root.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

bool fa_archive_record(fa_record *r, const fa_archive_line *l)
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
        if (!fa_archive_record(&r, l)) {
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
