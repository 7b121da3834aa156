/* entry: the file of one compiled kernel, written once and believed only when every byte of it checks. */
#include "entry.h"
#include "place.h"
#include "root.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header is written as it lies in memory, little-endian");

typedef struct header {
    char magic[8];
    uint32_t version, ptx;
    uint64_t key_lo, key_hi;
    char arch[16];
    uint64_t about_size, image_size, log_size; /* in this order behind the header, then the checksum */
} header;
_Static_assert(sizeof(header) == 72, "no padding");

static const char magic[8] = "fagen.K\n";
#define SUM_SIZE sizeof(XXH128_canonical_t)
#define NAME_SIZE 37 /* 32 hex digits, ".fak", NUL */

void fa_entry_free(fa_entry *e)
{
    if (!e)
        return;
    free(e->image);
    free(e->log);
    free(e->about);
    memset(e, 0, sizeof *e);
}

static void names(char bucket[3], char name[NAME_SIZE], fa_key k)
{
    fa_key_print(name, k);
    memcpy(bucket, name, 2);
    bucket[2] = 0;
    memcpy(name + 32, ".fak", 5);
}

static int kernels_dir(const fa_root *r)
{
    const char *trouble;
    return r->v1 < 0 ? -1 : fa_place_dir(r->v1, "kernels", false, &trouble);
}

static char *copy(const char *from, uint64_t n)
{
    char *to = malloc(n + 1);
    if (to) {
        memcpy(to, from, n);
        to[n] = 0;
    }
    return to;
}

const char *fa_entry_unpack(fa_entry *out, const char *bytes, size_t size, bool with_image)
{
    header h;
    memset(out, 0, sizeof *out);
    if (size < sizeof h + SUM_SIZE)
        return "shorter than a header";
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return "not a kernel entry";
    if (h.version != FA_FORMAT_VERSION)
        return "another format version";
    uint64_t room = size - sizeof h - SUM_SIZE;
    if (h.about_size > room || h.image_size > room - h.about_size || h.log_size != room - h.about_size - h.image_size)
        return "lengths do not add up";
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, size - SUM_SIZE));
    if (memcmp(&sum, bytes + size - SUM_SIZE, SUM_SIZE) != 0)
        return "checksum does not match";
    if (h.ptx > 1 || memchr(h.arch, 0, sizeof out->arch) == NULL)
        return "fields out of range";
    out->key = (fa_key){h.key_lo, h.key_hi};
    memcpy(out->arch, h.arch, sizeof out->arch);
    out->ptx = (int32_t)h.ptx;
    out->about_size = h.about_size;
    out->image_size = h.image_size;
    out->log_size = h.log_size;
    const char *p = bytes + sizeof h;
    out->about = copy(p, h.about_size);
    out->image = with_image ? copy(p + h.about_size, h.image_size) : NULL;
    out->log = copy(p + h.about_size + h.image_size, h.log_size);
    if (!out->about || !out->log || (with_image && !out->image)) {
        fa_entry_free(out);
        return "out of memory";
    }
    return NULL;
}

/* A bad file of our own root goes away, so that it is looked at once and the next put finds room. */
static void discard(fa_store *s, const fa_root *r, int dir, const char *name, const char *why)
{
    fa_store_advise(s, FA_CAUSE_DAMAGE, "cache entry %s/%s/kernels/%.2s/%s is compiled anew: %s", r->path, FA_FORMAT_DIR,
                    name, name, why);
    if (r->writable && unlinkat(dir, name, 0) != 0)
        unlinkat(dir, name, AT_REMOVEDIR);
}

static bool get_from(fa_store *s, const fa_root *r, fa_key k, const char *arch, fa_entry *out)
{
    char bucket[3], name[NAME_SIZE], *bytes = NULL;
    const char *trouble = NULL;
    size_t size = 0;
    bool hit = false;
    names(bucket, name, k);
    int kernels = kernels_dir(r);
    int dir = kernels < 0 ? -1 : fa_place_dir(kernels, bucket, false, &trouble);
    if (dir >= 0) {
        fa_place got = fa_place_read(dir, name, FA_FILE_CAP, &bytes, &size, &trouble);
        if (got == FA_PLACE_OK) {
            trouble = fa_entry_unpack(out, bytes, size, true);
            hit = !trouble && out->key.lo == k.lo && out->key.hi == k.hi && strcmp(out->arch, arch) == 0;
            if (!hit && !trouble)
                trouble = "it holds another kernel";
        }
        if (!hit && (got == FA_PLACE_OK || got == FA_PLACE_BAD)) {
            fa_entry_free(out);
            discard(s, r, dir, name, trouble);
        }
        close(dir);
    }
    if (kernels >= 0)
        close(kernels);
    free(bytes);
    return hit;
}

bool fa_entry_get(fa_store *s, fa_key k, const char *arch, fa_entry *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < s->n; i++)
        if (get_from(s, &s->root[i], k, arch, out))
            return true;
    return false;
}

