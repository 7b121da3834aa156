/* flow: what execution needs to know about a kernel as a whole. Where the lanes of a branch meet again (the immediate
 * post-dominator), which registers may be read before they are written, and which registers can share a place. */
#include "defined.h"
#include "ptx.h"
#include "run.h"
#include <string.h>

typedef struct block {
    uint32_t first, last;  /* instructions, inclusive */
    uint32_t *next, nnext; /* blocks that may follow */
    uint32_t *before, nbefore;
    uint32_t order;       /* in the walk from the exit backwards */
    uint32_t join;        /* immediate post-dominator; n = the exit */
    bool reached, leaves; /* leaves: nothing but an exit */
    bool whole;           /* every edge counts: without those to an exit it would never meet one */
} block;

typedef struct flow {
    ptx_parser *p;
    ptx_function *f;
    sim_program *prog;
    block *b;
    uint32_t n, *of; /* blocks; the block of each instruction */
    uint32_t *order; /* the blocks so that most come after those in front of them: reverse postorder, then the unreached */
    size_t words;    /* of a set of registers */
    uint64_t *live_in, *live_out, *sure_in;
} flow;

enum { MOST_SETS = 1 << 29 }; /* bytes of one set of registers per block */

#define HAS(s, r) ((s)[(r) >> 6] >> ((r)&63) & 1)
#define PUT(s, r) ((s)[(r) >> 6] |= 1ull << ((r)&63))
#define CUT(s, r) ((s)[(r) >> 6] &= ~(1ull << ((r)&63)))

static bool is_branch(const sim_insn *i)
{
    return i->run == sim_run_branch || i->run == sim_run_branch_index;
}
static bool is_exit(const sim_insn *i)
{
    return i->kind == K_RUN && (i->run == sim_run_exit || i->run == sim_run_trap) && i->guard < 0;
}

static void link_blocks(flow *w, uint32_t from, uint32_t insn)
{
    block *b = &w->b[from];
    uint32_t to = w->of[insn];
    for (uint32_t k = 0; k < b->nnext; k++)
        if (b->next[k] == to)
            return;
    b->next[b->nnext++] = to;
}

static void blocks(flow *w)
{
    sim_program *g = w->prog;
    uint8_t *leader = sim_ptx_alloc(w->p, g->insns + 1);
    leader[0] = 1;
    for (uint32_t k = 0; k < g->insns; k++) {
        const sim_insn *i = &g->code[k];
        if (i->run == sim_run_branch)
            leader[i->target] = leader[k + 1] = 1;
        else if (i->run == sim_run_branch_index) {
            const sim_targets *t = i->fn.data;
            for (uint32_t j = 0; j < t->n; j++)
                leader[t->at[j]] = 1;
            leader[k + 1] = 1;
        } else if (is_exit(i))
            leader[k + 1] = 1;
    }
    w->of = sim_ptx_alloc(w->p, g->insns * sizeof *w->of);
    for (uint32_t k = 0; k < g->insns; k++)
        w->n += leader[k], w->of[k] = w->n - 1;
    w->b = sim_ptx_alloc(w->p, (w->n + 1) * sizeof *w->b);
    for (uint32_t k = g->insns; k-- > 0;) {
        block *b = &w->b[w->of[k]];
        if (k + 1 == g->insns || w->of[k + 1] != w->of[k])
            b->last = k;
        b->first = k;
    }
    for (uint32_t k = 0; k < w->n; k++)
        w->b[k].leaves = is_exit(&g->code[w->b[k].first]);
    for (uint32_t k = 0; k < w->n; k++) {
        block *b = &w->b[k];
        const sim_insn *i = &g->code[b->last];
        const sim_targets *t = i->run == sim_run_branch_index ? i->fn.data : NULL;
        b->next = sim_ptx_alloc(w->p, ((t ? t->n : 0) + 2) * sizeof *b->next);
        if (i->run == sim_run_branch)
            link_blocks(w, k, i->target);
        for (uint32_t j = 0; t && j < t->n; j++)
            link_blocks(w, k, t->at[j]);
        if (!is_exit(i) && !(is_branch(i) && i->guard < 0) && b->last + 1 < g->insns)
            link_blocks(w, k, b->last + 1);
    }
    for (uint32_t k = 0; k < w->n; k++)
        for (uint32_t j = 0; j < w->b[k].nnext; j++)
            w->b[w->b[k].next[j]].nbefore++;
}

