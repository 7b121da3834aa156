/* embed: fagen inside a program: create, prepare, launch, explain, destroy.
 *   cc embed.c $(pkg-config --cflags --libs fagen) -ldl && ./a.out [device]
 * Device memory is the program's own business: here the driver's, opened at run time as fagen does it. On the simulator
 * (sim:sm_80), whose memory has no public door, everything up to the launch is done. */
#include <dlfcn.h>
#include <fagen.h>
#include <stdio.h>
#include <string.h>

enum { B = 1, H = 4, N = 512, D = 64, COUNT = B * N * H * D };

/* What is used of the CUDA driver; types as in cuda.h, no header needed. */
typedef unsigned long long device_ptr;
static struct {
    int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*current)(void *), (*sync)(void);
    int (*alloc)(device_ptr *, size_t), (*up)(device_ptr, const void *, size_t), (*down)(void *, device_ptr, size_t), (*release)(device_ptr);
} cu;

static int open_driver(void)
{
    static const char *const names[] = { "cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuCtxSynchronize",
                                         "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemFree_v2" };
    void *lib = dlopen("libcuda.so.1", RTLD_NOW), *context, *f;
    int device;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!lib || !(f = dlsym(lib, names[i])))
            return 0;
        memcpy((char *)&cu + i * sizeof f, &f, sizeof f);
    }
    return !cu.init(0) && !cu.get(&device, 0) && !cu.retain(&context, device) && !cu.current(context);
}

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, fa_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    static float q[COUNT], o[COUNT];
    fa_context *ctx;
    fa_options options = FA_OPTIONS_INIT;
    fa_problem problem = FA_PROBLEM_INIT;
    fa_args args = FA_ARGS_INIT;
    device_ptr in = 0, out = 0;
    char text[2048];
    int gpu = argc < 2 && open_driver();
    options.device = argc > 1 ? argv[1] : gpu ? "cuda:0" : "sim:sm_80";
    if (fa_create(&ctx, &options) != FA_OK)
        return fail("fa_create");
    problem.dtype = args.dtype = FA_TF32; /* fp32 in memory, multiplied on the matrix units */
    problem.d = args.d = D;
    problem.mask = args.mask = FA_MASK_CAUSAL;
    problem.b = args.b = B;
    problem.hq = problem.hkv = args.hq = args.hkv = H;
    problem.sq = problem.sk = args.sq = args.sk = N;
    if (fa_prepare(ctx, &problem) != FA_OK)
        return fail("fa_prepare");
    if (gpu && !cu.alloc(&in, sizeof q) && !cu.alloc(&out, sizeof o)) {
        for (int i = 0; i < COUNT; i++)
            q[i] = (float)((i + 1) * 7919 % 1000) / 1000;
        cu.up(in, q, sizeof q);
        args.q.ptr = args.k.ptr = args.v.ptr = (void *)(size_t)in; /* self-attention of one tensor */
        args.o.ptr = (void *)(size_t)out;
        if (fa_launch(ctx, &args, NULL) != FA_OK)
            return fail("fa_launch");
        cu.sync();
        cu.down(o, out, sizeof o);
        printf("the first query sees one key, so O[0] = V[0]: %g = %g\n", o[0], q[0]);
    }
    if (fa_explain(ctx, &problem, NULL, text, sizeof text) != FA_OK)
        return fail("fa_explain");
    fputs(text, stdout);
    fa_destroy(ctx);
    return gpu ? cu.release(in) || cu.release(out) : 0;
}
