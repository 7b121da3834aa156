/* slots: slots and positions drawn by a seed. */
#include "slots.h"
#include "random.h"
#include <string.h>

static int64_t divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void fa_slots_deal(int64_t *out, int64_t tokens, int64_t pages, int64_t page_size)
{
    int64_t step = pages / 3 * 2 + 1; /* from a page to the next: of no common divisor, so that each is met */
    while (pages > 1 && divisor(pages, step) != 1)
        step++;
    for (int64_t i = 0; i < tokens; i++)
        out[i] = pages > 0 && page_size > 0 ? i / page_size % pages * step % pages * page_size + i % page_size : -1;
}

void fa_slots_draw(int64_t *out, int64_t tokens, int64_t slots, uint64_t seed)
{
    fa_random r = { fa_random_mix(seed ^ 0x736c6f7473) };
    const int64_t none[] = { -1, INT64_MIN, INT64_MAX, slots, slots + 7, slots * ((int64_t)1 << 32), (int64_t)1 << 62 };
    for (int64_t i = 0; i < tokens; i++) {
        int32_t kind = fa_random_below(&r, 10);
        if (i % 2 && i < 14) /* each of them */
            out[i] = none[i / 2];
        else if (kind == 0)
            out[i] = none[fa_random_below(&r, 7)];
        else if (kind < 3 && i)
            out[i] = out[fa_random_below(&r, i < 1000 ? (int32_t)i : 1000)];
        else
            out[i] = slots > 0 ? (int64_t)(fa_random_next(&r) % (uint64_t)slots) : 0;
    }
}

void fa_positions_draw(void *out, int64_t tokens, int32_t bytes, int32_t most, bool wild, uint64_t seed)
{
    fa_random r = { fa_random_mix(seed ^ 0x706f7369) };
    const int64_t none[] = { -1, most, bytes == 8 ? INT64_MIN : INT32_MIN, bytes == 8 ? (int64_t)1 << 32 : INT32_MAX };
    for (int64_t i = 0; i < tokens; i++) {
        bool each = wild && i % 2 == 0 && i >= 8 && i < 16, is_none = each || (wild && fa_random_below(&r, 12) == 0);
        int64_t x = is_none || most < 1 ? none[each ? i / 2 - 4 : fa_random_below(&r, 4)] : fa_random_below(&r, most);
        memcpy((uint8_t *)out + i * bytes, &x, (size_t)bytes); /* little-endian, as the device */
    }
}
