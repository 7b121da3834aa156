/* ruler: the octave of a value by its highest bit, and the part of it by what lies beyond. */
#include "ruler.h"

__extension__ typedef __int128 wide; /* values reach 2^50, and their squares 2^100 */

uint32_t fa_floor_log2(int64_t v)
{
    uint32_t k = 0;
    while (v >> (k + 1))
        k++;
    return k;
}

/* That of octave k. */
static const fa_ruler_part *part_at(fa_ruler r, uint32_t k)
{
    const fa_ruler_part *s = r.part + r.n - 1;
    while (s->octave > k)
        s--;
    return s;
}

uint32_t fa_ruler_nearest(fa_ruler r, int64_t v)
{
    uint32_t k = fa_floor_log2(v);
    const fa_ruler_part *s = part_at(r, k);
    int64_t beyond = v - ((int64_t)1 << k), half = (int64_t)1 << k >> 1;
    uint32_t part = s->log_parts ? (uint32_t)(((beyond << s->log_parts) + half) >> k) : (wide)v * v >= (wide)2 << 2 * k;
    return s->first + ((k - s->octave) << s->log_parts) + part;
}

uint32_t fa_ruler_upto(fa_ruler r, int64_t v)
{
    uint32_t k = fa_floor_log2(v);
    const fa_ruler_part *s = part_at(r, k);
    int64_t beyond = v - ((int64_t)1 << k), width = (int64_t)1 << k >> s->log_parts;
    return s->first + ((k - s->octave) << s->log_parts) + (uint32_t)(width ? (beyond + width - 1) / width : 0);
}

int64_t fa_ruler_value(fa_ruler r, uint32_t step)
{
    const fa_ruler_part *s = r.part + r.n - 1;
    while (s->first > step)
        s--;
    uint32_t k = s->octave + ((step - s->first) >> s->log_parts), part = (step - s->first) & ((1u << s->log_parts) - 1);
    return ((int64_t)1 << k) + ((int64_t)part << k >> s->log_parts);
}

int64_t fa_ruler_first(fa_ruler r, uint32_t step)
{
    int64_t low = step ? fa_ruler_value(r, step - 1) : 0, high = fa_ruler_value(r, step); /* low is of the step before */
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (fa_ruler_nearest(r, middle) < step)
            low = middle;
        else
            high = middle;
    }
    return high;
}
