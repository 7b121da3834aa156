/* A root that is only read: used like any other, and never touched. And what becomes of a kernel that kills the process that loads it, from
 * fa_build() on. */
#include "cache/archive.h"
#include "cache/load_marker.h"
#include "cache/prune.h"
#include "fake_driver.h"
#include "gen/problem.h"
#include "test_cache_entries.h"
#include "test_cache_fake.h"
#include <signal.h>
#include <sys/wait.h>

static void make(void)
{
    scratch_make_light();
    fake_make();
}
TestSuite(cache_shared, .init = make, .fini = scratch_remove, .timeout = 120);

static fa_text listing;

static int list(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)type, (void)ftw;
    fa_text_fmt(&listing, "%s %o %lld %lld.%09ld %lld.%09ld\n", path, st->st_mode, (long long)st->st_size, (long long)st->st_mtim.tv_sec,
                st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
    return 0;
}

/* Names, modes, sizes and times of all below a path. Heap. */
static char *picture(const char *path)
{
    listing = (fa_text){ .n = 0 };
    nftw(path, list, 16, FTW_PHYS);
    return listing.s;
}

static fa_record record_of(void)
{
    fa_problem p = FA_PROBLEM_INIT;
    fa_record r;
    memset(&r, 0, sizeof r);
    p.dtype = FA_BF16;
    p.d = 64;
    p.b = 1, p.hq = p.hkv = 8, p.sq = p.sk = 1024;
    cr_assert_eq(fa_problem_normalize(&r.problem, &p), FA_OK);
    strcpy(r.chip, "NVIDIA H200");
    cr_assert_eq(fa_config_parse(&r.config, "flash_fwd_mma:br=64,bc=64,warps=4"), FA_OK);
    r.how = FA_MEASURED;
    r.seconds = 1;
    return r;
}

static const char *spoiled_path(uint64_t n)
{
    char hex[33];
    fa_key_print(hex, key_made(n));
    return below("shared/v1/kernels/%.2s/%s.fak", hex, hex);
}

Test(cache_shared, is_used_and_never_touched)
{
    char *roots;
    fa_entry e;
    fa_pruned pruned;
    fa_archive_count count;
    fa_store *s = fa_store_open(below("shared"), NULL, NULL);
    fa_record r = record_of();
    for (uint64_t n = 0; n < 6; n++)
        cr_assert(entry_put(s, n, 100));
    cr_assert(fa_record_append(s, &r));
    fa_store_close(s);
    spill(spoiled_path(5), "damaged", 7);
    spill(below("shared/v1/kernels/.put-dead"), "x", 1);
    struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
    cr_assert_eq(utimensat(AT_FDCWD, spoiled_path(0), old, 0), 0);
    char *before = picture(below("shared"));
    cr_assert_gt(asprintf(&roots, "%s:%s", below("mine"), below("shared")), 0);
    for (int round = 0; round < 2; round++) {
        s = fa_store_open(roots, NULL, NULL);
        for (uint64_t n = 0; n < 5; n++)
            cr_assert_eq(entry_hit(s, n, 100), 1);
        cr_assert_eq(entry_hit(s, 5, 100), round, "damaged there; ours since the first round");
        cr_assert(entry_put(s, 5, 100) && entry_hit(s, 5, 100) == 1);
        cr_assert(fa_entry_get(s, key_made(0), "sm_80", &e));
        fa_load_marker c = fa_load_marker_set(s, &e);
        cr_assert_geq(c.fd, 0);
        fa_load_marker_clear(&c, true);
        fa_entry_free(&e);
        fa_records rs = fa_records_load(s, "NVIDIA H200", &r.problem);
        cr_assert_eq(rs.n, (size_t)(1 + round));
        fa_records_free(&rs);
        cr_assert(fa_record_append(s, &r));
        cr_assert_eq(fa_archive_export(s, below("p"), NULL, true, &count), FA_OK);
        cr_assert(count.entries == 6 && count.skipped == 1);
        cr_assert_eq(fa_archive_import(s, below("p"), true, true, &count), FA_OK);
        fa_prune p = { .to = 0 };
        cr_assert(fa_prune_run(s, &p, NULL, NULL, &pruned));
        cr_assert(entry_put(s, 5, 100));
        fa_store_set_limit(s, 0);
        cr_assert(entry_put(s, 7, 100));
        cr_assert(entry_put(s, 5, 100));
        fa_store_close(s);
    }
    char *after = picture(below("shared"));
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    free(roots);
}

