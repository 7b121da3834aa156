/* Archives: what is exported comes back, and one with any fault changes nothing. */
#include "cache/archive.h"
#include "cache/archive_head.h"
#include "cache/scan.h"
#include "gen/problem.h"
#include "test_cache_entries.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <xxhash.h>

TestSuite(cache_archive, .init = scratch_make, .fini = scratch_remove, .timeout = 120);

static fa_record record_of(int br)
{
    fa_problem p = FA_PROBLEM_INIT;
    fa_record r;
    char config[64];
    memset(&r, 0, sizeof r);
    p.dtype = FA_BF16;
    p.d = 64;
    p.b = 1, p.hq = p.hkv = 8, p.sq = p.sk = 1024;
    cr_assert_eq(fa_problem_normalize(&r.problem, &p), FA_OK);
    strcpy(r.chip, "NVIDIA H200");
    strcpy(r.arch, "sm_90a");
    snprintf(config, sizeof config, "flash_fwd_mma:br=%d,bc=64,warps=4", br);
    cr_assert_eq(fa_config_parse(&r.config, config), FA_OK);
    r.how = FA_MEASURED;
    r.seconds = br;
    strcpy(r.date, "2026-11-21T04:31:00Z");
    return r;
}

/* An archive of `entries` kernels and `lines` records. */
static const char *archive_of(int entries, int lines)
{
    const char *path = below("made.archive");
    fa_archive_count n;
    fa_store *s = fa_store_open(below("from"), NULL, NULL);
    for (int i = 0; i < entries; i++)
        cr_assert(entry_put(s, (uint64_t)i, 100));
    for (int i = 0; i < lines; i++) {
        fa_record r = record_of(16 * (i + 1));
        cr_assert(fa_record_append(s, &r));
    }
    cr_assert_eq(fa_archive_export(s, path, NULL, true, &n), FA_OK, "%s", fa_last_error());
    cr_assert(n.entries == (size_t)entries && n.lines == (size_t)lines && n.skipped == 0);
    fa_store_close(s);
    return path;
}

static int count_files(void *user, const fa_item *i)
{
    int *n = user;
    n[i->area]++;
    return 0;
}

static size_t lines_in(fa_store *s)
{
    fa_records rs = fa_records_load(s, NULL, NULL);
    size_t n = rs.n;
    fa_records_free(&rs);
    return n;
}

Test(cache_archive, round_trip)
{
    const char *path = archive_of(20, 5);
    fa_archive_count n;
    int files[FA_AREAS] = { 0 };
    fa_store *s = fa_store_open(below("to"), NULL, NULL);
    cr_assert(entry_put(s, 3, 100));
    cr_assert_eq(fa_archive_import(s, path, true, true, &n), FA_OK, "%s", fa_last_error());
    cr_assert(n.entries == 19 && n.entries_there == 1 && n.lines == 5 && n.lines_there == 0);
    for (uint64_t i = 0; i < 20; i++)
        cr_assert_eq(entry_hit(s, i, 100), 1, "%d", (int)i);
    cr_assert_eq(lines_in(s), 5);
    cr_assert_eq(fa_archive_import(s, path, true, true, &n), FA_OK);
    cr_assert(n.entries == 0 && n.entries_there == 20 && n.lines == 0 && n.lines_there == 5, "twice is once");
    cr_assert_eq(lines_in(s), 5);
    fa_scan(s, count_files, files);
    cr_assert(files[FA_AREA_KERNELS] == 20 && files[FA_AREA_FOREIGN] == 0);
    const char *again = below("again.archive");
    cr_assert_eq(fa_archive_export(s, again, NULL, true, &n), FA_OK);
    size_t a, b;
    char *x = slurp(path, &a), *y = slurp(again, &b);
    cr_assert(a == b && memcmp(x, y, a) == 0, "the same store gives the same bytes");
    free(x);
    free(y);
    cr_assert_eq(fa_archive_export(s, again, "sm_90a", true, &n), FA_OK);
    cr_assert(n.entries == 0 && n.lines == 5);
    cr_assert_eq(fa_archive_export(s, again, "sm_80", true, &n), FA_OK);
    cr_assert(n.entries == 20 && n.lines == 0, "the records are of another arch");
    fa_store_close(s);
}

