/* step_text: the text of a source with the kernel of one step alone, so that steps are compiled side by side. */
#ifndef FA_RUNTIME_BUILD_STEP_TEXT_H
#define FA_RUNTIME_BUILD_STEP_TEXT_H
#include "gen/source.h"
#include <stdbool.h>

/* Whether the text can be taken apart: it has several kernels, each step one of its own, a definition that begins a line with
 * extern "C" __global__ and ends at the next line that is "}", and no variable in device memory, which two programs would not share. */
bool fa_step_text_apart(const fa_source *s);

/* What NVRTC compiles of it for step i, on the heap: the lines of the other kernels are empty, all others stay where they are. NULL: memory
 * ran out. fa_step_text_apart() holds. */
char *fa_step_text(const fa_source *s, int i);
#endif
