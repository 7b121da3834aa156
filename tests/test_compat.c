/* What was made by fagen 0.1.0 runs and is read with the library of today: tests/compat/1 holds its header, a bundle, a cache folder and an
 * archive, and tests/compat/program.c is a program of its time. Whatever fails here is to be mended in the library, not there. */
#include "cache/archive.h"
#include "cache/metadata.h"
#include "cache/record.h"
#include "cache/scan.h"
#include "gen/problem.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/wait.h>

static int told;

static void tell(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "%s\n", message);
    told++;
}

static int copy(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)type, (void)ftw;
    const char *to = below("cache%s", path + strlen(COMPAT "/cache"));
    if (S_ISDIR(st->st_mode))
        return mkdir(to, 0700);
    size_t n;
    char *bytes = slurp(path, &n);
    spill(to, bytes, n);
    free(bytes);
    return chmod(to, 0600);
}

/* The folder as a user has it: no other may write there, whatever the umask of who checked it out. */
static void make(void)
{
    scratch_make();
    if (nftw(COMPAT "/cache", copy, 16, FTW_PHYS) != 0)
        abort();
}
TestSuite(compat, .init = make, .fini = scratch_remove, .timeout = 120);

/* Where there is no home, and of NVRTC only what is named. */
static int run(const char *how, const char *cache, const char *nvrtc)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        setenv("HOME", "/nonexistent", 1);
        setenv("FAGEN_CACHE_DIR", "", 1);
        if (nvrtc)
            setenv("FAGEN_NVRTC", nvrtc, 1);
        execl(PROGRAM, PROGRAM, how, cache, (char *)NULL);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(compat, a_bundle_that_is_linked_in)
{
    cr_assert_eq(run("bundle", NULL, "/nonexistent"), 0);
}

Test(compat, a_bundle_that_is_bytes)
{
    cr_assert_eq(run("bytes", NULL, "/nonexistent"), 0);
}

Test(compat, a_record_chooses)
{
    cr_assert_eq(run("record", below("cache"), "/nonexistent"), 0);
}

Test(compat, a_program_that_compiles)
{
    cr_assert_eq(run("compile", below("cache"), NULL), 0);
}

typedef struct found {
    int n, bad;
    fa_key key;
} found;

static int find(void *user, const fa_entry *e, const char *path, const char *damaged)
{
    found *f = user;
    f->n++;
    f->bad += damaged != NULL;
    f->key = e->key;
    cr_expect_null(damaged, "%s: %s", path, damaged);
    return 0;
}

/* The key names the NVRTC of then: that of today makes other keys, and this kernel is asked for by the one that it has. */
Test(compat, a_kernel_in_the_cache)
{
    found f = { .n = 0 };
    fa_entry e;
    fa_metadata a;
    char hex[33];
    fa_store *s = fa_store_open(below("cache"), tell, NULL);
    fa_entry_each(s, find, &f);
    cr_assert(f.n == 1 && f.bad == 0, "%d kernels, %d damaged", f.n, f.bad);
    fa_key_print(hex, f.key);
    cr_assert_str_eq(hex, "0cf42b71bc71383a3ef368aded548df8");
    cr_assert(fa_entry_get(s, f.key, "sm_80", &e), "it is a miss");
    cr_expect(e.ptx == 1 && e.image_size > 20000 && strstr(e.image, ".entry fa_merge") && !e.image[e.image_size - 1]);
    cr_assert(fa_metadata_parse(&a, e.metadata, e.metadata_size) && a.whole, "its description is not whole");
    cr_expect(fa_metadata_key(&a).lo == f.key.lo && fa_metadata_key(&a).hi == f.key.hi, "another key follows from its description");
    cr_expect_str_eq(a.problem, "fp16,d=64,dv=64,mask=none,o=fp16,align=16,op=merge");
    cr_expect_str_eq(a.config, "merge:warps=4,team=1,ahead=4");
    cr_expect_str_eq(a.fagen, "0.1.0");
    fa_entry_free(&e);
    fa_store_close(s);
    cr_assert_eq(told, 0);
}

static void bad_line(void *user, const fa_record_line *line)
{
    *(int *)user += !line->record;
}

static void check_records(fa_store *s)
{
    fa_problem p;
    int bad = 0;
    char text[200];
    fa_records_each(s, NULL, NULL, bad_line, &bad);
    fa_records all = fa_records_load(s, NULL, NULL);
    cr_assert(all.n == 3 && bad == 0, "%zu records, %d bad lines", all.n, bad);
    fa_records_free(&all);
    cr_assert_eq(fa_problem_parse(&p, "fp16,d=16,mask=causal,b=1,hq=2,hkv=2,sq=128,sk=128"), FA_OK);
    fa_records rs = fa_records_load(s, "Simulated sm_80", &p);
    cr_assert_eq(rs.n, 2);
    const fa_record *r = fa_records_best(&rs, &p);
    cr_assert(r && r->seconds == 1e-5 / 3 && r->verified && r->how == FA_MEASURED && r->outcome == FA_RAN &&
              r->quality == FA_QUALITY_STEADY);
    fa_config_print(text, sizeof text, &r->config);
    cr_expect_str_eq(text, "flash1_fwd:br=32,bc=32");
    cr_expect(r->spread == 0.01 && r->low == 3.2e-6 && r->high == 3.5e-6 && r->warm == 2.5e-6 && r->count == 100);
    cr_expect(r->clock_mhz == 1410 && r->temperature == 41 && r->regs == 96 && r->spills == 0 && r->smem == 6144);
    cr_expect(r->source[0] == 0x0123456789abcdefu && r->source[1] == 0xfedcba9876543210u);
    cr_expect(!strcmp(r->arch, "sm_80") && !strcmp(r->version, "0.1.0") && !strcmp(r->compiler, "nvrtc 13.0") &&
              !strcmp(r->driver, "cuda 13.0") && !strcmp(r->date, "2026-11-25T00:00:00Z"));
    const fa_record *other = r == rs.r ? rs.r + 1 : rs.r;
    cr_expect(other->outcome == FA_BAD_RESULT && !strcmp(other->why, "O[0, 3, 1, 5] is 0.25; expected 0.5"));
    fa_records_free(&rs);
}

Test(compat, records_in_the_cache)
{
    fa_store *s = fa_store_open(below("cache"), tell, NULL);
    check_records(s);
    fa_store_close(s);
    cr_assert_eq(told, 0);
}

Test(compat, an_archive)
{
    fa_archive_count n;
    fa_store *s = fa_store_open(below("new"), tell, NULL);
    cr_assert_eq(fa_archive_import(s, COMPAT "/records.archive", false, true, &n), FA_OK, "%s", fa_last_error());
    cr_assert(n.entries == 0 && n.lines == 3);
    check_records(s);
    fa_store_close(s);
    /* and the kernel goes into one of today */
    fa_store *from = fa_store_open(below("cache"), tell, NULL);
    cr_assert_eq(fa_archive_export(from, below("archive"), NULL, true, &n), FA_OK, "%s", fa_last_error());
    cr_assert(n.entries == 1 && n.lines == 3 && n.skipped == 0);
    fa_store_close(from);
    cr_assert_eq(told, 0);
}
