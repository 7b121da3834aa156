/* decode: what decode.c offers the functions of decode_table.c, one per first word of an opcode. */
#ifndef SIM_DECODE_H
#define SIM_DECODE_H
#include "ptx.h"

enum { DEC_ARGS = 64 };
typedef struct dec {
    ptx_parser *p;
    ptx_function *f;
    ptx_insn *i;
    sim_insn *o;
    int32_t arg[DEC_ARGS];
    int n;
} dec;

/* false: not this one, try the tables of alu.h. */
typedef struct dec_row { const char *op; bool (*decode)(dec *d); } dec_row;
extern const dec_row sim_decoders[];

_Noreturn void dec_fail(dec *d, const char *why);
bool dec_mod(dec *d, const char *word);                               /* consumes a modifier */
int dec_one_of(dec *d, const char *const *words, int none);          /* index of the one that is there */
int dec_round(dec *d);                                                /* ROUND_..., -1: none given */
sim_type dec_type(dec *d);
void dec_ops(dec *d, int least, int most);
char dec_class(dec *d, const ptx_operand *o);                         /* 'w', 'q', 'p' of a register, else 0 */
int32_t dec_constant(dec *d, uint64_t v, bool wide);
uint64_t dec_symbol(dec *d, const ptx_operand *o, sim_space *space);
int32_t dec_use(dec *d, const ptx_operand *o, char cls, sim_type t);
void dec_push(dec *d, int32_t arg, bool negated);
void dec_def(dec *d, const ptx_operand *o, char cls);
void dec_in(dec *d, const ptx_operand *o, char cls, sim_type t);
void dec_pair(dec *d, const ptx_operand *o);
void dec_address(dec *d, const ptx_operand *o, sim_space space);
void dec_policy(dec *d, int n);
#endif
