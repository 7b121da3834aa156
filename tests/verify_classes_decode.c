/* verify_classes_decode: few query rows beside many keys. */
#include "verify_classes.h"

static const char *const classes[] = {
    "bf16,d=128,features=lengths",
    "bf16,d=128,mask=causal,features=lengths+pages,page=16",
    "fp16,d=64,mask=causal,features=lengths+pages,page=64",
    "fp16,d=64,mask=window,features=lengths+pages+lse-strides,page=1",
    "bf16,d=64,features=lengths+pages,page=128",
    "bf16,d=64,mask=causal,features=lengths+lse-strides",
    "fp16,d=128,mask=window,features=lengths",
    "bf16,d=96,dv=64,mask=causal,features=lengths+pages,page=32",
    "tf32,d=64,mask=causal,features=lengths+pages,page=8",
    "bf16,d=72,o=fp32,features=lengths+pages,page=2",
    "fp16,d=36,dv=20,mask=causal,align=4,features=lengths+pages,page=4",
    "bf16,d=33,mask=window,features=lengths+pages,page=1",
    "tf32,d=40,features=lengths",
    "bf16,d=256,mask=causal,features=lengths+pages,page=16",
    "bf16,d=64,mask=causal",
    "fp16,d=128",
    "bf16,d=64,mask=window,features=lse-strides",
    "fp32,d=128,mask=causal,features=lengths+pages,page=16",
    "fp32,d=72,dv=96,mask=window,features=lengths+pages,page=1",
    "fp32,d=33,features=lengths+lse-strides",
    "bf16,d=128,mask=causal,features=lengths+batch-invariant",
    "fp16,d=64,mask=window,features=lengths+pages+batch-invariant+lse-strides,page=16",
    "bf16,d=64,mask=causal,features=batch-invariant",
    NULL,
};

const verify_class_list verify_classes = { "decode", FA_CASE_FEW, 3, classes, true, false };
