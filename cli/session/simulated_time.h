/* simulated_time: how long the simulator takes for a launch, told before it begins. */
#ifndef FA_CLI_SESSION_SIMULATED_TIME_H
#define FA_CLI_SESSION_SIMULATED_TIME_H
#include "session.h"

/* Of one launch of the problem, its shape filled in, and one of each of so many systems of the literature, which the simulator computes;
 * within a factor of some three. What takes longer than CLI_SIMULATED_MOST seconds is refused where the simulator took a GPU's place
 * unasked: the message names the lengths, and those that are accepted. Where the simulator was asked for, a note tells. */
#define CLI_SIMULATED_MOST 600
fa_status cli_simulated_time(const cli *c, const cli_session *s, const fa_problem *p, int systems);
#endif
