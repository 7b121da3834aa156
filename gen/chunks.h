/* chunks: the .lua files of templates.h as Lua compiled them when the library was built, row by row; of a .cu file nothing. No file of a
 * user's is read so: Lua does not check what it did not compile itself. */
#ifndef FA_GEN_CHUNKS_H
#define FA_GEN_CHUNKS_H
#include <stddef.h>

typedef struct fa_template_chunk {
    const char *bytes;
    size_t size;
} fa_template_chunk;
extern const fa_template_chunk fa_template_chunks[];
#endif
