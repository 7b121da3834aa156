/* libfagen_ggml.so as programs load it: one without ggml, `fagen doctor --ggml`, and one that shows ggml's functions. */
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(ggml_library, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

/* A program without ggml: nothing is undefined, one line is told, and nothing is done. */
Test(ggml_library, the_library_loads_without_ggml)
{
    void *file = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(file, "%s", dlerror());
    void *(*init)(void) = (void *(*)(void))dlsym(file, "ggml_backend_init");
    cr_assert_not_null(init);
    cr_expect_null(init());
    dlclose(file);
}

/* What `fagen doctor --ggml` tells of it, and of its absence. */
Test(ggml_library, the_doctor)
{
    static const struct {
        const char *environment, *words[2];
    } rows[] = { { "FAGEN_GGML=tier=1 GGML_BACKEND_PATH='" PLUGIN "'", { "K and V in f32, f16, bf16, q8_0", "tier 1 at most" } },
                 { "FAGEN_GGML=on GGML_BACKEND_PATH='" PLUGIN "'", { "FAGEN_GGML: on is none of its words", "FAGEN_GGML is on" } },
                 { "GGML_BACKEND_PATH=/nonexistent.so", { "/nonexistent.so: cannot open", "-DFAGEN_GGML=ON" } } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static char text[16384];
        char command[1024];
        snprintf(command, sizeof command, "%s FAGEN_NVRTC=/nonexistent '%s' doctor --ggml --json 2>&1", rows[i].environment,
                 getenv("FAGEN_COMMAND"));
        FILE *f = popen(command, "r");
        cr_assert_not_null(f);
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        pclose(f);
        for (int k = 0; k < 2; k++)
            cr_expect(strstr(text, rows[i].words[k]) != NULL, "%s: no \"%s\" in %s", rows[i].environment, rows[i].words[k], text);
    }
}

/* A program that shows ggml's functions, which names the library and computes a graph: the device is hooked, its tensors are the host's. */
Test(ggml_library, a_program_loads_the_library)
{
    char text[4096] = "", command[1024];
    snprintf(command, sizeof command, "FAGEN_GGML=sim:sm_80 GGML_BACKEND_PATH='%s' '%s' 2>&1", PLUGIN, PROGRAM);
    FILE *f = popen(command, "r");
    cr_assert_not_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    cr_expect_eq(pclose(f), 0, "%s", text);
    cr_expect(strstr(text, "fagen, 1 devices, claimed by the hook: right"), "%s", text);
}

/* Without a driver, and without a compiler: the program's node is computed by ggml, and one line tells. */
Test(ggml_library, a_program_runs_on_without_a_driver_or_a_compiler)
{
    static const struct {
        const char *environment, *words;
    } rows[] = { { "FAGEN_GGML=all LD_LIBRARY_PATH='%s'", "fagen: CUDA0 stays ggml's alone: FA_NO_DRIVER" },
                 { "FAGEN_GGML=sim:sm_80,all FAGEN_NVRTC='%s/libcuda.so.1' FAGEN_CACHE_DIR=",
                   "fagen: CUDA0 stays ggml's alone: FA_NO_NVRTC" } };
    char path[512], environment[768], command[2048];
    snprintf(path, sizeof path, "%s/libcuda.so.1", scratch);
    FILE *none = fopen(path, "w"); /* no library: the loader looks no further */
    cr_assert_not_null(none);
    fclose(none);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096] = "", *at = text;
        int newlines = 0;
        snprintf(environment, sizeof environment, rows[i].environment, scratch);
        snprintf(command, sizeof command, "%s GGML_BACKEND_PATH='%s' '%s' theirs 2>&1", environment, PLUGIN, PROGRAM);
        FILE *f = popen(command, "r");
        cr_assert_not_null(f);
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        cr_expect_eq(pclose(f), 0, "%zu: %s", i, text);
        cr_expect(strstr(text, rows[i].words) && strstr(text, "computed by ggml: yes"), "%zu: %s", i, text);
        while ((at = strchr(at, '\n')) != NULL)
            at++, newlines++;
        cr_expect_eq(newlines, 2, "%zu: %s", i, text); /* the program's is the other one */
    }
}
