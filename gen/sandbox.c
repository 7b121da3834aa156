/* sandbox: one Lua state with limits and a short list of names. */
#include "sandbox.h"
#include "error.h"
#include <lauxlib.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#define HOOK_EVERY 100                  /* instructions between two looks at the limits */
#define CHURN_BYTES ((size_t)512 << 20) /* allocated in one run, freed or not: bounds the time spent inside copies */
#define BLOCK_BYTES ((size_t)16 << 20)  /* of one block */
#define STRING_BYTES ((size_t)4 << 20)  /* of one string: bounds what a single instruction can compare, convert or copy */
#define STRING_HEAD 64                  /* what Lua keeps before the bytes of a string, and the zero after them: not more */
/* A state holds some MiB of chunks and families, and each config leaves a few KB: Lua's own 200 would mark all of it for every two. */
#define GC_PAUSE 800                 /* percent of what was held after a collection at which the next begins */
#define DEEP 16000                   /* calls within calls: before the memory ends, which could not say where */
#define STEPS_PER_BYTE 4             /* of text that is compiled */
#define STEPS_PER_BYTE_KEPT 1        /* of text that was compiled before: of what it makes when it runs */
#define CHUNKS_MOST 512              /* compiled texts that a state keeps: twice those of the library */
#define DEEP_EVERY (64 * HOOK_EVERY) /* instructions between two looks at that, which take longer */

/* The last resort against scripts of others, for work that is neither steps nor memory (comparing long strings, passing long lists on):
 * processor time of this thread, so that a busy host changes nothing; instructions that did run earn some, so that a slow host changes
 * nothing. */
#define CPU_NS 500000000
#define CPU_NS_PER_INSTRUCTION 200
#define LOOK_NS 10000000 /* between two readings of that clock, which is a system call */

/* Beside that there is a limit by the clock on the wall. A gap between two looks counts for no more than GAP_NS: a process that was
 * stopped, or a machine that slept, is not late. */
#define WALL_NS 30000000000
#define GAP_NS 1000000000

struct fa_sandbox {
    lua_State *L;
    size_t held, churn;
    int64_t steps, limit; /* left in this run; of each run */
    int64_t ran;          /* instructions of this run */
    int64_t spent, last;  /* steps of all runs before; that this run began with */
    int64_t cpu;          /* when the run began, by CLOCK_THREAD_CPUTIME_ID */
    int64_t look, wall;   /* when both clocks were read last, by CLOCK_MONOTONIC; how long the run has taken by that one */
    int64_t faults;       /* runs that failed */
    int depth;            /* of includes */
    bool host_oom, long_string, churned;
    bool timed, counted; /* whether time has a limit; whether each instruction is looked at */
    locale_t plain;      /* "C": numbers and order must not depend on the caller's locale */
    char error[1536];
};

static void *allocate(void *ud, void *ptr, size_t old, size_t size)
{
    fa_sandbox *sb = ud;
    bool string = !ptr && old == LUA_TSTRING; /* of a new block Lua passes what it is for */
    if (!ptr)
        old = 0;
    if (!size) {
        free(ptr);
        sb->held -= old;
        return NULL;
    }
    if (string && size > STRING_BYTES + STRING_HEAD) {
        sb->long_string = true;
        return NULL;
    }
    if (size > old) {
        sb->churned = size - old > CHURN_BYTES - sb->churn;
        if (size > BLOCK_BYTES || size - old > FA_SANDBOX_BYTES - sb->held || sb->churned)
            return NULL;
        sb->churn += size - old;
    }
    void *p = realloc(ptr, size);
    if (!p) {
        if (size <= old)
            return ptr; /* shrinking must not fail */
        sb->host_oom = true;
        return NULL;
    }
    sb->held += size - old;
    return p;
}

static fa_sandbox *of(lua_State *L)
{
    void *ud;
    lua_getallocf(L, &ud);
    return ud;
}

fa_status fa_sandbox_reason(lua_State *L, fa_status st)
{
    of(L)->host_oom |= st == FA_NOMEM;
    return st;
}

void fa_sandbox_no_memory(lua_State *L, const char *what)
{
    fa_sandbox_reason(L, FA_NOMEM);
    luaL_error(L, "no memory for %s", what);
    abort(); /* luaL_error does not return */
}

void fa_sandbox_renew(lua_State *L)
{
    fa_sandbox *sb = of(L);
    sb->churn = 0;
    sb->spent += sb->last - sb->steps;
    sb->last = sb->steps = sb->limit;
}

