/* ride: what was hooked, and what is claimed of it. */
#include "ride.h"
#include "gen/error.h"
#include "report.h"
#include "runtime/runtime.h"
#include <stdio.h>

fa_ggml_riding fa_ggml_ride = { .mutex = PTHREAD_MUTEX_INITIALIZER };

bool fa_ggml_staged(void)
{
    return fa_ggml_ride.settings.simulator[0] && !fa_ggml_ride.ctx;
}

fa_ggml_engine *fa_ggml_engine_of(fa_ggml_hooked *h)
{
    char name[64];
    pthread_mutex_lock(&fa_ggml_ride.mutex);
    if (!h->engine && !h->failed) {
        const fa_ggml_settings *set = &fa_ggml_ride.settings;
        snprintf(name, sizeof name, "cuda:%d", h->number);
        fa_status st = fa_ggml_ride.ctx ? fa_ggml_engine_open_on(&h->engine, fa_ggml_ride.ctx, set->memory)
                                        : fa_ggml_engine_open(&h->engine, fa_ggml_staged() ? set->simulator : name, set->memory,
                                                              set->nearest ? FA_MISS_NEAREST : FA_MISS_COMPILE, fa_ggml_log);
        if (st == FA_OK && (st = fa_ggml_engine_ready(h->engine)) != FA_OK) {
            fa_ggml_engine_close(h->engine);
            h->engine = NULL;
        }
        if (st != FA_OK) {
            h->failed = true;
            FA_GGML_COUNT(failures);
            fa_ggml_tell("%s stays ggml's alone: %s: %s", h->name, fa_status_name(st), fa_last_error());
        }
    }
    pthread_mutex_unlock(&fa_ggml_ride.mutex);
    return h->failed ? NULL : h->engine;
}

bool fa_ggml_reads(fa_ggml_hooked *h, const fa_ggml_tensor *node, fa_ggml_claim *c)
{
    char why[512];
    if (h->failed)
        return false;
    const bool yes = fa_ggml_claim_node(&fa_ggml_ride.ggml, node, c, why, sizeof why);
    if (!yes)
        fa_ggml_tell("%s: left to ggml: %s", h->name, why);
    return yes;
}

bool fa_ggml_takes(fa_ggml_hooked *h, const fa_ggml_tensor *node, const fa_ggml_claim *c)
{
    char why[512];
    if (!fa_ggml_engine_of(h))
        return false;
    const bool yes = fa_ggml_engine_takes(h->engine, c, why, sizeof why);
    if (!yes)
        fa_ggml_tell("%s: left to ggml: %s", h->name, why);
    else if (fa_ggml_ride.settings.tells)
        fa_ggml_tell("%s: claimed: d %d and %d, K %s, V %s%s%s%s", h->name, c->d, c->dv, fa_ggml_ride.ggml.type[node->src[1]->type].name,
                     fa_ggml_ride.ggml.type[node->src[2]->type].name, c->has_mask ? ", a mask" : "", c->cap > 0 ? ", a cap" : "",
                     c->has_sinks ? ", sinks" : "");
    return yes;
}
