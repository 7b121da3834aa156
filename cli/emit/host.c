/* host: a launch recorded, and written as CUDA C++. */
#include "host.h"
#include "cli/options/usual_shape.h"
#include "cli/session/no_launch.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "sim/sim.h"
#include "verify/operands/tensors.h"
#include <stdio.h>
#include <string.h>

#define LAUNCHES 16
#define MAPS 8
#define PARAMS 512 /* bytes of a struct of parameters */

typedef struct map {
    CUtensorMap made; /* by which a launch names it */
    CUtensorMapDataType type;
    unsigned rank;
    CUdeviceptr at;
    cuuint64_t extent[5], stride[5];
    cuuint32_t box[5], step[5];
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
    CUtensorMapInterleave interleave;
} map;

typedef struct launch {
    int step; /* of the source */
    unsigned grid[3], block[3], smem, cluster;
    bool early;
    unsigned char params[PARAMS];
    int maps, map[MAPS]; /* behind the parameters */
} launch;

/* The recorder: a driver's functions have no user pointer. One thread at a time. */
static struct {
    const cu_driver *below;
    size_t params; /* bytes of the struct */
    const fa_source *source;
    CUfunction kernel[FA_SOURCE_STEPS]; /* of each step, in the order in which they are launched first: that of the steps */
    int kernels;
    launch l[LAUNCHES];
    int n, lost;
    map m[MAPS];
    int maps;
} seen;

static void keep(CUfunction f, const unsigned grid[3], const unsigned block[3], unsigned smem, void **args)
{
    if (seen.n == LAUNCHES) {
        seen.lost++;
        return;
    }
    int step = 0;
    while (step < seen.kernels && seen.kernel[step] != f)
        step++;
    if (step == seen.kernels && step < seen.source->steps)
        seen.kernel[seen.kernels++] = f;
    if (step == seen.kernels) {
        seen.lost++;
        return;
    }
    launch *l = &seen.l[seen.n++];
    *l = (launch){ .step = step, .smem = smem, .cluster = 1 };
    memcpy(l->grid, grid, sizeof l->grid);
    memcpy(l->block, block, sizeof l->block);
    memcpy(l->params, args[0], seen.params);
    for (int i = 0; i < seen.source->step[step].n_maps && i < MAPS; i++) /* in the order of the arguments */
        for (int k = 0; k < seen.maps; k++)
            if (!memcmp(args[1 + i], &seen.m[k].made, sizeof(CUtensorMap))) {
                l->map[l->maps++] = k;
                break;
            }
    seen.lost += l->maps != seen.source->step[step].n_maps;
}

