/* files: where templates come from. */
#include "files.h"
#include "error.h"
#include "templates.h"
#include "translate.h"
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
        fa_translate_free(&fs->file[i]);
    }
    free(fs->dir);
    *fs = (fa_files){ 0 };
}

/* The name of a file or of a folder: no way leads out of where it is looked for. */
static bool plain(const char *name, size_t n)
{
    return n && *name != '.' && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") >= n;
}

/* "mask.cu" or "pairs/mask.cu". */
static bool accepted(const char *name)
{
    const char *slash = strchr(name, '/');
    return strlen(name) < sizeof((fa_file *)0)->name && (!slash || plain(name, (size_t)(slash - name))) &&
           plain(slash ? slash + 1 : name, strlen(slash ? slash + 1 : name));
}

/* A name without its folder. */
static const char *last_of(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? slash + 1 : name;
}

static const fa_template_file *of_library(const char *last)
{
    const fa_template_file *t = fa_template_files;
    while (t->name && strcmp(t->name, last))
        t++;
    return t->name ? t : NULL;
}

/* The library's folders, each once: the rows of a folder stand together. */
static const fa_template_file *next_folder(const fa_template_file *t)
{
    const char *folder = t ? t->folder : "";
    for (t = t ? t : fa_template_files; t->name && !strcmp(t->folder, folder); t++)
        ;
    return t->name ? t : NULL;
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

/* A folder of the user's folder; *fd is -1 where there is none. A link is refused: it may lead out. */
static fa_status open_folder(const char *dir, const char *folder, int *fd)
{
    struct stat st;
    int top = open(dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    *fd = -1;
    if (top < 0)
        return errno == ENOENT ? FA_OK : fa_fail(FA_IO, "%s: %s", dir, strerror(errno));
    if (!*folder) {
        *fd = top;
        return FA_OK;
    }
    int error = fstatat(top, folder, &st, AT_SYMLINK_NOFOLLOW) ? errno : 0;
    bool link = !error && S_ISLNK(st.st_mode);
    if (!error && S_ISDIR(st.st_mode))
        error = (*fd = openat(top, folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW)) < 0 ? errno : 0;
    close(top);
    if (link)
        return fa_fail(FA_IO, "%s/%s is a link; accepted: a folder, which lies in %s itself", dir, folder, dir);
    return !error || error == ENOENT ? FA_OK : fa_fail(FA_IO, "%s/%s: %s", dir, folder, strerror(error));
}

/* Fills f from one folder of the user's, "" = the top. f->path stays as it was where there is no such file. */
static fa_status from_folder(const char *dir, const char *folder, const char *last, fa_file *f)
{
    char *path;
    int at;
    fa_status st = open_folder(dir, folder, &at);
    if (st != FA_OK || at < 0)
        return st;
    if (asprintf(&path, "%s/%s%s%s", dir, folder, *folder ? "/" : "", last) < 0) {
        close(at);
        return fa_fail(FA_NOMEM, "no memory for the path of %s", last);
    }
    int fd = openat(at, last, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = fd < 0 ? errno : 0;
    close(at);
    if (error && error != ENOENT)
        st = fa_fail(FA_IO, "%s: %s", path, strerror(error));
    if (fd >= 0 && f->path)
        st = fa_fail(FA_TEMPLATE, "%s and %s are both there; accepted: one of them", f->path, path);
    if (fd >= 0 && st == FA_OK) {
        st = read_all(fd, path, &f->owned, &f->size);
        if (st == FA_OK) {
            f->bytes = f->owned;
            f->path = path;
            path = NULL;
            if (!strchr(f->name, '/') && *folder)
                snprintf(f->name, sizeof f->name, "%s/%s", folder, last);
        }
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return st;
}

/* Fills f from the user's folder, where the file may lie at the top, as all did before there were folders. f->path stays NULL where it has
 * no such file. t: the library's file of that name, if f is that. */
static fa_status from_dir(const char *dir, const fa_template_file *t, fa_file *f)
{
    char folder[sizeof f->name];
    const char *slash = strchr(f->name, '/');
    char last[sizeof f->name];
    memcpy(last, last_of(f->name), strlen(last_of(f->name)) + 1);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - f->name) : 0, f->name);
    fa_status st = t || !slash ? from_folder(dir, "", last, f) : FA_OK;
    if (st == FA_OK && slash)
        st = from_folder(dir, folder, last, f);
    for (const fa_template_file *at = NULL; st == FA_OK && !slash && (at = next_folder(at));)
        if (strlen(at->folder) + 1 + strlen(last) < sizeof f->name)
            st = from_folder(dir, at->folder, last, f);
    return st;
}

static fa_status from_library(fa_file *f, const fa_template_file *t)
{
    const fa_template_file *other = t ? NULL : of_library(last_of(f->name));
    if (!t && other)
        return fa_fail(FA_TEMPLATE, "there is no template \"%s\"; accepted: %s/%s", f->name, other->folder, other->name);
    if (!t)
        return fa_fail(FA_TEMPLATE, "there is no template \"%s\"", f->name);
    f->bytes = t->bytes;
    f->size = t->size;
    if (fa_template_chunks[t - fa_template_files].size)
        f->chunk = &fa_template_chunks[t - fa_template_files];
    if (asprintf(&f->path, "templates/%s", f->name) < 0)
        return fa_fail(FA_NOMEM, "no memory for the path of %s", f->name);
    return FA_OK;
}

/* Whether a file that is held is the one that name asks for: a plain name may lie in any of the library's folders. */
static bool is_named(const fa_file *f, const char *name)
{
    const char *slash = strchr(f->name, '/');
    if (!slash || strchr(name, '/') || strcmp(slash + 1, name))
        return !strcmp(f->name, name);
    for (const fa_template_file *at = NULL; (at = next_folder(at));)
        if (strlen(at->folder) == (size_t)(slash - f->name) && !strncmp(at->folder, f->name, strlen(at->folder)))
            return true;
    return false;
}

fa_status fa_files_get(fa_files *fs, int *out, const char *name)
{
    if (!accepted(name))
        return fa_fail(
            FA_TEMPLATE,
            "\"%.80s\" is not the name of a template; accepted: at most %d letters, digits, '_', '-' and '.', of which none begins "
            "with '.', and one folder in front, as in pairs/mask.cu",
            name, (int)sizeof fs->file->name - 1);
    const fa_template_file *t = of_library(last_of(name));
    fa_file f = { .owned = NULL };
    if (t && !strchr(name, '/'))
        snprintf(f.name, sizeof f.name, "%s/%s", t->folder, t->name);
    else
        memcpy(f.name, name, strlen(name) + 1);
    if (t && (strncmp(f.name, t->folder, strlen(t->folder)) || f.name[strlen(t->folder)] != '/'))
        t = NULL;
    for (int i = 0; i < fs->n; i++)
        if (is_named(&fs->file[i], f.name)) {
            *out = i;
            return FA_OK;
        }
    if (fs->n == FA_FILES_MAX)
        return fa_fail(FA_TEMPLATE, "%s is one template file too many; accepted: %d", name, FA_FILES_MAX);
    fa_status st = fs->dir ? from_dir(fs->dir, t, &f) : FA_OK;
    if (st == FA_OK && !f.path)
        st = from_library(&f, t);
    if (st != FA_OK) {
        free(f.owned);
        free(f.path);
        return st;
    }
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
    fa_status st = FA_OK;
    ok = ok && !error;
    for (const fa_template_file *at = NULL; ok && d;) {
        for (struct dirent *e; ok && d && (e = readdir(d));)
            if (plain(e->d_name, strlen(e->d_name)) && strlen(e->d_name) < sizeof fs->file->name && ends_in(e->d_name, suffix))
                ok = add_name(out, n, e->d_name);
        closedir(d);
        d = NULL;
        for (int fd = -1; ok && !d && (at = next_folder(at));) {
            st = open_folder(fs->dir, at->folder, &fd);
            ok = st == FA_OK;
            if (fd >= 0 && !(d = fdopendir(fd))) {
                close(fd);
                ok = false;
            }
        }
    }
    if (d)
        closedir(d);
    if (!ok) {
        fa_files_free_names(*out, *n);
        *out = NULL;
        *n = 0;
        if (st != FA_OK)
            return st;
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
