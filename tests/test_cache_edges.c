/* What callers of the cache's parts may do and rarely do: the ends of ranges, names that are none, stores without a root. */
#include "cache/archive.h"
#include "cache/lock.h"
#include "cache/prune.h"
#include "cache/quality.h"
#include "cache/rates.h"
#include "cache/record.h"
#include "cache/root.h"
#include "cache/scan.h"
#include "cache/trusted_file.h"
#include "gen/problem.h"
#include "test_cache_entries.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <math.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

TestSuite(cache_edges, .init = scratch_make, .fini = scratch_remove, .timeout = 60);

static fa_record record_of(const char *problem, const char *config, double seconds)
{
    fa_record r;
    memset(&r, 0, sizeof r);
    cr_assert_eq(fa_problem_parse(&r.problem, problem), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&r.config, config), FA_OK);
    strcpy(r.chip, "chip");
    strcpy(r.arch, "sm_80");
    r.how = FA_MEASURED;
    r.verified = true;
    r.seconds = seconds;
    return r;
}

Test(cache_edges, names_of_files)
{
    char name[12];
    fa_file_name(name, sizeof name, ".hidden/x", ".j");
    cr_expect_str_eq(name, "_hidden_x.j");
    fa_file_name(name, sizeof name, "a name that is too long", ".jsonl");
    cr_expect_str_eq(name, "a_nam.jsonl");
    fa_file_name(name, sizeof name, "", "");
    cr_expect_str_eq(name, "_", "an empty name is none");
}

Test(cache_edges, words)
{
    for (int q = 0; q < FA_QUALITIES; q++)
        cr_expect_eq(fa_quality_of(fa_quality_name((fa_quality)q)), (fa_quality)q);
    cr_expect_str_eq(fa_quality_name((fa_quality)FA_QUALITIES), "?");
    cr_expect_str_eq(fa_quality_about((fa_quality)FA_QUALITIES), "?");
    cr_expect_eq(fa_quality_of(NULL), FA_QUALITY_UNTOLD);
    cr_expect_eq(fa_quality_of("x"), FA_QUALITY_UNTOLD);
    fa_metadata a = metadata_of(1), b = metadata_of(2);
    const char *field;
    cr_expect(fa_metadata_differ(&a, &b, &field, NULL, 0) > 0 && *field, "without the sentence");
    cr_expect_str_eq(fa_outcome_name((fa_outcome)99), "?");
    cr_expect_str_eq(fa_outcome_name((fa_outcome)-1), "?");
}

Test(cache_edges, too_large_is_not_kept)
{
    size_t n;
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_entry e = { .arch = "sm_80", .image_size = FA_FILE_CAP + 1 };
    cr_expect_null(fa_entry_pack(&e, &n), "a part is too large");
    e = (fa_entry){ .arch = "sm_80", .image_size = FA_FILE_CAP - 10, .log_size = FA_FILE_CAP - 10 };
    cr_expect_null(fa_entry_pack(&e, &n), "the parts together are");
    cr_expect_not(fa_entry_put(s, &e));
    fa_entry_free(NULL);
    fa_store_close(s);
}

Test(cache_edges, another_kernel_in_the_file)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_entry e = entry_made(1, 50), out;
    fa_key k = e.key;
    cr_assert(fa_entry_put(s, &e));
    cr_expect_not(fa_entry_get(s, k, "sm_90a", &out), "of another arch");
    for (int i = 0; i < 2; i++) { /* half of the key is right */
        char hex[33];
        size_t n;
        fa_key other = { k.lo ^ (uint64_t)i, k.hi ^ (uint64_t)!i };
        char *bytes = fa_entry_pack(&e, &n);
        fa_key_print(hex, other);
        mkdir(below("v1/kernels/%.2s", hex), 0700);
        spill(below("v1/kernels/%.2s/%s.fak", hex, hex), bytes, n);
        cr_expect_eq(chmod(below("v1/kernels/%.2s/%s.fak", hex, hex), 0600), 0);
        free(bytes);
        cr_expect_not(fa_entry_get(s, other, "sm_80", &out));
    }
    fa_entry_free(&e);
    fa_store_close(s);
}

