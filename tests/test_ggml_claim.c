/* What of ggml's nodes is claimed, and each reason why one is left; wrong layouts; bands of masks; programs; words of FAGEN_GGML. */
#include "gen/score/program.h"
#include "ggml/band.h"
#include "ggml/claim.h"
#include "ggml/program.h"
#include "ggml/report.h"
#include "ggml/rule.h"
#include "ggml/settings.h"
#include "ggml_host.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static fa_ggml ggml;
static fa_ggml_tensor *q, *k, *v, *m, *z, *o;

static void make(void)
{
    char why[256];
    memset(&host, 0, sizeof host);
    host_reset(1, NULL, true);
    cr_assert(fa_ggml_open(&ggml, host_find, NULL, why, sizeof why), "%s", why);
    q = host_permuted(host_tensor(HOST_F32, 64, 8, 5, 2), 1, 2);
    k = host_permuted(host_tensor(HOST_F16, 64, 2, 96, 2), 1, 2);
    v = host_permuted(host_tensor(HOST_F16, 32, 2, 96, 2), 1, 2);
    m = host_tensor(HOST_F16, 96, 8, 4, 2);
    z = host_tensor(HOST_F32, 8, 1, 1, 1);
    o = host_attention(q, k, v, m, z, 0.125f, 8, 30);
}
TestSuite(ggml_claim, .init = make);

Test(ggml_claim, a_node_becomes_fields_of_a_launch)
{
    fa_ggml_claim c;
    char why[256] = "";
    cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why), "%s", why);
    cr_expect(c.dtype == FA_F16 && c.casts && !c.kv_dtype && !c.v_dtype);
    cr_expect(c.d == 64 && c.dv == 32 && c.hq == 8 && c.hkv == 2 && c.b == 2 && c.sq == 5 && c.sk == 96);
    cr_expect(c.q.sh == 64 && c.q.ss == 8 * 64 && c.q.sb == 5 * 8 * 64);
    cr_expect(c.v.sh == 32 && c.v.ss == 64 && c.v.sb == 96 * 64);
    cr_expect(c.o.sh == 32 && c.o.ss == 8 * 32 && c.o.sb == 5 * 8 * 32);
    cr_expect(c.m2 == 4 && c.m3 == 2 && c.mask_ss == 96 && c.mask_sh == 8 * 96 && c.mask_sb == 4 * 8 * 96);
    cr_expect(c.scale == 0.125f && c.max_bias == 8 && c.cap == 30);
    k->type = v->type = HOST_F32; /* as TF32, Q in place */
    k->nb[0] = v->nb[0] = 4;
    k->nb[1] = k->nb[2] = k->nb[3] = v->nb[1] = v->nb[2] = v->nb[3] = 4096;
    cr_expect(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why) && c.dtype == FA_TF32 && !c.casts, "%s", why);
    k->ne[3] = v->ne[3] = 1; /* one that all sequences read */
    cr_expect(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why) && c.k.sb == 0 && c.k.ss == 1024, "%s", why);
}

/* V is K's where it begins there and steps likewise: of more than 256 columns, in 16 bits. */
Test(ggml_claim, v_inside_k)
{
    fa_ggml_claim c;
    char why[256];
    fa_ggml_tensor *cache = host_tensor(HOST_F16, 576, 1, 96, 2);
    q = host_permuted(host_tensor(HOST_F32, 576, 8, 5, 2), 1, 2);
    k = host_permuted(cache, 1, 2);
    v = host_columns(k, 512);
    o = host_attention(q, k, v, NULL, NULL, 0.125f, 0, 0);
    cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why) && c.v_in_k, "%s", why);
    v->view_offs = 64;
    cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why) && !c.v_in_k, "%s", why);
    v->view_offs = 0;
    v->nb[1] += 2;
    cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why) && !c.v_in_k, "%s", why);
    v->nb[1] -= 2;
    v->view_src = k; /* another tensor */
    cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why) && !c.v_in_k, "%s", why);
    q->ne[0] = k->ne[0] = 256;
    v->view_src = cache;
    v->ne[0] = o->ne[0] = 128, o->nb[1] = 512, o->nb[2] = 8 * 512, o->nb[3] = 5 * 8 * 512;
    cr_assert(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why) && !c.v_in_k, "%s", why);
}

