/* xla_ffi: XLA's C interface for custom calls (FFI, version 0.1 and later), as far as jax_ffi.c uses it, by names of its own. Structs of
 * that interface grow only at their ends; a test compares the offsets with those of the jaxlib that is installed. */
#ifndef FAGEN_XLA_FFI_H
#define FAGEN_XLA_FFI_H
#include <stddef.h>
#include <stdint.h>

enum { XLA_METADATA = 1, XLA_ARRAY = 1, XLA_SCALAR = 3, XLA_STRING = 4, XLA_EXECUTE = 3 };
enum { XLA_PRED = 1, XLA_S32 = 4, XLA_S64 = 5, XLA_U8 = 6, XLA_U32 = 8, XLA_F16 = 10, XLA_F32 = 11, XLA_F64 = 12, XLA_BF16 = 16 };
enum { XLA_INVALID_ARGUMENT = 3, XLA_RESOURCE_EXHAUSTED = 8, XLA_FAILED_PRECONDITION = 9, XLA_UNIMPLEMENTED = 12, XLA_INTERNAL = 13 };

typedef struct xla_extension {
    size_t size;
    int type;
    struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
    size_t size;
    xla_extension *extension;
    int major, minor;
} xla_version;

typedef struct xla_metadata {
    size_t size;
    xla_version version;
    uint32_t traits;
} xla_metadata;

typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_error xla_error;
typedef struct xla_execution xla_execution;

typedef struct xla_error_create_args {
    size_t size;
    xla_extension *extension;
    const char *message;
    int code;
} xla_error_create_args;

typedef struct xla_error_destroy_args {
    size_t size;
    xla_extension *extension;
    xla_error *error;
} xla_error_destroy_args;

typedef struct xla_stream_get_args {
    size_t size;
    xla_extension *extension;
    xla_execution *execution;
    void *stream;
} xla_stream_get_args;

typedef struct xla_api {
    size_t size;
    xla_extension *extension;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_create_args *);
    void *error_get_message;
    void (*error_destroy)(xla_error_destroy_args *);
    void *handler_register;
    xla_error *(*stream_get)(xla_stream_get_args *);
} xla_api;

typedef struct xla_buffer {
    size_t size;
    xla_extension *extension;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dims;
} xla_buffer;

typedef struct xla_text {
    const char *at;
    size_t size;
} xla_text;

typedef struct xla_scalar {
    int dtype;
    void *value;
} xla_scalar;

typedef struct xla_array {
    int dtype;
    size_t size;
    void *data;
} xla_array;

/* Of arguments and of results. */
typedef struct xla_buffers {
    size_t struct_size;
    xla_extension *extension;
    int64_t n;
    int *types;
    xla_buffer **at;
} xla_buffers;

typedef struct xla_attributes {
    size_t struct_size;
    xla_extension *extension;
    int64_t n;
    int *types;
    xla_text **names;
    void **values;
} xla_attributes;

typedef struct xla_call {
    size_t size;
    xla_extension *extension;
    const xla_api *api;
    xla_execution *execution;
    int stage;
    xla_buffers arguments, results;
    xla_attributes attributes;
} xla_call;
#endif
