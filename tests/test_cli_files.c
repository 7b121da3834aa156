/* Every command that writes a file, and every kind of file that a person may name. */
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEND "attend --q inputs/q.npy --k inputs/k.npy --v inputs/v.npy --device sim:sm_80 "

static void must(const char *words)
{
    cli_result r = cli_run(words);
    if (r.code)
        abort();
    cli_result_free(&r);
}

/* Each test has a cache of its own: a copy of the suite's, in which the usual kernels are, compiled once. */
static void make(void)
{
    cli_scratch_make();
    must("sample -d 8 -n 4 -q");
    if (mkdir("inputs", 0700) || rename("q.npy", "inputs/q.npy") || rename("k.npy", "inputs/k.npy") || rename("v.npy", "inputs/v.npy"))
        abort();
    must("run -d 8 -n 4 --heads 1");
    must(ATTEND "-o o.npy -q");
    if (remove("o.npy") || system("cp -r \"${FAGEN_CACHE_DIR:-.cache/fagen}\" cache"))
        abort();
    setenv("FAGEN_CACHE_DIR", "cache", 1);
}
TestSuite(cli_files, .init = make, .fini = cli_scratch_remove, .timeout = 600);

/* %s: where to. `begins`: the first bytes of what is written. */
static const struct {
    const char *words, *begins;
    const char *beside; /* the name of the file, where the command is told a folder alone */
} writers[] = {
    { "emit -d 8 -o %s", "//", NULL },
    { "emit --bundle -d 8 --name kernels -o %s -q", "/*", NULL },
    { "emit --bundle --raw -d 8 --name kernels -o %s -q", "fagen.B\n", NULL },
    { "explore -d 8 --arch sm_80 --family naive --simulate 0 -o %s -q", "<!", NULL },
    { "explore -d 8 --arch sm_80 --family naive --simulate 0 --csv %s -q", "", NULL },
    { "cache export %s", "fagen.P\n", NULL },
    { ATTEND "-o %s -q", "\223NUMPY", NULL },
    { "sample -d 8 -n 4 -q -C .", "\223NUMPY", "q.npy" },
};
enum { WRITERS = sizeof writers / sizeof *writers };

static cli_result write_to(size_t i, const char *name)
{
    char words[400];
    snprintf(words, sizeof words, writers[i].words, name);
    return cli_run(words);
}

static const char *name_of(size_t i)
{
    return writers[i].beside ? writers[i].beside : "out";
}

static bool begins(size_t i, const char *path)
{
    char head[16] = "";
    size_t n = strlen(writers[i].begins);
    FILE *f = fopen(path, "rb");
    size_t got = f ? fread(head, 1, n ? n : 1, f) : 0;
    if (f)
        fclose(f);
    return got == (n ? n : 1) && !memcmp(head, writers[i].begins, n);
}

static void no_leftovers(const char *folder, const char *words)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        cr_expect(strncmp(e->d_name, ".fagen-", 7) && !strstr(e->d_name, ".npy.") && !strstr(e->d_name, "out."), "%s: %s was left", words,
                  e->d_name);
    closedir(d);
}

