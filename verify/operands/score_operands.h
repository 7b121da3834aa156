/* score_operands: the operands of a problem's score program: drawn by a seed on the host, and copied to the device. */
#ifndef FA_VERIFY_OPERANDS_SCORE_OPERANDS_H
#define FA_VERIFY_OPERANDS_SCORE_OPERANDS_H
#include "gen/extent.h"
#include "gen/score/eval.h"
#include "gen/score/program.h"
#include "sim/driver.h"

typedef struct fa_score_operands {
    const fa_program *program; /* NULL: the problem has none, and all else is 0 */
    /* What fa_score_eval() takes but for lengths of the sequence; `user` is this struct, which must stay where it is. */
    fa_score_data data;
    struct {
        int64_t stride[FA_SCORE_RANK_MAX]; /* elements; of bits words */
        size_t bytes;
        int shared;           /* 1 + the index whose elements lie within those of its first, a step apart; 0: none */
        unsigned char *image; /* all NaN, or 1 bits, where no index leads */
        CUdeviceptr at;       /* 0: not on the device */
    } array[FA_SCORE_OPERANDS_MAX];
    fa_score_value value[FA_SCORE_OPERANDS_MAX];
    fa_score *object;
    const cu_driver *driver;
} fa_score_operands;

/* On the host, of a call with these sizes, as the problem's class says that arrays lie. scalars NULL: those of the text. strided: rows have
 * gaps, or an index reads the same elements, as the seed says. Arrays of more than 2^26 elements are the same for all of their first
 * indices, or have rows that are nearly those before. */
fa_status fa_score_operands_draw(fa_score_operands *out, const fa_problem *p, const fa_sizes *sizes, const fa_score_scalars *scalars,
                                 uint64_t seed, bool strided);

/* To the device, and into the arguments of a launch. A context of the device is current, here and below. */
fa_status fa_score_operands_upload(fa_score_operands *o, fa_context *ctx, const cu_driver *d);
void fa_score_operands_set(const fa_score_operands *o, fa_args *args);

/* Other values than those that were drawn: of scalars; and of an array that is on the device, in packed order. FA_UNSUPPORTED: an index of
 * it reads the same elements. */
void fa_score_operands_give(fa_score_operands *o, const fa_score_scalars *scalars);
typedef double fa_score_element_value(void *user, size_t i);
fa_status fa_score_operands_fill(fa_score_operands *o, int k, fa_score_element_value *value, void *user);

/* The first operand of which the device has other bytes than it was given; -1: none. */
fa_status fa_score_operands_changed(const fa_score_operands *o, int *which);

void fa_score_operands_close(fa_score_operands *o); /* zeros are fine */
#endif
