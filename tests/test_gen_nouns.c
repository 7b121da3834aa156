/* The nouns: problem, config, arch: what is printed is what is parsed, and what is wrong is named. */
#include "all_params.h"
#include "gen/arch.h"
#include "gen/bucket.h"
#include "gen/config.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/text.h"
#include "gen/values.h"
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void expect_message(const char *input, const char *part)
{
    cr_expect(strstr(fa_last_error(), part), "\"%s\" gave \"%s\", which does not name \"%s\"", input, fa_last_error(), part);
}

Test(problem, prints_and_parses_back)
{
    static const char *const dtypes[] = { "fp16", "bf16", "tf32", "fp32" }, *const masks[] = { "none", "causal", "window" };
    static const int dims[] = { 1, 7, 8, 64, 96, 100, 128, 192, 256 };
    for (size_t i = 0; i < COUNT(dtypes); i++)
        for (size_t m = 0; m < COUNT(masks); m++)
            for (size_t d = 0; d < COUNT(dims); d++)
                for (int shape = 0; shape < 2; shape++) {
                    char in[160], text[160], again[160];
                    fa_problem p, q;
                    snprintf(in, sizeof in, "mask=%s,%s,d=%d%s", masks[m], dtypes[i], dims[d],
                             shape ? ",b=2,hq=16,hkv=8,sq=4096,sk=77" : "");
                    cr_assert_eq(fa_problem_parse(&p, in), FA_OK, "%s: %s", in, fa_last_error());
                    cr_assert_eq((size_t)fa_problem_print(text, sizeof text, &p), strlen(text));
                    cr_assert_eq(fa_problem_parse(&q, text), FA_OK, "%s: %s", text, fa_last_error());
                    cr_expect_arr_eq(&p, &q, sizeof p, "%s", text);
                    fa_problem_print(again, sizeof again, &q);
                    cr_expect_str_eq(text, again);
                    cr_expect_eq(fa_problem_print(NULL, 0, &p), (int)strlen(text));
                }
}

Test(problem, the_key_has_no_shape)
{
    fa_problem p, q;
    char a[160], b[160];
    fa_problem_parse(&p, "bf16,d=128,mask=causal,b=2,hq=16,hkv=8,sq=4096,sk=4096");
    fa_problem_parse(&q, "bf16,d=128,mask=causal");
    fa_problem_print_key(a, sizeof a, &p);
    fa_problem_print_key(b, sizeof b, &q);
    cr_expect_str_eq(a, b);
    cr_expect_str_eq(a, "bf16,d=128,dv=128,mask=causal,o=bf16,align=16");
    fa_problem_print(a, sizeof a, &p);
    cr_expect_str_eq(a, "bf16,d=128,dv=128,mask=causal,o=bf16,align=16,b=2,hq=16,hkv=8,sq=4096,sk=4096");
}

