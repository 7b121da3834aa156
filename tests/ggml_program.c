/* A program with ggml's functions that loads the library of GGML_BACKEND_PATH, as ggml does, and computes one node by its hooked device.
 * With the argument `theirs` ggml computes that node, too, and is to have done so. */
#include "ggml_host.h"
#include "verify/operands/number.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fa_ggml_tensor *filled(fa_ggml_tensor *t)
{
    size_t bytes = host_bytes(t);
    t->data = calloc(1, bytes);
    for (size_t i = 0; i < bytes / (t->type == HOST_F16 ? 2 : 4); i++) {
        float x = (float)(i * 7919 % 31) / 16 - 1;
        if (t->type == HOST_F16)
            ((uint16_t *)t->data)[i] = fa_number_to_f16(x);
        else
            ((float *)t->data)[i] = x;
    }
    return t;
}

int main(int count, char **word)
{
    const bool theirs = count > 1 && !strcmp(word[1], "theirs");
    host_reset(1, NULL, true);
    void *file = dlopen(getenv("GGML_BACKEND_PATH"), RTLD_NOW | RTLD_LOCAL);
    fa_ggml_reg *(*init)(void) = file ? (fa_ggml_reg * (*)(void)) dlsym(file, "ggml_backend_init") : NULL;
    fa_ggml_reg *r = init ? init() : NULL;
    if (!r || init() != r)
        return fprintf(stderr, "%s\n", file ? "no registry" : dlerror()), 1;
    host_attends = theirs; /* or they refuse it: who computes it is known */
    fa_ggml_device *d = host_device(0);
    fa_ggml_backend *b = host_backend(0);
    fa_ggml_tensor *q = filled(host_tensor(HOST_F32, 32, 2, 2, 1)), *k = filled(host_tensor(HOST_F16, 32, 40, 1, 1));
    fa_ggml_tensor *v = filled(host_tensor(HOST_F16, 32, 40, 1, 1)), *o = host_attention(q, k, v, NULL, NULL, 0.25f, 0, 0);
    double truth[32 * 4], most = 0;
    o->data = calloc(1, host_bytes(o));
    host_attend(o, truth);
    if (!d->i.supports_op(d, o) || b->i.graph_compute(b, host_graph(1, &o, 1)) != 0)
        return fprintf(stderr, "not claimed, or failed\n"), 1;
    if (theirs) {
        printf("%s, %zu devices, computed by ggml: %s\n", r->i.get_name(r), r->i.device_count(r),
               memcmp(o->data, "\7\7\7\7", 4) ? "no" : "yes");
        host_free(b);
        return 0;
    }
    for (int i = 0; i < 32 * 4; i++)
        most = fmax(most, fabs(truth[i] - (double)((float *)o->data)[i]));
    printf("%s, %zu devices, claimed by the hook: %s\n", r->i.get_name(r), r->i.device_count(r), most < 2e-3 ? "right" : "wrong");
    host_free(b);
    return 0;
}
