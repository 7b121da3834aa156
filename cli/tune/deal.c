/* deal: which problem goes to which process. */
#include "fleet.h"
#include <string.h>

size_t fleet_workers_up(const fleet *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->worker[i].fd >= 0;
    return n;
}

size_t fleet_devices_up(const fleet *f)
{
    size_t n = 0;
    for (size_t d = 0; d < f->devices; d++)
        for (size_t i = d; i < f->n; i += f->devices)
            if (f->worker[i].fd >= 0) {
                n++;
                break;
            }
    return n;
}

size_t fleet_open(const fleet *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->r->list.n; i++)
        n += !f->r->result[i];
    return n;
}

ptrdiff_t fleet_next(const fleet *f, const worker *h)
{
    bool beside = false; /* another process is at work on the device */
    for (size_t i = 0; i < f->n; i++) {
        const worker *k = &f->worker[i];
        if (k == h || k->device != h->device || k->fd < 0 || k->at < 0)
            continue;
        beside = true;
        if (f->task[k->at].alone)
            return -1;
    }
    for (size_t i = 0; i < f->r->list.n; i++) {
        const struct task *t = &f->task[i];
        if (!f->r->result[i] && !t->taken && !(t->alone && beside) && (t->not_on != h - f->worker || fleet_workers_up(f) == 1))
            return (ptrdiff_t)i;
    }
    return -1;
}

bool fleet_lacks_memory(const fleet *f, const worker *h, const char *status)
{
    size_t on_device = 0;
    for (size_t i = 0; i < f->n; i++)
        on_device += f->worker[i].device == h->device;
    return status && !strcmp(status, fa_status_name(FA_NOMEM)) && on_device > 1 && !f->task[h->at].alone;
}

void fleet_put_back_alone(fleet *f, worker *h)
{
    f->task[h->at].alone = true;
    f->task[h->at].taken = false;
    h->at = -1;
}
