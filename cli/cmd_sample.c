/* sample: random tensors in .npy files, to try attend with. */
#include "autotune/number.h"
#include "autotune/random.h"
#include "command.h"
#include "gen/error.h"
#include "gen/operation.h"
#include "gen/problem.h"
#include "npy.h"
#include "problem_options.h"
#include <stdlib.h>

typedef struct sample_args {
    cli_common common;
    cli_problem_options problem_options;
    uint64_t seed;
    const char *directory;
} sample_args;

/* clang-format off */
static const cli_option options[] = {
    { .name = "seed", .letter = 's', .type = &cli_seed, .at = offsetof(sample_args, seed), .value = "N",
      .help = "the numbers follow from it",
      .preset = "1" },
    { .name = "directory", .letter = 'C', .type = &cli_text, .at = offsetof(sample_args, directory), .value = "DIR",
      .help = "where q.npy, k.npy and v.npy are written", .preset = "." },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { CLI_PROBLEM_OPTIONS(sample_args), { "The files", options, 0 }, CLI_COMMON, { NULL, NULL, 0 } };

static fa_status write_one(const char *path, int dtype, const int64_t dim[4], fa_random *r)
{
    size_t n = 1, bytes = (size_t)fa_dtype_bytes(dtype);
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(n, (size_t)dim[i], &n))
            return fa_fail(FA_NOMEM, "%s: more elements than the address space has", path);
    uint8_t *data = n < SIZE_MAX / bytes ? malloc(n * bytes) : NULL;
    if (!data)
        return fa_fail(FA_NOMEM, "%s: no memory for %zu elements", path, n);
    for (size_t i = 0; i < n; i++)
        fa_number_store(data + i * bytes, fa_random_normal(r), dtype);
    fa_status st = cli_npy_write(path, dtype, 4, dim, data);
    free(data);
    return st;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const sample_args *a = args;
    fa_problem p;
    fa_random r = { fa_random_mix(a->seed) };
    json_t *files = json_array();
    (void)n, (void)words;
    fa_status st = cli_problem_options_read(&a->problem_options, &p);
    if (st != FA_OK) {
        json_decref(files);
        return cli_fail(c, st);
    }
    p.hq = p.hq ? p.hq : p.hkv ? p.hkv : 2;
    p.sq = p.sq ? p.sq : p.sk ? p.sk : 256;
    fa_problem_fill_shape(&p);
    int dtype = p.dtype == FA_F16 ? FA_F16 : FA_F32; /* the format has no bf16: fp32 files, rounded by attend --dtype bf16 */
    const fa_operation *op = fa_operation_find(p.op);
    fa_sizes sizes = fa_sizes_of(&p, 0);
    for (int i = 0; i < fa_operands_of(op, p.features) && st == FA_OK; i++) {
        char path[4096];
        fa_dims d;
        fa_operand_dims(&d, &op->operand[i], &sizes);
        if (op->operand[i].output)
            continue;
        if (snprintf(path, sizeof path, "%s/%s.npy", a->directory, op->operand[i].name) >= (int)sizeof path)
            st = fa_fail(FA_IO, "--directory: the name is too long");
        if (st == FA_OK)
            st = write_one(path, dtype, d.of, &r);
        if (st == FA_OK) {
            json_array_append_new(files, json_string(path));
            cli_note(c, "wrote %s [%lld, %lld, %lld, %lld] %s", path, (long long)d.of[0], (long long)d.of[1], (long long)d.of[2],
                     (long long)d.of[3], fa_dtype_name(dtype));
        }
    }
    if (st == FA_OK && c->json)
        return cli_answer(c, json_pack("{s:o,s:s}", "files", files, "dtype", fa_dtype_name(dtype)), CLI_EXIT_OK);
    json_decref(files);
    return st == FA_OK ? CLI_EXIT_OK : cli_fail(c, st);
}

const cli_command cli_sample = {
    .name = "sample",
    .summary = "random Q, K, V in .npy files, to try attend with",
    .usage = "[problem] [--seed N] [--directory DIR]",
    .about = "Writes q.npy, k.npy and v.npy with N(0, 1) numbers: fp16 with --dtype fp16, else fp32, which attend rounds to the type it is "
             "told.",
    .examples = "fagen sample -d 64 -n 512 --heads 4 --kv-heads 2\nfagen sample -d 128 --dtype fp16 --seed 7 --directory data",
    .groups = groups,
    .size = sizeof(sample_args),
    .run = run,
};