static void clear(void)
{
    static const char *const names[] = { "out", "q.npy", "k.npy", "v.npy", "target", "folder/target", "folder/.x" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
}

Test(cli_files, new_ones_and_old_ones)
{
    struct stat st;
    umask(022);
    for (size_t i = 0; i < WRITERS; i++) {
        const char *name = name_of(i);
        for (int old = 0; old < 2; old++) {
            if (old) {
                cr_assert_eq(chmod(name, 0640), 0);
                cr_assert_eq(truncate(name, 0), 0);
            }
            cli_result r = write_to(i, name);
            cr_expect_eq(r.code, 0, "%s: %s", writers[i].words, r.err);
            cr_expect(begins(i, name), "%s", writers[i].words);
            cr_expect(stat(name, &st) == 0 && (st.st_mode & 07777) == (old ? 0640 : 0644), "%s: %o", writers[i].words, st.st_mode);
            cli_result_free(&r);
        }
        no_leftovers(".", writers[i].words);
        clear();
    }
}

/* The link stays, and what it names is written, be it there or not; a chain, relative to its own folder. */
Test(cli_files, symbolic_links)
{
    struct stat st;
    cr_assert_eq(mkdir("folder", 0700), 0);
    for (size_t i = 0; i < WRITERS; i++) {
        const char *name = name_of(i);
        for (int there = 0; there < 2; there++) {
            if (there)
                cli_scratch_write("folder/target", "old", 3);
            cr_assert(symlink("folder/.x", name) == 0 && symlink("target", "folder/.x") == 0);
            cli_result r = write_to(i, name);
            cr_expect_eq(r.code, 0, "%s: %s", writers[i].words, r.err);
            cr_expect(lstat(name, &st) == 0 && S_ISLNK(st.st_mode), "%s: the link is gone", writers[i].words);
            cr_expect(lstat("folder/.x", &st) == 0 && S_ISLNK(st.st_mode), "%s: the second link is gone", writers[i].words);
            cr_expect(lstat("folder/target", &st) == 0 && S_ISREG(st.st_mode) && begins(i, "folder/target"), "%s", writers[i].words);
            cli_result_free(&r);
            no_leftovers("folder", writers[i].words);
            clear();
        }
        cr_assert_eq(symlink(name, name), 0);
        cli_result r = write_to(i, name);
        cr_expect(r.code == 7 && strstr(r.err, name) && strstr(r.err, strerror(ELOOP)), "%s: %d %s", writers[i].words, r.code, r.err);
        cli_result_free(&r);
        clear();
    }
}

static char *received;
static size_t n_received;

static void *receive(void *user)
{
    char buf[65536];
    int fd = open(user, O_RDONLY);
    n_received = 0;
    for (ssize_t n; fd >= 0 && (n = read(fd, buf, sizeof buf)) > 0; n_received += (size_t)n) {
        received = realloc(received, n_received + (size_t)n);
        memcpy(received + n_received, buf, (size_t)n);
    }
    close(fd);
    return NULL;
}

Test(cli_files, fifos)
{
    struct stat st;
    for (size_t i = 0; i < WRITERS; i++) {
        const char *name = name_of(i);
        pthread_t reader;
        cr_assert_eq(mkfifo(name, 0600), 0);
        cr_assert_eq(pthread_create(&reader, NULL, receive, (void *)(uintptr_t)name), 0);
        cli_result r = write_to(i, name);
        int fd = open(name, O_WRONLY | O_NONBLOCK); /* a reader that nothing was sent to is let go */
        if (fd >= 0)
            close(fd);
        pthread_join(reader, NULL);
        cr_expect_eq(r.code, 0, "%s: %s", writers[i].words, r.err);
        cr_expect(lstat(name, &st) == 0 && S_ISFIFO(st.st_mode), "%s: the FIFO is gone", writers[i].words);
        size_t k = strlen(writers[i].begins);
        cr_expect(n_received > k && !memcmp(received, writers[i].begins, k), "%s: %zu bytes", writers[i].words, n_received);
        cli_result_free(&r);
        clear();
    }
}

/* Nodes of our own where that is allowed, so that no test can harm the system's; links to the system's else. */
Test(cli_files, devices)
{
    struct stat st;
    for (size_t i = 0; i < WRITERS; i++) {
        static const struct {
            const char *path;
            unsigned minor;
            int code;
        } device[] = { { "/dev/null", 3, 0 }, { "/dev/full", 7, 7 } };
        for (int k = 0; k < 2; k++) {
            const char *name = name_of(i);
            bool own = mknod(name, S_IFCHR | 0600, makedev(1, device[k].minor)) == 0;
            int probe = own ? open(name, O_WRONLY) : -1;
            if (own && probe < 0) { /* a file system without devices */
                unlink(name);
                own = false;
            }
            if (probe >= 0)
                close(probe);
            cr_assert(own || symlink(device[k].path, name) == 0);
            cli_result r = write_to(i, name);
            cr_expect_eq(r.code, device[k].code, "%s to %s: %d %s", writers[i].words, device[k].path, r.code, r.err);
            if (device[k].code)
                cr_expect(strstr(r.err, name) && strstr(r.err, strerror(ENOSPC)), "%s: %s", writers[i].words, r.err);
            cr_expect(stat(name, &st) == 0 && S_ISCHR(st.st_mode), "%s: the device is gone", writers[i].words);
            cr_expect(lstat(name, &st) == 0 && (own ? S_ISCHR(st.st_mode) : S_ISLNK(st.st_mode)));
            cli_result_free(&r);
            clear();
        }
    }
}

Test(cli_files, standard_output)
{
    for (size_t i = 0; i < WRITERS; i++) {
        static const char *const names[] = { "-", "/dev/stdout" };
        size_t k = strlen(writers[i].begins);
        for (size_t j = 0; j < (writers[i].beside ? 0 : 2); j++) {
            cli_result r = write_to(i, names[j]);
            cr_expect(r.code == 0 && r.out_size > k && !memcmp(r.out, writers[i].begins, k), "%s %s: %d %s", writers[i].words, names[j],
                      r.code, r.err);
            cli_result_free(&r);
        }
    }
    static const struct {
        const char *words, *begins;
    } others[] = { { "emit -d 8 --format ptx -o /dev/fd/1", "//" },
                   { "emit -d 8 --format cubin -o -", "\177ELF" },
                   { ATTEND "-o /dev/null --lse - -q", "\223NUMPY" } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cli_result r = cli_run(others[i].words);
        cr_expect(r.code == 0 && !strncmp(r.out, others[i].begins, strlen(others[i].begins)), "%s: %d %s", others[i].words, r.code, r.err);
        cli_result_free(&r);
    }
    cr_expect_neq(access("-", F_OK), 0, "a file named -");
    static const char *const both[] = { "cache export - --json", ATTEND "-o - --json", ATTEND "-o - --lse -",
                                        "explore -d 8 --arch sm_80 --simulate 0 -o - --csv -", "emit -d 8 -o - --json" };
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        cli_result r = cli_run(both[i]);
        cr_expect(r.code == 1 && strstr(r.err, "accepted"), "%s: %d %s", both[i], r.code, r.err);
        cli_result_free(&r);
    }
}

