/* seam: the functions of seam.h. */
#include "seam.h"
#include "engine.h"
#include "report.h"
#include "runtime/context/environment.h"
#include "settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fagen_ggml_seam {
    fa_ggml ggml;
    fa_ggml_engine *engine;
    fa_ggml_stream *stream;
    bool failed;
};

fagen_ggml_seam *fagen_ggml_seam_open(const fagen_ggml_functions *f, int device, const char *simulator)
{
    char why[256], name[64];
    fagen_ggml_seam *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    if (f->size != sizeof *f) {
        fa_ggml_tell("seam: functions of %u bytes; known: %zu", f->size, sizeof *f);
        return free(s), NULL;
    }
    s->ggml.ggml_tensor_overhead = f->ggml_tensor_overhead;
    s->ggml.ggml_op_name = f->ggml_op_name;
    s->ggml.ggml_type_name = f->ggml_type_name;
    s->ggml.ggml_type_size = f->ggml_type_size;
    s->ggml.ggml_blck_size = f->ggml_blck_size;
    if (!fa_ggml_ask(&s->ggml, why, sizeof why)) {
        fa_ggml_tell("this ggml is left alone: %s", why);
        return free(s), NULL;
    }
    snprintf(name, sizeof name, "cuda:%d", device);
    fa_status st = fa_ggml_engine_open(&s->engine, simulator ? simulator : name, 0, FA_MISS_COMPILE, fa_ggml_log);
    if (st == FA_OK)
        st = fa_ggml_engine_ready(s->engine);
    if (st == FA_OK)
        st = fa_ggml_stream_open(&s->stream, s->engine);
    if (st != FA_OK) {
        fa_ggml_tell("attention stays ggml's: %s: %s", fa_status_name(st), fa_last_error());
        fagen_ggml_seam_close(s);
        return NULL;
    }
    fa_ggml_stream_begin(s->stream);
    return s;
}

void fagen_ggml_seam_close(fagen_ggml_seam *s)
{
    if (!s)
        return;
    fa_ggml_stream_close(s->stream);
    fa_ggml_engine_close(s->engine);
    free(s);
}

static bool takes(fagen_ggml_seam *s, const struct ggml_tensor *node, fa_ggml_claim *c)
{
    char why[512];
    const fa_ggml_tensor *t = (const fa_ggml_tensor *)(const void *)node;
    if (!s || s->failed || t->op != s->ggml.attention)
        return false;
    bool yes = fa_ggml_claim_node(&s->ggml, t, c, why, sizeof why) && fa_ggml_engine_takes(s->engine, c, why, sizeof why);
    if (!yes)
        fa_ggml_tell("left to ggml: %s", why);
    return yes;
}

int fagen_ggml_supports(fagen_ggml_seam *s, const struct ggml_tensor *node)
{
    fa_ggml_claim c;
    return takes(s, node, &c);
}

void fagen_ggml_begin(fagen_ggml_seam *s)
{
    if (s)
        fa_ggml_stream_begin(s->stream);
}

int fagen_ggml_compute(fagen_ggml_seam *s, const struct ggml_tensor *node, void *stream, int captured)
{
    fa_ggml_claim c;
    if (!takes(s, node, &c))
        return 0;
    fa_status st = fa_ggml_stream_run(s->stream, &c, ((const fa_ggml_tensor *)(const void *)node)->src[3], stream, captured != 0);
    s->failed = st != FA_OK && !fa_ggml_refused(st);
    if (fa_ggml_refused(st))
        fa_ggml_tell("left to ggml: %s", fa_last_error());
    else if (st != FA_OK)
        fa_ggml_tell("attention is ggml's from here on: %s: %s", fa_status_name(st), fa_last_error());
    return st == FA_OK;
}

size_t fagen_ggml_report(char *buf, size_t n)
{
    const char *text = fa_environment_read().ggml;
    fa_ggml_settings set;
    char formats[200] = "", why[200] = "";
    size_t at = 0;
    const fa_ggml_format *f;
    for (size_t i = 0; (f = fa_ggml_format_row(i)) != NULL && at < sizeof formats; i++)
        at += (size_t)snprintf(formats + at, sizeof formats - at, "%s%s", i ? ", " : "", f->name);
    bool good = fa_ggml_settings_read(&set, text, why, sizeof why);
    int size = snprintf(buf, n,
                        "backend API %d to %d of ggml\nFLASH_ATTN_EXT with Q in f32, K and V in %s\nFAGEN_GGML %s%s\n%s, tier %d at most\n",
                        FA_GGML_API_LEAST, FA_GGML_API_MOST, formats, text ? "is " : "is not set", text ? text : "",
                        !good     ? why
                        : set.off ? "nothing is hooked"
                                  : "devices of CUDA are hooked",
                        set.tier);
    return size > 0 ? (size_t)size : 0;
}
