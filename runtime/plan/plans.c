/* plans: lists under a mutex. */
#include "plans.h"
#include <stdlib.h>

void fa_plans_open(fa_plans *ps)
{
    *ps = (fa_plans){ .first = NULL };
    pthread_mutex_init(&ps->mutex, NULL);
    pthread_cond_init(&ps->prepared, NULL);
}

void fa_plans_close(fa_plans *ps)
{
    for (fa_plan *p = ps->first, *next; p; p = next) {
        next = p->next;
        free(p->launch_count);
        free(p);
    }
    pthread_cond_destroy(&ps->prepared);
    pthread_mutex_destroy(&ps->mutex);
}

void fa_plans_keep(fa_plans *ps, fa_plan *plan)
{
    pthread_mutex_lock(&ps->mutex);
    plan->next = ps->first;
    ps->first = plan;
    pthread_mutex_unlock(&ps->mutex);
}

static bool is_pending(const fa_plans *ps, const fa_plan_key *k)
{
    for (const fa_pending *i = ps->pending; i; i = i->next)
        if (fa_plan_key_equal(&i->key, k))
            return true;
    return false;
}

void fa_plans_begin(fa_plans *ps, fa_pending *me)
{
    pthread_mutex_lock(&ps->mutex);
    while (is_pending(ps, &me->key))
        pthread_cond_wait(&ps->prepared, &ps->mutex);
    me->next = ps->pending;
    ps->pending = me;
    pthread_mutex_unlock(&ps->mutex);
}

void fa_plans_end(fa_plans *ps, fa_pending *me)
{
    pthread_mutex_lock(&ps->mutex);
    for (fa_pending **i = &ps->pending; *i; i = &(*i)->next)
        if (*i == me) {
            *i = me->next;
            break;
        }
    pthread_cond_broadcast(&ps->prepared);
    pthread_mutex_unlock(&ps->mutex);
}
