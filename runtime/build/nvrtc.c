/* nvrtc: the search for libnvrtc.so and its table of functions. */
#include "nvrtc.h"
#include "gen/error.h"
#include "runtime/context/environment.h"
#include "runtime/context/exit.h"
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define OLDEST_MAJOR 12
#define OLDEST_MINOR 4
#define END_BYTES 65536

static const struct {
    const char *name;
    size_t at;
} symbols[] = {
#define X(f) { #f, offsetof(fa_nvrtc, f) },
    FA_NVRTC_FUNCTIONS(X)
#undef X
};

/* The build id note of a loaded object. */
typedef struct build_id {
    ElfW(Addr) base;
    char hex[65];
} build_id;

static int find_note(struct dl_phdr_info *info, size_t size, void *user)
{
    build_id *id = user;
    (void)size;
    if (info->dlpi_addr != id->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_NOTE)
            continue;
        const char *p = (const char *)(info->dlpi_addr + ph->p_vaddr), *end = p + ph->p_memsz;
        while (end - p >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) n;
            memcpy(&n, p, sizeof n);
            size_t name = (n.n_namesz + 3u) & ~(size_t)3, desc = (n.n_descsz + 3u) & ~(size_t)3;
            p += sizeof n;
            if ((size_t)(end - p) < name + desc)
                break;
            if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(p, "GNU", 4) == 0)
                for (size_t b = 0; b < n.n_descsz && b < 32; b++)
                    sprintf(id->hex + 2 * b, "%02x", (unsigned)(unsigned char)p[name + b]);
            p += name + desc;
        }
    }
    return 1;
}

/* Of a library without a build id: its size and a digest of its first and last bytes. One at a time: see fa_nvrtc_open(). */
static void digest_ends(const char *path, char hex[65])
{
    static char ends[2 * END_BYTES];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0) {
        ssize_t a = pread(fd, ends, END_BYTES, 0);
        ssize_t b = pread(fd, ends + (a > 0 ? a : 0), END_BYTES, st.st_size > END_BYTES ? st.st_size - END_BYTES : 0);
        XXH128_hash_t h = XXH3_128bits(ends, (size_t)(a > 0 ? a : 0) + (size_t)(b > 0 ? b : 0));
        snprintf(hex, 65, "%llx-%016llx%016llx", (unsigned long long)st.st_size, (unsigned long long)h.high64, (unsigned long long)h.low64);
    }
    close(fd);
}

static void identify(fa_nvrtc *n, void *lib, const char *name)
{
    struct link_map *map = NULL;
    build_id id = { 0, "" };
    snprintf(n->path, sizeof n->path, "%s", name);
    if (dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 && map) {
        if (map->l_name && map->l_name[0])
            snprintf(n->path, sizeof n->path, "%s", map->l_name);
        id.base = map->l_addr;
        dl_iterate_phdr(find_note, &id);
    }
    if (!id.hex[0])
        digest_ends(n->path, id.hex);
    snprintf(n->name, sizeof n->name, "nvrtc %d.%d", n->major, n->minor);
    snprintf(n->identity, sizeof n->identity, "%s %s", n->name, id.hex);
}

/* NVRTC opens its libnvrtc-builtins by bare name when it first compiles, and the folder of a wheel is in no search path.
 * Opened beforehand, it is found by its SONAME, and is the one that belongs to the library at `path`. Best effort: where there is
 * none, NVRTC searches as ever. Kept open with the library. */
static void open_builtins_beside(const char *path)
{
    char name[1024];
    const char *slash = strrchr(path, '/');
    DIR *folder;
    if (!slash || snprintf(name, sizeof name, "%.*s/", (int)(slash - path), path) >= (int)sizeof name || !(folder = opendir(name)))
        return;
    for (const struct dirent *e; (e = readdir(folder));)
        if (!strncmp(e->d_name, "libnvrtc-builtins.so", 20) && !strstr(e->d_name, ".alt.") &&
            snprintf(name, sizeof name, "%.*s/%s", (int)(slash - path), path, e->d_name) < (int)sizeof name)
            dlopen(name, RTLD_NOW | RTLD_LOCAL);
    closedir(folder);
}

/* Whether this is the first time that it is opened, as far as a short list remembers. One at a time: see fa_nvrtc_open(). */
static bool is_new(const void *lib)
{
    static const void *known[8];
    static int count;
    for (int i = 0; i < count; i++)
        if (known[i] == lib)
            return false;
    if (count < (int)(sizeof known / sizeof *known))
        known[count++] = lib;
    return true;
}

