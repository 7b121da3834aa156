/* cubins: the machine code of kernels, by its hash: two sets of templates whose texts differ in comments alone give the same list. */
#include "bench/dev/dev.h"
#include "cli/options/command.h"
#include "cli/options/problem_options.h"
#include "cli/text/progress.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/text.h"
#include "runtime/build/compiler.h"
#include "runtime/choose/shipped.h"
#include "verify/cases/case.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct cubins_args {
    cli_common common;
    const char *with, *only;
    int32_t count, threads;
} cubins_args;

#define FIELD(f) .at = offsetof(cubins_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "with", .letter = 'w', .type = &cli_text, FIELD(with), .value = "FILE",
      .help = "a list to compare with: what is printed are the kernels whose code is another one" },
    { .name = "only", .type = &cli_text, FIELD(only), .value = "TEXT",
      .help = "kernels of whose 'ARCH PROBLEM FAMILY' this is a part, such as \"op=backward\" or \"sm_80 bf16,d=63,\"" },
    { .name = "count", .letter = 'N', .type = &cli_int, FIELD(count), .value = "N",
      .help = "configs of each family, class of problems and arch, beside the winners that ship", .preset = "2", .min = 0, .max = 1000 },
    { .name = "threads", .letter = 'j', .type = &cli_int, FIELD(threads), .value = "N",
      .help = "that compile", .preset = "2", .min = 1, .max = 256 },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "The kernels", options, 0 }, CLI_COMMON, { NULL, NULL, 0 } };

/* Each with a piece of the templates that the others do not have. */
static const char *const classes[] = {
    "bf16,d=128,mask=causal",
    "fp16,d=80,mask=window",
    "bf16,d=63",
    "fp16,d=256,dv=64,o=fp32,features=lse-strides",
    "tf32,d=64,mask=causal",
    "fp32,d=40,mask=window",
    "bf16,d=64,features=no-workspace",
    "bf16,d=64,mask=causal,features=lengths",
    "bf16,d=128,mask=window,features=lengths+pages,page=16",
    "fp16,d=36,dv=20,mask=causal,align=4,features=lengths+pages,page=1",
    "fp32,d=72,features=lengths+pages,page=8",
    "bf16,d=128,mask=causal,features=lengths+batch-invariant",
    "bf16,d=64,mask=causal,features=dropout",
    "fp16,d=128,mask=window,features=lengths+dropout",
    "fp32,d=64,features=dropout",
    "bf16,d=128,mask=causal,op=backward",
    "bf16,d=64,op=backward,features=deterministic",
    "fp16,d=256,mask=window,op=backward,grad=fp32",
    "bf16,d=96,mask=causal,op=backward,features=lengths",
    "bf16,d=64,mask=causal,op=backward,features=dropout",
    "bf16,d=63,mask=window,op=backward",
    "fp32,d=40,mask=causal,op=backward",
    "bf16,d=128,op=merge",
    "fp32,d=64,op=merge",
};
static const char *const archs[] = { "sm_80", "sm_90a" };

typedef struct kernel {
    const char *arch;
    char name[480]; /* "ARCH PROBLEM CONFIG" */
    fa_source source;
    uint64_t code[2];
    bool known; /* its text is that of the list to compare with, and so is its code */
} kernel;

typedef struct kernels {
    const char *only;
    kernel **k;
    size_t n, most;
    fa_compiler *compiler;
    cli_progress bar;
    pthread_mutex_t mutex; /* of what is below, and of the line of progress */
    size_t next;
    fa_status failed;
    char message[2048];
} kernels;

/* A text of the list: "CODE TEXT ARCH PROBLEM CONFIG", hashes of 32 digits. */
typedef struct list {
    char *text;
    char **line;
    size_t n;
} list;

#define HASHES 66 /* of a line: both, and the blanks after them */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a + HASHES, *(char *const *)b + HASHES);
}

static fa_status list_read(list *l, const char *path)
{
    fa_text t = { 0 };
    char block[4096];
    FILE *f = fopen(path, "r");
    if (!f)
        return fa_fail(FA_IO, "--with: %s: %s", path, strerror(errno));
    for (size_t n; (n = fread(block, 1, sizeof block, f));)
        fa_text_add(&t, block, n);
    fclose(f);
    l->text = t.s;
    l->line = t.oom ? NULL : calloc(t.n / HASHES + 1, sizeof *l->line);
    if (!l->line)
        return fa_fail(FA_NOMEM, "no memory for the list");
    for (char *at = l->text, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        if (end - at <= HASHES || at[32] != ' ' || at[HASHES - 1] != ' ')
            return fa_fail(FA_INVALID, "--with: %s: \"%.60s\"; accepted: lines as fagen-dev cubins prints them", path, at);
        l->line[l->n++] = at;
    }
    qsort(l->line, l->n, sizeof *l->line, by_name);
    return FA_OK;
}

