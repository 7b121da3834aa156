/* mutations: faults to put into the templates, each with the scenes that must notice it. Scenes of the Hopper family and of the
 * decode families run on a simulated H200 with few SMs, the others on an A100. */
#ifndef MUTATIONS_H
#define MUTATIONS_H
#include "verify/operands/ragged.h"
#include <stdbool.h>

/* A small case that runs in about a tenth of a second. */
typedef struct scene {
    const char *name;
    const char *problem, *config;
    int sq, sk;
    int left, right, diagonal, offset;
    int values, hidden, layout; /* layout: of K and O; V and Q get the next ones, so that no two strides are equal */
    float scale;
    const fa_ragged_how *ragged; /* of a problem with lengths: how they and the pages are drawn */
    int64_t chunk;               /* bytes of buffers over units that the workspace holds at a time; 0: FA_WORKSPACE_CHUNK */
} scene;

typedef struct mutation {
    const char *name;
    const char *file;
    const char *find, *replace;
    int nth;            /* which occurrence, from 0 */
    const char *scenes; /* names, separated by blanks */
} mutation;

typedef struct mutation_list {
    const scene *scenes;
    const mutation *mutations; /* each ended by a row without name; a mutation's scenes are of its own list */
    int sm_count;              /* of the simulated H200 they run on; 0: an A100 */
    int every;                 /* one in so many runs by default; 0: one of every twentieth template; all with FAGEN_TEST_FULL */
    bool each; /* each of a row's scenes must notice it, not one of them; by default one is asked, of the next row the next one */
} mutation_list;
extern const mutation_list mutation_lists[]; /* of the suite; ended by a row without scenes */
extern const scene ranges_scenes[], ranges_hopper_scenes[], work_scenes[];
extern const mutation ranges_mutations[], ranges_hopper_mutations[], work_mutations[];
extern const scene low_scenes[];
extern const mutation low_mutations[];
extern const scene hopper_scenes[];
extern const mutation hopper_mutations[];
extern const scene hopper_lengths_scenes[];
extern const mutation hopper_lengths_mutations[];
#endif
