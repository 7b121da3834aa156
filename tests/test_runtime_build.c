/* From text to a kernel: the compiler, the cache before it, and what happens when either is not as it should be. */
#include "fake_driver.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <sys/wait.h>

TestSuite(runtime_build, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

static fa_source source_of(const char *text)
{
    fa_source s;
    memset(&s, 0, sizeof s);
    uint64_t h = 14695981039346656037u;
    for (const char *c = text; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211u;
    s.text = s.lined = (char *)text;
    s.text_size = strlen(text);
    s.hash[0] = h;
    s.hash[1] = ~h;
    strcpy(s.name, "test.cu");
    s.steps = 1;
    strcpy(s.step[0].entry, "k");
    s.step[0].threads = 32;
    return s;
}

static const char *const kernel = "extern \"C\" __global__ void k(float *p) { p[threadIdx.x] = 1.f; }\n";

static int compiles;
static char told[512]; /* the last line about a kernel */

static void count(void *user, int level, const char *message)
{
    (void)user, (void)level;
    compiles += strstr(message, "from the compiler") != NULL;
    if (strstr(message, "from the "))
        snprintf(told, sizeof told, "%s", message);
}

static fa_context *open_in(const char *cache)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = cache;
    o.log = count;
    o.log_level = FA_LOG_INFO;
    cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK, "%s", fa_last_error());
    return ctx;
}

static const char *entry_path(fa_key k)
{
    char hex[33];
    fa_key_print(hex, k);
    return below("v1/kernels/%.2s/%s.fak", hex, hex);
}

Test(runtime_build, cubin_with_resources_and_ptx_without)
{
    fa_compiler *c = fa_compiler_open(NULL);
    fa_source s = source_of(kernel);
    fa_entry e;
    cr_assert_eq(fa_compile(c, &s, "sm_90a", 0, &e), FA_OK, "%s", fa_last_error());
    cr_assert(e.image_size > 64 && memcmp(e.image, "\177ELF", 4) == 0 && !e.ptx);
    fa_resources r = fa_resources_parse(e.log, "k");
    cr_assert(r.known && r.registers > 0 && r.spill_stores == 0 && r.stack == 0, "%s", e.log);
    cr_assert_not(fa_resources_parse(e.log, "other").known);
    fa_key cubin = e.key;
    fa_entry_free(&e);
    cr_assert_eq(fa_compile(c, &s, "sm_90a", 1, &e), FA_OK, "%s", fa_last_error());
    cr_assert(strstr(e.image, ".target sm_90a") && e.ptx && e.image[e.image_size - 1] == 0);
    cr_assert(e.key.lo != cubin.lo);
    fa_entry_free(&e);
    fa_compiler_close(c);
}

Test(runtime_build, resources_are_read_per_entry)
{
    const char *log = "ptxas info    : Compiling entry function 'k2' for 'sm_90a'\nptxas info    : Function properties for k2\n"
                      "ptxas         .     400 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
                      "ptxas info    : Used 30 registers, used 0 barriers, 400 bytes cumulative stack size\n"
                      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
                      "ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem\n";
    fa_resources a = fa_resources_parse(log, "k2"), b = fa_resources_parse(log, "k");
    cr_assert(a.known && a.registers == 30 && a.stack == 400 && a.spill_stores == 12 && a.spill_loads == 16 && a.smem == 0 && !a.note[0]);
    cr_assert(b.known && b.registers == 255 && b.stack == 0 && b.spill_stores == 0 && b.smem == 1024 && !b.note[0]);
    cr_assert_not(fa_resources_parse("", "k").known);
    cr_assert_not(fa_resources_parse(NULL, "k").known);
}

Test(runtime_build, what_the_log_tells_of_a_kernel)
{
    fa_source s = source_of(kernel);
    const fa_kernel *k;
    fa_context *ctx = open_in("");
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK, "%s", fa_last_error());
    cr_expect(strstr(told, "test.cu") && strstr(told, "PTX") && !strstr(told, "0 registers"), "PTX has no registers: %s", told);
    fa_destroy(ctx);
    ctx = open_in("");
    fake_ptx(false);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK, "%s", fa_last_error());
    cr_expect(strstr(told, "k: ") && strstr(told, " registers, 0 + 0 bytes spilled") && !strstr(told, ": 0 registers"), "%s", told);
    fa_destroy(ctx);
}

