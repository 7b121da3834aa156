/* site: where a search takes place: a device, or an arch that is not here. */
#include "autotune/search/compile_pool.h"
#include "cache/store.h"
#include "cli/options/arch_names.h"
#include "gen/error.h"
#include "runtime/context/environment.h"
#include "tune.h"
#include <string.h>

static void warn(void *user, const char *message)
{
    cli_note(user, "%s", message);
}

void tune_site_note(const cli *c, const char *arch, const char *chip, bool timed)
{
    if (timed)
        cli_note(c, "tuning on %s (%s): candidates are compiled, verified and timed", chip, arch);
    else
        cli_note(c,
                 "no %s GPU here: candidates for %s are compiled, gated on registers and spills, and ranked by the model; nothing is timed",
                 arch, arch);
}

fa_status tune_site_open(tune_site *out, const cli *c, const tune_args *a, const char *device)
{
    const fa_arch *arch = NULL;
    fa_environment env = fa_environment_read();
    cli_where where = { .device = device ? device : a->where.device, .sram = a->where.sram };
    *out = (tune_site){ .site = { .ctx = NULL } };
    fa_status st = a->arch ? cli_arch_find(&arch, "arch", a->arch) : FA_OK;
    if (st != FA_OK)
        return st;
    if (arch && a->where.sram > arch->smem_block)
        return fa_fail(FA_INVALID, "--sram is %d; accepted on %s: 1 to %d bytes", a->where.sram, arch->name, arch->smem_block);
    cli quiet = *c;
    quiet.quiet = true;
    bool wanted = where.device || !arch || env.device;
    st = cli_session_open(&out->session, &quiet, &where);
    if (st != FA_OK && wanted)
        return st;
    const fa_arch *here = st == FA_OK ? fa_context_arch(out->session.ctx) : NULL;
    bool same = here && (!arch || !strcmp(arch->name, here->name));
    if (where.device && !same)
        return fa_fail(FA_INVALID, "--arch %s and --device%s %s (%s) contradict each other", arch->name, device ? "s" : "", where.device,
                       here->name);
    if (same && !out->session.simulated) {
        out->site = fa_site_of(out->session.ctx);
        tune_site_note(c, here->name, here->chip, true);
        return FA_OK;
    }
    if (!arch && where.device) /* the product that the simulator is asked for */
        arch = cli_device_arch(where.device);
    arch = arch ? arch : here;
    out->site = (fa_site){ .arch = arch,
                           .budget = a->where.sram,
                           .template_dir = env.template_dir,
                           .store = fa_store_open(NULL, warn, (void *)c),
                           .compiler = fa_compiler_open(NULL) };
    if (!out->site.store || !out->site.compiler)
        return fa_fail(FA_NOMEM, "no memory to tune");
    tune_site_note(c, arch->name, arch->chip, false);
    return FA_OK;
}

void tune_site_close(tune_site *s)
{
    if (fa_compile_pool_left()) /* they stand on it, until the process ends */
        return;
    if (!s->site.ctx) {
        fa_store_close(s->site.store);
        fa_compiler_close(s->site.compiler);
    }
    cli_session_close(&s->session);
}
