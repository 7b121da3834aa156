/* The forms that values of options take: what each kind reads, to the last value that it takes and the first that it does not. */
#include "cli/options/args.h"
#include <criterion/criterion.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define NONE (-12345)

static const cli_word words[] = { { "one", 1 }, { "two", 2 }, { "fourteen", 14 }, { NULL, 0 } };

static const cli_option small = { .name = "small", .min = -3, .max = 70000, .words = words };

/* Whole numbers: NONE where the text is refused. */
static const struct {
    const cli_option_type *kind;
    const char *text;
    int32_t value;
} ints[] = {
    { &cli_int, "0", 0 },
    { &cli_int, "-3", -3 },
    { &cli_int, "-4", NONE },
    { &cli_int, "70000", 70000 },
    { &cli_int, "70001", NONE },
    { &cli_int, "", NONE },
    { &cli_int, " 1", NONE },
    { &cli_int, "1 ", NONE },
    { &cli_int, "+1", NONE },
    { &cli_int, "1x", NONE },
    { &cli_int, "0x10", NONE },
    { &cli_int, "-", NONE },
    { &cli_int, "010", 10 },
    { &cli_int, "99999999999999999999999999", NONE },
    { &cli_int, "9223372036854775808", NONE },
    { &cli_int, "00000000000000000000007", 7 },
    { &cli_int, "000000000000000000000007", NONE },
    { &cli_bytes, "0", 0 },
    { &cli_bytes, "64KiB", 65536 },
    { &cli_bytes, "64k", 65536 },
    { &cli_bytes, "65536B", 65536 },
    { &cli_bytes, "0.5K", 512 },
    { &cli_bytes, "0.3K", NONE },
    { &cli_bytes, "68K", 69632 },
    { &cli_bytes, "69K", NONE },
    { &cli_bytes, "1M", NONE },
    { &cli_bytes, "-1", NONE },
    { &cli_bytes, "1 K", NONE },
    { &cli_bytes, "1Q", NONE },
    { &cli_bytes, "0x10", NONE },
    { &cli_bytes, "inf", NONE },
    { &cli_bytes, "nan", NONE },
    { &cli_bytes, "1e3", 1000 },
    { &cli_choice, "one", 1 },
    { &cli_choice, "TWO", 2 },
    { &cli_choice, "tw", NONE },
    { &cli_choice, "twoo", NONE },
    { &cli_choice, "fourteen", 14 },
    { &cli_choice, "", NONE },
    { &cli_set, "one", 1 },
    { &cli_set, "one,TWO", 3 },
    { &cli_set, "fourteen+one", 15 },
    { &cli_set, "one+two,fourteen,one", 15 },
    { &cli_set, "one,", NONE },
    { &cli_set, "+one", NONE },
    { &cli_set, "one,three", NONE },
    { &cli_set, "", NONE },
};

Test(cli_option_types, whole_numbers)
{
    for (size_t i = 0; i < COUNT(ints); i++) {
        int32_t v = NONE;
        bool ok = ints[i].kind->read(&v, ints[i].text, &small);
        cr_expect(ok == (ints[i].value != NONE) && v == ints[i].value, "row %zu, \"%s\": %s, %d", i, ints[i].text, ok ? "taken" : "refused",
                  v);
    }
    static const cli_option big = { .name = "big", .min = 0, .max = INT32_MAX };
    int32_t v = NONE;
    cr_expect(cli_bytes.read(&v, "3MiB", &big) && v == 3 << 20);
    cr_expect(cli_bytes.read(&v, "2M", &big) && v == 2 << 20);
    cr_expect_not(cli_bytes.read(&v, "2048M", &big));
    cr_expect(cli_int.read(&v, "2147483647", &big) && v == INT32_MAX);
    cr_expect_not(cli_int.read(&v, "2147483648", &big));
    cr_expect(cli_int.read(&v, "4k", &big) && v == 4096);
    cr_expect(cli_int.read(&v, "2097151K", &big) && v == 2097151 * 1024);
    cr_expect_not(cli_int.read(&v, "2097152k", &big));
    cr_expect_not(cli_int.read(&v, "k", &big));
    cr_expect_not(cli_int.read(&v, "4kk", &big));
}

