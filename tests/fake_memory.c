/* fake_memory: device memory of fake_driver: addresses that nothing lies behind, and what is not given back. */
#include "fake_parts.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static atomic_long memory;
static atomic_ullong next_address;
static _Thread_local fake_fill filled;
static atomic_int pools;
#define FAKE_BLOCKS 4096
static struct {
    CUdeviceptr at;
    size_t bytes;
} blocks[FAKE_BLOCKS]; /* device memory that lives; guarded by blocks_mutex */
static pthread_mutex_t blocks_mutex = PTHREAD_MUTEX_INITIALIZER;

static CUresult take_block(CUdeviceptr *p, size_t n)
{
    if (!fake_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    *p = atomic_fetch_add(&next_address, (n + 255) / 256 * 256);
    atomic_fetch_add(&memory, 1);
    pthread_mutex_lock(&blocks_mutex);
    for (int i = 0; i < FAKE_BLOCKS; i++)
        if (!blocks[i].bytes) {
            blocks[i].at = *p, blocks[i].bytes = n;
            break;
        }
    pthread_mutex_unlock(&blocks_mutex);
    return CUDA_SUCCESS;
}

static CUresult give_block(CUdeviceptr p)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE; /* freed twice, or never allocated */
    pthread_mutex_lock(&blocks_mutex);
    for (int i = 0; i < FAKE_BLOCKS && r; i++)
        if (blocks[i].bytes && blocks[i].at == p)
            blocks[i].bytes = 0, r = CUDA_SUCCESS;
    pthread_mutex_unlock(&blocks_mutex);
    if (!r)
        atomic_fetch_sub(&memory, 1);
    return r;
}

static CUresult f_alloc(CUdeviceptr *p, size_t n)
{
    NOTE(cuMemAlloc);
    if (fake_capture_forbids())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return take_block(p, n);
}

static CUresult f_free(CUdeviceptr p)
{
    NOTE(cuMemFree);
    return give_block(p);
}

static CUresult f_alloc_async(CUdeviceptr *p, size_t n, CUstream s)
{
    (void)s;
    NOTE(cuMemAllocAsync);
    return fake_is_capturing() || !pools ? CUDA_ERROR_NOT_SUPPORTED : take_block(p, n);
}

static CUresult f_free_async(CUdeviceptr p, CUstream s)
{
    (void)s;
    NOTE(cuMemFreeAsync);
    return fake_is_capturing() || !pools ? CUDA_ERROR_NOT_SUPPORTED : give_block(p);
}

/* Of an address on the host: there is no other memory. */
static CUresult f_copy_back(void *to, CUdeviceptr from, size_t n, CUstream s)
{
    (void)s;
    NOTE(cuMemcpyDtoHAsync);
    memcpy(to, (const void *)(uintptr_t)from, n);
    return CUDA_SUCCESS;
}

static CUresult f_fill(CUdeviceptr p, unsigned value, size_t n, CUstream s)
{
    NOTE(cuMemsetD32Async);
    filled = (fake_fill){ p, value, n, s };
    return CUDA_SUCCESS;
}

void fake_memory_begin(cu_driver *t)
{
    t->cuMemAlloc = f_alloc;
    t->cuMemFree = f_free;
    t->cuMemAllocAsync = f_alloc_async;
    t->cuMemFreeAsync = f_free_async;
    t->cuMemcpyDtoHAsync = f_copy_back;
    t->cuMemsetD32Async = f_fill;
    pools = 0;
    memset(blocks, 0, sizeof blocks);
    memory = 0;
    next_address = 0x7000000000;
}

void fake_pools(bool there)
{
    pools = there;
}

bool fake_has_pools(void)
{
    return pools;
}

size_t fake_live_bytes(void)
{
    size_t sum = 0;
    pthread_mutex_lock(&blocks_mutex);
    for (int i = 0; i < FAKE_BLOCKS; i++)
        sum += blocks[i].bytes;
    pthread_mutex_unlock(&blocks_mutex);
    return sum;
}

long fake_live_memory(void)
{
    return atomic_load(&memory) + fake_live_streams();
}

fake_fill fake_filled(void)
{
    return filled;
}
