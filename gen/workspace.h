/* workspace: the named buffers of scratch memory that a source's kernels share, and the bytes of a call. As text, "counters, scores fp32
 * b hq sq sk, row_max fp32 b hq sq": each buffer with the type of its elements and their number as a product of extents. */
#ifndef FA_GEN_WORKSPACE_H
#define FA_GEN_WORKSPACE_H
#include "extent.h"

#define FA_BUFFERS_MAX 16
#define FA_WORKSPACE_ALIGN 256           /* bytes: of the workspace and of each buffer */
#define FA_WORKSPACE_COUNTERS (64 << 10) /* bytes at its beginning that no buffer takes, whether a kernel has counters or not */
#define FA_WORKSPACE_CHUNK (1ll << 30)   /* bytes of buffers over units that are there at a time, but for one member at least */
#define FA_WORKSPACE_KEYS (512 * 128)    /* keys of a launch's units that occupy a chip: near to four tiles of 128 for each of 132 SMs */

typedef struct fa_workspace_buffer {
    char name[16]; /* the value (values.h) that holds its address */
    int32_t type;  /* index of the table of types, which workspace.c holds */
    fa_product extents;
} fa_workspace_buffer;

typedef struct fa_workspace {
    int64_t chunk;    /* bytes of buffers over units that are there at a time; 0, as parsed: FA_WORKSPACE_CHUNK */
    int32_t counters; /* 1: it begins with words that are 0 between launches: fa_workspace_init() zeroes them once */
    int32_t n;
    fa_workspace_buffer buffer[FA_BUFFERS_MAX];
} fa_workspace;

/* FA_INVALID names the buffer at fault and what is accepted. "" is none. */
fa_status fa_workspace_parse(fa_workspace *out, const char *text);
int fa_workspace_print(char *buf, size_t n, const fa_workspace *w); /* as snprintf */

static inline bool fa_workspace_any(const fa_workspace *w)
{
    return w->counters || w->n;
}

/* What a launch does: so many units, pairs of a sequence and a KV head, and of each so many members, query heads of its group. */
typedef struct fa_portion {
    int64_t units, members;
} fa_portion;

/* All units with whole groups, unless buffers over units would be larger than the chunk. Then fewer units, as many each time, or where all
 * blocks take as long, so many that the last rounds of launches are full; and where these have fewer keys
 * than FA_WORKSPACE_KEYS and a buffer is over members, so few members of each group that the chunk holds more units: no fewer than bring
 * the units to as many keys, or the most units that it can hold. At least 1 of each, however large. Buffers over `sliced`, which are there
 * only where a group is done in slices, are beside the chunk. */
fa_portion fa_workspace_portion(const fa_workspace *w, const fa_sizes *s);

/* How often steps over units are launched, a portion each time. */
int64_t fa_portion_launches(const fa_portion *p, const fa_sizes *s);

/* Bytes of one call, a portion at a time. offset (may be NULL): where each buffer begins. -1: more than 2^63 - 1. */
int64_t fa_workspace_bytes(const fa_workspace *w, const fa_sizes *s, int64_t offset[FA_BUFFERS_MAX]);
#endif
