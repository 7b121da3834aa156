/* A template with one place of its text replaced, in the scratch folder of a test. */
#ifndef TEST_TEMPLATE_EDIT_H
#define TEST_TEMPLATE_EDIT_H
#include "gen/templates.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct edit {
    const char *file, *find, *replace;
} edit;

static inline void write_edited(const edit *e)
{
    const fa_template_file *f = fa_template_files;
    char path[512];
    while (f->name && strcmp(f->name, e->file))
        f++;
    cr_assert_not_null(f->name, "%s", e->file);
    const char *at = strstr(f->bytes, e->find);
    cr_assert_not_null(at, "%s: the text is not there any more: %s", e->file, e->find);
    snprintf(path, sizeof path, "%s/%s", scratch, e->file);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fprintf(out, "%.*s%s%s", (int)(at - f->bytes), f->bytes, e->replace, at + strlen(e->find));
    fclose(out);
}

#endif
