/* host: the program around one kernel's text: how its kernels are launched for one problem, and a main that checks what they give. */
#ifndef FA_CLI_EMIT_HOST_H
#define FA_CLI_EMIT_HOST_H
#include "cli/options/args.h"
#include "gen/text.h"
#include "runtime/runtime.h"

/* Appends it to out, behind the kernel's text, which `s` is of: a file that `nvcc -arch=ARCH -std=c++17` builds alone. The launch is what
 * fagen itself does, recorded on the simulator of the arch: grid, block, shared memory, clusters, tensor maps, parameters, workspace. Dense
 * forward problems alone: FA_INVALID otherwise. p is normalized; what it leaves open of the shape is small. window: what the mask
 * lets see, where it is given. */
fa_status emit_host(fa_text *out, const fa_arch *arch, int32_t sram, const fa_problem *p, const fa_config *config, const fa_source *s,
                    const cli_reach *window);
#endif