Test(cache_edges, many_locks_at_once)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_lock l[20];
    for (uint64_t i = 0; i < 20; i++)
        l[i] = fa_lock_take(s, (fa_key){ i / 2, i % 2 }); /* halves of keys are equal */
    for (int i = 19; i >= 0; i -= 2)
        fa_lock_drop(&l[i]);
    for (int i = 0; i < 20; i++)
        fa_lock_drop(&l[i]);
    fa_store_close(s);
}

Test(cache_edges, a_store_without_a_root)
{
    fa_store *s = fa_store_open("", NULL, NULL);
    fa_record r = record_of("bf16,d=64", "a:b=1", 1);
    fa_rates rates = { .clock = 1 };
    fa_archive_count n;
    fa_pruned pruned;
    cr_expect_not(fa_record_append(s, &r));
    cr_expect_not(fa_rates_save(s, "chip", "", &rates));
    cr_expect_not(fa_rates_load(s, "chip", &rates));
    cr_expect_not(entry_put(s, 1, 10));
    cr_expect_eq(entry_hit(s, 1, 10), 0);
    cr_expect(fa_prune_run(s, &(fa_prune){ .to = 0 }, NULL, NULL, &pruned) && pruned.n == 0);
    cr_expect_neq(fa_archive_import(s, below("absent"), true, true, &n), FA_OK);
    cr_expect_null(fa_store_root(s));
    fa_store_close(s);
    fa_store_close(NULL);
    s = fa_store_open(scratch, NULL, NULL);
    cr_expect_str_eq(fa_store_root_at(s, 0, NULL, NULL), scratch);
    fa_store_close(s);
}

Test(cache_edges, rates)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_rates r;
    static const char *const bad[] = { "", "[]", "{", "{\"clock\":\"x\",\"mma16\":-1}", "{\"clock\":1e999}" };
    cr_assert(fa_rates_save(s, "chip", "2026-11-21", &(fa_rates){ .clock = NAN, .mma16 = 5 }));
    cr_assert(fa_rates_load(s, "chip", &r) && r.mma16 == 5 && r.clock == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spill(below("v1/records/chip/rates.json"), bad[i], strlen(bad[i]));
        fa_rates_load(s, "chip", &r);
        cr_expect(r.mma16 == 0 && r.clock == 0, "%s", bad[i]);
    }
    cr_expect_not(fa_rates_save(s, "\xff", "\xff", &r), "no JSON");
    fa_store_close(s);
}

Test(cache_edges, records_of_many_problems)
{
    static const char *const problems[] = { "bf16,d=64",
                                            "fp16,d=64",
                                            "bf16,d=72",
                                            "bf16,d=64,dv=32",
                                            "bf16,d=64,mask=causal",
                                            "bf16,d=64,o=fp32",
                                            "bf16,d=64,align=8",
                                            "bf16,d=64,sq=64,sk=100000",
                                            "bf16,d=64,sq=100000,sk=64" };
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_problem p;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        for (int c = 0; c < 3; c++) {
            fa_record r = record_of(problems[i], c == 1 ? "a:b=1" : "a:b=2", 3 - c);
            r.how = i % 4 == 3 ? FA_MODELLED : FA_MEASURED;
            r.outcome = c == 2 && i % 2 ? FA_BAD_RESULT : FA_RAN;
            r.verified = c != 2;
            memcpy(r.date, "2026-11-20T00:00:00Z", 21);
            r.date[9] = (char)('0' + c);
            cr_assert(fa_record_append(s, &r));
        }
    fa_record none = record_of("bf16,d=64", "a:b=1", 1);
    none.outcome = (fa_outcome)99;
    cr_expect_not(fa_record_append(s, &none));
    none.outcome = FA_RAN;
    none.how = (fa_how)99;
    cr_expect_not(fa_record_append(s, &none));
    none = record_of("bf16,d=64", "a:b=1", INFINITY);
    memset(none.why, '\xff', sizeof none.why);
    cr_expect(fa_record_append(s, &none), "text that is not UTF-8");
    spill(below("v1/records/chip/x"), "{}", 2); /* names that are no records' */
    spill(below("v1/records/chip/.y.jsonl"), "{}\n", 3);
    spill(below("v1/records/z.jsonl"), "{}\n", 3);
    fa_records all = fa_records_load(s, NULL, NULL);
    cr_expect_eq(all.n, 28);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        cr_assert_eq(fa_problem_parse(&p, problems[i]), FA_OK);
        const fa_record *best = fa_records_best(&all, &p);
        cr_expect(best && best->problem.d == p.d && best->problem.dtype == p.dtype, "%s", problems[i]);
        fa_records some = fa_records_load(s, "chip", &p);
        cr_expect(some.n >= 3 && some.n < all.n);
        fa_records_free(&some);
    }
    fa_records_free(&all);
    all = fa_records_load(s, "another", NULL);
    cr_expect_eq(all.n, 0);
    fa_store_close(s);
}

