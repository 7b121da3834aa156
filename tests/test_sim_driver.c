/* The driver's own manners: devices, contexts, memory, attributes, streams, capture, and what bad arguments get. */
#include "test_sim_machine.h"

static void open_two(void)
{
    open_machine("sm_80,sm_90a");
}
TestSuite(sim_driver, .init = open_two);

Test(sim_driver, opening)
{
    cr_expect_eq(sim_open("sm_80,sm_90a"), cu);
    cr_expect_eq(sim_open("sm_80, sm_90a"), cu);
    cr_expect_null(sim_open("sm_81"));
    cr_expect_str_eq(sim_report(), "sm_81 is not simulated");
    cr_expect_null(sim_open(NULL));
    cr_expect_null(sim_open(""));
    cr_expect_str_eq(cu->name, "sim:sm_80,sm_90a");
    cr_expect_eq(cu->takes_ptx, 1);
}

Test(sim_driver, devices)
{
    int n;
    char name[64];
    CUdevice d;
    size_t bytes;
    CUuuid id;
    cr_expect(cu->cuDeviceGetCount(&n) == CUDA_SUCCESS && n == 2);
    cr_expect(cu->cuDeviceGet(&d, 1) == CUDA_SUCCESS && d == 1);
    cr_expect_eq(cu->cuDeviceGet(&d, 2), CUDA_ERROR_INVALID_DEVICE);
    cr_expect(cu->cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS && !strcmp(name, "Simulated sm_80"));
    cr_expect(cu->cuDeviceTotalMem(&bytes, 0) == CUDA_SUCCESS && bytes == 80ull << 30);
    cr_expect(cu->cuDeviceGetUuid(&id, 1) == CUDA_SUCCESS && cu->cuDeviceGetPCIBusId(name, sizeof name, 1) == CUDA_SUCCESS &&
              !strcmp(name, "0000:01:00.0"));
    /* clang-format off */
    static const struct { CUdevice_attribute a; int v80, v90; } rows[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8, 9}, {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0, 0}, {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 108, 132},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152, 49152}, {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 163 * 1024, 227 * 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 164 * 1024, 228 * 1024}, {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32, 32},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int a, b;
        cr_expect(cu->cuDeviceGetAttribute(&a, rows[k].a, 0) == CUDA_SUCCESS &&
                  cu->cuDeviceGetAttribute(&b, rows[k].a, 1) == CUDA_SUCCESS && a == rows[k].v80 && b == rows[k].v90);
    }
    cr_expect_eq(cu->cuDeviceGetAttribute(&n, (CUdevice_attribute)9999, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(sim_driver, contexts)
{
    CUcontext c, other, now;
    CUdevice d;
    cu->cuCtxGetCurrent(&c);
    cr_expect_eq(cu->cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    cr_expect_eq(cu->cuCtxPushCurrent(other), CUDA_SUCCESS);
    cr_expect(cu->cuCtxGetDevice(&d) == CUDA_SUCCESS && d == 1);
    cr_expect(cu->cuCtxPopCurrent(&now) == CUDA_SUCCESS && now == other);
    cr_expect(cu->cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == c);
    cr_expect_eq(cu->cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    cr_expect_eq(cu->cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
    cr_expect_eq(cu->cuCtxPushCurrent(other), CUDA_ERROR_INVALID_CONTEXT);
    cr_expect_eq(cu->cuCtxPushCurrent((CUcontext)(void *)&now), CUDA_ERROR_INVALID_CONTEXT);
    cr_expect_eq(cu->cuCtxSetCurrent(NULL), CUDA_SUCCESS);
    CUdeviceptr p;
    cr_expect_eq(cu->cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    cr_expect_eq(cu->cuCtxPopCurrent(&now), CUDA_ERROR_INVALID_CONTEXT);
}

/* A table answers for its own devices and contexts; numbers, addresses and handles are those of the process. */
Test(sim_driver, another_simulator)
{
    const cu_driver *other = sim_open("sm_80");
    CUcontext c, now;
    CUdevice d;
    CUdeviceptr mine = buffer("0123", 4), theirs, back;
    CUstream stream;
    char name[64];
    int n;
    cr_assert(other && other != cu);
    cr_expect_str_eq(other->name, "sim:sm_80");
    cr_expect(other->cuInit(0) == CUDA_SUCCESS && other->cuDeviceGetCount(&n) == CUDA_SUCCESS && n == 1);
    cr_assert(other->cuDeviceGet(&d, 0) == CUDA_SUCCESS && d > 1);
    cr_expect_eq(other->cuDeviceGet(&d, 1), CUDA_ERROR_INVALID_DEVICE);
    cr_expect(other->cuDeviceGetName(name, sizeof name, d) == CUDA_SUCCESS && !strcmp(name, "Simulated sm_80"));
    cr_expect(other->cuCtxGetCurrent(&now) == CUDA_SUCCESS && !now);
    cr_expect_eq(other->cuCtxGetDevice(&n), CUDA_ERROR_INVALID_CONTEXT);
    cr_assert_eq(cu->cuStreamCreate(&stream, 0), CUDA_SUCCESS);

    cr_assert(other->cuDevicePrimaryCtxRetain(&c, d) == CUDA_SUCCESS && other->cuCtxPushCurrent(c) == CUDA_SUCCESS);
    cr_expect(other->cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == c && other->cuCtxGetDevice(&n) == CUDA_SUCCESS && n == d);
    cr_expect(cu->cuCtxGetCurrent(&now) == CUDA_SUCCESS && !now && cu->cuCtxGetDevice(&n) == CUDA_ERROR_INVALID_CONTEXT);
    cr_assert_eq(other->cuMemAlloc(&theirs, 4), CUDA_SUCCESS);
    cr_expect_eq(other->cuMemcpyHtoD(mine, "4567", 4), CUDA_ERROR_INVALID_VALUE);
    cr_expect(strstr(other->detail(), "memory of the simulator sim:sm_80,sm_90a; accepted: memory of sim:sm_80"), "%s", other->detail());
    cr_expect_eq(other->cuMemcpyDtoH(name, mine, 4), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(other->cuMemcpyDtoDAsync(theirs, mine, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(other->cuMemsetD8Async(mine, 1, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(other->cuMemFree(mine), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(other->cuMemsetD8Async(theirs, 1, 4, stream), CUDA_ERROR_INVALID_HANDLE);
    cr_expect(strstr(other->detail(), "the stream is of the simulator sim:sm_80,sm_90a"), "%s", other->detail());
    cr_expect_eq(other->cuMemsetD8Async(theirs, 1, 4, NULL), CUDA_SUCCESS);
    fails(HEAD80 KERNEL("ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd1], %r1;"), 1, 0, theirs, mine, CUDA_ERROR_ILLEGAL_ADDRESS,
          "memory of device 0 of the simulator sim:sm_80,sm_90a");
    cr_expect(cu->cuCtxPopCurrent(&now) == CUDA_SUCCESS && now == c);

    fetch(&back, mine, 4);
    cr_expect_eq(memcmp(&back, "0123", 4), 0);
    cr_expect(cu->cuMemFree(mine) == CUDA_SUCCESS && cu->cuStreamDestroy(stream) == CUDA_SUCCESS);
    cr_expect_eq(other->cuDevicePrimaryCtxRelease(d), CUDA_SUCCESS);
}

Test(sim_driver, sixty_four_gigabytes_cost_only_what_is_touched)
{
    CUdeviceptr p, q;
    size_t left, total, far = (60ull << 30) + 12;
    uint32_t v = 42, got;
    cr_assert_eq(cu->cuMemAlloc(&p, 64ull << 30), CUDA_SUCCESS);
    cr_expect(cu->cuMemGetInfo(&left, &total) == CUDA_SUCCESS && left == 16ull << 30 && total == 80ull << 30);
    cr_expect_eq(cu->cuMemAlloc(&q, 17ull << 30), CUDA_ERROR_OUT_OF_MEMORY);
    cr_expect_eq(cu->cuMemcpyHtoD(p + far, &v, 4), CUDA_SUCCESS);
    run(HEAD80 KERNEL("mov.u64 %rd3, 64424509452; add.s64 %rd3, %rd1, %rd3; ld.global.u32 %r1, [%rd3]; add.u32 %r1, %r1, 1; st.global.u32 "
                      "[%rd3+-8], %r1;"),
        1, 1, 0, p, p);
    fetch(&got, p + far - 8, 4);
    cr_expect_eq(got, 43);
    cr_expect_eq(cu->cuMemFree(p), CUDA_SUCCESS);
    cr_expect(cu->cuMemGetInfo(&left, &total) == CUDA_SUCCESS && left == total);
}

Test(sim_driver, copies_and_fills)
{
    uint32_t data[64], got[64];
    for (uint32_t k = 0; k < 64; k++)
        data[k] = k;
    CUdeviceptr a = buffer(data, 256), b = buffer(NULL, 256);
    cr_expect_eq(cu->cuMemcpyDtoDAsync(b, a + 4, 252, NULL), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemsetD8Async(b + 252, 0xAB, 4, NULL), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemsetD32Async(b, 7, 2, NULL), CUDA_SUCCESS);
    fetch(got, b, 256);
    cr_expect(got[0] == 7 && got[1] == 7 && got[2] == 3 && got[62] == 63 && got[63] == 0xABABABAB);
    cr_expect_eq(cu->cuMemcpyHtoD(a + 4, data, 256), CUDA_ERROR_INVALID_VALUE);
    cr_expect(strstr(cu->detail(), "not inside one allocation") != NULL);
    cr_expect_eq(cu->cuMemcpyDtoH(data, 4096, 4), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuMemcpyDtoH(NULL, a, 4), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuMemsetD32Async(a + 2, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuMemcpyHtoD(a, NULL, 0), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemFree(a + 4), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuMemFree(0), CUDA_SUCCESS);
    CUdeviceptr p;
    int ordinal;
    size_t size;
    cr_expect(cu->cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a + 8) == CUDA_SUCCESS && p == a + 8);
    cr_expect(cu->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a + 8) == CUDA_SUCCESS && ordinal == 0);
    cr_expect(cu->cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 8) == CUDA_SUCCESS && p == a);
    cr_expect(cu->cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + 8) == CUDA_SUCCESS && size == 256);
    cr_expect_eq(cu->cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)(uintptr_t)data),
                 CUDA_ERROR_INVALID_VALUE);
}

/* A failure that has nothing more to tell tells nothing of one before. */
Test(sim_driver, details_are_those_of_the_call)
{
    CUdeviceptr a = buffer("0123", 4), p;
    for (int i = 0; i < 6; i++) {
        cr_expect_eq(cu->cuMemcpyHtoD(a + 4, "abcd", 4), CUDA_ERROR_INVALID_VALUE);
        cr_expect(strstr(cu->detail(), "not inside one allocation") != NULL);
        CUresult r = i == 0   ? cu->cuMemAlloc(&p, SIZE_MAX)
                     : i == 1 ? cu->cuMemAlloc(&p, 0)
                     : i == 2 ? cu->cuStreamSynchronize((CUstream)(uintptr_t)0x1234)
                     : i == 3 ? cu->cuEventDestroy((CUevent)(uintptr_t)0x1234)
                     : i == 4 ? cu->cuLibraryUnload((CUlibrary)(uintptr_t)0x1234)
                              : cu->cuMemcpyDtoH(NULL, a, 4);
        cr_expect_neq(r, CUDA_SUCCESS);
        cr_expect(!strstr(cu->detail(), "not inside one allocation"), "%d: %s", i, cu->detail());
    }
}

Test(sim_driver, kernels_and_their_limits)
{
    CUlibrary l;
    CUkernel k;
    CUfunction f;
    int v, dummy = 0;
    CUdeviceptr a = buffer("0123", 4);
    void *params[] = { &a, &a };
    const char *ptx = HEAD80
        ".extern .shared .align 16 .b8 dyn[];\n.shared .align 4 .b8 fixed[100];\n.visible .entry k(.param .u64 a, .param .u64 b)\n.maxntid "
        "128, 1, 1\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, dyn;\nst.shared.u32 [%r1], 1;\nst.shared.u32 [fixed+96], 1;\nret;\n}\n";
    cr_assert_eq(cu->cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
    cr_expect_eq(cu->cuLibraryGetKernel(&k, l, "nobody"), CUDA_ERROR_NOT_FOUND);
    cr_assert(cu->cuLibraryGetKernel(&k, l, "k") == CUDA_SUCCESS && cu->cuKernelGetFunction(&f, k) == CUDA_SUCCESS);
    cr_expect(cu->cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k, 0) == CUDA_SUCCESS && v == 112);
    cr_expect(cu->cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0) == CUDA_SUCCESS && v == 128);
    cr_expect(cu->cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, k, 0) == CUDA_SUCCESS && v == 0);
    cr_expect_eq(cu->cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 5), CUDA_ERROR_INVALID_DEVICE);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 40000, NULL, params, NULL), CUDA_SUCCESS, "%s", sim_report());
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 60000, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect(strstr(cu->detail(), "60000 bytes of dynamic shared memory") != NULL);
    cr_expect_eq(cu->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 163 * 1024, k, 0), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 163 * 1024 - 112, k, 0), CUDA_SUCCESS);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 163 * 1024 - 112, NULL, params, NULL), CUDA_SUCCESS);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 129, 1, 1, 16, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 16, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 16, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 16, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuLaunchKernel((CUfunction)(void *)&dummy, 1, 1, 1, 1, 1, 1, 16, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 16, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    cr_expect(cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 128, 40000) == CUDA_SUCCESS && v == 4);
    CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .sharedMemBytes = 16
    };
    CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
    cr_expect_eq(cu->cuLaunchKernelEx(&config, f, params, NULL), CUDA_SUCCESS);
    cluster.value.clusterDim.x = 2, cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
    config.attrs = &cluster, config.numAttrs = 1;
    cr_expect_eq(cu->cuLaunchKernelEx(&config, f, params, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE, "sm_80 has no clusters");
    cr_expect_eq(cu->cuLaunchKernelEx(NULL, f, params, NULL), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr both[2] = { a, a };
    size_t size = sizeof both;
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, both, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 16, NULL, NULL, extra), CUDA_SUCCESS);
    cr_expect_eq(cu->cuLibraryUnload(l), CUDA_SUCCESS);
    cr_expect_eq(cu->cuLibraryUnload(l), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 16, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
}

