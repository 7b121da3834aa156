/* bucket: the shapes for which one config is chosen, and the one shape that stands for them. */
#ifndef FA_GEN_BUCKET_H
#define FA_GEN_BUCKET_H
#include "problem_fields.h"

/* The shape bucket, the unit in which configs are chosen: equal numbers for problems that share winners. Shape fields of 0 take part as
 * filled by fa_problem_fill_shape. Its edges are those of decisions:
 * - up to FA_FEW_ROWS rows of a KV group together (sq * hq / hkv): the tiles that exist, 1, 2, 8, 16, 32 and 64 rows;
 * - beyond: sq, in half octaves, 64, 96, 128, 192, and in quarters from 256 to 8192, 256, 320, 384, 448, 512, ...: there are few waves of
 *   tiles then, which the lengths fill or do not; half way between two is the edge;
 * - of a dense forward problem with as many keys, without a mask, in one to two rounds of tiles over an H100's SMs: eighths from 256 to
 *   8192, each up to its value;
 * - of gradients without a mask, of as many keys and from 192 on: quarters, cut where blocks of 64 keys of the query heads begin a second
 *   or a third round over 132 SMs, or blocks of 128 a second;
 * - of a dense forward problem with more keys: sq itself up to 16, then in eighths of octaves to 256, sixteenths to 1024 and quarters to
 *   8192, each up to its value, as tiles are: rows of one tile more would be a tile more, of a group of heads sooner;
 * - sk, likewise, from 16 on; of few rows in half octaves;
 * - the KV heads of all sequences, b * hkv: each number up to 16, then forward eighths of octaves to 128, of few rows to 512, quarters to
 *   1024, then octaves; gradients quarters from 16 on, without a mask and groups from 32 on;
 * - of few rows over K and V of few bits whether eight divides hkv, or four, or neither does, or hkv is 1: blocks have slices of heads;
 * - the group hq / hkv itself up to 32, then the next power of two; the window to the nearest power of two;
 * - with lengths in device memory sq, sk and heads in octaves, which the lengths cover anyway, and the kind of the batch. */
uint32_t fa_problem_bucket(const fa_problem *p);

/* The one problem that stands for all of p's class and bucket: what is chosen, rendered and prepared for it is theirs. Its bucket is that
 * of fa_problem_chosen_by(p); of what it gives it gives the same. */
fa_problem fa_problem_point(const fa_problem *p);

/* Half octaves between the shapes of two buckets, over all fields. */
int fa_problem_steps(const fa_problem *a, const fa_problem *b);
#endif