/* Opens one candidate. False leaves a line in `looked`, and closes what it opened. */
static bool try_one(fa_nvrtc *out, const char *name, fa_text *looked)
{
    fa_nvrtc n;
    memset(&n, 0, sizeof n);
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        const char *why = dlerror();
        fa_text_fmt(looked, "%s: %s\n", name, strchr(name, '/') && access(name, F_OK) != 0 ? "no such file" : fa_text_after(why, name));
        return false;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *f = dlsym(lib, symbols[i].name);
        if (!f) {
            fa_text_fmt(looked, "%s: symbol %s is missing\n", name, symbols[i].name);
            dlclose(lib);
            return false;
        }
        memcpy((char *)&n + symbols[i].at, &f, sizeof f);
    }
    void *flow = dlsym(lib, "nvrtcSetFlowCallback");
    memcpy(&n.nvrtcSetFlowCallback, &flow, sizeof flow);
    if (n.nvrtcVersion(&n.major, &n.minor) != NVRTC_SUCCESS)
        n.major = n.minor = 0;
    identify(&n, lib, name);
    if (n.major < OLDEST_MAJOR || (n.major == OLDEST_MAJOR && n.minor < OLDEST_MINOR)) {
        fa_text_fmt(looked, "%s: version %d.%d is older than %d.%d\n", n.path, n.major, n.minor, OLDEST_MAJOR, OLDEST_MINOR);
        dlclose(lib);
        return false;
    }
    fa_text_fmt(looked, "%s: version %d.%d, used\n", n.path, n.major, n.minor);
    open_builtins_beside(name);
    if (is_new(lib))
        fa_exit_watch();
    *out = n;
    return true;
}

/* Every file a pattern matches, the newest version first as names sort. */
static bool try_pattern(fa_nvrtc *out, const char *pattern, fa_text *looked)
{
    glob_t g;
    bool found = false;
    if (glob(pattern, 0, NULL, &g) != 0)
        fa_text_fmt(looked, "%s: no such file\n", pattern);
    else {
        for (size_t i = g.gl_pathc; i-- > 0 && !found;)
            found = try_one(out, g.gl_pathv[i], looked);
        globfree(&g);
    }
    return found;
}

static bool try_below(fa_nvrtc *out, const char *prefix, const char *rest, fa_text *looked)
{
    char pattern[1024];
    return prefix && prefix[0] == '/' && snprintf(pattern, sizeof pattern, "%s/%s", prefix, rest) < (int)sizeof pattern &&
           try_pattern(out, pattern, looked);
}

static bool search(fa_nvrtc *out, const fa_environment *env, fa_text *looked)
{
    static const char *const wheels[] = {
        "lib/python3*/site-packages/nvidia/cu1[3-9]/lib/libnvrtc.so.1[3-9]",
        "lib/python3*/dist-packages/nvidia/cu1[3-9]/lib/libnvrtc.so.1[3-9]",
        "lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.1[2-9]",
        "lib/python3*/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.1[2-9]",
    };
    char local[1024] = "";
    if (env->home && strlen(env->home) < sizeof local - 8)
        snprintf(local, sizeof local, "%s/.local", env->home);
    if (try_one(out, "libnvrtc.so.13", looked) || try_one(out, "libnvrtc.so.12", looked))
        return true;
    const char *const toolkits[] = { env->cuda_home, env->cuda_path, "/usr/local/cuda" };
    for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits; i++)
        if (try_below(out, toolkits[i], "lib64/libnvrtc.so.1[2-9]", looked))
            return true;
    const char *const prefixes[] = { env->virtual_env, local, "/usr/local", "/usr", "/opt/conda" };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        for (size_t j = 0; j < sizeof wheels / sizeof *wheels; j++)
            if (try_below(out, prefixes[i], wheels[j], looked))
                return true;
    return false;
}

fa_status fa_nvrtc_open(fa_nvrtc *out, const char *path, fa_text *looked)
{
    fa_environment env = fa_environment_read();
    fa_text own = { 0 };
    fa_text *seen = looked ? looked : &own;
    fa_status st = FA_OK;
    const char *only = path ? path : env.nvrtc;
    /* one search at a time: the dynamic linker's list of libraries, which identify() reads, is still while none is opened here */
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&mutex);
    bool usable = only ? try_one(out, only, seen) : search(out, &env, seen);
    pthread_mutex_unlock(&mutex);
    if (!usable)
        st = fa_fail(FA_NO_NVRTC,
                     "libnvrtc: none is usable; accepted: %d.%d or newer, named by the option nvrtc or FAGEN_NVRTC, or in "
                     "the loader's path. Looked at:\n%s",
                     OLDEST_MAJOR, OLDEST_MINOR, fa_text_cstr(seen));
    fa_text_free(&own);
    return st;
}
