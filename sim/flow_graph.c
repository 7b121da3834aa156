/* flow_graph: see the header. */
#include "flow_graph.h"
#include <string.h>

static bool is_branch(const sim_insn *i)
{
    return i->run == sim_run_branch || i->run == sim_run_branch_index;
}
static bool is_exit(const sim_insn *i)
{
    return i->kind == K_RUN && (i->run == sim_run_exit || i->run == sim_run_trap) && i->guard < 0;
}

static void link_blocks(sim_flow_graph *w, uint32_t from, uint32_t insn)
{
    sim_basic_block *b = &w->b[from];
    uint32_t to = w->of[insn];
    for (uint32_t k = 0; k < b->nnext; k++)
        if (b->next[k] == to)
            return;
    b->next[b->nnext++] = to;
}

static void blocks(sim_flow_graph *w)
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
        sim_basic_block *b = &w->b[w->of[k]];
        if (k + 1 == g->insns || w->of[k + 1] != w->of[k])
            b->last = k;
        b->first = k;
    }
    for (uint32_t k = 0; k < w->n; k++)
        w->b[k].leaves = is_exit(&g->code[w->b[k].first]);
    for (uint32_t k = 0; k < w->n; k++) {
        sim_basic_block *b = &w->b[k];
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

static void predecessors(sim_flow_graph *w)
{
    for (uint32_t k = 0; k < w->n; k++) {
        w->b[k].before = sim_ptx_alloc(w->p, (w->b[k].nbefore + 1) * sizeof *w->b[k].before);
        w->b[k].nbefore = 0;
    }
    for (uint32_t k = 0; k < w->n; k++)
        for (uint32_t j = 0; j < w->b[k].nnext; j++) {
            sim_basic_block *to = &w->b[w->b[k].next[j]];
            to->before[to->nbefore++] = k;
        }
}

/* What follows a block is known from what follows its successors, or the other way: in this order a few passes do. */
static void order(sim_flow_graph *w)
{
    uint32_t n = w->n, count = n, depth = 0;
    uint8_t *seen = sim_ptx_alloc(w->p, n + 1);
    uint32_t *stack = sim_ptx_alloc(w->p, (n + 1) * sizeof *stack), *at = sim_ptx_alloc(w->p, (n + 1) * sizeof *at);
    w->order = sim_ptx_alloc(w->p, (n + 1) * sizeof *w->order);
    for (uint32_t s = n;
         s-- > 0;) { /* the entry last, so that it comes first; those that only unreached blocks lead to come before nothing */
        if (seen[s] || (s && w->b[s].nbefore))
            continue;
        seen[s] = 1, stack[depth] = s, at[depth++] = 0;
        while (depth) {
            const sim_basic_block *b = &w->b[stack[depth - 1]];
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
static bool counts(const sim_flow_graph *w, const sim_basic_block *b, uint32_t j)
{
    if (!w->b[b->next[j]].leaves || b->nnext == 1 || b->whole)
        return true;
    for (uint32_t k = 0; k < b->nnext; k++)
        if (!w->b[b->next[k]].leaves)
            return false;
    return true;
}

static uint32_t meet(const sim_basic_block *b, uint32_t x, uint32_t y)
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
static void joins(sim_flow_graph *w)
{
    uint32_t n = w->n, exit = n, count = 0, depth = 0;
    sim_basic_block *b = w->b;
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
            sim_basic_block *x = &b[sequence[s]];
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

void sim_flow_graph_make(sim_flow_graph *w)
{
    blocks(w);
    predecessors(w);
    order(w);
    joins(w);
}
