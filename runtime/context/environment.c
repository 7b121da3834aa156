/* environment: the one reader of environment variables. */
#include "environment.h"
#include <stdlib.h>

fa_environment fa_environment_read(void)
{
    return (fa_environment){
        .cache_dir = secure_getenv("FAGEN_CACHE_DIR"),
        .template_dir = secure_getenv("FAGEN_TEMPLATE_DIR"),
        .nvrtc = secure_getenv("FAGEN_NVRTC"),
        .device = secure_getenv("FAGEN_DEVICE"),
        .log = secure_getenv("FAGEN_LOG"),
        .workload = secure_getenv("FAGEN_WORKLOAD"),
        .ggml = secure_getenv("FAGEN_GGML"),
        .ggml_path = secure_getenv("GGML_BACKEND_PATH"),
        .cuda_home = secure_getenv("CUDA_HOME"),
        .cuda_path = secure_getenv("CUDA_PATH"),
        .virtual_env = secure_getenv("VIRTUAL_ENV"),
        .home = secure_getenv("HOME"),
        .prepend_flags = getenv("NVRTC_PREPEND_FLAGS"),
        .append_flags = getenv("NVRTC_APPEND_FLAGS"),
    };
}