static void predecessors(flow *w)
{
    for (uint32_t k = 0; k < w->n; k++) {
        w->b[k].before = sim_ptx_alloc(w->p, (w->b[k].nbefore + 1) * sizeof *w->b[k].before);
        w->b[k].nbefore = 0;
    }
    for (uint32_t k = 0; k < w->n; k++)
        for (uint32_t j = 0; j < w->b[k].nnext; j++) {
            block *to = &w->b[w->b[k].next[j]];
            to->before[to->nbefore++] = k;
        }
}

/* What follows a block is known from what follows its successors, or the other way: in this order a few passes do. */
static void order(flow *w)
{
    uint32_t n = w->n, count = n, depth = 0;
    uint8_t *seen = sim_ptx_alloc(w->p, n + 1);
    uint32_t *stack = sim_ptx_alloc(w->p, (n + 1) * sizeof *stack), *at = sim_ptx_alloc(w->p, (n + 1) * sizeof *at);
    w->order = sim_ptx_alloc(w->p, (n + 1) * sizeof *w->order);
    for (uint32_t s = n;
         s-- > 0;) { /* the entry last, so that it comes first; those that only unreached blocks lead to come in front of nothing */
        if (seen[s] || (s && w->b[s].nbefore))
            continue;
        seen[s] = 1, stack[depth] = s, at[depth++] = 0;
        while (depth) {
            const block *b = &w->b[stack[depth - 1]];
            if (at[depth - 1] == b->nnext) {
                w->order[--count] = stack[--depth];
                continue;
            }
            uint32_t y = b->next[at[depth - 1]++];
            if (!seen[y])
                seen[y] = 1, stack[depth] = y, at[depth++] = 0;
        }
    }
    for (uint32_t s = 0; s < n; s++)
        if (!seen[s])
            w->order[--count] = s;
}

/* Lanes that go straight to an exit leave at once and wait for no other: such an edge does not count unless it is the only one. */
static bool counts(const flow *w, const block *b, uint32_t j)
{
    if (!w->b[b->next[j]].leaves || b->nnext == 1 || b->whole)
        return true;
    for (uint32_t k = 0; k < b->nnext; k++)
        if (!w->b[b->next[k]].leaves)
            return false;
    return true;
}

static uint32_t meet(const block *b, uint32_t x, uint32_t y)
{
    while (x != y) {
        while (b[x].order < b[y].order)
            x = b[x].join;
        while (b[y].order < b[x].order)
            y = b[y].join;
    }
    return x;
}

/* Post-dominators by iteration over the reversed graph in reverse postorder (Cooper, Harvey and Kennedy 2001). The exit is
 * block n; order grows towards it. */
static void joins(flow *w)
{
    uint32_t n = w->n, exit = n, count = 0, depth = 0;
    block *b = w->b;
    uint32_t *sequence = sim_ptx_alloc(w->p, (n + 1) * sizeof *sequence), *stack = sim_ptx_alloc(w->p, (n + 2) * sizeof *stack),
             *at = sim_ptx_alloc(w->p, (n + 2) * sizeof *at);
    /* a walk from every block without successors, backwards; blocks in endless loops stay unreached and join nowhere */
    for (uint32_t s = 0; s < n; s++) {
        if (b[s].nnext || b[s].reached)
            continue;
        b[s].reached = true;
        stack[depth] = s, at[depth++] = 0;
        while (depth) {
            uint32_t x = stack[depth - 1];
            if (at[depth - 1] == b[x].nbefore) {
                b[x].order = count, sequence[count++] = x;
                depth--;
                continue;
            }
            uint32_t y = b[x].before[at[depth - 1]++];
            if (!b[y].reached)
                b[y].reached = true, stack[depth] = y, at[depth++] = 0;
        }
    }
    b[exit].order = count, b[exit].join = exit;
    for (uint32_t k = 0; k < n; k++)
        b[k].join = UINT32_MAX;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t s = count; s-- > 0;) {
            uint32_t x = sequence[s], j = b[x].nnext ? UINT32_MAX : exit;
            for (uint32_t k = 0; k < b[x].nnext; k++) {
                uint32_t y = b[x].next[k];
                if (!counts(w, &b[x], k) || b[y].join == UINT32_MAX)
                    continue;
                j = j == UINT32_MAX ? y : meet(b, j, y);
            }
            if (j != UINT32_MAX && b[x].join != j)
                b[x].join = j, changed = true;
        }
        /* a loop that is left only straight to an exit: the block nearest to it takes that edge after all */
        for (uint32_t s = count; s-- > 0 && !changed;) {
            block *x = &b[sequence[s]];
            if (x->join == UINT32_MAX && x->nnext && !x->whole)
                x->whole = changed = true;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        sim_insn *i = &w->prog->code[b[k].last];
        if (is_branch(i))
            i->join = b[k].join >= exit ? UINT32_MAX : b[b[k].join].first;
    }
}

