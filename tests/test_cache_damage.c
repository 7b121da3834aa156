/* Everything that may happen to the file of a kernel: seen, compiled again, repaired.
 *
 * FAGEN_TEST_FULL=1: every bit of the file of an attention kernel, some two millions, instead of a small kernel's. */
#include "gen/problem.h"
#include "test_cache_fake.h"
#include "test_full.h"
#include <sys/wait.h>

static void make(void)
{
    scratch_make_light();
    fake_make();
}
TestSuite(cache_damage, .init = make, .fini = scratch_remove, .timeout = 3600);

static const char *path_in(const char *root, fa_key k)
{
    char hex[33];
    fa_key_print(hex, k);
    return below("%s/v1/kernels/%.2s/%s.fak", root, hex, hex);
}

static const char *path_of(fa_compiler *c, unsigned key)
{
    fa_source s = fake_source(key);
    fa_key k;
    cr_assert_eq(fa_compiler_key(c, &s, "sm_80", 0, &k), FA_OK);
    return path_in("root", k);
}

static void clear(const char *path)
{
    if (unlink(path) != 0)
        nftw(path, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* The file of key 1 is not to be believed: one compilation, and the next finds it repaired. */
static void mended(fa_store *s, fa_compiler *c, const char *what, size_t n)
{
    int before = fake->compiles[1];
    cr_assert_eq(fake_build(s, c, 1), 1, "%s %zu: not compiled again", what, n);
    cr_assert_eq(fake_build(s, c, 1), 0, "%s %zu: not repaired", what, n);
    cr_assert_eq(fake->compiles[1], before + 1);
}

Test(cache_damage, of_each_bit_and_at_each_length)
{
    fa_store *s = fa_store_open(below("root"), NULL, NULL);
    fa_compiler *c = fake_compiler();
    size_t n;
    cr_assert_eq(fake_build(s, c, 1), 1);
    char path[600];
    snprintf(path, sizeof path, "%s", path_of(c, 1));
    char *whole = slurp(path, &n);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        whole[bit / 8] ^= (char)(1 << bit % 8);
        spill(path, whole, n);
        whole[bit / 8] ^= (char)(1 << bit % 8);
        mended(s, c, "bit", bit);
    }
    for (size_t cut = 0; cut < n; cut++) {
        spill(path, whole, cut);
        mended(s, c, "cut at", cut);
    }
    fprintf(stderr, "%zu bits and %zu lengths: each compiled again and repaired\n", 8 * n, n);
    free(whole);
    fa_compiler_close(c);
    fa_store_close(s);
}

Test(cache_damage, by_what_is_no_such_file)
{
    fa_store *s = fa_store_open(below("root"), NULL, NULL);
    fa_compiler *c = fake_compiler();
    char path[600], aside[600];
    size_t n;
    cr_assert_eq(fake_build(s, c, 1), 1);
    snprintf(path, sizeof path, "%s", path_of(c, 1));
    snprintf(aside, sizeof aside, "%s", below("aside"));
    char *whole = slurp(path, &n);
    spill(aside, whole, n);
    clear(path);
    cr_assert_eq(symlink(aside, path), 0);
    mended(s, c, "link to the right bytes", 0);
    clear(path);
    cr_assert_eq(symlink("nowhere", path), 0);
    mended(s, c, "link to nothing", 0);
    clear(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    mended(s, c, "fifo", 0);
    clear(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    mended(s, c, "folder", 0);
    clear(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    char inner[700];
    snprintf(inner, sizeof inner, "%s/inner", path);
    spill(inner, "x", 1);
    mended(s, c, "folder with a file", 0);
    clear(path);
    cr_assert_eq(link(aside, path), 0);
    cr_assert_eq(chmod(path, 0602), 0);
    mended(s, c, "writable by others", 0);
    clear(path);
    spill(path, whole, n);
    cr_assert_eq(truncate(path, (off_t)100 << 20), 0);
    mended(s, c, "oversize", 0);
    if (geteuid() == 0) {
        clear(path);
        spill(path, whole, n);
        cr_assert_eq(chown(path, 12345, 12345), 0);
        mended(s, c, "of another user", 0);
    }
    free(whole);
    fa_compiler_close(c);
    fa_store_close(s);
}

Test(cache_damage, by_swapping)
{
    enum { KEYS = 40, SWAPS = 500 };
    fa_store *s = fa_store_open(below("root"), NULL, NULL);
    fa_compiler *c = fake_compiler();
    char path[KEYS][600];
    uint64_t x = 88172645463325252u;
    for (unsigned k = 0; k < KEYS; k++) {
        cr_assert_eq(fake_build(s, c, k), 1);
        snprintf(path[k], sizeof path[k], "%s", path_of(c, k));
    }
    for (int i = 0; i < SWAPS; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        unsigned a = (unsigned)(x % KEYS), b = (a + 1 + (unsigned)(x >> 32) % (KEYS - 1)) % KEYS;
        cr_assert(rename(path[a], below("aside")) == 0 && rename(path[b], path[a]) == 0 && rename(below("aside"), path[b]) == 0);
        cr_assert_eq(fake_build(s, c, a), 1);
        cr_assert_eq(fake_build(s, c, b), 1);
        cr_assert_eq(fake_build(s, c, a) + fake_build(s, c, b), 0);
    }
    fa_compiler_close(c);
    fa_store_close(s);
}

static const char *const small = "extern \"C\" __global__ void k(float *p) { p[threadIdx.x] = 1.f; }\n";

/* Puts a kernel of the real compiler into the root "shared", and returns its key. */
static fa_key real_entry(bool large)
{
    fa_key k;
    if (large) {
        fa_context *ctx;
        fa_options o = FA_OPTIONS_INIT;
        fa_problem p = FA_PROBLEM_INIT, asked;
        fa_selection selection;
        fa_source s;
        o.cache_dir = below("shared-root");
        o.device = "sim:sm_80";
        p.dtype = FA_BF16;
        p.d = 64;
        asked = p;
        cr_assert_eq(fa_problem_normalize(&p, &asked), FA_OK);
        cr_assert_eq(fa_create(&ctx, &o), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_prepare(ctx, &p), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_select(ctx, &p, &selection, &s), FA_OK);
        cr_assert_eq(fa_compiler_key(fa_context_compiler(ctx), &s, "sm_80", 1, &k), FA_OK);
        fa_source_free(&s);
        fa_destroy(ctx);
    } else {
        fa_compiler *c = fa_compiler_open(NULL);
        fa_store *store = fa_store_open(below("shared-root"), NULL, NULL);
        fa_source s = { .text = (char *)small, .lined = (char *)small, .hash = { 1, 2 }, .name = "k.cu" };
        fa_entry e;
        bool cached;
        cr_assert_eq(fa_build_image(store, c, &s, "sm_80", 0, (fa_subject){ NULL, NULL }, false, &e, &cached), FA_OK, "%s",
                     fa_last_error());
        k = e.key;
        fa_entry_free(&e);
        fa_compiler_close(c);
        fa_store_close(store);
    }
    return k;
}

static char *slurp_all(const char *path, size_t *n)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0)
        abort();
    char *buf = calloc(1, (size_t)st.st_size + 1);
    *n = fread(buf, 1, (size_t)st.st_size, f);
    fclose(f);
    return buf;
}

/* One part of the bits, in a process of its own, on a copy of the file in a root that is only read, where what is bad stays. */
static int flip_part(const char *path, fa_key k, size_t from, size_t to)
{
    char *roots, part[32];
    size_t n;
    snprintf(part, sizeof part, "part%zu", from);
    char *whole = slurp_all(path, &n);
    fa_store *s = fa_store_open(below("%s", part), NULL, NULL); /* makes its folders */
    fa_store_close(s);
    char hex[33];
    fa_key_print(hex, k);
    mkdir(below("%s/v1/kernels/%.2s", part, hex), 0700);
    const char *copy = path_in(part, k);
    spill(copy, whole, n);
    if (asprintf(&roots, "%s:%s", below("mine%zu", from), below("%s", part)) < 0)
        return 1;
    s = fa_store_open(roots, NULL, NULL);
    fa_entry e;
    const char *arch = whole + 32; /* of the header */
    int fd = open(copy, O_WRONLY), wrong = !fa_entry_get(s, k, arch, &e);
    fa_entry_free(&e);
    for (size_t bit = from; bit < to && !wrong; bit++) {
        char c = (char)(whole[bit / 8] ^ 1 << bit % 8);
        if (pwrite(fd, &c, 1, (off_t)(bit / 8)) != 1)
            return 1;
        if (fa_entry_get(s, k, arch, &e)) {
            fprintf(stderr, "bit %zu is not noticed\n", bit);
            fa_entry_free(&e);
            wrong = 1;
        }
        if (pwrite(fd, &whole[bit / 8], 1, (off_t)(bit / 8)) != 1)
            return 1;
    }
    if (!wrong && !fa_entry_get(s, k, arch, &e))
        wrong = 1;
    fa_entry_free(&e);
    close(fd);
    fa_store_close(s);
    free(roots);
    free(whole);
    return wrong;
}

Test(cache_damage, of_each_bit_of_a_real_kernel)
{
    enum { PARTS = 2 };
    fa_key k = real_entry(full());
    char path[600];
    snprintf(path, sizeof path, "%s", path_in("shared-root", k));
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    size_t bits = 8 * (size_t)st.st_size;
    for (size_t p = 0; p < PARTS; p++)
        if (fork() == 0)
            _exit(flip_part(path, k, bits * p / PARTS, bits * (p + 1) / PARTS));
    for (int p = 0; p < PARTS; p++) {
        int status;
        wait(&status);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    fprintf(stderr, "%zu bits of a file of %lld bytes: all noticed\n", bits, (long long)st.st_size);
}
