/* The bytes of bundles: what was written is read again, fields that come later break nothing, and no change of any byte goes unseen. */
#include "bundle_maker.h"
#include "gen/problem.h"
#include "gen/problem_fields.h"
#include "runtime/bundle/columns.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(bundle_blob, .timeout = 60);

static maker m;
static const maker_item two[] = { { "sm_80", 0, 16, 512, 1000 }, { "sm_90a", 1, 8, 4096, 2000 }, { NULL, 0, 0, 0, 0 } };

/* fa_bundle_open() of a copy that is as long as told and no longer. */
static fa_status open_copy(const void *bytes, size_t n)
{
    const fa_bundle *out = (const fa_bundle *)&m;
    void *copy = malloc(n + !n);
    memcpy(copy, bytes, n);
    fa_status st = fa_bundle_open(&out, copy, n);
    cr_assert_eq((const void *)out, st == FA_OK ? copy : NULL);
    free(copy);
    return st;
}

static void expect_status(fa_status st, const char *says)
{
    cr_expect_eq(st, says ? FA_INVALID : FA_OK, "%s: %s; expected: %s", fa_status_name(st), fa_last_error(), says ? says : "FA_OK");
    cr_expect(!says || strstr(fa_last_error(), says), "%s; expected: %s", fa_last_error(), says);
}

/* What m holds, written and opened. says: NULL = it is accepted. */
static void expect_written(const char *says)
{
    maker_write(&m);
    expect_status(open_copy(m.text.s, m.text.n), says);
}

/* The bytes as they are now, under checksums that fit them. */
static void expect_signed(const char *says)
{
    fa_blob_sign((unsigned char *)m.text.s, m.text.n);
    expect_status(open_copy(m.text.s, m.text.n), says);
}

static unsigned char *at(size_t offset)
{
    return (unsigned char *)m.text.s + offset;
}

/* Another name, of as many letters, for columns and tables. */
static void rename_text(const char *from, const char *to)
{
    char *s = memmem(m.text.s, m.text.n, from, strlen(from) + 1);
    cr_assert(s && strlen(from) == strlen(to), "%s", from);
    memcpy(s, to, strlen(to));
}

