/* verify_classes_low: few query rows beside many keys of few bits. */
#include "verify_classes.h"

static const char *const classes[] = {
    "bf16,d=128,kv=e4m3,k_scale=1,v_scale=1",
    "fp16,d=128,mask=causal,features=lengths+pages,page=16,kv=s8,k_scale=4,v_scale=4",
    "bf16,d=72,dv=40,features=batch-invariant,kv=e5m2,v=e4m3,k_scale=4,v_scale=4",
    "fp16,d=128,mask=causal,features=lengths+pages,page=16,kv=e4m3,q=fp32,k_scale=1,v_scale=1",
    "bf16,d=64,mask=window,features=lengths,kv=e5m2,v=e4m3,k_scale=1",
    "fp16,d=72,dv=40,mask=causal,o=fp32,features=lengths+pages+lse-strides,page=1,kv=e4m3,v=e5m2,v_scale=1",
    "bf16,d=256,features=lengths+batch-invariant,kv=e4m3,k_scale=1,v_scale=1",
    "fp16,d=64,mask=window,align=2,kv=e4m3,k_scale=1,v_scale=1",
    "bf16,d=128,mask=causal,features=lengths+pages,page=16,kv=s8,k_scale=2,v_scale=2",
    "bf16,d=128,mask=window,features=lengths+batch-invariant,kv=s8,v=e4m3,k_scale=1,v_scale=2",
    "fp16,d=80,dv=72,features=lengths+pages,page=4,kv=e4m3,v=s8,k_scale=2,v_scale=2",
    "fp16,d=64,dv=96,features=lengths+pages,page=16,kv=q8_0,v=q4_0",
    "bf16,d=128,mask=causal,features=lengths+pages,page=1,kv=q4_0",
    "bf16,d=64,dv=96,mask=causal,features=lengths+pages,page=16,kv=q5_0,v=q4_1",
    "fp16,d=96,dv=256,align=2,kv=q4_0,v=e4m3,v_scale=2",
    "fp16,d=128,features=lengths,kv=q5_1,v=iq4_nl",
    "bf16,d=96,dv=64,mask=window,align=2,kv=q4_1,v=q5_1",
    "bf16,d=128,mask=causal,features=lengths+pages,page=4,kv=nvfp4",
    "fp16,d=64,dv=128,features=batch-invariant,kv=iq4_nl,v=q5_0",
    "bf16,d=256,dv=32,mask=causal,features=batch-invariant,kv=s8,v=q8_0,k_scale=2",
    NULL,
};

const verify_class_list verify_classes = { "decode_mma", FA_CASE_FEW, 2, classes, true, false };
