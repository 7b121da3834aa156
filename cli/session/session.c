/* session: which device, and a context on it. */
#include "session.h"
#include "cli/options/arch_names.h"
#include "gen/error.h"
#include "ranking.h"
#include "runtime/context/environment.h"
#include <string.h>

/* clang-format off */
#define DEVICE_ROWS                                                                                                                       \
    { .name = "device", .type = &cli_text, .at = offsetof(cli_where, device), .value = "DEVICE",                                           \
      .help = "cuda, cuda:N, or sim:ARCH, the simulator (default: FAGEN_DEVICE, else the first GPU, else sim:sm_80)" },                    \
    { .name = "sram", .type = &cli_bytes, .at = offsetof(cli_where, sram), .value = "BYTES",                                               \
      .help = "shared memory per block that a kernel may use (default: all the chip offers)", .min = 1, .max = 1 << 20 }
const cli_option cli_device_options[] = { DEVICE_ROWS, { .name = NULL } };
const cli_option cli_where_options[] = {
    DEVICE_ROWS,
    { .name = "arch", .type = &cli_text, .at = offsetof(cli_where, arch), .value = "ARCH",
      .help = "the simulator of a chip: sm_80, sm_90a, ..., or a product such as a100 or h100, as --device sim:ARCH" },
    { .name = NULL },
};
/* clang-format on */

static fa_status open_on(cli_session *s, const char *device, int32_t sram)
{
    fa_options o = FA_OPTIONS_INIT;
    o.device = device;
    o.sram_budget = sram;
    return fa_create(&s->ctx, &o);
}

fa_status cli_session_open(cli_session *out, const cli *c, const cli_where *w)
{
    const char *device = w->device ? w->device : fa_environment_read().device;
    char simulator[64];
    const fa_arch *arch;
    *out = (cli_session){ .ctx = NULL };
    fa_status st = w->arch && w->device ? fa_fail(FA_INVALID, "--arch and --device are two ways to name the chip; accepted: one of them")
                   : w->arch            ? cli_arch_find(&arch, "arch", w->arch)
                   : w->device          ? cli_device_check("device", w->device)
                                        : FA_OK;
    if (st != FA_OK)
        return st;
    if (w->arch) {
        snprintf(simulator, sizeof simulator, "sim:%s", arch->name);
        device = simulator;
    }
    st = open_on(out, device && device[0] ? device : "cuda", w->sram);
    if (st == FA_NO_DRIVER && !(device && device[0])) {
        cli_note(c, "no GPU (fagen doctor tells where one was looked for): running on the simulator, sim:sm_80");
        st = open_on(out, "sim:sm_80", w->sram);
        out->stands_in = true;
    }
    if (st == FA_INVALID && w->device)
        return fa_wrap(st, "--device or --sram");
    if (st == FA_OK)
        st = fa_context_enter(out->ctx, &out->in);
    if (st != FA_OK) {
        fa_destroy(out->ctx);
        out->ctx = NULL;
        return st;
    }
    const fa_device *d = fa_context_device(out->ctx);
    out->simulated = !strncmp(d->driver->name, "sim", 3);
    if (out->simulated && !d->ordinal)
        snprintf(out->device, sizeof out->device, "%s", d->driver->name);
    else
        snprintf(out->device, sizeof out->device, "%s:%d", d->driver->name, d->ordinal);
    return FA_OK;
}

void cli_session_close(cli_session *s)
{
    if (s->ctx)
        fa_context_leave(s->ctx, &s->in);
    fa_destroy(s->ctx);
    s->ctx = NULL;
}

fa_status cli_session_again(fa_context **out, const cli_session *s, const cli_where *w, const char *cache_dir, const cu_driver *driver)
{
    fa_options o = FA_OPTIONS_INIT;
    const fa_device *d = fa_context_device(s->ctx);
    o.cache_dir = cache_dir;
    o.sram_budget = w->sram;
    o.check_device_data = driver ? -1 : 0; /* as on a GPU: the host's part of a launch is what such a context is timed for */
    return fa_create_on(out, &o, driver ? driver : d->driver, d->ordinal);
}

fa_status cli_session_config(const cli_session *s, const fa_problem *p, const char *text, fa_config *out)
{
    fa_gen *g;
    fa_status st = fa_gen_open(&g, fa_context_template_dir(s->ctx));
    if (st == FA_OK)
        st = cli_pick(g, p, fa_context_arch(s->ctx), fa_context_budget(s->ctx), text, out);
    fa_gen_close(g);
    return st;
}

const char *cli_session_chip(const cli_session *s, char *buf, size_t n)
{
    const fa_arch *a = fa_context_arch(s->ctx);
    snprintf(buf, n, "%s (%s)", a->chip, a->name);
    return buf;
}

json_t *cli_session_json(const cli_session *s)
{
    const fa_arch *a = fa_context_arch(s->ctx);
    return json_pack("{s:s,s:s,s:s,s:b}", "name", s->device, "chip", a->chip, "arch", a->name, "simulated", s->simulated);
}
