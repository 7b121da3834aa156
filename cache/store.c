/* store: the search path of cache roots. */
#include "store.h"
#include "import.h"
#include "load_marker.h"
#include "root.h"
#include "temp_file.h"
#include "trusted_file.h"
#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* The home directory: HOME, else the passwd entry of the numeric uid; false in a container that has neither. */
static bool home(fa_text *out)
{
    const char *h = secure_getenv("HOME");
    if (h && h[0] == '/') {
        fa_text_str(out, h);
        return true;
    }
    struct passwd pw, *found = NULL;
    char buf[4096];
    if (getpwuid_r(geteuid(), &pw, buf, sizeof buf, &found) != 0 || !found || !found->pw_dir || found->pw_dir[0] != '/')
        return false;
    fa_text_str(out, found->pw_dir);
    return true;
}

static void default_path(fa_text *out)
{
    const char *env = secure_getenv("FAGEN_CACHE_DIR");
    const char *xdg = secure_getenv("XDG_CACHE_HOME");
    if (env)
        fa_text_str(out, env);
    else if (xdg && xdg[0] == '/')
        fa_text_fmt(out, "%s/fagen", xdg);
    else if (home(out))
        fa_text_str(out, "/.cache/fagen");
}

/* mkdir -p with mode 0700 for all that is missing; the last component's failure shows when it is opened. */
static void make_parents(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return;
    for (char *p = copy + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(copy, 0700);
            *p = '/';
        }
    mkdir(copy, 0700);
    free(copy);
}

/* Whether new files can be made: permission, and a file system that is not read-only. */
static bool root_writable(int root, int *v1)
{
    static const char *const dirs[] = { "kernels", "records", "locks", "loading" };
    const char *trouble;
    struct stat st;
    if (fstat(root, &st) != 0 || st.st_uid != geteuid() || faccessat(root, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return false;
    *v1 = fa_trusted_dir(root, FA_FORMAT_DIR, true, &trouble);
    if (*v1 < 0)
        return false;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        int fd = fa_trusted_dir(*v1, dirs[i], true, &trouble);
        if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
            if (fd >= 0)
                close(fd);
            close(*v1);
            *v1 = -1;
            return false;
        }
        if (i == 0)
            fa_temp_file_sweep(fd);
        close(fd);
    }
    return true;
}

/* want_writer: no earlier root takes new files, so this one may be made and used for them. */
static void root_open(fa_store *s, fa_root *r, bool want_writer)
{
    const char *trouble = "";
    r->v1 = -1;
    if (want_writer)
        make_parents(r->path);
    int fd = fa_trusted_dir(AT_FDCWD, r->path, false, &trouble);
    if (fd < 0) {
        snprintf(r->trouble, sizeof r->trouble, "%s", trouble);
        return;
    }
    r->writable = want_writer && root_writable(fd, &r->v1);
    if (!r->writable)
        r->v1 = fa_trusted_dir(fd, FA_FORMAT_DIR, false, &trouble);
    if (r->v1 < 0)
        snprintf(r->trouble, sizeof r->trouble, "%s: %s", FA_FORMAT_DIR, trouble);
    if (r->writable) {
        fa_load_marker_sweep(s, r);
        fa_import_sweep(s, r);
    }
    close(fd);
}

static bool add_root(fa_store *s, const char *path, size_t len)
{
    fa_root *grown = realloc(s->root, (s->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    s->root = grown;
    fa_root *r = &grown[s->n];
    memset(r, 0, sizeof *r);
    r->path = strndup(path, len);
    if (!r->path)
        return false;
    root_open(s, r, s->writer < 0);
    if (r->writable)
        s->writer = (ptrdiff_t)s->n;
    /* a shared root that is not there yet is normal; one that cannot be trusted is worth a word */
    if (s->warn && fa_root_refused(r)) {
        char message[512];
        snprintf(message, sizeof message, "cache root %s is not used: %s", r->path, r->trouble);
        s->warn(s->user, message);
    }
    s->n++;
    return true;
}

/* The keys in quarantine, told apart only where a root that is only read could still hold them. */
static void shun(fa_store *s)
{
    const char *trouble;
    DIR *d = fa_place_names(s->writer < 0 || s->n < 2 ? -1 : fa_trusted_dir(s->root[s->writer].v1, "quarantine", false, &trouble));
    for (struct dirent *e; d && (e = readdir(d));) {
        char hex[33];
        fa_key k;
        snprintf(hex, sizeof hex, "%.32s", e->d_name);
        fa_key *grown = fa_key_parse(&k, hex) ? realloc(s->shunned, (s->n_shunned + 1) * sizeof *grown) : NULL;
        if (grown) {
            s->shunned = grown;
            grown[s->n_shunned++] = k;
        }
    }
    if (d)
        closedir(d);
}

fa_store *fa_store_open(const char *path, fa_store_warn warn, void *user)
{
    fa_text made = { 0 };
    fa_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->writer = -1;
    s->limit = FA_STORE_LIMIT;
    s->warn = warn;
    s->user = user;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->freed, NULL);
    if (getauxval(AT_SECURE)) /* NO BRANCH: the suite `environment` sees to it, in a program that may write no counters */
        return s;
    if (!path) {
        default_path(&made);
        if (made.oom) { /* what there is of it names another folder: the home itself, for one */
            fa_text_free(&made);
            fa_store_close(s);
            return NULL;
        }
        path = fa_text_cstr(&made);
        if (!path[0] && warn && !secure_getenv("FAGEN_CACHE_DIR"))
            warn(user, "no disk cache: no home directory; FAGEN_CACHE_DIR names another place");
    }
    for (const char *p = path; *p;) {
        size_t len = strcspn(p, ":");
        if (len > 0 && !add_root(s, p, len)) {
            fa_store_close(s);
            s = NULL;
            break;
        }
        p += len + (p[len] == ':');
    }
    fa_text_free(&made);
    if (s)
        shun(s);
    return s;
}

void fa_store_close(fa_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        if (s->root[i].v1 >= 0)
            close(s->root[i].v1);
        free(s->root[i].path);
    }
    free(s->root);
    free(s->held);
    free(s->shunned);
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void fa_store_set_limit(fa_store *s, int64_t bytes)
{
    s->limit = bytes;
}

int64_t fa_store_limit(const fa_store *s)
{
    return s->limit;
}

const char *fa_store_root(const fa_store *s)
{
    return s->writer < 0 ? NULL : s->root[s->writer].path;
}

const char *fa_store_root_at(const fa_store *s, size_t i, bool *writable, const char **trouble)
{
    if (i >= s->n)
        return NULL;
    if (writable)
        *writable = s->root[i].writable;
    if (trouble)
        *trouble = s->root[i].trouble;
    return s->root[i].path;
}
