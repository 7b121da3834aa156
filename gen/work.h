/* work: what a family says that a step costs, read from what its work() returns. */
#ifndef FA_GEN_WORK_H
#define FA_GEN_WORK_H
#include "family.h"
#include "model.h"

/* What the family's work() says of one block of rows x cols scores of a step, or of a step without any: cols 0. A cluster takes it
 * together: what is per pair is shared out among its thread blocks, the rest is of each. */
typedef struct fa_work {
    double rows, cols;
    double group;              /* rows that walk the keys by themselves: where their mask ends they rest; 0 = all of a thread block */
    double matrix_flops, exps; /* per pair */
    double issue, smem_bytes, latency; /* per block of scores; latency: clocks in which its thread block only waits */
    double tile_issue, tile_latency;   /* per row tile: prologue and epilogue; instructions, and clocks of waiting */
    double efficiency;                 /* of the matrix unit's rate; of the bandwidth, where there are no scores */
    double shows;     /* share that still shows of the shorter of matrix work and the rest; -1 = as mma.sync, by the warps */
    double felt;      /* together by exponentials and other instructions, of the same warps: the norm of the two; 0 = the longer alone */
    double l2_speed;  /* at which its loads leave the L2, over the arch's l2_gbs */
    double hbm_speed; /* likewise of memory, over what long runs of whole lines are read at */
    double regs;      /* per thread, as the compiler is expected to use them; 0 = the layout's */
    double rate;      /* of the unit, FLOP per clock and SM */
    char unit[12];
    const fa_algorithm *algorithm; /* that counts the bytes; NULL: bytes */
    double bytes;                  /* of global memory */
    double share; /* of the blocks of scores that the launch's mask leaves so many are walked: a score program hides others */
    double
        uneven;  /* where they are not all: so many times as long as the mean is the longest tile, the shortest is none; 0: all are alike */
    double even; /* 1: the rows of a head are cut evenly over its tiles; 0: the last has what is left */
    double cuts; /* parts of the keys of each row tile, which thread blocks take one by one */
    double rest; /* so many row tiles of the last round alone are cut; 0: all are */
    double gathers; /* 1: fewer thread blocks than SMs come in twos, as many to an SM as fit: the launch before still holds some */
} fa_work;

/* Inside a run. Asks work() of a family that has one about the config in fr->c, which has so many steps: shaped is the index of the
 * problem's table with its shape, layout that of the config's layout. Returns how many of out are filled: one for each step, or one that
 * stands for all. Raises what is wrong with the answer. */
int fa_work_ask(lua_State *L, const fa_lua_args *fr, int shaped, const fa_family *f, const fa_problem *p, int layout, int steps,
                fa_work out[FA_SOURCE_STEPS]);
#endif