/* As ptxas 13.0 writes them. */
Test(runtime_build, notes_of_slow_kernels)
{
    static const struct {
        const char *line, *k, *k2; /* what each entry is told */
    } rows[] = {
        { "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to the presence of Extern calls in the "
          "function 'k'",
          "C7510: wgmma.mma_async instructions are serialized due to the presence of Extern calls", "" },
        { "(C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the "
          "wgmma pipeline in the function 'k2'",
          "", "C7511: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline" },
        { "(C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill formed pipeline stage in the "
          "function "
          "'called'",
          "C7514: wgmma.mma_async instructions are serialized due to ill formed pipeline stage",
          "C7514: wgmma.mma_async instructions are serialized due to ill formed pipeline stage" },
        { "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.",
          "C7508: 'setmaxnreg' ignored; unable to determine register count at entry.",
          "C7508: 'setmaxnreg' ignored; unable to determine register count at entry." },
        { "(C7519) warpgroup.arrive is injected in around line 82 by compiler to allow use of registers in GMMA in function 'k'",
          "C7519: warpgroup.arrive is injected in around line 82 by compiler to allow use of registers in GMMA", "" },
        { "(C7517) warpgroup.wait is injected in around line 84 by compiler to allow use of registers defined by GMMA in function 'k2'", "",
          "C7517: warpgroup.wait is injected in around line 84 by compiler to allow use of registers defined by GMMA" },
        { "0 bytes gmem", "", "" },
    };
    static const char tail[] = "\nptxas info    : Compiling entry function 'k' for 'sm_90a'\nptxas info    : Used 8 registers\n"
                               "ptxas info    : Compiling entry function 'k2' for 'sm_90a'\nptxas info    : Used 9 registers\n";
    char log[1024];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(log, sizeof log, "ptxas info    : %s%s", rows[i].line, tail);
        fa_resources k = fa_resources_parse(log, "k"), k2 = fa_resources_parse(log, "k2");
        cr_expect(k.known && k.registers == 8 && k2.known && k2.registers == 9);
        cr_expect_str_eq(k.note, rows[i].k, "k: %s", k.note);
        cr_expect(!strncmp(k2.note, rows[i].k2, sizeof k2.note - 1), "k2: %s", k2.note);
    }
    snprintf(log, sizeof log, "ptxas info    : %s\nptxas info    : %s%s", rows[4].line, rows[0].line, tail);
    cr_expect(strstr(fa_resources_parse(log, "k").note, "C7510"), "the worst of two");
}

Test(runtime_build, notes_of_the_compiler_at_hand)
{
    static const char slow[] =
        "extern \"C\" __global__ void __launch_bounds__(128) k(float *o, int n, unsigned long long a, unsigned long long b) {\n"
        "  float d[4];\n"
        "  for (int i = 0; i < 4; i++) d[i] = o[threadIdx.x + i];\n"
        "  asm volatile(\"wgmma.fence.sync.aligned;\");\n"
        "  for (int i = 0; i < n; i++) {\n"
        "    asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\"\n"
        "                 : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"l\"(a), \"l\"(b));\n"
        "    d[0] += 1;\n"
        "  }\n"
        "  asm volatile(\"wgmma.commit_group.sync.aligned;\\n\\twgmma.wait_group.sync.aligned 0;\");\n"
        "  for (int i = 0; i < 4; i++) o[threadIdx.x + i] = d[i];\n"
        "}\n";
    static const char unknown[] = "extern \"C\" __global__ void k(int *o) {\n"
                                  "  asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\"); o[threadIdx.x] = 1;\n}\n";
    const struct {
        const char *text, *says;
    } rows[] = { { slow, "serialized" }, { unknown, "'setmaxnreg' ignored" }, { kernel, NULL } };
    fa_compiler *c = fa_compiler_open(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_source s = source_of(rows[i].text);
        fa_entry e;
        cr_assert_eq(fa_compile(c, &s, "sm_90a", 0, &e), FA_OK, "%s", fa_last_error());
        fa_resources r = fa_resources_parse(e.log, "k");
        cr_expect(rows[i].says ? strstr(r.note, rows[i].says) != NULL : !r.note[0], "\"%s\" of:\n%s", r.note, e.log);
        fa_entry_free(&e);
    }
    fa_compiler_close(c);
}

