/* What decides the bytes of a kernel is in its key, and nothing else is: each input that is changed alone gives another key, and the
 * same inputs give the same text and key wherever and whenever they are asked for. */
#include "cache/root.h"
#include "gen/config.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "gen/templates.h"
#include "runtime/build/compiler.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"
#include <criterion/criterion.h>
#include <locale.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The same function of another format. */
#undef FA_FORMAT_VERSION
#define FA_FORMAT_VERSION 2
#define fa_key_make key_make_2
#define fa_key_print key_print_2
#define fa_key_parse key_parse_2
fa_key key_make_2(const uint64_t source_hash[2], const char *const *options, int n_options, const char *arch, const char *compiler);
void key_print_2(char out[33], fa_key k);
bool key_parse_2(fa_key *out, const char *hex);
#include "cache/key.c" /* NOLINT(bugprone-suspicious-include) */
#include "test_full.h"
#undef fa_key_make
#undef fa_key_print
#undef fa_key_parse

TestSuite(keys, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

static struct {
    char what[120];
    fa_key key;
} all[200];
static size_t count;

/* Notes a key and holds it against all before it. */
static void differs(const char *what, const char *more, fa_key k)
{
    for (size_t i = 0; i < count; i++)
        cr_expect(all[i].key.lo != k.lo || all[i].key.hi != k.hi, "%s %s: the same key as %s", what, more, all[i].what);
    cr_assert_lt(count, sizeof all / sizeof *all);
    snprintf(all[count].what, sizeof all[0].what, "%s %s", what, more);
    all[count++].key = k;
}

/* Everything that a key can depend on, as one value. */
typedef struct world {
    const char *problem, *config, *arch, *templates, *nvrtc, *prepend, *append;
    int kind;
} world;

static const world base = { .problem = "bf16,d=64", .config = "flash_fwd_mma", .arch = "sm_80", .nvrtc = FAKE_NVRTC };

static void set_or_not(const char *name, const char *value)
{
    cr_assert_eq(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

/* A config of the family that renders, with the tunable `other` (NULL = none) at its value number v; false where there is none. */
static bool choose(fa_gen *g, const world *w, const char *other, size_t v, fa_config *out, fa_source *s)
{
    fa_problem p;
    fa_tunable t;
    size_t n = 0, at[FA_CONFIG_MAX] = { 0 };
    cr_assert_eq(fa_problem_parse(&p, w->problem), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(out, w->config), FA_OK);
    while (fa_gen_tunable(g, w->config, n, &t))
        n++;
    for (long tries = 0; tries < 3000; tries++) {
        for (size_t j = 0; j < n && fa_gen_tunable(g, w->config, j, &t); j++)
            fa_config_set(out, t.name, t.values[other && !strcmp(t.name, other) ? v : at[j]]);
        if (fa_render(g, &p, out, fa_arch_find(w->arch), 0, s) == FA_OK)
            return true;
        size_t j = 0;
        while (j < n && fa_gen_tunable(g, w->config, j, &t) && ++at[j] == t.n)
            at[j++] = 0;
        if (j == n)
            break;
    }
    return false;
}

static fa_key key_of(const world *w, const fa_source *s)
{
    fa_compiler *c = fa_compiler_open(w->nvrtc);
    fa_key k;
    set_or_not("NVRTC_PREPEND_FLAGS", w->prepend);
    set_or_not("NVRTC_APPEND_FLAGS", w->append);
    cr_assert_eq(fa_compiler_key(c, s, w->arch, w->kind, &k), FA_OK, "%s", fa_last_error());
    set_or_not("NVRTC_PREPEND_FLAGS", NULL);
    set_or_not("NVRTC_APPEND_FLAGS", NULL);
    fa_compiler_close(c);
    return k;
}

static fa_key key_in(const world *w)
{
    fa_gen *g;
    fa_config config;
    fa_source s;
    cr_assert_eq(fa_gen_open(&g, w->templates), FA_OK, "%s", fa_last_error());
    cr_assert(choose(g, w, NULL, 0, &config, &s), "%s", fa_last_error());
    fa_key k = key_of(w, &s);
    fa_source_free(&s);
    fa_gen_close(g);
    return k;
}

/* A copy of the fake compiler that is another library: no build id, and one byte more for each call before. */
static const char *another_nvrtc(void)
{
    static int made;
    char line[2000];
    const char *path = below("another%d.so", ++made);
    snprintf(line, sizeof line, "objcopy --remove-section=.note.gnu.build-id '%s' '%s' && head -c %d /dev/zero >> '%s'", FAKE_NVRTC, path,
             made, path);
    return system(line) == 0 ? path : NULL;
}

Test(keys, each_input_alone_changes_the_key)
{
    const fa_key plain = key_in(&base);
    differs("the base", "", plain);

    static const char *const problems[] = {
        "fp16,d=64",        "bf16,d=72",         "bf16,d=64,dv=32", "bf16,d=64,mask=causal", "bf16,d=64,mask=window",
        "bf16,d=64,o=fp32", "bf16,d=64,align=8", "tf32,d=64"
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        world w = base;
        w.problem = problems[i];
        differs("problem", problems[i], key_in(&w));
    }
    static const char *const archs[] = { "sm_86", "sm_89", "sm_90a" };
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        world w = base;
        w.arch = archs[i];
        differs("arch", archs[i], key_in(&w));
    }
    for (int kind = 1; kind < 4; kind++) {
        world w = base;
        w.kind = kind;
        differs("image of kind", kind == 1 ? "PTX" : kind == 2 ? "lean cubin" : "lean PTX", key_in(&w));
    }
    world w = base;
    w.prepend = "-G";
    differs("NVRTC_PREPEND_FLAGS", "-G", key_in(&w));
    w = base;
    w.append = "-G";
    differs("NVRTC_APPEND_FLAGS", "-G", key_in(&w));
    w.append = "-G ";
    differs("NVRTC_APPEND_FLAGS", "\"-G \"", key_in(&w));
    w = base;
    w.config = "naive";
    differs("family", "naive", key_in(&w));
    for (int i = 0; i < 3; i++) {
        w = base;
        w.nvrtc = another_nvrtc();
        if (w.nvrtc)
            differs("library of the compiler", w.nvrtc, key_in(&w));
        else
            fprintf(stderr, "objcopy did not make another library\n"); /* after cr_log_warn the process would end with 1 */
    }

    /* each tunable alone, where it can be */
    fa_gen *g;
    fa_tunable t;
    fa_config config, changed;
    fa_source s;
    fa_problem p;
    size_t tunables = 0;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    cr_assert(choose(g, &base, NULL, 0, &config, &s));
    fa_source_free(&s);
    fa_problem_parse(&p, base.problem);
    for (size_t i = 0; fa_gen_tunable(g, base.config, i, &t); i++)
        for (size_t v = 0; v < t.n; v++) {
            changed = config;
            fa_config_set(&changed, t.name, t.values[v]);
            if (fa_config_get(&config, t.name, 0) == t.values[v] || fa_render(g, &p, &changed, fa_arch_find(base.arch), 0, &s) != FA_OK)
                continue;
            differs("tunable", t.name, key_of(&base, &s));
            fa_source_free(&s);
            tunables++;
            break;
        }
    fa_gen_close(g);
    cr_expect_geq(tunables, 5, "only %zu tunables of %s could be changed alone", tunables, base.config);

    /* a byte of each file that the text is made of */
    static const char *const files[] = {
        "flash_fwd_mma.cu", "prelude.cu", "tile.cu", "softmax.cu", "sequence.cu", "mask.cu", "epilogue.cu"
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const fa_template_file *f = fa_template_files;
        while (f->name && strcmp(f->name, files[i]))
            f++;
        cr_assert(f->name, "%s", files[i]);
        w = base;
        w.templates = below("templates%zu", i);
        cr_assert_eq(mkdir(w.templates, 0700), 0);
        FILE *out = fopen(below("templates%zu/%s", i, files[i]), "w");
        cr_assert(out && fwrite(f->bytes, 1, f->size, out) == f->size && fputs("// one line more\n", out) >= 0 && fclose(out) == 0);
        differs("template", files[i], key_in(&w));
    }
    cr_log_info("%zu keys", count);
}

/* The parts as they are hashed: what the inputs above become. */
Test(keys, each_part_alone_changes_the_key)
{
    static const char *const ab[] = { "-a", "-b" }, *const ba[] = { "-b", "-a" }, *const ac[] = { "-a", "-c" },
                             *const abe[] = { "-a", "-b", "" }, *const joined[] = { "-a-b", "" }, *const split[] = { "-", "a-b" };
    const uint64_t h[2] = { 1, 2 }, lo[2] = { 3, 2 }, hi[2] = { 1, 3 }, swapped[2] = { 2, 1 };
    differs("the base", "", fa_key_make(h, ab, 2, "sm_90", "nvrtc 13.0 x"));
    differs("format", "version 2", key_make_2(h, ab, 2, "sm_90", "nvrtc 13.0 x"));
    differs("order", "of options", fa_key_make(h, ba, 2, "sm_90", "nvrtc 13.0 x"));
    differs("an option", "-c", fa_key_make(h, ac, 2, "sm_90", "nvrtc 13.0 x"));
    differs("one option", "less", fa_key_make(h, ab, 1, "sm_90", "nvrtc 13.0 x"));
    differs("one option", "more", fa_key_make(h, abe, 3, "sm_90", "nvrtc 13.0 x"));
    differs("options", "joined", fa_key_make(h, joined, 2, "sm_90", "nvrtc 13.0 x"));
    differs("options", "split elsewhere", fa_key_make(h, split, 2, "sm_90", "nvrtc 13.0 x"));
    differs("no", "options", fa_key_make(h, NULL, 0, "sm_90", "nvrtc 13.0 x"));
    differs("text", "low", fa_key_make(lo, ab, 2, "sm_90", "nvrtc 13.0 x"));
    differs("text", "high", fa_key_make(hi, ab, 2, "sm_90", "nvrtc 13.0 x"));
    differs("text", "swapped", fa_key_make(swapped, ab, 2, "sm_90", "nvrtc 13.0 x"));
    differs("arch", "sm_90a", fa_key_make(h, ab, 2, "sm_90a", "nvrtc 13.0 x"));
    differs("compiler", "13.1", fa_key_make(h, ab, 2, "sm_90", "nvrtc 13.1 x"));
    differs("compiler", "another build", fa_key_make(h, ab, 2, "sm_90", "nvrtc 13.0 y"));
    differs("arch and compiler", "split elsewhere", fa_key_make(h, ab, 2, "sm_90n", "vrtc 13.0 x"));
    const char *const moved[] = { "-a", "-b", "sm_90" };
    differs("an option", "that is the arch", fa_key_make(h, moved, 3, "", "nvrtc 13.0 x"));
}

/* What a launch brings along is in no key. */
Test(keys, a_shape_does_not_change_the_key)
{
    const fa_key k = key_in(&base);
    static const char *const same[] = { "bf16,d=64,b=3", "bf16,d=64,hq=32,hkv=4", "bf16,d=64,sq=1,sk=100000", "align=16,d=64,bf16",
                                        "bf16,d=64,dv=64,o=bf16" };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        world w = base;
        w.problem = same[i];
        fa_key other = key_in(&w);
        cr_expect(k.lo == other.lo && k.hi == other.hi, "%s", same[i]);
    }
}

/* --- the same everywhere --- */

static const char *locale_folder; /* NULL: no locale but C can be had */

static void make_locale(void)
{
    char line[1200];
    snprintf(line, sizeof line,
             "mkdir -p '%s' && localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' 2>/dev/null && localedef -i tr_TR -f UTF-8 '%s/tr_TR.UTF-8' "
             "2>/dev/null",
             below("locales"), below("locales"), below("locales"));
    if (system(line) == 0)
        locale_folder = strdup(below("locales"));
    else
        fprintf(stderr, "no localedef, or no sources of locales: only C and C.UTF-8 are tried\n");
}

Test(keys, a_comma_is_no_point)
{
    char dir[64];
    fa_source s;
    make_locale();
    if (locale_folder)
        setenv("LOCPATH", locale_folder, 1);
    if (!locale_folder || !setlocale(LC_ALL, "de_DE.UTF-8"))
        cr_skip_test("no locale with a comma");
    cr_assert_str_eq(localeconv()->decimal_point, ",");
    toy_dir(dir, "$(f32(0.1)) $(string.format('%.2f', 1.5)) $(tostring(2.5)) $('B' < 'a' and 1 or 2)\n");
    cr_assert_eq(toy_render(dir, &s), FA_OK, "%s", fa_last_error());
    cr_expect_str_eq(s.text, "0.1f 1.50 2.5 1\n");
    cr_expect_str_eq(localeconv()->decimal_point, ",", "the caller's locale stays");
    fa_source_free(&s);
    toy_remove(dir, NULL);
}

/* Surroundings number i, for the process that is about to become the program. */
static void surround(unsigned i)
{
    static const char *const locales[] = { "C", "de_DE.UTF-8", "C.UTF-8", "tr_TR.UTF-8", "nowhere", "" };
    static const char *const zones[] = { "UTC", "Pacific/Chatham", ":/nowhere", "XYZ-14:59" };
    static const char *const folders[] = { "/", "/tmp", "/proc/self", "/usr" };
    if (locale_folder)
        setenv("LOCPATH", locale_folder, 1);
    setenv("LC_ALL", locales[i % 6], 1);
    setenv("TZ", zones[i / 2 % 4], 1);
    if (chdir(folders[i / 3 % 4]) != 0)
        _exit(9);
    umask((mode_t)(i * 21 % 512));
#ifndef __SANITIZE_THREAD__ /* which has places of its own for everything */
    if (i % 5 == 0)
        personality(ADDR_NO_RANDOMIZE);
    if (i % 7 == 1)
        personality(ADDR_COMPAT_LAYOUT);
#endif
    char junk[4096];
    memset(junk, 'x', sizeof junk);
    junk[(i * 397) % sizeof junk] = 0;
    setenv("JUNK", junk, 1); /* moves the stack */
    char fill[16];
    snprintf(fill, sizeof fill, "%u", i % 256);
    setenv("MALLOC_PERTURB_", fill, 1);
    setenv("MALLOC_ARENA_MAX", i % 2 ? "1" : "8", 1);
    setenv("MALLOC_TOP_PAD_", i % 3 ? "4096" : "1000000", 1);
    setenv("HOME", i % 2 ? "/" : "/nowhere", 1);
    setenv("LD_BIND_NOW", i % 2 ? "1" : "", 1);
    setenv("POSIXLY_CORRECT", "1", 1);
    struct rlimit stack = { (rlim_t)(1 + i % 8) << 20, RLIM_INFINITY };
    setrlimit(RLIMIT_STACK, &stack);
}

static void ask(unsigned i, char *out, size_t n)
{
    int to[2], status;
    cr_assert_eq(pipe(to), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(to[1], STDOUT_FILENO);
        close(to[0]);
        close(to[1]);
        if (i)
            surround(i);
        execl(PROBE, i % 2 ? "key_probe" : "a/rather/long/name/of/the/same/program", FAKE_NVRTC, NULL);
        _exit(8);
    }
    close(to[1]);
    size_t at = 0;
    for (ssize_t k; at < n - 1 && (k = read(to[0], out + at, n - 1 - at)) > 0;)
        at += (size_t)k;
    out[at] = 0;
    close(to[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "run %u ended with %d", i, status);
}

/* 30 times; FAGEN_TEST_FULL=1: 1000 times. */
Test(keys, the_same_everywhere)
{
    char first[2000], again[2000];
    unsigned runs = full() ? 1000 : 30;
    make_locale();
    ask(0, first, sizeof first);
    cr_assert(strstr(first, "flash_fwd_wgmma.cu "), "%s", first);
    for (unsigned i = 1; i < runs; i++) {
        ask(i, again, sizeof again);
        cr_assert_str_eq(again, first, "run %u", i);
    }
    cr_log_info("%u runs", runs);
}
