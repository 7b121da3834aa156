/* gen: the generator: families loaded from templates/, their spaces, their text. One object holds one Lua state; it is not
 * thread-safe: give each thread its own (opening takes about a millisecond). */
#ifndef FA_GEN_GEN_H
#define FA_GEN_GEN_H
#include "arch.h"
#include "config.h"
#include "source.h"
#include <fagen.h>

typedef struct fa_gen fa_gen;

/* template_dir: NULL or "" = the embedded templates; else files there override the embedded ones one by one. */
fa_status fa_gen_open(fa_gen **out, const char *template_dir);
void fa_gen_close(fa_gen *g); /* NULL is fine */

/* The families in a fixed order, "flash_fwd_mma" first. */
size_t fa_gen_families(const fa_gen *g);
const char *fa_gen_family(const fa_gen *g, size_t i);

/* One tunable of a family, for help texts and docs. */
typedef struct fa_tunable {
    const char *name, *doc;
    const int32_t *values;
    size_t n;
} fa_tunable;
/* False when i is past the last one. Valid until fa_gen_close. */
bool fa_gen_tunable(const fa_gen *g, const char *family, size_t i, fa_tunable *out);

/* Renders a config to text: deterministic, byte for byte. Checks the hard constraints first: FA_NO_FIT or FA_UNSUPPORTED
 * with the constraint's name and numbers; FA_TEMPLATE with file, line and the line's text for a fault in a template. */
fa_status fa_render(fa_gen *g, const fa_problem *p, const fa_config *c, const fa_arch *a, int32_t budget, fa_source *out);
#endif
