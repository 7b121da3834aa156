/* outputs: no file that is written is one that is read, or is written twice, by whatever name. */
#include "attend.h"
#include "gen/error.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a name stands for: an inode; or, of a file that does not exist yet, a name in a folder. */
typedef struct place {
    bool known; /* a regular file, or one that is to be made: what else there is, pipes and devices, keeps nothing */
    bool exists;
    dev_t device;
    ino_t inode; /* of the file, or of its folder */
    char name[NAME_MAX + 1];
} place;

static place place_of(const char *path)
{
    place p = { .known = false };
    struct stat st;
    bool standard = !strcmp(path, "-");
    if (standard ? !fstat(STDOUT_FILENO, &st) : !stat(path, &st)) {
        p.known = S_ISREG(st.st_mode);
        p.exists = true;
    } else if (!standard) {
        const char *slash = strrchr(path, '/');
        char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
        p.known = folder && !stat(folder, &st);
        snprintf(p.name, sizeof p.name, "%s", slash ? slash + 1 : path);
        free(folder);
    }
    if (p.known) {
        p.device = st.st_dev;
        p.inode = st.st_ino;
    }
    return p;
}

static bool same(const place *a, const place *b)
{
    return a->known && b->known && a->exists == b->exists && a->device == b->device && a->inode == b->inode && !strcmp(a->name, b->name);
}

fa_status attend_check_outputs(const attend_args *a)
{
    enum { READ, WRITTEN };
    const struct {
        const char *option, *path;
        int use;
    } files[] = {
        { "q", a->file[ATTEND_Q], READ },
        { "k", a->file[ATTEND_K], READ },
        { "v", a->file[ATTEND_V], READ },
        { "seqlens-q", a->file[ATTEND_SEQLENS_Q], READ },
        { "seqlens-k", a->file[ATTEND_SEQLENS_K], READ },
        { "cu-seqlens-q", a->file[ATTEND_CU_Q], READ },
        { "cu-seqlens-k", a->file[ATTEND_CU_K], READ },
        { "page-table", a->file[ATTEND_TABLE], READ },
        { "grad-o", a->grad_o, READ },
        { "grad-lse", a->grad_lse, READ },
        { "output", a->file[ATTEND_O], WRITTEN },
        { "lse", a->file[ATTEND_LSE], WRITTEN },
        { "grad-q", a->grad_q, WRITTEN },
        { "grad-k", a->grad_k, WRITTEN },
        { "grad-v", a->grad_v, WRITTEN },
    };
    enum { FILES = sizeof files / sizeof *files };
    place at[FILES];
    for (int i = 0; i < FILES; i++) {
        at[i] = files[i].path ? place_of(files[i].path) : (place){ .known = false };
        for (int j = 0; j < i; j++) {
            if (files[i].use != WRITTEN || !same(&at[i], &at[j]))
                continue;
            if (files[j].use == WRITTEN)
                return fa_fail(FA_INVALID, "--%s %s is the file of --%s %s; accepted: a file for each", files[i].option, files[i].path,
                               files[j].option, files[j].path);
            if (!a->force)
                return fa_fail(FA_INVALID, "--%s %s would replace the file of --%s %s; accepted: another file, or --force", files[i].option,
                               files[i].path, files[j].option, files[j].path);
        }
    }
    return FA_OK;
}