int fa_sandbox_nest(lua_State *L, int by)
{
    return of(L)->depth += by;
}

static int64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static bool late(fa_sandbox *sb)
{
    if (!sb->timed)
        return false;
    int64_t t = now(CLOCK_MONOTONIC), gap = t - sb->look;
    if (gap < LOOK_NS)
        return false;
    sb->look = t;
    sb->wall += gap < GAP_NS ? gap : GAP_NS;
    return sb->wall > WALL_NS || now(CLOCK_THREAD_CPUTIME_ID) - sb->cpu > CPU_NS + CPU_NS_PER_INSTRUCTION * sb->ran;
}

/* Takes work off what is left; the limit that is used up, or NULL. */
static const char *spend(fa_sandbox *sb, double work)
{
    sb->steps = work < (double)sb->steps ? sb->steps - (int64_t)work : 0;
    return sb->steps <= 0 ? "the step limit is used up" : late(sb) ? "the time limit is used up" : NULL;
}

void fa_sandbox_charge(lua_State *L, double work)
{
    const char *limit = spend(of(L), work);
    if (limit)
        luaL_error(L, "%s", limit);
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    of(L)->ran += HOOK_EVERY;
    const char *limit = spend(of(L), HOOK_EVERY);
    lua_Debug deep;
    if (!limit && of(L)->ran % DEEP_EVERY == 0 && lua_getstack(L, DEEP, &deep))
        limit = "calls are nested more than 16000 deep";
    if (!limit)
        return;
    lua_getinfo(L, "Sl", ar);
    lua_pushfstring(L, "%s:%d: %s", ar->short_src, ar->currentline, limit);
    lua_error(L);
}

/* The address is the key of the table of chunks in Lua's registry. */
static const char chunks;

/* Gives the chunk at the top of the stack, which may have run before, an environment of its own: functions that it made then keep theirs.
 * A main function has one upvalue, its environment. */
static void place(lua_State *L, int env)
{
    if (luaL_loadbufferx(L, "", 0, "=env", "t") != LUA_OK)
        lua_error(L);
    lua_pushvalue(L, env);
    lua_setupvalue(L, -2, 1);
    lua_upvaluejoin(L, -2, 1, -1, 1);
    lua_pop(L, 1);
}

/* Pushes the table of chunks: a new one where it has as many as that. */
static void push_chunks(lua_State *L)
{
    lua_Integer n = CHUNKS_MOST;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &chunks) == LUA_TTABLE) {
        lua_rawgeti(L, -1, 1);
        n = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    if (n < CHUNKS_MOST)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &chunks);
}

/* Pushes the chunk of the key at the top, which it takes, in that environment. Compiled once: from text, or from what Lua made of it. */
static void load(lua_State *L, int env, const char *bytes, size_t n, const char *chunkname, const char *mode)
{
    env = lua_absindex(L, env);
    int key = lua_gettop(L), at = key + 1;
    push_chunks(L);
    lua_pushvalue(L, key);
    if (lua_rawget(L, at) != LUA_TFUNCTION) {
        fa_sandbox_charge(L, (double)n * (*mode == 't' ? STEPS_PER_BYTE : STEPS_PER_BYTE_KEPT));
        if (luaL_loadbufferx(L, bytes, n, chunkname, mode) != LUA_OK)
            lua_error(L);
        lua_pushvalue(L, key);
        lua_pushvalue(L, -2);
        lua_rawset(L, at);
        lua_rawgeti(L, at, 1);
        lua_pushinteger(L, lua_tointeger(L, -1) + 1);
        lua_rawseti(L, at, 1);
        lua_pop(L, 1);
    } else
        fa_sandbox_charge(L, (double)n * STEPS_PER_BYTE_KEPT);
    place(L, env);
    lua_replace(L, key);
    lua_settop(L, key);
}

void fa_sandbox_load(lua_State *L, int env, const char *text, size_t n, const char *chunkname)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(text, n, XXH3_64bits(chunkname, strlen(chunkname)));
    env = lua_absindex(L, env);
    lua_pushlstring(L, (const char *)&hash, sizeof hash);
    load(L, env, text, n, chunkname, "t");
}

void fa_sandbox_load_compiled(lua_State *L, int env, const char *bytes, size_t n, const char *chunkname)
{
    env = lua_absindex(L, env);
    lua_pushlightuserdata(L, (void *)(uintptr_t)bytes);
    load(L, env, bytes, n, chunkname, "b");
}

