/* entry: what ggml calls when it has loaded the library that GGML_BACKEND_PATH names. */
#include "report.h"
#include "rider.h"
#include "runtime/context/environment.h"
#include "seam.h"

void *ggml_backend_init(void)
{
    fa_ggml_rider_options o = { .find = fa_ggml_find_loaded };
    char why[256];
    if (!fa_ggml_settings_read(&o.settings, fa_environment_read().ggml, why, sizeof why)) {
        fa_ggml_tell("%s; nothing is hooked", why);
        o.settings.off = true;
    }
    return fa_ggml_rider_load(&o);
}