Test(cache_edges, limits)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    char hex[33];
    fa_store_set_limit(s, -1);
    cr_assert(entry_put(s, 1, 100));
    fa_store_set_limit(s, (int64_t)1 << 45); /* as many groups as there are folders */
    cr_assert(entry_put(s, 2, 100));
    fa_key_print(hex, key_made(1));
    /* a time to come is no reason to keep */
    struct timeval later[2] = { { 4000000000, 0 }, { 4000000000, 0 } }, once[2] = { { 1, 0 }, { 1, 0 } };
    cr_assert_eq(utimes(below("v1/kernels/%.2s/%s.fak", hex, hex), later), 0);
    cr_assert_eq(entry_hit(s, 1, 100), 1);
    cr_assert_eq(utimes(below("v1/kernels/%.2s/%s.fak", hex, hex), once), 0);
    cr_assert_eq(entry_hit(s, 1, 100), 1);
    spill(below("v1/kernels/%.2s/a note", hex), "x", 1);
    char odd[37];
    memset(odd, 'x', 36);
    odd[36] = 0;
    mkdir(below("v1/kernels/%.2s/%s", hex, odd), 0700);
    fa_store_set_limit(s, 500);
    for (uint64_t n = 3; n < 9; n++)
        cr_assert(entry_put(s, n, 100));
    cr_expect_eq(entry_hit(s, 1, 100), 0);
    fa_store_close(s);
}

static void tell(void *user, const char *path, int64_t size)
{
    (void)path, (void)size;
    ++*(int *)user;
}

