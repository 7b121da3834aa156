/* verify_classes_low_boxes: tiles of 64 query rows on wgmma, whose K and V of few bits become fp16 in shared memory. */
#include "verify_classes.h"

static const char *const classes[] = {
    "bf16,d=128,kv=e4m3,k_scale=1,v_scale=1",
    "fp16,d=64,mask=causal,features=lengths+pages,page=16,kv=s8,k_scale=2,v_scale=2",
    "bf16,d=64,dv=128,mask=window,features=lengths,kv=e5m2,v=s8,k_scale=4,v_scale=4",
    "fp16,d=192,dv=64,features=batch-invariant,kv=e4m3,q=fp32,v_scale=1",
    "bf16,d=64,dv=128,mask=causal,features=lengths,kv=q8_0,v=q4_0,kv_align=4",
    NULL,
};

const verify_class_list verify_classes = { "decode_wgmma", FA_CASE_FEW, 2, classes, false, true };
