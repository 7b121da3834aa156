/* quality: how far a measured time is to be trusted, in one word. */
#ifndef FA_CACHE_QUALITY_H
#define FA_CACHE_QUALITY_H

/* From good to bad: of several troubles a time has the quality of the worst. */
typedef enum fa_quality {
    FA_QUALITY_UNTOLD = 0, /* modelled, or an older line */
    FA_QUALITY_STEADY,     /* nothing was seen that disturbs */
    FA_QUALITY_FEW,        /* fewer samples than a median is trusted with: the search left the config early */
    FA_QUALITY_NOISY,      /* the 95 % interval of the median is wide */
    FA_QUALITY_MOVED,      /* the chip's clock moved while it was measured */
    FA_QUALITY_THROTTLED,  /* the chip said that heat or a failing supply holds its clock down */
    FA_QUALITY_CONTENDED,  /* another process computed on the chip */
    FA_QUALITIES
} fa_quality;

/* "" "steady" "few-samples" "noisy" "clocks-moved" "throttled" "contended"; "?" of none of them. A literal. */
const char *fa_quality_name(fa_quality q);
/* A sentence for people. A literal. */
const char *fa_quality_about(fa_quality q);
/* Of a name; FA_QUALITY_UNTOLD of one that is not known. NULL is fine. */
fa_quality fa_quality_of(const char *name);
#endif
