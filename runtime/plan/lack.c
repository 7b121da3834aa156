/* lack: a list of the classes that the log was told of. */
#include "lack.h"
#include "gen/problem.h"
#include "runtime/choose/jit.h"
#include "runtime/context/context.h"
#include <stdio.h>
#include <stdlib.h>

void fa_lacks_open(fa_lacks *ls)
{
    *ls = (fa_lacks){ .first = NULL };
    pthread_mutex_init(&ls->mutex, NULL);
}

void fa_lacks_close(fa_lacks *ls)
{
    for (fa_lack *l = ls->first, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    pthread_mutex_destroy(&ls->mutex);
}

fa_lack *fa_lack_of(fa_lacks *ls, const fa_plan_key *of)
{
    fa_plan_key key = *of;
    key.bucket = 0;
    pthread_mutex_lock(&ls->mutex);
    fa_lack *l = ls->first;
    while (l && !fa_plan_key_equal(&l->key, &key))
        l = l->next;
    if (!l && (l = calloc(1, sizeof *l))) {
        l->key = key;
        l->next = ls->first;
        ls->first = l;
    }
    pthread_mutex_unlock(&ls->mutex);
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
    char line[FA_PROBLEM_TEXT], cost[128];
    if (!l || atomic_load_explicit(&l->told, memory_order_relaxed) || atomic_exchange(&l->told, true))
        return;
    fa_problem_print(line, sizeof line, p);
    fa_lack_print(cost, sizeof cost, seconds, with);
    fa_log_say(&ctx->log, FA_LOG_WARN, "%s: args.workspace is NULL, and the option workspace is FA_WORKSPACE_CALLER: %s", line, cost);
}

void fa_lack_tell_layout(fa_context *ctx, const fa_plan_key *key, const fa_problem *p, double seconds)
{
    char line[FA_PROBLEM_TEXT], cost[256];
    if (!ctx->log.f || ctx->log.level < FA_LOG_WARN)
        return;
    fa_lack *l = fa_lack_of(ctx->lacks, key);
    if (!l || atomic_load(&l->layout_told) || !fa_jit_neighbour(ctx, p, seconds, FA_LAYOUT_TIMES, cost, sizeof cost) ||
        atomic_exchange(&l->layout_told, true))
        return;
    fa_problem_print(line, sizeof line, p);
    fa_log_say(&ctx->log, FA_LOG_WARN, "%s: %s", line, cost);
}
