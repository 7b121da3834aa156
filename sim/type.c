/* type: the types of PTX by name, and their sizes. */
#include "program.h"
#include <string.h>

/* clang-format off */
static const struct { const char *name; uint8_t bytes; } types[T_COUNT] = {
    [T_NONE] = {"", 4}, /* where a type is left out: of a register */
    [T_PRED] = {"pred", 1}, [T_B8] = {"b8", 1}, [T_B16] = {"b16", 2}, [T_B32] = {"b32", 4}, [T_B64] = {"b64", 8}, [T_B128] = {"b128", 16},
    [T_U8] = {"u8", 1}, [T_U16] = {"u16", 2}, [T_U32] = {"u32", 4}, [T_U64] = {"u64", 8},
    [T_S8] = {"s8", 1}, [T_S16] = {"s16", 2}, [T_S32] = {"s32", 4}, [T_S64] = {"s64", 8},
    [T_F16] = {"f16", 2}, [T_F16X2] = {"f16x2", 4}, [T_BF16] = {"bf16", 2}, [T_BF16X2] = {"bf16x2", 4}, [T_TF32] = {"tf32", 4},
    [T_F32] = {"f32", 4}, [T_F64] = {"f64", 8}, [T_U16X2] = {"u16x2", 4}, [T_S16X2] = {"s16x2", 4},
    [T_E4M3X2] = {"e4m3x2", 2}, [T_E5M2X2] = {"e5m2x2", 2},
    [T_E4M3] = {"e4m3", 1}, [T_E5M2] = {"e5m2", 1},
};
/* clang-format on */
sim_type sim_type_of(const char *word)
{
    for (int t = T_NONE + 1; t < T_COUNT; t++)
        if (types[t].name[0] == word[0] && !strcmp(types[t].name, word))
            return (sim_type)t;
    return T_NONE;
}
int sim_type_bytes(sim_type t)
{
    return types[t].bytes;
}
