/* slots: the integer operands of an append beside lengths and pages, drawn by a seed: slots of new rows, and their positions. */
#ifndef FA_VERIFY_OPERANDS_SLOTS_H
#define FA_VERIFY_OPERANDS_SLOTS_H
#include <stdbool.h>
#include <stdint.h>

/* To measure on: distinct slots, as far as there are so many, in runs of a page that lie anywhere in the cache. */
void fa_slots_deal(int64_t *out, int64_t tokens, int64_t pages, int64_t page_size);
/* To verify with: some negative, some beyond the cache, and some that another token has, too. */
void fa_slots_draw(int64_t *out, int64_t tokens, int64_t slots, uint64_t seed);
/* Positions from 0 to most - 1, `bytes` each; wild: some that are none. */
void fa_positions_draw(void *out, int64_t tokens, int32_t bytes, int32_t most, bool wild, uint64_t seed);
#endif
