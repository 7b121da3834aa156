/* settings: what FAGEN_GGML says, words with commas between them. */
#ifndef FA_GGML_SETTINGS_H
#define FA_GGML_SETTINGS_H
#include <stdbool.h>
#include <stddef.h>

typedef struct fa_ggml_settings {
    bool off;           /* "off": nothing is hooked */
    bool all;           /* "all": what is slower than ggml's kernel is computed here, too */
    bool tells;         /* "log": claims are told, too */
    bool nearest;       /* "nearest": while a node's kernel is compiled the nearest one that is there runs; else the node waits for it */
    int tier;           /* "tier=1", 2, 3: how work is put on ggml's stream at most; 0 = 2 */
    int memory;         /* "memory=N": MiB of device memory of a backend at most; 0 = FA_GGML_MEMORY */
    char simulator[48]; /* "sim:ARCH": a test device "fagen" on the simulator, and host tensors of hooked devices are computed there */
    char registry[16];  /* "hook=CPU": the registry whose devices are hooked, in the place of CUDA; needs sim:ARCH */
} fa_ggml_settings;

/* text NULL: all unset. false: `why` names the word and what is accepted. */
bool fa_ggml_settings_read(fa_ggml_settings *s, const char *text, char *why, size_t n);
#endif
