/* gen: the generator: families loaded from templates/, their spaces, their text. One object holds one Lua state; it is not
 * thread-safe: give each thread its own (opening takes about a millisecond). */
#ifndef FA_GEN_GEN_H
#define FA_GEN_GEN_H
#include "arch.h"
#include "config.h"
#include "source.h"
#include <fagen.h>

typedef struct fa_gen fa_gen;

/* template_dir: NULL or "" = the embedded templates; else files there override the embedded ones one by one. */
fa_status fa_gen_open(fa_gen **out, const char *template_dir);
void fa_gen_close(fa_gen *g); /* NULL is fine */

/* With the embedded templates, of which a family is loaded when it is first named, or its operation is. The functions below that take a
 * const fa_gen know of loaded ones alone, in no fixed order. */
fa_status fa_gen_open_lazy(fa_gen **out);
fa_status fa_gen_load_operation(fa_gen *g, int32_t op);
fa_status fa_gen_load_family(fa_gen *g, const char *name); /* FA_OK where there is none of that name: who looks for it says so */

/* What it has done so far: configs that it gave a price, and steps of its scripts, which of the embedded ones count from fa_gen_count() on.
 */
typedef struct fa_gen_work {
    int64_t steps, priced;
} fa_gen_work;
fa_gen_work fa_gen_worked(const fa_gen *g);
void fa_gen_count(fa_gen *g);

/* The families in a fixed order: those listed by default first, of these the lower `rank`, then by name. */
size_t fa_gen_families(const fa_gen *g);
const char *fa_gen_family(const fa_gen *g, size_t i);
/* So many are listed without being named; those after them are kept for comparison. */
size_t fa_gen_defaults(const fa_gen *g);
int32_t fa_gen_operation(const fa_gen *g, size_t i); /* fa_op of the i-th; -1: there is none */
/* The family that the others of an operation are held against: the device's oracle and the baseline of times. NULL where none says
 * `reference`. */
const char *fa_gen_reference(const fa_gen *g, int32_t op);
/* Its first config: each tunable at its first value. FA_UNSUPPORTED where there is no such family. */
fa_status fa_gen_reference_config(fa_gen *g, int32_t op, fa_config *out);

/* Whether a config of the family may be chosen for p: one that cuts tiles into parts only where launches say whether they bring a
 * workspace. Loads the family; true where that fails, which its price tells. */
bool fa_gen_chosen_for(fa_gen *g, const char *family, const fa_problem *p);
/* Whether the family cuts tiles into parts, as it declares. Loads it; false where that fails. */
bool fa_gen_splits(fa_gen *g, const char *family);

/* One tunable of a family. Valid until fa_gen_close. */
typedef struct fa_tunable {
    const char *name, *doc;
    const int32_t *values;
    size_t n;
    const char *const *names; /* of the values, NULL for one without; NULL where none has a name */
    int32_t step;             /* a neighbour's value stands at most so many places away; FA_STEP_ANY: anywhere */
    bool later;               /* there are records from before: a config that lacks it has the value 0, and texts leave that out */
} fa_tunable;
#define FA_STEP_ANY 0
/* False when i is past the last one. */
bool fa_gen_tunable(const fa_gen *g, const char *family, size_t i, fa_tunable *out);
/* What `step` is where a family does not say: any other of a few values, one of the two next ones on either side of many. */
int32_t fa_tunable_step(size_t values);
/* The values for a message: "plain (0), pingpong (1), 16". */
struct fa_text;
void fa_tunable_list(struct fa_text *out, const fa_tunable *t);
/* fa_config_set of a tunable of the config's family. */
bool fa_tunable_set(fa_config *c, const fa_tunable *t, int32_t value);
/* Whether the config names every tunable of its family, those that came later aside. False where there is no such family. */
bool fa_gen_config_whole(const fa_gen *g, const fa_config *c);
/* The name of a value, NULL where it has none. */
const char *fa_tunable_name(const fa_tunable *t, int32_t value);

/* Tunables that move together in one step: places in their lists of values, up or down. The step back is one too. */
#define FA_MOVE_PARTS 4
typedef struct fa_move {
    int32_t n;
    struct {
        int32_t tunable, by;
    } part[FA_MOVE_PARTS];
} fa_move;
/* False when i is past the family's last one. */
bool fa_gen_move(const fa_gen *g, const char *family, size_t i, fa_move *out);

/* The two tunables that are a family's tile, by number: rows, columns. False where it declares none. */
bool fa_gen_axes(const fa_gen *g, const char *family, int axis[2]);
/* Their values in a config; false, and zeros, where its family declares none. */
bool fa_gen_tile(const fa_gen *g, const fa_config *c, int32_t tile[2]);

/* The form of a config for people, values by name where they have one: "family:rows=64,schedule=pingpong". The parser takes numbers too:
 * both forms are the same config. A family that g lacks has no names. */
int fa_gen_config_print(const fa_gen *g, char *buf, size_t n, const fa_config *c);
fa_status fa_gen_config_parse(const fa_gen *g, fa_config *out, const char *s);

/* Renders a config to text: deterministic, byte for byte. Checks the hard constraints first: FA_NO_FIT or FA_UNSUPPORTED
 * with the constraint's name and numbers; FA_TEMPLATE with file, line and the line's text for a fault in a template. */
fa_status fa_render(fa_gen *g, const fa_problem *p, const fa_config *c, const fa_arch *a, int32_t budget, fa_source *out);
#endif
