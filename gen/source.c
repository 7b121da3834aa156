/* source: freed apart from what renders it, for those that only launch. */
#include "source.h"
#include <stdlib.h>

void fa_source_free(fa_source *s)
{
    if (!s)
        return;
    free(s->text);
    free(s->lined);
    *s = (fa_source){ 0 };
}
