/* precompiled: a file that is mapped when the first kernel is needed. */
#include "precompiled.h"
#include "gen/error.h"
#include "image.h"
#include "runtime/context/context.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file beside the library, or beside the program that holds it. NULL: there is none. */
static char *beside(void)
{
    static const char here;
    Dl_info info;
    char *path = NULL;
    if (!dladdr(&here, &info) || !info.dli_fname)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    int folder = slash ? (int)(slash - info.dli_fname) + 1 : 0;
    if (asprintf(&path, "%.*s%s", folder, info.dli_fname, FA_PRECOMPILED_FILE) < 0)
        return NULL;
    if (slash && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

fa_status fa_precompiled_open(fa_precompiled *p, const char *path, const fa_environment *env)
{
    bool flags = (env->prepend_flags && env->prepend_flags[0]) || (env->append_flags && env->append_flags[0]);
    if (flags || (path && !path[0]))
        return FA_OK;
    p->path = path ? strdup(path) : beside();
    return path && !p->path ? fa_fail(FA_NOMEM, "host memory for the option shipped") : FA_OK;
}

void fa_precompiled_close(fa_precompiled *p)
{
    fa_blob_free(&p->blob);
    if (p->bytes)
        munmap(p->bytes, p->size);
    free(p->path);
    pthread_mutex_destroy(&p->mutex);
    *p = (fa_precompiled){ .path = NULL };
}

static fa_status map(fa_precompiled *p)
{
    struct stat st;
    int fd = open(p->path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 || fstat(fd, &st) != 0 ? errno : 0;
    void *bytes = error ? MAP_FAILED : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    error = error || bytes != MAP_FAILED ? error : errno;
    if (fd >= 0)
        close(fd);
    if (error)
        return fa_fail(FA_IO, "%s", strerror(error));
    p->bytes = bytes;
    p->size = (size_t)st.st_size;
    return FA_OK;
}

static fa_status read_file(fa_precompiled *p)
{
    fa_status st = map(p);
    if (st == FA_OK)
        st = fa_blob_read(&p->blob, p->bytes, p->size);
    if (st == FA_OK && strcmp(p->blob.version, FA_VERSION_STRING) != 0)
        st = fa_fail(FA_INVALID, "it is of fagen %.20s; accepted: %s, the library's own", p->blob.version, FA_VERSION_STRING);
    return st;
}

static void make_ready(const fa_context *ctx, fa_precompiled *p)
{
    pthread_mutex_lock(&p->mutex);
    if (!p->tried && read_file(p) != FA_OK) {
        fa_log_say(&ctx->log, FA_LOG_WARN, "%s is not used, and kernels are compiled: %s", p->path, fa_last_error());
        fa_blob_free(&p->blob);
    }
    p->tried = true;
    pthread_mutex_unlock(&p->mutex);
}

static const fa_blob_image *find(fa_context *ctx, const fa_source *s)
{
    fa_precompiled *p = ctx->precompiled;
    char hash[33];
    if (!p->path)
        return NULL;
    make_ready(ctx, p);
    fa_key_print(hash, (fa_key){ s->hash[0], s->hash[1] });
    for (uint32_t i = 0; i < p->blob.images; i++) {
        const fa_blob_image *image = &p->blob.image[i];
        if (strcmp(image->source, hash) == 0 && strcmp(image->arch, ctx->device.arch.name) == 0 && image->steps == s->steps &&
            !image->ptx == !ctx->device.driver->takes_ptx)
            return image;
    }
    return NULL;
}

bool fa_precompiled_has(fa_context *ctx, const fa_source *s)
{
    fa_message before;
    fa_message_keep(&before);
    bool has = find(ctx, s) != NULL;
    fa_message_settle(&before, FA_OK);
    return has;
}

const fa_kernel *fa_precompiled_kernel(fa_context *ctx, const fa_source *s)
{
    const fa_kernel *k = NULL;
    fa_message before;
    fa_message_keep(&before);
    const fa_blob_image *image = find(ctx, s);
    if (image && fa_bundle_image_load(ctx, &ctx->precompiled->blob, image, s, "shipped kernels", &k) != FA_OK)
        fa_log_say(&ctx->log, FA_LOG_WARN, "a kernel of %s is not used, and compiled: %s", ctx->precompiled->path, fa_last_error());
    fa_message_settle(&before, FA_OK);
    return k;
}
