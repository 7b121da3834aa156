/* shipped: look-ups in the table that the build makes. */
#include "shipped.h"
#include <stdio.h>
#include <string.h>

static size_t letters(const fa_score_file *program)
{
    return strlen(program->name) - strlen(".lua");
}

const fa_score_file *fa_score_shipped_find(const char *name, size_t n)
{
    for (const fa_score_file *p = fa_score_shipped; p->name; p++)
        if (letters(p) == n && !memcmp(p->name, name, n))
            return p;
    return NULL;
}

void fa_score_shipped_name(char out[32], const fa_score_file *program)
{
    snprintf(out, 32, "%.*s", (int)letters(program), program->name);
}

void fa_score_shipped_doc(char out[160], const fa_score_file *program)
{
    const char *s = program->bytes + strspn(program->bytes, "- ");
    snprintf(out, 160, "%.*s", (int)strcspn(s, "\n"), s);
}
