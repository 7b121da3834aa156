/* sample: random tensors in .npy files, to try attend with. */
#include "cli/files/npy.h"
#include "cli/options/problem_options.h"
#include "cli/options/usual_shape.h"
#include "commands.h"
#include "gen/batch_kind.h"
#include "gen/error.h"
#include "gen/operation.h"
#include "gen/problem.h"
#include "runtime/args/lengths.h"
#include "verify/operands/number.h"
#include "verify/operands/ragged.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct sample_args {
    cli_common common;
    cli_problem_options problem_options;
    uint64_t seed;
    const char *directory;
    cli_list seqlens;
    int32_t lengths;
    bool packed;
} sample_args;

#define FIELD(f) .at = offsetof(sample_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "seed", .letter = 's', .type = &cli_seed, FIELD(seed), .value = "N", .help = "the numbers follow from it", .preset = "1" },
    { .name = "directory", .letter = 'C', .type = &cli_text, FIELD(directory), .value = "DIR",
      .help = "where the files are written; it is made where it is not there, the folder that holds it is not", .preset = "." },
    { .name = NULL },
};
static const cli_option lengths[] = {
    { .name = "seqlens", .type = &cli_ints, FIELD(seqlens), .value = "LIST",
      .help = "keys of each sequence, as 7,40,0; brings the feature lengths, gives the batch, and --sk where that is not given",
      .min = 0, .max = FA_MAX_LENGTH },
    CLI_LENGTHS_ROW(offsetof(sample_args, lengths)),
    { .name = "packed", FIELD(packed),
      .help = "rows of sequences one after the other, with cu_seqlens; --sq queries each, without it as many as keys" },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { CLI_PROBLEM_OPTIONS(sample_args),
                                    { "Sequences of their own lengths", lengths, 0 },
                                    { "The files", options, 0 },
                                    CLI_COMMON,
                                    { NULL, NULL, 0 } };

/* What is written: a problem, and its integers in host memory. */
typedef struct sample {
    fa_problem p;
    fa_args args;   /* the integers, and the sizes that follow from them; a problem without lengths has none */
    int32_t *q, *k; /* [b] rows of each sequence */
} sample;

static void close_sample(sample *s)
{
    free((void *)s->args.cu_seqlens_q);
    free((void *)s->args.cu_seqlens_k);
    free((void *)s->args.seqlens_k);
    free((void *)s->args.page_table);
    free(s->q);
    free(s->k);
}

static int32_t *room(int64_t n)
{
    return calloc((size_t)n + 1, sizeof(int32_t));
}

/* First rows of sequences that lie one after the other, and the end of the last; NULL: no memory, or more rows than a launch can have. */
static int32_t *first_rows(const int32_t *length, int32_t b, int32_t *total)
{
    int32_t *cu = room(b + (int64_t)1);
    int64_t at = 0;
    for (int32_t i = 0; cu && i <= b; i++) {
        cu[i] = (int32_t)at;
        at += i < b ? length[i] : 0;
        if (at > FA_MAX_LENGTH) {
            free(cu);
            return NULL;
        }
    }
    *total = at ? (int32_t)at : 1; /* a file has a row at least */
    return cu;
}

/* Every page of every sequence, in shuffled order; entries of no page are -1. */
static fa_status lay_pages(sample *s, int32_t page_size, fa_random *r)
{
    fa_args *a = &s->args;
    int64_t wide = ((int64_t)s->p.sk + page_size - 1) / page_size, pages = 0, next = 0;
    for (int32_t i = 0; i < s->p.b; i++)
        pages += ((int64_t)a->seqlens_k[i] + page_size - 1) / page_size;
    int32_t *table = pages <= FA_MAX_LENGTH ? room(s->p.b * wide) : NULL, *order = table ? room(pages) : NULL;
    a->page_table = table;
    if (!table || !order)
        return fa_fail(FA_NOMEM, "no memory for a page table of %d x %lld entries", s->p.b, (long long)wide);
    for (int64_t i = 0; i < pages; i++) {
        int64_t at = fa_random_below(r, (int32_t)i + 1);
        order[i] = order[at];
        order[at] = (int32_t)i;
    }
    for (int32_t i = 0; i < s->p.b; i++)
        for (int64_t k = 0; k < wide; k++)
            table[i * wide + k] = k * page_size < a->seqlens_k[i] ? order[next++] : -1;
    free(order);
    a->page_size = page_size;
    a->pages = pages ? (int32_t)pages : 1;
    a->page_table_stride = wide;
    return FA_OK;
}

/* Keys of each sequence: as the list has them, or drawn. */
static fa_status take_lengths(sample *s, const sample_args *a)
{
    fa_args shape = fa_operation_args(&s->p);
    fa_ragged_how how = fa_ragged_typical(&s->p, a->seed);
    fa_ragged drawn = { .args = { .size = 0 } };
    fa_status st = FA_OK;
    s->k = room(s->p.b);
    s->q = room(s->p.b);
    if (!s->k || !s->q)
        return fa_fail(FA_NOMEM, "no memory for %d lengths", s->p.b);
    how.forms = FA_FORM_SEQLENS_K;
    how.batch = FA_BATCH_ANY;
    how.k = a->lengths ? a->lengths - 1 : how.k;
    if (!a->seqlens.n)
        st = fa_ragged_draw(&drawn, &shape, &how);
    for (int32_t i = 0; i < s->p.b && st == FA_OK; i++) {
        s->k[i] = a->seqlens.n ? a->seqlens.v[i] : drawn.args.seqlens_k[i];
        s->q[i] = a->packed && !a->problem_options.sq ? s->k[i] : s->p.sq;
    }
    fa_ragged_close(&drawn);
    return st;
}

static fa_status lay_sequences(sample *s, const sample_args *a, int32_t page_size, fa_random *r)
{
    fa_args *to = &s->args;
    fa_status st = take_lengths(s, a);
    if (st != FA_OK)
        return st;
    if (a->packed && !(to->cu_seqlens_q = first_rows(s->q, s->p.b, &to->total_q)))
        return fa_fail(FA_INVALID, "--packed: more than %d rows of queries, or no memory for %d sequences", FA_MAX_LENGTH, s->p.b);
    if (a->packed && !page_size) {
        to->cu_seqlens_k = first_rows(s->k, s->p.b, &to->total_k);
        return to->cu_seqlens_k ? FA_OK
                                : fa_fail(FA_INVALID, "--packed: more than %d keys, or no memory for %d sequences", FA_MAX_LENGTH, s->p.b);
    }
    to->seqlens_k = s->k;
    s->k = NULL;
    return page_size ? lay_pages(s, page_size, r) : FA_OK;
}

/* The problem, its shape filled; *page_size: tokens of a page, 0 = none. */
static fa_status read_problem(const sample_args *a, fa_problem *p, int32_t *page_size)
{
    cli_problem_options o = a->problem_options;
    if (a->seqlens.n || a->lengths || a->packed)
        o.features |= FA_FEATURE_LENGTHS;
    if (a->seqlens.n && a->lengths)
        return fa_fail(FA_INVALID, "--seqlens and --lengths are two ways to say one thing; accepted: one of them");
    if (a->seqlens.n && o.b && o.b != a->seqlens.n)
        return fa_fail(FA_INVALID, "--batch is %d; accepted with this --seqlens: %d", o.b, a->seqlens.n);
    o.b = a->seqlens.n ? a->seqlens.n : o.b;
    int32_t longest = 1;
    for (int32_t i = 0; i < a->seqlens.n; i++)
        longest = a->seqlens.v[i] > longest ? a->seqlens.v[i] : longest;
    if (o.sk && longest > o.sk)
        return fa_fail(FA_INVALID, "--seqlens has %d; accepted with --sk %d: 0 to that", longest, o.sk);
    o.sk = a->seqlens.n && !o.sk && !o.n ? longest : o.sk;
    fa_status st = cli_problem_options_read(&o, p);
    if (st != FA_OK)
        return st;
    *page_size = a->problem_options.page ? a->problem_options.page : p->page;
    if (p->features & FA_FEATURE_LENGTHS) { /* a token each of caches */
        p->sk = p->sk ? p->sk : cli_lists_of_simulator.n.v[0];
        p->sq = p->sq ? p->sq : 1;
    }
    cli_shape_of_simulator(p);
    return FA_OK;
}

/* Random numbers, or the integers at `given`. */
static fa_status write_one(const char *path, int dtype, int rank, const int64_t *dim, const void *given, fa_drawn drawn, fa_random *r)
{
    size_t n = 1, bytes = (size_t)fa_dtype_bytes(dtype);
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(n, (size_t)dim[i], &n))
            return fa_fail(FA_NOMEM, "%s: more elements than the address space has", path);
    if (given)
        return cli_npy_write(path, CLI_NPY_I32, rank, dim, given);
    uint8_t *data = n < SIZE_MAX / bytes ? malloc(n * bytes) : NULL;
    if (!data)
        return fa_fail(FA_NOMEM, "%s: no memory for %zu elements", path, n);
    for (size_t i = 0; i < n; i++)
        fa_number_store(data + i * bytes, drawn == FA_DRAWN_FACTOR ? fa_random_factor(fa_random_normal(r)) : fa_random_normal(r), dtype);
    fa_status st = cli_npy_write(path, dtype, rank, dim, data);
    free(data);
    return st;
}