Test(bundle_blob, what_was_written_is_read)
{
    fa_blob b;
    char other[17];
    maker_fill(&m, two);
    for (int i = 0; i < FA_PROBLEM_FIELD_COUNT; i++)
        fa_problem_set(&m.row[1].problem, &fa_problem_fields[i], 1000 + i);
    for (int s = 0; s < FA_SOURCE_STEPS; s++) {
        m.step[1][s] = (fa_blob_step){ .launch = { .threads = 64 + s,
                                                   .smem = 70 + s,
                                                   .per_sm = s,
                                                   .cluster = 1 + s % 8,
                                                   .counter = s & 1,
                                                   .pdl = !(s & 1),
                                                   .n_maps = s ? FA_STEP_MAPS : 1 },
                                       .registers = 100 + s,
                                       .spills = 8 * s };
        fa_product_parse(&m.step[1][s].launch.grid, s & 1 ? "sq/128 sk/64 hq b 3" : "rows/16 hkv b");
        strcpy(m.step[1][s].launch.entry, "entry_0_of_31_letters_xxxxxxxxx");
        m.step[1][s].launch.entry[6] = (char)('a' + s);
        for (int k = 0; k < m.step[1][s].launch.n_maps; k++)
            m.step[1][s].launch.map[k] = (fa_map){ k % 4, 8 + s, 16 + k, 64, 2 * k, 3 * k, k % 3, k % 5, k % 4, k % 3 };
    }
    m.image[1].steps = FA_SOURCE_STEPS;
    cr_assert_eq(fa_workspace_parse(&m.image[1].workspace, "counters, scores fp32 b hq sq sk, row_max fp16 b hq sq/64"), FA_OK);
    m.image[1].params = "q o scores row_max scale sk";
    cr_assert_eq(fa_blob_layout(other, fa_operation_find(FA_FORWARD), &m.image[1].workspace, m.image[1].params), FA_OK, "%s",
                 fa_last_error());
    m.image[1].layout = other;
    maker_write(&m);
    for (size_t shift = 0; shift < 8; shift++) { /* at any address, with any number of bytes told or none */
        char *copy = malloc(m.text.n + shift);
        memcpy(copy + shift, m.text.s, m.text.n);
        cr_assert_eq(fa_blob_read(&b, copy + shift, shift & 1 ? SIZE_MAX : m.text.n), FA_OK, "%s", fa_last_error());
        cr_expect(!strcmp(b.name, "bundled") && !strcmp(b.version, FA_VERSION_STRING) && b.rows == 2 && b.images == 2);
        for (uint32_t i = 0; i < 2; i++) {
            const fa_blob_image *x = &b.image[i], *y = &m.image[i];
            cr_expect(!memcmp(&b.row[i].problem, &m.row[i].problem, sizeof(fa_problem)) && !strcmp(b.row[i].why, "a test says so") &&
                      b.row[i].image == (int32_t)i);
            cr_expect(!strcmp(x->arch, y->arch) && !strcmp(x->config, y->config) && !strcmp(x->source, y->source) &&
                      !strcmp(x->check, y->check));
            cr_expect(x->size == MAKER_IMAGE && !memcmp(x->bytes, m.bytes[i], MAKER_IMAGE) && x->ptx == y->ptx &&
                      !memcmp(&x->workspace, &y->workspace, sizeof x->workspace));
            cr_expect(x->operation == fa_operation_find(FA_FORWARD) && !strcmp(x->params, y->params) && x->packing.bytes == (i ? 40 : 64),
                      "%d", x->packing.bytes);
            cr_expect(x->steps == y->steps && !memcmp(x->step, y->step, (size_t)x->steps * sizeof *x->step), "image %u", i);
        }
        fa_blob_free(&b);
        free(copy);
    }
    fa_text again = { 0 };
    fa_blob_write(&m.blob, &again);
    cr_expect(again.n == m.text.n && !memcmp(again.s, m.text.s, again.n), "the same gives the same bytes");
    fa_text_free(&again);
}

