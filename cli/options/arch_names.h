/* arch_names: chips as the command line names them: by architecture or by product. */
#ifndef FA_CLI_OPTIONS_ARCH_NAMES_H
#define FA_CLI_OPTIONS_ARCH_NAMES_H
#include "gen/arch.h"
#include <fagen.h>

/* FA_INVALID: its message names the option, the name that was perhaps meant, and what is accepted. */
fa_status cli_arch_find(const fa_arch **out, const char *option, const char *name);
/* Whether each chip of "sim:ARCH,ARCH:N" is known; a text that does not begin so is accepted. */
fa_status cli_device_check(const char *option, const char *device);
/* The row that "sim:ARCH..." names, of several the first; NULL: it is no simulator, or not known. */
const fa_arch *cli_device_arch(const char *device);
#endif
