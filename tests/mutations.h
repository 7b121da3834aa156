/* mutations: faults to put into the templates, each with the scenes that must notice it. Scenes of the Hopper family run on a
 * simulated H200 with two SMs, the others on an A100. */
#ifndef MUTATIONS_H
#define MUTATIONS_H

/* A small case that runs in about a tenth of a second. */
typedef struct scene {
    const char *name;
    const char *problem, *config;
    int sq, sk;
    int left, right, diagonal, offset;
    int values, hidden, layout; /* layout: of K and O; V and Q get the next ones, so that no two strides are equal */
    float scale;
} scene;
extern const scene scenes[], hopper_scenes[]; /* each ended by a row without name */

typedef struct mutation {
    const char *name;
    const char *file;
    const char *find, *replace;
    int nth;            /* which occurrence, from 0 */
    const char *scenes; /* names, separated by blanks */
} mutation;
extern const mutation mutations[], hopper_mutations[]; /* each ended by a row without name */
#endif
