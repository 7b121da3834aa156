/* Compiled kernels on disk: what is put comes back, and nothing else ever does. */
#include "cache/entry.h"
#include "cache/lock.h"
#include "cache/scan.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

TestSuite(cache_entry, .init = scratch_make, .fini = scratch_remove, .timeout = 120);

static fa_key key_of(uint64_t n)
{
    const char *options[] = { "-a", "-b" };
    uint64_t hash[2] = { n, ~n };
    return fa_key_make(hash, options, 2, "sm_80", "nvrtc 13.0");
}

static fa_entry entry_of(fa_key k, const char *image)
{
    fa_entry e = { .key = k, .arch = "sm_80", .ptx = 1 };
    e.image = (char *)image;
    e.image_size = strlen(image) + 1;
    e.log = "a log";
    e.log_size = 5;
    e.metadata = "{}";
    e.metadata_size = 2;
    return e;
}

static const char *file_of(fa_key k)
{
    char hex[33];
    fa_key_print(hex, k);
    return below("v1/kernels/%.2s/%s.fak", hex, hex);
}

static bool hit(fa_store *s, fa_key k, const char *image)
{
    fa_entry e;
    bool got = fa_entry_get(s, k, "sm_80", &e);
    if (got) {
        cr_assert_str_eq(e.image, image);
        cr_assert_eq(e.image_size, strlen(image) + 1);
        cr_assert_str_eq(e.log, "a log");
        cr_assert_str_eq(e.metadata, "{}");
        cr_assert_eq(e.ptx, 1);
        fa_entry_free(&e);
    }
    return got;
}

Test(cache_entry, key_takes_every_part_in)
{
    const char *ab[] = { "a", "b" }, *ba[] = { "b", "a" }, *joined[] = { "ab", "" };
    uint64_t h[2] = { 1, 2 }, g[2] = { 2, 1 };
    fa_key k[] = { fa_key_make(h, ab, 2, "sm_90", "c"),     fa_key_make(h, ba, 2, "sm_90", "c"),  fa_key_make(h, ab, 1, "sm_90", "c"),
                   fa_key_make(g, ab, 2, "sm_90", "c"),     fa_key_make(h, ab, 2, "sm_90a", "c"), fa_key_make(h, ab, 2, "sm_90", "d"),
                   fa_key_make(h, joined, 2, "sm_90", "c"), fa_key_make(h, ab, 0, "sm_90", "c") };
    for (size_t i = 0; i < sizeof k / sizeof *k; i++)
        for (size_t j = 0; j < i; j++)
            cr_assert(k[i].lo != k[j].lo && k[i].hi != k[j].hi, "%zu %zu", i, j);
}

Test(cache_entry, key_prints_and_parses)
{
    fa_key k = key_of(7), back;
    char hex[33];
    fa_key_print(hex, k);
    cr_assert(fa_key_parse(&back, hex) && back.lo == k.lo && back.hi == k.hi);
    const char *bad[] = { "", "00", "0123456789abcdef0123456789abcdeF", "0123456789abcdef0123456789abcdef0",
                          "../../../../../../../../etc/pass" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(fa_key_parse(&back, bad[i]), "%s", bad[i]);
}

Test(cache_entry, round_trip_cold_and_warm)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_entry e = entry_of(key_of(1), "ptx text");
    cr_assert_not(hit(s, e.key, "ptx text"));
    cr_assert(fa_entry_put(s, &e));
    cr_assert(hit(s, e.key, "ptx text"));
    cr_assert_not(hit(s, key_of(2), "ptx text"));
    fa_store_close(s);
    s = fa_store_open(scratch, NULL, NULL);
    cr_assert(hit(s, e.key, "ptx text"));
    fa_entry bare = { .key = key_of(3), .arch = "sm_90a", .image = "\0\1\2", .image_size = 3 }, back;
    cr_assert(fa_entry_put(s, &bare));
    cr_assert(fa_entry_get(s, bare.key, "sm_90a", &back));
    cr_assert(back.image_size == 3 && memcmp(back.image, "\0\1\2", 4) == 0 && back.log_size == 0 && back.log[0] == 0);
    fa_entry_free(&back);
    fa_store_close(s);
}

Test(cache_entry, truncation_at_every_byte_is_a_miss_and_repaired)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_entry e = entry_of(key_of(1), "x");
    const char *path = file_of(e.key);
    fa_entry_put(s, &e);
    size_t n;
    char *whole = slurp(path, &n);
    for (size_t cut = 0; cut < n; cut++) {
        spill(path, whole, cut);
        cr_assert_not(hit(s, e.key, "x"), "cut at %zu", cut);
        cr_assert_neq(access(path, F_OK), 0, "the bad file stays");
    }
    whole[n] = 0;
    spill(path, whole, n + 1);
    cr_assert_not(hit(s, e.key, "x"), "one byte too many");
    cr_assert(fa_entry_put(s, &e) && hit(s, e.key, "x"));
    free(whole);
    fa_store_close(s);
}

