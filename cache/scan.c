/* scan: a walk over the folders of every root. */
#include "scan.h"
#include "quota.h"
#include "root.h"
#include "trusted_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct walk {
    fa_item item;
    const fa_root *root;
    fa_item_fn *f;
    void *user;
} walk;

static int visit(walk *w, int dir, const char *folder, const char *name)
{
    struct stat st;
    char hex[33];
    fa_text path = { 0 };
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    fa_text_fmt(&path, "%s/%s/%s%s%s/%s", w->root->path, FA_FORMAT_DIR, fa_area_name(w->item.area), folder[0] ? "/" : "", folder, name);
    snprintf(hex, sizeof hex, "%.32s", name);
    fa_item *i = &w->item;
    i->dir = dir;
    i->name = name;
    i->path = fa_text_cstr(&path);
    i->size = S_ISREG(st.st_mode) ? st.st_size : 0;
    i->used = fa_quota_used(&st);
    i->proved = S_ISREG(st.st_mode) && !(st.st_mode & S_IWUSR);
    i->named = strncmp(name, folder, strlen(folder)) == 0 && strlen(name) == FA_NAME_SIZE - 1 && strcmp(name + 32, ".fak") == 0 &&
               fa_key_parse(&i->key, hex);
    int rc = w->f(w->user, i);
    fa_text_free(&path);
    return rc;
}

/* Closes dir. */
static int walk_folder(walk *w, int dir, const char *folder)
{
    int rc = 0;
    DIR *d = fa_place_names(dir);
    if (!d)
        return 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d));)
        if (e->d_name[0] != '.')
            rc = visit(w, dirfd(d), folder, e->d_name);
    closedir(d);
    return rc;
}

#define FOLDERS 256 /* of kernels, by the first two digits of their keys */

/* Which of them there are: opening each costs more than all else of a scan. All may be, where their names cannot be read. */
static void find_folders(int kernels, bool there[FOLDERS])
{
    static const char digits[] = "0123456789abcdef";
    DIR *d = fa_place_names(openat(kernels, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    memset(there, 0, FOLDERS * sizeof *there);
    errno = d ? 0 : EIO;
    for (struct dirent *e; d && (e = readdir(d)); errno = 0) {
        const char *high = e->d_name[0] ? strchr(digits, e->d_name[0]) : NULL,
                   *low = high && e->d_name[1] ? strchr(digits, e->d_name[1]) : NULL;
        if (low && !e->d_name[2])
            there[(high - digits) * 16 + (low - digits)] = true;
    }
    if (errno)
        memset(there, 1, FOLDERS * sizeof *there);
    if (d)
        closedir(d);
}

static int walk_root(walk *w)
{
    bool there[FOLDERS] = { false };
    const char *trouble;
    int rc = 0, kernels = fa_trusted_dir(w->root->v1, "kernels", false, &trouble);
    w->item.area = FA_AREA_KERNELS;
    if (kernels >= 0)
        find_folders(kernels, there);
    for (int b = 0; kernels >= 0 && b < FOLDERS && rc == 0; b++) {
        char folder[8];
        if (!there[b])
            continue;
        snprintf(folder, sizeof folder, "%02x", (unsigned)b);
        rc = walk_folder(w, fa_trusted_dir(kernels, folder, false, &trouble), folder);
    }
    if (kernels >= 0)
        close(kernels);
    for (int b = FA_AREA_FOREIGN; b < FA_AREAS && rc == 0; b++) {
        w->item.area = (fa_area)b;
        rc = walk_folder(w, fa_trusted_dir(w->root->v1, fa_area_name((fa_area)b), false, &trouble), "");
    }
    return rc;
}

int fa_scan(fa_store *s, fa_item_fn *f, void *user)
{
    int rc = 0;
    for (size_t i = 0; i < s->n && rc == 0; i++) {
        walk w = { .item = { .root = i, .writable = s->root[i].writable }, .root = &s->root[i], .f = f, .user = user };
        if (s->root[i].v1 >= 0)
            rc = walk_root(&w);
    }
    return rc;
}

const char *fa_item_read(const fa_item *i, fa_entry *out, bool with_image)
{
    char *bytes = NULL;
    size_t size = 0;
    const char *damaged = NULL;
    memset(out, 0, sizeof *out);
    if (fa_trusted_read(i->dir, i->name, FA_FILE_CAP, &bytes, &size, NULL, &damaged) == FA_FILE_OK)
        damaged = fa_entry_unpack(out, bytes, size, with_image);
    if (!damaged && (!i->named || out->key.lo != i->key.lo || out->key.hi != i->key.hi))
        damaged = "its name is not its key";
    out->proved = i->proved;
    free(bytes);
    return damaged;
}

/* A folder with something in it: one level is enough for what a careless copy leaves. */
static bool remove_folder(int at, const char *name)
{
    DIR *d = fa_place_names(openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    return unlinkat(at, name, AT_REMOVEDIR) == 0;
}

bool fa_item_remove(const fa_item *i)
{
    return i->writable && (unlinkat(i->dir, i->name, 0) == 0 || errno == ENOENT || remove_folder(i->dir, i->name));
}

typedef struct each {
    int (*f)(void *user, const fa_entry *e, const char *path, const char *damaged);
    void *user;
} each;

static int read_one(void *user, const fa_item *i)
{
    const each *w = user;
    fa_entry e;
    if (i->area != FA_AREA_KERNELS)
        return 0;
    const char *damaged = fa_item_read(i, &e, false);
    int rc = w->f(w->user, &e, i->path, damaged);
    fa_entry_free(&e);
    return rc;
}

int fa_entry_each(fa_store *s, int (*f)(void *user, const fa_entry *e, const char *path, const char *damaged), void *user)
{
    each w = { f, user };
    return fa_scan(s, read_one, &w);
}
