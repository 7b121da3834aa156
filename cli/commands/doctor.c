/* doctor: is everything there, where was it looked for, and what helps. Runs whatever is missing. */
#include "autotune/device/probe.h"
#include "cache/rates.h"
#include "cache/store.h"
#include "cli/session/session.h"
#include "cli/text/progress.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "commands.h"
#include "gen/error.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "runtime/context/environment.h"
#include "verify/cases/trial.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct doctor_args {
    cli_common common;
    cli_where where;
    bool probe, ggml;
} doctor_args;
static const cli_option probe_options[] = {
    { .name = "probe",
      .at = offsetof(doctor_args, probe),
      .help =
          "measure what the GPU sustains, some two seconds, and keep it: from then on the model uses it instead of the table's numbers" },
    { .name = NULL },
};
static const cli_option ggml_options[] = {
    { .name = "ggml",
      .at = offsetof(doctor_args, ggml),
      .help = "look at libfagen_ggml.so, by which programs with ggml run these kernels: docs/ggml.md" },
    { .name = NULL },
};
static const cli_group groups[] = { { "What is measured", probe_options, 0 },
                                    { "What else is looked at", ggml_options, 0 },
                                    CLI_WHERE(doctor_args),
                                    CLI_COMMON,
                                    { NULL, NULL, 0 } };

typedef enum state { OK, WARN, FAIL } state;
static const char *const states[] = { "OK", "WARN", "FAIL" };

/* The findings, told as they come. */
typedef struct doctor {
    cli *c;
    json_t *checks;
    int worst;
    fa_text places; /* lines that follow a finding: where was looked */
} doctor;

