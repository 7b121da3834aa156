/* ptx_parse: PTX text to modules, variables and raw instructions. */
#include "ptx_text.h"
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* ---- declarations ---- */

static void registers(ptx_parser *p, ptx_function *f)
{
    sim_type t = sim_ptx_type(p);
    do {
        char *s = sim_text_name(p, false);
        ptx_operand count = { .imm = 1 };
        bool many = sim_text_take(p, '<');
        if (many) {
            sim_text_number(p, &count);
            sim_text_need(p, '>');
        }
        if (count.imm > 1u << 20 || f->regs + count.imm > 1u << 22)
            sim_ptx_fail(p, p->line, "too many registers");
        for (uint64_t k = 0; k < count.imm; k++) {
            f->reg = sim_ptx_grow(p, f->reg, &f->reg_cap, f->regs, sizeof *f->reg);
            f->reg[f->regs++] = (ptx_register){ k ? NULL : s, t, k ? (int)k : many ? (int)count.imm : -1 };
        }
        if (count.imm)
            sim_ptx_declare(p, f, (uint32_t)(f->regs - count.imm));
    } while (sim_text_take(p, ','));
    sim_text_need(p, ';');
}

static void add_variable(ptx_parser *p, sim_variable v)
{
    if (v.space == SP_CONST)
        sim_ptx_constants(p, &v);
    if (v.space == SP_GLOBAL || v.space == SP_CONST) {
        v.address = p->place ? p->place(p->place_arg, &v) : 0;
        if (!v.address)
            longjmp(p->fail, 1); /* with no message, as where memory is short */
    }
    p->module->vars = sim_ptx_grow_kept(p, p->module->vars, &p->var_cap, p->module->nvars, sizeof v);
    sim_names_add(p, &p->variables, v.name, strlen(v.name), 0, p->module->nvars);
    p->module->vars[p->module->nvars++] = v;
}

static void loc(ptx_parser *p, uint32_t *current)
{
    ptx_operand n[3] = { 0 };
    uint32_t line = p->line, inlined = 0;
    for (int i = 0; i < 3; i++)
        sim_text_number(p, &n[i]);
    if (sim_text_take(p, ',')) { /* function_name label[+offset], inlined_at file line column */
        if (!sim_text_word(p, "function_name"))
            sim_ptx_fail(p, line, "unknown attribute of .loc");
        sim_text_name(p, false);
        ptx_operand o = { 0 };
        if (sim_text_take(p, '+'))
            sim_text_number(p, &o);
        sim_text_need(p, ',');
        if (!sim_text_word(p, "inlined_at"))
            sim_ptx_fail(p, line, "unknown attribute of .loc");
        for (int i = 0; i < 3; i++) {
            sim_text_number(p, &o);
            if (i == 1)
                inlined = (uint32_t)o.imm;
        }
    }
    p->module->locs = sim_ptx_grow_kept(p, p->module->locs, &p->loc_cap, p->module->nlocs, sizeof *p->module->locs);
    p->module->locs[p->module->nlocs++] = (sim_loc){ (const char *)(uintptr_t)n[0].imm, (uint32_t)n[1].imm, inlined };
    *current = p->module->nlocs;
}

/* ---- functions ---- */

static void parameters(ptx_parser *p, ptx_function *f)
{
    uint32_t at = 0;
    if (!sim_text_take(p, '(') || sim_text_take(p, ')'))
        return;
    size_t cap = 0;
    do {
        if (!sim_text_word(p, ".param"))
            sim_ptx_fail(p, p->line, "expected .param");
        sim_variable v = sim_ptx_declaration(p, SP_PARAM);
        at = (at + v.align - 1) & ~(v.align - 1);
        sim_names_add(p, &f->param_names_by, v.name, strlen(v.name), 0, (uint32_t)f->param_names);
        f->program->params = sim_ptx_grow_kept(p, f->program->params, &cap, f->param_names, sizeof *f->program->params);
        f->program->params[f->param_names++] = (sim_param){ at, v.size };
        at += v.size;
        if (at > 32764)
            sim_ptx_fail(p, p->line, "kernel %.200s uses too much parameter space: %u bytes with %.200s, at most 32764", f->program->name,
                         at, v.name);
    } while (sim_text_take(p, ','));
    sim_text_need(p, ')');
    f->program->nparams = (uint32_t)f->param_names, f->program->param_bytes = at;
}