/* Slopes are those of the definition, heads past the largest power of two too. */
Test(ggml_claim, slopes)
{
    cr_expect_float_eq((double)fa_ggml_slope(8, 8, 0), 0.5, 1e-7);
    cr_expect_float_eq((double)fa_ggml_slope(8, 8, 7), 1.0 / 256, 1e-9);
    cr_expect_float_eq((double)fa_ggml_slope(8, 12, 8), pow(2, -0.5), 1e-6);
    cr_expect_float_eq((double)fa_ggml_slope(8, 12, 11), pow(2, -3.5), 1e-6);
    cr_expect_eq(fa_ggml_slope(0, 12, 3), 1);
}

Test(ggml_claim, each_reason_to_decline)
{
    fa_ggml_claim c;
    char why[512];
    int rows = 0;
#define ROW(change, words)                                                            \
    {                                                                                 \
        make();                                                                       \
        change;                                                                       \
        why[0] = 0;                                                                   \
        cr_expect_not(fa_ggml_claim_node(&ggml, o, &c, why, sizeof why), words);      \
        cr_expect(strstr(why, words) != NULL, "\"%s\" is not in \"%s\"", words, why); \
        rows++;                                                                       \
    }
    ROW(o->op = HOST_COPY, "another operation");
    ROW(o->src[2] = NULL, "Q, K or V is missing");
    ROW(q->ne[1] = 0, "Q.ne[1] is 0; accepted: 1 to 2147483647");
    ROW(k->ne[1] = 1ll << 31, "K.ne[1] is 2147483648");
    ROW(k->ne[0] = 32, "K.ne[0] is 32; accepted: 64, as Q has it");
    ROW(v->ne[1] = 95, "V.ne[1] is 95; accepted: 96, as K has it");
    ROW(v->ne[2] = 1, "V.ne[2] is 1; accepted: 2, as many heads as K");
    ROW((q->ne[2] = 7), "Q.ne[2] is 7; accepted: multiples of K's 2 heads");
    ROW(k->ne[3] = 3, "K.ne[3] and V.ne[3] are 3 and 2; accepted: both 2, or 1");
    ROW(v->ne[3] = 1, "K.ne[3] and V.ne[3] are 2 and 1");
    ROW(o->ne[1] = 5, "the result is [32, 5, 5, 2]");
    ROW(q->type = HOST_F16, "Q is f16; accepted: f32");
    ROW(k->type = HOST_Q8_1, "K is q8_1; accepted: f32, f16, bf16");
    ROW(v->type = HOST_Q8_1, "V is q8_1; accepted: f32, f16, bf16");
    ROW(v->type = 99, "V is of another type");
    ROW(v->type = HOST_BF16, "K is f16 and V bf16; accepted: one type, or two with blocks");
    ROW(k->type = HOST_Q8_0, "K is q8_0 and V f16");
    ROW((k->type = v->type = HOST_Q8_0, v->ne[0] = o->ne[0] = 40), "V.ne[0] is 40; accepted in q8_0: multiples of 32");
    ROW((k->type = v->type = HOST_Q8_0, ggml.type[HOST_Q8_0].bytes = 36), "K is q8_0, whose blocks have 36 bytes; known: 34");
    ROW(o->op_params[0] = 0x7f800000, "the scale is inf; accepted: numbers");
    ROW((k->type = v->type = HOST_F32, o->op_params[0] = 0), "the scale is 0; accepted: above 0 where K is f32");
    ROW(o->op_params[1] = (int32_t)0xbf800000, "logit_softcap and max_bias are 30 and -1");
    ROW(o->op_params[2] = 0x7fc00000, "logit_softcap and max_bias are nan and 8");
    ROW(o->op_params[2] = 1, "logit_softcap is 1.4013e-45; accepted: 0, or 1e-6 to 1e30");
    ROW(o->src[3] = NULL, "max_bias is 8 without a mask; accepted: 0");
    ROW(q->nb[0] = 8, "Q.nb[0] is 8; accepted: 4, elements that lie side by side");
    ROW(k->nb[1] = 129, "K.nb[1] is 129; accepted: multiples of 2");
    ROW(o->nb[2] *= 2, "the result is no contiguous f32");
    ROW(o->type = HOST_F16, "the result");
    ROW(m->type = HOST_F32, "the mask is f32; accepted: f16");
    ROW(m->ne[0] = 64, "the mask is 64 keys by 8 queries; accepted: 96 by 5 or more");
    ROW(m->ne[1] = 4, "the mask is 96 keys by 4 queries");
    ROW(m->ne[2] = 3, "the mask has 3 heads and 2 sequences; accepted: divisors of 8 and 2");
    ROW((q->ne[3] = k->ne[3] = v->ne[3] = o->ne[3] = 4, m->ne[3] = 2), "the mask has 2 sequences; accepted: 1 or 4");
    ROW(m->nb[0] = 4, "the mask's nb[0] is 4; accepted: 2");
    ROW(z->ne[0] = 7, "the sinks are f32, 7 of them; accepted: f32, 8 side by side");
    ROW(z->type = HOST_F16, "the sinks are f16");
    cr_expect_geq(rows, 37);
}

