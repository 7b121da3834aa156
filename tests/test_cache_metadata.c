/* What entries say of themselves: all of the key, and in which field two differ first. */
#include "test_cache_entries.h"
#include <criterion/criterion.h>

static fa_metadata base(void)
{
    return metadata_of(1);
}

Test(cache_metadata, round_trip)
{
    fa_metadata a = base(), b;
    fa_text t = { 0 };
    strcpy(a.options[1], "-DX=\"quoted \\ and ünïcode\"");
    cr_assert(fa_metadata_print(&a, &t) && fa_metadata_parse(&b, t.s, t.n));
    a.whole = true;
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) padding is zero in both */
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
    fa_key x = fa_metadata_key(&a), y = fa_metadata_key(&b);
    cr_assert(b.whole && x.lo == y.lo && x.hi == y.hi);
    fa_text_free(&t);
    strcpy(a.compiler, "\xff");
    cr_assert_not(fa_metadata_print(&a, &t));
    fa_text_free(&t);
}

#define MAKE(name, ...)              \
    static void name(fa_metadata *a) \
    {                                \
        __VA_ARGS__;                 \
    }
MAKE(problem, strcpy(a->problem, "fp16,d=64"))
MAKE(no_problem, a->problem[0] = 0)
MAKE(config, strcpy(a->config, "naive:"))
MAKE(text, a->text[1]++)
MAKE(arch, strcpy(a->arch, "sm_90a"); strcpy(a->options[0], "--gpu-architecture=sm_90a"))
MAKE(option, strcpy(a->options[1], "--std=c++20"))
MAKE(kind, strcpy(a->options[0], "--gpu-architecture=compute_80"))
MAKE(more_options, strcpy(a->options[a->n_options++], "-G"))
MAKE(fewer_options, a->options[--a->n_options][0] = 0)
MAKE(compiler, strcpy(a->compiler, "nvrtc 12.9 beef"))
MAKE(format, a->format = 2)
MAKE(config_and_text, config(a); text(a))
MAKE(all, problem(a); config(a); text(a); arch(a); option(a); compiler(a); format(a))
MAKE(nothing, strcpy(a->date, "1999"); strcpy(a->fagen, "9.9"); strcpy(a->source, "other.cu"))

static const struct {
    void (*change)(fa_metadata *a);
    int n;
    const char *field, *says;
    bool key; /* it is in the key */
} rows[] = {
    { problem, 1, "problem", "fp16,d=64 there", false },
    { no_problem, 1, "problem", "none there", false },
    { config, 1, "config", "naive: there", false },
    { text, 1, "text", "of fagen 0.1.0", true },
    { arch, 1, "arch", "sm_80 here, sm_90a there", true },
    { option, 1, "options", "--std=c++17 here, --std=c++20 there", true },
    { kind, 1, "options", "compute_80 there", true },
    { more_options, 1, "options", "none here, -G there", true },
    { fewer_options, 1, "options", "none there", true },
    { compiler, 1, "compiler", "nvrtc 12.9 beef there", true },
    { format, 1, "format", "version 1 here, version 2 there", false },
    { config_and_text, 2, "config", "", true },
    { all, 7, "problem", "", true },
    { nothing, 0, "", "", false },
};

Test(cache_metadata, first_difference)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_metadata a = base(), b = base();
        const char *field;
        char says[1400];
        rows[i].change(&b);
        cr_expect_eq(fa_metadata_differ(&a, &b, &field, says, sizeof says), rows[i].n, "%zu: %s", i, says);
        cr_expect_str_eq(field, rows[i].field);
        cr_expect(strstr(says, rows[i].says), "%s", says);
        fa_key x = fa_metadata_key(&a), y = fa_metadata_key(&b);
        cr_expect_eq(x.lo != y.lo, rows[i].key, "%zu", i);
    }
}

Test(cache_metadata, texts_are_told_by_their_hashes)
{
    fa_metadata a = base(), b = base();
    const char *field;
    char says[1400];
    a.text[0] = 0x0123456789abcdef, a.text[1] = 0xfedcba9876543210;
    b.text[0] = 0x1111111111111111, b.text[1] = 0x2222222222222222;
    strcpy(b.fagen, "9.8.7");
    cr_expect_eq(fa_metadata_differ(&a, &b, &field, says, sizeof says), 1);
    char x[33], y[33], want[200];
    fa_key_print(x, (fa_key){ a.text[0], a.text[1] });
    fa_key_print(y, (fa_key){ b.text[0], b.text[1] });
    snprintf(want, sizeof want, "text: %s of fagen %s here, %s of fagen 9.8.7 there", x, a.fagen, y);
    cr_expect_str_eq(says, want);
}

Test(cache_metadata, what_is_not_whole)
{
    static const struct {
        const char *json;
        bool parses;
    } bad[] = {
        { "", false },
        { "[]", false },
        { "{", false },
        { "3", false },
        { "{\"arch\":1,\"arch\":2}", false },
        { "{}", true },
        { "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":[],\"text\":\"0\",\"format\":1}", true },
        { "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":{},\"text\":\"00000000000000000000000000000000\",\"format\":1}", true },
        { "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":[1],\"text\":\"00000000000000000000000000000000\",\"format\":1}", true },
        { "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\","
          "\"13\",\"14\","
          "\"15\",\"16\",\"17\"],\"text\":\"00000000000000000000000000000000\",\"format\":1}",
          true },
        { "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":[],\"text\":\"00000000000000000000000000000000\",\"format\":2}", true },
        { "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":[],\"text\":\"00000000000000000000000000000000\",\"format\":-1}", true },
        { "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":[],\"text\":\"00000000000000000000000000000000\",\"format\":4294967297}",
          true },
        { "{\"compiler\":\"c\",\"options\":[],\"text\":\"00000000000000000000000000000000\",\"format\":1}", true },
        { "{\"arch\":\"sm_80\",\"options\":[],\"text\":\"00000000000000000000000000000000\",\"format\":1}", true },
        { "{\"arch\":\"an arch with a long "
          "name\",\"compiler\":\"c\",\"options\":[],\"text\":\"00000000000000000000000000000000\",\"format\":1}",
          true },
    };
    fa_metadata a;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(fa_metadata_parse(&a, bad[i].json, strlen(bad[i].json)), bad[i].parses, "%s", bad[i].json);
        cr_expect_not(a.whole, "%s", bad[i].json);
    }
    static const char good[] =
        "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":[],\"text\":\"00000000000000000000000000000000\",\"format\":1}";
    cr_expect(fa_metadata_parse(&a, good, sizeof good - 1) && a.whole);
    char longer[700];
    snprintf(longer, sizeof longer,
             "{\"arch\":\"sm_80\",\"compiler\":\"c\",\"options\":[\"%0300d\"],\"text\":\"00000000000000000000000000000000\",\"format\":1}",
             7);
    cr_expect(fa_metadata_parse(&a, longer, strlen(longer)) && !a.whole);
}
