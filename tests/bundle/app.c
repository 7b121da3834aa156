/* A program of someone else's that ships kernels in a bundle: C99, also C++11, nothing but <fagen.h>.
 *
 *     app only DEVICE     the bundle's kernels compute attention, right, and nothing else could have
 *     app first DEVICE    the same where compiling is not ruled out
 *     app nearest DEVICE  as "only", by kernels that were prepared for another length
 *     app faults DEVICE FILE  what is not in the bundle, and bundles that are not as fagen wrote them, are told of clearly; FILE: what
 *                             fagen emit --bundle --raw wrote for the device
 */
#include <fagen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
extern const fa_bundle BUNDLE;
#ifdef __cplusplus
}
#endif
static const fa_bundle *const shipped[] = { &BUNDLE, NULL };
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

static int failures, on_miss;
#define EXPECT(what, ...)                  \
    do {                                   \
        if (!(what)) {                     \
            failures++;                    \
            printf("line %d: ", __LINE__); \
            printf(__VA_ARGS__);           \
            printf("\n");                  \
        }                                  \
    } while (0)

enum { B = 1, HQ = 4, HKV = 2, SQ = 70, SK = 150, D = 64, Q_COUNT = B * SQ * HQ * D, K_COUNT = B * SK * HKV * D };
static uint16_t in[3][K_COUNT > Q_COUNT ? K_COUNT : Q_COUNT], out[Q_COUNT];
static float lse[B * HQ * SQ];

static float number(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static fa_context *context(const fa_bundle *const *bundles, const char *device, int only, fa_status expected)
{
    fa_context *ctx = NULL;
    fa_options options = FA_OPTIONS_INIT;
    options.device = device;
    options.bundles = bundles;
    options.bundle_only = only;
    options.on_miss = on_miss;
    fa_status st = fa_create(&ctx, &options);
    EXPECT(st == expected, "fa_create: %s, expected %s: %s", fa_status_name(st), fa_status_name(expected), fa_last_error());
    return ctx;
}

static fa_args args_of(int mask)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16;
    a.d = D;
    a.mask = mask;
    a.b = B, a.hq = HQ, a.hkv = HKV, a.sq = SQ, a.sk = SK;
    return a;
}

/* The largest errors of O and of LSE, against sums in double. */
static void judge(int mask, double *worst_o, double *worst_lse)
{
    *worst_o = *worst_lse = 0;
    for (int h = 0; h < HQ; h++)
        for (int i = 0; i < SQ; i++) {
            double s[SK], x[D] = { 0 }, sum = 0, m = -1e300;
            int seen = mask == FA_MASK_CAUSAL ? i + SK - SQ + 1 : SK, hk = h / (HQ / HKV);
            for (int j = 0; j < seen; j++) {
                s[j] = 0;
                for (int e = 0; e < D; e++)
                    s[j] += (double)number(in[0][(i * HQ + h) * D + e]) * number(in[1][(j * HKV + hk) * D + e]);
                s[j] /= sqrt((double)D);
                m = s[j] > m ? s[j] : m;
            }
            for (int j = 0; j < seen; j++) {
                double p = exp(s[j] - m);
                sum += p;
                for (int e = 0; e < D; e++)
                    x[e] += p * number(in[2][(j * HKV + hk) * D + e]);
            }
            for (int e = 0; e < D; e++) {
                double error = fabs(x[e] / sum - number(out[(i * HQ + h) * D + e]));
                *worst_o = error <= *worst_o ? *worst_o : error; /* NaN is the worst */
            }
            double error = fabs(m + log(sum) - lse[h * SQ + i]);
            *worst_lse = error <= *worst_lse ? *worst_lse : error;
        }
}