Test(runtime_build, compile_errors_carry_the_template_line)
{
    fa_compiler *c = fa_compiler_open(NULL);
    fa_source s = source_of("int fine;\n#line 41 \"templates/some.cu\"\nextern \"C\" __global__ void k() { int x = missing; }\n");
    fa_entry e;
    cr_assert_eq(fa_compile(c, &s, "sm_80", 0, &e), FA_COMPILE);
    cr_assert(strstr(fa_last_error(), "templates/some.cu(41)") && strstr(fa_last_error(), "missing"), "%s", fa_last_error());
    cr_assert_null(e.image);
    cr_assert_eq(fa_compile(c, &s, "sm_1", 0, &e), FA_COMPILE);
    fa_compiler_close(c);
}

Test(runtime_build, built_once_then_cached_then_kept)
{
    fa_source s = source_of(kernel);
    const fa_kernel *a, *b;
    fa_context *ctx = open_in(scratch);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &a), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &b), FA_OK);
    cr_assert(a == b && compiles == 1);
    cr_assert_str_eq(a->from, "compiler");
    fa_destroy(ctx);
    ctx = open_in(scratch);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &a), FA_OK);
    cr_assert_str_eq(a->from, "disk cache");
    cr_assert_eq(compiles, 1);
    fa_entry e;
    cr_assert(fa_entry_get(fa_context_store(ctx), a->key, "sm_80", &e));
    cr_assert(e.metadata && strstr(e.metadata, "\"source\":\"test.cu\"") && strstr(e.metadata, "\"compiler\":\"nvrtc "), "%s", e.metadata);
    fa_entry_free(&e);
    fa_destroy(ctx);
    cr_assert_eq(fake_live_libraries(), 0);
}

Test(runtime_build, a_corrupt_entry_is_compiled_anew)
{
    fa_source s = source_of(kernel);
    const fa_kernel *k;
    fa_context *ctx = open_in(scratch);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK);
    const char *path = entry_path(k->key);
    fa_destroy(ctx);
    cr_assert(chmod(path, 0600) == 0 && truncate(path, 100) == 0);
    ctx = open_in(scratch);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK, "%s", fa_last_error());
    cr_assert_eq(compiles, 2);
    fa_destroy(ctx);
    ctx = open_in(scratch);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK);
    cr_assert_eq(compiles, 2, "the entry was repaired");
    fa_destroy(ctx);
}

Test(runtime_build, a_refused_image_is_compiled_once_more)
{
    fa_source s = source_of(kernel);
    const fa_kernel *k;
    fa_context *ctx = open_in(scratch);
    fake_fail("cuLibraryLoadData", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_DEVICE, "fresh out of the compiler: no second try");
    fa_destroy(ctx);
    ctx = open_in(scratch);
    fake_fail("cuLibraryLoadData", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK, "%s", fa_last_error());
    cr_assert_str_eq(k->from, "compiler");
    fa_destroy(ctx);
}

Test(runtime_build, without_a_disk)
{
    fa_source s = source_of(kernel);
    const fa_kernel *k;
    fa_context *ctx = open_in("");
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK, "%s", fa_last_error());
    fa_destroy(ctx);
}

/* A caller that went on would launch a kernel that is not there. */
Test(runtime_build, a_cubin_is_refused_where_only_ptx_runs)
{
    fa_device d = { .driver = fake_driver() };
    fa_source s = source_of(kernel);
    fa_kernel *k = NULL;
    fa_entry e = { .ptx = false,
                   .image = "\x7f"
                            "ELF",
                   .image_size = 4 };
    fake_ptx(true);
    cr_expect_eq(fa_kernel_load(&k, &d, &e, &s), FA_INTERNAL);
    cr_expect(!k && strstr(fa_last_error(), "image: a cubin; accepted by "), "%s", fa_last_error());
    cr_expect_eq(fake_calls("cuLibraryLoadData"), 0);
    e.ptx = true;
    e.image = "// PTX";
    cr_assert_eq(d.driver->cuCtxPushCurrent(fake_context(0)), CUDA_SUCCESS);
    cr_expect_eq(fa_kernel_load(&k, &d, &e, &s), FA_OK, "%s", fa_last_error());
    fa_kernel_unload(&d, k);
}