static CUresult CUDAAPI kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                               CUstream stream, void **args, void **extra)
{
    (void)stream, (void)extra;
    keep(f, (unsigned[]){ gx, gy, gz }, (unsigned[]){ bx, by, bz }, smem, args);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI kernel_ex(const CUlaunchConfig *c, CUfunction f, void **args, void **extra)
{
    (void)extra;
    keep(f, (unsigned[]){ c->gridDimX, c->gridDimY, c->gridDimZ }, (unsigned[]){ c->blockDimX, c->blockDimY, c->blockDimZ },
         c->sharedMemBytes, args);
    for (unsigned i = 0; i < c->numAttrs && seen.n && !seen.lost; i++) {
        launch *l = &seen.l[seen.n - 1];
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            l->cluster = c->attrs[i].value.clusterDim.x;
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            l->early = c->attrs[i].value.programmaticStreamSerializationAllowed;
    }
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI encode(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *at, const cuuint64_t *extent,
                               const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave,
                               CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    CUresult r = seen.below->cuTensorMapEncodeTiled(out, type, rank, at, extent, stride, box, step, interleave, swizzle, promotion, fill);
    if (r != CUDA_SUCCESS || seen.maps == MAPS) {
        seen.lost += seen.maps == MAPS;
        return r;
    }
    map *m = &seen.m[seen.maps++];
    *m = (map){ .made = *out,
                .type = type,
                .rank = rank,
                .at = (CUdeviceptr)(uintptr_t)at,
                .swizzle = swizzle,
                .promotion = promotion,
                .fill = fill,
                .interleave = interleave };
    memcpy(m->extent, extent, rank * sizeof *extent);
    memcpy(m->stride, stride, (rank - 1) * sizeof *stride);
    memcpy(m->box, box, rank * sizeof *box);
    memcpy(m->step, step, rank * sizeof *step);
    return r;
}

/* A field of the struct Params in the text: where it lies, and how wide it is. */
typedef struct field {
    char name[32];
    bool pointer, real, wide;
    size_t at;
} field;
#define FIELDS 64

static int fields_of(const char *text, field f[FIELDS])
{
    const char *s = strstr(text, "struct Params {");
    size_t at = 0;
    int n = 0;
    for (s = s ? strchr(s, '\n') : NULL; s && n < FIELDS && strncmp(s, "\n};", 3); s = strchr(s + 1, '\n')) {
        const char *end = strchr(s + 1, ';'), *line = strchr(s + 1, '\n'), *name = end;
        if (!end || !line || end > line)
            continue;
        while (name > s && (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z') || (name[-1] >= 'A' && name[-1] <= 'Z') ||
                            (name[-1] >= '0' && name[-1] <= '9')))
            name--;
        field *k = &f[n++];
        int type = (int)(name - s);
        char word[64];
        snprintf(word, sizeof word, "%.*s", type < 60 ? type : 60, s);
        snprintf(k->name, sizeof k->name, "%.*s", (int)(end - name), name);
        k->pointer = strchr(word, '*') != NULL;
        k->wide = k->pointer || strstr(word, "long long") || strstr(word, "u64");
        k->real = !k->pointer && strstr(word, "float");
        at = k->wide ? (at + 7) & ~(size_t)7 : at;
        k->at = at;
        at += k->wide ? 8 : 4;
    }
    return n;
}

/* The device memory that a pointer names: a tensor, the workspace; else words that the driver's context holds, all 0. */
typedef struct memory {
    const fa_tensors *t;
    CUdeviceptr own; /* the first of such words */
} memory;

static void print_address(fa_text *out, memory *m, CUdeviceptr at)
{
    const fa_tensors *t = m->t;
    for (int i = 0; i < t->op->n; i++)
        if (t->at[i] && at >= t->at[i] && at < t->at[i] + t->count[i] * (size_t)fa_operand_bytes(&t->op->operand[i], &t->problem)) {
            fa_text_fmt(out, at == t->at[i] ? "device_%s" : "device_%s + %llu", t->op->operand[i].name,
                        (unsigned long long)(at - t->at[i]));
            return;
        }
    if (t->scratch.size && at >= t->scratch.at && at < t->scratch.at + t->scratch.size) {
        fa_text_fmt(out, "workspace + %llu", (unsigned long long)(at - t->scratch.at));
        return;
    }
    m->own = m->own ? m->own : at;
    fa_text_fmt(out, "words + %lld", (long long)(at - m->own));
}

static void print_params(fa_text *out, const field *f, int n, memory *m, const launch *l, const launch *before)
{
    for (int i = 0; i < n; i++) {
        const unsigned char *v = l->params + f[i].at;
        uint64_t wide = 0;
        uint32_t word = 0;
        float real;
        memcpy(&wide, v, f[i].wide ? 8 : 4);
        memcpy(&word, v, 4);
        memcpy(&real, v, 4);
        if ((before && !memcmp(v, before->params + f[i].at, f[i].wide ? 8 : 4)) || (!before && !wide)) /* as it was; zeros at first */
            continue;
        fa_text_fmt(out, "  p.%s = ", f[i].name);
        if (f[i].pointer && wide) {
            fa_text_str(out, "(decltype(p.");
            fa_text_fmt(out, "%s))(", f[i].name);
            print_address(out, m, wide);
            fa_text_str(out, ");\n");
        } else if (f[i].pointer)
            fa_text_str(out, "nullptr;\n");
        else if (f[i].real)
            fa_text_fmt(out, "%.9gf;\n", (double)real); /* 9 digits are the very number */
        else
            fa_text_fmt(out, "%lld;\n", f[i].wide ? (long long)wide : (long long)(int32_t)word);
    }
}

static void print_list(fa_text *out, const char *type, const char *name, unsigned k, unsigned n, const cuuint64_t *wide,
                       const cuuint32_t *narrow)
{
    fa_text_fmt(out, "  const %s %s_%u[] = {", type, name, k);
    for (unsigned i = 0; i < n; i++)
        fa_text_fmt(out, "%s%llu", i ? ", " : " ", wide ? (unsigned long long)wide[i] : (unsigned long long)narrow[i]);
    fa_text_str(out, " };\n");
}

static void print_maps(fa_text *out, memory *m)
{
    for (unsigned k = 0; k < (unsigned)seen.maps; k++) {
        const map *t = &seen.m[k];
        print_list(out, "cuuint64_t", "extent", k, t->rank, t->extent, NULL);
        print_list(out, "cuuint64_t", "stride", k, t->rank - 1, t->stride, NULL);
        print_list(out, "cuuint32_t", "box", k, t->rank, NULL, t->box);
        print_list(out, "cuuint32_t", "step", k, t->rank, NULL, t->step);
        fa_text_fmt(out, "  CUtensorMap map_%u;\n  if (encode(&map_%u, (CUtensorMapDataType)%d, %u, (void *)(", k, k, (int)t->type,
                    t->rank);
        print_address(out, m, t->at);
        fa_text_fmt(out,
                    "), extent_%u, stride_%u, box_%u, step_%u, (CUtensorMapInterleave)%d,\n             (CUtensorMapSwizzle)%d, "
                    "(CUtensorMapL2promotion)%d, (CUtensorMapFloatOOBfill)%d) != CUDA_SUCCESS)\n    fail(\"tensor map %u\");\n",
                    k, k, k, k, (int)t->interleave, (int)t->swizzle, (int)t->promotion, (int)t->fill, k);
    }
}

static void print_launch(fa_text *out, const launch *l, const char *entry)
{
    fa_text_fmt(out, "  {\n    const void *kernel = (const void *)%s;\n    void *arguments[] = { &p", entry);
    for (int i = 0; i < l->maps; i++)
        fa_text_fmt(out, ", &map_%d", l->map[i]);
    fa_text_fmt(out, " };\n    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, %u));\n", l->smem);
    fa_text_fmt(out,
                "    cudaLaunchAttribute attribute[2];\n    cudaLaunchConfig_t c = {};\n    c.gridDim = dim3(%u, %u, %u), c.blockDim = "
                "dim3(%u, %u, "
                "%u), c.dynamicSmemBytes = %u, c.attrs = attribute;\n",
                l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->smem);
    if (l->cluster > 1)
        fa_text_fmt(out,
                    "    attribute[c.numAttrs].id = cudaLaunchAttributeClusterDimension, attribute[c.numAttrs].val.clusterDim.x = %u;\n"
                    "    attribute[c.numAttrs].val.clusterDim.y = attribute[c.numAttrs].val.clusterDim.z = 1, c.numAttrs++;\n",
                    l->cluster);
    if (l->early)
        fa_text_str(out, "    attribute[c.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;\n"
                         "    attribute[c.numAttrs].val.programmaticStreamSerializationAllowed = 1, c.numAttrs++;\n");
    fa_text_str(out, "    check(cudaLaunchKernelExC(&c, kernel, arguments));\n  }\n");
}

static const char head[] =
    "\n// ---- the host: one problem, launched as fagen launches it, and checked ----\n"
    "//   nvcc -std=c++17 -gencode arch=compute_%s,code=sm_%s -o kernel FILE.cu && ./kernel\n"
    "#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <vector>\n%s"
    "namespace host {\n\n"
    "static void fail(const char *what) {\n  std::fprintf(stderr, \"%%s failed\\n\", what);\n  std::exit(2);\n}\n\n"
    "static void check(cudaError_t e) {\n  if (e != cudaSuccess) fail(cudaGetErrorString(e));\n}\n\n"
    "static unsigned short to_half(float x) {  // of numbers that fp16 has\n"
    "  unsigned u;\n  std::memcpy(&u, &x, 4);\n"
    "  return (unsigned short)(u << 1 ? (u >> 16 & 0x8000) | (((u >> 23 & 255) - 112) << 10) | (u >> 13 & 1023) : u >> 16);\n}\n\n"
    "static float of_half(unsigned short h) {\n  const int e = h >> 10 & 31;\n"
    "  const float m = e ? std::ldexp(1024.f + (h & 1023), e - 25) : std::ldexp((float)(h & 1023), -24);\n"
    "  return h >> 15 ? -m : m;\n}\n\n"
    "static void put(void *to, size_t i, float x, int bytes, bool half) {\n  unsigned u;\n  std::memcpy(&u, &x, 4);\n"
    "  if (bytes == 4) ((float *)to)[i] = x;\n  else ((unsigned short *)to)[i] = half ? to_half(x) : (unsigned short)(u >> 16);\n}\n\n"
    "static float get(const void *from, size_t i, int bytes, bool half) {\n"
    "  if (bytes == 4) return ((const float *)from)[i];\n  const unsigned short h = ((const unsigned short *)from)[i];\n"
    "  const unsigned u = (unsigned)h << 16;\n  float x;\n  std::memcpy(&x, &u, 4);\n  return half ? of_half(h) : x;\n}\n\n"
    "// Multiples of 1/64 below 2, which every type has.\n"
    "static float value(size_t i, unsigned seed) { return (float)((int)((i * 2654435761u + seed * 40503u) >> 7 & 127) - 63) / 64; }\n\n";

static const char tail[] =
    "  check(cudaDeviceSynchronize());\n"
    "  check(cudaMemcpy(o.data(), device_o, o.size(), cudaMemcpyDeviceToHost));\n"
    "  double most = 0;\n"
    "  for (int b = 0; b < BATCH; b++)\n"
    "    for (int h = 0; h < HEADS; h += HEADS > 1 ? HEADS - 1 : 1)  // the first head and the last\n"
    "      for (int i = 0; i < ROWS; i += ROWS > 64 ? 7 : 1) {\n"
    "        const size_t kv = h / (HEADS / KV_HEADS);\n"
    "        std::vector<double> s(KEYS);\n"
    "        double top = -INFINITY, sum = 0;\n"
    "        for (int j = 0; j < KEYS; j++) {\n"
    "          const long long apart = (long long)j - (i + KEYS - ROWS);\n"
    "          const bool visible = (LEFT < 0 || apart >= -LEFT) && (RIGHT < 0 || apart <= RIGHT);\n"
    "          double x = 0;\n"
    "          for (int d = 0; visible && d < D; d++)\n"
    "            x += (double)get(q.data(), (((size_t)b * ROWS + i) * HEADS + h) * D + d, IN, HALF) *\n"
    "                 get(k.data(), (((size_t)b * KEYS + j) * KV_HEADS + kv) * D + d, IN, HALF);\n"
    "          s[j] = visible ? x / std::sqrt((double)D) : -INFINITY;\n"
    "          top = std::fmax(top, s[j]);\n"
    "        }\n"
    "        for (int j = 0; j < KEYS; j++) sum += s[j] = top == -INFINITY ? 0 : std::exp(s[j] - top);\n"
    "        for (int d = 0; d < DV; d++) {\n"
    "          double x = 0;\n"
    "          for (int j = 0; j < KEYS; j++) x += s[j] * get(v.data(), (((size_t)b * KEYS + j) * KV_HEADS + kv) * DV + d, IN, HALF);\n"
    "          const double is = get(o.data(), (((size_t)b * ROWS + i) * HEADS + h) * DV + d, OUT, HALF);\n"
    "          const double off = std::fabs(is - (sum > 0 ? x / sum : 0));\n"
    "          most = off == off ? std::fmax(most, off) : INFINITY;\n"
    "        }\n"
    "      }\n"
    "  const double allowed = IN == 2 ? 0.02 : 0.004;\n"
    "  std::printf(\"%s: max error %.3g, allowed %.3g\\n\", most <= allowed ? \"ok\" : \"WRONG\", most, allowed);\n"
    "  return most <= allowed ? 0 : 1;\n"
    "}\n\n}  // namespace host\n\nint main() { return host::run(); }\n";

static void print_all(fa_text *out, const fa_arch *arch, const fa_tensors *t, const fa_source *s, const field *f, int n)
{
    const fa_problem *p = &t->problem;
    const fa_args *a = &t->args;
    memory m = { .t = t };
    bool window = p->mask == FA_MASK_WINDOW;
    fa_text body = { 0 };
    const char *number = arch->name + strlen("sm_");
    fa_text_fmt(out, head, number, number, seen.maps ? "#include <cuda.h>  // types alone: nothing is linked\n" : "");
    fa_text_fmt(
        out,
        "enum { BATCH = %d, HEADS = %d, KV_HEADS = %d, ROWS = %d, KEYS = %d, LEFT = %d, RIGHT = %d, IN = %d, OUT = %d, HALF = %d };\n\n",
        p->b, p->hq, p->hkv, p->sq, p->sk, window ? a->window_left : -1,
        window                      ? a->window_right
        : p->mask == FA_MASK_CAUSAL ? 0
                                    : -1,
        fa_dtype_bytes(p->dtype), fa_dtype_bytes(p->o_dtype), p->dtype == FA_F16);
    fa_text_str(out, "static int run() {\n");
    for (int i = 0; i < t->op->n; i++) {
        const char *name = t->op->operand[i].name;
        unsigned long long bytes = (unsigned long long)t->count[i] * (unsigned)fa_operand_bytes(&t->op->operand[i], p);
        if (!t->at[i])
            continue;
        fa_text_fmt(out, "  std::vector<char> %s(%llu);\n  char *device_%s;\n  check(cudaMalloc(&device_%s, %s.size()));\n", name, bytes,
                    name, name, name);
        if (!t->op->operand[i].output)
            fa_text_fmt(out,
                        "  for (size_t i = 0; i < %s.size() / IN; i++) put(%s.data(), i, value(i, %d), IN, HALF);\n"
                        "  check(cudaMemcpy(device_%s, %s.data(), %s.size(), cudaMemcpyHostToDevice));\n",
                        name, name, i + 1, name, name, name);
        else
            fa_text_fmt(out, "  check(cudaMemset(device_%s, 255, %s.size()));\n", name, name);
    }
    fa_text_fmt(out,
                "  char *workspace, *words;  // of kernels that need memory of their own; counters in it are 0 between launches\n"
                "  check(cudaMalloc(&workspace, %llu));\n  check(cudaMemset(workspace, 0, %llu));\n"
                "  check(cudaMalloc(&words, 65536));\n  check(cudaMemset(words, 0, 65536));\n",
                (unsigned long long)(t->scratch.size ? t->scratch.size : 256),
                (unsigned long long)(t->scratch.size ? t->scratch.size : 256));
    if (seen.maps) {
        fa_text_str(
            out, "  void *found = nullptr;\n  cudaDriverEntryPointQueryResult how;\n#if CUDART_VERSION >= 12050\n"
                 "  check(cudaGetDriverEntryPointByVersion(\"cuTensorMapEncodeTiled\", &found, 12000, cudaEnableDefault, &how));\n#else\n"
                 "  check(cudaGetDriverEntryPoint(\"cuTensorMapEncodeTiled\", &found, cudaEnableDefault, &how));\n#endif\n"
                 "  const auto encode = (decltype(&cuTensorMapEncodeTiled))found;\n");
        print_maps(out, &m);
    }
    fa_text_str(out, "  Params p = {};\n");
    for (int i = 0; i < seen.n; i++) {
        print_params(&body, f, n, &m, &seen.l[i], i ? &seen.l[i - 1] : NULL);
        print_launch(&body, &seen.l[i], s->step[seen.l[i].step].entry);
    }
    fa_text_add(out, fa_text_cstr(&body), body.n);
    fa_text_free(&body);
    fa_text_str(out, tail);
}

/* Small where nothing is said: the check is the CPU's. */
static fa_problem shape_of(const fa_problem *in)
{
    fa_problem p = *in;
    cli_shape_of_simulator(&p);
    return p;
}

fa_status emit_host(fa_text *out, const fa_arch *arch, int32_t sram, const fa_problem *in, const fa_config *config, const fa_source *s,
                    const cli_reach *window)
{
    fa_problem p = shape_of(in);
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx = NULL;
    fa_entered entered;
    fa_tensors t = { .ctx = NULL };
    const fa_plan *plan;
    field f[FIELDS];
    int n = fields_of(s->text, f);
    const cu_driver *sim = sim_open(arch->name);
    int32_t beside = p.features & ~FA_FEATURE_NO_WORKSPACE;
    char names[FA_FEATURES_TEXT];
    fa_problem_field_text(names, sizeof names, &fa_problem_fields[FA_FIELD_features], beside);
    if (p.op != FA_FORWARD || beside)
        return fa_fail(FA_INVALID, "--host is for dense problems of the forward, without lengths or a score program; given: op %s%s%s",
                       fa_op_name(p.op), beside ? ", features " : "", beside ? names : "");
    if (!sim || !n || n == FIELDS || f[n - 1].at + 8 > PARAMS)
        return fa_fail(FA_INTERNAL, "--host: the kernel's parameters are not as they are written everywhere");
    cu_driver recorder = cli_no_launch(sim);
    recorder.cuLaunchKernel = kernel;
    recorder.cuLaunchKernelEx = kernel_ex;
    recorder.cuTensorMapEncodeTiled = encode;
    memset(&seen, 0, sizeof seen);
    seen.below = sim;
    seen.params = f[n - 1].at + (f[n - 1].wide ? 8 : 4);
    seen.source = s;
    o.sram_budget = sram;
    o.check_device_data = -1;
    fa_status st = fa_create_on(&ctx, &o, &recorder, 0);
    if (st == FA_OK)
        st = fa_context_enter(ctx, &entered);
    bool in_context = st == FA_OK;
    if (st == FA_OK)
        st = fa_plan_make(ctx, &p, config, "emitted", &plan);
    if (st == FA_OK)
        st = fa_tensors_open(&t, ctx, &p);
    if (st == FA_OK && window->given) {
        t.args.window_left = window->left;
        t.args.window_right = window->right;
    }
    if (st == FA_OK)
        st = fa_tensors_launch(&t, plan);
    if (st == FA_OK && (!seen.n || seen.lost))
        st = fa_fail(FA_INVALID, "--host: the launch has %d kernels and %d tensor maps; accepted: at most %d and %d", seen.n + seen.lost,
                     seen.maps, LAUNCHES, MAPS);
    if (st == FA_OK)
        print_all(out, arch, &t, s, f, n);
    fa_tensors_close(&t);
    if (in_context)
        fa_context_leave(ctx, &entered);
    fa_destroy(ctx);
    return st == FA_OK && out->oom ? fa_fail(FA_NOMEM, "no memory for the text") : st;
}
