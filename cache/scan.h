/* scan: every file of compiled kernels that a store's roots hold, for upkeep. */
#ifndef FA_CACHE_SCAN_H
#define FA_CACHE_SCAN_H
#include "entry.h"

/* The folders of a root that hold entries. Only the first is ever loaded from. */
typedef enum fa_area { FA_AREA_KERNELS = 0, FA_AREA_FOREIGN, FA_AREA_QUARANTINE, FA_AREAS } fa_area;
const char *fa_area_name(fa_area b); /* "kernels", "foreign", "quarantine" */

typedef struct fa_item {
    size_t root;   /* of the search path */
    bool writable; /* the root takes new files, so this one may be removed */
    fa_area area;
    int dir;          /* descriptor of its folder */
    const char *name; /* in it */
    const char *path; /* whole, for messages */
    int64_t size;     /* bytes */
    int64_t used;     /* last use, ns since 1970, to the hour (quota.h) */
    bool proved;      /* loaded before without harm (load_marker.h) */
    bool named;       /* its name is that of an entry; key is set */
    fa_key key;
} fa_item;

/* Calls f for each file, unordered, with an item valid until f returns; f may remove it. Reads no file. Stops when f returns
 * non-zero, and returns that. */
typedef int fa_item_fn(void *user, const fa_item *i);
int fa_scan(fa_store *s, fa_item_fn *f, void *user);

/* Reads and checks the whole file: NULL, or what is wrong with it, a literal or strerror's text. The caller frees *out either way.
 * with_image: false leaves image NULL. */
const char *fa_item_read(const fa_item *i, fa_entry *out, bool with_image);

/* Removes the file, whatever it is. False where that is not possible. */
bool fa_item_remove(const fa_item *i);
#endif
