/* replay: the last few graphs of a backend. */
#include "replay.h"
#include <stdlib.h>

#define KEPT 8

struct fa_ggml_replays {
    const cu_driver *d;
    uint64_t clock;
    struct kept {
        uint64_t number, used;
        bool failed;
        CUgraphExec exec;
    } kept[KEPT];
};

fa_ggml_replays *fa_ggml_replays_open(const cu_driver *d)
{
    fa_ggml_replays *s = calloc(1, sizeof *s);
    if (s)
        s->d = d;
    return s;
}

void fa_ggml_replays_close(fa_ggml_replays *s)
{
    for (int i = 0; s && i < KEPT; i++)
        if (s->kept[i].exec)
            s->d->cuGraphExecDestroy(s->kept[i].exec);
    free(s);
}

/* The entry of a number, or a new one in the place of the longest unused. */
static struct kept *find(fa_ggml_replays *s, uint64_t number, bool *is_new)
{
    struct kept *oldest = &s->kept[0];
    *is_new = false;
    for (int i = 0; i < KEPT; i++) {
        if (s->kept[i].number == number)
            return &s->kept[i];
        if (s->kept[i].used < oldest->used)
            oldest = &s->kept[i];
    }
    if (oldest->exec)
        s->d->cuGraphExecDestroy(oldest->exec);
    *oldest = (struct kept){ .number = number };
    *is_new = true;
    return oldest;
}

static bool capture(const cu_driver *d, struct kept *k, CUstream stream, int32_t (*work)(void *user), void *user)
{
    CUgraph graph = NULL;
    if (d->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return false;
    bool good = work(user) == 0;
    good = d->cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph && good;
    good = good && d->cuGraphInstantiate(&k->exec, graph, 0) == CUDA_SUCCESS;
    if (graph)
        d->cuGraphDestroy(graph);
    return good;
}

int32_t fa_ggml_replay(fa_ggml_replays *s, uint64_t number, CUstream stream, int32_t (*work)(void *user), void *user, bool *done,
                       int64_t *captures, int64_t *replays)
{
    bool is_new;
    *done = false;
    if (!s)
        return 0;
    struct kept *k = find(s, number, &is_new);
    k->used = ++s->clock;
    if (is_new || k->failed)
        return 0;
    if (!k->exec) {
        k->failed = !capture(s->d, k, stream, work, user);
        *captures += !k->failed;
        if (k->failed) {
            k->exec = NULL;
            return 0;
        }
    }
    *done = true;
    *replays += 1;
    return s->d->cuGraphLaunch(k->exec, stream) == CUDA_SUCCESS ? 0 : -1;
}
