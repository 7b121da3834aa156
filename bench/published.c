/* published: the simulator as a library of a few functions, for published.py. */
#include "sim/sim.h"
#include <stddef.h>
#include <string.h>

#define DOOR __attribute__((visibility("default")))
DOOR int published_open(const char *archs);
DOOR void *published_function(const char *name);
DOOR int published_options(int async, int schedule, unsigned long long seed, const char *checks);
DOOR int published_warnings(char *to, size_t room);
DOOR const char *published_report(void);

static const cu_driver *cu;

DOOR int published_open(const char *archs)
{
    return (cu = sim_open(archs)) != NULL;
}

/* An entry of the driver table by the name that cuda.h gives it, without the suffix of a version. NULL: there is none. */
DOOR void *published_function(const char *name)
{
    static const struct {
        const char *name;
        size_t at;
    } rows[] = {
#define X(f) { #f, offsetof(cu_driver, f) },
        CU_DRIVER_FUNCTIONS(X)
#undef X
    };
    for (size_t k = 0; cu && k < sizeof rows / sizeof *rows; k++) {
        void *f;
        if (strcmp(rows[k].name, name) != 0)
            continue;
        memcpy(&f, (const char *)cu + rows[k].at, sizeof f);
        return f;
    }
    return NULL;
}

/* 0: the text of severities is wrong. */
DOOR int published_options(int async, int schedule, unsigned long long seed, const char *checks)
{
    sim_options o = { .async = (sim_async)async, .schedule = (sim_schedule)schedule, .seed = seed };
    char error[512];
    if (!sim_checks_parse(checks, o.checks, error))
        return 0;
    sim_set_options(&o);
    return 1;
}

DOOR int published_warnings(char *to, size_t room)
{
    return sim_warnings(to, room);
}

DOOR const char *published_report(void)
{
    return sim_report();
}
