/* family: the .lua of a kernel family: what it declares, and what its functions answer for two problems. */
#include "gen/family.h"
#include "fuzz.h"
#include "gen/problem.h"
#include "gen/sandbox_names.h"
#include <lauxlib.h>

#define STEPS 50000

typedef struct job {
    struct fa_gen gen;
    fa_family family;
    fa_problem problem;
    fa_source source;
} job;

static int load(lua_State *L)
{
    job *j = lua_touserdata(L, 1);
    fa_family_load(L, &j->gen, &j->family);
    return 0;
}

/* As rendering goes: the first value of each tunable. */
static int judge(lua_State *L)
{
    job *j = lua_touserdata(L, 1);
    fa_lua_args fr;
    fa_point point = { 0 };
    bool size_only;
    char why[160];
    fa_lua_args_push(L, &fr, &j->family, &j->problem, fa_arch_find("sm_90a"), 0, false);
    if (!fa_family_supports(L, &fr, &j->family, why, sizeof why))
        return 0;
    for (int i = 0; i < j->family.n_tunables; i++)
        fa_lua_args_set(L, &fr, j->family.tunable[i].name, j->family.tunable[i].values[0]);
    fa_family_judge(L, &fr, &j->family, FA_LISTED, &point, &size_only);
    if (point.fits) {
        int layout = lua_gettop(L);
        fa_family_steps(L, &fr, &j->family, layout, &j->source);
        fa_family_workspace(L, &fr, &j->family, layout, &j->source);
        fa_family_params(L, &fr, &j->family, layout, &j->source);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const problems[] = { "bf16,d=64", "fp32,d=72,mask=window,sq=1000" };
    job j = { .gen = { .files = { .n = 1 } }, .family = { .name = "input" } };
    const char *error;
    char *text = fuzz_copy(data, size, 0);
    FUZZ_CHECK(fa_sandbox_open(&j.gen.sb, fa_sandbox_names_open) == FA_OK);
    fa_sandbox_limit(j.gen.sb, STEPS);
    strcpy(j.gen.files.file[0].name, "input.lua");
    j.gen.files.file[0].path = strdup("templates/input.lua");
    j.gen.files.file[0].bytes = text;
    j.gen.files.file[0].size = size;
    bool ok = fa_sandbox_run(j.gen.sb, load, &j, &error) == FA_OK;
    FUZZ_CHECK(ok || *error);
    for (size_t i = 0; ok && i < sizeof problems / sizeof *problems; i++) {
        FUZZ_CHECK(fa_problem_parse(&j.problem, problems[i]) == FA_OK);
        FUZZ_CHECK(fa_sandbox_run(j.gen.sb, judge, &j, &error) == FA_OK || *error);
        FUZZ_CHECK(j.source.steps >= 0 && j.source.steps <= FA_SOURCE_STEPS);
    }
    fa_source_free(&j.source);
    fa_family_free(&j.family);
    fa_sandbox_close(j.gen.sb);
    fa_files_close(&j.gen.files);
    free(text);
    return 0;
}
