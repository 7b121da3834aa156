/* sandbox: one Lua state in which templates run, with what they may call, how much memory and how many steps.
 *
 * Lua is no security boundary: templates are trusted as code is. The limits are there so that a faulty template ends in a
 * message, and the missing functions so that rendering is deterministic. Text chunks only; no pairs, no addresses in
 * strings, no random numbers, no I/O, and nothing that could swallow the error of a limit. */
#ifndef FA_GEN_SANDBOX_H
#define FA_GEN_SANDBOX_H
#include <fagen.h>
#include <lua.h>
#include <stdint.h>

#define FA_SANDBOX_BYTES (32 << 20) /* memory held at one time; the text it writes has limits of its own */
#define FA_SANDBOX_STEPS 50000000   /* Lua instructions of one call; library calls are charged by what they do */

typedef struct fa_sandbox fa_sandbox;

/* names: opens what scripts may call, once (sandbox_names.h). */
fa_status fa_sandbox_open(fa_sandbox **out, lua_CFunction names);
void fa_sandbox_close(fa_sandbox *sb); /* NULL is fine */

/* Later runs get so many steps at most; for callers that run random text. */
void fa_sandbox_limit(fa_sandbox *sb, int64_t steps);

/* Later runs have no limit of time: the library's own scripts must not fail on a slow or busy host. Nor are their instructions counted, for
 * which Lua looks at each: a sixth of the time of a choice. What ends them is memory, of which a run has so much, freed or not, and the
 * steps of library calls. */
void fa_sandbox_trust(fa_sandbox *sb);
/* Counts the instructions of later runs all the same. */
void fa_sandbox_count(fa_sandbox *sb);

/* Steps of all runs since it was opened, where instructions are counted; those of a run count in hundreds. */
int64_t fa_sandbox_spent(const fa_sandbox *sb);

/* Runs fn(L) with job as its only argument, a light userdata, under fresh limits. Everything that touches the state goes
 * through here. On failure the result is what Lua raised, in *error until the next run ("templates/x.cu:3: ..."); the
 * status is FA_TEMPLATE, or FA_NOMEM where the host, not the limit, ran out. Sets no message of its own. */
fa_status fa_sandbox_run(fa_sandbox *sb, lua_CFunction fn, void *job, const char **error);

/* Inside a run. Runs that failed since it was opened. */
int64_t fa_sandbox_faults(lua_State *L);
/* Inside a run. Pushes a new environment: the allowed names, fresh copies, strict about undefined ones. */
void fa_sandbox_env(lua_State *L);
/* Takes work off the steps that are left, as much as so many instructions; raises where a limit is reached. */
void fa_sandbox_charge(lua_State *L, double work);
/* The error that C raises next has this reason: FA_NOMEM becomes the run's status, any other is as none. Returns st. */
fa_status fa_sandbox_reason(lua_State *L, fa_status st);
/* Raises "no memory for <what>", for that reason. */
_Noreturn void fa_sandbox_no_memory(lua_State *L, const char *what);
/* The run gets the steps of a new one, and may allocate as much again: of one that does the same for many configs, of which there is a
 * most. Its time goes on. */
void fa_sandbox_renew(lua_State *L);
/* How deep includes are, after `by` more: each run begins at 0, however the one before ended. */
int fa_sandbox_nest(lua_State *L, int by);
/* Pushes the chunk compiled from text, with the environment at index env. A text of one chunkname is compiled once: later it costs a
 * quarter of the steps. Raises Lua's syntax error. */
void fa_sandbox_load(lua_State *L, int env, const char *text, size_t n, const char *chunkname);
/* The same of what this Lua compiled when the library was built; the bytes stay where they are. */
void fa_sandbox_load_compiled(lua_State *L, int env, const char *bytes, size_t n, const char *chunkname);
/* Makes reading an absent field of the table at index an error: "<what> has no field 'x'". */
void fa_sandbox_strict(lua_State *L, int index, const char *what);
#endif
