/* Files of records as killed writers, full disks, other versions and other programs leave them: what is whole is read, and the next line
 * is whole. */
#include "cache/archive.h"
#include "cache/jsonl.h"
#include "cache/record.h"
#include "cache/wait.h"
#include "gen/problem.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

static int dir;

static void make(void)
{
    scratch_make_light();
    dir = open(scratch, O_RDONLY | O_DIRECTORY);
}
TestSuite(cache_jsonl, .init = make, .fini = scratch_remove, .timeout = 120);

typedef struct got {
    size_t n, bytes;
    char first[64], last[64];
} got;

static void take(void *user, const char *line, size_t n, size_t number)
{
    got *g = user;
    (void)number;
    cr_assert_eq(strlen(line), n);
    if (!g->n++)
        snprintf(g->first, sizeof g->first, "%.60s", line);
    snprintf(g->last, sizeof g->last, "%.60s", line);
    g->bytes += n;
}

static got read_all(void)
{
    got g = { .n = 0 };
    const char *trouble = NULL;
    cr_assert(fa_jsonl_read(dir, "f", take, &g, &trouble), "%s", trouble);
    return g;
}

static bool add(const char *line)
{
    const char *trouble = NULL;
    return fa_jsonl_append(dir, "f", line, strlen(line), &(fa_wait){ .most = 60 }, &trouble);
}

/* Whatever ends the file: the next line is whole. */
Test(cache_jsonl, every_tail)
{
    static const struct {
        const char *bytes;
        size_t n, lines; /* lines: of it that are read */
    } tails[] = { { "", 0, 0 },         { "\n", 1, 0 },         { "torn", 4, 1 },    { "whole\ntorn", 10, 2 },
                  { "\0\0\0\0", 4, 0 }, { "torn\0\0\0", 7, 0 }, { "\n\n\n", 3, 0 },  { "a\nb\n\0", 5, 2 },
                  { "a\n\0b\n", 5, 1 }, { "\r\n", 2, 1 },       { "\xff\xfe", 2, 1 } };
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        spill(below("f"), tails[i].bytes, tails[i].n);
        cr_assert_eq(read_all().n, tails[i].lines, "%zu", i);
        cr_assert(add("next"));
        got g = read_all();
        cr_assert_eq(g.n, tails[i].lines + 1, "%zu", i);
        cr_assert_str_eq(g.last, "next");
        cr_assert(add("and one more"));
        cr_assert_eq(read_all().n, tails[i].lines + 2, "%zu", i);
    }
}

Test(cache_jsonl, what_is_no_line_is_refused)
{
    const char *trouble = NULL;
    fa_wait w = { .most = 60 };
    char *huge = malloc(FA_LINE_CAP + 2);
    memset(huge, 'x', FA_LINE_CAP + 2);
    cr_assert_not(fa_jsonl_append(dir, "f", "", 0, &w, &trouble));
    cr_assert_not(fa_jsonl_append(dir, "f", "a\nb", 3, &w, &trouble));
    cr_assert_not(fa_jsonl_append(dir, "f", "a\0b", 3, &w, &trouble));
    cr_assert_not(fa_jsonl_append(dir, "f", huge, FA_LINE_CAP + 1, &w, &trouble));
    cr_assert_str_eq(trouble, "not a line");
    cr_assert_eq(access(below("f"), F_OK), -1);
    cr_assert(fa_jsonl_append(dir, "f", huge, FA_LINE_CAP, &w, &trouble));
    cr_assert_eq(read_all().bytes, FA_LINE_CAP);
    free(huge);
}

/* Longer lines than any that this version writes, between two that it wrote. */
Test(cache_jsonl, huge_lines_are_passed_over)
{
    size_t n = 10 << 20;
    char *huge = malloc(n);
    memset(huge, '[', n);
    memcpy(huge, "first\n", 6);
    memcpy(huge + n - 6, "\nlast\n", 6);
    spill(below("f"), huge, n);
    got g = read_all();
    cr_assert(g.n == 2 && !strcmp(g.first, "first") && !strcmp(g.last, "last"), "%zu", g.n);
    free(huge);
}