/* A bundle that an earlier fagen wrote. It stays as it is when columns are added: it is what is out there. */
Test(bundle_blob, a_bundle_of_before_is_read)
{
    static char bytes[8192];
    fa_blob b;
    char line[256];
    FILE *f = fopen(SEEDS "/two.bundle", "rb");
    if (getenv("FAGEN_TEST_WRITE")) { /* for another format */
        maker_fill(&m, two);
        m.step[0][0].launch.n_maps = 2;
        m.step[0][0].launch.map[0] = (fa_map){ 0, 64, 128, 128, 0, 0, 0, 0, 0, 0 };
        m.step[0][0].launch.map[1] = (fa_map){ 3, 32, 64, 0, 0, 0, 0, 0, 0, 0 };
        m.image[1].steps = 2;
        m.step[1][1] =
            (fa_blob_step){ .launch = { .entry = "second", .threads = 96, .grid = { 1, { { FA_EXTENT_SQ, 32 } } }, .cluster = 1, .pdl = 1 },
                            .registers = 40,
                            .spills = 12 };
        f = f ? freopen(SEEDS "/two.bundle", "wb", f) : fopen(SEEDS "/two.bundle", "wb");
        maker_write(&m);
        cr_assert(f && fwrite(m.text.s, 1, m.text.n, f) == m.text.n && !fclose(f));
        f = fopen(SEEDS "/two.bundle", "rb");
    }
    cr_assert(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    cr_assert_eq(fa_blob_read(&b, bytes, n), FA_OK, "%s", fa_last_error());
    cr_assert(b.rows == 2 && b.images == 2 && b.image[0].steps == 1 && b.image[1].steps == 2);
    fa_problem_print(line, sizeof line, &b.row[1].problem);
    cr_expect_str_eq(line, "bf16,d=64,dv=64,mask=none,o=bf16,align=8,b=1,hq=8,hkv=8,sq=4096,sk=4096");
    fa_step one = { .entry = "fa_fwd",
                    .threads = 32,
                    .smem = 1000,
                    .grid = { 3, { { FA_EXTENT_SQ, 64 }, { FA_EXTENT_HQ, 1 }, { FA_EXTENT_B, 1 } } },
                    .cluster = 1,
                    .n_maps = 2,
                    .map = { { .operand = 0, .cols = 64, .rows = 128, .swizzle = 128 }, { .operand = 3, .cols = 32, .rows = 64 } } };
    fa_step second = { .entry = "second", .threads = 96, .grid = { 1, { { FA_EXTENT_SQ, 32 } } }, .cluster = 1, .pdl = 1 };
    cr_expect(!memcmp(&b.image[0].step[0].launch, &one, sizeof one) && !memcmp(&b.image[1].step[1].launch, &second, sizeof second));
    cr_expect(b.image[1].step[1].registers == 40 && b.image[1].step[1].spills == 12 && b.image[1].ptx &&
              !strcmp(b.image[1].arch, "sm_90a"));
    fa_blob_free(&b);
}

/* One byte changed, to any of some values; cut short anywhere; one byte more. All of it is under a checksum, or is looked at. */
Test(bundle_blob, any_damage_is_refused)
{
    maker_make(&m, two);
    cr_assert_eq(open_copy(m.text.s, m.text.n), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < m.text.n; i++) {
        const unsigned char was = *at(i), to[] = { (unsigned char)(was ^ 1), (unsigned char)(was ^ 0x80), 0xff, 0 };
        for (size_t k = 0; k < sizeof to; k++) {
            *at(i) = to[k];
            if (to[k] != was)
                cr_expect(open_copy(m.text.s, m.text.n) == FA_INVALID && strstr(fa_last_error(), "accepted"), "byte %zu of %zu is %d: %s",
                          i, m.text.n, to[k], fa_last_error());
        }
        *at(i) = was;
        cr_expect_eq(open_copy(m.text.s, i), FA_INVALID, "the first %zu bytes", i);
    }
    fa_text_add(&m.text, "", 1);
    expect_status(open_copy(m.text.s, m.text.n), "accepted: ");
}

/* Under checksums that fit: no number is believed. What is accepted keeps to its ranges, and nothing is read outside (AddressSanitizer). */
Test(bundle_blob, whatever_the_numbers_are)
{
    uint64_t state = 1;
    size_t taken = 0, end;
    maker_make(&m, two);
    const size_t n = m.text.n;
    char *whole = malloc(n);
    memcpy(whole, m.text.s, n);
    end = fa_get32(at(IMAGES_AT));
    for (int i = 0; i < 20000; i++) {
        static const uint32_t values[] = { 0,       1,   2,   3,    4,     7,     8,         63,         64,
                                           65,      255, 256, 1024, 65536, 65537, INT32_MAX, UINT32_MAX, UINT32_MAX - 3,
                                           1u << 30 };
        fa_blob b;
        for (int k = 0; k < 3; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint32_t x = (uint32_t)(state >> 33), where = x % (uint32_t)end / (x & 1 ? 4 : 1) * (x & 1 ? 4 : 1);
            uint32_t value = x & 2 ? values[x / 64 % (sizeof values / sizeof *values)] : fa_get32(at(where)) + (x / 64 % 9) - 4;
            if (where + 4 <= n)
                fa_put_number(at(where), x & 4 ? 4 : 1, value);
            if (!(x & 8))
                break;
        }
        memcpy(at(0), FA_BUNDLE_MAGIC, 8);
        fa_put_number(at(8), 4, FA_BUNDLE_FORMAT);
        fa_blob_sign(at(0), n);
        char *copy = malloc(n);
        memcpy(copy, m.text.s, n);
        if (fa_blob_read(&b, copy, n) == FA_OK) {
            taken++;
            for (uint32_t r = 0; r < b.rows; r++)
                cr_assert((uint32_t)b.row[r].image < b.images && strlen(b.row[r].why) <= 1023);
            for (uint32_t k = 0; k < b.images; k++)
                for (int32_t s = 0; s < b.image[k].steps; s++)
                    cr_assert(b.image[k].step[s].launch.threads >= 1 && b.image[k].step[s].launch.threads <= 1024 &&
                              b.image[k].bytes + b.image[k].size <= (unsigned char *)copy + n);
        }
        fa_blob_free(&b);
        open_copy(copy, n);
        free(copy);
        memcpy(m.text.s, whole, n);
    }
    cr_expect(taken > 100 && taken < 15000, "%zu of 20000 were accepted", taken);
    free(whole);
}

/* The numbers of an image: the least and the most that is taken. */
#define IMAGE(f) &m.image[0].f
#define STEP(f) &m.step[0][0].launch.f
static const struct {
    const char *name;
    int32_t *at, least, most;
} numbers[] = {
    { "ptx", IMAGE(ptx), 0, 1 },
    { "steps", IMAGE(steps), 1, FA_SOURCE_STEPS },
    { "threads", STEP(threads), 1, 1024 },
    { "smem", STEP(smem), 0, 1 << 20 },
    { "per_sm", STEP(per_sm), 0, 32 },
    { "cluster", STEP(cluster), 1, 8 },
    { "counter", STEP(counter), 0, 1 },
    { "pdl", STEP(pdl), 0, 1 },
    { "registers", &m.step[0][0].registers, 0, 65536 },
    { "cols", STEP(map[FA_STEP_MAPS - 1].cols), 1, 256 },
    { "rows", STEP(map[FA_STEP_MAPS - 1].rows), 1, 256 },
    { "swizzle", STEP(map[FA_STEP_MAPS - 1].swizzle), 0, 0 },
    { "swizzle", STEP(map[FA_STEP_MAPS - 1].swizzle), 32, 32 },
    { "swizzle", STEP(map[FA_STEP_MAPS - 1].swizzle), 64, 64 },
    { "swizzle", STEP(map[FA_STEP_MAPS - 1].swizzle), 128, 128 },
    { "boxes", STEP(map[FA_STEP_MAPS - 1].boxes), 0, 256 },
};

static void fill_numbers(size_t i, int32_t v)
{
    maker_fill(&m, two);
    m.bytes[0][MAKER_IMAGE - 1] = 0;
    m.step[0][0].launch.n_maps = FA_STEP_MAPS;
    for (int k = 0; k < FA_STEP_MAPS; k++)
        m.step[0][0].launch.map[k] = (fa_map){ k % 4, 64, 64, 128, 0, 0, 0, 0, 0, 0 };
    for (int s = 1; s < FA_SOURCE_STEPS; s++)
        m.step[0][s] = m.step[0][0];
    *numbers[i].at = v;
    maker_write(&m);
}

Test(bundle_blob, numbers_out_of_range_are_refused)
{
    char says[80];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        fill_numbers(i, numbers[i].least);
        expect_status(open_copy(m.text.s, m.text.n), NULL);
        fill_numbers(i, numbers[i].most);
        expect_status(open_copy(m.text.s, m.text.n), NULL);
        for (int k = 0; k < 2; k++) {
            int32_t v = k ? numbers[i].most + 1 : numbers[i].least - 1;
            if (!strcmp(numbers[i].name, "steps") && k) /* there are not as many to be written */
                continue;
            fill_numbers(i, v);
            snprintf(says, sizeof says, "%s is %d; accepted: ", numbers[i].name, v);
            expect_status(open_copy(m.text.s, m.text.n), says);
        }
    }
}

