/* files: where templates come from: a folder of the user's, file by file, else the table in the library. A file is read once
 * and stays as it was for the life of the object. */
#ifndef FA_GEN_FILES_H
#define FA_GEN_FILES_H
#include "chunks.h"
#include "text.h"
#include <fagen.h>
#include <stdbool.h>
#include <stdint.h>

#define FA_FILES_MAX 512 /* the library's own, and as many of a user's folder */
#define FA_FILE_BYTES                                                                                                \
    (1 << 17) /* the largest file of a user's folder: Lua's compiler, which no limit interrupts, can be made to take \
               * time by the square of it */

typedef struct fa_file {
    char name[40]; /* "pairs/mask.cu"; "mine.cu" of a user's that is in no folder */
    char *path;    /* what messages call it: "templates/pairs/mask.cu", or the override's own path */
    const char *bytes;
    size_t size;
    const fa_template_chunk *chunk; /* bytes as Lua compiled them with the library; NULL: of a user's, or no .lua */
    char *owned;                    /* bytes, where they were read from disk */
    fa_text code;                   /* the Lua of a .cu file, once it was wanted */
    uint32_t *row;                  /* of which that made: where its lines begin, and where the last one ends */
    int rows;
} fa_file;

typedef struct fa_files {
    char *dir; /* NULL = none */
    fa_file file[FA_FILES_MAX];
    int n;
} fa_files;

/* FA_IO where dir is no folder that can be listed; the message calls it `named`. */
fa_status fa_files_check(const char *dir, const char *named);

/* dir NULL or "" = the library's own, else fa_files_check(). */
fa_status fa_files_open(fa_files *fs, const char *dir);
void fa_files_close(fa_files *fs);

/* The index of a file in fs->file. A name may have one folder in front. A plain one is looked for in all of the library's folders: no two
 * files of the library share a name. A user's file may lie at the top of dir or in the folder. FA_TEMPLATE when there is none of that name,
 * or two; FA_IO when it cannot be read. */
fa_status fa_files_get(fa_files *fs, int *out, const char *name);

/* The names that end in suffix, of the library and of dir, its top and its folders that the library has too; without their folders,
 * sorted, each once. Free with fa_files_free_names. */
fa_status fa_files_names(const fa_files *fs, const char *suffix, char ***out, size_t *n);
void fa_files_free_names(char **names, size_t n);

/* Line `line` (from 1) of a file: its start and length. False past the end. */
bool fa_file_line(const fa_file *f, int line, const char **s, size_t *n);
#endif