/* Where a file cannot be written, the message names it and the reason, and nothing has changed. */
Test(cli_files, what_cannot_be_written)
{
    char deep[600], words[900];
    memset(deep, 'x', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    cr_assert(mkdir("folder", 0700) == 0);
    const struct {
        const char *name;
        int why;
    } rows[] = { { "folder", 0 }, { "none/out", ENOENT }, { "inputs/q.npy/out", ENOTDIR }, { deep, ENAMETOOLONG } };
    for (size_t i = 0; i < WRITERS; i++)
        for (size_t k = 0; k < (writers[i].beside ? 0 : sizeof rows / sizeof *rows); k++) {
            char quoted[700];
            snprintf(quoted, sizeof quoted, "'%s'", rows[k].name);
            snprintf(words, sizeof words, writers[i].words, quoted);
            cli_result r = cli_run(words);
            cr_expect_eq(r.code, 7, "%s: %d %s", words, r.code, r.err);
            cr_expect(strstr(r.err, rows[k].why ? strerror(rows[k].why) : "is a directory"), "%s: %s", words, r.err);
            cr_expect(strlen(rows[k].name) > 100 || strstr(r.err, rows[k].name), "%s: %s", words, r.err);
            cli_result_free(&r);
        }
    no_leftovers(".", "all");
    if (geteuid() == 0)
        return;
    cli_scratch_write("out", "old", 3);
    cr_assert_eq(chmod("out", 0400), 0);
    for (size_t i = 0; i < WRITERS; i++) {
        if (writers[i].beside)
            continue;
        cli_result r = write_to(i, "out");
        cr_expect(r.code == 7 && strstr(r.err, strerror(EACCES)), "%s: %d %s", writers[i].words, r.code, r.err);
        cli_result_free(&r);
    }
}

/* The folder of --directory is made; one that is there is used. */
Test(cli_files, a_folder_for_samples)
{
    for (int i = 0; i < 2; i++) {
        cli_result r = cli_run("sample -d 8 -n 4 --heads 1 --directory made");
        cr_expect(r.code == 0 && access("made/q.npy", F_OK) == 0 && access("made/v.npy", F_OK) == 0, "%d %s", r.code, r.err);
        cli_result_free(&r);
    }
}

/* A limit on the size of files, with the signal's own disposition: a full disk, and nothing is left. */
Test(cli_files, a_file_size_limit)
{
    struct rlimit before, small = { .rlim_cur = 60 };
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    for (size_t i = 0; i < WRITERS; i++) {
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
        char words[400] = "LIMITED=1 "; /* what the command prints goes to files of the test: they are under the limit too */
        snprintf(words + strlen(words), sizeof words - strlen(words), writers[i].words, "out");
        cli_result r = cli_run(words);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
        cr_expect_eq(r.code, 7, "%s: %d %s", writers[i].words, r.code, r.err);
        cr_expect_neq(access(name_of(i), F_OK), 0, "%s", writers[i].words);
        no_leftovers(".", writers[i].words);
        cli_result_free(&r);
    }
}

/* What goes to standard output alone. */
Test(cli_files, a_full_standard_output)
{
    static const char *const words[] = { "emit -d 8",       "space -d 8",      "model -d 8 --json", "doctor",
                                         "cache ls --json", "show -d 8 --ptx", "show -d 8",         "run -d 8 -n 4 --heads 1 --json",
                                         "help emit",       "--version",       (ATTEND "-o out") };
    char line[600];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        snprintf(line, sizeof line, "exec %s %s > /dev/full 2> said", getenv("FAGEN_COMMAND"), words[i]);
        int rc = system(line);
        char text[4096] = "";
        FILE *f = fopen("said", "r");
        cr_assert(f);
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
        cr_expect(WIFEXITED(rc) && WEXITSTATUS(rc) == 7 && strstr(text, "standard output"), "%s: %x %s", words[i], rc, text);
    }
}

