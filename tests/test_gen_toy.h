/* Toy templates in a folder of their own, so that the suites of the generator do not depend on the real ones. */
#ifndef FA_TEST_GEN_TOY_H
#define FA_TEST_GEN_TOY_H
#include "gen/error.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "gen/space.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char toy_lua[] =
    "return {\n"
    "  doc = \"a toy\",\n"
    "  default = false,\n"
    "  tunables = { { \"br\", { 16, 32, 64 }, \"rows\" }, { \"bc\", { 8, 24 }, \"columns\" } },\n"
    "  supports = function(p, a) if p.d > 200 then return false, \"d > 200\" end return true end,\n"
    "  constraints = { { \"square\", function(p, c, a)\n"
    "    if c.br == 32 and c.bc == 24 then return false, \"32 x 24\" end return true end } },\n"
    "  layout = function(p, c, a) return { bytes = c.br * p.d * p.bytes + c.bc * p.d * p.bytes, threads = 32, regs = 40 } end,\n"
    "  steps = function(p, c, a, l) return { { entry = \"toy\", grid = ('sq/%d hq b'):format(c.br) } } end,\n"
    "}\n";

static inline void toy_write(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fwrite(text, 1, strlen(text), f), strlen(text));
    cr_assert_eq(fclose(f), 0);
}

/* A new folder with toy.lua and toy.cu. */
static inline void toy_dir(char dir[64], const char *cu)
{
    strcpy(dir, "/tmp/fagen-toy-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    toy_write(dir, "toy.lua", toy_lua);
    toy_write(dir, "toy.cu", cu);
}

static inline void toy_remove(const char *dir, const char *const *more)
{
    static const char *const names[] = { "toy.lua", "toy.cu", NULL };
    char path[256];
    for (int k = 0; k < 2; k++)
        for (const char *const *n = k ? more : names; n && *n; n++) {
            snprintf(path, sizeof path, "%s/%s", dir, *n);
            unlink(path);
        }
    rmdir(dir);
}

/* A problem in one text, with its shape where that says none. */
static inline fa_problem shaped_problem(const char *text)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s: %s", text, fa_last_error());
    fa_problem_fill_shape(&p);
    return p;
}

/* Renders toy:br=16,bc=8 of bf16, d=64 from dir. */
static inline fa_status toy_render(const char *dir, fa_source *out)
{
    fa_gen *g;
    fa_problem p;
    fa_config c;
    *out = (fa_source){ 0 };
    fa_status st = fa_gen_open(&g, dir);
    if (st != FA_OK)
        return st;
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64"), FA_OK);
    cr_assert_eq(fa_config_parse(&c, "toy:br=16,bc=8"), FA_OK);
    st = fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, out);
    fa_gen_close(g);
    return st;
}
#endif