/* Times, ages and sizes; -1 = refused. */
static const struct {
    const cli_option_type *kind;
    const char *text;
    double value;
} units[] = {
    { &cli_seconds, "60", 60 },
    { &cli_seconds, "60s", 60 },
    { &cli_seconds, "250ms", 0.25 },
    { &cli_seconds, "2m", 120 },
    { &cli_seconds, "2min", 120 },
    { &cli_seconds, "1.5h", 5400 },
    { &cli_seconds, "1H", 3600 },
    { &cli_seconds, "0", -1 },
    { &cli_seconds, "0.001ms", 1e-6 },
    { &cli_seconds, "1e7", 1e7 },
    { &cli_seconds, "10000001", -1 },
    { &cli_seconds, "1d", -1 },
    { &cli_seconds, "-1", -1 },
    { &cli_seconds, "s", -1 },
    { &cli_seconds, ".5s", 0.5 },
    { &cli_seconds, "1 s", -1 },
    { &cli_age, "30d", 30 * 86400. },
    { &cli_age, "12h", 43200 },
    { &cli_age, "2w", 14 * 86400. },
    { &cli_age, "5s", 5 },
    { &cli_age, "5m", 300 },
    { &cli_age, "5min", 300 },
    { &cli_age, "5", -1 },
    { &cli_age, "0d", -1 },
    { &cli_age, "1e10s", 1e10 },
    { &cli_age, "1.1e10s", -1 },
    { &cli_age, "1ms", -1 },
};

Test(cli_option_types, times)
{
    for (size_t i = 0; i < COUNT(units); i++) {
        double v = -1;
        bool ok = units[i].kind->read(&v, units[i].text, &small);
        cr_expect(ok == (units[i].value >= 0) && v == units[i].value, "row %zu, \"%s\": %s, %g", i, units[i].text, ok ? "taken" : "refused",
                  v);
    }
}

Test(cli_option_types, sizes_seeds_and_reals)
{
    static const struct {
        const char *text;
        int64_t value; /* NONE: refused */
    } sizes[] = { { "any", -1 },
                  { "0", 0 },
                  { "65536", NONE },
                  { "65536B", 65536 },
                  { "100MiB", 100 << 20 },
                  { "2GiB", (int64_t)2 << 30 },
                  { "2g", (int64_t)2 << 30 },
                  { "1T", (int64_t)1 << 40 },
                  { "3TiB", (int64_t)3 << 40 },
                  { "7B", 7 },
                  { "1K", 1024 },
                  { "1KiB", 1024 },
                  { "5M", 5 << 20 },
                  { "9e15B", 9000000000000000 },
                  { "9.1e15B", NONE },
                  { "0.5", NONE },
                  { "0.5K", 512 },
                  { "-1", NONE },
                  { "all", NONE },
                  { "", NONE },
                  { "1P", NONE } };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t v = NONE;
        bool ok = cli_size.read(&v, sizes[i].text, &small);
        cr_expect(ok == (sizes[i].value != NONE) && v == sizes[i].value, "\"%s\": %s, %lld", sizes[i].text, ok ? "taken" : "refused",
                  (long long)v);
    }
    static const struct {
        const char *text;
        bool ok;
        uint64_t value;
    } seeds[] = { { "0", true, 0 },     { "17", true, 17 },
                  { "0x10", true, 16 }, { "18446744073709551615", true, UINT64_MAX },
                  { "9", true, 9 },     { "18446744073709551616", false, 0 },
                  { "-1", false, 0 },   { "+1", false, 0 },
                  { "", false, 0 },     { "1x", false, 0 },
                  { "x", false, 0 } };
    for (size_t i = 0; i < COUNT(seeds); i++) {
        uint64_t v = 0;
        cr_expect_eq(cli_seed.read(&v, seeds[i].text, &small), seeds[i].ok, "\"%s\"", seeds[i].text);
        cr_expect(!seeds[i].ok || v == seeds[i].value, "\"%s\"", seeds[i].text);
    }
    static const struct {
        const char *text;
        float value; /* 0: refused */
    } reals[] = { { "1", 1 },        { "0.125", 0.125f }, { "1e-3", 1e-3f }, { "0", 0 },   { "-1", 0 }, { "1x", 0 },  { "1e30", 0 },
                  { "9e29", 9e29f }, { "1e-60", 0 },      { "nan", 0 },      { "inf", 0 }, { "", 0 },   { "0x1", 0 }, { "9", 9 } };
    for (size_t i = 0; i < COUNT(reals); i++) {
        float v = 0;
        bool ok = cli_real.read(&v, reals[i].text, &small);
        cr_expect(ok == (reals[i].value > 0) && (!ok || v == reals[i].value), "\"%s\": %s, %g", reals[i].text, ok ? "taken" : "refused", v);
    }
}

