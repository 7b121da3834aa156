/* decode: what operand.c offers the functions of decode_table.c, one per first word of an opcode. */
#ifndef SIM_DECODE_H
#define SIM_DECODE_H
#include "ptx.h"

enum { DEC_ARGS = 144 };
typedef struct dec {
    ptx_parser *p;
    ptx_function *f;
    ptx_insn *i;
    sim_insn *o;
    int32_t arg[DEC_ARGS];
    int n;
    char why[512]; /* of an instruction that cannot be executed */
    jmp_buf unknown;
} dec;

/* false: not this one, try the tables of alu.h. */
typedef struct dec_row {
    const char *op;
    bool (*decode)(dec *d);
} dec_row;
extern const dec_row sim_decoders[];

/* This instruction is not one the simulator executes: the kernel loads, and a launch that comes to it ends with this reason. */
_Noreturn void sim_dec_fail(dec *d, const char *why);
_Noreturn void sim_dec_refuse(dec *d, const char *why);         /* the text as a whole is wrong: it does not load */
bool sim_dec_mod(dec *d, const char *word);                     /* consumes a modifier */
int sim_dec_one_of(dec *d, const char *const *words, int none); /* index of the one that is there */
int sim_dec_round(dec *d);                                      /* ROUND_..., -1: none given */
sim_type sim_dec_type(dec *d);
void sim_dec_ops(dec *d, int least, int most);
char sim_dec_class(dec *d, const ptx_operand *o); /* 'w', 'q', 'p' of a register, else 0 */
int32_t sim_dec_constant(dec *d, uint64_t v, bool wide);
int32_t sim_dec_use(dec *d, const ptx_operand *o, char cls, sim_type t);
void sim_dec_push(dec *d, int32_t arg, bool negated);
void sim_dec_def(dec *d, const ptx_operand *o, char cls);
void sim_dec_in(dec *d, const ptx_operand *o, char cls, sim_type t);
void sim_dec_pair(dec *d, const ptx_operand *o);
void sim_dec_address(dec *d, const ptx_operand *o, sim_space space);
void sim_dec_policy(dec *d, int n);
static inline char sim_type_class(sim_type t)
{
    return t == T_PRED ? 'p' : sim_type_bytes(t) == 8 ? 'q' : 'w';
} /* of a register */
bool sim_dec_hints(dec *d); /* consumes cache hints. true: there is a cache-policy operand */

/* decode_memory.c */
sim_space sim_dec_space(dec *d); /* .global, .shared::cta, ...; none: generic */
bool sim_decode_atom(dec *d);
bool sim_decode_cp(dec *d);
bool sim_decode_ldmatrix(dec *d);
bool sim_decode_load_store(dec *d);
bool sim_decode_mbarrier(dec *d);
bool sim_decode_mma(dec *d);
bool sim_decode_movmatrix(dec *d);
bool sim_decode_prefetch(dec *d);

/* decode_move.c */
bool sim_decode_carry(dec *d);
bool sim_decode_cvt(dec *d);
bool sim_decode_cvta(dec *d);
bool sim_decode_isspacep(dec *d);
bool sim_decode_logic(dec *d);
bool sim_decode_lop3(dec *d);
bool sim_decode_mov(dec *d);
bool sim_decode_not(dec *d);
bool sim_decode_selp(dec *d);
bool sim_decode_setp(dec *d);
bool sim_decode_slct(dec *d);
bool sim_decode_testp(dec *d);

/* decode_bulk.c */
bool sim_decode_bulk(dec *d);                   /* cp.async.bulk, cp.reduce.async.bulk; false: another cp */
bool sim_decode_tensormap(dec *d, sim_space s); /* prefetch.tensormap */

/* decode_wgmma.c */
bool sim_decode_registers(dec *d);
bool sim_decode_wgmma(dec *d);
#endif
