/* metadata: one table of the members that are text, for writing, reading and comparing. */
#include "metadata.h"
#include "root.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define TEXT(name) { #name, offsetof(fa_metadata, name), sizeof(((fa_metadata *)0)->name) }
/* clang-format on */
static const struct {
    const char *name;
    size_t at, size;
} texts[] = { TEXT(problem), TEXT(config), TEXT(source), TEXT(arch), TEXT(compiler), TEXT(fagen), TEXT(date) };
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

bool fa_metadata_print(const fa_metadata *a, fa_text *out)
{
    char text[33];
    json_t *o = json_object(), *options = json_array();
    bool ok = o && options;
    for (int i = 0; ok && i < COUNT(texts); i++) {
        const char *s = (const char *)a + texts[i].at;
        ok = !s[0] || json_object_set_new(o, texts[i].name, json_string(s)) == 0;
    }
    for (int i = 0; ok && i < a->n_options; i++)
        ok = json_array_append_new(options, json_string(a->options[i])) == 0;
    fa_key_print(text, (fa_key){ a->text[0], a->text[1] });
    ok = ok && json_object_set(o, "options", options) == 0 && json_object_set_new(o, "text", json_string(text)) == 0 &&
         json_object_set_new(o, "format", json_integer(a->format)) == 0;
    char *s = ok ? json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(options);
    json_decref(o);
    if (!s)
        return false;
    fa_text_str(out, s);
    free(s);
    return !out->oom;
}

bool fa_metadata_parse(fa_metadata *out, const char *json, size_t n)
{
    memset(out, 0, sizeof *out);
    json_t *o = json_loadb(json, n, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        return false;
    }
    fa_key text;
    bool whole = true;
    for (int i = 0; i < COUNT(texts); i++) {
        const char *s = json_string_value(json_object_get(o, texts[i].name));
        size_t length = s ? strlen(s) : 0;
        whole = whole && length < texts[i].size;
        memcpy((char *)out + texts[i].at, s ? s : "", length < texts[i].size ? length : texts[i].size - 1);
    }
    const json_t *options = json_object_get(o, "options");
    size_t m = json_array_size(options);
    whole = whole && json_is_array(options) && m <= FA_METADATA_OPTIONS && out->arch[0] && out->compiler[0];
    for (size_t i = 0; i < m && i < FA_METADATA_OPTIONS; i++) {
        const char *s = json_string_value(json_array_get(options, i));
        whole = whole && s && strlen(s) < FA_METADATA_OPTION_SIZE;
        snprintf(out->options[out->n_options++], FA_METADATA_OPTION_SIZE, "%s", s ? s : "");
    }
    const char *hex = json_string_value(json_object_get(o, "text"));
    if (hex && fa_key_parse(&text, hex)) {
        out->text[0] = text.lo;
        out->text[1] = text.hi;
    } else
        whole = false;
    json_int_t format = json_integer_value(json_object_get(o, "format"));
    out->format = format > 0 && format < INT32_MAX ? (int32_t)format : 0;
    out->whole = whole && out->format == FA_FORMAT_VERSION;
    json_decref(o);
    return true;
}

fa_key fa_metadata_key(const fa_metadata *a)
{
    const char *options[FA_METADATA_OPTIONS];
    for (int i = 0; i < a->n_options; i++)
        options[i] = a->options[i];
    return fa_key_make(a->text, options, a->n_options, a->arch, a->compiler);
}

/* One difference: counted, and told when it is the first. */
typedef struct telling {
    int n;
    const char **field;
    char *buf;
    size_t size;
} telling;

static void differ(telling *t, const char *field, const char *here, const char *there)
{
    if (t->n++)
        return;
    *t->field = field;
    snprintf(t->buf, t->size, "%s: %s here, %s there", field, here[0] ? here : "none", there[0] ? there : "none");
}

int fa_metadata_differ(const fa_metadata *a, const fa_metadata *b, const char **field, char *buf, size_t n)
{
    telling t = { 0, field, buf, n };
    char x[80], y[80];
    *field = "";
    if (n)
        buf[0] = 0;
    if (strcmp(a->problem, b->problem))
        differ(&t, "problem", a->problem, b->problem);
    if (strcmp(a->config, b->config))
        differ(&t, "config", a->config, b->config);
    if (memcmp(a->text, b->text, sizeof a->text)) {
        /* with the version: another fagen renders another text */
        fa_key_print(x, (fa_key){ a->text[0], a->text[1] });
        fa_key_print(y, (fa_key){ b->text[0], b->text[1] });
        snprintf(x + 32, sizeof x - 32, " of fagen %s", a->fagen);
        snprintf(y + 32, sizeof y - 32, " of fagen %s", b->fagen);
        differ(&t, "text", x, y);
    }
    if (strcmp(a->arch, b->arch))
        differ(&t, "arch", a->arch, b->arch);
    /* the first option holds the arch as well: it is told where nothing else of it differs */
    bool same_arch = !strcmp(a->arch, b->arch), options = a->n_options != b->n_options;
    for (int i = 0; i < a->n_options && i < b->n_options && !options; i++)
        options = strcmp(a->options[i], b->options[i]) && (i > 0 || same_arch);
    for (int i = 0; options && i < FA_METADATA_OPTIONS; i++) {
        const char *p = i < a->n_options ? a->options[i] : "", *q = i < b->n_options ? b->options[i] : "";
        if (strcmp(p, q) && (i > 0 || same_arch)) {
            differ(&t, "options", p, q);
            break;
        }
    }
    if (strcmp(a->compiler, b->compiler))
        differ(&t, "compiler", a->compiler, b->compiler);
    if (a->format != b->format) {
        snprintf(x, sizeof x, "version %d", a->format);
        snprintf(y, sizeof y, "version %d", b->format);
        differ(&t, "format", x, y);
    }
    return t.n;
}
