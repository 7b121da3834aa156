/* rule: nodes that ggml's own kernels compute at least as fast, as measured; asked where ggml computes the node at all. */
#ifndef FA_GGML_RULE_H
#define FA_GGML_RULE_H
#include "claim.h"

/* What a node's mask is: bits, for rules of several. */
typedef enum fa_ggml_form {
    FA_GGML_NO_MASK = 1,
    FA_GGML_FEW_ROWS = 2, /* a mask that is added, and not looked at */
    FA_GGML_A_BAND = 4,   /* of rows that were looked at */
    FA_GGML_NO_BAND = 8,
    FA_GGML_DISTANCES = 16, /* of max_bias */
    FA_GGML_ANY_MASK = 30,
    FA_GGML_ANY_FORM = 31
} fa_ggml_form;

enum { FA_GGML_RULES = 16 };
typedef struct fa_ggml_rule { /* of a most 0 is any number */
    bool plain, blocks;       /* of neither, of few bits */
    int32_t forms;
    int32_t d_least, d_most; /* of Q and K */
    int32_t queries_least, queries_most;
    int32_t rows_least; /* queries times heads of a KV head */
    int32_t group_most; /* heads of a KV head */
    int32_t keys_most;
    bool whole;          /* keys are multiples of 256, as llama.cpp pads them */
    bool hinted;         /* the mask leaves few of the keys, and the node says how many */
    bool narrow;         /* K and V in 16 bits find no room in the workspace, not those of half the KV heads */
    bool cut;            /* the graph goes in parts */
    const char *because; /* what was measured */
} fa_ggml_rule;

/* How a node would run here. */
typedef struct fa_ggml_way {
    bool unpacks; /* K and V of few bits find room in 16 bits, half of the KV heads at least */
    bool cuts;    /* its graph is handed to ggml in parts: no tier captures it whole */
} fa_ggml_way;

extern const fa_ggml_rule fa_ggml_rules[FA_GGML_RULES];
/* The first that holds; NULL: fagen is to compute it. */
const fa_ggml_rule *fa_ggml_slower(const fa_ggml_claim *c, fa_ggml_form form, fa_ggml_way way);
#endif