Test(cli_option_types, windows)
{
    static const struct {
        const char *text;
        int32_t left, right; /* NONE: refused */
    } rows[] = { { "0,0", 0, 0 },
                 { "-1,-1", -1, -1 },
                 { "128,0", 128, 0 },
                 { "-1,5", -1, 5 },
                 { "5,-1", 5, -1 },
                 { "2147483647,2147483647", INT32_MAX, INT32_MAX },
                 { "-2,0", NONE, 0 },
                 { "0,-2", NONE, 0 },
                 { "2147483648,0", NONE, 0 },
                 { "0,2147483648", NONE, 0 },
                 { "5", 5, 0 },
                 { "4k,1k", 4096, 1024 },
                 { ",5", NONE, 0 },
                 { "5,", NONE, 0 },
                 { "1,2,3", NONE, 0 },
                 { "", NONE, 0 } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int32_t v[2] = { NONE, NONE };
        bool ok = cli_window.read(v, rows[i].text, &small);
        cr_expect_eq(ok, rows[i].left != NONE, "\"%s\"", rows[i].text);
        cr_expect(ok ? v[0] == rows[i].left && v[1] == rows[i].right : v[0] == NONE && v[1] == NONE, "\"%s\": %d, %d", rows[i].text, v[0],
                  v[1]);
    }
}

Test(cli_option_types, lists)
{
    char text[4 * CLI_LIST_MAX] = "";
    cli_list l = { .n = 99 };
    cr_expect(cli_ints.read(&l, "5,-3,70000", &small) && l.n == 3 && l.v[0] == 5 && l.v[1] == -3 && l.v[2] == 70000);
    cr_expect(cli_choices.read(&l, "two,ONE,two", &small) && l.n == 3 && l.v[0] == 2 && l.v[1] == 1 && l.v[2] == 2);
    cr_expect(cli_ints.read(&l, "1k,7", &small) && l.n == 2 && l.v[0] == 1024);
    cr_expect(cli_ints.read(&l, "7", &small) && l.n == 1 && l.v[0] == 7);
    static const char *const refused[] = { "", ",", "1,", ",1", "1,,2", "1,70001", "-4,1", "1 2" };
    for (size_t i = 0; i < COUNT(refused); i++) {
        l.n = 99;
        cr_expect(!cli_ints.read(&l, refused[i], &small) && l.n == 99, "\"%s\"", refused[i]);
    }
    cr_expect_not(cli_choices.read(&l, "one,three", &small));
    cr_expect_not(cli_choices.read(&l, "one,", &small));
    for (int i = 0; i < CLI_LIST_MAX; i++)
        strcat(text, i ? ",1" : "1");
    cr_expect(cli_ints.read(&l, text, &small) && l.n == CLI_LIST_MAX && l.v[CLI_LIST_MAX - 1] == 1, "as many as there is room for");
    strcat(text, ",1");
    cr_expect_not(cli_ints.read(&l, text, &small));
}

/* What a message says is accepted. */
Test(cli_option_types, what_is_accepted)
{
    static const cli_option o = { .name = "o", .value = "FILE", .min = 1, .max = 9, .words = words };
    static const struct {
        const cli_option_type *kind;
        const char *says;
    } rows[] = { { &cli_int, "1 to 9" },
                 { &cli_ints, "1 to 9, or a list such as 1,9" },
                 { &cli_bytes, "1 to 9 bytes, as 65536 or 64KiB" },
                 { &cli_choice, "one, two, fourteen" },
                 { &cli_choices, "one, two, fourteen, or a list of them" },
                 { &cli_set, "one, two, fourteen, joined by commas or +" },
                 { &cli_text, "FILE, not empty" } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char buf[200] = "";
        rows[i].kind->accepts(buf, sizeof buf, &o);
        cr_expect_str_eq(buf, rows[i].says);
    }
    const char *s = NULL;
    cr_expect(cli_text.read(&s, "x", &o) && !strcmp(s, "x"));
    cr_expect_not(cli_text.read(&s, "", &o));
}