Test(runtime_build, processes_share_one_compilation)
{
    fa_source s = source_of(kernel);
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            fa_compiler *c = fa_compiler_open(NULL);
            fa_store *store = fa_store_open(scratch, NULL, NULL);
            fa_entry e;
            bool cached;
            fa_status st = fa_build_image(store, c, &s, "sm_80", 0, (fa_subject){ NULL, NULL }, false, &e, &cached);
            fa_entry_free(&e);
            fa_store_close(store);
            fa_compiler_close(c);
            _exit(st != FA_OK ? 2 : cached ? 0 : 1);
        }
    int fresh = 0;
    for (int i = 0; i < 4; i++) {
        int status;
        wait(&status);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        fresh += WEXITSTATUS(status);
    }
    cr_assert_eq(fresh, 1);
}

Test(runtime_build, options_and_compiler_are_in_the_key)
{
    fa_compiler *c = fa_compiler_open(NULL);
    fa_source s = source_of(kernel);
    fa_key a, b;
    cr_assert_eq(fa_compiler_key(c, &s, "sm_80", 0, &a), FA_OK);
    setenv("NVRTC_APPEND_FLAGS", "-G", 1);
    cr_assert_eq(fa_compiler_key(c, &s, "sm_80", 0, &b), FA_OK);
    unsetenv("NVRTC_APPEND_FLAGS");
    cr_assert(a.lo != b.lo);
    const fa_nvrtc *n;
    cr_assert_eq(fa_compiler_nvrtc(c, &n), FA_OK);
    cr_assert(strncmp(n->identity, n->name, strlen(n->name)) == 0 && strlen(n->identity) > strlen(n->name) + 16, "%s", n->identity);
    fa_compiler_close(c);
}

/* What no key could hold is refused before a cache or a compiler is asked, and names what it is. */
Test(runtime_build, what_is_not_in_the_key_is_refused)
{
    static const struct {
        const char *name, *flags, *part;
    } rows[] = {
        { "NVRTC_APPEND_FLAGS", "-G --pre-include=a.h",
          "NVRTC_APPEND_FLAGS is \"-G --pre-include=a.h\"; accepted: flags without \"-include\"" },
        { "NVRTC_PREPEND_FLAGS", "-include a.h", "NVRTC_PREPEND_FLAGS is \"-include a.h\"" },
        { "NVRTC_APPEND_FLAGS", "-I. --include-path=. --use-pch=a", "flags without \"-pch\"" },
        { "NVRTC_APPEND_FLAGS", "--ptxas-options=--options-file=a", "flags without \"-options-file\"" },
        { "NVRTC_APPEND_FLAGS", "-Xptxas -optf=a", "flags without \"-optf\"" },
        { "NVRTC_APPEND_FLAGS", "-I. --include-path=/usr/include -w", NULL },
    };
    const fa_kernel *k;
    fa_key key;
    fa_entry e;
    fa_context *ctx = open_in(scratch);
    fa_compiler *c = fa_context_compiler(ctx);
    fa_source s = source_of(kernel), reads = source_of("int x;\n # include \"a.h\"\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_status want = rows[i].part ? FA_INVALID : FA_OK;
        setenv(rows[i].name, rows[i].flags, 1);
        cr_expect_eq(fa_compiler_key(c, &s, "sm_80", 0, &key), want, "%s: %s", rows[i].flags, fa_last_error());
        cr_expect(!rows[i].part || strstr(fa_last_error(), rows[i].part), "%s", fa_last_error());
        cr_expect_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), want);
        unsetenv(rows[i].name);
    }
    int before = compiles;
    cr_expect_eq(fa_build(ctx, &reads, (fa_subject){ NULL, NULL }, &k), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "test.cu:2: #include reads a file") && strstr(fa_last_error(), "2 |  # include \"a.h\""), "%s",
              fa_last_error());
    cr_expect_eq(fa_compile(c, &reads, "sm_80", 0, &e), FA_TEMPLATE);
    cr_expect_eq(compiles, before);
    fa_destroy(ctx);
}