Test(cache_entry, every_flipped_bit_is_a_miss)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_entry e = entry_of(key_of(1), "x");
    const char *path = file_of(e.key);
    fa_entry_put(s, &e);
    size_t n;
    char *whole = slurp(path, &n);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        whole[bit / 8] ^= (char)(1 << bit % 8);
        spill(path, whole, n);
        cr_assert_not(hit(s, e.key, "x"), "bit %zu", bit);
        whole[bit / 8] ^= (char)(1 << bit % 8);
    }
    spill(path, whole, n);
    cr_assert(hit(s, e.key, "x"));
    free(whole);
    fa_store_close(s);
}

Test(cache_entry, swapped_entries_and_other_archs_are_misses)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_entry a = entry_of(key_of(1), "A"), b = entry_of(key_of(2), "B"), out;
    fa_entry_put(s, &a);
    fa_entry_put(s, &b);
    const char *pa = file_of(a.key), *pb = file_of(b.key);
    size_t na, nb;
    char *ta = slurp(pa, &na), *tb = slurp(pb, &nb);
    spill(pa, tb, nb);
    spill(pb, ta, na);
    cr_assert_not(hit(s, a.key, "A"));
    cr_assert_not(hit(s, b.key, "B"));
    cr_assert(fa_entry_put(s, &a) && hit(s, a.key, "A"));
    cr_assert_not(fa_entry_get(s, a.key, "sm_90", &out));
    free(ta);
    free(tb);
    fa_store_close(s);
}

/* What a miss leaves can be freed, and holds nothing of a file that was of another kernel. */
static bool missed(fa_store *s, fa_key k, const char *arch)
{
    fa_entry out;
    memset(&out, 0xaa, sizeof out);
    bool got = fa_entry_get(s, k, arch, &out);
    bool empty = !out.image && !out.log && !out.metadata && !out.image_size && !out.log_size && !out.metadata_size && !out.proved;
    if (empty)
        fa_entry_free(&out);
    return !got && empty;
}

Test(cache_entry, a_miss_leaves_nothing)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL), *none = fa_store_open("", NULL, NULL);
    fa_entry a = entry_of(key_of(1), "A");
    cr_expect(missed(none, a.key, "sm_80"), "no store");
    cr_expect(missed(s, a.key, "sm_80"), "nothing is there");
    fa_entry_put(s, &a);
    cr_expect(missed(s, a.key, "sm_90"), "it is of another arch");
    fa_entry_put(s, &a);
    size_t n;
    char *text = slurp(file_of(a.key), &n);
    fa_key other = key_of(2);
    fa_entry b = entry_of(other, "B");
    fa_entry_put(s, &b);
    spill(file_of(other), text, n);
    cr_expect(missed(s, other, "sm_80"), "its file holds another kernel");
    fa_entry_put(s, &b);
    spill(file_of(other), text, n - 1);
    cr_expect(missed(s, other, "sm_80"), "its file is cut");
    free(text);
    fa_store_close(s);
    fa_store_close(none);
}

Test(cache_entry, what_is_no_regular_file_is_a_miss)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_entry e = entry_of(key_of(1), "x");
    const char *path = file_of(e.key), *moved = below("moved");
    fa_entry_put(s, &e);
    cr_assert_eq(rename(path, moved), 0);
    cr_assert_eq(symlink(moved, path), 0);
    cr_assert_not(hit(s, e.key, "x"));
    cr_assert(fa_entry_put(s, &e) && hit(s, e.key, "x"));
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_not(hit(s, e.key, "x"));
    cr_assert(fa_entry_put(s, &e) && hit(s, e.key, "x"));
    unlink(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_not(hit(s, e.key, "x"));
    cr_assert(fa_entry_put(s, &e) && hit(s, e.key, "x"));
    cr_assert_eq(truncate(path, (off_t)65 << 20), 0);
    cr_assert_not(hit(s, e.key, "x"));
    cr_assert(fa_entry_put(s, &e) && hit(s, e.key, "x"));
    cr_assert_eq(chmod(path, 0620), 0);
    cr_assert_not(hit(s, e.key, "x"), "others may have written it");
    fa_store_close(s);
}

Test(cache_entry, a_bucket_others_can_write_is_not_read)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_entry e = entry_of(key_of(1), "x");
    fa_entry_put(s, &e);
    char hex[33];
    fa_key_print(hex, e.key);
    cr_assert_eq(chmod(below("v1/kernels/%.2s", hex), 0777), 0);
    cr_assert_not(hit(s, e.key, "x"));
    cr_assert_not(fa_entry_put(s, &e));
    fa_store_close(s);
}