Test(problem, defaults)
{
    static const struct {
        const char *in;
        int dv, o, align;
    } rows[] = {
        { "bf16,d=128", 128, FA_BF16, 16 },     { "half,d=100", 100, FA_F16, 8 },       { "fp16,d=7", 7, FA_F16, 2 },
        { "tf32,d=64", 64, FA_F32, 16 },        { "float32,d=6", 6, FA_F32, 8 },        { "fp16,d=64,dv=66", 66, FA_F16, 4 },
        { "bf16,d=64,o=fp32", 64, FA_F32, 16 }, { "tf32,d=64,o=tf32", 64, FA_F32, 16 }, { "bf16,d=64,align=2", 64, FA_BF16, 2 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fa_problem p;
        cr_assert_eq(fa_problem_parse(&p, rows[i].in), FA_OK, "%s: %s", rows[i].in, fa_last_error());
        cr_expect(p.dv == rows[i].dv && p.o_dtype == rows[i].o && p.align == rows[i].align, "%s: dv %d, o %d, align %d", rows[i].in, p.dv,
                  p.o_dtype, p.align);
    }
}

Test(problem, names_the_wrong_field)
{
    static const struct {
        const char *in, *part;
        fa_status st;
    } rows[] = {
        { "", "dtype is missing", FA_INVALID },
        { "d=64", "dtype is missing", FA_INVALID },
        { "int8,d=64", "dtype is \"int8\"", FA_INVALID },
        { "bf16", "d is 0", FA_INVALID },
        { "bf16,d=-8", "d is -8", FA_INVALID },
        { "bf16,d=577", "d is 577; accepted: 1 to 576", FA_UNSUPPORTED },
        { "bf16,d=64,dv=72,features=v-in-k", "dv is 72 and features has v-in-k; accepted with d=64: 1 to 64", FA_INVALID },
        { "bf16,d=64,op=backward,features=v-in-k", "v-in-k", FA_UNSUPPORTED },
        { "bf16,d=64,kv=e4m3,features=v-in-k", "kv_dtype is 5 (e4m3) and features has v-in-k; accepted with it: 0", FA_UNSUPPORTED },
        { "bf16,d=64,dv=600", "dv is 600", FA_UNSUPPORTED },
        { "bf16,d=64x", "d is \"64x\"", FA_INVALID },
        { "bf16,d=99999999999", "d is \"99999999999\"", FA_INVALID },
        { "bf16,d=64,d=64", "d is given twice", FA_INVALID },
        { "bf16,d=64,mask=diagonal", "mask is \"diagonal\"", FA_INVALID },
        { "bf16,d=64,o=fp16", "o_dtype is 1 (fp16)", FA_UNSUPPORTED },
        { "bf16,d=64,o=int8", "o is \"int8\"", FA_INVALID },
        { "bf16,d=64,align=3", "align is 3", FA_INVALID },
        { "bf16,d=64,align=32", "align is 32", FA_INVALID },
        { "bf16,d=100,align=16", "from 2 to 8", FA_INVALID },
        { "fp32,d=64,align=2", "from 4 to 16", FA_INVALID },
        { "bf16,d=64,hq=6,hkv=4", "hq is 6; accepted with hkv=4", FA_INVALID },
        { "bf16,d=64,b=-1", "b is -1", FA_INVALID },
        { "bf16,d=64,sq=2000000000", "sq is 2000000000", FA_INVALID },
        { "bf16,d=64,heads=8", "unknown field \"heads\"", FA_INVALID },
        { "bf16,d=64,", "\",\" does not begin with a field", FA_INVALID },
        { "bf16,,d=64", "does not begin with a field", FA_INVALID },
        { "bf16,d=", "\"d=\" does not begin with a field", FA_INVALID },
        { "bf16,=64", "\"=64\" does not begin with a field", FA_INVALID },
        { "bf16,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1", "does not begin with a field", FA_INVALID },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fa_problem p;
        fa_status st = fa_problem_parse(&p, rows[i].in);
        cr_expect_eq(st, rows[i].st, "\"%s\": %s, %s", rows[i].in, fa_status_name(st), fa_last_error());
        expect_message(rows[i].in, rows[i].part);
    }
    fa_problem p = FA_PROBLEM_INIT, q;
    p.dtype = 9, p.d = 64;
    cr_expect_eq(fa_problem_normalize(&q, &p), FA_INVALID);
    expect_message("dtype 9", "dtype is 9");
    p.dtype = FA_BF16, p.mask = 3;
    cr_expect_eq(fa_problem_normalize(&q, &p), FA_INVALID);
    expect_message("mask 3", "mask is 3");
    p.mask = 0, p.size = 0;
    cr_expect_eq(fa_problem_normalize(&q, &p), FA_INVALID);
    expect_message("size 0", "size is 0");
    cr_expect_eq(fa_problem_normalize(&q, NULL), FA_INVALID);
}

Test(problem, an_older_caller_has_a_shorter_struct)
{
    fa_problem p = { offsetof(fa_problem, mask),
                     FA_BF16,
                     64,
                     0,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     77,
                     0,
                     77,
                     77,
                     77,
                     77,
                     77 },
               q;
    cr_assert_eq(fa_problem_normalize(&q, &p), FA_OK, "%s", fa_last_error());
    cr_expect(q.size == sizeof q && q.dv == 64 && q.mask == 0 && q.align == 16 && q.b == 0 && q.sk == 0 && q.op == 0 && q.window == 0);
}

/* Two problems that differ in one field alone are told apart by every reader of the list. */
Test(problem, no_field_is_forgotten)
{
    for (size_t i = 0; i < FA_PROBLEM_FIELD_COUNT; i++) {
        const fa_problem_field *f = &fa_problem_fields[i];
        fa_problem a, b;
        char x[256], y[256];
        cr_assert_eq(fa_problem_parse(&a, "bf16,d=64,mask=window"), FA_OK);
        b = a;
        fa_problem_set(&b, f, fa_problem_get(&a, f) + 1);
        cr_expect_eq(fa_problem_get(&b, f), fa_problem_get(&a, f) + 1);
        cr_expect_eq(fa_problem_same_class(&a, &b), f->part != FA_FIELD_CLASS, "%s", f->word);
        cr_expect_eq(fa_problem_same_shape(&a, &b), f->part != FA_FIELD_SHAPE, "%s", f->word);
        const fa_problem_field *found = fa_problem_hindrance(&b, true, &a);
        if (f == &fa_problem_fields[FA_FIELD_kv_align]) /* 0 is as much as align: the other one takes more */
            found = fa_problem_hindrance(&a, true, &b);
        cr_expect_eq(found, f->part == FA_FIELD_CLASS ? f : NULL, "%s", f->word);
        fa_problem_print(x, sizeof x, &a);
        fa_problem_print(y, sizeof y, &b);
        cr_expect_str_neq(x, y, "%s", f->word);
        fa_problem_print_key(x, sizeof x, &a);
        fa_problem_print_key(y, sizeof y, &b);
        cr_expect_eq(strcmp(x, y) != 0, f->part == FA_FIELD_CLASS, "%s: %s", f->word, y);
    }
}

/* A kernel for rows of 8 bytes serves rows of 16, and none the other way round. A kernel without pages serves no call with pages. */
Test(problem, which_kernels_serve)
{
    fa_problem a, b;
    cr_assert_eq(fa_problem_parse(&a, "bf16,d=64,align=16"), FA_OK);
    cr_assert_eq(fa_problem_parse(&b, "bf16,d=64,align=8"), FA_OK);
    cr_expect_null(fa_problem_hindrance(&b, true, &a));
    cr_expect_eq(fa_problem_hindrance(&a, true, &b), &fa_problem_fields[FA_FIELD_align]);
    b = a;
    b.page = 16;
    cr_expect_eq(fa_problem_hindrance(&a, true, &b), &fa_problem_fields[FA_FIELD_page]);
    cr_expect_eq(fa_problem_hindrance(&b, true, &a), &fa_problem_fields[FA_FIELD_page]);
    a.page = 8;
    cr_expect_null(fa_problem_hindrance(&a, true, &b));
}

/* K and V in blocks have an alignment of their own, which is told where it is less than that of Q and O, and by which kernels serve. */
Test(problem, alignment_of_blocks)
{
    const struct {
        const char *in;
        int align, kv; /* align 0: refused, as the words of kv_align say */
    } rows[] = {
        { "bf16,d=128,kv=q8_0", 16, 8 },
        { "bf16,d=128,kv=q5_1", 16, 0 },
        { "bf16,d=64,kv=q8_0", 16, 4 },
        { "bf16,d=64,dv=128,kv=e4m3,v=nvfp4", 16, 8 },
        { "bf16,d=72,kv=e4m3", 8, 0 },
        { "bf16,d=128,kv=q8_0,align=8", 8, 0 },
        { "bf16,d=64,kv=q8_0,align=8", 8, 4 },
        { "bf16,d=128,kv=q8_0,align=16,kv_align=2", 16, 2 },
        { "bf16,d=128,kv=q8_0,align=2,kv_align=2", 2, 0 },
        { "bf16,d=128,op=append,kv=q8_0", 8, 0 },
        { "bf16,d=128,kv=q8_0,kv_align=16", 0, 8 },
        { "bf16,d=128,kv=q8_0,align=4,kv_align=8", 0, 4 },
        { "bf16,d=128,kv=q5_1,kv_align=1", 0, 16 },
        { "bf16,d=128,kv=e4m3,kv_align=8", 0, 0 },
        { "bf16,d=128,kv_align=16", 0, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p, again;
        char text[FA_PROBLEM_TEXT], says[80];
        fa_status st = fa_problem_parse(&p, rows[i].in);
        if (!rows[i].align) {
            snprintf(says, sizeof says, rows[i].kv ? "a power of two from 2 to %d" : "in blocks (q8_0 to nvfp4): %d", rows[i].kv);
            cr_expect(st == FA_INVALID && strstr(fa_last_error(), "kv_align is ") && strstr(fa_last_error(), says), "%s: %s", rows[i].in,
                      fa_last_error());
            continue;
        }
        cr_assert_eq(st, FA_OK, "%s: %s", rows[i].in, fa_last_error());
        cr_expect(p.align == rows[i].align && p.kv_align == rows[i].kv, "%s: %d and %d", rows[i].in, p.align, p.kv_align);
        fa_problem_print_key(text, sizeof text, &p);
        cr_expect_eq(!strstr(text, "kv_align="), !rows[i].kv, "%s", text);
        cr_assert_eq(fa_problem_parse(&again, text), FA_OK, "%s", fa_last_error());
        cr_expect(fa_problem_same_class(&p, &again), "%s", text);
    }
    static const char *const serves[][2] = { { "bf16,d=128,kv=q8_0,align=8", "bf16,d=128,kv=q8_0" },
                                             { "bf16,d=128,kv=q8_0,kv_align=4", "bf16,d=128,kv=q8_0" },
                                             { "bf16,d=128,kv=q5_1,kv_align=8", "bf16,d=128,kv=q5_1" } };
    for (size_t i = 0; i < sizeof serves / sizeof *serves; i++) {
        fa_problem kernel, call;
        cr_assert(fa_problem_parse(&kernel, serves[i][0]) == FA_OK && fa_problem_parse(&call, serves[i][1]) == FA_OK);
        cr_expect_null(fa_problem_hindrance(&kernel, true, &call), "%s", serves[i][0]);
        cr_expect_eq(fa_problem_hindrance(&call, true, &kernel), &fa_problem_fields[i ? FA_FIELD_kv_align : FA_FIELD_align]);
        cr_expect_gt(fa_problem_align_apart(&kernel, &call), 0);
    }
}

/* A kernel that takes no workspace serves calls with one and without; one that takes some serves none without. */
Test(problem, what_workspaces_hinder)
{
    fa_problem with, without;
    cr_assert_eq(fa_problem_parse(&with, "bf16,d=64"), FA_OK);
    cr_assert_eq(fa_problem_parse(&without, "bf16,d=64,features=no-workspace"), FA_OK);
    for (int takes = 0; takes < 2; takes++) {
        const fa_problem_field *hindrance = takes ? &fa_problem_fields[FA_FIELD_features] : NULL;
        cr_expect_eq(fa_problem_hindrance(&with, takes, &without), hindrance);
        cr_expect_eq(fa_problem_hindrance(&without, takes, &with), hindrance);
        cr_expect_null(fa_problem_hindrance(&with, takes, &with));
    }
}

/* What is named and not built is refused by its name. */
Test(problem, what_is_not_built)
{
    static const struct {
        const char *in, *part;
        fa_status st;
    } rows[] = {
        { "tf32,d=64,op=backward", "dtype is 3 (tf32); accepted with op=backward: fp16 (1), bf16 (2), fp32 (4)", FA_UNSUPPORTED },
        { "bf16,d=64,op=backward,grad=fp16", "grad_dtype is 1 (fp16); accepted with bf16: 0, bf16 (2), fp32 (4)", FA_UNSUPPORTED },
        { "bf16,d=64,op=backward,features=batch-invariant",
          "features is batch-invariant, which this version does not compute with op=backward; accepted: "
          "lengths+deterministic+dropout+lse-strides",
          FA_UNSUPPORTED },
        { "bf16,d=64,features=deterministic", "features is deterministic", FA_UNSUPPORTED },
        { "bf16,d=64,grad=fp32", "grad_dtype is 4; accepted with op=forward: 0", FA_INVALID },
        { "bf16,d=64,op=merge,mask=causal", "mask is causal; accepted with op=merge: none", FA_INVALID },
        { "bf16,d=64,op=merge,features=lengths", "features is lengths; accepted with op=merge: none", FA_INVALID },
        { "bf16,d=64,op=merge,o=fp16", "o_dtype is 1 (fp16); accepted with bf16: 0, bf16 (2), fp32 (4)", FA_UNSUPPORTED },
        { "fp32,d=64,o=fp16", "o_dtype is 1 (fp16); accepted with fp32: 0, fp32 (4)", FA_UNSUPPORTED },
        { "bf16,d=64,op=sideways", "accepted: forward, backward, merge", FA_INVALID },
        { "bf16,d=64,op=merge,features=dropout", "features is dropout; accepted with op=merge: none", FA_INVALID },
        { "bf16,d=64,features=pages", "accepted: lengths+pages", FA_INVALID },
        { "bf16,d=64,features=pages+lengths", "page is 0 and features has pages", FA_INVALID },
        { "bf16,d=64,features=pages+lengths,page=24", "page is 24", FA_INVALID },
        { "bf16,d=64,features=pages+wings", "accepted: lengths, pages", FA_INVALID },
        { "bf16,d=64,page=16", "features has no pages", FA_INVALID },
        { "bf16,d=64,window=128", "accepted with mask=none: 0", FA_INVALID },
        { "bf16,d=64,mask=window,window=-1", "window is -1", FA_INVALID },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fa_problem p;
        cr_expect_eq(fa_problem_parse(&p, rows[i].in), rows[i].st, "%s", rows[i].in);
        expect_message(rows[i].in, rows[i].part);
    }
    /* What is printed is read. */
    static const char *const long_ones[] = {
        "bf16,d=64,dv=64,mask=none,o=bf16,align=16,features=lengths+pages+batch-invariant+lse-strides+no-workspace,page=16",
        "bf16,d=64,dv=32,mask=causal,o=bf16,align=16,features=lengths+pages+batch-invariant+lse-strides+no-workspace+v-in-k,page=16",
        "bf16,d=64,dv=64,mask=none,o=bf16,align=16,op=append,features=slots+positions+positions64+rotary-pairs+hadamard-k+hadamard-v+"
        "rotary,"
        "page=16,rotary=64,cos=fp32",
    };
    for (size_t i = 0; i < COUNT(long_ones); i++) {
        fa_problem of, again;
        char text[FA_PROBLEM_TEXT], twice[FA_PROBLEM_TEXT];
        cr_assert_eq(fa_problem_parse(&of, long_ones[i]), FA_OK, "%s", fa_last_error());
        cr_assert_lt(fa_problem_print(text, sizeof text, &of), FA_PROBLEM_TEXT);
        cr_assert_eq(fa_problem_parse(&again, text), FA_OK, "%s: %s", text, fa_last_error());
        fa_problem_print(twice, sizeof twice, &again);
        cr_expect_str_eq(twice, text);
        cr_expect_eq(again.features, of.features, "%s", text);
    }
    char all[FA_FEATURES_TEXT]; /* the names of all find room */
    int32_t named = 0, read = 0;
    for (int bit = 0; bit < 31; bit++)
        named |= strcmp(fa_feature_name(1 << bit), "?") ? 1 << bit : 0;
    fa_problem_field_text(all, sizeof all, &fa_problem_fields[FA_FIELD_features], named);
    cr_expect(fa_features_parse(&read, all), "%s", all);
    cr_expect_eq(read, named, "%s", all);
    fa_problem p, out; /* bits that no text has */
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64,features=lengths"), FA_OK);
    p.features |= 1 << 30;
    cr_expect_eq(fa_problem_normalize(&out, &p), FA_UNSUPPORTED);
    expect_message("1 << 30", "features is lengths+0x40000000, which this version does not compute; accepted: ");
}

Test(problem, shapes_are_filled)
{
    fa_problem p;
    fa_problem_parse(&p, "bf16,d=64,sk=100");
    fa_problem_fill_shape(&p);
    cr_expect(p.b == 1 && p.hq == 16 && p.hkv == 16 && p.sq == 100 && p.sk == 100);
    fa_problem_parse(&p, "bf16,d=64,hkv=4,sq=1");
    fa_problem_fill_shape(&p);
    cr_expect(p.hq == 4 && p.hkv == 4 && p.sq == 1 && p.sk == 1);
    fa_problem_parse(&p, "bf16,d=64");
    fa_problem_fill_shape(&p);
    cr_expect(p.sq == 4096 && p.sk == 4096);
}

static uint32_t bucket(const char *s)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, s), FA_OK, "%s: %s", s, fa_last_error());
    return fa_problem_bucket(&p);
}

