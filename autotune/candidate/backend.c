/* backend: where candidates are verified and timed. */
#include "backend.h"
#include "autotune/device/measure.h"
#include "autotune/device/nvml.h"
#include "gen/error.h"
#include "verifier.h"
#include <stdlib.h>

typedef struct device_backend {
    fa_measure_backend backend;
    fa_context *ctx;
    fa_verifier verifier;
    fa_bench *bench;
    fa_nvml *nvml;
    bool judges;
} device_backend;

static fa_status judge(fa_measure_backend *backend, fa_candidate *c)
{
    device_backend *d = (device_backend *)backend;
    return d->judges ? fa_verifier_judge(&d->verifier, c->plan) : fa_fail(FA_INTERNAL, "this backend verifies nothing");
}

static fa_status sample(fa_measure_backend *backend, fa_candidate *c, bool warm)
{
    fa_bench *b = ((device_backend *)backend)->bench;
    if (!b)
        return fa_fail(FA_UNSUPPORTED, "the simulator has no times");
    return warm ? fa_bench_sample_warm(b, c->plan, &c->launches, &c->warm_samples) : fa_bench_sample(b, c->plan, &c->launches, &c->samples);
}

static fa_telemetry telemetry(fa_measure_backend *backend)
{
    return fa_nvml_read(((device_backend *)backend)->nvml);
}

/* A fault of a kernel leaves the whole CUDA context unusable. */
static bool alive(fa_measure_backend *backend)
{
    fa_context *ctx = ((device_backend *)backend)->ctx;
    fa_entered in;
    if (fa_context_enter(ctx, &in) != FA_OK)
        return false;
    bool ok = fa_context_driver(ctx)->cuCtxSynchronize() == CUDA_SUCCESS;
    fa_context_leave(ctx, &in);
    return ok;
}

static void close_device(fa_measure_backend *backend)
{
    device_backend *d = (device_backend *)backend;
    fa_nvml_close(d->nvml);
    fa_bench_close(d->bench);
    fa_verifier_close(&d->verifier);
    free(d);
}

void fa_measure_backend_partner(fa_measure_backend *backend, int pid)
{
    fa_nvml_expect(((device_backend *)backend)->nvml, &pid, pid ? 1 : 0);
}

fa_status fa_measure_backend_open(fa_measure_backend **out, const fa_site *site, const fa_problem *p, bool judges)
{
    fa_context *ctx = site->ctx;
    const fa_device *device = fa_context_device(ctx);
    char bus[32] = "";
    device_backend *d = calloc(1, sizeof *d);
    *out = NULL;
    if (!d)
        return fa_fail(FA_NOMEM, "no memory to verify and time");
    d->backend = (fa_measure_backend){ .judge = judge, .sample = sample, .telemetry = telemetry, .alive = alive, .close = close_device };
    d->ctx = ctx;
    d->judges = judges;
    bool timed = site->timed;
    fa_status st = judges ? fa_verifier_open(&d->verifier, ctx, p, timed) : FA_OK;
    if (st == FA_OK && timed)
        st = fa_bench_open(&d->bench, ctx, p, site->lengths);
    if (st == FA_OK && timed && device->driver->cuDeviceGetPCIBusId(bus, sizeof bus, device->handle) == CUDA_SUCCESS)
        d->nvml = fa_nvml_open(NULL, bus, NULL, 0);
    if (st == FA_OK)
        *out = &d->backend;
    else
        close_device(&d->backend);
    return st;
}

void fa_measure_backend_close(fa_measure_backend *backend)
{
    if (backend && backend->close)
        backend->close(backend);
}

fa_telemetry fa_measure_backend_telemetry(fa_measure_backend *backend)
{
    fa_telemetry g = backend->telemetry ? backend->telemetry(backend) : (fa_telemetry){ 0 };
    int strangers = g.foreign - fa_device_lock_beside(backend->device_lock);
    g.foreign = strangers > 0 ? strangers : 0;
    return g;
}

bool fa_measure_backend_alive(fa_measure_backend *backend)
{
    return !backend->alive || backend->alive(backend);
}

fa_status fa_measure_backend_judge(fa_measure_backend *backend, fa_candidate *c)
{
    fa_status st = backend->judge(backend, c);
    c->verified = st == FA_OK;
    return st;
}

static fa_status refuse(const fa_candidate *c)
{
    char text[512];
    fa_config_print(text, sizeof text, &c->config);
    return fa_fail(FA_INTERNAL, "%s was to be timed before it was verified", text);
}

fa_status fa_measure_backend_sample(fa_measure_backend *backend, fa_candidate *c, bool warm)
{
    return c->verified ? backend->sample(backend, c, warm) : refuse(c);
}

void fa_measure_backend_sum_up(fa_candidate *c, const fa_span *s)
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

fa_status fa_measure_backend_first(fa_measure_backend *backend, fa_candidate *c, int n, double enough)
{
    fa_span span = { 0 };
    if (!c->verified)
        return refuse(c);
    fa_status st = FA_OK;
    if (backend->first)
        st = backend->first(backend, c, n);
    for (int i = 0; !backend->first && i < n && st == FA_OK; i++) {
        st = backend->sample(backend, c, false);
        if (st == FA_OK && i == 0 && enough > 0 && fa_samples_median(&c->samples) > enough)
            break;
    }
    fa_span_add(&span, fa_measure_backend_telemetry(backend));
    if (st == FA_OK)
        fa_measure_backend_sum_up(c, &span);
    return st;
}