/* One field at a time of a bundle of two rows and two images. */
#define REFUSED(change, says) \
    do {                      \
        maker_fill(&m, two);  \
        change;               \
        expect_written(says); \
    } while (0)

static void map_of(const char *operand)
{
    m.step[1][0].launch.n_maps = 1;
    m.step[1][0].launch.map[0] = (fa_map){ fa_operand_index(fa_operation_find(FA_FORWARD), operand), 64, 64, 0, 0, 0, 0, 0, 0, 0 };
}

Test(bundle_blob, fields_that_mean_nothing_are_refused)
{
    static char letters[1200];
    memset(letters, 'x', sizeof letters - 1);
    REFUSED((void)0, NULL);
    REFUSED(m.blob.name = "", "name is \"\"; accepted: 1 to 63 letters");
    REFUSED(m.blob.name = letters, "accepted: 1 to 63 letters");
    REFUSED(m.blob.version = "", "version is \"\"; accepted: 1 to 63 letters");
    REFUSED(m.image[1].layout = "0", "layout is \"0\"; accepted: 16 to 16 letters");
    REFUSED(m.image[1].layout = "0123456789abcdef",
            "bundled: image 1: its kernels take other parameters (layout is 0123456789abcdef); accepted by fagen " FA_VERSION_STRING ": ");
    REFUSED(m.image[1].params = "", "image 1: params is \"\"; accepted: 1 to 1535 letters");
    REFUSED(m.image[1].params = "q k v o what",
            "image 1: params: \"what\" is no value of fagen " FA_VERSION_STRING "; accepted: an operand of forward");
    REFUSED(m.image[1].params = "q k v o lse q_ss scale sq", "image 1: its kernels take other parameters");
    REFUSED(m.image[1].op = "", "image 1: op is \"\"; accepted: 1 to 31 letters");
    REFUSED(m.image[1].op = "backward", "image 1: its kernels take other parameters");
    REFUSED(m.image[1].op = "sideward", "image 1: op is \"sideward\"; accepted: an operation that fagen");
    REFUSED(m.row[1].problem.op = FA_BACKWARD, "row 1: op is 1; accepted: 0, as of image 1");
    REFUSED(m.step[1][0].launch.grid.n = 0, "image 1: step 0: grid is 0; accepted: 1 to 6");
    REFUSED(map_of("q"), NULL);
    REFUSED(map_of("lse"), "image 1: step 0: map 0: operand is \"lse\"; accepted: a tensor of the operation forward");
    REFUSED(map_of(""), "image 1: step 0: map 0: operand is \"\"; accepted: a tensor of the operation forward");
    REFUSED(m.image[1].arch = "", "bundled: image 1: arch is \"\"; accepted: 1 to 11 letters");
    REFUSED(m.image[1].arch = "a100", "bundled: image 1: arch is \"a100\"; accepted: sm_80");
    REFUSED(m.image[1].arch = "sm_1", "bundled: image 1: arch is \"sm_1\"; accepted: sm_80");
    REFUSED(m.image[1].config = "no config", "bundled: row 1: config");
    REFUSED(m.image[1].config = letters, "accepted: 1 to 511 letters");
    REFUSED(m.image[1].source = "0000000000000000000000000000000g", "image 1: source is \"0000000000000000000000000000000g\"");
    REFUSED(m.image[1].source = "0000000000000000000000000000001", "accepted: 32 to 32 letters");
    REFUSED(m.image[1].check = "0000000000000000000000000000000g", "accepted: 32 hex digits each");
    REFUSED(m.image[1].check = "00000000000000000000000000000001", "image 1: its checksum is");
    REFUSED(m.image[1].size = 63, "image 1: size is 63; accepted: 64 to 1073741824");
    REFUSED(m.bytes[0][0] = 0, "image 0: bytes: not a cubin");
    REFUSED(m.bytes[1][MAKER_IMAGE - 1] = 1, "image 1: bytes: not PTX text that ends in a NUL");
    REFUSED(m.row[1].image = 2, "bundled: row 1: image 2 is none of 2");
    REFUSED(m.row[1].image = -1, "bundled: row 1: image is -1; accepted: 0 to ");
    REFUSED(m.row[1].why = letters, "row 1: why is \"xxxx");
    REFUSED(m.row[1].problem.d = 0, "bundled: row 1: problem: d is 0; accepted: ");
    REFUSED(m.row[1].problem.d = 577,
            "bundled: row 1: problem: d is 577; accepted: "); /* of a newer fagen, perhaps: FA_INVALID all the same */
    REFUSED(m.row[1].problem.mask = 9, "bundled: row 1: problem: mask is 9; accepted: ");
    REFUSED(m.step[0][0].launch.entry[0] = 0, "image 0: step 0: entry is \"\"; accepted: 1 to 31 letters");
    REFUSED(m.blob.rows = m.blob.images = 0, NULL); /* an empty one is one */
}

