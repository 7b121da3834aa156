/* metadata: what an entry says of itself: what it is for, and all that its key was made of, so that a key can be made again and two
 * entries can be compared. One JSON object in the file. */
#ifndef FA_CACHE_METADATA_H
#define FA_CACHE_METADATA_H
#include "entry.h"
#include "gen/problem.h"

#define FA_METADATA_OPTIONS 16
#define FA_METADATA_OPTION_SIZE 256

typedef struct fa_metadata {
    char problem[FA_PROBLEM_TEXT], config[512];                 /* as printed; "" = not told */
    char source[64];                                            /* the template's file, "flash_fwd_mma.cu" */
    uint64_t text[2];                                           /* hash of the rendered text */
    char options[FA_METADATA_OPTIONS][FA_METADATA_OPTION_SIZE]; /* as hashed: the compiler's, then what its environment adds */
    int32_t n_options;
    char arch[16];
    char compiler[128];       /* name and identity of its library */
    int32_t format;           /* FA_FORMAT_VERSION of its maker */
    char fagen[24], date[24]; /* its maker; UTC */
    bool whole;               /* set by parsing: everything the key is made of is there */
} fa_metadata;

/* False when memory ran out, or a member is not UTF-8. */
bool fa_metadata_print(const fa_metadata *a, fa_text *out);
/* Members that are missing or of another type are zero. False when it is no JSON object. */
bool fa_metadata_parse(fa_metadata *out, const char *json, size_t n);

/* The key that follows from it; meaningful where it is whole. */
fa_key fa_metadata_key(const fa_metadata *a);

/* In how many of the fields problem, config, text, arch, options, compiler and format two differ. *field: the name of the first, a
 * literal, and buf: a sentence about it, "compiler: nvrtc 13.0 ... here, nvrtc 12.9 ... there"; a is here. 0: the keys are the same. */
int fa_metadata_differ(const fa_metadata *a, const fa_metadata *b, const char **field, char *buf, size_t n);
#endif