Test(cache_jsonl, a_full_file_takes_no_more_and_is_still_read)
{
    const char *trouble = NULL;
    fa_wait w = { .most = 60 };
    cr_assert(add("first"));
    cr_assert_eq(truncate(below("f"), (off_t)64 << 20), 0);
    cr_assert_not(fa_jsonl_append(dir, "f", "next", 4, &w, &trouble));
    cr_assert_str_eq(trouble, "the file is full");
    cr_assert_str_eq(read_all().first, "first");
    cr_assert_eq(truncate(below("f"), ((off_t)64 << 20) + 1), 0);
    got g = { .n = 0 };
    cr_assert_not(fa_jsonl_read(dir, "f", take, &g, &trouble));
    cr_assert(g.n == 0 && !strcmp(trouble, "too large"));
}

Test(cache_jsonl, what_is_no_file_does_not_hold_us)
{
    got g = { .n = 0 };
    const char *trouble = NULL;
    cr_assert(fa_jsonl_read(dir, "absent", take, &g, &trouble));
    cr_assert_eq(mkfifo(below("f"), 0600), 0);
    cr_assert_not(add("line"));
    cr_assert_not(fa_jsonl_read(dir, "f", take, &g, &trouble));
    cr_assert_eq(unlink(below("f")), 0);
    cr_assert_eq(mkdir(below("f"), 0700), 0);
    cr_assert_not(add("line"));
    cr_assert_not(fa_jsonl_read(dir, "f", take, &g, &trouble));
    cr_assert_eq(rmdir(below("f")), 0);
    spill(below("target"), "line\n", 5);
    cr_assert_eq(symlink("target", below("f")), 0);
    cr_assert_not(add("line"));
    cr_assert_not(fa_jsonl_read(dir, "f", take, &g, &trouble));
    cr_assert_eq(g.n, 0);
}

