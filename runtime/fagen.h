/* fagen.h: exact attention on NVIDIA GPUs, compiled for your chip and shape class at run time.
 *
 *     O = softmax(scale * Q K^T, masked) V          LSE = log(sum(exp(scores)))   (natural logarithm)
 *
 * fagen expands a kernel template for the problem, compiles it in the process with NVRTC, keeps the result on disk and
 * launches it on your stream. It needs an NVIDIA driver and libnvrtc at run time, both opened with dlopen; the library
 * itself loads anywhere. This header is the manual: C99 and C++11, no other header of CUDA or fagen needed.
 *
 * The three phases
 *     fa_supported()   is there a kernel for this problem on this device?      no compilation
 *     fa_prepare()     compile it (or load it from the cache) now              milliseconds to a second
 *     fa_launch()      run it on real tensors                                  under a microsecond on top of the driver's
 * fa_launch() prepares on a miss, so the first two are optional, except under CUDA-graph capture, where a miss is
 * FA_CAPTURE and changes nothing. A server prepares a range of shapes at its start (fa_prepare_range) and says by the option on_miss what a
 * launch outside of it does.
 *
 * Tensors (row-major names, any strides; the last dimension has unit stride)
 *     Q [b, sq, hq, d]   K [b, sk, hkv, d]   V [b, sk, hkv, dv]   O [b, sq, hq, dv]   LSE [b, hq, sq], fp32, packed
 * hq must be a multiple of hkv (GQA, MQA): query head h reads key/value head h / (hq / hkv).
 *
 * Masks: key j is visible to query i when   -left <= j - (i + off) <= right,   left, right >= 0, or -1 for unbounded.
 * off = sk - sq (bottom-right, default), 0 (top-left), or a value of yours (a shard of a longer sequence).
 * A row that sees no key gives O = 0 and LSE = -inf. NaN or Inf in keys that no row may see never reaches O.
 *
 * Merging (op = FA_MERGE): partial results (O_i, LSE_i) of disjoint sets of keys become the result over all of them:
 *     m = max LSE_i    w_i = exp(LSE_i - m)    O = sum w_i O_i / sum w_i    LSE = m + log(sum w_i)
 * A part with LSE_i = -inf saw no key: it adds nothing, whatever its O_i holds. No part at all, or all of them so: O = 0, LSE = -inf. A row
 * with an LSE_i of NaN or +inf gives NaN. Sums are in fp32, in an order that depends on nothing but the kernel.
 *
 * Backward (op = FA_BACKWARD): the gradients of a scalar whose gradients dO [b, sq, hq, dv], and dLSE [b, hq, sq] or none, are given:
 *     P = min(1, exp(scale * Q K^T - LSE))    D = rowsum(dO * O) - dLSE    dS = P * (dO V^T - D)
 *     dV = P^T dO    dQ = scale * dS K    dK = scale * dS^T Q
 * O and LSE are those of FA_FORWARD on the same Q, K, V, mask and scale, which saves nothing else. grad_q, grad_k and grad_v
 * have the shapes of Q, K and V: with GQA grad_k and grad_v are sums over the query heads of a group. P and dS are rounded to 16 bits where
 * the inputs are; all else is fp32. Every element is written: exactly 0 for a query that sees no key (LSE = -inf) and for a key that no
 * query sees. NaN or Inf in keys that no query may see reaches no gradient. With sq = 0 the gradients of the keys are 0, with sk = 0 those
 * of the queries. With lengths, rows past them are neither read nor written.
 * LSE in fp32 is known to half a unit in its last place, so that P is off by a factor of up to exp(ulp(LSE) / 2); with its conversion to
 * base 2 inside the kernels up to exp(|LSE| 2^-23), beside what fp32 sums of scores lose. That is 0.1 % at |LSE| = 8192. Where LSE is so
 * large that it cannot hold the logarithm of a sum, from some 2^22 on, gradients are finite, and no better. A row whose LSE is NaN or +inf
 * has gradients of NaN.
 *
 * NaN, infinities and overflow (docs/numerics.md): a row that sees a key has no LSE of -inf, whatever its scores. Scores that pass what
 * fp32 holds give NaN or infinities in O and LSE of their row. Forward: NaN and infinities in Q stay with their row, those in K and V with
 * rows that may see the key: O of these is NaN or infinite, of V in that column, whatever the key's weight. Backward: from Q, K, dO and LSE
 * they may reach every gradient of the same sequence and key/value head, from V, O and dLSE its grad_q and grad_k; never another sequence
 * or head.
 *
 * Dropout (dropout > 0): each weight of P is dropped with that probability, rounded to a multiple of 2^-15 that is at most 1 - 2^-15, and
 * the others are divided by 1 less what it was rounded to:
 *     O = (Z * P / (1 - dropout)) V    dV = (Z * P / (1 - dropout))^T dO    dS = P * (Z * dO V^T / (1 - dropout) - D)    Z: 0 or 1
 * LSE and D are as without. Z is a function of rng, the sequence's index in the batch, the query head, the query and the key, both counted
 * in their sequence, and of nothing else: the same in forward and backward, for any kernel, chip, mask, strides, lengths, pages and heads
 * of K and V. Z = 1 where bits >= dropout * 2^15, rounded: 15 bits for query i and key j, the lowest of half j % 2 (0: the lower) of word
 * i / 8 % 2 * 2 + j / 8 % 2 of the four that Philox4x32-7 (Salmon et al. 2011) makes of
 *     key {seed lo, seed hi ^ offset hi}    counter {offset lo, b * hq + h, i / 16 * 8 + i % 8, (j / 16 * 8 + j % 8) / 2}
 * Each forward launch is given another offset, and its backward launch the same one. With dropout = 0 rng is not looked at, and kernels are
 * those without. dropout is no part of a problem: one kernel serves every probability.
 *
 * Serving (docs/serving.md): lengths and pages are arrays in device memory, which each launch and each replay of a graph reads again.
 *     lengths   of sequence i: cu_seqlens, seqlens, or both; sq and sk are the most that any sequence has, in any replay
 *     pages     key j of sequence i is token j % page_size of page page_table[i * page_table_stride + j / page_size]
 * off = sk - sq is that of each sequence's own lengths. A sequence without keys gives O = 0 and LSE = -inf. Rows past a query length are
 * not written. Entries of the table, and rows of K and V, that no row sees are not read. Kernels clamp what they find; the option
 * check_device_data has launches refuse it.
 *
 * Errors: every call returns an fa_status; fa_last_error() tells what was wrong with which field, per thread.
 * Structs: the first member is the struct's size; set it with the INIT macro. Zero always means "default". A size beyond 4096, which no
 * struct of any version has, is FA_INVALID, and nothing is read by it.
 * Versions: a program that was compiled against this header, or is linked with libfagen.so.0, runs unchanged with every later library of
 * that name: structs grow at their end alone, 0 in a new field is as before, numbers stay. So do its bundles and its cache.
 * Threads: one fa_context may be used from many threads at once. Functions say so where they differ.
 * fork(): a context belongs to the process that made it. In a child every call with it is FA_INVALID, and fa_destroy() does nothing. A
 * child may make a context of its own on the simulator; on a GPU only where it was forked before its parent's first fa_create(), since CUDA
 * itself does not survive fork(): FA_NO_DRIVER otherwise. A child of a process whose other threads were inside fagen may do nothing but
 * exec. The thread that compiles for FA_MISS_NEAREST is such a thread while it does. Files: where the process has a file-size limit, it is
 * a full disk to the library, which raises no SIGXFSZ. Signals: while NVRTC compiles it has handlers of its own for SIGINT and SIGTERM,
 * which end the process with exit code 4. Where that matters, block both in every thread and fetch them with sigwait(), as the command
 * does, or prepare kernels beforehand.
 */
#ifndef FAGEN_H
#define FAGEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FA_API __attribute__((visibility("default")))
#else
#define FA_API
#endif

/* The null pointer of the INIT macros, without a warning in either language. */
#ifdef __cplusplus
#define FA_NULL nullptr
#else
#define FA_NULL NULL
#endif

#define FA_VERSION_MAJOR 0
#define FA_VERSION_MINOR 1
#define FA_VERSION_PATCH 0