static void compute(fa_context *ctx, int mask)
{
    fa_args a = args_of(mask);
    fa_problem p = FA_PROBLEM_INIT;
    fa_tensor *t[4];
    char text[4096] = "";
    double o_error, lse_error;
    size_t bytes = 1;
    t[0] = &a.q, t[1] = &a.k, t[2] = &a.v, t[3] = &a.o;
    p.dtype = a.dtype, p.d = a.d, p.mask = a.mask, p.hq = a.hq, p.hkv = a.hkv, p.b = a.b, p.sq = a.sq, p.sk = a.sk;
    if (on_miss == FA_MISS_NEAREST)
        p.sq = p.sk = 4096;
    EXPECT(fa_supported(ctx, &p) == FA_OK, "fa_supported: %s", fa_last_error());
    EXPECT(fa_workspace_size(ctx, &a, &bytes) == FA_OK && bytes == 0, "fa_workspace_size: %s", fa_last_error());
    EXPECT(fa_explain(ctx, &p, NULL, text, sizeof text) == FA_OK && strstr(text, "in the bundle, check "), "fa_explain: %s%s", text,
           fa_last_error());
    EXPECT(fa_prepare(ctx, &p) == FA_OK, "fa_prepare: %s", fa_last_error());
    for (int i = 0; i < 4; i++) {
        const void *from = i < 3 ? (const void *)in[i] : out;
        EXPECT(fa_alloc(ctx, &t[i]->ptr, sizeof in[0]) == FA_OK, "fa_alloc: %s", fa_last_error());
        memset(out, 0xff, sizeof out);
        EXPECT(fa_copy(ctx, t[i]->ptr, from, i < 3 ? sizeof in[0] : sizeof out, FA_TO_DEVICE) == FA_OK, "fa_copy: %s", fa_last_error());
    }
    void *at = NULL;
    EXPECT(fa_alloc(ctx, &at, sizeof lse) == FA_OK, "fa_alloc: %s", fa_last_error());
    a.lse = (float *)at;
    EXPECT(fa_launch(ctx, &a, NULL) == FA_OK, "fa_launch: %s", fa_last_error());
    EXPECT(fa_copy(ctx, out, a.o.ptr, sizeof out, FA_FROM_DEVICE) == FA_OK, "fa_copy: %s", fa_last_error());
    EXPECT(fa_copy(ctx, lse, a.lse, sizeof lse, FA_FROM_DEVICE) == FA_OK, "fa_copy: %s", fa_last_error());
    EXPECT(fa_explain(ctx, NULL, &a, text, sizeof text) == FA_OK && strstr(text, "loaded, from the bundle") &&
               strstr(text, "of the bundle "),
           "fa_explain: %s%s", text, fa_last_error());
    EXPECT(strstr(text, "table      hit: prepared") || (on_miss == FA_MISS_NEAREST && strstr(text, "sq=4096,sk=4096, runs until")),
           "fa_explain: %s", text);
    judge(mask, &o_error, &lse_error);
    EXPECT(o_error < 0.02 && lse_error < 1e-3, "mask %d: O is off by %g, LSE by %g\n%s", mask, o_error, lse_error, text);
    for (int i = 0; i < 4; i++)
        fa_free(ctx, t[i]->ptr);
    fa_free(ctx, at);
}

static void run(const fa_bundle *const *bundles, const char *device, int only)
{
    fa_context *ctx = context(bundles, device, only, FA_OK);
    for (int mask = FA_MASK_NONE; ctx && mask <= FA_MASK_CAUSAL; mask++)
        compute(ctx, mask);
    fa_destroy(ctx);
}

/* The message of what fails, held against what it must say. */
#define FAILS(call, status, says)                                                                                           \
    do {                                                                                                                    \
        fa_status st_ = (call);                                                                                             \
        EXPECT(st_ == (status) && strstr(fa_last_error(), says), "%s: %s: %s; expected %s: %s", #call, fa_status_name(st_), \
               fa_last_error(), #status, says);                                                                             \
    } while (0)

static fa_problem problem_of(int dtype, int d, int align)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = dtype;
    p.d = d;
    p.align = align;
    return p;
}

static void what_is_missing(const char *device)
{
    fa_context *ctx = context(shipped, device, 1, FA_OK);
    fa_problem other = problem_of(FA_BF16, D + 8, 0), lower = problem_of(FA_BF16, D, 4), good = problem_of(FA_BF16, D, 0);
    FAILS(fa_prepare(ctx, &other), FA_NO_KERNEL, "no bundle has a kernel for bf16,d=72,dv=72,mask=none");
    FAILS(fa_prepare(ctx, &other), FA_NO_KERNEL, "fagen emit --bundle --problem bf16,d=72");
    FAILS(fa_supported(ctx, &lower), FA_NO_KERNEL, "align=4");
    EXPECT(fa_prepare(ctx, &good) == FA_OK, "%s", fa_last_error());
    fa_destroy(ctx);
    ctx = context(shipped, device, 0, FA_OK); /* the compiler, which is not there, is what is missing then */
    EXPECT(fa_prepare(ctx, &good) == FA_OK, "%s", fa_last_error());
    fa_destroy(ctx);
}

/* A bundle in memory, at an address that is a multiple of nothing. */
typedef struct loaded {
    char *heap, *bytes;
    size_t size;
} loaded;