Test(sim_driver, the_second_device)
{
    CUcontext c;
    cu->cuDevicePrimaryCtxRetain(&c, 1);
    cu->cuCtxSetCurrent(c);
    uint32_t got;
    CUdeviceptr a = buffer("0123", 4);
    run(".version 8.0\n.target sm_90a\n.address_size 64\n" KERNEL(
            "st.global.u32 [%rd1], 9; fence.proxy.async; fence.acq_rel.cta; griddepcontrol.wait; barrier.cluster.arrive.release.aligned; "
            "barrier.cluster.wait.acquire.aligned;"),
        1, 32, 0, a, a);
    fetch(&got, a, 4);
    cr_expect_eq(got, 9);
}

Test(sim_driver, capture_and_replay)
{
    CUstream s;
    CUgraph g;
    CUgraphExec x;
    CUstreamCaptureStatus status;
    CUevent e[2];
    float ms;
    uint32_t zero = 0, got = 99;
    CUdeviceptr a = buffer(&zero, 4);
    CUfunction f = load(HEAD80 KERNEL("ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;"));
    void *params[] = { &a, &a };
    cr_assert_eq(cu->cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    cr_expect_eq(cu->cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    cr_assert_eq(cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    cr_expect(cu->cuStreamIsCapturing(s, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cr_expect(cu->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS && mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    cr_expect(cu->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS && mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    mode = (CUstreamCaptureMode)3;
    cr_expect_eq(cu->cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuMemsetD32Async(a, 10, 1, s), CUDA_SUCCESS);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL), CUDA_SUCCESS);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamEndCapture(s, &g), CUDA_SUCCESS);
    fetch(&got, a, 4);
    cr_expect_eq(got, 0, "nothing has run yet");
    cr_assert_eq(cu->cuGraphInstantiate(&x, g, 0), CUDA_SUCCESS);
    cr_expect_eq(cu->cuGraphDestroy(g), CUDA_SUCCESS);
    cr_expect(cu->cuEventCreate(&e[0], 0) == CUDA_SUCCESS && cu->cuEventCreate(&e[1], 0) == CUDA_SUCCESS);
    cr_expect_eq(cu->cuEventElapsedTime(&ms, e[0], e[1]), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuEventRecord(e[0], s), CUDA_SUCCESS);
    for (int k = 0; k < 2; k++) {
        cr_expect_eq(cu->cuGraphLaunch(x, s), CUDA_SUCCESS);
        cr_expect_eq(cu->cuStreamSynchronize(s), CUDA_SUCCESS);
        fetch(&got, a, 4);
        cr_expect_eq(got, 12);
    }
    cr_expect(cu->cuEventRecord(e[1], s) == CUDA_SUCCESS && cu->cuEventSynchronize(e[1]) == CUDA_SUCCESS &&
              cu->cuEventElapsedTime(&ms, e[0], e[1]) == CUDA_SUCCESS && ms > 0);
    cr_expect(cu->cuEventDestroy(e[0]) == CUDA_SUCCESS && cu->cuEventDestroy(e[0]) == CUDA_ERROR_INVALID_HANDLE);
    cr_expect(cu->cuGraphExecDestroy(x) == CUDA_SUCCESS && cu->cuGraphLaunch(x, s) == CUDA_ERROR_INVALID_HANDLE);
    cr_assert_eq(cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    cr_expect_eq(cu->cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    cr_expect_eq(cu->cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    cr_expect_eq(cu->cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
    cr_expect(cu->cuStreamDestroy(s) == CUDA_SUCCESS && cu->cuStreamDestroy(s) == CUDA_ERROR_INVALID_HANDLE);
}

Test(sim_driver, a_stream_that_is_gone_is_refused_by_every_call)
{
    CUstream s;
    CUstreamCaptureStatus status;
    CUgraph g;
    CUevent e, other;
    float ms;
    CUdeviceptr a = buffer("01234567", 8);
    CUfunction f = load(HEAD80 KERNEL(""));
    void *params[] = { &a, &a };
    cr_assert(cu->cuStreamCreate(&s, 0) == CUDA_SUCCESS && cu->cuStreamDestroy(s) == CUDA_SUCCESS);
    cr_assert(cu->cuEventCreate(&e, 0) == CUDA_SUCCESS && cu->cuEventCreate(&other, 0) == CUDA_SUCCESS &&
              cu->cuEventRecord(other, NULL) == CUDA_SUCCESS);
    cr_expect_eq(cu->cuEventRecord(e, s), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuEventElapsedTime(&ms, e, other), CUDA_ERROR_INVALID_HANDLE, "the refused event counts as recorded");
    cr_expect_eq(cu->cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuStreamIsCapturing(s, &status), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuStreamEndCapture(s, &g), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuMemsetD32Async(a, 0, 1, s), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL), CUDA_ERROR_INVALID_HANDLE);
}

/* What allocates or frees ends a capture whose mode and the thread's own forbid it. */
Test(sim_driver, memory_beside_a_capture)
{
    for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++)
        for (int own = CU_STREAM_CAPTURE_MODE_GLOBAL; own <= CU_STREAM_CAPTURE_MODE_RELAXED; own++)
            for (int call = 0; call < 6; call++) { /* the last one is never legal */
                const CUresult legal = call < 5 && (mode == CU_STREAM_CAPTURE_MODE_RELAXED || own == CU_STREAM_CAPTURE_MODE_RELAXED)
                                           ? CUDA_SUCCESS
                                           : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
                CUstreamCaptureMode was = (CUstreamCaptureMode)own;
                CUstream captured, stream;
                CUgraph g;
                CUdeviceptr p = 0, q = 0;
                cr_assert_eq(cu->cuStreamCreate(&captured, 0) | cu->cuStreamCreate(&stream, 0) | cu->cuMemAlloc(&p, 256), CUDA_SUCCESS);
                cr_assert_eq(cu->cuStreamBeginCapture(captured, (CUstreamCaptureMode)mode), CUDA_SUCCESS);
                cr_assert_eq(cu->cuThreadExchangeStreamCaptureMode(&was), CUDA_SUCCESS);
                CUresult r = call == 0   ? cu->cuMemAlloc(&q, 256)
                             : call == 1 ? cu->cuMemAllocAsync(&q, 256, stream)
                             : call == 2 ? cu->cuMemFree(p)
                             : call == 3 ? cu->cuMemFreeAsync(p, stream)
                             : call == 4 ? cu->cuStreamSynchronize(stream)
                                         : cu->cuCtxSynchronize();
                cr_expect_eq(r, legal, "mode %d, own %d, call %d: %d", mode, own, call, (int)r);
                cr_assert_eq(cu->cuThreadExchangeStreamCaptureMode(&was), CUDA_SUCCESS);
                cr_expect_eq(cu->cuStreamEndCapture(captured, &g), legal ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
                cr_expect_eq((legal ? CUDA_SUCCESS : cu->cuGraphDestroy(g)) | (q ? cu->cuMemFree(q) : CUDA_SUCCESS) |
                                 (call < 2 || call > 3 || legal ? cu->cuMemFree(p) : CUDA_SUCCESS) | cu->cuStreamDestroy(captured) |
                                 cu->cuStreamDestroy(stream),
                             CUDA_SUCCESS);
            }
}

/* Streams and captures have numbers that do not come again. */
Test(sim_driver, numbers_of_streams_and_captures)
{
    CUstream s[3];
    CUgraph g, during = NULL;
    CUstreamCaptureStatus status;
    unsigned long long id[5];
    cuuint64_t capture[2] = { 0 };
    cr_assert_eq(cu->cuStreamCreate(&s[0], 0) | cu->cuStreamCreate(&s[1], 0), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamGetId(s[0], &id[0]) | cu->cuStreamGetId(s[1], &id[1]), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamGetId(NULL, &id[2]) | cu->cuStreamGetId(CU_STREAM_PER_THREAD, &id[3]), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamDestroy(s[1]) | cu->cuStreamCreate(&s[2], 0) | cu->cuStreamGetId(s[2], &id[4]), CUDA_SUCCESS);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            cr_expect_neq(id[i], id[k], "%d and %d", i, k);
    unsigned long long legacy;
    cr_expect(cu->cuStreamGetId(CU_STREAM_LEGACY, &legacy) == CUDA_SUCCESS && legacy == id[2]);
    cr_expect_eq(cu->cuStreamGetId((CUstream)(void *)id, &legacy), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuStreamGetId(s[0], NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect(cu->cuStreamGetCaptureInfo_v3(s[0], &status, NULL, NULL, NULL, NULL, NULL) == CUDA_SUCCESS && !status);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(cu->cuStreamBeginCapture(s[0], CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
        cr_assert_eq(cu->cuStreamGetCaptureInfo_v3(s[0], &status, &capture[i], &during, NULL, NULL, NULL), CUDA_SUCCESS);
        cr_expect_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        cr_expect(cu->cuStreamGetId(s[2], &legacy) == CUDA_SUCCESS && legacy == id[4], "another stream tells its id");
        cr_expect_eq(cu->cuGraphDestroy(during), CUDA_ERROR_INVALID_HANDLE, "not before the capture ends");
        cr_assert_eq(cu->cuStreamEndCapture(s[0], &g), CUDA_SUCCESS);
        cr_expect_eq(g, during);
        cr_assert_eq(cu->cuGraphDestroy(g), CUDA_SUCCESS);
    }
    cr_expect_neq(capture[0], capture[1]);
    cr_assert_eq(cu->cuStreamBeginCapture(s[0], CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    cr_expect_eq(cu->cuStreamGetId(s[0], &legacy), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    cr_expect_eq(cu->cuStreamEndCapture(s[0], &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    cr_expect_eq(cu->cuStreamGetCaptureInfo_v3(s[0], NULL, NULL, NULL, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void count(void *user)
{
    ++*(int *)user;
}

/* A user object goes with the last of a graph and what was instantiated from it. */
Test(sim_driver, user_objects)
{
    CUstream s;
    CUgraph g;
    CUgraphExec x;
    CUuserObject o, stray;
    CUstreamCaptureStatus status;
    int gone = 0;
    cr_assert_eq(cu->cuStreamCreate(&s, 0) | cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamGetCaptureInfo_v3(s, &status, NULL, &g, NULL, NULL, NULL), CUDA_SUCCESS);
    cr_assert_eq(cu->cuUserObjectCreate(&o, &gone, count, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_SUCCESS);
    cr_assert_eq(cu->cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamEndCapture(s, &g) | cu->cuGraphInstantiate(&x, g, 0), CUDA_SUCCESS);
    cr_expect(cu->cuGraphDestroy(g) == CUDA_SUCCESS && gone == 0);
    cr_expect(cu->cuGraphExecDestroy(x) == CUDA_SUCCESS && gone == 1);
    cr_expect_eq(cu->cuGraphRetainUserObject(g, o, 1, 0), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuUserObjectCreate(&stray, &gone, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuUserObjectCreate(&stray, &gone, count, 1, 0), CUDA_ERROR_INVALID_VALUE);
    /* a capture that never ends in a graph */
    cr_assert_eq(cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamGetCaptureInfo_v3(s, &status, NULL, &g, NULL, NULL, NULL), CUDA_SUCCESS);
    cr_assert_eq(cu->cuUserObjectCreate(&o, &gone, count, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_SUCCESS);
    cr_assert_eq(cu->cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
    cr_expect(cu->cuStreamDestroy(s) == CUDA_SUCCESS && gone == 2);
}

Test(sim_driver, memory_in_the_order_of_a_stream)
{
    CUstream s;
    CUdeviceptr p, q;
    cr_assert_eq(cu->cuStreamCreate(&s, 0), CUDA_SUCCESS);
    cr_assert_eq(cu->cuMemAllocAsync(&p, 4096, s), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemsetD32Async(p, 0, 1024, s), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemFreeAsync(p, s), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuMemsetD32Async(p, 0, 1024, s), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(cu->cuMemAllocAsync(&p, 4096, NULL), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemAllocAsync(&q, 4096, s), CUDA_ERROR_NOT_SUPPORTED, "no nodes of memory");
    cr_expect_eq(cu->cuMemFreeAsync(p, s), CUDA_ERROR_NOT_SUPPORTED);
    cr_expect_eq(cu->cuStreamDestroy(s) | cu->cuMemFree(p), CUDA_SUCCESS);
}

Test(sim_driver, nulls_and_names)
{
    const char *s;
    cr_expect(cu->cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &s) == CUDA_SUCCESS && !strcmp(s, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    cr_expect(cu->cuGetErrorString(CUDA_SUCCESS, &s) == CUDA_SUCCESS && !strcmp(s, "no error"));
    cr_expect(cu->cuGetErrorName((CUresult)123456, &s) == CUDA_ERROR_INVALID_VALUE && !s);
    cr_expect_eq(cu->cuInit(1), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuMemAlloc(NULL, 4), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuLibraryLoadData(NULL, "x", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuStreamSynchronize((CUstream)(void *)&s), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuLibraryGetKernel(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

#include <pthread.h>
static void *worker(void *arg)
{
    CUcontext c;
    uint32_t zero = 0, got = 0;
    (void)arg;
    cu->cuDevicePrimaryCtxRetain(&c, 0);
    cu->cuCtxSetCurrent(c);
    CUdeviceptr a;
    cu->cuMemAlloc(&a, 4);
    cu->cuMemcpyHtoD(a, &zero, 4);
    CUlibrary l;
    CUkernel k;
    void *params[] = { &a, &a };
    for (int i = 0; i < 20; i++) {
        if (cu->cuLibraryLoadData(&l, HEAD80 KERNEL("red.global.add.u32 [%rd1], 1;"), NULL, NULL, 0, NULL, NULL, 0) ||
            cu->cuLibraryGetKernel(&k, l, "k"))
            return arg;
        if (cu->cuLaunchKernel((CUfunction)k, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL))
            return arg;
        cu->cuLibraryUnload(l);
    }
    cu->cuMemcpyDtoH(&got, a, 4);
    cu->cuMemFree(a);
    return got == 20 * 256 ? NULL : arg;
}
Test(sim_driver, threads)
{
    pthread_t t[4];
    void *r;
    sim_set_options(&(sim_options){ .threads = 2 });
    for (int k = 0; k < 4; k++)
        pthread_create(&t[k], NULL, worker, t);
    for (int k = 0; k < 4; k++)
        cr_expect(!pthread_join(t[k], &r) && !r);
}

/* Addresses are used again only when the space of the device is used up: then what is still held stays apart. */
Test(sim_driver, addresses_come_again_when_the_space_is_used_up)
{
    const uint64_t big = 40ull << 30;
    CUdeviceptr kept[4], p, first;
    int again = 0;
    cr_assert_eq(cu->cuMemAlloc(&first, 1), CUDA_SUCCESS);
    for (int i = 0; i < 2000; i++) {
        if (i % 500 == 10)
            cr_assert_eq(cu->cuMemAlloc(&kept[i / 500], 1 << 20), CUDA_SUCCESS);
        cr_assert_eq(cu->cuMemAlloc(&p, big), CUDA_SUCCESS, "allocation %d", i);
        cr_assert(p >> 44 == first >> 44 && (p + big - 1) >> 44 == first >> 44,
                  "allocation %d at %llx leaves the device's space, which begins at %llx", i, p, first);
        again += i > 0 && p < first + 3 * big;
        for (int k = 0; k <= (i - 10) / 500 && i >= 10; k++)
            cr_assert(p + big <= kept[k] || p >= kept[k] + (1 << 20), "allocation %d covers one that is held", i);
        cr_assert_eq(cu->cuMemFree(p), CUDA_SUCCESS);
    }
    cr_expect_gt(again, 0);
    for (int k = 0; k < 4; k++)
        cr_expect_eq(cu->cuMemFree(kept[k]), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemFree(first), CUDA_SUCCESS);
}
