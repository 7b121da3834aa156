/* search_toy: a family for suites of what is around a search, whose kernels take hundredths of a second to compile. Of its 24 configs four
 * break a constraint, four have no room in shared memory, four have too many registers on paper, and the third that is tried spills. */
#ifndef FA_TESTS_SEARCH_TOY_H
#define FA_TESTS_SEARCH_TOY_H
#include <stdio.h>
#include <sys/stat.h>

static const char search_toy_lua[] =
    "return { doc = 'x', tunables = { { 'br', { 16, 32, 64, 128 }, 'r' }, { 'bc', { 8, 16, 24, 32, 40, 48 }, 'c' } },\n"
    "  supports = function() return true end,\n"
    "  constraints = { { 'columns', function(p, c) return c.bc ~= 40, 'bc is 40' end } },\n"
    "  layout = function(p, c) return { bytes = c.bc == 48 and 1048576 or 64, threads = 32, regs = c.bc == 32 and 300 or 40 } end,\n"
    "  steps = function(p, c) return { { entry = 'toy', grid = ('sq/%d hq b'):format(c.br) } } end, params = 'q o',\n"
    "  work = function(p, c) return { rows = c.br, cols = c.bc } end }\n";
static const char search_toy_cu[] = "extern \"C\" __global__ void __launch_bounds__(1024, 1) toy(const float *q, float *o, int n)\n"
                                    "{\n  constexpr int N = $(c.br == 16 and c.bc == 24 and 96 or 24);\n  float x[N];\n"
                                    "#pragma unroll\n  for (int i = 0; i < N; i++) x[i] = q[i * n + $(c.br)];\n  __syncthreads();\n"
                                    "#pragma unroll\n  for (int i = 0; i < N; i++) o[i * n + $(c.bc)] = x[N - 1 - i] + x[i] * n;\n}\n";

/* Its two files, in a folder that is made; false where one cannot be. */
static inline bool search_toy_write(const char *dir)
{
    const char *const text[] = { search_toy_lua, search_toy_cu };
    bool whole = mkdir(dir, 0700) == 0;
    for (int i = 0; i < 2 && whole; i++) {
        char path[320];
        snprintf(path, sizeof path, "%s/toy.%s", dir, i ? "cu" : "lua");
        FILE *f = fopen(path, "w");
        whole = f && fputs(text[i], f) >= 0;
        whole = f && fclose(f) == 0 && whole;
    }
    return whole;
}
#endif