/* Names that C, C++ or the system keep for themselves, and some that they do not. */
Test(cli_files, names_of_bundles)
{
    static const char *const refused[] = { "int",  "class",  "restrict",  "and_eq",    "typeof",  "co_await", "_Bool",   "__x",
                                           "a__b", "_x",     "linux",     "NULL",      "INT_MAX", "size_t",   "uint8_t", "my_t",
                                           "main", "printf", "fa_bundle", "fa_launch", "fa_op",   "FA_API",   "FAGEN_H", "nullptr" };
    static const char *const accepted[] = { "Int",          "int_", "classes", "image_a", "row",     "fa_kernels", "FAKE",
                                            "fagen_bundle", "f",    "memory",  "rows",    "image_0", "word",       "magic" };
    char words[300];
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(words, sizeof words, "emit --bundle -d 8 --name %s -o out.c", refused[i]);
        cli_result r = cli_run(words);
        cr_expect(r.code == 1 && strstr(r.err, refused[i]) && strstr(r.err, "accepted: a C identifier"), "%s: %d %s", words, r.code, r.err);
        cli_result_free(&r);
        if (strlen(refused[i]) > 2) {
            snprintf(words, sizeof words, "emit --bundle -d 8 -o %s.c", refused[i]);
            r = cli_run(words);
            cr_expect(r.code == 1 && strstr(r.err, "--name NAME gives another"), "%s: %d %s", words, r.code, r.err);
            cli_result_free(&r);
        }
    }
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        snprintf(words, sizeof words, "emit --bundle -d 8 --name %s -o out.c -q", accepted[i]);
        cli_result r = cli_run(words);
        cr_expect_eq(r.code, 0, "%s: %s", words, r.err);
        cli_result_free(&r);
        for (int cpp = 0; cpp < 2; cpp++) {
            snprintf(words, sizeof words, "cc -x %s -I%s -fsyntax-only -Wno-unused out.c 2> said", cpp ? "c++" : "c", FAGEN_HEADER_DIR);
            if (system("cc --version > /dev/null 2>&1") == 0 && (!cpp || system("c++ --version > /dev/null 2>&1") == 0))
                cr_expect_eq(system(words), 0, "%s: %s", accepted[i], words);
        }
    }
    unlink("out.c");
}