static void tell(doctor *d, state s, const char *what, const char *fix, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void tell(doctor *d, state s, const char *what, const char *fix, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    d->worst = (int)s > d->worst ? (int)s : d->worst;
    if (d->c->json) {
        json_t *j = json_pack("{s:s,s:s,s:s}", "check", what, "state", states[s], "found", text);
        if (s != OK && fix)
            json_object_set_new(j, "fix", json_string(fix));
        if (d->places.n)
            json_object_set_new(j, "looked", json_string(fa_text_cstr(&d->places)));
        json_array_append_new(d->checks, j);
    } else {
        cli_say(stdout, "%-12s", what);
        cli_paint(d->c, states[s], 6);
        cli_wrap(stdout, text, 18, d->c->columns);
        for (const char *p = fa_text_cstr(&d->places); *p;) {
            size_t n = strcspn(p, "\n");
            cli_say(stdout, "%20s%.*s\n", "", (int)n, p);
            p += n + (p[n] == '\n');
        }
        if (s != OK && fix)
            cli_say(stdout, "%18sfix: %s\n", "", fix);
    }
    fa_text_free(&d->places);
}

/* The thread's message in one line. */
static const char *message(char *buf, size_t n)
{
    snprintf(buf, n, "%s", fa_last_error());
    for (char *p = buf; (p = strchr(p, '\n')) != NULL;)
        *p = ';';
    return buf;
}

static void look_at_devices(doctor *d, const cu_driver *driver)
{
    int count = 0;
    if (driver->cuDeviceGetCount(&count) != CUDA_SUCCESS || !count)
        tell(d, WARN, "device", "check that the GPU is visible: nvidia-smi, CUDA_VISIBLE_DEVICES", "the driver has no device");
    for (int i = 0; i < count; i++) {
        char what[24], text[512];
        fa_device dev;
        size_t bytes = 0;
        snprintf(what, sizeof what, "device %d", i);
        if (fa_device_open_on(&dev, driver, i) != FA_OK) {
            tell(d, WARN, what, "use another device", "%s", message(text, sizeof text));
            continue;
        }
        driver->cuDeviceTotalMem(&bytes, dev.handle);
        tell(d, OK, what, NULL, "%s, %s, %d SMs, %s shared memory per block, L2 %s, %s", dev.arch.chip, dev.arch.name, dev.arch.sm_count,
             cli_show_bytes(dev.arch.smem_block), cli_show_bytes((double)dev.arch.l2_bytes), cli_show_bytes((double)bytes));
    }
}

static void look_at_driver(doctor *d)
{
    const cu_driver *driver = NULL;
    char text[512];
    int version = 0;
    if (fa_driver_cuda(&driver) != FA_OK) {
        tell(d, WARN, "driver", "install NVIDIA's driver, 550 or newer; without one everything runs on the simulator: --device sim:sm_80",
             "%s", message(text, sizeof text));
        return;
    }
    driver->cuDriverGetVersion(&version);
    tell(d, OK, "driver", NULL, "CUDA %d.%d, libcuda.so.1", version / 1000, version % 1000 / 10);
    look_at_devices(d, driver);
}

static bool look_at_nvrtc(doctor *d)
{
    fa_nvrtc n;
    bool there = fa_nvrtc_open(&n, NULL, &d->places) == FA_OK;
    if (there)
        tell(d, OK, "nvrtc", NULL, "%d.%d, %s", n.major, n.minor, n.path);
    else
        tell(d, FAIL, "nvrtc", "install the CUDA toolkit, or pip install nvidia-cuda-nvrtc, or set FAGEN_NVRTC to libnvrtc.so",
             "none is usable (12.4 or newer is needed); looked at:");
    return there;
}

static bool look_at_templates(doctor *d)
{
    fa_gen *g;
    char text[512];
    const char *dir = fa_environment_read().template_dir;
    if (fa_gen_open(&g, dir) != FA_OK) {
        tell(d, FAIL, "templates", dir ? "mend the file, or unset FAGEN_TEMPLATE_DIR" : "this is a defect of fagen: please report it", "%s",
             message(text, sizeof text));
        return false;
    }
    fa_text names = { 0 };
    for (size_t i = 0; i < fa_gen_families(g); i++)
        fa_text_fmt(&names, "%s%s", i ? ", " : "", fa_gen_family(g, i));
    tell(d, OK, "templates", NULL, "%s%s: %s", dir && dir[0] ? "built in, and FAGEN_TEMPLATE_DIR=" : "built in", dir ? dir : "",
         fa_text_cstr(&names));
    fa_text_free(&names);
    fa_gen_close(g);
    return true;
}

static void look_at_cache(doctor *d)
{
    fa_store *s = fa_store_open(NULL, NULL, NULL);
    bool writable = false;
    const char *trouble = NULL, *path;
    if (!s || !fa_store_root_at(s, 0, &writable, &trouble))
        tell(d, WARN, "cache", "set FAGEN_CACHE_DIR to a directory of yours",
             "none: FAGEN_CACHE_DIR is empty, or there is no home directory");
    for (size_t i = 0; s && (path = fa_store_root_at(s, i, &writable, &trouble)) != NULL; i++) {
        bool sound = !trouble || !trouble[0];
        tell(d, sound ? OK : WARN, "cache",
             "a cache directory is yours, and nobody else may write it: chmod 700, or name another in FAGEN_CACHE_DIR", "%s (%s)%s%s", path,
             writable ? "read and write"
             : sound  ? "read only"
                      : "not used",
             sound ? "" : ": ", sound ? "" : trouble);
    }
    if (s && fa_store_root_at(s, 0, &writable, &trouble) && !fa_store_root(s))
        tell(d, WARN, "cache", "name a directory that can be written first in FAGEN_CACHE_DIR",
             "no root can be written: every process compiles again");
    fa_store_close(s);
}

/* The library that GGML_BACKEND_PATH names, or the one that is installed beside the command; loaded, but not started. */
static void look_at_ggml(doctor *d)
{
    const char *named = fa_environment_read().ggml_path;
    char path[PATH_MAX + 32], text[1024];
    if (named) {
        snprintf(path, sizeof path, "%s", named);
    } else {
        ssize_t n = readlink("/proc/self/exe", text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        char *cut = strrchr(text, '/');
        if (cut)
            *cut = 0;
        snprintf(path, sizeof path, "%s/../lib/libfagen_ggml.so", text);
        if (access(path, R_OK) != 0)
            snprintf(path, sizeof path, "libfagen_ggml.so"); /* where the loader looks */
    }
    void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    size_t (*report)(char *, size_t) = file ? (size_t(*)(char *, size_t))dlsym(file, "fagen_ggml_report") : NULL;
    if (report) {
        report(text, sizeof text);
        fa_text_str(&d->places, text);
        tell(d, named ? OK : WARN, "ggml", "set GGML_BACKEND_PATH to that path in the program's environment", "%s%s", path,
             named ? "" : ": no program loads it, as GGML_BACKEND_PATH is not set");
    } else {
        tell(d, WARN, "ggml",
             file ? "name libfagen_ggml.so in GGML_BACKEND_PATH"
                  : "build with -DFAGEN_GGML=ON, and name libfagen_ggml.so in GGML_BACKEND_PATH",
             "%s%s", file ? path : dlerror(), file ? " is another library" : "");
    }
    if (file)
        dlclose(file);
}

/* The one that is asked for; else that of sm_80, which takes the place of a GPU. */
static void look_at_simulator(doctor *d, const char *name, const cli_where *w)
{
    cli quiet = *d->c;
    cli_session s;
    char text[512];
    quiet.quiet = true;
    fa_status st = cli_session_open(&s, &quiet, name ? w : &(cli_where){ .device = "sim:sm_80" });
    if (st != FA_OK) {
        tell(d, FAIL, "simulator", name ? "fagen archs lists the names" : "this is a defect of fagen: please report it", "%s",
             message(text, sizeof text));
        return;
    }
    const fa_arch *arch = fa_context_arch(s.ctx);
    const fa_arch *product = name ? fa_arch_find(name) : NULL;
    tell(d, OK, "simulator", NULL, "%s%s%s, %d SMs, %s shared memory per block", s.device, product ? ", as the model has it " : "",
         product ? product->chip : "", arch->sm_count, cli_show_bytes(arch->smem_block));
    cli_session_close(&s);
}

/* Renders, compiles, loads, runs and verifies one tiny problem. */
static void test_it(doctor *d, const cli_where *w)
{
    cli quiet = *d->c;
    cli_session s;
    fa_problem p = FA_PROBLEM_INIT;
    fa_case c;
    fa_verdict v = { .ok = false };
    char text[512], chip[80];
    quiet.quiet = true;
    p.dtype = FA_F16;
    p.d = 64;
    p.mask = FA_MASK_CAUSAL;
    p.b = 1;
    p.hq = 2;
    p.hkv = 1;
    p.sq = p.sk = 96;
    double start = cli_clock();
    fa_status st = cli_session_open(&s, &quiet, w);
    if (st == FA_OK)
        st = fa_case_of(&c, &p, 1);
    if (st == FA_OK)
        st = fa_verify_case(s.ctx, &c, NULL, &v);
    if (st == FA_OK)
        tell(d, OK, "self-test", NULL,
             "fp16, d=64, causal, 96 x 96 on %s: render, compile, run and verify in %s, max error %.2g (allowed %.2g)",
             s.simulated ? s.device : cli_session_chip(&s, chip, sizeof chip), cli_show_seconds(cli_clock() - start), v.o.most, v.most);
    else
        tell(d, FAIL, "self-test", st == FA_WRONG ? "fagen verify tells more; please report it" : "see the lines above", "%s: %s",
             fa_status_name(st), message(text, sizeof text));
    cli_session_close(&s);
}

/* What the chip sustains, held against the table. */
static void probe_it(doctor *d, const cli_where *w)
{
    cli_session s;
    fa_rates r;
    char text[512], date[32];
    fa_status st = cli_session_open(&s, d->c, w);
    if (st == FA_OK)
        st = fa_probe(s.ctx, &r);
    if (st != FA_OK) {
        tell(d, FAIL, "probes", "fagen bench and fagen verify tell more", "%s", message(text, sizeof text));
    } else if (s.simulated) {
        tell(d, OK, "probes", NULL, "their kernels are right; a simulator has no times");
    } else {
        const fa_arch *a = fa_context_arch(s.ctx);
        const struct {
            const char *name;
            double measured, fitted;
        } rows[] = { { "mma.sync, TFLOP/s", r.mma16 * 1e-12, a->fitted.mma16 * 1e-12 },
                     { "wgmma, TFLOP/s", r.wgmma16 * 1e-12, a->fitted.wgmma16 * 1e-12 },
                     { "exponentials, 1e12/s", r.exps * 1e-12, a->fitted.exps * 1e-12 },
                     { "L2 reads, GB/s", r.l2_bytes * 1e-9, a->fitted.l2_bytes * 1e-9 },
                     { "memory reads, GB/s", r.hbm_bytes * 1e-9, a->fitted.hbm_bytes * 1e-9 },
                     { "a launch, us", r.launch * 1e6, a->fitted.launch * 1e6 },
                     { "clock, MHz", r.clock * 1e-6, a->fitted.clock * 1e-6 } };
        bool kept = fa_rates_save(fa_context_store(s.ctx), a->chip, fa_text_date(date, sizeof date, time(NULL)), &r);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            fa_text_fmt(&d->places, "%-22s %9.4g", rows[i].name, rows[i].measured);
            if (rows[i].fitted > 0)
                fa_text_fmt(&d->places, "   (%.4g where the model was fitted)", rows[i].fitted);
            fa_text_str(&d->places, "\n");
        }
        tell(d, kept ? OK : WARN, "probes", "see the line of the cache", "%s of %s%s", "what the units sustain", a->chip,
             kept ? ", kept for the model" : ", which could not be kept");
        fa_text_free(&d->places);
    }
    cli_session_close(&s);
}

static int run(cli *c, const void *args, int n, char **words)
{
    const doctor_args *a = args;
    doctor d = { .c = c, .checks = json_array() };
    (void)n, (void)words;
    if (!c->json)
        cli_say(stdout, "fagen %s\n", FA_VERSION_STRING);
    const char *simulated = a->where.arch                                             ? a->where.arch
                            : a->where.device && !strncmp(a->where.device, "sim:", 4) ? a->where.device + 4
                                                                                      : NULL;
    if (!simulated) /* what is asked for needs none */
        look_at_driver(&d);
    bool nvrtc = look_at_nvrtc(&d), templates = look_at_templates(&d);
    look_at_cache(&d);
    look_at_simulator(&d, simulated, &a->where);
    if (nvrtc && templates)
        test_it(&d, &a->where);
    else
        tell(&d, WARN, "self-test", "mend what is missing above", "left out");
    if (a->probe)
        probe_it(&d, &a->where);
    if (a->ggml)
        look_at_ggml(&d);
    if (c->json)
        return cli_answer(c, json_pack("{s:s,s:s,s:o}", "fagen", FA_VERSION_STRING, "state", states[d.worst], "checks", d.checks),
                          CLI_EXIT_OK);
    json_decref(d.checks);
    return CLI_EXIT_OK;
}

const cli_command cli_doctor = {
    .name = "doctor",
    .summary = "what is there and what is missing, with the fix",
    .usage = "[--device DEVICE] [--probe] [--ggml]",
    .about =
        "Looks at the driver, the devices, NVRTC, the templates, the cache and the simulator, and compiles, runs and verifies one tiny "
        "kernel. Each line says OK, WARN or FAIL, where it looked, and what helps. Always exits 0: the lines are the answer.",
    .examples = "fagen doctor\nfagen doctor --json\nfagen doctor --device sim:sm_80",
    .groups = groups,
    .size = sizeof(doctor_args),
    .run = run,
};
