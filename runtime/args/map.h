/* map: tensor maps, the 128 bytes by which TMA knows a tensor, as fa_step asks for them. */
#ifndef FA_RUNTIME_ARGS_MAP_H
#define FA_RUNTIME_ARGS_MAP_H
#include "check.h"
#include "gen/source.h"
#include "sim/driver.h"
#include <fagen.h>
#include <stdbool.h>

/* Fills at[0 ... n_maps - 1] with the maps of the step for this call. Rank 4, innermost first: element, sequence, head, batch. Rank 5, of
 * maps with several boxes to a row: see docs/templates.md; it goes by values.joined. Those of operands whose rows are keys cover key_base
 * up to the last key that any row sees, and one row where none sees any: a kernel never loads then. In the backward pass those of operands
 * whose rows are queries cover the first query that sees a key up to the last that does; where none does, rows that are there, and a kernel
 * never loads either. With lengths in device memory they cover all rows that are allocated, packed ones as one sequence, pages as a batch
 * of them. What is outside reads as zeros. The strides of dimensions of length 1 are made up; all others must be such as
 * fa_maps_possible() accepts.
 *
 * The driver encodes a map when it differs from what this thread last saw in its place of a small table: on a hit there is no call, no
 * lock and no allocation. same (0 = nothing is known): a number of this thread's; calls of one number differ in addresses alone. The maps
 * stay where they are until this thread's next call. FA_DEVICE where the driver refuses, FA_NOMEM where a thread's first call finds no
 * memory for its table. */
fa_status fa_maps_encode(const CUtensorMap *at[FA_STEP_MAPS], const cu_driver *d, const fa_step *s, uint64_t same, const fa_call *c);

/* Whether TMA can address every strided operand of the type of the inputs: bases at multiples of 16 bytes; the strides of dimensions longer
 * than 1 multiples of 16 bytes, above 0 and below 2^40. An empty tensor is no hindrance. Else why, if there is room for it (n > 0),
 * names the first tensor and stride at fault. Addresses may be NULL, where only strides matter. */
bool fa_maps_possible(const fa_call *c, const fa_problem *p, char *why, size_t n);

/* Whether the step's maps of rank 5 can bring all rows of a box at once: heads lie a whole number of boxes apart, rows come in groups of
 * eight. Else a box has eight rows. True where there are none. */
bool fa_maps_joined(const fa_step *s, const fa_call *c);

/* Whether TMA can address the arrays of the score program that the step has maps of: one that begins at a multiple of 16 bytes, whose last
 * index goes from element to element, and whose others have strides as those of tensors, or of 0 for all but the rows. And the tensors that
 * it has maps of several heads of: heads side by side in a token's row, a whole number of times so many, and the row's base and strides as
 * TMA asks. Else their maps are others, and nothing is loaded by them: values.boxed. True where there are none. */
bool fa_maps_boxed(const fa_step *s, const fa_call *c);

/* Whether one of the steps takes maps. */
bool fa_steps_map(const fa_step *s, int32_t steps);
#endif