static cu_driver deadly;

static CUresult die(CUlibrary *l, const void *image, CUjit_option *o, void **v, unsigned n, CUlibraryOption *lo, void **lv, unsigned ln)
{
    (void)l, (void)image, (void)o, (void)v, (void)n, (void)lo, (void)lv, (void)ln;
    raise(SIGKILL);
    return CUDA_ERROR_UNKNOWN;
}

static char told[1024];
static int tellings;

static void tell(void *user, int level, const char *message)
{
    (void)user;
    if (level <= FA_LOG_WARN) {
        tellings++;
        snprintf(told, sizeof told, "%s", message);
    }
}

static fa_context *context_on(const cu_driver *d)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = below("mine");
    o.nvrtc = getenv("FAGEN_FAKE_COMPILER");
    o.log = tell;
    cr_assert_eq(fa_create_on(&ctx, &o, d, 0), FA_OK, "%s", fa_last_error());
    return ctx;
}

/* Where the kernel came from. */
static const char *built(const cu_driver *d)
{
    static char from[32];
    const fa_kernel *k;
    fa_source s = fake_source(3);
    s.steps = 1;
    strcpy(s.step[0].entry, "k");
    s.step[0].threads = 32;
    fa_context *ctx = context_on(d);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK, "%s", fa_last_error());
    snprintf(from, sizeof from, "%s", k->from);
    fa_destroy(ctx);
    return from;
}

static int files(const char *folder)
{
    char *command;
    int n = -1;
    cr_assert_gt(asprintf(&command, "find %s -type f 2>/dev/null | wc -l", below("mine/v1/%s", folder)), 0);
    FILE *f = popen(command, "r");
    cr_assert(f && fscanf(f, "%d", &n) == 1);
    pclose(f);
    free(command);
    return n;
}

Test(cache_shared, the_limit_is_the_callers)
{
    static const int64_t given[] = { 0, -1, 12345 }, is[] = { FA_STORE_LIMIT, -1, 12345 };
    for (int i = 0; i < 3; i++) {
        fa_context *ctx;
        fa_options o = FA_OPTIONS_INIT;
        o.cache_dir = below("mine");
        o.cache_limit = given[i];
        cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK, "%s", fa_last_error());
        cr_expect_eq(fa_store_limit(fa_context_store(ctx)), is[i]);
        fa_destroy(ctx);
    }
}

Test(cache_shared, a_kernel_that_kills_its_loader_is_set_aside)
{
    int status;
    deadly = *fake_driver();
    deadly.cuLibraryLoadData = die;
    pid_t child = fork();
    if (child == 0)
        _exit(!built(&deadly));
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    cr_assert(files("kernels") == 1 && files("loading") == 1);
    cr_assert_str_eq(built(fake_driver()), "compiler");
    cr_assert_eq(tellings, 1);
    cr_assert(strstr(told, "set aside"), "%s", told);
    cr_assert(files("kernels") == 1 && files("loading") == 0 && files("quarantine") == 1);
    cr_assert_str_eq(built(fake_driver()), "disk cache");
    cr_assert_eq(tellings, 1);
    /* it was loaded well since: what kills now is something else */
    child = fork();
    if (child == 0)
        _exit(!built(&deadly));
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    cr_assert_eq(files("loading"), 0);
    cr_assert_str_eq(built(fake_driver()), "disk cache");
    cr_assert(tellings == 1 && files("quarantine") == 1);
}
