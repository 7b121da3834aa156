/* The text of every kernel that ships, by its hash: a change that is not meant to touch kernels leaves tests/shipped_text.txt as it is. One
 * that is meant to makes the list again, with FAGEN_TEST_WRITE=1, and shows on a GPU what became of the speed. */
#include "gen/gen.h"
#include "gen/problem.h"
#include "test_shipped.h"
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* "HASH PROBLEM CONFIG" of a row; the problem without its shape, which no text knows. */
static void line_of(char *out, size_t n, fa_gen *g, size_t i)
{
    char key[160];
    fa_problem p;
    fa_config c;
    fa_source s;
    cr_assert_eq(fa_problem_parse(&p, shipped[i].problem), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&c, shipped[i].config), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_render(g, &p, &c, fa_arch_find("h200"), 0, &s), FA_OK, "%s", fa_last_error());
    fa_problem_print_key(key, sizeof key, &p);
    snprintf(out, n, "%016" PRIx64 "%016" PRIx64 " %s %s\n", s.hash[1], s.hash[0], key, shipped[i].config);
    fa_source_free(&s);
}

Test(shipped_text, is_as_it_was)
{
    bool write = getenv("FAGEN_TEST_WRITE") != NULL;
    FILE *f = fopen(SHIPPED_TEXT, write ? "w" : "r");
    fa_gen *g;
    cr_assert(f, "%s", SHIPPED_TEXT);
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    size_t differ = 0;
    for (size_t i = 0; i < SHIPPED; i++) {
        char is[1024], was[1024] = "";
        if (shipped_before(i))
            continue;
        line_of(is, sizeof is, g, i);
        if (write)
            fputs(is, f);
        else if (!fgets(was, sizeof was, f) || strcmp(is, was))
            cr_log_warn("row %zu is  %s           was %s", i, is, was), differ++;
    }
    char more[8];
    cr_expect(write || !fgets(more, sizeof more, f), "the list has rows of kernels that no longer ship");
    cr_expect_eq(differ, 0, "the text of %zu shipped kernels is another one", differ);
    fa_gen_close(g);
    fclose(f);
}
