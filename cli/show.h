/* show: what both halves of `fagen show` read: a problem, or a kernel of the cache by its key. */
#ifndef FA_CLI_SHOW_H
#define FA_CLI_SHOW_H
#include "ask.h"
#include "cache/entry.h"
#include "command.h"
#include "session.h"

typedef struct show_args {
    cli_common common;
    cli_where where;
    cli_ask ask;
    int32_t limit;
    bool source, ptx, sass;
} show_args;

/* Whether the word is a key or the first 6 digits of one or more, and no problem. */
bool show_is_key(const char *word);
/* The one kernel of the cache whose key begins so. */
int show_key(cli *c, const show_args *a, const char *hex);

/* Bytes to standard output, or as `text` of a document; frees t. */
int show_text(cli *c, const char *what, const char *text, size_t n);
#endif
