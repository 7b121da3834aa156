/* shared: the search path as JSON, and the archs that --arch names. */
#include "cache.h"
#include "cli/options/arch_names.h"
#include "gen/error.h"
#include <string.h>

json_t *cli_roots_json(const fa_store *s)
{
    json_t *roots = json_array();
    bool writable;
    const char *trouble, *path;
    for (size_t i = 0; (path = fa_store_root_at(s, i, &writable, &trouble)) != NULL; i++)
        json_array_append_new(roots, json_pack("{s:s,s:b,s:s}", "path", path, "writable", writable, "trouble", trouble ? trouble : ""));
    return roots;
}

fa_status cli_cache_archs(const char *text, const char *out[CLI_LIST_MAX + 1], const char *const **list)
{
    int n = 0;
    *list = text ? out : NULL;
    while (text && *text) {
        char name[64];
        size_t k = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", (int)(k < sizeof name ? k : sizeof name - 1), text);
        const fa_arch *a;
        fa_status st =
            n == CLI_LIST_MAX ? fa_fail(FA_INVALID, "--arch has more than %d names", CLI_LIST_MAX) : cli_arch_find(&a, "arch", name);
        if (st != FA_OK)
            return st;
        out[n++] = a->name;
        text += k + (text[k] == ',');
    }
    out[n] = NULL;
    return FA_OK;
}
