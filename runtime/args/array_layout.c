/* array_layout: strides and addresses against what tensor maps take. */
#include "array_layout.h"

#define ELEMENT 2 /* bytes of those that maps are of */
#define UNIT 16

bool fa_map_stride_fits(int64_t bytes)
{
    return bytes > 0 && bytes < (int64_t)1 << 40 && bytes % UNIT == 0;
}

/* Elements of an index that goes on lie side by side. */
static bool side_by_side(const fa_score_given *given, int index)
{
    return given->extent[index] <= 1 || given->stride[index] == 1;
}

static bool aligned_rows(const fa_map *m, const fa_score_given *given, int bytes)
{
    bool fits = given->address % UNIT == 0 && side_by_side(given, m->col_index);
    for (int i = 0; i < m->rank; i++)
        fits = fits && (i == m->col_index || given->extent[i] <= 1 || (i != m->row_index && given->stride[i] == 0) ||
                        fa_map_stride_fits(given->stride[i] * bytes));
    return fits;
}

bool fa_array_aligned(const fa_map *m, const fa_score_given *given)
{
    return aligned_rows(m, given, ELEMENT);
}

/* Of bytes each row is found by itself. */
static bool bytes_aligned(const fa_score_plane *plane, const fa_score_given *given)
{
    uint64_t bits = given->address;
    for (int i = 0; i < plane->rank - 1; i++)
        bits |= (uint64_t)given->stride[i];
    return bits % UNIT == 0 && side_by_side(given, plane->rank - 1);
}

int32_t fa_arrays_feature(const fa_score_planes *planes, const fa_score_given *given)
{
    bool aligned = true, columns = planes->n > 0;
    for (int i = 0; i < planes->n; i++) {
        const fa_score_plane *plane = &planes->of[i];
        const fa_score_given *of = &given[plane->operand];
        fa_map rows = { .rank = plane->rank, .row_index = plane->row_index, .col_index = plane->rank - 1 };
        fa_map turned = { .rank = plane->rank, .row_index = plane->rank - 1, .col_index = plane->row_index };
        aligned = aligned && (plane->bytes == 1 ? bytes_aligned(plane, of) : aligned_rows(&rows, of, plane->bytes));
        columns = columns && plane->bytes == ELEMENT && of->extent[turned.col_index] > 1 && of->stride[turned.col_index] == 1 &&
                  of->stride[turned.row_index] != 1 && fa_array_aligned(&turned, of);
    }
    return aligned ? 0 : columns ? FA_FEATURE_SCORE_COLUMNS : FA_FEATURE_SCORE_ANYWHERE;
}