/* ---- registers ---- */

static bool defines(const sim_insn *i, int n)
{
    return n < i->defs && i->arg[n] >= 0;
}
static bool uses(const sim_insn *i, int n)
{
    return (n >= i->defs || i->flags & F_TIED) && i->arg[n] >= 0 && i->arg[n] != SIM_NO_ARG;
}

static void liveness(flow *w)
{
    size_t words = w->words;
    uint64_t *set = sim_ptx_alloc(w->p, words * 8);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t at = w->n; at-- > 0;) {
            uint32_t k = w->order[at];
            block *b = &w->b[k];
            memset(set, 0, words * 8);
            for (uint32_t j = 0; j < b->nnext; j++)
                for (size_t x = 0; x < words; x++)
                    set[x] |= w->live_in[b->next[j] * words + x];
            memcpy(w->live_out + k * words, set, words * 8);
            for (uint32_t i = b->last + 1; i-- > b->first;) {
                const sim_insn *o = &w->prog->code[i];
                if (o->guard < 0)
                    for (int a = 0; a < o->args; a++)
                        if (defines(o, a))
                            CUT(set, o->arg[a]);
                for (int a = 0; a < o->args; a++)
                    if (uses(o, a))
                        PUT(set, o->arg[a]);
                if (o->guard >= 0)
                    PUT(set, o->guard);
            }
            if (memcmp(set, w->live_in + k * words, words * 8))
                memcpy(w->live_in + k * words, set, words * 8), changed = true;
        }
    }
}

/* The registers that may be read before they are written. */
static void unset(flow *w, uint64_t *tracked)
{
    size_t words = w->words;
    sim_program *g = w->prog;
    uint64_t *set = sim_ptx_alloc(w->p, words * 8);
    memset(w->sure_in, 0xFF, w->n * words * 8);
    memset(w->sure_in, 0, words * 8);
    for (int s = 0; s < SR_COUNT; s++)
        if (w->f->special[s])
            PUT(w->sure_in, w->f->special[s]);
    for (bool changed = true, last = false; changed || !last;) {
        if (!changed)
            last = true;
        changed = false;
        for (uint32_t at = 0; at < w->n; at++) {
            uint32_t k = w->order[at];
            block *b = &w->b[k];
            memcpy(set, w->sure_in + k * words, words * 8);
            for (uint32_t i = b->first; i <= b->last; i++) {
                const sim_insn *o = &g->code[i];
                if (last) {
                    for (int a = 0; a < o->args; a++)
                        if (uses(o, a) && !HAS(set, o->arg[a]))
                            PUT(tracked, o->arg[a]);
                    if (o->guard >= 0 && !HAS(set, o->guard))
                        PUT(tracked, o->guard);
                }
                if (o->guard < 0)
                    for (int a = 0; a < o->args; a++)
                        if (defines(o, a))
                            PUT(set, o->arg[a]);
            }
            for (uint32_t j = 0; j < b->nnext && !last; j++)
                for (size_t x = 0; x < words; x++) {
                    uint64_t *to = &w->sure_in[b->next[j] * words + x];
                    if (*to & ~set[x])
                        *to &= set[x], changed = true;
                }
        }
        if (last)
            break;
    }
}

/* The registers that wgmmas use, and those that plain movs copy from or to them: their state is followed at run time. Of f16
 * accumulators also the halves that movs take them apart into. */
