/* page: page.html with the style, the script and the data in it. */
#include "explore.h"
#include "files.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdlib.h>
#include <string.h>

static void add_escaped(fa_text *out, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<':
            fa_text_str(out, "&lt;");
            break;
        case '>':
            fa_text_str(out, "&gt;");
            break;
        case '&':
            fa_text_str(out, "&amp;");
            break;
        case '"':
            fa_text_str(out, "&quot;");
            break;
        default:
            fa_text_add(out, s, 1);
        }
}

static void add_title(const explore *e, fa_text *out)
{
    char s[256];
    fa_problem_print(s, sizeof s, &e->problem);
    fa_text_str(out, "fagen explore: ");
    add_escaped(out, s);
    fa_text_str(out, " on ");
    add_escaped(out, e->arch->name);
}

/* Every file whose name ends so, in the order of their names. */
static void add_files(fa_text *out, const char *ending)
{
    size_t n = strlen(ending);
    for (const cli_explore_file *f = cli_explore_files; f->name; f++)
        if (strlen(f->name) > n && !strcmp(f->name + strlen(f->name) - n, ending))
            fa_text_add(out, f->bytes, f->size);
}

/* No text in it can end the script that it lies in. */
static bool add_data(fa_text *out, const json_t *document)
{
    char *s = json_dumps(document, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    if (!s)
        return false;
    for (const char *at = s; *at;) {
        size_t n = strcspn(at, "<");
        fa_text_add(out, at, n);
        at += n;
        if (*at)
            fa_text_str(out, "\\u003c"), at++;
    }
    free(s);
    return true;
}

fa_status explore_page(const explore *e, const json_t *document, fa_text *out)
{
    const cli_explore_file *page = cli_explore_files;
    bool ok = document != NULL;
    while (page->name && strcmp(page->name, "page.html"))
        page++;
    for (const char *s = page->name ? page->bytes : ""; ok && *s;) {
        const char *mark = strstr(s, "$(");
        size_t n = mark ? (size_t)(mark - s) : strlen(s);
        fa_text_add(out, s, n);
        s += n;
        if (!mark)
            break;
        if (!strncmp(s, "$(title)", 8))
            add_title(e, out);
        else if (!strncmp(s, "$(style)", 8))
            add_files(out, ".css");
        else if (!strncmp(s, "$(script)", 9))
            add_files(out, ".js");
        else if (!strncmp(s, "$(data)", 7))
            ok = add_data(out, document);
        s += strcspn(s, ")") + 1;
    }
    return ok && out->n && !out->oom ? FA_OK : fa_fail(FA_NOMEM, "no memory for the page");
}
