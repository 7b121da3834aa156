/* test_cli_run: fork, exec, read. */
#include "test_cli_run.h"
#include "gen/error.h"
#include "gen/gen.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 64

static char scratch[64];

void cli_scratch_make(void)
{
    strcpy(scratch, "/tmp/fagen-cli-XXXXXX");
    cr_assert(mkdtemp(scratch) != NULL);
    cr_assert(chdir(scratch) == 0);
    setenv("FAGEN_DEVICE", "sim:sm_80", 1);
    setenv("HOME", scratch, 1);
    unsetenv("COLUMNS");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void cli_scratch_remove(void)
{
    cr_assert(chdir("/") == 0);
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Splits a copy in place. */
static int split(char *text, char **word)
{
    int n = 0;
    while (*text) {
        text += strspn(text, " ");
        if (!*text)
            break;
        char *to = text;
        cr_assert_lt(n, WORDS_MAX - 1);
        word[n++] = text;
        for (int quoted = 0; *text && (quoted || *text != ' '); text++)
            if (*text == '\'')
                quoted = !quoted;
            else
                *to++ = *text;
        text += *text != 0;
        *to = 0;
    }
    word[n] = NULL;
    return n;
}

static char *slurp(FILE *f, size_t *size)
{
    char *s = NULL;
    size_t n = 0, cap = 0;
    rewind(f);
    do {
        cap = cap ? 2 * cap : 65536;
        s = realloc(s, cap + 1);
        n += fread(s + n, 1, cap - n, f);
    } while (n == cap);
    s[n] = 0;
    *size = n;
    fclose(f);
    return s;
}

cli_result cli_run(const char *words)
{
    char *copy = strdup(words), *word[WORDS_MAX + 1];
    const char *command = getenv("FAGEN_COMMAND");
    cli_result r = { 0 };
    FILE *out = tmpfile(), *err = tmpfile();
    int status;
    size_t n;
    cr_assert(command && out && err, "FAGEN_COMMAND is not set: run me through ctest");
    split(copy, word + 1);
    int first = 1;
    while (word[first] && word[first][0] >= 'A' && word[first][0] <= 'Z' && strchr(word[first], '='))
        first++;
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        for (int i = 1; i < first; i++)
            putenv(word[i]);
        word[first - 1] = (char *)command;
        int null = open("/dev/null", O_RDONLY);
        dup2(null, 0);
        dup2(fileno(out), 1);
        dup2(fileno(err), 2);
        execv(command, word + first - 1);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    r.out = slurp(out, &r.out_size);
    r.err = slurp(err, &n);
    free(copy);
    return r;
}

void cli_result_free(cli_result *r)
{
    free(r->out);
    free(r->err);
}

json_t *cli_json(const char *words, int code)
{
    json_error_t error;
    cli_result r = cli_run(words);
    cr_assert_eq(r.code, code, "%s: exit %d, not %d: %s", words, r.code, code, r.err);
    json_t *j = json_loadb(r.out, r.out_size, JSON_REJECT_DUPLICATES, &error);
    cr_assert(j, "%s: %s: %.200s", words, error.text, r.out);
    cli_result_free(&r);
    return j;
}

static size_t files;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path, (void)st, (void)ftw;
    files += type != FTW_D && type != FTW_DP;
    return 0;
}

size_t cli_scratch_files(void)
{
    files = 0;
    nftw(".", count_one, 16, FTW_PHYS);
    return files;
}

void cli_scratch_write(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(name, "wb");
    cr_assert(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "%s", name);
}

json_t *cli_at(json_t *j, const char *path)
{
    while (*path && j) {
        char name[64];
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        j = json_is_array(j) ? json_array_get(j, (size_t)atoi(name)) : json_object_get(j, name);
        path += n + (path[n] == '.');
    }
    return j;
}

void cli_config(fa_config *out, const char *text)
{
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    cr_assert_eq(fa_gen_config_parse(g, out, text), FA_OK, "%s", fa_last_error());
    fa_gen_close(g);
}
