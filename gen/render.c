/* render: a config becomes text. */
#include "error.h"
#include "family.h"
#include "problem.h"
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FA_WIDEN_FILE "tiles/widen.cu"

typedef struct job {
    fa_gen *g;
    const fa_family *family;
    const fa_problem *p;
    const fa_config *c;
    const fa_arch *a;
    int32_t budget;
    fa_point point;
    bool supported;
    fa_source source;
} job;

static void set_global(lua_State *L, int env, int index, const char *name, const char *other)
{
    lua_pushvalue(L, index);
    lua_setfield(L, env, name);
    if (other) {
        lua_pushvalue(L, index);
        lua_setfield(L, env, other);
    }
}

static void set_texts(lua_State *L, int env, const job *j)
{
    char problem[FA_PROBLEM_TEXT], config[512];
    fa_problem_print_key(problem, sizeof problem, j->p);
    fa_family_config_print(config, sizeof config, j->family, j->c);
    lua_pushstring(L, FA_VERSION_STRING);
    lua_setfield(L, env, "version");
    lua_pushstring(L, problem);
    lua_setfield(L, env, "problem_text");
    lua_pushstring(L, config);
    lua_setfield(L, env, "config_text");
    lua_pushfstring(L, "fagen emit --arch %s --problem '%s' --config '%s'", j->a->name, problem, config);
    lua_setfield(L, env, "command");
}

static int run(lua_State *L)
{
    job *j = lua_touserdata(L, 1);
    fa_lua_args fr;
    char file[sizeof j->family->name + 4];
    fa_lua_args_push(L, &fr, j->family, j->p, j->a, j->budget, false);
    j->supported = fa_family_judge_named(L, &fr, j->family, j->c, &j->point);
    if (!j->supported || !j->point.fits)
        return 0;
    int layout = lua_gettop(L);
    fa_family_steps(L, &fr, j->family, layout, &j->source);
    fa_family_workspace(L, &fr, j->family, layout, &j->source);
    fa_family_params(L, &fr, j->family, layout, &j->source);
    int params = lua_gettop(L);
    fa_sandbox_env(L);
    int env = lua_gettop(L);
    set_global(L, env, fr.p, "p", "prob");
    set_global(L, env, fr.c, "c", "cfg");
    set_global(L, env, fr.a, "a", "arch");
    set_global(L, env, layout, "l", "layout");
    set_global(L, env, params, "params", NULL);
    set_texts(L, env, j);
    fa_template_provide(L, env, &j->g->output);
    strcpy(file, j->family->name);
    strcat(file, ".cu");
    fa_template_include(L, env, &j->g->output, file);
    if (fa_family_widens(j->family, j->p)) {
        lua_getfield(L, fr.p, "low");
        set_global(L, env, lua_gettop(L), "p", "prob");
        fa_template_include(L, env, &j->g->output, FA_WIDEN_FILE);
    }
    return 0;
}

fa_status fa_render(fa_gen *g, const fa_problem *p, const fa_config *c, const fa_arch *a, int32_t budget, fa_source *out)
{
    fa_problem norm;
    fa_config config;
    char name[512];
    const char *error;
    *out = (fa_source){ 0 };
    if (budget < 0)
        return fa_fail(FA_INVALID, "budget is %d; accepted: bytes of shared memory, or 0 for what the chip offers", budget);
    fa_status st = fa_problem_normalize(&norm, p);
    if (st == FA_OK)
        st = fa_gen_load_family(g, c->family);
    const fa_family *f = st == FA_OK ? fa_family_find(g, c->family) : NULL;
    if (st == FA_OK)
        st = f ? fa_family_config(&config, f, c) : FA_INVALID;
    if (st != FA_OK)
        return st;
    if (!(f->features & FA_FEATURE_SCORE_ANYWHERE)) /* one text, however arrays lie */
        norm.features &= ~(FA_FEATURE_SCORE_ANYWHERE | FA_FEATURE_SCORE_COLUMNS);
    job j = { .g = g, .family = f, .p = &norm, .c = &config, .a = a, .budget = budget };
    fa_output *o = &g->output;
    *o = (fa_output){ .files = &g->files };
    fa_config_print(name, sizeof name, &config);
    st = fa_sandbox_run(g->sb, run, &j, &error);
    o->closed = true;
    if (st != FA_OK)
        fa_template_fail(&g->files, st, name, error);
    else if (!j.point.fits)
        st = fa_family_reject(f, &norm, a, &config, &j.point, j.supported);
    if (st != FA_OK) {
        fa_output_free(o);
        return st;
    }
    *out = j.source;
    fa_text_add(&o->text, "", 0);
    fa_text_add(&o->lined, "", 0);
    if (o->text.oom || o->lined.oom) {
        fa_output_free(o);
        *out = (fa_source){ 0 };
        return fa_fail(FA_NOMEM, "no memory for the text of %s", name);
    }
    out->text = o->text.s;
    out->text_size = o->text.n;
    out->lined = o->lined.s;
    o->text = o->lined = (fa_text){ 0 };
    XXH128_hash_t h = XXH3_128bits(out->text, out->text_size);
    out->hash[0] = h.low64;
    out->hash[1] = h.high64;
    snprintf(out->name, sizeof out->name, "%s.cu", f->name);
    return FA_OK;
}
