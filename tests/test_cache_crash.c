/* A machine that stops during a put. The system calls of a real put are recorded; from them every state is made that a file system may show
 * after the crash: each prefix of the calls, with every choice among the effects that no fsync had made last. Each state reads as the
 * entry or as nothing, is cleaned by the next open, and takes a put.
 *
 * What may be lost or come in any order: an entry of a directory until that directory is synced, where a rename is two such effects; the
 * pieces of a file's bytes, and its size, until the file is synced. FAGEN_TEST_FULL=1: more and smaller pieces. */
#include "cache/entry.h"
#include "cache/scan.h"
#include "test_cache_entries.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

TestSuite(cache_crash, .init = scratch_make_light, .fini = scratch_remove, .timeout = 1800);

enum { OPS = 32, UNITS = 24, BODY = 700 };

typedef enum op_kind { MKDIR, CREATE, WRITE, FSYNC, RENAME, UNLINK } op_kind;
static const char *const kinds[] = { "mkdir", "create", "write", "fsync", "rename", "unlink" };

typedef struct op {
    op_kind kind;
    char path[200], to[200]; /* below the root of the store */
    char *bytes;
    size_t n;
} op;

static op ops[OPS];
static int n_ops;
static char root[300];

static void path_of_fd(pid_t pid, int fd, char *out, size_t n)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
    ssize_t k = readlink(link, out, n - 1);
    out[k < 0 ? 0 : k] = 0;
}

static void child_bytes(pid_t pid, uint64_t at, void *to, size_t n)
{
    struct iovec here = { to, n }, there = { (void *)(uintptr_t)at, n };
    process_vm_readv(pid, &here, 1, &there, 1, 0);
}

/* Path of (dirfd, name) below the root; "" for others. */
static void below_root(pid_t pid, int dirfd, uint64_t name, char out[200])
{
    char dir[400] = "", base[256] = "", whole[700];
    if (name) {
        child_bytes(pid, name, base, 64);
        base[64] = 0;
    }
    if (dirfd != AT_FDCWD)
        path_of_fd(pid, dirfd, dir, sizeof dir);
    snprintf(whole, sizeof whole, "%s%s%s", dir, dir[0] && base[0] ? "/" : "", base);
    out[0] = 0;
    if (!strncmp(whole, root, strlen(root)) && whole[strlen(root)] == '/')
        snprintf(out, 200, "%.190s", whole + strlen(root) + 1);
}

/* The call that has been entered, as an operation; false for what changes nothing on disk. */
static bool entered(pid_t pid, const struct __ptrace_syscall_info *s, op *o)
{
    const uint64_t *a = s->entry.args;
    struct stat st;
    char whole[600];
    *o = (op){ .kind = FSYNC };
    switch (s->entry.nr) {
    case SYS_mkdirat:
        o->kind = MKDIR;
        below_root(pid, (int)a[0], a[1], o->path);
        break;
    case SYS_openat:
        o->kind = CREATE;
        below_root(pid, (int)a[0], a[1], o->path);
        snprintf(whole, sizeof whole, "%s/%s", root, o->path);
        return (a[2] & O_CREAT) && o->path[0] && lstat(whole, &st) != 0;
    case SYS_write:
        o->kind = WRITE;
        below_root(pid, (int)a[0], 0, o->path);
        if (!o->path[0])
            return false;
        o->n = (size_t)a[2];
        o->bytes = malloc(o->n);
        child_bytes(pid, a[1], o->bytes, o->n);
        break;
    case SYS_fsync:
    case SYS_fdatasync:
        below_root(pid, (int)a[0], 0, o->path);
        break;
    case SYS_unlinkat:
        o->kind = UNLINK;
        below_root(pid, (int)a[0], a[1], o->path);
        break;
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
        o->kind = RENAME;
        below_root(pid, (int)a[0], a[1], o->path);
        below_root(pid, (int)a[2], a[3], o->to);
        break;
    default:
        return false;
    }
    return o->path[0];
}

