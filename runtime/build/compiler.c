/* compiler: one NVRTC program per call, or per step. */
#include "compiler.h"
#include "gen/directives.h"
#include "gen/error.h"
#include "parts.h"
#include "runtime/context/environment.h"
#include "runtime/context/exit.h"
#include "sim/sim.h"
#include "step_text.h"
#include "workers.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_LINES 6

struct fa_compiler {
    char *path; /* NULL = search */
    pthread_mutex_t mutex;
    atomic_bool open;
    fa_nvrtc nvrtc;
};

fa_compiler *fa_compiler_open(const char *nvrtc)
{
    fa_compiler *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    if (nvrtc && !(c->path = strdup(nvrtc))) {
        free(c);
        return NULL;
    }
    pthread_mutex_init(&c->mutex, NULL);
    return c;
}

void fa_compiler_close(fa_compiler *c)
{
    if (!c)
        return;
    pthread_mutex_destroy(&c->mutex);
    free(c->path);
    free(c);
}

fa_status fa_compiler_nvrtc(fa_compiler *c, const fa_nvrtc **out)
{
    fa_status st = FA_OK;
    if (!atomic_load(&c->open)) {
        pthread_mutex_lock(&c->mutex);
        if (!atomic_load(&c->open) && (st = fa_exit_begin("libnvrtc")) == FA_OK) {
            st = fa_nvrtc_open(&c->nvrtc, c->path, NULL);
            atomic_store(&c->open, st == FA_OK);
            fa_exit_end();
        }
        pthread_mutex_unlock(&c->mutex);
    }
    *out = st == FA_OK ? &c->nvrtc : NULL;
    return st;
}

int fa_image_kind(const fa_source *s, int kind)
{
    bool apart = kind & FA_IMAGE_STEPS && !(kind & FA_IMAGE_PTX) && fa_step_text_apart(s);
    return apart ? kind : kind & ~FA_IMAGE_STEPS;
}

void fa_compile_options_make(fa_compile_options *out, const fa_nvrtc *nvrtc, const char *arch, int kind)
{
    bool ptx = kind & FA_IMAGE_PTX;
    memset(out, 0, sizeof *out);
    /* "sm_90a": the real architecture gives a cubin, the virtual one of the same features PTX */
    snprintf(out->arch, sizeof out->arch, "--gpu-architecture=%s_%s", ptx ? "compute" : "sm",
             strncmp(arch, "sm_", 3) == 0 ? arch + 3 : arch);
    out->list[out->n++] = out->arch;
    out->list[out->n++] = "--std=c++17";
    out->list[out->n++] = "-default-device";
    if (!(kind & FA_IMAGE_LEAN))
        out->list[out->n++] = "--generate-line-info"; /* #line reaches profilers and the simulator's reports; changes no code */
    if (!ptx)
        out->list[out->n++] = "--ptxas-options=-v"; /* registers and spills in the log, without a device */
    if (nvrtc->major > 12 || (nvrtc->major == 12 && nvrtc->minor >= 9)) {
        out->list[out->n++] = "--no-cache"; /* NVRTC's own cache would be a second one, unchecked */
        out->list[out->n++] = "--minimal";  /* without the declarations of textures and of the CUDA runtime */
    }
    out->apart = kind & FA_IMAGE_STEPS;
}

int fa_compile_options_keyed(const fa_compile_options *o, const char *out[FA_COMPILER_KEYED])
{
    fa_environment env = fa_environment_read();
    int n = o->n;
    memcpy(out, o->list, (size_t)n * sizeof *out);
    if (o->apart)
        out[n++] = "steps apart";
    /* NVRTC puts these around its options by itself */
    out[n++] = env.prepend_flags ? env.prepend_flags : "";
    out[n++] = env.append_flags ? env.append_flags : "";
    return n;
}

static fa_key key_of(const fa_nvrtc *n, const fa_compile_options *o, const fa_source *s, const char *arch)
{
    const char *all[FA_COMPILER_KEYED];
    int count = fa_compile_options_keyed(o, all);
    return fa_key_make(s->hash, all, count, arch, n->identity);
}

/* Flags of the environment that make NVRTC read a file: `-include` and `--pre-include`, all that is about precompiled headers, files of
 * options. */
static const char *reads_file(const char *flags)
{
    static const char *const words[] = { "-include", "-pch", "-options-file", "-optf" };
    for (size_t i = 0; flags && i < sizeof words / sizeof *words; i++)
        for (const char *at = flags; (at = strstr(at, words[i])); at++)
            if (strncmp(at, "-include-path", 13) != 0) /* of a text that includes nothing no file is searched for */
                return words[i];
    return NULL;
}