Test(bundle_blob, heads_that_do_not_fit_are_refused)
{
    static const struct {
        size_t at;
        int64_t to; /* from the number that is there; else itself */
        bool add;
        const char *says;
    } rows[] = {
        { 0, 0, false, "its magic is " },
        { 8, 2, false, "its format is 2; accepted by fagen " FA_VERSION_STRING ": 3: emit it again" },
        { 8, 4, false, "its format is 4; accepted by fagen " FA_VERSION_STRING ": 3: emit it again" },
        { TABLES_AT, 65, false, "it has 65 tables; accepted: 0 to 64" },
        { TABLES_AT, -1, true, "its tables end at " },
        { TABLES_AT, 1, true, "table 5: " },
        { TABLES_AT, 0, false, "its tables end at 48" },
        { TEXTS_AT, 4, true, "its texts begin with " },
        { TEXTS_AT, 47, false, "accepted: 48 <= texts < images <= size" },
        { TEXTS_AT, 1 << 20, true, "accepted: 48 <= texts < images <= size" },
        { IMAGES_AT, 1, true, "its texts begin with 00 and end in 7f" },
        { SIZE_AT, 8, true, "; accepted: " },
        { SIZE_AT, -8, true, "; accepted: " },
        { SIZE_AT + 4, 1, false, "; accepted: " },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        maker_make(&m, two);
        fa_put_number(at(rows[i].at), 4, (uint64_t)(rows[i].to + (rows[i].add ? (int64_t)fa_get32(at(rows[i].at)) : 0)));
        expect_signed(rows[i].says);
    }
    maker_make(&m, two); /* where nothing but the head tells the size: no more than the head is read of a damaged one */
    fa_blob b;
    unsigned char *head = malloc(FA_BLOB_HEAD);
    memcpy(head, m.text.s, FA_BLOB_HEAD);
    head[IMAGES_AT + 2] ^= 1;
    expect_status(fa_blob_read(&b, head, SIZE_MAX), "the checksum of its head is ");
    fa_blob_free(&b);
    free(head);
    const fa_bundle *out;
    expect_status(fa_bundle_open(NULL, m.text.s, m.text.n), "out: NULL; accepted: ");
    expect_status(fa_bundle_open(&out, NULL, 100), "bytes: NULL; accepted: ");
    expect_status(fa_bundle_open(&out, m.text.s, 0), "it has 0 bytes; accepted: ");
}

