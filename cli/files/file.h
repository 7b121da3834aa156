/* file: results on disk, by the rules of cache/output.h: a file is whole or as it was; devices, pipes and links are respected. */
#ifndef FA_CLI_FILES_FILE_H
#define FA_CLI_FILES_FILE_H
#include <fagen.h>
#include <stdbool.h>

/* Writes head then body (n may be 0) to path; "-" is standard output. FA_IO names the path. */
fa_status cli_file_write(const char *path, const void *head, size_t n_head, const void *body, size_t n);

/* Whether it could be written now: asked before the work whose result it is. NULL: none. */
fa_status cli_file_check(const char *path);
#endif