static uint64_t *held(flow *w)
{
    sim_program *g = w->prog;
    uint64_t *set = sim_ptx_alloc(w->p, w->words * 8), *pair = sim_ptx_alloc(w->p, w->words * 8);
    for (uint32_t k = 0; k < g->insns; k++) {
        const sim_insn *o = &g->code[k];
        for (int a = 0; o->kind == K_RUN && o->run == sim_run_wgmma && o->type2 == T_F16 && a < o->defs; a++)
            if (o->arg[a] >= 0)
                PUT(pair, o->arg[a]);
        for (int a = 0; o->run == sim_run_wgmma && o->kind == K_RUN && a < o->args - 1; a++)
            if (o->arg[a] >= 0 && sim_type_bytes(w->f->reg[o->arg[a]].type) == 4)
                PUT(set, o->arg[a]);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 0; k < g->insns; k++) {
            const sim_insn *o = &g->code[k];
            bool halves = sim_is_halves(o), any = false, all = true;
            if (!halves && !(o->flags & F_MOVE))
                continue;
            for (int a = 0; a < o->args; a++)
                if (o->arg[a] >= 0)
                    any |= HAS(pair, o->arg[a]), all &= HAS(pair, o->arg[a]);
            for (int a = 0; any && !all && a < o->args; a++)
                if (o->arg[a] >= 0)
                    PUT(pair, o->arg[a]), PUT(set, o->arg[a]), changed = true;
            if (halves || o->arg[0] < 0 || o->arg[1] < 0 || HAS(set, o->arg[0]) == HAS(set, o->arg[1]))
                continue;
            PUT(set, o->arg[0]), PUT(set, o->arg[1]), changed = true;
        }
    }
    for (int s = 0; s < SR_COUNT; s++)
        if (w->f->special[s])
            CUT(set, w->f->special[s]);
    return set;
}

typedef struct life {
    uint32_t start, end;
} life;

static void touch(life *l, uint32_t r, uint32_t at)
{
    if (at < l[r].start)
        l[r].start = at;
    if (at > l[r].end)
        l[r].end = at;
}

/* Places by linear scan over lifetimes. A place is 128 bytes, of a 64-bit register 256; a predicate is a mask in another array. */
static void places(flow *w, const uint64_t *tracked, const uint64_t *hold, uint32_t *place)
{
    sim_program *g = w->prog;
    size_t regs = w->f->regs, words = w->words;
    life *l = sim_ptx_alloc(w->p, (regs + 1) * sizeof *l);
    for (size_t r = 0; r < regs; r++)
        l[r].start = UINT32_MAX;
    for (uint32_t k = 0; k < w->n; k++)
        for (size_t x = 0; x < words; x++)
            for (int side = 0; side < 2; side++)
                for (uint64_t bits = (side ? w->live_out : w->live_in)[k * words + x]; bits; bits &= bits - 1)
                    touch(l, (uint32_t)(x * 64) + (uint32_t)__builtin_ctzll(bits), side ? w->b[k].last : w->b[k].first);
    for (uint32_t k = 0; k < g->insns; k++) {
        for (int a = 0; a < g->code[k].args; a++)
            if (g->code[k].arg[a] >= 0)
                touch(l, (uint32_t)g->code[k].arg[a], k);
        if (g->code[k].guard >= 0)
            touch(l, (uint32_t)g->code[k].guard, k);
    }
    for (int s = 0; s < SR_COUNT; s++)
        if (w->f->special[s])
            l[w->f->special[s]] = (life){ 0, UINT32_MAX };
    for (size_t r = 0; r < regs; r++)
        if (HAS(tracked, r) || HAS(hold, r))
            l[r] = (life){ 0, UINT32_MAX };

    uint32_t *starts = sim_ptx_alloc(w->p, (g->insns + 2) * sizeof *starts), *ends = sim_ptx_alloc(w->p, (g->insns + 2) * sizeof *ends);
    uint32_t *by_start = sim_ptx_alloc(w->p, (regs + 1) * sizeof *by_start), *by_end = sim_ptx_alloc(w->p, (regs + 1) * sizeof *by_end);
    /* buckets by position: chains through the register numbers, 0 = none */
    for (size_t r = 0; r < regs; r++) {
        if (l[r].start == UINT32_MAX)
            continue;
        by_start[r] = starts[l[r].start], starts[l[r].start] = (uint32_t)r + 1;
        if (l[r].end < g->insns)
            by_end[r] = ends[l[r].end], ends[l[r].end] = (uint32_t)r + 1;
    }
    uint32_t *free_of[3], nfree[3] = { 0, 0, 0 }, made[3] = { 0, 0, 0 };
    for (int c = 0; c < 3; c++)
        free_of[c] = sim_ptx_alloc(w->p, (regs + 1) * sizeof **free_of);
    for (uint32_t at = 0; at < g->insns; at++) {
        for (uint32_t r = starts[at]; r; r = by_start[r - 1]) {
            sim_type t = w->f->reg[r - 1].type;
            int c = t == T_PRED ? 2 : sim_type_bytes(t) == 8 ? 1 : 0;
            place[r - 1] = nfree[c] ? free_of[c][--nfree[c]] : made[c]++;
        }
        for (uint32_t r = ends[at]; r; r = by_end[r - 1]) {
            sim_type t = w->f->reg[r - 1].type;
            int c = t == T_PRED ? 2 : sim_type_bytes(t) == 8 ? 1 : 0;
            free_of[c][nfree[c]++] = place[r - 1];
        }
    }
    uint32_t wide_from = (made[0] * 128 + 255) & ~255u;
    for (size_t r = 0; r < regs; r++) {
        sim_type t = w->f->reg[r].type;
        if (t != T_PRED)
            place[r] = sim_type_bytes(t) == 8 ? wide_from + place[r] * 256 : place[r] * 128;
    }
    g->file_bytes = wide_from + made[1] * 256 + 256;
    g->preds = made[2];
    for (int s = 0; s < SR_COUNT; s++)
        if (w->f->special[s])
            g->special[s] = place[w->f->special[s]] + 1;
}