Test(cache_archive, foreign_entries_are_not_loaded_until_trusted)
{
    const char *path = archive_of(5, 1);
    fa_archive_count n;
    int files[FA_AREAS] = { 0 };
    fa_store *s = fa_store_open(below("to"), NULL, NULL);
    cr_assert_eq(fa_archive_import(s, path, false, true, &n), FA_OK);
    cr_assert(n.entries == 5 && n.lines == 1);
    for (uint64_t i = 0; i < 5; i++)
        cr_assert_eq(entry_hit(s, i, 100), 0);
    fa_scan(s, count_files, files);
    cr_assert(files[FA_AREA_KERNELS] == 0 && files[FA_AREA_FOREIGN] == 5);
    cr_assert_eq(fa_archive_import(s, path, false, true, &n), FA_OK);
    cr_assert(n.entries == 0 && n.entries_there == 5);
    cr_assert_eq(fa_archive_import(s, path, true, true, &n), FA_OK);
    cr_assert_eq(n.entries, 5);
    memset(files, 0, sizeof files);
    fa_scan(s, count_files, files);
    cr_assert(files[FA_AREA_KERNELS] == 5 && files[FA_AREA_FOREIGN] == 0);
    fa_store_close(s);
}

static void seal(char *bytes, size_t size)
{
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, size - sizeof sum));
    memcpy(bytes + size - sizeof sum, &sum, sizeof sum);
}

static void put_u32(char *b, size_t at, uint32_t v)
{
    memcpy(b + at, &v, sizeof v);
}

static void put_u64(char *b, size_t at, uint64_t v)
{
    memcpy(b + at, &v, sizeof v);
}

#define FIRST sizeof(archive_head) /* the first entry: 32 digits, 8 bytes size, its file */

static uint64_t first_size(const char *b)
{
    uint64_t n;
    memcpy(&n, b + FIRST + 32, sizeof n);
    return n;
}

