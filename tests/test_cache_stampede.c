/* Many processes that want the same kernels from an empty store: each is compiled once, others meanwhile, and no death holds anyone up.
 * The path is fa_build_image()'s own; only the compiler is a fake.
 *
 * FAGEN_TEST_FULL=1: 200 rounds instead of 2. */
#include "test_cache_fake.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PROCESSES = 64, KEYS = 32 };

static atomic_int *arrived;

static void make(void)
{
    scratch_make_light();
    fake_make();
    arrived = mmap(NULL, sizeof *arrived, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (arrived == MAP_FAILED)
        abort();
}
TestSuite(cache_stampede, .init = make, .fini = scratch_remove, .timeout = 1800);

/* All start at once. Odd ones take the keys from another end. */
static void worker(const char *root, int self, int processes)
{
    fa_store *store = fa_store_open(root, NULL, NULL);
    fa_compiler *c = fake_compiler();
    int compiled = 0;
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < processes)
        sched_yield();
    for (unsigned i = 0; i < KEYS; i++) {
        int rc = fake_build(store, c, self % 2 ? (i + (unsigned)self) % KEYS : i);
        if (rc == 2)
            _exit(255);
        compiled += rc;
    }
    for (unsigned i = 0; i < KEYS; i++)
        if (fake_build(store, c, i) != 0)
            _exit(254);
    fa_compiler_close(c);
    fa_store_close(store);
    _exit(compiled);
}

/* Returns how many were killed; *compiled: what those who were not say that they compiled. */
static int stampede(const char *root, int processes, int *compiled)
{
    int killed = 0, status;
    *compiled = 0;
    atomic_store(arrived, 0);
    for (int p = 0; p < processes; p++)
        if (fork() == 0)
            worker(root, p, processes);
    for (int p = 0; p < processes; p++) {
        wait(&status);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            killed++;
        else {
            cr_assert(WIFEXITED(status));
            cr_assert_leq(WEXITSTATUS(status), KEYS, "a process failed with %d", WEXITSTATUS(status));
            *compiled += WEXITSTATUS(status);
        }
    }
    return killed;
}

static int rounds(void)
{
    return full() ? 200 : 2;
}

Test(cache_stampede, each_key_is_compiled_once)
{
    int total = 0, compiled;
    fake->microseconds = 2000;
    for (int r = 0; r < rounds(); r++) {
        memset(fake->compiles, 0, sizeof fake->compiles);
        cr_assert_eq(stampede(below("round%d", r), PROCESSES, &compiled), 0);
        for (int k = 0; k < KEYS; k++)
            cr_assert_eq(fake->compiles[k], 1, "round %d: key %d was compiled %d times", r, k, fake->compiles[k]);
        cr_assert_eq(compiled, KEYS);
        total += compiled;
    }
    fprintf(stderr, "%d processes, %d keys, %d rounds: %d compilations, at most %d at once\n", PROCESSES, KEYS, rounds(), total,
            fake->most);
}

/* A compilation that ends only when another is under way beside it: one lock for all keys would never end. */
Test(cache_stampede, different_keys_compile_side_by_side, .timeout = 60)
{
    const char *root = below("root");
    int status;
    fake->wait_for = 8;
    for (unsigned p = 0; p < 8; p++)
        if (fork() == 0)
            _exit(fake_build(fa_store_open(root, NULL, NULL), fake_compiler(), p));
    for (int p = 0; p < 8; p++) {
        wait(&status);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    }
    cr_assert_eq(fake->most, 8);
}

Test(cache_stampede, a_compiler_that_dies_is_followed_by_the_next)
{
    int compiled;
    for (int r = 0; r < rounds(); r++) {
        const int key = r % KEYS;
        memset(fake->compiles, 0, sizeof fake->compiles);
        fake->microseconds = 500;
        fake->die_once = key + 1;
        cr_assert_eq(stampede(below("round%d", r), 16, &compiled), 1);
        for (int k = 0; k < KEYS; k++)
            cr_assert_eq(fake->compiles[k], k == key ? 2 : 1, "key %d was compiled %d times", k, fake->compiles[k]);
    }
}

/* Without a directory every process compiles for itself: the count that the first test would show without its locks. */
Test(cache_stampede, without_a_store_all_compile)
{
    fa_compiler *c = fake_compiler();
    fa_store *none = fa_store_open("", NULL, NULL);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(fake_build(none, c, 7), 1);
    cr_assert_eq(fake->compiles[7], 3);
    fa_store_close(none);
    fa_compiler_close(c);
}