static void instruction(ptx_parser *p, ptx_function *f, uint32_t at_loc)
{
    f->insn = sim_ptx_grow(p, f->insn, &f->insn_cap, f->insns, sizeof *f->insn);
    ptx_insn *i = &f->insn[f->insns];
    *i = (ptx_insn){ .guard = -1, .line = p->line, .loc = at_loc, .scope = f->scope, .called = p->leave != NULL };
    const char *start = p->at;
    if (sim_text_take(p, '@')) {
        i->guard_negated = sim_text_take(p, '!');
        char *s = sim_text_name(p, false);
        if ((i->guard = sim_text_find_register(f, s)) < 0)
            sim_ptx_fail(p, i->line, "register %s is not declared", s);
    }
    sim_text_blank(p);
    char *opcode = sim_text_name(p, true);
    for (char *s = opcode, *dot; s; s = dot) {
        dot = strchr(s, '.');
        if (dot)
            *dot++ = 0;
        if (i->words == PTX_WORDS)
            sim_ptx_fail(p, i->line, "too many modifiers");
        i->word[i->words++] = s;
    }
    i->used = 1;
    if (!strcmp(i->word[0], "call")) {
        sim_call(p, f, *i, start);
        return;
    }
    if (p->leave && !strcmp(i->word[0], "ret"))
        i->word[0] = "bra", i->op[i->ops++] = (ptx_operand){ .kind = O_SYMBOL, .reg = -1, .pair = -1, .name = p->leave };
    while (sim_text_peek(p) && sim_text_peek(p) != ';') {
        if (i->ops == PTX_OPERANDS)
            sim_ptx_fail(p, i->line, "too many operands");
        sim_text_operand(p, f, &i->op[i->ops++]);
        if (!sim_text_take(p, ',') && sim_text_peek(p) != ';')
            sim_ptx_fail(p, i->line, "expected ',' or ';' before \"%.20s\"", p->at);
    }
    i->text = sim_text_squeeze(p, start);
    sim_text_need(p, ';');
    f->insns++;
}

static void body(ptx_parser *p, ptx_function *f)
{
    ptx_scope around[64];
    int depth = 0;
    uint32_t at_loc = 0;
    sim_text_need(p, '{');
    for (;;) {
        char c = sim_text_peek(p);
        if (!c)
            sim_ptx_fail(p, p->line, "the body of %s is not closed", f->program->name);
        if (c == '{') {
            if (depth == 64)
                sim_ptx_fail(p, p->line, "scopes are nested too deeply");
            around[depth++] = sim_scope_open(p, f);
            p->at++;
        } else if (c == '}') {
            p->at++;
            if (!depth--)
                break;
            sim_scope_close(f, around[depth]);
        } else if (c == ';') {
            p->at++;
        } else if (c == '.') {
            uint32_t line = p->line;
            p->at++;
            char *s = sim_text_name(p, false);
            if (!strcmp(s, "reg"))
                registers(p, f);
            else if (!strcmp(s, "loc"))
                loc(p, &at_loc);
            else if (!strcmp(s, "pragma"))
                sim_text_string(p), sim_text_need(p, ';');
            else if (!strcmp(s, "local") || !strcmp(s, "shared")) {
                sim_variable v = sim_ptx_declaration(p, *s == 'l' ? SP_LOCAL : SP_SHARED);
                sim_text_need(p, ';');
                if (v.space == SP_SHARED && p->leave)
                    p->refused = "a function that declares shared memory is not called in the simulator: %s";
                sim_ptx_local(p, f, v.space == SP_LOCAL ? sim_ptx_room(p, f, v) : v);
            } else if (!strcmp(s, "param")) { /* of a call */
                sim_variable v = sim_ptx_declaration(p, SP_LOCAL);
                v.passed = true;
                sim_ptx_local(p, f, sim_ptx_room(p, f, v));
                sim_text_need(p, ';');
            } else if (!strcmp(s, "global") || !strcmp(s, "const")) {
                sim_variable v = sim_ptx_declaration(p, *s == 'g' ? SP_GLOBAL : SP_CONST);
                if (p->leave)
                    p->refused = "a function that declares global memory is not called in the simulator: %s";
                else
                    add_variable(p, v);
                sim_text_need(p, ';');
            } else {
                sim_ptx_fail(p, line, "unknown directive .%s", s);
            }
        } else {
            if (sim_text_in_name(c) && c != '@') { /* a label? */
                const char *at = p->at;
                uint32_t line = p->line;
                char *s = sim_text_name(p, false);
                if (sim_text_peek(p) == ':') {
                    p->at++;
                    if (sim_text_word(p, ".callprototype") || sim_text_word(p, ".calltargets")) { /* of calls through a register */
                        while (sim_text_peek(p) && *p->at != ';')
                            p->at++;
                        sim_text_need(p, ';');
                        continue;
                    }
                    f->label = sim_ptx_grow(p, f->label, &f->label_cap, f->labels, sizeof *f->label);
                    f->label[f->labels] = (ptx_label){ .name = s, .at = (uint32_t)f->insns };
                    sim_ptx_name_label(p, f, s, f->scope, (uint32_t)f->labels);
                    if (sim_text_word(p, ".branchtargets")) {
                        sim_text_blank(p);
                        const char *t = p->at;
                        while (p->at < p->end && *p->at != ';')
                            p->line += *p->at++ == '\n';
                        f->label[f->labels].targets = sim_ptx_copy(p, t, (size_t)(p->at - t));
                        sim_text_need(p, ';');
                    }
                    f->labels++;
                    continue;
                }
                p->at = at, p->line = line;
            }
            instruction(p, f, at_loc);
        }
    }
}

