/* probe: what a chip sustains. */
#include "probe.h"
#include "gen/error.h"
#include "gen/files.h"
#include "samples.h"
#include "verify/operands/random.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 7
#define WARM_SECONDS 0.25     /* of each kernel before it is timed: until the power limit has found its clock */
#define LAUNCHES 256          /* empty kernels of one sample */
#define READ_MOST (2ll << 30) /* bytes */
#define CHECK_ROUNDS 3
#define READERS 4          /* blocks of each SM that read */
#define REST 0.6411857445f /* where x = 2^-x */

enum { MMA, EXP, READ, LAUNCH, WGMMA, KINDS };

/* What a kernel does in a round of a thread block, and how it is launched. */
static const struct kind {
    const char *entry;
    int threads, smem;
    double work; /* of a block in a round: FLOP or exponentials; reads count bytes */
    int rounds;  /* of a launch of some milliseconds */
} kinds[KINDS] = {
    [MMA] = { "probe_mma", 512, 0, 16.0 * 8 * 4096, 40000 },
    [EXP] = { "probe_exp", 512, 0, 512.0 * 8, 20000 },
    [READ] = { "probe_read", 512, 0, 0, 1 },
    [LAUNCH] = { "probe_launch", 32, 0, 0, 1 },
    [WGMMA] = { "probe_wgmma", 256, (2 * 64 + 256) * 128, 2.0 * 4 * 2 * 64 * 256 * 16, 6000 },
};

typedef struct prober {
    fa_context *ctx;
    const cu_driver *d;
    CUkernel fn[KINDS]; /* NULL = not on this chip */
    CUdeviceptr out, clocks, in;
    size_t in_bytes;
    int grid;
    CUevent start, stop;
} prober;

static fa_status check(const prober *p, CUresult r, const char *call)
{
    return fa_driver_check(p->d, r, call);
}

/* A source without a family: the file as it is. */
static fa_status build(prober *p, fa_files *files, const char *file, int from, int n)
{
    int at;
    fa_source s = { .steps = n };
    const fa_kernel *k;
    fa_status st = fa_files_get(files, &at, file);
    if (st != FA_OK)
        return st;
    s.text = s.lined = (char *)(uintptr_t)files->file[at].bytes;
    s.text_size = files->file[at].size;
    memcpy(s.name, files->file[at].name, strlen(files->file[at].name) + 1);
    for (size_t i = 0; i < s.text_size; i++)
        s.hash[i % 2] = fa_random_mix(s.hash[i % 2] ^ (uint64_t)(unsigned char)s.text[i]);
    for (int i = 0; i < n; i++) {
        s.step[i] = (fa_step){ .threads = kinds[from + i].threads, .smem = kinds[from + i].smem, .cluster = 1 };
        memcpy(s.step[i].entry, kinds[from + i].entry, strlen(kinds[from + i].entry) + 1);
    }
    st = fa_build(p->ctx, &s, (fa_subject){ NULL, NULL }, &k);
    for (int i = 0; i < n && st == FA_OK; i++)
        p->fn[from + i] = k->fn[i];
    return st;
}

/* One block per SM keeps a unit busy; memory wants as many reads under way as an SM holds. */
static int blocks_of(const prober *p, int kind)
{
    return kind == LAUNCH ? 1 : kind == READ ? READERS * p->grid : p->grid;
}

static fa_status launch(prober *p, int kind, unsigned long long n, int rounds, int plain)
{
    const struct kind *k = &kinds[kind];
    void *args[] = { &p->out, &p->clocks, &p->in, &n, &rounds, &plain };
    return check(p,
                 p->d->cuLaunchKernel((CUfunction)p->fn[kind], (unsigned)blocks_of(p, kind), 1, 1, (unsigned)k->threads, 1, 1,
                                      (unsigned)k->smem, NULL, args, NULL),
                 k->entry);
}

