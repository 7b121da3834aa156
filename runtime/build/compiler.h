/* compiler: rendered text in, a cubin or PTX out. Needs no device and no driver; thread-safe. */
#ifndef FA_RUNTIME_BUILD_COMPILER_H
#define FA_RUNTIME_BUILD_COMPILER_H
#include "cache/entry.h"
#include "gen/source.h"
#include "nvrtc.h"
#include <stdatomic.h>

typedef struct fa_compiler fa_compiler;

/* nvrtc: path of the library, NULL = searched for. Opens nothing yet. NULL only when memory runs out. */
fa_compiler *fa_compiler_open(const char *nvrtc);
void fa_compiler_close(fa_compiler *c); /* NULL is fine */

/* The library, opened by the first call that needs it; a failure is tried again by the next. */
fa_status fa_compiler_nvrtc(fa_compiler *c, const fa_nvrtc **out);

/* What is compiled to: a cubin or, for a driver that takes it, PTX: ptxas is not run. Lean: without the line table, which is most of the
 * bytes and none of the code: for images that are shipped. Steps: cubins of the same code, one for each step of the source (parts.h),
 * compiled side by side where the text can be taken apart (step_text.h); else, and with PTX, as without. */
enum { FA_IMAGE_CUBIN = 0, FA_IMAGE_PTX = 1, FA_IMAGE_LEAN = 2, FA_IMAGE_STEPS = 4 };
#define FA_IMAGE_LOADED(takes_ptx) ((takes_ptx) ? FA_IMAGE_PTX : FA_IMAGE_STEPS) /* what fa_build() makes for a driver */

/* Without FA_IMAGE_STEPS where that says nothing of this source. */
int fa_image_kind(const fa_source *s, int kind);

/* What the text is compiled with. */
#define FA_COMPILER_OPTIONS 8
typedef struct fa_compile_options {
    const char *list[FA_COMPILER_OPTIONS];
    int n;
    char arch[40];
    bool apart; /* once for each step */
} fa_compile_options;
/* arch: "sm_90a". kind: of fa_image_kind(). */
void fa_compile_options_make(fa_compile_options *out, const fa_nvrtc *nvrtc, const char *arch, int kind);

/* All that is hashed of them, in order: the options, whether steps are apart, then what the environment makes NVRTC add. Returns how many;
 * the strings live as long as o and the environment. */
#define FA_COMPILER_KEYED (FA_COMPILER_OPTIONS + 3)
int fa_compile_options_keyed(const fa_compile_options *o, const char *out[FA_COMPILER_KEYED]);

/* The key of what compiling would give: no compilation. */
fa_status fa_compiler_key(fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_key *out);

/* Runs NVRTC, for several steps on as many threads. Fills key, arch, ptx, image and log of *out (fa_entry_free it); `metadata` stays NULL.
 * FA_COMPILE carries the first error lines, which name templates/FILE:LINE; FA_NO_NVRTC. FA_INTERRUPTED: given up, or not begun, since the
 * process exits, or after sim_interrupt(), or for the sake of fa_compiler_heed(). */
fa_status fa_compile(fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_entry *out);

/* The compilations of this thread from now on end early once *stop is set. It stays where it is until fa_compiler_heed(NULL). */
void fa_compiler_heed(const atomic_bool *stop);
#endif
