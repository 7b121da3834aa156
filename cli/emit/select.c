/* select: which config is emitted: what fa_launch() would run on the arch, the one that is named, or the model's best. */
#include "cli/options/arch_names.h"
#include "cli/session/ranking.h"
#include "emit.h"
#include "gen/error.h"
#include "sim/sim.h"
#include <string.h>

fa_status emit_next_target(const char **list, emit_target *out)
{
    char name[40];
    size_t len = strcspn(*list, ",");
    snprintf(name, sizeof name, "%.*s", (int)len, *list);
    out->ptx = strncmp(name, "compute_", 8) == 0;
    bool more = (*list)[len] != 0, dangling = more && !(*list)[len + 1];
    *list += len + more;
    fa_status st = dangling ? fa_fail(FA_INVALID, "--arch is \"\"; accepted: %s, or products such as h100", fa_arch_names())
                            : cli_arch_find(&out->arch, "arch", out->ptx ? name + 8 : name);
    return st == FA_OK ? st : fa_wrap(st, "in a bundle also with compute_ in place of sm_, for PTX");
}

fa_status emit_default_arch(const char **out, const char *device)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.device = device;
    *out = "sm_80";
    fa_status st = device ? cli_device_check("device", device) : FA_OK;
    if (st != FA_OK)
        return st;
    if (device && cli_device_arch(device)) {
        *out = device + strlen("sim:"); /* as it is named: a product, or a list of them */
        return strchr(device, ':') == strrchr(device, ':') ? FA_OK
                                                           : fa_fail(FA_INVALID, "--device is \"%.60s\"; accepted: sim:ARCH", device);
    }
    st = fa_create(&ctx, &o);
    if (st != FA_OK)
        return st == FA_NO_DRIVER && !device ? FA_OK : device ? fa_wrap(st, "--device") : st;
    const fa_arch *arch = fa_arch_find(fa_context_arch(ctx)->name);
    if (arch)
        *out = arch->name;
    fa_destroy(ctx);
    return FA_OK;
}

/* The simulator with one device for each arch of the list. */
static const cu_driver *simulator(const char *list, const fa_arch **ordinal, size_t *n)
{
    fa_text names = { 0 };
    emit_target t;
    *n = 0;
    while (*list && emit_next_target(&list, &t) == FA_OK) {
        size_t i = 0;
        while (i < *n && ordinal[i] != t.arch)
            i++;
        if (i < *n)
            continue;
        fa_text_fmt(&names, "%s%s", *n ? "," : "", t.arch->name);
        ordinal[(*n)++] = t.arch;
    }
    const cu_driver *sim = sim_open(fa_text_cstr(&names));
    fa_text_free(&names);
    return sim;
}

/* On the device of this machine that has the arch, where there is one, else on the simulator of the list's archs. */
static fa_status open_for(const emit_args *a, const fa_arch *arch, fa_context **out)
{
    const fa_arch *known[EMIT_ARCHS];
    char device[32];
    size_t n, k = 0;
    fa_options o = FA_OPTIONS_INIT;
    o.sram_budget = a->sram;
    o.device = device;
    for (int i = 0;; i++) {
        snprintf(device, sizeof device, "cuda:%d", i);
        if (fa_create(out, &o) != FA_OK)
            break;
        if (!strcmp(fa_context_arch(*out)->name, arch->name))
            return FA_OK;
        fa_destroy(*out);
    }
    const cu_driver *sim = simulator(a->arch, known, &n);
    while (k < n && known[k] != arch)
        k++;
    return sim ? fa_create_on(out, &o, sim, (int)k) : fa_fail(FA_INTERNAL, "--arch %s: the simulator knows one of them not", a->arch);
}

fa_status emit_open(const emit_args *a, const fa_arch *arch, fa_context **out)
{
    fa_status st = open_for(a, arch, out);
    if (st == FA_OK) /* the simulator's own numbers are those of no chip */
        fa_context_override_arch(*out, fa_context_driver(*out)->takes_ptx ? arch : NULL, a->chip);
    return st;
}

fa_status emit_pick(const emit_args *a, fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *s)
{
    fa_gen *g;
    memset(s, 0, sizeof *s);
    if (a->config && a->model_best)
        return fa_fail(FA_INVALID, "--config and --model-best are two ways to name a config; accepted: one of them");
    if (!a->config && !a->model_best)
        return fa_select_jit(ctx, p, out, s);
    *out = a->config ? (fa_selection){ .where = "named", .why = "--config" }
                     : (fa_selection){ .where = "model", .why = "--model-best: what is measured or ships does not count" };
    fa_status st = fa_gen_open(&g, fa_context_template_dir(ctx));
    if (st == FA_OK)
        st = cli_pick(g, p, fa_context_arch(ctx), fa_context_budget(ctx), a->config, &out->config);
    fa_gen_close(g);
    return st == FA_OK ? fa_render_in(ctx, p, &out->config, s) : st;
}
