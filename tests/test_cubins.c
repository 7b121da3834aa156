/* fagen-dev cubins: a change of comments leaves the code of kernels, and is told so; a change of code is found. */
#include "gen/templates.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

TestSuite(cubins, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 300);

#define FILE_OF_IT "naive.cu"
#define KERNELS "--count 1 --only 'sm_80 fp32,d=64,dv=64,mask=none,o=fp32,align=16,features=dropout naive'"

/* A folder of templates, of which one has a text replaced; find "": put before all. */
static void write_templates(const char *find, const char *replace)
{
    const fa_template_file *f = fa_template_files;
    char text[65536];
    while (f->name && strcmp(f->name, FILE_OF_IT))
        f++;
    cr_assert_not_null(f->name);
    const char *at = strstr(f->bytes, find);
    cr_assert_not_null(at, "the text is not there any more: %s", find);
    int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - f->bytes), f->bytes, replace, at + strlen(find));
    cr_assert_lt((size_t)n, sizeof text);
    mkdir("templates", 0700);
    cli_scratch_write("templates/" FILE_OF_IT, text, (size_t)n);
}

static void ends(const char *words, int code, const char *out)
{
    cli_result r = cli_run(words);
    cr_expect_eq(r.code, code, "%s: exit %d: %s", words, r.code, r.err);
    cr_expect(strstr(r.out, out), "%s: \"%s\", not \"%s\"", words, r.out, out);
    cli_result_free(&r);
}

Test(cubins, comments_leave_the_code_and_changes_of_code_are_found)
{
    cli_result list = cli_run("cubins " KERNELS);
    cr_assert_eq(list.code, 0, "%s", list.err);
    cr_assert_gt(list.out_size, 66);
    cr_expect(strchr(list.out, '\n') == list.out + list.out_size - 1, "one kernel is meant: %s", list.out);
    cli_scratch_write("list.txt", list.out, list.out_size);
    ends("cubins --with list.txt " KERNELS, 0, "1 kernels: 0 texts differ, the code of 0, 0 are not in the list\n");

    write_templates("", "// A comment\n// of two lines.\n");
    ends("FAGEN_TEMPLATE_DIR=templates cubins --with list.txt " KERNELS, 0,
         "1 kernels: 1 texts differ, the code of 0, 0 are not in the list\n");

    write_templates("1.f / l;", "2.f / l;");
    ends("FAGEN_TEMPLATE_DIR=templates cubins --with list.txt " KERNELS, 4,
         "1 kernels: 1 texts differ, the code of 1, 0 are not in the list\n");

    cli_scratch_write("none.txt", "", 0);
    ends("FAGEN_TEMPLATE_DIR=templates cubins --with none.txt " KERNELS, 4,
         "1 kernels: 0 texts differ, the code of 0, 1 are not in the list\n");
    cli_result_free(&list);
}

Test(cubins, what_is_wrong_is_told)
{
    cli_scratch_write("bad.txt", "a line\n", 7);
    static const char *const rows[][2] = {
        { "cubins --with bad.txt", "\"a line\"; accepted: lines as fagen-dev cubins prints them" },
        { "cubins --with nowhere.txt", "--with: nowhere.txt: No such file" },
        { "cubins --count 0 --only nothing", "--only is \"nothing\"; accepted: a part of" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cli_result r = cli_run(rows[i][0]);
        cr_expect(r.code != 0 && strstr(r.err, rows[i][1]), "%s: exit %d: %s", rows[i][0], r.code, r.err);
        cli_result_free(&r);
    }
}