Test(cache_entry, second_root_is_read_and_never_written)
{
    const char *mine = below("mine"), *shared = below("shared");
    char *path;
    fa_store *s = fa_store_open(shared, NULL, NULL);
    fa_entry e = entry_of(key_of(1), "x"), f = entry_of(key_of(2), "y");
    cr_assert(fa_entry_put(s, &e));
    fa_store_close(s);
    cr_assert_gt(asprintf(&path, "%s:%s", mine, shared), 0);
    s = fa_store_open(path, NULL, NULL);
    free(path);
    cr_assert_str_eq(fa_store_root(s), mine);
    cr_assert(hit(s, e.key, "x"));
    cr_assert(fa_entry_put(s, &f) && hit(s, f.key, "y"));
    fa_store_close(s);
    char hex[33];
    fa_key_print(hex, e.key);
    const char *bad = below("shared/v1/kernels/%.2s/%s.fak", hex, hex);
    truncate(bad, 10) == 0 ? (void)0 : abort();
    s = fa_store_open(mine, NULL, NULL);
    cr_assert_not(hit(s, e.key, "x"));
    cr_assert(hit(s, f.key, "y"));
    fa_store_close(s);
    cr_assert_eq(access(bad, F_OK), 0);
}

static int count_entries(void *user, const fa_entry *e, const char *path, const char *damaged)
{
    int *n = user;
    n[damaged != NULL]++;
    cr_assert_null(e->image);
    cr_assert_not_null(path);
    if (!damaged)
        cr_assert_eq(e->image_size, 2);
    return n[1] > 1 ? 42 : 0;
}

Test(cache_entry, each_sees_the_good_and_the_damaged)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    for (uint64_t i = 0; i < 20; i++) {
        fa_entry e = entry_of(key_of(i), "x");
        fa_entry_put(s, &e);
    }
    int n[2] = { 0, 0 };
    cr_assert_eq(fa_entry_each(s, count_entries, n), 0);
    cr_assert(n[0] == 20 && n[1] == 0);
    spill(file_of(key_of(3)), "nonsense", 8);
    n[0] = 0;
    cr_assert_eq(fa_entry_each(s, count_entries, n), 0);
    cr_assert(n[0] == 19 && n[1] == 1, "%d %d", n[0], n[1]);
    spill(file_of(key_of(4)), "", 0);
    n[0] = n[1] = 0;
    cr_assert_eq(fa_entry_each(s, count_entries, n), 42);
    fa_store_close(s);
}

/* Compiling is told by a byte appended to a file per key. */
static void build(fa_store *s, uint64_t n)
{
    fa_entry e = entry_of(key_of(n), "built");
    if (hit(s, e.key, "built"))
        return;
    fa_lock l = fa_lock_take(s, e.key);
    if (!hit(s, e.key, "built")) {
        int fd = open(below("built-%d", (int)n), O_WRONLY | O_CREAT | O_APPEND, 0600);
        cr_assert_eq(write(fd, "*", 1), 1);
        close(fd);
        usleep(2000);
        cr_assert(fa_entry_put(s, &e));
    }
    fa_lock_drop(&l);
    fa_lock_drop(&l);
}

Test(cache_entry, processes_compile_each_key_once)
{
    enum { PROCESSES = 8, KEYS = 24 };
    const char *root = below("root");
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            fa_store *s = fa_store_open(root, NULL, NULL);
            for (int i = 0; i < KEYS; i++)
                build(s, (uint64_t)((i + 3 * p) % KEYS));
            fa_store_close(s);
            _exit(0);
        }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        wait(&status);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (int i = 0; i < KEYS; i++) {
        struct stat st;
        cr_assert_eq(stat(below("built-%d", i), &st), 0);
        cr_assert_eq(st.st_size, 1, "key %d was compiled %d times", i, (int)st.st_size);
    }
}

Test(cache_entry, a_killed_holder_frees_its_lock)
{
    int up[2];
    cr_assert_eq(pipe(up), 0);
    pid_t child = fork();
    if (child == 0) {
        fa_store *s = fa_store_open(scratch, NULL, NULL);
        fa_lock l = fa_lock_take(s, key_of(1));
        if (write(up[1], l.fd >= 0 ? "y" : "n", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char c = 0;
    cr_assert_eq(read(up[0], &c, 1), 1);
    cr_assert_eq(c, 'y');
    kill(child, SIGKILL);
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_lock l = fa_lock_take(s, key_of(1));
    cr_assert_geq(l.fd, 0);
    fa_lock_drop(&l);
    waitpid(child, NULL, 0);
    fa_store_close(s);
}

static atomic_int inside, most;

static void *enter(void *arg)
{
    for (int i = 0; i < 200; i++) {
        fa_lock l = fa_lock_take(arg, key_of(1));
        int now = atomic_fetch_add(&inside, 1) + 1;
        if (now > atomic_load(&most))
            atomic_store(&most, now);
        atomic_fetch_sub(&inside, 1);
        fa_lock_drop(&l);
    }
    return NULL;
}

Test(cache_entry, threads_exclude_each_other_with_and_without_a_disk)
{
    const char *paths[] = { "", scratch };
    for (int p = 0; p < 2; p++) {
        fa_store *s = fa_store_open(paths[p], NULL, NULL);
        pthread_t t[8];
        atomic_store(&most, 0);
        for (int i = 0; i < 8; i++)
            pthread_create(&t[i], NULL, enter, s);
        for (int i = 0; i < 8; i++)
            pthread_join(t[i], NULL);
        cr_assert_eq(atomic_load(&most), 1);
        fa_store_close(s);
    }
}
