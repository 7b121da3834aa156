/* family: one kernel family, a NAME.lua with its tunables, constraints, layout, steps and work, and a NAME.cu. The contract
 * of the .lua is in docs/templates.md. */
#ifndef FA_GEN_FAMILY_H
#define FA_GEN_FAMILY_H
#include "gen.h"
#include "operation.h"
#include "space.h"
#include "template.h"

#define FA_CONSTRAINTS_MAX 28
#define FA_VALUES_MAX 1024  /* of a tunable */
#define FA_THREADS_MAX 1024 /* of a block */
#define FA_MOVES_MAX 16
#define FA_VALUE_NAME_MAX 23 /* letters */

typedef struct fa_family {
    char name[24];
    char file[sizeof((fa_file *)0)->name]; /* "families/naive.lua" */
    bool loaded;                           /* else its name is all that is known */
    char *doc;
    bool is_default;   /* listed without being named */
    bool is_reference; /* the others are held against it */
    bool few_rows;     /* not listed, unless it is named, for dense problems of many query rows */
    bool widens;       /* a kernel before its own makes 16 bits of K and V of few bits that it does not read */
    bool splits;       /* not listed, unless it is named, but for problems that fa_problem_splits() */
    int32_t head_dim;  /* the largest d and dv that it computes */
    int32_t rank;      /* the lower is listed first */
    int n_tunables, n_constraints;
    fa_tunable tunable[FA_CONFIG_MAX];
    int axis[2]; /* the tunables that are rows and columns of the tile; -1 = none */
    int n_moves;
    fa_move move[FA_MOVES_MAX];
    struct {
        char name[24];
        int ref;
        fa_limit limit; /* what it is about */
        int upto;       /* the last tunable it reads, by number; n_tunables where it did not say */
        bool search;    /* only says what is not worth trying: such a config is not listed, but runs when it is named */
    } constraint[FA_CONSTRAINTS_MAX];
    const fa_operation *operation;
    int32_t features; /* fa_feature bits that it computes */
    bool eight;       /* it multiplies Q, K and V of 8 bits, and nothing else */
    bool wide_q;      /* it reads Q in fp32 beside K and V of few bits */
    uint32_t formats; /* of K and V that it reads beside Q's type: a bit for each row of gen/formats.def */
    /* References in Lua's registry; the last four: LUA_NOREF where absent. */
    int supports, layout, steps, work, workspace, params, start;
} fa_family;

struct fa_gen {
    fa_sandbox *sb;
    fa_files files;
    fa_output none;   /* what a .lua may include with; takes no text */
    fa_output output; /* of the render under way; closed between renders */
    fa_family *family;
    size_t n;
    int64_t priced; /* configs */
};

/* Inside a run. Executes NAME.lua and fills f; raises what is wrong with it. f->name is set by the caller. */
void fa_family_load(lua_State *L, fa_gen *g, fa_family *f);
void fa_family_free(fa_family *f);
/* NULL when there is none of that name; the message lists the names. */
const fa_family *fa_family_find(const fa_gen *g, const char *name);

/* Inside a run: of the table at the top of the stack, by tunable.c. One of `tunables`; then, of the family's table, its tile and moves. */
void fa_tunable_read(lua_State *L, fa_family *f);
void fa_tile_read(lua_State *L, fa_family *f);
void fa_moves_read(lua_State *L, fa_family *f);
/* Inside a run. Pushes { tunable = { name = value } } of the values with names. */
void fa_names_push(lua_State *L, const fa_family *f);
void fa_tunable_free(fa_tunable *t);
/* Each tunable at the first of its values. */
fa_config fa_family_first(const fa_family *f);
/* fa_gen_config_print; f NULL: no value has a name. */
int fa_family_config_print(char *buf, size_t n, const fa_family *f, const fa_config *c);

/* Whether configs of it are listed for p without its being named. */
bool fa_family_listed(const fa_family *f, const fa_problem *p);
/* The tunables in the declared order, each with a declared value, 0 of one that came later and is not there; FA_INVALID names what else is
 * accepted. */
