/* Caches of keys on the command line: lengths, packed rows and page tables as files, problems with features in every command that takes
 * problems, the grids of decoding and of an engine's steps. */
#include "cli/files/npy.h"
#include "gen/batch_kind.h"
#include "gen/problem.h"
#include "test_cli_run.h"
#include "verify/operands/ragged.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void init(void)
{
    cli_scratch_make();
    setenv("FAGEN_CACHE_DIR", "cache", 1);
}

TestSuite(cli_decode, .init = init, .fini = cli_scratch_remove, .timeout = 600);

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SIM "--device sim:sm_80 "
#define SHAPE "-d 16 -t fp16 --heads 4 --kv-heads 2 "

static void done(const char *words)
{
    cli_result r = cli_run(words);
    cr_expect_eq(r.code, 0, "%s: %d, %s", words, r.code, r.err);
    cli_result_free(&r);
}

/* ---- files ---- */

static void write_ints(const char *name, int n, int rows, const int32_t *x, int count)
{
    const int64_t dim[2] = { n == 1 ? count : rows, n == 1 ? 0 : count / rows };
    cr_assert_eq(cli_npy_write(name, CLI_NPY_I32, n, dim, x), FA_OK, "%s", fa_last_error());
}
#define INTS(name, ...) write_ints(name, 1, 0, (const int32_t[]){ __VA_ARGS__ }, sizeof((const int32_t[]){ __VA_ARGS__ }) / 4)
#define TABLE(name, rows, ...) write_ints(name, 2, rows, (const int32_t[]){ __VA_ARGS__ }, sizeof((const int32_t[]){ __VA_ARGS__ }) / 4)

/* Blocks that walk eight heads leave parts of all of them, for which the workspace of a dense batch has room. */
Test(cli_decode, parts_of_heads_side_by_side)
{
    done("run " SIM "-d 64 -t fp16 --kv q4_0 -H 8 --kv-heads 8 --sq 1 --sk 300 --check -c decode_mma:br=8,bk=16,row_warps=1,key_warps=1,"
         "stages=3,ctas=1,kv_lanes=1,combine=last_block,sm_shares=1,min_turns=1,head_warps=8");
}

