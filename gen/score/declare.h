/* declare: what stands at the top of a score program: operands, and every name that the text defines. */
#ifndef FA_GEN_SCORE_DECLARE_H
#define FA_GEN_SCORE_DECLARE_H
#include "ir.h"
#include "lexer.h"
#include "names.h"
#include "shape.h"

typedef enum fa_score_global_kind {
    FA_SCORE_GLOBAL_CONSTANT, /* of: a node */
    FA_SCORE_GLOBAL_OPERAND,  /* of: its number */
    FA_SCORE_GLOBAL_FUNCTION  /* of: a node of the tree */
} fa_score_global_kind;

typedef struct fa_score_global {
    fa_score_token token;
    fa_score_global_kind kind;
    int32_t of;
} fa_score_global;

typedef struct fa_score_globals {
    int n;
    fa_score_global global[FA_SCORE_GLOBALS_MAX];
} fa_score_globals;

/* FA_INVALID: too many, one of that name, or a name of the language; score, mask and sink are functions. */
fa_status fa_score_global_add(fa_score_globals *g, const char *name, const fa_score_token *title, fa_score_global_kind kind, int32_t of);
const fa_score_global *fa_score_global_find(const fa_score_globals *g, const fa_score_token *title);

void fa_score_declare_begin(fa_score_operand *o, const fa_score_token *title);
fa_status fa_score_declare_array(fa_score_operand *o, const char *name, fa_score_element element, const fa_score_token *shape);
/* type: the string "int" or "float", NULL: none. v: the value, and its bounds where n is 3. */
fa_status fa_score_declare_scalar(fa_score_operand *o, const char *name, const fa_score_token *at, const fa_score_token *type,
                                  const double *v, int n);
#endif
