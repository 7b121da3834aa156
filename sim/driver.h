/* driver: the CUDA driver as a table of functions. The real driver, the simulator and the tests' fault-injecting fake fill
 * the same struct; a holder cannot tell which it is. The names are those of cuda.h, whose version suffixes (_v2)
 * are applied by its own macros when the table is filled. */
#ifndef CU_DRIVER_H
#define CU_DRIVER_H
#include <cuda.h>

/* X(name): every one is required of a driver of CUDA 12.4 or newer. One stands with its suffix: headers before CUDA 13 mean another
 * function by the bare name. */
#define CU_DRIVER_FUNCTIONS(X)                     \
    X(cuInit)                                      \
    X(cuDriverGetVersion)                          \
    X(cuGetErrorName)                              \
    X(cuGetErrorString)                            \
    X(cuDeviceGetCount)                            \
    X(cuDeviceGet)                                 \
    X(cuDeviceGetName)                             \
    X(cuDeviceGetAttribute)                        \
    X(cuDeviceTotalMem)                            \
    X(cuDeviceGetUuid)                             \
    X(cuDeviceGetPCIBusId)                         \
    X(cuDevicePrimaryCtxRetain)                    \
    X(cuDevicePrimaryCtxRelease)                   \
    X(cuCtxGetCurrent)                             \
    X(cuCtxSetCurrent)                             \
    X(cuCtxPushCurrent)                            \
    X(cuCtxPopCurrent)                             \
    X(cuCtxGetDevice)                              \
    X(cuCtxSynchronize)                            \
    X(cuLibraryLoadData)                           \
    X(cuLibraryUnload)                             \
    X(cuLibraryGetKernel)                          \
    X(cuLibraryGetGlobal)                          \
    X(cuKernelGetFunction)                         \
    X(cuKernelGetAttribute)                        \
    X(cuKernelSetAttribute)                        \
    X(cuLaunchKernel)                              \
    X(cuLaunchKernelEx)                            \
    X(cuTensorMapEncodeTiled)                      \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    X(cuMemAlloc)                                  \
    X(cuMemFree)                                   \
    X(cuMemAllocAsync)                             \
    X(cuMemFreeAsync)                              \
    X(cuMemGetInfo)                                \
    X(cuMemcpyHtoD)                                \
    X(cuMemcpyDtoH)                                \
    X(cuMemcpyHtoDAsync)                           \
    X(cuMemcpyDtoHAsync)                           \
    X(cuMemcpyDtoDAsync)                           \
    X(cuMemsetD8Async)                             \
    X(cuMemsetD32Async)                            \
    X(cuPointerGetAttribute)                       \
    X(cuStreamCreate)                              \
    X(cuStreamDestroy)                             \
    X(cuStreamSynchronize)                         \
    X(cuStreamGetId)                               \
    X(cuStreamIsCapturing)                         \
    X(cuStreamGetCaptureInfo_v3)                   \
    X(cuThreadExchangeStreamCaptureMode)           \
    X(cuStreamBeginCapture)                        \
    X(cuStreamEndCapture)                          \
    X(cuGraphInstantiate)                          \
    X(cuGraphLaunch)                               \
    X(cuGraphExecDestroy)                          \
    X(cuGraphDestroy)                              \
    X(cuUserObjectCreate)                          \
    X(cuGraphRetainUserObject)                     \
    X(cuEventCreate)                               \
    X(cuEventDestroy)                              \
    X(cuEventRecord)                               \
    X(cuStreamWaitEvent)                           \
    X(cuEventSynchronize)                          \
    X(cuEventElapsedTime)

typedef struct cu_driver {
#define X(f) __typeof__(f) *f;
    CU_DRIVER_FUNCTIONS(X)
#undef X
    const char *name;            /* "cuda", "sim:sm_80", ...: for messages */
    int takes_ptx;               /* 1: cuLibraryLoadData wants PTX text, not a cubin */
    const char *(*detail)(void); /* more about this thread's last failed call, or ""; NULL where the driver has none */
} cu_driver;
#endif