static void tell(cli *c, const char *path, int rank, const int64_t *dim, const char *type)
{
    char shape[120] = "";
    for (int i = 0, at = 0; i < rank; i++)
        at += snprintf(shape + at, sizeof shape - (size_t)at, "%s%lld", i ? ", " : "", (long long)dim[i]);
    cli_note(c, "wrote %s [%s] %s", path, shape, type);
}

static int run(cli *c, const void *args, int n, char **words)
{
    const sample_args *a = args;
    sample s = { .q = NULL };
    fa_random r = { fa_random_mix(a->seed) };
    json_t *files = json_array();
    int32_t page_size = 0;
    (void)n, (void)words;
    fa_status st = read_problem(a, &s.p, &page_size);
    if (st == FA_OK && s.p.features & FA_FEATURE_LENGTHS)
        st = lay_sequences(&s, a, page_size, &r);
    if (st == FA_OK && mkdir(a->directory, 0777) != 0 && errno != EEXIST)
        st = fa_fail(FA_IO,
                     "--directory is \"%.500s\", which cannot be made: %s; accepted: a folder, or a new one in a folder that is there",
                     a->directory, strerror(errno));
    int dtype = s.p.dtype == FA_F16 ? FA_F16 : FA_F32; /* the format has no bf16: fp32 files, rounded by attend --dtype bf16 */
    const fa_operation *op = fa_operation_find(s.p.op);
    fa_sizes sizes = fa_sizes_of(&s.p, 0);
    s.args.sk = s.p.sk;
    fa_lengths_sizes(&sizes, &s.args);
    for (int i = 0; st == FA_OK && i < op->n; i++) {
        const fa_operand *o = &op->operand[i];
        const void *given = o->drawn == FA_DRAWN_SEQUENCES ? fa_operand_address(o, &s.args) : NULL;
        int kind = fa_operand_dtype(o, &s.p) == FA_F16 ? FA_F16 : FA_F32;
        char path[4096];
        fa_dims d;
        fa_operand_dims(&d, o, &sizes);
        if (o->output || !(fa_operand_dtype(o, &s.p) ? fa_operand_present(o, &s.p) : given != NULL))
            continue;
        int skip = o->strided && (fa_operand_has_keys(o) ? s.args.cu_seqlens_k : s.args.cu_seqlens_q); /* no dimension of the batch */
        if (snprintf(path, sizeof path, "%s/%s.npy", a->directory, o->name) >= (int)sizeof path)
            st = fa_fail(FA_IO, "--directory: the name is too long");
        if (st == FA_OK)
            st = write_one(path, kind, o->rank - skip, d.of + skip, given, o->drawn, &r);
        if (st == FA_OK) {
            json_array_append_new(files, json_string(path));
            tell(c, path, o->rank - skip, d.of + skip, given ? "int32" : fa_dtype_name(kind));
        }
    }
    close_sample(&s);
    if (st == FA_OK && c->json)
        return cli_answer(c, json_pack("{s:o,s:s}", "files", files, "dtype", fa_dtype_name(dtype)), CLI_EXIT_OK);
    json_decref(files);
    return st == FA_OK ? CLI_EXIT_OK : cli_fail(c, st);
}

const cli_command cli_sample = {
    .name = "sample",
    .summary = "random Q, K, V in .npy files, to try attend with; lengths and page tables too",
    .usage = "[problem] [--seed N] [--directory DIR]",
    .about =
        "Writes q.npy, k.npy and v.npy with N(0, 1) numbers: fp16 with --dtype fp16, else fp32, which attend rounds to the type it is "
        "told. "
        "With lengths, seqlens_k.npy, or cu_seqlens_q.npy and cu_seqlens_k.npy are written beside them, and page_table.npy with --page: "
        "attend takes each by the option of that name.",
    .examples = "fagen sample -d 64 -n 512 --heads 4 --kv-heads 2\nfagen sample -d 128 --dtype fp16 --seed 7 --directory data\n"
                "fagen sample -d 128 --heads 8 --kv-heads 2 --sq 1 --seqlens 300,7,0,1000 --page 16",
    .groups = groups,
    .size = sizeof(sample_args),
    .run = run,
};