Test(problem, buckets)
{
    cr_expect_eq(bucket("bf16,d=64"), bucket("bf16,d=64,b=1,hq=16,hkv=16,sq=4096,sk=4096"));
    cr_expect_eq(bucket("bf16,d=64,sq=4000,sk=4096"), bucket("bf16,d=64,sq=4096,sk=4500"), "4096 lies within its bucket");
    cr_expect_eq(bucket("bf16,d=64,b=2,hq=8"), bucket("bf16,d=64,b=1,hq=16"), "only b * hq counts");
    cr_expect_neq(bucket("bf16,d=64,sq=1,sk=4096"), bucket("bf16,d=64,sq=2,sk=4096"));
    cr_expect_neq(bucket("bf16,d=64,sq=4096,sk=4096"), bucket("bf16,d=64,sq=4096,sk=8192"));
    cr_expect_neq(bucket("bf16,d=64,hq=16,hkv=16"), bucket("bf16,d=64,hq=16,hkv=4"));
    cr_expect_eq(bucket("bf16,d=64,mask=window"), bucket("bf16,d=64,mask=window,window=1024"), "0 is the typical window");
    cr_expect_neq(bucket("bf16,d=64,mask=window,window=128"), bucket("bf16,d=64,mask=window,window=4096"));
    cr_expect_neq(bucket("bf16,d=64,sq=1073741824,sk=1"), bucket("bf16,d=64,sq=1,sk=1073741824"));
}

