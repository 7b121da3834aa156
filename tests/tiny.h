/* tiny: a whole life of a context on the simulator, with one small launch that is judged against fp64. */
#ifndef FA_TEST_TINY_H
#define FA_TEST_TINY_H
#include "cache/record.h"
#include <fagen.h>
#include <stdbool.h>

typedef struct tiny_result {
    fa_status status; /* of the first call that failed, or FA_OK */
    bool right;       /* the output is */
    bool cached;      /* the kernel came from the disk */
    int warnings;     /* log messages of FA_LOG_WARN and worse */
    char said[400];   /* the last of them, or the failure's message */
} tiny_result;

typedef struct tiny_way {
    const char *cache, *nvrtc;   /* options cache_dir and nvrtc; NULL = as the environment says */
    const fa_record *record;     /* NULL, or one that is appended before */
    void (*between)(void *user); /* NULL, or what happens between the opening of the context and the launch */
    void *user;
} tiny_way;

tiny_result tiny_launch(const tiny_way *w);

/* Compiles the kernel of tiny_launch(record) with the real NVRTC and leaves its PTX in a file, for fake_nvrtc. False: what it says. */
bool tiny_ptx(const char *path, const char *empty_folder, const fa_record *record, tiny_result *out);

/* A record that makes the launch run the config, as a tuner would leave one. False when the config does not parse. */
bool tiny_record(fa_record *out, const char *config);
#endif
