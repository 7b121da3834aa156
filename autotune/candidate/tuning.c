/* tuning: what a search found is freed, and where it takes place is told by a context. */
#include "tuning.h"
#include <stdlib.h>

void fa_tuning_free(fa_tuning *t)
{
    free(t->candidate);
    *t = (fa_tuning){ .n = 0 };
}

fa_site fa_site_of(fa_context *ctx)
{
    return (fa_site){ ctx,
                      fa_context_arch(ctx),
                      fa_context_budget(ctx),
                      fa_context_template_dir(ctx),
                      fa_context_store(ctx),
                      fa_context_compiler(ctx),
                      !fa_context_driver(ctx)->takes_ptx,
                      0,
                      NULL };
}