Test(cache_edges, pruning_and_carrying_what_is_there_twice)
{
    char path[700], deep[5000];
    fa_archive_count n;
    fa_pruned out;
    int told = 0;
    static const char *const archs[] = { "sm_86", "sm_80", NULL };
    snprintf(path, sizeof path, "%s:%s", below("one"), below("two"));
    fa_store *two = fa_store_open(below("two"), NULL, NULL);
    for (uint64_t i = 0; i < 4; i++)
        cr_assert(entry_put(two, i, 60));
    fa_store_close(two);
    fa_store *s = fa_store_open(path, NULL, NULL);
    for (uint64_t i = 2; i < 300; i++)
        cr_assert(entry_put(s, i, 60));
    fa_record r = record_of("bf16,d=64", "a:b=1", 1);
    cr_assert(fa_record_append(s, &r));
    strcpy(r.arch, "sm_90a");
    cr_assert(fa_record_append(s, &r));
    cr_assert_eq(fa_archive_export(s, below("all"), NULL, true, &n), FA_OK, "%s", fa_last_error());
    cr_expect(n.entries == 300 && n.lines == 2, "%zu %zu", n.entries, n.lines);
    cr_assert_eq(fa_archive_export(s, below("some"), "sm_90a", true, &n), FA_OK, "%s", fa_last_error());
    cr_expect(n.entries == 0 && n.lines == 1);
    memset(deep, 'x', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    cr_expect_eq(fa_archive_export(s, deep, NULL, true, &n), FA_IO);
    cr_expect_eq(fa_archive_export(s, below("no/such/folder"), NULL, true, &n), FA_IO);
    cr_expect_eq(fa_archive_import(s, scratch, true, true, &n), FA_IO);
    fa_store *to = fa_store_open(below("three"), NULL, NULL);
    cr_expect_eq(fa_archive_import(to, below("all"), true, true, &n), FA_OK);
    cr_expect(n.entries == 300 && n.lines == 2);
    fa_store_close(to);
    spill(below("one/v1/kernels/note"), "x", 1);
    cr_assert(fa_prune_run(s, &(fa_prune){ .to = -1, .before = INT64_MAX, .archs = archs, .dry_run = true }, tell, &told, &out));
    cr_expect(told == 298 && out.n == 298, "%d", told);
    cr_assert(fa_prune_run(s, &(fa_prune){ .to = 1000, .before = 1 }, NULL, NULL, &out) && out.left_bytes <= 1000);
    fa_store_close(s);
}

Test(cache_edges, archs_that_no_archive_takes)
{
    static const struct {
        const char *said, *kept;
    } rows[] = {
        { "sm_90", "sm_90" }, { "sm_1", "sm_1" }, { "sm_80", "sm_86" }, { "", "sm_80" }
    }; /* another name of sm_90a, none, two, untold */
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_archive_count n;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_metadata a = metadata_of(100 + i);
        fa_text t = { 0 };
        strcpy(a.arch, rows[i].said);
        cr_assert(fa_metadata_print(&a, &t));
        fa_entry e = {
            .key = fa_metadata_key(&a), .image = strdup("x"), .image_size = 1, .metadata = t.s, .metadata_size = t.n, .log = strdup("")
        };
        strcpy(e.arch, rows[i].kept);
        cr_assert(fa_entry_put(s, &e));
        fa_entry_free(&e);
    }
    cr_assert_eq(fa_archive_export(s, below("archive"), NULL, false, &n), FA_OK, "%s", fa_last_error());
    cr_expect(n.entries == 0 && n.skipped == sizeof rows / sizeof *rows, "%zu, %zu skipped", n.entries, n.skipped);
    fa_store_close(s);
}

Test(cache_edges, a_socket_in_its_place)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    char hex[33];
    fa_key_print(hex, key_made(1));
    mkdir(below("v1/kernels/%.2s", hex), 0700);
    cr_assert_eq(chdir(below("v1/kernels/%.2s", hex)), 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s.fak", hex);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    cr_expect_eq(entry_hit(s, 1, 10), 0);
    cr_expect(entry_put(s, 1, 10) && entry_hit(s, 1, 10) == 1, "it gave way");
    close(fd);
    cr_assert_eq(chdir("/"), 0);
    fa_store_close(s);
}

static void count(void *user, const char *message)
{
    (void)message;
    ++*(int *)user;
}

Test(cache_edges, no_home)
{
    static const char *const homes[] = { NULL, "", "here" }, *const caches[] = { NULL, "", "here" };
    if (geteuid() == 0 && seteuid(54321) != 0)
        cr_skip_test("needs a uid without a passwd entry");
    if (geteuid() != 54321)
        cr_skip_test("needs root to take a uid without a passwd entry");
    unsetenv("FAGEN_CACHE_DIR");
    for (int h = 0; h < 3; h++)
        for (int x = 0; x < 3; x++) {
            int told = 0;
            homes[h] ? setenv("HOME", homes[h], 1) : unsetenv("HOME");
            caches[x] ? setenv("XDG_CACHE_HOME", caches[x], 1) : unsetenv("XDG_CACHE_HOME");
            fa_store *s = fa_store_open(NULL, count, &told);
            cr_expect(!fa_store_root(s) && told == 1, "%d", told);
            fa_store_close(s);
            fa_store_close(fa_store_open(NULL, NULL, NULL));
        }
    setenv("FAGEN_CACHE_DIR", "", 1);
    int told = 0;
    fa_store_close(fa_store_open(NULL, count, &told));
    cr_expect_eq(told, 0);
    cr_assert_eq(seteuid(0), 0);
}
