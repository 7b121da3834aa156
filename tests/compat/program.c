/* A program of the time of 1/fagen.h, which is the only header of fagen that it sees, linked with the library of today:
 *   program bundle|bytes            a bundle of that time alone, by its name or as bytes: nothing is compiled
 *   program record CACHE            a cache folder of that time, of which a record chooses the config; nothing is compiled
 *   program compile CACHE           NVRTC, with that folder as its cache
 * Exit code 0 where every result is right. What the library writes into a struct of that size stays inside. */
#include <fagen.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention.c"

enum { B = 1, H = 2, N = 100, D = 16, ROW = H * D, COUNT = N * ROW };

static int warnings;

static void say(void *user, int level, const char *message)
{
    (void)user;
    if (level <= FA_LOG_WARN) {
        fprintf(stderr, "the library warns: %s\n", message);
        warnings++;
    }
}

static void fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static void check(const char *what, fa_status st)
{
    if (st != FA_OK)
        fail("%s: %s: %s", what, fa_status_name(st), fa_last_error());
}

/* Multiples of 1/8 between -1 and 1: exact in every type. */
static float value(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)((int)(*state >> 28) - 8) / 8;
}

static uint16_t to_half(float f)
{
    int e;
    float m = frexpf(fabsf(f), &e);
    if (f == 0)
        return 0;
    return (uint16_t)((f < 0 ? 0x8000 : 0) | (e + 14) << 10 | (int)((m * 2 - 1) * 1024));
}

static float from_half(uint16_t h)
{
    float m = ldexpf((float)(h & 0x3ff), -10);
    int e = h >> 10 & 31;
    float f = e ? ldexpf(1 + m, e - 15) : ldexpf(m, -14);
    return h & 0x8000 ? -f : f;
}

/* ---- what should come out, in fp64 ---- */

typedef struct tensors {
    float q[COUNT], k[COUNT], v[COUNT], o[COUNT], grad_o[COUNT];
} tensors;

/* Keys from..to - 1 that query i sees; left < 0: all before it. */
static int sees(int i, int j, int left, int from, int to)
{
    return j >= from && j < to && j <= i && (left < 0 || i - j <= left);
}

static double score(const tensors *t, int h, int i, int j)
{
    double s = 0;
    for (int x = 0; x < D; x++)
        s += (double)t->q[i * ROW + h * D + x] * (double)t->k[j * ROW + h * D + x];
    return s / sqrt(D);
}

static void attend(const tensors *t, int left, int from, int to, double *o, double *lse)
{
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++) {
            double sum = 0, *row = o + i * ROW + h * D;
            memset(row, 0, D * sizeof *row);
            for (int j = 0; j < N; j++) {
                double p = sees(i, j, left, from, to) ? exp(score(t, h, i, j)) : 0;
                sum += p;
                for (int x = 0; x < D; x++)
                    row[x] += p * (double)t->v[j * ROW + h * D + x];
            }
            for (int x = 0; x < D && sum > 0; x++)
                row[x] /= sum;
            lse[h * N + i] = sum > 0 ? log(sum) : -INFINITY;
        }
}

static void differentiate(const tensors *t, const double *o, const double *lse, double *gq, double *gk, double *gv)
{
    memset(gq, 0, COUNT * sizeof *gq);
    memset(gk, 0, COUNT * sizeof *gk);
    memset(gv, 0, COUNT * sizeof *gv);
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++) {
            int at = i * ROW + h * D;
            double delta = 0;
            for (int x = 0; x < D; x++)
                delta += (double)t->grad_o[at + x] * o[at + x];
            for (int j = 0; j <= i; j++) {
                int to = j * ROW + h * D;
                double p = exp(score(t, h, i, j) - lse[h * N + i]), dp = 0;
                for (int x = 0; x < D; x++)
                    dp += (double)t->grad_o[at + x] * (double)t->v[to + x];
                for (int x = 0; x < D; x++) {
                    double ds = p * (dp - delta) / sqrt(D);
                    gq[at + x] += ds * (double)t->k[to + x];
                    gk[to + x] += ds * (double)t->q[at + x];
                    gv[to + x] += p * (double)t->grad_o[at + x];
                }
            }
        }
}