static void function(ptx_parser *p, bool entry)
{
    ptx_function f = { 0 };
    sim_program prog = { .module = p->module, .max_threads = 1024 };
    f.program = &prog;
    p->functions++;
    if (!entry) { /* (return) name (parameters): read where it is called */
        while (sim_text_peek(p) && sim_text_peek(p) != '{' && sim_text_peek(p) != ';') {
            if (*p->at == '"')
                sim_text_string(p);
            else
                p->at++;
        }
        if (sim_text_peek(p) == '{')
            sim_text_braces(p);
        else
            sim_text_need(p, ';');
        return;
    }
    prog.name = sim_text_name(p, false);
    uint32_t begin = p->line;
    parameters(p, &f);
    uint32_t most = 0, bound = 0, blocks = 0;
    while (sim_text_peek(p) == '.') {
        p->at++;
        uint32_t line = p->line;
        char *s = sim_text_name(p, false);
        if (!strcmp(s, "noreturn") || !strcmp(s, "explicitcluster"))
            continue;
        if (!strcmp(s, "pragma")) {
            sim_text_string(p), sim_text_need(p, ';');
            continue;
        }
        ptx_operand o[3] = { { .imm = 1 }, { .imm = 1 }, { .imm = 1 } };
        int n = 0;
        do
            sim_text_number(p, &o[n++]);
        while (n < 3 && sim_text_take(p, ','));
        for (int k = 0; k < n; k++)
            if (!o[k].imm)
                sim_ptx_fail(p, line, "kernel %.200s: .%s needs numbers above 0", prog.name, s);
        if (!strcmp(s, "reqnctapercluster") && p->module->target < 90)
            sim_ptx_fail(p, line, "kernel %.200s: .%s needs a target of sm_90 or later", prog.name, s);
        uint64_t threads = o[0].imm * o[1].imm * o[2].imm;
        if (!strcmp(s, "maxnreg"))
            most = (uint32_t)o[0].imm;
        if (!strcmp(s, "minnctapersm") && o[0].imm)
            blocks = (uint32_t)o[0].imm;
        if (!strcmp(s, "maxntid") || !strcmp(s, "reqntid"))
            bound = (uint32_t)threads;
        if (!strcmp(s, "maxntid"))
            prog.max_threads = threads && threads < 1024 ? (int)threads : 1024;
        else if (!strcmp(s, "reqntid"))
            for (int k = 0; k < 3; k++)
                prog.required[k] = (int)o[k].imm;
        else if (!strcmp(s, "reqnctapercluster")) {
            for (int k = 0; k < 3; k++)
                prog.cluster[k] = o[k].imm < SIM_RANK_BITS ? (uint32_t)o[k].imm : SIM_RANK_BITS; /* more is refused at launch */
        } else if (strcmp(s, "minnctapersm") && strcmp(s, "maxnreg") && strcmp(s, "maxnctapersm") && strcmp(s, "maxclusterrank"))
            sim_ptx_fail(p, line, "unknown directive .%s", s);
    }
    if (sim_text_take(p, ';'))
        return; /* a declaration */
    if (sim_names_find(&p->kernel_names, prog.name, strlen(prog.name), 0))
        sim_ptx_fail(p, begin, "kernel %.200s is defined twice", prog.name);
    sim_names_add(p, &p->kernel_names, prog.name, strlen(prog.name), 0, p->module->nkernels);
    body(p, &f);
    sim_ptx_layout(p, &f);
    sim_decode(p, &f);
    prog.registers = sim_registers_of(&prog, most, bound, blocks);
    sim_flow(p, &f);
    p->module->kernels = sim_ptx_grow_kept(p, p->module->kernels, &p->kernel_cap, p->module->nkernels, sizeof prog);
    p->module->kernels[p->module->nkernels++] = prog;
}