/* Records what a put of entry 1 does in an opened store. False where tracing is not allowed. */
static bool record(void)
{
    int status;
    bool inside = false, pending = false;
    op now;
    n_ops = 0;
    pid_t child = fork();
    if (child == 0) {
        fa_store *s = fa_store_open(root, NULL, NULL);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(99);
        raise(SIGSTOP);
        _exit(entry_put(s, 1, BODY) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status))
        return false;
    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
    for (;;) {
        struct __ptrace_syscall_info s;
        cr_assert_eq(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        cr_assert_eq(waitpid(child, &status, 0), child);
        if (!WIFSTOPPED(status))
            break;
        if (ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof s, &s) <= 0) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return false;
        }
        if (s.op == PTRACE_SYSCALL_INFO_ENTRY) {
            pending = entered(child, &s, &now);
            inside = true;
        } else if (s.op == PTRACE_SYSCALL_INFO_EXIT && inside) {
            inside = false;
            if (pending && s.exit.rval >= 0) {
                cr_assert_lt(n_ops, OPS);
                if (now.kind == WRITE)
                    now.n = (size_t)s.exit.rval;
                ops[n_ops++] = now;
            }
        }
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* One effect on disk, which a crash keeps or loses as a whole. */
typedef struct unit {
    enum {
        ENTRY,
        GONE,
        NAMED,
        PIECE,
        SIZE
    } kind;         /* a name appears; it disappears; the temporary file gets a second name; its bytes; its size */
    int op, synced; /* made by; made to last by, or OPS */
    const char *path;
    size_t from, to, base; /* of the file's bytes; base: where the write began */
} unit;

static unit units[UNITS];
static int n_units;

static void parent_of(const char *path, char out[200])
{
    char copy[200];
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(out, 200, "%s", dirname(copy));
}

/* The first fsync of path, a file or a directory, after operation i. */
static int synced_after(int i, const char *path)
{
    for (int k = i + 1; k < n_ops; k++)
        if (ops[k].kind == FSYNC && !strcmp(ops[k].path, path))
            return k;
    return OPS;
}

static void add(unit u)
{
    cr_assert_lt(n_units, UNITS);
    units[n_units++] = u;
}

static void split(int pieces)
{
    char parent[200];
    n_units = 0;
    size_t at = 0;
    for (int i = 0; i < n_ops; i++) {
        const op *o = &ops[i];
        parent_of(o->path, parent);
        switch (o->kind) {
        case MKDIR:
        case CREATE:
            add((unit){ ENTRY, i, synced_after(i, parent), o->path, 0, 0, 0 });
            break;
        case WRITE:
            add((unit){ SIZE, i, synced_after(i, o->path), o->path, 0, at + o->n, at });
            for (int k = 0; k < pieces; k++)
                add((unit){ PIECE, i, synced_after(i, o->path), o->path, at + o->n * (size_t)k / (size_t)pieces,
                            at + o->n * (size_t)(k + 1) / (size_t)pieces, at });
            at += o->n;
            break;
        case RENAME:
            add((unit){ GONE, i, synced_after(i, parent), o->path, 0, 0, 0 });
            parent_of(o->to, parent);
            add((unit){ NAMED, i, synced_after(i, parent), o->to, 0, 0, 0 });
            break;
        case UNLINK:
            add((unit){ GONE, i, synced_after(i, parent), o->path, 0, 0, 0 });
            break;
        case FSYNC:
            break;
        }
    }
}

/* What lies under the key before the put. */
typedef enum before { NOTHING, SOUND, DAMAGED } before;

static void make_before(before b)
{
    nftw(root, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    fa_store *s = fa_store_open(root, NULL, NULL);
    char hex[33], path[500];
    if (b != NOTHING)
        cr_assert(entry_put(s, 1, BODY));
    fa_store_close(s);
    fa_key_print(hex, key_made(1));
    snprintf(path, sizeof path, "%s/v1/kernels/%.2s/%s.fak", root, hex, hex);
    if (b == DAMAGED)
        cr_assert_eq(truncate(path, 300), 0);
}

/* Makes the state in which the units of the set are on disk. */
static void make_state(before b, uint32_t set)
{
    static char content[4096], whole[600];
    const char *temp = NULL, *named = NULL;
    size_t size = 0;
    bool gone = false;
    make_before(b);
    memset(content, 0, sizeof content);
    for (int i = 0; i < n_units; i++) {
        const unit *u = &units[i];
        bool on = set >> i & 1;
        snprintf(whole, sizeof whole, "%s/%s", root, u->path);
        if (on && u->kind == ENTRY && ops[u->op].kind == MKDIR)
            mkdir(whole, 0700);
        else if (on && u->kind == ENTRY)
            temp = u->path;
        else if (on && u->kind == NAMED)
            named = u->path;
        else if (u->kind == GONE)
            gone = on;
        else if (on && u->kind == PIECE)
            memcpy(content + u->from, ops[u->op].bytes + (u->from - u->base), u->to - u->from);
        if (on && (u->kind == PIECE || u->kind == SIZE))
            size = u->to > size ? u->to : size;
    }
    const char *const names[] = { gone ? NULL : temp, named };
    for (int i = 0; i < 2; i++) {
        snprintf(whole, sizeof whole, "%s/%s", root, names[i] ? names[i] : "");
        int fd = names[i] ? open(whole, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1; /* fails where its directory was lost: lost as well */
        if (fd >= 0) {
            cr_assert_eq(write(fd, content, size), (ssize_t)size);
            close(fd);
        }
    }
}

static size_t temp_files(void)
{
    char path[400];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/v1/kernels", root);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += !strncmp(e->d_name, ".put-", 5);
    closedir(d);
    return n;
}

/* Returns whether it was a hit. */
static bool read_state(bool durable, int prefix, uint32_t set)
{
    fa_store *s = fa_store_open(root, NULL, NULL);
    cr_assert_eq(temp_files(), 0, "after %d calls, effects %x", prefix, set);
    int hit = entry_hit(s, 1, BODY);
    cr_assert_geq(hit, 0, "after %d calls, effects %x: other bytes", prefix, set);
    cr_assert(hit || !durable, "after %d calls, effects %x: a put that had returned is lost", prefix, set);
    cr_assert(entry_put(s, 1, BODY) && entry_hit(s, 1, BODY) == 1, "after %d calls, effects %x: not repaired", prefix, set);
    fa_store_close(s);
    return hit;
}

/* All states of a crash after the first `prefix` calls. honest: what fsync said to last does. */
static void each_state(before b, int prefix, bool honest, int *states, int *hits)
{
    uint32_t forced = 0, open = 0;
    for (int i = 0; i < n_units; i++)
        if (units[i].op < prefix)
            *(honest && units[i].synced < prefix ? &forced : &open) |= 1u << i;
    uint32_t set = 0;
    do { /* every subset of what is open */
        make_state(b, forced | set);
        *hits += read_state((honest && prefix == n_ops) || (b == SOUND && honest), prefix, forced | set);
        ++*states;
        set = (set - open) & open;
    } while (set);
}

static void crash(before b)
{
    int states = 0, hits = 0, lying = 0, lying_hits = 0;
    snprintf(root, sizeof root, "%s/root", scratch);
    make_before(b);
    if (!record())
        cr_skip_test("tracing is not allowed here");
    split(full() ? 9 : 3);
    int write_at = -1, rename_at = -1;
    for (int i = 0; i < n_ops; i++) {
        fprintf(stderr, "  %s %s %s\n", kinds[ops[i].kind], ops[i].path, ops[i].to);
        write_at = ops[i].kind == WRITE ? i : write_at;
        rename_at = ops[i].kind == RENAME ? i : rename_at;
    }
    cr_assert(write_at >= 0 && rename_at > write_at);
    cr_assert_lt(synced_after(write_at, ops[write_at].path), rename_at, "the bytes last before they have their name");
    for (int prefix = 0; prefix <= n_ops; prefix++)
        each_state(b, prefix, true, &states, &hits);
    each_state(b, n_ops, false, &lying, &lying_hits);
    fprintf(stderr, "%d calls: %d states of an honest disk, %d read as a hit; %d of one whose fsync lies, %d\n", n_ops, states, hits, lying,
            lying_hits);
    cr_assert(hits > 0 && (b == SOUND || hits < states) && lying_hits > 0 && lying > lying_hits);
    for (int i = 0; i < n_ops; i++)
        free(ops[i].bytes);
}

Test(cache_crash, of_a_new_entry)
{
    crash(NOTHING);
}
Test(cache_crash, of_an_entry_that_replaces_a_sound_one)
{
    crash(SOUND);
}
Test(cache_crash, of_an_entry_that_replaces_a_damaged_one)
{
    crash(DAMAGED);
}
