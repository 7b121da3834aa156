/* struct_size: the first member of public structs: what a caller of any version's header says is there. */
#ifndef FA_RUNTIME_ARGS_STRUCT_SIZE_H
#define FA_RUNTIME_ARGS_STRUCT_SIZE_H
#include <fagen.h>

/* Of the struct fa_NAME: size is at least `least`, no more than any header's struct, and its bytes [known, size) are 0. Nothing is read
 * where the size is none. */
fa_status fa_struct_size_check(const void *s, uint32_t size, size_t least, size_t known, const char *name);
#endif