/* The whole file in one buffer, checksum included. */
static char *pack(const fa_entry *e, size_t *size)
{
    header h = {.version = FA_FORMAT_VERSION, .ptx = e->ptx ? 1 : 0, .key_lo = e->key.lo, .key_hi = e->key.hi,
                .about_size = e->about_size, .image_size = e->image_size, .log_size = e->log_size};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.arch, e->arch, sizeof e->arch);
    const struct {
        const void *bytes;
        size_t size;
    } part[] = {{&h, sizeof h}, {e->about, e->about_size}, {e->image, e->image_size}, {e->log, e->log_size}};
    size_t n = SUM_SIZE;
    for (size_t i = 0; i < 4; i++) {
        if (part[i].size > FA_FILE_CAP)
            return NULL;
        n += part[i].size;
    }
    char *buf = n > FA_FILE_CAP ? NULL : malloc(n);
    if (!buf)
        return NULL;
    char *p = buf;
    for (size_t i = 0; i < 4; i++)
        if (part[i].size) {
            memcpy(p, part[i].bytes, part[i].size);
            p += part[i].size;
        }
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(buf, n - SUM_SIZE));
    memcpy(p, &sum, SUM_SIZE);
    *size = n;
    return buf;
}

/* A new file that nobody else has: the names of threads, processes and hosts that share the directory never meet. */
static int temporary(int dir, char name[64])
{
    for (int attempt = 0; attempt < 16; attempt++) {
        uint64_t r[2];
        if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r)
            return -1;
        snprintf(name, 64, ".put-%016llx%016llx", (unsigned long long)r[0], (unsigned long long)r[1]);
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

bool fa_entry_put(fa_store *s, const fa_entry *e)
{
    if (s->writer < 0)
        return false;
    const fa_root *r = &s->root[s->writer];
    char bucket[3], name[NAME_SIZE], temp[64] = "";
    const char *trouble = "out of memory or too large";
    size_t size = 0;
    bool ok = false;
    int kernels = -1, dir = -1, fd = -1;
    names(bucket, name, e->key);
    char *bytes = pack(e, &size);
    if (!bytes)
        goto done;
    kernels = kernels_dir(r);
    dir = kernels < 0 ? -1 : fa_place_dir(kernels, bucket, true, &trouble);
    if (dir < 0)
        goto done;
    fd = temporary(kernels, temp);
    if (fd < 0) {
        trouble = strerror(errno);
        temp[0] = 0;
        goto done;
    }
    ok = fa_place_write(fd, bytes, size) && fsync(fd) == 0;
    ok = close(fd) == 0 && ok; /* some network file systems tell of a full disk only here */
    ok = ok && renameat(kernels, temp, dir, name) == 0;
    if (!ok)
        trouble = strerror(errno);
    else
        fsync(dir); /* the entry is whole either way; this only makes it last */
done:
    if (!ok) {
        fa_store_advise(s, FA_CAUSE_PUT, "a kernel could not be kept in %s: %s", r->path, trouble);
        if (temp[0])
            unlinkat(kernels, temp, 0);
    }
    if (dir >= 0)
        close(dir);
    if (kernels >= 0)
        close(kernels);
    free(bytes);
    return ok;
}

static int visit(const fa_root *r, const char *bucket, int dir, const char *name,
                 int (*f)(void *user, const fa_entry *e, const char *path, const char *damaged), void *user)
{
    fa_entry e = {0};
    fa_key k;
    char *bytes = NULL, hex[33];
    const char *damaged = NULL;
    size_t size = 0;
    fa_text path = {0};
    snprintf(hex, sizeof hex, "%.32s", name);
    bool named = strlen(name) == NAME_SIZE - 1 && strcmp(name + 32, ".fak") == 0 && fa_key_parse(&k, hex);
    if (fa_place_read(dir, name, FA_FILE_CAP, &bytes, &size, &damaged) == FA_PLACE_OK)
        damaged = fa_entry_unpack(&e, bytes, size, false);
    if (!damaged && (!named || e.key.lo != k.lo || e.key.hi != k.hi))
        damaged = "its name is not its key";
    fa_text_fmt(&path, "%s/%s/kernels/%s/%s", r->path, FA_FORMAT_DIR, bucket, name);
    int rc = f(user, &e, fa_text_cstr(&path), damaged);
    fa_text_free(&path);
    fa_entry_free(&e);
    free(bytes);
    return rc;
}

static int each_in(const fa_root *r, const char *bucket, int dir,
                   int (*f)(void *user, const fa_entry *e, const char *path, const char *damaged), void *user)
{
    int rc = 0;
    DIR *d = fdopendir(dir);
    if (!d) {
        close(dir);
        return 0;
    }
    for (struct dirent *e; rc == 0 && (e = readdir(d));)
        if (e->d_name[0] != '.')
            rc = visit(r, bucket, dirfd(d), e->d_name, f, user);
    closedir(d);
    return rc;
}

int fa_entry_each(fa_store *s, int (*f)(void *user, const fa_entry *e, const char *path, const char *damaged), void *user)
{
    int rc = 0;
    for (size_t i = 0; i < s->n && rc == 0; i++) {
        int kernels = kernels_dir(&s->root[i]);
        for (int b = 0; kernels >= 0 && b < 256 && rc == 0; b++) {
            char bucket[8];
            const char *trouble;
            snprintf(bucket, sizeof bucket, "%02x", b);
            int dir = fa_place_dir(kernels, bucket, false, &trouble);
            if (dir >= 0)
                rc = each_in(&s->root[i], bucket, dir, f, user);
        }
        if (kernels >= 0)
            close(kernels);
    }
    return rc;
}
