/* lua_args: the tables p, c and a, which every function of a family gets. */
#include "family.h"
#include "problem.h"
#include "sandbox_score.h"
#include "score/known.h"
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define FLAGS 32     /* fields of a problem's table beside those of its words: room, which grows */
#define KEPT_MOST 64 /* tables that a state keeps */

/* What is pushed again: a choice prices dozens of configs of few problems. By the address a table in Lua's registry, in which such tables
 * are by their keys; at FAULTS the failed runs before they were made, at COUNT how many. */
static const char kept;
enum { COUNT = 1, FAULTS = 2 };

typedef struct key {
    enum { PROBLEM, ARCH, NAMES } of;
    bool shaped, known; /* its table has the shape; its score program is registered */
    union {
        struct {
            fa_problem is, asked;
        } problem;
        fa_arch arch;
        char family[sizeof((fa_family *)0)->name];
    } is;
} key;

/* Its bytes are hashed: those between its fields are zero, too. */
static void begin(key *k, int of)
{
    memset(k, 0, sizeof *k);
    k->of = of;
}

/* Pushes the table of all that is kept: an empty one where it is full, or a run failed since, which may have left one of them changed.
 * False: nothing is kept. */
static bool push_kept(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &kept) != LUA_TTABLE) {
        lua_pop(L, 1);
        return false;
    }
    lua_rawgeti(L, -1, COUNT);
    lua_rawgeti(L, -2, FAULTS);
    bool good = lua_tointeger(L, -2) < KEPT_MOST && lua_tointeger(L, -1) == fa_sandbox_faults(L);
    lua_pop(L, 2);
    if (!good) {
        lua_pop(L, 1);
        fa_lua_args_keep(L);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &kept);
    }
    return true;
}

int fa_lua_args_keep(lua_State *L)
{
    lua_newtable(L);
    lua_pushinteger(L, 0);
    lua_rawseti(L, -2, COUNT);
    lua_pushinteger(L, fa_sandbox_faults(L));
    lua_rawseti(L, -2, FAULTS);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept);
    return 0;
}

/* A string that Lua interns: of a longer one it would hash each byte by itself, and compare all. */
static void push_key(lua_State *L, const key *k)
{
    XXH128_hash_t h = XXH3_128bits(k, sizeof *k);
    lua_pushlstring(L, (const char *)&h, sizeof h);
}

/* Pushes what is kept under the key. False: nothing, and nothing is pushed. */
static bool push_again(lua_State *L, const key *k)
{
    if (!push_kept(L))
        return false;
    push_key(L, k);
    bool found = lua_rawget(L, -2) == LUA_TTABLE;
    lua_remove(L, -2);
    if (!found)
        lua_pop(L, 1);
    return found;
}

/* Keeps the table at the top. */
static void keep(lua_State *L, const key *k)
{
    if (!push_kept(L))
        return;
    push_key(L, k);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_rawgeti(L, -1, COUNT);
    lua_pushinteger(L, lua_tointeger(L, -1) + 1);
    lua_rawseti(L, -3, COUNT);
    lua_pop(L, 2);
}

static void set_int(lua_State *L, const char *name, int64_t v)
{
    lua_pushinteger(L, v);
    lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, double v)
{
    lua_pushnumber(L, v);
    lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const char *name, const char *v)
{
    lua_pushstring(L, v);
    lua_setfield(L, -2, name);
}

static void set_flag(lua_State *L, const char *name, bool v)
{
    lua_pushboolean(L, v);
    lua_setfield(L, -2, name);
}

/* Every field under its word, names as text; the shape as zeros where it is not to be known. And the bytes of the types. */
static void push_fields(lua_State *L, const fa_problem *p, bool shaped)
{
    char text[FA_FEATURES_TEXT];
    lua_createtable(L, 0, FA_PROBLEM_FIELD_COUNT + FLAGS);
    for (size_t i = 0; i < FA_PROBLEM_FIELD_COUNT; i++) {
        const fa_problem_field *f = &fa_problem_fields[i];
        int32_t v = f->part == FA_FIELD_CLASS || shaped ? fa_problem_get(p, f) : 0;
        if (f->kind == FA_FIELD_NUMBER)
            set_int(L, f->word, v);
        else
            set_text(L, f->word, fa_problem_field_text(text, sizeof text, f, v));
    }
    set_int(L, "kv_align", fa_problem_kv_align(p)); /* always a number */
    set_int(L, "bytes", fa_dtype_bytes(p->dtype));
    set_int(L, "o_bytes", fa_dtype_bytes(p->o_dtype));
    set_text(L, "wide_values", fa_problem_wide_values(p) ? fa_dtype_name(fa_problem_wide_values(p)) : "");
    set_int(L, "grad_bytes", fa_dtype_bytes(p->grad_dtype));
    for (int32_t bit = 1; fa_feature_name(bit)[0] != '?'; bit *= 2) {
        snprintf(text, sizeof text, "has_%s", fa_feature_name(bit));
        for (char *s = text; *s; s++)
            *s = *s == '-' ? '_' : *s;
        set_flag(L, text, p->features & bit);
    }
    fa_sandbox_score_push(L, p);
    lua_setfield(L, -2, "score");
}

