/* rates: what probes measured on a chip, a small file beside its records. */
#ifndef FA_CACHE_RATES_H
#define FA_CACHE_RATES_H
#include "gen/arch.h"
#include "store.h"

/* Replaces what is there for the chip. False when it could not be kept. date: as in a record. */
bool fa_rates_save(fa_store *s, const char *chip, const char *date, const fa_rates *r);
/* Of the first root that has them. False, and zeros, when none has, or what it has cannot be trusted or read. */
bool fa_rates_load(fa_store *s, const char *chip, fa_rates *out);
#endif
