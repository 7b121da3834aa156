/* values: what a kernel may take as a parameter, and how it is found at a launch. A family lists the values that its kernels take, by name;
 * the CUDA struct that templates print and the bytes that a launch hands over come from that list, so host and device cannot disagree.
 *
 * Names: of an operand (its address) and of its strides, NAME_sb, NAME_ss, NAME_sh, in elements, of one in parts also NAME_sp; of a
 * workspace buffer (its address); and those of FA_SCALARS. Of operand 0 of a score program score0 (the address of an array),
 * score0_extent and score0_stride, arrays of 4, or score0_int or score0_float, a scalar that the kernel sees as score0; a family names
 * `score` for all of them. Of the gradients of those that are numbers with a fraction score0_grad and score0_grad_stride: `score_grads`. */
#ifndef FA_GEN_VALUES_H
#define FA_GEN_VALUES_H
#include "operation.h"
#include "score/program.h"
#include "workspace.h"

#define FA_PARAMS_MAX 96    /* values that one kernel takes, beside those of a score program */
#define FA_PARAMS_TEXT 1536 /* bytes of their names, blanks between, with a NUL */

/* X(type in C, type in CUDA, name, who takes it, comment): all but addresses and strides of operands and buffers. 8-byte ones first.
 * Who takes it, of the families that list no values: FIRST: they do, before strides; ALL: they do; NAMED: they do not, it is taken by
 * its name alone. */
#define FA_SCALARS(X)                                                                                                             \
    X(uint64_t, void *, workspace, FIRST, "scratch in global memory, or null")                                                    \
    X(uint64_t, unsigned *, counter, FIRST, "one word, 0 when the kernel starts and left 0; null unless the step asks for it")    \
    X(float, float, scale, ALL, "multiplies Q K^T")                                                                               \
    X(float, float, scale_log2, ALL, "scale * log2(e)")                                                                           \
    X(int32_t, int, b, ALL, "batch")                                                                                              \
    X(int32_t, int, hq, ALL, "query heads")                                                                                       \
    X(int32_t, int, hkv, ALL, "key/value heads")                                                                                  \
    X(int32_t, int, group, ALL, "hq / hkv")                                                                                       \
    X(int32_t, int, sq, ALL, "query length")                                                                                      \
    X(int32_t, int, sk, ALL, "key length")                                                                                        \
    X(int32_t, int, diag_lo, ALL, "key j is visible to query i when i + diag_lo <= j <= i + diag_hi;")                            \
    X(int32_t, int, diag_hi, ALL, "the host clamps both to [-sq, sk]")                                                            \
    X(int32_t, int, tiles, ALL, "row tiles of one head")                                                                          \
    X(int32_t, int, total, ALL, "tiles of all heads and batches")                                                                 \
    X(int32_t, int, key_base, ALL, "the key at coordinate 0 of the tensor maps of K and V: the first that any row sees")          \
    X(int32_t, int, section, ALL, "heads that run side by side so that their K and V share the L2")                               \
    X(int32_t, int, total_q, NAMED, "rows of packed queries")                                                                     \
    X(int32_t, int, total_k, NAMED, "rows of packed keys")                                                                        \
    X(int32_t, int, section_keys, NAMED, "keys of a head that share the L2 with those of the heads beside it")                    \
    X(int32_t, int, page_size, NAMED, "tokens of a page")                                                                         \
    X(int32_t, int, pages, NAMED, "pages that K and V have")                                                                      \
    X(int32_t, int, page_table_stride, NAMED, "entries from one sequence's row of the page table to the next")                    \
    X(int32_t, int, relative, NAMED, "1: a sequence's diagonals are off by its sk - sq, 0: by nothing")                           \
    X(int32_t, int, shift_lo, NAMED, "of a sequence with relative: key j is visible to query i when")                             \
    X(int32_t, int, shift_hi, NAMED, "i + off + shift_lo <= j <= i + off + shift_hi")                                             \
    X(int32_t, int, off, NAMED, "of a sequence without relative: query i lies at key i + off")                                    \
    X(int32_t, int, parts, NAMED, "partial results")                                                                              \
    X(int32_t, int, accumulate, NAMED, "1: gradients are added to what is there, 0: they take its place")                         \
    X(int32_t, int, joined, NAMED, "of maps of rank 5: 1: a box brings all its rows, heads lie whole boxes apart; 0: eight rows") \
    X(int32_t, int, boxed, NAMED, "1: arrays of the score program, or rows of several heads, lie as their maps ask")              \
    X(int32_t, int, unit, NAMED, "pairs of a sequence and a key/value head that launches before this one did")                    \
    X(int32_t, int, member, NAMED, "query heads of each of its groups that launches before this one did")                         \
    X(int32_t, int, members, NAMED, "query heads of each of its groups that this launch does")                                    \
    X(uint32_t, unsigned, drop_below, NAMED, "of kernels of before, in bundles: the same of a word of 32 bits")                   \
    X(uint32_t, unsigned, drop_bits, NAMED, "a pair is dropped where its 15 random bits are below")                               \
    X(float, float, keep_scale, NAMED, "multiplies what is kept: 1 / (1 - drop_bits / 2^15)")                                     \
    X(int32_t, int, rotary_positions, NAMED, "positions that there are cosines and sines of")