static void compare(const char *what, const float *is, const double *should, int n, double most)
{
    for (int i = 0; i < n; i++)
        if (!(fabs((double)is[i] - should[i]) <= most) && !(isinf(should[i]) && (double)is[i] == should[i]))
            fail("%s[%d] is %g; expected %g", what, i, (double)is[i], should[i]);
}

/* ---- device memory ---- */

static void *device(fa_context *ctx, const void *bytes, size_t n)
{
    void *p;
    check("fa_alloc", fa_alloc(ctx, &p, n));
    if (bytes)
        check("fa_copy", fa_copy(ctx, p, bytes, n, FA_TO_DEVICE));
    return p;
}

static void back(fa_context *ctx, void *to, const void *from, size_t n)
{
    check("fa_copy", fa_copy(ctx, to, from, n, FA_FROM_DEVICE));
}

static void launch(fa_context *ctx, fa_args *args)
{
    size_t need = 0;
    check("fa_workspace_size", fa_workspace_size(ctx, args, &need));
    args->workspace = need ? device(ctx, NULL, need) : NULL;
    args->workspace_size = need;
    if (need)
        check("fa_workspace_init", fa_workspace_init(ctx, args->workspace, need, NULL));
    check("fa_launch", fa_launch(ctx, args, NULL));
}

static void explained(fa_context *ctx, const fa_args *args, const char *word)
{
    char text[4096];
    size_t n = 0;
    check("fa_explain", fa_explain(ctx, NULL, args, text, sizeof text));
    check("fa_explain_size", fa_explain_size(ctx, NULL, args, &n));
    if (!strstr(text, word) || n < strlen(text))
        fail("the kernel is not of \"%s\":\n%s", word, text);
}

static fa_args args_of(int dtype)
{
    fa_args args = FA_ARGS_INIT;
    args.dtype = dtype;
    args.d = D;
    args.b = B;
    args.hq = args.hkv = H;
    args.sq = args.sk = N;
    args.mask = FA_MASK_CAUSAL;
    return args;
}

static tensors random_tensors(void)
{
    tensors t;
    unsigned state = 1;
    float *all[] = { t.q, t.k, t.v, t.grad_o };
    memset(&t, 0, sizeof t);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < COUNT; i++)
            all[k][i] = value(&state);
    return t;
}

/* What the library writes of a problem fits the struct of that time. */
static void problem(fa_context *ctx, const fa_args *args)
{
    struct {
        fa_problem p;
        unsigned char after[256];
    } room;
    memset(&room, 0xa5, sizeof room);
    check("fa_problem_of", fa_problem_of(args, &room.p));
    for (size_t i = 0; i < sizeof room.after; i++)
        if (room.after[i] != 0xa5)
            fail("fa_problem_of wrote %zu bytes after the struct", i + 1);
    if (room.p.size != sizeof room.p || room.p.dtype != args->dtype || room.p.d != D || room.p.sq != N || room.p.mask != args->mask)
        fail("fa_problem_of: size %u, dtype %d, d %d, sq %d, mask %d", room.p.size, room.p.dtype, room.p.d, room.p.sq, room.p.mask);
    check("fa_supported", fa_supported(ctx, &room.p));
    check("fa_prepare", fa_prepare(ctx, &room.p));
}