static const char *list_find(const list *l, const char *name)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t at = (lo + hi) / 2;
        int order = strcmp(name, l->line[at] + HASHES);
        if (!order)
            return l->line[at];
        *(order < 0 ? &hi : &lo) = order < 0 ? at : at + 1;
    }
    return NULL;
}

static void hex(char out[33], const uint64_t hash[2])
{
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, hash[1], hash[0]);
}

/* Room for one more. NULL: memory ran out. */
static kernel *more(kernels *all)
{
    kernel *k = calloc(1, sizeof *k);
    if (k && all->n == all->most) {
        kernel **room = realloc(all->k, (2 * all->most + 64) * sizeof *room);
        if (room)
            all->k = room, all->most = 2 * all->most + 64;
    }
    if (k && all->n < all->most)
        return all->k[all->n++] = k;
    free(k);
    return NULL;
}

static bool asked_for(const kernels *all, const char *arch, const fa_problem *p, const char *family)
{
    char key[160], name[sizeof(((kernel *)0)->name)];
    fa_problem_print_key(key, sizeof key, p);
    snprintf(name, sizeof name, "%s %s %s", arch, key, family);
    return !all->only || strstr(name, all->only);
}

/* Renders it, unless it is there or not asked for. */
static fa_status add(kernels *all, fa_gen *g, const char *arch, const fa_problem *p, const fa_config *c)
{
    char key[160], config[256], name[sizeof(((kernel *)0)->name)];
    fa_problem_print_key(key, sizeof key, p);
    fa_config_print(config, sizeof config, c);
    snprintf(name, sizeof name, "%s %s %s", arch, key, config);
    if (!asked_for(all, arch, p, c->family))
        return FA_OK;
    for (size_t i = 0; i < all->n; i++)
        if (!strcmp(all->k[i]->name, name))
            return FA_OK;
    kernel *k = more(all);
    if (!k)
        return fa_fail(FA_NOMEM, "no memory for the kernels");
    memcpy(k->name, name, sizeof k->name);
    k->arch = arch;
    return fa_wrap(fa_render(g, p, c, fa_arch_find(arch), 0, &k->source), "%s", k->name);
}

static fa_status add_class(kernels *all, fa_gen *g, const char *arch, const char *class, int32_t count)
{
    char text[160];
    fa_problem p;
    fa_case k;
    const char *shape = strstr(class, "op=merge") ? "b=2,hq=8,hkv=8,sq=512" : "b=2,hq=8,hkv=2,sq=1024,sk=1024";
    snprintf(text, sizeof text, "%s,%s", class, shape);
    fa_status st = fa_problem_parse(&p, text);
    if (st == FA_OK)
        st = fa_case_of(&k, &p, 0);
    for (size_t f = 0; f < fa_gen_families(g) && st == FA_OK; f++)
        for (int32_t i = 0; i < count && st == FA_OK; i++) {
            fa_config c;
            if (fa_gen_operation(g, f) != p.op || !asked_for(all, arch, &k.problem, fa_gen_family(g, f)))
                continue;
            k.choice = (uint32_t)i;
            st = fa_case_config(g, &k, fa_arch_find(arch), 0, fa_gen_family(g, f), &c);
            if (st == FA_OK)
                st = add(all, g, arch, &k.problem, &c);
            else if (st == FA_UNSUPPORTED || st == FA_NO_FIT)
                st = FA_OK;
        }
    return st;
}

static fa_status collect(kernels *all, fa_gen *g, int32_t count)
{
    fa_status st = FA_OK;
    for (size_t i = 0; i < fa_shipped_count && st == FA_OK; i++)
        st = add(all, g, "sm_90a", &fa_shipped_rows[i].problem, &fa_shipped_rows[i].config);
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++)
        for (size_t i = 0; i < sizeof classes / sizeof *classes && st == FA_OK; i++)
            st = add_class(all, g, archs[a], classes[i], count);
    return st;
}

/* The one to compile next; NULL: there is none, or one failed. */
static kernel *next(kernels *all)
{
    kernel *k = NULL;
    pthread_mutex_lock(&all->mutex);
    while (all->failed == FA_OK && !k && all->next < all->n) {
        k = all->k[all->next++];
        if (k->known)
            k = NULL;
        else
            cli_progress_tell(&all->bar, k->name, (double)all->next / (double)all->n);
    }
    pthread_mutex_unlock(&all->mutex);
    return k;
}