/* A library that only answers for its version. */
static bool make_nvrtc(const char *path, int major, int minor, const char *functions)
{
    char command[6000];
    FILE *f = fopen(below("nvrtc.c"), "w");
    fprintf(f, "int nvrtcVersion(int *a, int *b) { *a = %d; *b = %d; return 0; }\n%s", major, minor, functions);
    fclose(f);
    snprintf(command, sizeof command, "cc -shared -fPIC -o %s %s 2>/dev/null", path, below("nvrtc.c"));
    return system(command) == 0;
}

static const char *const rest = "void nvrtcGetErrorString(void){} void nvrtcCreateProgram(void){} void nvrtcCompileProgram(void){}\n"
                                "void nvrtcDestroyProgram(void){} void nvrtcGetPTXSize(void){} void nvrtcGetPTX(void){}\n"
                                "void nvrtcGetCUBINSize(void){} void nvrtcGetCUBIN(void){} void nvrtcGetProgramLogSize(void){}\n"
                                "void nvrtcGetProgramLog(void){}\n";

Test(runtime_build, nvrtc_missing_broken_or_too_old)
{
    fa_nvrtc n;
    const char *path = below("libnvrtc.so.12");
    cr_assert_eq(fa_nvrtc_open(&n, below("absent.so"), NULL), FA_NO_NVRTC);
    cr_assert(strstr(fa_last_error(), "absent.so: no such file"), "%s", fa_last_error());
    spill(path, "not a library", 13);
    cr_assert_eq(fa_nvrtc_open(&n, path, NULL), FA_NO_NVRTC);
    const char *line = strstr(fa_last_error(), path);
    cr_assert(line && !strstr(line + 1, path), "the loader's text names the file again: %s", fa_last_error());
    unlink(path);
    if (!make_nvrtc(path, 12, 3, rest))
        cr_skip_test("no C compiler named cc");
    cr_assert_eq(fa_nvrtc_open(&n, path, NULL), FA_NO_NVRTC);
    cr_assert(strstr(fa_last_error(), "12.3") && strstr(fa_last_error(), path) && strstr(fa_last_error(), "12.4"), "%s", fa_last_error());
    const char *bare = below("bare.so"), *newer = below("newer.so");
    make_nvrtc(bare, 12, 4, "");
    cr_assert_eq(fa_nvrtc_open(&n, bare, NULL), FA_NO_NVRTC);
    cr_assert(strstr(fa_last_error(), "nvrtcGetErrorString"), "%s", fa_last_error());
    make_nvrtc(newer, 99, 1, rest);
    setenv("FAGEN_NVRTC", newer, 1);
    fa_text looked = { 0 };
    cr_assert_eq(fa_nvrtc_open(&n, NULL, &looked), FA_OK, "%s", fa_last_error());
    unsetenv("FAGEN_NVRTC");
    cr_assert(n.major == 99 && strcmp(n.path, newer) == 0 && strstr(fa_text_cstr(&looked), "version 99.1, used"));
    fa_text_free(&looked);
}

/* Where NVRTC may be installed: below the folder that the variable names; variable NULL: in the loader's path. Each has a version of its
 * own, which tells it from one that this machine has. */
static const struct {
    const char *variable, *file[2]; /* the first is the one that is used */
} installed[] = {
    { NULL, { "libnvrtc.so.13" } },
    { NULL, { "libnvrtc.so.12" } },
    { NULL, { "libnvrtc.so.13", "libnvrtc.so.12" } },
    { "CUDA_HOME", { "lib64/libnvrtc.so.12" } },
    { "CUDA_HOME", { "lib64/libnvrtc.so.13", "lib64/libnvrtc.so.12" } },
    { "CUDA_PATH", { "lib64/libnvrtc.so.13" } },
    { "VIRTUAL_ENV",
      { "lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
        "lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12" } },
    { "VIRTUAL_ENV", { "lib/python3.12/dist-packages/nvidia/cu14/lib/libnvrtc.so.14" } },
    { "VIRTUAL_ENV", { "lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12" } },
    { "HOME", { ".local/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13" } },
    { "HOME", { ".local/lib/python3.11/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12" } },
};

