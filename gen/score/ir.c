/* ir: nodes are made once, constants folded, what ranges prove is a constant too. */
#include "ir.h"
#include "apply.h"
#include "range.h"
#include <string.h>

static const struct {
    const char *word;
    int arguments;
} ops[] = {
#define OP(name, word, arguments, ...) { word, arguments },
#include "ops.def"
};

const char *fa_score_op_word(int op)
{
    return ops[op].word;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* By it arguments that commute are put in order, and so canonical texts: another function is another format of these (program.c). */
static uint64_t hash_of(const fa_score_ir *ir, const fa_score_node *node)
{
    uint64_t h = node->type;
    for (const char *s = ops[node->op].word; *s; s++)
        h = mix(h, (unsigned char)*s);
    h = mix(h, (uint64_t)(node->operand + 1));
    h = mix(h, bits_of(node->value));
    for (int k = 0; k < node->n; k++)
        h = mix(h, ir->node[node->arg[k]].hash);
    return h;
}

static bool same(const fa_score_node *a, const fa_score_node *b)
{
    return a->hash == b->hash && a->op == b->op && a->type == b->type && a->n == b->n && a->operand == b->operand &&
           bits_of(a->value) == bits_of(b->value) && !memcmp(a->arg, b->arg, sizeof a->arg);
}

static uint8_t leaf_depends(int op)
{
    switch (op) {
    case FA_SCORE_B:
        return FA_SCORE_OF_B;
    case FA_SCORE_H:
        return FA_SCORE_OF_H;
    case FA_SCORE_I:
        return FA_SCORE_OF_I;
    case FA_SCORE_J:
        return FA_SCORE_OF_J;
    case FA_SCORE_S:
        return FA_SCORE_OF_S;
    default:
        return 0;
    }
}

/* The node's number. Its range is proven where nothing is known of the launch. */
static int add(fa_score_ir *ir, fa_score_node node)
{
    fa_score_range of[FA_SCORE_ROOM];
    fa_score_box box;
    node.depends = leaf_depends(node.op);
    for (int k = 0; k < node.n; k++) {
        node.depends |= ir->node[node.arg[k]].depends;
        node.lookups = ir->node[node.arg[k]].lookups > node.lookups ? ir->node[node.arg[k]].lookups : node.lookups;
    }
    node.lookups = (int16_t)(node.lookups + (node.op == FA_SCORE_LOOKUP));
    node.hash = hash_of(ir, &node);
    for (int i = 0; i < ir->n; i++)
        if (same(&ir->node[i], &node))
            return i;
    if (ir->n == FA_SCORE_ROOM)
        return -1;
    for (int i = 0; i < ir->n; i++)
        of[i] = ir->node[i].range;
    ir->node[ir->n] = node;
    box = fa_score_box_widest(ir);
    ir->node[ir->n].range = fa_score_range_of(ir, ir->n, of, &box);
    fa_score_range r = ir->node[ir->n].range;
    bool one = !r.nan && r.lo == r.hi && node.type != FA_SCORE_F32 && node.op != FA_SCORE_CONST;
    return one ? fa_score_ir_number(ir, node.type, r.lo) : ir->n++;
}

static fa_score_node blank(int op, int type)
{
    fa_score_node node = { .op = (uint8_t)op, .type = (uint8_t)type, .arg = { -1, -1, -1, -1 }, .operand = -1 };
    return node;
}

int fa_score_ir_number(fa_score_ir *ir, fa_score_type type, double value)
{
    fa_score_node node = blank(FA_SCORE_CONST, type);
    node.value = value != value ? (double)__builtin_nan("") : type == FA_SCORE_F32 ? value : value + 0.0; /* no -0 of integers */
    return add(ir, node);
}

int fa_score_ir_leaf(fa_score_ir *ir, fa_score_op op)
{
    return add(ir, blank(op, op == FA_SCORE_S ? FA_SCORE_F32 : FA_SCORE_I32));
}

int fa_score_ir_scalar(fa_score_ir *ir, int operand)
{
    fa_score_node node = blank(FA_SCORE_SCALAR, ir->operand[operand].type);
    node.operand = (int16_t)operand;
    return add(ir, node);
}

int fa_score_ir_lookup(fa_score_ir *ir, int operand, const int *index)
{
    fa_score_node node = blank(FA_SCORE_LOOKUP, ir->operand[operand].type);
    node.operand = (int16_t)operand;
    node.n = (uint8_t)ir->operand[operand].rank;
    for (int k = 0; k < node.n; k++) {
        if (index[k] < 0)
            return -1;
        node.arg[k] = (int16_t)index[k];
    }
    return add(ir, node);
}

static int type_of(const fa_score_ir *ir, int op, int x, int y)
{
    switch (op) {
    case FA_SCORE_LT:
    case FA_SCORE_LE:
    case FA_SCORE_EQ:
    case FA_SCORE_AND:
    case FA_SCORE_OR:
    case FA_SCORE_NOT:
        return FA_SCORE_BOOL;
    case FA_SCORE_DIV:
    case FA_SCORE_TOFLOAT:
        return FA_SCORE_F32;
    case FA_SCORE_FLOOR:
        return FA_SCORE_I32;
    case FA_SCORE_SELECT:
        return ir->node[y].type;
    default:
        return ir->node[x].type;
    }
}

static bool is_number(const fa_score_ir *ir, int node, double value)
{
    return node >= 0 && ir->node[node].op == FA_SCORE_CONST && ir->node[node].value == value;
}

static bool commutes(int op)
{
    return op == FA_SCORE_ADD || op == FA_SCORE_MUL || op == FA_SCORE_MIN || op == FA_SCORE_MAX || op == FA_SCORE_EQ ||
           op == FA_SCORE_AND || op == FA_SCORE_OR || op == FA_SCORE_BAND || op == FA_SCORE_BOR || op == FA_SCORE_BXOR;
}

/* A node that is equal, whatever the values; -1: none is known. */
static int simpler(fa_score_ir *ir, int op, int x, int y, int z)
{
    bool whole = ir->node[x].type != FA_SCORE_F32;
    switch (op) {
    case FA_SCORE_ADD:
        return is_number(ir, y, 0) ? x : is_number(ir, x, 0) ? y : -1;
    case FA_SCORE_SUB:
        return is_number(ir, y, 0) ? x : whole && x == y ? fa_score_ir_number(ir, FA_SCORE_I32, 0) : -1;
    case FA_SCORE_MUL:
        return is_number(ir, y, 1) ? x : is_number(ir, x, 1) ? y : -1;
    case FA_SCORE_DIV:
    case FA_SCORE_IDIV:
        return is_number(ir, y, 1) && (op == FA_SCORE_DIV || whole) ? x : -1;
    case FA_SCORE_MIN:
    case FA_SCORE_MAX:
    case FA_SCORE_AND:
    case FA_SCORE_OR:
        if (x == y)
            return x;
        if (op == FA_SCORE_AND || op == FA_SCORE_OR) {
            bool rules = op == FA_SCORE_OR; /* the truth that decides alone */
            if (is_number(ir, x, rules) || is_number(ir, y, !rules))
                return x;
            if (is_number(ir, y, rules) || is_number(ir, x, !rules))
                return y;
        }
        return -1;
    case FA_SCORE_EQ:
    case FA_SCORE_LE:
    case FA_SCORE_LT:
        return whole && x == y ? fa_score_ir_number(ir, FA_SCORE_BOOL, op != FA_SCORE_LT) : -1;
    case FA_SCORE_NOT: { /* of numbers with a fraction neither comparison may hold */
        const fa_score_node *inner = &ir->node[x];
        bool order = inner->op == FA_SCORE_LT || inner->op == FA_SCORE_LE;
        if (order && ir->node[inner->arg[0]].type != FA_SCORE_F32)
            return fa_score_ir_make(ir, inner->op == FA_SCORE_LT ? FA_SCORE_LE : FA_SCORE_LT, inner->arg[1], inner->arg[0], -1);
        return inner->op == op ? inner->arg[0] : -1;
    }
    case FA_SCORE_NEG:
        return ir->node[x].op == op ? ir->node[x].arg[0] : -1;
    case FA_SCORE_SELECT:
        return is_number(ir, x, 1) ? y : is_number(ir, x, 0) ? z : y == z ? y : -1;
    default:
        return -1;
    }
}

int fa_score_ir_make(fa_score_ir *ir, fa_score_op op, int x, int y, int z)
{
    const int given[] = { x, y, z };
    fa_score_node node;
    bool constant = true;
    int n = ops[op].arguments;
    for (int k = 0; k < n; k++) {
        if (given[k] < 0)
            return -1;
        constant = constant && ir->node[given[k]].op == FA_SCORE_CONST;
    }
    node = blank(op, type_of(ir, op, x, y));
    if (constant)
        return fa_score_ir_number(ir, node.type,
                                  fa_score_apply(op, ir->node[x].value, n > 1 ? ir->node[y].value : 0, n > 2 ? ir->node[z].value : 0));
    int other = simpler(ir, op, x, y, z);
    if (other >= 0)
        return other;
    node.n = (uint8_t)n;
    for (int k = 0; k < n; k++)
        node.arg[k] = (int16_t)given[k];
    if (commutes(op) && ir->node[x].hash > ir->node[y].hash) {
        node.arg[0] = (int16_t)y;
        node.arg[1] = (int16_t)x;
    }
    return add(ir, node);
}

void fa_score_ir_reach(const fa_score_ir *ir, int node, bool reached[FA_SCORE_ROOM])
{
    reached[node] = true;
    for (int i = node; i >= 0; i--) /* arguments come before */
        for (int k = 0; reached[i] && k < ir->node[i].n; k++)
            reached[ir->node[i].arg[k]] = true;
}

/* Puts what a node is made of, then the node, to the end of the new list. */
static void place(const fa_score_ir *from, int node, fa_score_node *to, int *n, int16_t *moved)
{
    const fa_score_node *old = &from->node[node];
    if (moved[node] >= 0)
        return;
    for (int k = 0; k < old->n; k++)
        place(from, old->arg[k], to, n, moved);
    to[*n] = *old;
    for (int k = 0; k < old->n; k++)
        to[*n].arg[k] = moved[old->arg[k]];
    moved[node] = (int16_t)(*n)++;
}

int fa_score_ir_tidy(fa_score_ir *ir)
{
    fa_score_node list[FA_SCORE_ROOM];
    int16_t moved[FA_SCORE_ROOM];
    int n = 0;
    memset(moved, 0xff, sizeof moved);
    for (int r = 0; r < FA_SCORE_ROOTS; r++)
        if (ir->root[r] >= 0) {
            place(ir, ir->root[r], list, &n, moved);
            ir->root[r] = moved[ir->root[r]];
        }
    memcpy(ir->node, list, (size_t)n * sizeof *list);
    return ir->n = n;
}
