/* columns: what bundles hold of problems, images, steps and tensor maps: a new member is a row here. */
#include "columns.h"
#include "blob.h"
#include "gen/problem_fields.h"
#include "gen/score/limits.h"
#include <stddef.h>

/* clang-format off */

/* Numbers of a fa_step: X(column, member, least, most). Every member but the entry, the grid and the maps stands here. */
#define STEP_NUMBERS(X)               \
    X(threads, threads, 1, 1024)      \
    X(smem, smem, 0, 1 << 20)         \
    X(per_sm, per_sm, 0, 32)          \
    X(cluster, cluster, 1, FA_CLUSTER_MAX) \
    X(counter, counter, 0, 1)         \
    X(pdl, pdl, 0, 1)                 \
    X(keys_most, keys_most, 0, INT32_MAX) \
    X(maps, n_maps, 0, FA_STEP_MAPS)

/* And of a fa_map, all but the operand. */
#define MAP_NUMBERS(X)                \
    X(cols, 1, 256)                   \
    X(rows, 1, 256)                   \
    X(swizzle, 0, 128)                \
    X(boxes, 0, 256)                  \
    X(together, 0, 256)               \
    X(array, 0, FA_SCORE_OPERANDS_MAX) \
    X(rank, 0, 4)                     \
    X(row_index, 0, 3)                \
    X(col_index, 0, 3)

#define COUNT(...) +1
#define OF(type, member) sizeof(((type *)0)->member)
_Static_assert(sizeof(fa_step) == OF(fa_step, entry) + OF(fa_step, grid) + OF(fa_step, map) + (STEP_NUMBERS(COUNT)) * sizeof(int32_t),
               "a member of fa_step is missing in STEP_NUMBERS: bundles would lose it");
_Static_assert(sizeof(fa_map) == OF(fa_map, operand) + (MAP_NUMBERS(COUNT)) * sizeof(int32_t),
               "a member of fa_map is missing in MAP_NUMBERS: bundles would lose it");

static const fa_bundle_column bundle_columns[] = {
    {"name", offsetof(fa_blob, name), FA_COLUMN_TEXT, 1, 63},
    {"version", offsetof(fa_blob, version), FA_COLUMN_TEXT, 1, 63},
};

static const fa_bundle_column row_columns[] = {
#define X(member, word, part, kind, serves, shown) \
    {word, offsetof(fa_blob_row, problem.member), FA_COLUMN_NUMBER, INT32_MIN, INT32_MAX},
    FA_PROBLEM_FIELDS(X)
#undef X
    {"image", offsetof(fa_blob_row, image), FA_COLUMN_NUMBER, 0, FA_BUNDLE_MOST_ROWS},
    {"why", offsetof(fa_blob_row, why), FA_COLUMN_TEXT, 0, 1023},
    {"score", offsetof(fa_blob_row, score), FA_COLUMN_TEXT, 0, FA_SCORE_TEXT_MAX},
};

static const fa_bundle_column image_columns[] = {
    {"arch", offsetof(fa_blob_image, arch), FA_COLUMN_TEXT, 1, 11},
    {"config", offsetof(fa_blob_image, config), FA_COLUMN_TEXT, 1, 511},
    {"source", offsetof(fa_blob_image, source), FA_COLUMN_TEXT, 32, 32},
    {"check", offsetof(fa_blob_image, check), FA_COLUMN_TEXT, 32, 32},
    {"op", offsetof(fa_blob_image, op), FA_COLUMN_TEXT, 1, 31},
    {"params", offsetof(fa_blob_image, params), FA_COLUMN_TEXT, 1, FA_PARAMS_TEXT - 1},
    {"layout", offsetof(fa_blob_image, layout), FA_COLUMN_TEXT, 16, 16},
    {"size", offsetof(fa_blob_image, size), FA_COLUMN_NUMBER, FA_BUNDLE_LEAST_IMAGE, 1 << 30},
    {"ptx", offsetof(fa_blob_image, ptx), FA_COLUMN_NUMBER, 0, 1},
    {"workspace", offsetof(fa_blob_image, workspace), FA_COLUMN_WORKSPACE, 0, FA_BUFFERS_MAX},
    {"steps", offsetof(fa_blob_image, steps), FA_COLUMN_NUMBER, 1, FA_SOURCE_STEPS},
};

static const fa_bundle_column step_columns[] = {
    {"entry", offsetof(fa_blob_step, launch.entry), FA_COLUMN_CHARS, 1, OF(fa_step, entry) - 1},
    {"grid", offsetof(fa_blob_step, launch.grid), FA_COLUMN_PRODUCT, 1, FA_FACTORS_MAX},
#define X(word, member, least, most) {#word, offsetof(fa_blob_step, launch.member), FA_COLUMN_NUMBER, least, most},
    STEP_NUMBERS(X)
#undef X
    {"registers", offsetof(fa_blob_step, registers), FA_COLUMN_NUMBER, 0, 1 << 16},
    {"spills", offsetof(fa_blob_step, spills), FA_COLUMN_NUMBER, 0, INT32_MAX},
};

static const fa_bundle_column map_columns[] = {
    {"operand", offsetof(fa_map, operand), FA_COLUMN_OPERAND, 0, FA_OPERANDS_MAX - 1},
#define X(member, least, most) {#member, offsetof(fa_map, member), FA_COLUMN_NUMBER, least, most},
    MAP_NUMBERS(X)
#undef X
};

#define LIST(c) c, sizeof(c) / sizeof *(c)
const fa_bundle_table fa_bundle_tables[FA_BUNDLE_TABLES] = {
    [FA_TABLE_BUNDLE] = {"bundle", LIST(bundle_columns)},
    [FA_TABLE_ROWS] = {"rows", LIST(row_columns)},
    [FA_TABLE_IMAGES] = {"images", LIST(image_columns)},
    [FA_TABLE_STEPS] = {"steps", LIST(step_columns)},
    [FA_TABLE_MAPS] = {"maps", LIST(map_columns)},
};
/* clang-format on */
