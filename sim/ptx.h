/* ptx: the raw form of a kernel, between ptx_parse.c (text to operands), decode.c (operands to instructions) and flow.c
 * (control flow, registers). Errors leave through sim_ptx_fail(). */
#ifndef SIM_PTX_H
#define SIM_PTX_H
#include "program.h"
#include "ptx_names.h"
#include <setjmp.h>

typedef enum ptx_kind { O_REG, O_IMM, O_FLOAT, O_SYMBOL, O_SPECIAL, O_SINK, O_VECTOR, O_MEMORY } ptx_kind;

typedef struct ptx_operand {
    ptx_kind kind;
    bool negated;  /* !p, and -r of an immediate is folded */
    int reg, pair; /* pair: the second of d|p, or -1 */
    uint64_t imm;  /* O_IMM, O_FLOAT (bits of a double, or of a float when single) and the offset of O_MEMORY */
    bool single;
    const char *name;
    int n;
    uint32_t local;           /* O_SYMBOL: 1 + index among the variables of the function, 0 = another name */
    struct ptx_operand *elem; /* O_VECTOR: its members; O_MEMORY: [0] the base, further ones after commas */
} ptx_operand;

enum { PTX_WORDS = 16, PTX_OPERANDS = 12 };
typedef struct ptx_insn {
    const char *word[PTX_WORDS]; /* "ld", "global", "u32" */
    int words;
    uint32_t used; /* bit per word that decode.c has understood */
    ptx_operand op[PTX_OPERANDS];
    int ops;
    int guard; /* register or -1 */
    bool guard_negated;
    uint32_t line, loc, scope;
    const char *text;
    bool called;         /* in the body of a function that is called */
    const char *unknown; /* why it cannot be executed, found while it was read; NULL: decode.c will see */
} ptx_insn;

typedef struct ptx_register {
    const char *name;
    sim_type type;
    int number;
} ptx_register; /* number: how many share the prefix; -1 = the name is whole; of those without a name, which of them it is */
typedef struct ptx_label {
    const char *name;
    uint32_t at;
    const char *targets;
} ptx_label;
typedef struct ptx_scope {
    uint32_t scope;
    size_t names;
} ptx_scope; /* the one around a scope */

typedef struct ptx_function {
    sim_program *program;
    ptx_insn *insn;
    size_t insns, insn_cap;
    ptx_register *reg;
    size_t regs, reg_cap;
    ptx_label *label;
    size_t labels, label_cap;
    uint32_t calls;        /* expanded so far */
    int special[SR_COUNT]; /* the register that stands for it, or 0 */
    struct {
        uint64_t value;
        bool wide;
    } * constant;
    size_t constants, constant_cap;
    ptx_names constant_values;
    int32_t *chunk;
    size_t chunk_left; /* of kept arguments */
    size_t param_names;
    ptx_names param_names_by;
    ptx_names names, label_names; /* of registers and variables that can be seen; of labels, by scope */
    uint32_t scope, *parent;
    size_t scopes, parent_cap, scope_names; /* the scope under way, 0 = the whole function; those around each; names outside of it */
    uint32_t *shared;
    size_t shareds, shared_cap; /* the module's .shared variables that it names */
    sim_variable *local;
    size_t locals, local_cap; /* .local and function-scope .shared */
} ptx_function;

typedef struct ptx_device {
    const char *name, *at;
    uint32_t line;
} ptx_device; /* a function with a body; at: after .func */
enum { PTX_CALLS = 16 };