/* Whatever <fagen.h> declares is no name for a bundle: the list in cli/emit/identifier.c has all of it. */
Test(cli_files, names_of_the_header_are_none_of_bundles)
{
    FILE *f = fopen(FAGEN_HEADER_DIR "/fagen.h", "r");
    char line[1000], words[300];
    int seen = 0;
    cr_assert(f);
    while (fgets(line, sizeof line, f)) {
        const char *name = strstr(line, "FA_API ") == line                                                ? strpbrk(line, "(")
                           : !strncmp(line, "typedef struct ", 15) || !strncmp(line, "typedef enum ", 13) ? line
                                                                                                          : NULL;
        if (!name)
            continue;
        for (name = name == line ? strstr(line, "fa_") : name; *name != 'f' || strncmp(name, "fa_", 3) != 0 || name[-1] == '_'; name--)
            cr_assert_gt(name, line, "%s", line);
        int n = (int)strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789");
        snprintf(words, sizeof words, "emit --bundle -d 8 --name %.*s -o out.c", n, name);
        cli_result r = cli_run(words);
        cr_expect(r.code == 1 && strstr(r.err, "<fagen.h> has something of that name"), "%s: %d %s", words, r.code, r.err);
        cli_result_free(&r);
        seen++;
    }
    fclose(f);
    cr_expect_gt(seen, 25, "%d", seen);
}

/* Nothing that a terminal would obey. */
static void expect_plain(const char *words, const cli_result *r)
{
    const char *texts[] = { r->out, r->err };
    for (int i = 0; i < 2; i++)
        for (const char *s = texts[i]; *s; s++)
            cr_expect((*s >= 0x20 && *s < 0x7f) || *s == '\n' || *s == '\t', "%s: byte %02x at %.20s", words, (unsigned char)*s, s);
}

/* Names of files and folders are shown in another form, by what fails and by what succeeds. */
Test(cli_files, names_that_a_terminal_would_obey)
{
#define ESC "\033[31m\a\x9b"
#define SHOWN "\\x1b[31m\\x07\\x9b"
    static const struct {
        const char *words, *part;
        int code;
    } rows[] = {
        { ATTEND "-o " ESC ".npy --lse l" ESC, "wrote      " SHOWN ".npy, l" SHOWN, 0 },
        { ATTEND "-o \033[31m\a\xc2\x9b.npy --json", "\\u001B[31m\\u0007\\u009B.npy", 0 },
        { ATTEND "-o absent" ESC "/o.npy", "absent" SHOWN "/o.npy", 7 },
        { "attend --q " ESC " --k " ESC " --v " ESC " -o o.npy", SHOWN ": cannot be read: No such", 7 },
        { "attend --q bad" ESC " --k inputs/k.npy --v inputs/v.npy -o o.npy", "bad" SHOWN ": not a .npy", 1 },
        { "attend --" ESC "=1", "unknown option --" SHOWN, 1 },
        { ESC, SHOWN, 1 },
        { "sample -d 8 -n 4 -C '" ESC "/below'", SHOWN, 7 },
        { "emit -d 8 -o out" ESC, "wrote out" SHOWN, 0 },
        { "emit --bundle -d 8 --name kernels -o out" ESC, "wrote out" SHOWN, 0 },
        { "show --bundle out" ESC, NULL, -1 },
        { "explore -d 8 --arch sm_80 --family naive --simulate 0 -o page" ESC, "page       page" SHOWN, 0 },
        { "cache export all" ESC, "wrote all" SHOWN, 0 },
        { "cache import all" ESC, "kernels new", 0 },
        { "cache import bad" ESC, "bad" SHOWN, -1 },
        { "FAGEN_CACHE_DIR=c" ESC " run -d 8 -n 4 --heads 1", NULL, 0 },
        { "FAGEN_CACHE_DIR=c" ESC " cache ls", "c" SHOWN, 0 },
        { "FAGEN_CACHE_DIR=c" ESC " cache stat", "c" SHOWN, 0 },
        { "FAGEN_CACHE_DIR=c" ESC " cache verify", NULL, 0 },
        { "FAGEN_CACHE_DIR=c" ESC " cache why -d 8 -n 4 --heads 1", "c" SHOWN, 0 },
        { "FAGEN_CACHE_DIR=bad" ESC " FAGEN_LOG=debug run -d 8 -n 4 --heads 1", "bad" SHOWN, 0 },
        { "FAGEN_CACHE_DIR=c" ESC " doctor", "c" SHOWN, -1 },
        { "FAGEN_TEMPLATE_DIR=t" ESC " run -d 8 -n 4 --heads 1", "FAGEN_TEMPLATE_DIR is \"t" SHOWN "\"", 7 },
        { "FAGEN_NVRTC=n" ESC " FAGEN_CACHE_DIR= run -d 8 -n 4 --heads 1", "n" SHOWN, 2 },
        { "FAGEN_DEVICE=d" ESC " run -d 8", SHOWN, -1 },
        { "FAGEN_LOG=" ESC " run -d 8", SHOWN, 1 },
    };
    cli_scratch_write("bad" ESC, "\033x", 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cli_result r = cli_run(rows[i].words);
        cr_expect(rows[i].code < 0 || r.code == rows[i].code, "%zu: %d, %s%s", i, r.code, r.out, r.err);
        cr_expect(!rows[i].part || strstr(r.out, rows[i].part) || strstr(r.err, rows[i].part), "%zu: %s not in %s%s", i, rows[i].part,
                  r.out, r.err);
        expect_plain(rows[i].words, &r);
        cli_result_free(&r);
    }
}

