/* files: what is embedded in the command as it was when the command was built, sorted by name; the last row of a table is all zero. */
#ifndef FA_CLI_EXPLORE_FILES_H
#define FA_CLI_EXPLORE_FILES_H
#include <stddef.h>

typedef struct cli_explore_file {
    const char *name;
    const char *bytes; /* NUL-terminated past size */
    size_t size;
} cli_explore_file;
extern const cli_explore_file cli_explore_files[];   /* page.html, its styles and scripts */
extern const cli_explore_file cli_reference_files[]; /* the tables of reference.h */
#endif
