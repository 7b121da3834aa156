/* npy: tensors in NumPy's file format (NEP 1), versions 1.0 to 3.0: little-endian fp16, fp32, int32 and int64 in C order, nothing else. */
#ifndef FA_CLI_FILES_NPY_H
#define FA_CLI_FILES_NPY_H
#include <fagen.h>
#include <stdbool.h>

#define CLI_NPY_DIMS 8
#define CLI_NPY_BYTES ((size_t)1 << 36) /* the largest file taken */

enum { CLI_NPY_I32 = 0x100, CLI_NPY_I64 }; /* beside FA_F16 and FA_F32 of fa_dtype */

typedef struct cli_npy {
    int dtype; /* FA_F16, FA_F32, CLI_NPY_I32 or CLI_NPY_I64 */
    int n;     /* dimensions */
    int64_t dim[CLI_NPY_DIMS];
    size_t count;     /* elements */
    const void *data; /* unaligned; inside file */
    char *file;       /* heap */
} cli_npy;

/* Reads the header at bytes[0..size) and checks that exactly the data it promises follows. Any byte sequence is safe. FA_INVALID
 * says what is wrong with `name`. out->data points into bytes. */
fa_status cli_npy_parse(cli_npy *out, const char *name, const void *bytes, size_t size);

/* The same for a file: FA_IO when it cannot be read. */
fa_status cli_npy_read(cli_npy *out, const char *path);
void cli_npy_free(cli_npy *a); /* zeros are fine */

/* Element i of floating-point numbers as fp32, of integers as int64. */
float cli_npy_at(const cli_npy *a, size_t i);
int64_t cli_npy_integer(const cli_npy *a, size_t i);
bool cli_npy_has_integers(const cli_npy *a);
const char *cli_npy_type(const cli_npy *a); /* "fp16", "int32", ... */

/* dtype FA_F16, FA_F32 or CLI_NPY_I32; data are dense. Whole or not at all. */
fa_status cli_npy_write(const char *path, int dtype, int n, const int64_t *dim, const void *data);
#endif
