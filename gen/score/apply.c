/* apply: the operations in fp64, with the results of Lua's own. */
#include "apply.h"
#include <math.h>

/* With the sign of y. */
static double floored_mod(double x, double y)
{
    double r = fmod(x, y);
    return (r > 0 ? y < 0 : r < 0 && y > r) && r != 0 ? r + y : r;
}

static double bits(fa_score_op op, double x, double y)
{
    int64_t a = (int64_t)x, b = (int64_t)y;
    switch (op) {
    case FA_SCORE_BAND:
        return (double)(a & b);
    case FA_SCORE_BOR:
        return (double)(a | b);
    case FA_SCORE_BXOR:
        return (double)(a ^ b);
    default:
        return b > 31 ? 0 : (double)(a >> b);
    }
}

static double function(fa_score_op op, double x)
{
    switch (op) {
    case FA_SCORE_EXP:
        return exp(x);
    case FA_SCORE_EXP2:
        return exp2(x);
    case FA_SCORE_LOG:
        return log(x);
    case FA_SCORE_LOG2:
        return log2(x);
    case FA_SCORE_TANH:
    case FA_SCORE_TANH_EXACT:
        return tanh(x);
    case FA_SCORE_SQRT:
        return sqrt(x);
    case FA_SCORE_RSQRT:
        return 1 / sqrt(x);
    case FA_SCORE_SIGMOID:
        return 1 / (1 + exp(-x));
    default:
        return NAN;
    }
}

double fa_score_apply(fa_score_op op, double x, double y, double z)
{
    switch (op) {
    case FA_SCORE_ADD:
        return x + y;
    case FA_SCORE_SUB:
        return x - y;
    case FA_SCORE_MUL:
        return x * y;
    case FA_SCORE_NEG:
        return -x;
    case FA_SCORE_DIV:
        return x / y;
    case FA_SCORE_IDIV:
        return floor(x / y);
    case FA_SCORE_MOD:
        return floored_mod(x, y);
    case FA_SCORE_MIN:
        return y < x ? y : x;
    case FA_SCORE_MAX:
        return y > x ? y : x;
    case FA_SCORE_ABS:
        return fabs(x);
    case FA_SCORE_FLOOR:
        return floor(x);
    case FA_SCORE_TOFLOAT:
        return x;
    case FA_SCORE_BAND:
    case FA_SCORE_BOR:
    case FA_SCORE_BXOR:
    case FA_SCORE_SHR:
        return bits(op, x, y);
    case FA_SCORE_LT:
        return x < y;
    case FA_SCORE_LE:
        return x <= y;
    case FA_SCORE_EQ:
        return x == y;
    case FA_SCORE_AND:
        return x != 0 && y != 0;
    case FA_SCORE_OR:
        return x != 0 || y != 0;
    case FA_SCORE_NOT:
        return x == 0;
    case FA_SCORE_SELECT:
        return x != 0 ? y : z;
    default:
        return function(op, x);
    }
}