typedef enum fa_status {
    FA_OK = 0,
    FA_INVALID = -1,     /* an argument is wrong: the message names the field, its value and what is accepted */
    FA_UNSUPPORTED = -2, /* well-formed, but no kernel family computes it */
    FA_NO_DRIVER = -3,   /* libcuda.so.1 or a device is missing */
    FA_NO_NVRTC = -4,    /* libnvrtc is missing or too old (12.4 is the oldest accepted) */
    FA_COMPILE = -5,     /* NVRTC refused the kernel; the message holds its first errors */
    FA_DEVICE = -6,      /* the driver reported an error */
    FA_NO_FIT = -7,      /* no tile fits the shared-memory or register budget; the message names the smallest that would */
    FA_NO_KERNEL = -8,   /* no bundle has one, or none is prepared, and compiling was ruled out; of a tuning: no candidate ran */
    FA_IO = -9,          /* a file named by the caller could not be read or written (cache trouble is never an error) */
    FA_NOMEM = -10,      /* host or device memory ran out */
    FA_INTERNAL = -11,   /* a defect of fagen: please report it */
    FA_CAPTURE = -12,    /* the kernel is not prepared and the stream is being captured */
    FA_TEMPLATE = -13,   /* a template or its .lua failed; the message has file, line and text */
    FA_WRONG = -14,      /* verification failed */
    FA_INTERRUPTED = -15 /* stopped by the caller; partial results were kept */
} fa_status;

typedef enum fa_dtype {
    FA_F16 = 1,  /* IEEE half, fp32 accumulation */
    FA_BF16 = 2, /* bfloat16, fp32 accumulation */
    FA_TF32 = 3, /* fp32 in memory, multiplied as TF32 on the matrix units */
    FA_F32 = 4,  /* fp32 in memory, multiplied as fp32 on the FMA units */
    /* Of Q, K and V, FA_FORWARD on sm_90a, or as those below; docs/lowbits.md has all to the bit: */
    FA_E4M3 = 5, /* 8-bit floating point, 4 bits of exponent, no infinity */
    FA_E5M2 = 6, /* 8-bit floating point, 5 bits of exponent */
    /* Of K and V alone, kv_dtype and v_dtype, and the first of Q and K beside V of 16 bits, dtype and v_dtype: */
    FA_S8 = 7,      /* integers of 8 bits */
    FA_Q8_0 = 8,    /* ggml's blocks of 32: a scale in fp16, integers of 8 bits */
    FA_Q4_0 = 9,    /* ggml's blocks of 32: a scale in fp16, integers of 4 bits */
    FA_Q4_1 = 10,   /* the same with a number that is added */
    FA_Q5_0 = 11,   /* ggml's blocks of 32: a scale in fp16, integers of 5 bits */
    FA_Q5_1 = 12,   /* the same with a number that is added */
    FA_IQ4_NL = 13, /* ggml's blocks of 32: a scale in fp16, 4 bits that number a table */
    FA_NVFP4 = 14   /* ggml's blocks of 64: scales in e4m3 of 16 elements each, 4-bit floating point */
} fa_dtype;

typedef enum fa_mask {
    FA_MASK_NONE = 0,   /* every key is visible */
    FA_MASK_CAUSAL = 1, /* left unbounded, right = 0 */
    FA_MASK_WINDOW = 2  /* window_left and window_right */
} fa_mask;

/* What fa_launch() computes. */
typedef enum fa_op {
    FA_FORWARD = 0,  /* O, and LSE where asked for */
    FA_BACKWARD = 1, /* gradients of Q, K and V */
    FA_MERGE = 2,    /* partial O and LSE of disjoint keys into one */
    FA_APPEND = 3    /* new keys and values into a cache, rotated; queries rotated beside them */
} fa_op;

/* Bits of fa_problem.features. FA_FORWARD takes all but FA_FEATURE_DETERMINISTIC. FA_BACKWARD takes that one, lengths, dropout and strides
 * of lse; others are FA_UNSUPPORTED, as are FA_FEATURE_BATCH_INVARIANT and FA_FEATURE_DROPOUT together. */
typedef enum fa_feature {
    FA_FEATURE_LENGTHS = 1,         /* lengths of sequences in device memory */
    FA_FEATURE_PAGES = 2,           /* K and V in pages; with FA_FEATURE_LENGTHS, and page set */
    FA_FEATURE_BATCH_INVARIANT = 4, /* the bits of a sequence do not depend on the others of the batch; see FA_BATCH_INVARIANT */
    FA_FEATURE_DETERMINISTIC = 8,   /* gradients are summed in one order; see FA_DETERMINISTIC */
    FA_FEATURE_DROPOUT = 16,        /* some weights are dropped; see Dropout above. The probability is none of the problem's */
    FA_FEATURE_LSE_STRIDES = 32,    /* lse lies in another order than packed */
    FA_FEATURE_NO_WORKSPACE = 64,   /* dense: by kernels that need no workspace. With the option FA_WORKSPACE_CALLER fa_launch() takes such
                                       a one where the fastest needs a workspace and args.workspace is NULL, and fa_prepare() of a problem
                                       without the bit prepares both. Without the option no launch is of that class */
    FA_FEATURE_SCORE = 128,         /* FA_FORWARD: a score program, of score_id */
    FA_FEATURE_V_IN_K = 1024,       /* FA_FORWARD: V is the first dv columns of K; see FA_V_IN_K */
    FA_FEATURE_V_COLUMNS = 2048,    /* FA_FORWARD of 8 bits, dense: V is column-major; see FA_V_COLUMNS */
    /* Named here, and refused by this version (FA_UNSUPPORTED): */
    FA_FEATURE_ORIGINS = 256,    /* positions in a whole that other launches have parts of */
    FA_FEATURE_ACCUMULATE = 512, /* FA_FORWARD: O and LSE are joined with what is there */
    /* FA_APPEND, beside FA_FEATURE_LENGTHS and FA_FEATURE_PAGES: */
    FA_FEATURE_SLOTS = 4096,         /* rows go to slots, and page is set */
    FA_FEATURE_POSITIONS = 8192,     /* positions are given */
    FA_FEATURE_POSITIONS64 = 16384,  /* and have 8 bytes each */
    FA_FEATURE_ROTARY_PAIRS = 32768, /* FA_ROTARY_PAIRS */
    FA_FEATURE_HADAMARD_K = 65536,   /* of append_flags */
    FA_FEATURE_HADAMARD_V = 131072,
    FA_FEATURE_ROTARY = 262144, /* K and Q are rotated; goes with rotary_dim, which sets it */
    /* FA_FORWARD, dense, beside FA_FEATURE_SCORE, at most one: where arrays lie of which each query and key have a number, or the byte of
       a mask. Without: rows, heads and sequences begin at multiples of 16 bytes, keys side by side. */
    FA_FEATURE_SCORE_ANYWHERE = 524288, /* one that lies in any other way */
    FA_FEATURE_SCORE_COLUMNS = 1048576  /* queries lie side by side: those of 16 bits are transposed */
} fa_feature;

typedef enum fa_diagonal {
    FA_BOTTOM_RIGHT = 0, /* off = sk - sq: the last query sees the last key */
    FA_TOP_LEFT = 1,     /* off = 0 */
    FA_OFFSET = 2        /* off = the field `offset` */
} fa_diagonal;

typedef enum fa_flag {                   /* fa_args.flags: any that the operation takes, or-ed together; the others are FA_UNSUPPORTED */
                       FA_BROADCAST = 1, /* a stride of 0 is meant: each index along that dimension of an input is the same element; of
                                            page_table: all sequences have one row */
                       FA_BATCH_INVARIANT = 2, /* the bits of a sequence do not depend on what else is in the batch; see below */
                       FA_DETERMINISTIC = 4,   /* backward: gradients are summed in one order; see below */
                       FA_ACCUMULATE = 8 /* backward: fp32 gradients are added to what the tensors hold; forward: refused by this version */
} fa_flag;
/* FA_BATCH_INVARIANT, of FA_FORWARD: the bits of a sequence's O and LSE do not depend on what else is in the batch, on b, on the maxima sq
 * and sk beside lengths, on where the sequence lies, or on pages. The kernel follows from the class, the heads and, of a dense batch, from
 * sq and sk: all launches of the class share one workspace size. Where keys are cut follows from the sequence's own lengths. Alignment,
 * page and mask are part of the class.
 * FA_DETERMINISTIC, of FA_BACKWARD: equal arguments give equal bits, on a chip of any number of SMs. Without it a kernel may add in the
 * order in which its blocks finish.
 * FA_ACCUMULATE, of FA_BACKWARD: the gradients are added to what grad_q, grad_k and grad_v hold. Their type is fp32 then. */

/* What is asked. The first group selects the kernel that is compiled; the second, the shape, only chooses which tuned
 * config runs, and may be left 0 ("typical"). Plain data: compare and copy by value. */
