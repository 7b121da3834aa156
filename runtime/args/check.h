/* check: every argument of the public functions, looked at once; what passes is in the form that launches use. */
#ifndef FA_RUNTIME_ARGS_CHECK_H
#define FA_RUNTIME_ARGS_CHECK_H
#include "gen/values.h"
#include "span.h"
#include <fagen.h>
#include <stdbool.h>

/* A launch's arguments, checked. */
typedef struct fa_call {
    fa_problem problem; /* normalized, shape set (sq and sk of 0 count as 1), align as the addresses and strides allow */
    const fa_operation *op;
    uint64_t has;     /* of op's rows those that the class has, a bit each */
    int operands;     /* how many */
    int arrays;       /* of its score program */
    fa_sizes sizes;   /* as given: sk may be 0; no SMs */
    fa_values values; /* all but buffers, tiles, total, section, joined and counter */
    size_t workspace_size;
    bool empty; /* no row of an output: nothing to launch, and of values there are gradients of operands alone, if these are written */
} fa_call;

/* tensors false: only shapes and strides matter (fa_workspace_size): addresses may be NULL and are not looked at. */
fa_status fa_check_args(fa_call *out, const fa_args *args, bool tensors);

/* The same, and what the operands cover, one span for each row that the class has, in their order; after them the
 * workspace, then arrays of the score program. */
fa_status fa_check_spans(fa_call *out, const fa_args *args, bool tensors, fa_span spans[FA_SPANS_MAX]);

/* False: layout_flags say that V lies in K's rows, and v.ptr is another address. */
bool fa_check_within(const fa_args *a);

/* Operands that lie in K's rows get K's address and strides, which c->values has. */
void fa_check_place_within(fa_call *c);

/* Sets c->problem's align and kv_align: bytes that rows of strided operands start at multiples of, 16 at most. By strides, and addresses
 * of placed ones. */
void fa_check_align(fa_call *c, const fa_span *s);

/* The same as fa_check_args; addresses are looked at where q has one (fa_explain). */
fa_status fa_check_given(fa_call *out, const fa_args *args);

/* What the call lacks is part of its class: calls that TMA cannot address are of the class of rows at multiples of 8 bytes, which no family
 * with maps computes. workspace: a plain forward call of few rows or tiles that brings none is of the class of kernels that need none. */
void fa_check_lacks(fa_call *c, bool workspace);

/* Whether launches of p may be of a class of their own where they bring no workspace. p: normalized. */
bool fa_check_may_lack(const fa_problem *p);

/* The workspace of out->params holds `need` bytes. */
fa_status fa_check_workspace(const fa_call *call, size_t need);

/* Defaults where opt is NULL; checks sizes and ranges that need no device. */
fa_status fa_check_options(fa_options *out, const fa_options *opt);

/* fa_problem_normalize, and no unknown field may be set in a larger struct. */
fa_status fa_check_problem(fa_problem *out, const fa_problem *p);
#endif
