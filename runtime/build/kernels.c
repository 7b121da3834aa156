/* kernels: a list under a mutex, which is held for no call of the driver. */
#include "kernels.h"
#include <string.h>

static const fa_kernel *find(const fa_kernels *ks, fa_key k, int32_t steps, const fa_step step[FA_SOURCE_STEPS])
{
    for (const fa_kernel *i = ks->first; i; i = i->next)
        if (i->key.lo == k.lo && i->key.hi == k.hi && i->steps == steps && !memcmp(i->step, step, sizeof i->step))
            return i;
    return NULL;
}

const fa_kernel *fa_kernels_find(fa_kernels *ks, fa_key k, int32_t steps, const fa_step step[FA_SOURCE_STEPS])
{
    pthread_mutex_lock(&ks->mutex);
    const fa_kernel *there = find(ks, k, steps, step);
    pthread_mutex_unlock(&ks->mutex);
    return there;
}

const fa_kernel *fa_kernels_keep(fa_kernels *ks, const fa_device *d, fa_kernel *k)
{
    pthread_mutex_lock(&ks->mutex);
    const fa_kernel *there = find(ks, k->key, k->steps, k->step);
    if (!there) {
        k->next = ks->first;
        ks->first = k;
    }
    pthread_mutex_unlock(&ks->mutex);
    if (there)
        fa_kernel_unload(d, k);
    return there ? there : k;
}

void fa_kernels_unload(fa_kernels *ks, const fa_device *d)
{
    for (fa_kernel *k = ks->first, *next; k; k = next) {
        next = k->next;
        fa_kernel_unload(d, k);
    }
    ks->first = NULL;
}
