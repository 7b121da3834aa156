/* layout: holds the declarations of layout.h against a program's ggml. */
#include "layout.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(fa_ggml_tensor) + 32 == FA_GGML_TENSOR_OVERHEAD, "a tensor has 336 bytes");
_Static_assert(offsetof(fa_ggml_tensor, op_params) == 84 && offsetof(fa_ggml_tensor, src) == 152 && offsetof(fa_ggml_tensor, data) == 248 &&
                   offsetof(fa_ggml_tensor, name) == 256,
               "its fields");
_Static_assert(sizeof(fa_ggml_graph) == 96 && offsetof(fa_ggml_graph, uid) == 88, "a graph");
_Static_assert(offsetof(fa_ggml_backend, device) == 136 && sizeof(fa_ggml_backend) == 152, "a backend");
_Static_assert(offsetof(fa_ggml_device, reg) == 120 && sizeof(fa_ggml_device) == 136, "a device");
_Static_assert(sizeof(fa_ggml_reg) == 48, "a registry");

static bool differs(char *why, size_t n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static bool differs(char *why, size_t n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, n, fmt, ap);
    va_end(ap);
    return false;
}

/* A program that was linked with ggml shows its functions to all; one that opened it later, as a script does, to itself alone. */
void *fa_ggml_find_loaded(void *unused, const char *name)
{
    static const char *const files[] = { "libggml.so", "libggml-base.so", "libggml.so.0", "libggml-base.so.0" };
    void *at = dlsym(RTLD_DEFAULT, name);
    (void)unused;
    for (size_t i = 0; i < sizeof files / sizeof *files && !at; i++) {
        void *file = dlopen(files[i], RTLD_NOLOAD | RTLD_LAZY);
        if (file) {
            at = dlsym(file, name);
            dlclose(file); /* takes back what the line above added to its count */
        }
    }
    return at;
}

