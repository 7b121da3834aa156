/* The .npy reader: what it takes, what it refuses and why, and that no byte sequence upsets it. */
#include "cli/files/npy.h"
#include "verify/operands/random.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file of version 1.0 with this dictionary and so many bytes of data. */
static size_t make(unsigned char *to, const char *dictionary, size_t data)
{
    size_t n = strlen(dictionary);
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (unsigned char)n;
    to[9] = (unsigned char)(n >> 8);
    memcpy(to + 10, dictionary, n);
    memset(to + 10 + n, 0, data);
    return 10 + n + data;
}

static const struct {
    const char *dictionary;
    size_t data;
    const char *refused; /* a word of the message; NULL = taken */
} rows[] = {
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, NULL },
    { "{'shape': (2,3), 'fortran_order': False, 'descr': \"<f2\"}", 12, NULL },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 20, NULL },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, NULL },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", 0, NULL },
    { "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 12, NULL },
    { "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }", 48, NULL },
    { "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }", 24, "6 elements of 8 bytes" },
    { "{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }", 12, "<i4, <i8" },
    { "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8, "little-endian" },
    { "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 16, "accepted: <f2" },
    { "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 16, "accepted" },
    { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8, "short string" },
    { "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16, "Fortran" },
    { "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2), }", 16, "fortran_order" },
    { "{'descr': '<f4', 'fortran_order': Falsey, 'shape': (2, 2), }", 16, "fortran_order" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 15, "bytes follow" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 17, "bytes follow" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 2), }", 16, "dimension" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0, 2), }", 16, "comma" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", 8, "comma" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", 8, "tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 2], }", 16, "tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,), }", 16, "dimension" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (400000000000000000, 400000000000000000), }", 16, "address space" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1), }", 4, "dimensions" },
    { "{'descr': '<f4', 'fortran_order': False, }", 4, "lacks shape" },
    { "{'descr': '<f4', 'shape': (1,), }", 4, "lacks fortran_order" },
    { "{'fortran_order': False, 'shape': (1,), }", 4, "lacks descr" },
    { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, "twice" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", 4, "none of" },
    { "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", 4, "comma" },
    { "{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "colon" },
    { "{descr: '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "key" },
    { "'descr': '<f4'", 4, "begin with {" },
    { "", 4, "begin with {" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, "follows the dictionary" },
    { "{'descr': '<f4\\'', 'fortran_order': False, 'shape': (1,)}", 4, "short string" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,", 4, "malformed" },
    { "{'descr': '<f4", 4, "short string" },
};

Test(cli_npy, headers)
{
    unsigned char file[1024];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cli_npy a;
        size_t n = make(file, rows[i].dictionary, rows[i].data);
        fa_status st = cli_npy_parse(&a, "x.npy", file, n);
        if (rows[i].refused) {
            cr_expect_eq(st, FA_INVALID, "%s was taken", rows[i].dictionary);
            cr_expect(strstr(fa_last_error(), rows[i].refused), "%s: %s", rows[i].dictionary, fa_last_error());
            cr_expect(!strncmp(fa_last_error(), "x.npy: ", 7), "%s", fa_last_error());
        } else {
            cr_expect_eq(st, FA_OK, "%s: %s", rows[i].dictionary, fa_last_error());
        }
    }
}

/* A message shows what a header and a name hold, in a form that no terminal obeys. */
Test(cli_npy, headers_and_names_of_any_bytes)
{
    unsigned char file[1024];
    cli_npy a;
    size_t n = make(file, "{'descr': '\033[2J\x9b', 'fortran_order': False, 'shape': (1,)}", 4);
    cr_expect_eq(cli_npy_parse(&a, "\033]0;a\a.npy", file, n), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "\\x1b]0;a\\x07.npy: elements are \"\\x1b[2J\\x9b\""), "%s", fa_last_error());
    for (const char *s = fa_last_error(); *s; s++)
        cr_expect((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f, "%s", fa_last_error());
}

Test(cli_npy, the_frame)
{
    unsigned char file[1024], copy[1024];
    cli_npy a;
    size_t n = make(file, rows[0].dictionary, rows[0].data);
    for (size_t k = 0; k < n; k++) /* every prefix */
        cr_expect_eq(cli_npy_parse(&a, "x", file, k), FA_INVALID, "%zu bytes were taken", k);
    const struct {
        size_t at;
        unsigned char value;
        const char *word;
    } bytes[] = { { 0, 0x92, "not a .npy" }, { 5, 'X', "not a .npy" }, { 6, 0, "version" },
                  { 6, 4, "version" },       { 7, 1, "version" },      { 9, 255, "header" } };
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        memcpy(copy, file, n);
        copy[bytes[i].at] = bytes[i].value;
        cr_expect_eq(cli_npy_parse(&a, "x", copy, n), FA_INVALID);
        cr_expect(strstr(fa_last_error(), bytes[i].word), "%s", fa_last_error());
    }
    /* versions 2.0 and 3.0: the header's length has four bytes */
    memcpy(copy, file, 10);
    copy[6] = 2;
    copy[10] = copy[11] = 0;
    memcpy(copy + 12, file + 10, n - 10);
    cr_expect_eq(cli_npy_parse(&a, "x", copy, n + 2), FA_OK, "%s", fa_last_error());
    copy[11] = 0x7f;
    cr_expect_eq(cli_npy_parse(&a, "x", copy, n + 2), FA_INVALID);
}

/* Random damage of a good file, in a block of exactly its size: the sanitizer watches the edges. */
Test(cli_npy, damage)
{
    unsigned char file[1024];
    size_t n = make(file, rows[0].dictionary, rows[0].data);
    fa_random r = { 7 };
    for (int i = 0; i < 200000; i++) {
        size_t size = i % 3 ? n : (size_t)fa_random_below(&r, (int32_t)n + 1);
        unsigned char *copy = malloc(size ? size : 1);
        memcpy(copy, file, size);
        for (int k = fa_random_below(&r, 6); k-- > 0 && size;)
            copy[fa_random_below(&r, (int32_t)size)] =
                (unsigned char)(i % 2 ? fa_random_next(&r) : (uint64_t) "{}()',:<f42i8 0\n\\"[fa_random_below(&r, 17)]);
        cli_npy a;
        if (cli_npy_parse(&a, "x", copy, size) == FA_OK && a.count)
            (void)(cli_npy_has_integers(&a) ? (float)cli_npy_integer(&a, a.count - 1) : cli_npy_at(&a, a.count - 1));
        free(copy);
    }
}

Test(cli_npy, written_and_read)
{
    char path[] = "/tmp/fagen-npy-XXXXXX";
    int fd = mkstemp(path);
    const int64_t dim[4] = { 2, 1, 3, 2 };
    float x[12];
    cli_npy a;
    cr_assert(fd >= 0);
    close(fd);
    for (int i = 0; i < 12; i++)
        x[i] = (float)i / 3;
    for (int n = 1; n <= 4; n++) {
        const int64_t one[1] = { 12 };
        cr_assert_eq(cli_npy_write(path, FA_F32, n == 1 ? 1 : 4, n == 1 ? one : dim, x), FA_OK, "%s", fa_last_error());
        cr_assert_eq(cli_npy_read(&a, path), FA_OK, "%s", fa_last_error());
        cr_assert_eq(a.count, 12);
        cr_assert_eq(((const char *)a.data - a.file) % 64, 0);
        for (size_t i = 0; i < 12; i++)
            cr_assert_eq(cli_npy_at(&a, i), x[i]);
        cli_npy_free(&a);
    }
    remove(path);
}

Test(cli_npy, integers)
{
    unsigned char file[256];
    cli_npy a;
    const int64_t wide[2] = { -1, (int64_t)1 << 40 };
    const int32_t x[3] = { -7, 0, INT32_MAX };
    size_t n = make(file, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", 16);
    memcpy(file + n - 16, wide, 16);
    cr_assert_eq(cli_npy_parse(&a, "x", file, n), FA_OK, "%s", fa_last_error());
    cr_expect(cli_npy_has_integers(&a) && !strcmp(cli_npy_type(&a), "int64"));
    cr_expect(cli_npy_integer(&a, 0) == -1 && cli_npy_integer(&a, 1) == wide[1]);
    cr_expect_eq(cli_npy_parse(&a, "x", file, n - 1), FA_INVALID);

    char path[] = "/tmp/fagen-npy-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    cr_assert_eq(cli_npy_write(path, CLI_NPY_I32, 1, (const int64_t[]){ 3 }, x), FA_OK, "%s", fa_last_error());
    cr_assert_eq(cli_npy_read(&a, path), FA_OK, "%s", fa_last_error());
    cr_assert(cli_npy_has_integers(&a) && !strcmp(cli_npy_type(&a), "int32") && a.count == 3);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(cli_npy_integer(&a, i), x[i]);
    cli_npy_free(&a);
    remove(path);
}
