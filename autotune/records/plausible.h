/* plausible: whether a record from elsewhere may be what it says: its fields, its config, and a time that no chip beats. */
#ifndef FA_AUTOTUNE_RECORDS_PLAUSIBLE_H
#define FA_AUTOTUNE_RECORDS_PLAUSIBLE_H
#include "cache/record.h"
#include "gen/gen.h"

/* FA_OK, or FA_INVALID with field, value and what is accepted. now: seconds since 1970; 0 = not known. */
fa_status fa_record_plausible(fa_gen *g, const fa_record *r, int64_t now);
#endif