Test(config, prints_and_parses_back)
{
    static const char *const texts[] = { "naive", "flash_fwd_mma:br=128,bc=64,warps=4", "f:a=-3", "x_1:A=2147483647,b=0" };
    for (size_t i = 0; i < COUNT(texts); i++) {
        fa_config c, d;
        char text[256];
        cr_assert_eq(fa_config_parse(&c, texts[i]), FA_OK, "%s: %s", texts[i], fa_last_error());
        cr_expect_eq(fa_config_print(text, sizeof text, &c), (int)strlen(texts[i]));
        cr_expect_str_eq(text, texts[i]);
        cr_assert_eq(fa_config_parse(&d, text), FA_OK);
        cr_expect(fa_config_equal(&c, &d));
        cr_expect_arr_eq(&c, &d, sizeof c, "unused bytes are zero");
    }
    fa_config c;
    fa_config_parse(&c, "f: br = 64 , bc=32");
    cr_expect(fa_config_get(&c, "br", 0) == 64 && fa_config_get(&c, "bc", 0) == 32 && fa_config_get(&c, "zz", -7) == -7);
    cr_expect(fa_config_set(&c, "br", 16) && c.n == 2 && fa_config_get(&c, "br", 0) == 16);
    cr_expect_not(fa_config_set(&c, "a_name_that_is_too_long", 1));
}