/* Format 2 was a struct of pointers, which programs linked: objects that were compiled then are told of, and no pointer is followed. */
Test(bundle_blob, formats_of_before_are_refused)
{
    const struct {
        uint32_t size, format;
        const char *name, *version;
        uint64_t params;
        const void *row, *image;
        uint32_t rows, images;
    } before = { 56, 2, "old", "0.1.0", 1, (const void *)16, (const void *)16, 1, 1 };
    _Static_assert(sizeof before == 56, "what sizeof(fa_bundle) was");
    const fa_bundle *list[] = { (const fa_bundle *)(const void *)&before, NULL };
    fa_bundle_set s;
    expect_status(fa_bundle_set_open(&s, list),
                  "options: bundle 0: its format is 2; accepted by fagen " FA_VERSION_STRING ": 3: emit it again");
    fa_bundle_set_close(&s);
}

/* What a C file defines: the size is told beside the bytes. */
Test(bundle_blob, linked_ones_are_read)
{
    fa_bundle linked = { .word = NULL };
    const fa_bundle *list[] = { &linked, NULL };
    fa_bundle_set s;
    maker_make(&m, two);
    uint64_t *word = malloc(m.text.n);
    memcpy(word, m.text.s, m.text.n);
    memcpy(&linked.magic, FA_BUNDLE_LINKED_MAGIC, sizeof linked.magic);
    linked.word = word;
    for (int k = -1; k <= 1; k++) {
        linked.bytes = m.text.n + (uint64_t)(8 * k);
        expect_status(fa_bundle_set_open(&s, list), k ? " bytes; accepted: " : NULL);
        cr_expect_eq(s.n, k ? 0u : 2u);
        fa_bundle_set_close(&s);
    }
    free(word);
}