static const char *full_name(flow *w, uint32_t r) /* of a register, from its prefix */
{
    uint32_t k = r;
    while (k && !w->f->reg[k].name)
        k--;
    const ptx_register *g = &w->f->reg[k];
    if (!g->name || g->number < 0)
        return g->name ? g->name : "?";
    char text[32];
    size_t n = strlen(g->name);
    uint32_t v = r - k, digits = 0;
    do
        text[31 - digits++] = (char)('0' + v % 10);
    while ((v /= 10) && digits < 20);
    char *s = sim_ptx_keep(w->p, n + digits + 1);
    memcpy(s, g->name, n);
    memcpy(s + n, text + 32 - digits, digits);
    return s;
}

/* Instructions that touch a register of some wgmma learn which; before the arguments become places. */
static void mark_held(flow *w, const uint64_t *hold, const uint32_t *place)
{
    sim_program *g = w->prog;
    uint16_t *index = sim_ptx_alloc(w->p, (w->f->regs + 1) * sizeof *index);
    uint32_t count = 0;
    for (size_t r = 0; r < w->f->regs; r++)
        if (HAS(hold, r))
            index[r] = (uint16_t)++count;
    if (count > 65000)
        sim_ptx_fail(w->p, g->code[0].line, "too many registers of wgmmas");
    g->held = count;
    g->held_place = sim_ptx_keep(w->p, (count + 1) * sizeof *g->held_place);
    g->held_names = sim_ptx_keep(w->p, (count + 1) * sizeof *g->held_names);
    for (size_t r = 0; r < w->f->regs; r++)
        if (index[r])
            g->held_place[index[r] - 1] = place[r], g->held_names[index[r] - 1] = (char *)(uintptr_t)full_name(w, (uint32_t)r);
    for (uint32_t k = 0; k < g->insns && count; k++) {
        sim_insn *o = &g->code[k];
        bool any = false;
        for (int a = 0; a < o->args; a++)
            any |= o->arg[a] >= 0 && index[o->arg[a]];
        if (!any)
            continue;
        uint16_t *t = sim_ptx_keep(w->p, (size_t)o->args * sizeof *t);
        for (int a = 0; a < o->args; a++)
            t[a] = o->arg[a] >= 0 ? index[o->arg[a]] : 0;
        o->held = t;
        if (o->kind != K_RUN || o->run != sim_run_wgmma)
            o->flags |= F_HELD;
    }
}

static sim_slot slot_of(const flow *w, int32_t r, const uint32_t *place)
{
    if (r < 0)
        return (sim_slot){ 0, 0 };
    sim_type t = w->f->reg[r].type;
    if (t == T_PRED)
        return (sim_slot){ SLOT_PRED | (1 + w->prog->file_bytes / 128 + place[r]), (uint32_t)r + 1 };
    return (sim_slot){ (sim_type_bytes(t) == 8 ? SLOT_WIDE : 0u) | (1 + place[r] / 128), (uint32_t)r + 1 };
}

