/* archive_export: the writer of archives, entry by entry, so that a large store needs little memory. */
#include "archive.h"
#include "archive_head.h"
#include "gen/error.h"
#include "output.h"
#include "root.h"
#include "trusted_file.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* What is to be written: keys and the root each lies in, then the lines. */
typedef struct pick {
    fa_key key;
    size_t root;
} pick;

typedef struct plan {
    fa_store *store;
    const char *arch;
    pick *p;
    size_t n, cap;
    fa_text lines; /* each with its size before it */
    size_t n_lines, skipped;
    bool oom;
} plan;

static int choose(void *user, const fa_item *i)
{
    plan *pl = user;
    fa_entry e;
    if (i->area != FA_AREA_KERNELS)
        return 0;
    bool sound = !fa_item_read(i, &e, false), ours = sound && (!pl->arch || !strcmp(pl->arch, e.arch));
    if (!sound || (ours && fa_archive_doubt(&e)))
        pl->skipped++;
    else if (ours) {
        if (pl->n == pl->cap) {
            size_t cap = pl->cap ? 2 * pl->cap : 256;
            pick *grown = realloc(pl->p, cap * sizeof *grown);
            pl->oom = !grown;
            pl->p = grown ? grown : pl->p;
            pl->cap = grown ? cap : pl->cap;
        }
        if (!pl->oom)
            pl->p[pl->n++] = (pick){ i->key, i->root };
    }
    fa_entry_free(&e);
    return pl->oom;
}

static int by_key(const void *a, const void *b)
{
    const pick *x = a, *y = b;
    if (x->key.hi != y->key.hi)
        return (x->key.hi > y->key.hi) - (x->key.hi < y->key.hi);
    if (x->key.lo != y->key.lo)
        return (x->key.lo > y->key.lo) - (x->key.lo < y->key.lo);
    return (x->root > y->root) - (x->root < y->root);
}

/* Sorted, each key once, from the first root that has it. */
static void once_each(plan *pl)
{
    size_t kept = 0;
    if (pl->n)
        qsort(pl->p, pl->n, sizeof *pl->p, by_key);
    for (size_t i = 0; i < pl->n; i++)
        if (kept == 0 || pl->p[i].key.hi != pl->p[kept - 1].key.hi || pl->p[i].key.lo != pl->p[kept - 1].key.lo)
            pl->p[kept++] = pl->p[i];
    pl->n = kept;
}

static void add_line(void *user, const fa_record_line *line)
{
    plan *pl = user;
    uint64_t size = line->size;
    if (!line->record || (pl->arch && strcmp(pl->arch, line->record->arch)))
        return;
    fa_text_add(&pl->lines, (const char *)&size, sizeof size);
    fa_text_add(&pl->lines, line->text, line->size);
    pl->n_lines++;
}

/* The file that is written, hashed on the way. */
typedef struct sink {
    fa_output out;
    XXH3_state_t *hash;
    int64_t size;
    fa_status status; /* of the first failure, whose message is the thread's last */
} sink;

static void put(sink *k, const void *bytes, size_t n)
{
    if (k->status != FA_OK)
        return;
    XXH3_128bits_update(k->hash, bytes, n);
    k->size += (int64_t)n;
    k->status = fa_output_write(&k->out, bytes, n);
}

static void put_entry(sink *k, fa_store *s, const pick *p)
{
    char name[FA_NAME_SIZE], *bytes = NULL;
    const char *trouble = "gone";
    size_t n = 0;
    int kernels, dir = fa_root_folder(&s->root[p->root], p->key, name, &kernels, &trouble);
    if (dir < 0 || fa_trusted_read(dir, name, FA_FILE_CAP, &bytes, &n, NULL, &trouble) != FA_FILE_OK)
        k->status = fa_fail(FA_IO, "%s: cannot be written: the entry %s: %s", k->out.path, name, trouble);
    uint64_t size = n;
    put(k, name, 32);
    put(k, &size, sizeof size);
    put(k, bytes, n);
    free(bytes);
    if (dir >= 0)
        close(dir);
    if (kernels >= 0)
        close(kernels);
}

/* Twice: once to learn the size that the head names, where files may have been evicted since the census. */
static int64_t measure(fa_store *s, plan *pl)
{
    int64_t size = (int64_t)(sizeof(archive_head) + pl->lines.n + sizeof(XXH128_canonical_t));
    size_t kept = 0;
    for (size_t i = 0; i < pl->n; i++) {
        char path[80], name[FA_NAME_SIZE];
        struct stat st;
        fa_entry_name(name, pl->p[i].key);
        snprintf(path, sizeof path, "kernels/%.2s/%s", name, name);
        if (fstatat(s->root[pl->p[i].root].v1, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        size += 40 + st.st_size;
        pl->p[kept++] = pl->p[i];
    }
    pl->n = kept;
    return size;
}

static fa_status write_all(fa_store *s, plan *pl, const char *path, fa_archive_count *out)
{
    XXH128_canonical_t sum;
    archive_head h = { .version = ARCHIVE_VERSION, .lines = (uint32_t)pl->n_lines, .size = (uint64_t)measure(s, pl) };
    memcpy(h.magic, archive_magic, sizeof h.magic);
    h.entries = (uint32_t)pl->n;
    if (pl->n > FA_ARCHIVE_ENTRIES || pl->n_lines > FA_ARCHIVE_LINES ||
        h.size > FA_ARCHIVE_CAP) /* NO BRANCH: 65536 kernels take a test too long */
        return fa_fail(FA_INVALID, "%s: %zu kernels, %zu records and %llu bytes; accepted: at most %d, %d and %zu; --arch makes them fewer",
                       path, pl->n, pl->n_lines, (unsigned long long)h.size, FA_ARCHIVE_ENTRIES, FA_ARCHIVE_LINES, FA_ARCHIVE_CAP);
    sink k = { .hash = XXH3_createState() };
    if (!k.hash)
        return fa_fail(FA_NOMEM, "%s: no memory", path);
    XXH3_128bits_reset(k.hash);
    k.status = fa_output_open(&k.out, path);
    put(&k, &h, sizeof h);
    for (size_t i = 0; i < pl->n && k.status == FA_OK; i++)
        put_entry(&k, s, &pl->p[i]);
    put(&k, fa_text_cstr(&pl->lines), pl->lines.n);
    XXH128_canonicalFromHash(&sum, XXH3_128bits_digest(k.hash));
    put(&k, &sum, sizeof sum);
    XXH3_freeState(k.hash);
    if (k.status == FA_OK && (uint64_t)k.size != h.size)
        k.status = fa_fail(FA_IO, "%s: cannot be written: an entry changed meanwhile; once more", path);
    fa_status closed = fa_output_close(&k.out, k.status == FA_OK);
    if (k.status != FA_OK || closed != FA_OK)
        return k.status != FA_OK ? k.status : closed;
    out->entries = pl->n;
    out->lines = pl->n_lines;
    out->skipped = pl->skipped;
    out->bytes = k.size;
    return FA_OK;
}

fa_status fa_archive_export(fa_store *s, const char *path, const char *arch, bool with_records, fa_archive_count *out)
{
    plan pl = { .store = s, .arch = arch };
    memset(out, 0, sizeof *out);
    fa_scan(s, choose, &pl);
    once_each(&pl);
    if (with_records)
        fa_records_each(s, NULL, NULL, add_line, &pl);
    fa_status st = pl.oom || pl.lines.oom ? fa_fail(FA_NOMEM, "%s: no memory", path) : write_all(s, &pl, path, out);
    fa_text_free(&pl.lines);
    free(pl.p);
    return st;
}
