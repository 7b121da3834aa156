/* import: a journal, and the two ways to be through with it. */
#include "import.h"
#include "gen/error.h"
#include "jsonl.h"
#include "root.h"
#include "temp_file.h"
#include "trusted_file.h"
#include "wait.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OPEN "import"
#define DONE "imported"
#define LOCK "import" /* in locks/ */
#define HEAD "fagen import 1\n"
#define CAP ((size_t)4 << 30)
#define DEAD_SECONDS 3600 /* where locks do not work: no import takes that long */

/* ---- the journal's lines ---- */

typedef struct item {
    enum { END, ADD, HAVE, FILE_LINES, BAD } kind;
    fa_key key;
    char chip[64], file[160];
    int64_t size;
    const char *lines;
    size_t n;
} item;

static bool plain(const char *name)
{
    char clean[192];
    fa_file_name(clean, sizeof clean, name, "");
    return !strcmp(clean, name);
}

/* The next line, and the bytes that belong to it. */
static item next(const char **p, const char *end)
{
    char line[320], hex[33];
    item it = { .kind = BAD };
    long long size;
    unsigned long long n;
    const char *nl = *p < end ? memchr(*p, '\n', (size_t)(end - *p)) : NULL;
    if (!nl || nl - *p >= (ptrdiff_t)sizeof line)
        return it;
    memcpy(line, *p, (size_t)(nl - *p));
    line[nl - *p] = 0;
    *p = nl + 1;
    bool add = sscanf(line, "new %32s", hex) == 1;
    if (!strcmp(line, "end"))
        it.kind = END;
    else if ((add || sscanf(line, "have %32s", hex) == 1) && fa_key_parse(&it.key, hex))
        it.kind = add ? ADD : HAVE;
    else if (sscanf(line, "file %63s %159s %lld %llu", it.chip, it.file, &size, &n) == 4 && plain(it.chip) && plain(it.file) &&
             n <= (uint64_t)(end - *p)) {
        it.kind = FILE_LINES;
        it.size = size;
        it.lines = *p;
        it.n = (size_t)n;
        *p += it.n;
    }
    return it;
}

/* After the head; NULL: it is no journal. */
static const char *begin(const char *text, size_t n, fa_area *area)
{
    char word[16];
    const char *p = text + sizeof HEAD - 1;
    if (n < sizeof HEAD - 1 || memcmp(text, HEAD, sizeof HEAD - 1))
        return NULL;
    for (int a = FA_AREA_KERNELS; a <= FA_AREA_FOREIGN; a++) {
        int k = snprintf(word, sizeof word, "%s\n", fa_area_name((fa_area)a));
        if (n - (sizeof HEAD - 1) >= (size_t)k && !memcmp(p, word, (size_t)k)) {
            *area = (fa_area)a;
            return p + k;
        }
    }
    return NULL;
}

void fa_import_kernel(fa_import *im, fa_key k, bool there)
{
    char hex[33];
    fa_key_print(hex, k);
    fa_text_fmt(&im->text, "%s %s\n", there ? "have" : "new", hex);
}

int64_t fa_import_size(const fa_import *im, const char *chip, const char *file)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "records/%s/%s", chip, file);
    return fstatat(im->store->root[im->store->writer].v1, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : -1;
}

void fa_import_file(fa_import *im, const char *chip, const char *file, int64_t size, const fa_text *lines)
{
    fa_text_fmt(&im->text, "file %s %s %lld %llu\n", chip, file, (long long)size, (unsigned long long)lines->n);
    fa_text_add(&im->text, fa_text_cstr(lines), lines->n);
}

/* ---- what it names, done and undone ---- */

/* False where it is there still. A folder in its place is not the import's. */
static bool remove_kernel(const fa_root *r, fa_area area, fa_key k)
{
    char path[80], name[FA_NAME_SIZE];
    fa_entry_name(name, k);
    if (area == FA_AREA_KERNELS)
        snprintf(path, sizeof path, "%s/%.2s/%s", fa_area_name(area), name, name);
    else
        snprintf(path, sizeof path, "%s/%s", fa_area_name(area), name);
    return unlinkat(r->v1, path, 0) == 0 || errno == ENOENT || errno == EISDIR || errno == ENOTDIR;
}