static void bundled(const fa_bundle *bundle)
{
    static double o[COUNT], lse[H * N];
    static uint16_t in[3][COUNT], out[COUNT];
    static float got[COUNT];
    const fa_bundle *const bundles[] = { bundle, NULL };
    fa_options options = FA_OPTIONS_INIT;
    fa_context *ctx;
    tensors t = random_tensors();
    const float *from[] = { t.q, t.k, t.v };
    options.device = "sim:sm_80";
    options.bundles = bundles;
    options.bundle_only = 1;
    options.log = say;
    check("fa_create", fa_create(&ctx, &options));
    fa_args args = args_of(FA_F16);
    fa_tensor *to[] = { &args.q, &args.k, &args.v };
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < COUNT; i++)
            in[k][i] = to_half(from[k][i]);
        to[k]->ptr = device(ctx, in[k], sizeof in[k]);
    }
    args.o.ptr = device(ctx, NULL, sizeof out);
    args.lse = device(ctx, NULL, H * N * sizeof(float));
    problem(ctx, &args);
    launch(ctx, &args);
    back(ctx, out, args.o.ptr, sizeof out);
    for (int i = 0; i < COUNT; i++)
        got[i] = from_half(out[i]);
    attend(&t, -1, 0, N, o, lse);
    compare("O", got, o, COUNT, 2e-3);
    back(ctx, got, args.lse, H * N * sizeof(float));
    compare("LSE", got, lse, H * N, 1e-4);
    explained(ctx, &args, "bundle: of the bundle attention by fagen 0.1.0");
    args.mask = FA_MASK_NONE; /* which the bundle does not have */
    if (fa_launch(ctx, &args, NULL) != FA_NO_KERNEL)
        fail("a problem that the bundle does not have: %s", fa_last_error());
    fa_destroy(ctx);
}

static void recorded(const char *cache)
{
    fa_options options = FA_OPTIONS_INIT;
    fa_context *ctx;
    fa_args args = args_of(FA_F16);
    options.device = "sim:sm_80";
    options.cache_dir = cache;
    options.log = say;
    check("fa_create", fa_create(&ctx, &options));
    args.sq = args.sk = 128; /* of the record: for another bucket it would be one candidate of several */
    explained(ctx, &args, "measured record: measured 3.33 us on Simulated sm_80");
    explained(ctx, &args, "flash1_fwd:br=32,bc=32");
    fa_destroy(ctx);
}

static int stop(void *user, const char *line, double done)
{
    (void)line, (void)done;
    ++*(int *)user;
    return 0;
}