fa_status fa_family_config(fa_config *out, const fa_family *f, const fa_config *c);
/* The failure that a judged point means: FA_NO_FIT where the chip has no room for the layout, else FA_UNSUPPORTED. */
fa_status fa_family_reject(const fa_family *f, const fa_problem *p, const fa_arch *a, const fa_config *c, const fa_point *pt,
                           bool supported);

/* Whether a kernel before the family's makes 16 bits of the problem's K and V. */
bool fa_family_widens(const fa_family *f, const fa_problem *p);

/* The tables that a family's functions get, at these stack indexes. */
typedef struct fa_lua_args {
    int p, c, a;
    const fa_problem *problem; /* that the family computes */
    const fa_problem *asked;   /* of which a kernel before may make that one */
    fa_problem widened;        /* room for it */
    const fa_arch *arch;
    int32_t budget; /* effective, bytes */
} fa_lua_args;

/* Inside a run. From here on the tables p, a and c.named are made once: for families that leave them as they are, as the library's do. */
int fa_lua_args_keep(lua_State *L);
/* Inside a run. Pushes p (without its shape unless shaped), c (empty but for the family's name) and a. */
/* Of a family that widens p is the problem that it computes, and p.low the one that was asked for, else false. fr stays where it is. */
void fa_lua_args_push(lua_State *L, fa_lua_args *fr, const fa_family *f, const fa_problem *p, const fa_arch *a, int32_t budget,
                      bool shaped);
void fa_lua_args_set(lua_State *L, const fa_lua_args *fr, const char *tunable, int32_t value);

/* Inside a run. Does the family compute the problem? why gets its reason. */
bool fa_family_supports(lua_State *L, const fa_lua_args *fr, const fa_family *f, char *why, size_t n);
/* Inside a run. Asks the constraints that read no tunable after number `last`, and that one: false, and why in out, when one
 * fails. Then every config that shares these tunables fails likewise. */
bool fa_family_prefix(lua_State *L, const fa_lua_args *fr, const fa_family *f, int last, fa_point *out);
/* What fa_family_judge asks: whether a config that a caller names runs; whether it is listed; the same where fa_family_prefix held for
 * every tunable. */
typedef enum fa_judging { FA_NAMED, FA_LISTED, FA_LISTED_REST } fa_judging;
/* Inside a run. Judges the config in fr->c: fills all of out but its config, and size_only: it fails for its shared memory
 * and nothing else. Leaves the layout, or nil, on the stack. */
void fa_family_judge(lua_State *L, const fa_lua_args *fr, const fa_family *f, fa_judging how, fa_point *out, bool *size_only);
/* Inside a run. Whether the family supports the problem of fr, judged for the config c that a caller names: in fr->c then. Leaves the
 * layout, or nil, on the stack where it does. */
bool fa_family_judge_named(lua_State *L, const fa_lua_args *fr, const fa_family *f, const fa_config *c, fa_point *out);
/* Inside a run. The layout of the config in fr->c, left on the stack; what it says of smem, threads and regs goes to out. */
void fa_family_layout(lua_State *L, const fa_lua_args *fr, const fa_family *f, fa_point *out);
/* Inside a run. The kernels of the config in fr->c with the layout at index layout. */
void fa_family_steps(lua_State *L, const fa_lua_args *fr, const fa_family *f, int layout, fa_source *out);
/* Inside a run. The buffers of its workspace. */
void fa_family_workspace(lua_State *L, const fa_lua_args *fr, const fa_family *f, int layout, fa_source *out);
/* Inside a run, after fa_family_workspace. The parameters that its kernels take, packed as out->packing says; leaves an array of
 * { type, name, comment } on the stack. */
void fa_family_params(lua_State *L, const fa_lua_args *fr, const fa_family *f, int layout, fa_source *out);

/* Inside a run. An integer field, from 0, of the table at the top, which is `of` in messages; booleans, and floats without a
 * fraction, count. Absent: fallback, or an error when that is negative. */
int32_t fa_family_integer(lua_State *L, const fa_family *f, const char *of, const char *field, int32_t fallback);

/* The budget a block really has: the caller's, or the chip's where that is 0 or smaller. */
int32_t fa_budget(const fa_arch *a, int32_t budget);
#endif
