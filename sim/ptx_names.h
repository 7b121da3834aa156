/* ptx_names: what a name means, by hash. Of several entries with one name the newest is found first; entries go in the reverse order in
 * which they came, as scopes end. */
#ifndef SIM_PTX_NAMES_H
#define SIM_PTX_NAMES_H
#include <stddef.h>
#include <stdint.h>

struct ptx_parser;

typedef struct ptx_name {
    const void *s;          /* n bytes, which outlive the table */
    uint32_t n, tag, value; /* tag: part of the name: a kind, a scope */
    uint32_t hash, older;   /* older: 1 + the next entry of the bucket, 0 = none */
} ptx_name;

typedef struct ptx_names { /* zeros: empty */
    ptx_name *entry;
    size_t entries, cap;
    uint32_t *bucket; /* 1 + the newest entry, 0 = none */
    size_t buckets;   /* a power of two */
} ptx_names;

void sim_names_add(struct ptx_parser *p, ptx_names *t, const void *s, size_t n, uint32_t tag, uint32_t value);
/* The newest entry of that name, or after one the next older. NULL: none. */
const ptx_name *sim_names_find(const ptx_names *t, const void *s, size_t n, uint32_t tag);
void sim_names_cut(ptx_names *t, size_t entries); /* back to the first so many */
#endif
