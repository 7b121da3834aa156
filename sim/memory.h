/* memory: a device's memory as sparse allocations in an address space of its own. Addresses are never host addresses, never
 * reused while space lasts, and never adjacent: a stray pointer finds nothing. One bit per byte says whether it was written. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sim_touch {
    uint64_t wrote, read;
} sim_touch; /* the last that wrote and read a word, in a launch that follows it: see grid_order.c */

typedef struct sim_alloc {
    uint64_t base, size;
    uint8_t *data, *written; /* written: bit b of byte a/8 */
    const char *name;        /* of a module's variable, or NULL */
    sim_touch *touch;        /* per 4 bytes; NULL as long as no launch needed it */
    uint32_t era;            /* of the launches whose touches these are; 0: of none */
    uint64_t launch;         /* the latest at which something was written, by its number; 0: before the first */
    uint32_t *line;          /* the same of each 64 bytes */
} sim_alloc;
enum { SIM_LINE = 64 };

extern uint64_t sim_memory_launch; /* the number of the launch that runs, or that ran last */

typedef struct sim_memory {
    sim_alloc **alloc; /* by base */
    size_t n, cap;
    uint64_t first, last, next, used, limit;
} sim_memory;

void sim_memory_init(sim_memory *m, uint64_t first, uint64_t last, uint64_t limit);
sim_alloc *sim_memory_new(sim_memory *m, uint64_t size, const char *name);     /* NULL: no room */
int sim_memory_free(sim_memory *m, uint64_t base);                             /* 0 = freed */
void sim_memory_close(sim_memory *m);                                          /* frees them all */
sim_alloc *sim_memory_find(const sim_memory *m, uint64_t address);             /* the one holding it */
sim_alloc *sim_memory_near(const sim_memory *m, uint64_t address);             /* for reports: the closest */
void sim_memory_mark(sim_alloc *a, uint64_t offset, uint64_t n);               /* written */
int64_t sim_memory_unwritten(const sim_alloc *a, uint64_t offset, uint64_t n); /* first such offset, or -1 */
bool sim_memory_touch(sim_alloc *a, uint32_t era);                             /* touches of this era, none yet. false: no room */
void sim_memory_forget(sim_alloc *a, uint64_t offset, uint64_t n);             /* never written */
void sim_memory_copy_marks(sim_alloc *to, uint64_t to_at, const sim_alloc *from, uint64_t from_at, uint64_t n);
#endif
