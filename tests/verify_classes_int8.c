/* verify_classes_int8: Q and K of integers of 8 bits beside V of 16: scales of heads and of tokens, masks, groups, lengths, pages. */
#include "verify_classes.h"

static const char *const classes[] = {
    "s8,d=128,mask=causal,v=bf16,q_scale=2,k_scale=2",
    "s8,d=64,mask=none,v=fp16,o=fp16,q_scale=1,k_scale=1,v_scale=1",
    "s8,d=80,dv=48,mask=window,v=fp16,o=fp32,features=lse-strides,k_scale=2",
    "s8,d=64,mask=causal,v=bf16,features=lengths,q_scale=2,k_scale=2,v_scale=1",
    "s8,d=48,dv=64,mask=window,v=fp16,features=lengths+pages,page=16,q_scale=2,k_scale=2",
    "s8,d=36,dv=20,mask=causal,v=bf16,q_scale=1",
    "s8,d=33,dv=17,mask=none,v=fp16,q_scale=2,k_scale=1",
    "s8,d=256,dv=192,mask=causal,v=fp16,features=batch-invariant,k_scale=1",
    "s8,d=64,mask=none,v=bf16,features=dropout,q_scale=2",
    NULL,
};

const verify_class_list verify_classes = { "int8_ fp8_", FA_CASE_MANY, 2, classes, true, false };
