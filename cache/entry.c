/* entry: the file of one compiled kernel, written once and believed only when every byte of it checks. */
#include "entry.h"
#include "quota.h"
#include "root.h"
#include "temp_file.h"
#include "trusted_file.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is bad in the own root goes away, so that it is looked at once and the next put finds room; a folder with something in it
 * goes to quarantine. */
static void discard(fa_store *s, const fa_root *r, int dir, const char *name, const char *why)
{
    const char *trouble;
    fa_store_advise(s, FA_CAUSE_DAMAGE, "cache entry %s/%s/kernels/%.2s/%s is compiled again: %s", r->path, FA_FORMAT_DIR, name, name, why);
    if (!r->writable || unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return;
    int quarantine = fa_trusted_dir(r->v1, "quarantine", true, &trouble);
    if (quarantine >= 0) {
        renameat(dir, name, quarantine, name);
        close(quarantine);
    }
}

static bool get_from(fa_store *s, const fa_root *r, fa_key k, const char *arch, fa_entry *out)
{
    char name[FA_NAME_SIZE], *bytes = NULL;
    const char *trouble = NULL;
    size_t size = 0;
    struct stat st;
    bool hit = false;
    int kernels = -1, dir = r->v1 < 0 ? -1 : fa_root_folder(r, k, name, &kernels, &trouble);
    if (dir >= 0) {
        fa_file_state got = fa_trusted_read(dir, name, FA_FILE_CAP, &bytes, &size, &st, &trouble);
        if (got == FA_FILE_OK) {
            trouble = fa_entry_unpack(out, bytes, size, true);
            hit = !trouble && out->key.lo == k.lo && out->key.hi == k.hi && strcmp(out->arch, arch) == 0;
            if (!hit && !trouble)
                trouble = "it holds another kernel";
            if (!hit)
                fa_entry_free(out);
            out->proved = hit && !(st.st_mode & S_IWUSR);
            if (hit && r->writable)
                fa_quota_touch(dir, name, &st);
        }
        if (!hit && (got == FA_FILE_OK || got == FA_FILE_BAD) && trouble != fa_entry_no_memory)
            discard(s, r, dir, name, trouble);
        close(dir);
    }
    if (kernels >= 0)
        close(kernels);
    free(bytes);
    return hit;
}

/* Its loading killed a process, and another user owns the file. */
static bool shunned(const fa_store *s, const fa_root *r, fa_key k)
{
    for (size_t i = 0; !r->writable && i < s->n_shunned; i++)
        if (s->shunned[i].lo == k.lo && s->shunned[i].hi == k.hi)
            return true;
    return false;
}

bool fa_entry_get(fa_store *s, fa_key k, const char *arch, fa_entry *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < s->n; i++)
        if (!shunned(s, &s->root[i], k) && get_from(s, &s->root[i], k, arch, out))
            return true;
    return false;
}

bool fa_entry_write(fa_store *s, fa_area area, fa_key k, const void *bytes, size_t size, const char **trouble)
{
    const fa_root *r = &s->root[s->writer];
    char bucket[3], name[FA_NAME_SIZE];
    fa_temp_file temp = { .fd = -1 };
    bool ok = false;
    fa_entry_name(name, k);
    snprintf(bucket, sizeof bucket, "%.2s", name);
    int kernels = fa_trusted_dir(r->v1, "kernels", false, trouble);
    int dir = kernels < 0               ? -1
              : area == FA_AREA_KERNELS ? fa_trusted_dir(kernels, bucket, true, trouble)
                                        : fa_trusted_dir(r->v1, fa_area_name(area), true, trouble);
    if (dir >= 0 && fa_temp_file_open(&temp, kernels, trouble)) {
        ok = fa_write_all(temp.fd, bytes, size, trouble);
        if (ok)
            ok = fa_temp_file_publish(&temp, dir, name, trouble);
        fa_temp_file_drop(&temp);
    }
    if (dir >= 0)
        close(dir);
    if (kernels >= 0)
        close(kernels);
    return ok;
}

/* Whether the log named a root when the store was opened, or no cache was asked for. */
static bool named_at_open(const fa_store *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (fa_root_refused(&s->root[i]))
            return true;
    return s->n == 0;
}

bool fa_entry_put(fa_store *s, const fa_entry *e)
{
    if (s->writer < 0) {
        if (!named_at_open(s))
            fa_store_advise(s, FA_CAUSE_PUT,
                            "a kernel could not be kept: the cache %s cannot be written, and each process compiles its own",
                            s->root[0].path);
        return false;
    }
    const char *trouble = "out of memory or too large";
    size_t size = 0;
    char *bytes = fa_entry_pack(e, &size);
    bool ok = bytes && fa_entry_write(s, FA_AREA_KERNELS, e->key, bytes, size, &trouble);
    if (ok)
        fa_quota_keep(s, e->key);
    else
        fa_store_advise(s, FA_CAUSE_PUT, "a kernel could not be kept in %s: %s", s->root[s->writer].path, trouble);
    free(bytes);
    return ok;
}
