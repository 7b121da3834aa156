/* kernel_report: what one kernel is made of: the fields of its key, what it uses of the chip, the template lines it came from. */
#ifndef FA_CLI_SHOW_KERNEL_REPORT_H
#define FA_CLI_SHOW_KERNEL_REPORT_H
#include "cache/entry.h"
#include "cli/text/cli.h"
#include "gen/model.h"
#include "gen/source.h"
#include "runtime/build/compiler.h"
#include "runtime/build/resources.h"

#define CLI_KERNEL_REPORT_FILES 16

typedef struct cli_kernel_report {
    const fa_source *source;
    const fa_arch *arch;
    fa_key key; /* of the cubin; zero where there is no compiler */
    char compiler[160], options[300];
    fa_entry cubin; /* image NULL: no compiler, or it refused */
    bool cached;
    char trouble[400]; /* why there is no cubin; "" */
    fa_resources resources[FA_SOURCE_STEPS];
    fa_cost cost; /* with the registers of the first step; seconds 0 = the model has no price */
    struct {
        char name[40];
        int32_t first, last, lines;
    } file[CLI_KERNEL_REPORT_FILES];
    int32_t files;
} cli_kernel_report;

/* Takes the cubin out of the cache, or compiles it, which leaves it there. No compiler is no failure: see trouble. source and arch are
 * borrowed. */
void cli_kernel_report_make(cli_kernel_report *out, fa_gen *g, fa_store *store, fa_compiler *compiler, const fa_problem *p,
                            const fa_config *c, const fa_arch *arch, const fa_source *source);
void cli_kernel_report_free(cli_kernel_report *a);
json_t *cli_kernel_report_json(const cli_kernel_report *a);
/* simulated: launches are of the simulator, whose kernels are PTX, with keys of their own. */
void cli_kernel_report_print(const cli_kernel_report *a, bool simulated);

/* The machine code of an image of cubins as nvdisasm or cuobjdump tell it; FA_IO where neither is found, with where they were looked for:
 * then *missing is true, and the command ends with CLI_EXIT_MISSING. */
fa_status cli_sass(const char *image, size_t n, fa_text *out, bool *missing);
#endif
