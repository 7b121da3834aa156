/* files: where templates come from. */
#include "files.h"
#include "error.h"
#include "templates.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

fa_status fa_files_check(const char *dir, const char *named)
{
    DIR *d = opendir(dir);
    if (!d)
        return fa_fail(errno == ENOMEM ? FA_NOMEM : FA_IO, "%s is \"%s\": %s; accepted: a folder that can be listed", named, dir,
                       strerror(errno));
    closedir(d);
    return FA_OK;
}

fa_status fa_files_open(fa_files *fs, const char *dir)
{
    *fs = (fa_files){ 0 };
    if (!dir || !*dir)
        return FA_OK;
    fa_status st = fa_files_check(dir, "template_dir, or FAGEN_TEMPLATE_DIR,");
    if (st != FA_OK)
        return st;
    fs->dir = strdup(dir);
    return fs->dir ? FA_OK : fa_fail(FA_NOMEM, "no memory for the name of template_dir");
}

void fa_files_close(fa_files *fs)
{
    for (int i = 0; i < fs->n; i++) {
        free(fs->file[i].owned);
        free(fs->file[i].path);
        fa_text_free(&fs->file[i].code);
    }
    free(fs->dir);
    *fs = (fa_files){ 0 };
}

/* Plain names only, so that an include cannot leave the folder. */
static bool plain(const char *name)
{
    size_t n = strlen(name);
    return n && n < sizeof((fa_file *)0)->name && *name != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == n;
}

static fa_status read_all(int fd, const char *path, char **bytes, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st))
        return fa_fail(FA_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return fa_fail(FA_IO, "%s is not a regular file", path);
    if (st.st_size > FA_FILE_BYTES)
        return fa_fail(FA_IO, "%s has %lld bytes; accepted: at most %d", path, (long long)st.st_size, FA_FILE_BYTES);
    char *s = malloc((size_t)st.st_size + 1);
    if (!s)
        return fa_fail(FA_NOMEM, "no memory for %s", path);
    size_t n = 0;
    while (n < (size_t)st.st_size) {
        ssize_t r = read(fd, s + n, (size_t)st.st_size - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0) {
            free(s);
            return fa_fail(FA_IO, "%s: %s", path, strerror(errno));
        }
        if (!r)
            break;
        n += (size_t)r;
    }
    s[n] = 0;
    *bytes = s;
    *size = n;
    return FA_OK;
}

/* Fills f from the user's folder. f->path stays NULL where the folder has no such file. */
static fa_status from_dir(const char *dir, fa_file *f)
{
    char *path;
    if (asprintf(&path, "%s/%s", dir, f->name) < 0)
        return fa_fail(FA_NOMEM, "no memory for the path of %s", f->name);
    fa_status st = FA_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        if (errno != ENOENT)
            st = fa_fail(FA_IO, "%s: %s", path, strerror(errno));
    } else {
        st = read_all(fd, path, &f->owned, &f->size);
        close(fd);
    }
    if (fd < 0 || st != FA_OK) {
        free(path);
        return st;
    }
    f->bytes = f->owned;
    f->path = path;
    return FA_OK;
}

static fa_status from_library(fa_file *f)
{
    const fa_template_file *t = fa_template_files;
    while (t->name && strcmp(t->name, f->name))
        t++;
    if (!t->name)
        return fa_fail(FA_TEMPLATE, "there is no template \"%s\"", f->name);
    f->bytes = t->bytes;
    f->size = t->size;
    if (asprintf(&f->path, "templates/%s", f->name) < 0)
        return fa_fail(FA_NOMEM, "no memory for the path of %s", f->name);
    return FA_OK;
}

fa_status fa_files_get(fa_files *fs, int *out, const char *name)
{
    for (int i = 0; i < fs->n; i++)
        if (!strcmp(fs->file[i].name, name)) {
            *out = i;
            return FA_OK;
        }
    if (!plain(name))
        return fa_fail(FA_TEMPLATE, "\"%.80s\" is not the name of a template; accepted: letters, digits, '_', '-' and '.', no folder",
                       name);
    if (fs->n == FA_FILES_MAX)
        return fa_fail(FA_TEMPLATE, "%s is one template file too many; accepted: %d", name, FA_FILES_MAX);
    fa_file f = { .owned = NULL };
    memcpy(f.name, name, strlen(name) + 1);
    fa_status st = fs->dir ? from_dir(fs->dir, &f) : FA_OK;
    if (st == FA_OK && !f.path)
        st = from_library(&f);
    if (st != FA_OK)
        return st;
    *out = fs->n;
    fs->file[fs->n++] = f;
    return FA_OK;
}

static bool ends_in(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n > m && !strcmp(s + n - m, suffix);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends a copy of name unless it is there. */
static bool add_name(char ***names, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp((*names)[i], name))
            return true;
    char **grown = realloc(*names, (*n + 1) * sizeof *grown);
    if (!grown)
        return false;
    *names = grown;
    return (grown[*n] = strdup(name)) && ++*n;
}

fa_status fa_files_names(const fa_files *fs, const char *suffix, char ***out, size_t *n)
{
    bool ok = true;
    *out = NULL;
    *n = 0;
    for (const fa_template_file *t = fa_template_files; ok && t->name; t++)
        if (ends_in(t->name, suffix))
            ok = add_name(out, n, t->name);
    DIR *d = fs->dir ? opendir(fs->dir) : NULL;
    int error = fs->dir && !d ? errno : 0;
    if (error)
        ok = false;
    for (struct dirent *e; ok && d && (e = readdir(d));)
        if (plain(e->d_name) && ends_in(e->d_name, suffix))
            ok = add_name(out, n, e->d_name);
    if (d)
        closedir(d);
    if (!ok) {
        fa_files_free_names(*out, *n);
        *out = NULL;
        *n = 0;
        return error && error != ENOMEM ? fa_fail(FA_IO, "template_dir \"%s\" cannot be listed: %s", fs->dir, strerror(error))
                                        : fa_fail(FA_NOMEM, "no memory for the names of the templates");
    }
    if (*n)
        qsort(*out, *n, sizeof **out, by_name);
    return FA_OK;
}

void fa_files_free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

bool fa_file_line(const fa_file *f, int line, const char **s, size_t *n)
{
    const char *at = f->bytes, *end = f->bytes + f->size;
    for (; at < end && line > 1; line--) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        at = nl ? nl + 1 : end;
    }
    if (at >= end || line < 1)
        return false;
    const char *nl = memchr(at, '\n', (size_t)(end - at));
    *s = at;
    *n = (size_t)((nl ? nl : end) - at);
    return true;
}