/* The slots of arguments and guards, and the names for reports; before the arguments become places. */
static void slots(flow *w, const uint64_t *tracked, const uint32_t *place)
{
    sim_program *g = w->prog;
    size_t n = 0;
    for (uint32_t k = 0; k < g->insns; k++)
        n += g->code[k].args + 1u;
    sim_slot *at = sim_ptx_keep(w->p, n * sizeof *at);
    for (uint32_t k = 0; k < g->insns; k++) {
        sim_insn *o = &g->code[k];
        o->slot = at;
        for (int a = 0; a < o->args; a++)
            *at++ = slot_of(w, o->arg[a], place);
        *at++ = slot_of(w, o->guard, place);
    }
    g->slots = 1 + g->file_bytes / 128 + g->preds + 1;
    for (size_t r = 0; r < w->f->regs; r++)
        g->unsets += HAS(tracked, r) != 0, g->nnames += w->f->reg[r].name != NULL;
    g->unset = sim_ptx_keep(w->p, (g->unsets + 1) * sizeof *g->unset);
    g->names = sim_ptx_keep(w->p, (g->nnames + 1) * sizeof *g->names);
    uint32_t u = 0, names = 0;
    for (size_t r = 0; r < w->f->regs; r++) {
        const ptx_register *x = &w->f->reg[r];
        if (HAS(tracked, r))
            g->unset[u++] = slot_of(w, (int32_t)r, place);
        if (!x->name)
            continue;
        char *prefix = sim_ptx_keep(w->p, strlen(x->name) + 1);
        strcpy(prefix, x->name);
        g->names[names++] = (struct sim_name){ prefix, (uint32_t)r, x->number < 0 };
    }
}

/* Arguments become places. */
static void rename_arguments(flow *w, const uint32_t *place)
{
    sim_program *g = w->prog;
    for (uint32_t k = 0; k < g->insns; k++) {
        sim_insn *o = &g->code[k];
        int32_t *arg = (int32_t *)(uintptr_t)o->arg;
        for (int a = 0; a < o->args; a++) {
            if (arg[a] == SIM_NO_ARG)
                continue;
            arg[a] = arg[a] >= 0 ? (int32_t)place[arg[a]] : ~(~arg[a] * 256);
        }
        if (o->guard >= 0)
            o->guard = (int32_t)place[o->guard];
    }
}

static void pool(flow *w)
{
    ptx_function *f = w->f;
    sim_vec *v = sim_ptx_keep(w->p, (f->constants + 1) * sizeof *v);
    for (size_t k = 0; k < f->constants; k++)
        for (int l = 0; l < SIM_LANES; l++) {
            if (f->constant[k].wide)
                v[k].q[l] = f->constant[k].value;
            else
                v[k].u[l] = (uint32_t)f->constant[k].value;
        }
    w->prog->pool = v, w->prog->pool_rows = (uint32_t)f->constants;
}

void sim_flow(ptx_parser *p, ptx_function *f)
{
    flow w = { .p = p, .f = f, .prog = f->program, .words = (f->regs + 63) / 64 + 1 };
    blocks(&w);
    predecessors(&w);
    order(&w);
    joins(&w);
    if ((uint64_t)w.n * w.words > MOST_SETS / 8)
        sim_ptx_fail(p, f->program->code[0].line, "kernel %.200s is too large: %u basic blocks and %llu registers", f->program->name, w.n,
                     (unsigned long long)f->regs);
    w.live_in = sim_ptx_alloc(p, w.n * w.words * 8);
    w.live_out = sim_ptx_alloc(p, w.n * w.words * 8);
    w.sure_in = sim_ptx_alloc(p, w.n * w.words * 8);
    uint64_t *tracked = sim_ptx_alloc(p, w.words * 8);
    uint32_t *place = sim_ptx_alloc(p, (f->regs + 1) * sizeof *place);
    liveness(&w);
    unset(&w, tracked);
    uint64_t *hold = held(&w);
    places(&w, tracked, hold, place);
    mark_held(&w, hold, place);
    slots(&w, tracked, place);
    rename_arguments(&w, place);
    pool(&w);
}