/* Whether a key can hold all that the kernel depends on. */
static fa_status check_inputs(const fa_source *s)
{
    fa_environment env = fa_environment_read();
    const struct {
        const char *name, *flags;
    } rows[] = { { "NVRTC_PREPEND_FLAGS", env.prepend_flags }, { "NVRTC_APPEND_FLAGS", env.append_flags } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *word = reads_file(rows[i].flags);
        if (word)
            return fa_fail(FA_INVALID,
                           "%s is \"%.200s\"; accepted: flags without \"%s\", which makes NVRTC read a file that the cache's key "
                           "does not hold",
                           rows[i].name, rows[i].flags, word);
    }
    return fa_directives_check(s->lined ? s->lined : s->text, s->name[0] ? s->name : "fagen.cu");
}

fa_status fa_compiler_key(fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_key *out)
{
    const fa_nvrtc *n;
    fa_compile_options o;
    fa_status st = check_inputs(s);
    if (st == FA_OK)
        st = fa_compiler_nvrtc(c, &n);
    if (st != FA_OK)
        return st;
    fa_compile_options_make(&o, n, arch, fa_image_kind(s, kind));
    *out = key_of(n, &o, s, arch);
    return FA_OK;
}

/* The lines that say "error", as many as a message holds. */
static void first_errors(fa_text *out, const char *log)
{
    int lines = 0;
    for (const char *p = log; *p && lines < ERROR_LINES;) {
        size_t n = strcspn(p, "\n");
        if (memmem(p, n, "error", 5) && !memmem(p, n, "errors detected", 15) && !memmem(p, n, "error detected", 14)) {
            fa_text_str(out, lines++ ? "\n" : "");
            fa_text_add(out, p, n < 300 ? n : 300);
        }
        p += n + (p[n] == '\n');
    }
    if (!lines)
        fa_text_add(out, log, strnlen(log, 600));
}

typedef nvrtcResult (*size_fn)(nvrtcProgram, size_t *);
typedef nvrtcResult (*bytes_fn)(nvrtcProgram, char *);

/* One result of a program, NUL-terminated past its size; or none of it, and no size either. */
static nvrtcResult fetch(nvrtcProgram p, size_fn size, bytes_fn bytes, char **out, size_t *n)
{
    size_t room = 0;
    nvrtcResult r = size(p, &room);
    char *s = r == NVRTC_SUCCESS ? calloc(1, room + 1) : NULL;
    if (r == NVRTC_SUCCESS)
        r = s ? bytes(p, s) : NVRTC_ERROR_OUT_OF_MEMORY;
    if (r != NVRTC_SUCCESS) {
        free(s);
        return r;
    }
    *out = s;
    *n = room;
    return r;
}

static _Thread_local const atomic_bool *heeded;

void fa_compiler_heed(const atomic_bool *stop)
{
    heeded = stop;
}

static bool ended_by(const atomic_bool *stop)
{
    return sim_interrupted() || (stop && atomic_load(stop));
}

/* NVRTC asks some thirty times in a compilation, with up to 1.5 s between two. */
static int stops(void *user, void *reserved)
{
    (void)reserved;
    return fa_exiting() || ended_by(user);
}

/* NVRTC makes some of its objects in its first compilation, the last where ptxas begins, and has them destroyed at exit before all that was
 * there until then. So until one has succeeded a guard is beside those that are under way. It ends with the last of them. */
typedef struct first_compilations {
    __typeof__(nvrtcCompileProgram) *of; /* the library that was opened */
    bool made;                           /* its objects */
    int under_way;
    fa_exit_guard guard;
} first_compilations;
static pthread_mutex_t first_mutex = PTHREAD_MUTEX_INITIALIZER;

/* NULL where no guard is needed, or of a ninth library. */
static first_compilations *first_begin(const fa_nvrtc *n)
{
    enum { MOST = 8 };
    static first_compilations all[MOST];
    static int count;
    first_compilations *f = NULL;
    pthread_mutex_lock(&first_mutex);
    int i = 0;
    while (i < count && all[i].of != n->nvrtcCompileProgram)
        i++;
    if (i == count && count < MOST)
        all[count++].of = n->nvrtcCompileProgram;
    if (i < count && !all[i].made) {
        f = &all[i];
        if (f->under_way++ == 0)
            fa_exit_guard_begin(&f->guard);
    }
    pthread_mutex_unlock(&first_mutex);
    return f;
}

static void first_end(first_compilations *f, bool succeeded)
{
    if (!f)
        return;
    pthread_mutex_lock(&first_mutex);
    f->made |= succeeded;
    if (--f->under_way == 0) {
        fa_exit_guard_end(&f->guard);
        fa_exit_watch();
    }
    pthread_mutex_unlock(&first_mutex);
}

/* Of one source: what all its programs share, and the results of each. */
typedef struct compilation {
    const fa_nvrtc *nvrtc;
    const fa_compile_options *options;
    const fa_source *source;
    const char *arch;
    const atomic_bool *heeded; /* of the thread that asked: fa_compiler_heed() */
    fa_entry *part;            /* image and log; of one for each step, or one of all */
} compilation;

