/* verify_classes_prompt: prompts, and chunks of them after a cached prefix. */
#include "verify_classes.h"

static const char *const classes[] = {
    "bf16,d=128,mask=causal,features=lengths",
    "bf16,d=64,features=lengths",
    "fp16,d=128,mask=causal,features=lengths+pages,page=16",
    "bf16,d=64,mask=causal,features=lengths+pages,page=64",
    "bf16,d=128,features=lengths+pages,page=128",
    "fp16,d=64,mask=window,features=lengths+lse-strides",
    "bf16,d=128,mask=window,features=lengths+pages,page=32",
    "bf16,d=256,mask=causal,features=lengths+pages,page=16",
    "bf16,d=96,dv=64,mask=causal,features=lengths",
    "tf32,d=64,mask=causal,features=lengths+pages,page=8",
    "fp16,d=36,dv=20,mask=causal,align=4,features=lengths+pages,page=4",
    "bf16,d=33,mask=window,features=lengths+pages,page=1",
    "bf16,d=72,o=fp32,features=lengths+pages+lse-strides,page=2",
    "bf16,d=64,mask=causal,features=lengths+pages+batch-invariant,page=16",
    NULL,
};

const verify_class_list verify_classes = { "flash_fwd mixed", FA_CASE_MANY, 3, classes, true, false };
