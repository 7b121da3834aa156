/* create: a context is made from options, and undone in reverse. */
#include "gen/error.h"
#include "runtime.h"
#include "runtime/args/check.h"
#include "runtime/args/scores.h"
#include "runtime/build/kernels.h"
#include "runtime/bundle/precompiled.h"
#include "runtime/bundle/set.h"
#include "runtime/choose/generators.h"
#include "runtime/choose/jit.h"
#include "runtime/choose/pins.h"
#include "runtime/context/context.h"
#include "runtime/context/driver_cuda.h"
#include "runtime/context/environment.h"
#include "runtime/context/fork.h"
#include "runtime/launch/lease.h"
#include "runtime/plan/background.h"
#include "runtime/plan/counter.h"
#include "runtime/plan/lack.h"
#include "runtime/plan/plans.h"
#include "runtime/plan/table.h"
#include "runtime/plan/workload.h"
#include <stdlib.h>

/* Fills the parts that do not depend on the driver; device is set. */
static fa_status furnish(fa_context *ctx, const fa_options *o, const fa_environment *env)
{
    int32_t most = ctx->device.arch.smem_block;
    if (o->sram_budget < 0 || o->sram_budget > most)
        return fa_fail(FA_INVALID, "options: sram_budget is %d; accepted on %s: 1 to %d bytes, or 0 for all of it", o->sram_budget,
                       ctx->device.arch.chip, most);
    ctx->budget = o->sram_budget ? o->sram_budget : most;
    ctx->bundle_only = o->bundle_only != 0;
    ctx->in_order = o->in_order != 0;
    ctx->on_miss = o->on_miss;
    ctx->lends = o->workspace == FA_WORKSPACE_CONTEXT;
    ctx->check_device_data = o->check_device_data;
    ctx->checks_device_data = o->check_device_data == 1 || (o->check_device_data == 0 && fa_device_is_simulated(&ctx->device));
    fa_status st = fa_bundle_set_open(ctx->bundle_set, o->bundles);
    if (st == FA_OK)
        st = fa_precompiled_open(ctx->precompiled, o->shipped, env);
    if (st != FA_OK)
        return st;
    if (!fa_workload_open(ctx, o, env) || !fa_table_open(ctx->table))
        return fa_fail(FA_NOMEM, "context: host memory");
    return fa_jit_open(ctx, o, env);
}

/* A context and its parts lie in one block, the context first. */
typedef struct whole {
    fa_context ctx;
    fa_kernels kernels;
    fa_bundle_set bundle_set;
    fa_precompiled precompiled;
    fa_generators generators;
    fa_pins pins;
    fa_plans plans;
    fa_table table;
    fa_lacks lacks;
    fa_background background;
    fa_leases leases;
    fa_scores scores;
} whole;

/* NULL: memory ran out. What is open by then needs neither a device nor an option. */
static fa_context *begin(void)
{
    whole *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    fa_context *ctx = &w->ctx;
    fa_fork_watch();
    ctx->forks = atomic_load(&fa_forks);
    ctx->kernels = &w->kernels;
    ctx->bundle_set = &w->bundle_set;
    ctx->precompiled = &w->precompiled;
    ctx->generators = &w->generators;
    ctx->pins = &w->pins;
    ctx->plans = &w->plans;
    ctx->table = &w->table;
    ctx->lacks = &w->lacks;
    ctx->background = &w->background;
    ctx->leases = &w->leases;
    ctx->scores = &w->scores;
    pthread_mutex_init(&ctx->mutex, NULL);
    pthread_mutex_init(&w->kernels.mutex, NULL);
    pthread_mutex_init(&w->generators.mutex, NULL);
    fa_pins_open(&w->pins);
    pthread_mutex_init(&w->precompiled.mutex, NULL);
    fa_plans_open(&w->plans);
    fa_lacks_open(&w->lacks);
    fa_background_open(&w->background);
    fa_leases_open(&w->leases);
    fa_scores_open(&w->scores);
    return ctx;
}

static fa_status create(fa_context **out, const fa_options *opt, const cu_driver *driver, int ordinal)
{
    fa_environment env = fa_environment_read();
    fa_options o;
    fa_entered in;
    fa_context *ctx = NULL;
    if (!out)
        return fa_fail(FA_INVALID, "out: NULL; accepted: the address of a fa_context pointer");
    *out = NULL;
    fa_status st = fa_check_options(&o, opt);
    if (st != FA_OK)
        return st;
    ctx = begin();
    if (!ctx)
        return fa_fail(FA_NOMEM, "context: %zu bytes of host memory", sizeof(whole));
    if (!fa_log_open(&ctx->log, o.log, o.log_user, o.log_level, env.log))
        st = fa_fail(FA_INVALID, "FAGEN_LOG: \"%s\"; accepted: error, warn, info, debug, or 0 to 3", env.log);
    if (st == FA_OK && driver)
        st = fa_device_open_on(&ctx->device, driver, ordinal);
    else if (st == FA_OK)
        st = fa_device_open(&ctx->device, o.device ? o.device : env.device);
    if (st == FA_OK)
        st = furnish(ctx, &o, &env);
    /* finds out now that a device cannot be used, and pays for the primary context outside any launch */
    if (st == FA_OK)
        st = fa_context_enter(ctx, &in);
    if (st == FA_OK)
        fa_context_leave(ctx, &in);
    if (st != FA_OK) {
        fa_destroy(ctx);
        return st;
    }
    fa_log_say(&ctx->log, FA_LOG_INFO, "device %s %d: %s (%s)", ctx->device.driver->name, ctx->device.ordinal, ctx->device.arch.chip,
               ctx->device.arch.name);
    *out = ctx;
    return FA_OK;
}

fa_status fa_create_on(fa_context **out, const fa_options *opt, const cu_driver *driver, int ordinal)
{
    fa_message before;
    fa_message_keep(&before);
    return fa_message_settle(&before, create(out, opt, driver, ordinal));
}

fa_status fa_create(fa_context **out, const fa_options *opt)
{
    return fa_create_on(out, opt, NULL, -1);
}

void fa_destroy(fa_context *ctx)
{
    fa_entered in = { .pushed = false };
    fa_message before;
    if (!ctx || ctx->forks != atomic_load(&fa_forks)) /* in a child of fork() all of it is the parent's */
        return;
    fa_message_keep(&before);
    const cu_driver *d = ctx->device.driver;
    fa_background_close(ctx->background);
    fa_workload_write(ctx);
    if (ctx->kernels->first && fa_context_enter(ctx, &in) == FA_OK) {
        fa_kernels_unload(ctx->kernels, &ctx->device);
        fa_context_leave(ctx, &in);
    }
    fa_counters_close(ctx);
    fa_leases_close(ctx);
    fa_scores_close(ctx);
    fa_lacks_close(ctx->lacks);
    fa_plans_close(ctx->plans);
    if (atomic_load(&ctx->primary))
        d->cuDevicePrimaryCtxRelease(ctx->device.handle);
    if (atomic_load(&ctx->table->slots))
        fa_table_close(ctx->table);
    fa_jit_close(ctx);
    fa_pins_close(ctx->pins);
    fa_bundle_set_close(ctx->bundle_set);
    fa_precompiled_close(ctx->precompiled);
    fa_workload_close(ctx);
    pthread_mutex_destroy(&ctx->generators->mutex);
    pthread_mutex_destroy(&ctx->kernels->mutex);
    pthread_mutex_destroy(&ctx->mutex);
    free(ctx); /* the whole of it */
    fa_message_settle(&before, FA_OK);
}