static bool find_all(fa_ggml *g, fa_ggml_find *find, void *user, char *why, size_t n)
{
#define X(type, name, parameters)                                                                                        \
    {                                                                                                                    \
        void *at = find(user, #name);                                                                                    \
        if (!at)                                                                                                         \
            return differs(why, n, "the program shows no function " #name ": it has no ggml, or one that is linked in"); \
        memcpy(&g->name, &at, sizeof at);                                                                                \
    }
    FA_GGML_SYMBOLS(X)
#undef X
    return true;
}

/* What a kernel reads is told by a type's name; its size is asked for, in case that the number of a type means another one. */
static bool ask_types(fa_ggml *g, char *why, size_t n)
{
    static const struct {
        const char *name;
        int32_t block, bytes;
    } known[] = { { "f32", 1, 4 }, { "f16", 1, 2 }, { "bf16", 1, 2 }, { "q8_0", 32, 34 }, { "q4_0", 32, 18 } };
    size_t met = 0;
    for (int32_t t = 0; t < FA_GGML_TYPES; t++) {
        const char *name = g->ggml_type_name(t);
        g->type[t].name[0] = 0;
        if (!name || strlen(name) >= sizeof g->type[t].name) /* a number that was given up */
            continue;
        memcpy(g->type[t].name, name, strlen(name) + 1);
        g->type[t].block = (int32_t)g->ggml_blck_size(t);
        g->type[t].bytes = (int32_t)g->ggml_type_size(t);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (!strcmp(known[i].name, name)) {
                met++;
                if (g->type[t].block != known[i].block || g->type[t].bytes != known[i].bytes)
                    return differs(why, n, "its type %s has %d bytes for %d elements; known: %d for %d", name, g->type[t].bytes,
                                   g->type[t].block, known[i].bytes, known[i].block);
            }
    }
    return met == sizeof known / sizeof *known || differs(why, n, "it has no type of each of the names f32, f16, bf16, q8_0, q4_0");
}

bool fa_ggml_ask(fa_ggml *g, char *why, size_t n)
{
    static const char *const idle[] = { "NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE" };
    size_t overhead = g->ggml_tensor_overhead();
    if (overhead != FA_GGML_TENSOR_OVERHEAD)
        return differs(why, n, "ggml_tensor_overhead() is %zu; known: %d", overhead, FA_GGML_TENSOR_OVERHEAD);
    g->routed = -1;
    for (g->attention = 0; g->attention < FA_GGML_OPS; g->attention++) { /* the others come before it */
        const char *name = g->ggml_op_name(g->attention);
        if (!name) /* past the last */
            return differs(why, n, "it has no operation FLASH_ATTN_EXT");
        for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
            g->idle[g->attention] = g->idle[g->attention] || !strcmp(name, idle[i]);
        if (!strcmp(name, "MUL_MAT_ID"))
            g->routed = g->attention;
        if (!strcmp(name, "FLASH_ATTN_EXT"))
            break;
    }
    if (g->attention == FA_GGML_OPS)
        return differs(why, n, "it has no operation FLASH_ATTN_EXT below %d", FA_GGML_OPS);
    return ask_types(g, why, n);
}

bool fa_ggml_open(fa_ggml *g, fa_ggml_find *find, void *user, char *why, size_t n)
{
    memset(g, 0, sizeof *g);
    if (!find_all(g, find, user, why, n))
        return false;
    const fa_ggml_reg *r = g->ggml_backend_reg_by_name("CUDA");
    if (!r)
        r = g->ggml_backend_reg_by_name("CPU");
    if (!r)
        return differs(why, n, "it has neither a registry CUDA nor one CPU");
    if (r->api_version < FA_GGML_API_LEAST || r->api_version > FA_GGML_API_MOST)
        return differs(why, n, "its backend API is %d; known: %d to %d", r->api_version, FA_GGML_API_LEAST, FA_GGML_API_MOST);
    g->api = r->api_version;
    return fa_ggml_ask(g, why, n);
}

/* The file that an address belongs to: entries of one table are of one file. */
static const void *file_of(const void *at)
{
    Dl_info info;
    return at && dladdr(at, &info) ? info.dli_fbase : NULL;
}
static bool of_one_file(const void *const *entry, const char *const *name, size_t count, const char *table, char *why, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        if (!entry[i])
            return differs(why, n, "%s: %s is NULL", table, name[i]);
        if (!file_of(entry[i]) || file_of(entry[i]) != file_of(entry[0]))
            return differs(why, n, "%s: %s and %s are not of one file", table, name[i], name[0]);
    }
    return true;
}

bool fa_ggml_reg_check(const fa_ggml *g, const fa_ggml_reg *r, char *why, size_t n)
{
    const void *entries[] = { (const void *)r->i.get_name, (const void *)r->i.device_count, (const void *)r->i.device };
    static const char *const names[] = { "get_name", "get_device_count", "get_device" };
    if (r->api_version != g->api)
        return differs(why, n, "a registry's API is %d, another's %d", r->api_version, g->api);
    return of_one_file(entries, names, 3, "the registry", why, n);
}

bool fa_ggml_device_check(const fa_ggml *g, fa_ggml_device *d, const fa_ggml_reg *r, char *why, size_t n)
{
    const void *entries[] = { (const void *)d->i.get_name, (const void *)d->i.init_backend, (const void *)d->i.supports_op,
                              (const void *)d->i.get_buffer_type, (const void *)d->i.supports_buffer_type };
    static const char *const names[] = { "get_name", "init_backend", "supports_op", "get_buffer_type", "supports_buft" };
    if (d->reg != r || g->ggml_backend_dev_backend_reg(d) != r)
        return differs(why, n, "the device's registry does not lie where it is looked for");
    if (!of_one_file(entries, names, 5, "the device", why, n))
        return false;
    const char *own = d->i.get_name(d), *told = g->ggml_backend_dev_name(d);
    if (!own || !told || strcmp(own, told) != 0)
        return differs(why, n, "get_name of the device gives another name than ggml_backend_dev_name()");
    return true;
}

bool fa_ggml_backend_check(const fa_ggml *g, fa_ggml_backend *b, const fa_ggml_device *d, char *why, size_t n)
{
    const void *entries[] = { (const void *)b->i.get_name, (const void *)b->i.free, (const void *)b->i.graph_compute };
    static const char *const names[] = { "get_name", "free", "graph_compute" };
    if (b->device != d || g->ggml_backend_get_device(b) != d)
        return differs(why, n, "the backend's device does not lie where it is looked for");
    return of_one_file(entries, names, 3, "the backend", why, n);
}

bool fa_ggml_graph_check(const fa_ggml *g, fa_ggml_graph *c, char *why, size_t n)
{
    if (c->n_nodes < 0 || g->ggml_graph_n_nodes(c) != c->n_nodes)
        return differs(why, n, "a graph's n_nodes does not lie where it is looked for");
    if (g->ggml_graph_nodes(c) != c->nodes || (c->n_nodes && !c->nodes))
        return differs(why, n, "a graph's nodes do not lie where they are looked for");
    return true;
}

/* The first of its fields, by their offsets: int device; a string of 32 bytes, {text, size, 16 bytes for a short text}; an event; a row of
 * 8 streams for each device. A short text lies inside its string, which is what tells the layout. */
void *fa_ggml_cuda_stream(const fa_ggml_backend *b, const char *name, int32_t device)
{
    const char *at = b->context;
    int32_t number;
    const char *text;
    size_t size;
    void *stream;
    if (!at || device < 0 || device >= 16 || (uintptr_t)at % 8)
        return NULL;
    memcpy(&number, at, sizeof number);
    memcpy(&text, at + 8, sizeof text);
    memcpy(&size, at + 16, sizeof size);
    if (number != device || text != at + 24 || size != strlen(name) || size > 15 || memcmp(text, name, size + 1) != 0)
        return NULL;
    memcpy(&stream, at + 48 + 64 * (size_t)device, sizeof stream);
    return stream;
}
