/* How much the kernels take: what was used longest ago goes, what is read stays readable, and prune picks what it was asked for. */
#include "cache/prune.h"
#include "test_cache_entries.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

TestSuite(cache_quota, .init = scratch_make_light, .fini = scratch_remove, .timeout = 120);

#define BODY 4096

static const char *path_of(uint64_t n)
{
    char hex[33];
    fa_key_print(hex, key_made(n));
    return below("v1/kernels/%.2s/%s.fak", hex, hex);
}

static void used(uint64_t n, time_t ago)
{
    struct timespec t[2] = { { time(NULL) - ago, 0 }, { time(NULL) - ago, 0 } };
    cr_assert_eq(utimensat(AT_FDCWD, path_of(n), t, 0), 0);
}

static int sum(void *user, const fa_item *i)
{
    int64_t *total = user;
    total[0] += i->size;
    total[1]++;
    return 0;
}

static int64_t bytes_in(fa_store *s)
{
    int64_t total[2] = { 0, 0 };
    fa_scan(s, sum, total);
    return total[0];
}

static int64_t files_in(fa_store *s)
{
    int64_t total[2] = { 0, 0 };
    fa_scan(s, sum, total);
    return total[1];
}

Test(cache_quota, stays_within_the_limit)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    cr_assert_eq(fa_store_limit(s), FA_STORE_LIMIT);
    fa_store_set_limit(s, 20 * BODY);
    for (uint64_t n = 0; n < 60; n++) {
        cr_assert(entry_put(s, n, BODY));
        cr_assert_leq(bytes_in(s), 20 * BODY);
        cr_assert_eq(entry_hit(s, n, BODY), 1, "the one just put stays");
    }
    cr_assert_gt(bytes_in(s), 17 * BODY);
    fa_store_set_limit(s, -1);
    for (uint64_t n = 60; n < 100; n++)
        cr_assert(entry_put(s, n, BODY));
    cr_assert_gt(files_in(s), 55);
    fa_store_set_limit(s, 0);
    cr_assert(entry_put(s, 1000, BODY) && entry_hit(s, 1000, BODY) == 1);
    fa_store_close(s);
}

Test(cache_quota, what_was_used_longest_ago_goes_first)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    for (uint64_t n = 0; n < 10; n++) {
        cr_assert(entry_put(s, n, BODY));
        used(n, 7200 * (time_t)(n + 1));
    }
    cr_assert_eq(entry_hit(s, 9, BODY), 1, "a hit renews the oldest");
    fa_store_set_limit(s, bytes_in(s) - 1);
    cr_assert(entry_put(s, 10, BODY));
    const int there[] = { 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1 };
    for (uint64_t n = 0; n < 11; n++)
        cr_expect_eq(access(path_of(n), F_OK) == 0, there[n], "%d", (int)n);
    fa_store_close(s);
}

/* A store that is far too full shrinks by some files at each put, not by all at once. */
Test(cache_quota, one_put_removes_a_few)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    for (uint64_t n = 0; n < 40; n++)
        cr_assert(entry_put(s, n, BODY));
    fa_store_set_limit(s, 5 * BODY);
    int64_t before = files_in(s);
    cr_assert(entry_put(s, 40, BODY));
    cr_assert_geq(files_in(s), before + 1 - 8);
    cr_assert_lt(files_in(s), before);
    fa_store_close(s);
}

/* The limit of a large store is that of its groups: four of 64 MiB here. Files of nothing but size stand for large entries. */
Test(cache_quota, groups_share_the_limit)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    const int64_t limit = (int64_t)256 << 20;
    for (uint64_t n = 0; n < 64; n++) {
        cr_assert(entry_put(s, n, 1));
        cr_assert_eq(truncate(path_of(n), (off_t)6 << 20), 0);
        used(n, 86400);
    }
    fa_store_set_limit(s, limit);
    for (uint64_t n = 64; n < 128; n++)
        cr_assert(entry_put(s, n, 1));
    cr_assert_leq(bytes_in(s), limit);
    cr_assert_gt(bytes_in(s), limit / 4 * 3);
    for (uint64_t n = 64; n < 128; n++)
        cr_assert_eq(entry_hit(s, n, 1), 1);
    fa_store_close(s);
}

enum { READERS = 32, KEYS = 24 };