/* asked: of which a kernel before makes the problem, or NULL. */
static void push_problem(lua_State *L, const fa_problem *p, const fa_problem *asked, bool shaped)
{
    key k;
    begin(&k, PROBLEM);
    k.shaped = shaped;
    k.known = fa_score_known(p) != NULL;
    k.is.problem.is = *p;
    if (asked)
        k.is.problem.asked = *asked;
    if (push_again(L, &k))
        return;
    push_fields(L, p, shaped);
    if (asked) {
        push_fields(L, asked, shaped);
        set_flag(L, "low", false);
        fa_sandbox_strict(L, -1, "the problem");
    } else
        lua_pushboolean(L, false);
    lua_setfield(L, -2, "low");
    fa_sandbox_strict(L, -1, "the problem");
    keep(L, &k);
}

static void push_arch(lua_State *L, const fa_arch *a)
{
    key k;
    begin(&k, ARCH);
    k.is.arch = *a;
    if (push_again(L, &k))
        return;
    lua_createtable(L, 0, 32);
    set_text(L, "name", a->name);
    set_int(L, "cc", a->cc);
#define INT(x) set_int(L, #x, a->x)
    INT(smem_block), INT(smem_sm), INT(smem_reserved), INT(regs_sm), INT(regs_thread), INT(threads_sm), INT(warps_sm);
    INT(blocks_sm), INT(sm_count), INT(l2_bytes);
#undef INT
#define NUMBER(x) set_number(L, #x, a->x)
    NUMBER(clock_ghz), NUMBER(mma16_flop), NUMBER(mma_tf32_flop), NUMBER(wgmma16_flop), NUMBER(ffma_flop), NUMBER(exp_rate);
    NUMBER(issue_rate), NUMBER(smem_bytes_clk), NUMBER(l2_gbs), NUMBER(hbm_gbs);
#undef NUMBER
    set_flag(L, "has_cp_async", a->cc >= 80);
    set_flag(L, "has_bf16", a->cc >= 80);
    set_flag(L, "has_mbarrier", a->cc >= 80);
    set_flag(L, "has_tma", a->cc >= 90);
    set_flag(L, "has_cluster", a->cc >= 90);
    set_flag(L, "has_wgmma", a->wgmma16_flop > 0);
    fa_sandbox_strict(L, -1, "the arch");
    keep(L, &k);
}

static void push_names(lua_State *L, const fa_family *f)
{
    key k;
    begin(&k, NAMES);
    memcpy(k.is.family, f->name, sizeof k.is.family);
    if (push_again(L, &k))
        return;
    fa_names_push(L, f);
    keep(L, &k);
}

int32_t fa_budget(const fa_arch *a, int32_t budget)
{
    return budget > 0 && budget < a->smem_block ? budget : a->smem_block;
}

void fa_lua_args_push(lua_State *L, fa_lua_args *fr, const fa_family *f, const fa_problem *p, const fa_arch *a, int32_t budget, bool shaped)
{
    luaL_checkstack(L, 16, NULL);
    bool widens = fa_family_widens(f, p);
    fr->asked = p;
    fr->widened = widens ? fa_problem_widened(p) : *p;
    fr->problem = &fr->widened;
    push_problem(L, fr->problem, widens ? p : NULL, shaped);
    fr->p = lua_gettop(L);
    lua_createtable(L, 0, FA_CONFIG_MAX + 2);
    set_text(L, "family", f->name);
    push_names(L, f);
    lua_setfield(L, -2, "named");
    fr->c = lua_gettop(L);
    push_arch(L, a);
    fr->a = lua_gettop(L);
    fr->arch = a;
    fr->budget = fa_budget(a, budget);
}

void fa_lua_args_set(lua_State *L, const fa_lua_args *fr, const char *tunable, int32_t value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, fr->c, tunable);
}
