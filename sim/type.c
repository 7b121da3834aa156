/* type: the types of PTX by name, and their sizes. */
#include "program.h"
#include <string.h>

/* clang-format off */
static const struct { const char *name; sim_type type; int bytes; } types[] = {
    {"pred", T_PRED, 1}, {"b8", T_B8, 1}, {"b16", T_B16, 2}, {"b32", T_B32, 4}, {"b64", T_B64, 8}, {"b128", T_B128, 16}, {"u8", T_U8, 1},
    {"u16", T_U16, 2}, {"u32", T_U32, 4}, {"u64", T_U64, 8}, {"s8", T_S8, 1}, {"s16", T_S16, 2}, {"s32", T_S32, 4}, {"s64", T_S64, 8},
    {"f16", T_F16, 2}, {"f16x2", T_F16X2, 4}, {"bf16", T_BF16, 2}, {"bf16x2", T_BF16X2, 4}, {"tf32", T_TF32, 4}, {"f32", T_F32, 4},
    {"f64", T_F64, 8}, {"u16x2", T_U16X2, 4}, {"s16x2", T_S16X2, 4},
};
/* clang-format on */
enum { TYPES = sizeof types / sizeof *types };
sim_type sim_type_of(const char *word)
{
    for (int k = 0; k < TYPES; k++)
        if (!strcmp(types[k].name, word))
            return types[k].type;
    return T_NONE;
}
int sim_type_bytes(sim_type t)
{
    for (int k = 0; k < TYPES; k++)
        if (types[k].type == t)
            return types[k].bytes;
    return 4;
}
