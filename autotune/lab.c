/* lab: where candidates are verified and timed. */
#include "lab.h"
#include "gen/error.h"
#include "measure.h"
#include "nvml.h"
#include "referee.h"
#include <stdlib.h>

typedef struct device_lab {
    fa_lab lab;
    fa_context *ctx;
    fa_referee referee;
    fa_bench *bench;
    fa_nvml *nvml;
    bool judges;
} device_lab;

static fa_status judge(fa_lab *lab, fa_candidate *c)
{
    device_lab *d = (device_lab *)lab;
    return d->judges ? fa_referee_judge(&d->referee, c->plan) : fa_fail(FA_INTERNAL, "this lab verifies nothing");
}

static fa_status sample(fa_lab *lab, fa_candidate *c, bool warm)
{
    fa_bench *b = ((device_lab *)lab)->bench;
    if (!b)
        return fa_fail(FA_UNSUPPORTED, "the simulator has no times");
    return warm ? fa_bench_sample_warm(b, c->plan, &c->launches, &c->warm_samples) : fa_bench_sample(b, c->plan, &c->launches, &c->samples);
}

static fa_gauge gauge(fa_lab *lab)
{
    return fa_nvml_read(((device_lab *)lab)->nvml);
}

/* A fault of a kernel leaves the whole CUDA context unusable. */
static bool alive(fa_lab *lab)
{
    fa_context *ctx = ((device_lab *)lab)->ctx;
    fa_entered in;
    if (fa_context_enter(ctx, &in) != FA_OK)
        return false;
    bool ok = fa_context_driver(ctx)->cuCtxSynchronize() == CUDA_SUCCESS;
    fa_context_leave(ctx, &in);
    return ok;
}

static void close_device(fa_lab *lab)
{
    device_lab *d = (device_lab *)lab;
    fa_nvml_close(d->nvml);
    fa_bench_close(d->bench);
    fa_referee_close(&d->referee);
    free(d);
}

void fa_lab_partner(fa_lab *lab, int pid)
{
    fa_nvml_expect(((device_lab *)lab)->nvml, &pid, pid ? 1 : 0);
}

fa_status fa_lab_open(fa_lab **out, const fa_site *site, const fa_problem *p, bool judges)
{
    fa_context *ctx = site->ctx;
    const fa_device *device = fa_context_device(ctx);
    char bus[32] = "";
    device_lab *d = calloc(1, sizeof *d);
    *out = NULL;
    if (!d)
        return fa_fail(FA_NOMEM, "no memory to verify and time");
    d->lab = (fa_lab){ .judge = judge, .sample = sample, .gauge = gauge, .alive = alive, .close = close_device };
    d->ctx = ctx;
    d->judges = judges;
    bool timed = site->timed;
    fa_status st = judges ? fa_referee_open(&d->referee, ctx, p, timed) : FA_OK;
    if (st == FA_OK && timed)
        st = fa_bench_open(&d->bench, ctx, p);
    if (st == FA_OK && timed && device->driver->cuDeviceGetPCIBusId(bus, sizeof bus, device->handle) == CUDA_SUCCESS)
        d->nvml = fa_nvml_open(NULL, bus, NULL, 0);
    if (st == FA_OK)
        *out = &d->lab;
    else
        close_device(&d->lab);
    return st;
}

void fa_lab_close(fa_lab *lab)
{
    if (lab && lab->close)
        lab->close(lab);
}

fa_gauge fa_lab_gauge(fa_lab *lab)
{
    fa_gauge g = lab->gauge ? lab->gauge(lab) : (fa_gauge){ 0 };
    int strangers = g.foreign - fa_slot_beside(lab->slot);
    g.foreign = strangers > 0 ? strangers : 0;
    return g;
}

bool fa_lab_alive(fa_lab *lab)
{
    return !lab->alive || lab->alive(lab);
}

fa_status fa_lab_judge(fa_lab *lab, fa_candidate *c)
{
    fa_status st = lab->judge(lab, c);
    c->verified = st == FA_OK;
    return st;
}

static fa_status refuse(const fa_candidate *c)
{
    char text[512];
    fa_config_print(text, sizeof text, &c->config);
    return fa_fail(FA_INTERNAL, "%s was to be timed before it was verified", text);
}

fa_status fa_lab_sample(fa_lab *lab, fa_candidate *c, bool warm)
{
    return c->verified ? lab->sample(lab, c, warm) : refuse(c);
}

void fa_lab_sum_up(fa_candidate *c, const fa_span *s)
{
    c->seconds = c->level = fa_samples_median(&c->samples);
    c->spread = fa_samples_spread(&c->samples);
    c->count = c->samples.n;
    fa_samples_interval(&c->samples, &c->low, &c->high);
    if (c->warm_samples.n)
        c->warm = fa_samples_median(&c->warm_samples);
    c->clock_mhz = fa_span_clock(s);
    c->temperature = s->last.temperature;
    c->quality = fa_span_quality(s, c->count, c->seconds > 0 ? (c->high - c->low) / c->seconds : 0);
}

fa_status fa_lab_first(fa_lab *lab, fa_candidate *c, int n, double enough)
{
    fa_span span = { 0 };
    if (!c->verified)
        return refuse(c);
    fa_status st = FA_OK;
    if (lab->first)
        st = lab->first(lab, c, n);
    for (int i = 0; !lab->first && i < n && st == FA_OK; i++) {
        st = lab->sample(lab, c, false);
        if (st == FA_OK && i == 0 && enough > 0 && fa_samples_median(&c->samples) > enough)
            break;
    }
    fa_span_add(&span, fa_lab_gauge(lab));
    if (st == FA_OK)
        fa_lab_sum_up(c, &span);
    return st;
}
