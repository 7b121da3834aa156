/* shipped: the score programs of templates/pairs/programs/, as they were when the library was built. */
#ifndef FA_GEN_SCORE_SHIPPED_H
#define FA_GEN_SCORE_SHIPPED_H
#include <stddef.h>

typedef struct fa_score_file {
    const char *name;  /* "softcap.lua" */
    const char *bytes; /* NUL-terminated past size */
    size_t size;
} fa_score_file;

/* Sorted by name; the last row is all zero. */
extern const fa_score_file fa_score_shipped[];

/* The one of this name, n letters without ".lua"; NULL: there is none. */
const fa_score_file *fa_score_shipped_find(const char *name, size_t n);

/* Its name, and the line that says what it is. */
void fa_score_shipped_name(char out[32], const fa_score_file *program);
void fa_score_shipped_doc(char out[160], const fa_score_file *program);
#endif