/* --- rules --- */

/* Each holds at the least of its numbers, and has a reason. */
Test(ggml_claim, rules)
{
    for (size_t i = 0; i < FA_GGML_RULES; i++)
        for (int form = 1; form < FA_GGML_ANY_FORM; form *= 2)
            for (int blocks = 0; blocks < 2; blocks++) {
                const fa_ggml_rule *const r = &fa_ggml_rules[i];
                const int32_t sk = r->hinted ? 4096 : r->whole ? 256 : 1;
                fa_ggml_claim c = { .d = r->d_least, .sq = r->queries_least, .hkv = 8, .sk = sk, .kv_dtype = blocks ? FA_Q8_0 : 0 };
                const fa_ggml_way way = { !r->narrow, r->cut };
                c.keys_left = r->hinted ? 512 : 0;
                c.d += !c.d, c.sq += !c.sq;
                c.hq = c.hkv * ((r->rows_least + c.sq - !!r->rows_least) / c.sq);
                cr_expect(!(r->forms & form) || !(blocks ? r->blocks : r->plain) || fa_ggml_slower(&c, (fa_ggml_form)form, way),
                          "row %zu, form %d", i, form);
                cr_expect(r->because[0]);
            }
    static const struct {
        fa_ggml_claim c;
        fa_ggml_form form;
        bool unpacks, theirs, cuts;
    } rows[] = {
        { { .d = 128, .sq = 1, .hq = 32, .hkv = 8, .sk = 16384 }, FA_GGML_FEW_ROWS, false, false, false },
        { { .d = 128, .sq = 1, .hq = 32, .hkv = 8, .sk = 2048 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 128, .sq = 1, .hq = 32, .hkv = 32, .sk = 4096 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 128, .sq = 4, .hq = 32, .hkv = 8, .sk = 4096 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 128, .sq = 1, .hq = 32, .hkv = 8, .sk = 4096, .kv_dtype = FA_Q8_0 }, FA_GGML_FEW_ROWS, false, false, false },
        { { .d = 128, .sq = 1, .hq = 32, .hkv = 8, .sk = 4096, .kv_dtype = FA_Q8_0 }, FA_GGML_FEW_ROWS, false, true, true },
        { { .d = 128, .sq = 1, .hq = 32, .hkv = 8, .sk = 8192, .kv_dtype = FA_Q8_0 }, FA_GGML_FEW_ROWS, false, false, true },
        { { .d = 128, .sq = 1, .hq = 16, .hkv = 16, .sk = 8192, .kv_dtype = FA_Q4_0 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 128, .sq = 1, .hq = 16, .hkv = 16, .sk = 16384, .kv_dtype = FA_Q4_0 }, FA_GGML_FEW_ROWS, false, false, true },
        { { .d = 64, .sq = 2, .hq = 64, .hkv = 8, .sk = 4096, .kv_dtype = FA_Q4_0 }, FA_GGML_FEW_ROWS, false, false, false },
        { { .d = 64, .sq = 3, .hq = 64, .hkv = 8, .sk = 4096, .kv_dtype = FA_Q4_0 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 128, .sq = 1, .hq = 32, .hkv = 8, .sk = 256, .kv_dtype = FA_Q8_0 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 128, .sq = 512, .hq = 32, .hkv = 8, .sk = 4096 }, FA_GGML_A_BAND, false, false, false },
        { { .d = 128, .sq = 128, .hq = 32, .hkv = 8, .sk = 4096 }, FA_GGML_A_BAND, false, true, false },
        { { .d = 128, .sq = 256, .hq = 32, .hkv = 8, .sk = 4096 }, FA_GGML_A_BAND, false, false, false },
        { { .d = 128, .sq = 512, .hq = 32, .hkv = 8, .sk = 4096 }, FA_GGML_NO_BAND, false, true, false },
        { { .d = 128, .sq = 512, .hq = 32, .hkv = 8, .sk = 4096 }, FA_GGML_DISTANCES, false, true, false },
        { { .d = 128, .sq = 512, .hq = 32, .hkv = 8, .sk = 4096, .kv_dtype = FA_Q4_0 }, FA_GGML_A_BAND, true, false, false },
        { { .d = 128, .sq = 512, .hq = 32, .hkv = 8, .sk = 4096, .kv_dtype = FA_Q4_0 }, FA_GGML_A_BAND, false, true, false },
        { { .d = 128, .sq = 512, .hq = 32, .hkv = 8, .sk = 4096, .kv_dtype = FA_Q4_0 }, FA_GGML_NO_BAND, true, true, false },
        { { .d = 72, .sq = 5776, .hq = 16, .hkv = 16, .sk = 5776 }, FA_GGML_NO_MASK, false, false, false },
        { { .d = 64, .sq = 1, .hq = 64, .hkv = 8, .sk = 7680 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 256, .sq = 1, .hq = 32, .hkv = 2, .sk = 10000 }, FA_GGML_FEW_ROWS, false, false, false },
        { { .d = 256, .sq = 1, .hq = 32, .hkv = 2, .sk = 10240 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 576, .sq = 1, .hq = 16, .hkv = 1, .sk = 4096 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 128, .sq = 1, .hq = 64, .hkv = 2, .sk = 16384, .keys_left = 2048 }, FA_GGML_FEW_ROWS, false, true, false },
        { { .d = 128, .sq = 1, .hq = 64, .hkv = 2, .sk = 16384, .keys_left = 10000 }, FA_GGML_FEW_ROWS, false, false, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(fa_ggml_slower(&rows[i].c, rows[i].form, (fa_ggml_way){ rows[i].unpacks, rows[i].cuts }) != NULL, rows[i].theirs,
                     "%zu", i);
}

/* --- layouts --- */

/* A registry and its first device, as the rider looks at them. */
static bool all_is_known(char *why, size_t n)
{
    if (!fa_ggml_open(&ggml, host_find, NULL, why, n))
        return false;
    fa_ggml_reg *r = ggml.ggml_backend_reg_by_name("CUDA");
    if (!fa_ggml_reg_check(&ggml, r, why, n) || !fa_ggml_device_check(&ggml, host_device(0), r, why, n))
        return false;
    fa_ggml_backend *b = host_backend(0);
    fa_ggml_tensor *nodes[] = { o };
    bool known = fa_ggml_backend_check(&ggml, b, host_device(0), why, n) && fa_ggml_graph_check(&ggml, host_graph(1, nodes, 1), why, n);
    b->i.free(b);
    return known;
}

Test(ggml_claim, layouts_that_are_not_known_are_refused)
{
    char why[256];
    int rows = 0;
    host_reset(1, NULL, true);
    cr_assert(all_is_known(why, sizeof why), "%s", why);
#define WRONG(change, words)                                                          \
    {                                                                                 \
        memset(&host, 0, sizeof host);                                                \
        change;                                                                       \
        host_reset(1, NULL, true);                                                    \
        why[0] = 0;                                                                   \
        cr_expect_not(all_is_known(why, sizeof why), words);                          \
        cr_expect(strstr(why, words) != NULL, "\"%s\" is not in \"%s\"", words, why); \
        rows++;                                                                       \
    }
    WRONG(host.missing = "ggml_backend_reg_by_name", "no function ggml_backend_reg_by_name");
    WRONG(host.missing = "ggml_backend_dev_name", "no function ggml_backend_dev_name");
    WRONG(host.missing = "ggml_tensor_overhead", "no function ggml_tensor_overhead");
    WRONG(host.missing = "ggml_graph_nodes", "no function ggml_graph_nodes");
    WRONG(host.no_reg = true, "neither a registry CUDA nor one CPU");
    WRONG(host.api = 1, "its backend API is 1; known: 2 to 3");
    WRONG(host.api = 4, "its backend API is 4");
    WRONG(host.overhead = 8, "ggml_tensor_overhead() is 376; known: 368");
    WRONG(host.overhead = -16, "ggml_tensor_overhead() is 352");
    WRONG(host.no_op = "FLASH_ATTN_EXT", "no operation FLASH_ATTN_EXT");
    WRONG(host.no_type = "bf16", "no type of each of the names");
    WRONG(host.type_bytes = 2, "its type q8_0 has 36 bytes for 32 elements; known: 34 for 32");
    WRONG(host.null_count = true, "the registry: get_device_count is NULL");
    WRONG(host.foreign_reg = true, "the registry: get_device and get_name are not of one file");
    WRONG(host.device_shift = 1, "the device's registry does not lie where");
    WRONG(host.device_shift = -1, "the device's registry does not lie where");
    WRONG(host.null_supports = true, "the device: supports_op is NULL");
    WRONG(host.null_init = true, "the device: init_backend is NULL");
    WRONG(host.foreign_supports = true, "the device: supports_op and get_name are not of one file");
    WRONG(host.wrong_name = true, "get_name of the device gives another name");
    WRONG(host.backend_shift = 1, "the backend's device does not lie where");
    WRONG(host.backend_shift = 2, "the backend's device does not lie where");
    WRONG(host.null_compute = true, "the backend: graph_compute is NULL");
    WRONG(host.graph_shift = 1, "n_nodes does not lie where");
    WRONG(host.wrong_nodes = true, "nodes do not lie where");
    cr_expect_geq(rows, 20);
}

/* ggml-cuda's stream is taken where all before it is as known, and nowhere else. */
Test(ggml_claim, the_stream_of_ggml_cuda)
{
    struct {
        int device;
        const char *text;
        size_t size;
        char own[16];
        void *event, *stream[16][8];
    } c = { .device = 2, .size = 5, .own = "CUDA2" };
    fa_ggml_backend b = { .context = &c };
    c.text = c.own;
    c.stream[2][0] = &c;
    cr_expect_eq(fa_ggml_cuda_stream(&b, "CUDA2", 2), &c);
    cr_expect_null(fa_ggml_cuda_stream(&b, "CUDA1", 2));
    cr_expect_null(fa_ggml_cuda_stream(&b, "CUDA2", 1));
    cr_expect_null(fa_ggml_cuda_stream(&b, "CUDA2", 16));
    c.size = 6;
    cr_expect_null(fa_ggml_cuda_stream(&b, "CUDA2", 2));
    c.size = 5, c.text = "CUDA2";
    cr_expect_null(fa_ggml_cuda_stream(&b, "CUDA2", 2));
    b.context = NULL;
    cr_expect_null(fa_ggml_cuda_stream(&b, "CUDA2", 2));
}

/* --- bands --- */

/* Rows of `masks` equal masks that see what `sees` says. */
static bool band(int masks, int sq, int sk, bool (*sees)(int i, int j), fa_ggml_band *out)
{
    static fa_ggml_row rows[512];
    for (int n = 0; n < masks; n++)
        for (int i = 0; i < sq; i++) {
            fa_ggml_row r = { 0, 0, 0, 0 };
            for (int j = 0; j < sk; j++)
                if (sees(i, j))
                    r.first = r.live++ ? r.first : j, r.past = j + 1;
            rows[n * sq + i] = r;
        }
    return fa_ggml_band_of(rows, masks, sq, sk, out);
}
static bool causal(int i, int j)
{
    return j <= i + 30;
}
static bool window(int i, int j)
{
    return j <= i + 30 && j > i + 30 - 20;
}
static bool late_window(int i, int j)
{
    return j <= i + 3 && j >= i + 3 - 5;
}
static bool first_keys(int i, int j)
{
    return i >= 0 && j < 70;
}
static bool some_keys(int i, int j)
{
    return i >= 0 && j >= 10 && j < 70;
}
static bool no_key_at_last(int i, int j)
{
    return i < 99 && j <= i;
}
static bool two_sequences(int i, int j)
{
    return j <= i && i / 50 == j / 50;
}
static bool holes(int i, int j)
{
    return j <= i && j != 5;
}

Test(ggml_claim, bands)
{
    fa_ggml_band b;
    cr_assert(band(2, 100, 160, causal, &b));
    cr_expect(b.mask == FA_MASK_CAUSAL && b.offset == 30 && b.begin == 0 && b.sk == 130, "%d %d %d %d", b.mask, b.offset, b.begin, b.sk);
    cr_assert(band(1, 100, 110, causal, &b));
    cr_expect(b.mask == FA_MASK_CAUSAL && b.offset == 30 && b.sk == 110);
    cr_assert(band(3, 100, 160, window, &b));
    cr_expect(b.mask == FA_MASK_WINDOW && b.begin == 11 && b.offset == 19 && b.left == 19 && b.sk == 119, "%d %d %d %d %d", b.mask, b.begin,
              b.offset, b.left, b.sk);
    cr_assert(band(1, 100, 160, late_window, &b));
    cr_expect(b.mask == FA_MASK_WINDOW && b.begin == 0 && b.offset == 3 && b.left == 5);
    cr_assert(band(2, 100, 160, first_keys, &b));
    cr_expect(b.mask == FA_MASK_NONE && b.begin == 0 && b.sk == 70);
    cr_assert(band(2, 100, 160, some_keys, &b));
    cr_expect(b.mask == FA_MASK_NONE && b.begin == 10 && b.sk == 60);
    cr_expect_not(band(1, 100, 160, no_key_at_last, &b));
    cr_expect_not(band(1, 100, 160, two_sequences, &b));
    cr_expect_not(band(1, 100, 160, holes, &b));
    fa_ggml_row rows[2] = { { 0, 1, 1, 0 }, { 0, 2, 2, 1 } };
    cr_expect_not(fa_ggml_band_of(rows, 1, 2, 8, &b), "a number beside 0");
    rows[1] = (fa_ggml_row){ 0, 2, 2, 0 };
    cr_expect(fa_ggml_band_of(rows, 1, 2, 8, &b));
    cr_expect_not(fa_ggml_band_of(rows, 2, 1, 8, &b), "two masks that differ");
}

/* --- programs, words, lines --- */

/* Each that a claim can ask for is one of the language. */
Test(ggml_claim, programs)
{
    int programs = 0;
    for (int parts = 1; parts < FA_GGML_PARTS; parts++) {
        char text[1024];
        fa_program *p = NULL;
        if ((parts & (FA_GGML_MODULO | FA_GGML_SLOPES | FA_GGML_TILES)) && !(parts & FA_GGML_MASK))
            continue;
        size_t n = fa_ggml_program_text(parts, text, sizeof text);
        cr_assert_lt(n, sizeof text);
        cr_expect_eq(fa_program_read(&p, "ggml", text, n), FA_OK, "%s: %s", text, fa_last_error());
        fa_program_free(p);
        programs++;
    }
    cr_expect_eq(programs, 3 + 4 * 8);
}

Test(ggml_claim, words_of_the_setting)
{
    fa_ggml_settings s;
    char why[200];
    cr_expect(fa_ggml_settings_read(&s, NULL, why, sizeof why) && !s.off && s.tier == 2 && !strcmp(s.registry, "CUDA"));
    cr_expect(fa_ggml_settings_read(&s, "off", why, sizeof why) && s.off);
    cr_expect(fa_ggml_settings_read(&s, "log,tier=3", why, sizeof why) && s.tells && s.tier == 3);
    cr_expect(fa_ggml_settings_read(&s, "sim:sm_90a,hook=CPU", why, sizeof why) && !strcmp(s.simulator, "sim:sm_90a") &&
              !strcmp(s.registry, "CPU"));
    cr_expect(fa_ggml_settings_read(&s, "memory=16", why, sizeof why) && s.memory == 16);
    cr_expect(!s.nearest && fa_ggml_settings_read(&s, "nearest", why, sizeof why) && s.nearest);
    static const char *const wrong[] = { "memory=", "memory=0", "memory=16m", "tier=4", "tier=", "on", "sim:", "hook=CPU", "hook=" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_not(fa_ggml_settings_read(&s, wrong[i], why, sizeof why), "%s", wrong[i]);
        cr_expect(strstr(why, "FAGEN_GGML: ") && strstr(why, "accepted: "), "%s", why);
    }
}

static char lines[8][512];
static int told;
static void line(const char *text)
{
    snprintf(lines[told++ % 8], sizeof lines[0], "%s", text);
}
Test(ggml_claim, a_line_is_told_once)
{
    fa_ggml_tell_to(line);
    for (int i = 0; i < 1000; i++)
        fa_ggml_tell("reason %d", i % 3);
    cr_expect_eq(told, 3);
    for (int i = 0; i < 1000; i++) /* and not without end */
        fa_ggml_tell("another %d", i);
    cr_expect_eq(told, 256);
    fa_ggml_tell_to(NULL);
}
