/* report: the words of a defect. What happened; the instruction and its PTX line; the source line; who; where. */
#include "exec.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sim_report_where(const sim_program *p, const sim_insn *i, char *to, size_t room)
{
    const sim_module *m = p->module;
    to[0] = 0;
    if (!i->loc || i->loc > m->nlocs) return 0;
    const sim_loc *l = &m->locs[i->loc - 1];
    return l->at ? snprintf(to, room, "%s:%u, inlined at line %u", l->file, l->line, l->at) : snprintf(to, room, "%s:%u", l->file, l->line);
}

int sim_report_address(sim_block *b, uint64_t address, char *to, size_t room)
{
    const sim_launch *l = b->launch;
    const sim_alloc *a = sim_memory_find(l->memory, address);
    if (!a) a = sim_memory_find(l->variables, address);
    if (!a) a = sim_memory_near(l->memory, address);
    if (!a) return snprintf(to, room, "address 0x%llx; no memory is allocated", (unsigned long long)address);
    int64_t off = (int64_t)(address - a->base);
    const char *what = a->name ? a->name : "allocation";
    if (address < a->base) return snprintf(to, room, "address 0x%llx, %lld bytes before the %s at 0x%llx of %llu bytes", (unsigned long long)address, (long long)-off, what,
                                           (unsigned long long)a->base, (unsigned long long)a->size);
    if ((uint64_t)off >= a->size) return snprintf(to, room, "address 0x%llx, %llu bytes past the end of the %s at 0x%llx of %llu bytes", (unsigned long long)address,
                                                  (unsigned long long)((uint64_t)off - a->size), what, (unsigned long long)a->base, (unsigned long long)a->size);
    return snprintf(to, room, "address 0x%llx, byte %lld of the %s at 0x%llx of %llu bytes", (unsigned long long)address, (long long)off, what,
                    (unsigned long long)a->base, (unsigned long long)a->size);
}

int sim_report_actor(const sim_cluster *c, const sim_block *from, uint32_t actor, char *to, size_t room)
{
    uint32_t per = from->warps, k = actor - c->warps;
    const sim_block *b = actor < c->warps ? c->block[actor / per] : c->block[k % c->blocks];
    int n = actor < c->warps ? snprintf(to, room, "warp %u", actor % per) : snprintf(to, room, "an asynchronous copy to the mbarrier at offset %u", b->mbarrier[k / c->blocks].address);
    if (b != from && n >= 0 && (size_t)n < room) n += snprintf(to + n, room - (size_t)n, " of block (%u,%u,%u)", b->id[0], b->id[1], b->id[2]);
    return n;
}

static void keep(sim_block *b, CUresult code, const char *text)
{
    sim_launch *l = b->launch;
    static volatile int lock; /* host threads of one launch; held for a copy */
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {}
    if (!l->report[0] || b->linear < l->failed_block) {
        snprintf(l->report, sizeof l->report, "%s", text);
        l->result = code;
        l->failed_block = b->linear;
    }
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&l->stop, 1, __ATOMIC_RELAXED);
}

void sim_report_block(sim_block *b, CUresult code, const char *text) { keep(b, code, text); }

sim_step sim_fault(sim_warp *w, const sim_insn *i, int lane, CUresult code, const char *format, ...)
{
    sim_block *b = w->block;
    char text[SIM_REPORT], where[512];
    size_t n = 0;
    va_list v;
    va_start(v, format);
    n += (size_t)vsnprintf(text, 2048, format, v);
    va_end(v);
    if (n > 2047) n = 2047;
    n += (size_t)snprintf(text + n, sizeof text - n, "\n  in kernel %.200s, PTX line %u: %.400s", b->program->name, i->line, i->text);
    if (sim_report_where(b->program, i, where, sizeof where)) n += (size_t)snprintf(text + n, sizeof text - n, "\n  from %s", where);
    n += (size_t)snprintf(text + n, sizeof text - n, "\n  block (%u,%u,%u), warp %u", b->id[0], b->id[1], b->id[2], w->index);
    if (lane >= 0) {
        const uint32_t *d = b->launch->block;
        uint32_t t = w->index * 32 + (uint32_t)lane;
        n += (size_t)snprintf(text + n, sizeof text - n, ", lane %d: thread (%u,%u,%u)", lane, t % d[0], t / d[0] % d[1], t / d[0] / d[1]);
    }
    keep(b, code, text);
    return STEP_FAULT;
}
