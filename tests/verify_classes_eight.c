/* verify_classes_eight: Q, K and V of 8 bits: prompts, masks, groups, scales of each head, lengths, packed rows. */
#include "verify_classes.h"

static const char *const classes[] = {
    "e4m3,d=128,mask=none,q_scale=1,k_scale=1,v_scale=1",
    "e4m3,d=64,mask=causal,o=fp16,features=lengths,q_scale=1",
    "e5m2,d=80,dv=48,mask=window,o=fp32,features=lse-strides,v_scale=1",
    "e4m3,d=256,dv=192,mask=causal,features=lengths,k_scale=1",
    "e4m3,d=48,dv=64,mask=window,features=lengths+pages,page=16,q_scale=1,k_scale=1,v_scale=1",
    "e5m2,d=192,dv=128,mask=causal,features=v-columns",
    "e4m3,d=64,mask=window,features=v-columns,v_scale=1",
    "e4m3,d=128,mask=causal,o=e4m3,v_scale=1,o_scale=1",
    "e5m2,d=64,mask=none,o=e4m3,features=lengths,o_scale=1",
    "e4m3,d=128,mask=causal,v=bf16,q_scale=1,k_scale=1,v_scale=1",
    "e5m2,d=80,dv=208,mask=window,v=fp16",
    NULL,
};

const verify_class_list verify_classes = { "fp8_", FA_CASE_MANY, 2, classes, false, true };
