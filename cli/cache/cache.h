/* cache: the words of `fagen cache`, each in a file of its kind. */
#ifndef FA_CLI_CACHE_CACHE_H
#define FA_CLI_CACHE_CACHE_H
#include "cache/scan.h"
#include "cli/options/command.h"
#include "cli/options/problem_options.h"

typedef struct cache_args {
    cli_common common;
    cli_problem_options problem_options;
    const char *config, *device, *arch;
    double older; /* seconds; 0 = any age */
    int64_t to;   /* bytes; -1 = any size */
    bool dry_run, records, only_records, trust, repair;
} cache_args;

/* Each answers with one document under --json, and returns an exit code. word: the file that it is about, or NULL. */
int cli_cache_ls(cli *c, fa_store *s, const cache_args *a, const char *word);
int cli_cache_stat(cli *c, fa_store *s, const cache_args *a, const char *word);
int cli_cache_why(cli *c, fa_store *s, const cache_args *a, const char *word);
int cli_cache_verify(cli *c, fa_store *s, const cache_args *a, const char *word);
int cli_cache_prune(cli *c, fa_store *s, const cache_args *a, const char *word);
int cli_cache_export(cli *c, fa_store *s, const cache_args *a, const char *word);
/* The records of an archive that is not trusted, or of a text of fa_records_export(), on the device that a names: as fa_records_import().
 */
fa_status cli_cache_take_records(cli *c, const cache_args *a, const char *path, bool archive, fa_records_count *n);
fa_status cli_cache_tell_records(cli *c, const cache_args *a, const char *path);
int cli_cache_import(cli *c, fa_store *s, const cache_args *a, const char *word);

/* {"path", "writable", "trouble"} of each root of the search path. */
json_t *cli_roots_json(const fa_store *s);
/* NULL-terminated list of the arch names in text, "sm_80,h200"; NULL text: *out is NULL. FA_INVALID names the one that is not known. */
fa_status cli_cache_archs(const char *text, const char *out[CLI_LIST_MAX + 1], const char *const **list);

extern const cli_command cli_cache;
#endif
