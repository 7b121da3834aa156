/* template: a .cu template, translated to Lua and run where a real one runs. The includes it may name are the library's own. */
#include "gen/template.h"
#include "fuzz.h"
#include "gen/sandbox_names.h"
#include <lauxlib.h>

#define STEPS 50000

typedef struct job {
    fa_files files;
    fa_output output;
} job;

/* What a real template finds: c, p, a and l, tables of numbers and names. */
static int render(lua_State *L)
{
    static const struct {
        const char *table, *field;
        int value;
    } rows[] = { { "p", "d", 64 },    { "p", "dv", 64 }, { "p", "bytes", 2 },    { "c", "br", 64 },      { "c", "bc", 32 },
                 { "c", "warps", 4 }, { "a", "cc", 80 }, { "l", "bytes", 4096 }, { "l", "threads", 128 } };
    job *j = lua_touserdata(L, 1);
    luaL_checkstack(L, 16, NULL);
    fa_sandbox_env(L);
    int env = lua_gettop(L);
    for (const char *t = "pcal"; *t; t++) {
        char name[2] = { *t, 0 };
        lua_newtable(L);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (rows[i].table[0] == *t) {
                lua_pushinteger(L, rows[i].value);
                lua_setfield(L, -2, rows[i].field);
            }
        lua_setfield(L, env, name);
    }
    fa_template_provide(L, env, &j->output);
    fa_template_include(L, env, &j->output, "input.cu");
    return 0;
}

static fa_status run(fa_sandbox *sb, const char *text, size_t n, fa_output *out, char **message)
{
    job j = { .files = { .n = 1 } };
    const char *error = "";
    strcpy(j.files.file[0].name, "input.cu");
    j.files.file[0].path = strdup("templates/input.cu");
    j.files.file[0].bytes = text;
    j.files.file[0].size = n;
    j.output.files = &j.files;
    fa_status st = fa_sandbox_run(sb, render, &j, &error);
    if (st != FA_OK) {
        fa_template_fail(&j.files, st, "input", error);
        *message = strdup(error);
    }
    *out = j.output;
    fa_files_close(&j.files);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fa_sandbox *sb;
    char *text = fuzz_copy(data, size, 0), *message = NULL, *none = NULL;
    fa_output o;
    if (!sb) {
        FUZZ_CHECK(fa_sandbox_open(&sb, fa_sandbox_names_open) == FA_OK);
        fa_sandbox_limit(sb, STEPS);
    }
    fa_status st = run(sb, text, size, &o, &message);
    FUZZ_CHECK(st == FA_OK || (message && *message));
    if (st == FA_OK) /* the text holds no line that was not written, and none is lost among the #line */
        FUZZ_CHECK(o.text.n <= o.lined.n && (!o.text.n || o.text.s[o.text.n - 1] == '\n'));
    fa_output_free(&o);
    FUZZ_CHECK(run(sb, "fine $(c.br)\n", 13, &o, &none) == FA_OK && !strcmp(o.text.s, "fine 64\n")); /* whatever came before */
    fa_output_free(&o);
    free(message);
    free(text);
    return 0;
}