static void target(ptx_parser *p)
{
    char *s = sim_text_name(p, false);
    char *stop = s;
    if (strncmp(s, "sm_", 3))
        sim_ptx_fail(p, p->line, "unknown target %s", s);
    p->module->target = (int)strtol(s + 3, &stop, 10);
    p->module->target_suffix = *stop;
    while (sim_text_take(p, ','))
        sim_text_name(p, false);
}

static void files(ptx_parser *p)
{
    /* .file may follow the .loc that uses it: numbers become names at the end */
    sim_module *m = p->module;
    for (uint32_t i = 0; i < m->nlocs; i++) {
        uintptr_t k = (uintptr_t)m->locs[i].file;
        m->locs[i].file = k < m->nfiles && m->files[k] ? m->files[k] : "?";
    }
}

static void module(ptx_parser *p)
{
    size_t file_cap = 0;
    bool versioned = false;
    while (sim_text_peek(p)) {
        uint32_t line = p->line;
        if (!sim_text_take(p, '.'))
            sim_ptx_fail(p, line, "expected a directive before \"%.20s\"", p->at);
        char *s = sim_text_name(p, false);
        ptx_operand o = { 0 };
        if (!strcmp(s, "version"))
            sim_text_number(p, &o), versioned = true;
        else if (!versioned)
            sim_ptx_fail(p, line, "the text does not start with .version");
        else if (!strcmp(s, "target"))
            target(p);
        else if (!strcmp(s, "address_size")) {
            sim_text_number(p, &o);
            if (o.imm != 64)
                sim_ptx_fail(p, line, "only 64-bit addresses are simulated");
        } else if (!strcmp(s, "visible") || !strcmp(s, "extern") || !strcmp(s, "weak") || !strcmp(s, "common"))
            continue;
        else if (!strcmp(s, "entry"))
            function(p, true);
        else if (!strcmp(s, "func"))
            function(p, false);
        else if (!strcmp(s, "global") || !strcmp(s, "const") || !strcmp(s, "shared")) {
            sim_variable v = sim_ptx_declaration(p, *s == 'g' ? SP_GLOBAL : *s == 'c' ? SP_CONST : SP_SHARED);
            sim_text_need(p, ';');
            add_variable(p, v);
        } else if (!strcmp(s, "file")) {
            sim_text_number(p, &o);
            char *path = sim_text_string(p);
            while (sim_text_take(p, ','))
                sim_text_number(p, &(ptx_operand){ 0 });
            if (o.imm > 65535)
                sim_ptx_fail(p, line, "file number %llu is too large", (unsigned long long)o.imm);
            while (p->module->nfiles <= o.imm) {
                p->module->files = sim_ptx_grow_kept(p, p->module->files, &file_cap, p->module->nfiles, sizeof *p->module->files);
                p->module->files[p->module->nfiles++] = NULL;
            }
            p->module->files[o.imm] = path;
        } else if (!strcmp(s, "section")) {
            sim_text_take(p, '.');
            sim_text_name(p, true);
            sim_text_braces(p);
        } else if (!strcmp(s, "pragma"))
            sim_text_string(p), sim_text_need(p, ';');
        else if (!strcmp(s, "alias")) {
            while (sim_text_peek(p) && sim_text_peek(p) != ';')
                p->at++;
            sim_text_need(p, ';');
        } else
            sim_ptx_fail(p, line, "unknown directive .%s", s);
    }
    if (!versioned)
        sim_ptx_fail(p, p->line, "the text does not start with .version");
    files(p);
}

sim_module *sim_module_load(const char *ptx, size_t n, uint64_t (*place)(void *, const sim_variable *), void *arg, char error[1024])
{
    ptx_parser p = { .at = ptx, .end = ptx + n, .line = 1, .place = place, .place_arg = arg, .body = body, .error = error };
    error[0] = 0;
    p.module = calloc(1, sizeof *p.module);
    p.scratch = calloc(1, sizeof *p.scratch);
    if (!p.module || !p.scratch) {
        free(p.module), free(p.scratch);
        return NULL;
    }
    locale_t plain =
        newlocale(LC_ALL_MASK, "C", (locale_t)0); /* numbers have a point, whatever the caller's locale says; "C" needs no memory */
    locale_t callers = uselocale(plain);
    if (setjmp(p.fail)) {
        uselocale(callers);
        freelocale(plain);
        sim_module_free(p.module);
        sim_module_free(p.scratch);
        return NULL;
    }
    if (memmem(ptx, n, ".func", 5))
        sim_call_scan(&p);
    module(&p);
    uselocale(callers);
    freelocale(plain);
    sim_module_free(p.scratch);
    return p.module;
}