/* Readers of a store from which entries are being evicted find whole entries or none. */
Test(cache_quota, readers_under_eviction, .timeout = 1800)
{
    const int rounds = full() ? 100 : 1;
    const char *root = below("root");
    fa_store *s = fa_store_open(root, NULL, NULL);
    int stop[2];
    cr_assert_eq(pipe(stop), 0);
    for (int i = 0; i < READERS; i++)
        if (fork() == 0) {
            char c;
            fa_store *own = fa_store_open(root, NULL, NULL);
            close(stop[1]);
            fcntl(stop[0], F_SETFL, O_NONBLOCK);
            while (read(stop[0], &c, 1) != 0)
                for (uint64_t n = 0; n < KEYS; n++)
                    if (entry_hit(own, n, BODY) < 0)
                        _exit(1);
            fa_store_close(own);
            _exit(0);
        }
    close(stop[0]);
    fa_store_set_limit(s, KEYS / 2 * BODY);
    for (int r = 0; r < rounds; r++)
        for (uint64_t n = 0; n < KEYS; n++) {
            cr_assert(entry_put(s, n, BODY));
            cr_assert_leq(bytes_in(s), KEYS / 2 * BODY);
        }
    close(stop[1]);
    for (int i = 0; i < READERS; i++) {
        int status;
        wait(&status);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    fa_store_close(s);
}

Test(cache_quota, prune_by_age_and_by_size)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_pruned out;
    for (uint64_t n = 0; n < 10; n++) {
        cr_assert(entry_put(s, n, BODY));
        used(n, 86400 * (time_t)(n + 1));
    }
    int64_t all = bytes_in(s), one = all / 10;
    fa_prune p = { .before = (int64_t)(time(NULL) - 86400 * 7 - 3600) * 1000000000, .to = -1, .dry_run = true };
    cr_assert(fa_prune_run(s, &p, NULL, NULL, &out));
    cr_assert(out.n == 3 && out.left == 7 && files_in(s) == 10, "%zu", out.n);
    p.dry_run = false;
    cr_assert(fa_prune_run(s, &p, NULL, NULL, &out));
    cr_assert(out.n == 3 && out.left == 7 && files_in(s) == 7);
    cr_assert(entry_hit(s, 6, BODY) == 1 && entry_hit(s, 7, BODY) == 0);
    used(6, 86400 * 30); /* the hit renewed it */
    p = (fa_prune){ .to = 4 * one + one / 2 };
    cr_assert(fa_prune_run(s, &p, NULL, NULL, &out));
    cr_assert(out.n == 3 && out.left == 4 && out.left_bytes == bytes_in(s));
    for (uint64_t n = 0; n < 7; n++)
        cr_expect_eq(access(path_of(n), F_OK) == 0, n < 4, "%d", (int)n);
    const char *other[] = { "sm_90a", NULL }, *mine[] = { "sm_90a", "sm_80", NULL };
    p = (fa_prune){ .to = -1, .archs = other };
    cr_assert(fa_prune_run(s, &p, NULL, NULL, &out) && out.n == 0);
    p.archs = mine;
    cr_assert(fa_prune_run(s, &p, NULL, NULL, &out) && out.n == 4 && files_in(s) == 0);
    fa_store_close(s);
}

/* What is no entry goes with --to 0: files of other names, folders and what is in them. */
Test(cache_quota, prune_takes_what_is_no_entry)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_pruned out;
    cr_assert(entry_put(s, 1, BODY));
    char hex[33];
    fa_key_print(hex, key_made(1));
    mkdir(below("v1/foreign"), 0700);
    mkdir(below("v1/quarantine"), 0700);
    spill(below("v1/foreign/notes"), "x", 1);
    spill(below("v1/foreign/other"), "y", 1);
    spill(below("v1/quarantine/%s.fak", hex), "", 0);
    spill(below("v1/kernels/%.2s/junk", hex), "z", 1);
    mkdir(below("v1/kernels/%.2s/folder", hex), 0700);
    spill(below("v1/kernels/%.2s/folder/inner", hex), "z", 1);
    fa_prune p = { .to = 0 };
    cr_assert(fa_prune_run(s, &p, NULL, NULL, &out));
    cr_assert(out.n >= 4 && out.n + out.left == 6 && out.left_bytes == 0, "%zu %zu", out.n, out.left); /* some have no bytes */
    p = (fa_prune){ .before = INT64_MAX, .to = -1 };
    cr_assert(fa_prune_run(s, &p, NULL, NULL, &out));
    cr_assert(out.left == 0 && files_in(s) == 0, "%zu", out.n);
    fa_store_close(s);
}