static void compiled(const char *cache)
{
    static double o[COUNT], lse[H * N], grad[3][COUNT], part_o[2][COUNT], part_lse[2][H * N];
    static float got[COUNT], f[2][COUNT], l[2][H * N];
    fa_options options = FA_OPTIONS_INIT;
    fa_tune_options tune = FA_TUNE_OPTIONS_INIT;
    fa_problem p = FA_PROBLEM_INIT, to;
    fa_context *ctx;
    int32_t kernels = 0;
    int words = 0;
    tensors t = random_tensors();
    options.device = "sim:sm_80";
    options.cache_dir = cache;
    options.log = say;
    check("fa_create", fa_create(&ctx, &options));

    fa_args args = args_of(FA_F32);
    args.q.ptr = device(ctx, t.q, sizeof t.q);
    args.k.ptr = device(ctx, t.k, sizeof t.k);
    args.v.ptr = device(ctx, t.v, sizeof t.v);
    args.o.ptr = device(ctx, NULL, sizeof t.o);
    args.lse = device(ctx, NULL, sizeof l[0]);
    args.mask = FA_MASK_WINDOW;
    args.window_left = 20;
    problem(ctx, &args);
    launch(ctx, &args);
    attend(&t, 20, 0, N, o, lse);
    back(ctx, got, args.o.ptr, sizeof got);
    compare("O of a window", got, o, COUNT, 1e-4);

    args.mask = FA_MASK_CAUSAL;
    args.window_left = 0;
    launch(ctx, &args);
    attend(&t, -1, 0, N, o, lse);
    back(ctx, got, args.o.ptr, sizeof got);
    compare("O", got, o, COUNT, 1e-4);

    fa_args bwd = args;
    bwd.op = FA_BACKWARD;
    bwd.grad_o.ptr = device(ctx, t.grad_o, sizeof t.grad_o);
    bwd.grad_q.ptr = device(ctx, NULL, sizeof got);
    bwd.grad_k.ptr = device(ctx, NULL, sizeof got);
    bwd.grad_v.ptr = device(ctx, NULL, sizeof got);
    problem(ctx, &bwd);
    launch(ctx, &bwd);
    differentiate(&t, o, lse, grad[0], grad[1], grad[2]);
    const void *const grads[] = { bwd.grad_q.ptr, bwd.grad_k.ptr, bwd.grad_v.ptr };
    static const char *const names[] = { "dQ", "dK", "dV" };
    for (int k = 0; k < 3; k++) {
        back(ctx, got, grads[k], sizeof got);
        compare(names[k], got, grad[k], COUNT, 1e-3);
    }

    for (int k = 0; k < 2; k++) { /* halves of the keys make the whole */
        attend(&t, -1, k * N / 2, (k + 1) * N / 2, part_o[k], part_lse[k]);
        for (int i = 0; i < COUNT; i++)
            f[k][i] = (float)part_o[k][i];
        for (int i = 0; i < H * N; i++)
            l[k][i] = (float)part_lse[k][i];
    }
    fa_args merge = FA_ARGS_INIT;
    merge.op = FA_MERGE;
    merge.dtype = FA_F32;
    merge.d = D;
    merge.b = B;
    merge.hq = merge.hkv = H;
    merge.sq = N;
    merge.parts = 2;
    merge.part.ptr = device(ctx, f, sizeof f);
    merge.part_lse = device(ctx, l, sizeof l);
    merge.o.ptr = device(ctx, NULL, sizeof got);
    merge.lse = device(ctx, NULL, sizeof l[0]);
    launch(ctx, &merge);
    back(ctx, got, merge.o.ptr, sizeof got);
    compare("merged O", got, o, COUNT, 1e-4);
    back(ctx, got, merge.lse, sizeof l[0]);
    compare("merged LSE", got, lse, H * N, 1e-4);

    p.dtype = FA_F32;
    p.d = D;
    p.mask = FA_MASK_CAUSAL;
    p.b = B;
    p.hq = p.hkv = H;
    p.sq = p.sk = N;
    to = p;
    to.sq = to.sk = 2 * N;
    check("fa_prepare_range", fa_prepare_range(ctx, &p, &to, &kernels));
    if (kernels < 1)
        fail("fa_prepare_range: %d kernels", kernels);
    tune.limit = 1;
    tune.progress = stop;
    tune.user = &words;
    fa_status st = fa_tune(ctx, &p, &tune);
    if (st != FA_NO_KERNEL) /* which is right where the one candidate is no good guess */
        check("fa_tune", st);
    if (!words)
        fail("fa_tune said nothing");
    p.d = -1;
    if (fa_prepare(ctx, &p) != FA_INVALID || !strstr(fa_last_error(), "d is -1") || strcmp(fa_status_name(FA_INVALID), "FA_INVALID"))
        fail("d = -1: %s", fa_last_error());
    fa_destroy(ctx);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const fa_bundle *bundle = &attention;
    if (fa_version() < FA_VERSION_MAJOR * 10000 + FA_VERSION_MINOR * 100 + FA_VERSION_PATCH)
        fail("the library is of version %u, older than this program", fa_version());
    if (!strcmp(how, "bytes"))
        check("fa_bundle_open", fa_bundle_open(&bundle, attention.word, attention.bytes));
    if (!strcmp(how, "compile") && argc == 3)
        compiled(argv[2]);
    else if (!strcmp(how, "record") && argc == 3)
        recorded(argv[2]);
    else if (!strcmp(how, "bundle") || !strcmp(how, "bytes"))
        bundled(bundle);
    else
        fail("program bundle|bytes, or record|compile CACHE");
    return warnings != 0;
}
