/* decode: a server's loop. Eight sequences grow token by token in a paged cache, and one captured graph serves every step. Only Q, cache,
 * lengths and page table change, in place. Sequences end, and others take over their pages. On the simulator each step is a launch.
 *   cc decode.c $(pkg-config --cflags --libs fagen) -lm -ldl && ./a.out */
#include <dlfcn.h>
#include <fagen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 8, HQ = 8, HKV = 2, D = 64, PAGE = 16, LONGEST = 96, ENTRIES = LONGEST / PAGE, PAGES = B * ENTRIES, STEPS = 40 };
enum { CACHE, LENGTHS, TABLE, Q, O, TENSORS }; /* what lies on the device; cache: pages of K, then pages of V */
typedef uint16_t bf16, token[HKV][D];          /* bf16: the upper half of a float */

static token cache[2 * PAGES][PAGE], seen[2][B][LONGEST]; /* seen: K and V in the order of their tokens, for the oracle */
static bf16 q[B][HQ][D], o[B][HQ][D];
static int32_t length[B], table[B][ENTRIES], unused[PAGES], unused_pages = PAGES;
static void *const host[TENSORS] = { cache, length, table, q, o };
static const size_t bytes[TENSORS] = { sizeof cache, sizeof length, sizeof table, sizeof q, sizeof o };
static void *d[TENSORS], *libcuda, *primary, *stream, *graph; /* d: on the device */
static fa_context *ctx;

#define FA(name, ...) check(#name, name(__VA_ARGS__))
#define CU(name, types, ...) check(#name, ((int(*) types)dlsym(libcuda, #name))(__VA_ARGS__) ? FA_DEVICE : FA_OK) /* the driver's own */
static void check(const char *what, fa_status st)
{
    if (st != FA_OK)
        exit((fprintf(stderr, "%s: %s: %s\n", what, fa_status_name(st), fa_last_error()), 1));
}

static void randomize(bf16 *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (bf16)(rand() % 2 << 15 | (0x3e80 + rand() % 0x100)); /* 0.25 to 1, either sign */
}

static double value(bf16 x) /* Inf and NaN are huge */
{
    return (x >> 15 ? -1 : 1) * ldexp(x % 0x80 + 0x80, (x >> 7) % 0x100 - 134);
}

/* The next token of sequence i: a page where one begins, then K and V into its next row. An engine does both on the device. */
static void append(int i)
{
    int n = length[i]++;
    if (n % PAGE == 0)
        table[i][n / PAGE] = unused[--unused_pages];
    for (int kv = 0; kv < 2; kv++) {
        token *row = (token *)d[CACHE] + (kv * PAGES + table[i][n / PAGE]) * PAGE + n % PAGE;
        randomize(seen[kv][i][n][0], HKV * D);
        FA(fa_copy, ctx, row, seen[kv][i][n], sizeof *row, FA_TO_DEVICE);
    }
}

/* How far element c of a head's O is from attention in fp64. */
static double distance(int i, int h, int c)
{
    double sum = 0, out = 0;
    for (int n = 0; n < length[i]; n++) {
        double dot = 0;
        for (int e = 0; e < D; e++)
            dot += value(q[i][h][e]) * value(seen[0][i][n][h / (HQ / HKV)][e]);
        sum += exp(dot / sqrt(D));
        out += exp(dot / sqrt(D)) * value(seen[1][i][n][h / (HQ / HKV)][c]);
    }
    return fabs(value(o[i][h][c]) - (sum > 0 ? out / sum : 0));
}

int main(void)
{
    const char *device = getenv("FAGEN_DEVICE");
    fa_problem problem;
    fa_args a = FA_ARGS_INIT;
    double most = 0;
    libcuda = device && !strncmp(device, "sim:", 4) ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
    FA(fa_create, &ctx, NULL);
    for (int t = 0; t < TENSORS; t++)
        FA(fa_alloc, ctx, &d[t], bytes[t]);
    memset(cache, -1, sizeof cache); /* NaN: what no sequence has written must not be seen */
    FA(fa_copy, ctx, d[CACHE], cache, sizeof cache, FA_TO_DEVICE);
    for (int i = 0, other; i < PAGES; unused[i] = unused[other], unused[other] = i, i++) /* a shuffled list */
        other = rand() % (i + 1);
    a.dtype = FA_BF16, a.d = D, a.b = B, a.hq = HQ, a.hkv = HKV, a.sq = 1, a.sk = LONGEST; /* no sequence is longer */
    a.k = (fa_tensor){ d[CACHE], PAGE * HKV * D, HKV * D, D }, a.v = a.k,
    a.v.ptr = (token *)d[CACHE] + PAGES * PAGE; /* page, token, head */
    a.q.ptr = d[Q], a.o.ptr = d[O], a.seqlens_k = d[LENGTHS], a.page_table = d[TABLE], a.page_size = PAGE, a.pages = PAGES;
    FA(fa_problem_of, &a, &problem);
    FA(fa_prepare, ctx, &problem); /* what is not prepared cannot be captured */
    FA(fa_workspace_size, ctx, &a, &a.workspace_size);
    FA(fa_alloc, ctx, &a.workspace, a.workspace_size);
    FA(fa_workspace_init, ctx, a.workspace, a.workspace_size, NULL);
    if (libcuda) { /* an engine has its context and stream already */
        CU(cuDevicePrimaryCtxRetain, (void **, int), &primary, device && !strncmp(device, "cuda:", 5) ? atoi(device + 5) : 0);
        CU(cuCtxSetCurrent, (void *), primary);
        CU(cuStreamCreate, (void **, unsigned), &stream, 1); /* 1: apart from the default stream */
        CU(cuStreamBeginCapture_v2, (void *, int), stream, 0);
        FA(fa_launch, ctx, &a, stream);
        CU(cuStreamEndCapture, (void *, void **), stream, &graph);
        CU(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &graph, graph, 0);
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < B; i++) {
            int over = length[i] == LONGEST || (step == 19 && i == 5);
            for (; over && length[i] > 0; length[i] = (length[i] - 1) / PAGE * PAGE) /* a row of padding until another request comes */
                unused[unused_pages++] = table[i][(length[i] - 1) / PAGE];
            for (int n = over ? 0 : step ? 1 : 1 + 11 * i; n > 0; n--) /* at first the prompts */
                append(i);
        }
        randomize(q[0][0], B * HQ * D);
        for (int t = LENGTHS; t <= Q; t++)
            FA(fa_copy, ctx, d[t], host[t], bytes[t], FA_TO_DEVICE);
        libcuda ? CU(cuGraphLaunch, (void *, void *), graph, stream) : FA(fa_launch, ctx, &a, NULL);
        FA(fa_copy, ctx, o, d[O], sizeof o, FA_FROM_DEVICE); /* waits for the step */
        for (int i = 0; step % 5 == 4 && i < B * HQ * D; i++)
            most = fmax(most, distance(i / (HQ * D), i / D % HQ, i % D));
    }
    printf("%d steps, each %s; at most %.4f from fp64\n", STEPS, libcuda ? "a replay of one graph" : "a launch", most);
    fa_destroy(ctx);
    return !(most < 0.01);
}
