/* decode_wgmma: wgmma.mma_async of f16, bf16, tf32 and numbers of 8 bits into f32, of s8 into s32, the instructions that order it, and
 * setmaxnreg. */
#include "decode.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

static uint64_t constant(dec *d, int n, const char *what)
{
    if (n >= d->i->ops || d->i->op[n].kind != O_IMM)
        sim_dec_fail(d, what);
    return d->i->op[n].imm;
}

/* "m64n128k16": the columns; 0: another shape. *deep: k, which is 8, 16 or 32. */
static int columns(dec *d, int *deep)
{
    for (int k = 1; k < d->i->words; k++) {
        const char *s = d->i->word[k];
        if (d->i->used >> k & 1 || strncmp(s, "m64n", 4))
            continue;
        char *end;
        long n = strtol(s + 4, &end, 10);
        *deep = !strcmp(end, "k32") ? 32 : !strcmp(end, "k16") ? 16 : !strcmp(end, "k8") ? 8 : 0;
        if (!*deep || n < 8 || n > 256 || n % 8)
            return 0;
        d->i->used |= 1u << k;
        return (int)n;
    }
    return 0;
}

static bool product(dec *d)
{
    sim_insn *o = d->o;
    int deep = 0, n = columns(d, &deep);
    if (!n)
        sim_dec_fail(d, "this shape of wgmma is not simulated; m64nNk16 is, m64nNk8 of tf32 and m64nNk32 of e4m3, e5m2 and s8, with N a "
                        "multiple of 8 up to 256");
    sim_type b = sim_dec_type(d), a = sim_dec_type(d), r = sim_dec_type(d);
    bool tf = a == T_TF32, half = r == T_F16, eight = a == T_E4M3 || a == T_E5M2, b_eight = b == T_E4M3 || b == T_E5M2;
    bool integer = a == T_S8; /* whose operands have no scales */
    if ((a != b && !(eight && b_eight)) ||
        deep != (tf                 ? 8
                 : eight || integer ? 32
                                    : 16) ||
        (!tf && !eight && !integer && a != T_F16 && a != T_BF16) || (r != (integer ? T_S32 : T_F32) && !(half && a == T_F16)))
        sim_dec_fail(d, "wgmma of these types is not simulated");
    sim_dec_ops(d, 4, 8); /* d, a, b, scale-d, scale-a, scale-b and, of 16 bits, {, trans-a if A is in shared memory}, trans-b */
    const ptx_operand *op = d->i->op;
    bool shared = op[1].kind != O_VECTOR;
    int ops = integer ? 4 : tf || eight ? 6 : shared ? 8 : 7, regs = half ? n / 4 : n / 2;
    sim_dec_ops(d, ops, ops);
    if (op[0].kind != O_VECTOR || op[0].n != regs)
        sim_dec_fail(d, "wrong number of accumulator registers");
    if (!shared && op[1].n != 4)
        sim_dec_fail(d, "wrong number of registers for A");
    for (int k = 0; k < regs; k++) {
        if (op[0].elem[k].kind != O_REG)
            sim_dec_fail(d, "an accumulator is no register");
        sim_dec_def(d, &op[0].elem[k], 'w');
    }
    for (int k = 0; k < 4 && !shared; k++)
        sim_dec_in(d, &op[1].elem[k], 'w', T_B32);
    if (shared)
        sim_dec_in(d, &op[1], 'q', T_B64);
    sim_dec_in(d, &op[2], 'q', T_B64);
    sim_dec_push(d, sim_dec_use(d, &op[3], 'p', T_PRED), false);
    o->round = op[3].negated;
    uint64_t scale_a = integer ? 1 : constant(d, 4, "the scale of A must be 1 or -1"),
             scale_b = integer ? 1 : constant(d, 5, "the scale of B must be 1 or -1");
    uint64_t trans_a = shared && ops > 6 ? constant(d, 6, "the transposition of A must be 0 or 1") : 0,
             trans_b = ops <= 6 ? 0 : constant(d, shared ? 7 : 6, "the transposition of B must be 0 or 1");
    if ((scale_a + 1) & ~2ull || (scale_b + 1) & ~2ull)
        sim_dec_fail(d, "the scale of A and of B must be 1 or -1");
    if (trans_a > 1 || trans_b > 1)
        sim_dec_fail(d, "the transposition of A and of B must be 0 or 1");
    o->sub = (uint8_t)((shared ? WGMMA_SHARED_A : 0) | (scale_a == 1 ? 0 : WGMMA_MINUS_A) | (scale_b == 1 ? 0 : WGMMA_MINUS_B) |
                       (trans_a ? WGMMA_TRANS_A : 0) | (trans_b ? WGMMA_TRANS_B : 0) | (b == T_E5M2 ? WGMMA_B_E5M2 : 0));
    o->run = sim_run_wgmma, o->cls = C_MATRIX, o->unknown = U_RUN, o->type = (uint8_t)a, o->type2 = (uint8_t)r, o->count = (uint8_t)(n / 8),
    o->flags |= F_TIED;
    return true;
}

