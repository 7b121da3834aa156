/* fake_libcuda: fake_driver.h as a libcuda.so.1, for the tests of the Python package: device addresses, streams and launches on a host
 * without a GPU. Nothing is computed. Each function of the driver is a jump through a pointer that the constructor takes from the fake's
 * table. */
#include "fake_driver.h"

#if !defined(__x86_64__)
#error "fake_libcuda.c is for x86-64: its functions are jumps"
#endif

#define TEXT(x) #x
#define EXPANDED(x) TEXT(x) /* cuda.h's macros first: cuMemAlloc gives "cuMemAlloc_v2" */
#define JUMP(f)                                                                                                               \
    void *fake_##f __attribute__((visibility("hidden")));                                                                     \
    __asm__(".pushsection .text\n.globl " EXPANDED(f) "\n.type " EXPANDED(f) ", @function\n" EXPANDED(f) ":\n\tjmp *fake_" #f \
                                                                                                         "(%rip)\n.popsection\n");
CU_DRIVER_FUNCTIONS(JUMP)

__attribute__((constructor)) static void fill(void)
{
    const cu_driver *d = fake_driver();
    fake_devices(2, 8, 0);
#define TAKE(f) fake_##f = (void *)d->f;
    CU_DRIVER_FUNCTIONS(TAKE)
}

#define EXPORT __attribute__((visibility("default")))
EXPORT long fagen_fake_launches(void);
EXPORT void *fagen_fake_stream(void);
EXPORT uint64_t fagen_fake_query(void);
EXPORT void fagen_fake_capturing(int on);

long fagen_fake_launches(void)
{
    return fake_calls("cuLaunchKernel") + fake_calls("cuLaunchKernelEx");
}

/* Of this thread's last launch: the stream, and the first parameter, the address of Q. */
void *fagen_fake_stream(void)
{
    return fake_last().stream;
}

uint64_t fagen_fake_query(void)
{
    uint64_t q;
    fake_launch last = fake_last();
    __builtin_memcpy(&q, last.bytes, sizeof q);
    return q;
}

void fagen_fake_capturing(int on)
{
    fake_capturing(on != 0);
}