/* What is written is none of what is read, by whatever name, and no two are one. */
Test(cli_files, results_over_inputs)
{
#define BACKWARD ATTEND "--backward --grad-o do.npy --grad-q a.npy --grad-k b.npy "
    static const struct {
        const char *words, *part; /* NULL: it runs */
    } rows[] = {
        { ATTEND "-o inputs/q.npy",
          "--output inputs/q.npy would replace the file of --q inputs/q.npy; accepted: another file, or --force" },
        { ATTEND "-o ./inputs/../inputs/k.npy", "would replace the file of --k inputs/k.npy" },
        { ATTEND "-o hard.npy", "--output hard.npy would replace the file of --v inputs/v.npy" },
        { ATTEND "-o soft.npy", "--output soft.npy would replace the file of --q inputs/q.npy" },
        { ATTEND "-o o.npy --lse soft.npy", "--lse soft.npy would replace the file of --q" },
        { ATTEND "-o o.npy --lse dangling", "--lse dangling would" },
        { ATTEND "--seqlens-k lengths.npy -o lengths.npy", "would replace the file of --seqlens-k lengths.npy" },
        { ATTEND "-o new.npy --lse ./new.npy", "--lse ./new.npy is the file of --output new.npy; accepted: a file for each" },
        { ATTEND "-o inputs/new.npy --lse link/new.npy --force", "is the file of --output inputs/new.npy" },
        { ATTEND "-o do.npy --lse other.npy --force", NULL },
        { BACKWARD "--grad-v do.npy", "--grad-v do.npy would replace the file of --grad-o do.npy" },
        { BACKWARD "--grad-v ./a.npy", "--grad-v ./a.npy is the file of --grad-q a.npy" },
        { BACKWARD "--grad-v c.npy --lse soft.npy", "--lse soft.npy would replace the file of --q" },
        { BACKWARD "--grad-v c.npy", NULL },
        { ATTEND "-o /dev/null", NULL },
        { ATTEND "-o c.npy --lse inputs/new.npy", NULL },
        { ATTEND "-o soft.npy --force", NULL },
    };
    struct stat before[3], after;
    static const char *const inputs[] = { "inputs/q.npy", "inputs/k.npy", "inputs/v.npy" };
    cr_assert(!link("inputs/v.npy", "hard.npy") && !symlink("inputs/q.npy", "soft.npy") && !symlink("inputs", "link") &&
              !symlink("inputs/q.npy", "dangling"));
    cli_scratch_write("lengths.npy", "x", 1);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(stat(inputs[i], &before[i]), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cli_result r = cli_run(rows[i].words);
        if (rows[i].part)
            cr_expect(r.code == 1 && strstr(r.err, rows[i].part), "%s: %d %s", rows[i].words, r.code, r.err);
        else
            cr_expect_eq(r.code, 0, "%s: %d %s", rows[i].words, r.code, r.err);
        cli_result_free(&r);
        for (int k = 0; k < 3; k++) /* all but the last leave them */
            cr_expect(!stat(inputs[k], &after) && (i + 1 == sizeof rows / sizeof *rows || after.st_ino == before[k].st_ino), "%s",
                      rows[i].words);
    }
}