/* A column, or a table, by another name is one that this library does not know and one that it misses. */
Test(bundle_blob, fields_that_come_later_break_nothing)
{
    maker_make(&m, two);
    rename_text("spills", "future");
    rename_text("window", "sliced");
    rename_text("maps", "mops"); /* a table, and the column of how many of its rows are a step's */
    expect_signed(NULL);
    maker_fill(&m, two);
    m.step[1][0].spills = 4;
    maker_write(&m);
    rename_text("spills", "future");
    expect_signed("bundled: image 1: step 0: future is 4, and fagen " FA_VERSION_STRING
                  " knows no such field; accepted: 0: a newer one wrote it");
    maker_fill(&m, two);
    m.row[1].problem.window = 128;
    maker_write(&m);
    rename_text("window", "sliced");
    expect_signed("bundled: row 1: sliced is 128, and fagen " FA_VERSION_STRING " knows no such field; accepted: 0: a newer one wrote it");
    maker_make(&m, two); /* one without which nothing can be launched */
    rename_text("cluster", "clastor");
    expect_signed("image 0: step 0: clastor is 1, and fagen ");
    maker_fill(&m, two);
    m.step[0][0].launch.cluster = m.step[1][0].launch.cluster = 0;
    maker_write(&m);
    rename_text("cluster", "clastor");
    expect_signed("image 0: step 0: cluster is 0; accepted: 1 to 8");
    maker_fill(&m, two);
    m.step[0][0].launch.n_maps = 1;
    m.step[0][0].launch.map[0] = (fa_map){ 0, 64, 64, 0, 0, 0, 0, 0, 0, 0 };
    maker_write(&m);
    rename_text("maps", "mops");
    expect_signed("table 4: mops has 1 rows and is not known; accepted by fagen " FA_VERSION_STRING ": bundle, rows, images, steps, maps");
    maker_make(&m, two); /* texts whose meaning is looked up */
    rename_text("sq/64 hq b", "sq/64 hz b");
    expect_signed("bundled: image 0: step 0: grid: \"hz\" of \"sq/64 hz b\" is no extent; accepted: ");
    maker_fill(&m, two);
    fa_workspace_parse(&m.image[1].workspace, "scores fp32 b hq sq sk");
    maker_write(&m);
    expect_signed(NULL);
    rename_text("scores fp32 b hq sq sk", "scores fp99 b hq sq sk");
    expect_signed("bundled: image 1: workspace: \"scores fp99 b hq sq sk\" is no buffer; accepted: ");
    maker_make(&m, two);
    rename_text("pdl", "nap"); /* which is 0 */
    expect_signed(NULL);
    maker_make(&m, two);
    rename_text("size", "arch"); /* which is there */
    expect_signed("images: column arch is there twice");
    maker_make(&m, two);
    rename_text("steps", "image");
    expect_signed("table 3: image has 2 rows and is not known");
}
