/* shipped_maker: a program of the build: parses defaults.inc and prints the table of shipped.h as C. */
#include "gen/config.h"
#include "gen/problem.h"
#include "gen/problem_fields.h"
#include <stdio.h>

static const struct row {
    const char *chip, *problem, *config;
    bool alone;
} rows[] = {
#define DEFAULT(chip, problem, config) { chip, problem, config, false },
#define DEFAULT_ALONE(chip, problem, config) { chip, problem, config, true },
#include "defaults.inc"
#undef DEFAULT_ALONE
#undef DEFAULT
};

static void print(const struct row *row, const fa_problem *p, const fa_config *c)
{
    printf("    { \"%s\", %s, { .size = sizeof(fa_problem)", row->chip, row->alone ? "true" : "false");
    for (int i = 0; i < FA_PROBLEM_FIELD_COUNT; i++)
        printf(", .%s = %d", fa_problem_fields[i].member, fa_problem_get(p, &fa_problem_fields[i]));
    printf(" },\n      { \"%s\", %d, {", c->family, c->n);
    for (int i = 0; i < c->n; i++)
        printf("%s{ \"%s\", %d, 0 }", i ? ", " : " ", c->tunable[i].name, c->tunable[i].value);
    printf(" } } },\n");
}

int main(void)
{
    printf("/* Made by runtime/choose/shipped_maker.c from runtime/choose/defaults.inc. */\n#include \"shipped.h\"\n\n"
           "const fa_shipped fa_shipped_rows[] = {\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p;
        fa_config c;
        if (fa_problem_parse(&p, rows[i].problem) != FA_OK || fa_config_parse(&c, rows[i].config) != FA_OK) {
            fprintf(stderr, "defaults.inc: %s, %s: %s\n", rows[i].problem, rows[i].config, fa_last_error());
            return 1;
        }
        print(&rows[i], &p, &c);
    }
    printf("};\nconst size_t fa_shipped_count = sizeof fa_shipped_rows / sizeof *fa_shipped_rows;\n");
    return fflush(stdout) ? 1 : 0;
}
