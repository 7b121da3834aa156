/* outputs: no file that is written is one that is read, or is written twice, by whatever name. */
#include "attend.h"
#include "cli/files/file.h"
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

/* Of the forward operation, or else of the backward one. */
static const fa_operand *row_of(fa_operand_id id)
{
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    op = fa_operand_slot(op, id) < 0 ? fa_operation_find(FA_BACKWARD) : op;
    int i = fa_operand_slot(op, id);
    return i < 0 ? NULL : &op->operand[i];
}

fa_status attend_check_outputs(const attend_args *a)
{
    struct {
        const char *option, *path;
        bool written;
    } files[FA_ID_COUNT];
    place at[FA_ID_COUNT];
    int n = 0;
    for (int written = 0; written < 2; written++)
        for (fa_operand_id id = FA_ID_NONE + 1; id < FA_ID_COUNT; id++) {
            const fa_operand *o = row_of(id);
            if (o && o->word && a->file[id] && o->output == written) {
                files[n].option = o->word;
                files[n].path = a->file[id];
                files[n++].written = written;
            }
        }
    for (int i = 0; i < n; i++) {
        at[i] = place_of(files[i].path);
        for (int j = 0; j < i; j++) {
            if (!files[i].written || !same(&at[i], &at[j]))
                continue;
            if (files[j].written)
                return fa_fail(FA_INVALID, "--%s %s is the file of --%s %s; accepted: a file for each", files[i].option, files[i].path,
                               files[j].option, files[j].path);
            if (!a->force)
                return fa_fail(FA_INVALID, "--%s %s would replace the file of --%s %s; accepted: another file, or --force", files[i].option,
                               files[i].path, files[j].option, files[j].path);
        }
    }
    fa_status st = FA_OK;
    for (int i = 0; st == FA_OK && i < n; i++)
        st = files[i].written ? cli_file_check(files[i].path) : FA_OK;
    return st;
}
