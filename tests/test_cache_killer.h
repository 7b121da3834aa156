/* Children that die: at the n-th system-call boundary, or at a random moment. */
#ifndef TEST_CACHE_KILLER_H
#define TEST_CACHE_KILLER_H
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void killer_op(uint64_t i);

/* Runs op(i) in a child that is killed at its n-th stop, where each system call has one before and one after it; n = 0: never. A call
 * before which it is killed is not made. *stops: how many there were. 1: killed; 0: the child ended by itself, in order; -1: it did not, or
 * tracing is not allowed. */
static inline int killer_at(killer_op *op, uint64_t i, int n, int *stops)
{
    int status, deliver = 0;
    *stops = 0;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(99);
        raise(SIGSTOP);
        op(i);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) != 0) {
        if (child > 0) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
        }
        return -1;
    }
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)deliver) != 0 || waitpid(child, &status, 0) != child)
            return -1;
        if (!WIFSTOPPED(status))
            return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
        deliver = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        if (!deliver && ++*stops == n) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return WIFSIGNALED(status) ? 1 : -1;
        }
    }
}

static inline int64_t killer_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Runs op(0), op(1), ... in a child, `most` times, and kills it after so many nanoseconds of its running. 1: killed; 0: it had done all and
 * waited; -1: it ended by itself. */
static inline int killer_after(killer_op *op, uint64_t most, int64_t ns)
{
    int go[2], status;
    char c = 0;
    if (pipe(go) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        close(go[0]);
        if (write(go[1], &c, 1) != 1)
            _exit(99);
        for (uint64_t i = 0; i < most; i++)
            op(i);
        if (write(go[1], &c, 1) == 1)
            pause();
        _exit(99);
    }
    close(go[1]);
    bool started = child > 0 && read(go[0], &c, 1) == 1;
    for (int64_t until = killer_now() + ns; started && killer_now() < until;)
        ;
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    bool all = started && read(go[0], &c, 1) == 1; /* what it wrote before it died is still there */
    close(go[0]);
    return !started || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL ? -1 : all ? 0 : 1;
}
#endif
