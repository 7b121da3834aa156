/* lack: a list of the classes that the log was told of. */
#include "lack.h"
#include "context.h"
#include "gen/problem.h"
#include <stdio.h>
#include <stdlib.h>

fa_lack *fa_lack_of(fa_context *ctx, const fa_problem *p)
{
    fa_plan_key key = fa_plan_key_of(p);
    key.bucket = 0;
    pthread_mutex_lock(&ctx->mutex);
    fa_lack *l = ctx->lacks;
    while (l && !fa_plan_key_equal(&l->key, &key))
        l = l->next;
    if (!l && (l = calloc(1, sizeof *l))) {
        l->key = key;
        l->next = ctx->lacks;
        ctx->lacks = l;
    }
    pthread_mutex_unlock(&ctx->mutex);
    return l;
}

static void print_time(char *buf, size_t n, double seconds)
{
    if (seconds > 0)
        snprintf(buf, n, "%.3g us", seconds * 1e6);
    else
        snprintf(buf, n, "a time that is not known");
}

void fa_lack_print(char *buf, size_t n, double seconds, double with)
{
    char bare[32], best[32];
    print_time(bare, sizeof bare, seconds);
    print_time(best, sizeof best, with);
    snprintf(buf, n, "%s; with one of fa_workspace_size() bytes another kernel runs, %s", bare, best);
}

void fa_lack_tell(fa_context *ctx, fa_lack *l, const fa_problem *p, double seconds, double with)
{
    char line[256], cost[128];
    if (!l || atomic_load_explicit(&l->told, memory_order_relaxed) || atomic_exchange(&l->told, true))
        return;
    fa_problem_print(line, sizeof line, p);
    fa_lack_print(cost, sizeof cost, seconds, with);
    fa_log_say(&ctx->log, FA_LOG_WARN, "%s: args.workspace is NULL, and the option workspace is FA_WORKSPACE_CALLER: %s", line, cost);
}

void fa_lacks_close(fa_context *ctx)
{
    for (fa_lack *l = ctx->lacks, *next; l; l = next) {
        next = l->next;
        free(l);
    }
}
