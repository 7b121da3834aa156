/* A simulated device for a test: opened once per process, with buffers and kernels from PTX text. */
#ifndef TEST_SIM_MACHINE_H
#define TEST_SIM_MACHINE_H
#include "sim/sim.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD80 ".version 8.0\n.target sm_80\n.address_size 64\n"
#define HEAD90 ".version 8.0\n.target sm_90\n.address_size 64\n"
/* A kernel of two pointers, in %rd1 and %rd2; %r0 is the thread, %rd0 room. */
#define KERNEL(body)                                                                                                         \
    ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .b64 " \
    "%rd<20>;\n.reg .f32 %f<20>;\n.reg .f64 %d<9>;\n"                                                                        \
    "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r0, %tid.x;\n" body "\nret;\n}\n"

static const cu_driver *cu;

__attribute__((unused)) static void open_machine(const char *archs)
{
    CUcontext c;
    cu = sim_open(archs);
    cr_assert_not_null(cu);
    cr_assert_eq(cu->cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cu->cuDevicePrimaryCtxRetain(&c, 0), CUDA_SUCCESS);
    cr_assert_eq(cu->cuCtxSetCurrent(c), CUDA_SUCCESS);
}
/* What the options are, with these severities beside. */
__attribute__((unused)) static void checks(const char *list)
{
    sim_options o;
    char error[512];
    sim_get_options(&o);
    cr_assert(sim_checks_parse(list, o.checks, error), "%s", error);
    sim_set_options(&o);
}
__attribute__((unused)) static void open80(void)
{
    open_machine("sm_80");
}

__attribute__((unused)) static CUdeviceptr buffer(const void *data, size_t n) /* data NULL: nothing written */
{
    CUdeviceptr p;
    cr_assert_eq(cu->cuMemAlloc(&p, n), CUDA_SUCCESS);
    if (data)
        cr_assert_eq(cu->cuMemcpyHtoD(p, data, n), CUDA_SUCCESS);
    return p;
}
__attribute__((unused)) static void fetch(void *to, CUdeviceptr from, size_t n)
{
    cr_assert_eq(cu->cuMemcpyDtoH(to, from, n), CUDA_SUCCESS);
}

__attribute__((unused)) static CUfunction load(const char *ptx)
{
    CUlibrary l;
    CUkernel k;
    CUfunction f;
    CUresult r = cu->cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0);
    cr_assert_eq(r, CUDA_SUCCESS, "load: %d %s", r, cu->detail());
    cr_assert_eq(cu->cuLibraryGetKernel(&k, l, "k"), CUDA_SUCCESS);
    cr_assert_eq(cu->cuKernelGetFunction(&f, k), CUDA_SUCCESS);
    return f;
}
__attribute__((unused)) static CUresult launch(CUfunction f, unsigned blocks, unsigned threads, unsigned shared, CUdeviceptr a,
                                               CUdeviceptr b)
{
    void *params[] = { &a, &b };
    return cu->cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, NULL, params, NULL);
}
/* Loads and launches; must succeed. */
__attribute__((unused)) static void run(const char *ptx, unsigned blocks, unsigned threads, unsigned shared, CUdeviceptr a, CUdeviceptr b)
{
    CUresult r = launch(load(ptx), blocks, threads, shared, a, b);
    cr_assert_eq(r, CUDA_SUCCESS, "launch: %d\n%s", r, sim_report());
}
/* Must fail with this code and these words in the report. */
__attribute__((unused)) static void fails(const char *ptx, unsigned threads, unsigned shared, CUdeviceptr a, CUdeviceptr b, CUresult code,
                                          const char *words)
{
    CUresult r = launch(load(ptx), 1, threads, shared, a, b);
    cr_expect_eq(r, code, "code %d instead of %d\n%s", r, code, sim_report());
    cr_expect(strstr(sim_report(), words) != NULL, "\"%s\" is not in:\n%s", words, sim_report());
}
/* text with $1, $2 and $3 replaced; valid until the next call. */
__attribute__((unused)) static const char *with(const char *text, const char *s1, const char *s2, const char *s3)
{
    static char out[16384];
    const char *s[] = { s1, s2, s3 };
    size_t n = 0;
    for (; *text && n < sizeof out - 512; text++) {
        if (*text == '$' && text[1] >= '1' && text[1] <= '3')
            n += (size_t)snprintf(out + n, 512, "%s", s[*++text - '1']);
        else
            out[n++] = *text;
    }
    out[n] = 0;
    return out;
}
#endif
