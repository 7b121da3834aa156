/* no_launch: the launches that do nothing. */
#include "no_launch.h"

static CUresult CUDAAPI kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                               CUstream stream, void **args, void **extra)
{
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)smem, (void)stream, (void)args, (void)extra;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI kernel_ex(const CUlaunchConfig *config, CUfunction f, void **args, void **extra)
{
    (void)config, (void)f, (void)args, (void)extra;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI graph(CUgraphExec g, CUstream stream)
{
    (void)g, (void)stream;
    return CUDA_SUCCESS;
}

cu_driver cli_no_launch(const cu_driver *d)
{
    cu_driver t = *d;
    t.cuLaunchKernel = kernel;
    t.cuLaunchKernelEx = kernel_ex;
    t.cuGraphLaunch = graph;
    return t;
}