static loaded load(const char *path)
{
    loaded l = { NULL, NULL, 0 };
    FILE *f = fopen(path, "rb");
    long size = f && !fseek(f, 0, SEEK_END) ? ftell(f) : 0;
    EXPECT(size > 1000, "%s: %ld bytes", path, size);
    if (f && size > 1000) {
        l.heap = (char *)malloc((size_t)size + 1);
        l.bytes = l.heap + 1;
        rewind(f);
        l.size = fread(l.bytes, 1, (size_t)size, f);
    }
    if (f)
        fclose(f);
    return l;
}

/* Refused as a file, and where it is linked. */
static void refused(loaded l, const char *device, size_t at, char to, const char *says)
{
    const fa_bundle *bundle, *list[] = { (const fa_bundle *)(const void *)l.bytes, NULL };
    char was = l.bytes[at];
    l.bytes[at] = to;
    FAILS(fa_bundle_open(&bundle, l.bytes, l.size), FA_INVALID, says);
    EXPECT(!bundle, "byte %u: a bundle", (unsigned)at);
    fa_destroy(context(list, device, 1, FA_INVALID));
    EXPECT(strstr(fa_last_error(), says), "byte %u: %s; expected: %s", (unsigned)at, fa_last_error(), says);
    l.bytes[at] = was;
}

static void what_is_damaged(const char *device, const char *path)
{
    static const struct {
        uint32_t size, format;
        const char *name, *version;
        uint64_t params;
        const void *row, *image;
        uint32_t rows, images;
    } before = { 56, 2, "before", "0.1.0", 1, NULL, NULL, 0, 0 }; /* what programs linked */
    const fa_bundle *bundle = NULL, *list[] = { NULL, NULL };
    fa_problem good = problem_of(FA_BF16, D, 0);
    loaded l = load(path);
    if (!l.heap)
        return;
    EXPECT(fa_bundle_open(&bundle, l.bytes, l.size) == FA_OK, "%s: %s", path, fa_last_error());
    list[0] = bundle;
    run(list, device, 1);
    refused(l, device, 0, 'F', "its magic is ");
    refused(l, device, 8, 2, "its format is 2; accepted by fagen ");
    refused(l, device, 8, 4, "its format is 4; accepted by fagen ");
    refused(l, device, 24, (char)(l.bytes[24] ^ 8), "the checksum of its head is ");
    refused(l, device, 100, (char)(l.bytes[100] ^ 1), "the checksum of its tables is ");
    FAILS(fa_bundle_open(&bundle, l.bytes, l.size - 1), FA_INVALID, " bytes; accepted: ");
    FAILS(fa_bundle_open(&bundle, l.bytes, 10), FA_INVALID, "it has 10 bytes; accepted: ");
    list[0] = (const fa_bundle *)(const void *)&before;
    fa_destroy(context(list, device, 1, FA_INVALID));
    EXPECT(strstr(fa_last_error(), "options: bundle 0: its format is 2; accepted by fagen "), "%s", fa_last_error());
    /* the images: told of where they are loaded, or where all is looked at */
    for (size_t i = 0; i + 8 < l.size; i++)
        if (!memcmp(l.bytes + i, ".version", 8))
            l.bytes[i + 1] = 'w';
    list[0] = (const fa_bundle *)(const void *)l.bytes;
    fa_context *ctx = context(list, device, 1, FA_OK);
    FAILS(fa_prepare(ctx, &good), FA_INVALID, "its checksum is ");
    fa_destroy(ctx);
    FAILS(fa_bundle_open(&bundle, l.bytes, l.size), FA_INVALID, "its checksum is ");
    free(l.heap);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    if (argc != (argc > 1 && !strcmp(argv[1], "faults") ? 4 : 3))
        return 2;
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof in[t] / sizeof in[t][0]; i++) {
            float x;
            uint32_t u;
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            x = (float)(int32_t)(seed >> 32) * 9e-10f;
            memcpy(&u, &x, sizeof u);
            in[t][i] = (uint16_t)(u >> 16);
        }
    on_miss = strcmp(argv[1], "nearest") ? FA_MISS_COMPILE : FA_MISS_NEAREST;
    if (strcmp(argv[1], "faults")) {
        run(shipped, argv[2], !!strcmp(argv[1], "first"));
    } else {
        what_is_missing(argv[2]);
        what_is_damaged(argv[2], argv[3]);
    }
    printf("%s %s on %s: %s\n", NAME_OF(BUNDLE), argv[1], argv[2], failures ? "failed" : "ok");
    return failures != 0;
}
