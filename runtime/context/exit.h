/* exit: work that must not be under way when the process runs the exit handlers and destructors of NVRTC and of the driver, which take away
 * what it stands on. exit(), and so a return from main(), waits for the work of other threads, at most FA_EXIT_SECONDS; no more begins.
 * quick_exit() and _exit() run none of those destructors, and wait for nothing. A child of fork() begins without such work. */
#ifndef FA_RUNTIME_CONTEXT_EXIT_H
#define FA_RUNTIME_CONTEXT_EXIT_H
#include <fagen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define FA_EXIT_SECONDS 60

/* Has exit() wait before it runs what was registered so far, as by a library that was opened. Called again after each; costs some bytes. */
void fa_exit_watch(void);

/* Around a time in which a library registers handlers for objects that it is using: of exit handlers the last that was registered runs
 * first, so a thread registers this one again and again, every tenth of a millisecond at first and every half after 0.3 s: some 1,600 times
 * in 0.65 s, 32 bytes each. Best effort. */
typedef struct fa_exit_guard {
    pthread_t thread;
    bool running;
    atomic_bool over;
} fa_exit_guard;
void fa_exit_guard_begin(fa_exit_guard *g);
void fa_exit_guard_end(fa_exit_guard *g);

/* Around the work: each fa_exit_begin() that gave FA_OK has its fa_exit_end() in the same thread; they nest. FA_INTERRUPTED: the process
 * exits. */
fa_status fa_exit_begin(const char *what);
void fa_exit_end(void);

/* Whether the process exits: what takes long ends early. */
bool fa_exiting(void);
#endif