int64_t fa_sandbox_faults(lua_State *L)
{
    return of(L)->faults;
}

int64_t fa_sandbox_spent(const fa_sandbox *sb)
{
    return sb->spent + sb->last - sb->steps;
}

fa_status fa_sandbox_open(fa_sandbox **out, lua_CFunction names)
{
    fa_sandbox *sb = calloc(1, sizeof *sb);
    *out = NULL;
    if (!sb || !(sb->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)) || !(sb->L = lua_newstate(allocate, sb))) {
        if (sb && sb->plain)
            freelocale(sb->plain);
        free(sb);
        return fa_fail(FA_NOMEM, "no memory for a Lua state");
    }
    lua_gc(sb->L, LUA_GCINC, GC_PAUSE, 0, 0);
    sb->limit = sb->last = sb->steps = FA_SANDBOX_STEPS;
    sb->timed = sb->counted = true;
    const char *error;
    fa_status st = fa_sandbox_run(sb, names, NULL, &error);
    if (st != FA_OK) {
        fa_fail(st, "the Lua state did not open: %s", error);
        fa_sandbox_close(sb);
        return st;
    }
    *out = sb;
    return FA_OK;
}

void fa_sandbox_limit(fa_sandbox *sb, int64_t steps)
{
    sb->limit = steps;
}

void fa_sandbox_trust(fa_sandbox *sb)
{
    sb->timed = sb->counted = false;
}

void fa_sandbox_count(fa_sandbox *sb)
{
    sb->counted = true;
}

void fa_sandbox_close(fa_sandbox *sb)
{
    if (sb) {
        lua_close(sb->L);
        freelocale(sb->plain);
    }
    free(sb);
}

/* Gives a message without a place that of the innermost line of Lua: a charged library call hides it. */
static int locate(lua_State *L)
{
    lua_Debug ar;
    const char *s = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "an error that is not a string";
    if (!strncmp(s, "templates/", 10))
        return 1;
    for (int level = 0; lua_getstack(L, level, &ar); level++)
        if (lua_getinfo(L, "Sl", &ar) && ar.currentline > 0) {
            lua_pushfstring(L, "%s:%d: %s", ar.short_src, ar.currentline, s);
            return 1;
        }
    lua_pushstring(L, s);
    return 1;
}

fa_status fa_sandbox_run(fa_sandbox *sb, lua_CFunction fn, void *job, const char **error)
{
    lua_State *L = sb->L;
    lua_settop(L, 0);
    lua_sethook(L, NULL, 0, 0);
    if (sb->held > FA_SANDBOX_BYTES / 4)
        lua_gc(L, LUA_GCCOLLECT);
    sb->churn = 0;
    sb->spent += sb->last - sb->steps;
    sb->last = sb->steps = sb->limit;
    sb->depth = 0;
    sb->ran = 0;
    sb->cpu = now(CLOCK_THREAD_CPUTIME_ID);
    sb->look = now(CLOCK_MONOTONIC);
    sb->wall = 0;
    sb->host_oom = sb->long_string = sb->churned = false;
    locale_t callers = uselocale(sb->plain);
    if (sb->counted)
        lua_sethook(L, on_count, LUA_MASKCOUNT, HOOK_EVERY);
    lua_pushcfunction(L, locate);
    lua_pushcfunction(L, fn);
    lua_pushlightuserdata(L, job);
    int rc = lua_pcall(L, 1, 0, 1);
    uselocale(callers);
    lua_sethook(L, NULL, 0, 0);
    sb->faults += rc != LUA_OK;
    fa_status st = rc == LUA_OK ? FA_OK : sb->host_oom ? FA_NOMEM : FA_TEMPLATE;
    if (rc == LUA_ERRMEM && sb->long_string)
        snprintf(sb->error, sizeof sb->error, "the memory limit of a string, %zu MiB, is used up", STRING_BYTES >> 20);
    else if (rc == LUA_ERRMEM && sb->churned)
        snprintf(sb->error, sizeof sb->error, "the memory limit of a run, %zu MiB, freed or not, is used up", CHURN_BYTES >> 20);
    else if (rc == LUA_ERRMEM && !sb->host_oom)
        snprintf(sb->error, sizeof sb->error, "the memory limit of %d MiB is used up", FA_SANDBOX_BYTES >> 20);
    else if (rc != LUA_OK)
        snprintf(sb->error, sizeof sb->error, "%s", lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "an error that is not a string");
    lua_settop(L, 0);
    *error = sb->error;
    return st;
}