static nvrtcResult fetch_all(const fa_nvrtc *n, nvrtcProgram program, nvrtcResult compiled, bool ptx, fa_entry *out)
{
    nvrtcResult l = fetch(program, n->nvrtcGetProgramLogSize, n->nvrtcGetProgramLog, &out->log, &out->log_size);
    if (out->log)
        out->log_size = strnlen(out->log, out->log_size); /* its NUL is not counted here */
    if (compiled != NVRTC_SUCCESS)
        return compiled;
    if (l != NVRTC_SUCCESS) /* the log tells registers and spills: a kernel without one is not kept, since they could not be known later */
        return l;
    return ptx ? fetch(program, n->nvrtcGetPTXSize, n->nvrtcGetPTX, &out->image, &out->image_size)
               : fetch(program, n->nvrtcGetCUBINSize, n->nvrtcGetCUBIN, &out->image, &out->image_size);
}

static fa_status run(const compilation *j, const char *text, fa_entry *out)
{
    const fa_nvrtc *n = j->nvrtc;
    const fa_source *s = j->source;
    nvrtcProgram program = NULL;
    fa_text errors = { 0 };
    fa_status st = FA_OK;
    nvrtcResult r = n->nvrtcCreateProgram(&program, text, s->name[0] ? s->name : "fagen.cu", 0, NULL, NULL);
    if (r == NVRTC_SUCCESS) {
        if (n->nvrtcSetFlowCallback)
            n->nvrtcSetFlowCallback(program, stops, (void *)j->heeded);
        r = fetch_all(n, program, n->nvrtcCompileProgram(program, j->options->n, j->options->list), out->ptx, out);
        n->nvrtcDestroyProgram(&program);
    }
    if (fa_exiting()) /* what comes next would be a load */
        st = fa_fail(FA_INTERRUPTED, "%s: the process exits, and the compilation was given up", s->name);
    else if (r != NVRTC_SUCCESS && ended_by(j->heeded))
        st = fa_fail(FA_INTERRUPTED, "%s: interrupted, and the compilation was given up", s->name);
    else if (r == NVRTC_ERROR_OUT_OF_MEMORY)
        st = fa_fail(FA_NOMEM, "%s: %s ran out of memory", s->name, n->name);
    else if (r != NVRTC_SUCCESS) {
        first_errors(&errors, out->log ? out->log : "");
        st = fa_fail(FA_COMPILE, "%s for %s: %s: %s\n%s%s", s->name, j->arch, n->name, n->nvrtcGetErrorString(r), fa_text_cstr(&errors),
                     strstr(fa_text_cstr(&errors), "templates/") ? "\n" FA_SOURCE_HINT : "");
    }
    fa_text_free(&errors);
    return st;
}

static fa_status run_step(void *user, int i)
{
    const compilation *j = user;
    char *text = fa_step_text(j->source, i);
    fa_status st = text ? run(j, text, &j->part[i]) : fa_fail(FA_NOMEM, "%s: no memory for the text of a step", j->source->name);
    free(text);
    return st;
}

static fa_status run_steps(compilation *j, fa_entry *out)
{
    fa_entry part[FA_SOURCE_STEPS] = { { .ptx = 0 } };
    _Static_assert(FA_WORKERS_MOST >= FA_SOURCE_STEPS, "a thread for each");
    j->part = part;
    fa_status st = fa_workers_run(j->source->steps, run_step, j);
    if (st == FA_OK && !fa_parts_join(out, part, j->source->steps))
        st = fa_fail(FA_NOMEM, "%s: no memory for the cubins of its steps", j->source->name);
    for (int i = 0; i < j->source->steps; i++)
        fa_entry_free(&part[i]);
    return st;
}

static fa_status compile(fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_entry *out)
{
    const fa_nvrtc *n;
    fa_compile_options o;
    fa_status st = check_inputs(s);
    if (st == FA_OK)
        st = fa_compiler_nvrtc(c, &n);
    if (st == FA_OK && ended_by(heeded))
        st = fa_fail(FA_INTERRUPTED, "%s: interrupted before it was compiled", s->name);
    if (st != FA_OK)
        return st;
    fa_compile_options_make(&o, n, arch, fa_image_kind(s, kind));
    out->key = key_of(n, &o, s, arch);
    snprintf(out->arch, sizeof out->arch, "%s", arch);
    out->ptx = kind & FA_IMAGE_PTX ? 1 : 0;
    first_compilations *first = first_begin(n);
    compilation j = { .nvrtc = n, .options = &o, .source = s, .arch = arch, .heeded = heeded };
    st = o.apart ? run_steps(&j, out) : run(&j, s->lined ? s->lined : s->text, out);
    first_end(first, st == FA_OK);
    if (st != FA_OK)
        fa_entry_free(out);
    return st;
}

fa_status fa_compile(fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_entry *out)
{
    memset(out, 0, sizeof *out);
    fa_status st = fa_exit_begin(s->name);
    if (st != FA_OK)
        return st;
    st = compile(c, s, arch, kind, out);
    fa_exit_end();
    return st;
}