/* The folder of a file of records, or -1. */
static int folder_of(const fa_root *r, const char *chip, bool make, const char **trouble)
{
    int records = fa_trusted_dir(r->v1, "records", false, trouble);
    int dir = records < 0 ? -1 : fa_trusted_dir(records, chip, make, trouble);
    int why = errno;
    if (records >= 0)
        close(records);
    errno = why;
    return dir;
}

/* After one wait in vain the next files are not waited for. */
static void hurry(fa_wait *w)
{
    w->most = w->over ? 0 : w->most;
}

static bool remove_lines(const fa_root *r, const item *it, fa_wait *w)
{
    const char *trouble;
    int dir = folder_of(r, it->chip, false, &trouble);
    if (dir < 0)
        return errno == ENOENT;
    bool ok = fa_jsonl_take_back(dir, it->file, it->size, it->lines, it->n, w);
    hurry(w);
    close(dir);
    return ok;
}

/* Takes back all that the journal names; false where something is left. */
static bool undo(const fa_root *r, const char *text, size_t n, fa_wait w)
{
    fa_area area;
    bool ok = true;
    const char *p = begin(text, n, &area);
    for (item it; p && (it = next(&p, text + n)).kind < BAD && it.kind != END;) {
        if (it.kind == ADD)
            ok = remove_kernel(r, area, it.key) && ok;
        else if (it.kind == FILE_LINES)
            ok = remove_lines(r, &it, &w) && ok;
    }
    return ok;
}

/* What is trusted now has no copy in foreign/ any more. */
static void conclude(const fa_root *r, const char *text, size_t n)
{
    fa_area area;
    bool ok = true;
    const char *p = begin(text, n, &area);
    for (item it; p && (it = next(&p, text + n)).kind < BAD && it.kind != END;)
        if (area == FA_AREA_KERNELS && it.kind != FILE_LINES)
            ok = remove_kernel(r, FA_AREA_FOREIGN, it.key) && ok;
    if (ok)
        unlinkat(r->v1, DONE, 0);
}

/* Ends what one that died has left; false where that was not possible. The lock is held, where locks work. */
static bool clear(fa_store *s, const fa_root *r, fa_wait w, const char **trouble)
{
    char *text = NULL;
    size_t n = 0;
    bool ok = true;
    if (fa_trusted_read(r->v1, DONE, CAP, &text, &n, NULL, trouble) == FA_FILE_OK)
        conclude(r, text, n);
    free(text);
    fa_file_state got = fa_trusted_read(r->v1, OPEN, CAP, &text, &n, NULL, trouble);
    if (got == FA_FILE_OK)
        ok = undo(r, text, n, w);
    if (!ok)
        *trouble = "a file of it stays";
    else if (got == FA_FILE_TROUBLE)
        ok = false;
    else if (got != FA_FILE_ABSENT) {
        ok = unlinkat(r->v1, OPEN, 0) == 0;
        *trouble = strerror(errno);
        fa_store_advise(s, FA_CAUSE_IMPORT, "an import into %s did not end: it was taken back", r->path);
    }
    free(text);
    return ok;
}

