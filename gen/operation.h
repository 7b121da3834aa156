/* operation: what fa_launch() computes, as rows of a table: the operands of each operation, their extents and types. Argument checks,
 * tensor maps, parameters of kernels, the tensors of the tuner, the verifier and the command walk these rows; no other code lists operands.
 * The rows are made of gen/operands.def, which has each operand once. */
#ifndef FA_GEN_OPERATION_H
#define FA_GEN_OPERATION_H
#include "extent.h"

#define FA_OPERANDS_MAX 48 /* of an operation: a bit each in masks of 64 */
#define FA_LISTS_MAX 4     /* host lists of one */

typedef enum fa_type_rule {
    FA_TYPE_INPUT,  /* fa_problem.dtype */
    FA_TYPE_QUERY,  /* fa_problem.q_dtype, or where that is 0 dtype */
    FA_TYPE_KV,     /* fa_problem.kv_dtype, or where that is 0 dtype */
    FA_TYPE_V,      /* fa_problem.v_dtype, or where that is 0 as FA_TYPE_KV */
    FA_TYPE_OUTPUT, /* fa_problem.o_dtype */
    FA_TYPE_GRAD,   /* fa_problem.grad_dtype */
    FA_TYPE_F32,
    FA_TYPE_I32,
    FA_TYPE_U64,
    FA_TYPE_ANGLE, /* fa_problem.cos_sin_dtype */
    FA_TYPE_I64,
    FA_TYPE_POSITION /* integers of 4 bytes, or 8 with FA_FEATURE_POSITIONS64 */
} fa_type_rule;

/* What cases, and tensors to measure on, hold in an input that no other operation computes. */
typedef enum fa_drawn {
    FA_DRAWN_NORMAL,    /* N(0, 1) */
    FA_DRAWN_FACTOR,    /* above 0, about 1: exp(N(0, 1) / 4) */
    FA_DRAWN_SEQUENCES, /* integers that say where sequences lie, and that some calls have (fa_ragged) */
    FA_DRAWN_STATE,     /* seed and offset of random numbers (fa_dropout) */
    FA_DRAWN_SLOTS,     /* places in a cache of pages (fa_slots_draw) */
    FA_DRAWN_POSITIONS  /* of rows, among those that there are angles of (fa_positions_draw) */
} fa_drawn;

/* Every operand of fagen.h by the name of its field: a number beside its place in an operation. */
typedef enum fa_operand_id {
    FA_ID_NONE, /* of operations that a test adds: another one */
#define OPERAND(field, ...) FA_ID_##field,
#include "operands.def"
    FA_ID_COUNT
} fa_operand_id;

/* One tensor of an operation. */
typedef struct fa_operand {
    const char *name;  /* "q": of the field in fa_args, in messages, of the kernel's parameter, of tensor maps */
    int32_t rank;      /* dimensions */
    int32_t extent[4]; /* fa_extent of each in packed order, the fastest last: b, sq, hq, d */
    fa_type_rule type;
    bool output;   /* written, else read */
    bool optional; /* a null address means: not asked for */
    bool strided;  /* a fa_tensor: [batch, sequence, head, width] with strides; else a pointer to packed elements */
    size_t at;     /* in fa_args: of the fa_tensor, or of the pointer */
    /* of a pointer: in fa_args, its three strides sb, sh, ss, all 0 = packed; 0: it is always packed */
    size_t strides_at;
    /* in fa_args: elements from one part to the next, of the fa_args.parts that there are, 0 = each packed and one after the other; 0: it
       is one tensor. The first extent counts all parts */
    size_t parts_at;
    /* of a pointer of two dimensions, the second of which is elements from one row to the next, 0 where one row is that of all: fa_extent
       of a row's elements; 0: there are as many */
    int32_t row;
    int32_t feature; /* fa_feature that brings it; 0 = it is there in every call */
    /* in fa_problem: an int32_t that is 0 in classes without it; 0: there is no such field. Its address is that of a fa_scale, whose
       strides of batch, sequence and head are as they are: 0 leads nowhere */
    size_t class_at;
    int32_t
        within; /* fa_feature of calls in which it lies in K's rows: they have no such operand, and kernels get K's address and strides */
    bool asks;  /* a call that has its address is of that feature; else another field says so */
    bool broadcast; /* of a call with FA_BROADCAST a stride of 0 is meant */
    fa_drawn drawn;
    fa_operand_id id;
    const char *values;  /* names of the scalars of kernels that come with it (gen/values.h), blanks between; NULL: none */
    const char *word;    /* its option of `fagen attend`; NULL: none */
    const char *keyword; /* its name in Python; NULL: that of the field */
    const char *doc;     /* what it is, for pages */
} fa_operand;

/* Structs in host memory that a launch reads. Calls whose lists differ in any byte differ, also at one address. The bytes of a launch's
 * lists are compared as they are: padding is 0. */
typedef struct fa_host_list {
    const char *name;
    size_t at;       /* in fa_args: of the pointer, which may be NULL */
    size_t count_at; /* in fa_args: of an int32_t: how many */
    size_t bytes;    /* of each */
} fa_host_list;

