/* no_launch: a driver table whose launches return at once, so that what is left of fa_launch() is fagen's own time. */
#ifndef FA_CLI_SESSION_NO_LAUNCH_H
#define FA_CLI_SESSION_NO_LAUNCH_H
#include "sim/driver.h"

/* The table *d with every function that starts kernels taken out: cuLaunchKernel, cuLaunchKernelEx (clusters, kernels that begin early)
 * and cuGraphLaunch. They succeed and do nothing. */
cu_driver cli_no_launch(const cu_driver *d);
#endif