Test(config, names_the_wrong_field)
{
    static const struct {
        const char *in, *part;
    } rows[] = {
        { "", "family \"\"" },
        { ":br=1", "family \"\"" },
        { "9lives:br=1", "family \"9lives\"" },
        { "a_family_with_far_too_long_a_name:br=1", "is not a name" },
        { "f:br", "\"br\" is not name=value" },
        { "f:br=x", "br is \"x\"" },
        { "f:br=1.5", "br is \"1.5\"" },
        { "f:br=99999999999", "br is \"99999999999\"" },
        { "f:br=1,br=2", "br is given twice (1 and 2)" },
        { "f:b r=1", "\"b r=1\" is not name=value" },
        { "f:a_long_name_of_tunable=1", "too long" },
        { "f:br=1,", "does not begin with a field" },
        { "f:a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1,r=1,s=1,t=1,u=1", "u is one tunable too many" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fa_config c;
        cr_expect_eq(fa_config_parse(&c, rows[i].in), FA_INVALID, "\"%s\" was accepted", rows[i].in);
        expect_message(rows[i].in, rows[i].part);
    }
}

Test(arch, every_row_is_sane)
{
    char names[256] = "";
    for (size_t i = 0; i < fa_arch_count(); i++) {
        const fa_arch *a = fa_arch_at(i);
        cr_expect(a->smem_block + a->smem_reserved <= a->smem_sm, "%s", a->name);
        cr_expect(a->smem_block >= 48 << 10 && a->regs_sm == 65536 && a->regs_thread == 255, "%s", a->name);
        cr_expect_eq(a->threads_sm, a->warps_sm * 32, "%s", a->name);
        cr_expect(a->blocks_sm >= 16 && a->sm_count > 0 && a->l2_bytes > 1 << 20, "%s", a->name);
        cr_expect(a->clock_ghz > 0.5 && a->clock_ghz < 4 && a->mma16_flop >= 2 * a->mma_tf32_flop, "%s", a->name);
        cr_expect(a->ffma_flop > 0 && a->exp_rate > 0 && a->issue_rate > 0 && a->smem_bytes_clk > 0, "%s", a->name);
        cr_expect(a->l2_gbs > a->hbm_gbs && a->hbm_gbs > 100, "%s", a->name);
        cr_expect(a->source && strlen(a->source) > 20 && a->chip[0], "%s", a->name);
        const fa_arch *first = fa_arch_find(a->name);
        cr_expect_eq(fa_arch_find(a->chip), a);
        cr_expect_eq(fa_arch_of_device(a->cc / 10, a->cc % 10, "some device"), first);
        cr_expect_eq(a->wgmma16_flop > 0, a->cc == 90, "%s", a->name);
        if (a == first) /* other chips of it have the same name */
            strcat(strcat(names, i ? ", " : ""), a->name);
    }
    cr_expect_str_eq(fa_arch_names(), names);
    cr_expect_null(fa_arch_at(fa_arch_count()));
}

Test(arch, names)
{
    static const struct {
        const char *name, *row;
    } rows[] = { { "sm_80", "sm_80" }, { "80", "sm_80" },     { "a100", "sm_80" },    { "sm_90", "sm_90a" },
                 { "90a", "sm_90a" },  { "H200", "sm_90a" },  { "h100", "sm_90a" },   { "sm_120", "sm_120a" },
                 { "100", "sm_100a" }, { "103a", "sm_103a" }, { "rtx4090", "sm_89" }, { "l40s", "sm_89" } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fa_arch *a = fa_arch_find(rows[i].name);
        cr_assert_not_null(a, "%s", rows[i].name);
        cr_expect_str_eq(a->name, rows[i].row);
    }
    static const char *const unknown[] = { "", "sm_", "sm_70", "9", "900", "h20", "sm_90b", "sm_80a" };
    for (size_t i = 0; i < COUNT(unknown); i++)
        cr_expect_null(fa_arch_find(unknown[i]), "\"%s\"", unknown[i]);
    cr_expect_null(fa_arch_find(NULL));
    cr_expect_null(fa_arch_of_device(7, 0, "V100"));
    cr_expect_str_eq(fa_arch_of_device(9, 0, "NVIDIA H100 80GB HBM3")->chip, "H100 SXM");
    cr_expect_str_eq(fa_arch_of_device(9, 0, "NVIDIA H200")->chip, "H200 SXM");
    cr_expect_str_eq(fa_arch_find("h100")->chip, "H100 SXM");
    cr_expect_str_eq(fa_arch_find("sm_90a")->chip, "H200 SXM");
    cr_expect_str_eq(fa_arch_find("l40s")->chip, "L40S");
    cr_expect_str_eq(fa_arch_of_device(8, 9, "NVIDIA L40S")->chip, "L40S");
    cr_expect_str_eq(fa_arch_find("sm_89")->chip, "GeForce RTX 4090");
    const char *product;
    size_t products = 0;
    for (const fa_arch *a; (a = fa_arch_product(products, &product)) != NULL; products++)
        cr_expect_eq(fa_arch_find(product), a, "%s", product);
    cr_expect_gt(products, 10);
    cr_expect_lt(fa_arch_find("h100")->hbm_gbs, fa_arch_find("h200")->hbm_gbs);
}

Test(arch, data_sheets)
{
    const fa_arch *a = fa_arch_find("a100");
    cr_expect_float_eq(a->sm_count * a->clock_ghz * 1e9 * a->mma16_flop / 1e12, 312, 1, "A100: 312 TFLOP/s");
    a = fa_arch_find("rtx4090");
    cr_expect_float_eq(a->sm_count * a->clock_ghz * 1e9 * a->mma16_flop / 1e12, 165, 1, "RTX 4090: 165 TFLOP/s");
    a = fa_arch_find("l40s");
    cr_expect_float_eq(a->sm_count * a->clock_ghz * 1e9 * a->mma16_flop / 1e12, 362, 5, "L40S: 362 TFLOP/s");
    a = fa_arch_find("h200");
    cr_expect_float_eq(a->sm_count * a->clock_ghz * 1e9 * a->mma16_flop / 1e12, 600, 1, "H200, mma.sync, measured");
    cr_expect_eq(a->smem_block, 232448);
}

Test(error, wraps_and_cuts)
{
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    cr_expect_eq(fa_fail(FA_IO, "a %d", 1), FA_IO);
    cr_expect_eq(fa_wrap(FA_IO, "while %s", "b"), FA_IO);
    cr_expect_str_eq(fa_last_error(), "while b: a 1");
    cr_expect_eq(fa_wrap(FA_OK, "not said"), FA_OK);
    cr_expect_str_eq(fa_last_error(), "while b: a 1");
    fa_fail(FA_IO, "again: %s", fa_last_error());
    cr_expect_str_eq(fa_last_error(), "again: while b: a 1");
    fa_fail(FA_IO, "%s", big);
    cr_expect_eq(strlen(fa_last_error()), 2047);
    fa_wrap(FA_IO, "ctx");
    cr_expect(!strncmp(fa_last_error(), "ctx: xxx", 8) && strlen(fa_last_error()) == 2047);
    fa_wrap(FA_IO, "%s", big);
    cr_expect_eq(strlen(fa_last_error()), 2047);
    cr_expect_str_eq(fa_status_name(FA_NO_FIT), "FA_NO_FIT");
    cr_expect_str_eq(fa_status_name((fa_status)99), "FA_UNKNOWN");
}

Test(text, grows)
{
    fa_text t = { 0 };
    cr_expect_str_eq(fa_text_cstr(&t), "");
    cr_expect_str_eq(fa_text_after("a.so: cannot be opened", "a.so"), "cannot be opened");
    cr_expect_str_eq(fa_text_after("b.so: cannot be opened", "a.so"), "b.so: cannot be opened");
    cr_expect_str_eq(fa_text_after("a.so", "a.so"), "a.so");
    cr_expect_str_eq(fa_text_after("a.so.1: x", "a.so"), "a.so.1: x");
    for (int i = 0; i < 1000; i++)
        fa_text_fmt(&t, "%d,", i);
    fa_text_add(&t, "a\0b", 3);
    fa_text_str(&t, "");
    cr_expect(!t.oom && t.n == 3893 && !memcmp(t.s + 3890, "a\0b", 4));
    fa_text_free(&t);
    cr_expect(!t.s && !t.n && !t.cap);
}

/* A C compiler lays a struct of the values of all names out as fa_packing_of() says. */
Test(params, host_and_device_lay_out_alike)
{
    static const struct {
        size_t at, bytes;
    } members[] = {
#define X(type, name) { offsetof(all_params, name), sizeof(type) },
        ALL_PARAMS(X)
#undef X
    };
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    fa_workspace none = { .n = 0 };
    fa_values v;
    all_params p;
    char names[FA_PARAMS_TEXT], name[24];
    fa_packing all;
    size_t i = 0;
    unsigned char *bytes = (unsigned char *)&v;
    fa_values_all(names, op);
    cr_assert_eq(fa_packing_of(&all, op, &none, names), FA_OK, "%s", fa_last_error());
    cr_expect_eq((size_t)all.bytes, sizeof p);
    for (size_t k = 0; k < sizeof v; k++)
        bytes[k] = (unsigned char)(k * 7 + k / 251);
    fa_pack(&p, &all, &v);
    for (const char *at = names; fa_values_next(&at, name); i++) {
        fa_value value;
        cr_assert(i < sizeof members / sizeof *members && fa_value_find(&value, op, &none, name), "%s", name);
        cr_expect_eq(value.bytes, members[i].bytes, "%s", name);
        cr_expect(!memcmp((char *)&p + members[i].at, (char *)&v + value.at, value.bytes), "%s", name);
    }
    cr_expect_eq(i, sizeof members / sizeof *members);
}
