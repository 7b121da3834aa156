/* report: the words of a defect. What happened; the instruction and its PTX line; the source line; the actor; the place; of which class. */
#include "exec.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sim_report_where(const sim_program *p, const sim_insn *i, char *to, size_t room)
{
    const sim_module *m = p->module;
    to[0] = 0;
    if (!i->loc || i->loc > m->nlocs)
        return 0;
    const sim_loc *l = &m->locs[i->loc - 1];
    return l->at ? snprintf(to, room, "%s:%u, inlined at line %u", l->file, l->line, l->at) : snprintf(to, room, "%s:%u", l->file, l->line);
}

int sim_report_address(sim_block *b, uint64_t address, char *to, size_t room)
{
    const sim_launch *l = b->launch;
    const sim_alloc *a = sim_memory_find(l->memory, address);
    if (!a)
        a = sim_memory_find(l->variables, address);
    char other[320];
    if (!a && (address < l->memory->first || address >= l->memory->last) && l->whose(address, other, sizeof other))
        return snprintf(to, room, "address 0x%llx, %s", (unsigned long long)address, other);
    if (!a)
        a = sim_memory_near(l->memory, address);
    if (!a)
        return snprintf(to, room, "address 0x%llx; no memory is allocated", (unsigned long long)address);
    int64_t off = (int64_t)(address - a->base);
    const char *what = a->name ? a->name : "allocation";
    if (address < a->base)
        return snprintf(to, room, "address 0x%llx, %lld bytes before the %s at 0x%llx of %llu bytes", (unsigned long long)address,
                        (long long)-off, what, (unsigned long long)a->base, (unsigned long long)a->size);
    if ((uint64_t)off >= a->size)
        return snprintf(to, room, "address 0x%llx, %llu bytes past the end of the %s at 0x%llx of %llu bytes", (unsigned long long)address,
                        (unsigned long long)((uint64_t)off - a->size), what, (unsigned long long)a->base, (unsigned long long)a->size);
    return snprintf(to, room, "address 0x%llx, byte %lld of the %s at 0x%llx of %llu bytes", (unsigned long long)address, (long long)off,
                    what, (unsigned long long)a->base, (unsigned long long)a->size);
}

int sim_report_actor(const sim_cluster *c, const sim_block *from, uint32_t actor, char *to, size_t room)
{
    uint32_t per = from->warps, g = actor - c->warps, k = g - c->groups - c->planes;
    bool group = g < c->groups;
    const sim_block *b = actor < c->warps ? c->block[actor / per] : group ? c->block[g / from->groups] : c->block[k % c->blocks];
    int n = actor < c->warps ? snprintf(to, room, "warp %u", actor % per)
            : group          ? snprintf(to, room, "a wgmma of warps %u to %u", g % from->groups * 4, g % from->groups * 4 + 3)
                             : snprintf(to, room, "an asynchronous copy to the mbarrier at offset %u", b->mbarrier[k / c->blocks].address);
    if (b != from && n >= 0 && (size_t)n < room)
        n += snprintf(to + n, room - (size_t)n, " of block (%u,%u,%u)", b->id[0], b->id[1], b->id[2]);
    return n;
}

/* ---- what was found ---- */

/* One defect of a launch: a class at an instruction, however often it happens. Of several, the block with the smallest number tells. */
typedef struct sim_finding {
    sim_check check;
    const sim_insn *insn; /* NULL: of a block as a whole */
    uint64_t block, count;
    uint32_t order; /* of discovery */
    char *text;
} sim_finding;

