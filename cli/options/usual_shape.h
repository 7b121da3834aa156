/* usual_shape: the shapes of problem_options.h, filled in where a command is given none. A field that is given leaves the others as they
 * are. */
#ifndef FA_CLI_USUAL_SHAPE_H
#define FA_CLI_USUAL_SHAPE_H
#include "gen/problem.h"
#include "problem_list.h"

/* The fields that are 0. */
void cli_shape_of_simulator(fa_problem *p);

/* The same where lists leave them out. */
extern const cli_problem_lists cli_lists_of_gpu, cli_lists_of_simulator;
#endif
