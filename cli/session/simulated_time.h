/* simulated_time: an estimate of the time that the simulator takes for a launch. */
#ifndef FA_CLI_SESSION_SIMULATED_TIME_H
#define FA_CLI_SESSION_SIMULATED_TIME_H
#include "session.h"

/* Of one launch of the problem, its shape filled in, and one of each of so many systems of the literature, which the simulator computes;
 * within a factor of some three. FA_INVALID where that is longer than CLI_SIMULATED_MOST seconds and no --device names the simulator: the
 * message has the lengths, and those that are accepted. With --device a note has the time, and the launch is not refused. */
#define CLI_SIMULATED_MOST 600
fa_status cli_simulated_time(const cli *c, const cli_session *s, const fa_problem *p, int systems);
#endif