/* Where memory is fast a token's rows of eight heads are brought by boxes; elsewhere four heads' warps copy them. */
Test(cli_decode, four_bits_come_by_boxes_where_memory_is_fast)
{
    static const struct {
        const char *arch, *config;
    } rows[] = {
        { "h200", "br=4,bk=64,row_warps=1,key_warps=1,stages=2,ctas=1,kv_lanes=8,combine=last_block,sm_shares=1,min_turns=1,head_warps=8,"
                  "token_rows=1,boxes=1\n" },
        { "h100", "br=4,bk=32,row_warps=1,key_warps=2,stages=2,ctas=1,kv_lanes=1,combine=last_block,sm_shares=1,min_turns=1,head_warps=4,"
                  "token_rows=1\n" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char words[128];
        snprintf(words, sizeof words, "show -d 128 -b 64 -H 32 --kv-heads 8 --sq 1 --sk 8192 --kv q4_0 --arch %s", rows[i].arch);
        cli_result r = cli_run(words);
        cr_assert_eq(r.code, 0, "%d, %s", r.code, r.err);
        cr_expect(strstr(r.out, rows[i].config), "%s", r.out);
        cli_result_free(&r);
    }
}

/* What sample writes is what attend takes, and it is right. */
Test(cli_decode, sampled_and_attended)
{
    static const struct {
        const char *sample, *attend, *o; /* o: the shape of O */
    } rows[] = {
        { "--sq 1 --seqlens 40,7,0,33 --page 8", "--seqlens-k seqlens_k.npy --page-table page_table.npy", "4 1 4 16" },
        { "--sq 2 --batch 3 --sk 30 --lengths zipf", "--seqlens-k seqlens_k.npy", "3 2 4 16" },
        { "--seqlens 5,0,20 --packed", "--cu-seqlens-q cu_seqlens_q.npy --cu-seqlens-k cu_seqlens_k.npy --causal", "25 4 16" },
        { "--seqlens 12,9 --sq 3 --packed --page 8",
          "--cu-seqlens-q cu_seqlens_q.npy --seqlens-k seqlens_k.npy --page-table page_table.npy", "6 4 16" },
        { "--features v-in-k --dv 8 --sq 3 --sk 20", "--dv 8 --causal", "1 3 4 8" },
        { "--features v-in-k --dv 8 --sq 1 --seqlens 20,7 --page 8", "--dv 8 --seqlens-k seqlens_k.npy --page-table page_table.npy",
          "2 1 4 8" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char words[400], shape[64] = "";
        cli_npy o;
        snprintf(words, sizeof words, "sample " SHAPE "%s -q", rows[i].sample);
        remove("v.npy");
        remove("seqlens_k.npy");
        done(words);
        cr_expect_eq(!!access("v.npy", F_OK), strstr(rows[i].attend, "--dv") != NULL, "%s", words);
        cr_expect(access("k_scale.npy", F_OK), "%s", words);
        cr_expect_eq(!access("seqlens_k.npy", F_OK), strstr(rows[i].attend, "--seqlens-k") != NULL, "%s", words);
        snprintf(words, sizeof words, "attend --q q.npy --k k.npy%s -o o.npy --lse lse.npy --check -q " SIM "%s",
                 strstr(rows[i].attend, "--dv") ? "" : " --v v.npy", rows[i].attend);
        done(words);
        cr_assert_eq(cli_npy_read(&o, "o.npy"), FA_OK, "%s", fa_last_error());
        for (int k = 0; k < o.n; k++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d", k ? " " : "", (int)o.dim[k]);
        cr_expect_str_eq(shape, rows[i].o);
        cli_npy_free(&o);
    }
}

/* Pages in another order, of which one is nobody's and holds NaN, are the dense keys; int64 is taken as well as int32. */
Test(cli_decode, pages_are_the_dense_keys)
{
    enum { KEYS = 11, PAGE = 4, D = 16 };
    static const int32_t at[3] = { 2, 0, 3 }; /* where the pages lie, of four */
    const int64_t dense[4] = { 1, KEYS, 1, D }, pages[4] = { 4, PAGE, 1, D }, q[4] = { 1, 1, 2, D };
    float x[2][KEYS * D], y[4 * PAGE * D], query[2 * D];
    cli_npy a, b;
    for (int i = 0; i < 2 * D; i++)
        query[i] = sinf((float)i);
    cr_assert_eq(cli_npy_write("q.npy", FA_F32, 4, q, query), FA_OK);
    for (int t = 0; t < 2; t++) {
        const char *name = t ? "v" : "k";
        char file[16];
        for (int i = 0; i < KEYS * D; i++)
            x[t][i] = cosf((float)(i * (t + 2)));
        for (int i = 0; i < 4 * PAGE * D; i++)
            y[i] = NAN;
        for (int i = 0; i < KEYS * D; i++)
            y[at[i / D / PAGE] * PAGE * D + i % (PAGE * D)] = x[t][i];
        snprintf(file, sizeof file, "%s.npy", name);
        cr_assert_eq(cli_npy_write(file, FA_F32, 4, dense, x[t]), FA_OK);
        snprintf(file, sizeof file, "%sp.npy", name);
        cr_assert_eq(cli_npy_write(file, FA_F32, 4, pages, y), FA_OK);
    }
    static const char head[] = "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }";
    char wide[10 + sizeof head - 1 + 8] = "\x93NUMPY\x01";
    wide[8] = (char)(sizeof head - 1);
    memcpy(wide + 10, head, sizeof head - 1);
    wide[10 + sizeof head - 1] = KEYS;
    cli_scratch_write("n.npy", wide, sizeof wide);
    TABLE("table.npy", 1, 2, 0, 3, -7);
    done("attend --q q.npy --k k.npy --v v.npy -o dense.npy -t fp16 -q " SIM);
    done("attend --q q.npy --k kp.npy --v vp.npy --seqlens-k n.npy --page-table table.npy -o paged.npy -t fp16 -q " SIM);
    cr_assert(cli_npy_read(&a, "dense.npy") == FA_OK && cli_npy_read(&b, "paged.npy") == FA_OK && a.count == b.count);
    for (size_t i = 0; i < a.count; i++)
        cr_expect_float_eq(cli_npy_at(&a, i), cli_npy_at(&b, i), 2e-3, "element %zu", i);
    cli_npy_free(&a);
    cli_npy_free(&b);
}

/* Rows of no sequence are 0 and -inf in the files. */
Test(cli_decode, rows_of_no_sequence)
{
    cli_npy o, lse;
    done("sample " SHAPE "--seqlens 2,0,4 --sq 2 --packed -q"); /* six rows of queries */
    INTS("cu.npy", 1, 3, 3, 5);
    done("attend --q q.npy --k k.npy --v v.npy --cu-seqlens-q cu.npy --cu-seqlens-k cu_seqlens_k.npy -o o.npy --lse lse.npy --check "
         "-q " SIM);
    cr_assert(cli_npy_read(&o, "o.npy") == FA_OK && cli_npy_read(&lse, "lse.npy") == FA_OK);
    cr_assert(lse.n == 2 && lse.dim[0] == 4 && lse.dim[1] == 6);
    for (size_t row = 0; row < 6; row++) {
        bool used = row > 0 && row < 5;
        cr_expect_eq(cli_npy_at(&o, row * 64 + 5) != 0, used, "row %zu", row);
        cr_expect_eq(isinf(cli_npy_at(&lse, 6 + row)) != 0, !used, "row %zu", row);
    }
    cli_npy_free(&o);
    cli_npy_free(&lse);
}

#define ATTEND "attend --q q.npy --k k.npy --v v.npy -o out.npy " SIM
#define PAGED ATTEND "--page-table page_table.npy --seqlens-k "
#define PACKED "attend --q pq.npy --k pk.npy --v pv.npy -o out.npy " SIM
static const struct {
    const char *words, *says; /* parts of the message, between bars */
} wrong[] = {
    { ATTEND "--page-table page_table.npy", "--page-table|without --seqlens-k" },
    { ATTEND "--dv 8", "--dv is 8 beside --v v.npy|accepted: --dv, where V is the first columns of K, or --v" },
    { "attend --q q.npy --k k.npy --dv 17 -o out.npy --page-table page_table.npy --seqlens-k seqlens_k.npy " SIM,
      "--dv is 17|accepted with k.npy: 1 to 16" },
    { PAGED "seqlens_k.npy --cu-seqlens-k cu.npy", "--page-table and --cu-seqlens-k|one of them" },
    { PAGED "more.npy", "more.npy: element 1 is 41|0 to 40" },
    { PAGED "less.npy", "less.npy: element 2 is -1|0 to 40" },
    { PAGED "three.npy", "three.npy|3|accepted with q.npy: 4" },
    { PAGED "q.npy", "q.npy: elements are fp16|int32, int64" },
    { PAGED "page_table.npy", "page_table.npy: 2 dimensions|accepted: 1" },
    { ATTEND "--seqlens-k seqlens_k.npy --page-table far.npy", "far.npy: element [0, 4] is 12|0 to 10|40 keys in pages of 8" },
    { ATTEND "--seqlens-k seqlens_k.npy --page-table below.npy", "below.npy: element [3, 0] is -1|0 to 10" },
    { ATTEND "--seqlens-k seqlens_k.npy --page-table seqlens_k.npy", "seqlens_k.npy: 1 dimension;|pages of the longest" },
    { ATTEND "--seqlens-k seqlens_k.npy", "k.npy: batch is 11|accepted with q.npy: 4" },
    { ATTEND "--cu-seqlens-q cu.npy", "q.npy: 4 dimensions|--cu-seqlens-q|3, [rows, h, d]" },
    { ATTEND "--seqlens-q nothing.npy", "nothing.npy" },
    { PACKED "--cu-seqlens-q falls.npy --cu-seqlens-k cu.npy", "falls.npy: element 2 is 1|accepted: 2 to 6" },
    { PACKED "--cu-seqlens-q cu.npy --cu-seqlens-k beyond.npy", "beyond.npy: element 3 is 99|accepted: 4 to 6" },
    { PACKED "--cu-seqlens-q one.npy --cu-seqlens-k cu.npy", "one.npy: 1 elements|at least 2" },
    { PACKED "--cu-seqlens-q cu.npy --cu-seqlens-k cu.npy --seqlens-k wide.npy", "wide.npy: element 0 is 3|0 to 2|cu.npy" },
    { PACKED "--cu-seqlens-q cu.npy --cu-seqlens-k three.npy", "three.npy|accepted with cu.npy: 4, b + 1" },
    { "attend --q seqlens_k.npy --k k.npy --v v.npy -o out.npy", "seqlens_k.npy: 1 dimensions|[b, s, h, d]" },
    { "sample --seqlens 3,4 --batch 3", "--batch is 3|accepted with this --seqlens: 2" },
    { "sample --seqlens 3,4 --lengths full", "--seqlens and --lengths" },
    { "sample --seqlens 3,40 --sk 20", "--seqlens has 40|--sk 20" },
    { "sample --page 0", "--page|1 to" },
    { "space --features pages", "--features has pages|--page" },
    { "space --features page",
      "--features|lengths, pages, batch-invariant, lse-strides, no-workspace, deterministic, dropout, v-in-k, v-columns, "
      "score-anywhere, score-columns, joined by" },
    { "run --lengths long", "--lengths|full, uniform, zipf, log-uniform" },
    { "tune --grid llm-decode --page 32", "--grid llm-decode holds no such problem|42" },
    { "bench --grid decode", "--grid|decode|llm-decode" },
};

Test(cli_decode, what_is_wrong_with_files)
{
    done("sample " SHAPE "--sq 1 --seqlens 40,7,0,33 --page 8 -q"); /* eleven pages, five of the longest */
    INTS("more.npy", 40, 41, 0, 33);
    INTS("less.npy", 40, 7, -1, 33);
    INTS("three.npy", 1, 2, 3);
    INTS("one.npy", 1);
    TABLE("far.npy", 4, 0, 1, 2, 3, 12, 4, -1, -1, -1, -1, -1, -1, -1, -1, -1, 5, 6, 7, 8, 9);
    TABLE("below.npy", 4, 0, 1, 2, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 6, 7, 8, 9);
    INTS("cu.npy", 0, 2, 4, 6);
    INTS("falls.npy", 0, 2, 1, 6);
    INTS("beyond.npy", 0, 2, 4, 99);
    INTS("wide.npy", 3, 1, 1);
    const int64_t dim[3] = { 6, 2, 16 };
    static const float zeros[6 * 2 * 16];
    cr_assert(cli_npy_write("pq.npy", FA_F32, 3, dim, zeros) == FA_OK && cli_npy_write("pk.npy", FA_F32, 3, dim, zeros) == FA_OK &&
              cli_npy_write("pv.npy", FA_F32, 3, dim, zeros) == FA_OK);
    size_t files = cli_scratch_files();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char says[200], *rest = NULL;
        cli_result r = cli_run(wrong[i].words);
        cr_expect(r.code == 1 || strstr(wrong[i].words, "nothing.npy"), "%s: %d", wrong[i].words, r.code);
        cr_expect_neq(r.code, 0, "%s", wrong[i].words);
        snprintf(says, sizeof says, "%s", wrong[i].says);
        for (char *part = strtok_r(says, "|", &rest); part; part = strtok_r(NULL, "|", &rest))
            cr_expect(strstr(r.err, part), "%s: \"%s\" is not in \"%s\"", wrong[i].words, part, r.err);
        cli_result_free(&r);
    }
    cr_expect_eq(cli_scratch_files(), files, "something was written");
}

/* ---- problems ---- */

#define CACHE "-d 64 --sq 1 --sk 300 --batch 3 --heads 8 --kv-heads 2 --page 48 "
#define CLASS "features=lengths+pages,page=16" /* 48 tokens: the kernel is that of the power of two in it */

/* Every command that takes problems takes these. */
Test(cli_decode, problems_with_features)
{
    static const struct {
        const char *words, *says;
    } rows[] = {
        { "space --arch sm_90a --family decode_wgmma " CACHE, CLASS },
        { "model --arch sm_80 " CACHE, CLASS },
        { "emit --arch sm_80 " CACHE, CLASS },
        { "show " SIM CACHE, CLASS },
        { "space -d 64 --features lengths+lse-strides --sq 2 --sk 100 --arch sm_80", "features=lengths+lse-strides" },
        { "space --problem bf16,d=64,sq=1,sk=100 --features lengths --arch sm_80", "features=lengths" },
        { "tune " CACHE "--arch sm_80 --limit 1 --lengths zipf", CLASS },
        { "tune --list-grids --grid llm-decode --page 64 -d 64", "page=64" },
        { "run " SIM CACHE "--lengths log-uniform --check", "check      ok" },
        { "bench --counts " SIM CACHE "--lengths zipf", CLASS },
        { "verify " SIM CACHE "--lengths zipf -v", CLASS },
        { "verify " SIM "--features lengths,pages --count 2 -v", "2 of 2 cases are right" },
        { "verify " SIM "--grid llm-decode --page 64 -d 64", "2 of 2 cases are right" },
        { "verify " SIM "--grid llm-mixed --page 64 -v", "4 of 4 cases are right" },
        { "emit --bundle --name cache --arch sm_80 " CACHE "-o cache.c", "1 rows, 1 images" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        cli_result r = cli_run(rows[i].words);
        cr_expect_eq(r.code, 0, "%s: %d, %s", rows[i].words, r.code, r.err);
        cr_expect(strstr(r.out, rows[i].says) || strstr(r.err, rows[i].says), "%s: \"%s\" is not in\n%s%s", rows[i].words, rows[i].says,
                  r.out, r.err);
        cli_result_free(&r);
    }
}

/* The lengths reach the launch: fewer keys are read where they are drawn shorter. */
Test(cli_decode, lengths_are_drawn)
{
    static const char *const how[] = { "full", "uniform", "zipf" };
    double before = INFINITY;
    for (size_t i = 0; i < COUNT(how); i++) {
        char words[200];
        snprintf(words, sizeof words, "run " SIM CACHE "--lengths %s --counters --json", how[i]);
        json_t *doc = cli_json(words, 0), *t;
        size_t k;
        json_array_foreach(json_object_get(json_object_get(doc, "counters"), "tensors"), k, t)
        {
            if (strcmp(json_string_value(json_object_get(t, "tensor")), "K"))
                continue;
            double read = json_number_value(json_object_get(t, "read"));
            cr_expect_lt(read, before, "%s: %g", how[i], read);
            before = read;
        }
        json_decref(doc);
    }
    cr_expect(isfinite(before));
}

/* Pages in which HBM bounds the problem tell bandwidth; few queries stay as few over all lengths. */
Test(cli_decode, explored)
{
    json_t *doc = cli_json("explore " CACHE "--arch h200 --family decode_wgmma --simulate 1 --json", 0), *l;
    size_t i;
    cr_expect(json_is_true(json_object_get(doc, "streamed")));
    cr_expect_str_eq(json_string_value(json_object_get(json_object_get(doc, "asked"), "features")), "lengths+pages");
    cr_expect_eq(json_integer_value(json_object_get(json_object_get(doc, "asked"), "page")), 16);
    double all = json_number_value(json_object_get(doc, "tensor_bytes")), drawn = json_number_value(json_object_get(doc, "measured_bytes"));
    cr_expect_eq(all, 3 * (8 * (64 + 64) * 2 + 2 * 300 * (64 + 64) * 2.));
    cr_expect_eq(drawn, 3 * 8 * (64 + 64) * 2 + 2 * 600 * (64 + 64) * 2., "100, 200 and 300 keys");
    cr_expect_gt(json_array_size(json_object_get(doc, "counters")), 0, "%s",
                 json_string_value(json_object_get(json_object_get(doc, "simulated"), "why")));
    json_array_foreach(json_object_get(doc, "lengths"), i, l) cr_expect_eq(json_integer_value(json_object_get(l, "sq")), 1);
    json_decref(doc);
    doc = cli_json("explore -d 64 --causal -n 4096 --arch sm_80 --family naive --simulate 0 --json", 0);
    cr_expect(json_is_false(json_object_get(doc, "streamed")));
    json_decref(doc);
}

/* About 5 minutes of tuning on one GPU, at some 7 seconds a problem. */
Test(cli_decode, the_grid)
{
    json_t *doc = cli_json("tune --list-grids --grid llm-decode --json", 0), *row;
    size_t i, pages = 0;
    cr_expect_eq(json_array_size(json_object_get(doc, "problems")), 42);
    json_array_foreach(json_object_get(doc, "problems"), i, row)
    {
        const char *text = json_string_value(json_object_get(row, "problem"));
        pages += strstr(text, "features=lengths+pages") != NULL;
        cr_expect(strstr(text, "sq=1,") || strstr(text, "sq=4,") || strstr(text, "sq=16,"), "%s", text);
    }
    cr_expect_eq(pages, 16);
    json_decref(doc);
}

/* What a step of an engine holds is of lengths on the device throughout, and each kind is there for each head dim. */
Test(cli_decode, the_grid_of_steps)
{
    json_t *doc = cli_json("tune --list-grids --grid llm-mixed --json", 0), *row;
    size_t i;
    int kinds[3][FA_BATCH_KINDS] = { { 0 } }, pages[3] = { 0 };
    cr_expect_eq(json_array_size(json_object_get(doc, "problems")), 34);
    json_array_foreach(json_object_get(doc, "problems"), i, row)
    {
        const char *text = json_string_value(json_object_get(row, "problem"));
        fa_problem p;
        cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s", text);
        cr_expect(p.features & FA_FEATURE_LENGTHS && p.mask == FA_MASK_CAUSAL, "%s", text);
        cr_expect(p.d == 64 || p.d == 128 || p.d == 256, "%s", text);
        kinds[p.d / 128][fa_ragged_typical(&p, 1).batch]++;
        pages[p.page == 16 ? 1 : p.page == 64 ? 2 : 0]++;
    }
    for (int d = 0; d < 3; d++)
        for (int kind = FA_BATCH_PROMPTS; kind < FA_BATCH_KINDS; kind++)
            cr_expect_gt(kinds[d][kind], 0, "d %d: %d", d, kind);
    cr_expect(pages[0] >= 10 && pages[1] >= 8 && pages[2] >= 4, "%d %d %d", pages[0], pages[1], pages[2]);
    json_decref(doc);
}
