/* number: the formats of tensors, one value at a time, rounded as the hardware rounds. */
#ifndef FA_VERIFY_OPERANDS_NUMBER_H
#define FA_VERIFY_OPERANDS_NUMBER_H
#include <fagen.h>

/* To nearest even; overflow gives infinity, any NaN gives 0x7fff. */
uint16_t fa_number_to_f16(float x);
uint16_t fa_number_to_bf16(float x);
float fa_number_from_f16(uint16_t h);
float fa_number_from_bf16(uint16_t h);
/* 10 bits of fraction, ties away from zero (cvt.rna.tf32.f32). */
float fa_number_to_tf32(float x);

/* The nearest value of the type as the matrix units take it: FA_TF32 rounds, FA_F32 does not. */
float fa_number_round(float x, int dtype);
/* The same, but beyond the largest finite value it stays there. */
float fa_number_round_finite(float x, int dtype);
/* Memory of the type: TF32 is stored as fp32, unrounded; of formats of few bits those of a byte, as the nearest code. */
void fa_number_store(void *to, float x, int dtype);
float fa_number_load(const void *from, int dtype);
/* A row of n elements, whole blocks of a format that has blocks: in the type, and as numbers that the type has. */
void fa_number_store_row(void *to, const float *x, int64_t n, int dtype);
void fa_number_round_row(float *x, int64_t n, int dtype);
/* Elements that lie together in a block of the type: 1 but for such formats. */
int fa_number_block(int dtype);
/* How far the nearest value of the type, as the matrix units take it, may be from x. */
double fa_number_rounding(double x, int dtype);
/* Distance between the values of the type (as stored) around |x|. */
double fa_number_ulp(double x, int dtype);
#endif