static void *compile(void *arg)
{
    kernels *all = arg;
    for (kernel *k; (k = next(all));) {
        fa_entry e = { 0 };
        fa_status st = fa_compile(all->compiler, &k->source, k->arch, FA_IMAGE_CUBIN | FA_IMAGE_LEAN, &e);
        if (st == FA_OK) {
            XXH128_hash_t h = XXH3_128bits(e.image, (size_t)e.image_size);
            k->code[0] = h.low64, k->code[1] = h.high64;
        } else {
            pthread_mutex_lock(&all->mutex);
            all->failed = st;
            snprintf(all->message, sizeof all->message, "%s: %s", k->name, fa_last_error());
            pthread_mutex_unlock(&all->mutex);
        }
        fa_entry_free(&e);
    }
    return NULL;
}

static fa_status compile_all(kernels *all, int32_t threads)
{
    pthread_t t[256];
    int32_t n = 0;
    while (n < threads && !pthread_create(&t[n], NULL, compile, all))
        n++;
    if (!n)
        compile(all);
    for (int32_t i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    cli_progress_end(&all->bar);
    return all->failed == FA_OK ? FA_OK : fa_fail(all->failed, "%s", all->message);
}

/* Prints all, or with a list those whose code is not that of the list. */
static int tell(cli *c, const kernels *all, const list *with)
{
    size_t texts = 0, codes = 0, without = 0;
    json_t *rows = json_array();
    for (size_t i = 0; i < all->n; i++) {
        const kernel *k = all->k[i];
        const char *was = with ? list_find(with, k->name) : NULL;
        char code[33], text[33];
        hex(code, k->code), hex(text, k->source.hash);
        bool differs = !k->known && (!was || strncmp(was, code, 32));
        texts += was && strncmp(was + 33, text, 32), codes += was && differs, without += !was;
        if (with && !differs)
            continue;
        if (c->json)
            json_array_append_new(rows, json_pack("{s:s,s:s,s:s}", "code", code, "text", text, "kernel", k->name));
        else
            printf("%s %s %s\n", code, text, k->name);
    }
    int status = with && (codes || without) ? CLI_EXIT_WRONG : CLI_EXIT_OK;
    if (c->json)
        return cli_answer(c,
                          json_pack("{s:I,s:I,s:I,s:I,s:o}", "kernels", (json_int_t)all->n, "texts_differ", (json_int_t)texts,
                                    "codes_differ", (json_int_t)codes, "not_listed", (json_int_t)without, "rows", rows),
                          status);
    json_decref(rows);
    if (with)
        printf("%zu kernels: %zu texts differ, the code of %zu, %zu are not in the list\n", all->n, texts, codes, without);
    return status;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const cubins_args *a = args;
    kernels all = { .only = a->only, .bar = { .c = c }, .mutex = PTHREAD_MUTEX_INITIALIZER, .failed = FA_OK };
    list with = { 0 };
    fa_gen *g = NULL;
    (void)n, (void)words;
    fa_status st = a->with ? list_read(&with, a->with) : FA_OK;
    if (st == FA_OK)
        st = cli_gen_open(&g);
    if (st == FA_OK && !(all.compiler = fa_compiler_open(getenv("FAGEN_NVRTC"))))
        st = fa_fail(FA_NOMEM, "no memory for the compiler");
    if (st == FA_OK)
        st = collect(&all, g, a->count);
    if (st == FA_OK && !all.n)
        st = fa_fail(FA_INVALID, "--only is \"%.80s\"; accepted: a part of what a line has of arch, problem and family", a->only);
    for (size_t i = 0; i < all.n && st == FA_OK; i++) {
        char text[33];
        const char *was = a->with ? list_find(&with, all.k[i]->name) : NULL;
        hex(text, all.k[i]->source.hash);
        all.k[i]->known = was && !strncmp(was + 33, text, 32);
    }
    if (st == FA_OK)
        st = compile_all(&all, a->threads);
    int code = st == FA_OK ? tell(c, &all, a->with ? &with : NULL) : cli_fail(c, st);
    for (size_t i = 0; i < all.n; i++) {
        fa_source_free(&all.k[i]->source);
        free(all.k[i]);
    }
    free(all.k);
    free(with.line);
    free(with.text);
    fa_compiler_close(all.compiler);
    fa_gen_close(g);
    return code;
}

const cli_command dev_cubins = {
    .name = "cubins",
    .summary = "hashes of the machine code of kernels: what ships, and configs of each family",
    .usage = "[--with FILE] [--only TEXT]",
    .about = "Renders the winners that ship and some configs of each family in each class of problems, compiles them with NVRTC, without "
             "line tables, and prints a line for each: hash of the cubin, hash of the text, arch, problem, config. With --with FILE, such "
             "a list of other templates, it prints those whose code differs, and exits 4 where there is one. A kernel whose text is that "
             "of the list is not compiled. FAGEN_TEMPLATE_DIR names other templates. Needs no device.",
    .examples = "fagen-dev cubins > before.txt; fagen-dev cubins --with before.txt",
    .groups = groups,
    .size = sizeof(cubins_args),
    .run = run,
};