/* Operands of ones: what comes out of a thread is known. */
static fa_status verify(prober *p, int kind)
{
    int threads = blocks_of(p, kind) * kinds[kind].threads;
    unsigned long long n = kind == READ ? 1000 : 0;
    uint32_t *bits = malloc((size_t)threads * 4);
    double sum = 0;
    fa_status st = bits ? launch(p, kind, n, kind == EXP ? 40 : CHECK_ROUNDS, 1) : fa_fail(FA_NOMEM, "no memory for %d results", threads);
    if (st == FA_OK)
        st = check(p, p->d->cuMemcpyDtoH(bits, p->out, (size_t)threads * 4), "cuMemcpyDtoH");
    for (int i = 0; i < threads && st == FA_OK; i++) {
        float x;
        memcpy(&x, &bits[i], sizeof x);
        double got = kind == READ || kind == LAUNCH ? (double)bits[i] : (double)x;
        double each = kind == MMA ? 8.0 * 4 * 16 * CHECK_ROUNDS : kind == WGMMA ? 128.0 * 64 * CHECK_ROUNDS : kind == EXP ? 8.0 * REST : 1;
        sum += got;
        if (kind != READ && !(fabs(got - each) <= (kind == EXP ? 1e-4 : 0)))
            st = fa_fail(FA_WRONG, "%s: thread %d gives %g; it should give %g", kinds[kind].entry, i, got, each);
    }
    if (st == FA_OK && kind == READ && sum != 4.0 * 1000 * CHECK_ROUNDS)
        st = fa_fail(FA_WRONG, "%s reads %g words; there are %g", kinds[kind].entry, sum, 4.0 * 1000 * CHECK_ROUNDS);
    free(bits);
    return st;
}

/* `times` launches between two events; *seconds of all of them. */
static fa_status batch(prober *p, int kind, unsigned long long n, int rounds, int times, double *seconds)
{
    float ms = 0;
    fa_status st = check(p, p->d->cuEventRecord(p->start, NULL), "cuEventRecord");
    for (int i = 0; i < times && st == FA_OK; i++)
        st = launch(p, kind, n, rounds, 0);
    if (st == FA_OK)
        st = check(p, p->d->cuEventRecord(p->stop, NULL), "cuEventRecord");
    if (st == FA_OK)
        st = check(p, p->d->cuEventSynchronize(p->stop), kinds[kind].entry);
    if (st == FA_OK)
        st = check(p, p->d->cuEventElapsedTime(&ms, p->start, p->stop), "cuEventElapsedTime");
    *seconds = ms * 1e-3;
    return st;
}

static fa_status measure(prober *p, int kind, unsigned long long n, int rounds, int times, double *seconds)
{
    fa_samples t = { 0 };
    double one = 0, spent = 0;
    fa_status st = FA_OK;
    for (int i = 0; i < 10000 && spent < WARM_SECONDS && st == FA_OK; i++) {
        st = batch(p, kind, n, rounds, times, &one);
        spent += one;
    }
    for (int i = 0; i < SAMPLES && st == FA_OK; i++)
        if ((st = batch(p, kind, n, rounds, times, &one)) == FA_OK)
            fa_samples_add(&t, one);
    *seconds = fa_samples_median(&t);
    return st == FA_OK && !(*seconds > 0) ? fa_fail(FA_DEVICE, "%s took no time", kinds[kind].entry) : st;
}

/* The clocks that the last launch took in its first block, over its time. */
static fa_status clock_of(prober *p, double seconds, double *hz)
{
    unsigned long long clocks = 0;
    fa_status st = check(p, p->d->cuMemcpyDtoH(&clocks, p->clocks, sizeof clocks), "cuMemcpyDtoH");
    *hz = (double)clocks / seconds;
    return st;
}

