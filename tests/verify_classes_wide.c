/* verify_classes_wide: heads above 256, and V inside K: few query rows beside many keys, by passes and by warpgroups that share rows. */
#include "verify_classes.h"

static const char *const classes[] = {
    "bf16,d=576,dv=512,mask=causal,features=lengths+pages+v-in-k,page=64",
    "fp16,d=333,dv=401,mask=causal,features=lengths",
    "bf16,d=320,o=fp32,mask=window,features=lengths+lse-strides",
    "fp32,d=300,dv=264,mask=window",
    "bf16,d=264,dv=136,mask=causal,features=lengths+pages,page=16",
    "fp16,d=384,dv=320,mask=window,features=lengths+v-in-k",
    NULL,
};

const verify_class_list verify_classes = { "wide_", FA_CASE_FEW, 1, classes, false, false };