/* A writer that takes no lock and leaves torn lines is killed again and again beside two that do as they should. */
Test(cache_jsonl, two_writers_and_a_bad_one)
{
    enum { LINES = 400 };
    pid_t bad = fork();
    if (bad == 0)
        for (;;) {
            int fd = open(below("f"), O_WRONLY | O_CREAT | O_APPEND, 0600);
            if (write(fd, "\ntorn by another", 16) != 16)
                _exit(1);
            close(fd);
            usleep(200);
        }
    for (int w = 0; w < 2; w++)
        if (fork() == 0) {
            char line[64];
            for (int i = 0; i < LINES; i++) {
                snprintf(line, sizeof line, "writer %d line %d", w, i);
                if (!add(line))
                    _exit(1);
            }
            _exit(0);
        }
    for (int w = 0; w < 2; w++) {
        int status;
        pid_t done = wait(&status);
        cr_assert(done != bad && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    kill(bad, SIGKILL);
    waitpid(bad, NULL, 0);
    /* one that was glued to a torn line is lost: the bad writer came between the look at the file's end and the write. No other is */
    size_t n, whole = 0, glued = 0;
    char *bytes = slurp(below("f"), &n);
    for (char *save, *l = strtok_r(bytes, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        whole += !strncmp(l, "writer ", 7);
        glued += !strncmp(l, "torn by another", 15) && strstr(l, "writer ") != NULL;
    }
    cr_assert_eq(whole + glued, 2 * LINES);
    cr_assert_lt(glued, LINES / 10);
    free(bytes);
}

static const char *const head = "{\"problem\":\"bf16,d=64,dv=64,mask=none,o=bf16,align=16,b=1,hq=8,hkv=8,sq=1024,sk=1024\",\"config\":"
                                "\"flash_fwd_mma:br=64,bc=64,warps=4\",\"chip\":\"NVIDIA H200\",\"arch\":\"sm_90a\",\"how\":\"measured\"";

/* Lines of other versions, and of nobody. */
Test(cache_jsonl, records_of_other_versions)
{
    static const struct {
        const char *rest;
        int reads;
    } rows[] = {
        { ",\"outcome\":\"ok\",\"seconds\":0.5}", 1 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5,\"colour\":\"blue\",\"deep\":{\"a\":[1,{\"b\":null}]}}", 1 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5} ", 1 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5}\r", 1 },
        { ",\"outcome\":\"melted\",\"seconds\":0.5}", 0 },
        { ",\"outcome\":7,\"seconds\":0.5}", 0 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5}}", 0 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5}{}", 0 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5,\"seconds\":0.1}", 0 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5,\"why\":\"\xff\"}", 0 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5,\"why\":\"\\u0000\"}", 0 },
        { ",\"outcome\":\"ok\",\"seconds\":1e999}", 0 },
        { ",\"outcome\":\"ok\",\"source\":\"123\"}", 0 },
        { ",\"outcome\":\"ok\",\"seconds\":0.5", 0 },
        { "", 0 },
    };
    char line[1024];
    fa_record r;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(line, sizeof line, "%s%s", head, rows[i].rest);
        cr_expect_eq(fa_record_from_json(&r, line), rows[i].reads, "%s", rows[i].rest);
        if (rows[i].reads)
            cr_expect(r.seconds == 0.5 && r.outcome == FA_RAN && !strcmp(r.chip, "NVIDIA H200"));
    }
    /* what is of another type is as if it were not there */
    snprintf(line, sizeof line, "%s,\"outcome\":\"ok\",\"seconds\":\"fast\",\"count\":\"many\",\"why\":[1],\"date\":{}}", head);
    cr_expect(fa_record_from_json(&r, line) && r.seconds == 0 && r.count == 0 && !r.why[0] && !r.date[0]);
    char *deep = malloc(60001);
    memset(deep, '[', 60000);
    deep[60000] = 0;
    cr_expect_not(fa_record_from_json(&r, deep));
    free(deep);
}

/* A line that another version wrote goes from store to store as it is. */
Test(cache_jsonl, unknown_members_are_kept)
{
    char line[1024], key[160];
    fa_record r;
    size_t n;
    fa_archive_count count;
    fa_store *from = fa_store_open(below("from"), NULL, NULL), *s = fa_store_open(below("root"), NULL, NULL);
    snprintf(line, sizeof line, "%s,\"outcome\":\"ok\",\"seconds\":0.5,\"colour\":\"blue\"}", head);
    cr_assert(fa_record_from_json(&r, line));
    cr_assert(fa_record_append(from, &r));
    fa_problem_print_key(key, sizeof key, &r.problem);
    const char *path = below("from/v1/records/NVIDIA_H200/%s.jsonl", key);
    strcat(line, "\n");
    spill(path, line, strlen(line));
    cr_assert_eq(chmod(path, 0600), 0);
    cr_assert_eq(fa_archive_export(from, below("p"), NULL, true, &count), FA_OK);
    cr_assert_eq(fa_archive_import(s, below("p"), true, true, &count), FA_OK, "%s", fa_last_error());
    fa_records rs = fa_records_load(s, "NVIDIA H200", &r.problem);
    cr_assert(rs.n == 1 && rs.r[0].seconds == 0.5);
    fa_records_free(&rs);
    char *bytes = slurp(below("root/v1/records/NVIDIA_H200/%s.jsonl", key), &n);
    cr_assert_str_eq(bytes, line);
    free(bytes);
    fa_store_close(s);
    fa_store_close(from);
}

/* ---- lines that are taken back ---- */

static bool add_lines(const char *lines)
{
    const char *trouble = NULL;
    return fa_jsonl_append_lines(dir, "f", lines, strlen(lines), &(fa_wait){ .most = 60 }, &trouble);
}

