/* identifier: names for what a generated C file defines. */
#ifndef FA_CLI_EMIT_IDENTIFIER_H
#define FA_CLI_EMIT_IDENTIFIER_H
#include <stddef.h>

/* Why `name` of n bytes cannot be the name of a variable in a file that includes <fagen.h>, in C and in C++; NULL: it can. A literal. */
const char *cli_identifier_doubt(const char *name, size_t n);
#endif
