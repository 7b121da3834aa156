/* environment: every variable that fagen reads, read in one place through secure_getenv and never on a launch. */
#ifndef FA_RUNTIME_CONTEXT_ENVIRONMENT_H
#define FA_RUNTIME_CONTEXT_ENVIRONMENT_H

typedef struct fa_environment {
    const char *cache_dir, *template_dir, *nvrtc, *device, *log, *workload, *ggml; /* FAGEN_*: NULL when unset */
    const char *ggml_path;                                                         /* GGML_BACKEND_PATH */
    const char *cuda_home, *cuda_path, *virtual_env, *home;                        /* where a toolkit or a wheel may lie */
    const char *prepend_flags, *append_flags;                                      /* what NVRTC itself would add to its options */
} fa_environment;

/* A snapshot. All NULL under AT_SECURE, but for the flags, which NVRTC would obey even there. Valid until setenv. */
fa_environment fa_environment_read(void);
#endif