static volatile int lock; /* host threads of all launches; held for a comparison or a copy */
static void take(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
    }
}
static void drop(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static sim_severity severity(const sim_launch *l, sim_check check)
{
    return sim_check_rows[check].fixed ? SIM_ERROR : (sim_severity)l->severity[check];
}
static bool several(const sim_launch *l)
{
    return l->options.reports > 1;
}

static sim_finding *known(const sim_launch *l, sim_check check, const sim_insn *i)
{
    for (uint32_t k = 0; k < l->findings; k++)
        if (l->finding[k].check == check && l->finding[k].insn == i)
            return &l->finding[k];
    return NULL;
}

/* Does a text about this need to be made? No: it was counted, or the class is off. */
static bool wanted(sim_block *b, sim_check check, const sim_insn *i)
{
    sim_launch *l = b->launch;
    if (severity(l, check) == SIM_OFF)
        return false;
    take();
    sim_finding *f = known(l, check, i);
    bool yes = !f || b->linear < f->block;
    if (!yes)
        f->count++;
    drop();
    return yes;
}

/* What follows from a defect: does its warp go on? */
static sim_step follows(sim_launch *l, sim_check check)
{
    if (severity(l, check) != SIM_ERROR)
        return STEP_NEXT;
    take();
    bool enough = !several(l) || l->errors >= (uint32_t)l->options.reports || l->findings == SIM_FINDINGS || check == SIM_CHECK_HANG ||
                  check == SIM_CHECK_HOST_MEMORY;
    drop();
    if (enough)
        __atomic_store_n(&l->stop, 1, __ATOMIC_RELAXED);
    return enough || sim_check_rows[check].fixed ? STEP_FAULT : STEP_NEXT;
}

static void keep(sim_block *b, sim_check check, const sim_insn *i, const char *text)
{
    sim_launch *l = b->launch;
    size_t n = strlen(text) + 64;
    char *copy = malloc(n);
    if (copy)
        snprintf(copy, n, "%s\n  check: %s", text, sim_check_rows[check].name);
    take();
    if (!l->finding)
        l->finding = calloc(SIM_FINDINGS, sizeof *l->finding);
    sim_finding *f = l->finding ? known(l, check, i) : NULL;
    bool fresh = !f && l->finding && l->findings < SIM_FINDINGS;
    if (fresh) {
        f = &l->finding[l->findings++];
        *f = (sim_finding){ .check = check, .insn = i, .block = UINT64_MAX, .order = l->findings };
        l->errors += severity(l, check) == SIM_ERROR;
    }
    if (f) {
        f->count++;
        if (b->linear < f->block || !f->text) {
            char *old = f->text;
            f->text = copy, f->block = b->linear, copy = old;
        }
    } else if (severity(l, check) == SIM_ERROR && l->result == CUDA_SUCCESS) {
        l->result = (CUresult)sim_check_rows[check].code; /* no room for the words */
    }
    drop();
    free(copy);
}

sim_step sim_report_block(sim_block *b, sim_check check, const char *text)
{
    if (wanted(b, check, NULL))
        keep(b, check, NULL, text);
    return follows(b->launch, check);
}

sim_step sim_fault(sim_warp *w, const sim_insn *i, int lane, sim_check check, const char *format, ...)
{
    sim_block *b = w->block;
    if (!wanted(b, check, i))
        return follows(b->launch, check);
    char text[SIM_REPORT], where[512];
    size_t n = 0;
    va_list v;
    va_start(v, format);
    n += (size_t)vsnprintf(text, 2048, format, v);
    va_end(v);
    if (n > 2047)
        n = 2047;
    n += (size_t)snprintf(text + n, sizeof text - n, "\n  in kernel %.200s, PTX line %u: %.400s", b->program->name, i->line, i->text);
    if (sim_report_where(b->program, i, where, sizeof where))
        n += (size_t)snprintf(text + n, sizeof text - n, "\n  from %s", where);
    n += (size_t)snprintf(text + n, sizeof text - n, "\n  block (%u,%u,%u), warp %u", b->id[0], b->id[1], b->id[2], w->index);
    if (lane >= 0) {
        const uint32_t *d = b->launch->block;
        uint32_t t = w->index * 32 + (uint32_t)lane;
        snprintf(text + n, sizeof text - n, ", lane %d: thread (%u,%u,%u)", lane, t % d[0], t / d[0] % d[1], t / d[0] / d[1]);
    }
    keep(b, check, i, text);
    return follows(b->launch, check);
}

/* ---- launches ---- */

/* The severities that FAGEN_SIM_CHECKS chooses. 0: it is no list of checks, error says why. */
int sim_report_environment(uint8_t to[SIM_CHECKS], char error[512])
{
    const char *list = getenv("FAGEN_SIM_CHECKS");
    char why[512];
    memset(to, SIM_BY_DEFAULT, SIM_CHECKS);
    if (!list || sim_checks_parse(list, to, why))
        return 1;
    snprintf(error, 512, "FAGEN_SIM_CHECKS: %.490s", why);
    return 0;
}

void sim_report_open(sim_launch *l)
{
    uint8_t outside[SIM_CHECKS];
    char error[512];
    if (!sim_report_environment(outside, error))
        memset(outside, SIM_BY_DEFAULT, sizeof outside); /* was refused when the driver started */
    for (int k = 0; k < SIM_CHECKS; k++) {
        uint8_t s = l->options.checks[k] ? l->options.checks[k] : outside[k];
        l->severity[k] = s ? s : (uint8_t)sim_check_rows[k].severity;
    }
}

static int by_block(const void *a, const void *b)
{
    const sim_finding *x = a, *y = b;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* The process' warnings that have not been asked for. */
static struct {
    char *text[SIM_FINDINGS];
    int n, more;
} pending;

/* The same class at the same instruction of a kernel of that name, whatever the block and the address. */
static bool same_place(const char *a, const char *b)
{
    const char *x = strstr(a, "\n  in kernel "), *y = strstr(b, "\n  in kernel ");
    if (!x || !y)
        return !strcmp(a, b);
    size_t n = strcspn(x + 1, "\n") + 1, m = strcspn(y + 1, "\n") + 1;
    const char *p = strrchr(a, '\n'), *q = strrchr(b, '\n'); /* the class */
    return n == m && !memcmp(x, y, n) && !strcmp(p, q);
}

static void warn(sim_finding *f)
{
    bool have = false;
    for (int k = 0; k < pending.n && !have; k++)
        have = same_place(pending.text[k], f->text);
    if (have)
        return;
    if (pending.n < SIM_FINDINGS)
        pending.text[pending.n++] = f->text, f->text = NULL;
    else
        pending.more++;
}

int sim_warnings(char *to, size_t room)
{
    size_t n = 0;
    if (room)
        to[0] = 0;
    take();
    int all = pending.n + pending.more;
    for (int k = 0; k < pending.n; k++) {
        if (n + strlen(pending.text[k]) + 2 < room)
            n += (size_t)snprintf(to + n, room - n, "%s%s", n ? "\n" : "", pending.text[k]);
        free(pending.text[k]);
    }
    pending.n = pending.more = 0;
    drop();
    return all;
}

void sim_report_close(sim_launch *l)
{
    size_t n = 0;
    uint32_t told = 0, most = several(l) ? (uint32_t)l->options.reports : 1;
    l->report[0] = 0;
    if (l->finding)
        qsort(l->finding, l->findings, sizeof *l->finding, by_block);
    take();
    for (uint32_t k = 0; l->finding && k < l->findings; k++) {
        sim_finding *f = &l->finding[k];
        if (severity(l, f->check) == SIM_WARNING) {
            l->counts.c.warnings++;
            if (f->text)
                warn(f);
        } else if (told < most) {
            if (!told++)
                l->result = (CUresult)sim_check_rows[f->check].code;
            if (n < SIM_DETAIL - 1)
                n += (size_t)snprintf(l->report + n, SIM_DETAIL - n, "%s%s", n ? "\n" : "", f->text ? f->text : "out of host memory");
            if (n < SIM_DETAIL - 1 && several(l) && f->count > 1)
                n += (size_t)snprintf(l->report + n, SIM_DETAIL - n, ", %llu times", (unsigned long long)f->count);
        }
        free(f->text);
    }
    drop();
    free(l->finding);
    l->finding = NULL, l->findings = 0;
}
