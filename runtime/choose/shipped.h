/* shipped: the table of winners that ships with the library, parsed when it is built. */
#ifndef FA_RUNTIME_CHOOSE_SHIPPED_H
#define FA_RUNTIME_CHOOSE_SHIPPED_H
#include "gen/config.h"

typedef struct fa_shipped {
    const char *chip;   /* "NVIDIA H200" */
    bool alone;         /* it says nothing of other chips */
    fa_problem problem; /* normalized, with its shape */
    fa_config config;
} fa_shipped;

/* In the order of defaults.inc. */
extern const fa_shipped fa_shipped_rows[];
extern const size_t fa_shipped_count;
#endif