typedef struct fa_problem {
    uint32_t size;      /* sizeof(fa_problem): FA_PROBLEM_INIT sets it */
    int32_t dtype;      /* fa_dtype of Q, K, V, of a backward no TF32; of a merge, which has no TF32: of the parts */
    int32_t d;          /* head_dim of Q and K, 1..576; of a merge: as dv */
    int32_t dv;         /* head_dim of V and O, 1..576; 0 = d */
    int32_t mask;       /* fa_mask */
    int32_t o_dtype;    /* fa_dtype of O and dO: 0 = as the input, or FA_F32; of a merge of fp32 parts also FA_F16,
                           FA_BF16. Beside 8 bits: 0 = FA_BF16, FA_F16, FA_F32, FA_E4M3 */
    int32_t align;      /* bytes: 16, 8, 4 or 2; every row of Q, K, V, O starts at a multiple of it; 0 = the most that d allows */
    int32_t b;          /* batch */
    int32_t hq;         /* query heads */
    int32_t hkv;        /* key/value heads; divides hq */
    int32_t sq;         /* query length */
    int32_t sk;         /* key length */
    int32_t op;         /* fa_op; compiled in, as are the next two */
    int32_t features;   /* fa_feature, or-ed */
    int32_t page;       /* pages: the largest power of two, at most 128, that divides their tokens; else 0 */
    int32_t window;     /* shape, FA_MASK_WINDOW: keys that a row sees beside its own; 0 = typical, 1024 */
    int32_t grad_dtype; /* FA_BACKWARD: fa_dtype of gradients, compiled in; 0 = as the input, or FA_F32 */
    /* fa_dtype of K and V, of FA_APPEND of their cache, compiled in, as are the next: FA_E4M3 to FA_NVFP4 beside 16-bit Q; 0 = as Q, or as
     * what is appended. */
    int32_t kv_dtype;
    int32_t q_dtype; /* fa_dtype of Q where it is not dtype: FA_F32 over K and V of few bits; else FA_UNSUPPORTED */
    int32_t v_dtype; /* of V where it is not kv_dtype; beside Q and K of 8 bits FA_F16 or FA_BF16, one of which FA_S8 asks for */
    int32_t q_scale_by, k_scale_by, v_scale_by,
        o_scale_by; /* fa_scale_by of scales that are there, else 0; of Q beside 8 bits alone, of O in FA_E4M3. Of Q and K in FA_S8
                       FA_SCALE_FOLDED, or of each row FA_SCALE_TOKEN */
    int32_t score_id0, score_id1, score_id2, score_id3; /* of a score program: the words of fa_score_id() */
    int32_t score_grads;                                /* FA_BACKWARD: a bit for each operand of the program whose gradient is asked for */
    int32_t rotary_dim, cos_sin_dtype;                  /* FA_APPEND: as in fa_args */
    int32_t k_scale_out_by, v_scale_out_by;             /* FA_APPEND: FA_SCALE_TOKEN where scales are found, else 0 */
    /* FA_FORWARD over K or V in blocks, FA_Q8_0 to FA_NVFP4: bytes that every row of K and V starts at a multiple of, where that is less
     * than align, which is of Q and O then; 0 = align, or the most that d and dv allow. */
    int32_t kv_align;
} fa_problem;
#define FA_PROBLEM_INIT                                                                                                       \
    {                                                                                                                         \
        sizeof(fa_problem), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* One tensor: the address of element [0,0,0,0] and the strides, in elements, of batch, sequence and head. All three 0
 * means packed [b, s, h, d], whatever the flags. Otherwise each dimension longer than 1 needs its stride: it may be negative, and with
 * the flag FA_BROADCAST 0 in inputs. Without the flag 0 is refused (FA_INVALID), since a stride that was left out would broadcast.
 * In outputs it is always refused. The stride of a dimension of length 1 is ignored, and all strides of a tensor without elements.
 * On chips with TMA the fastest kernels need addresses and strides at multiples of 16 bytes, and strides above 0 and below 2^40
 * bytes. Other tensors run the kernel of align 8 or less; fa_explain() names the tensor and the stride that decided it, and both times
 * where that costs half as much again. Where it costs three times as much or more, the log warns, once for each class. So it is with pages
 * of other sizes than multiples of 16, and with strides of lse. */
typedef struct fa_tensor {
    void *ptr;  /* device address */
    int64_t sb; /* stride of the batch index */
    int64_t ss; /* stride of the sequence index */
    int64_t sh; /* stride of the head index */
} fa_tensor;

#define FA_TENSOR_INIT   \
    {                    \
        FA_NULL, 0, 0, 0 \
    }

/* Score programs: a few lines of Lua that say what becomes of a score, which keys a query sees, and what a row's sum has beside them:
 *     cap = scalar(50)
 *     function score(s, b, h, i, j) return cap * tanh(s / cap) end
 * fa_score_create() reads one, see there and docs/scores.md. The score comes after scale and before the masks. A key is seen where the mask
 * of the launch and that of the program leave it, and what the score of another is, NaN too, is not looked at. A sink is one more score of
 * the row, of a key whose value is 0: it is in LSE. A row that sees no key has O = 0 and its sink as LSE, or -inf; where the program has a
 * mask, so has a row whose scores are all -inf. FA_BACKWARD takes the program and values of the forward launch; an operand's gradient is
 * written to its grad_ptr, the same bits each time. */
typedef struct fa_score fa_score;

/* What a launch gives for one operand of its program. */
typedef struct fa_score_value {
    uint32_t size;          /* sizeof(fa_score_value): FA_SCORE_VALUE_INIT sets it */
    int32_t reserved;       /* 0 */
    const void *ptr;        /* an array: device address of its elements; a scalar: NULL */
    int32_t extent[4];      /* of each index, as the shape comes to; 0 where there is none */
    int64_t stride[4];      /* elements, of bits words of 32; all 0 = packed; else 0 = each index reads the same elements */
    double scalar;          /* the number */
    void *grad_ptr;         /* FA_BACKWARD: where the operand's gradient is written to, fp32, device memory; NULL: not asked for */
    int64_t grad_stride[4]; /* all 0 = packed */
} fa_score_value;
#define FA_SCORE_VALUE_INIT                                                             \
    {                                                                                   \
        sizeof(fa_score_value), 0, FA_NULL, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, 0, FA_NULL, \
        {                                                                               \
            0, 0, 0, 0                                                                  \
        }                                                                               \
    }

/* What an operand is: a scalar, or the elements of an array. */
typedef enum fa_operand_kind {
    FA_OPERAND_NUMBER = 0,
    FA_OPERAND_INTEGER = 1,
    FA_OPERAND_F32 = 2,
    FA_OPERAND_BF16 = 3,
    FA_OPERAND_F16 = 4,
    FA_OPERAND_I32 = 5,
    FA_OPERAND_I64 = 6,
    FA_OPERAND_U8 = 7,
    FA_OPERAND_BITS = 8 /* 32 truths of the last index in a word, the lowest bit first */
} fa_operand_kind;
typedef struct fa_score_operand_info {
    uint32_t size;             /* sizeof(fa_score_operand_info) */
    int32_t kind;              /* fa_operand_kind */
    int32_t rank;              /* of an array: indices, 1 to 4 */
    int32_t count;             /* of the program's operands */
    const char *name;          /* in the text; valid until fa_destroy() */
    const char *shape;         /* of an array: "b hq sq sk" */
    double value, least, most; /* of a scalar: where a launch gives none; what it may be */
} fa_score_operand_info;

/* Numbers that elements of a tensor are multiplied by when they are read. */
typedef enum fa_scale_by {
    FA_SCALE_FOLDED = 1, /* one of the tensor, a sequence or a head of it, by strides */
    FA_SCALE_TOKEN = 2,  /* of each row of a head */
    FA_SCALE_BLOCK = 3,  /* of `block` elements of a row: refused by this version */
    FA_SCALE_CHANNEL = 4 /* one of each column, of the tensor, a sequence or a head of it: ss goes from one column to the next. FA_FORWARD
                            over K and V of few bits */
} fa_scale_by;
typedef struct fa_scale {
    const void *ptr;        /* device address; NULL = 1, and the other fields are 0 */
    const void *outer;      /* a second one of the tensor, fp32, that multiplies these (nvfp4); NULL = 1 */
    int32_t dtype, by;      /* fa_dtype; fa_scale_by */
    int32_t block;          /* FA_SCALE_BLOCK: elements; else 0 */
    int32_t reserved;       /* 0 */
    int64_t sb, ss, sh, sc; /* strides, elements: of the batch or page, the token or channel, the head (of K and V a KV head), the block */
} fa_scale;
#define FA_SCALE_INIT                            \
    {                                            \
        FA_NULL, FA_NULL, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* fa_args.layout_flags, or-ed together. */
typedef enum fa_layout_flag {
    FA_V_COLUMNS = 1, /* FA_FORWARD of 8 bits, dense: V is [b, hkv, dv, s] by its strides: the sequence has unit stride, ss is that of dv */
    FA_V_IN_K = 2     /* FA_FORWARD: V is the first dv elements of K's rows, dv <= d: one read serves both, as in decoding with a
                         compressed cache (MLA: d = 576, dv = 512, hkv = 1). v is k, address and strides, or all 0; of K and V in
                         Q's type. What a hidden key's row holds does not reach O, as ever */
} fa_layout_flag;

/* FA_APPEND: which elements of a row are rotated together. */
typedef enum fa_rotary_style {
    FA_ROTARY_HALVES = 0, /* i and i + rotary_dim / 2, as GPT-NeoX and Llama have it */
    FA_ROTARY_PAIRS = 1   /* 2 i and 2 i + 1, as GPT-J has it */
} fa_rotary_style;

/* fa_args.append_flags, or-ed together. */
typedef enum fa_append_flag {
    FA_HADAMARD_K = 1, /* rows of K and of Q are transformed after they are rotated; Q K^T stays what it is */
    FA_HADAMARD_V = 2  /* rows of V are transformed: so are those of O, which the caller transforms back */
} fa_append_flag;

/* One launch.
 *
 * Overlap. An output shares no byte with an input, another output or the workspace. What lies in the gaps of another's strides is apart:
 * dQ, dK and dV as slices of one [b, s, 3, h, d], or O as a slot beside Q, K and V. Inputs may overlap. This is decided exactly; only
 * strides without a common pattern, which a bounded search does not tell apart, count as an overlap.
 *
 * Nothing to do. sq, sk or b = 0 say that a batch is empty; what is wrong with other fields is still FA_INVALID. A tensor without elements
 * may be NULL. total_q, total_k and pages are 0 beside their arrays only where the batch is empty on that side. */
typedef struct fa_args {
    uint32_t size;        /* sizeof(fa_args): FA_ARGS_INIT sets it */
    int32_t dtype;        /* fa_dtype of Q, K, V; FA_MERGE: of part */
    int32_t o_dtype;      /* 0 = as the input, or FA_F32; FA_MERGE of fp32 parts: FA_F16, FA_BF16 too; beside 8 bits 0 = FA_BF16,
                             FA_F16, FA_F32, FA_E4M3 */
    int32_t d, dv;        /* head_dim of Q and K; of V and O (0 = d) */
    int32_t b, hq, hkv;   /* batch, query heads, key/value heads */
    int32_t sq, sk;       /* query length, key length; 0 is legal: nothing to do, or rows that see no key */
    int32_t mask;         /* fa_mask */
    int32_t window_left;  /* FA_MASK_WINDOW: >= 0, or -1 for unbounded; else ignored */
    int32_t window_right; /* likewise */
    int32_t diagonal;     /* fa_diagonal: where the mask's diagonal lies; FA_MASK_NONE ignores it */
    int32_t offset;       /* FA_OFFSET: off, any sign */
    float scale; /* above 0, up to 2.358e38: its product with log2(e) is a number of fp32; 0 = 1/sqrt(d), so that no 0 can be meant.
                    For a negative one negate Q or K: kernels look for the largest Q K^T before they multiply by it */
    fa_tensor q, k, v, o; /* outputs share no byte with anything, see above; of a merge: see parts. FA_BACKWARD reads o */
    float *lse;           /* device address of [b, hq, sq] fp32, or NULL; FA_BACKWARD reads it, and NULL is refused */
    void *workspace;      /* device memory of fa_workspace_size() bytes, 256-byte aligned; NULL: none is needed, or the context lends one */
    size_t workspace_size; /* bytes at workspace: no tensor has one of them, however many the kernel takes */
    int32_t op;            /* fa_op */
    uint32_t flags;        /* fa_flag */

    /* From here on a field that the operation does not read must be 0: else FA_INVALID with its name, or FA_UNSUPPORTED where no operation
     * of this version reads it. */

    /* Packed sequences, device memory [b + 1]: sequence i has the rows cu_seqlens[i] ... cu_seqlens[i + 1] - 1; sq and sk are maxima then,
     * and the tensor's sb is ignored. Equal neighbours are a sequence without rows. */
    const int32_t *cu_seqlens_q, *cu_seqlens_k;
    /* Rows in use of padded sequences, or of pages, device memory [b]; beside cu_seqlens they allow gaps. sq and sk are maxima then. */
    const int32_t *seqlens_q, *seqlens_k;
    int32_t total_q, total_k; /* packed: rows allocated, from 1 */
    /* Pages of K and V: page_table, device memory [b, n], names the pages of each sequence in order. k and v: sb = stride of a page, ss of
     * a token, sh of a head. Needs seqlens_k, excludes cu_seqlens_k. Page numbers outside [0, pages) read as zeros; those of pages without
     * a key that some row sees are not read. */
    const int32_t *page_table;
    int64_t page_table_stride;      /* elements between two sequences' rows of the table: ceil(sk / page_size) or more, so that it may be
                                       columns of a wider one; the last row ends with its last entry. 0 = ceil(sk / page_size); with
                                       FA_BROADCAST 0 = one row that all sequences share */
    int32_t page_size, pages;       /* tokens of a page, any number from 1; pages allocated, from 1 */
    int64_t lse_sb, lse_sh, lse_ss; /* strides of lse, elements; all 0 = [b, hq, sq] packed, of packed sequences [hq, total_q] */
    /* FA_MERGE reads these, b, hq, sq, d or dv, the types, o, lse and its strides; mask is 0, and nothing is read that is said of Q, K or
     * V. Part i, from 0 to parts - 1, is [b, sq, hq, dv] with the strides of `part`, i * part_stride elements after part.ptr, and [b, hq,
     * sq] packed, i * part_lse_stride after part_lse. With a stride of 0 the packed parts lie one after the other. Rows of different parts
     * share no bytes. o may take the place of one part, with its address, type and strides, and a packed lse that of one part_lse; any
     * other overlap is refused. Rows whose LSE is -inf may be read. */
    int32_t parts;      /* 0 to 2^20; 0 is legal: O = 0, LSE = -inf */
    int32_t grad_dtype; /* FA_BACKWARD: fa_dtype of grad_q, grad_k, grad_v; 0 = as the input, or FA_F32 */
    fa_tensor part;
    int64_t part_stride;
    const float *part_lse;
    int64_t part_lse_stride;
    fa_tensor grad_o, grad_q, grad_k, grad_v; /* FA_BACKWARD: dO in o_dtype; dQ, dK, dV in grad_dtype: any strides, shapes of O, Q, K, V */
    const float *grad_lse;                    /* FA_BACKWARD: dLSE, with the shape and the strides of lse, or NULL: all 0 */
    const uint64_t *rng;                      /* with dropout > 0: device memory {seed, offset}, which each launch and replay reads */
    float dropout;                            /* FA_FORWARD, FA_BACKWARD: probability of a weight to be dropped, 0 to below 1 */
    int32_t kv_dtype;                         /* fa_dtype of K and V, of FA_APPEND of the cache; 0 = as Q. docs/lowbits.md */

    /* FA_FORWARD: a score program of this context, NULL: none, and what its operands are, in the order of the text. What comes after the
     * last that is given are scalars with the values of the text. Contents are compared from launch to launch: they may change in place. */
    const fa_score *score;
    const fa_score_value *score_values;
    int32_t score_value_count; /* at most 8 */
    /* From here to key_begins no operation of this version reads a field but v_dtype, k_scale and v_scale, which FA_FORWARD and FA_APPEND
     * do, and layout_flags, q_dtype (0 or dtype) and beside 8 bits q_scale and, of O in FA_E4M3, o_scale, which FA_FORWARD does: other
     * than 0 is FA_UNSUPPORTED with its name. */
    int32_t q_dtype, v_dtype; /* fa_dtype of Q where it is not dtype, which is that of the products; of V where it is not kv_dtype */
    int32_t layout_flags;     /* fa_layout_flag */
    fa_scale q_scale, k_scale, v_scale, o_scale; /* K and V are their numbers times these; O is divided by o_scale when it is written */
    /* Where the launch's first query, key, query head and sequence lie in a whole that others have parts of: masks, dropout and programs
     * take positions in the whole, memory local indices. heads: query heads of the whole. Multiples of 16 beside dropout. */
    int64_t row_origin, key_origin;
    int32_t head_origin, heads, batch_origin;
    /* A cache that is dealt over key_ranks ranks in blocks of key_block keys: key j of this one is, of all keys,
     * (j / key_block * key_ranks + key_rank) * key_block + j % key_block. */
    int32_t key_block, key_ranks, key_rank;
    const int64_t *row_origins, *key_origins; /* device memory [b]: of each segment, in the place of the two above */
    const int32_t *key_begins;                /* device memory [b]: the first key of each segment, so that segments share keys */
    /* FA_APPEND (docs/serving.md) reads these, b, hq, hkv, sq, sk, d, dv, the types, q, k, v, lengths and pages; mask is 0. new_k and new_v
     * are [b, sq, hkv, d] and [.., dv], q and q_out [b, sq, hq, d] or both NULL, all of dtype, packed by cu_seqlens_q like any queries. k
     * and v are the cache, of kv_dtype and v_dtype, and are written. new_k and q are rotated by cos_sin, and transformed where append_flags
     * say so. New row i of a sequence that has n of them, and length keys when they are in, becomes its key length - n + i; with slots
     * token slot % page_size of page slot / page_size. A token is skipped, and counted, whose slot is negative or beyond the cache, whose
     * key is negative, whose page is none, or whose position has no row of cos_sin; a row of q_out without such a position is NaN. Of two
     * tokens for one slot the later stays. Pages must not be one sequence's and another's where both append. */
    fa_tensor new_k, new_v, q_out;
    const int64_t *slots;              /* device memory [tokens], of each row of new_k: k and v are [pages, page_size, hkv, d] then; NULL:
                                          by page_table and seqlens_k, or by lengths alone */
    const void *positions;             /* device memory [tokens], integers of position_bytes; NULL: length - n + i */
    const void *cos_sin;               /* device memory [rotary_positions, rotary_dim]: cosines, then sines; NULL: nothing is rotated */
    uint64_t *skipped;                 /* device memory: tokens that were skipped are added to it; or NULL */
    fa_scale k_scale_out, v_scale_out; /* FA_SCALE_TOKEN: where the scale of each row is written that is found for it, fp32, by strides of
                                          the cache's batch or page, token and head; in the place of k_scale, v_scale */
    int32_t cos_sin_dtype;             /* fa_dtype of cos_sin: FA_F32, FA_F16, FA_BF16 */
    int32_t rotary_dim, rotary_style;  /* the first so many elements are rotated, even, up to d; fa_rotary_style */
    int32_t position_bytes;            /* 4 or 8 */
    int32_t append_flags;              /* fa_append_flag */
    int32_t rotary_positions;          /* rows of cos_sin */
} fa_args;
#define FA_ARGS_INIT                                                                                                                       \
    {                                                                                                                                      \
        sizeof(fa_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, FA_TENSOR_INIT, FA_TENSOR_INIT, FA_TENSOR_INIT, FA_TENSOR_INIT,      \
            FA_NULL, FA_NULL, 0, 0, 0, FA_NULL, FA_NULL, FA_NULL, FA_NULL, 0, 0, FA_NULL, 0, 0, 0, 0, 0, 0, 0, 0, FA_TENSOR_INIT, 0,       \
            FA_NULL, 0, FA_TENSOR_INIT, FA_TENSOR_INIT, FA_TENSOR_INIT, FA_TENSOR_INIT, FA_NULL, FA_NULL, 0, 0, FA_NULL, FA_NULL, 0, 0, 0, \
            0, FA_SCALE_INIT, FA_SCALE_INIT, FA_SCALE_INIT, FA_SCALE_INIT, 0, 0, 0, 0, 0, 0, 0, 0, FA_NULL, FA_NULL, FA_NULL,              \
            FA_TENSOR_INIT, FA_TENSOR_INIT, FA_TENSOR_INIT, FA_NULL, FA_NULL, FA_NULL, FA_NULL, FA_SCALE_INIT, FA_SCALE_INIT, 0, 0, 0, 0,  \
            0, 0                                                                                                                           \
    }

typedef struct fa_context fa_context;  /* device, compiler, cache and the table of prepared kernels */
typedef struct CUstream_st *fa_stream; /* = CUstream and cudaStream_t; NULL is the legacy default stream */

typedef enum fa_log_level { FA_LOG_ERROR = 0, FA_LOG_WARN = 1, FA_LOG_INFO = 2, FA_LOG_DEBUG = 3 } fa_log_level;
typedef void (*fa_log_fn)(void *user, int level, const char *message); /* called from any thread; must not call fagen */

/* Bundles: kernels that were compiled beforehand, in a C file that `fagen emit --bundle` writes. A context that is given one launches its
 * kernels without NVRTC, without templates and without a disk cache.
 *
 * A program needs nothing but the name of what the file defines, and links the file:
 *
 *     extern const fa_bundle attention;
 *     const fa_bundle *const bundles[] = { &attention, NULL };
 *     options.bundles = bundles;
 *
 * Which kernel runs: a bundle's of the very arch and problem class comes before records, shipped winners and the model; of several
 * lengths the nearest. Where there is none, the kernel is chosen and compiled as without bundles. Where that is ruled out, by bundle_only
 * or because there is no NVRTC, any kernel of a bundle runs that can: one for rows that start at multiples of less, one that was
 * compiled for an older chip of the same major version, PTX of an older chip, which the driver compiles. fa_explain() tells.
 *
 * A bundle is bytes: a head with a format number, the size and checksums; tables of the problems, the images (cubins and PTX) and how each
 * is launched; the images. It holds no pointers, and numbers are little-endian, as on every host of CUDA. All that a program ever sees of
 * it is an address: what fa_bundle is made of is fagen's own affair.
 *
 * What is checked: fa_create() looks at the head, at the checksum of the tables, and at every number and offset in them. It refuses
 * (FA_INVALID, with bundle, row or image, field, value and what is accepted) a bundle of another format, a damaged one, one with a field
 * that this library does not know, and one whose kernels take other parameters than this library passes. The remedy is to emit it again.
 * An image is held against its checksum when it is first used. A checksum is no signature: whatever made a bundle decides what runs.
 *
 * Formats: this library reads bundles of the format below. In one of an earlier fagen, a field that came later is 0 and means what was
 * before it; one of a later fagen is read as long as it needs nothing that this library does not know. C files of format 1 and 2 defined
 * structs of an older fagen.h: with this one they end in #error, and fa_create() refuses objects that were compiled before.
 *
 * A bundle is read only. It outlives every context that it was given to, and any number of contexts and threads share it.
 *
 * libfagen_launch.a is all of this library that a program needs for bundles: no template, compiler, tuner or disk cache is in it. It
 * has every function below but fa_tune() and those of records, and bundle_only is always 1. */
#define FA_BUNDLE_FORMAT 3
typedef struct fa_bundle fa_bundle;

/* What fa_launch() does on a miss: no kernel is prepared for the shape bucket of the problem. Up to 64 rows of a KV group (sq * hq / hkv) a
 * bucket is a tile, of 1, 2, 8, 16, 32 or 64 rows; beyond, and in sk, half an octave, from 256 to 8192 (gradients: to 32768) a quarter,
 * so that lengths from 960 to 1151 share one; b * hkv alike, each number up to 16, eighths of octaves to 128. Where as many queries as keys
 * without a mask make one or two rounds of tiles on an H100, an eighth, as its longest shape is. With lengths in device memory these are
 * octaves. One shape stands for all of a bucket: what runs follows from class, bucket, chip and what was measured before the
 * miss, never from which launch came first (docs/tuning.md, "What decides"). */
typedef enum fa_on_miss {
    FA_MISS_COMPILE = 0, /* as fa_prepare() in the call: milliseconds to a second; FA_CAPTURE under capture */
    FA_MISS_NEAREST = 1, /* runs the kernel at once that is prepared for the nearest bucket of the class; see below */
    FA_MISS_FAIL = 2     /* FA_NO_KERNEL, under capture too; nothing is compiled or loaded but by fa_prepare() and fa_prepare_range() */
} fa_on_miss;

/* FA_MISS_NEAREST. Every kernel of a class computes all of its shapes; another bucket's is only slower. One thread of the context chooses,
 * compiles and loads the better kernel meanwhile, and later launches of the bucket run that one. It works in the CUDA context that was
 * current at the miss, which is to be kept until fa_destroy(), and takes no signals.
 * - A kernel of the same class serves, and one for rows that start at multiples of less.
 * - Where none is prepared, and for problems with FA_FEATURE_BATCH_INVARIANT, the miss is as with FA_MISS_COMPILE: prepare one length.
 * - Under capture the nearest kernel is launched as well, and is what the graph runs for ever: prepare what is to be captured.
 * - At most 64 buckets wait to be compiled. A launch of one more runs the nearest kernel, and a later launch asks again.
 * - A kernel that cannot be compiled is told to the log and by fa_explain(). The nearest one goes on; only fa_prepare() tries again.
 * - With bundle_only, and in libfagen_launch, nothing is compiled: the thread loads what the bundles have.
 * - The bits of a result may change when the better kernel takes over, as they do from one bucket to the next. Which kernel stands in
 * depends on what was prepared before; fa_explain() says so. */

/* Whose workspace a launch takes that brings none (args.workspace NULL) and whose kernel needs one.
 *
 * FA_WORKSPACE_CONTEXT: the context lends one, so that the same kernel runs, with the same bits, as with a workspace of fa_workspace_size()
 * bytes.
 * - One for each CUDA context and stream (of the per-thread default stream: and thread), and for each capture and stream of it. All
 *   launches of a stream share it. Where two threads launch on one stream at once, each has its own.
 * - The first launch of a stream allocates it, and one that needs more: a miss. Other launches allocate nothing and take no lock. They ask
 *   the driver for the stream's number and whether it is captured. What grows gets at most 64 MiB more than it needs.
 * - Of a stream it is memory of the device's pool, in the stream's order (cuMemAllocAsync): growing waits for nothing, and the old one is
 *   freed after the stream's launches. A device without memory pools waits for the stream there.
 * - Of a capture it is memory beside the graph, which is legal in any mode of capture, and never FA_CAPTURE: the graph gets no memory
 *   nodes, so that it may be cloned, updated, instantiated and be a child as ever. Its address stays in every replay, on any stream. The
 *   context holds it until the graph and all that was made of it are destroyed, and gives it to a later capture then. Two graphs
 *   instantiated from one capture share it, as they share O: they must not run at the same time. Where a capture grows, launches before
 *   keep the smaller one.
 * - Its counters are zeroed when it is allocated, and after a launch that failed.
 * - FA_NOMEM where there are no such bytes: the message names them, nothing is launched, and no slower kernel takes the place.
 * - fa_workspace_held() tells the bytes, fa_workspace_release() frees them, fa_destroy() too. CUDA contexts that it lent in are kept until
 *   then. That of a destroyed stream stays allocated: call fa_workspace_release() before, or for all streams now and then.
 * FA_WORKSPACE_CALLER: the context allocates none. Plain launches of few rows or few tiles run a kernel that needs none: fa_explain() tells
 * its time and that of the kernel which a workspace would bring, and so does the log, at the first such launch or fa_supported() of a
 * class. For all other kernels that need one, a launch without is FA_INVALID. */
typedef enum fa_workspace_source { FA_WORKSPACE_CONTEXT = 0, FA_WORKSPACE_CALLER = 1 } fa_workspace_source;

/* How a context is made. Every pointer may be NULL; strings are copied. */
typedef struct fa_options {
    uint32_t size;                   /* sizeof(fa_options): FA_OPTIONS_INIT sets it */
    const char *device;              /* NULL: FAGEN_DEVICE, else the current CUDA device; "cuda:N"; "sim:sm_80": the CPU simulator */
    const char *cache_dir;           /* NULL: FAGEN_CACHE_DIR, else $XDG_CACHE_HOME/fagen, else ~/.cache/fagen; "" = no disk cache */
    const char *template_dir;        /* NULL: FAGEN_TEMPLATE_DIR, else the templates in the library; overrides file by file */
    const char *nvrtc;               /* NULL: FAGEN_NVRTC, else searched; path of libnvrtc.so */
    fa_log_fn log;                   /* NULL: silent, or standard error where FAGEN_LOG names a level */
    void *log_user;                  /* handed to log */
    int32_t log_level;               /* most verbose level handed to log */
    int32_t sram_budget;             /* shared memory per block a kernel may use, in bytes; 0 = what the chip offers */
    const fa_bundle *const *bundles; /* ends in NULL; not copied: they outlive the context. NULL = none */
    int32_t bundle_only;             /* 1: a problem that no bundle has a kernel for is FA_NO_KERNEL; nothing is rendered or compiled */
    int32_t in_order;                /* 1: a kernel begins when all before it in the stream has ended; 0: see fa_launch() */
    int64_t cache_limit;             /* bytes of kernels kept on disk before the longest unused go; 0 = 4 GiB, -1 = any amount */
    int32_t on_miss;                 /* fa_on_miss */
    /* Whether fa_launch() copies lengths and page numbers back from device memory and refuses bad ones (FA_INVALID, with field, index and
     * value): lengths that are negative or beyond sq, sk or the rows that are there, cu_seqlens that descend or pass total_q or total_k,
     * page numbers outside [0, pages) of keys that some row sees, counters of a workspace that are not 0. 1: always, for debugging: each
     * launch waits for its stream, and is FA_CAPTURE under capture. 0: on the simulator, but for launches that are captured. -1: never.
     * Unchecked, kernels stay inside the memory that the arguments describe: lengths are cut to what there is, and pages that do not exist
     * read as zeros. */
    int32_t check_device_data;
    /* NULL: FAGEN_WORKLOAD, else none; "" = none. A file to which fa_destroy() appends a line of JSON for each class and bucket that
     * fa_launch() ran: the problem that stands for them, how many launches, and their seconds as far as measured or modelled. `fagen tune
     * --workload FILE` tunes these, the most time first. Several processes may share the file. Counting takes a launch a few ns; one that a
     * graph captures counts once. A context that is never destroyed writes nothing, and one that launched nothing neither. A file that
     * cannot be written is a line of the log, never an error. */
    const char *workload;
    int32_t workspace; /* fa_workspace_source: of launches that bring none */
    int32_t reserved;  /* 0 */
    /* NULL: the file fagen-kernels.bundle in the library's folder, where there is one; a path; "" = none. Kernels that ship compiled: what
     * was chosen comes from there where its text and arch are those of an image, else from the disk cache or NVRTC. Nothing is chosen by
     * it. A file of another version, or a damaged one, is a line of the log. */
    const char *shipped;
} fa_options;
#define FA_OPTIONS_INIT                                                                                                                  \
    {                                                                                                                                    \
        sizeof(fa_options), FA_NULL, FA_NULL, FA_NULL, FA_NULL, FA_NULL, FA_NULL, FA_LOG_WARN, 0, FA_NULL, 0, 0, 0, 0, 0, FA_NULL, 0, 0, \
            FA_NULL                                                                                                                      \
    }

/* Makes a context. opt NULL = all defaults. Works in the caller's current CUDA context, else retains the device's primary
 * one; creates and resets none. Errors: FA_INVALID, FA_NO_DRIVER, FA_IO where the folder of templates is none that can be listed.
 * FA_NO_NVRTC is not raised before a kernel must be compiled. *out is NULL on failure. */
FA_API fa_status fa_create(fa_context **out, const fa_options *opt);

/* A bundle out of `size` bytes that are in memory already, such as a mapped file of `fagen emit --bundle --raw`. They may lie at any
 * address, are not copied, and stay as they are for as long as a context has the bundle. Looks at all that fa_create() looks at, at the
 * size, and at the bytes of every image: what is damaged, cut short or too long is FA_INVALID, and *out is NULL. FA_NOMEM. Nothing is
 * allocated that outlives the call, so nothing is to be closed. Thread-safe. Bundles that are linked in need no call. */
FA_API fa_status fa_bundle_open(const fa_bundle **out, const void *bytes, size_t size);

/* Frees everything the context holds. NULL is fine. No launch of it may still be running in another thread's call;
 * kernels already on a stream are waited for by the caller, and graphs that captured launches of it are not launched any more. With
 * FA_MISS_NEAREST it waits for the kernel that is being compiled, and leaves the others; call it before the process ends. */
FA_API void fa_destroy(fa_context *ctx);

/* FA_OK when a kernel family computes the problem on this device; else FA_UNSUPPORTED, FA_INVALID or FA_NO_FIT with the
 * reason. Compiles nothing. With the option FA_WORKSPACE_CALLER the log is told, once for each class, what launches cost that bring no
 * workspace. */
FA_API fa_status fa_supported(fa_context *ctx, const fa_problem *p);

/* Compiles, or loads from the cache, the kernel that fa_launch() would use, and keeps it. Idempotent. Afterwards launches
 * of the same problem and shape bucket are legal under graph capture; strides that TMA cannot take are of the problem with align 8.
 * Some kernels count in device memory, of the CUDA context that is current here: prepare in the one that will launch, and keep it
 * until fa_destroy(). Launches that a graph captured keep 4 bytes of it each, 65,536 at most (FA_CAPTURE); graphs instantiated twice
 * from one capture must not run at the same time. */
FA_API fa_status fa_prepare(fa_context *ctx, const fa_problem *p);

/* Prepares every shape bucket between two problems of one class, so that no launch in between is a miss. b, sq, sk and, with
 * FA_MASK_WINDOW, window go from lo's value to hi's; every other field is the same in both. A field that is 0 in both is unset as in
 * fa_prepare(): then sq and sk go together. *kernels (may be NULL) is how many different kernels that took: buckets share most. At most
 * 16384 buckets in a call, as the product of those of each field (FA_INVALID beyond, whose message tells them): lengths from 1 to 131072
 * are at most 138 of sq and 55 of sk, with FA_FEATURE_LENGTHS 19 and 14. Idempotent. On failure the message names the shape, what was
 * prepared before it stays, and *kernels counts that. */
FA_API fa_status fa_prepare_range(fa_context *ctx, const fa_problem *lo, const fa_problem *hi, int32_t *kernels);

/* The problem that fa_launch() derives from args: the class of kernels that computes it, and its shape, normalized. What fa_prepare() is
 * given it, fa_launch() finds. align and kv_align are what the strides allow, and the addresses where q (or part) has one; align is at
 * most 8 where TMA cannot take them, on chips without TMA too. out->size is that of the header which args->size tells. Thread-safe, needs
 * no context. */
FA_API fa_status fa_problem_of(const fa_args *args, fa_problem *out);

/* Device bytes fa_launch() needs in args.workspace for these args, or lends where that is NULL: 0 for most. Reads shapes only, no device
 * memory. It is that of the kernel which the shape's bucket has: a larger shape may need less, so that a workspace for several is the most
 * of theirs. On a miss with FA_MISS_NEAREST it is the most that the better kernel and any that is prepared for the class need: ask again
 * after preparing more of them. */
FA_API fa_status fa_workspace_size(fa_context *ctx, const fa_args *args, size_t *bytes);

/* Makes device memory a workspace: zeroes the counters that lie in its first 64 KiB, on `stream`. size: its bytes, 64 KiB or more
 * (FA_INVALID), or 0: no workspace, nothing to do. Once, before the first launch that is given it, and again after a launch that failed on
 * the device; other launches leave it so. On the simulator, and with the option check_device_data = 1, a launch looks at them before, which
 * is FA_INVALID where one is not 0, and after, which is FA_INTERNAL. Only kernels that count in their workspace need it (fa_explain()
 * tells), for the others it is harmless. One workspace serves one stream at a time. Legal while the stream is captured. */
FA_API fa_status fa_workspace_init(fa_context *ctx, void *workspace, size_t size, fa_stream stream);

/* The bytes of device memory that the context holds to lend, of all streams and graphs. Thread-safe. */
FA_API fa_status fa_workspace_held(fa_context *ctx, size_t *bytes);

/* Frees the workspace that the context lends to *stream, in the current CUDA context, after the work of the stream: the call to make
 * before a stream is destroyed. A later launch on it allocates again. FA_CAPTURE while the stream is captured. stream NULL: those of all
 * streams and of graphs that are destroyed; waits for the work of the CUDA contexts that they are of, and is not legal while a stream of
 * these is captured. What a launch of another thread has at the moment, and what a graph may still use, stays. Thread-safe. */
FA_API fa_status fa_workspace_release(fa_context *ctx, const fa_stream *stream);

/* Reads a score program: Lua text that ends in a NUL, at most 16 KiB. It is parsed and never run; docs/scores.md has the language.
 * FA_INVALID with line and column of what is wrong. Equal programs, whatever their layout and names of locals and functions, have one
 * identity; a text of the same operands and values is the same object, counted once more. Thread-safe. */
FA_API fa_status fa_score_create(fa_context *ctx, const char *text, fa_score **out);

/* The same of program i of a bundle, whose kernels need no other: in the order in which its problems name them, from 0. The context need
 * not have the bundle, which is read again. FA_INVALID past the last, and what fa_create() finds wrong. Thread-safe. */
FA_API fa_status fa_score_of_bundle(fa_context *ctx, const fa_bundle *bundle, int32_t i, fa_score **out);

/* Takes one from the count of a program, before fa_destroy(). At 0 launches that name it are FA_INVALID. NULL is fine. */
FA_API void fa_score_destroy(fa_score *score);

/* What operand i of a program is, in the order in which launches give them. out->size is set by the caller. FA_INVALID past the last, with
 * out->count set. */
FA_API fa_status fa_score_operand_at(fa_context *ctx, const fa_score *score, int32_t i, fa_score_operand_info *out);

/* The identity of a program, two words: what it computes, the types and shapes of its operands, and the bounds of its scalars. */
FA_API fa_status fa_score_id(fa_context *ctx, const fa_score *score, uint64_t *id);

/* Launches attention on `stream`. On a hit: no allocation, no lock, no synchronisation, no environment look-up.
 * Each call reads all of args, and of the host memory that they lead to: one struct may be changed in place between launches. A call that
 * differs from the thread's last in addresses alone is cheaper: of these it is checked whether they are NULL, aligned, and apart.
 * On a miss: as fa_prepare(), or FA_CAPTURE while the stream is captured; or what the option on_miss says.
 * From sm_90 on the kernel may begin before what precedes it in the stream has ended (programmatic dependent launch, fa_explain()
 * says so): it waits itself before it touches memory, and nothing changes for what comes after it, unless that is launched in the same
 * way, and then has to wait likewise. The option in_order turns that off. */
FA_API fa_status fa_launch(fa_context *ctx, const fa_args *args, fa_stream stream);

/* Which kernel fa_launch() would run for args (or for the problem, if args is NULL), where it comes from and why: written
 * to buf as text lines, cut at n - 1 bytes, always with a NUL at the end. 4096 bytes are enough for most. Compiles nothing. Addresses
 * are checked where q (or part) has one. The line "table" says whether a launch is a hit, and what a miss does; "better" which kernel takes
 * the nearest one's place, and whether it waits, is being compiled, or failed and why. */
FA_API fa_status fa_explain(fa_context *ctx, const fa_problem *p, const fa_args *args, char *buf, size_t n);

/* The bytes that fa_explain() needs for the whole text, its NUL counted: a smaller buf cuts it. The text changes when the kernel is
 * prepared, by this thread or another. */
FA_API fa_status fa_explain_size(fa_context *ctx, const fa_problem *p, const fa_args *args, size_t *bytes);

/* Where a candidate comes from. */
typedef enum fa_candidate_from {
    FA_FROM_START = 0,   /* what a family begins with, or the model's best of all that fits: nothing is known of it */
    FA_FROM_GUESS = 1,   /* what a tuning without a device left for the arch: compiled, never timed */
    FA_FROM_SHIPPED = 2, /* a winner that ships with the library */
    FA_FROM_IMPORT = 3,  /* a record that was imported: timed on another chip of the name, verified here */
    FA_FROM_RECORD = 4,  /* a record that was measured here */
    FA_FROM_BUNDLE = 5,  /* a kernel of a bundle */
    FA_FROM_PIN = 6      /* fa_pin() */
} fa_candidate_from;

/* One config that a choice looks at. Texts are UTF-8, never NULL, and valid until the function that is told them returns. */
typedef struct fa_candidate_info {
    uint32_t size;       /* sizeof(fa_candidate_info) of the library: what a program of an older header does not know comes last */
    int32_t source;      /* fa_candidate_from */
    int32_t runs;        /* 1: what a miss prepares now; of one candidate */
    int32_t reserved;    /* 0 */
    const char *config;  /* "family:name=value,...", whole: what fa_pin() and --config of the command take */
    double price;        /* seconds of a launch at the bucket's shape, by which it is chosen: measured, or modelled and corrected by what
                            was measured near. 0: it has none, being refused or of a bundle */
    double model;        /* seconds by the model alone; 0 = none */
    double measured;     /* seconds that were measured at `problem`; 0 = none were */
    double distance;     /* from there to the bucket, by class, chip and shape, in doublings of a length */
    const char *chip;    /* where it won or was measured; "" = nowhere */
    const char *date;    /* of the measurement, UTC; "" = not told */
    const char *problem; /* at which it won or was measured; "" = none */
    const char *why;     /* why it does not run here: the rule with its numbers, or how it failed; "" = it runs */
} fa_candidate_info;

/* A non-zero return ends the telling. It may call fagen, but not fa_destroy(). */
typedef int (*fa_candidate_fn)(void *user, const fa_candidate_info *row);

/* Tells the candidates of a problem's class and bucket, at most 64: the one that runs first, then the cheapest first; after them winners
 * that are refused here and configs that are known to fail, with their reasons. They follow from what is known now: what was prepared
 * before may be another. Compiles nothing; a few milliseconds. Errors as of fa_supported(): then no row is told, or not all.
 * Thread-safe: `tell` is called by this thread. */
FA_API fa_status fa_candidates(fa_context *ctx, const fa_problem *p, fa_candidate_fn tell, void *user);

/* Names the config that runs the problem's class and bucket in this context, before bundles, records and prices. What a call lacks is part
 * of the class, as in fa_explain(): align, and FA_FEATURE_NO_WORKSPACE.
 * - config is whole: each tunable of its family, values by name or number. It is rendered, and refused with the reason where it does not
 *   fit (FA_NO_FIT), does not compute the problem (FA_UNSUPPORTED), is not known (FA_INVALID), or a record tells that it fails here
 *   (FA_UNSUPPORTED; FA_WRONG where its result was wrong): nothing changes then. It is not compiled before a miss, nor verified: fa_tune()
 *   and fa_records_import() verify.
 * - It holds for later misses. A bucket that is prepared keeps its kernel, and graphs theirs, until fa_prepare() or fa_prepare_range() is
 *   called for it again: these prepare it once more where another pin, or none, holds. With FA_MISS_NEAREST a fallback may run meanwhile.
 * - It lives until fa_unpin(), another pin of the bucket, or fa_destroy(), and is not written to disk. fa_tune() searches as without, and
 *   its winner waits until the pin is gone. fa_workspace_size() may change: ask again.
 * With bundle_only: FA_NO_KERNEL. Thread-safe: a choice sees the pins that there are when it begins. */
FA_API fa_status fa_pin(fa_context *ctx, const fa_problem *p, const char *config);

/* Takes back the pin of the problem's class and bucket; p NULL: all of the context. FA_OK where there is none. Thread-safe. */
FA_API fa_status fa_unpin(fa_context *ctx, const fa_problem *p);

/* Device memory for tools, tests and examples, so that a program of this header alone runs on a GPU and on the simulator
 * alike. An engine passes pointers and streams of its own. Not legal while a stream is captured. */
typedef enum fa_copy_kind { FA_TO_DEVICE = 0, FA_FROM_DEVICE = 1 } fa_copy_kind;

/* bytes > 0 of device memory, 256-byte aligned; *out is NULL on failure, FA_NOMEM where there is none left. */
FA_API fa_status fa_alloc(fa_context *ctx, void **out, size_t bytes);

/* Of fa_alloc(), before fa_destroy(). NULL is fine. No work on it may still be running. */
FA_API fa_status fa_free(fa_context *ctx, void *ptr);

/* Between host and device memory. Waits first for all work on the device's context, on any stream, then for the copy. */
FA_API fa_status fa_copy(fa_context *ctx, void *to, const void *from, size_t bytes, fa_copy_kind kind);

/* How fa_tune() searches. */
typedef struct fa_tune_options {
    uint32_t size;   /* sizeof(fa_tune_options): FA_TUNE_OPTIONS_INIT sets it */
    int32_t limit;   /* listed candidates that are tried, best by the model first; 0 = 48; -1 = every config that fits. What ships or won
                        elsewhere, and at most as many neighbours of the fastest, or 48, come on top */
    double seconds;  /* time budget; 0 = none */
    int32_t threads; /* compile threads; 0 = one per core, at most 16 */
    int32_t reserved;
    int (*progress)(void *user, const char *line, double done); /* non-zero return stops the search; NULL = none */
    void *user;
} fa_tune_options;
#define FA_TUNE_OPTIONS_INIT                                  \
    {                                                         \
        sizeof(fa_tune_options), 0, 0, 0, 0, FA_NULL, FA_NULL \
    }

/* Searches the configs for the problem: compiles, verifies, times on the device, and records every outcome on disk, so
 * that it resumes where it was stopped and fa_launch() uses the winner from now on. On the simulator nothing is timed: what the
 * model ranks first is a guess, which fa_launch() uses where its price over the bucket is the lowest of all that is known, winners that
 * ship with the library among them. Blocks; needs device memory for the problem's tensors, several times over. FA_INTERRUPTED keeps
 * results. */
FA_API fa_status fa_tune(fa_context *ctx, const fa_problem *p, const fa_tune_options *opt);

/* Records: what tunings and imports left in the context's cache, one line for each config, problem and chip (docs/tuning.md). They travel
 * as text: a first line with the format's version, the number of lines and a check, then a line of JSON each. The version is
 * FA_RECORDS_FORMAT; a library reads those up to its own.
 *
 * What an import guarantees:
 * - All of the text is looked at before any of it counts: size (64 MiB, 65536 lines), version, check, and each record: its fields, that its
 *   config runs the problem on its chip, that no line tells of one config, class and bucket twice, and its time, which is never below the
 *   roofline of the chip. A fault in any line refuses the whole: FA_INVALID with the line, the field and what is accepted.
 * - A file belongs to this user or root, and nobody else can write it: FA_INVALID otherwise. A check is no signature.
 * - A record is verified before its first use, and that is at the import: on the context's device the kernel of each class and bucket's
 *   fastest record is compiled and run, and its results are held against the truth, as fa_tune() does; where it is wrong, that is put on
 *   record and the next takes its place, three at most. What a text says of a time is taken as said. Verifying needs device memory for
 *   small tensors, and a part of a second for each class and bucket; not legal while a stream is captured.
 * - Nothing comes before what was measured here: a class and bucket for which something ran on this machine is passed over, and a later
 *   fa_tune() takes the place of an import. An imported record comes before winners that ship.
 * - Only records of the context's chip are taken, by its name, and guesses of its arch: import on a machine that has the other.
 * - All that is taken is added, or nothing: after a failure, a full disk or a killed process the cache is as it was.
 * Later misses see what was added; buckets that are prepared keep their kernels. */
#define FA_RECORDS_FORMAT 1

/* Writes the records of the problem's class, whatever its shape; p NULL: of all, of every chip: of each config, class, bucket and chip the
 * newest that ran. path: a regular file is replaced when the text is whole; "-" is standard output. FA_IO, FA_NOMEM; FA_INVALID where they
 * are more than a text holds; FA_NO_KERNEL with bundle_only. Thread-safe. */
FA_API fa_status fa_records_export(fa_context *ctx, const fa_problem *p, const char *path);

/* The same into buf; *bytes is the size of the text, without a NUL. buf NULL tells it. FA_INVALID where n is less: nothing is written. */
FA_API fa_status fa_records_export_text(fa_context *ctx, const fa_problem *p, char *buf, size_t n, size_t *bytes);

/* How records are imported. */
typedef struct fa_records_options {
    uint32_t size; /* sizeof(fa_records_options): FA_RECORDS_OPTIONS_INIT sets it */
    int32_t reserved;
    int (*progress)(void *user, const char *line, double done); /* non-zero return stops the import: FA_INTERRUPTED. NULL = none */
    void *user;
} fa_records_options;
#define FA_RECORDS_OPTIONS_INIT                         \
    {                                                   \
        sizeof(fa_records_options), 0, FA_NULL, FA_NULL \
    }

/* What became of the records of a text; all but `records` add up to it. */
typedef struct fa_records_count {
    uint32_t size;     /* sizeof(fa_records_count): FA_RECORDS_COUNT_INIT sets it */
    int32_t records;   /* in the text */
    int32_t added;     /* verified, and count from now on */
    int32_t there;     /* as good ones had been imported before */
    int32_t measured;  /* passed over: of a class and bucket that was measured here, or of a config that failed here */
    int32_t slower;    /* left out: others of their class and bucket are faster */
    int32_t wrong;     /* left out: the kernel does not run here, or its result was wrong */
    int32_t elsewhere; /* left out: of another chip, of more shared memory than kernels may use here, or guesses of another version */
} fa_records_count;
#define FA_RECORDS_COUNT_INIT                         \
    {                                                 \
        sizeof(fa_records_count), 0, 0, 0, 0, 0, 0, 0 \
    }

/* Reads what fa_records_export() wrote. opt and count may be NULL; after a failure all of *count but its size is 0. FA_IO: the file cannot
 * be read, the context has no cache that can be written, or another process imports; FA_INVALID, FA_NOMEM, FA_NO_NVRTC, FA_DEVICE,
 * FA_INTERRUPTED. Thread-safe; blocks. */
FA_API fa_status fa_records_import(fa_context *ctx, const char *path, const fa_records_options *opt, fa_records_count *count);

/* The same of n bytes at text, which need not end in a NUL. */
FA_API fa_status fa_records_import_text(fa_context *ctx, const char *text, size_t n, const fa_records_options *opt,
                                        fa_records_count *count);

/* Which records fa_records_forget() takes out. */
typedef enum fa_forget {
    FA_FORGET_IMPORTED = 0, /* what was imported */
    FA_FORGET_ALL = 1       /* what was measured here, too: a tuning begins again */
} fa_forget;

/* Takes records of the context's chip and guesses of its arch out of the cache: of the problem's class, whatever its shape; p NULL: of all.
 * which: fa_forget. *lines (may be NULL): how many went. Those of roots that are only read stay. Later misses see it. FA_IO, FA_NOMEM.
 * Thread-safe. */
FA_API fa_status fa_records_forget(fa_context *ctx, const fa_problem *p, int32_t which, int64_t *lines);

/* Why this thread's last call that failed did so: "" if none has. A call that succeeds leaves it as it was, also where something failed
 * inside and another way was found, so that a status is to be looked at first. Valid until this thread's next failing call. Names and bytes
 * of files that it quotes are safe to show: what a terminal would obey, but newline and tab, and what is not UTF-8, is text such as \x1b.
 * The same holds for lines of the log and for fa_explain(). */
FA_API const char *fa_last_error(void);

/* "FA_INVALID" and so on; never NULL. */
FA_API const char *fa_status_name(fa_status s);

/* major * 10000 + minor * 100 + patch of the library that runs. */
FA_API uint32_t fa_version(void);

#ifdef __cplusplus
}
#endif
#endif
