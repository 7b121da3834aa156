/* problem: what is asked (fa_problem of fagen.h): its checks, its printer, its parser, its shape bucket. */
#ifndef FA_GEN_PROBLEM_H
#define FA_GEN_PROBLEM_H
#include "operation.h"
#include "problem_fields.h"

#define FA_PROBLEM_TEXT 512  /* bytes of a problem as it is printed, with a NUL */
#define FA_FEATURES_TEXT 256 /* of its features, all of them together */
#define FA_MAX_HEAD_DIM 576
#define FA_HEAD_DIM_USUAL 256              /* the most of families that do not name theirs */
#define FA_PAGE_MAX 128                    /* of fa_problem.page */
#define FA_MAX_LENGTH (1 << 30)            /* of sq and sk; keeps index arithmetic of the mask in 32 bits */
#define FA_MAX_ELEMENTS (INT64_C(1) << 50) /* of Q, K, V or O */

const char *fa_dtype_name(int dtype);                   /* "fp16" "bf16" "tf32" "fp32"; "?" for anything else */
bool fa_dtype_parse(int *out, const char *s);           /* also half, float16, bfloat16, float32 */
int64_t fa_problem_row_bytes(int32_t dtype, int32_t n); /* of a row of n elements in a cache of that dtype; of dtype 0: 0 */
int64_t fa_problem_key_bytes(const fa_problem *p);      /* of a key's rows of K and V in one head */
int fa_dtype_bytes(int dtype);                          /* 2 or 4, of e4m3 and e5m2 1; 0 for anything else */
const char *fa_mask_name(int mask);                     /* "none" "causal" "window" */
bool fa_mask_parse(int *out, const char *s);
const char *fa_op_name(int op); /* "forward" "backward" "merge"; "?" for anything else */
bool fa_op_parse(int *out, const char *s);
const char *fa_feature_name(int32_t bit);               /* of one fa_feature; "?" for anything else */
bool fa_features_parse(int32_t *out, const char *text); /* "lengths+pages" */
const char *fa_feature_names(void);                     /* all, for messages */

/* Whether Q, K and V have 8 bits, and so have the products. */
bool fa_problem_eight(const fa_problem *p);
/* Whether tensor maps may be over an operand: of as many bytes as the problem's type, V of 16 bits beside Q of 8, codes of a byte each. */
bool fa_problem_maps(const fa_problem *p, const fa_operand *o);
int32_t fa_problem_wide_values(const fa_problem *p); /* the type of V and P of 16 bits beside Q and K of 8; 0: they are as Q and K */

/* Copies min(in->size, sizeof) bytes over defaults, checks every field and fills the defaults in: dv = d, o_dtype = the
 * input's (FA_F32 for the 4-byte types), align = the most that d, dv and the types allow (at most 16), kv_align likewise, or 0
 * where it is align. The shape may stay 0. FA_INVALID or FA_UNSUPPORTED names the field, its value and what is accepted. */
fa_status fa_problem_normalize(fa_problem *out, const fa_problem *in);

/* Fills unset shape fields with typical values (b 1, hq 16, hkv = hq, sq = sk = 4096; a set sk gives sq and back), so
 * that the model and the tuner have numbers to work with. p is normalized. */
void fa_problem_fill_shape(fa_problem *p);

/* "bf16,d=128,dv=128,mask=causal,o=bf16,align=16,b=2,hq=16,hkv=8,sq=4096,sk=4096"; fields that came later, and those of the shape, only
 * where set. Returns the length as snprintf does. fa_problem_print_key leaves the shape out: one kernel source per such string. */
int fa_problem_print(char *buf, size_t n, const fa_problem *p);
int fa_problem_print_key(char *buf, size_t n, const fa_problem *p);

/* Reads what fa_problem_print writes, fields in any order, and normalizes. */
fa_status fa_problem_parse(fa_problem *out, const char *s);

/* The same of a text that another process wrote, with the text of its score program, n bytes, NULL: it is not told. The program is then
 * known to this process, too. */
fa_status fa_problem_parse_scored(fa_problem *out, const char *s, const char *score, size_t n);

/* Whether the compiled parts, or the shapes, are equal. Of normalized problems. */
bool fa_problem_same_class(const fa_problem *a, const fa_problem *b);
bool fa_problem_same_shape(const fa_problem *a, const fa_problem *b);

/* Whether rows of K and V have an alignment of their own: in blocks they lie where 16 bits need not. */
bool fa_problem_kv_apart(const fa_problem *p);

/* Of rows of K and V; at most p->align. p: normalized. */
int32_t fa_problem_kv_align(const fa_problem *p);

/* Sets both. kv: of rows of K and V, more than align where they lie better. */
void fa_problem_set_align(fa_problem *p, int32_t align, int32_t kv);

/* Bytes by which the kernel takes rows at less than the call has them: of Q and O, or of K and V. The kernel serves the call. */
int32_t fa_problem_align_apart(const fa_problem *kernel, const fa_problem *call);

/* The field as kernels serve calls by it: that of kv_align where it is 0. */
int32_t fa_problem_serving(const fa_problem *p, const fa_problem_field *f);

/* The first field for which a kernel of one class cannot run a call of another; NULL = it can. A kernel that takes no
 * workspace serves calls with and without. */
const fa_problem_field *fa_problem_hindrance(const fa_problem *kernel, bool takes_workspace, const fa_problem *call);

/* What a family computes that does not read few bits, after a kernel has made K and V of 16 bits of them: the same problem with K and V of
 * Q's type, of sequences one after the other where it has them in pages. */
fa_problem fa_problem_widened(const fa_problem *p);
#endif