#define SPOIL(name) static void name(char *b, size_t *size)
SPOIL(h_magic)
{
    (void)size;
    b[0] = 'F';
}
SPOIL(h_version)
{
    (void)size;
    put_u32(b, 8, 2);
}
SPOIL(h_version_zero)
{
    (void)size;
    put_u32(b, 8, 0);
}
SPOIL(h_count_up)
{
    uint32_t n;
    (void)size;
    memcpy(&n, b + 12, 4);
    put_u32(b, 12, n + 1);
}
SPOIL(h_count_down)
{
    uint32_t n;
    (void)size;
    memcpy(&n, b + 12, 4);
    put_u32(b, 12, n - 1);
}
SPOIL(h_count_huge)
{
    (void)size;
    put_u32(b, 12, UINT32_MAX);
}
SPOIL(h_count_most)
{
    (void)size;
    put_u32(b, 12, FA_ARCHIVE_ENTRIES);
}
SPOIL(h_count_zero)
{
    (void)size;
    put_u32(b, 12, 0);
}
SPOIL(h_lines_up)
{
    uint32_t n;
    (void)size;
    memcpy(&n, b + 16, 4);
    put_u32(b, 16, n + 1);
}
SPOIL(h_lines_down)
{
    uint32_t n;
    (void)size;
    memcpy(&n, b + 16, 4);
    put_u32(b, 16, n - 1);
}
SPOIL(h_lines_huge)
{
    (void)size;
    put_u32(b, 16, UINT32_MAX);
}
SPOIL(h_zero)
{
    (void)size;
    put_u32(b, 20, 1);
}
SPOIL(h_size_up)
{
    put_u64(b, 24, *size + 1);
}
SPOIL(h_size_max)
{
    (void)size;
    put_u64(b, 24, UINT64_MAX);
}
SPOIL(h_cut)
{
    *size -= 20;
    put_u64(b, 24, *size);
}
SPOIL(h_cut_half)
{
    *size /= 2;
    put_u64(b, 24, *size);
}
SPOIL(h_cut_head)
{
    *size = sizeof(archive_head) + 16;
    put_u64(b, 24, *size);
}
SPOIL(h_empty)
{
    (void)b;
    *size = 0;
}
SPOIL(h_short)
{
    (void)b;
    *size = 7;
}
SPOIL(h_longer)
{
    memset(b + *size, 0, 64);
    *size += 64;
    put_u64(b, 24, *size);
}
SPOIL(h_traversal)
{
    (void)size;
    memcpy(b + FIRST, "../../../../../../../../etc/pass", 32);
}
SPOIL(h_absolute)
{
    (void)size;
    memcpy(b + FIRST, "/etc/cron.d/aaaaaaaaaaaaaaaaaaaa", 32);
}
SPOIL(h_upper)
{
    (void)size;
    for (size_t i = 0; i < 32; i++)
        b[FIRST + i] = 'A';
}
SPOIL(h_nul_name)
{
    (void)size;
    b[FIRST + 5] = 0;
}
SPOIL(h_space_name)
{
    (void)size;
    b[FIRST + 31] = ' ';
}
SPOIL(h_other_name)
{
    (void)size;
    b[FIRST + 31] = b[FIRST + 31] == '0' ? '1' : '0';
}
SPOIL(h_entry_zero)
{
    (void)size;
    put_u64(b, FIRST + 32, 0);
}
SPOIL(h_entry_max)
{
    (void)size;
    put_u64(b, FIRST + 32, UINT64_MAX);
}
SPOIL(h_entry_wrap)
{
    (void)size;
    put_u64(b, FIRST + 32, (uint64_t)0 - 40);
}
SPOIL(h_entry_cap)
{
    (void)size;
    put_u64(b, FIRST + 32, ((uint64_t)64 << 20) + 1);
}
SPOIL(h_entry_up)
{
    (void)size;
    put_u64(b, FIRST + 32, first_size(b) + 1);
}
SPOIL(h_entry_down)
{
    (void)size;
    put_u64(b, FIRST + 32, first_size(b) - 1);
}
SPOIL(h_entry_flip)
{
    (void)size;
    b[FIRST + 40 + 200] ^= 1;
}
SPOIL(h_entry_magic)
{
    (void)size;
    b[FIRST + 40] = 'X';
}
SPOIL(h_entry_sum)
{
    (void)size;
    b[FIRST + 40 + first_size(b) - 1] ^= 1;
}
/* Another arch, sealed again: the description does not say so. */
SPOIL(h_entry_arch)
{
    (void)size;
    strcpy(b + FIRST + 40 + 32, "sm_90a");
    seal(b + FIRST + 40, first_size(b));
}
SPOIL(h_entry_key)
{
    (void)size;
    b[FIRST + 40 + 16] ^= 1;
    seal(b + FIRST + 40, first_size(b));
}
SPOIL(h_entry_about)
{
    (void)size;
    char *p = memmem(b + FIRST + 40, first_size(b), "c++17", 5);
    p[3] = '2', p[4] = '0';
    seal(b + FIRST + 40, first_size(b));
}
SPOIL(h_entry_twice)
{
    size_t whole = 40 + first_size(b);
    memmove(b + FIRST + 2 * whole, b + FIRST + whole, *size - FIRST - whole);
    memcpy(b + FIRST + whole, b + FIRST, whole);
    *size += whole;
    put_u64(b, 24, *size);
    put_u32(b, 12, 4);
}
SPOIL(h_entry_swapped)
{
    char other[4096];
    size_t whole = 40 + first_size(b);
    (void)size;
    memcpy(other, b + FIRST, whole);
    memmove(b + FIRST, b + FIRST + whole, whole);
    memcpy(b + FIRST + whole, other, whole);
}
static char *first_line(char *b, size_t size)
{
    return (char *)memmem(b, size, "{\"problem\":\"bf16,d=64,dv=64,mask=none,o=bf16,align=16,b=1", 57) - 8;
}
SPOIL(h_line_zero)
{
    put_u64(first_line(b, *size), 0, 0);
}
SPOIL(h_line_max)
{
    put_u64(first_line(b, *size), 0, UINT64_MAX);
}
SPOIL(h_line_broken)
{
    first_line(b, *size)[8] = '[';
}
SPOIL(h_line_nul)
{
    first_line(b, *size)[20] = 0;
}
SPOIL(h_line_newline)
{
    first_line(b, *size)[20] = '\n';
}
SPOIL(h_not_sealed)
{
    b[*size - 100] ^= 1;
}
SPOIL(h_sum)
{
    b[*size - 1] ^= 1;
}

