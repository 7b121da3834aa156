/* quality: the words for how far a measured time is to be trusted. */
#include "quality.h"
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name, *about;
} words[FA_QUALITIES] = {
    [FA_QUALITY_UNTOLD] = { "", "nothing is said of it" },
    [FA_QUALITY_STEADY] = { "steady", "nothing was seen that disturbs" },
    [FA_QUALITY_FEW] = { "few-samples", "the search left the config early: few samples" },
    [FA_QUALITY_NOISY] = { "noisy", "the 95 % interval of the median is wide" },
    [FA_QUALITY_MOVED] = { "clocks-moved", "the chip's clock moved while it was measured" },
    [FA_QUALITY_THROTTLED] = { "throttled", "heat or the supply held the chip's clock down" },
    [FA_QUALITY_CONTENDED] = { "contended", "another process computed on the chip" },
};

const char *fa_quality_name(fa_quality q)
{
    return (unsigned)q < FA_QUALITIES ? words[q].name : "?";
}

const char *fa_quality_about(fa_quality q)
{
    return (unsigned)q < FA_QUALITIES ? words[q].about : "?";
}

fa_quality fa_quality_of(const char *name)
{
    for (int q = 0; name && q < FA_QUALITIES; q++)
        if (!strcmp(words[q].name, name))
            return (fa_quality)q;
    return FA_QUALITY_UNTOLD;
}
