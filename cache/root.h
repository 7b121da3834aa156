/* root: one directory of a store's search path, and the inside of fa_store, shared by the files of cache/ only. */
#ifndef FA_CACHE_ROOT_H
#define FA_CACHE_ROOT_H
#include "scan.h"
#include <pthread.h>
#include <stdatomic.h>

#define FA_FORMAT_DIR "v1" /* of FA_FORMAT_VERSION */
#define FA_FILE_CAP ((size_t)64 << 20)
#define FA_NAME_SIZE 37 /* of an entry's file: 32 hex digits, ".fak", NUL */

typedef struct fa_root {
    char *path;
    bool writable;
    int v1;            /* descriptor of <path>/v1, or -1 */
    char trouble[128]; /* "" = in use */
} fa_root;

/* The causes of advice: each is told once per store. */
typedef enum fa_cause {
    FA_CAUSE_PUT = 1,
    FA_CAUSE_DAMAGE = 2,
    FA_CAUSE_LOCK = 4,
    FA_CAUSE_RECORD = 8,
    FA_CAUSE_QUARANTINE = 16,
    FA_CAUSE_WAIT = 32,
    FA_CAUSE_IMPORT = 64
} fa_cause;

struct fa_store {
    fa_root *root;
    size_t n;
    ptrdiff_t writer; /* index of the root that takes new files; -1 = none */
    int64_t limit;    /* bytes of kernels; < 0 = none */
    fa_key *shunned;  /* set aside, where another user owns it: not taken from roots that are only read */
    size_t n_shunned;
    fa_store_warn warn;
    void *user;
    atomic_uint told; /* causes */
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    fa_key *held; /* keys locked by threads of this process; guarded by mutex */
    size_t n_held, cap_held;
    double longest;      /* seconds of the longest compile seen; guarded by mutex */
    double wait_most;    /* of a wait for another process, in place of the rule of wait.h; 0 = by that rule */
    atomic_bool hurried; /* an append waited in vain: the next ones do not, until one gets its lock */
};

/* Whether more than its absence keeps the root from use, which the log says when the store is opened. */
bool fa_root_refused(const fa_root *r);

/* The name of k's file, in the folder of its first two digits. */
void fa_entry_name(char out[FA_NAME_SIZE], fa_key k);

/* The folder of k in kernels/, and the name of its file; *kernels is the descriptor of the latter. The caller closes what is not -1. */
int fa_root_folder(const fa_root *r, fa_key k, char name[FA_NAME_SIZE], int *kernels, const char **trouble);

/* Writes bytes as the file of k in one of the folders of the root that takes new files (there must be one). The store's limit is the
 * caller's to hold (quota.h). False with *trouble. */
bool fa_entry_write(fa_store *s, fa_area area, fa_key k, const void *bytes, size_t size, const char **trouble);

void fa_store_advise(fa_store *s, fa_cause cause, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#endif