/* Faults that a right checksum does not excuse; it is made again where seal is set. */
static const struct {
    const char *name, *says;
    void (*spoil)(char *b, size_t *size);
    bool seal;
} hostile[] = {
/* clang-format off */
#define H(f, says, s) { #f, says, f, s }
    /* clang-format on */
    H(h_magic, "not an archive", true),
    H(h_version, "format version", true),
    H(h_version_zero, "format version", true),
    H(h_count_up, "", true),
    H(h_count_down, "", true),
    H(h_count_huge, "counts", true),
    H(h_count_most, "", true),
    H(h_count_zero, "", true),
    H(h_lines_up, "", true),
    H(h_lines_down, "more in it", true),
    H(h_lines_huge, "counts", true),
    H(h_zero, "counts", true),
    H(h_size_up, "meant to be", true),
    H(h_size_max, "meant to be", true),
    H(h_cut, "", true),
    H(h_cut_half, "", true),
    H(h_cut_head, "", true),
    H(h_empty, "not an archive", false),
    H(h_short, "not an archive", false),
    H(h_longer, "", true),
    H(h_traversal, "32 hex digits", true),
    H(h_absolute, "32 hex digits", true),
    H(h_upper, "32 hex digits", true),
    H(h_nul_name, "32 hex digits", true),
    H(h_space_name, "32 hex digits", true),
    H(h_other_name, "its name is not its key", true),
    H(h_entry_zero, "size", true),
    H(h_entry_max, "size", true),
    H(h_entry_wrap, "size", true),
    H(h_entry_cap, "size", true),
    H(h_entry_up, "", true),
    H(h_entry_down, "", true),
    H(h_entry_flip, "checksum", true),
    H(h_entry_magic, "not a kernel entry", true),
    H(h_entry_sum, "checksum", true),
    H(h_entry_arch, "does not follow", true),
    H(h_entry_key, "its name is not its key", true),
    H(h_entry_about, "does not follow", true),
    H(h_entry_twice, "twice", true),
    H(h_entry_swapped, "out of order", true),
    H(h_line_zero, "record 1", true),
    H(h_line_max, "record 1", true),
    H(h_line_broken, "record 1", true),
    H(h_line_nul, "record 1", true),
    H(h_line_newline, "record 1", true),
    H(h_not_sealed, "checksum", false),
    H(h_sum, "checksum", false),
};

static size_t nothing_below(const char *folder)
{
    char *command;
    size_t n = 0;
    cr_assert_gt(asprintf(&command, "find %s -type f | wc -l", folder), 0);
    FILE *f = popen(command, "r");
    cr_assert(f && fscanf(f, "%zu", &n) == 1);
    pclose(f);
    free(command);
    return n;
}

