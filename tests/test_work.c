/* Which tiles a thread block does is written once, in templates/work/: the places are counted in all templates, whatever their files are
 * called. A rule written into a kernel by hand raises a count. */
#include "gen/templates.h"
#include <criterion/criterion.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *what, *pattern; /* of a line */
    int inside;                 /* lines of templates/work/; no other has any */
    const char *by_hand;        /* such a line */
} rules[] = {
    { "the tile of a block's number", "blockIdx[.]x (%|/) p[.]tiles", 5, "  const int row0 = blockIdx.x % p.tiles * BR;" },
    { "what is drawn from the counter", "atomicInc[(]", 1, "    if (lane == 0) drawn = atomicInc(p.counter, (u32)p.total - 1);" },
    { "rounds back and forth", "round %+ 2 == 0", 1,
      "    const int tile = round * n + (round % 2 == 0 ? blockIdx.x : n - 1 - blockIdx.x);" },
    { "the last of those that count", "count[(][(]u32 [*][)].* == ", 1,
      "  last = count((u32 *)p.workspace + tile, (u32)n - 1) == (u32)n - 1;" },
    { "parts of a row under way", "load_part[(]part_(o|state) [+]", 2, "      x[k] = load_part(part_o + from * (COLS / 4) + four);" },
    { "where a row of a part lies", "= part_row[(]", 1, "      const long long at = part_row(where, first + row);" },
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static int lines_with(const regex_t *pattern, const char *text)
{
    int n = 0;
    for (const char *s = text; *s;) {
        char line[512];
        size_t length = strcspn(s, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, s);
        n += !regexec(pattern, line, 0, NULL, 0);
        s += length + (s[length] == '\n');
    }
    return n;
}

Test(work, a_rule_stands_in_one_place)
{
    for (size_t i = 0; i < COUNT(rules); i++) {
        regex_t pattern;
        int inside = 0;
        cr_assert_eq(regcomp(&pattern, rules[i].pattern, REG_EXTENDED | REG_NOSUB), 0, "%s", rules[i].what);
        for (const fa_template_file *f = fa_template_files; f->name; f++) {
            int n = lines_with(&pattern, f->bytes);
            bool room = !strcmp(f->folder, "work");
            inside += room ? n : 0;
            cr_expect(room || !n, "%s/%s: %s, %d times; accepted: a hook of templates/work/", f->folder, f->name, rules[i].what, n);
        }
        cr_expect_eq(inside, rules[i].inside, "%s: %d lines of templates/work/, not %d", rules[i].what, inside, rules[i].inside);
        cr_expect_eq(lines_with(&pattern, rules[i].by_hand), 1, "%s is not counted: %s", rules[i].what, rules[i].by_hand);
        regfree(&pattern);
    }
}
