/* span: the bytes that an operand of a call covers: its strides looked at, then the address that they start from. */
#ifndef FA_RUNTIME_ARGS_SPAN_H
#define FA_RUNTIME_ARGS_SPAN_H
#include "gen/operation.h"
#include "gen/score/limits.h"

/* Of a call: the operands of its operation, its workspace after them, then arrays of its score program, and gradients of its operands. */
#define FA_SPANS_MAX (FA_OPERANDS_MAX + 1 + 2 * FA_SCORE_OPERANDS_MAX)

typedef struct fa_span {
    const fa_operand *operand;
    int64_t stride[4], size[4]; /* of its first three dimensions, and of parts; in elements, 0 where there is not more than 1 */
    int64_t row;                /* bytes of a row; of a pointer 0 */
    int64_t run;                /* bytes that lie together: a row, or all from a pointer on */
    int64_t low, high;          /* bytes from the address to the lowest row, and to the end of the highest */
    int32_t bytes;              /* of an element */
    int32_t multiple;           /* bytes that the address is a multiple of; 0 = of an element */
    bool some;                  /* it has elements */
    unsigned bits;              /* a strided one's: row and strides in bytes, or-ed together: what they are multiples of */
    uint64_t lo, hi;            /* addresses [lo, hi); equal where it has no element, or is not given */
} fa_span;

/* All but lo and hi, from the operand's fields in the arguments; sizes: those of one part. zero: strides of 0 are meant, or refused
 * elsewhere. FA_INVALID names the stride. */
fa_status fa_span_shape(fa_span *out, const fa_operand *o, const fa_args *args, const fa_sizes *sizes, int bytes, bool zero);

/* The same of the workspace: all the bytes that the arguments say are there, whether or not a kernel takes them. It counts as an output. */
void fa_span_workspace(fa_span *out, const fa_args *args);

/* More of it: that of one part becomes that of all fa_args.parts. FA_INVALID names their stride: overflow, or rows that two parts share. */
fa_status fa_span_parts(fa_span *s, const fa_args *args);

/* lo and hi for the address. FA_INVALID: null where it has elements and is not optional, not a multiple of the element, or leading outside
 * the address space. */
fa_status fa_span_place(fa_span *s, uint64_t address);

/* Rows of an output must not share bytes: each dimension, from the smallest stride up, has to step over all below it. */
fa_status fa_span_rows_apart(const fa_span *s);

/* What is known of the pairs whose [lo, hi) meet, in the order in which they are looked at: that they are apart at this distance. Of one
 * shape of all spans; zeros: nothing. */
#define FA_APART_MAX 24 /* a backward with all its tensors in one buffer has 21 such pairs; those beyond are looked at each time */
typedef struct fa_apart {
    uint64_t distance[FA_APART_MAX];
    uint32_t pair[FA_APART_MAX];
} fa_apart;

/* An output shares no byte with any other, but where it takes the place of one part, element for element. Placed spans of all operands and
 * of the workspace: n. known may be NULL. */
fa_status fa_spans_apart(const fa_span *s, int n, fa_apart *known);
#endif