Test(cache_archive, hostile_archives_change_nothing)
{
    size_t size;
    char *whole = slurp(archive_of(3, 2), &size);
    fa_store *s = fa_store_open(below("to"), NULL, NULL);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char *b = calloc(1, 2 * size + 4096);
        size_t n = size;
        memcpy(b, whole, size);
        hostile[i].spoil(b, &n);
        if (hostile[i].seal)
            seal(b, n);
        spill(below("bad.archive"), b, n);
        for (int trusted = 0; trusted < 2; trusted++) {
            fa_archive_count count;
            cr_expect_eq(fa_archive_import(s, below("bad.archive"), trusted, true, &count), FA_INVALID, "%s", hostile[i].name);
            cr_expect(strstr(fa_last_error(), hostile[i].says), "%s: %s", hostile[i].name, fa_last_error());
        }
        cr_expect_eq(nothing_below(below("to")), 0, "%s left something", hostile[i].name);
        free(b);
    }
    free(whole);
    fa_store_close(s);
}

Test(cache_archive, every_cut_and_every_flipped_byte_is_refused)
{
    size_t size;
    char *whole = slurp(archive_of(2, 1), &size), why[200];
    fa_archive p;
    cr_assert(fa_archive_unpack(&p, whole, size, why, sizeof why), "%s", why);
    cr_assert(p.n == 2 && p.n_lines == 1);
    fa_archive_free(&p);
    for (size_t cut = 0; cut < size; cut++) {
        char *part = malloc(cut + 1); /* of its own size, so that a read beyond it is seen */
        memcpy(part, whole, cut);
        cr_assert_not(fa_archive_unpack(&p, part, cut, why, sizeof why), "cut at %zu", cut);
        fa_archive_free(&p);
        free(part);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        whole[bit / 8] ^= (char)(1 << bit % 8);
        cr_assert_not(fa_archive_unpack(&p, whole, size, why, sizeof why), "bit %zu", bit);
        fa_archive_free(&p);
        whole[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(whole);
}

Test(cache_archive, what_is_no_file_is_told)
{
    fa_archive_count n;
    fa_store *s = fa_store_open(below("to"), NULL, NULL), *none = fa_store_open("", NULL, NULL);
    cr_assert_eq(fa_archive_import(s, below("absent"), true, true, &n), FA_IO);
    cr_assert_eq(fa_archive_import(s, scratch, true, true, &n), FA_IO);
    cr_assert_eq(mkfifo(below("fifo"), 0600), 0);
    cr_assert_eq(fa_archive_import(s, below("fifo"), true, true, &n), FA_IO);
    int fd = open(below("huge"), O_CREAT | O_WRONLY, 0600);
    cr_assert_eq(ftruncate(fd, (off_t)FA_ARCHIVE_CAP + 1), 0);
    close(fd);
    cr_assert_eq(fa_archive_import(s, below("huge"), true, true, &n), FA_INVALID);
    cr_assert_eq(fa_archive_import(none, archive_of(1, 0), true, true, &n), FA_IO);
    cr_assert_eq(fa_archive_export(s, below("no/such/folder"), NULL, false, &n), FA_IO);
    char name[5000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    cr_assert_eq(fa_archive_export(s, name, NULL, false, &n), FA_IO);
    cr_assert(strstr(fa_last_error(), "too long"));
    mkdir(below("folder"), 0700);
    cr_assert_eq(fa_archive_export(s, below("folder"), NULL, false, &n), FA_IO);
    cr_assert_eq(fa_archive_export(none, below("empty.archive"), NULL, true, &n), FA_OK);
    cr_assert_eq(fa_archive_import(s, below("empty.archive"), true, true, &n), FA_OK);
    cr_assert(n.entries == 0 && n.lines == 0);
    fa_store_close(s);
    fa_store_close(none);
}

/* Entries of an older fagen do not say what their keys were made of; damaged ones are worth nothing. */
Test(cache_archive, what_cannot_be_vouched_for_is_left_out)
{
    fa_archive_count n;
    fa_store *s = fa_store_open(below("from"), NULL, NULL);
    fa_entry old = entry_made(1, 10);
    strcpy(old.metadata, "{}");
    old.metadata_size = 2;
    cr_assert(fa_entry_put(s, &old) && entry_put(s, 2, 10) && entry_put(s, 3, 10));
    fa_entry_free(&old);
    char hex[33];
    fa_key_print(hex, key_made(3));
    spill(below("from/v1/kernels/%.2s/%s.fak", hex, hex), "x", 1);
    cr_assert_eq(fa_archive_export(s, below("p"), NULL, true, &n), FA_OK);
    cr_assert(n.entries == 1 && n.skipped == 2);
    fa_store_close(s);
}

/* ---- what an import that died left ---- */

static int tellings;
static void tell(void *user, const char *message)
{
    (void)user;
    tellings += strstr(message, "did not end") != NULL;
}

/* Whatever stands in the journal's place: nothing but what an import may add goes, and the store is of use. */
Test(cache_archive, journals)
{
    char hex[33], add[80], lines[200];
    fa_archive_count n;
    fa_store *s = fa_store_open(below("to"), tell, NULL);
    cr_assert(entry_put(s, 1, 100) && entry_put(s, 2, 100));
    fa_store_close(s);
    spill(below("to/v1/mine"), "keep\n", 5);
    fa_key_print(hex, key_made(1));
    snprintf(add, sizeof add, "fagen import 1\nkernels\nnew %s\n", hex);
    snprintf(lines, sizeof lines, "fagen import 1\nkernels\nfile .. mine 0 5\nkeep\nnew %s\n", hex);
    const struct {
        const char *text;
        int hit; /* whether kernel 1 is there afterwards */
    } rows[] = { { "", 1 },
                 { "nonsense", 1 },
                 { "fagen import 2\nkernels\nend\n", 1 },
                 { "fagen import 1\nquarantine\nend\n", 1 },
                 { "fagen import 1\nkernels\n", 1 },
                 { "fagen import 1\nkernels\nnew ../../../../../../../../etc/pass\nend\n", 1 },
                 { "fagen import 1\nkernels\nfile ../.. mine 0 18446744073709551615\nend\n", 1 },
                 { "fagen import 1\nkernels\nfile absent mine 0 5\nkeep\nend\n", 1 },
                 { lines, 1 },
                 { add, 0 } };
    char archive[300];
    snprintf(archive, sizeof archive, "%s", archive_of(3, 2));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tellings = 0;
        spill(below("to/v1/import"), rows[i].text, strlen(rows[i].text));
        cr_assert_eq(chmod(below("to/v1/import"), 0600), 0);
        s = fa_store_open(below("to"), tell, NULL);
        cr_expect_eq(tellings, 1, "%zu", i);
        cr_expect(access(below("to/v1/import"), F_OK) != 0, "%zu", i);
        cr_expect(access(below("to/v1/mine"), F_OK) == 0, "%zu", i);
        cr_expect(entry_hit(s, 1, 100) == rows[i].hit && entry_hit(s, 2, 100) == 1, "%zu", i);
        fa_store_close(s);
    }
    size_t size;
    char *kept = slurp(below("to/v1/mine"), &size);
    cr_assert_str_eq(kept, "keep\n");
    free(kept);
    /* a folder is nobody's journal: an import says that it is in the way */
    cr_assert_eq(mkdir(below("to/v1/import"), 0700), 0);
    s = fa_store_open(below("to"), tell, NULL);
    cr_assert_eq(fa_archive_import(s, archive, true, true, &n), FA_IO);
    cr_assert(strstr(fa_last_error(), "an import that did not end cannot be taken back"), "%s", fa_last_error());
    cr_assert_eq(rmdir(below("to/v1/import")), 0);
    cr_assert_eq(fa_archive_import(s, archive, true, true, &n), FA_OK, "%s", fa_last_error());
    fa_store_close(s);
}