typedef struct fa_operation {
    int32_t op;                          /* fa_op */
    const char *name;                    /* of the printed problem */
    int32_t products_d, products_dv;     /* matrix products over visible pairs (query, key) with an inner or outer size of d, of dv */
    int32_t others;                      /* FLOPs of a visible pair that are no product: scale, mask, exponential, sums */
    uint32_t flags;                      /* fa_flag that its calls may have */
    int32_t features;                    /* fa_feature that its problems may have */
    bool follows;                        /* it reads what the operation `after` writes, under the same names and of the same inputs */
    int32_t after;                       /* fa_op */
    int32_t n;                           /* operands; 0 = named in fagen.h and not built */
    fa_operand operand[FA_OPERANDS_MAX]; /* in the order of gen/operands.def */
    int32_t lists;                       /* of them */
    fa_host_list list[FA_LISTS_MAX];
} fa_operation;

/* Whether calls of the problem's class have the operand. */
static inline bool fa_operand_present(const fa_operand *o, const fa_problem *p)
{
    if (o->class_at && !*(const int32_t *)(const void *)((const char *)p + o->class_at))
        return false;
    return (!o->feature || (p->features & o->feature)) && !(p->features & o->within);
}
/* The rows that the class has, a bit each. */
static inline uint64_t fa_operands_of(const fa_operation *op, const fa_problem *p)
{
    uint64_t rows = 0;
    for (int i = 0; i < op->n; i++)
        rows |= (uint64_t)fa_operand_present(&op->operand[i], p) << i;
    return rows;
}
/* Takes the first row out of a mask of them; -1: it is empty. */
static inline int fa_operands_next(uint64_t *rows)
{
    int i = *rows ? __builtin_ctzll(*rows) : -1;
    *rows &= *rows - 1;
    return i;
}

/* NULL: there is no such number, name or row. */
const fa_operation *fa_operation_find(int32_t op);
const fa_operation *fa_operation_named(const char *name);
const fa_operation *fa_operation_row(size_t i); /* in the order of their numbers */

/* One more operation beside those of fagen.h, for tests and experiments: op is a number of its own. The row outlives the process's use of
 * it. Call it before any other function; it is not thread-safe. False where the table is full or the number taken. */
bool fa_operation_add(const fa_operation *row);
/* One more operand of an operation of fagen.h, after the others, for tests and experiments, on the same terms. Its field is one of fa_args
 * that the operation does not read otherwise. False where there are FA_OPERANDS_MAX, or the operation has one of its name or field. */
bool fa_operand_add(int32_t op, const fa_operand *row);

/* Index of the operand of this name; -1 = none. */
int fa_operand_index(const fa_operation *op, const char *name);
/* Index of the row of an operand of fagen.h; -1 = the operation has none. */
int fa_operand_slot(const fa_operation *op, fa_operand_id id);
/* fa_dtype of its elements; 0 for integers. */
int fa_operand_dtype(const fa_operand *o, const fa_problem *p);
int fa_operand_bytes(const fa_operand *o, const fa_problem *p); /* of an element, or of a block of a format that has blocks */
/* Its matrix products, in units of the forward operation's two; at least 1. */
double fa_operation_passes(int32_t op);
/* Its name in capital letters, as people read of it: "Q". Returns buf. */
#define FA_OPERAND_TITLE 24
const char *fa_operand_title(char buf[FA_OPERAND_TITLE], const fa_operand *o);

/* Its rows are keys, else queries or something else. */
static inline bool fa_operand_has_keys(const fa_operand *o)
{
    return o->strided && (o->extent[1] == FA_EXTENT_ROWS_K || o->extent[1] == FA_EXTENT_SK);
}
/* Some operand has; else the operation knows neither key heads nor a key length. */
static inline bool fa_operation_has_keys(const fa_operation *op)
{
    bool any = false;
    for (int i = 0; i < op->n; i++)
        any = any || fa_operand_has_keys(&op->operand[i]);
    return any;
}

/* Its dimensions in packed order, filled up with ones after the last: of a strided operand batch, sequence, head, width. */
typedef struct fa_dims {
    int64_t of[4];
} fa_dims;
static inline void fa_operand_dims(fa_dims *out, const fa_operand *o, const fa_sizes *s)
{
    for (int i = 0; i < 4; i++)
        out->of[i] = i < o->rank ? s->of[o->extent[i]] : 1;
    if (s->v_columns && o->id == FA_ID_v) { /* [batch, dv, head, sequence] */
        int64_t rows = out->of[1];
        out->of[1] = out->of[3];
        out->of[3] = rows;
    }
}
int fa_operand_print(char *buf, size_t n, const fa_operand *o); /* "[b, sq, hq, d]"; as snprintf */

/* Its fields in the arguments of a launch. */
static inline void *fa_operand_address(const fa_operand *o, const fa_args *a)
{
    return *(void *const *)((const char *)a + o->at); /* the first member of a fa_tensor, too */
}
/* Features that the addresses of operands ask for, and the strides of lse where they may be other than packed. */
int32_t fa_operation_features(const fa_operation *op, const fa_args *a);
/* Strides of a packed one are ignored. Of parts sb leads on from the last batch of one part to the first of the next. */
void fa_operand_set(const fa_operand *o, fa_args *a, void *address, int64_t sb, int64_t ss, int64_t sh);

/* The arguments of a launch of the problem, which is normalized and shaped, but for addresses: the reverse of fa_problem_of(). A window
 * reaches problem.window keys, or the typical FA_MODEL_WINDOW, to the left and none to the right. Dropout is the typical one. */
#define FA_DROPOUT_TYPICAL 0.1f
fa_args fa_operation_args(const fa_problem *p);
#endif