static bool take_back(int64_t size, const char *lines)
{
    return fa_jsonl_take_back(dir, "f", size, lines, strlen(lines), &(fa_wait){ .most = 0.02 });
}

Test(cache_jsonl, lines_are_taken_back)
{
    static const char ours[] = "one\ntwo\nthree\n";
    static const struct {
        const char *before; /* NULL: no file */
        const char *added, *after;
    } rows[] = {
        { NULL, NULL, NULL },
        { NULL, "", NULL },
        { NULL, "one\ntwo\nthree\n", NULL },
        { NULL, "one\ntw", NULL }, /* of a disk that was full */
        { NULL, "one\ntwo\nthree\nother\n", "\n\n\n\n\n\n\n\n\n\n\n\n\n\nother\n" },
        { NULL, "other\none\ntwo\nthree\n", "other\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n" },
        { "", "one\n", "" },
        { "a\n", "", "a\n" },
        { "a\n", "one\ntwo\nthree\n", "a\n" },
        { "one\n", "one\ntwo\nthree\n", "one\n" }, /* a line of theirs that was there before stays */
        { "a\ntorn", "\none\ntwo\n", "a\ntorn" },
        { "a\n", "one\nother\ntwo\n", "a\n\n\n\n\nother\n\n\n\n\n" },
        { "a\n", "other\n", "a\nother\n" },
        { "a\n", "oneother\ntwo\n", "a\noneother\n\n\n\n\n" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n, before = rows[i].before ? strlen(rows[i].before) : 0;
        fa_text all = { 0 };
        unlink(below("f"));
        fa_text_str(&all, rows[i].before ? rows[i].before : "");
        fa_text_str(&all, rows[i].added ? rows[i].added : "");
        if (rows[i].before || rows[i].added)
            spill(below("f"), fa_text_cstr(&all), all.n);
        chmod(below("f"), 0600);
        cr_expect(take_back(rows[i].before ? (int64_t)before : -1, ours), "%zu", i);
        cr_expect_eq(access(below("f"), F_OK) == 0, rows[i].after != NULL, "%zu", i);
        if (rows[i].after) {
            char *bytes = slurp(below("f"), &n);
            cr_expect(n == strlen(rows[i].after) && !memcmp(bytes, rows[i].after, n), "%zu: %s", i, bytes);
            free(bytes);
        }
        fa_text_free(&all);
    }
}

/* A file whose lock does not come is not cut: others may be writing. */
Test(cache_jsonl, lines_are_taken_back_without_the_lock)
{
    size_t n;
    cr_assert(add("a") && add_lines("one\ntwo\n"));
    int other = open(below("f"), O_RDWR);
    cr_assert_eq(flock(other, LOCK_EX), 0);
    cr_assert(take_back(2, "one\ntwo\n"));
    char *bytes = slurp(below("f"), &n);
    cr_assert_str_eq(bytes, "a\n\n\n\n\n\n\n\n\n");
    free(bytes);
    close(other);
    cr_assert(add_lines("one\n") && add_lines(""));
    cr_assert_eq(read_all().n, 2);
}

/* One that waits for the lock of a file that goes away writes into the file that has its name. */
Test(cache_jsonl, an_append_beside_one_that_takes_the_file_away)
{
    enum { LINES = 300 };
    cr_assert(add_lines("one\n"));
    pid_t child = fork();
    if (child == 0)
        for (;;)
            if (!add_lines("one\n") || !take_back(-1, "one\n"))
                _exit(1);
    for (int i = 0; i < LINES; i++) {
        char line[64];
        snprintf(line, sizeof line, "line %d", i);
        cr_assert(add(line));
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    size_t n, lines = 0;
    char *bytes = slurp(below("f"), &n);
    for (const char *p = bytes; (p = strstr(p, "line ")); p++)
        lines++;
    cr_assert_eq(lines, LINES);
    free(bytes);
}
