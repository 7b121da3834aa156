/* philox: random numbers by counter: Philox4x32-7 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011;
 * the library Random123). The fewest rounds that pass all of BigCrush; the library's ten are three to spare. */
#ifndef FA_GEN_PHILOX_H
#define FA_GEN_PHILOX_H
#include <stdint.h>

/* Four words, a function of counter and key alone. */
void fa_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);
#endif
