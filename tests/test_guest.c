/* The library as a guest in other people's programs: what it takes of their threads' stacks, and what is left when threads, processes and
 * the library itself end. The programs are guest_program.c, guest_launch.c and guest_opener.c. */
#include "gen/error.h"
#include "gen/thread.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

TestSuite(guest, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

extern char **environ;
enum { OWN = 7 }; /* the status of the programs */

/* Runs it; a shell's status: 128 and the signal. */
static int run(const char *program, const char *a, const char *b, const char *c)
{
    char *const argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c, NULL };
    pid_t child;
    int status;
    cr_assert_eq(posix_spawn(&child, program, NULL, NULL, argv, environ), 0, "%s", program);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- thread-local memory ---- */

/* Bytes of each thread's stack that the file takes. */
static size_t thread_local_bytes(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && fstat(fd, &st) == 0, "%s", path);
    const char *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    cr_assert(file != MAP_FAILED && !memcmp(file, ELFMAG, SELFMAG) && file[EI_CLASS] == ELFCLASS64, "%s", path);
    const Elf64_Ehdr *head = (const void *)file;
    const Elf64_Phdr *segment = (const void *)(file + head->e_phoff);
    size_t bytes = 0;
    for (int i = 0; i < head->e_phnum; i++)
        bytes += segment[i].p_type == PT_TLS ? segment[i].p_memsz : 0;
    munmap((void *)(uintptr_t)file, (size_t)st.st_size);
    close(fd);
    return bytes;
}

Test(guest, threads_have_little_of_the_library_on_their_stacks)
{
    static const struct {
        const char *path;
        size_t most;
    } rows[] = { { SHARED, 4096 }, { PROGRAM, 4096 }, { LAUNCH, 1024 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t bytes = thread_local_bytes(rows[i].path);
        cr_expect(bytes > 0 && bytes <= rows[i].most, "%s: %zu bytes of thread-local memory; accepted: 1 to %zu", rows[i].path, bytes,
                  rows[i].most);
    }
    cr_expect_eq(run(LAUNCH, NULL, NULL, NULL), OWN);
}

Test(guest, threads_with_small_stacks_start_and_fail_in_words)
{
    cr_expect_eq(run(PROGRAM, "stacks", NULL, NULL), OWN);
}

/* ---- what a thread keeps ---- */

enum { THREADS = 16, BYTES = 5000 };
static pthread_barrier_t all_there, go_on;
static _Thread_local char *slot;

static void *keep(void *unused)
{
    fa_fail(FA_INVALID, "of a thread that will be gone");
    if (!fa_thread_keep(&slot, BYTES) || (uintptr_t)slot % 64 || slot[0] || slot[BYTES - 1])
        return "the block is not as it is to be";
    memset(slot, 1, BYTES);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&go_on);
    return strcmp(fa_last_error(), "of a thread that will be gone") ? "the message is gone" : unused;
}

/* Where a sanitizer owns the allocator it counts nothing, and looks for leaks instead. */
static size_t in_use(void)
{
    return mallinfo2().uordblks;
}

static void start(pthread_t thread[THREADS])
{
    pthread_barrier_init(&all_there, NULL, THREADS + 1);
    pthread_barrier_init(&go_on, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, keep, NULL), 0);
    pthread_barrier_wait(&all_there);
}

static void end(pthread_t thread[THREADS])
{
    void *error;
    pthread_barrier_wait(&go_on);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &error);
        cr_expect_null(error, "%s", (char *)error);
    }
    pthread_barrier_destroy(&all_there);
    pthread_barrier_destroy(&go_on);
}

Test(guest, a_thread_leaves_nothing)
{
    pthread_t thread[THREADS];
    start(thread), end(thread); /* glibc keeps something for threads, too */
    size_t before = in_use();
    for (int i = 0; i < 8; i++)
        start(thread), end(thread);
    size_t after = in_use();
    cr_expect(after <= before + BYTES, "%zu bytes in use, %zu after %d threads", before, after, 8 * THREADS);
}

Test(guest, a_child_has_nothing_of_the_other_threads)
{
    pthread_t thread[THREADS];
    int status;
    cr_assert(fa_thread_keep(&slot, BYTES));
    fa_fail(FA_INVALID, "of the thread that forks");
    start(thread);
    size_t before = in_use();
    pid_t child = fork();
    if (child == 0) {
        bool freed = !before || in_use() + THREADS * BYTES <= before;
        bool kept = slot && !strcmp(fa_last_error(), "of the thread that forks");
        exit(!freed ? 1 : !kept ? 2 : OWN); /* with LeakSanitizer's look */
    }
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == OWN, "status %d", status);
    end(thread);
}

static pthread_key_t late;

static void use_once_more(void *seen)
{
    fa_fail(FA_INVALID, "at the end");
    *(bool *)seen = !strcmp(fa_last_error(), "at the end");
}

static void *ends_with_a_call(void *seen)
{
    pthread_setspecific(late, seen);
    fa_fail(FA_INVALID, "in the middle");
    return NULL;
}

/* The program's own destructor may run after the library's: what it makes again is freed in another round of them. */
Test(guest, a_thread_that_ends_may_call)
{
    pthread_t t;
    bool seen = false;
    fa_fail(FA_INVALID, "so that the library's key is older");
    cr_assert_eq(pthread_key_create(&late, use_once_more), 0);
    cr_assert_eq(pthread_create(&t, NULL, ends_with_a_call, &seen), 0);
    pthread_join(t, NULL);
    cr_expect(seen);
    pthread_key_delete(late);
}

/* ---- dlclose() ---- */

Test(guest, the_library_comes_and_goes)
{
    cr_expect_eq(run(OPENER, SHARED, scratch, full() ? "80" : "16"), OWN);
}

/* ---- exit() ---- */

/* The n-th of so many moments in the first kernels of a process. */
static const char *moment(int n, int of)
{
    static char ms[16];
    snprintf(ms, sizeof ms, "%d", 5 + 600 * n / of);
    return ms;
}

static void exits(const char *mode, int times)
{
    for (int i = 0; i < times; i++) {
        const char *ms = moment(i, times);
        int status = run(PROGRAM, mode, ms, NULL);
        cr_expect_eq(status, OWN, "%s %s: status %d", mode, ms, status);
    }
}

Test(guest, main_returns_while_a_thread_compiles)
{
    exits("prepare", full() ? 50 : 5);
}

Test(guest, exit_is_called_while_main_compiles)
{
    exits("own", full() ? 50 : 3);
}

Test(guest, main_returns_while_the_context_compiles)
{
    exits("nearest", full() ? 50 : 3);
}

/* The fake compiles until exit() has begun, and aborts where exit() does not wait for it. */
Test(guest, exit_waits_for_a_compilation)
{
    static const char *const modes[] = { "inside", "late", "quick", "child" }, *const how[] = { "told", "deaf" };
    setenv("FAGEN_NVRTC", FAKE_NVRTC, 1);
    setenv("FAKE_NVRTC_LOG", below("compiles"), 1);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        for (size_t j = 0; j < sizeof how / sizeof *how; j++) {
            setenv("FAKE_NVRTC_EXIT", how[j], 1);
            unlink(below("compiles"));
            int status = run(PROGRAM, modes[i], below("compiles"), NULL);
            cr_expect_eq(status, OWN, "%s, %s: status %d", modes[i], how[j], status);
        }
}
