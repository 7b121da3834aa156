/* templates: the files of templates/ as they were when the library was built, sorted by folder and name; no name
 * is in two folders; the last row is all zero. */
#ifndef FA_GEN_TEMPLATES_H
#define FA_GEN_TEMPLATES_H
#include <stddef.h>

typedef struct fa_template_file {
    const char *name;  /* "flash_fwd_mma.cu" */
    const char *bytes; /* NUL-terminated past size */
    size_t size;
    const char *folder; /* "families" */
} fa_template_file;
extern const fa_template_file fa_template_files[];
#endif
