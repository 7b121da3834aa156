/* verify_classes_widen: many query rows over K and V of few bits, of which a kernel before the family's own makes 16 bits. */
#include "verify_classes.h"

static const char *const classes[] = {
    "bf16,d=128,mask=causal,kv=e4m3,k_scale=1,v_scale=1",
    "fp16,d=64,dv=96,mask=window,features=lengths+pages,page=16,kv=s8,v=q5_1,k_scale=2",
    "bf16,d=128,mask=causal,features=lengths,kv=nvfp4,v=q4_1",
    "bf16,d=96,dv=64,mask=causal,features=lengths+pages,page=8,kv=s8,v=e4m3,k_scale=4,v_scale=4",
    "fp16,d=72,dv=40,features=lengths+pages,page=1,kv=e5m2,v=e4m3,v_scale=2",
    "bf16,d=256,mask=causal,features=lengths+pages,page=4,kv=q8_0,v=iq4_nl",
    "bf16,d=64,mask=none,align=2,kv=q5_0,v=q4_0",
    NULL,
};

const verify_class_list verify_classes = { "flash_fwd mixed split", FA_CASE_MANY, 1, classes, false, false };