static fa_status measure_all(prober *p, fa_rates *out)
{
    double t, work = (double)p->grid;
    unsigned long long some = (unsigned long long)fa_context_arch(p->ctx)->l2_bytes / 4 / 16, all = p->in_bytes / 16;
    fa_status st = measure(p, LAUNCH, 0, 1, LAUNCHES, &t);
    out->launch = st == FA_OK ? t / LAUNCHES : 0;
    if (st == FA_OK && (st = measure(p, EXP, 0, kinds[EXP].rounds, 1, &t)) == FA_OK)
        out->exps = work * kinds[EXP].work * kinds[EXP].rounds / t;
    if (st == FA_OK && (st = measure(p, READ, all, 1, 1, &t)) == FA_OK)
        out->hbm_bytes = (double)all * 16 / t;
    some = some < all ? some : all;
    if (st == FA_OK && (st = measure(p, READ, some, 100, 1, &t)) == FA_OK)
        out->l2_bytes = (double)some * 16 * 100 / t;
    if (st == FA_OK && (st = measure(p, MMA, 0, kinds[MMA].rounds, 1, &t)) == FA_OK) {
        out->mma16 = work * kinds[MMA].work * kinds[MMA].rounds / t;
        st = clock_of(p, t, &out->clock);
    }
    if (st == FA_OK && p->fn[WGMMA] && (st = measure(p, WGMMA, 0, kinds[WGMMA].rounds, 1, &t)) == FA_OK) {
        out->wgmma16 = work * kinds[WGMMA].work * kinds[WGMMA].rounds / t;
        st = clock_of(p, t, &out->clock);
    }
    return st;
}

static fa_status provide(prober *p, bool timed)
{
    size_t left = 0, total = 0, quarter;
    p->grid = timed ? fa_context_arch(p->ctx)->sm_count : 2;
    fa_status st = timed ? check(p, p->d->cuMemGetInfo(&left, &total), "cuMemGetInfo") : FA_OK;
    quarter = left / 4 / 4096 * 4096;
    p->in_bytes = timed ? (size_t)fmin((double)READ_MOST, (double)quarter) : 1 << 16;
    if (st == FA_OK)
        st = check(p, p->d->cuMemAlloc(&p->in, p->in_bytes), "cuMemAlloc");
    if (st == FA_OK)
        st = check(p, p->d->cuMemAlloc(&p->out, (size_t)READERS * (size_t)p->grid * 512 * 4), "cuMemAlloc");
    if (st == FA_OK)
        st = check(p, p->d->cuMemAlloc(&p->clocks, (size_t)p->grid * 8), "cuMemAlloc");
    if (st == FA_OK)
        st = check(p, p->d->cuMemsetD32Async(p->in, 1, p->in_bytes / 4, NULL), "cuMemsetD32Async");
    if (st == FA_OK && timed)
        st = check(p, p->d->cuEventCreate(&p->start, 0), "cuEventCreate");
    if (st == FA_OK && timed)
        st = check(p, p->d->cuEventCreate(&p->stop, 0), "cuEventCreate");
    return st;
}

static void give_back(prober *p)
{
    CUdeviceptr memory[] = { p->in, p->out, p->clocks };
    for (int i = 0; i < 3; i++)
        if (memory[i])
            p->d->cuMemFree(memory[i]);
    if (p->start)
        p->d->cuEventDestroy(p->start);
    if (p->stop)
        p->d->cuEventDestroy(p->stop);
}

fa_status fa_probe(fa_context *ctx, fa_rates *out)
{
    prober p = { .ctx = ctx, .d = fa_context_driver(ctx) };
    fa_files files;
    fa_entered in;
    bool timed = !p.d->takes_ptx;
    *out = (fa_rates){ 0 };
    fa_status st = fa_context_enter(ctx, &in);
    if (st != FA_OK)
        return st;
    st = fa_files_open(&files, fa_context_template_dir(ctx));
    if (st == FA_OK) {
        st = build(&p, &files, "probe.cu", MMA, 4);
        if (st == FA_OK && !strcmp(fa_context_arch(ctx)->name, "sm_90a"))
            st = build(&p, &files, "probe_wgmma.cu", WGMMA, 1);
        fa_files_close(&files);
    }
    if (st == FA_OK)
        st = provide(&p, timed);
    for (int i = 0; i < KINDS && st == FA_OK; i++)
        st = p.fn[i] ? verify(&p, i) : FA_OK;
    if (st == FA_OK && timed)
        st = measure_all(&p, out);
    give_back(&p);
    fa_context_leave(ctx, &in);
    return fa_wrap(st, "the probes");
}
