/* lock: flock on one file per key, plus a list of the keys that this process holds, so that threads wait for each other
 * even where there is no writable root or no working flock. */
#include "lock.h"
#include "root.h"
#include "trusted_file.h"
#include "wait.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static bool key_equal(fa_key a, fa_key b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

static bool held(const fa_store *s, fa_key k)
{
    for (size_t i = 0; i < s->n_held; i++)
        if (key_equal(s->held[i], k))
            return true;
    return false;
}

/* False when memory ran out: the caller then goes on without exclusion. */
static bool hold(fa_store *s, fa_key k)
{
    bool ok = true;
    pthread_mutex_lock(&s->mutex);
    while (held(s, k))
        pthread_cond_wait(&s->freed, &s->mutex);
    if (s->n_held == s->cap_held) {
        size_t cap = s->cap_held ? 2 * s->cap_held : 8;
        fa_key *grown = realloc(s->held, cap * sizeof *grown);
        ok = grown != NULL;
        if (ok) {
            s->held = grown;
            s->cap_held = cap;
        }
    }
    if (ok)
        s->held[s->n_held++] = k;
    pthread_mutex_unlock(&s->mutex);
    return ok;
}

fa_lock fa_lock_take(fa_store *s, fa_key k)
{
    fa_lock l = { -1, hold(s, k) ? s : NULL, k, 0 };
    const fa_root *r = s->writer < 0 ? NULL : &s->root[s->writer];
    const char *trouble;
    int dir = r ? fa_trusted_dir(r->v1, "locks", false, &trouble) : -1;
    if (dir < 0)
        return l;
    char name[33];
    fa_key_print(name, k);
    l.fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    close(dir);
    if (l.fd < 0)
        return l;
    fa_wait w = { .store = s, .most = -1 };
    int why = fa_wait_lock(l.fd, &w);
    l.since = fa_wait_clock();
    if (w.over)
        fa_store_advise(
            s, FA_CAUSE_WAIT,
            "a process that compiles a kernel holds %s/%s/locks/%s for more than %g s (is it stopped?): it is compiled here too", r->path,
            FA_FORMAT_DIR, name, w.most);
    else if (why)
        fa_store_advise(s, FA_CAUSE_LOCK, "cache locks do not work in %s: %s; processes may compile the same kernel", r->path,
                        strerror(why));
    if (why) {
        close(l.fd);
        l.fd = -1;
    }
    return l;
}

void fa_lock_drop(fa_lock *l)
{
    fa_store *s = l->store;
    if (l->fd >= 0) {
        flock(l->fd, LOCK_UN); /* a forked child may still hold the descriptor */
        close(l->fd);
        l->fd = -1;
        if (s)
            fa_wait_saw(s, fa_wait_clock() - l->since);
    }
    if (!s)
        return;
    l->store = NULL;
    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->n_held; i++)
        if (key_equal(s->held[i], l->key)) {
            s->held[i] = s->held[--s->n_held];
            break;
        }
    pthread_cond_broadcast(&s->freed);
    pthread_mutex_unlock(&s->mutex);
}