/* The major version that is found, in a process in which nothing else of NVRTC is open; 0: none. */
static int found_version(const char *variable, const char *value, const char *const path[2])
{
    static const char *const names[] = { "FAGEN_NVRTC", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "HOME" };
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        fa_nvrtc n;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            unsetenv(names[i]);
        if (variable)
            setenv(variable, value, 1);
        bool loaded = true; /* the loader knows what it has by its name */
        for (int k = 0; !variable && k < 2 && path[k]; k++)
            loaded &= dlopen(path[k], RTLD_NOW) != NULL;
        if (variable || !strstr(path[0], ".so.13")) /* an NVRTC of this machine would come first: one without functions takes its name */
            loaded &= dlopen(below("bare.so.13"), RTLD_NOW) != NULL;
        if (variable)
            loaded &= dlopen(below("bare.so.12"), RTLD_NOW) != NULL;
        if (!loaded)
            _exit(98);
        bool found = fa_nvrtc_open(&n, NULL, NULL) == FA_OK;
        if (found && n.path[0] != '/') /* which file it is: a key has its identity in it, a message its name */
            _exit(97);
        _exit(found ? n.major : 0);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(runtime_build, nvrtc_is_found_where_it_is_installed)
{
    char command[1400], folder[400];
    for (int version = 12; version <= 13; version++) {
        snprintf(command, sizeof command, "%s -Wl,-soname,libnvrtc.so.%d", below("bare.so.%d", version), version);
        if (!make_nvrtc(command, version, 4, ""))
            cr_skip_test("no C compiler named cc");
    }
    glob_t toolkit;
    bool has_toolkit = glob("/usr/local/cuda/lib64/libnvrtc.so.1[2-9]", 0, NULL, &toolkit) == 0; /* which comes before all wheels */
    globfree(&toolkit);
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++) {
        const char *variable = installed[i].variable;
        if (has_toolkit && variable && strncmp(variable, "CUDA_", 5))
            continue;
        char path[2][600];
        const char *file[2] = { path[0], installed[i].file[1] ? path[1] : NULL };
        snprintf(folder, sizeof folder, "%s", below("place%zu", i));
        for (int k = 0; k < 2 && installed[i].file[k]; k++) {
            snprintf(path[k], sizeof path[k], "%s/%s", folder, installed[i].file[k]);
            snprintf(command, sizeof command, "mkdir -p \"$(dirname %s)\"", path[k]);
            cr_assert_eq(system(command), 0);
            snprintf(command, sizeof command, "%s -Wl,-soname,%s", path[k], strrchr(path[k], '/') + 1);
            cr_assert(make_nvrtc(command, 100 + 2 * (int)i + k, 0, rest));
        }
        cr_expect_eq(found_version(installed[i].variable, folder, file), 100 + 2 * (int)i, "%s %s: %d",
                     installed[i].variable ? installed[i].variable : "the loader's path", installed[i].file[0],
                     found_version(installed[i].variable, folder, file));
    }
}

Test(runtime_build, no_nvrtc_is_told_when_a_kernel_is_needed_and_not_before)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    fa_problem p = FA_PROBLEM_INIT;
    char buf[1024];
    o.cache_dir = "";
    o.nvrtc = "/nowhere/libnvrtc.so";
    cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK);
    p.dtype = FA_F16;
    p.d = 64;
    cr_assert_eq(fa_supported(ctx, &p), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_explain(ctx, &p, NULL, buf, sizeof buf), FA_OK);
    cr_assert(strstr(buf, "no compiler"), "%s", buf);
    cr_assert_str_empty(fa_last_error(), "%s", fa_last_error());
    cr_assert_eq(fa_prepare(ctx, &p), FA_NO_NVRTC);
    cr_assert(strstr(fa_last_error(), "/nowhere/libnvrtc.so"), "%s", fa_last_error());
    fa_destroy(ctx);
}

static void *fail_in_thread(void *arg)
{
    (void)arg;
    cr_expect_str_empty(fa_last_error());
    fa_prepare(NULL, NULL);
    return NULL;
}

Test(runtime_build, the_last_error_belongs_to_its_thread)
{
    pthread_t t;
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.log_level = 77;
    cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_INVALID);
    pthread_create(&t, NULL, fail_in_thread, NULL);
    pthread_join(t, NULL);
    cr_assert(strstr(fa_last_error(), "log_level"), "%s", fa_last_error());
}