bool sim_decode_wgmma(dec *d)
{
    bool fence = sim_dec_mod(d, "fence"), commit = sim_dec_mod(d, "commit_group"), wait = sim_dec_mod(d, "wait_group"),
         mma = sim_dec_mod(d, "mma_async");
    if (d->p->module->target != 90 || d->p->module->target_suffix != 'a')
        sim_dec_fail(d, "wgmma exists on sm_90a only");
    if (!sim_dec_mod(d, "sync") || !sim_dec_mod(d, "aligned"))
        sim_dec_fail(d, ".sync.aligned is missing");
    if (d->i->guard >= 0)
        sim_dec_fail(d, "a predicated wgmma is not simulated; branch around it");
    d->f->program->proxy = true;
    if (mma)
        return product(d);
    d->o->cls = C_CONTROL;
    sim_dec_ops(d, wait ? 1 : 0, wait ? 1 : 0);
    if (wait)
        d->o->imm = (int64_t)constant(d, 0, "the number of groups must be a constant");
    if (!(fence || commit || wait))
        sim_dec_fail(d, "this wgmma instruction is not simulated");
    d->o->run = fence ? sim_run_wgmma_fence : commit ? sim_run_wgmma_commit : sim_run_wgmma_wait;
    return true;
}

bool sim_decode_registers(dec *d)
{
    bool take = sim_dec_mod(d, "inc"), give = !take && sim_dec_mod(d, "dec");
    if (d->p->module->target < 90 || !d->p->module->target_suffix)
        sim_dec_fail(d, "setmaxnreg exists on sm_90a and its like only");
    if (!take && !give)
        sim_dec_fail(d, "setmaxnreg is .inc or .dec");
    if (!sim_dec_mod(d, "sync") || !sim_dec_mod(d, "aligned") || sim_dec_type(d) != T_U32)
        sim_dec_fail(d, ".sync.aligned.u32 is missing");
    if (d->i->guard >= 0)
        sim_dec_fail(d, "a predicated setmaxnreg is not simulated; branch around it");
    sim_dec_ops(d, 1, 1);
    uint64_t n = constant(d, 0, "the number of registers must be a constant");
    if (n < 24 || n > 256 || n % 8)
        sim_dec_fail(d, "the number of registers must be a multiple of 8 from 24 to 256");
    d->o->imm = (int64_t)n;
    d->f->program->resizes = true;
    d->o->run = sim_run_registers, d->o->cls = C_CONTROL, d->o->sub = take ? REGISTERS_INC : REGISTERS_DEC;
    return true;
}

/* As ptxas 13.0 does: all that the bounds leave of a multiprocessor's 65536 registers, but no more than the largest .inc asks for. */
uint32_t sim_registers_of(const sim_program *p, uint32_t most, uint32_t threads, uint32_t blocks)
{
    uint32_t bound = threads && blocks ? 65536 / (((threads + 127) & ~127u) * blocks) & ~7u : 0, largest = 0;
    if (most && (!bound || most < bound))
        bound = (most + 7) & ~7u;
    for (uint32_t k = 0; k < p->insns; k++)
        if (p->code[k].kind == K_RUN && p->code[k].run == sim_run_registers && p->code[k].sub == REGISTERS_INC && p->code[k].imm > largest)
            largest = (uint32_t)p->code[k].imm;
    if (largest && largest < bound)
        bound = largest;
    return bound > 256 ? 256 : bound;
}
