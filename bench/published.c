/* published: the simulator as a library of three functions, for published.py. */
#include "sim/sim.h"
#include <stddef.h>
#include <string.h>

#define DOOR __attribute__((visibility("default")))
DOOR int published_open(const char *archs);
DOOR void *published_function(const char *name);
DOOR void published_options(int async, int schedule, unsigned long long seed);
DOOR const char *published_report(void);

static const cu_driver *cu;

DOOR int published_open(const char *archs) { return (cu = sim_open(archs)) != NULL; }

/* An entry of the driver table by the name that cuda.h gives it, without the suffix of a version. NULL: there is none. */
DOOR void *published_function(const char *name)
{
    static const struct { const char *name; size_t at; } rows[] = {
#define X(f) {#f, offsetof(cu_driver, f)},
        CU_DRIVER_FUNCTIONS(X)
#undef X
    };
    for (size_t k = 0; cu && k < sizeof rows / sizeof *rows; k++) {
        void *f;
        if (strcmp(rows[k].name, name) != 0) continue;
        memcpy(&f, (const char *)cu + rows[k].at, sizeof f);
        return f;
    }
    return NULL;
}

DOOR void published_options(int async, int schedule, unsigned long long seed)
{
    sim_set_options(&(sim_options){.async = (sim_async)async, .schedule = (sim_schedule)schedule, .seed = seed});
}

DOOR const char *published_report(void) { return sim_report(); }