/* What a launch gives for one operand of its score program. */
typedef struct fa_score_given {
    uint64_t address;  /* of an array */
    int64_t stride[4]; /* elements; of bits words; 0 where there is no index, and where all of an index are one */
    int32_t extent[4]; /* at least 1 */
    uint32_t scalar;   /* the bits of a float, or of an int32_t */
    uint64_t grad;     /* of its gradient; 0: not asked for */
    int64_t grad_stride[4];
} fa_score_given;

/* Every value of one call. Operands in the order of the operation's rows, buffers in that of the source. */
typedef struct fa_values {
    struct {
        uint64_t address;
        int64_t stride[4]; /* batch, sequence, head, part, in elements; of dimensions of length 1: 0 */
    } operand[FA_OPERANDS_MAX];
    uint64_t buffer[FA_BUFFERS_MAX];
    fa_score_given score[FA_SCORE_OPERANDS_MAX];
#define X(c, cuda, name, who, comment) c name;
    FA_SCALARS(X)
#undef X
} fa_values;

/* One value: of which C type it is on the device, and where it lies in fa_values. */
typedef struct fa_value {
    char name[24]; /* as the struct on the device has it: "score0_stride[4]" of an array */
    char type[24]; /* in CUDA */
    char comment[112];
    uint16_t at, bytes, align; /* align 0: its bytes */
} fa_value;

/* The value of this name. False: there is none. */
bool fa_value_find(fa_value *out, const fa_operation *op, const fa_workspace *w, const char *name);

/* The row of the operand that brings the value of this name: its address, a stride, or one of its `values`; -1: none does. */
int fa_value_operand(const fa_operation *op, const char *name);

/* Whether calls of the problem have the value: an operand that brings it is there, or none brings it. */
bool fa_value_present(const fa_operation *op, const fa_problem *p, const char *name);

/* The names that a family takes which lists none: of all that dense calls have: operands, workspace, counter, strides, scalars. */
void fa_values_all(char out[FA_PARAMS_TEXT], const fa_operation *op);

/* The names with `score` replaced by those of all operands of the program, NULL: by none. False: out is too short. */
bool fa_values_expand(char out[FA_PARAMS_TEXT], const char *names, const fa_program *program);

/* The next of a text of names; false at its end. Names of more letters than a value can have are cut. */
bool fa_values_next(const char **at, char name[24]);

#define FA_PACKED_MAX (FA_PARAMS_MAX * 8 + FA_SCORE_OPERANDS_MAX * (int)sizeof(fa_score_given))

/* How a kernel's parameters are made: words of 4 bytes copied from fa_values in runs. */
typedef struct fa_packing {
    int32_t runs, bytes; /* bytes: of the struct on the device */
    struct {
        uint16_t from, to, words; /* in words */
    } run[FA_PARAMS_MAX + 2 * FA_SCORE_OPERANDS_MAX];
} fa_packing;

/* That of a list of names. FA_INVALID names the one that is no value. */
fa_status fa_packing_of(fa_packing *out, const fa_operation *op, const fa_workspace *w, const char *names);

/* Adds a value at the end of the struct, aligned as C and CUDA align it. False: there are FA_PARAMS_MAX. */
bool fa_packing_add(fa_packing *p, const fa_value *v);
void fa_packing_end(fa_packing *p); /* rounds the struct's size up to its alignment, 8 */

/* The parameters of one kernel; room for p->bytes, aligned to 8. */
static inline void fa_pack(void *to, const fa_packing *p, const fa_values *v)
{
    uint32_t *out = to;
    const uint32_t *in = (const void *)v;
    for (int32_t i = 0; i < p->runs; i++)
        for (uint16_t k = 0; k < p->run[i].words; k++)
            out[p->run[i].to + k] = in[p->run[i].from + k];
}
#endif