static int open_lock(const fa_root *r)
{
    const char *trouble;
    int locks = fa_trusted_dir(r->v1, "locks", false, &trouble);
    int fd = locks < 0 ? -1 : openat(locks, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (locks >= 0)
        close(locks);
    return fd;
}

fa_status fa_import_begin(fa_import *im, fa_store *s, fa_area area)
{
    const fa_root *r = &s->root[s->writer];
    const char *trouble;
    fa_wait w = { .store = s, .most = -1 };
    *im = (fa_import){ .store = s, .area = area, .lock = open_lock(r) };
    if (im->lock >= 0 && fa_wait_lock(im->lock, &w) != 0) {
        close(im->lock);
        im->lock = -1;
    }
    if (w.over)
        return fa_fail(FA_IO, "%s: another process imports into it for more than %g s (is it stopped?); nothing was imported", r->path,
                       w.most);
    if (!clear(s, r, (fa_wait){ .store = s, .most = -1 }, &trouble))
        return fa_fail(FA_IO, "%s: an import that did not end cannot be taken back: %s; nothing was imported", r->path, trouble);
    fa_text_fmt(&im->text, HEAD "%s\n", fa_area_name(area));
    return FA_OK;
}

void fa_import_end(fa_import *im)
{
    if (im->lock >= 0) {
        flock(im->lock, LOCK_UN); /* a forked child may still hold the descriptor */
        close(im->lock);
        im->lock = -1;
    }
    fa_text_free(&im->text);
}

bool fa_import_save(fa_import *im, const char **trouble)
{
    const fa_root *r = &im->store->root[im->store->writer];
    fa_temp_file temp = { .fd = -1 };
    fa_text_str(&im->text, "end\n");
    if (im->text.oom) {
        *trouble = "no memory";
        return false;
    }
    int kernels = fa_trusted_dir(r->v1, "kernels", false, trouble); /* where temporary files of the dead are swept */
    bool ok = kernels >= 0 && fa_temp_file_open(&temp, kernels, trouble) && fa_write_all(temp.fd, im->text.s, im->text.n, trouble) &&
              fa_temp_file_publish(&temp, r->v1, OPEN, trouble);
    fa_temp_file_drop(&temp);
    if (kernels >= 0)
        close(kernels);
    im->saved = ok;
    return ok;
}

bool fa_import_files(fa_import *im, const char **trouble)
{
    const fa_root *r = &im->store->root[im->store->writer];
    fa_area area;
    bool ok = true;
    fa_wait w = { .store = im->store, .most = -1 };
    const char *p = begin(im->text.s, im->text.n, &area);
    for (item it; ok && (it = next(&p, im->text.s + im->text.n)).kind < BAD && it.kind != END;) {
        if (it.kind != FILE_LINES)
            continue;
        int dir = folder_of(r, it.chip, true, trouble);
        ok = dir >= 0 && fa_jsonl_append_lines(dir, it.file, it.lines, it.n, &w, trouble);
        hurry(&w);
        if (dir >= 0)
            close(dir);
    }
    return ok;
}

bool fa_import_commit(fa_import *im, const char **trouble)
{
    const fa_root *r = &im->store->root[im->store->writer];
    if (im->saved && renameat(r->v1, OPEN, r->v1, DONE) != 0) {
        *trouble = strerror(errno);
        return false;
    }
    if (im->saved)
        fsync(r->v1);
    conclude(r, im->text.s, im->text.n);
    return true;
}

void fa_import_undo(fa_import *im)
{
    const fa_root *r = &im->store->root[im->store->writer];
    if (undo(r, fa_text_cstr(&im->text), im->text.n, (fa_wait){ .store = im->store, .most = -1 }))
        unlinkat(r->v1, OPEN, 0);
}

/* Where locks do not work, only its age tells that its owner is dead. */
static bool old(const fa_root *r)
{
    static const char *const names[] = { OPEN, DONE };
    struct stat st;
    for (int i = 0; i < 2; i++)
        if (fstatat(r->v1, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && llabs((long long)(time(NULL) - st.st_mtime)) <= DEAD_SECONDS)
            return false;
    return true;
}

void fa_import_sweep(fa_store *s, const fa_root *r)
{
    const char *trouble;
    if (faccessat(r->v1, OPEN, F_OK, 0) != 0 && faccessat(r->v1, DONE, F_OK, 0) != 0)
        return;
    fa_wait now = { .most = 0 };
    int fd = open_lock(r), why = fd < 0 ? errno : fa_wait_lock(fd, &now);
    if (!why || (!now.over && old(r)))
        clear(s, r, (fa_wait){ .most = 0 }, &trouble);
    if (fd >= 0)
        close(fd);
}