typedef struct ptx_parser ptx_parser;
struct ptx_parser {
    sim_module *module, *scratch; /* scratch: gone when the module is loaded */
    const char *at, *end;
    uint32_t line;
    int nested; /* operands in operands */
    ptx_device *device;
    size_t devices, device_cap;
    ptx_names variables, device_names, kernel_names;
    uint32_t functions; /* kernels begun */
    uint64_t constants; /* bytes of .const */
    const char *calling[PTX_CALLS], *leave,
        *refused; /* the functions being called; the label of the innermost one's end; why it cannot be called */
    int depth;
    uint32_t calls; /* expanded so far, in all kernels */
    uint64_t (*place)(void *, const sim_variable *);
    void *place_arg;
    char *error;
    size_t var_cap, kernel_cap, loc_cap;
    void (*body)(ptx_parser *p, ptx_function *f); /* reads one in braces: ptx_parse.c's, for calls, which are expanded in place */
    jmp_buf fail;
};

_Noreturn void sim_ptx_fail(ptx_parser *p, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void *sim_ptx_alloc(ptx_parser *p, size_t n);                                       /* zeroed; until the module is loaded */
void *sim_ptx_keep(ptx_parser *p, size_t n);                                        /* zeroed; lives with the module */
void *sim_ptx_grow(ptx_parser *p, void *array, size_t *cap, size_t n, size_t size); /* room for one more than n */
void *sim_ptx_grow_kept(ptx_parser *p, void *array, size_t *cap, size_t n, size_t size);
char *sim_ptx_copy(ptx_parser *p, const char *s, size_t n);
const sim_variable *sim_ptx_variable(const ptx_parser *p, const char *name); /* of the module */
int sim_ptx_param(const ptx_function *f, const char *name);
int sim_ptx_label(const ptx_function *f, const char *name, uint32_t from); /* as seen by instruction `from` */

/* ptx_declare.c: a type; what follows .param or another space; a variable of the function. */
sim_type sim_ptx_type(ptx_parser *p);
sim_variable sim_ptx_declaration(ptx_parser *p, sim_space space);
uint32_t sim_ptx_local(ptx_parser *p, ptx_function *f, sim_variable v); /* 1 + its index */
/* ptx_names.c: declared from now on, until the scope ends; refused where the scope has the name. */
void sim_ptx_declare(ptx_parser *p, ptx_function *f, uint32_t register_);
void sim_ptx_name_local(ptx_parser *p, ptx_function *f, uint32_t local);
uint32_t sim_ptx_find_local(const ptx_function *f, const char *name); /* 1 + its index; 0: none */
void sim_ptx_name_label(ptx_parser *p, ptx_function *f, const char *name, uint32_t scope, uint32_t label);
ptx_scope sim_scope_open(ptx_parser *p, ptx_function *f);
void sim_scope_close(ptx_function *f, ptx_scope around);
/* ptx_layout.c */
void sim_ptx_use(ptx_parser *p, ptx_function *f, const char *name);        /* an operand that is no local name */
void sim_ptx_layout(ptx_parser *p, ptx_function *f);                       /* the shared memory of a kernel */
sim_variable sim_ptx_room(ptx_parser *p, ptx_function *f, sim_variable v); /* in the local memory of a thread */
void sim_ptx_constants(ptx_parser *p, const sim_variable *v);              /* one more in .const */
/* ptx_call.c */
void sim_call_scan(ptx_parser *p);                                               /* before the text is read */
void sim_call(ptx_parser *p, ptx_function *f, ptx_insn call, const char *start); /* after its opcode */

/* decode.c: raw instructions to sim_insn, whose arguments are still registers (see flow.c). */
void sim_decode(ptx_parser *p, ptx_function *f);
/* decode_wgmma.c: registers of a thread at the launch of a kernel with setmaxnreg, of .maxnreg, .maxntid and .minnctapersm;
 * 0: they do not tell, as where one of the latter two is missing. */
uint32_t sim_registers_of(const sim_program *p, uint32_t most, uint32_t threads, uint32_t blocks);
/* flow.c: joins, liveness, register slots, tracking of undefined registers. */
void sim_flow(ptx_parser *p, ptx_function *f);

/* Arguments before flow.c: a register's number, or ~row of the pool. Row r starts at byte r * 256. */
#endif
